//! Queue pairs: a busy-polled completion queue, a work queue, and buffers that return to their ring (Sweeper, section
//! III).

use super::{Awaited, Ctx, Notice, Software, Step, Tally, Wakes};
use crate::app::{Content, ServeOutcome};
use crate::core::{CoreSpec, Op, Program};
use crate::device::nic::Nic;
use crate::device::{self, NicAt};
use crate::kernel::{with_defaults, Int, LineAddr, PacketId, Post, QueueId, ThreadId, Time};
use crate::machine::Machine;
use crate::meter::life::Milestone;
use crate::placement::{sweeper, Spent};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Costs of the queue-pair library per packet, and its batching.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QpSpec {
    /// Instructions to take a packet from the completion queue.
    pub poll_instructions: u32,
    /// Instructions to write a work queue entry.
    pub post_instructions: u32,
    /// Instructions to return a receive buffer.
    pub free_instructions: u32,
    /// Maximum number of entries that software takes from the completion queue before it serves the first packet of the
    /// batch. The default is 1.
    #[serde(default = "one")]
    pub batch: u32,
    /// Habits of the library, which a platform sets; scenarios leave them alone.
    #[serde(default)]
    pub quirks: QpQuirks,
}

/// Habits of libraries of queue pairs that simulators differ in.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QpQuirks {
    /// Instructions to poll an empty completion queue. When absent, the value of `poll_instructions`.
    #[serde(default)]
    pub empty_poll_instructions: Option<u32>,
    /// Entries that `batch` counts: "entries" (all entries, the default) or "packets" (only packets).
    #[serde(default)]
    pub batch_of: BatchOf,
    /// Number of polls without a packet after which software serves an incomplete batch. With 0, the default, software
    /// serves the batch as soon as the queue is empty.
    #[serde(default)]
    pub batch_polls: u32,
    /// Whether a reply that has been sent also puts an entry into the completion queue, behind the packets that wait
    /// there. Such entries count towards `traffic.depth` of "keep_depth" arrivals, and each takes `poll_instructions`.
    /// The default is false.
    #[serde(default)]
    pub send_completions: bool,
}

impl Default for QpQuirks {
    fn default() -> QpQuirks {
        with_defaults()
    }
}
fn one() -> u32 {
    1
}

impl QpSpec {
    fn empty_poll(&self) -> u32 {
        self.quirks.empty_poll_instructions.unwrap_or(self.poll_instructions)
    }
}

/// Entries that a batch of a queue pair counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BatchOf {
    /// All entries: packets and completions of sends.
    #[default]
    Entries,
    /// Only packets; software also takes the completions that lie between packets.
    Packets,
}

/// Side effects that a program's `Op::Retire` and `Op::Mmio` carry, with the packet concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QpEffect {
    /// The reply is posted to the NIC.
    Post,
    /// The receive buffer returns to the ring.
    FreeRx,
    /// The request is complete, and no reply is sent.
    Done,
}

impl QpEffect {
    /// The tag of this effect on `packet`.
    pub fn tag(self, packet: PacketId) -> u32 {
        packet.index().to_u32() << 2 | self as u32
    }
    /// The effect, and the packet, that `tag` encodes.
    pub fn of(tag: u32) -> (QpEffect, PacketId) {
        ([QpEffect::Post, QpEffect::FreeRx, QpEffect::Done][(tag & 3).to_usize()], PacketId::new((tag >> 2).to_usize()))
    }
}

/// A busy-polling core that serves the packets of one queue.
#[derive(Clone)]
pub struct QueuePair {
    costs: QpSpec,
    /// Treatment of spent receive buffers.
    spent: Spent,
    /// Packets taken and not served yet.
    batch: VecDeque<PacketId>,
    /// Whether software takes more packets before it serves the first packet of the batch; `room` is their number, and
    /// `gathered` the time at which the last one was taken.
    gathering: bool,
    room: u32,
    gathered: Time,
    /// Time that an incomplete batch waits for its next packet.
    patience: Time,
    /// Start of the service of the present packet.
    since: Option<Time>,
    /// Packet that arrived in functional mode, and the line to which its reply goes.
    functional: Option<(PacketId, LineAddr)>,
}

