/* net_ccnic: DPDK poll-mode driver over libccnic; this file is its control plane.
 *
 * A virtual device is the host end of one CC-NIC port; its NIC is a thread of this process
 * (loopback) or the process listening on a socket. With EAL's --mbuf-pool-ops-name=ccnic the
 * data of mbufs lie in the shared region (placed.c) and packets pass without a copy; other
 * mbufs are copied, as the memif driver does, and counted (xstats).
 *
 * Arguments: socket=PATH (a NIC process; default: loopback thread), nic-cpu=N (loopback
 * thread's CPU), slots=N (ring length), unopt=1 (E810-style interface), huge=1 (2 MiB pages),
 * poll-us=N (event mode: an idle NIC sleeps after N microseconds; receive interrupts need it).
 *
 * Threads: one lcore may receive from a queue pair while another sends on it; a gate per
 * pair (gate.h) makes that safe.
 */
#include <stdlib.h>

#include <bus_vdev_driver.h>
#include <ethdev_vdev.h>
#include <rte_ethdev.h>
#include <rte_kvargs.h>

#include "net_ccnic.h"

RTE_LOG_REGISTER_DEFAULT(ccnic_logtype, NOTICE);

static struct rte_eth_link up = {
    .link_speed = RTE_ETH_SPEED_NUM_100G,
    .link_duplex = RTE_ETH_LINK_FULL_DUPLEX,
    .link_status = RTE_ETH_LINK_UP,
    .link_autoneg = RTE_ETH_LINK_FIXED,
};

static int attach(struct device *d) {
  int rc = d->socket ? ccnic_port_connect(d->port, d->socket)
                     : ccnic_port_start_loopback(d->port, d->nic_cpu);
  d->had_nic |= rc == 0;
  ccnic_pmd_intr_attach(d);
  return rc;
}

/* Resets the port, keeping mempool operations out. */
static int reset(struct device *d) {
  ccnic_queue *queues[MAX_QUEUES];
  for (uint16_t i = 0; i < d->open_count; i++)
    queues[i] = d->pairs[i].queue;
  if (d->placed)
    rte_spinlock_lock(&d->placed->lock);
  int rc = ccnic_port_recover(d->port, queues, d->open_count);
  if (d->placed)
    rte_spinlock_unlock(&d->placed->lock);
  return rc;
}

/* Resets the port after a fault or the NIC's death, and finds a NIC again. The caller is
 * inside the gate of `held`; the others are entered here, in order. */
void ccnic_pmd_recover(struct device *d, struct pair *held) {
  enum passage how[MAX_QUEUES];
  uint16_t entered = 0;
  for (; entered < d->pair_count; entered++) {
    how[entered] = &d->pairs[entered] == held ? LOCKED : gate_enter(&d->pairs[entered].gate);
    /* Someone else who recovers waits for our gate, so give way instead of waiting. */
    if (how[entered] == REFUSED)
      break;
  }
  if (entered < d->pair_count)
    goto leave;
  if (reset(d) < 0)
    LOG(WARNING, "reset: %s", ccnic_last_error());
  if (!ccnic_port_peer_alive(d->port) && attach(d) < 0)
    LOG(INFO, "no NIC: %s", ccnic_last_error());
  for (uint16_t i = 0; i < d->pair_count; i++) {
    rte_pktmbuf_free(d->pairs[i].head);
    d->pairs[i].head = NULL;
  }
leave:
  while (entered-- > 0)
    if (&d->pairs[entered] != held)
      gate_leave(&d->pairs[entered].gate, how[entered]);
}

/* Any of IP, TCP and UDP over it; the hash is Toeplitz. */
#define RSS_PORTS (RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP)

/* Takes effect at the next start. */
static int rss_update(struct rte_eth_dev *dev, struct rte_eth_rss_conf *conf) {
  struct device *d = dev->data->dev_private;
  if (conf->rss_key != NULL && conf->rss_key_len != sizeof(d->rss.key)) {
    LOG(ERR, "rss_key_len = %u is not %zu", conf->rss_key_len, sizeof(d->rss.key));
    return -EINVAL;
  }
  if (conf->rss_key != NULL)
    memcpy(d->rss.key, conf->rss_key, sizeof(d->rss.key));
  if (conf->rss_hf != 0)
    d->rss.fields = conf->rss_hf & RSS_PORTS ? 3 : 1;
  else
    d->rss.fields = 0;
  return 0;
}

