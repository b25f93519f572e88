//! Construction of a cold host from its scenario.

use super::background::Background;
use super::ccnic;
use super::client;
use super::measure::Window;
use super::network;
use super::storage::{block_layer, Storage};
use super::tas;
use super::tenant::TenantState;
use super::thread_numbering;
use super::thread_pairs;
use super::threads;
use super::traffic_source::TrafficSource;
use super::{CoreSlot, Host, IdleState, Meters, Owners, RunState};
use crate::app::{App, AppBuildContext, AppSpec, Origin};
use crate::config::check;
use crate::config::scenario::{ArrivalsSpec, ReplayTiming, RingDriver, RingTenant, StackSpec};
use crate::config::Scenario;
use crate::core::hints::Hints;
use crate::core::Cpu;
use crate::device::endpoint::{DeviceBuildContext, Endpoint, NicMemory};
use crate::device::iio::Iio;
use crate::device::nic::{
    EthernetSpec, FrameMemory, Marker, Nic, RingLayout, RingMemory, RingStart, RingsSpec, COMPLETIONS,
};
use crate::device::NicAt;
use crate::flow::AheadDomain;
use crate::kernel::{
    Clock, CoreId, IdVec, Int, LineAddr, NodeId, PortId, QueueId, RandomStream, RegionId, TenantId, ThreadId, Time,
};
use crate::machine::Machine;
use crate::memory::region::{AddressMap, Contiguous, Pages, RegionKind, Sharing, PAGE};
use crate::memory::spec::CacheSpec;
use crate::memory::{Memory, OffCores, Siblings, LINE};
use crate::placement::{ddio, Placement};
use crate::stack::ccnic::{CcnicInterface, SENT_LINES};
use crate::stack::extension::StackSite;
use crate::stack::mempool::{self, Mempool, PoolMemory};
use crate::stack::napi::{BufferMemory, Napi};
use crate::stack::pmd::{
    self, Buffers, DriverMemory, Duties, PollMode, PollModeQuirks, PollModeSpec, Recycling, SoftwareRing, SoftwareRings,
};
use crate::stack::tas::Service;
use crate::stack::udp::{UdpSocket, USER_BUFFERS};
use crate::stack::Thread;
use crate::traffic::pcap::{Capture, CaptureOptions, Wanted, MEMCACHED_PORT};
use crate::traffic::spikes::Spikes;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

/// Application lines for directed tests: 1 MiB.
const PAGE_LINES: u64 = 1 << 14;

impl Host {
    /// Builds the host that `spec` describes, cold and without traffic.
    ///
    /// # Errors
    /// Returns one sentence that names the key or the file that does not work.
    pub fn new(spec: Arc<Scenario>) -> Result<Host, String> {
        Host::build(spec, false)
    }

