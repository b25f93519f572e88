//! The attachment behind a PCIe port. A received packet is payload lines and then a completion line; software sees the
//! packet when all of these lines, and those of earlier packets of its queue, have been written. To send a packet,
//! software writes a doorbell that travels down the link, the NIC sends read requests up the link, and the frame leaves
//! when its last line has arrived.
//!
//! All times are those of the port (see `iio`): a packet from the wire appears one flight time early and a sent frame
//! one flight time late, so that a round trip takes the right time.

use super::contexts::Contexts;
use super::queue::{Completion, ReceiveBuffers};
use super::{Attachment, EthernetSpec, Nic};
use crate::device::endpoint::{Device, DeviceBuildContext, DmaDirection, NicMemory, Offer, Piece};
use crate::device::{DeviceEvent, DevicePosts, NicAt};
use crate::flow::{Credits, Link};
use crate::kernel::{Int, LineAddr, PacketId, PortId, Time};
use crate::memory::{LINE, LINE_U32};
use crate::meter::drops::DropLedger;
use crate::meter::life::Milestone;
use crate::placement::DeviceKind;
use std::collections::VecDeque;

/// Packet whose lines are being moved.
#[derive(Clone, Copy)]
struct MovingPacket {
    id: PacketId,
    slot: u16,
    /// Lines that have been sent; a completion is one line more than `lines`.
    at: u32,
    lines: u32,
    completion: Option<LineAddr>,
    /// Bytes of the packet that are still in the receive buffer.
    held: u32,
}

#[derive(Clone)]
pub(super) struct Pcie {
    pub port: PortId,
    /// Packets in the receive buffer that have no descriptor yet.
    pub fifo: VecDeque<PacketId>,
    receiving: Option<MovingPacket>,
    writes: Contexts<PacketId>,
    /// Packets whose completion is in memory and that software has not fetched.
    landed: VecDeque<PacketId>,
    /// Replies whose doorbell has arrived.
    posts: VecDeque<PacketId>,
    fetching: Option<MovingPacket>,
    reads: Contexts<PacketId>,
    wire: Link,
    /// Bytes of a frame on the wire in addition to its bytes in memory.
    framing: u32,
}

impl Pcie {
    pub fn new(s: &EthernetSpec, port: PortId) -> Pcie {
        Pcie {
            port,
            fifo: VecDeque::with_capacity(64),
            receiving: None,
            writes: Contexts::new(),
            landed: VecDeque::with_capacity(64),
            posts: VecDeque::with_capacity(64),
            fetching: None,
            reads: Contexts::new(),
            wire: s.wire(),
            framing: s.framing,
        }
    }

    /// Packet whose lines transfer `slot` moves.
    pub fn packet_in(&self, slot: u16, write: bool) -> Option<PacketId> {
        if write { &self.writes } else { &self.reads }.of(slot)
    }

    pub fn restart(&mut self, now: Time) {
        self.wire.restart(now);
    }

    /// Time between the restart and `now` in which the wire carried frames.
    pub fn wire_busy(&self, now: Time) -> Time {
        self.wire.busy_until(now)
    }

    /// Checks that an idle NIC's receive buffer is empty.
    ///
    /// # Errors
    /// Returns one sentence when an idle NIC holds bytes of its buffer.
    pub fn check(&self, buffer: Option<&Credits>) -> Result<(), String> {
        let idle = self.fifo.is_empty() && self.receiving.is_none();
        let held = buffer.map_or(0, Credits::held);
        if idle && held > 0 {
            return Err(format!("the NIC's receive buffer keeps {held} bytes of no packet"));
        }
        Ok(())
    }
}

impl Nic {
    fn pcie_mut(&mut self) -> &mut Pcie {
        match &mut self.attachment {
            Attachment::Pcie(p) => p,
            _ => unreachable!("a NIC on the chip has no port, and one with rings in memory has another"),
        }
    }

