//! UDP sockets of the kernel (Linux with NAPI): interrupts and an application share a core, and each core has a socket.
//!
//! ```text
//!   NAPI's poll --> socket queue --full--> lost
//!                       |
//!                       v (wakes the application)
//!   NAPI's ring <-- socket buffer <-- sendmsg <-- application <-- recvmsg: copied to its buffer
//! ```

use super::idle_time::IdleTime;
use super::napi::{BufferMemory, Frame, KernelCosts, Napi, SKB};
use super::pmd::{answered, nic_on, retire, retire_functional, DriverEffect};
use super::{Ctx, Notice, Software, Step, Wakes};
use crate::app::{Content, ServeOutcome};
use crate::core::{Op, Program};
use crate::device::nic::DATA_ROOM;
use crate::device::nic::{Nic, Packet, RingsSpec};
use crate::kernel::units::Size;
use crate::kernel::{LineAddr, PacketId, QueueId, Time};
use crate::machine::Machine;
use crate::meter::drops::{DropCause, DropLedger, DropPlace};
use crate::meter::life::Milestone;
use crate::traffic::software::SoftwareClient;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Costs of datagrams in the kernel, in addition to the costs that TCP shares. `[tcp]` has the costs of frames,
/// interrupts, wake-ups, calls that receive, and copies.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UdpSpec {
    /// Instructions per received datagram: IP, UDP, the socket's queue.
    pub receive: u32,
    /// Instructions per `sendmsg` call: system call, UDP, IP, queueing discipline, driver.
    pub send: u32,
    /// Instructions per freed socket buffer.
    pub free: u32,
    /// Size of a socket's receive buffer (`rmem_default`), which counts socket buffers with all their overhead.
    pub receive_buffer: Size,
}

impl UdpSpec {
    /// Checks that the costs are usable.
    ///
    /// # Errors
    /// Returns one clause that names key and value.
    pub fn check(&self) -> Result<(), String> {
        let (b, least) = (self.receive_buffer, DATA_ROOM);
        if b.0 < least || b.0 > 1 << 24 {
            return Err(format!("receive_buffer = \"{b}\" is not within {least} B to 16 MiB"));
        }
        Ok(())
    }
}

/// Number of the application's buffers: one to receive into and one to send from.
pub const USER_BUFFERS: u64 = 2;

/// A datagram in the socket's queue: its packet and its socket buffer.
#[derive(Clone, Copy)]
struct QueuedDatagram {
    id: PacketId,
    skb: u32,
}

/// Present activity of the core.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum SocketPhase {
    #[default]
    Idle,
    Poll,
    Serve,
    /// Sends a request of a load generator.
    Ask,
}

/// One core with a socket and a pair of rings.
#[derive(Clone)]
pub struct UdpSocket {
    napi: Napi,
    /// First line of the application's buffers.
    user: LineAddr,
    socket: VecDeque<QueuedDatagram>,
    /// Number of bytes of the receive buffer that the datagrams in the socket's queue take.
    held: u64,
    /// Ledger of the datagrams that the full socket has lost.
    pub drops: DropLedger,
    /// Packets that are completed when their program retires.
    consumed: VecDeque<PacketId>,
    /// Whether the application waits in `recvmsg`.
    asleep: bool,
    /// Whether the application, a load generator, sends before it receives again: it takes turns.
    asks_next: bool,
    phase: SocketPhase,
    since: Time,
    /// Time of polls that has not been charged to any request.
    polls: Time,
    idle: IdleTime,
    /// Whether packets arrive in functional mode, without timing.
    at_once: bool,
}

impl UdpSocket {
    /// The socket that receives from `queue` of `nic`; the application's buffers begin at line `user`.
    pub fn new(
        costs: KernelCosts,
        rings: &RingsSpec,
        queue: QueueId,
        (memory, user): (BufferMemory, LineAddr),
        nic: &mut Nic,
    ) -> UdpSocket {
        UdpSocket {
            napi: Napi::new(costs, rings, queue, memory, nic),
            user,
            socket: VecDeque::with_capacity(256),
            held: 0,
            drops: DropLedger::default(),
            consumed: VecDeque::with_capacity(4),
            asleep: true,
            asks_next: true,
            phase: SocketPhase::Idle,
            since: Time::ZERO,
            polls: Time::ZERO,
            idle: IdleTime::from_start(),
            at_once: false,
        }
    }

