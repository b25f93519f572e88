//! The host's thread in overlay and in forward mode, which serves the packets of its queue pairs in turn and answers
//! through the same queue pairs, or returns packets in their own buffers.

use super::host::CcnicHost;
use super::rings::{Desc, CHAINED, EXTERNAL, MORE, NO_RECYCLE};
use super::spec::PoolKind;
use super::{CcnicEffect, CcnicInterface, CcnicThreadState, Demand, Ports, RingKind, RoundTrip, Setup};
use crate::app::{Content, ServeOutcome};
use crate::core::op::STACK_ANCHOR;
use crate::core::{Op, Program};
use crate::kernel::{Due, Int, LineAddr, PacketId, PortId, Time};
use crate::memory::LINE_U32;
use crate::stack::branch_predictor::skip_in_turn;
use crate::stack::pmd::nic_on;
use crate::stack::{qp, Awaited, Ctx, Step};
use std::collections::VecDeque;

/// Answer that has no descriptor yet: its buffer, its bytes, and an object that belongs to the answer.
#[derive(Clone, Copy)]
struct PendingReply {
    buffer: u32,
    bytes: u16,
    object: Option<SharedObject>,
    /// Whether the packet continues in the buffer of the next answer.
    chained: bool,
}

/// Object that is sent from its place in memory: its bytes, and the line that counts its users.
#[derive(Clone, Copy)]
struct SharedObject {
    bytes: u16,
    users: Option<LineAddr>,
}

/// Packet that ends at the host without an answer.
#[derive(Clone, Copy)]
enum Consumed {
    /// A packet of the PCIe NIC.
    Record(PacketId),
    /// A packet from the wire of a NIC in forward mode.
    Trip(RoundTrip),
}

/// Work of a server thread on the packets that it takes.
#[derive(Clone, Copy)]
#[expect(missing_docs, reason = "the documentation of a variant explains its fields")]
pub enum ServerWork {
    /// The thread returns packets of up to `bytes` bytes in their own buffers, and accesses only their first line where
    /// `header_only` says so.
    Return { bytes: u32, header_only: bool },
    /// The application serves the packets. With `answers_all` it answers each packet with one line in a buffer of its
    /// own, so that the thread allocates these buffers for a whole burst.
    Serve { answers_all: bool },
}

/// One queue pair of a server thread.
#[derive(Clone)]
pub(super) struct ServerPort {
    pub(super) host: CcnicHost,
    replies: VecDeque<PendingReply>,
    /// Buffers for answers.
    blanks: VecDeque<u32>,
    /// Packets that end when the program that serves them has retired.
    consumed: VecDeque<Consumed>,
}

#[derive(Clone)]
pub struct CcnicServer {
    work: ServerWork,
    ports: Vec<ServerPort>,
    at: usize,
    /// Number of successive queue pairs that had no work.
    idle: usize,
    /// Whether the last step had answers and no room for them in the ring.
    pub(super) stuck: bool,
    /// Start of the service of the present packets, and their number.
    since: Option<(Time, u32)>,
}

