//! A RoCE NIC with priority flow control (IEEE 802.1Qbb) on a lossless link to one peer that always has data: one-sided
//! RDMA writes into this host, or reads out of it. The peer is a source or a sink; its host is not modelled.
//!
//! The link is evaluated lazily, when the port asks for lines: arrivals, pause frames and resumptions are processed in
//! time order, and none of these events can depend on a later action of the port.

use super::endpoint::{
    check_buffer, check_counts, check_link, defaults, Device, DeviceBuildContext, DmaDirection, Offer, Piece,
};
use super::pcie::check_port;
use super::DevicePosts;
use crate::flow::{CreditWait, Credits, Link};
use crate::kernel::units::{Bandwidth, Size, Span};
use crate::kernel::with_defaults;
use crate::kernel::{Int, LineAddr, Time};
use crate::memory::region::{Contiguous, Pages};
use crate::memory::{LINE, LINE_U32};
use crate::meter::drops::{DropCause, DropLedger, DropPlace};
use crate::placement::DeviceKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A RoCE NIC and the peer to which it is connected.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoceSpec {
    /// Direction of the DMA: the peer writes to this host (p2m_write) or reads from it (p2m_read).
    pub op: DmaDirection,
    /// Node that the NIC is attached to, in whose memory its buffers lie. The default is 0.
    #[serde(default)]
    pub node: u8,
    /// PCIe lanes of the NIC's port: 1, 2, 4, 8, 12 or 16. The default is 16.
    #[serde(default = "defaults::nic_lanes")]
    pub lanes: u32,
    /// Rate of the Ethernet link. The default is 100 Gbps.
    #[serde(default = "defaults::link")]
    pub link: Bandwidth,
    /// Payload of a packet. The default is 4096 B.
    #[serde(default = "mtu")]
    pub mtu: Size,
    /// Bytes of a message: a multiple of `mtu`. The default is 64 KiB.
    #[serde(default = "message")]
    pub message: Size,
    /// Size of the memory that messages go to, or come from, one after the other: a multiple of `message`. The default
    /// is 64 KiB.
    #[serde(default = "message")]
    pub buffer: Size,
    /// Size of the NIC's receive buffer for the lossless class: at least `xoff` and the headroom for what arrives
    /// before a paused peer stops. For `op = "p2m_write"`. The default is 130,944 B.
    #[serde(default = "defaults::receive_buffer")]
    pub receive_buffer: Size,
    /// Flight time of a packet, MAC to MAC. For `op = "p2m_write"`, whose peer reacts to a pause after this time. The default is
    /// 100 ns.
    #[serde(default = "defaults::propagation")]
    pub propagation: Span,
    /// Maximum number of PCIe read requests that the NIC has outstanding. For `op = "p2m_read"`. The default is 64.
    #[serde(default = "defaults::tags")]
    pub tags: u32,
    /// Contiguity of the physical memory of `buffer`: "buddy" (the default) for memory as Linux's buddy allocator
    /// provides it, or the size of contiguous pieces, such as "32 KiB". The pieces lie anywhere in memory.
    #[serde(default)]
    pub contiguous: Contiguous,
    /// Details of the wire and of flow control, which scenarios leave alone.
    #[serde(default)]
    pub quirks: RoceQuirks,
}

/// Details of RoCE and of priority flow control that NICs differ in.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoceQuirks {
    /// Bytes of a packet on the wire in addition to its payload: preamble, Ethernet, IPv4, UDP, BTH, ICRC, FCS, gap.
    /// The default is 82.
    #[serde(default = "overhead")]
    pub overhead: u32,
    /// Bytes on the wire of a message's first packet in addition to its payload and `overhead`: the RETH. The default
    /// is 16.
    #[serde(default = "message_overhead")]
    pub message_overhead: u32,
    /// Bytes in the receive buffer at or above which the NIC pauses the peer. For `op = "p2m_write"`. The default is
    /// 87,920 B.
    #[serde(default = "xoff")]
    pub xoff: Size,
    /// Bytes in the receive buffer at which the NIC resumes a paused peer; at most `xoff`. For `op = "p2m_write"`.
    /// The default is 83,720 B.
    #[serde(default = "xon")]
    pub xon: Size,
    /// Time from a pause frame's arrival at the peer to its effect there. For `op = "p2m_write"`. The default is
    /// 2,017.28 ns.
    #[serde(default = "pause_response")]
    pub pause_response: Span,
    /// Size of the buffer for data that the NIC reads ahead of the wire: a multiple of `mtu`. For `op = "p2m_read"`. The
    /// default is 32 KiB.
    #[serde(default = "transmit_buffer")]
    pub transmit_buffer: Size,
}

