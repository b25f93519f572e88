//! Central dispatch: one core takes all packets from the NIC and hands each to a core that is free, so that all cores
//! serve one queue (Shinjuku, NSDI 2019; RPCValet, ASPLOS 2019 compares both orders).
//!
//! ```text
//!   NIC -> queue of the first core -> dispatcher -- slot of a worker --> worker 1 -> reply
//!                                               \-- slot of a worker --> worker 2 -> reply
//! ```
//!
//! A slot is a line of memory between the dispatcher and one worker: the dispatcher writes a pointer into it, the worker
//! reads it and clears it when it has served the packet. The lines move between the cores' caches with each packet.

use super::extension::{ExtensionThread, Stack, StackSite};
use super::qp::QueuePair;
use super::{Awaited, Bus, Ctx, Notice, Role, RoleView, Software, Step, Wakes};
use crate::app::ServeOutcome;
use crate::core::Op;
use crate::kernel::{Int, LineAddr, PacketId, QueueId, ThreadId, Time};
use crate::machine::Machine;
use crate::meter::table::table;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{json, Value};
use std::collections::VecDeque;

/// Central dispatch: the first core of the tenant takes packets and hands each to one of the other cores that is free.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DispatchSpec {
    /// Instructions of the dispatcher per packet: choice of a worker and write of its slot. The default, 100, is assumed.
    #[serde(default = "instructions")]
    pub instructions: u32,
    /// Number of packets that a worker holds at most, the one that it serves included. 1, the default, is a single queue;
    /// more hide the time that a packet takes to its worker (JBSQ, nanoPU, OSDI 2021).
    #[serde(default = "depth")]
    pub depth: u32,
}
fn instructions() -> u32 {
    100
}
fn depth() -> u32 {
    1
}

/// Side effect of a pair's programs beside those of a queue pair, whose kinds are 0 to 2 of a tag's two lowest bits.
const HANDED: u32 = 3;

/// State that the dispatcher and the workers share.
#[derive(Clone)]
pub struct Dispatch {
    depth: usize,
    workers: Vec<Worker>,
    woken: VecDeque<ThreadId>,
    dispatcher: ThreadId,
    /// Whether the dispatcher waits for a worker that is free.
    waits: bool,
    /// Whether a worker waits for a transmit buffer. The NIC notifies the dispatcher, whose queue it is.
    full: bool,
}

/// A worker as the dispatcher sees it.
#[derive(Clone)]
struct Worker {
    core: ThreadId,
    slot: LineAddr,
    /// Packets that the worker can see.
    seen: VecDeque<PacketId>,
    /// Number of packets handed to the worker that it has not ended.
    held: usize,
    /// Number of packets that the worker has served in the window.
    served: u64,
}

impl Role for Dispatch {
    fn restart_meters(&mut self, _: &mut Bus) {
        self.workers.iter_mut().for_each(|w| w.served = 0);
    }

    fn take_wake_up(&mut self) -> Option<ThreadId> {
        self.woken.pop_front()
    }

    fn check_conservation(&self, _: &RoleView) -> Result<(), String> {
        match self.workers.iter().find(|w| w.held > self.depth || w.seen.len() > w.held) {
            Some(w) => Err(format!("core {} holds {} packets, of which it sees {}", w.core, w.held, w.seen.len())),
            None => Ok(()),
        }
    }

    fn tables(&self, view: &RoleView) -> Vec<(&'static str, Value)> {
        let us = view.span().to_f64() / 1e6;
        let row = |w: &Worker| vec![json!(w.core.index()), json!(w.served), json!(w.served.to_f64() / us)];
        let columns = [("core", ""), ("served", "packets"), ("rate_mrps", "Mrps")];
        vec![("dispatch", table(&columns, self.workers.iter().map(row).collect()))]
    }
}

impl Stack for Dispatch {
    type Spec = DispatchSpec;

    fn receivers(_: &DispatchSpec, _: u32) -> u32 {
        1
    }

    fn check(s: &DispatchSpec, cores: u32) -> Result<(), String> {
        if cores < 2 {
            return Err(format!("cores = {cores} leaves no worker; a dispatcher needs at least 2"));
        }
        if s.depth == 0 {
            return Err("depth = 0 lets no worker hold a packet; give at least 1".into());
        }
        Ok(())
    }

    fn build(s: &DispatchSpec, site: &mut StackSite) -> Result<(Dispatch, Vec<ExtensionThread>), String> {
        let cores = site.cores.to_vec();
        let worker =
            |core: &ThreadId| Worker { core: *core, slot: site.shared(1), seen: VecDeque::new(), held: 0, served: 0 };
        let workers: Vec<Worker> = cores[1..].iter().map(worker).collect();
        let pair = || QueuePair::new(site.queue_pair.clone(), site.spent, site.core);
        let queue = site.queue(0);
        let dispatcher = Dispatcher { queue, pair: pair(), instructions: s.instructions, handing: VecDeque::new() };
        let mut threads = vec![ExtensionThread::new(dispatcher)];
        for index in 0..workers.len() {
            threads.push(ExtensionThread::new(DispatchWorker { index, queue, pair: pair(), serving: None }));
        }
        let (depth, woken) = (s.depth.to_usize(), VecDeque::new());
        Ok((Dispatch { depth, workers, woken, dispatcher: cores[0], waits: false, full: false }, threads))
    }
}

