//! FR-FCFS scheduler of one channel: it chooses the next command and the time of the command.
//!
//! The channel is never ticked. Each candidate command has an earliest time; the next command is the one that the
//! policy prefers among those possible at the smallest of these times.

use super::banks::{bits, RowId, SlotId};
use super::channel::{
    above, below, Channel, DramCommand, Rank, Scheduling, ACTIVATE, ALL_STALE, BANKS, COLUMN, PRECHARGE, READ, WRITE,
};
use super::choice::{key, least, CommandKey, TimedCommand, ACTIVE, BEHIND, EPOCH, QUEUE, REFRESH};
use super::plan::{CommandPlan, ModePlan};
use super::timing::{OTHER_RANK, SAME_GROUP, SAME_RANK};
use super::{idle_time, DramCompletion, EntryRelease, PagePolicy, RowOutcome};
use crate::kernel::{Due, Int, Time};

/// Number of bits by which indices in `rank_col` are shifted above those in `group_col`.
const PLACE_BITS: u32 = 8;

/// Rules by which a channel changes between read mode and write mode, in requests.
#[derive(Clone, Debug)]
pub(super) struct Modes {
    low: usize,
    idle: usize,
    writes_yield: bool,
    pub refresh_turns: bool,
    min_reads: u32,
    min_writes: u32,
    max_writes: u32,
}

impl Modes {
    pub(super) fn new(plan: &ModePlan, wpq: u32) -> Modes {
        Modes {
            low: below(plan.write_low, wpq),
            idle: above(plan.write_idle, wpq),
            writes_yield: plan.writes_yield,
            refresh_turns: plan.refresh_turns,
            min_reads: plan.min_read_burst,
            min_writes: plan.min_write_burst,
            max_writes: plan.max_write_burst,
        }
    }
}

/// Order among the commands that are possible at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandOrder {
    /// Row hits first.
    HitFirst,
    /// The oldest request first.
    FirstReady,
}

/// Policy of the schedulers that choose every command by itself.
#[derive(Clone, Debug)]
pub(super) struct Commands {
    order: CommandOrder,
    modes: Modes,
    /// Time after its arrival from which a request behind row hits is overdue.
    age_cap: Due,
    /// Time after which an idle row is closed, in picoseconds.
    page_idle: Option<u64>,
    release: EntryRelease,
}

impl Commands {
    pub(super) fn new(order: CommandOrder, plan: &CommandPlan, wpq: u32) -> Commands {
        Commands {
            order,
            modes: Modes::new(&plan.modes, wpq),
            age_cap: if plan.age_cap_ns == 0 { Due::NEVER } else { Due::at(Time::ns(plan.age_cap_ns)) },
            page_idle: idle_time(plan.page_idle_ns),
            release: plan.entry_release,
        }
    }
}

impl Scheduling for Commands {
    #[inline]
    fn accept(&mut self, ch: &mut Channel, i: SlotId, b: usize, dir: usize, now: u64) {
        ch.accept_command(self, i, b, dir, now);
    }

    #[inline]
    fn issue_until(&mut self, ch: &mut Channel, now: u64, done: &mut Vec<DramCompletion>) {
        ch.advance_commands(self, now, done);
    }

    fn row_tier(&self) -> u64 {
        match self.order {
            CommandOrder::HitFirst => BEHIND,
            CommandOrder::FirstReady => QUEUE,
        }
    }
}

