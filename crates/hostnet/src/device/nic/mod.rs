//! A NIC, integrated on the chip or attached to a PCIe port.
//!
//! ```text
//!            arrive                                             take, release, replenish
//!   wire -----------> receive buffer --> classifier --> queue <--------------------------- software
//!                           |               descriptors, buffers  waiting packets             |
//!                           +---- receive DMA ----> memory, then the completion               | post
//!   wire <----------- transmit <----- DMA reads <----- doorbell ------------------------------+
//! ```
//!
//! The *attachment* connects the NIC to memory. On the chip (`integrated`) a packet is a burst to the home agent, and a
//! message announces the packet to the core. Behind a port (`pcie`) a packet is payload lines and a completion line in
//! memory, and software sees the packet when all of these lines have been written. With descriptor rings in memory
//! (`ringed`) software sees a packet when its descriptor has been written back. Software uses the same calls for all
//! attachments.

mod classify;
mod contexts;
pub mod drops;
mod fitted;
mod integrated;
mod moderation;
mod packet;
mod pcie;
mod queue;
pub mod registers;
mod ringed;
mod rings;
mod spec;

pub use classify::{Classifier, Marker};
pub use packet::Packet;
pub use queue::{FrameMemory, COMPLETIONS};
pub use ringed::RingMeter;
pub use rings::{RingLayout, RingMemory, RingsQuirks, RingsSpec, Throttle, WriteBack, BUFFERS, DATA_ROOM};
pub use spec::{EthernetSpec, FlowRule, NicSpec, RingStart};

use crate::device::DevicePosts;
use crate::flow::Credits;
use crate::kernel::{IdVec, Int, LineAddr, PacketId, PortId, QueueId, Time};
use crate::memory::Tag;
use crate::meter::drops::{DropCause, DropLedger, DropPlace};
use crate::meter::life::{Lives, Milestone};
use crate::placement::SweepTx;
use integrated::Integrated;
use moderation::Moderation;
use packet::Packets;
use pcie::Pcie;
use queue::{Completion, Queue, ReceiveBuffers, TransmitBuffers};
use registers::NicRegisters;
use ringed::Ringed;
use std::collections::VecDeque;

/// Vendor and device ID in the configuration space: those of an 8254x controller, whose driver a poll-mode driver
/// resembles.
const VENDOR: u16 = 0x8086;
const DEVICE: u16 = 0x1075;
/// Interrupt cause of completions in both directions: bit 7, the receive timer's.
const COMPLETION: u32 = 1 << 7;

/// Counts of the packets that arrived at the NIC, and of their outcomes.
#[derive(Clone, Debug, Default)]
pub struct NicCounts {
    /// Packets that arrived from the network.
    pub offered: u64,
    /// Packets that were assigned a receive buffer.
    pub accepted: u64,
    /// Number of times that a receive ring became full after at least half of it had been free. A sender that pauses,
    /// instead of losing packets, would have been paused as often.
    pub pauses: u64,
    /// Packets that the NIC has sent.
    pub sent: u64,
    /// Packets that software on this host originated.
    pub originated: u64,
    /// Packets that have become visible to software.
    pub delivered: u64,
    /// Lines of the received packets.
    pub rx_lines: u64,
}

/// Times of a NIC on the chip; all are zero for a NIC behind a port.
#[derive(Clone, Copy, Default)]
struct ChipTimes {
    /// Time from a packet's arrival to its first line, and from a reply's last line to the wire.
    pipeline: Time,
    /// Time from one line to the next.
    interval: Time,
    /// Time of a message between the NIC and a core, in either direction.
    notify: Time,
}

/// Attachment of the NIC to the host.
#[derive(Clone)]
enum Attachment {
    Integrated(Integrated),
    Pcie(Box<Pcie>),
    Ringed(Box<Ringed>),
}

