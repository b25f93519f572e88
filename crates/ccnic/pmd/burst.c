/* The data plane of net_ccnic: bursts, in place where the mbufs lie in the shared region (see
 * placed.c), else with a copy that is counted. */
#include <rte_memcpy.h>

#include "net_ccnic.h"

/* Empty polls between looks at whether the NIC process is alive (a system call). */
#define ALIVE_POLLS (1u << 16)

static inline struct rte_mbuf *take_spare(struct pair *p) {
  if (unlikely(p->spare_count == 0)) {
    if (rte_pktmbuf_alloc_bulk(p->mempool, p->spare, BURST) != 0)
      return NULL;
    p->spare_count = BURST;
  }
  return p->spare[--p->spare_count];
}

/* Appends one buffer's payload to the packet at hand; false without mbufs. */
static inline bool append(struct pair *p, const char *data, uint32_t len) {
  while (len > 0) {
    uint16_t room = p->tail ? rte_pktmbuf_tailroom(p->tail) : 0;
    if (room == 0) {
      struct rte_mbuf *m = take_spare(p);
      if (unlikely(m == NULL))
        return false;
      if (p->head == NULL) {
        p->head = m;
      } else {
        p->tail->next = m;
        p->head->nb_segs++;
      }
      p->tail = m;
      room = rte_pktmbuf_tailroom(m);
    }
    uint16_t n = RTE_MIN(len, (uint32_t)room);
    rte_memcpy(rte_pktmbuf_mtod_offset(p->tail, char *, p->tail->data_len), data, n);
    p->tail->data_len += n;
    p->head->pkt_len += n;
    data += n;
    len -= n;
  }
  return true;
}

/* As take_copy for the first buffer of a packet with an offload header; `total` are the bytes of
 * the whole packet. */
static bool __rte_noinline take_described(struct pair *p, const ccnic_buf *buf, uint32_t total) {
  const char *data = p->base + buf->addr;
  p->tail = NULL;
  if (buf->len <= sizeof(ccnic_offload) || !append(p, data + sizeof(ccnic_offload), buf->len - sizeof(ccnic_offload)) ||
      !ccnic_pmd_understand(data, total - sizeof(ccnic_offload), p->head)) {
    rte_pktmbuf_free(p->head);
    p->head = NULL;
    p->rx_errors++;
    return false;
  }
  return !(buf->flags & CCNIC_MORE);
}

/* Bytes of the packet that begins with the first of `n` buffers; the most there can be, when
 * some of them are still to come. */
static inline uint32_t packet_bytes(const ccnic_buf *buf, int n) {
  uint32_t total = buf->len;
  for (; buf->flags & CCNIC_MORE; buf++) {
    if (--n == 0)
      return UINT16_MAX;
    total += buf[1].len;
  }
  return total;
}

/* Adds the first of `n` received buffers, copied, to the packet at hand; true when the packet is
 * complete. */
static inline bool take_copy(struct pair *p, const ccnic_buf *buf, int n) {
  const char *data = p->base + buf->addr;
  bool more = buf->flags & CCNIC_MORE;
  if (unlikely(buf->flags & CCNIC_OFFLOAD) && p->head == NULL)
    return take_described(p, buf, packet_bytes(buf, n));
  if (likely(p->head == NULL && !more && p->spare_count > 0)) {
    struct rte_mbuf *m = p->spare[p->spare_count - 1];
    if (likely(buf->len <= rte_pktmbuf_tailroom(m))) {
      p->spare_count--;
      rte_memcpy(rte_pktmbuf_mtod(m, char *), data, buf->len);
      m->data_len = buf->len;
      m->pkt_len = buf->len;
      p->head = m;
      return true;
    }
  }
  if (p->head == NULL)
    p->tail = NULL;
  if (unlikely(!append(p, data, buf->len))) {
    rte_pktmbuf_free(p->head);
    p->head = NULL;
    p->rx_nombuf++;
    return false;
  }
  return !more;
}

/* Drops a buffer whose payload is outside its mbuf's room, and the packet at hand. */
static void __rte_noinline refuse(struct pair *p, const ccnic_buf *buf) {
  ccnic_free(p->queue, buf, 1);
  rte_pktmbuf_free(p->head);
  p->head = NULL;
  p->rx_errors++;
}

