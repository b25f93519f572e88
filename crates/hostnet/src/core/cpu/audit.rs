//! Meters of a core, and the audit of its credits at the end of a run.

use super::{prefetch, AccessState, AccessTime, Cpu};
use crate::kernel::{Int, Time};
use crate::memory::{self, Memory, Txn};

impl Cpu {
    /// Whether the core is idle: it runs no program and has no access and no side effect outstanding.
    pub fn is_idle(&self) -> bool {
        self.live & !self.finished == 0 && !self.effects_wait() && !self.running
    }

    /// Checks that every line fill buffer belongs to an outstanding miss or to an arrived line whose victim is still
    /// being written back, and that every MSHR of the L2 belongs to a request beyond the L2.
    ///
    /// # Errors
    /// Fails with one sentence about the line fill buffers or MSHRs that are not conserved.
    pub fn check(&self, mem: &Memory) -> Result<(), String> {
        let misses = self.records.0.iter().filter(|r| r.state == AccessState::Issued).count();
        let going = |t: &&Txn| t.op == memory::TxnOp::WriteBack && t.record != prefetch::WRITE_BACK && !t.transient;
        let victims = mem.requests_of(self.id).filter(going).count();
        let (id, used) = (self.id, self.lfb.used());
        if used.to_usize() != misses + victims {
            return Err(format!(
                "core {id} has {used} line fill buffers out for {misses} misses and {victims} victims"
            ));
        }
        let of_llc =
            |t: &Txn| t.record >= prefetch::FIRST && self.prefetcher.as_ref().is_some_and(|p| p.is_llcs(t.record));
        let beyond = |t: &&Txn| !matches!(t.op, memory::TxnOp::WriteBack | memory::TxnOp::Stream) && !of_llc(t);
        match (self.mshrs.as_ref().map(|m| m.used()), mem.requests_of(id).filter(beyond).count()) {
            (Some(used), n) if used.to_usize() != n => {
                Err(format!("core {id} has {used} registers of its L2 out for {n} misses"))
            }
            _ => Ok(()),
        }
    }

    /// Starts a measured window: clears the core's meters.
    pub fn restart_meters(&mut self, now: Time) {
        self.lfb.restart(now);
        if let Some(p) = &mut self.prefetcher {
            p.queue.restart(now);
        }
        if let Some(m) = &mut self.mshrs {
            m.restart(now);
        }
        if let Some(h) = &mut self.hints {
            h.restart(now);
        }
        self.amat = AccessTime::default();
        self.instructions = 0;
        self.smt_slots.restart(now);
    }
}
