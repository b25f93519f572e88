//! The attachment behind a PCIe port with descriptor rings in memory, for poll-mode drivers and the kernel's UDP.
//!
//! ```text
//!   receive:   wire --> buffer --> payload lines --> used descriptors written back --> software sees the packets
//!                          ^ one cached descriptor a packet         | room in the cache
//!                          +---- descriptors fetched <--------------+---- tail (doorbell)
//!   transmit:  tail (doorbell) --> descriptors fetched --> payload read --> transmit buffer --> wire
//!                                                             +--> used descriptors written back
//! ```
//!
//! A packet waits in the receive buffer for a descriptor; a packet is lost only when the receive buffer has no room.
//! Each ring has at most one descriptor fetch and one write-back in flight: descriptors that become due in the meantime
//! wait for the next fetch or write-back.

mod dma;

use super::contexts::Contexts;
use super::drops::{DropState, FullFlags};
use super::rings::{DescriptorRing, RingLayout, RingMemory, RingsSpec, WriteBack};
use super::{Attachment, Completion, EthernetSpec, Nic, Packet};
use crate::device::endpoint::{Offer, Piece};
use crate::device::{DeviceEvent, DevicePosts, RingSide, RingTask};
use crate::flow::{Credits, Domain, Link};
use crate::kernel::units::{Size, Span};
use crate::kernel::{IdVec, Int, LineAddr, PacketId, PortId, QueueId, Time};
use crate::memory::{Tag, LINE, LINE_U32};
use crate::meter::drops::DropCause;
use std::collections::VecDeque;

/// Bytes of a frame's check sequence, which the NIC does not write to memory.
const FCS: u32 = 4;
/// Bytes that a frame takes on the wire beyond its own bytes: preamble, start delimiter and gap.
const GAP: u32 = 20;
/// Length of the windows over which the peak rate of the receive DMA is measured.
const WINDOW: Time = Time(100_000);

/// Kind of a DMA transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RingWork {
    /// A packet; for a packet to be sent, its first segment.
    Packet(PacketId),
    /// The second segment of a packet to be sent.
    Object(PacketId),
    /// Descriptors of a ring: written back to memory, or fetched from memory.
    Descriptors { queue: QueueId, side: RingSide, n: u32 },
}

/// A DMA transfer: its kind, and the range of memory that it moves.
#[derive(Clone, Copy)]
struct Extent {
    what: RingWork,
    line: LineAddr,
    lines: u32,
    bytes: u32,
}

/// Transfer whose lines are being moved.
#[derive(Clone, Copy)]
struct MovingWork {
    what: RingWork,
    slot: u16,
    line: LineAddr,
    /// Lines that have been sent, out of `lines`.
    at: u32,
    lines: u32,
    /// Bytes that have not been sent.
    bytes: u32,
    /// Bytes of the packet that are still in the receive buffer.
    held: u32,
    /// Steering tags of the first line and of the other lines.
    tags: [Tag; 2],
    /// Whether the first line is written separately, because its tag differs.
    split: bool,
}

impl MovingWork {
    fn offer(self) -> Offer {
        Offer::Lines(if self.split && self.at == 0 { 1 } else { self.lines - self.at })
    }

    /// Sends the next `n` lines of the transfer.
    fn advance(&mut self, n: u32) -> Piece {
        let line = self.line + u64::from(self.at);
        let tag = self.tags[usize::from(self.at > 0)];
        self.at += n;
        let whole = n * LINE_U32;
        let bytes = if self.at == self.lines { self.bytes } else { whole.min(self.bytes) };
        self.bytes -= bytes;
        Piece { line, slot: self.slot, omits: whole - bytes, tag }
    }
}

/// Receive and transmit ring of a queue, and the buffers that their descriptors name.
#[derive(Clone)]
struct RingPair {
    receive: DescriptorRing,
    transmit: DescriptorRing,
    /// Buffers that software has put into receive descriptors: number, and first line of data.
    armed: VecDeque<(u32, LineAddr)>,
    /// Packets that are wholly in memory and whose descriptors have not been written back.
    filled: VecDeque<PacketId>,
    /// Segments that software has put into transmit descriptors: the packet, and whether it is the packet's second
    /// segment. `puts` counts all transmit descriptors that software has ever filled.
    put: VecDeque<(PacketId, bool)>,
    puts: u64,
    /// Segments that are being read, in descriptor order, each with whether it has been read completely.
    leaving: VecDeque<(RingWork, bool)>,
    /// Number of read requests of the segments in `leaving`, where the descriptor of each segment counts as one
    /// request.
    requests: u32,
}

