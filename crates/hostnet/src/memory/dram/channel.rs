//! One channel: its queues, banks and ranks. `scheduler` decides and issues.

use super::mapping::Decoded;
use super::timing::Timing;
use super::{Completion, DramSpec, PagePolicy, Release, Request, RowOutcome, Scheduler, Shape, Stats};
use crate::kernel::Time;

pub(super) const NONE: u16 = u16::MAX;
pub(super) const NO_ROW: u32 = u32::MAX;
pub(super) const NEVER: u64 = u64::MAX;
pub(super) const READ: usize = 0;
pub(super) const WRITE: usize = 1;

/// A queued request. Slots of one bank and direction form a list, oldest first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub line: u64,
    pub arrive: u64,
    pub seq: u64,
    pub token: u32,
    pub row: u32,
    pub next: u16,
    pub prev: u16,
    pub dir: u8,
    pub class: u8,
    /// What the request met, settled by the first command issued for it.
    pub outcome: Option<RowOutcome>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct BankQueue {
    pub head: u16,
    pub tail: u16,
    /// Oldest slot for the open row, and oldest slot for another one.
    pub hit: u16,
    pub miss: u16,
}

const EMPTY: BankQueue = BankQueue { head: NONE, tail: NONE, hit: NONE, miss: NONE };

