//! Events of traffic: of generators, senders and networks outside the host.

use crate::kernel::Post;

/// An event of a source of traffic, of a load generator or of the network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TrafficEvent {
    /// The next packet of the traffic source reaches the NIC.
    Arrival,
    /// The load generator sends its next packet.
    Offer,
    /// The next reply has returned to the load generator.
    Back,
    /// The load generator gives up requests that have waited longer than the timeout.
    Overdue,
    /// Port `0` of the senders beyond the network is free.
    Emit(u8),
    /// The next segment on the network's wire reaches the NIC.
    Segment,
    /// The next acknowledgement reaches its sender.
    Ack,
    /// Sender `0` checks whether its receiver has sent no acknowledgement for too long.
    Probe(u8),
}

/// A calendar to which generators and senders post their events.
pub trait TrafficPosts: Post<TrafficEvent> {}
impl<C: Post<TrafficEvent>> TrafficPosts for C {}