impl RingPair {
    fn ring(&mut self, side: RingSide) -> &mut DescriptorRing {
        match side {
            RingSide::Receive => &mut self.receive,
            RingSide::Transmit => &mut self.transmit,
        }
    }
}

/// Counters of the NIC's DMA with descriptor rings since the restart.
#[derive(Clone, Copy, Debug, Default)]
pub struct RingMeter {
    /// Receive descriptors written back.
    pub descriptors: u64,
    /// Number of writes that carried receive descriptors back.
    pub write_backs: u64,
    /// Doorbells of the transmit rings that have arrived.
    pub transmit_doorbells: u64,
    /// Number of fetches of transmit descriptors.
    pub transmit_fetches: u64,
    /// Number of frames whose payload was read.
    pub frames_read: u64,
    /// Bytes of frames that were written to memory or read from it.
    pub frame_bytes: u64,
    /// Time during which a packet or descriptors were on their way to memory.
    pub busy: Time,
    since: Option<Time>,
    /// Start of the current window; `bytes` and `most_bytes` are the bytes of the current and of the busiest window.
    window: Time,
    bytes: u64,
    /// Bytes of the busiest window.
    pub most_bytes: u64,
}

impl RingMeter {
    /// Rate of the receive DMA in its busiest window, in bytes per nanosecond, that is in GB/s.
    pub fn peak_gbs(&self) -> f64 {
        self.most_bytes.max(self.bytes).to_f64() / WINDOW.as_ns()
    }

    /// Time up to `now` during which a packet or descriptors were on their way to memory.
    pub fn busy_until(&self, now: Time) -> Time {
        self.busy + self.since.map_or(Time::ZERO, |s| now - s)
    }

    fn moves(&mut self, bytes: u32, now: Time) {
        if now >= self.window + WINDOW {
            self.most_bytes = self.most_bytes.max(self.bytes);
            self.bytes = 0;
            self.window = Time(now.0 / WINDOW.0 * WINDOW.0);
        }
        self.bytes += u64::from(bytes);
    }

    fn set_busy(&mut self, busy: bool, now: Time) {
        match (busy, self.since) {
            (true, None) => self.since = Some(now),
            (false, Some(s)) => {
                self.busy += now - s;
                self.since = None;
            }
            _ => {}
        }
    }

    fn restart(&mut self, now: Time) {
        *self = RingMeter {
            since: self.since.map(|_| now),
            window: Time(now.0 / WINDOW.0 * WINDOW.0),
            ..Default::default()
        };
    }
}

/// Places in `Ringed::in_flight`.
const RECEIVE: usize = 0;
const TRANSMIT: usize = 1;

#[derive(Clone)]
pub(super) struct Ringed {
    port: PortId,
    spec: RingsSpec,
    /// Lines of the largest read request.
    request_lines: u32,
    pairs: IdVec<QueueId, RingPair>,
    /// Packets in the receive buffer that have no descriptor yet.
    fifo: VecDeque<PacketId>,
    /// Places for packets whose receive DMA is in flight, and for frames whose payload is being read.
    in_flight: [Domain; 2],
    /// With one packet at a time: time at which the next DMA may begin, by side, where no packet was waiting for it.
    ready: [Time; 2],
    write: Option<MovingWork>,
    writes: Contexts<RingWork>,
    write_backs: VecDeque<(QueueId, RingSide)>,
    read: Option<MovingWork>,
    reads: Contexts<RingWork>,
    fetches: VecDeque<(QueueId, RingSide)>,
    /// Queue that transmits next.
    turn: usize,
    /// Free bytes of the transmit buffer.
    room: Credits,
    wire: Link,
    /// Rings of which software can see more descriptors since the last `landed_ring`.
    landed: VecDeque<(QueueId, RingSide)>,
    drops: DropState,
    meter: RingMeter,
}

impl Ringed {
    pub fn port(&self) -> PortId {
        self.port
    }

    pub fn restart(&mut self, now: Time) {
        self.wire.restart(now);
        self.room.restart(now);
        self.meter.restart(now);
        self.in_flight.iter_mut().for_each(|d| d.restart(now));
    }