    /// Builds the host that `spec` describes, cold and without traffic; with `keep_frames`, the frames of a capture
    /// that is replayed are kept.
    ///
    /// # Errors
    /// Returns one sentence that names the key or the file that does not work.
    pub(super) fn build(spec: Arc<Scenario>, keep_frames: bool) -> Result<Host, String> {
        let s = &*spec;
        let seed = s.seed;
        let captures = captures(s, keep_frames)?;
        let mut map = AddressMap::aligned(s.platform.memory.quirks.alignment);
        // Tenant of each core, and the core's number within the tenant.
        let mut cores: Vec<(TenantId, u16)> = Vec::new();
        let mut groups: IdVec<TenantId, Vec<ThreadId>> = IdVec::new();
        for tenant in &s.tenants {
            let first = cores.len();
            let t = groups.push((first..first + tenant.cores.to_usize()).map(ThreadId::new).collect());
            cores.extend((0..tenant.cores.to_u16()).map(|local| (t, local)));
        }
        let (kernel, first) = (groups.next_id(), cores.len());
        cores.extend((0..s.storage_cores().to_u16()).map(|local| (kernel, local)));
        let mut peers: IdVec<TenantId, Vec<ThreadId>> = IdVec::filled(Vec::new(), s.tenants.len());
        for p in s.peers() {
            let (own, first) = (s.tenant(p.tenant).cores.to_u16(), cores.len());
            cores.extend((own..own + p.cores.to_u16()).map(|local| (p.tenant, local)));
            peers[p.tenant] = (first..cores.len()).map(ThreadId::new).collect();
        }
        let probes = s.tenants.iter().any(|t| matches!(t.app, AppSpec::ProbeLatency(_)));
        let node_of = |t: TenantId| NodeId(s.tenants.get(t.index()).map_or(0, |t| t.node));
        let mut thread_nodes: Vec<NodeId> = cores.iter().map(|c| node_of(c.0)).collect();
        thread_nodes.splice(first..first + s.storage_cores().to_usize(), s.storage_nodes());
        if let Some(last) = thread_nodes.last_mut().filter(|_| probes) {
            *last = NodeId(s.nodes().count.to_u8() - 1);
        }
        for p in s.peers() {
            peers[p.tenant].iter().for_each(|c| thread_nodes[c.index()] = NodeId(p.node.to_u8()));
        }
        let core_of = thread_numbering::cores_of(&thread_nodes, s.cores_per_node());
        let mut nic = Nic::integrated(&s.platform.nic, cores.len().to_u32());
        nic.sweep_tx = s.placement.sweep_tx;
        nic.reclaims = s.placement.spent().follows_transmission();
        let tagging = s.placement.tagging();
        nic.splits = s.placement.reads_tags();
        nic.marker = Some(Box::new(Marker::new(&tagging, core_of.iter().copied().collect())));
        nic.drop_depth = (s.rings.proactive_drop > 0).then_some(s.rings.proactive_drop);

        let buffer_lines = s.rings.buffer_size.0.div_ceil(LINE);
        for t in s.tenant_ids().filter(|t| check::serves(s.tenant(*t)) && s.ring_of(*t).is_none()) {
            let rx_buffers = check::rx_buffers(s, t);
            let receivers = &groups[t][..s.tenant(t).receivers().to_usize()];
            // Any core of a stack of one's own may work on a packet.
            let shared = s.tenant(t).stack_extension().is_some();
            for kind in [RegionKind::Rx, RegionKind::Tx] {
                for &c in receivers {
                    let n = if kind == RegionKind::Rx { rx_buffers } else { s.rings.tx_buffers };
                    let sharing = if shared { Sharing::Shared } else { Sharing::of_thread(c) };
                    let r = map.add(u64::from(n) * buffer_lines, kind, sharing, t);
                    let base = map.get(r).base;
                    if kind == RegionKind::Rx && s.placement.spent().follows_transmission() {
                        map.make_invalidatable(base);
                    }
                    match kind {
                        RegionKind::Rx => nic.attach_receive(QueueId(c.0), base, n, buffer_lines),
                        _ => nic.attach_transmit(QueueId(c.0), base, n, buffer_lines),
                    }
                }
            }
            let starts = if s.platform.nic.ring_start == RingStart::Random { receivers } else { &[] };
            for &c in starts {
                let mut rng = RandomStream::new(seed, "ring phase", c.0.into());
                let (rx, tx) = (rng.below(rx_buffers.into()), rng.below(s.rings.tx_buffers.into()));
                nic.start_at(QueueId(c.0), rx, tx);
            }
        }
        let ports: usize = s.peripherals.iter().map(|p| p.count().to_usize()).sum();
        let mut by_queue: IdVec<PortId, IdVec<QueueId, ThreadId>> = IdVec::filled(IdVec::new(), ports);
        let mut functions: IdVec<PortId, Vec<usize>> = IdVec::filled(Vec::new(), ports);
        let mut nics: IdVec<PortId, NicMemory> = (0..ports).map(|_| NicMemory::default()).collect();
        for t in network::receiving(s).filter(|t| s.ring_of(*t).is_none()) {
            if let Some((port, nic)) = s.nic_of(t) {
                nics[port].frames.extend(frame_memory(s, t, nic, &groups[t], &mut map));
                groups[t].iter().for_each(|c| _ = by_queue[port].push(*c));
            }
        }
        let mut tenants: IdVec<TenantId, TenantState> = IdVec::new();
        if s.tenants.iter().any(check::directed) {
            map.add(PAGE_LINES, RegionKind::App, Sharing::Core(CoreId(0)), TenantId(0));
            if probes {
                for node in 0..s.nodes().count {
                    let r = map.add(PAGE_LINES, RegionKind::App, Sharing::Shared, TenantId(0));
                    map.set_home(r, NodeId(node.to_u8()));
                }
            }
        } else {
            for (t, tenant) in s.tenant_ids().zip(&s.tenants) {
                let (cores, capture, stlb) = (&groups[t], captures[t].as_ref(), s.platform.core.stlb.as_ref());
                let line_instructions = s.platform.core.stores_per_line;
                let map = &mut map;
                let context = AppBuildContext { map, tenant: t, cores, seed, capture, stlb, line_instructions };
                let app = App::build(&tenant.app, s.traffic_of(t).frame_sizes().0.to_u32(), context)?;
                let largest = match (&app, capture) {
                    (App::Memcached(m), _) => u64::from(m.largest_reply().max(m.largest_request())) * LINE,
                    (_, Some(c)) if check::serves(tenant) => c.longest().into(),
                    _ => 0,
                };
                let recorded = u64::from(app.largest_recorded());
                let (largest, of) = (largest, "capture").max((recorded, "recording"));
                if let Some(ring) = s.ring_of(t).filter(|r| largest > r.rings.buffer_size.0) {
                    let room = s.frame_room(&ring);
                    return Err(format!("{room} does not hold the {of}'s largest message of {largest} bytes"));
                }
                if let Some(c) = tenant.ccnic.as_ref().filter(|c| !tenant.has_rings() && largest > c.large_room()) {
                    let room = c.quirks.large_buffer;
                    return Err(format!(
                        "ccnic.quirks.large_buffer = \"{room}\" does not hold the {of}'s largest message of {largest} bytes"
                    ));
                }
                if !tenant.has_rings() && tenant.ccnic.is_none() && largest.div_ceil(LINE) > buffer_lines {
                    return Err(format!(
                        "rings.buffer_size = \"{}\" does not hold the {of}'s largest message of {largest} bytes",
                        s.rings.buffer_size
                    ));
                }
                tenants.push(TenantState::new(Some(app)));
            }
        }
        while tenants.len() <= s.tenants.len() {
            tenants.push(TenantState::new(None));
        }
        for t in s.tenant_ids() {
            if let Some(mut i) = ccnic::build(s, t, &mut map) {
                if i.queues() <= peers[t].len() {
                    i.nic_cores.clone_from(&peers[t]);
                }
                tenants[t].roles.add(i);
            }
        }
        for t in s.tenant_ids() {
            if let Some(service) = tas::build(s, t, &mut map, &groups) {
                tenants[t].roles.add(service);
            }
        }
        // Threads of tenants whose roles bring their own.
        let mut threads_of: IdVec<TenantId, Vec<Thread>> = IdVec::filled(Vec::new(), s.tenants.len());
        for t in s.tenant_ids() {
            if let Some(e) = s.tenant(t).stack_extension() {
                let mut site = StackSite {
                    tenant: t,
                    cores: &groups[t],
                    core: &s.platform.core,
                    queue_pair: &s.platform.queue_pair,
                    spent: s.placement.spent(),
                    seed,
                    map: &mut map,
                };
                let built = e.factory().build(&e.keys, &mut site);
                let (role, threads) = built.map_err(|why| format!("tenant[{t}].stack: {why}"))?;
                tenants[t].roles.put(role);
                threads_of[t] = threads;
                continue;
            }
            threads_of[t] = thread_pairs::build(s, t, &mut map, &groups[t], &peers[t], &mut tenants[t].roles);
        }
        let mut driven: IdVec<TenantId, DrivenQueues> = IdVec::new();
        for t in s.tenant_ids() {
            let mut queues = DrivenQueues::new(s, t, &groups, &peers);
            queues.memory = driver_memory(s, t, &queues.cores, &mut map);
            if let Some(port) = queues.port.filter(|_| !queues.cores.is_empty()) {
                (queues.first, queues.function) = (by_queue[port].next_id(), functions[port].len().to_u8());
                functions[port].push(queues.cores.len());
                queues.cores.iter().for_each(|c| _ = by_queue[port].push(*c));
                nics[port].rings.extend(queues.memory.iter().map(|m| m.ring));
            }
            driven.push(queues);
        }
        for t in s.tenant_ids() {
            if let Some(rings) = software_rings(s, t, &driven[t].cores, &mut map) {
                tenants[t].roles.add(rings);
            }
        }
        let read_request = s.platform.pcie.as_ref().map_or(crate::kernel::units::Size(512), |p| p.max_read_request);
        let mut context = DeviceBuildContext { map: &mut map, seed, port: 0, nics, node: NodeId(0), read_request };
        let mut devices: Vec<_> = s.peripherals.iter().flat_map(|p| p.build(&mut context)).collect();
        for (port, spec) in s.ethernets() {
            let Endpoint::Ethernet(nic) = &mut devices[port.index()].0 else { continue };
            nic.splits = s.placement.reads_tags();
            if !by_queue[port].is_empty() {
                nic.marker =
                    Some(Box::new(Marker::new(&tagging, by_queue[port].iter().map(|c| core_of[*c]).collect())));
            }
            if !functions[port].is_empty() {
                nic.divide(&functions[port], &spec.flow_director);
            }
            for t in s.tenant_ids().filter(|t| driven[*t].port == Some(port)) {
                if let Some(service) = tenants[t].roles.get_mut() {
                    tas::steer(service, nic, driven[t].function);
                }
            }
        }
        let mut drivers: IdVec<TenantId, std::vec::IntoIter<Thread>> = IdVec::new();
        for t in s.tenant_ids() {
            drivers.push(driver_threads(s, t, &driven[t], &mut devices).into_iter());
        }
        let (storage, block) = block_layer(s, first, kernel, &mut map);
        let mut masks = s
            .tenants
            .iter()
            .map(|t| check::ways(t, s.platform.caches.llc.ways))
            .collect::<Result<Vec<u32>, String>>()?;
        if !storage.is_empty() {
            masks.push(ddio::low_ways(s.platform.caches.llc.ways));
        }
        let clock = Clock::from_hz(s.platform.core.clock.0);
        let span = map.span();
        map.settle_by_tenant(|t| s.tenants.get(t.index()).map(|t| NodeId(t.node)));
        let siblings = Siblings::of(&core_of);
        map.settle_on_cores(&core_of);
        let mut core_nodes = vec![NodeId(0); core_of.iter().max().map_or(0, |c| c.index() + 1)];
        core_of.iter().zip(&thread_nodes).for_each(|(c, node)| core_nodes[c.index()] = *node);
        let mut mem =
            Memory::with_nodes(&s.platform.caches, &s.platform.memory, &s.nodes(), clock, core_nodes, masks, map)
                .map_err(|e| format!("platform.{e}"))?;
        mem.siblings = siblings;
        let placement = Placement::new(&s.placement);
        let interfaces = tenants.iter().any(|t| t.roles.get::<CcnicInterface>().is_some());
        mem.off_core = interfaces.then(|| OffCores::new(cores.len(), mem.map.iter().count()));
        mem.ideal_network = placement.keeps_buffers_apart();
        let ports = devices.len();
        let iio = s.platform.iio.as_ref().zip(s.platform.pcie.as_ref()).filter(|_| !devices.is_empty());
        let iio = iio.map(|(iio, pcie)| {
            mem.lat.ownership = iio.ownership.into();
            mem.lat.to_iio = iio.from_cha.into();
            let mut built = Iio::new(iio, pcie, devices);
            let nodes = s.peripherals.iter().flat_map(|p| (0..p.count()).map(|_| p.node()));
            built.attach(&nodes.collect(), iio);
            built
        });
        let directed = Host::is_directed(s);
        let served = s.tenant_ids().filter(|t| check::serves(s.tenant(*t)) && !directed);
        for (order, t) in served.enumerate() {
            tenants[t].source = Some(source(s, t, order.to_u64(), &groups, &driven[t], captures[t].clone()));
        }
        for (order, t) in s.tenant_ids().enumerate() {
            tenants[t].spikes = s.traffic_of(t).spikes.as_ref().map(|p| {
                let rng = RandomStream::new(seed, "spikes", order.to_u64());
                Spikes::new(p.probability, p.min.into(), p.max.into(), rng)
            });
        }
        let mut block = block.into_iter();
        let mut sent: IdVec<TenantId, _> = IdVec::new();
        for d in driven.iter() {
            sent.push(d.memory.iter().map(|m| m.sent));
        }
        let seats = cores.iter().enumerate().map(|(c, (tenant, local))| {
            let t = *tenant;
            let thread = match s.tenants.get(t.index()) {
                Some(spec) if tenants[t].roles.get::<Service>().is_some() && u32::from(*local) < spec.cores => {
                    tas::thread(s, t, (*local).into(), tenants[t].roles.get(), &mut drivers[t])
                }
                Some(spec) if spec.stack == Some(StackSpec::Ccnic) => {
                    let i = tenants[t].roles.get().expect("memory of the interface");
                    let mut driven = drivers[t].by_ref().zip(sent[t].by_ref());
                    ccnic::thread(s, t, i, (*local).into(), &mut driven)
                }
                Some(_) if !threads_of[t].is_empty() => threads_of[t][usize::from(*local)].clone(),
                Some(spec) if spec.has_rings() => drivers[t].next().expect("a driver for each core"),
                Some(spec) => threads::of_app(&spec.app, s, t),
                None => Thread::Block(block.next().expect("a thread for each of the kernel's cores")),
            };
            let rng = RandomStream::new(seed, "core", c.to_u64());
            CoreSlot { tenant: t, local: *local, idle: IdleState::Asleep, rng, thread }
        });
        let seats = seats.collect();
        let (whole, half) = (&s.platform.core, s.platform.core.of_one_thread());
        let cpu = |(thread, core): (ThreadId, &CoreId)| {
            let has = if mem.sibling(thread).is_some() { &half } else { whole };
            Cpu::new(thread, has).on_core(*core)
        };
        let mut cpus: IdVec<ThreadId, Cpu> = core_of.enumerate().map(cpu).collect();
        if s.placement.reads_tags() {
            let reserve = s.platform.core.prefetch.as_ref().map_or(0, |p| p.quirks.reserve);
            let first = cpus.enumerate_mut().filter(|(t, c)| mem.first_thread(c.core()) == *t);
            first.for_each(|(_, c)| {
                c.follow(Hints::new(tagging.quirks.hint_queue, tagging.quirks.hint_overflow), reserve)
            });
        }
        for p in s.tenant_ids().filter_map(|t| ccnic::parts(s, t)) {
            let off = |side: &[ThreadId], on: bool| side.iter().filter(|_| !on).copied().collect::<Vec<_>>();
            let peers = &peers[p.tenant];
            let (host, nic) =
                (off(&groups[p.tenant], p.spec.quirks.host_prefetch), off(peers, p.spec.quirks.nic_prefetch));
            for cpu in host.into_iter().chain(nic) {
                (cpus[cpu].prefetcher, cpus[cpu].l1_prefetcher) = (None, None);
            }
            if let Some(n) = p.spec.agent_requests() {
                peers.iter().for_each(|c| cpus[*c].lfb = AheadDomain::new(n));
            }
        }
        for (c, (tenant, _)) in cores.iter().enumerate() {
            if let Some(size) = s.tenants.get(tenant.index()).and_then(|t| t.l2_size) {
                mem.resize_l2(core_of[ThreadId::new(c)], &CacheSpec { size, ..s.platform.caches.l2.clone() })?;
            }
        }
        for t in network::receiving(s) {
            if let Some(n) = network::build(s, t, &groups) {
                tenants[t].roles.add(n);
            }
        }
        let accounting_cores = Host::accounting_cores(&storage, ports);
        // A directed test runs until no event is left.
        if let Some(b) = Background::new(s, span).filter(|_| !directed) {
            tenants[kernel].roles.add(b);
        }
        if !storage.is_empty() {
            tenants[kernel].roles.add(Storage::new(storage));
        }
        let mut host = Host {
            machine: Machine::new(mem, cpus, nic, iio, Placement::new(&s.placement)),
            tenants,
            cores: seats,
            owners: Owners { drivers: by_queue, accounting_cores, tenant_cores: first, linked: None },
            run: RunState::default(),
            meters: Meters {
                window: Window::new(),
                trace: super::trace::HostTrace::new(s.run.trace.map(Into::into)),
                timeline: super::timeline::Timeline::new(s.run.timeline.map(Into::into)),
                observer: None,
            },
            spec: spec.clone(),
        };
        let on_chip = |t: &TenantId| host.tenants[*t].source.as_ref().is_some_and(|s| s.at == NicAt::Chip);
        for t in s.tenant_ids().filter(on_chip).collect::<Vec<_>>() {
            groups[t].iter().for_each(|c| host.machine.ring_chip(*c));
        }
        host.start();
        Ok(host)
    }

