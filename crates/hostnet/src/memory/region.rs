//! Regions of the address space and their owners. Breakdowns of memory traffic derive from region, cause and direction,
//! so a region is registered once and no other part of the engine has to know the purpose of a line.

use crate::kernel::rng::mix;
use crate::kernel::units::Size;
use crate::kernel::{CoreId, IdVec, Int, LineAddr, NodeId, RegionId, TenantId, ThreadId};
use crate::memory::LINE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;

/// Purpose of the lines of a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RegionKind {
    /// Receive buffers: written by the NIC, read by cores.
    Rx,
    /// Transmit buffers: written by cores, read by the NIC.
    Tx,
    /// Data of an application.
    App,
    /// Buffers of peripherals behind the IIO.
    Io,
}

/// Cores that may have copies of a region's lines in their private caches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sharing {
    /// One core only; the snoop filter needs no entries for its lines.
    Core(CoreId),
    /// Any core; a snoop filter tracks the holders.
    Shared,
    /// No core: only devices access the region.
    Device,
}

impl Sharing {
    /// The sharing of a region that only the core of `thread` uses. Until [`AddressMap::settle_on_cores`] determines
    /// that core, the thread's number takes its place.
    pub const fn of_thread(thread: ThreadId) -> Sharing {
        Sharing::Core(CoreId(thread.0))
    }
}

/// A range of simulated memory with one use and one tenant.
#[derive(Clone, Debug)]
pub struct Region {
    /// First line of the region.
    pub base: LineAddr,
    /// Number of lines of the region.
    pub lines: u64,
    /// Use of the region.
    pub kind: RegionKind,
    /// Cores that use the region.
    pub sharing: Sharing,
    /// Tenant that the region belongs to.
    pub tenant: TenantId,
    /// Node whose memory holds the region.
    pub home: Option<NodeId>,
    /// Whether cores poll lines of the region that devices write, such as rings of descriptors.
    pub polled: bool,
    /// Whether an agent has written to the region; known for shared regions only.
    pub written: bool,
    /// Whether software may discard cached lines of the region without write-back (IDIO, section V-D).
    pub invalidatable: bool,
    /// Places of the region's pieces, where these lie in another order than in the virtual addresses of the software.
    pieces: Option<Box<Pages>>,
}

impl Region {
    /// Whether requests of cores for the region's lines can conflict with requests of other agents, and so need an
    /// order.
    #[inline]
    pub fn is_ordered(&self) -> bool {
        self.sharing == Sharing::Shared || self.kind != RegionKind::App
    }
}

/// Default alignment of regions, which is so small that small rings lie back to back and spread over all banks of DRAM.
pub const ALIGNMENT: Size = Size(128 << 10);

/// Simulated physical address space: regions lie back to back, as those of a pool in huge pages do.
#[derive(Clone, Debug)]
pub struct AddressMap {
    regions: IdVec<RegionId, Region>,
    granules: Vec<RegionId>,
    /// Number of lines of a granule, as a power of two.
    granule_bits: u32,
}

impl Default for AddressMap {
    fn default() -> Self {
        AddressMap::aligned(ALIGNMENT)
    }
}

