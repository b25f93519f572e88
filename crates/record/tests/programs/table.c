// A UDP server with two threads. A request of 8 bytes is a seed: the server looks up 32 keys that follow from it. Each
// look-up loads a pointer from a table of argv[2] entries, the node that it points to, and the next node of its chain.
// The reply is the sum of the values. With argv[3] there is no server: the program times itself, and prints nanoseconds
// a request for each of 32 rounds of argv[3] requests.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

struct node {
    struct node *next;
    uint64_t value, unused[6];
};
static struct node *nodes, **table;
static uint64_t count;
static uint16_t port;

__attribute__((noinline)) uint64_t look_up(uint64_t seed) {
    uint64_t sum = 0;
    for (int i = 0; i < 32; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        sum += table[(seed >> 33) % count]->next->value;
    }
    return sum;
}

static void *serve(void *unused) {
    int yes = 1, s = socket(AF_INET, SOCK_DGRAM, 0);
    setsockopt(s, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(s, (struct sockaddr *)&a, sizeof a)) exit(1);
    for (;;) {
        uint64_t message[2] = {0};
        struct sockaddr_in from;
        socklen_t length = sizeof from;
        if (recvfrom(s, message, 8, 0, (struct sockaddr *)&from, &length) != 8) continue;
        message[1] = look_up(message[0]);
        sendto(s, message + 1, 8, 0, (struct sockaddr *)&from, length);
    }
    return unused;
}

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000 + t.tv_nsec;
}

static void time_rounds(int requests) {
    uint64_t seed = 1, sum = 0;
    for (int round = 0; round < 32; round++) {
        int64_t begun = now();
        for (int i = 0; i < requests; i++) sum += look_up(seed = seed * 2862933555777941757u + 3037000493u);
        printf("%.2f\n", (double)(now() - begun) / requests);
    }
    fprintf(stderr, "%lu\n", sum); // so that no look-up is left out
}

int main(int argc, char **argv) {
    if (argc < 3) return 1;
    port = atoi(argv[1]);
    count = atoi(argv[2]);
    nodes = aligned_alloc(64, count * sizeof *nodes);
    table = aligned_alloc(64, count * sizeof *table);
    // 7919 is a prime and count a power of two, so each node is the next one of one other.
    for (uint64_t i = 0; i < count; i++) {
        nodes[i] = (struct node){.next = &nodes[(i * 7919 + 1) % count], .value = i};
        table[i] = &nodes[i];
    }
    if (argc > 3) {
        time_rounds(atoi(argv[3]));
        return 0;
    }
    pthread_t t;
    pthread_create(&t, 0, serve, 0);
    serve(0);
}
