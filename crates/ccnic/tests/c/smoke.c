/* Sends packets through a loopback NIC thread with the C ABI alone; exits 0 if they return
 * intact and the contract violations below are refused. */
#include <stdio.h>
#include <string.h>

#include "check.h"

_Static_assert(sizeof(ccnic_buf) == 16, "handle size");
_Static_assert(sizeof(ccnic_config) == 124, "configuration size");
_Static_assert(sizeof(ccnic_offload) == 12, "offload header size");
_Static_assert(sizeof(ccnic_stats) == 136, "counter size");

int main(void) {
  ccnic_config config;
  ccnic_port *port;
  ccnic_queue *queue;
  ccnic_config_init(&config, 0);
  CHECK(config.slots == 1024 && config.host_node == UINT32_MAX && config.pool_home == 2);
  config.slots = 1000;
  CHECK(ccnic_port_create(&config, &port) == CCNIC_ECONFIG);
  CHECK(strstr(ccnic_last_error(), "slots = 1000"));
  for (int unoptimised = 0; unoptimised < 2; unoptimised++) {
    ccnic_config_init(&config, unoptimised);
    CHECK(ccnic_port_create(&config, &port) == 0);
    CHECK(ccnic_queue_open(port, 0, &queue) == 0);
    CHECK(ccnic_queue_open(port, 0, &queue) == CCNIC_EUSAGE);
    CHECK(ccnic_port_start_loopback(port, -1) == 0);
    CHECK(ccnic_port_peer_alive(port) == 1);
    ccnic_buf bufs[32], back[32];
    void *base = ccnic_base(queue);
    int got = 0;
    CHECK(ccnic_alloc(queue, bufs, 32, 64) == 32);
    for (int i = 0; i < 32; i++) {
      uint32_t room;
      CHECK(ccnic_data(queue, &bufs[i], &room) == ccnic_payload(base, &bufs[i]) && room >= 64);
      memset(ccnic_payload(base, &bufs[i]), i, 64);
      bufs[i].len = 64;
    }
    ccnic_buf twice[2] = {bufs[0], bufs[0]};
    if (!unoptimised) /* one line, so neither goes */
      CHECK(ccnic_tx(queue, twice, 2) == CCNIC_EUSAGE);
    CHECK(ccnic_tx(queue, bufs, 32) == 32);
    CHECK(ccnic_tx(queue, bufs, 1) == CCNIC_EUSAGE);
    CHECK(ccnic_free(queue, bufs, 1) == 0);
    while (got < 32) {
      int n = ccnic_rx(queue, back + got, (uint32_t)(32 - got));
      CHECK(n >= 0);
      got += n;
    }
    for (int i = 0; i < 32; i++) {
      const unsigned char *p = ccnic_payload(base, &back[i]);
      CHECK(back[i].len == 64 && p[0] == i && p[63] == i);
    }
    CHECK(ccnic_free(queue, back, 32) == 32);
    ccnic_stats stats;
    ccnic_queue_stats(queue, &stats);
    CHECK(stats.tx == 32 && stats.rx == 32 && stats.misuse == (unoptimised ? 2 : 3));
    CHECK(ccnic_port_recover(port, &queue, 1) == 0 && ccnic_port_resets(port) == 1);
    ccnic_port_stop_nic(port);
    CHECK(ccnic_port_peer_alive(port) == 0 && ccnic_port_features(port) == 0);
    ccnic_pool *pool;
    uint32_t room;
    CHECK(ccnic_pool_open(port, &pool) == CCNIC_EUSAGE); /* the single queue's thread is alone */
    ccnic_queue_close(queue);
    CHECK(ccnic_pool_open(port, &pool) == 0);
    CHECK(ccnic_queue_open(port, 0, &queue) == 0);
    base = ccnic_base(queue);
    int before = ccnic_pool_available(pool);
    CHECK(before > 0 && ccnic_pool_take(pool, bufs, 32) == 32);
    CHECK(ccnic_pool_available(pool) == before - 32);
    CHECK(ccnic_pool_put(pool, bufs, 32) == 32 && ccnic_pool_put(pool, bufs, 1) == 0);
    CHECK(ccnic_pool_available(pool) == before);
    CHECK(ccnic_pool_buffer(pool, 0, bufs, &room) == ccnic_payload(base, bufs) && room == 4096);
    CHECK(!ccnic_pool_buffer(pool, 1u << 20, bufs, &room));
    ccnic_pool_close(pool);
    ccnic_queue_close(queue);
    ccnic_port_destroy(port);
  }
  puts("ok");
  return 0;
}
