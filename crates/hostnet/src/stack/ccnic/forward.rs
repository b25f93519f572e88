//! The NIC's thread in forward mode: it receives packets from a wire into receive buffers, and sends packets on the
//! wire when the host returns them.

use super::nic::CcnicNic;
use super::rings::GROUP;
use super::spec::NicReads;
use super::{CcnicEffect, CcnicInterface, Demand};
use crate::core::Op;
use crate::kernel::Int;
use crate::stack::{Ctx, Step};

#[derive(Clone)]
pub struct ForwardNic {
    pub(super) nic: CcnicNic,
    demand: Demand,
    /// Number of packets that the host has not returned.
    under_way: u32,
}

impl ForwardNic {
    pub(super) fn new(nic: CcnicNic, demand: Demand) -> ForwardNic {
        ForwardNic { nic, demand, under_way: 0 }
    }

    pub(super) fn step(&mut self, c: &mut Ctx) -> Step {
        if std::mem::take(&mut self.nic.common.polled) {
            let more = self.nic.take(c);
            if more && self.nic.pending.len() + GROUP <= (self.nic.common.spec.nic_batch.to_usize()).max(GROUP) {
                self.nic.poll(false, c);
                return Step::Run;
            }
            self.send(c);
        }
        self.receive(c);
        self.nic.poll(true, c);
        Step::Run
    }

    /// Sends the packets that the host has returned on the wire, and frees their buffers.
    fn send(&mut self, c: &mut Ctx) {
        let (Some(i), p) = (c.roles.get_mut::<CcnicInterface>(), &mut *c.program) else { return };
        let common = &mut self.nic.common;
        let lines = if common.spec.nic_reads == NicReads::Header { 1 } else { common.lines() };
        self.under_way -= self.nic.pending.len().to_u32();
        for d in self.nic.pending.drain(..) {
            p.push(Op::DependentLoad { line: i.line(d.buffer - 1), lines });
            p.push(Op::Retire { tag: CcnicEffect::Seen.tag(d.buffer - 1), stores: false });
            common.free_one(i, d.buffer - 1, p);
        }
        common.free_done(i, p);
        self.nic.release(p);
    }

    /// Receives the packets that are due from the wire.
    fn receive(&mut self, c: &mut Ctx) {
        let batch = self.nic.common.spec.nic_batch;
        let due = self.demand.due(c.step.now, self.under_way).min(batch);
        let (Some(i), p) = (c.roles.get_mut::<CcnicInterface>(), &mut *c.program) else { return };
        let (bytes, lines) = (self.nic.common.bytes, self.nic.common.lines());
        if !self.nic.filled.is_empty() {
            self.nic.publish(i, p);
        }
        let mut came = 0;
        while came < due && self.nic.filled.len() < batch.to_usize() {
            let Some(to) = self.nic.blank(i, bytes, p) else { break };
            p.push(Op::Retire { tag: CcnicEffect::Stamp.tag(to), stores: false });
            self.nic.common.write(i.line(to), lines, p);
            p.compute(self.nic.common.spec.costs.nic_rx);
            self.nic.deliver_later(to, bytes.to_u16());
            came += 1;
        }
        self.under_way += came;
        self.demand.sent(came);
        self.nic.publish(i, p);
    }

    pub(super) fn retired(&mut self, tag: u32, c: &mut Ctx) {
        let (effect, buffer) = CcnicEffect::of(tag);
        match effect {
            CcnicEffect::Visible => self.nic.common.visible(c),
            CcnicEffect::Stamp => self.nic.common.stamp(buffer, c),
            CcnicEffect::Seen => self.nic.common.seen(buffer, c),
        }
    }
}
