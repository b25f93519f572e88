//! Lives of packets: the milestones that a packet passes from its arrival to its end, and the memory requests that serve
//! it. Stages between milestones tile a life, and parts with their domains tile each stage, in integer picoseconds.
//!
//! ```text
//!   arrived -- began -- placed -- visible -- taken -- served -- answered -- posted -- rang -- reading -- read -- ended
//!       NIC     memory request      ring       core: misses by level          doorbell    memory request     wire
//! ```
//!
//! Components hold an `Option` of [`Lives`] and mark milestones there; a run that asks for no lives holds `None`.

use crate::kernel::{Int, LineAddr, QueueId, ThreadId, Time};
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// An instant in the life of a packet; milestones of one instant are in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Milestone {
    /// The packet arrived, or its sender wrote its time stamp.
    Arrived,
    /// The NIC sent the packet's first line to memory.
    Began,
    /// The last line of the packet was placed.
    Placed,
    /// Software could see the packet.
    Visible,
    /// Software took the packet from its ring.
    Taken,
    /// The NIC's core of CC-NIC handed the packet to the host.
    Handed,
    /// A core of the host found the packet in CC-NIC's ring.
    FoundByHost,
    /// The protocol had processed the segment, and the application could see it.
    Delivered,
    /// The application found the protocol's entry about the segment.
    Noticed,
    /// The core began to serve the packet.
    Served,
    /// The core dispatched the last instruction of the packet's own service.
    Answered,
    /// The application's entry about the reply was visible to the protocol's core.
    Announced,
    /// The protocol's core found the application's entry about the reply.
    Resumed,
    /// The NIC's core of CC-NIC found the packet or its reply.
    FoundByNic,
    /// The doorbell of the reply left, as seen by the core or by the I/O controller.
    Posted,
    /// The NIC acted on the doorbell.
    Rang,
    /// The NIC had the reply's descriptor.
    Fetched,
    /// The NIC began to read the reply.
    Reading,
    /// The last line of the reply reached the NIC.
    Read,
    /// The packet ended: its reply was sent, or software had consumed the packet.
    Ended,
}

/// Declares the parts: key, domain and meaning.
macro_rules! parts {
    ($($name:ident = $key:literal in $domain:literal: $meaning:literal,)*) => {
        /// A part of a packet's life: a stage between two milestones, or a share of a stage.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
        pub enum LifePart {
            $(#[doc = $meaning] $name,)*
        }
        impl LifePart {
            /// All parts.
            pub const ALL: &'static [LifePart] = &[$(LifePart::$name,)*];
            /// Name of the part.
            pub const fn key(self) -> &'static str {
                match self { $(LifePart::$name => $key,)* }
            }
            /// Domain in which the packet spends the part.
            pub const fn domain(self) -> &'static str {
                match self { $(LifePart::$name => $domain,)* }
            }
            /// Meaning of the part, as a sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $(LifePart::$name => $meaning,)* }
            }
        }
    };
}