impl QueuePair {
    /// The queue pair of one core; polls take as long as `core` takes for their instructions. `spent` determines the
    /// treatment of receive buffers that software will not read again.
    pub fn new(costs: QpSpec, spent: Spent, core: &CoreSpec) -> QueuePair {
        let polls = f64::from(costs.quirks.batch_polls) * f64::from(costs.empty_poll());
        let per_ns = core.compute_ipc * core.clock.0.to_f64() / 1e9;
        QueuePair {
            spent,
            batch: VecDeque::new(),
            gathering: true,
            room: costs.batch,
            gathered: Time::ZERO,
            patience: Time::from_ns_f64(polls / per_ns),
            costs,
            since: None,
            functional: None,
        }
    }

    /// Returns the packet to serve now; takes as many entries from the queue at a time as a batch has.
    fn next(&mut self, queue: QueueId, c: &mut Ctx) -> Option<PacketId> {
        while self.gathering {
            self.gather(queue, c);
            if self.costs.quirks.batch_of == BatchOf::Packets && !c.program.ops.is_empty() {
                return None; // a completion: the core takes the next entry when this poll is over
            }
            if self.batch.is_empty() && self.room > 0 {
                self.room = self.costs.batch;
                return None;
            }
            if self.room > 0 && c.step.now < self.gathered + self.patience {
                return None;
            }
            self.gathering = self.batch.is_empty();
            self.room = self.costs.batch;
        }
        if !c.machine.nic.may_reply(queue) {
            return None;
        }
        let id = self.batch.pop_front();
        self.gathering = self.batch.is_empty();
        id
    }

    /// Takes entries from the queue until the batch is complete or the queue is empty; where only packets are counted,
    /// until after a completion.
    fn gather(&mut self, queue: QueueId, c: &mut Ctx) {
        let of_packets = self.costs.quirks.batch_of == BatchOf::Packets;
        while self.room > 0 {
            let completion = c.machine.nic.take_completion(queue);
            if completion {
                c.program.compute(self.costs.poll_instructions);
            } else if let Some(id) = c.machine.nic.take(queue) {
                self.batch.push_back(id);
                self.gathered = c.step.now;
            } else {
                break;
            }
            self.room -= u32::from(!(completion && of_packets));
            c.tally.taken += 1;
            if of_packets && !c.program.ops.is_empty() {
                break;
            }
        }
    }

    /// Polls until an entry arrives, or an incomplete batch has waited long enough.
    fn wait(&self) -> Step {
        let (on, instructions) = (Awaited::Queue, self.costs.empty_poll());
        if self.gathering && !self.batch.is_empty() {
            return Step::WaitUntil { on, instructions, until: self.gathered + self.patience };
        }
        Step::Wait { on, instructions }
    }

    /// Whether a packet has arrived in functional mode.
    pub fn is_functional(&self) -> bool {
        self.functional.is_some()
    }

    /// Instructions of a poll that finds nothing.
    pub fn poll_instructions(&self) -> u32 {
        self.costs.empty_poll()
    }

    /// Appends the operations that relinquish and free the buffers of `queue` that the NIC has sent.
    pub fn relinquish_sent(&self, queue: QueueId, c: &mut Ctx) {
        while let Some((line, lines, _)) = c.machine.nic.hint(queue) {
            sweeper::relinquish(c.program, line, lines.into());
        }
        while let Some(id) = c.machine.nic.reclaim(queue) {
            let p = *c.machine.nic.packet(id);
            self.free(c.program, id, (p.line, p.lines.into()));
        }
    }

    /// Appends the operations that serve packet `id`, whose reply goes to line `tx`.
    ///
    /// # Panics
    /// When the tenant has no application.
    pub fn serve(&mut self, id: PacketId, tx: LineAddr, c: &mut Ctx) -> ServeOutcome {
        let queue = queue_of(c);
        c.machine.nic.passes(id, Milestone::Served);
        let p = *c.machine.nic.packet(id);
        let content = Content::of(&p);
        c.program.compute(self.costs.poll_instructions);
        let app = c.app.as_mut().expect("packets come for applications");
        let (answer, tx_lines) = app.serve(c.step.local, &content, p.line, tx, c.program);
        if let Some(key) = c.machine.nic.next_key(queue) {
            app.prefetch_on_host(c.step.local, key);
        }
        if let Some(s) = &mut c.traffic.spikes {
            let stall = s.draw();
            if stall > Time::ZERO {
                c.program.push(Op::Stall(stall.0));
            }
        }
        let packet = c.machine.nic.packet(id);
        packet.zero_copy = answer == ServeOutcome::Forward;
        packet.tx_line = if packet.zero_copy { p.line } else { tx };
        packet.tx_lines = tx_lines;
        self.end(c.program, id, (p.line, p.lines.into()), answer);
        answer
    }

