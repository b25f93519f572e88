//! Checks of several tenants on one host. Each tenant that receives packets, or whose threads work together, must be valid
//! alone; and what the tenants share must serve all of them.

use super::check::{need, past_caches, serves, Check};
use super::scenario::{Jobs, Load, RunSpec, Scenario, TenantSpec, TrafficSpec};
use super::traffic::sets_no_size;
use crate::app::{AppSpec, WorkSource};
use crate::device::PeripheralSpec;
use crate::kernel::TenantId;

/// A tenant alone on the host, and the places of its parts in the whole scenario.
pub(super) struct Part {
    pub scenario: Scenario,
    tenant: TenantId,
    /// Number of the tenant's NIC among the peripherals.
    nic: Option<usize>,
    own_traffic: bool,
    own_ccnic: bool,
}

impl Part {
    /// Names the keys of a message about the part as they are in the whole scenario.
    pub fn place(&self, why: String) -> String {
        let mut why = why.replace("tenant[0]", &format!("tenant[{}]", self.tenant.index()));
        if let Some(nic) = self.nic {
            why = why.replace("peripheral[0]", &format!("peripheral[{nic}]"));
        }
        if self.own_traffic {
            why = why.replace("traffic.", &format!("tenant[{}].traffic.", self.tenant.index()));
        }
        if self.own_ccnic {
            why = why.replace("ccnic.", &format!("tenant[{}].ccnic.", self.tenant.index()));
        }
        why
    }
}

/// Whether the tenant's threads are more than free-running applications.
fn works_together(t: &TenantSpec) -> bool {
    if past_caches(t) {
        return false;
    }
    serves(t)
        || t.work() == WorkSource::Kernel
        || t.stack.ccnic().is_some()
        || matches!(t.app, AppSpec::TcpEcho(_) | AppSpec::Pingpong(_) | AppSpec::StreamTransfer(_))
}

/// The tenants that receive packets or work together, each alone on the host; empty where there is one at most, with
/// nothing beside it that has to be told apart.
pub(super) fn parts(s: &Scenario) -> Vec<Part> {
    let tenants: Vec<TenantId> = s.tenant_ids().filter(|t| works_together(s.tenant(*t))).collect();
    let paired = |t: &TenantSpec| matches!(t.app, AppSpec::Pingpong(_) | AppSpec::StreamTransfer(_));
    let on_chip = |t: &TenantSpec| serves(t) && !t.has_rings() && !s.peripherals.is_empty();
    let apart = |t: &TenantId| {
        let t = s.tenant(*t);
        let more = s.tenants.len() > 1 || !s.peripherals.is_empty();
        t.traffic.is_some()
            || t.stack.nic().is_some()
            || t.stack.ccnic().is_some_and(|c| s.ccnic.as_ref() != Some(c))
            || on_chip(t)
            || more && (paired(t) || t.stack.ccnic().is_some() || matches!(t.app, AppSpec::TcpEcho(_)))
    };
    if tenants.len() < 2 && !tenants.iter().any(apart) {
        return Vec::new();
    }
    let linked = s.ringed().map(|r| r.tenant);
    tenants.into_iter().map(|t| part(s, t, linked == Some(t))).collect()
}

/// `tenant` alone; with the client of the scenario, if it is `linked`.
fn part(s: &Scenario, tenant: TenantId, linked: bool) -> Part {
    let t = s.tenant(tenant);
    let of = t.stack.nic();
    let named = |p: &PeripheralSpec| p.ethernet().is_some_and(|e| of.is_none() || e.name.as_ref() == of);
    let nic = s.peripherals.iter().position(named).filter(|_| t.has_port());
    let own = serves(t) || t.stack.ccnic().is_some() || matches!(t.app, AppSpec::Pingpong(_));
    // A search leaves tenants alone whose packets come from no load generator.
    let load = if s.run.load.searches() && !serves(t) { Load::Fixed } else { s.run.load };
    let run = match own {
        true => RunSpec { time: super::scenario::span(), load, ..s.run.clone() },
        false => RunSpec { requests: super::scenario::requests(), warmup_requests: None, load, ..s.run.clone() },
    };
    let mut traffic = s.traffic_of(tenant).clone();
    if !own {
        traffic = TrafficSpec { dctcp: traffic.dctcp, ..TrafficSpec::default() };
    }
    let receives = |t: &TenantSpec| t.work() == WorkSource::Kernel;
    if !receives(t) && traffic.dctcp == s.traffic.dctcp && s.tenants.iter().any(receives) {
        traffic.dctcp = None; // the senders are those of other tenants' flows
    }
    if !sets_no_size(&t.app) && traffic.packet == s.traffic.packet {
        traffic.packet = None; // the size is of other tenants' packets
    }
    let scenario = Scenario {
        tenants: Jobs::Tenants(vec![TenantSpec { traffic: None, stack: t.stack.clone().without_nic(), ..t.clone() }]),
        traffic,
        peripherals: nic.map(|i| s.peripherals[i].clone()).into_iter().collect(),
        ccnic: t.stack.ccnic().cloned(),
        client: s.client.clone().filter(|_| linked),
        run,
        ..s.clone()
    };
    let own_ccnic = t.stack.ccnic().is_some_and(|c| s.ccnic.as_ref() != Some(c));
    Part { scenario, tenant, nic, own_traffic: t.traffic.is_some(), own_ccnic }
}

