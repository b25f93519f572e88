//! The buffer pool of CC-NIC and the recycling stacks in front of it, without timing: docs/ccnic/protocol.md, "Pool".

use crate::kernel::{Int, LineAddr};
use std::collections::VecDeque;

/// Buffer addresses per line of a free ring.
const POINTERS: u64 = 8;
/// Bytes of a page, which prefetchers do not cross.
const PAGE: u32 = 4096;
/// Maximum number of buffers that one operation takes from the pool.
const SCRATCH: usize = 256;

/// Size class of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SizeClass {
    /// A small buffer.
    Small,
    /// A large buffer.
    Large,
}

impl SizeClass {
    /// Index of the size class in pairs that hold one value per size class.
    const fn index(self) -> usize {
        match self {
            SizeClass::Small => 0,
            SizeClass::Large => 1,
        }
    }
}

/// Access of a pool operation to a line that host and NIC share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PoolAccess {
    /// Read of the line.
    Read(LineAddr),
    /// Write of the line.
    Write(LineAddr),
    /// Locked read and write of one word.
    Atomic(LineAddr),
}

/// Order of the buffers in a new pool of `count` buffers of `size` bytes: sequential, or with a stride that puts
/// neighbours into different pages.
pub fn fill_order(count: u32, size: u32, nonsequential: bool) -> impl Iterator<Item = u32> {
    let gcd = |mut a: u32, mut b: u32| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let least = (PAGE / size + 1).max(2);
    let coprime = (least..count.saturating_sub(least)).find(|&s| gcd(s, count) == 1).unwrap_or(1);
    let stride = u64::from(if nonsequential { coprime } else { 1 });
    (0..u64::from(count)).map(move |i| (i * stride % u64::from(count)).to_u32())
}

/// Free buffers of one class: a ring that all threads of both sides put buffers into and take buffers from.
#[derive(Clone, Debug)]
pub struct FreeRing {
    /// Line of the head; the line of the tail and the slots follow.
    base: LineAddr,
    slots: u64,
    head: u64,
    free: VecDeque<u32>,
}

impl FreeRing {
    /// Lines of a ring for `count` buffers.
    pub fn lines(count: u32) -> u64 {
        2 + u64::from(count.max(1)).next_power_of_two().div_ceil(POINTERS)
    }

    /// A ring at line `base` with the buffers `free`.
    pub fn new(base: LineAddr, free: impl Iterator<Item = u32>) -> FreeRing {
        let free: VecDeque<u32> = free.collect();
        FreeRing { base, slots: (free.len().max(1).to_u64()).next_power_of_two(), head: 0, free }
    }

    fn lines_of(&self, from: u64, n: u64) -> impl Iterator<Item = LineAddr> + use<> {
        let (base, all) = (self.base + 2, self.slots.div_ceil(POINTERS));
        (from / POINTERS..(from + n).div_ceil(POINTERS)).map(move |l| base + l % all)
    }

    /// Puts buffers into the ring: an atomic add, and plain stores.
    pub fn put(&mut self, buffers: impl ExactSizeIterator<Item = u32>, touch: &mut impl FnMut(PoolAccess)) {
        touch(PoolAccess::Atomic(self.base + 1));
        let tail = self.head + self.free.len().to_u64();
        self.lines_of(tail, buffers.len().to_u64()).for_each(|l| touch(PoolAccess::Write(l)));
        self.free.extend(buffers);
    }

    /// Takes up to `most` buffers: reads the slots, and then claims them with a compare-and-swap.
    pub fn take(&mut self, most: usize, touch: &mut impl FnMut(PoolAccess)) -> Vec<u32> {
        let n = most.min(self.free.len());
        touch(PoolAccess::Read(self.base));
        self.lines_of(self.head, n.max(1).to_u64()).for_each(|l| touch(PoolAccess::Read(l)));
        if n > 0 {
            touch(PoolAccess::Atomic(self.base));
        }
        self.head += n.to_u64();
        self.free.drain(..n).collect()
    }

    /// Number of free buffers in the ring.
    pub fn free(&self) -> usize {
        self.free.len()
    }
}

/// Pools of both classes that some threads share, and whether one of these threads has found no buffer.
#[derive(Clone, Debug)]
pub struct Pools {
    /// Ring of free buffers of each class: small, large.
    pub rings: [FreeRing; 2],
    /// Number of buffers of each class.
    pub count: [u32; 2],
    /// Number of the first large buffer; all small buffers have smaller numbers.
    large_from: u32,
    /// Bytes of a small buffer.
    pub small_bytes: u32,
    hunger: bool,
}

impl Pools {
    /// Full pools, whose small buffers are numbered below `large_from`.
    pub fn new(rings: [FreeRing; 2], large_from: u32, small_bytes: u32) -> Pools {
        let count = [0, 1].map(|c: usize| rings[c].free().to_u32());
        Pools { rings, count, large_from, small_bytes, hunger: false }
    }

    /// Size class of buffer number `buffer`.
    pub fn class_of(&self, buffer: u32) -> SizeClass {
        if buffer < self.large_from {
            SizeClass::Small
        } else {
            SizeClass::Large
        }
    }
}

/// Counters of one thread's pool operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PoolCounts {
    /// Number of buffers moved from the pool.
    pub takes: u64,
    /// Number of buffers moved to the pool.
    pub puts: u64,
    /// Calls that found fewer buffers than they needed.
    pub starved: u64,
    /// Large buffers allocated for packets that would have fitted a small one.
    pub fallbacks: u64,
}

/// Free buffers that a thread keeps for later allocations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the documentation of a variant explains its fields")]
pub enum BufferCaching {
    /// The thread keeps no buffers after a burst.
    Nothing,
    /// A stack of at most `most` buffers, which reuses freed buffers and is refilled with `bulk` buffers at a time.
    Stack { most: u32, bulk: u32 },
    /// A cache of `size` buffers like that of `rte_mempool` (DPDK 22.11).
    Cache { size: u32 },
}

