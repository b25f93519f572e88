//! What programs of drivers do beside their accesses: descriptors handed over, packets ended.

use super::looped;
use crate::device::nic::{Nic, Packet};
use crate::kernel::{Int, NicAt, Side};
use crate::machine::Machine;
use crate::memory::LINE_U32;
use crate::stack::{qp, Ctx};
use std::collections::VecDeque;

/// Side effects that a program's `Op::Retire` and `Op::Mmio` carry, with the number of descriptors or
/// packets, or a packet's record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::stack) enum Effect {
    /// The receive ring's tail moves.
    Armed,
    /// The transmit ring's does.
    Put,
    /// Packets are consumed for good.
    Done,
    /// Packets are in the software ring.
    Passed,
    /// The time stamp of a packet is written, which has this record.
    Stamp,
    /// A packet that has come back, with this record, has been read.
    Seen,
}

impl Effect {
    pub fn tag(self, n: u32) -> u32 {
        n << 3 | self as u32
    }
    pub fn of(tag: u32) -> (Effect, u32) {
        use Effect::{Armed, Done, Passed, Put, Seen, Stamp};
        ([Armed, Put, Done, Passed, Stamp, Seen][(tag & 7).to_usize()], tag >> 3)
    }
}

/// The reply to a packet takes `lines` lines; one as long as the packet has its bytes.
pub(in crate::stack) fn answered(packet: &mut Packet, lines: u16) {
    let whole = u32::from(lines) * LINE_U32;
    packet.tx_lines = lines;
    packet.tx_bytes = if lines == packet.lines { whole.min(packet.rx_bytes) } else { whole };
}

/// A program's side effect is due at `queue`; `consumed` are the packets that end with one.
pub(in crate::stack) fn retire(tag: u32, queue: usize, consumed: &mut VecDeque<u32>, c: &mut Ctx) {
    match Effect::of(tag) {
        (Effect::Done, n) => {
            for _ in 0..n {
                let id = consumed.pop_front().expect("a burst's packets");
                let nic = port(c.iio.as_deref_mut());
                qp::ended(nic, id, c.tenant, c.tally, c.now);
                if let Some(l) = &mut c.client {
                    l.answered(nic.packet(id), c.now);
                }
                nic.end_use(id);
            }
        }
        (Effect::Stamp, id) => port(c.iio.as_deref_mut()).packet(id).key = c.now.0,
        (Effect::Seen, id) => looped::seen(id, c),
        (effect, n) => {
            let side = if effect == Effect::Armed { Side::Receive } else { Side::Transmit };
            if let Some(iio) = c.iio.as_deref_mut() {
                iio.ring(c.cal, queue.to_u16(), side, n, c.now);
            }
        }
    }
}

/// The same without time. Receive descriptors are the NIC's again as packets come.
pub(in crate::stack) fn retire_at_once(tag: u32, queue: usize, consumed: &mut VecDeque<u32>, m: &mut Machine) {
    match Effect::of(tag) {
        (Effect::Armed | Effect::Passed | Effect::Stamp | Effect::Seen, _) => {}
        (Effect::Put, _) => m.ring_transmit_at_once(queue),
        (Effect::Done, n) => {
            for id in consumed.drain(..n.to_usize()) {
                if let Some(nic) = m.nic_at(NicAt::Port) {
                    nic.end_use(id);
                }
            }
        }
    }
}

/// The NIC that the driver has.
pub(in crate::stack) fn port(iio: Option<&mut crate::device::iio::Iio>) -> &mut Nic {
    iio.and_then(|i| i.nic()).expect("a poll-mode driver has a NIC").1
}
