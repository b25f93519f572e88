//! Dynamic DDIO ways, after IAT (Yuan et al., ISCA 2021): a control loop gives the NIC more ways while many of its
//! writes miss, and takes ways back when few writes miss.

use super::EpochCounters;
use crate::kernel::units::Span;
use crate::kernel::Int;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Control loop that adapts the number of DDIO ways at run time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IatSpec {
    /// Time between two decisions of the control loop.
    pub epoch: Span,
    /// Smallest number of LLC ways that the NIC keeps, which matters once the loop has shrunk so far.
    pub min_ways: u32,
    /// Largest number of LLC ways that the NIC may have.
    pub max_ways: u32,
    /// Write misses per line written above which the NIC gets one more way, up to `max_ways`.
    pub grow_above: f64,
    /// Write misses per line written below which the NIC loses one way, down to `min_ways`. Changes nothing while the misses
    /// stay above it.
    pub shrink_below: f64,
}

impl IatSpec {
    /// Checks that the values are consistent with each other and with the LLC's ways.
    ///
    /// # Errors
    /// Fails with one clause that names key and value.
    pub fn check(&self, llc_ways: u32) -> Result<(), String> {
        if self.epoch.0 == 0 {
            return Err("placement.iat.epoch = 0 must be positive".into());
        }
        if !(1 <= self.min_ways && self.min_ways <= self.max_ways && self.max_ways <= llc_ways) {
            return Err(format!(
                "placement.iat.min_ways = {} and max_ways = {} must satisfy 1 <= min <= max <= {llc_ways}",
                self.min_ways, self.max_ways
            ));
        }
        if self.shrink_below > self.grow_above {
            return Err(format!(
                "placement.iat.shrink_below = {} is above grow_above = {}",
                self.shrink_below, self.grow_above
            ));
        }
        Ok(())
    }
}

/// State of IAT: the counts of device writes at the last decision.
#[derive(Clone, Debug, Default)]
pub struct Iat {
    /// Writes and write misses of devices up to the last decision.
    seen: (u64, u64),
}

impl Iat {
    /// Number of ways for the next epoch, from the present number and the writes since the counters began.
    pub fn decide(&mut self, s: &IatSpec, ways: u32, c: &EpochCounters) -> u32 {
        let (dw, dm) = (c.writes - self.seen.0, c.write_misses - self.seen.1);
        self.seen = (c.writes, c.write_misses);
        if dw == 0 {
            return ways;
        }
        let ratio = dm.to_f64() / dw.to_f64();
        if ratio > s.grow_above {
            (ways + 1).min(s.max_ways)
        } else if ratio < s.shrink_below {
            ways.saturating_sub(1).max(s.min_ways)
        } else {
            ways
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_follow_the_miss_ratio_of_the_last_epoch_within_their_bounds() {
        let s = IatSpec { epoch: Span(1), min_ways: 2, max_ways: 4, grow_above: 0.5, shrink_below: 0.1 };
        let at = |writes, write_misses| EpochCounters { writes, write_misses, cores: &[] };
        let mut iat = Iat::default();
        assert_eq!(iat.decide(&s, 2, &at(100, 90)), 3);
        assert_eq!(iat.decide(&s, 3, &at(200, 180)), 4);
        assert_eq!(iat.decide(&s, 4, &at(300, 280)), 4);
        assert_eq!(iat.decide(&s, 4, &at(400, 310)), 4, "30 % lies between the thresholds");
        assert_eq!(iat.decide(&s, 4, &at(500, 312)), 3);
    }
}
