//! User-defined control plane: at the end of each epoch it receives counters and returns settings of the policy.

use super::timer::Timer;
use super::Host;
use crate::config::check;
use crate::config::scenario::WaysSpec;
use crate::kernel::{CoreId, Int, Post, Real, TenantId, ThreadId, Time};
use crate::memory::stats::{AccessClass, DmaCounts};
use crate::placement::{Placement, Settings};
use crate::stack::ccnic::CcnicInterface;
use std::sync::{Arc, Mutex};

/// Observations of one core in an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CoreView {
    /// The core; two hardware threads of one core have an observation each.
    pub core: CoreId,
    /// Lines that the core's L2 wrote back to the LLC; `mlc_invalidations` counts the lines that devices' writes
    /// invalidated in the core's caches.
    pub mlc_wb: u64,
    /// Lines that writes of devices invalidated in the core's L2.
    pub mlc_invalidations: u64,
    /// Prefetch hints that arrived at the core's L2.
    pub hints: u64,
    /// Prefetch hints that found the queue of the core's L2 full.
    pub hints_dropped: u64,
    /// Distance in packets from the core's position in its ring to the NIC's position, at the end of the epoch.
    pub distance: u32,
    /// State of IDIO's FSM at the end of the epoch, with `policy = "idio"`.
    pub state: Option<u8>,
    /// Reads and requests for ownership of the core that missed the LLC.
    pub llc_misses: u64,
}

/// Observations of one tenant in an epoch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TenantView {
    /// Name of the tenant.
    pub name: String,
    /// Packets that came to the NIC for the tenant.
    pub offered: u64,
    /// Requests that the tenant completed.
    pub served: u64,
    /// Packets of the tenant that the NIC or a full socket lost.
    pub lost: u64,
    /// Latencies of the completed requests in ns, in order of size.
    pub latencies: Vec<u64>,
    /// Accesses of the tenant's cores that hit the LLC.
    pub llc_hits: u64,
    /// Accesses of the tenant's cores that missed the LLC.
    pub llc_misses: u64,
    /// Lines of the tenant's memory that DRAM read and wrote.
    pub dram_lines: u64,
}

impl TenantView {
    /// Latency in us that a share `q` of the epoch's requests did not exceed; None when no request was completed.
    pub fn latency_us(&self, q: f64) -> Option<f64> {
        let within = (q * self.latencies.len().to_f64()).ceil().max(1.0).whole().to_usize();
        self.latencies.get(within.min(self.latencies.len()).checked_sub(1)?).map(|ns| ns.to_f64() / 1e3)
    }

    /// Changes each count by that of `other`.
    fn each(&mut self, other: &TenantView, change: Change) {
        let counts = [
            (&mut self.offered, other.offered),
            (&mut self.served, other.served),
            (&mut self.lost, other.lost),
            (&mut self.llc_hits, other.llc_hits),
            (&mut self.llc_misses, other.llc_misses),
            (&mut self.dram_lines, other.dram_lines),
        ];
        counts.into_iter().for_each(|(count, by)| *count = change(*count, by));
    }
}

/// Observations of an epoch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EpochView {
    /// Time of the end of the epoch.
    pub now: Time,
    /// Counters of each core.
    pub cores: Vec<CoreView>,
    /// Counters of each tenant.
    pub tenants: Vec<TenantView>,
    /// Dirty lines that the LLC evicted to memory.
    pub llc_wb: u64,
    /// Dirty lines of unread packets that the LLC evicted to memory.
    pub llc_wb_unread: u64,
    /// Lines that devices wrote.
    pub dma_writes: u64,
    /// Lines that devices wrote and that missed the LLC.
    pub dma_write_misses: u64,
    /// Lines read from DRAM.
    pub dram_reads: u64,
    /// Lines written to DRAM.
    pub dram_writes: u64,
    /// Number of LLC ways that devices may allocate into.
    pub ways: u32,
}

/// Settings that a control plane changes at the end of an epoch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// Settings of the placement policy.
    pub placement: Settings,
    /// Tenants with other LLC ways for the victims of their L2s, in the form of `tenant.llc_ways`.
    pub tenant_ways: Vec<(TenantId, WaysSpec)>,
}

impl From<Settings> for Decision {
    fn from(placement: Settings) -> Decision {
        Decision { placement, ..Decision::default() }
    }
}

