/* Checks the placed mempool (placed.c) over a loopback net_ccnic as an application sees it;
 * exits 0 if all holds. Arguments: EAL's, with --vdev net_ccnic0 and the driver. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "gate.h"

#define COUNT 1024u

#define CHECK(x) \
  do { \
    if (!(x)) { \
      fprintf(stderr, "line %d: %s\n", __LINE__, #x); \
      exit(1); \
    } \
  } while (0)

static struct rte_mempool *pool, *plain;
static struct rte_mbuf *all[COUNT];

static uint64_t xstat(const char *name) {
  uint64_t id, value;
  CHECK(rte_eth_xstats_get_id_by_name(0, name, &id) == 0);
  CHECK(rte_eth_xstats_get_by_id(0, &id, &value, 1) == 1);
  return value;
}

static struct rte_mbuf *receive(void) {
  struct rte_mbuf *m;
  for (int i = 0; i < 20000; i++) {
    if (rte_eth_rx_burst(0, 0, &m, 1) == 1)
      return m;
    usleep(100);
  }
  return NULL;
}

static struct rte_mbuf *filled(struct rte_mempool *from, char byte, uint16_t len) {
  struct rte_mbuf *m = rte_pktmbuf_alloc(from);
  CHECK(m != NULL);
  memset(rte_pktmbuf_append(m, len), byte, len);
  return m;
}

static void check_bytes(struct rte_mbuf *m, char byte, uint32_t len) {
  CHECK(m != NULL && m->pkt_len == len);
  for (struct rte_mbuf *s = m; s != NULL; s = s->next)
    for (uint16_t i = 0; i < s->data_len; i++)
      CHECK(rte_pktmbuf_mtod(s, char *)[i] == byte);
}

/* Every mbuf of the pool is whole, distinct, and has all of its room to itself. */
static unsigned drain(void) {
  unsigned n = 0;
  while (n < COUNT && (all[n] = rte_pktmbuf_alloc(pool)) != NULL) {
    const char *why;
    CHECK(rte_mbuf_check(all[n], 1, &why) == 0);
    CHECK(rte_pktmbuf_headroom(all[n]) == RTE_PKTMBUF_HEADROOM && rte_pktmbuf_tailroom(all[n]) == 2048);
    CHECK(all[n]->next == NULL && all[n]->nb_segs == 1);
    memset(rte_pktmbuf_prepend(all[n], RTE_PKTMBUF_HEADROOM), (int)n, RTE_PKTMBUF_HEADROOM);
    memset(rte_pktmbuf_append(all[n], 2048), (int)n, 2048);
    n++;
  }
  for (unsigned i = 0; i < n; i++)
    check_bytes(all[i], (char)i, RTE_PKTMBUF_HEADROOM + 2048);
  return n;
}

#define RUN 200000u

/* Receives RUN numbered packets in order, on an lcore that did not use the pair before. */
static int receive_run(void *arg) {
  struct rte_mbuf *m[32];
  RTE_SET_USED(arg);
  for (uint32_t got = 0; got < RUN;) {
    uint16_t n = rte_eth_rx_burst(0, 0, m, 32);
    for (uint16_t i = 0; i < n; i++, got++)
      CHECK(*rte_pktmbuf_mtod(m[i], uint32_t *) == got);
    rte_pktmbuf_free_bulk(m, n);
    if (n == 0)
      usleep(1); /* on a machine with fewer CPUs than pollers */
  }
  return 0;
}

/* One lcore sends on the pair while another receives: the gate closes, and nothing is lost. */
static void share_pair(void) {
  unsigned other = rte_get_next_lcore(-1, 1, 0);
  if (other >= RTE_MAX_LCORE)
    return;
  CHECK(rte_eal_remote_launch(receive_run, NULL, other) == 0);
  for (uint32_t sent = 0; sent < RUN;) {
    struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
    if (m == NULL) {
      usleep(1);
      continue;
    }
    *(uint32_t *)rte_pktmbuf_append(m, 64) = sent;
    while (rte_eth_tx_burst(0, 0, &m, 1) == 0)
      usleep(1);
    sent++;
  }
  CHECK(rte_eal_wait_lcore(other) == 0);
}

#define ROUNDS 500u
#define PASSES 100u

static struct gate gate;
static volatile uint64_t passed;
static volatile uint32_t round_open, round_done;

static void pass(void) {
  for (uint32_t i = 0; i < PASSES;) {
    enum passage how = gate_enter(&gate);
    if (how == REFUSED)
      continue;
    uint64_t before = passed; /* two at once would lose one of the additions */
    /* Now and then for longer than the kernel takes for its barrier. */
    for (int k = i % 16 ? 0 : 500; k > 0; k--)
      rte_pause();
    passed = before + 1;
    gate_leave(&gate, how);
    i++;
  }
}

