//! Hits that wait for the calendar. A core runs ahead of it, and another agent's write of a line that the core has in its
//! caches may come before the access: such an access is looked up when the calendar has come to its time. Prefetches wait for
//! it likewise, as they would take places from what comes before.

use super::{Cpu, State, Wait};
use crate::core::{Event, Posts};
use crate::kernel::{LineAddr, ThreadId, Time};
use crate::memory::Memory;

/// Accesses that are looked up at their time.
#[derive(Clone, Debug)]
pub(super) struct Due {
    /// What the home agent does later than now reaches no private cache before this.
    horizon: Time,
    /// Records and when they are due.
    records: Vec<(Time, u8)>,
    /// The earliest event that has been posted and has not come.
    event: Time,
}

impl Default for Due {
    fn default() -> Due {
        Due { horizon: Time::ZERO, records: Vec::new(), event: Time::MAX }
    }
}

impl Due {
    /// The calendar is at `now`.
    #[inline]
    pub fn at(&mut self, mem: &Memory, now: Time) {
        self.horizon = now + mem.lat.noc;
    }

    fn post(&mut self, cal: &mut impl Posts, thread: ThreadId, at: Time) {
        if at < self.event {
            self.event = at;
            cal.post(at, Event::Due(thread));
        }
    }

    /// The oldest access whose time has come.
    fn next(&mut self) -> Option<(Time, u8)> {
        let (i, &(at, _)) = self.records.iter().enumerate().min_by_key(|(_, d)| d.0)?;
        (at <= self.horizon).then(|| self.records.remove(i))
    }
}

impl Cpu {
    /// Whether an access at `ready` would hit, and must wait for the calendar.
    #[inline]
    pub(super) fn is_ahead(&self, mem: &Memory, line: LineAddr, write: bool, ready: Time) -> bool {
        ready > self.due.horizon && mem.hit_may_change(self.core, line, write)
    }

    /// Record `r`, whose address is known at `ready`, is looked up then.
    #[inline(never)]
    pub(super) fn look_up_later(&mut self, cal: &mut impl Posts, r: u8, ready: Time) {
        self.recs[r].state = State::Address;
        self.recs[r].delay = 0;
        self.due.records.push((ready, r));
        self.due.post(cal, self.id, ready);
    }

    /// Prefetches of `lines` at `at` wait for places among the L2's misses, or for the calendar first.
    pub(super) fn wait_ahead(
        &mut self,
        mem: &mut Memory,
        cal: &mut impl Posts,
        lines: impl Iterator<Item = LineAddr>,
        at: Time,
    ) {
        let (core, late) = (self.core, at > self.due.horizon);
        let Some(p) = &mut self.prefetcher else { return };
        for l in lines {
            if !late {
                p.waiting.push(l, at);
            } else if mem.worth_prefetching(core, l, p.network) {
                p.waiting.defer(l, at);
            }
        }
        if late {
            self.post_prefetches(cal);
        } else {
            self.send_waiting(mem, cal, at);
        }
    }

    fn post_prefetches(&mut self, cal: &mut impl Posts) {
        if let Some(at) = self.prefetcher.as_ref().and_then(|p| p.waiting.next()) {
            self.due.post(cal, self.id, at);
        }
    }

    /// `Event::Due`: looks up what is due at `now`. Returns the program's end as `start` does.
    pub fn on_due(&mut self, mem: &mut Memory, cal: &mut impl Posts, now: Time) -> Option<Time> {
        self.due.at(mem, now);
        if self.due.event <= now {
            self.due.event = Time::MAX;
        }
        if let Some(p) = &mut self.prefetcher {
            p.waiting.ripen(self.due.horizon);
            self.send_waiting(mem, cal, now);
            self.post_prefetches(cal);
        }
        while let Some((ready, r)) = self.due.next() {
            match self.same_line(self.recs[r].line) {
                // The line has been taken away, and is on its way again.
                Some(first) => self.recs[first].children |= 1 << r,
                None => self.reach(mem, cal, r, ready),
            }
        }
        if let Some(at) = self.due.records.iter().map(|d| d.0).min() {
            self.due.post(cal, self.id, at);
        }
        if self.in_order {
            let at = self.latest(|r| r.load);
            self.not_before(at);
        }
        if self.effects_wait() {
            self.schedule_retirement(cal, now);
        }
        let known = self.wait == Wait::AnyRecord && self.finished != 0;
        if self.running && (known || self.may_go_on()) {
            return self.go_on(mem, cal, now);
        }
        None
    }
}
