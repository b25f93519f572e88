//! User-defined control plane: at the end of each epoch it receives counters and returns settings of the policy.

use super::timer::Timer;
use super::Host;
use crate::kernel::{CoreId, Post, ThreadId, Time};
use crate::memory::stats::{AccessClass, DmaCounts};
use crate::placement::{Placement, Settings};
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
}

/// Observations of an epoch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EpochView {
    /// Time of the end of the epoch.
    pub now: Time,
    /// Counters of each core.
    pub cores: Vec<CoreView>,
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

/// Decision of a control plane at the end of an epoch; an error ends the run.
pub type Decide = dyn FnMut(EpochView) -> Result<Settings, String> + Send;

/// A control plane with its interval.
#[derive(Clone)]
pub struct Control {
    /// Length of an epoch.
    pub every: Time,
    /// The function that is called at the end of each epoch.
    pub decide: Arc<Mutex<Decide>>,
    /// Counters at the end of the last epoch.
    last: EpochView,
    failed: Option<String>,
}

impl Control {
    /// A control plane that calls `decide` at the end of each epoch of length `every`.
    pub fn new(every: Time, decide: Arc<Mutex<Decide>>) -> Control {
        Control { every, decide, last: EpochView::default(), failed: None }
    }
}

/// Increase of a counter since the value `was`, or since the restart of the counter.
fn since(is: u64, was: u64) -> u64 {
    is.checked_sub(was).unwrap_or(is)
}

impl Host {
    /// Starts the epochs of `control`.
    pub fn control_by(&mut self, control: Control) {
        self.machine.cal.post(self.machine.now + control.every, Timer::Control);
        self.run.control = Some(Box::new(control));
    }

    /// Error of the control plane, if it has failed.
    pub(super) fn control_failure(&mut self) -> Option<String> {
        self.run.control.as_mut()?.failed.take()
    }

    /// `Timer::Control`.
    pub(super) fn on_control(&mut self) {
        let (is, ways) = (self.view(), self.machine.mem.llc_ways());
        let Some(c) = self.run.control.as_mut().filter(|_| !self.run.stopped) else { return };
        let was = std::mem::replace(&mut c.last, is.clone());
        let said = c.decide.lock().map_err(|_| "the control plane has failed".to_string());
        let said = said.and_then(|mut decide| decide(epoch(is, &was)));
        match said.and_then(|s| self.machine.placement.set(&s, ways)) {
            Ok(()) => self.machine.cal.post(self.machine.now + c.every, Timer::Control),
            Err(e) => c.failed = Some(e),
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
            }
        };
        let written: u64 = CLASSES.iter().filter(|c| c.is_write()).map(|c| m.of(*c)).sum();
        EpochView {
            now: self.machine.now,
            cores: self.cores.ids().map(core).collect(),
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

/// Observations of the epoch between two readings of the counters.
fn epoch(mut is: EpochView, was: &EpochView) -> EpochView {
    for (a, b) in is.cores.iter_mut().zip(&was.cores) {
        a.mlc_wb = since(a.mlc_wb, b.mlc_wb);
        a.mlc_invalidations = since(a.mlc_invalidations, b.mlc_invalidations);
        a.hints = since(a.hints, b.hints);
        a.hints_dropped = since(a.hints_dropped, b.hints_dropped);
    }
    is.llc_wb = since(is.llc_wb, was.llc_wb);
    is.llc_wb_unread = since(is.llc_wb_unread, was.llc_wb_unread);
    is.dma_writes = since(is.dma_writes, was.dma_writes);
    is.dma_write_misses = since(is.dma_write_misses, was.dma_write_misses);
    is.dram_reads = since(is.dram_reads, was.dram_reads);
    is.dram_writes = since(is.dram_writes, was.dram_writes);
    is
}
