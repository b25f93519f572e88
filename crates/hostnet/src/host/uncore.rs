//! Metrics from the uncore's counters of a window: credits, occupancies and latencies of the host network's domains,
//! and the memory controllers' inputs to the latency formulae.

use super::Host;
use crate::device::endpoint::{DmaDirection, Endpoint};
use crate::flow::domain::DomainReading;
use crate::kernel::{Int, NodeId, Time};
use crate::memory::dram::gauge::BINS;
use crate::memory::dram::{RowOutcome, Stats};
use crate::memory::memory_link::MemoryLink;
use crate::memory::paths::{is_between_nodes, Path, PATHS, SEGMENTS};
use crate::memory::stats::{AccessClass, LineLocation};
use crate::memory::{Agent, LinkReading, LINE};
use crate::meter::table::table;
use crate::meter::{metric, MetricId, Values};
use crate::stack::tcp::Network;
use serde_json::{json, Value};

const READ: usize = 0;
const WRITE: usize = 1;

/// Increase of a channel's counters since an earlier reading.
fn since(now: &Stats, then: &Stats) -> Stats {
    let mut d = now.clone();
    for dir in [READ, WRITE] {
        for (a, b) in d.rows[dir].iter_mut().zip(then.rows[dir]) {
            *a -= b;
        }
        d.entry_ps[dir] -= then.entry_ps[dir];
        d.marked_ps[dir] -= then.marked_ps[dir];
        d.full_ps[dir] -= then.full_ps[dir];
    }
    d.drains -= then.drains;
    for (a, b) in d.deviation.bins.iter_mut().zip(then.deviation.bins) {
        *a -= b;
    }
    d
}

impl Host {
    pub(super) fn channels(&self) -> Vec<Stats> {
        self.machine.mem.dram.channels().map(|ch| self.machine.mem.dram.stats(self.machine.now, ch)).collect()
    }

    /// Adds the host network's metrics to `v`.
    pub(super) fn uncore(&self, v: &mut Values) {
        let span = (self.machine.now - self.meters.window.start).0.max(1).to_f64();
        self.traffic_by_class(v, span);
        self.cores_and_home_agent(v);
        self.controllers(v, span);
        self.peripherals(v, span);
        self.hops(v);
        self.between_nodes(v, span);
    }

    /// Sets the metrics of the links between nodes, and of the requests that crossed them.
    fn between_nodes(&self, v: &mut Values, span: f64) {
        let mem = &self.machine.mem;
        let Some(b) = mem.inter_socket() else { return };
        let [out, back] = [0, 1].map(|node| b.read(NodeId(node), self.machine.now));
        let most = |f: fn(&LinkReading) -> f64| f(&out).max(f(&back));
        v.set(metric::LINK_UTILISATION, most(|r| r.utilisation));
        v.set(metric::LINK_OUT_UTIL, out.utilisation);
        v.set(metric::LINK_IN_UTIL, back.utilisation);
        v.set(metric::LINK_DATA_GBPS, most(|r| r.payload.to_f64()) * 8.0 / span * 1e3);
        v.set(metric::LINK_OUT_GBS, out.bytes.to_f64() / span * 1e3);
        v.set(metric::LINK_IN_GBS, back.bytes.to_f64() / span * 1e3);
        if let Some(r) = DomainReading::together([out.requests, back.requests]).filter(|r| r.arrival_rate > 0.0) {
            v.set(metric::LINK_REQUEST_NS, r.latency_ns);
        }
        v.set(metric::REMOTE_READS, mem.stats.remote.iter().map(|r| r.reads).sum::<u64>().to_f64());
        v.set(metric::REMOTE_RFOS, mem.stats.remote.iter().map(|r| r.rfos).sum::<u64>().to_f64());
        v.set(metric::SPECULATIVE_READS, b.speculative_reads.to_f64());
        v.set(metric::CHANNELS_USED, self.channels_used());
        v.set(metric::DIRECTORY_WRITES, b.directory_writes.to_f64());
    }

