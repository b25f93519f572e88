//! The kernel's block layer under direct I/O of an application (Linux: `bio_iov_iter_get_pages`, `blk_rq_map_sg`, the
//! NVMe driver's PRP lists, `bio_release_pages`). Data bypasses the cores, but the kernel's accounting of each page
//! does not.
//!
//! A page that comes back from the device is released: the kernel writes the page's `struct page` (dirty flag,
//! reference count) and the entries of the lists that described the page. The next request finds these entries in the
//! cache and fills them again. A page that the kernel hands to the device is pinned: the kernel reads its page table
//! entry and writes its `struct page`. Between the release and the pin of a page, the device processes its whole queue.

use super::{Ctx, Notice, Software, Step, Wakes};
use crate::core::{Op, Program};
use crate::kernel::units::Size;
use crate::kernel::{Int, LineAddr, PortId, Time};
use crate::memory::region::Pages;
use crate::memory::LINE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Costs of the kernel's block layer in addition to the memory accesses that are simulated.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlockSpec {
    /// Instructions to release a page that comes back from the device.
    pub release: u32,
    /// Instructions to pin a page that is handed to the device.
    pub pin: u32,
    /// Bytes of the lists that describe a page while the device has the page: one entry each in the bio, the
    /// scatter-gather list and the PRP list.
    pub lists: Size,
}

/// Bytes of a page table entry.
const ENTRY: u64 = 8;

impl BlockSpec {
    /// Checks that the costs are usable.
    ///
    /// # Errors
    /// Returns one clause that names key and value.
    pub fn check(&self) -> Result<(), String> {
        if self.lists.0 == 0 || self.lists.0 > 4096 {
            return Err(format!("lists = \"{}\" is not within 1 B to 4 KiB", self.lists));
        }
        Ok(())
    }
    /// Lines that hold the lists of `pages` pages.
    pub fn list_lines(&self, pages: u64) -> u64 {
        (pages * self.lists.0).div_ceil(LINE)
    }
    /// Lines of `pages` page table entries.
    pub fn table_lines(pages: u64) -> u64 {
        (pages * ENTRY).div_ceil(LINE)
    }
    /// Lines that hold the kernel's accounting for `pages` pages: structures, lists and page table entries.
    pub fn lines_kept(&self, pages: u64) -> u64 {
        pages + self.list_lines(pages) + BlockSpec::table_lines(pages)
    }
    /// Mean numbers of lines that cores read and write for each page, provided that none of the lines stays in a cache.
    pub fn lines_per_page(&self) -> (f64, f64) {
        let lists = self.lists.0.to_f64() / LINE.to_f64();
        (2.0 + lists + ENTRY.to_f64() / LINE.to_f64(), 2.0 + lists)
    }
}

/// The kernel's accounting of the pages of one device's buffers.
#[derive(Clone, Debug)]
pub struct PageAccounting {
    /// Page structures, one line per page, in the order of physical memory: pages of a buffer lie anywhere.
    pub structures: Pages,
    /// First line of the lists that describe the pages while the device has the pages.
    pub lists: LineAddr,
    /// First line of the page table entries.
    pub table: LineAddr,
    /// Number of pages.
    pub pages: u64,
    released: u64,
    pinned: u64,
}

impl PageAccounting {
    /// Page accounting whose lists and page table begin at the given lines; `first` is the page that the device returns
    /// first.
    pub fn new(structures: Pages, lists: LineAddr, table: LineAddr, pages: u64, first: u64) -> PageAccounting {
        // The release and the pin are half of the pages apart, so that neither finds lines in a cache that the other
        // has left there.
        PageAccounting { structures, lists, table, pages, released: first % pages, pinned: (first + pages / 2) % pages }
    }

    /// Appends the operations for releasing one page and pinning another.
    pub fn turn(&mut self, s: &BlockSpec, p: &mut Program) {
        let lists = (self.released * s.lists.0 / LINE, ((self.released + 1) * s.lists.0 - 1) / LINE);
        p.push(Op::Store { line: self.lists + lists.0, lines: (lists.1 - lists.0 + 1).to_u32() });
        p.push(Op::Store { line: self.structures.line(self.released), lines: 1 });
        p.compute(s.release);
        p.push(Op::Load { line: self.table + self.pinned * ENTRY / LINE, lines: 1 });
        p.push(Op::Store { line: self.structures.line(self.pinned), lines: 1 });
        p.compute(s.pin);
        self.released = (self.released + 1) % self.pages;
        self.pinned = (self.pinned + 1) % self.pages;
    }
}

/// Pages that a core processes before it checks again for pages that are due.
const BATCH: u64 = 16;

