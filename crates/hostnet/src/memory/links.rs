//! Inter-socket links, and the position of each transaction on its way over them.

use super::filter::LineSet;
use super::nodes::{NodeLinkSpec, NodesQuirks, NodesSpec};
use crate::flow::domain::{Domain, DomainReading};
use crate::flow::Link;
use crate::kernel::{IdVec, Int, LineAddr, NodeId, Time, TxnId};
use std::collections::VecDeque;

/// Meaning of `Event::Link` for a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum LinkLeg {
    /// The transaction stays in its node.
    #[default]
    None,
    /// The request reaches its home node.
    ToHome,
    /// The answer leaves node `from`.
    Back { from: NodeId },
    /// Memory has answered a speculative read, made in parallel with the snoop of `parent`; the data is not used.
    Useless { parent: TxnId },
    /// A line that is written back reaches its home node.
    Write,
}

/// Progress of a transaction between nodes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trip {
    pub leg: LinkLeg,
    /// Whether the request has reached another node.
    pub travelled: bool,
    /// Time since which the transaction has held a credit of the link.
    pub credit: Option<Time>,
    /// Whether the answer carries data.
    pub data: bool,
    /// Whether the answer crosses a link.
    pub crossed: bool,
    /// Number of parts that the answer still waits for (`awaits`), and arrival of the latest part so far (`ready`).
    pub awaits: u8,
    pub ready: Time,
    /// Additional time in the requester's node after all parts have arrived.
    pub more: Time,
    /// Whether the line is written to memory once it has been read, because its state in the directory is new.
    pub changes_directory: bool,
}

/// One direction: the links from a node to the other node.
#[derive(Clone)]
pub(super) struct LinkDirection {
    links: Vec<Link>,
    /// Free bytes in the flits of the lines in each link's backlog.
    spare: Vec<u64>,
    bytes: u64,
    /// Bytes of lines sent, without their headers.
    payload: u64,
    since: Time,
    /// Credits of the node's outstanding requests.
    pub credits: Domain,
    /// Requests that wait for a credit.
    pub waiting: VecDeque<TxnId>,
}

/// Links and protocol that join two nodes.
#[derive(Clone)]
pub struct InterSocket {
    link: NodeLinkSpec,
    pub(super) protocol: NodesQuirks,
    pub(super) directions: IdVec<NodeId, LinkDirection>,
    trips: Vec<Trip>,
    /// Number of speculative reads of memory whose data was not used.
    pub speculative_reads: u64,
    /// Where memory keeps the directory: lines that were written to memory with the state that the other node has no copy,
    /// and that the other node has not read since. All other lines have been read by the other node before the run.
    pub(super) directory: Option<LineSet>,
    /// Number of lines that home nodes wrote to memory because of their directory state alone.
    pub directory_writes: u64,
}

/// Readings of one direction of the inter-socket links over the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkReading {
    /// Number of bytes sent, including headers.
    pub bytes: u64,
    /// Number of bytes of lines, without headers.
    pub payload: u64,
    /// Share of time in which the links are busy, mean over the links.
    pub utilisation: f64,
    /// Readings of the node's outstanding requests.
    pub requests: DomainReading,
}

/// Number of the link that messages about `line` take. The processors' hash is not published; Fibonacci hashing spreads
/// lines at any distance from each other over all links, as the processors' hash does.
fn link_of(line: LineAddr, links: u64) -> usize {
    (((line.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) * links) >> 32).to_usize()
}

impl InterSocket {
    /// Makes the links of a machine with several nodes; None for a single node.
    pub(super) fn new(s: &NodesSpec) -> Option<Box<InterSocket>> {
        let link = s.link.clone().filter(|_| s.count > 1)?;
        let one = Link::new(link.rate.0.to_f64() * 8.0, link.latency.into());
        let direction = LinkDirection {
            links: vec![one; link.links.to_usize()],
            spare: vec![0; link.links.to_usize()],
            bytes: 0,
            payload: 0,
            since: Time::ZERO,
            credits: Domain::new(link.credits),
            waiting: VecDeque::new(),
        };
        let directions = IdVec::filled(direction, s.count.to_usize());
        let directory = s.quirks.directory_writes.then(LineSet::default);
        let (trips, protocol) = (Vec::new(), s.quirks);
        Some(Box::new(InterSocket {
            link,
            protocol,
            directions,
            trips,
            speculative_reads: 0,
            directory,
            directory_writes: 0,
        }))
    }

    pub(super) fn trip(&mut self, id: TxnId) -> &mut Trip {
        if self.trips.len() <= id.index() {
            self.trips.resize(id.index() + 1, Trip::default());
        }
        &mut self.trips[id.index()]
    }

    pub(super) fn clear(&mut self, id: TxnId) {
        *self.trip(id) = Trip::default();
    }

