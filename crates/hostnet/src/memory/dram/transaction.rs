//! Scheduler of gem5, which schedules whole requests: a chosen request receives the times of its precharge, activate
//! and column command together. Data bursts keep the order of these choices, and the next choice is made a row cycle
//! before the data bus becomes free.

use super::banks::{bits, RequestSlot, SlotId};
use super::channel::{Channel, Scheduling, READ, WRITE};
use super::plan::{LateRelease, TransactionPlan};
use super::scheduler::Modes;
use super::timing::{OTHER_RANK, SAME_RANK};
use super::{idle_time, DramCompletion, RowOutcome};
use crate::kernel::{Due, Time};

/// Policy and state of the scheduler.
#[derive(Clone, Debug)]
pub(super) struct Transactions {
    modes: Modes,
    /// Time after which an idle row is closed, in picoseconds.
    page_idle: Option<u64>,
    release: LateRelease,
    pipeline: BusPipeline,
}

impl Transactions {
    pub(super) fn new(plan: &TransactionPlan, wpq: u32) -> Transactions {
        Transactions {
            modes: Modes::new(&plan.modes, wpq),
            page_idle: idle_time(plan.page_idle_ns),
            release: plan.entry_release,
            pipeline: BusPipeline::default(),
        }
    }
}

impl Scheduling for Transactions {
    #[inline]
    fn accept(&mut self, ch: &mut Channel, i: SlotId, b: usize, dir: usize, now: u64) {
        if let Some(idle) = self.page_idle {
            ch.close_idle(b, idle, now);
        }
        ch.add_request(i, b, dir, now);
    }

    #[inline]
    fn issue_until(&mut self, ch: &mut Channel, now: u64, done: &mut Vec<DramCompletion>) {
        ch.advance_transactions(self, now, done);
    }
}

/// Time at which the last chosen request leaves the data bus free (`bus_at`), and time at which the next choice is due
/// (`next_at`).
#[derive(Clone, Copy, Debug, Default)]
struct BusPipeline {
    bus_at: u64,
    next_at: u64,
    turned: bool,
}

/// Action of a channel before a choice is due.
pub(super) enum ChannelStep {
    /// The channel has nothing to do until `wake`.
    Wait,
    /// Ranks have been due for a refresh since this time, and have to be refreshed before the choice.
    Refresh(u64),
    /// The choice is due, at this time.
    Choose(u64),
}

impl Channel {
    /// Action at `now`, with the next choice due at `next`; `turns` says whether the channel serves some ranks while others
    /// refresh although all requests of its mode wait.
    #[inline(always)]
    pub(super) fn turn(&mut self, next: Due, now: u64, turns: bool) -> ChannelStep {
        let refreshes = self.refresh_due <= next && !self.only_refreshes(next, turns);
        let due = if refreshes { self.refresh_due } else { next };
        match due.by(Time(now)) {
            Some(Time(at)) if refreshes => ChannelStep::Refresh(at),
            Some(Time(at)) => ChannelStep::Choose(at),
            None => {
                self.wake = due;
                ChannelStep::Wait
            }
        }
    }

    /// Refreshes the ranks that are due once their issued requests have ended; returns the banks of these ranks.
    pub(super) fn refresh_due_ranks(&mut self, due: u64) -> u64 {
        let mut refreshed = 0;
        for r in 0..self.ranks.len() {
            if self.ranks[r].refresh_due.by(Time(due)).is_none() {
                continue;
            }
            let mask = self.ranks[r].mask;
            let mut at = due;
            for b in bits(mask) {
                if self.banks[b].row.is_some() {
                    self.stats.precharges += 1;
                    self.close(b, self.scan.lanes[b].pre_at.max(due));
                }
                at = at.max(self.scan.lanes[b].act_at);
            }
            self.refresh(r, at);
            refreshed |= mask;
        }
        self.clock = self.clock.max(due);
        refreshed
    }

    /// Body of `advance` for this scheduler.
    #[inline(never)]
    fn advance_transactions(&mut self, s: &mut Transactions, now: u64, done: &mut Vec<DramCompletion>) {
        loop {
            if self.mode_due(&s.modes) {
                self.change_mode(&s.modes);
                s.pipeline.turned = true;
            }
            let dir = usize::from(self.write_mode);
            let at = match self.queued[dir] {
                0 => Due::NEVER,
                _ => Due::at(Time(s.pipeline.next_at.max(self.clock))),
            };
            match self.turn(at, now, s.modes.refresh_turns) {
                ChannelStep::Wait => return,
                ChannelStep::Refresh(due) => {
                    self.refresh_due_ranks(due);
                }
                ChannelStep::Choose(at) => {
                    self.clock = self.clock.max(at);
                    let (b, i) = self.choose_request(s, dir, at);
                    s.pipeline.turned = false;
                    self.serve(s, b, i, at, done);
                }
            }
        }
    }

