//! A set-associative tag array with way masks and a choice of replacement policies.

use crate::kernel::rng::mix;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the victim of a full set is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Replacement {
    /// Least recently used.
    #[default]
    Lru,
    /// Tree pseudo-LRU (Handy, The Cache Memory Book, 1998).
    TreePlru,
    /// Static re-reference interval prediction, 2 bits (Jaleel et al., ISCA 2010).
    Srrip,
    /// Uniformly random.
    Random,
}

/// How a line address picks its set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Indexing {
    /// Line number modulo the number of sets.
    Modulo,
    /// A hash of the line number picks the slice, its low bits the set inside it.
    #[default]
    HashedSlices,
}

const EMPTY: u32 = u32::MAX;
/// The line was written and memory has an older version.
pub const DIRTY: u8 = 1;

/// What was in a way that a new line displaced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Victim {
    pub line: u64,
    pub dirty: bool,
}

/// Tags, recency and flags of one cache. Holds no data and no time.
#[derive(Clone, Debug)]
pub struct Array {
    ways: usize,
    sets: u32,
    slices: u32,
    set_bits: u32,
    policy: Replacement,
    tags: Vec<u32>,
    /// LRU: time of last touch. SRRIP: the prediction. PLRU: unused but for emptiness.
    age: Vec<u32>,
    flags: Vec<u8>,
    tree: Vec<u32>,
    clock: u32,
    dice: u64,
    held: usize,
}

impl Array {
    /// An empty array of `sets` x `ways` lines; with hashed indexing the sets lie in `slices`
    /// slices of a power of two of sets each.
    ///
    /// # Errors
    /// One clause naming the shape that does not work.
    pub fn new(
        sets: u32,
        ways: u32,
        policy: Replacement,
        indexing: Indexing,
        slices: u32,
    ) -> Result<Array, String> {
        let slices = if indexing == Indexing::Modulo { 1 } else { slices.max(1) };
        if ways == 0 || ways > 32 || sets == 0 {
            return Err(format!("{sets} sets of {ways} ways is not a cache (1 to 32 ways)"));
        }
        if sets % slices != 0 || !(sets / slices).is_power_of_two() {
            return Err(format!(
                "{sets} sets in {slices} slices: the sets of a slice must be a power of two"
            ));
        }
        let lines = sets as usize * ways as usize;
        Ok(Array {
            ways: ways as usize,
            sets,
            slices,
            set_bits: (sets / slices).trailing_zeros(),
            policy,
            tags: vec![EMPTY; lines],
            age: vec![0; lines],
            flags: vec![0; lines],
            tree: vec![0; if policy == Replacement::TreePlru { sets as usize } else { 0 }],
            clock: 0,
            dice: 0x5eed,
            held: 0,
        })
    }

    pub fn lines(&self) -> usize {
        self.tags.len()
    }
    /// Lines held now.
    pub fn held(&self) -> usize {
        self.held
    }
    pub fn ways(&self) -> u32 {
        self.ways as u32
    }

    /// First slot of the line's set, and its tag.
    #[inline]
    fn home(&self, line: u64) -> (usize, u32) {
        let inner = line & ((1 << self.set_bits) - 1);
        let tag = (line >> self.set_bits) as u32;
        let set = if self.slices == 1 {
            inner
        } else {
            let slice = (mix(line) >> 32) * u64::from(self.slices) >> 32;
            (slice << self.set_bits) | inner
        };
        (set as usize * self.ways, tag)
    }

    /// The slot that holds `line`, if any. Does not count as a use.
    #[inline]
    pub fn find(&self, line: u64) -> Option<usize> {
        let (base, tag) = self.home(line);
        let mut at = usize::MAX;
        for (w, t) in self.tags[base..base + self.ways].iter().enumerate() {
            if *t == tag {
                at = base + w;
            }
        }
        (at != usize::MAX).then_some(at)
    }

    /// Counts a use of `slot`.
    #[inline]
    pub fn touch(&mut self, slot: usize) {
        match self.policy {
            Replacement::Lru => {
                self.clock = self.clock.wrapping_add(1);
                if self.clock == 0 {
                    self.rebase();
                }
                self.age[slot] = self.clock;
            }
            Replacement::Srrip => self.age[slot] = 0,
            Replacement::TreePlru => self.point_away(slot),
            Replacement::Random => {}
        }
    }

