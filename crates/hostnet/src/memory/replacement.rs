//! Replacement policies: their names, and the implementation of the rare ones. LRU, random and NMRU are implemented in
//! `array`.

use super::array::{CacheArray, CacheSlot};
use crate::kernel::Int;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Largest re-reference interval of SRRIP with 2 bits.
const LAST: u8 = 3;

/// Policy that chooses the victim of a full set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Replacement {
    /// The least recently used line.
    #[default]
    Lru,
    /// LRU as a scan from the lowest way on. The scan moves to every empty way, and from there only to older lines in
    /// higher ways, so that such a line is evicted although a way is empty. An emptied way keeps its age.
    LruScan,
    /// Tree pseudo-LRU (Handy, The Cache Memory Book, 1998).
    TreePlru,
    /// Static re-reference interval prediction with 2 bits (Jaleel et al., ISCA 2010).
    Srrip,
    /// Not recently used, with one bit per line that a use sets; when the bits of all ways that a line may take are
    /// set, the other bits are cleared. The victim is random among the ways with a clear bit (a choice of zSim;
    /// UltraSPARC T1's L2).
    Nru,
    /// A uniformly random line.
    Random,
    /// A random line other than the line used last.
    Nmru,
}

impl Replacement {
    #[inline]
    pub(super) fn is_lru(self) -> bool {
        matches!(self, Replacement::Lru | Replacement::LruScan)
    }
}

impl CacheArray {
    pub(super) fn scanned(&mut self, base: u32, mask: u32) -> u32 {
        let empty = self.ways_with(base, None);
        let ages = self.ages_mut(base);
        let mut best = mask.trailing_zeros();
        for way in (best + 1..ages.len().to_u32()).filter(|w| mask >> w & 1 == 1) {
            if empty >> way & 1 == 1 || ages[way.to_usize()] < ages[best.to_usize()] {
                best = way;
            }
        }
        best
    }

    /// Makes the line in `slot` the next victim, under SRRIP.
    pub fn expire(&mut self, slot: CacheSlot) {
        *self.age_mut(slot.base, slot.way) = LAST;
    }

    #[cold]
    pub(super) fn touch_rarer(&mut self, base: u32, way: u32) {
        match self.policy {
            Replacement::Srrip => *self.age_mut(base, way) = 0,
            Replacement::TreePlru => self.point_away(self.set_of(base), way),
            Replacement::Nru => self.use_among(base, way, u32::MAX),
            _ => {}
        }
    }

    /// Records a use of `way` for NRU, which treats the ways of `mask` as a group.
    fn use_among(&mut self, base: u32, way: u32, mask: u32) {
        let (ages, way) = (self.ages_mut(base), way.to_usize());
        ages[way] = 1;
        let open = |w: &usize| mask >> w & 1 == 1;
        if (0..ages.len()).filter(open).all(|w| ages[w] == 1) {
            (0..ages.len()).filter(open).filter(|w| *w != way).for_each(|w| ages[w] = 0);
        }
    }

    fn point_away(&mut self, set: usize, way: u32) {
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

    /// Way that the tree's bits lead to; where the mask leaves no way on one side, the search takes the other side.
    fn plru_way(&self, set: usize, mask: u32) -> u32 {
        let (mut node, mut lo, mut hi) = (1usize, 0, self.ways.next_power_of_two());
        let any = |a: u32, b: u32| (a..b.min(self.ways)).any(|w| mask >> w & 1 == 1);
        while hi - lo > 1 {
            let mid = (lo + hi) / 2;
            let right = self.tree[set] >> (node - 1) & 1 == 1;
            let right = if right { any(mid, hi) } else { !any(lo, mid) };
            (node, lo, hi) = if right { (node * 2 + 1, mid, hi) } else { (node * 2, lo, mid) };
        }
        lo
    }

    #[cold]
    pub(super) fn choose_rarer(&mut self, base: u32, mask: u32) -> u32 {
        let ways = self.ways.to_usize();
        let empty = self.ways_with(base, None) & mask;
        if empty != 0 {
            return empty.trailing_zeros();
        }
        match self.policy {
            Replacement::Nru => {
                let ages = self.ages_mut(base);
                let clear = (0..ways).filter(|w| ages[*w] == 0).fold(0, |m, w| m | 1 << w);
                // Hits in the ways of another mask may have set all bits of this one.
                self.draw(if mask & clear == 0 { mask } else { mask & clear })
            }
            Replacement::TreePlru => self.plru_way(self.set_of(base), mask),
            _ => {
                // All intervals advance until one of these ways has the largest.
                let way = self.highest(base, mask);
                let on = LAST - *self.age_mut(base, way);
                if on > 0 {
                    self.ages_mut(base).iter_mut().for_each(|interval| *interval = (*interval + on).min(LAST));
                }
                way
            }
        }
    }

    #[cold]
    pub(super) fn enter_rarer(&mut self, base: u32, way: u32, mask: u32) {
        match self.policy {
            Replacement::Srrip => *self.age_mut(base, way) = 2, // "long re-reference interval" on insertion
            Replacement::Nru => self.use_among(base, way, mask),
            _ => self.point_away(self.set_of(base), way),
        }
    }
}
