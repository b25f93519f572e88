//! Interchangeable credits: bytes of a buffer, entries of a ring, flow-control credits of a link. A sender may take
//! several credits with one request, and a returned credit may need time to reach the sender.

use super::domain::{Domain, DomainReading};
use crate::kernel::Time;
use std::collections::VecDeque;

/// A domain whose credits are interchangeable: a returned credit is always the one that was taken longest ago.
#[derive(Clone, Debug)]
pub struct Credits {
    domain: Domain,
    /// Latest credits that were taken, those in use among them, each entry with the time at which its credits were taken.
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
    fn settle(&mut self, n: u32, now: Time) {
        self.domain.give_oldest(n, now);
    }

    /// Entries of `taken` whose credits are in use, from the latest to the earliest, each with its credits in use.
    fn in_use(&self) -> impl Iterator<Item = (Time, u32)> + '_ {
        let mut left = self.domain.used();
        let entries = self.taken.iter().rev().map(move |&(at, n)| {
            let part = n.min(left);
            left -= part;
            (at, part)
        });
        entries.take_while(|e| e.1 > 0)
    }

    /// Forgets the takes of returned credits. A function of its own, so that taking a credit stays short.
    #[cold]
    #[inline(never)]
    fn forget_returned(&mut self) {
        let used = self.in_use().count();
        self.taken.drain(..self.taken.len() - used);
        self.taken.reserve(used + 1);
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
        if self.taken.len() == self.taken.capacity() {
            self.forget_returned();
        }
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
        seen.domain.read_in_order(seen.in_use(), now)
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

    /// Of three credits taken together one is back after 30 ns, and the others do not count yet.
    #[test]
    fn credits_that_are_still_in_use_have_no_latency() {
        let mut c = Credits::new(8);
        assert_eq!(c.take(3, Time::ns(10)), Ok(()));
        c.give(1, Time::ns(40));
        let r = c.read(Time::ns(110));
        assert_eq!((r.latency_ns, r.occupancy), (30.0, (30.0 + 2.0 * 100.0) / 110.0));
    }

    /// Every 10 ns a credit is taken for 20 ns, so that two are in use all the time. A window of 1,000 ns finds two in use, of
    /// which it sees 5 and 15 ns, and leaves two in use.
    #[test]
    fn thousands_of_takes_are_held_as_long_as_the_first() {
        let mut c = Credits::new(3);
        for i in 0..200 {
            let now = Time::ns(10 * i);
            if i == 100 {
                c.restart(Time::ns(995));
            }
            assert_eq!(c.take(1, now), Ok(()));
            c.give_at(1, now + Time::ns(20));
        }
        let r = c.read(Time::ns(1995));
        assert_eq!((r.occupancy, r.peak, r.arrival_rate), (2.0, 2, 0.1e9));
        // 98 credits of 20 ns, and one of 15 ns and one of 5 ns that were in use at the start
        assert!((r.latency_ns - (98.0 * 20.0 + 15.0 + 5.0) / 100.0).abs() < 1e-9, "{r:?}");
        assert!(c.taken.len() <= 64, "takes of returned credits are forgotten");
    }

    #[test]
    #[should_panic(expected = "nobody had taken")]
    fn a_credit_too_many_is_found() {
        Credits::new(2).give(1, Time::ns(1));
    }
}
