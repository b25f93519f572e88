//! Banks of a channel, and the lists of requests that wait for each bank. A bank has one list for each direction in
//! order of arrival, and keeps the oldest request for the open row and the oldest for another row.

use super::channel::{Channel, DramCommand, Scheduling, ALL_STALE, BANKS, HELD, READ, WRITE};
use super::choice::{key, ACTIVE, QUEUE};
use super::RowOutcome;
use crate::kernel::ids::niche_id;
use crate::kernel::{Int, LineAddr, TxnId};
use std::num::{NonZeroU16, NonZeroU32};
use std::ops::{Index, IndexMut};

niche_id!(
    /// An entry of a channel's queues.
    SlotId(NonZeroU16)
);

niche_id!(
    /// A row of a bank.
    RowId(NonZeroU32)
);

/// A queued request. Slots of one bank and direction form a list, oldest first.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestSlot {
    pub line: LineAddr,
    pub arrive: u64,
    /// Order of arrival.
    pub age: u32,
    pub token: Option<TxnId>,
    pub row: RowId,
    pub next: Option<SlotId>,
    pub prev: Option<SlotId>,
    pub dir: u8,
    pub bank: u8,
    pub class: u8,
    /// Row outcome of the request, which the first command issued for it determines.
    pub outcome: Option<RowOutcome>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct BankQueue {
    pub head: Option<SlotId>,
    pub tail: Option<SlotId>,
    /// Oldest slot for the open row (`hit`), and oldest slot for another row (`miss`).
    pub hit: Option<SlotId>,
    pub miss: Option<SlotId>,
}

const EMPTY: BankQueue = BankQueue { head: None, tail: None, hit: None, miss: None };

#[derive(Clone, Copy, Debug)]
pub(super) struct Bank {
    /// The open row.
    pub row: Option<RowId>,
    /// Slot that the open row was activated for and whose column command has not been issued.
    pub active: Option<SlotId>,
    /// Column commands issued since the row was activated.
    pub accesses: u32,
    pub q: [BankQueue; 2],
}

/// Banks of a channel by number. Numbers are below `BANKS`; masking them avoids a bounds check. Banks beyond the
/// channel's own stay empty.
#[derive(Clone, Debug)]
pub(super) struct Banks(Box<[Bank; BANKS]>);

impl Banks {
    /// Makes closed banks with empty queues.
    pub(super) fn new() -> Banks {
        Banks(Box::new([Bank { row: None, active: None, accesses: 0, q: [EMPTY; 2] }; BANKS]))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Bank> {
        self.0.iter()
    }
}

impl Index<usize> for Banks {
    type Output = Bank;
    #[inline]
    fn index(&self, b: usize) -> &Bank {
        &self.0[b % BANKS]
    }
}

impl IndexMut<usize> for Banks {
    #[inline]
    fn index_mut(&mut self, b: usize) -> &mut Bank {
        &mut self.0[b % BANKS]
    }
}

impl Channel {
    #[inline]
    pub(super) fn link(&mut self, i: SlotId, b: usize, dir: usize) {
        let q = &mut self.banks[b].q[dir];
        self.slots[i].prev = q.tail;
        self.slots[i].next = None;
        match q.tail {
            None => q.head = Some(i),
            Some(tail) => self.slots[tail].next = Some(i),
        }
        q.tail = Some(i);
        self.queued[dir] += 1;
        self.draining |= self.write_mode && self.queued[WRITE] > self.p.high;
    }

    /// Makes slot `i` the hit or the miss of the slot's bank, if the bank has none.
    #[inline]
    pub(super) fn sort_in(&mut self, i: SlotId, b: usize, dir: usize) {
        let q = self.banks[b].q[dir];
        if self.banks[b].row == Some(self.slots[i].row) {
            if q.hit.is_none() {
                self.set_hit(b, dir, Some(i));
            }
        } else if q.miss.is_none() {
            self.set_miss(b, dir, Some(i));
        }
    }

    /// Renumbers the ages from zero upwards in the same order.
    #[cold]
    pub(super) fn renumber(&mut self, heads: [Option<SlotId>; 2]) {
        let mut live: Vec<SlotId> = Vec::new();
        heads.into_iter().for_each(|head| live.extend(self.list(head)));
        for bank in self.banks.iter() {
            live.extend(bank.active);
            bank.q.iter().for_each(|q| live.extend(self.list(q.head)));
        }
        live.sort_by_key(|&i| self.slots[i].age);
        self.next_age = live.len().to_u32();
        for (age, i) in (0..).zip(live) {
            self.slots[i].age = age;
        }
        // Choices made so far refer to the previous ages.
        self.stale = ALL_STALE;
        self.chosen = false;
        for b in 0..BANKS {
            let Bank { active, q, .. } = self.banks[b];
            if let Some(active) = active {
                self.scan.lanes[b].col_key = [key(ACTIVE, self.slots[active].age, b); 2];
            }
            for dir in [READ, WRITE] {
                self.set_hit(b, dir, q[dir].hit);
                self.set_miss(b, dir, q[dir].miss);
            }
        }
    }

    /// The slots of the list that starts at `head`, oldest first.
    pub(super) fn list(&self, head: Option<SlotId>) -> impl Iterator<Item = SlotId> + '_ {
        std::iter::successors(head, |i| self.slots[*i].next)
    }

