//! Roles: state that the threads of one tenant share, with what the host does for it beside running its threads.
//!
//! A role belongs to a tenant: an interface in coherent memory, TCP as a service, connections of the kernel, software
//! rings between cores, the kernel's block layer. The host knows roles only by this interface; the threads of the
//! tenant find a role by its type (`c.roles.get::<Service>()`).

use super::{Awaited, Software, Tally, Thread};
use crate::app::Content;
use crate::core::PollRound;
use crate::device::nic::Packet;
use crate::kernel::{Due, IdVec, Int, LineAddr, PacketId, PortId, QueueId, RandomStream, TenantId, ThreadId, Time};
use crate::machine::Machine;
use crate::meter::Values;
use crate::traffic::generator::Generator;
use crate::traffic::software::SoftwareClient;
use crate::traffic::TrafficEvent;
use dyn_clone::DynClone;
use hdrhistogram::Histogram;
use serde_json::Value;
use std::any::Any;

/// Idle state of a core whose thread runs no program.
#[derive(Clone, Copy)]
#[expect(missing_docs, reason = "the documentation of a variant explains its fields")]
pub enum IdleState {
    /// The thread runs a program.
    Not,
    /// The thread sleeps until a notice or an interrupt wakes it.
    Asleep,
    /// The thread has polled since `since`, with `instructions` per poll, of which `counted` polls have been counted.
    /// Polls are not events: their number follows from the time at which the wait ends. Polling ends at `until` if no
    /// event has arrived.
    Polling { on: Awaited, since: Time, instructions: u32, counted: u64, until: Due },
    /// The thread polls several places in turn, as the slot's `round` describes. Polling ends at `until` if no event has
    /// arrived.
    PollingInTurn { until: Due },
}

/// Slot of a core: its thread, and the state of the thread.
#[derive(Clone)]
pub struct CoreSlot {
    /// Tenant of the core; the number behind the last tenant is the kernel's.
    pub tenant: TenantId,
    /// Number of the core within its tenant.
    pub local: u16,
    /// Activity of the core.
    pub idle: IdleState,
    /// Random stream of the core.
    pub rng: RandomStream,
    /// Polls that the thread repeats in turn; None for a thread that never has.
    pub round: Option<Box<PollRound>>,
    /// The thread.
    pub thread: Thread,
}

/// Resources that a role may use while it handles an event.
pub struct Bus<'a> {
    /// Tenant of the role.
    pub tenant: TenantId,
    /// Whether nothing new begins, because the run ends.
    pub stopped: bool,
    /// The hardware, with its calendar.
    pub machine: &'a mut Machine,
    /// Counts of the tenant's work.
    pub tally: &'a mut Tally,
    /// Load generator of the tenant, if packets come to it.
    pub generator: Option<&'a mut Generator>,
    /// Threads of all cores.
    pub threads: &'a IdVec<ThreadId, CoreSlot>,
}

/// State of the host as a role sees it at the end of a window.
pub struct RoleView<'a> {
    /// Tenant of the role.
    pub tenant: TenantId,
    /// Whether nothing new begins, because the run ends.
    pub stopped: bool,
    /// Time at which the window began.
    pub since: Time,
    /// The hardware.
    pub machine: &'a Machine,
    /// Counts of the tenant's work.
    pub tally: &'a Tally,
    /// Operations of programs that were in progress when the window began, as far as they were still to come.
    pub begun: f64,
    /// Threads of all cores.
    pub threads: &'a IdVec<ThreadId, CoreSlot>,
}

impl RoleView<'_> {
    /// Threads of the role's tenant, with their cores.
    pub fn own_threads(&self) -> impl Iterator<Item = (ThreadId, &Thread)> {
        own_threads(self.threads, self.tenant)
    }

    /// Operations of the tenant in the window: of programs in progress at its start and at its end, the part within.
    pub fn operations(&self) -> f64 {
        self.tally.operations.to_f64() + self.begun - still_to_come(self.machine, self.threads, self.tenant)
    }

    /// Length of the window, in ps.
    pub fn span(&self) -> u64 {
        (self.machine.now - self.since).0.max(1)
    }
}

