//! The load generator at the other end of the wire: it determines sizes and flows of the packets that it sends, and
//! records the replies.
//!
//! The generator takes no simulated time and loses nothing. A round trip lasts from the first bit on the wire to the
//! last bit of the returned reply, so that only packets that return count. The generator derives the time at which a
//! packet left from the packet's arrival, so recording changes no result.

use super::frame::rss_hash;
use super::{TrafficEvent, TrafficPosts};
use crate::device::nic::Packet;
use crate::flow::Link;
use crate::kernel::units::Bandwidth;
use crate::kernel::{Int, RandomStream, TenantId, Time};
use crate::memory::LINE_U32;
use hdrhistogram::Histogram;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// Bytes that a frame takes on the wire in addition to its own: preamble, delimiter and gap (IEEE 802.3, 3.1.1 and
/// 4.4.2).
pub const BETWEEN_FRAMES: u32 = 20;
/// Bytes of the frame check sequence, which captures omit.
pub const CHECKSUM: u32 = 4;
/// Destination port of the generator's packets: UDP's discard service.
const PORT: u16 = 9;
/// First source port of the flows, above the well-known ports, and number of ports per source address.
const PORTS: (u32, u32) = (1024, 64_000);

/// Source and destination address of flow number `i`.
pub fn addresses(i: u32) -> (SocketAddr, SocketAddr) {
    let (host, port) = (i / PORTS.1, PORTS.0 + i % PORTS.1);
    let source = Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 1, 0, 1)) + host);
    (SocketAddr::from((source, port.to_u16())), SocketAddr::from((Ipv4Addr::new(10, 0, 0, 1), PORT)))
}

/// Sizes of frames, drawn by weight.
#[derive(Clone, Debug)]
pub struct Sizes {
    /// Sizes in bytes, each with the sum of the weights up to and including it.
    table: Arc<[(u32, u64)]>,
    stream: RandomStream,
}

impl Sizes {
    /// Sizes with the weights of `table`.
    ///
    /// # Panics
    /// When no weight is positive; specs reject that before.
    pub fn new(table: impl IntoIterator<Item = (u32, u32)>, stream: RandomStream) -> Sizes {
        let mut sum = 0;
        let mut add = |(bytes, weight): (u32, u32)| {
            sum += u64::from(weight);
            (bytes, sum)
        };
        let table: Arc<[_]> = table.into_iter().map(&mut add).collect();
        assert!(sum > 0, "sizes need a weight");
        Sizes { table, stream }
    }

    /// Draws a size in bytes.
    pub fn draw(&mut self) -> u32 {
        let n = self.stream.below(self.table[self.table.len() - 1].1);
        let hit = self.table.iter().find(|(_, upto)| n < *upto);
        hit.map_or(0, |(bytes, _)| *bytes)
    }
}

/// Flows that packets belong to.
#[derive(Clone, Debug)]
pub enum Flows {
    /// No flows: each packet is a flow of its own.
    Any,
    /// RSS hashes of the flows, by number.
    Of(Arc<[u32]>),
}

impl Flows {
    /// `n` flows over UDP.
    pub fn udp(n: u32) -> Flows {
        let hash = |i| {
            let (source, destination) = addresses(i);
            rss_hash(source, destination)
        };
        Flows::Of((0..n).map(hash).collect())
    }

    /// One flow without addresses that RSS could hash.
    pub fn unseen() -> Flows {
        Flows::Of([0].into())
    }
}

/// The wire to the host, and the return path where the NIC has no transmitter of its own.
#[derive(Clone)]
struct GeneratorWire {
    there: Link,
    back: Option<Link>,
    /// Bytes of a frame on the wire in addition to the bytes that the frame counts.
    beside: u32,
    /// Packets on the wire, and packets that wait for it.
    on_it: VecDeque<Packet>,
}

impl GeneratorWire {
    fn time(&self, bytes: u32) -> Time {
        self.there.time(u64::from(bytes + self.beside))
    }
}

