//! Time in which a thread sleeps or polls in vain.

use crate::kernel::Time;

/// Idle time of a thread in a measurement window.
#[derive(Clone)]
pub(super) struct IdleTime {
    /// Start of the present idle time.
    since: Option<Time>,
    /// Idle time before the present one.
    before: Time,
}

impl IdleTime {
    /// Idle time that begins with the run.
    pub(super) fn from_start() -> IdleTime {
        IdleTime { since: Some(Time::ZERO), before: Time::ZERO }
    }

    /// Begins an idle time at `at`, unless one goes on.
    pub(super) fn begin(&mut self, at: Time) {
        self.since.get_or_insert(at);
    }

    /// Ends the present idle time, if there is one.
    pub(super) fn end(&mut self, now: Time) {
        if let Some(since) = self.since.take() {
            self.before += now.saturating_sub(since);
        }
    }

    /// Starts a new measurement window.
    pub(super) fn restart(&mut self, now: Time) {
        self.before = Time::ZERO;
        self.since = self.since.map(|s| s.max(now));
    }

    /// Idle time of the window up to `now`.
    pub(super) fn total(&self, now: Time) -> Time {
        self.before + self.since.map_or(Time::ZERO, |s| now.saturating_sub(s))
    }
}
