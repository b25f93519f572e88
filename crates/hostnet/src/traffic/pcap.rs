//! Packet captures as a list of packets to replay: the requests of memcached over UDP, or all IP packets.

use super::frame::{self, FlowPorts, NoDatagram};
use super::memcached::{self, MemcachedRequest, ReplyState};
use super::records::{self, Damage, Record, LONGEST_PACKET, LONGEST_RECORD};
use crate::kernel::units::Bandwidth;
use crate::kernel::{rng, Int, Time};
use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Packets to take from a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// Requests to a memcached server on this UDP port; packets from the port are replies.
    Memcached(u16),
    /// Every IP packet, or the packets to this UDP or TCP port.
    Frames(Option<u16>),
}

/// Default port of memcached.
pub const MEMCACHED_PORT: u16 = 11211;

/// Picoseconds of a day.
const DAY: u128 = 86_400 * 1_000_000_000_000;

/// Note in a table on the number of packets before a file's damage.
const BEFORE_DAMAGE: &str = "packets before the damage that ends the file";

impl Default for Wanted {
    fn default() -> Wanted {
        Wanted::Memcached(MEMCACHED_PORT)
    }
}

/// Options for reading a capture.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CaptureOptions {
    /// Packets of the file that are replayed.
    pub wanted: Wanted,
    /// Whether the packets before the damage of a file are taken.
    pub lenient: bool,
    /// Whether the times of sending are determined elsewhere, so that packets without a time stamp can be replayed as
    /// well.
    pub untimed: bool,
    /// Whether frames are kept.
    pub frames: bool,
    /// Maximum time between the first and the last packet, where the captured times are those of sending.
    pub longest: Option<Time>,
}

impl From<Wanted> for CaptureOptions {
    fn from(wanted: Wanted) -> CaptureOptions {
        CaptureOptions { wanted, ..CaptureOptions::default() }
    }
}

/// A packet to replay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Captured {
    /// Time since the first packet that is replayed.
    pub at: Time,
    /// Length of the frame on the wire in bytes, as captured and so usually without its check sequence.
    pub wire_len: u32,
    /// Toeplitz hash of addresses and ports, as RSS computes it (`frame::rss_hash`).
    pub flow: u32,
    /// Differentiated services code point of the IP packet.
    pub dscp: u8,
    /// Command of the request in the packet.
    pub command: CapturedCommand,
}

/// Command of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the documentation of a variant explains its fields")]
pub enum CapturedCommand {
    /// Retrieval: get, gets, gat, gats.
    Get {
        /// Hash of the key, 64 well-mixed bits; equal keys have equal hashes.
        key_hash: u64,
        /// Length of the key in bytes.
        key_len: u16,
        /// Bytes of the value in the captured reply; 0 on a miss, `None` where no reply shows the size.
        value_len: Option<u32>,
        /// Further keys of a multi-key get (`Capture::more_keys`).
        more: More,
    },
    /// Storage: set, add, replace, append, prepend, cas.
    Set { key_hash: u64, key_len: u16, value_len: u32 },
    /// Any other command, or any packet of another application.
    Other,
}

/// Location of the second and later keys of a multi-key get.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct More {
    start: u32,
    /// Number of the further keys.
    pub count: u16,
}

/// A key of a multi-key get, beyond the first one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CapturedKey {
    /// Hash of the key; equal keys have equal hashes.
    pub hash: u64,
    /// Length of the key in bytes.
    pub len: u16,
    /// Bytes of the value in the captured reply; 0 on a miss, `None` where no reply shows the size.
    pub value_len: Option<u32>,
}

