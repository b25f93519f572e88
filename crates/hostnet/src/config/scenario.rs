//! Scenario files: the structure that a user writes. Documentation comments of fields become the JSON schema, the
//! command-line help and the Python stubs.

pub use super::tenant::{Jobs, PollModeStack, ProbeTenant, StackSpec, TenantSpec, TenantStack, WaysSpec};
pub use super::traffic::{
    ArrivalProcess, ArrivalsSpec, BurstPace, Mix, PcapSpec, Protocol, ReplayTiming, SizeWeight, SizesSpec, SpikeSpec,
    SpreadSpec, TrafficSpec, WireSpec,
};
use crate::app::stream_transfer::Written;
use crate::app::{AppSpec, WorkSource};
use crate::core::CoreSpec;
use crate::device::iio::IioSpec;
use crate::device::nic::{EthernetSpec, NicSpec, RingsSpec};
use crate::device::pcie::PcieSpec;
pub use crate::device::PeripheralSpec;
use crate::kernel::units::{share, OfferedRate, Size, Span};
use crate::kernel::{Int, NodeId, PortId, TenantId};
use crate::memory::dram::DramSpec;
use crate::memory::nodes::NodesSpec;
use crate::memory::spec::HierarchySpec;
use crate::placement::PlacementSpec;
use crate::stack::block::BlockSpec;
use crate::stack::ccnic::spec::CcnicSpec;
use crate::stack::napi::KernelCosts;
use crate::stack::pmd::PollModeSpec;
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
    /// Name by which scenarios refer to the platform.
    pub name: String,
    /// Machine that the platform models, in words.
    #[serde(default)]
    pub description: String,
    /// Memory reads by a system that is otherwise idle, in GB/s: reads of lines anywhere, at random times. The default
    /// is 0.
    #[serde(default)]
    pub background_read_gbs: f64,
    /// Cores, with their clock, pipeline and prefetchers.
    pub core: CoreSpec,
    /// Cache hierarchy and the crossbar to the LLC.
    pub caches: HierarchySpec,
    /// Memory controllers and DRAM.
    pub memory: DramSpec,
    /// Nodes with coherent memory: sockets, or a processor and an accelerator. When absent, there is one node. The
    /// tables `caches` and `memory`, and `core.count`, are per node, unless `nodes.cores` gives the number of cores per
    /// node.
    #[serde(default)]
    pub nodes: Option<NodesSpec>,
    /// Integrated I/O controllers (IIO) between PCIe ports and the home agent; required for a `[[peripheral]]`.
    #[serde(default)]
    pub iio: Option<IioSpec>,
    /// PCIe links between peripherals and the I/O controllers; required for a `[[peripheral]]`.
    #[serde(default)]
    pub pcie: Option<PcieSpec>,
    /// Integrated NIC, on the chip.
    pub nic: NicSpec,
    /// Queue-pair library for the integrated NIC.
    pub queue_pair: QpSpec,
    /// Defaults of the Ethernet NIC behind a PCIe port, for the keys that a `[[peripheral]]` of kind "ethernet" leaves
    /// out.
    #[serde(default)]
    pub ethernet: Option<EthernetSpec>,
    /// Poll-mode driver of an Ethernet NIC; required for `stack = "poll_mode"`.
    #[serde(default)]
    pub poll_mode: Option<PollModeSpec>,
    /// Kernel's TCP receive path; required for `stack = "kernel"` and for an `app` of kind "tcp_receive".
    #[serde(default)]
    pub tcp: Option<TcpSpec>,
    /// Kernel's UDP sockets; required for `stack = "kernel"`.
    #[serde(default)]
    pub udp: Option<UdpSpec>,
    /// Defaults of CC-NIC, for the keys that a scenario's table `ccnic` leaves out.
    #[serde(default)]
    pub ccnic: Option<CcnicSpec>,
    /// Kernel's block layer; required for SSDs with `cores` above 0.
    #[serde(default)]
    pub block: Option<BlockSpec>,
    /// Sources of the platform's numbers: a map from key path to "datasheet: ...", "paper: ...", "artifact: ...",
    /// "standard: ...", "measured: ...", "fitted: ...", "read: ...", "base: ..." or "assumed: ...".
    #[serde(default)]
    pub provenance: BTreeMap<String, String>,
}

impl Platform {
    /// The nodes; a platform that does not say them has one.
    pub(super) fn nodes(&self) -> NodesSpec {
        self.nodes.clone().unwrap_or_default()
    }

