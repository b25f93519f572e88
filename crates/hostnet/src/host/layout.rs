//! Lay-out of a host: its cores, its memory and the queues of its NICs, which roles claim one after the other.

use super::background::Background;
use super::ccnic;
use super::rings::DrivenQueues;
use super::role_layout::RoleLayout;
use super::storage::Storage;
use super::tenant::TenantState;
use super::thread_numbering;
use crate::app::AppSpec;
use crate::config::check;
use crate::config::scenario::{ArrivalsSpec, ReplayTiming};
use crate::config::traffic;
use crate::config::Scenario;
use crate::core::hints::Hints;
use crate::core::Cpu;
use crate::device::endpoint::{DeviceBuildContext, Endpoint, NicMemory};
use crate::device::iio::Iio;
use crate::device::nic::{Marker, Nic};
use crate::kernel::units::Size;
use crate::kernel::{Clock, CoreId, IdVec, Int, NodeId, PortId, QueueId, TenantId, ThreadId, Time};
use crate::machine::Machine;
use crate::memory::region::AddressMap;
use crate::memory::spec::CacheSpec;
use crate::memory::{Memory, OffCores, Siblings};
use crate::placement::{ddio, Placement};
use crate::probe::ProbeSpec;
use crate::stack::ccnic::CcnicInterface;
use crate::stack::Thread;
use crate::traffic::pcap::{keep_offsets, Capture, CaptureOptions, Wanted, MEMCACHED_PORT};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Cores of a tenant, or of a probe.
pub(super) struct CoreGroup {
    /// The tenant's own cores.
    pub(super) cores: Vec<ThreadId>,
    /// Cores beside the tenant's own: those of CC-NIC's NIC, or of the other threads of pairs.
    pub(super) peers: Vec<ThreadId>,
    /// Node of the tenant's own cores.
    node: NodeId,
    /// LLC ways of the cores' L2 victims.
    ways: u32,
    /// Size of the L2 of each core, where it is not the platform's.
    l2_size: Option<Size>,
}

/// Claims of tenants on a port: queues and functions of its NIC, with their memory.
#[derive(Default)]
pub(super) struct PortPlan {
    /// Core that drives each queue.
    pub(super) queues: IdVec<QueueId, ThreadId>,
    /// Number of queues of each function.
    pub(super) functions: Vec<usize>,
    /// Memory of the queues.
    pub(super) memory: NicMemory,
}

/// Parts of the host that a tenant has so far.
pub(super) struct TenantPlan {
    /// Application and roles.
    pub(super) state: TenantState,
    /// Queues with descriptor rings in memory.
    pub(super) driven: DrivenQueues,
    /// Threads of the tenant's cores and of their peers, where a role brings them.
    pub(super) threads: Vec<Thread>,
}

/// The lay-out of a host as far as it has been made.
pub(super) struct HostLayout<'a> {
    pub(super) s: &'a Scenario,
    /// Cores of each tenant; the last group is the kernel's, which has no ways and no L2 of its own.
    pub(super) groups: IdVec<TenantId, CoreGroup>,
    /// Tenant of each thread, and the thread's number within the tenant.
    pub(super) slots: Vec<(TenantId, u16)>,
    thread_nodes: Vec<NodeId>,
    core_of: IdVec<ThreadId, CoreId>,
    pub(super) map: AddressMap,
    /// The NIC on the chip.
    pub(super) nic: Nic,
    pub(super) ports: IdVec<PortId, PortPlan>,
    /// Captures that are replayed to the tenants.
    pub(super) captures: IdVec<TenantId, Option<Arc<Capture>>>,
    /// The tenants, and the kernel behind them.
    pub(super) tenants: IdVec<TenantId, TenantPlan>,
    /// Devices on the ports, with the lanes and the tags of each.
    pub(super) devices: Vec<(Endpoint, u32, u32)>,
}