/// Packets of the capture that are neither requests nor replies, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Skipped {
    /// Packets captured on an interface that is not Ethernet, next to one that is.
    pub other_link: u64,
    /// Packets without a time stamp (simple packet blocks of pcapng).
    pub untimed: u64,
    /// Packets that are not IP (ARP, LLDP and the like).
    pub not_ip: u64,
    /// TCP packets, where only UDP packets are replayed.
    pub tcp: u64,
    /// IP packets that are neither UDP nor TCP.
    pub not_udp: u64,
    /// Fragments of IP datagrams.
    pub fragments: u64,
    /// Packets of which the snap length cut off a header, or the part of a request that identifies it.
    pub cut: u64,
    /// Packets with a header that contradicts itself.
    pub malformed: u64,
    /// Packets neither to nor from the server's port.
    pub other_port: u64,
    /// Packets to the server's port that are not a readable text-protocol request.
    pub not_memcached: u64,
    /// Second and later datagrams of a request (memcached refuses such requests).
    pub continuation: u64,
}

impl Skipped {
    /// Each reason in words, with the number of its packets.
    pub fn reasons(&self) -> [(&'static str, u64); 11] {
        [
            ("cut short by the snap length", self.cut),
            ("fragments of IP datagrams", self.fragments),
            ("TCP", self.tcp),
            ("IP, but neither UDP nor TCP", self.not_udp),
            ("not IP", self.not_ip),
            ("to another port", self.other_port),
            ("not memcached's text protocol", self.not_memcached),
            ("further datagrams of a request", self.continuation),
            ("damaged headers", self.malformed),
            ("on a link other than Ethernet", self.other_link),
            ("without a time stamp", self.untimed),
        ]
    }

    /// Number of skipped packets, over all reasons.
    pub fn total(&self) -> u64 {
        self.reasons().iter().map(|(_, n)| n).sum()
    }
}

/// The reasons that occurred, as an appendix to a sentence: " (3 TCP; 2 not IP)", or nothing.
impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let occurred = self.reasons().into_iter().filter(|(_, n)| *n > 0);
        let parts: Vec<String> = occurred.map(|(why, n)| format!("{n} {why}")).collect();
        if parts.is_empty() {
            return Ok(());
        }
        write!(f, " ({})", parts.join("; "))
    }
}

/// Counts of a capture's content. `records = requests + replies + skipped.total()`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CaptureCounts {
    /// Packet records in the file.
    pub records: u64,
    /// Packets to replay: `gets + sets + others`.
    pub requests: u64,
    /// Packets to replay that are retrievals.
    pub gets: u64,
    /// Packets to replay that are storage commands.
    pub sets: u64,
    /// Packets to replay that have any other command.
    pub others: u64,
    /// Datagrams from the server's port.
    pub replies: u64,
    /// Number of keys of gets whose value size no reply shows.
    pub unknown_values: u64,
    /// Records with an earlier time stamp than a previous record of the file.
    pub backwards: u64,
    /// Packets that are not replayed, by reason.
    pub skipped: Skipped,
}

impl CaptureCounts {
    /// The packets read, replayed and skipped, in words, each with its kind and number. Kinds are "file", "replayed",
    /// "reply", "skipped" (one row for each reason that occurred) and "note".
    pub fn rows(&self) -> Vec<(&'static str, String, u64)> {
        let mut rows =
            vec![("file", "packets in the file", self.records), ("replayed", "packets replayed", self.requests)];
        rows.push(("reply", "replies of the server", self.replies));
        rows.extend(self.skipped.reasons().into_iter().filter(|(_, n)| *n > 0).map(|(why, n)| ("skipped", why, n)));
        let notes = [
            ("values whose size no reply told", self.unknown_values),
            ("packets stamped earlier than one before them", self.backwards),
        ];
        rows.extend(notes.into_iter().filter(|(_, n)| *n > 0).map(|(what, n)| ("note", what, n)));
        rows.into_iter().map(|(kind, what, n)| (kind, what.to_string(), n)).collect()
    }
}

/// Packets that come later than in their capture because the link on which they are replayed is slower.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LateOnLink {
    /// Number of packets that come later.
    pub packets: u64,
    /// Longest delay of a packet.
    pub most: Time,
    /// Rate of the link.
    pub rate: Bandwidth,
}

