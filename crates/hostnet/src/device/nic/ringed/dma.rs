//! DMA of a NIC with descriptor rings in memory: the NIC writes packets and used descriptors to memory, and reads
//! frames and new descriptors from memory.

use super::{Attachment, Completion, Extent, MovingWork, Nic, RingWork, GAP, RECEIVE, TRANSMIT};
use crate::device::endpoint::{Offer, Piece};
use crate::device::{DeviceEvent, DevicePosts, NicAt, RingSide, RingTask};
use crate::kernel::{Int, PacketId, QueueId, Time};
use crate::memory::Sweep;
use crate::meter::life::Milestone;
use crate::placement::SweepTx;

impl Nic {
    /// Handles `DeviceEvent::Ring`: task `task` is due at `queue`.
    pub(in crate::device) fn on_ring(
        &mut self,
        cal: &mut impl DevicePosts,
        queue: QueueId,
        task: RingTask,
        n: u32,
        now: Time,
    ) {
        let r = self.ringed_mut();
        match task {
            RingTask::Tail(side) => {
                r.meter.transmit_doorbells += u64::from(side == RingSide::Transmit);
                r.pairs[queue].ring(side).posted += u64::from(n);
                r.look(cal, queue, now);
            }
            RingTask::Fetch(_) | RingTask::WriteBack(_) => r.begin(queue, task),
            ended => {
                r.end(queue, ended, n, now);
                r.look(cal, queue, now);
            }
        }
    }

    pub(in crate::device::nic) fn next_ring_write(&mut self, now: Time) -> Offer {
        let r = self.ringed_mut();
        if let Some(m) = r.write {
            return m.offer();
        }
        if !r.writes.has_room() || (r.spec.quirks.one_engine && r.read.is_some()) {
            return Offer::Nothing;
        }
        if !r.write_back(now) {
            if let Some(at) = r.not_before(RingSide::Receive, !r.fifo.is_empty(), now) {
                return Offer::At(at);
            }
            self.begin_packet(now);
        }
        self.mark_write();
        self.ringed_ref().write.map_or(Offer::Nothing, MovingWork::offer)
    }

    /// Sets the classifier's steering tags on the lines of the write that begins, where the classifier derives tags.
    fn mark_write(&mut self) {
        let (Attachment::Ringed(r), Some(marker)) = (&mut self.attachment, &self.marker) else { return };
        let Some(m) = &mut r.write else { return };
        match m.what {
            RingWork::Packet(id) => (m.tags, m.split) = (self.packets.get(id).tags, self.splits),
            RingWork::Object(_) => {}
            RingWork::Descriptors { queue, .. } => m.tags = [marker.tag(queue); 2],
        }
    }

    /// Assigns the next cached descriptor to the oldest packet in the receive buffer, if there is one, and begins the
    /// packet's DMA.
    fn begin_packet(&mut self, now: Time) {
        let r = self.ringed_mut();
        let Some(&id) = r.fifo.front().filter(|_| r.in_flight[RECEIVE].free() > 0) else { return };
        let mut p = *self.packets.get(id);
        let queue = p.queue;
        let r = self.ringed_mut();
        let pair = &mut r.pairs[queue];
        if pair.receive.cached() == 0 {
            return;
        }
        pair.receive.used += 1;
        (p.buffer, p.line) = pair.armed.pop_front().expect("a descriptor names a buffer");
        r.fifo.pop_front();
        r.in_flight[RECEIVE].force(now);
        r.meter.frame_bytes += u64::from(p.rx_bytes);
        let lines = u32::from(p.lines);
        let frame = Extent { what: RingWork::Packet(id), line: p.line, lines, bytes: p.rx_bytes };
        r.open_write(frame, p.wire_bytes, now);
        p.began = now;
        *self.packets.get_mut(id) = p;
        let q = &mut self.queues[queue];
        q.buffered -= 1;
        q.arriving.push_back(id);
        self.counts.accepted += 1;
        self.counts.rx_lines += u64::from(lines);
    }

