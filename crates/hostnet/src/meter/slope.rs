//! Slope of a series whose deviations from a straight line depend on each other.
//!
//! A queue that is steady fluctuates around a level, and a queue that grows fluctuates around a line; the number of packets that
//! wait is the sum of all that came and went before, so that successive values resemble each other. The regression of Cochrane
//! and Orcutt (Journal of the American Statistical Association 44, 1949) covers both: it removes the part of each deviation that
//! follows from the one before. The lag-1 autocorrelation of the deviations says how large that part is; at 1, the deviations are
//! a random walk, and the slope is the mean of the differences. It is estimated without its bias around a fitted line, and one
//! standard error larger, because an interval that takes it too small is too narrow. Even so, only 85 of a hundred intervals of
//! 95 % contain the slope of a random walk.

use super::interval::{student, Interval};
use crate::kernel::Int;

/// Fewest points from which a slope is estimated.
const FEWEST: usize = 8;

/// Interval, at `confidence`, of the slope of `points`, whose x are about equally far apart. None below eight points, or where x
/// does not rise.
pub fn slope(points: &[(f64, f64)], confidence: f64) -> Option<Interval> {
    let n = points.len();
    let rises = points.windows(2).all(|w| w[0].0 < w[1].0);
    if n < FEWEST || !rises {
        return None;
    }
    let line = Fit::of(points.iter().map(|p| (1.0, p.0, p.1)))?;
    let left: Vec<f64> = points.iter().map(|p| p.1 - line.level - line.slope * p.0).collect();
    let squares: f64 = left.iter().map(|e| e * e).sum();
    if squares == 0.0 {
        return Some(Interval { low: line.slope, high: line.slope });
    }
    let seen = left.windows(2).map(|w| w[0] * w[1]).sum::<f64>() / squares;
    // Around a fitted line, the expected autocorrelation is rho - (2 + 4 rho) / n.
    let unbiased = (seen + 2.0 / n.to_f64()) / (1.0 - 4.0 / n.to_f64());
    let rho = (unbiased + ((1.0 - seen * seen) / n.to_f64()).sqrt()).clamp(0.0, 1.0);
    let pairs = || points.windows(2).map(|w| (1.0 - rho, w[1].0 - rho * w[0].0, w[1].1 - rho * w[0].1));
    let fit = Fit::of(pairs())?;
    let freedom = (n - 1).to_f64() - if fit.levelled { 2.0 } else { 1.0 };
    let left: f64 = pairs().map(|(c, x, y)| (y - fit.level * c - fit.slope * x).powi(2)).sum();
    let half = student(freedom, confidence)? * (left / freedom * fit.spread).sqrt();
    Some(Interval { low: fit.slope - half, high: fit.slope + half })
}

/// Least squares of `y = level * c + slope * x`.
struct Fit {
    level: f64,
    slope: f64,
    /// Variance of the slope, in units of the variance of y.
    spread: f64,
    /// Whether a level was fitted, which needs a c other than 0.
    levelled: bool,
}

impl Fit {
    fn of(points: impl Iterator<Item = (f64, f64, f64)>) -> Option<Fit> {
        let (mut cc, mut cx, mut xx, mut cy, mut xy) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (c, x, y) in points {
            (cc, cx, xx, cy, xy) = (cc + c * c, cx + c * x, xx + x * x, cy + c * y, xy + x * y);
        }
        let shift = if cc > 0.0 { cx / cc } else { 0.0 };
        let about = xx - shift * cx;
        (about > 0.0).then(|| {
            let slope = (xy - shift * cy) / about;
            let level = if cc > 0.0 { (cy - slope * cx) / cc } else { 0.0 };
            Fit { level, slope, spread: 1.0 / about, levelled: cc > 0.0 }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::RandomStream;
    use rand::Rng;

    /// Points 0 to 9 on a line of slope 3 have it as both ends.
    #[test]
    fn a_line_has_its_slope() {
        let points: Vec<_> = (0..10).map(|i| (f64::from(i), 5.0 + 3.0 * f64::from(i))).collect();
        let found = slope(&points, 0.99).expect("ten points");
        assert!((found.low - 3.0).abs() < 1e-9 && (found.high - 3.0).abs() < 1e-9, "{found:?}");
        assert_eq!(slope(&points[..7], 0.99), None);
    }

    /// Of a thousand series with a true slope of 0.5, intervals at 95 % contain it in 93 to 99 % where the deviations are
    /// independent or depend on each other (AR(1) with 0.8), and in at least 82 % where they are a random walk. Those of
    /// independent deviations are at most twice as wide as ordinary least squares makes them, 2 * 2.0 * sqrt(12 / 48^3).
    #[test]
    fn intervals_contain_the_slope_whatever_the_deviations() {
        let mut rng = RandomStream::new(5, "slopes", 0);
        let mut normal = move || -> f64 { (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0 };
        for (rho, least) in [(0.0, 930), (0.8, 930), (1.0, 820)] {
            let (mut held, mut width) = (0, 0.0);
            for _ in 0..1000 {
                let mut state = if rho < 1.0 { normal() / (1.0f64 - rho * rho).sqrt() } else { 0.0 };
                let point = |i: u32| {
                    state = rho * state + normal();
                    (f64::from(i), 7.0 + 0.5 * f64::from(i) + state)
                };
                let found = slope(&(0..48).map(point).collect::<Vec<_>>(), 0.95).expect("points");
                held += u32::from(found.low <= 0.5 && 0.5 <= found.high);
                width += (found.high - found.low) / 1000.0;
            }
            assert!((least..=990).contains(&held), "{rho}: {held} of 1000");
            assert!(rho > 0.0 || width < 2.0 * 2.0 * 2.0 * (12.0f64 / 48f64.powi(3)).sqrt(), "{width}");
        }
    }
}
