//! Threads: software as one state machine per core, stepped at calendar time.
//!
//! A thread is stepped when its core is free and when an event arrives that it waits for. It returns the core's next
//! activity:
//!
//! ```text
//!            +-- Run: the program in the core's buffer; stepped again at its end
//!   step ----+-- Wait: polls until it is notified; what an empty poll costs is charged
//!            +-- WaitUntil(t): the same until t at most
//!            +-- Poll: the program is a poll; once its rounds repeat, they are counted and not executed
//!            +-- Until(t): sleeps, and is interrupted at t or when it is notified
//!            +-- Idle: sleeps until it is notified
//! ```
//!
//! The hardware notifies threads of packets, frames and lines that devices have moved. Warm-up steps the same threads
//! in functional mode, without timing. A thread is one file here and one line of the list below.

mod branch_predictor;
pub mod demand;
mod idle_time;
mod itr;
pub mod mempool;
pub mod napi;
pub mod role;

use crate::app::App;
use crate::core::Program;
use crate::device::iio::Iio;
use crate::device::nic::Nic;
use crate::kernel::{Due, Int, LineAddr, PacketId, PortId, RandomStream, ThreadId, Time};
use crate::machine::{Events, Machine};
use crate::memory::stats::OffCores;
use crate::traffic::generator::Generator;
use crate::traffic::spikes::Spikes;
use demand::DuePackets;
use extension::{StackFactory, StackOf};
use hdrhistogram::Histogram;
pub use role::{Bus, CoreSlot, Role, RoleView, Roles};
use std::collections::VecDeque;
use std::sync::Arc;

/// Next activity of a thread's core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the documentation of a variant explains its fields")]
pub enum Step {
    /// Runs the program in the core's buffer.
    Run,
    /// Polls, with `instructions` per poll, until the thread is notified. The thread continues with the first poll that
    /// begins at that time or later.
    Wait { on: Awaited, instructions: u32 },
    /// Polls, with `instructions` per poll, until the thread is notified, but no longer than `until`.
    WaitUntil { on: Awaited, instructions: u32, until: Time },
    /// Runs the program in the core's buffer, which is one of `of` polls that the thread repeats in turn, after a poll that
    /// found nothing. Nothing that has been announced waits for a later poll. Without a notice, and before `until`, the
    /// thread does nothing else until another agent writes a line that these polls read.
    Poll { of: usize, until: Due },
    /// Sleeps until the given time, unless the thread is notified earlier.
    Until(Time),
    /// Sleeps until the thread is notified.
    Idle,
}

/// Object that a waiting thread polls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Awaited {
    /// A queue whose entries arrive as messages; every notice means an entry.
    Queue,
    /// A line of memory that the thread has read: another agent's write invalidates the line, and the next poll reads
    /// the line again.
    Line(LineAddr),
}

/// Event that has arrived for a thread.
#[derive(Clone, Copy, PartialEq, Debug)]
#[expect(missing_docs, reason = "the documentation of a variant explains its fields")]
pub enum Notice {
    /// A packet is in the thread's receive queue, or a transmit buffer is free again.
    Queue,
    /// A packet that the thread has sent was lost and will not return.
    Lost,
    /// A packet that this thread originates is due.
    Begin,
    /// Descriptors of the thread's transmit ring in memory have been sent.
    Transmitted,
    /// A line that the thread watches (`Memory::watch`) has been written by another agent, or evicted.
    Line,
    /// The other hardware thread of the core may have written the line that the thread polls, which both threads have in
    /// their caches.
    Sibling,
    /// The time until which the thread waits has passed.
    Due,
    /// In functional mode: the packet with this record is in the thread's buffers, and its reply is to go to line `tx`.
    Functional { packet: PacketId, tx: LineAddr },
    /// The device on `port` has moved `lines` lines.
    Lines { port: PortId, lines: u64 },
    /// A frame is wholly in memory.
    Frame(tcp::ReceivedFrame),
}

/// Whether a notice wakes a sleeping thread. A device's interrupt always does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wakes {
    /// The notice wakes no thread.
    Not,
    /// The notice wakes the thread immediately.
    Now,
}

/// Core and time of a step.
#[derive(Clone, Copy, Debug)]
pub struct StepFacts {
    /// Number of the core in the host.
    pub thread: ThreadId,
    /// Number of the core within its tenant.
    pub local: usize,
    /// Time of the step.
    pub now: Time,
    /// Time at which a request that leaves the core now reaches the home agent.
    pub arrival_at_home: Time,
    /// Whether threads begin no new work, because the run ends.
    pub stopped: bool,
}