    /// Number of cores of each node, whatever the number of nodes.
    pub(super) fn cores_per_node(&self) -> u32 {
        self.nodes.as_ref().and_then(|n| n.cores).unwrap_or(self.core.count)
    }

    /// The key that gives the number of cores of each node.
    pub(super) fn key_of_cores(&self) -> &'static str {
        if self.nodes().cores.is_some() {
            "nodes.cores"
        } else {
            "core.count"
        }
    }
}

/// Buffers through which the integrated NIC and the cores exchange packets.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RingSpec {
    /// Receive buffers per core, used cyclically: a power of two.
    pub rx_buffers: u32,
    /// Size of a receive buffer and of a transmit buffer.
    pub buffer_size: Size,
    /// Transmit buffers per core, used cyclically. The default is 64.
    #[serde(default = "tx_buffers")]
    pub tx_buffers: u32,
    /// Proactive drop, as in NeBuLa: number of packets waiting at a core at or above which arrivals are dropped. 0, the
    /// default, turns it off.
    #[serde(default)]
    pub proactive_drop: u32,
}
fn tx_buffers() -> u32 {
    64
}

impl Default for RingSpec {
    /// Buffers of a scenario without packets.
    fn default() -> RingSpec {
        RingSpec { rx_buffers: 64, buffer_size: Size(2048), tx_buffers: tx_buffers(), proactive_drop: 0 }
    }
}

/// Load of a run: a given one, or the objective of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// Run at the given rate.
    Fixed,
    /// Search for the highest Poisson (or other open-loop) rate with a p99 latency within `slo_multiple` times the mean
    /// service time, at which at most 1 % of the packets are lost and queues grow by at most 1 % of the packets served.
    PeakSlo,
    /// Search for the highest rate at which no packet is dropped and queues grow by at most 3 % of the packets that the
    /// host serves in a window: a longer run would drop some.
    PeakNodrop,
    /// Search for the highest rate of which at most `loss` is lost (bandwidth test; maximum sustainable bandwidth).
    PeakLoss,
    /// Run as fast as the cores allow, with `traffic.depth` packets waiting (`traffic.arrivals = "keep_depth"`) or
    /// free-running tenants.
    Saturate,
    /// Run no load: report sizes only, or run a directed test.
    None,
}

impl Load {
    /// Whether the run searches for a rate.
    pub fn searches(self) -> bool {
        matches!(self, Load::PeakSlo | Load::PeakNodrop | Load::PeakLoss)
    }
}

/// Length of the run, and objective of a search for a rate.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// Load of the run: a given one ("fixed", "saturate"), or a search for a rate ("peak_slo", "peak_nodrop",
    /// "peak_loss").
    pub load: Load,
    /// Objective of `load = "peak_slo"`: maximum ratio of p99 latency to mean service time. The default is 100.
    #[serde(default = "slo")]
    pub slo_multiple: f64,
    /// Objective of `load = "peak_loss"`: maximum share of the offered packets that may be lost. Packets by which
    /// queues grow count as lost. A number, or a percentage such as "1 %". The default is 0.01.
    #[serde(default = "loss", deserialize_with = "share::read")]
    #[schemars(schema_with = "share::schema")]
    pub loss: f64,
    /// Grid of the rates that a search tries, which are multiples of this. When absent, `search_tolerance` alone
    /// determines the resolution.
    #[serde(default)]
    pub step: Option<OfferedRate>,
    /// Half-width of the 95 % intervals, relative to their values, at which the measurement ends, such as 0.02 or "2 %". The
    /// measurement then lasts for at most `requests` or `time`, and for at least an eighth of that. Shares are also precise
    /// enough when the half-width is at most this number itself. Warm-ups and steps of a search then end as soon as they may,
    /// too. Windows of fewer than 1,024 `requests` are measured whole. When absent, the measurement lasts for `requests` or `time`.
    #[serde(default, deserialize_with = "share::read_optional")]
    #[schemars(schema_with = "share::schema_optional")]
    pub precision: Option<f64>,
    /// Metrics whose intervals `precision` is about. When empty, these are the metrics that lead a table of several runs.
    #[serde(default)]
    pub precision_of: Vec<String>,
    /// Number of measured requests, over all tenants that serve packets. The default is 60,000.
    #[serde(default = "requests")]
    pub requests: u64,
    /// Number of requests before the measurement, and at most so many with `precision`. When absent, the end of the warm-up is
    /// detected.
    #[serde(default)]
    pub warmup_requests: Option<u64>,
    /// Simulated time before the measurement when no tenant serves packets; caches are first filled in functional mode,
    /// without timing.
    #[serde(default)]
    pub warmup_time: Option<Span>,
    /// Simulated time that is measured when no tenant serves packets. The default is 500 us.
    #[serde(default = "span")]
    pub time: Span,
    /// Sampling interval of the trace of the I/O controllers' buffers and of pauses. When absent, there is no trace.
    #[serde(default)]
    pub trace: Option<Span>,
    /// Width of the bins of the table `timeline`, which shows the traffic in each bin and the locations of received
    /// lines. When absent, the table has only a few samples.
    #[serde(default)]
    pub timeline: Option<Span>,
    /// Relative width of the bracket at which a search stops, such as 0.01 or "1 %". The default is 0.006.
    #[serde(default = "tolerance", deserialize_with = "share::read")]
    #[schemars(schema_with = "share::schema")]
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

