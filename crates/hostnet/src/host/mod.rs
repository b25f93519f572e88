//! A host, which is built from its scenario and driven by the calendar.

mod application;
mod background;
mod build;
mod ccnic;
mod client;
pub mod control;
mod decision;
mod exchange;
mod layout;
mod life;
mod load;
mod loopback;
mod measure;
mod network;
mod placement_metrics;
mod polls;
mod predict;
mod queue_pairs;
mod rings;
mod role_layout;
mod servers;
mod shares;
mod steadiness;
mod storage;
mod tas;
mod tenant;
mod tenant_table;
mod thread_numbering;
mod thread_pairs;
mod threads;
mod timeline;
mod timer;
mod trace;
mod traffic_source;
mod two_hosts;
mod uncore;
mod warm_up;
mod watch;

pub use life::{trace, Lived, PacketTrace, Pick, QueueCounter, ThreadSlice, ThreadState};
pub use load::{fill_key, run, run_and_capture, run_and_trace_memory, run_controlled, run_each, OnResult, Progress};
pub use measure::Outcome;
pub use two_hosts::hosts;
pub use watch::{watch, Phase, Snapshot, Watch};

use crate::app::{Origin, WorkSource};
use crate::config::scenario::TenantSpec;
use crate::config::Scenario;
use crate::core::Retired;
use crate::device::iio::Iio;
use crate::device::nic::Nic;
use crate::device::{NicAt, RingSide};
use crate::flow::{AheadDomain, Domain};
use crate::kernel::{Due, IdVec, PacketId, PortId, Post, QueueId, TenantId, ThreadId, Time};
use crate::machine::{Event, Machine, MachineSignal};
use crate::placement::EpochCounters;
use crate::stack::role::IdleState;
use crate::stack::tcp::received;
use crate::stack::{
    qp, Awaited, CoreSlot, Ctx, Notice, Role, Software, Step, StepFacts, StepMachine, StepTraffic, Thread, Wakes,
};
use crate::traffic::software::SoftwareClient;
use crate::traffic::TrafficEvent;
use crate::{core, device};
use measure::Window;
use std::sync::Arc;
use tenant::TenantState;
use timer::Timer;
use traffic_source::PacketOwner;

/// Owners of what the hardware signals: the core that works for a queue, and the core that works for a device.
#[derive(Clone)]
struct Owners {
    /// Cores that drive the queues of the NIC on each port, by queue.
    drivers: IdVec<PortId, IdVec<QueueId, ThreadId>>,
    /// Core that does the kernel's page accounting for the device on each port, if the kernel does any.
    accounting_cores: IdVec<PortId, Option<ThreadId>>,
    /// Number of the tenants' cores; the kernel's cores have higher numbers.
    tenant_cores: usize,
    /// Tenant at the end of the link to a second host, if there is one.
    linked: Option<TenantId>,
}

/// State of the run.
#[derive(Clone, Default)]
struct RunState {
    /// Whether nothing new begins, so that work in flight drains.
    stopped: bool,
    /// Requests that all tenants have completed since the host began.
    completed_ever: u64,
    control: Option<Box<control::Control>>,
    /// Reason for which the run cannot go on.
    failed: Option<String>,
}

/// Measurements of a host beside those of its parts.
#[derive(Clone)]
struct Meters {
    window: Window,
    trace: trace::HostTrace,
    timeline: timeline::Timeline,
    /// Observer of the lives of chosen packets, where the run records whole lives.
    observer: Option<Box<life::Observer>>,
}

/// The simulated host, with all work in flight.
#[derive(Clone)]
pub struct Host {
    spec: Arc<Scenario>,
    /// The hardware: memory, cores and devices on one calendar.
    pub machine: Machine,
    /// The tenants, and the kernel behind them.
    tenants: IdVec<TenantId, TenantState>,
    cores: IdVec<ThreadId, CoreSlot>,
    owners: Owners,
    run: RunState,
    meters: Meters,
}

