//! A set-associative tag array of one cache, with way masks and a choice of replacement policies.

mod contents;
mod move_log;

pub use super::indexing::{shape, Indexing};
use super::received_lines::{ChangeLog, LineMove};
pub use super::replacement::Replacement;
use super::ways::{least, nth_bit, spread, tag_in, word_of, Block};
use crate::kernel::{hint::prefetch, rng::mix};
use crate::kernel::{Int, LineAddr};
use std::ops::Range;

/// Length of the sequence of slices that `InterleavedSlices` permutes, as a power of two.
const SEQUENCE_BITS: u32 = 14;

/// Largest age of a line; the ages of a set are renumbered before its clock exceeds it.
const OLD: u8 = u8::MAX;
const SLICE_BITS: u32 = 50;
/// Increment of a set's clock for one use.
const TICK: u32 = 1 << 24;

/// A line that an inserted line displaced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Victim {
    /// The displaced line.
    pub line: LineAddr,
    /// Whether the displaced line is dirty.
    pub dirty: bool,
    /// Whether the line was marked; see [`CacheArray::mark`].
    pub marked: bool,
}

/// Largest number of ways with which a set fits into one block.
const NARROW: u32 = 12;

/// Tags, recency and dirtiness of the lines of one cache; the array holds no data and models no time.
///
/// A set takes one block or two. Its tags come first; in the last block follow a byte of age for each way and a word
/// with the dirty bits. The top byte of this word holds the set's clock of uses (LRU) or the way used last (NMRU).
/// Marks lie in the last word of the last block, which is the word of the dirty bits when a set fits into one block.
#[derive(Clone)]
pub struct CacheArray {
    pub(super) ways: u32,
    sets: u32,
    slices: u32,
    /// Reciprocal of the number of slices: 2^SLICE_BITS / slices, rounded up.
    per_slice: u64,
    indexing: Indexing,
    /// Whether a set takes two blocks.
    wide: bool,
    set_bits: u32,
    pub(super) policy: Replacement,
    blocks: Vec<Block>,
    /// Mask of all ways.
    all: u32,
    /// Mask for `least`: 255 where a byte of the second half of a set's last block holds no age.
    closed: [u8; 32],
    /// Last mask of a part of the ways, and the corresponding mask for `least`.
    some: (u32, [u8; 32]),
    /// Tree bits of each set, for tree-PLRU.
    pub(super) tree: Vec<u32>,
    dice: u64,
    held: usize,
    /// Insertions and removals of lines in a range, where they are recorded.
    pub(super) moves: Option<(Range<LineAddr>, Box<ChangeLog<LineMove>>)>,
}

/// Place at which a cache looks for a line: the first block of the line's set, and the line's tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineHome {
    base: u32,
    tag: u32,
}

/// Position of a resident line: the first block of its set, and its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSlot {
    pub(super) base: u32,
    pub(super) way: u32,
}

impl CacheSlot {
    /// Way of the slot within its set.
    #[inline]
    pub fn way(&self) -> u32 {
        self.way
    }
}

/// Position that is chosen for a line to be inserted.
#[derive(Clone, Copy, Debug)]
pub struct InsertPlace {
    base: u32,
    way: u32,
    tag: u32,
    mask: u32,
}

impl InsertPlace {
    /// The slot that the inserted line takes.
    #[inline]
    pub fn slot(&self) -> CacheSlot {
        CacheSlot { base: self.base, way: self.way }
    }
}

