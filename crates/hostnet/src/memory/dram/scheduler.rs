//! FR-FCFS over one channel: which command is issued next, and when.
//!
//! The channel is never ticked. Each candidate command has an earliest time; the next
//! command is the one that the policy prefers among those possible at the smallest of
//! these times.

use super::channel::{bits, Channel, NEVER, NONE, NO_ROW, READ, WRITE};
use super::timing::{OTHER_RANK, SAME_GROUP, SAME_RANK};
use super::{Advance, Completion, PagePolicy, Release, RowOutcome, Scheduler};
use crate::kernel::Time;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Command {
    /// Column command for the slot that the bank's row was opened for.
    Active,
    /// Column command for a row hit, by direction.
    Hit,
    Activate,
    Precharge,
    PrechargeAll,
    Refresh,
}

#[derive(Clone, Copy)]
struct Best {
    at: u64,
    rank: u64,
    bank: usize,
    cmd: Command,
}

impl Best {
    #[inline]
    fn offer(&mut self, at: u64, rank: u64, bank: usize, cmd: Command) {
        if (at, rank) < (self.at, self.rank) {
            *self = Best { at, rank, bank, cmd };
        }
    }
}

const TIER: u64 = 1 << 60;

impl Channel {
    /// Issues every command possible up to `now` and says when to come back.
    pub(super) fn advance(&mut self, now: u64, done: &mut Vec<Completion>) -> Advance {
        let before = self.used;
        self.release(now);
        loop {
            self.choose_mode();
            let best = self.choose();
            let due = self.next_refresh();
            if due <= best.at && (best.at != NEVER || self.queued != [0, 0] || self.active != 0) {
                if due > now {
                    self.wake = due;
                    break;
                }
                self.start_refresh(due);
                continue;
            }
            if best.at > now {
                self.wake = best.at;
                break;
            }
            self.clock = self.clock.max(best.at);
            self.issue(best, done);
        }
        let next = self.wake.min(self.next_release());
        Advance {
            next: (next != NEVER).then_some(Time(next)),
            freed: self.used[READ] < before[READ] || self.used[WRITE] < before[WRITE],
        }
    }

    fn next_refresh(&self) -> u64 {
        let mut due = NEVER;
        for r in &self.ranks {
            if !r.refreshing {
                due = due.min(r.refresh_due);
            }
        }
        due
    }

    fn start_refresh(&mut self, due: u64) {
        for r in &mut self.ranks {
            if !r.refreshing && r.refresh_due <= due {
                r.refreshing = true;
                self.blocked |= r.mask;
            }
        }
        self.clock = self.clock.max(due);
    }

    /// Read mode or write mode, by the watermarks and burst lengths.
    fn choose_mode(&mut self) {
        let [reads, writes] = self.queued;
        let p = &self.p;
        let switch = if self.write_mode {
            let long_enough = self.burst_writes >= p.min_writes;
            let low = writes < p.low && (reads > 0 || writes <= p.idle);
            let spent = p.max_writes > 0 && self.burst_writes >= p.max_writes && reads > 0;
            (long_enough && (low || spent)) || (writes == 0 && reads > 0)
        } else {
            (writes > p.high && (self.burst_reads >= p.min_reads || reads == 0))
                || (reads == 0 && writes > p.idle)
        };
        if switch {
            self.meter(self.clock);
            self.write_mode = !self.write_mode;
            self.burst_reads = 0;
            self.burst_writes = 0;
            self.stats.mode_switches += 1;
        }
    }

