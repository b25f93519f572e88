//! Snoop filter of shared regions, and compact sets of lines.

use super::region::AddressMap;
use crate::kernel::hint::prefetch;
use crate::kernel::rng::mix;
use crate::kernel::{ids::LineKey, CoreId, Int, LineAddr};

/// The cores whose bits are set in a mask, in ascending order.
pub(super) fn cores_of(mut mask: u128) -> impl Iterator<Item = CoreId> {
    std::iter::from_fn(move || {
        let c = mask.trailing_zeros().to_usize();
        mask &= mask.wrapping_sub(1);
        (c < 128).then_some(CoreId(c.to_u16()))
    })
}

/// Snoop filter of shared regions: the cores that may hold each line. Private regions need no filter, because their
/// only possible holder is known.
#[derive(Clone, Debug)]
pub(super) enum SharedFilter {
    /// Of at most 64 cores: an entry takes 16 B on the computer that runs the simulation.
    Narrow(HolderTable<u64>),
    /// Of at most 128 cores.
    Wide(HolderTable<u128>),
}

/// Calls a method of the table of either width.
macro_rules! of_either {
    ($filter:expr, $table:ident => $call:expr) => {
        match $filter {
            SharedFilter::Narrow($table) => $call,
            SharedFilter::Wide($table) => $call,
        }
    };
}

impl SharedFilter {
    /// Makes an empty filter for the lines that `cores` cores, at most 128, share.
    pub(super) fn of_cores(cores: usize) -> SharedFilter {
        match cores {
            0..=64 => SharedFilter::Narrow(HolderTable::default()),
            _ => SharedFilter::Wide(HolderTable::default()),
        }
    }
    /// Notes that `core` holds the line; returns whether no other core may hold it.
    #[inline]
    pub(super) fn add(&mut self, line: LineAddr, core: CoreId) -> bool {
        of_either!(self, t => t.add(line, core))
    }
    /// The cores that may hold the line, as a mask.
    #[inline]
    pub(super) fn holders(&self, line: LineAddr) -> u128 {
        of_either!(self, t => t.holders(line))
    }
    /// Notes that `core` does not hold the line.
    #[inline]
    pub(super) fn drop_holder(&mut self, line: LineAddr, core: CoreId) {
        of_either!(self, t => t.drop_holder(line, core));
    }
    /// Removes and returns the possible holders of a line, which are about to lose it.
    #[inline]
    pub(super) fn take(&mut self, line: LineAddr) -> u128 {
        of_either!(self, t => t.take(line))
    }
    /// Prefetches the line's entry on the computer that runs the simulation.
    #[inline]
    pub(super) fn prefetch_on_host(&self, line: LineAddr) {
        of_either!(self, t => t.prefetch_on_host(line));
    }
}

/// A set of cores, as the bits of a number.
pub(super) trait CoreMask: Copy + Default + Eq + Into<u128> {
    /// The set of `core` alone.
    fn of(core: CoreId) -> Self;
    /// The cores of either set.
    fn with(self, other: Self) -> Self;
    /// The cores that are not in `other`.
    fn without(self, other: Self) -> Self;
}

macro_rules! core_mask {
    ($type:ty) => {
        impl CoreMask for $type {
            #[inline]
            fn of(core: CoreId) -> Self {
                1 << core.index()
            }
            #[inline]
            fn with(self, other: Self) -> Self {
                self | other
            }
            #[inline]
            fn without(self, other: Self) -> Self {
                self & !other
            }
        }
    };
}
core_mask!(u64);
core_mask!(u128);

/// Hash table of lines and their possible holders, with linear probing and at most half full.
#[derive(Clone, Debug)]
pub(super) struct HolderTable<M> {
    entries: Vec<Entry<M>>,
    used: usize,
}

/// Line of a filter, and its possible holders.
#[derive(Clone, Copy, Debug, Default)]
struct Entry<M> {
    key: Option<LineKey>,
    mask: M,
}

impl<M: CoreMask> Default for HolderTable<M> {
    fn default() -> Self {
        HolderTable { entries: vec![Entry::default(); 1 << 10], used: 0 }
    }
}

impl<M: CoreMask> HolderTable<M> {
    /// Entry at which the search for `line` begins.
    #[inline]
    fn home(&self, line: LineAddr) -> usize {
        mix(line.0).to_usize() & (self.entries.len() - 1)
    }
    #[inline]
    fn prefetch_on_host(&self, line: LineAddr) {
        prefetch(&self.entries[self.home(line)]);
    }
    fn slot(&self, line: LineAddr) -> usize {
        let mut i = self.home(line);
        let key = LineKey::from(line);
        while self.entries[i].key.is_some_and(|other| other != key) {
            i = (i + 1) & (self.entries.len() - 1);
        }
        i
    }
    #[inline(never)]
    fn add(&mut self, line: LineAddr, core: CoreId) -> bool {
        let mut i = self.slot(line);
        if self.entries[i].key.is_none() {
            if self.used * 2 >= self.entries.len() {
                self.grow();
                i = self.slot(line);
            }
            self.entries[i].key = Some(line.into());
            self.used += 1;
        }
        let mask = &mut self.entries[i].mask;
        *mask = mask.with(M::of(core));
        *mask == M::of(core)
    }
    #[cold]
    fn grow(&mut self) {
        let n = self.entries.len() * 2;
        for entry in std::mem::replace(&mut self.entries, vec![Entry::default(); n]) {
            if let Some(line) = entry.key {
                let j = self.slot(line.into());
                self.entries[j] = entry;
            }
        }
    }
    #[inline(never)]
    fn holders(&self, line: LineAddr) -> u128 {
        self.entries[self.slot(line)].mask.into()
    }
    #[inline(never)]
    fn drop_holder(&mut self, line: LineAddr, core: CoreId) {
        let i = self.slot(line);
        let mask = &mut self.entries[i].mask;
        *mask = mask.without(M::of(core));
        self.forget(i);
    }
    #[inline(never)]
    fn take(&mut self, line: LineAddr) -> u128 {
        let i = self.slot(line);
        let holders = std::mem::take(&mut self.entries[i].mask);
        self.forget(i);
        holders.into()
    }
    /// Removes entry `i` if no core holds its line, so that the filter stays as small as the caches. Later entries move
    /// towards their first slots, so that a look-up still finds them.
    fn forget(&mut self, mut i: usize) {
        if self.entries[i].key.is_none() || self.entries[i].mask != M::default() {
            return;
        }
        self.used -= 1;
        let mask = self.entries.len() - 1;
        let mut j = i;
        loop {
            self.entries[i] = Entry::default();
            loop {
                j = (j + 1) & mask;
                let Some(key) = self.entries[j].key else { return };
                let home = self.home(key.into());
                if (j.wrapping_sub(home) & mask) >= (j.wrapping_sub(i) & mask) {
                    break;
                }
            }
            self.entries[i] = self.entries[j];
            i = j;
        }
    }
}