/// NIC of a host.
#[derive(Clone)]
pub struct Nic {
    pipeline: Time,
    interval: Time,
    /// Time of a message between the NIC and a core, in either direction.
    pub notify: Time,
    classifier: Classifier,
    /// Classifier that derives steering tags for placement from each packet; absent without software that receives.
    pub marker: Option<Box<Marker>>,
    /// Whether the first line of a packet is written separately, because placement reads its tag.
    pub splits: bool,
    /// Whether receive buffers from which a reply was sent go to software, which returns them to the NIC.
    pub reclaims: bool,
    queues: IdVec<QueueId, Queue>,
    packets: Packets,
    /// Bytes of packets that wait between the wire and the DMA engine; absent when a packet is assigned its buffer on
    /// arrival.
    buffer: Option<Credits>,
    attachment: Attachment,
    /// Queues whose requested interrupts software has not fetched, each with the time at which the interrupt is due.
    asked: VecDeque<(QueueId, Time)>,
    /// Agent that sweeps transmit buffers.
    pub sweep_tx: SweepTx,
    /// Proactive drop: the number of waiting packets at or above which the NIC drops arriving packets.
    pub drop_depth: Option<u32>,
    /// Counts of packets in the measured window.
    pub counts: NicCounts,
    /// Ledger of the packets that the NIC dropped.
    pub drops: DropLedger,
    /// Registers of each function of the NIC.
    registers: Vec<NicRegisters>,
    /// Lives of packets, where the run records any.
    pub lives: Option<Box<Lives>>,
}

impl Nic {
    /// An integrated NIC, on the chip.
    pub fn integrated(s: &NicSpec, queues: u32) -> Nic {
        let times =
            ChipTimes { pipeline: s.pipeline.into(), interval: s.line_interval.into(), notify: s.notify.into() };
        Nic::new(
            times,
            IdVec::filled(Queue::default(), queues.to_usize()),
            None,
            Attachment::Integrated(Integrated::default()),
        )
    }

    /// A NIC behind PCIe port `port` whose queues have no buffers yet.
    pub fn pcie(s: &EthernetSpec, port: PortId, queues: u32) -> Nic {
        Nic::behind_port(s, queues, Attachment::Pcie(Box::new(Pcie::new(s, port))))
    }

    /// The PCIe port that the NIC is behind; None for the NIC on the chip.
    pub fn port(&self) -> Option<PortId> {
        match &self.attachment {
            Attachment::Integrated(_) => None,
            Attachment::Pcie(p) => Some(p.port),
            Attachment::Ringed(r) => Some(r.port()),
        }
    }

    fn behind_port(s: &EthernetSpec, queues: u32, attachment: Attachment) -> Nic {
        let buffer = Credits::new(s.receive_buffer.0.to_u32());
        let moderation = Moderation::new(s.moderation.into(), s.moderation_frames);
        let queue = Queue { moderation, ..Queue::default() };
        let mut nic = Nic::new(ChipTimes::default(), IdVec::filled(queue, queues.to_usize()), Some(buffer), attachment);
        nic.divide(&[queues.to_usize()], &s.flow_director);
        nic
    }

    fn new(times: ChipTimes, queues: IdVec<QueueId, Queue>, buffer: Option<Credits>, attachment: Attachment) -> Nic {
        let ChipTimes { pipeline, interval, notify } = times;
        Nic {
            pipeline,
            interval,
            notify,
            classifier: Classifier::spread(queues.len()),
            marker: None,
            splits: false,
            reclaims: false,
            queues,
            packets: Packets::default(),
            buffer,
            attachment,
            asked: VecDeque::new(),
            sweep_tx: SweepTx::None,
            drop_depth: None,
            counts: NicCounts::default(),
            drops: DropLedger::default(),
            registers: vec![NicRegisters::new(VENDOR, DEVICE)],
            lives: None,
        }
    }

    /// Attaches to `queue` a ring of `slots` receive buffers of `lines` lines each, from line `base` on.
    pub fn attach_receive(&mut self, queue: QueueId, base: LineAddr, slots: u32, lines: u64) {
        self.queues[queue].receive = Some(ReceiveBuffers::ring(base, slots, lines));
    }

