//! Issue slots of a core: the duration of instructions when a thread runs alone and beside a sibling thread.
//!
//! Two threads share the slots of each cycle. A thread gets the slots that its sibling leaves, and at least half of
//! them:
//!
//! ```text
//!   other thread's share of the slots   0      0.3     0.5 and more
//!   slots left                          all    0.7     half
//! ```

use super::{Cpu, FRAC};
use crate::core::spec::CoreSpec;
use crate::kernel::{Clock, Int, Real, Time};

/// Time over which a thread's share of the slots is averaged; assumed, and a few packets long.
const WINDOW: Time = Time(1_000_000);

/// Duration of an instruction, in 1/16 ps, and the share of its core's slots that this thread takes.
#[derive(Clone, Debug)]
pub(super) struct SmtSlots {
    /// Duration of an instruction when the thread runs alone: of an instruction that accesses lines, and of other code.
    alone: (u64, u64),
    /// Present duration of an instruction that accesses lines.
    pub access: u64,
    pub compute: u64,
    /// Start of the present averaging window, and number of instructions before it.
    since: Time,
    before: u64,
    share: f64,
}

impl SmtSlots {
    pub fn new(clock: Clock, s: &CoreSpec) -> SmtSlots {
        let access =
            (u128::from(clock.span(1_000_000).0) * u128::from(FRAC) / 1_000_000 / u128::from(s.width)).to_u64();
        let compute = (clock.span(1_000_000).0.to_f64() * FRAC.to_f64() / 1e6 / s.compute_ipc).whole();
        SmtSlots { alone: (access, compute), access, compute, since: Time::ZERO, before: 0, share: 0.0 }
    }

    /// Restarts the averaging window at `now`, because the count of instructions restarts.
    pub fn restart(&mut self, now: Time) {
        (self.since, self.before) = (now, 0);
    }

    /// Earliest time at which the present averaging window can end.
    pub fn window_ends(&self) -> Time {
        self.since + WINDOW
    }

    /// Ends the averaging window at `now` if it has lasted long enough; the thread has executed `instructions` so far.
    pub fn average(&mut self, instructions: u64, now: Time) {
        let span = now - self.since;
        if span >= WINDOW {
            let taken = (instructions - self.before) * self.alone.0;
            self.share = (taken.to_f64() / (span.0 * FRAC).to_f64()).min(1.0);
            (self.since, self.before) = (now, instructions);
        }
    }

    /// Whether the share of the last window is that of a thread which only repeats `programs` of `instructions` together
    /// that take `time`, in 1/16 ps. A window begins and ends with a program, so that it may cut a round of several ones.
    pub fn is_settled(&self, instructions: u64, time: u64, programs: usize) -> bool {
        let share = ((instructions * self.alone.0).to_f64() / time.to_f64()).min(1.0);
        let cut = if programs > 1 { time.to_f64() / (WINDOW.0 * FRAC).to_f64() } else { 0.0 };
        (self.share - share).abs() <= share * (cut + 1e-5)
    }

    /// Sets the durations for a sibling thread that takes `share` of the slots.
    fn set_sibling_share(&mut self, share: f64) {
        let left = (1.0 - share).max(0.5);
        self.access = (self.alone.0.to_f64() / left).whole();
        self.compute = self.alone.1.max(self.access);
    }
}

impl Cpu {
    /// Share of its core's slots that this thread took in the last averaging window.
    pub fn slots_taken(&self) -> f64 {
        self.smt_slots.share
    }

    /// Sets the durations for a program that begins at `now` beside a thread that takes `share` of the slots.
    pub fn share_slots(&mut self, share: f64, now: Time) {
        self.smt_slots.average(self.instructions, now);
        self.smt_slots.set_sibling_share(share);
    }

    /// Duration of `n` instructions that touch no memory beyond the L1.
    pub fn compute_time(&self, n: u64) -> Time {
        Time(n * self.smt_slots.compute / FRAC)
    }

    /// Time of the first poll at `now` or later, and the number of earlier polls, for a thread that has polled without
    /// success since `since` with `n` instructions per poll.
    pub fn next_poll(&self, since: Time, now: Time, n: u32) -> (Time, u64) {
        let period = u64::from(n) * self.smt_slots.compute;
        if period == 0 {
            return (now, 0);
        }
        let polls = ((now - since).0 * FRAC).div_ceil(period);
        (since + Time((polls * period).div_ceil(FRAC)), polls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::units::Freq;

    fn spec() -> CoreSpec {
        serde_json::from_value(serde_json::json!({
            "count": 1, "clock": "2 GHz", "width": 4, "compute_ipc": 2.5, "rob": 224, "store_queue": 56, "lfb": 12,
            "stores_per_line": 1
        }))
        .expect("a core")
    }

    /// At 2 GHz and a width of 4 an instruction of a line access takes 125 ps; at 2.5 instructions a cycle other code
    /// takes 200 ps. With 0.7 of the slots left they take 178 ps and 200 ps; with half or less left, both take 250 ps.
    #[test]
    fn a_thread_gets_the_slots_that_the_other_one_leaves_and_half_at_least() {
        let mut s = SmtSlots::new(Clock::from_hz(Freq(2_000_000_000).0), &spec());
        let mut of = |share| {
            s.set_sibling_share(share);
            (s.access / FRAC, s.compute / FRAC)
        };
        assert_eq!(of(0.0), (125, 200));
        assert_eq!(of(0.3), (178, 200));
        assert_eq!(of(0.5), (250, 250));
        assert_eq!(of(0.9), (250, 250));
    }

    /// 4,000 instructions of 125 ps fill half of 1 us.
    #[test]
    fn a_share_is_the_slots_of_the_instructions_over_the_time() {
        let mut s = SmtSlots::new(Clock::from_hz(Freq(2_000_000_000).0), &spec());
        s.average(4000, Time(1_000_000));
        assert!((s.share - 0.5).abs() < 1e-9, "{}", s.share);
        s.average(4400, Time(1_500_000));
        assert!((s.share - 0.5).abs() < 1e-9, "half a window changes nothing: {}", s.share);
    }
}