impl Host {
    /// Posts the first events, with which free-running cores and traffic start.
    fn start(&mut self) {
        for c in self.cores.ids() {
            let t = self.cores[c].tenant;
            let starts = |t: &TenantSpec| t.app.work() == WorkSource::Own || t.app.origin() == Origin::Always;
            let runs = self.tenants[t].roles.iter().any(Role::runs_from_start);
            if runs || self.spec.tenants.get(t.index()).is_some_and(starts) {
                self.cores[c].idle = IdleState::Not;
                self.machine.cal.post(self.machine.now, core::CoreEvent::Free(c));
            }
        }
        if let Some(iio) = &mut self.machine.iio {
            iio.start(&mut self.machine.cal, self.machine.now);
        }
        self.each_role(|role, bus| role.start(bus));
        self.next_epoch(0);
    }

    /// Runs until an event at `end` or later, or until `done` returns true; `done` is called after each event.
    #[inline(never)]
    fn run_until(&mut self, end: Time, mut done: impl FnMut(&Host) -> bool) {
        if self.meters.observer.is_some() {
            return self.run_observed(end, &mut done);
        }
        while let Some(e) = self.machine.pop() {
            if let Some(s) = self.machine.handle(e) {
                self.on(s);
            }
            if done(self) || self.machine.now >= end {
                return;
            }
        }
    }

    /// Passes a signal of the hardware to software, or to the traffic outside the host.
    #[inline(always)]
    fn on(&mut self, s: MachineSignal) {
        // A device moves lines far more often than anything else happens, and completes no request by it.
        if let MachineSignal::Moved { port, lines } = s {
            if let Some(c) = self.owners.accounting_cores[port] {
                self.notify(c, Notice::Lines { port, lines: lines.into() });
            }
            return;
        }
        self.dispatch(s);
    }

    #[inline(never)]
    fn dispatch(&mut self, s: MachineSignal) {
        match s {
            MachineSignal::CoreFree(c) => self.step(c),
            MachineSignal::Retired(c) => self.deliver_side_effects(c),
            MachineSignal::Doorbell(c, tag) => self.with_thread(c, |thread, c| thread.retired(tag, c)),
            MachineSignal::Delivered(c) => self.notify(c, Notice::Queue),
            MachineSignal::Interrupt(c) => self.interrupt(c),
            MachineSignal::Line(c) => self.notify(c, Notice::Line),
            MachineSignal::Sent(NicAt::Chip, id) => self.sent(id),
            MachineSignal::Sent(NicAt::Port(port), id) => self.sent_from_port(port, id),
            MachineSignal::Moved { .. } => {} // taken before
            MachineSignal::Landed(port) if self.has_rings(port) => self.rings_landed(port),
            MachineSignal::Landed(port) => self.frames_landed(port),
            MachineSignal::Answer(id) => unreachable!("transaction {id} is of no agent that a host has"),
            MachineSignal::Traffic(e) => self.on_traffic(e),
            MachineSignal::Timer(n) => self.on_timer(Timer::numbered(n)),
        }
        self.count_completed();
    }

    #[inline]
    fn on_traffic(&mut self, e: TrafficEvent) {
        match e {
            TrafficEvent::Arrival(t) => {
                // A source that has changed to another process leaves its last event behind.
                if !self.on_link_arrival(t)
                    && !self.on_wire_arrival(t)
                    && self.tenants[t].source.as_ref().is_some_and(|s| s.arrivals.is_some())
                {
                    self.begin_burst(t);
                    self.inject(t, PacketOwner::Any);
                    self.next_arrival(t);
                }
            }
            TrafficEvent::Offer(t) => self.on_offer(t),
            TrafficEvent::Back(t) => self.on_back(t),
            TrafficEvent::Overdue(t) => self.on_overdue(t),
            TrafficEvent::Emit { tenant, .. }
            | TrafficEvent::Probe { tenant, .. }
            | TrafficEvent::Segment(tenant)
            | TrafficEvent::Ack(tenant) => {
                self.any_role(tenant, |role, bus| role.on_traffic(e, bus));
            }
        }
    }