#[derive(Clone, Copy, Debug)]
pub(super) struct Bank {
    pub row: u32,
    /// Slot that the open row was activated for and that has not had its data yet.
    pub active: u16,
    pub group: u8,
    pub rank: u8,
    /// Column commands since the activate.
    pub accesses: u32,
    pub act_at: u64,
    pub pre_at: u64,
    pub col_at: u64,
    pub q: [BankQueue; 2],
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Rank {
    /// The last four activates.
    pub acts: [u64; 4],
    pub acts_next: usize,
    pub refresh_due: u64,
    pub mask: u64,
    pub refreshing: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Group {
    pub act_at: u64,
    /// Earliest read and write command.
    pub col_at: [u64; 2],
}

/// Policy numbers of the spec, as the hot loop wants them.
#[derive(Clone, Debug)]
pub(super) struct Policy {
    pub page: PagePolicy,
    pub scheduler: Scheduler,
    pub release: Release,
    pub row_access_limit: u32,
    pub age_cap: u64,
    pub high: usize,
    pub low: usize,
    pub idle: usize,
    pub min_reads: u32,
    pub min_writes: u32,
    pub max_writes: u32,
    pub capacity: [usize; 2],
    pub static_latency: u64,
}

/// State of one channel.
#[derive(Clone, Debug)]
pub struct Channel {
    pub(super) t: Timing,
    pub(super) p: Policy,
    pub(super) slots: Vec<Slot>,
    free: u16,
    pub(super) banks: Vec<Bank>,
    pub(super) groups: Vec<Group>,
    pub(super) groups_per_rank: usize,
    pub(super) ranks: Vec<Rank>,
    /// Banks with a queued slot for the open row / for another row, by direction.
    pub(super) hits: [u64; 2],
    pub(super) misses: [u64; 2],
    pub(super) open: u64,
    pub(super) active: u64,
    /// Banks of ranks that wait for, or are in, a refresh.
    pub(super) blocked: u64,
    /// Entries that count against the queue's capacity, and entries waiting for a command.
    pub(super) used: [usize; 2],
    pub(super) queued: [usize; 2],
    /// Times at which read entries leave the queue when they leave with their data.
    releases: std::collections::VecDeque<u64>,
    pub(super) write_mode: bool,
    pub(super) burst_reads: u32,
    pub(super) burst_writes: u32,
    pub(super) cmd_free: u64,
    pub(super) clock: u64,
    pub(super) wake: u64,
    seq: u64,
    metered: u64,
    pub stats: Stats,
}

impl Channel {
    pub(super) fn new(spec: &DramSpec, shape: &Shape, t: Timing) -> Channel {
        let nbanks = (shape.ranks * shape.bank_groups * shape.banks_per_group) as usize;
        let per_rank = nbanks / shape.ranks as usize;
        let (rpq, wpq) = (spec.rpq as usize, spec.wpq as usize);
        let n = rpq + wpq + nbanks;
        let slots = (0..n)
            .map(|i| Slot {
                line: 0,
                arrive: 0,
                seq: 0,
                token: 0,
                row: 0,
                next: if i + 1 < n { i as u16 + 1 } else { NONE },
                prev: NONE,
                dir: 0,
                class: 0,
                outcome: None,
            })
            .collect();
        let of_wpq = |f: f64| f * wpq as f64;
        Channel {
            p: Policy {
                page: spec.page_policy,
                scheduler: spec.scheduler,
                release: spec.entry_release,
                row_access_limit: spec.row_access_limit,
                age_cap: if spec.age_cap_ns == 0 { NEVER } else { spec.age_cap_ns * 1000 },
                high: of_wpq(spec.write_high).floor() as usize,
                low: of_wpq(spec.write_low).ceil() as usize,
                idle: of_wpq(spec.write_idle).floor() as usize,
                min_reads: spec.min_read_burst,
                min_writes: spec.min_write_burst,
                max_writes: spec.max_write_burst,
                capacity: [rpq, wpq],
                static_latency: (spec.static_latency_ns * 1000.0).round() as u64,
            },
            slots,
            free: 0,
            banks: (0..nbanks)
                .map(|b| Bank {
                    row: NO_ROW,
                    active: NONE,
                    group: (b / shape.banks_per_group as usize) as u8,
                    rank: (b / per_rank) as u8,
                    accesses: 0,
                    act_at: 0,
                    pre_at: 0,
                    col_at: 0,
                    q: [EMPTY; 2],
                })
                .collect(),
            groups: vec![Group::default(); (shape.ranks * shape.bank_groups) as usize],
            groups_per_rank: shape.bank_groups as usize,
            ranks: (0..shape.ranks as usize)
                .map(|r| Rank {
                    acts: [NEVER; 4],
                    acts_next: 0,
                    // Ranks take turns within the interval.
                    refresh_due: if spec.refresh { t.refi + t.refi * r as u64 / u64::from(shape.ranks) } else { NEVER },
                    mask: ((1u128 << per_rank) - 1) as u64 * (1u64 << (r * per_rank)),
                    refreshing: false,
                })
                .collect(),
            t,
            hits: [0; 2],
            misses: [0; 2],
            open: 0,
            active: 0,
            blocked: 0,
            used: [0; 2],
            queued: [0; 2],
            releases: std::collections::VecDeque::with_capacity(rpq),
            write_mode: false,
            burst_reads: 0,
            burst_writes: 0,
            cmd_free: 0,
            clock: 0,
            wake: NEVER,
            seq: 0,
            metered: 0,
            stats: Stats { bank_accesses: vec![0; nbanks], ..Stats::default() },
        }
    }

    #[inline]
    pub(super) fn can_accept(&self, write: bool) -> bool {
        self.used[write as usize] < self.p.capacity[write as usize]
    }

    /// Adds to the occupancy and mode meters up to `now`.
    #[inline]
    pub(super) fn meter(&mut self, now: u64) {
        if now > self.metered {
            let dt = now - self.metered;
            self.metered = now;
            self.stats.rpq_entry_ps += dt as u128 * self.used[READ] as u128;
            self.stats.wpq_entry_ps += dt as u128 * self.used[WRITE] as u128;
            if self.write_mode {
                self.stats.write_mode_ps += dt;
            }
        }
    }

    /// Takes a request in at `now`. A completion comes back at once for a read that a
    /// queued write answers.
    pub(super) fn push(&mut self, now: u64, req: Request, d: Decoded) -> Option<Completion> {
        debug_assert!(self.can_accept(req.write), "pushed into a full queue");
        let now = if self.p.scheduler.aligned() { now.div_ceil(self.t.tck) * self.t.tck } else { now };
        if self.wake == NEVER {
            self.catch_up(now);
        }
        self.clock = self.clock.max(now);
        self.meter(now);
        let b = d.bank as usize;
        if self.has_write(b, req.line) {
            if req.write {
                self.stats.writes_merged += 1;
                return None;
            }
            self.stats.reads_forwarded += 1;
            return Some(Completion {
                token: req.token,
                class: req.class,
                outcome: RowOutcome::Forwarded,
                at: Time(now + self.t.tck + self.p.static_latency),
            });
        }
        let dir = req.write as usize;
        let i = self.free;
        let s = &mut self.slots[i as usize];
        self.free = s.next;
        *s = Slot {
            line: req.line,
            arrive: now,
            seq: self.seq,
            token: req.token,
            row: d.row,
            next: NONE,
            prev: self.banks[b].q[dir].tail,
            dir: dir as u8,
            class: req.class,
            outcome: None,
        };
        self.seq += 1;
        let q = &mut self.banks[b].q[dir];
        match q.tail {
            NONE => q.head = i,
            tail => self.slots[tail as usize].next = i,
        }
        q.tail = i;
        if d.row == self.banks[b].row {
            if self.banks[b].q[dir].hit == NONE {
                self.banks[b].q[dir].hit = i;
                self.hits[dir] |= 1 << b;
            }
        } else if self.banks[b].q[dir].miss == NONE {
            self.banks[b].q[dir].miss = i;
            self.misses[dir] |= 1 << b;
        }
        self.used[dir] += 1;
        self.queued[dir] += 1;
        self.wake = self.wake.min(self.cmd_free.max(now));
        None
    }

    fn has_write(&self, b: usize, line: u64) -> bool {
        let bank = &self.banks[b];
        let mut i = bank.q[WRITE].head;
        while i != NONE {
            let s = &self.slots[i as usize];
            if s.line == line {
                return true;
            }
            i = s.next;
        }
        bank.active != NONE && {
            let s = &self.slots[bank.active as usize];
            s.dir as usize == WRITE && s.line == line
        }
    }

    /// Takes slot `i` out of its bank's list; the caller refreshes `hit` and `miss`.
    pub(super) fn unlink(&mut self, b: usize, i: u16) {
        let Slot { next, prev, dir, .. } = self.slots[i as usize];
        let q = &mut self.banks[b].q[dir as usize];
        match prev {
            NONE => q.head = next,
            p => self.slots[p as usize].next = next,
        }
        match next {
            NONE => q.tail = prev,
            n => self.slots[n as usize].prev = prev,
        }
        self.queued[dir as usize] -= 1;
    }

    pub(super) fn recycle(&mut self, i: u16) {
        self.slots[i as usize].next = self.free;
        self.free = i;
    }

    /// The first slot from `i` on whose row is, or is not, `row`.
    #[inline]
    fn first(&self, mut i: u16, row: u32, same: bool) -> u16 {
        while i != NONE && (self.slots[i as usize].row == row) != same {
            i = self.slots[i as usize].next;
        }
        i
    }

    /// Sets the oldest hit of a bank's list, searching from `from`.
    #[inline]
    pub(super) fn find_hit(&mut self, b: usize, dir: usize, from: u16) {
        let hit = match self.banks[b].row {
            NO_ROW => NONE,
            row => self.first(from, row, true),
        };
        self.banks[b].q[dir].hit = hit;
        set(&mut self.hits[dir], b, hit != NONE);
    }

    #[inline]
    pub(super) fn find_miss(&mut self, b: usize, dir: usize) {
        let row = self.banks[b].row;
        let head = self.banks[b].q[dir].head;
        let miss = if row == NO_ROW { head } else { self.first(head, row, false) };
        self.banks[b].q[dir].miss = miss;
        set(&mut self.misses[dir], b, miss != NONE);
    }

    /// The row of bank `b` changed: sorts its queues into hits and misses anew.
    pub(super) fn row_changed(&mut self, b: usize) {
        set(&mut self.open, b, self.banks[b].row != NO_ROW);
        for dir in [READ, WRITE] {
            self.find_hit(b, dir, self.banks[b].q[dir].head);
            self.find_miss(b, dir);
        }
    }

    /// Frees a queue entry at `at`, now or when its data has passed.
    pub(super) fn free_entry(&mut self, dir: usize, at: u64, now: u64) {
        if at <= now {
            self.meter(now);
            self.used[dir] -= 1;
        } else {
            self.releases.push_back(at);
        }
    }

    /// Frees the read entries whose data has passed. True when there were any.
    pub(super) fn release(&mut self, now: u64) -> bool {
        let mut any = false;
        while self.releases.front().is_some_and(|&t| t <= now) {
            let at = self.releases.pop_front().unwrap_or(now);
            self.meter(at);
            self.used[READ] -= 1;
            any = true;
        }
        any
    }

    pub(super) fn next_release(&self) -> u64 {
        self.releases.front().copied().unwrap_or(NEVER)
    }

    /// Accounts for the refreshes that fell into an idle time ending at `now`.
    fn catch_up(&mut self, now: u64) {
        for r in 0..self.ranks.len() {
            let due = self.ranks[r].refresh_due;
            if due > now {
                continue;
            }
            let missed = (now - due) / self.t.refi;
            let last = due + missed * self.t.refi;
            let mut at = last;
            let mask = self.ranks[r].mask;
            for b in bits(mask) {
                let bank = &mut self.banks[b];
                if bank.row != NO_ROW {
                    let pre = due.max(bank.pre_at);
                    bank.act_at = bank.act_at.max(pre + self.t.rp);
                    bank.row = NO_ROW;
                    self.stats.precharges += 1;
                    self.row_changed(b);
                }
                at = at.max(self.banks[b].act_at);
            }
            for b in bits(mask) {
                self.banks[b].act_at = at + self.t.rfc;
            }
            self.stats.refreshes += missed + 1;
            self.ranks[r].refresh_due = last + self.t.refi;
        }
    }
}

#[inline]
pub(super) fn set(mask: &mut u64, bit: usize, on: bool) {
    *mask = (*mask & !(1 << bit)) | (u64::from(on) << bit);
}

/// The positions of the set bits, lowest first.
#[inline]
pub(super) fn bits(mut m: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        (m != 0).then(|| {
            let b = m.trailing_zeros() as usize;
            m &= m - 1;
            b
        })
    })
}
