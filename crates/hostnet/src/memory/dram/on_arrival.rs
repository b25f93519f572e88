//! Scheduler of zsim, which schedules column commands only: among the first requests of all banks, the oldest one whose
//! column command is possible goes next. The precharge and activate of a request take place at its arrival, in either
//! mode, and use no command bus.

use super::banks::{bits, SlotId};
use super::channel::{Channel, BANKS, READ, WRITE};
use super::choice::{key, least, TimedCommand, QUEUE};
use super::timing::SAME_RANK;
use super::transaction::ChannelStep;
use super::{DramCompletion, RowOutcome};

/// First request of a bank and direction, in the form that the choice needs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct FirstRequest {
    /// Earliest column command that the bank and the request's arrival allow.
    at: u64,
    key: u64,
    /// Index in `ready` of the limit that activates of other banks impose.
    limit: usize,
}

/// State of the scheduler.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    /// Time of the last column command (`at`), and earliest time of the next column command (`free_at`).
    at: u64,
    free_at: u64,
    was_write: bool,
    firsts: [[FirstRequest; BANKS]; 2],
    /// Earliest column command behind an activate, by bank group; the last element is for requests that need no
    /// activate.
    ready: [u64; BANKS + 1],
    /// Banks whose first requests may have changed since the last choice.
    pub changed: u64,
    /// Last chosen command, and its direction.
    best: TimedCommand,
    dir: usize,
}

const NO_ACTIVATE: usize = BANKS;

impl Columns {
    pub(super) fn new() -> Columns {
        Columns {
            at: 0,
            free_at: 0,
            was_write: false,
            firsts: [[FirstRequest::default(); BANKS]; 2],
            ready: [0; BANKS + 1],
            changed: 0,
            best: TimedCommand::NONE,
            dir: READ,
        }
    }
}

impl Channel {
    /// Body of `advance` for this scheduler.
    #[inline(never)]
    pub(super) fn advance_columns(&mut self, now: u64, done: &mut Vec<DramCompletion>) {
        loop {
            let best = self.choose_column();
            let at = self.time_of(best);
            match self.turn(at, now) {
                ChannelStep::Wait => return,
                ChannelStep::Refresh(due) => self.refresh_due_ranks(due),
                ChannelStep::Choose(at) => {
                    self.clock = self.clock.max(at);
                    self.open_and_serve(best.bank(), at, done);
                }
            }
        }
    }

    /// Whether a write goes next: while no read waits, when more writes wait than the high watermark, or after a write
    /// until the low watermark is reached.
    fn columns_of_writes(&self) -> bool {
        let [reads, writes] = self.queued;
        (reads == 0) | (writes > self.p.high) | (self.columns.was_write & (writes >= self.p.low))
    }

    /// First request of bank `b`: the oldest for the open row, or otherwise the oldest.
    fn first_of(&self, b: usize, dir: usize) -> Option<SlotId> {
        let q = &self.banks[b].q[dir];
        q.hit.or(q.miss)
    }

    /// Earliest activate for slot `i` of bank `b` that the bank allows.
    fn activate_of(&self, b: usize, i: SlotId) -> u64 {
        let arrive = self.slots[i].arrive;
        let lane = &self.scan.lanes[b % BANKS];
        let closed = if self.banks[b].row.is_some() { lane.pre_at.max(arrive) + self.t.rp } else { 0 };
        lane.act_at.max(arrive).max(closed)
    }

    /// Slot `i`, the first of bank `b`, in the form that the choice needs.
    fn prepared(&self, b: usize, i: SlotId) -> FirstRequest {
        let s = &self.slots[i];
        let (at, limit) = if self.banks[b].row == Some(s.row) {
            (self.scan.lanes[b % BANKS].col_at.max(s.arrive), NO_ACTIVATE)
        } else {
            (self.activate_of(b, i) + self.t.rcd, b >> self.group_shift)
        };
        FirstRequest { at, key: key(QUEUE, s.age, b), limit }
    }