/// The packets of a capture that are replayed, in time order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Capture {
    /// Packets to replay, at least one; the first is at time zero, unless several tenants share the file.
    pub packets: Vec<Captured>,
    /// Time of the first packet to replay, in picoseconds since the file's epoch.
    pub first_ps: i128,
    /// Time after which the packets are repeated, where several tenants share the file; otherwise their own span and mean gap.
    pub period: Option<Time>,
    /// Counts of the file's content.
    pub counts: CaptureCounts,
    /// Damage that ended the reading of the file, if any.
    pub damage: Option<Damage>,
    /// Captured bytes of each packet's frame, if they were requested.
    pub frames: Vec<Box<[u8]>>,
    more: Vec<CapturedKey>,
}

/// Reason why a capture cannot be used. Its `Display` is one sentence that names the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CaptureError {
    /// Path of the capture file.
    pub file: PathBuf,
    /// Reason why the file cannot be used.
    pub fault: Fault,
}

/// Faults of a capture in a [`CaptureError`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The file is damaged.
    Damaged(Damage),
    /// No interface with packets is Ethernet; `0` names the link type of the first such interface.
    NotEthernet(String),
    /// The capture file has no packets.
    Empty,
    /// The capture has packets, but none is a memcached request to `port`.
    NoRequest {
        /// Number of packets in the file.
        packets: u64,
        /// Port to which requests are sent.
        port: u16,
        /// Packets that are not requests, by reason.
        skipped: Box<Skipped>,
    },
    /// The capture has packets, but none is IP, or none goes to `port`.
    NoFrame {
        /// Number of packets in the file.
        packets: u64,
        /// Port to which packets are sent; None for any port.
        port: Option<u16>,
        /// Packets that cannot be replayed, by reason.
        skipped: Box<Skipped>,
    },
    /// The capture has packets, but the requested ones have no time stamps.
    Untimed {
        /// Number of packets in the file.
        packets: u64,
    },
    /// The packets lie further apart than a run may last, or than `Time` can express.
    TooLong {
        /// Number of the first packet that lies too far from the beginning.
        packet: u64,
        /// Days between that packet and the first one that is replayed, rounded up.
        days: u64,
        /// Largest number of days that a capture may span.
        most: u64,
    },
}

impl From<Damage> for Fault {
    fn from(damage: Damage) -> Fault {
        Fault::Damaged(damage)
    }
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "capture {} ", self.file.display())?;
        match &self.fault {
            Fault::Damaged(Damage::Unreadable(why)) => write!(f, "cannot be read: {why}"),
            Fault::Damaged(Damage::NotACapture) => {
                write!(f, "is not a pcap or pcapng file, or ends inside its file header")
            }
            Fault::Damaged(Damage::Compressed(program)) => {
                write!(f, "is compressed with {program}; decompress it first")
            }
            Fault::Damaged(Damage::ModifiedBigEndian) => write!(
                f,
                "is a modified pcap (magic number a1b2cd34) in big-endian byte order, which is not read; convert it with \
                 `editcap -F pcap`"
            ),
            Fault::Damaged(Damage::Old { packet, byte, version: (major, minor) }) => write!(
                f,
                "is a pcap of version {major}.{minor}, whose record of packet {packet} at byte {byte} is none of version 2.4; \
                 convert it with `editcap -F pcap`"
            ),
            Fault::Damaged(Damage::LongBlock { byte, length }) => {
                write!(f, "has a block of {length} B at byte {byte}, and {LONGEST_RECORD} B are the most")
            }
            Fault::Damaged(Damage::Oversized { packet, byte, length }) => write!(
                f,
                "is damaged at byte {byte}, at or before packet {packet}: the packet claims {length} B, and {LONGEST_PACKET} B are the most"
            ),
            Fault::Damaged(Damage::Truncated { packet, byte }) => write!(
                f,
                "is truncated: it ends inside the record of packet {packet}, which begins at byte {byte}"
            ),
            Fault::Damaged(Damage::Malformed { packet, byte }) => {
                write!(f, "is damaged at byte {byte}, at or before packet {packet}")
            }
            Fault::Damaged(Damage::UnknownInterface { packet, byte, interface }) => write!(
                f,
                "is damaged: packet {packet} at byte {byte} names interface {interface}, which the file does not describe"
            ),
            Fault::NotEthernet(link) => {
                write!(f, "was taken on a link of type {link}, but only Ethernet can be replayed")
            }
            Fault::Empty => write!(f, "holds no packets"),
            Fault::NoRequest { packets, port, skipped } => write!(
                f,
                "holds no memcached request to UDP port {port} among its {packets} packets{skipped}"
            ),
            Fault::NoFrame { packets, port: None, skipped } => {
                write!(f, "holds no IP packet that can be replayed among its {packets} packets{skipped}")
            }
            Fault::NoFrame { packets, port: Some(port), skipped } => {
                write!(f, "holds no packet to UDP or TCP port {port} among its {packets} packets{skipped}")
            }
            Fault::Untimed { packets } => write!(
                f,
                "has no time stamps on its {packets} packets; set traffic.pcap.timing = \"fixed\" or \"poisson\""
            ),
            Fault::TooLong { packet, days, most } => write!(
                f,
                "is too long: packet {packet} lies {days} days behind the first that is replayed, and {most} days are the most; give traffic.rate, or set traffic.pcap.timing = \"fixed\" or \"poisson\""
            ),
        }
    }
}

