//! Packets that originate in the driver: packets of an application that only sends, or packets of a load generator.

use super::{nic_on, PollMode};
use crate::app::{Content, Origin};
use crate::core::Op;
use crate::device::nic::Packet;
use crate::stack::Ctx;
use crate::traffic::software::SoftwareClient;

impl PollMode {
    /// Whether the driver has to originate packets now.
    pub(super) fn is_due(&mut self, c: &Ctx) -> bool {
        match self.origin {
            Origin::Network => false,
            Origin::Always => true,
            Origin::Due => c.roles.get::<SoftwareClient>().is_some_and(|l| l.is_due(c.step.local)),
            Origin::Loop => !c.step.stopped && self.looped.as_mut().is_some_and(|l| l.due(c.step.now) > 0),
        }
    }

    /// Originates up to a burst of packets, each in a separate buffer; returns their number.
    pub(super) fn originate(&mut self, c: &mut Ctx) -> u32 {
        if self.looped.is_some() {
            return self.send_due(c);
        }
        let app = c.app.as_mut().expect("an application sends");
        let mut n = 0;
        while n < self.costs.burst {
            let Some(buffer) = self.pool.get(c.program) else { break };
            let asked = match c.roles.get_mut::<SoftwareClient>() {
                Some(l) => l.next(c.step.local).map(|r| (Content::of(&r.packet), Some(r))),
                None => Some((app.content(c.step.local, c.rng), None)),
            };
            let Some((content, request)) = asked else {
                self.pool.put(buffer, c.program);
                break;
            };
            let (metadata, tx) = (self.pool.metadata(buffer), self.pool.data(buffer));
            c.program.push(Op::Store { line: metadata, lines: self.costs.quirks.mbuf_lines });
            app.make(c.step.local, &content, tx, c.program);
            let packet = Packet {
                queue: self.queue,
                wire_bytes: content.wire_bytes,
                arrived: c.step.now,
                tx_line: tx,
                uses: 1,
                ..Packet::default()
            };
            let nic = nic_on(c.machine.iio.as_deref_mut(), self.port);
            let id = nic.originate(packet);
            if let (Some(l), Some(r)) = (c.roles.get_mut::<SoftwareClient>(), request) {
                nic.request_begins(id, r.number);
                l.sends(id, r, c.step.now);
            }
            self.backlog.push_back((id, buffer));
            n += 1;
        }
        n
    }
}
