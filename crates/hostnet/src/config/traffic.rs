//! Traffic of a scenario: the structure that a user writes, and its checks.

use super::check::{need, serves, word, Check};
use super::check_unused::spelt;
use super::scenario::{Load, RunSpec, Scenario};
use crate::app::AppSpec;
use crate::kernel::units::{Bandwidth, OfferedRate, Size, Span};
use crate::kernel::{Int, TenantId, Time};
use crate::traffic::arrival::Gaps;
use crate::traffic::dctcp::DctcpSpec;
use crate::traffic::generator::{BETWEEN_FRAMES, CHECKSUM};
use crate::traffic::mac::Mac;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{de, Deserialize, Deserializer, Serialize};
use std::borrow::Cow;
use std::fmt::{self, Display};

/// Bytes of a time stamp in a frame.
pub const STAMP: u64 = 8;
/// Maximum number of flows for which the generator has addresses.
const MOST_FLOWS: u32 = 1 << 20;

/// Arrival process of packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArrivalsSpec {
    /// Exponential gaps at `rate`.
    Poisson,
    /// Equal gaps at `rate`.
    Fixed,
    /// Gaps at `rate`, uniformly distributed around their mean, with coefficient of variation `cv`.
    Uniform,
    /// Gaps at `rate` from a Pareto distribution with coefficient of variation `cv`: many gaps close to the shortest
    /// one, and rare long gaps.
    LogNormal,
    /// Pareto gaps at `rate`, with coefficient of variation `cv`: a shortest gap, and rare long ones.
    Pareto,
    /// Bursts of `burst` packets every `burst` / `rate` (or every `burst_period`), back to back or `burst_gap` apart.
    Burst,
    /// A closed loop of at most `outstanding` requests without a reply: each reply lets the next request go.
    Closed,
    /// A queue of `depth` waiting packets at each core at all times.
    KeepDepth,
    /// Packets of a capture, `pcap`.
    Pcap,
    /// No packets.
    None,
}

/// Core of the tenant to which a packet goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SpreadSpec {
    /// Each packet goes to a random core.
    #[default]
    Random,
    /// Packets go to the cores in turn.
    RoundRobin,
    /// Each packet goes to the core with the fewest entries in its completion queue; several such cores take turns.
    ShortestQueue,
    /// Each packet goes to its client's core, for `arrivals = "closed"`: each of the `outstanding` requests belongs to
    /// a client, which sends its next request to the same core. The clients are assigned to cores in turn, or with
    /// `flows` to flows in turn.
    Flow,
}

/// Schedule of a replayed capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplayTiming {
    /// The captured times; with `traffic.rate`, stretched or compressed to that mean rate.
    #[default]
    Original,
    /// Exponential gaps at `traffic.rate`.
    Poisson,
    /// Equal gaps at `traffic.rate`.
    Fixed,
}

/// A capture to replay.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PcapSpec {
    /// Path of a pcap or pcapng file, relative to the scenario's file. Where it is not there, it is looked for in the current
    /// directory and in the folders of platforms.
    pub file: String,
    /// Schedule of the replayed packets: "original" (the default), "poisson" or "fixed".
    #[serde(default)]
    pub timing: ReplayTiming,
    /// UDP port of the memcached server, for an `app` of kind "memcached" (11211 when absent). For other applications,
    /// the UDP or TCP port whose packets are replayed; when absent, all IP packets.
    #[serde(default)]
    pub port: Option<u16>,
    /// Whether the packets before the damage of a truncated or corrupt file are replayed. When false (the default),
    /// such a file is refused. Without damage, both replay the whole file.
    #[serde(default)]
    pub lenient: bool,
}

/// Rare long stalls of the application (Sweeper, section VI-F).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpikeSpec {
    /// Probability of a stall per request (0 to 1).
    pub probability: f64,
    /// Shortest stall.
    pub min: Span,
    /// Longest stall.
    pub max: Span,
}

/// Protocol of the generator's frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// IPv4 and UDP: 42 bytes of headers, and flows that RSS distinguishes.
    #[default]
    Udp,
    /// Plain Ethernet without further headers: RSS sees one flow.
    Ethernet,
}

/// A size of frames, with its weight.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SizeWeight {
    /// Bytes of the frame, checksum included.
    pub size: Size,
    /// Relative frequency of packets of this size.
    pub weight: u32,
}

/// A named distribution of frame sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mix {
    /// The simple Internet mix: IP packets of 40, 576 and 1500 bytes as 7 : 4 : 1, in frames of 64, 594 and 1518 bytes.
    Imix,
}

/// Sizes of frames: a named distribution, or a list of sizes with weights.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum SizesSpec {
    /// A mix that has a name.
    Named(Mix),
    /// Sizes with weights.
    Table(Vec<SizeWeight>),
}

