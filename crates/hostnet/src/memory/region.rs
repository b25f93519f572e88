//! Who owns which addresses. Breakdowns of memory traffic come from region x cause x direction, so
//! a region is registered once and nothing else in the engine asks what a line is for.

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
}

/// Who may have copies of a region's lines in private caches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sharing {
    /// One core only: the snoop filter is exact without an entry per line.
    Core(u16),
    /// Any core; a snoop filter tracks who.
    Shared,
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

#[cfg(test)]
mod tests {
    use super::*;

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