/* Turns received buffers into the mbufs they belong to; returns the number of packets that
 * are complete. */
static inline uint16_t take_in_place(struct pair *p, const ccnic_buf *bufs, int n, struct rte_mbuf **pkts) {
  struct rte_mbuf *const *mbufs = p->in_place->mbufs;
  const uint64_t rearm = (uint64_t)1 << 16 | (uint64_t)1 << 32 | (uint64_t)p->port_id << 48;
  uint64_t bytes = 0;
  uint16_t out = 0;
  for (int i = 0; i < n; i++)
    rte_prefetch0(mbufs[bufs[i].index]);
  for (int i = 0; i < n; i++) {
    struct rte_mbuf *m = mbufs[bufs[i].index];
    uint32_t at = (uint32_t)(p->base + bufs[i].addr - (char *)m->buf_addr);
    uint32_t len = bufs[i].len;
    if (unlikely(at + len > m->buf_len)) { /* wraps, and so fails, below the mbuf's room */
      refuse(p, &bufs[i]);
      continue;
    }
    /* data_off, refcnt, nb_segs and port in one store. */
    *(uint64_t *)RTE_PTR_ADD(m, offsetof(struct rte_mbuf, rearm_data)) = rearm | at;
    m->ol_flags = RTE_MBUF_F_EXTERNAL;
    m->packet_type = 0;
    if (unlikely(bufs[i].flags & CCNIC_OFFLOAD) && p->head == NULL) {
      const uint32_t head = sizeof(ccnic_offload);
      if (len <= head || !ccnic_pmd_understand(p->base + bufs[i].addr, packet_bytes(&bufs[i], n - i) - head, m)) {
        refuse(p, &bufs[i]);
        continue;
      }
      m->data_off += head;
      len -= head;
    }
    m->data_len = (uint16_t)len;
    m->pkt_len = len;
    if (unlikely(p->head != NULL)) {
      p->tail->next = m;
      p->head->nb_segs++;
      p->head->pkt_len += len;
    } else if (unlikely(bufs[i].flags & CCNIC_MORE)) {
      p->head = m;
    } else {
      pkts[out++] = m;
      bytes += len;
      continue;
    }
    p->tail = m;
    if (!(bufs[i].flags & CCNIC_MORE)) {
      bytes += p->head->pkt_len;
      pkts[out++] = p->head;
      p->head = NULL;
    }
  }
  p->rx_bytes += bytes;
  return out;
}

/* As take_in_place with copies in mbufs of the queue's own pool. */
static uint16_t take_copies(struct pair *p, const ccnic_buf *bufs, int n, struct rte_mbuf **pkts) {
  uint16_t out = 0;
  for (int i = 0; i < n; i++)
    if (take_copy(p, &bufs[i], n - i)) {
      p->head->port = p->port_id;
      p->rx_bytes += p->head->pkt_len;
      pkts[out++] = p->head;
      p->head = NULL;
    }
  p->rx_copied += out;
  ccnic_free(p->queue, bufs, (uint32_t)n);
  return out;
}

uint16_t ccnic_pmd_rx(void *queue, struct rte_mbuf **pkts, uint16_t n) {
  struct pair *p = queue;
  ccnic_buf bufs[BURST];
  uint16_t out = 0;
  enum passage how = gate_enter(&p->gate);
  if (unlikely(how == REFUSED))
    return 0;
  while (out < n) {
    uint16_t want = RTE_MIN((uint16_t)(n - out), BURST);
    int got = ccnic_rx(p->queue, bufs, want);
    if (unlikely(got < 0)) {
      if (got == CCNIC_EFAULT)
        ccnic_pmd_recover(p->device, p);
      break;
    }
    if (got == 0) {
      if (unlikely(++p->idle % ALIVE_POLLS == 0) && !ccnic_port_peer_alive(p->device->port))
        ccnic_pmd_recover(p->device, p);
      break;
    }
    out += p->in_place ? take_in_place(p, bufs, got, pkts + out) : take_copies(p, bufs, got, pkts + out);
    if (got < want)
      break;
  }
  p->rx_packets += out;
  gate_leave(&p->gate, how);
  return out;
}

