//! The attachment behind a PCIe port with descriptor rings in memory, for a driver that polls.
//!
//! ```text
//!   receive:   wire --> buffer --> payload lines --> used descriptors written back --> software sees the packets
//!                          ^ one cached descriptor a packet         | room in the cache
//!                          +---- descriptors fetched <--------------+---- tail (doorbell)
//!   transmit:  tail (doorbell) --> descriptors fetched --> payload read --> transmit buffer --> wire
//!                                                             +--> used descriptors written back
//! ```
//!
//! A packet waits in the receive buffer for a descriptor; it is lost only when it finds no room there. One fetch and one
//! write-back of a ring are under way at a time: what becomes due meanwhile goes together with the next.

mod dma;

use super::contexts::Contexts;
use super::drops::{Full, State};
use super::rings::{Layout, Ring, RingMemory, RingsSpec, WriteBack};
use super::{Attachment, Completion, EthernetSpec, Nic, Packet};
use crate::device::endpoint::{Offer, Piece};
use crate::device::{Event, Posts, RingTask, Side};
use crate::flow::{Credits, Link};
use crate::kernel::units::{Size, Span};
use crate::kernel::{IdVec, Int, LineAddr, PacketId, QueueId, Time};
use crate::memory::{Tag, LINE, LINE_U32};
use crate::meter::drops::DropCause;
use std::collections::VecDeque;

/// Bytes of a frame that stay in the NIC: its check sequence.
const FCS: u32 = 4;
/// Bytes that a frame takes on the wire beside its own: preamble, start delimiter and gap.
const GAP: u32 = 20;
/// Length of the windows of which the busiest is kept.
const WINDOW: Time = Time(100_000);

/// What lines belong to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Work {
    /// A packet; of one to be sent, its first segment.
    Packet(PacketId),
    /// The second segment of a packet to be sent.
    Object(PacketId),
    /// Descriptors of a ring: on their way up written back, on their way down fetched.
    Descriptors { queue: QueueId, side: Side, n: u32 },
}

/// A piece of work, and the memory that it moves.
#[derive(Clone, Copy)]
struct Extent {
    what: Work,
    line: LineAddr,
    lines: u32,
    bytes: u32,
}

/// The piece of work whose lines are moving.
#[derive(Clone, Copy)]
struct Moving {
    what: Work,
    slot: u16,
    line: LineAddr,
    /// Lines that have set out, of how many, and bytes that have not.
    at: u32,
    lines: u32,
    bytes: u32,
    /// Bytes that are still in the receive buffer.
    held: u32,
    /// What the first line and the others tell placement.
    tags: [Tag; 2],
    /// The first line is a write of its own.
    split: bool,
}

impl Moving {
    fn offer(self) -> Offer {
        Offer::Lines(if self.split && self.at == 0 { 1 } else { self.lines - self.at })
    }

    /// The next `n` of its lines set out.
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

/// The rings of a queue, and what is in them.
#[derive(Clone)]
struct Pair {
    receive: Ring,
    transmit: Ring,
    /// Buffers that software has put into receive descriptors: number and first line of data.
    armed: VecDeque<(u32, LineAddr)>,
    /// Packets that are wholly in memory and whose descriptors are not.
    filled: VecDeque<PacketId>,
    /// Packets that software has put into transmit descriptors, of each segment whether it is the second; and how many
    /// descriptors it ever has.
    put: VecDeque<(PacketId, bool)>,
    puts: u64,
    /// Segments that are being read, and whether they have been.
    leaving: VecDeque<(Work, bool)>,
    /// Read requests of these, each with one for its descriptor.
    requests: u32,
}

impl Pair {
    fn ring(&mut self, side: Side) -> &mut Ring {
        match side {
            Side::Receive => &mut self.receive,
            Side::Transmit => &mut self.transmit,
        }
    }
}

/// What the receive DMA has done since the restart.
#[derive(Clone, Copy, Debug, Default)]
pub struct RingMeter {
    /// Receive descriptors written back, and in how many writes.
    pub descriptors: u64,
    pub write_backs: u64,
    /// Doorbells of the transmit rings that have come, and fetches of descriptors and of frames' payload that they led to.
    pub transmit_doorbells: u64,
    pub transmit_fetches: u64,
    pub frames_read: u64,
    /// Bytes of frames that were written to memory, or read from it.
    pub frame_bytes: u64,
    /// Time with a packet or descriptors on their way to memory.
    pub busy: Time,
    since: Option<Time>,
    /// Bytes of the window that began then, and of the busiest.
    window: Time,
    bytes: u64,
    pub most_bytes: u64,
}

impl RingMeter {
    /// Bytes a nanosecond in the busiest window, which is GB/s.
    pub fn peak_gbs(&self) -> f64 {
        self.most_bytes.max(self.bytes).to_f64() / WINDOW.as_ns()
    }