/// A set of lines, with one bit for each line of every region that has had a line in the set.
#[derive(Clone, Debug, Default)]
pub(super) struct LineSet {
    regions: Vec<Vec<u64>>,
}

impl LineSet {
    /// Position of the bit of `line`: region, word and bit.
    #[inline]
    fn place(map: &AddressMap, line: LineAddr) -> (usize, usize, u64) {
        let id = map.id(line);
        let at = line - map.get(id).base;
        (id.index(), (at / 64).to_usize(), 1 << (at % 64))
    }
    pub(super) fn add(&mut self, map: &AddressMap, line: LineAddr) {
        let (region, word, bit) = LineSet::place(map, line);
        if self.regions.len() <= region {
            self.regions.resize(region + 1, Vec::new());
        }
        let words = &mut self.regions[region];
        if words.is_empty() {
            words.resize(map.of(line).lines.div_ceil(64).to_usize(), 0);
        }
        words[word] |= bit;
    }
    #[inline]
    pub(super) fn remove(&mut self, map: &AddressMap, line: LineAddr) {
        let (region, word, bit) = LineSet::place(map, line);
        if let Some(w) = self.regions.get_mut(region).and_then(|words| words.get_mut(word)) {
            *w &= !bit;
        }
    }
    #[inline]
    pub(super) fn has(&self, map: &AddressMap, line: LineAddr) -> bool {
        let (region, word, bit) = LineSet::place(map, line);
        self.regions.get(region).and_then(|words| words.get(word)).is_some_and(|w| w & bit != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::TenantId;
    use crate::memory::region::{RegionKind, Sharing};
    use std::collections::HashMap;

    fn agrees_with_a_map<M: CoreMask>(cores: u64) {
        let (mut filter, mut model) = (HolderTable::<M>::default(), HashMap::<LineAddr, u128>::new());
        for i in 0..200_000u64 {
            let r = mix(i);
            let (line, core) = (LineAddr(r >> 8 & 0x3ff), ((r >> 32) % cores) as usize);
            match r % 4 {
                0 => {
                    let alone = filter.add(line, CoreId::new(core));
                    let holders = model.entry(line).or_default();
                    *holders |= 1 << core;
                    assert_eq!(alone, *holders == 1 << core);
                }
                1 | 2 => {
                    filter.drop_holder(line, CoreId::new(core));
                    model.entry(line).and_modify(|m| *m &= !(1 << core));
                }
                _ => assert_eq!(filter.take(line), model.remove(&line).unwrap_or(0)),
            }
            model.retain(|l, m| *l != line || *m != 0);
            assert_eq!(filter.holders(line), model.get(&line).copied().unwrap_or(0));
            assert_eq!(filter.used, model.len());
        }
        for (line, holders) in model {
            assert_eq!(filter.holders(line), holders);
        }
    }

    #[test]
    fn snoop_filter_agrees_with_a_map_and_forgets_what_nobody_holds() {
        agrees_with_a_map::<u64>(64);
        agrees_with_a_map::<u128>(128);
    }

    /// The last core of each width fits.
    #[test]
    fn snoop_filter_has_a_bit_for_every_core() {
        for cores in [1, 64, 65, 128] {
            let mut filter = SharedFilter::of_cores(cores);
            let last = CoreId::new(cores - 1);
            assert!(filter.add(LineAddr(7), last));
            assert_eq!(filter.holders(LineAddr(7)), 1 << (cores - 1));
        }
    }

    #[test]
    fn a_set_of_lines_has_what_was_added_and_not_removed() {
        let mut map = AddressMap::default();
        let bases: Vec<LineAddr> = [70, 5000, 64]
            .map(|lines| {
                let id = map.add(lines, RegionKind::App, Sharing::Shared, TenantId(0));
                map.get(id).base
            })
            .into();
        let (mut set, mut model) = (LineSet::default(), std::collections::HashSet::new());
        let mut dice = 7;
        for _ in 0..20_000 {
            dice = mix(dice);
            let line = bases[dice as usize % 3] + (dice >> 8) % 64;
            if dice >> 40 & 1 == 0 {
                set.add(&map, line);
                model.insert(line);
            } else {
                set.remove(&map, line);
                model.remove(&line);
            }
            assert_eq!(set.has(&map, line), model.contains(&line));
        }
        for line in bases.iter().flat_map(|b| b.span(64u64)) {
            assert_eq!(set.has(&map, line), model.contains(&line));
        }
    }
}