impl std::error::Error for CaptureError {}

impl Capture {
    /// Loads a pcap or pcapng file.
    ///
    /// # Errors
    /// Returns the fault when the file is missing, truncated, damaged or not a capture, was not taken on Ethernet, or
    /// holds no packet that can be replayed.
    pub fn load(path: &Path, how: impl Into<CaptureOptions>) -> Result<Capture, CaptureError> {
        let fail = |fault| CaptureError { file: path.into(), fault };
        let unreadable = |e: std::io::Error| {
            let why = match e.kind() {
                std::io::ErrorKind::NotFound => "there is no such file".into(),
                std::io::ErrorKind::PermissionDenied => "permission is denied".into(),
                _ => e.to_string(),
            };
            fail(Damage::Unreadable(why).into())
        };
        let file = File::open(path).map_err(unreadable)?;
        if file.metadata().map_err(unreadable)?.is_dir() {
            return Err(fail(Damage::Unreadable("it is a directory".into()).into()));
        }
        Capture::read(file, how).map_err(fail)
    }

    /// Reads a pcap or pcapng capture from bytes.
    ///
    /// # Errors
    /// Returns the fault when the source is truncated, damaged or not a capture, was not taken on Ethernet, or holds no
    /// packet that can be replayed.
    pub fn read(source: impl Read + Send, how: impl Into<CaptureOptions>) -> Result<Capture, Fault> {
        let how = how.into();
        let mut loader = Loader { how, ..Loader::default() };
        let (records, damage) = records::read(source, how.lenient, |number, record| loader.record(number, record))?;
        loader.counts.records = records;
        // A file that is damaged before its first packet has no other fault to report.
        match (loader.finish(), damage) {
            (Ok(capture), damage) => Ok(Capture { damage, ..capture }),
            (Err(Fault::Empty), Some(damage)) => Err(damage.into()),
            (Err(fault), _) => Err(fault),
        }
    }

    /// The rows of `CaptureCounts::rows`, with notes on where the reading of a damaged file ended, and on packets that the
    /// link carries `late`.
    pub fn rows(&self, late: Option<LateOnLink>) -> Vec<(&'static str, String, u64)> {
        let mut rows = self.counts.rows();
        if self.damage.is_some() {
            rows.push(("note", BEFORE_DAMAGE.to_string(), self.counts.records));
        }
        if let Some(late) = late {
            let us = late.most.as_ns() / 1e3;
            let what = format!("packets later than captured, by up to {us:.1} us: the link carries {}", late.rate);
            rows.push(("note", what, late.packets));
        }
        rows
    }

    /// Keys of a multi-key get after its first.
    pub fn more_keys(&self, more: More) -> &[CapturedKey] {
        &self.more[more.start.to_usize()..][..usize::from(more.count)]
    }