parts! {
    NicReceive = "nic_receive" in "NIC": "The packet waits in the NIC for its receive engine, a descriptor or the link.",
    Placement = "placement" in "memory": "The lines of the packet go to memory; the request that ends last sets the time.",
    Announcement = "announcement" in "NIC": "The NIC announces the packet: by a message, or by writing its descriptor back.",
    RingWait = "ring_wait" in "ring": "The packet waits in the receive ring until software takes it.",
    HandOver = "hand_over" in "ring": "A core of CC-NIC's NIC holds the packet until the host's ring and buffers have room.",
    HostDiscovery = "host_discovery" in "ring": "The packet is written and published, and a core of the host finds it.",
    NicDiscovery = "nic_discovery" in "ring": "The packet is written and published, and a core of CC-NIC's NIC finds it.",
    CoreQueue = "core_queue" in "core": "The core works on the protocol, or on packets that are served first.",
    Protocol = "protocol" in "core": "A core runs the protocol for the segment, and for segments that go first.",
    Request = "request" in "core": "A core of the client writes the request, and other requests of its burst.",
    Flight = "flight" in "wire": "The frame is on the link between the hosts.",
    SocketWait = "socket_wait" in "socket": "The segment waits in the socket until the application takes its last byte.",
    EntryWait = "entry_wait" in "ring": "An entry between protocol and application waits until the other side takes it.",
    Service = "service" in "core": "The core serves the packet.",
    BurstEnd = "burst_end" in "core": "The core serves later packets of the burst and writes descriptors.",
    Doorbell = "doorbell" in "PCIe": "The doorbell of the reply travels to the NIC.",
    DescriptorFetch = "descriptor_fetch" in "PCIe": "The NIC fetches the descriptor of the reply.",
    TransmitQueue = "transmit_queue" in "NIC": "The reply waits for the NIC's transmit engine.",
    PayloadRead = "payload_read" in "memory": "The NIC reads the reply; the request that ends last sets the time.",
    Transmission = "transmission" in "wire": "The NIC sends the reply.",
    Link = "link" in "PCIe": "The lines, or the request for them, cross the link and wait for its credits and for entries of the I/O controller.",
    Lines = "lines" in "NIC": "The NIC on the chip moves the lines one after the other.",
    ToCha = "to_cha" in "mesh": "The request travels to the home agent.",
    ChaAdmission = "cha_admission" in "home agent": "The request waits until the home agent admits it.",
    ToHome = "to_home" in "socket link": "The request travels to the home agent of another node.",
    Snoop = "snoop" in "socket link": "Caches of another node supply the data.",
    McQueueWait = "mc_queue_wait" in "memory controller": "The request waits in front of the full queue of a memory channel.",
    McAndDram = "mc_and_dram" in "DRAM": "The request is in the queue of its channel, or DRAM delivers the data.",
    LinkBack = "link_back" in "socket link": "The answer returns from another node.",
    Return = "return" in "home agent": "The home agent orders the request, looks the line up and answers.",
    Core = "core" in "core": "The core executes, and its private caches answer.",
    Llc = "llc" in "LLC": "An access of the core waits for the LLC or for another core.",
}

impl LifePart {
    /// Whether a core is at work on the stage, so that misses of the core divide it.
    pub const fn is_of_core(self) -> bool {
        matches!(
            self,
            LifePart::Request | LifePart::CoreQueue | LifePart::Protocol | LifePart::Service | LifePart::BurstEnd
        )
    }
}

impl Serialize for LifePart {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.key())
    }
}

/// Parts of a request's time, in the order of `memory::paths::SEGMENTS`.
pub const HOPS: [LifePart; 8] = [
    LifePart::ToCha,
    LifePart::ChaAdmission,
    LifePart::ToHome,
    LifePart::Snoop,
    LifePart::McQueueWait,
    LifePart::McAndDram,
    LifePart::LinkBack,
    LifePart::Return,
];

/// Agent and direction of a request that serves a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestKind {
    /// A device writes lines of the packet.
    Write,
    /// A device reads lines of the reply.
    Read,
    /// A core reads a line, or requests its ownership.
    Core,
}

/// A memory request that serves a packet.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct ServingRequest {
    /// Agent and direction.
    pub kind: RequestKind,
    /// Thread of the core that asks; None for devices.
    #[serde(serialize_with = "index")]
    pub thread: Option<ThreadId>,
    /// First line.
    #[serde(serialize_with = "line")]
    pub line: LineAddr,
    /// Number of lines.
    pub lines: u16,
    /// Start of the request and the ends of its hops, in ps; a hop that the request skips takes no time.
    #[serde(serialize_with = "picoseconds")]
    pub borders: [Time; HOPS.len() + 1],
}

impl ServingRequest {
    /// Time at which the agent sent the request.
    pub fn start(&self) -> Time {
        self.borders[0]
    }
    /// Time at which the request ended.
    pub fn end(&self) -> Time {
        self.borders[HOPS.len()]
    }
}

fn index<S: Serializer>(thread: &Option<ThreadId>, to: S) -> Result<S::Ok, S::Error> {
    thread.map(ThreadId::index).serialize(to)
}
fn line<S: Serializer>(line: &LineAddr, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(line.0)
}
fn picoseconds<S: Serializer>(times: &[Time; HOPS.len() + 1], to: S) -> Result<S::Ok, S::Error> {
    times.map(|t| t.0).serialize(to)
}