    pub(in crate::device::nic) fn next_ring_read(&mut self, now: Time) -> Offer {
        let r = self.ringed_mut();
        if r.read.is_none() {
            if r.spec.quirks.one_engine && r.write.is_some() {
                return Offer::Nothing;
            }
            if r.reads.has_room() && !r.fetch() {
                let waits =
                    r.ready[RingSide::Transmit.index()] > now && r.pairs.iter().any(|p| p.transmit.cached() > 0);
                if let Some(at) = r.not_before(RingSide::Transmit, waits, now) {
                    return Offer::At(at);
                }
                self.begin_frame(now);
            }
        }
        self.ringed_ref().read.map_or(Offer::Nothing, MovingWork::offer)
    }

    /// Begins to read the payload of the next frame to be sent, if the transmit buffer has room; queues take turns.
    fn begin_frame(&mut self, now: Time) {
        let (Attachment::Ringed(r), packets) = (&mut self.attachment, &mut self.packets) else { return };
        if r.in_flight[TRANSMIT].free() == 0 {
            return;
        }
        let of = r.pairs.len();
        for at in (r.turn..of).chain(0..r.turn) {
            let queue = QueueId::new(at);
            let pair = &mut r.pairs[queue];
            if pair.transmit.cached() == 0 || r.spec.quirks.queue_requests.is_some_and(|most| pair.requests >= most) {
                continue;
            }
            let (id, second) = *pair.put.front().expect("a descriptor names a packet");
            let p = packets.get(id);
            let work = match second {
                false => {
                    Extent { what: RingWork::Packet(id), line: p.tx_line, lines: p.tx_lines.into(), bytes: p.tx_bytes }
                }
                true => {
                    let lines = p.object_lines();
                    Extent { what: RingWork::Object(id), line: p.object, lines, bytes: p.object_bytes }
                }
            };
            if r.room.take(work.bytes, now).is_err() {
                return;
            }
            pair.put.pop_front();
            pair.transmit.used += 1;
            pair.leaving.push_back((work.what, false));
            let requests = r.requests(work.lines);
            r.pairs[queue].requests += requests;
            r.in_flight[TRANSMIT].force(now);
            r.meter.frames_read += 1;
            r.meter.frame_bytes += u64::from(work.bytes);
            r.turn = if at + 1 == of { 0 } else { at + 1 };
            r.open_read(work);
            return self.passes(id, Milestone::Reading);
        }
    }

    pub(in crate::device::nic) fn take_ring_write(&mut self, n: u32, now: Time) -> Piece {
        let (Attachment::Ringed(r), buffer) = (&mut self.attachment, &mut self.buffer) else {
            unreachable!("lines of rings")
        };
        let m = r.write.as_mut().expect("lines were promised");
        let before = m.bytes;
        let piece = m.advance(n);
        r.meter.moves(before - m.bytes, now);
        let rest = if m.at == m.lines { 0 } else { m.held.min(m.bytes) };
        if m.held > rest {
            buffer.as_mut().expect("behind the wire").give(m.held - rest, now);
            m.held = rest;
        }
        if m.at == m.lines {
            r.write = None;
        }
        piece
    }

    pub(in crate::device::nic) fn take_ring_read(&mut self, n: u32) -> Piece {
        let r = self.ringed_mut();
        let m = r.read.as_mut().expect("lines were promised");
        let piece = m.advance(n);
        if m.at == m.lines {
            r.read = None;
        }
        piece
    }

