//! CC-NIC: host and NIC threads that exchange packets through coherent memory alone.
//!
//! ```text
//!   host thread (host.rs)                         NIC thread (nic.rs)
//!     alloc, write payload, publish  -- TX ring -->  poll, read payload, copy, free, clear
//!     poll, read payload, free, clear <-- RX ring --  alloc, write payload, publish
//!                 \------- pool of buffers, recycle stacks on both sides -------/
//! ```
//!
//! In overlay mode the host's thread serves packets (server.rs), and the NIC's thread forwards them to and from a PCIe
//! NIC (overlay.rs). In forward mode the NIC's thread receives packets from a wire (forward.rs), and the host returns
//! or answers them.
//!
//! `rings.rs` and `pool.rs` hold the rules of the protocol, without timing. The threads turn the reads and stores of
//! these rules into programs of their cores. Other threads see the effect of a store when the core's `Op::Release`
//! completes, which is when the core owns the line. A poll reads a line and branches on its content: the thread
//! continues when the data arrives, and sees every store that had taken effect by then. A thread with branch prediction
//! continues immediately, and its uses of the line wait for the data.

mod forward;
mod host;
mod multi_queue;
mod nic;
mod overlay;
pub mod pool;
mod ports;
pub mod rings;
mod role;
mod server;
pub mod spec;

use super::branch_predictor::{self, BranchPredictor};
use super::demand::{Demand, DuePackets};
use super::idle_time::IdleTime;
use super::pmd::PollMode;
use super::{Ctx, Software, Step};
use crate::app::loopback::{LoopbackSpec, Touched};
use crate::app::Content;
use crate::core::spec::Pipeline;
use crate::core::{CoreSpec, Op, Program};
use crate::kernel::{Int, LineAddr, PacketId, PortId, QueueId, ThreadId, Time};
use crate::memory::{Sweep, LINE};
use crate::meter::life::{Lives, Milestone};
pub use forward::{Wire, WirePackets};
use hdrhistogram::Histogram;
use multi_queue::PairNic;
pub use overlay::SENT_LINES;
use pool::{fill_order, BufferCache, BufferCaching, FreeRing, PoolAccess, Pools};
pub use ports::Ports;
use rings::{Desc, Publication, RingChange, RingShape, RingWords, CHAINED, GROUP};
pub use server::ServerWork;
use spec::{CcnicMode, CcnicSpec, FreeCheck, NicKind, PoolKind, ReleaseKind, Stores};
use std::collections::VecDeque;

/// First lines of the memory regions that the interface consists of.
#[derive(Clone, Copy, Debug, Default)]
pub struct CcnicMemory {
    /// First line of the transmit rings.
    pub tx_rings: LineAddr,
    /// First line of the receive rings.
    pub rx_rings: LineAddr,
    /// First line of the transmit rings' registers.
    pub tx_registers: LineAddr,
    /// First line of the receive rings' registers.
    pub rx_registers: LineAddr,
    /// First line of the buffer pools' rings of free buffers.
    pub pools: LineAddr,
    /// First line of the buffers.
    pub buffers: LineAddr,
}

impl CcnicMemory {
    /// Shapes of the transmit and the receive ring of queue pair `queue`.
    pub fn tx(&self, s: &CcnicSpec, queue: u64) -> RingShape {
        s.shape(self.tx_rings, self.tx_registers, queue, true)
    }
    /// Shape of the receive ring of queue pair `queue`.
    pub fn rx(&self, s: &CcnicSpec, queue: u64) -> RingShape {
        s.shape(self.rx_rings, self.rx_registers, queue, s.groups_rx())
    }
}

/// Transmit or receive ring of a queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RingKind {
    /// The transmit ring.
    Tx,
    /// The receive ring.
    Rx,
}

/// Shared words of a queue pair's two rings, which both sides see.
#[derive(Clone, Debug)]
pub struct QueuePairWords {
    /// Words of the transmit ring.
    pub tx: RingWords,
    /// Words of the receive ring.
    pub rx: RingWords,
}

/// Round trips of a measurement window, as seen by the host's threads.
#[derive(Clone)]
pub struct RoundTrips {
    /// Round-trip times in ps.
    pub histogram: Histogram<u64>,
    /// Number of packets that made the round trip.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
    /// Number of blank receive buffers that the host posted.
    pub blanks: u64,
    /// Number of transmit buffers that the host freed after their transmission.
    pub swept: u64,
    /// Number of lines that the host wrote to buffers that the NIC had used last, to send them.
    pub retained: u64,
    /// Time from a transmit descriptor's visibility to its discovery by the NIC, in ps.
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

