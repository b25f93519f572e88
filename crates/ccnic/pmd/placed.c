/* Mempool operations "ccnic": mbufs whose data lie in a port's shared region, so that they
 * are sent and received without a copy. An application gets them unmodified through EAL's
 * --mbuf-pool-ops-name=ccnic.
 *
 * The mbuf structures stay in private memory, out of the NIC's reach; each is bound for life
 * to one shared buffer, as DPDK's pools with pinned external buffers are. The free buffers
 * are those of the CC-NIC pool that both sides use: the NIC takes what the application freed
 * without the driver's help, and an mbuf is free exactly when its buffer is.
 *
 * The first packet mempool of the first free net_ccnic device is placed; further ones, and
 * those that bring their own external memory or are too small for a frame, become ordinary
 * rings of mbufs, whose packets the driver copies and counts. */
#include <errno.h>
#include <stdalign.h>

#include <rte_errno.h>
#include <rte_malloc.h>

#include "net_ccnic.h"

#define CHUNK 64

static LIST_HEAD(, device) devices = LIST_HEAD_INITIALIZER(devices);

void ccnic_pmd_offer(struct device *d) { LIST_INSERT_HEAD(&devices, d, next); }

void ccnic_pmd_withdraw(struct device *d) {
  LIST_REMOVE(d, next);
  if (d->placed)
    d->placed->device = NULL;
}

/* The last one of the list is the device probed first. */
static struct device *free_device(void) {
  struct device *d, *first = NULL;
  LIST_FOREACH(d, &devices, next)
    if (d->placed == NULL && d->port == NULL)
      first = d;
  return first;
}

static bool fits(const struct rte_mempool *mp) {
  if (mp->private_data_size < sizeof(struct rte_pktmbuf_pool_private))
    return false;
  struct rte_mempool *pool = (struct rte_mempool *)(uintptr_t)mp; /* readers take it unqualified */
  uint32_t room = rte_pktmbuf_data_room_size(pool);
  return !(rte_pktmbuf_priv_flags(pool) & RTE_PKTMBUF_POOL_F_PINNED_EXT_BUF) &&
         room >= RTE_PKTMBUF_HEADROOM + RTE_ETHER_MAX_LEN && room <= 32768 - RTE_PKTMBUF_HEADROOM &&
         mp->size >= 64 && mp->size <= 1u << 20;
}

static int open_port(struct placed_pool *p, struct rte_mempool *mp, struct device *d) {
  uint32_t room = rte_pktmbuf_data_room_size(mp);
  ccnic_config config = d->config;
  config.queues = MAX_QUEUES;
  config.small = 0; /* every buffer is an mbuf of one size */
  config.buffers = mp->size;
  config.large_bytes = rte_align32pow2(room + 1);
  config.headroom = RTE_PKTMBUF_HEADROOM;
  config.payload = room - RTE_PKTMBUF_HEADROOM;
  if (ccnic_port_create(&config, &p->port) < 0 || ccnic_pool_open(p->port, &p->pool) < 0) {
    LOG(ERR, "mempool %s: %s", mp->name, ccnic_last_error());
    return -ENOMEM;
  }
  d->config = config;
  d->port = p->port;
  d->placed = p;
  d->mempool = mp;
  p->device = d;
  return 0;
}

static void free_pool(struct rte_mempool *mp) {
  struct placed_pool *p = mp->pool_data;
  if (p == NULL)
    return;
  if (p->device) {
    p->device->port = NULL;
    p->device->placed = NULL;
    p->device->mempool = NULL;
  }
  ccnic_pool_close(p->pool);
  ccnic_port_destroy(p->port);
  rte_ring_free(p->ring);
  rte_free(p);
  mp->pool_data = NULL;
}

