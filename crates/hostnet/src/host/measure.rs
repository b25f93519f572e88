//! A measurement window, and the metrics derived from it.

use super::client::RTT_PERCENTILES;
use super::life::PacketTrace;
use super::steadiness::Trend;
use super::tenant::TenantState;
use super::{CoreSlot, Host};
use crate::app::WorkSource;
use crate::config::scenario::TenantSpec;
use crate::config::{check, Scenario};
use crate::device::endpoint::Endpoint;
use crate::device::iio::Iio;
use crate::device::nic::{Nic, RingMeter};
use crate::device::NicAt;
use crate::kernel::{Clock, Int, PortId, TenantId, Time};
use crate::memory::stats::AccessClass;
use crate::memory::LINE;
use crate::meter::batches::{Cell, Reading};
use crate::meter::drops::{DropCause, DropLedger, Loss};
use crate::meter::interval::Intervals;
use crate::meter::percentile::Distribution;
use crate::meter::table::table;
use crate::meter::{metric, tenant_column, MetricId, Values};
use crate::placement::{ddio, Placement, PlacementPolicy};
use crate::stack::ccnic::CcnicInterface;
use crate::stack::demand::DuePackets;
use crate::stack::pingpong::PingPongPairs;
use crate::stack::tcp::Network;
use crate::stack::transfer::TransferPairs;
use crate::stack::{Role, Software, Tally, Thread};
use hdrhistogram::Histogram;
use serde_json::{json, Value};

/// Position, among the distributions of a host, of the latencies of requests and of those of DRAM.
const LATENCIES: usize = 0;
const DRAM_LATENCIES: usize = 1;

/// State of one measurement window of simulated time.
#[derive(Clone)]
pub struct Window {
    pub start: Time,
    /// Packets that NICs had accepted at the window's start; `pauses` are their pauses.
    accepted: u64,
    pauses: u64,
    /// Number of packets that had been offered at the window's start, and number of packets that were in the host at
    /// that time.
    pub(super) packets: (u64, u64),
    /// Packets that had ended at the window's start, and packets that the host itself had begun.
    pub(super) ended: (u64, u64),
    /// Packets that the arrival processes of threads had made due at the window's start, by tenant.
    pub(super) due: Vec<Option<DuePackets>>,
    dram_rows: (u64, u64),
    pub(super) dram: Vec<crate::memory::dram::Stats>,
    rx_lines: Vec<(u64, u64)>,
    timeline: Vec<[f64; 4]>,
    last_sample: (Time, u64, u64),
    pub(super) trend: Trend,
}

impl Window {
    pub fn new() -> Window {
        Window {
            start: Time::ZERO,
            accepted: 0,
            pauses: 0,
            packets: (0, 0),
            ended: (0, 0),
            due: Vec::new(),
            dram_rows: (0, 0),
            dram: Vec::new(),
            rx_lines: Vec::new(),
            timeline: Vec::new(),
            last_sample: (Time::ZERO, 0, 0),
            trend: Trend::default(),
        }
    }
}

/// Result of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Value of each metric.
    pub values: Values,
    /// Confidence interval of each metric that has one; the table `tenant_intervals` has those of each tenant.
    pub intervals: Intervals,
    /// Tables by name: columns with units, and rows.
    pub tables: serde_json::Map<String, Value>,
    /// Sentences about what was not steady in the measured window.
    pub warnings: Vec<String>,
    /// Simulated time of the whole run.
    pub sim: Time,
    /// Simulated time before the measured window.
    pub warmup: Time,
    /// Length of the measured window.
    pub measured: Time,
    /// Lives of packets that ended in the window, where the run records any.
    pub lives: Option<Box<PacketTrace>>,
}

impl Host {
    fn row_counts(&self) -> (u64, u64) {
        let mut hits = (0, 0);
        for ch in self.machine.mem.dram.channels() {
            let s = self.machine.mem.dram.stats(self.machine.now, ch);
            hits.0 += s.rows[0][0] + s.rows[1][0];
            hits.1 += s.reads() + s.writes();
        }
        hits
    }

