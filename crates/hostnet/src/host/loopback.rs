//! A wire that loops back: packets that the host's cores send come back to the queue that sent them.
//!
//! ```text
//!   core: stamp, write, tx_burst --> NIC --> wire, `propagation` --+
//!   core: rx_burst, read         <-- NIC <-- wire, `propagation` <-+
//! ```
//!
//! A frame has one record at a time: that of the transmit side until it is on the wire, and that of the receive side
//! once it is back.

use super::Host;
use crate::device::nic::Packet;
use crate::device::NicAt;
use crate::kernel::{PacketId, PortId, Post, QueueId};
use crate::stack::Notice;
use crate::traffic;

impl Host {
    /// Sends packet `id`'s frame, which is on the wire of the NIC on `port`, back to its queue.
    pub(super) fn loop_back(&mut self, port: PortId, id: PacketId) {
        let Some(nic) = self.machine.nic_at(NicAt::Port(port)) else { return };
        let p = *nic.packet(id);
        nic.packet(id).done = true;
        nic.end_use(id);
        let Some(s) = &mut self.source else { return };
        // The flow is the queue, and the key is the time stamp in the payload.
        let (flow, queue, key, wire_bytes) = (p.queue.0.into(), p.queue, p.key, p.wire_bytes);
        let back = Packet { flow, queue, key, wire_bytes, dscp: s.dscp, uses: 1, ..Packet::default() };
        let arrives = s.generator.turn_round(back, self.machine.now);
        self.machine.cal.post(arrives, traffic::TrafficEvent::Arrival);
    }

    /// Records that a frame for `queue` was lost on its way back, if frames loop: its sender gives it up after
    /// `traffic.timeout`.
    pub(super) fn lost_in_loop(&mut self, queue: QueueId) {
        let timeout = self.spec.traffic.timeout.into();
        let Some(s) = self.source.as_mut().filter(|s| s.loops) else { return };
        s.lost.push_back(queue);
        self.machine.cal.post(self.machine.now + timeout, traffic::TrafficEvent::Overdue);
    }

    /// Handles `traffic::TrafficEvent::Overdue`: the sender of the frame that was lost first gives it up. Returns false when no frame
    /// was lost.
    pub(super) fn give_up_lost_frame(&mut self) -> bool {
        let Some(s) = &mut self.source else { return false };
        let Some(queue) = s.lost.pop_front() else { return false };
        let core = s.cores[queue.index()];
        self.notify(core, Notice::Lost);
        true
    }

    /// Number of frames on a wire that loops.
    pub(super) fn in_loop(&self) -> u64 {
        self.source.as_ref().filter(|s| s.loops).map_or(0, |s| s.generator.on_wire())
    }

    fn loops(&self) -> bool {
        self.source.as_ref().is_some_and(|s| s.loops)
    }

    /// Number of packets that originated here or at the other end of the wire. A looping packet counts once.
    pub(super) fn packets_begun(&self) -> u64 {
        let counts = &self.serving_nic().counts;
        counts.originated + if self.loops() { 0 } else { counts.offered }
    }

    /// Number of packets that the generator has offered: those that came off the wire, or those that the host's cores
    /// have sent into a loop.
    pub(super) fn packets_offered(&self) -> u64 {
        let counts = &self.serving_nic().counts;
        if self.loops() {
            counts.originated
        } else {
            counts.offered
        }
    }

    /// Number of packets in the host, or on a wire that loops.
    pub(super) fn packets_inside(&self) -> u64 {
        self.serving_nic().unfinished() + self.in_loop()
    }
}
