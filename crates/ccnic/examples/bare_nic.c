/* A NIC's loopback thread with nothing but the protocol's steps, for counting its instructions: it checks no address, keeps no
 * ledger and no counters but the bytes, and recycles buffers on a stack.
 *
 *   gcc -O2 -o bare_nic bare_nic.c
 *   valgrind --tool=callgrind --toggle-collect=loopback ./bare_nic 1400 32
 *
 * The count less that of 400 rounds, over the packets between, is free of set-up. docs/ccnic/measurements.md has the figure. */
#include <stdint.h>
#include <string.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdatomic.h>
#define RING 256
#define N 512
typedef struct { uint64_t addr; _Atomic uint64_t meta; } desc;
typedef struct { desc d[4]; } line __attribute__((aligned(64)));
#define READY (1ull<<63)
#define MORE  (1ull<<16)
typedef struct { line *tx, *rx; uint64_t tnext, rnext; uint64_t stack[N]; unsigned top; uint64_t bytes; } nic;
static line tx[RING], rx[RING];
static char buf[4096][128] __attribute__((aligned(128)));
/* One burst: takes whole lines of up to `max` descriptors, and returns a copy of each packet. */
__attribute__((noinline)) unsigned loopback(nic *q, unsigned max) {
  unsigned done = 0;
  while (done + 4 <= max) {
    line *l = &q->tx[q->tnext % RING];
    uint64_t m0 = atomic_load_explicit(&l->d[0].meta, memory_order_acquire);
    if (!(m0 & READY)) break;
    line *r = &q->rx[q->rnext % RING];
    if (atomic_load_explicit(&r->d[0].meta, memory_order_acquire) & READY) break;
    uint64_t m[4]; uint64_t a[4]; unsigned n = 0;
    for (int i = 0; i < 4; i++) {
      uint64_t meta = i ? atomic_load_explicit(&l->d[i].meta, memory_order_relaxed) : (m0 & ~READY);
      uint64_t from = l->d[i].addr;
      if (!from) break;
      if (q->top == 0) abort();
      uint64_t to = q->stack[--q->top];
      unsigned len = meta & 0xffff;
      if (len <= 64) memcpy((void*)to, (void*)from, 64); else memcpy((void*)to, (void*)from, len);
      q->bytes += len;
      q->stack[q->top++] = from; /* the next copy goes there */
      a[n] = to; m[n] = meta & 0xffff; n++;
    }
    for (unsigned i = 0; i < 4; i++) {
      r->d[i].addr = i < n ? a[i] : 0;
      if (i) atomic_store_explicit(&r->d[i].meta, i < n ? m[i] : 0, memory_order_relaxed);
    }
    atomic_store_explicit(&r->d[0].meta, m[0] | READY, memory_order_release);
    memset((void*)&l->d[1], 0, 48); l->d[0].addr = 0;
    atomic_store_explicit(&l->d[0].meta, 0, memory_order_release);
    q->tnext++; q->rnext++; done += n;
  }
  return done;
}
int main(int c, char **v) {
  nic *q = aligned_alloc(64, (sizeof(nic)+63)/64*64); memset(q,0,sizeof *q);
  q->tx = tx; q->rx = rx;
  for (int i = 0; i < 64; i++) q->stack[q->top++] = (uint64_t)buf[2048+i];
  long rounds = atol(v[1]); unsigned burst = atoi(v[2]); uint64_t hp=0, hc=0, total=0;
  uint64_t pool[2048]; unsigned top=0; for (int i=0;i<2048;i++) pool[top++]=(uint64_t)buf[i];
  for (long k = 0; k < rounds; k++) {
    for (unsigned b = 0; b < burst; b += 4) {
      line *l = &tx[hp++ % RING];
      for (int i = 3; i >= 0; i--) { l->d[i].addr = pool[--top]; atomic_store_explicit(&l->d[i].meta, 64 | (i?0:READY), memory_order_release); }
    }
    unsigned got = 0; while (got < burst) got += loopback(q, 32);
    total += got;
    for (unsigned b = 0; b < burst; b += 4) {
      line *l = &rx[hc++ % RING];
      if (!(l->d[0].meta & READY)) abort();
      for (int i = 0; i < 4; i++) { pool[top++] = l->d[i].addr; }
      l->d[0].meta = 0;
    }
  }
  printf("%lu packets %lu bytes\n", total, q->bytes); return 0;
}
