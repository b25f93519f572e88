/* Loopback of one application thread against one echo thread (or process), the same
 * generator and the same payload work for every contender:
 *
 *   native    libccnic through its C ABI
 *   ethdev    the ethdev port 0, which loops back by itself (net_ccnic)
 *   echo      ethdev port 0, with this program's echo loop on port 1 (memif, vhost) or, with
 *             role=echo, on port 0 of another process
 *   rte_ring  two rings of mbufs; the echo copies each payload to a fresh mbuf. With far=1 the
 *             echo is a secondary DPDK process (role=echo there, and EAL's --proc-type)
 *
 * Every payload is written in full, stamped, copied once by the far side, and read in full
 * and checked on return.
 *
 * Arguments after EAL's "--": contender=NAME size=N window=N[,N...] ms=N rep=N label=TEXT
 * [role=echo] [far=1] [socket=PATH] [nic-cpu=N] [unopt=1] [huge=1]. Prints one CSV row per window.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_memcpy.h>
#include <rte_ring.h>

#include "ccnic.h"

#define BURST 32
#define BUCKETS (1u << 18)
#define BUCKET_SHIFT 2
#define MAX_SIZE 2048

enum contender { NATIVE, ETHDEV, ECHO, RTE_RING };

static struct {
  enum contender contender;
  const char *name, *label, *socket;
  uint32_t size, ms, rep, window[8], windows;
  bool echo_only, far, unopt, huge;
  int nic_cpu;
} opt = {.size = 64, .ms = 100, .window = {256}, .windows = 1, .label = "", .nic_cpu = 1};

static struct rte_mempool *mempool, *echo_pool;
static struct rte_ring *to_echo, *from_echo;
static volatile bool stop;
static ccnic_port *port;
static ccnic_queue *queue;
static char *base;

static uint8_t template[MAX_SIZE];
static uint64_t template_sum, sent, got, bad;
static uint32_t histogram[BUCKETS];
static uint64_t min_ticks;

static void die(const char *what) {
  fprintf(stderr, "ccnic-compare: %s\n", what);
  exit(2);
}

static uint64_t sum(const uint8_t *p, uint32_t len) {
  uint64_t total = 0, word;
  uint32_t at = 0;
  for (; at + 8 <= len; at += 8) {
    memcpy(&word, p + at, 8);
    total += word;
  }
  if (at < len) {
    word = 0;
    memcpy(&word, p + at, len - at);
    total += word;
  }
  return total;
}

static inline void fill(uint8_t *p, uint64_t now) {
  uint64_t head[2] = {sent, now};
  memcpy(p, head, sizeof(head));
  /* Not by way of the template: the copy's wide loads would wait for the head's stores. */
  rte_memcpy(p + sizeof(head), template + sizeof(head), opt.size - sizeof(head));
  sent++;
}

static inline void check(const uint8_t *p, uint32_t len, uint64_t now) {
  uint64_t head[2];
  memcpy(head, p, sizeof(head));
  if (len != opt.size || head[0] != got || sum(p, len) != template_sum + head[0] + head[1])
    bad++;
  got++;
  uint64_t ticks = now - head[1];
  if (ticks < min_ticks)
    min_ticks = ticks;
  histogram[RTE_MIN(ticks >> BUCKET_SHIFT, (uint64_t)BUCKETS - 1)]++;
}

/* Both exchange functions send up to `n` packets and receive what is there. */
static void exchange_native(uint32_t n) {
  ccnic_buf bufs[BURST];
  if (n > 0) {
    int k = ccnic_alloc(queue, bufs, n, opt.size);
    uint64_t now = rte_rdtsc(), before = sent;
    for (int i = 0; i < k; i++) {
      fill(ccnic_payload(base, &bufs[i]), now);
      bufs[i].len = (uint16_t)opt.size;
      bufs[i].flags = 0;
    }
    int taken = k > 0 ? ccnic_tx(queue, bufs, (uint32_t)k) : 0;
    if (taken < 0)
      die(ccnic_last_error());
    if (taken < k)
      ccnic_free(queue, bufs + taken, (uint32_t)(k - taken));
    sent = before + (uint64_t)taken;
  }
  int r = ccnic_rx(queue, bufs, BURST);
  if (r < 0)
    die(ccnic_last_error());
  if (r > 0) {
    uint64_t now = rte_rdtsc();
    for (int i = 0; i < r; i++)
      check(ccnic_payload(base, &bufs[i]), bufs[i].len, now);
    ccnic_free(queue, bufs, (uint32_t)r);
  }
}