    /// Adds the round trips of another interface.
    fn merge(&mut self, other: &RoundTrips) {
        self.histogram.add(&other.histogram).expect("the same bounds");
        self.discovery.add(&other.discovery).expect("the same bounds");
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.blanks += other.blanks;
        self.swept += other.swept;
        self.retained += other.retained;
    }
}

/// Trip of a packet through the interface that has not ended.
#[derive(Clone, Copy)]
struct RoundTrip {
    began: Time,
    bytes: u32,
}

impl RoundTrip {
    /// Ends the trip.
    fn end(self, c: &mut Ctx) {
        let Some(i) = c.roles.get_mut::<CcnicInterface>() else { return };
        let trip: Time = c.step.now.saturating_sub(self.began);
        i.trips.histogram.saturating_record(trip.0.max(1));
        i.trips.packets += 1;
        i.trips.bytes += u64::from(self.bytes);
        c.tally.operations += 1;
        c.tally.completed += 1;
        c.tally.completed_ever += 1;
        c.tally.recent.iter_mut().for_each(|all| all.push((trip.0 / 1000).max(1)));
    }
}

/// State shared by host and NIC threads: the values of the memory that both sides see.
#[derive(Clone)]
pub struct CcnicInterface {
    /// First lines of the interface's memory regions.
    pub memory: CcnicMemory,
    /// Shared words of the queue pairs.
    pub pairs: Vec<QueuePairWords>,
    /// Buffer pools: one for all queue pairs, or one for each.
    pub pools: Vec<Pools>,
    /// Number of descriptors of all transmit rings.
    descriptors: u64,
    /// Number of small buffers in all pools.
    small: u32,
    /// Time stamp in the payload of each buffer.
    stamps: Vec<Time>,
    /// Whether each buffer was last used by the NIC to send it.
    sent: Vec<bool>,
    /// Record of the packet in each buffer, in overlay mode.
    packets: Vec<Option<PacketId>>,
    /// Content of the packet in each buffer, where the NIC receives packets for an application from a wire.
    contents: Vec<Content>,
    /// For each queue pair, packets that ended at the host without an answer, and that the NIC has not learned of.
    ended: Vec<u32>,
    /// NIC cores that are to learn of packets that ended at the host.
    woken: Vec<ThreadId>,
    /// First line of the object that belongs to the packet in each buffer.
    objects: Vec<LineAddr>,
    /// Port of the NIC that the interface forwards packets to and from; None outside overlay mode.
    nic: Option<PortId>,
    /// For each queue pair, the time since which a transmit descriptor has been visible that the NIC has not
    /// discovered.
    visible: Vec<Option<Time>>,
    /// NIC core of each queue pair, where the core serves no other queue pair.
    pub nic_cores: Vec<ThreadId>,
    /// NIC cores, each of which serves the queue pairs whose number modulo the number of cores is the core's.
    pub nic_threads: Vec<ThreadId>,
    large_stride: u64,
    small_lines: u64,
    /// Lines of metadata at the start of each buffer.
    metadata_lines: u64,
    /// Whether every buffer outside the pool is in a thread's stack: the host alone manages buffers.
    all_known: bool,
    /// Round trips in the measured window.
    pub trips: RoundTrips,
    /// Lives of packets by their buffers, where the run records any and the host's threads make the packets.
    pub lives: Option<Box<Lives>>,
}

