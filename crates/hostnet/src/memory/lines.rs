//! Lines that several agents use, while requests of cores for them are in flight: one entry a line, as in the
//! home agent's table of requests. Owners that cross take turns, and an invalidation reaches fills under way.

use super::NOBODY;
use crate::kernel::LineAddr;
const NO_LINE: LineAddr = LineAddr(u64::MAX);

/// Requests in flight for one line.
#[derive(Clone, Copy, Debug)]
struct Entry {
    line: LineAddr,
    /// Reads that leave the line where others may read it too.
    readers: u16,
    /// Invalidations that the entry has seen.
    epoch: u16,
    /// The request that takes the line, or `NOBODY`.
    owner: u32,
    /// Requests that wait for their turn: the first and the last.
    first: u32,
    last: u32,
}

const FREE: Entry = Entry { line: NO_LINE, readers: 0, epoch: 0, owner: NOBODY, first: NOBODY, last: NOBODY };

/// Whether a request may go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// Now; the number goes back with [`Lines::leave`].
    Now { epoch: u16 },
    /// When those before it have ended.
    Later,
}

/// What a request that has ended leaves behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Left {
    /// An invalidation has reached it.
    pub stale: bool,
    /// Others wait for the line.
    pub others_wait: bool,
}

/// The table. Its size follows from the line fill buffers of all cores.
#[derive(Clone, Debug)]
pub struct Lines {
    entries: Vec<Entry>,
    used: u32,
    /// The request that waits behind each, by transaction.
    next: Vec<u32>,
}

impl Default for Lines {
    fn default() -> Lines {
        Lines { entries: vec![FREE; 1 << 8], used: 0, next: Vec::new() }
    }
}

