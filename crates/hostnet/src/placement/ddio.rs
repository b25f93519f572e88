//! DDIO: inbound lines update the LLC in place on a hit and are allocated in a few ways on a miss; transmission reads
//! from the caches (Sweeper, section II-A).

use super::iat::{Iat, IatSpec};
use super::{DataPlane, DeviceTransfer, EpochCounters, PlacementSpec, Settings};
use crate::kernel::{Int, Time};
use crate::memory::Inbound;

/// Default number of ways in Intel's register `IIO LLC WAYS`.
pub fn default_ways() -> u32 {
    2
}

/// DDIO's ways, fixed or adapted by a control loop.
#[derive(Clone, Debug)]
pub struct Ddio {
    ways: u32,
    control: Option<(IatSpec, Iat)>,
}

impl DataPlane for Ddio {
    fn new(s: &PlacementSpec) -> Ddio {
        Ddio { ways: s.ways, control: s.iat.clone().map(|i| (i, Iat::default())) }
    }
    fn check(s: &PlacementSpec, llc_ways: u32) -> Result<(), String> {
        check_ways(s, llc_ways)?;
        s.iat.as_ref().map_or(Ok(()), |i| i.check(llc_ways))
    }
    fn write(&mut self, _: &DeviceTransfer) -> Inbound {
        Inbound::Llc { ways: low_ways(self.ways) }
    }
    fn reads_tags(&self) -> bool {
        false
    }
    fn ways(&self) -> u32 {
        self.ways
    }
    fn epoch(&self) -> Option<Time> {
        self.control.as_ref().map(|(s, _)| s.epoch.into())
    }
    fn decide(&mut self, c: &EpochCounters) {
        if let Some((s, iat)) = &mut self.control {
            self.ways = iat.decide(s, self.ways, c);
        }
    }
    fn decide_in_silence(&mut self, _: &EpochCounters, _: u64) {
        // IAT keeps the ways where devices have written nothing.
    }
    fn set(&mut self, s: &Settings) -> Result<(), String> {
        if !s.prefetch.is_empty() {
            return Err("the control plane sets prefetch, which needs placement.policy = \"idio\"".into());
        }
        self.ways = s.ways.unwrap_or(self.ways);
        Ok(())
    }
    fn restart(&mut self) {
        if let Some((_, iat)) = &mut self.control {
            *iat = Iat::default();
        }
    }
}

/// Checks that `placement.ways` is positive and does not exceed the number of ways of the LLC.
pub(super) fn check_ways(s: &PlacementSpec, llc_ways: u32) -> Result<(), String> {
    if s.ways == 0 {
        return Err("placement.ways = 0 must be positive".into());
    }
    if s.ways > llc_ways {
        return Err(format!("placement.ways = {} is more than the LLC's {llc_ways} ways", s.ways));
    }
    Ok(())
}

/// Bit mask of the `n` lowest ways.
pub fn low_ways(n: u32) -> u32 {
    ((1u64 << n) - 1).to_u32()
}

/// Bytes of the LLC that the first `ways` of its `of` ways hold.
pub fn capacity(llc_bytes: u64, ways: u32, of: u32) -> u64 {
    llc_bytes * u64::from(ways) / u64::from(of)
}
