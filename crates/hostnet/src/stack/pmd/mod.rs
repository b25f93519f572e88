//! A poll-mode driver and its application, run to completion on one core (DPDK).
//!
//! ```text
//!   poll: the next descriptor's line --nothing--> wait for that line, whole polls charged
//!     | packets
//!   rx_burst: descriptors, mbufs, fresh buffers into the ring, tail --> serve each --> tx_burst: sent buffers freed,
//!     ^                                                                 descriptors, tail
//!     +--------------------------------------------- ring full: try again, which costs a burst's fixed part ---+
//! ```
//!
//! In a pipeline of two cores ([`software_ring`]), the first core performs rx_burst and the second one the remaining
//! work.
//!
//! Packets can also originate in the driver: as many as possible (testpmd's txonly, which never receives), the packets
//! of a load generator, or the packets of a generator whose NIC is in loopback mode (`loopback`).

use super::branch_predictor::{self, BranchPredictor};
use super::demand::DuePackets;
use super::idle_time::IdleTime;
use super::mempool::{Mempool, PoolMemory};
use super::{Awaited, Ctx, Notice, Software, Step, Wakes};
use crate::app::{Content, Origin, ServeOutcome};
use crate::core::{CoreSpec, Op, Program};
use crate::device::nic::{Nic, RingLayout, RingsSpec};
use crate::device::RingSide;
use crate::kernel::{Int, LineAddr, PacketId, PortId, QueueId, Time};
use crate::machine::Machine;
use crate::memory::LINE;
use crate::placement::{Spent, SweepTx};
use std::collections::VecDeque;

mod effect;
mod forward;
mod loopback;
mod originate;
pub mod software_ring;
mod spec;
mod transmit;

pub(super) use effect::{answered, nic_on, retire, retire_functional, DriverEffect, QueueAt};
pub use software_ring::{PipelineSpec, SoftwareRing, SoftwareRings};
pub use spec::{FreeSent, PollModeQuirks, PollModeSpec, Recycling};

/// Bytes of the driver's own record of a descriptor, which names the buffer in the descriptor.
const NOTE: u64 = 8;

/// Lines of the driver's records of a ring with `slots` slots.
pub fn note_lines(slots: u32) -> u64 {
    (u64::from(slots) * NOTE).div_ceil(LINE)
}

/// First lines of the memory where a core's driver keeps its data.
#[derive(Clone, Copy, Debug)]
pub struct DriverMemory {
    /// Memory of the buffer pool.
    pub pool: PoolMemory,
    /// Driver's records of the receive ring.
    pub receive_notes: LineAddr,
    /// Driver's records of the transmit ring.
    pub transmit_notes: LineAddr,
    /// Memory to which packets are copied, with room for as many packets as there are receive descriptors.
    pub copies: LineAddr,
}

/// Choices of a driver for the treatment of its buffers.
#[derive(Clone, Copy, Debug)]
pub struct Buffers {
    /// Treatment of receive buffers whose packets the application has yet to process.
    pub recycling: Recycling,
    /// Treatment of receive buffers that software will not read again.
    pub spent: Spent,
    /// Agent that sweeps transmit buffers.
    pub sweep_tx: SweepTx,
}

/// Tasks of a driver: the treatment of its buffers, and the origin of the packets that it sends.
#[derive(Clone, Copy, Debug)]
pub struct Duties {
    /// Treatment of the buffers.
    pub buffers: Buffers,
    /// Origin of the packets that the driver sends.
    pub origin: Origin,
}

/// Segment that lies outside its mbuf, with the line that counts its users.
#[derive(Clone, Copy, Debug)]
struct External {
    users: Option<LineAddr>,
}

/// Content of a transmit descriptor: a buffer of which `lines` lines are sent, or a buffer whose metadata represents a
/// segment elsewhere.
#[derive(Clone, Copy, Debug)]
struct SentBuffer {
    buffer: u32,
    lines: u32,
    external: Option<External>,
}