    /// Whether the scenario is a directed test.
    pub fn is_directed(spec: &Scenario) -> bool {
        spec.tenants.iter().any(check::directed)
    }

    pub(super) fn directed_app(&self) -> &AppSpec {
        &self.spec.tenants[0].app
    }
}

/// Memory of a core whose packets come through descriptor rings in memory.
struct RingCoreMemory {
    ring: RingMemory,
    thread: ThreadMemory,
    /// First line of the data that the thread of an overlay sends.
    sent: LineAddr,
}

enum ThreadMemory {
    PollMode(DriverMemory),
    /// Socket buffers of the kernel's driver, and the first line of the application's buffers.
    Socket(BufferMemory, LineAddr),
}

/// Queues with descriptor rings in memory that a tenant's cores drive, or those of its overlay's NIC.
struct DrivenQueues {
    /// Port of the NIC; None for a tenant without such a NIC.
    port: Option<PortId>,
    /// Function of the NIC that the queues belong to.
    function: u8,
    /// First queue; those of the other cores follow.
    first: QueueId,
    /// Core that drives each queue.
    cores: Vec<ThreadId>,
    memory: Vec<RingCoreMemory>,
}

impl DrivenQueues {
    /// Queues of `tenant`, without memory.
    fn new(
        s: &Scenario,
        tenant: TenantId,
        groups: &IdVec<TenantId, Vec<ThreadId>>,
        peers: &IdVec<TenantId, Vec<ThreadId>>,
    ) -> DrivenQueues {
        let cores = match s.ring_of(tenant) {
            None => Vec::new(),
            Some(_) if s.tenant(tenant).stack == Some(StackSpec::Ccnic) => peers[tenant].clone(),
            Some(_) => groups[tenant][..s.tenant(tenant).receivers().to_usize()].to_vec(),
        };
        let port = s.nic_of(tenant).map(|n| n.0);
        DrivenQueues { port, function: 0, first: QueueId(0), cores, memory: Vec::new() }
    }
}

