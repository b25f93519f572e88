//! Metrics of the placement of devices' lines: write-backs of the L2s and of the LLC, hints, and their counts at each
//! core.

use super::Host;
use crate::core::Cpu;
use crate::kernel::{Clock, Int, ThreadId};
use crate::memory::stats::{CoreCounts, DmaCounts, PLACES};
use crate::memory::Agent;
use crate::meter::table::table;
use crate::meter::{metric, Values};
use crate::stack::{BurstTimes, Software, Thread};
use serde_json::{json, Value};

/// Agents that write and read lines by themselves.
const DEVICES: [(Agent, &str); 2] = [(Agent::Nic, "integrated NIC"), (Agent::Io, "devices behind the IIO")];

impl Host {
    /// Cycles per instruction of the cores in the window.
    fn cpi<'a>(&self, cpus: impl Iterator<Item = &'a Cpu>) -> Option<f64> {
        let clock = Clock::from_hz(self.spec.platform.core.clock.0);
        let span = clock.cycles(self.machine.now - self.meters.window.start);
        let (cores, instructions) = cpus.fold((0.0, 0), |(n, i), c| (n + 1.0, i + c.instructions));
        (instructions > 0).then(|| span * cores / instructions.to_f64())
    }

    /// Counters of the core of a thread; zero for a second thread, because both threads of a core have the same caches.
    pub(super) fn counts_of(&self, thread: ThreadId) -> CoreCounts {
        let core = self.machine.core_of(thread);
        let first = self.machine.cpus.ids().find(|t| self.machine.core_of(*t) == core);
        if first == Some(thread) {
            self.machine.mem.stats.cores[core]
        } else {
            CoreCounts::default()
        }
    }

    pub(super) fn placement_metrics(&self, v: &mut Values, us: f64) {
        let m = &self.machine.mem.stats;
        let sum = |f: fn(&CoreCounts) -> u64| m.cores.iter().map(f).sum::<u64>().to_f64();
        v.set(metric::MLC_WB, sum(|c| c.mlc_wb));
        v.set(metric::MLC_WB_MTPS, sum(|c| c.mlc_wb) / us);
        v.set(metric::MLC_WB_CONSUMED, sum(|c| c.mlc_wb_consumed));
        v.set(metric::MLC_INVALIDATIONS, sum(|c| c.mlc_invalidations));
        v.set(metric::LLC_WB, m.llc_wb.to_f64());
        v.set(metric::LLC_WB_UNREAD, m.rx_evct_premature.to_f64());
        v.set(metric::LLC_WB_VICTIM, (m.llc_wb - m.rx_evct_premature).to_f64());
        v.set(metric::DMA_MTPS, m.dma.iter().map(DmaCounts::lines).sum::<u64>().to_f64() / us);
        for (t, name) in [metric::T0_CPI, metric::T1_CPI].into_iter().enumerate() {
            let cpus = self.machine.cpus.iter().zip(&self.cores).filter(|(_, s)| s.tenant.index() == t);
            if let Some(cpi) = self.cpi(cpus.map(|(c, _)| c)).filter(|_| t < self.spec.tenants.len()) {
                v.set(name, cpi);
            }
        }
        let hints = self.machine.cpus.iter().filter_map(|c| c.hints.as_ref()).map(|h| h.counts);
        if let Some((came, dropped, fetched)) =
            hints.map(|h| (h.came, h.dropped, h.fetched)).reduce(|a, b| (a.0 + b.0, a.1 + b.1, a.2 + b.2))
        {
            v.set(metric::HINTS, came.to_f64());
            v.set(metric::HINTS_DROPPED, dropped.to_f64());
            v.set(metric::HINTS_FETCHED, fetched.to_f64());
        }
        let bursts: Vec<&BurstTimes> = self.tenants.iter().filter_map(|t| t.tally.bursts.as_ref()).collect();
        if let Some(us) = BurstTimes::mean_us(&bursts) {
            v.set(metric::BURST_US, us);
        }
        if let Some(us) = BurstTimes::mean_start_us(&bursts) {
            v.set(metric::BURST_START_US, us);
        }
        if let Some(share) = self.batch_cached() {
            v.set(metric::BATCH_CACHED, share);
        }
    }

    /// Table of each core's L2 write-backs, invalidations and hints, its cycles per instruction, and the share of the window
    /// in which it neither slept nor polled in vain.
    pub(super) fn core_table(&self) -> Value {
        let columns = [
            ("core", ""),
            ("tenant", ""),
            ("mlc_wb", "lines"),
            ("mlc_wb_mtps", "M/s"),
            ("mlc_wb_consumed", "lines"),
            ("mlc_invalidations", "lines"),
            ("hints", "lines"),
            ("hints_dropped", "lines"),
            ("hints_late", "lines"),
            ("hints_fetched", "lines"),
            ("cpi", "cycles"),
            ("busy", "fraction"),
            ("side", ""),
        ];
        let side = |i: ThreadId| match &self.cores[i].thread {
            Thread::CcNic(t) if !t.is_host() => "nic",
            _ => "host",
        };
        let (now, since) = (self.machine.now, self.meters.window.start);
        let us = (now - since).0.max(1).to_f64() / 1e6;
        let busy = |i: ThreadId| Some(1.0 - self.cores[i].thread.idle(since, now)?.0.to_f64() / 1e6 / us);
        let row = |i: ThreadId| {
            let (c, cpu) = (self.counts_of(i), &self.machine.cpus[i]);
            let tenant = self.spec.tenants.get(self.cores[i].tenant.index()).map_or("kernel", |t| &t.name);
            let h = cpu.hints.as_ref().map(|h| h.counts).unwrap_or_default();
            vec![
                json!(i.0),
                json!(tenant),
                json!(c.mlc_wb),
                json!(c.mlc_wb.to_f64() / us),
                json!(c.mlc_wb_consumed),
                json!(c.mlc_invalidations),
                json!(h.came),
                json!(h.dropped),
                json!(h.late),
                json!(h.fetched),
                json!(self.cpi(std::iter::once(cpu))),
                json!(busy(i)),
                json!(side(i)),
            ]
        };
        table(&columns, self.cores.ids().map(row).collect())
    }

    /// Table of the places in which requests of devices found lines.
    pub(super) fn place_table(&self) -> Value {
        let columns = [("device", ""), ("request", ""), ("place", ""), ("lines", "lines")];
        let names = ["MLC", "MLC and LLC", "LLC, other ways", "LLC, DDIO ways", "DRAM"];
        let mut rows = Vec::new();
        for (agent, device) in DEVICES {
            let d = self.machine.mem.stats.dma(agent);
            for (request, at) in [("write", d.wrote_at), ("read", d.read_at)] {
                for (place, name) in PLACES.into_iter().zip(names) {
                    rows.push(vec![json!(device), json!(request), json!(name), json!(at[place.index()])]);
                }
            }
        }
        table(&columns, rows)
    }
}