/// Clients of a closed loop, each of which has one outstanding request.
#[derive(Clone)]
struct ClosedLoop {
    /// Tenant that serves the requests.
    tenant: TenantId,
    timeout: Time,
    /// Clients whose requests have neither been answered nor given up, by the time of sending.
    waiting: BTreeSet<(Time, u32)>,
    /// Clients whose replies are on their way back, with the time of sending.
    coming: VecDeque<(Time, u32)>,
    /// Clients whose next request is due now.
    due: VecDeque<u32>,
    timer: bool,
}

impl ClosedLoop {
    /// Lets a request, given by the time of sending and its client, wait for its reply.
    fn wait(&mut self, request: (Time, u32), cal: &mut impl TrafficPosts) {
        self.waiting.insert(request);
        if !std::mem::replace(&mut self.timer, true) {
            cal.post(request.0 + self.timeout, TrafficEvent::Overdue(self.tenant));
        }
    }

    /// Makes the next request of a client due now.
    fn offer(&mut self, client: u32, cal: &mut impl TrafficPosts, now: Time) {
        self.due.push_back(client);
        cal.post(now, TrafficEvent::Offer(self.tenant));
    }
}

/// Round-trip times of the packets that returned in a measurement window.
#[derive(Clone)]
pub struct Rtt {
    /// Round-trip times in ns.
    pub histogram: Histogram<u64>,
    sum_ps: u128,
    /// Sum of squares of the round-trip times, in ns^2.
    squares: f64,
    /// Bytes of the frames that returned.
    pub bytes: u64,
}

impl Rtt {
    fn new() -> Rtt {
        let histogram = Histogram::new_with_bounds(1, 1 << 40, 3).expect("valid bounds");
        Rtt { histogram, sum_ps: 0, squares: 0.0, bytes: 0 }
    }

    #[inline]
    fn record(&mut self, took: Time, bytes: u32) {
        self.histogram.saturating_record(((took.0 + 500) / 1000).max(1));
        self.sum_ps += u128::from(took.0);
        self.squares += took.as_ns() * took.as_ns();
        self.bytes += u64::from(bytes);
    }

    /// Adds the packets of `other`.
    pub fn merge(&mut self, other: &Rtt) {
        self.histogram.add(&other.histogram).expect("the same bounds");
        self.sum_ps += other.sum_ps;
        self.squares += other.squares;
        self.bytes += other.bytes;
    }

    /// Adds the packets of `bytes` bytes together whose round trips, in ps, are in `trips`.
    pub fn merge_trips(&mut self, trips: &Histogram<u64>, bytes: u64) {
        for x in trips.iter_recorded() {
            let (took, n) = (Time(trips.median_equivalent(x.value_iterated_to())), x.count_at_value());
            self.histogram.saturating_record_n(((took.0 + 500) / 1000).max(1), n);
            self.sum_ps += u128::from(took.0) * u128::from(n);
            self.squares += took.as_ns() * took.as_ns() * n.to_f64();
        }
        self.bytes += bytes;
    }

    /// Number of packets that returned.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }
    /// Mean round-trip time in ns.
    pub fn mean_ns(&self) -> f64 {
        self.sum_ps.to_f64() / 1e3 / self.count().to_f64()
    }
    /// Standard deviation of the round-trip times of the window's packets, in ns.
    pub fn sd_ns(&self) -> f64 {
        let mean = self.mean_ns();
        (self.squares / self.count().to_f64() - mean * mean).max(0.0).sqrt()
    }
}

/// Identity of a request that the generator sent in a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SentRequest {
    /// Number of packets sent before this one.
    pub number: u64,
    /// Flow of the packet, where there are flows.
    pub flow: u32,
    /// Index of the packet in the replayed capture; None without a capture.
    pub captured: Option<u32>,
}

/// A packet that has returned to the generator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Returned {
    /// Identity of the request.
    pub asked: SentRequest,
    /// Time at which the packet's first bit left the generator.
    pub sent: Time,
    /// Time at which the last bit of the reply returned.
    pub back: Time,
    /// Bytes of the request's frame.
    pub request: u32,
    /// Bytes of the reply's frame.
    pub reply: u32,
}

