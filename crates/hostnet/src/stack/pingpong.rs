//! Two threads that exchange a counter through two registers in coherent memory (CC-NIC, section 3.2).

use super::{Awaited, Ctx, Software, Step};
use crate::core::Op;
use crate::kernel::{LineAddr, Time};

/// Instructions of a poll, and of an increment.
const POLL: u32 = 4;

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
        self.since = c.now;
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
        if c.stopped {
            return Step::Idle;
        }
        if self.leads && self.value == 0 {
            self.increment(c);
            return self.poll(c);
        }
        if std::mem::take(&mut self.polled) {
            let awaited = self.value + u64::from(!self.leads);
            if c.registers[self.other.1] < awaited {
                return Step::Wait { on: Awaited::Line(self.other.0), instructions: POLL };
            }
            if self.leads {
                c.tally.operations += 1;
                c.tally.completed += 1;
                c.tally.completed_ever += 1;
                let trip = c.now.saturating_sub(self.since);
                c.trips.saturating_record(trip.0.max(1));
            }
            self.increment(c);
        }
        self.poll(c)
    }

    fn retired(&mut self, _: u32, c: &mut Ctx) {
        c.registers[self.own.1] = self.value;
    }
}
