//! A thread of TAS's fast path. In each turn it takes packets, sends the segments that flows have to send, and takes
//! the application's entries.

use super::io::{Io, ReceivedPacket};
use super::{
    lines, only_computes, Context, ContextEntry, Service, TasFlow, TasSegment, BATCH, FROM_APP, HEADERS, MANAGED, MSS,
    POSTED, QUEUE, STATE, TO_APP,
};
use crate::core::{Op, Program};
use crate::device::nic::Packet;
use crate::kernel::{Due, Int, LineAddr};
use crate::meter::life::{key_of_segment, Milestone};
use crate::stack::pmd::nic_on;
use crate::stack::{Ctx, Step};
use std::collections::VecDeque;

/// Bytes of a frame's check sequence, which the NIC adds.
const CHECKSUM: u64 = 4;
/// Kind of a packet that is an acknowledgement from a client.
pub const ACKNOWLEDGES: u8 = 0;
/// Kind of a packet that carries a client's data.
pub const ASKS: u8 = 1;
/// Kind of a packet that carries the server's data.
pub const REPLIES: u8 = 2;

/// Bytes of a frame with `bytes` bytes of data.
pub fn frame(bytes: u64) -> u32 {
    (HEADERS + bytes + CHECKSUM).to_u32()
}

#[derive(Clone)]
pub struct FastPath {
    local: usize,
    pub(super) io: Io,
    /// Whether the last program polled.
    polled: bool,
    /// Whether the last turn found nothing to do.
    idle: bool,
    /// Flows in the queue manager; `leaving` holds entries that are being sent to the application.
    managed: VecDeque<u32>,
    entries_in_flight: VecDeque<ContextEntry>,
}

/// Takes the spin lock of a flow's state, and reads and writes the state.
fn update(state: LineAddr, p: &mut Program) {
    p.push(Op::Atomic { line: state });
    p.push(Op::Load { line: state, lines: STATE.to_u32() });
    p.push(Op::Store { line: state, lines: STATE.to_u32() });
}

impl FastPath {
    pub(super) fn new(local: usize, io: Io) -> FastPath {
        FastPath { local, io, polled: false, idle: false, managed: VecDeque::new(), entries_in_flight: VecDeque::new() }
    }

    pub(super) fn step(&mut self, c: &mut Ctx) -> Step {
        if std::mem::take(&mut self.polled) {
            if self.io.gathers(c) {
                self.polled = true;
                // An entry that has come since the last turn waits for the next one.
                self.idle &= self.io.has_nothing() && self.has_no_entry(c);
                return self.polls();
            }
            self.idle = self.turn(c);
        }
        let Some(t) = c.roles.get_mut::<Service>() else { return Step::Idle };
        let at = t.contexts[self.local].from_app_ends.1;
        c.program.push(Op::Load { line: t.memory.threads[self.local][1] + at / FROM_APP % QUEUE, lines: 1 });
        self.io.poll(c);
        self.polled = true;
        self.polls()
    }

    /// Activity of the core whose program polls.
    fn polls(&self) -> Step {
        match self.idle {
            true => Step::Poll { of: self.io.polls(), until: Due::NEVER },
            false => Step::Run,
        }
    }

    fn has_no_entry(&self, c: &Ctx) -> bool {
        c.roles.get::<Service>().is_some_and(|t| t.contexts[self.local].from_app.is_empty())
    }

    pub(super) fn skip_polls(&mut self, polls: u64) {
        self.io.skip_polls(polls);
    }

    /// Does what there is to do; returns whether there was nothing, and nothing is left.
    fn turn(&mut self, c: &mut Ctx) -> bool {
        let Some(t) = c.roles.get_mut::<Service>() else { return false };
        c.program.compute(t.spec.quirks.turn);
        let (put, taken) = t.contexts[self.local].to_app_ends;
        let room = (QUEUE * TO_APP - (put - taken)).to_usize();
        let got = self.io.receive(BATCH.min(room), c);
        if !got.is_empty() {
            self.receive(&got, c);
            self.io.flush(false, c);
        }
        let short = self.send(c);
        self.take_entries(c);
        self.io.flush(short, c);
        room > 0 && self.managed.is_empty() && self.io.has_nothing() && only_computes(c.program)
    }

