//! A domain: a sender with a fixed number of credits, a path, and a receiver that returns the credits ("Understanding
//! the Host Network", SIGCOMM'24, §4). Every bounded resource of the host is a domain, so that occupancy, arrival rate
//! and latency of all resources are metered in one place.

use crate::kernel::{Int, Time};
use std::collections::VecDeque;

/// Credits of one sender, with meters. Occupancy is integrated over time and latency is measured for each credit;
/// Little's law must make the two agree.
#[derive(Clone, Debug)]
pub struct Domain {
    credits: u32,
    used: u32,
    peak: u32,
    since: Time,
    /// Sum of the return times minus the sum of the take times, in picoseconds counted from `since`. The sum is
    /// independent of the order of the reports, which is not that of time, since cores run ahead of the calendar.
    /// 64 bits would be too few: credits may be held while nothing happens for days.
    balance: i128,
    arrivals: u64,
    returns: u64,
    /// Sum of the times that returned credits were held, in picoseconds.
    held: u128,
    refused: u64,
}

/// Readings of a domain's meters over one window of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DomainReading {
    /// Credits that exist.
    pub credits: u32,
    /// Time-averaged credits in use.
    pub occupancy: f64,
    /// Largest number of credits in use at one time.
    pub peak: u32,
    /// Credits taken per second.
    pub arrival_rate: f64,
    /// Mean time that a credit was held, measured for each credit, in nanoseconds.
    pub latency_ns: f64,
    /// Mean time that a credit was held by Little's law, occupancy / arrival rate, in nanoseconds.
    pub little_ns: f64,
    /// Number of times that a sender asked for a credit and none was left.
    pub refused: u64,
}

impl DomainReading {
    /// Combines the readings of several senders, each with credits of its own. The combined peak is an upper bound,
    /// since the senders' peaks need not have coincided.
    pub fn together(parts: impl IntoIterator<Item = DomainReading>) -> Option<DomainReading> {
        parts.into_iter().reduce(|a, b| {
            let rate = a.arrival_rate + b.arrival_rate;
            let mean = |x: f64, y: f64| if rate > 0.0 { (x * a.arrival_rate + y * b.arrival_rate) / rate } else { 0.0 };
            DomainReading {
                credits: a.credits.saturating_add(b.credits),
                occupancy: a.occupancy + b.occupancy,
                peak: a.peak + b.peak,
                arrival_rate: rate,
                latency_ns: mean(a.latency_ns, b.latency_ns),
                little_ns: mean(a.little_ns, b.little_ns),
                refused: a.refused + b.refused,
            }
        })
    }
}

impl Domain {
    /// A domain without a limit, which only counts.
    pub fn unbounded() -> Domain {
        Domain::new(u32::MAX)
    }

    /// A domain with `credits` credits.
    pub fn new(credits: u32) -> Domain {
        Domain {
            credits,
            used: 0,
            peak: 0,
            since: Time::ZERO,
            balance: 0,
            arrivals: 0,
            returns: 0,
            held: 0,
            refused: 0,
        }
    }

    #[inline]
    fn offset(&self, t: Time) -> i128 {
        t.0.saturating_sub(self.since.0).into()
    }

    /// Takes a credit, or notes the refusal and returns false.
    #[inline]
    pub fn take(&mut self, now: Time) -> bool {
        if self.used >= self.credits {
            self.refused += 1;
            return false;
        }
        self.force(now);
        true
    }

    /// Takes a credit even when none is left; the caller must check `free` before it sends again.
    #[inline]
    pub fn force(&mut self, now: Time) {
        self.force_many(1, now);
    }

    /// Takes `n` credits even when fewer are left; the caller must check `free` before it sends again.
    #[inline]
    pub fn force_many(&mut self, n: u32, now: Time) {
        self.balance -= self.offset(now) * i128::from(n);
        self.used += n;
        self.peak = self.peak.max(self.used);
        self.arrivals += u64::from(n);
    }

    /// Notes that a sender found too few credits.
    #[inline]
    pub fn refuse(&mut self) {
        self.refused += 1;
    }

    /// Returns a credit that was taken at `taken`.
    #[inline]
    pub fn give(&mut self, now: Time, taken: Time) {
        self.give_many(1, now, taken);
    }