/// Thread of the core that takes packets.
#[derive(Clone)]
struct Dispatcher {
    queue: QueueId,
    pair: QueuePair,
    instructions: u32,
    /// Packets whose slots are being written, each with its worker.
    handing: VecDeque<(PacketId, usize)>,
}

impl Software for Dispatcher {
    fn step(&mut self, c: &mut Ctx) -> Step {
        if self.pair.is_functional() {
            return self.pair.step(c);
        }
        c.program.ops.clear();
        if c.step.stopped {
            return Step::Idle;
        }
        self.pair.relinquish_sent(self.queue, c);
        while c.machine.nic.take_completion(self.queue) {
            c.program.compute(self.pair.poll_instructions());
            c.tally.taken += 1; // a completion is an entry of the queue
        }
        let wait = Step::Wait { on: Awaited::Queue, instructions: self.pair.poll_instructions() };
        let Some(d) = c.roles.get_mut::<Dispatch>() else { return wait };
        if std::mem::take(&mut d.full) {
            d.woken.extend(d.workers.iter().filter(|w| !w.seen.is_empty()).map(|w| w.core));
        }
        // The worker with the fewest packets, the first of several.
        let free = (0..d.workers.len()).min_by_key(|w| d.workers[*w].held).filter(|w| d.workers[*w].held < d.depth);
        d.waits = free.is_none();
        let taken = free.and_then(|w| Some((w, c.machine.nic.take(self.queue)?)));
        let Some((w, id)) = taken else {
            return if c.program.ops.is_empty() { wait } else { Step::Run };
        };
        c.tally.taken += 1;
        d.workers[w].held += 1;
        let slot = d.workers[w].slot;
        c.program.compute(self.instructions);
        c.program.push(Op::Store { line: slot, lines: 1 });
        c.program.push(Op::Retire { tag: id.index().to_u32() << 2 | HANDED, stores: true });
        self.handing.push_back((id, w));
        Step::Run
    }

    fn notify(&mut self, what: Notice, now: Time) -> Wakes {
        self.pair.notify(what, now)
    }

    fn retired(&mut self, tag: u32, c: &mut Ctx) {
        if tag & 3 != HANDED {
            return self.pair.retired(tag, c);
        }
        if let (Some((id, w)), Some(d)) = (self.handing.pop_front(), c.roles.get_mut::<Dispatch>()) {
            d.workers[w].seen.push_back(id);
            d.woken.push_back(d.workers[w].core);
        }
    }

    fn retired_functional(&mut self, tag: u32, m: &mut Machine) {
        self.pair.retired_functional(tag, m);
    }

    fn restart_meters(&mut self, now: Time) {
        self.pair.restart_meters(now);
    }
}

/// Thread of a core that serves packets.
#[derive(Clone)]
struct DispatchWorker {
    index: usize,
    /// Queue of the dispatcher, through which replies leave.
    queue: QueueId,
    pair: QueuePair,
    /// Start of the service of the present packet.
    serving: Option<Time>,
}

impl Software for DispatchWorker {
    fn step(&mut self, c: &mut Ctx) -> Step {
        c.program.ops.clear();
        let ended = self.serving.take();
        if let Some(since) = ended {
            c.tally.served(c.step.now - since);
        }
        let wait = Step::Wait { on: Awaited::Queue, instructions: self.pair.poll_instructions() };
        let Some(d) = c.roles.get_mut::<Dispatch>() else { return wait };
        if ended.is_some() {
            let worker = &mut d.workers[self.index];
            worker.held -= 1;
            worker.served += 1;
            if std::mem::take(&mut d.waits) {
                d.woken.push_back(d.dispatcher);
            }
        }
        if c.step.stopped {
            return Step::Idle;
        }
        let worker = &mut d.workers[self.index];
        let slot = worker.slot;
        if !c.machine.nic.may_reply(self.queue) {
            d.full = true;
            return wait;
        }
        let Some(id) = worker.seen.pop_front() else { return wait };
        c.program.push(Op::Load { line: slot, lines: 1 });
        c.program.push(Op::Store { line: slot, lines: 1 });
        let tx = c.machine.nic.next_tx(self.queue);
        if self.pair.serve(id, tx, c) == ServeOutcome::Reply {
            c.machine.nic.reserve_tx(self.queue, c.step.now);
        }
        self.serving = Some(c.step.now);
        Step::Run
    }

    fn retired(&mut self, tag: u32, c: &mut Ctx) {
        self.pair.retired(tag, c);
    }

    fn retired_functional(&mut self, tag: u32, m: &mut Machine) {
        self.pair.retired_functional(tag, m);
    }
}