impl AddressMap {
    /// Makes an address map whose regions begin at multiples of `alignment`, a power of two of at least a page.
    pub fn aligned(alignment: Size) -> AddressMap {
        let granule_bits = (alignment.0 / LINE).trailing_zeros();
        AddressMap { regions: IdVec::new(), granules: Vec::new(), granule_bits }
    }
    /// Registers a region of `lines` 64-byte lines and returns its index.
    pub fn add(&mut self, lines: u64, kind: RegionKind, sharing: Sharing, tenant: TenantId) -> RegionId {
        let id = self.regions.next_id();
        let base = LineAddr(self.span());
        let granules = lines.div_ceil(1 << self.granule_bits).max(1);
        self.granules.extend(std::iter::repeat_n(id, granules.to_usize()));
        self.regions.push(Region {
            base,
            lines,
            kind,
            sharing,
            tenant,
            home: None,
            polled: false,
            written: false,
            invalidatable: false,
            pieces: None,
        });
        id
    }
    /// Registers a region for a buffer of at least `lines` lines in pieces according to `c`, which lie in the region in an order
    /// that follows from `key`; returns the buffer.
    pub fn add_pieces(&mut self, (lines, c, key): (u64, Contiguous, u64), sharing: Sharing, tenant: TenantId) -> Pages {
        let whole = c.whole(lines, PAGE_LINES);
        let id = self.add(whole, RegionKind::App, sharing, tenant);
        let pages = Pages::new(self.regions[id].base, whole, c, PAGE_LINES, key);
        self.regions[id].pieces = Some(Box::new(pages.clone()));
        pages
    }
    /// Puts a region into the memory of `node`. By default a region lies in the memory of its core's node, or in that
    /// of the first node.
    pub fn set_home(&mut self, id: RegionId, node: NodeId) {
        self.regions[id].home = Some(node);
    }
    /// Turns the threads that own regions into their cores; `cores` holds the core of each thread.
    pub fn settle_on_cores(&mut self, cores: &IdVec<ThreadId, CoreId>) {
        for r in &mut self.regions {
            if let Sharing::Core(c) = &mut r.sharing {
                *c = cores.get(ThreadId(c.0)).copied().unwrap_or(*c);
            }
        }
    }
    /// Assigns regions without a home to the node of their tenant, where `node` knows the tenant.
    pub fn settle_by_tenant(&mut self, node: impl Fn(TenantId) -> Option<NodeId>) {
        for r in self.regions.iter_mut().filter(|r| r.home.is_none()) {
            r.home = node(r.tenant);
        }
    }
    /// Assigns a home to regions without one; `core_nodes` holds the node of each core.
    pub(super) fn settle_homes(&mut self, core_nodes: &IdVec<CoreId, NodeId>) {
        for r in self.regions.iter_mut().filter(|r| r.home.is_none()) {
            r.home = Some(match r.sharing {
                Sharing::Core(c) => core_nodes.get(c).copied().unwrap_or_default(),
                Sharing::Shared | Sharing::Device => NodeId(0),
            });
        }
    }
    /// Marks the region of `line` as one whose dirty lines software may discard.
    pub fn make_invalidatable(&mut self, line: LineAddr) {
        let id = self.id(line);
        self.regions[id].invalidatable = true;
    }
    /// The region that holds `line`.
    #[inline(always)]
    pub fn of(&self, line: LineAddr) -> &Region {
        &self.regions[self.id(line)]
    }
    /// Marks a region whose lines cores poll and devices write.
    pub fn set_polled(&mut self, id: RegionId) {
        self.regions[id].polled = true;
    }
    /// Notes that an agent has written to the region of `line`.
    pub(super) fn note_write(&mut self, line: LineAddr) {
        let id = self.id(line);
        self.regions[id].written = true;
    }
    /// The granule that `line` is in.
    #[inline(always)]
    fn granule(&self, line: LineAddr) -> usize {
        (line.0 >> self.granule_bits).to_usize()
    }
    /// Whether `lines` contains only regions of this `kind`.
    pub fn is_all(&self, kind: RegionKind, lines: &Range<LineAddr>) -> bool {
        let end = (lines.end.0.div_ceil(1 << self.granule_bits).to_usize()).min(self.granules.len());
        let ids = &self.granules[self.granule(lines.start)..end];
        ids.iter().all(|id| self.regions[*id].kind == kind)
    }
    /// Index of the region of `line`.
    #[inline(always)]
    pub fn id(&self, line: LineAddr) -> RegionId {
        self.granules[self.granule(line)]
    }
    /// First line of the page whose virtual addresses follow those of the page of `line`, or precede them with `step` = -1. None
    /// where that page belongs to another region.
    pub fn neighbouring_page(&self, line: LineAddr, step: i64) -> Option<LineAddr> {
        let first = line - line.0 % PAGE_LINES;
        if let Some(pieces) = &self.of(line).pieces {
            return pieces.neighbouring_page(first, step);
        }
        let next = LineAddr(first.0.checked_add_signed(step * PAGE_LINES.cast_signed())?);
        (self.granules.get(self.granule(next)) == Some(&self.id(line))).then_some(next)
    }
    /// Line that `line` would be if the pages beside that of `from` were those with the neighbouring virtual addresses. None where
    /// these belong to another region.
    pub fn in_virtual_order(&self, from: LineAddr, line: LineAddr) -> Option<LineAddr> {
        let pages = (line.0 / PAGE_LINES).cast_signed() - (from.0 / PAGE_LINES).cast_signed();
        let mut first = from - from.0 % PAGE_LINES;
        for _ in 0..pages.abs() {
            first = self.neighbouring_page(first, pages.signum())?;
        }
        Some(first + line.0 % PAGE_LINES)
    }
    /// The region with identifier `id`.
    #[inline]
    pub fn get(&self, id: RegionId) -> &Region {
        &self.regions[id]
    }
    /// All regions, in the order of their addresses.
    pub fn iter(&self) -> impl Iterator<Item = &Region> {
        self.regions.iter()
    }
    /// Number of lines from zero to the end of the last region.
    pub fn span(&self) -> u64 {
        self.granules.len().to_u64() << self.granule_bits
    }
}

