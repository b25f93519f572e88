//! The control words of the reset handshake and of sleeping, over [`Mem`].
//!
//! ```text
//!  host                       control words                NIC of term t, each queue
//!  offer(t)    ------------>  ACK[q] = t, 0
//!                             ACK[q] = t, CLOSED   <-----  attach(q, t)
//!  ask(e)      ------------>  ASK = e
//!                             ACK[q] = t, e  <-----------  sees ASK, stops, acknowledge(q, t, e)
//!  waits for all stopped(q, t, e); clears rings and pools
//!  go(e')      ------------>  ASK = GO = e'  ----------->  acknowledge(q, t, e'), may_run(e')
//! ```
//!
//! A queue that nobody has open says [`CLOSED`] in place of an epoch, and no reset waits for it.
//!
//! Each NIC has a *term*, a number that its host gives to no other NIC. An acknowledgement carries the term, and replaces only
//! one of the same term, in one atomic step. A NIC that was replaced therefore never speaks for its successor, at whatever
//! instruction it was stopped.

use crate::layout::{w_ack, W_EPOCH_ASK, W_EPOCH_GO};
use crate::mem::Mem;

/// Bits of an acknowledgement below the term.
const EPOCH_BITS: u32 = 40;
/// Largest term.
const LAST_TERM: u32 = u32::MAX >> (EPOCH_BITS - 32);

/// Acknowledgement of a queue that is not open.
pub const CLOSED: u64 = (1 << EPOCH_BITS) - 1;
/// Acknowledgement of a queue that has stopped for no epoch yet.
const NONE: u64 = 0;

/// The term after `term`; zero is no NIC's.
pub fn next_term(term: u32) -> u32 {
    term % LAST_TERM + 1
}

/// The acknowledgement of `epoch` by the NIC of `term`.
fn word(term: u32, epoch: u64) -> u64 {
    u64::from(term) << EPOCH_BITS | epoch & CLOSED
}

/// Host: queue `queue` awaits the NIC of `term`, and what others say of it counts no more.
pub fn offer<M: Mem>(mem: &M, queue: usize, term: u32) {
    mem.put_release(w_ack(queue), word(term, NONE));
}

/// Host: takes the offer of queue `queue` back; false if the NIC has attached itself before.
pub fn withdraw<M: Mem>(mem: &M, queue: usize, term: u32) -> bool {
    mem.swap_if(w_ack(queue), word(term, NONE), word(next_term(term), NONE))
}

/// Host: offers queue `queue` again where something else than the NIC of `term` has written its word.
pub fn repair<M: Mem>(mem: &M, queue: usize, term: u32) {
    if mem.get_acquire(w_ack(queue)) >> EPOCH_BITS != u64::from(term) {
        offer(mem, queue, term);
    }
}

/// Host: asks every queue to stop and to acknowledge `epoch`.
pub fn ask<M: Mem>(mem: &M, epoch: u64) {
    mem.put_release(W_EPOCH_ASK, epoch);
    mem.fence();
}

/// Host: true when queue `queue` of the NIC of `term` has stopped for `epoch`, or is not open.
pub fn stopped<M: Mem>(mem: &M, queue: usize, term: u32, epoch: u64) -> bool {
    let ack = mem.get_acquire(w_ack(queue));
    ack == word(term, epoch) || ack == word(term, CLOSED)
}

/// Host: rings and pools are fresh, `epoch` may run.
pub fn go<M: Mem>(mem: &M, epoch: u64) {
    mem.put(W_EPOCH_ASK, epoch);
    mem.put_release(W_EPOCH_GO, epoch);
}

/// NIC: the epoch that the host asks for.
#[inline]
pub fn asked<M: Mem>(mem: &M) -> u64 {
    mem.get_acquire(W_EPOCH_ASK)
}

/// NIC: attaches itself to queue `queue`, which stays closed until [`open`]; false if the host has turned to another NIC since its offer.
pub fn attach<M: Mem>(mem: &M, queue: usize, term: u32) -> bool {
    mem.swap_if(w_ack(queue), word(term, NONE), word(term, CLOSED))
}

/// NIC: queue `queue` has stopped for `epoch` and touches nothing until it may run. Without effect where the NIC was replaced.
pub fn acknowledge<M: Mem>(mem: &M, queue: usize, term: u32, epoch: u64) {
    let now = mem.get(w_ack(queue));
    if now >> EPOCH_BITS == u64::from(term) {
        // Only the host can interfere, which then has another NIC.
        mem.swap_if(w_ack(queue), now, word(term, epoch));
    }
}

/// NIC: queue `queue` opens; the next look at [`asked`] cannot miss a reset under way.
pub fn open<M: Mem>(mem: &M, queue: usize, term: u32) {
    acknowledge(mem, queue, term, NONE);
    mem.fence();
}

/// NIC: true when `epoch` may run.
pub fn may_run<M: Mem>(mem: &M, epoch: u64) -> bool {
    epoch != 0 && mem.get_acquire(W_EPOCH_GO) == epoch
}

/// NIC: says in `word` that a queue is about to sleep, like [`fall_asleep`]. The caller adds the fence.
pub fn lie_down<M: Mem>(mem: &M, word: usize, term: u32) {
    mem.put_release(word, u64::from(term) + 1);
}

/// NIC: says in `word` that a queue is awake. What another NIC has written there stays.
pub fn get_up<M: Mem>(mem: &M, word: usize, term: u32) {
    mem.swap_if(word, u64::from(term) + 1, 0);
}

/// Host: says in `word` that this side is about to sleep. It looks at its ring once more before it
/// does: either it finds what the other side wrote, or the other side finds the word.
pub fn fall_asleep<M: Mem>(mem: &M, word: usize) {
    mem.put_release(word, 1);
    mem.heavy_fence();
}

/// After a publication: true when the other side sleeps, or is about to, and must be woken. It
/// is said once.
#[inline]
pub fn must_wake<M: Mem>(mem: &M, word: usize) -> bool {
    mem.light_fence();
    let mark = mem.get(word);
    mark != 0 && mem.swap_if(word, mark, 0)
}
