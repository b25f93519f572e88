//! Confidence intervals of metrics, from batches of one measured window.
//!
//! A window is divided into batches. At the end of each batch every metric is computed over the window so far, and the
//! batch's pseudo-value is `(t[k] * v[k] - t[k - 1] * v[k - 1]) / (t[k] - t[k - 1])`. For a mean over time the pseudo-value
//! is the mean over the batch. For a ratio of two means, and for every other smooth function of means, it is the batch's
//! linearised contribution (delta method), so that one rule serves every metric. Batch means whose lag-1 autocorrelation
//! shows that they depend on each other are merged in pairs (Law and Kelton, "Simulation Modeling and Analysis",
//! sections 9.5.3 and 4.4). The autocorrelation is negative where what is still under way at the end of a batch counts in the next
//! one, as lines do that move for a request which completes later.

use super::{Group, Metric, Statistic, METRICS};
use crate::kernel::Int;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Confidence that an interval has in a mean of independent batches.
pub const CONFIDENCE: f64 = 0.95;
/// Fewest batches from which a variance is estimated. Of batches of unequal length the effective number counts: the square of
/// their total length over the sum of the squares (Kish, "Survey Sampling", 1965).
const FEWEST: usize = 6;
/// Half-width, as a share of the value, up to which an interval is rounding of numbers of 53 bits.
const ROUNDING: f64 = 1e-12;
/// Fewest batches in which something that a metric counts has happened: of rarer events the batches tell too little.
const FEWEST_SEEN: usize = 4;
/// Standard normal quantile that the autocorrelation of independent batches, times the root of their number, exceeds once
/// in twenty cases, and its negative once in twenty others.
const INDEPENDENT: f64 = 1.645;

/// A value of a metric over the window so far, at the end of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Cumulative {
    /// Length of the window so far, in any unit.
    pub length: f64,
    /// Value over the window so far; None where the metric has none yet.
    pub value: Option<f64>,
}

/// Interval that contains the true value with a probability of [`CONFIDENCE`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end, in the metric's unit.
    pub low: f64,
    /// Upper end, in the metric's unit.
    pub high: f64,
}

/// One batch: its length, and its deviation from the mean times its length. Batches of a total have the length 1, since
/// each has the same number of requests, or the same time.
#[derive(Clone, Copy)]
struct Batch {
    length: f64,
    deviation: f64,
}

/// Interval, at `confidence`, of the last of `values`, a metric whose values are of kind `statistic`. None where the metric has
/// no value, is a largest or smallest value, has too few batches or too unequal ones, as where packets come in a few bursts, or
/// counts what has happened in too few of them.
pub fn interval(statistic: Statistic, values: &[Cumulative], confidence: f64) -> Option<Interval> {
    if statistic == Statistic::Single {
        return None;
    }
    let last = values.last()?;
    let value = last.value?;
    let mut ends: Vec<_> = values.iter().filter_map(|v| Some((v.length, v.value?))).collect();
    ends.dedup_by(|later, end| {
        later.0 == end.0 && {
            end.1 = later.1;
            true
        }
    });
    let total = statistic == Statistic::Total;
    let (mut batches, mut before, mut seen) = (Vec::with_capacity(ends.len()), (0.0, 0.0), 0);
    for (end, x) in &ends {
        let (length, mean) = if total { (1.0, value / ends.len().to_f64()) } else { (end - before.0, value) };
        let sum = if total { *x } else { x * end };
        batches.push(Batch { length, deviation: sum - before.1 - mean * length });
        seen += usize::from(sum != before.1);
        before = (*end, sum);
    }
    while dependent(&batches).is_some() && batches.len() / 2 >= FEWEST {
        batches = batches.chunks(2).map(merged).collect();
    }
    if !comparable(batches.iter().map(|b| b.length)) || seen < FEWEST_SEEN {
        return None;
    }
    let n = batches.len().to_f64();
    let squares: f64 = batches.iter().map(|b| b.deviation * b.deviation).sum();
    // Batches that still resemble each other hold less information than their number says.
    let excess = dependent(&batches).filter(|r| *r > 0.0).map_or(1.0, |r| (1.0 + r) / (1.0 - r));
    let error = (squares * excess * n / (n - 1.0)).sqrt();
    let half = student(n - 1.0, confidence)? * error;
    let half = if total { half } else { half / last.length };
    let half = if half <= ROUNDING * value.abs() { 0.0 } else { half };
    Some(Interval { low: value - half, high: value + half })
}