    /// Starts a new window now.
    pub(super) fn restart_window(&mut self) {
        self.restart_within_epoch(Host::restart_counters);
    }

    fn restart_counters(&mut self) {
        self.meters.window = Window::new();
        self.meters.window.start = self.machine.now;
        self.meters.window.accepted = self.sum_of_nics(|nic| nic.counts.accepted);
        self.meters.window.pauses = self.sum_of_nics(|nic| nic.counts.pauses);
        self.meters.window.packets = (self.packets_offered(), self.packets_inside());
        self.meters.window.ended = self.packets_ended();
        self.meters.window.due = self.spec.tenant_ids().map(|t| self.due_ever(t)).collect();
        self.machine.nic.restart_meters(self.machine.now);
        self.meters.window.dram_rows = self.row_counts();
        self.meters.window.dram = self.channels();
        if let Some(iio) = &mut self.machine.iio {
            iio.restart_meters(self.machine.now);
        }
        self.restart_tenants();
        self.restart_trace();
        self.meters.window.last_sample = (self.machine.now, 0, 0);
        self.machine.mem.restart_meters(self.machine.now);
        self.machine.placement.restart();
        self.count_polls(); // they set the shares of slots, which outlive the window
        for c in &mut self.machine.cpus {
            c.restart_meters(self.machine.now);
        }
        self.restart_polls();
        for c in &mut self.cores {
            c.thread.restart_meters(self.machine.now);
        }
        self.restart_timeline();
        self.restart_trend();
    }

    /// Adds a point to the timeline and to the occupancy averages.
    pub(super) fn sample(&mut self) {
        let ways = self.machine.placement.way_mask();
        let lines = self.machine.mem.llc_rx_lines(ways);
        self.meters.window.rx_lines.push(lines);
        let moved: u64 = self.machine.mem.stats.dram.iter().sum();
        let (t0, done0, moved0) = self.meters.window.last_sample;
        let us = (self.machine.now - t0).0.to_f64() / 1e6;
        let completed = self.completed();
        if us > 0.0 {
            self.meters.window.timeline.push([
                (self.machine.now - self.meters.window.start).0.to_f64() / 1e6,
                (completed - done0).to_f64() / us,
                (moved - moved0).to_f64() * LINE.to_f64() / us / 1e3,
                lines.0.to_f64(),
            ]);
        }
        self.meters.window.last_sample = (self.machine.now, completed, moved);
        self.add_to_trend(completed - done0, moved - moved0);
    }