    /// Number of memory channels over which the window's lines are spread: those of a node over the sum of the squares of the
    /// nodes' shares of the lines, so that of two nodes one counts where the other moves none, and both where they move equally
    /// many. No number without lines.
    fn channels_used(&self) -> f64 {
        let dram = &self.machine.mem.dram;
        let mut lines = vec![0.0; self.machine.mem.nodes.len()];
        for ((ch, now), then) in dram.channels().zip(self.channels()).zip(&self.meters.window.dram) {
            let moved = since(&now, then);
            lines[dram.node_of(ch).index()] += (moved.reads() + moved.writes()).to_f64();
        }
        let (all, squares) = lines.iter().fold((0.0, 0.0), |(all, squares), n| (all + n, squares + n * n));
        all * all / squares * f64::from(self.spec.platform.memory.channels)
    }

    fn traffic_by_class(&self, v: &mut Values, span: f64) {
        use AccessClass::*;
        let gbs = |lines: u64| lines.to_f64() * LINE.to_f64() / span * 1e3;
        let sum = |classes: &[AccessClass]| gbs(classes.iter().map(|c| self.machine.mem.stats.of(*c)).sum());
        v.set(metric::MEM_C2M_READ_GBS, sum(&[CpuRxRd, CpuTxRdWr, CpuOtherRd]));
        v.set(metric::MEM_C2M_WRITE_GBS, sum(&[TxEvct, OtherEvct]));
        v.set(metric::MEM_P2M_READ_GBS, sum(&[NicTxRd, IoRd]));
        v.set(metric::MEM_P2M_WRITE_GBS, sum(&[NicRxWr, RxEvct, IoWr, IoEvct]));
        v.set(metric::SIM_LINES, self.machine.mem.stats.dram.iter().sum::<u64>().to_f64());
        let streams = self.tenants.enumerate().filter(|(_, t)| matches!(t.app, Some(crate::app::App::Stream(_))));
        let lines: f64 = streams.map(|(t, _)| self.role_view(t).operations()).sum();
        if lines > 0.0 {
            v.set(metric::C2M_GBS, lines * LINE.to_f64() / span * 1e3);
        }
    }

    fn cores_and_home_agent(&self, v: &mut Values) {
        let p = &self.machine.mem.paths;
        let mean = |path: Path| {
            let n = p.count[path.index()];
            (n > 0).then(|| p.sums()[path.index()].iter().sum::<u64>().to_f64() / n.to_f64() / 1e3)
        };
        let mut set = |name: MetricId, x: Option<f64>| {
            if let Some(x) = x {
                v.set(name, x);
            }
        };
        set(metric::C2M_READ_LAT_NS, mean(Path::C2mRead));
        set(metric::C2M_WRITE_LAT_NS, mean(Path::C2mWrite));
        let held = |path: Path| p.at_home_agent[path.index()].read(self.machine.now);
        for (path, occupancy, latency) in [
            (Path::C2mRead, metric::CHA_C2M_READ_OCC, metric::CHA_DRAM_READ_C2M_NS),
            (Path::C2mWrite, metric::CHA_C2M_WRITE_OCC, metric::CHA_MC_WRITE_C2M_NS),
            (Path::P2mRead, metric::CHA_P2M_READ_OCC, metric::CHA_DRAM_READ_P2M_NS),
            (Path::P2mWrite, metric::CHA_P2M_WRITE_OCC, metric::CHA_MC_WRITE_P2M_NS),
        ] {
            let r = held(path);
            set(occupancy, Some(r.occupancy));
            set(latency, (r.arrival_rate > 0.0).then_some(r.latency_ns));
        }
        set(metric::CHA_ADM_C2M_NS, p.admission_ns(0));
        set(metric::CHA_ADM_P2M_NS, p.admission_ns(1));
        let waiting = self.machine.mem.cha_writes(self.machine.now);
        set(metric::CHA_WAIT_WRITES, Some(waiting.occupancy));
        set(metric::CHA_WAIT_PEAK, Some(waiting.peak.into()));
        set(metric::CHA_WAIT_CREDITS, Some(waiting.credits.into()));
        let ahead: Vec<DomainReading> = self
            .machine
            .cpus
            .iter()
            .filter_map(|c| c.prefetcher.as_ref())
            .map(|p| p.queue.read(self.machine.now))
            .collect();
        if !ahead.is_empty() {
            set(metric::PREFETCH_RATE, Some(ahead.iter().map(|r| r.arrival_rate).sum::<f64>() / 1e6));
            set(metric::PREFETCH_OCC, Some(ahead.iter().map(|r| r.occupancy).sum::<f64>() / ahead.len().to_f64()));
        }
        // Cores that receive TCP are a class of their own; cores of the block layer are in no class.
        let of = |net: bool| -> Vec<DomainReading> {
            let all = self.tenants_cpus().zip(&self.cores);
            all.filter(|(_, c)| self.tenants[c.tenant].roles.get::<Network>().is_some() == net)
                .map(|(c, _)| c.lfb.read(self.machine.now))
                .collect()
        };
        for (net, names) in [
            (false, [metric::LFB_OCC, metric::LFB_PEAK, metric::LFB_RATE, metric::LFB_LAT_NS, metric::LFB_LITTLE_NS]),
            (
                true,
                [
                    metric::NET_LFB_OCC,
                    metric::NET_LFB_PEAK,
                    metric::NET_LFB_RATE,
                    metric::NET_LFB_LAT_NS,
                    metric::NET_LFB_LITTLE_NS,
                ],
            ),
        ] {
            let lfb = of(net);
            let rate: f64 = lfb.iter().map(|r| r.arrival_rate).sum();
            if rate == 0.0 {
                continue;
            }
            let occupancy: f64 = lfb.iter().map(|r| r.occupancy).sum();
            let weighted: f64 = lfb.iter().map(|r| r.latency_ns * r.arrival_rate).sum();
            let peak = lfb.iter().map(|r| f64::from(r.peak)).fold(0.0, f64::max);
            let credits: f64 = lfb.iter().map(|r| f64::from(r.credits)).sum();
            set(metric::LFB_CREDITS, Some(credits / lfb.len().to_f64()));
            let values = [occupancy / lfb.len().to_f64(), peak, rate / 1e6, weighted / rate, occupancy / rate * 1e9];
            for (name, x) in names.into_iter().zip(values) {
                set(name, Some(x));
            }
        }
    }

