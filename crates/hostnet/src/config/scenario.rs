//! What a user writes. Field docs become the JSON schema, the command-line help and the Python stubs.

use crate::app::AppSpec;
use crate::core::CoreSpec;
use crate::device::iio::IioSpec;
use crate::device::nic::NicSpec;
use crate::device::pcie::PcieSpec;
pub use crate::device::PeripheralSpec;
use crate::kernel::units::{Rate, Size, Span};
use crate::memory::dram::DramSpec;
use crate::memory::spec::HierarchySpec;
use crate::placement::PlacementSpec;
use crate::stack::block::BlockSpec;
use crate::stack::qp::QpSpec;
use crate::stack::tcp::TcpSpec;
use crate::traffic::dctcp::DctcpSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Hardware, and the software costs that come with it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Platform {
    /// Name that scenarios refer to.
    pub name: String,
    /// What it models.
    #[serde(default)]
    pub description: String,
    /// Reads of memory by a system that is otherwise idle, GB/s: of lines anywhere, at random times.
    #[serde(default)]
    pub background_read_gbs: f64,
    /// Cores.
    pub core: CoreSpec,
    /// Caches and crossbar.
    pub caches: HierarchySpec,
    /// Memory controllers and DRAM.
    pub memory: DramSpec,
    /// Integrated I/O controller.
    #[serde(default)]
    pub iio: Option<IioSpec>,
    /// Links between peripherals and the I/O controller.
    #[serde(default)]
    pub pcie: Option<PcieSpec>,
    /// Network interface.
    pub nic: NicSpec,
    /// Queue-pair library.
    pub queue_pair: QpSpec,
    /// The kernel's TCP receive path.
    #[serde(default)]
    pub tcp: Option<TcpSpec>,
    /// The kernel's block layer.
    #[serde(default)]
    pub block: Option<BlockSpec>,
    /// Where each number comes from: key path to "artifact: ...", "datasheet: ...", "paper: ...", "standard: ...",
    /// "measured: ...", "fitted: ..." or "assumed: ...".
    #[serde(default)]
    pub provenance: BTreeMap<String, String>,
}

/// Buffers between NIC and cores.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RingSpec {
    /// Receive buffers per core, used cyclically.
    pub rx_buffers: u32,
    /// Size of a receive buffer (and of a transmit buffer).
    pub buffer_size: Size,
    /// Transmit buffers per core, used cyclically.
    #[serde(default = "tx_buffers")]
    pub tx_buffers: u32,
    /// NeBuLa-style proactive drop: packets waiting at a core from which on arrivals are dropped; 0 is
    /// off.
    #[serde(default)]
    pub proactive_drop: u32,
}
fn tx_buffers() -> u32 {
    64
}

impl Default for RingSpec {
    /// For hosts without packets.
    fn default() -> RingSpec {
        RingSpec { rx_buffers: 64, buffer_size: Size(2048), tx_buffers: tx_buffers(), proactive_drop: 0 }
    }
}

/// LLC ways: a number counts from the top way down, a string such as "0-3" names them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum WaysSpec {
    Count(u32),
    Range(String),
}

/// A group of cores that runs one application.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TenantSpec {
    /// For messages and tables.
    pub name: String,
    /// Cores, taken in order from the platform's.
    pub cores: u32,
    /// LLC ways that this tenant's L2 victims may fill (CAT); all when absent.
    #[serde(default)]
    pub llc_ways: Option<WaysSpec>,
    /// What runs.
    pub app: AppSpec,
}

/// How packets arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Exponential gaps at `rate`.
    Poisson,
    /// Equal gaps at `rate`.
    Fixed,
    /// `burst` packets back to back every `burst` / `rate`.
    Burst,
    /// Each core always has `depth` packets waiting.
    KeepDepth,
    /// From a capture.
    Pcap,
    /// None.
    None,
}

/// Which core a packet goes to, where neither its content nor a standing queue says so.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Balance {
    /// Each is as likely.
    #[default]
    Random,
    /// The one with the fewest entries in its completion queue; in turn, among several.
    ShortestQueue,
}

/// Schedule of a replayed capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Timing {
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
    /// pcap or pcapng, relative to the scenario's file.
    pub file: String,
    /// Schedule.
    #[serde(default)]
    pub timing: Timing,
    /// For memcached, the UDP port of its server; 11211 when absent. For other applications, replays only what goes to
    /// this UDP or TCP port; all IP packets when absent.
    #[serde(default)]
    pub port: Option<u16>,
}

