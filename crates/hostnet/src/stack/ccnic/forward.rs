//! The NIC's thread in forward mode: it receives packets from a wire into receive buffers, and sends packets on the
//! wire when the host returns or answers them.

use super::nic::CcnicNic;
use super::rings::{Desc, CHAINED, EXTERNAL, GROUP, MORE};
use super::spec::{NicReads, Wake};
use super::{lines_of, CcnicEffect, CcnicInterface, Demand, DuePackets};
use crate::app::Content;
use crate::core::Op;
use crate::kernel::{Due, Int};
use crate::stack::{Awaited, Ctx, Step};
use crate::traffic::generator::Sizes;

/// Instructions of a pause in which a thread that can make no progress waits.
const PAUSE: u32 = 200;

/// Packets that arrive from a wire for one queue pair.
#[derive(Clone)]
pub struct Wire {
    /// Packets that are due.
    pub demand: Demand,
    /// Bytes of the largest packet.
    pub bytes: u32,
    /// Content of the packets.
    pub packets: WirePackets,
}

/// Content of packets from a wire.
#[derive(Clone)]
#[expect(missing_docs, reason = "the documentation of a variant explains its fields")]
pub enum WirePackets {
    /// Packets of one size, which the host returns.
    Returned,
    /// Packets that the application draws, in frames of `sizes` where the application leaves the size to the traffic.
    Drawn { sizes: Option<Sizes> },
}

#[derive(Clone)]
pub struct ForwardNic {
    pub(super) nic: CcnicNic,
    pub(super) wire: Wire,
    /// Packet that comes next, and for which no buffer was free.
    next: Option<Content>,
    /// Number of packets that the host has not returned.
    under_way: u32,
    /// Whether the next descriptor that the host returns continues a packet.
    continues: bool,
    /// Whether buffers or the ring had no room for all packets that were due.
    short: bool,
}

impl ForwardNic {
    pub(super) fn new(nic: CcnicNic, wire: Wire) -> ForwardNic {
        ForwardNic { nic, wire, next: None, under_way: 0, continues: false, short: false }
    }

    pub(super) fn step(&mut self, c: &mut Ctx) -> Step {
        let mut found = true;
        if std::mem::take(&mut self.nic.common.polled) {
            if self.gathers(c) {
                return Step::Run;
            }
            found = !self.nic.pending.is_empty();
            self.send(c);
        }
        self.receive(c);
        let idle = !found && self.is_idle(c);
        self.nic.stuck = !found && c.program.ops.is_empty();
        if self.nic.common.spec.wake == Wake::Event {
            if idle {
                let on = Awaited::Line(self.nic.polled_line());
                return match self.wire.demand.next() {
                    Some(until) => Step::WaitUntil { on, instructions: 0, until },
                    None => Step::Wait { on, instructions: 0 },
                };
            }
            if self.short {
                c.program.compute(PAUSE);
            }
        }
        self.nic.poll_idle(c);
        self.nic.poll(self.nic.common.spec.wake == Wake::Polling, c);
        if idle {
            return Step::Poll { of: 1, until: self.next_due() };
        }
        Step::Run
    }

    /// Whether the thread has nothing to do for the queue pair after a poll that found nothing, while `c` has an empty
    /// program.
    pub(super) fn is_idle(&self, c: &Ctx) -> bool {
        c.program.ops.is_empty() && !self.short && !self.nic.has_work()
    }

    /// Packets that have come from the wire.
    pub(super) fn due_packets(&self) -> Option<DuePackets> {
        self.wire.demand.packets()
    }

    /// Time at which the next packet comes from the wire.
    pub(super) fn next_due(&self) -> Due {
        self.wire.demand.next().map_or(Due::NEVER, Due::at)
    }

    /// One turn of a thread that serves several queue pairs; returns true while the burst that is taken goes on.
    pub(super) fn turn(&mut self, c: &mut Ctx) -> bool {
        if self.gathers(c) {
            return true;
        }
        self.send(c);
        self.receive(c);
        false
    }

    /// Takes packets that the host returns; returns true when the thread has polled for more of them.
    fn gathers(&mut self, c: &mut Ctx) -> bool {
        let more = self.nic.take(c);
        let goes_on =
            more && self.nic.pending.len() + GROUP <= (self.nic.common.spec.quirks.nic_batch.to_usize()).max(GROUP);
        if goes_on {
            self.nic.poll(false, c);
        }
        goes_on
    }

