//! Confidence intervals of percentiles, by order statistics.
//!
//! The interval of a percentile is read from the distribution at the ends of an interval of the share of samples that are at
//! most as large as the percentile. The share is a mean, whose interval comes from the batches of the window; it is at least
//! as wide as that of independent samples (binomial distribution).

use super::batches::Cell;
use super::interval::{interval as of_mean, Cumulative, Interval};
use super::{Statistic, Values};
use crate::kernel::Int;
use hdrhistogram::Histogram;
use statrs::distribution::{ContinuousCDF, Normal};

/// Fewest samples beyond a percentile from which its interval is estimated.
const FEWEST_BEYOND: f64 = 10.0;

/// Values of one kind in a window so far, and the numbers of a result that are their percentiles.
#[derive(Clone, Debug)]
pub struct Distribution {
    /// Smallest and largest value of each bin, in the unit of the percentiles, and the number of values up to that bin.
    bins: Vec<(f64, f64, u64)>,
    percentiles: Vec<(Cell, f64)>,
    /// Mean in the unit of the values, as [`Histogram::mean`] computes it; 0 without values.
    mean: f64,
}

impl Distribution {
    /// The distribution in `h`, of whose values `scale` make the unit of the percentiles.
    pub fn new(h: &Histogram<u64>, scale: f64, percentiles: Vec<(Cell, f64)>) -> Distribution {
        let (mut bins, mut seen, mut mean) = (Vec::new(), 0, 0.0);
        let mut low = h.lowest_equivalent(h.min());
        while seen < h.len() {
            let (count, range) = (h.count_at(low), h.equivalent_range(low));
            if count > 0 {
                seen += count;
                bins.push((low.to_f64() / scale, (low + range - 1).to_f64() / scale, seen));
                mean += (low + range / 2).to_f64() * count.to_f64() / h.len().to_f64();
            }
            low += range;
        }
        Distribution { bins, percentiles, mean }
    }

    /// Mean of the values, in their own unit; 0 without values.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Sets the metrics that are percentiles of this distribution; none without values.
    pub fn set_percentiles(&self, v: &mut Values) {
        for (cell, share) in &self.percentiles {
            if let (Cell::Metric(id), Some(value)) = (cell, self.percentile(*share)) {
                v.set(*id, value);
            }
        }
    }

    fn samples(&self) -> u64 {
        self.bins.last().map_or(0, |b| b.2)
    }

    /// The bin in which the value lies that a `share` of the samples do not exceed.
    fn bin(&self, share: f64) -> Option<&(f64, f64, u64)> {
        let rank = (share * self.samples().to_f64()).max(1.0);
        self.bins.get(self.bins.partition_point(|b| b.2.to_f64() < rank))
    }

    /// The value that a `share` of the samples do not exceed; None without samples.
    pub fn percentile(&self, share: f64) -> Option<f64> {
        self.bin(share).map(|b| b.1)
    }

    /// The share of the samples at which `cell` is read from this distribution.
    pub fn share_of(&self, cell: Cell) -> Option<f64> {
        self.percentiles.iter().find(|p| p.0 == cell).map(|p| p.1)
    }

    /// The number of samples up to `value`.
    fn up_to(&self, value: f64) -> u64 {
        let bins = self.bins.partition_point(|b| b.1 <= value);
        bins.checked_sub(1).map_or(0, |last| self.bins[last].2)
    }
}

/// Interval, at `confidence`, of the percentile at `share` of a distribution, whose states at the ends of the batches are
/// `parts`. None where the samples are too few for an upper end, or too few lie beyond the percentile.
pub fn interval(parts: &[&Distribution], share: f64, confidence: f64) -> Option<Interval> {
    let last = *parts.last()?;
    let half = half_width(parts, last.percentile(share)?, share, confidence)?;
    if share + half >= 1.0 {
        return None;
    }
    Some(Interval { low: last.bin((share - half).max(0.0))?.0, high: last.bin(share + half)?.1 })
}

/// Interval, at `confidence`, of the share of the samples that are at most `value`, to tell whether it is above or below
/// `share`: whether `value` lies beyond the percentile at `share`. It is at least as wide as that of independent samples of
/// which `share` are at most `value`. None where so few samples are expected on one side that they tell nothing.
pub fn share_up_to(parts: &[&Distribution], value: f64, share: f64, confidence: f64) -> Option<Interval> {
    let half = half_width(parts, value, share, confidence)?;
    let last = *parts.last()?;
    let found = last.up_to(value).to_f64() / last.samples().to_f64();
    Some(Interval { low: found - half, high: found + half })
}