impl Lines {
    /// Where the search for `line` begins (Fibonacci hashing: neighbours lie far apart).
    #[inline]
    fn first_slot(&self, line: LineAddr) -> usize {
        (line.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (self.entries.len() - 1)
    }

    #[inline(always)]
    fn slot(&self, line: LineAddr) -> usize {
        let mask = self.entries.len() - 1;
        let mut i = self.first_slot(line);
        while self.entries[i].line != NO_LINE && self.entries[i].line != line {
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
        (self.entries[i].line == line).then_some(i)
    }

    /// Request `id` for `line` wants to go on; `takes` when it ends with the line in one core's hands.
    #[inline(always)]
    pub fn enter(&mut self, line: LineAddr, id: u32, takes: bool) -> Turn {
        if self.used as usize * 2 >= self.entries.len() {
            self.grow();
        }
        let i = self.slot(line);
        let e = &mut self.entries[i];
        if e.line == NO_LINE {
            self.used += 1;
            *e = Entry { line, readers: u16::from(!takes), owner: if takes { id } else { NOBODY }, ..FREE };
            return Turn::Now { epoch: 0 };
        }
        let free = e.first == NOBODY && e.owner == NOBODY && (e.readers == 0 || !takes);
        if free {
            if takes {
                e.owner = id;
            } else {
                e.readers += 1;
            }
            return Turn::Now { epoch: e.epoch };
        }
        if self.next.len() <= id as usize {
            self.next.resize(id as usize + 1, NOBODY);
        }
        self.next[id as usize] = NOBODY;
        if e.first == NOBODY {
            e.first = id;
        } else {
            self.next[e.last as usize] = id;
        }
        e.last = id;
        Turn::Later
    }

    /// A read that entered beside others takes the line along after all: it found it with nobody else.
    #[inline]
    pub fn take_over(&mut self, line: LineAddr, id: u32) {
        if let Some(i) = self.find(line) {
            let e = &mut self.entries[i];
            if e.owner == NOBODY {
                e.readers -= 1;
                e.owner = id;
            }
        }
    }

    /// Request `id`, which entered at `epoch`, ends.
    #[inline(always)]
    pub fn leave(&mut self, line: LineAddr, id: u32, epoch: u16) -> Left {
        let i = self.find(line).expect("a request in flight has an entry");
        let e = &mut self.entries[i];
        if e.owner == id {
            e.owner = NOBODY;
        } else {
            e.readers -= 1;
        }
        let left = Left { stale: e.epoch != epoch, others_wait: e.first != NOBODY };
        if e.owner == NOBODY && e.readers == 0 && !left.others_wait {
            self.remove(i);
        }
        left
    }

    /// The request for `line` whose turn it is, if one waits and may go on; `takes` says whether it takes the line.
    pub fn next_turn(&mut self, line: LineAddr, takes: impl Fn(u32) -> bool) -> Option<(u32, u16)> {
        let i = self.find(line)?;
        let e = &mut self.entries[i];
        let id = e.first;
        if id == NOBODY || e.owner != NOBODY {
            return None;
        }
        if takes(id) {
            if e.readers > 0 {
                return None;
            }
            e.owner = id;
        } else {
            e.readers += 1;
        }
        e.first = self.next[id as usize];
        Some((id, e.epoch))
    }

    /// All copies of `line` are taken away: fills under way must not be kept. Returns the request that holds the line
    /// in flight, which may have the only dirty copy.
    #[inline]
    pub fn invalidate(&mut self, line: LineAddr) -> Option<u32> {
        let i = self.find(line)?;
        let e = &mut self.entries[i];
        e.epoch = e.epoch.wrapping_add(1);
        (e.owner != NOBODY).then_some(e.owner)
    }

    /// Reads of `line` in flight that leave it where others may read it too.
    pub fn readers(&self, line: LineAddr) -> u16 {
        self.find(line).map_or(0, |i| self.entries[i].readers)
    }

    /// The request that holds `line` in flight.
    #[inline]
    pub fn owner(&self, line: LineAddr) -> Option<u32> {
        let owner = self.entries[self.find(line)?].owner;
        (owner != NOBODY).then_some(owner)
    }

    /// Lines with requests in flight.
    pub fn used(&self) -> u32 {
        self.used
    }

    #[cold]
    fn grow(&mut self) {
        let n = self.entries.len() * 2;
        for e in std::mem::replace(&mut self.entries, vec![FREE; n]) {
            if e.line != NO_LINE {
                let i = self.slot(e.line);
                self.entries[i] = e;
            }
        }
    }

    /// Empties slot `i`.
    #[inline]
    fn remove(&mut self, i: usize) {
        self.used -= 1;
        let mask = self.entries.len() - 1;
        if self.entries[(i + 1) & mask].line == NO_LINE {
            self.entries[i].line = NO_LINE;
        } else {
            self.close_up(i);
        }
    }

    /// Those behind slot `i` that it kept from their place move up.
    #[inline(never)]
    fn close_up(&mut self, mut i: usize) {
        let mask = self.entries.len() - 1;
        let mut j = i;
        loop {
            j = (j + 1) & mask;
            let e = self.entries[j];
            if e.line == NO_LINE {
                break;
            }
            let wants = self.first_slot(e.line);
            // `e` may move to `i` unless its own place lies behind `i`.
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

    const NOW: Turn = Turn::Now { epoch: 0 };

    #[test]
    fn readers_go_together_and_an_owner_waits_for_them_and_they_for_it() {
        let mut l = Lines::default();
        assert_eq!((l.enter(LineAddr(5), 1, false), l.enter(LineAddr(5), 2, false)), (NOW, NOW));
        assert_eq!(l.enter(LineAddr(5), 3, true), Turn::Later);
        assert_eq!(l.enter(LineAddr(5), 4, false), Turn::Later, "behind the owner, for else it would wait for ever");
        let takes = |id| id == 3;
        assert!(!l.leave(LineAddr(5), 1, 0).stale);
        assert_eq!(l.next_turn(LineAddr(5), takes), None);
        assert_eq!(l.leave(LineAddr(5), 2, 0), Left { stale: false, others_wait: true });
        assert_eq!(l.next_turn(LineAddr(5), takes), Some((3, 0)));
        assert_eq!(l.next_turn(LineAddr(5), takes), None);
        assert!(l.leave(LineAddr(5), 3, 0).others_wait);
        assert_eq!(l.next_turn(LineAddr(5), takes), Some((4, 0)));
        assert!(!l.leave(LineAddr(5), 4, 0).others_wait);
        assert_eq!(l.used(), 0);
    }

    #[test]
    fn an_invalidation_reaches_what_is_under_way_and_nothing_that_comes_later() {
        let mut l = Lines::default();
        l.enter(LineAddr(5), 1, false);
        assert_eq!(l.invalidate(LineAddr(5)), None);
        assert_eq!(l.enter(LineAddr(5), 2, false), Turn::Now { epoch: 1 });
        assert!(l.leave(LineAddr(5), 1, 0).stale && !l.leave(LineAddr(5), 2, 1).stale);
        l.enter(LineAddr(6), 3, true);
        assert_eq!((l.invalidate(LineAddr(6)), l.invalidate(LineAddr(7))), (Some(3), None));
        assert!(l.leave(LineAddr(6), 3, 0).stale);
    }

    /// Against a table that cannot lose an entry.
    #[test]
    fn entries_are_found_whatever_came_and_went_before() {
        let mut rng = crate::kernel::Stream::new(3, "lines", 0);
        let (mut l, mut all) = (Lines::default(), HashMap::<u64, u32>::new());
        for id in 0..200_000 {
            let line = rng.below(600);
            if let Some(id) = all.remove(&line) {
                assert_eq!(l.owner(LineAddr(line)), Some(id));
                l.leave(LineAddr(line), id, 0);
            } else {
                assert_eq!(l.enter(LineAddr(line), id, true), NOW);
                all.insert(line, id);
            }
            assert_eq!(l.used() as usize, all.len());
        }
        assert!(all.iter().all(|(line, id)| l.owner(LineAddr(*line)) == Some(*id)));
    }
}