    fn on_timer(&mut self, t: Timer) {
        match t {
            Timer::Epoch => self.epoch(),
            Timer::Sample => self.on_sample(),
            Timer::Bin => self.on_bin(),
            Timer::Control => self.on_control(),
            Timer::Role => self.each_role(|role, bus| role.on_timer(bus)),
        }
    }

    /// Calls `f` with a core's thread and the resources that the thread may use.
    #[inline]
    fn with_thread<R>(&mut self, core: ThreadId, f: impl FnOnce(&mut Thread, &mut Ctx) -> R) -> R {
        let at_home = self.machine.arrival_at_home(core);
        let (m, slot) = (&mut self.machine, &mut self.cores[core]);
        let tenant = &mut self.tenants[slot.tenant];
        let step = StepFacts {
            thread: core,
            local: slot.local.into(),
            now: m.now,
            arrival_at_home: at_home,
            stopped: self.run.stopped,
        };
        let mut c = Ctx {
            step,
            program: &mut m.cpus[core].program,
            rng: &mut slot.rng,
            machine: StepMachine {
                cal: &mut m.cal,
                nic: &mut m.nic,
                iio: m.iio.as_mut(),
                off_core: m.mem.off_core.as_mut(),
            },
            app: tenant.app.as_mut(),
            traffic: StepTraffic {
                generator: tenant.source.as_mut().map(|s| &mut s.generator),
                spikes: tenant.spikes.as_mut(),
            },
            roles: &mut tenant.roles,
            tally: &mut tenant.tally,
        };
        f(&mut slot.thread, &mut c)
    }

    /// Steps the thread of a core, which is free, and starts the core's next activity.
    fn step(&mut self, core: ThreadId) {
        let tenant = self.cores[core].tenant;
        let taken = self.tenants[tenant].tally.taken;
        let next = self.with_thread(core, |thread, c| thread.step(c));
        let tally = &mut self.tenants[tenant].tally;
        let takes = tally.taken != taken;
        if let Some(b) = tally.bursts.as_mut().filter(|_| takes) {
            b.taken(self.machine.now);
        }
        if self.machine.mem.siblings.is_some() {
            self.on_step_beside_sibling(core, next);
        }
        match next {
            Step::Run => self.machine.start(core),
            Step::Wait { on, instructions } => self.wait(core, on, instructions, Due::NEVER),
            Step::WaitUntil { on, instructions, until } => {
                self.machine.cal.push(until.max(self.machine.now), Event::Interrupt(core));
                self.wait(core, on, instructions, Due::at(until));
            }
            Step::Poll { of, until } => self.poll(core, of, until),
            Step::Until(at) => {
                self.cores[core].idle = IdleState::Asleep;
                self.machine.cal.push(at.max(self.machine.now), Event::Interrupt(core));
            }
            Step::Idle => self.cores[core].idle = IdleState::Asleep,
        }
        if takes {
            self.refill_queue(core);
        }
        while let Some(woken) = self.woken(tenant) {
            self.notify(woken, Notice::Queue);
        }
    }

    /// Lets a core poll from now on.
    fn wait(&mut self, core: ThreadId, on: Awaited, instructions: u32, until: Due) {
        let now = self.machine.now;
        if let Awaited::Line(line) = on {
            let of = self.machine.core_of(core);
            if !self.machine.mem.holds(of, line) {
                // Another agent invalidated the line after the thread had read it, so this poll finds the new content.
                return self.machine.cal.post(now, core::CoreEvent::Free(core));
            }
            self.machine.mem.watch(core, of, line);
        }
        self.cores[core].idle = IdleState::Polling { on, since: now, instructions, counted: 0, until };
    }