/// Recorder of every packet that returns, for writing a capture.
#[derive(Clone, Default)]
struct Recorder {
    asked: HashMap<(Time, u32), VecDeque<SentRequest>>,
    returned: Vec<Returned>,
}

/// The load generator; see the module's documentation.
#[derive(Clone)]
pub struct Generator {
    /// Tenant that serves the packets.
    tenant: TenantId,
    sizes: Option<Sizes>,
    flows: Flows,
    wire: Option<GeneratorWire>,
    closed: Option<ClosedLoop>,
    recorder: Option<Box<Recorder>>,
    /// Identity of the packet that was drawn last.
    pub drawn: SentRequest,
    /// Number of packets sent since the beginning.
    pub sent: u64,
    /// Bytes of the frames sent since the start of the measured window.
    pub offered_bytes: u64,
    /// Round-trip times of the packets that returned in the measured window.
    pub rtt: Rtt,
}

impl Generator {
    /// A generator of packets for `tenant` that draws packet sizes from `sizes`, or leaves sizes to the applications without them.
    pub fn new(tenant: TenantId, sizes: Option<Sizes>, flows: Flows) -> Generator {
        Generator {
            tenant,
            sizes,
            flows,
            wire: None,
            closed: None,
            recorder: None,
            drawn: SentRequest::default(),
            sent: 0,
            offered_bytes: 0,
            rtt: Rtt::new(),
        }
    }

    /// Puts a wire between generator and NIC. A NIC with a `transmitter` of its own sends replies at its own rate.
    /// Frames whose size excludes the check sequence have `checksum` more bytes on the wire.
    pub fn over(mut self, rate: Bandwidth, flight: Time, transmitter: bool, checksum: u32) -> Generator {
        let link = Link::ethernet(rate, flight);
        let back = (!transmitter).then(|| link.clone());
        self.wire =
            Some(GeneratorWire { there: link, back, beside: BETWEEN_FRAMES + checksum, on_it: VecDeque::new() });
        self
    }

    /// Starts to record the packets that return.
    pub fn record(&mut self) {
        self.recorder = Some(Box::default());
    }

    /// Whether a wire lies between generator and NIC.
    pub fn has_wire(&self) -> bool {
        self.wire.is_some()
    }
    /// Number of packets on the wire to the NIC.
    pub fn on_wire(&self) -> u64 {
        self.wire.as_ref().map_or(0, |w| w.on_it.len().to_u64())
    }

    /// Time until which the wire to the host is busy.
    pub fn wire_is_busy_until(&self) -> Time {
        self.wire.as_ref().map_or(Time::ZERO, |w| w.there.free())
    }

    /// Times between the restart and `now` in which the generator's packets occupied the wire to the host, and replies the
    /// wire back where the NIC has no transmitter of its own.
    pub fn wire_busy(&self, now: Time) -> Option<(Time, Option<Time>)> {
        let w = self.wire.as_ref()?;
        Some((w.there.busy_until(now), w.back.as_ref().map(|b| b.busy_until(now))))
    }

    /// Lets the wire to the host take no packet before `busy`: another generator uses the same wire until then.
    pub fn wait_for_wire(&mut self, busy: Time) {
        if let Some(w) = &mut self.wire {
            w.there.keep_until(busy);
        }
    }

    /// Size of the next packet, if the generator sets it.
    #[inline]
    pub fn size(&mut self) -> Option<u32> {
        self.sizes.as_mut().map(Sizes::draw)
    }

    /// Handles `TrafficEvent::Offer` in a closed loop: returns the client whose request is sent.
    #[inline]
    pub fn due(&mut self) -> Option<u32> {
        self.closed.as_mut()?.due.pop_front()
    }

