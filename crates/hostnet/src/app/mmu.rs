//! Address translation for applications whose data lies in far more pages than a TLB holds. The model has pages of
//! 4 KiB, the second-level TLB of a core, and the last level of the page table, whose lines are cached and fetched like
//! data. The upper levels lie in the paging-structure caches of a core (Intel, TLBs, Paging-Structure Caches, and Their
//! Invalidation, 2007).

use crate::core::spec::TlbSpec;
use crate::kernel::{LineAddr, RandomStream, TenantId, ThreadId};
use crate::memory::array::{CacheArray, Indexing, Replacement};
use crate::memory::region::{AddressMap, Contiguous, Pages, RegionKind, Sharing, PAGE};
use crate::memory::LINE;

/// Page table entries per line.
const ENTRIES: u64 = LINE / 8;

/// A core's translation of the pages of its application; pages have numbers.
#[derive(Clone)]
pub struct Mmu {
    tlb: CacheArray,
    table: Pages,
    ways: u32,
    /// Cycles of a page walk in addition to the access to the last level.
    pub walk: u16,
}

impl Mmu {
    /// Address translation for `pages` pages that `core` of `tenant` uses.
    ///
    /// # Errors
    /// Returns one clause when the TLB has no usable shape.
    pub fn new(
        s: &TlbSpec,
        pages: u64,
        thread: ThreadId,
        tenant: TenantId,
        map: &mut AddressMap,
        rng: &mut RandomStream,
    ) -> Result<Mmu, String> {
        s.check()?;
        let tlb = CacheArray::new(s.entries / s.ways, s.ways, Replacement::Lru, Indexing::Modulo, 1)?;
        let (c, page_lines) = (Contiguous::Pieces(PAGE), PAGE.0 / LINE);
        let lines = c.whole(pages.div_ceil(ENTRIES), page_lines);
        let r = map.add(lines, RegionKind::App, Sharing::of_thread(thread), tenant);
        let table = Pages::new(map.get(r).base, lines, c, page_lines, rng.below(u64::MAX));
        Ok(Mmu { tlb, table, ways: s.ways, walk: s.walk_cycles })
    }

    /// Line of `page`'s page table entry, which the core must read before it can access the page; None when the TLB of
    /// the core holds the page.
    pub fn walk(&mut self, page: u64) -> Option<LineAddr> {
        if let Some(slot) = self.tlb.find(LineAddr(page)) {
            self.tlb.touch(slot);
            return None;
        }
        self.tlb.insert_in_slice(LineAddr(page), false, u32::MAX >> (32 - self.ways));
        Some(self.table.line(page / ENTRIES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_walked_for_once_its_set_has_seen_as_many_others_as_it_has_ways() {
        let spec = TlbSpec { entries: 1536, ways: 12, walk_cycles: 20 };
        let (mut map, mut rng) = (AddressMap::default(), RandomStream::new(1, "test", 0));
        let mut m = Mmu::new(&spec, 1 << 15, ThreadId(0), TenantId(0), &mut map, &mut rng).unwrap();
        // There are 128 sets: every 128th page maps to the first one.
        assert!((0..12).all(|i| m.walk(128 * i).is_some()));
        assert!((0..12).all(|i| m.walk(128 * i).is_none()));
        assert!(m.walk(128 * 12).is_some() && m.walk(0).is_some(), "the least recently used one made room");
        assert_eq!(m.walk(128 * 11), None);
        // Eight entries of eight bytes share a line.
        let line = |m: &mut Mmu, page| m.walk(page).unwrap();
        let first = line(&mut m, 4096 + 8);
        assert!((9..16).all(|i| line(&mut m, 4096 + i) == first) && line(&mut m, 4096 + 16) != first);
    }
}
