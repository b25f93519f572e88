//! Sockets of the kernel over UDP (Linux with NAPI): interrupts and an application share a core, a socket each.
//!
//! ```text
//!   interrupt --> poll: sent buffers freed; descriptors, frames, socket buffers --> socket queue --full--> lost
//!                  ^ all found: interrupts again                                        |
//!                  +------------- budget spent: turns with the application              v (wakes the application)
//!        descriptor, doorbell <-- socket buffer <-- sendmsg <-- application <-- recvmsg: copied to its buffer
//! ```
//!
//! A core does one thing at a time, and a poll goes before the application. A poll that has spent its budget leaves the rest
//! to a kernel thread, which has half of the core while the application has work (ksoftirqd).

use super::pmd::{answered, port, retire, retire_at_once, Effect};
use super::tcp::{TcpSpec, STRUCTURE};
use super::{Ctx, Notice, Software, Step, Wakes};
use crate::app::{Answer, Content};
use crate::core::{Op, Program};
use crate::device::nic::{Layout, Nic, RingsSpec};
use crate::kernel::units::Size;
use crate::kernel::Time;
use crate::machine::Machine;
use crate::memory::LINE;
use crate::meter::drops::{DropCause, DropPlace, Ledger};
use crate::stack::mempool::DATA_ROOM;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What datagrams cost in the kernel beside what they share with TCP, in instructions where nothing else is said. `[tcp]` has
/// the rest: frames, interrupts, wake-ups, calls that receive, and copies.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UdpSpec {
    /// A received datagram: IP, UDP, the socket's queue.
    pub receive: u32,
    /// A `sendmsg` call: system call, UDP, IP, queueing discipline, driver.
    pub send: u32,
    /// A socket buffer that is freed.
    pub free: u32,
    /// What a socket may hold (`rmem_default`), socket buffers with all their overhead.
    pub receive_buffer: Size,
}

/// Lines of a socket buffer's structure.
const SKB: u32 = (STRUCTURE / LINE) as u32;
/// Lines of a frame's room.
const ROOM: u64 = DATA_ROOM / LINE;

impl UdpSpec {
    /// # Errors
    /// One clause with key and value.
    pub fn check(&self) -> Result<(), String> {
        let (b, least) = (self.receive_buffer, DATA_ROOM);
        if b.0 < least || b.0 > 1 << 24 {
            return Err(format!("receive_buffer = \"{b}\" is not within {least} B to 16 MiB"));
        }
        Ok(())
    }
}

/// What the kernel's path costs.
#[derive(Clone, Debug)]
pub struct Costs {
    pub tcp: TcpSpec,
    pub udp: UdpSpec,
}

impl Costs {
    /// Lines of a frame's head, which the driver copies to the socket buffer.
    fn head(&self) -> u64 {
        self.tcp.head.0 / LINE
    }

    /// What a socket buffer with a frame of `lines` lines counts as (Linux: `truesize`).
    fn true_size(&self, lines: u64) -> u64 {
        let frame = if lines > self.head() { DATA_ROOM } else { 0 };
        self.tcp.small_buffer() + frame
    }

    /// Socket buffers of a core: those of both rings, of a full socket and of a poll.
    fn buffers(&self, rings: &RingsSpec) -> u64 {
        let queued = self.udp.receive_buffer.0 / self.true_size(1) + 2;
        u64::from(rings.receive + rings.transmit + self.tcp.poll_budget) + queued
    }

    /// Lines of structures with the heads of frames, and lines of rooms for frames.
    pub fn lines(&self, rings: &RingsSpec) -> (u64, u64) {
        let n = self.buffers(rings);
        (n * (u64::from(SKB) + self.head()), n * ROOM)
    }
}

/// Lines of the application's buffers, one to receive into and one to send from.
pub const USER: u64 = 2 * ROOM;

/// Where a core's kernel and application keep their data.
#[derive(Clone, Copy, Debug)]
pub struct SocketMemory {
    pub structures: u64,
    pub frames: u64,
    pub user: u64,
}

/// A datagram in the socket's queue: its packet and its socket buffer.
#[derive(Clone, Copy)]
struct Datagram {
    id: u32,
    skb: u32,
}