/// Lines of a page of 4 KiB.
pub const PAGE_LINES: u64 = PAGE.0 / LINE;

/// Physical contiguity of a buffer: the size of its contiguous pieces, which may lie anywhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum Contiguous {
    /// Pieces as from Linux' buddy allocator once memory is fragmented: equal amounts of memory in pieces of each of
    /// the allocator's eleven orders, from 4 KiB to 4 MiB. docs/models/machine.md, "Pages", describes the measurement.
    #[default]
    Buddy,
    /// Pieces of one size, a power of two.
    Pieces(Size),
}

/// Smallest page of x86-64.
pub const PAGE: Size = Size(4 << 10);
/// Largest page of x86-64.
const LARGEST: Size = Size(1 << 30);

impl TryFrom<String> for Contiguous {
    type Error = String;
    fn try_from(s: String) -> Result<Contiguous, String> {
        if s == "buddy" {
            return Ok(Contiguous::Buddy);
        }
        let size = Size::parse(&s);
        size.map(Contiguous::Pieces)
            .map_err(|_| format!("expected \"buddy\" or a size such as \"32 KiB\", not \"{s}\""))
    }
}

impl From<Contiguous> for String {
    fn from(c: Contiguous) -> String {
        c.to_string()
    }
}

impl fmt::Display for Contiguous {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Contiguous::Buddy => f.write_str("buddy"),
            Contiguous::Pieces(s) => s.fmt(f),
        }
    }
}

impl Contiguous {
    /// Checks that every piece holds at least `least` bytes.
    ///
    /// # Errors
    /// Fails with one clause that names key and value.
    pub fn check(self, least: Size) -> Result<(), String> {
        match self {
            Contiguous::Buddy if least > PAGE => {
                Err(format!("contiguous = \"buddy\" has pieces of {PAGE}, which do not hold {least}"))
            }
            Contiguous::Pieces(s) if !s.0.is_power_of_two() || !(least..=LARGEST).contains(&s) => {
                Err(format!("contiguous = \"{s}\" is not a power of two within {least} to {LARGEST}"))
            }
            _ => Ok(()),
        }
    }

    /// Mean number of lines of a piece.
    pub fn mean_lines(self) -> f64 {
        match self {
            Contiguous::Buddy => {
                let pieces: u64 = (0..KINDS).map(|k| CELL >> k.min(TOP)).sum();
                (KINDS * CELL).to_f64() / pieces.to_f64() * (PAGE.0 / LINE).to_f64()
            }
            Contiguous::Pieces(s) => (s.0 / LINE).to_f64(),
        }
    }