    /// Performs NAPI's poll: frames pass through the protocol to the socket's queue.
    fn poll(&mut self, c: &mut Ctx) {
        let (socket, held, drops) = (&mut self.socket, &mut self.held, &mut self.drops);
        self.napi.poll(c, |napi, Frame { id, lines, skb }, c| {
            c.program.compute(napi.costs.udp.receive);
            if *held > napi.costs.udp.receive_buffer.0 {
                let nic = nic_on(c.machine.iio.as_deref_mut(), napi.port);
                nic.packet(id).done = true;
                nic.end_use(id);
                drops.record(DropPlace::Socket, DropCause::SocketFull, c.step.now);
                free(napi, skb, c.program);
            } else {
                *held += napi.costs.true_size(lines);
                socket.push_back(QueuedDatagram { id, skb });
            }
        });
    }

    /// Lets the application receive a datagram, serve it and send its reply.
    fn serve(&mut self, c: &mut Ctx) {
        if std::mem::take(&mut self.asleep) {
            c.program.compute(self.napi.costs.tcp.wake);
        }
        c.program.compute(self.napi.costs.tcp.read);
        let QueuedDatagram { id, skb } = self.socket.pop_front().expect("something to receive");
        let nic = nic_on(c.machine.iio.as_deref_mut(), self.napi.port);
        nic.passes(id, Milestone::Served);
        let packet = *nic.packet(id);
        let lines = u64::from(packet.lines);
        let napi = &mut self.napi;
        self.held -= napi.costs.true_size(lines);
        c.program.push(Op::Load { line: napi.structure(skb), lines: SKB });
        let (head, frame, of_head) = (napi.head(skb), napi.frame(skb), napi.costs.head());
        let (rx, tx) = (self.user, self.user + napi.costs.room());
        napi.copy(lines, |i| if i < of_head { head + i } else { frame + i }, rx, c.program);
        free(napi, skb, c.program);
        let content = Content::of(&packet);
        let app = c.app.as_mut().expect("packets come for applications");
        let (answer, lines) = app.serve(c.step.local, &content, rx, tx, c.program);
        app.end_burst(c.step.local, 1, c.program);
        if let Some(s) = &mut c.traffic.spikes {
            let stall = s.draw();
            if stall > Time::ZERO {
                c.program.push(Op::Stall(stall.0));
            }
        }
        match answer {
            ServeOutcome::Reply => self.send(id, lines, tx, c),
            ServeOutcome::Forward => self.send(id, lines, rx, c),
            ServeOutcome::Gather { .. } => unreachable!("refused when the scenario was read"),
            ServeOutcome::Consumed => {
                self.consumed.push_back(id);
                c.program.push(Op::Retire { tag: DriverEffect::Done(1).tag(), stores: true });
            }
        }
        c.tally.taken += 1;
    }

    /// Performs `sendmsg` of `lines` lines from line `from` on, as the reply to packet `id`.
    fn send(&mut self, id: PacketId, lines: u16, from: LineAddr, c: &mut Ctx) {
        answered(nic_on(c.machine.iio.as_deref_mut(), self.napi.port).packet(id), lines);
        self.send_packet(id, lines, from, c);
    }

    /// Performs `sendmsg` of packet `id`, whose `lines` lines begin at line `from`.
    fn send_packet(&mut self, id: PacketId, lines: u16, from: LineAddr, c: &mut Ctx) {
        let napi = &mut self.napi;
        let skb = napi.allocate();
        c.program.compute(napi.costs.udp.send);
        c.program.push(Op::Store { line: napi.structure(skb), lines: SKB });
        napi.copy(lines.into(), |i| from + i, napi.frame(skb), c.program);
        napi.transmit(id, skb, c);
    }