    /// Numbers of the window up to now.
    pub(super) fn reading(&self) -> Reading {
        let total = self.total();
        let distributions = self.distributions(&total);
        let mut v = statics(&self.spec);
        distributions.iter().for_each(|d| d.set_percentiles(&mut v));
        let rows = self.row_counts();
        let (w, y) = (&self.meters.window, &*total);
        let span = self.machine.now - w.start;
        let us = span.0.max(1).to_f64() / 1e6;
        let m = &self.machine.mem.stats;
        let offered = self.requests_offered();
        let drops = self.lost();
        let cycles = Clock::from_hz(self.spec.platform.core.clock.0);
        let timed = |t: &TenantState| t.roles.iter().any(|r| r.latency().is_some());
        if self.tenants.iter().any(timed) && self.sources().next().is_none() {
            v.set(metric::THROUGHPUT_MRPS, y.completed.to_f64() / us);
            if self.spec.tenant_ids().any(|t| self.due(t).is_some()) {
                v.set(metric::OFFERED_MRPS, offered.to_f64() / us);
                v.set(metric::LOSS_RATE, self.unserved(offered).to_f64() / offered.max(1).to_f64());
            }
        }
        if self.sources().next().is_some() {
            v.set(metric::THROUGHPUT_MRPS, y.completed.to_f64() / us);
            v.set(metric::OFFERED_MRPS, offered.to_f64() / us);
            v.set(metric::NET_GBPS, y.wire_bytes.to_f64() * 8.0 / us / 1e3);
            v.set(metric::DROP_RATE, drops.to_f64() / offered.max(1).to_f64());
            v.set(metric::DROPS, drops.to_f64());
            v.set(metric::LOSS_RATE, self.unserved(offered).to_f64() / offered.max(1).to_f64());
            v.set(metric::SERVICE_MEAN_US, y.service_us());
            v.set(metric::CORES_BUSY, y.service_ps.to_f64() / 1e6 / us);
            if drops > 0 {
                let accepted = self.sum_of_nics(|nic| nic.counts.accepted) - w.accepted;
                let pauses = self.sum_of_nics(|nic| nic.counts.pauses) - w.pauses;
                v.set(metric::PACKETS_BETWEEN_PAUSES, accepted.to_f64() / pauses.to_f64());
            }
        }
        if !y.latency_ns.is_empty() {
            v.set(metric::LAT_MEAN_US, distributions[LATENCIES].mean() / 1e3);
            v.set(metric::LAT_MAX_US, y.latency_ns.max().to_f64() / 1e3);
        }
        let classes = [
            (metric::ACC_NIC_RX_WR, AccessClass::NicRxWr),
            (metric::ACC_NIC_TX_RD, AccessClass::NicTxRd),
            (metric::ACC_CPU_RX_RD, AccessClass::CpuRxRd),
            (metric::ACC_CPU_TX_RDWR, AccessClass::CpuTxRdWr),
            (metric::ACC_CPU_OTHER_RD, AccessClass::CpuOtherRd),
            (metric::ACC_RX_EVCT, AccessClass::RxEvct),
            (metric::ACC_TX_EVCT, AccessClass::TxEvct),
            (metric::ACC_OTHER_EVCT, AccessClass::OtherEvct),
            (metric::ACC_IO_WR, AccessClass::IoWr),
            (metric::ACC_IO_RD, AccessClass::IoRd),
            (metric::ACC_IO_EVCT, AccessClass::IoEvct),
            (metric::ACC_BACKGROUND_RD, AccessClass::BackgroundRd),
        ];
        let (mut read, mut written) = (0, 0);
        for (name, c) in classes {
            let k = m.of(c);
            *(if c.is_write() { &mut written } else { &mut read }) += k;
            if y.completed > 0 {
                v.set(name, k.to_f64() / y.completed.to_f64());
            }
        }
        let gbs = |lines: u64| lines.to_f64() * LINE.to_f64() / us / 1e3;
        v.set(metric::MEM_READ_GBS, gbs(read));
        v.set(metric::MEM_WRITE_GBS, gbs(written));
        v.set(metric::MEM_BW_GBS, gbs(read + written));
        if let Some(peak) = v.get(metric::MEM_PEAK_GBS) {
            v.set(metric::MEM_UTILISATION, gbs(read + written) / peak);
        }
        if y.completed > 0 {
            let per = |k: u64| k.to_f64() / y.completed.to_f64();
            v.set(metric::ACC_TOTAL, per(read + written));
            v.set(metric::RX_EVCT_PREMATURE, per(m.rx_evct_premature));
            v.set(metric::RX_EVCT_CONSUMED, per(m.rx_evct_consumed));
            v.set(metric::CLSWEEPS_PER_REQ, per(m.clsweeps));
            v.set(metric::SWEEP_MESSAGES_PER_REQ, per(m.sweep_messages));
        }
        if !m.dram_ps.is_empty() {
            v.set(metric::DRAM_LAT_AVG_NS, distributions[DRAM_LATENCIES].mean() / 1e3);
        }
        if rows.1 > w.dram_rows.1 {
            let hits = (rows.0 - w.dram_rows.0).to_f64();
            v.set(metric::DRAM_ROW_HIT_RATIO, hits / (rows.1 - w.dram_rows.1).to_f64());
        }
        let (ps, n) = self.tenants_cpus().fold((0, 0), |(ps, n), c| (ps + c.amat.ps, n + c.amat.accesses));
        if n > 0 {
            v.set(metric::AMAT_CYCLES, cycles.cycles(Time((ps / u128::from(n)).to_u64())));
        }
        let (mut hits, mut misses) = (0, 0);
        for c in m.tenants.iter().take(self.spec.tenants.len()) {
            (hits, misses) = (hits + c.llc_hits, misses + c.llc_misses);
        }
        v.set(metric::LLC_MISS_RATIO, misses.to_f64() / (hits + misses).to_f64());
        if let Some(first) = m.tenants.get(TenantId(0)) {
            let all = first.llc_hits + first.llc_misses + m.nic_lines;
            v.set(metric::LLC_APP_SHARE, first.app.to_f64() / all.to_f64());
        }
        let mean =
            |f: fn(&(u64, u64)) -> u64| w.rx_lines.iter().map(f).sum::<u64>().to_f64() / w.rx_lines.len().to_f64();
        v.set(metric::LLC_RX_LINES, mean(|x| x.0));
        v.set(metric::LLC_RX_LINES_OUTSIDE_DDIO, mean(|x| x.1));
        self.placement_metrics(&mut v, us);
        self.client_metrics(&mut v, us);
        self.uncore(&mut v);
        self.servers(&mut v);
        self.role_metrics(&mut v);
        self.ring_metrics(&mut v);
        let tenants = self.tenant_table(&distributions);
        v.set_aliases(&tenants);
        Reading { length: span, values: v, tenants, distributions }
    }