impl CcnicInterface {
    /// The interface of `queues` queue pairs; in overlay mode it forwards packets to and from the NIC on port `nic`.
    /// `all_known` tells whether CC-NIC's threads alone hold buffers.
    pub fn new(
        s: &CcnicSpec,
        queues: u32,
        memory: CcnicMemory,
        nic: Option<PortId>,
        all_known: bool,
    ) -> CcnicInterface {
        let [small, large] = s.counts(queues);
        let all = s.pools(queues);
        // The pools' parts are as equal as possible, and each part is contiguous.
        let part = |n: u32, k: u32| (u64::from(n) * u64::from(k) / u64::from(all)).to_u32();
        let pool = |k: u32| {
            let base = memory.pools + u64::from(k) * s.pool_lines(queues);
            let free = |n: u32, size: u64, first: u32| {
                let (from, to) = (part(n, k), part(n, k + 1));
                fill_order(to - from, size.to_u32(), s.nonsequential).map(move |b| first + from + b)
            };
            let rings = [
                FreeRing::new(base, free(small, s.quirks.small_buffer.0, 0)),
                FreeRing::new(base + FreeRing::lines(small.div_ceil(all)), free(large, s.quirks.large_buffer.0, small)),
            ];
            Pools::new(rings, small, s.small_room().to_u32())
        };
        let all_buffers = (small + large).to_usize();
        let forwarded = if s.mode == CcnicMode::Overlay { all_buffers } else { 0 };
        let pair = |q: u32| QueuePairWords {
            tx: RingWords::new(&memory.tx(s, q.into())),
            rx: RingWords::new(&memory.rx(s, q.into())),
        };
        CcnicInterface {
            memory,
            pairs: (0..queues).map(pair).collect(),
            pools: (0..all).map(pool).collect(),
            descriptors: u64::from(queues) * GROUP.to_u64() * u64::from(s.ring),
            small,
            stamps: vec![Time::ZERO; (small + large).to_usize()],
            sent: vec![false; (small + large).to_usize()],
            packets: vec![None; forwarded],
            contents: vec![Content::default(); if s.mode == CcnicMode::Forward { all_buffers } else { 0 }],
            ended: vec![0; queues.to_usize()],
            woken: Vec::new(),
            objects: vec![LineAddr(0); if s.mode == CcnicMode::Loopback { 0 } else { all_buffers }],
            nic,
            visible: vec![None; queues.to_usize()],
            nic_cores: Vec::new(),
            nic_threads: Vec::new(),
            large_stride: s.large_stride(),
            small_lines: s.quirks.small_buffer.0 / LINE,
            metadata_lines: s.quirks.metadata.0 / LINE,
            all_known: all_known && s.pool == PoolKind::Host,
            trips: RoundTrips::new(),
            lives: None,
        }
    }

    /// Whether the packets are those of a NIC's clients, rather than of the threads themselves.
    pub fn is_overlay(&self) -> bool {
        self.nic.is_some()
    }

    /// Marks that the packet in `buffer` passes a milestone, where the run records lives.
    fn passes(&mut self, buffer: u32, what: Milestone) {
        if let Some(l) = &mut self.lives {
            l.mark(buffer.to_usize(), what);
        }
    }

    /// Overlay mode: port of the NIC that packets are forwarded to and from.
    ///
    /// # Panics
    /// When the interface forwards none.
    fn nic(&self) -> PortId {
        self.nic.expect("an overlay has a NIC")
    }

    /// Overlay mode: the packet that `buffer` holds.
    ///
    /// # Panics
    /// When no packet has been written to `buffer`.
    fn packet_in(&self, buffer: u32) -> PacketId {
        self.packets[buffer.to_usize()].expect("a packet in the buffer")
    }

    /// Gives the packet in buffer `from` to buffer `to`, which holds the answer to it.
    fn pass_on(&mut self, from: u32, to: u32) {
        let (from, to) = (from.to_usize(), to.to_usize());
        self.stamps[to] = self.stamps[from];
        if self.nic.is_some() {
            self.packets[to] = self.packets[from];
        } else {
            self.contents[to] = self.contents[from];
            if let Some(l) = &mut self.lives {
                l.renamed(from, to);
            }
        }
    }

    /// Records that a packet of queue pair `queue` has ended at the host, where the NIC's side waits for its answer.
    fn end_at_host(&mut self, queue: usize) {
        self.ended[queue] += 1;
        let all = self.nic_threads.len().max(1);
        self.woken.extend(self.nic_threads.get(queue % all));
    }

    /// First line of a buffer's payload.
    fn line(&self, buffer: u32) -> LineAddr {
        self.metadata(buffer) + self.metadata_lines
    }

    /// First line of a buffer, which begins with the metadata.
    fn metadata(&self, buffer: u32) -> LineAddr {
        let small = u64::from(self.small);
        match u64::from(buffer).checked_sub(small) {
            None => self.memory.buffers + u64::from(buffer) * self.small_lines,
            Some(n) => self.memory.buffers + small * self.small_lines + n * self.large_stride,
        }
    }

    /// Number of queue pairs.
    pub fn queues(&self) -> usize {
        self.pairs.len()
    }

    /// Buffer pool of queue pair `queue`.
    fn pool(&mut self, queue: usize) -> &mut Pools {
        let all = self.pools.len();
        &mut self.pools[queue % all]
    }

    /// Restarts the counters for a new measurement window.
    pub fn restart(&mut self) {
        self.trips = RoundTrips::new();
        self.lives.iter_mut().for_each(|l| l.restart());
    }
}

/// Side effect that the tag of a thread's operation stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CcnicEffect {
    /// The oldest store in flight becomes visible.
    Visible,
    /// The time stamp is written into the buffer.
    Stamp,
    /// The host has read the buffer.
    Seen,
}

impl CcnicEffect {
    fn tag(self, buffer: u32) -> u32 {
        buffer << 2 | self as u32
    }
    fn of(tag: u32) -> (CcnicEffect, u32) {
        ([CcnicEffect::Visible, CcnicEffect::Stamp, CcnicEffect::Seen][(tag & 3).to_usize()], tag >> 2)
    }
}

