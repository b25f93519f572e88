//! NAPI over descriptor rings in memory: the kernel's driver of one queue, for frames of any protocol.
//!
//! ```text
//!   interrupt --> poll: sent buffers freed; descriptors, frames, socket buffers --> protocol
//!                  ^ all found: interrupts again            |
//!                  +-- budget spent: turns with the rest <--+
//! ```
//!
//! A poll has priority over the core's other work. A poll that has used up its budget leaves the remaining frames to a
//! kernel thread, which gets half of the core while the application has work (ksoftirqd).

use super::itr::{Itr, PollCounts};
use super::pmd::{nic_on, DriverEffect, QueueAt};
use super::tcp::{TcpSpec, STRUCTURE};
use super::udp::UdpSpec;
use super::Ctx;
use crate::core::{Op, Program};
use crate::device::nic::{Nic, Packet, RingLayout, RingsSpec};
use crate::kernel::units::Size;
use crate::kernel::{Int, LineAddr, PacketId, PortId, QueueId, Time};
use crate::memory::{LINE, LINE_U32};
use std::collections::VecDeque;

/// Lines of a socket buffer's structure.
pub const SKB: u32 = (STRUCTURE / LINE) as u32;

/// Costs of the kernel's path for frames.
#[derive(Clone, Debug)]
pub struct KernelCosts {
    /// Costs of TCP.
    pub tcp: TcpSpec,
    /// Costs of UDP.
    pub udp: UdpSpec,
    /// Memory for one frame.
    room: Size,
    /// Maximum number of socket buffers that wait in a socket.
    queued: u64,
}

impl KernelCosts {
    /// Costs for a UDP socket, whose receive buffer may be full of the smallest datagrams.
    pub fn of_udp(tcp: TcpSpec, udp: UdpSpec, rings: &RingsSpec) -> KernelCosts {
        let room = rings.buffer_size;
        let queued = udp.receive_buffer.0 / true_size(&tcp, 1, room) + 2;
        KernelCosts { tcp, udp, room, queued }
    }

    /// Costs for a TCP connection whose frames have `lines` lines. Each segment may arrive twice, and a merged segment
    /// is freed as a whole.
    pub fn of_tcp(tcp: TcpSpec, udp: UdpSpec, rings: &RingsSpec, lines: u64) -> KernelCosts {
        let room = rings.buffer_size;
        let queued = 2 * (tcp.receive_buffer.0 + tcp.quirks.merge.0) / true_size(&tcp, lines, room);
        KernelCosts { tcp, udp, room, queued }
    }

    /// Lines of a frame's head, which the driver copies to the socket buffer.
    pub fn head(&self) -> u64 {
        self.tcp.quirks.head.0 / LINE
    }

    /// Bytes of a socket's receive buffer that a frame of `lines` lines takes.
    pub fn true_size(&self, lines: u64) -> u64 {
        true_size(&self.tcp, lines, self.room)
    }

    /// Lines of the memory for one frame.
    pub fn room(&self) -> u64 {
        self.room.0 / LINE
    }

    /// Number of a core's socket buffers: as many as both rings, a full socket and a poll hold.
    fn buffers(&self, rings: &RingsSpec) -> u64 {
        u64::from(rings.receive + rings.transmit + self.tcp.quirks.poll_budget) + self.queued
    }

    /// Lines of the socket buffers' structures with the heads of frames, and lines of the memory for frames.
    pub fn lines(&self, rings: &RingsSpec) -> (u64, u64) {
        let n = self.buffers(rings);
        (n * (u64::from(SKB) + self.head()), n * self.room())
    }
}

/// Bytes of a socket's receive buffer that a frame of `lines` lines takes in memory of size `room` (Linux: `truesize`).
pub fn true_size(tcp: &TcpSpec, lines: u64, room: Size) -> u64 {
    let frame = if lines > tcp.quirks.head.0 / LINE { room.0 } else { 0 };
    tcp.small_buffer() + frame
}

/// First lines of the memory where a core's kernel keeps socket buffers and frames.
#[derive(Clone, Copy, Debug)]
pub struct BufferMemory {
    /// First line of the socket buffers.
    pub structures: LineAddr,
    /// First line of the frames.
    pub frames: LineAddr,
}

/// Frame that a poll has taken.
#[derive(Clone, Copy)]
pub struct Frame {
    /// Record of the packet in the NIC.
    pub id: PacketId,
    /// Number of lines of the frame.
    pub lines: u64,
    /// Number of the socket buffer.
    pub skb: u32,
}

