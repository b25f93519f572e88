//! A trace of peripherals and their flow control over time, which shows changes that means hide.

use super::timer::Timer;
use super::Host;
use crate::device::endpoint::Endpoint;
use crate::kernel::{Int, Post, Time};
use crate::memory::LINE;
use crate::meter::table::table;
use serde_json::{json, Value};

/// Counters at an instant.
#[derive(Clone, Copy, Default)]
struct TraceCounters {
    at: Time,
    /// Integrals of the IIO's write and read occupancy over time, in credits x ps.
    held: [i128; 2],
    lines: u64,
    delivered: u64,
    paused: Time,
}

#[derive(Clone, Default)]
pub struct HostTrace {
    every: Option<Time>,
    /// Whether the calendar holds the event for a sample.
    pending: bool,
    last: TraceCounters,
    /// Start of the window; times in the rows count from this time.
    start: Time,
    rows: Vec<[f64; 6]>,
}

impl HostTrace {
    pub fn new(every: Option<Time>) -> HostTrace {
        HostTrace { every, ..HostTrace::default() }
    }
}

impl Host {
    /// Restarts the trace for a new window.
    pub(super) fn restart_trace(&mut self) {
        let Some(every) = self.meters.trace.every else { return };
        self.meters.trace.rows.clear();
        self.meters.trace.start = self.machine.now;
        self.meters.trace.last = self.seen();
        if !self.meters.trace.pending {
            self.meters.trace.pending = true;
            self.machine.cal.post(self.machine.now + every, Timer::Sample);
        }
    }

    fn seen(&self) -> TraceCounters {
        let Some(iio) = &self.machine.iio else {
            return TraceCounters { at: self.machine.now, ..TraceCounters::default() };
        };
        let paused = |d: &Endpoint| match d {
            Endpoint::Roce(nic) => nic.pauses(self.machine.now).0,
            _ => Time::ZERO,
        };
        TraceCounters {
            at: self.machine.now,
            held: iio
                .buffers()
                .fold([0, 0], |[w, r], b| [w + b.0.integral(self.machine.now), r + b.1.integral(self.machine.now)]),
            lines: iio.moved().0,
            delivered: self.delivered_bytes(),
            paused: iio.devices().map(paused).max().unwrap_or_default(),
        }
    }

    /// `Timer::Sample`.
    pub(super) fn on_sample(&mut self) {
        self.meters.trace.pending = false;
        let (Some(every), false) = (self.meters.trace.every, self.run.stopped) else { return };
        if self.is_full(self.meters.trace.rows.len(), "trace", every) {
            return;
        }
        let (was, is) = (self.meters.trace.last, self.seen());
        let span = (is.at - was.at).0.max(1).to_f64();
        let mean = |i: usize| (is.held[i] - was.held[i]).to_f64() / span;
        self.meters.trace.rows.push([
            (is.at - self.meters.trace.start).as_ns() / 1e3,
            mean(0),
            mean(1),
            (is.lines - was.lines).to_f64() * LINE.to_f64() / span * 1e3,
            (is.paused - was.paused).0.to_f64() / span,
            (is.delivered - was.delivered).to_f64() / span * 1e3,
        ]);
        self.meters.trace.last = is;
        self.meters.trace.pending = true;
        self.machine.cal.post(self.machine.now + every, Timer::Sample);
    }

    /// Table with one row per interval of the window.
    pub(super) fn trace_table(&self) -> Value {
        let columns = [
            ("t_us", "us"),
            ("iio_write_occ", "lines"),
            ("iio_read_occ", "lines"),
            ("p2m_gbs", "GB/s"),
            ("paused", "fraction"),
            ("net_gbs", "GB/s"),
        ];
        let rows = self.meters.trace.rows.iter().map(|r| r.iter().map(|x| json!(x)).collect());
        table(&columns, rows.collect())
    }
}
