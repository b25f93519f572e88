//! Random streams. Each stream belongs to one component, so that adding a component or a core does not change the
//! numbers that another component draws.

use super::Int;
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A reproducible stream of random numbers, named by the component that draws from it.
#[derive(Clone, Debug)]
pub struct RandomStream(Xoshiro256PlusPlus);

impl RandomStream {
    /// The stream of component `name`, instance `index`, in a run seeded with `seed`.
    pub fn new(seed: u64, name: &str, index: u64) -> RandomStream {
        let mut h = 0xcbf2_9ce4_8422_2325u64; // FNV-1a
        for b in name.bytes() {
            h = (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3);
        }
        RandomStream(Xoshiro256PlusPlus::seed_from_u64(seed ^ mix(h ^ mix(index))))
    }
    /// Draws a number that is uniform in [0, 1).
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11).to_f64() * (1.0 / (1u64 << 53).to_f64())
    }
    /// Draws a number that is uniform in [0, n); `n` must be positive.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(n)) >> 64).to_u64()
    }
    /// Draws an exponentially distributed number with the given mean.
    #[inline]
    pub fn exp(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }
}

impl RngCore for RandomStream {
    fn next_u32(&mut self) -> u32 {
        self.0.next_u32()
    }
    #[inline]
    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
    fn fill_bytes(&mut self, dst: &mut [u8]) {
        self.0.fill_bytes(dst)
    }
}

/// SplitMix64's finaliser: a cheap bijective hash of 64 bits.
#[inline]
pub fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_by_name_and_differ_between_components() {
        let draw = |n: &str, i| RandomStream::new(7, n, i).next_u64();
        assert_eq!(draw("nic", 0), draw("nic", 0));
        assert_ne!(draw("nic", 0), draw("nic", 1));
        assert_ne!(draw("nic", 0), draw("core", 0));
    }

    #[test]
    fn exponential_draws_have_the_asked_mean() {
        let mut s = RandomStream::new(1, "t", 0);
        let n = 200_000;
        let mean = (0..n).map(|_| s.exp(3.0)).sum::<f64>() / n as f64;
        assert!((mean - 3.0).abs() < 0.03, "{mean}"); // 4.5 standard errors
    }
}