    /// Shares of the packets that may be in flight, received and sent, that are in flight.
    pub fn in_flight(&self, now: Time) -> [f64; 2] {
        [RECEIVE, TRANSMIT].map(|side| {
            let r = self.in_flight[side].read(now);
            r.occupancy / f64::from(r.credits)
        })
    }

    /// Time between the restart and `now` in which the wire carried frames.
    pub fn wire_busy(&self, now: Time) -> Time {
        self.wire.busy_until(now)
    }

    pub fn has_landed(&self) -> bool {
        !self.landed.is_empty()
    }

    /// Checks the order of the rings' counts and the contents of the buffers.
    ///
    /// # Errors
    /// Returns one sentence when a ring's counts are out of order, or an idle NIC holds bytes of a buffer.
    pub fn check(&self, buffer: Option<&Credits>) -> Result<(), String> {
        for pair in &self.pairs {
            pair.receive.check()?;
            pair.transmit.check()?;
            let r = &pair.receive;
            if (pair.armed.len().to_u64()) < r.posted - r.used {
                return Err(format!("{} receive descriptors name {} buffers", r.posted - r.used, pair.armed.len()));
            }
        }
        let moving = matches!(self.write, Some(MovingWork { what: RingWork::Packet(_), .. }));
        let held = buffer.map_or(0, Credits::held);
        if self.fifo.is_empty() && !moving && held > 0 {
            return Err(format!("the NIC's receive buffer keeps {held} bytes of no packet"));
        }
        Ok(())
    }

    /// Samples the drop flags for a packet that arrives at `queue`; returns the cause when the packet is lost
    /// (`refused`).
    pub fn sample(&mut self, queue: QueueId, refused: bool) -> Option<DropCause> {
        let p = &self.pairs[queue];
        let found = FullFlags {
            buffer: refused,
            receive_ring: p.receive.posted == p.receive.used,
            transmit_ring: p.puts - p.transmit.seen >= p.transmit.layout.usable(),
        };
        self.drops = self.drops.next(found);
        self.drops.cause().filter(|_| refused)
    }

    /// Bytes of a frame that are not in memory: its check sequence, when `strip_fcs` is set.
    fn stripped(&self) -> u32 {
        if self.spec.quirks.strip_fcs {
            FCS
        } else {
            0
        }
    }

    /// Sets the packet's bytes and lines in memory, without the check sequence where the NIC strips it.
    pub fn strip(&self, p: &mut Packet) {
        p.rx_bytes = p.wire_bytes - self.stripped();
        p.lines = p.rx_bytes.div_ceil(LINE_U32).to_u16();
    }

    pub fn admit(&mut self, id: PacketId) {
        self.fifo.push_back(id);
    }

    /// Time at which the next DMA of a packet may begin, if a packet `has_waiting` and that time is later than `now`.
    fn not_before(&self, side: RingSide, waits: bool, now: Time) -> Option<Time> {
        Some(self.ready[side.index()]).filter(|at| waits && *at > now)
    }

    /// By `Direction`: whether the NIC may have descriptors or a packet ready to move. When the maximum number of
    /// packets is in flight, no packet is ready until one of them ends.
    #[inline]
    pub fn may_move(&self) -> [bool; 2] {
        if self.spec.quirks.one_engine && (self.read.is_some() || self.write.is_some()) {
            return [self.read.is_some(), self.write.is_some()];
        }
        let packet = self.in_flight[RECEIVE].free() > 0 && !self.fifo.is_empty();
        let write = packet || self.write.is_some() || !self.write_backs.is_empty();
        let frame = self.in_flight[TRANSMIT].free() > 0 && self.pairs.iter().any(|p| p.transmit.cached() > 0);
        let read = frame || self.read.is_some() || !self.fetches.is_empty();
        [read, write]
    }

    /// Decides to start a fetch or a write-back, which begins after its delay.
    fn decide(&mut self, cal: &mut impl DevicePosts, queue: QueueId, task: RingTask, now: Time) {
        let delay: Time = match task {
            RingTask::Fetch(side) => {
                self.pairs[queue].ring(side).fetching = true;
                self.spec.quirks.fetch_delay.into()
            }
            RingTask::WriteBack(side) => {
                self.pairs[queue].ring(side).writing = true;
                self.spec.quirks.write_back_delay.into()
            }
            _ => unreachable!("no decision of the NIC"),
        };
        if delay > Time::ZERO {
            cal.post(now + delay, DeviceEvent::Ring { port: self.port, queue, task, n: 0 });
        } else {
            self.begin(queue, task);
        }
    }

