//! Senders of long TCP flows under DCTCP (RFC 8257; Linux 5.4's variant), the link that these senders share, and the
//! switch queue before the link where the senders use several ports. Windows are counted in segments of one frame each.
//!
//! Loss is detected by selective acknowledgements in the order of sending (RACK): a segment counts as lost when the
//! third segment sent after it has arrived. The receiving host sees segments and returns acknowledgements.

use super::{TrafficEvent, TrafficPosts};
use crate::flow::Link;
use crate::kernel::units::{Size, Span};
use crate::kernel::{Int, PacketId, Real, TenantId, Time};
use crate::meter::drops::{DropCause, DropLedger, DropPlace};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Senders of TCP flows, one flow to each receiving core.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DctcpSpec {
    /// Weight of a window's marked share in the estimate alpha (DCTCP's g). The default is 1/16.
    #[serde(default = "gain")]
    pub gain: f64,
    /// Initial congestion window of a flow, in segments. The default is 10.
    #[serde(default = "initial_window")]
    pub initial_window: u32,
    /// Number of bytes that a sender's socket may hold until the receiver acknowledges them (`tcp_wmem`, with
    /// auto-tuning off). Changes nothing for a flow whose congestion window is smaller. The default is 1,000,000 B.
    #[serde(default = "send_buffer")]
    pub send_buffer: Size,
    /// Number of segments that a flow sends back to back before the next flow sends (TCP segmentation offload), with several
    /// flows. The default is 7.
    #[serde(default = "burst")]
    pub burst: u32,
    /// Number of ports over which the flows are spread. A switch joins several ports; a single port (the default) sends
    /// directly to the receiver.
    #[serde(default = "ports")]
    pub ports: u32,
    /// Bytes in the switch's queue above which it marks segments (ECN), with `ports` above 1. The default is 400 KiB.
    #[serde(default = "mark")]
    pub mark: Size,
    /// Bytes that the switch's queue holds, with `ports` above 1. The default is 2 MiB.
    #[serde(default = "queue")]
    pub queue: Size,
    /// Time that an acknowledgement takes from the receiver's stack to the sender's stack: flight, and interrupt and
    /// softirq of the sender. The default is 20 us.
    #[serde(default = "ack_delay")]
    pub ack_delay: Span,
    /// Time without acknowledgements after which a flow sends its last outstanding segment again. The default is 2 ms.
    #[serde(default = "probe")]
    pub probe: Span,
}
fn gain() -> f64 {
    1.0 / 16.0
}
fn initial_window() -> u32 {
    10
}
fn send_buffer() -> Size {
    Size(1_000_000)
}
fn burst() -> u32 {
    7
}
fn ports() -> u32 {
    1
}
fn mark() -> Size {
    Size(400 << 10)
}
fn queue() -> Size {
    Size(2 << 20)
}
fn ack_delay() -> Span {
    Span(20_000_000)
}
fn probe() -> Span {
    Span(2_000_000_000)
}

impl Default for DctcpSpec {
    fn default() -> DctcpSpec {
        DctcpSpec {
            gain: gain(),
            initial_window: initial_window(),
            send_buffer: send_buffer(),
            burst: burst(),
            ports: ports(),
            mark: mark(),
            queue: queue(),
            ack_delay: ack_delay(),
            probe: probe(),
        }
    }
}

impl DctcpSpec {
    /// Checks that the parameters fit together.
    ///
    /// # Errors
    /// Returns one clause that names key and value.
    pub fn check(&self) -> Result<(), String> {
        if !(self.gain > 0.0 && self.gain <= 1.0) {
            return Err(format!("gain = {} is not above 0 and up to 1", self.gain));
        }
        for (key, v) in [("initial_window", self.initial_window), ("burst", self.burst), ("ports", self.ports)] {
            if v == 0 || v > 1000 {
                return Err(format!("{key} = {v} is not within 1 to 1000"));
            }
        }
        if self.send_buffer.0 < 2 * 9600 {
            return Err(format!("send_buffer = \"{}\" is below 19200 B", self.send_buffer));
        }
        if self.mark.0 > self.queue.0 {
            return Err(format!("mark = \"{}\" is above queue = \"{}\"", self.mark, self.queue));
        }
        for (key, v, least) in [("ack_delay", self.ack_delay, Span(1)), ("probe", self.probe, Span(1_000_000))] {
            if v < least {
                return Err(format!("{key} = \"{v}\" is below {least}"));
            }
        }
        Ok(())
    }
}

