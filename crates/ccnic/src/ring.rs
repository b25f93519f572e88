//! One descriptor ring: a producer and a consumer that share nothing but the ring's words.
//!
//! A ring is an array of *units*; a unit is what one signal covers. Grouped layout: a
//! 64-byte line of up to four descriptors. Packed: one descriptor of a line that holds four.
//! Padded: one descriptor alone on its line. Life of a unit with inline signals: free
//! (signal word zero), written by the producer (signal stored last, released), read by the
//! consumer, cleared by the consumer in ring order. With registers the producer stores a
//! tail and the consumer a head, each on a line of its own. Indices are private.

use crate::desc::{Desc, MAX_SEGMENTS, READY};
use crate::error::Fault;
use crate::mem::Mem;

/// Units ahead that the producer probes for free space. Consumers clear in order, so one
/// clear line vouches for those before it, and most lines are then written without being
/// read first.
const PROBE: u64 = 8;
/// Units ahead that the producer asks ownership of.
const OWN_AHEAD: u64 = 2;
/// Most lines ahead that the consumer fetches while it finds one ready after the other.
const READ_AHEAD: u64 = 6;

/// Place and form of a ring; all positions are word indices of the region.
#[derive(Clone, Debug)]
pub struct Shape {
    /// First word of the ring, on a line boundary.
    pub base: usize,
    /// Number of units, a power of two.
    pub units: usize,
    /// Words from one unit to the next (2 or 8).
    pub unit_words: usize,
    /// Descriptors per unit (1 or 4).
    pub group: usize,
    /// Signal through the two registers instead of inline.
    pub register: bool,
    /// Word of the producer's register.
    pub tail: usize,
    /// Word of the consumer's register.
    pub head: usize,
}

impl Shape {
    #[inline]
    pub(crate) fn at(&self, index: u64) -> usize {
        self.base + (index as usize & (self.units - 1)) * self.unit_words
    }
}

/// Writing side of a ring.
#[derive(Clone, Debug)]
pub struct Producer {
    shape: Shape,
    next: u64,
    /// Units below this index may be written without asking.
    free_to: u64,
    /// Register mode: tail last stored.
    told: u64,
}

impl Producer {
    /// A producer of a ring whose words are all zero.
    pub fn new(shape: Shape) -> Producer {
        let free_to = if shape.register { shape.units as u64 } else { 0 };
        Producer { shape, next: 0, free_to, told: 0 }
    }

    /// Descriptors per unit.
    #[inline]
    pub fn group(&self) -> usize {
        self.shape.group
    }

    /// Units of the ring.
    #[inline]
    pub fn units(&self) -> u64 {
        self.shape.units as u64
    }

    /// Index of the next unit to be written.
    #[inline]
    pub fn position(&self) -> u64 {
        self.next
    }

    /// Index up to which published units have been consumed, where the caller does not ask about those below `from`.
    pub fn consumed<M: Mem>(&self, mem: &M, mut from: u64) -> Result<u64, Fault> {
        let s = &self.shape;
        if s.register {
            // A consumer that lags may still be below `from`.
            return Ok(self.head(mem)?.max(from));
        }
        while from < self.next && mem.get_acquire(s.at(from) + 1) == 0 {
            from += 1;
        }
        Ok(from)
    }

    /// Register mode: the consumer's head, which never goes back nor beyond the tail.
    fn head<M: Mem>(&self, mem: &M) -> Result<u64, Fault> {
        let s = &self.shape;
        let head = mem.get_acquire(s.head);
        let seen = self.free_to - s.units as u64;
        if head < seen || head > self.told {
            return Err(Fault::Index);
        }
        Ok(head)
    }

    /// True when `units` more units can be written.
    #[inline]
    pub fn ensure<M: Mem>(&mut self, mem: &M, units: usize) -> Result<bool, Fault> {
        let want = self.next + units as u64;
        if want <= self.free_to {
            return Ok(true);
        }
        self.refresh(mem, want)?;
        Ok(want <= self.free_to)
    }

