//! Packet buffers (mbufs) of a poll-mode driver: a pool in memory, and for each core a cache from which the most
//! recently returned buffer is taken first.

use crate::core::{Op, Program};
use crate::kernel::units::Size;
use crate::kernel::{Int, LineAddr};
use crate::memory::LINE;
use std::collections::VecDeque;

/// Bytes of a buffer in the pool: the object's header, followed by the buffer's metadata, headroom and room for a frame
/// (DPDK's defaults).
const HEADER: u64 = 64;
const METADATA: u64 = 128;
const HEADROOM: u64 = 128;
/// Lines from one buffer with room for `data` bytes to the next: an odd number, which spreads buffers over channels.
pub fn stride(data: Size) -> u64 {
    (HEADER + METADATA + HEADROOM + data.0) / LINE
}
/// Buffer addresses per line of the pool's ring.
const POINTERS: u64 = LINE / 8;

/// Memory of a pool: its buffers, and the ring of the buffers that are in no cache. Two lines behind the ring hold its
/// consumer and producer index, which cores that share the ring move with a compare-and-swap. With a cache these
/// accesses are not simulated.
#[derive(Clone, Copy, Debug)]
pub struct PoolMemory {
    /// First line of the buffers.
    pub buffers: LineAddr,
    /// Lines from one buffer to the next.
    pub stride: u64,
    /// First line of the ring of free buffers.
    pub ring: LineAddr,
    /// Number and first line of the buffers that lie elsewhere, if the pool's first buffers lie elsewhere.
    pub first: Option<(u32, LineAddr)>,
}

/// One core's part of a pool.
#[derive(Clone)]
pub struct Mempool {
    memory: PoolMemory,
    of: u64,
    /// Number of buffers that the cache is filled up to and emptied down to.
    cache_size: usize,
    cache: Vec<u32>,
    ring: VecDeque<u32>,
    /// Number of buffers ever taken from the ring.
    from: u64,
    /// Number of buffers ever put into the ring, which wraps around.
    to: u64,
}

impl Mempool {
    /// A pool of `of` buffers.
    pub fn new(memory: PoolMemory, of: u32, cache_size: u32) -> Mempool {
        let ring = (0..of).collect();
        let cache_size = cache_size.to_usize();
        Mempool { memory, of: of.into(), cache_size, cache: Vec::with_capacity(2 * cache_size), ring, from: 0, to: 0 }
    }

    /// Takes the first `n` buffers for the set-up of a receive ring, bypassing the cache.
    pub fn set_up(&mut self, n: u64) -> impl Iterator<Item = u32> {
        self.from += n;
        self.ring.drain(..n.to_usize()).collect::<Vec<_>>().into_iter()
    }

    /// Lines of the pool's ring, and of its two indices where there is no cache.
    pub fn ring_lines(of: u32, cache_size: u32) -> u64 {
        u64::from(of).div_ceil(POINTERS) + if cache_size == 0 { 2 } else { 0 }
    }

    /// Moves an index of the ring: 0 for the index at which buffers are taken, 1 for the index at which they are put.
    fn move_end(&self, end: u64, p: &mut Program) {
        if self.cache_size == 0 {
            p.push(Op::Atomic { line: self.memory.ring + self.of.div_ceil(POINTERS) + end });
        }
    }

    /// First line of a buffer's metadata.
    pub fn metadata(&self, buffer: u32) -> LineAddr {
        let (base, at) = match self.memory.first {
            Some((n, base)) if buffer < n => (base, buffer),
            Some((n, _)) => (self.memory.buffers, buffer - n),
            None => (self.memory.buffers, buffer),
        };
        base + u64::from(at) * self.memory.stride + HEADER / LINE
    }

    /// First line of a buffer's data.
    pub fn data(&self, buffer: u32) -> LineAddr {
        self.metadata(buffer) + (METADATA + HEADROOM) / LINE
    }

    /// Lines of the ring that hold `n` pointers from number `from` on.
    fn pointers(&self, from: u64, n: u64) -> impl Iterator<Item = LineAddr> + use<> {
        let (base, of) = (self.memory.ring, self.of);
        (from / POINTERS..(from + n).div_ceil(POINTERS)).map(move |l| base + l % of.div_ceil(POINTERS))
    }

    /// Takes a buffer; the operations are appended to `p` when the cache must be refilled. None when no buffer is left.
    pub fn get(&mut self, p: &mut Program) -> Option<u32> {
        self.get_bulk(0, p)
    }

    /// Takes buffer number `i` of several that are allocated together (`rte_pktmbuf_alloc_bulk`): the ring's index
    /// moves with the first buffer.
    pub fn get_bulk(&mut self, i: usize, p: &mut Program) -> Option<u32> {
        if self.cache.is_empty() {
            let n = (self.cache_size + 1).min(self.ring.len());
            if i == 0 {
                self.move_end(0, p);
            }
            for line in self.pointers(self.from, n.to_u64()) {
                p.push(Op::Load { line, lines: 1 });
            }
            self.from += n.to_u64();
            self.cache.extend(self.ring.drain(..n));
        }
        self.cache.pop()
    }

    /// Returns a buffer; the operations are appended to `p` when the cache overflows, at one and a half times its size.
    pub fn put(&mut self, buffer: u32, p: &mut Program) {
        self.cache.push(buffer);
        if self.cache.len() > self.cache_size + self.cache_size / 2 {
            let n = self.cache.len() - self.cache_size;
            self.move_end(1, p);
            for line in self.pointers(self.to, n.to_u64()) {
                p.push(Op::Store { line, lines: 1 });
            }
            self.to += n.to_u64();
            self.ring.extend(self.cache.drain(self.cache_size..));
        }
    }

