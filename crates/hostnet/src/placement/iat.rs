//! Dynamic DDIO ways, after IAT (Yuan et al., ISCA 2021): a control loop gives the NIC more ways while
//! its writes miss often, and takes them back when they do not.

use crate::kernel::units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The control loop.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IatSpec {
    /// Time between decisions.
    pub epoch: Span,
    /// Fewest ways the NIC keeps.
    pub min_ways: u32,
    /// Most ways the NIC may have.
    pub max_ways: u32,
    /// Write misses per NIC write above which it gets one way more.
    pub grow_above: f64,
    /// Write misses per NIC write below which it loses one.
    pub shrink_below: f64,
}

#[derive(Clone, Debug, Default)]
pub struct Iat {
    writes: u64,
    misses: u64,
}

impl Iat {
    /// The ways from now on, given the ways so far and the NIC's LLC writes and misses since the start.
    pub fn decide(&mut self, s: &IatSpec, ways: u32, writes: u64, misses: u64) -> u32 {
        let (dw, dm) = (writes.wrapping_sub(self.writes), misses.wrapping_sub(self.misses));
        (self.writes, self.misses) = (writes, misses);
        if dw == 0 || dw > u64::MAX / 2 {
            return ways;
        }
        let ratio = dm as f64 / dw as f64;
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
        let mut iat = Iat::default();
        assert_eq!(iat.decide(&s, 2, 100, 90), 3);
        assert_eq!(iat.decide(&s, 3, 200, 180), 4);
        assert_eq!(iat.decide(&s, 4, 300, 280), 4);
        assert_eq!(iat.decide(&s, 4, 400, 310), 4, "30 % lies between the thresholds");
        assert_eq!(iat.decide(&s, 4, 500, 312), 3);
    }
}