static int rss_get(struct rte_eth_dev *dev, struct rte_eth_rss_conf *conf) {
  const struct device *d = dev->data->dev_private;
  if (conf->rss_key != NULL && conf->rss_key_len >= sizeof(d->rss.key)) {
    memcpy(conf->rss_key, d->rss.key, sizeof(d->rss.key));
    conf->rss_key_len = sizeof(d->rss.key);
  }
  conf->rss_hf = d->rss.fields == 3 ? RTE_ETH_RSS_IP | RSS_PORTS : d->rss.fields == 1 ? RTE_ETH_RSS_IP : 0;
  return 0;
}

/* Takes effect at the next start. */
static int reta_update(struct rte_eth_dev *dev, struct rte_eth_rss_reta_entry64 *reta, uint16_t size) {
  struct device *d = dev->data->dev_private;
  if (size != sizeof(d->rss.table))
    return -EINVAL;
  for (uint16_t i = 0; i < size; i++)
    if (reta[i / RTE_ETH_RETA_GROUP_SIZE].mask >> i % RTE_ETH_RETA_GROUP_SIZE & 1)
      d->rss.table[i] = (uint8_t)reta[i / RTE_ETH_RETA_GROUP_SIZE].reta[i % RTE_ETH_RETA_GROUP_SIZE];
  d->rss_given = true;
  return 0;
}

static int reta_query(struct rte_eth_dev *dev, struct rte_eth_rss_reta_entry64 *reta, uint16_t size) {
  const struct device *d = dev->data->dev_private;
  if (size != sizeof(d->rss.table))
    return -EINVAL;
  for (uint16_t i = 0; i < size; i++)
    if (reta[i / RTE_ETH_RETA_GROUP_SIZE].mask >> i % RTE_ETH_RETA_GROUP_SIZE & 1)
      reta[i / RTE_ETH_RETA_GROUP_SIZE].reta[i % RTE_ETH_RETA_GROUP_SIZE] = d->rss.table[i];
  return 0;
}

static int dev_configure(struct rte_eth_dev *dev) {
  struct device *d = dev->data->dev_private;
  const struct rte_eth_rss_conf *rss = &dev->data->dev_conf.rx_adv_conf.rss_conf;
  d->pair_count = RTE_MAX(dev->data->nb_rx_queues, dev->data->nb_tx_queues);
  if (dev->data->dev_conf.rxmode.mq_mode & RTE_ETH_MQ_RX_RSS_FLAG) {
    int rc = rss_update(dev, (struct rte_eth_rss_conf *)(uintptr_t)rss);
    if (rc < 0)
      return rc;
  }
  for (unsigned i = 0; !d->rss_given && i < RTE_DIM(d->rss.table); i++)
    d->rss.table[i] = (uint8_t)(i % RTE_MAX(dev->data->nb_rx_queues, 1));
  for (uint16_t i = 0; i < MAX_QUEUES; i++) {
    d->pairs[i].device = d;
    d->pairs[i].port_id = dev->data->port_id;
    gate_init(&d->pairs[i].gate);
  }
  if (!dev->data->dev_conf.intr_conf.rxq) {
    ccnic_pmd_intr_free(dev);
    return 0;
  }
  if (d->config.poll_us == 0) {
    LOG(ERR, "receive interrupts need the device argument poll-us=N, N microseconds of the NIC's polling");
    return -EINVAL;
  }
  return ccnic_pmd_intr_make(dev);
}

/* Frees what the driver holds of a pair. */
static void empty_pair(struct pair *p) {
  rte_pktmbuf_free(p->head);
  p->head = NULL;
  if (p->spare_count > 0)
    rte_pktmbuf_free_bulk(p->spare, p->spare_count);
  p->spare_count = 0;
}

static void close_port(struct device *d) {
  for (uint16_t i = 0; i < MAX_QUEUES; i++) {
    empty_pair(&d->pairs[i]);
    ccnic_queue_close(d->pairs[i].queue);
    d->pairs[i].queue = NULL;
  }
  d->open_count = 0;
  if (d->placed)
    ccnic_port_stop_nic(d->port); /* the port is the mempool's */
  else
    ccnic_port_destroy(d->port);
  d->port = NULL;
  d->had_nic = false;
}

/* Opens the port, or takes the mempool's, with enough queues. */
static int open_port(struct device *d) {
  if (d->port == NULL) {
    d->config.queues = d->pair_count;
    if (ccnic_port_create(&d->config, &d->port) < 0)
      return -1;
  }
  for (; d->open_count < d->pair_count; d->open_count++) {
    struct pair *p = &d->pairs[d->open_count];
    if (ccnic_queue_open(d->port, d->open_count, &p->queue) < 0)
      return -1;
    p->base = ccnic_base(p->queue);
  }
  for (uint16_t i = 0; i < d->pair_count; i++)
    d->pairs[i].in_place = d->placed && d->pairs[i].mempool == d->mempool ? d->placed : NULL;
  /* A port that has had a NIC is reset before the next. */
  if ((d->had_nic && reset(d) < 0) || ccnic_port_set_served(d->port, d->pair_count) < 0 ||
      ccnic_port_set_rss(d->port, &d->rss) < 0 || ccnic_port_set_mtu(d->port, d->frame) < 0)
    return -1;
  return 0;
}