    /// Sets the metrics of roles: of a kind that several tenants may have, those of all of its roles together.
    fn role_metrics(&self, v: &mut Values) {
        self.role_views().for_each(|(role, view)| role.report(&view, v));
        PingPongPairs::report(&self.roles_of(), v);
        TransferPairs::report(&self.roles_of(), v);
        Network::report(&self.roles_of(), v);
        let interfaces = self.roles_of();
        CcnicInterface::report(&interfaces, v);
        if self.sources().next().is_none() {
            CcnicInterface::report_round_trips(&interfaces, v);
        }
    }

    /// Requests offered in the window: packets that the generators have offered to NICs, and those that threads of CC-NIC in
    /// loopback mode have sent, which are complete when they are back.
    pub(super) fn requests_offered(&self) -> u64 {
        let own = self.tenants.enumerate().filter(|(_, t)| t.source.is_none());
        let own = own.map(|(id, t)| self.due(id).map_or(t.tally.completed, |d| d.due));
        // The clients of TCP send a request for each that is answered.
        let (segments, requests) = self.tenants.iter().filter(|t| t.counts_segments()).fold((0, 0), |(s, r), t| {
            let (came, lost) = t.source.as_ref().map_or((0, 0), |s| (s.offered, s.dropped));
            (s + came, r + t.tally.completed + lost)
        });
        self.packets_offered() - self.meters.window.packets.0 - segments + requests + own.sum::<u64>()
    }

    /// Packets that arrival processes have made threads of `tenant` send or receive since the run began; None where none has
    /// one.
    pub(super) fn due_ever(&self, tenant: TenantId) -> Option<DuePackets> {
        let own = self.cores.iter().filter(|c| c.tenant == tenant);
        own.map(|c| c.thread.due_packets()).fold(None, DuePackets::sum)
    }

    /// Packets of `due_ever` in the window; the unsent ones are those by which their number grew.
    pub(super) fn due(&self, tenant: TenantId) -> Option<DuePackets> {
        let now = self.due_ever(tenant)?;
        let then = self.meters.window.due.get(tenant.index()).copied().flatten().unwrap_or_default();
        Some(DuePackets { due: now.due - then.due, unsent: now.unsent.saturating_sub(then.unsent) })
    }

    /// Number of the window's `offered` requests that were lost, or by which queues grew.
    fn unserved(&self, offered: u64) -> u64 {
        offered.saturating_add_signed(-self.all_grown_beside_bursts()).saturating_sub(self.completed())
    }

