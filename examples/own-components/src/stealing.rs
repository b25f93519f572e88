//! A stack: each core serves the packets of its own queue, and a core without packets takes those of another core (work
//! stealing; ZygOS, SOSP 2017).

use hostnet::app::ServeOutcome;
use hostnet::core::Op;
use hostnet::kernel::{LineAddr, PacketId, QueueId, ThreadId, Time};
use hostnet::machine::Machine;
use hostnet::meter::table::table;
use hostnet::stack::extension::{ExtensionThread, Stack, StackSite};
use hostnet::stack::qp::QueuePair;
use hostnet::stack::{Awaited, Bus, Ctx, Notice, Role, RoleView, Software, Step, Wakes};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// Parameters of the stack.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StealingSpec {
    /// Instructions of a look at the queue of another core.
    pub look: u32,
}

/// What the cores share: their queues, each with the line of its lock.
#[derive(Clone)]
pub struct Stealing {
    queues: Vec<(QueueId, LineAddr)>,
    cores: Vec<ThreadId>,
    idle: Vec<bool>,
    woken: Option<ThreadId>,
    own: u64,
    stolen: u64,
}

impl Role for Stealing {
    fn restart_meters(&mut self, _: &mut Bus) {
        (self.own, self.stolen) = (0, 0);
    }
    fn take_wake_up(&mut self) -> Option<ThreadId> {
        self.woken.take()
    }
    fn tables(&self, _: &RoleView) -> Vec<(&'static str, Value)> {
        let row = |what: &str, n: u64| vec![what.into(), n.into()];
        vec![(
            "stealing",
            table(&[("whose", ""), ("packets", "packets")], vec![row("own", self.own), row("stolen", self.stolen)]),
        )]
    }
}

impl Stack for Stealing {
    type Spec = StealingSpec;

    fn build(s: &StealingSpec, site: &mut StackSite) -> Result<(Stealing, Vec<ExtensionThread>), String> {
        let n = site.cores.len();
        let queues: Vec<(QueueId, LineAddr)> = (0..n).map(|local| (site.queue(local), site.shared(1))).collect();
        let thread = |_| {
            let pair = QueuePair::new(site.queue_pair.clone(), site.spent, site.core);
            ExtensionThread::new(Thief { pair, look: s.look, since: None })
        };
        let threads = (0..n).map(thread).collect();
        let cores = site.cores.to_vec();
        Ok((Stealing { queues, cores, idle: vec![false; n], woken: None, own: 0, stolen: 0 }, threads))
    }
}

/// Thread of a core.
#[derive(Clone)]
struct Thief {
    pair: QueuePair,
    look: u32,
    /// Start of the service of the present packet.
    since: Option<Time>,
}

impl Thief {
    /// Takes a packet from the core's own queue, or else from the first queue that has one; with the queue.
    fn take(&mut self, c: &mut Ctx) -> Option<(PacketId, QueueId)> {
        let (local, program) = (c.step.local, &mut *c.program);
        let s = c.roles.get_mut::<Stealing>()?;
        let n = s.queues.len();
        for i in (0..n).map(|k| (local + k) % n) {
            let (queue, lock) = s.queues[i];
            while c.machine.nic.take_completion(queue) {
                program.compute(self.pair.poll_instructions());
                c.tally.taken += 1; // a completion is an entry of the queue
            }
            if c.machine.nic.waiting(queue) == 0 {
                continue;
            }
            program.compute(if i == local { 0 } else { self.look });
            program.push(Op::Atomic { line: lock });
            let Some(id) = c.machine.nic.take(queue) else { continue };
            c.tally.taken += 1;
            *(if i == local { &mut s.own } else { &mut s.stolen }) += 1;
            // Further packets wait: another core may have them.
            if c.machine.nic.waiting(queue) > 0 {
                if let Some(free) = s.idle.iter().position(|idle| *idle) {
                    s.idle[free] = false;
                    s.woken = Some(s.cores[free]);
                }
            }
            return Some((id, queue));
        }
        s.idle[local] = true;
        None
    }
}

impl Software for Thief {
    fn step(&mut self, c: &mut Ctx) -> Step {
        if self.pair.is_functional() {
            return self.pair.step(c);
        }
        if let Some(since) = self.since.take() {
            c.tally.served(c.step.now - since);
        }
        c.program.ops.clear();
        if c.step.stopped {
            return Step::Idle;
        }
        if let Some(s) = c.roles.get_mut::<Stealing>() {
            s.idle[c.step.local] = false;
            self.pair.relinquish_sent(s.queues[c.step.local].0, c);
        }
        let Some((id, queue)) = self.take(c) else {
            let wait = Step::Wait { on: Awaited::Queue, instructions: self.pair.poll_instructions() };
            return if c.program.ops.is_empty() { wait } else { Step::Run };
        };
        let tx = c.machine.nic.next_tx(queue);
        if self.pair.serve(id, tx, c) == ServeOutcome::Reply {
            c.machine.nic.reserve_tx(queue, c.step.now);
        }
        self.since = Some(c.step.now);
        Step::Run
    }

    fn notify(&mut self, what: Notice, now: Time) -> Wakes {
        self.pair.notify(what, now)
    }

    fn retired(&mut self, tag: u32, c: &mut Ctx) {
        self.pair.retired(tag, c);
    }

    fn retired_functional(&mut self, tag: u32, m: &mut Machine) {
        self.pair.retired_functional(tag, m);
    }
}