    /// Number of units that a buffer of `units` takes in whole pieces; a page of 4 KiB has `page` units.
    pub fn whole(self, units: u64, page: u64) -> u64 {
        units.next_multiple_of(match self {
            Contiguous::Buddy => CELL * page,
            Contiguous::Pieces(s) => (s.0 * page / PAGE.0).max(1),
        })
    }
}

/// Number of orders of the buddy allocator.
const KINDS: u64 = 11;
/// Number of 4 KiB pages in a cell: larger pieces are cut at this size, 128 KiB, beyond which DRAM sees no difference.
const CELL: u64 = 1 << TOP;
const TOP: u64 = 5;

/// Permutes the numbers below `n` by four Feistel rounds, repeated while the result is out of range.
fn permute(x: u64, n: u64, key: u64) -> u64 {
    let round = |(l, r): (u64, u64), i: u32, mask: u64| (r, l ^ (mix(r ^ key.rotate_left(16 * i)) & mask));
    repeat_into(x, n, |halves, mask| (0..4).fold(halves, |h, i| round(h, i, mask)))
}

/// The number that [`permute`] maps to `x`.
fn unpermute(x: u64, n: u64, key: u64) -> u64 {
    let round = |(l, r): (u64, u64), i: u32, mask: u64| (r ^ (mix(l ^ key.rotate_left(16 * i)) & mask), l);
    repeat_into(x, n, |halves, mask| (0..4).rev().fold(halves, |h, i| round(h, i, mask)))
}

/// Applies `rounds` to the two halves of `x`, which `mask` covers, until the number that they make is below `n`.
#[inline]
fn repeat_into(x: u64, n: u64, rounds: impl Fn((u64, u64), u64) -> (u64, u64)) -> u64 {
    if n <= 1 {
        return 0;
    }
    let half = (u64::BITS - (n - 1).leading_zeros()).div_ceil(2);
    let mask = (1u64 << half) - 1;
    let mut x = x;
    loop {
        let (l, r) = rounds((x >> half, x & mask), mask);
        x = l << half | r;
        if x < n {
            return x;
        }
    }
}

/// A buffer whose pieces lie anywhere in its region; maps virtual to physical lines.
#[derive(Clone, Debug)]
pub struct Pages {
    base: LineAddr,
    shift: u32,
    pages: u64,
    /// Whether the buffer has pieces of all orders, in cells that alternate; otherwise every page is a piece.
    buddy: bool,
    key: u64,
    last: (u64, u64),
}

impl Pages {
    /// Makes a buffer of `lines` lines in pieces according to `c`, in the region that starts at `base` and must hold
    /// whole pieces. `page_lines`, a power of two, is the number of lines for each 4 KiB.
    pub fn new(base: LineAddr, lines: u64, c: Contiguous, page_lines: u64, key: u64) -> Pages {
        let unit = match c {
            Contiguous::Buddy => page_lines,
            Contiguous::Pieces(_) => c.whole(1, page_lines),
        };
        let pages = lines.div_ceil(unit).max(1);
        let buddy = c == Contiguous::Buddy;
        let mut p = Pages { base, shift: unit.trailing_zeros(), pages, buddy, key, last: (0, 0) };
        p.last.1 = p.place(0);
        p
    }

    /// Number of cells with pieces of the order of cell `kind`, and how many of them follow each other.
    fn cells(&self, kind: u64) -> (u64, u64) {
        let (whole, rest) = (self.pages.div_ceil(CELL) / KINDS, self.pages.div_ceil(CELL) % KINDS);
        match kind < TOP {
            true => (whole + u64::from(rest > kind), 1),
            false => (whole * (KINDS - TOP) + rest.saturating_sub(TOP), KINDS - TOP),
        }
    }