    /// Performs TCP's receive processing for the packets that have arrived.
    fn receive(&mut self, got: &[ReceivedPacket], c: &mut Ctx) {
        let Some(mut t) = c.roles.take::<Service>() else { return };
        let port = self.io.nic();
        let segment = |c: &mut Ctx, r: &ReceivedPacket| {
            let packet = nic_on(c.machine.iio.as_deref_mut(), port).packet(r.id);
            TasSegment::of(packet.flow, packet.key)
        };
        c.program.compute(t.spec.quirks.burst);
        for r in got {
            let flow = segment(c, r).flow;
            c.program.push(Op::Prefetch { line: r.line, lines: 2 });
            c.program.push(Op::Prefetch { line: t.bucket(flow), lines: 1 });
            c.program.push(Op::Prefetch { line: t.state(flow), lines: STATE.to_u32() });
        }
        for r in got {
            let s = segment(c, r);
            t.own(s.flow, self.local);
            let p = &mut *c.program;
            p.push(Op::Load { line: t.bucket(s.flow), lines: 1 });
            p.push(Op::Load { line: r.line, lines: lines(HEADERS + s.bytes) });
            update(t.state(s.flow), p);
            self.entries_in_flight.push_back(ContextEntry { flow: s.flow, bytes: s.bytes.to_u32() });
            if s.bytes == 0 {
                p.compute(t.spec.quirks.acknowledgement);
                self.io.release(*r, c);
                let nic = nic_on(c.machine.iio.as_deref_mut(), port);
                nic.lives.iter_mut().for_each(|l| l.forget(r.id.index()));
                nic.packet(r.id).done = true;
                nic.end_use(r.id);
                t.ended += 1;
                continue;
            }
            p.compute(t.spec.quirks.data);
            let flow = &mut t.flows[s.flow.to_usize()];
            if s.at != flow.received {
                t.broken = Some(format!("flow {}: byte {} came where byte {} was next", s.flow, s.at, flow.received));
            }
            flow.received = s.at + s.bytes;
            let nic = nic_on(c.machine.iio.as_deref_mut(), port);
            if nic.lives.is_some() {
                // The record of the packet is that of the acknowledgement from now on.
                let key = key_of_segment(s.flow.to_usize(), (s.at % (1 << 32)).to_u32());
                if let Io::Ports(_) = self.io {
                    nic.passes(r.id, Milestone::FoundByHost);
                }
                nic.life_goes_on(r.id, key);
                flow.followed.push_back((flow.received, key));
            }
            for (line, lines) in t.received_at(s.flow, s.at, s.bytes) {
                p.push(Op::Store { line, lines });
            }
            // The acknowledgement is sent in the same mbuf, with reversed headers.
            p.push(Op::Store { line: r.line, lines: lines(HEADERS) });
            self.io.answer(*r, HEADERS, c);
        }
        for _ in got {
            let Context { to_app_ends: (put, _), .. } = &mut t.contexts[self.local];
            c.program.push(Op::Release { line: t.memory.threads[self.local][0] + *put / TO_APP % QUEUE, tag: POSTED });
            *put += 1;
        }
        c.roles.put(t);
    }

