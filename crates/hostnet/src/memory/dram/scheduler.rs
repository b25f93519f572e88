//! FR-FCFS over one channel: which command is issued next, and when.
//!
//! The channel is never ticked. Each candidate command has an earliest time; the next
//! command is the one that the policy prefers among those possible at the smallest of
//! these times.

use super::channel::{bits, Channel, AGE_BITS, NEVER, NONE, READ, WRITE};
use super::timing::{OTHER_RANK, SAME_GROUP, SAME_RANK};
use super::{Completion, PagePolicy, Release, RowOutcome, Scheduler};
use crate::kernel::Time;

/// A candidate command as one number, so that the best one is a minimum without
/// branches: `[time after the floor: 28][tier: 2][age: 28][bank: 6]`.
type Key = u64;

const BANK_BITS: u32 = 6;
const TIER_SHIFT: u32 = BANK_BITS + AGE_BITS;
const TIME_SHIFT: u32 = TIER_SHIFT + 2;
const NO_KEY: Key = u64::MAX;

/// Slots that a row was opened for come first, then refreshes; row hits and the other
/// commands share the third tier or follow each other.
const ACTIVE: u64 = 0;
const REFRESH: u64 = 1;
const QUEUE: u64 = 2;
const BEHIND: u64 = 3;

#[inline]
fn key(floor: u64, at: u64, tier: u64, age: u32, bank: usize) -> Key {
    (at.max(floor) - floor) << TIME_SHIFT | tier << TIER_SHIFT | u64::from(age) << BANK_BITS | bank as u64
}

impl Channel {
    /// Issues every command possible up to `now`, and says whether entries became free.
    pub(super) fn advance(&mut self, now: u64, done: &mut Vec<Completion>) -> bool {
        let before = self.used;
        self.release(now);
        loop {
            self.choose_mode();
            let (at, best) = self.choose();
            let due = self.refresh_due;
            if due <= at && (at != NEVER || self.queued != [0, 0]) {
                if due > now {
                    self.wake = due;
                    break;
                }
                self.start_refresh(due);
                continue;
            }
            if at > now {
                self.wake = at;
                break;
            }
            self.clock = self.clock.max(at);
            self.issue(at, best, done);
        }
        self.used[READ] < before[READ] || self.used[WRITE] < before[WRITE]
    }

