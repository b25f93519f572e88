/* net_ccnic: DPDK poll-mode driver over libccnic.
 *
 * A virtual device is the host end of one CC-NIC port; its NIC is a thread of this process
 * (loopback) or the process listening on a socket. Packets are copied between mbufs and the
 * shared buffers, as the memif driver does, so that applications keep their own mempools.
 *
 * Arguments: socket=PATH (a NIC process; default: loopback thread), nic-cpu=N (loopback
 * thread's CPU), slots=N (ring length), unopt=1 (E810-style interface).
 *
 * Threads: one lcore may receive from a queue pair while another sends on it; a lock per
 * pair, taken once per burst and uncontended in the usual set-up, makes that safe.
 */
#include <stdbool.h>
#include <stdlib.h>

#include <bus_vdev_driver.h>
#include <ethdev_driver.h>
#include <ethdev_vdev.h>
#include <rte_ethdev.h>
#include <rte_kvargs.h>
#include <rte_malloc.h>
#include <rte_memcpy.h>
#include <rte_spinlock.h>

#include "ccnic.h"

#define BURST 32
#define MAX_QUEUES 16
/* Empty polls between looks at whether the NIC process is alive (a system call). */
#define ALIVE_POLLS (1u << 16)

RTE_LOG_REGISTER_DEFAULT(ccnic_logtype, NOTICE);
#define LOG(level, fmt, ...) \
  rte_log(RTE_LOG_##level, ccnic_logtype, "net_ccnic: " fmt "\n", ##__VA_ARGS__)

struct device;

struct pair {
  rte_spinlock_t lock;
  ccnic_queue *queue;
  char *base;
  struct device *device;
  struct rte_mempool *mempool;
  uint16_t port_id;
  uint32_t idle;
  /* Mbufs allocated ahead in bulk. */
  uint32_t spare_count;
  struct rte_mbuf *spare[BURST];
  /* Packet whose last segment has not arrived yet. */
  struct rte_mbuf *head, *tail;
  uint64_t rx_packets, rx_bytes, tx_packets, tx_bytes, rx_nombuf, tx_errors;
} __rte_cache_aligned;

struct device {
  ccnic_port *port;
  ccnic_config config;
  struct pair pairs[MAX_QUEUES];
  uint16_t pair_count;
  char *socket;
  int nic_cpu;
  struct rte_ether_addr mac;
};

static struct rte_eth_link up = {
    .link_speed = RTE_ETH_SPEED_NUM_100G,
    .link_duplex = RTE_ETH_LINK_FULL_DUPLEX,
    .link_status = RTE_ETH_LINK_UP,
    .link_autoneg = RTE_ETH_LINK_FIXED,
};

static int attach(struct device *d) {
  return d->socket ? ccnic_port_connect(d->port, d->socket)
                   : ccnic_port_start_loopback(d->port, d->nic_cpu);
}

/* Resets the port after a fault or the NIC's death, and finds a NIC again. The caller holds
 * the lock of `held`; the other pairs are locked here, in order. */
static void recover(struct device *d, struct pair *held) {
  ccnic_queue *queues[MAX_QUEUES];
  for (uint16_t i = 0; i < d->pair_count; i++) {
    /* Someone else who recovers waits for our lock, so give way instead of waiting. */
    if (&d->pairs[i] != held && !rte_spinlock_trylock(&d->pairs[i].lock)) {
      while (i-- > 0)
        if (&d->pairs[i] != held)
          rte_spinlock_unlock(&d->pairs[i].lock);
      return;
    }
    queues[i] = d->pairs[i].queue;
  }
  if (ccnic_port_recover(d->port, queues, d->pair_count) < 0)
    LOG(WARNING, "reset: %s", ccnic_last_error());
  if (!ccnic_port_peer_alive(d->port) && attach(d) < 0)
    LOG(INFO, "no NIC: %s", ccnic_last_error());
  for (uint16_t i = 0; i < d->pair_count; i++) {
    rte_pktmbuf_free(d->pairs[i].head);
    d->pairs[i].head = NULL;
    if (&d->pairs[i] != held)
      rte_spinlock_unlock(&d->pairs[i].lock);
  }
}

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

static uint16_t rx_burst(void *queue, struct rte_mbuf **pkts, uint16_t n) {
  struct pair *p = queue;
  ccnic_buf bufs[BURST];
  uint16_t out = 0;
  if (unlikely(!rte_spinlock_trylock(&p->lock)))
    return 0;
  while (out < n) {
    uint16_t want = RTE_MIN((uint16_t)(n - out), BURST);
    int got = ccnic_rx(p->queue, bufs, want);
    if (unlikely(got < 0)) {
      if (got == CCNIC_EFAULT)
        recover(p->device, p);
      break;
    }
    if (got == 0) {
      if (unlikely(++p->idle % ALIVE_POLLS == 0) && !ccnic_port_peer_alive(p->device->port))
        recover(p->device, p);
      break;
    }
    for (int i = 0; i < got; i++) {
      const char *data = p->base + bufs[i].addr;
      bool more = bufs[i].flags & CCNIC_MORE;
      if (likely(p->head == NULL && !more && p->spare_count > 0)) {
        struct rte_mbuf *m = p->spare[p->spare_count - 1];
        if (likely(bufs[i].len <= rte_pktmbuf_tailroom(m))) {
          p->spare_count--;
          rte_memcpy(rte_pktmbuf_mtod(m, char *), data, bufs[i].len);
          m->data_len = bufs[i].len;
          m->pkt_len = bufs[i].len;
          m->port = p->port_id;
          p->rx_bytes += bufs[i].len;
          pkts[out++] = m;
          continue;
        }
      }
      if (p->head == NULL)
        p->tail = NULL;
      if (unlikely(!append(p, data, bufs[i].len))) {
        rte_pktmbuf_free(p->head);
        p->head = NULL;
        p->rx_nombuf++;
        continue;
      }
      if (!more) {
        p->head->port = p->port_id;
        p->rx_bytes += p->head->pkt_len;
        pkts[out++] = p->head;
        p->head = NULL;
      }
    }
    ccnic_free(p->queue, bufs, (uint32_t)got);
    if (got < want)
      break;
  }
  p->rx_packets += out;
  rte_spinlock_unlock(&p->lock);
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

/* Sends one packet of several buffers; returns 1 if it was taken, -1 if it never can be. */
static int send_long(struct pair *p, const struct rte_mbuf *m) {
  ccnic_buf bufs[CCNIC_MAX_SEGMENTS];
  uint32_t large = p->device->config.large_bytes;
  uint32_t count = (m->pkt_len + large - 1) / large;
  if (count > CCNIC_MAX_SEGMENTS)
    return -1;
  int got = ccnic_alloc(p->queue, bufs, count, 0);
  if (got == (int)count) {
    uint32_t at = 0;
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
    if (ccnic_tx(p->queue, bufs, count) == (int)count) {
      p->tx_bytes += first->pkt_len;
      return 1;
    }
  }
  if (got > 0)
    ccnic_free(p->queue, bufs, (uint32_t)got);
  return 0;
}

static uint16_t tx_burst(void *queue, struct rte_mbuf **pkts, uint16_t n) {
  struct pair *p = queue;
  ccnic_buf bufs[BURST];
  uint16_t sent = 0;
  if (unlikely(!rte_spinlock_trylock(&p->lock)))
    return 0;
  while (sent < n) {
    /* A run of packets of one size class goes out in one burst. */
    uint32_t small = p->device->config.small_bytes, large = p->device->config.large_bytes;
    bool first_small = pkts[sent]->pkt_len <= small;
    uint16_t run = 0;
    while (run < BURST && sent + run < n && pkts[sent + run]->pkt_len <= large &&
           (pkts[sent + run]->pkt_len <= small) == first_small && pkts[sent + run]->pkt_len > 0)
      run++;
    if (unlikely(run == 0)) {
      int ok = pkts[sent]->pkt_len > 0 ? send_long(p, pkts[sent]) : -1;
      if (ok == 0)
        break;
      if (ok < 0)
        p->tx_errors++;
      else
        p->tx_packets++;
      rte_pktmbuf_free(pkts[sent++]);
      continue;
    }
    int got = ccnic_alloc(p->queue, bufs, run, first_small ? small : large);
    if (got <= 0)
      break;
    for (int i = 0; i < got; i++)
      copy_packet(p, &bufs[i], pkts[sent + i]);
    int taken = ccnic_tx(p->queue, bufs, (uint32_t)got);
    if (taken < 0)
      taken = 0; /* a fault: the receive side resets the port */
    for (int i = 0; i < taken; i++)
      p->tx_bytes += bufs[i].len;
    if (taken < got)
      ccnic_free(p->queue, bufs + taken, (uint32_t)(got - taken));
    rte_pktmbuf_free_bulk(pkts + sent, (unsigned)taken);
    sent += taken;
    p->tx_packets += taken;
    if (taken < run)
      break;
  }
  rte_spinlock_unlock(&p->lock);
  return sent;
}

static int dev_configure(struct rte_eth_dev *dev) {
  struct device *d = dev->data->dev_private;
  d->pair_count = RTE_MAX(dev->data->nb_rx_queues, dev->data->nb_tx_queues);
  for (uint16_t i = 0; i < MAX_QUEUES; i++) {
    d->pairs[i].device = d;
    d->pairs[i].port_id = dev->data->port_id;
    rte_spinlock_init(&d->pairs[i].lock);
  }
  return 0;
}

static void close_port(struct device *d) {
  for (uint16_t i = 0; i < MAX_QUEUES; i++) {
    struct pair *p = &d->pairs[i];
    ccnic_queue_close(p->queue);
    p->queue = NULL;
    rte_pktmbuf_free(p->head);
    p->head = NULL;
    if (p->spare_count > 0)
      rte_pktmbuf_free_bulk(p->spare, p->spare_count);
    p->spare_count = 0;
  }
  ccnic_port_destroy(d->port);
  d->port = NULL;
}

static int dev_start(struct rte_eth_dev *dev) {
  struct device *d = dev->data->dev_private;
  d->config.queues = d->pair_count;
  if (ccnic_port_create(&d->config, &d->port) < 0)
    goto failed;
  for (uint16_t i = 0; i < d->pair_count; i++) {
    if (ccnic_queue_open(d->port, i, &d->pairs[i].queue) < 0)
      goto failed;
    d->pairs[i].base = ccnic_base(d->pairs[i].queue);
  }
  if (attach(d) < 0)
    goto failed;
  dev->data->dev_link = up;
  return 0;
failed:
  LOG(ERR, "%s", ccnic_last_error());
  close_port(d);
  return -EIO;
}

static int dev_stop(struct rte_eth_dev *dev) {
  close_port(dev->data->dev_private);
  dev->data->dev_link.link_status = RTE_ETH_LINK_DOWN;
  return 0;
}

static int dev_close(struct rte_eth_dev *dev) {
  struct device *d = dev->data->dev_private;
  if (rte_eal_process_type() != RTE_PROC_PRIMARY)
    return 0;
  close_port(d);
  free(d->socket);
  d->socket = NULL;
  dev->data->mac_addrs = NULL;
  return 0;
}

static int dev_info(struct rte_eth_dev *dev, struct rte_eth_dev_info *info) {
  RTE_SET_USED(dev);
  info->max_mac_addrs = 1;
  info->max_rx_pktlen = CCNIC_MAX_SEGMENTS * 4096;
  info->max_mtu = CCNIC_MAX_SEGMENTS * 4096 - RTE_ETHER_HDR_LEN - RTE_ETHER_CRC_LEN;
  info->min_rx_bufsize = 0;
  info->max_rx_queues = MAX_QUEUES;
  info->max_tx_queues = MAX_QUEUES;
  info->tx_offload_capa = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
  /* Checksums are reported as unknown, which applications have to handle; l3fwd insists on
   * the offload being there. */
  info->rx_offload_capa = RTE_ETH_RX_OFFLOAD_SCATTER | RTE_ETH_RX_OFFLOAD_CHECKSUM;
  return 0;
}

static int rx_setup(struct rte_eth_dev *dev, uint16_t id, uint16_t slots, unsigned socket,
                    const struct rte_eth_rxconf *conf, struct rte_mempool *pool) {
  struct device *d = dev->data->dev_private;
  RTE_SET_USED(slots);
  RTE_SET_USED(socket);
  RTE_SET_USED(conf);
  d->pairs[id].mempool = pool;
  dev->data->rx_queues[id] = &d->pairs[id];
  return 0;
}

static int tx_setup(struct rte_eth_dev *dev, uint16_t id, uint16_t slots, unsigned socket,
                    const struct rte_eth_txconf *conf) {
  struct device *d = dev->data->dev_private;
  RTE_SET_USED(slots);
  RTE_SET_USED(socket);
  RTE_SET_USED(conf);
  dev->data->tx_queues[id] = &d->pairs[id];
  return 0;
}

static int link_update(struct rte_eth_dev *dev, int wait) {
  struct device *d = dev->data->dev_private;
  struct rte_eth_link link = up;
  RTE_SET_USED(wait);
  if (d->port == NULL || !ccnic_port_peer_alive(d->port))
    link.link_status = RTE_ETH_LINK_DOWN;
  return rte_eth_linkstatus_set(dev, &link);
}

static int stats_get(struct rte_eth_dev *dev, struct rte_eth_stats *s) {
  struct device *d = dev->data->dev_private;
  for (uint16_t i = 0; i < d->pair_count; i++) {
    const struct pair *p = &d->pairs[i];
    s->ipackets += p->rx_packets;
    s->ibytes += p->rx_bytes;
    s->opackets += p->tx_packets;
    s->obytes += p->tx_bytes;
    s->oerrors += p->tx_errors;
    s->rx_nombuf += p->rx_nombuf;
    if (i < RTE_ETHDEV_QUEUE_STAT_CNTRS) {
      s->q_ipackets[i] = p->rx_packets;
      s->q_ibytes[i] = p->rx_bytes;
      s->q_opackets[i] = p->tx_packets;
      s->q_obytes[i] = p->tx_bytes;
    }
  }
  return 0;
}

static int stats_reset(struct rte_eth_dev *dev) {
  struct device *d = dev->data->dev_private;
  for (uint16_t i = 0; i < MAX_QUEUES; i++) {
    struct pair *p = &d->pairs[i];
    p->rx_packets = p->rx_bytes = p->tx_packets = p->tx_bytes = 0;
    p->rx_nombuf = p->tx_errors = 0;
  }
  return 0;
}

/* The far side has no filter: every packet is received whatever the mode. */
static int accept_all(struct rte_eth_dev *dev) {
  RTE_SET_USED(dev);
  return 0;
}

static int mtu_set(struct rte_eth_dev *dev, uint16_t mtu) {
  RTE_SET_USED(dev);
  RTE_SET_USED(mtu);
  return 0; /* ethdev has checked it against max_mtu */
}

static int mac_set(struct rte_eth_dev *dev, struct rte_ether_addr *mac) {
  RTE_SET_USED(dev);
  RTE_SET_USED(mac);
  return 0; /* ethdev keeps the address */
}

static const struct eth_dev_ops ops = {
    .dev_configure = dev_configure,
    .dev_start = dev_start,
    .dev_stop = dev_stop,
    .dev_close = dev_close,
    .dev_infos_get = dev_info,
    .rx_queue_setup = rx_setup,
    .tx_queue_setup = tx_setup,
    .link_update = link_update,
    .stats_get = stats_get,
    .stats_reset = stats_reset,
    .promiscuous_enable = accept_all,
    .promiscuous_disable = accept_all,
    .allmulticast_enable = accept_all,
    .allmulticast_disable = accept_all,
    .mtu_set = mtu_set,
    .mac_addr_set = mac_set,
};

static int take_string(const char *key, const char *value, void *to) {
  RTE_SET_USED(key);
  *(char **)to = strdup(value);
  return *(char **)to ? 0 : -ENOMEM;
}

static int take_number(const char *key, const char *value, void *to) {
  char *end;
  unsigned long n = strtoul(value, &end, 10);
  if (*value == '\0' || *end != '\0' || n > 65536) {
    LOG(ERR, "%s=%s is not a number from 0 to 65536", key, value);
    return -EINVAL;
  }
  *(uint32_t *)to = (uint32_t)n;
  return 0;
}

static int probe(struct rte_vdev_device *vdev) {
  static const char *const keys[] = {"socket", "nic-cpu", "slots", "unopt", NULL};
  struct rte_kvargs *args = rte_kvargs_parse(rte_vdev_device_args(vdev), keys);
  uint32_t cpu = UINT32_MAX, slots = 1024, unopt = 0;
  char *socket = NULL;
  if (args == NULL) {
    LOG(ERR, "valid arguments are socket, nic-cpu, slots and unopt");
    return -EINVAL;
  }
  int rc = rte_kvargs_process(args, "socket", take_string, &socket);
  rc = rc ? rc : rte_kvargs_process(args, "nic-cpu", take_number, &cpu);
  rc = rc ? rc : rte_kvargs_process(args, "slots", take_number, &slots);
  rc = rc ? rc : rte_kvargs_process(args, "unopt", take_number, &unopt);
  rte_kvargs_free(args);
  struct rte_eth_dev *dev = rc ? NULL : rte_eth_vdev_allocate(vdev, sizeof(struct device));
  if (dev == NULL) {
    free(socket);
    return rc ? rc : -ENOMEM;
  }
  struct device *d = dev->data->dev_private;
  ccnic_config_init(&d->config, unopt != 0);
  d->config.slots = slots;
  d->socket = socket;
  d->nic_cpu = cpu == UINT32_MAX ? -1 : (int)cpu;
  rte_eth_random_addr(d->mac.addr_bytes);
  dev->data->mac_addrs = &d->mac;
  dev->data->dev_link = up;
  dev->data->dev_link.link_status = RTE_ETH_LINK_DOWN;
  dev->dev_ops = &ops;
  dev->rx_pkt_burst = rx_burst;
  dev->tx_pkt_burst = tx_burst;
  rte_eth_dev_probing_finish(dev);
  return 0;
}

static int drop(struct rte_vdev_device *vdev) {
  struct rte_eth_dev *dev = rte_eth_dev_allocated(rte_vdev_device_name(vdev));
  if (dev == NULL)
    return 0;
  dev_close(dev);
  return rte_eth_dev_release_port(dev);
}

static struct rte_vdev_driver driver = {.probe = probe, .remove = drop};

RTE_PMD_REGISTER_VDEV(net_ccnic, driver);
RTE_PMD_REGISTER_PARAM_STRING(net_ccnic,
                              "socket=<path> nic-cpu=<int> slots=<int> unopt=<0|1>");
