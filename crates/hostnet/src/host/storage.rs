//! SSDs and the kernel's block layer: cores that do the accounting for the pages that the devices have moved.

use super::layout::HostLayout;
use super::role_layout::RoleLayout;
use super::tenant::TenantState;
use super::Host;
use crate::config::scenario::PeripheralSpec;
use crate::config::Scenario;
use crate::core::Cpu;
use crate::kernel::units::Size;
use crate::kernel::{IdVec, Int, PortId, RandomStream, Real, TenantId, ThreadId};
use crate::memory::region::{AddressMap, Contiguous, Pages, RegionKind, Sharing, PAGE};
use crate::memory::LINE;
use crate::meter::{metric, Values};
use crate::stack::block::{BlockLayer, BlockSpec, PageAccounting, ServedDevice};
use crate::stack::{Notice, Role, RoleView, Thread};

/// A device whose pages the kernel accounts for.
#[derive(Clone, Copy)]
pub struct AccountedDevice {
    core: ThreadId,
    port: PortId,
    page_lines: u64,
}

/// The kernel's block layer on cores of its own.
pub(super) struct BlockLayers;

impl RoleLayout for BlockLayers {
    fn lay_out(&self, layout: &mut HostLayout, t: TenantId) -> Result<(), String> {
        if t != layout.kernel() {
            return Ok(());
        }
        let first = layout.groups[t].cores.first().map_or(0, |c| c.index());
        let (devices, threads) = block_layer(layout.s, first, t, &mut layout.map);
        if !devices.is_empty() {
            layout.tenants[t].state.roles.add(Storage { devices });
        }
        layout.tenants[t].threads = threads.into_iter().map(Thread::Block).collect();
        Ok(())
    }

    fn threads(&self, layout: &mut HostLayout, t: TenantId) -> Option<Vec<Thread>> {
        (t == layout.kernel()).then(|| std::mem::take(&mut layout.tenants[t].threads))
    }
}

/// Allocates the memory for the page accounting of all SSDs that have kernel cores, and builds the threads of these
/// cores, which are numbered from `first`.
fn block_layer(
    s: &Scenario,
    first: usize,
    tenant: TenantId,
    map: &mut AddressMap,
) -> (Vec<AccountedDevice>, Vec<BlockLayer>) {
    let Some(spec) = s.platform.block.as_ref().filter(|_| s.storage_cores() > 0) else { return Default::default() };
    let (mut kept, mut port, mut core) = (Vec::new(), 0, first.to_u16());
    let mut threads = vec![BlockLayer::new(spec.clone()); s.storage_cores().to_usize()];
    for p in &s.peripherals {
        let PeripheralSpec::Ssd(ssd) = p else {
            port += p.count().to_u16();
            continue;
        };
        for i in 0..ssd.count {
            port += 1;
            if ssd.cores == 0 {
                continue;
            }
            let (core, port) = (ThreadId(core + (i % ssd.cores).to_u16()), PortId(port - 1));
            let page_lines = ssd.page.0 / LINE;
            let pages = ssd.lines().div_ceil(page_lines);
            // The structures of neighbouring pages are neighbours in memory.
            let (pieces, per_page) = match ssd.contiguous {
                Contiguous::Buddy => (Contiguous::Buddy, PAGE.0 / ssd.page.0),
                Contiguous::Pieces(s) => (Contiguous::Pieces(Size(s.0 / ssd.page.0 * PAGE.0)), 1),
            };
            let whole = pieces.whole(pages, per_page);
            let mut add = |lines: u64| {
                let r = map.add(lines, RegionKind::Io, Sharing::of_thread(core), tenant);
                map.get(r).base
            };
            let mut rng = RandomStream::new(s.seed, "block layer", port.0.into());
            let structures = Pages::new(add(whole), whole, pieces, per_page, rng.below(u64::MAX));
            let (lists, table) = (add(spec.list_lines(pages)), add(BlockSpec::table_lines(pages)));
            let books = PageAccounting::new(structures, lists, table, pages, rng.below(pages));
            threads[core.index() - first].devices.push(ServedDevice::new(port, books, page_lines));
            kept.push(AccountedDevice { core, port, page_lines });
        }
        core += ssd.cores.to_u16();
    }
    (kept, threads)
}

