//! Layout of the region. Both sides compute it from the configuration, so no offset is ever read from shared memory.

use std::num::NonZeroU64;

use crate::config::{Config, Layout as Lines, Signal};
use crate::desc::Desc;
use crate::error::Fault;
use crate::pool::FreeRing;
use crate::ring::Shape;

/// First word of a region: the name, with the version of the layout in the low byte.
pub(crate) const MAGIC: u64 = 0x4343_4e49_4300_0003;
const PAGE: usize = 4096;
const LINE: usize = 64;
const LINE_WORDS: usize = LINE / 8;
/// Lines of the control pages before those of the queues.
const FIXED_LINES: usize = 3;

/// Word of the region's magic number.
pub(crate) const W_MAGIC: usize = 0;
/// Words written by the host: the epoch it asks for and the epoch that may run.
pub(crate) const W_EPOCH_ASK: usize = LINE_WORDS;
pub(crate) const W_EPOCH_GO: usize = LINE_WORDS + 1;
/// Word that is not zero while a side has found no buffer: the sides then give back the free ones in their stacks.
pub(crate) const W_HUNGER: usize = 2 * LINE_WORDS;
/// Per queue, written by the NIC: its term and the epoch it has stopped for, its fault, and whether it sleeps.
pub(crate) fn w_ack(queue: usize) -> usize {
    (FIXED_LINES + 2 * queue) * LINE_WORDS
}
pub(crate) fn w_fault(queue: usize) -> usize {
    w_ack(queue) + 1
}
pub(crate) fn w_nic_sleeps(queue: usize) -> usize {
    w_ack(queue) + 2
}
/// Per queue, written by the NIC: packets it had to drop since the last reset.
pub(crate) fn w_nic_drops(queue: usize) -> usize {
    w_ack(queue) + 3
}
/// Per queue, written by the host: whether it sleeps.
pub(crate) fn w_host_sleeps(queue: usize) -> usize {
    w_ack(queue) + LINE_WORDS
}

/// Size class of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Split from a large buffer.
    Small = 0,
    /// MTU-sized.
    Large = 1,
    /// Application object outside the pool; only ever lent to the NIC.
    Object = 2,
}

/// One array of equal buffers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub class: Class,
    base: usize,
    count: u32,
    shift: u32,
    first: u32,
    bytes: usize,
    /// Bytes from a buffer's start to its payload.
    lead: usize,
    /// Payload starts are staggered by the low bits of the index, in lines.
    stagger: u32,
}

impl Span {
    pub fn size(&self) -> usize {
        1 << self.shift
    }
    pub fn count(&self) -> u32 {
        self.count
    }
    pub fn first(&self) -> u32 {
        self.first
    }
    pub fn holds(&self, index: u32) -> bool {
        index.wrapping_sub(self.first) < self.count
    }
    /// Where the payload of the buffer at `place` of the span starts, from the span's start.
    #[inline]
    fn payload(&self, place: u32) -> usize {
        ((place as usize) << self.shift) + self.lead + (place & self.stagger) as usize * LINE
    }
}

/// The buffer that an address lies in, and the room from there to its end.
///
/// One word (index, room above it, class on top), so that it always travels in a register: a struct goes through the
/// stack in parts that the processor cannot forward, and each packet then waits for all stores before it, a third of
/// its cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place(NonZeroU64);

