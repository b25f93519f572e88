//! What a user writes. Field docs become the JSON schema, the command-line help and the Python stubs.

pub use super::traffic::{
    Arrivals, Mix, PcapSpec, Protocol, SizeWeight, SizesSpec, SpikeSpec, Spread, Timing, TrafficSpec, WireSpec,
};
use crate::app::transfer::Written;
use crate::app::{AppSpec, Origin, Work};
use crate::core::CoreSpec;
use crate::device::iio::IioSpec;
use crate::device::nic::{EthernetSpec, NicSpec, RingsSpec};
use crate::device::pcie::PcieSpec;
pub use crate::device::PeripheralSpec;
use crate::kernel::units::{OfferedRate, Size, Span};
use crate::kernel::TenantId;
use crate::memory::dram::DramSpec;
use crate::memory::nodes::NodesSpec;
use crate::memory::spec::HierarchySpec;
use crate::placement::PlacementSpec;
use crate::stack::block::BlockSpec;
use crate::stack::ccnic::spec::{CcnicSpec, Mode};
use crate::stack::napi::Costs;
use crate::stack::pmd::{PipelineSpec, PollModeSpec, Recycling};
use crate::stack::qp::QpSpec;
use crate::stack::tcp::TcpSpec;
use crate::stack::udp::UdpSpec;
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
    /// Sockets, or a processor and an accelerator with coherent memory; one when absent. Caches, memory and the cores' count
    /// of the tables above are each node's, unless `nodes.cores` says how many cores that are.
    #[serde(default)]
    pub nodes: Option<NodesSpec>,
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
    /// The Ethernet NIC behind a PCIe port: what `[[peripheral]]` of that kind does not say.
    #[serde(default)]
    pub ethernet: Option<EthernetSpec>,
    /// The poll-mode driver.
    #[serde(default)]
    pub poll_mode: Option<PollModeSpec>,
    /// The kernel's TCP receive path.
    #[serde(default)]
    pub tcp: Option<TcpSpec>,
    /// The kernel's sockets over UDP.
    #[serde(default)]
    pub udp: Option<UdpSpec>,
    /// CC-NIC: what a scenario's table `ccnic` does not say.
    #[serde(default)]
    pub ccnic: Option<CcnicSpec>,
    /// The kernel's block layer.
    #[serde(default)]
    pub block: Option<BlockSpec>,
    /// Where each number comes from: key path to "datasheet: ...", "paper: ...", "artifact: ...", "standard: ...",
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
    /// A number of ways, counted from the top way down.
    Count(u32),
    /// Ways by number, such as `0-3`.
    Range(String),
}

/// A group of cores that runs one application.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TenantSpec {
    /// For messages and tables.
    pub name: String,
    /// Logical cores, taken in order from the platform's. With `platform.core.threads = 2` those beyond a node's cores are second
    /// hardware threads.
    pub cores: u32,
    /// The node whose cores these are, and whose memory its data is in.
    #[serde(default)]
    pub node: u8,
    /// LLC ways that this tenant's L2 victims may fill (CAT); all when absent.
    #[serde(default)]
    pub llc_ways: Option<WaysSpec>,
    /// Size of each of its cores' L2 instead of the platform's, of as many ways.
    #[serde(default)]
    pub l2_size: Option<Size>,
    /// Differentiated services code point of its packets, 0 to 63.
    #[serde(default)]
    pub dscp: u8,
    /// Who hands packets to the application; absent, the stack that its kind of application has by default: queue pairs on
    /// the NIC on the chip; or, for `tcp_receive`, the kernel over a NIC that completes each frame with a line of its own.
    #[serde(default)]
    pub stack: Option<StackSpec>,
    /// What a poll-mode driver does with the buffer of a packet that the application has yet to process.
    #[serde(default)]
    pub recycling: Recycling,
    /// Cores under a poll-mode driver in pairs, with a ring in memory between them (DPDK's pipeline model). Absent: each runs to
    /// completion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<PipelineSpec>,
    /// What runs.
    pub app: AppSpec,
}

impl TenantSpec {
    /// Its cores that receive packets: the first ones.
    pub fn receivers(&self) -> u32 {
        match &self.app {
            _ if self.pipeline.is_some() => self.cores / 2,
            // The last one is the application's.
            AppSpec::TcpEcho(_) => self.cores.saturating_sub(1),
            _ => self.cores,
        }
    }

    /// Whose packets its cores send. Only a driver of a NIC asks what loops back: CC-NIC's threads have that of their own.
    pub fn origin(&self) -> Origin {
        match self.app.origin() {
            Origin::Loop if self.stack != Some(StackSpec::PollMode) => Origin::Network,
            origin => origin,
        }
    }

    /// Whether its cores send packets to themselves, through a NIC that loops back.
    pub fn loops(&self) -> bool {
        self.origin() == Origin::Loop
    }