/// Part of the driver's work that a core does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// All of the work: the core runs each packet to completion.
    Whole,
    /// Receives packets and hands them to another core.
    Receive,
    /// Takes packets from another core, serves them and sends the replies.
    Work,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum DriverState {
    /// The thread has to read the next receive descriptor.
    Poll,
    /// The thread has read the next receive descriptor.
    Inspect,
    /// The thread has to read the oldest transmit descriptor, because the transmit ring is full.
    Full,
    /// The thread has read the oldest transmit descriptor.
    Retry,
    /// The thread has to read the consumer index of the software ring, because the ring is full.
    Blocked,
    /// The thread has read the consumer index of the software ring.
    Room,
}

/// The driver's state on one core with a pair of rings.
#[derive(Clone)]
pub struct PollMode {
    costs: PollModeSpec,
    /// Port of the NIC that the driver has `queue` of.
    port: PortId,
    queue: QueueId,
    receive: RingLayout,
    transmit: RingLayout,
    memory: DriverMemory,
    pool: Mempool,
    state: DriverState,
    /// Branch predictor for the outcome of polls for packets; None where the core stops at each poll.
    predictor: Option<BranchPredictor>,
    /// Number of receive descriptors taken; `held` of these have a fresh buffer that the NIC does not know yet.
    taken: u64,
    held: u32,
    buffers: Buffers,
    origin: Origin,
    /// Demand of the generator, if the driver is a generator whose packets return.
    looped: Option<Box<loopback::LoopbackState>>,
    stage: Stage,
    /// Packets that have been received and are kept for later processing.
    stash: VecDeque<PacketId>,
    /// Number of packets copied.
    copied: u64,
    /// Lines of the memory for a copy.
    copy_lines: u64,
    /// Number of transmit descriptors written.
    put: u64,
    /// Contents of descriptors that have not been freed.
    in_ring: VecDeque<SentBuffer>,
    /// Packets, with their buffers, that wait for a transmit descriptor.
    backlog: VecDeque<(PacketId, u32)>,
    /// Buffers whose metadata represents second segments of packets in `backlog`, in the same order, with those
    /// segments.
    attached: VecDeque<(u32, External)>,
    /// Packets that are completed when the program of their burst retires.
    consumed: VecDeque<PacketId>,
    burst: Vec<PacketId>,
    /// Whether packets arrive in functional mode, without timing.
    at_once: bool,
    /// Time at which the present poll began.
    polled: Time,
    idle: IdleTime,
    /// Start of the work on the present burst, and its number of packets.
    since: Option<(Time, u32)>,
}

impl PollMode {
    /// The driver of `queue` on a `core`, which gives all usable receive descriptors to `nic` at the start.
    pub fn new(
        costs: PollModeSpec,
        rings: &RingsSpec,
        queue: QueueId,
        memory: DriverMemory,
        nic: &mut Nic,
        duties: Duties,
        core: &CoreSpec,
    ) -> PollMode {
        let (receive, transmit) = nic.layouts(queue);
        let mut pool = Mempool::new(memory.pool, costs.buffers(rings), costs.quirks.mempool_cache);
        let mut none = Program::default();
        let armed: Vec<u32> = if memory.pool.first.is_some() {
            pool.set_up(receive.usable()).collect()
        } else {
            let take = |_| pool.get(&mut none).expect("a pool holds more than its rings");
            (0..receive.usable()).map(take).collect()
        };
        armed.into_iter().for_each(|buffer| nic.arm(queue, buffer, pool.data(buffer)));
        nic.start_armed(queue);
        nic.registers(queue).set_mask(0);
        nic.registers(queue).bind_to_userspace().expect("the NIC can disable its interrupts");
        PollMode {
            burst: Vec::with_capacity(costs.burst.to_usize()),
            costs,
            port: nic.port().expect("a NIC with descriptor rings is behind a port"),
            queue,
            receive,
            transmit,
            memory,
            pool,
            state: DriverState::Poll,
            predictor: BranchPredictor::of(core),
            taken: 0,
            held: 0,
            buffers: duties.buffers,
            origin: duties.origin,
            looped: None,
            stage: Stage::Whole,
            stash: VecDeque::new(),
            copied: 0,
            copy_lines: rings.buffer_size.0 / LINE,
            put: 0,
            in_ring: VecDeque::with_capacity(transmit.usable().to_usize()),
            backlog: VecDeque::with_capacity(64),
            attached: VecDeque::new(),
            consumed: VecDeque::with_capacity(64),
            at_once: false,
            polled: Time::ZERO,
            idle: IdleTime::from_start(),
            since: None,
        }
    }