/// Function of a control plane, called at the end of each epoch; an error ends the run.
pub type Decide = dyn FnMut(EpochView) -> Result<Decision, String> + Send;

/// A control plane with its interval.
#[derive(Clone)]
pub struct Control {
    /// Length of an epoch.
    pub every: Time,
    /// The function that is called at the end of each epoch.
    pub decide: Arc<Mutex<Decide>>,
    /// Counters at the end of the last epoch, or at a restart of the counters since then.
    last: EpochView,
    /// Counts of the present epoch up to a restart of the counters within it.
    begun: EpochView,
}

impl Control {
    /// A control plane that calls `decide` at the end of each epoch of length `every`.
    pub fn new(every: Time, decide: Arc<Mutex<Decide>>) -> Control {
        Control { every, decide, last: EpochView::default(), begun: EpochView::default() }
    }
}

/// Change of a count by another one.
type Change = fn(u64, u64) -> u64;

impl Host {
    /// Starts the epochs of `control`.
    pub fn control_by(&mut self, control: Control) {
        self.machine.cal.post(self.machine.now + control.every, Timer::Control);
        self.tenants.iter_mut().for_each(|t| t.tally.recent = Some(Vec::new()));
        self.run.control = Some(Box::new(control));
    }

    /// Restarts the counters by `restart`, and keeps what the present epoch of the control plane has counted.
    pub(super) fn restart_within_epoch(&mut self, restart: impl FnOnce(&mut Host)) {
        let before = self.run.control.is_some().then(|| self.view());
        restart(self);
        let Some(before) = before else { return };
        let after = self.view();
        let Some(c) = &mut self.run.control else { return };
        let last = std::mem::replace(&mut c.last, after);
        let begun = std::mem::take(&mut c.begun);
        c.begun = epoch(before, &last, &begun);
    }

    /// Reason for which the run cannot go on, such as an error of the control plane.
    pub(super) fn failure(&mut self) -> Option<String> {
        self.run.failed.take()
    }

    /// `Timer::Control`.
    pub(super) fn on_control(&mut self) {
        let (is, ways) = (self.view(), self.machine.mem.llc_ways());
        self.tenants.iter_mut().flat_map(|t| &mut t.tally.recent).for_each(Vec::clear);
        let Some(c) = self.run.control.as_mut().filter(|_| !self.run.stopped) else { return };
        let last = std::mem::replace(&mut c.last, is.clone());
        let begun = std::mem::take(&mut c.begun);
        let said = c.decide.lock().map_err(|_| "the control plane has failed".to_string());
        let said = said.and_then(|mut decide| decide(epoch(is, &last, &begun)));
        let set = said.and_then(|s| {
            self.machine.placement.set(&s.placement, ways)?;
            self.machine.placement_has_changed();
            s.tenant_ways.iter().try_for_each(|(tenant, ways)| self.set_ways_of(*tenant, ways))
        });
        let Some(c) = self.run.control.as_mut() else { return };
        match set {
            Ok(()) => self.machine.cal.post(self.machine.now + c.every, Timer::Control),
            Err(e) => self.run.failed = Some(e),
        }
    }

    /// Gives `tenant` other LLC ways for the victims of its L2s, as `tenant.llc_ways` does.
    fn set_ways_of(&mut self, tenant: TenantId, ways: &WaysSpec) -> Result<(), String> {
        let llc = &self.spec.platform.caches.llc;
        let mask = check::ways(Some(ways), llc.ways).map_err(|e| format!("the control plane sets llc_ways: {e}"))?;
        if mask & !llc.inclusive_mask() == 0 {
            return Err(format!(
                "the control plane sets llc_ways to the {} inclusive ways alone",
                llc.quirks.inclusive_ways
            ));
        }
        self.machine.mem.set_tenant_ways(tenant, mask & !llc.inclusive_mask());
        Ok(())
    }

    /// Present values of a tenant's counters.
    fn tenant_view(&self, t: TenantId) -> TenantView {
        let (state, counts) = (&self.tenants[t], self.machine.mem.stats.tenants[t]);
        let source = state.source.as_ref();
        let own = state.roles.get::<CcnicInterface>().map_or(0, |_| state.tally.completed_ever);
        let mut latencies = state.tally.recent.clone().unwrap_or_default();
        latencies.sort_unstable();
        TenantView {
            name: self.spec.tenant(t).name.clone(),
            // In a closed loop of CC-NIC's threads a packet is sent for each that is back.
            offered: source.map_or_else(|| self.due_ever(t).map_or(own, |d| d.due), |s| s.offered),
            served: state.tally.completed_ever,
            lost: source.map_or(0, |s| s.dropped) + self.socket_losses(t),
            latencies,
            llc_hits: counts.llc_hits,
            llc_misses: counts.llc_misses,
            dram_lines: counts.dram.iter().sum(),
        }
    }