    /// Notifies a core's thread of an event.
    #[inline]
    fn notify(&mut self, core: ThreadId, what: Notice) {
        let now = self.machine.now;
        let slot = &mut self.cores[core];
        match (slot.thread.notify(what, now), slot.idle) {
            (Wakes::Now, IdleState::Asleep) => {
                slot.idle = IdleState::Not;
                self.machine.cal.post(now, core::CoreEvent::Free(core));
            }
            (Wakes::Now, IdleState::Polling { on, since, instructions, counted, .. }) => {
                slot.idle = IdleState::Not;
                if on != Awaited::Queue && what != Notice::Line {
                    self.machine.mem.unwatch(core);
                }
                let cpu = &mut self.machine.cpus[core];
                let (at, polls) = cpu.next_poll(since, now, instructions);
                cpu.instructions += (polls - counted) * u64::from(instructions);
                self.machine.cal.post(at, core::CoreEvent::Free(core));
            }
            (Wakes::Now, IdleState::PollingInTurn { .. }) => self.resume_polls(core),
            _ => {}
        }
    }

    /// Posts the interrupts that queues of the NIC on `port` have requested; only sleeping cores take them.
    fn deliver_interrupts(&mut self, port: PortId) {
        while let Some((queue, at)) = self.machine.nic_at(NicAt::Port(port)).and_then(Nic::interrupt) {
            let Some(core) = self.driver_of(port, queue) else { continue };
            if let IdleState::Asleep = self.cores[core].idle {
                // Software that has stopped leaves interrupts behind that were due before.
                self.machine.cal.push(at.max(self.machine.now), Event::Interrupt(core));
            }
        }
    }

    fn interrupt(&mut self, core: ThreadId) {
        match self.cores[core].idle {
            IdleState::Asleep => {
                self.cores[core].idle = IdleState::Not;
                self.step(core);
            }
            IdleState::Polling { until, .. } | IdleState::PollingInTurn { until }
                if until.by(self.machine.now).is_some() =>
            {
                self.notify(core, Notice::Due);
            }
            _ => {}
        }
    }

    fn deliver_side_effects(&mut self, core: ThreadId) {
        while let Some(r) = self.machine.retired(core) {
            match r {
                Retired::Tag(tag) => self.with_thread(core, |thread, c| thread.retired(tag, c)),
                Retired::Mmio(_) => {} // the notice is already in the calendar
                _ => continue,
            }
            self.end_batch(core);
        }
        if self.machine.mem.siblings.is_some() {
            self.notify_sibling(core);
        }
        let tenant = self.cores[core].tenant;
        while let Some(woken) = self.woken(tenant) {
            self.notify(woken, Notice::Queue);
        }
    }

    /// Lets the sibling of `core`, if it polls a line, look at the line again: a store of `core` invalidates no copy of the
    /// caches that both have.
    #[cold]
    fn notify_sibling(&mut self, core: ThreadId) {
        let Some(other) = self.machine.mem.sibling(core) else { return };
        if let IdleState::Polling { on: Awaited::Line(_), .. } = self.cores[other].idle {
            self.notify(other, Notice::Sibling);
        }
    }

    /// Takes the next core of `tenant` that another core has woken.
    #[inline]
    fn woken(&mut self, tenant: TenantId) -> Option<ThreadId> {
        self.tenants[tenant].roles.iter_mut().find_map(Role::take_wake_up)
    }