    /// Makes this core the first core of a pipeline; returns the driver of the second core.
    pub fn split_pipeline(&mut self) -> PollMode {
        let part = self.pool.part();
        self.stage = Stage::Receive;
        PollMode { stage: Stage::Work, pool: part, ..self.clone() }
    }

    /// Port of the NIC that the driver has a queue of.
    pub fn port(&self) -> PortId {
        self.port
    }

    fn at(&self) -> QueueAt {
        QueueAt { port: self.port, queue: self.queue }
    }

    fn note(&self, side: RingSide, i: u64) -> Option<LineAddr> {
        let (base, of) = match side {
            RingSide::Receive => (self.memory.receive_notes, self.receive.usable() + 1),
            RingSide::Transmit => (self.memory.transmit_notes, self.transmit.usable() + 1),
        };
        (i % (LINE / NOTE) == 0).then_some(base + i % of / (LINE / NOTE))
    }

    /// Reads `line`, whose content decides whether a waiting core continues.
    fn read(&mut self, line: LineAddr, state: DriverState, p: &mut Program) -> Step {
        branch_predictor::poll(line, false, None, p);
        self.state = state;
        Step::Run
    }

    /// Reads the line that shows whether packets have arrived.
    fn poll(&mut self, c: &mut Ctx) -> Step {
        let (line, there) = (self.awaited(c), self.waiting(c) > 0);
        if self.costs.quirks.poll_serialises && self.stage != Stage::Work {
            c.program.push(Op::Serialise);
        }
        branch_predictor::poll(line, there, self.predictor, c.program);
        self.state = DriverState::Inspect;
        Step::Run
    }

    /// Trains the branch predictor with the outcome of a poll.
    fn train_predictor(&mut self, c: &mut Ctx) {
        let found = self.waiting(c) > 0;
        if let Some(f) = &mut self.predictor {
            f.train(found);
        }
    }

    /// Number of packets that this core can see and has not taken.
    #[inline]
    fn waiting(&self, c: &mut Ctx) -> usize {
        match self.input(c) {
            Some(pipe) => pipe.waiting(),
            None => nic_on(c.machine.iio.as_deref_mut(), self.port).waiting(self.queue),
        }
    }

