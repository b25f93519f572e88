//! DDIO: inbound lines update the LLC in place on a hit and are allocated in a few ways on a miss; transmission reads
//! from the caches (Sweeper, section II-A).

use super::iat::{Iat, IatSpec};
use super::{DataPlane, DeviceTransfer, EpochCounters, PlacementSpec, Settings, Ways};
use crate::kernel::{Int, Time};
use crate::memory::Inbound;

/// Default number of ways in Intel's register `IIO LLC WAYS`.
pub fn default_ways() -> Ways {
    Ways::low(2)
}

/// DDIO's ways, fixed or adapted by a control loop.
#[derive(Clone, Debug)]
pub struct Ddio {
    ways: Ways,
    control: Option<(IatSpec, Iat)>,
}

impl DataPlane for Ddio {
    fn new(s: &PlacementSpec) -> Ddio {
        Ddio { ways: s.ways, control: s.iat.clone().map(|i| (i, Iat::default())) }
    }
    fn check(s: &PlacementSpec, llc_ways: u32) -> Result<(), String> {
        check_ways(s, llc_ways)?;
        match &s.iat {
            Some(_) if s.ways.first > 0 => {
                Err("placement.iat counts ways from way 0; give placement.ways as a number".into())
            }
            Some(i) => i.check(llc_ways),
            None => Ok(()),
        }
    }
    fn write(&mut self, _: &DeviceTransfer) -> Inbound {
        Inbound::Llc { ways: self.ways.mask() }
    }
    fn reads_tags(&self) -> bool {
        false
    }
    fn ways(&self) -> u32 {
        self.ways.count
    }
    fn first_way(&self) -> u32 {
        self.ways.first
    }
    fn epoch(&self) -> Option<Time> {
        self.control.as_ref().map(|(s, _)| s.epoch.into())
    }
    fn decide(&mut self, c: &EpochCounters) {
        if let Some((s, iat)) = &mut self.control {
            self.ways.count = iat.decide(s, self.ways.count, c);
        }
    }
    fn decide_in_silence(&mut self, _: &EpochCounters, _: u64) {
        // IAT keeps the ways where devices have written nothing.
    }
    fn set(&mut self, s: &Settings) -> Result<(), String> {
        if !s.prefetch.is_empty() {
            return Err("the control plane sets prefetch, which needs placement.policy = \"idio\"".into());
        }
        self.ways.count = s.ways.unwrap_or(self.ways.count);
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
    match s.ways {
        Ways { count: 0, .. } => Err("placement.ways = 0 must be positive".into()),
        Ways { first: 0, count } if count > llc_ways => {
            Err(format!("placement.ways = {count} is more than the LLC's {llc_ways} ways"))
        }
        Ways { first, count } if first + count > llc_ways => Err(format!(
            "placement.ways = \"{first}-{}\" is not within the LLC's ways, 0 to {}",
            first + count - 1,
            llc_ways - 1
        )),
        _ => Ok(()),
    }
}

/// Bit mask of the `n` lowest ways, at most 32.
pub fn low_ways(n: u32) -> u32 {
    ((1u64 << n) - 1).to_u32()
}

/// Bytes of the LLC that the first `ways` of its `of` ways hold.
pub fn capacity(llc_bytes: u64, ways: u32, of: u32) -> u64 {
    llc_bytes * u64::from(ways) / u64::from(of)
}