    /// The earliest refresh that is not under way.
    pub(super) fn next_refresh(&self) -> u64 {
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
        self.refresh_due = self.next_refresh();
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

    /// The preferred command and its time.
    #[inline]
    fn choose(&self) -> (u64, Key) {
        let floor = self.cmd_free.max(self.clock);
        let scan = &*self.scan;
        let shift = self.group_shift;
        let hit_first = self.p.scheduler == Scheduler::HitFirst;
        let row_tier = if hit_first { BEHIND } else { QUEUE };
        let mut best = NO_KEY;
        for b in bits(self.active) {
            let dir = self.slots[self.banks[b].active as usize].dir as usize;
            let at = scan.col_at[b].max(self.groups[b >> shift].col_at[dir]);
            best = best.min(key(floor, at, ACTIVE, scan.active_age[b], b));
        }
        if self.blocked != 0 {
            best = best.min(self.choose_refresh(floor));
        }
        let dir = self.write_mode as usize;
        let free = !self.active & !self.blocked;
        let misses = self.misses[dir] & free;
        for b in bits(self.hits[dir] & free) {
            let at = scan.col_at[b].max(self.groups[b >> shift].col_at[dir]);
            best = best.min(key(floor, at, QUEUE, scan.hit_age[dir][b], b));
        }
        for b in bits(misses & !self.open) {
            let at = scan.act_at[b].max(self.groups[b >> shift].act_at);
            best = best.min(key(floor, at, row_tier, scan.miss_age[dir][b], b));
        }
        let mut closing = misses & self.open;
        if hit_first {
            closing &= !self.hits[dir] | self.overdue(closing & self.hits[dir], dir);
        }
        for b in bits(closing) {
            best = best.min(key(floor, scan.pre_at[b], row_tier, scan.miss_age[dir][b], b));
        }
        (if best == NO_KEY { NEVER } else { floor + (best >> TIME_SHIFT) }, best)
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

    fn choose_refresh(&self, floor: u64) -> Key {
        let mut best = NO_KEY;
        for (r, rank) in self.ranks.iter().enumerate() {
            if !rank.refreshing || self.active & rank.mask != 0 {
                continue;
            }
            let open = self.open & rank.mask;
            let (mask, when) = if open != 0 { (open, &self.scan.pre_at) } else { (rank.mask, &self.scan.act_at) };
            let at = bits(mask).map(|b| when[b]).max().unwrap_or(0);
            best = best.min(key(floor, at, REFRESH, 0, r));
        }
        best
    }

    fn issue(&mut self, at: u64, key: Key, done: &mut Vec<Completion>) {
        let b = (key & ((1 << BANK_BITS) - 1)) as usize;
        let tier = key >> TIER_SHIFT & 3;
        if tier == ACTIVE {
            let i = self.banks[b].active;
            self.banks[b].active = NONE;
            self.active &= !(1 << b);
            return self.column(b, i, at, done);
        }
        if tier == REFRESH {
            return self.refresh(b, at);
        }
        let dir = self.write_mode as usize;
        let age = (key >> BANK_BITS) as u32 & ((1 << AGE_BITS) - 1);
        let hit = self.banks[b].q[dir].hit;
        if hit != NONE && self.slots[hit as usize].age == age {
            let next = self.slots[hit as usize].next;
            self.unlink(b, hit);
            self.find_hit(b, dir, next);
            self.slots[hit as usize].outcome.get_or_insert(RowOutcome::Hit);
            self.column(b, hit, at, done);
            if self.p.release == Release::Activate {
                self.free_entry(dir, at, at);
            }
        } else if self.open >> b & 1 == 0 {
            self.activate(b, at);
        } else {
            let i = self.banks[b].q[dir].miss;
            self.slots[i as usize].outcome.get_or_insert(RowOutcome::Conflict);
            self.cmd_free = at + self.t.tck;
            self.stats.precharges += 1;
            self.close(b, at);
        }
    }

    /// The next step of rank `r`'s refresh: closing its rows, then the refresh itself.
    fn refresh(&mut self, r: usize, at: u64) {
        self.cmd_free = at + self.t.tck;
        let open = self.open & self.ranks[r].mask;
        if open != 0 {
            for b in bits(open) {
                self.stats.precharges += 1;
                self.close(b, at);
            }
            return;
        }
        let rank = &mut self.ranks[r];
        rank.refreshing = false;
        rank.refresh_due += self.t.refi;
        self.blocked &= !rank.mask;
        for b in bits(rank.mask) {
            self.scan.act_at[b] = at + self.t.rfc;
        }
        self.refresh_due = self.next_refresh();
        self.stats.refreshes += 1;
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
        self.scan.col_at[b] = at + t.rcd;
        self.scan.pre_at[b] = at + t.ras;
        self.scan.act_at[b] = at + t.rc;
        self.scan.active_age[b] = self.slots[i as usize].age;
        let (group, r) = (b >> self.group_shift, b >> self.rank_shift);
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
        self.opened(b);
        if self.p.release == Release::Activate {
            self.free_entry(dir, at, at);
        }
    }

    /// The column command for slot `i`, its data, and what the page policy does then.
    fn column(&mut self, b: usize, i: u16, at: u64, done: &mut Vec<Completion>) {
        let s = self.slots[i as usize];
        let dir = s.dir as usize;
        let t = &self.t;
        self.cmd_free = at + t.col_bus;
        let bank = &mut self.banks[b];
        bank.accesses += 1;
        self.scan.pre_at[b] = self.scan.pre_at[b].max(at + t.col_to_pre[dir]);
        let (group, r) = (b >> self.group_shift, b >> self.rank_shift);
        let group_of_rank = self.rank_shift - self.group_shift;
        let table = &t.col_to_col[dir];
        for (g, state) in self.groups.iter_mut().enumerate() {
            let place = if g == group {
                SAME_GROUP
            } else if g >> group_of_rank == r {
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
            let pre = self.scan.pre_at[b];
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
