/* The rare half of gate.h. */
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_pause.h>

#include "gate.h"

/* Looks at a gate that is taken before it is refused: some milliseconds. */
#define PATIENCE (1u << 16)

static bool barrier_works;

void gate_prepare(void) {
  barrier_works = syscall(__NR_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void gate_init(struct gate *g) {
  g->owner = GATE_UNOWNED;
  g->inside = false;
  g->state = barrier_works ? OPEN : CLOSED;
  rte_spinlock_init(&g->lock);
}

enum passage gate_enter_slowly(struct gate *g) {
  unsigned nobody = GATE_UNOWNED, me = rte_lcore_id();
  /* Threads without an lcore of their own cannot be told apart. */
  if (me != (unsigned)LCORE_ID_ANY && __atomic_load_n(&g->state, __ATOMIC_ACQUIRE) == OPEN &&
      __atomic_compare_exchange_n(&g->owner, &nobody, me, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return gate_enter(g);
  if (__atomic_load_n(&g->state, __ATOMIC_ACQUIRE) != CLOSED) {
    /* Whoever comes while it is closing executes a barrier too, rather than wait. */
    __atomic_store_n(&g->state, CLOSING, __ATOMIC_SEQ_CST);
    syscall(__NR_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    __atomic_store_n(&g->state, CLOSED, __ATOMIC_SEQ_CST);
  }
  for (unsigned i = 0; i < PATIENCE; i++, rte_pause())
    if (!__atomic_load_n(&g->inside, __ATOMIC_ACQUIRE) && rte_spinlock_trylock(&g->lock))
      return LOCKED;
  return REFUSED;
}
