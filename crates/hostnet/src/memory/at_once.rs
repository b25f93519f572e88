//! What cores ask of memory without time: caches are being warmed. See [`Memory::functional`].

use super::home::Found;
use super::{Memory, Op, Posts, Probe, Txn};
use crate::kernel::{CoreId, LineAddr, Time};

impl Memory {
    /// A non-temporal store of a line by `core`, at once.
    pub fn stream_at_once(&mut self, cal: &mut impl Posts, core: CoreId, line: LineAddr) {
        self.stream(cal, self.node_of_core(core), line, Time::ZERO);
    }

    /// A core's access with everything it causes, at once: see [`Memory::functional`].
    pub fn access_at_once(&mut self, cal: &mut impl Posts, core: CoreId, line: LineAddr, write: bool) {
        let now = Time::ZERO;
        if self.probe(cal, core, line, write, now) != Probe::Miss {
            return;
        }
        let t = Txn::new(if write { Op::Own } else { Op::Read }, line, core, now);
        let t = self.look_up_at_once(cal, t);
        if !t.transient {
            self.fill(cal, core, &t, write, now);
        }
    }

    /// The same for a core that is to own a line and does not write it yet.
    pub fn own_at_once(&mut self, cal: &mut impl Posts, core: CoreId, line: LineAddr) {
        if self.owns(core, line) {
            return;
        }
        let t = self.look_up_at_once(cal, Txn::new(Op::Own, line, core, Time::ZERO));
        if !t.transient {
            self.fill(cal, core, &t, false, Time::ZERO);
        }
    }

    /// The answer to a core's request, at once.
    pub(super) fn look_up_at_once(&mut self, cal: &mut impl Posts, mut t: Txn) -> Txn {
        if self.between.is_some() {
            return self.consult_at_once(cal, t);
        }
        match self.look_up(cal, &t, t.issued) {
            Found::Here { with, .. } => with.note(&mut t),
            Found::InDram(class) => self.stats.count(class),
        }
        self.end_look_up(cal, t.issued);
        t
    }

    /// Without time: `core` stores to `line`, and the line goes on to the LLC. False when some core has it already.
    pub fn spill_at_once(&mut self, cal: &mut impl Posts, core: CoreId, line: LineAddr) -> bool {
        if self.l1.iter().chain(&self.l2).any(|c| c.find(line).is_some()) {
            return false;
        }
        self.stats.ledger.created += 1;
        self.fill_llc(cal, core, line, true, Time::ZERO);
        true
    }
}
