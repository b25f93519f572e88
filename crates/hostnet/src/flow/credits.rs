//! Interchangeable credits: bytes of a buffer, entries of a ring, flow-control credits of a link. A sender may take
//! several credits with one request, and a returned credit may need time to reach the sender.

use super::domain::{Domain, DomainReading};
use crate::kernel::Time;
use std::collections::VecDeque;

/// A domain whose credits are interchangeable: a returned credit is always the one that was taken longest ago.
#[derive(Clone, Debug)]
pub struct Credits {
    domain: Domain,
    /// Credits in use, each entry with the time at which its credits were taken.
    taken: VecDeque<(Time, u32)>,
    /// Returned credits that have not reached the sender yet, each entry with its time of arrival.
    returning: VecDeque<(Time, u32)>,
}

/// The condition that a sender without enough credits waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CreditWait {
    /// Enough credits are on their way back; the last of them arrives at this time.
    Until(Time),
    /// A receiver has to return credits first, so that no time can be named.
    Return,
}

impl Credits {
    /// The credits of a receiver that grants `credits` credits, all of them free.
    pub fn new(credits: u32) -> Credits {
        let domain = Domain::new(credits);
        Credits { domain, taken: VecDeque::with_capacity(64), returning: VecDeque::with_capacity(64) }
    }

    /// Makes credits that have arrived by `now` available again.
    #[inline]
    fn collect(&mut self, now: Time) {
        while let Some(&(at, n)) = self.returning.front().filter(|r| r.0 <= now) {
            self.returning.pop_front();
            self.settle(n, at);
        }
    }

    #[inline]
    fn settle(&mut self, mut n: u32, now: Time) {
        while n > 0 {
            let (at, out) = self.taken.front_mut().expect("a credit came back that nobody had taken");
            let part = n.min(*out);
            self.domain.give_many(part, now, *at);
            *out -= part;
            n -= part;
            if *out == 0 {
                self.taken.pop_front();
            }
        }
    }

    /// Takes `n` credits.
    ///
    /// # Errors
    /// Fails when fewer than `n` credits are left, and names the condition to wait for.
    #[inline]
    pub fn take(&mut self, n: u32, now: Time) -> Result<(), CreditWait> {
        self.collect(now);
        if self.domain.free() < n {
            self.domain.refuse();
            return Err(self.wait_for(n));
        }
        self.domain.force_many(n, now);
        self.taken.push_back((now, n));
        Ok(())
    }

    /// Checks that `n` credits could be taken, without taking them.
    ///
    /// # Errors
    /// Fails when fewer than `n` credits are left, and names the condition to wait for.
    #[inline]
    pub fn look(&mut self, n: u32, now: Time) -> Result<(), CreditWait> {
        if self.domain.free() >= n {
            return Ok(()); // no credit on its way back is needed
        }
        self.collect(now);
        if self.domain.free() < n {
            return Err(self.wait_for(n));
        }
        Ok(())
    }

    /// Condition under which `n` credits become available, given that fewer are free now.
    pub fn wait_for(&self, n: u32) -> CreditWait {
        let mut free = self.domain.free();
        for &(at, back) in &self.returning {
            free += back;
            if free >= n {
                return CreditWait::Until(at);
            }
        }
        CreditWait::Return
    }

    /// Returns `n` credits.
    #[inline]
    pub fn give(&mut self, n: u32, now: Time) {
        self.settle(n, now);
    }

    /// Returns `n` credits that reach the sender at `at`, which must not lie before the arrival of earlier returns.
    #[inline]
    pub fn give_at(&mut self, n: u32, at: Time) {
        debug_assert!(self.returning.back().is_none_or(|r| r.0 <= at), "credits overtake each other");
        self.returning.push_back((at, n));
    }

    /// Credits that receivers have not returned; credits on their way back count as returned.
    pub fn held(&self) -> u32 {
        self.domain.used() - self.returning.iter().map(|r| r.1).sum::<u32>()
    }
    /// Credits available at the last call that collected returned ones.
    pub fn free(&self) -> u32 {
        self.domain.free()
    }
    /// All credits, free or not.
    pub fn credits(&self) -> u32 {
        self.domain.credits()
    }
    /// Largest number of credits in use at one time since the restart.
    pub fn peak(&self) -> u32 {
        self.domain.peak()
    }

    /// Starts a new window: clears the meters and keeps the credits in use.
    pub fn restart(&mut self, now: Time) {
        self.collect(now);
        self.domain.restart(now);
    }
    /// The readings of the window that ends at `now`.
    pub fn read(&self, now: Time) -> DomainReading {
        let mut seen = self.clone();
        seen.collect(now);
        seen.domain.read(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credits_on_their_way_back_can_be_waited_for() {
        let mut c = Credits::new(4);
        assert_eq!(c.take(3, Time::ns(0)), Ok(()));
        assert_eq!(c.take(2, Time::ns(1)), Err(CreditWait::Return), "one is left, none is on its way");
        c.give_at(1, Time::ns(10));
        c.give_at(1, Time::ns(20));
        assert_eq!(c.wait_for(2), CreditWait::Until(Time::ns(10)));
        assert_eq!(c.take(3, Time::ns(9)), Err(CreditWait::Until(Time::ns(20))));
        assert_eq!(c.take(3, Time::ns(20)), Ok(()));
        assert_eq!((c.free(), c.held()), (0, 4));
    }

    /// Three credits are held for 30, 40 and 50 ns, whichever identifiers they have.
    #[test]
    fn the_oldest_is_the_one_that_comes_back() {
        let mut c = Credits::new(8);
        assert_eq!(c.take(3, Time::ns(0)), Ok(()));
        c.give(1, Time::ns(30));
        c.give_at(2, Time::ns(45));
        let r = c.read(Time::ns(100));
        assert!((r.latency_ns - 40.0).abs() < 1e-9 && (r.little_ns - 40.0).abs() < 1e-9, "{r:?}");
        assert_eq!((r.occupancy, r.peak), (1.2, 3)); // 120 credit-ns over 100 ns
    }

    #[test]
    #[should_panic(expected = "nobody had taken")]
    fn a_credit_too_many_is_found() {
        Credits::new(2).give(1, Time::ns(1));
    }
}
