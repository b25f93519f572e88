//! The host's thread in overlay mode, which serves the packets of its queue pairs in turn and answers through the same
//! queue pairs. In forward mode the thread returns packets in their own buffers.

use super::host::CcnicHost;
use super::rings::{Desc, EXTERNAL, MORE, NO_RECYCLE};
use super::spec::{CcnicMode, PoolKind};
use super::{CcnicEffect, CcnicInterface, CcnicThreadState, Demand, Ports, RingKind, Setup};
use crate::app::loopback::{LoopbackSpec, Touched};
use crate::app::{Content, ServeOutcome};
use crate::core::Op;
use crate::kernel::{Int, LineAddr, PortId, Time};
use crate::memory::{LINE, LINE_U32};
use crate::stack::pmd::nic_on;
use crate::stack::{Awaited, Ctx, Step};
use std::collections::VecDeque;

/// Answer that has no descriptor yet: its buffer, its bytes, and an object that belongs to the answer.
#[derive(Clone, Copy)]
struct PendingReply {
    buffer: u32,
    bytes: u16,
    object: Option<SharedObject>,
}

/// Object that is sent from its place in memory: its bytes, and the line that counts its users.
#[derive(Clone, Copy)]
struct SharedObject {
    bytes: u16,
    users: Option<LineAddr>,
}

/// One queue pair of a server thread.
#[derive(Clone)]
pub(super) struct ServerPort {
    pub(super) host: CcnicHost,
    replies: VecDeque<PendingReply>,
}

#[derive(Clone)]
pub struct CcnicServer {
    ports: Vec<ServerPort>,
    at: usize,
    /// Number of successive queue pairs that had no work.
    idle: usize,
    /// Start of the service of the present packets, and their number.
    since: Option<(Time, u32)>,
}

impl CcnicServer {
    /// The thread with number `local` of `of` threads, each of which has every `of`-th queue pair. A forwarder accesses
    /// the part of a packet that `app` names; other servers have no `app`. With `predictor`, an out-of-order core
    /// continues behind its polls.
    pub(super) fn new(
        s: Setup,
        app: Option<&LoopbackSpec>,
        (local, of): (usize, usize),
        foresees: bool,
    ) -> CcnicServer {
        let i = s.interface;
        let queues = (local..i.pairs.len()).step_by(of);
        let (header_only, bytes) = match app {
            Some(a) => (a.touch == Touched::Header, a.bytes.0.to_u32()),
            None => (false, LINE_U32),
        };
        let port = |(tag, queue): (usize, usize)| {
            let common = CcnicThreadState { tag: tag.to_u32(), ..CcnicThreadState::new(s, queue, bytes) };
            let common = if foresees { common.foreseeing() } else { common };
            ServerPort { host: CcnicHost::new(common, i, header_only, Demand::none()), replies: VecDeque::new() }
        };
        CcnicServer { ports: queues.enumerate().map(port).collect(), at: 0, idle: 0, since: None }
    }

    /// The thread's queue pairs, for use by another stack; `nic` is the port of the NIC that their packets go through.
    pub(super) fn into_ports(self, nic: PortId) -> Ports {
        Ports::new(self.ports, nic)
    }

    /// State of each of the thread's queue pairs.
    pub(super) fn commons(&self) -> impl Iterator<Item = &CcnicThreadState> {
        self.ports.iter().map(|p| &p.host.common)
    }

    pub(super) fn commons_mut(&mut self) -> impl Iterator<Item = &mut CcnicThreadState> {
        self.ports.iter_mut().map(|p| &mut p.host.common)
    }

    /// Number of buffers that the thread holds outside its stacks. Where only the host manages buffers, these include
    /// answers that were sent.
    pub(super) fn held(&self) -> usize {
        self.ports.iter().map(ServerPort::held).sum()
    }

