//! Periodic work of a host: its timers.

use crate::kernel::Int;
use crate::machine::Event;

/// A timer of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Timer {
    /// The control loop of a policy is due.
    Epoch,
    /// A sample of the trace is due.
    Sample,
    /// A bin of the timeline ends.
    Bin,
    /// An epoch of the user's own control plane ends.
    Control,
    /// Roles of tenants have work to do.
    Role,
}

impl Timer {
    const ALL: [Timer; 5] = [Timer::Epoch, Timer::Sample, Timer::Bin, Timer::Control, Timer::Role];

    /// The timer with this number on the machine of a host.
    ///
    /// # Panics
    /// When a host has no such timer.
    pub(super) fn numbered(n: u32) -> Timer {
        Timer::ALL[n.to_usize()]
    }
}

impl From<Timer> for Event {
    fn from(t: Timer) -> Event {
        Event::Timer(t as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_comes_back_by_its_number() {
        for t in Timer::ALL {
            assert_eq!(Event::from(t), Event::Timer(t as u32));
            assert_eq!(Timer::numbered(t as u32), t);
        }
    }
}
