//! The NIC's thread in overlay mode, which forwards packets between its queue pair and a queue of a PCIe NIC.

use super::nic::CcnicNic;
use super::rings::{EXTERNAL, GROUP, MORE, NO_RECYCLE};
use super::CcnicInterface;
use crate::kernel::{Due, Int, LineAddr, PacketId};
use crate::memory::LINE_U32;
use crate::meter::life::Milestone;
use crate::stack::pmd::{nic_on, PollMode};
use crate::stack::{Ctx, Software, Step};
use std::collections::VecDeque;

/// Lines of data for each mbuf that this thread sends: room for a frame of the largest size, 9.6 KB.
pub const SENT_LINES: u64 = 160;

#[derive(Clone)]
pub struct Overlay {
    pub(super) nic: CcnicNic,
    driver: PollMode,
    /// First line of the data of the driver's buffers that are sent.
    data: LineAddr,
    /// Packets received from the PCIe NIC that have not been copied.
    received: VecDeque<PacketId>,
    /// Whether the poll was the first of a burst, which also polls the PCIe NIC.
    first: bool,
}

impl Overlay {
    pub(super) fn new(nic: CcnicNic, driver: PollMode, data: LineAddr) -> Overlay {
        Overlay { nic, driver, data, received: VecDeque::new(), first: false }
    }

    pub(super) fn step(&mut self, c: &mut Ctx) -> Step {
        let mut idle = false;
        if std::mem::take(&mut self.nic.common.polled) {
            if std::mem::take(&mut self.first) {
                self.receive(c);
            }
            let more = (self.nic.pending.len() < self.batch() || self.halved()) && self.nic.take(c);
            if more && (self.nic.pending.len() + GROUP <= self.batch().max(GROUP) || self.halved()) {
                self.nic.poll(false, c);
                return Step::Run;
            }
            self.send(c);
            idle = c.program.ops.is_empty() && self.has_nothing();
        }
        self.driver.poll_descriptor(c);
        self.nic.poll_idle(c);
        self.nic.poll(true, c);
        self.first = true;
        if idle {
            return Step::Poll { of: 1, until: Due::NEVER };
        }
        Step::Run
    }

    /// Whether no packet waits in the thread.
    fn has_nothing(&self) -> bool {
        self.received.is_empty() && !self.nic.has_work() && self.driver.has_sent_all()
    }

    pub(super) fn skip_polls(&mut self, polls: u64) {
        self.driver.skip_polls(polls);
        self.nic.common.skip_polls(polls);
    }

    /// Moves packets from the PCIe NIC to the host.
    fn receive(&mut self, c: &mut Ctx) {
        if self.received.is_empty() {
            self.received.extend(self.driver.take_received(usize::MAX, c));
        }
        let Ctx { roles, machine, program: p, .. } = c;
        let Some(i) = roles.get_mut::<CcnicInterface>() else { return };
        let pcie = nic_on(machine.iio.as_deref_mut(), self.driver.port());
        if !self.nic.filled.is_empty() {
            self.nic.publish(i, p);
        }
        while let Some(&id) = self.received.front().filter(|_| self.nic.filled.len() < self.batch()) {
            let packet = *pcie.packet(id);
            let Some(to) = self.nic.blank(i, packet.rx_bytes, p) else { break };
            self.nic.common.copy((packet.line, false), i.line(to), packet.lines.into(), p);
            p.compute(self.nic.common.spec.quirks.costs.nic_rx);
            i.packets[to.to_usize()] = Some(id);
            pcie.passes(id, Milestone::Handed);
            self.nic.deliver_later(to, packet.rx_bytes.to_u16());
            self.driver.copied_from(packet.buffer, packet.lines, p);
            self.received.pop_front();
        }
        self.nic.publish(i, p);
    }

    /// Maximum number of packets of either direction that may wait for room or buffers before the thread takes no more
    /// packets.
    fn batch(&self) -> usize {
        self.nic.common.spec.quirks.nic_batch.to_usize()
    }

    /// Whether the burst ends between the two segments of a packet.
    fn halved(&self) -> bool {
        self.nic.pending.last().is_some_and(|d| d.flags & MORE != 0)
    }

    /// Moves packets from the host to the PCIe NIC. The second segment of a packet is an object that the host keeps.
    fn send(&mut self, c: &mut Ctx) {
        let Ctx { roles, machine, program: p, .. } = &mut *c;
        let Some(i) = roles.get_mut::<CcnicInterface>() else { return };
        let (nic, pcie) = (&mut self.nic, nic_on(machine.iio.as_deref_mut(), self.driver.port()));
        let lines = |bytes: u16| u32::from(bytes).div_ceil(LINE_U32);
        nic.await_descriptors(p);
        let (mut done, mut short) = (0, false);
        while done < nic.pending.len() {
            let d = nic.pending[done];
            let second = match d.flags & MORE {
                0 => None,
                // The other segment may be in a unit that is not ready yet.
                _ => match nic.pending.get(done + 1) {
                    Some(o) => Some(*o),
                    None => break,
                },
            };
            let Some(mbuf) = self.driver.buffer_to_send(p) else {
                short = true;
                break;
            };
            let (buffer, to) = (d.buffer - 1, self.data + u64::from(mbuf) * SENT_LINES);
            nic.common.copy((i.line(buffer), true), to, lines(d.bytes), p);
            let id = i.packet_in(buffer);
            pcie.passes(id, Milestone::FoundByNic);
            let packet = pcie.packet(id);
            (packet.tx_line, packet.tx_lines, packet.tx_bytes) = (to, lines(d.bytes).to_u16(), d.bytes.into());
            if let Some(o) = second {
                debug_assert!(o.flags & EXTERNAL != 0);
                let behind = to + u64::from(packet.tx_lines);
                nic.common.copy((i.objects[buffer.to_usize()], true), behind, lines(o.bytes), p);
                packet.tx_lines += lines(o.bytes).to_u16();
                packet.tx_bytes += u32::from(o.bytes);
            }
            nic.common.release(i.line(buffer), lines(d.bytes), p);
            if d.flags & NO_RECYCLE == 0 {
                nic.common.free_one(i, buffer, p);
            }
            self.driver.queue_up(id, mbuf);
            done += 1 + usize::from(second.is_some());
        }
        nic.pending.drain(..done);
        nic.common.free_done(i, p);
        if nic.pending.is_empty() {
            nic.release(p);
        }
        self.driver.send_burst(short, c);
    }

    pub(super) fn retired(&mut self, tag: u32, c: &mut Ctx) {
        // The driver's tags carry a number of descriptors, which is at least one.
        if tag == 0 {
            self.nic.common.visible(c);
        } else {
            self.driver.retired(tag, c);
        }
    }

    pub(super) fn restart_meters(&mut self, now: crate::kernel::Time) {
        self.driver.restart_meters(now);
    }
}