/// What the core does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Phase {
    #[default]
    Idle,
    Poll,
    Serve,
}

/// One core with a socket and a pair of rings.
#[derive(Clone)]
pub struct UdpSocket {
    costs: Costs,
    queue: usize,
    receive: Layout,
    transmit: Layout,
    memory: SocketMemory,
    /// Socket buffers that are free; the one that came back last goes first.
    free: Vec<u32>,
    socket: VecDeque<Datagram>,
    /// Bytes that these count as.
    held: u64,
    /// What the full socket has lost.
    pub drops: Ledger,
    /// Receive descriptors taken; transmit descriptors written, and socket buffers in those that have not been freed.
    taken: u64,
    put: u64,
    in_ring: VecDeque<u32>,
    /// Packets that are consumed once their program retires.
    consumed: VecDeque<u32>,
    polling: bool,
    /// The application waits in `recvmsg`.
    asleep: bool,
    /// The last poll spent its budget: time of polls and of the application since the first that did.
    shared: Option<(Time, Time)>,
    phase: Phase,
    since: Time,
    full_poll: bool,
    /// Time of polls that no request has been charged with.
    polls: Time,
    idle_since: Option<Time>,
    idle: Time,
    /// Packets come without time.
    at_once: bool,
}

impl UdpSocket {
    /// The socket that `queue` of `nic` receives for.
    pub fn new(costs: Costs, rings: &RingsSpec, queue: usize, memory: SocketMemory, nic: &mut Nic) -> UdpSocket {
        let (receive, transmit) = nic.layouts(queue);
        let mut s = UdpSocket {
            free: (0..costs.buffers(rings) as u32).rev().collect(),
            costs,
            queue,
            receive,
            transmit,
            memory,
            socket: VecDeque::with_capacity(256),
            held: 0,
            drops: Ledger::default(),
            taken: 0,
            put: 0,
            in_ring: VecDeque::with_capacity(transmit.usable() as usize),
            consumed: VecDeque::with_capacity(4),
            polling: false,
            asleep: true,
            shared: None,
            phase: Phase::Idle,
            since: Time::ZERO,
            full_poll: false,
            polls: Time::ZERO,
            idle_since: Some(Time::ZERO),
            idle: Time::ZERO,
            at_once: false,
        };
        for _ in 0..receive.usable() {
            let skb = s.allocate();
            nic.arm(queue, skb, s.frame(skb));
        }
        nic.start_armed(queue);
        s
    }

    /// Time in which the core slept since the restart.
    pub fn idle_until(&self, now: Time) -> Time {
        self.idle + self.idle_since.map_or(Time::ZERO, |s| now.saturating_sub(s))
    }

    fn allocate(&mut self) -> u32 {
        self.free.pop().expect("there are as many as rings, socket and a poll hold")
    }

    /// First line of a structure, of the head behind it, and of a frame's room.
    fn structure(&self, skb: u32) -> u64 {
        self.memory.structures + u64::from(skb) * (u64::from(SKB) + self.costs.head())
    }
    fn head(&self, skb: u32) -> u64 {
        self.structure(skb) + u64::from(SKB)
    }
    fn frame(&self, skb: u32) -> u64 {
        self.memory.frames + u64::from(skb) * ROOM
    }

    fn has_room(&self) -> bool {
        (self.in_ring.len() as u64) < self.transmit.usable()
    }

    /// Transmit descriptors whose socket buffers have been freed.
    fn clean(&self) -> u64 {
        self.put - self.in_ring.len() as u64
    }

    /// NAPI's poll: frees what has been sent, and takes frames up to the budget to the socket.
    fn poll(&mut self, c: &mut Ctx) {
        if !self.polling {
            self.polling = true;
            port(c.iio.as_deref_mut()).mask_interrupt(self.queue);
            c.program.compute(self.costs.tcp.interrupt);
        }
        self.reclaim(c);
        let waiting = port(c.iio.as_deref_mut()).waiting(self.queue);
        let n = waiting.min(self.costs.tcp.poll_budget as usize);
        self.full_poll = n < waiting;
        for i in 0..n {
            if i == 0 || self.receive.begins_line(self.taken) {
                c.program.push(Op::Load { line: self.receive.line(self.taken), lines: 1 });
            }
            self.frame_came(c);
        }
        if n > 0 {
            if !self.receive.begins_line(self.taken) {
                c.program.push(Op::Store { line: self.receive.line(self.taken), lines: 1 });
            }
            c.program.push(Op::Mmio { tag: Effect::Armed.tag(n as u32) });
        }
    }