    /// Lets the application, a load generator, write the next request that is due, and send it.
    fn ask(&mut self, c: &mut Ctx) {
        if std::mem::take(&mut self.asleep) {
            c.program.compute(self.napi.costs.tcp.wake);
        }
        let Some(request) = c.roles.get_mut::<SoftwareClient>().and_then(|l| l.next(c.step.local)) else { return };
        let (content, tx) = (Content::of(&request.packet), self.user + self.napi.costs.room());
        let app = c.app.as_mut().expect("an application sends");
        app.make(c.step.local, &content, tx, c.program);
        let packet = Packet {
            queue: self.napi.queue,
            wire_bytes: content.wire_bytes,
            arrived: c.step.now,
            uses: 1,
            ..Packet::default()
        };
        let nic = nic_on(c.machine.iio.as_deref_mut(), self.napi.port);
        let id = nic.originate(packet);
        nic.request_begins(id, request.number);
        if let Some(l) = c.roles.get_mut::<SoftwareClient>() {
            l.sends(id, request, c.step.now);
        }
        self.send_packet(id, content.lines, tx, c);
    }

    /// Ends the step.
    fn end(&mut self, c: &mut Ctx) {
        self.idle.end(c.step.now);
        let spent = c.step.now - self.since;
        match std::mem::take(&mut self.phase) {
            SocketPhase::Idle => {}
            SocketPhase::Poll => {
                self.polls += spent;
                self.napi.end_poll(spent, c);
            }
            SocketPhase::Serve => {
                c.tally.served(spent + std::mem::take(&mut self.polls));
                self.asleep = self.socket.is_empty();
                self.napi.end_rest(spent);
            }
            SocketPhase::Ask => {
                self.asleep = self.socket.is_empty();
                self.napi.end_rest(spent);
            }
        }
    }
}

/// Frees a socket buffer.
fn free(napi: &mut Napi, skb: u32, p: &mut Program) {
    p.compute(napi.costs.udp.free);
    napi.release(skb);
}

impl Software for UdpSocket {
    fn step(&mut self, c: &mut Ctx) -> Step {
        self.end(c);
        c.program.ops.clear();
        let at_once = self.at_once && nic_on(c.machine.iio.as_deref_mut(), self.napi.port).waiting(self.napi.queue) > 0;
        let asked = self.napi.is_due(c) || at_once;
        let ready = !self.socket.is_empty() && self.napi.has_room();
        let due = c.roles.get::<SoftwareClient>().is_some_and(|l| l.is_due(c.step.local)) && self.napi.has_room();
        if c.step.stopped || !(asked || ready || due) {
            self.idle.begin(c.step.now);
            return self.napi.interrupt_due(c).filter(|_| !c.step.stopped).map_or(Step::Idle, Step::Until);
        }
        self.since = c.step.now;
        if asked && !((ready || due) && self.napi.yields()) {
            self.phase = SocketPhase::Poll;
            self.poll(c);
        } else if due && (self.asks_next || !ready) {
            (self.phase, self.asks_next) = (SocketPhase::Ask, false);
            self.ask(c);
        } else {
            (self.phase, self.asks_next) = (SocketPhase::Serve, true);
            self.serve(c);
        }
        Step::Run
    }

    fn notify(&mut self, what: Notice, _: Time) -> Wakes {
        self.at_once |= matches!(what, Notice::Functional { .. });
        match what {
            Notice::Begin => Wakes::Now, // a timer of the load generator
            _ => Wakes::Not,             // an interrupt does
        }
    }

    fn retired(&mut self, tag: u32, c: &mut Ctx) {
        retire(tag, self.napi.at(), &mut self.consumed, c);
    }

    fn retired_functional(&mut self, tag: u32, m: &mut Machine) {
        self.at_once &= !matches!(DriverEffect::of(tag), DriverEffect::Armed(_));
        retire_functional(tag, self.napi.at(), &mut self.consumed, m);
    }

    fn restart_meters(&mut self, now: Time) {
        self.drops.restart();
        self.idle.restart(now);
        self.polls = Time::ZERO;
        self.since = self.since.max(now);
    }

    fn idle(&self, _since: Time, now: Time) -> Option<Time> {
        Some(self.idle.total(now))
    }
}
