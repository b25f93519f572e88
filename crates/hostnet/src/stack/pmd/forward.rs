//! Bursts of a poll-mode driver for use by other stacks: separate receive and transmit bursts for a core that forwards
//! packets, and the received burst for an application.

use super::{nic_on, PollMode};
use crate::app::Content;
use crate::core::Program;
use crate::kernel::{Int, LineAddr, PacketId};
use crate::stack::Ctx;

impl PollMode {
    /// Reads the receive descriptor that shows whether packets have arrived.
    pub(in crate::stack) fn poll_descriptor(&mut self, c: &mut Ctx) {
        self.poll(c);
    }

    /// Trains the branch predictor with `polls` polls that have found nothing.
    pub(in crate::stack) fn skip_polls(&mut self, polls: u64) {
        if let Some(f) = &mut self.predictor {
            f.train_in_vain(polls);
        }
    }

    /// Whether no packet waits for a transmit descriptor.
    pub(in crate::stack) fn has_sent_all(&self) -> bool {
        self.backlog.is_empty()
    }

    /// Performs an `rx_burst` of up to `most` packets, if any have arrived; returns their records.
    pub(in crate::stack) fn take_received(&mut self, most: usize, c: &mut Ctx) -> Vec<PacketId> {
        self.train_predictor(c);
        if nic_on(c.machine.iio.as_deref_mut(), self.port).waiting(self.queue) == 0 {
            return Vec::new();
        }
        self.receive(most, c);
        c.tally.taken += self.burst.len().to_u64();
        self.burst.drain(..).collect()
    }

    /// Shows the application the whole burst before it serves the first packet.
    pub(super) fn begin_burst(&self, c: &mut Ctx) {
        let Ctx { step, app: Some(app), machine, program: p, .. } = c else { return };
        let nic = nic_on(machine.iio.as_deref_mut(), self.port);
        let mut packets = self.burst.iter().map(|id| {
            let packet = nic.packet(*id);
            (Content::of(packet), packet.line)
        });
        app.begin_burst(step.local, &mut packets, p);
    }

    /// Returns to the pool the buffer of a packet of `lines` lines that has been copied.
    pub(in crate::stack) fn copied_from(&mut self, buffer: u32, lines: u16, p: &mut Program) {
        self.buffers.spent.relinquish(p, self.pool.data(buffer), lines.into());
        self.free(buffer, p);
    }

    /// Takes a buffer to which a packet will be copied, and writes the buffer's metadata.
    pub(in crate::stack) fn buffer_to_send(&mut self, p: &mut Program) -> Option<u32> {
        let buffer = self.pool.get(p)?;
        p.push(crate::core::Op::Store { line: self.pool.metadata(buffer), lines: self.costs.quirks.mbuf_lines });
        Some(buffer)
    }

    /// First line of a buffer's data.
    pub(in crate::stack) fn data(&self, buffer: u32) -> LineAddr {
        self.pool.data(buffer)
    }

    /// Queues packet `id` in `buffer` for the next transmit burst.
    pub(in crate::stack) fn queue_up(&mut self, id: PacketId, buffer: u32) {
        self.backlog.push_back((id, buffer));
    }

    /// Performs a `tx_burst` of the queued packets, as far as the ring has room. With `short`, when few buffers are
    /// free, the driver also frees sent buffers.
    pub(in crate::stack) fn send_burst(&mut self, short: bool, c: &mut Ctx) {
        if !self.backlog.is_empty() {
            self.transmit(c);
        }
        if short {
            self.reclaim(u64::MAX, c);
        }
    }
}