    /// Result of the window that ends now.
    pub(super) fn outcome(&mut self) -> Outcome {
        self.count_polls();
        let Reading { mut values, tenants, .. } = self.reading();
        self.predict(&mut values);
        let mut tables = self.tables();
        tables.insert("tenants".into(), tenants);
        let (warmup, sim) = (self.meters.window.start, self.machine.now);
        let offered = self.packets_offered() - self.meters.window.packets.0;
        let measured = sim - warmup;
        Outcome {
            values,
            intervals: Intervals::default(),
            tables,
            warnings: self.warnings(offered),
            sim,
            warmup,
            measured,
            lives: self.lived(),
        }
    }

    /// Distributions of the window up to now, of which metrics are percentiles. The first two are [`LATENCIES`] and
    /// [`DRAM_LATENCIES`].
    fn distributions(&self, total: &Tally) -> Vec<Distribution> {
        let latencies = [
            (metric::LAT_P50_US, 0.5),
            (metric::LAT_P90_US, 0.9),
            (metric::LAT_P99_US, 0.99),
            (metric::LAT_P999_US, 0.999),
        ];
        let of_metrics =
            |named: &[(MetricId, f64)]| named.iter().map(|(id, q)| (Cell::Metric(*id), *q)).collect::<Vec<_>>();
        let columns = [
            (tenant_column::LAT_P50_US, 0.5),
            (tenant_column::LAT_P90_US, 0.9),
            (tenant_column::LAT_P99_US, 0.99),
            (tenant_column::LAT_P999_US, 0.999),
        ];
        let of_tenant = |t: TenantId| columns.map(|(column, q)| (Cell::Tenant(t.index(), column), q));
        let mut of_host = of_metrics(&latencies);
        let tenants: Vec<TenantId> = self.spec.tenant_ids().collect();
        // An only tenant's latencies are the host's.
        let several = tenants.len() > 1;
        if !several {
            of_host.extend(tenants.iter().flat_map(|t| of_tenant(*t)));
        }
        let of_dram = of_metrics(&[(metric::DRAM_LAT_P50_NS, 0.5), (metric::DRAM_LAT_P99_NS, 0.99)]);
        let mut found = vec![
            Distribution::new(&total.latency_ns, 1e3, of_host),
            Distribution::new(&self.machine.mem.stats.dram_ps, 1e3, of_dram),
        ];
        if let Some(rtt) = self.round_trips() {
            found.push(Distribution::new(&rtt.histogram, 1e3, of_metrics(&RTT_PERCENTILES)));
        }
        if several {
            let of = |t: TenantId| Distribution::new(&self.tenants[t].tally.latency_ns, 1e3, of_tenant(t).to_vec());
            found.extend(tenants.into_iter().map(of));
        }
        found
    }

    fn tables(&self) -> serde_json::Map<String, Value> {
        let mut out = serde_json::Map::new();
        let cdf = |h: &Histogram<u64>, scale: f64| {
            let total = h.len().to_f64();
            let mut seen = 0u64;
            h.iter_recorded()
                .map(|x| {
                    seen += x.count_at_value();
                    vec![json!(x.value_iterated_to().to_f64() / scale), json!(seen.to_f64() / total)]
                })
                .collect::<Vec<_>>()
        };
        let m = &self.machine.mem.stats;
        let dram = thin(cdf(&m.dram_ps, 1e3));
        out.insert("dram_latency_cdf".into(), table(&[("latency_ns", "ns"), ("fraction", "1")], dram));
        let lat = thin(cdf(&self.total().latency_ns, 1e3));
        out.insert("request_latency_cdf".into(), table(&[("latency_us", "us"), ("fraction", "1")], lat));
        let columns = [("t_us", "us"), ("throughput_mrps", "Mrps"), ("mem_bw_gbs", "GB/s"), ("rx_lines", "lines")];
        let rows = self.meters.window.timeline.iter().map(|r| r.iter().map(|x| json!(x)).collect());
        let timeline = self.timeline_table().unwrap_or_else(|| table(&columns, rows.collect()));
        out.insert("timeline".into(), timeline);
        out.insert("cores".into(), self.core_table());
        out.insert("places".into(), self.place_table());
        out.insert("domains".into(), self.domains());
        out.insert("paths".into(), self.path_table());
        out.insert("drops".into(), self.drop_table());
        let client = [("rtt", self.rtt_table()), ("packets", self.packet_table())];
        out.extend(client.into_iter().filter_map(|(name, t)| Some((name.to_string(), t?))));
        let tables = self.role_views().flat_map(|(role, view)| role.tables(&view));
        out.extend(tables.map(|(name, t)| (name.to_string(), t)));
        if self.spec.run.trace.is_some() {
            out.insert("trace".into(), self.trace_table());
        }
        out
    }