    /// Number of read requests for `lines` lines of a frame, including the request for the frame's descriptor.
    fn requests(&self, lines: u32) -> u32 {
        1 + lines.div_ceil(self.request_lines)
    }

    /// Queues the fetch or write-back for the link.
    fn begin(&mut self, queue: QueueId, task: RingTask) {
        match task {
            RingTask::Fetch(side) => self.fetches.push_back((queue, side)),
            RingTask::WriteBack(side) => self.write_backs.push_back((queue, side)),
            _ => unreachable!("no decision of the NIC"),
        }
    }

    /// Schedules the end of `task` at `queue` after `delay`.
    fn after(&mut self, cal: &mut impl DevicePosts, queue: QueueId, task: RingTask, n: u32, delay: Span, now: Time) {
        if delay.0 > 0 {
            cal.post(now + delay.into(), DeviceEvent::Ring { port: self.port, queue, task, n: n.to_u16() });
        } else {
            self.end(queue, task, n, now);
        }
    }

    /// Ends the DMA of one packet, whose place becomes free after `delay`. With `at_once`, when no packet waits for the
    /// place, the time is only recorded for the next packet; otherwise an event is scheduled.
    fn ends(
        &mut self,
        cal: &mut impl DevicePosts,
        queue: QueueId,
        side: RingSide,
        delay: Span,
        at_once: bool,
        now: Time,
    ) {
        let after = if at_once {
            self.ready[side.index()] = now + delay.into();
            Span(0)
        } else {
            delay
        };
        self.after(cal, queue, RingTask::Next(side), 1, after, now);
    }

    fn end(&mut self, queue: QueueId, task: RingTask, n: u32, now: Time) {
        match task {
            RingTask::Recycled(side) => {
                let ring = self.pairs[queue].ring(side);
                ring.recycled += u64::from(n);
                ring.writing = false;
            }
            // Nothing keeps the time at which the place was taken.
            RingTask::Next(RingSide::Receive) => self.in_flight[RECEIVE].give(now, now),
            RingTask::Next(RingSide::Transmit) => self.in_flight[TRANSMIT].give(now, now),
            RingTask::Requests => self.pairs[queue].requests -= n,
            _ => unreachable!("nothing that ends"),
        }
    }

    /// Decides which fetches and write-backs of the rings of `queue` are due after a change there.
    fn look(&mut self, cal: &mut impl DevicePosts, queue: QueueId, now: Time) {
        let RingPair { receive: r, transmit: t, .. } = &self.pairs[queue];
        let few = r.asked - r.used < u64::from(self.spec.quirks.replenish);
        let fetch = [!r.fetching && few && r.can_fetch(), {
            let few = t.asked - t.used < (t.cache / 2).max(1);
            !t.fetching && few && t.can_fetch()
        }];
        // Whether all cached descriptors have been used, and the data of all of them has been moved.
        let spent = |r: &DescriptorRing| !r.fetching && r.asked == r.used && r.used == r.filled;
        let write_back = [
            !r.writing && r.filled > r.written && {
                let n = r.filled - r.written;
                let enough = matches!(self.spec.write_back, WriteBack::After(least) if n >= least.into());
                let idle = self.spec.quirks.write_back_idle && self.fifo.is_empty() && r.used == r.filled;
                enough || idle || spent(r)
            },
            {
                let n = t.filled - t.written;
                !t.writing && n > 0 && (n >= self.spec.quirks.transmit_write_back.into() || spent(t))
            },
        ];
        for side in [RingSide::Receive, RingSide::Transmit] {
            if fetch[side.index()] {
                self.decide(cal, queue, RingTask::Fetch(side), now);
            }
            if write_back[side.index()] {
                self.decide(cal, queue, RingTask::WriteBack(side), now);
            }
        }
    }

    fn descriptors(&mut self, queue: QueueId, side: RingSide, from: u64, n: u64) -> Extent {
        let (line, lines, bytes) = self.pairs[queue].ring(side).layout.span(from, n);
        Extent { what: RingWork::Descriptors { queue, side, n: n.to_u32() }, line, lines, bytes }
    }

    fn open_write(&mut self, Extent { what, line, lines, bytes }: Extent, held: u32, now: Time) {
        self.meter.set_busy(true, now);
        let slot = self.writes.open(what, lines);
        self.write =
            Some(MovingWork { what, slot, line, at: 0, lines, bytes, held, tags: Default::default(), split: false });
    }