    /// Flow of the next packet and its RSS hash: the flow of `client`, or a random one. None when each packet is a flow
    /// of its own.
    #[inline]
    pub fn flow(&mut self, client: Option<u32>, rng: &mut RandomStream) -> Option<(u32, u32)> {
        let Flows::Of(hashes) = &self.flows else { return None };
        let flow = match client {
            Some(client) => client.to_usize() % hashes.len(),
            None if hashes.len() > 1 => rng.below(hashes.len().to_u64()).to_usize(),
            None => 0,
        };
        self.drawn.flow = flow.to_u32();
        Some((flow.to_u32(), hashes[flow]))
    }

    /// Puts `p` on the wire; returns the time at which it comes off the wire.
    ///
    /// # Panics
    /// Without a wire.
    pub fn send(&mut self, p: Packet, cal: &mut impl TrafficPosts, now: Time) -> Time {
        let w = self.wire.as_mut().expect("a wire");
        let arrives = w.there.send(u64::from(p.wire_bytes + w.beside), now) + w.there.flight;
        w.on_it.push_back(p);
        let p = Packet { arrived: arrives, ..p };
        self.ask(&p, cal);
        arrives
    }

    /// Puts the last bit of `p` on a wire whose far end returns the packet; returns the time at which the packet has
    /// returned.
    ///
    /// # Panics
    /// Without a wire.
    pub fn turn_round(&mut self, p: Packet, now: Time) -> Time {
        let w = self.wire.as_mut().expect("a wire");
        w.on_it.push_back(p);
        self.sent += 1;
        now + w.there.flight * 2
    }

    /// Takes the packet that arrives from the wire now, if there is one.
    pub fn take_off(&mut self) -> Option<Packet> {
        self.wire.as_mut()?.on_it.pop_front()
    }

    /// Records the request in packet `p`, which arrives at `p.arrived`.
    #[inline]
    pub fn ask(&mut self, p: &Packet, cal: &mut impl TrafficPosts) {
        self.sent += 1;
        if self.closed.is_none() && self.recorder.is_none() {
            return;
        }
        let sent = self.left(p);
        if let Some(c) = &mut self.closed {
            c.wait((sent, p.client), cal);
        }
        if let Some(r) = &mut self.recorder {
            r.asked.entry((p.arrived, p.flow)).or_default().push_back(self.drawn);
        }
    }

    /// Records that the request in packet `p` is due at `p.arrived` at software that sends it.
    pub fn plan(&mut self, p: &Packet, cal: &mut impl TrafficPosts) {
        self.sent += 1;
        if let Some(c) = &mut self.closed {
            c.wait((p.arrived, p.client), cal);
        }
    }

    /// Handles the reply to a request of `client` that was due at `due`, which software has processed.
    pub fn answered(&mut self, due: Time, client: u32, cal: &mut impl TrafficPosts, now: Time) {
        if let Some(c) = &mut self.closed {
            if c.waiting.remove(&(due, client)) {
                c.offer(client, cal, now);
            }
        }
    }

    /// Time at which the first bit of `p` left the generator.
    #[inline]
    fn left(&self, p: &Packet) -> Time {
        match &self.wire {
            Some(w) => p.arrived.saturating_sub(w.there.flight + w.time(p.wire_bytes)),
            None => p.arrived,
        }
    }

    /// Records the reply to `p`, whose last bit the NIC has sent.
    #[inline]
    pub fn replied(&mut self, p: &Packet, cal: &mut impl TrafficPosts, now: Time) {
        let reply = reply_bytes(p);
        let sent = self.left(p);
        let back = self.back_at(reply, now);
        self.rtt.record(back - sent, reply);
        if let Some(c) = &mut self.closed {
            c.coming.push_back((sent, p.client));
            cal.post(back, TrafficEvent::Back(self.tenant));
        }
        if let Some(r) = &mut self.recorder {
            let asked = r.asked.get_mut(&(p.arrived, p.flow)).and_then(VecDeque::pop_front);
            if let Some(asked) = asked {
                r.returned.push(Returned { asked, sent, back, request: p.wire_bytes, reply });
            }
        }
    }