    /// The driver, the protocol and the socket's queue have the next frame.
    fn frame_came(&mut self, c: &mut Ctx) {
        let (p, nic) = (&mut *c.program, port(c.iio.as_deref_mut()));
        let id = nic.take(self.queue).expect("it waits");
        let (buffer, data, lines) = (nic.packet(id).buffer, nic.packet(id).line, u64::from(nic.packet(id).lines));
        let head = lines.min(self.costs.head());
        // The descriptor says where the frame is, its header to whom it belongs.
        p.push(Op::Load { line: data, lines: head as u32 });
        p.push(Op::Fence);
        p.compute(self.costs.tcp.frame);
        let other = self.allocate();
        // A frame that is all head leaves its room to the next; a longer one takes it along.
        let (skb, fresh) = if lines == head { (other, buffer) } else { (buffer, other) };
        p.push(Op::Store { line: self.structure(skb), lines: SKB });
        p.push(Op::Store { line: self.head(skb), lines: head as u32 });
        let line = self.receive.line(self.taken);
        self.taken += 1;
        if self.receive.begins_line(self.taken) {
            p.push(Op::Store { line, lines: 1 });
        }
        nic.arm(self.queue, fresh, self.frame(fresh));
        p.compute(self.costs.udp.receive);
        if self.held > self.costs.udp.receive_buffer.0 {
            nic.packet(id).done = true;
            nic.end_use(id);
            self.drops.lose(DropPlace::Socket, DropCause::SocketFull, c.now);
            self.release(skb, c.program);
        } else {
            self.held += self.costs.true_size(lines);
            self.socket.push_back(Datagram { id, skb });
        }
    }

    fn release(&mut self, skb: u32, p: &mut Program) {
        p.compute(self.costs.udp.free);
        self.free.push(skb);
    }

    /// Frees what has been sent.
    fn reclaim(&mut self, c: &mut Ctx) {
        let clean = self.clean();
        let sent = port(c.iio.as_deref_mut()).sent_descriptors(self.queue);
        for i in clean..sent {
            if i == clean || self.transmit.begins_line(i) {
                c.program.push(Op::Load { line: self.transmit.line(i), lines: 1 });
            }
            let skb = self.in_ring.pop_front().expect("it was written");
            c.program.push(Op::Load { line: self.structure(skb), lines: 1 });
            self.release(skb, c.program);
        }
    }

    /// A copy between kernel and application, of which `from` tells where each line is.
    fn copy(&self, lines: u64, from: impl Fn(u64) -> u64, to: u64, p: &mut Program) {
        p.compute(self.costs.tcp.piece);
        for i in 0..lines {
            p.push(Op::Copy { from: from(i), to: to + i, lines: 1, dependent: false });
            p.compute(self.costs.tcp.line);
        }
    }

    /// The application receives a datagram, serves it and sends its reply.
    fn serve(&mut self, c: &mut Ctx) {
        if std::mem::take(&mut self.asleep) {
            c.program.compute(self.costs.tcp.wake);
        }
        c.program.compute(self.costs.tcp.read);
        let Datagram { id, skb } = self.socket.pop_front().expect("something to receive");
        let packet = *port(c.iio.as_deref_mut()).packet(id);
        let lines = u64::from(packet.lines);
        self.held -= self.costs.true_size(lines);
        c.program.push(Op::Load { line: self.structure(skb), lines: SKB });
        let (head, frame, of_head) = (self.head(skb), self.frame(skb), self.costs.head());
        let (rx, tx) = (self.memory.user, self.memory.user + ROOM);
        self.copy(lines, |i| if i < of_head { head + i } else { frame + i }, rx, c.program);
        self.release(skb, c.program);
        let content = Content::of(&packet);
        let app = c.app.as_mut().expect("packets come for applications");
        let (answer, lines) = app.serve(c.local, &content, rx, tx, c.program);
        app.end_burst(c.local, 1, c.program);
        if let Some(s) = &mut c.spikes {
            let stall = s.draw();
            if stall > Time::ZERO {
                c.program.push(Op::Stall(stall.0));
            }
        }
        match answer {
            Answer::Reply => self.send(id, lines, tx, c),
            Answer::Forward => self.send(id, lines, rx, c),
            Answer::Gather { .. } => unreachable!("refused when the scenario was read"),
            Answer::Consumed => {
                self.consumed.push_back(id);
                c.program.push(Op::Retire { tag: Effect::Done.tag(1), stores: true });
            }
        }
        c.tally.taken += 1;
    }