impl<'de> Deserialize<'de> for SizesSpec {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<SizesSpec, D::Error> {
        struct V;
        impl<'de> de::Visitor<'de> for V {
            type Value = SizesSpec;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"imix\" or a list of { size, weight }")
            }
            fn visit_str<E: de::Error>(self, s: &str) -> Result<SizesSpec, E> {
                Mix::deserialize(de::value::StrDeserializer::new(s)).map(SizesSpec::Named)
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, seq: A) -> Result<SizesSpec, A::Error> {
                Vec::deserialize(de::value::SeqAccessDeserializer::new(seq)).map(SizesSpec::Table)
            }
        }
        d.deserialize_any(V)
    }
}

impl SizesSpec {
    /// Sizes of frames with their weights.
    pub fn table(&self) -> Vec<SizeWeight> {
        match self {
            SizesSpec::Named(Mix::Imix) => {
                [(64, 7), (594, 4), (1518, 1)].map(|(size, weight)| SizeWeight { size: Size(size), weight }).into()
            }
            SizesSpec::Table(t) => t.clone(),
        }
    }
}

/// A wire between the generator and a NIC.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WireSpec {
    /// Rate of the wire in each direction.
    pub rate: Bandwidth,
    /// Flight time of a frame in each direction. The default is 0.
    #[serde(default)]
    pub propagation: Span,
}

/// Traffic that the clients send: arrival process, sizes and flows.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(try_from = "WrittenTraffic", into = "WrittenTraffic")]
pub struct TrafficSpec {
    /// Arrival process of the packets, with the keys of that process.
    pub process: ArrivalProcess,
    /// Size of frames, checksum included, for applications whose requests do not set it. The default is 1 KiB. Excludes
    /// `sizes`.
    pub packet: Option<Size>,
    /// Sizes of frames with their weights, instead of `packet`: a list of { size, weight }, or "imix", which is 7 : 4 :
    /// 1 of 64, 594 and 1518 B.
    pub sizes: Option<SizesSpec>,
    /// Number of flows that packets belong to, chosen at random unless `spread = "flow"`; a flow goes to one core, by
    /// its RSS hash, so that flows have no effect on a single core. When absent, each packet goes to a core by `spread`.
    pub flows: Option<u32>,
    /// Protocol of the frames: "udp" (the default) or "ethernet". Beside the captures that `run --pcap` writes, only RSS sees
    /// it, which needs "udp" to tell `flows` apart.
    pub protocol: Protocol,
    /// Core of the tenant to which a packet goes that belongs to no flow: "random" (the default), "round_robin" or
    /// "shortest_queue"; or "flow" for `arrivals = "closed"`, with or without `flows`. Packets of a capture go to the cores of
    /// their flows. Without effect on a single core, and with `arrivals = "keep_depth"`, which gives each core its packets.
    pub spread: SpreadSpec,
    /// Wire between the generator and an integrated NIC. When absent, there is no wire. An Ethernet NIC has a link of
    /// its own.
    pub link: Option<WireSpec>,
    /// Ethernet address that packets go to in the captures that `run --pcap` writes, replayed ones included. The default is
    /// "02:00:00:00:00:01".
    pub destination_mac: Option<Mac>,
    /// Ethernet address that packets come from in the captures that `run --pcap` writes. When absent, that of the replayed
    /// capture, or "02:00:00:00:00:02".
    pub source_mac: Option<Mac>,
    /// Offset in bytes from the frame's start at which a frame carries its time of sending in the captures that `run --pcap`
    /// writes. The default is 42.
    pub stamp: u32,
    /// Rare long stalls of the application. When absent, there are none.
    pub spikes: Option<SpikeSpec>,
    /// Senders of the TCP flows that an `app` of kind "tcp_receive" receives.
    pub dctcp: Option<DctcpSpec>,
}

/// Arrival process with the keys that this process has and no other.
#[derive(Clone, PartialEq, Debug, Default)]
#[expect(missing_docs, reason = "the documentation of a variant explains its fields")]
pub enum ArrivalProcess {
    /// No packets.
    #[default]
    None,
    /// Exponential gaps at `rate`.
    Poisson { rate: Option<OfferedRate> },
    /// Equal gaps at `rate`.
    Fixed { rate: Option<OfferedRate> },
    /// Gaps at `rate` that are uniformly distributed, with coefficient of variation `cv`.
    Uniform { rate: Option<OfferedRate>, cv: Option<f64> },
    /// Gaps at `rate` with many gaps close to the shortest one, with coefficient of variation `cv`.
    LogNormal { rate: Option<OfferedRate>, cv: Option<f64> },
    /// Pareto gaps at `rate`, with coefficient of variation `cv`.
    Pareto { rate: Option<OfferedRate>, cv: Option<f64> },
    /// Bursts of `burst` packets, which begin `gap` apart, or back to back; bursts follow each other by `pace`.
    Burst { burst: u32, gap: Option<Span>, pace: BurstPace },
    /// A closed loop of `outstanding` requests at most; a request is given up after `timeout`.
    Closed { outstanding: u32, timeout: Span },
    /// A queue of `depth` waiting packets at each core at all times.
    KeepDepth { depth: u32 },
    /// Packets of a capture, at `rate` if one is given.
    Pcap { pcap: Option<PcapSpec>, rate: Option<OfferedRate> },
}