    /// Busy time up to `now`.
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

#[derive(Clone)]
pub(super) struct Ringed {
    spec: RingsSpec,
    /// Lines of a read request.
    request_lines: u32,
    pairs: IdVec<QueueId, Pair>,
    /// Packets in the receive buffer that have no descriptor yet.
    fifo: VecDeque<PacketId>,
    /// Packets whose receive DMA is in flight, and frames whose payload is being read.
    receiving: u32,
    reading: u32,
    /// With one at a time: when the next one may begin, by side, where nobody waited for that.
    ready: [Time; 2],
    write: Option<Moving>,
    writes: Contexts<Work>,
    write_backs: VecDeque<(QueueId, Side)>,
    read: Option<Moving>,
    reads: Contexts<Work>,
    fetches: VecDeque<(QueueId, Side)>,
    /// The queue that transmits next.
    turn: usize,
    /// Bytes of the transmit buffer.
    room: Credits,
    wire: Link,
    /// Rings of which software can see more, as nobody has fetched.
    landed: VecDeque<(QueueId, Side)>,
    drops: State,
    meter: RingMeter,
}

impl Ringed {
    pub fn restart(&mut self, now: Time) {
        self.wire.restart(now);
        self.room.restart(now);
        self.meter.restart(now);
    }

    pub fn has_landed(&self) -> bool {
        !self.landed.is_empty()
    }

    /// # Errors
    /// When rings are out of order, or an idle NIC holds bytes of a buffer.
    pub fn check(&self, buffer: Option<&Credits>) -> Result<(), String> {
        for pair in &self.pairs {
            pair.receive.check()?;
            pair.transmit.check()?;
            let r = &pair.receive;
            if (pair.armed.len().to_u64()) < r.posted - r.used {
                return Err(format!("{} receive descriptors name {} buffers", r.posted - r.used, pair.armed.len()));
            }
        }
        let moving = matches!(self.write, Some(Moving { what: Work::Packet(_), .. }));
        let held = buffer.map_or(0, Credits::held);
        if self.fifo.is_empty() && !moving && held > 0 {
            return Err(format!("the NIC's receive buffer keeps {held} bytes of no packet"));
        }
        Ok(())
    }

    /// A packet that comes finds these flags; why it is lost, if it is.
    pub fn sample(&mut self, queue: QueueId, refused: bool) -> Option<DropCause> {
        let p = &self.pairs[queue];
        let found = Full {
            buffer: refused,
            receive_ring: p.receive.posted == p.receive.used,
            transmit_ring: p.puts - p.transmit.seen >= p.transmit.layout.usable(),
        };
        self.drops = self.drops.next(found);
        self.drops.cause().filter(|_| refused)
    }

    /// Bytes of a frame that memory does not have.
    fn stripped(&self) -> u32 {
        if self.spec.strip_fcs {
            FCS
        } else {
            0
        }
    }

    /// A packet as it lies in memory.
    pub fn strip(&self, p: &mut Packet) {
        p.rx_bytes = p.wire_bytes - self.stripped();
        p.lines = p.rx_bytes.div_ceil(LINE_U32).to_u16();
    }

    pub fn admit(&mut self, id: PacketId) {
        self.fifo.push_back(id);
    }

    /// When the next DMA of a packet may begin, if some packet `waits` and that is later than now.
    fn not_before(&self, side: Side, waits: bool, now: Time) -> Option<Time> {
        Some(self.ready[side.index()]).filter(|at| waits && *at > now)
    }

