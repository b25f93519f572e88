//! Foundations of the simulator: simulated time, quantities with units, random streams and the event calendar.

pub mod cache_aligned;
pub mod calendar;
pub mod defaults;
pub mod extension;
pub mod hint;
pub mod ids;
pub mod num;
pub mod rng;
pub mod time;
pub mod units;

pub use calendar::{Calendar, Post};
pub use defaults::with_defaults;
pub use ids::{
    ChannelId, CoreId, Id, IdVec, LineAddr, NodeId, PacketId, PartialWriteId, PortId, QueueId, ReadJobId, RegionId,
    TenantId, ThreadId, TxnId,
};
pub use num::{Int, Real};
pub use rng::RandomStream;
pub use time::{Clock, Due, Time};