/// Captures that are replayed to the tenants.
fn captures(s: &Scenario, keep_frames: bool) -> Result<IdVec<TenantId, Option<Arc<Capture>>>, String> {
    let mut all = IdVec::new();
    for t in s.tenant_ids() {
        let traffic = s.traffic_of(t);
        let replayed = traffic.pcap.as_ref().filter(|_| traffic.arrivals == ArrivalsSpec::Pcap);
        let Some(p) = replayed.filter(|_| check::serves(s.tenant(t))) else {
            all.push(None);
            continue;
        };
        let wanted = match s.tenant(t).app {
            AppSpec::Memcached(_) => Wanted::Memcached(p.port.unwrap_or(MEMCACHED_PORT)),
            _ => Wanted::Frames(p.port),
        };
        let how = CaptureOptions {
            wanted,
            lenient: p.lenient,
            untimed: p.timing != ReplayTiming::Original,
            frames: keep_frames,
            longest: traffic.rate.map(|_| Time::MAX),
        };
        all.push(Some(Arc::new(Capture::load(Path::new(&p.file), how).map_err(|e| e.to_string())?)));
    }
    Ok(all)
}

/// Source of the packets of `tenant`, before which `order` others have a source.
fn source(
    s: &Scenario,
    tenant: TenantId,
    order: u64,
    groups: &IdVec<TenantId, Vec<ThreadId>>,
    driven: &DrivenQueues,
    capture: Option<Arc<Capture>>,
) -> TrafficSource {
    let (spec, ring) = (s.tenant(tenant), s.ring_of(tenant));
    TrafficSource {
        arrivals: None,
        base: Time::ZERO,
        rng: RandomStream::new(s.seed, "traffic", order),
        at: ring.as_ref().map_or(NicAt::Chip, |r| NicAt::Port(r.port)),
        burst: ring.as_ref().map(|r| r.driver.burst()),
        cores: match ring {
            Some(_) => driven.cores.clone(),
            None => groups[tenant][..spec.receivers().to_usize()].to_vec(),
        },
        first_queue: driven.first,
        function: driven.function,
        dscp: spec.dscp,
        spread: s.traffic_of(tenant).spread,
        loops: spec.loops(),
        lost: VecDeque::new(),
        depth: 0,
        capture,
        next: 0,
        turn: 0,
        generator: client::generator(s, tenant, order),
        offered: 0,
        dropped: 0,
    }
}

