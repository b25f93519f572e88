//! A thread of the NIC that serves several queue pairs: it polls them in turn and takes a burst from each.

use super::forward::ForwardNic;
use super::nic::CcnicNic;
use super::{CcnicEffect, CcnicThreadState};
use crate::kernel::Int;
use crate::stack::{Ctx, Step};

/// State of a thread for one queue pair.
#[derive(Clone)]
pub(super) enum PairNic {
    /// Loopback mode.
    Loopback(Box<CcnicNic>),
    /// Forward mode.
    Wire(Box<ForwardNic>),
}

impl PairNic {
    fn nic(&self) -> &CcnicNic {
        match self {
            PairNic::Loopback(nic) => nic,
            PairNic::Wire(w) => &w.nic,
        }
    }

    fn nic_mut(&mut self) -> &mut CcnicNic {
        match self {
            PairNic::Loopback(nic) => nic,
            PairNic::Wire(w) => &mut w.nic,
        }
    }
}

#[derive(Clone)]
pub struct MultiQueueNic {
    pairs: Vec<PairNic>,
    /// Index of the queue pair whose ring is polled.
    at: usize,
}

impl MultiQueueNic {
    /// A thread for queue pairs, with its state for each of them. The thread polls one set of unused queue pairs a round.
    pub(super) fn new(mut pairs: Vec<PairNic>) -> MultiQueueNic {
        for (k, pair) in pairs.iter_mut().enumerate() {
            pair.nic_mut().common.tag = k.to_u32();
            if k > 0 {
                pair.nic_mut().has_no_idle_queues();
            }
        }
        MultiQueueNic { pairs, at: 0 }
    }

    pub(super) fn step(&mut self, c: &mut Ctx) -> Step {
        let pair = &mut self.pairs[self.at];
        if std::mem::take(&mut pair.nic_mut().common.polled) {
            let goes_on = match pair {
                PairNic::Loopback(nic) => nic.turn(c),
                PairNic::Wire(w) => w.turn(c),
            };
            if goes_on {
                return Step::Run;
            }
            self.at = (self.at + 1) % self.pairs.len();
        }
        let nic = self.pairs[self.at].nic_mut();
        nic.poll_idle(c);
        nic.poll(true, c);
        Step::Run
    }

    /// Performs a side effect; a store becomes visible for the queue pair that `tag` names by its index within the
    /// thread.
    pub(super) fn retired(&mut self, tag: u32, c: &mut Ctx) {
        let (effect, n) = CcnicEffect::of(tag);
        match effect {
            CcnicEffect::Visible => self.pairs[n.to_usize()].nic_mut().common.visible(c),
            CcnicEffect::Stamp => self.pairs[0].nic().common.stamp(n, c),
            CcnicEffect::Seen => self.pairs[0].nic().common.seen(n, c),
        }
    }

    pub(super) fn held(&self) -> usize {
        self.pairs.iter().map(|p| p.nic().held()).sum()
    }

    pub(super) fn commons(&self) -> impl Iterator<Item = &CcnicThreadState> {
        self.pairs.iter().map(|p| &p.nic().common)
    }

    pub(super) fn restart(&mut self) {
        self.pairs.iter_mut().for_each(|p| p.nic_mut().common.restart());
    }
}