    /// Present values of the counters that a control plane observes.
    fn view(&self) -> EpochView {
        let m = &self.machine.mem.stats;
        let sum = |f: fn(&DmaCounts) -> u64| m.dma.iter().map(f).sum();
        let state = |c: ThreadId| match &self.machine.placement {
            Placement::Idio(p) => Some(p.state(self.machine.core_of(c))),
            _ => None,
        };
        let core = |c: ThreadId| {
            let hints = self.machine.cpus[c].hints.as_ref().map(|h| h.counts).unwrap_or_default();
            let counts = self.counts_of(c);
            let source = self.tenants[self.cores[c].tenant].source.as_ref().filter(|s| s.cores.contains(&c));
            let nic = source.and_then(|s| self.machine.look_at_nic(s.at));
            CoreView {
                core: self.machine.core_of(c),
                mlc_wb: counts.mlc_wb,
                mlc_invalidations: counts.mlc_invalidations,
                hints: hints.came,
                hints_dropped: hints.dropped,
                distance: nic.map_or(0, |nic| nic.unconsumed(self.queue(c))),
                state: state(c),
                llc_misses: counts.llc_misses,
            }
        };
        let written: u64 = CLASSES.iter().filter(|c| c.is_write()).map(|c| m.of(*c)).sum();
        EpochView {
            now: self.machine.now,
            cores: self.cores.ids().map(core).collect(),
            tenants: self.spec.tenant_ids().map(|t| self.tenant_view(t)).collect(),
            llc_wb: m.llc_wb,
            llc_wb_unread: m.rx_evct_premature,
            dma_writes: sum(|d| d.writes),
            dma_write_misses: sum(|d| d.write_misses),
            dram_reads: m.dram.iter().sum::<u64>() - written,
            dram_writes: written,
            ways: self.machine.placement.ways(),
        }
    }
}

/// Classes of DRAM transfers.
const CLASSES: [AccessClass; 12] = [
    AccessClass::NicRxWr,
    AccessClass::NicTxRd,
    AccessClass::CpuRxRd,
    AccessClass::CpuTxRdWr,
    AccessClass::CpuOtherRd,
    AccessClass::RxEvct,
    AccessClass::TxEvct,
    AccessClass::OtherEvct,
    AccessClass::IoWr,
    AccessClass::IoRd,
    AccessClass::IoEvct,
    AccessClass::BackgroundRd,
];

/// The observations `is` with each count changed by that of `other`.
fn each(mut is: EpochView, other: &EpochView, change: Change) -> EpochView {
    for (a, b) in is.cores.iter_mut().zip(&other.cores) {
        let counts = [
            (&mut a.mlc_wb, b.mlc_wb),
            (&mut a.mlc_invalidations, b.mlc_invalidations),
            (&mut a.hints, b.hints),
            (&mut a.hints_dropped, b.hints_dropped),
            (&mut a.llc_misses, b.llc_misses),
        ];
        counts.into_iter().for_each(|(count, by)| *count = change(*count, by));
    }
    is.tenants.iter_mut().zip(&other.tenants).for_each(|(a, b)| a.each(b, change));
    let counts = [
        (&mut is.llc_wb, other.llc_wb),
        (&mut is.llc_wb_unread, other.llc_wb_unread),
        (&mut is.dma_writes, other.dma_writes),
        (&mut is.dma_write_misses, other.dma_write_misses),
        (&mut is.dram_reads, other.dram_reads),
        (&mut is.dram_writes, other.dram_writes),
    ];
    counts.into_iter().for_each(|(count, by)| *count = change(*count, by));
    is
}

/// The epoch that ends with the reading `is`: what came since the reading `last`, and what the epoch had `begun` with before
/// its counters restarted.
fn epoch(is: EpochView, last: &EpochView, begun: &EpochView) -> EpochView {
    each(each(is, last, u64::saturating_sub), begun, u64::saturating_add)
}
