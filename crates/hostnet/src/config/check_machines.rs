//! Checks of machines with several nodes and of a second host: combinations that are not supported.

use super::check::{check, most_cores, need, Check};
use super::check_mixture;
use super::scenario::{ArrivalsSpec, PeripheralSpec, Scenario, StackSpec, TenantSpec};
use crate::app::Origin;
use crate::kernel::Int;
use crate::memory::spec::{DeviceRead, LlcRole};
use std::iter::repeat_n;

/// Checks the second host, which needs requests to send and a NIC with descriptor rings in memory.
pub(super) fn client(s: &Scenario) -> Check {
    let Some(c) = &s.client else {
        let senders = s.find_tenant(|t| t.app.origin() == Origin::Due);
        let alone = senders.filter(|_| s.traffic.arrivals() != ArrivalsSpec::None);
        return match alone {
            Some(i) => Err(format!("tenant[{i}].app.kind = \"load_generator\" is for the [client] of a scenario")),
            None => Ok(()),
        };
    };
    need(c.app.origin() == Origin::Due, || "client.app.kind must be \"load_generator\"".into())?;
    need(matches!(c.stack, StackSpec::PollMode | StackSpec::Kernel), || {
        let here = c.stack.name();
        match c.stack {
            StackSpec::QueuePair => {
                "client.stack = \"queue_pair\" is of a NIC on the chip, and the link of two hosts joins their \
                                     Ethernet NICs; give \"poll_mode\" or \"kernel\""
                    .into()
            }
            _ => format!(
                "client.stack = \"{here}\": a load generator there is not built yet; give \"poll_mode\" or \"kernel\""
            ),
        }
    })?;
    let Some(ringed) = s.ringed() else {
        return Err(
            "client needs a tenant with stack = \"poll_mode\" or \"kernel\" and a [[peripheral]] of kind \"ethernet\""
                .into(),
        );
    };
    need(s.tenant(ringed.tenant).origin() == Origin::Network, || {
        "client: the application of the scenario sends packets of its own, and answers none".into()
    })?;
    need(s.traffic.arrivals() != ArrivalsSpec::None, || {
        "client: traffic.arrivals is missing: the load generator needs requests to send".into()
    })?;
    let nic = s.peripherals.iter().find_map(PeripheralSpec::ethernet).expect("a ring has a NIC");
    let other = s.client_host().expect("it has a client");
    let its = other.peripherals.iter().find_map(PeripheralSpec::ethernet).unwrap_or(nic);
    need((nic.link, nic.propagation) == (its.link, its.propagation), || {
        format!(
            "client.ethernet has a link of \"{}\" and \"{}\", and the peripheral one of \"{}\" and \"{}\": it is the same link",
            its.link, its.propagation, nic.link, nic.propagation
        )
    })?;
    check(&other).map_err(|e| format!("client: {}", e.replace("tenant[0].", "")))
}

/// Checks that each node has the cores that its tenants ask for.
pub(super) fn cores_of_nodes(s: &Scenario, count: u32, cores: u32) -> Check {
    for node in 0..count {
        let of = s.tenants.iter().filter(|t| u32::from(t.node) == node);
        let storage = s.storage_nodes().filter(|n| n.index() == node.to_usize()).count().to_u64();
        let nic = s.peer_cores(node);
        let asked: u64 = of.map(|t| u64::from(t.cores)).sum::<u64>() + nic + storage;
        let whose = match (nic, storage) {
            (0, 0) => "",
            (0, _) => " and SSDs",
            _ => " and their peers",
        };
        let threads = s.platform.core.threads;
        need(asked <= u64::from(cores) * u64::from(threads), || {
            let by_tenants = asked - nic - storage > nic + storage;
            let most = if by_tenants { most_cores(s, |t| u32::from(t.node) == node) } else { String::new() };
            format!("tenants{whose} of node {node} ask for {asked} cores{most}; a node has {cores}{}", with_threads(s))
        })?;
        if asked > cores.into() {
            second_threads(s, node)?;
        }
    }
    Ok(())
}

