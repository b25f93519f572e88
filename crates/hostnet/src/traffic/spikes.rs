//! Rare long stalls of the application: page faults, preemption, garbage collection.

use crate::kernel::{Int, RandomStream, Real, Time};

/// Extra service time: with `probability` per request, a time uniform between `min` and `max`.
#[derive(Clone, Debug)]
pub struct Spikes {
    probability: f64,
    min: Time,
    max: Time,
    stream: RandomStream,
}

impl Spikes {
    /// Stalls with the given distribution.
    ///
    /// # Panics
    /// When `probability` is outside 0..=1 or `min` above `max`; specs reject that before.
    pub fn new(probability: f64, min: Time, max: Time, stream: RandomStream) -> Spikes {
        assert!((0.0..=1.0).contains(&probability) && min <= max, "spikes");
        Spikes { probability, min, max, stream }
    }

    /// Draws the stall of the next request, which adds to the request's service time; usually zero.
    #[inline]
    pub fn draw(&mut self) -> Time {
        if self.stream.unit() < self.probability {
            // The width saturates only for spans longer than any run.
            let width = (self.max - self.min).0.saturating_add(1);
            self.min + Time(self.stream.below(width))
        } else {
            Time::ZERO
        }
    }

    /// Mean extra service time per request.
    pub fn mean(&self) -> Time {
        Time((self.probability * (self.min.0.to_f64() + self.max.0.to_f64()) / 2.0).round().whole())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spikes(p: f64, min: Time, max: Time) -> Spikes {
        Spikes::new(p, min, max, RandomStream::new(1, "spikes", 0))
    }

    #[test]
    fn spikes_come_with_their_probability_and_spread_evenly() {
        let (min, max) = (Time::us(1), Time::us(100));
        let mut s = spikes(0.01, min, max);
        let n = 1_000_000;
        let drawn: Vec<Time> = (0..n).map(|_| s.draw()).filter(|t| *t > Time::ZERO).collect();
        let count = drawn.len() as f64;
        assert!((count - 1e4).abs() < 400.0, "{count}"); // 4 standard deviations
        assert!(drawn.iter().all(|t| *t >= min && *t <= max));
        for quarter in 1..=3 {
            let edge = min + Time((max - min).0 / 4 * quarter);
            let below = drawn.iter().filter(|t| **t < edge).count() as f64 / count;
            assert!((below - quarter as f64 / 4.0).abs() < 0.02, "{below}");
        }
        let mean = drawn.iter().map(|t| t.0 as f64).sum::<f64>() / n as f64;
        assert!((mean / s.mean().0 as f64 - 1.0).abs() < 0.05, "{mean}");
    }

    #[test]
    fn the_ends_of_the_ranges() {
        assert!((0..1_000).all(|_| spikes(0.0, Time::us(1), Time::us(2)).draw() == Time::ZERO));
        let mut always = spikes(1.0, Time::us(3), Time::us(3));
        assert!((0..1_000).all(|_| always.draw() == Time::us(3)));
        let mut either = spikes(1.0, Time(4), Time(5));
        let drawn: Vec<Time> = (0..1_000).map(|_| either.draw()).collect();
        assert!(drawn.contains(&Time(4)) && drawn.contains(&Time(5)));
    }
}