impl Channel {
    /// Takes in slot `i`, a request for bank `b` that has arrived at `now`.
    #[inline]
    fn accept_command(&mut self, s: &Commands, i: SlotId, b: usize, dir: usize, now: u64) {
        self.none_overdue_until = self.none_overdue_until.min(s.age_cap.plus(Time(now)));
        if let Some(idle) = s.page_idle {
            self.close_idle(b, idle, now);
        }
        self.link(i, b, dir);
        let q = self.banks[b].q[dir];
        let idle = (self.active | self.blocked) >> b & 1 == 0 && dir == usize::from(self.write_mode);
        if self.banks[b].row == Some(self.slots[i].row) {
            if q.hit.is_none() {
                self.set_hit(b, dir, Some(i));
                if idle {
                    if q.miss.is_some() {
                        // The bank may no longer need the precharge.
                        self.stale |= 1 << PRECHARGE;
                        self.chosen = false;
                    }
                    self.offer(COLUMN, self.column_at(b, dir), self.scan.lanes[b].col_key[dir]);
                }
            }
        } else if q.miss.is_none() {
            self.set_miss(b, dir, Some(i));
            if idle {
                self.offer_row(s, b, dir);
            }
        }
        if self.mode_due(&s.modes) {
            self.chosen = false;
            self.wake = self.wake.min(Due::at(Time(self.cmd_free.max(self.clock))));
        }
    }

    /// Body of `advance` for these schedulers.
    #[inline(always)]
    fn advance_commands(&mut self, s: &Commands, now: u64, done: &mut Vec<DramCompletion>) {
        loop {
            if !self.chosen {
                if self.mode_due(&s.modes) {
                    self.change_mode(&s.modes);
                }
                self.next = self.choose(s);
                self.wake = self.time_of(self.next);
            }
            let (at, best) = (self.wake, self.next);
            let due = self.refresh_due;
            if due <= at && !self.only_refreshes(at, s.modes.refresh_turns) {
                let Some(Time(due)) = due.by(Time(now)) else {
                    self.chosen = false;
                    self.wake = due;
                    break;
                };
                self.chosen = false;
                self.start_refresh(due);
                continue;
            }
            let Some(Time(at)) = at.by(Time(now)) else {
                self.chosen = true;
                break;
            };
            self.chosen = false;
            self.clock = self.clock.max(at);
            self.issue(s, at, best, done);
        }
    }

    /// Earliest time at which a queue entry can become free: with a column command, which at best follows the next
    /// activate or precharge, or with the activate itself.
    pub(super) fn next_column_entry(&self, s: &Commands) -> Due {
        let known = self.chosen & (self.stale == 0) & (self.blocked == 0);
        let column_next = self.scan.best[COLUMN] == self.next;
        if !known | column_next {
            return self.wake;
        }
        // Activates remove requests from the queue and may so end the mode. Before the next column command, at most as
        // many activates can follow as the tFAW windows of two ranks allow.
        let dir = usize::from(self.write_mode);
        let mut queued = self.queued;
        queued[dir] = queued[dir].saturating_sub(8);
        let rests = s.modes.refresh_turns && self.clock < self.resting_until;
        if rests || self.mode_due_with(&s.modes, queued) {
            return self.wake;
        }
        let [c, a, p] = self.scan.best.map(|c| self.time_of(c));
        let after = if s.release == EntryRelease::Activate { 0 } else { self.t.rcd };
        c.min(a.plus(Time(after))).min(p.plus(Time(self.t.rp + after))).max(self.wake)
    }

    /// Whether the preferred candidate of `class` belongs to bank `b`; another bank's candidate stays preferred when
    /// that of bank `b` is delayed or withdrawn.
    #[inline]
    fn is_best(&self, class: usize, b: usize) -> bool {
        let best = self.scan.best[class];
        !best.is_none() & (best.bank() == b)
    }

    /// Adds a new candidate of `class`.
    #[inline]
    fn offer(&mut self, class: usize, at: u64, key: CommandKey) {
        let floor = self.cmd_free.max(self.clock);
        let at = at.max(floor);
        self.wake = self.wake.min(Due::at(Time(at)));
        if floor - self.epoch > 2 * EPOCH {
            // The channel has been idle for so long that the choices are out of date.
            self.stale = ALL_STALE;
            self.chosen = false;
            return;
        }
        let new = self.choice(at, key);
        self.chosen &= self.next <= new;
        let from = self.choice(floor, 0);
        let best = &mut self.scan.best[class];
        self.stale |= u8::from(*best < from) << class;
        *best = new.min(*best);
    }

