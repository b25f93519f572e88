//! State of one memory channel: its queues, banks and ranks. Each scheduler chooses and issues commands in its own module,
//! with policy and state of its own.

use super::banks::{bits, hash, Banks, RequestSlot, RowId, SlotId};
use super::choice::{TimedCommand, QUEUE};
use super::gauge::QueueLevels;
use super::mapping::Decoded;
use super::plan::{DramPlan, LateRelease};
use super::timing::DramTiming;
use super::{ChannelShape, DramCompletion, DramRequest, PagePolicy, RowOutcome, Stats};
use crate::kernel::{Due, IdVec, Int, LineAddr, Real, Time};

pub(super) const READ: usize = 0;
pub(super) const WRITE: usize = 1;
/// Largest number of banks of a channel, since masks of banks are `u64`.
pub(super) const BANKS: usize = 64;
/// Number of counters of held writes, a power of two.
pub(super) const HELD: usize = 256;
/// Number of bits of an age; ages are renumbered when the bits are exhausted.
pub(super) const AGE_BITS: u32 = 28;

/// State of one bank that the scheduler reads for each command; it fits into one cache line of the computer that runs
/// the simulation.
#[repr(align(64))]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lane {
    pub act_at: u64,
    pub pre_at: u64,
    pub col_at: u64,
    /// Keys of the candidates by direction: `col_key` of the bank's oldest hit, or of the active slot in both
    /// directions, and `miss_key` of the bank's oldest miss.
    pub col_key: [u64; 2],
    pub miss_key: [u64; 2],
    /// Indices of the candidates' times in `group_col` and, in the higher bits, in `rank_col`.
    pub places: [u16; 2],
}

/// State that the scheduler scans for each command.
#[derive(Clone, Debug)]
pub(super) struct Scan {
    pub lanes: [Lane; BANKS],
    /// Earliest activate, and by direction (the lowest bit of the index) earliest column command, that bank group and
    /// rank allow.
    pub group_act: [u64; BANKS],
    pub group_col: [u64; 2 * BANKS],
    pub rank_act: [u64; BANKS],
    pub rank_col: [u64; 2 * BANKS],
    /// Preferred candidate of each class with its time, unless the class is `stale`.
    pub best: [TimedCommand; 3],
}

/// Classes of candidate commands.
pub(super) const COLUMN: usize = 0;
pub(super) const ACTIVATE: usize = 1;
pub(super) const PRECHARGE: usize = 2;
pub(super) const ALL_STALE: u8 = 7;

#[derive(Clone, Copy, Debug)]
pub(super) struct Rank {
    /// Ends of the tFAW windows that the last four activates began.
    pub windows: [u64; 4],
    pub next_window: usize,
    pub refresh_due: Due,
    pub mask: u64,
    pub refreshing: bool,
    /// End of the rank's last refresh.
    pub resting_until: u64,
}

/// Parameters of the policy that every scheduler has, converted for the hot loop.
#[derive(Clone, Debug)]
pub(super) struct ControllerPolicy {
    pub page: PagePolicy,
    pub row_access_limit: u32,
    pub high: usize,
    pub capacity: [usize; 2],
    pub static_latency: u64,
}

/// Policy and state of a scheduler, and its part of the work of a channel.
pub(super) trait Scheduling {
    /// Takes in slot `i`, a request for bank `b` that has arrived at `now`.
    fn accept(&mut self, ch: &mut Channel, i: SlotId, b: usize, dir: usize, now: u64);
    /// Issues every command that is possible up to `now`.
    fn issue_until(&mut self, ch: &mut Channel, now: u64, done: &mut Vec<DramCompletion>);
    /// Notes that the first requests of `banks` may have changed, apart from the scheduler's own commands.
    #[inline]
    fn disturb(&mut self, _banks: u64) {}
    /// First requests of the lists in front of the banks' lists, where there are such lists.
    #[inline]
    fn heads(&self) -> [Option<SlotId>; 2] {
        [None; 2]
    }
    /// Number of entries for each bank besides those of the read queue and the write queue.
    fn entries_per_bank(&self) -> usize {
        1
    }
    /// Tier of activates and precharges in the order of commands.
    fn row_tier(&self) -> u64 {
        QUEUE
    }
}

/// Number of used entries above which a watermark begins something, for a watermark that is a fraction of `entries`.
pub(super) fn above(fraction: f64, entries: u32) -> usize {
    (fraction * f64::from(entries)).floor().whole().to_usize()
}

/// Number of used entries below which a watermark ends something, for a watermark that is a fraction of `entries`.
pub(super) fn below(fraction: f64, entries: u32) -> usize {
    (fraction * f64::from(entries)).ceil().whole().to_usize()
}