    /// Attaches to `queue` a ring of `slots` transmit buffers of `lines` lines each, from line `base` on.
    pub fn attach_transmit(&mut self, queue: QueueId, base: LineAddr, slots: u32, lines: u64) {
        self.queues[queue].transmit = Some(TransmitBuffers::new(base, slots, lines));
    }

    /// Writes the completions of `queue` to `entries` lines from line `base` on, in turn.
    pub fn attach_completions(&mut self, queue: QueueId, base: LineAddr, entries: u64) {
        self.queues[queue].receive().complete_to(base, entries);
    }

    /// Divides the queues into functions with these numbers of queues, in order, and applies the flow director's rules
    /// to each of them.
    ///
    /// # Panics
    /// Panics when the functions do not have all queues.
    pub fn divide(&mut self, queues: &[usize], rules: &[FlowRule]) {
        self.classifier.divide(queues);
        self.registers = vec![NicRegisters::new(VENDOR, DEVICE); queues.len()];
        let functions = queues.iter().enumerate().flat_map(|(function, n)| std::iter::repeat_n(function.to_u8(), *n));
        self.queues.iter_mut().zip(functions).for_each(|(queue, function)| queue.function = function);
        for (function, n) in queues.iter().enumerate() {
            let own = rules.iter().filter(|r| usize::from(r.queue) < *n);
            own.for_each(|r| self.classifier.direct(function.to_u8(), r.flow, QueueId(r.queue)));
        }
    }

    /// Queue of packets of `flow` with RSS hash `hash`.
    pub fn classify(&self, function: u8, flow: u32, hash: u32) -> QueueId {
        self.classifier.queue(function, flow, Some(hash))
    }

    /// Registers of the function that has `queue`.
    pub fn registers(&mut self, queue: QueueId) -> &mut NicRegisters {
        &mut self.registers[usize::from(self.queues[queue].function)]
    }

    /// Starts the rings of `queue` at slots `rx` and `tx`, as after a long uptime: rings that advance in step would
    /// evict all their lines to the same rank of DRAM.
    pub fn start_at(&mut self, queue: QueueId, rx: u64, tx: u64) {
        let q = &mut self.queues[queue];
        q.receive().start_at(rx);
        q.transmit().start_at(tx);
    }

    /// Receives a packet whose last bit comes off the wire. `p` carries flow, size and content.
    ///
    /// # Errors
    /// Returns the cause when the packet is dropped.
    pub fn arrive(&mut self, cal: &mut impl DevicePosts, mut p: Packet, now: Time) -> Result<(), DropCause> {
        self.counts.offered += 1;
        p.queue = self.classifier.queue(p.function, p.flow, p.hash);
        p.arrived = now;
        if let Some(m) = &mut self.marker {
            p.tags = m.tags(p.queue, p.dscp, p.wire_bytes, Some(now));
        }
        let waiting = self.unconsumed(p.queue);
        if self.drop_depth.is_some_and(|depth| waiting >= depth) {
            return Err(self.drop_packet(DropPlace::Admission, DropCause::TooLate, now));
        }
        let refused = self.buffer.as_mut().is_some_and(|b| b.take(p.wire_bytes, now).is_err());
        let why = match &mut self.attachment {
            Attachment::Ringed(r) => r.sample(p.queue, refused),
            _ => refused.then_some(DropCause::BufferFull),
        };
        if let Some(cause) = why {
            return Err(self.drop_packet(DropPlace::ReceiveBuffer, cause, now));
        }
        match &mut self.attachment {
            Attachment::Integrated(_) => self.receive(cal, p, now),
            Attachment::Pcie(pcie) => {
                self.queues[p.queue].buffered += 1;
                let id = self.packets.add(p);
                pcie.fifo.push_back(id);
                self.life_begins(id);
                Ok(())
            }
            Attachment::Ringed(r) => {
                r.strip(&mut p);
                self.queues[p.queue].buffered += 1;
                let id = self.packets.add(p);
                r.admit(id);
                self.life_begins(id);
                Ok(())
            }
        }
    }

