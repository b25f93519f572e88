//! Two hardware threads of one core. They have its caches in common. What one of them has under way, the other waits for and
//! does not ask for again, as a core's misses of one line have one line fill buffer.

use super::{Memory, Op, Txn};
use crate::kernel::{Int, LineAddr};

/// Threads of a core at most.
pub const THREADS: u32 = 2;

#[derive(Clone, Debug)]
struct Waiter {
    line: LineAddr,
    thread: u16,
    record: u8,
}

/// The threads of cores that have two.
#[derive(Clone, Debug)]
pub struct Siblings {
    /// By thread: the other one of its core.
    other: Vec<Option<u16>>,
    /// By thread: lines that it has asked for.
    under_way: Vec<Vec<LineAddr>>,
    /// Accesses that wait for a line of the other thread.
    waiting: Vec<Waiter>,
}

impl Siblings {
    /// With the core of each thread; None where each thread has one of its own.
    ///
    /// # Panics
    /// When a core has more than two threads.
    pub fn of(cores: &[u16]) -> Option<Box<Siblings>> {
        let mut other = vec![None; cores.len()];
        for (t, core) in cores.iter().enumerate() {
            if let Some(first) = cores[..t].iter().position(|c| c == core) {
                assert!(other[first].is_none(), "a core has two threads at most");
                (other[first], other[t]) = (Some(t.to_u16()), Some(first.to_u16()));
            }
        }
        let shared = other.iter().any(Option::is_some);
        shared.then(|| Box::new(Siblings { under_way: vec![Vec::new(); other.len()], other, waiting: Vec::new() }))
    }

    fn asks(t: &Txn) -> bool {
        matches!(t.op, Op::Read | Op::Own)
    }

    pub(super) fn leaves(&mut self, t: &Txn) {
        if Siblings::asks(t) {
            self.under_way[usize::from(t.thread)].push(t.line);
        }
    }

    pub(super) fn ends(&mut self, t: &Txn) {
        let lines = &mut self.under_way[usize::from(t.thread)];
        if let Some(i) = lines.iter().position(|l| Siblings::asks(t) && *l == t.line) {
            lines.swap_remove(i);
        }
    }
}

impl Memory {
    /// The other thread of the same core.
    #[inline]
    pub fn sibling(&self, thread: u16) -> Option<u16> {
        self.siblings.as_ref()?.other[usize::from(thread)]
    }

    /// Whether the other thread of the same core has asked for `line`.
    #[inline]
    pub fn sibling_fetches(&self, thread: u16, line: LineAddr) -> bool {
        self.siblings.as_ref().is_some_and(|s| {
            s.other[usize::from(thread)].is_some_and(|other| s.under_way[usize::from(other)].contains(&line))
        })
    }

    /// The access `record` of `thread` waits until the other thread has `line`.
    pub fn wait_for_sibling(&mut self, thread: u16, line: LineAddr, record: u8) {
        if let Some(s) = &mut self.siblings {
            s.waiting.push(Waiter { line, thread, record });
        }
    }

    /// `thread` has got `line`: the next access of its sibling that has waited for it.
    pub fn waits_for(&mut self, thread: u16, line: LineAddr) -> Option<(u16, u8)> {
        let s = self.siblings.as_mut()?;
        let other = s.other[usize::from(thread)]?;
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
        let s = Siblings::of(&[0, 1, 2, 0, 1]).expect("two cores have two threads");
        assert_eq!(s.other, [Some(3), Some(4), None, Some(0), Some(1)]);
        assert!(Siblings::of(&[0, 1, 2]).is_none());
    }
}
