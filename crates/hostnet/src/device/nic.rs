//! The integrated queue-pair NIC of Sweeper (section III): on-chip, no PCIe link, hardware-terminated
//! transport, per-core receive rings, work queue entries with a SweepBuffer bit (Fig. 4).

use crate::kernel::units::Span;
use crate::kernel::{Event, Events, Time};
use crate::memory::stats::Class;
use crate::memory::{Agent, Memory, Op, Sweep, Txn};
use crate::placement::{Placement, SweepTx, Transfer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The NIC's own timing.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NicSpec {
    /// From the wire to the first line's write, and from the last line's read to the wire.
    pub pipeline: Span,
    /// Between two lines that the receive or a transmit engine moves.
    pub line_interval: Span,
    /// From a message to its effect on the other side: a queue entry (NIC to polling core, core to NIC) or a sweep.
    pub notify: Span,
}

/// A packet between its arrival and the end of its last use.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packet {
    pub arrived: Time,
    pub queue: u16,
    pub lines: u16,
    pub wire_bytes: u32,
    /// Ring slot.
    pub buffer: u32,
    /// First line of the buffer.
    pub line: u64,
    /// What it asks for; the application's business.
    pub kind: u8,
    pub key: u64,
    pub value_lines: u16,
    /// The reply's lines; zero when there is none.
    pub tx_line: u64,
    pub tx_lines: u16,
    /// The reply leaves from the receive buffer.
    pub zero_copy: bool,
    /// Lines the NIC has yet to read.
    pub left: u16,
    /// When the last line read so far has come.
    pub data_at: Time,
    /// Uses that have not ended: receive buffer, reply.
    pub uses: u8,
    /// Its service has ended: sent, or consumed for good.
    pub done: bool,
    pub sent_at: Time,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    base: u64,
    buffer_lines: u64,
    slots: usize,
    free: VecDeque<u32>,
    full: bool,
    waiting: VecDeque<u32>,
    /// Accepted, not yet visible to the core.
    arriving: u32,
    tx_base: u64,
    tx_buffer_lines: u64,
    tx_slots: u32,
    tx_next: u32,
    tx_used: u32,
    /// Transmit buffers whose sweep is left to the core (line, lines, sent).
    hints: VecDeque<(u64, u16, Time)>,
}

/// Why a packet was not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Drop {
    /// Every buffer of the ring was in use.
    RingFull,
    /// The queue was so deep that the packet would have missed its objective (NeBuLa).
    Proactive,
}

#[derive(Clone, Debug, Default)]
pub struct NicCounts {
    pub offered: u64,
    pub accepted: u64,
    pub ring_full: u64,
    pub proactive: u64,
    /// Times that a ring ran full after at least half of it had been free: a sender that is paused
    /// instead of losing packets would have been paused as often.
    pub pauses: u64,
    pub sent: u64,
    pub delivered: u64,
    pub rx_lines: u64,
}

#[derive(Clone)]
pub struct Nic {
    pipeline: Time,
    interval: Time,
    pub notify: Time,
    queues: Vec<Queue>,
    packets: Vec<Packet>,
    spare: Vec<u32>,
    rx: VecDeque<u32>,
    rx_free_at: Time,
    rx_scheduled: bool,
    pub sweep_tx: SweepTx,
    /// Proactive drop: waiting packets from which on arrivals are dropped; 0 is off.
    pub drop_depth: u32,
    pub counts: NicCounts,
}

impl Nic {
    pub fn new(s: &NicSpec, queues: u32) -> Nic {
        Nic {
            pipeline: s.pipeline.into(),
            interval: s.line_interval.into(),
            notify: s.notify.into(),
            queues: vec![Queue::default(); queues as usize],
            packets: Vec::with_capacity(1024),
            spare: Vec::new(),
            rx: VecDeque::new(),
            rx_free_at: Time::ZERO,
            rx_scheduled: false,
            sweep_tx: SweepTx::None,
            drop_depth: 0,
            counts: NicCounts::default(),
        }
    }

    /// Gives `queue` a ring of `slots` buffers of `lines` lines from line `base` on.
    pub fn attach(&mut self, queue: usize, receive: bool, base: u64, slots: u32, lines: u64) {
        let q = &mut self.queues[queue];
        if receive {
            q.base = base;
            q.slots = slots as usize;
            q.free = (0..slots).collect();
            q.buffer_lines = lines;
        } else {
            q.tx_base = base;
            q.tx_slots = slots;
            q.tx_buffer_lines = lines;
        }
    }