/// Devices whose pages the kernel accounts for: a role of the kernel.
#[derive(Clone)]
pub struct Storage {
    devices: Vec<AccountedDevice>,
}

/// Threads of the kernel's cores.
fn block_layers<'a>(view: &'a RoleView) -> impl Iterator<Item = &'a BlockLayer> {
    view.own_threads().filter_map(|(_, thread)| match thread {
        Thread::Block(b) => Some(b),
        _ => None,
    })
}

impl Role for Storage {
    fn report(&self, view: &RoleView, v: &mut Values) {
        let busy: u64 = block_layers(view).map(|b| b.busy(view.machine.now).0).sum();
        v.set(metric::STORAGE_BUSY, busy.to_f64() / view.span().to_f64());
    }

    /// Checks that no more pages wait for the kernel's cores than the devices can have requested.
    fn check_conservation(&self, view: &RoleView) -> Result<(), String> {
        let late = |d: &&ServedDevice| d.due() > d.accounting.pages;
        match block_layers(view).flat_map(|b| &b.devices).find(late) {
            Some(d) => Err(format!(
                "the kernel's cores cannot keep up with SSD {}: {} pages wait for them, its queue has {}; give the \
                 peripheral more cores",
                d.port,
                d.due(),
                d.accounting.pages
            )),
            None => Ok(()),
        }
    }
}

impl Host {
    /// The tenants' cores.
    pub(super) fn tenants_cpus(&self) -> impl Iterator<Item = &Cpu> {
        self.machine.cpus.iter().take(self.owners.tenant_cores)
    }

    /// Devices whose pages the kernel accounts for.
    pub(super) fn accounted_devices(&self) -> &[AccountedDevice] {
        self.kernel().roles.get::<Storage>().map_or(&[], |s| &s.devices)
    }

    /// Warms caches in functional mode: the kernel does the accounting for the pages of `lines` lines of each device,
    /// one device after another in the order in which pages arrive. Returns the number of devices.
    pub(super) fn warm_storage(&mut self, lines: u64) -> u64 {
        let devices = self.accounted_devices().len();
        let pages = self.accounted_devices().iter().map(|d| lines / d.page_lines).max().unwrap_or(0);
        for i in 0..pages {
            for d in 0..devices {
                let AccountedDevice { core, port, page_lines } = self.accounted_devices()[d];
                if i < lines / page_lines {
                    self.notify_functional(core, Notice::Lines { port, lines: page_lines });
                }
            }
        }
        devices.to_u64()
    }

    /// Fills the LLC with lines of the page accounting, in functional mode, where no other agent may fill the LLC: sets
    /// do not fill evenly.
    pub(super) fn fill_llc_with_accounting(&mut self) {
        let caches = &self.spec.platform.caches;
        if self.accounted_devices().is_empty() {
            return;
        }
        let per_line: f64 = self.accounted_devices().iter().map(|d| 1.0 / d.page_lines.to_f64()).sum();
        let lines = (caches.llc.size.0 / LINE).to_f64() / per_line.max(f64::MIN_POSITIVE);
        self.warm_storage(lines.whole());
    }

    /// Core of the `kernel` that does the accounting for the pages of the device on each of the IIO's `ports` ports, if
    /// any.
    pub(super) fn accounting_cores(kernel: &TenantState, ports: usize) -> IdVec<PortId, Option<ThreadId>> {
        let mut all = IdVec::filled(None, ports);
        for k in kernel.roles.get::<Storage>().into_iter().flat_map(|s| &s.devices) {
            all[k.port] = Some(k.core);
        }
        all
    }
}
