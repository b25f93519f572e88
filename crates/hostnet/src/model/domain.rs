//! Bounds that a domain's credits imply ("Understanding the Host Network", SIGCOMM'24, section 4): a sender with C
//! credits, each held for a time L, moves at most C x 64 / L bytes.

use serde::{Deserialize, Serialize};

/// Bytes of a cache line; a credit carries one line.
pub const LINE: f64 = 64.0;

/// Throughput in GB/s of `credits` outstanding lines, each held for `latency_ns`.
pub fn bound_gbs(credits: f64, latency_ns: f64) -> f64 {
    credits * LINE / latency_ns
}

/// Latency in ns by Little's law: mean occupancy in lines over the rate of arrivals, given as `rate_gbs` of whole
/// lines.
pub fn little_ns(occupancy: f64, rate_gbs: f64) -> f64 {
    occupancy * LINE / rate_gbs
}

/// Number of credits that a throughput of `rate_gbs` needs at a latency of `latency_ns`.
pub fn credits_needed(rate_gbs: f64, latency_ns: f64) -> f64 {
    rate_gbs * latency_ns / LINE
}

/// Smallest share of credits in use at which a sender counts as limited by its credits. Measured occupancies of full
/// buffers lie slightly below the capacity, since a returned credit takes some time to be used again.
const EXHAUSTED: f64 = 0.95;

/// Measurements of one domain of a traffic class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Name of the domain.
    pub name: String,
    /// Credits of all senders together.
    pub credits: f64,
    /// Mean number of credits in use, of all senders together.
    pub occupancy: f64,
    /// Throughput in GB/s of whole lines.
    pub rate_gbs: f64,
    /// Latency without contention, in ns, if it is known.
    #[serde(default)]
    pub unloaded_ns: Option<f64>,
}

/// Quantities derived from a domain's measurements.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DerivedReading {
    /// Name of the domain.
    pub name: String,
    /// Latency by Little's law, in ns.
    pub latency_ns: f64,
    /// Throughput in GB/s that all credits allow at this latency.
    pub bound_gbs: f64,
    /// Share of the credits in use.
    pub used: f64,
    /// Whether no credit is left, so that any further latency reduces throughput.
    pub exhausted: bool,
    /// Ratio of the latency to the unloaded latency.
    pub inflation: Option<f64>,
}

impl Measured {
    /// Derives the latency, the bound and the use of a domain from its measurements.
    pub fn reading(&self) -> DerivedReading {
        let latency_ns = little_ns(self.occupancy, self.rate_gbs);
        let used = self.occupancy / self.credits;
        DerivedReading {
            name: self.name.clone(),
            latency_ns,
            bound_gbs: bound_gbs(self.credits, latency_ns),
            used,
            exhausted: used >= EXHAUSTED,
            inflation: self.unloaded_ns.map(|u| latency_ns / u),
        }
    }
}

/// Domain that limits a path, which is the one with the smallest bound. None for a path without domains.
pub fn bottleneck(path: &[DerivedReading]) -> Option<&DerivedReading> {
    path.iter().min_by(|a, b| a.bound_gbs.total_cmp(&b.bound_gbs))
}

/// Regime of a host on which traffic of cores and of a device contends (section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Regime {
    /// Neither the cores nor the device lose throughput.
    Calm,
    /// The cores lose throughput and the device does not.
    Blue,
    /// The cores and the device lose throughput.
    Red,
}

/// Largest loss of throughput that section 2 counts as none.
pub const UNAFFECTED: f64 = 0.03;

/// Regime that follows from the ratios of isolated to colocated throughput of cores and device.
pub fn regime(degradation_c2m: f64, degradation_p2m: f64) -> Regime {
    if degradation_p2m > 1.0 + UNAFFECTED {
        Regime::Red
    } else if degradation_c2m > 1.0 + UNAFFECTED {
        Regime::Blue
    } else {
        Regime::Calm
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_own_example_needs_65_credits() {
        // Section 5.1: 14 GB/s of PCIe at about 300 ns need 65.6 credits.
        assert!((credits_needed(14.0, 300.0) - 65.6).abs() < 0.05);
        // 92 credits at 300 ns allow 19.6 GB/s, so 40 % more latency can be masked.
        assert!((bound_gbs(92.0, 300.0) - 19.627).abs() < 1e-3);
        assert!((bound_gbs(92.0, 1.4 * 300.0) - 14.02).abs() < 0.01);
    }

    #[test]
    fn a_core_with_ten_credits_at_70_ns_reads_9_gb_a_second() {
        assert!((bound_gbs(10.0, 70.0) - 9.143).abs() < 1e-3);
        assert!((little_ns(10.0, 9.143) - 70.0).abs() < 0.01);
    }

    #[test]
    fn the_bottleneck_is_the_domain_with_the_smallest_bound() {
        let domain = |name: &str, credits, occupancy| Measured {
            name: name.into(),
            credits,
            occupancy,
            rate_gbs: 14.0,
            unloaded_ns: Some(300.0),
        };
        let path = [domain("pcie", 400.0, 120.0).reading(), domain("iio write", 92.0, 91.0).reading()];
        assert_eq!(bottleneck(&path).map(|r| r.name.as_str()), Some("iio write"));
        assert!(path[1].exhausted && !path[0].exhausted);
        // 91 lines at 14 GB/s: 416 ns.
        assert!((path[1].latency_ns - 416.0).abs() < 1e-9 && (path[1].inflation.unwrap() - 416.0 / 300.0).abs() < 1e-9);
        assert_eq!(bottleneck(&[]), None);
    }

    #[test]
    fn regimes_follow_the_devices_loss() {
        assert_eq!(regime(1.01, 1.0), Regime::Calm);
        assert_eq!(regime(1.7, 1.02), Regime::Blue);
        assert_eq!(regime(1.39, 1.86), Regime::Red);
    }
}