/// Acknowledgement by the receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ack {
    /// Number of the flow.
    pub flow: u8,
    /// Number of the first segment that has not arrived.
    pub next: u32,
    /// First of the segments that have just arrived.
    pub from: u32,
    /// Number after the last of the segments that have just arrived.
    pub to: u32,
    /// End of the receive window, as a segment number.
    pub edge: u32,
    /// Number of new segments that carried a congestion mark.
    pub marked: u32,
}

/// A segment on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WireSegment {
    /// Number of the flow.
    pub flow: u8,
    /// Number of the segment within the flow.
    pub seq: u32,
    /// Whether the switch has marked the segment because of congestion.
    pub marked: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SegmentState {
    Out,
    Here,
    Lost,
}

#[derive(Clone, Copy, Debug)]
struct SentSegment {
    state: SegmentState,
    /// Order of the segment's last transmission.
    stamp: u64,
    /// Time of the segment's last transmission.
    at: Time,
    again: bool,
}

/// Sender of one flow.
#[derive(Clone, Debug)]
pub struct DctcpFlow {
    base: u32,
    sent: VecDeque<SentSegment>,
    out: u32,
    lost: u32,
    edge: u32,
    /// Maximum number of segments that the socket holds.
    buffer: usize,
    window: f64,
    threshold: f64,
    /// Segment below which everything must arrive to end recovery.
    recover: Option<u32>,
    alpha: f64,
    /// End of the window over which marks are counted; `acked` and `marked` are the counts.
    round: u32,
    acked: u32,
    marked: u32,
    stamp: u64,
    newest: u64,
    heard: Time,
    /// Number of segments that were sent again.
    pub retransmitted: u64,
    /// Sum of the round-trip times in ps, and their number.
    trips: (u64, u64),
}

const REORDERING: u64 = 3;

impl DctcpFlow {
    fn new(s: &DctcpSpec, edge: u32, bytes: u64) -> DctcpFlow {
        DctcpFlow {
            base: 0,
            sent: VecDeque::with_capacity(1024),
            out: 0,
            lost: 0,
            edge,
            buffer: (s.send_buffer.0 / bytes).to_usize(),
            window: s.initial_window.into(),
            threshold: f64::INFINITY,
            recover: None,
            alpha: 1.0,
            round: 0,
            acked: 0,
            marked: 0,
            stamp: 0,
            newest: 0,
            heard: Time::ZERO,
            retransmitted: 0,
            trips: (0, 0),
        }
    }

    fn next(&self) -> u32 {
        self.base + self.sent.len().to_u32()
    }

    fn may_send(&self) -> bool {
        let new = self.next() < self.edge && self.sent.len() < self.buffer;
        f64::from(self.out) + 1.0 <= self.window && (self.lost > 0 || new)
    }

    /// Sends a lost segment again, or a new segment when none is lost; returns the segment's number.
    fn send(&mut self, now: Time) -> u32 {
        self.stamp += 1;
        self.out += 1;
        let (stamp, at) = (self.stamp, now);
        if self.lost == 0 {
            self.sent.push_back(SentSegment { state: SegmentState::Out, stamp, at, again: false });
            return self.next() - 1;
        }
        self.lost -= 1;
        self.retransmitted += 1;
        let i = self.sent.iter().position(|s| s.state == SegmentState::Lost).expect("a lost segment");
        self.sent[i] = SentSegment { state: SegmentState::Out, stamp, at, again: true };
        self.base + i.to_u32()
    }

