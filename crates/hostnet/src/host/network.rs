//! Networks of TCP receivers on a host.

use super::layout::HostLayout;
use super::role_layout::RoleLayout;
use super::threads::tcp_receiver;
use crate::app::AppSpec;
use crate::config::Scenario;
use crate::device::nic::{EthernetSpec, FrameMemory, COMPLETIONS};
use crate::kernel::{RandomStream, TenantId, ThreadId};
use crate::memory::region::{AddressMap, Contiguous, Pages, RegionKind, Sharing, PAGE};
use crate::memory::LINE;
use crate::stack::tcp::{Network, NetworkPlace};

/// Tenants that receive TCP from a NIC that completes each frame with a line of its own.
pub(super) struct FrameReceivers;

impl RoleLayout for FrameReceivers {
    fn lay_out(&self, layout: &mut HostLayout, t: TenantId) -> Result<(), String> {
        let HostLayout { s, map, groups, ports, .. } = layout;
        if receiving(s).any(|r| r == t) && s.ring_of(t).is_none() {
            if let Some((port, nic)) = s.nic_of(t) {
                let port = &mut ports[port];
                port.memory.frames.extend(frame_memory(s, t, nic, &groups[t].cores, map));
                groups[t].cores.iter().for_each(|c| _ = port.queues.push(*c));
            }
        }
        Ok(())
    }
}

/// Connects the tenants that receive TCP with their senders.
pub(super) fn connect(layout: &mut HostLayout) {
    for t in receiving(layout.s) {
        if let Some(n) = build(layout, t) {
            layout.tenants[t].state.roles.add(n);
        }
    }
}

/// The tenants that receive TCP, each with an Ethernet NIC.
fn receiving(s: &Scenario) -> impl Iterator<Item = TenantId> + '_ {
    let receives = |t: &TenantId| matches!(s.tenant(*t).app, AppSpec::TcpReceive(_));
    s.tenant_ids().filter(receives).filter(|t| s.nic_of(*t).is_some())
}

/// Connections to the cores of `tenant`; None without an Ethernet NIC.
fn build(layout: &HostLayout, tenant: TenantId) -> Option<Network> {
    let (s, groups) = (layout.s, &layout.groups);
    let (port, nic) = s.nic_of(tenant)?;
    let edge = tcp_receiver(s, tenant).map_or(0, |r| r.receiver.first_edge());
    let dctcp = s.traffic_of(tenant).dctcp.clone().unwrap_or_default();
    let others = s.tenant_ids().filter(|t| !receiving(s).any(|r| r == *t));
    let others = others.flat_map(|t| groups[t].cores.iter().copied()).collect();
    Some(Network::new(NetworkPlace { tenant, port, cores: groups[tenant].cores.clone(), others }, nic, &dctcp, edge))
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
