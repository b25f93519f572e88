//! Arrival processes: the times at which packets arrive.

use crate::kernel::{Int, RandomStream, Real, Time};
use rand_distr::{Distribution, Exp1, LogNormal, Pareto};
use std::sync::Arc;

/// Picoseconds per second, as rates are given per second.
const SECOND_PS: f64 = 1e12;

/// An arrival process: an endless sequence of times that never goes backwards. The first arrival comes one gap after
/// time zero, except where a variant says otherwise.
#[derive(Clone, Debug)]
pub enum Arrivals {
    /// Equal gaps.
    Fixed(FixedArrivals),
    /// Exponentially distributed gaps.
    Poisson(PoissonArrivals),
    /// Random gaps of a given distribution.
    Spread(RandomGaps),
    /// Bursts of arrivals.
    Bursts(BurstArrivals),
    /// Periods with arrivals that alternate with periods without arrivals.
    OnOff(OnOffArrivals),
    /// Arrivals at the times of a capture.
    Trace(TraceArrivals),
}

impl Arrivals {
    /// Evenly spaced arrivals, `rate` per second.
    ///
    /// # Panics
    /// When `rate` is not positive and finite; specs reject that before.
    pub fn fixed(rate: f64) -> Arrivals {
        Arrivals::Fixed(FixedArrivals { gap_ps: gap_ps(rate), n: 0 })
    }

    /// A Poisson process of `rate` arrivals per second.
    ///
    /// # Panics
    /// When `rate` is not positive and finite; specs reject that before.
    pub fn poisson(rate: f64, stream: RandomStream) -> Arrivals {
        Arrivals::Poisson(PoissonArrivals { mean_ps: gap_ps(rate), at: Time::ZERO, stream })
    }

    /// Arrivals with independent gaps of mean 1 / `rate`, drawn from `gaps`.
    ///
    /// # Panics
    /// When `rate` is not positive and finite, or the coefficient of variation of `gaps` is out of range; specs reject
    /// that before.
    pub fn spread(rate: f64, gaps: Gaps, stream: RandomStream) -> Arrivals {
        Arrivals::Spread(RandomGaps { mean_ps: gap_ps(rate), unit: gaps.unit(), at: Time::ZERO, stream })
    }

    /// Bursts of `length` packets every `period`, evenly spaced at `rate` per second within a burst; the first burst
    /// starts at time zero. A burst that lasts longer than the period delays the next burst.
    ///
    /// # Panics
    /// When `rate` is not positive and finite, or `length` or `period` is zero.
    pub fn bursts(period: Time, length: u64, rate: f64) -> Arrivals {
        assert!(length > 0 && period > Time::ZERO, "a burst needs a length and a period");
        let gap_ps = gap_ps(rate);
        let lasts = nearest(gap_ps * length.to_f64());
        Arrivals::Bursts(BurstArrivals { period: period.max(lasts), length, gap_ps, start: Time::ZERO, n: 0 })
    }

    /// An interrupted Poisson process: `rate` arrivals per second in the *on* state, and none in the *off* state. Both
    /// states last exponentially distributed times with the given means. The process starts in the *on* state.
    ///
    /// # Panics
    /// When `rate` is not positive and finite, or `on` is zero.
    pub fn on_off(on: Time, off: Time, rate: f64, stream: RandomStream) -> Arrivals {
        assert!(on > Time::ZERO, "an on-off source needs time to be on");
        let mut source = OnOffArrivals { on, off, mean_ps: gap_ps(rate), at: Time::ZERO, until: Time::ZERO, stream };
        source.until = source.span(on);
        Arrivals::OnOff(source)
    }

    /// The times of a trace, repeated without end. Each repetition follows the previous one after the trace's mean gap,
    /// so that rate and gaps equal those of the trace. With `rate`, all gaps are scaled so that this many packets
    /// arrive per second; without `rate`, the times of the trace remain. The first packet arrives at time zero.
    ///
    /// # Errors
    /// Returns [`NoRate`] when there are fewer than two times or all are equal: such a trace has no rate.
    ///
    /// # Panics
    /// When `times` go backwards or do not start at zero, or `rate` is not positive and finite.
    pub fn trace(times: Arc<[Time]>, rate: Option<f64>) -> Result<Arrivals, NoRate> {
        let (Some(&first), Some(&last)) = (times.first(), times.last()) else {
            return Err(NoRate);
        };
        assert!(first == Time::ZERO && times.is_sorted(), "a trace starts at zero and is sorted");
        if last == Time::ZERO {
            return Err(NoRate);
        }
        let own_gap_ps = last.0.to_f64() / (times.len() - 1).to_f64();
        let period = last.saturating_add(nearest(own_gap_ps));
        let stretch = rate.map_or(1.0, |rate| gap_ps(rate) / (period.0.to_f64() / times.len().to_f64()));
        Ok(Arrivals::Trace(TraceArrivals { times, period, stretch, base: Time::ZERO, n: 0 }))
    }