/// Pace of bursts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum BurstPace {
    /// Mean rate of the packets, if it is given.
    Rate(Option<OfferedRate>),
    /// Time from the start of a burst to the start of the next one.
    Period(Span),
}

impl TryFrom<WrittenTraffic> for TrafficSpec {
    type Error = String;

    /// Reads a table, whose keys must be those of one arrival process.
    fn try_from(w: WrittenTraffic) -> Result<TrafficSpec, String> {
        one_process(&w).map_err(|why| why.replacen("traffic.", ".", 1))?;
        let (rate, cv) = (w.rate, w.cv);
        let process = match w.arrivals {
            ArrivalsSpec::None => ArrivalProcess::None,
            ArrivalsSpec::Poisson => ArrivalProcess::Poisson { rate },
            ArrivalsSpec::Fixed => ArrivalProcess::Fixed { rate },
            ArrivalsSpec::Uniform => ArrivalProcess::Uniform { rate, cv },
            ArrivalsSpec::LogNormal => ArrivalProcess::LogNormal { rate, cv },
            ArrivalsSpec::Pareto => ArrivalProcess::Pareto { rate, cv },
            ArrivalsSpec::Burst => {
                let pace = w.burst_period.map_or(BurstPace::Rate(rate), BurstPace::Period);
                ArrivalProcess::Burst { burst: w.burst, gap: w.burst_gap, pace }
            }
            ArrivalsSpec::Closed => ArrivalProcess::Closed { outstanding: w.outstanding, timeout: w.timeout },
            ArrivalsSpec::KeepDepth => ArrivalProcess::KeepDepth { depth: w.depth },
            ArrivalsSpec::Pcap => ArrivalProcess::Pcap { pcap: w.pcap, rate },
        };
        Ok(TrafficSpec {
            process,
            packet: w.packet,
            sizes: w.sizes,
            flows: w.flows,
            protocol: w.protocol,
            spread: w.spread,
            link: w.link,
            destination_mac: w.destination_mac,
            source_mac: w.source_mac,
            stamp: w.stamp,
            spikes: w.spikes,
            dctcp: w.dctcp,
        })
    }
}

impl From<TrafficSpec> for WrittenTraffic {
    /// Writes a table as a file gives it.
    fn from(t: TrafficSpec) -> WrittenTraffic {
        WrittenTraffic {
            arrivals: t.arrivals(),
            rate: t.rate(),
            depth: t.depth(),
            burst: t.burst(),
            burst_gap: t.burst_gap(),
            burst_period: t.burst_period(),
            cv: t.cv(),
            outstanding: t.outstanding(),
            timeout: t.timeout(),
            pcap: t.pcap().cloned(),
            packet: t.packet,
            sizes: t.sizes,
            flows: t.flows,
            protocol: t.protocol,
            spread: t.spread,
            link: t.link,
            destination_mac: t.destination_mac,
            source_mac: t.source_mac,
            stamp: t.stamp,
            spikes: t.spikes,
            dctcp: t.dctcp,
        }
    }
}

impl JsonSchema for TrafficSpec {
    fn schema_name() -> Cow<'static, str> {
        WrittenTraffic::schema_name()
    }
    fn schema_id() -> Cow<'static, str> {
        WrittenTraffic::schema_id()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        WrittenTraffic::json_schema(generator)
    }
}

/// Keys that several processes share, as the process has them; defaults for a process without the key.
impl TrafficSpec {
    /// Choice of the arrival process.
    pub fn arrivals(&self) -> ArrivalsSpec {
        match self.process {
            ArrivalProcess::None => ArrivalsSpec::None,
            ArrivalProcess::Poisson { .. } => ArrivalsSpec::Poisson,
            ArrivalProcess::Fixed { .. } => ArrivalsSpec::Fixed,
            ArrivalProcess::Uniform { .. } => ArrivalsSpec::Uniform,
            ArrivalProcess::LogNormal { .. } => ArrivalsSpec::LogNormal,
            ArrivalProcess::Pareto { .. } => ArrivalsSpec::Pareto,
            ArrivalProcess::Burst { .. } => ArrivalsSpec::Burst,
            ArrivalProcess::Closed { .. } => ArrivalsSpec::Closed,
            ArrivalProcess::KeepDepth { .. } => ArrivalsSpec::KeepDepth,
            ArrivalProcess::Pcap { .. } => ArrivalsSpec::Pcap,
        }
    }

    /// Mean rate over all cores.
    pub fn rate(&self) -> Option<OfferedRate> {
        match self.process {
            ArrivalProcess::Poisson { rate }
            | ArrivalProcess::Fixed { rate }
            | ArrivalProcess::Uniform { rate, .. }
            | ArrivalProcess::LogNormal { rate, .. }
            | ArrivalProcess::Pareto { rate, .. }
            | ArrivalProcess::Burst { pace: BurstPace::Rate(rate), .. }
            | ArrivalProcess::Pcap { rate, .. } => rate,
            _ => None,
        }
    }

