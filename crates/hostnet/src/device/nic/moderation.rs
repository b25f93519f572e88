//! When a queue of a NIC interrupts: not with every completion, and not while software polls.

use crate::kernel::Time;

/// The moderation of one queue's interrupts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moderation {
    /// From the first completion to the interrupt, and completions that raise it at once.
    delay: Time,
    frames: u32,
    /// Software polls, and wants none.
    masked: bool,
    /// Completions since the last time that it stopped polling, and when their interrupt is due.
    count: u32,
    due: Option<Time>,
}

impl Moderation {
    pub fn new(delay: Time, frames: u32) -> Moderation {
        Moderation { delay, frames, ..Moderation::default() }
    }

    /// A completion is in memory. Returns when the interrupt is due if this is what asks for one.
    pub fn completed(&mut self, now: Time) -> Option<Time> {
        if self.masked {
            return None;
        }
        self.count += 1;
        if self.count > 1 && self.count != self.frames {
            return None;
        }
        let due = if self.count >= self.frames { now } else { now + self.delay };
        self.due = Some(self.due.map_or(due, |t| t.min(due)));
        self.due
    }

    /// When the interrupt is due that has been asked for.
    pub fn due(&self) -> Option<Time> {
        self.due
    }

    /// Software begins to poll.
    pub fn mask(&mut self) {
        self.masked = true;
    }

    /// It has found everything, and stops.
    pub fn unmask(&mut self) {
        *self = Moderation::new(self.delay, self.frames);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four completions, or 10 us after the first; while software polls, none.
    #[test]
    fn the_first_completion_starts_the_delay_and_many_end_it() {
        let at = Time::us;
        let mut m = Moderation::new(at(10), 4);
        let asked: Vec<_> = [1, 2, 3, 4, 5].iter().map(|t| m.completed(at(*t))).collect();
        assert_eq!(asked, [Some(at(11)), None, None, Some(at(4)), None]);
        assert_eq!(m.due(), Some(at(4)));
        m.mask();
        assert_eq!(m.completed(at(6)), None);
        m.unmask();
        assert_eq!((m.due(), m.completed(at(20)), m.completed(at(21))), (None, Some(at(30)), None));
    }

    #[test]
    fn a_threshold_of_one_interrupts_at_once() {
        let mut m = Moderation::new(Time::us(10), 1);
        assert_eq!(m.completed(Time::us(3)), Some(Time::us(3)));
        assert_eq!(m.completed(Time::us(4)), None, "it has been asked for");
    }
}
