//! The control words of the reset handshake and of sleeping, over [`Mem`].
//!
//! ```text
//!  host                       control words                NIC, each queue
//!  ask(e)      ------------>  ASK = e
//!                             ACK[q] = e     <-----------  sees ASK, stops, acknowledge(q, e)
//!  waits for all stopped(q, e); clears rings and pools
//!  go(e')      ------------>  ASK = GO = e'  ----------->  acknowledge(q, e'), may_run(e')
//! ```
//!
//! A queue that nobody has open says [`CLOSED`] in place of an epoch, and no reset waits for it.

use crate::layout::{w_ack, W_EPOCH_ASK, W_EPOCH_GO};
use crate::mem::Mem;

/// Acknowledgement of a queue that is not open.
pub const CLOSED: u64 = u64::MAX;

/// Host: asks every queue to stop and to acknowledge `epoch`.
pub fn ask<M: Mem>(mem: &M, epoch: u64) {
    mem.put_release(W_EPOCH_ASK, epoch);
    mem.fence();
}

/// Host: true when queue `queue` has stopped for `epoch`, or is not open.
pub fn stopped<M: Mem>(mem: &M, queue: usize, epoch: u64) -> bool {
    let ack = mem.get_acquire(w_ack(queue));
    ack == epoch || ack == CLOSED
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

/// NIC: queue `queue` has stopped for `epoch` and touches nothing until it may run.
pub fn acknowledge<M: Mem>(mem: &M, queue: usize, epoch: u64) {
    mem.put_release(w_ack(queue), epoch);
}

/// NIC: queue `queue` opens; the next look at [`asked`] cannot miss a reset under way.
pub fn open<M: Mem>(mem: &M, queue: usize) {
    mem.put_release(w_ack(queue), 0);
    mem.fence();
}

/// NIC: true when `epoch` may run.
pub fn may_run<M: Mem>(mem: &M, epoch: u64) -> bool {
    epoch != 0 && mem.get_acquire(W_EPOCH_GO) == epoch
}

/// Says in `word` that this side is about to sleep. It looks at its ring once more before it
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
    mem.get(word) != 0 && mem.swap_if(word, 1, 0)
}
