//! Scheduling by column commands alone, as zsim has it: the oldest request, first of its bank, whose column command
//! is possible goes next. Its precharge and activate count from the time at which it came, in whatever mode the
//! channel was since, and use no command bus.

use super::banks::bits;
use super::channel::{Channel, NEVER, NONE, NO_ROW, READ, WRITE};
use super::timing::SAME_RANK;
use super::transaction::Turn;
use super::{Completion, RowOutcome};

/// The last column command, and the earliest time of the next.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastColumn {
    at: u64,
    free_at: u64,
    was_write: bool,
}

impl Channel {
    /// As `advance`, for this scheduler.
    #[inline(never)]
    pub(super) fn advance_columns(&mut self, now: u64, done: &mut Vec<Completion>) {
        loop {
            let (at, b, i) = self.choose_column();
            match self.turn(at, now) {
                Turn::Rest => return,
                Turn::Refresh(due) => self.refresh_due_ranks(due),
                Turn::Go => {
                    self.clock = self.clock.max(at);
                    self.open_and_serve(b, i, at, done);
                }
            }
        }
    }

    /// Writes go while no read waits or more than the high mark of them do, and after a write down to the low mark.
    fn columns_of_writes(&self) -> bool {
        let [reads, writes] = self.queued;
        reads == 0 || writes > self.p.high || (self.last.was_write && writes >= self.p.low)
    }

    /// When the column command of slot `i`, first of bank `b`, is possible, and its activate if it needs one.
    fn column_of(&self, b: usize, i: u16) -> (u64, Option<u64>) {
        let s = &self.slots[i as usize];
        let lane = &self.scan.lanes[b];
        let row = self.banks[b].row;
        if row == s.row {
            return (lane.col_at.max(s.arrive), None);
        }
        let mut at = self.activate_at(b).max(s.arrive);
        if row != NO_ROW {
            at = at.max(lane.pre_at.max(s.arrive) + self.t.rp);
        }
        (at + self.t.rcd, Some(at))
    }

    fn choose_column(&self) -> (u64, usize, u16) {
        let dir = if self.columns_of_writes() { WRITE } else { READ };
        let floor = self.last.free_at.max(self.clock);
        let mut best = (NEVER, u32::MAX, 0, NONE);
        for b in bits(self.hits[dir] | self.misses[dir]) {
            let q = &self.banks[b].q[dir];
            let i = if q.hit == NONE { q.miss } else { q.hit };
            let (at, _) = self.column_of(b, i);
            best = best.min((at.max(floor), self.slots[i as usize].age, b, i));
        }
        (best.0, best.2, best.3)
    }

    fn open_and_serve(&mut self, b: usize, i: u16, now: u64, done: &mut Vec<Completion>) {
        let s = self.slots[i as usize];
        let dir = s.dir as usize;
        let (ready, activate) = self.column_of(b, i);
        self.unlink(b, i);
        if let Some(at) = activate {
            let conflict = self.banks[b].row != NO_ROW;
            self.slots[i as usize].outcome = Some(if conflict { RowOutcome::Conflict } else { RowOutcome::Miss });
            if conflict {
                self.stats.precharges += 1;
                self.close(b, self.scan.lanes[b].pre_at.max(s.arrive));
            }
            self.open_row(b, s.row, at);
            self.opened(b);
        } else {
            self.slots[i as usize].outcome = Some(RowOutcome::Hit);
            self.find_hit(b, dir, s.next);
        }
        let mut at = ready.max(now);
        if self.last.was_write && dir == READ {
            // One data bus and one turnaround for all ranks.
            at = at.max(self.last.at + self.t.col_to_col[WRITE][SAME_RANK][READ]);
        }
        if self.last.was_write != (dir == WRITE) {
            self.switch_mode();
        }
        self.last = LastColumn { at, free_at: at + self.t.burst, was_write: dir == WRITE };
        self.column(b, i, at, done);
    }
}
