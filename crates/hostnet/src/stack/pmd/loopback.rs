//! A generator on the cores of a host whose NIC is in loopback mode (CC-NIC, section 5.1): each core writes and sends
//! packets, and reads them when they return to its queue.
//!
//! ```text
//!   step: rx_burst --> read each, whole --> free all --> what is due: take buffers, stamp and write each --> tx_burst, one doorbell
//! ```
//!
//! The demand follows the same rules as that of CC-NIC's host (`stack/demand.rs`). A round trip lasts from the time
//! stamp, which is the payload's first word, until the payload has been read.

use super::{nic_on, DriverEffect, PollMode};
use crate::app::Content;
use crate::core::Op;
use crate::device::nic::Packet;
use crate::kernel::{Int, PacketId, PortId, Time};
use crate::stack::demand::{Demand, DuePackets};
use crate::stack::{qp, Ctx};

/// Demand of a generating core, and the number of its packets that are outstanding.
#[derive(Clone)]
pub(super) struct LoopbackState {
    demand: Demand,
    /// Packets that have been sent and have not returned.
    under_way: u32,
}

impl LoopbackState {
    /// Number of packets that may be sent now.
    pub fn due(&mut self, now: Time) -> u32 {
        self.demand.due(now, self.under_way)
    }

    /// Time at which the next packet is due, if that is known.
    pub fn next(&self) -> Option<Time> {
        self.demand.next()
    }

    /// Packets that the generator was asked for.
    pub fn due_packets(&self) -> Option<DuePackets> {
        self.demand.packets()
    }

    /// Records that a packet was lost and will not return.
    pub fn lost(&mut self) {
        self.under_way -= 1;
    }
}

impl PollMode {
    /// Makes the driver a generator of the packets of `demand`, which return.
    pub fn generating(mut self, demand: Demand) -> PollMode {
        self.looped = Some(Box::new(LoopbackState { demand, under_way: 0 }));
        self
    }

    /// Reads the packets of the burst, one after the other, and then frees their buffers.
    pub(super) fn read_back(&mut self, c: &mut Ctx) {
        let app = c.app.as_mut().expect("an application reads");
        let n = self.burst.len();
        for i in 0..n {
            let id = self.burst[i];
            let p = *nic_on(c.machine.iio.as_deref_mut(), self.port).packet(id);
            app.serve(c.step.local, &Content::of(&p), p.line, p.line, c.program);
            if let Some(s) = &mut c.traffic.spikes {
                let stall = s.draw();
                if stall > Time::ZERO {
                    c.program.push(Op::Stall(stall.0));
                }
            }
            c.program.push(Op::Retire { tag: DriverEffect::Seen(id).tag(), stores: false });
        }
        for i in 0..n {
            let p = *nic_on(c.machine.iio.as_deref_mut(), self.port).packet(self.burst[i]);
            self.buffers.spent.relinquish(c.program, p.line, p.lines.into());
            self.free(p.buffer, c.program);
        }
        if let Some(l) = &mut self.looped {
            l.under_way -= n.to_u32();
        }
    }

    /// Originates the packets that are due, at most as many as a `tx_burst`; returns their number.
    pub(super) fn send_due(&mut self, c: &mut Ctx) -> u32 {
        let most = self.costs.quirks.transmit_burst.unwrap_or(self.costs.burst);
        let due = self.looped.as_mut().map_or(0, |l| l.due(c.step.now)).min(most);
        let mut n = 0;
        while n < due {
            let Some(buffer) = self.pool.get(c.program) else { break };
            let (metadata, tx) = (self.pool.metadata(buffer), self.pool.data(buffer));
            c.program.compute(self.costs.quirks.allocate_instructions);
            c.program.push(Op::Store { line: metadata, lines: self.costs.quirks.mbuf_lines });
            let app = c.app.as_mut().expect("an application sends");
            let content = app.content(c.step.local, c.rng);
            let nic = nic_on(c.machine.iio.as_deref_mut(), self.port);
            let id = nic.originate(Packet {
                flow: self.queue.0.into(),
                queue: self.queue,
                wire_bytes: content.wire_bytes + nic.check_sequence(),
                arrived: c.step.now,
                tx_line: tx,
                uses: 1,
                ..Packet::default()
            });
            c.program.push(Op::Retire { tag: DriverEffect::Stamp(id).tag(), stores: false });
            app.make(c.step.local, &content, tx, c.program);
            self.backlog.push_back((id, buffer));
            n += 1;
        }
        if let Some(l) = &mut self.looped {
            l.under_way += n;
            l.demand.sent(n);
        }
        n
    }
}

/// Ends the round trip of packet `id` of the NIC on `port`, which has been read.
pub(super) fn seen(id: PacketId, port: PortId, c: &mut Ctx) {
    let nic = nic_on(c.machine.iio.as_deref_mut(), port);
    let p = nic.packet(id);
    p.arrived = Time(p.key);
    let (trip, bytes) = (c.step.now.saturating_sub(p.arrived), p.wire_bytes);
    qp::ended(nic, id, c.tally, c.step.now);
    nic.end_use(id);
    if let Some(g) = &mut c.traffic.generator {
        g.came_back(trip, bytes);
    }
}
