// A server of one connection: reads 40 bytes after epoll_wait, copies bytes 8 to 15 to a reply, and sends 16 bytes.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static char in[64] __attribute__((aligned(64)));
static char out[64] __attribute__((aligned(64)));

int main(int argc, char **argv) {
    (void)argc;
    int yes = 1, s = socket(AF_INET, SOCK_STREAM, 0), e = epoll_create1(0);
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(s, (struct sockaddr *)&a, sizeof a) || listen(s, 1)) return 1;
    int c = accept(s, 0, 0);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(e, EPOLL_CTL_ADD, c, &event);
    while (epoll_wait(e, &event, 1, -1) > 0) {
        if (recv(c, in, 40, 0) != 40) return 0;
        *(volatile uint64_t *)(out + 4) = *(volatile uint64_t *)(in + 8);
        send(c, out, 16, 0);
    }
    return 0;
}
