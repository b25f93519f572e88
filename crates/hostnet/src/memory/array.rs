//! A set-associative tag array with way masks and a choice of replacement policies.

use super::ways::{least, least_of_two, nth_bit, spread, Block};
use crate::kernel::{hint::prefetch, rng::mix};
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
    /// Not recently used: one bit per line, set by a use; when all ways that a line may take are set, the
    /// others are cleared. The victim is a random one of the clear ways (a choice of zSim; UltraSPARC T1's L2).
    Nru,
    /// Uniformly random.
    Random,
    /// Random, but never the way used last.
    Nmru,
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
    /// A sequence of slices of 2^14 lines, permuted block by block: the XOR of a line's place in its block and a hash
    /// of the block picks the element. So are Intel's, as McCalpin found (ACELab TR-2021-03); the sequence itself
    /// (slice after slice) and the hash are not his.
    InterleavedSlices,
}

/// Lines of the sequence of slices that `InterleavedSlices` permutes.
const SEQUENCE_BITS: u32 = 14;

const EMPTY: u32 = u32::MAX;
/// The oldest a line can be before its set is renumbered.
const OLD: u8 = u8::MAX;

/// What was in a way that a new line displaced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Victim {
    pub line: u64,
    pub dirty: bool,
    /// Its mark, see [`Array::mark`].
    pub marked: bool,
}

/// Tags, recency and dirtiness of one cache. Holds no data and no time.
///
/// A set is `ways` tags, then `ways` bytes of age, then a word: dirty bits, and above them the set's
/// clock of uses (LRU) or its tree (PLRU).
#[derive(Clone)]
pub struct Array {
    ways: usize,
    sets: u32,
    slices: u32,
    interleaved: bool,
    set_bits: u32,
    policy: Replacement,
    blocks: Vec<Block>,
    /// Words of a set, as a power of two, and where its last one in use is.
    stride_bits: u32,
    last_at: usize,
    /// A bit for each way, and 255 where there is none.
    all: u32,
    closed: [[u8; 16]; 2],
    tree: Vec<u32>,
    /// Where in a set the word with a bit per way is that the cache's owner may use; 0 when there is none.
    marks_at: usize,
    dice: u64,
    held: usize,
}

/// Where a line lies: its set's first word, and its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    base: u32,
    way: u32,
}

/// Where a line will enter.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    base: usize,
    way: usize,
    tag: u32,
    mask: u32,
}

/// The slices of a cache of `sets` x `ways` lines.
///
/// # Errors
/// One clause naming the shape that does not work.
pub fn shape(sets: u64, ways: u32, indexing: Indexing, slices: u32) -> Result<u32, String> {
    let slices = if indexing == Indexing::Modulo { 1 } else { slices.max(1) };
    if ways == 0 || ways > 24 || sets == 0 || sets > 1 << 24 {
        return Err(format!("{sets} sets of {ways} ways, which is no cache (1 to 24 ways, 1 to 2^24 sets)"));
    }
    if sets % u64::from(slices) != 0 || !(sets / u64::from(slices)).is_power_of_two() {
        return Err(format!("{sets} sets in {slices} slices: the sets of a slice must be a power of two"));
    }
    Ok(slices)
}

impl Array {
    /// An empty array of `sets` x `ways` lines; with hashed indexing the sets lie in `slices`
    /// slices of a power of two of sets each.
    ///
    /// # Errors
    /// One clause naming the shape that does not work.
    pub fn new(sets: u32, ways: u32, policy: Replacement, indexing: Indexing, slices: u32) -> Result<Array, String> {
        let slices = shape(sets.into(), ways, indexing, slices)?;
        let ways = ways as usize;
        let mut a = Array {
            ways,
            sets,
            slices,
            interleaved: indexing == Indexing::InterleavedSlices,
            set_bits: (sets / slices).trailing_zeros(),
            policy,
            blocks: Vec::new(),
            stride_bits: 0,
            last_at: ways + ways.div_ceil(4),
            all: u32::MAX >> (32 - ways),
            closed: [0, 16].map(|first| std::array::from_fn(|i| if first + i < ways { 0 } else { u8::MAX })),
            tree: vec![0; if policy == Replacement::TreePlru { sets as usize } else { 0 }],
            marks_at: 0,
            dice: 0x5eed,
            held: 0,
        };
        a.lay_out(a.last_at + 1);
        Ok(a)
    }