impl CacheArray {
    /// Makes an empty array of `sets` x `ways` lines; with hashed indexing the sets lie in `slices` slices, each with a
    /// power of two of sets.
    ///
    /// # Errors
    /// Fails with one clause that names the shape that does not work.
    pub fn new(
        sets: u32,
        ways: u32,
        policy: Replacement,
        indexing: Indexing,
        slices: u32,
    ) -> Result<CacheArray, String> {
        let slices = shape(sets.into(), ways, indexing, slices)?;
        let wide = ways > NARROW;
        let mut a = CacheArray {
            ways,
            sets,
            slices,
            per_slice: (1 << SLICE_BITS) / u64::from(slices) + 1,
            indexing,
            wide,
            set_bits: (sets / slices).trailing_zeros(),
            policy,
            blocks: vec![Block([0; 16]); sets.to_usize() << u32::from(wide)],
            all: u32::MAX >> (32 - ways),
            closed: [0; 32],
            some: (0, [u8::MAX; 32]),
            tree: vec![0; if policy == Replacement::TreePlru { sets.to_usize() } else { 0 }],
            dice: 0x5eed,
            held: 0,
            moves: None,
        };
        a.closed = a.closed_but(a.all);
        for set in 0..sets {
            for way in 0..ways {
                a.set_tag(set << u32::from(wide), way, None);
            }
        }
        Ok(a)
    }

    /// Index of the first age in the second half of a set's last block.
    #[inline]
    fn first_age(&self) -> u32 {
        16 * u32::from(!self.wide)
    }
    /// Index of the word with the dirty bits in a set's last block.
    #[inline]
    fn last_at(&self) -> usize {
        15 - usize::from(self.wide)
    }
    /// Index of the first mark's bit in the last word of a set's last block.
    #[inline]
    fn first_mark(&self) -> u32 {
        NARROW * u32::from(!self.wide)
    }

    #[inline]
    pub(super) fn set_of(&self, base: u32) -> usize {
        base.to_usize() >> u32::from(self.wide)
    }
    #[inline]
    fn tag(&self, base: u32, way: u32) -> Option<u32> {
        tag_in(self.blocks[(base + way / 16).to_usize()].0[way.to_usize() % 16])
    }
    #[inline]
    fn set_tag(&mut self, base: u32, way: u32, tag: Option<u32>) {
        self.blocks[(base + way / 16).to_usize()].0[way.to_usize() % 16] = word_of(tag);
    }
    /// Last block of the set at `base`.
    #[inline]
    fn last_block(&self, base: u32) -> &Block {
        &self.blocks[base.to_usize() + usize::from(self.wide)]
    }
    #[inline]
    fn last_block_mut(&mut self, base: u32) -> &mut Block {
        &mut self.blocks[base.to_usize() + usize::from(self.wide)]
    }
    #[inline]
    fn set_mut<const N: usize>(&mut self, base: u32) -> &mut [Block; N] {
        let base = base.to_usize();
        (&mut self.blocks[base..base + N]).try_into().expect("N blocks")
    }
    #[inline]
    fn last(&self, base: u32) -> u32 {
        self.last_block(base).0[self.last_at()]
    }
    #[inline]
    fn last_mut(&mut self, base: u32) -> &mut u32 {
        let at = self.last_at();
        &mut self.last_block_mut(base).0[at]
    }
    #[inline]
    pub(super) fn age_mut(&mut self, base: u32, way: u32) -> &mut u8 {
        let first = self.first_age();
        self.last_block_mut(base).age_mut(first + way)
    }
    pub(super) fn ages_mut(&mut self, base: u32) -> &mut [u8] {
        let (first, ways) = (self.first_age().to_usize(), self.ways.to_usize());
        &mut self.last_block_mut(base).upper_mut()[first..first + ways]
    }

    /// Number of lines that the array holds now.
    pub fn held(&self) -> usize {
        self.held
    }
    /// Number of sets.
    pub fn sets(&self) -> u32 {
        self.sets
    }
    /// Associativity: the number of ways.
    pub fn ways(&self) -> u32 {
        self.ways
    }
    /// Number of slices.
    pub fn slices(&self) -> usize {
        self.slices.to_usize()
    }