    fn domains(&self) -> Value {
        let columns = [
            ("domain", ""),
            ("credits", "credits"),
            ("occupancy_avg", "credits"),
            ("occupancy_max", "credits"),
            ("arrivals_per_us", "1/us"),
            ("latency_ns", "ns"),
            ("little_ns", "ns"),
        ];
        let mut rows = Vec::new();
        let mut add = |name: String, r: crate::flow::domain::DomainReading| {
            rows.push(vec![
                json!(name),
                json!(r.credits),
                json!(r.occupancy),
                json!(r.peak),
                json!(r.arrival_rate / 1e6),
                json!(r.latency_ns),
                json!(r.little_ns),
            ]);
        };
        for (i, c) in self.machine.cpus.iter().enumerate() {
            let whose = if i >= self.owners.tenant_cores { "kernel core" } else { "core" };
            add(format!("{whose} {i} line fill buffers"), c.lfb.read(self.machine.now));
            if let Some(p) = &c.prefetcher {
                add(format!("{whose} {i} prefetch queue"), p.queue.read(self.machine.now));
            }
        }
        for (name, r) in self.shared_domains() {
            add(name, r);
        }
        table(&columns, rows)
    }
}

impl Host {
    /// Bytes that applications have received: payload of TCP, and frames of others.
    pub(super) fn delivered_bytes(&self) -> u64 {
        let of = |t: &TenantState| match t.roles.get::<Network>() {
            Some(n) => n.delivered(&self.cores),
            None => t.tally.wire_bytes,
        };
        self.tenants.iter().map(of).sum()
    }

    /// Whether a window lasts for a number of requests, rather than for a time.
    pub(super) fn counts_requests(&self) -> bool {
        self.sources().next().is_some() || self.counts_own_requests()
    }

    /// Whether the host's threads count requests that do not pass through a NIC.
    pub(super) fn counts_own_requests(&self) -> bool {
        self.tenants.iter().any(TenantState::counts_own_requests)
    }

    /// Whether some role warms its caches up in timed mode only.
    pub(super) fn warms_up_timed(&self) -> bool {
        self.tenants.iter().any(|t| t.roles.iter().any(Role::warms_up_timed))
    }

    /// Ledgers of the datagrams that full sockets have lost.
    pub(super) fn socket_drops(&self) -> impl Iterator<Item = &DropLedger> {
        self.cores.iter().filter_map(|c| match &c.thread {
            Thread::Udp(t) => Some(&t.drops),
            _ => None,
        })
    }

    /// Ledgers of the datagrams that full sockets of `tenant` have lost.
    fn socket_drops_of(&self, tenant: TenantId) -> impl Iterator<Item = &DropLedger> {
        let cores = self.cores.iter().filter(move |c| c.tenant == tenant);
        cores.filter_map(|c| match &c.thread {
            Thread::Udp(t) => Some(&t.drops),
            _ => None,
        })
    }

    /// Number of `tenant`'s datagrams that full sockets have lost in the window.
    pub(super) fn socket_losses(&self, tenant: TenantId) -> u64 {
        self.socket_drops_of(tenant).map(DropLedger::count).sum()
    }

    /// Number of `tenant`'s datagrams that full sockets have lost since the host began.
    pub(super) fn socket_losses_ever(&self, tenant: TenantId) -> u64 {
        self.socket_drops_of(tenant).map(DropLedger::total).sum()
    }