    /// The same with a word of marks in each set: see [`Array::mark`].
    pub fn with_marks(mut self) -> Array {
        self.marks_at = self.last_at + 1;
        self.lay_out(self.marks_at + 1);
        self
    }

    /// Makes all sets empty, with room for `words` words in each.
    fn lay_out(&mut self, words: usize) {
        self.stride_bits = words.next_multiple_of(16).trailing_zeros();
        let stride = self.stride();
        self.blocks = vec![Block([0; 16]); self.sets as usize * stride / 16];
        let ways = self.ways;
        for set in self.words_mut().chunks_exact_mut(stride) {
            set[..ways].fill(EMPTY);
        }
    }

    #[inline]
    fn words(&self) -> &[u32] {
        bytemuck::cast_slice(&self.blocks)
    }
    #[inline]
    fn words_mut(&mut self) -> &mut [u32] {
        bytemuck::cast_slice_mut(&mut self.blocks)
    }

    #[inline]
    fn stride(&self) -> usize {
        1 << self.stride_bits
    }
    #[inline]
    fn set_of(&self, base: usize) -> usize {
        base >> self.stride_bits
    }

    /// Tags, ages and the last word of the set at `base`.
    #[inline]
    fn set_mut(&mut self, base: usize) -> (&mut [u32], &mut [u8], &mut u32) {
        let (ways, stride) = (self.ways, self.stride());
        let (tags, rest) = self.words_mut()[base..base + stride].split_at_mut(ways);
        let (ages, rest) = rest.split_at_mut(ways.div_ceil(4));
        (tags, &mut bytemuck::cast_slice_mut(ages)[..ways], &mut rest[0])
    }
    #[inline]
    fn last(&self, base: usize) -> u32 {
        self.words()[base + self.last_at]
    }

    /// Lines held now.
    pub fn held(&self) -> usize {
        self.held
    }
    pub fn ways(&self) -> u32 {
        self.ways as u32
    }

    /// First word of the line's set, and its tag.
    #[inline]
    fn home(&self, line: u64) -> (usize, u32) {
        let inner = line & ((1 << self.set_bits) - 1);
        let tag = (line >> self.set_bits) as u32;
        let set = if self.slices == 1 {
            inner
        } else {
            let slice = if self.interleaved {
                let place = (line ^ mix(line >> SEQUENCE_BITS)) as u32 & ((1 << SEQUENCE_BITS) - 1);
                place % self.slices
            } else {
                (((mix(line) >> 32) * u64::from(self.slices)) >> 32) as u32
            };
            (u64::from(slice) << self.set_bits) | inner
        };
        ((set as usize) << self.stride_bits, tag)
    }

    /// Tells the host that `line`'s set is about to be looked up: the sets of a large cache do not fit the
    /// host's own, and a fetch that starts early overlaps with other work.
    #[inline]
    pub fn announce(&self, line: u64) {
        let first = self.home(line).0 / 16;
        for block in &self.blocks[first..first + self.stride() / 16] {
            prefetch(block);
        }
    }

    /// The slot that holds `line`, if any. Does not count as a use.
    #[inline]
    pub fn find(&self, line: u64) -> Option<Slot> {
        let (base, tag) = self.home(line);
        let found = self.ways_with(base, tag);
        (found != 0).then(|| Slot { base: base as u32, way: found.trailing_zeros() })
    }