/// State common to host and NIC threads of a queue pair.
#[derive(Clone)]
struct CcnicThreadState {
    queue: usize,
    /// Index of the queue pair within its thread, which the tags of the thread's stores carry.
    tag: u32,
    spec: CcnicSpec,
    side: BufferCache,
    bytes: u32,
    /// Stores in flight, each to one line, oldest first.
    stores_in_flight: VecDeque<(RingKind, LineAddr, RingChange)>,
    /// Whether the last poll has been issued.
    polled: bool,
    /// Reorder-buffer size of the thread's core in instructions; 0 for a core that stalls at each branch.
    window: u32,
    /// Branch predictor for the outcome of polls; None where a poll's thread waits for the data.
    predictor: Option<BranchPredictor>,
    /// Lines of a buffer's metadata that the thread accesses; 0 for the NIC's threads.
    metadata_lines: u32,
}

impl CcnicThreadState {
    fn new(s: Setup, queue: usize, bytes: u32) -> CcnicThreadState {
        let Setup { interface: i, core, .. } = s;
        let spec = s.spec.clone();
        let keeps = match spec.cache() {
            _ if spec.recycle => BufferCaching::Stack { most: spec.quirks.stack, bulk: spec.quirks.bulk },
            0 => BufferCaching::Nothing,
            size => BufferCaching::Cache { size },
        };
        let pools = i.pools.len();
        let side = BufferCache::new(&i.pools[queue % pools], (i.pairs.len() / pools).to_u32(), keeps);
        let window = if core.pipeline == Pipeline::OutOfOrder { core.rob } else { 0 };
        CcnicThreadState {
            queue,
            tag: 0,
            spec,
            side,
            bytes,
            stores_in_flight: VecDeque::new(),
            polled: false,
            window,
            predictor: None,
            metadata_lines: 0,
        }
    }

    /// Gives the thread branch prediction for its polls if its core is out of order; every use of a descriptor must
    /// then wait for the descriptor's line.
    fn foreseeing(self) -> CcnicThreadState {
        CcnicThreadState { predictor: (self.window > 0).then(BranchPredictor::default), ..self }
    }

    /// State of a NIC thread of queue pair `queue`. A device's agent executes no instructions, so its costs are zero.
    fn of_nic(s: Setup, queue: usize, bytes: u32) -> CcnicThreadState {
        let mut common = CcnicThreadState::new(s, queue, bytes);
        if common.spec.nic == NicKind::Agent {
            let spec::CcnicCosts { alloc, free, host_tx, host_rx, nic_tx, nic_rx, unit, poll, pool } =
                &mut common.spec.quirks.costs;
            [alloc, free, host_tx, host_rx, nic_tx, nic_rx, unit, poll, pool].into_iter().for_each(|n| *n = 0);
        }
        common
    }

    /// The ring of `shape` as this thread reads it, with `instructions` spent on each descriptor while it gathers a
    /// burst.
    fn reads(&self, shape: RingShape, instructions: u32) -> RingShape {
        if self.spec.quirks.read_ahead.is_some() || self.window == 0 {
            return shape;
        }
        // A poll is a load and a branch.
        let unit = 2 + self.spec.quirks.costs.unit + shape.group.to_u32() * instructions;
        RingShape { read_ahead: 1 + u64::from(self.window / unit), speculates: true, ..shape }
    }

    /// Number of buffers that a packet takes.
    fn segments(&self) -> usize {
        self.spec.segments(self.bytes.into()).to_usize()
    }

    /// Bytes of segment number `k` of a packet.
    fn segment(&self, k: usize) -> u32 {
        let most = self.spec.large_room().to_u32();
        if self.segments() == 1 {
            self.bytes
        } else {
            (self.bytes - k.to_u32() * most).min(most)
        }
    }

    /// Descriptor of segment number `k` of a packet, which lies in `buffer`.
    fn descriptor(&self, k: usize, buffer: u32, flags: u16) -> Desc {
        let chained = if k + 1 < self.segments() { CHAINED } else { 0 };
        Desc { buffer: buffer + 1, bytes: self.segment(k).to_u16(), flags: flags | chained }
    }

    /// Restarts the counters for a new measurement window.
    fn restart(&mut self) {
        self.side.counts = pool::PoolCounts::default();
    }

    /// Issues a store to a line of a ring.
    fn store(&mut self, ring: RingKind, s: Publication, p: &mut Program) {
        p.push(Op::Release { line: s.line, tag: CcnicEffect::Visible.tag(self.tag) });
        self.stores_in_flight.push_back((ring, s.line, s.change));
        if let Some(line) = s.own_ahead.filter(|l| *l != s.line) {
            p.push(Op::PrefetchOwn { line, lines: 1 });
        }
    }

