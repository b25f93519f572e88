/* A NIC written in C against the ABI alone: it answers every packet with its bytes inverted.
 * With a path as argument it serves one host there until that ends; without, it is the NIC of
 * a port of its own and checks the exchange. Exits 0 if all is well. */
#include <stdio.h>
#include <string.h>

#include "check.h"

/* One round; returns the buffers handled, or -1. */
static int answer(ccnic_nic_queue *queue) {
  unsigned char packet[CCNIC_MAX_SEGMENTS * 4096];
  ccnic_buf in[16], out[CCNIC_MAX_SEGMENTS];
  char *base = ccnic_nic_base(queue);
  int n = ccnic_nic_tx_poll(queue, in, 16);
  uint32_t len = 0;
  for (int i = 0; i < n; i++) {
    memcpy(packet + len, ccnic_payload(base, &in[i]), in[i].len);
    len += in[i].len;
    if (in[i].flags & CCNIC_MORE)
      continue;
    int got = ccnic_nic_alloc(queue, len, out);
    if (got <= 0)
      return -1;
    for (uint32_t at = 0, b = 0; b < (uint32_t)got; at += out[b++].len)
      for (uint32_t k = 0; k < out[b].len; k++)
        ((unsigned char *)ccnic_payload(base, &out[b]))[k] = (unsigned char)~packet[at + k];
    if (ccnic_nic_rx_post(queue, out, (uint32_t)got) < 0)
      return -1;
    len = 0;
  }
  ccnic_nic_tx_done(queue);
  ccnic_nic_free(queue, in, n > 0 ? (uint32_t)n : 0);
  return n;
}

static int serve(const char *path) {
  ccnic_server *server;
  ccnic_nic *nic;
  ccnic_nic_queue *queue;
  CHECK(ccnic_server_listen(path, &server) == 0);
  CHECK(ccnic_server_accept(server, &nic) == 0);
  CHECK(ccnic_nic_queues(nic) == 1 && ccnic_nic_queue_open(nic, 0, &queue) == 0);
  while (ccnic_nic_host_alive(nic))
    CHECK(answer(queue) >= 0);
  ccnic_nic_queue_close(queue);
  ccnic_nic_destroy(nic);
  ccnic_server_close(server);
  return 0;
}

int main(int argc, char **argv) {
  if (argc > 1)
    return serve(argv[1]);
  for (int unoptimised = 0; unoptimised < 2; unoptimised++) {
    ccnic_config config;
    ccnic_port *port;
    ccnic_queue *queue;
    ccnic_nic *nic;
    ccnic_nic_queue *far;
    ccnic_config_init(&config, unoptimised);
    CHECK(ccnic_port_create(&config, &port) == 0 && ccnic_queue_open(port, 0, &queue) == 0);
    CHECK(ccnic_nic_attach(port, &nic) == 0 && ccnic_nic_queue_open(nic, 0, &far) == 0);
    CHECK(ccnic_nic_queue_open(nic, 0, &far) == CCNIC_EUSAGE);
    ccnic_buf bufs[4], forged = {.addr = 64, .index = 3, .len = 10, .flags = 0};
    CHECK(ccnic_nic_tx_poll(far, bufs, 3) == CCNIC_EUSAGE);
    ccnic_rx(queue, bufs, 4); /* posts blanks, where the host has to */
    for (uint32_t round = 0; round < 1000; round++) {
      /* Up to three segments, the first of 1 to 4000 bytes. */
      int n = 1 + (int)(round % 3);
      CHECK(ccnic_alloc(queue, bufs, (uint32_t)n, 0) == n);
      for (int i = 0; i < n; i++) {
        bufs[i].len = (uint16_t)(1 + (round * 37 + (uint32_t)i) % 4000);
        bufs[i].flags = i + 1 < n ? CCNIC_MORE : 0;
        memset(ccnic_payload(ccnic_base(queue), &bufs[i]), (int)round, bufs[i].len);
      }
      uint32_t sent = 0, got = 0;
      for (int i = 0; i < n; i++)
        sent += bufs[i].len;
      CHECK(ccnic_tx(queue, bufs, (uint32_t)n) == n);
      CHECK(answer(far) == n);
      int m = ccnic_rx(queue, bufs, 4);
      CHECK(m > 0 && !(bufs[m - 1].flags & CCNIC_MORE));
      for (int i = 0; i < m; i++) {
        got += bufs[i].len;
        for (uint32_t k = 0; k < bufs[i].len; k++)
          CHECK(((unsigned char *)ccnic_payload(ccnic_base(queue), &bufs[i]))[k] == (unsigned char)~round);
      }
      CHECK(got == sent && ccnic_free(queue, bufs, (uint32_t)m) == m);
      CHECK(ccnic_nic_rx_post(far, &forged, 1) == CCNIC_EUSAGE);
    }
    ccnic_stats stats;
    ccnic_nic_queue_stats(far, &stats);
    CHECK(stats.rx == 1999 && stats.faults == 0);
    ccnic_nic_drain(far);
    ccnic_nic_queue_close(far);
    ccnic_nic_destroy(nic);
    CHECK(!ccnic_port_peer_alive(port));
    ccnic_queue_close(queue);
    ccnic_port_destroy(port);
  }
  puts("ok");
  return 0;
}