impl Default for RoceQuirks {
    fn default() -> RoceQuirks {
        with_defaults()
    }
}
fn mtu() -> Size {
    Size(4096)
}
fn message() -> Size {
    Size(64 << 10)
}
fn overhead() -> u32 {
    82
}
fn message_overhead() -> u32 {
    16
}
fn xoff() -> Size {
    Size(87_920)
}
fn xon() -> Size {
    Size(83_720)
}
fn pause_response() -> Span {
    Span(2_017_280)
}
fn transmit_buffer() -> Size {
    Size(32 << 10)
}

impl RoceSpec {
    /// Checks that the NIC's parameters fit together and that its receive buffer is lossless.
    ///
    /// # Errors
    /// Returns one clause that names key and value.
    pub fn check(&self) -> Result<(), String> {
        check_port(self.lanes)?;
        check_counts(&[("tags", self.tags, 1024)])?;
        check_link(self.link, self.propagation)?;
        check_buffer(self.receive_buffer)?;
        if !self.mtu.0.is_power_of_two() || !(256..=4096).contains(&self.mtu.0) {
            return Err(format!("mtu = \"{}\" is not one of 256, 512, 1024, 2048 and 4096 B", self.mtu));
        }
        for (key, s) in [("message", self.message), ("quirks.transmit_buffer", self.quirks.transmit_buffer)] {
            if s.0 == 0 || s.0 % self.mtu.0 != 0 {
                return Err(format!("{key} = \"{s}\" is not a multiple of mtu = \"{}\"", self.mtu));
            }
        }
        if self.buffer.0 == 0 || self.buffer.0 % self.message.0 != 0 {
            return Err(format!("buffer = \"{}\" is not a multiple of message = \"{}\"", self.buffer, self.message));
        }
        self.contiguous.check(self.mtu)?;
        if self.quirks.xon.0 > self.quirks.xoff.0 {
            return Err(format!("quirks.xon = \"{}\" is above xoff = \"{}\"", self.quirks.xon, self.quirks.xoff));
        }
        let needed = self.quirks.xoff.0 + self.headroom();
        if self.op == DmaDirection::P2mWrite && self.receive_buffer.0 < needed {
            return Err(format!(
                "receive_buffer = \"{}\" loses packets: beyond xoff = \"{}\" another {} B arrive before the peer stops; \
                 it takes {needed} B",
                self.receive_buffer,
                self.quirks.xoff,
                self.headroom()
            ));
        }
        Ok(())
    }

    /// Bytes that can still arrive once a pause frame has left: data in flight, data that the peer sends until it
    /// reacts, and the packet that it has begun by then (802.1Qbb, annex on buffer requirements).
    fn headroom(&self) -> u64 {
        let window = 2 * u128::from(self.propagation.0) + u128::from(self.quirks.pause_response.0);
        let bytes = (window * u128::from(self.link.0)).div_ceil(8_000_000_000_000).to_u64();
        bytes + 2 * (self.mtu.0 + u64::from(self.quirks.overhead + self.quirks.message_overhead))
    }

    /// Lines of the buffer.
    pub fn lines(&self) -> u64 {
        self.buffer.0 / LINE
    }

    /// Payload rate of the link, in GB/s.
    pub fn payload_gbs(&self) -> f64 {
        let packets = (self.message.0 / self.mtu.0).to_f64();
        let wire = self.message.0.to_f64()
            + packets * f64::from(self.quirks.overhead)
            + f64::from(self.quirks.message_overhead);
        self.link.0.to_f64() / 8e9 * self.message.0.to_f64() / wire
    }
}

/// RDMA NIC that reads or writes a buffer in host memory.
#[derive(Clone)]
pub struct Roce {
    /// Direction in which the NIC moves data.
    pub op: DmaDirection,
    pages: Pages,
    /// Lines of a packet; `packets` is the number of packets of a message, `lines` the number of lines of the buffer.
    packet: u32,
    packets: u32,
    lines: u64,
    /// Bytes on the link of a message's first packet (index 0), and of each other packet (index 1).
    bytes: [u64; 2],
    /// The link: from the peer when the peer writes, to the peer when the peer reads.
    link: Link,
    response: Time,
    /// Index of the link's next packet within its message.
    index: u32,
    /// Line in the buffer that moves next.
    at: u64,
    /// Number of remaining lines of the packet whose lines move next.
    left: u32,
    /// Lines done since the last message ended.
    ended: u64,
    completed: u64,
    receive: RoceReceive,
    transmit: RoceTransmit,
}