    /// Relinquishes the receive buffer if the policy requires it, posts the reply and returns the buffer, in that
    /// order. `rx` is the received packet's first line and its number of lines.
    fn end(&self, program: &mut Program, packet: PacketId, rx: (LineAddr, u32), answer: ServeOutcome) {
        if answer != ServeOutcome::Consumed {
            program.compute(self.costs.post_instructions);
            program.push(Op::Mmio { tag: QpEffect::Post.tag(packet) });
        }
        if answer == ServeOutcome::Forward {
            return; // the buffer becomes free when the NIC has sent it
        }
        self.free(program, packet, rx);
        if answer == ServeOutcome::Consumed {
            program.push(Op::Retire { tag: QpEffect::Done.tag(packet), stores: true });
        }
    }
}

impl QueuePair {
    /// Returns to the ring a receive buffer that software will not read again.
    fn free(&self, program: &mut Program, packet: PacketId, rx: (LineAddr, u32)) {
        self.spent.relinquish(program, rx.0, rx.1);
        program.compute(self.costs.free_instructions);
        program.push(Op::Retire { tag: QpEffect::FreeRx.tag(packet), stores: false });
    }
}

/// The queue of the thread; the NIC on the chip has one queue for each thread.
fn queue_of(c: &Ctx) -> QueueId {
    QueueId(c.step.thread.0)
}

impl Software for QueuePair {
    fn step(&mut self, c: &mut Ctx) -> Step {
        if let Some(since) = self.since.take() {
            c.tally.served(c.step.now - since);
        }
        c.program.ops.clear();
        if let Some((id, tx)) = self.functional.take() {
            self.serve(id, tx, c);
            return Step::Run;
        }
        if c.step.stopped {
            return Step::Idle;
        }
        let queue = queue_of(c);
        self.relinquish_sent(queue, c);
        let Some(id) = self.next(queue, c) else {
            return if c.program.ops.is_empty() { self.wait() } else { Step::Run };
        };
        let tx = c.machine.nic.next_tx(queue);
        if self.serve(id, tx, c) == ServeOutcome::Reply {
            c.machine.nic.reserve_tx(queue, c.step.now);
        }
        self.since = Some(c.step.now);
        Step::Run
    }

    fn notify(&mut self, what: Notice, _: Time) -> Wakes {
        if let Notice::Functional { packet, tx } = what {
            self.functional = Some((packet, tx));
        }
        Wakes::Now
    }

    fn retired(&mut self, tag: u32, c: &mut Ctx) {
        match QpEffect::of(tag) {
            (QpEffect::Post, id) => c.machine.nic.post(c.machine.cal, id, c.step.now),
            // The buffer is freed behind the sweeps, which take the same path.
            (QpEffect::FreeRx, id) => {
                c.machine.cal.post(c.step.arrival_at_home, device::DeviceEvent::Freed(NicAt::Chip, id))
            }
            (QpEffect::Done, id) => {
                ended(c.machine.nic, id, c.tally, c.step.now);
                c.machine.nic.end_use(id);
            }
        }
    }

    fn retired_functional(&mut self, tag: u32, m: &mut Machine) {
        match QpEffect::of(tag) {
            (QpEffect::Post, id) => {
                m.transmit_functional(id);
                let p = *m.nic.packet(id);
                if let (true, Spent::Invalidate { op, .. }) = (p.zero_copy, self.spent) {
                    m.maintain_functional(m.core_of(ThreadId(p.queue.0)), p.line, p.lines.into(), op);
                }
            }
            (QpEffect::FreeRx, id) => {
                let p = *m.nic.packet(id);
                m.mem.consumed(p.line, p.lines.into());
            }
            (QpEffect::Done, _) => {}
        }
    }

    fn restart_meters(&mut self, now: Time) {
        self.since = self.since.map(|s| s.max(now));
    }
}

/// Completes packet `id`, which was consumed without a reply, or whose reply has been sent.
pub fn ended(nic: &mut Nic, id: PacketId, tally: &mut Tally, now: Time) {
    nic.life_ends(id, now);
    let p = nic.packet(id);
    p.done = true;
    tally.completed(now - p.arrived, p.wire_bytes);
    if let Some(b) = &mut tally.bursts {
        b.packet(p.arrived, p.began, now);
    }
    if let Some(lines) = &mut tally.batch {
        lines.push((p.line, p.lines));
    }
}
