//! The timeline: the traffic in each bin of time, and the locations of received lines at the end of the bin.

use super::timer::Timer;
use super::Host;
use crate::kernel::units::Span;
use crate::kernel::{Due, Int, Post, ThreadId, Time};
use crate::memory::stats::{DmaCounts, MemStats};
use crate::memory::LINE;
use crate::meter::table::table;
use serde_json::{json, Value};

/// Columns of the table with their units; traffic is given as rates.
const COLUMNS: [(&str, &str); 15] = [
    ("t_us", "us"),
    ("mlc_wb", "M/s"),
    ("llc_wb", "M/s"),
    ("llc_wb_pushed", "M/s"),
    ("dma_requests", "M/s"),
    ("packets", "M/s"),
    ("waiting", "packets"),
    ("rx_mlc", "lines"),
    ("rx_ddio", "lines"),
    ("rx_llc", "lines"),
    ("rx_unread", "lines"),
    ("rx_spent", "lines"),
    ("rx_mlc_headers", "lines"),
    ("rx_mlc_spent", "lines"),
    ("mem_bw_gbs", "GB/s"),
];

/// Counters at an instant: write-backs of L2s, write-backs of the LLC, write-backs of the LLC that L2 victims caused,
/// lines that devices requested, packets served, and lines that DRAM read or wrote.
#[derive(Clone, Copy, Default)]
struct TimelineCounters([u64; 6]);

impl TimelineCounters {
    fn of(m: &MemStats, served: u64) -> TimelineCounters {
        let mlc = m.cores.iter().map(|c| c.mlc_wb).sum();
        TimelineCounters([
            mlc,
            m.llc_wb,
            m.llc_wb_pushed,
            m.dma.iter().map(DmaCounts::lines).sum(),
            served,
            m.dram.iter().sum(),
        ])
    }
}

/// Rows of a timeline or a trace, at most: a million rows of fifteen columns are a gigabyte of result.
const MOST_ROWS: usize = 1_000_000;

#[derive(Clone)]
pub struct Timeline {
    every: Option<Time>,
    /// End of the present bin. The calendar may also hold the ends of bins that a restart has cut off.
    due: Due,
    last: TimelineCounters,
    start: Time,
    rows: Vec<[f64; COLUMNS.len()]>,
    /// Lines of the packets of completed batches: the lines that a core's caches held at that time, and all lines.
    batches: (u64, u64),
}

impl Timeline {
    pub fn new(every: Option<Time>) -> Timeline {
        Timeline {
            every,
            due: Due::NEVER,
            last: TimelineCounters::default(),
            start: Time::ZERO,
            rows: Vec::new(),
            batches: (0, 0),
        }
    }
}

impl Host {
    /// Restarts the timeline for a new window, whose counters are zero.
    pub(super) fn restart_timeline(&mut self) {
        let Some(every) = self.meters.timeline.every else { return };
        self.meters.timeline.rows.clear();
        self.meters.timeline.start = self.machine.now;
        self.meters.timeline.last = TimelineCounters::default();
        self.meters.timeline.batches = (0, 0);
        self.tenants.iter_mut().for_each(|t| t.tally.batch = Some(Vec::new()));
        self.begin_bin(every);
    }

    fn begin_bin(&mut self, every: Time) {
        let end = self.machine.now + every;
        self.meters.timeline.due = Due::at(end);
        self.machine.cal.post(end, Timer::Bin);
    }

    /// Ends the run where the table of `key`, which has had a row for `every` interval, is full.
    pub(super) fn is_full(&mut self, rows: usize, key: &str, every: Time) -> bool {
        if rows < MOST_ROWS {
            return false;
        }
        let seconds = (every.as_secs() * rows.to_f64()).to_string();
        self.run.failed = Some(format!(
            "run.{key} = \"{}\" has made {MOST_ROWS} rows in {seconds} s of simulated time, the most that a table holds; give a \
             longer interval, or traffic.rate for a capture with long silences",
            Span(every.0)
        ));
        true
    }

    /// `Timer::Bin`.
    pub(super) fn on_bin(&mut self) {
        if self.meters.timeline.due != Due::at(self.machine.now) {
            return; // the bin belonged to an earlier window
        }
        self.meters.timeline.due = Due::NEVER;
        let (Some(every), false) = (self.meters.timeline.every, self.run.stopped) else { return };
        if self.is_full(self.meters.timeline.rows.len(), "timeline", every) {
            return;
        }
        let now = self.machine.now;
        let is = TimelineCounters::of(&self.machine.mem.stats, self.completed());
        let was = std::mem::replace(&mut self.meters.timeline.last, is);
        let us = every.0.to_f64() / 1e6;
        let [mlc, llc, pushed, dma, packets, dram] = std::array::from_fn(|i| (is.0[i] - was.0[i]).to_f64() / us);
        let waiting = self.sum_of_nics(|nic| nic.waiting_packets().into());
        let held = self.machine.mem.received_lines();
        let t = (now - self.meters.timeline.start).as_ns() / 1e3;
        let [in_mlc, ddio, other, unread, spent, headers, mlc_spent] = held.map(|n| n.to_f64());
        let waiting = waiting.to_f64();
        let moves = [t, mlc, llc, pushed, dma, packets, waiting];
        let places = [in_mlc, ddio, other, unread, spent, headers, mlc_spent];
        let gbs = dram * LINE.to_f64() / 1e3;
        let mut values = moves.into_iter().chain(places).chain([gbs]);
        self.meters.timeline.rows.push(std::array::from_fn(|_| values.next().expect("a value for each column")));
        self.begin_bin(every);
    }

    /// Counts, for the packets of a batch that has ended, the lines that the core's caches hold.
    pub(super) fn end_batch(&mut self, core: ThreadId) {
        let tenant = self.cores[core].tenant;
        let core = self.machine.core_of(core);
        let Some(lines) = &mut self.tenants[tenant].tally.batch else { return };
        for (line, n) in lines.drain(..) {
            let held = line.span(n).filter(|l| self.machine.mem.holds(core, *l)).count();
            self.meters.timeline.batches.0 += held.to_u64();
            self.meters.timeline.batches.1 += u64::from(n);
        }
    }

    /// Share of packets' lines that their core's caches hold when the batch ends, where the scenario asks for a
    /// timeline.
    pub(super) fn batch_cached(&self) -> Option<f64> {
        let (held, of) = self.meters.timeline.batches;
        (of > 0).then(|| held.to_f64() / of.to_f64())
    }

    /// Table with one row for each bin of the window, if the scenario asks for a timeline.
    pub(super) fn timeline_table(&self) -> Option<Value> {
        self.meters.timeline.every?;
        let rows = self.meters.timeline.rows.iter().map(|r| r.iter().map(|x| json!(x)).collect());
        Some(table(&COLUMNS, rows.collect()))
    }
}