    /// Adds the activate or precharge that the oldest request of bank `b` for another row needs, if there is one.
    #[inline]
    fn offer_row(&mut self, s: &Commands, b: usize, dir: usize) {
        if (self.misses[dir] & !self.blocked) >> b & 1 == 0 {
            return;
        }
        let key = self.scan.lanes[b].miss_key[dir];
        if self.open >> b & 1 == 0 {
            self.offer(ACTIVATE, self.activate_at(b), key);
        } else if s.order == CommandOrder::FirstReady || self.hits[dir] >> b & 1 == 0 {
            self.offer(PRECHARGE, self.scan.lanes[b].pre_at, key);
        }
    }

    /// Banks with candidates for row hits, activates and precharges.
    #[inline]
    fn candidates(&mut self, s: &Commands) -> (u64, u64, u64) {
        let dir = usize::from(self.write_mode);
        let free = !self.active & !self.blocked;
        let misses = self.misses[dir] & free;
        let closing = misses & self.open;
        let hits = self.hits[dir] & free;
        let over = if closing & hits != 0 && self.none_overdue_until.by(Time(self.clock)).is_some() {
            self.overdue(s, closing & hits, dir)
        } else {
            0
        };
        if over | self.overdue != 0 {
            self.stale |= 1 << PRECHARGE | 1 << COLUMN;
            self.overdue = over;
        }
        let closing = match s.order {
            CommandOrder::HitFirst => closing & (!hits | over),
            CommandOrder::FirstReady => closing,
        };
        (hits & !over, misses & !self.open, closing)
    }

    /// Earliest column command among the banks with `hits` and the slots that rows were opened for.
    #[inline]
    fn search_columns(&self, hits: u64, floor: u64) -> TimedCommand {
        let here = usize::from(self.write_mode);
        let scan = &*self.scan;
        least(hits | self.active, |b| {
            let lane = &scan.lanes[b % BANKS];
            let place = usize::from(lane.places[here]);
            let limit = scan.group_col[place % (2 * BANKS)].max(scan.rank_col[(place >> PLACE_BITS) % (2 * BANKS)]);
            self.choice(lane.col_at.max(limit).max(floor), lane.col_key[here])
        })
    }

    #[inline]
    fn search_activates(&self, mask: u64, floor: u64) -> TimedCommand {
        let dir = usize::from(self.write_mode);
        least(mask, |b| self.choice(self.activate_at(b).max(floor), self.scan.lanes[b % BANKS].miss_key[dir]))
    }

    #[inline]
    fn search_precharges(&self, mask: u64, floor: u64) -> TimedCommand {
        let dir = usize::from(self.write_mode);
        least(mask, |b| {
            let lane = &self.scan.lanes[b % BANKS];
            self.choice(lane.pre_at.max(floor), lane.miss_key[dir])
        })
    }

    /// Preferred command of all classes.
    #[inline(always)]
    fn choose(&mut self, s: &Commands) -> TimedCommand {
        let floor = self.cmd_free.max(self.clock);
        if self.begin_epoch(floor) {
            self.stale = ALL_STALE;
        }
        let (hits, acts, pres) = self.candidates(s);
        // Evaluated without short circuits, to leave one unpredictable branch for each class.
        let from = self.choice(floor, 0);
        let again = |class: usize| (self.stale >> class & 1 == 1) | (self.scan.best[class] < from);
        let (columns, activates, precharges) = (again(COLUMN), again(ACTIVATE), again(PRECHARGE));
        if columns {
            self.scan.best[COLUMN] = self.search_columns(hits, floor);
        }
        if activates {
            self.scan.best[ACTIVATE] = self.search_activates(acts, floor);
        }
        if precharges {
            self.scan.best[PRECHARGE] = self.search_precharges(pres, floor);
        }
        let [c, a, p] = self.scan.best;
        debug_assert_eq!(c, self.search_columns(hits, floor));
        debug_assert_eq!(a, self.search_activates(acts, floor));
        debug_assert_eq!(p, self.search_precharges(pres, floor));
        let mut best = c.min(a).min(p);
        self.stale = 0;
        if self.blocked != 0 {
            if let Some((at, r)) = self.choose_refresh() {
                best = best.min(self.choice(at.max(floor), key(REFRESH, 0, r)));
            }
        }
        best
    }