/// A milestone with its time, and the thread that was at work.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mark {
    /// The milestone.
    pub what: Milestone,
    /// Time of the milestone.
    pub at: Time,
    /// Thread whose event was being handled, if any.
    pub thread: Option<ThreadId>,
}

/// Life of one packet.
#[derive(Clone, Debug)]
pub struct Life {
    /// Number of the packet among the arrivals at its NIC since the recording began, from 0.
    pub arrival: u64,
    /// Number of the request that the packet carries or answers, where it came from software of another host.
    pub request: Option<u64>,
    /// Queue at which the packet arrived.
    pub queue: QueueId,
    /// Bytes of the frame.
    pub bytes: u32,
    /// Milestones; those of ops that a core dispatched ahead of the calendar may come late.
    pub marks: Vec<Mark>,
    /// Requests that served the packet.
    pub requests: Vec<ServingRequest>,
}

impl Life {
    /// Time of a milestone that the packet has passed.
    pub fn at(&self, what: Milestone) -> Option<Time> {
        Some(self.marks.iter().find(|m| m.what == what)?.at)
    }

    /// Time of the packet's arrival.
    pub fn arrived(&self) -> Time {
        self.marks.first().map_or(Time::ZERO, |m| m.at)
    }

    /// Time from the packet's arrival to its end.
    pub fn latency(&self) -> Time {
        self.marks.iter().map(|m| m.at).max().unwrap_or_default() - self.arrived()
    }

    /// Thread that served the packet, if a thread did.
    pub fn thread(&self) -> Option<ThreadId> {
        let of = |what| self.marks.iter().find(|m| m.what == what)?.thread;
        of(Milestone::Served).or_else(|| of(Milestone::FoundByHost)).or_else(|| of(Milestone::Taken))
    }

    /// The request of `kind` that ended last, no later than `until`.
    fn last(&self, kind: RequestKind, until: Time) -> Option<&ServingRequest> {
        self.requests.iter().filter(|r| r.kind == kind && r.end() <= until).max_by_key(|r| r.end())
    }

    /// Milestones in the order of time, with those that follow from requests.
    fn ordered(&self) -> Vec<Mark> {
        let mut marks = self.marks.clone();
        let until = self.at(Milestone::Visible).or_else(|| self.at(Milestone::Ended));
        if let Some(r) = until.and_then(|t| self.last(RequestKind::Write, t)) {
            marks.push(Mark { what: Milestone::Placed, at: r.end(), thread: None });
        }
        marks.sort_by_key(|m| (m.at, m.what));
        marks
    }

    /// Stages of the life, in order and without gaps, each with its parts, in order and without gaps.
    pub fn stages(&self, on_chip: bool) -> Vec<LifeStage> {
        let marks = self.ordered();
        let borders = marks.iter().zip(marks.iter().skip(1)).filter(|(a, b)| a.at < b.at);
        borders.map(|(a, b)| self.stage(a, b, on_chip)).collect()
    }

