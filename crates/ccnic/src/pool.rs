//! The shared pool: a bounded multi-producer multi-consumer ring of free buffers.
//!
//! One word per slot holds a 48-bit value and, above it, the 16-bit lap in which it was
//! written. The ring has at least as many slots as there are buffers, so it is never
//! overfull; an enqueue is therefore one atomic add and plain stores, and a dequeue reads
//! slots of the right lap before it claims them. Nobody ever waits for a peer: a side that
//! dies between its add and its stores leaves a gap that makes the ring look empty, which
//! the host's reset repairs. (A DPDK-style ring that publishes tails in order would make
//! the survivor spin for ever.)

use crate::mem::Mem;

const LAP_SHIFT: u32 = 48;
const VALUE: u64 = (1 << LAP_SHIFT) - 1;
/// Attempts of one dequeue under contention before it reports what it has: nothing.
const TRIES: usize = 64;

/// Place of a free ring; head, tail and slots start on lines of their own.
#[derive(Clone, Copy, Debug)]
pub struct FreeRing {
    head: usize,
    tail: usize,
    slots: usize,
    shift: u32,
}

impl FreeRing {
    /// A ring of `slots` (a power of two) at word `base`, over zeroed memory; it takes
    /// 16 words and one per slot.
    pub fn new(base: usize, slots: usize) -> FreeRing {
        assert!(slots.is_power_of_two());
        FreeRing { head: base, tail: base + 8, slots: base + 16, shift: slots.trailing_zeros() }
    }

    #[inline]
    fn slot(&self, position: u64) -> usize {
        self.slots + (position & ((1 << self.shift) - 1)) as usize
    }

    #[inline]
    fn lap(&self, position: u64) -> u64 {
        ((position >> self.shift) + 1) << LAP_SHIFT
    }

    /// Adds the values (each below 2^48), all of them.
    pub fn put<M: Mem>(&self, mem: &M, values: impl ExactSizeIterator<Item = u64>) {
        let first = mem.add(self.tail, values.len() as u64);
        for (i, value) in values.enumerate() {
            let at = first.wrapping_add(i as u64);
            mem.put_release(self.slot(at), self.lap(at) | value);
        }
    }

    /// Removes up to `out.len()` values; returns how many. The values are untrusted.
    pub fn take<M: Mem>(&self, mem: &M, out: &mut [u64]) -> usize {
        let most = out.len().min(1 << self.shift);
        for _ in 0..TRIES {
            let head = mem.get_acquire(self.head);
            let mut n = 0;
            while n < most {
                let at = head.wrapping_add(n as u64);
                let word = mem.get_acquire(self.slot(at));
                if word & !VALUE != self.lap(at) {
                    break;
                }
                out[n] = word & VALUE;
                n += 1;
            }
            if n == 0 {
                // Either empty, or others emptied and refilled this place meanwhile.
                if mem.get_acquire(self.head) == head {
                    return 0;
                }
            } else if mem.swap_if(self.head, head, head.wrapping_add(n as u64)) {
                return n;
            }
        }
        0
    }

    /// Number of values between head and tail, exact when nobody uses the ring.
    pub fn len<M: Mem>(&self, mem: &M) -> u64 {
        mem.get_acquire(self.tail).wrapping_sub(mem.get_acquire(self.head))
    }
}