    /// Returns `n` credits that were taken at `taken`. Because a core runs ahead of the calendar, a request may be
    /// answered before the future time at which the credit was taken; the credit then counts as held for no time.
    #[inline]
    pub fn give_many(&mut self, n: u32, now: Time, taken: Time) {
        debug_assert!(self.used >= n, "a credit came back that nobody had taken");
        let start = taken.max(self.since);
        let end = now.max(start);
        self.balance += i128::from((end - self.since).0) * i128::from(n);
        self.used -= n;
        self.returns += u64::from(n);
        self.held += u128::from((end - start).0) * u128::from(n);
    }

    /// Returns the `n` credits that were taken longest ago; the domain must then be read with [`Domain::read_in_order`].
    #[inline]
    pub(super) fn give_oldest(&mut self, n: u32, now: Time) {
        debug_assert!(self.used >= n, "a credit came back that nobody had taken");
        self.balance += self.offset(now) * i128::from(n);
        self.used -= n;
        self.returns += u64::from(n);
    }

    /// Credits that nobody holds.
    #[inline]
    pub fn free(&self) -> u32 {
        self.credits.saturating_sub(self.used)
    }
    /// Credits in use.
    pub fn used(&self) -> u32 {
        self.used
    }
    /// Largest number of credits in use at one time since the restart.
    pub fn peak(&self) -> u32 {
        self.peak
    }
    /// Total time that the returned credits were held, in picoseconds.
    pub fn held_ps(&self) -> u128 {
        self.held
    }
    /// All credits, free or in use.
    pub fn credits(&self) -> u32 {
        self.credits
    }

    /// Starts a new window: clears the meters and keeps the credits in use.
    pub fn restart(&mut self, now: Time) {
        self.since = now;
        self.balance = 0;
        self.arrivals = 0;
        self.returns = 0;
        self.held = 0;
        self.refused = 0;
        self.peak = self.used;
    }

    /// Credits in use, integrated over the time since the restart, in credits x ps.
    pub fn integral(&self, now: Time) -> i128 {
        self.balance + self.offset(now) * i128::from(self.used)
    }

    /// The readings of the window that ends at `now`.
    pub fn read(&self, now: Time) -> DomainReading {
        self.read_without(TakesToCome::default(), now)
    }

    /// The readings of the window that ends at `now` of a domain whose credits return in the order of their takes, given the
    /// times at which the credits `in_use` were taken.
    pub(super) fn read_in_order(&self, in_use: impl Iterator<Item = (Time, u32)>, now: Time) -> DomainReading {
        // The balance lacks the takes of returned credits once these are added.
        let takes = in_use.map(|(at, n)| self.offset(at) * i128::from(n)).sum::<i128>();
        let held = (self.balance + takes).try_into().unwrap_or(0);
        Domain { held, ..self.clone() }.read(now)
    }

    /// The readings of the window that ends at `now`, without the takes `later` that come after the window.
    fn read_without(&self, later: TakesToCome, now: Time) -> DomainReading {
        let window = (now - self.since).0.max(1).to_f64();
        let integral = (self.integral(now) + later.until).to_f64();
        let occupancy = integral / window;
        let arrivals = self.arrivals - later.takes;
        let per = |sum: f64, n: u64| if n == 0 { 0.0 } else { sum / n.to_f64() / 1e3 };
        DomainReading {
            credits: self.credits,
            occupancy,
            peak: self.peak,
            arrival_rate: arrivals.to_f64() / window * 1e12,
            latency_ns: per(self.held.to_f64(), self.returns),
            little_ns: per(integral, arrivals),
            refused: self.refused,
        }
    }
}

/// Takes of a domain whose times have not come.
#[derive(Clone, Copy, Default, Debug)]
struct TakesToCome {
    /// Number of takes.
    takes: u64,
    /// Sum of the times until the takes, in picoseconds.
    until: i128,
}

