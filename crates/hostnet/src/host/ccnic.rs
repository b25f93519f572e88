//! CC-NIC on a host: allocation of its memory, and its threads on both sides.

use super::client;
use super::layout::{CoreGroup, HostLayout};
use super::rings::driver_threads;
use super::role_layout::RoleLayout;
use super::threads::demand;
use crate::app::loopback::{LoopbackSpec, Touched};
use crate::app::AppSpec;
use crate::config::Scenario;
use crate::core::Cpu;
use crate::flow::AheadDomain;
use crate::kernel::{IdVec, Int, LineAddr, NodeId, TenantId, ThreadId};
use crate::memory::region::{AddressMap, RegionKind, Sharing};
use crate::stack::ccnic::spec::{CcnicMode, CcnicSide, CcnicSpec};
use crate::stack::ccnic::{CcnicInterface, CcnicMemory, CcnicThread, ServerWork, Setup, Wire, WirePackets};
use crate::stack::demand::Demand;
use crate::stack::Thread;
use std::ops::Range;

/// Tenants whose packets go through coherent memory.
pub(super) struct CcnicInterfaces;

impl RoleLayout for CcnicInterfaces {
    fn lay_out(&self, layout: &mut HostLayout, t: TenantId) -> Result<(), String> {
        if layout.s.tenants.get(t.index()).is_some_and(|spec| spec.stack.ccnic().is_some()) {
            if let Some(mut i) = build(layout.s, t, &mut layout.map) {
                let peers = &layout.groups[t].peers;
                i.nic_threads.clone_from(peers);
                if i.queues() <= peers.len() {
                    i.nic_cores.clone_from(peers);
                }
                layout.tenants[t].state.roles.add(i);
            }
        }
        Ok(())
    }

    fn threads(&self, layout: &mut HostLayout, t: TenantId) -> Option<Vec<Thread>> {
        layout.tenants[t].state.roles.get::<CcnicInterface>()?;
        let all = layout.groups[t].cores.len() + layout.groups[t].peers.len();
        Some(threads_of(layout, t, 0..all))
    }
}

/// Threads of the cores `locals` of `t`, which has an interface: first its own, then those of the NIC.
pub(super) fn threads_of(layout: &mut HostLayout, t: TenantId, locals: Range<usize>) -> Vec<Thread> {
    let drivers = driver_threads(layout, t);
    let tenant = &layout.tenants[t];
    let interface = tenant.state.roles.get().expect("memory of the interface");
    let mut driven = drivers.into_iter().zip(tenant.driven.memory.iter().map(|m| m.sent));
    locals.map(|local| thread(layout.s, t, interface, local, &mut driven)).collect()
}

/// Fits the cores of `t`'s interface to its keys: without prefetchers, or with the requests of an agent.
pub(super) fn fit_cores(s: &Scenario, t: TenantId, group: &CoreGroup, cpus: &mut IdVec<ThreadId, Cpu>) {
    let Some(p) = parts(s, t) else { return };
    let off = |side: &[ThreadId], on: bool| side.iter().filter(|_| !on).copied().collect::<Vec<_>>();
    let host = off(&group.cores, p.spec.quirks.host_prefetch);
    for cpu in host.into_iter().chain(off(&group.peers, p.spec.quirks.nic_prefetch)) {
        (cpus[cpu].prefetcher, cpus[cpu].l1_prefetcher) = (None, None);
    }
    if let Some(n) = p.spec.agent_requests() {
        group.peers.iter().for_each(|c| cpus[*c].lfb = AheadDomain::new(n));
    }
}

/// The tenant on CC-NIC, and its application.
struct CcnicTenant<'a> {
    tenant: TenantId,
    queues: u32,
    /// Generator of packets; None for an application that serves packets.
    app: Option<&'a LoopbackSpec>,
    spec: CcnicSpec,
}

/// Parts of the scenario that describe `tenant` on CC-NIC; None on another stack.
fn parts(s: &Scenario, tenant: TenantId) -> Option<CcnicTenant<'_>> {
    let spec = s.tenant(tenant).stack.ccnic()?.clone();
    let app = match &s.tenant(tenant).app {
        AppSpec::Loopback(app) => Some(app),
        _ => None,
    };
    let queues = s.peers_of(tenant)?.cores.max(s.tenant(tenant).receivers());
    Some(CcnicTenant { tenant, queues, app, spec })
}

