//! Functional mode of the memory system: accesses of cores that take no time, for warming the caches. See
//! [`Memory::functional`].

use super::home::LookupResult;
use super::{Memory, MemoryPosts, Probe, Txn, TxnOp};
use crate::kernel::{CoreId, LineAddr, Time};

impl Memory {
    /// Performs a non-temporal store of a line by `core` in functional mode.
    pub fn stream_functional(&mut self, cal: &mut impl MemoryPosts, core: CoreId, line: LineAddr) {
        self.stream(cal, self.node_of_core(core), line, Time::ZERO);
    }

    /// Performs an access of a core with all its consequences in functional mode; see [`Memory::functional`].
    pub fn access_functional(&mut self, cal: &mut impl MemoryPosts, core: CoreId, line: LineAddr, write: bool) {
        let now = Time::ZERO;
        if self.probe(cal, core, line, write, now) != Probe::Miss {
            return;
        }
        if let Some(v) = self.races.then(|| self.l2[core].oldest_in_slice(line)).flatten() {
            self.prefetch_holders_on_host(v.line); // the L2 is about to lose it
        }
        let t = Txn::new(if write { TxnOp::Own } else { TxnOp::Read }, line, core, now);
        let t = self.look_up_functional(cal, t);
        if !t.transient {
            self.fill(cal, core, &t, write, now);
        }
    }

    /// Prefetches, on the computer that runs the simulation, the sets in which `lines` accesses of `core` from `line` on look.
    pub fn prefetch_sets_on_host(&self, core: CoreId, line: LineAddr, lines: u32) {
        let (llc, l2) = (&self.nodes[self.node_of_core(core)].llc, &self.l2[core]);
        for l in line.span(lines) {
            llc.prefetch_on_host(l);
            l2.prefetch_in_slice_on_host(l);
            self.prefetch_holders_on_host(l);
        }
    }

    /// Obtains ownership of `line` for `core`, which does not write it yet, in functional mode.
    pub fn own_functional(&mut self, cal: &mut impl MemoryPosts, core: CoreId, line: LineAddr) {
        if self.owns(core, line) {
            return;
        }
        let t = self.look_up_functional(cal, Txn::new(TxnOp::Own, line, core, Time::ZERO));
        if !t.transient {
            self.fill(cal, core, &t, false, Time::ZERO);
        }
    }

    /// Answers a core's request in functional mode.
    pub(super) fn look_up_functional(&mut self, cal: &mut impl MemoryPosts, mut t: Txn) -> Txn {
        if self.inter_socket.is_some() {
            return self.look_up_both_nodes_functional(cal, t);
        }
        match self.look_up(cal, &t, t.issued) {
            LookupResult::Here { with, .. } => with.record(&mut t),
            LookupResult::InDram(class) => self.stats.count(class),
        }
        self.end_lookup(cal, t.issued);
        t
    }

    /// Lets `core` store to `line` and evict it to the LLC in functional mode. Returns false when a core has the line
    /// already.
    pub fn spill_functional(&mut self, cal: &mut impl MemoryPosts, core: CoreId, line: LineAddr) -> bool {
        if self.l1.iter().chain(&self.l2).any(|c| c.find(line).is_some()) {
            return false;
        }
        self.stats.ledger.created += 1;
        self.fill_llc(cal, core, line, true, Time::ZERO);
        true
    }
}