    #[inline(always)]
    pub(super) fn set_hit(&mut self, b: usize, dir: usize, i: Option<SlotId>) {
        self.banks[b].q[dir].hit = i;
        set(&mut self.hits[dir], b, i.is_some());
        if let Some(i) = i.filter(|_| self.active >> b & 1 == 0) {
            self.scan.lanes[b].col_key[dir] = key(QUEUE, self.slots[i].age, b);
        }
    }

    #[inline]
    pub(super) fn set_miss(&mut self, b: usize, dir: usize, i: Option<SlotId>) {
        self.banks[b].q[dir].miss = i;
        set(&mut self.misses[dir], b, i.is_some());
        if let Some(i) = i {
            self.scan.lanes[b].miss_key[dir] = key(self.row_tier, self.slots[i].age, b);
        }
    }

    /// Whether a write of `line` waits. The counters answer for most lines without a search.
    #[inline]
    pub(super) fn has_write(&self, s: &impl Scheduling, b: usize, line: LineAddr) -> bool {
        self.held_writes[hash(line)] != 0 && self.finds_write(s.heads()[WRITE], b, line)
    }

    #[inline(never)]
    fn finds_write(&self, head: Option<SlotId>, b: usize, line: LineAddr) -> bool {
        let bank = &self.banks[b];
        let is_it = |i: SlotId| self.slots[i].line == line;
        self.list(bank.q[WRITE].head).any(is_it)
            || self.list(head).any(is_it)
            || bank.active.is_some_and(|i| usize::from(self.slots[i].dir) == WRITE && is_it(i))
    }

    /// Removes slot `i` from its bank's list; the caller updates `hit` and `miss`.
    pub(super) fn unlink(&mut self, b: usize, i: SlotId) {
        let RequestSlot { next, prev, dir, .. } = self.slots[i];
        let q = &mut self.banks[b].q[usize::from(dir)];
        match prev {
            None => q.head = next,
            Some(p) => self.slots[p].next = next,
        }
        match next {
            None => q.tail = prev,
            Some(n) => self.slots[n].prev = prev,
        }
        self.queued[usize::from(dir)] -= 1;
    }

    pub(super) fn recycle(&mut self, i: SlotId) {
        let RequestSlot { line, dir, .. } = self.slots[i];
        self.held_writes[hash(line)] -= u16::from(dir);
        self.slots[i].next = self.free;
        self.free = Some(i);
    }

    /// First slot from `i` on whose row equals `row` if `same`, or differs from `row` otherwise.
    #[inline]
    fn first(&self, head: Option<SlotId>, row: RowId, same: bool) -> Option<SlotId> {
        self.list(head).find(|i| (self.slots[*i].row == row) == same)
    }

    /// Finds the oldest hit of a bank's list, searching from `from`.
    #[inline(always)]
    pub(super) fn find_hit(&mut self, b: usize, dir: usize, from: Option<SlotId>) {
        let hit = self.banks[b].row.and_then(|row| self.first(from, row, true));
        self.set_hit(b, dir, hit);
    }

    #[inline]
    pub(super) fn find_miss(&mut self, b: usize, dir: usize) {
        let head = self.banks[b].q[dir].head;
        let miss = match self.banks[b].row {
            None => head,
            Some(row) => self.first(head, row, false),
        };
        self.set_miss(b, dir, miss);
    }

    /// Precharges bank `b` at `at`.
    pub(super) fn close(&mut self, b: usize, at: u64) {
        self.log_command(at, DramCommand::Pre, b);
        self.banks[b].row = None;
        self.scan.lanes[b].act_at = self.scan.lanes[b].act_at.max(at + self.t.rp);
        self.open &= !(1 << b);
        for dir in [READ, WRITE] {
            let head = self.banks[b].q[dir].head;
            if head.is_some() {
                self.set_hit(b, dir, None);
                self.set_miss(b, dir, head);
            } else {
                self.empty(b, dir);
            }
        }
    }

    #[inline]
    fn empty(&mut self, b: usize, dir: usize) {
        self.banks[b].q[dir] = EMPTY;
        self.hits[dir] &= !(1 << b);
        self.misses[dir] &= !(1 << b);
    }

    /// Sorts the queues of bank `b` into hits and misses anew after a row was opened.
    pub(super) fn opened(&mut self, b: usize) {
        self.open |= 1 << b;
        for dir in [READ, WRITE] {
            let head = self.banks[b].q[dir].head;
            if head.is_some() {
                self.find_hit(b, dir, head);
                self.find_miss(b, dir);
            } else {
                self.empty(b, dir);
            }
        }
    }
}

/// Index of a line in the counters of held writes.
#[inline]
pub(super) fn hash(line: LineAddr) -> usize {
    (line.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - HELD.trailing_zeros())).to_usize()
}

#[inline]
pub(super) fn set(mask: &mut u64, bit: usize, on: bool) {
    *mask = (*mask & !(1 << bit)) | (u64::from(on) << bit);
}

/// Positions of the set bits, lowest first.
#[inline]
pub(super) fn bits(mut m: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        (m != 0).then(|| {
            let b = m.trailing_zeros().to_usize();
            m &= m - 1;
            b
        })
    })
}