/// State of one memory channel, whichever its scheduler.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    pub(super) t: DramTiming,
    pub(super) p: ControllerPolicy,
    pub(super) slots: IdVec<SlotId, RequestSlot>,
    pub(super) free: Option<SlotId>,
    pub(super) banks: Banks,
    pub(super) scan: Box<Scan>,
    pub(super) rank_shift: u32,
    pub(super) group_shift: u32,
    /// Tier of activates and precharges in the order of commands.
    pub(super) row_tier: u64,
    pub(super) ranks: Vec<Rank>,
    /// Banks with a queued slot for the open row (`hits`) and for another row (`misses`), by direction.
    pub(super) hits: [u64; 2],
    pub(super) misses: [u64; 2],
    pub(super) open: u64,
    pub(super) active: u64,
    pub(super) active_writes: u64,
    /// Banks of ranks that wait for a refresh or are being refreshed.
    pub(super) blocked: u64,
    /// Entries that count against the queues' capacity (`used`), and entries that wait for a command (`queued`).
    pub(super) used: [usize; 2],
    pub(super) queued: [usize; 2],
    /// Numbers of held writes by a hash of their lines.
    pub(super) held_writes: Box<[u16; HELD]>,
    /// Times at which read entries leave the queue, where an entry leaves with its data.
    releases: std::collections::VecDeque<u64>,
    pub(super) write_mode: bool,
    /// Whether write mode continues although reads wait.
    pub(super) draining: bool,
    pub(super) burst_reads: u32,
    pub(super) burst_writes: u32,
    pub(super) cmd_free: u64,
    pub(super) clock: u64,
    pub(super) wake: Due,
    /// Command to issue at `wake`, valid while `chosen`.
    pub(super) next: TimedCommand,
    /// Time that the times in choices are relative to.
    pub(super) epoch: u64,
    pub(super) chosen: bool,
    pub(super) stale: u8,
    /// Banks in which a request had waited past the age cap behind row hits at the last choice (`overdue`), and a time
    /// before which no request does (`none_overdue_until`).
    pub(super) overdue: u64,
    pub(super) none_overdue_until: Due,
    /// Time of the earliest refresh that has not started.
    pub(super) refresh_due: Due,
    /// Time at which the last refresh of any rank ends.
    pub(super) resting_until: u64,
    pub(super) next_age: u32,
    /// Time at which the present mode began.
    pub(super) mode_since: u64,
    pub(super) stats: Stats,
    levels: [QueueLevels; 2],
    #[cfg(test)]
    pub(super) log: Vec<(u64, DramCommand, usize)>,
}

/// Commands in the form that tests see; the place is a bank, or a rank for a refresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DramCommand {
    Act,
    Pre,
    Rd,
    Wr,
    Ref,
}

