//! Threads: software as one state machine per core, stepped at calendar time.
//!
//! A thread is stepped when its core is free and when something that it waits for comes. It answers what the core does next:
//!
//! ```text
//!            +-- Run: the program in the core's buffer; stepped again at its end
//!   step ----+-- Wait: polls until it is notified; what an empty poll costs is charged
//!            +-- WaitUntil(t): the same until t at most
//!            +-- Until(t): sleeps, and is interrupted at t or when it is notified
//!            +-- Idle: sleeps until it is notified
//! ```
//!
//! Hardware notifies threads of packets, frames and lines that devices have moved. Warm-up steps the same threads without
//! time. A thread is one file here and one line of the list below.

pub mod demand;
mod foresight;
mod itr;
pub mod mempool;
pub mod napi;

use crate::app::App;
use crate::core::Program;
use crate::device::iio::Iio;
use crate::device::nic::Nic;
use crate::kernel::{IdVec, Int, LineAddr, PacketId, PortId, Stream, TenantId, ThreadId, Time};
use crate::machine::{Events, Machine};
use crate::memory::stats::OffCores;
use crate::traffic::dctcp::Senders;
use crate::traffic::generator::Generator;
use crate::traffic::software::Client;
use crate::traffic::spikes::Spikes;
use hdrhistogram::Histogram;
use std::collections::VecDeque;

/// What a thread's core does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// The program in its buffer.
    Run,
    /// Polls, `instructions` each time, until it is notified. It goes on with the first poll that begins then or later.
    Wait { on: Awaited, instructions: u32 },
    /// The same, and no longer than `until`.
    WaitUntil { on: Awaited, instructions: u32, until: Time },
    /// Sleeps until then, unless it is notified.
    Until(Time),
    /// Sleeps until it is notified.
    Idle,
}

/// What a thread polls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Awaited {
    /// A queue whose entries come as messages: any notice is one.
    Queue,
    /// A line of memory that the thread has read: another agent's write takes it away, and the next poll reads it again.
    Line(LineAddr),
}

/// What has come for a thread.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Notice {
    /// A packet is in its receive queue, or a transmit buffer is free again.
    Queue,
    /// A packet that it has sent will not come back.
    Lost,
    /// A packet is due that begins with this thread.
    Begin,
    /// Descriptors of its transmit ring, which lies in memory, have been sent.
    Transmitted,
    /// A line that it watches (`Memory::watch`) has been written by another agent, or taken away.
    Line,
    /// The time has come until which it waits.
    Due,
    /// The same without time: a packet with this record is in its buffers, whose reply is to go to line `tx`.
    AtOnce { packet: PacketId, tx: LineAddr },
    /// The device on `port` has moved `lines` lines.
    Lines { port: PortId, lines: u64 },
    /// A frame is wholly in memory.
    Frame(tcp::Received),
}

/// Whether a notice makes a sleeping thread go on. An interrupt of a device always does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wakes {
    Not,
    Now,
}

/// What a thread has at hand while it is stepped.
pub struct Ctx<'a> {
    /// The core, as the host counts them and as its tenant does; and the tenant.
    pub core: ThreadId,
    pub local: usize,
    pub tenant: TenantId,
    pub now: Time,
    /// When something that leaves the core now reaches the home agent.
    pub at_home: Time,
    /// Nothing new begins.
    pub stopped: bool,
    pub program: &'a mut Program,
    pub cal: &'a mut Events,
    pub nic: &'a mut Nic,
    pub iio: Option<&'a mut Iio>,
    /// What the threads of CC-NIC share.
    pub ccnic: Option<&'a mut ccnic::Interface>,
    /// Requests of cores that left their L2, where somebody counts them.
    pub off_core: Option<&'a mut OffCores>,
    /// What the threads of TAS share.
    pub tas: Option<&'a mut tas::Service>,
    /// Values of the registers that pairs of threads share, and round trips between them in ps.
    pub registers: &'a mut [u64],
    pub trips: &'a mut Histogram<u64>,
    /// The tenant's application, which the kernel's own cores have not.
    pub app: Option<&'a mut App>,
    pub rng: &'a mut Stream,
    pub spikes: Option<&'a mut Spikes>,
    /// What a load generator's cores are to send.
    pub client: Option<&'a mut Client>,
    /// What tells of round trips, where packets come to the tenant.
    pub generator: Option<&'a mut Generator>,
    /// The software ring between this core and another.
    pub pipe: Option<&'a mut pmd::Pipe>,
    /// Where acknowledgements go.
    pub senders: Option<&'a mut Senders>,
    pub tally: &'a mut Tally,
}