/* What four buffers of the port hold. */
static uint32_t longest(const struct device *d) {
  const ccnic_config *c = &d->config;
  return CCNIC_MAX_SEGMENTS * (c->payload ? c->payload : c->large_bytes - c->headroom);
}

/* The frame of an MTU: with Ethernet's header and a VLAN tag, without the checksum. */
static uint32_t frame_of(uint32_t mtu) { return mtu + RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN; }


static int dev_start(struct rte_eth_dev *dev) {
  struct device *d = dev->data->dev_private;
  d->frame = RTE_MIN(frame_of(dev->data->mtu), longest(d));
  if (open_port(d) < 0 || attach(d) < 0) {
    LOG(ERR, "%s", ccnic_last_error());
    if (!d->placed)
      close_port(d);
    return -EIO;
  }
  if (ccnic_port_notice(d->port))
    LOG(WARNING, "%s", ccnic_port_notice(d->port));
  if (!d->placed)
    LOG(NOTICE, "packets are copied; --mbuf-pool-ops-name=" POOL_OPS " places mbufs where the NIC reads them");
  dev->data->dev_link = up;
  return 0;
}

static int dev_stop(struct rte_eth_dev *dev) {
  struct device *d = dev->data->dev_private;
  if (d->placed) {
    /* The port goes on, because the application's mbufs lie in it. */
    ccnic_port_stop_nic(d->port);
    for (uint16_t i = 0; i < MAX_QUEUES; i++)
      empty_pair(&d->pairs[i]);
  } else {
    close_port(d);
  }
  dev->data->dev_link.link_status = RTE_ETH_LINK_DOWN;
  return 0;
}

static int dev_close(struct rte_eth_dev *dev) {
  struct device *d = dev->data->dev_private;
  if (rte_eal_process_type() != RTE_PROC_PRIMARY)
    return 0;
  close_port(d);
  ccnic_pmd_intr_free(dev);
  ccnic_pmd_withdraw(d);
  d->placed = NULL;
  free(d->socket);
  d->socket = NULL;
  dev->data->mac_addrs = NULL;
  return 0;
}

static int dev_info(struct rte_eth_dev *dev, struct rte_eth_dev_info *info) {
  const struct device *d = dev->data->dev_private;
  info->max_mac_addrs = 1;
  info->max_rx_pktlen = longest(d);
  info->max_mtu = (uint16_t)RTE_MIN(longest(d) - frame_of(0), (uint32_t)UINT16_MAX);
  info->min_rx_bufsize = 0;
  info->max_rx_queues = MAX_QUEUES;
  info->max_tx_queues = MAX_QUEUES;
  info->tx_offload_capa = RTE_ETH_TX_OFFLOAD_MULTI_SEGS | RTE_ETH_TX_OFFLOAD_IPV4_CKSUM |
                          RTE_ETH_TX_OFFLOAD_TCP_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_TSO;
  info->reta_size = sizeof(d->rss.table);
  info->hash_key_size = sizeof(d->rss.key);
  info->flow_type_rss_offloads = RTE_ETH_RSS_IP | RSS_PORTS;
  /* A NIC that says nothing of a checksum leaves it unknown, which applications have to handle. */
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
    s->ierrors += p->rx_errors;
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
    p->rx_nombuf = p->tx_errors = p->rx_errors = p->rx_copied = p->tx_copied = p->oversize = 0;
  }
  return 0;
}

/* Counters of the driver, then of the library, summed over the queue pairs. */
static const char *const xstats[] = {"rx_copied_packets", "tx_copied_packets", "port_resets", "faults",
                                     "misuse",            "starved",           "oversize",    "nic_drops"};

static int xstats_names(struct rte_eth_dev *dev, struct rte_eth_xstat_name *names, unsigned n) {
  RTE_SET_USED(dev);
  for (unsigned i = 0; names != NULL && i < RTE_MIN(n, RTE_DIM(xstats)); i++)
    strlcpy(names[i].name, xstats[i], sizeof(names[i].name));
  return RTE_DIM(xstats);
}