/// Whether batches of these lengths are effectively six at least, so that they tell something about a mean over their time.
pub fn comparable(lengths: impl Iterator<Item = f64>) -> bool {
    let (n, all, squares) = lengths.fold((0, 0.0, 0.0), |(n, all, squares), l| (n + 1, all + l, squares + l * l));
    n >= FEWEST && all * all >= FEWEST.to_f64() * squares
}

/// Two-sided quantile, at `confidence`, of Student's t distribution with `freedom` degrees of freedom: the half-width of the
/// interval of a mean of `freedom + 1` independent values, in standard errors. None unless `freedom` is above 0.
pub fn student(freedom: f64, confidence: f64) -> Option<f64> {
    Some(StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(0.5 + confidence / 2.0))
}

fn merged(pair: &[Batch]) -> Batch {
    Batch { length: pair.iter().map(|b| b.length).sum(), deviation: pair.iter().map(|b| b.deviation).sum() }
}

/// Lag-1 autocorrelation of the batches.
fn autocorrelation(batches: &[Batch]) -> f64 {
    let means: Vec<f64> = batches.iter().map(|b| b.deviation / b.length).collect();
    let squares: f64 = means.iter().map(|x| x * x).sum();
    if squares == 0.0 {
        return 0.0;
    }
    means.windows(2).map(|w| w[0] * w[1]).sum::<f64>() / squares
}

/// The batches' autocorrelation, where it is farther from 0 than chance explains.
fn dependent(batches: &[Batch]) -> Option<f64> {
    Some(autocorrelation(batches)).filter(|r| r.abs() * batches.len().to_f64().sqrt() > INDEPENDENT)
}

/// Intervals of all metrics in the order of [`METRICS`]; `None` where a metric has none.
#[derive(Clone, Debug, PartialEq)]
pub struct Intervals(pub Vec<Option<Interval>>);

impl Default for Intervals {
    fn default() -> Self {
        Intervals(vec![None; METRICS.len()])
    }
}

impl Interval {
    /// Interval of a rate that a search found, from the interval of `value` that was measured at it: the search knows only that what
    /// it looks for lies below the lowest rate that failed, which is `failed` times as high.
    pub fn of_search(self, value: f64, failed: f64) -> Interval {
        Interval { high: self.high.max(value * failed), ..self }
    }
}