    fn acknowledge(&mut self, a: &Ack, gain: f64, burst: u32, now: Time) {
        let limited = self.out + burst >= self.window.whole().to_u32();
        let mut arrived = 0;
        for seq in a.from.max(self.base)..a.to {
            let s = &mut self.sent[(seq - self.base).to_usize()];
            match s.state {
                SegmentState::Here => continue,
                SegmentState::Out => self.out -= 1,
                SegmentState::Lost => self.lost -= 1, // the segment had only been late
            }
            s.state = SegmentState::Here;
            self.newest = self.newest.max(s.stamp);
            if !s.again {
                let trip = now - s.at;
                self.trips = (self.trips.0 + trip.0, self.trips.1 + 1);
            }
            arrived += 1;
        }
        let advances = self.base < a.next;
        while self.base < a.next {
            let s = self.sent.pop_front().expect("acknowledged what was sent");
            debug_assert_eq!(s.state, SegmentState::Here);
            self.base += 1;
        }
        self.edge = self.edge.max(a.edge);
        self.heard = now;
        self.acked += arrived;
        self.marked += a.marked;
        self.find_losses();
        if self.recover.is_some_and(|end| self.base >= end) {
            self.recover = None;
        }
        // Acknowledgements that only fill gaps do not increase the window (Linux, tcp_may_raise_cwnd).
        if self.recover.is_none() && limited && advances {
            let step = f64::from(arrived);
            self.window += if self.window < self.threshold { step } else { step / self.window };
        }
        if self.base >= self.round {
            self.end_round(gain);
        }
    }

    /// Ends a window of data: the share of marked segments updates alpha, and marks shrink the congestion window by
    /// half of alpha (RFC 8257, section 3.3).
    fn end_round(&mut self, gain: f64) {
        let share = f64::from(self.marked) / f64::from(self.acked.max(1));
        self.alpha += gain * (share - self.alpha);
        if self.marked > 0 {
            self.window = (self.window * (1.0 - self.alpha / 2.0)).max(2.0);
            self.threshold = self.window;
        }
        (self.acked, self.marked) = (0, 0);
        self.round = self.next();
    }

    fn find_losses(&mut self) {
        if self.sent.len().to_u32() == self.out + self.lost {
            return; // no later segment has arrived earlier
        }
        let newest = self.newest;
        let mut found = 0;
        for s in self.sent.iter_mut().filter(|s| s.state == SegmentState::Out && s.stamp + REORDERING <= newest) {
            s.state = SegmentState::Lost;
            found += 1;
        }
        self.out -= found;
        self.lost += found;
        if found > 0 && self.recover.is_none() {
            // Linux halves the window on loss, whatever alpha is.
            self.window = (self.window / 2.0).max(2.0);
            self.threshold = self.window;
            self.recover = Some(self.next());
        }
    }

    /// Declares the last outstanding segment lost after a long time without acknowledgements, so that it is sent again;
    /// returns false when no segment is outstanding.
    fn probe(&mut self) -> bool {
        let Some(s) = self.sent.iter_mut().rev().find(|s| s.state == SegmentState::Out) else { return false };
        s.state = SegmentState::Lost;
        self.out -= 1;
        self.lost += 1;
        true
    }
}

#[derive(Clone, Debug)]
struct SwitchPort {
    pending: bool,
    /// Flows of this port; `turn` is the index of the flow that sends now, and `left` the number of segments that this
    /// flow may still send.
    flows: Vec<u8>,
    turn: usize,
    left: u32,
}

/// All senders, with the switch and the link to the receiver.
#[derive(Clone, Debug)]
pub struct Senders {
    /// Tenant that receives.
    tenant: TenantId,
    /// Senders, one for each flow.
    pub flows: Vec<DctcpFlow>,
    ports: Vec<SwitchPort>,
    gain: f64,
    burst: u32,
    /// Link to the receiver, which begins at the switch where there is one.
    link: Link,
    /// Number of bytes of a segment on this link.
    wire_bytes: u64,
    ack_delay: Time,
    probe: Time,
    segment_bytes: u64,
    mark: u64,
    limit: u64,
    wire: VecDeque<WireSegment>,
    acks: VecDeque<Ack>,
    /// Acknowledgements that the receiver's NIC is to send, with their packets.
    acks_in_nic: Vec<(PacketId, Ack)>,
    /// Whether the senders send no further segments.
    pub stopped: bool,
    /// Number of segments put on the link to the receiver.
    pub sent: u64,
    /// Ledger of the segments that were lost because the switch's queue was full.
    pub drops: DropLedger,
}

