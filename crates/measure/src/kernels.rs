//! The loops that are timed.

use crate::measured::BandwidthOrder;
use crate::sys::{store_past_caches, WORDS};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Cycles of a 64-bit multiplication whose factors depend on the one before; `None` where the figure is not published for
/// every core.
pub(crate) const MULTIPLY_CYCLES: Option<u32> = if cfg!(target_arch = "x86_64") { Some(3) } else { None };

/// `n` multiplications, each of which needs the result of the one before.
#[inline(always)]
pub(crate) fn multiply(mut x: u64, n: u32) -> u64 {
    for _ in 0..n {
        x = x.wrapping_mul(x);
    }
    x
}

/// Follows `K` chains for `steps` loads each.
#[inline(never)]
pub(crate) fn follow<const K: usize>(words: &[AtomicU64], at: &mut [usize], steps: usize) {
    let mut here = [0; K];
    here.copy_from_slice(&at[..K]);
    for _ in 0..steps {
        for h in &mut here {
            *h = words[*h].load(Relaxed) as usize;
        }
    }
    at[..K].copy_from_slice(&here);
}

/// Numbers of chases that [`follow_many`] can follow.
pub(crate) const CHASES: [u32; 12] = [1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32];

/// Follows as many chains as `at` has places.
pub(crate) fn follow_many(words: &[AtomicU64], at: &mut [usize], steps: usize) {
    match at.len() {
        1 => follow::<1>(words, at, steps),
        2 => follow::<2>(words, at, steps),
        3 => follow::<3>(words, at, steps),
        4 => follow::<4>(words, at, steps),
        6 => follow::<6>(words, at, steps),
        8 => follow::<8>(words, at, steps),
        10 => follow::<10>(words, at, steps),
        12 => follow::<12>(words, at, steps),
        16 => follow::<16>(words, at, steps),
        20 => follow::<20>(words, at, steps),
        24 => follow::<24>(words, at, steps),
        32 => follow::<32>(words, at, steps),
        n => unreachable!("{n} chases are not in CHASES"),
    }
}

/// 32 bits of a hash (MurmurHash3's last steps).
#[inline(always)]
fn mixed(mut x: u64) -> u64 {
    x = (x ^ x >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ x >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x >> 32
}

/// A stream through a buffer: where it is, and what it does to each line.
pub(crate) struct Stream<'a> {
    words: &'a [AtomicU64],
    order: BandwidthOrder,
    /// Stores of 256 lines.
    stores: u32,
    owed: u32,
    /// Multiplications after each line.
    pause: u32,
    line: usize,
    x: u64,
}

impl<'a> Stream<'a> {
    pub(crate) fn new(words: &'a [AtomicU64], order: BandwidthOrder, stores: f64, pause: u32) -> Stream<'a> {
        let stores = (stores * 256.0).round() as u32;
        Stream { words, order, stores, owed: 0, pause, line: 0, x: black_box(3) }
    }

    /// Bytes of memory traffic of a line.
    pub(crate) fn bytes_per_line(&self) -> f64 {
        match self.order {
            BandwidthOrder::NonTemporal => 64.0,
            _ => 64.0 * (1.0 + f64::from(self.stores) / 256.0),
        }
    }

    /// Accesses `n` lines.
    #[inline(never)]
    pub(crate) fn touch(&mut self, n: usize) {
        let lines = self.words.len() / WORDS;
        let (mut line, mut x, mut owed, mut sum) = (self.line, self.x, self.owed, 0u64);
        for _ in 0..n {
            let at = match self.order {
                BandwidthOrder::Random => (mixed(line as u64) as usize * lines) >> 32,
                _ => line,
            };
            let words = &self.words[at * WORDS..][..WORDS];
            owed += self.stores;
            if self.order == BandwidthOrder::NonTemporal {
                store_past_caches(words, x);
            } else if owed >= 256 {
                owed -= 256;
                words[0].store(x, Relaxed);
            } else {
                sum = sum.wrapping_add(words[0].load(Relaxed));
            }
            x = multiply(x, self.pause);
            line = if line + 1 == lines { 0 } else { line + 1 };
        }
        black_box(sum);
        (self.line, self.x, self.owed) = (line, x, owed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_stores_to_its_share_of_lines() {
        for (stores, expected) in [(0.0, 0), (0.5, 512), (1.0, 1024)] {
            let words: Vec<AtomicU64> = (0..1024 * WORDS).map(|_| AtomicU64::new(0)).collect();
            Stream::new(&words, BandwidthOrder::Sequential, stores, 0).touch(1024);
            assert_eq!(words.iter().filter(|w| w.load(Relaxed) != 0).count(), expected, "{stores}");
        }
    }

    #[test]
    fn a_random_stream_reaches_most_lines_in_no_sequence() {
        let words: Vec<AtomicU64> = (0..1024 * WORDS).map(|_| AtomicU64::new(0)).collect();
        Stream::new(&words, BandwidthOrder::Random, 1.0, 0).touch(1024);
        let touched = words.iter().step_by(WORDS).filter(|w| w.load(Relaxed) != 0).count();
        assert!(touched > 600, "{touched} of 1024, of which chance reaches 647");
    }

    #[test]
    fn chases_follow_chains_of_their_own() {
        let words: Vec<AtomicU64> = (0..64 * WORDS).map(|_| AtomicU64::new(0)).collect();
        crate::chain::link(&words, false);
        for n in CHASES {
            let mut at: Vec<usize> = (0..n as usize).map(|i| i * WORDS).collect();
            follow_many(&words, &mut at, 3);
            let expected: Vec<usize> = (0..n as usize).map(|i| (i + 3) % 64 * WORDS).collect();
            assert_eq!(at, expected);
        }
    }
}