/// A second host at the other end of the Ethernet NIC's link. Software on this host sends the traffic and takes the
/// replies.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientSpec {
    /// Hardware of the second host: the name or path of a platform file. When absent, the scenario's own platform.
    #[serde(default)]
    pub platform: Option<Platform>,
    /// Number of cores that send and receive; requests go to them in turn.
    pub cores: u32,
    /// Stack of the second host's cores: "poll_mode" (the default), or "kernel", a UDP socket on each core.
    #[serde(default = "poll_mode")]
    pub stack: StackSpec,
    /// Application of the second host's cores; must be of kind "load_generator".
    pub app: AppSpec,
    /// Placement of the lines that the second host's NIC writes. When absent, the scenario's `placement` applies.
    #[serde(default)]
    pub placement: Option<PlacementSpec>,
    /// Ethernet NIC of the second host: the keys that differ from the platform's table `ethernet` or that this table
    /// lacks. Rate and flight time are those of the link to the first host.
    #[serde(default)]
    pub ethernet: Option<EthernetSpec>,
}
fn poll_mode() -> StackSpec {
    StackSpec::PollMode
}

/// A scenario: one point of a study, fully described.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Name of the scenario in tables and file names.
    pub name: String,
    /// Seed of every random stream. The default is 1.
    #[serde(default = "seed")]
    pub seed: u64,
    /// Hardware of the host: in a scenario file, the name or path of a platform file.
    pub platform: Platform,
    /// Placement of inbound data: the destination of lines that devices write, and the treatment of spent buffers.
    pub placement: PlacementSpec,
    /// Receive and transmit buffers between the integrated NIC and cores.
    #[serde(default)]
    pub rings: RingSpec,
    /// Tenants: groups of cores, each of which runs one application.
    #[serde(rename = "tenant", default)]
    pub tenants: Jobs,
    /// Peripherals behind the I/O controllers.
    #[serde(rename = "peripheral", default)]
    pub peripherals: Vec<PeripheralSpec>,
    /// CC-NIC, the interface over coherent memory, for tenants with `stack = "ccnic"`; keys that are left out are
    /// taken from `platform.ccnic`.
    #[serde(default)]
    pub ccnic: Option<CcnicSpec>,
    /// Packets that the tenants receive: arrival process, sizes and flows.
    #[serde(default)]
    pub traffic: TrafficSpec,
    /// Second host whose software is the load generator. When absent, the load generator takes no simulated time and
    /// loses nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Box<ClientSpec>>,
    /// Length and load of the run, or the objective of a search.
    pub run: RunSpec,
}

/// Driver of a NIC whose descriptor rings lie in memory, with its costs.
#[derive(Clone, Debug)]
pub enum RingDriver<'a> {
    /// A poll-mode driver of DPDK.
    PollMode(&'a PollModeSpec),
    /// The driver of an operating system's kernel, which interrupts wake.
    Kernel(KernelCosts),
}

impl RingDriver<'_> {
    /// Number of packets that the driver takes in a batch.
    pub fn burst(&self) -> u32 {
        match self {
            RingDriver::PollMode(p) => p.burst,
            RingDriver::Kernel(_) => 1,
        }
    }
}

/// Tenant whose packets come through descriptor rings in memory, with those rings and their driver.
#[derive(Clone, Debug)]
pub struct RingTenant<'a> {
    /// The tenant, counted from 0.
    pub tenant: TenantId,
    /// Port of the NIC that has the rings.
    pub port: PortId,
    /// The descriptor rings of each of its queues.
    pub rings: RingsSpec,
    /// The driver of the rings.
    pub driver: RingDriver<'a>,
}