/// Allocates the memory for the descriptor rings and the driver of each core in `cores`, for `tenant`.
fn driver_memory(s: &Scenario, tenant: TenantId, cores: &[ThreadId], map: &mut AddressMap) -> Vec<RingCoreMemory> {
    let Some(RingTenant { rings, driver, .. }) = s.ring_of(tenant) else { return Vec::new() };
    let receivers = s.tenant(tenant).receivers().to_u16();
    let pairs = s.tenant(tenant).pipeline.is_some();
    let overlay = s.tenant(tenant).stack == Some(StackSpec::Ccnic);
    let first = map.iter().count();
    let stride = mempool::stride(rings.buffer_size);
    let one_pool = matches!(&driver, RingDriver::PollMode(costs) if costs.quirks.mempool_shared);
    let mut set_up = |c: &ThreadId| {
        let own = if pairs { Sharing::Shared } else { Sharing::of_thread(*c) };
        let r = map.add(u64::from(rings.receive) * stride, RegionKind::Rx, own, tenant);
        (rings.receive, map.get(r).base)
    };
    let mut armed: Vec<_> = cores.iter().rev().filter(|_| one_pool).map(&mut set_up).collect();
    let mut piece = |c: &ThreadId| {
        let sends = if pairs { ThreadId(c.0 + receivers) } else { *c };
        let both = if pairs { Sharing::Shared } else { Sharing::of_thread(*c) };
        let mut region = |lines, kind, core| map.add(lines, kind, Sharing::of_thread(core), tenant);
        let receive = region(RingLayout::lines(rings.receive, rings.descriptor), RegionKind::Rx, *c);
        let transmit = region(RingLayout::lines(rings.transmit, rings.descriptor), RegionKind::Tx, sends);
        map.set_polled(receive);
        map.set_polled(transmit);
        let ring = RingMemory { receive: map.get(receive).base, transmit: map.get(transmit).base };
        let mut add = |lines, kind, sharing| {
            let r = map.add(lines, kind, sharing, tenant);
            map.get(r).base
        };
        let own = Sharing::of_thread(*c);
        let thread = match &driver {
            RingDriver::PollMode(costs) => {
                let buffers = sized(s, tenant, costs, &rings).buffers(&rings);
                let pool = PoolMemory {
                    first: armed.pop(),
                    stride,
                    buffers: add(
                        u64::from(buffers - if one_pool { rings.receive } else { 0 }) * stride,
                        RegionKind::Rx,
                        both,
                    ),
                    ring: add(Mempool::ring_lines(buffers, costs.quirks.mempool_cache), RegionKind::App, both),
                };
                let receive_notes = add(pmd::note_lines(rings.receive), RegionKind::App, own);
                let transmit_notes = add(pmd::note_lines(rings.transmit), RegionKind::App, Sharing::of_thread(sends));
                let copies = match s.tenant(tenant).recycling {
                    // The core that serves a packet copies it.
                    Recycling::Copy => add(
                        u64::from(rings.receive) * (rings.buffer_size.0 / LINE),
                        RegionKind::App,
                        Sharing::of_thread(sends),
                    ),
                    _ => LineAddr(0),
                };
                if s.placement.spent().follows_transmission() {
                    map.make_invalidatable(pool.buffers);
                    pool.first.iter().for_each(|(_, base)| map.make_invalidatable(*base));
                }
                ThreadMemory::PollMode(DriverMemory { pool, receive_notes, transmit_notes, copies })
            }
            RingDriver::Kernel(costs) => {
                let (structures, frames) = costs.lines(&rings);
                let memory = BufferMemory {
                    structures: add(structures, RegionKind::App, own),
                    frames: add(frames, RegionKind::Rx, own),
                };
                // A TCP receiver has its own buffer.
                let user = if check::serves(s.tenant(tenant)) {
                    add(USER_BUFFERS * costs.room(), RegionKind::App, own)
                } else {
                    LineAddr(0)
                };
                ThreadMemory::Socket(memory, user)
            }
        };
        let sent = match &driver {
            RingDriver::PollMode(costs) if overlay => {
                let buffers = u64::from(sized(s, tenant, costs, &rings).buffers(&rings));
                let r = map.add(buffers * SENT_LINES, RegionKind::Tx, own, tenant);
                map.get(r).base
            }
            _ => LineAddr(0),
        };
        RingCoreMemory { ring, thread, sent }
    };
    let all = cores.iter().map(&mut piece).collect();
    if let Some(p) = s.peers_of(tenant).filter(|_| overlay) {
        (first..map.iter().count()).for_each(|r| map.set_home(RegionId::new(r), NodeId(p.node.to_u8())));
    }
    all
}