/// The driver's state for one queue.
#[derive(Clone)]
pub struct Napi {
    /// Costs of the kernel's path.
    pub costs: KernelCosts,
    /// Port of the NIC that the driver has `queue` of.
    pub port: PortId,
    /// Queue that the driver serves.
    pub queue: QueueId,
    receive: RingLayout,
    transmit: RingLayout,
    memory: BufferMemory,
    /// Free socket buffers; the most recently freed one is allocated first.
    free: Vec<u32>,
    /// Number of receive descriptors taken.
    taken: u64,
    /// Number of transmit descriptors written.
    put: u64,
    /// Socket buffers in transmit descriptors that have not been freed, with the bytes of their frames.
    in_ring: VecDeque<(u32, u32)>,
    polling: bool,
    full_poll: bool,
    /// Time of polls, and time of other work, since the first poll that used up its budget; None while no poll has used
    /// up its budget.
    shared: Option<(Time, Time)>,
    /// Interrupt throttling, if configured.
    itr: Option<Itr>,
    /// Counts of the received and of the sent packets that polls have found since the interrupt.
    found: [PollCounts; 2],
    /// Interrupts since the restart.
    pub interrupts: u64,
}

impl Napi {
    /// The driver of `queue` of `nic`, with all receive descriptors armed.
    pub fn new(costs: KernelCosts, rings: &RingsSpec, queue: QueueId, memory: BufferMemory, nic: &mut Nic) -> Napi {
        let (receive, transmit) = nic.layouts(queue);
        let mut n = Napi {
            free: (0..costs.buffers(rings).to_u32()).rev().collect(),
            costs,
            port: nic.port().expect("a NIC with descriptor rings is behind a port"),
            queue,
            receive,
            transmit,
            memory,
            taken: 0,
            put: 0,
            in_ring: VecDeque::with_capacity(transmit.usable().to_usize()),
            polling: false,
            full_poll: false,
            shared: None,
            itr: Itr::new(rings.quirks.throttle),
            found: Default::default(),
            interrupts: 0,
        };
        for _ in 0..receive.usable() {
            let skb = n.allocate();
            nic.arm(queue, skb, n.frame(skb));
        }
        nic.start_armed(queue);
        n.set_itr(nic);
        n
    }

    pub(super) fn at(&self) -> QueueAt {
        QueueAt { port: self.port, queue: self.queue }
    }

    /// Sets the NIC's minimum time between interrupts to that of the throttling state.
    fn set_itr(&self, nic: &mut Nic) {
        if let Some(itr) = &self.itr {
            nic.throttle(self.queue, itr.interval());
        }
    }

    /// Takes a free socket buffer; returns its number.
    pub fn allocate(&mut self) -> u32 {
        self.free.pop().expect("there are as many as rings, socket and a poll hold")
    }

    /// First line of a socket buffer's structure; the head of its frame follows.
    pub fn structure(&self, skb: u32) -> LineAddr {
        self.memory.structures + u64::from(skb) * (u64::from(SKB) + self.costs.head())
    }
    /// First line of the head of the frame of socket buffer `skb`.
    pub fn head(&self, skb: u32) -> LineAddr {
        self.structure(skb) + u64::from(SKB)
    }
    /// First line of the frame of socket buffer `skb`.
    pub fn frame(&self, skb: u32) -> LineAddr {
        self.memory.frames + u64::from(skb) * self.costs.room()
    }

    /// Whether the transmit ring has room for a descriptor.
    pub fn has_room(&self) -> bool {
        (self.in_ring.len().to_u64()) < self.transmit.usable()
    }

    /// Number of transmit descriptors whose socket buffers have been freed.
    fn clean(&self) -> u64 {
        self.put - self.in_ring.len().to_u64()
    }

    /// Whether a poll is due: an interrupt is due, or the last poll left frames in the ring.
    pub fn is_due(&self, c: &mut Ctx) -> bool {
        self.polling || self.interrupt_due(c).is_some_and(|t| t <= c.step.now)
    }

    /// Time at which the interrupt is due that the queue has requested.
    pub fn interrupt_due(&self, c: &mut Ctx) -> Option<Time> {
        nic_on(c.machine.iio.as_deref_mut(), self.port).interrupt_due(self.queue)
    }

    /// Whether polls have had more of the core's time than the other work, which is ready to run.
    pub fn yields(&self) -> bool {
        self.shared.is_some_and(|(polls, rest)| rest < polls)
    }

    /// Polls the queue: frees socket buffers that have been sent, and passes frames up to the budget to `protocol`.
    pub fn poll(&mut self, c: &mut Ctx, mut protocol: impl FnMut(&mut Napi, Frame, &mut Ctx)) {
        if !self.polling {
            self.polling = true;
            self.interrupts += 1;
            self.found = Default::default();
            nic_on(c.machine.iio.as_deref_mut(), self.port).mask_interrupt(self.queue);
            c.program.compute(self.costs.tcp.interrupt);
        }
        self.reclaim(c);
        let waiting = nic_on(c.machine.iio.as_deref_mut(), self.port).waiting(self.queue);
        let n = waiting.min(self.costs.tcp.quirks.poll_budget.to_usize());
        self.full_poll = n < waiting;
        for i in 0..n {
            if i == 0 || self.receive.begins_line(self.taken) {
                c.program.push(Op::Load { line: self.receive.line(self.taken), lines: 1 });
            }
            let frame = self.frame_came(c);
            protocol(self, frame, c);
        }
        if n > 0 {
            if !self.receive.begins_line(self.taken) {
                c.program.push(Op::Store { line: self.receive.line(self.taken), lines: 1 });
            }
            c.program.push(Op::Mmio { tag: DriverEffect::Armed(n.to_u32()).tag() });
        }
    }