    /// Counts `n` lines of `slot` as written; returns true when these lines completed a transfer.
    pub(in crate::device::nic) fn ring_written(
        &mut self,
        cal: &mut impl DevicePosts,
        slot: u16,
        n: u32,
        now: Time,
    ) -> bool {
        let (Attachment::Ringed(r), queues) = (&mut self.attachment, &mut self.queues) else { return false };
        let Some(work) = r.writes.done(slot, n) else { return false };
        let busy = !r.writes.is_empty();
        r.meter.set_busy(busy, now);
        let queue = match work {
            RingWork::Packet(id) => {
                let p = self.packets.get_mut(id);
                p.in_memory = true;
                let queue = p.queue;
                let (delay, at_once) =
                    (r.spec.quirks.receive_turnaround, r.spec.receive_packets == 1 && r.fifo.is_empty());
                r.ends(cal, queue, RingSide::Receive, delay, at_once, now);
                let (arriving, pair) = (&queues[queue].arriving, &mut r.pairs[queue]);
                while let Some(next) = arriving.get(pair.filled.len()).filter(|next| self.packets.get(**next).in_memory)
                {
                    pair.filled.push_back(*next);
                    pair.receive.filled += 1;
                }
                queue
            }
            RingWork::Object(_) => unreachable!("a segment to be sent is read"),
            RingWork::Descriptors { queue, side, n } => {
                r.landed.push_back((queue, side));
                r.after(cal, queue, RingTask::Recycled(side), n, r.spec.quirks.write_back_completion, now);
                let pair = &mut r.pairs[queue];
                pair.ring(side).seen += u64::from(n);
                if side == RingSide::Receive {
                    let q = &mut queues[queue];
                    if let Some(l) = &mut self.lives {
                        pair.filled.iter().take(n.to_usize()).for_each(|id| l.mark(id.index(), Milestone::Visible));
                    }
                    for _ in 0..n {
                        let id = pair.filled.pop_front().expect("a used descriptor has a packet");
                        q.waiting.push_back(Completion::Received(id));
                        q.arriving.pop_front();
                    }
                    self.counts.delivered += u64::from(n);
                }
                queue
            }
        };
        r.look(cal, queue, now);
        if r.fifo.is_empty() && matches!(work, RingWork::Packet(_)) {
            // When the receive buffer becomes empty, every queue writes its used descriptors back.
            r.pairs.ids().filter(|q| *q != queue).for_each(|q| r.look(cal, q, now));
        }
        if let RingWork::Descriptors { n, .. } = work {
            (0..n).for_each(|_| self.completion(queue, now));
        }
        true
    }

    /// Counts `n` lines of `slot` as read from memory; returns true when these lines completed a transfer.
    pub(in crate::device::nic) fn ring_read(
        &mut self,
        cal: &mut impl DevicePosts,
        slot: u16,
        n: u32,
        now: Time,
    ) -> bool {
        let r = self.ringed_mut();
        let Some(work) = r.reads.done(slot, n) else { return false };
        let queue = match work {
            RingWork::Packet(id) | RingWork::Object(id) => {
                let (Attachment::Ringed(r), packets) = (&mut self.attachment, &mut self.packets) else { return false };
                let p = packets.get_mut(id);
                p.left -= 1;
                p.data_at = now;
                if self.sweep_tx == SweepTx::Nic && work == RingWork::Packet(id) {
                    // The whole buffer has been read, but it returns to software only with its descriptor's write-back.
                    cal.post(now, crate::memory::MemoryEvent::sweep(p.tx_line, p.tx_lines.into(), Sweep::Sweep));
                }
                if p.left == 0 {
                    let end = r.wire.send((p.tx_bytes + p.object_bytes + r.stripped() + GAP).into(), now);
                    cal.post(end, DeviceEvent::NicTx(NicAt::Port(r.port), id));
                }
                let queue = p.queue;
                let idle = r.pairs.iter().all(|p| p.transmit.cached() == 0);
                let (delay, at_once) = (r.spec.quirks.transmit_turnaround, r.spec.quirks.transmit_packets == 1 && idle);
                r.ends(cal, queue, RingSide::Transmit, delay, at_once, now);
                let requests = r.requests(match work {
                    RingWork::Object(_) => p.object_lines(),
                    _ => p.tx_lines.into(),
                });
                r.after(cal, queue, RingTask::Requests, requests, r.spec.quirks.queue_turnaround, now);
                let pair = &mut r.pairs[queue];
                // A frame may leave, and another packet may reuse its record, before earlier frames have been read.
                let mine = pair.leaving.iter_mut().find(|l| **l == (work, false));
                mine.expect("a frame that is read has a descriptor").1 = true;
                while pair.leaving.front().is_some_and(|l| l.1) {
                    pair.leaving.pop_front();
                    pair.transmit.filled += 1;
                }
                queue
            }
            RingWork::Descriptors { queue, side, n } => {
                let ring = r.pairs[queue].ring(side);
                ring.fetched += u64::from(n);
                ring.fetching = false;
                if let Some(l) = self.lives.as_mut().filter(|_| side == RingSide::Transmit) {
                    l.fetched(queue, n);
                }
                queue
            }
        };
        self.ringed_mut().look(cal, queue, now);
        true
    }

    /// Announces `n` lines of `slot` that will arrive from memory; returns whether they are the last lines of their
    /// transfer.
    pub(in crate::device::nic) fn expect_ring_read(&mut self, slot: u16, n: u32) -> bool {
        !self.ringed_mut().reads.part(slot, n)
    }