    /// Ends the transmission of packet `id`'s reply by the integrated NIC.
    fn sent(&mut self, id: PacketId) {
        let now = self.machine.now;
        let p = *self.machine.nic.packet(id);
        let (queue, thread) = (p.queue, ThreadId(p.queue.0)); // the NIC on the chip has a queue for each thread
        let tenant = self.cores[thread].tenant;
        self.replied(tenant, &p);
        let released = self.machine.nic.release_tx(&mut self.machine.cal, id, now);
        if self.spec.platform.queue_pair.quirks.send_completions {
            self.machine.nic.complete_send(queue);
        }
        qp::ended(&mut self.machine.nic, id, &mut self.tenants[tenant].tally, now);
        self.machine.nic.end_use(id);
        if p.zero_copy && self.machine.nic.reclaims {
            self.machine.nic.leave_to_software(id);
            self.notify(thread, Notice::Queue);
        } else if p.zero_copy {
            self.machine.cal.post(released, device::DeviceEvent::Freed(NicAt::Chip, id));
        } else {
            self.notify(thread, Notice::Queue); // the thread may have waited for a transmit buffer
        }
    }

    /// Ends the transmission of packet `id` by the NIC on `port`.
    fn sent_from_port(&mut self, port: PortId, id: PacketId) {
        let now = self.machine.now;
        let Some(nic) = self.machine.nic_at(NicAt::Port(port)) else { return };
        let p = *nic.packet(id);
        let Some(tenant) = self.owners.drivers[port].get(p.queue).map(|c| self.cores[*c].tenant) else { return };
        if self.any_role(tenant, |role, bus| role.on_sent(port, id, bus)) {
            return;
        }
        if self.tenants[tenant].source.as_ref().is_some_and(|s| s.loops) {
            return self.loop_back(tenant, port, id);
        }
        let originates = self.spec.tenant(tenant).app.origin() == Origin::Always;
        let state = &mut self.tenants[tenant];
        let Some(nic) = self.machine.nic_at(NicAt::Port(port)) else { return };
        qp::ended(nic, id, &mut state.tally, now);
        nic.end_use(id);
        if let Some(client) = state.roles.get_mut::<SoftwareClient>() {
            if let (Some(r), Some(end)) = (client.left(id), state.roles.get_mut::<two_hosts::LinkEnd>()) {
                end.send(r.packet, (r.number, r.core), now);
            }
        } else if !originates {
            self.replied(tenant, &p);
        }
    }

    /// Notifies the cores whose descriptors the NIC on `port` has written back to memory.
    fn rings_landed(&mut self, port: PortId) {
        while let Some((queue, side)) = self.machine.nic_at(NicAt::Port(port)).and_then(Nic::landed_ring) {
            let Some(core) = self.driver_of(port, queue) else { continue };
            let tenant = self.cores[core].tenant;
            let state = &self.tenants[tenant];
            match side {
                RingSide::Receive => self.notify(core, Notice::Queue),
                RingSide::Transmit => {
                    let index = queue.index() - state.source.as_ref().map_or(0, |s| s.first_queue.index());
                    let other = state.roles.iter().find_map(|r| r.transmitting_core(index));
                    self.notify(other.unwrap_or(core), Notice::Transmitted);
                }
            }
        }
        self.deliver_interrupts(port);
    }

    /// Notifies cores of frames from the NIC on `port` that are wholly in memory.
    fn frames_landed(&mut self, port: PortId) {
        while let Some((queue, frame)) = self.machine.nic_at(NicAt::Port(port)).and_then(received) {
            let Some(core) = self.driver_of(port, queue) else { continue };
            self.notify(core, Notice::Frame(frame));
        }
        self.deliver_interrupts(port);
    }

    /// Core whose driver has `queue` of the NIC on `port`.
    fn driver_of(&self, port: PortId, queue: QueueId) -> Option<ThreadId> {
        self.owners.drivers[port].get(queue).copied()
    }

    /// Whether the device on `port` is a NIC with descriptor rings in memory.
    fn has_rings(&self, port: PortId) -> bool {
        self.machine.iio.as_ref().and_then(|iio| iio.nic(port)).is_some_and(Nic::has_rings)
    }