/// Suffix of a message after a number of cores that have several hardware threads.
pub(super) fn with_threads(s: &Scenario) -> String {
    match s.platform.core.threads {
        1 => String::new(),
        n => format!(" of {n} threads each"),
    }
}

/// Checks that the two threads of each core of `node` can have half of its buffers each, and agree on what the core has
/// once.
pub(super) fn second_threads(s: &Scenario, node: u32) -> Check {
    let on_node = |t: &TenantSpec| u32::from(t.node) == node;
    let tenants = s.tenants.iter().enumerate().filter(|(_, t)| on_node(t));
    let own = tenants.flat_map(|(i, t)| repeat_n((Some(i), t.l2_size), t.cores.to_usize()));
    let storage = s.storage_nodes().filter(|n| n.index() == node.to_usize()).map(|_| (None, None));
    let peers = s.peers().filter(|p| p.node == node);
    let peers = peers.flat_map(|p| repeat_n((Some(p.tenant.index()), s.tenant(p.tenant).l2_size), p.cores.to_usize()));
    let threads: Vec<_> = own.chain(storage).chain(peers).collect();
    let each = s.cores_per_node().to_usize();
    for ((first, size), (second, other)) in threads.iter().zip(threads.iter().skip(each)) {
        let whose = first.filter(|_| size.is_some()).or(*second).unwrap_or_default();
        need(size == other, || {
            format!(
                "tenant[{whose}].l2_size is of a core whose two threads run tenants with different L2 sizes, and the threads share one L2; \
                 give each thread a core, of which a node has {each}, or all tenants of the node the same l2_size"
            )
        })?;
    }
    if let Some((key, n)) = s.platform.core.halved().into_iter().find(|(_, n)| n % 2 > 0) {
        let near = if n > 1 { format!("{} or {}", n - 1, n + 1) } else { "2".into() };
        return Err(format!(
            "platform.core.{key} = {n} is odd: node {node} has more threads than its {each} cores, and each thread has half; choose {near}"
        ));
    }
    match s.tenant_ids().find(|t| s.peers_of(*t).is_some_and(|p| p.node == node) && s.ccnic_of(*t).agent_requests().is_some()) {
        Some(t) => Err(format!(
            "ccnic.nic = \"agent\" of tenant[{t}]: an agent has a cache of its own and shares no core, and node {node} has more threads than \
             its {each} cores"
        )),
        None => Ok(()),
    }
}

/// Checks that a scenario with several nodes uses no combination that is not supported yet.
pub(super) fn several_nodes(s: &Scenario) -> Check {
    let count = s.nodes().count;
    let nodes = s.tenants.iter().map(|t| t.node).chain(s.tenants.probe().map(|p| p.node));
    let of_tenants = nodes.enumerate().map(|(i, node)| (format!("tenant[{i}]"), node));
    let of_devices = s.peripherals.iter().enumerate().map(|(i, p)| (format!("peripheral[{i}]"), p.node().0));
    if let Some((key, node)) = of_tenants.chain(of_devices).find(|(_, node)| u32::from(*node) >= count) {
        return Err(format!("{key}.node = {node} does not exist: nodes count from 0 to {}", count - 1));
    }
    if count == 1 {
        return Ok(());
    }
    let caches = &s.platform.caches;
    let llc = &caches.llc;
    let responses = caches.l1d.response_cycles + caches.l2.response_cycles + llc.quirks.response_cycles;
    check_mixture::nodes(s)?;
    let refused = [
        (llc.role == LlcRole::StrictlyInclusive, "caches.llc.role = \"strictly_inclusive\"".into()),
        (llc.quirks.device_read == DeviceRead::Install, "caches.llc.quirks.device_read = \"install\"".into()),
        (llc.quirks.mshrs > 0, format!("caches.llc.quirks.mshrs = {}", llc.quirks.mshrs)),
        (responses > 0, "response_cycles of caches.l1d, caches.l2 and caches.llc above 0".into()),
    ];
    match refused.into_iter().find(|r| r.0) {
        Some((_, what)) => Err(format!(
            "platform.nodes.count = {count}: {what} is not built yet for several nodes; override.nodes.count = 1 has the first one alone"
        )),
        None => Ok(()),
    }
}
