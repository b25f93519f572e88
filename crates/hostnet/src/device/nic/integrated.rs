//! The attachment on the chip (Sweeper, section III): no PCIe link, hardware-terminated transport, per-core rings, work queue
//! entries with a SweepBuffer bit (Fig. 4). A packet gets its buffer as it comes; messages take `notify`.

use super::{Attachment, Nic, Packet};
use crate::kernel::{Event, Events, Time};
use crate::memory::Memory;
use crate::meter::drops::DropCause;
use std::collections::VecDeque;

/// The receive engine: one packet after the other.
#[derive(Clone, Default)]
pub(super) struct Integrated {
    rx: VecDeque<u32>,
    /// Lines of the first packet that have left.
    rx_line: u16,
    rx_free_at: Time,
    rx_scheduled: bool,
}

impl Nic {
    fn engine(&mut self) -> &mut Integrated {
        match &mut self.attachment {
            Attachment::Integrated(i) => i,
            Attachment::Pcie(_) => unreachable!("an event of a NIC on the chip"),
        }
    }

    /// A packet has come: it gets a buffer, and its turn.
    pub(super) fn receive(&mut self, cal: &mut Events, mut p: Packet, now: Time) -> Result<(), DropCause> {
        self.give_buffer(&mut p, now)?;
        let id = self.packets.add(p);
        self.queues[p.queue as usize].arriving.push_back(id);
        let pipeline = self.pipeline;
        let e = self.engine();
        e.rx.push_back(id);
        if !e.rx_scheduled {
            e.rx_scheduled = true;
            cal.push((now + pipeline).max(e.rx_free_at), Event::NicRx);
        }
        Ok(())
    }

    /// `Event::NicRx`: writes the oldest packet, as far as the home agent admits.
    pub fn on_rx(&mut self, mem: &mut Memory, cal: &mut Events, now: Time) {
        let Some(&id) = self.engine().rx.front() else {
            self.engine().rx_scheduled = false;
            return;
        };
        let (p, inbound) = (*self.packets.get(id), self.inbound);
        let e = self.engine();
        let start = e.rx_line;
        mem.announce(p.line + u64::from(start), u64::from(p.lines - start));
        while e.rx_line < p.lines {
            if !mem.admits_nic() {
                return;
            }
            mem.nic_write(cal, p.line + u64::from(e.rx_line), inbound, now);
            e.rx_line += 1;
        }
        let end = now + self.interval * u64::from(p.lines - start);
        self.counts.rx_lines += u64::from(p.lines);
        cal.push(end + self.notify, Event::Delivered(id));
        let e = self.engine();
        e.rx_line = 0;
        e.rx.pop_front();
        e.rx_free_at = end;
        e.rx_scheduled = !e.rx.is_empty();
        if let Some(&next) = e.rx.front() {
            let ready = self.packets.get(next).arrived + self.pipeline;
            cal.push(end.max(ready), Event::NicRx);
        }
    }

    /// `Event::Delivered`: the packet is visible; returns its queue.
    pub fn on_delivered(&mut self, id: u32) -> usize {
        let queue = self.packets.get(id).queue as usize;
        let q = &mut self.queues[queue];
        let first = q.arriving.pop_front();
        debug_assert_eq!(first, Some(id), "packets of a queue overtake each other");
        q.waiting.push_back(id);
        self.counts.delivered += 1;
        queue
    }

    /// The core has written a work queue entry for packet `id`'s reply.
    pub fn post(&mut self, cal: &mut Events, id: u32, now: Time) {
        self.ready(id);
        cal.push(now + self.notify, Event::NicTx(id));
    }

    /// `Event::NicTx`: reads the buffer, or finds that all of it has come and sends. True once it is sent.
    pub fn on_tx(&mut self, mem: &mut Memory, cal: &mut Events, id: u32, now: Time) -> bool {
        let p = *self.packets.get(id);
        if p.left == 0 {
            return self.sent(id, now);
        }
        for i in 0..p.tx_lines {
            let line = p.tx_line + u64::from(i);
            let at = now + self.interval * u64::from(i);
            if let Some(done) = mem.nic_read(cal, line, self.tx_from_dram, id, now) {
                let p = self.packets.get_mut(id);
                p.left -= 1;
                p.data_at = p.data_at.max(done.max(at));
            }
        }
        self.try_send(cal, id);
        false
    }

    pub(super) fn sent(&mut self, id: u32, now: Time) -> bool {
        self.packets.get_mut(id).sent_at = now;
        self.counts.sent += 1;
        true
    }

    /// `Event::Fill` of a line that DRAM delivered.
    pub fn on_fill(&mut self, cal: &mut Events, id: u32, now: Time) {
        let p = self.packets.get_mut(id);
        p.left -= 1;
        p.data_at = p.data_at.max(now);
        self.try_send(cal, id);
    }

    fn try_send(&mut self, cal: &mut Events, id: u32) {
        let p = self.packets.get(id);
        if p.left == 0 {
            cal.push(p.data_at + self.pipeline, Event::NicTx(id));
        }
    }
}
