//! Background traffic of a system that is otherwise idle: daemons, timers, the other sockets. Only the memory reads of
//! this traffic are simulated, which take entries of the read queues and close rows.

use super::timer::Timer;
use crate::config::Scenario;
use crate::kernel::{Int, LineAddr, Post, RandomStream, Real, Time};
use crate::memory::{Txn, LINE};
use crate::stack::{Bus, Role};

#[derive(Clone)]
pub struct Background {
    /// Mean time between two reads, in picoseconds.
    mean: f64,
    lines: u64,
    rng: RandomStream,
    /// Time of the next read.
    due: Time,
}

impl Background {
    /// Background reads of any of the first `lines` lines, at random times; None when the platform has no such reads, or no
    /// memory is in use.
    pub fn new(s: &Scenario, lines: u64) -> Option<Background> {
        let gbs = s.platform.background_read_gbs;
        let mean = LINE.to_f64() / gbs * 1e3;
        let rng = RandomStream::new(s.seed, "background", 0);
        (gbs > 0.0 && lines > 0).then_some(Background { mean, lines, rng, due: Time::ZERO })
    }
}

impl Role for Background {
    fn start(&mut self, bus: &mut Bus) {
        if !bus.stopped {
            self.due = bus.machine.now + Time(self.rng.exp(self.mean).whole());
            bus.machine.cal.post(self.due, Timer::Role);
        }
    }

    fn on_timer(&mut self, bus: &mut Bus) {
        let now = bus.machine.now;
        if now == self.due {
            let line = LineAddr(self.rng.below(self.lines));
            bus.machine.mem.send(&mut bus.machine.cal, now, Txn::background(line, now));
            self.start(bus);
        }
    }
}