    /// Splits off a part for a second core, which frees buffers that the pool's own core has taken: a separate cache,
    /// which is full from the start.
    pub fn part(&mut self) -> Mempool {
        let cache: Vec<u32> = self.ring.drain(self.ring.len() - self.cache_size..).collect();
        Mempool { cache, ring: VecDeque::new(), from: 0, to: 0, ..self.clone() }
    }

    /// Transfers the buffers that a part has put into the ring to the core that takes buffers from the ring.
    pub fn hand_over(&mut self, to: &mut VecDeque<u32>) {
        to.extend(self.ring.drain(..));
    }
    /// Transfers the buffers that another part has put into the ring to this core.
    pub fn take_over(&mut self, from: &mut VecDeque<u32>) {
        self.ring.extend(from.drain(..));
    }

    /// Number of buffers that are free.
    pub fn free(&self) -> usize {
        self.cache.len() + self.ring.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(of: u32, cache: u32) -> Mempool {
        let (buffers, ring, stride) = (LineAddr(1 << 12), LineAddr(1 << 20), stride(Size(2048)));
        Mempool::new(PoolMemory { buffers, ring, stride, first: None }, of, cache)
    }

    #[test]
    fn the_cache_hands_out_first_what_came_back_last() {
        let (mut m, mut p) = (pool(64, 8), Program::default());
        let taken: Vec<u32> = (0..4).map(|_| m.get(&mut p).expect("enough")).collect();
        for b in &taken {
            m.put(*b, &mut p);
        }
        let again: Vec<u32> = (0..4).map(|_| m.get(&mut p).expect("enough")).collect();
        assert_eq!(again, taken.into_iter().rev().collect::<Vec<_>>());
    }

    #[test]
    fn the_first_buffers_of_a_shared_pool_lie_apart_and_are_set_up_in_order_past_the_cache() {
        let (buffers, ring, stride) = (LineAddr(1 << 12), LineAddr(1 << 20), stride(Size(2048)));
        let memory = PoolMemory { buffers, ring, stride, first: Some((8, LineAddr(1 << 16))) };
        let mut m = Mempool::new(memory, 64, 8);
        let taken: Vec<u32> = m.set_up(7).collect();
        assert_eq!(taken, (0..7).collect::<Vec<_>>());
        assert_eq!((m.metadata(0).0, m.metadata(7).0), ((1 << 16) + 1, (1 << 16) + 7 * stride + 1));
        assert_eq!((m.metadata(8).0, m.metadata(63).0), ((1 << 12) + 1, (1 << 12) + 55 * stride + 1));
        let mut rest: Vec<u32> = std::iter::from_fn(|| m.get(&mut Program::default())).collect();
        rest.sort_unstable();
        assert_eq!(rest, (7..64).collect::<Vec<_>>());
    }

    #[test]
    fn no_buffer_is_lost_or_handed_out_twice_and_the_ring_is_touched_only_beyond_the_cache() {
        let (mut m, mut p) = (pool(64, 8), Program::default());
        let mut out: Vec<u32> = std::iter::from_fn(|| m.get(&mut p)).collect();
        assert_eq!(m.free(), 0);
        out.sort_unstable();
        assert_eq!(out, (0..64).collect::<Vec<_>>());
        p.ops.clear();
        for b in out.drain(..12) {
            m.put(b, &mut p);
        }
        assert!(p.ops.is_empty(), "twelve fit a cache of eight, which may have half as many more");
        m.put(out.pop().expect("one more"), &mut p);
        assert_eq!(p.ops, [Op::Store { line: LineAddr(1 << 20), lines: 1 }], "five pointers go to the ring");
        assert_eq!((m.free(), m.cache.len(), m.ring.len()), (13, 8, 5));
    }

    #[test]
    fn without_a_cache_buffers_go_out_in_the_order_in_which_they_came_back() {
        let (mut m, mut p) = (pool(8, 0), Program::default());
        let taken: Vec<u32> = (0..8).map(|_| m.get(&mut p).expect("enough")).collect();
        assert_eq!((taken.as_slice(), m.get(&mut p)), ([0, 1, 2, 3, 4, 5, 6, 7].as_slice(), None));
        for b in [5, 2, 7] {
            m.put(b, &mut p);
        }
        assert_eq!([(); 3].map(|()| m.get(&mut p)), [Some(5), Some(2), Some(7)]);
        let (load, store) =
            (Op::Load { line: LineAddr(1 << 20), lines: 1 }, Op::Store { line: LineAddr(1 << 20), lines: 1 });
        let end = |i: u64| Op::Atomic { line: LineAddr((1 << 20) + 1 + i) };
        let times = |op| p.ops.iter().filter(|o| **o == op).count();
        assert_eq!((times(load), times(store)), (11, 3), "each goes through the ring, whose eight pointers are a line");
        assert_eq!(
            (times(end(0)), times(end(1))),
            (12, 3),
            "each is one compare-and-swap, the one that finds nothing too"
        );
    }

    /// A buffer is 64 + 128 + 128 + 2048 bytes.
    #[test]
    fn buffers_lie_one_after_the_other_with_their_metadata_before_their_data() {
        let m = pool(64, 8);
        assert_eq!(m.metadata(0), LineAddr((1 << 12) + 1));
        assert_eq!(m.data(0) - m.metadata(0), 4);
        assert_eq!(m.metadata(1) - m.metadata(0), 37);
        assert_eq!(stride(Size(9216)), (320 + 9216) / 64, "room for a jumbo frame");
    }
}