    fn choose(&self) -> Best {
        let floor = self.cmd_free.max(self.clock);
        let mut best = Best { at: NEVER, rank: NEVER, bank: 0, cmd: Command::Refresh };
        let hit_first = self.p.scheduler == Scheduler::HitFirst;
        let (hit_tier, row_tier) = if hit_first { (TIER, 2 * TIER) } else { (TIER, TIER) };
        for b in bits(self.active) {
            let bank = &self.banks[b];
            let s = &self.slots[bank.active as usize];
            let at = bank.col_at.max(self.groups[bank.group as usize].col_at[s.dir as usize]);
            best.offer(at.max(floor), s.seq, b, Command::Active);
        }
        if self.blocked != 0 {
            self.choose_refresh(floor, &mut best);
        }
        let dir = self.write_mode as usize;
        let hits = self.hits[dir] & !self.active & !self.blocked;
        let misses = self.misses[dir] & !self.active & !self.blocked;
        for b in bits(hits) {
            let bank = &self.banks[b];
            let at = bank.col_at.max(self.groups[bank.group as usize].col_at[dir]);
            let seq = self.slots[bank.q[dir].hit as usize].seq;
            best.offer(at.max(floor), hit_tier | seq, b, Command::Hit);
        }
        for b in bits(misses & !self.open) {
            let bank = &self.banks[b];
            let at = bank.act_at.max(self.groups[bank.group as usize].act_at);
            let seq = self.slots[bank.q[dir].miss as usize].seq;
            best.offer(at.max(floor), row_tier | seq, b, Command::Activate);
        }
        let mut closing = misses & self.open;
        if hit_first {
            closing &= !self.hits[dir] | self.overdue(closing & self.hits[dir], dir);
        }
        for b in bits(closing) {
            let bank = &self.banks[b];
            let seq = self.slots[bank.q[dir].miss as usize].seq;
            best.offer(bank.pre_at.max(floor), row_tier | seq, b, Command::Precharge);
        }
        best
    }

    /// Banks among `mask` where a request waited past the age cap behind row hits.
    fn overdue(&self, mask: u64, dir: usize) -> u64 {
        let mut m = 0;
        if self.p.age_cap != NEVER {
            for b in bits(mask) {
                let q = &self.banks[b].q[dir];
                let old = self.slots[q.miss as usize].arrive + self.p.age_cap <= self.clock;
                m |= u64::from(old) << b;
            }
        }
        m
    }

    fn choose_refresh(&self, floor: u64, best: &mut Best) {
        for (r, rank) in self.ranks.iter().enumerate() {
            if !rank.refreshing || self.active & rank.mask != 0 {
                continue;
            }
            let open = self.open & rank.mask;
            let (at, cmd) = if open != 0 {
                let at = bits(open).map(|b| self.banks[b].pre_at).max().unwrap_or(0);
                (at, Command::PrechargeAll)
            } else {
                let at = bits(rank.mask).map(|b| self.banks[b].act_at).max().unwrap_or(0);
                (at, Command::Refresh)
            };
            best.offer(at.max(floor), 0, r, cmd);
        }
    }

    fn issue(&mut self, c: Best, done: &mut Vec<Completion>) {
        let (b, at) = (c.bank, c.at);
        match c.cmd {
            Command::Active => {
                let i = self.banks[b].active;
                self.banks[b].active = NONE;
                self.active &= !(1 << b);
                self.column(b, i, at, done);
            }
            Command::Hit => {
                let dir = self.write_mode as usize;
                let i = self.banks[b].q[dir].hit;
                let next = self.slots[i as usize].next;
                self.unlink(b, i);
                self.find_hit(b, dir, next);
                self.slots[i as usize].outcome.get_or_insert(RowOutcome::Hit);
                self.column(b, i, at, done);
                if self.p.release == Release::Activate {
                    self.free_entry(dir, at, at);
                }
            }
            Command::Activate => self.activate(b, at),
            Command::Precharge => {
                let dir = self.write_mode as usize;
                let i = self.banks[b].q[dir].miss;
                self.slots[i as usize].outcome.get_or_insert(RowOutcome::Conflict);
                self.cmd_free = at + self.t.tck;
                self.stats.precharges += 1;
                self.close(b, at);
            }
            Command::PrechargeAll => {
                self.cmd_free = at + self.t.tck;
                for b in bits(self.open & self.ranks[c.bank].mask) {
                    self.stats.precharges += 1;
                    self.close(b, at);
                }
            }
            Command::Refresh => {
                self.cmd_free = at + self.t.tck;
                let rank = &mut self.ranks[c.bank];
                rank.refreshing = false;
                rank.refresh_due += self.t.refi;
                self.blocked &= !rank.mask;
                for b in bits(rank.mask) {
                    self.banks[b].act_at = at + self.t.rfc;
                }
                self.stats.refreshes += 1;
            }
        }
    }

