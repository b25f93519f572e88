//! Simulated time: integer picoseconds, so that no rounding depends on the order of additions.

use super::{Int, Real};
use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};

/// A point in simulated time, or a span of time, in picoseconds. A `u64` of picoseconds holds 213 days.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Time(pub u64);

impl Time {
    /// The beginning of simulated time, or a span of no length.
    pub const ZERO: Time = Time(0);
    /// Longest time that can be expressed.
    pub const MAX: Time = Time(u64::MAX);
    /// Latest time that a run may reach, 12 days: cores count sixteenths of a picosecond, and 2^60 ps are 13.3 days.
    pub const END: Time = Time(12 * 86_400 * 1_000_000_000_000);

    /// A span of `ps` picoseconds.
    pub const fn ps(ps: u64) -> Time {
        Time(ps)
    }
    /// A span of `ns` nanoseconds.
    pub const fn ns(ns: u64) -> Time {
        Time(ns * 1_000)
    }
    /// A span of `us` microseconds.
    pub const fn us(us: u64) -> Time {
        Time(us * 1_000_000)
    }
    /// Converts nanoseconds, rounded to the nearest picosecond; negative and non-finite values become zero.
    pub fn from_ns_f64(ns: f64) -> Time {
        Time((ns * 1e3).round().max(0.0).whole())
    }
    /// The span in nanoseconds.
    pub fn as_ns(self) -> f64 {
        self.0.to_f64() / 1e3
    }
    /// The span in seconds.
    pub fn as_secs(self) -> f64 {
        self.0.to_f64() / 1e12
    }
    /// The sum of both, at most [`Time::MAX`].
    pub fn saturating_add(self, other: Time) -> Time {
        Time(self.0.saturating_add(other.0))
    }
    /// The span from `other` to this time; zero when `other` is later.
    pub fn saturating_sub(self, other: Time) -> Time {
        Time(self.0.saturating_sub(other.0))
    }
}

/// The time at which something is due, or never. Never is later than every time, so that the smaller of two is the
/// earlier one; never takes no room beside a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Due(u64);

impl Due {
    /// No time at all.
    pub const NEVER: Due = Due(u64::MAX);

    /// Due at `time`, which a run can reach.
    #[inline(always)]
    pub const fn at(time: Time) -> Due {
        Due(time.0)
    }
    /// Whether it is due at no time.
    #[inline(always)]
    pub const fn is_never(self) -> bool {
        self.0 == u64::MAX
    }
    /// The time, unless it is never.
    #[inline(always)]
    pub fn time(self) -> Option<Time> {
        (!self.is_never()).then_some(Time(self.0))
    }
    /// The time, if it has come at `now`.
    #[inline(always)]
    pub fn by(self, now: Time) -> Option<Time> {
        (self.0 <= now.0).then_some(Time(self.0))
    }
    /// Due `span` later; never stays never.
    #[inline(always)]
    pub const fn plus(self, span: Time) -> Due {
        Due(self.0.saturating_add(span.0))
    }
}

impl Add for Time {
    type Output = Time;
    #[inline]
    fn add(self, o: Time) -> Time {
        Time(self.0 + o.0)
    }
}
impl AddAssign for Time {
    #[inline]
    fn add_assign(&mut self, o: Time) {
        self.0 += o.0
    }
}
impl Sub for Time {
    type Output = Time;
    #[inline]
    fn sub(self, o: Time) -> Time {
        Time(self.0 - o.0)
    }
}
impl Mul<u64> for Time {
    type Output = Time;
    #[inline]
    fn mul(self, n: u64) -> Time {
        Time(self.0 * n)
    }
}
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} ns", self.as_ns())
    }
}

/// A clock domain. Cycle counts are converted from the exact frequency, so that 3.2 GHz (312.5 ps) does not drift:
/// `span(n)` rounds the product, never the period.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Clock {
    hz: u64,
}

impl Clock {
    /// Makes a clock of `hz` hertz.
    ///
    /// # Panics
    /// Panics when `hz` is zero; specs reject a zero frequency before a clock is made.
    pub fn from_hz(hz: u64) -> Clock {
        assert!(hz > 0, "a clock needs a positive frequency");
        Clock { hz }
    }
    /// Duration of `cycles`, rounded to the nearest picosecond.
    #[inline]
    pub fn span(self, cycles: u64) -> Time {
        if cycles == 0 {
            return Time::ZERO;
        }
        if cycles < 1 << 24 {
            return Time((cycles * 1_000_000_000_000 + self.hz / 2) / self.hz); // the significands have 24 and 40 of 64 bits
        }
        Time(((u128::from(cycles) * 1_000_000_000_000 + u128::from(self.hz) / 2) / u128::from(self.hz)).to_u64())
    }
    /// The number of cycles in a span.
    pub fn cycles(self, t: Time) -> f64 {
        t.0.to_f64() * self.hz.to_f64() / 1e12
    }
    /// The frequency in hertz.
    pub fn hz(self) -> u64 {
        self.hz
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_cycles_at_3_2_ghz_are_exactly_five_ns() {
        let c = Clock::from_hz(3_200_000_000);
        assert_eq!(c.span(16), Time::ns(5));
        assert_eq!(c.span(1), Time(313));
        assert_eq!(c.cycles(Time::ns(5)), 16.0);
    }
}