impl Bus<'_> {
    /// Threads of the role's tenant, with their cores.
    pub fn own_threads(&self) -> impl Iterator<Item = (ThreadId, &Thread)> {
        own_threads(self.threads, self.tenant)
    }
}

/// Threads of `tenant`, with their cores.
pub fn own_threads(threads: &IdVec<ThreadId, CoreSlot>, tenant: TenantId) -> impl Iterator<Item = (ThreadId, &Thread)> {
    threads.enumerate().filter(move |(_, slot)| slot.tenant == tenant).map(|(c, slot)| (c, &slot.thread))
}

/// Operations of `tenant` that its tally has counted and that the programs in progress have not executed.
pub fn still_to_come(machine: &Machine, threads: &IdVec<ThreadId, CoreSlot>, tenant: TenantId) -> f64 {
    let of = |(id, thread): (ThreadId, &Thread)| match thread.counted_ahead() {
        (0, _) => 0.0,
        (n, began) => n.to_f64() * (1.0 - machine.cpus[id].executed(began, machine.now)),
    };
    own_threads(threads, tenant).map(of).sum()
}

/// A packet that a role's own clients send: its flow with the RSS hash, the queue that receives it, and its content.
#[derive(Clone, Copy, Debug)]
pub struct DrawnSegment {
    /// Number of the flow.
    pub flow: u32,
    /// RSS hash of the flow.
    pub hash: u32,
    /// Queue that receives the flow.
    pub queue: QueueId,
    /// Content of the packet.
    pub content: Content,
}

/// Clients of a role that brings its own, instead of those of the load generator.
pub trait RoleClients {
    /// Makes the first requests at `now`; returns the number of packets that the clients then have to send.
    fn begin(&mut self, now: Time) -> u32;

    /// Next packet that the clients send, if there is one.
    fn draw(&mut self) -> Option<DrawnSegment>;
}

/// Buffers of a packet and of its answer, and the thread that sends the answer.
#[derive(Clone, Copy, Debug)]
pub struct FunctionalBuffers {
    /// First line of the packet.
    pub received: LineAddr,
    /// First line of the answer.
    pub answer: LineAddr,
    /// Thread of the tenant that serves the packet, counted from 0.
    pub server: usize,
    /// Thread that reads what the answer refers to.
    pub sender: Option<ThreadId>,
}

/// State that the threads of one tenant share, with what the host does for it. Every method has a default: a role that
/// only holds state implements none of them.
pub trait Role: DynClone + Any + Send {
    /// Posts the role's first events.
    fn start(&mut self, bus: &mut Bus) {
        let _ = bus;
    }

    /// Begins nothing new from now on.
    fn stop(&mut self) {}

    /// Whether the threads run from the beginning, before anything has arrived for them.
    fn runs_from_start(&self) -> bool {
        false
    }

    /// Starts the meters of a new measurement window.
    fn restart_meters(&mut self, bus: &mut Bus) {
        let _ = bus;
    }

    /// Handles an event of the traffic of the tenant; returns whether the event was the role's.
    fn on_traffic(&mut self, e: TrafficEvent, bus: &mut Bus) -> bool {
        let _ = (e, bus);
        false
    }

    /// Handles the timer of roles, which every role of the host sees.
    fn on_timer(&mut self, bus: &mut Bus) {
        let _ = bus;
    }

    /// Handles the end of the transmission of packet `id` by the NIC on `port`; returns whether the packet was the
    /// role's.
    fn on_sent(&mut self, port: PortId, id: PacketId, bus: &mut Bus) -> bool {
        let _ = (port, id, bus);
        false
    }

    /// Takes the next core of the tenant that another core has woken, if there is one.
    fn take_wake_up(&mut self) -> Option<ThreadId> {
        None
    }

    /// Core that learns of the transmitted descriptors of a transmit ring, where it is not the core that drives the
    /// receive ring; `index` counts the tenant's queues from 0.
    fn transmitting_core(&self, index: usize) -> Option<ThreadId> {
        let _ = index;
        None
    }

    /// Clients of the role, if it has its own.
    fn clients(&mut self) -> Option<&mut dyn RoleClients> {
        None
    }

    /// Number of packets that have ended in the host since it began, where the requests that the role counts are not
    /// packets.
    fn ended(&self) -> Option<u64> {
        None
    }

