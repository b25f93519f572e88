// A program whose work is known to the instruction: tests record it.
//
// handle(frame, length): copies 64 bytes of the frame, reads a table of 32 KiB at an index from the frame, and follows a
// list for DEPTH links.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINKS 64
#define DEPTH 5

struct link { struct link *next; char rest[120]; };
static struct link links[LINKS] __attribute__((aligned(4096)));
uint32_t table[8192] __attribute__((aligned(4096)));
uint8_t copy[64] __attribute__((aligned(64)));
struct link *first;

void handle(const uint8_t *frame, uint64_t length);
// 1 + 1 + 4 + 4 * 5 + 1 = 27 instructions: 3 loads, 1 load of `first`, 5 of links, 2 of the copy; 2 stores of the copy;
// the load of the return address.
__asm__(
    ".globl handle\n"
    ".type handle, @function\n"
    "handle:\n"
    "  movzwl 12(%rdi), %eax\n"           // load 2 bytes of the frame
    "  and $8191, %eax\n"
    "  lea table(%rip), %rdx\n"
    "  movl (%rdx,%rax,4), %ecx\n"        // load 4 bytes of the table: depends on the first load
    "  movdqu (%rdi), %xmm0\n"            // copy 32 bytes
    "  movdqu %xmm0, copy(%rip)\n"
    "  movdqu 16(%rdi), %xmm1\n"
    "  movdqu %xmm1, copy+16(%rip)\n"
    "  mov first(%rip), %rax\n"           // load the list's head
    "  mov $5, %ecx\n"
    "1:\n"
    "  mov (%rax), %rax\n"                // load a link: depends on the load before
    "  dec %ecx\n"
    "  jnz 1b\n"
    "  prefetcht0 64(%rdi)\n"
    "  lock incl 8(%rax)\n"               // atomic: depends on the last link
    "  movnti %rcx, 16(%rax)\n"
    "  push %rax\n"                       // spill and reload: still depends on the last link
    "  xor %eax, %eax\n"
    "  pop %rdx\n"
    "  movb 24(%rdx), %dl\n"
    "  ret\n"
    ".size handle, . - handle\n");

int main(int argc, char **argv) {
    unsigned long rounds = argc > 1 ? strtoul(argv[1], 0, 10) : 1000000;
    for (int i = 0; i < LINKS; i++) links[i].next = &links[(i * 5 + 1) % LINKS];
    first = &links[0];
    uint8_t frame[1514];
    memset(frame, 0, sizeof frame);
    for (unsigned long n = 0; n < rounds; n++) {
        frame[12] = n * 7;
        frame[13] = n * 3;
        handle(frame, sizeof frame);
        if (argc > 2) usleep(strtoul(argv[2], 0, 10));
    }
    puts("done");
    return 0;
}