    /// By `Direction`: whether descriptors or a packet might be moved. While the most packets are under way, their `ready` is
    /// past.
    #[inline]
    pub fn may_move(&self) -> [bool; 2] {
        if self.spec.one_engine && (self.read.is_some() || self.write.is_some()) {
            return [self.read.is_some(), self.write.is_some()];
        }
        let packet = self.receiving < self.spec.receive_packets && !self.fifo.is_empty();
        let write = packet || self.write.is_some() || !self.write_backs.is_empty();
        let frame = self.reading < self.spec.transmit_packets && self.pairs.iter().any(|p| p.transmit.cached() > 0);
        let read = frame || self.read.is_some() || !self.fetches.is_empty();
        [read, write]
    }

    /// Decides on a fetch or a write-back, which takes its delay.
    fn decide(&mut self, cal: &mut impl Posts, queue: QueueId, task: RingTask, now: Time) {
        let delay: Time = match task {
            RingTask::Fetch(side) => {
                self.pairs[queue].ring(side).fetching = true;
                self.spec.fetch_delay.into()
            }
            RingTask::WriteBack(side) => {
                self.pairs[queue].ring(side).writing = true;
                self.spec.write_back_delay.into()
            }
            _ => unreachable!("no decision of the NIC"),
        };
        if delay > Time::ZERO {
            cal.post(now + delay, Event::Ring { queue, task, n: 0 });
        } else {
            self.begin(queue, task);
        }
    }

    /// Read requests that `lines` of a frame take, with the one for their descriptor.
    fn requests(&self, lines: u32) -> u32 {
        1 + lines.div_ceil(self.request_lines)
    }

    /// What was decided on stands in line for the link.
    fn begin(&mut self, queue: QueueId, task: RingTask) {
        match task {
            RingTask::Fetch(side) => self.fetches.push_back((queue, side)),
            RingTask::WriteBack(side) => self.write_backs.push_back((queue, side)),
            _ => unreachable!("no decision of the NIC"),
        }
    }

    /// Something has ended at `queue`, and is known after `delay`.
    fn after(&mut self, cal: &mut impl Posts, queue: QueueId, task: RingTask, n: u32, delay: Span, now: Time) {
        if delay.0 > 0 {
            cal.post(now + delay.into(), Event::Ring { queue, task, n: n.to_u16() });
        } else {
            self.end(queue, task, n);
        }
    }

    /// A packet's DMA has ended. Its place is free after `delay`: `at_once`, where none waits for it now, with a note for the
    /// next that comes; else there is an event.
    fn ends(&mut self, cal: &mut impl Posts, queue: QueueId, side: Side, delay: Span, at_once: bool, now: Time) {
        let after = if at_once {
            self.ready[side.index()] = now + delay.into();
            Span(0)
        } else {
            delay
        };
        self.after(cal, queue, RingTask::Next(side), 1, after, now);
    }

    fn end(&mut self, queue: QueueId, task: RingTask, n: u32) {
        match task {
            RingTask::Recycled(side) => {
                let ring = self.pairs[queue].ring(side);
                ring.recycled += u64::from(n);
                ring.writing = false;
            }
            RingTask::Next(Side::Receive) => self.receiving -= 1,
            RingTask::Next(Side::Transmit) => self.reading -= 1,
            RingTask::Requests => self.pairs[queue].requests -= n,
            _ => unreachable!("nothing that ends"),
        }
    }

    /// Something has changed at `queue`: what is due there?
    fn look(&mut self, cal: &mut impl Posts, queue: QueueId, now: Time) {
        let Pair { receive: r, transmit: t, .. } = &self.pairs[queue];
        let few = r.asked - r.used < u64::from(self.spec.replenish);
        let fetch = [!r.fetching && few && r.can_fetch(), {
            let few = t.asked - t.used < (t.cache / 2).max(1);
            !t.fetching && few && t.can_fetch()
        }];
        // All that is cached has been used, and all of that has been moved.
        let spent = |r: &Ring| !r.fetching && r.asked == r.used && r.used == r.filled;
        let write_back = [
            !r.writing && r.filled > r.written && {
                let n = r.filled - r.written;
                let enough = matches!(self.spec.write_back, WriteBack::After(least) if n >= least.into());
                let idle = self.spec.write_back_idle && self.fifo.is_empty() && r.used == r.filled;
                enough || idle || spent(r)
            },
            {
                let n = t.filled - t.written;
                !t.writing && n > 0 && (n >= self.spec.transmit_write_back.into() || spent(t))
            },
        ];
        for side in [Side::Receive, Side::Transmit] {
            if fetch[side.index()] {
                self.decide(cal, queue, RingTask::Fetch(side), now);
            }
            if write_back[side.index()] {
                self.decide(cal, queue, RingTask::WriteBack(side), now);
            }
        }
    }