    /// The ways of the set at `base` that hold `tag`, or are empty when it is `EMPTY`.
    #[inline]
    fn ways_with(&self, base: usize, tag: u32) -> u32 {
        let block = base / 16;
        let mut found = self.blocks[block].equal(tag);
        if self.ways > 16 {
            found |= self.blocks[block + 1].equal(tag) << 16;
        }
        found & self.all
    }

    /// The first of the ways of `mask` with the lowest age.
    #[inline]
    fn least_used(&self, base: usize, mask: u32) -> usize {
        if mask == self.all {
            self.least_used_of(base, &self.closed)
        } else {
            self.least_used_among(base, mask)
        }
    }

    #[cold]
    fn least_used_among(&self, base: usize, mask: u32) -> usize {
        self.least_used_of(base, &[spread(!mask), spread(!mask >> 16)])
    }

    #[inline]
    fn least_used_of(&self, base: usize, closed: &[[u8; 16]; 2]) -> usize {
        let set: &[u8] = bytemuck::cast_slice(&self.words()[base..base + self.stride()]);
        let ages = |at: usize| set[at..at + 16].try_into().expect("16 bytes");
        // What lies behind the ages in the set is of ways that are closed.
        let first = self.ways * 4;
        let way = if self.ways <= 16 {
            least(ages(first), closed[0])
        } else {
            least_of_two([ages(first), ages(first + 16)], *closed)
        };
        way as usize
    }

    /// Counts a use of `slot`.
    #[inline]
    pub fn touch(&mut self, slot: Slot) {
        let (base, way) = (slot.base as usize, slot.way as usize);
        match self.policy {
            Replacement::Lru => {
                let (ages, last_at, stride) = (self.ways * 4, self.last_at, self.stride());
                let set = &mut self.words_mut()[base..base + stride];
                let last = tick(set, ages, last_at);
                set[last_at] = last;
                bytemuck::cast_slice_mut::<u32, u8>(set)[ages + way] = (last >> 24) as u8;
            }
            Replacement::Nmru => {
                let last_at = self.last_at;
                let last = &mut self.words_mut()[base + last_at];
                *last = *last & 0xff_ffff | (way as u32 + 1) << 24;
            }
            Replacement::Random => {}
            _ => self.touch_rarer(base, way),
        }
    }

    #[cold]
    fn touch_rarer(&mut self, base: usize, way: usize) {
        match self.policy {
            Replacement::Srrip => self.set_mut(base).1[way] = 0,
            Replacement::TreePlru => self.point_away(self.set_of(base), way),
            Replacement::Nru => self.use_among(base, way, u32::MAX),
            _ => {}
        }
    }

    /// Notes a use of `way` for NRU, which keeps apart the ways of `mask`.
    fn use_among(&mut self, base: usize, way: usize, mask: u32) {
        let ages = self.set_mut(base).1;
        ages[way] = 1;
        let open = |w: &usize| mask >> w & 1 == 1;
        if (0..ages.len()).filter(open).all(|w| ages[w] == 1) {
            (0..ages.len()).filter(open).filter(|w| *w != way).for_each(|w| ages[w] = 0);
        }
    }

