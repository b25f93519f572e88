//! The application's thread of TAS, which reads requests from flows' receive buffers and writes replies to their
//! transmit buffers.

use super::{only_computes, ContextEntry, Service, EVENTS, FROM_APP, POSTED, QUEUE, TO_APP};
use crate::app::tcp_echo::Calls;
use crate::core::{Op, Program};
use crate::kernel::{Due, Int, LineAddr};
use crate::meter::life::Milestone;
use crate::stack::{Ctx, Step, StepMachine};
use std::collections::VecDeque;

/// Lines of a socket that each call accesses for the connection; `BUFFER` gives the first line and the number of lines
/// of the server's buffer in a socket.
const CONNECTION: u32 = 2;
const BUFFER: (u64, u32) = (6, 2);

#[derive(Clone, Default)]
pub struct Echo {
    polled: bool,
    /// Flows with a complete request, in the order of epoll's list.
    active: VecDeque<u32>,
    is_active: Vec<bool>,
    /// Bytes announced by entries that have been taken, by flow.
    known: Vec<u64>,
    /// Flows with replies that the application has not announced to the fast path.
    unsaid: VecDeque<u32>,
    said: Vec<u64>,
    next: usize,
    entries_in_flight: VecDeque<(usize, ContextEntry)>,
}

impl Echo {
    pub(super) fn step(&mut self, c: &mut Ctx) -> Step {
        let Some(t) = c.roles.get_mut::<Service>() else { return Step::Idle };
        if self.known.is_empty() {
            let n = t.flows.len();
            (self.known, self.said, self.is_active) = (vec![0; n], vec![0; n], vec![false; n]);
        }
        let (p, mut idle) = (&mut *c.program, false);
        if std::mem::take(&mut self.polled) {
            self.take_entries(t, p, &mut c.machine);
            self.post_entries(t, p);
            self.serve(t, p, &mut c.machine);
            idle = self.active.is_empty() && self.unsaid.is_empty() && only_computes(p);
        }
        for (context, lines) in t.contexts.iter().zip(&t.memory.threads) {
            p.push(Op::Anchor { line: lines[0] + context.to_app_ends.1 / TO_APP % QUEUE });
        }
        p.push(Op::Await);
        self.polled = true;
        match idle {
            true => Step::Poll { of: 1, until: Due::NEVER },
            false => Step::Run,
        }
    }

    /// Polls the context queues: takes entries from all threads of the fast path, in turn.
    fn take_entries(&mut self, t: &mut Service, p: &mut Program, m: &mut StepMachine) {
        let costs = t.spec.calls.costs();
        let queues = t.contexts.len();
        p.compute(costs.poll + costs.queue * queues.to_u32());
        let (mut left, mut empty) = (EVENTS, 0);
        while left > 0 && empty < queues {
            let q = self.next;
            self.next = (q + 1) % queues;
            let Some(e) = t.contexts[q].to_app.pop_front() else {
                empty += 1;
                continue;
            };
            (empty, left) = (0, left - 1);
            let taken = &mut t.contexts[q].to_app_ends.1;
            let line = t.memory.threads[q][0] + *taken / TO_APP % QUEUE;
            *taken += 1;
            p.push(Op::Load { line, lines: 1 });
            p.push(Op::Store { line, lines: 1 });
            let socket = t.socket(e.flow);
            p.push(Op::Load { line: socket, lines: CONNECTION });
            p.push(Op::Store { line: socket, lines: CONNECTION });
            if e.bytes == 0 {
                p.compute(costs.acknowledged);
                continue;
            }
            p.compute(costs.event);
            let (known, flow) = (&mut self.known[e.flow.to_usize()], e.flow);
            for (line, _) in t.received_at(flow, *known, 1) {
                p.push(Op::Prefetch { line, lines: 1 });
            }
            *known += u64::from(e.bytes);
            t.pass(flow, *known, Milestone::Noticed, m);
            if t.spec.calls == Calls::Sockets {
                // The socket's lock is taken for the event and for epoll's list.
                (0..2).for_each(|_| p.push(Op::Atomic { line: socket }));
            }
            let whole = *known - t.flows[flow.to_usize()].read >= t.spec.rpc.0;
            if whole && !std::mem::replace(&mut self.is_active[flow.to_usize()], true) {
                self.active.push_back(flow);
            }
        }
    }