/// Half of the width of an interval of the share of the samples that are at most `value`, from the batches; at least as wide as
/// that of independent samples with a share of `share`. None where too few samples are expected on one side of `share`.
fn half_width(parts: &[&Distribution], value: f64, share: f64, confidence: f64) -> Option<f64> {
    let samples = parts.last()?.samples().to_f64();
    if share.min(1.0 - share) * samples < FEWEST_BEYOND {
        return None;
    }
    let seen = |d: &&Distribution| {
        let n = d.samples().to_f64();
        Cumulative { length: n, value: (n > 0.0).then(|| d.up_to(value).to_f64() / n) }
    };
    let shares: Vec<_> = parts.iter().map(seen).collect();
    let batches = of_mean(Statistic::Mean, &shares, confidence)?;
    let normal = Normal::standard().inverse_cdf(0.5 + confidence / 2.0);
    let binomial = normal * (share * (1.0 - share) / samples).sqrt();
    Some(binomial.max((batches.high - batches.low) / 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::RandomStream;
    use crate::meter::interval::CONFIDENCE;
    use rand::Rng;

    /// Values that are spread evenly up to 1,000,000, at the ends of 16 batches of `each` values.
    fn drawn(rng: &mut RandomStream, each: u32) -> Vec<Distribution> {
        let mut h = Histogram::<u64>::new_with_bounds(1, 1 << 40, 3).expect("bounds");
        let mut batch = || {
            (0..each).for_each(|_| h.record(rng.random_range(1..=1_000_000)).expect("within bounds"));
            Distribution::new(&h, 1.0, Vec::new())
        };
        (0..16).map(|_| batch()).collect()
    }

    /// Of a thousand windows of 2,000 values that are spread evenly up to 1,000,000, the intervals of the median and of the 99th
    /// percentile contain 500,000 and 990,000 in 95 % (plus what bins of a thousandth and the larger of two half-widths add).
    #[test]
    fn intervals_contain_the_true_percentile_as_often_as_they_say() {
        let mut rng = RandomStream::new(11, "percentiles", 0);
        let mut held = [0, 0];
        for _ in 0..1000 {
            let ends = drawn(&mut rng, 125);
            let ends: Vec<&Distribution> = ends.iter().collect();
            for (i, share) in [0.5, 0.99].into_iter().enumerate() {
                let found = interval(&ends, share, CONFIDENCE).expect("enough samples");
                held[i] += u32::from(found.low <= share * 1e6 && share * 1e6 <= found.high);
            }
        }
        assert!(held.iter().all(|n| (940..=990).contains(n)), "{held:?}");
    }

    /// Of a thousand windows of 4,000 latencies, of which 1 % are above 990,000, 95 % of the intervals contain 0.99, as the interval of
    /// the percentile contains 990,000. Where 0.1 % of them are, all of these intervals lie above 0.99, though the interval of the
    /// percentile at such a confidence has no upper end.
    #[test]
    fn the_share_of_samples_up_to_a_value_tells_on_which_side_of_a_percentile_the_value_lies() {
        let mut rng = RandomStream::new(12, "shares", 0);
        let (mut held, mut above, mut below) = (0, 0, 0);
        for _ in 0..1000 {
            let ends = drawn(&mut rng, 250);
            let ends: Vec<&Distribution> = ends.iter().collect();
            let at = |value: f64, confidence: f64| share_up_to(&ends, value, 0.99, confidence).expect("enough samples");
            let found = at(990_000.0, CONFIDENCE);
            held += u32::from(found.low <= 0.99 && 0.99 <= found.high);
            above += u32::from(at(999_000.0, 0.9995).low > 0.99);
            below += u32::from(at(950_000.0, 0.9995).high < 0.99);
        }
        assert!((940..=995).contains(&held) && above > 990 && below > 990, "{held}, {above}, {below}");
    }

    /// Of 100 samples the 99.9th percentile has no upper end.
    #[test]
    fn too_few_samples_bound_no_percentile() {
        let mut h = Histogram::<u64>::new_with_bounds(1, 1 << 40, 3).expect("bounds");
        let mut ends = Vec::new();
        for i in 1..=100 {
            h.record(i).expect("within bounds");
            if i % 10 == 0 {
                ends.push(Distribution::new(&h, 1.0, Vec::new()));
            }
        }
        let ends: Vec<&Distribution> = ends.iter().collect();
        assert_eq!(interval(&ends, 0.999, CONFIDENCE), None);
    }
}