    /// Reads the lines of the ring `shape` that show a producer which units are free.
    fn read_free_lines(&self, shape: &RingShape, lines: &[LineAddr], p: &mut Program) {
        let own = !shape.register && self.spec.quirks.free_check == FreeCheck::Written;
        for line in lines.iter().copied() {
            p.push(if own { Op::LoadOwn { line } } else { Op::Load { line, lines: 1 } });
        }
    }

    /// Reads `line`, which shows whether a unit is ready, and branches on its content; does nothing when `line` is
    /// None, because a unit is known to be ready. The burst's `first` poll has the fixed costs. A core that predicts a
    /// unit that is already `there` does not wait for the line.
    fn poll(&mut self, line: Option<LineAddr>, there: bool, first: bool, p: &mut Program) {
        if first {
            p.compute(self.spec.quirks.costs.poll);
        }
        if let Some(line) = line {
            branch_predictor::poll(line, there, self.predictor, p);
        }
        self.polled = true;
    }

    /// Makes the following accesses depend on `line`, which contains their addresses; a thread without branch
    /// prediction waits for the line.
    fn follow(&self, line: LineAddr, p: &mut Program) {
        p.push(Op::Anchor { line });
        if self.predictor.is_none() {
            p.push(Op::Await);
        }
    }

    /// Trains the branch predictor with the outcome of a poll.
    fn train_predictor(&mut self, found: bool) {
        if let Some(f) = &mut self.predictor {
            f.train(found);
        }
    }

    /// Trains the branch predictor with `polls` polls that have found nothing.
    fn skip_polls(&mut self, polls: u64) {
        if let Some(f) = &mut self.predictor {
            f.train_in_vain(polls);
        }
    }

    fn alloc(&mut self, i: &mut CcnicInterface, hint: u32, n: usize, p: &mut Program) -> Vec<u32> {
        let pool = self.spec.quirks.costs.pool;
        let out = self.side.alloc(i.pool(self.queue), hint, n, &mut |t| touch(t, pool, p));
        p.compute(self.spec.quirks.costs.alloc * out.len().to_u32());
        out
    }

    /// Reads the metadata of a buffer, where the thread is the host's.
    fn read_metadata(&self, i: &CcnicInterface, buffer: u32, p: &mut Program) {
        if self.metadata_lines > 0 {
            p.push(Op::Load { line: i.metadata(buffer), lines: self.metadata_lines });
        }
    }

    /// Writes the metadata of a buffer, where the thread is the host's.
    fn write_metadata(&self, i: &CcnicInterface, buffer: u32, p: &mut Program) {
        if self.metadata_lines > 0 {
            p.push(Op::Store { line: i.metadata(buffer), lines: self.metadata_lines });
        }
    }

    /// Writes the metadata of a received packet, where the thread is the host's. The address of the buffer comes from
    /// its descriptor, the last line that the program follows, unless the host has posted the buffer itself.
    fn receive_metadata(&self, i: &CcnicInterface, buffer: u32, p: &mut Program) {
        if self.predictor.is_none() || self.spec.pool == PoolKind::Host {
            self.write_metadata(i, buffer, p);
        } else if self.metadata_lines > 0 {
            p.push(Op::DependentStore { line: i.metadata(buffer), lines: self.metadata_lines });
        }
    }

    fn free_one(&mut self, i: &mut CcnicInterface, buffer: u32, p: &mut Program) {
        p.compute(self.spec.quirks.costs.free);
        self.read_metadata(i, buffer, p);
        let pool = self.spec.quirks.costs.pool;
        self.side.free(i.pool(self.queue), buffer, &mut |t| touch(t, pool, p));
    }

    fn free_done(&mut self, i: &mut CcnicInterface, p: &mut Program) {
        let pool = self.spec.quirks.costs.pool;
        self.side.free_done(i.pool(self.queue), &mut |t| touch(t, pool, p));
    }

    fn free(&mut self, i: &mut CcnicInterface, buffers: impl Iterator<Item = u32>, p: &mut Program) {
        buffers.for_each(|b| self.free_one(i, b, p));
        self.free_done(i, p);
    }

    /// Writes payload to line `to` on. With branch prediction the address comes from a descriptor, and is known only
    /// when the descriptor has arrived.
    fn write(&self, to: LineAddr, lines: u32, p: &mut Program) {
        p.push(match self.spec.stores {
            Stores::Cached if self.predictor.is_some() => Op::DependentStore { line: to, lines },
            Stores::Cached => Op::Store { line: to, lines },
            Stores::Nontemporal => Op::StoreStream { line: to, lines },
        });
    }

