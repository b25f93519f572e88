//! The attachment on the chip (Sweeper, section III): no PCIe link, hardware-terminated transport, per-core rings, work queue
//! entries with a SweepBuffer bit (Fig. 4). A packet gets its buffer as it comes; messages take `notify`.

use super::{Attachment, Completion, Nic, Packet};
use crate::device::{Event, NicAt, Posts};
use crate::kernel::{Int, LineAddr, PacketId, QueueId, Time};
use crate::memory::stats::Class;
use crate::memory::{Agent, Memory, Op, Txn};
use crate::meter::drops::DropCause;
use crate::placement::{DeviceKind, Placement, Transfer};
use std::collections::VecDeque;

/// The receive engine: one packet after the other.
#[derive(Clone, Default)]
pub(super) struct Integrated {
    rx: VecDeque<PacketId>,
    /// Packets whose lines go on one by one, in their order, until all are placed.
    writing: VecDeque<PacketId>,
    rx_free_at: Time,
    rx_scheduled: bool,
}

/// The packet that a transaction of the NIC moves lines of.
fn packet_of(t: &Txn) -> PacketId {
    PacketId::new(t.who.to_usize())
}

impl Nic {
    fn engine(&mut self) -> &mut Integrated {
        match &mut self.attachment {
            Attachment::Integrated(i) => i,
            _ => unreachable!("an event of a NIC on the chip"),
        }
    }

    /// A packet has come: it gets a buffer, and its turn.
    pub(super) fn receive(&mut self, cal: &mut impl Posts, mut p: Packet, now: Time) -> Result<(), DropCause> {
        self.give_buffer(&mut p, now)?;
        let id = self.packets.add(p);
        self.queues[p.queue].arriving.push_back(id);
        let pipeline = self.pipeline;
        let e = self.engine();
        e.rx.push_back(id);
        if !e.rx_scheduled {
            e.rx_scheduled = true;
            cal.post((now + pipeline).max(e.rx_free_at), Event::NicRx);
        }
        Ok(())
    }

    /// `Event::NicRx`: the oldest packet's lines go to the home agent as one burst.
    pub fn on_rx(&mut self, mem: &mut Memory, cal: &mut impl Posts, placement: &mut Placement, now: Time) {
        let Some(&id) = self.engine().rx.front() else {
            self.engine().rx_scheduled = false;
            return;
        };
        let p = self.packets.get_mut(id);
        p.began = now;
        let apart = mem.has_mshrs();
        if apart {
            p.left = p.lines;
        }
        let p = *p;
        for (tag, first, lines) in self.parts(&p) {
            let line = p.line + u64::from(first);
            let to = placement.write(&Transfer { tag, ..Transfer::of(Agent::Nic, DeviceKind::Nic, line) });
            let t = Txn::dma_write(Agent::Nic, Class::NicRxWr, to, line, lines, id.index().to_u32(), now);
            // Those that follow keep the packet from being complete.
            let record = u8::from(first + lines < p.lines);
            let t = Txn { tag, record, ..t };
            mem.send(cal, now, t);
        }
        if apart {
            // Lines that wait for a register do not hold others up, nor the packets behind.
            self.engine().writing.push_back(id);
            self.follow(cal, now + self.interval * u64::from(p.lines));
        }
    }

    fn transfer(&self, queue: QueueId, line: LineAddr) -> Transfer {
        Transfer { tag: self.queues[queue].tag, ..Transfer::of(Agent::Nic, DeviceKind::Nic, line) }
    }

    /// `memory::Event::Fill` of a burst, or of a line that DRAM delivered.
    pub fn on_answer(&mut self, cal: &mut impl Posts, t: &Txn, now: Time) {
        if t.op == Op::DmaWrite {
            return self.placed(cal, t, now);
        }
        let id = packet_of(t);
        let p = self.packets.get_mut(id);
        p.left -= t.lines;
        p.data_at = p.data_at.max(now);
        if p.left == 0 {
            cal.post(p.data_at + self.pipeline, Event::NicTx(NicAt::Chip, id));
        }
    }

    /// A burst is placed, or a line of a packet whose lines go on one by one. Packets are announced in their order.
    fn placed(&mut self, cal: &mut impl Posts, t: &Txn, now: Time) {
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
            cal.post(now + self.notify, Event::Delivered(first));
        }
    }

    /// The oldest packet's lines are all placed: it is announced to its core, and the next one follows.
    fn written(&mut self, cal: &mut impl Posts, id: PacketId, now: Time) {
        let lines = u64::from(self.packets.get(id).lines);
        let end = now + self.interval * lines;
        self.counts.rx_lines += lines;
        cal.post(end + self.notify, Event::Delivered(id));
        self.follow(cal, end);
    }

    /// The engine is done with its packet at `end`, and turns to the next one.
    fn follow(&mut self, cal: &mut impl Posts, end: Time) {
        let e = self.engine();
        e.rx.pop_front();
        e.rx_free_at = end;
        e.rx_scheduled = !e.rx.is_empty();
        if let Some(&next) = e.rx.front() {
            let ready = self.packets.get(next).arrived + self.pipeline;
            cal.post(end.max(ready), Event::NicRx);
        }
    }

    /// `Event::Delivered`: the packet is visible; returns its queue.
    pub fn on_delivered(&mut self, id: PacketId) -> QueueId {
        let queue = self.packets.get(id).queue;
        let q = &mut self.queues[queue];
        let first = q.arriving.pop_front();
        debug_assert_eq!(first, Some(id), "packets of a queue overtake each other");
        q.waiting.push_back(Completion::Received(id));
        self.counts.delivered += 1;
        queue
    }

    /// The core has written a work queue entry for packet `id`'s reply.
    pub fn post(&mut self, cal: &mut impl Posts, id: PacketId, now: Time) {
        self.ready(id);
        cal.post(now + self.notify, Event::NicTx(NicAt::Chip, id));
    }

    /// `Event::NicTx`: asks for the buffer, or finds that all of it has come and sends. True once it is sent.
    pub fn on_tx(
        &mut self,
        mem: &mut Memory,
        cal: &mut impl Posts,
        placement: &mut Placement,
        id: PacketId,
        now: Time,
    ) -> bool {
        let p = *self.packets.get(id);
        if p.left == 0 {
            return self.sent(id, now);
        }
        // The engine moves a line at a time: the last of them is not here before.
        self.packets.get_mut(id).data_at = now + self.interval * u64::from(p.tx_lines - 1);
        let transfer = self.transfer(p.queue, p.tx_line);
        let from = placement.read(&transfer);
        let t = Txn::dma_read(Agent::Nic, Class::NicTxRd, p.tx_line, p.tx_lines, id.index().to_u32(), now);
        mem.send(cal, now + mem.lat.noc, Txn { from, tag: transfer.tag, ..t });
        false
    }

    pub(super) fn sent(&mut self, id: PacketId, now: Time) -> bool {
        self.packets.get_mut(id).sent_at = now;
        self.counts.sent += 1;
        true
    }
}
