/* Breaks the header's contract in every way that a program gets wrong: each is an error, and
 * the port works afterwards. Exits 0 if so. */
#include <stdio.h>
#include <string.h>

#include "check.h"

struct setup {
  ccnic_port *port;
  ccnic_queue *queue[2];
  ccnic_nic *nic;
  ccnic_nic_queue *far;
};

static int open_all(struct setup *s, int unoptimised) {
  ccnic_config config;
  ccnic_config_init(&config, unoptimised);
  config.queues = 2;
  config.mtu = 2000;
  CHECK(ccnic_port_create(&config, &s->port) == 0);
  CHECK(ccnic_queue_open(s->port, 0, &s->queue[0]) == 0 && ccnic_queue_open(s->port, 1, &s->queue[1]) == 0);
  CHECK(ccnic_nic_attach(s->port, &s->nic) == 0 && ccnic_nic_queue_open(s->nic, 0, &s->far) == 0);
  ccnic_buf bufs[4];
  CHECK(ccnic_rx(s->queue[0], bufs, 4) == 0); /* posts blanks, where the host has to */
  CHECK(ccnic_nic_tx_poll(s->far, bufs, 4) == 0);
  return 0;
}

/* A packet from the NIC arrives, so nothing is wedged. */
static int works(struct setup *s) {
  ccnic_buf bufs[4], got[4];
  CHECK(ccnic_nic_alloc(s->far, 64, bufs) == 1);
  CHECK(ccnic_nic_rx_post(s->far, bufs, 1) == 0);
  CHECK(ccnic_rx(s->queue[0], got, 4) == 1 && got[0].len == 64 && got[0].flags == 0);
  CHECK(ccnic_free(s->queue[0], got, 1) == 1);
  return 0;
}

static int close_all(struct setup *s) {
  ccnic_nic_queue_close(s->far);
  ccnic_nic_destroy(s->nic);
  CHECK(ccnic_port_recover(s->port, s->queue, 2) == 0);
  ccnic_queue_close(s->queue[0]);
  ccnic_queue_close(s->queue[1]);
  ccnic_port_destroy(s->port);
  return 0;
}

static int host_side(struct setup *s) {
  ccnic_buf b[8];
  ccnic_queue *twice[2] = {s->queue[0], s->queue[0]}, *missing[2] = {s->queue[0], NULL};
  CHECK(ccnic_port_recover(s->port, twice, 2) == CCNIC_EUSAGE);
  CHECK(ccnic_port_recover(s->port, missing, 2) == CCNIC_EUSAGE);
  CHECK(ccnic_port_recover(s->port, s->queue, 1) == CCNIC_EUSAGE);
  CHECK(ccnic_alloc(s->queue[0], b, 1, 64) == 1);
  b[0].len = 64;
  b[0].flags = CCNIC_MORE; /* and nothing follows */
  CHECK(ccnic_tx(s->queue[0], b, 1) == CCNIC_EUSAGE);
  b[0].flags = 0;
  b[1] = b[0];
  int sent = ccnic_tx(s->queue[0], b, 2); /* one line: neither; single slots: the first */
  CHECK(sent == CCNIC_EUSAGE || sent == 1);
  if (sent == 1)
    CHECK(ccnic_free(s->queue[0], b, 1) == 0);
  else
    CHECK(ccnic_free(s->queue[0], b, 2) == 1);
  CHECK(ccnic_free(s->queue[0], b, 1) == 0);
  CHECK(ccnic_alloc(s->queue[0], b, 1, 4000) == 1);
  b[0].len = 2001; /* one over the MTU */
  CHECK(ccnic_tx(s->queue[0], b, 1) == CCNIC_EUSAGE);
  b[0].len = 0;
  CHECK(ccnic_tx(s->queue[0], b, 1) == CCNIC_EUSAGE);
  memset(ccnic_payload(ccnic_base(s->queue[0]), &b[0]), 0xff, 100);
  b[0].len = 100;
  b[0].flags = CCNIC_OFFLOAD; /* of nonsense */
  CHECK(ccnic_tx(s->queue[0], b, 1) == CCNIC_EUSAGE);
  CHECK(ccnic_free(s->queue[0], b, 1) == 1);
  return 0;
}