    fn epoch(&mut self) {
        let counters = EpochCounters::of(&self.machine.mem.stats);
        self.machine.placement.decide(&counters);
        // Epochs that end before the next event find the counters as they are.
        let next = self.machine.cal.next_at().zip(self.machine.placement.epoch());
        let silent = next.map_or(0, |(at, epoch)| at.saturating_sub(self.machine.now).0.saturating_sub(1) / epoch.0);
        self.machine.placement.decide_in_silence(&counters, silent);
        self.machine.placement_has_changed();
        self.next_epoch(silent);
    }

    /// Posts the end of the epoch that follows `silent` further ones.
    fn next_epoch(&mut self, silent: u64) {
        if let Some(epoch) = self.machine.placement.epoch().filter(|_| !self.run.stopped) {
            self.machine.cal.post(self.machine.now + epoch * (silent + 1), Timer::Epoch);
        }
    }

    /// Runs for `time`.
    pub fn run_for(&mut self, time: Time) {
        let end = self.machine.now + time;
        self.run_until(end, |_| false);
        self.count_polls();
    }

    /// Stops devices, and cores that serve no packets, and lets all work in flight end.
    pub fn drain(&mut self) {
        self.run.stopped = true;
        if let Some(iio) = &mut self.machine.iio {
            iio.stopped = true;
        }
        self.each_role(|role, _| role.stop());
        self.run_until(Time::MAX, |_| false);
    }

    /// Line fill buffers of every core.
    pub fn line_fill_buffers(&self) -> impl Iterator<Item = &AheadDomain> {
        self.machine.cpus.iter().map(|c| &c.lfb)
    }

    /// Number of LLC ways that devices may allocate into now.
    pub fn placement_ways(&self) -> u32 {
        self.machine.placement.ways()
    }

    /// Write and read buffer of each IIO.
    pub fn iio_buffers(&self) -> impl Iterator<Item = (&Domain, &Domain)> {
        self.machine.iio.iter().flat_map(Iio::buffers)
    }