static int alloc_pool(struct rte_mempool *mp) {
  struct device *d = fits(mp) ? free_device() : NULL;
  struct placed_pool *p =
      rte_zmalloc("ccnic pool", sizeof(*p) + (d ? mp->size * sizeof(p->mbufs[0]) : 0), RTE_CACHE_LINE_SIZE);
  if (p == NULL)
    return -ENOMEM;
  mp->pool_data = p;
  rte_spinlock_init(&p->lock);
  int rc = 0;
  if (d) {
    p->count = mp->size;
    p->binding_at = sizeof(struct rte_mbuf) + rte_pktmbuf_priv_size(mp);
    p->binding_at = RTE_ALIGN_CEIL(p->binding_at, alignof(struct binding));
    rc = open_port(p, mp, d);
  } else {
    char name[RTE_RING_NAMESIZE];
    LOG(NOTICE, "mempool %s is not placed in a shared region; its packets are copied", mp->name);
    snprintf(name, sizeof(name), "CC_%s", mp->name);
    p->ring = rte_ring_create(name, rte_align32pow2(mp->size + 1), mp->socket_id, 0);
    rc = p->ring ? 0 : -rte_errno;
  }
  if (rc < 0)
    free_pool(mp);
  return rc;
}

/* Ties an mbuf to its buffer, as rte_pktmbuf_pool_create_extbuf does. */
static void tie(struct placed_pool *p, struct rte_mbuf *m, uint16_t room) {
  struct binding *b = binding_of(p, m);
  m->buf_addr = b->addr;
  rte_mbuf_iova_set(m, rte_eal_iova_mode() == RTE_IOVA_VA ? (uintptr_t)b->addr : RTE_BAD_IOVA);
  m->buf_len = room;
  m->data_off = RTE_PKTMBUF_HEADROOM;
  m->ol_flags = RTE_MBUF_F_EXTERNAL;
  m->shinfo = &b->shinfo;
  rte_mbuf_refcnt_set(m, 1);
  m->next = NULL;
  m->nb_segs = 1;
}

/* The last user of the data was a clone: the mbuf itself was freed before. */
static void last_clone(void *addr, void *opaque) {
  struct rte_mbuf *m = opaque;
  RTE_SET_USED(addr);
  rte_mbuf_ext_refcnt_set(m->shinfo, 1);
  m->ol_flags = RTE_MBUF_F_EXTERNAL;
  m->next = NULL;
  m->nb_segs = 1;
  rte_mbuf_raw_free(m);
}

/* At the first allocation: only then has the application initialised all mbufs. */
static int bind_all(struct rte_mempool *mp, struct placed_pool *p) {
  uint16_t room = rte_pktmbuf_data_room_size(mp);
  if (p->populated != p->count)
    return -ENOBUFS;
  for (uint32_t i = 0; i < p->count; i++) {
    struct binding *b = binding_of(p, p->mbufs[i]);
    ccnic_buf buf;
    uint32_t size;
    char *data = ccnic_pool_buffer(p->pool, i, &buf, &size);
    if (data == NULL || buf.index != i)
      return -ENOBUFS;
    b->addr = data - RTE_PKTMBUF_HEADROOM;
    b->index = i;
    b->shinfo.free_cb = last_clone;
    b->shinfo.fcb_opaque = p->mbufs[i];
    rte_mbuf_ext_refcnt_set(&b->shinfo, 1);
    tie(p, p->mbufs[i], room);
  }
  ((struct rte_pktmbuf_pool_private *)rte_mempool_get_priv(mp))->flags |= RTE_PKTMBUF_POOL_F_PINNED_EXT_BUF;
  p->bound = true;
  return 0;
}

static int enqueue(struct rte_mempool *mp, void *const *objects, unsigned n) {
  struct placed_pool *p = mp->pool_data;
  if (p->ring)
    return rte_ring_enqueue_bulk(p->ring, objects, n, NULL) ? 0 : -ENOBUFS;
  rte_spinlock_lock(&p->lock);
  for (unsigned at = 0; at < n; at += CHUNK) {
    ccnic_buf bufs[CHUNK];
    unsigned k = RTE_MIN(n - at, (unsigned)CHUNK);
    for (unsigned i = 0; i < k; i++) {
      struct rte_mbuf *m = objects[at + i];
      const struct binding *b = binding_of(p, m);
      bufs[i].index = b->index;
      if (unlikely(m->buf_addr != b->addr)) /* it was attached to other data meanwhile */
        tie(p, m, rte_pktmbuf_data_room_size(mp));
    }
    ccnic_pool_put(p->pool, bufs, k);
  }
  rte_spinlock_unlock(&p->lock);
  return 0;
}

