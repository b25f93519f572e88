//! The kernel's TCP receive path as a thread: interrupts and an application share one core.

mod network;
mod receiver;

pub use network::{received, Network, NetworkPlace};
pub use receiver::{FrameLayout, FramePlaces, ReceivedFrame, Receiver};

use super::napi::{true_size, Frame, Napi};
use super::pmd::{nic_on, retire, QueueAt};
use super::{Ctx, Notice, Software, Step, Wakes};
use crate::app::App;
use crate::device::nic::{EthernetSpec, Nic, DATA_ROOM};
use crate::kernel::units::Size;
use crate::kernel::{Int, LineAddr, PortId, QueueId, Time};
use crate::memory::LINE;
use crate::meter::life::{key_of_segment, Lives, Milestone};
use crate::traffic::dctcp::Ack;
use receiver::{Reader, ReceiverAction, ReceiverPhase};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Costs of the kernel's receive path in addition to the memory accesses that are simulated (completions, headers,
/// payload), and its parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TcpSpec {
    /// Instructions per frame in the driver, in the page allocator and in GRO.
    pub frame: u32,
    /// Instructions per merged segment: socket buffers, protocol, acknowledgement.
    pub segment: u32,
    /// Instructions per `recv` call: system call and scheduler.
    pub read: u32,
    /// Instructions per interrupt, including the start of polling.
    pub interrupt: u32,
    /// Instructions to wake the application that waits in `recv`.
    pub wake: u32,
    /// Size of a socket's receive buffer (`tcp_rmem`, with auto-tuning off). Half of the free part is advertised as
    /// window (`tcp_adv_win_scale` = 1); the other half is for the kernel's overhead in addition to payload.
    pub receive_buffer: Size,
    /// Habits of the kernel and its driver, which a platform sets; scenarios leave them alone.
    pub quirks: TcpQuirks,
}

/// Habits of the kernel's receive path that kernels and drivers differ in.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TcpQuirks {
    /// Instructions before each piece of a copy, including the start-up of the string instruction. A piece ends with
    /// its page; the head of a frame is a piece of its own.
    pub piece: u32,
    /// Instructions that copy a line, in addition to a load and a store.
    pub line: u32,
    /// Bytes at the beginning of a frame that the driver copies to the socket buffer: a multiple of 64 B.
    pub head: Size,
    /// Maximum number of frames that one poll takes (NAPI weight).
    pub poll_budget: u32,
    /// Maximum payload that GRO merges into a segment.
    pub merge: Size,
}

/// Bytes of a socket buffer's structure; `SHARED` is the number of bytes of the shared structure behind its data
/// (Linux: `sk_buff`, `skb_shared_info`).
pub const STRUCTURE: u64 = 256;
const SHARED: u64 = 320;

impl TcpSpec {
    /// Minimum number of bytes that a socket buffer takes of the receive buffer: the bytes of a frame that fits the
    /// head (Linux: `truesize`).
    pub fn small_buffer(&self) -> u64 {
        STRUCTURE + SHARED + self.quirks.head.0
    }

    /// Checks that the costs and sizes are usable.
    ///
    /// # Errors
    /// Returns one clause that names key and value.
    pub fn check(&self) -> Result<(), String> {
        if self.quirks.head.0 < LINE || self.quirks.head.0 % LINE != 0 || self.quirks.head.0 > 576 {
            return Err(format!("quirks.head = \"{}\" is not a multiple of 64 B up to 576 B", self.quirks.head));
        }
        if self.quirks.poll_budget == 0 || self.quirks.poll_budget > 1024 {
            return Err(format!("quirks.poll_budget = {} is not within 1 to 1024", self.quirks.poll_budget));
        }
        for (key, s, least) in
            [("quirks.merge", self.quirks.merge, 9600), ("receive_buffer", self.receive_buffer, 4 * 9600)]
        {
            if s.0 < least || s.0 > 1 << 30 {
                return Err(format!("{key} = \"{s}\" is not within {least} B to 1 GiB"));
            }
        }
        Ok(())
    }
}

/// Frames of a queue in memory, for a NIC that completes each frame with a line of its own.
struct QueueFrames<'a> {
    nic: &'a mut Nic,
    queue: QueueId,
}

impl FramePlaces for QueueFrames<'_> {
    fn line(&mut self, at: u64) -> LineAddr {
        self.nic.line(self.queue, at)
    }
    fn structure(&mut self, at: u64) -> LineAddr {
        self.nic.structure(self.queue, at)
    }
}

/// Frames behind descriptor rings, where each frame lies in the memory of its socket buffer.
impl FramePlaces for Napi {
    fn line(&mut self, at: u64) -> LineAddr {
        self.frame(0) + at
    }
    fn structure(&mut self, at: u64) -> LineAddr {
        Napi::structure(self, (at / self.costs.room()).to_u32())
    }
    fn free(&mut self, at: u64) {
        self.release((at / self.costs.room()).to_u32());
    }
}

