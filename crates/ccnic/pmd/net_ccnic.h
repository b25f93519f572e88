/* What the files of the net_ccnic driver share. */
#ifndef NET_CCNIC_H
#define NET_CCNIC_H

#include <stdbool.h>
#include <sys/queue.h>

#include <ethdev_driver.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>
#include <rte_spinlock.h>

#include "ccnic.h"
#include "gate.h"

#define BURST 32
#define MAX_QUEUES 16
/* Name of the mempool operations that place mbuf data in the shared region. */
#define POOL_OPS "ccnic"

extern int ccnic_logtype;
#define LOG(level, fmt, ...) \
  rte_log(RTE_LOG_##level, ccnic_logtype, "net_ccnic: " fmt "\n", ##__VA_ARGS__)

struct device;

/* What a pool's mbuf carries behind its private area: the buffer that is its for life. */
struct binding {
  struct rte_mbuf_ext_shared_info shinfo;
  void *addr;
  uint32_t index;
};

/* A mempool over the shared pool of one port, or (ring set, port null) an ordinary one. */
struct placed_pool {
  struct rte_ring *ring;
  struct device *device;
  ccnic_port *port;
  ccnic_pool *pool;
  /* Keeps the mempool operations out while the port is reset. */
  rte_spinlock_t lock;
  uint32_t binding_at; /* bytes from an mbuf to its binding */
  uint32_t populated, count;
  bool bound;
  struct rte_mbuf *mbufs[]; /* by buffer index */
};

struct pair {
  struct gate gate;
  ccnic_queue *queue;
  char *base;
  struct device *device;
  struct rte_mempool *mempool;
  /* The pool whose buffers are received in place; null: received packets are copied. */
  struct placed_pool *in_place;
  uint16_t port_id;
  uint32_t idle;
  /* What the application's epoll watches, and what rings at once (interrupt.c). */
  int intr_fd, now_fd;
  /* Mbufs allocated ahead in bulk, for copies. */
  uint32_t spare_count;
  struct rte_mbuf *spare[BURST];
  /* Packet whose last segment has not arrived yet. */
  struct rte_mbuf *head, *tail;
  uint64_t rx_packets, rx_bytes, tx_packets, tx_bytes, rx_nombuf, tx_errors;
  uint64_t rx_errors, rx_copied, tx_copied, oversize;
} __rte_cache_aligned;

struct device {
  LIST_ENTRY(device) next;
  ccnic_port *port;
  ccnic_config config;
  struct pair pairs[MAX_QUEUES];
  uint16_t pair_count, open_count, intr_count;
  bool had_nic;
  /* Placed mempool of this device, if the application made one, and its operations' data. */
  struct rte_mempool *mempool;
  struct placed_pool *placed;
  char *socket;
  int nic_cpu;
  struct rte_ether_addr mac;
  /* Most bytes of a frame, and how flows are spread. */
  uint32_t frame;
  ccnic_rss rss;
  bool rss_given;
};

/* net_ccnic.c: resets the port after a fault or the NIC's death. The caller is
 * inside the gate of `held`. */
void ccnic_pmd_recover(struct device *d, struct pair *held);

/* burst.c */
uint16_t ccnic_pmd_rx(void *queue, struct rte_mbuf **pkts, uint16_t n);
uint16_t ccnic_pmd_tx(void *queue, struct rte_mbuf **pkts, uint16_t n);
uint16_t ccnic_pmd_prepare(void *queue, struct rte_mbuf **pkts, uint16_t n);

/* offload.c */
#define TX_OFFLOADS (RTE_MBUF_F_TX_TCP_SEG | RTE_MBUF_F_TX_L4_MASK | RTE_MBUF_F_TX_IP_CKSUM)
/* Fills the header of a packet whose mbuf asks for offloads and completes its IPv4 checksum; the
 * packet's first `room` bytes are at `frame`. False if they do not hold its headers. */
bool ccnic_pmd_describe(const struct rte_mbuf *m, char *frame, uint32_t room, ccnic_offload *out);
/* Says in an mbuf what the header in front of a received frame says; false if it is not sound. */
bool ccnic_pmd_understand(const char *header, uint32_t frame, struct rte_mbuf *m);

/* interrupt.c: receive interrupts of the configured queues; a new NIC's descriptors. */
int ccnic_pmd_intr_make(struct rte_eth_dev *dev);
void ccnic_pmd_intr_free(struct rte_eth_dev *dev);
void ccnic_pmd_intr_attach(struct device *d);
int ccnic_pmd_intr_enable(struct rte_eth_dev *dev, uint16_t id);
int ccnic_pmd_intr_disable(struct rte_eth_dev *dev, uint16_t id);

/* placed.c: devices that a placed mempool may be bound to. */
void ccnic_pmd_offer(struct device *d);
void ccnic_pmd_withdraw(struct device *d);

static inline struct binding *binding_of(const struct placed_pool *p, const struct rte_mbuf *m) {
  return (struct binding *)((uintptr_t)m + p->binding_at);
}

#endif
