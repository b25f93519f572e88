//! Interrupt moderation: a queue of a NIC does not interrupt with every completion, nor while software polls, nor too
//! soon after its last interrupt.

use crate::kernel::Time;

/// Interrupt moderation of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moderation {
    /// Time from the first completion to the interrupt, and number of completions that raise the interrupt without
    /// delay.
    delay: Time,
    frames: u32,
    /// Minimum time between two interrupts; zero means no limit.
    interval: Time,
    /// Time at which the last interrupt was due.
    last: Option<Time>,
    /// Whether interrupts are masked because software polls.
    masked: bool,
    /// Completions since software last began or stopped polling, and the time at which their interrupt is due.
    count: u32,
    due: Option<Time>,
}

impl Moderation {
    pub fn new(delay: Time, frames: u32) -> Moderation {
        Moderation { delay, frames, ..Moderation::default() }
    }

    /// Sets the minimum time between two interrupts.
    pub fn throttle(&mut self, interval: Time) {
        self.interval = interval;
    }

    /// Counts a completion that is in memory. Returns the time at which the interrupt is due if this completion
    /// requests it.
    pub fn completed(&mut self, now: Time) -> Option<Time> {
        self.count += 1;
        if self.masked || self.count > 1 && self.count != self.frames {
            return None;
        }
        let due = if self.count >= self.frames { now } else { now + self.delay };
        let last = self.last.filter(|_| self.interval > Time::ZERO);
        let due = last.map_or(due, |last| due.max(last + self.interval));
        self.due = Some(self.due.map_or(due, |t| t.min(due)));
        self.due
    }

    /// Time at which the requested interrupt is due, if there is one.
    pub fn due(&self) -> Option<Time> {
        self.due
    }

    /// Masks interrupts, because software begins to poll.
    pub fn mask(&mut self) {
        self.masked = true;
        self.count = 0;
        self.last = self.due.or(self.last);
    }

    /// Unmasks interrupts, because software has found every completion. For completions that arrived while software
    /// polled, a NIC that throttles its interrupts raises an interrupt one whole interval later (gem5,
    /// dev/net/i8254xGBe.cc, chkInterrupt).
    pub fn unmask(&mut self, now: Time) {
        let again = self.interval > Time::ZERO && self.count > 0;
        self.masked = false;
        self.count = again.into();
        self.due = again.then_some(now + self.interval);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four completions interrupt, or 10 us after the first one; completions while software polls do not.
    #[test]
    fn the_first_completion_starts_the_delay_and_many_end_it() {
        let at = Time::us;
        let mut m = Moderation::new(at(10), 4);
        let asked: Vec<_> = [1, 2, 3, 4, 5].iter().map(|t| m.completed(at(*t))).collect();
        assert_eq!(asked, [Some(at(11)), None, None, Some(at(4)), None]);
        assert_eq!(m.due(), Some(at(4)));
        m.mask();
        assert_eq!(m.completed(at(6)), None);
        m.unmask(at(7));
        assert_eq!((m.due(), m.completed(at(20)), m.completed(at(21))), (None, Some(at(30)), None));
    }

    #[test]
    fn a_threshold_of_one_interrupts_at_once() {
        let mut m = Moderation::new(Time::us(10), 1);
        assert_eq!(m.completed(Time::us(3)), Some(Time::us(3)));
        assert_eq!(m.completed(Time::us(4)), None, "it has been asked for");
    }

    /// i8254xGBe.cc: postInterrupt waits until the interval since lastInterrupt is over.
    #[test]
    fn a_throttled_queue_waits_for_the_interval_since_its_last_interrupt() {
        let at = Time::us;
        let mut m = Moderation::new(at(8), 1000);
        m.throttle(at(50));
        assert_eq!(m.completed(at(100)), Some(at(108)), "the first has none before it");
        m.mask();
        m.unmask(at(120));
        assert_eq!((m.due(), m.completed(at(130))), (None, Some(at(158))));
        m.mask();
        m.unmask(at(170));
        assert_eq!(m.completed(at(300)), Some(at(308)), "the interval is over");
    }

    /// i8254xGBe.cc: a cause that is pending when software unmasks the interrupts causes an interrupt one interval
    /// later.
    #[test]
    fn what_is_completed_while_software_polls_interrupts_an_interval_after_that() {
        let at = Time::us;
        let mut m = Moderation::new(at(8), 1000);
        m.throttle(at(50));
        m.completed(at(100));
        m.mask();
        assert_eq!(m.completed(at(110)), None);
        m.unmask(at(120));
        assert_eq!((m.due(), m.completed(at(125))), (Some(at(170)), None));
    }
}