impl CcnicServer {
    /// The thread with number `local` of `of` threads, each of which has every `of`-th queue pair. With `foresees`, an
    /// out-of-order core continues behind its polls.
    pub(super) fn new(s: Setup, work: ServerWork, (local, of): (usize, usize), foresees: bool) -> CcnicServer {
        let i = s.interface;
        let queues = (local..i.pairs.len()).step_by(of);
        let (header_only, bytes) = match work {
            ServerWork::Return { bytes, header_only } => (header_only, bytes),
            ServerWork::Serve { .. } => (false, LINE_U32),
        };
        let port = |(tag, queue): (usize, usize)| {
            let common = CcnicThreadState { tag: tag.to_u32(), ..CcnicThreadState::new(s, queue, bytes) };
            let common = if foresees { common.foreseeing() } else { common };
            let host = CcnicHost::new(common, i, header_only, Demand::none());
            let (replies, blanks, consumed) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
            ServerPort { host, replies, blanks, consumed }
        };
        CcnicServer { work, ports: queues.enumerate().map(port).collect(), at: 0, idle: 0, stuck: false, since: None }
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
            let n = match self.work {
                ServerWork::Return { .. } => port.forward(c),
                ServerWork::Serve { answers_all } => port.serve(answers_all, c),
            };
            self.since = (n > 0).then_some((c.step.now, n));
            let busy = port.host.end_receive(c) | port.reply(c) | (n > 0);
            self.stuck = !busy;
            let busy = busy || !port.replies.is_empty() || !port.host.taken.is_empty();
            self.idle = if busy { 0 } else { self.idle + 1 };
            if self.idle > 0 && all == 1 && c.program.ops.is_empty() {
                let instructions = port.host.common.spec.quirks.costs.poll;
                return Step::Wait { on: Awaited::Line(port.host.polled_line()), instructions };
            }
            self.at = (self.at + 1) % all;
            if self.idle > 0 && c.program.ops.is_empty() {
                self.ports[self.at].host.poll(true, c);
                return Step::Poll { of: all, until: Due::NEVER };
            }
        }
        self.ports[self.at].host.poll(true, c);
        Step::Run
    }

    pub(super) fn skip_polls(&mut self, polls: u64) {
        let ports = &mut self.ports;
        let polled = std::mem::take(&mut ports[self.at].host.common.polled);
        self.at = skip_in_turn(self.at, ports.len(), polls, |k| ports[k].host.common.skip_polls(1));
        self.ports[self.at].host.common.polled = polled;
    }

    pub(super) fn retired(&mut self, tag: u32, c: &mut Ctx) {
        let (effect, port) = CcnicEffect::of(tag);
        let port = &mut self.ports[port.to_usize()];
        if effect == CcnicEffect::Seen {
            return port.end_consumed(c);
        }
        port.host.common.visible(c);
    }
}

/// Makes operations wait for a descriptor: the operations of `ops` from `begin` on that access a packet in one of the
/// buffers `frames`, each given by its first line and its number of lines, depend on `line`, the line of the last
/// descriptor, because descriptors contain the addresses of packets.
fn follow(ops: &mut Vec<Op>, begin: usize, line: LineAddr, frames: &[(LineAddr, u16)]) {
    let in_frame = |at: LineAddr| frames.iter().any(|(first, n)| (*first..*first + u64::from(*n)).contains(&at));
    for op in ops.split_off(begin) {
        let behind = match op {
            Op::Anchor { line: at } if in_frame(at) => {
                ops.push(Op::Anchor { line });
                ops.push(Op::Chase { line: at, delay: 0 });
                continue;
            }
            Op::Copy { from, to, lines, dependent, .. } if in_frame(from) => {
                ops.push(Op::Copy { from, to, lines, dependent, behind: true });
                continue;
            }
            Op::Load { line: at, lines } if in_frame(at) => Op::DependentLoad { line: at, lines },
            Op::Store { line: at, lines } if in_frame(at) => Op::DependentStore { line: at, lines },
            Op::Walk { line: at, .. } if in_frame(at) => Op::DependentLoad { line: at, lines: 1 },
            op => {
                ops.push(op);
                continue;
            }
        };
        ops.extend([Op::Keep { slot: STACK_ANCHOR }, Op::Anchor { line }, behind, Op::Recall { slot: STACK_ANCHOR }]);
        if let Op::Walk { .. } = op {
            ops.push(op);
        }
    }
}

impl ServerPort {
    /// Number of buffers that the queue pair holds outside its stacks.
    pub(super) fn held(&self) -> usize {
        self.host.held() + self.replies.len() + self.blanks.len()
    }

    /// Reclaims what has been sent, before the answers that are queued are sent.
    pub(super) fn free_completed(&mut self, i: &mut CcnicInterface, p: &mut Program) {
        self.host.free_completed_batch(i, self.replies.len(), p);
    }

    /// Whether no packet waits in the thread.
    pub(super) fn has_nothing(&self) -> bool {
        self.host.taken.is_empty() && self.host.received.is_empty() && self.replies.is_empty()
    }

    /// Queues a packet of `bytes` bytes in `buffer` to be sent.
    pub(super) fn queue_up(&mut self, buffer: u32, bytes: u16) {
        self.replies.push_back(PendingReply { buffer, bytes, object: None, chained: false });
    }

