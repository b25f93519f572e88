//! Queue pairs of an overlay for use by another stack, which takes packets from the queue pairs, and sends in the
//! buffers of these packets or in new ones.

use super::server::ServerPort;
use super::{CcnicEffect, CcnicInterface};
use crate::kernel::{Int, LineAddr, PacketId, PortId, QueueId};
use crate::stack::branch_predictor::skip_in_turn;
use crate::stack::tas::io::ReceivedPacket;
use crate::stack::Ctx;

/// Queue pairs of one thread. A poll visits all of them, one after the other.
#[derive(Clone)]
pub struct Ports {
    ports: Vec<ServerPort>,
    /// Index of the queue pair that is polled.
    at: usize,
    /// Index of the queue pair from which the thread takes packets first.
    first: usize,
    /// Port of the NIC that the packets go through.
    nic: PortId,
}

impl Ports {
    pub(super) fn new(ports: Vec<ServerPort>, nic: PortId) -> Ports {
        Ports { ports, at: 0, first: 0, nic }
    }

    /// Port of the NIC that the packets go through.
    pub fn nic(&self) -> PortId {
        self.nic
    }

    /// Polls the first queue pair.
    pub fn poll(&mut self, c: &mut Ctx) {
        self.at = 0;
        self.ports[0].host.poll(true, c);
    }

    /// Takes the packets that were found; returns true when the thread polls for further packets of a burst, or polls
    /// the next queue pair.
    pub fn gathers(&mut self, c: &mut Ctx) -> bool {
        let host = &mut self.ports[self.at].host;
        host.common.polled = false;
        if host.gathers_more(c) {
            return true;
        }
        self.at += 1;
        match self.ports.get_mut(self.at) {
            Some(port) => port.host.poll(true, c),
            None => return false,
        }
        true
    }

    /// Number of polls that visit all queue pairs.
    pub fn polls(&self) -> usize {
        self.ports.len()
    }

    /// Whether no packet waits in the thread.
    pub fn has_nothing(&self) -> bool {
        self.ports.iter().all(ServerPort::has_nothing)
    }

    /// Goes on as after `polls` polls that have found nothing, after each `polls()` of which the thread has taken none.
    pub fn skip_polls(&mut self, polls: u64) {
        let (all, ports) = (self.ports.len().to_u64(), &mut self.ports);
        let turns = (self.at.to_u64() + polls) / all;
        ports[self.at].host.common.polled = false;
        self.at = skip_in_turn(self.at, ports.len(), polls, |k| ports[k].host.common.skip_polls(1));
        self.first = ((self.first.to_u64() + turns) % all).to_usize();
        self.ports[self.at].host.common.polled = true;
    }

    /// Returns up to `most` of the packets that were taken.
    pub fn receive(&mut self, most: usize, c: &mut Ctx) -> Vec<ReceivedPacket> {
        let (Some(i), p) = (c.roles.get_mut::<CcnicInterface>(), &mut *c.program) else { return Vec::new() };
        let (mut got, all) = (Vec::new(), self.ports.len());
        for port in (0..all).map(|k| (self.first + k) % all) {
            let host = &mut self.ports[port].host;
            let n = host.taken.len().min(most - got.len());
            host.await_descriptors(p);
            p.compute(host.common.spec.quirks.costs.host_rx * n.to_u32());
            host.taken.iter().take(n).for_each(|d| host.common.receive_metadata(i, d.buffer - 1, p));
            let of = |buffer: u32| ReceivedPacket { id: i.packet_in(buffer), line: i.line(buffer), buffer, port };
            got.extend(host.taken.drain(..n).map(|d| of(d.buffer - 1)));
        }
        self.first = (self.first + 1) % all;
        got
    }

    /// Frees the buffer of a received packet with the next flush.
    pub fn release(&mut self, r: ReceivedPacket) {
        self.ports[r.port].host.received.push(r.buffer);
    }

    /// Index of the queue pair that serves the NIC's queue `queue`; queue pairs are assigned to threads in turn.
    fn of(&self, queue: QueueId) -> usize {
        self.ports.iter().position(|p| p.host.common.queue == queue.index()).unwrap_or(0)
    }

    /// Allocates a buffer for a packet that goes through `queue`; returns the buffer and its first line.
    pub fn buffer(&mut self, queue: QueueId, bytes: u64, c: &mut Ctx) -> Option<(u32, LineAddr)> {
        let (Some(i), p) = (c.roles.get_mut::<CcnicInterface>(), &mut *c.program) else { return None };
        let port = self.of(queue);
        let buffer = self.ports[port].host.buffers(i, bytes.to_u32(), 1, p).pop()?;
        Some((buffer, i.line(buffer)))
    }

    /// Queues an answer of `bytes` bytes, in the buffer of a received packet, for the next flush.
    pub fn answer(&mut self, r: ReceivedPacket, bytes: u64) {
        self.ports[r.port].queue_up(r.buffer, bytes.to_u16());
    }

    /// Queues packet `id` in `buffer` for the next flush, through the queue pair of `queue`.
    pub fn send(&mut self, queue: QueueId, id: PacketId, buffer: u32, bytes: u64, c: &mut Ctx) {
        if let Some(i) = c.roles.get_mut::<CcnicInterface>() {
            i.packets[buffer.to_usize()] = Some(id);
        }
        let port = self.of(queue);
        self.ports[port].queue_up(buffer, bytes.to_u16());
    }

    /// Ends a burst on all ports: ends the reception, frees completed buffers and sends the queued packets.
    pub fn flush(&mut self, c: &mut Ctx) {
        for port in &mut self.ports {
            port.host.end_receive(c);
            if let Some(i) = c.roles.get_mut::<CcnicInterface>() {
                port.free_completed(i, c.program);
            }
            port.reply(c);
        }
    }

    /// Continues after the side effect `tag` has taken place.
    pub fn retired(&mut self, tag: u32, c: &mut Ctx) {
        let (_, port) = CcnicEffect::of(tag);
        self.ports[port.to_usize()].host.common.visible(c);
    }

    /// Begins the measured window.
    pub fn restart_meters(&mut self) {
        self.ports.iter_mut().for_each(|p| p.host.common.restart());
    }
}