static int intrude(void *arg) {
  RTE_SET_USED(arg);
  for (uint32_t round = 1; round <= ROUNDS; round++) {
    while (round_open != round)
      rte_pause();
    pass();
    round_done = round;
  }
  return 0;
}

/* In every round one lcore owns a fresh gate, and another one comes while it goes on. */
static void check_gate(void) {
  unsigned other = rte_get_next_lcore(-1, 1, 0);
  gate_prepare();
  if (other >= RTE_MAX_LCORE)
    return;
  CHECK(rte_eal_remote_launch(intrude, NULL, other) == 0);
  for (uint32_t round = 1; round <= ROUNDS; round++) {
    gate_init(&gate);
    passed = 0;
    enum passage how = gate_enter(&gate);
    CHECK(how == AS_OWNER || gate.state == CLOSED); /* a lock from the start without the kernel's barrier */
    gate_leave(&gate, how);
    round_open = round;
    pass();
    while (round_done != round)
      rte_pause();
    CHECK(passed == 2 * PASSES);
  }
  CHECK(rte_eal_wait_lcore(other) == 0);
}

static void restart(void) {
  CHECK(rte_eth_dev_stop(0) == 0 && rte_eth_dev_start(0) == 0);
}

/* What the application leaves to the device comes back from a loopback NIC as the device said it. */
static void offloads(void) {
  struct rte_mbuf *m = filled(pool, 'g', 100), *back;
  m->l2_len = 14;
  m->l3_len = 20;
  m->ol_flags |= RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_UDP_CKSUM;
  CHECK(rte_eth_tx_burst(0, 0, &m, 1) == 1);
  check_bytes(back = receive(), 'g', 100);
  CHECK((back->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_NONE);
  rte_pktmbuf_free(back);
  /* Headers that the packet does not hold are refused. */
  m = filled(pool, 'g', 30);
  m->l2_len = 14;
  m->l3_len = 20;
  m->ol_flags |= RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_UDP_CKSUM;
  struct rte_eth_stats before, after;
  CHECK(rte_eth_stats_get(0, &before) == 0 && rte_eth_tx_burst(0, 0, &m, 1) == 1);
  CHECK(rte_eth_stats_get(0, &after) == 0 && after.oerrors == before.oerrors + 1);
}

/* Longer than the MTU and its headers: an error, counted. */
static void over_the_mtu(void) {
  struct rte_mbuf *m = filled(pool, 'h', 2000);
  CHECK(rte_pktmbuf_chain(m, filled(pool, 'h', 3018 - 2000)) == 0);
  CHECK(rte_eth_tx_burst(0, 0, &m, 1) == 1);
  struct rte_mbuf *back = receive();
  check_bytes(back, 'h', 3018);
  rte_pktmbuf_free(back);
  m = filled(pool, 'h', 2000);
  CHECK(rte_pktmbuf_chain(m, filled(pool, 'h', 3019 - 2000)) == 0);
  CHECK(xstat("oversize") == 0 && rte_eth_tx_burst(0, 0, &m, 1) == 1 && xstat("oversize") == 1);
  CHECK(rte_eth_dev_set_mtu(0, 1500) == -EBUSY);
}

/* The table of queues can be read as it was written. */
static void spread(void) {
  struct rte_eth_rss_reta_entry64 reta[2] = {{.mask = UINT64_MAX}, {.mask = UINT64_MAX}};
  struct rte_eth_dev_info info;
  CHECK(rte_eth_dev_info_get(0, &info) == 0 && info.reta_size == 128 && info.hash_key_size == 40);
  CHECK(rte_eth_dev_rss_reta_update(0, reta, 128) == 0);
  reta[1].reta[63] = 7;
  CHECK(rte_eth_dev_rss_reta_query(0, reta, 128) == 0 && reta[1].reta[63] == 0);
}

int main(int argc, char **argv) {
  CHECK(rte_eal_init(argc, argv) >= 0);
  check_gate();
  pool = rte_pktmbuf_pool_create_by_ops("placed", COUNT, 32, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY, "ccnic");
  plain = rte_pktmbuf_pool_create("plain", 255, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
  CHECK(pool != NULL && plain != NULL);
  struct rte_eth_conf conf = {
      .rxmode = {.mtu = 3000, .mq_mode = RTE_ETH_MQ_RX_RSS},
      .rx_adv_conf.rss_conf.rss_hf = RTE_ETH_RSS_IP,
  };
  CHECK(rte_eth_dev_configure(0, 1, 1, &conf) == 0);
  CHECK(rte_eth_rx_queue_setup(0, 0, 256, SOCKET_ID_ANY, NULL, pool) == 0);
  CHECK(rte_eth_tx_queue_setup(0, 0, 256, SOCKET_ID_ANY, NULL) == 0);
  CHECK(rte_eth_dev_start(0) == 0);
  CHECK(rte_eth_dev_pool_ops_supported(0, "ccnic") == 0 && rte_eth_dev_pool_ops_supported(0, "ring_mp_mc") == 1);

  /* Placed packets pass in place, of one segment and of three. */
  struct rte_mbuf *m = filled(pool, 'a', 64), *back;
  CHECK(rte_eth_tx_burst(0, 0, &m, 1) == 1);
  check_bytes(back = receive(), 'a', 64);
  rte_pktmbuf_free(back);
  m = filled(pool, 'b', 100);
  CHECK(rte_pktmbuf_chain(m, filled(pool, 'b', 2000)) == 0 && rte_pktmbuf_chain(m, filled(pool, 'b', 7)) == 0);
  CHECK(rte_eth_tx_burst(0, 0, &m, 1) == 1);
  check_bytes(back = receive(), 'b', 2107);
  rte_pktmbuf_free(back);
  CHECK(xstat("tx_copied_packets") == 0 && xstat("rx_copied_packets") == 0);

  /* Others are copied and counted: of another pool, and of a pool's mbuf that a clone or a
   * second reference still reads. */
  m = filled(plain, 'c', 64);
  CHECK(rte_eth_tx_burst(0, 0, &m, 1) == 1);
  check_bytes(back = receive(), 'c', 64);
  rte_pktmbuf_free(back);
  CHECK(xstat("tx_copied_packets") == 1);
  m = filled(pool, 'd', 64);
  struct rte_mbuf *clone = rte_pktmbuf_clone(m, plain);
  CHECK(clone != NULL && rte_eth_tx_burst(0, 0, &m, 1) == 1);
  check_bytes(back = receive(), 'd', 64);
  rte_pktmbuf_free(back);
  CHECK(xstat("tx_copied_packets") == 2);
  CHECK(rte_eth_tx_burst(0, 0, &clone, 1) == 1); /* frees the last reference */
  check_bytes(back = receive(), 'd', 64);
  rte_pktmbuf_free(back);
  m = filled(pool, 'e', 64);
  rte_mbuf_refcnt_update(m, 1);
  struct rte_mbuf *again = m;
  CHECK(rte_eth_tx_burst(0, 0, &again, 1) == 1);
  check_bytes(back = receive(), 'e', 64);
  check_bytes(m, 'e', 64);
  rte_pktmbuf_free(back);
  CHECK(xstat("tx_copied_packets") == 4);

  offloads();
  over_the_mtu();
  spread();

  /* What the application holds stays valid while the port is restarted. */
  restart();
  check_bytes(m, 'e', 64);
  CHECK(rte_eth_tx_burst(0, 0, &m, 1) == 1);
  check_bytes(back = receive(), 'e', 64);
  rte_pktmbuf_free(back);

  /* An mbuf sent twice is an error of the second send, not a buffer with two owners. */
  struct rte_eth_stats before, after;
  m = filled(pool, 'f', 64);
  again = m;
  CHECK(rte_eth_stats_get(0, &before) == 0 && rte_eth_tx_burst(0, 0, &m, 1) == 1);
  CHECK(rte_eth_tx_burst(0, 0, &again, 1) == 1 && rte_eth_stats_get(0, &after) == 0);
  CHECK(after.oerrors == before.oerrors + 1 && after.opackets == before.opackets + 1);
  check_bytes(back = receive(), 'f', 64);
  rte_pktmbuf_free(back);

  share_pair();

  /* With the NIC stopped nothing is missing, and no two mbufs share a byte. */
  CHECK(rte_eth_dev_stop(0) == 0 && rte_eth_dev_start(0) == 0 && rte_eth_dev_stop(0) == 0);
  unsigned n = drain();
  /* The driver's queue keeps a few buffers at hand for copies, the other lcore its cache. */
  CHECK(n <= COUNT && n >= COUNT - 128);
  rte_pktmbuf_free_bulk(all, n);
  CHECK(drain() == n);
  rte_pktmbuf_free_bulk(all, n);
  CHECK(rte_eth_dev_close(0) == 0);
  rte_mempool_free(pool);
  rte_mempool_free(plain);
  rte_eal_cleanup();
  puts("ok");
  return 0;
}
