//! Demand of a generator on the host: the same load for CC-NIC and for the driver of a PCIe NIC.
//!
//! A burst consists of the packets that are due when the core checks, up to the maximum burst: a generator never waits
//! for a burst to fill. In a closed loop the generator sends as many packets as have returned. In an open loop each
//! queue has its share of the rate.

use crate::kernel::{Real, Time};
use crate::traffic::arrival::Arrivals;

/// Packets that a queue pair is offered: the packets of an arrival process, or a constant number of outstanding
/// packets.
#[derive(Clone)]
#[expect(missing_docs, reason = "the documentation of a variant explains its fields")]
pub enum Demand {
    /// A constant number of outstanding packets.
    Closed { outstanding: u32 },
    /// Packets of an arrival process.
    Open { arrivals: Arrivals, base: Option<Time>, next: Time, due: u32, sent: u64 },
}

/// Packets of an arrival process since the run began.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct DuePackets {
    /// Packets that became due.
    pub due: u64,
    /// Packets among these that have not been sent.
    pub unsent: u64,
}

impl DuePackets {
    /// Packets of two queues together; None where neither has an arrival process.
    pub fn sum(a: Option<DuePackets>, b: Option<DuePackets>) -> Option<DuePackets> {
        let add = |b: DuePackets| a.map_or(b, |a| DuePackets { due: a.due + b.due, unsent: a.unsent + b.unsent });
        b.map(add).or(a)
    }
}

impl Demand {
    /// No packets.
    pub fn none() -> Demand {
        Demand::Closed { outstanding: 0 }
    }

    /// Packets according to `arrivals`, the first of them `offset` seconds after the first check.
    pub fn open(arrivals: Arrivals, offset: f64) -> Demand {
        Demand::Open { arrivals, base: None, next: Time((offset * 1e12).whole()), due: 0, sent: 0 }
    }

    /// Number of packets that may be sent now, while `under_way` packets have not returned.
    pub fn due(&mut self, now: Time, under_way: u32) -> u32 {
        match self {
            Demand::Closed { outstanding } => outstanding.saturating_sub(under_way),
            Demand::Open { arrivals, base, next, due, .. } => {
                if base.is_none() {
                    let first = now + *next;
                    *base = Some(first);
                    *next = first + arrivals.next();
                }
                while *next <= now {
                    *due += 1;
                    *next = base.unwrap_or(now) + arrivals.next();
                }
                *due
            }
        }
    }

    /// Records that `n` of the packets that were due have been sent.
    pub fn sent(&mut self, n: u32) {
        if let Demand::Open { due, sent, .. } = self {
            *due -= n;
            *sent += u64::from(n);
        }
    }

    /// Packets of the arrival process, up to the last check; None in a closed loop.
    pub fn packets(&self) -> Option<DuePackets> {
        match self {
            Demand::Closed { .. } => None,
            Demand::Open { due, sent, .. } => Some(DuePackets { due: sent + u64::from(*due), unsent: (*due).into() }),
        }
    }

    /// Time at which the next packet is due, if that is known.
    pub fn next(&self) -> Option<Time> {
        match self {
            Demand::Closed { .. } => None,
            Demand::Open { next, .. } => Some(*next),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_lets_as_many_go_as_are_not_under_way() {
        let mut d = Demand::Closed { outstanding: 8 };
        assert_eq!([0, 5, 8, 9].map(|under_way| d.due(Time::ZERO, under_way)), [8, 3, 0, 0]);
        d.sent(8);
        assert_eq!((d.due(Time::ZERO, 7), d.next()), (1, None));
    }

    #[test]
    fn at_a_rate_what_was_not_sent_stays_due_and_the_next_has_a_time() {
        // One packet per microsecond; the queue's first packet is due half a microsecond after the first check.
        let us = |n: u64| Time::ns(1000 * n);
        let mut d = Demand::Open { arrivals: Arrivals::fixed(1e6), base: None, next: Time::ns(500), due: 0, sent: 0 };
        assert_eq!(d.due(us(7), 0), 0);
        let ten = d.due(us(17), 0);
        assert!((9..=10).contains(&ten), "{ten}");
        d.sent(4);
        assert_eq!(d.due(us(17), 1000), ten - 4, "what is under way does not count");
        assert_eq!(d.due(us(20), 0), ten - 4 + 3);
        assert_eq!(d.packets(), Some(DuePackets { due: (ten + 3).into(), unsent: (ten - 1).into() }));
        assert!(d.next().is_some_and(|at| at > us(20) && at <= us(21)));
    }
}
