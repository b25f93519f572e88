//! The on-chip (integrated) attachment of the NIC (Sweeper, section III): no PCIe link, hardware-terminated transport,
//! per-core rings, and work queue entries with a SweepBuffer bit (Fig. 4). A packet is assigned its buffer on arrival;
//! a message between the NIC and a core takes the time `notify`.

use super::{Attachment, Completion, Nic, Packet};
use crate::device::{DeviceEvent, DevicePosts, NicAt};
use crate::kernel::{PacketId, QueueId, Time};
use crate::memory::stats::AccessClass;
use crate::memory::{Agent, Memory, Sender, Txn, TxnOp};
use crate::meter::drops::DropCause;
use crate::placement::{DeviceKind, DeviceTransfer, Placement};
use std::collections::VecDeque;

/// Receive engine of the integrated NIC, which processes one packet after the other.
#[derive(Clone, Default)]
pub(super) struct Integrated {
    rx: VecDeque<PacketId>,
    /// Packets whose lines are written one by one, in arrival order, until all are placed.
    writing: VecDeque<PacketId>,
    rx_free_at: Time,
    rx_scheduled: bool,
    /// Time since the restart for which the engine was occupied by packets that it has finished, up to `rx_free_at`.
    busy: Time,
    /// Start of the window, or of the engine's present packet if that is later.
    since: Time,
}

impl Integrated {
    /// Starts a new window.
    pub(super) fn restart(&mut self, now: Time) {
        self.busy = self.rx_free_at.saturating_sub(now);
        self.since = now;
    }

    /// Time between the restart and `now` in which the engine was occupied by the packets that it has finished.
    pub(super) fn busy_until(&self, now: Time) -> Time {
        self.busy.saturating_sub(self.rx_free_at.saturating_sub(now))
    }
}

/// The packet that a transaction of the NIC moves lines of.
fn packet_of(t: &Txn) -> PacketId {
    match t.sender {
        Sender::Nic(Some(id)) => id,
        other => unreachable!("{other:?} is no packet of the NIC"),
    }
}

impl Nic {
    fn engine(&mut self) -> &mut Integrated {
        match &mut self.attachment {
            Attachment::Integrated(i) => i,
            _ => unreachable!("an event of a NIC on the chip"),
        }
    }

    /// Accepts a packet from the wire: assigns a buffer and queues the packet for the receive engine.
    pub(super) fn receive(&mut self, cal: &mut impl DevicePosts, mut p: Packet, now: Time) -> Result<(), DropCause> {
        self.give_buffer(&mut p, now)?;
        let id = self.packets.add(p);
        self.queues[p.queue].arriving.push_back(id);
        self.life_begins(id);
        let pipeline = self.pipeline;
        let e = self.engine();
        e.rx.push_back(id);
        if !e.rx_scheduled {
            e.rx_scheduled = true;
            cal.post((now + pipeline).max(e.rx_free_at), DeviceEvent::NicRx);
        }
        Ok(())
    }

    /// Handles `DeviceEvent::NicRx`: sends the lines of the oldest packet to the home agent as one burst.
    pub fn on_rx(&mut self, mem: &mut Memory, cal: &mut impl DevicePosts, placement: &mut Placement, now: Time) {
        let Some(&id) = self.engine().rx.front() else {
            self.engine().rx_scheduled = false;
            return;
        };
        let e = self.engine();
        e.since = e.since.max(now);
        let p = self.packets.get_mut(id);
        p.began = now;
        let line_by_line = mem.has_mshrs();
        if line_by_line {
            p.left = p.lines;
        }
        let p = *p;
        for (tag, first, lines) in self.parts(&p) {
            let line = p.line + u64::from(first);
            let to = placement.write(&DeviceTransfer { tag, ..DeviceTransfer::of(Agent::Nic, DeviceKind::Nic, line) });
            let t = Txn::dma_write(Sender::Nic(Some(id)), AccessClass::NicRxWr, to, line, lines, now);
            // A burst that is not the packet's last does not complete the packet.
            let record = u8::from(first + lines < p.lines);
            let t = Txn { tag, record, ..t };
            mem.send(cal, now, t);
        }
        if line_by_line {
            // Lines that wait for an MSHR delay neither other lines nor later packets.
            self.engine().writing.push_back(id);
            self.follow(cal, now + self.interval * u64::from(p.lines));
        }
    }