/// One thread's stacks or caches of free buffers.
#[derive(Clone, Debug)]
pub struct BufferCache {
    stacks: [Vec<u32>; 2],
    /// Buffers that a burst has freed and that are not in a cache yet.
    freed: [Vec<u32>; 2],
    /// Maximum number of buffers in a stack: all stacks together hold at most half of the pool.
    most: [usize; 2],
    keeps: BufferCaching,
    hungry: bool,
    /// Counts of the thread's pool operations.
    pub counts: PoolCounts,
}

impl BufferCache {
    /// State of a thread of one of the `queues` queue pairs that use these pools.
    pub fn new(pools: &Pools, queues: u32, keeps: BufferCaching) -> BufferCache {
        let stack = if let BufferCaching::Stack { most, .. } = keeps { most } else { 0 };
        let most = pools.count.map(|n| stack.min(n / (4 * queues)).to_usize());
        let [stacks, freed] = Default::default();
        BufferCache { stacks, freed, most, keeps, hungry: false, counts: PoolCounts::default() }
    }

    /// Number of buffers in the thread's stacks or caches.
    pub fn stacked(&self) -> usize {
        self.stacks.iter().chain(&self.freed).map(Vec::len).sum()
    }

    /// Allocates up to `n` buffers for packets of `hint` bytes (0: unknown); small buffers fall back to large ones.
    pub fn alloc(&mut self, pools: &mut Pools, hint: u32, n: usize, touch: &mut impl FnMut(PoolAccess)) -> Vec<u32> {
        let small = pools.count[0] > 0 && hint != 0 && hint <= pools.small_bytes;
        let mut out = Vec::with_capacity(n);
        if small {
            self.alloc_class(pools, SizeClass::Small, n, &mut out, touch);
            self.counts.fallbacks += (n - out.len()).to_u64();
        }
        self.alloc_class(pools, SizeClass::Large, n, &mut out, touch);
        let short = out.len() < n;
        if short || self.hungry {
            self.counts.starved += u64::from(short);
            self.hungry = short;
            pools.hunger = short;
        }
        out
    }

    fn alloc_class(
        &mut self,
        pools: &mut Pools,
        class: SizeClass,
        n: usize,
        out: &mut Vec<u32>,
        touch: &mut impl FnMut(PoolAccess),
    ) {
        let c = class.index();
        while out.len() < n {
            if self.stacks[c].is_empty() {
                let (short, free) = (n - out.len(), pools.rings[c].free());
                let want = match self.keeps {
                    BufferCaching::Stack { bulk, .. } if self.most[c] > 0 => {
                        (bulk.to_usize()).min(self.most[c]).min(SCRATCH)
                    }
                    // The cache is filled beyond the number that is missing, or is bypassed.
                    BufferCaching::Cache { size } if short + size.to_usize() <= free => short + size.to_usize(),
                    _ => short.min(SCRATCH),
                };
                let taken = pools.rings[c].take(want, touch);
                if taken.is_empty() {
                    return;
                }
                self.counts.takes += taken.len().to_u64();
                self.stacks[c].extend(taken.into_iter().rev());
            }
            out.extend(self.stacks[c].pop());
        }
    }

    /// Frees a buffer, which the thread allocates next; with a cache, the buffer enters the cache only when the burst
    /// has ended.
    pub fn free(&mut self, pools: &mut Pools, buffer: u32, touch: &mut impl FnMut(PoolAccess)) {
        let c = pools.class_of(buffer).index();
        if let BufferCaching::Cache { .. } = self.keeps {
            return self.freed[c].push(buffer);
        }
        self.stacks[c].push(buffer);
        if matches!(self.keeps, BufferCaching::Stack { .. }) && self.stacks[c].len() > self.most[c] {
            let n = self.stacks[c].len() - self.most[c] / 2;
            self.spill(pools, c, n, touch);
        }
    }

    /// Ends a burst of frees: buffers that the thread does not keep go to the pool, and so do the buffers of its stacks
    /// while a thread starves.
    pub fn free_done(&mut self, pools: &mut Pools, touch: &mut impl FnMut(PoolAccess)) {
        if let BufferCaching::Cache { size } = self.keeps {
            return (0..2).for_each(|c| self.cache_freed(pools, c, size.to_usize() * 3 / 2, touch));
        }
        if matches!(self.keeps, BufferCaching::Stack { .. }) && !pools.hunger {
            return;
        }
        for c in 0..2 {
            let n = self.stacks[c].len();
            self.spill(pools, c, n, touch);
        }
    }

    /// Moves a burst of freed buffers to the cache, which is emptied first if it would hold more than `most`.
    fn cache_freed(&mut self, pools: &mut Pools, c: usize, most: usize, touch: &mut impl FnMut(PoolAccess)) {
        let mut freed = std::mem::take(&mut self.freed[c]);
        if freed.len() > most {
            self.counts.puts += freed.len().to_u64();
            return pools.rings[c].put(freed.into_iter(), touch);
        }
        if self.stacks[c].len() + freed.len() > most {
            let n = self.stacks[c].len();
            self.spill(pools, c, n, touch);
        }
        self.stacks[c].append(&mut freed);
    }

    /// Moves the `n` least recently freed buffers of a stack to the pool.
    fn spill(&mut self, pools: &mut Pools, c: usize, n: usize, touch: &mut impl FnMut(PoolAccess)) {
        if n > 0 {
            self.counts.puts += n.to_u64();
            pools.rings[c].put(self.stacks[c].drain(..n), touch);
        }
    }
}
