// Sends each datagram back, and waits for the next one in recvfrom; one byte ends it.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

int main(int argc, char **argv) {
    (void)argc;
    char in[64];
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(s, (struct sockaddr *)&a, sizeof a)) return 1;
    for (;;) {
        socklen_t size = sizeof a;
        ssize_t n = recvfrom(s, in, sizeof in, 0, (struct sockaddr *)&a, &size);
        if (n <= 1) return n != 1;
        sendto(s, in, n, 0, (struct sockaddr *)&a, size);
    }
}
