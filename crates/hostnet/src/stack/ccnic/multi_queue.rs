//! A thread of the NIC that serves several queue pairs: it polls them in turn and takes a burst from each.

use super::forward::ForwardNic;
use super::nic::CcnicNic;
use super::{CcnicEffect, CcnicInterface, CcnicThreadState, DuePackets};
use crate::kernel::{Due, Int};
use crate::stack::branch_predictor::skip_in_turn;
use crate::stack::demand::Demand;
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

    /// Whether the thread has nothing to do for the queue pair after a poll that found nothing.
    fn is_idle(&self, c: &Ctx) -> bool {
        match self {
            PairNic::Loopback(nic) => c.program.ops.is_empty() && !nic.has_work(),
            PairNic::Wire(w) => w.is_idle(c),
        }
    }

    fn due_packets(&self) -> Option<DuePackets> {
        match self {
            PairNic::Loopback(_) => None,
            PairNic::Wire(w) => w.due_packets(),
        }
    }

    /// Time at which the next packet comes from the wire.
    fn next_due(&self) -> Due {
        match self {
            PairNic::Loopback(_) => Due::NEVER,
            PairNic::Wire(w) => w.next_due(),
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

    /// Packets that have come from the wire for all queue pairs.
    pub(super) fn due_packets(&self) -> Option<DuePackets> {
        self.pairs.iter().map(PairNic::due_packets).fold(None, DuePackets::sum)
    }

    /// Demand of each queue pair that has a wire.
    pub(super) fn demands(&mut self) -> impl Iterator<Item = &mut Demand> {
        self.pairs.iter_mut().filter_map(|p| match p {
            PairNic::Loopback(_) => None,
            PairNic::Wire(w) => Some(&mut w.wire.demand),
        })
    }

    pub(super) fn step(&mut self, c: &mut Ctx) -> Step {
        let (pair, mut idle) = (&mut self.pairs[self.at], false);
        if std::mem::take(&mut pair.nic_mut().common.polled) {
            let goes_on = match pair {
                PairNic::Loopback(nic) => nic.turn(c),
                PairNic::Wire(w) => w.turn(c),
            };
            if goes_on {
                return Step::Run;
            }
            idle = pair.is_idle(c);
            self.at = (self.at + 1) % self.pairs.len();
        }
        let nic = self.pairs[self.at].nic_mut();
        nic.poll_idle(c);
        nic.poll(true, c);
        if idle && !self.has_news(c) {
            let until = self.pairs.iter().map(PairNic::next_due).min().unwrap_or(Due::NEVER);
            return Step::Poll { of: self.pairs.len(), until };
        }
        Step::Run
    }

    /// Whether the host has ended packets that the thread has not learned of.
    fn has_news(&self, c: &Ctx) -> bool {
        let ended = |i: &CcnicInterface| self.commons().any(|common| i.ended[common.queue] > 0);
        c.roles.get::<CcnicInterface>().is_some_and(ended)
    }

    pub(super) fn skip_polls(&mut self, polls: u64) {
        let pairs = &mut self.pairs;
        let polled = std::mem::take(&mut pairs[self.at].nic_mut().common.polled);
        self.at = skip_in_turn(self.at, pairs.len(), polls, |k| pairs[k].nic_mut().common.skip_polls(1));
        self.pairs[self.at].nic_mut().common.polled = polled;
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