    /// The touch counter wrapped after 2^32 uses: keep the order within each set.
    #[cold]
    fn rebase(&mut self) {
        for base in (0..self.tags.len()).step_by(self.ways) {
            let mut order: Vec<usize> = (base..base + self.ways).collect();
            order.sort_by_key(|s| self.age[*s]);
            for (rank, slot) in order.into_iter().enumerate() {
                self.age[slot] = if self.tags[slot] == EMPTY { 0 } else { rank as u32 + 1 };
            }
        }
        self.clock = self.ways as u32 + 1;
    }

    fn point_away(&mut self, slot: usize) {
        let (set, way) = (slot / self.ways, slot % self.ways);
        let (mut node, mut lo, mut hi) = (1usize, 0, self.ways.next_power_of_two());
        while hi - lo > 1 {
            let mid = (lo + hi) / 2;
            if way < mid {
                self.tree[set] |= 1 << (node - 1);
                (node, hi) = (node * 2, mid);
            } else {
                self.tree[set] &= !(1 << (node - 1));
                (node, lo) = (node * 2 + 1, mid);
            }
        }
    }

    /// Follows the tree's bits, turning where the mask leaves no way.
    fn plru_way(&self, set: usize, mask: u32) -> usize {
        let (mut node, mut lo, mut hi) = (1usize, 0, self.ways.next_power_of_two());
        let any = |a: usize, b: usize| (a..b.min(self.ways)).any(|w| mask >> w & 1 == 1);
        while hi - lo > 1 {
            let mid = (lo + hi) / 2;
            let right = self.tree[set] >> (node - 1) & 1 == 1;
            let right = if right { any(mid, hi) } else { !any(lo, mid) };
            (node, lo, hi) = if right { (node * 2 + 1, mid, hi) } else { (node * 2, lo, mid) };
        }
        lo
    }

    /// Puts `line`, which must be absent, into a way of `mask`; returns its slot and who had to go.
    #[inline]
    pub fn insert(&mut self, line: u64, flags: u8, mask: u32) -> (usize, Option<Victim>) {
        let (base, tag) = self.home(line);
        let slot = self.choose(base, mask);
        let old = self.tags[slot];
        let victim = (old != EMPTY)
            .then(|| Victim { line: self.line_of(slot), dirty: self.flags[slot] & DIRTY != 0 });
        self.held += usize::from(old == EMPTY);
        self.tags[slot] = tag;
        self.flags[slot] = flags;
        if self.policy == Replacement::Srrip {
            self.age[slot] = 2; // "long re-reference interval" on insertion
        } else {
            self.touch(slot);
        }
        (slot, victim)
    }

    #[inline]
    fn choose(&mut self, base: usize, mask: u32) -> usize {
        debug_assert!(mask != 0 && (mask >> self.ways == 0 || self.ways == 32));
        match self.policy {
            Replacement::Lru => {
                let (mut best, mut at) = (u32::MAX, base);
                for w in 0..self.ways {
                    let age = self.age[base + w];
                    if mask >> w & 1 == 1 && age < best {
                        best = age;
                        at = base + w;
                    }
                }
                return at;
            }
            _ => {
                if let Some(w) =
                    (0..self.ways).find(|w| mask >> w & 1 == 1 && self.tags[base + w] == EMPTY)
                {
                    return base + w;
                }
            }
        }
        match self.policy {
            Replacement::Random => {
                self.dice = mix(self.dice);
                let nth = (self.dice >> 32) * u64::from(mask.count_ones()) >> 32;
                let way = (0..self.ways).filter(|w| mask >> w & 1 == 1).nth(nth as usize);
                base + way.expect("the mask is not empty")
            }
            Replacement::TreePlru => base + self.plru_way(base / self.ways, mask),
            _ => loop {
                if let Some(w) =
                    (0..self.ways).find(|w| mask >> w & 1 == 1 && self.age[base + w] >= 3)
                {
                    return base + w;
                }
                for w in 0..self.ways {
                    self.age[base + w] = (self.age[base + w] + 1).min(3);
                }
            },
        }
    }

    fn line_of(&self, slot: usize) -> u64 {
        let set = (slot / self.ways) as u64;
        u64::from(self.tags[slot]) << self.set_bits | set & ((1 << self.set_bits) - 1)
    }

    /// Empties `slot`; returns whether it was dirty.
    #[inline]
    pub fn remove(&mut self, slot: usize) -> bool {
        let dirty = self.flags[slot] & DIRTY != 0;
        self.held -= 1;
        self.tags[slot] = EMPTY;
        self.flags[slot] = 0;
        self.age[slot] = 0;
        dirty
    }