/// One state machine on a core.
pub trait Software {
    /// The core is free: its last program has ended, or the thread has been woken.
    fn step(&mut self, c: &mut Ctx) -> Step;
    /// Something has come at `now`.
    fn notify(&mut self, what: Notice, now: Time) -> Wakes {
        let _ = (what, now);
        Wakes::Now
    }
    /// The side effect `tag` of the thread's program is due: everything before it has retired.
    fn retired(&mut self, tag: u32, c: &mut Ctx) {
        let _ = (tag, c);
    }
    /// The same without time.
    fn retired_at_once(&mut self, tag: u32, m: &mut Machine) {
        let _ = (tag, m);
    }
    /// A new window begins.
    fn restart_meters(&mut self, now: Time) {
        let _ = now;
    }
}

/// Declares the threads, a file each: a variant of their enum, and the dispatch.
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
            #[inline]
            fn retired(&mut self, tag: u32, c: &mut Ctx) {
                match self { $(Thread::$name(t) => t.retired(tag, c),)* }
            }
            fn retired_at_once(&mut self, tag: u32, m: &mut Machine) {
                match self { $(Thread::$name(t) => t.retired_at_once(tag, m),)* }
            }
            fn restart_meters(&mut self, now: Time) {
                match self { $(Thread::$name(t) => t.restart_meters(now),)* }
            }
        }
    };
}

threads! {
    /// Packets of a queue pair, served by an application.
    mod qp => QueuePair(qp::QueuePair),
    /// A poll-mode driver and its application.
    mod pmd => PollMode(Box<pmd::PollMode>),
    /// A socket of the kernel over UDP, and its application.
    mod udp => Udp(Box<udp::UdpSocket>),
    /// An application that asks for nothing but its core.
    mod free => FreeRunning(free::FreeRunning),
    /// The kernel's TCP receive path.
    mod tcp => Tcp(Box<tcp::TcpReceiver>),
    /// Two threads that exchange a counter.
    mod pingpong => PingPong(pingpong::PingPong),
    /// A writer or a reader of a buffer.
    mod transfer => Transfer(transfer::Transfer),
    /// Host and NIC threads of CC-NIC.
    mod ccnic => CcNic(Box<ccnic::Agent>),
    /// TCP as a service: the fast path's threads and the application's.
    mod tas => Tas(Box<tas::Tas>),
    /// The kernel's block layer.
    mod block => Block(block::BlockLayer),
}

impl<T: Software> Software for Box<T> {
    fn step(&mut self, c: &mut Ctx) -> Step {
        (**self).step(c)
    }
    fn notify(&mut self, what: Notice, now: Time) -> Wakes {
        (**self).notify(what, now)
    }
    fn retired(&mut self, tag: u32, c: &mut Ctx) {
        (**self).retired(tag, c);
    }
    fn retired_at_once(&mut self, tag: u32, m: &mut Machine) {
        (**self).retired_at_once(tag, m);
    }
    fn restart_meters(&mut self, now: Time) {
        (**self).restart_meters(now);
    }
}

/// What threads have done in a window.
#[derive(Clone)]
pub struct Tally {
    /// Requests that ended, and that ended since the host began.
    pub completed: u64,
    pub completed_ever: u64,
    /// Bytes on the wire of those requests.
    pub wire_bytes: u64,
    /// From a request's arrival to its end, in ns.
    pub latency_ns: Histogram<u64>,
    /// Requests taken from a queue since the host began.
    pub taken: u64,
    /// Requests that cores have worked on, and the time that they took, in ps.
    pub services: u64,
    pub service_ps: u128,
    /// Operations of each tenant.
    pub operations: IdVec<TenantId, u64>,
    /// Bursts of packets, where traffic comes in bursts.
    pub bursts: Option<Bursts>,
    /// Received lines of the packets that have just ended, where somebody asks.
    pub batch: Option<Vec<(LineAddr, u16)>>,
}

