//! Side effects that wait until everything before them has retired.

use super::{Cpu, Rec};
use crate::kernel::{Event, Events, Time};

/// A side effect that is due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Retired {
    Maintain { line: u64, lines: u32, op: u8 },
    Tag(u32),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    seq: u64,
    at: Time,
    stores: bool,
    what: Retired,
}

impl Cpu {
    pub(super) fn defer(&mut self, cal: &mut Events, instructions: u32, stores: bool, what: Retired) {
        self.dispatch(instructions);
        let at = self.now();
        self.retire.push_back(Pending { seq: self.seq, at, stores, what });
        if self.retire.len() == 1 {
            self.schedule_retirement(cal, at);
        }
    }

    /// When the oldest side effect may happen: None while an earlier access is open.
    fn retirement(&mut self) -> Option<Time> {
        let p = self.retire.front()?;
        if let Some((r, generation)) = self.retire_after {
            let open = (self.live & !self.finished) >> r & 1 == 1;
            if open && self.recs[r].generation == generation {
                return None;
            }
        }
        let before = |r: &Rec| r.seq < p.seq && (r.load || p.stores);
        let first = self.first_open(before);
        self.retire_after = first.map(|r| (r, self.recs[r].generation));
        if first.is_some() {
            return None;
        }
        Some(p.at.max(self.latest(before)))
    }

    pub(super) fn schedule_retirement(&mut self, cal: &mut Events, now: Time) {
        if let Some(at) = self.retirement() {
            let at = at.max(now);
            if at < self.retire_event {
                self.retire_event = at;
                cal.push(at, Event::Retire(self.id));
            }
        }
    }

    /// `Event::Retire`: takes the next side effect that is due at `now`, if any. Call until None.
    pub fn retired(&mut self, cal: &mut Events, now: Time) -> Option<Retired> {
        if self.retire_event <= now {
            self.retire_event = Time::MAX;
        }
        match self.retirement() {
            Some(at) if at <= now => {
                self.retire_after = None;
                self.retire.pop_front().map(|p| p.what)
            }
            Some(_) => {
                self.schedule_retirement(cal, now);
                None
            }
            None => None,
        }
    }
}
