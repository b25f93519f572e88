// Parses frames: handle(frame, length) checks EtherType and version, hashes the destination of an IPv4 packet to a bucket,
// and follows a chain of argv[2] nodes from there, each in a line of its own, in an order that no prefetcher knows.
#include <stdint.h>
#include <stdlib.h>

struct node {
    struct node *next;
    uint64_t uses, unused[6];
};
enum { NODES = 1 << 14, BUCKETS = 1 << 12 };
static struct node nodes[NODES] __attribute__((aligned(64))), *buckets[BUCKETS] __attribute__((aligned(64)));
static int depth;

__attribute__((noinline)) uint64_t handle(const uint8_t *frame, unsigned length) {
    if (length < 34 || frame[12] != 8 || frame[13] != 0 || frame[14] >> 4 != 4) return 0;
    uint32_t to = *(const uint32_t *)(frame + 30);
    const struct node *n = buckets[(to * 2654435769u) >> 20];
    for (int i = 1; i < depth; i++) n = n->next;
    return n->uses;
}

int main(int argc, char **argv) {
    long packets = argc > 1 ? atol(argv[1]) : 1000;
    depth = argc > 2 ? atoi(argv[2]) : 8;
    // A generator of full period (Hull and Dobell): one cycle through all nodes.
    for (uint32_t i = 0; i < NODES; i++) nodes[i] = (struct node){.next = &nodes[(i * 4093 + 7919) % NODES], .uses = i};
    for (uint32_t i = 0; i < BUCKETS; i++) buckets[i] = &nodes[i * 2246822519u % NODES];
    uint8_t frame[64] = {[12] = 8, [14] = 0x45};
    uint64_t sum = 0;
    for (uint32_t p = 0, to = 1; p < packets; p++) {
        to = to * 1664525u + 1013904223u;
        *(uint32_t *)(frame + 30) = to;
        sum += handle(frame, sizeof frame);
    }
    return sum == 1; // so that no call is left out
}