    /// Ring from which this core takes packets, if another core receives them.
    #[inline]
    fn input<'a>(&self, c: &'a Ctx) -> Option<&'a SoftwareRing> {
        if self.stage == Stage::Work {
            SoftwareRings::ring(c)
        } else {
            None
        }
    }

    /// The line that shows whether packets have arrived.
    fn awaited(&self, c: &Ctx) -> LineAddr {
        match self.input(c) {
            Some(pipe) => pipe.producer(),
            None => self.receive.line(self.taken),
        }
    }

    /// Takes a burst of the packets that have arrived.
    fn take(&mut self, c: &mut Ctx) {
        if self.stage == Stage::Whole {
            return self.receive(usize::MAX, c);
        }
        let pipe = SoftwareRings::ring_mut(c.roles, c.step.local).expect("a pipeline has a ring");
        if self.stage == Stage::Work {
            pipe.dequeue(self.costs.burst.to_usize(), &mut self.burst, c.program);
        } else {
            self.pool.take_over(&mut pipe.freed);
            let room = pipe.room();
            self.receive(room, c);
        }
    }

    /// Hands the burst to the second core.
    fn pass_burst(&mut self, c: &mut Ctx) {
        let pipe = SoftwareRings::ring_mut(c.roles, c.step.local).expect("a pipeline has a ring");
        let n = self.burst.len().to_u32();
        pipe.enqueue(&self.burst, c.program);
        if self.at_once {
            pipe.publish(n);
        } else {
            c.program.push(Op::Retire { tag: DriverEffect::Passed(n).tag(), stores: true });
        }
    }

    /// Performs an `rx_burst`: takes up to a burst of packets, but at most `most`, and puts fresh buffers into their
    /// descriptors.
    fn receive(&mut self, most: usize, c: &mut Ctx) {
        let p = &mut *c.program;
        let nic = nic_on(c.machine.iio.as_deref_mut(), self.port);
        p.compute(self.costs.burst_instructions);
        self.burst.clear();
        let most = most.min(self.costs.burst.to_usize());
        while self.burst.len() < most && nic.waiting(self.queue) > 0 {
            let Some(fresh) = self.pool.get(p) else { break };
            let id = nic.take(self.queue).expect("it waits");
            let (buffer, data) = (nic.packet(id).buffer, nic.packet(id).line);
            let line = self.receive.line(self.taken);
            if self.burst.is_empty() || self.receive.begins_line(self.taken) {
                p.push(Op::Load { line, lines: 1 });
            }
            if let Some(note) = self.note(RingSide::Receive, self.taken) {
                p.push(Op::Load { line: note, lines: 1 });
                p.push(Op::Store { line: note, lines: 1 });
            }
            let metadata = self.pool.metadata(buffer);
            if self.costs.quirks.prefetch {
                p.push(Op::Prefetch { line: metadata, lines: 1 });
                p.push(Op::Prefetch { line: data, lines: 1 });
            }
            p.push(Op::Load { line: self.pool.metadata(fresh), lines: 1 });
            p.compute(self.costs.receive_instructions);
            p.take_branches(self.costs.quirks.receive_branches);
            p.push(Op::Store { line: metadata, lines: self.costs.quirks.mbuf_lines });
            self.taken += 1;
            if self.receive.begins_line(self.taken) {
                p.push(Op::Store { line, lines: 1 });
            }
            nic.arm(self.queue, fresh, self.pool.data(fresh));
            self.burst.push(id);
        }
        if !self.receive.begins_line(self.taken) {
            p.push(Op::Store { line: self.receive.line(self.taken), lines: 1 });
        }
        self.held += self.burst.len().to_u32();
        if self.held >= self.costs.quirks.rearm || self.at_once {
            p.push(Op::Mmio { tag: DriverEffect::Armed(self.held).tag() });
            self.held = 0;
        }
    }

    /// Moves the burst to the packets that are kept. Returns true when the driver should receive more packets first;
    /// otherwise the oldest kept packets become the burst.
    fn keep(&mut self, c: &mut Ctx) -> bool {
        self.stash.extend(self.burst.drain(..));
        let more = self.waiting(c) > 0;
        if more
            && !self.at_once
            && self.stash.len() + (self.costs.burst.to_usize()) <= self.costs.quirks.mempool_cache.to_usize()
        {
            return true;
        }
        let n = self.stash.len().min(self.costs.burst.to_usize());
        self.burst.extend(self.stash.drain(..n));
        false
    }

    /// Whether no packet waits to be received or served.
    fn has_nothing(&self, c: &mut Ctx) -> bool {
        self.stash.is_empty() && self.waiting(c) == 0
    }

    /// Lets the application serve each packet of the burst.
    fn serve(&mut self, c: &mut Ctx) {
        let (n, before) = (self.burst.len(), self.consumed.len());
        self.begin_burst(c);
        let app = c.app.as_mut().expect("packets come for applications");
        for i in 0..n {
            let id = self.burst[i];
            let nic = nic_on(c.machine.iio.as_deref_mut(), self.port);
            let followed = nic.follows(id);
            if followed {
                c.program.push(Op::Note { port: self.port, packet: id, answered: false });
            }
            let packet = nic.packet(id);
            let p = *packet;
            let content = Content::of(&p);
            let spare = self.pool.get_bulk(i, c.program);
            let tx = self.pool.data(spare.unwrap_or(p.buffer));
            let (spent, lines) = (self.buffers.spent, u32::from(p.lines));
            let copies = self.buffers.recycling == Recycling::Copy;
            let mut at = p.line;
            if copies {
                at = self.memory.copies + self.copied % (self.receive.usable() + 1) * self.copy_lines;
                self.copied += 1;
                c.program.push(Op::Copy { from: p.line, to: at, lines, dependent: false, behind: false });
                spent.relinquish(c.program, p.line, lines);
            }
            let spent = if copies { Spent::Keep } else { spent };
            let (answer, lines) = app.serve(c.step.local, &content, at, tx, c.program);
            if let Some(s) = &mut c.traffic.spikes {
                let stall = s.draw();
                if stall > Time::ZERO {
                    c.program.push(Op::Stall(stall.0));
                }
            }
            answered(packet, lines);
            match (answer, spare) {
                (ServeOutcome::Reply | ServeOutcome::Gather { .. }, Some(fresh)) => {
                    packet.tx_line = tx;
                    c.program.compute(self.costs.quirks.allocate_instructions);
                    if let ServeOutcome::Gather { object, bytes, users } = answer {
                        (packet.object, packet.object_bytes) = (object, bytes);
                        c.program.compute(self.costs.quirks.allocate_instructions);
                        let second = self.pool.get(c.program).expect("a pool holds more than rings and bursts");
                        c.program
                            .push(Op::Store { line: self.pool.metadata(second), lines: self.costs.quirks.mbuf_lines });
                        self.attached.push_back((second, External { users }));
                    }
                    self.backlog.push_back((id, fresh));
                    spent.relinquish(c.program, p.line, p.lines.into());
                    self.free(p.buffer, c.program);
                }
                (ServeOutcome::Forward | ServeOutcome::Reply | ServeOutcome::Gather { .. }, _) => {
                    packet.tx_line = at;
                    self.backlog.push_back((id, p.buffer));
                    self.return_buffer(spare, c.program);
                }
                (ServeOutcome::Consumed, _) => {
                    self.return_buffer(spare, c.program);
                    self.consumed.push_back(id);
                    spent.relinquish(c.program, p.line, p.lines.into());
                    self.free(p.buffer, c.program);
                }
            }
            if followed {
                c.program.push(Op::Note { port: self.port, packet: id, answered: true });
            }
        }
        app.end_burst(c.step.local, n.to_u32(), c.program);
        let consumed = (self.consumed.len() - before).to_u32();
        if consumed > 0 {
            c.program.push(Op::Retire { tag: DriverEffect::Done(consumed).tag(), stores: true });
        }
    }

    /// Returns an unused buffer to the pool.
    fn return_buffer(&mut self, spare: Option<u32>, p: &mut Program) {
        if let Some(b) = spare {
            self.pool.put(b, p);
        }
    }

    fn free(&mut self, buffer: u32, p: &mut Program) {
        if self.costs.quirks.free_serialises {
            p.push(Op::Serialise);
        }
        p.compute(self.costs.free_instructions);
        self.pool.put(buffer, p);
    }
}

