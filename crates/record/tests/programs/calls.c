// A program whose calls recur and whose libraries are called: tests record it. The first argument says what it does.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

uint64_t rounds(uint64_t n);
// 3 n + 2 instructions, in a loop that begins where the function does.
__asm__(
    ".globl rounds\n"
    ".type rounds, @function\n"
    "rounds:\n"
    "  add $1, %rax\n"
    "  dec %rdi\n"
    "  jns rounds\n"
    "  nop\n"
    "  ret\n"
    ".size rounds, . - rounds\n");

uint64_t down(uint64_t n);
// 6 n + 4 instructions: down(n) calls down(n - 1).
__asm__(
    ".globl down\n"
    ".type down, @function\n"
    "down:\n"
    "  nop\n"
    "  test %rdi, %rdi\n"
    "  jz 1f\n"
    "  dec %rdi\n"
    "  call down\n"
    "1:\n"
    "  ret\n"
    ".size down, . - down\n");

static int before(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

int main(int argc, char **argv) {
    static int numbers[1024] __attribute__((aligned(4096)));
    static char from[4096], to[4096] __attribute__((aligned(4096)));
    void *(*volatile copy)(void *, const void *, size_t) = memcpy;
    for (int i = 1; i <= 300; i++) {
        switch (argc > 1 ? argv[1][0] : 0) {
        case 'd': down(i % 3 ? 4 : 200); break;
        case 'r': rounds(i % 3 ? 4 : 200); break;
        case 'q': qsort(numbers, i, sizeof *numbers, before); break;
        case 'm': copy(to, from, 64 * (i % 32) + (argc - 1)); break;
        }
    }
    return 0;
}