    /// Begins to record the life of packet `id`, which has arrived, where the run records lives.
    #[inline]
    fn life_begins(&mut self, id: PacketId) {
        if let Some(l) = &mut self.lives {
            let p = self.packets.get(id);
            l.arrived(id.index(), p.queue, p.wire_bytes, p.arrived);
        }
    }

    /// Marks that packet `id` passes a milestone, where the run records lives.
    #[inline]
    pub fn passes(&mut self, id: PacketId, what: Milestone) {
        if let Some(l) = &mut self.lives {
            l.mark(id.index(), what);
        }
    }

    /// Ends the life of packet `id` at `now`, where the run records lives.
    #[inline]
    pub fn life_ends(&mut self, id: PacketId, now: Time) {
        if let Some(l) = &mut self.lives {
            let p = self.packets.get(id);
            l.ended(id.index(), now, &[(Milestone::Began, p.began), (Milestone::Read, p.data_at)]);
        }
    }

    /// Begins the life of request `number`, which a load generator on this host writes into packet `id`.
    #[inline]
    pub fn request_begins(&mut self, id: PacketId, number: u64) {
        if let Some(l) = &mut self.lives {
            let p = self.packets.get(id);
            l.written(number, id.index(), p.queue, p.wire_bytes, p.arrived);
        }
    }

    /// Lets software know the life of packet `id`, whose record may end, as `key` from now on.
    #[inline]
    pub fn life_goes_on(&mut self, id: PacketId, key: usize) {
        if let Some(l) = &mut self.lives {
            l.goes_on(id.index(), key, &[(Milestone::Began, self.packets.get(id).began)]);
        }
    }

    /// Whether the whole life of packet `id` is recorded.
    #[inline]
    pub fn follows(&self, id: PacketId) -> bool {
        self.lives.as_ref().is_some_and(|l| l.follows(id.index()))
    }

    #[cold]
    fn drop_packet(&mut self, place: DropPlace, cause: DropCause, now: Time) -> DropCause {
        self.drops.record(place, cause, now);
        cause
    }

    /// Assigns a descriptor and its buffer to packet `p`, whose lines are still to be written.
    fn give_buffer(&mut self, p: &mut Packet, now: Time) -> Result<(), DropCause> {
        let q = &mut self.queues[p.queue];
        let Some(buffer) = q.receive().take(now) else {
            self.counts.pauses += u64::from(!std::mem::replace(&mut q.full, true));
            return Err(self.drop_packet(DropPlace::DescriptorRing, DropCause::NoDescriptor, now));
        };
        self.counts.accepted += 1;
        p.buffer = buffer;
        p.line = q.receive().line(buffer, 0);
        Ok(())
    }

    /// Record of packet `id`.
    pub fn packet(&mut self, id: PacketId) -> &mut Packet {
        self.packets.get_mut(id)
    }

    /// Gives a record to packet `p`, which did not arrive from the wire.
    pub fn register_packet(&mut self, mut p: Packet) -> PacketId {
        if let Some(m) = &mut self.marker {
            p.tags = m.tags(p.queue, p.dscp, p.wire_bytes, None);
        }
        self.packets.add(p)
    }

    /// Splits a packet's lines by steering tag: tag, first line within the packet, number of lines.
    #[inline]
    pub fn parts(&self, p: &Packet) -> impl Iterator<Item = (Tag, u16, u16)> + use<> {
        let [header, payload] = p.tags;
        let parts = if self.splits {
            [(header, 0, 1), (payload, 1, p.lines - 1)]
        } else {
            [(header, 0, p.lines), (payload, 0, 0)]
        };
        parts.into_iter().filter(|part| part.2 > 0)
    }

    /// The next packet of `queue` that has been sent from its receive buffer, which software then returns.
    pub fn reclaim(&mut self, queue: QueueId) -> Option<PacketId> {
        self.queues[queue].reclaims.pop_front()
    }