impl Senders {
    /// Senders of `flows` flows to `tenant` over frames of `bytes` bytes, which are `wire_bytes` bytes on each `link`; each flow
    /// may begin with `edge` segments.
    pub fn new(
        s: &DctcpSpec,
        tenant: TenantId,
        flows: u8,
        edge: u32,
        bytes: u64,
        wire_bytes: u64,
        link: Link,
    ) -> Senders {
        let ports = s.ports.min(flows.into()).to_usize();
        let port = |p| SwitchPort {
            pending: false,
            flows: (0..flows).filter(|f| usize::from(*f) % ports == p).collect(),
            turn: 0,
            left: s.burst,
        };
        Senders {
            tenant,
            flows: (0..flows).map(|_| DctcpFlow::new(s, edge, bytes)).collect(),
            ports: (0..ports).map(port).collect(),
            gain: s.gain,
            burst: s.burst,
            link,
            wire_bytes,
            ack_delay: s.ack_delay.into(),
            probe: s.probe.into(),
            segment_bytes: bytes,
            mark: s.mark.0,
            limit: s.queue.0,
            wire: VecDeque::with_capacity(1024),
            acks: VecDeque::with_capacity(256),
            acks_in_nic: Vec::with_capacity(64),
            stopped: false,
            sent: 0,
            drops: DropLedger::default(),
        }
    }

    /// Lets all senders begin at `now`.
    pub fn start(&mut self, cal: &mut impl TrafficPosts, now: Time) {
        for p in 0..self.ports.len() {
            self.start_port(cal, p, now);
        }
        for f in 0..self.flows.len() {
            cal.post(now + self.probe, TrafficEvent::Probe { tenant: self.tenant, flow: f.to_u8() });
        }
    }

    fn start_port(&mut self, cal: &mut impl TrafficPosts, p: usize, now: Time) {
        if !self.ports[p].pending {
            self.ports[p].pending = true;
            cal.post(now, TrafficEvent::Emit { tenant: self.tenant, port: p.to_u8() });
        }
    }

    /// Chooses the flow of port `p` that sends next.
    fn choose(&mut self, p: usize) -> Option<u8> {
        let port = &mut self.ports[p];
        for _ in 0..=port.flows.len() {
            let f = port.flows[port.turn];
            if port.left > 0 && self.flows[f.to_usize()].may_send() {
                port.left -= 1;
                return Some(f);
            }
            port.turn = (port.turn + 1) % port.flows.len();
            port.left = self.burst;
        }
        None
    }

    /// Handles `TrafficEvent::Emit`: port `p` is free to send.
    pub fn on_emit(&mut self, cal: &mut impl TrafficPosts, p: usize, now: Time) {
        self.ports[p].pending = false;
        if self.stopped {
            return;
        }
        let Some(flow) = self.choose(p) else { return };
        let seq = self.flows[flow.to_usize()].send(now);
        self.sent += 1;
        let span = self.link.time(self.wire_bytes);
        let end = now + span;
        self.ports[p].pending = true;
        cal.post(end, TrafficEvent::Emit { tenant: self.tenant, port: p.to_u8() });
        let mut segment = WireSegment { flow, seq, marked: false };
        let mut ready = now;
        if self.ports.len() > 1 {
            let waiting = u128::from(self.link.backlog(end).0) * u128::from(self.segment_bytes);
            let waiting = (waiting / u128::from(span.0)).to_u64();
            if waiting + self.segment_bytes > self.limit {
                self.drops.record(DropPlace::SwitchQueue, DropCause::QueueFull, end);
                return;
            }
            segment.marked = waiting > self.mark;
            ready = end; // the switch receives all of the segment before it sends the segment on
        }
        let leaves = self.link.send(self.wire_bytes, ready);
        self.wire.push_back(segment);
        cal.post(leaves + self.link.flight, TrafficEvent::Segment(self.tenant));
    }