    fn open_read(&mut self, Extent { what, line, lines, bytes }: Extent) {
        let slot = self.reads.open(what, lines);
        self.read =
            Some(MovingWork { what, slot, line, at: 0, lines, bytes, held: 0, tags: Default::default(), split: false });
    }

    /// Begins the next descriptor fetch. Fetches go before payload, because they are few and payload transfers depend
    /// on them.
    fn fetch(&mut self) -> bool {
        let Some((queue, side)) = self.fetches.pop_front() else { return false };
        let ring = self.pairs[queue].ring(side);
        let (from, n) = (ring.asked, ring.fetchable());
        ring.asked += n;
        self.meter.transmit_fetches += u64::from(side == RingSide::Transmit);
        let work = self.descriptors(queue, side, from, n);
        self.open_read(work);
        true
    }

    fn write_back(&mut self, now: Time) -> bool {
        let Some((queue, side)) = self.write_backs.pop_front() else { return false };
        let ring = self.pairs[queue].ring(side);
        let (from, n) = (ring.written, ring.writable());
        ring.written += n;
        if side == RingSide::Receive {
            self.meter.descriptors += n;
            self.meter.write_backs += 1;
        }
        let work = self.descriptors(queue, side, from, n);
        self.open_write(work, 0, now);
        true
    }
}

impl Nic {
    /// Builds a NIC behind PCIe port `port` with a pair of descriptor rings in memory for each queue. A read request
    /// asks for at most `request` bytes.
    pub fn ringed(s: &EthernetSpec, port: PortId, memory: &[RingMemory], request: Size) -> Nic {
        let spec = s.rings.clone().unwrap_or_default();
        let pair = |m: &RingMemory| RingPair {
            receive: DescriptorRing::new(
                RingLayout::new(m.receive, spec.receive, spec.descriptor),
                spec.quirks.receive_cache,
            ),
            transmit: DescriptorRing::new(
                RingLayout::new(m.transmit, spec.transmit, spec.descriptor),
                spec.quirks.transmit_cache,
            ),
            armed: VecDeque::with_capacity(spec.receive.to_usize()),
            filled: VecDeque::with_capacity(64),
            put: VecDeque::with_capacity(spec.transmit.to_usize()),
            puts: 0,
            leaving: VecDeque::with_capacity(64),
            requests: 0,
        };
        let ringed = Ringed {
            port,
            request_lines: (request.0 / LINE).to_u32(),
            pairs: memory.iter().map(pair).collect(),
            fifo: VecDeque::with_capacity(1024),
            in_flight: [spec.receive_packets, spec.quirks.transmit_packets].map(Domain::new),
            ready: [Time::ZERO; 2],
            write: None,
            writes: Contexts::new(),
            write_backs: VecDeque::with_capacity(64),
            read: None,
            reads: Contexts::new(),
            fetches: VecDeque::with_capacity(64),
            turn: 0,
            room: Credits::new(spec.quirks.transmit_buffer.0.to_u32()),
            wire: s.wire(),
            landed: VecDeque::with_capacity(64),
            drops: DropState::default(),
            meter: RingMeter::default(),
            spec,
        };
        Nic::behind_port(s, memory.len().to_u32(), Attachment::Ringed(Box::new(ringed)))
    }

    fn ringed_mut(&mut self) -> &mut Ringed {
        match &mut self.attachment {
            Attachment::Ringed(r) => r,
            _ => unreachable!("a NIC without descriptor rings in memory"),
        }
    }

    fn ringed_ref(&self) -> &Ringed {
        match &self.attachment {
            Attachment::Ringed(r) => r,
            _ => unreachable!("a NIC without descriptor rings in memory"),
        }
    }

    /// The packet whose lines a device's write (`write`) or read with number `slot` moves; None for descriptors.
    pub fn packet_in(&self, slot: u16, write: bool) -> Option<PacketId> {
        let r = match &self.attachment {
            Attachment::Ringed(r) => r,
            Attachment::Pcie(p) => return p.packet_in(slot, write),
            Attachment::Integrated(_) => return None,
        };
        match if write { &r.writes } else { &r.reads }.of(slot)? {
            RingWork::Packet(id) | RingWork::Object(id) => Some(id),
            RingWork::Descriptors { .. } => None,
        }
    }

    /// Whether the NIC's descriptor rings lie in memory.
    pub fn has_rings(&self) -> bool {
        matches!(self.attachment, Attachment::Ringed(_))
    }