    /// Writes entries that announce to the fast path the bytes written since the last poll.
    fn post_entries(&mut self, t: &mut Service, p: &mut Program) {
        let owner = |t: &Service, flow: u32| t.flows[flow.to_usize()].queue.index() % t.contexts.len();
        while let Some(&flow) = self.unsaid.front() {
            let q = owner(t, flow);
            let context = &mut t.contexts[q];
            let (put, taken) = &mut context.from_app_ends;
            if *put - *taken >= QUEUE * FROM_APP {
                break;
            }
            let line = t.memory.threads[q][1] + *put / FROM_APP % QUEUE;
            if *put % FROM_APP == 0 {
                p.push(Op::Load { line, lines: 1 }); // whether the fast path has finished with the flow
            }
            *put += 1;
            p.push(Op::Load { line: t.socket(flow), lines: 1 });
            p.push(Op::Release { line, tag: POSTED });
            let (written, said) = (t.flows[flow.to_usize()].written, &mut self.said[flow.to_usize()]);
            self.entries_in_flight.push_back((q, ContextEntry { flow, bytes: (written - *said).to_u32() }));
            *said = written;
            self.unsaid.pop_front();
        }
    }

    /// Reads requests and writes them back: one request of each socket that has a request, or all complete requests.
    fn serve(&mut self, t: &mut Service, p: &mut Program, m: &mut StepMachine) {
        let (rpc, calls) = (t.spec.rpc.0, t.spec.calls);
        for _ in 0..self.active.len().min(EVENTS) {
            let Some(flow) = self.active.pop_front() else { break };
            let f = &t.flows[flow.to_usize()];
            let (read, written, whole) = (f.read, f.written, (self.known[flow.to_usize()] - f.read) / rpc);
            let n = if calls == Calls::Sockets { 1 } else { whole };
            p.compute(calls.costs().rpc * n.to_u32());
            let socket = t.socket(flow);
            let (requests, replies) = (t.received_at(flow, read, n * rpc), t.transmit_at(flow, written, n * rpc));
            let copy = |from: &[(LineAddr, u32)], to: &[(LineAddr, u32)], p: &mut Program| {
                from.iter().for_each(|(line, lines)| p.push(Op::Load { line: *line, lines: *lines }));
                to.iter().for_each(|(line, lines)| p.push(Op::Store { line: *line, lines: *lines }));
            };
            if calls == Calls::Sockets {
                let buffer = [(socket + BUFFER.0, BUFFER.1)];
                p.push(Op::Atomic { line: socket });
                copy(&requests, &buffer, p);
                p.push(Op::Atomic { line: socket });
                copy(&buffer, &replies, p);
            } else {
                copy(&requests, &replies, p);
            }
            p.push(Op::Store { line: socket, lines: CONNECTION });
            let f = &mut t.flows[flow.to_usize()];
            (f.read, f.written) = (read + n * rpc, written + n * rpc);
            t.pass(flow, read + n * rpc, Milestone::Served, m);
            if self.said[flow.to_usize()] == written {
                self.unsaid.push_back(flow);
            }
            match whole > n {
                true => self.active.push_back(flow),
                false => self.is_active[flow.to_usize()] = false,
            }
        }
    }

    pub(super) fn posted(&mut self, c: &mut Ctx) {
        if let (Some((q, e)), Some(t)) = (self.entries_in_flight.pop_front(), c.roles.get_mut::<Service>()) {
            t.flows[e.flow.to_usize()].announced += u64::from(e.bytes);
            t.pass(e.flow, t.flows[e.flow.to_usize()].announced, Milestone::Announced, &mut c.machine);
            t.contexts[q].from_app.push_back(e);
            t.woken.push(t.cores[q]);
        }
    }
}