impl Software for PollMode {
    fn step(&mut self, c: &mut Ctx) -> Step {
        c.program.ops.clear();
        self.idle.end(c.step.now);
        if let Some((since, n)) = self.since.take() {
            c.tally.served(c.step.now - since);
            (1..n).for_each(|_| c.tally.served(Time::ZERO));
        }
        if self.state == DriverState::Inspect {
            self.train_predictor(c);
        }
        let due = self.state == DriverState::Inspect && self.is_due(c);
        match self.state {
            DriverState::Poll if c.step.stopped => Step::Idle,
            DriverState::Poll if self.origin == Origin::Always => {
                let n = self.originate(c);
                self.transmit(c);
                self.since = Some((c.step.now, n.max(1)));
                Step::Run
            }
            DriverState::Poll => {
                self.polled = c.step.now;
                self.poll(c)
            }
            DriverState::Inspect if self.has_nothing(c) && !due && self.backlog.is_empty() => {
                self.state = DriverState::Poll;
                self.idle.begin(self.polled);
                let (on, instructions) = (Awaited::Line(self.awaited(c)), self.costs.poll_instructions);
                match self.looped.as_ref().and_then(|l| l.next()) {
                    Some(until) => Step::WaitUntil { on, instructions, until },
                    None => Step::Wait { on, instructions },
                }
            }
            DriverState::Inspect if self.stage == Stage::Receive => {
                let pipe = SoftwareRings::ring(c).expect("a pipeline has a ring");
                if pipe.room() == 0 {
                    return self.read(pipe.consumer(), DriverState::Room, c.program);
                }
                self.take(c);
                if !self.burst.is_empty() {
                    self.pass_burst(c);
                }
                c.tally.taken += self.burst.len().to_u64();
                self.state = DriverState::Poll;
                Step::Run
            }
            DriverState::Blocked => {
                self.read(SoftwareRings::ring(c).map_or(LineAddr(0), |p| p.consumer()), DriverState::Room, c.program)
            }
            DriverState::Room => {
                let pipe = SoftwareRings::ring(c).expect("a pipeline has a ring");
                if pipe.room() == 0 {
                    self.state = DriverState::Blocked;
                    return Step::Wait {
                        on: Awaited::Line(pipe.consumer()),
                        instructions: self.costs.poll_instructions,
                    };
                }
                self.poll(c)
            }
            DriverState::Inspect => {
                let came = !self.has_nothing(c);
                self.burst.clear();
                if came {
                    self.take(c);
                }
                if came && self.buffers.recycling == Recycling::Reallocate && self.keep(c) {
                    return Step::Run;
                }
                if came && self.looped.is_some() {
                    self.read_back(c);
                } else if came {
                    self.serve(c);
                }
                self.state = DriverState::Poll;
                let begun = if self.is_due(c) { self.originate(c) } else { 0 };
                let fills = |n: u32| self.looped.is_some() || self.backlog.len() >= n.to_usize();
                let gathered = self.costs.quirks.transmit_burst.is_none_or(fills);
                if !self.backlog.is_empty() && (gathered || !came) {
                    self.transmit(c);
                }
                let n = self.burst.len().to_u32();
                if self.stage == Stage::Whole {
                    c.tally.taken += u64::from(n);
                } else if let Some(pipe) = SoftwareRings::ring_mut(c.roles, c.step.local) {
                    self.pool.hand_over(&mut pipe.freed);
                }
                let n = n + begun;
                self.since = (n > 0).then_some((self.polled, n));
                Step::Run
            }
            DriverState::Full => {
                let clean = self.put - self.in_ring.len().to_u64();
                self.read(self.transmit.line(clean), DriverState::Retry, c.program)
            }
            DriverState::Retry => {
                let sent = nic_on(c.machine.iio.as_deref_mut(), self.port).sent_descriptors(self.queue);
                let clean = self.put - self.in_ring.len().to_u64();
                if sent == clean {
                    self.state = DriverState::Full;
                    let line = self.transmit.line(clean);
                    return Step::Wait { on: Awaited::Line(line), instructions: self.costs.burst_instructions };
                }
                self.transmit(c);
                if let Some(pipe) = SoftwareRings::ring_mut(c.roles, c.step.local) {
                    self.pool.hand_over(&mut pipe.freed);
                }
                Step::Run
            }
        }
    }

