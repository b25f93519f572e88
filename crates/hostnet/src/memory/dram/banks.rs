//! A channel's banks and the lists of requests that wait for each: by direction in order of arrival, with
//! the oldest for the open row and the oldest for another.

use super::channel::{Channel, Command, ALL_STALE, BANKS, HELD, NONE, NO_ROW, READ, WRITE};
use super::choice::{key, ACTIVE, QUEUE};
use super::RowOutcome;
use crate::kernel::{LineAddr, TxnId};
use std::ops::{Index, IndexMut};

/// A queued request. Slots of one bank and direction form a list, oldest first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub line: LineAddr,
    pub arrive: u64,
    /// Order of arrival.
    pub age: u32,
    pub token: Option<TxnId>,
    pub row: u32,
    pub next: u16,
    pub prev: u16,
    pub dir: u8,
    pub bank: u8,
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
    /// Column commands since the activate.
    pub accesses: u32,
    pub q: [BankQueue; 2],
}

/// A channel's banks by their number, which is below `BANKS`: masked, it needs no check. Those beyond the channel's own
/// stay empty.
#[derive(Clone, Debug)]
pub(super) struct Banks(Box<[Bank; BANKS]>);

impl Banks {
    /// Closed banks with nothing queued.
    pub(super) fn new() -> Banks {
        Banks(Box::new([Bank { row: NO_ROW, active: NONE, accesses: 0, q: [EMPTY; 2] }; BANKS]))
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
    pub(super) fn link(&mut self, i: u16, b: usize, dir: usize) {
        let q = &mut self.banks[b].q[dir];
        self.slots[i as usize].prev = q.tail;
        self.slots[i as usize].next = NONE;
        match q.tail {
            NONE => q.head = i,
            tail => self.slots[tail as usize].next = i,
        }
        q.tail = i;
        self.queued[dir] += 1;
        self.draining |= self.write_mode && self.queued[WRITE] > self.p.high;
    }

    /// Makes slot `i` its bank's hit or miss if it has none.
    #[inline]
    pub(super) fn sort_in(&mut self, i: u16, b: usize, dir: usize) {
        let q = self.banks[b].q[dir];
        if self.slots[i as usize].row == self.banks[b].row {
            if q.hit == NONE {
                self.set_hit(b, dir, i);
            }
        } else if q.miss == NONE {
            self.set_miss(b, dir, i);
        }
    }

    /// Restarts the ages from zero in the order they have.
    #[cold]
    pub(super) fn renumber(&mut self) {
        let mut live: Vec<u16> = Vec::new();
        for mut i in self.staged.head {
            while i != NONE {
                live.push(i);
                i = self.slots[i as usize].next;
            }
        }
        for bank in self.banks.iter() {
            if bank.active != NONE {
                live.push(bank.active);
            }
            for q in &bank.q {
                let mut i = q.head;
                while i != NONE {
                    live.push(i);
                    i = self.slots[i as usize].next;
                }
            }
        }
        live.sort_by_key(|&i| self.slots[i as usize].age);
        self.next_age = live.len() as u32;
        for (age, i) in live.into_iter().enumerate() {
            self.slots[i as usize].age = age as u32;
        }
        // Choices made so far name ages of before.
        self.stale = ALL_STALE;
        self.chosen = false;
        self.columns.changed = self.hits[READ] | self.hits[WRITE] | self.misses[READ] | self.misses[WRITE];
        for b in 0..BANKS {
            let Bank { active, q, .. } = self.banks[b];
            if active != NONE {
                self.scan.lanes[b].col_key = [key(ACTIVE, self.slots[active as usize].age, b); 2];
            }
            for dir in [READ, WRITE] {
                self.set_hit(b, dir, q[dir].hit);
                self.set_miss(b, dir, q[dir].miss);
            }
        }
    }

    #[inline(always)]
    pub(super) fn set_hit(&mut self, b: usize, dir: usize, i: u16) {
        self.banks[b].q[dir].hit = i;
        set(&mut self.hits[dir], b, i != NONE);
        if i != NONE && self.active >> b & 1 == 0 {
            self.scan.lanes[b].col_key[dir] = key(QUEUE, self.slots[i as usize].age, b);
        }
    }

    #[inline]
    pub(super) fn set_miss(&mut self, b: usize, dir: usize, i: u16) {
        self.banks[b].q[dir].miss = i;
        set(&mut self.misses[dir], b, i != NONE);
        if i != NONE {
            self.scan.lanes[b].miss_key[dir] = key(self.row_tier, self.slots[i as usize].age, b);
        }
    }

    /// Whether a write of `line` waits. For most lines the counters know that none does.
    #[inline]
    pub(super) fn has_write(&self, b: usize, line: LineAddr) -> bool {
        self.held_writes[hash(line)] != 0 && self.finds_write(b, line)
    }

    #[inline(never)]
    fn finds_write(&self, b: usize, line: LineAddr) -> bool {
        let bank = &self.banks[b];
        let mut i = bank.q[WRITE].head;
        while i != NONE {
            let s = &self.slots[i as usize];
            if s.line == line {
                return true;
            }
            i = s.next;
        }
        let mut i = self.staged.head[WRITE];
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
        let Slot { line, dir, .. } = self.slots[i as usize];
        self.held_writes[hash(line)] -= u16::from(dir);
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
    #[inline(always)]
    pub(super) fn find_hit(&mut self, b: usize, dir: usize, from: u16) {
        let hit = match self.banks[b].row {
            NO_ROW => NONE,
            row => self.first(from, row, true),
        };
        self.set_hit(b, dir, hit);
    }

    #[inline]
    pub(super) fn find_miss(&mut self, b: usize, dir: usize) {
        let row = self.banks[b].row;
        let head = self.banks[b].q[dir].head;
        let miss = if row == NO_ROW { head } else { self.first(head, row, false) };
        self.set_miss(b, dir, miss);
    }

    /// Precharges bank `b` at `at`.
    pub(super) fn close(&mut self, b: usize, at: u64) {
        self.note(at, Command::Pre, b);
        self.banks[b].row = NO_ROW;
        self.scan.lanes[b].act_at = self.scan.lanes[b].act_at.max(at + self.t.rp);
        self.open &= !(1 << b);
        for dir in [READ, WRITE] {
            let head = self.banks[b].q[dir].head;
            if head != NONE {
                self.set_hit(b, dir, NONE);
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

    /// A row of bank `b` was opened: sorts its queues into hits and misses anew.
    pub(super) fn opened(&mut self, b: usize) {
        self.open |= 1 << b;
        for dir in [READ, WRITE] {
            let head = self.banks[b].q[dir].head;
            if head != NONE {
                self.find_hit(b, dir, head);
                self.find_miss(b, dir);
            } else {
                self.empty(b, dir);
            }
        }
    }
}

/// Place of a line among the counters of writes held.
#[inline]
pub(super) fn hash(line: LineAddr) -> usize {
    (line.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - HELD.trailing_zeros())) as usize
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