    /// Number of the generator's packets that were lost in the window.
    pub(super) fn lost(&self) -> u64 {
        self.sum_of_nics(|nic| nic.drops.count()) + self.socket_drops().map(DropLedger::count).sum::<u64>()
    }

    /// Table of the packets lost in the window: place, cause, number, and times of the first and the last loss.
    fn drop_table(&self) -> Value {
        let columns = [("where", ""), ("why", ""), ("count", "packets"), ("first_us", "us"), ("last_us", "us")];
        let us = |t: Time| t.saturating_sub(self.meters.window.start).as_ns() / 1e3;
        let nics =
            self.machine.iio.iter().flat_map(Iio::devices).filter_map(Endpoint::drops).chain([&self.machine.nic.drops]);
        let all = nics
            .map(|d| ("NIC", d))
            .chain(self.tenants.iter().filter_map(|t| Some(("network", t.roles.get::<Network>()?.drops()))));
        let all = all.chain(self.socket_drops().map(|d| ("kernel", d)));
        let rows = all.flat_map(|(whose, d)| d.losses().map(move |l| (whose, l)));
        let row = |(whose, l): (&str, &Loss)| {
            let place = format!("{whose}: {}", l.place.name());
            vec![json!(place), json!(l.cause.sentence()), json!(l.count), json!(us(l.first)), json!(us(l.last))]
        };
        table(&columns, rows.map(row).collect())
    }
}

impl Host {
    /// Share of the window in which the tenants' cores with descriptor rings neither slept nor polled without success.
    pub(super) fn polling_share(&self) -> f64 {
        let now = self.machine.now;
        let span = (now - self.meters.window.start).0.max(1).to_f64();
        let of_tenant = |c: &&CoreSlot| {
            let tenant = self.spec.tenants.get(c.tenant.index());
            tenant.is_some_and(|t| t.has_rings() && u32::from(c.local) < t.cores)
        };
        let own = self.cores.iter().filter(of_tenant);
        let idle = own.filter_map(|c| c.thread.idle(self.meters.window.start, now));
        let cores: u32 = self.spec.tenants.iter().filter(|t| t.has_rings()).map(|t| t.cores).sum();
        let cores = cores.max(1);
        1.0 - idle.map(|t| u128::from(t.0)).sum::<u128>().to_f64() / span / f64::from(cores)
    }

    /// Sets the metrics of the threads with descriptor rings and of their NICs in the window.
    fn ring_metrics(&self, v: &mut Values) {
        let nics: Vec<(PortId, &Nic)> =
            self.machine.iio.iter().flat_map(Iio::nics).filter(|(_, nic)| nic.has_rings()).collect();
        if nics.is_empty() {
            return;
        }
        let now = self.machine.now;
        let span = (now - self.meters.window.start).0.max(1).to_f64();
        v.set(metric::CPU_UTILISATION, self.polling_share());
        let lost = |cause| nics.iter().map(|(_, nic)| nic.drops.of(cause)).sum::<u64>().to_f64() / self.lost().to_f64();
        v.set(metric::DROP_DMA_SHARE, lost(DropCause::DmaDrop));
        v.set(metric::DROP_CORE_SHARE, lost(DropCause::CoreDrop));
        v.set(metric::DROP_TX_SHARE, lost(DropCause::TxDrop));
        let meters = || nics.iter().filter_map(|(_, nic)| nic.ring_meter());
        let sum = |of: fn(&RingMeter) -> u64| meters().map(of).sum::<u64>().to_f64();
        v.set(metric::DESCRIPTORS_PER_WRITE_BACK, sum(|m| m.descriptors) / sum(|m| m.write_backs));
        v.set(metric::DMA_PEAK_GBS, meters().map(RingMeter::peak_gbs).fold(0.0, f64::max));
        v.set(metric::DMA_BUSY, meters().map(|m| m.busy_until(now).0.to_f64() / span).fold(0.0, f64::max));
        // Segments of TCP are no packets that tenants complete, and other packets come through no ring.
        let serving = |port: PortId| self.sources().filter(move |(_, s)| s.at == NicAt::Port(port));
        let completed: u64 =
            nics.iter().flat_map(|(port, _)| serving(*port)).map(|(t, _)| self.tenants[t].tally.completed).sum();
        if completed > 0 {
            let own = || nics.iter().filter(|(port, _)| serving(*port).next().is_some());
            let meters = || own().filter_map(|(_, nic)| nic.ring_meter());
            let per = |of: fn(&RingMeter) -> u64| meters().map(of).sum::<u64>().to_f64() / completed.to_f64();
            v.set(metric::DOORBELLS_PER_PACKET, per(|m| m.transmit_doorbells));
            v.set(metric::TX_FETCHES_PER_PACKET, per(|m| m.transmit_fetches));
            v.set(metric::TX_PAYLOAD_READS_PER_PACKET, per(|m| m.frames_read));
            v.set(metric::FRAME_BYTES_MOVED, per(|m| m.frame_bytes));
        }
    }
}

