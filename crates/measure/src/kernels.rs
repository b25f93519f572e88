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

/// Adds `n` hashes of numbers from `from` on to `sum`. No hash waits for another, so that a core executes several beside each
/// other and beside the accesses around them.
#[inline(always)]
fn hashes(from: u64, n: u32, mut sum: u64) -> u64 {
    for i in 0..u64::from(n) {
        // The compiler knows nothing of the number, and neither merges nor vectorises the hashes.
        sum = sum.wrapping_add(mixed(black_box(from + i)));
    }
    sum
}

/// Hashes as a loop that can be timed.
#[inline(never)]
pub(crate) fn hash_many(n: u32) -> u64 {
    hashes(black_box(3), n, 0)
}

/// A stream through a buffer: where it is, and what it does to each line.
pub(crate) struct Stream<'a> {
    words: &'a [AtomicU64],
    order: BandwidthOrder,
    /// Stores of 256 lines.
    stores: u32,
    owed: u32,
    /// Hashes after each line.
    pause: u32,
    line: usize,
    sum: u64,
}

impl<'a> Stream<'a> {
    pub(crate) fn new(words: &'a [AtomicU64], order: BandwidthOrder, stores: f64, pause: u32) -> Stream<'a> {
        let stores = (stores * 256.0).round() as u32;
        Stream { words, order, stores, owed: 0, pause, line: 0, sum: 0 }
    }

    /// Bytes of memory traffic of a line.
    pub(crate) fn bytes_per_line(&self) -> f64 {
        match self.order {
            BandwidthOrder::NonTemporal => 64.0,
            _ => 64.0 * (1.0 + f64::from(self.stores) / 256.0),
        }
    }

    /// Accesses `n` lines. Each kind of stream has a loop of its own, with few instructions for a line
    /// (`STREAM_INSTRUCTIONS` in `python/hostnet/calibrate/curves.py`).
    #[inline(never)]
    pub(crate) fn touch(&mut self, n: usize) {
        let (mut owed, stores, mut sum) = (self.owed, self.stores, self.sum);
        match (self.order, stores) {
            (BandwidthOrder::NonTemporal, _) => self.each(n, |line| store_past_caches(line, 3)),
            (_, 0) => self.each(n, |line| sum = sum.wrapping_add(line[0].load(Relaxed))),
            (_, 256) => self.each(n, |line| line[0].store(3, Relaxed)),
            _ => self.each(n, |line| {
                owed += stores;
                if owed >= 256 {
                    owed -= 256;
                    line[0].store(3, Relaxed);
                } else {
                    sum = sum.wrapping_add(line[0].load(Relaxed));
                }
            }),
        }
        (self.owed, self.sum) = (owed, black_box(sum));
    }

    /// Calls `access` with each of the next `n` lines, and pauses after it.
    #[inline(always)]
    fn each(&mut self, n: usize, mut access: impl FnMut(&[AtomicU64])) {
        let lines = self.words.len() / WORDS;
        let (mut left, mut idle) = (n, 0);
        while left > 0 {
            let run = left.min(lines - self.line);
            let from = self.line;
            match (self.order == BandwidthOrder::Random, self.pause) {
                (true, _) => {
                    for line in from..from + run {
                        let at = (mixed(line as u64) as usize * lines) >> 32;
                        access(&self.words[at * WORDS..][..WORDS]);
                    }
                }
                (false, 0) => {
                    self.words[from * WORDS..][..run * WORDS].chunks_exact(WORDS).for_each(&mut access);
                }
                (false, pause) => {
                    for (i, line) in self.words[from * WORDS..][..run * WORDS].chunks_exact(WORDS).enumerate() {
                        access(line);
                        idle = hashes(i as u64, pause, idle);
                    }
                }
            }
            left -= run;
            self.line = if from + run == lines { 0 } else { from + run };
        }
        black_box(idle);
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
    fn streams_pause_and_turn_back_at_the_end_of_their_buffer() {
        let words: Vec<AtomicU64> = (0..64 * WORDS).map(|_| AtomicU64::new(0)).collect();
        let mut stream = Stream::new(&words, BandwidthOrder::Sequential, 1.0, 2);
        stream.touch(60);
        stream.touch(10);
        assert_eq!(stream.line, 6);
        assert!(words.iter().step_by(WORDS).all(|w| w.load(Relaxed) != 0));
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