    /// Place in which the array looks for `line`.
    #[inline(always)]
    pub fn home(&self, line: LineAddr) -> LineHome {
        let LineAddr(line) = line;
        let inner = line & ((1 << self.set_bits) - 1);
        let tag = (line >> self.set_bits).to_u32();
        let set = if self.slices == 1 {
            inner
        } else {
            let slice = match self.indexing {
                Indexing::InterleavedSlices => {
                    let place = (line ^ mix(line >> SEQUENCE_BITS)).low_u32() & ((1 << SEQUENCE_BITS) - 1);
                    self.round(place)
                }
                Indexing::HashedSlices | Indexing::Modulo => {
                    (((mix(line) >> 32) * u64::from(self.slices)) >> 32).low_u32()
                }
                Indexing::EvenSlices | Indexing::FoldedSlices => self.rarer_slice(line),
            };
            (u64::from(slice) << self.set_bits) | inner
        };
        LineHome { base: set.to_u32() << u32::from(self.wide), tag }
    }

    /// Slice of `line` for the indexings that few platforms use.
    #[cold]
    #[inline(never)]
    fn rarer_slice(&self, line: u64) -> u32 {
        if self.indexing == Indexing::FoldedSlices {
            let half = line ^ line >> 32;
            return self.round((half ^ half >> 16).low_u32() & 0xffff);
        }
        let inner = line & ((1 << self.set_bits) - 1);
        let tag = (line >> self.set_bits).to_u32();
        let stretch = tag / self.slices;
        let place = (inner ^ mix(stretch.into())).low_u32() & ((1 << self.set_bits) - 1);
        self.round(place + tag % self.slices)
    }

    /// Computes `place` modulo the number of slices without a division, which is exact for all numbers of sets.
    #[inline]
    fn round(&self, place: u32) -> u32 {
        let times = (u64::from(place) * self.per_slice) >> SLICE_BITS;
        place - times.to_u32() * self.slices
    }

    /// Prefetches the set of `line` on the computer that runs the simulation: the sets of a large cache exceed that
    /// computer's caches, and an early fetch overlaps with other work.
    #[inline(always)]
    pub fn prefetch_on_host(&self, line: LineAddr) {
        self.prefetch_home_on_host(self.home(line));
    }

    /// Prefetches the set of `home` on the computer that runs the simulation.
    #[inline]
    pub fn prefetch_home_on_host(&self, home: LineHome) {
        self.prefetch_set_on_host(home.base);
    }

    /// Prefetches the set of `line`, in an array of one slice, on the computer that runs the simulation.
    #[inline(always)]
    pub fn prefetch_in_slice_on_host(&self, line: LineAddr) {
        self.prefetch_set_on_host(self.home_in_slice(line).base);
    }

    #[inline(always)]
    fn prefetch_set_on_host(&self, base: u32) {
        prefetch(&self.blocks[base.to_usize()]);
        if self.wide {
            prefetch(self.last_block(base));
        }
    }

    /// Number of the slice that a line of `home` belongs to.
    #[inline]
    pub fn slice(&self, home: LineHome) -> usize {
        self.set_of(home.base) >> self.set_bits
    }

    /// Slot that holds `line`, if any; the look-up does not count as a use.
    #[inline]
    pub fn find(&self, line: LineAddr) -> Option<CacheSlot> {
        self.find_at(self.home(line))
    }

    /// Slot that holds `line`, if any, in an array of one slice such as a private cache.
    #[inline(always)]
    pub fn find_in_slice(&self, line: LineAddr) -> Option<CacheSlot> {
        self.find_at(self.home_in_slice(line))
    }

    /// Place in which an array of one slice looks for `line`.
    #[inline(always)]
    fn home_in_slice(&self, line: LineAddr) -> LineHome {
        debug_assert!(self.slices == 1);
        let set = (line.0 & ((1 << self.set_bits) - 1)).to_u32();
        LineHome { base: set << u32::from(self.wide), tag: (line.0 >> self.set_bits).to_u32() }
    }