impl<'a> HostLayout<'a> {
    /// The cores of the host that `s` describes, with no memory and no queue.
    ///
    /// # Errors
    /// Returns one sentence that names the key or the file that does not work.
    pub(super) fn new(s: &'a Scenario, keep_frames: bool) -> Result<HostLayout<'a>, String> {
        let (mut slots, mut groups): (Vec<(TenantId, u16)>, IdVec<TenantId, CoreGroup>) = Default::default();
        let llc = s.platform.caches.llc.ways;
        let own = s.tenants.iter().map(|t| (t.cores, t.node, t.llc_ways.as_ref(), t.l2_size));
        let probe = s.tenants.probe().map(|p| (p.cores, p.node, p.llc_ways.as_ref(), p.l2_size));
        for (cores, node, ways, l2_size) in own.chain(probe) {
            let t = groups.next_id();
            let threads = (slots.len()..slots.len() + cores.to_usize()).map(ThreadId::new).collect();
            slots.extend((0..cores.to_u16()).map(|local| (t, local)));
            let ways = check::ways(ways, llc)?;
            groups.push(CoreGroup { cores: threads, peers: Vec::new(), node: NodeId(node), ways, l2_size });
        }
        let first = slots.len();
        let kernel = groups.push(CoreGroup {
            cores: (first..first + s.storage_cores().to_usize()).map(ThreadId::new).collect(),
            peers: Vec::new(),
            node: NodeId(0),
            ways: ddio::low_ways(llc),
            l2_size: None,
        });
        slots.extend((0..s.storage_cores().to_u16()).map(|local| (kernel, local)));
        let mut thread_nodes: Vec<NodeId> = slots.iter().map(|(t, _)| groups[*t].node).collect();
        thread_nodes.splice(first.., s.storage_nodes());
        if let Some(last) = thread_nodes.last_mut().filter(|_| looks_at_all_nodes(s)) {
            *last = NodeId(s.nodes().count.to_u8() - 1);
        }
        for p in s.peers() {
            let (own, first) = (s.tenant(p.tenant).cores.to_u16(), slots.len());
            slots.extend((own..own + p.cores.to_u16()).map(|local| (p.tenant, local)));
            groups[p.tenant].peers = (first..slots.len()).map(ThreadId::new).collect();
            thread_nodes.resize(slots.len(), NodeId(p.node.to_u8()));
        }
        let core_of = thread_numbering::cores_of(&thread_nodes, s.cores_per_node());
        let mut nic = Nic::integrated(&s.platform.nic, slots.len().to_u32());
        nic.sweep_tx = s.placement.sweep_tx;
        nic.reclaims = s.placement.spent().follows_transmission();
        nic.splits = s.placement.reads_tags();
        nic.marker = Some(Box::new(Marker::new(&s.placement.tagging(), core_of.iter().copied().collect())));
        nic.drop_depth = (s.rings.proactive_drop > 0).then_some(s.rings.proactive_drop);
        let ports = s.peripherals.iter().map(|p| p.count().to_usize()).sum();
        let mut layout = HostLayout {
            s,
            groups,
            slots,
            thread_nodes,
            core_of,
            map: AddressMap::aligned(s.platform.memory.quirks.alignment),
            nic,
            ports: (0..ports).map(|_| PortPlan::default()).collect(),
            captures: captures(s, keep_frames)?,
            tenants: IdVec::new(),
            devices: Vec::new(),
        };
        for t in layout.ids() {
            let driven = DrivenQueues::new(&layout, t);
            layout.tenants.push(TenantPlan { state: TenantState::default(), driven, threads: Vec::new() });
        }
        Ok(layout)
    }

    /// The tenants, and the kernel behind them.
    pub(super) fn ids(&self) -> impl Iterator<Item = TenantId> + use<> {
        (0..self.groups.len()).map(TenantId::new)
    }

    /// The kernel behind the tenants.
    pub(super) fn kernel(&self) -> TenantId {
        TenantId::new(self.groups.len() - 1)
    }

    /// Builds the devices on the ports, whose NICs get the queues that tenants have claimed.
    fn build_devices(&mut self) {
        let s = self.s;
        let nics = self.ports.iter_mut().map(|p| std::mem::take(&mut p.memory)).collect();
        let read_request = s.platform.pcie.as_ref().map_or(Size(512), |p| p.max_read_request);
        let (kernel, map) = (self.kernel(), &mut self.map);
        let mut context =
            DeviceBuildContext { map, seed: s.seed, port: 0, nics, node: NodeId(0), kernel, read_request };
        self.devices = s.peripherals.iter().flat_map(|p| p.build(&mut context)).collect();
        for (port, spec) in s.ethernets() {
            let (plan, device) = (&self.ports[port], &mut self.devices[port.index()].0);
            let Endpoint::Ethernet(nic) = device else { continue };
            nic.splits = s.placement.reads_tags();
            if !plan.queues.is_empty() {
                let cores = plan.queues.iter().map(|c| self.core_of[*c]).collect();
                nic.marker = Some(Box::new(Marker::new(&s.placement.tagging(), cores)));
            }
            if !plan.functions.is_empty() {
                nic.divide(&plan.functions, &spec.flow_director);
            }
        }
    }

    /// The NIC on `port`, and the queues that `tenant` drives.
    ///
    /// # Panics
    /// When the device there is no NIC, or has not been built.
    pub(super) fn nic_and_queues(&mut self, port: PortId, tenant: TenantId) -> (&mut Nic, &DrivenQueues) {
        match &mut self.devices[port.index()].0 {
            Endpoint::Ethernet(nic) => (nic, &self.tenants[tenant].driven),
            _ => unreachable!("a driver has a NIC"),
        }
    }

    /// The machine with all that has been laid out, and what the tenants have.
    ///
    /// # Errors
    /// Returns one sentence that names the key that does not work.
    pub(super) fn machine(self) -> Result<(Machine, IdVec<TenantId, TenantPlan>), String> {
        let kernel = self.kernel();
        let HostLayout { s, groups, slots, thread_nodes, core_of, mut map, nic, mut tenants, devices, .. } = self;
        let (platform, tagging) = (&s.platform, s.placement.tagging());
        // The kernel has ways of its own where it has cores that account for pages.
        let of_kernel = tenants[kernel].state.roles.get::<Storage>().is_some();
        let masks = groups.iter().take(kernel.index() + usize::from(of_kernel)).map(|g| g.ways).collect();
        // A directed test runs until no event is left.
        if let Some(b) = Background::new(s, map.span()).filter(|_| s.tenants.probe().is_none()) {
            tenants[kernel].state.roles.add(b);
        }
        map.settle_by_tenant(|t| (t < kernel).then(|| groups[t].node));
        let siblings = Siblings::of(&core_of);
        map.settle_on_cores(&core_of);
        let mut core_nodes = vec![NodeId(0); core_of.iter().max().map_or(0, |c| c.index() + 1)];
        core_of.iter().zip(&thread_nodes).for_each(|(c, node)| core_nodes[c.index()] = *node);
        let clock = Clock::from_hz(platform.core.clock.0);
        let mut mem = Memory::with_nodes(&platform.caches, &platform.memory, &s.nodes(), clock, core_nodes, masks, map)
            .map_err(|e| format!("platform.{e}"))?;
        mem.siblings = siblings;
        let placement = Placement::new(&s.placement);
        let interfaces = tenants.iter().any(|t| t.state.roles.get::<CcnicInterface>().is_some());
        mem.off_core = interfaces.then(|| OffCores::new(slots.len(), mem.map.iter().count()));
        mem.ideal_network = placement.keeps_buffers_apart();
        let iio = platform.iio.as_ref().zip(platform.pcie.as_ref()).filter(|_| !devices.is_empty());
        let iio = iio.map(|(iio, pcie)| {
            mem.lat.ownership = iio.ownership.into();
            mem.lat.to_iio = iio.from_cha.into();
            let mut built = Iio::new(iio, pcie, devices);
            let nodes = s.peripherals.iter().flat_map(|p| (0..p.count()).map(|_| p.node()));
            built.attach(&nodes.collect(), iio);
            built
        });
        let (whole, half) = (&platform.core, platform.core.of_one_thread());
        let cpu = |(thread, core): (ThreadId, &CoreId)| {
            let has = if mem.sibling(thread).is_some() { &half } else { whole };
            let (tenant, _) = slots[thread.index()];
            match s.tenants.get(tenant.index()) {
                Some(t) if t.app.accesses_words() => Cpu::new(thread, &has.of_single_accesses()),
                _ => Cpu::new(thread, has),
            }
            .on_core(*core)
        };
        let mut cpus: IdVec<ThreadId, Cpu> = core_of.enumerate().map(cpu).collect();
        if s.placement.reads_tags() {
            let reserve = platform.core.prefetch.as_ref().map_or(0, |p| p.quirks.reserve);
            let first = cpus.enumerate_mut().filter(|(t, c)| mem.first_thread(c.core()) == *t);
            first.for_each(|(_, c)| {
                c.follow(Hints::new(tagging.quirks.hint_queue, tagging.quirks.hint_overflow), reserve)
            });
        }
        s.tenant_ids().for_each(|t| ccnic::fit_cores(s, t, &groups[t], &mut cpus));
        for (thread, (tenant, _)) in slots.iter().enumerate() {
            if let Some(size) = groups[*tenant].l2_size {
                let core = core_of[ThreadId::new(thread)];
                mem.resize_l2(core, &CacheSpec { size, ..platform.caches.l2.clone() })?;
            }
        }
        Ok((Machine::new(mem, cpus, nic, iio, placement), tenants))
    }
}

/// Devices on the ports, with their buffers.
pub(super) struct Devices;

impl RoleLayout for Devices {
    fn lay_out(&self, layout: &mut HostLayout, t: TenantId) -> Result<(), String> {
        if t == layout.kernel() {
            layout.build_devices();
        }
        Ok(())
    }
}

/// Whether the scenario is a probe that looks at the memory of every node, with a core of the last one.
pub(super) fn looks_at_all_nodes(s: &Scenario) -> bool {
    s.tenants.probe().is_some_and(|p| matches!(p.probe, ProbeSpec::ProbeLatency(_)))
}

/// Captures that are replayed to the tenants.
fn captures(s: &Scenario, keep_frames: bool) -> Result<IdVec<TenantId, Option<Arc<Capture>>>, String> {
    let mut all = Vec::new();
    // Captures that are replayed at their own times, by file.
    let mut at_own_times: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for t in s.tenant_ids() {
        let of_tenant = s.traffic_of(t);
        let replayed = of_tenant.pcap().filter(|_| of_tenant.arrivals() == ArrivalsSpec::Pcap);
        let Some(p) = replayed.filter(|_| check::serves(s.tenant(t))) else {
            all.push(None);
            continue;
        };
        let wanted = match s.tenant(t).app {
            AppSpec::Memcached(_) => Wanted::Memcached(p.port.unwrap_or(MEMCACHED_PORT)),
            _ => Wanted::Frames(p.port),
        };
        // A rate stretches or compresses the captured times, that of a search included.
        let at_a_rate = of_tenant.rate().is_some() || s.run.load.searches() && traffic::is_searched(s, t);
        let how = CaptureOptions {
            wanted,
            lenient: p.lenient,
            untimed: p.timing != ReplayTiming::Original,
            frames: keep_frames,
            longest: at_a_rate.then_some(Time::MAX),
        };
        if p.timing == ReplayTiming::Original && !at_a_rate {
            at_own_times.entry(&p.file).or_default().push(t.index());
        }
        all.push(Some(Capture::load(Path::new(&p.file), how).map_err(|e| e.to_string())?));
    }
    for tenants in at_own_times.into_values().filter(|tenants| tenants.len() > 1) {
        let of_file = all.iter_mut().enumerate().filter(|(i, _)| tenants.contains(i));
        keep_offsets(of_file.filter_map(|(_, capture)| capture.as_mut()));
    }
    Ok(all.into_iter().map(|capture| capture.map(Arc::new)).collect())
}