/* The NIC reads everything that was sent; returns how many lent buffers came back. */
static int complete(struct setup *s) {
  ccnic_buf out[4];
  while (ccnic_nic_tx_poll(s->far, out, 4) > 0)
    ccnic_nic_tx_done(s->far);
  return ccnic_sweep(s->queue[0]);
}

/* A retained buffer is sent or freed once per reference, and given out again only when its
 * transmissions are over. */
static int retained(struct setup *s) {
  ccnic_buf b, twice[2], other[64];
  CHECK(complete(s) >= 0);
  CHECK(ccnic_alloc(s->queue[0], &b, 1, 64) == 1);
  b.len = 64;
  CHECK(ccnic_retain(s->queue[0], &b) == 0);
  CHECK(ccnic_tx(s->queue[0], &b, 1) == 1 && ccnic_tx(s->queue[0], &b, 1) == 1);
  CHECK(ccnic_tx(s->queue[0], &b, 1) == CCNIC_EUSAGE && ccnic_free(s->queue[0], &b, 1) == 0);
  CHECK(ccnic_retain(s->queue[0], &b) == CCNIC_EUSAGE);
  CHECK(complete(s) == 2);

  CHECK(ccnic_alloc(s->queue[0], &b, 1, 64) == 1);
  b.len = 64;
  CHECK(ccnic_retain(s->queue[0], &b) == 0);
  CHECK(ccnic_tx(s->queue[0], &b, 1) == 1);
  CHECK(ccnic_free(s->queue[0], &b, 1) == 1 && ccnic_free(s->queue[0], &b, 1) == 0);
  int n = ccnic_alloc(s->queue[0], other, 64, 64);
  CHECK(n > 0);
  for (int i = 0; i < n; i++)
    CHECK(other[i].index != b.index);
  CHECK(ccnic_free(s->queue[0], other, n) == n);
  CHECK(complete(s) == 1);

  /* Twice in a burst with two references. */
  CHECK(ccnic_alloc(s->queue[0], &b, 1, 64) == 1);
  b.len = 64;
  CHECK(ccnic_retain(s->queue[0], &b) == 0);
  twice[0] = twice[1] = b;
  CHECK(ccnic_tx(s->queue[0], twice, 2) == 2 && ccnic_tx(s->queue[0], &b, 1) == CCNIC_EUSAGE);
  CHECK(complete(s) == 2);
  return 0;
}

static int nic_side(struct setup *s) {
  ccnic_buf b[8];
  /* One buffer twice, in one call and in two. */
  CHECK(ccnic_nic_alloc(s->far, 64, b) == 1);
  b[1] = b[0];
  CHECK(ccnic_nic_rx_post(s->far, b, 2) == CCNIC_EUSAGE);
  CHECK(ccnic_rx(s->queue[0], b + 2, 4) == 0);
  CHECK(ccnic_nic_rx_post(s->far, b, 1) == 0);
  CHECK(ccnic_nic_rx_post(s->far, b, 1) == CCNIC_EUSAGE);
  CHECK(ccnic_nic_rx_post(s->far, b, 1) == CCNIC_EUSAGE);
  CHECK(ccnic_rx(s->queue[0], b + 2, 4) == 1 && ccnic_free(s->queue[0], b + 2, 1) == 1);
  /* A packet without an end, again and again, and one of more than four buffers. */
  for (int i = 0; i < 6; i++) {
    CHECK(ccnic_nic_alloc(s->far, 64, b) == 1);
    b[0].flags = CCNIC_MORE;
    CHECK(ccnic_nic_rx_post(s->far, b, 1) == CCNIC_EUSAGE);
    b[0].flags = 0;
    ccnic_nic_free(s->far, b, 1);
  }
  for (int i = 0; i < 6; i++) {
    CHECK(ccnic_nic_alloc(s->far, 64, b + i) == 1);
    b[i].flags = i < 5 ? CCNIC_MORE : 0;
  }
  CHECK(ccnic_nic_rx_post(s->far, b, 6) == CCNIC_EUSAGE);
  for (int i = 0; i < 6; i++)
    b[i].flags = 0;
  ccnic_nic_free(s->far, b, 6);
  /* Freed and then used. */
  ccnic_stats before, after;
  ccnic_nic_queue_stats(s->far, &before);
  ccnic_nic_free(s->far, b, 1);
  CHECK(ccnic_nic_rx_post(s->far, b, 1) == CCNIC_EUSAGE);
  ccnic_nic_queue_stats(s->far, &after);
  CHECK(after.misuse == before.misuse + 2);
  return 0;
}