    /// Starts the rings of `queue` at these slots, as an uptime would leave them: rings in step put all that
    /// they evict into the same rank of DRAM.
    pub fn start_at(&mut self, queue: usize, rx: u64, tx: u64) {
        let q = &mut self.queues[queue];
        q.free.rotate_left(rx as usize);
        q.tx_next = tx as u32;
    }

    pub fn packet(&mut self, id: u32) -> &mut Packet {
        &mut self.packets[id as usize]
    }
    /// Packets that `queue`'s core has not taken, and those about to become visible to it.
    pub fn unconsumed(&self, queue: usize) -> u32 {
        self.queues[queue].waiting.len() as u32 + self.queues[queue].arriving
    }

    /// A packet comes off the wire. `p` carries size and content.
    ///
    /// # Errors
    /// The cause, when it is dropped.
    pub fn arrive(&mut self, cal: &mut Events, mut p: Packet, now: Time) -> Result<(), Drop> {
        self.counts.offered += 1;
        let depth = self.unconsumed(p.queue as usize);
        let q = &mut self.queues[p.queue as usize];
        if self.drop_depth > 0 && depth >= self.drop_depth {
            self.counts.proactive += 1;
            return Err(Drop::Proactive);
        }
        let Some(buffer) = q.free.pop_front() else {
            self.counts.ring_full += 1;
            self.counts.pauses += u64::from(!q.full);
            q.full = true;
            return Err(Drop::RingFull);
        };
        self.counts.accepted += 1;
        q.arriving += 1;
        p.arrived = now;
        p.buffer = buffer;
        p.line = q.base + u64::from(buffer) * q.buffer_lines;
        let id = self.adopt(p);
        self.rx.push_back(id);
        if !self.rx_scheduled {
            self.rx_scheduled = true;
            cal.push((now + self.pipeline).max(self.rx_free_at), Event::NicRx);
        }
        Ok(())
    }

    /// The first lines of the next receive and transmit buffers of an idle `queue`, which both go to the
    /// end of their rings.
    pub fn cycle(&mut self, queue: usize) -> (u64, u64) {
        let tx = self.next_tx(queue);
        let q = &mut self.queues[queue];
        q.tx_next = (q.tx_next + 1) % q.tx_slots;
        q.free.rotate_left(1);
        let buffer = q.free.back().expect("a ring has buffers");
        (q.base + u64::from(*buffer) * q.buffer_lines, tx)
    }

    /// Gives packet `p` a record.
    pub fn adopt(&mut self, p: Packet) -> u32 {
        if let Some(id) = self.spare.pop() {
            self.packets[id as usize] = p;
            return id;
        }
        self.packets.push(p);
        (self.packets.len() - 1) as u32
    }

    /// `Event::NicRx`: the oldest packet's lines go to the home agent as one burst.
    pub fn on_rx(&mut self, mem: &mut Memory, cal: &mut Events, placement: &mut Placement, now: Time) {
        let Some(&id) = self.rx.front() else {
            self.rx_scheduled = false;
            return;
        };
        let p = &self.packets[id as usize];
        let to = placement.write(&Transfer::of(Agent::Nic, p.line));
        mem.send(cal, now, Txn::dma_write(Agent::Nic, Class::NicRxWr, to, p.line, p.lines, id, now));
    }

    /// `Event::Fill` of a burst, or of a line that DRAM delivered.
    pub fn on_answer(&mut self, cal: &mut Events, t: &Txn, now: Time) {
        if t.op == Op::DmaWrite {
            return self.written(cal, t.who, now);
        }
        let p = &mut self.packets[t.who as usize];
        p.left -= t.lines;
        p.data_at = p.data_at.max(now);
        self.try_send(cal, t.who);
    }

    /// The oldest packet's lines are all placed: it is announced to its core, and the next one follows.
    fn written(&mut self, cal: &mut Events, id: u32, now: Time) {
        let lines = u64::from(self.packets[id as usize].lines);
        let end = now + self.interval * lines;
        self.counts.rx_lines += lines;
        self.rx.pop_front();
        self.rx_free_at = end;
        cal.push(end + self.notify, Event::Delivered(id));
        if let Some(&next) = self.rx.front() {
            let ready = self.packets[next as usize].arrived + self.pipeline;
            cal.push(end.max(ready), Event::NicRx);
        } else {
            self.rx_scheduled = false;
        }
    }