    /// `sendmsg` of `lines` lines at `from`, the reply to packet `id`.
    fn send(&mut self, id: u32, lines: u16, from: u64, c: &mut Ctx) {
        let skb = self.allocate();
        let to = self.frame(skb);
        c.program.compute(self.costs.udp.send);
        c.program.push(Op::Store { line: self.structure(skb), lines: SKB });
        self.copy(lines.into(), |i| from + i, to, c.program);
        let nic = port(c.iio.as_deref_mut());
        answered(nic.packet(id), lines);
        nic.packet(id).tx_line = to;
        nic.put(self.queue, id);
        self.in_ring.push_back(skb);
        c.program.push(Op::Store { line: self.transmit.line(self.put), lines: 1 });
        self.put += 1;
        c.program.push(Op::Mmio { tag: Effect::Put.tag(1) });
    }

    /// The step ends at `now`.
    fn end(&mut self, c: &mut Ctx) {
        if let Some(since) = self.idle_since.take() {
            self.idle += c.now.saturating_sub(since);
        }
        let spent = c.now - self.since;
        match std::mem::take(&mut self.phase) {
            Phase::Idle => {}
            Phase::Poll => {
                self.polls += spent;
                if self.full_poll {
                    self.shared.get_or_insert_default();
                }
                if let Some((polls, _)) = &mut self.shared {
                    *polls += spent;
                }
                let nic = port(c.iio.as_deref_mut());
                if nic.waiting(self.queue) == 0 && nic.sent_descriptors(self.queue) == self.clean() {
                    self.polling = false;
                    self.shared = None;
                    nic.unmask_interrupt(self.queue);
                }
            }
            Phase::Serve => {
                c.tally.served(spent + std::mem::take(&mut self.polls));
                self.asleep = self.socket.is_empty();
                if let Some((_, application)) = &mut self.shared {
                    *application += spent;
                }
            }
        }
    }
}

impl Software for UdpSocket {
    fn step(&mut self, c: &mut Ctx) -> Step {
        self.end(c);
        c.program.ops.clear();
        let nic = port(c.iio.as_deref_mut());
        let due = nic.interrupt_due(self.queue);
        let asked = self.polling || due.is_some_and(|t| t <= c.now) || (self.at_once && nic.waiting(self.queue) > 0);
        let ready = !self.socket.is_empty() && self.has_room();
        let yields = ready && self.shared.is_some_and(|(polls, application)| application < polls);
        if c.stopped || !(asked || ready) {
            self.idle_since = Some(c.now);
            return due.filter(|_| !c.stopped).map_or(Step::Idle, Step::Until);
        }
        self.since = c.now;
        if asked && !yields {
            self.phase = Phase::Poll;
            self.poll(c);
        } else {
            self.phase = Phase::Serve;
            self.serve(c);
        }
        Step::Run
    }

    fn notify(&mut self, what: Notice, _: Time) -> Wakes {
        self.at_once |= matches!(what, Notice::AtOnce { .. });
        Wakes::Not // an interrupt does
    }

    fn retired(&mut self, tag: u32, c: &mut Ctx) {
        retire(tag, self.queue, &mut self.consumed, c);
    }

    fn retired_at_once(&mut self, tag: u32, m: &mut Machine) {
        self.at_once &= Effect::of(tag).0 != Effect::Armed;
        retire_at_once(tag, self.queue, &mut self.consumed, m);
    }

    fn restart_meters(&mut self, now: Time) {
        self.drops.restart();
        self.idle = Time::ZERO;
        self.polls = Time::ZERO;
        self.since = self.since.max(now);
        self.idle_since = self.idle_since.map(|s| s.max(now));
    }
}