    #[inline]
    pub fn is_dirty(&self, slot: usize) -> bool {
        self.flags[slot] & DIRTY != 0
    }
    #[inline]
    pub fn set_dirty(&mut self, slot: usize, dirty: bool) {
        self.flags[slot] = self.flags[slot] & !DIRTY | u8::from(dirty);
    }
    #[inline]
    pub fn way_of(&self, slot: usize) -> u32 {
        (slot % self.ways) as u32
    }
    /// Every line held, with its way and whether it is dirty.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u32, bool)> + '_ {
        (0..self.tags.len())
            .filter(|s| self.tags[*s] != EMPTY)
            .map(|s| (self.line_of(s), self.way_of(s), self.is_dirty(s)))
    }
    pub fn sets(&self) -> u32 {
        self.sets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_set(ways: u32, policy: Replacement) -> Array {
        Array::new(1, ways, policy, Indexing::Modulo, 1).unwrap()
    }
    fn fill(a: &mut Array, lines: impl IntoIterator<Item = u64>) {
        let mask = (1u32 << a.ways()) - 1;
        for l in lines {
            a.insert(l, 0, mask);
        }
    }

    #[test]
    fn lru_evicts_the_line_unused_for_longest() {
        let mut a = one_set(4, Replacement::Lru);
        fill(&mut a, 0..4);
        let s = a.find(0).unwrap();
        a.touch(s);
        assert_eq!(a.insert(9, 0, 0b1111).1, Some(Victim { line: 1, dirty: false }));
    }

    #[test]
    fn a_way_mask_confines_allocation_but_not_lookup() {
        let mut a = one_set(4, Replacement::Lru);
        fill(&mut a, 0..4);
        for line in 10..20 {
            let (slot, v) = a.insert(line, DIRTY, 0b0011);
            assert!(a.way_of(slot) < 2);
            assert!(v.unwrap().line != 2 && v.unwrap().line != 3);
        }
        assert!(a.find(2).is_some() && a.find(3).is_some());
    }

    #[test]
    fn srrip_keeps_a_reused_line_through_a_scan_that_lru_would_lose_it_to() {
        let survives = |p| {
            let mut a = one_set(4, p);
            fill(&mut a, [7]);
            let s = a.find(7).unwrap();
            a.touch(s);
            fill(&mut a, 100..105);
            a.find(7).is_some()
        };
        assert!(survives(Replacement::Srrip));
        assert!(!survives(Replacement::Lru));
    }

    #[test]
    fn tree_plru_of_four_ways_follows_the_textbook_sequence() {
        let mut a = one_set(4, Replacement::TreePlru);
        fill(&mut a, 0..4); // touched 0 1 2 3: root points left, left pair at way 0
        let mask = 0b1111;
        assert_eq!(a.insert(10, 0, mask).1.unwrap().line, 0);
        assert_eq!(a.insert(11, 0, mask).1.unwrap().line, 2);
        assert_eq!(a.insert(12, 0, mask).1.unwrap().line, 1);
        assert_eq!(a.insert(13, 0, mask).1.unwrap().line, 3);
    }

    #[test]
    fn addresses_come_back_from_tags_with_slices_that_are_no_power_of_two() {
        let mut a =
            Array::new(24 * 2048, 12, Replacement::Lru, Indexing::HashedSlices, 24).unwrap();
        for line in (0..1_000_000u64).step_by(97) {
            let (slot, _) = a.insert(line, DIRTY, 0xfff);
            assert_eq!(a.line_of(slot), line);
            assert_eq!(a.find(line), Some(slot));
        }
    }

    #[test]
    fn hashed_slices_spread_a_ring_evenly() {
        let a = Array::new(24 * 2048, 12, Replacement::Lru, Indexing::HashedSlices, 24).unwrap();
        let mut per = vec![0u32; 24];
        for line in 0..240_000u64 {
            per[a.home(line).0 / 12 / 2048] += 1;
        }
        assert!(per.iter().all(|n| (9_500..10_500).contains(n)), "{per:?}"); // 5 sigma
    }

    #[test]
    fn recency_survives_the_wrap_of_the_touch_counter() {
        let mut a = one_set(4, Replacement::Lru);
        a.clock = u32::MAX - 2;
        fill(&mut a, 0..4);
        assert_eq!(a.insert(9, 0, 0b1111).1.unwrap().line, 0);
        assert_eq!(a.insert(10, 0, 0b1111).1.unwrap().line, 1);
    }
}