    fn notify(&mut self, what: Notice, _: Time) -> Wakes {
        let stalled = matches!(self.state, DriverState::Full | DriverState::Blocked);
        if let (Notice::Lost, Some(l)) = (what, &mut self.looped) {
            l.lost();
        }
        match what {
            Notice::Functional { .. } => self.at_once = true,
            Notice::Queue | Notice::Begin | Notice::Lost if stalled => return Wakes::Not,
            Notice::Transmitted if self.state != DriverState::Full => return Wakes::Not,
            _ => {}
        }
        Wakes::Now
    }

    fn retired(&mut self, tag: u32, c: &mut Ctx) {
        if let DriverEffect::Passed(n) = DriverEffect::of(tag) {
            let pipe = SoftwareRings::ring_mut(c.roles, c.step.local).expect("a pipeline has a ring");
            return pipe.publish(n);
        }
        retire(tag, self.at(), &mut self.consumed, c);
    }

    fn retired_functional(&mut self, tag: u32, m: &mut Machine) {
        self.at_once &= !matches!(DriverEffect::of(tag), DriverEffect::Armed(_));
        retire_functional(tag, self.at(), &mut self.consumed, m);
    }

    fn restart_meters(&mut self, now: Time) {
        self.idle.restart(now);
        self.polled = self.polled.max(now);
        self.since = self.since.map(|(s, n)| (s.max(now), n));
    }

    fn idle(&self, _since: Time, now: Time) -> Option<Time> {
        Some(self.idle.total(now))
    }

    fn due_packets(&self) -> Option<DuePackets> {
        self.looped.as_ref()?.due_packets()
    }
}
