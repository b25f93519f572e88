//! Scheduler of zsim, which schedules column commands only: among the first requests of all banks, the oldest one whose
//! column command is possible goes next. The precharge and activate of a request take place at its arrival, in either
//! mode, and use no command bus.

use super::banks::{bits, RequestSlot, SlotId};
use super::channel::{below, Channel, Scheduling, BANKS, READ, WRITE};
use super::choice::{key, least, TimedCommand, QUEUE};
use super::plan::{LateRelease, OnArrivalPlan};
use super::timing::SAME_RANK;
use super::transaction::ChannelStep;
use super::{idle_time, DramCompletion, RowOutcome};

/// First request of a bank and direction, in the form that the choice needs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct FirstRequest {
    /// Earliest column command that the bank and the request's arrival allow.
    at: u64,
    key: u64,
    /// Index in `ready` of the limit that activates of other banks impose.
    limit: usize,
}

/// Policy and state of the scheduler.
#[derive(Clone, Debug)]
pub(super) struct OnArrival {
    /// Number of writes below which writes stop when reads wait: 1 at least, because none can follow the last one.
    low: usize,
    /// Time after which an idle row is closed, in picoseconds.
    page_idle: Option<u64>,
    release: LateRelease,
    columns: Box<Columns>,
}

impl OnArrival {
    pub(super) fn new(plan: &OnArrivalPlan, wpq: u32) -> OnArrival {
        OnArrival {
            low: below(plan.write_low, wpq).max(1),
            page_idle: idle_time(plan.page_idle_ns),
            release: plan.entry_release,
            columns: Box::new(Columns::new()),
        }
    }
}

impl Scheduling for OnArrival {
    #[inline]
    fn accept(&mut self, ch: &mut Channel, i: SlotId, b: usize, dir: usize, now: u64) {
        if let Some(idle) = self.page_idle {
            ch.close_idle(b, idle, now);
        }
        ch.add_request(i, b, dir, now);
        self.columns.changed |= 1 << b;
    }

    #[inline]
    fn issue_until(&mut self, ch: &mut Channel, now: u64, done: &mut Vec<DramCompletion>) {
        ch.advance_columns(self, now, done);
    }

    #[inline]
    fn disturb(&mut self, banks: u64) {
        self.columns.changed |= banks;
    }
}

/// State of the choice.
#[derive(Clone, Debug)]
struct Columns {
    /// Time of the last column command (`at`), and earliest time of the next column command (`free_at`).
    at: u64,
    free_at: u64,
    was_write: bool,
    firsts: [[FirstRequest; BANKS]; 2],
    /// Earliest column command behind an activate, by bank group; the last element is for requests that need no
    /// activate.
    ready: [u64; BANKS + 1],
    /// Banks whose first requests may have changed since the last choice.
    changed: u64,
    /// Last chosen command, and its direction.
    best: TimedCommand,
    dir: usize,
}

const NO_ACTIVATE: usize = BANKS;