/// One core of the receiving tenant, with one connection and the NIC's queue for it.
#[derive(Clone)]
pub struct TcpReceiver {
    costs: TcpSpec,
    /// State of the connection at the receiver.
    pub receiver: Receiver,
    /// Port of the NIC that the connection's frames come through.
    port: PortId,
    /// Driver of the descriptor rings in memory, where the NIC has them.
    napi: Option<Napi>,
    /// Bytes of a frame without payload.
    header: u32,
    /// Acknowledgements that found the transmit ring full.
    unsent: VecDeque<Ack>,
}

impl TcpReceiver {
    /// The receiver of one connection through `nic` on `port`, whose descriptor rings lie in memory if `ringed`.
    pub fn new(costs: &TcpSpec, port: PortId, nic: &EthernetSpec, ringed: bool) -> TcpReceiver {
        let (frame, payload) = (nic.frame_lines(), nic.payload());
        let (page, size) = if ringed {
            let room = nic.rings.as_ref().map_or(Size(DATA_ROOM), |r| r.buffer_size);
            (room.0 / LINE, true_size(costs, frame, room))
        } else {
            // A segment takes its payload, and at least a small socket buffer.
            (nic.page.0 / LINE, payload.max(costs.small_buffer()))
        };
        let receiver = Receiver::new(costs, FrameLayout { frame, page }, payload, size);
        let header = (nic.frame_bytes() - payload).to_u32();
        TcpReceiver { costs: costs.clone(), receiver, port, napi: None, header, unsent: VecDeque::new() }
    }

    /// Attaches the receiver to descriptor rings in memory.
    #[must_use]
    pub fn behind(self, napi: Napi) -> TcpReceiver {
        TcpReceiver { napi: Some(napi), ..self }
    }

    /// Makes the acknowledgements of the step that has ended: one for each merged segment, and one for a window that
    /// has opened.
    fn make_acknowledgements(&mut self, opened: bool, flow: u8, mut say: impl FnMut(Ack)) {
        let r = &mut self.receiver;
        if !opened && r.merged().is_empty() {
            return;
        }
        let (next, edge) = r.acknowledge();
        for m in r.merged() {
            say(Ack { flow, next: m.next, from: m.from, to: m.to, edge, marked: m.marked });
        }
        if opened {
            say(Ack { flow, next, from: next, to: next, edge, marked: 0 });
        }
    }

    /// Passes on to the lives of segments of `queue` what the step that has ended has done: the protocol has processed
    /// segments, or the application has copied one.
    fn note(&self, ended: ReceiverPhase, queue: QueueId, c: &mut Ctx) {
        let (r, key) = (&self.receiver, |seq| key_of_segment(queue.index(), seq));
        let now = c.step.now;
        let Some(l) = lives(c, self.port) else { return };
        for seq in r.merged().iter().flat_map(|m| m.from..m.to) {
            match seq < r.copied {
                true => l.forget(key(seq)), // a duplicate
                false => l.mark(key(seq), Milestone::Delivered),
            }
        }
        if ended == ReceiverPhase::Copy {
            l.ended(key(r.copied - 1), now, &[]);
        }
    }

    /// Ends a phase of the core and begins the next one, with descriptor rings in memory.
    fn step_ring(&mut self, napi: &mut Napi, c: &mut Ctx) -> Step {
        let (ended, spent) = (self.receiver.phase, c.step.now - self.receiver.since);
        let (opened, _) = self.receiver.end(c.step.now);
        let queue = napi.at().queue;
        self.note(ended, queue, c);
        match ended {
            ReceiverPhase::Idle => {}
            ReceiverPhase::Poll => napi.end_poll(spent, c),
            ReceiverPhase::Copy | ReceiverPhase::Release => napi.end_rest(spent),
        }
        let mut unsent = std::mem::take(&mut self.unsent);
        self.make_acknowledgements(opened, c.step.local.to_u8(), |a| unsent.push_back(a));
        c.program.ops.clear();
        if c.step.stopped {
            return Step::Idle;
        }
        while napi.has_room() {
            let Some(a) = unsent.pop_front() else { break };
            let id = napi.send_header(self.header, c);
            if let Some(network) = c.roles.get_mut::<Network>() {
                network.senders().bind_acknowledgement(id, a);
            }
        }
        self.unsent = unsent;
        let (due, rest, port) = (napi.is_due(c), self.receiver.rest(), self.port);
        let room = napi.costs.room();
        let r = &mut self.receiver;
        match rest {
            _ if due && !(rest != ReceiverAction::Nothing && napi.yields()) => {
                r.begin_poll();
                napi.poll(c, |_, Frame { id, skb, .. }, c| {
                    let nic = nic_on(c.machine.iio.as_deref_mut(), port);
                    let p = nic.packet(id);
                    let (seq, marked, at) = (p.key.to_u32(), p.marked, u64::from(skb) * room);
                    p.done = true;
                    nic.life_goes_on(id, key_of_segment(queue.index(), seq));
                    nic.end_use(id);
                    r.merge(ReceivedFrame { seq, marked, completion: LineAddr(0), at, last: false });
                });
                r.end_poll(&self.costs, c.program, napi);
            }
            ReceiverAction::Copy => match Self::reader(c) {
                Some(reader) => {
                    note_copy(key_of_segment(queue.index(), r.copied), port, c);
                    c.tally.operations += r.copy(&self.costs, c.program, reader, napi);
                }
                None => return Step::Idle,
            },
            // There may be no memory to free, but an acknowledgement to send.
            _ if rest == ReceiverAction::Release || !c.program.ops.is_empty() => {
                r.release(&self.costs, c.program, napi)
            }
            _ => return napi.interrupt_due(c).map_or(Step::Idle, Step::Until),
        }
        r.since = c.step.now;
        Step::Run
    }