    /// Copies payload from line `from` to line `to` on. The address of `from` comes from a descriptor if `behind`, and
    /// so does the address of a blank buffer.
    fn copy(&self, (from, behind): (LineAddr, bool), to: LineAddr, lines: u32, p: &mut Program) {
        let dependent = self.spec.pool == PoolKind::Host || self.predictor.is_some();
        p.push(match self.spec.stores {
            Stores::Cached => Op::Copy { from, to, lines, dependent, behind },
            Stores::Nontemporal => Op::CopyStream { from, to, lines, behind },
        });
    }

    /// Ends the round trip of the packet in `buffer`, which has returned to its origin.
    fn seen(&self, buffer: u32, c: &mut Ctx) {
        let Some(i) = c.roles.get_mut::<CcnicInterface>() else { return };
        if let Some(l) = &mut i.lives {
            l.ended(buffer.to_usize(), c.step.now, &[]);
        }
        let drawn = i.contents.get(buffer.to_usize()).map_or(0, |c| c.wire_bytes);
        let trip = RoundTrip { began: i.stamps[buffer.to_usize()], bytes: if drawn > 0 { drawn } else { self.bytes } };
        trip.end(c);
    }

    /// Appends the cache maintenance that the NIC performs on payload that it has read, `lines` lines from `line` on.
    fn release(&self, line: LineAddr, lines: u32, p: &mut Program) {
        match self.spec.release {
            ReleaseKind::None => {}
            ReleaseKind::Clflushopt => p.push(Op::Maintain { line, lines, op: Sweep::Flush }),
            ReleaseKind::Clwb => p.push(Op::Maintain { line, lines, op: Sweep::WriteBack }),
        }
    }

    /// Starts the round trip of the packet in `buffer`.
    fn stamp(&self, buffer: u32, c: &mut Ctx) {
        if let Some(i) = c.roles.get_mut::<CcnicInterface>() {
            i.stamps[buffer.to_usize()] = c.step.now;
            if let Some(l) = &mut i.lives {
                l.arrived(buffer.to_usize(), QueueId::new(self.queue), self.bytes, c.step.now);
            }
        }
    }

    /// Makes the oldest store in flight visible.
    fn visible(&mut self, c: &mut Ctx) {
        let Some((ring, line, change)) = self.stores_in_flight.pop_front() else { return };
        let Some(i) = c.roles.get_mut::<CcnicInterface>() else { return };
        let pair = &mut i.pairs[self.queue];
        let published = matches!(change, RingChange::Unit { .. } | RingChange::Tail(_));
        if let (true, Some(counts), Some(nic)) =
            (published, c.machine.off_core.as_deref_mut(), i.nic_cores.get(self.queue))
        {
            // The NIC works on a packet from the packet's publication to the publication of its copy. Units that the
            // host publishes on the receive ring are blank buffers.
            match ring {
                RingKind::Tx => counts.watch(*nic, line),
                RingKind::Rx if c.step.thread == *nic => counts.watch_none(*nic),
                RingKind::Rx => {}
            }
        }
        match ring {
            RingKind::Tx => {
                if published {
                    i.visible[self.queue].get_or_insert(c.step.now);
                }
                pair.tx.apply(change);
            }
            RingKind::Rx => pair.rx.apply(change),
        }
    }
}

/// Lines of a packet, or of a part of it, of `bytes` bytes.
fn lines_of(bytes: u32) -> u32 {
    crate::app::lines(bytes.into()).into()
}

/// Appends one access to the pool's lines. A locked operation waits for all earlier accesses, and later accesses wait
/// for the operation.
fn touch(t: PoolAccess, pool: u32, p: &mut Program) {
    match t {
        PoolAccess::Read(line) => p.push(Op::Load { line, lines: 1 }),
        PoolAccess::Write(line) => p.push(Op::Store { line, lines: 1 }),
        PoolAccess::Atomic(line) => {
            p.compute(pool);
            p.push(Op::Atomic { line });
        }
    }
}

/// The values from which every thread of an interface is built.
#[derive(Clone, Copy)]
pub struct Setup<'a> {
    /// The interface's parameters.
    pub spec: &'a CcnicSpec,
    /// The core that a thread runs on.
    pub core: &'a CoreSpec,
    /// The memory that both sides see.
    pub interface: &'a CcnicInterface,
}

/// A thread of CC-NIC on either side.
#[derive(Clone)]
pub struct CcnicThread {
    part: CcnicPart,
    idle: IdleTime,
}