    /// Handles `TrafficEvent::Segment`: takes the segment that arrives from the wire now.
    pub fn arriving(&mut self) -> WireSegment {
        self.wire.pop_front().expect("a segment on the wire")
    }

    /// Returns acknowledgement `a` of the receiver to its sender, from time `at` on.
    pub fn acknowledge(&mut self, cal: &mut impl TrafficPosts, a: Ack, at: Time) {
        self.acks.push_back(a);
        cal.post(at + self.ack_delay, TrafficEvent::Ack(self.tenant));
    }

    /// Records that packet `id` in the receiver's transmit ring carries acknowledgement `a`.
    pub fn bind_acknowledgement(&mut self, id: PacketId, a: Ack) {
        self.acks_in_nic.push((id, a));
    }

    /// Returns the acknowledgement in packet `id`, which has left the receiver's NIC at `at`, to its sender.
    pub fn on_acknowledgement_sent(&mut self, cal: &mut impl TrafficPosts, id: PacketId, at: Time) {
        if let Some(i) = self.acks_in_nic.iter().position(|l| l.0 == id) {
            let (_, a) = self.acks_in_nic.remove(i);
            self.acknowledge(cal, a, at);
        }
    }

    /// Handles `TrafficEvent::Ack`: delivers the oldest acknowledgement to its sender.
    pub fn on_ack(&mut self, cal: &mut impl TrafficPosts, now: Time) {
        let a = self.acks.pop_front().expect("an acknowledgement on its way");
        let f = a.flow.to_usize();
        self.flows[f].acknowledge(&a, self.gain, self.burst, now);
        self.start_port(cal, f % self.ports.len(), now);
    }

    /// Handles `TrafficEvent::Probe`: checks whether flow `f` has received no acknowledgement for too long.
    pub fn on_probe(&mut self, cal: &mut impl TrafficPosts, f: usize, now: Time) {
        if self.stopped {
            return;
        }
        let due = self.flows[f].heard + self.probe;
        if due > now {
            return cal.post(due, TrafficEvent::Probe { tenant: self.tenant, flow: f.to_u8() });
        }
        if self.flows[f].probe() {
            self.start_port(cal, f % self.ports.len(), now);
        }
        cal.post(now + self.probe, TrafficEvent::Probe { tenant: self.tenant, flow: f.to_u8() });
    }

    /// Number of segments on their way to the receiver.
    pub fn on_wire(&self) -> u64 {
        self.wire.len().to_u64()
    }

    /// Begins the measured window at `now`.
    pub fn restart_meters(&mut self, now: Time) {
        self.link.restart(now);
        self.drops.restart();
        for f in &mut self.flows {
            f.trips = (0, 0);
        }
    }

    /// Time between the restart and `now` in which the link to the receiver carried segments.
    pub fn link_busy(&self, now: Time) -> Time {
        self.link.busy_until(now)
    }

    /// Mean round-trip time in ns, and the means over all flows of `senders` of the congestion window (in segments) and of alpha.
    pub fn state(senders: &[&Senders]) -> (f64, f64, f64) {
        let flows = || senders.iter().flat_map(|s| &s.flows);
        let n = flows().count().max(1).to_f64();
        let (ps, trips) = flows().fold((0, 0), |(a, b), f| (a + f.trips.0, b + f.trips.1));
        let window = flows().map(|f| f.window).sum::<f64>() / n;
        let alpha = flows().map(|f| f.alpha).sum::<f64>() / n;
        (ps.to_f64() / trips.max(1).to_f64() / 1e3, window, alpha)
    }

    /// Checks each flow's count of its segments.
    ///
    /// # Errors
    /// Returns one sentence when a flow's counts do not add up.
    pub fn check(&self) -> Result<(), String> {
        for (i, f) in self.flows.iter().enumerate() {
            let count = |s: SegmentState| f.sent.iter().filter(|x| x.state == s).count().to_u32();
            if count(SegmentState::Out) != f.out || count(SegmentState::Lost) != f.lost {
                return Err(format!("flow {i} has {} segments out, its list {}", f.out, count(SegmentState::Out)));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "dctcp_tests.rs"]
mod tests;
