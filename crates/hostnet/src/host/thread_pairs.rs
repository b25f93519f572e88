//! Pairs of threads that exchange lines: a ping-pong, or a writer and a reader. One thread of each pair is on the
//! tenant's node.

use super::layout::HostLayout;
use super::rings::driver_threads;
use super::role_layout::RoleLayout;
use crate::app::stream_transfer::Written;
use crate::app::AppSpec;
use crate::config::Scenario;
use crate::kernel::{Int, NodeId, TenantId, ThreadId};
use crate::memory::region::{AddressMap, RegionKind, Sharing};
use crate::memory::LINE;
use crate::stack::extension::StackSite;
use crate::stack::pingpong::{PingPongPairs, PingPongThread};
use crate::stack::pmd::PollMode;
use crate::stack::role::Roles;
use crate::stack::transfer::{PairMemory, TransferPairs, TransferRole, TransferThread};
use crate::stack::Thread;

/// Tenants whose roles bring their threads: pairs of threads, and stacks of one's own.
pub(super) struct OwnThreads;

impl RoleLayout for OwnThreads {
    fn lay_out(&self, layout: &mut HostLayout, t: TenantId) -> Result<(), String> {
        let HostLayout { s, map, groups, tenants, .. } = layout;
        let Some(spec) = s.tenants.get(t.index()) else { return Ok(()) };
        let (group, plan) = (&groups[t], &mut tenants[t]);
        match spec.stack.extension() {
            None => plan.threads = build(s, t, map, &group.cores, &group.peers, &mut plan.state.roles),
            // Its drivers come with the devices.
            Some(_) if spec.has_rings() => {}
            Some(_) => own_stack(layout, t, Vec::new())?,
        }
        Ok(())
    }

    fn lay_out_behind_devices(&self, layout: &mut HostLayout, t: TenantId) -> Result<(), String> {
        let spec = layout.s.tenants.get(t.index());
        if !spec.is_some_and(|spec| spec.stack.extension().is_some() && spec.has_rings()) {
            return Ok(());
        }
        let driver = |thread| match thread {
            Thread::PollMode(driver) => Some(*driver),
            _ => None,
        };
        let drivers = driver_threads(layout, t).into_iter().map(driver).collect();
        own_stack(layout, t, drivers)
    }

    fn threads(&self, layout: &mut HostLayout, t: TenantId) -> Option<Vec<Thread>> {
        let threads = std::mem::take(&mut layout.tenants[t].threads);
        (!threads.is_empty()).then_some(threads)
    }
}

/// Builds the stack of one's own of tenant `t`, whose receiving cores have `drivers` on a port.
fn own_stack(layout: &mut HostLayout, t: TenantId, drivers: Vec<Option<PollMode>>) -> Result<(), String> {
    let HostLayout { s, map, groups, tenants, .. } = layout;
    let Some(e) = s.tenant(t).stack.extension() else { return Ok(()) };
    let mut site = StackSite {
        tenant: t,
        cores: &groups[t].cores,
        core: &s.platform.core,
        queue_pair: &s.platform.queue_pair,
        spent: s.placement.spent(),
        seed: s.seed,
        map,
        drivers,
    };
    let built = e.factory().build(&e.keys, &mut site);
    let (role, threads) = built.map_err(|why| format!("tenant[{t}].stack: {why}"))?;
    tenants[t].state.roles.put(role);
    tenants[t].threads = threads;
    Ok(())
}

/// Builds the threads of `tenant`'s cores and then those of the peers, and adds what they share to `roles`; none when
/// its application does not work in pairs. `cores` are the tenant's cores, `peers` the others.
fn build(
    s: &Scenario,
    tenant: TenantId,
    map: &mut AddressMap,
    cores: &[ThreadId],
    peers: &[ThreadId],
    roles: &mut Roles,
) -> Vec<Thread> {
    let (here, app) = (NodeId(s.tenant(tenant).node), &s.tenant(tenant).app);
    let mut add = |lines, sharing, home| {
        let r = map.add(lines, RegionKind::App, sharing, tenant);
        map.set_home(r, home);
        map.get(r).base
    };
    let n = cores.len();
    let (mut first, mut second) = (Vec::new(), Vec::new());
    match app {
        AppSpec::Pingpong(p) => {
            roles.add(PingPongPairs::new(2 * n));
            let there = NodeId(p.peer_node);
            let home = |other: bool| if other { there } else { here };
            let (a, b) = p.layout.at_other();
            let a = add(n.to_u64(), Sharing::Shared, home(a));
            let b = if p.layout.together() { a } else { add(n.to_u64(), Sharing::Shared, home(b)) };
            for i in 0..n {
                let (own, other) = ((a + i.to_u64(), 2 * i), (b + i.to_u64(), 2 * i + 1));
                first.push(Thread::PingPong(PingPongThread::new(true, own, other)));
                second.push(Thread::PingPong(PingPongThread::new(false, other, own)));
            }
        }
        AppSpec::StreamTransfer(t) => {
            roles.add(TransferPairs::new(2 * n));
            let there = NodeId(t.peer_node);
            let (lines, chunk) = (t.size().0 / LINE, t.chunk.0 / LINE);
            let (buffers, nontemporal) = match t.stores {
                Written::Cached => (here, false),
                Written::Nontemporal => (there, true),
                Written::None => (there, false),
            };
            let written = add(n.to_u64(), Sharing::Shared, here);
            let read = add(n.to_u64(), Sharing::Shared, there);
            for (i, core) in cores.iter().enumerate() {
                let alone = t.stores == Written::None;
                let sharing = if alone { Sharing::of_thread(*core) } else { Sharing::Shared };
                let memory = PairMemory {
                    buffer: add(lines, sharing, buffers),
                    chunk,
                    chunks: lines / chunk,
                    written: (written + i.to_u64(), 2 * i),
                    read: (read + i.to_u64(), 2 * i + 1),
                };
                let role = if alone { TransferRole::Alone } else { TransferRole::Writer { nontemporal } };
                first.push(Thread::Transfer(TransferThread::new(role, memory)));
                if let Some(peer) = peers.get(i) {
                    let to = add(chunk, Sharing::of_thread(*peer), there);
                    second.push(Thread::Transfer(TransferThread::new(TransferRole::Reader { to }, memory)));
                }
            }
        }
        _ => {}
    }
    first.extend(second);
    first
}
