//! CC-NIC: host and NIC threads that exchange packets through coherent memory alone.
//!
//! ```text
//!   host thread (host.rs)                         NIC thread (nic.rs)
//!     alloc, write payload, publish  -- TX ring -->  poll, read payload, copy, free, clear
//!     poll, read payload, free, clear <-- RX ring --  alloc, write payload, publish
//!                 \------- pool of buffers, recycle stacks on both sides -------/
//! ```
//!
//! In overlay mode the host's thread serves packets (server.rs), and the NIC's forwards them to and from a PCIe NIC
//! (overlay.rs). In forward mode the NIC has packets from a wire (wire.rs), and the host returns them.
//!
//! `rings.rs` and `pool.rs` hold the rules, without time. The threads turn what these read and store into programs of their
//! cores. A store's effect is seen by others when the core's `Op::Release` says so, which is when it owns the line. A poll reads
//! the line and branches on it: its thread goes on when the data is there, and sees what had been stored by then. A thread that
//! foresees the branch goes on at once, and what it does with the line waits for the data.

mod bank;
mod host;
mod nic;
mod overlay;
pub mod pool;
mod ports;
pub mod rings;
mod server;
pub mod spec;
mod wire;

use super::demand::Demand;
use super::foresight::{self, Foresight};
use super::pmd::PollMode;
use super::{Ctx, Software, Step};
use crate::app::loopback::{LoopbackSpec, Touched};
use crate::core::spec::Pipeline;
use crate::core::{CoreSpec, Op, Program};
use crate::kernel::{Int, LineAddr, PacketId, ThreadId, Time};
use crate::memory::LINE;
use hdrhistogram::Histogram;
pub use overlay::SENT_LINES;
use pool::{fill_order, FreeRing, Keeps, Pools, Side, Touch};
pub use ports::Ports;
use rings::{Change, Publication, Shape, Words};
use spec::{CcnicSpec, FreeCheck, Mode, NicKind, PoolKind, Stores};
use std::collections::VecDeque;

/// Where the parts lie: first lines.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    pub tx_rings: LineAddr,
    pub rx_rings: LineAddr,
    pub tx_registers: LineAddr,
    pub rx_registers: LineAddr,
    pub pools: LineAddr,
    pub buffers: LineAddr,
}

impl Memory {
    /// Rings of queue pair `queue`.
    pub fn tx(&self, s: &CcnicSpec, queue: u64) -> Shape {
        s.shape(self.tx_rings, self.tx_registers, queue, true)
    }
    pub fn rx(&self, s: &CcnicSpec, queue: u64) -> Shape {
        s.shape(self.rx_rings, self.rx_registers, queue, s.groups_rx())
    }
}

/// Which ring of a queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ring {
    Tx,
    Rx,
}

/// Words of a queue pair that both sides see.
#[derive(Clone, Debug)]
pub struct Pair {
    pub tx: Words,
    pub rx: Words,
}

/// Round trips of a window, as the host's threads see them.
#[derive(Clone)]
pub struct RoundTrips {
    /// In ps.
    pub histogram: Histogram<u64>,
    pub packets: u64,
    pub bytes: u64,
    /// Blank receive buffers that the host posted, and transmit buffers that it freed after their transmission.
    pub blanks: u64,
    pub swept: u64,
    /// Lines that the host wrote to buffers that the NIC had sent, and nobody used since.
    pub retained: u64,
    /// From when a transmit descriptor is visible to when the NIC has seen it, in ps.
    pub discovery: Histogram<u64>,
}

impl RoundTrips {
    fn new() -> RoundTrips {
        let histogram = || Histogram::new_with_bounds(1, 1 << 44, 3).expect("valid bounds");
        RoundTrips {
            histogram: histogram(),
            packets: 0,
            bytes: 0,
            blanks: 0,
            swept: 0,
            retained: 0,
            discovery: histogram(),
        }
    }
}