/* Copies one packet of at most one buffer's size. */
static inline void copy_packet(struct pair *p, ccnic_buf *buf, const struct rte_mbuf *m) {
  char *to = p->base + buf->addr;
  buf->len = (uint16_t)m->pkt_len;
  buf->flags = 0; /* with len one store, so that the library's load of both is forwarded */
  for (; m != NULL; m = m->next) {
    rte_memcpy(to, rte_pktmbuf_mtod(m, const void *), m->data_len);
    to += m->data_len;
  }
}

/* True for a packet within the MTU that asks for no offload. */
static inline bool sendable(const struct pair *p, const struct rte_mbuf *m) {
  return likely(!(m->ol_flags & TX_OFFLOADS)) && likely(m->pkt_len <= p->device->frame);
}

/* True when every segment is an mbuf of the placed pool, bound to its own buffer, and nobody
 * else refers to it. */
static inline bool in_place(const struct pair *p, const struct rte_mbuf *m) {
  const struct device *d = p->device;
  if (d->placed == NULL || m->nb_segs > CCNIC_MAX_SEGMENTS || !sendable(p, m))
    return false;
  for (; m != NULL; m = m->next) {
    if (m->pool != d->mempool)
      return false;
    const struct binding *b = binding_of(d->placed, m);
    if (rte_mbuf_refcnt_read(m) != 1 || rte_mbuf_ext_refcnt_read(&b->shinfo) != 1 || m->buf_addr != b->addr ||
        m->data_len == 0)
      return false;
  }
  return true;
}

/* Sends one packet of several buffers; returns 1 if it was taken, -1 if it never can be. */
static int send_long(struct pair *p, const struct rte_mbuf *m, uint32_t large) {
  ccnic_buf bufs[CCNIC_MAX_SEGMENTS];
  uint32_t head = m->ol_flags & TX_OFFLOADS ? sizeof(ccnic_offload) : 0;
  uint32_t count = (m->pkt_len + head + large - 1) / large;
  if (count > CCNIC_MAX_SEGMENTS)
    return -1;
  int got = ccnic_alloc(p->queue, bufs, count, 0);
  if (got == (int)count) {
    uint32_t at = head;
    const struct rte_mbuf *first = m;
    for (uint32_t i = 0; i < count; i++) {
      bufs[i].len = 0;
      bufs[i].flags = i + 1 < count ? CCNIC_MORE : 0;
    }
    for (; m != NULL; m = m->next) {
      uint32_t done = 0;
      while (done < m->data_len) {
        ccnic_buf *b = &bufs[at / large];
        uint32_t n = RTE_MIN(m->data_len - done, large - at % large);
        rte_memcpy(p->base + b->addr + at % large, rte_pktmbuf_mtod_offset(m, char *, done), n);
        b->len += n;
        at += n;
        done += n;
      }
    }
    bufs[0].len += head;
    if (head > 0) {
      ccnic_offload *o = (ccnic_offload *)(p->base + bufs[0].addr);
      ccnic_offload described;
      if (!ccnic_pmd_describe(first, (char *)(o + 1), bufs[0].len - head, &described)) {
        ccnic_free(p->queue, bufs, count);
        return -1;
      }
      memcpy(o, &described, sizeof(described));
      bufs[0].flags |= CCNIC_OFFLOAD;
    }
    int sent = ccnic_tx(p->queue, bufs, count);
    if (sent == (int)count) {
      p->tx_bytes += first->pkt_len;
      return 1;
    }
    if (sent == CCNIC_EUSAGE) { /* too long once segmented, or the NIC has not agreed */
      ccnic_free(p->queue, bufs, count);
      return -1;
    }
  }
  if (got > 0)
    ccnic_free(p->queue, bufs, (uint32_t)got);
  return 0;
}

/* Sends packets from the front of `pkts` with a copy, until one of them may go in place;
 * returns how many were taken. */