    /// Length of the longest packet on the wire in bytes.
    pub fn longest(&self) -> u32 {
        self.packets.iter().map(|p| p.wire_len).max().unwrap_or(0)
    }

    /// Mean length of the packets on the wire in bytes.
    pub fn mean_size(&self) -> f64 {
        let bytes: u64 = self.packets.iter().map(|p| u64::from(p.wire_len)).sum();
        bytes.to_f64() / self.packets.len().to_f64()
    }

    /// Times of the packets, for `Arrivals::trace`.
    pub fn times(&self) -> Vec<Time> {
        self.packets.iter().map(|p| p.at).collect()
    }
}

/// A request whose reply has not ended.
struct OpenRequest {
    packet: usize,
    /// Number of the reply's next datagram.
    sequence: u16,
    /// Number of value bytes at the start of the reply's next datagram.
    skip: u32,
}

#[derive(Default)]
struct Loader {
    how: CaptureOptions,
    /// Packets with absolute time and record number, until the first request is known.
    packets: Vec<(i128, u64, Captured)>,
    /// Frames of the packets in `packets`.
    frames: Vec<Box<[u8]>>,
    more: Vec<CapturedKey>,
    /// Requests without a complete reply, by client, server and request ID.
    pending: HashMap<(SocketAddr, SocketAddr, u16), OpenRequest>,
    counts: CaptureCounts,
    latest_ps: Option<i128>,
    ethernet: bool,
    other_link: Option<String>,
}

impl Loader {
    fn record(&mut self, number: u64, record: Record) -> Result<(), Fault> {
        let skipped = &mut self.counts.skipped;
        if record.link.0 != 1 {
            skipped.other_link += 1;
            self.other_link.get_or_insert_with(|| records::link_name(record.link));
            return Ok(());
        }
        self.ethernet = true;
        let before = self.latest_ps.filter(|_| self.how.untimed).or(self.how.untimed.then_some(0));
        let Some(at_ps) = record.at_ps.or(before) else {
            skipped.untimed += 1;
            return Ok(());
        };
        self.counts.backwards += u64::from(self.latest_ps.is_some_and(|latest| at_ps < latest));
        self.latest_ps = self.latest_ps.max(Some(at_ps));

        let wire_len = record.wire_len.max(record.data.len().to_u32());
        let cut = record.data.len() < wire_len.to_usize();
        let taken = self.packets.len();
        let why = match self.how.wanted {
            Wanted::Frames(port) => match frame::flow(record.data) {
                Ok(flow) if port.is_none_or(|port| flow.ports.destination() == Some(port)) => {
                    self.counts.requests += 1;
                    self.counts.others += 1;
                    let (dscp, command) = (flow.dscp, CapturedCommand::Other);
                    let packet = Captured { at: Time::ZERO, wire_len, flow: flow.hash, dscp, command };
                    self.packets.push((at_ps, number, packet));
                    self.keep(taken, record.data);
                    return Ok(());
                }
                Ok(flow) => match flow.ports {
                    FlowPorts::Known { .. } => {
                        skipped.other_port += 1;
                        return Ok(());
                    }
                    FlowPorts::Unknown(why) => why,
                },
                Err(why) => why,
            },
            Wanted::Memcached(port) => match frame::datagram(record.data) {
                Ok(datagram) if datagram.dst.port() == port => {
                    self.request(number, at_ps, wire_len, datagram);
                    self.keep(taken, record.data);
                    return Ok(());
                }
                Ok(datagram) if datagram.src.port() == port => {
                    self.counts.replies += 1;
                    self.reply(datagram);
                    return Ok(());
                }
                Ok(_) => {
                    skipped.other_port += 1;
                    return Ok(());
                }
                Err(why) => why,
            },
        };
        *match why {
            NoDatagram::NotIp => &mut skipped.not_ip,
            NoDatagram::Tcp => &mut skipped.tcp,
            NoDatagram::NotUdp => &mut skipped.not_udp,
            NoDatagram::Fragment => &mut skipped.fragments,
            NoDatagram::Malformed if cut => &mut skipped.cut,
            NoDatagram::Malformed => &mut skipped.malformed,
        } += 1;
        Ok(())
    }

