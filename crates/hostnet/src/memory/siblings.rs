//! Two hardware threads of one core. They have its caches in common. What one of them has under way, the other waits for and
//! does not ask for again, as a core's misses of one line have one line fill buffer.

use super::{Memory, Op, Txn};
use crate::kernel::{CoreId, IdVec, LineAddr, ThreadId};

/// Threads of a core at most.
pub const THREADS: u32 = 2;

#[derive(Clone, Debug)]
struct Waiter {
    line: LineAddr,
    thread: ThreadId,
    record: u8,
}

/// The threads of cores that have two.
#[derive(Clone, Debug)]
pub struct Siblings {
    /// By thread: the other one of its core.
    other: IdVec<ThreadId, Option<ThreadId>>,
    /// By thread: lines that it has asked for.
    under_way: IdVec<ThreadId, Vec<LineAddr>>,
    /// Accesses that wait for a line of the other thread.
    waiting: Vec<Waiter>,
}

impl Siblings {
    /// With the core of each thread; None where each thread has one of its own.
    ///
    /// # Panics
    /// When a core has more than two threads.
    pub fn of(cores: &IdVec<ThreadId, CoreId>) -> Option<Box<Siblings>> {
        let mut other = IdVec::filled(None, cores.len());
        for (t, core) in cores.enumerate() {
            if let Some((first, _)) = cores.enumerate().find(|(f, c)| *f < t && *c == core) {
                assert!(other[first].is_none(), "a core has two threads at most");
                (other[first], other[t]) = (Some(t), Some(first));
            }
        }
        let shared = other.iter().any(Option::is_some);
        shared.then(|| {
            Box::new(Siblings { under_way: IdVec::filled(Vec::new(), other.len()), other, waiting: Vec::new() })
        })
    }

    fn asks(t: &Txn) -> bool {
        matches!(t.op, Op::Read | Op::Own)
    }

    pub(super) fn leaves(&mut self, t: &Txn) {
        if Siblings::asks(t) {
            self.under_way[t.thread].push(t.line);
        }
    }

    pub(super) fn ends(&mut self, t: &Txn) {
        let lines = &mut self.under_way[t.thread];
        if let Some(i) = lines.iter().position(|l| Siblings::asks(t) && *l == t.line) {
            lines.swap_remove(i);
        }
    }
}

impl Memory {
    /// The other thread of the same core.
    #[inline]
    pub fn sibling(&self, thread: ThreadId) -> Option<ThreadId> {
        self.siblings.as_ref()?.other[thread]
    }

    /// Whether the other thread of the same core has asked for `line`.
    #[inline]
    pub fn sibling_fetches(&self, thread: ThreadId, line: LineAddr) -> bool {
        self.siblings.as_ref().is_some_and(|s| s.other[thread].is_some_and(|other| s.under_way[other].contains(&line)))
    }

    /// The access `record` of `thread` waits until the other thread has `line`.
    pub fn wait_for_sibling(&mut self, thread: ThreadId, line: LineAddr, record: u8) {
        if let Some(s) = &mut self.siblings {
            s.waiting.push(Waiter { line, thread, record });
        }
    }

    /// `thread` has got `line`: the next access of its sibling that has waited for it.
    pub fn waits_for(&mut self, thread: ThreadId, line: LineAddr) -> Option<(ThreadId, u8)> {
        let s = self.siblings.as_mut()?;
        let other = s.other[thread]?;
        let i = s.waiting.iter().position(|w| w.thread == other && w.line == line)?;
        let w = s.waiting.remove(i);
        Some((w.thread, w.record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_beyond_the_cores_are_siblings_of_the_first_ones() {
        let s = Siblings::of(&IdVec::from_iter([0, 1, 2, 0, 1].map(CoreId))).expect("two cores have two threads");
        assert_eq!(s.other.as_slice(), [Some(3), Some(4), None, Some(0), Some(1)].map(|t| t.map(ThreadId)));
        assert!(Siblings::of(&IdVec::from_iter([0, 1, 2].map(CoreId))).is_none());
    }
}