    /// Slot that holds the line of `home`, if any; the look-up does not count as a use.
    #[inline(always)]
    pub fn find_at(&self, home: LineHome) -> Option<CacheSlot> {
        let LineHome { base, tag } = home;
        let found = self.ways_with(base, Some(tag));
        (found != 0).then(|| CacheSlot { base, way: found.trailing_zeros() })
    }

    /// Mask of the ways of the set at `base` that hold `tag`, or that are empty for None.
    #[inline]
    pub(super) fn ways_with(&self, base: u32, tag: Option<u32>) -> u32 {
        let mut found = self.blocks[base.to_usize()].ways_with(tag);
        if self.wide {
            found |= self.last_block(base).ways_with(tag) << 16;
        }
        found & self.all
    }

    /// Mask for `least` that excludes the ages of all ways outside `mask`.
    fn closed_but(&self, mask: u32) -> [u8; 32] {
        spread(!(mask << self.first_age()))
    }

    /// First of the ways of `mask` with the lowest age.
    #[inline]
    fn least_used(&mut self, base: u32, mask: u32) -> u32 {
        if mask == self.all {
            return self.least_used_of(base, &self.closed);
        }
        self.cache_mask(mask);
        self.least_used_of(base, &self.some.1)
    }

    #[inline]
    fn cache_mask(&mut self, mask: u32) {
        if mask != self.some.0 {
            self.some = (mask, self.closed_but(mask));
        }
    }

    /// Mask for `least` that excludes the ages of all ways outside `mask`, cached for repeated use.
    #[inline]
    fn closed_ways(&mut self, mask: u32) -> &[u8; 32] {
        if mask == self.all {
            return &self.closed;
        }
        self.cache_mask(mask);
        &self.some.1
    }

    #[inline]
    fn least_used_of(&self, base: u32, closed: &[u8; 32]) -> u32 {
        least(self.last_block(base).upper(), closed) - self.first_age()
    }

    /// First of the ways of `mask` with the highest age.
    #[inline]
    pub(super) fn highest(&mut self, base: u32, mask: u32) -> u32 {
        let mut below = *self.last_block(base).upper();
        below.iter_mut().for_each(|age| *age = !*age);
        least(&below, self.closed_ways(mask)) - self.first_age()
    }

    /// Counts a use of the line in `slot`.
    #[inline]
    pub fn touch(&mut self, slot: CacheSlot) {
        let CacheSlot { base, way } = slot;
        match self.policy {
            Replacement::Lru | Replacement::LruScan => {
                if self.last(base) >> 24 == u32::from(OLD) {
                    self.renumber(base);
                }
                let (at, first) = (self.last_at(), self.first_age());
                tick(self.last_block_mut(base), at, first + way);
            }
            Replacement::Nmru => {
                let last = self.last_mut(base);
                *last = *last & 0xff_ffff | (way + 1) << 24;
            }
            Replacement::Random => {}
            _ => self.touch_rarer(base, way),
        }
    }

    /// Chooses a way of `mask` for `line`, which must be absent, in an array of one slice.
    #[inline]
    pub fn choose_in_slice(&mut self, line: LineAddr, mask: u32) -> InsertPlace {
        self.choose_at(self.home_in_slice(line), mask)
    }

    #[inline]
    fn choose_at(&mut self, home: LineHome, mask: u32) -> InsertPlace {
        debug_assert!(mask != 0 && mask >> self.ways == 0);
        let LineHome { base, tag } = home;
        let way = match self.policy {
            Replacement::Lru => self.least_used(base, mask), // empty ways are of age zero
            Replacement::Nmru | Replacement::Random => self.some_way(base, mask),
            Replacement::LruScan => self.scanned(base, mask),
            _ => self.choose_rarer(base, mask),
        };
        InsertPlace { base, way, tag, mask }
    }