impl Metric {
    /// Interval of the metric at `confidence`, whose values at the ends of batches are `values`.
    pub fn interval(&self, values: &[Cumulative], confidence: f64) -> Option<Interval> {
        let constant = matches!(self.group, Group::Constants | Group::Simulation);
        if constant || self.unit.is_empty() {
            return None;
        }
        let Interval { low, high } = interval(self.statistic, values, confidence)?;
        // No metric is below 0, and no share is above 1.
        let value = values.last()?.value?;
        let most = if self.unit == "fraction" { value.max(1.0) } else { f64::INFINITY };
        Some(Interval { low: low.max(value.min(0.0)), high: high.min(most) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::RandomStream;
    use rand::Rng;

    fn of(statistic: Statistic, values: &[Cumulative]) -> Option<Interval> {
        interval(statistic, values, CONFIDENCE)
    }

    fn cumulative(x: &[f64]) -> Vec<Cumulative> {
        let mut sum = 0.0;
        let mean = |(i, x): (usize, &f64)| {
            sum += x;
            let n = (i + 1).to_f64();
            Cumulative { length: n, value: Some(sum / n) }
        };
        x.iter().enumerate().map(mean).collect()
    }

    /// Eight values 1 to 8: mean 4.5, sample variance 6, so the half-width is t(7, 0.975) * sqrt(6 / 8) with
    /// t = 2.364624 (table of Student's t), after the trend is removed by their order: 5, 1, 8, 2, 7, 3, 6, 4.
    #[test]
    fn the_interval_of_a_mean_is_student_s() {
        let found = of(Statistic::Mean, &cumulative(&[5.0, 1.0, 8.0, 2.0, 7.0, 3.0, 6.0, 4.0])).expect("batches");
        let half = 2.364_624 * (6.0f64 / 8.0).sqrt();
        assert!((found.low - (4.5 - half)).abs() < 1e-5 && (found.high - (4.5 + half)).abs() < 1e-5, "{found:?}");
    }

    /// A total of equal batches is the mean times their number, and so is its interval.
    #[test]
    fn the_interval_of_a_total_is_that_of_its_rate_times_the_length() {
        let x = [5.0, 1.0, 8.0, 2.0, 7.0, 3.0, 6.0, 4.0];
        let mut sum = 0.0;
        let total = |(i, x): (usize, &f64)| {
            sum += x;
            Cumulative { length: (i + 1).to_f64(), value: Some(sum) }
        };
        let total = of(Statistic::Total, &x.iter().enumerate().map(total).collect::<Vec<_>>()).expect("batches");
        let mean = of(Statistic::Mean, &cumulative(&x)).expect("batches");
        assert!((total.low - 8.0 * mean.low).abs() < 1e-9 && (total.high - 8.0 * mean.high).abs() < 1e-9);
    }

    /// Of a thousand windows the intervals contain the true value in 95 %, plus or minus four standard deviations (0.7 % each):
    /// of a mean, of a mean whose batches depend on each other (AR(1) with 0.5), and of a ratio of means, whose true value is 2.
    #[test]
    fn intervals_contain_the_true_value_as_often_as_they_say() {
        let mut rng = RandomStream::new(7, "intervals", 0);
        let mut normal = move || -> f64 { (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0 };
        let (mut of_mean, mut of_chain, mut of_ratio) = (0, 0, 0);
        for _ in 0..1000 {
            let x: Vec<f64> = (0..16).map(|_| 10.0 + normal()).collect();
            let holds = |i: Interval, x: f64| u32::from(i.low <= x && x <= i.high);
            of_mean += holds(of(Statistic::Mean, &cumulative(&x)).expect("batches"), 10.0);
            let mut state = normal() / 0.75f64.sqrt();
            let chain: Vec<f64> = (0..16 * 20)
                .map(|_| {
                    state = 0.5 * state + normal();
                    10.0 + state
                })
                .collect();
            let chain: Vec<f64> = chain.chunks(20).map(|c| c.iter().sum::<f64>() / 20.0).collect();
            of_chain += holds(of(Statistic::Mean, &cumulative(&chain)).expect("batches"), 10.0);
            let (mut a, mut b) = (0.0, 0.0);
            let ratio: Vec<Cumulative> = (1..=16)
                .map(|k| {
                    let common = normal();
                    (a, b) = (a + 20.0 + common + normal(), b + 10.0 + common);
                    Cumulative { length: k.to_f64(), value: Some(a / b) }
                })
                .collect();
            of_ratio += holds(of(Statistic::Mean, &ratio).expect("batches"), 2.0);
        }
        for (what, times) in [("mean", of_mean), ("chain", of_chain), ("ratio", of_ratio)] {
            assert!((922..=978).contains(&times), "{what}: {times} of 1000");
        }
    }

    /// A count that is exact but for what is under way at the ends of its batches: the whole window of 128 has the error of two ends, a
    /// standard deviation of 1.41 / 128 of a batch's. Independent batches of that spread would make it 1.41 / 11.3. Merged until
    /// eight are left, they make it 1.41 / 16 / 2.83 = 1.41 / 45, times Student's 2.36 of seven degrees of freedom. The interval contains the true
    /// value in more than 95 %.
    #[test]
    fn what_is_under_way_at_the_ends_of_batches_does_not_widen_an_interval_by_their_number() {
        let mut rng = RandomStream::new(9, "intervals", 0);
        let mut normal = move || -> f64 { (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0 };
        let (mut holds, mut width) = (0, 0.0);
        for _ in 0..1000 {
            let mut end = normal();
            let counted: Vec<f64> = (0..128)
                .map(|_| {
                    let before = std::mem::replace(&mut end, normal());
                    100.0 + end - before
                })
                .collect();
            let found = of(Statistic::Mean, &cumulative(&counted)).expect("batches");
            holds += u32::from(found.low <= 100.0 && 100.0 <= found.high);
            width += (found.high - found.low) / 2.0;
        }
        let merged = 2.364_624 * 2f64.sqrt() / 16.0 / 8f64.sqrt();
        assert!(holds >= 950, "{holds} of 1000");
        assert!(width / 1000.0 < 1.15 * merged, "{} instead of {merged}", width / 1000.0);
    }

    /// Rows of 1, 10 and 30 degrees of freedom in the tables of Student's t at 0.975.
    #[test]
    fn half_widths_are_those_of_student_s_table() {
        for (freedom, t) in [(1.0, 12.7062), (10.0, 2.2281), (30.0, 2.0423)] {
            assert!((student(freedom, CONFIDENCE).expect("above 0") - t).abs() < 1e-4);
        }
        assert_eq!(student(0.0, CONFIDENCE), None);
    }

    #[test]
    fn a_maximum_and_a_short_window_have_no_interval() {
        let x = cumulative(&[1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0]);
        assert_eq!(of(Statistic::Single, &x), None);
        assert_eq!(of(Statistic::Mean, &x[..5]), None);
        assert_eq!(of(Statistic::Mean, &[]), None);
    }

    /// Of a count of eight batches, three in which something has happened are too few, and four are enough.
    #[test]
    fn rare_events_have_no_interval() {
        let x = [0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0];
        assert_eq!(of(Statistic::Mean, &cumulative(&x)), None);
        assert_eq!(of(Statistic::Mean, &cumulative(&[0.0; 8])), None);
        assert!(of(Statistic::Mean, &cumulative(&x.map(|v| if v > 0.0 { v } else { 0.5 }))).is_some());
    }

    /// Requests that come in one burst of a window, which the 16 batches of as many requests divide, tell nothing about a rate over
    /// time: one batch is nearly the whole window. Two batches of seven that are as long as all others tell too little, and
    /// lengths that differ by half tell enough.
    #[test]
    fn batches_of_very_unequal_length_give_no_interval_of_a_mean() {
        let of_lengths = |lengths: &[f64]| {
            let mut length = 0.0;
            let end = |(i, l): (usize, &f64)| {
                length += l;
                Cumulative { length, value: Some((i + 1).to_f64() / length) }
            };
            of(Statistic::Mean, &lengths.iter().enumerate().map(end).collect::<Vec<_>>())
        };
        let burst: Vec<f64> = (0..16).map(|i| if i == 0 { 100.0 } else { 0.1 }).collect();
        assert_eq!(of_lengths(&burst), None);
        assert_eq!(of_lengths(&[2.5, 1.0, 1.0, 2.5, 1.0, 1.0, 1.0]), None, "10 squared over 17.5 is 5.7");
        assert!(of_lengths(&[1.0, 1.5, 1.0, 1.5, 1.0, 1.5, 1.0, 1.5]).is_some());
    }

    /// A count of what comes by time, over batches that each end with a request: with lengths of 5, 1, 8, 2, 7, 3, 6, 4 and ten
    /// counts in each unit of time, the eight counts have the variance 600, of which the total has eight times as much.
    #[test]
    fn the_interval_of_a_total_has_the_spread_of_the_batches_lengths() {
        let (mut length, mut x) = (0.0, Vec::new());
        for l in [5.0, 1.0, 8.0, 2.0, 7.0, 3.0, 6.0, 4.0] {
            length += l;
            x.push(Cumulative { length, value: Some(10.0 * length) });
        }
        let found = of(Statistic::Total, &x).expect("batches");
        let half = 2.364_624 * (8.0f64 * 600.0).sqrt();
        assert!((found.low - (360.0 - half)).abs() < 1e-2 && (found.high - (360.0 + half)).abs() < 1e-2, "{found:?}");
    }

    /// A mean of 0.1 in batches of different lengths has no deviation but that of rounding.
    #[test]
    fn rounding_is_no_interval() {
        let lengths = [0.3, 0.7, 0.2, 0.9, 0.4, 0.6, 0.8, 0.5];
        let mut length = 0.0;
        let end = |l: &f64| {
            length += l;
            Cumulative { length, value: Some(0.1) }
        };
        let found = of(Statistic::Mean, &lengths.iter().map(end).collect::<Vec<_>>());
        assert_eq!(found, Some(Interval { low: 0.1, high: 0.1 }));
    }

    /// A share of 0.5 that is 1 in every other batch, and 0 in between, has an interval as wide as a share can be.
    #[test]
    fn no_interval_reaches_below_0_or_a_share_above_1() {
        let declared = crate::meter::metric::LOSS_RATE.declared();
        let x = cumulative(&[0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0]);
        let wide = interval(Statistic::Mean, &x, 0.9999).expect("batches");
        assert!(wide.low < 0.0 && wide.high > 1.0, "{wide:?}");
        assert_eq!(declared.interval(&x, 0.9999), Some(Interval { low: 0.0, high: 1.0 }));
    }

    /// A metric that appears late has batches from there on, of which the first covers the time before.
    #[test]
    fn a_value_that_is_missing_at_first_joins_the_first_batch_that_has_one() {
        let mut x = cumulative(&[5.0, 1.0, 8.0, 2.0, 7.0, 3.0, 6.0, 4.0]);
        x[0].value = None;
        let found = of(Statistic::Mean, &x).expect("batches");
        assert!(found.low < 4.5 && 4.5 < found.high);
    }
}