    /// Sends a message, or a line if `data`, from node `from`; returns its arrival.
    pub(super) fn send(&mut self, from: NodeId, line: LineAddr, data: bool, now: Time) -> Time {
        let bytes = if data { self.link.data.0 } else { self.link.message.0 };
        let d = &mut self.directions[from];
        let i = link_of(line, d.links.len().to_u64());
        let (link, spare) = (&mut d.links[i], &mut d.spare[i]);
        if link.backlog(now) == Time::ZERO {
            *spare = 0;
        }
        if data {
            d.payload += super::LINE;
            *spare += self.link.spare.0;
        } else if *spare >= bytes {
            *spare -= bytes;
            return now + link.time(bytes) + link.flight;
        }
        d.bytes += bytes;
        link.send(bytes, now) + link.flight
    }

    pub(super) fn restart(&mut self, now: Time) {
        (self.speculative_reads, self.directory_writes) = (0, 0);
        for d in &mut self.directions {
            (d.bytes, d.payload, d.since) = (0, 0, now);
            d.links.iter_mut().for_each(|l| l.restart(now));
            d.credits.restart(now);
        }
    }

    /// Readings of the links from `node` to the other node.
    pub fn read(&self, node: NodeId, now: Time) -> LinkReading {
        let d = &self.directions[node];
        let span = (now - d.since).0.max(1).to_f64() * d.links.len().to_f64();
        let busy: u64 = d.links.iter().map(|l| l.busy_until(now).0).sum();
        LinkReading {
            bytes: d.bytes,
            payload: d.payload,
            utilisation: busy.to_f64() / span,
            requests: d.credits.read(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::units::Size;
    use crate::memory::nodes::NodesQuirks;

    /// One link of 1 B/ns without any other latency.
    fn one_link(spare: u64) -> InterSocket {
        let link = NodeLinkSpec {
            links: 1,
            rate: crate::kernel::units::ByteRate(1_000_000_000),
            latency: crate::kernel::units::Span(0),
            message: Size(16),
            data: Size(96),
            spare: Size(spare),
            credits: 8,
        };
        let protocol = NodesQuirks::default();
        *InterSocket::new(&NodesSpec { count: 2, link: Some(link), quirks: protocol, ..NodesSpec::default() })
            .expect("two nodes")
    }

    /// A line of 96 B with 24 spare bytes carries one message of 16 B, and two lines carry three messages.
    #[test]
    fn messages_travel_in_what_lines_leave_free_while_the_link_is_busy() {
        let at = |b: &mut InterSocket, data, now: u64| b.send(NodeId(0), LineAddr(7), data, Time(now * 1000)).0 / 1000;
        let mut b = one_link(24);
        assert_eq!(at(&mut b, false, 0), 16, "the link is idle: it goes alone");
        assert_eq!(at(&mut b, true, 100), 196);
        assert_eq!(at(&mut b, false, 100), 116);
        assert_eq!(at(&mut b, false, 100), 212, "8 B are left");
        assert_eq!(at(&mut b, true, 100), 308);
        assert_eq!([at(&mut b, false, 100), at(&mut b, false, 100)], [116, 116]);
        assert_eq!(at(&mut b, false, 100), 324);
        assert_eq!(at(&mut b, false, 400), 416, "lines that have left carry nothing any more");
        let mut none = one_link(0);
        assert_eq!([at(&mut none, true, 0), at(&mut none, false, 0)], [96, 112]);
    }

    /// Two lines of 96 ns are sent at once. A window that ends after 150 ns has a busy link for 150 ns, and one that begins then
    /// and lasts for 84 ns has a busy link for the other 42 ns.
    #[test]
    fn a_link_is_busy_for_the_part_of_a_line_within_the_window() {
        let mut b = one_link(0);
        let ends = [0, 1].map(|i| b.send(NodeId(0), LineAddr(i), true, Time::ZERO));
        assert_eq!(ends, [Time::ns(96), Time::ns(192)]);
        assert_eq!(b.read(NodeId(0), Time::ns(150)).utilisation, 1.0);
        b.restart(Time::ns(150));
        assert_eq!(b.read(NodeId(0), Time::ns(234)).utilisation, 0.5);
    }

    /// Buffers of 128 B or 4 KiB, of which only the first line travels, must not leave links idle.
    #[test]
    fn lines_at_any_power_of_two_from_each_other_spread_over_all_links() {
        for links in [1, 2, 3, 4] {
            for stride in [1, 2, 4, 8, 64, 4096] {
                let mut n = vec![0u32; links as usize];
                (0..6000).for_each(|i| n[link_of(LineAddr((1 << 20) + i * stride), links)] += 1);
                let fair = 6000 / links as u32;
                assert!(n.iter().all(|n| n.abs_diff(fair) <= fair / 10), "{links} links, every {stride} lines: {n:?}");
            }
        }
    }
}