    fn activate(&mut self, b: usize, at: u64) {
        let dir = self.write_mode as usize;
        let t = &self.t;
        self.cmd_free = at + t.act_bus;
        self.stats.activates += 1;
        let i = self.banks[b].q[dir].miss;
        let bank = &mut self.banks[b];
        bank.row = self.slots[i as usize].row;
        bank.active = i;
        bank.accesses = 0;
        bank.col_at = at + t.rcd;
        bank.pre_at = at + t.ras;
        bank.act_at = at + t.rc;
        let (group, r) = (bank.group as usize, bank.rank as usize);
        let rank = &mut self.ranks[r];
        rank.acts[rank.acts_next] = at;
        rank.acts_next = (rank.acts_next + 1) & 3;
        let oldest = rank.acts[rank.acts_next];
        let window = if oldest == NEVER { 0 } else { oldest + t.faw };
        let first = r * self.groups_per_rank;
        for (k, g) in self.groups[first..first + self.groups_per_rank].iter_mut().enumerate() {
            let rrd = if first + k == group { t.rrd_l } else { t.rrd_s };
            g.act_at = g.act_at.max(at + rrd).max(window);
        }
        self.slots[i as usize].outcome.get_or_insert(RowOutcome::Miss);
        self.unlink(b, i);
        self.active |= 1 << b;
        self.row_changed(b);
        if self.p.release == Release::Activate {
            self.free_entry(dir, at, at);
        }
    }

    fn close(&mut self, b: usize, at: u64) {
        let bank = &mut self.banks[b];
        bank.row = NO_ROW;
        bank.act_at = bank.act_at.max(at + self.t.rp);
        self.row_changed(b);
    }

    /// The column command for slot `i`, its data, and what the page policy does then.
    fn column(&mut self, b: usize, i: u16, at: u64, done: &mut Vec<Completion>) {
        let s = self.slots[i as usize];
        let dir = s.dir as usize;
        let t = &self.t;
        self.cmd_free = at + t.col_bus;
        let bank = &mut self.banks[b];
        bank.accesses += 1;
        bank.pre_at = bank.pre_at.max(at + t.col_to_pre[dir]);
        let (group, r) = (bank.group as usize, bank.rank as usize);
        let table = &t.col_to_col[dir];
        for (g, state) in self.groups.iter_mut().enumerate() {
            let place = if g == group {
                SAME_GROUP
            } else if g / self.groups_per_rank == r {
                SAME_RANK
            } else {
                OTHER_RANK
            };
            for next in [READ, WRITE] {
                state.col_at[next] = state.col_at[next].max(at + table[place][next]);
            }
        }
        let outcome = s.outcome.unwrap_or(RowOutcome::Hit);
        let data_end = at + if dir == READ { t.cl } else { t.cwl } + t.burst;
        self.stats.column(dir, outcome, t.burst, b);
        if dir == READ {
            self.burst_reads += 1;
            self.stats.read_latency_ps += u128::from(data_end - s.arrive);
            done.push(Completion {
                token: s.token,
                class: s.class,
                outcome,
                at: Time(data_end + self.p.static_latency),
            });
        } else {
            self.burst_writes += 1;
        }
        match self.p.release {
            Release::Activate => {}
            Release::Column => self.free_entry(dir, at, at),
            Release::Data => self.free_entry(dir, if dir == READ { data_end } else { at }, at),
        }
        self.recycle(i);
        if self.closes(b, dir) {
            self.stats.auto_precharges += 1;
            let pre = self.banks[b].pre_at;
            self.close(b, pre);
        }
    }

    fn closes(&self, b: usize, dir: usize) -> bool {
        let bank = &self.banks[b];
        if self.p.row_access_limit > 0 && bank.accesses >= self.p.row_access_limit {
            return true;
        }
        let q = &bank.q[dir];
        match self.p.page {
            PagePolicy::Open => false,
            PagePolicy::Closed => true,
            PagePolicy::OpenAdaptive => q.hit == NONE && q.miss != NONE,
            PagePolicy::ClosedAdaptive => q.hit == NONE,
        }
    }
}