    /// Keeps the frame of a packet that was taken, if there are more packets than `before`.
    fn keep(&mut self, before: usize, frame: &[u8]) {
        if self.how.frames && self.packets.len() > before {
            self.frames.push(frame.into());
        }
    }

    fn request(&mut self, number: u64, at_ps: i128, wire_len: u32, d: frame::UdpDatagram) {
        let counts = &mut self.counts;
        let cut = d.payload.len() < d.payload_len;
        let unread = if cut { &mut counts.skipped.cut } else { &mut counts.skipped.not_memcached };
        let Some((header, body)) = memcached::header(d.payload) else {
            *unread += 1;
            return;
        };
        if header.sequence > 0 {
            counts.skipped.continuation += 1;
            return;
        }
        let command = match memcached::request(body, cut) {
            None => {
                *unread += 1;
                return;
            }
            Some(MemcachedRequest::Other) => {
                counts.others += 1;
                CapturedCommand::Other
            }
            Some(MemcachedRequest::Set { key, value_len }) => {
                counts.sets += 1;
                CapturedCommand::Set { key_hash: key_hash(key), key_len: key.len().to_u16(), value_len }
            }
            Some(MemcachedRequest::Get(mut keys)) => {
                counts.gets += 1;
                let first = keys.next().unwrap_or_default();
                let start = self.more.len();
                let more = |key: &[u8]| CapturedKey { hash: key_hash(key), len: key.len().to_u16(), value_len: None };
                self.more.extend(keys.map(more));
                let count = (self.more.len() - start).to_u16();
                let pending = OpenRequest { packet: self.packets.len(), sequence: 0, skip: 0 };
                self.pending.insert((d.src, d.dst, header.id), pending);
                CapturedCommand::Get {
                    key_hash: key_hash(first),
                    key_len: first.len().to_u16(),
                    value_len: None,
                    more: More { start: start.to_u32(), count },
                }
            }
        };
        counts.requests += 1;
        let flow = frame::rss_hash(d.src, d.dst);
        self.packets.push((at_ps, number, Captured { at: Time::ZERO, wire_len, flow, dscp: d.dscp, command }));
    }

    fn reply(&mut self, d: frame::UdpDatagram) {
        let Some((header, body)) = memcached::header(d.payload) else {
            return;
        };
        let flow = (d.dst, d.src, header.id);
        let Some(pending) = self.pending.get_mut(&flow) else {
            return;
        };
        let CapturedCommand::Get { key_hash: first, value_len, more, .. } = &mut self.packets[pending.packet].2.command
        else {
            return;
        };
        let rest = &mut self.more[more.start.to_usize()..][..usize::from(more.count)];
        // memcached 1.6 answers a multi-key get with one datagram per value, each numbered as if it were a whole reply,
        // although its protocol.txt has one message of several datagrams.
        let alone = header.count == 1;
        let end = if header.sequence == pending.sequence {
            memcached::reply(body, d.payload_len - 8, pending.skip, |key, len| {
                let hash = key_hash(key);
                if *first == hash && value_len.is_none() {
                    *value_len = Some(len);
                } else if let Some(key) = rest.iter_mut().find(|k| k.hash == hash && k.value_len.is_none()) {
                    key.value_len = Some(len);
                }
            })
        } else {
            ReplyState::Unknown
        };
        match end {
            ReplyState::Continues { skip } => {
                pending.sequence += u16::from(!alone);
                pending.skip = skip;
            }
            ReplyState::Ended => {
                // Keys that the whole reply does not mention are misses.
                value_len.get_or_insert(0);
                rest.iter_mut().for_each(|k| _ = k.value_len.get_or_insert(0));
                self.pending.remove(&flow);
            }
            ReplyState::Unknown => _ = self.pending.remove(&flow),
        }
    }

