//! When packets arrive.

use crate::kernel::{Stream, Time};
use rand_distr::{Distribution, Exp1};
use std::sync::Arc;

/// Picoseconds per second, as rates are given per second.
const SECOND_PS: f64 = 1e12;

/// An arrival process: an endless sequence of times that never goes backwards. The first
/// arrival comes one gap after time zero, except where a variant says otherwise.
#[derive(Clone, Debug)]
pub enum Arrivals {
    Fixed(Fixed),
    Poisson(Poisson),
    Bursts(Bursts),
    OnOff(OnOff),
    Trace(Trace),
}

impl Arrivals {
    /// Evenly spaced, `rate` per second.
    ///
    /// # Panics
    /// When `rate` is not positive and finite; specs reject that before.
    pub fn fixed(rate: f64) -> Arrivals {
        Arrivals::Fixed(Fixed { gap_ps: gap_ps(rate), n: 0 })
    }

    /// A Poisson process of `rate` per second.
    ///
    /// # Panics
    /// As `fixed`.
    pub fn poisson(rate: f64, stream: Stream) -> Arrivals {
        Arrivals::Poisson(Poisson { mean_ps: gap_ps(rate), at: Time::ZERO, stream })
    }

    /// Every `period`, `length` packets evenly spaced at `rate` per second; the first burst starts
    /// at time zero. A burst that lasts longer than the period delays the next.
    ///
    /// # Panics
    /// As `fixed`, and when `length` or `period` is zero.
    pub fn bursts(period: Time, length: u64, rate: f64) -> Arrivals {
        assert!(length > 0 && period > Time::ZERO, "a burst needs a length and a period");
        let gap_ps = gap_ps(rate);
        let lasts = nearest(gap_ps * length as f64);
        Arrivals::Bursts(Bursts { period: period.max(lasts), length, gap_ps, start: Time::ZERO, n: 0 })
    }

    /// An interrupted Poisson process: `rate` per second while on, silent while off; both states
    /// last exponentially distributed times with the given means. It starts on.
    ///
    /// # Panics
    /// As `fixed`, and when `on` is zero.
    pub fn on_off(on: Time, off: Time, rate: f64, stream: Stream) -> Arrivals {
        assert!(on > Time::ZERO, "an on-off source needs time to be on");
        let mut source = OnOff { on, off, mean_ps: gap_ps(rate), at: Time::ZERO, until: Time::ZERO, stream };
        source.until = source.span(on);
        Arrivals::OnOff(source)
    }

    /// The times of a trace, repeated without end. Each repetition follows the one before after
    /// the trace's mean gap, so that rate and gaps stay those of the trace. With `rate`,
    /// all gaps are stretched alike until that many packets arrive per second; without, times
    /// are the original ones. The first packet arrives at time zero.
    ///
    /// # Errors
    /// When `times` are fewer than two or all the same: they then have no rate.
    ///
    /// # Panics
    /// When `times` go backwards or do not start at zero, and as `fixed`.
    pub fn trace(times: Arc<[Time]>, rate: Option<f64>) -> Result<Arrivals, NoRate> {
        let (Some(&first), Some(&last)) = (times.first(), times.last()) else {
            return Err(NoRate);
        };
        assert!(first == Time::ZERO && times.is_sorted(), "a trace starts at zero and is sorted");
        if last == Time::ZERO {
            return Err(NoRate);
        }
        let own_gap_ps = last.0 as f64 / (times.len() - 1) as f64;
        let period = last + nearest(own_gap_ps);
        let stretch = rate.map_or(1.0, |rate| gap_ps(rate) / (period.0 as f64 / times.len() as f64));
        Ok(Arrivals::Trace(Trace { times, period, stretch, base: Time::ZERO, n: 0 }))
    }

    /// Time from one burst to the next, if there are any.
    pub fn period(&self) -> Option<Time> {
        match self {
            Arrivals::Bursts(b) => Some(b.period),
            _ => None,
        }
    }