/// What host and NIC threads share: the values of memory that both see.
#[derive(Clone)]
pub struct Interface {
    pub memory: Memory,
    pub pairs: Vec<Pair>,
    /// One, or one for each queue pair.
    pub pools: Vec<Pools>,
    /// Small buffers, of all pools.
    small: u32,
    /// The time stamp that each buffer's payload holds.
    stamps: Vec<Time>,
    /// Whether the NIC's sending of it was each buffer's last use.
    sent: Vec<bool>,
    /// Overlay mode: the record of the packet in each buffer, and the first line of the object that follows it.
    packets: Vec<Option<PacketId>>,
    objects: Vec<LineAddr>,
    /// Of each queue pair: since when a transmit descriptor is visible that the NIC has not seen.
    visible: Vec<Option<Time>>,
    /// The NIC's core of each, where it serves no other one.
    pub nic_cores: Vec<ThreadId>,
    large_lines: u64,
    small_lines: u64,
    pub trips: RoundTrips,
}

impl Interface {
    pub fn new(s: &CcnicSpec, queues: u32, memory: Memory) -> Interface {
        let [small, large] = s.counts(queues);
        let all = s.pools(queues);
        // Parts are as equal as can be, and each lies together.
        let part = |n: u32, k: u32| (u64::from(n) * u64::from(k) / u64::from(all)).to_u32();
        let pool = |k: u32| {
            let base = memory.pools + u64::from(k) * s.pool_lines(queues);
            let free = |n: u32, size: u64, first: u32| {
                let (from, to) = (part(n, k), part(n, k + 1));
                fill_order(to - from, size.to_u32(), s.nonsequential).map(move |b| first + from + b)
            };
            let rings = [
                FreeRing::new(base, free(small, s.small_buffer.0, 0)),
                FreeRing::new(base + FreeRing::lines(small.div_ceil(all)), free(large, s.large_buffer.0, small)),
            ];
            Pools::new(rings, small, s.small_buffer.0.to_u32())
        };
        let forwarded = if s.mode == Mode::Overlay { (small + large).to_usize() } else { 0 };
        let pair = |q: u32| Pair { tx: Words::new(&memory.tx(s, q.into())), rx: Words::new(&memory.rx(s, q.into())) };
        Interface {
            memory,
            pairs: (0..queues).map(pair).collect(),
            pools: (0..all).map(pool).collect(),
            small,
            stamps: vec![Time::ZERO; (small + large).to_usize()],
            sent: vec![false; (small + large).to_usize()],
            packets: vec![None; forwarded],
            objects: vec![LineAddr(0); forwarded],
            visible: vec![None; queues.to_usize()],
            nic_cores: Vec::new(),
            large_lines: s.large_buffer.0 / LINE,
            small_lines: s.small_buffer.0 / LINE,
            trips: RoundTrips::new(),
        }
    }

    /// Overlay mode: the packet that `buffer` holds.
    ///
    /// # Panics
    /// When no packet has been written to `buffer`.
    fn packet_in(&self, buffer: u32) -> PacketId {
        self.packets[buffer.to_usize()].expect("a packet in the buffer")
    }

    /// First line of a buffer.
    fn line(&self, buffer: u32) -> LineAddr {
        let small = u64::from(self.small);
        match u64::from(buffer).checked_sub(small) {
            None => self.memory.buffers + u64::from(buffer) * self.small_lines,
            Some(n) => self.memory.buffers + small * self.small_lines + n * self.large_lines,
        }
    }

    /// Queue pairs.
    pub fn queues(&self) -> usize {
        self.pairs.len()
    }

    /// That of queue pair `queue`.
    fn pool(&mut self, queue: usize) -> &mut Pools {
        let all = self.pools.len();
        &mut self.pools[queue % all]
    }

    /// A new window begins.
    pub fn restart(&mut self) {
        self.trips = RoundTrips::new();
    }
}

