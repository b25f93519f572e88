/* Mutual exclusion of the bursts of one queue pair, free of locked instructions as long as one
 * lcore alone uses the pair.
 *
 * A locked instruction waits until all earlier stores are done, and those are payloads whose
 * lines the NIC still holds: taken before each burst, an uncontended lock costs as much as
 * the exchange itself. So the first lcore owns the gate and passes with plain stores; the first
 * other one that wants in closes that way for good, with a barrier executed on all CPUs by
 * the kernel (membarrier) in place of one in the owner's path, and both use a lock from then. */
#ifndef NET_CCNIC_GATE_H
#define NET_CCNIC_GATE_H

#include <stdbool.h>

#include <rte_branch_prediction.h>
#include <rte_lcore.h>
#include <rte_spinlock.h>

enum { OPEN, CLOSING, CLOSED };
enum passage { REFUSED, AS_OWNER, LOCKED };

struct gate {
  unsigned owner; /* lcore, or GATE_UNOWNED */
  bool inside;    /* the owner is between enter and leave */
  uint8_t state;  /* OPEN for the owner, CLOSING until the barrier was executed, CLOSED */
  rte_spinlock_t lock;
};

#define GATE_UNOWNED (LCORE_ID_ANY - 1)

/* Opens a gate that nobody uses. Needs gate_prepare() once before. */
void gate_init(struct gate *g);
/* Asks the kernel for the barrier; without it gates are locks from the start. */
void gate_prepare(void);
enum passage gate_enter_slowly(struct gate *g);

/* Refused only after someone else stayed inside for long (a reset). */
static inline enum passage gate_enter(struct gate *g) {
  if (likely(g->owner == rte_lcore_id())) {
    __atomic_store_n(&g->inside, true, __ATOMIC_RELAXED);
    __asm__ volatile("" ::: "memory"); /* with the other side's membarrier, a full barrier */
    if (likely(__atomic_load_n(&g->state, __ATOMIC_ACQUIRE) == OPEN))
      return AS_OWNER;
    __atomic_store_n(&g->inside, false, __ATOMIC_RELEASE);
  }
  return gate_enter_slowly(g);
}

static inline void gate_leave(struct gate *g, enum passage how) {
  if (likely(how == AS_OWNER))
    __atomic_store_n(&g->inside, false, __ATOMIC_RELEASE);
  else
    rte_spinlock_unlock(&g->lock);
}

#endif
