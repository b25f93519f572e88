//! Two threads that exchange a counter through two registers in coherent memory (CC-NIC, section 3.2).

use super::{Awaited, Ctx, Role, RoleView, Software, Step};
use crate::core::Op;
use crate::kernel::{CoreId, Int, LineAddr, Time};
use crate::meter::{metric, Values};
use hdrhistogram::Histogram;
use std::borrow::Cow;

/// Instructions of a poll, and of an increment.
const POLL: u32 = 4;

/// State of the pairs of threads of a tenant.
#[derive(Clone)]
pub struct PingPongPairs {
    /// Values of the registers.
    registers: Vec<u64>,
    /// Round-trip times, in ps.
    trips: Histogram<u64>,
}

impl PingPongPairs {
    /// State of pairs with `registers` registers together, which are all zero.
    pub fn new(registers: usize) -> PingPongPairs {
        let trips = Histogram::new_with_bounds(1, 1 << 44, 3).expect("valid bounds");
        PingPongPairs { registers: vec![0; registers], trips }
    }
}

impl Role for PingPongPairs {
    fn restart_meters(&mut self, _: &mut super::Bus) {
        self.trips.reset();
    }

    fn counts_requests(&self, _: bool) -> bool {
        true
    }
}

impl PingPongPairs {
    /// Sets the metrics of all tenants' pairs in the window that ends now.
    pub fn report(all: &[(&PingPongPairs, RoleView)], v: &mut Values) {
        let mut trips = match all {
            [] => return,
            [(first, _), ..] => Cow::Borrowed(&first.trips),
        };
        all[1..].iter().for_each(|(pairs, _)| trips.to_mut().add(&pairs.trips).expect("the same bounds"));
        let done: u64 = all.iter().map(|(_, view)| view.tally.operations).sum();
        let own = |view: &RoleView| view.own_threads().map(|(c, _)| view.machine.core_of(c)).collect::<Vec<_>>();
        let mut cores: Vec<CoreId> = all.iter().flat_map(|(_, view)| own(view)).collect();
        cores.sort_unstable();
        cores.dedup();
        let requests = &all[0].1.machine.mem.stats.remote;
        let remote: u64 = cores.into_iter().map(|c| requests[c].reads + requests[c].rfos).sum();
        if done > 0 {
            v.set(metric::PINGPONG_NS, trips.value_at_quantile(0.5).to_f64() / 1e3);
            v.set(metric::REMOTE_REQUESTS, remote.to_f64() / done.to_f64());
        }
    }
}

/// One of two threads, which increments its own register when the other thread's register has the awaited value.
#[derive(Clone)]
pub struct PingPongThread {
    /// Whether this thread begins, and measures the round-trip times.
    leads: bool,
    /// Line and number of the thread's own register.
    own: (LineAddr, usize),
    /// Line and number of the other thread's register.
    other: (LineAddr, usize),
    value: u64,
    since: Time,
    polled: bool,
    stored: bool,
}

impl PingPongThread {
    /// A thread that stores to register `own` and polls register `other`, each given by line and number; `leads` makes
    /// the thread begin.
    pub fn new(leads: bool, own: (LineAddr, usize), other: (LineAddr, usize)) -> PingPongThread {
        PingPongThread { leads, own, other, value: 0, since: Time::ZERO, polled: false, stored: false }
    }

    fn increment(&mut self, c: &mut Ctx) {
        self.value += 1;
        self.stored = true;
        self.since = c.step.now;
        c.program.compute(POLL);
        c.program.push(Op::Release { line: self.own.0, tag: 0 });
    }

    fn poll(&mut self, c: &mut Ctx) -> Step {
        self.polled = true;
        c.program.compute(POLL);
        c.program.push(Op::Anchor { line: self.other.0 });
        c.program.push(Op::Await);
        Step::Run
    }
}

impl Software for PingPongThread {
    fn step(&mut self, c: &mut Ctx) -> Step {
        c.program.ops.clear();
        if c.step.stopped {
            return Step::Idle;
        }
        if self.leads && self.value == 0 {
            self.increment(c);
            return self.poll(c);
        }
        if std::mem::take(&mut self.polled) {
            let awaited = self.value + u64::from(!self.leads);
            let Some(pairs) = c.roles.get_mut::<PingPongPairs>() else { return Step::Idle };
            if pairs.registers[self.other.1] < awaited {
                return Step::Wait { on: Awaited::Line(self.other.0), instructions: POLL };
            }
            if self.leads {
                c.tally.operations += 1;
                c.tally.completed += 1;
                c.tally.completed_ever += 1;
                let trip = c.step.now.saturating_sub(self.since);
                pairs.trips.saturating_record(trip.0.max(1));
            }
            self.increment(c);
        }
        self.poll(c)
    }

    fn retired(&mut self, _: u32, c: &mut Ctx) {
        if let Some(pairs) = c.roles.get_mut::<PingPongPairs>() {
            pairs.registers[self.own.1] = self.value;
        }
    }
}