/// Allocates the memory of `tenant`'s interface, at its home nodes; any core's caches may hold all of it.
fn build(s: &Scenario, tenant: TenantId, map: &mut AddressMap) -> Option<CcnicInterface> {
    let CcnicTenant { queues, spec, .. } = parts(s, tenant)?;
    let nodes = |end| match end {
        CcnicSide::Host => NodeId(s.tenant(tenant).node),
        CcnicSide::Nic => NodeId(spec.nic_node.to_u8()),
    };
    let (tx, rx, buffer) = (nodes(spec.quirks.tx_home), nodes(spec.quirks.rx_home), nodes(spec.quirks.buffer_home));
    let mut homes = [tx, rx, tx, rx, buffer, buffer].into_iter();
    let [tx_rings, rx_rings, tx_registers, rx_registers, pools, buffers] = spec.lines(queues.into()).map(|lines| {
        let r = map.add(lines, RegionKind::App, Sharing::Shared, tenant);
        map.set_home(r, homes.next().unwrap_or(buffer));
        map.get(r).base
    });
    let nic = s.ring_of(tenant).map(|ringed| ringed.port);
    let memory = CcnicMemory { tx_rings, rx_rings, tx_registers, rx_registers, pools, buffers };
    // TAS holds some buffers of its own.
    let all_known = !matches!(s.tenant(tenant).app, AppSpec::TcpEcho(_));
    Some(CcnicInterface::new(&spec, queues, memory, nic, all_known))
}

/// Thread of core `local` of `tenant`; cores beyond the tenant's own belong to the NIC. `driven` yields an overlay's
/// drivers, each with the first line of the data that it sends.
fn thread(
    s: &Scenario,
    tenant: TenantId,
    i: &CcnicInterface,
    local: usize,
    driven: &mut impl Iterator<Item = (Thread, LineAddr)>,
) -> Thread {
    let p = parts(s, tenant).expect("an interface has a tenant");
    let own = s.tenant(p.tenant).cores.to_usize();
    let setup = Setup { spec: &p.spec, core: &s.platform.core, interface: i };
    let demand = |queue, bytes: f64| demand(s, tenant, queue, i.pairs.len(), bytes);
    // Each thread of the NIC has every `threads`-th queue pair.
    let threads = s.peers_of(p.tenant).map_or(own, |p| p.cores.to_usize());
    Thread::CcNic(Box::new(match (local.checked_sub(own), p.app, p.spec.mode) {
        (None, Some(app), CcnicMode::Loopback) => {
            CcnicThread::host(setup, local, app, demand(local, app.bytes.0.to_f64()))
        }
        (None, app, _) => CcnicThread::server(setup, work(s, tenant, app), local, own),
        (Some(first), Some(app), CcnicMode::Loopback) => match threads {
            _ if threads < own => CcnicThread::bank(setup, (first..own).step_by(threads), app),
            _ => CcnicThread::nic(setup, first, app),
        },
        (Some(first), app, CcnicMode::Forward) => {
            let wire = |queue| (queue, wire(s, tenant, app, queue, &demand));
            CcnicThread::wires(setup, (first..own).step_by(threads).map(wire))
        }
        (Some(queue), ..) => match driven.next() {
            Some((Thread::PollMode(driver), data)) => CcnicThread::overlay(setup, queue, *driver, data),
            _ => unreachable!("an overlay has a poll-mode driver for each thread of the NIC"),
        },
    }))
}

/// Work of the threads of `tenant`'s cores, which serve packets or return those of `app`.
fn work(s: &Scenario, tenant: TenantId, app: Option<&LoopbackSpec>) -> ServerWork {
    match app {
        Some(a) => ServerWork::Return { bytes: a.bytes.0.to_u32(), header_only: a.touch == Touched::Header },
        None => ServerWork::Serve { answers_all: matches!(s.tenant(tenant).app, AppSpec::CliqueMap(_)) },
    }
}

/// Packets that arrive from the wire for queue pair `queue` of `tenant`: those of `app`, or those that its application
/// draws.
fn wire(
    s: &Scenario,
    tenant: TenantId,
    app: Option<&LoopbackSpec>,
    queue: usize,
    demand: &impl Fn(usize, f64) -> Demand,
) -> Wire {
    let Some(app) = app else {
        let (bytes, mean) = s.traffic_of(tenant).frame_sizes();
        let sizes = client::sizes(s, tenant, queue.to_u64());
        return Wire { demand: demand(queue, mean), bytes: bytes.to_u32(), packets: WirePackets::Drawn { sizes } };
    };
    Wire { demand: demand(queue, app.bytes.0.to_f64()), bytes: app.bytes.0.to_u32(), packets: WirePackets::Returned }
}