    /// Handles `DeviceEvent::NicTx`: the frame of packet `id` is on the wire.
    pub(in crate::device::nic) fn ring_sent(&mut self, id: PacketId, now: Time) -> bool {
        let p = self.packets.get(id);
        let bytes = p.tx_bytes + p.object_bytes;
        self.ringed_mut().room.give(bytes, now);
        self.sent(id, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::endpoint::{Device, DmaDirection};
    use crate::device::nic::{Packet, RingMemory};
    use crate::device::testing::{Either, Events};
    use crate::kernel::units::Size;
    use crate::kernel::LineAddr;
    use crate::kernel::{PortId, Post, RandomStream};

    const WAYS: [DmaDirection; 2] = [DmaDirection::P2mRead, DmaDirection::P2mWrite];

    /// Random frames arrive and are sent, and lines complete out of order: `next` offers a transfer only where
    /// `may_move` allows it.
    #[test]
    fn a_nic_that_denies_that_it_may_move_lines_offers_none() {
        for (one, most) in [(true, 1), (true, 4), (false, 1), (false, 4)] {
            let rings = serde_json::json!({ "receive_packets": most, "quirks": { "one_engine": one, "transmit_packets": most,
                "receive_turnaround": "5 ns", "transmit_turnaround": "2 ns", "fetch_delay": "20 ns" } });
            let spec = serde_json::from_value(serde_json::json!({ "rings": rings })).expect("a NIC");
            let mut nic = Nic::ringed(
                &spec,
                PortId(0),
                &[RingMemory { receive: LineAddr(0), transmit: LineAddr(256) }],
                Size(512),
            );
            (0..1023).for_each(|i| nic.arm(QueueId(0), i, LineAddr(1024 + u64::from(i) * 16)));
            nic.start_armed(QueueId(0));
            let (mut cal, mut now, mut dice) = (Events::default(), Time::ZERO, RandomStream::new(1, "frames", most));
            let (mut out, mut denied) = (Vec::new(), 0);
            for _ in 0..40_000 {
                match dice.below(4) {
                    0 if nic.packets_inside() < 8 => {
                        let _ = nic.arrive(&mut cal, Packet { wire_bytes: 600, uses: 1, ..Packet::default() }, now);
                    }
                    1 if !out.is_empty() => {
                        let (way, slot, n) = out.swap_remove(dice.below(out.len() as u64) as usize);
                        nic.done(&mut cal, way, slot, n, now);
                    }
                    2 => match cal.pop() {
                        Some((at, Either::Device(DeviceEvent::Ring { queue, task, n, .. }))) => {
                            now = at;
                            nic.on_ring(&mut cal, queue, task, n.into(), now);
                        }
                        Some((at, Either::Device(DeviceEvent::NicTx(_, id)))) => {
                            now = at;
                            nic.on_tx_port(id, now);
                            nic.end_use(id);
                        }
                        other => now = other.map_or(now, |o| o.0),
                    },
                    _ => {
                        if let Some(id) = Nic::take(&mut nic, QueueId(0)) {
                            let p = nic.packet(id);
                            (p.tx_line, p.tx_lines, p.tx_bytes) = (p.line, p.lines, p.rx_bytes);
                            let (buffer, line) = (p.buffer, p.line);
                            nic.put(QueueId(0), id);
                            nic.arm(QueueId(0), buffer, line);
                            for side in [RingSide::Receive, RingSide::Transmit] {
                                nic.on_ring(&mut cal, QueueId(0), RingTask::Tail(side), 1, now);
                            }
                        }
                    }
                }
                for way in WAYS {
                    let may = nic.may_move()[way as usize];
                    denied += u64::from(!may);
                    match nic.next(way, now) {
                        Offer::Lines(n) if may => out.push((way, Device::take(&mut nic, way, n, now).slot, n)),
                        Offer::At(at) if may => cal.post(at, DeviceEvent::Turn { port: PortId(0), way }),
                        Offer::Nothing => {}
                        denied => panic!("{way:?}: {denied:?} was denied"),
                    }
                }
            }
            assert!(nic.counts.sent > 500 && denied > 10_000, "{} frames, {denied} denied", nic.counts.sent);
        }
    }
}
