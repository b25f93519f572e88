//! Zipf-distributed ranks, which model the popularity of keys in key-value stores.

use crate::kernel::{Int, RandomStream, Real};
use rand_distr::Distribution;

/// Draws ranks 0..n, rank k with probability proportional to (k + 1)^-theta. The method is exact (rejection sampling)
/// and has no tables: creation costs nothing however large n is.
#[derive(Clone, Copy, Debug)]
pub struct Zipf {
    distribution: rand_distr::Zipf<f64>,
    last: u64,
}

impl Zipf {
    /// A distribution over `n` ranks with exponent `theta`.
    ///
    /// # Panics
    /// When `n` is zero or above 2^53, or `theta` negative or not finite; specs reject that before.
    pub fn new(n: u64, theta: f64) -> Zipf {
        assert!(n > 0 && n <= 1 << 53 && theta >= 0.0 && theta.is_finite(), "zipf({n}, {theta})");
        let distribution = rand_distr::Zipf::new(n.to_f64(), theta).expect("checked above");
        Zipf { distribution, last: n - 1 }
    }

    /// Draws the next rank; 0 is the most popular.
    #[inline]
    pub fn draw(&self, stream: &mut RandomStream) -> u64 {
        // Rounding can produce a rank one beyond the last.
        (self.distribution.sample(stream).whole() - 1).min(self.last)
    }
}

/// A step over `n` ranks that visits each rank once before it repeats, and puts neighbours far apart: multiples of the
/// step spread ranks that are numbered in the order of popularity.
pub fn step(n: u64) -> u64 {
    let mut step = (n.to_f64() * 0.618).whole() | 1;
    while gcd(step, n) != 1 {
        step += 2;
    }
    step
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        gcd(b, a % b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_come_to_every_rank() {
        for n in [1, 2, 3, 8, 1000, 1001, 6_765] {
            let mut seen: Vec<u64> = (0..n).map(|k| k * step(n) % n).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..n), "{n} ranks");
        }
    }

    /// Compares draws with n·p for each rank or group of ranks by chi-square, whose mean is the number of cells, and
    /// whose variance is twice that number.
    fn chi_square_matches(n: u64, theta: f64, draws: u64, edges: &[u64]) {
        let zipf = Zipf::new(n, theta);
        let mut stream = RandomStream::new(3, "zipf", n);
        let mut seen = vec![0u64; edges.len() - 1];
        for _ in 0..draws {
            let rank = zipf.draw(&mut stream);
            assert!(rank < n);
            seen[edges.partition_point(|e| *e <= rank) - 1] += 1;
        }
        let weight = |from: u64, to: u64| (from..to).map(|k| ((k + 1) as f64).powf(-theta)).sum::<f64>();
        let total = weight(0, n);
        let chi: f64 = edges
            .windows(2)
            .zip(&seen)
            .map(|(e, &seen)| {
                let expected = draws as f64 * weight(e[0], e[1]) / total;
                assert!(expected > 5.0, "cell {e:?} is too small for the test");
                (seen as f64 - expected).powi(2) / expected
            })
            .sum();
        let free = (seen.len() - 1) as f64;
        assert!((chi - free).abs() < 4.0 * (2.0 * free).sqrt(), "chi-square {chi} over {free}");
    }

    #[test]
    fn small_ranges_match_the_closed_form_rank_by_rank() {
        let every: Vec<u64> = (0..=100).collect();
        for theta in [0.0, 0.5, 0.99, 1.0, 1.3] {
            chi_square_matches(100, theta, 400_000, &every);
        }
    }

    #[test]
    fn mica_keys_match_the_closed_form_from_head_to_tail() {
        let mut edges: Vec<u64> = (0..20).collect();
        edges.extend([50, 100, 1_000, 10_000, 100_000, 1_000_000, 1_700_000, 2_400_000]);
        chi_square_matches(2_400_000, 0.99, 1_000_000, &edges);
    }

    #[test]
    fn a_single_key_is_always_drawn() {
        let mut stream = RandomStream::new(1, "zipf", 0);
        assert!((0..1_000).all(|_| Zipf::new(1, 0.99).draw(&mut stream) == 0));
    }
}
