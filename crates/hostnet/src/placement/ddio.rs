//! DDIO: update in place on an LLC hit, write-allocate in a few ways on a miss, transmit from the
//! caches (Sweeper, section II-A).

use super::Transfer;
use crate::memory::Inbound;

/// Intel's default of `IIO LLC WAYS`.
pub fn default_ways() -> u32 {
    2
}

pub fn write(_: &Transfer, ways: u32) -> Inbound {
    Inbound::Llc { ways: low_ways(ways) }
}

/// The mask of the `n` lowest ways.
pub fn low_ways(n: u32) -> u32 {
    ((1u64 << n) - 1) as u32
}

/// Bytes of LLC that `ways` of `of` hold: the NIC's share.
pub fn capacity(llc_bytes: u64, ways: u32, of: u32) -> u64 {
    llc_bytes * u64::from(ways) / u64::from(of)
}