    /// Whether the role's threads count requests that no NIC knows of; `served` tells whether a load generator sends
    /// packets to the tenant.
    fn counts_requests(&self, served: bool) -> bool {
        let _ = served;
        false
    }

    /// Latencies, in ps, of the requests that the role's threads count and no NIC knows of.
    fn latency(&self) -> Option<&Histogram<u64>> {
        None
    }

    /// Whether the role's caches warm up in timed mode only.
    fn warms_up_timed(&self) -> bool {
        false
    }

    /// Number of packets after which the role's threads have used each descriptor of their rings once, where they exchange packets
    /// of their own, which they can do in functional mode, too; None where packets come from elsewhere.
    fn exchange_round(&self) -> Option<u64> {
        None
    }

    /// Buffers of packet number `n`, which comes to the queue of thread `local` of a tenant with `cores` cores of its own, where the
    /// tenant's packets go through coherent memory. A thread beyond the tenant's own cores is the NIC's.
    fn functional_buffers(&self, local: usize, cores: usize, n: u64) -> Option<FunctionalBuffers> {
        let _ = (local, cores, n);
        None
    }

    /// Checks the role's conservation laws, which must hold at any time.
    ///
    /// # Errors
    /// Returns one sentence about what is not conserved.
    fn check_conservation(&self, view: &RoleView) -> Result<(), String> {
        let _ = view;
        Ok(())
    }

    /// Sets the role's metrics of the window that ends now.
    fn report(&self, view: &RoleView, v: &mut Values) {
        let _ = (view, v);
    }

    /// Tables of the role for the window that ends now, by name.
    fn tables(&self, view: &RoleView) -> Vec<(&'static str, Value)> {
        let _ = view;
        Vec::new()
    }
}

dyn_clone::clone_trait_object!(Role);

/// Requests that the cores of a load generator are to send.
impl Role for SoftwareClient {}

/// Roles of one tenant, of which each type occurs once at most.
#[derive(Clone, Default)]
pub struct Roles(Vec<Option<Box<dyn Role>>>);

impl Roles {
    /// Adds a role.
    pub fn add<T: Role>(&mut self, role: T) {
        self.put(Box::new(role));
    }

    /// Adds a role of any type.
    pub fn put(&mut self, role: Box<dyn Role>) {
        match self.0.iter_mut().find(|r| r.is_none()) {
            Some(free) => *free = Some(role),
            None => self.0.push(Some(role)),
        }
    }

    /// The role of type `T`, if the tenant has one.
    #[inline]
    pub fn get<T: Role>(&self) -> Option<&T> {
        self.iter().find_map(|r| (r as &dyn Any).downcast_ref())
    }

    /// The role of type `T`, if the tenant has one.
    #[inline]
    pub fn get_mut<T: Role>(&mut self) -> Option<&mut T> {
        self.iter_mut().find_map(|r| (r as &mut dyn Any).downcast_mut())
    }

    /// Takes the role of type `T` out, so that its owner may pass the others on; `put` returns it.
    #[inline]
    pub fn take<T: Role>(&mut self) -> Option<Box<T>> {
        let is = |r: &Option<Box<dyn Role>>| r.as_deref().is_some_and(|r| (r as &dyn Any).is::<T>());
        let role: Box<dyn Any> = self.0.iter_mut().find(|r| is(r))?.take()?;
        role.downcast().ok()
    }

    /// The roles, in the order in which they were added.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &dyn Role> {
        self.0.iter().flatten().map(|r| &**r)
    }

    /// The roles, in the order in which they were added.
    #[inline]
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut (dyn Role + 'static)> {
        self.0.iter_mut().flatten().map(|r| &mut **r)
    }

    /// Clients of the first role that has its own.
    pub fn clients(&mut self) -> Option<&mut dyn RoleClients> {
        self.iter_mut().find_map(Role::clients)
    }
}

/// Sends packet `p`'s record back to the NIC, after the last use of its content.
pub(in crate::stack) fn end_packet(nic: &mut crate::device::nic::Nic, id: PacketId) -> Packet {
    let p = *nic.packet(id);
    nic.packet(id).done = true;
    nic.end_use(id);
    p
}
