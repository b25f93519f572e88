//! States of the lines of receive buffers: free, unconsumed, consumed or swept.

use super::received_lines::ChangeLog;
use crate::kernel::{Int, LineAddr};
use std::ops::Range;

pub const FREE: u8 = 0;
pub const UNCONSUMED: u8 = 1;
pub const CONSUMED: u8 = 2;
pub const SWEPT: u8 = 3;

/// States of all lines of receive buffers, four in a byte. Evictions look up states at random, so the table should fit
/// into the cache of the computer that runs the simulation.
#[derive(Clone, Debug)]
pub(super) struct RxLineStates {
    base: LineAddr,
    lines: u64,
    packed: Vec<u8>,
    /// Lines whose state has changed, where changes are recorded.
    pub changed: Option<Box<ChangeLog<LineAddr>>>,
}

impl RxLineStates {
    /// Makes the states of the lines from `base` to `end`, all free.
    pub fn new(base: LineAddr, end: LineAddr) -> RxLineStates {
        let lines = end.0.saturating_sub(base.0);
        RxLineStates { base, lines, packed: vec![FREE; lines.div_ceil(4).to_usize()], changed: None }
    }

    /// Range of lines that contains all receive buffers, and possibly other regions.
    pub fn range(&self) -> Range<LineAddr> {
        self.base..self.base + self.lines
    }

    #[inline]
    pub fn of(&self, line: LineAddr) -> u8 {
        let i = line - self.base;
        self.packed[(i / 4).to_usize()] >> (i % 4 * 2) & 3
    }

    /// Sets the state of a line to what `next` returns for it; returns the previous state.
    #[inline(always)]
    pub fn change(&mut self, line: LineAddr, next: impl FnOnce(u8) -> u8) -> u8 {
        let i = line - self.base;
        let (byte, shift) = (&mut self.packed[(i / 4).to_usize()], i % 4 * 2);
        let life = *byte >> shift & 3;
        let change = life ^ next(life);
        *byte ^= change << shift;
        self.log_change(line, change);
        life
    }

    #[inline]
    pub fn set(&mut self, line: LineAddr, life: u8) {
        self.change(line, |_| life);
    }

    #[inline(always)]
    fn log_change(&mut self, line: LineAddr, change: u8) {
        if let Some(changed) = self.changed.as_mut().filter(|_| change != 0) {
            changed.add(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_a_life_of_its_own() {
        let mut rx_line_states = RxLineStates::new(LineAddr(10), LineAddr(29));
        for line in 10..29u64 {
            assert_eq!(rx_line_states.of(LineAddr(line)), FREE);
            rx_line_states.set(LineAddr(line), (line % 4) as u8);
        }
        for line in 10..29u64 {
            assert_eq!(rx_line_states.of(LineAddr(line)), (line % 4) as u8);
            rx_line_states.set(LineAddr(line), (line % 3) as u8);
        }
        assert!((10..29).all(|line| rx_line_states.of(LineAddr(line)) == (line % 3) as u8));
        for line in 10..29u64 {
            assert_eq!(rx_line_states.change(LineAddr(line), |life| 3 - life), (line % 3) as u8);
        }
        assert!((10..29).all(|line| rx_line_states.of(LineAddr(line)) == 3 - (line % 3) as u8));
        assert_eq!(rx_line_states.range(), LineAddr(10)..LineAddr(29));
    }
}