/// What a thread's tags stand for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Effect {
    /// The oldest store that is on its way is visible.
    Visible,
    /// The time stamp is written into the buffer.
    Stamp,
    /// The buffer has been read by the host.
    Seen,
}

impl Effect {
    fn tag(self, buffer: u32) -> u32 {
        buffer << 2 | self as u32
    }
    fn of(tag: u32) -> (Effect, u32) {
        ([Effect::Visible, Effect::Stamp, Effect::Seen][(tag & 3).to_usize()], tag >> 2)
    }
}

/// What both kinds of thread have.
#[derive(Clone)]
struct Common {
    queue: usize,
    /// Its number among those of its thread, which the tags of its stores have.
    tag: u32,
    spec: CcnicSpec,
    side: Side,
    bytes: u32,
    /// Stores that are on their way, to a line each, oldest first.
    leaving: VecDeque<(Ring, LineAddr, Change)>,
    /// The last poll has been sent.
    polled: bool,
    /// Instructions that its core looks ahead; 0 when it stalls at each branch.
    window: u32,
    /// How its polls end, as a branch predictor sees it; None where a poll's thread waits for the data.
    foresees: Option<Foresight>,
}

impl Common {
    fn new(s: Setup, queue: usize, bytes: u32) -> Common {
        let Setup { interface: i, core, .. } = s;
        let spec = s.spec.clone();
        let keeps = match spec.cache() {
            _ if spec.recycle => Keeps::Stack { most: spec.stack, bulk: spec.bulk },
            0 => Keeps::Nothing,
            size => Keeps::Cache { size },
        };
        let pools = i.pools.len();
        let side = Side::new(&i.pools[queue % pools], (i.pairs.len() / pools).to_u32(), keeps);
        let window = if core.pipeline == Pipeline::OutOfOrder { core.rob } else { 0 };
        Common { queue, tag: 0, spec, side, bytes, leaving: VecDeque::new(), polled: false, window, foresees: None }
    }

    /// The same of a thread whose every use of a descriptor waits for its line: an out-of-order core goes on behind its polls.
    fn foreseeing(self) -> Common {
        Common { foresees: (self.window > 0).then(Foresight::default), ..self }
    }

    /// The same of the NIC's side: a device's agent has no instructions.
    fn of_nic(s: Setup, queue: usize, bytes: u32) -> Common {
        let mut common = Common::new(s, queue, bytes);
        if common.spec.nic == NicKind::Agent {
            let spec::Costs { alloc, free, host_tx, host_rx, nic_tx, nic_rx, unit, poll, pool } =
                &mut common.spec.costs;
            [alloc, free, host_tx, host_rx, nic_tx, nic_rx, unit, poll, pool].into_iter().for_each(|n| *n = 0);
        }
        common
    }

    /// The ring of `shape` as this thread reads it, which takes `instructions` for a descriptor while it gathers a burst.
    fn reads(&self, shape: Shape, instructions: u32) -> Shape {
        if self.spec.read_ahead.is_some() || self.window == 0 {
            return shape;
        }
        // A poll is a load and a branch.
        let unit = 2 + self.spec.costs.unit + shape.group.to_u32() * instructions;
        Shape { read_ahead: 1 + u64::from(self.window / unit), speculates: true, ..shape }
    }

    fn lines(&self) -> u32 {
        u32::from(crate::app::lines(self.bytes.into()))
    }

    /// A new window begins.
    fn restart(&mut self) {
        self.side.counts = pool::PoolCounts::default();
    }

    /// A store to a ring's line.
    fn store(&mut self, ring: Ring, s: Publication, p: &mut Program) {
        p.push(Op::Release { line: s.line, tag: Effect::Visible.tag(self.tag) });
        self.leaving.push_back((ring, s.line, s.change));
        if let Some(line) = s.own_ahead.filter(|l| *l != s.line) {
            p.push(Op::PrefetchOwn { line, lines: 1 });
        }
    }