    pub(super) fn step(&mut self, c: &mut Ctx) -> Step {
        let all = self.ports.len();
        let port = &mut self.ports[self.at];
        if std::mem::take(&mut port.host.common.polled) {
            if port.host.gathers_more(c) {
                return Step::Run;
            }
            if let Some((since, n)) = self.since.take() {
                c.tally.served(c.step.now - since);
                (1..n).for_each(|_| c.tally.served(Time::ZERO));
            }
            let n = if port.host.common.spec.mode == CcnicMode::Forward { port.forward(c) } else { port.serve(c) };
            self.since = (n > 0).then_some((c.step.now, n));
            let busy = port.host.end_receive(c) | port.reply(c) | (n > 0);
            let busy = busy || !port.replies.is_empty() || !port.host.taken.is_empty();
            self.idle = if busy { 0 } else { self.idle + 1 };
            if self.idle > 0 && all == 1 && c.program.ops.is_empty() {
                let instructions = port.host.common.spec.costs.poll;
                return Step::Wait { on: Awaited::Line(port.host.polled_line()), instructions };
            }
            self.at = (self.at + 1) % all;
        }
        self.ports[self.at].host.poll(true, c);
        Step::Run
    }

    pub(super) fn retired(&mut self, tag: u32, c: &mut Ctx) {
        let (_, port) = CcnicEffect::of(tag);
        self.ports[port.to_usize()].host.common.visible(c);
    }
}

/// Makes operations wait for a descriptor: the operations of `ops` from `begin` on that read a packet at one of the
/// lines `received` depend on `line`, the line of the last descriptor, because descriptors contain the addresses of
/// packets.
fn follow(ops: &mut Vec<Op>, begin: usize, line: LineAddr, received: &[LineAddr]) {
    for op in ops.split_off(begin) {
        match op {
            Op::Anchor { line: rx } if received.contains(&rx) => {
                ops.push(Op::Anchor { line });
                ops.push(Op::Chase { line: rx, delay: 0 });
            }
            Op::Copy { from, to, lines, dependent, .. } if received.contains(&from) => {
                ops.push(Op::Copy { from, to, lines, dependent, behind: true });
            }
            op => ops.push(op),
        }
    }
}

impl ServerPort {
    /// Number of buffers that the queue pair holds outside its stacks.
    pub(super) fn held(&self) -> usize {
        self.host.held() + self.replies.len()
    }

    /// Queues a packet of `bytes` bytes in `buffer` to be sent.
    pub(super) fn queue_up(&mut self, buffer: u32, bytes: u16) {
        self.replies.push_back(PendingReply { buffer, bytes, object: None });
    }

    /// Lets the application serve the packets that were taken, as far as buffers are free for answers; returns the
    /// number of packets served.
    fn serve(&mut self, c: &mut Ctx) -> u32 {
        let host = &mut self.host;
        let shared = host.common.spec.pool == PoolKind::Shared;
        let want = host.taken.len().min(host.common.spec.rx_batch.to_usize());
        if want == 0 {
            return 0;
        }
        let Ctx { step, roles, app: Some(app), machine, program: p, .. } = c else { return 0 };
        let Some(i) = roles.get_mut::<CcnicInterface>() else { return 0 };
        host.await_descriptors(p);
        host.free_completed_batch(i, p);
        // Answers are one line; a host that posts blank buffers has only large ones.
        let buffers = host.buffers(i, if shared { LINE_U32 } else { 0 }, want, p);
        let nic = nic_on(machine.iio.as_deref_mut(), i.nic());
        let served = buffers.len();
        let mut packets = host.taken.iter().take(served).map(|d| {
            let from = d.buffer - 1;
            (Content::of(nic.packet(i.packet_in(from))), i.line(from))
        });
        let (from, descriptor) = (p.ops.len(), host.foreseen_line());
        app.begin_burst(step.local, &mut packets, p);
        if let Some(line) = descriptor {
            let received: Vec<LineAddr> = host.taken.iter().take(served).map(|d| i.line(d.buffer - 1)).collect();
            follow(&mut p.ops, from, line, &received);
        }
        for (d, to) in host.taken.drain(..served).zip(buffers) {
            let from = d.buffer - 1;
            let id = i.packet_in(from);
            let note = nic.follows(id).then_some((i.nic(), id));
            note.into_iter().for_each(|(port, packet)| p.push(Op::Note { port, packet, answered: false }));
            p.compute(host.common.spec.costs.host_rx);
            let content = Content::of(nic.packet(id));
            let begin = p.ops.len();
            let (answer, lines) = app.serve(step.local, &content, i.line(from), i.line(to), p);
            if let Some(line) = descriptor {
                follow(&mut p.ops, begin, line, &[i.line(from)]);
            }
            let object = match answer {
                ServeOutcome::Gather { object, bytes, users } => {
                    i.objects[to.to_usize()] = object;
                    Some(SharedObject { bytes: bytes.to_u16(), users })
                }
                _ => None,
            };
            i.packets[to.to_usize()] = Some(id);
            note.into_iter().for_each(|(port, packet)| p.push(Op::Note { port, packet, answered: true }));
            host.received.push(from);
            self.replies.push_back(PendingReply { buffer: to, bytes: lines * LINE.to_u16(), object });
        }
        served.to_u32()
    }