    fn next_write(&mut self, now: Time) -> Offer {
        loop {
            if let Some(m) = self.pcie_mut().receiving {
                if m.at == m.lines {
                    return Offer::Lines(1); // the completion
                }
                if m.at == 0 && self.splits {
                    return Offer::Lines(1); // the header, which contains the packet's length
                }
                let p = self.packets.get(m.id);
                let q = &mut self.queues[p.queue];
                return Offer::Lines(q.receive().together(p.buffer, m.at.into(), m.lines - m.at));
            }
            if !self.pcie_mut().writes.has_room() {
                return Offer::Nothing;
            }
            let Some(id) = self.pcie_mut().fifo.pop_front() else { return Offer::Nothing };
            let mut p = *self.packets.get(id);
            self.queues[p.queue].buffered -= 1;
            if self.give_buffer(&mut p, now).is_err() {
                self.buffer.as_mut().expect("behind the wire").give(p.wire_bytes, now);
                self.packets.drop_record(id);
                self.lives.iter_mut().for_each(|l| l.forget(id.index()));
                continue;
            }
            let q = &mut self.queues[p.queue];
            let completion = q.receive().completion();
            q.arriving.push_back(id);
            p.completion = completion.unwrap_or_default();
            *self.packets.get_mut(id) = p;
            self.counts.rx_lines += u64::from(p.lines);
            let lines = u32::from(p.lines);
            self.packets.get_mut(id).began = now;
            let pcie = self.pcie_mut();
            let slot = pcie.writes.open(id, lines + u32::from(completion.is_some()));
            pcie.receiving = Some(MovingPacket { id, slot, at: 0, lines, completion, held: p.wire_bytes });
        }
    }

    fn next_read(&mut self) -> Offer {
        let pcie = self.pcie_mut();
        if pcie.fetching.is_none() && pcie.reads.has_room() {
            if let Some(id) = pcie.posts.pop_front() {
                let lines = u32::from(self.packets.get(id).tx_lines);
                let pcie = self.pcie_mut();
                let slot = pcie.reads.open(id, lines);
                pcie.fetching = Some(MovingPacket { id, slot, at: 0, lines, completion: None, held: 0 });
            }
        }
        self.pcie_mut().fetching.map_or(Offer::Nothing, |m| Offer::Lines(m.lines - m.at))
    }

    /// Moves `n` lines of a packet out of the receive buffer, or moves the completion, which does not occupy that
    /// buffer.
    fn write_lines(&mut self, n: u32, now: Time) -> Piece {
        let mut m = self.pcie_mut().receiving.expect("lines were promised");
        let p = *self.packets.get(m.id);
        let q = &mut self.queues[p.queue];
        let tag = p.tags[usize::from(m.at > 0)];
        let line = if m.at == m.lines {
            self.pcie_mut().receiving = None;
            return Piece { line: m.completion.expect("promised"), slot: m.slot, tag: tag.of_descriptor(), omits: 0 };
        } else {
            q.receive().line(p.buffer, m.at.into())
        };
        m.at += n;
        let rest = ((m.lines - m.at) * LINE_U32).min(m.held); // the last line may be partial
        self.buffer.as_mut().expect("behind the wire").give(m.held - rest, now);
        m.held = rest;
        let over = m.at == m.lines && m.completion.is_none();
        self.pcie_mut().receiving = (!over).then_some(m);
        Piece { line, slot: m.slot, tag, omits: 0 }
    }

    fn read_lines(&mut self, n: u32) -> Piece {
        let m = self.pcie_mut().fetching.as_mut().expect("lines were promised");
        let (id, slot, at) = (m.id, m.slot, m.at);
        m.at += n;
        if m.at == m.lines {
            self.pcie_mut().fetching = None;
        }
        let p = self.packets.get(id);
        Piece { line: p.tx_line + u64::from(at), slot, ..Piece::default() }
    }

    /// Makes packet `id` visible to software after all of the packet has been written to memory. Packets of a queue
    /// become visible in the order of their completions.
    fn land(&mut self, id: PacketId, now: Time) {
        self.packets.get_mut(id).in_memory = true;
        let queue = self.packets.get(id).queue;
        while let Some(&first) = self.queues[queue].arriving.front().filter(|i| self.packets.get(**i).in_memory) {
            let q = &mut self.queues[queue];
            q.arriving.pop_front();
            q.waiting.push_back(Completion::Received(first));
            self.counts.delivered += 1;
            self.passes(first, Milestone::Visible);
            self.pcie_mut().landed.push_back(first);
            self.completion(queue, now);
        }
    }

    /// Whether packets have become visible that nobody has fetched with `landed`.
    #[inline]
    pub(in crate::device) fn has_landed(&self) -> bool {
        match &self.attachment {
            Attachment::Integrated(_) => false,
            Attachment::Pcie(p) => !p.landed.is_empty(),
            Attachment::Ringed(r) => r.has_landed(),
        }
    }

    /// The next packet that has become visible to software since the last call.
    pub fn landed(&mut self) -> Option<PacketId> {
        self.pcie_mut().landed.pop_front()
    }

    /// Prepares the reply to packet `id`, whose doorbell is on its way.
    pub(in crate::device) fn ring(&mut self, id: PacketId) {
        self.queue_reply(id);
    }