/// Checks that each tenant that names a NIC has one, and that names are unambiguous.
pub(super) fn nics(s: &Scenario) -> Check {
    let names: Vec<_> = s.ethernets().filter_map(|(_, nic)| nic.name.clone()).collect();
    for (i, name) in names.iter().enumerate() {
        need(!names[..i].contains(name), || format!("two [[peripheral]]s have the name \"{name}\""))?;
    }
    let count = s.ethernets().count();
    for (i, t) in s.tenants.iter().enumerate() {
        let (driven, key) = (t.has_port(), format!("tenant[{i}].nic"));
        match t.stack.nic() {
            Some(name) => {
                need(driven, || {
                    format!("{key} = \"{name}\": the tenant's packets come through no Ethernet NIC; leave it out")
                })?;
                need(names.contains(name), || {
                    let valid = if names.is_empty() {
                        "none has a name".into()
                    } else {
                        format!("valid: {}", names.join(", "))
                    };
                    format!("{key} = \"{name}\" is the name of no [[peripheral]] of kind \"ethernet\" ({valid})")
                })?;
            }
            None => need(!driven || count < 2, || {
                format!("{key} is missing: there are {count} Ethernet NICs; give each a name, and the tenant one of the names")
            })?,
        }
    }
    Ok(())
}

/// Checks that what the tenants share serves all of them.
pub(super) fn shared(s: &Scenario) -> Check {
    need(s.client.is_none() || s.ringed().is_some(), || {
        "client needs a tenant with stack = \"poll_mode\" or \"kernel\" and a [[peripheral]] of kind \"ethernet\""
            .into()
    })?;
    for (port, nic) in s.ethernets() {
        let on = |t: &TenantId| s.nic_of(*t).is_some_and(|(p, _)| p == port) && s.tenant(*t).has_port();
        let tenants: Vec<TenantId> = s.tenant_ids().filter(on).collect();
        need(!tenants.is_empty(), || {
            let same = |p: &PeripheralSpec| p.ethernet() == Some(nic);
            let i = s.peripherals.iter().position(same).unwrap_or_default();
            format!("no tenant's packets come through peripheral[{i}] of kind \"ethernet\"; leave it out, or give a tenant a stack")
        })?;
        let other = |t: TenantId| tenants.iter().copied().find(|o| *o != t);
        let whose = || nic.name.as_ref().map_or("the NIC".to_string(), |n| format!("NIC \"{n}\""));
        for t in &tenants {
            let Some(o) = other(*t) else { continue };
            let (key, spec) = (format!("tenant[{}]", t.index()), s.tenant(*t));
            need(!matches!(spec.app, AppSpec::TcpReceive(_)), || {
                format!(
                    "{key}.app.kind = \"tcp_receive\": its senders have the link of {} to themselves, and tenant[{}] has the same NIC; give \
                     one of them a NIC of its own",
                    whose(),
                    o.index()
                )
            })?;
            need(spec.has_rings(), || {
                format!(
                    "{key} receives frames with a completion each, and {} writes descriptors back to rings for tenant[{}]; \
                     give one of them a NIC of its own, or {key} stack = \"kernel\"",
                    whose(),
                    o.index()
                )
            })?;
            need(!spec.loops(), || {
                format!(
                    "{key}: the wire of {} returns every frame to its sender, so that nothing comes for tenant[{}]; give one of \
                     them a NIC of its own",
                    whose(),
                    o.index()
                )
            })?;
            need(s.client.is_none() || s.ringed().map(|r| r.tenant) != Some(*t), || {
                format!(
                    "[client] is the other end of the link of {}, and sends for {key} alone; give tenant[{}] a NIC of its own",
                    whose(),
                    o.index()
                )
            })?;
            need(!matches!(spec.app, AppSpec::TcpEcho(_)), || {
                format!(
                    "{key} keeps state of each connection by the NIC's queue, so that {} belongs to it; give tenant[{}] a NIC of \
                     its own",
                    whose(),
                    o.index()
                )
            })?;
        }
        let queues: u32 = tenants.iter().map(|t| s.tenant(*t).receivers()).sum();
        need(queues <= u16::MAX.into() && tenants.len() <= usize::from(u8::MAX), || {
            format!("{} has no {queues} queues", whose())
        })?;
    }
    let on_ccnic = s.ccnic_tenant().is_some();
    need(s.ccnic.is_none() || on_ccnic, || "ccnic needs a tenant with stack = \"ccnic\"".into())
}

/// Checks that devices have their memory at the node to which they are attached.
pub(super) fn nodes(s: &Scenario) -> Check {
    let mut on_chip: Option<(usize, u8)> = None;
    for (i, t) in s.tenants.iter().enumerate() {
        let (key, tenant) = (format!("tenant[{i}].node = {}", t.node), TenantId::new(i));
        if t.has_port() {
            let Some((_, nic)) = s.nic_of(tenant) else { continue };
            let (node, key) = match t.stack.ccnic() {
                Some(c) => (c.nic_node, format!("ccnic.nic_node = {}", c.nic_node)),
                None => (t.node.into(), key),
            };
            need(node == u32::from(nic.node), || {
                format!(
                    "{key}: the NIC is attached to node {0} and writes to the memory of that node; give {0} there, or node = {node} of the \
                     [[peripheral]]",
                    nic.node
                )
            })?;
        } else if serves(t) {
            let (first, node) = *on_chip.get_or_insert((i, t.node));
            need(node == t.node, || {
                format!(
                    "{key}: the integrated NIC is on the chip of node {node}, where tenant[{first}] has queue pairs, and writes to the \
                     memory of that node; give node = {node}"
                )
            })?;
        }
    }
    Ok(())
}
