//! A wire that loops back: what the host's cores send comes back to the queue that it left from.
//!
//! ```text
//!   core: stamp, write, tx_burst --> NIC --> wire, `propagation` --+
//!   core: rx_burst, read         <-- NIC <-- wire, `propagation` <-+
//! ```
//!
//! A frame has one record at a time: the transmit side's until it is on the wire, and the receive side's once it is back.

use super::Host;
use crate::device::nic::Packet;
use crate::device::NicAt;
use crate::kernel::{PacketId, Post, QueueId};
use crate::stack::Notice;
use crate::traffic;

impl Host {
    /// Packet `id`'s frame is on the wire, which returns it.
    pub(super) fn turn_round(&mut self, id: PacketId) {
        let Some(nic) = self.machine.nic_at(NicAt::Port) else { return };
        let p = *nic.packet(id);
        nic.packet(id).done = true;
        nic.end_use(id);
        let Some(s) = &mut self.source else { return };
        // The flow is the queue, and the key is the time stamp in its payload.
        let (flow, queue, key, wire_bytes) = (p.queue.0.into(), p.queue, p.key, p.wire_bytes);
        let back = Packet { flow, queue, key, wire_bytes, dscp: s.dscp, uses: 1, ..Packet::default() };
        let arrives = s.generator.turn_round(back, self.machine.now);
        self.machine.cal.post(arrives, traffic::Event::Arrival);
    }

    /// A frame for `queue` was lost on its way back, if frames loop: its sender gives it up after `traffic.timeout`.
    pub(super) fn lost_in_loop(&mut self, queue: QueueId) {
        let timeout = self.spec.traffic.timeout.into();
        let Some(s) = self.source.as_mut().filter(|s| s.loops) else { return };
        s.lost.push_back(queue);
        self.machine.cal.post(self.machine.now + timeout, traffic::Event::Overdue);
    }

    /// `traffic::Event::Overdue`: the sender of the frame that was lost first gives it up. False when none was.
    pub(super) fn gives_up(&mut self) -> bool {
        let Some(s) = &mut self.source else { return false };
        let Some(queue) = s.lost.pop_front() else { return false };
        let core = s.cores[queue.index()];
        self.notify(core, Notice::Lost);
        true
    }

    /// Frames on a wire that loops.
    pub(super) fn in_loop(&self) -> u64 {
        self.source.as_ref().filter(|s| s.loops).map_or(0, |s| s.generator.on_wire())
    }

    fn loops(&self) -> bool {
        self.source.as_ref().is_some_and(|s| s.loops)
    }

    /// Packets that have begun, here or at the other end of the wire. What loops begins once.
    pub(super) fn begun(&self) -> u64 {
        let counts = &self.serving_nic().counts;
        counts.originated + if self.loops() { 0 } else { counts.offered }
    }

    /// Packets that the generator has offered: what came off the wire, or what the host's cores have sent into a loop.
    pub(super) fn packets_offered(&self) -> u64 {
        let counts = &self.serving_nic().counts;
        if self.loops() {
            counts.originated
        } else {
            counts.offered
        }
    }

    /// Packets that are in the host, or on a wire that loops.
    pub(super) fn inside(&self) -> u64 {
        self.serving_nic().unfinished() + self.in_loop()
    }
}
