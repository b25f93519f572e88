//! Construction of a cold host from its scenario: the roles lay themselves out, then come machine and threads.

use super::client;
use super::floor::{looks_at_all_nodes, FloorPlan};
use super::guest::GUESTS;
use super::measure::Window;
use super::network;
use super::queue_pairs::lay_out_buffers;
use super::traffic_source::TrafficSource;
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
        let mut floor = FloorPlan::new(s, keep_frames)?;
        for guest in GUESTS {
            floor.ids().try_for_each(|t| guest.lay_out(&mut floor, t))?;
        }
        for guest in GUESTS {
            floor.ids().try_for_each(|t| guest.lay_out_behind_devices(&mut floor, t))?;
        }
        give_traffic(&mut floor);
        let cores = core_slots(&mut floor);
        let owners = owners(&mut floor);
        let (machine, tenants) = floor.machine()?;
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
    let mut floor = FloorPlan::new(s, false)?;
    let tenant = TenantId(0);
    let cores = floor.groups[tenant].cores.len();
    lay_out_buffers(&mut floor, tenant, cores, false);
    floor.map.add(PAGE_LINES, RegionKind::App, Sharing::Core(CoreId(0)), tenant);
    if looks_at_all_nodes(s) {
        for node in 0..s.nodes().count {
            let r = floor.map.add(PAGE_LINES, RegionKind::App, Sharing::Shared, tenant);
            floor.map.set_home(r, NodeId(node.to_u8()));
        }
    }
    let kernel = floor.kernel();
    GUESTS.iter().try_for_each(|guest| guest.lay_out(&mut floor, kernel))?;
    let (machine, _) = floor.machine()?;
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
fn give_traffic(floor: &mut FloorPlan) {
    let s = floor.s;
    for (order, t) in s.tenant_ids().filter(|t| check::serves(s.tenant(*t))).enumerate() {
        floor.tenants[t].state.source = Some(source(floor, t, order.to_u64()));
    }
    for (order, t) in s.tenant_ids().enumerate() {
        floor.tenants[t].state.spikes = s.traffic_of(t).spikes.as_ref().map(|p| {
            let rng = RandomStream::new(s.seed, "spikes", order.to_u64());
            Spikes::new(p.probability, p.min.into(), p.max.into(), rng)
        });
    }
}

/// Makes the threads of all cores, and the roles of tenants whose connections are made with their threads.
fn core_slots(floor: &mut FloorPlan) -> IdVec<ThreadId, CoreSlot> {
    let mut threads: IdVec<TenantId, std::vec::IntoIter<Thread>> = IdVec::new();
    for t in floor.ids() {
        let brought = GUESTS.iter().rev().find_map(|guest| guest.threads(floor, t)).unwrap_or_default();
        threads.push(brought.into_iter());
    }
    let slot = |(c, (tenant, local)): (usize, &(TenantId, u16))| CoreSlot {
        tenant: *tenant,
        local: *local,
        idle: IdleState::Asleep,
        rng: RandomStream::new(floor.s.seed, "core", c.to_u64()),
        thread: threads[*tenant].next().expect("a thread for each core"),
    };
    let slots = floor.slots.iter().enumerate().map(slot).collect();
    network::connect(floor);
    slots
}

/// Owners of what the hardware signals.
fn owners(floor: &mut FloorPlan) -> Owners {
    let kernel = floor.kernel();
    let drivers: IdVec<_, _> = floor.ports.iter_mut().map(|p| std::mem::take(&mut p.queues)).collect();
    let accounting_cores = Host::accounting_cores(&floor.tenants[kernel].state, drivers.len());
    let tenant_cores = floor.s.tenants.iter().map(|t| t.cores.to_usize()).sum();
    Owners { drivers, accounting_cores, tenant_cores, linked: None }
}

/// Source of the packets of `tenant`, before which `order` others have a source.
fn source(floor: &FloorPlan, tenant: TenantId, order: u64) -> TrafficSource {
    let (s, driven, capture) = (floor.s, &floor.tenants[tenant].driven, floor.captures[tenant].clone());
    let (spec, ring) = (s.tenant(tenant), s.ring_of(tenant));
    TrafficSource {
        arrivals: None,
        base: Time::ZERO,
        rng: RandomStream::new(s.seed, "traffic", order),
        at: ring.as_ref().map_or(NicAt::Chip, |r| NicAt::Port(r.port)),
        burst: ring.as_ref().map(|r| r.driver.burst()),
        cores: match ring {
            Some(_) => driven.cores.clone(),
            None => floor.groups[tenant].cores[..spec.receivers().to_usize()].to_vec(),
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
    }
}