    /// Prepares the first requests of bank `b` again.
    fn refresh_first(&mut self, b: usize) {
        for dir in [READ, WRITE] {
            if let Some(i) = self.first_of(b, dir) {
                self.columns.firsts[dir][b % BANKS] = self.prepared(b, i);
            }
        }
    }

    /// Chooses the oldest request among the earliest possible first requests of all banks. The last choice remains
    /// until its bank or the direction changes, or other requests become possible at the same time.
    fn choose_column(&mut self) -> TimedCommand {
        if self.queued == [0, 0] {
            return TimedCommand::NONE;
        }
        let dir = usize::from(self.columns_of_writes());
        let floor = self.columns.free_at.max(self.clock);
        let changed = std::mem::take(&mut self.columns.changed);
        for b in bits(changed) {
            self.refresh_first(b);
        }
        let again = self.begin_epoch(floor);
        let Columns { best: last, dir: before, .. } = *self.columns;
        let stays = !again & (before == dir) & (last >= self.choice(floor, 0)) & (changed >> last.bank() & 1 == 0);
        let waiting = self.hits[dir] | self.misses[dir];
        let (last, mask) = if stays { (last, waiting & changed) } else { (TimedCommand::NONE, waiting) };
        let best = self.search_firsts(mask, dir, floor).min(last);
        debug_assert!(bits(waiting)
            .all(|b| { self.first_of(b, dir).is_some_and(|i| self.columns.firsts[dir][b] == self.prepared(b, i)) }));
        debug_assert_eq!(best, self.search_firsts(waiting, dir, floor));
        (self.columns.best, self.columns.dir) = (best, dir);
        best
    }

    #[inline]
    fn search_firsts(&self, mask: u64, dir: usize, floor: u64) -> TimedCommand {
        let c = &*self.columns;
        least(mask, |b| {
            let first = &c.firsts[dir][b % BANKS];
            self.choice(first.at.max(c.ready[first.limit]).max(floor), first.key)
        })
    }

    fn open_and_serve(&mut self, b: usize, now: u64, done: &mut Vec<DramCompletion>) {
        let dir = self.columns.dir;
        let i = self.first_of(b, dir).expect("a request of the bank");
        let s = self.slots[i];
        self.columns.changed |= 1 << b;
        self.unlink(b, i);
        if self.banks[b].row == Some(s.row) {
            self.slots[i].outcome = Some(RowOutcome::Hit);
            self.find_hit(b, dir, s.next);
        } else {
            let at = self.activate_of(b, i).max(self.activate_at(b));
            let conflict = self.banks[b].row.is_some();
            self.slots[i].outcome = Some(if conflict { RowOutcome::Conflict } else { RowOutcome::Miss });
            if conflict {
                self.stats.precharges += 1;
                self.close(b, self.scan.lanes[b].pre_at.max(s.arrive));
            }
            self.open_row(b, s.row, at);
            self.opened(b);
            self.limit_activates(b >> self.rank_shift);
        }
        let mut at = now;
        if self.columns.was_write && dir == READ {
            // All ranks share one data bus and one turnaround.
            at = at.max(self.columns.at + self.t.col_to_col[WRITE][SAME_RANK][READ]);
        }
        if self.columns.was_write != (dir == WRITE) {
            self.switch_mode();
        }
        (self.columns.at, self.columns.free_at, self.columns.was_write) = (at, at + self.t.burst, dir == WRITE);
        self.column(b, i, at, done);
    }

    /// Delays activates in rank `r` after one of its banks was activated.
    fn limit_activates(&mut self, r: usize) {
        let shift = self.rank_shift - self.group_shift;
        for g in r << shift..(r + 1) << shift {
            self.columns.ready[g] = self.scan.group_act[g].max(self.scan.rank_act[r]) + self.t.rcd;
        }
    }
}
