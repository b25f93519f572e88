//! Who owns which addresses. Breakdowns of memory traffic come from region x cause x direction, so
//! a region is registered once and nothing else in the engine asks what a line is for.

use crate::kernel::rng::mix;
use crate::kernel::units::Size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a region holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Receive buffers: written by the NIC, read by cores.
    Rx,
    /// Transmit buffers: written by cores, read by the NIC.
    Tx,
    /// The application's own data.
    App,
    /// Buffers of peripherals behind the IIO.
    Io,
}

/// Who may have copies of a region's lines in private caches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sharing {
    /// One core only: the snoop filter is exact without an entry per line.
    Core(u16),
    /// Any core; a snoop filter tracks who.
    Shared,
    /// No core: only devices touch it.
    Device,
}

#[derive(Clone, Debug)]
pub struct Region {
    pub base: u64,
    pub lines: u64,
    pub kind: Kind,
    pub sharing: Sharing,
    pub tenant: u8,
}

/// Index of a region.
pub type RegionId = u16;

/// 128 KiB: small rings lie back to back, so that they spread over all banks of DRAM.
const GRANULE_BITS: u32 = 11;

/// The simulated physical address space: regions back to back, as a pool in huge pages gives.
#[derive(Clone, Debug, Default)]
pub struct AddressMap {
    regions: Vec<Region>,
    granules: Vec<RegionId>,
}

impl AddressMap {
    /// Registers a region of `lines` 64-byte lines and returns its index.
    pub fn add(&mut self, lines: u64, kind: Kind, sharing: Sharing, tenant: u8) -> RegionId {
        let id = self.regions.len() as RegionId;
        let base = (self.granules.len() as u64) << GRANULE_BITS;
        let granules = lines.div_ceil(1 << GRANULE_BITS).max(1);
        self.granules.extend(std::iter::repeat_n(id, granules as usize));
        self.regions.push(Region { base, lines, kind, sharing, tenant });
        id
    }
    #[inline]
    pub fn of(&self, line: u64) -> &Region {
        &self.regions[self.granules[(line >> GRANULE_BITS) as usize] as usize]
    }
    #[inline]
    pub fn get(&self, id: RegionId) -> &Region {
        &self.regions[id as usize]
    }
    pub fn iter(&self) -> impl Iterator<Item = &Region> {
        self.regions.iter()
    }
    /// Lines from zero to the end of the last region.
    pub fn span(&self) -> u64 {
        (self.granules.len() as u64) << GRANULE_BITS
    }
}

/// What memory lies in one piece: a page of 4 KiB, as the authors' scripts ask for no huge ones and Redis asks for them to be
/// off (Understanding the Host Network, artifact). docs/models.md, "Pages", has what Linux gives.
pub fn contiguous() -> Size {
    Size(4096)
}

/// The largest page of x86-64.
const LARGEST: Size = Size(1 << 30);

/// # Errors
/// One clause with key and value, unless `contiguous` bytes are a piece of at least `least`.
pub fn check_contiguous(contiguous: Size, least: Size) -> Result<(), String> {
    if !contiguous.0.is_power_of_two() || !(least..=LARGEST).contains(&contiguous) {
        return Err(format!("contiguous = \"{contiguous}\" is not a power of two within {least} to {LARGEST}"));
    }
    Ok(())
}

/// Buffer whose pages lie anywhere in its region: virtual line to physical line.
#[derive(Clone, Debug)]
pub struct Pages {
    base: u64,
    shift: u32,
    pages: u64,
    /// Half the bits of a page number, rounded up.
    half: u32,
    key: u64,
    last: (u64, u64),
}

impl Pages {
    /// `lines` lines in pages of `page_lines` (a power of two) in the region that starts at `base`, which
    /// must hold whole pages.
    pub fn new(base: u64, lines: u64, page_lines: u64, key: u64) -> Pages {
        let pages = lines.div_ceil(page_lines).max(1);
        let bits = u64::BITS - (pages - 1).leading_zeros();
        let shift = page_lines.trailing_zeros();
        let mut p = Pages { base, shift, pages, half: bits.div_ceil(2), key, last: (0, 0) };
        p.last.1 = p.place(0);
        p
    }

    /// A permutation of the page numbers: four Feistel rounds, again while the result is beyond the end.
    fn place(&self, page: u64) -> u64 {
        if self.pages == 1 {
            return 0;
        }
        let mask = (1u64 << self.half) - 1;
        let mut x = page;
        loop {
            let (mut l, mut r) = (x >> self.half, x & mask);
            for round in 0..4 {
                (l, r) = (r, l ^ (mix(r ^ self.key.rotate_left(round * 16)) & mask));
            }
            x = l << self.half | r;
            if x < self.pages {
                return x;
            }
        }
    }

    #[inline]
    pub fn line(&mut self, line: u64) -> u64 {
        let page = line >> self.shift;
        if page != self.last.0 {
            self.last = (page, self.place(page));
        }
        self.base + (self.last.1 << self.shift | line & ((1 << self.shift) - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_a_permutation_and_keep_their_lines_together() {
        for pages in [1u64, 2, 5, 512, 700] {
            let mut p = Pages::new(1 << 20, pages * 64, 64, 7);
            let mut seen: Vec<u64> = (0..pages).map(|i| p.line(i * 64)).collect();
            assert_eq!(p.line((pages - 1) * 64 + 63), seen[pages as usize - 1] + 63);
            seen.sort_unstable();
            let all: Vec<u64> = (0..pages).map(|i| (1 << 20) + i * 64).collect();
            assert_eq!(seen, all);
        }
    }

    #[test]
    fn every_line_of_a_region_maps_back_to_it() {
        let mut m = AddressMap::default();
        let a = m.add(10, Kind::Rx, Sharing::Core(0), 0);
        let b = m.add(40_000, Kind::App, Sharing::Shared, 1);
        assert_eq!(m.of(m.get(a).base + 9).kind, Kind::Rx);
        let r = m.get(b);
        assert_eq!(m.of(r.base + 39_999).tenant, 1);
        assert_eq!(r.base, 2048, "the first region takes one granule");
    }
}