    fn stage(&self, from: &Mark, to: &Mark, on_chip: bool) -> LifeStage {
        use Milestone as M;
        let part = match (from.what, to.what) {
            (_, M::Began) => LifePart::NicReceive,
            (_, M::Placed) => LifePart::Placement,
            (_, M::Visible) => LifePart::Announcement,
            (_, M::Taken) => LifePart::RingWait,
            (_, M::Handed) => LifePart::HandOver,
            (_, M::FoundByHost) => LifePart::HostDiscovery,
            (_, M::FoundByNic) => LifePart::NicDiscovery,
            (M::Handed, M::Served) => LifePart::HostDiscovery,
            (_, M::Delivered) | (M::Resumed, M::Posted) => LifePart::Protocol,
            (M::Delivered | M::Noticed, M::Served) => LifePart::SocketWait,
            (_, M::Noticed | M::Resumed) => LifePart::EntryWait,
            (_, M::Announced) => LifePart::Service,
            (M::Arrived, M::Posted) => LifePart::Request,
            (_, M::Served) => LifePart::CoreQueue,
            (M::Served, M::Answered | M::Posted | M::Ended) => LifePart::Service,
            (_, M::Answered | M::Posted) => LifePart::BurstEnd,
            (_, M::Rang) => LifePart::Doorbell,
            (_, M::Fetched) => LifePart::DescriptorFetch,
            (_, M::Reading) => LifePart::TransmitQueue,
            (_, M::Read) => LifePart::PayloadRead,
            (M::Answered, M::Ended) => LifePart::BurstEnd,
            (M::Taken | M::FoundByHost | M::FoundByNic, M::Ended) => LifePart::Service,
            (_, M::Ended | M::Arrived) => LifePart::Transmission,
        };
        let (from, to, thread) = (from.at, to.at, from.thread);
        let rest = if on_chip { LifePart::Lines } else { LifePart::Link };
        let parts = match part {
            LifePart::Placement => self.by_request(RequestKind::Write, rest, from, to),
            LifePart::PayloadRead => self.by_request(RequestKind::Read, rest, from, to),
            _ if part.is_of_core() => self.by_misses(thread, from, to),
            _ => vec![Share { part, from, to }],
        };
        let domain = match part {
            LifePart::Doorbell | LifePart::DescriptorFetch | LifePart::Transmission if on_chip => "NIC",
            _ => part.domain(),
        };
        LifeStage { part, domain, thread, from, to, parts }
    }

    /// Divides a stage by the hops of the request of `kind` that ended last within it, and `rest`.
    fn by_request(&self, kind: RequestKind, rest: LifePart, from: Time, to: Time) -> Vec<Share> {
        let mut shares = Vec::new();
        let mut at = from;
        let mut add = |part, until: Time| {
            let until = until.clamp(at, to);
            if until > at {
                shares.push(Share { part, from: at, to: until });
            }
            at = until;
        };
        if let Some(r) = self.last(kind, to) {
            add(rest, r.start());
            HOPS.into_iter().zip(&r.borders[1..]).for_each(|(hop, end)| add(hop, *end));
        }
        add(rest, to);
        shares
    }

    /// Divides a stage of a core by the hop of the core's outstanding requests that is nearest to DRAM.
    fn by_misses(&self, thread: Option<ThreadId>, from: Time, to: Time) -> Vec<Share> {
        let own = self.requests.iter().filter(|r| r.kind == RequestKind::Core && r.thread == thread);
        // Number of requests in each hop, by depth: changes in the order of time.
        let mut changes: Vec<(Time, usize, i32)> = vec![(to, 0, 0)];
        for r in own {
            for (hop, ends) in HOPS.into_iter().zip(r.borders.windows(2)) {
                let (begin, end) = (ends[0].max(from), ends[1].min(to));
                if begin < end {
                    changes.extend([(begin, depth(hop), 1), (end, depth(hop), -1)]);
                }
            }
        }
        changes.sort_unstable();
        let (mut held, mut at) = ([0; DEPTHS.len()], from);
        let mut shares: Vec<Share> = Vec::new();
        for (time, depth, change) in changes {
            if time > at {
                let part = DEPTHS.into_iter().zip(held).rfind(|(_, n)| *n > 0).map_or(LifePart::Core, |(part, _)| part);
                match shares.last_mut().filter(|s| s.part == part) {
                    Some(same) => same.to = time,
                    None => shares.push(Share { part, from: at, to: time }),
                }
                at = time;
            }
            held[depth] += change;
        }
        shares
    }
}

/// Parts as which a core's wait for a request counts, from the hop nearest to the core to the one nearest to DRAM.
const DEPTHS: [LifePart; 7] = [
    LifePart::Llc,
    LifePart::ChaAdmission,
    LifePart::LinkBack,
    LifePart::ToHome,
    LifePart::Snoop,
    LifePart::McQueueWait,
    LifePart::McAndDram,
];

/// Position of a hop in `DEPTHS`.
fn depth(hop: LifePart) -> usize {
    DEPTHS.iter().position(|p| *p == hop).unwrap_or(0)
}

