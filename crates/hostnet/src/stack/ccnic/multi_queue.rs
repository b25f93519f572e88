//! A thread of the NIC that serves several queue pairs: it polls them in turn and takes a burst from each.

use super::nic::CcnicNic;
use super::rings::GROUP;
use super::{CcnicEffect, CcnicThreadState};
use crate::kernel::Int;
use crate::stack::{Ctx, Step};

#[derive(Clone)]
pub struct MultiQueueNic {
    nics: Vec<CcnicNic>,
    /// Index of the queue pair whose ring is polled.
    at: usize,
}

impl MultiQueueNic {
    /// A thread for the queue pairs of `nics`, which hold the thread's state for each queue pair.
    pub(super) fn new(mut nics: Vec<CcnicNic>) -> MultiQueueNic {
        for (k, nic) in nics.iter_mut().enumerate() {
            nic.common.tag = k.to_u32();
        }
        MultiQueueNic { nics, at: 0 }
    }

    pub(super) fn step(&mut self, c: &mut Ctx) -> Step {
        let nic = &mut self.nics[self.at];
        if std::mem::take(&mut nic.common.polled) {
            let more = nic.take(c);
            if more && nic.pending.len() + GROUP <= (nic.common.spec.nic_batch.to_usize()).max(GROUP) {
                nic.poll(false, c);
                return Step::Run;
            }
            if nic.has_work() {
                nic.deliver(c);
            }
            self.at = (self.at + 1) % self.nics.len();
        }
        self.nics[self.at].poll(true, c);
        Step::Run
    }

    /// Makes a store visible, for the queue pair that `tag` names by its index within the thread.
    pub(super) fn retired(&mut self, tag: u32, c: &mut Ctx) {
        let (_, k) = CcnicEffect::of(tag);
        self.nics[k.to_usize()].common.visible(c);
    }

    pub(super) fn held(&self) -> usize {
        self.nics.iter().map(CcnicNic::held).sum()
    }

    pub(super) fn commons(&self) -> impl Iterator<Item = &CcnicThreadState> {
        self.nics.iter().map(|n| &n.common)
    }

    pub(super) fn restart(&mut self) {
        self.nics.iter_mut().for_each(|n| n.common.restart());
    }
}