    /// Handles `memory::MemoryEvent::Fill` of a burst that was written, or of lines that DRAM delivered.
    pub fn on_answer(&mut self, cal: &mut impl DevicePosts, t: &Txn, now: Time) {
        if t.op == TxnOp::DmaWrite {
            return self.placed(cal, t, now);
        }
        let id = packet_of(t);
        let p = self.packets.get_mut(id);
        p.left -= t.lines;
        p.data_at = p.data_at.max(now);
        if p.left == 0 {
            cal.post(p.data_at + self.pipeline, DeviceEvent::NicTx(NicAt::Chip, id));
        }
    }

    /// Counts a burst as placed, or a line of a packet whose lines are written one by one. The NIC announces packets in
    /// arrival order.
    fn placed(&mut self, cal: &mut impl DevicePosts, t: &Txn, now: Time) {
        if self.engine().writing.is_empty() {
            if t.record == 0 {
                self.written(cal, packet_of(t), now);
            }
            return;
        }
        self.packets.get_mut(packet_of(t)).left -= t.lines;
        while let Some(&first) = self.engine().writing.front() {
            if self.packets.get(first).left > 0 {
                return;
            }
            self.engine().writing.pop_front();
            self.counts.rx_lines += u64::from(self.packets.get(first).lines);
            cal.post(now + self.notify, DeviceEvent::Delivered(first));
        }
    }

    /// Announces the oldest packet, whose lines are all placed, to its core, and starts the next packet.
    fn written(&mut self, cal: &mut impl DevicePosts, id: PacketId, now: Time) {
        let lines = u64::from(self.packets.get(id).lines);
        let end = now + self.interval * lines;
        self.counts.rx_lines += lines;
        cal.post(end + self.notify, DeviceEvent::Delivered(id));
        self.follow(cal, end);
    }

    /// Releases the engine from its packet at `end` and schedules the next packet.
    fn follow(&mut self, cal: &mut impl DevicePosts, end: Time) {
        let e = self.engine();
        e.rx.pop_front();
        e.busy += end.saturating_sub(e.since);
        e.rx_free_at = end;
        e.rx_scheduled = !e.rx.is_empty();
        if let Some(&next) = e.rx.front() {
            let ready = self.packets.get(next).arrived + self.pipeline;
            cal.post(end.max(ready), DeviceEvent::NicRx);
        }
    }

    /// Handles `DeviceEvent::Delivered`: makes packet `id` visible to software and returns its queue.
    pub fn on_delivered(&mut self, id: PacketId) -> QueueId {
        let queue = self.packets.get(id).queue;
        let q = &mut self.queues[queue];
        let first = q.arriving.pop_front();
        debug_assert_eq!(first, Some(id), "packets of a queue overtake each other");
        q.waiting.push_back(Completion::Received(id));
        self.counts.delivered += 1;
        queue
    }

    /// Accepts the work queue entry that a core has written for packet `id`'s reply.
    pub fn post(&mut self, cal: &mut impl DevicePosts, id: PacketId, now: Time) {
        self.queue_reply(id);
        cal.post(now + self.notify, DeviceEvent::NicTx(NicAt::Chip, id));
    }

    /// Handles `DeviceEvent::NicTx`: requests the reply's buffer from memory, or sends the reply when all of the buffer
    /// has arrived. Returns true when the reply has been sent.
    pub fn on_tx(
        &mut self,
        mem: &mut Memory,
        cal: &mut impl DevicePosts,
        placement: &mut Placement,
        id: PacketId,
        now: Time,
    ) -> bool {
        let p = *self.packets.get(id);
        if p.left == 0 {
            return self.sent(id, now);
        }
        // The engine moves one line per interval, so the last line cannot arrive earlier than this.
        self.packets.get_mut(id).data_at = now + self.interval * u64::from(p.tx_lines - 1);
        let from = placement.read(&DeviceTransfer::of(Agent::Nic, DeviceKind::Nic, p.tx_line));
        let t = Txn::dma_read(Sender::Nic(Some(id)), AccessClass::NicTxRd, p.tx_line, p.tx_lines, now);
        mem.send(cal, now + mem.lat.noc, Txn { from, ..t });
        false
    }

    pub(super) fn sent(&mut self, id: PacketId, now: Time) -> bool {
        self.packets.get_mut(id).sent_at = now;
        self.counts.sent += 1;
        true
    }
}
