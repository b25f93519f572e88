//! Lines that several agents use, while requests of cores for them are in flight: one entry for each line, as in the
//! home agent's table of requests. Competing owners take turns, and an invalidation reaches fills on their way.

use crate::kernel::{ids::LineKey, Int, LineAddr, TxnId};

/// Requests in flight for one line, or an entry of the table without a line.
#[derive(Clone, Copy, Debug)]
struct LineEntry {
    line: Option<LineKey>,
    /// Number of reads that leave the line where others may read it too.
    readers: u16,
    /// Number of invalidations that the entry has seen.
    epoch: u16,
    /// The request that takes the line.
    owner: Option<TxnId>,
    /// First and last of the requests that wait for their turn.
    first: Option<TxnId>,
    last: Option<TxnId>,
}

const FREE: LineEntry = LineEntry { line: None, readers: 0, epoch: 0, owner: None, first: None, last: None };

/// Decision on whether a request may proceed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineTurn {
    /// The request may proceed now; `epoch` has to be passed to [`LineTable::release`].
    Now { epoch: u16 },
    /// The request may proceed when earlier ones have ended.
    Later,
}

/// Consequences of the end of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineRelease {
    /// Whether an invalidation has reached the request.
    pub stale: bool,
    /// Whether other requests wait for the line.
    pub others_wait: bool,
}

/// Table of the lines with requests in flight. Its size follows from the line fill buffers of all cores.
#[derive(Clone, Debug)]
pub struct LineTable {
    entries: Vec<LineEntry>,
    used: u32,
    /// Request that waits behind each request, by transaction.
    next: Vec<Option<TxnId>>,
}

impl Default for LineTable {
    fn default() -> LineTable {
        LineTable { entries: vec![FREE; 1 << 8], used: 0, next: Vec::new() }
    }
}

impl LineTable {
    /// Slot at which the search for `line` begins; Fibonacci hashing spreads neighbouring lines.
    #[inline]
    fn first_slot(&self, line: LineAddr) -> usize {
        (line.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32).to_usize() & (self.entries.len() - 1)
    }

    #[inline(always)]
    fn slot(&self, line: LineAddr) -> usize {
        let mask = self.entries.len() - 1;
        let mut i = self.first_slot(line);
        let key = LineKey::from(line);
        while self.entries[i].line.is_some_and(|other| other != key) {
            i = (i + 1) & mask;
        }
        i
    }

    #[inline]
    fn find(&self, line: LineAddr) -> Option<usize> {
        if self.used == 0 {
            return None;
        }
        let i = self.slot(line);
        self.entries[i].line.is_some().then_some(i)
    }

    /// Enters request `id` for `line`; `takes` says whether the request leaves the line in exactly one core.
    #[inline(always)]
    pub fn enqueue(&mut self, line: LineAddr, id: TxnId, takes: bool) -> LineTurn {
        if self.used.to_usize() * 2 >= self.entries.len() {
            self.grow();
        }
        let i = self.slot(line);
        let e = &mut self.entries[i];
        if e.line.is_none() {
            self.used += 1;
            *e = LineEntry { line: Some(line.into()), readers: u16::from(!takes), owner: takes.then_some(id), ..FREE };
            return LineTurn::Now { epoch: 0 };
        }
        let free = e.first.is_none() && e.owner.is_none() && (e.readers == 0 || !takes);
        if free {
            if takes {
                e.owner = Some(id);
            } else {
                e.readers += 1;
            }
            return LineTurn::Now { epoch: e.epoch };
        }
        if self.next.len() <= id.index() {
            self.next.resize(id.index() + 1, None);
        }
        self.next[id.index()] = None;
        match e.last.filter(|_| e.first.is_some()) {
            None => e.first = Some(id),
            Some(last) => self.next[last.index()] = Some(id),
        }
        e.last = Some(id);
        LineTurn::Later
    }

    /// Makes a read that entered together with other reads the owner of the line, because no other cache had the line.
    #[inline]
    pub fn take_ownership(&mut self, line: LineAddr, id: TxnId) {
        if let Some(i) = self.find(line) {
            let e = &mut self.entries[i];
            if e.owner.is_none() {
                e.readers -= 1;
                e.owner = Some(id);
            }
        }
    }

    /// Ends request `id`, which entered at `epoch`.
    #[inline(always)]
    pub fn release(&mut self, line: LineAddr, id: TxnId, epoch: u16) -> LineRelease {
        let i = self.find(line).expect("a request in flight has an entry");
        let e = &mut self.entries[i];
        if e.owner == Some(id) {
            e.owner = None;
        } else {
            e.readers -= 1;
        }
        let left = LineRelease { stale: e.epoch != epoch, others_wait: e.first.is_some() };
        if e.owner.is_none() && e.readers == 0 && !left.others_wait {
            self.remove(i);
        }
        left
    }

    /// Next request for `line` that may proceed, with its epoch, if a request waits; `takes` tells whether a request
    /// takes the line.
    pub fn dequeue(&mut self, line: LineAddr, takes: impl Fn(TxnId) -> bool) -> Option<(TxnId, u16)> {
        let i = self.find(line)?;
        let e = &mut self.entries[i];
        let id = e.first.filter(|_| e.owner.is_none())?;
        if takes(id) {
            if e.readers > 0 {
                return None;
            }
            e.owner = Some(id);
        } else {
            e.readers += 1;
        }
        e.first = self.next[id.index()];
        Some((id, e.epoch))
    }