    /// Gives a process that has a rate another one.
    ///
    /// # Panics
    /// When the process has none.
    pub fn set_rate(&mut self, new: OfferedRate) {
        match &mut self.process {
            ArrivalProcess::Poisson { rate }
            | ArrivalProcess::Fixed { rate }
            | ArrivalProcess::Uniform { rate, .. }
            | ArrivalProcess::LogNormal { rate, .. }
            | ArrivalProcess::Pareto { rate, .. }
            | ArrivalProcess::Burst { pace: BurstPace::Rate(rate), .. }
            | ArrivalProcess::Pcap { rate, .. } => *rate = Some(new),
            other => panic!("{other:?} has no rate"),
        }
    }

    /// Number of waiting packets per core.
    pub fn depth(&self) -> u32 {
        match self.process {
            ArrivalProcess::KeepDepth { depth } => depth,
            _ => 0,
        }
    }

    /// Number of packets per burst.
    pub fn burst(&self) -> u32 {
        match self.process {
            ArrivalProcess::Burst { burst, .. } => burst,
            _ => 0,
        }
    }

    /// Time from the start of a packet to the start of the next one in a burst.
    pub fn burst_gap(&self) -> Option<Span> {
        match self.process {
            ArrivalProcess::Burst { gap, .. } => gap,
            _ => None,
        }
    }

    /// Time from the start of a burst to the start of the next one.
    pub fn burst_period(&self) -> Option<Span> {
        match self.process {
            ArrivalProcess::Burst { pace: BurstPace::Period(period), .. } => Some(period),
            _ => None,
        }
    }

    /// Coefficient of variation of gaps.
    pub fn cv(&self) -> Option<f64> {
        match self.process {
            ArrivalProcess::Uniform { cv, .. }
            | ArrivalProcess::LogNormal { cv, .. }
            | ArrivalProcess::Pareto { cv, .. } => cv,
            _ => None,
        }
    }

    /// Maximum number of requests without a reply.
    pub fn outstanding(&self) -> u32 {
        match self.process {
            ArrivalProcess::Closed { outstanding, .. } => outstanding,
            _ => 0,
        }
    }

    /// Time after which a request without a reply is given up.
    pub fn timeout(&self) -> Span {
        match self.process {
            ArrivalProcess::Closed { timeout, .. } => timeout,
            _ => timeout(),
        }
    }

    /// Capture to replay.
    pub fn pcap(&self) -> Option<&PcapSpec> {
        match &self.process {
            ArrivalProcess::Pcap { pcap, .. } => pcap.as_ref(),
            _ => None,
        }
    }

    /// Capture to replay.
    pub(super) fn pcap_mut(&mut self) -> Option<&mut PcapSpec> {
        match &mut self.process {
            ArrivalProcess::Pcap { pcap, .. } => pcap.as_mut(),
            _ => None,
        }
    }
}

