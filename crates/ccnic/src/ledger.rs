//! A side's private record of which buffers it owns.
//!
//! The record is what makes a lying peer harmless: a buffer enters this side only if the
//! record says it is away, and after a reset everything that is away returns to the pool.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

// An entry is the owner, a count of references, and above them the epoch. `User` counts the application's references
// beyond the first. `Lent`, which only the host uses, counts all of the application's references, and in place of the
// epoch the transmissions in flight.
const STATE: u32 = 3;
const REF: u32 = 4;
const REFS: u32 = 0xfffc;
const EPOCH: u32 = 16;
const USER: u32 = Owner::User as u32;
const LENT: u32 = Owner::Lent as u32;
const FLIGHT: u32 = 1 << EPOCH;
const FLIGHTS: u32 = 0xffff;

/// Owner of a buffer, as this side knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Not this side: in the pool, in a ring, or with the peer.
    Away = 0,
    /// The application (on the NIC: the forwarding code).
    User = 1,
    /// One of this side's recycle stacks.
    Stack = 2,
    /// In flight, with or without further references of the application, and this side's again once its transmissions
    /// have completed: a peer that hands it over before is lying.
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
            let away = now & STATE == 0 || now & STATE != LENT && now >> EPOCH != epoch & 0xffff;
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

    /// Number of times that the application may send the buffer: its references, zero if it owns none.
    #[inline]
    pub fn sends(&self, epoch: u32, index: u32) -> usize {
        let now = self.entries.get(index as usize).map_or(0, |e| e.load(Relaxed));
        let refs = (now & REFS) / REF;
        (match now & STATE {
            USER if now >> EPOCH == epoch & 0xffff => refs + 1,
            LENT => refs.min(FLIGHTS - (now >> EPOCH)),
            _ => 0,
        }) as usize
    }

    /// Adds a reference to a buffer of the application; false if it is not, or has 2^14.
    pub fn retain(&self, epoch: u32, index: u32) -> bool {
        let Some(entry) = self.entries.get(index as usize) else {
            return false;
        };
        self.change(entry, |now| {
            let own = match now & STATE {
                USER => now >> EPOCH == epoch & 0xffff,
                LENT => now & REFS != 0,
                _ => false,
            };
            (own && now & REFS != REFS).then(|| now + REF)
        })
        .is_some()
    }

    /// Turns a reference of the application into a transmission in flight; false if it has none. Only for the host.
    pub fn lend(&self, index: u32) -> bool {
        let Some(entry) = self.entries.get(index as usize) else {
            return false;
        };
        if entry.load(Relaxed) == USER {
            // The only reference: no other thread may change the record.
            entry.store(FLIGHT | LENT, Relaxed);
            return true;
        }
        self.change(entry, |now| match now & STATE {
            USER if now >> EPOCH == 0 => Some(FLIGHT | (now & REFS) | LENT),
            LENT if now & REFS != 0 && now >> EPOCH < FLIGHTS => Some(now + FLIGHT - REF),
            _ => None,
        })
        .is_some()
    }

    /// Ends a transmission; true when nothing else refers to the buffer, which the caller then owns.
    pub fn land(&self, index: u32) -> bool {
        let Some(entry) = self.entries.get(index as usize) else {
            return false;
        };
        if entry.load(Relaxed) == FLIGHT | LENT {
            entry.store(USER, Relaxed);
            return true;
        }
        let before = self.change(entry, |now| match (now & STATE, now >> EPOCH, now & REFS) {
            (LENT, 1, 0) => Some(USER),
            (LENT, 1, refs) => Some((refs - REF) | USER),
            (LENT, ..) => Some(now - FLIGHT),
            _ => None,
        });
        before == Some(FLIGHT | LENT)
    }

    /// Drops a reference of the application. True when nothing else refers to the buffer, which then goes to `to`;
    /// none if the application has no reference.
    #[inline]
    pub fn drop_ref(&self, epoch: u32, index: u32, to: Owner) -> Option<bool> {
        let last = || self.shift(epoch, index, Owner::User, to);
        if last() {
            Some(true)
        } else if self.drop_further(index) {
            Some(false)
        } else {
            // Between the two, another thread may have dropped the reference before the last, or ended a transmission.
            last().then_some(true)
        }
    }

    /// Drops a reference of the application beside another reference or a transmission; false if there is none such.
    fn drop_further(&self, index: u32) -> bool {
        let Some(entry) = self.entries.get(index as usize) else {
            return false;
        };
        self.change(entry, |now| (now & REFS != 0).then(|| now - REF)).is_some()
    }

    /// Changes the record of a buffer that several threads may refer to, where there are several; returns what it was
    /// if it was changed.
    #[inline]
    fn change(&self, entry: &AtomicU32, next: impl Fn(u32) -> Option<u32>) -> Option<u32> {
        if self.contended() {
            return entry.fetch_update(Relaxed, Relaxed, next).ok();
        }
        let now = entry.load(Relaxed);
        entry.store(next(now)?, Relaxed);
        Some(now)
    }

    /// Owner of a buffer in the given epoch; the application where it has a reference beside transmissions.
    pub fn owner(&self, epoch: u32, index: u32) -> Owner {
        let now = self.entries[index as usize].load(Relaxed);
        if now & STATE == LENT {
            return if now & REFS == 0 { Owner::Lent } else { Owner::User };
        }
        if now >> EPOCH != epoch & 0xffff {
            return Owner::Away;
        }
        match now & STATE {
            1 => Owner::User,
            2 => Owner::Stack,
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

    /// References of the application and transmissions in flight, in every order: the application sends and frees as
    /// often as it has references, and the last of all of them returns the buffer.
    #[test]
    fn references_and_transmissions_are_counted_apart() {
        const REFERENCES: u32 = 3;
        // A digit to base 3 per step: 0 sends, 1 frees, 2 ends a transmission.
        for order in 0..3u32.pow(8) {
            let ledger = Ledger::new(1, order % 2 == 0);
            assert!(ledger.shift(0, 0, Owner::Away, Owner::User));
            assert!((1..REFERENCES).all(|_| ledger.retain(0, 0)));
            let (mut own, mut flights, mut back) = (REFERENCES, 0, false);
            for step in (0..8).map(|i| order / 3u32.pow(i) % 3) {
                assert_eq!(ledger.sends(0, 0), own as usize);
                match step {
                    0 => {
                        assert_eq!(ledger.lend(0), own > 0);
                        (own, flights) = if own > 0 { (own - 1, flights + 1) } else { (own, flights) };
                    }
                    1 => {
                        let last = ledger.drop_ref(0, 0, Owner::Stack);
                        assert_eq!(last, (own > 0).then_some(own == 1 && flights == 0));
                        own -= own.min(1);
                        back |= last == Some(true);
                    }
                    _ if flights > 0 => {
                        flights -= 1;
                        let last = ledger.land(0);
                        assert_eq!(last, own == 0 && flights == 0);
                        back |= last && ledger.shift(0, 0, Owner::User, Owner::Stack);
                    }
                    _ => {}
                }
                assert!(!ledger.shift(0, 0, Owner::Away, Owner::User), "nobody gives it out");
                assert_eq!(back, own + flights == 0);
                assert_eq!(ledger.retain(0, 0), own > 0);
                assert!(own == 0 || ledger.drop_ref(0, 0, Owner::Stack) == Some(false));
            }
        }
    }
}
