//! Scheduler of gem5, which schedules whole requests: the chosen request receives the times of its precharge, activate
//! and column command together, data bursts keep the order of these decisions, and the next decision is taken a row
//! cycle before the data bus becomes free.

use super::banks::{bits, SlotId};
use super::channel::{Channel, NEVER, NO_ROW, READ, WRITE};
use super::timing::{OTHER_RANK, SAME_RANK};
use super::{DramCompletion, RowOutcome};

/// Time at which the last decision leaves the data bus free (`bus_at`), and time at which the next one is due
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
    /// Ranks are due for a refresh, since this time, and have to be refreshed first.
    Refresh(u64),
    /// The choice is due.
    Choose,
}

impl Channel {
    /// Action at `now`, with the next choice due at `next`.
    #[inline(always)]
    pub(super) fn turn(&mut self, next: u64, now: u64) -> ChannelStep {
        let due = self.refresh_due;
        if due <= next && !self.only_refreshes(next) {
            if due <= now {
                return ChannelStep::Refresh(due);
            }
            self.wake = due;
            ChannelStep::Wait
        } else if next > now {
            self.wake = next;
            ChannelStep::Wait
        } else {
            ChannelStep::Choose
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
                0 => NEVER,
                _ => self.pipeline.next_at.max(self.clock),
            };
            match self.turn(at, now) {
                ChannelStep::Wait => return,
                ChannelStep::Refresh(due) => self.refresh_due_ranks(due),
                ChannelStep::Choose => {
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
            if self.ranks[r].refresh_due > due {
                continue;
            }
            let mask = self.ranks[r].mask;
            let mut at = due;
            for b in bits(mask) {
                if self.banks[b].row != NO_ROW {
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
        if self.banks[b].row == NO_ROW {
            at
        } else {
            at.max(self.scan.lanes[b].pre_at.max(now) + self.t.rp)
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
        let mut hit = (true, u64::MAX, 0);
        for b in bits(self.hits[dir]) {
            hit = hit.min((self.column_at(b, dir) > seamless, self.scan.lanes[b].col_key[dir], b));
        }
        if hit.1 != u64::MAX && !hit.0 {
            return (hit.2, self.banks[hit.2].q[dir].hit.expect("a row hit"));
        }
        let hidden_until = seamless.saturating_sub(self.t.rcd).max(now);
        let mut miss = (NEVER, u64::MAX, 0);
        for b in bits(self.misses[dir]) {
            // All row openings that can be hidden count as equally early.
            let at = self.prepare_at(b, now);
            let at = if at <= hidden_until { 0 } else { at };
            miss = miss.min((at, self.scan.lanes[b].miss_key[dir], b));
        }
        if hit.1 != u64::MAX && miss.0 != 0 {
            return (hit.2, self.banks[hit.2].q[dir].hit.expect("a row hit"));
        }
        (miss.2, self.banks[miss.2].q[dir].miss.expect("a request for another row"))
    }

    fn serve(&mut self, b: usize, i: SlotId, now: u64, done: &mut Vec<DramCompletion>) {
        let s = self.slots[i];
        let dir = usize::from(s.dir);
        let open = self.banks[b].row;
        self.unlink(b, i);
        if open == s.row {
            self.slots[i].outcome = Some(RowOutcome::Hit);
            self.find_hit(b, dir, s.next);
        } else {
            let conflict = open != NO_ROW;
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
