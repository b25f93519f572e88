//! TAS as a role: its clients at the other end of the wire, and its checks.

use super::{frame, Service, TasFlow, TasSegment, ACKNOWLEDGES, ASKS, HEADERS, REPLIES};
use crate::app::{lines, Content};
use crate::device::NicAt;
use crate::kernel::{Int, PacketId, PortId, Post, ThreadId, Time};
use crate::meter::drops::Loss;
use crate::meter::{metric, Values};
use crate::stack::role::{end_packet, Bus, DrawnSegment, Role, RoleClients, RoleView};
use crate::traffic::TrafficEvent;

impl RoleClients for Service {
    fn begin(&mut self, now: Time) -> u32 {
        self.client.begin(now).to_u32()
    }

    fn draw(&mut self) -> Option<DrawnSegment> {
        let segment = self.client.take()?;
        let flow = &self.flows[segment.flow.to_usize()];
        let content = Content {
            kind: if segment.bytes > 0 { ASKS } else { ACKNOWLEDGES },
            key: segment.key(),
            lines: lines(HEADERS + segment.bytes),
            value_lines: 0,
            wire_bytes: frame(segment.bytes),
            ..Content::default()
        };
        Some(DrawnSegment { flow: segment.flow, hash: flow.hash, queue: flow.queue, content })
    }
}

impl Role for Service {
    fn runs_from_start(&self) -> bool {
        true
    }

    fn clients(&mut self) -> Option<&mut dyn RoleClients> {
        Some(self)
    }

    fn ended(&self) -> Option<u64> {
        Some(self.ended)
    }

    fn take_wake_up(&mut self) -> Option<ThreadId> {
        self.woken.pop()
    }

    fn counts_requests(&self, _: bool) -> bool {
        true
    }

    fn restart_meters(&mut self, _: &mut Bus) {
        self.segments = 0;
    }

    /// Ends the transmission of a packet: the server's data go to the client.
    fn on_sent(&mut self, port: PortId, id: PacketId, bus: &mut Bus) -> bool {
        let now = bus.machine.now;
        let Some(nic) = bus.machine.nic_at(NicAt::Port(port)) else { return true };
        nic.life_ends(id, now);
        let check = nic.check_sequence();
        let p = end_packet(nic, id);
        let Some(generator) = bus.generator.as_deref_mut() else { return true };
        self.ended += 1;
        // An acknowledgement has the record of the segment that it acknowledges.
        generator.rtt.bytes += u64::from(p.tx_bytes + check);
        if p.kind != REPLIES {
            return true;
        }
        self.segments += 1;
        let back = generator.back_at(p.wire_bytes, now);
        let rpc = self.spec.rpc.0.to_u32();
        for made in self.client.on_segment_sent(TasSegment::of(p.flow, p.key)) {
            bus.tally.completed(now - made, rpc);
            generator.came_back(back - made, 0);
        }
        bus.machine.cal.post(back, TrafficEvent::Back(bus.tenant));
        true
    }

    /// Delivers the oldest segment of the server on its way to its client.
    fn on_traffic(&mut self, e: TrafficEvent, bus: &mut Bus) -> bool {
        let TrafficEvent::Back(tenant) = e else { return false };
        if bus.stopped {
            return true;
        }
        let now = bus.machine.now;
        match self.client.on_segment_arrival(now) {
            Ok(n) => (0..n).for_each(|_| bus.machine.cal.post(now, TrafficEvent::Offer(tenant))),
            Err(why) => self.broken = Some(why),
        }
        true
    }

    /// Checks TAS's packets and requests.
    fn check_conservation(&self, view: &RoleView) -> Result<(), String> {
        let nic = self.nic.and_then(|at| view.machine.look_at_nic(at));
        // Bytes out of order follow from a loss, and the message about the loss is more helpful.
        if let Some((drops, first)) = nic.and_then(|nic| Some((&nic.drops, nic.drops.first_ever()?))) {
            return Err(self.lost(first, drops.total()));
        }
        if let Some(why) = &self.broken {
            return Err(why.clone());
        }
        if !view.stopped {
            self.client.check()?;
        }
        let early =
            |f: &&TasFlow| f.sent > f.available || f.available > f.written || f.written > f.read || f.read > f.received;
        match self.flows.iter().find(early) {
            Some(f) => Err(format!("a flow has answered what it has not: {f:?}")),
            None => Ok(()),
        }
    }

    fn report(&self, view: &RoleView, v: &mut Values) {
        if self.segments > 0 {
            v.set(metric::TCP_RPCS_PER_SEGMENT, view.tally.completed.to_f64() / self.segments.to_f64());
        }
    }
}

impl Service {
    /// Message about a lost segment, which the clients cannot retransmit, with the choices that the user has.
    fn lost(&self, first: &Loss, all: u64) -> String {
        format!(
            "{all} segments of TCP were lost, the first in the NIC's {} (\"{}\"), and retransmission is not built for TAS; {}",
            first.place.name(),
            first.cause.sentence().trim_end_matches('.'),
            self.remedy
        )
    }
}