impl Columns {
    fn new() -> Columns {
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
    fn advance_columns(&mut self, s: &mut OnArrival, now: u64, done: &mut Vec<DramCompletion>) {
        loop {
            let best = self.choose_column(s);
            let at = self.time_of(best);
            match self.turn(at, now, false) {
                ChannelStep::Wait => return,
                ChannelStep::Refresh(due) => s.columns.changed |= self.refresh_due_ranks(due),
                ChannelStep::Choose(at) => {
                    self.clock = self.clock.max(at);
                    self.open_and_serve(s, best.bank(), at, done);
                }
            }
        }
    }

    /// Whether a write goes next: while no read waits, when more writes wait than the high watermark, or after a write
    /// until the low watermark is reached.
    fn columns_of_writes(&self, s: &OnArrival) -> bool {
        let [reads, writes] = self.queued;
        (reads == 0) | (writes > self.p.high) | (s.columns.was_write & (writes >= s.low))
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
    fn refresh_first(&self, s: &mut OnArrival, b: usize) {
        for dir in [READ, WRITE] {
            if let Some(i) = self.first_of(b, dir) {
                s.columns.firsts[dir][b % BANKS] = self.prepared(b, i);
            }
        }
    }

    /// Chooses the oldest request among the earliest possible first requests of all banks. The last choice remains
    /// until its bank or the direction changes, or other requests become possible at the same time.
    fn choose_column(&mut self, s: &mut OnArrival) -> TimedCommand {
        if self.queued == [0, 0] {
            return TimedCommand::NONE;
        }
        let dir = usize::from(self.columns_of_writes(s));
        let floor = s.columns.free_at.max(self.clock);
        let changed = std::mem::take(&mut s.columns.changed);
        for b in bits(changed) {
            self.refresh_first(s, b);
        }
        let again = self.begin_epoch(floor);
        let Columns { best: last, dir: before, .. } = *s.columns;
        let stays = !again & (before == dir) & (last >= self.choice(floor, 0)) & (changed >> last.bank() & 1 == 0);
        let waiting = self.hits[dir] | self.misses[dir];
        let (last, mask) = if stays { (last, waiting & changed) } else { (TimedCommand::NONE, waiting) };
        let best = self.search_firsts(s, mask, dir, floor).min(last);
        debug_assert!(bits(waiting)
            .all(|b| { self.first_of(b, dir).is_some_and(|i| s.columns.firsts[dir][b] == self.prepared(b, i)) }));
        debug_assert_eq!(best, self.search_firsts(s, waiting, dir, floor));
        (s.columns.best, s.columns.dir) = (best, dir);
        best
    }

    #[inline]
    fn search_firsts(&self, s: &OnArrival, mask: u64, dir: usize, floor: u64) -> TimedCommand {
        let c = &*s.columns;
        least(mask, |b| {
            let first = &c.firsts[dir][b % BANKS];
            self.choice(first.at.max(c.ready[first.limit]).max(floor), first.key)
        })
    }

    /// Issues the column command for slot `i` at `at`, as decided at `now`, and frees the slot's entry. Column commands keep the gaps of `free_at` and
    /// of one turnaround for all ranks.
    #[inline(never)]
    fn column_on_arrival(
        &mut self,
        release: LateRelease,
        b: usize,
        i: SlotId,
        (now, at): (u64, u64),
        done: &mut Vec<DramCompletion>,
    ) {
        let (dir, data_end) = self.column(b, i, at, done);
        self.free_late(release, dir, now, data_end);
    }

    fn open_and_serve(&mut self, s: &mut OnArrival, b: usize, now: u64, done: &mut Vec<DramCompletion>) {
        let dir = s.columns.dir;
        let i = self.first_of(b, dir).expect("a request of the bank");
        let RequestSlot { row, next, arrive, .. } = self.slots[i];
        s.columns.changed |= 1 << b;
        self.unlink(b, i);
        if self.banks[b].row == Some(row) {
            self.slots[i].outcome = Some(RowOutcome::Hit);
            self.find_hit(b, dir, next);
        } else {
            let at = self.activate_of(b, i).max(self.activate_at(b));
            let conflict = self.banks[b].row.is_some();
            self.slots[i].outcome = Some(if conflict { RowOutcome::Conflict } else { RowOutcome::Miss });
            if conflict {
                self.stats.precharges += 1;
                self.close(b, self.scan.lanes[b].pre_at.max(arrive));
            }
            self.open_row(b, row, at);
            self.opened(b);
            self.limit_activates(s, b >> self.rank_shift);
        }
        let mut at = now;
        if s.columns.was_write && dir == READ {
            // All ranks share one data bus and one turnaround.
            at = at.max(s.columns.at + self.t.col_to_col[WRITE][SAME_RANK][READ]);
        }
        if s.columns.was_write != (dir == WRITE) {
            self.switch_mode(true);
        }
        (s.columns.at, s.columns.free_at, s.columns.was_write) = (at, at + self.t.burst, dir == WRITE);
        self.column_on_arrival(s.release, b, i, (now, at), done);
    }

    /// Delays activates in rank `r` after one of its banks was activated.
    fn limit_activates(&self, s: &mut OnArrival, r: usize) {
        let shift = self.rank_shift - self.group_shift;
        for g in r << shift..(r + 1) << shift {
            s.columns.ready[g] = self.scan.group_act[g].max(self.scan.rank_act[r]) + self.t.rcd;
        }
    }
}