    /// Tells software that packet `id` has been sent from its receive buffer.
    pub fn leave_to_software(&mut self, id: PacketId) {
        let queue = self.packets.get(id).queue;
        self.queues[queue].reclaims.push_back(id);
    }

    // Calls of software, common to every attachment.

    /// Entries of `queue` that software can see and has not taken: packets, and completions of sends.
    pub fn waiting(&self, queue: QueueId) -> usize {
        self.queues[queue].waiting.len()
    }

    /// Packets of `queue` that software has not taken, including packets that are still in the NIC.
    pub fn unconsumed(&self, queue: QueueId) -> u32 {
        let q = &self.queues[queue];
        (q.waiting.len() + q.arriving.len()).to_u32() + q.buffered
    }

    /// Packets of all queues that software has not taken.
    pub fn waiting_packets(&self) -> u32 {
        self.queues.ids().map(|q| self.unconsumed(q)).sum()
    }

    /// Receive buffers of `queue` that the NIC may fill.
    pub fn buffers(&self, queue: QueueId) -> u32 {
        self.queues[queue].receive.as_ref().map_or(0, |r| r.descriptors.free())
    }

    /// Takes the oldest packet of `queue` for its core, provided that a transmit buffer for the reply is free (where
    /// the queue has any).
    pub fn take(&mut self, queue: QueueId) -> Option<PacketId> {
        let q = &mut self.queues[queue];
        if q.transmit.as_ref().is_some_and(|t| t.buffers.free() == 0) {
            return None;
        }
        match q.waiting.pop_front()? {
            Completion::Received(id) => {
                self.passes(id, Milestone::Taken);
                Some(id)
            }
            Completion::Sent => unreachable!("software takes completions of sends first"),
        }
    }

    /// Key that the request in the next packet of `queue` asks for.
    pub fn next_key(&self, queue: QueueId) -> Option<u64> {
        match *self.queues[queue].waiting.front()? {
            Completion::Received(id) => Some(self.packets.get(id).key),
            Completion::Sent => None,
        }
    }

    /// Appends the completion of a send to `queue`, behind the packets that wait.
    pub fn complete_send(&mut self, queue: QueueId) {
        self.queues[queue].waiting.push_back(Completion::Sent);
    }

    /// Takes the completion of a send from `queue`, if it is the queue's oldest entry.
    pub fn take_completion(&mut self, queue: QueueId) -> bool {
        let waiting = &mut self.queues[queue].waiting;
        let sent = waiting.front() == Some(&Completion::Sent);
        if sent {
            waiting.pop_front();
        }
        sent
    }

    /// Whether `queue` has a free transmit buffer for a reply.
    pub fn may_reply(&self, queue: QueueId) -> bool {
        self.queues[queue].transmit.as_ref().is_none_or(|t| t.buffers.free() > 0)
    }

    /// Offset of packet `id` in its queue's memory, in lines.
    pub fn offset(&self, id: PacketId) -> u64 {
        let p = self.packets.get(id);
        self.queues[p.queue].receive.as_ref().map_or(0, |r| r.offset(p.buffer))
    }

    // Interrupts of a NIC behind a port.

    /// Requests an interrupt, if moderation allows it, for a completion of `queue` that is in memory.
    fn completion(&mut self, queue: QueueId, now: Time) {
        if self.registers(queue).raise(COMPLETION) {
            if let Some(at) = self.queues[queue].moderation.completed(now) {
                self.asked.push_back((queue, at));
            }
        }
    }

    /// The next queue that has requested an interrupt since the last call, with the time at which the interrupt is due.
    pub fn interrupt(&mut self) -> Option<(QueueId, Time)> {
        let (queue, at) = self.asked.pop_front()?;
        Some((queue, at))
    }

    /// Time at which the interrupt of `queue` is due, if the queue has requested one.
    pub fn interrupt_due(&self, queue: QueueId) -> Option<Time> {
        self.queues[queue].moderation.due()
    }