    /// Earliest activate of bank `b` decided at `now`, including its precharge.
    fn prepare_at(&self, b: usize, now: u64) -> u64 {
        let at = self.activate_at(b).max(now);
        if self.banks[b].row.is_some() {
            at.max(self.scan.lanes[b].pre_at.max(now) + self.t.rp)
        } else {
            at
        }
    }

    /// Chooses seamless row hits first, then requests whose row can be opened behind the running burst, then other
    /// hits, then the earliest bank, and the oldest request of each kind.
    fn choose_request(&self, s: &Transactions, dir: usize, now: u64) -> (usize, SlotId) {
        let turn = if s.pipeline.turned {
            let table = &self.t.col_to_col[1 - dir];
            table[SAME_RANK][dir].min(table[OTHER_RANK][dir]).min(self.t.rank_switch)
        } else {
            0
        };
        let seamless = (s.pipeline.bus_at + turn).max(now);
        let mut hit: Option<(bool, u64, usize)> = None;
        for b in bits(self.hits[dir]) {
            let this = (self.column_at(b, dir) > seamless, self.scan.lanes[b].col_key[dir], b);
            hit = Some(hit.map_or(this, |best| best.min(this)));
        }
        if let Some((false, _, b)) = hit {
            return (b, self.banks[b].q[dir].hit.expect("a row hit"));
        }
        let hidden_until = seamless.saturating_sub(self.t.rcd).max(now);
        let mut miss: Option<(u64, u64, usize)> = None;
        for b in bits(self.misses[dir]) {
            // All row openings that can be hidden count as equally early.
            let at = self.prepare_at(b, now);
            let this = (if at <= hidden_until { 0 } else { at }, self.scan.lanes[b].miss_key[dir], b);
            miss = Some(miss.map_or(this, |best| best.min(this)));
        }
        match (hit, miss) {
            (None, Some((_, _, b))) | (_, Some((0, _, b))) => {
                (b, self.banks[b].q[dir].miss.expect("a request for another row"))
            }
            (Some((_, _, b)), _) => (b, self.banks[b].q[dir].hit.expect("a row hit")),
            (None, None) => unreachable!("a request of this direction is queued"),
        }
    }

    /// Issues the column command for slot `i` at `at`, as decided at `now`, and frees the slot's entry.
    #[inline(never)]
    fn transaction_column(
        &mut self,
        release: LateRelease,
        b: usize,
        i: SlotId,
        (now, at): (u64, u64),
        done: &mut Vec<DramCompletion>,
    ) {
        let (dir, data_end) = self.column(b, i, at, done);
        self.put_off_columns(b, dir, at);
        self.free_late(release, dir, now, data_end);
    }

    fn serve(&mut self, s: &mut Transactions, b: usize, i: SlotId, now: u64, done: &mut Vec<DramCompletion>) {
        let RequestSlot { dir, row, next, .. } = self.slots[i];
        let dir = usize::from(dir);
        let open = self.banks[b].row;
        self.unlink(b, i);
        if open == Some(row) {
            self.slots[i].outcome = Some(RowOutcome::Hit);
            self.find_hit(b, dir, next);
        } else {
            let conflict = open.is_some();
            let outcome = if conflict { RowOutcome::Conflict } else { RowOutcome::Miss };
            self.slots[i].outcome = Some(outcome);
            if conflict {
                self.stats.precharges += 1;
                self.close(b, self.scan.lanes[b].pre_at.max(now));
            }
            let at = self.activate_at(b).max(now);
            self.open_row(b, row, at);
            self.opened(b);
        }
        let at = self.column_at(b, dir).max(s.pipeline.bus_at).max(now);
        self.transaction_column(s.release, b, i, (now, at), done);
        s.pipeline.bus_at = at + self.t.burst;
        s.pipeline.next_at = s.pipeline.bus_at.saturating_sub(self.t.rp + self.t.rcd);
        debug_assert!(
            self.active == 0 && self.blocked == 0 && self.queued[READ] + self.queued[WRITE] < self.slots.len()
        );
    }
}