/// The costs of the driver, with a mempool that also has room for the software ring of a pipeline where the platform
/// does not set the mempool's size.
fn sized(s: &Scenario, tenant: TenantId, costs: &PollModeSpec, rings: &RingsSpec) -> PollModeSpec {
    let ring = s.tenant(tenant).pipeline.as_ref().map_or(0, |p| p.ring);
    PollModeSpec {
        quirks: PollModeQuirks { mempool: Some(costs.buffers_and(rings, ring)), ..costs.clone().quirks },
        ..costs.clone()
    }
}

/// Software rings of `tenant` with one ring for each of `receiving`, if its cores work in pairs.
fn software_rings(
    s: &Scenario,
    tenant: TenantId,
    receiving: &[ThreadId],
    map: &mut AddressMap,
) -> Option<SoftwareRings> {
    let spec = s.ring_of(tenant).and(s.tenant(tenant).pipeline.clone())?;
    let mut ring = |_| {
        let r = map.add(SoftwareRing::lines(&spec), RegionKind::App, Sharing::Shared, tenant);
        SoftwareRing::new(spec.clone(), map.get(r).base)
    };
    let rings = receiving.iter().map(&mut ring).collect();
    let second = receiving.iter().map(|c| ThreadId::new(c.index() + receiving.len())).collect();
    Some(SoftwareRings::new(rings, second))
}

