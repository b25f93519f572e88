//! Descriptor rings in memory that tenants' cores drive: their memory, their functions of a NIC, and the drivers.

use super::layout::HostLayout;
use super::role_layout::RoleLayout;
use super::threads;
use crate::app::{AppSpec, Origin};
use crate::config::check;
use crate::config::scenario::{RingDriver, RingTenant};
use crate::config::Scenario;
use crate::device::nic::{RingLayout, RingMemory, RingsSpec};
use crate::kernel::{Int, LineAddr, NodeId, PortId, QueueId, RegionId, TenantId, ThreadId};
use crate::memory::region::{AddressMap, RegionKind, Sharing};
use crate::memory::LINE;
use crate::stack::ccnic::SENT_LINES;
use crate::stack::mempool::{self, Mempool, PoolMemory};
use crate::stack::napi::{BufferMemory, Napi};
use crate::stack::pmd::{
    self, Buffers, DriverMemory, Duties, PollMode, PollModeQuirks, PollModeSpec, Recycling, SoftwareRing, SoftwareRings,
};
use crate::stack::udp::{UdpSocket, USER_BUFFERS};
use crate::stack::Thread;

/// Tenants whose packets come through descriptor rings.
pub(super) struct RingDrivers;

impl RoleLayout for RingDrivers {
    fn lay_out(&self, layout: &mut HostLayout, t: TenantId) -> Result<(), String> {
        let HostLayout { s, map, ports, tenants, .. } = layout;
        let queues = &mut tenants[t].driven;
        let Some(port) = queues.port.filter(|_| !queues.cores.is_empty()) else { return Ok(()) };
        queues.memory = driver_memory(s, t, &queues.cores, map);
        let port = &mut ports[port];
        (queues.first, queues.function) = (port.queues.next_id(), port.functions.len().to_u8());
        port.functions.push(queues.cores.len());
        queues.cores.iter().for_each(|c| _ = port.queues.push(*c));
        port.memory.rings.extend(queues.memory.iter().map(|m| m.ring));
        Ok(())
    }

    fn threads(&self, layout: &mut HostLayout, t: TenantId) -> Option<Vec<Thread>> {
        let spec = layout.s.tenants.get(t.index())?;
        let others = spec.has_overlay() || spec.stack.extension().is_some() || matches!(spec.app, AppSpec::TcpEcho(_));
        let drives = spec.has_rings() && !others;
        drives.then(|| driver_threads(layout, t))
    }
}

/// Tenants whose cores work in pairs, with a ring in memory between the two cores of a pair.
pub(super) struct SoftwarePipelines;

impl RoleLayout for SoftwarePipelines {
    fn lay_out(&self, layout: &mut HostLayout, t: TenantId) -> Result<(), String> {
        let HostLayout { s, map, tenants, .. } = layout;
        let Some(spec) = s.tenants.get(t.index()).and_then(|spec| spec.stack.pipeline()) else { return Ok(()) };
        let receiving = &tenants[t].driven.cores;
        let mut ring = |_| {
            let r = map.add(SoftwareRing::lines(spec), RegionKind::App, Sharing::Shared, t);
            SoftwareRing::new(spec.clone(), map.get(r).base)
        };
        let rings = receiving.iter().map(&mut ring).collect();
        let second = receiving.iter().map(|c| ThreadId::new(c.index() + receiving.len())).collect();
        tenants[t].state.roles.add(SoftwareRings::new(rings, second));
        Ok(())
    }
}

/// Memory of a core whose packets come through descriptor rings in memory.
pub(super) struct RingCoreMemory {
    ring: RingMemory,
    thread: ThreadMemory,
    /// First line of the data that the thread of an overlay sends.
    pub(super) sent: LineAddr,
}

enum ThreadMemory {
    PollMode(DriverMemory),
    /// Socket buffers of the kernel's driver, and the first line of the application's buffers.
    Socket(BufferMemory, LineAddr),
}

/// Queues with descriptor rings in memory that a tenant's cores drive, or those of its overlay's NIC.
pub(super) struct DrivenQueues {
    /// Port of the NIC; None for a tenant without such a NIC.
    pub(super) port: Option<PortId>,
    /// Function of the NIC that the queues belong to.
    pub(super) function: u8,
    /// First queue; those of the other cores follow.
    pub(super) first: QueueId,
    /// Core that drives each queue.
    pub(super) cores: Vec<ThreadId>,
    pub(super) memory: Vec<RingCoreMemory>,
}

impl DrivenQueues {
    /// Queues of `t`, without memory.
    pub(super) fn new(layout: &HostLayout, t: TenantId) -> DrivenQueues {
        let (s, group) = (layout.s, &layout.groups[t]);
        let none = DrivenQueues { port: None, function: 0, first: QueueId(0), cores: Vec::new(), memory: Vec::new() };
        let Some(spec) = s.tenants.get(t.index()) else { return none };
        let cores = match s.ring_of(t) {
            None => Vec::new(),
            Some(_) if spec.has_overlay() => group.peers.clone(),
            Some(_) => group.cores[..spec.receivers().to_usize()].to_vec(),
        };
        DrivenQueues { port: s.nic_of(t).map(|n| n.0), cores, ..none }
    }
}

/// Allocates the memory for the descriptor rings and the driver of each core in `cores`, for `tenant`.
fn driver_memory(s: &Scenario, tenant: TenantId, cores: &[ThreadId], map: &mut AddressMap) -> Vec<RingCoreMemory> {
    let Some(RingTenant { rings, driver, .. }) = s.ring_of(tenant) else { return Vec::new() };
    let receivers = s.tenant(tenant).receivers().to_u16();
    let pairs = s.tenant(tenant).stack.pipeline().is_some();
    let overlay = s.tenant(tenant).has_overlay();
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
                let copies = match recycling(s, tenant) {
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
    let ring = s.tenant(tenant).stack.pipeline().map_or(0, |p| p.ring);
    PollModeSpec {
        quirks: PollModeQuirks { mempool: Some(costs.buffers_and(rings, ring)), ..costs.clone().quirks },
        ..costs.clone()
    }
}

/// Treatment of the receive buffers of `tenant`'s driver.
fn recycling(s: &Scenario, tenant: TenantId) -> Recycling {
    s.tenant(tenant).stack.poll_mode().map_or_else(Recycling::default, |p| p.recycling)
}

/// Threads of `tenant`'s cores that drive descriptor rings; their receive buffers are given to the NIC.
pub(super) fn driver_threads(layout: &mut HostLayout, tenant: TenantId) -> Vec<Thread> {
    let s = layout.s;
    let Some(ringed) = s.ring_of(tenant) else { return Vec::new() };
    let (nic, driven) = layout.nic_and_queues(ringed.port, tenant);
    let memory = &driven.memory;
    let (recycling, origin) = (recycling(s, tenant), s.tenant(tenant).origin());
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
    if s.tenant(ringed.tenant).stack.pipeline().is_some() {
        let second = |t: &mut Thread| match t {
            Thread::PollMode(first) => Some(Thread::PollMode(Box::new(first.split_pipeline()))),
            _ => None,
        };
        let others: Vec<Thread> = threads.iter_mut().filter_map(second).collect();
        threads.extend(others);
    }
    threads
}
