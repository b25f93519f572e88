//! Two hardware threads of one core, which share its caches. A thread waits for a line that its sibling has requested
//! and does not request it again, as all misses of a core on a line share one line fill buffer.

use super::{Memory, Txn, TxnOp};
use crate::kernel::{CoreId, IdVec, LineAddr, ThreadId};

/// Largest number of hardware threads of a core.
pub const THREADS: u32 = 2;

#[derive(Clone, Debug)]
struct Waiter {
    line: LineAddr,
    thread: ThreadId,
    record: u8,
}

/// Outstanding requests of hardware threads that share a core.
#[derive(Clone, Debug)]
pub struct Siblings {
    /// Sibling of each thread; None for a thread that has its core to itself.
    other: IdVec<ThreadId, Option<ThreadId>>,
    /// First thread of each core.
    first: IdVec<CoreId, ThreadId>,
    /// Lines that each thread has requested.
    under_way: IdVec<ThreadId, Vec<LineAddr>>,
    /// Accesses that wait for a line that the sibling thread has requested.
    waiting: Vec<Waiter>,
}

impl Siblings {
    /// Pairs threads by `cores`, the core of each thread; returns None where each thread has a core of its own.
    ///
    /// # Panics
    /// Panics when a core has more than two threads.
    pub fn of(cores: &IdVec<ThreadId, CoreId>) -> Option<Box<Siblings>> {
        let mut other = IdVec::filled(None, cores.len());
        for (t, core) in cores.enumerate() {
            if let Some((first, _)) = cores.enumerate().find(|(f, c)| *f < t && *c == core) {
                assert!(other[first].is_none(), "a core has two threads at most");
                (other[first], other[t]) = (Some(t), Some(first));
            }
        }
        let mut first = IdVec::filled(ThreadId(0), cores.iter().max().map_or(0, |c| c.index() + 1));
        cores.enumerate().rev().for_each(|(t, core)| first[*core] = t);
        let shared = other.iter().any(Option::is_some);
        shared.then(|| {
            Box::new(Siblings { under_way: IdVec::filled(Vec::new(), other.len()), other, first, waiting: Vec::new() })
        })
    }

    fn is_tracked(t: &Txn) -> bool {
        matches!(t.op, TxnOp::Read | TxnOp::Own)
    }

    pub(super) fn request_sent(&mut self, t: &Txn) {
        if Siblings::is_tracked(t) {
            self.under_way[t.thread()].push(t.line);
        }
    }

    pub(super) fn request_ended(&mut self, t: &Txn) {
        let lines = &mut self.under_way[t.thread()];
        if let Some(i) = lines.iter().position(|l| Siblings::is_tracked(t) && *l == t.line) {
            lines.swap_remove(i);
        }
    }
}

impl Memory {
    /// Other thread of the same core.
    #[inline]
    pub fn sibling(&self, thread: ThreadId) -> Option<ThreadId> {
        self.siblings.as_ref()?.other[thread]
    }

    /// First thread of `core`, which follows the prefetch hints of devices for the core's L2.
    #[inline]
    pub fn first_thread(&self, core: CoreId) -> ThreadId {
        self.siblings.as_ref().map_or(ThreadId(core.0), |s| s.first[core])
    }

    /// Whether the sibling of `thread` has requested `line`.
    #[inline]
    pub fn sibling_fetches(&self, thread: ThreadId, line: LineAddr) -> bool {
        self.siblings.as_ref().is_some_and(|s| s.other[thread].is_some_and(|other| s.under_way[other].contains(&line)))
    }

    /// Lets the access `record` of `thread` wait until the sibling has received `line`.
    pub fn wait_for_sibling(&mut self, thread: ThreadId, line: LineAddr, record: u8) {
        if let Some(s) = &mut self.siblings {
            s.waiting.push(Waiter { line, thread, record });
        }
    }

    /// Takes the next access of the sibling that waited for `line`, which `thread` has received.
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
        let on_two_nodes =
            Siblings::of(&IdVec::from_iter([0, 1, 0, 1, 2].map(CoreId))).expect("two cores have two threads");
        assert_eq!(on_two_nodes.first.as_slice(), [0, 1, 4].map(ThreadId));
    }
}
