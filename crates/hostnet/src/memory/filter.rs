//! Snoop filter of shared regions, and compact sets of lines.

use super::region::AddressMap;
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
pub(super) struct SharedFilter {
    entries: Vec<Entry>,
    used: usize,
}

/// Line of a filter, and its possible holders.
#[derive(Clone, Copy, Debug)]
struct Entry {
    key: Option<LineKey>,
    mask: u128,
}

impl Entry {
    const NONE: Entry = Entry { key: None, mask: 0 };
}

impl Default for SharedFilter {
    fn default() -> Self {
        SharedFilter { entries: vec![Entry::NONE; 1 << 10], used: 0 }
    }
}

impl SharedFilter {
    fn slot(&self, line: LineAddr) -> usize {
        let mask = self.entries.len() - 1;
        let mut i = mix(line.0).to_usize() & mask;
        let key = LineKey::from(line);
        while self.entries[i].key.is_some_and(|other| other != key) {
            i = (i + 1) & mask;
        }
        i
    }
    /// Notes that `core` holds the line; returns whether no other core may hold it.
    #[inline(never)]
    pub(super) fn add(&mut self, line: LineAddr, core: CoreId) -> bool {
        let mut i = self.slot(line);
        if self.entries[i].key.is_none() {
            if self.used * 2 >= self.entries.len() {
                let n = self.entries.len() * 2;
                for entry in std::mem::replace(&mut self.entries, vec![Entry::NONE; n]) {
                    if let Some(line) = entry.key {
                        let j = self.slot(line.into());
                        self.entries[j] = entry;
                    }
                }
                i = self.slot(line);
            }
            self.entries[i].key = Some(line.into());
            self.used += 1;
        }
        let mask = &mut self.entries[i].mask;
        *mask |= 1 << core.index();
        *mask == 1 << core.index()
    }
    #[inline(never)]
    pub(super) fn holders(&self, line: LineAddr) -> u128 {
        self.entries[self.slot(line)].mask
    }
    #[inline(never)]
    pub(super) fn drop_holder(&mut self, line: LineAddr, core: CoreId) {
        let i = self.slot(line);
        self.entries[i].mask &= !(1 << core.index());
        self.forget(i);
    }
    /// Removes and returns the possible holders of a line, which are about to lose it.
    #[inline(never)]
    pub(super) fn take(&mut self, line: LineAddr) -> u128 {
        let i = self.slot(line);
        let holders = std::mem::take(&mut self.entries[i].mask);
        self.forget(i);
        holders
    }
    /// Removes entry `i` if no core holds its line, so that the filter stays as small as the caches. Later entries move
    /// towards their first slots, so that a look-up still finds them.
    fn forget(&mut self, mut i: usize) {
        if self.entries[i].key.is_none() || self.entries[i].mask != 0 {
            return;
        }
        self.used -= 1;
        let mask = self.entries.len() - 1;
        let mut j = i;
        loop {
            self.entries[i] = Entry::NONE;
            loop {
                j = (j + 1) & mask;
                let Some(key) = self.entries[j].key else { return };
                let home = mix(LineAddr::from(key).0).to_usize() & mask;
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

    #[test]
    fn snoop_filter_agrees_with_a_map_and_forgets_what_nobody_holds() {
        let (mut filter, mut model) = (SharedFilter::default(), HashMap::<LineAddr, u128>::new());
        for i in 0..200_000u64 {
            let r = mix(i);
            let (line, core) = (LineAddr(r >> 8 & 0x3ff), (r >> 32 & 7) as usize * 17);
            match r % 4 {
                0 => {
                    filter.add(line, CoreId::new(core));
                    *model.entry(line).or_default() |= 1 << core;
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