/// Traffic that the clients send: arrival process, sizes and flows.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "TrafficSpec")]
struct WrittenTraffic {
    /// Arrival process of the packets.
    arrivals: ArrivalsSpec,
    /// Mean rate over all cores, in packets or in bits of frames per second. With `run.load = "peak_loss"`, the start
    /// of the search; "peak_slo" and "peak_nodrop" measure where to begin, and take none.
    #[serde(default)]
    rate: Option<OfferedRate>,
    /// Size of frames, checksum included, for applications whose requests do not set it. The default is 1 KiB. Excludes
    /// `sizes`.
    #[serde(default)]
    packet: Option<Size>,
    /// Sizes of frames with their weights, instead of `packet`: a list of { size, weight }, or "imix", which is 7 : 4 :
    /// 1 of 64, 594 and 1518 B.
    #[serde(default)]
    sizes: Option<SizesSpec>,
    /// Number of flows that packets belong to, chosen at random unless `spread = "flow"`; a flow goes to one core, by
    /// its RSS hash, so that flows have no effect on a single core. When absent, each packet goes to a core by `spread`.
    #[serde(default)]
    flows: Option<u32>,
    /// Protocol of the frames: "udp" (the default) or "ethernet". Beside the captures that `run --pcap` writes, only RSS sees
    /// it, which needs "udp" to tell `flows` apart.
    #[serde(default)]
    protocol: Protocol,
    /// Number of waiting packets per core that `arrivals = "keep_depth"` maintains. Completions of sends count as well
    /// where `queue_pair.quirks.send_completions` is set.
    #[serde(default)]
    depth: u32,
    /// Number of packets per burst, for `arrivals = "burst"`.
    #[serde(default)]
    burst: u32,
    /// Time from the start of a packet to the start of the next one in a burst, for `arrivals = "burst"`. When absent,
    /// packets are back to back.
    #[serde(default)]
    burst_gap: Option<Span>,
    /// Time from the start of a burst to the start of the next one, for `arrivals = "burst"`, instead of `rate`. It has no
    /// effect on a run within one burst.
    #[serde(default)]
    burst_period: Option<Span>,
    /// Core of the tenant to which a packet goes that belongs to no flow: "random" (the default), "round_robin" or
    /// "shortest_queue"; or "flow" for `arrivals = "closed"`, with or without `flows`. Packets of a capture go to the cores of
    /// their flows. Without effect on a single core, and with `arrivals = "keep_depth"`, which gives each core its packets.
    #[serde(default)]
    spread: SpreadSpec,
    /// Coefficient of variation of gaps (standard deviation over mean), for `arrivals = "uniform"` (up to 0.577, which
    /// is also its default), "log_normal" and "pareto" (1 when absent).
    #[serde(default)]
    cv: Option<f64>,
    /// Maximum number of requests without a reply, for `arrivals = "closed"`: over all cores together, or with CC-NIC
    /// per queue pair.
    #[serde(default)]
    outstanding: u32,
    /// Time after which a request without a reply is given up and the next one is sent, for `arrivals = "closed"`. The
    /// default is 1 ms. It has an effect only where a reply comes later, or not at all.
    #[serde(default = "timeout")]
    timeout: Span,
    /// Wire between the generator and an integrated NIC. When absent, there is no wire. An Ethernet NIC has a link of
    /// its own.
    #[serde(default)]
    link: Option<WireSpec>,
    /// Ethernet address that packets go to in the captures that `run --pcap` writes, replayed ones included. The default is
    /// "02:00:00:00:00:01".
    #[serde(default)]
    destination_mac: Option<Mac>,
    /// Ethernet address that packets come from in the captures that `run --pcap` writes. When absent, that of the replayed
    /// capture, or "02:00:00:00:00:02".
    #[serde(default)]
    source_mac: Option<Mac>,
    /// Offset in bytes from the frame's start at which a frame carries its time of sending in the captures that `run --pcap`
    /// writes. The default is 42.
    #[serde(default = "stamp")]
    stamp: u32,
    /// Rare long stalls of the application. When absent, there are none.
    #[serde(default)]
    spikes: Option<SpikeSpec>,
    /// Capture to replay, for `arrivals = "pcap"`.
    #[serde(default)]
    pcap: Option<PcapSpec>,
    /// Senders of the TCP flows that an `app` of kind "tcp_receive" receives.
    #[serde(default)]
    dctcp: Option<DctcpSpec>,
}
fn timeout() -> Span {
    Span(1_000_000_000)
}
/// Offset in bytes of the first byte behind the headers of Ethernet, IPv4 and UDP.
fn stamp() -> u32 {
    42
}

impl Default for TrafficSpec {
    /// Traffic without packets.
    fn default() -> TrafficSpec {
        TrafficSpec {
            process: ArrivalProcess::None,
            packet: None,
            sizes: None,
            flows: None,
            protocol: Protocol::Udp,
            spread: SpreadSpec::Random,
            link: None,
            destination_mac: None,
            source_mac: None,
            stamp: stamp(),
            spikes: None,
            dctcp: None,
        }
    }
}

impl TrafficSpec {
    /// Sizes of frames, checksum included, of applications whose requests do not set them.
    pub fn frames(&self) -> Vec<SizeWeight> {
        match &self.sizes {
            Some(s) => s.table(),
            None => vec![SizeWeight { size: self.frame(), weight: 1 }],
        }
    }

    /// Size of every frame, where there is only one size.
    pub fn frame(&self) -> Size {
        self.packet.unwrap_or(Size(1024))
    }

    /// Largest and mean frame size, in bytes.
    pub fn frame_sizes(&self) -> (u64, f64) {
        let t = self.frames();
        let weights: f64 = t.iter().map(|s| f64::from(s.weight)).sum();
        let bytes: f64 = t.iter().map(|s| s.size.0.to_f64() * f64::from(s.weight)).sum();
        (t.iter().map(|s| s.size.0).max().unwrap_or(0), bytes / weights)
    }
}

/// Whether the traffic, rather than the application, determines the size of requests.
pub fn sets_no_size(app: &AppSpec) -> bool {
    app.largest(Some(Size(1))) == Some(Size(1))
}

/// Shortest and longest Ethernet frame in bytes, checksum included (IEEE 802.3, 3.2.7; the longest are jumbo frames).
const FRAMES: (u64, u64) = (64, 65_535);

/// Checks the traffic of a scenario, as far as it does not depend on the applications.
///
/// # Errors
/// Returns one clause that names key, value and what would be valid.
pub fn check(s: &Scenario) -> Check {
    let t = &s.traffic;
    frames(t)?;
    flows(t)?;
    shortest_queue(s)?;
    if let Some(l) = &t.link {
        need((1_000_000..=1_600_000_000_000).contains(&l.rate.0), || {
            format!("traffic.link.rate = \"{}\" is not within 1 Mbps to 1.6 Tbps", l.rate)
        })?;
        need(l.propagation.0 <= 1_000_000_000_000, || {
            format!("traffic.link.propagation = \"{}\" is more than 1 s", l.propagation)
        })?;
        let ethernet = s.peripherals.iter().any(|p| p.ethernet().is_some());
        need(!ethernet, || {
            "traffic.link is for a NIC on the chip; that of an Ethernet NIC is its peripheral's".into()
        })?;
    }
    rates(s)
}