    fn finish(mut self) -> Result<Capture, Fault> {
        if self.counts.records == 0 {
            return Err(Fault::Empty);
        }
        if let (false, Some(link)) = (self.ethernet, self.other_link) {
            return Err(Fault::NotEthernet(link));
        }
        // Frames were taken in the order of their numbers.
        let mut frames: Vec<_> = self.packets.iter().map(|p| p.1).zip(std::mem::take(&mut self.frames)).collect();
        self.packets.sort_by_key(|&(at_ps, number, _)| (at_ps, number));
        let Some(&(start, ..)) = self.packets.first() else {
            let packets = self.counts.records;
            return Err(match self.how.wanted {
                _ if self.counts.skipped.untimed > 0 => Fault::Untimed { packets },
                Wanted::Memcached(port) => Fault::NoRequest { packets, port, skipped: self.counts.skipped.into() },
                Wanted::Frames(port) => Fault::NoFrame { packets, port, skipped: self.counts.skipped.into() },
            });
        };
        let mut packets = Vec::with_capacity(self.packets.len());
        let mut sorted = Vec::with_capacity(frames.len());
        for (at_ps, number, packet) in self.packets {
            if let Ok(i) = frames.binary_search_by_key(&number, |f| f.0) {
                sorted.push(std::mem::take(&mut frames[i].1));
            }
            // When the times of sending are determined elsewhere, the captured times only order the packets.
            let longest = if self.how.untimed { Time::MAX } else { self.how.longest.unwrap_or(Time::END) };
            let since = u64::try_from(at_ps - start).unwrap_or(u64::MAX);
            if since > longest.0 || since == u64::MAX && !self.how.untimed {
                // Rounded up, so that a packet just beyond the limit does not seem to lie within it.
                let days = (at_ps - start).unsigned_abs().div_ceil(DAY).to_u64();
                let most = (u128::from(longest.0) / DAY).to_u64();
                return Err(Fault::TooLong { packet: number, days, most });
            }
            packets.push(Captured { at: Time(since), ..packet });
        }
        let unknown = packets.iter().filter(|p| matches!(p.command, CapturedCommand::Get { value_len: None, .. }));
        let unknown_more = self.more.iter().filter(|k| k.value_len.is_none());
        self.counts.unknown_values = (unknown.count() + unknown_more.count()).to_u64();
        let (counts, more) = (self.counts, self.more);
        Ok(Capture { packets, first_ps: start, period: None, counts, damage: None, frames: sorted, more })
    }
}

/// Keeps the captured offsets between `captures`, the parts of one file that several tenants replay at its times: they begin with
/// the earliest packet of all, and repeat together after the mean gap of all.
pub fn keep_offsets<'a>(captures: impl Iterator<Item = &'a mut Capture>) {
    let mut captures: Vec<_> = captures.collect();
    let last = |c: &Capture| c.first_ps + i128::from(c.packets.last().map_or(0, |p| p.at.0));
    let (starts, ends) = (captures.iter().map(|c| c.first_ps).min(), captures.iter().map(|c| last(c)).max());
    let Some((start, end)) = starts.zip(ends).filter(|(start, end)| start < end) else { return };
    let since = |ps: i128| Time(u64::try_from(ps).unwrap_or(u64::MAX));
    let gaps = captures.iter().map(|c| c.packets.len()).sum::<usize>().max(2) - 1;
    let span = since(end - start);
    for c in &mut captures {
        let ahead = since(c.first_ps - start);
        c.packets.iter_mut().for_each(|p| p.at = p.at.saturating_add(ahead));
        c.period = Some(span.saturating_add(Time(span.0 / gaps.to_u64())));
    }
}

/// FNV-1a hash of a key, mixed so that the low bits can select a bucket.
fn key_hash(key: &[u8]) -> u64 {
    let fnv = |h: u64, b: &u8| (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3);
    rng::mix(key.iter().fold(0xcbf2_9ce4_8422_2325, fnv))
}