/// Additional cores on which a tenant's threads run, with the node of these cores.
#[derive(Clone, Copy, Debug)]
pub struct Peers {
    /// The tenant, counted from 0.
    pub tenant: TenantId,
    /// The number of cores beside the tenant's own.
    pub cores: u32,
    /// The node of those cores, counted from 0.
    pub node: u32,
}

impl RunSpec {
    /// Packets that a fixed load needs: those of the window, and those of the warm-up when their number is given.
    pub fn packets(&self) -> u64 {
        self.requests + self.warmup_requests.unwrap_or(0)
    }
}

impl Scenario {
    /// The tenant of that place in the file.
    pub fn tenant(&self, id: TenantId) -> &TenantSpec {
        &self.tenants[id.index()]
    }

    /// Traffic of a tenant: its own, or that of the scenario.
    pub fn traffic_of(&self, id: TenantId) -> &TrafficSpec {
        self.tenant(id).traffic.as_deref().unwrap_or(&self.traffic)
    }

    /// The first tenant that `is` names.
    pub fn find_tenant(&self, is: impl Fn(&TenantSpec) -> bool) -> Option<TenantId> {
        self.tenants.iter().position(is).map(TenantId::new)
    }

    /// The tenants of that order in the file.
    pub fn tenant_ids(&self) -> impl Iterator<Item = TenantId> + Clone + use<> {
        (0..self.tenants.len()).map(TenantId::new)
    }

    /// The Ethernet NICs with their ports: each device of an entry of `peripheral` has a port, in the order of the entries.
    pub fn ethernets(&self) -> impl Iterator<Item = (PortId, &EthernetSpec)> {
        let mut next = 0;
        self.peripherals.iter().filter_map(move |p| {
            let port = PortId::new(next);
            next += p.count().to_usize();
            Some((port, p.ethernet()?))
        })
    }

    /// Sentences about fitted values that the NICs of the host, and of its client, have outgrown.
    pub fn outgrown(&self) -> Vec<String> {
        let nics = self.peripherals.iter().enumerate().filter_map(|(i, p)| Some((i, p.ethernet()?)));
        let own = nics.filter_map(|(i, nic)| nic.outgrown(&format!("peripheral[{i}]"), self.platform.pcie.as_ref()?));
        let client = self.client.as_ref().and_then(|c| {
            let pcie = c.platform.as_ref().unwrap_or(&self.platform).pcie.as_ref()?;
            c.ethernet.as_ref()?.outgrown("client.ethernet", pcie)
        });
        own.chain(client).collect()
    }

    /// The Ethernet NIC of `tenant` with its port: the one that the tenant names, or the first one.
    pub fn nic_of(&self, tenant: TenantId) -> Option<(PortId, &EthernetSpec)> {
        let name = self.tenant(tenant).stack.nic();
        self.ethernets().find(|(_, nic)| name.is_none_or(|n| nic.name.as_ref() == Some(n)))
    }