/// Checks the sizes of frames, and that they have room for a time of sending.
pub(super) fn frames(t: &TrafficSpec) -> Check {
    need(t.packet.is_none() || t.sizes.is_none(), || {
        "traffic.packet and traffic.sizes are both given; keep one of them".into()
    })?;
    let table = matches!(t.sizes, Some(SizesSpec::Table(_)));
    let frames = t.frames();
    need(frames.iter().any(|f| f.weight > 0), || "traffic.sizes has no size of a positive weight".into())?;
    for (i, f) in frames.iter().enumerate() {
        let key = if table { format!("traffic.sizes[{i}].size") } else { "traffic.packet".into() };
        need(f.size.0 >= FRAMES.0, || {
            format!("{key} = \"{}\" is below the {} bytes of the shortest Ethernet frame", f.size, FRAMES.0)
        })?;
        need(f.size.0 <= FRAMES.1, || {
            format!("{key} = \"{}\" is more than the {} bytes of a frame", f.size, FRAMES.1)
        })?;
    }
    let shortest = frames.iter().map(|f| f.size.0).min().unwrap_or(0);
    let room = shortest.saturating_sub(u64::from(CHECKSUM) + STAMP);
    let headers = if t.protocol == Protocol::Udp { stamp() } else { 14 };
    need((headers.into()..=room).contains(&t.stamp.into()), || {
        format!(
            "traffic.stamp = {} is not within {headers} to {room}, where a frame of {shortest} bytes has room for it",
            t.stamp
        )
    })
}

/// Checks for keys of an arrival process other than the one chosen.
fn arrivals(t: &WrittenTraffic) -> Check {
    let text = |v: &dyn Display| format!("\"{v}\"");
    let file = t.pcap.as_ref().map(|p| ("pcap.file", text(&p.file)));
    let rate = t.rate.map(|r| ("rate", text(&r)));
    let default = TrafficSpec::default();
    let given_up = (t.timeout != timeout()).then(|| ("timeout", text(&t.timeout)));
    let given = |key, n: u32| (n > 0).then(|| (key, n.to_string()));
    let sizes = (t.sizes != default.sizes).then(|| ("sizes", spelt(&t.sizes)));
    let protocol = (t.protocol != default.protocol).then(|| ("protocol", spelt(t.protocol)));
    let spread = (t.spread != default.spread).then(|| ("spread", spelt(t.spread)));
    let made = t.arrivals != ArrivalsSpec::Pcap;
    let at_a_rate = !matches!(t.arrivals, ArrivalsSpec::Closed | ArrivalsSpec::KeepDepth | ArrivalsSpec::None);
    for (key, of, fits) in [
        (file, "\"pcap\"", t.arrivals == ArrivalsSpec::Pcap),
        (given("burst", t.burst), "\"burst\"", t.arrivals == ArrivalsSpec::Burst),
        (t.burst_gap.map(|g| ("burst_gap", text(&g))), "\"burst\"", t.arrivals == ArrivalsSpec::Burst),
        (t.burst_period.map(|p| ("burst_period", text(&p))), "\"burst\"", t.arrivals == ArrivalsSpec::Burst),
        (given("depth", t.depth), "\"keep_depth\"", t.arrivals == ArrivalsSpec::KeepDepth),
        (given("outstanding", t.outstanding), "\"closed\"", t.arrivals == ArrivalsSpec::Closed),
        (given_up, "\"closed\"", t.arrivals == ArrivalsSpec::Closed),
        (rate, "\"poisson\", \"fixed\" and others that have one", at_a_rate),
        (t.packet.map(|p| ("packet", text(&p))), "\"fixed\" and others whose packets are made", made),
        (sizes, "\"fixed\" and others whose packets are made", made),
        (protocol, "\"fixed\" and others whose packets are made", made),
        (spread, "\"fixed\" and others whose packets are made", made),
    ] {
        let Some((key, value)) = key else { continue };
        need(fits, || {
            let here = spelt(t.arrivals);
            format!(
                "traffic.{key} = {value} is for traffic.arrivals = {of}, which is {here} here; change one of the two"
            )
        })?;
    }
    Ok(())
}

/// Checks that only keys of one arrival process are given.
fn one_process(t: &WrittenTraffic) -> Check {
    arrivals(t)?;
    need(t.timeout.0 > 0, || "traffic.timeout = \"0 ps\" must be positive".into())?;
    if let Some(cv) = t.cv {
        let most = match t.arrivals {
            ArrivalsSpec::Uniform => Gaps::WIDEST,
            ArrivalsSpec::LogNormal | ArrivalsSpec::Pareto => 100.0,
            a => {
                let what = "is for traffic.arrivals = \"uniform\", \"log_normal\" or \"pareto\"";
                return Err(format!("traffic.cv {what}, which is \"{}\" here", word(a)));
            }
        };
        need(cv > 0.0 && cv <= most, || {
            format!("traffic.cv = {cv} is not above 0 and up to {most:.3} for arrivals = \"{}\"", word(t.arrivals))
        })?;
    }
    need(t.burst_gap.is_none_or(|g| g.0 > 0), || {
        "traffic.burst_gap = \"0 ps\" must be positive; leave it out for packets back to back".into()
    })?;
    let Some(period) = t.burst_period else { return Ok(()) };
    need(t.rate.is_none(), || "traffic.rate and traffic.burst_period are both given; keep one of them".into())?;
    let lasts = t.burst_gap.map_or(0, |g| g.0).saturating_mul(t.burst.into());
    need(period.0 > 0 && lasts <= period.0, || {
        format!("traffic.burst_period = \"{period}\" is shorter than a burst of {} packets", t.burst)
    })
}

