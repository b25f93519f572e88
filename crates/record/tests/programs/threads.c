// Four threads: handle(own) stores to a page of the thread and adds to a counter that all share.
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

uint64_t counter __attribute__((aligned(4096)));
char rest[4096] __attribute__((aligned(4096)));
void handle(uint64_t *own);
// 4 instructions: a load and a store (one instruction), an atomic operation, a constant, the return.
__asm__(
    ".globl handle\n"
    ".type handle, @function\n"
    "handle:\n"
    "  incq (%rdi)\n"
    "  lock incq counter(%rip)\n"
    "  xor %eax, %eax\n"
    "  ret\n"
    ".size handle, . - handle\n");

static void *work(void *unused) {
    uint64_t *own = aligned_alloc(4096, 4096);
    for (;;) {
        handle(own);
        usleep(500);
    }
    return unused;
}

int main(void) {
    pthread_t t;
    for (int i = 0; i < 4; i++) pthread_create(&t, 0, work, 0);
    pthread_join(t, 0);
    return 0;
}