    /// Where its cores' work comes from: what loops back comes as packets.
    pub fn work(&self) -> Work {
        if self.loops() {
            return Work::Packets;
        }
        self.app.work()
    }

    /// Requests that its clients have without a reply, where the application says it.
    pub fn requests(&self) -> u32 {
        match &self.app {
            AppSpec::TcpEcho(e) => e.flows.saturating_mul(e.pipelined),
            _ => 0,
        }
    }

    /// Whether its packets come through descriptor rings in memory.
    pub fn has_rings(&self) -> bool {
        matches!(
            (self.stack, self.work()),
            (Some(StackSpec::PollMode | StackSpec::Kernel | StackSpec::Ccnic), Work::Packets)
                | (Some(StackSpec::Kernel), Work::Kernel)
        )
    }
}

/// Who hands packets to an application.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StackSpec {
    /// Queue pairs of the NIC on the chip.
    QueuePair,
    /// A poll-mode driver of the Ethernet NIC behind a PCIe port.
    PollMode,
    /// CC-NIC: descriptors and payload in coherent memory, and threads of the NIC on cores of their own.
    Ccnic,
    /// The kernel, which receives from that NIC: a socket over UDP on each core, or a TCP connection for `tcp_receive`.
    Kernel,
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
    /// The highest rate of which at most `loss` is lost (bandwidth test; maximum sustainable bandwidth).
    PeakLoss,
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
    /// Objective of `peak_loss`: share of the offered packets that may be lost. Those by which queues grow count as lost.
    #[serde(default = "loss")]
    pub loss: f64,
    /// Rates that a search tries are multiples of this; as fine as `search_tolerance` when absent.
    #[serde(default)]
    pub step: Option<OfferedRate>,
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
    /// Bins of the table `timeline`: what moved in each, and where received lines are; a few samples when absent.
    #[serde(default)]
    pub timeline: Option<Span>,
    /// Relative width at which a search stops.
    #[serde(default = "tolerance")]
    pub search_tolerance: f64,
}
fn slo() -> f64 {
    100.0
}
fn loss() -> f64 {
    0.01
}
pub(super) fn requests() -> u64 {
    60_000
}
pub(super) fn span() -> Span {
    Span(500_000_000)
}
fn tolerance() -> f64 {
    0.006
}

/// A second host, at the other end of the Ethernet NIC's link, whose software sends the traffic and takes the replies.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientSpec {
    /// Its hardware: the name or path of a platform file; the scenario's own platform when absent.
    #[serde(default)]
    pub platform: Option<Platform>,
    /// Cores that send and receive; requests go to them in turn.
    pub cores: u32,
    /// Who hands packets to them: only "poll_mode" is built.
    #[serde(default = "poll_mode")]
    pub stack: StackSpec,
    /// What they run: an application of kind "load_generator".
    pub app: AppSpec,
    /// Where its NIC's lines go; as the scenario's when absent.
    #[serde(default)]
    pub placement: Option<PlacementSpec>,
    /// Its NIC: what its platform's does not say. Rate and flight time are those of the link.
    #[serde(default)]
    pub ethernet: Option<EthernetSpec>,
}
fn poll_mode() -> StackSpec {
    StackSpec::PollMode
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
    /// The interface over coherent memory, for a tenant with `stack = "ccnic"`; what is not said here the platform's table
    /// says.
    #[serde(default)]
    pub ccnic: Option<CcnicSpec>,
    /// Packets.
    #[serde(default)]
    pub traffic: TrafficSpec,
    /// The host whose software is the load generator. Absent: a generator that costs no time and loses nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Box<ClientSpec>>,
    /// Measurement.
    pub run: RunSpec,
}

/// Who drives a NIC whose descriptor rings lie in memory, and what that costs.
#[derive(Clone, Debug)]
pub enum Driver<'a> {
    /// A poll-mode driver of DPDK.
    PollMode(&'a PollModeSpec),
    /// The driver of an operating system's kernel, which interrupts wake.
    Kernel(Costs),
}

impl Driver<'_> {
    /// Packets that it takes at once.
    pub fn burst(&self) -> u32 {
        match self {
            Driver::PollMode(p) => p.burst,
            Driver::Kernel(_) => 1,
        }
    }
}

/// What a tenant has whose packets come through such rings.
#[derive(Clone, Debug)]
pub struct RingSite<'a> {
    /// The tenant, counted from 0.
    pub tenant: TenantId,
    /// The descriptor rings of each of its queues.
    pub rings: RingsSpec,
    /// The driver of the rings.
    pub driver: Driver<'a>,
}

/// Cores beside a tenant's own, and their node.
#[derive(Clone, Copy, Debug)]
pub struct Peers {
    /// The tenant, counted from 0.
    pub tenant: TenantId,
    /// The number of cores beside the tenant's own.
    pub cores: u32,
    /// The node of those cores, counted from 0.
    pub node: u32,
}