    /// The time of the next arrival.
    #[inline]
    #[allow(clippy::should_implement_trait)] // never ends, so it is not an Iterator
    pub fn next(&mut self) -> Time {
        match self {
            Arrivals::Fixed(a) => a.next(),
            Arrivals::Poisson(a) => a.next(),
            Arrivals::Bursts(a) => a.next(),
            Arrivals::OnOff(a) => a.next(),
            Arrivals::Trace(a) => a.next(),
        }
    }
}

/// A trace without a rate of its own: fewer than two packets, or all at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoRate;

/// See `Arrivals::fixed`.
#[derive(Clone, Debug)]
pub struct Fixed {
    gap_ps: f64,
    n: u64,
}

/// See `Arrivals::poisson`.
#[derive(Clone, Debug)]
pub struct Poisson {
    mean_ps: f64,
    at: Time,
    stream: Stream,
}

/// See `Arrivals::bursts`.
#[derive(Clone, Debug)]
pub struct Bursts {
    period: Time,
    length: u64,
    gap_ps: f64,
    start: Time,
    n: u64,
}

/// See `Arrivals::on_off`.
#[derive(Clone, Debug)]
pub struct OnOff {
    on: Time,
    off: Time,
    mean_ps: f64,
    at: Time,
    until: Time,
    stream: Stream,
}

/// See `Arrivals::trace`.
#[derive(Clone, Debug)]
pub struct Trace {
    times: Arc<[Time]>,
    period: Time,
    stretch: f64,
    base: Time,
    n: usize,
}

impl Fixed {
    // The product is rounded, never the gap, so that the rate does not drift.
    #[inline]
    fn next(&mut self) -> Time {
        self.n += 1;
        nearest(self.n as f64 * self.gap_ps)
    }
}

impl Poisson {
    #[inline]
    fn next(&mut self) -> Time {
        self.at += exponential(self.mean_ps, &mut self.stream);
        self.at
    }
}

impl Bursts {
    #[inline]
    fn next(&mut self) -> Time {
        if self.n == self.length {
            self.n = 0;
            self.start += self.period;
        }
        let at = self.start + nearest(self.n as f64 * self.gap_ps);
        self.n += 1;
        at
    }
}

impl OnOff {
    fn span(&mut self, mean: Time) -> Time {
        exponential(mean.0 as f64, &mut self.stream)
    }

    #[inline]
    fn next(&mut self) -> Time {
        loop {
            let at = self.at + exponential(self.mean_ps, &mut self.stream);
            if at <= self.until {
                self.at = at;
                return at;
            }
            // Exponential gaps have no memory: draw afresh from the start of the next on state.
            self.at = self.until + self.span(self.off);
            self.until = self.at + self.span(self.on);
        }
    }
}

impl Trace {
    #[inline]
    fn next(&mut self) -> Time {
        if self.n == self.times.len() {
            self.n = 0;
            self.base += self.period;
        }
        let at = self.base + self.times[self.n];
        self.n += 1;
        if self.stretch == 1.0 {
            at
        } else {
            nearest(at.0 as f64 * self.stretch)
        }
    }
}

fn gap_ps(rate: f64) -> f64 {
    assert!(rate > 0.0 && rate.is_finite(), "a rate must be positive and finite");
    SECOND_PS / rate
}

/// To the nearest picosecond; `f64::round` is a call on the x86-64 baseline, this is not.
#[inline]
fn nearest(ps: f64) -> Time {
    Time((ps + 0.5) as u64)
}

#[inline]
fn exponential(mean_ps: f64, stream: &mut Stream) -> Time {
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

    fn stream() -> Stream {
        Stream::new(1, "arrivals", 0)
    }

    #[test]
    fn fixed_arrivals_do_not_drift() {
        // 3 per second: 333333333333.3 ps apart, on the second every third time.
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
        // A gap holds no off state with probability rate / (rate + 1/on) = 100/101.
        let gaps = gaps_ns(&t);
        let long = gaps.iter().filter(|g| **g > 2_000.0).count() as f64 / n as f64;
        // Off states longer than 2 us: exp(-2/30) of 1/101.
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