    /// The first tenant whose packets come through descriptor rings in memory, if there is one.
    pub fn ringed(&self) -> Option<RingTenant<'_>> {
        self.ringed_tenants().next()
    }

    /// The tenants whose packets come through descriptor rings in memory.
    pub fn ringed_tenants(&self) -> impl Iterator<Item = RingTenant<'_>> + '_ {
        self.tenant_ids().filter_map(|t| self.ring_of(t))
    }

    /// Rings and driver of `tenant`; None when its packets do not come through descriptor rings in memory.
    pub fn ring_of(&self, tenant: TenantId) -> Option<RingTenant<'_>> {
        let (port, nic) = self.nic_of(tenant).filter(|_| self.tenant(tenant).has_rings())?;
        let driver = match self.tenant(tenant).stack {
            TenantStack::Kernel { .. } => {
                let rings = nic.rings.clone().unwrap_or_default();
                let (tcp, udp) = (self.platform.tcp.clone()?, self.platform.udp.clone()?);
                RingDriver::Kernel(match self.tenant(tenant).app.work() {
                    WorkSource::Kernel => KernelCosts::of_tcp(tcp, udp, &rings, nic.frame_lines()),
                    _ => KernelCosts::of_udp(tcp, udp, &rings),
                })
            }
            _ => RingDriver::PollMode(self.platform.poll_mode.as_ref()?),
        };
        Some(RingTenant { tenant, port, rings: nic.rings.clone().unwrap_or_default(), driver })
    }

    /// The key and the value of the room for a frame in the buffers of a tenant's descriptor rings, for messages.
    pub fn frame_room(&self, ring: &RingTenant<'_>) -> String {
        let nic = self.nic_of(ring.tenant).map(|(_, nic)| nic);
        let i = self.peripherals.iter().position(|p| p.ethernet() == nic).unwrap_or_default();
        format!("peripheral[{i}].rings.buffer_size = \"{}\"", ring.rings.buffer_size)
    }

    /// Index of the tenant whose packets go through CC-NIC.
    pub fn ccnic_tenant(&self) -> Option<TenantId> {
        self.find_tenant(|t| t.stack.ccnic().is_some())
    }

    /// Index of the tenant whose TCP is TAS's.
    pub fn tas_tenant(&self) -> Option<TenantId> {
        self.find_tenant(|t| matches!(t.app, AppSpec::TcpEcho(_)))
    }

    /// CC-NIC of `tenant`; the default interface where the tenant has none.
    pub fn ccnic_of(&self, tenant: TenantId) -> CcnicSpec {
        self.tenant(tenant).stack.ccnic().cloned().unwrap_or_default()
    }

    /// Index of the tenant whose threads work in pairs.
    pub fn paired_tenant(&self) -> Option<TenantId> {
        self.find_tenant(|t| matches!(t.app, AppSpec::Pingpong(_) | AppSpec::StreamTransfer(_)))
    }

    /// Additional cores of all tenants, which are numbered after all others.
    pub fn peers(&self) -> impl Iterator<Item = Peers> + '_ {
        self.tenant_ids().filter_map(|t| self.peers_of(t))
    }

    /// Additional cores with which `tenant`'s threads work: CC-NIC's NIC, or the other threads of pairs.
    pub fn peers_of(&self, tenant: TenantId) -> Option<Peers> {
        let t = self.tenant(tenant);
        let all = t.receivers();
        let (cores, node) = match &t.app {
            AppSpec::Pingpong(p) => (all, p.peer_node.into()),
            AppSpec::StreamTransfer(t) => (if t.stores == Written::None { 0 } else { all }, t.peer_node.into()),
            _ => match t.stack.ccnic() {
                Some(c) => (c.nic_threads.unwrap_or(all), c.nic_node),
                None => return None,
            },
        };
        Some(Peers { tenant, cores, node })
    }

    /// Additional cores that all tenants have on `node`.
    pub fn peer_cores(&self, node: u32) -> u64 {
        self.peers().filter(|p| p.node == node).map(|p| u64::from(p.cores)).sum()
    }

    /// Nodes of the machine.
    pub fn nodes(&self) -> NodesSpec {
        self.platform.nodes()
    }

    /// Number of cores of each node, whatever the number of nodes.
    pub fn cores_per_node(&self) -> u32 {
        self.platform.cores_per_node()
    }

    /// The second host as a scenario of its own; the scenario of the first host plans all of its traffic.
    pub fn client_host(&self) -> Option<Scenario> {
        let c = self.client.as_ref()?;
        let tenant = TenantSpec {
            name: "load generator".into(),
            cores: c.cores,
            llc_ways: None,
            l2_size: None,
            dscp: 0,
            node: 0,
            stack: match c.stack {
                StackSpec::Kernel => TenantStack::Kernel { nic: None },
                _ => TenantStack::PollMode(PollModeStack::default()),
            },
            traffic: None,
            app: c.app.clone(),
        };
        let run = RunSpec { load: Load::Fixed, trace: None, timeline: None, ..self.run.clone() };
        Some(Scenario {
            name: format!("{}: client", self.name),
            seed: self.seed,
            platform: c.platform.as_ref().unwrap_or(&self.platform).clone(),
            placement: c.placement.as_ref().unwrap_or(&self.placement).clone(),
            rings: RingSpec::default(),
            tenants: Jobs::Tenants(vec![tenant]),
            peripherals: c.ethernet.iter().cloned().map(PeripheralSpec::Ethernet).collect(),
            traffic: TrafficSpec::default(),
            client: None,
            ccnic: None,
            run,
        })
    }

    /// Number of cores that run the kernel's block layer for SSDs; they are numbered after all tenants' cores.
    pub fn storage_cores(&self) -> u64 {
        self.storage_nodes().count().to_u64()
    }

    /// Node of each core that runs the kernel's block layer.
    pub fn storage_nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        let of = |p: &PeripheralSpec| if let PeripheralSpec::Ssd(s) = p { s.cores.to_usize() } else { 0 };
        self.peripherals.iter().flat_map(move |p| std::iter::repeat_n(p.node(), of(p)))
    }
}
fn seed() -> u64 {
    1
}