/* Arrays that are missing are refused, empty ones may be. */
static int null_arrays(struct setup *s) {
  ccnic_queue *q = s->queue[0];
  CHECK(ccnic_alloc(q, NULL, 5, 0) == CCNIC_EUSAGE && ccnic_alloc(q, NULL, 0, 0) == 0);
  CHECK(ccnic_free(q, NULL, 5) == CCNIC_EUSAGE && ccnic_free(q, NULL, 0) == 0);
  CHECK(ccnic_tx(q, NULL, 5) == CCNIC_EUSAGE && ccnic_tx(q, NULL, 0) == 0);
  CHECK(ccnic_rx(q, NULL, 5) == CCNIC_EUSAGE && ccnic_rx(q, NULL, 0) == 0);
  CHECK(ccnic_nic_tx_poll(s->far, NULL, 5) == CCNIC_EUSAGE);
  CHECK(ccnic_nic_rx_post(s->far, NULL, 5) == CCNIC_EUSAGE && ccnic_nic_rx_post(s->far, NULL, 0) == 0);
  ccnic_nic_free(s->far, NULL, 5);
  return 0;
}

/* A CPU that is not there, and a second NIC: refused, and the port is as before. */
static int loopback(void) {
  ccnic_config config;
  ccnic_port *port;
  ccnic_queue *queue;
  ccnic_buf b;
  ccnic_config_init(&config, 0);
  CHECK(ccnic_port_create(&config, &port) == 0 && ccnic_queue_open(port, 0, &queue) == 0);
  CHECK(ccnic_port_start_loopback(port, 9999) < 0 && ccnic_port_peer_alive(port) == 0);
  CHECK(ccnic_port_start_loopback(port, -1) == 0);
  CHECK(ccnic_port_start_loopback(port, -1) == CCNIC_EUSAGE);
  CHECK(ccnic_port_peer_alive(port) == 1);
  CHECK(ccnic_alloc(queue, &b, 1, 64) == 1);
  b.len = 64;
  CHECK(ccnic_tx(queue, &b, 1) == 1);
  int got = 0;
  for (int i = 0; i < 1000 && got == 0; i++) {
    CHECK(ccnic_wait(queue, 10000) >= 0);
    got = ccnic_rx(queue, &b, 1);
  }
  CHECK(got == 1 && b.len == 64 && ccnic_free(queue, &b, 1) == 1);
  ccnic_queue_close(queue);
  ccnic_port_destroy(port);
  return 0;
}

int main(void) {
  ccnic_config config;
  ccnic_port *none;
  memset(&config, 0, sizeof(config)); /* struct_size 0: not initialised */
  CHECK(ccnic_port_create(&config, &none) == CCNIC_ECONFIG && strstr(ccnic_last_error(), "struct_size"));
  /* A later version's structure: fine while its new fields are zero. */
  struct {
    ccnic_config config;
    uint32_t later[2];
  } longer;
  memset(&longer, 0, sizeof(longer));
  ccnic_config_init_sized(&longer.config, sizeof(longer), 0);
  CHECK(longer.config.struct_size == sizeof(longer) && longer.later[1] == 0);
  CHECK(ccnic_port_create(&longer.config, &none) == 0);
  ccnic_port_destroy(none);
  longer.later[1] = 1;
  CHECK(ccnic_port_create(&longer.config, &none) == CCNIC_ECONFIG);
  /* An earlier one's: it has no MTU. */
  ccnic_config_init_sized(&config, 112, 0);
  CHECK(config.struct_size == 112);
  config.mtu = 7;
  CHECK(ccnic_port_create(&config, &none) == 0);
  ccnic_port_destroy(none);

  for (int unoptimised = 0; unoptimised < 2; unoptimised++) {
    struct setup s;
    if (open_all(&s, unoptimised) || host_side(&s) || works(&s) || retained(&s) || works(&s) || nic_side(&s) || works(&s) || null_arrays(&s) ||
        works(&s) || close_all(&s))
      return 1;
  }
  if (loopback())
    return 1;
  puts("ok");
  return 0;
}