    /// Counters of the DMA since the restart, where descriptor rings lie in memory.
    pub fn ring_meter(&self) -> Option<&RingMeter> {
        self.has_rings().then(|| &self.ringed_ref().meter)
    }

    // Software's side of the rings.

    /// Memory layouts of the receive ring and the transmit ring of `queue`.
    pub fn layouts(&self, queue: QueueId) -> (RingLayout, RingLayout) {
        let p = &self.ringed_ref().pairs[queue];
        (p.receive.layout, p.transmit.layout)
    }

    /// Puts software's `buffer`, whose data begins at `line`, into the next receive descriptor.
    pub fn arm(&mut self, queue: QueueId, buffer: u32, line: LineAddr) {
        self.ringed_mut().pairs[queue].armed.push_back((buffer, line));
    }

    /// Gives the NIC, without a doorbell, all buffers that software has put into receive descriptors, as after a long
    /// uptime.
    pub fn start_armed(&mut self, queue: QueueId) {
        let RingPair { receive: r, armed, .. } = &mut self.ringed_mut().pairs[queue];
        r.posted = armed.len().to_u64();
        r.asked = r.posted.min(r.cache);
        r.fetched = r.asked;
    }

    /// Puts packet `id`'s reply into the next transmit descriptor of `queue`, or into two descriptors when it has two
    /// segments.
    pub fn put(&mut self, queue: QueueId, id: PacketId) {
        let packet = self.packets.get_mut(id);
        let segments = 1 + u16::from(packet.object_bytes > 0);
        packet.left = segments;
        let p = &mut self.ringed_mut().pairs[queue];
        p.put.push_back((id, false));
        if segments > 1 {
            p.put.push_back((id, true));
        }
        p.puts += u64::from(segments);
        if let Some(l) = &mut self.lives {
            (0..segments).for_each(|_| l.put(queue, id.index()));
        }
    }

    /// Gives a record to packet `p`, which software on this host originates. The packet lies at `p.tx_line`.
    pub fn originate(&mut self, mut p: Packet) -> PacketId {
        self.counts.originated += 1;
        p.tx_bytes = p.wire_bytes - self.ringed_ref().stripped();
        p.lines = p.tx_bytes.div_ceil(LINE_U32).to_u16();
        p.tx_lines = p.lines;
        self.register_packet(p)
    }

    /// Bytes of a frame's check sequence that are not in memory (0 when the NIC does not strip it).
    pub fn check_sequence(&self) -> u32 {
        self.ringed_ref().stripped()
    }

    /// Number of transmit descriptors of `queue` that software has seen as sent since the beginning of the run.
    pub fn sent_descriptors(&self, queue: QueueId) -> u64 {
        self.ringed_ref().pairs[queue].transmit.seen
    }

    /// The next ring of which software can see more descriptors than at the last call.
    pub fn landed_ring(&mut self) -> Option<(QueueId, RingSide)> {
        let (queue, side) = self.ringed_mut().landed.pop_front()?;
        Some((queue, side))
    }

    // Functional mode: the rings without timing.

    /// Receives a packet in `queue` in functional mode, visible without delay; returns its record and the line of its
    /// descriptor. All counts of the ring advance together, so that transfers in flight are unaffected.
    pub fn receive_functional(&mut self, queue: QueueId, mut p: Packet) -> (PacketId, LineAddr) {
        let r = self.ringed_mut();
        r.strip(&mut p);
        let pair = &mut r.pairs[queue];
        (p.buffer, p.line) = pair.armed.pop_front().expect("software keeps the ring armed");
        let line = pair.receive.layout.line(pair.receive.seen);
        pair.receive.step_functional();
        let id = self.register_packet(Packet { queue, done: true, in_memory: true, ..p });
        self.queues[queue].waiting.push_back(Completion::Received(id));
        (id, line)
    }

    /// Sends the segment that the next transmit descriptor of `queue` names, in functional mode; returns the packet's
    /// record, whether it is the packet's second segment, and the descriptor's line.
    pub fn transmit_functional(&mut self, queue: QueueId) -> Option<(PacketId, bool, LineAddr)> {
        let pair = &mut self.ringed_mut().pairs[queue];
        let (id, second) = pair.put.pop_front()?;
        let line = pair.transmit.layout.line(pair.transmit.seen);
        pair.transmit.step_functional();
        self.lives.iter_mut().for_each(|l| l.skipped(queue));
        Some((id, second, line))
    }
}