/// Hardware that a thread may use during a step, beside its core.
pub struct StepMachine<'a> {
    /// Calendar of the host.
    pub cal: &'a mut Events,
    /// NIC on the chip.
    pub nic: &'a mut Nic,
    /// Integrated I/O controller of the host, if any.
    pub iio: Option<&'a mut Iio>,
    /// Counts of the cores' requests that left their L2; None where the scenario does not count them.
    pub off_core: Option<&'a mut OffCores>,
}

/// Traffic of the thread's tenant.
pub struct StepTraffic<'a> {
    /// Generator that records round trips, where packets come to the tenant.
    pub generator: Option<&'a mut Generator>,
    /// Spikes of the service time, if the tenant's traffic has any.
    pub spikes: Option<&'a mut Spikes>,
}

/// Resources that a thread may use during a step.
pub struct Ctx<'a> {
    /// Core and time of the step.
    pub step: StepFacts,
    /// Program buffer of the core, which the thread fills.
    pub program: &'a mut Program,
    /// Random stream of the core.
    pub rng: &'a mut RandomStream,
    /// Hardware beside the core.
    pub machine: StepMachine<'a>,
    /// Application of the tenant; None on the kernel's own cores.
    pub app: Option<&'a mut App>,
    /// Traffic of the tenant.
    pub traffic: StepTraffic<'a>,
    /// State that the tenant's threads share, one role for each kind.
    pub roles: &'a mut Roles,
    /// Counts of the tenant's work.
    pub tally: &'a mut Tally,
}

/// One state machine on a core.
pub trait Software {
    /// Decides what the core does next, after its last program has ended or the thread has been woken.
    fn step(&mut self, c: &mut Ctx) -> Step;
    /// Notifies the thread of event `what`, which arrived at `now`; returns whether the thread wakes.
    fn notify(&mut self, what: Notice, now: Time) -> Wakes {
        let _ = (what, now);
        Wakes::Now
    }
    /// Brings the thread, which has last returned [`Step::Poll`], into the state in which `polls` further polls that find
    /// nothing leave it.
    fn skip_polls(&mut self, polls: u64) {
        let _ = polls;
    }
    /// Performs the side effect `tag` of the thread's program, after all earlier operations have retired.
    fn retired(&mut self, tag: u32, c: &mut Ctx) {
        let _ = (tag, c);
    }
    /// Performs the side effect `tag` in functional mode, without timing.
    fn retired_functional(&mut self, tag: u32, m: &mut Machine) {
        let _ = (tag, m);
    }
    /// Restarts the thread's meters, because a new measurement window begins.
    fn restart_meters(&mut self, now: Time) {
        let _ = now;
    }
    /// Time in which the core slept or polled in vain in the measurement window that began at `since`; None where the
    /// thread does not record it.
    fn idle(&self, since: Time, now: Time) -> Option<Time> {
        let _ = (since, now);
        None
    }
    /// Operations that the tally has counted when the program in progress began, and the time of its start; no operations where
    /// the tally counts what is done.
    fn counted_ahead(&self) -> (u64, Time) {
        (0, Time::ZERO)
    }
    /// Packets that an arrival process has made the thread send or receive; None where no NIC's generator of the thread has one.
    fn due_packets(&self) -> Option<DuePackets> {
        None
    }
}