    /// Time at which a frame of `bytes` bytes has returned, if the NIC sends its last bit now.
    pub fn back_at(&mut self, bytes: u32, now: Time) -> Time {
        match &mut self.wire {
            Some(GeneratorWire { there, back, beside, .. }) => {
                let leaves = back.as_mut().map_or(now, |b| b.send(u64::from(bytes + *beside), now));
                leaves + there.flight
            }
            None => now,
        }
    }

    /// Records a reply of `bytes` bytes that returned to the sending software after the time `took`.
    pub fn came_back(&mut self, took: Time, bytes: u32) {
        self.rtt.record(took, bytes);
    }

    /// Starts a closed loop of `most` outstanding requests, one per client; earlier requests are forgotten.
    pub fn close(&mut self, most: u32, timeout: Time, cal: &mut impl TrafficPosts, now: Time) {
        let empty = ClosedLoop {
            tenant: self.tenant,
            timeout,
            waiting: BTreeSet::new(),
            coming: VecDeque::new(),
            due: VecDeque::new(),
            timer: false,
        };
        let closed = self.closed.insert(empty);
        (0..most).for_each(|client| closed.offer(client, cal, now));
    }

    /// Whether the generator is a closed loop, which sends a request when a reply returns.
    pub fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// Handles `TrafficEvent::Back`: a reply has returned to its client, which sends the next request.
    pub fn on_back(&mut self, cal: &mut impl TrafficPosts, now: Time) {
        let Some(c) = &mut self.closed else { return };
        let Some(reply) = c.coming.pop_front() else { return };
        // A request that has been given up has been replaced already.
        if c.waiting.remove(&reply) {
            c.offer(reply.1, cal, now);
        }
    }

    /// Handles `TrafficEvent::Overdue`: gives up requests that have waited for `timeout`, and sends new requests
    /// instead.
    pub fn on_overdue(&mut self, cal: &mut impl TrafficPosts, now: Time) {
        let Some(c) = &mut self.closed else { return };
        c.timer = false;
        while let Some(&(sent, client)) = c.waiting.first() {
            let due = sent + c.timeout;
            if due > now {
                c.timer = true;
                cal.post(due, TrafficEvent::Overdue(self.tenant));
                return;
            }
            c.waiting.pop_first();
            c.offer(client, cal, now);
        }
    }

    /// Restarts the measurements for a new window.
    pub fn restart(&mut self, now: Time) {
        if let Some(w) = &mut self.wire {
            w.there.restart(now);
            w.back.iter_mut().for_each(|b| b.restart(now));
        }
        self.rtt = Rtt::new();
        self.offered_bytes = 0;
        if let Some(r) = &mut self.recorder {
            r.returned.clear();
        }
    }

    /// Packets that returned in the window, in the order of their return.
    pub fn returned(&self) -> &[Returned] {
        self.recorder.as_ref().map_or(&[], |r| &r.returned)
    }
}