/// A domain whose credits a core takes while it runs ahead of the calendar: the time of a take may lie beyond the end
/// of the window. Each return of a credit must come at calendar time.
#[derive(Clone, Debug)]
pub struct AheadDomain {
    domain: Domain,
    /// Times of takes that may lie ahead of the calendar, in any order. Times that have come are dropped together when
    /// there are more than `early_limit`.
    early: Vec<Time>,
    early_limit: usize,
}

/// Least number of early takes that a domain keeps before it drops those whose times have come.
const EARLY_BATCH: usize = 64;

impl AheadDomain {
    /// A domain with `credits` credits.
    pub fn new(credits: u32) -> AheadDomain {
        AheadDomain { domain: Domain::new(credits), early: Vec::new(), early_limit: EARLY_BATCH }
    }

    /// Takes a credit at `at`, or notes the refusal and returns false.
    #[inline]
    pub fn take(&mut self, at: Time) -> bool {
        let taken = self.domain.take(at);
        if taken {
            self.early.push(at);
        }
        taken
    }

    /// Returns a credit that was taken at `taken`.
    #[inline]
    pub fn give(&mut self, now: Time, taken: Time) {
        self.domain.give(now, taken);
        if taken > now || self.early.len() > self.early_limit {
            self.settle_early(now, taken);
        }
    }

    /// Forgets the early take at `taken`, if its credit is back before that time, and early takes whose time has come by
    /// `now`, once they are many. A function of its own, so that returning a credit stays short.
    #[cold]
    #[inline(never)]
    fn settle_early(&mut self, now: Time, taken: Time) {
        if taken > now {
            if let Some(i) = self.early.iter().position(|at| *at == taken) {
                self.early.swap_remove(i);
            }
        }
        if self.early.len() > self.early_limit {
            self.early.retain(|at| *at > now);
            self.early_limit = EARLY_BATCH.max(2 * self.early.len());
        }
    }

    /// Takes whose times have not come at `now`.
    fn still_to_come(&self, now: Time) -> TakesToCome {
        let ahead = self.early.iter().filter(|at| **at > now).map(|at| i128::from((*at - now).0));
        ahead.fold(TakesToCome::default(), |t, ps| TakesToCome { takes: t.takes + 1, until: t.until + ps })
    }

    /// Credits that nobody holds.
    #[inline]
    pub fn free(&self) -> u32 {
        self.domain.free()
    }
    /// Credits in use.
    pub fn used(&self) -> u32 {
        self.domain.used()
    }
    /// Total time that the returned credits were held, in picoseconds.
    pub fn held_ps(&self) -> u128 {
        self.domain.held_ps()
    }
    /// All credits, free or in use.
    pub fn credits(&self) -> u32 {
        self.domain.credits()
    }

    /// Starts a new window: clears the meters and keeps the credits in use.
    pub fn restart(&mut self, now: Time) {
        self.early.retain(|at| *at > now);
        let later = self.still_to_come(now);
        self.domain.restart(now);
        self.domain.balance = -later.until;
        self.domain.arrivals = later.takes;
    }

    /// The readings of the window that ends at `now`.
    pub fn read(&self, now: Time) -> DomainReading {
        self.domain.read_without(self.still_to_come(now), now)
    }
}

/// A domain without a limit whose credits return at times known in advance. A credit counts towards the peak until the
/// time of its return has come.
#[derive(Clone, Debug)]
pub struct Booked {
    domain: Domain,
    /// Times of the credits' returns, in ascending order.
    returns: VecDeque<Time>,
    /// Time up to which returns have taken place although `returns` still contains them.
    passed: Time,
    peak: u32,
}

impl Booked {
    /// A domain without a limit.
    pub fn unbounded() -> Booked {
        Booked { domain: Domain::unbounded(), returns: VecDeque::new(), passed: Time::ZERO, peak: 0 }
    }

    /// Takes a credit.
    #[inline]
    pub fn force(&mut self, now: Time) {
        self.domain.force(now);
        self.passed = self.passed.max(now);
        if self.used() > self.peak {
            self.settle();
            self.peak = self.peak.max(self.used());
        }
    }

    /// Schedules the return at `at`, possibly in the future, of a credit that was taken at `taken`.
    #[inline]
    pub fn give_at(&mut self, at: Time, taken: Time) {
        self.domain.give(at, taken);
        if self.passed < at && self.returns.back().is_none_or(|last| *last <= at) {
            self.returns.push_back(at);
        } else {
            self.book_between(at);
        }
    }