    /// Banks among `mask` in which a request has waited past the age cap behind row hits.
    #[cold]
    fn overdue(&mut self, s: &Commands, mask: u64, dir: usize) -> u64 {
        let mut m = 0;
        for b in bits(mask) {
            let overdue_at = s.age_cap.plus(Time(self.slots[self.miss_of(b, dir)].arrive));
            let old = overdue_at.by(Time(self.clock)).is_some();
            m |= u64::from(old) << b;
        }
        if m == 0 {
            let queued = self.banks.iter().flat_map(|b| &b.q).flat_map(|q| self.list(q.head));
            let first = queued.map(|i| self.slots[i].arrive).min();
            self.none_overdue_until = first.map_or(Due::NEVER, |arrive| s.age_cap.plus(Time(arrive)));
        }
        m
    }

    #[inline(always)]
    fn issue(&mut self, s: &Commands, at: u64, key: TimedCommand, done: &mut Vec<DramCompletion>) {
        let (b, tier) = (key.bank(), key.tier());
        if tier == ACTIVE {
            let i = self.banks[b].active.take().expect("a row was opened for a request");
            self.active &= !(1 << b);
            self.active_writes &= !(1 << b);
            // The hits of the bank are candidates again.
            self.set_column_direction(b, [READ, WRITE]);
            for dir in [READ, WRITE] {
                if let Some(hit) = self.banks[b].q[dir].hit {
                    self.scan.lanes[b].col_key[dir] = self::key(QUEUE, self.slots[hit].age, b);
                }
            }
            return self.column_command(s, b, i, at, done);
        }
        if tier == REFRESH {
            return self.refresh(b, at);
        }
        let dir = usize::from(self.write_mode);
        if let Some(hit) = self.banks[b].q[dir].hit.filter(|i| self.slots[*i].age == key.age()) {
            let next = self.slots[hit].next;
            self.unlink(b, hit);
            self.find_hit(b, dir, next);
            self.slots[hit].outcome.get_or_insert(RowOutcome::Hit);
            self.column_command(s, b, hit, at, done);
            if s.release == EntryRelease::Activate {
                self.free_entry(dir, at, at);
            }
        } else if self.open >> b & 1 == 0 {
            self.activate(s, b, at);
        } else {
            let i = self.miss_of(b, dir);
            self.slots[i].outcome.get_or_insert(RowOutcome::Conflict);
            self.cmd_free = at + self.t.tck;
            self.stats.precharges += 1;
            self.close(b, at);
            // Row hits may have waited for this precharge.
            self.stale |= 1 << PRECHARGE | u8::from(self.is_best(COLUMN, b)) << COLUMN;
            self.offer_row(s, b, dir);
        }
    }

    /// The oldest request of bank `b` for a row other than the open one; such a request must exist.
    #[inline(always)]
    fn miss_of(&self, b: usize, dir: usize) -> SlotId {
        self.banks[b].q[dir].miss.expect("a request for another row")
    }

    #[inline(always)]
    fn activate(&mut self, s: &Commands, b: usize, at: u64) {
        let dir = usize::from(self.write_mode);
        let i = self.miss_of(b, dir);
        self.banks[b].active = Some(i);
        let key = key(ACTIVE, self.slots[i].age, b);
        self.scan.lanes[b].col_key = [key; 2];
        self.set_column_direction(b, [dir; 2]);
        self.slots[i].outcome.get_or_insert(RowOutcome::Miss);
        self.open_row(b, self.slots[i].row, at);
        self.unlink(b, i);
        self.active |= 1 << b;
        self.active_writes |= dir.to_u64() << b;
        self.opened(b);
        self.stale |= 1 << ACTIVATE;
        self.offer(COLUMN, self.column_at(b, dir), key);
        if s.release == EntryRelease::Activate {
            self.free_entry(dir, at, at);
        }
    }

