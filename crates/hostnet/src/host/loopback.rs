//! A NIC in loopback mode: packets that the host's cores send return to the queue that sent them.
//!
//! ```text
//!   core: stamp, write, tx_burst --> NIC --> wire, `propagation` --+
//!   core: rx_burst, read         <-- NIC <-- wire, `propagation` <-+
//! ```
//!
//! A frame has one record at a time: a record of the transmit side until the frame is on the wire, and a record of the
//! receive side after the frame has returned.

use super::Host;
use crate::device::nic::{Nic, Packet};
use crate::device::NicAt;
use crate::kernel::{PacketId, PortId, Post, QueueId, TenantId};
use crate::stack::Notice;
use crate::traffic::TrafficEvent;

impl Host {
    /// Sends packet `id`'s frame of `tenant`, which is on the wire of the NIC on `port`, back to its queue.
    pub(super) fn loop_back(&mut self, tenant: TenantId, port: PortId, id: PacketId) {
        let Some(nic) = self.machine.nic_at(NicAt::Port(port)) else { return };
        let p = *nic.packet(id);
        nic.packet(id).done = true;
        nic.end_use(id);
        let Some(s) = &mut self.tenants[tenant].source else { return };
        // The flow is the queue, and the key is the time stamp in the payload.
        let (flow, queue, key, wire_bytes) = (p.queue.0.into(), p.queue, p.key, p.wire_bytes);
        let back = Packet { flow, queue, key, wire_bytes, dscp: s.dscp, uses: 1, ..Packet::default() };
        let arrives = s.generator.turn_round(back, self.machine.now);
        self.machine.cal.post(arrives, TrafficEvent::Arrival(tenant));
    }

    /// Records that a frame of `tenant` for `queue` was lost on its way back, if frames loop: its sender gives it up after
    /// `traffic.timeout`.
    pub(super) fn lost_in_loop(&mut self, tenant: TenantId, queue: QueueId) {
        let timeout = self.spec.traffic_of(tenant).timeout().into();
        let Some(s) = self.tenants[tenant].source.as_mut().filter(|s| s.loops) else { return };
        s.lost.push_back(queue);
        self.machine.cal.post(self.machine.now + timeout, TrafficEvent::Overdue(tenant));
    }

    /// Handles `TrafficEvent::Overdue`: the sender of `tenant`'s frame that was lost first gives it up. Returns false when
    /// no frame was lost.
    pub(super) fn give_up_lost_frame(&mut self, tenant: TenantId) -> bool {
        let Some(s) = &mut self.tenants[tenant].source else { return false };
        let Some(queue) = s.lost.pop_front() else { return false };
        let core = s.cores[queue.index() - s.first_queue.index()];
        self.notify(core, Notice::Lost);
        true
    }

    /// Number of `tenant`'s frames on a wire in loopback mode.
    pub(super) fn in_loop_of(&self, tenant: TenantId) -> u64 {
        let source = self.tenants[tenant].source.as_ref();
        source.filter(|s| s.loops).map_or(0, |s| s.generator.on_wire())
    }

    /// Number of packets that the generators have offered: packets that arrived from the wire, or packets that the host's
    /// cores have sent in loopback mode.
    pub(super) fn packets_offered(&self) -> u64 {
        let of = |at: NicAt| self.sources().any(|(_, s)| s.at == at && s.loops);
        let count = |(at, nic): (NicAt, &Nic)| if of(at) { nic.counts.originated } else { nic.counts.offered };
        self.serving_nics().map(count).sum()
    }

    /// Number of packets in the host, or on a wire in loopback mode.
    pub(super) fn packets_inside(&self) -> u64 {
        self.sum_of_nics(Nic::unfinished) + self.sources().map(|(t, _)| self.in_loop_of(t)).sum::<u64>()
    }
}