    /// Lets the application serve the packets that were taken, as far as buffers are free for answers; returns the
    /// number of packets served.
    fn serve(&mut self, answers_all: bool, c: &mut Ctx) -> u32 {
        let ServerPort { host, replies, blanks, consumed } = self;
        let shared = host.common.spec.pool == PoolKind::Shared;
        let want = host.taken.len().min(host.common.spec.rx_batch.to_usize());
        if want == 0 {
            return 0;
        }
        let Ctx { step, roles, app: Some(app), machine, traffic, program: p, .. } = c else { return 0 };
        let Some(i) = roles.get_mut::<CcnicInterface>() else { return 0 };
        host.await_descriptors(p);
        host.free_completed_batch(i, want, p);
        // A host that posts blank buffers has only large ones, and an application that answers some packets only writes an
        // answer before its size is known.
        let hint = if shared && answers_all { LINE_U32 } else { 0 };
        let at_once = if answers_all { want } else { 1 };
        if blanks.len() < at_once {
            blanks.extend(host.buffers(i, hint, at_once - blanks.len(), p));
        }
        let most = if answers_all { want.min(blanks.len()) } else { want };
        let mut nic = i.nic.map(|port| nic_on(machine.iio.as_deref_mut(), port));
        let mut content = |i: &CcnicInterface, buffer: u32| match &mut nic {
            Some(nic) => {
                let id = i.packet_in(buffer);
                let note = nic.follows(id).then_some((i.nic(), id));
                let packet = nic.packet(id);
                (Content::of(packet), packet.rx_bytes, note)
            }
            None => (i.contents[buffer.to_usize()], i.contents[buffer.to_usize()].wire_bytes, None),
        };
        let (from, descriptor) = (p.ops.len(), host.foreseen_line());
        let burst = host.taken.iter().take(most).map(|d| d.buffer - 1);
        let frames: Vec<_> = burst.map(|b| (content(i, b).0, i.line(b))).collect();
        app.begin_burst(step.local, &mut frames.iter().copied(), p);
        if let Some(line) = descriptor {
            let frames: Vec<_> = frames.iter().map(|(c, line)| (*line, c.lines)).collect();
            follow(&mut p.ops, from, line, &frames);
        }
        let mut served = 0;
        while served < most {
            if blanks.is_empty() {
                blanks.extend(host.buffers(i, hint, 1, p));
            }
            let Some(&to) = blanks.front() else { break };
            let Some(d) = host.taken.pop_front() else { break };
            let from = d.buffer - 1;
            let (content, bytes, note) = content(i, from);
            note.into_iter().for_each(|(port, packet)| p.push(Op::Note { port, packet, answered: false }));
            p.compute(host.common.spec.quirks.costs.host_rx);
            let begin = p.ops.len();
            host.common.write_metadata(i, from, p);
            let (answer, lines) = app.serve(step.local, &content, i.line(from), i.line(to), p);
            if let Some(line) = descriptor {
                // A host that has posted the buffer knows where the metadata is.
                let first = if shared { i.metadata(from) } else { i.line(from) };
                let lines = (i.line(from) - first).to_u16() + content.lines;
                follow(&mut p.ops, begin, line, &[(first, lines)]);
            }
            let stall = traffic.spikes.as_mut().map_or(Time::ZERO, |s| s.draw());
            if stall > Time::ZERO {
                p.push(Op::Stall(stall.0));
            }
            let whole = u32::from(lines) * LINE_U32;
            // An answer with as many lines as the packet has the packet's bytes.
            let bytes = if lines == content.lines && !answers_all { whole.min(bytes) } else { whole }.to_u16();
            let object = match answer {
                ServeOutcome::Gather { object, bytes, users } => {
                    i.objects[to.to_usize()] = object;
                    Some(SharedObject { bytes: bytes.to_u16(), users })
                }
                _ => None,
            };
            note.into_iter().for_each(|(port, packet)| p.push(Op::Note { port, packet, answered: true }));
            match answer {
                ServeOutcome::Reply | ServeOutcome::Gather { .. } => {
                    blanks.pop_front();
                    i.pass_on(from, to);
                    host.received.push(from);
                    replies.push_back(PendingReply { buffer: to, bytes, object, chained: false });
                }
                ServeOutcome::Forward => {
                    replies.push_back(PendingReply { buffer: from, bytes, object, chained: false })
                }
                ServeOutcome::Consumed => {
                    consumed.push_back(match i.nic {
                        Some(_) => Consumed::Record(i.packet_in(from)),
                        None => {
                            Consumed::Trip(RoundTrip { began: i.stamps[from.to_usize()], bytes: content.wire_bytes })
                        }
                    });
                    p.push(Op::Retire { tag: CcnicEffect::Seen.tag(host.common.tag), stores: true });
                    host.received.push(from);
                }
            }
            served += 1;
        }
        app.end_burst(step.local, served.to_u32(), p);
        served.to_u32()
    }

