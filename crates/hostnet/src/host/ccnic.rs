//! CC-NIC on a host: allocation of its memory, and its threads on both sides.

use super::threads::demand;
use crate::app::loopback::LoopbackSpec;
use crate::app::AppSpec;
use crate::config::scenario::StackSpec;
use crate::config::Scenario;
use crate::kernel::{Int, LineAddr, NodeId, TenantId};
use crate::memory::region::{AddressMap, RegionKind, Sharing};
use crate::stack::ccnic::spec::{CcnicMode, CcnicSide, CcnicSpec};
use crate::stack::ccnic::{CcnicInterface, CcnicMemory, CcnicThread, Setup};
use crate::stack::Thread;

/// The tenant on CC-NIC, and its application.
pub struct CcnicTenant<'a> {
    pub tenant: TenantId,
    pub queues: u32,
    /// Generator of packets; None for an overlay.
    pub app: Option<&'a LoopbackSpec>,
    pub spec: CcnicSpec,
}

/// Parts of the scenario that describe `tenant` on CC-NIC; None on another stack.
pub fn parts(s: &Scenario, tenant: TenantId) -> Option<CcnicTenant<'_>> {
    if s.tenant(tenant).stack != Some(StackSpec::Ccnic) {
        return None;
    }
    let app = match &s.tenant(tenant).app {
        AppSpec::Loopback(app) => Some(app),
        _ => None,
    };
    let queues = s.peers_of(tenant)?.cores.max(s.tenant(tenant).receivers());
    Some(CcnicTenant { tenant, queues, app, spec: s.ccnic.clone().unwrap_or_default() })
}

/// Allocates the memory of `tenant`'s interface, at its home nodes; any core's caches may hold all of it.
pub fn build(s: &Scenario, tenant: TenantId, map: &mut AddressMap) -> Option<CcnicInterface> {
    let CcnicTenant { queues, spec, .. } = parts(s, tenant)?;
    let nodes = |end| match end {
        CcnicSide::Host => NodeId(s.tenant(tenant).node),
        CcnicSide::Nic => NodeId(spec.nic_node.to_u8()),
    };
    let (tx, rx, buffer) = (nodes(spec.tx_home), nodes(spec.rx_home), nodes(spec.buffer_home));
    let mut homes = [tx, rx, tx, rx, buffer, buffer].into_iter();
    let [tx_rings, rx_rings, tx_registers, rx_registers, pools, buffers] = spec.lines(queues.into()).map(|lines| {
        let r = map.add(lines, RegionKind::App, Sharing::Shared, tenant);
        map.set_home(r, homes.next().unwrap_or(buffer));
        map.get(r).base
    });
    let nic = s.ringed().filter(|_| s.overlay()).map(|ringed| ringed.port);
    let memory = CcnicMemory { tx_rings, rx_rings, tx_registers, rx_registers, pools, buffers };
    // TAS holds some buffers of its own.
    let all_known = !matches!(s.tenant(tenant).app, AppSpec::TcpEcho(_));
    Some(CcnicInterface::new(&spec, queues, memory, nic, all_known))
}

/// Thread of core `local` of `tenant`; cores beyond the tenant's own belong to the NIC. `driven` yields an overlay's
/// drivers, each with the first line of the data that it sends.
pub fn thread(
    s: &Scenario,
    tenant: TenantId,
    i: &CcnicInterface,
    local: usize,
    driven: &mut impl Iterator<Item = (Thread, LineAddr)>,
) -> Thread {
    let p = parts(s, tenant).expect("an interface has a tenant");
    let own = s.tenant(p.tenant).cores.to_usize();
    let forwards = p.spec.mode == CcnicMode::Forward;
    let setup = Setup { spec: &p.spec, core: &s.platform.core, interface: i };
    let demand = |queue, app: &LoopbackSpec| demand(s, tenant, queue, i.pairs.len(), app.bytes.0);
    Thread::CcNic(Box::new(match (local.checked_sub(own), p.app) {
        (None, Some(app)) if forwards => CcnicThread::server(setup, Some(app), local, own),
        (Some(queue), Some(app)) if forwards => CcnicThread::wire(setup, queue, app, demand(queue, app)),
        (None, Some(app)) => CcnicThread::host(setup, local, app, demand(local, app)),
        (None, None) => CcnicThread::server(setup, None, local, own),
        (Some(first), Some(app)) => match s.peers_of(p.tenant).map_or(own, |p| p.cores.to_usize()) {
            threads if threads < own => CcnicThread::bank(setup, (first..own).step_by(threads), app),
            _ => CcnicThread::nic(setup, first, app),
        },
        (Some(queue), None) => match driven.next() {
            Some((Thread::PollMode(driver), data)) => CcnicThread::overlay(setup, queue, *driver, data),
            _ => unreachable!("an overlay has a poll-mode driver for each thread of the NIC"),
        },
    }))
}