    /// A producer looks at the lines of `shape` that say what is free.
    fn look(&self, shape: &Shape, lines: &[LineAddr], p: &mut Program) {
        let own = !shape.register && self.spec.free_check == FreeCheck::Written;
        for line in lines.iter().copied() {
            p.push(if own { Op::LoadOwn { line } } else { Op::Load { line, lines: 1 } });
        }
    }

    /// Reads the `line` that says whether something is ready, if that is not known, and branches on it. The fixed part of a
    /// poll is that of the burst's `first` line. What is `there` is found at once by a core that foresees it.
    fn poll(&mut self, line: Option<LineAddr>, there: bool, first: bool, p: &mut Program) {
        if first {
            p.compute(self.spec.costs.poll);
        }
        if let Some(line) = line {
            foresight::poll(line, there, self.foresees, p);
        }
        self.polled = true;
    }

    /// What comes next is where `line` says; a thread that does not foresee its polls waits for it.
    fn follow(&self, line: LineAddr, p: &mut Program) {
        p.push(Op::Anchor { line });
        if self.foresees.is_none() {
            p.push(Op::Await);
        }
    }

    /// What the branch on a poll's data has come to.
    fn learn(&mut self, found: bool) {
        if let Some(f) = &mut self.foresees {
            f.learn(found);
        }
    }

    fn alloc(&mut self, i: &mut Interface, hint: u32, n: usize, p: &mut Program) -> Vec<u32> {
        let pool = self.spec.costs.pool;
        let out = self.side.alloc(i.pool(self.queue), hint, n, &mut |t| touch(t, pool, p));
        p.compute(self.spec.costs.alloc * out.len().to_u32());
        out
    }

    fn free_one(&mut self, i: &mut Interface, buffer: u32, p: &mut Program) {
        p.compute(self.spec.costs.free);
        let pool = self.spec.costs.pool;
        self.side.free(i.pool(self.queue), buffer, &mut |t| touch(t, pool, p));
    }

    fn free_done(&mut self, i: &mut Interface, p: &mut Program) {
        let pool = self.spec.costs.pool;
        self.side.free_done(i.pool(self.queue), &mut |t| touch(t, pool, p));
    }

    fn free(&mut self, i: &mut Interface, buffers: impl Iterator<Item = u32>, p: &mut Program) {
        buffers.for_each(|b| self.free_one(i, b, p));
        self.free_done(i, p);
    }

    /// Payload is written to `to`. A buffer that a stack has had from a descriptor is known once that is there.
    fn write(&self, to: LineAddr, lines: u32, p: &mut Program) {
        p.push(match self.spec.stores {
            Stores::Cached if self.foresees.is_some() => Op::DependentStore { line: to, lines },
            Stores::Cached => Op::Store { line: to, lines },
            Stores::Nontemporal => Op::StoreStream { line: to, lines },
        });
    }

    /// The same, copied from `from`, an address of a descriptor if `behind`. So is that of a blank buffer.
    fn copy(&self, (from, behind): (LineAddr, bool), to: LineAddr, lines: u32, p: &mut Program) {
        let dependent = self.spec.pool == PoolKind::Host || self.foresees.is_some();
        p.push(match self.spec.stores {
            Stores::Cached => Op::Copy { from, to, lines, dependent, behind },
            Stores::Nontemporal => Op::CopyStream { from, to, lines, behind },
        });
    }

    /// A packet is back where it began, which was in `buffer`.
    fn seen(&self, buffer: u32, c: &mut Ctx) {
        let Some(i) = c.ccnic.as_mut() else { return };
        let trip: Time = c.now.saturating_sub(i.stamps[buffer.to_usize()]);
        i.trips.histogram.saturating_record(trip.0.max(1));
        i.trips.packets += 1;
        i.trips.bytes += u64::from(self.bytes);
        c.tally.operations[c.tenant] += 1;
        c.tally.completed += 1;
        c.tally.completed_ever += 1;
    }