static void exchange_mbuf(uint32_t n) {
  struct rte_mbuf *m[BURST];
  if (n > 0 && rte_pktmbuf_alloc_bulk(mempool, m, n) == 0) {
    uint64_t now = rte_rdtsc(), before = sent;
    for (uint32_t i = 0; i < n; i++) {
      fill(rte_pktmbuf_mtod(m[i], uint8_t *), now);
      m[i]->data_len = (uint16_t)opt.size;
      m[i]->pkt_len = opt.size;
    }
    uint32_t taken = opt.contender == RTE_RING
                         ? rte_ring_enqueue_burst(to_echo, (void **)m, n, NULL)
                         : rte_eth_tx_burst(0, 0, m, (uint16_t)n);
    if (taken < n)
      rte_pktmbuf_free_bulk(m + taken, n - taken);
    sent = before + taken;
  }
  uint32_t r = opt.contender == RTE_RING ? rte_ring_dequeue_burst(from_echo, (void **)m, BURST, NULL)
                                         : rte_eth_rx_burst(0, 0, m, BURST);
  if (r > 0) {
    uint64_t now = rte_rdtsc();
    for (uint32_t i = 0; i < r; i++)
      rte_prefetch0(rte_pktmbuf_mtod(m[i], void *));
    for (uint32_t i = 0; i < r; i++)
      check(rte_pktmbuf_mtod(m[i], uint8_t *), m[i]->pkt_len, now);
    rte_pktmbuf_free_bulk(m, r);
  }
}

static void echo_ethdev(uint16_t port_id) {
  struct rte_mbuf *m[BURST];
  uint32_t idle = 0;
  while (!stop) {
    uint16_t n = rte_eth_rx_burst(port_id, 0, m, BURST), done = 0;
    /* Before and after the measurement, the far process's control threads need this CPU. */
    idle = n ? 0 : idle + 1;
    if (idle > 1u << 18)
      usleep(100);
    while (done < n && !stop)
      done += rte_eth_tx_burst(port_id, 0, m + done, n - done);
  }
}