static int xstats_get(struct rte_eth_dev *dev, struct rte_eth_xstat *out, unsigned n) {
  const struct device *d = dev->data->dev_private;
  uint64_t values[RTE_DIM(xstats)] = {0, 0, ccnic_port_resets(d->port)};
  for (uint16_t i = 0; i < d->pair_count; i++) {
    ccnic_stats s = {0};
    ccnic_queue_stats(d->pairs[i].queue, &s);
    values[0] += d->pairs[i].rx_copied;
    values[1] += d->pairs[i].tx_copied;
    values[3] += s.faults;
    values[4] += s.misuse;
    values[5] += s.starved;
    values[6] += s.oversize + d->pairs[i].oversize;
    values[7] += s.drops;
  }
  for (unsigned i = 0; i < RTE_MIN(n, RTE_DIM(xstats)); i++)
    out[i] = (struct rte_eth_xstat){.id = i, .value = values[i]};
  return RTE_DIM(xstats);
}

/* Best: mbufs in the shared region; any other pool works with a copy. */
static int pool_ops_supported(struct rte_eth_dev *dev, const char *pool) {
  RTE_SET_USED(dev);
  return strcmp(pool, POOL_OPS) != 0;
}

/* The far side has no filter: every packet is received whatever the mode. */
static int accept_all(struct rte_eth_dev *dev) {
  RTE_SET_USED(dev);
  return 0;
}

static int mtu_set(struct rte_eth_dev *dev, uint16_t mtu) {
  RTE_SET_USED(mtu); /* ethdev has checked it against max_mtu and keeps it for the next start */
  return dev->data->dev_started ? -EBUSY : 0;
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
    .rx_queue_intr_enable = ccnic_pmd_intr_enable,
    .rx_queue_intr_disable = ccnic_pmd_intr_disable,
    .rx_queue_setup = rx_setup,
    .tx_queue_setup = tx_setup,
    .link_update = link_update,
    .stats_get = stats_get,
    .stats_reset = stats_reset,
    .xstats_get = xstats_get,
    .xstats_get_names = xstats_names,
    .xstats_reset = stats_reset,
    .pool_ops_supported = pool_ops_supported,
    .promiscuous_enable = accept_all,
    .promiscuous_disable = accept_all,
    .allmulticast_enable = accept_all,
    .allmulticast_disable = accept_all,
    .mtu_set = mtu_set,
    .reta_update = reta_update,
    .reta_query = reta_query,
    .rss_hash_update = rss_update,
    .rss_hash_conf_get = rss_get,
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
  static const char *const keys[] = {"socket", "nic-cpu", "slots", "unopt", "huge", "poll-us", NULL};
  struct rte_kvargs *args = rte_kvargs_parse(rte_vdev_device_args(vdev), keys);
  uint32_t cpu = UINT32_MAX, slots = 1024, unopt = 0, huge = 0, poll_us = 0;
  char *socket = NULL;
  if (args == NULL) {
    LOG(ERR, "valid arguments are socket, nic-cpu, slots, unopt, huge and poll-us");
    return -EINVAL;
  }
  int rc = rte_kvargs_process(args, "socket", take_string, &socket);
  rc = rc ? rc : rte_kvargs_process(args, "nic-cpu", take_number, &cpu);
  rc = rc ? rc : rte_kvargs_process(args, "slots", take_number, &slots);
  rc = rc ? rc : rte_kvargs_process(args, "unopt", take_number, &unopt);
  rc = rc ? rc : rte_kvargs_process(args, "huge", take_number, &huge);
  rc = rc ? rc : rte_kvargs_process(args, "poll-us", take_number, &poll_us);
  rte_kvargs_free(args);
  struct rte_eth_dev *dev = rc ? NULL : rte_eth_vdev_allocate(vdev, sizeof(struct device));
  if (dev == NULL) {
    free(socket);
    return rc ? rc : -ENOMEM;
  }
  struct device *d = dev->data->dev_private;
  ccnic_config_init(&d->config, unopt != 0);
  d->config.slots = slots;
  d->config.huge = huge != 0;
  d->config.poll_us = poll_us;
  d->config.offload = 1;
  d->rss.fields = 3;
  for (unsigned i = 0; i < sizeof(d->rss.key); i++)
    d->rss.key[i] = i % 2 ? 0x5a : 0x6d; /* both directions of a flow meet */
  d->socket = socket;
  d->nic_cpu = cpu == UINT32_MAX ? -1 : (int)cpu;
  rte_eth_random_addr(d->mac.addr_bytes);
  dev->data->mac_addrs = &d->mac;
  dev->data->dev_link = up;
  dev->data->dev_link.link_status = RTE_ETH_LINK_DOWN;
  dev->dev_ops = &ops;
  dev->rx_pkt_burst = ccnic_pmd_rx;
  dev->tx_pkt_burst = ccnic_pmd_tx;
  dev->tx_pkt_prepare = ccnic_pmd_prepare;
  gate_prepare();
  ccnic_pmd_offer(d);
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
                              "socket=<path> nic-cpu=<int> slots=<int> unopt=<0|1> huge=<0|1> poll-us=<int>");