    /// The packet in `buffer` begins.
    fn stamp(&self, buffer: u32, c: &mut Ctx) {
        if let Some(i) = c.ccnic.as_mut() {
            i.stamps[buffer.to_usize()] = c.now;
        }
    }

    /// The oldest store on its way is visible.
    fn visible(&mut self, c: &mut Ctx) {
        let Some((ring, line, change)) = self.leaving.pop_front() else { return };
        let Some(i) = c.ccnic.as_mut() else { return };
        let pair = &mut i.pairs[self.queue];
        let published = matches!(change, Change::Unit { .. } | Change::Tail(_));
        if let (true, Some(counts), Some(nic)) = (published, c.off_core.as_deref_mut(), i.nic_cores.get(self.queue)) {
            // The NIC works on a packet from its publication to that of its copy. What the host publishes to receive are blanks.
            match ring {
                Ring::Tx => counts.watch(*nic, line),
                Ring::Rx if c.core == *nic => counts.watch_none(*nic),
                Ring::Rx => {}
            }
        }
        match ring {
            Ring::Tx => {
                if published {
                    i.visible[self.queue].get_or_insert(c.now);
                }
                pair.tx.apply(change);
            }
            Ring::Rx => pair.rx.apply(change),
        }
    }
}

/// A locked operation drains what is before it, and later ones wait for it.
fn touch(t: Touch, pool: u32, p: &mut Program) {
    match t {
        Touch::Read(line) => p.push(Op::Load { line, lines: 1 }),
        Touch::Write(line) => p.push(Op::Store { line, lines: 1 }),
        Touch::Atomic(line) => {
            p.compute(pool);
            p.push(Op::Atomic { line });
        }
    }
}

/// What every thread of an interface is built from.
#[derive(Clone, Copy)]
pub struct Setup<'a> {
    /// The interface's parameters.
    pub spec: &'a CcnicSpec,
    /// The core that a thread runs on.
    pub core: &'a CoreSpec,
    /// The memory that both sides see.
    pub interface: &'a Interface,
}

/// A thread of either side.
#[derive(Clone)]
pub enum Agent {
    Host(host::Host),
    Nic(nic::Nic),
    Server(server::Server),
    Overlay(Box<overlay::Overlay>),
    Wire(wire::Wire),
    Bank(bank::Bank),
}

impl Agent {
    /// The host's thread of queue pair `queue`, which sends packets of `app` as `demand` says.
    pub fn host(s: Setup, queue: usize, app: &LoopbackSpec, demand: Demand) -> Agent {
        let common = Common::new(s, queue, app.bytes.0.to_u32()).foreseeing();
        Agent::Host(host::Host::new(common, s.interface, app.touch == Touched::Header, demand))
    }

    /// The host's thread with number `local` of `of`: it forwards packets of `app`, or serves packets in overlay mode.
    pub fn server(s: Setup, app: Option<&LoopbackSpec>, local: usize, of: usize) -> Agent {
        Agent::Server(server::Server::new(s, app, (local, of), true))
    }

    /// The queue pairs of the thread with number `local` of `of`, in overlay mode, for another stack.
    pub fn ports(s: Setup, local: usize, of: usize) -> Ports {
        server::Server::new(s, None, (local, of), false).into_ports()
    }

    /// The NIC's thread of queue pair `queue` in overlay mode, with the driver of its queue of the PCIe NIC. Data that it sends
    /// lies from line `data` on, [`SENT_LINES`] for each of the driver's buffers.
    pub fn overlay(s: Setup, queue: usize, driver: PollMode, data: LineAddr) -> Agent {
        let nic = nic::Nic::new(Common::new(s, queue, 0).foreseeing(), s.interface);
        Agent::Overlay(Box::new(overlay::Overlay::new(nic, driver, data)))
    }

    /// The NIC's thread of queue pair `queue`, which loops packets of `app` back.
    pub fn nic(s: Setup, queue: usize, app: &LoopbackSpec) -> Agent {
        Agent::Nic(nic::Nic::new(Common::of_nic(s, queue, app.bytes.0.to_u32()).foreseeing(), s.interface))
    }