impl Channel {
    pub(super) fn new(plan: &DramPlan, s: &impl Scheduling) -> Channel {
        let (shape, t): (&ChannelShape, DramTiming) = (&plan.shape, plan.timing.clone());
        let nbanks = (shape.ranks * shape.bank_groups * shape.banks_per_group).to_usize();
        let per_rank = nbanks / shape.ranks.to_usize();
        let capacity = plan.entries.map(Int::to_usize);
        let n = capacity[READ] + capacity[WRITE] + nbanks * s.entries_per_bank();
        let slots = (0..n)
            .map(|i| RequestSlot {
                line: LineAddr(0),
                arrive: 0,
                age: 0,
                token: None,
                row: RowId::new(0),
                next: (i + 1 < n).then(|| SlotId::new(i + 1)),
                prev: None,
                dir: 0,
                bank: 0,
                class: 0,
                outcome: None,
            })
            .collect();
        let mut channel = Channel {
            p: ControllerPolicy {
                page: plan.page,
                row_access_limit: plan.row_access_limit,
                high: above(plan.write_high, plan.entries[WRITE]),
                capacity,
                static_latency: (plan.static_latency_ns * 1000.0).round().whole(),
            },
            slots,
            free: Some(SlotId::new(0)),
            banks: Banks::new(),
            scan: Box::new(Scan {
                lanes: [Lane::default(); BANKS],
                group_act: [0; BANKS],
                group_col: [0; 2 * BANKS],
                rank_act: [0; BANKS],
                rank_col: [0; 2 * BANKS],
                best: [TimedCommand::NONE; 3],
            }),
            rank_shift: per_rank.trailing_zeros(),
            group_shift: shape.banks_per_group.trailing_zeros(),
            row_tier: s.row_tier(),
            ranks: (0..shape.ranks.to_usize())
                .map(|r| Rank {
                    windows: [0; 4],
                    next_window: 0,
                    // The refreshes of the ranks are spread evenly over the interval.
                    refresh_due: if plan.refresh {
                        Due::at(Time(t.refi + t.refi * r.to_u64() / u64::from(shape.ranks)))
                    } else {
                        Due::NEVER
                    },
                    mask: ((1u128 << per_rank) - 1).to_u64() * (1u64 << (r * per_rank)),
                    refreshing: false,
                    resting_until: 0,
                })
                .collect(),
            t,
            hits: [0; 2],
            misses: [0; 2],
            open: 0,
            active: 0,
            active_writes: 0,
            blocked: 0,
            used: [0; 2],
            queued: [0; 2],
            held_writes: Box::new([0; HELD]),
            releases: std::collections::VecDeque::with_capacity(capacity[READ]),
            write_mode: false,
            draining: false,
            burst_reads: 0,
            burst_writes: 0,
            cmd_free: 0,
            clock: 0,
            wake: Due::NEVER,
            next: TimedCommand::NONE,
            epoch: 0,
            chosen: false,
            stale: ALL_STALE,
            overdue: 0,
            none_overdue_until: Due::NEVER,
            next_age: 0,
            mode_since: 0,
            refresh_due: Due::NEVER,
            resting_until: 0,
            levels: [READ, WRITE].map(|dir| QueueLevels::new(plan.full_marks[dir], plan.entries[dir])),
            stats: Stats { bank_accesses: vec![0; nbanks], ..Stats::default() },
            #[cfg(test)]
            log: Vec::new(),
        };
        channel.refresh_due = channel.next_refresh();
        for b in 0..nbanks {
            channel.set_column_direction(b, [READ, WRITE]);
        }
        channel
    }

    /// Records a command for tests.
    #[inline]
    pub(super) fn log_command(&mut self, _at: u64, _command: DramCommand, _place: usize) {
        #[cfg(test)]
        self.log.push((_at, _command, _place));
    }

    #[inline]
    pub(super) fn can_accept(&self, write: bool) -> bool {
        self.used[usize::from(write)] < self.p.capacity[usize::from(write)]
    }

    /// Counters as of `now`.
    pub(super) fn stats(&self, now: u64) -> Stats {
        let mut s = self.stats.clone();
        for dir in [READ, WRITE] {
            s.entry_ps[dir] += i128::from(now) * i128::from(self.used[dir].to_u64());
        }
        s.marked_ps = self.levels.map(|l| l.mark.read(now));
        s.full_ps = self.levels.map(|l| l.full.read(now));
        // Entries that leave at a known later time were counted up to that time.
        let later: i128 = self.releases.iter().map(|t| i128::from(*t.max(&now))).sum();
        s.entry_ps[READ] -= later;
        if self.write_mode {
            s.write_mode_ps += now.saturating_sub(self.mode_since);
        }
        s
    }

    /// Accepts a request at `now`; all commands before `now` must have been issued.
    #[inline(always)]
    pub(super) fn push(
        &mut self,
        s: &mut impl Scheduling,
        now: u64,
        req: DramRequest,
        d: Decoded,
        done: &mut Vec<DramCompletion>,
    ) {
        debug_assert!(self.can_accept(req.write), "pushed into a full queue");
        let now = self.t.edge(now);
        if self.wake.is_never() {
            s.disturb(self.catch_up(now));
        }
        self.clock = self.clock.max(now);
        let b = usize::from(d.bank);
        if self.has_write(s, b, req.line) {
            if req.write {
                self.stats.writes_merged += 1;
            } else {
                self.stats.reads_forwarded += 1;
                done.push(DramCompletion {
                    token: req.token,
                    class: req.class,
                    outcome: RowOutcome::Forwarded,
                    at: Time(now + self.t.tck + self.p.static_latency),
                });
            }
            return;
        }
        if self.next_age >> AGE_BITS != 0 {
            self.renumber(s.heads());
            s.disturb(u64::MAX);
        }
        let dir = usize::from(req.write);
        let i = self.free.expect("an entry is free");
        let row = RowId::new(d.row.to_usize());
        let slot = &mut self.slots[i];
        self.free = slot.next;
        *slot = RequestSlot {
            line: req.line,
            arrive: now,
            age: self.next_age,
            token: req.token,
            row,
            next: None,
            prev: None,
            dir: u8::from(req.write),
            bank: d.bank,
            class: req.class,
            outcome: None,
        };
        self.held_writes[hash(req.line)] += u16::from(req.write);
        self.next_age += 1;
        self.used[dir] += 1;
        self.levels[dir].set_occupancy(self.used[dir], now);
        // The occupancy integral is the sum of the times at which entries left, minus the times at which they came.
        self.stats.entry_ps[dir] -= i128::from(now);
        s.accept(self, i, b, dir, now);
    }