    /// Handles `DeviceEvent::NicTx`: the doorbell of packet `id`'s reply has arrived, or the reply has left. Returns true
    /// once the reply is sent.
    pub(in crate::device) fn on_tx_port(&mut self, id: PacketId, now: Time) -> bool {
        if self.has_rings() {
            return self.ring_sent(id, now);
        }
        if self.packets.get(id).left == 0 {
            return self.sent(id, now);
        }
        self.pcie_mut().posts.push_back(id);
        false
    }
}

impl Device for Nic {
    type Spec = EthernetSpec;

    fn node(s: &EthernetSpec) -> u8 {
        s.node
    }
    const KIND: DeviceKind = DeviceKind::Nic;

    fn check(s: &EthernetSpec) -> Result<(), String> {
        s.check()
    }
    fn link(s: &EthernetSpec) -> (u32, u32) {
        (s.lanes, s.tags)
    }
    /// Builds a NIC: with descriptor rings in memory if the port's memory has such rings, otherwise for the kernel's TCP.
    fn build(s: &EthernetSpec, context: &mut DeviceBuildContext) -> Nic {
        let port = PortId::new(context.port);
        let NicMemory { frames: queues, rings } = std::mem::take(&mut context.nics[port]);
        if !rings.is_empty() {
            return Nic::ringed(s, port, &rings, context.read_request);
        }
        let mut nic = Nic::pcie(s, port, queues.len().to_u32());
        for (q, memory) in nic.queues.iter_mut().zip(queues) {
            let (pool, page) = (s.pool.0 / LINE, s.page.0 / LINE);
            q.receive = Some(ReceiveBuffers::pages(memory, pool, page, s.frame_lines(), s.descriptors));
        }
        nic
    }
    fn moves(&self, _way: DmaDirection) -> bool {
        true
    }
    #[inline]
    fn may_move(&self) -> [bool; 2] {
        match &self.attachment {
            Attachment::Ringed(r) => r.may_move(),
            _ => [true; 2],
        }
    }
    fn next(&mut self, way: DmaDirection, now: Time) -> Offer {
        match (way, self.has_rings()) {
            (DmaDirection::P2mWrite, false) => self.next_write(now),
            (DmaDirection::P2mRead, false) => self.next_read(),
            (DmaDirection::P2mWrite, true) => self.next_ring_write(now),
            (DmaDirection::P2mRead, true) => self.next_ring_read(now),
        }
    }

    fn take(&mut self, way: DmaDirection, n: u32, now: Time) -> Piece {
        match (way, self.has_rings()) {
            (DmaDirection::P2mWrite, false) => self.write_lines(n, now),
            (DmaDirection::P2mRead, false) => self.read_lines(n),
            (DmaDirection::P2mWrite, true) => self.take_ring_write(n, now),
            (DmaDirection::P2mRead, true) => self.take_ring_read(n),
        }
    }

    fn done(&mut self, cal: &mut impl DevicePosts, way: DmaDirection, slot: u16, n: u32, now: Time) -> bool {
        match way {
            DmaDirection::P2mWrite if self.has_rings() => return self.ring_written(cal, slot, n, now),
            DmaDirection::P2mRead if self.has_rings() => return self.ring_read(cal, slot, n, now),
            DmaDirection::P2mWrite => {
                let blocked = !self.pcie_mut().writes.has_room();
                if let Some(id) = self.pcie_mut().writes.done(slot, n) {
                    self.land(id, now);
                    return blocked;
                }
            }
            DmaDirection::P2mRead => {
                let blocked = !self.pcie_mut().reads.has_room();
                if let Some(id) = self.pcie_mut().reads.done(slot, n) {
                    let p = self.packets.get_mut(id);
                    p.left = 0;
                    p.data_at = now;
                    let bytes = u64::from(p.tx_lines) * LINE;
                    let (ready, pcie) = (now + self.pipeline, self.pcie_mut());
                    let end = pcie.wire.send(bytes + u64::from(pcie.framing), ready);
                    cal.post(end, DeviceEvent::NicTx(NicAt::Port(pcie.port), id));
                    return blocked;
                }
            }
        }
        false
    }

    fn expect(&mut self, slot: u16, n: u32) -> Option<bool> {
        self.has_rings().then(|| self.expect_ring_read(slot, n))
    }

    fn completed(&self) -> u64 {
        self.counts.delivered
    }
    fn makes_work(&self) -> bool {
        false
    }
    fn drops(&self) -> Option<&DropLedger> {
        Some(&self.drops)
    }
    fn restart_meters(&mut self, now: Time) {
        Nic::restart_meters(self, now);
    }
    fn audit(&self) -> Result<(), String> {
        self.check()
    }
}
