//! Events of traffic: of generators, senders and networks outside the host.

use crate::kernel::{Post, TenantId};

/// An event of a tenant's source of traffic, of its load generator or of its network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TrafficEvent {
    /// The next packet of the traffic source reaches the NIC.
    Arrival(TenantId),
    /// The load generator sends its next packet.
    Offer(TenantId),
    /// The next reply is back at the load generator.
    Back(TenantId),
    /// The load generator gives up requests that have waited too long.
    Overdue(TenantId),
    /// A port of the senders beyond the network is free.
    Emit {
        /// Tenant that receives from the senders.
        tenant: TenantId,
        /// Number of the port.
        port: u8,
    },
    /// The next segment on the network's wire reaches the NIC.
    Segment(TenantId),
    /// The next acknowledgement reaches its sender.
    Ack(TenantId),
    /// A sender looks whether its receiver has fallen silent.
    Probe {
        /// Tenant that receives from the sender.
        tenant: TenantId,
        /// Number of the sender's flow.
        flow: u8,
    },
}

/// A calendar to which generators and senders post their events.
pub trait TrafficPosts: Post<TrafficEvent> {}
impl<C: Post<TrafficEvent>> TrafficPosts for C {}