    fn controllers(&self, v: &mut Values, span: f64) {
        let now = self.channels();
        let all: Vec<Stats> = now.iter().zip(&self.meters.window.dram).map(|(a, b)| since(a, b)).collect();
        let n = all.len().max(1).to_f64();
        let mean = |f: &dyn Fn(&Stats) -> i128| all.iter().map(f).sum::<i128>().to_f64() / n / span;
        let sum = |f: &dyn Fn(&Stats) -> u64| all.iter().map(f).sum::<u64>().to_f64();
        v.set(metric::RPQ_OCC, mean(&|s| s.entry_ps[READ]));
        v.set(metric::WPQ_OCC, mean(&|s| s.entry_ps[WRITE]));
        v.set(metric::RPQ_FULL_FRAC, mean(&|s| s.marked_ps[READ].into()));
        v.set(metric::WPQ_FULL_FRAC, mean(&|s| s.marked_ps[WRITE].into()));
        v.set(metric::WPQ_AT_CAPACITY_FRAC, mean(&|s| s.full_ps[WRITE].into()));
        let (miss, conflict) = (RowOutcome::Miss.index(), RowOutcome::Conflict.index());
        let activates = |dir: usize| sum(&|s| s.rows[dir][miss] + s.rows[dir][conflict]);
        let reads = sum(&|s| s.reads());
        v.set(metric::LINES_READ, reads);
        v.set(metric::LINES_WRITTEN, sum(&|s| s.writes()));
        v.set(metric::WR_SWITCHES, sum(&|s| s.drains));
        v.set(metric::ACT_READ, activates(READ));
        v.set(metric::ACT_WRITE, activates(WRITE));
        let conflicts = [READ, WRITE].map(|d| sum(&|s| s.rows[d][conflict]));
        v.set(metric::PRE_CONFLICT, conflicts[READ] + conflicts[WRITE]);
        v.set(metric::PRE_CONFLICT_READ, conflicts[READ]);
        v.set(metric::PRE_CONFLICT_WRITE, conflicts[WRITE]);
        if reads > 0.0 {
            v.set(metric::ROW_MISS_RATIO, activates(READ) / reads);
        }
        let bins: Vec<u64> = (0..BINS).map(|i| all.iter().map(|s| u64::from(s.deviation.bins[i])).sum()).collect();
        let samples: u64 = bins.iter().sum();
        if samples > 0 {
            let ratio = |i: usize| 1.0 + i.to_f64() / 16.0;
            let above = |x: f64| {
                let n: u64 = bins.iter().enumerate().filter(|(i, _)| ratio(*i) >= x).map(|(_, n)| n).sum();
                n.to_f64() / samples.to_f64()
            };
            let mut seen = 0;
            let median = bins.iter().position(|n| {
                seen += n;
                2 * seen >= samples
            });
            v.set(metric::BANK_DEV_P50, ratio(median.unwrap_or(0)));
            v.set(metric::BANK_DEV_15_FRAC, above(1.5));
            v.set(metric::BANK_DEV_20_FRAC, above(2.0));
        }
    }

