//! Queue pairs of an overlay as another stack uses them: it takes packets, and sends in their buffers or in new ones.

use super::server::Port;
use super::{Effect, Interface};
use crate::core::Program;
use crate::stack::tas::io::Received;
use crate::stack::Ctx;

/// The queue pairs of a thread. Each poll looks at the next one.
#[derive(Clone)]
pub struct Ports {
    ports: Vec<Port>,
    at: usize,
}

impl Ports {
    pub(super) fn new(ports: Vec<Port>) -> Ports {
        Ports { ports, at: 0 }
    }

    pub fn poll(&mut self, p: &mut Program) {
        self.at = (self.at + 1) % self.ports.len();
        self.ports[self.at].host.poll(p);
    }

    /// Takes what the poll has found; true when it polls for more of a burst.
    pub fn gathers(&mut self, c: &mut Ctx) -> bool {
        let host = &mut self.ports[self.at].host;
        host.common.polled = false;
        host.gathers_more(c)
    }

    /// Up to `most` of the packets taken.
    pub fn receive(&mut self, most: usize, c: &mut Ctx) -> Vec<Received> {
        let Ctx { ccnic: Some(i), program: p, .. } = c else { return Vec::new() };
        let host = &mut self.ports[self.at].host;
        let n = host.taken.len().min(most);
        p.compute(host.common.spec.costs.host_rx * n as u32);
        let of = |buffer: u32| Received { id: i.packets[buffer as usize], line: i.line(buffer), buffer };
        host.taken.drain(..n).map(|d| of(d.buffer - 1)).collect()
    }

    /// A buffer of a packet that was received is freed with the next flush.
    pub fn release(&mut self, buffer: u32) {
        self.ports[self.at].host.received.push(buffer);
    }

    /// The queue pair of the NIC's queue `queue`: threads take turns with them.
    fn of(&mut self, queue: usize) -> &mut Port {
        let at = self.ports.iter().position(|p| p.host.common.queue == queue);
        &mut self.ports[at.unwrap_or(0)]
    }

    /// A buffer for a packet that goes through `queue`, and its first line.
    pub fn buffer(&mut self, queue: usize, bytes: u64, c: &mut Ctx) -> Option<(u32, u64)> {
        let Ctx { ccnic: Some(i), program: p, .. } = c else { return None };
        let buffer = self.of(queue).host.buffers(i, bytes as u32, 1, p).pop()?;
        Some((buffer, i.line(buffer)))
    }

    /// What is in `buffer` is packet `id`.
    pub fn carries(&self, i: &mut Interface, buffer: u32, id: u32) {
        i.packets[buffer as usize] = id;
    }

    /// `buffer` goes with the next flush, through the queue pair of `queue` or the one that was polled.
    pub fn send(&mut self, queue: Option<usize>, buffer: u32, bytes: u64) {
        let port = match queue {
            Some(queue) => self.of(queue),
            None => &mut self.ports[self.at],
        };
        port.queue_up(buffer, bytes as u16);
    }

    pub fn flush(&mut self, c: &mut Ctx) {
        for port in &mut self.ports {
            port.host.end_receive(c);
            port.reply(c);
        }
    }

    pub fn retired(&mut self, tag: u32, c: &mut Ctx) {
        let (_, port) = Effect::of(tag);
        self.ports[port as usize].host.common.visible(c);
    }

    pub fn restart_meters(&mut self) {
        self.ports.iter_mut().for_each(|p| p.host.common.restart());
    }
}
