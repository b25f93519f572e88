//! Records of outstanding accesses: which records are open, when completed ones end, and whether the records, the
//! reorder buffer and the store queue have room for another access.

use super::{AccessRecord, AccessState, Cpu, DispatchWait, EarliestUser, RECS};
use crate::kernel::{Int, LineAddr, Time};

/// Place of a line in `by_line`.
#[inline(always)]
fn bucket(line: LineAddr) -> usize {
    line.0.to_usize() % RECS
}

impl Cpu {
    #[inline]
    pub(super) fn any_open(&self, f: impl Fn(&AccessRecord) -> bool) -> bool {
        self.first_open(f).is_some()
    }

    #[inline]
    pub(super) fn first_open(&self, f: impl Fn(&AccessRecord) -> bool) -> Option<u8> {
        let mut open = self.live & !self.finished;
        while open != 0 {
            let r = open.trailing_zeros().to_u8();
            if f(&self.records[r]) {
                return Some(r);
            }
            open &= open - 1;
        }
        None
    }

    /// Latest completion time of the finished records that `f` selects.
    pub(super) fn latest(&self, f: impl Fn(&AccessRecord) -> bool) -> Time {
        let mut done = self.finished;
        let mut at = Time::ZERO;
        while done != 0 {
            let r = &self.records[done.trailing_zeros().to_u8()];
            if f(r) {
                at = at.max(r.done);
            }
            done &= done - 1;
        }
        at
    }

    pub(super) fn release_finished(&mut self, now: Time) {
        let mut done = self.finished;
        while done != 0 {
            let r = done.trailing_zeros().to_u8();
            done &= done - 1;
            let rec = &mut self.records[r];
            if rec.done <= now {
                rec.state = AccessState::Free;
                rec.generation += 1;
                self.live &= !(1 << r);
                self.finished &= !(1 << r);
                self.by_line[bucket(rec.line)] &= !(1 << r);
            }
        }
    }

    /// Advances to the earliest completion whose time is known, and frees that record; no event announces such a
    /// completion.
    #[cold]
    pub(super) fn wait_for_record(&mut self) -> Option<()> {
        let known = (0..RECS.to_u8()).filter(|r| self.finished >> r & 1 == 1);
        let at = known.map(|r| self.records[r].done).min()?;
        self.advance_to(at);
        self.release_finished(at);
        Some(())
    }

    pub(super) fn new_rec(&mut self, line: LineAddr, write: bool, load: bool, ready: Time) -> Option<u8> {
        if self.live == u64::MAX {
            self.wait_for_record()?;
        }
        let r = (!self.live).trailing_zeros().to_u8();
        let site = self.site();
        self.live |= 1 << r;
        self.by_line[bucket(line)] |= 1 << r;
        let rec = &mut self.records[r];
        rec.line = line;
        rec.serves = EarliestUser::of(self.seq);
        rec.write = write;
        rec.load = load;
        rec.owns = false;
        rec.site = site;
        rec.delay = 0;
        rec.ready = ready;
        Some(r)
    }

    /// Finds an outstanding access to `line` whose address is known.
    pub(super) fn same_line(&self, line: LineAddr) -> Option<u8> {
        let mut open = self.by_line[bucket(line)] & !self.finished;
        while open != 0 {
            let r = open.trailing_zeros().to_u8();
            open &= open - 1;
            let rec = &self.records[r];
            if rec.line == line && matches!(rec.state, AccessState::Issued | AccessState::Credit) {
                return Some(r);
            }
        }
        None
    }

    /// Checks that the ROB has room for the next instruction; sets `wait` when there is no room.
    #[inline]
    pub(super) fn rob_room(&mut self) -> bool {
        self.seq < self.rob_until || self.retires_from_rob()
    }

    /// Removes completed entries from the head of the ROB and checks that the ROB has room; sets `wait` when there is
    /// no room.
    #[inline(never)]
    fn retires_from_rob(&mut self) -> bool {
        while let Some(e) = self.rob.front() {
            let rec = &self.records[e.rec];
            if rec.generation != e.generation {
                self.walk_retires(e.rec, e.generation);
                self.rob.pop_front();
            } else if self.seq < e.seq + self.rob_size {
                self.rob_until = e.seq + self.rob_size;
                return true;
            } else if rec.state == AccessState::Done {
                let (done, rec, generation) = (rec.done, e.rec, e.generation);
                self.advance_to(done);
                self.walk_retires(rec, generation);
                self.rob.pop_front();
            } else {
                self.wait = DispatchWait::Record(e.rec);
                return false;
            }
        }
        self.rob_until = self.seq + self.rob_size; // no entry of an earlier instruction can follow
        true
    }

    /// Checks that the store queue has room for the stores to one line; sets `wait` when there is no room.
    #[inline]
    pub(super) fn sq_room(&mut self) -> bool {
        loop {
            let Some(e) = self.sq.front().copied() else { return true };
            let rec = &self.records[e.rec];
            let gone = rec.generation != e.generation;
            if !gone && self.sq_used + self.per_line <= self.sq_size && rec.state != AccessState::Done {
                return true;
            }
            if !gone && rec.state != AccessState::Done {
                self.wait = DispatchWait::Record(e.rec);
                return false;
            }
            if !gone && self.sq_used + self.per_line > self.sq_size {
                let done = rec.done;
                self.advance_to(done);
            }
            self.sq_used -= u32::from(e.slots);
            self.sq.pop_front();
        }
    }
}