    /// Inserts a return that precedes scheduled returns, or that has passed but counts until the next credit is taken.
    #[cold]
    fn book_between(&mut self, at: Time) {
        self.settle();
        let i = self.returns.partition_point(|t| *t <= at);
        self.returns.insert(i, at);
    }

    /// Removes the returns that have taken place, which is only necessary where the peak may have been exceeded.
    #[inline(never)]
    fn settle(&mut self) {
        let passed = self.returns.partition_point(|t| *t <= self.passed);
        self.returns.drain(..passed);
        self.passed = Time::ZERO;
    }

    /// Credits in use, including credits with a scheduled return; an upper bound until `settle` removes passed returns.
    fn used(&self) -> u32 {
        self.domain.used() + self.returns.len().to_u32()
    }

    /// Starts a new window: clears the meters and keeps the credits in use.
    pub fn restart(&mut self, now: Time) {
        self.domain.restart(now);
        self.passed = self.passed.max(now);
        self.settle();
        self.peak = self.used();
    }

    /// The readings of the window that ends at `now`.
    pub fn read(&self, now: Time) -> DomainReading {
        DomainReading { peak: self.peak, ..self.domain.read(now) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_s_law_and_the_measured_latency_agree_on_a_drained_window() {
        let mut d = Domain::new(2);
        assert!(d.take(Time::ns(0)));
        assert!(d.take(Time::ns(10)));
        assert!(!d.take(Time::ns(15)), "two credits, no third");
        d.give(Time::ns(30), Time::ns(0));
        d.give(Time::ns(70), Time::ns(10));
        let r = d.read(Time::ns(100));
        assert_eq!(r.latency_ns, 45.0); // (30 + 60) / 2
        assert_eq!(r.little_ns, 45.0);
        assert_eq!(r.occupancy, 0.9); // 90 credit-ns over 100 ns
        assert_eq!((r.peak, r.refused), (2, 1));
    }

    #[test]
    fn a_credit_that_is_back_before_its_time_has_come_was_held_for_no_time() {
        let mut d = Domain::new(2);
        d.force(Time::ns(80)); // by a core that runs ahead of the calendar
        d.give(Time::ns(60), Time::ns(80));
        d.force(Time::ns(20));
        d.give(Time::ns(70), Time::ns(20));
        let r = d.read(Time::ns(100));
        // 50 credit-ns, two credits
        assert_eq!((r.occupancy, r.latency_ns, r.little_ns), (0.5, 25.0, 25.0));
    }

    /// A core takes a credit at 150 ns and has it back at 160 ns, which it says at 100 ns, the end of a window.
    #[test]
    fn a_credit_taken_beyond_a_window_counts_in_the_next_one() {
        let mut d = AheadDomain::new(2);
        d.take(Time::ns(20));
        d.take(Time::ns(150));
        d.give(Time::ns(60), Time::ns(20));
        let r = d.read(Time::ns(100));
        assert_eq!((r.occupancy, r.latency_ns, r.little_ns, r.arrival_rate), (0.4, 40.0, 40.0, 1e7));
        d.restart(Time::ns(100));
        let r = d.read(Time::ns(120));
        assert_eq!((r.occupancy, r.arrival_rate), (0.0, 0.0));
        d.give(Time::ns(160), Time::ns(150));
        let r = d.read(Time::ns(200));
        assert_eq!((r.occupancy, r.latency_ns, r.little_ns, r.arrival_rate), (0.1, 10.0, 10.0, 1e7));
    }

    /// Occupancy of every window is the overlap of the credits' times with the window, however far ahead of the calendar
    /// the credits are taken; over all windows, Little's law gives the mean time that a credit is held.
    #[test]
    fn windows_add_up_to_the_times_that_credits_were_held() {
        let mut rng = crate::kernel::RandomStream::new(7, "ahead", 0);
        let mut d = AheadDomain::new(12);
        let (mut core, mut since, mut integral, mut arrivals) = (0u64, 0u64, 0.0, 0.0);
        let (mut open, mut spans): (Vec<u64>, Vec<(u64, u64)>) = (Vec::new(), Vec::new());
        for now in (0..200_000u64).step_by(7) {
            if d.free() > 0 && core < now + 20_000 {
                core = core.max(now) + rng.below(300);
                assert!(d.take(Time(core)));
                open.push(core);
            }
            if rng.below(4) == 0 && !open.is_empty() {
                let taken = open.swap_remove(rng.below(open.len() as u64) as usize);
                d.give(Time(now), Time(taken));
                spans.push((taken, now.max(taken)));
            }
            if now % 5_000 < 7 && now > since {
                let r = d.read(Time(now));
                let until = |(taken, back): (u64, u64)| back.min(now).saturating_sub(taken.max(since));
                let held: u64 = spans.iter().copied().chain(open.iter().map(|t| (*t, u64::MAX))).map(until).sum();
                let width = (now - since) as f64;
                assert!((r.occupancy - held as f64 / width).abs() < 1e-9, "{} at {now}", r.occupancy);
                integral += r.occupancy * width;
                arrivals += r.arrival_rate * width / 1e12;
                d.restart(Time(now));
                since = now;
            }
        }
        let all = spans.iter().map(|s| s.1.min(since).saturating_sub(s.0) as f64).sum::<f64>();
        let still = open.iter().map(|t| since.saturating_sub(*t) as f64).sum::<f64>();
        assert!((integral - all - still).abs() < 1e-3 && arrivals > 1_000.0, "{integral} is not {}", all + still);
    }

    #[test]
    fn the_peak_counts_credits_until_their_booked_return() {
        let mut d = Booked::unbounded();
        for (taken, back) in [(0, 50), (10, 30), (20, 60), (40, 70)] {
            d.force(Time::ns(taken));
            d.give_at(Time::ns(back), Time::ns(taken));
        }
        assert_eq!(d.read(Time::ns(100)).peak, 3); // [0, 50), [10, 30), [20, 60); the second credit returns at 40
        d.restart(Time::ns(55));
        let r = d.read(Time::ns(100));
        assert_eq!((r.peak, r.occupancy), (2, 0.0));
    }

    #[test]
    fn a_booked_peak_is_that_of_counting_at_each_take() {
        let mut rng = crate::kernel::RandomStream::new(5, "booked", 0);
        let mut d = Booked::unbounded();
        // Scheduled returns that still count, credits without a scheduled return, and takes whose times occasionally go
        // back.
        let (mut ahead, mut open, mut peak): (Vec<u64>, Vec<u64>, usize) = (Vec::new(), Vec::new(), 0);
        let mut now = 0u64;
        for step in 0..20_000 {
            now = (now + rng.below(40)).saturating_sub([0, 0, 60][rng.below(3) as usize]);
            if open.len() < 20 && rng.below(2) == 0 {
                d.force(Time(now));
                open.push(now);
                ahead.retain(|at| *at > now);
                peak = peak.max(open.len() + ahead.len());
            } else if let Some(taken) = open.pop() {
                let at = now + rng.below(80);
                d.give_at(Time(at), Time(taken));
                ahead.push(at);
            }
            if step % 40 == 39 {
                d.restart(Time(now));
                ahead.retain(|at| *at > now);
                peak = open.len() + ahead.len();
            }
            assert_eq!(d.peak as usize, peak, "at step {step}");
        }
        assert!(peak > 0);
    }

    #[test]
    fn two_senders_read_together_are_one_with_both_their_credits() {
        let (mut a, mut b) = (Domain::new(2), Domain::new(3));
        a.take(Time::ns(0));
        a.give(Time::ns(40), Time::ns(0));
        for taken in [10, 20, 30] {
            b.take(Time::ns(taken));
            b.give(Time::ns(taken + 60), Time::ns(taken));
        }
        let r = DomainReading::together([a.read(Time::ns(100)), b.read(Time::ns(100))]).expect("two");
        assert_eq!((r.credits, r.occupancy), (5, 2.2)); // 40 and 180 credit-ns over 100 ns
        assert_eq!((r.latency_ns, r.little_ns), (55.0, 55.0)); // (40 + 3 x 60) / 4
    }
}
