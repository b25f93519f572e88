//! State of a software load generator: the requests to be sent, and the replies that software has processed.
//!
//! The scenario's traffic determines when requests are due. A core sends a packet when it has finished earlier work: a
//! packet may be sent late, and the core then limits the rate. A round trip lasts from the time at which the core
//! begins to write the packet to the time at which the core has processed the reply.

use crate::device::nic::Packet;
use crate::kernel::{Int, PacketId, Time};
use std::collections::{HashMap, VecDeque};

/// A request that is to be sent, as it will arrive at the other host.
#[derive(Clone, Copy, Debug)]
pub struct SoftwareRequest {
    /// Packet that carries the request; `arrived` is the time at which the request is due.
    pub packet: Packet,
    /// Number of requests planned before this one.
    pub number: u64,
    /// Core that sends the request and receives its reply.
    pub core: u16,
}

/// A reply that software has processed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answered {
    /// Time at which the software began to send the request.
    pub sent: Time,
    /// Time at which the software had processed the reply.
    pub back: Time,
    /// Bytes of the reply's frame.
    pub bytes: u32,
    /// Time at which the request was due.
    pub due: Time,
    /// Client of a closed loop that made the request.
    pub client: u32,
}

/// State of a software load generator; see the module's documentation.
#[derive(Clone, Default)]
pub struct SoftwareClient {
    /// Requests to be sent, by core.
    due: Vec<VecDeque<SoftwareRequest>>,
    planned: u64,
    /// Requests being sent, by their record in the NIC.
    leaving: HashMap<PacketId, SoftwareRequest>,
    /// Requests without a reply, by number, with their times of sending.
    sent: HashMap<u64, (Time, SoftwareRequest)>,
    answered: VecDeque<Answered>,
}

impl SoftwareClient {
    /// A load generator with `cores` cores.
    pub fn new(cores: usize) -> SoftwareClient {
        SoftwareClient { due: vec![VecDeque::new(); cores], ..SoftwareClient::default() }
    }

    /// Plans `packet`, which is due now; returns the core that is to send it. Cores take turns.
    pub fn plan(&mut self, packet: Packet) -> usize {
        let core = (self.planned % self.due.len().to_u64()).to_usize();
        self.due[core].push_back(SoftwareRequest { packet, number: self.planned, core: core.to_u16() });
        self.planned += 1;
        core
    }

    /// Whether core number `core` has a request to send.
    pub fn is_due(&self, core: usize) -> bool {
        !self.due[core].is_empty()
    }

    /// Number of requests that are due and that no core has begun to send.
    pub fn late(&self) -> u64 {
        self.due.iter().map(|d| d.len().to_u64()).sum()
    }

    /// Takes the next request that `core` sends.
    pub fn next(&mut self, core: usize) -> Option<SoftwareRequest> {
        self.due[core].pop_front()
    }

    /// Records that request `r` has record `id` in the NIC, and that its round trip begins.
    pub fn sends(&mut self, id: PacketId, r: SoftwareRequest, now: Time) {
        self.sent.insert(r.number, (now, r));
        self.leaving.insert(id, r);
    }

    /// Takes the request whose frame, with record `id`, is on the wire.
    pub fn left(&mut self, id: PacketId) -> Option<SoftwareRequest> {
        self.leaving.remove(&id)
    }

    /// Records that software has processed `reply`, whose key is the request's number.
    pub fn answered(&mut self, reply: &Packet, now: Time) {
        if let Some((sent, SoftwareRequest { packet, .. })) = self.sent.remove(&reply.key) {
            let (due, client) = (packet.arrived, packet.client);
            self.answered.push_back(Answered { sent, back: now, bytes: reply.wire_bytes, due, client });
        }
    }

    /// Takes a reply that software has processed and that no caller has taken yet.
    pub fn told(&mut self) -> Option<Answered> {
        self.answered.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_take_turns_and_a_reply_ends_the_request_that_it_answers() {
        let mut c = SoftwareClient::new(2);
        let of = |bytes| Packet { wire_bytes: bytes, ..Packet::default() };
        assert_eq!([64, 65, 66].map(|b| c.plan(of(b))), [0, 1, 0]);
        assert_eq!(c.late(), 3);
        let first = c.next(0).expect("planned");
        let second = c.next(1).expect("planned");
        c.sends(PacketId::new(7), first, Time::ns(10));
        c.sends(PacketId::new(8), second, Time::ns(20));
        assert_eq!(c.left(PacketId::new(7)).map(|r| (r.packet.wire_bytes, r.number, r.core)), Some((64, 0, 0)));
        assert!(c.left(PacketId::new(7)).is_none() && c.is_due(0) && !c.is_due(1));
        // The second is answered first.
        for (number, at) in [(1, 50), (0, 70)] {
            c.answered(&Packet { key: number, wire_bytes: 100, ..Packet::default() }, Time::ns(at));
        }
        let times: Vec<_> = std::iter::from_fn(|| c.told()).map(|a| (a.back - a.sent).0 / 1000).collect();
        assert_eq!(times, [30, 60]);
        c.answered(&Packet::default(), Time::ns(90));
        assert_eq!(c.told(), None, "a reply counts once");
    }
}