    /// Dirty line that an insertion at `place` would displace.
    #[inline]
    pub fn displaces(&self, place: &InsertPlace) -> Option<LineAddr> {
        let old = self.tag(place.base, place.way);
        let dirty = self.last(place.base) >> place.way & 1 == 1;
        old.filter(|_| dirty).map(|old| self.line(old, place.base))
    }

    /// Victim of an insertion of `line` into an array of one slice, if the policy is LRU and the set is full.
    #[inline]
    pub fn oldest_in_slice(&self, line: LineAddr) -> Option<Victim> {
        if self.policy != Replacement::Lru {
            return None;
        }
        let base = self.home_in_slice(line).base;
        let way = self.least_used_of(base, &self.closed);
        let old = self.tag(base, way);
        let dirty = self.last(base) >> way & 1 == 1;
        let marked = self.last_block(base).0[15] >> (self.first_mark() + way) & 1 == 1;
        old.map(|old| Victim { line: self.line(old, base), dirty, marked })
    }

    /// Bytes that the tags take on the computer that runs the simulation.
    pub fn bytes(&self) -> usize {
        self.blocks.len() * size_of::<Block>()
    }

    /// Inserts `line`, which must be absent, into a way of `mask` in an array of one slice; returns its slot and the
    /// victim.
    #[inline]
    pub fn insert_in_slice(&mut self, line: LineAddr, dirty: bool, mask: u32) -> (CacheSlot, Option<Victim>) {
        self.insert_at(self.home_in_slice(line), dirty, mask)
    }

    /// Inserts the line of `home`, which must be absent, into a way of `mask`; returns its slot and the victim.
    #[inline]
    pub fn insert_at(&mut self, home: LineHome, dirty: bool, mask: u32) -> (CacheSlot, Option<Victim>) {
        let place = self.choose_at(home, mask);
        (place.slot(), self.fill(place, dirty))
    }

    /// Inserts the line for which `place` was chosen, whose set must not have changed since; returns the victim.
    #[inline]
    pub fn fill(&mut self, place: InsertPlace, dirty: bool) -> Option<Victim> {
        let InsertPlace { base, way, tag, mask } = place;
        if self.policy.is_lru() && self.last(base) >> 24 == u32::from(OLD) {
            self.renumber(base);
        }
        let policy = self.policy;
        let (old, was_dirty, marked) = if self.wide {
            replace(self.set_mut::<2>(base), policy, way, tag, dirty)
        } else {
            replace(self.set_mut::<1>(base), policy, way, tag, dirty)
        };
        if !(policy.is_lru() || matches!(policy, Replacement::Nmru | Replacement::Random)) {
            self.enter_rarer(base, way, mask);
        }
        if self.moves.is_some() {
            self.log_move(base, way, tag_in(old), false);
            self.log_move(base, way, Some(tag), true);
        }
        let Some(old) = tag_in(old) else {
            self.held += 1;
            return None;
        };
        Some(Victim { line: self.line(old, base), dirty: was_dirty, marked })
    }

    /// Chooses an empty way of `mask`. If the set has none, chooses a random way, other than the way used last where
    /// the policy spares that way.
    #[inline]
    fn some_way(&mut self, base: u32, mask: u32) -> u32 {
        let empty = self.ways_with(base, None) & mask;
        if empty != 0 {
            return empty.trailing_zeros();
        }
        let mut among = mask;
        if self.policy == Replacement::Nmru {
            let used = 1u32 << (self.last(base) >> 24) >> 1;
            if mask & !used != 0 {
                among = mask & !used;
            }
        }
        self.draw(among)
    }

    /// Draws one of the ways of `among` at random.
    #[inline]
    pub(super) fn draw(&mut self, among: u32) -> u32 {
        self.dice = mix(self.dice);
        let nth = ((self.dice >> 32) * u64::from(among.count_ones())) >> 32;
        nth_bit(among, nth.to_u32())
    }