    /// Issues every command that is possible up to `now`; returns whether entries became free.
    #[inline(always)]
    pub(super) fn advance(&mut self, s: &mut impl Scheduling, now: u64, done: &mut Vec<DramCompletion>) -> bool {
        let before = self.used;
        self.release(now);
        s.issue_until(self, now, done);
        self.used[READ] < before[READ] || self.used[WRITE] < before[WRITE]
    }

    /// Adds slot `i`, which has arrived at `now`, to the requests of bank `b`, of which one is served at a time.
    #[inline]
    pub(super) fn add_request(&mut self, i: SlotId, b: usize, dir: usize, now: u64) {
        self.link(i, b, dir);
        self.sort_in(i, b, dir);
        self.wake = self.wake.min(Due::at(Time(now)));
    }

    /// Closes the row of bank `b` if it has been idle for `idle` picoseconds by `now`; the close takes effect at the time when it
    /// was due, because a request for the bank is the first event that depends on it. The row stays open where a
    /// conflict or a refresh is going to close it.
    #[inline]
    pub(super) fn close_idle(&mut self, b: usize, idle: u64, now: u64) {
        let at = self.scan.lanes[b].pre_at + idle;
        if at > now {
            return;
        }
        let bank = &self.banks[b];
        let wanted = bank.active.is_some() || bank.q.iter().any(|q| q.hit.is_some());
        let closing = bank.q[usize::from(self.write_mode)].miss.is_some() || self.blocked >> b & 1 == 1;
        if bank.row.is_some() && !wanted && !closing {
            self.stats.precharges += 1;
            self.close(b, at);
        }
    }

    /// Frees the queue entry of a request, all of whose commands were decided at `now` and whose data has passed at `data_end`.
    #[inline]
    pub(super) fn free_late(&mut self, release: LateRelease, dir: usize, now: u64, data_end: u64) {
        match release {
            LateRelease::Column => self.free_entry(dir, now, now),
            LateRelease::Data => self.free_entry(dir, if dir == READ { data_end } else { now }, now),
        }
    }

    /// Frees a queue entry at `at`: immediately, or later, when the data of the entry has passed.
    #[inline(always)]
    pub(super) fn free_entry(&mut self, dir: usize, at: u64, now: u64) {
        self.stats.entry_ps[dir] += i128::from(at);
        if at <= now {
            self.used[dir] -= 1;
            self.levels[dir].set_occupancy(self.used[dir], at);
        } else {
            self.releases.push_back(at);
        }
    }

    /// Frees the read entries whose data has passed by `now`.
    pub(super) fn release(&mut self, now: u64) {
        while let Some(&at) = self.releases.front().filter(|t| **t <= now) {
            self.releases.pop_front();
            self.used[READ] -= 1;
            self.levels[READ].set_occupancy(self.used[READ], at);
        }
    }

    pub(super) fn next_release(&self) -> Due {
        self.releases.front().map_or(Due::NEVER, |at| Due::at(Time(*at)))
    }

    /// Accounts for the refreshes during an idle time that ends at `now`; returns the banks of the ranks that refreshed.
    #[inline(never)]
    fn catch_up(&mut self, now: u64) -> u64 {
        let mut refreshed = 0;
        for r in 0..self.ranks.len() {
            let Some(Time(due)) = self.ranks[r].refresh_due.by(Time(now)) else { continue };
            let missed = (now - due) / self.t.refi;
            let last = due + missed * self.t.refi;
            let mut at = last;
            let mask = self.ranks[r].mask;
            for b in bits(mask) {
                if self.banks[b].row.is_some() {
                    self.stats.precharges += 1;
                    self.close(b, due.max(self.scan.lanes[b].pre_at));
                }
                at = at.max(self.scan.lanes[b].act_at);
            }
            for b in bits(mask) {
                self.scan.lanes[b].act_at = at + self.t.rfc;
            }
            refreshed |= mask;
            self.stats.refreshes += missed + 1;
            self.ranks[r].refresh_due = Due::at(Time(last + self.t.refi));
            self.ranks[r].resting_until = at + self.t.rfc;
            self.resting_until = self.resting_until.max(at + self.t.rfc);
        }
        self.refresh_due = self.next_refresh();
        refreshed
    }
}