    /// Checks the conservation laws, which must hold at any time.
    ///
    /// # Errors
    /// Returns one sentence about what is not conserved.
    pub fn check(&self) -> Result<(), String> {
        self.machine.mem.check()?;
        self.machine.cpus.iter().try_for_each(|c| c.check(&self.machine.mem))?;
        if let Some(iio) = &self.machine.iio {
            iio.check()?;
        }
        self.role_views().try_for_each(|(role, view)| role.check_conservation(&view))?;
        self.machine.nic.check()?;
        self.check_packets()?;
        if self.machine.mem.stats.stale_reads + self.machine.mem.stats.sweep_races > 0 {
            return Err(format!(
                "the sweep contract was broken: {} reads of swept lines, {} sweeps of unread ones",
                self.machine.mem.stats.stale_reads, self.machine.mem.stats.sweep_races
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::resolve;
    use crate::core::Op;
    use crate::kernel::LineAddr;
    use crate::memory::region::Sharing;
    use crate::traffic::arrival::Arrivals;
    use std::path::PathBuf;

    /// The scenario that `text` describes, on a platform that comes with hostnet.
    pub(in crate::host) fn scenario(text: &str) -> Arc<Scenario> {
        let platforms = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../platforms");
        Arc::new(resolve(text, "test.toml", &[platforms]).unwrap_or_else(|e| panic!("{e}")))
    }

    /// A host with two cores that share tables, on which no traffic arrives; and a line of the tables.
    pub(in crate::host) fn pair() -> (Host, LineAddr) {
        let text = r#"
            name = "pair"
            platform = "sim24"
            placement = { policy = "ddio" }
            rings = { rx_buffers = 64, buffer_size = "1 KiB" }
            tenant = [{ name = "a", cores = 2, app = { kind = "l3fwd", rules = 16 } }]
            traffic = { arrivals = "keep_depth", depth = 1 }
            run = { load = "saturate" }
        "#;
        let host = Host::new(scenario(text)).expect("a host");
        let shared = host.machine.mem.map.iter().find(|r| r.sharing == Sharing::Shared).expect("tables").base;
        (host, shared)
    }

    pub(in crate::host) fn program(host: &mut Host, core: ThreadId, ops: &[Op]) {
        host.machine.cpus[core].program.ops = ops.to_vec();
        host.machine.start(core);
    }

    /// Runs until `core`'s program ends; other signals go to the host. Returns the time of the end, and the time at
    /// which the core was woken.
    pub(in crate::host) fn until_free(host: &mut Host, core: ThreadId) -> (Time, Option<Time>) {
        let mut woken = None;
        while let Some(s) = host.machine.next_signal() {
            match s {
                MachineSignal::CoreFree(c) if c == core => return (host.machine.now, woken),
                MachineSignal::CoreFree(_) => {}
                s => {
                    woken = woken.or((s == MachineSignal::Line(core)).then_some(host.machine.now));
                    host.on(s);
                }
            }
        }
        panic!("core {core} never goes on");
    }

    #[test]
    fn a_core_that_waits_for_a_line_reads_it_again_with_the_first_whole_poll_after_the_write() {
        let (mut host, line) = pair();
        let read = [Op::Anchor { line }, Op::Fence];
        program(&mut host, ThreadId(0), &read);
        let (since, _) = until_free(&mut host, ThreadId(0));
        host.wait(ThreadId(0), Awaited::Line(line), 640, Due::NEVER); // 640 / 2 / 3.2 GHz = 100 ns a poll
        program(&mut host, ThreadId(1), &[Op::Stall(250_000), Op::Store { line, lines: 1 }, Op::Fence]);
        let (resumed, woken) = until_free(&mut host, ThreadId(0));
        let woken = woken.expect("the write wakes it");
        assert!(woken > since + Time::ns(250));
        let polls = (resumed - since).as_ns() / 100.0;
        assert!((polls - polls.round()).abs() < 1e-3 && resumed >= woken && resumed < woken + Time::ns(100), "{polls}");
        // The other core holds the line: a miss is a request to the home agent, in both directions, and a snoop.
        program(&mut host, ThreadId(0), &read);
        let (end, _) = until_free(&mut host, ThreadId(0));
        let l = host.machine.mem.lat;
        assert!(end - resumed >= l.l1 + l.l2 + l.noc + l.llc + l.noc, "{} is no miss", end - resumed);
    }

    #[test]
    fn a_line_that_was_written_before_the_wait_began_is_no_wait() {
        let (mut host, line) = pair();
        program(&mut host, ThreadId(0), &[Op::Anchor { line }, Op::Fence]);
        until_free(&mut host, ThreadId(0));
        program(&mut host, ThreadId(1), &[Op::Store { line, lines: 1 }, Op::Fence]);
        let (written, _) = until_free(&mut host, ThreadId(1));
        host.wait(ThreadId(0), Awaited::Line(line), 640, Due::NEVER);
        assert_eq!(until_free(&mut host, ThreadId(0)).0, written);
    }

    #[test]
    fn time_never_goes_back_where_a_process_gives_way_to_a_faster_one() {
        let mut host = pair().0;
        let slow = Arrivals::fixed(1e5);
        let tenant = TenantId(0);
        host.offer(tenant, None, 0);
        host.offer(tenant, Some(slow), 0);
        host.run_until(Time::MAX, |h| h.run.completed_ever >= 5);
        host.offer(tenant, Some(Arrivals::fixed(1e6)), 0);
        let (begun, from) = (host.machine.now, host.run.completed_ever);
        let mut last = begun;
        host.run_until(Time::MAX, |h| {
            assert!(h.machine.now >= last, "{} after {last}", h.machine.now);
            last = h.machine.now;
            h.run.completed_ever >= from + 20
        });
        // The packet of the slow process that was already due, and then one packet per microsecond.
        let us = (last - begun).0 as f64 / 1e6;
        assert!((19.0..31.0).contains(&us), "{us} us");
    }
}