/// Checks that `spread = "shortest_queue"` is used only with a NIC on the chip, because a load generator behind a wire
/// does not know the queues.
fn shortest_queue(s: &Scenario) -> Check {
    let on_port = s.ringed().is_some() && s.peripherals.iter().any(|p| p.ethernet().is_some());
    need(s.traffic.spread != SpreadSpec::ShortestQueue || !on_port, || {
        "traffic.spread = \"shortest_queue\" is for a NIC on the chip; behind a wire nobody knows the queues: choose round_robin".into()
    })
}

fn flows(t: &TrafficSpec) -> Check {
    need(t.spread != SpreadSpec::Flow || t.arrivals() == ArrivalsSpec::Closed, || {
        format!(
            "traffic.spread = \"flow\" is of the clients of traffic.arrivals = \"closed\", which is \"{}\" here; choose round_robin",
            word(t.arrivals())
        )
    })?;
    let Some(n) = t.flows else { return Ok(()) };
    need(matches!(t.spread, SpreadSpec::Random | SpreadSpec::Flow), || {
        format!(
            "traffic.spread = \"{}\" beside traffic.flows = {n}: the hash of a flow says where it goes; leave it out",
            word(t.spread)
        )
    })?;
    need((1..=MOST_FLOWS).contains(&n), || format!("traffic.flows = {n} is not within 1 to {MOST_FLOWS}"))?;
    need(n == 1 || t.protocol == Protocol::Udp, || {
        format!("traffic.flows = {n} needs traffic.protocol = \"udp\": RSS sees one flow in plain Ethernet")
    })?;
    let (how, fits) = match t.arrivals() {
        ArrivalsSpec::Pcap => ("are those of the capture", false),
        ArrivalsSpec::KeepDepth => ("are not chosen where each core always has packets waiting", false),
        _ => ("", true),
    };
    need(fits, || format!("traffic.flows = {n}: flows {how}"))
}

/// Checks that rates in bits have known packet sizes, and that no rate exceeds that of the wire.
fn rates(s: &Scenario) -> Check {
    let (t, peak) = (&s.traffic, s.run.load == Load::PeakLoss);
    let tenant = s.find_tenant(serves);
    let sized = tenant.is_none_or(|i| sets_no_size(&s.tenant(i).app));
    let captured = t.arrivals() == ArrivalsSpec::Pcap;
    if let (false, Some(i)) = (sized || captured, tenant) {
        need(t.sizes.is_none(), || {
            format!("traffic.sizes: the application of tenant[{i}] sets its packets' sizes itself")
        })?;
    }
    for (key, rate) in [("traffic.rate", t.rate()), ("run.step", s.run.step)] {
        let Some(r) = rate else { continue };
        need(sized || captured || matches!(r, OfferedRate::Packets(_)), || {
            format!(
                "{key} = \"{r}\" is in bits, but packets have sizes that the application sets; give packets per second"
            )
        })?;
    }
    let search = s.run.load.searches();
    need(t.burst_period().is_none() || !search, || {
        "run.load searches for a rate, which traffic.burst_period fixes; remove it".into()
    })?;
    need(!s.run.step.is_some_and(OfferedRate::is_zero), || "run.step = 0 must be positive".into())?;
    need(s.run.loss > 0.0 && s.run.loss < 1.0, || format!("run.loss = {} is not above 0 and below 1", s.run.loss))?;
    // The number of packets that meet the objective must not be too small.
    need(!peak || s.run.requests.to_f64() * s.run.loss >= 10.0, || {
        let least = (10.0 / s.run.loss).ceil();
        format!("run.requests = {} cannot tell a loss of {}; give {least} or more", s.run.requests, s.run.loss)
    })?;
    let bytes = t.frame_sizes().1;
    if let Some(r) = t.rate().filter(|r| s.run.load == Load::Fixed && !r.is_zero()) {
        let last = s.run.packets().to_f64() / r.packets(bytes);
        ends(&s.run, &format!("traffic.rate = \"{r}\""), last)?;
    }
    if !sized || captured {
        return Ok(());
    }
    if let Some(r) = t.rate().filter(|_| !peak) {
        carries(s, "traffic.rate", &r, r.packets(bytes), bytes)?;
    }
    if let Some(r) = s.run.step {
        carries(s, "run.step", &r, r.packets(bytes), bytes)?;
    }
    if let Some(p) = t.burst_period() {
        carries(s, "traffic.burst_period", &p, f64::from(t.burst()) * 1e12 / p.0.to_f64(), bytes)?;
    }
    let (Some(rate), Some(gap)) = (t.rate(), t.burst_gap()) else { return Ok(()) };
    need(rate.packets(bytes) * gap.0.to_f64() <= 1e12 * (1.0 + 1e-9), || {
        format!(
            "traffic.burst_gap = \"{gap}\" lets fewer packets come than traffic.rate = \"{rate}\"; give a shorter gap"
        )
    })
}