    /// Issues the column command for slot `i`, frees the slot's entry, and chooses again what has changed.
    #[inline(never)]
    fn column_command(&mut self, s: &Commands, b: usize, i: SlotId, at: u64, done: &mut Vec<DramCompletion>) {
        let (dir, data_end) = self.column(b, i, at, done);
        self.put_off_columns(b, dir, at);
        match s.release {
            EntryRelease::Activate => {}
            EntryRelease::Column => self.free_entry(dir, at, at),
            EntryRelease::Data => self.free_entry(dir, if dir == READ { data_end } else { at }, at),
        }
        self.stale |= 1 << COLUMN;
        if s.order == CommandOrder::FirstReady {
            // The bank may have been the candidate for an earlier precharge already.
            self.stale |= u8::from(self.is_best(PRECHARGE, b)) << PRECHARGE;
        }
        self.offer_row(s, b, usize::from(self.write_mode));
    }

    /// Whether the watermarks and burst lengths require the channel to change its mode.
    #[inline]
    pub(super) fn mode_due(&self, modes: &Modes) -> bool {
        let due = self.mode_due_with(modes, self.queued);
        if !modes.refresh_turns || self.blocked == 0 && self.clock >= self.resting_until {
            return due;
        }
        self.mode_due_beside_refresh(due)
    }

    /// Whether a change of mode is due while ranks refresh: only requests for other ranks count, and a direction
    /// without such requests yields.
    #[cold]
    fn mode_due_beside_refresh(&self, due: bool) -> bool {
        let resting = self.ranks.iter().filter(|r| r.resting_until > self.clock).fold(self.blocked, |m, r| m | r.mask);
        let served = |dir: usize| (self.hits[dir] | self.misses[dir]) & !resting != 0;
        let here = self.active != 0 || served(usize::from(self.write_mode));
        let there = served(usize::from(!self.write_mode));
        if here == there {
            due
        } else {
            there
        }
    }

    #[inline]
    fn mode_due_with(&self, p: &Modes, [reads, writes]: [usize; 2]) -> bool {
        // This function is evaluated before each command, so unpredictable branches are avoided.
        // A read whose row is being opened has not been served, and every write delays its column command.
        let waits = (reads > 0) | (p.writes_yield & (self.active & !self.active_writes != 0));
        if !self.write_mode {
            let full = (writes > self.p.high) & ((self.burst_reads >= p.min_reads) | !waits);
            return full | (!waits & (writes > p.idle));
        }
        let low = (writes < p.low) & (waits | (writes <= p.idle));
        let spent = waits & (self.burst_writes >= p.max_writes) & (p.max_writes > 0);
        let long_enough = self.burst_writes >= p.min_writes;
        (long_enough & (low | spent)) | (waits & ((writes == 0) | !self.draining))
    }

    /// Changes the mode by these rules.
    #[inline]
    pub(super) fn change_mode(&mut self, modes: &Modes) {
        self.switch_mode(!modes.writes_yield || self.queued[WRITE] > self.p.high);
    }
}

impl Channel {
    /// Time of the earliest refresh that has not started.
    pub(super) fn next_refresh(&self) -> Due {
        self.ranks.iter().filter(|r| !r.refreshing).map(|r| r.refresh_due).min().unwrap_or(Due::NEVER)
    }

    /// Whether the next command, possible at `next`, and the state leave nothing but refreshes that follow one another
    /// until a request arrives: `catch_up` accounts for them then. Requests may wait, such as writes below the mark at
    /// which idle channels write.
    #[inline]
    pub(super) fn only_refreshes(&self, next: Due, turns: bool) -> bool {
        if !next.is_never() {
            return false;
        }
        // Beside a refresh of one rank, writes for the other ranks may go.
        let serves_others = turns && self.ranks.len() > 1;
        self.queued == [0, 0] || self.open | self.blocked == 0 && !serves_others
    }

