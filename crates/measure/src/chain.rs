//! A chain through all lines of a buffer in a random order, which is computed instead of stored.

use crate::sys::WORDS;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A permutation of the numbers below a bound that can be computed in both directions.
#[derive(Clone, Copy)]
pub(crate) struct Permutation {
    lines: u64,
    bits: u32,
}

/// An odd factor, and its inverse modulo 2^64.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
const INVERSE: u64 = inverse(FACTOR);
const ROUNDS: u64 = 3;

/// Inverse of an odd number modulo 2^64, by Newton's iteration, which doubles the number of correct bits.
const fn inverse(odd: u64) -> u64 {
    let (mut x, mut i) = (odd, 0);
    while i < 6 {
        x = x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x)));
        i += 1;
    }
    x
}

impl Permutation {
    pub(crate) fn new(lines: u64) -> Permutation {
        Permutation { lines, bits: (64 - (lines - 1).leading_zeros()).max(2) }
    }

    fn mask(self) -> u64 {
        (1 << self.bits) - 1
    }

    /// At least half of the bits, so that two folds in a row cancel.
    fn fold(self) -> u32 {
        self.bits.div_ceil(2)
    }

    /// Number at place `i`. Numbers of as many bits as the bound are mixed until one is below the bound.
    pub(crate) fn at(self, i: u64) -> u64 {
        let mut x = i;
        loop {
            for round in 0..ROUNDS {
                x = x.wrapping_mul(FACTOR).wrapping_add(round + 1) & self.mask();
                x ^= x >> self.fold();
            }
            if x < self.lines {
                return x;
            }
        }
    }

    /// Place of number `x`.
    fn place(self, number: u64) -> u64 {
        let mut x = number;
        loop {
            for round in (0..ROUNDS).rev() {
                x ^= x >> self.fold();
                x = x.wrapping_sub(round + 1).wrapping_mul(INVERSE) & self.mask();
            }
            if x < self.lines {
                return x;
            }
        }
    }
}

/// Links all lines of `words` into one cycle: the first word of a line holds the index of the next line's first word. In
/// a random order, or in the order of addresses.
pub(crate) fn link(words: &[AtomicU64], random: bool) {
    link_every(words, WORDS, random);
}

/// Links the words of `words` that are `spacing` apart into one cycle, as [`link`] does with the first words of lines.
pub(crate) fn link_every(words: &[AtomicU64], spacing: usize, random: bool) {
    let places = (words.len() / spacing) as u64;
    let order = Permutation::new(places);
    for place in 0..places {
        let next = |i: u64| if i + 1 == places { 0 } else { i + 1 };
        let to = if random { order.at(next(order.place(place))) } else { next(place) };
        words[place as usize * spacing].store(to * spacing as u64, Relaxed);
    }
}

/// Indices of words at which `n` chases of a random chain begin, equally far apart.
pub(crate) fn starts(words: &[AtomicU64], n: u64) -> impl Iterator<Item = usize> {
    let lines = (words.len() / WORDS) as u64;
    let order = Permutation::new(lines);
    (0..n).map(move |i| order.at(i * lines / n) as usize * WORDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_visits_every_line_once_before_it_returns() {
        for lines in [2, 3, 64, 96, 1000, 4096] {
            for random in [true, false] {
                let words: Vec<AtomicU64> = (0..lines * WORDS).map(|_| AtomicU64::new(u64::MAX)).collect();
                link(&words, random);
                let (mut seen, mut at) = (vec![false; lines], 0);
                for _ in 0..lines {
                    assert!(
                        !std::mem::replace(&mut seen[at / WORDS], true),
                        "{lines} lines: line {} twice",
                        at / WORDS
                    );
                    at = words[at].load(Relaxed) as usize;
                }
                assert_eq!(at, 0);
            }
        }
    }

    #[test]
    fn few_steps_of_a_random_chain_stay_within_a_page() {
        let words: Vec<AtomicU64> = (0..4096 * WORDS).map(|_| AtomicU64::new(0)).collect();
        link(&words, true);
        let page = |word: usize| word / WORDS / 64;
        let near = (0..4096).filter(|l| page(words[l * WORDS].load(Relaxed) as usize) == page(l * WORDS)).count();
        // One of 64 pages by chance.
        assert!(near < 4096 / 64 * 2, "{near}");
    }
}
