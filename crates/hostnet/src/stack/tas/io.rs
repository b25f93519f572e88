//! Packet I/O of the fast path: a poll-mode driver, or queue pairs of CC-NIC.

use crate::kernel::{Int, LineAddr, PacketId, PortId, QueueId, Time};
use crate::stack::ccnic::Ports;
use crate::stack::pmd::{nic_on, PollMode};
use crate::stack::{Ctx, Software};

/// A received packet: its record, the first line of its data, its buffer, and the index of the queue pair through which
/// it arrived.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedPacket {
    pub id: PacketId,
    pub line: LineAddr,
    pub buffer: u32,
    pub port: usize,
}

/// Access of the fast path to the NIC.
#[derive(Clone)]
pub enum Io {
    /// A poll-mode driver.
    Driver(Box<PollMode>),
    /// Ports of CC-NIC.
    Ports(Ports),
}

impl Io {
    /// Port of the NIC that has the packets' records.
    pub fn nic(&self) -> PortId {
        match self {
            Io::Driver(d) => d.port(),
            Io::Ports(p) => p.nic(),
        }
    }

    /// Reads the line that shows whether packets have arrived.
    pub fn poll(&mut self, c: &mut Ctx) {
        match self {
            Io::Driver(d) => d.poll_descriptor(c),
            Io::Ports(p) => p.poll(c),
        }
    }

    /// Whether the thread reads further packets of a burst first.
    pub fn gathers(&mut self, c: &mut Ctx) -> bool {
        match self {
            Io::Driver(_) => false,
            Io::Ports(p) => p.gathers(c),
        }
    }

    /// Number of polls of a turn that finds nothing.
    pub fn polls(&self) -> usize {
        match self {
            Io::Driver(_) => 1,
            Io::Ports(p) => p.polls(),
        }
    }

    /// Whether no packet waits in the thread.
    pub fn has_nothing(&self) -> bool {
        match self {
            Io::Driver(d) => d.has_sent_all(),
            Io::Ports(p) => p.has_nothing(),
        }
    }

    /// Goes on as after `polls` polls that have found nothing.
    pub fn skip_polls(&mut self, polls: u64) {
        match self {
            Io::Driver(d) => d.skip_polls(polls),
            Io::Ports(p) => p.skip_polls(polls),
        }
    }

    /// Takes up to `most` packets that have arrived.
    pub fn receive(&mut self, most: usize, c: &mut Ctx) -> Vec<ReceivedPacket> {
        match self {
            Io::Driver(d) => {
                let ids = if most == 0 { Vec::new() } else { d.take_received(most, c) };
                let nic = nic_on(c.machine.iio.as_deref_mut(), d.port());
                let of = |id| (id, nic.packet(id).line, nic.packet(id).buffer);
                ids.into_iter().map(of).map(|(id, line, buffer)| ReceivedPacket { id, line, buffer, port: 0 }).collect()
            }
            Io::Ports(p) => p.receive(most, c),
        }
    }

    /// Queues an answer of `bytes` bytes in the buffer of packet `r`.
    pub fn answer(&mut self, r: ReceivedPacket, bytes: u64, c: &mut Ctx) {
        match self {
            Io::Driver(d) => {
                let packet = nic_on(c.machine.iio.as_deref_mut(), d.port()).packet(r.id);
                (packet.tx_line, packet.tx_lines) = (r.line, super::lines(bytes).to_u16());
                packet.tx_bytes = bytes.to_u32();
                d.queue_up(r.id, r.buffer);
            }
            Io::Ports(p) => p.answer(r, bytes),
        }
    }

    /// Returns the buffer of a packet.
    pub fn release(&mut self, r: ReceivedPacket, c: &mut Ctx) {
        match self {
            Io::Driver(d) => {
                let lines = nic_on(c.machine.iio.as_deref_mut(), d.port()).packet(r.id).lines;
                d.copied_from(r.buffer, lines, c.program);
            }
            Io::Ports(p) => p.release(r),
        }
    }

    /// Takes a buffer for a packet of `bytes` bytes that goes through `queue`; returns the buffer and the first line of
    /// its data.
    pub fn buffer(&mut self, queue: QueueId, bytes: u64, c: &mut Ctx) -> Option<(u32, LineAddr)> {
        match self {
            Io::Driver(d) => {
                let buffer = d.buffer_to_send(c.program)?;
                Some((buffer, d.data(buffer)))
            }
            Io::Ports(p) => p.buffer(queue, bytes, c),
        }
    }

    /// Queues packet `id` of `bytes` bytes in `buffer`.
    pub fn send(&mut self, queue: QueueId, id: PacketId, buffer: u32, bytes: u64, c: &mut Ctx) {
        match self {
            Io::Driver(d) => d.queue_up(id, buffer),
            Io::Ports(p) => p.send(queue, id, buffer, bytes, c),
        }
    }

    /// Sends the queued packets, as far as the ring has room. With `short`, when few buffers are free, sent buffers are
    /// freed as well.
    pub fn flush(&mut self, short: bool, c: &mut Ctx) {
        match self {
            Io::Driver(d) => d.send_burst(short, c),
            Io::Ports(p) => p.flush(c),
        }
    }

    /// Continues after the side effect `tag` has taken place.
    pub fn retired(&mut self, tag: u32, c: &mut Ctx) {
        match self {
            Io::Driver(d) => d.retired(tag, c),
            Io::Ports(p) => p.retired(tag, c),
        }
    }

    /// Begins the measured window at `now`.
    pub fn restart_meters(&mut self, now: Time) {
        match self {
            Io::Driver(d) => d.restart_meters(now),
            Io::Ports(p) => p.restart_meters(),
        }
    }
}
