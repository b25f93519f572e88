//! Networks of TCP receivers on a host.

use super::threads::tcp_receiver;
use crate::app::AppSpec;
use crate::config::Scenario;
use crate::kernel::{IdVec, TenantId, ThreadId};
use crate::stack::tcp::{Network, NetworkPlace};

/// The tenants that receive TCP, each with an Ethernet NIC.
pub fn receiving(s: &Scenario) -> impl Iterator<Item = TenantId> + '_ {
    let receives = |t: &TenantId| matches!(s.tenant(*t).app, AppSpec::TcpReceive(_));
    s.tenant_ids().filter(receives).filter(|t| s.nic_of(*t).is_some())
}

/// Connections to the cores of `tenant`; None without an Ethernet NIC. `groups` are the cores of each tenant.
pub fn build(s: &Scenario, tenant: TenantId, groups: &IdVec<TenantId, Vec<ThreadId>>) -> Option<Network> {
    let (port, nic) = s.nic_of(tenant)?;
    let edge = tcp_receiver(s, tenant).map_or(0, |r| r.receiver.first_edge());
    let dctcp = s.traffic_of(tenant).dctcp.clone().unwrap_or_default();
    let others = s.tenant_ids().filter(|t| !receiving(s).any(|r| r == *t));
    let others = others.flat_map(|t| groups[t].iter().copied()).collect();
    Some(Network::new(NetworkPlace { tenant, port, cores: groups[tenant].clone(), others }, nic, &dctcp, edge))
}