/* The rings and pools, made here or found in the primary process's memory. */
static void open_rings(void) {
  if (opt.echo_only) {
    to_echo = rte_ring_lookup("to");
    from_echo = rte_ring_lookup("from");
    echo_pool = rte_mempool_lookup("echo");
  } else {
    to_echo = rte_ring_create("to", 1024, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
    from_echo = rte_ring_create("from", 1024, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
  }
  if (to_echo == NULL || from_echo == NULL || echo_pool == NULL)
    die("the rings cannot be opened; the primary process makes them");
}

/* Waits until the other process answers one packet. */
static void meet_far(void) {
  struct rte_mbuf *m = rte_pktmbuf_alloc(mempool);
  m->data_len = 64;
  m->pkt_len = 64;
  rte_ring_enqueue(to_echo, m);
  for (int i = 0; i < 10000; i++, usleep(1000))
    if (rte_ring_dequeue(from_echo, (void **)&m) == 0) {
      rte_pktmbuf_free(m);
      return;
    }
  die("the other process does not answer");
}

static void echo_rings(void) {
  struct rte_mbuf *in[BURST], *out[BURST];
  while (!stop) {
    uint32_t n = rte_ring_dequeue_burst(to_echo, (void **)in, BURST, NULL), done = 0;
    if (n == 0)
      continue;
    while (rte_pktmbuf_alloc_bulk(echo_pool, out, n) != 0)
      if (stop)
        return;
    for (uint32_t i = 0; i < n; i++)
      rte_prefetch0(rte_pktmbuf_mtod(in[i], void *));
    for (uint32_t i = 0; i < n; i++) {
      rte_memcpy(rte_pktmbuf_mtod(out[i], void *), rte_pktmbuf_mtod(in[i], void *), in[i]->data_len);
      out[i]->data_len = in[i]->data_len;
      out[i]->pkt_len = in[i]->pkt_len;
    }
    rte_pktmbuf_free_bulk(in, n);
    while (done < n && !stop)
      done += rte_ring_enqueue_burst(from_echo, (void **)(out + done), n - done, NULL);
  }
}

static int echo_main(void *arg) {
  RTE_SET_USED(arg);
  if (opt.contender == RTE_RING)
    echo_rings();
  else
    echo_ethdev(1);
  return 0;
}

static double quantile(double q) {
  uint64_t total = 0, seen = 0;
  for (uint32_t i = 0; i < BUCKETS; i++)
    total += histogram[i];
  for (uint32_t i = 0; i < BUCKETS; i++) {
    seen += histogram[i];
    if ((double)seen > q * (double)total)
      return (i + 0.5) * (1 << BUCKET_SHIFT);
  }
  return 0;
}

static void clear(void) {
  memset(histogram, 0, sizeof(histogram));
  min_ticks = UINT64_MAX;
}

static void measure(uint32_t window) {
  double per_ns = (double)rte_get_tsc_hz() / 1e9;
  uint64_t begin = rte_rdtsc();
  uint64_t warm = begin + (uint64_t)(opt.ms * 0.25e6 * per_ns);
  uint64_t end = warm + (uint64_t)(opt.ms * 1e6 * per_ns), start = begin, first = got;
  bool warmed = false;
  clear();
  for (;;) {
    uint64_t now = rte_rdtsc();
    if (!warmed && now >= warm) {
      warmed = true;
      start = now;
      first = got;
      clear();
    }
    if (now >= end) {
      double ns = (double)(now - start) / per_ns;
      printf("%s,%s,%u,%u,%u,%" PRIu64 ",%.4f,%.1f,%.1f,%.1f,%" PRIu64 "\n", opt.name, opt.label,
             opt.size, window, opt.rep, got - first, (double)(got - first) * 1e3 / ns,
             (double)min_ticks / per_ns, quantile(0.5) / per_ns, quantile(0.99) / per_ns, bad);
      break;
    }
    uint32_t n = (uint32_t)RTE_MIN(window - (sent - got), (uint64_t)BURST);
    if (opt.contender == NATIVE)
      exchange_native(n);
    else
      exchange_mbuf(n);
  }
  /* Let the packets in flight come home before the next window. */
  uint64_t limit = rte_rdtsc() + rte_get_tsc_hz();
  while (got < sent && rte_rdtsc() < limit) {
    if (opt.contender == NATIVE)
      exchange_native(0);
    else
      exchange_mbuf(0);
  }
  if (got < sent)
    die("packets were lost");
}

static void start_port(uint16_t id) {
  struct rte_eth_conf conf = {0};
  uint16_t rx = 1024, tx = 1024;
  if (rte_eth_dev_configure(id, 1, 1, &conf) < 0 || rte_eth_dev_adjust_nb_rx_tx_desc(id, &rx, &tx) < 0 ||
      rte_eth_rx_queue_setup(id, 0, rx, SOCKET_ID_ANY, NULL, id ? echo_pool : mempool) < 0 ||
      rte_eth_tx_queue_setup(id, 0, tx, SOCKET_ID_ANY, NULL) < 0 || rte_eth_dev_start(id) < 0)
    die("a port does not start");
}

static void wait_link(uint16_t id) {
  struct rte_eth_link link = {0};
  for (int i = 0; i < 1000; i++) {
    if (rte_eth_link_get_nowait(id, &link) == 0 && link.link_status == RTE_ETH_LINK_UP)
      return;
    usleep(10000);
  }
  die("a port's link stays down");
}

static void start_native(void) {
  ccnic_config config;
  ccnic_config_init(&config, opt.unopt);
  config.huge = opt.huge;
  if (ccnic_port_create(&config, &port) < 0 || ccnic_queue_open(port, 0, &queue) < 0)
    die(ccnic_last_error());
  int rc = -1;
  for (int i = 0; i < 500 && rc < 0; i++) {
    rc = opt.socket ? ccnic_port_connect(port, opt.socket) : ccnic_port_start_loopback(port, opt.nic_cpu);
    if (rc < 0)
      usleep(10000);
  }
  if (rc < 0)
    die(ccnic_last_error());
  usleep(20000); /* the NIC thread moves to its CPU */
  base = ccnic_base(queue);
}

static void parse(int argc, char **argv) {
  static const char *const names[] = {"native", "ethdev", "echo", "rte_ring"};
  for (int i = 1; i < argc; i++) {
    char *value = strchr(argv[i], '=');
    if (value == NULL)
      die("arguments are KEY=VALUE");
    *value++ = '\0';
    const char *key = argv[i];
    if (!strcmp(key, "contender")) {
      for (int k = 0; k < 4; k++)
        if (!strcmp(value, names[k])) {
          opt.contender = (enum contender)k;
          opt.name = names[k];
        }
    } else if (!strcmp(key, "size")) {
      opt.size = (uint32_t)atoi(value);
    } else if (!strcmp(key, "ms")) {
      opt.ms = (uint32_t)atoi(value);
    } else if (!strcmp(key, "rep")) {
      opt.rep = (uint32_t)atoi(value);
    } else if (!strcmp(key, "label")) {
      opt.label = value;
    } else if (!strcmp(key, "socket")) {
      opt.socket = value;
    } else if (!strcmp(key, "nic-cpu")) {
      opt.nic_cpu = atoi(value);
    } else if (!strcmp(key, "far")) {
      opt.far = atoi(value) != 0;
    } else if (!strcmp(key, "huge")) {
      opt.huge = atoi(value) != 0;
    } else if (!strcmp(key, "unopt")) {
      opt.unopt = atoi(value) != 0;
    } else if (!strcmp(key, "role")) {
      opt.echo_only = !strcmp(value, "echo");
    } else if (!strcmp(key, "window")) {
      opt.windows = 0;
      for (char *w = strtok(value, ","); w && opt.windows < 8; w = strtok(NULL, ","))
        opt.window[opt.windows++] = (uint32_t)atoi(w);
    } else {
      die("unknown argument; see the top of compare.c");
    }
  }
  if (opt.name == NULL)
    die("contender is native, ethdev, echo or rte_ring");
  if (opt.size < 16 || opt.size > MAX_SIZE)
    die("size is outside 16..2048");
}

static void on_signal(int signal) {
  RTE_SET_USED(signal);
  stop = true;
}

int main(int argc, char **argv) {
  int used = rte_eal_init(argc, argv);
  if (used < 0)
    die("EAL does not start");
  parse(argc - used, argv + used);
  signal(SIGTERM, on_signal);
  for (uint32_t i = 16; i < opt.size; i++)
    template[i] = (uint8_t)(i * 31 + 7);
  template_sum = sum(template, opt.size);
  bool worker = false;
  if (opt.contender == NATIVE) {
    start_native();
  } else {
    if (!(opt.contender == RTE_RING && opt.echo_only)) {
      mempool = rte_pktmbuf_pool_create("app", 8191, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
      echo_pool = rte_pktmbuf_pool_create("echo", 8191, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
      if (mempool == NULL || echo_pool == NULL)
        die("no memory for mbufs");
    }
    if (opt.contender == RTE_RING) {
      open_rings();
      if (opt.echo_only) {
        echo_rings();
        return 0;
      }
      if (opt.far)
        meet_far();
      worker = !opt.far;
    } else {
      uint16_t ports = rte_eth_dev_count_avail();
      for (uint16_t id = 0; id < ports; id++)
        start_port(id);
      for (uint16_t id = 0; id < ports; id++)
        wait_link(id);
      if (opt.echo_only) {
        echo_ethdev(0);
        return 0;
      }
      worker = opt.contender == ECHO && ports > 1;
      usleep(50000); /* links of the far process, NIC threads */
    }
  }
  if (worker)
    rte_eal_remote_launch(echo_main, NULL, rte_get_next_lcore(-1, 1, 0));
  for (uint32_t i = 0; i < opt.windows; i++)
    measure(opt.window[i]);
  stop = true;
  rte_eal_mp_wait_lcore();
  if (opt.contender == NATIVE) {
    ccnic_queue_close(queue);
    ccnic_port_destroy(port);
  } else if (opt.contender != RTE_RING) {
    uint16_t id;
    RTE_ETH_FOREACH_DEV(id) {
      rte_eth_dev_stop(id);
      rte_eth_dev_close(id);
    }
  }
  rte_eal_cleanup();
  return bad ? 1 : 0;
}