/// Declares the threads, one file each: a variant of their enum, and the dispatch over them.
macro_rules! threads {
    ($($(#[$doc:meta])* mod $file:ident => $name:ident($thread:ty),)*) => {
        $(pub mod $file;)*

        /// A thread of any kind.
        #[derive(Clone)]
        pub enum Thread {
            $($(#[$doc])* $name($thread),)*
        }
        impl Software for Thread {
            #[inline]
            fn step(&mut self, c: &mut Ctx) -> Step {
                match self { $(Thread::$name(t) => t.step(c),)* }
            }
            #[inline]
            fn notify(&mut self, what: Notice, now: Time) -> Wakes {
                match self { $(Thread::$name(t) => t.notify(what, now),)* }
            }
            fn skip_polls(&mut self, polls: u64) {
                match self { $(Thread::$name(t) => t.skip_polls(polls),)* }
            }
            #[inline]
            fn retired(&mut self, tag: u32, c: &mut Ctx) {
                match self { $(Thread::$name(t) => t.retired(tag, c),)* }
            }
            fn retired_functional(&mut self, tag: u32, m: &mut Machine) {
                match self { $(Thread::$name(t) => t.retired_functional(tag, m),)* }
            }
            fn restart_meters(&mut self, now: Time) {
                match self { $(Thread::$name(t) => t.restart_meters(now),)* }
            }
            fn idle(&self, since: Time, now: Time) -> Option<Time> {
                match self { $(Thread::$name(t) => t.idle(since, now),)* }
            }
            fn counted_ahead(&self) -> (u64, Time) {
                match self { $(Thread::$name(t) => t.counted_ahead(),)* }
            }
            fn due_packets(&self) -> Option<DuePackets> {
                match self { $(Thread::$name(t) => t.due_packets(),)* }
            }
        }
    };
}

threads! {
    /// Server of a queue pair's packets, with its application.
    mod qp => QueuePair(qp::QueuePair),
    /// A poll-mode driver and its application.
    mod pmd => PollMode(Box<pmd::PollMode>),
    /// A UDP socket of the kernel and its application.
    mod udp => Udp(Box<udp::UdpSocket>),
    /// An application that serves no packets and uses only its core.
    mod free_running => FreeRunning(free_running::FreeRunning),
    /// The kernel's TCP receive path.
    mod tcp => Tcp(Box<tcp::TcpReceiver>),
    /// One of two threads that exchange a counter.
    mod pingpong => PingPong(pingpong::PingPongThread),
    /// A writer or a reader of a buffer.
    mod transfer => Transfer(transfer::TransferThread),
    /// A host or NIC thread of CC-NIC.
    mod ccnic => CcNic(Box<ccnic::CcnicThread>),
    /// TCP as a service: a thread of the fast path or of the application.
    mod tas => Tas(Box<tas::Tas>),
    /// A core of the kernel's block layer.
    mod block => Block(block::BlockLayer),
    /// A thread of a stack of one's own.
    mod extension => Extension(extension::ExtensionThread),
}

/// Declares the stacks that are one file each, with their names in scenarios.
macro_rules! stacks {
    ($($(#[$doc:meta])* mod $file:ident => $name:literal($stack:ty),)*) => {
        $(pub mod $file;)*

        /// The stacks that are one file each, by name.
        pub fn stacks() -> Vec<(&'static str, Arc<dyn StackFactory>)> {
            vec![$(($name, Arc::new(StackOf::<$stack>::default())),)*]
        }
    };
}

stacks! {
    /// Central dispatch: one core takes packets and hands each to a core that is free.
    mod dispatch => "dispatch"(dispatch::Dispatch),
}

impl<T: Software> Software for Box<T> {
    fn step(&mut self, c: &mut Ctx) -> Step {
        (**self).step(c)
    }
    fn notify(&mut self, what: Notice, now: Time) -> Wakes {
        (**self).notify(what, now)
    }
    fn skip_polls(&mut self, polls: u64) {
        (**self).skip_polls(polls);
    }
    fn retired(&mut self, tag: u32, c: &mut Ctx) {
        (**self).retired(tag, c);
    }
    fn retired_functional(&mut self, tag: u32, m: &mut Machine) {
        (**self).retired_functional(tag, m);
    }
    fn restart_meters(&mut self, now: Time) {
        (**self).restart_meters(now);
    }
    fn idle(&self, since: Time, now: Time) -> Option<Time> {
        (**self).idle(since, now)
    }
    fn due_packets(&self) -> Option<DuePackets> {
        (**self).due_packets()
    }
}

/// Counters of the work of a tenant's threads in a measurement window.
#[derive(Clone)]
pub struct Tally {
    /// Number of requests completed in the window.
    pub completed: u64,
    /// Number of requests completed since the host began.
    pub completed_ever: u64,
    /// Bytes on the wire of the completed requests.
    pub wire_bytes: u64,
    /// Time from a request's arrival to its completion, in ns.
    pub latency_ns: Histogram<u64>,
    /// Requests taken from a queue since the host began.
    pub taken: u64,
    /// Number of requests that cores have worked on.
    pub services: u64,
    /// Time that the requests counted in `services` took, in ps.
    pub service_ps: u128,
    /// Operations, of which a request is one.
    pub operations: u64,
    /// Durations of bursts of packets, where traffic comes in bursts.
    pub bursts: Option<BurstTimes>,
    /// Received lines of the packets that have just been completed; None where they are not recorded.
    pub batch: Option<Vec<(LineAddr, u16)>>,
    /// Latencies, in ns, of the requests completed since a control plane last looked; None where no control plane does.
    pub recent: Option<Vec<u64>>,
}

/// A burst of packets.
#[derive(Clone, Copy)]
struct Burst {
    number: u64,
    /// Time at which the burst's first line was sent to memory.
    began: Time,
    /// Time at which the last of the burst's packets so far was completed.
    ended: Time,
    packets: u64,
}

/// Durations of bursts, from the first line that the NIC writes to the completion of the last packet.
#[derive(Clone)]
pub struct BurstTimes {
    /// Time at which the first burst began.
    base: Time,
    /// Time from one burst to the next.
    period: Time,
    seen: VecDeque<Burst>,
    /// Time at which a core first took packets in each period.
    first: VecDeque<(u64, Time)>,
}

impl BurstTimes {
    /// The times of bursts that begin every `period`, from `base` on.
    pub fn new(base: Time, period: Time) -> BurstTimes {
        BurstTimes { base, period, seen: VecDeque::new(), first: VecDeque::new() }
    }

    /// Delays the start of the first burst by `by`.
    pub fn begin_later(&mut self, by: Time) {
        self.base += by;
    }

    fn number(&self, at: Time) -> u64 {
        at.saturating_sub(self.base).0 / self.period.0
    }

    /// Records that a core takes packets at `now`.
    pub fn taken(&mut self, now: Time) {
        let n = self.number(now);
        if self.first.back().is_none_or(|f| f.0 != n) {
            self.first.push_back((n, now));
        }
    }

    /// Records the completion of a packet that arrived at `arrived` and whose first line was sent at `began`.
    pub fn packet(&mut self, arrived: Time, began: Time, now: Time) {
        let n = self.number(arrived);
        match self.seen.iter_mut().rev().find(|b| b.number == n) {
            Some(b) => {
                (b.began, b.ended) = (b.began.min(began), b.ended.max(now));
                b.packets += 1;
            }
            None => self.seen.push_back(Burst { number: n, began, ended: now, packets: 1 }),
        }
    }

    /// Mean duration of the bursts of `all` that lie wholly within the window, in microseconds.
    pub fn mean_us(all: &[&BurstTimes]) -> Option<f64> {
        mean(all.iter().flat_map(|times| times.whole()).map(|b| b.ended - b.began))
    }

    /// Bursts that lie wholly within the window; a burst that an end of the window cuts has fewer packets.
    fn whole(&self) -> impl Iterator<Item = &Burst> {
        let most = self.seen.iter().map(|b| b.packets).max().unwrap_or(0);
        self.seen.iter().filter(move |b| b.packets * 10 >= most * 9)
    }

    /// Mean time from a burst's first line until a core takes the first packet of the burst, over the bursts of `all` that lie
    /// wholly within the window, in microseconds.
    pub fn mean_start_us(all: &[&BurstTimes]) -> Option<f64> {
        mean(all.iter().flat_map(|times| times.starts()))
    }

    /// Times from the first line of each burst within the window until a core takes the burst's first packet.
    fn starts(&self) -> impl Iterator<Item = Time> + '_ {
        let taken = |n| self.first.iter().find(|f| f.0 == n).map(|f| f.1);
        self.whole().filter_map(move |b| Some(taken(b.number)?.saturating_sub(b.began)))
    }
}

/// Mean of times, in microseconds.
fn mean(times: impl Iterator<Item = Time>) -> Option<f64> {
    let us: Vec<f64> = times.map(|t| t.as_ns() / 1e3).collect();
    (!us.is_empty()).then(|| us.iter().sum::<f64>() / us.len().to_f64())
}

impl Default for Tally {
    /// A tally without work.
    fn default() -> Tally {
        Tally {
            completed: 0,
            completed_ever: 0,
            wire_bytes: 0,
            latency_ns: Histogram::new_with_bounds(1, 1 << 40, 3).expect("valid bounds"),
            taken: 0,
            services: 0,
            service_ps: 0,
            operations: 0,
            bursts: None,
            batch: None,
            recent: None,
        }
    }
}

impl Tally {
    /// Records that a core has worked on a request for time `t`.
    #[inline]
    pub fn served(&mut self, t: Time) {
        self.services += 1;
        self.service_ps += u128::from(t.0);
    }

    /// Records the completion of a request.
    #[inline]
    pub fn completed(&mut self, latency: Time, wire_bytes: u32) {
        self.operations += 1;
        self.completed += 1;
        self.completed_ever += 1;
        self.wire_bytes += u64::from(wire_bytes);
        let ns = (latency.0 / 1000).max(1);
        self.latency_ns.saturating_record(ns);
        self.recent.iter_mut().for_each(|all| all.push(ns));
    }

    /// Adds the work of the window in `other`.
    pub fn merge(&mut self, other: &Tally) {
        self.completed += other.completed;
        self.completed_ever += other.completed_ever;
        self.wire_bytes += other.wire_bytes;
        self.latency_ns.add(&other.latency_ns).expect("the same bounds");
        self.taken += other.taken;
        self.services += other.services;
        self.service_ps += other.service_ps;
        self.operations += other.operations;
    }

    /// Mean time that a core works on a request, in microseconds.
    pub fn service_us(&self) -> f64 {
        self.service_ps.to_f64() / self.services.max(1).to_f64() / 1e6
    }

    /// A tally for a new measurement window.
    pub fn for_new_window(&self) -> Tally {
        let bursts = self.bursts.as_ref().map(|b| BurstTimes::new(b.base, b.period));
        Tally {
            completed_ever: self.completed_ever,
            taken: self.taken,
            bursts,
            batch: self.batch.clone(),
            recent: self.recent.clone(),
            ..Tally::default()
        }
    }
}
