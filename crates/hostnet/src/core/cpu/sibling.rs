//! A thread beside another one of its core: a line that the other has asked for comes for both.

use super::{Cpu, State};
use crate::core::Posts;
use crate::kernel::{CoreId, LineAddr, Time};
use crate::memory::{self, Memory, Txn};

impl Cpu {
    /// The same on another core.
    pub fn on_core(self, core: CoreId) -> Cpu {
        Cpu { core, ..self }
    }

    /// The core that this thread runs on.
    #[inline]
    pub fn core(&self) -> CoreId {
        self.core
    }

    /// A request of this thread for `line`, made at `at`.
    #[inline(always)]
    pub(super) fn request(&self, op: memory::Op, line: LineAddr, at: Time) -> Txn {
        Txn { thread: self.id, ..Txn::new(op, line, self.core, at) }
    }

    /// Whether an access of this thread or a request of the other one is to bring `line`.
    #[inline]
    pub(super) fn is_asked_for(&self, mem: &Memory, line: LineAddr) -> bool {
        self.same_line(line).is_some() || mem.sibling_fetches(self.id, line)
    }

    /// Record `r`, whose address is known, waits for a request of the other thread, if that has asked for its line.
    #[inline]
    pub(super) fn leaves_to_sibling(&mut self, mem: &mut Memory, r: u8, line: LineAddr) -> bool {
        let leaves = mem.sibling_fetches(self.id, line);
        if leaves {
            (self.recs[r].state, self.recs[r].delay) = (State::Address, 0);
            mem.wait_for_sibling(self.id, line, r);
        }
        leaves
    }

    /// The other thread has got the line of record `r`, which looks for it now.
    pub fn sibling_has_it(&mut self, cal: &mut impl Posts, r: u8, now: Time) {
        self.look_up_later(cal, r, now);
    }
}