    fn descriptors(&mut self, queue: QueueId, side: Side, from: u64, n: u64) -> Extent {
        let (line, lines, bytes) = self.pairs[queue].ring(side).layout.span(from, n);
        Extent { what: Work::Descriptors { queue, side, n: n.to_u32() }, line, lines, bytes }
    }

    fn open_write(&mut self, Extent { what, line, lines, bytes }: Extent, held: u32, now: Time) {
        self.meter.set_busy(true, now);
        let slot = self.writes.open(what, lines);
        self.write =
            Some(Moving { what, slot, line, at: 0, lines, bytes, held, tags: Default::default(), split: false });
    }

    fn open_read(&mut self, Extent { what, line, lines, bytes }: Extent) {
        let slot = self.reads.open(what, lines);
        self.read =
            Some(Moving { what, slot, line, at: 0, lines, bytes, held: 0, tags: Default::default(), split: false });
    }

    /// Descriptors to be fetched, first; they are few and much waits for them.
    fn fetch(&mut self) -> bool {
        let Some((queue, side)) = self.fetches.pop_front() else { return false };
        let ring = self.pairs[queue].ring(side);
        let (from, n) = (ring.asked, ring.fetchable());
        ring.asked += n;
        self.meter.transmit_fetches += u64::from(side == Side::Transmit);
        let work = self.descriptors(queue, side, from, n);
        self.open_read(work);
        true
    }