/// Receive side of the NIC: the receive buffer, the link from the peer, and the peer's transmitter.
#[derive(Clone)]
struct RoceReceive {
    /// Bytes of the receive buffer.
    buffer: Credits,
    xoff: u32,
    xon: u32,
    drops: DropLedger,
    /// Time at which the peer's transmitter can begin another packet.
    peer: Time,
    /// Whether the last pause frame paused the peer.
    stopped: bool,
    /// Pause frames on their way to the peer: time of effect, and whether the frame pauses the peer or resumes it.
    orders: VecDeque<(Time, bool)>,
    paused_since: Option<Time>,
    paused: Time,
    pauses: u64,
}

/// Transmit side of the NIC.
#[derive(Clone)]
struct RoceTransmit {
    /// Lines of the transmit buffer, taken when they are requested and returned when their packet has left.
    room: Credits,
    /// Number of lines whose data has arrived and that are not yet part of a packet.
    ready: u32,
}

impl Roce {
    /// Whether the peer writes to this host, so that the link leads to the host.
    pub fn receives(&self) -> bool {
        self.op == DmaDirection::P2mWrite
    }

    /// Time between the restart and `now` in which the link carried packets.
    pub fn link_busy(&self, now: Time) -> Time {
        self.link.busy_until(now)
    }

    /// A NIC with its buffer in `pages`.
    pub fn new(s: &RoceSpec, pages: Pages) -> Roce {
        let packet = (s.mtu.0 / LINE).to_u32();
        let rest = s.mtu.0 + u64::from(s.quirks.overhead);
        Roce {
            op: s.op,
            pages,
            packet,
            packets: (s.message.0 / s.mtu.0).to_u32(),
            lines: s.lines(),
            bytes: [rest + u64::from(s.quirks.message_overhead), rest],
            link: Link::ethernet(s.link, s.propagation.into()),
            response: s.quirks.pause_response.into(),
            index: 0,
            at: 0,
            left: 0,
            ended: 0,
            completed: 0,
            receive: RoceReceive {
                buffer: Credits::new(s.receive_buffer.0.to_u32()),
                xoff: s.quirks.xoff.0.to_u32(),
                xon: s.quirks.xon.0.to_u32(),
                drops: DropLedger::default(),
                peer: Time::ZERO,
                stopped: false,
                orders: VecDeque::with_capacity(16),
                paused_since: None,
                paused: Time::ZERO,
                pauses: 0,
            },
            transmit: RoceTransmit { room: Credits::new((s.quirks.transmit_buffer.0 / LINE).to_u32()), ready: 0 },
        }
    }

    /// Serialisation time of the next packet on the link.
    fn span(&self) -> Time {
        self.link.time(self.bytes[usize::from(self.index > 0)])
    }

    /// Sends the next packet, which is ready at `now`; returns the time at which it has left.
    fn send(&mut self, now: Time) -> Time {
        let end = self.link.send(self.bytes[usize::from(self.index > 0)], now);
        self.index = (self.index + 1) % self.packets;
        end
    }

    /// Time from a pause frame to its effect at the peer.
    fn reaction(&self) -> Time {
        self.link.flight + self.response
    }

    fn next_received(&mut self, now: Time) -> Offer {
        self.arrivals(now);
        if self.left > 0 {
            return Offer::Lines(self.left);
        }
        if self.receive.buffer.held() == 0 {
            let r = &self.receive;
            let resumed = if r.paused_since.is_some() { r.orders.front().map(|o| o.0) } else { None };
            return Offer::At(r.peer.max(resumed.unwrap_or_default()) + self.span() + self.link.flight);
        }
        self.left = self.packet;
        Offer::Lines(self.left)
    }

    /// Processes all events of the link up to `now`.
    fn arrivals(&mut self, now: Time) {
        loop {
            self.receive.obey(now);
            let end = self.receive.peer + self.span();
            if self.receive.paused_since.is_some() || end + self.link.flight > now {
                return;
            }
            self.receive.peer = self.send(self.receive.peer);
            self.receive.arrive(self.packet * LINE_U32, end + self.link.flight, self.reaction());
        }
    }

    fn next_fetched(&mut self, now: Time) -> Offer {
        if self.left > 0 {
            return Offer::Lines(self.left);
        }
        match self.transmit.room.take(self.packet, now) {
            Ok(()) => {
                self.left = self.packet;
                Offer::Lines(self.left)
            }
            Err(CreditWait::Until(t)) => Offer::At(t),
            Err(CreditWait::Return) => Offer::Nothing,
        }
    }

    /// Counts since the restart: time for which the peer was paused, number of pause frames that paused the peer, and
    /// largest number of bytes in the receive buffer.
    pub fn pauses(&self, now: Time) -> (Time, u64, u64) {
        let r = &self.receive;
        let (mut paused, mut since) = (r.paused, r.paused_since);
        for &(at, stop) in r.orders.iter().filter(|o| o.0 <= now) {
            if let Some(s) = since.filter(|_| !stop) {
                paused += at - s;
            }
            since = stop.then_some(at);
        }
        (paused + since.map_or(Time::ZERO, |s| now.saturating_sub(s)), r.pauses, r.buffer.peak().into())
    }
}

