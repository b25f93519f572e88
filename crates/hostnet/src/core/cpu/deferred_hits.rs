//! Deferred hits. A core runs ahead of the calendar, and another agent may write a line in the core's caches before the
//! time of the core's access. Such an access is therefore looked up only when the calendar has reached the time of the
//! access. Prefetches are deferred as well, because they would otherwise take resources from earlier accesses.

use super::{AccessState, Cpu, DispatchWait};
use crate::core::{CoreEvent, CorePosts};
use crate::kernel::{Due, LineAddr, ThreadId, Time};
use crate::memory::Memory;

/// Accesses and prefetches that the core defers until the calendar reaches their time.
#[derive(Clone, Debug)]
pub(super) struct DeferredHits {
    /// Earliest time at which a later action of the home agent can reach a private cache.
    horizon: Time,
    /// Deferred records, each with its time of access.
    records: Vec<(Time, u8)>,
    /// Time of the earliest posted event that has not occurred.
    event: Due,
}

impl Default for DeferredHits {
    fn default() -> DeferredHits {
        DeferredHits { horizon: Time::ZERO, records: Vec::new(), event: Due::NEVER }
    }
}

impl DeferredHits {
    /// Notes that the calendar has reached `now`.
    #[inline]
    pub fn at(&mut self, mem: &Memory, now: Time) {
        self.horizon = now + mem.lat.noc;
    }

    fn post(&mut self, cal: &mut impl CorePosts, thread: ThreadId, at: Time) {
        if Due::at(at) < self.event {
            self.event = Due::at(at);
            cal.post(at, CoreEvent::Due(thread));
        }
    }

    /// Takes the oldest deferred access whose time has come.
    fn next(&mut self) -> Option<(Time, u8)> {
        let (i, &(at, _)) = self.records.iter().enumerate().min_by_key(|(_, d)| d.0)?;
        (at <= self.horizon).then(|| self.records.remove(i))
    }
}

impl Cpu {
    /// Whether an access at `ready` would hit a line that another agent may still change before then, so that it must
    /// be deferred.
    #[inline]
    pub(super) fn must_defer(&self, mem: &Memory, line: LineAddr, write: bool, ready: Time) -> bool {
        ready > self.deferred.horizon && mem.hit_may_change(self.core, line, write)
    }

    /// Defers the look-up of record `r`, whose address is known at `ready`, until the calendar reaches `ready`.
    #[inline(never)]
    pub(super) fn defer_lookup(&mut self, cal: &mut impl CorePosts, r: u8, ready: Time) {
        self.records[r].state = AccessState::Address;
        self.records[r].delay = 0;
        self.deferred.records.push((ready, r));
        self.deferred.post(cal, self.id, ready);
    }

    /// Queues prefetches of `lines`, made at `at`, until an MSHR of the L2 is free; first defers the prefetches when
    /// `at` lies ahead of the calendar.
    pub(super) fn defer_prefetches(
        &mut self,
        mem: &mut Memory,
        cal: &mut impl CorePosts,
        lines: impl Iterator<Item = LineAddr>,
        at: Time,
    ) {
        let (core, late) = (self.core, at > self.deferred.horizon);
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

    fn post_prefetches(&mut self, cal: &mut impl CorePosts) {
        if let Some(at) = self.prefetcher.as_ref().and_then(|p| p.waiting.next()) {
            self.deferred.post(cal, self.id, at);
        }
    }

    /// Posts an event at `at`, at which the core may go on.
    pub(super) fn post_due(&mut self, cal: &mut impl CorePosts, at: Time) {
        self.deferred.post(cal, self.id, at);
    }

    /// Handles `CoreEvent::Due`: looks up the accesses that are due at `now`. Returns the program's end as `start` does.
    pub fn on_due(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, now: Time) -> Option<Time> {
        self.deferred.at(mem, now);
        if self.deferred.event.by(now).is_some() {
            self.deferred.event = Due::NEVER;
        }
        if let Some(p) = &mut self.prefetcher {
            p.waiting.ripen(self.deferred.horizon);
            self.send_waiting(mem, cal, now);
            self.post_prefetches(cal);
        }
        while let Some((ready, r)) = self.deferred.next() {
            match self.same_line(self.records[r].line) {
                // The line was invalidated in the meantime, and another access has requested the line again.
                Some(first) => self.records[first].children |= 1 << r,
                None => self.look_up_access(mem, cal, r, ready),
            }
        }
        if let Some(at) = self.deferred.records.iter().map(|d| d.0).min() {
            self.deferred.post(cal, self.id, at);
        }
        if self.in_order {
            let at = self.latest(|r| r.load);
            self.advance_to(at);
        }
        if self.effects_wait() {
            self.schedule_retirement(cal, now);
        }
        let known = self.wait == DispatchWait::AnyRecord && self.finished != 0;
        if self.running && (known || self.can_resume()) {
            return self.resume(mem, cal, now);
        }
        None
    }
}