    fn place(&self, page: u64) -> u64 {
        if !self.buddy {
            return permute(page, self.pages, self.key);
        }
        // Cells of one order: the cell's number, the number of cells, and their numbering.
        let (cell, within) = (page / CELL, page % CELL);
        let (turn, kind) = (cell / KINDS, cell % KINDS);
        let order = kind.min(TOP);
        let (cells, each) = self.cells(kind);
        let nth = turn * each + kind - order;
        let pieces = CELL >> order;
        let to = permute(nth * pieces + (within >> order), cells * pieces, self.key ^ order);
        let cell = to / pieces;
        let cell = cell / each * KINDS + order + cell % each;
        cell * CELL + ((to % pieces) << order) + within % (1 << order)
    }

    /// The page whose place is `place`.
    fn page_at(&self, place: u64) -> u64 {
        if !self.buddy {
            return unpermute(place, self.pages, self.key);
        }
        let (cell, within) = (place / CELL, place % CELL);
        let (turn, kind) = (cell / KINDS, cell % KINDS);
        let order = kind.min(TOP);
        let pieces = CELL >> order;
        let (cells, each) = self.cells(kind);
        let nth = turn * each + kind - order;
        let from = unpermute(nth * pieces + (within >> order), cells * pieces, self.key ^ order);
        let nth = from / pieces;
        let cell = nth / each * KINDS + order + nth % each;
        cell * CELL + ((from % pieces) << order) + within % (1 << order)
    }

    /// First line of the page of 4 KiB whose virtual addresses follow those of the page that begins with `first`, or precede them
    /// with `step` = -1. None outside the buffer, and where pieces are smaller than a page, which no memory is.
    fn neighbouring_page(&self, first: LineAddr, step: i64) -> Option<LineAddr> {
        let unit = 1u64 << self.shift;
        let place = first.0 - self.base.0;
        let line = (self.page_at(place >> self.shift) << self.shift) + place % unit;
        let next = line.checked_add_signed(step * PAGE_LINES.cast_signed())?;
        let inside = unit >= PAGE_LINES && next < self.pages << self.shift;
        inside.then(|| self.base + ((self.place(next >> self.shift) << self.shift) + next % unit))
    }

