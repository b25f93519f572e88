//! Background traffic of a system that is otherwise idle: daemons, timers, the other sockets. Only the memory reads of
//! this traffic are simulated, which take entries of the read queues and close rows.

use super::timer::Timer;
use super::Host;
use crate::config::Scenario;
use crate::kernel::{Int, LineAddr, Post, RandomStream, Real, Time};
use crate::memory::{Txn, LINE};

#[derive(Clone)]
pub struct Background {
    /// Mean time between two reads, in picoseconds.
    mean: f64,
    lines: u64,
    rng: RandomStream,
}

impl Background {
    /// Background reads of any of the first `lines` lines, at random times; None when the platform has no such reads, or no
    /// memory is in use.
    pub fn new(s: &Scenario, lines: u64) -> Option<Background> {
        let gbs = s.platform.background_read_gbs;
        let mean = LINE.to_f64() / gbs * 1e3;
        (gbs > 0.0 && lines > 0).then(|| Background { mean, lines, rng: RandomStream::new(s.seed, "background", 0) })
    }
}

impl Host {
    pub(super) fn next_background(&mut self) {
        if let Some(b) = self.background.as_mut().filter(|_| !self.stopped) {
            self.machine.cal.post(self.machine.now + Time(b.rng.exp(b.mean).whole()), Timer::Background);
        }
    }

    pub(super) fn on_background(&mut self) {
        if let Some(b) = &mut self.background {
            let line = LineAddr(b.rng.below(b.lines));
            let now = self.machine.now;
            self.machine.mem.send(&mut self.machine.cal, now, Txn::background(line, now));
        }
        self.next_background();
    }
}
