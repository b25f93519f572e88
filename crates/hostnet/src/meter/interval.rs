//! Confidence intervals of metrics, from batches of one measured window.
//!
//! A window is divided into batches. At the end of each batch every metric is computed over the window so far, and the
//! batch's pseudo-value is `(t[k] * v[k] - t[k - 1] * v[k - 1]) / (t[k] - t[k - 1])`. For a mean over time the pseudo-value
//! is the mean over the batch. For a ratio of two means, and for every other smooth function of means, it is the batch's
//! linearised contribution (delta method), so that one rule serves every metric. Batch means whose lag-1 autocorrelation
//! shows that they depend on each other are merged in pairs (Law and Kelton, "Simulation Modeling and Analysis",
//! sections 9.5.3 and 4.4).

use super::{Group, Metric, MetricId, Statistic, Values, METRICS};
use crate::kernel::Int;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Confidence that an interval has in a mean of independent batches.
pub const CONFIDENCE: f64 = 0.95;
/// Fewest batches from which a variance is estimated.
const FEWEST: usize = 6;
/// Fewest batches in which something that a metric counts has happened: of rarer events the batches tell too little.
const FEWEST_SEEN: usize = 4;
/// Standard normal quantile that the autocorrelation of independent batches, times the root of their number, exceeds once
/// in twenty cases.
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

/// One batch: its length, and its deviation from the mean times its length.
#[derive(Clone, Copy)]
struct Batch {
    length: f64,
    deviation: f64,
}

/// Interval, at `confidence`, of the last of `values`, a metric whose values are of kind `statistic`. None where the metric has
/// no value, is a largest or smallest value, has too few batches, or counts what has happened in too few of them.
pub fn interval(statistic: Statistic, values: &[Cumulative], confidence: f64) -> Option<Interval> {
    let last = values.last()?;
    let value = last.value?;
    let rate = match statistic {
        Statistic::Mean => value,
        Statistic::Total => value / last.length,
        Statistic::Single => return None,
    };
    let mut batches = Vec::with_capacity(values.len());
    let (mut length, mut sum, mut seen) = (0.0, 0.0, 0);
    for v in values {
        let Some(x) = v.value else { continue };
        let now = if statistic == Statistic::Total { x } else { x * v.length };
        let span = v.length - length;
        if span > 0.0 {
            batches.push(Batch { length: span, deviation: now - sum - rate * span });
            seen += usize::from(now != sum);
        }
        (length, sum) = (v.length, now);
    }
    while dependent(&batches) && batches.len() / 2 >= FEWEST {
        batches = batches.chunks(2).map(merged).collect();
    }
    if batches.len() < FEWEST || seen < FEWEST_SEEN {
        return None;
    }
    let n = batches.len().to_f64();
    let squares: f64 = batches.iter().map(|b| b.deviation * b.deviation).sum();
    // Batches that still depend on each other hold less information than their number says.
    let r = autocorrelation(&batches);
    let excess = if dependent(&batches) { (1.0 + r) / (1.0 - r) } else { 1.0 };
    let error = (squares * excess * n / (n - 1.0)).sqrt();
    let half = student(n - 1.0, confidence)? * error;
    let half = if statistic == Statistic::Total { half } else { half / last.length };
    Some(Interval { low: value - half, high: value + half })
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

/// Whether the batches' autocorrelation is larger than chance explains.
fn dependent(batches: &[Batch]) -> bool {
    autocorrelation(batches) * batches.len().to_f64().sqrt() > INDEPENDENT
}

/// Intervals of all metrics in the order of [`METRICS`]; `None` where a metric has none.
#[derive(Clone, Debug, PartialEq)]
pub struct Intervals(pub Vec<Option<Interval>>);

impl Default for Intervals {
    fn default() -> Self {
        Intervals(vec![None; METRICS.len()])
    }
}

impl Intervals {
    /// Widens the intervals of `metrics` up to `times` their `values`: a search knows only that what it looks for lies below
    /// the lowest rate that failed, which is that much higher.
    pub fn reach(&mut self, metrics: &[MetricId], times: f64, values: &Values) {
        for id in metrics {
            let Some(value) = values.get(*id) else { continue };
            let own = self.0[id.index()].unwrap_or(Interval { low: value, high: value });
            self.0[id.index()] = Some(Interval { low: own.low, high: own.high.max(value * times) });
        }
    }
}

impl Metric {
    /// Interval of the metric at `confidence`, whose values at the ends of batches are `values`.
    pub fn interval(&self, values: &[Cumulative], confidence: f64) -> Option<Interval> {
        let constant = matches!(self.group, Group::Constants | Group::Simulation);
        if constant || self.unit.is_empty() {
            return None;
        }
        interval(self.statistic, values, confidence)
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

    /// A metric that appears late has batches from there on, of which the first covers the time before.
    #[test]
    fn a_value_that_is_missing_at_first_joins_the_first_batch_that_has_one() {
        let mut x = cumulative(&[5.0, 1.0, 8.0, 2.0, 7.0, 3.0, 6.0, 4.0]);
        x[0].value = None;
        let found = of(Statistic::Mean, &x).expect("batches");
        assert!(found.low < 4.5 && 4.5 < found.high);
    }
}