    #[cold]
    pub(super) fn start_refresh(&mut self, due: u64) {
        for r in &mut self.ranks {
            if !r.refreshing && r.refresh_due.by(Time(due)).is_some() {
                r.refreshing = true;
                self.blocked |= r.mask;
                self.stale = ALL_STALE;
            }
        }
        self.refresh_due = self.next_refresh();
        self.clock = self.clock.max(due);
    }

    /// Changes between read mode and write mode; `draining` says whether write mode continues although reads wait.
    #[inline(never)]
    pub(super) fn switch_mode(&mut self, draining: bool) {
        if self.write_mode {
            self.stats.write_mode_ps += self.clock - self.mode_since;
            self.stats.drains += u64::from(self.draining);
        }
        self.draining = draining;
        self.mode_since = self.clock;
        self.write_mode = !self.write_mode;
        self.burst_reads = 0;
        self.burst_writes = 0;
        self.stats.mode_switches += 1;
        self.stale = ALL_STALE;
    }

    #[inline]
    pub(super) fn column_at(&self, b: usize, dir: usize) -> u64 {
        let (g, r) = (b >> self.group_shift, b >> self.rank_shift);
        let scan = &*self.scan;
        let limit = scan.group_col[(2 * g + dir) % (2 * BANKS)].max(scan.rank_col[(2 * r + dir) % (2 * BANKS)]);
        scan.lanes[b % BANKS].col_at.max(limit)
    }

    /// Sets the directions of bank `b`'s candidates for a column command, in read mode and in write mode.
    #[inline]
    pub(super) fn set_column_direction(&mut self, b: usize, dirs: [usize; 2]) {
        let (g, r) = (b >> self.group_shift, b >> self.rank_shift);
        let place = 2 * (g | r << PLACE_BITS);
        self.scan.lanes[b % BANKS].places = dirs.map(|dir| (place + dir * (1 + (1 << PLACE_BITS))).to_u16());
    }

    #[inline]
    pub(super) fn activate_at(&self, b: usize) -> u64 {
        let (g, r) = (b >> self.group_shift, b >> self.rank_shift);
        let scan = &*self.scan;
        scan.lanes[b % BANKS].act_at.max(scan.group_act[g % BANKS]).max(scan.rank_act[r % BANKS])
    }

    /// Time of the next step of a refresh, and its rank.
    #[cold]
    pub(super) fn choose_refresh(&self) -> Option<(u64, usize)> {
        let ready = |rank: &Rank| rank.refreshing && self.active & rank.mask == 0;
        let step = |(r, rank): (usize, &Rank)| {
            let open = self.open & rank.mask;
            let lanes = &self.scan.lanes;
            let at = if open != 0 {
                bits(open).map(|b| lanes[b].pre_at).max()
            } else {
                bits(rank.mask).map(|b| lanes[b].act_at).max()
            };
            (at.unwrap_or(0), r)
        };
        self.ranks.iter().enumerate().filter(|(_, rank)| ready(rank)).map(step).min()
    }

    /// Performs the next step of rank `r`'s refresh: closes its rows, then refreshes.
    #[cold]
    pub(super) fn refresh(&mut self, r: usize, at: u64) {
        self.cmd_free = at + self.t.tck;
        self.stale = ALL_STALE;
        let open = self.open & self.ranks[r].mask;
        if open != 0 {
            for b in bits(open) {
                self.stats.precharges += 1;
                self.close(b, at);
            }
            return;
        }
        self.log_command(at, DramCommand::Ref, r);
        let rank = &mut self.ranks[r];
        rank.refreshing = false;
        rank.refresh_due = rank.refresh_due.plus(Time(self.t.refi));
        rank.resting_until = at + self.t.rfc;
        self.resting_until = self.resting_until.max(rank.resting_until);
        self.blocked &= !rank.mask;
        for b in bits(rank.mask) {
            self.scan.lanes[b].act_at = at + self.t.rfc;
        }
        self.refresh_due = self.next_refresh();
        self.stats.refreshes += 1;
    }