/// Bytes of a reply's frame: as many as the request has when the host sends back the request or a copy of the same
/// length, otherwise the bytes of the reply's lines. A second segment adds its own bytes.
pub fn reply_bytes(p: &Packet) -> u32 {
    let first = if p.zero_copy || p.tx_lines == p.lines { p.wire_bytes } else { u32::from(p.tx_lines) * LINE_U32 };
    first + p.object_bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Calendar;
    use std::collections::BTreeMap;

    type Events = Calendar<TrafficEvent>;
    const TENANT: TenantId = TenantId(0);

    fn stream() -> RandomStream {
        RandomStream::new(1, "sizes", 0)
    }

    #[test]
    fn sizes_come_by_their_weights() {
        let mut s = Sizes::new([(64, 7), (594, 4), (1518, 1)], stream());
        let n = 120_000;
        let mut seen = BTreeMap::new();
        (0..n).for_each(|_| *seen.entry(s.draw()).or_insert(0) += 1);
        for (bytes, weight) in [(64, 7.0), (594, 4.0), (1518, 1.0)] {
            let expected = f64::from(n) * weight / 12.0;
            // 5 standard deviations of a binomial count, at most.
            assert!((f64::from(seen[&bytes]) - expected).abs() < 5.0 * expected.sqrt(), "{seen:?}");
        }
        assert_eq!(seen.len(), 3);
    }

    #[test]
    fn a_flow_has_one_hash_and_hashes_of_many_flows_spread_evenly() {
        let mut rng = stream();
        let mut one = Generator::new(TENANT, None, Flows::udp(1));
        let flows: Vec<_> = (0..100).map(|_| one.flow(None, &mut rng)).collect();
        let (a, b) = addresses(0);
        assert_eq!(flows, vec![Some((0, rss_hash(a, b))); 100]);
        assert_eq!(Generator::new(TENANT, None, Flows::Any).flow(None, &mut rng), None);
        let mut many = Generator::new(TENANT, None, Flows::udp(100_000));
        let mut seen = [0; 7];
        (0..70_000).for_each(|_| seen[many.flow(None, &mut rng).expect("a flow").1 as usize % 7] += 1);
        assert!(seen.iter().all(|n| (9_500..10_500).contains(n)), "{seen:?}");
    }

    /// There are 5 clients and 3 flows; earlier random draws do not change the assignment.
    #[test]
    fn clients_have_flows_in_turn_and_keep_them() {
        let mut rng = stream();
        let mut g = Generator::new(TENANT, None, Flows::udp(3));
        for _ in 0..2 {
            let flows = (0..5).map(|client| g.flow(Some(client), &mut rng).expect("a flow"));
            assert_eq!(flows.map(|f| f.0).collect::<Vec<_>>(), [0, 1, 2, 0, 1]);
            let _ = g.flow(None, &mut rng);
        }
    }

    #[test]
    fn no_two_flows_have_the_same_addresses() {
        let all: std::collections::HashSet<_> = (0..200_000).map(addresses).collect();
        assert_eq!(all.len(), 200_000);
        assert_eq!(addresses(64_000).0, SocketAddr::from(([10, 1, 0, 2], 1024)));
    }

    /// A generator with a wire of 10 Gb/s, 0.8 ns a byte: a frame of 64 bytes takes 84 byte times, 67.2 ns, one of 1518
    /// bytes 1230.4 ns.
    fn wired() -> Generator {
        Generator::new(TENANT, None, Flows::Any).over(Bandwidth(10_000_000_000), Time::ns(500), false, 0)
    }

    fn packet(bytes: u32) -> Packet {
        Packet { wire_bytes: bytes, lines: bytes.div_ceil(64) as u16, ..Packet::default() }
    }

    #[test]
    fn frames_follow_each_other_on_the_wire_and_a_round_trip_is_both_ways_and_the_host() {
        let mut cal = Events::default();
        let mut g = wired();
        let first = g.send(packet(64), &mut cal, Time::us(1));
        let second = g.send(packet(1518), &mut cal, Time::us(1));
        assert_eq!((first, second), (Time(1_567_200), Time(2_797_600)));
        // The host answers each packet 100 ns after its arrival.
        for at in [first, second] {
            let p = Packet { arrived: at, zero_copy: true, ..g.take_off().expect("sent") };
            g.replied(&p, &mut cal, at + Time::ns(100));
        }
        // 67.2 + 500 + 100 + 67.2 + 500, and 1230.4 instead of 67.2; the wait for the wire does not count.
        let (short, long) = (1234.4, 3560.8);
        assert_eq!(g.rtt.count(), 2);
        assert!((g.rtt.mean_ns() - (short + long) / 2.0).abs() < 1e-6, "{}", g.rtt.mean_ns());
        assert!((g.rtt.sd_ns() - (long - short) / 2.0).abs() < 1e-6, "{}", g.rtt.sd_ns());
        assert_eq!(g.rtt.bytes, 64 + 1518);
        assert_eq!(g.take_off().map(|p| p.wire_bytes), None);
    }

    #[test]
    fn replies_share_the_wire_back() {
        let mut cal = Events::default();
        let mut g = wired();
        let p = Packet { arrived: Time::us(2), zero_copy: true, ..packet(64) };
        g.replied(&p, &mut cal, Time::us(3));
        g.replied(&p, &mut cal, Time::us(3));
        // 1000 + 2 x 567.2 ns, and 67.2 ns more for the second packet.
        assert!((g.rtt.mean_ns() - (2134.4 + 2201.6) / 2.0).abs() < 1e-6);
    }

    #[test]
    fn round_trips_of_other_clocks_count_as_those_of_the_generator() {
        let mut trips = Histogram::new_with_bounds(1, 1 << 44, 3).expect("valid bounds");
        trips.record_n(1_000_000, 3).expect("within the bounds"); // three round trips of 1 us
        let mut rtt = Rtt::new();
        rtt.record(Time::us(5), 64);
        rtt.merge_trips(&trips, 300);
        // (5 + 3 x 1) / 4 = 2 us; squares: (25 + 3) / 4 - 2 x 2 = 3 us^2. Bins are 0.1 % wide.
        assert_eq!((rtt.count(), rtt.bytes), (4, 364));
        assert!((rtt.mean_ns() - 2000.0).abs() < 2.0 && (rtt.sd_ns() - 3e6f64.sqrt()).abs() < 2.0, "{}", rtt.sd_ns());
    }

    #[test]
    fn a_reply_of_another_length_is_known_in_lines() {
        assert_eq!(reply_bytes(&Packet { tx_lines: 3, ..packet(64) }), 192);
        assert_eq!(reply_bytes(&Packet { tx_lines: 2, ..packet(70) }), 70);
        assert_eq!(reply_bytes(&Packet { tx_lines: 9, zero_copy: true, ..packet(70) }), 70);
    }

    /// Removes and returns all events of `cal`, and restarts `cal`, because events of an earlier time may follow.
    fn pending(cal: &mut Events) -> Vec<(Time, TrafficEvent)> {
        let mut taken = std::mem::take(cal);
        std::iter::from_fn(|| taken.pop()).collect()
    }

    /// After a request that is given up, and after a request that is answered, the same client sends its next request.
    #[test]
    fn a_closed_loop_sends_for_each_reply_and_for_each_request_given_up() {
        let mut cal = Events::default();
        let mut g = Generator::new(TENANT, None, Flows::Any);
        g.close(2, Time::us(10), &mut cal, Time::ZERO);
        assert_eq!(pending(&mut cal), [(Time::ZERO, TrafficEvent::Offer(TENANT)); 2]);
        assert_eq!([g.due(), g.due(), g.due()], [Some(0), Some(1), None]);
        // Both are sent at the same time.
        let [a, b] = [0, 1].map(|client| Packet { arrived: Time::us(1), client, ..packet(64) });
        g.ask(&a, &mut cal);
        g.ask(&b, &mut cal);
        // One timer for both.
        assert_eq!(pending(&mut cal), [(Time::us(11), TrafficEvent::Overdue(TENANT))]);
        g.replied(&b, &mut cal, Time::us(5));
        assert_eq!(pending(&mut cal), [(Time::us(5), TrafficEvent::Back(TENANT))]);
        g.on_back(&mut cal, Time::us(5));
        assert_eq!(pending(&mut cal), [(Time::us(5), TrafficEvent::Offer(TENANT))]);
        assert_eq!([g.due(), g.due()], [Some(1), None]);
        // The first request is lost.
        g.on_overdue(&mut cal, Time::us(11));
        assert_eq!(pending(&mut cal), [(Time::us(11), TrafficEvent::Offer(TENANT))]);
        assert_eq!([g.due(), g.due()], [Some(0), None]);
        // The reply to the first request arrives after all; another request has replaced the first one.
        g.replied(&a, &mut cal, Time::us(12));
        assert_eq!(pending(&mut cal), [(Time::us(12), TrafficEvent::Back(TENANT))]);
        g.on_back(&mut cal, Time::us(12));
        assert_eq!((pending(&mut cal), g.due()), (vec![], None));
    }
}