/// A burst of packets.
#[derive(Clone, Copy)]
struct Burst {
    number: u64,
    /// When its first line set out.
    began: Time,
    /// When the last of its packets so far ended.
    ended: Time,
    packets: u64,
}

/// How long bursts take, from the first line that the NIC writes of each to the end of its last packet.
#[derive(Clone)]
pub struct Bursts {
    /// When the first burst began, and the time from one to the next.
    base: Time,
    period: Time,
    seen: VecDeque<Burst>,
    /// When a core first took packets in each period.
    first: VecDeque<(u64, Time)>,
}

impl Bursts {
    pub fn new(base: Time, period: Time) -> Bursts {
        Bursts { base, period, seen: VecDeque::new(), first: VecDeque::new() }
    }

    /// The first burst begins so much later.
    pub fn begin_later(&mut self, by: Time) {
        self.base += by;
    }

    fn number(&self, at: Time) -> u64 {
        at.saturating_sub(self.base).0 / self.period.0
    }

    /// A core takes packets at `now`.
    pub fn taken(&mut self, now: Time) {
        let n = self.number(now);
        if self.first.back().is_none_or(|f| f.0 != n) {
            self.first.push_back((n, now));
        }
    }

    /// A packet that had come at `arrived`, and whose first line had set out at `began`, has ended.
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

    /// Mean over the bursts that lie wholly in the window.
    pub fn mean_us(&self) -> Option<f64> {
        mean(self.whole().map(|b| b.ended - b.began))
    }

    /// Those that lie wholly in the window: the others have fewer packets.
    fn whole(&self) -> impl Iterator<Item = &Burst> {
        let most = self.seen.iter().map(|b| b.packets).max().unwrap_or(0);
        self.seen.iter().filter(move |b| b.packets * 10 >= most * 9)
    }

    /// The same from the first line to when a core takes the first packet.
    pub fn mean_start_us(&self) -> Option<f64> {
        let taken = |n| self.first.iter().find(|f| f.0 == n).map(|f| f.1);
        mean(self.whole().filter_map(|b| Some(taken(b.number)?.saturating_sub(b.began))))
    }
}

/// Mean of times in microseconds.
fn mean(times: impl Iterator<Item = Time>) -> Option<f64> {
    let us: Vec<f64> = times.map(|t| t.as_ns() / 1e3).collect();
    (!us.is_empty()).then(|| us.iter().sum::<f64>() / us.len().to_f64())
}

impl Tally {
    pub fn new(tenants: usize) -> Tally {
        Tally {
            completed: 0,
            completed_ever: 0,
            wire_bytes: 0,
            latency_ns: Histogram::new_with_bounds(1, 1 << 40, 3).expect("valid bounds"),
            taken: 0,
            services: 0,
            service_ps: 0,
            operations: IdVec::filled(0, tenants),
            bursts: None,
            batch: None,
        }
    }

    /// A core has worked on a request for that long.
    #[inline]
    pub fn served(&mut self, t: Time) {
        self.services += 1;
        self.service_ps += u128::from(t.0);
    }

    /// A request of `tenant` has ended.
    #[inline]
    pub fn completed(&mut self, tenant: TenantId, latency: Time, wire_bytes: u32) {
        self.operations[tenant] += 1;
        self.completed += 1;
        self.completed_ever += 1;
        self.wire_bytes += u64::from(wire_bytes);
        self.latency_ns.saturating_record((latency.0 / 1000).max(1));
    }

    pub fn service_us(&self) -> f64 {
        self.service_ps.to_f64() / self.services.max(1).to_f64() / 1e6
    }

    /// The tally of a new window.
    pub fn restarted(&self) -> Tally {
        let bursts = self.bursts.as_ref().map(|b| Bursts::new(b.base, b.period));
        Tally {
            completed_ever: self.completed_ever,
            taken: self.taken,
            bursts,
            batch: self.batch.clone(),
            ..Tally::new(self.operations.len())
        }
    }
}
