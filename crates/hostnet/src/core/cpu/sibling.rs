//! Hyper-threading: a line that one hardware thread of a core has requested arrives for both threads.

use super::{AccessState, Cpu};
use crate::core::CorePosts;
use crate::kernel::{CoreId, LineAddr, Time};
use crate::memory::{self, Memory, Sender, Txn};

impl Cpu {
    /// Moves the thread to core `core`.
    pub fn on_core(self, core: CoreId) -> Cpu {
        Cpu { core, ..self }
    }

    /// Number of the core that this hardware thread runs on.
    #[inline]
    pub fn core(&self) -> CoreId {
        self.core
    }

    /// Makes a request of this thread for `line` at `at`.
    #[inline(always)]
    pub(super) fn request(&self, op: memory::TxnOp, line: LineAddr, at: Time) -> Txn {
        Txn { sender: Sender::Core { core: self.core, thread: self.id }, ..Txn::new(op, line, self.core, at) }
    }

    /// Whether an access of this thread or a request of the sibling thread is going to bring `line`.
    #[inline]
    pub(super) fn is_asked_for(&self, mem: &Memory, line: LineAddr) -> bool {
        self.same_line(line).is_some() || mem.sibling_fetches(self.id, line)
    }

    /// Lets record `r`, whose address is known, wait for a request of the sibling thread, if the sibling has requested
    /// `line`.
    #[inline]
    pub(super) fn defer_to_sibling(&mut self, mem: &mut Memory, r: u8, line: LineAddr) -> bool {
        let leaves = mem.sibling_fetches(self.id, line);
        if leaves {
            (self.records[r].state, self.records[r].delay) = (AccessState::Address, 0);
            mem.wait_for_sibling(self.id, line, r);
        }
        leaves
    }

    /// Looks up record `r` again after the sibling thread has received the record's line.
    pub fn sibling_has_it(&mut self, cal: &mut impl CorePosts, r: u8, now: Time) {
        self.defer_lookup(cal, r, now);
    }
}
