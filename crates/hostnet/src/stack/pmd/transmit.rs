//! Transmission by a poll-mode driver: descriptors of replies, the tail of the ring, and buffers that have been sent.

use super::{nic_on, DriverEffect, DriverState, FreeSent, PollMode, SentBuffer};
use crate::core::{Op, Program};
use crate::device::RingSide;
use crate::kernel::Int;
use crate::placement::{sweeper, SweepTx};
use crate::stack::Ctx;

impl PollMode {
    /// Frees up to `most` buffers that have been sent, the oldest first.
    pub(super) fn reclaim(&mut self, most: u64, c: &mut Ctx) {
        let clean = self.put - self.in_ring.len().to_u64();
        let sent = nic_on(c.machine.iio.as_deref_mut(), self.port)
            .sent_descriptors(self.queue)
            .min(clean.saturating_add(most));
        for i in clean..sent {
            let reads = match self.costs.quirks.free_sent {
                FreeSent::Reuse => i % u64::from(self.costs.quirks.free_threshold) == 0, // the status of one of a threshold's
                FreeSent::Threshold | FreeSent::Burst => i == clean || self.transmit.begins_line(i),
            };
            if reads {
                c.program.push(Op::Load { line: self.transmit.line(i), lines: 1 });
            }
            let SentBuffer { buffer, lines, external } = self.in_ring.pop_front().expect("it was written");
            if self.buffers.sweep_tx == SweepTx::Cpu {
                sweeper::relinquish(c.program, self.pool.data(buffer), lines);
            } else if self.buffers.spent.follows_transmission() {
                self.buffers.spent.relinquish(c.program, self.pool.data(buffer), lines);
            }
            c.program.push(Op::Load { line: self.pool.metadata(buffer), lines: self.costs.quirks.mbuf_lines });
            if let Some(e) = external {
                c.program.compute(self.costs.quirks.detach_instructions);
                e.users.into_iter().for_each(|line| c.program.push(Op::Atomic { line }));
            }
            self.free(buffer, c.program);
        }
    }

    /// Frees the oldest buffer that has been sent, where fewer than `least` descriptors are free.
    fn reuse(&mut self, least: u64, c: &mut Ctx) {
        if self.room() < least {
            self.reclaim(1, c);
        }
    }

    pub(super) fn room(&self) -> u64 {
        self.transmit.usable() - self.in_ring.len().to_u64()
    }

    /// Writes the next transmit descriptor.
    fn describe(&mut self, segment: SentBuffer, p: &mut Program) {
        p.push(Op::Load { line: self.pool.metadata(segment.buffer), lines: self.costs.quirks.mbuf_lines });
        p.compute(self.costs.transmit_instructions);
        p.take_branches(self.costs.quirks.transmit_branches);
        if let Some(note) = self.note(RingSide::Transmit, self.put) {
            p.push(Op::Store { line: note, lines: 1 });
        }
        self.in_ring.push_back(segment);
        let line = self.transmit.line(self.put);
        let at_first = self.costs.quirks.free_sent == FreeSent::Reuse;
        let begins = at_first && self.transmit.begins_line(self.put);
        self.put += 1;
        if begins || !at_first && self.transmit.begins_line(self.put) {
            p.push(Op::Store { line, lines: 1 });
        }
    }

    /// Performs `tx_burst` repeatedly, until all of the backlog has descriptors or the ring is full.
    pub(super) fn transmit(&mut self, c: &mut Ctx) {
        c.program.compute(self.costs.burst_instructions);
        let least =
            u64::from(self.costs.quirks.free_threshold).max((self.backlog.len() + self.attached.len()).to_u64());
        if self.buffers.spent.follows_transmission() || self.costs.quirks.free_sent == FreeSent::Burst {
            self.reclaim(u64::MAX, c); // dropped, or used again, before it takes room
        } else if self.costs.quirks.free_sent == FreeSent::Reuse {
            self.reuse(1, c);
        } else if self.room() < least {
            self.reclaim(least, c);
        }
        let before = self.put;
        while self.fits_next(c) {
            if self.put > before {
                c.program.compute(self.costs.burst_instructions);
            }
            self.put_burst(self.costs.quirks.transmit_burst.unwrap_or(u32::MAX), c);
        }
        self.state = if self.backlog.is_empty() { DriverState::Poll } else { DriverState::Full };
    }

    /// Whether the ring has room for the segments of the oldest packet of the backlog.
    fn fits_next(&self, c: &mut Ctx) -> bool {
        let Some(&(id, _)) = self.backlog.front() else { return false };
        let gathers = nic_on(c.machine.iio.as_deref_mut(), self.port).packet(id).object_bytes > 0;
        self.room() > u64::from(gathers)
    }

    /// Performs one `tx_burst` of up to `limit` packets of the backlog, the oldest first, as far as the ring has room.
    fn put_burst(&mut self, limit: u32, c: &mut Ctx) {
        let before = self.put;
        let at_first = self.costs.quirks.free_sent == FreeSent::Reuse;
        if at_first && !self.transmit.begins_line(self.put) {
            c.program.push(Op::Store { line: self.transmit.line(self.put), lines: 1 });
        }
        for _ in 0..limit {
            if !self.fits_next(c) {
                break;
            }
            if at_first {
                self.reuse(u64::from(self.costs.quirks.free_threshold), c);
            }
            let (id, buffer) = self.backlog.pop_front().expect("it fits");
            let nic = nic_on(c.machine.iio.as_deref_mut(), self.port);
            let packet = nic.packet(id);
            let (lines, gathers) = (packet.tx_lines.into(), packet.object_bytes > 0);
            nic.put(self.queue, id);
            self.describe(SentBuffer { buffer, lines, external: None }, c.program);
            if gathers {
                let (second, of) = self.attached.pop_front().expect("a second segment has metadata");
                self.describe(SentBuffer { buffer: second, lines: 0, external: Some(of) }, c.program);
            }
        }
        let p = &mut *c.program;
        if !at_first && !self.transmit.begins_line(self.put) {
            p.push(Op::Store { line: self.transmit.line(self.put), lines: 1 });
        }
        p.push(Op::Mmio { tag: DriverEffect::Put((self.put - before).to_u32()).tag() });
    }
}