/// Reduces rows to about 400 at most, and keeps the tail of the distribution, which contains the high percentiles.
fn thin(rows: Vec<Vec<Value>>) -> Vec<Vec<Value>> {
    let step = rows.len().div_ceil(300).max(1);
    let tail = rows.len().saturating_sub(100);
    rows.into_iter().enumerate().filter(|(i, _)| *i >= tail || i % step == 0).map(|(_, r)| r).collect()
}

/// Metrics that follow from the configuration alone.
pub fn statics(s: &Scenario) -> Values {
    let mut v = Values::default();
    let mib = |b: u64| b.to_f64() / f64::from(1 << 20);
    let llc = &s.platform.caches.llc;
    let probe = s.tenants.probe().map_or(0, |p| p.cores);
    // CC-NIC's own generator asks applications as well.
    let served = |t: &&TenantSpec| check::serves(t) || t.app.work() == WorkSource::Packets;
    let serving = probe + s.tenants.iter().filter(served).map(|t| t.cores).sum::<u32>();
    let nodes = s.nodes().count;
    let entries = |t: TenantId| s.tenant(t).receivers() * check::rx_buffers(s, t);
    // A tenant's buffers lie at its node; a directed test has its cores at the first one.
    let of_node = |node: u32| {
        let here = |t: &TenantId| check::serves(s.tenant(*t)) && u32::from(s.tenant(*t).node) == node;
        let served = s.tenant_ids().filter(here).map(entries).sum::<u32>();
        served + if node == 0 { probe * check::pair_buffers(s) } else { 0 }
    };
    let size = |entries: u32| u64::from(entries) * s.rings.buffer_size.0;
    let all = (0..nodes).map(of_node).sum();
    let fullest = (0..nodes).map(of_node).max().unwrap_or(0);
    v.set(metric::RX_FOOTPRINT_MIB, mib(size(all)));
    v.set(metric::RX_FOOTPRINT_PER_LLC, size(fullest).to_f64() / llc.size.0.to_f64());
    v.set(metric::TOTAL_RX_ENTRIES, all.into());
    v.set(metric::LLC_MIB, mib(llc.size.0));
    if matches!(s.placement.policy, PlacementPolicy::Ddio | PlacementPolicy::Idio | PlacementPolicy::Table) {
        let ways = Placement::new(&s.placement).ways();
        v.set(metric::DDIO_CAPACITY_MIB, mib(ddio::capacity(llc.size.0, ways, llc.ways)));
    }
    let private = s.platform.caches.l1d.size.0 + s.platform.caches.l2.size.0;
    v.set(metric::L1L2_KIB, private.to_f64() / 1024.0);
    v.set(metric::CORES, serving.into());
    v.set(metric::CHANNELS, (nodes * s.platform.memory.channels).into());
    v.set(metric::MEM_PEAK_GBS, f64::from(nodes) * s.platform.memory.peak_gbs());
    v
}
