//! TAS on a host: its memory and its threads.

use super::ccnic;
use super::layout::HostLayout;
use super::rings::driver_threads;
use super::role_layout::RoleLayout;
use crate::app::tcp_echo::TcpEchoSpec;
use crate::app::AppSpec;
use crate::config::Scenario;
use crate::device::endpoint::Endpoint;
use crate::device::nic::RingsSpec;
use crate::device::NicAt;
use crate::kernel::{Int, TenantId, ThreadId};
use crate::memory::region::{AddressMap, RegionKind, Sharing};
use crate::stack::ccnic::{CcnicInterface, CcnicThread, Setup};
use crate::stack::tas::{sizes, Io, Service, Tas, TasMemory};
use crate::stack::Thread;
use crate::traffic::frame::rss_hash;
use crate::traffic::generator::addresses;

/// Tenants whose TCP is a service on cores of its own.
pub(super) struct TcpServices;

impl RoleLayout for TcpServices {
    fn lay_out(&self, layout: &mut HostLayout, t: TenantId) -> Result<(), String> {
        let service = layout.s.tenants.get(t.index()).and_then(|spec| match &spec.app {
            AppSpec::TcpEcho(app) => Some(build(layout.s, t, app, &layout.groups[t].cores, &mut layout.map)),
            _ => None,
        });
        service.into_iter().for_each(|s| layout.tenants[t].state.roles.add(s));
        Ok(())
    }

    fn threads(&self, layout: &mut HostLayout, t: TenantId) -> Option<Vec<Thread>> {
        layout.tenants[t].state.roles.get::<Service>()?;
        steer(layout, t);
        let own = layout.groups[t].cores.len();
        let overlay = layout.s.tenant(t).has_overlay();
        let mut drivers = if overlay { Vec::new() } else { driver_threads(layout, t) }.into_iter();
        let interface = layout.tenants[t].state.roles.get();
        let mut threads: Vec<_> = (0..own).map(|local| thread(layout.s, t, local, interface, &mut drivers)).collect();
        if overlay {
            let all = own + layout.groups[t].peers.len();
            threads.extend(ccnic::threads_of(layout, t, own..all));
        }
        Some(threads)
    }
}

/// Allocates the memory of the TCP service of `tenant`, which has `cores`.
fn build(s: &Scenario, tenant: TenantId, spec: &TcpEchoSpec, cores: &[ThreadId], map: &mut AddressMap) -> Service {
    let fast = s.tenant(tenant).receivers().to_usize();
    let mut add = |lines, sharing| {
        let r = map.add(lines, RegionKind::App, sharing, tenant);
        map.get(r).base
    };
    let (shared, own, sockets) = sizes(spec.flows);
    let [buckets, states, receive, transmit] = shared.map(|n| add(n, Sharing::Shared));
    let thread = |c: &ThreadId| {
        let [to, from, managed] = own;
        [add(to, Sharing::Shared), add(from, Sharing::Shared), add(managed, Sharing::of_thread(*c))]
    };
    let threads = cores[..fast].iter().map(thread).collect();
    let sockets = map.add(sockets, RegionKind::App, Sharing::of_thread(cores[fast]), tenant);
    let sockets = map.get(sockets).base;
    let memory = TasMemory { buckets, states, receive, transmit, threads, sockets };
    let nic = s.nic_of(tenant).map(|(port, _)| NicAt::Port(port));
    Service::new(spec.clone(), memory, &cores[..=fast], nic, remedy(s))
}

/// Clause about the keys that a user may change when segments are lost, which the clients cannot retransmit.
fn remedy(s: &Scenario) -> String {
    let nics = s.peripherals.iter().enumerate();
    let room = nics.filter_map(|(i, p)| Some((i, p.ethernet()?))).next().map_or(String::new(), |(i, nic)| {
        let descriptors = nic.rings.as_ref().map_or(RingsSpec::default().receive, |r| r.receive);
        format!(
            ", or enlarge peripheral[{i}].receive_buffer = \"{}\" or peripheral[{i}].rings.receive = {descriptors}",
            nic.receive_buffer
        )
    });
    format!(
        "lower the load, which is traffic.outstanding = flows x pipelined of tenant[{}].app{room}",
        s.tas_tenant().unwrap_or_default()
    )
}

/// Assigns each flow of `t` to the queue that RSS chooses among those of its function of the NIC.
fn steer(layout: &mut HostLayout, t: TenantId) {
    let plan = &mut layout.tenants[t];
    let (function, port) = (plan.driven.function, plan.driven.port);
    let Some((Endpoint::Ethernet(nic), ..)) = port.map(|p| &layout.devices[p.index()]) else { return };
    let Some(service) = plan.state.roles.get_mut::<Service>() else { return };
    for (i, flow) in service.flows.iter_mut().enumerate() {
        let (source, destination) = addresses(i.to_u32());
        flow.hash = rss_hash(source, destination);
        flow.queue = nic.classify(function, i.to_u32(), flow.hash);
    }
}

/// Thread of core `local` of TAS's tenant, with the next driver or with queue pairs of an overlay.
fn thread(
    s: &Scenario,
    tenant: TenantId,
    local: usize,
    interface: Option<&CcnicInterface>,
    drivers: &mut impl Iterator<Item = Thread>,
) -> Thread {
    let fast = s.tenant(tenant).receivers().to_usize();
    Thread::Tas(Box::new(match interface {
        _ if local == fast => Tas::echo(),
        Some(interface) => {
            let spec = s.ccnic_of(tenant);
            let setup = Setup { spec: &spec, core: &s.platform.core, interface };
            Tas::fast(local, Io::Ports(CcnicThread::ports(setup, local, fast)))
        }
        None => match drivers.next() {
            Some(Thread::PollMode(d)) => Tas::fast(local, Io::Driver(d)),
            _ => unreachable!("each thread of the fast path has a driver"),
        },
    }))
}
