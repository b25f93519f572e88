//! Side effects of drivers' programs in addition to memory accesses: descriptors handed over, and packets completed.

use super::loopback;
use crate::device::iio::Iio;
use crate::device::nic::{Nic, Packet};
use crate::device::{NicAt, RingSide};
use crate::kernel::{Int, PacketId, PortId, QueueId};
use crate::machine::Machine;
use crate::memory::LINE_U32;
use crate::stack::{qp, Ctx};
use crate::traffic::software::SoftwareClient;
use std::collections::VecDeque;

/// Side effects that a program's `Op::Retire` and `Op::Mmio` carry, with a number of descriptors or packets, or a
/// packet's record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::stack) enum DriverEffect {
    /// A doorbell moves the tail of the receive ring.
    Armed(u32),
    /// A doorbell moves the tail of the transmit ring.
    Put(u32),
    /// Packets are consumed without a reply.
    Done(u32),
    /// Packets have been put into the software ring.
    Passed(u32),
    /// The time stamp of the packet with this record is written.
    Stamp(PacketId),
    /// The returned packet with this record has been read.
    Seen(PacketId),
}

impl DriverEffect {
    /// The number that represents the side effect in an op.
    pub fn tag(self) -> u32 {
        let (kind, n) = match self {
            DriverEffect::Armed(n) => (0, n),
            DriverEffect::Put(n) => (1, n),
            DriverEffect::Done(n) => (2, n),
            DriverEffect::Passed(n) => (3, n),
            DriverEffect::Stamp(id) => (4, id.index().to_u32()),
            DriverEffect::Seen(id) => (5, id.index().to_u32()),
        };
        n << 3 | kind
    }
    /// The side effect that `tag` represents.
    pub fn of(tag: u32) -> DriverEffect {
        let n = tag >> 3;
        match tag & 7 {
            0 => DriverEffect::Armed(n),
            1 => DriverEffect::Put(n),
            2 => DriverEffect::Done(n),
            3 => DriverEffect::Passed(n),
            4 => DriverEffect::Stamp(PacketId::new(n.to_usize())),
            _ => DriverEffect::Seen(PacketId::new(n.to_usize())),
        }
    }
}

/// Sets the length of the reply to a packet to `lines` lines; a reply with as many lines as the packet has the packet's
/// bytes.
pub(in crate::stack) fn answered(packet: &mut Packet, lines: u16) {
    let whole = u32::from(lines) * LINE_U32;
    packet.tx_lines = lines;
    packet.tx_bytes = if lines == packet.lines { whole.min(packet.rx_bytes) } else { whole };
}

/// Queue of a NIC on a port, which a driver drives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::stack) struct QueueAt {
    pub port: PortId,
    pub queue: QueueId,
}

/// Performs a program's side effect at queue `at`; `consumed` holds the packets that `DriverEffect::Done` completes.
pub(in crate::stack) fn retire(tag: u32, at: QueueAt, consumed: &mut VecDeque<PacketId>, c: &mut Ctx) {
    match DriverEffect::of(tag) {
        DriverEffect::Done(n) => {
            for _ in 0..n {
                let id = consumed.pop_front().expect("a burst's packets");
                let nic = nic_on(c.machine.iio.as_deref_mut(), at.port);
                qp::ended(nic, id, c.tally, c.step.now);
                if let Some(l) = c.roles.get_mut::<SoftwareClient>() {
                    l.answered(nic.packet(id), c.step.now);
                }
                nic.end_use(id);
            }
        }
        DriverEffect::Stamp(id) => nic_on(c.machine.iio.as_deref_mut(), at.port).packet(id).key = c.step.now.0,
        DriverEffect::Seen(id) => loopback::seen(id, at.port, c),
        DriverEffect::Armed(n) => ring(at, RingSide::Receive, n, c),
        DriverEffect::Put(n) => ring(at, RingSide::Transmit, n, c),
        DriverEffect::Passed(_) => unreachable!("a pair's first core tells the second"),
    }
}

/// Rings a doorbell: the tail of a ring of queue `at` moves by `n` descriptors.
fn ring(at: QueueAt, side: RingSide, n: u32, c: &mut Ctx) {
    if let Some(iio) = c.machine.iio.as_deref_mut() {
        iio.ring(c.machine.cal, at.port, at.queue, side, n, c.step.now);
    }
}

/// Performs a program's side effect in functional mode, without timing. Receive descriptors return to the NIC as
/// packets arrive.
pub(in crate::stack) fn retire_functional(tag: u32, at: QueueAt, consumed: &mut VecDeque<PacketId>, m: &mut Machine) {
    match DriverEffect::of(tag) {
        DriverEffect::Armed(_) | DriverEffect::Passed(_) | DriverEffect::Stamp(_) | DriverEffect::Seen(_) => {}
        DriverEffect::Put(_) => m.ring_transmit_functional(at.port, at.queue),
        DriverEffect::Done(n) => {
            for id in consumed.drain(..n.to_usize()) {
                if let Some(nic) = m.nic_at(NicAt::Port(at.port)) {
                    nic.end_use(id);
                }
            }
        }
    }
}

/// The NIC on `port`, which a driver has.
pub(in crate::stack) fn nic_on(iio: Option<&mut Iio>, port: PortId) -> &mut Nic {
    iio.and_then(|i| i.nic_mut(port)).expect("a driver has a NIC")
}