    /// Place in memory of line number `line` of the buffer.
    #[inline]
    pub fn line(&mut self, line: u64) -> LineAddr {
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

    fn pieces(size: u64) -> Contiguous {
        Contiguous::Pieces(Size(size))
    }

    #[test]
    fn pages_are_a_permutation_and_keep_their_lines_together() {
        for (c, pages) in [1u64, 2, 5, 512, 700]
            .map(|n| (pieces(4096), n))
            .into_iter()
            .chain([32, 96, 352, 3520].map(|n| (Contiguous::Buddy, n)))
        {
            let mut p = Pages::new(LineAddr(1 << 20), pages * 64, c, 64, 7);
            let mut seen: Vec<u64> = (0..pages).map(|i| p.line(i * 64).0).collect();
            assert_eq!(p.line((pages - 1) * 64 + 63), LineAddr(seen[pages as usize - 1] + 63));
            seen.sort_unstable();
            let all: Vec<u64> = (0..pages).map(|i| (1 << 20) + i * 64).collect();
            assert_eq!(seen, all, "{c}");
        }
    }

    /// The page behind a page in virtual addresses is where the buffer's line 64 lines later lies, whatever the pieces; the page
    /// before likewise. Beyond either end there is none, and in a region without pieces the pages lie in order.
    #[test]
    fn neighbouring_pages_are_those_of_the_next_virtual_addresses() {
        let mut map = AddressMap::default();
        map.add(1, RegionKind::App, Sharing::Shared, TenantId(0));
        for c in [pieces(4096), pieces(32 << 10), pieces(2 << 20), Contiguous::Buddy] {
            let mut p = map.add_pieces((64 * 1000, c, 11), Sharing::Shared, TenantId(0));
            let lines = c.whole(64 * 1000, 64);
            for page in 0..lines / 64 {
                let first = p.line(page * 64);
                let next = (page + 1 < lines / 64).then(|| p.line((page + 1) * 64));
                let before = page.checked_sub(1).map(|b| p.line(b * 64));
                assert_eq!(map.neighbouring_page(first + 63, 1), next, "{c}, page {page}");
                assert_eq!(map.neighbouring_page(first, -1), before, "{c}, page {page}");
                // Twenty lines before the end of the page, a distance of 100 lines ends two pages later.
                let (from, ahead) = (first + 44, first + 144);
                let wanted = (page + 2 < lines / 64).then(|| p.line((page + 2) * 64 + 16));
                assert_eq!(map.in_virtual_order(from, ahead), wanted, "{c}, page {page}");
            }
        }
        let plain = map.add(1 << 12, RegionKind::App, Sharing::Shared, TenantId(0));
        let base = map.get(plain).base;
        assert_eq!(map.in_virtual_order(base + 60, base + 70), Some(base + 70));
        assert_eq!(map.neighbouring_page(base, -1), None, "another region");
        assert_eq!(map.in_virtual_order(base + (1 << 12) - 1, base + (1 << 12)), None, "the end of memory");
    }

    /// Pieces that are smaller than a page have no neighbours: no memory is so.
    #[test]
    fn pieces_of_a_line_have_no_neighbouring_page() {
        let mut map = AddressMap::default();
        let mut p = map.add_pieces((640, pieces(64), 3), Sharing::Shared, TenantId(0));
        assert_eq!(map.neighbouring_page(p.line(5), 1), None);
    }

    /// Eleven orders with an equal share each: the cells of 32 pages hold 32, 16, 8, 4 and 2 pieces, and six of them
    /// one piece.
    #[test]
    fn a_fragmented_buffer_has_as_much_memory_in_pieces_of_each_order() {
        let cells = 11 * 400;
        let mut p = Pages::new(LineAddr(0), cells * CELL, Contiguous::Buddy, 1, 3);
        let places: Vec<u64> = (0..cells * CELL).map(|i| p.line(i).0).collect();
        let breaks = places.windows(2).filter(|w| w[1] != w[0] + 1).count() as f64;
        let pieces = (32 + 16 + 8 + 4 + 2 + 6) as f64 * 400.0;
        assert!((breaks / pieces - 1.0).abs() < 0.01, "{breaks} breaks, {pieces} pieces");
        assert!((Contiguous::Buddy.mean_lines() - 352.0 / 68.0 * 64.0).abs() < 1e-9);
        let runs = |cell: usize| places[cell * 32..][..32].windows(2).filter(|w| w[1] == w[0] + 1).count();
        assert!((0..400).all(|i| runs(11 * i + 5) == 31 && runs(11 * i + 10) == 31));
        let neighbours: usize = (0..400).map(|i| runs(11 * i)).sum();
        assert!(neighbours < 20, "{neighbours} single pages follow each other");
    }

    #[test]
    fn every_line_of_a_region_maps_back_to_it() {
        let mut m = AddressMap::default();
        let a = m.add(10, RegionKind::Rx, Sharing::Core(CoreId(0)), TenantId(0));
        let b = m.add(40_000, RegionKind::App, Sharing::Shared, TenantId(1));
        assert_eq!(m.of(m.get(a).base + 9).kind, RegionKind::Rx);
        let r = m.get(b);
        assert_eq!(m.of(r.base + 39_999).tenant, TenantId(1));
        assert_eq!(r.base, LineAddr(2048), "the first region takes one granule");
        assert!(
            m.is_all(RegionKind::Rx, &(LineAddr(0)..LineAddr(2048)))
                && m.is_all(RegionKind::App, &(LineAddr(2048)..LineAddr(1 << 30)))
        );
        assert!(
            !m.is_all(RegionKind::Rx, &(LineAddr(0)..LineAddr(2049)))
                && !m.is_all(RegionKind::App, &(LineAddr(2047)..LineAddr(4096)))
        );
    }
}