    /// The times of a part of a trace, repeated without end after `period`, that of the whole trace. The first time need not be zero.
    ///
    /// # Panics
    /// When there are no `times`, when they go backwards, or when `period` is zero or shorter than the last of them.
    pub fn part_of_trace(times: Arc<[Time]>, period: Time) -> Arrivals {
        let within = times.last().is_some_and(|last| *last <= period) && period > Time::ZERO;
        assert!(within && times.is_sorted(), "the part of a trace is sorted, and ends with it");
        Arrivals::Trace(TraceArrivals { times, period, stretch: 1.0, base: Time::ZERO, n: 0 })
    }

    /// Time from one burst to the next, if there are bursts.
    pub fn period(&self) -> Option<Time> {
        match self {
            Arrivals::Bursts(b) => Some(b.period),
            _ => None,
        }
    }

    /// Whether the arrival whose time `next` returned last begins a burst.
    #[inline]
    pub fn begins_burst(&self) -> bool {
        matches!(self, Arrivals::Bursts(b) if b.n == 1)
    }

    /// Time of the next arrival.
    #[inline]
    #[allow(clippy::should_implement_trait, reason = "it never ends, so it is not an Iterator")]
    pub fn next(&mut self) -> Time {
        match self {
            Arrivals::Fixed(a) => a.next(),
            Arrivals::Poisson(a) => a.next(),
            Arrivals::Spread(a) => a.next(),
            Arrivals::Bursts(a) => a.next(),
            Arrivals::OnOff(a) => a.next(),
            Arrivals::Trace(a) => a.next(),
        }
    }
}

/// A distribution of gaps, given by its coefficient of variation (cv): standard deviation over mean.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Gaps {
    /// Gaps between (1 - sqrt(3) cv) and (1 + sqrt(3) cv) of the mean; cv is at most 1 / sqrt(3).
    Uniform {
        /// Coefficient of variation of the gaps.
        cv: f64,
    },
    /// Log-normally distributed gaps.
    LogNormal {
        /// Coefficient of variation of the gaps.
        cv: f64,
    },
    /// Pareto gaps of shape 1 + sqrt(1 + 1 / cv^2), which is above 2.
    Pareto {
        /// Coefficient of variation of the gaps.
        cv: f64,
    },
}

impl Gaps {
    /// Largest cv of uniform gaps, for which the shortest gap is zero.
    pub const WIDEST: f64 = 0.577_350_269_189_625_8;

    /// The distribution with mean 1.
    ///
    /// # Panics
    /// When cv is not positive, or above `WIDEST` for uniform gaps; specs reject that before.
    fn unit(self) -> UnitGaps {
        match self {
            Gaps::Uniform { cv } => {
                assert!(0.0 < cv && cv <= Gaps::WIDEST, "uniform gaps of cv = {cv}");
                UnitGaps::Uniform { half: 3f64.sqrt() * cv }
            }
            Gaps::LogNormal { cv } => {
                let variance = (1.0 + cv * cv).ln();
                UnitGaps::LogNormal(LogNormal::new(-variance / 2.0, variance.sqrt()).expect("a finite cv"))
            }
            Gaps::Pareto { cv } => {
                assert!(cv > 0.0, "Pareto gaps of cv = {cv}");
                let shape = 1.0 + (1.0 + 1.0 / (cv * cv)).sqrt();
                UnitGaps::Pareto(Pareto::new((shape - 1.0) / shape, shape).expect("a positive shape"))
            }
        }
    }
}

/// A distribution of mean 1.
#[derive(Clone, Debug)]
enum UnitGaps {
    Uniform { half: f64 },
    LogNormal(LogNormal<f64>),
    Pareto(Pareto<f64>),
}

/// Error of a trace from which no rate follows: the trace has fewer than two packets, or all packets have the same
/// time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoRate;

/// State of the process of [`Arrivals::fixed`].
#[derive(Clone, Debug)]
pub struct FixedArrivals {
    gap_ps: f64,
    n: u64,
}

/// State of the process of [`Arrivals::poisson`].
#[derive(Clone, Debug)]
pub struct PoissonArrivals {
    mean_ps: f64,
    at: Time,
    stream: RandomStream,
}