    fn peripherals(&self, v: &mut Values, span: f64) {
        let Some(iio) = &self.machine.iio else { return };
        let (lines, blocks) = iio.moved();
        v.set(metric::P2M_GBS, lines.to_f64() * LINE.to_f64() / span * 1e3);
        let m = &self.machine.mem.stats;
        let io = m.dma(Agent::Io);
        if io.lines() > 0 {
            v.set(metric::P2M_LLC_MISS_RATIO, io.misses().to_f64() / io.lines().to_f64());
        }
        for (name, misses, lines) in [
            (metric::P2M_WRITE_MISS_RATIO, io.write_misses, io.writes),
            (metric::P2M_WRITE_UNCACHED_RATIO, io.wrote_at[LineLocation::Dram.index()], io.writes),
            (metric::P2M_READ_MISS_RATIO, io.read_misses, io.reads),
        ] {
            if lines > 0 {
                v.set(name, misses.to_f64() / lines.to_f64());
            }
        }
        v.set(metric::P2M_IOPS, blocks.to_f64() / span * 1e12);
        if let Some(t) = iio.shortest_read() {
            v.set(metric::DMA_READ_MIN_NS, t.as_ns());
        }
        let (up, down) = iio.utilisation(self.machine.now);
        let receiving = iio.devices().filter_map(|d| match d {
            Endpoint::Roce(nic) if nic.op == DmaDirection::P2mWrite => Some(nic.pauses(self.machine.now)),
            _ => None,
        });
        let of_roce = receiving.reduce(|a, b| (a.0.max(b.0), a.1 + b.1, a.2.max(b.2)));
        if let Some((paused, pauses, _)) = of_roce {
            v.set(metric::PFC_PAUSE_FRACTION, paused.0.to_f64() / span);
            v.set(metric::PFC_PAUSES, pauses.to_f64());
        }
        let peaks = iio.nics().filter_map(|(_, nic)| nic.peak());
        if let Some(peak) = peaks.chain(of_roce.map(|(.., peak)| peak)).max() {
            v.set(metric::NIC_BUFFER_PEAK_KIB, peak.to_f64() / 1024.0);
        }
        v.set(metric::PCIE_UP_UTIL, up);
        v.set(metric::PCIE_DOWN_UTIL, down);
        v.set(metric::IIO_PATH_UTIL, iio.path_utilisation(self.machine.now));
        let names = [
            [
                metric::IIO_WRITE_CREDITS,
                metric::IIO_WRITE_OCC,
                metric::IIO_WRITE_PEAK,
                metric::IIO_WRITE_LAT_NS,
                metric::IIO_WRITE_LITTLE_NS,
            ],
            [
                metric::IIO_READ_CREDITS,
                metric::IIO_READ_OCC,
                metric::IIO_READ_PEAK,
                metric::IIO_READ_LAT_NS,
                metric::IIO_READ_LITTLE_NS,
            ],
        ];
        for (r, names) in iio.readings(self.machine.now).into_iter().zip(names) {
            if let Some(r) = r.filter(|r| r.arrival_rate > 0.0) {
                let values = [r.credits.into(), r.occupancy, r.peak.into(), r.latency_ns, r.little_ns];
                for (name, x) in names.into_iter().zip(values) {
                    v.set(name, x);
                }
            }
        }
    }

