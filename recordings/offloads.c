// Leaves out the receive offloads that a port lacks when a program configures it, so that DPDK's l3fwd, which asks for
// checksums in hardware, runs over net_pcap: LD_PRELOAD=./offloads.so dpdk-l3fwd ... No other call of the program changes.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <rte_ethdev.h>

int rte_eth_dev_configure(uint16_t port, uint16_t rx, uint16_t tx, const struct rte_eth_conf *asked) {
    int (*next)(uint16_t, uint16_t, uint16_t, const struct rte_eth_conf *) = dlsym(RTLD_NEXT, __func__);
    struct rte_eth_conf conf = *asked;
    struct rte_eth_dev_info info;
    int failed = rte_eth_dev_info_get(port, &info);
    if (failed) return failed;
    conf.rxmode.offloads &= info.rx_offload_capa;
    return next(port, rx, tx, &conf);
}

int rte_eth_rx_queue_setup(uint16_t port, uint16_t queue, uint16_t descriptors, unsigned int socket,
                           const struct rte_eth_rxconf *asked, struct rte_mempool *pool) {
    int (*next)(uint16_t, uint16_t, uint16_t, unsigned int, const struct rte_eth_rxconf *, struct rte_mempool *) =
        dlsym(RTLD_NEXT, __func__);
    struct rte_eth_dev_info info;
    int failed = rte_eth_dev_info_get(port, &info);
    if (failed || !asked) return failed ? failed : next(port, queue, descriptors, socket, asked, pool);
    struct rte_eth_rxconf conf = *asked;
    conf.offloads &= info.rx_offload_capa;
    return next(port, queue, descriptors, socket, &conf, pool);
}