/// Part of the interface that a thread plays.
#[derive(Clone)]
enum CcnicPart {
    /// A core of the host that generates packets and reads the packets that return.
    Host(host::CcnicHost),
    /// A core of the NIC.
    Nic(nic::CcnicNic),
    /// A core of the host that serves packets.
    Server(server::CcnicServer),
    /// A core of the NIC that forwards packets to and from a PCIe NIC.
    Overlay(Box<overlay::Overlay>),
    /// A core of the NIC that connects a queue pair to a network.
    Wire(Box<forward::ForwardNic>),
    /// A core of the NIC that serves several queue pairs.
    Bank(multi_queue::MultiQueueNic),
}

impl From<CcnicPart> for CcnicThread {
    fn from(part: CcnicPart) -> CcnicThread {
        CcnicThread { part, idle: IdleTime::from_start() }
    }
}

impl CcnicThread {
    /// The host's thread of queue pair `queue`, which sends packets of `app` according to `demand`.
    pub fn host(s: Setup, queue: usize, app: &LoopbackSpec, demand: Demand) -> CcnicThread {
        let common = CcnicThreadState::new(s, queue, app.bytes.0.to_u32()).foreseeing();
        CcnicPart::Host(host::CcnicHost::new(common, s.interface, app.touch == Touched::Header, demand)).into()
    }

    /// The host's thread number `local` of `of` threads, which does `work` with the packets that it takes.
    pub fn server(s: Setup, work: ServerWork, local: usize, of: usize) -> CcnicThread {
        CcnicPart::Server(server::CcnicServer::new(s, work, (local, of), true)).into()
    }

    /// The queue pairs of thread number `local` of `of` threads, in overlay mode, for use by another stack.
    pub fn ports(s: Setup, local: usize, of: usize) -> Ports {
        server::CcnicServer::new(s, ServerWork::Serve { answers_all: true }, (local, of), false)
            .into_ports(s.interface.nic())
    }

    /// The NIC's thread of queue pair `queue` in overlay mode, with the driver of its queue of the PCIe NIC. The data
    /// that the thread sends begins at line `data`, with [`SENT_LINES`] lines for each of the driver's buffers.
    pub fn overlay(s: Setup, queue: usize, driver: PollMode, data: LineAddr) -> CcnicThread {
        let nic = nic::CcnicNic::new(CcnicThreadState::new(s, queue, 0).foreseeing(), s.interface);
        CcnicPart::Overlay(Box::new(overlay::Overlay::new(nic, driver, data))).into()
    }

    /// The NIC's thread of queue pair `queue`, which returns packets of `app` to the host.
    pub fn nic(s: Setup, queue: usize, app: &LoopbackSpec) -> CcnicThread {
        let common = CcnicThreadState::of_nic(s, queue, app.bytes.0.to_u32()).foreseeing();
        CcnicPart::Nic(nic::CcnicNic::new(common, s.interface)).into()
    }

    /// The NIC's thread of several queue pairs, in loopback mode.
    pub fn bank(s: Setup, queues: impl Iterator<Item = usize>, app: &LoopbackSpec) -> CcnicThread {
        let state = |q| CcnicThreadState::of_nic(s, q, app.bytes.0.to_u32()).foreseeing();
        let of = |q| PairNic::Loopback(Box::new(nic::CcnicNic::new(state(q), s.interface)));
        CcnicPart::Bank(multi_queue::MultiQueueNic::new(queues.map(of).collect())).into()
    }

    /// The NIC's thread of the queue pairs `wires` in forward mode, with the packets that arrive for each from the wire.
    pub fn wires(s: Setup, wires: impl Iterator<Item = (usize, Wire)>) -> CcnicThread {
        let of = |(queue, wire): (usize, Wire)| {
            let common = CcnicThreadState::of_nic(s, queue, wire.bytes).foreseeing();
            Box::new(forward::ForwardNic::new(nic::CcnicNic::new(common, s.interface), wire))
        };
        let mut all: Vec<_> = wires.map(of).collect();
        if all.len() == 1 {
            return CcnicPart::Wire(all.remove(0)).into();
        }
        CcnicPart::Bank(multi_queue::MultiQueueNic::new(all.into_iter().map(PairNic::Wire).collect())).into()
    }

    /// State of each of the thread's queue pairs.
    fn commons(&self) -> Vec<&CcnicThreadState> {
        match &self.part {
            CcnicPart::Host(h) => vec![&h.common],
            CcnicPart::Nic(n) => vec![&n.common],
            CcnicPart::Server(s) => s.commons().collect(),
            CcnicPart::Overlay(o) => vec![&o.nic.common],
            CcnicPart::Wire(w) => vec![&w.nic.common],
            CcnicPart::Bank(b) => b.commons().collect(),
        }
    }