    /// Invalidates all copies of `line`, so that fills on their way must not be kept. Returns the request that holds
    /// the line in flight, and which may have the only dirty copy.
    #[inline]
    pub fn invalidate(&mut self, line: LineAddr) -> Option<TxnId> {
        let i = self.find(line)?;
        let e = &mut self.entries[i];
        e.epoch = e.epoch.wrapping_add(1);
        e.owner
    }

    /// Number of reads of `line` in flight after which other cores may read the line as well.
    pub fn readers(&self, line: LineAddr) -> u16 {
        self.find(line).map_or(0, |i| self.entries[i].readers)
    }

    /// Request that holds `line` in flight.
    #[inline]
    pub fn owner(&self, line: LineAddr) -> Option<TxnId> {
        self.entries[self.find(line)?].owner
    }

    /// Number of lines with requests in flight.
    pub fn used(&self) -> u32 {
        self.used
    }

    #[cold]
    fn grow(&mut self) {
        let n = self.entries.len() * 2;
        for e in std::mem::replace(&mut self.entries, vec![FREE; n]) {
            if let Some(line) = e.line {
                let i = self.slot(line.into());
                self.entries[i] = e;
            }
        }
    }

    /// Empties slot `i`.
    #[inline]
    fn remove(&mut self, i: usize) {
        self.used -= 1;
        let mask = self.entries.len() - 1;
        if self.entries[(i + 1) & mask].line.is_none() {
            self.entries[i].line = None;
        } else {
            self.close_up(i);
        }
    }

    /// Moves up the entries behind slot `i` that this slot kept from their place.
    #[inline(never)]
    fn close_up(&mut self, mut i: usize) {
        let mask = self.entries.len() - 1;
        let mut j = i;
        loop {
            j = (j + 1) & mask;
            let e = self.entries[j];
            let Some(line) = e.line else { break };
            let wants = self.first_slot(line.into());
            // Entry `e` may move to `i` unless its own first slot lies behind `i`.
            if (j.wrapping_sub(wants) & mask) >= (j.wrapping_sub(i) & mask) {
                self.entries[i] = e;
                i = j;
            }
        }
        self.entries[i] = FREE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    const NOW: LineTurn = LineTurn::Now { epoch: 0 };

    fn id(n: usize) -> TxnId {
        TxnId::new(n)
    }

    #[test]
    fn readers_go_together_and_an_owner_waits_for_them_and_they_for_it() {
        let mut l = LineTable::default();
        assert_eq!((l.enqueue(LineAddr(5), id(1), false), l.enqueue(LineAddr(5), id(2), false)), (NOW, NOW));
        assert_eq!(l.enqueue(LineAddr(5), id(3), true), LineTurn::Later);
        assert_eq!(
            l.enqueue(LineAddr(5), id(4), false),
            LineTurn::Later,
            "behind the owner, for else it would wait for ever"
        );
        let takes = |other| other == id(3);
        assert!(!l.release(LineAddr(5), id(1), 0).stale);
        assert_eq!(l.dequeue(LineAddr(5), takes), None);
        assert_eq!(l.release(LineAddr(5), id(2), 0), LineRelease { stale: false, others_wait: true });
        assert_eq!(l.dequeue(LineAddr(5), takes), Some((id(3), 0)));
        assert_eq!(l.dequeue(LineAddr(5), takes), None);
        assert!(l.release(LineAddr(5), id(3), 0).others_wait);
        assert_eq!(l.dequeue(LineAddr(5), takes), Some((id(4), 0)));
        assert!(!l.release(LineAddr(5), id(4), 0).others_wait);
        assert_eq!(l.used(), 0);
    }

    #[test]
    fn an_invalidation_reaches_what_is_under_way_and_nothing_that_comes_later() {
        let mut l = LineTable::default();
        l.enqueue(LineAddr(5), id(1), false);
        assert_eq!(l.invalidate(LineAddr(5)), None);
        assert_eq!(l.enqueue(LineAddr(5), id(2), false), LineTurn::Now { epoch: 1 });
        assert!(l.release(LineAddr(5), id(1), 0).stale && !l.release(LineAddr(5), id(2), 1).stale);
        l.enqueue(LineAddr(6), id(3), true);
        assert_eq!((l.invalidate(LineAddr(6)), l.invalidate(LineAddr(7))), (Some(id(3)), None));
        assert!(l.release(LineAddr(6), id(3), 0).stale);
    }

    /// Compares the table with a reference table that cannot lose an entry.
    #[test]
    fn entries_are_found_whatever_came_and_went_before() {
        let mut rng = crate::kernel::RandomStream::new(3, "lines", 0);
        let (mut l, mut all) = (LineTable::default(), HashMap::<u64, TxnId>::new());
        for id in (0..200_000).map(id) {
            let line = rng.below(600);
            if let Some(id) = all.remove(&line) {
                assert_eq!(l.owner(LineAddr(line)), Some(id));
                l.release(LineAddr(line), id, 0);
            } else {
                assert_eq!(l.enqueue(LineAddr(line), id, true), NOW);
                all.insert(line, id);
            }
            assert_eq!(l.used() as usize, all.len());
        }
        assert!(all.iter().all(|(line, id)| l.owner(LineAddr(*line)) == Some(*id)));
    }
}