    /// Sends segments of flows in the queue manager. Returns whether too few buffers were free.
    fn send(&mut self, c: &mut Ctx) -> bool {
        let Some(mut t) = c.roles.take::<Service>() else { return false };
        let n = self.managed.len().min(BATCH);
        for flow in self.managed.iter().take(n) {
            c.program.push(Op::Prefetch { line: t.state(*flow), lines: 1 });
            let sent = t.flows[flow.to_usize()].sent;
            t.transmit_at(*flow, sent, 1).into_iter().for_each(|(line, lines)| {
                c.program.push(Op::Prefetch { line, lines });
            });
        }
        let mut short = false;
        for _ in 0..n {
            let Some(flow) = self.managed.pop_front() else { break };
            let TasFlow { queue, available, sent, .. } = t.flows[flow.to_usize()];
            let bytes = (available - sent).min(MSS);
            let Some((buffer, line)) = self.io.buffer(queue, HEADERS + bytes, c) else {
                self.managed.push_front(flow);
                short = true;
                break;
            };
            let p = &mut *c.program;
            p.compute(t.spec.quirks.segment);
            self.manage(flow, &t, p);
            update(t.state(flow), p);
            for (line, lines) in t.transmit_at(flow, sent, bytes) {
                p.push(Op::Load { line, lines });
            }
            p.push(Op::Store { line, lines: lines(HEADERS + bytes) });
            let packet = Packet {
                queue,
                flow,
                kind: REPLIES,
                key: TasSegment { flow, at: sent, bytes }.key(),
                wire_bytes: frame(bytes),
                arrived: c.step.now,
                tx_line: line,
                uses: 1,
                ..Packet::default()
            };
            let id = nic_on(c.machine.iio.as_deref_mut(), self.io.nic()).originate(packet);
            self.io.send(queue, id, buffer, HEADERS + bytes, c);
            let lives = &mut nic_on(c.machine.iio.as_deref_mut(), self.io.nic()).lives;
            let f = &mut t.flows[flow.to_usize()];
            f.sent += bytes;
            if let Some(l) = lives {
                while let Some((_, key)) = f.followed.front().copied().filter(|s| s.0 <= f.sent) {
                    f.followed.pop_front();
                    l.carry(id.index(), key);
                }
            }
            f.managed = f.sent < f.available;
            if f.managed {
                self.managed.push_back(flow);
            }
        }
        c.roles.put(t);
        short
    }

    /// Reads and writes the queue manager's entry of a flow.
    fn manage(&self, flow: u32, t: &Service, p: &mut Program) {
        let line = t.memory.threads[self.local][2] + u64::from(flow) / MANAGED;
        p.push(Op::Load { line, lines: 1 });
        p.push(Op::Store { line, lines: 1 });
    }

    /// Takes the application's entries, which announce the bytes that flows have to send.
    fn take_entries(&mut self, c: &mut Ctx) {
        let (Some(t), p, machine) = (c.roles.get_mut::<Service>(), &mut *c.program, &mut c.machine) else { return };
        let context = &mut t.contexts[self.local];
        let n = context.from_app.len().min(BATCH);
        let from = context.from_app_ends.1;
        context.from_app_ends.1 += n.to_u64();
        let entries: Vec<ContextEntry> = context.from_app.drain(..n).collect();
        let line = |i: u64, t: &Service| t.memory.threads[self.local][1] + i / FROM_APP % QUEUE;
        for (i, e) in (from..).zip(&entries) {
            p.push(Op::Load { line: line(i, t), lines: 1 });
            p.push(Op::Prefetch { line: t.state(e.flow), lines: STATE.to_u32() });
        }
        for (i, e) in (from..).zip(entries) {
            t.own(e.flow, self.local);
            p.compute(t.spec.quirks.entry);
            update(t.state(e.flow), p);
            self.manage(e.flow, t, p);
            p.push(Op::Store { line: line(i, t), lines: 1 });
            let f = &mut t.flows[e.flow.to_usize()];
            f.available += u64::from(e.bytes);
            let managed = std::mem::replace(&mut f.managed, true);
            t.pass(e.flow, t.flows[e.flow.to_usize()].available, Milestone::Resumed, machine);
            if !managed {
                self.managed.push_back(e.flow);
            }
        }
    }

    pub(super) fn retired(&mut self, tag: u32, c: &mut Ctx) {
        if tag != POSTED {
            return self.io.retired(tag, c);
        }
        if let (Some(e), Some(t)) = (self.entries_in_flight.pop_front(), c.roles.get_mut::<Service>()) {
            let f = &mut t.flows[e.flow.to_usize()];
            f.delivered += u64::from(e.bytes);
            t.pass(e.flow, t.flows[e.flow.to_usize()].delivered, Milestone::Delivered, &mut c.machine);
            t.contexts[self.local].to_app.push_back(e);
            t.woken.extend(t.cores.last()); // the application's
        }
    }
}