    /// Packets that an arrival process has made the thread's queue pairs send or receive.
    fn packets_due(&self) -> Option<DuePackets> {
        match &self.part {
            CcnicPart::Host(h) => h.due_packets(),
            CcnicPart::Wire(w) => w.due_packets(),
            CcnicPart::Bank(b) => b.due_packets(),
            CcnicPart::Nic(_) | CcnicPart::Server(_) | CcnicPart::Overlay(_) => None,
        }
    }

    /// Demand of each queue pair for which the thread makes packets or receives them from a wire.
    pub fn demands(&mut self) -> Vec<&mut Demand> {
        match &mut self.part {
            CcnicPart::Host(h) => vec![&mut h.demand],
            CcnicPart::Wire(w) => vec![&mut w.wire.demand],
            CcnicPart::Bank(b) => b.demands().collect(),
            CcnicPart::Nic(_) | CcnicPart::Server(_) | CcnicPart::Overlay(_) => Vec::new(),
        }
    }

    /// Counters of the thread's buffer stacks.
    pub fn pool_counts(&self) -> pool::PoolCounts {
        let add = |a: pool::PoolCounts, c: &CcnicThreadState| {
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

    /// Whether the thread runs on the host's side.
    pub fn is_host(&self) -> bool {
        matches!(self.part, CcnicPart::Host(_) | CcnicPart::Server(_))
    }

    /// Number of buffers that the thread holds, in its stacks and in use.
    pub fn held(&self) -> usize {
        let stacked: usize = self.commons().iter().map(|c| c.side.stacked()).sum();
        stacked
            + match &self.part {
                CcnicPart::Host(h) => h.held(),
                CcnicPart::Nic(n) => n.held(),
                CcnicPart::Server(s) => s.held(),
                CcnicPart::Overlay(o) => o.nic.held(),
                CcnicPart::Wire(w) => w.nic.held(),
                CcnicPart::Bank(b) => b.held(),
            }
    }
}

impl Software for CcnicThread {
    fn step(&mut self, c: &mut Ctx) -> Step {
        c.program.ops.clear();
        if c.step.stopped {
            return Step::Idle;
        }
        let (step, stuck) = match &mut self.part {
            CcnicPart::Host(h) => (h.step(c), std::mem::take(&mut h.stuck)),
            CcnicPart::Nic(n) => (n.step(c), std::mem::take(&mut n.stuck)),
            CcnicPart::Server(s) => (s.step(c), std::mem::take(&mut s.stuck)),
            CcnicPart::Overlay(o) => (o.step(c), false),
            CcnicPart::Wire(w) => (w.step(c), std::mem::take(&mut w.nic.stuck)),
            CcnicPart::Bank(b) => (b.step(c), false),
        };
        match step {
            Step::Run if !stuck => self.idle.end(c.step.now),
            _ => self.idle.begin(c.step.now),
        }
        step
    }

    fn skip_polls(&mut self, polls: u64) {
        match &mut self.part {
            CcnicPart::Host(h) => h.common.skip_polls(polls),
            CcnicPart::Nic(n) => n.common.skip_polls(polls),
            CcnicPart::Server(s) => s.skip_polls(polls),
            CcnicPart::Overlay(o) => o.skip_polls(polls),
            CcnicPart::Wire(w) => w.nic.common.skip_polls(polls),
            CcnicPart::Bank(b) => b.skip_polls(polls),
        }
    }

    fn retired(&mut self, tag: u32, c: &mut Ctx) {
        match &mut self.part {
            CcnicPart::Host(h) => h.retired(tag, c),
            CcnicPart::Nic(n) => n.common.visible(c),
            CcnicPart::Server(s) => s.retired(tag, c),
            CcnicPart::Overlay(o) => o.retired(tag, c),
            CcnicPart::Wire(w) => w.retired(tag, c),
            CcnicPart::Bank(b) => b.retired(tag, c),
        }
    }

    fn due_packets(&self) -> Option<DuePackets> {
        self.packets_due()
    }

    fn idle(&self, _since: Time, now: Time) -> Option<Time> {
        Some(self.idle.total(now))
    }

    fn restart_meters(&mut self, now: Time) {
        self.idle.restart(now);
        match &mut self.part {
            CcnicPart::Host(h) => h.common.restart(),
            CcnicPart::Nic(n) => n.common.restart(),
            CcnicPart::Server(s) => s.commons_mut().for_each(CcnicThreadState::restart),
            CcnicPart::Wire(w) => w.nic.common.restart(),
            CcnicPart::Bank(b) => b.restart(),
            CcnicPart::Overlay(o) => {
                o.nic.common.restart();
                o.restart_meters(now);
            }
        }
    }
}