    /// Sends the packets that the host has returned on the wire, and frees their buffers.
    fn send(&mut self, c: &mut Ctx) {
        let (Some(i), p) = (c.roles.get_mut::<CcnicInterface>(), &mut *c.program) else { return };
        let common = &mut self.nic.common;
        let header = common.spec.nic_reads == NicReads::Header;
        self.under_way -= std::mem::take(&mut i.ended[common.queue]);
        let mut pending = std::mem::take(&mut self.nic.pending).into_iter().peekable();
        while let Some(d) = pending.next() {
            let buffer = d.buffer - 1;
            let second = match d.flags & MORE {
                0 => None,
                // The other segment may be in a unit that is not ready yet.
                _ if pending.peek().is_none() => {
                    self.nic.pending.push(d);
                    break;
                }
                _ => pending.next_if(|o| o.flags & EXTERNAL != 0),
            };
            let lines = match (header, self.continues) {
                (true, continues) => u32::from(!continues),
                (false, _) => lines_of(d.bytes.into()),
            };
            if lines > 0 {
                p.push(Op::DependentLoad { line: i.line(buffer), lines });
            }
            if let Some(o) = second {
                p.push(Op::DependentLoad { line: i.objects[buffer.to_usize()], lines: lines_of(o.bytes.into()) });
            }
            self.continues = d.flags & CHAINED != 0;
            if !self.continues {
                p.push(Op::Retire { tag: CcnicEffect::Seen.tag(buffer), stores: false });
                self.under_way -= 1;
            }
            common.free_one(i, buffer, p);
        }
        common.free_done(i, p);
        self.nic.release(p);
    }

    /// Receives the packets that are due from the wire, as far as buffers and ring have room.
    fn receive(&mut self, c: &mut Ctx) {
        let batch = self.nic.common.spec.quirks.nic_batch;
        let due = self.wire.demand.due(c.step.now, self.under_way);
        let most = due.min(batch);
        let Ctx { roles, app, rng, program: p, .. } = c;
        let Some(i) = roles.get_mut::<CcnicInterface>() else { return };
        if !self.nic.filled.is_empty() {
            self.nic.publish(i, p);
        }
        let (queue, bytes) = (self.nic.common.queue, self.wire.bytes);
        let mut came = 0;
        while came < most && self.nic.filled.len() < batch.to_usize() {
            let content = match (self.next.take(), &mut self.wire.packets, app.as_deref_mut()) {
                (Some(content), ..) => content,
                (None, WirePackets::Drawn { sizes }, Some(app)) => {
                    let content = app.content(queue, rng);
                    sizes.as_mut().map_or(content, |s| content.sized(s.draw()))
                }
                (None, ..) => Content::default().sized(bytes),
            };
            let segments = self.nic.common.segments();
            let buffers = self.nic.blanks_for(i, content.wire_bytes, segments, p);
            let Some(&last) = buffers.last() else {
                self.next = Some(content);
                break;
            };
            p.push(Op::Retire { tag: CcnicEffect::Stamp.tag(last), stores: false });
            for (k, to) in buffers.iter().copied().enumerate() {
                let part = if segments > 1 { self.nic.common.segment(k) } else { content.wire_bytes };
                self.nic.common.write(i.line(to), lines_of(part), p);
                let desc = self.nic.common.descriptor(k, to, 0);
                self.nic.filled.push(Desc { bytes: part.to_u16(), ..desc });
            }
            p.compute(self.nic.common.spec.quirks.costs.nic_rx);
            i.contents[last.to_usize()] = content;
            came += 1;
        }
        self.under_way += came;
        self.wire.demand.sent(came);
        self.nic.publish(i, p);
        self.short = due > came || !self.nic.filled.is_empty();
    }

    pub(super) fn retired(&mut self, tag: u32, c: &mut Ctx) {
        let (effect, buffer) = CcnicEffect::of(tag);
        match effect {
            CcnicEffect::Visible => self.nic.common.visible(c),
            CcnicEffect::Stamp => self.nic.common.stamp(buffer, c),
            CcnicEffect::Seen => self.nic.common.seen(buffer, c),
        }
    }
}