    /// The NIC's thread of several queue pairs.
    pub fn bank(s: Setup, queues: impl Iterator<Item = usize>, app: &LoopbackSpec) -> Agent {
        let of = |q| nic::Nic::new(Common::of_nic(s, q, app.bytes.0.to_u32()).foreseeing(), s.interface);
        Agent::Bank(bank::Bank::new(queues.map(of).collect()))
    }

    /// The NIC's thread of queue pair `queue` in forward mode: packets of `app` come from the wire as `demand` says.
    pub fn wire(s: Setup, queue: usize, app: &LoopbackSpec, demand: Demand) -> Agent {
        let nic = nic::Nic::new(Common::new(s, queue, app.bytes.0.to_u32()).foreseeing(), s.interface);
        Agent::Wire(wire::Wire::new(nic, demand))
    }

    /// What it has of each of its queue pairs.
    fn commons(&self) -> Vec<&Common> {
        match self {
            Agent::Host(h) => vec![&h.common],
            Agent::Nic(n) => vec![&n.common],
            Agent::Server(s) => s.commons().collect(),
            Agent::Overlay(o) => vec![&o.nic.common],
            Agent::Wire(w) => vec![&w.nic.common],
            Agent::Bank(b) => b.commons().collect(),
        }
    }

    /// Its stacks' counts.
    pub fn pool_counts(&self) -> pool::PoolCounts {
        let add = |a: pool::PoolCounts, c: &Common| {
            let b = c.side.counts;
            pool::PoolCounts {
                takes: a.takes + b.takes,
                puts: a.puts + b.puts,
                starved: a.starved + b.starved,
                fallbacks: a.fallbacks + b.fallbacks,
            }
        };
        self.commons().into_iter().fold(pool::PoolCounts::default(), add)
    }

    pub fn is_host(&self) -> bool {
        matches!(self, Agent::Host(_) | Agent::Server(_))
    }

    /// Buffers that it holds: in its stacks, and at work.
    pub fn held(&self) -> usize {
        let stacked: usize = self.commons().iter().map(|c| c.side.stacked()).sum();
        stacked
            + match self {
                Agent::Host(h) => h.held(),
                Agent::Nic(n) => n.held(),
                Agent::Server(s) => s.held(),
                Agent::Overlay(o) => o.nic.held(),
                Agent::Wire(w) => w.nic.held(),
                Agent::Bank(b) => b.held(),
            }
    }
}

impl Software for Agent {
    fn step(&mut self, c: &mut Ctx) -> Step {
        c.program.ops.clear();
        if c.stopped {
            return Step::Idle;
        }
        match self {
            Agent::Host(h) => h.step(c),
            Agent::Nic(n) => n.step(c),
            Agent::Server(s) => s.step(c),
            Agent::Overlay(o) => o.step(c),
            Agent::Wire(w) => w.step(c),
            Agent::Bank(b) => b.step(c),
        }
    }

    fn retired(&mut self, tag: u32, c: &mut Ctx) {
        match self {
            Agent::Host(h) => h.retired(tag, c),
            Agent::Nic(n) => n.common.visible(c),
            Agent::Server(s) => s.retired(tag, c),
            Agent::Overlay(o) => o.retired(tag, c),
            Agent::Wire(w) => w.retired(tag, c),
            Agent::Bank(b) => b.retired(tag, c),
        }
    }

    fn restart_meters(&mut self, now: Time) {
        match self {
            Agent::Host(h) => h.common.restart(),
            Agent::Nic(n) => n.common.restart(),
            Agent::Server(s) => s.commons_mut().for_each(Common::restart),
            Agent::Wire(w) => w.nic.common.restart(),
            Agent::Bank(b) => b.restart(),
            Agent::Overlay(o) => {
                o.nic.common.restart();
                o.restart_meters(now);
            }
        }
    }
}