/// Time between two milestones.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LifeStage {
    /// The stage.
    pub part: LifePart,
    /// Domain in which the packet is.
    pub domain: &'static str,
    /// Thread that was at work at the stage's start, if any.
    #[serde(serialize_with = "index")]
    pub thread: Option<ThreadId>,
    /// Start of the stage.
    #[serde(serialize_with = "time")]
    pub from: Time,
    /// End of the stage.
    #[serde(serialize_with = "time")]
    pub to: Time,
    /// Shares of the stage.
    pub parts: Vec<Share>,
}

impl LifeStage {
    /// A stage that is its only part.
    pub fn whole(part: LifePart, from: Time, to: Time) -> LifeStage {
        LifeStage { part, domain: part.domain(), thread: None, from, to, parts: vec![Share { part, from, to }] }
    }
}

/// Share of a stage.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Share {
    /// The part.
    pub part: LifePart,
    /// Start of the share.
    #[serde(serialize_with = "time")]
    pub from: Time,
    /// End of the share.
    #[serde(serialize_with = "time")]
    pub to: Time,
}

fn time<S: Serializer>(t: &Time, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(t.0)
}

/// Transmit descriptors of a queue on their way to the NIC, by the number of the packet that each belongs to.
#[derive(Clone, Default, Debug)]
struct Descriptors {
    put: VecDeque<usize>,
    posted: VecDeque<usize>,
    rung: VecDeque<usize>,
}

/// Packets whose lives are recorded.
#[derive(Clone, Debug)]
pub enum Chosen {
    /// Arrival and end of every packet.
    Ends,
    /// The whole lives of the packets with these numbers of arrival.
    Whole(BTreeSet<u64>),
    /// The whole lives of the packets that carry or answer these requests.
    Requests(BTreeSet<u64>),
}

/// First number by which software knows a segment or a request; the numbers of packets are smaller.
const OF_SOFTWARE: usize = 1 << 48;

/// Number by which software knows segment `number` of connection `connection`, once its packet's record has ended.
pub fn key_of_segment(connection: usize, number: u32) -> usize {
    OF_SOFTWARE | connection << 32 | number.to_usize()
}

/// Number by which the life of request `number` is known until its frame has left the client.
pub fn key_of_request(number: u64) -> usize {
    OF_SOFTWARE | number.to_usize()
}

/// Lives of the packets of one NIC or interface, by the number that the component knows a packet by.
#[derive(Clone, Debug)]
pub struct Lives {
    chosen: Chosen,
    arrivals: u64,
    living: BTreeMap<usize, Life>,
    descriptors: BTreeMap<QueueId, Descriptors>,
    /// Lives whose milestones are those of a packet that carries them, by the number of this packet.
    carried: BTreeMap<usize, Vec<usize>>,
    /// Request that the next arriving packet carries or answers.
    request: Option<u64>,
    /// Packets that have posted their reply, or ended, since the last look.
    turned: Vec<usize>,
    /// Lives that have ended in the window.
    pub ended: Vec<Life>,
    /// Time and thread of the event that is being handled.
    pub clock: (Time, Option<ThreadId>),
}

impl Lives {
    /// Lives of `chosen` packets.
    pub fn new(chosen: Chosen) -> Lives {
        Lives {
            chosen,
            arrivals: 0,
            living: BTreeMap::new(),
            descriptors: BTreeMap::new(),
            carried: BTreeMap::new(),
            request: None,
            turned: Vec::new(),
            ended: Vec::new(),
            clock: (Time::ZERO, None),
        }
    }

    /// Whether whole lives are recorded, rather than their ends.
    fn records_whole(&self) -> bool {
        !matches!(self.chosen, Chosen::Ends)
    }

    /// Whether any recorded packet lives.
    pub fn any(&self) -> bool {
        self.records_whole() && !self.living.is_empty()
    }