/// Rare long stalls of the application (Sweeper, section VI-F).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpikeSpec {
    /// Probability per request.
    pub probability: f64,
    /// Shortest stall.
    pub min: Span,
    /// Longest stall.
    pub max: Span,
}

/// What the clients do.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrafficSpec {
    /// Arrival process.
    pub arrivals: Arrivals,
    /// Mean rate over all cores; searches start from it when given.
    #[serde(default)]
    pub rate: Option<Rate>,
    /// Packet size, for applications whose requests do not set it.
    #[serde(default = "packet")]
    pub packet: Size,
    /// Which core a packet goes to.
    #[serde(default)]
    pub balance: Balance,
    /// Waiting packets per core that `keep_depth` maintains; completions of sends count, where the queue pair has such.
    #[serde(default)]
    pub depth: u32,
    /// Packets per burst of `burst`.
    #[serde(default)]
    pub burst: u32,
    /// Service-time spikes.
    #[serde(default)]
    pub spikes: Option<SpikeSpec>,
    /// Capture of `pcap`.
    #[serde(default)]
    pub pcap: Option<PcapSpec>,
    /// Senders of the TCP flows that `tcp_receive` cores receive.
    #[serde(default)]
    pub dctcp: Option<DctcpSpec>,
}
fn packet() -> Size {
    Size(1024)
}

impl Default for TrafficSpec {
    /// No packets.
    fn default() -> TrafficSpec {
        TrafficSpec {
            arrivals: Arrivals::None,
            rate: None,
            packet: packet(),
            balance: Balance::default(),
            depth: 0,
            burst: 0,
            spikes: None,
            pcap: None,
            dctcp: None,
        }
    }
}

/// What to look for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// Run at the given rate.
    Fixed,
    /// The highest Poisson (or other open-loop) rate with p99 latency within `slo_multiple` x the mean
    /// service time.
    PeakSlo,
    /// The highest rate at which nothing is dropped.
    PeakNodrop,
    /// As fast as the cores go, with `depth` packets waiting (keep_depth) or free-running tenants.
    Saturate,
    /// Nothing: sizes only, or a directed test.
    None,
}

/// Length of the run and what to search for.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// What to look for.
    pub load: Load,
    /// Objective of `peak_slo`: p99 latency over mean service time.
    #[serde(default = "slo")]
    pub slo_multiple: f64,
    /// Requests measured (of the tenants that serve packets).
    #[serde(default = "requests")]
    pub requests: u64,
    /// Requests before measuring; detected when absent.
    #[serde(default)]
    pub warmup_requests: Option<u64>,
    /// Time before measuring when no tenant serves packets; caches are filled without timing first.
    #[serde(default)]
    pub warmup_time: Option<Span>,
    /// Time measured when no tenant serves packets.
    #[serde(default = "span")]
    pub time: Span,
    /// Interval of a trace over time of the I/O controller's buffers and of pauses; no trace when absent.
    #[serde(default)]
    pub trace: Option<Span>,
    /// Relative width at which a search stops.
    #[serde(default = "tolerance")]
    pub search_tolerance: f64,
}
fn slo() -> f64 {
    100.0
}
fn requests() -> u64 {
    60_000
}
fn span() -> Span {
    Span(500_000_000)
}
fn tolerance() -> f64 {
    0.006
}

/// One point of a study, fully described.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// For tables and file names.
    pub name: String,
    /// Seed of every random stream.
    #[serde(default = "seed")]
    pub seed: u64,
    /// Hardware; in a scenario file, the name or path of a platform file.
    pub platform: Platform,
    /// Where packets go.
    pub placement: PlacementSpec,
    /// Buffers.
    #[serde(default)]
    pub rings: RingSpec,
    /// Who runs where.
    #[serde(rename = "tenant", default)]
    pub tenants: Vec<TenantSpec>,
    /// Peripherals behind the I/O controller.
    #[serde(rename = "peripheral", default)]
    pub peripherals: Vec<PeripheralSpec>,
    /// Packets.
    #[serde(default)]
    pub traffic: TrafficSpec,
    /// Measurement.
    pub run: RunSpec,
}

impl Scenario {
    /// Cores that run the kernel's block layer for SSDs; they come after all tenants'.
    pub fn storage_cores(&self) -> u64 {
        let of = |p: &PeripheralSpec| if let PeripheralSpec::Ssd(s) = p { s.cores.into() } else { 0 };
        self.peripherals.iter().map(of).sum()
    }
}
fn seed() -> u64 {
    1
}
