/* Checks the receive interrupts of net_ccnic as an application that sleeps sees them; exits 0 if
 * all holds. Arguments: EAL's, with --vdev net_ccnic0,poll-us=20 and the driver. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_interrupts.h>
#include <rte_mbuf.h>

#define CHECK(x) \
  do { \
    if (!(x)) { \
      fprintf(stderr, "line %d: %s\n", __LINE__, #x); \
      exit(1); \
    } \
  } while (0)

static struct rte_mempool *pool;

static void send_one(uint16_t queue) {
  struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
  CHECK(m != NULL);
  memset(rte_pktmbuf_append(m, 64), 'i', 64);
  CHECK(rte_eth_tx_burst(0, queue, &m, 1) == 1);
}

/* The packet that is there, or comes within a second of polling. */
static void take_one(uint16_t queue) {
  struct rte_mbuf *m;
  time_t end = time(NULL) + 10;
  while (rte_eth_rx_burst(0, queue, &m, 1) == 0)
    CHECK(time(NULL) < end);
  CHECK(m->pkt_len == 64 && *rte_pktmbuf_mtod(m, char *) == 'i');
  rte_pktmbuf_free(m);
}

/* The queue whose interrupt comes within `ms`; -1 if none does. */
static int wait_for(int ms) {
  struct rte_epoll_event event;
  int n = rte_epoll_wait(RTE_EPOLL_PER_THREAD, &event, 1, ms);
  CHECK(n >= 0);
  return n == 0 ? -1 : (int)(uintptr_t)event.epdata.data;
}

static double cpu_seconds(void) {
  struct timespec t;
  CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) == 0);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
  CHECK(rte_eal_init(argc, argv) >= 0);
  pool = rte_pktmbuf_pool_create("packets", 1023, 32, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
  CHECK(pool != NULL);
  struct rte_eth_conf conf = {.intr_conf.rxq = 1};
  CHECK(rte_eth_dev_configure(0, 2, 2, &conf) == 0);
  for (uint16_t q = 0; q < 2; q++) {
    CHECK(rte_eth_rx_queue_setup(0, q, 256, SOCKET_ID_ANY, NULL, pool) == 0);
    CHECK(rte_eth_tx_queue_setup(0, q, 256, SOCKET_ID_ANY, NULL) == 0);
  }
  CHECK(rte_eth_dev_start(0) == 0);
  for (uint16_t q = 0; q < 2; q++)
    CHECK(rte_eth_dev_rx_intr_ctl_q(0, q, RTE_EPOLL_PER_THREAD, RTE_INTR_EVENT_ADD, (void *)(uintptr_t)q) == 0);

  for (int round = 0; round < 200; round++) {
    uint16_t q = (uint16_t)(round % 2);
    /* A restart brings another NIC, and the descriptors stay. */
    if (round == 100)
      CHECK(rte_eth_dev_stop(0) == 0 && rte_eth_dev_start(0) == 0);
    CHECK(rte_eth_dev_rx_intr_disable(0, 0) == 0 && rte_eth_dev_rx_intr_disable(0, 1) == 0);
    CHECK(rte_eth_dev_rx_intr_enable(0, q) == 0);
    CHECK(round % 50 != 1 || wait_for(20) == -1);
    send_one(q);
    CHECK(wait_for(10000) == q);
    CHECK(rte_eth_dev_rx_intr_disable(0, q) == 0);
    CHECK(wait_for(0) == -1);
    take_one(q);
    /* Not asked for: no interrupt. Asked for when the packet is there: at once. */
    send_one(q);
    CHECK(round % 50 != 1 || wait_for(20) == -1);
    if (round % 10 == 0) {
      struct timespec pause = {.tv_nsec = 1000000};
      nanosleep(&pause, NULL);
      CHECK(rte_eth_dev_rx_intr_enable(0, q) == 0 && wait_for(10000) == q);
      CHECK(rte_eth_dev_rx_intr_disable(0, q) == 0);
    }
    take_one(q);
  }

  /* Both sides sleep. */
  CHECK(rte_eth_dev_rx_intr_enable(0, 0) == 0 && rte_eth_dev_rx_intr_enable(0, 1) == 0);
  double before = cpu_seconds();
  CHECK(wait_for(1000) == -1);
  CHECK(cpu_seconds() - before < 0.1);
  CHECK(rte_eth_dev_stop(0) == 0 && rte_eth_dev_close(0) == 0);
  rte_eal_cleanup();
  puts("ok");
  return 0;
}