/// State of the process of [`Arrivals::spread`].
#[derive(Clone, Debug)]
pub struct RandomGaps {
    mean_ps: f64,
    unit: UnitGaps,
    at: Time,
    stream: RandomStream,
}

/// State of the process of [`Arrivals::bursts`].
#[derive(Clone, Debug)]
pub struct BurstArrivals {
    period: Time,
    length: u64,
    gap_ps: f64,
    start: Time,
    n: u64,
}

/// State of the process of [`Arrivals::on_off`].
#[derive(Clone, Debug)]
pub struct OnOffArrivals {
    on: Time,
    off: Time,
    mean_ps: f64,
    at: Time,
    until: Time,
    stream: RandomStream,
}

/// State of the process of [`Arrivals::trace`].
#[derive(Clone, Debug)]
pub struct TraceArrivals {
    times: Arc<[Time]>,
    period: Time,
    stretch: f64,
    base: Time,
    n: usize,
}

impl FixedArrivals {
    // The product is rounded, never the gap, so that the rate does not drift.
    #[inline]
    fn next(&mut self) -> Time {
        self.n += 1;
        nearest(self.n.to_f64() * self.gap_ps)
    }
}

impl PoissonArrivals {
    #[inline]
    fn next(&mut self) -> Time {
        self.at += exponential(self.mean_ps, &mut self.stream);
        self.at
    }
}

impl RandomGaps {
    fn next(&mut self) -> Time {
        let unit = match &self.unit {
            UnitGaps::Uniform { half } => 1.0 + half * (2.0 * self.stream.unit() - 1.0),
            UnitGaps::LogNormal(d) => d.sample(&mut self.stream),
            UnitGaps::Pareto(d) => d.sample(&mut self.stream),
        };
        self.at += nearest((unit * self.mean_ps).max(0.0));
        self.at
    }
}

impl BurstArrivals {
    #[inline]
    fn next(&mut self) -> Time {
        if self.n == self.length {
            self.n = 0;
            self.start += self.period;
        }
        let at = self.start + nearest(self.n.to_f64() * self.gap_ps);
        self.n += 1;
        at
    }
}

impl OnOffArrivals {
    fn span(&mut self, mean: Time) -> Time {
        exponential(mean.0.to_f64(), &mut self.stream)
    }

    #[inline]
    fn next(&mut self) -> Time {
        loop {
            let at = self.at + exponential(self.mean_ps, &mut self.stream);
            if at <= self.until {
                self.at = at;
                return at;
            }
            // Exponential gaps have no memory, so the next gap is drawn from the start of the next *on* state.
            self.at = self.until + self.span(self.off);
            self.until = self.at + self.span(self.on);
        }
    }
}

impl TraceArrivals {
    #[inline]
    fn next(&mut self) -> Time {
        if self.n == self.times.len() {
            self.n = 0;
            self.base = self.base.saturating_add(self.period);
        }
        let at = self.base.saturating_add(self.times[self.n]);
        self.n += 1;
        if self.stretch == 1.0 {
            at
        } else {
            nearest(at.0.to_f64() * self.stretch)
        }
    }
}

fn gap_ps(rate: f64) -> f64 {
    assert!(rate > 0.0 && rate.is_finite(), "a rate must be positive and finite");
    SECOND_PS / rate
}

/// Rounds to the nearest picosecond without a function call; on the x86-64 baseline `f64::round` is a call.
#[inline]
fn nearest(ps: f64) -> Time {
    Time((ps + 0.5).whole())
}