    /// Begins the life of the packet that the component knows as `key`.
    pub fn arrived(&mut self, key: usize, queue: QueueId, bytes: u32, at: Time) {
        let (arrival, request) = (self.arrivals, self.request.take());
        self.arrivals += 1;
        self.forget(key); // a packet that was lost leaves its number to another
        if match &self.chosen {
            Chosen::Ends => true,
            Chosen::Whole(some) => some.contains(&arrival),
            Chosen::Requests(some) => request.is_some_and(|r| some.contains(&r)),
        } {
            let marks = vec![Mark { what: Milestone::Arrived, at, thread: None }];
            self.living.insert(key, Life { arrival, request, queue, bytes, marks, requests: Vec::new() });
        }
    }

    /// The next packet that arrives carries or answers this request, if any.
    pub fn comes(&mut self, request: Option<u64>) {
        self.request = request;
    }

    /// Begins the life of request `number`, which software writes into the frame of packet `by` from now on.
    pub fn written(&mut self, number: u64, by: usize, queue: QueueId, bytes: u32, at: Time) {
        let (key, thread) = (key_of_request(number), self.clock.1);
        self.comes(Some(number));
        self.arrived(key, queue, bytes, at);
        if let Some(life) = self.living.get_mut(&key) {
            life.marks[0].thread = thread;
        }
        self.carried.remove(&by); // an earlier packet with this number
        self.carry(by, key);
    }

    /// Forgets the life of packet `key`, which is not to be recorded.
    pub fn forget(&mut self, key: usize) {
        self.living.remove(&key);
        self.carried.remove(&key);
    }

    /// The packet known as `from` passed the milestones `known`, and software knows it as `to` from now on. Where
    /// software has that number already, the packet is a duplicate, whose life is not recorded.
    pub fn goes_on(&mut self, from: usize, to: usize, known: &[(Milestone, Time)]) {
        self.know(from, known);
        if self.living.contains_key(&to) {
            self.forget(from);
        } else {
            self.renamed(from, to);
        }
    }

    /// Packet `by` carries what is known as `key` from now on: its milestones and requests are those of `key`, and so is
    /// its end.
    pub fn carry(&mut self, by: usize, key: usize) {
        if self.living.contains_key(&key) {
            self.carried.entry(by).or_default().push(key);
        }
    }

    /// Calls `f` with packet `key`, and with what it carries, as far as their lives are recorded.
    fn each(&mut self, key: usize, mut f: impl FnMut(usize, &mut Life)) {
        let own = [key];
        let carried = self.carried.get(&key).map_or(&[][..], |c| c);
        for k in own.iter().chain(carried) {
            if let Some(life) = self.living.get_mut(k) {
                f(*k, life);
            }
        }
    }

    /// Records the times of milestones that a component has kept itself.
    fn know(&mut self, key: usize, known: &[(Milestone, Time)]) {
        if self.records_whole() {
            self.each(key, |_, life| {
                let kept = known.iter().filter(|(_, t)| life.arrived() <= *t);
                let marks: Vec<_> = kept.map(|(what, at)| Mark { what: *what, at: *at, thread: None }).collect();
                life.marks.extend(marks);
            });
        }
    }

    /// The packet known as `from` is known as `to` from now on.
    pub fn renamed(&mut self, from: usize, to: usize) {
        if let Some(life) = self.living.remove(&from) {
            self.living.insert(to, life);
        }
    }

    /// Whether the whole life of packet `key` is recorded.
    pub fn follows(&self, key: usize) -> bool {
        self.records_whole() && self.living.contains_key(&key)
    }

    /// Packet `key` passes a milestone now.
    pub fn mark(&mut self, key: usize, what: Milestone) {
        let (at, thread) = self.clock;
        self.mark_at(key, what, at, thread);
    }

    /// Packet `key` has passed a milestone at `at`, unless it had passed that milestone before.
    pub fn mark_at(&mut self, key: usize, what: Milestone, at: Time, thread: Option<ThreadId>) {
        if !self.records_whole() {
            return;
        }
        let mut turned = std::mem::take(&mut self.turned);
        self.each(key, |k, life| {
            if life.at(what).is_none() {
                life.marks.push(Mark { what, at, thread });
                if what == Milestone::Posted {
                    turned.push(k);
                }
            }
        });
        self.turned = turned;
    }