impl Place {
    #[inline(always)]
    pub fn index(self) -> u32 {
        self.0.get() as u32
    }
    /// Bytes from the address to the end of the buffer, at least 1.
    #[inline(always)]
    pub fn room(self) -> usize {
        (self.0.get() >> 32) as usize & 0xffff
    }
    #[inline(always)]
    pub fn class(self) -> Class {
        match self.0.get() >> 62 {
            0 => Class::Small,
            1 => Class::Large,
            _ => Class::Object,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct QueueLayout {
    pub tx: Shape,
    pub rx: Shape,
}

/// Offsets of all parts of the region, in bytes unless a name says words.
#[derive(Clone, Debug)]
pub(crate) struct RegionLayout {
    pub queues: Vec<QueueLayout>,
    pub spans: [Span; 3],
    /// Free rings of the small and the large class.
    pub pools: [FreeRing; 2],
    /// Bytes from the start of the region to the end of the rings and pools.
    pub control_bytes: usize,
    pub rings_start: usize,
    pub bytes: usize,
}

impl RegionLayout {
    pub fn new(config: &Config) -> RegionLayout {
        let rings_start = ((FIXED_LINES + 2 * config.queues as usize) * LINE).next_multiple_of(PAGE);
        let mut at = rings_start;
        let mut take = |bytes: usize| {
            let start = at;
            at = (at + bytes).next_multiple_of(PAGE);
            start
        };
        let slots = config.slots as usize;
        // With inline signals the host-only RX ring is a ring of single slots, because the
        // host fixed each slot's buffer before it knew the packets.
        let group_rx = config.shared_pool;
        let mut ring = |grouped: bool| {
            let (unit_words, group) = match config.layout {
                Lines::Grouped if grouped => (8, 4),
                Lines::Grouped | Lines::Packed => (2, 1),
                Lines::Padded => (8, 1),
            };
            let units = slots / group;
            let base = take(units * unit_words * 8);
            let registers = take(128);
            Shape {
                base: base / 8,
                units,
                unit_words,
                group,
                register: config.signal == Signal::Register,
                tail: registers / 8,
                head: registers / 8 + LINE_WORDS,
            }
        };
        let queues = (0..config.queues).map(|_| QueueLayout { tx: ring(true), rx: ring(group_rx) }).collect();
        let split = config.split();
        let small = split * (config.large_bytes / config.small_bytes);
        let large = config.large();
        let mut pool = |count: u32| {
            let slots = (count.max(1) as usize).next_power_of_two();
            FreeRing::new(take(128 + slots * 8) / 8, slots)
        };
        let pools = [pool(small), pool(large)];
        let control_bytes = take(0);
        let mut first = 0;
        let spare = (config.large_bytes - config.headroom - config.capacity()) as usize / LINE;
        let mut span = |class, count: u32, size: u32| {
            let (lead, lines) = if class == Class::Large { (config.headroom as usize, spare) } else { (0, 0) };
            let s = Span {
                class,
                base: take(count as usize * size as usize),
                count,
                shift: size.trailing_zeros(),
                first,
                bytes: count as usize * size as usize,
                lead,
                // The largest power of two of starts that the spare lines allow, less one.
                stagger: (1 << (lines + 1).ilog2()) - 1,
            };
            first += count;
            s
        };
        let spans = [
            span(Class::Small, small, config.small_bytes),
            span(Class::Large, large, config.large_bytes),
            span(Class::Object, config.objects, config.object_bytes),
        ];
        RegionLayout { queues, spans, pools, control_bytes, rings_start, bytes: at }
    }

    /// Number of buffers and objects together.
    pub fn total(&self) -> usize {
        let last = &self.spans[2];
        (last.first + last.count) as usize
    }

    /// Number of buffers that live in the pool.
    pub fn pooled(&self) -> usize {
        self.spans[2].first as usize
    }

    pub fn span_of(&self, index: u32) -> &Span {
        self.spans.iter().rev().find(|s| index >= s.first).unwrap_or(&self.spans[0])
    }

    /// Payload start of a buffer by its index, which must be valid.
    #[inline]
    pub fn addr(&self, index: u32) -> u64 {
        let s = if index < self.spans[1].first {
            &self.spans[0]
        } else if index < self.spans[2].first {
            &self.spans[1]
        } else {
            &self.spans[2]
        };
        (s.base + s.payload(index - s.first)) as u64
    }

    /// Payload start of a buffer of a known class by its index; see [`addr`](Self::addr).
    #[inline]
    pub fn addr_of(&self, class: Class, index: u32) -> u64 {
        let s = &self.spans[class as usize];
        (s.base + s.payload(index - s.first)) as u64
    }

    /// The buffer an untrusted address lies in.
    #[inline(always)]
    pub fn locate(&self, addr: u64) -> Option<Place> {
        let [a, b, c] = &self.spans;
        let addr = addr as usize;
        let s = if addr.wrapping_sub(b.base) < b.bytes {
            b
        } else if addr.wrapping_sub(a.base) < a.bytes {
            a
        } else if addr.wrapping_sub(c.base) < c.bytes {
            c
        } else {
            return None;
        };
        let off = addr - s.base;
        let room = s.size() - (off & (s.size() - 1));
        let index = u64::from(s.first) + (off >> s.shift) as u64;
        NonZeroU64::new(index | (room as u64) << 32 | (s.class as u64) << 62).map(Place)
    }

    /// Validates an untrusted descriptor: none if it does not lie inside one buffer.
    #[inline(always)]
    pub fn check(&self, d: Desc) -> Option<Place> {
        let len = d.len() as usize;
        self.locate(d.addr).filter(|p| len.wrapping_sub(1) < p.room())
    }

    /// Names the fault of a descriptor that failed the check.
    #[cold]
    pub fn why(&self, d: Desc) -> Fault {
        if self.locate(d.addr).is_some() {
            Fault::Length
        } else {
            Fault::Address
        }
    }
}

/// The order in which a pool of `count` buffers of `size` bytes is filled: stride through it
/// so that neighbours lie in different pages (prefetchers stop at a page), or in sequence.
pub(crate) fn fill_order(count: u32, size: usize, nonseq: bool) -> impl Iterator<Item = u32> {
    let stride = if nonseq { coprime_stride(count, size) } else { 1 };
    (0..u64::from(count)).map(move |i| (i * u64::from(stride) % u64::from(count)) as u32)
}

fn coprime_stride(count: u32, size: usize) -> u32 {
    let gcd = |mut a: u32, mut b: u32| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let least = (PAGE / size + 1).max(2) as u32;
    // Too small a pool has no such stride; any order then has neighbours in one page.
    (least..count.saturating_sub(least)).find(|&s| gcd(s, count) == 1).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fill_order_visits_each_buffer_once_and_never_neighbours() {
        for (count, size) in [(16384u32, 128usize), (1536, 4096), (1000, 2048), (97, 256)] {
            let order: Vec<u32> = fill_order(count, size, true).collect();
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..count), "{count} x {size} is a permutation");
            for pair in order.windows(2) {
                let apart = (i64::from(pair[1]) - i64::from(pair[0])).unsigned_abs() as usize * size;
                assert!(apart >= PAGE && pair[0].abs_diff(pair[1]) > 1, "{count} x {size}: {pair:?}");
            }
        }
        assert!(fill_order(8, 128, false).eq(0..8));
    }

    #[test]
    fn locate_finds_exactly_the_bytes_of_the_buffers() {
        let config = Config { objects: 3, ..Config::default() };
        let lay = RegionLayout::new(&config);
        for index in [0, lay.pooled() as u32 - 1, lay.pooled() as u32, lay.total() as u32 - 1] {
            let addr = lay.addr(index);
            let size = lay.span_of(index).size();
            let first = lay.locate(addr).expect("start of a buffer");
            let last = lay.locate(addr + size as u64 - 1).expect("end of a buffer");
            assert_eq!((first.index(), first.room()), (index, size));
            assert_eq!((last.index(), last.room()), (index, 1));
            assert_eq!(first.class(), lay.span_of(index).class);
        }
        let end = lay.spans[2].base + lay.spans[2].bytes;
        for addr in [0, 64, lay.control_bytes as u64 - 1, end as u64, u64::MAX] {
            assert!(lay.locate(addr).is_none(), "{addr:#x}");
        }
    }

    #[test]
    fn payloads_start_behind_the_headroom_and_are_staggered() {
        let config = Config { headroom: 128, payload: 2048, small: false, ..Config::default() };
        let lay = RegionLayout::new(&config);
        let base = lay.addr(0) - 128;
        let mut starts = std::collections::BTreeSet::new();
        for index in 0..64 {
            let start = lay.addr(index) - base - u64::from(index) * 4096;
            assert!(start >= 128 && start % 64 == 0, "{start}");
            let place = lay.locate(lay.addr(index)).expect("a buffer");
            assert_eq!(place.index(), index);
            assert!(place.room() >= 2048, "{}", place.room());
            starts.insert(start);
        }
        // 4096 - 128 - 2048 bytes are 30 lines to spare, hence 16 starts.
        assert_eq!(starts.len(), 16);
    }
}