    /// Looks how far the consumer has come, at least to `want`.
    fn refresh<M: Mem>(&mut self, mem: &M, want: u64) -> Result<(), Fault> {
        let s = &self.shape;
        if s.register {
            self.free_to = self.head(mem)? + s.units as u64;
            return Ok(());
        }
        let far = (self.next + PROBE.min(s.units as u64 / 4)).max(want);
        for to in [far, want] {
            match mem.get_acquire(s.at(to - 1) + 1) {
                0 => {
                    self.free_to = to;
                    return Ok(());
                }
                signal if signal & READY == 0 => return Err(Fault::Signal),
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes one line of a grouped ring (1 to 4 descriptors), or one packet of a ring of
    /// single descriptors (1 to 4 segments, one unit each), and publishes it. The caller has
    /// [`ensure`](Self::ensure)d the space.
    #[inline]
    pub fn publish<M: Mem>(&mut self, mem: &M, descs: &[Desc]) {
        debug_assert!(!descs.is_empty() && descs.len() <= MAX_SEGMENTS);
        let s = &self.shape;
        let ready = if s.register { 0 } else { READY };
        if s.group == 1 {
            // The first signal goes last: who sees it sees the whole packet.
            for (i, d) in descs.iter().enumerate().rev() {
                let at = s.at(self.next + i as u64);
                mem.put(at, d.addr);
                mem.put_release(at + 1, d.meta | ready);
            }
            self.next += descs.len() as u64;
        } else {
            let at = s.at(self.next);
            mem.put(at, descs[0].addr);
            for slot in 1..4 {
                let d = descs.get(slot).copied().unwrap_or_default();
                mem.put(at + 2 * slot, d.addr);
                mem.put(at + 2 * slot + 1, d.meta);
            }
            mem.put_release(at + 1, descs[0].meta | ready);
            self.next += 1;
        }
        if !s.register && self.next + OWN_AHEAD < self.free_to {
            mem.prefetch_write(s.at(self.next + OWN_AHEAD));
        }
    }

    /// Ends a burst: stores the tail register, if the ring has one and it moved.
    #[inline]
    pub fn commit<M: Mem>(&mut self, mem: &M) {
        if self.shape.register && self.told != self.next {
            mem.put_release(self.shape.tail, self.next);
            self.told = self.next;
        }
    }
}

/// Reading side of a ring.
#[derive(Clone, Debug)]
pub struct Consumer {
    shape: Shape,
    next: u64,
    /// Units below this index have been given back.
    released: u64,
    /// Register mode: units below this index are ready.
    ready_to: u64,
    lazy: u64,
    /// Units below this index have been fetched ahead.
    fetched: u64,
    /// Units found ready in a row.
    streak: u64,
}

impl Consumer {
    /// A consumer of a ring whose words are all zero. It gives units back when `lazy` of them
    /// are pending or the ring is three quarters consumed.
    pub fn new(shape: Shape, lazy: usize) -> Consumer {
        let lazy = (lazy as u64).min(shape.units as u64 * 3 / 4).max(1);
        Consumer { shape, next: 0, released: 0, ready_to: 0, lazy, fetched: 0, streak: 0 }
    }

    /// Takes the next line (grouped) or packet (single descriptors). Returns the number of
    /// descriptors copied to `out`, zero when nothing is ready. The values are untrusted.
    #[inline]
    pub fn poll<M: Mem>(&mut self, mem: &M, out: &mut [Desc; 4]) -> Result<usize, Fault> {
        let s = &self.shape;
        let first = if s.register {
            if self.next == self.ready_to {
                let tail = mem.get_acquire(s.tail);
                if tail < self.ready_to || tail - self.released > s.units as u64 {
                    return Err(Fault::Index);
                }
                self.ready_to = tail;
                if tail == self.next {
                    return Ok(0);
                }
            }
            mem.get(s.at(self.next) + 1)
        } else {
            let word = mem.get_acquire(s.at(self.next) + 1);
            if word & READY == 0 {
                self.streak = 0;
                return if word == 0 { Ok(0) } else { Err(Fault::Signal) };
            }
            // A lap ahead of what was given back lie this side's own uncleared lines.
            if self.next - self.released >= s.units as u64 {
                return Ok(0);
            }
            word & !READY
        };
        let at = s.at(self.next);
        out[0] = Desc { addr: mem.get(at), meta: first };
        if s.group == 4 {
            self.next += 1;
            // A line fetched before it is written costs the producer an invalidation, so
            // look ahead only as far as lines have been ready in a row.
            self.streak = (self.streak + 1).min(READ_AHEAD);
            self.fetched = self.fetched.max(self.next);
            while self.fetched < self.next + self.streak {
                mem.prefetch_read(s.at(self.fetched));
                self.fetched += 1;
            }
            let mut n = 1;
            while n < 4 {
                let d = Desc { addr: mem.get(at + 2 * n), meta: mem.get(at + 2 * n + 1) };
                if d.is_empty() {
                    break;
                }
                out[n] = d;
                n += 1;
            }
            if out[n - 1].more() {
                return Err(Fault::Chain);
            }
            return Ok(n);
        }
        let mut n = 1;
        while out[n - 1].more() {
            let index = self.next + n as u64;
            let at = s.at(index);
            if n == MAX_SEGMENTS || index - self.released >= s.units as u64 {
                return Err(Fault::Chain);
            }
            let meta = if s.register {
                if index >= self.ready_to {
                    return Err(Fault::Chain);
                }
                mem.get(at + 1)
            } else {
                let word = mem.get_acquire(at + 1);
                if word & READY == 0 {
                    return Err(Fault::Chain);
                }
                word & !READY
            };
            out[n] = Desc { addr: mem.get(at), meta };
            n += 1;
        }
        self.next += n as u64;
        Ok(n)
    }

    /// True when a unit, or a fault, waits.
    pub fn peek<M: Mem>(&self, mem: &M) -> bool {
        let s = &self.shape;
        if s.register {
            return self.next != self.ready_to || mem.get_acquire(s.tail) != self.next;
        }
        self.next - self.released < s.units as u64 && mem.get_acquire(s.at(self.next) + 1) != 0
    }

    /// Gives the polled units back to the producer, lazily.
    #[inline]
    pub fn release<M: Mem>(&mut self, mem: &M) {
        if self.next - self.released >= self.lazy {
            self.flush(mem);
        }
    }

    /// Gives the polled units back to the producer now.
    pub fn flush<M: Mem>(&mut self, mem: &M) {
        if self.released == self.next {
            return;
        }
        if self.shape.register {
            mem.put_release(self.shape.head, self.next);
        } else {
            for index in self.released..self.next {
                mem.put_release(self.shape.at(index) + 1, 0);
            }
        }
        self.released = self.next;
    }
}