impl Scenario {
    /// The tenant of that place in the file.
    pub fn tenant(&self, id: TenantId) -> &TenantSpec {
        &self.tenants[id.index()]
    }

    /// The first tenant that `is` names.
    pub fn find_tenant(&self, is: impl Fn(&TenantSpec) -> bool) -> Option<TenantId> {
        self.tenants.iter().position(is).map(TenantId::new)
    }

    /// The tenant whose packets come through descriptor rings in memory, if there is one.
    pub fn ringed(&self) -> Option<RingSite<'_>> {
        let tenant = self.find_tenant(TenantSpec::has_rings)?;
        let nic = self.peripherals.iter().find_map(PeripheralSpec::ethernet)?;
        let driver = match self.tenant(tenant).stack {
            Some(StackSpec::Kernel) => {
                let (tcp, udp) = (self.platform.tcp.clone()?, self.platform.udp.clone()?);
                Driver::Kernel(match self.tenant(tenant).app.work() {
                    Work::Kernel => Costs::of_tcp(tcp, udp, nic.frame_lines()),
                    _ => Costs::of_udp(tcp, udp),
                })
            }
            _ => Driver::PollMode(self.platform.poll_mode.as_ref()?),
        };
        Some(RingSite { tenant, rings: nic.rings.clone().unwrap_or_default(), driver })
    }

    /// The tenant whose packets go through CC-NIC.
    pub fn ccnic_tenant(&self) -> Option<TenantId> {
        self.find_tenant(|t| t.stack == Some(StackSpec::Ccnic))
    }

    /// The tenant whose TCP is TAS's.
    pub fn tas_tenant(&self) -> Option<TenantId> {
        self.find_tenant(|t| matches!(t.app, AppSpec::TcpEcho(_)))
    }

    /// Whether CC-NIC's NIC forwards to and from a PCIe NIC.
    pub fn overlay(&self) -> bool {
        self.ccnic_tenant().is_some() && self.ccnic.as_ref().is_some_and(|c| c.mode == Mode::Overlay)
    }

    /// The tenant whose threads work in pairs.
    pub fn paired_tenant(&self) -> Option<TenantId> {
        self.find_tenant(|t| matches!(t.app, AppSpec::Pingpong(_) | AppSpec::StreamTransfer(_)))
    }

    /// Cores that a tenant's threads work with: CC-NIC's NIC, or the other threads of pairs. They come after all others.
    pub fn peers(&self) -> Option<Peers> {
        let tenant = self.ccnic_tenant().or(self.paired_tenant())?;
        let all = self.tenant(tenant).receivers();
        let (cores, node) = match &self.tenant(tenant).app {
            AppSpec::Pingpong(p) => (all, p.peer_node.into()),
            AppSpec::StreamTransfer(t) => (if t.stores == Written::None { 0 } else { all }, t.peer_node.into()),
            _ => {
                let ccnic = self.ccnic.as_ref();
                (ccnic.and_then(|c| c.nic_threads).unwrap_or(all), ccnic.map_or(0, |c| c.nic_node))
            }
        };
        Some(Peers { tenant, cores, node })
    }

    /// Nodes of the machine.
    pub fn nodes(&self) -> NodesSpec {
        self.platform.nodes.clone().unwrap_or_default()
    }

    /// The client's host as a scenario of its own, which has no traffic but what the first host's plan makes.
    pub fn client_host(&self) -> Option<Scenario> {
        let c = self.client.as_ref()?;
        let tenant = TenantSpec {
            name: "load generator".into(),
            cores: c.cores,
            llc_ways: None,
            l2_size: None,
            dscp: 0,
            node: 0,
            stack: Some(c.stack),
            recycling: Recycling::RunToCompletion,
            pipeline: None,
            app: c.app.clone(),
        };
        let run = RunSpec { load: Load::Fixed, trace: None, timeline: None, ..self.run.clone() };
        Some(Scenario {
            name: format!("{}: client", self.name),
            seed: self.seed,
            platform: c.platform.as_ref().unwrap_or(&self.platform).clone(),
            placement: c.placement.as_ref().unwrap_or(&self.placement).clone(),
            rings: RingSpec::default(),
            tenants: vec![tenant],
            peripherals: c.ethernet.iter().cloned().map(PeripheralSpec::Ethernet).collect(),
            traffic: TrafficSpec::default(),
            client: None,
            ccnic: None,
            run,
        })
    }

    /// Cores that run the kernel's block layer for SSDs; they come after all tenants'.
    pub fn storage_cores(&self) -> u64 {
        let of = |p: &PeripheralSpec| if let PeripheralSpec::Ssd(s) = p { s.cores.into() } else { 0 };
        self.peripherals.iter().map(of).sum()
    }
}
fn seed() -> u64 {
    1
}