/// Whether a search varies the rate of `tenant`'s packets: the tenant's own traffic, if any, sets no rate, and sends packets
/// without waiting for others.
pub fn is_searched(s: &Scenario, tenant: TenantId) -> bool {
    s.tenant(tenant).traffic.as_ref().is_none_or(|own| {
        own.rate().is_none() && !matches!(own.arrivals(), ArrivalsSpec::Closed | ArrivalsSpec::KeepDepth)
    })
}

/// Checks that a search has a tenant whose rate it may vary.
pub(super) fn searched(s: &Scenario) -> Check {
    if !s.run.load.searches() {
        return Ok(());
    }
    let mut serving = s.tenant_ids().filter(|t| serves(s.tenant(*t)));
    let Some(first) = serving.clone().next() else {
        let Some(i) = s.ccnic_tenant() else { return Ok(()) };
        return Err(format!(
            "run.load = \"{}\" searches for the rate of a load generator beyond a wire, and tenant[{}] has its packets from the \
             threads of CC-NIC; choose run.load = \"fixed\", and sweep traffic.rate",
            super::check::word(s.run.load),
            i.index()
        ));
    };
    need(serving.any(|t| is_searched(s, t)), || {
        format!(
            "run.load = \"{}\" searches for the rate of a tenant whose own traffic sets none, and tenant[{i}].traffic and that of \
             every other tenant that serves packets set theirs; leave tenant[{i}].traffic.rate out, or choose run.load = \"fixed\"",
            super::check::word(s.run.load),
            i = first.index()
        )
    })
}

/// Checks that a run whose last packet arrives after `seconds`, as `key` says, does not reach the end of simulated time.
///
/// # Errors
/// Returns one clause with keys and values when it does.
pub fn ends(run: &RunSpec, key: &str, seconds: f64) -> Check {
    const HOUR: f64 = 3600.0;
    let (hours, most) = (seconds / HOUR, Time::END.as_secs() / HOUR);
    need(hours <= most, || {
        format!("run.requests = {} at {key} are {hours:.0} hours; {most} are the most", run.requests)
    })
}

/// Maximum number of packets of `bytes` bytes per second on the wire between `tenant`'s generator and the host; None without
/// a wire.
pub fn most_packets(s: &Scenario, tenant: TenantId, bytes: f64) -> Option<f64> {
    line_rate(s, tenant).map(|(rate, beside)| rate.0.to_f64() / (8.0 * (bytes + f64::from(beside))))
}

/// Checks that the wire between generator and host carries `pps` packets per second, which `key` asks for.
///
/// # Errors
/// Returns one clause with key and value when it does not.
pub fn carries(s: &Scenario, key: &str, value: &dyn Display, pps: f64, bytes: f64) -> Check {
    let served = s.tenant_ids().filter(|t| serves(s.tenant(*t)));
    let rates = served.filter_map(|t| most_packets(s, t, bytes));
    let any = || s.tenant_ids().next().and_then(|t| most_packets(s, t, bytes));
    let most = rates.reduce(f64::min).or_else(any).unwrap_or(f64::INFINITY);
    need(pps <= most * (1.0 + 1e-9), || {
        let (mpps, gbps) = (most / 1e6, most * 8.0 * bytes / 1e9);
        format!(
            "{key} = \"{value}\" is more than the link carries: {mpps:.4} Mpps of {bytes:.0} bytes, or {gbps:.4} Gbps"
        )
    })
}

/// Time that a packet takes over the wire between `tenant`'s generator and the host; zero without a wire.
pub fn flight(s: &Scenario, tenant: TenantId) -> Time {
    let of_nic = || s.nic_of(tenant).map(|(_, nic)| nic.propagation);
    s.traffic_of(tenant).link.map(|l| l.propagation).or_else(of_nic).map_or(Time::ZERO, Time::from)
}

/// Rate of the wire between `tenant`'s generator and the host, and the number of bytes that a frame takes on the wire beyond
/// its own; None without a wire.
pub fn line_rate(s: &Scenario, tenant: TenantId) -> Option<(Bandwidth, u32)> {
    let t = s.traffic_of(tenant);
    let checksum = if t.arrivals() == ArrivalsSpec::Pcap { CHECKSUM } else { 0 };
    let of_nic = || s.nic_of(tenant).map(|(_, nic)| nic.link);
    let rate = t.link.map(|l| l.rate).or_else(of_nic)?;
    Some((rate, BETWEEN_FRAMES + checksum))
}