    /// A request served packet `key`.
    pub fn request(&mut self, key: usize, r: ServingRequest) {
        self.each(key, |_, life| life.requests.push(r));
    }

    /// Packets that have posted their reply since the last call.
    pub fn turned(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.turned)
    }

    /// The life of packet `key`, which is recorded as a whole.
    pub fn of(&mut self, key: usize) -> Option<&mut Life> {
        self.living.get_mut(&key)
    }

    /// Numbers by which the component knows the packets whose lives are recorded.
    pub fn keys(&self) -> impl Iterator<Item = usize> + '_ {
        self.living.keys().copied()
    }

    /// Ends the life of packet `key`, and of what it carries, at `at`. `known` holds times that the component has kept
    /// itself.
    pub fn ended(&mut self, key: usize, at: Time, known: &[(Milestone, Time)]) {
        self.know(key, known);
        for k in [key].into_iter().chain(self.carried.remove(&key).unwrap_or_default()) {
            let Some(mut life) = self.living.remove(&k) else { continue };
            life.marks.push(Mark { what: Milestone::Ended, at, thread: None });
            self.ended.push(life);
        }
    }

    /// Software has written packet `key` into the next transmit descriptor of `queue`.
    pub fn put(&mut self, queue: QueueId, key: usize) {
        if self.records_whole() {
            self.descriptors.entry(queue).or_default().put.push_back(key);
        }
    }

    /// The next transmit descriptor of `queue` was sent in functional mode.
    pub fn skipped(&mut self, queue: QueueId) {
        if let Some(d) = self.descriptors.get_mut(&queue) {
            d.put.pop_front();
        }
    }

    /// The doorbell for the next `n` transmit descriptors of `queue` was posted.
    pub fn posted(&mut self, queue: QueueId, n: u32) {
        self.pass(queue, n, Milestone::Posted, |d| (&mut d.put, Some(&mut d.posted)));
    }

    /// The NIC acts on the doorbell for the next `n` transmit descriptors of `queue`.
    pub fn rang(&mut self, queue: QueueId, n: u32) {
        self.pass(queue, n, Milestone::Rang, |d| (&mut d.posted, Some(&mut d.rung)));
    }

    /// The NIC has fetched the next `n` transmit descriptors of `queue`.
    pub fn fetched(&mut self, queue: QueueId, n: u32) {
        self.pass(queue, n, Milestone::Fetched, |d| (&mut d.rung, None));
    }

    fn pass(
        &mut self,
        queue: QueueId,
        n: u32,
        what: Milestone,
        lists: impl Fn(&mut Descriptors) -> (&mut VecDeque<usize>, Option<&mut VecDeque<usize>>),
    ) {
        let Some(d) = self.descriptors.get_mut(&queue) else { return };
        let (from, to) = lists(d);
        let moved: Vec<usize> = from.drain(..n.to_usize().min(from.len())).collect();
        to.into_iter().for_each(|to| to.extend(&moved));
        moved.into_iter().for_each(|key| self.mark(key, what));
    }

    /// Begins a new window: forgets the lives that have ended, except those on one side of a request whose round trip may
    /// go on.
    pub fn restart(&mut self) {
        self.ended.retain(|life| life.request.is_some());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(kind: RequestKind, thread: Option<u16>, borders: [u64; 9]) -> ServingRequest {
        ServingRequest { kind, thread: thread.map(ThreadId), line: LineAddr(0), lines: 1, borders: borders.map(Time) }
    }

    fn life(marks: &[(Milestone, u64, Option<u16>)], requests: Vec<ServingRequest>) -> Life {
        let mark = |(what, at, c): &(Milestone, u64, Option<u16>)| Mark {
            what: *what,
            at: Time(*at),
            thread: c.map(ThreadId),
        };
        Life {
            arrival: 0,
            request: None,
            queue: QueueId(0),
            bytes: 64,
            marks: marks.iter().map(mark).collect(),
            requests,
        }
    }

    fn shares(s: &LifeStage) -> Vec<(LifePart, u64)> {
        s.parts.iter().map(|x| (x.part, x.to.0 - x.from.0)).collect()
    }

    #[test]
    fn the_write_that_ends_last_divides_the_way_to_memory() {
        let marks = [
            (Milestone::Arrived, 0, None),
            (Milestone::Visible, 900, None),
            (Milestone::Ended, 1000, None),
            (Milestone::Began, 100, None),
        ];
        let early = request(RequestKind::Write, None, [100, 110, 110, 110, 110, 110, 110, 110, 300]);
        let late = request(RequestKind::Write, None, [200, 250, 270, 270, 270, 400, 400, 400, 500]);
        let beyond = request(RequestKind::Write, None, [200, 250, 270, 270, 270, 400, 400, 400, 950]);
        let stages = life(&marks, vec![early, late, beyond]).stages(false);
        let found: Vec<_> = stages.iter().map(|s| (s.part, s.from.0, s.to.0)).collect();
        let expected = [
            (LifePart::NicReceive, 0, 100),
            (LifePart::Placement, 100, 500),
            (LifePart::Announcement, 500, 900),
            (LifePart::Transmission, 900, 1000),
        ];
        assert_eq!(found, expected);
        let hops = [
            (LifePart::Link, 100),
            (LifePart::ToCha, 50),
            (LifePart::ChaAdmission, 20),
            (LifePart::McQueueWait, 130),
            (LifePart::Return, 100),
        ];
        assert_eq!(shares(&stages[1]), hops);
    }

    #[test]
    fn a_core_waits_for_the_outstanding_hop_that_is_nearest_to_dram() {
        let marks = [
            (Milestone::Arrived, 0, None),
            (Milestone::Taken, 100, Some(3)),
            (Milestone::Served, 100, Some(3)),
            (Milestone::Ended, 1000, None),
        ];
        // One miss goes to DRAM between 300 and 500, the other one only to the LLC; the third is another core's.
        let far = request(RequestKind::Core, Some(3), [200, 250, 250, 250, 250, 300, 500, 500, 550]);
        let near = request(RequestKind::Core, Some(3), [450, 480, 480, 480, 480, 480, 480, 480, 700]);
        let other = request(RequestKind::Core, Some(4), [100, 900, 900, 900, 900, 900, 900, 900, 1000]);
        let stages = life(&marks, vec![far, near, other]).stages(true);
        let service = stages.iter().find(|s| s.part == LifePart::Service).expect("a service");
        let expected = [
            (LifePart::Core, 100),
            (LifePart::Llc, 50),
            (LifePart::McQueueWait, 50),
            (LifePart::McAndDram, 200),
            (LifePart::Llc, 200),
            (LifePart::Core, 300),
        ];
        assert_eq!(shares(service), expected);
    }

    #[test]
    fn descriptors_pass_their_milestones_in_the_order_in_which_software_wrote_them() {
        let mut l = Lives::new(Chosen::Whole([0, 1, 2].into()));
        let q = QueueId(0);
        (0..3).for_each(|key| l.arrived(key, q, 64, Time(1)));
        l.put(q, 9); // sent in functional mode
        l.skipped(q);
        // The second packet has two segments, of which the first one counts.
        [0, 1, 1, 2].into_iter().for_each(|key| l.put(q, key));
        let mut pass = |at, f: &mut dyn FnMut(&mut Lives)| {
            l.clock = (Time(at), None);
            f(&mut l);
        };
        pass(10, &mut |l| l.posted(q, 2));
        pass(20, &mut |l| l.posted(q, 2));
        pass(30, &mut |l| l.rang(q, 1));
        pass(40, &mut |l| l.rang(q, 3));
        pass(50, &mut |l| l.fetched(q, 4));
        let at = |key: usize, what| l.living[&key].at(what).map(|t| t.0);
        let of = |key| [Milestone::Posted, Milestone::Rang, Milestone::Fetched].map(|what| at(key, what));
        assert_eq!(of(0), [Some(10), Some(30), Some(50)]);
        assert_eq!(of(1), [Some(10), Some(40), Some(50)]);
        assert_eq!(of(2), [Some(20), Some(40), Some(50)]);
    }
}