/// Threads of `tenant`'s cores that drive descriptor rings; their receive buffers are given to the NIC.
fn driver_threads(
    s: &Scenario,
    tenant: TenantId,
    driven: &DrivenQueues,
    devices: &mut [(Endpoint, u32, u32)],
) -> Vec<Thread> {
    let Some(ringed) = s.ring_of(tenant) else { return Vec::new() };
    let memory = &driven.memory;
    let Endpoint::Ethernet(nic) = &mut devices[ringed.port.index()].0 else { unreachable!("a driver has a NIC") };
    let (recycling, origin) = (s.tenant(ringed.tenant).recycling, s.tenant(ringed.tenant).origin());
    let buffers = Buffers { recycling, spent: s.placement.spent(), sweep_tx: s.placement.sweep_tx };
    nic.sweep_tx = s.placement.sweep_tx;
    let queues = memory.len();
    let bytes = match &s.tenant(ringed.tenant).app {
        AppSpec::Loopback(app) if origin == Origin::Loop => Some(app.bytes.0),
        _ => None,
    };
    let driven_queues = driven;
    let thread = |(queue, driven): (usize, &RingCoreMemory)| match (&driven.thread, &ringed.driver) {
        (ThreadMemory::PollMode(memory), RingDriver::PollMode(costs)) => {
            let costs = sized(s, ringed.tenant, costs, &ringed.rings);
            let driver = PollMode::new(
                costs,
                &ringed.rings,
                QueueId::new(driven_queues.first.index() + queue),
                *memory,
                nic,
                Duties { buffers, origin },
                &s.platform.core,
            );
            Thread::PollMode(Box::new(match bytes {
                Some(bytes) => driver.generating(threads::demand(s, tenant, queue, queues, bytes.to_f64())),
                None => driver,
            }))
        }
        (ThreadMemory::Socket(memory, user), RingDriver::Kernel(costs)) => {
            let costs = costs.clone();
            match threads::tcp_receiver(s, tenant).filter(|_| !check::serves(s.tenant(ringed.tenant))) {
                Some(t) => Thread::Tcp(Box::new(t.behind(Napi::new(
                    costs,
                    &ringed.rings,
                    QueueId::new(driven_queues.first.index() + queue),
                    *memory,
                    nic,
                )))),
                None => Thread::Udp(Box::new(UdpSocket::new(
                    costs,
                    &ringed.rings,
                    QueueId::new(driven_queues.first.index() + queue),
                    (*memory, *user),
                    nic,
                ))),
            }
        }
        _ => unreachable!("memory is that of the driver"),
    };
    let mut threads: Vec<Thread> = memory.iter().enumerate().map(thread).collect();
    if s.tenant(ringed.tenant).pipeline.is_some() {
        let second = |t: &mut Thread| match t {
            Thread::PollMode(first) => Some(Thread::PollMode(Box::new(first.split_pipeline()))),
            _ => None,
        };
        let others: Vec<Thread> = threads.iter_mut().filter_map(second).collect();
        threads.extend(others);
    }
    threads
}

/// Memory for the frames of `tenant`, which receives TCP from `nic` without descriptor rings, with the completions and the
/// page structures of the frames; one entry for each of `cores`.
fn frame_memory(
    s: &Scenario,
    tenant: TenantId,
    nic: &EthernetSpec,
    cores: &[ThreadId],
    map: &mut AddressMap,
) -> Vec<FrameMemory> {
    let mut piece = |c: &ThreadId| {
        let (lines, page) = (nic.pool.0 / LINE, nic.page.0 / LINE);
        let mut add = |lines, kind| {
            let r = map.add(lines, kind, Sharing::of_thread(*c), tenant);
            map.get(r).base
        };
        let (frames, completions) = (add(lines, RegionKind::Rx), add(COMPLETIONS, RegionKind::Rx));
        let structures = add(lines / page, RegionKind::App);
        let key = RandomStream::new(s.seed, "frames", c.0.into()).below(u64::MAX);
        let pages = Pages::new(frames, lines, Contiguous::Pieces(nic.page), PAGE.0 / LINE, key);
        FrameMemory { pages, frames, completions, structures }
    };
    cores.iter().map(&mut piece).collect()
}