    /// Sets unloaded latencies as sums of the platform's hops, with open rows for reads, and the timings of the
    /// formulae.
    fn hops(&self, v: &mut Values) {
        let (l, t) = (&self.machine.mem.lat, self.machine.mem.dram.timing());
        let fixed = Time::from_ns_f64(self.spec.platform.memory.static_latency_ns);
        let out = l.l1 + l.l2 + l.noc;
        let dram = Time(t.cl + t.burst) + fixed + self.machine.mem.crossing() + l.llc;
        let link = self.machine.mem.memory_link().map_or(Time::ZERO, MemoryLink::read_time);
        v.set(metric::T_TRANS_NS, t.burst.to_f64() / 1e3);
        v.set(metric::T_RCD_NS, t.rcd.to_f64() / 1e3);
        v.set(metric::T_RP_NS, t.rp.to_f64() / 1e3);
        v.set(metric::C2M_READ_UNLOADED_NS, (out + dram + link + l.noc).as_ns());
        v.set(metric::C2M_WRITE_UNLOADED_NS, (out + l.noc).as_ns());
        if let Some((iio, pcie)) = self.spec.platform.iio.as_ref().zip(self.spec.platform.pcie.as_ref()) {
            // The lines of a whole packet leave one after the other.
            let packet = Time(iio.line_interval.0 * (pcie.max_payload.0 / LINE).saturating_sub(1) / 2);
            let way = Time(iio.to_cha.0 + iio.from_cha.0);
            let write = Time(iio.ownership.0) + l.write_ack;
            v.set(metric::P2M_READ_UNLOADED_NS, (way + dram).as_ns());
            v.set(metric::P2M_WRITE_UNLOADED_NS, (way + packet + write).as_ns());
        }
    }

    /// Readings of the domains that several cores share.
    pub(super) fn shared_domains(&self) -> Vec<(String, DomainReading)> {
        let p = &self.machine.mem.paths;
        let mut rows = vec![("home agent write buffer".to_string(), self.machine.mem.cha_writes(self.machine.now))];
        if let Some(b) = self.machine.mem.inter_socket() {
            let credits = |node| (format!("link credits of node {node}"), b.read(node, self.machine.now).requests);
            rows.extend((0..2).map(NodeId).map(credits));
        }
        if let Some([Some(write), Some(read)]) = self.machine.iio.as_ref().map(|i| i.readings(self.machine.now)) {
            rows.push(("IIO write buffer".into(), write));
            rows.push(("IIO read buffer".into(), read));
        }
        rows.extend(
            self.machine
                .iio
                .iter()
                .flat_map(|i| i.link_readings(self.machine.now))
                .map(|(name, r)| (name.to_string(), r)),
        );
        let stacks: Vec<_> = self.iio_buffers().collect();
        if stacks.len() > 1 {
            for (i, (write, read)) in stacks.into_iter().enumerate() {
                rows.push((format!("IIO {i} write buffer"), write.read(self.machine.now)));
                rows.push((format!("IIO {i} read buffer"), read.read(self.machine.now)));
            }
        }
        for (path, name) in PATHS {
            if p.count[path.index()] > 0 {
                rows.push((format!("path {name}"), p.under_way[path.index()].read(self.machine.now)));
                rows.push((format!("CHA {name}"), p.at_home_agent[path.index()].read(self.machine.now)));
            }
        }
        rows
    }

    /// Table of the segments of each path's request latency.
    pub(super) fn path_table(&self) -> Value {
        let p = &self.machine.mem.paths;
        let mut rows = Vec::new();
        for (path, name) in PATHS {
            let n = p.count[path.index()];
            if n == 0 {
                continue;
            }
            let sums = p.sums()[path.index()];
            let total = sums.iter().sum::<u64>().max(1).to_f64();
            let one = self.machine.mem.nodes.len() == 1;
            for (_, (segment, ps)) in
                SEGMENTS.iter().zip(sums).enumerate().filter(|(i, _)| !(one && is_between_nodes(*i)))
            {
                rows.push(vec![
                    json!(name),
                    json!(segment),
                    json!(ps.to_f64() / n.to_f64() / 1e3),
                    json!(ps.to_f64() / total),
                ]);
            }
        }
        let columns = [("path", ""), ("segment", ""), ("mean_ns", "ns"), ("share", "fraction")];
        table(&columns, rows)
    }
}