static int dequeue(struct rte_mempool *mp, void **objects, unsigned n) {
  struct placed_pool *p = mp->pool_data;
  unsigned got = 0;
  if (p->ring)
    return rte_ring_dequeue_bulk(p->ring, objects, n, NULL) ? 0 : -ENOBUFS;
  rte_spinlock_lock(&p->lock);
  bool ready = p->bound || bind_all(mp, p) == 0;
  while (ready && got < n) {
    ccnic_buf bufs[CHUNK];
    int k = ccnic_pool_take(p->pool, bufs, RTE_MIN(n - got, (unsigned)CHUNK));
    if (k <= 0)
      break;
    for (int i = 0; i < k; i++)
      objects[got++] = p->mbufs[bufs[i].index];
  }
  rte_spinlock_unlock(&p->lock);
  if (got == n)
    return 0;
  if (got > 0)
    enqueue(mp, objects, got);
  return -ENOBUFS;
}

static unsigned count(const struct rte_mempool *mp) {
  const struct placed_pool *p = mp->pool_data;
  return p->ring ? rte_ring_count(p->ring) : (unsigned)ccnic_pool_available(p->pool);
}

/* Placed mbufs need no room for data, unless the mempool library writes trailers behind it. */
static size_t stride(const struct rte_mempool *mp) {
  const struct placed_pool *p = mp->pool_data;
  if (p == NULL || p->ring || mp->trailer_size > 0)
    return mp->header_size + mp->elt_size + mp->trailer_size;
  return RTE_ALIGN_CEIL(mp->header_size + p->binding_at + sizeof(struct binding), RTE_CACHE_LINE_SIZE);
}

static ssize_t memory_size(const struct rte_mempool *mp, uint32_t n, uint32_t page_shift, size_t *least,
                           size_t *align) {
  const struct placed_pool *p = mp->pool_data;
  if (p == NULL || p->ring) /* before alloc_pool nothing is known, and the ordinary size is enough */
    return rte_mempool_op_calc_mem_size_default(mp, n, page_shift, least, align);
  size_t page = (size_t)1 << page_shift, each = stride(mp);
  *least = each;
  *align = RTE_MEMPOOL_ALIGN;
  if (page_shift == 0 || each > page)
    return n * each;
  return RTE_ALIGN_CEIL(n, page / each) / (page / each) * page;
}

static int populate(struct rte_mempool *mp, unsigned most, void *memory, rte_iova_t iova, size_t len,
                    rte_mempool_populate_obj_cb_t *added, void *arg) {
  struct placed_pool *p = mp->pool_data;
  if (p->ring)
    return rte_mempool_op_populate_default(mp, most, memory, iova, len, added, arg);
  size_t each = stride(mp), at = 0;
  unsigned n = 0;
  for (; n < most && p->populated < p->count && at + each <= len; n++, at += each) {
    char *object = (char *)memory + at + mp->header_size;
    added(mp, arg, object, iova == RTE_BAD_IOVA ? RTE_BAD_IOVA : iova + at + mp->header_size);
    p->mbufs[p->populated++] = (struct rte_mbuf *)object;
  }
  return (int)n;
}

static const struct rte_mempool_ops ops = {
    .name = POOL_OPS,
    .alloc = alloc_pool,
    .free = free_pool,
    .enqueue = enqueue,
    .dequeue = dequeue,
    .get_count = count,
    .calc_mem_size = memory_size,
    .populate = populate,
};

RTE_MEMPOOL_REGISTER_OPS(ops)