    /// `Event::Delivered`: the packet is visible; returns its queue.
    pub fn on_delivered(&mut self, id: u32) -> usize {
        let queue = self.packets[id as usize].queue as usize;
        self.queues[queue].arriving -= 1;
        self.queues[queue].waiting.push_back(id);
        self.counts.delivered += 1;
        queue
    }

    /// The core takes its oldest packet, if it also has a transmit buffer for the reply.
    pub fn take(&mut self, queue: usize) -> Option<u32> {
        let q = &mut self.queues[queue];
        if q.tx_used >= q.tx_slots {
            return None;
        }
        q.waiting.pop_front()
    }

    /// What the packet asks for that `queue`'s core will take next.
    pub fn next_key(&self, queue: usize) -> Option<u64> {
        let id = *self.queues[queue].waiting.front()?;
        Some(self.packets[id as usize].key)
    }

    /// First line of the next transmit buffer of the ring.
    pub fn next_tx(&self, queue: usize) -> u64 {
        let q = &self.queues[queue];
        q.tx_base + u64::from(q.tx_next) * q.tx_buffer_lines
    }

    /// Takes the next transmit buffer of the ring.
    pub fn reserve_tx(&mut self, queue: usize) {
        let q = &mut self.queues[queue];
        q.tx_next = (q.tx_next + 1) % q.tx_slots;
        q.tx_used += 1;
    }

    /// The core is done with the receive buffer: it goes back to the end of the ring.
    pub fn free_rx(&mut self, id: u32) {
        let p = self.packets[id as usize];
        let q = &mut self.queues[p.queue as usize];
        q.free.push_back(p.buffer);
        q.full &= q.free.len() < q.slots / 2;
        self.end_use(id);
    }

    /// One use of the packet has ended; with the last its record is recycled.
    pub fn end_use(&mut self, id: u32) {
        let p = &mut self.packets[id as usize];
        p.uses -= 1;
        if p.uses == 0 {
            self.spare.push(id);
        }
    }

    /// The core has written a work queue entry for packet `id`'s reply.
    pub fn post(&mut self, cal: &mut Events, id: u32, now: Time) {
        let p = &mut self.packets[id as usize];
        p.left = p.tx_lines;
        cal.push(now + self.notify, Event::NicTx(id));
    }

    /// `Event::NicTx`: asks for the buffer, or finds that all of it has come and sends. True once it is sent.
    pub fn on_tx(&mut self, mem: &mut Memory, cal: &mut Events, placement: &mut Placement, id: u32, now: Time) -> bool {
        let p = &mut self.packets[id as usize];
        if p.left == 0 {
            p.sent_at = now;
            self.counts.sent += 1;
            return true;
        }
        p.data_at = now + self.interval * u64::from(p.tx_lines - 1);
        let from = placement.read(&Transfer::of(Agent::Nic, p.tx_line));
        let t = Txn::dma_read(Agent::Nic, Class::NicTxRd, p.tx_line, p.tx_lines, id, now);
        mem.send(cal, now + mem.lat.noc, Txn { from, ..t });
        false
    }

    fn try_send(&mut self, cal: &mut Events, id: u32) {
        let p = self.packets[id as usize];
        if p.left == 0 {
            cal.push(p.data_at + self.pipeline, Event::NicTx(id));
        }
    }

    /// After transmission: sweeps if asked, then gives the buffer back to the core.
    /// Returns the time of release.
    pub fn release_tx(&mut self, cal: &mut Events, id: u32, now: Time) -> Time {
        let p = self.packets[id as usize];
        let q = &mut self.queues[p.queue as usize];
        let mut released = now;
        match self.sweep_tx {
            SweepTx::None => {}
            SweepTx::Nic => {
                let count = u32::from(p.tx_lines);
                let at = now + self.notify;
                cal.push(at, Event::sweep(p.tx_line, count, Sweep::Sweep as u8));
                released = at + self.interval * u64::from(count);
            }
            SweepTx::Cpu => q.hints.push_back((p.tx_line, p.tx_lines, now)),
        }
        if !p.zero_copy {
            q.tx_used -= 1;
        }
        released
    }

    /// A completion queue hint that asks `queue`'s core to sweep: (line, lines, time sent).
    pub fn hint(&mut self, queue: usize) -> Option<(u64, u16, Time)> {
        self.queues[queue].hints.pop_front()
    }

    /// Packets accepted whose service has not ended.
    pub fn unfinished(&self) -> u64 {
        self.packets.iter().filter(|p| !p.done).count() as u64
    }
    pub fn waiting(&self, queue: usize) -> usize {
        self.queues[queue].waiting.len()
    }
}