    fn write_back(&mut self, now: Time) -> bool {
        let Some((queue, side)) = self.write_backs.pop_front() else { return false };
        let ring = self.pairs[queue].ring(side);
        let (from, n) = (ring.written, ring.writable());
        ring.written += n;
        if side == Side::Receive {
            self.meter.descriptors += n;
            self.meter.write_backs += 1;
        }
        let work = self.descriptors(queue, side, from, n);
        self.open_write(work, 0, now);
        true
    }
}

impl Nic {
    /// A NIC behind a PCIe port with a pair of descriptor rings in memory for each queue.
    /// A read request asks for `request` bytes at most.
    pub fn ringed(s: &EthernetSpec, memory: &[RingMemory], request: Size) -> Nic {
        let spec = s.rings.clone().unwrap_or_default();
        let pair = |m: &RingMemory| Pair {
            receive: Ring::new(Layout::new(m.receive, spec.receive, spec.descriptor), spec.receive_cache),
            transmit: Ring::new(Layout::new(m.transmit, spec.transmit, spec.descriptor), spec.transmit_cache),
            armed: VecDeque::with_capacity(spec.receive.to_usize()),
            filled: VecDeque::with_capacity(64),
            put: VecDeque::with_capacity(spec.transmit.to_usize()),
            puts: 0,
            leaving: VecDeque::with_capacity(64),
            requests: 0,
        };
        let ringed = Ringed {
            request_lines: (request.0 / LINE).to_u32(),
            pairs: memory.iter().map(pair).collect(),
            fifo: VecDeque::with_capacity(1024),
            receiving: 0,
            reading: 0,
            ready: [Time::ZERO; 2],
            write: None,
            writes: Contexts::new(),
            write_backs: VecDeque::with_capacity(64),
            read: None,
            reads: Contexts::new(),
            fetches: VecDeque::with_capacity(64),
            turn: 0,
            room: Credits::new(spec.transmit_buffer.0.to_u32()),
            wire: s.wire(),
            landed: VecDeque::with_capacity(64),
            drops: State::default(),
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

    /// Whether its descriptors lie in memory.
    pub fn has_rings(&self) -> bool {
        matches!(self.attachment, Attachment::Ringed(_))
    }

    /// What its receive DMA has done since the restart, where descriptors lie in memory.
    pub fn ring_meter(&self) -> Option<&RingMeter> {
        self.has_rings().then(|| &self.ringed_ref().meter)
    }

    // Software's side of the rings.

    /// Where the receive ring and the transmit ring of `queue` lie.
    pub fn layouts(&self, queue: QueueId) -> (Layout, Layout) {
        let p = &self.ringed_ref().pairs[queue];
        (p.receive.layout, p.transmit.layout)
    }

    /// Software puts `buffer`, whose data begin at `line`, into the next receive descriptor.
    pub fn arm(&mut self, queue: QueueId, buffer: u32, line: LineAddr) {
        self.ringed_mut().pairs[queue].armed.push_back((buffer, line));
    }

    /// All buffers that software has put into receive descriptors are the NIC's from the start, as an uptime would leave it.
    pub fn start_armed(&mut self, queue: QueueId) {
        let Pair { receive: r, armed, .. } = &mut self.ringed_mut().pairs[queue];
        r.posted = armed.len().to_u64();
        r.asked = r.posted.min(r.cache);
        r.fetched = r.asked;
    }

    /// Software puts packet `id`'s reply into the next transmit descriptor, or two for two segments.
    pub fn put(&mut self, queue: QueueId, id: PacketId) {
        let packet = self.packets.get_mut(id);
        let segments = 1 + u16::from(packet.object_bytes > 0);
        packet.left = segments;
        let p = &mut self.ringed_mut().pairs[queue];
        p.put.extend([(id, false), (id, true)].into_iter().take(segments.into()));
        p.puts += u64::from(segments);
    }

    /// Gives packet `p`, which begins with software here, a record. It lies at `p.tx_line`.
    pub fn originate(&mut self, mut p: Packet) -> PacketId {
        self.counts.originated += 1;
        p.tx_bytes = p.wire_bytes - self.ringed_ref().stripped();
        p.lines = p.tx_bytes.div_ceil(LINE_U32).to_u16();
        p.tx_lines = p.lines;
        self.adopt(p)
    }

    /// Bytes of a frame that memory does not have.
    pub fn check_sequence(&self) -> u32 {
        self.ringed_ref().stripped()
    }

    /// Transmit descriptors of `queue` that software sees to be sent, since the beginning.
    pub fn sent_descriptors(&self, queue: QueueId) -> u64 {
        self.ringed_ref().pairs[queue].transmit.seen
    }

    /// A ring of which software can see more since the last call.
    pub fn landed_ring(&mut self) -> Option<(QueueId, Side)> {
        let (queue, side) = self.ringed_mut().landed.pop_front()?;
        Some((queue, side))
    }

    // The same without time.

    /// A packet comes to `queue` and is visible at once; its record, and the line of its descriptor. All counts of the ring
    /// move on together, so that what is under way is as it was.
    pub fn receive_at_once(&mut self, queue: QueueId, mut p: Packet) -> (PacketId, LineAddr) {
        let r = self.ringed_mut();
        r.strip(&mut p);
        let pair = &mut r.pairs[queue];
        (p.buffer, p.line) = pair.armed.pop_front().expect("software keeps the ring armed");
        let line = pair.receive.layout.line(pair.receive.seen);
        pair.receive.step_at_once();
        let id = self.adopt(Packet { queue, done: true, in_memory: true, ..p });
        self.queues[queue].waiting.push_back(Completion::Received(id));
        (id, line)
    }

    /// What the next transmit descriptor of `queue` names is sent at once: the packet's record, whether it is its second
    /// segment, and the descriptor's line.
    pub fn transmit_at_once(&mut self, queue: QueueId) -> Option<(PacketId, bool, LineAddr)> {
        let pair = &mut self.ringed_mut().pairs[queue];
        let (id, second) = pair.put.pop_front()?;
        let line = pair.transmit.layout.line(pair.transmit.seen);
        pair.transmit.step_at_once();
        Some((id, second, line))
    }
}