    /// Ends the oldest packet that was consumed.
    fn end_consumed(&mut self, c: &mut Ctx) {
        let Some(oldest) = self.consumed.pop_front() else { return };
        let Some(i) = c.roles.get_mut::<CcnicInterface>() else { return };
        match oldest {
            Consumed::Record(id) => {
                let nic = nic_on(c.machine.iio.as_deref_mut(), i.nic());
                qp::ended(nic, id, c.tally, c.step.now);
                nic.end_use(id);
            }
            Consumed::Trip(trip) => {
                i.end_at_host(self.host.common.queue);
                trip.end(c);
            }
        }
    }

    /// Reads and rewrites the headers of the packets that were taken, and queues them in the same buffers; returns the
    /// number of packets.
    fn forward(&mut self, c: &mut Ctx) -> u32 {
        let host = &mut self.host;
        let (Some(i), p) = (c.roles.get_mut::<CcnicInterface>(), &mut *c.program) else { return 0 };
        let mut packets = 0;
        host.await_descriptors(p);
        while let Some(d) = host.taken.pop_front() {
            let (line, first) = (i.line(d.buffer - 1), !host.continues);
            let (lines, chained) = (host.touched(d.bytes.into(), first), d.flags & CHAINED != 0);
            host.common.receive_metadata(i, d.buffer - 1, p);
            if lines > 0 {
                p.push(Op::DependentLoad { line, lines });
            }
            if first {
                p.compute(host.common.spec.quirks.costs.host_rx);
                p.push(Op::DependentStore { line, lines: 1 });
                packets += 1;
            }
            host.continues = chained;
            self.replies.push_back(PendingReply { buffer: d.buffer - 1, bytes: d.bytes, object: None, chained });
        }
        packets
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
        while let Some(&PendingReply { buffer, bytes, object, chained }) = self.replies.front() {
            let more = if object.is_some() { MORE } else { 0 } | if chained { CHAINED } else { 0 };
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
            // The thread has written the answer's metadata in the same burst, and the store queue supplies it.
            if !chained {
                p.compute(host.common.spec.quirks.costs.host_tx);
            }
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
        follow(&mut ops, 1, LineAddr(7), &[(LineAddr(50), 2)]);
        let frame = [Op::Anchor { line: LineAddr(7) }, Op::Chase { line: LineAddr(50), delay: 0 }];
        let others = [Op::Anchor { line: LineAddr(60) }, copy(LineAddr(50), true), copy(LineAddr(60), false)];
        assert_eq!(ops, [&[before][..], &frame, &others].concat());
    }

    #[test]
    fn an_access_that_waits_for_its_descriptor_leaves_the_application_s_anchor_as_it_was() {
        let (frame, table, descriptor) = (LineAddr(50), LineAddr(60), LineAddr(7));
        let mut ops = vec![
            Op::Anchor { line: table },
            Op::Load { line: frame + 1, lines: 3 },
            Op::Chase { line: table + 1, delay: 4 },
            Op::Store { line: frame, lines: 1 },
            Op::Load { line: frame + 4, lines: 1 },
        ];
        follow(&mut ops, 0, descriptor, &[(frame, 4)]);
        let behind = |op| {
            [Op::Keep { slot: STACK_ANCHOR }, Op::Anchor { line: descriptor }, op, Op::Recall { slot: STACK_ANCHOR }]
        };
        let expected = [
            &[Op::Anchor { line: table }][..],
            &behind(Op::DependentLoad { line: frame + 1, lines: 3 }),
            &[Op::Chase { line: table + 1, delay: 4 }],
            &behind(Op::DependentStore { line: frame, lines: 1 }),
            &[Op::Load { line: frame + 4, lines: 1 }], // behind the frame's last line
        ];
        assert_eq!(ops, expected.concat());
    }
}
