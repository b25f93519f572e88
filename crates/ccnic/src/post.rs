//! The RX ring of host-only buffer management: the host posts blank buffers slot by slot and
//! the NIC overwrites each with the packet it put there, in order, as a PCIe NIC does.

use crate::desc::{Desc, MAX_SEGMENTS, POSTED, READY};
use crate::error::Fault;
use crate::mem::Mem;
use crate::ring::Shape;

/// Host side: posts blanks and takes packets.
#[derive(Clone, Debug)]
pub struct PostHost {
    shape: Shape,
    /// Most slots that are posted at a time.
    most: usize,
    posted: u64,
    next: u64,
    told: u64,
    ready_to: u64,
}

impl PostHost {
    /// Creates the host side over a ring of single-slot units whose words are all zero. `shape.head` is the register
    /// the host writes, `shape.tail` the one the NIC writes. At most `most` slots are posted at a time. One line's worth
    /// stays empty in any case, so that the host never writes the line the NIC is at.
    pub fn new(shape: Shape, most: usize) -> PostHost {
        let most = most.min(shape.units - 4);
        PostHost { shape, most, posted: 0, next: 0, told: 0, ready_to: 0 }
    }

    /// Slots that may be posted.
    pub fn vacant(&self) -> usize {
        self.most - (self.posted - self.next) as usize
    }

    /// Slots to be posted in one go, two lines' worth, unless the NIC would then be left without those of a packet.
    pub fn batch(&self) -> usize {
        (self.most.saturating_sub(MAX_SEGMENTS)).clamp(1, 8)
    }

    /// Posts one blank buffer; the caller checked [`vacant`](Self::vacant).
    pub fn post<M: Mem>(&mut self, mem: &M, addr: u64) {
        let at = self.shape.at(self.posted);
        mem.put(at, addr);
        mem.put_release(at + 1, if self.shape.register { 0 } else { POSTED });
        self.posted += 1;
    }

    /// Ends a run of posts.
    pub fn commit<M: Mem>(&mut self, mem: &M) {
        if self.shape.register && self.told != self.posted {
            mem.put_release(self.shape.head, self.posted);
            self.told = self.posted;
        }
    }

    /// Takes the next packet, if one is ready; returns the number of its segments. The values
    /// are untrusted.
    #[inline]
    pub fn poll<M: Mem>(&mut self, mem: &M, out: &mut [Desc; 4]) -> Result<usize, Fault> {
        let mut n = 0;
        loop {
            let Some(d) = self.segment(mem, self.next + n as u64)? else {
                // The NIC stores the first signal of a packet last.
                return if n == 0 { Ok(0) } else { Err(Fault::Chain) };
            };
            out[n] = d;
            n += 1;
            if !d.more() {
                self.next += n as u64;
                return Ok(n);
            }
            if n == MAX_SEGMENTS {
                return Err(Fault::Chain);
            }
        }
    }

    #[inline]
    fn segment<M: Mem>(&mut self, mem: &M, index: u64) -> Result<Option<Desc>, Fault> {
        if index == self.posted {
            return Ok(None);
        }
        let at = self.shape.at(index);
        let meta = if self.shape.register {
            if index == self.ready_to {
                let tail = mem.get_acquire(self.shape.tail);
                if tail < self.ready_to || tail > self.posted {
                    return Err(Fault::Index);
                }
                self.ready_to = tail;
                if tail == index {
                    return Ok(None);
                }
            }
            mem.get(at + 1)
        } else {
            let word = mem.get_acquire(at + 1);
            if word & READY == 0 {
                return if word == POSTED { Ok(None) } else { Err(Fault::Signal) };
            }
            word & !READY
        };
        Ok(Some(Desc { addr: mem.get(at), meta }))
    }

    /// True when a packet, or a fault, waits.
    pub fn peek<M: Mem>(&self, mem: &M) -> bool {
        if self.next == self.posted {
            return false;
        }
        if self.shape.register {
            return mem.get_acquire(self.shape.tail) != self.next;
        }
        mem.get_acquire(self.shape.at(self.next) + 1) != POSTED
    }
}

/// NIC side: takes blanks and returns them filled.
#[derive(Debug)]
pub struct PostNic {
    shape: Shape,
    taken: u64,
    next: u64,
    told: u64,
    posted_to: u64,
}

impl PostNic {
    /// Creates the NIC side of the ring that [`PostHost::new`] describes.
    pub fn new(shape: Shape) -> PostNic {
        PostNic { shape, taken: 0, next: 0, told: 0, posted_to: 0 }
    }

    /// Address of the next blank buffer, if the host has posted one. Untrusted.
    #[inline]
    pub fn take<M: Mem>(&mut self, mem: &M) -> Result<Option<u64>, Fault> {
        // One lap ahead of what was returned, the slots are this side's own packets.
        if self.taken - self.next >= self.shape.units as u64 {
            return Ok(None);
        }
        let at = self.shape.at(self.taken);
        if self.shape.register {
            if self.taken == self.posted_to {
                let posted = mem.get_acquire(self.shape.head);
                if posted < self.posted_to || posted - self.next > self.shape.units as u64 {
                    return Err(Fault::Index);
                }
                self.posted_to = posted;
                if posted == self.taken {
                    return Ok(None);
                }
            }
        } else {
            match mem.get_acquire(at + 1) {
                POSTED => {}
                // Never posted, or a packet the host has not taken yet.
                word if word == 0 || word & READY != 0 => return Ok(None),
                _ => return Err(Fault::Signal),
            }
        }
        self.taken += 1;
        Ok(Some(mem.get(at)))
    }

    /// Number of blanks taken and not returned.
    pub fn open(&self) -> usize {
        (self.taken - self.next) as usize
    }

    /// Returns one packet (its segments in order), in blanks that were taken: never more than
    /// [`open`](Self::open).
    #[inline]
    pub fn fill<M: Mem>(&mut self, mem: &M, descs: &[Desc]) {
        assert!(descs.len() <= self.open(), "a packet goes into blanks that were taken");
        let ready = if self.shape.register { 0 } else { READY };
        for (i, d) in descs.iter().enumerate().rev() {
            let at = self.shape.at(self.next + i as u64);
            mem.put(at, d.addr);
            mem.put_release(at + 1, d.meta | ready);
        }
        self.next += descs.len() as u64;
    }

    /// Ends a burst.
    pub fn commit<M: Mem>(&mut self, mem: &M) {
        if self.shape.register && self.told != self.next {
            mem.put_release(self.shape.tail, self.next);
            self.told = self.next;
        }
    }
}