impl Device for Roce {
    type Spec = RoceSpec;

    fn node(s: &RoceSpec) -> u8 {
        s.node
    }
    const KIND: DeviceKind = DeviceKind::Rdma;

    fn check(s: &RoceSpec) -> Result<(), String> {
        s.check()
    }
    fn link(s: &RoceSpec) -> (u32, u32) {
        (s.lanes, s.tags)
    }
    fn build(s: &RoceSpec, context: &mut DeviceBuildContext) -> Roce {
        Roce::new(s, context.buffer("roce", s.lines(), s.contiguous).0)
    }
    #[inline]
    fn moves(&self, way: DmaDirection) -> bool {
        self.op == way
    }
    fn completed(&self) -> u64 {
        self.completed
    }

    fn next(&mut self, _way: DmaDirection, now: Time) -> Offer {
        match self.op {
            DmaDirection::P2mWrite => self.next_received(now),
            DmaDirection::P2mRead => self.next_fetched(now),
        }
    }

    /// Hands over the first `n` of the lines that `next` offered; they leave the receive buffer from `now` on.
    fn take(&mut self, _way: DmaDirection, n: u32, now: Time) -> Piece {
        if self.op == DmaDirection::P2mWrite {
            self.receive.leave(n * LINE_U32, now, self.reaction());
        }
        let at = self.at;
        self.at = (self.at + u64::from(n)) % self.lines;
        self.left -= n;
        Piece { line: self.pages.line(at), ..Piece::default() }
    }

    /// Counts `n` lines as done: written to memory, or fetched from memory and ready to be sent.
    fn done(&mut self, _cal: &mut impl DevicePosts, _way: DmaDirection, _slot: u16, n: u32, now: Time) -> bool {
        let message = u64::from(self.packet) * u64::from(self.packets);
        self.ended += u64::from(n);
        if self.ended >= message {
            self.ended -= message;
            self.completed += 1;
        }
        if self.op == DmaDirection::P2mWrite {
            return false;
        }
        self.transmit.ready += n;
        while self.transmit.ready >= self.packet {
            self.transmit.ready -= self.packet;
            let end = self.send(now);
            self.transmit.room.give_at(self.packet, end);
        }
        true
    }

    fn write_functional(&mut self) -> Option<(LineAddr, u32)> {
        let at = self.at;
        self.at = (self.at + u64::from(self.packet)) % self.lines;
        Some((self.pages.line(at), self.packet))
    }

    fn restart_meters(&mut self, now: Time) {
        if self.op == DmaDirection::P2mWrite {
            self.arrivals(now);
        }
        let r = &mut self.receive;
        r.paused = Time::ZERO;
        r.paused_since = r.paused_since.map(|_| now);
        r.pauses = 0;
        r.buffer.restart(now);
        r.drops.restart();
        self.transmit.room.restart(now);
        self.link.restart(now);
    }

    /// Ledger of the packets that flow control has lost, which `audit` requires to be empty.
    fn drops(&self) -> Option<&DropLedger> {
        Some(&self.receive.drops)
    }

    /// Checks that flow control has lost no packet.
    ///
    /// # Errors
    /// Returns one sentence when a packet was lost.
    fn audit(&self) -> Result<(), String> {
        let lost = self.receive.drops.total();
        if lost > 0 {
            return Err(format!("{lost} packets of a lossless link were lost"));
        }
        Ok(())
    }
}

impl RoceReceive {
    /// Applies to the peer the pause frames that take effect by `now`, as far as they affect its next packet.
    fn obey(&mut self, now: Time) {
        while let Some(&(at, stop)) = self.orders.front() {
            if at > now || (at > self.peer && self.paused_since.is_none()) {
                return;
            }
            self.orders.pop_front();
            if stop {
                self.paused_since = Some(at);
            } else if let Some(since) = self.paused_since.take() {
                self.paused += at - since;
                self.peer = self.peer.max(at);
            }
        }
    }

    fn arrive(&mut self, bytes: u32, at: Time, reaction: Time) {
        if self.buffer.take(bytes, at).is_err() {
            self.drops.record(DropPlace::ReceiveBuffer, DropCause::BufferFull, at);
            return;
        }
        if self.buffer.held() >= self.xoff && !self.stopped {
            self.stopped = true;
            self.pauses += 1;
            self.orders.push_back((at + reaction, true));
        }
    }

    fn leave(&mut self, bytes: u32, now: Time, reaction: Time) {
        self.buffer.give(bytes, now);
        if self.stopped && self.buffer.held() <= self.xon {
            self.stopped = false;
            self.orders.push_back((now + reaction, false));
        }
    }
}