static uint16_t send_copies(struct pair *p, struct rte_mbuf **pkts, uint16_t n) {
  const ccnic_config *config = &p->device->config;
  uint32_t small = config->small ? config->small_bytes : 0;
  uint32_t large = config->payload ? config->payload : config->large_bytes - config->headroom;
  ccnic_buf bufs[BURST];
  /* A run of packets of one size class goes out in one burst. */
  bool first_small = pkts[0]->pkt_len <= small;
  uint16_t run = 0;
  while (run < n && run < BURST && pkts[run]->pkt_len <= large && (pkts[run]->pkt_len <= small) == first_small &&
         pkts[run]->pkt_len > 0 && sendable(p, pkts[run]) && !in_place(p, pkts[run]))
    run++;
  if (unlikely(run == 0)) {
    bool fits = pkts[0]->pkt_len <= p->device->frame || pkts[0]->ol_flags & RTE_MBUF_F_TX_TCP_SEG;
    p->oversize += !fits;
    int ok = pkts[0]->pkt_len > 0 && fits ? send_long(p, pkts[0], large) : -1;
    if (ok == 0)
      return 0;
    if (ok < 0)
      p->tx_errors++;
    else
      p->tx_packets++, p->tx_copied++;
    rte_pktmbuf_free(pkts[0]);
    return 1;
  }
  int got = ccnic_alloc(p->queue, bufs, run, first_small ? small : large);
  if (got <= 0)
    return 0;
  for (int i = 0; i < got; i++)
    copy_packet(p, &bufs[i], pkts[i]);
  int taken = ccnic_tx(p->queue, bufs, (uint32_t)got);
  if (taken < 0)
    taken = 0; /* a fault: the receive side resets the port */
  for (int i = 0; i < taken; i++)
    p->tx_bytes += bufs[i].len;
  if (taken < got)
    ccnic_free(p->queue, bufs + taken, (uint32_t)(got - taken));
  rte_pktmbuf_free_bulk(pkts, (unsigned)taken);
  p->tx_packets += taken;
  p->tx_copied += taken;
  return (uint16_t)taken;
}

/* Sends packets from the front of `pkts` whose data lie in the shared region; returns how many
 * were taken. Their mbufs are free with their buffers: in the state of a pool's mbuf, and
 * back in the application's hands when the buffer is received or allocated again. */
static uint16_t send_in_place(struct pair *p, struct rte_mbuf **pkts, uint16_t n) {
  ccnic_buf bufs[BURST];
  uint16_t run = 0;
  uint32_t used = 0;
  while (run < n && used + pkts[run]->nb_segs <= BURST && in_place(p, pkts[run])) {
    for (const struct rte_mbuf *m = pkts[run]; m != NULL; m = m->next) {
      ccnic_buf *b = &bufs[used++];
      b->addr = (uint64_t)(rte_pktmbuf_mtod(m, char *) - p->base);
      b->index = binding_of(p->device->placed, m)->index;
      b->len = m->data_len;
      b->flags = m->next ? CCNIC_MORE : 0;
    }
    run++;
  }
  if (run == 0)
    return 0;
  int taken = ccnic_tx(p->queue, bufs, used);
  if (unlikely(taken == CCNIC_EUSAGE)) {
    p->tx_errors++; /* the application sent an mbuf it no longer owns: not ours to free */
    return 1;
  }
  uint16_t sent = 0;
  for (int done = 0; done < taken; sent++) {
    struct rte_mbuf *m = pkts[sent];
    p->tx_bytes += m->pkt_len;
    done += m->nb_segs;
    while (unlikely(m->next != NULL)) {
      struct rte_mbuf *next = m->next;
      m->next = NULL;
      m->nb_segs = 1;
      m = next;
    }
  }
  p->tx_packets += sent;
  return sent;
}

uint16_t ccnic_pmd_tx(void *queue, struct rte_mbuf **pkts, uint16_t n) {
  struct pair *p = queue;
  uint16_t sent = 0;
  enum passage how = gate_enter(&p->gate);
  if (unlikely(how == REFUSED))
    return 0;
  while (sent < n) {
    uint16_t taken = send_in_place(p, pkts + sent, n - sent);
    if (taken == 0 && !in_place(p, pkts[sent]))
      taken = send_copies(p, pkts + sent, n - sent);
    if (taken == 0)
      break;
    sent += taken;
  }
  gate_leave(&p->gate, how);
  return sent;
}