#[inline]
fn exponential(mean_ps: f64, stream: &mut RandomStream) -> Time {
    let unit: f64 = Exp1.sample(stream);
    nearest(unit * mean_ps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(n: usize, mut a: Arrivals) -> Vec<Time> {
        (0..n).map(|_| a.next()).collect()
    }

    fn gaps_ns(times: &[Time]) -> Vec<f64> {
        times.windows(2).map(|w| (w[1] - w[0]).as_ns()).collect()
    }

    fn stream() -> RandomStream {
        RandomStream::new(1, "arrivals", 0)
    }

    #[test]
    fn fixed_arrivals_do_not_drift() {
        // At 3 per second, arrivals are 333333333333.3 ps apart, and every third arrival falls on a whole second.
        let t = take(3_000_000, Arrivals::fixed(3.0));
        assert_eq!(t[0], Time(333_333_333_333));
        assert_eq!(t[2], Time::us(1_000_000));
        assert_eq!(t[2_999_999], Time::us(1_000_000) * 1_000_000);
    }

    #[test]
    fn poisson_gaps_have_mean_and_spread_of_the_exponential() {
        let n = 400_000;
        let gaps = gaps_ns(&take(n, Arrivals::poisson(26e6, stream())));
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let var = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        let expected = 1e9 / 26e6;
        // Standard errors of mean and variance: 1/sqrt(n) and sqrt(8/n) of their values.
        assert!((mean / expected - 1.0).abs() < 4.0 / (n as f64).sqrt(), "{mean}");
        assert!((var / expected.powi(2) - 1.0).abs() < 4.0 * (8.0 / n as f64).sqrt(), "{var}");
        for (x, p) in [(0.1, 0.0952), (0.693, 0.5), (2.303, 0.9), (4.605, 0.99)] {
            let below = gaps.iter().filter(|g| **g < x * expected).count() as f64 / n as f64;
            assert!((below - p).abs() < 0.003, "{x}: {below}");
        }
    }

    #[test]
    fn poisson_counts_in_windows_have_equal_mean_and_variance() {
        let mut per_window = [0u32; 20_000];
        let mut a = Arrivals::poisson(10e6, stream());
        loop {
            let window = (a.next().0 / Time::us(1).0) as usize;
            match per_window.get_mut(window) {
                Some(count) => *count += 1,
                None => break,
            }
        }
        let n = per_window.len() as f64;
        let mean = per_window.iter().map(|&c| f64::from(c)).sum::<f64>() / n;
        let var = per_window.iter().map(|&c| (f64::from(c) - mean).powi(2)).sum::<f64>() / n;
        assert!((mean - 10.0).abs() < 0.1, "{mean}"); // 4.5 standard errors
        assert!((var / mean - 1.0).abs() < 0.05, "{var}"); // 5 standard errors
    }

    /// Mean, coefficient of variation, and share of gaps below half the mean, of many gaps.
    fn shape(gaps: Gaps) -> (f64, f64, f64) {
        let n = 400_000;
        let gaps = gaps_ns(&take(n, Arrivals::spread(10e6, gaps, stream())));
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let var = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        let below = gaps.iter().filter(|g| **g < 50.0).count() as f64 / gaps.len() as f64;
        (mean, var.sqrt() / mean, below)
    }

    #[test]
    fn gaps_have_the_mean_and_the_spread_that_were_asked_for() {
        // 100 ns; standard errors of the mean are cv / sqrt(n), at most 0.16 %.
        let near = |a: f64, b: f64, tol: f64| (a / b - 1.0).abs() < tol;
        let (mean, cv, below) = shape(Gaps::Uniform { cv: 0.25 });
        // Between 56.7 and 143.3 ns.
        assert!(near(mean, 100.0, 0.002) && near(cv, 0.25, 0.005) && below == 0.0, "{mean} {cv} {below}");
        let (mean, cv, below) = shape(Gaps::Uniform { cv: Gaps::WIDEST });
        assert!(near(mean, 100.0, 0.005) && near(cv, 0.5774, 0.005) && near(below, 0.25, 0.02), "{mean} {cv} {below}");
        // ln(gap / mean) is normal with mean -s^2/2 and variance s^2 = ln 2: P(gap < mean / 2) = Phi((-0.6931 + 0.3466)
        // / 0.8326) = Phi(-0.4163) = 0.3386.
        let (mean, cv, below) = shape(Gaps::LogNormal { cv: 1.0 });
        assert!(near(mean, 100.0, 0.008) && near(cv, 1.0, 0.05) && near(below, 0.3386, 0.02), "{mean} {cv} {below}");
        // Shape 1 + sqrt(2) and shortest gap 58.58 ns, so that no gap is below half the mean. The tail is heavy, so the
        // sample variance converges slowly.
        let (mean, cv, below) = shape(Gaps::Pareto { cv: 1.0 });
        assert!(near(mean, 100.0, 0.02) && cv > 0.6 && below == 0.0, "{mean} {cv} {below}");
    }

    /// P(gap > x) = (58.58 / x)^2.4142.
    #[test]
    fn pareto_gaps_have_their_tail() {
        let n = 400_000;
        let gaps = gaps_ns(&take(n, Arrivals::spread(10e6, Gaps::Pareto { cv: 1.0 }, stream())));
        for (x, share) in [(100.0, 0.2750), (200.0, 0.05160), (1000.0, 0.001_060)] {
            let beyond = gaps.iter().filter(|g| **g > x).count() as f64 / n as f64;
            // 4 standard deviations of the count.
            assert!((beyond - share).abs() < 4.0 * (share / n as f64).sqrt(), "{x}: {beyond}");
        }
    }

    #[test]
    fn bursts_repeat_with_their_period() {
        let t = take(7, Arrivals::bursts(Time::us(10), 3, 1e6));
        let us: Vec<f64> = t.iter().map(|t| t.as_ns() / 1e3).collect();
        assert_eq!(us, [0.0, 1.0, 2.0, 10.0, 11.0, 12.0, 20.0]);
    }

    #[test]
    fn a_burst_longer_than_its_period_becomes_steady_traffic() {
        let t = take(6, Arrivals::bursts(Time::us(2), 3, 1e6));
        assert!(gaps_ns(&t).iter().all(|g| *g == 1_000.0));
    }

    #[test]
    fn on_off_traffic_has_the_rate_of_its_duty_cycle_and_bunches() {
        let (on, off) = (Time::us(10), Time::us(30));
        let n = 400_000;
        let t = take(n, Arrivals::on_off(on, off, 10e6, stream()));
        let rate = n as f64 / t[n - 1].as_secs();
        // 100 arrivals per on state, hence 4000 cycles: 4 standard errors are 7 %.
        assert!((rate / 2.5e6 - 1.0).abs() < 0.07, "{rate}");
        // A gap contains no *off* state with probability rate / (rate + 1/on) = 100/101.
        let gaps = gaps_ns(&t);
        let long = gaps.iter().filter(|g| **g > 2_000.0).count() as f64 / n as f64;
        // *Off* states longer than 2 us: exp(-2/30) of 1/101.
        assert!((long / ((-2.0f64 / 30.0).exp() / 101.0) - 1.0).abs() < 0.08, "{long}");
    }

    fn trace(us: &[u64], rate: Option<f64>) -> Result<Arrivals, NoRate> {
        Arrivals::trace(us.iter().map(|t| Time::us(*t)).collect(), rate)
    }

    #[test]
    fn a_trace_keeps_its_times_and_loops_with_its_mean_gap() {
        let t = take(7, trace(&[0, 1, 6], None).unwrap());
        // Mean gap 3 us, so the second round starts at 9.
        let expected = [0, 1, 6, 9, 10, 15, 18].map(Time::us);
        assert_eq!(t, expected);
    }

    /// Two parts of a trace of 0, 1, 6 and 9 us, with a mean gap of 3 us.
    #[test]
    fn parts_of_a_trace_keep_their_places_in_it() {
        let part = |us: &[u64]| Arrivals::part_of_trace(us.iter().map(|t| Time::us(*t)).collect(), Time::us(12));
        assert_eq!(take(4, part(&[0, 6])), [0, 6, 12, 18].map(Time::us));
        assert_eq!(take(4, part(&[1, 9])), [1, 9, 13, 21].map(Time::us));
        assert_eq!(take(2, part(&[6])), [6, 18].map(Time::us));
    }

    #[test]
    fn a_stretched_trace_has_the_asked_rate_and_the_shape_of_the_original() {
        let t = take(3_001, trace(&[0, 1, 6], Some(1e6)).unwrap());
        assert_eq!(t[3_000], Time::us(3_000));
        let gaps = gaps_ns(&t);
        for (gap, original) in gaps.iter().zip([1.0, 5.0, 3.0].iter().cycle()) {
            assert!((gap - original / 3.0 * 1e3).abs() < 0.002, "{gap}");
        }
    }

    #[test]
    fn a_trace_without_a_rate_is_refused() {
        for times in [&[][..], &[0], &[0, 0, 0]] {
            assert_eq!(trace(times, Some(1e6)).unwrap_err(), NoRate);
        }
    }

    #[test]
    fn no_process_goes_backwards() {
        let all = [
            Arrivals::fixed(148.8e6),
            Arrivals::poisson(148.8e6, stream()),
            Arrivals::spread(148.8e6, Gaps::Uniform { cv: Gaps::WIDEST }, stream()),
            Arrivals::spread(148.8e6, Gaps::LogNormal { cv: 3.0 }, stream()),
            Arrivals::spread(148.8e6, Gaps::Pareto { cv: 3.0 }, stream()),
            Arrivals::bursts(Time::us(1), 7, 1e9),
            Arrivals::on_off(Time::us(1), Time::ZERO, 1e9, stream()),
            trace(&[0, 0, 1, 1, 5], Some(7e8)).unwrap(),
        ];
        for a in all {
            let name = format!("{a:?}");
            assert!(take(10_000, a).is_sorted(), "{name}");
        }
    }
}