/// One device whose pages a core accounts for.
#[derive(Clone)]
pub struct ServedDevice {
    /// Port of the device.
    pub port: PortId,
    /// Page accounting for the device's buffer.
    pub accounting: PageAccounting,
    /// Lines of a page.
    pub page_lines: u64,
    /// Lines moved towards the next page.
    lines: u64,
    /// Number of pages that wait for the core.
    due: u64,
}

impl ServedDevice {
    /// A device whose lines have not moved yet.
    pub fn new(port: PortId, books: PageAccounting, page_lines: u64) -> ServedDevice {
        ServedDevice { port, accounting: books, page_lines, lines: 0, due: 0 }
    }
    /// Number of pages that wait for the core.
    pub fn due(&self) -> u64 {
        self.due
    }
}

/// A kernel core that does the block layer's page accounting for some devices.
#[derive(Clone)]
pub struct BlockLayer {
    costs: BlockSpec,
    /// Devices whose pages the core accounts for.
    pub devices: Vec<ServedDevice>,
    since: Option<Time>,
    busy: Time,
}

impl BlockLayer {
    /// A core without devices.
    pub fn new(costs: BlockSpec) -> BlockLayer {
        BlockLayer { costs, devices: Vec::new(), since: None, busy: Time::ZERO }
    }

    /// Time that the core has worked in the current window.
    pub fn busy(&self, now: Time) -> Time {
        self.busy + self.since.map_or(Time::ZERO, |s| now - s)
    }
}

impl Software for BlockLayer {
    fn step(&mut self, c: &mut Ctx) -> Step {
        c.program.ops.clear();
        let mut left = BATCH;
        for d in &mut self.devices {
            let n = d.due.min(left);
            (0..n).for_each(|_| d.accounting.turn(&self.costs, c.program));
            d.due -= n;
            left -= n;
        }
        if let Some(t) = self.since.take() {
            self.busy += c.step.now - t;
        }
        if left == BATCH {
            return Step::Idle;
        }
        self.since = Some(c.step.now);
        Step::Run
    }

    fn notify(&mut self, what: Notice, _: Time) -> Wakes {
        let Notice::Lines { port, lines } = what else { return Wakes::Not };
        let Some(d) = self.devices.iter_mut().find(|d| d.port == port) else { return Wakes::Not };
        d.lines += lines;
        if d.lines < d.page_lines {
            return Wakes::Not;
        }
        d.due += d.lines / d.page_lines;
        d.lines %= d.page_lines;
        Wakes::Now
    }

    fn restart_meters(&mut self, now: Time) {
        self.busy = Time::ZERO;
        self.since = self.since.map(|_| now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::region::{Contiguous, PAGE};
    use std::collections::HashMap;

    #[test]
    fn in_a_round_every_structure_is_written_twice_and_every_list_line_by_its_pages() {
        let spec = BlockSpec { release: 100, pin: 50, lists: Size(56) };
        let (pages, at) = (1000, (0, 2000, 4000));
        let mut books = PageAccounting::new(
            Pages::new(LineAddr(at.0), pages, Contiguous::Pieces(PAGE), 1, 7),
            LineAddr(at.1),
            LineAddr(at.2),
            pages,
            3,
        );
        let mut p = Program::default();
        (0..pages).for_each(|_| books.turn(&spec, &mut p));
        let (mut stores, mut loads, mut instructions) = (HashMap::new(), HashMap::new(), 0);
        for op in &p.ops {
            match *op {
                Op::Store { line, lines } => line.span(lines).for_each(|l| *stores.entry(l).or_insert(0) += 1),
                Op::Load { line, lines: 1 } => *loads.entry(line).or_insert(0) += 1,
                Op::Compute(n) => instructions += u64::from(n),
                _ => panic!("{op:?}"),
            }
        }
        assert_eq!(instructions, pages * 150);
        assert!((0..1000).all(|l| stores[&LineAddr(l)] == 2), "a release and a pin for each page");
        // 56 B of lists per page: bytes 0 to 55,999 lie in 875 lines, and each page writes every line that holds one of
        // its bytes.
        let writers = |l: u64| (64 * l + 63) / 56 - 64 * l / 56 + 1;
        assert!((0..875).all(|l| stores[&LineAddr(2000 + l)] == writers(l)));
        assert_eq!(stores.len(), 1875);
        // Eight page table entries share a line.
        assert!(loads.len() == 125 && (0..125).all(|l| loads[&LineAddr(4000 + l)] == 8));
        assert_eq!(spec.lines_kept(pages), 1000 + 875 + 125);
        assert_eq!(spec.lines_per_page(), (3.0, 2.875));
    }
}