    fn point_away(&mut self, set: usize, way: usize) {
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

    /// Where `line`, which must be absent, enters: a way of `mask`.
    #[inline]
    pub fn choose(&mut self, line: u64, mask: u32) -> Place {
        debug_assert!(mask != 0 && mask >> self.ways == 0);
        let (base, tag) = self.home(line);
        let way = match self.policy {
            Replacement::Lru => self.least_used(base, mask), // empty ways are of age zero
            Replacement::Nmru | Replacement::Random => self.some_way(base, mask),
            _ => self.choose_rarer(base, mask),
        };
        Place { base, way, tag, mask }
    }

    /// The dirty line that has to go for what enters at `place`.
    #[inline]
    pub fn displaces(&self, place: &Place) -> Option<u64> {
        let old = self.words()[place.base + place.way];
        let dirty = self.last(place.base) >> place.way & 1 == 1;
        (dirty && old != EMPTY).then(|| join(old, self.set_of(place.base), self.set_bits))
    }

    /// The dirty line that the next insertion of `line` would displace, as far as LRU can tell now.
    #[inline]
    pub fn oldest_dirty(&self, line: u64) -> Option<u64> {
        if self.policy != Replacement::Lru {
            return None;
        }
        let (base, tag) = self.home(line);
        let way = self.least_used(base, self.all);
        self.displaces(&Place { base, way, tag, mask: self.all })
    }

    /// Memory that the tags take on the host.
    pub fn bytes(&self) -> usize {
        self.blocks.len() * size_of::<Block>()
    }

    /// Puts `line`, which must be absent, into a way of `mask`; returns its slot and who had to go.
    #[inline]
    pub fn insert(&mut self, line: u64, dirty: bool, mask: u32) -> (Slot, Option<Victim>) {
        let place = self.choose(line, mask);
        self.enter(place, dirty)
    }

    /// Puts the line that `place` was chosen for there; its set must be as it was then.
    #[inline]
    pub fn enter(&mut self, place: Place, dirty: bool) -> (Slot, Option<Victim>) {
        let Place { base, way, tag, mask } = place;
        let (ages, last_at, marks_at, stride) = (self.ways * 4, self.last_at, self.marks_at, self.stride());
        let policy = self.policy;
        let set = &mut self.words_mut()[base..base + stride];
        let old = std::mem::replace(&mut set[way], tag);
        let mut marked = false;
        if marks_at != 0 {
            marked = set[marks_at] >> way & 1 == 1;
            set[marks_at] &= !(1 << way);
        }
        let dirty_before = set[last_at] >> way & 1 == 1;
        let mut last = if policy == Replacement::Lru { tick(set, ages, last_at) } else { set[last_at] };
        last = last & !(1 << way) | u32::from(dirty) << way;
        match policy {
            Replacement::Lru => bytemuck::cast_slice_mut::<u32, u8>(set)[ages + way] = (last >> 24) as u8,
            Replacement::Nmru => last = last & 0xff_ffff | (way as u32 + 1) << 24,
            _ => {}
        }
        set[last_at] = last;
        if !matches!(policy, Replacement::Lru | Replacement::Nmru | Replacement::Random) {
            self.enter_rarer(base, way, mask);
        }
        self.held += usize::from(old == EMPTY);
        let line = join(old, self.set_of(base), self.set_bits);
        let victim = (old != EMPTY).then_some(Victim { line, dirty: dirty_before, marked });
        (Slot { base: base as u32, way: way as u32 }, victim)
    }

    /// An empty way of `mask`, or any but the one used last if that is spared.
    #[inline]
    fn some_way(&mut self, base: usize, mask: u32) -> usize {
        let empty = self.ways_with(base, EMPTY) & mask;
        if empty != 0 {
            return empty.trailing_zeros() as usize;
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

    /// One of the ways of `among`.
    #[inline]
    fn draw(&mut self, among: u32) -> usize {
        self.dice = mix(self.dice);
        let nth = ((self.dice >> 32) * u64::from(among.count_ones())) >> 32;
        nth_bit(among, nth as u32) as usize
    }

    #[cold]
    fn choose_rarer(&mut self, base: usize, mask: u32) -> usize {
        let ways = self.ways;
        let open = move |w: &usize| mask >> w & 1 == 1;
        let empty = self.ways_with(base, EMPTY) & mask;
        if empty != 0 {
            return empty.trailing_zeros() as usize;
        }
        match self.policy {
            Replacement::Nru => {
                let ages = self.set_mut(base).1;
                let clear = (0..ways).filter(|w| ages[*w] == 0).fold(0, |m, w| m | 1 << w);
                // Hits in another mask's ways may have set all of these.
                self.draw(if mask & clear == 0 { mask } else { mask & clear })
            }
            Replacement::TreePlru => self.plru_way(self.set_of(base), mask),
            _ => loop {
                let (_, ages, _) = self.set_mut(base);
                if let Some(w) = (0..ways).filter(open).find(|w| ages[*w] >= 3) {
                    return w;
                }
                ages.iter_mut().for_each(|a| *a = (*a + 1).min(3));
            },
        }
    }

    #[cold]
    fn enter_rarer(&mut self, base: usize, way: usize, mask: u32) {
        match self.policy {
            Replacement::Srrip => self.set_mut(base).1[way] = 2, // "long re-reference interval" on insertion
            Replacement::Nru => self.use_among(base, way, mask),
            _ => self.point_away(self.set_of(base), way),
        }
    }

    /// Empties `slot`; returns whether it was dirty.
    #[inline]
    pub fn remove(&mut self, slot: Slot) -> bool {
        let way = slot.way as usize;
        let (tags, ages, last) = self.set_mut(slot.base as usize);
        let dirty = *last >> way & 1 == 1;
        tags[way] = EMPTY;
        ages[way] = 0;
        *last &= !(1 << way);
        self.held -= 1;
        dirty
    }

    /// Marks a line until it leaves; its victim record will say so.
    #[inline]
    pub fn mark(&mut self, slot: Slot) {
        let at = slot.base as usize + self.marks_at;
        debug_assert!(self.marks_at != 0, "made with marks");
        self.words_mut()[at] |= 1 << slot.way;
    }

    #[inline]
    pub fn is_dirty(&self, slot: Slot) -> bool {
        self.last(slot.base as usize) >> slot.way & 1 == 1
    }
    #[inline]
    pub fn set_dirty(&mut self, slot: Slot, dirty: bool) {
        let at = slot.base as usize + self.last_at;
        let last = &mut self.words_mut()[at];
        *last = *last & !(1 << slot.way) | u32::from(dirty) << slot.way;
    }
    /// Every line held, with its way and whether it is dirty.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u32, bool)> + '_ {
        (0..self.sets as usize).flat_map(move |set| {
            let base = set << self.stride_bits;
            let last = self.last(base);
            let tags = self.words()[base..base + self.ways].iter().enumerate();
            tags.filter(|(_, t)| **t != EMPTY)
                .map(move |(w, t)| (join(*t, set, self.set_bits), w as u32, last >> w & 1 == 1))
        })
    }
}

#[inline]
fn join(tag: u32, set: usize, set_bits: u32) -> u64 {
    u64::from(tag) << set_bits | set as u64 & ((1 << set_bits) - 1)
}

/// The last word of a set under LRU after one more use, whose time is in its top byte. `ages` is where the bytes
/// of age begin.
#[inline]
fn tick(set: &mut [u32], ages: usize, last_at: usize) -> u32 {
    if set[last_at] >> 24 == u32::from(OLD) {
        renumber(set, ages, last_at);
    }
    set[last_at] + (1 << 24)
}

/// The set's clock is about to wrap: keep the order of its ages, from one up.
#[cold]
fn renumber(set: &mut [u32], ages: usize, last_at: usize) {
    let ways = ages / 4;
    let mut order: Vec<usize> = (0..ways).filter(|w| set[*w] != EMPTY).collect();
    let bytes: &mut [u8] = &mut bytemuck::cast_slice_mut(set)[ages..ages + ways];
    order.sort_by_key(|w| bytes[*w]);
    bytes.fill(0);
    for (rank, way) in order.iter().enumerate() {
        bytes[*way] = rank as u8 + 1;
    }
    set[last_at] = set[last_at] & 0x00ff_ffff | (order.len() as u32) << 24;
}

#[cfg(test)]
#[path = "array_tests.rs"]
mod tests;