    /// Takes the next frame from the receive ring.
    fn frame_came(&mut self, c: &mut Ctx) -> Frame {
        let (p, nic) = (&mut *c.program, nic_on(c.machine.iio.as_deref_mut(), self.port));
        let id = nic.take(self.queue).expect("it waits");
        let (buffer, data, lines) = (nic.packet(id).buffer, nic.packet(id).line, u64::from(nic.packet(id).lines));
        self.found[0].add(nic.packet(id).rx_bytes);
        let head = lines.min(self.costs.head());
        // The descriptor contains the frame's address, and the frame's header identifies the socket.
        p.push(Op::Load { line: data, lines: head.to_u32() });
        p.push(Op::Fence);
        p.compute(self.costs.tcp.frame);
        let other = self.allocate();
        // A frame that fits the head leaves its buffer to the next frame; a longer frame keeps its buffer.
        let (skb, fresh) = if lines == head { (other, buffer) } else { (buffer, other) };
        p.push(Op::Store { line: self.structure(skb), lines: SKB });
        p.push(Op::Store { line: self.head(skb), lines: head.to_u32() });
        let line = self.receive.line(self.taken);
        self.taken += 1;
        if self.receive.begins_line(self.taken) {
            p.push(Op::Store { line, lines: 1 });
        }
        nic.arm(self.queue, fresh, self.frame(fresh));
        Frame { id, lines, skb }
    }

    /// Frees socket buffer `skb`.
    pub fn release(&mut self, skb: u32) {
        self.free.push(skb);
    }

    /// Frees the socket buffers that have been sent.
    fn reclaim(&mut self, c: &mut Ctx) {
        let clean = self.clean();
        let sent = nic_on(c.machine.iio.as_deref_mut(), self.port).sent_descriptors(self.queue);
        for i in clean..sent {
            if i == clean || self.transmit.begins_line(i) {
                c.program.push(Op::Load { line: self.transmit.line(i), lines: 1 });
            }
            let (skb, bytes) = self.in_ring.pop_front().expect("it was written");
            self.found[1].add(bytes);
            c.program.push(Op::Load { line: self.structure(skb), lines: 1 });
            c.program.compute(self.costs.udp.free);
            self.release(skb);
        }
    }

    /// Copies `lines` lines between kernel and application; `from` returns the source of each line.
    pub fn copy(&self, lines: u64, from: impl Fn(u64) -> LineAddr, to: LineAddr, p: &mut Program) {
        p.compute(self.costs.tcp.quirks.piece);
        for i in 0..lines {
            p.push(Op::Copy { from: from(i), to: to + i, lines: 1, dependent: false, behind: false });
            p.compute(self.costs.tcp.quirks.line);
        }
    }

    /// Gives packet `id`, which lies in the frame of `skb`, to the NIC.
    pub fn transmit(&mut self, id: PacketId, skb: u32, c: &mut Ctx) {
        let nic = nic_on(c.machine.iio.as_deref_mut(), self.port);
        nic.packet(id).tx_line = self.frame(skb);
        nic.put(self.queue, id);
        self.in_ring.push_back((skb, nic.packet(id).tx_bytes));
        c.program.push(Op::Store { line: self.transmit.line(self.put), lines: 1 });
        self.put += 1;
        c.program.push(Op::Mmio { tag: DriverEffect::Put(1).tag() });
    }

    /// Sends a frame of `bytes` bytes without payload; returns its packet.
    pub fn send_header(&mut self, bytes: u32, c: &mut Ctx) -> PacketId {
        let skb = self.allocate();
        c.program.push(Op::Store { line: self.structure(skb), lines: SKB });
        c.program.push(Op::Store { line: self.frame(skb), lines: bytes.div_ceil(LINE_U32) });
        let packet = Packet { queue: self.queue, wire_bytes: bytes, arrived: c.step.now, uses: 1, ..Packet::default() };
        let id = nic_on(c.machine.iio.as_deref_mut(), self.port).originate(packet);
        self.transmit(id, skb, c);
        id
    }

    /// Ends a poll that took `spent`. When the poll has found every frame, the function unmasks the queue's interrupt.
    pub fn end_poll(&mut self, spent: Time, c: &mut Ctx) {
        if self.full_poll {
            self.shared.get_or_insert_default();
        }
        if let Some((polls, _)) = &mut self.shared {
            *polls += spent;
        }
        let nic = nic_on(c.machine.iio.as_deref_mut(), self.port);
        if nic.waiting(self.queue) == 0 && nic.sent_descriptors(self.queue) == self.clean() {
            self.polling = false;
            self.shared = None;
            if let Some(itr) = &mut self.itr {
                itr.ended(self.found);
            }
            self.set_itr(nic);
            nic.unmask_interrupt(self.queue, c.step.now);
        }
    }

    /// Records that the core's other work has taken `spent`.
    pub fn end_rest(&mut self, spent: Time) {
        if let Some((_, rest)) = &mut self.shared {
            *rest += spent;
        }
    }
}