    /// Reads and rewrites the headers of the packets that were taken, and queues them in the same buffers; returns the
    /// number of packets.
    fn forward(&mut self, c: &mut Ctx) -> u32 {
        let host = &mut self.host;
        let lines = host.touched();
        let (Some(i), p) = (c.roles.get_mut::<CcnicInterface>(), &mut *c.program) else { return 0 };
        let n = host.taken.len().to_u32();
        host.await_descriptors(p);
        for d in host.taken.drain(..) {
            let line = i.line(d.buffer - 1);
            p.push(Op::DependentLoad { line, lines });
            p.compute(host.common.spec.costs.host_rx);
            p.push(Op::DependentStore { line, lines: 1 });
            self.replies.push_back(PendingReply { buffer: d.buffer - 1, bytes: d.bytes, object: None });
        }
        n
    }

    /// Publishes as many answers as the ring has room for. The two segments of a packet share a line of grouped
    /// descriptors.
    pub(super) fn reply(&mut self, c: &mut Ctx) -> bool {
        let Some(i) = c.roles.get_mut::<CcnicInterface>() else { return false };
        let (host, p) = (&mut self.host, &mut *c.program);
        let shared = host.common.spec.pool == PoolKind::Shared;
        let group = host.tx.shape.group;
        let recycle = if shared { 0 } else { NO_RECYCLE };
        let (mut unit, mut any): (Vec<Desc>, bool) = (Vec::new(), false);
        while let Some(&PendingReply { buffer, bytes, object }) = self.replies.front() {
            let more = if object.is_some() { MORE } else { 0 };
            let first = Desc { buffer: buffer + 1, bytes, flags: recycle | more };
            let second = object.map(|o| Desc { buffer: buffer + 1, bytes: o.bytes, flags: recycle | EXTERNAL });
            let descs: Vec<Desc> = [Some(first), second].into_iter().flatten().collect();
            if unit.len() + descs.len() > group {
                host.publish(&mut unit, p);
            }
            if unit.is_empty() {
                let words = &i.pairs[host.common.queue].tx;
                let units = descs.len().div_ceil(group).to_u64();
                if !host.tx.ensure(words, units, &mut |line| p.push(Op::Load { line, lines: 1 })) {
                    break;
                }
            }
            p.compute(host.common.spec.costs.host_tx);
            for d in descs {
                if unit.len() == group {
                    host.publish(&mut unit, p);
                }
                unit.push(d);
            }
            if !shared {
                host.awaiting_completion.push_back((host.tx.position(), buffer));
            }
            if let Some(line) = object.and_then(|o| o.users) {
                host.objects.push_back((host.tx.position(), line));
            }
            self.replies.pop_front();
            any = true;
        }
        host.publish(&mut unit, p);
        if let Some(s) = host.tx.commit() {
            host.common.store(RingKind::Tx, s, p);
        }
        any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reads_a_frame_waits_for_its_descriptor_and_nothing_else_does() {
        let copy = |from, behind| Op::Copy { from, to: LineAddr(90), lines: 2, dependent: false, behind };
        let before = Op::Anchor { line: LineAddr(50) };
        let mut ops = vec![
            before,
            Op::Anchor { line: LineAddr(50) },
            Op::Anchor { line: LineAddr(60) },
            copy(LineAddr(50), false),
            copy(LineAddr(60), false),
        ];
        follow(&mut ops, 1, LineAddr(7), &[LineAddr(50)]);
        let frame = [Op::Anchor { line: LineAddr(7) }, Op::Chase { line: LineAddr(50), delay: 0 }];
        let others = [Op::Anchor { line: LineAddr(60) }, copy(LineAddr(50), true), copy(LineAddr(60), false)];
        assert_eq!(ops, [&[before][..], &frame, &others].concat());
    }
}