    /// Masks the interrupt of `queue`, because software polls the queue from now on.
    pub fn mask_interrupt(&mut self, queue: QueueId) {
        self.registers(queue).acknowledge();
        self.queues[queue].moderation.mask();
    }

    /// Unmasks the interrupt of `queue`, because software has found every completion: the next completion requests an
    /// interrupt.
    pub fn unmask_interrupt(&mut self, queue: QueueId, now: Time) {
        self.queues[queue].moderation.unmask(now);
    }

    /// Sets the minimum time between two interrupts of `queue`.
    pub fn throttle(&mut self, queue: QueueId, interval: Time) {
        self.queues[queue].moderation.throttle(interval);
    }

    /// First line of the next transmit buffer of `queue`'s ring.
    pub fn next_tx(&self, queue: QueueId) -> LineAddr {
        self.queues[queue].transmit.as_ref().map_or(LineAddr(0), TransmitBuffers::line)
    }

    /// Reserves the next transmit buffer of `queue`'s ring.
    pub fn reserve_tx(&mut self, queue: QueueId, now: Time) {
        let t = self.queues[queue].transmit();
        t.step();
        t.buffers.take(1, now).expect("`take` saw that one is free");
    }

    /// Returns the receive buffer of packet `id` to its queue; a later `replenish` may give the buffer to the NIC.
    pub fn release(&mut self, id: PacketId) {
        let p = *self.packets.get(id);
        self.queues[p.queue].receive().release(p.buffer);
        self.end_use(id);
    }

    /// Gives up to `n` descriptors to `queue`, as many as software has buffers for.
    pub fn replenish(&mut self, queue: QueueId, n: u32, now: Time) {
        let q = &mut self.queues[queue];
        q.receive().replenish(n, now);
        let d = &q.receive().descriptors;
        let still = d.free() < d.credits() / 2;
        q.full &= still;
    }

    /// Ends one use of packet `id`; the end of the last use recycles the packet's record.
    pub fn end_use(&mut self, id: PacketId) {
        self.packets.end_use(id);
    }

    /// Marks all lines of the reply to packet `id` as still to be read.
    fn queue_reply(&mut self, id: PacketId) {
        let p = self.packets.get_mut(id);
        p.left = p.tx_lines;
    }

    /// Ends the transmission of packet `id`: sweeps the transmit buffer if the policy says so, then returns the buffer
    /// to the core. Returns the time of release.
    pub fn release_tx(&mut self, cal: &mut impl DevicePosts, id: PacketId, now: Time) -> Time {
        let p = *self.packets.get(id);
        let q = &mut self.queues[p.queue];
        let mut released = now;
        match self.sweep_tx {
            SweepTx::None => {}
            SweepTx::Nic => {
                let count = u32::from(p.tx_lines);
                let at = now + self.notify;
                cal.post(at, crate::memory::MemoryEvent::sweep(p.tx_line, count, crate::memory::Sweep::Sweep));
                released = at + self.interval * u64::from(count);
            }
            SweepTx::Cpu => q.hints.push_back((p.tx_line, p.tx_lines, now)),
        }
        if !p.zero_copy {
            q.transmit().buffers.give(1, now);
        }
        released
    }

    /// Takes the next completion-queue hint that asks the core of `queue` to sweep: line, number of lines, time sent.
    pub fn hint(&mut self, queue: QueueId) -> Option<(LineAddr, u16, Time)> {
        self.queues[queue].hints.pop_front()
    }

    /// Passes through an idle `queue`: returns the first lines of the next receive and transmit buffers, both of which
    /// go to the end of their rings; None while all receive buffers hold packets.
    pub fn cycle(&mut self, queue: QueueId) -> Option<(LineAddr, LineAddr)> {
        let q = &mut self.queues[queue];
        let rx = q.receive().cycle()?;
        let tx = q.transmit().line();
        q.transmit().step();
        Some((rx, tx))
    }

