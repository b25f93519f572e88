//! Walks over lines: instructions of a loop that need the data of a line whose load has not completed.
//!
//! A core with integer units that execute the oldest ready instruction first executes the independent instructions of
//! those bytes that its ROB holds, and then waits. After the data has arrived at *D*, the dependent instructions of these
//! bytes follow. With *i* the time that the independent instructions take, *d* that of the dependent ones, and *T* the
//! beginning, the bytes are done at max(*T* + *i* + *d*, *D* + *d*).

use super::{Cpu, FRAC};
use crate::kernel::{Int, Time};
use std::collections::VecDeque;

/// Walk over a line whose load is in the ROB.
#[derive(Clone, Copy, Debug)]
struct OpenWalk {
    /// Record of the load, and its generation.
    rec: u8,
    generation: u32,
    /// Duration of the instructions that wait for the load, in 1/16 ps.
    owed: u64,
    /// Arrival of the line's data, once it is known.
    arrived: Option<Time>,
}

/// Walks whose loads are in the ROB, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct WalksInRob(VecDeque<OpenWalk>);

impl WalksInRob {
    /// Notes that the data of record `rec` arrives at `at`.
    #[inline]
    pub fn arrived(&mut self, rec: u8, generation: u32, at: Time) {
        for w in self.0.iter_mut().filter(|w| (w.rec, w.generation) == (rec, generation)) {
            w.arrived = Some(at);
        }
    }
}

impl Cpu {
    /// Dispatches the body of a walk as far as the ROB has room; returns false, and sets `wait`, when it has none. The
    /// instructions are spread evenly over the entries of the ROB.
    pub(super) fn walk_within_rob(&mut self, instructions: u32, dependent: u32, loads: u32) -> bool {
        let entries = instructions + loads;
        if self.sub == 0 {
            self.open_walk();
        }
        let share = |of: u32, up_to: u32| u64::from(of) * u64::from(up_to) / u64::from(entries);
        while self.sub < entries {
            if !self.rob_room() {
                return false;
            }
            let room = (self.rob_until - self.seq).min(entries.into()).to_u32();
            let (from, to) = (self.sub, entries.min(self.sub + room));
            let now = self.now();
            if let Some(w) = self.walks.0.back_mut().filter(|w| w.arrived.is_none_or(|at| at > now)) {
                w.owed += (share(dependent, to) - share(dependent, from)) * self.smt_slots.compute;
            }
            self.seq += u64::from(to - from);
            self.instructions += u64::from(to - from);
            self.t += (share(instructions, to) - share(instructions, from)) * self.smt_slots.compute;
            self.sub = to;
        }
        self.sub = 0;
        self.pc += 1;
        true
    }

    /// Makes the load that the preceding op has dispatched the one for which a walk waits. A load that hit the L1 has no
    /// entry in the ROB, and nothing waits for it.
    fn open_walk(&mut self) {
        let Some(e) = self.rob.back().filter(|e| e.seq + u64::from(self.per_line) == self.seq) else { return };
        let rec = &self.records[e.rec];
        if rec.generation == e.generation && !self.in_order {
            let arrived = (rec.state == super::AccessState::Done).then_some(rec.done);
            self.walks.0.push_back(OpenWalk { rec: e.rec, generation: e.generation, owed: 0, arrived });
        }
    }

    /// Advances past the instructions that waited for the load in record `rec`, which leaves the ROB.
    #[inline]
    pub(super) fn walk_retires(&mut self, rec: u8, generation: u32) {
        if self.walks.0.front().is_some_and(|w| (w.rec, w.generation) == (rec, generation)) {
            self.oldest_walk_retires();
        }
    }

    /// Advances past the instructions that wait for loads, all of which are done.
    #[inline]
    pub(super) fn walks_retire(&mut self) {
        while !self.walks.0.is_empty() {
            self.oldest_walk_retires();
        }
    }

    #[inline(never)]
    fn oldest_walk_retires(&mut self) {
        let Some(OpenWalk { owed, arrived: Some(at), .. }) = self.walks.0.pop_front() else { return };
        self.t = self.t.max(at.0 * FRAC + owed);
    }
}