    /// The application's buffer, as `recv` uses it.
    fn reader(c: &Ctx) -> Option<Reader> {
        let Some(App::TcpReceive(app)) = &c.app else { return None };
        let (buffer, lines) = app.buffer(c.step.local);
        Some(Reader { buffer, lines, gap_instructions: app.gap_instructions })
    }

    /// Ends a phase of the core and begins the next one, with a NIC that completes each frame with a line of its own.
    fn step_completions(&mut self, c: &mut Ctx) -> Step {
        let Some(nic) = c.machine.iio.as_mut().and_then(|i| i.nic_mut(self.port)) else { return Step::Idle };
        let (r, queue) = (&mut self.receiver, QueueId::new(c.step.local));
        let (polled, ended) = (r.is_polling(), r.phase);
        let (opened, descriptors) = r.end(c.step.now);
        if polled && !r.is_polling() {
            nic.unmask_interrupt(queue, c.step.now);
        }
        nic.replenish(queue, descriptors, c.step.now);
        self.note(ended, queue, c);
        if let Some(network) = c.roles.get_mut::<Network>() {
            let (senders, cal, now) = (network.senders(), &mut *c.machine.cal, c.step.now);
            self.make_acknowledgements(opened, c.step.local.to_u8(), |a| senders.acknowledge(cal, a, now));
        }
        let Some(nic) = c.machine.iio.as_mut().and_then(|i| i.nic_mut(self.port)) else { return Step::Idle };
        let (r, costs) = (&mut self.receiver, &self.costs);
        let choice =
            if c.step.stopped { ReceiverAction::Nothing } else { r.choose(c.step.now, nic.interrupt_due(queue)) };
        c.program.ops.clear();
        if choice == ReceiverAction::Poll {
            nic.mask_interrupt(queue);
            if let Some(l) = &mut nic.lives {
                r.next_polled().for_each(|seq| l.mark(key_of_segment(queue.index(), seq), Milestone::Taken));
            }
        }
        let mut frames = QueueFrames { nic, queue };
        match choice {
            ReceiverAction::Poll => r.poll(costs, c.program, &mut frames),
            ReceiverAction::Copy => {
                let Some(App::TcpReceive(app)) = &c.app else { return Step::Idle };
                let (buffer, lines) = app.buffer(c.step.local);
                if let Some(l) = &mut frames.nic.lives {
                    l.mark(key_of_segment(queue.index(), r.copied), Milestone::Served);
                }
                let reader = Reader { buffer, lines, gap_instructions: app.gap_instructions };
                c.tally.operations += r.copy(costs, c.program, reader, &mut frames);
            }
            ReceiverAction::Release => r.release(costs, c.program, &mut frames),
            ReceiverAction::Until(at) => return Step::Until(at),
            ReceiverAction::Nothing => return Step::Idle,
        }
        r.since = c.step.now;
        Step::Run
    }
}

/// Lives of the packets of the NIC on `port`, where the run records lives.
fn lives<'a>(c: &'a mut Ctx, port: PortId) -> Option<&'a mut Lives> {
    nic_on(c.machine.iio.as_deref_mut(), port).lives.as_deref_mut()
}

/// Passes on to the life of segment `key` that the application begins to copy it.
fn note_copy(key: usize, port: PortId, c: &mut Ctx) {
    lives(c, port).into_iter().for_each(|l| l.mark(key, Milestone::Served));
}

impl Software for TcpReceiver {
    fn step(&mut self, c: &mut Ctx) -> Step {
        match self.napi.take() {
            None => self.step_completions(c),
            Some(mut napi) => {
                let next = self.step_ring(&mut napi, c);
                self.napi = Some(napi);
                next
            }
        }
    }

    fn retired(&mut self, tag: u32, c: &mut Ctx) {
        // Frames end with their poll.
        let at = QueueAt { port: self.port, queue: QueueId::new(c.step.local) };
        retire(tag, at, &mut VecDeque::new(), c);
    }

    fn notify(&mut self, what: Notice, _: Time) -> Wakes {
        if let Notice::Frame(f) = what {
            self.receiver.landed(f);
        }
        Wakes::Not // an interrupt does
    }

    fn restart_meters(&mut self, now: Time) {
        self.receiver.restart_meters(now);
    }

    fn idle(&self, since: Time, now: Time) -> Option<Time> {
        Some((now - since).saturating_sub(self.receiver.busy.total()))
    }
}
