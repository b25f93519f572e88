//! A side's private record of which buffers it owns.
//!
//! The record is what makes a lying peer harmless: a buffer enters this side only if the
//! record says it is away, and after a reset everything that is away returns to the pool.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

const STATE: u32 = 3;
const REF: u32 = 4;
const REFS: u32 = 0xfffc;
const EPOCH: u32 = 16;

/// Owner of a buffer, as this side knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Not this side: in the pool, in a ring, or with the peer.
    Away = 0,
    /// The application (on the NIC: the forwarding code).
    User = 1,
    /// One of this side's recycle stacks.
    Stack = 2,
    /// In flight, and this side's again once its transmission has completed: a peer that hands
    /// it over before is lying.
    Lent = 3,
}

/// Owner of every buffer, as one side records it.
///
/// A buffer comes in (from *away*) by compare-and-swap wherever two threads of this side could be handed the same one
/// by a lying peer: exactly one gets it. From then on it is with that thread alone, so the other changes are a check
/// and a plain store. A side with a single thread needs no swap; on x86 each one would wait for the payload stores
/// before it.
pub(crate) struct Ledger {
    entries: Box<[AtomicU32]>,
    contended: AtomicBool,
}

impl Ledger {
    /// Creates the record of `total` buffers; `contended` when more than one thread of this side takes buffers.
    pub fn new(total: usize, contended: bool) -> Ledger {
        let entries = (0..total).map(|_| AtomicU32::new(0)).collect();
        Ledger { entries, contended: AtomicBool::new(contended) }
    }

    /// Declares that several threads take buffers from now on; only while none of them is in a call.
    pub fn contend(&self) {
        self.contended.store(true, Relaxed);
    }

    /// True when several threads may take buffers.
    pub fn contended(&self) -> bool {
        self.contended.load(Relaxed)
    }

    /// Moves a buffer from one owner to another; false when the record disagrees. Records of
    /// another epoch count as away.
    #[inline]
    pub fn shift(&self, epoch: u32, index: u32, from: Owner, to: Owner) -> bool {
        let Some(entry) = self.entries.get(index as usize) else {
            return false;
        };
        let now = entry.load(Relaxed);
        let next = epoch << EPOCH | to as u32;
        if from == Owner::Away {
            let away = now & STATE == 0 || now >> EPOCH != epoch & 0xffff;
            if away && self.contended() {
                return entry.compare_exchange(now, next, Relaxed, Relaxed).is_ok();
            }
            if away {
                entry.store(next, Relaxed);
            }
            return away;
        }
        let fits = now == epoch << EPOCH | from as u32;
        if fits {
            entry.store(next, Relaxed);
        }
        fits
    }

    /// True when the application owns the buffer, with or without further references.
    #[inline]
    pub fn is_user(&self, epoch: u32, index: u32) -> bool {
        self.entries.get(index as usize).is_some_and(|e| {
            let now = e.load(Relaxed);
            now & STATE == Owner::User as u32 && now >> EPOCH == epoch & 0xffff
        })
    }

    /// True when the buffer has more than one reference.
    #[inline]
    pub fn shared(&self, index: u32) -> bool {
        self.entries.get(index as usize).is_some_and(|e| e.load(Relaxed) & REFS != 0)
    }

    /// Adds a reference to a buffer of the application; false if it is not, or has 2^14.
    pub fn retain(&self, epoch: u32, index: u32) -> bool {
        let Some(entry) = self.entries.get(index as usize) else {
            return false;
        };
        entry
            .fetch_update(Relaxed, Relaxed, |now| {
                let user = now & STATE == Owner::User as u32 && now >> EPOCH == epoch & 0xffff;
                (user && now & REFS != REFS).then(|| now + REF)
            })
            .is_ok()
    }

    /// Drops one of several references; false when there is only one.
    pub fn drop_ref(&self, index: u32) -> bool {
        let Some(entry) = self.entries.get(index as usize) else {
            return false;
        };
        entry.fetch_update(Relaxed, Relaxed, |now| (now & REFS != 0).then(|| now - REF)).is_ok()
    }

    /// Owner of a buffer in the given epoch.
    pub fn owner(&self, epoch: u32, index: u32) -> Owner {
        let now = self.entries[index as usize].load(Relaxed);
        if now >> EPOCH != epoch & 0xffff {
            return Owner::Away;
        }
        match now & STATE {
            1 => Owner::User,
            2 => Owner::Stack,
            3 => Owner::Lent,
            _ => Owner::Away,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two threads are handed the same buffers in the same order: each goes to one of them.
    #[test]
    fn a_buffer_that_two_threads_are_handed_goes_to_one() {
        const BUFFERS: u32 = 1 << 16;
        let rounds = if cfg!(miri) { 1 } else { 100 };
        for _ in 0..rounds {
            let ledger = Ledger::new(BUFFERS as usize, true);
            let ready = AtomicU32::new(0);
            let take = || {
                // Spinning, so that both start within a few cycles.
                ready.fetch_add(1, Relaxed);
                while ready.load(Relaxed) < 2 {
                    std::hint::spin_loop();
                }
                (0..BUFFERS).filter(|&i| ledger.shift(0, i, Owner::Away, Owner::User)).count()
            };
            let taken = std::thread::scope(|s| {
                let other = s.spawn(take);
                take() + other.join().expect("no panic")
            });
            assert_eq!(taken, BUFFERS as usize);
        }
    }
}