    /// Opens a row and notes the constraints that its activate imposes.
    pub(super) fn open_row(&mut self, b: usize, row: RowId, at: u64) {
        self.log_command(at, DramCommand::Act, b);
        let t = &self.t;
        self.cmd_free = at + t.act_bus;
        self.stats.activates += 1;
        self.banks[b].row = Some(row);
        self.banks[b].accesses = 0;
        let lane = &mut self.scan.lanes[b % BANKS];
        lane.col_at = at + t.rcd;
        lane.pre_at = at + t.ras;
        lane.act_at = at + t.rc;
        let (group, r) = (b >> self.group_shift, b >> self.rank_shift);
        let rank = &mut self.ranks[r];
        rank.windows[rank.next_window] = at + t.faw;
        rank.next_window = (rank.next_window + 1) & 3;
        let window = rank.windows[rank.next_window];
        self.scan.group_act[group] = at + t.rrd_l;
        self.scan.rank_act[r] = window.max(at + t.rrd_s);
    }

    /// Issues the column command for slot `i` with its data, and applies the page policy; returns the direction, and the
    /// time at which the data ends.
    #[inline(always)]
    pub(super) fn column(&mut self, b: usize, i: SlotId, at: u64, done: &mut Vec<DramCompletion>) -> (usize, u64) {
        let s = self.slots[i];
        let dir = usize::from(s.dir);
        self.log_command(at, if dir == READ { DramCommand::Rd } else { DramCommand::Wr }, b);
        let t = &self.t;
        self.cmd_free = at + t.col_bus;
        self.banks[b].accesses += 1;
        let lane = &mut self.scan.lanes[b % BANKS];
        lane.pre_at = lane.pre_at.max(at + t.col_to_pre[dir]);
        let outcome = s.outcome.unwrap_or(RowOutcome::Hit);
        let data_end = at + if dir == READ { t.cl } else { t.cwl } + t.burst;
        self.stats.column(dir, outcome, t.burst, b);
        if dir == READ {
            self.burst_reads += 1;
            self.stats.deviation.read(b);
            self.stats.read_latency_ps += data_end - s.arrive;
            done.push(DramCompletion {
                token: s.token,
                class: s.class,
                outcome,
                at: Time(data_end + self.p.static_latency),
            });
        } else {
            self.burst_writes += 1;
        }
        self.recycle(i);
        if self.closes(b, dir) {
            self.stats.auto_precharges += 1;
            let pre = self.scan.lanes[b].pre_at;
            self.close(b, pre);
        }
        (dir, data_end)
    }

    /// Delays later column commands after a column command of bank `b` at `at`.
    #[inline]
    pub(super) fn put_off_columns(&mut self, b: usize, dir: usize, at: u64) {
        let (group, r) = (b >> self.group_shift, b >> self.rank_shift);
        let table = &self.t.col_to_col[dir];
        let scan = &mut *self.scan;
        for next in [READ, WRITE] {
            let when = &mut scan.group_col[(2 * group + next) % (2 * BANKS)];
            *when = (*when).max(at + table[SAME_GROUP][next]);
        }
        for rank in 0..self.ranks.len() {
            let gaps = if rank == r { table[SAME_RANK] } else { table[OTHER_RANK] };
            for next in [READ, WRITE] {
                let when = &mut scan.rank_col[(2 * rank + next) % (2 * BANKS)];
                *when = (*when).max(at + gaps[next]);
            }
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
            PagePolicy::OpenAdaptive => q.hit.is_none() && q.miss.is_some(),
            PagePolicy::ClosedAdaptive => q.hit.is_none(),
        }
    }
}
