//! Stores that follow cache maintenance that discards data; as program order requires, such stores wait until the
//! maintenance is done.
//!
//! ```text
//!   sweep of a line --retires--> message --home agent--> gone everywhere
//!   store to it: waits .................................. goes on
//! ```

use super::{Cpu, DispatchWait};
use crate::core::{CoreEvent, CorePosts};
use crate::kernel::{LineAddr, Time};
use crate::memory::Memory;
use std::collections::VecDeque;

/// Lines of one sweep message, and the time of its arrival at the home agent; None until the message has left the core.
#[derive(Clone, Copy, Debug)]
struct SweepMessage {
    line: LineAddr,
    lines: u32,
    arrives: Option<Time>,
}

/// Sweep messages that have not arrived at the home agent, oldest first. Messages leave in order.
#[derive(Clone, Debug, Default)]
pub(super) struct PendingSweeps(VecDeque<SweepMessage>);

impl PendingSweeps {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn push(&mut self, line: LineAddr, lines: u32) {
        self.0.push_back(SweepMessage { line, lines, arrives: None });
    }

    /// Whether all messages arrived before `now`.
    pub fn all_arrived(&self, now: Time) -> bool {
        self.0.iter().all(|m| m.arrives.is_some_and(|at| at < now))
    }

    fn of(&self, line: LineAddr) -> Option<&SweepMessage> {
        self.0.iter().rev().find(|m| line.is_within(m.line, m.lines.into()))
    }

    /// Removes the messages that arrived before `now`.
    fn forget(&mut self, now: Time) {
        while self.0.front().is_some_and(|m| m.arrives.is_some_and(|at| at < now)) {
            self.0.pop_front();
        }
    }
}

impl Cpu {
    /// Whether a store to `line` may proceed because no sweep of the line is outstanding; otherwise sets `wait`.
    #[inline(never)]
    pub(super) fn is_behind_sweeps(&mut self, cal: &mut impl CorePosts, line: LineAddr) -> bool {
        let Some(&SweepMessage { arrives, .. }) = self.pending_sweeps.of(line) else { return true };
        self.wait = DispatchWait::Sweeps;
        if let Some(at) = arrives {
            self.schedule_sweep_check(cal, at.max(self.now()));
        }
        false
    }

    /// Whether sweeps of this thread are outstanding.
    #[inline]
    pub fn sweeps_wait(&self) -> bool {
        !self.pending_sweeps.is_empty()
    }

    /// Notes that the oldest message that is still in the core leaves now and arrives at `at`.
    pub fn on_sweep_sent(&mut self, cal: &mut impl CorePosts, at: Time) {
        if let Some(m) = self.pending_sweeps.0.iter_mut().find(|m| m.arrives.is_none()) {
            m.arrives = Some(at);
        }
        if self.wait == DispatchWait::Sweeps {
            self.schedule_sweep_check(cal, at);
        }
    }

    fn schedule_sweep_check(&self, cal: &mut impl CorePosts, at: Time) {
        cal.post(at + Time(1), CoreEvent::Retire(self.id));
    }

    /// Resumes a program after messages have arrived before `now`. Returns the program's end as `start` does.
    pub fn on_swept(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, now: Time) -> Option<Time> {
        self.pending_sweeps.forget(now);
        if self.running && self.wait == DispatchWait::Sweeps {
            return self.resume(mem, cal, now);
        }
        None
    }
}