    /// Removes the line in `slot`; returns whether it was dirty.
    #[inline]
    pub fn remove(&mut self, slot: CacheSlot) -> bool {
        let CacheSlot { base, way } = slot;
        if self.moves.is_some() {
            self.log_move(base, way, self.tag(base, way), false);
        }
        self.set_tag(base, way, None);
        if self.policy != Replacement::LruScan {
            *self.age_mut(base, way) = 0;
        }
        let last = self.last_mut(base);
        let dirty = *last >> way & 1 == 1;
        *last &= !(1 << way);
        self.held -= 1;
        dirty
    }

    /// Marks the line in `slot` until the line leaves the array; the line's victim record then carries the mark.
    #[inline]
    pub fn mark(&mut self, slot: CacheSlot) {
        let first = self.first_mark();
        self.last_block_mut(slot.base).0[15] |= 1 << (first + slot.way);
    }

    /// Whether the line in `slot` is dirty.
    #[inline]
    pub fn is_dirty(&self, slot: CacheSlot) -> bool {
        self.last(slot.base) >> slot.way & 1 == 1
    }
    /// Makes the line in `slot` dirty or clean.
    #[inline]
    pub fn set_dirty(&mut self, slot: CacheSlot, dirty: bool) {
        let last = self.last_mut(slot.base);
        *last = *last & !(1 << slot.way) | u32::from(dirty) << slot.way;
    }

    /// Line with `tag` in the set at `base`.
    #[inline]
    fn line(&self, tag: u32, base: u32) -> LineAddr {
        LineAddr(u64::from(tag) << self.set_bits | self.set_of(base).to_u64() & ((1 << self.set_bits) - 1))
    }

    /// Renumbers the ages of a set from one upwards, in the same order, because its clock is about to wrap.
    #[cold]
    fn renumber(&mut self, base: u32) {
        let emptied = self.policy == Replacement::LruScan;
        let held = (0..self.ways).filter(|w| emptied || self.tag(base, *w).is_some());
        let mut order: Vec<usize> = held.map(|w| w.to_usize()).collect();
        let ages = self.ages_mut(base);
        order.sort_by_key(|w| ages[*w]);
        ages.fill(0);
        for (rank, way) in order.iter().enumerate() {
            ages[*way] = rank.to_u8() + 1;
        }
        let last = self.last_mut(base);
        *last = *last & 0x00ff_ffff | order.len().to_u32() << 24;
    }
}

/// Counts a use under LRU: advances the clock in word `at` of a set's last block, and sets age `age` to it.
#[inline]
fn tick(rest: &mut Block, at: usize, age: u32) {
    rest.0[at] += TICK;
    *rest.age_mut(age) = (rest.0[at] >> 24).to_u8();
}

/// Puts `tag` into a way of a set; returns the previous word of the way, and whether its line was dirty and marked.
#[inline]
fn replace<const N: usize>(
    set: &mut [Block; N],
    policy: Replacement,
    way: u32,
    tag: u32,
    dirty: bool,
) -> (u32, bool, bool) {
    let old = std::mem::replace(&mut set[way.to_usize() / 16 % N].0[way.to_usize() % 16], word_of(Some(tag)));
    let rest = &mut set[N - 1];
    let (at, first, mark) = if N == 1 { (15, 16, 1 << (NARROW + way)) } else { (14, 0, 1 << way) };
    let marked = rest.0[15] & mark != 0;
    rest.0[15] &= !mark;
    let last = rest.0[at];
    rest.0[at] = last & !(1 << way) | u32::from(dirty) << way;
    match policy {
        Replacement::Lru | Replacement::LruScan => tick(rest, at, first + way),
        Replacement::Nmru => rest.0[at] = rest.0[at] & 0xff_ffff | (way + 1) << 24,
        _ => {}
    }
    (old, last >> way & 1 == 1, marked)
}

#[cfg(test)]
#[path = "array_tests.rs"]
mod tests;