    /// Line at position `at` of the memory for kernel frames of `queue`.
    pub fn line(&mut self, queue: QueueId, at: u64) -> LineAddr {
        self.queues[queue].receive().kernel().0.pages.line(at)
    }

    /// Line of the kernel's page structure for the page that holds line `at`.
    pub fn structure(&mut self, queue: QueueId, at: u64) -> LineAddr {
        let (m, page_lines) = self.queues[queue].receive().kernel();
        m.structures + (m.pages.line(at) - m.frames) / page_lines
    }

    /// Lines of all page structures for the kernel frames of `queue`.
    pub fn structures(&self, queue: QueueId) -> std::ops::Range<LineAddr> {
        self.queues[queue].receive.as_ref().map_or(LineAddr(0)..LineAddr(0), ReceiveBuffers::structures)
    }

    /// Begins the measured window at `now`.
    pub fn restart_meters(&mut self, now: Time) {
        self.drops.restart();
        self.lives.iter_mut().for_each(|l| l.restart());
        if let Some(b) = &mut self.buffer {
            b.restart(now);
        }
        for q in &mut self.queues {
            q.receive.iter_mut().for_each(|r| r.descriptors.restart(now));
            q.transmit.iter_mut().for_each(|t| t.buffers.restart(now));
        }
        match &mut self.attachment {
            Attachment::Integrated(i) => i.restart(now),
            Attachment::Pcie(p) => p.restart(now),
            Attachment::Ringed(r) => r.restart(now),
        }
    }

    /// Time between the restart and `now` in which the receive engine of an integrated NIC moved packets.
    pub fn engine_busy(&self, now: Time) -> Option<Time> {
        match &self.attachment {
            Attachment::Integrated(i) => Some(i.busy_until(now)),
            _ => None,
        }
    }

    /// Shares of the packets that a NIC with descriptor rings may have in flight, received and sent, that are in flight.
    pub fn in_flight(&self, now: Time) -> Option<[f64; 2]> {
        match &self.attachment {
            Attachment::Ringed(r) => Some(r.in_flight(now)),
            _ => None,
        }
    }

    /// Time between the restart and `now` in which the NIC's own transmitter sent frames.
    pub fn wire_busy(&self, now: Time) -> Option<Time> {
        match &self.attachment {
            Attachment::Integrated(_) => None,
            Attachment::Pcie(p) => Some(p.wire_busy(now)),
            Attachment::Ringed(r) => Some(r.wire_busy(now)),
        }
    }

    /// Largest number of bytes in the receive buffer since the restart; None for a NIC without queues, which receives nothing.
    pub fn peak(&self) -> Option<u64> {
        let fill = self.buffer.as_ref().map_or(0, |b| b.peak().into());
        (!self.queues.is_empty()).then_some(fill)
    }

    /// Number of accepted packets whose service has not ended.
    pub fn unfinished(&self) -> u64 {
        self.packets.unfinished()
    }

    /// Number of packets that have arrived and that software cannot see yet.
    pub fn packets_inside(&self) -> u64 {
        self.queues.iter().map(|q| q.arriving.len().to_u64() + u64::from(q.buffered)).sum()
    }

    /// Checks that no packet is lost uncounted.
    ///
    /// # Errors
    /// Returns one sentence with the counts that do not add up.
    pub fn check(&self) -> Result<(), String> {
        let (c, lost, inside) = (&self.counts, self.drops.total(), self.packets_inside());
        if c.offered != lost + c.delivered + inside {
            return Err(format!(
                "packets are not conserved at the NIC: {} came, {} were delivered, {lost} lost, {inside} are inside",
                c.offered, c.delivered
            ));
        }
        self.queues.iter().filter_map(|q| q.receive.as_ref()).try_for_each(ReceiveBuffers::check)?;
        match &self.attachment {
            Attachment::Integrated(_) => Ok(()),
            Attachment::Pcie(p) => p.check(self.buffer.as_ref()),
            Attachment::Ringed(r) => r.check(self.buffer.as_ref()),
        }
    }
}
