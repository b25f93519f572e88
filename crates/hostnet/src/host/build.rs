//! Construction of a cold host from its scenario: the roles lay themselves out, then come machine and threads.

use super::client;
use super::layout::{looks_at_all_nodes, HostLayout};
use super::measure::Window;
use super::network;
use super::queue_pairs::lay_out_buffers;
use super::role_layout::ROLE_LAYOUTS;
use super::traffic_source::{BurstStarts, TrafficSource};
use super::{CoreSlot, Host, IdleState, Meters, Owners, RunState};
use crate::config::check;
use crate::config::Scenario;
use crate::device::NicAt;
use crate::kernel::{Clock, CoreId, IdVec, Int, NodeId, RandomStream, TenantId, ThreadId, Time};
use crate::memory::region::{RegionKind, Sharing};
use crate::probe::Bench;
use crate::stack::Thread;
use crate::traffic::spikes::Spikes;
use std::collections::VecDeque;
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
        let mut layout = HostLayout::new(s, keep_frames)?;
        for role_layout in ROLE_LAYOUTS {
            layout.ids().try_for_each(|t| role_layout.lay_out(&mut layout, t))?;
        }
        for role_layout in ROLE_LAYOUTS {
            layout.ids().try_for_each(|t| role_layout.lay_out_behind_devices(&mut layout, t))?;
        }
        give_traffic(&mut layout);
        let cores = core_slots(&mut layout);
        let owners = owners(&mut layout);
        let (machine, tenants) = layout.machine()?;
        let mut host = Host {
            machine,
            tenants: tenants.into_iter().map(|t| t.state).collect(),
            cores,
            owners,
            run: RunState::default(),
            meters: Meters {
                window: Window::new(),
                trace: super::trace::HostTrace::new(s.run.trace.map(Into::into)),
                timeline: super::timeline::Timeline::new(s.run.timeline.map(Into::into)),
                observer: None,
            },
            spec: spec.clone(),
        };
        let on_chip = |c: &CoreSlot| host.tenants[c.tenant].source.as_ref().is_some_and(|s| s.at == NicAt::Chip);
        let rings = host.cores.enumerate().filter(|(_, c)| on_chip(c) && c.local < host.own_cores(c.tenant));
        rings.map(|(c, _)| c).collect::<Vec<_>>().into_iter().for_each(|c| host.machine.ring_chip(c));
        host.start();
        Ok(host)
    }

    /// Number of the own cores of a tenant; 0 for the kernel.
    fn own_cores(&self, tenant: TenantId) -> u16 {
        self.spec.tenants.get(tenant.index()).map_or(0, |t| t.cores.to_u16())
    }
}

/// Builds the idle machine on which the scenario's directed probe runs.
///
/// # Errors
/// Returns one sentence that names the key that does not work.
pub(super) fn bench(s: &Scenario) -> Result<Bench, String> {
    let mut layout = HostLayout::new(s, false)?;
    let tenant = TenantId(0);
    let cores = layout.groups[tenant].cores.len();
    lay_out_buffers(&mut layout, tenant, cores, false);
    layout.map.add(PAGE_LINES, RegionKind::App, Sharing::Core(CoreId(0)), tenant);
    if looks_at_all_nodes(s) {
        for node in 0..s.nodes().count {
            let r = layout.map.add(PAGE_LINES, RegionKind::App, Sharing::Shared, tenant);
            layout.map.set_home(r, NodeId(node.to_u8()));
        }
    }
    let kernel = layout.kernel();
    ROLE_LAYOUTS.iter().try_for_each(|role_layout| role_layout.lay_out(&mut layout, kernel))?;
    let (machine, _) = layout.machine()?;
    Ok(Bench {
        machine,
        clock: Clock::from_hz(s.platform.core.clock.0),
        l1: s.platform.caches.l1d.clone(),
        buffer_size: s.rings.buffer_size,
        sweep_rx: s.placement.sweep_rx,
        sweep_tx: s.placement.sweep_tx,
    })
}

/// Gives tenants that serve packets a source of packets, and their stalls.
fn give_traffic(layout: &mut HostLayout) {
    let s = layout.s;
    for (order, t) in s.tenant_ids().filter(|t| check::serves(s.tenant(*t))).enumerate() {
        layout.tenants[t].state.source = Some(source(layout, t, order.to_u64()));
    }
    for t in s.tenant_ids() {
        layout.tenants[t].state.spikes = spikes(s, t);
    }
}

/// Stalls of the requests of tenant `t`, where it has any.
pub(super) fn spikes(s: &Scenario, t: TenantId) -> Option<Spikes> {
    s.traffic_of(t).spikes.as_ref().map(|p| {
        let rng = RandomStream::new(s.seed, "spikes", t.index().to_u64());
        Spikes::new(p.probability, p.min.into(), p.max.into(), rng)
    })
}

/// Makes the threads of all cores, and the roles of tenants whose connections are made with their threads.
fn core_slots(layout: &mut HostLayout) -> IdVec<ThreadId, CoreSlot> {
    let mut threads: IdVec<TenantId, std::vec::IntoIter<Thread>> = IdVec::new();
    for t in layout.ids() {
        let brought =
            ROLE_LAYOUTS.iter().rev().find_map(|role_layout| role_layout.threads(layout, t)).unwrap_or_default();
        threads.push(brought.into_iter());
    }
    let slot = |(c, (tenant, local)): (usize, &(TenantId, u16))| CoreSlot {
        tenant: *tenant,
        local: *local,
        idle: IdleState::Asleep,
        rng: RandomStream::new(layout.s.seed, "core", c.to_u64()),
        round: None,
        thread: threads[*tenant].next().expect("a thread for each core"),
    };
    let slots = layout.slots.iter().enumerate().map(slot).collect();
    network::connect(layout);
    slots
}

/// Owners of what the hardware signals.
fn owners(layout: &mut HostLayout) -> Owners {
    let kernel = layout.kernel();
    let drivers: IdVec<_, _> = layout.ports.iter_mut().map(|p| std::mem::take(&mut p.queues)).collect();
    let accounting_cores = Host::accounting_cores(&layout.tenants[kernel].state, drivers.len());
    let tenant_cores = layout.s.tenants.iter().map(|t| t.cores.to_usize()).sum();
    Owners { drivers, accounting_cores, tenant_cores, linked: None }
}

/// Source of the packets of `tenant`, before which `order` others have a source.
fn source(layout: &HostLayout, tenant: TenantId, order: u64) -> TrafficSource {
    let (s, driven, capture) = (layout.s, &layout.tenants[tenant].driven, layout.captures[tenant].clone());
    let (spec, ring) = (s.tenant(tenant), s.ring_of(tenant));
    TrafficSource {
        arrivals: None,
        base: Time::ZERO,
        rng: RandomStream::new(s.seed, "traffic", order),
        at: ring.as_ref().map_or(NicAt::Chip, |r| NicAt::Port(r.port)),
        burst: ring.as_ref().map(|r| r.driver.burst()),
        cores: match ring {
            Some(_) => driven.cores.clone(),
            None => layout.groups[tenant].cores[..spec.receivers().to_usize()].to_vec(),
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
        bursts: BurstStarts::default(),
    }
}
