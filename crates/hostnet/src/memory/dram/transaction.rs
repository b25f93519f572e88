//! Scheduler of gem5, which schedules whole requests: a chosen request receives the times of its precharge, activate
//! and column command together. Data bursts keep the order of these choices, and the next choice is made a row cycle
//! before the data bus becomes free.

use super::banks::{bits, SlotId};
use super::channel::{Channel, READ, WRITE};
use super::timing::{OTHER_RANK, SAME_RANK};
use super::{DramCompletion, RowOutcome};
use crate::kernel::{Due, Time};

/// Time at which the last chosen request leaves the data bus free (`bus_at`), and time at which the next choice is due
/// (`next_at`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BusPipeline {
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
    /// Action at `now`, with the next choice due at `next`.
    #[inline(always)]
    pub(super) fn turn(&mut self, next: Due, now: u64) -> ChannelStep {
        let refreshes = self.refresh_due <= next && !self.only_refreshes(next);
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

    /// Body of `advance` for this scheduler.
    #[inline(never)]
    pub(super) fn advance_transactions(&mut self, now: u64, done: &mut Vec<DramCompletion>) {
        loop {
            if self.mode_due() {
                self.switch_mode();
                self.pipeline.turned = true;
            }
            let dir = usize::from(self.write_mode);
            let at = match self.queued[dir] {
                0 => Due::NEVER,
                _ => Due::at(Time(self.pipeline.next_at.max(self.clock))),
            };
            match self.turn(at, now) {
                ChannelStep::Wait => return,
                ChannelStep::Refresh(due) => self.refresh_due_ranks(due),
                ChannelStep::Choose(at) => {
                    self.clock = self.clock.max(at);
                    let (b, i) = self.choose_request(dir, at);
                    self.pipeline.turned = false;
                    self.serve(b, i, at, done);
                }
            }
        }
    }

    /// Refreshes the ranks that are due once their issued requests have ended.
    pub(super) fn refresh_due_ranks(&mut self, due: u64) {
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
        }
        self.clock = self.clock.max(due);
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
    fn choose_request(&self, dir: usize, now: u64) -> (usize, SlotId) {
        let turn = if self.pipeline.turned {
            let table = &self.t.col_to_col[1 - dir];
            table[SAME_RANK][dir].min(table[OTHER_RANK][dir]).min(self.t.rank_switch)
        } else {
            0
        };
        let seamless = (self.pipeline.bus_at + turn).max(now);
        let hits = bits(self.hits[dir]);
        let hit = hits.map(|b| (self.column_at(b, dir) > seamless, self.scan.lanes[b].col_key[dir], b)).min();
        if let Some((false, _, b)) = hit {
            return (b, self.banks[b].q[dir].hit.expect("a row hit"));
        }
        let hidden_until = seamless.saturating_sub(self.t.rcd).max(now);
        let opening = |b| {
            // All row openings that can be hidden count as equally early.
            let at = self.prepare_at(b, now);
            (if at <= hidden_until { 0 } else { at }, self.scan.lanes[b].miss_key[dir], b)
        };
        let miss = bits(self.misses[dir]).map(opening).min();
        match (hit, miss) {
            (None, Some((_, _, b))) | (_, Some((0, _, b))) => {
                (b, self.banks[b].q[dir].miss.expect("a request for another row"))
            }
            (Some((_, _, b)), _) => (b, self.banks[b].q[dir].hit.expect("a row hit")),
            (None, None) => unreachable!("a request of this direction is queued"),
        }
    }

    fn serve(&mut self, b: usize, i: SlotId, now: u64, done: &mut Vec<DramCompletion>) {
        let s = self.slots[i];
        let dir = usize::from(s.dir);
        let open = self.banks[b].row;
        self.unlink(b, i);
        if open == Some(s.row) {
            self.slots[i].outcome = Some(RowOutcome::Hit);
            self.find_hit(b, dir, s.next);
        } else {
            let conflict = open.is_some();
            let outcome = if conflict { RowOutcome::Conflict } else { RowOutcome::Miss };
            self.slots[i].outcome = Some(outcome);
            if conflict {
                self.stats.precharges += 1;
                self.close(b, self.scan.lanes[b].pre_at.max(now));
            }
            let at = self.activate_at(b).max(now);
            self.open_row(b, s.row, at);
            self.opened(b);
        }
        let at = self.column_at(b, dir).max(self.pipeline.bus_at).max(now);
        self.column(b, i, at, done);
        self.pipeline.bus_at = at + self.t.burst;
        self.pipeline.next_at = self.pipeline.bus_at.saturating_sub(self.t.rp + self.t.rcd);
        debug_assert!(
            self.active == 0 && self.blocked == 0 && self.queued[READ] + self.queued[WRITE] < self.slots.len()
        );
    }
}
