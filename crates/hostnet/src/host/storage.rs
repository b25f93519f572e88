//! SSDs and the kernel's work for them: cores that see to the pages that devices have moved.

use super::Host;
use crate::config::scenario::PeripheralSpec;
use crate::config::Scenario;
use crate::core::{Cpu, Program};
use crate::kernel::units::Size;
use crate::kernel::{Stream, Time};
use crate::memory::region::{AddressMap, Contiguous, Kind, Pages, Sharing, PAGE};
use crate::memory::LINE;
use crate::meter::Values;
use crate::stack::block::{BlockSpec, Books};

/// Pages that a core sees to between two looks at what is due.
const BATCH: u64 = 16;

#[derive(Clone)]
struct Device {
    books: Books,
    /// The host's core that serves it.
    core: u16,
    page_lines: u64,
    /// Lines moved towards the next page, and pages that wait for the core.
    lines: u64,
    due: u64,
}

/// The SSDs that the kernel has cores for, by port.
#[derive(Clone)]
pub struct Storage {
    devices: Vec<Option<Device>>,
    /// The first of the cores, which come after all tenants'.
    first: usize,
    since: Vec<Option<Time>>,
    busy: Time,
}

impl Storage {
    /// Memory for the books of all SSDs; their cores are numbered from `first`.
    pub fn new(s: &Scenario, first: usize, tenant: u8, map: &mut AddressMap) -> Option<Storage> {
        let spec = s.platform.block.as_ref().filter(|_| s.storage_cores() > 0)?;
        let (mut devices, mut core) = (Vec::new(), first as u16);
        for p in &s.peripherals {
            let PeripheralSpec::Ssd(ssd) = p else {
                devices.push(None);
                continue;
            };
            for i in 0..ssd.count {
                if ssd.cores == 0 {
                    devices.push(None);
                    continue;
                }
                let core = core + (i % ssd.cores) as u16;
                let page_lines = ssd.page.0 / LINE;
                let pages = ssd.lines().div_ceil(page_lines);
                // Structures of neighbouring pages are neighbours.
                let (pieces, per_page) = match ssd.contiguous {
                    Contiguous::Buddy => (Contiguous::Buddy, PAGE.0 / ssd.page.0),
                    Contiguous::Pieces(s) => (Contiguous::Pieces(Size(s.0 / ssd.page.0 * PAGE.0)), 1),
                };
                let whole = pieces.whole(pages, per_page);
                let mut add = |lines: u64| {
                    let r = map.add(lines, Kind::Io, Sharing::Core(core), tenant);
                    map.get(r).base
                };
                let mut rng = Stream::new(s.seed, "block layer", devices.len() as u64);
                let structures = Pages::new(add(whole), whole, pieces, per_page, rng.below(u64::MAX));
                let (lists, table) = (add(spec.list_lines(pages)), add(BlockSpec::table_lines(pages)));
                let books = Books::new(structures, lists, table, pages, rng.below(pages));
                devices.push(Some(Device { books, core, page_lines, lines: 0, due: 0 }));
            }
            core += ssd.cores as u16;
        }
        Some(Storage { devices, first, since: vec![None; s.storage_cores() as usize], busy: Time::ZERO })
    }
}

impl Host {
    /// Lines of the device on `port` are in memory, or have come from there.
    #[inline]
    pub(super) fn storage_moved(&mut self, port: u16, lines: u16) {
        let Some(Some(d)) = self.storage.as_mut().map(|s| s.devices[usize::from(port)].as_mut()) else { return };
        d.lines += u64::from(lines);
        if d.lines >= d.page_lines {
            d.lines -= d.page_lines;
            d.due += 1;
            let core = d.core as usize;
            self.wake(core);
        }
    }

    /// Whether `core` is the kernel's.
    pub(super) fn keeps_books(&self, core: usize) -> bool {
        self.storage.as_ref().is_some_and(|s| core >= s.first)
    }

    /// The cores that tenants have.
    pub(super) fn tenants_cpus(&self) -> impl Iterator<Item = &Cpu> {
        self.machine.cpus.iter().take(self.storage.as_ref().map_or(usize::MAX, |s| s.first))
    }

    /// A core of the block layer ends a batch and begins the next.
    pub(super) fn storage_work(&mut self, core: usize) {
        let (Some(storage), Some(spec)) = (&mut self.storage, &self.spec.platform.block) else { return };
        let cpu = &mut self.machine.cpus[core];
        cpu.program.ops.clear();
        let mut left = BATCH;
        for d in storage.devices.iter_mut().flatten().filter(|d| d.core as usize == core) {
            let n = d.due.min(left);
            (0..n).for_each(|_| d.books.turn(spec, &mut cpu.program));
            d.due -= n;
            left -= n;
        }
        let since = &mut storage.since[core - storage.first];
        if let Some(t) = since.take() {
            storage.busy += self.machine.now - t;
        }
        if left == BATCH {
            self.cores[core].idle = true;
            return;
        }
        *since = Some(self.machine.now);
        self.machine.start(core);
    }

    /// Caches without timing: the kernel sees to the pages of `lines` lines of each device, one device after another as its
    /// pages come. Returns how many devices there are.
    pub(super) fn warm_storage(&mut self, program: &mut Program, lines: u64) -> u64 {
        let (Some(mut storage), Some(spec)) = (self.storage.take(), self.spec.platform.block.clone()) else { return 0 };
        let pages = storage.devices.iter().flatten().map(|d| lines / d.page_lines).max().unwrap_or(0);
        for i in 0..pages {
            for d in storage.devices.iter_mut().flatten().filter(|d| i < lines / d.page_lines) {
                program.ops.clear();
                d.books.turn(&spec, program);
                self.execute_at_once(d.core, program);
            }
        }
        let devices = storage.devices.iter().flatten().count() as u64;
        self.storage = Some(storage);
        devices
    }

    /// The same until the LLC is full, which nothing else may fill: sets do not fill evenly.
    pub(super) fn fill_with_books(&mut self, program: &mut Program) {
        let caches = &self.spec.platform.caches;
        let Some(storage) = &self.storage else { return };
        let devices = storage.devices.iter().flatten();
        let per_line: f64 = devices.map(|d| 1.0 / d.page_lines as f64).sum();
        let lines = (caches.llc.size.0 / LINE) as f64 / per_line.max(f64::MIN_POSITIVE);
        self.warm_storage(program, lines as u64);
    }

    pub(super) fn restart_storage(&mut self) {
        if let Some(s) = &mut self.storage {
            s.busy = Time::ZERO;
            s.since.iter_mut().flatten().for_each(|t| *t = self.machine.now);
        }
    }

    pub(super) fn storage_metrics(&self, v: &mut Values) {
        let Some(s) = &self.storage else { return };
        let open: u64 = s.since.iter().flatten().map(|t| (self.machine.now - *t).0).sum();
        let span = (self.machine.now - self.window.start).0.max(1) as f64;
        v.set("storage_busy", (s.busy.0 + open) as f64 / span);
    }

    /// # Errors
    /// One sentence when the kernel has fallen behind by more than the devices can have asked for.
    pub(super) fn check_storage(&self) -> Result<(), String> {
        let devices = self.storage.iter().flat_map(|s| &s.devices);
        match devices.enumerate().find_map(|(i, d)| d.as_ref().filter(|d| d.due > d.books.pages).map(|d| (i, d))) {
            Some((i, d)) => Err(format!(
                "the kernel's cores cannot keep up with SSD {i}: {} pages wait for them, its queue has {}; give the \
                 peripheral more cores",
                d.due, d.books.pages
            )),
            None => Ok(()),
        }
    }
}
