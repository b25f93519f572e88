//! A serialising link: packets follow each other at the link's rate and may need credits of the receiver to leave.

use super::credits::{CreditWait, Credits};
use super::domain::DomainReading;
use crate::kernel::units::Bandwidth;
use crate::kernel::{Int, Real, Time};

/// One direction of a link. Packets are serialised, and a packet waits for credits of its class; the meters count the
/// bytes carried and the time that packets spend on the link.
#[derive(Clone, Debug)]
pub struct Link {
    ps_per_byte: f64,
    /// Time from a packet's last byte at the sender to the packet's arrival.
    pub flight: Time,
    free: Time,
    busy: u64,
    /// Time after the restart for which packets sent before it occupy the link.
    carried: Time,
    /// Packets sent since the restart.
    packets: u64,
    /// Time of the restart.
    since: Time,
    /// Credits that the receiver grants for each class of packets.
    classes: Vec<Credits>,
}

impl Link {
    /// Time at which the link is free again.
    pub fn free(&self) -> Time {
        self.free
    }

    /// Keeps the link busy until `busy` at least, for packets that are accounted for elsewhere.
    pub fn keep_until(&mut self, busy: Time) {
        self.free = self.free.max(busy);
    }

    /// A link of `bits_per_second` whose packets arrive `flight` after their last byte has left.
    pub fn new(bits_per_second: f64, flight: Time) -> Link {
        Link {
            ps_per_byte: 8e12 / bits_per_second,
            flight,
            free: Time::ZERO,
            busy: 0,
            carried: Time::ZERO,
            packets: 0,
            since: Time::ZERO,
            classes: Vec::new(),
        }
    }

    /// Makes one direction of an Ethernet link.
    pub fn ethernet(rate: Bandwidth, flight: Time) -> Link {
        Link::new(rate.0.to_f64(), flight)
    }

    /// Gives each class of packets the number of credits that the receiver grants.
    pub fn with_credits(mut self, classes: &[u32]) -> Link {
        self.classes = classes.iter().map(|n| Credits::new(*n)).collect();
        self
    }

    /// Time for which `bytes` occupy the link.
    #[inline]
    pub fn time(&self, bytes: u64) -> Time {
        Time((bytes.to_f64() * self.ps_per_byte).round().whole())
    }

    /// Sends a packet of `bytes` that is ready at `now`; returns when its last byte leaves.
    #[inline]
    pub fn send(&mut self, bytes: u64, now: Time) -> Time {
        let span = self.time(bytes);
        self.free = self.free.max(now) + span;
        self.busy += span.0;
        self.packets += 1;
        self.free
    }

    /// Time that a packet that is ready at `now` waits for earlier packets.
    #[inline]
    pub fn backlog(&self, now: Time) -> Time {
        self.free.saturating_sub(now)
    }

    /// Takes `n` credits of a class for a packet that leaves at `now`.
    ///
    /// # Errors
    /// Fails when fewer than `n` credits are left, and names the condition to wait for.
    #[inline]
    pub fn take(&mut self, class: usize, n: u32, now: Time) -> Result<(), CreditWait> {
        self.classes[class].take(n, now)
    }
    /// Credits of a class of packets.
    pub fn credits(&self, class: usize) -> &Credits {
        &self.classes[class]
    }
    /// Credits of a class of packets, to take and to return.
    pub fn credits_mut(&mut self, class: usize) -> &mut Credits {
        &mut self.classes[class]
    }

    /// Starts a new window: clears the meters, and keeps the packets that wait and the credits in use.
    pub fn restart(&mut self, now: Time) {
        self.busy = 0;
        self.carried = self.backlog(now);
        (self.packets, self.since) = (0, now);
        self.classes.iter_mut().for_each(|c| c.restart(now));
    }
    /// Time for which packets sent since the restart occupy the link.
    pub fn busy(&self) -> Time {
        Time(self.busy)
    }
    /// Time between the restart and `now` in which the link carried packets.
    pub fn busy_until(&self, now: Time) -> Time {
        (self.carried + self.busy()).saturating_sub(self.backlog(now))
    }
    /// Readings of the packet on the link: one at a time, from its first to its last byte.
    pub fn read(&self, now: Time) -> DomainReading {
        let window = (now - self.since).0.max(1).to_f64();
        let occupancy = self.busy_until(now).0.to_f64() / window;
        let ns = |time: f64| if self.packets == 0 { 0.0 } else { time / self.packets.to_f64() / 1e3 };
        DomainReading {
            credits: 1,
            occupancy,
            peak: u32::from(occupancy > 0.0),
            arrival_rate: self.packets.to_f64() / window * 1e12,
            latency_ns: ns(self.busy.to_f64()),
            little_ns: ns(occupancy * window),
            refused: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A link of 100 Gb/s, which takes 80 ps for a byte.
    fn link() -> Link {
        Link::ethernet(Bandwidth(100_000_000_000), Time::ns(5))
    }

    #[test]
    fn a_packet_that_comes_late_finds_the_link_idle() {
        let mut l = link();
        assert_eq!(l.send(125, Time::ns(0)), Time::ns(10));
        assert_eq!(l.backlog(Time::ns(4)), Time::ns(6));
        assert_eq!(l.send(125, Time::ns(4)), Time::ns(20));
        assert_eq!(l.send(125, Time::ns(50)), Time::ns(60));
        assert_eq!(l.busy(), Time::ns(30));
    }

    /// 10 ns from 0 on, 10 more after them, and a window from 4 to 15 ns in which the link is never idle.
    #[test]
    fn a_window_counts_the_part_of_each_packet_that_lies_within_it() {
        let mut l = link();
        l.send(125, Time::ns(0));
        l.restart(Time::ns(4));
        l.send(125, Time::ns(5));
        assert_eq!(l.busy_until(Time::ns(15)), Time::ns(11));
        assert_eq!(l.busy_until(Time::ns(50)), Time::ns(16));
    }

    /// Three packets of 10 ns within 100 ns, of which the second waits for the first, and a fourth that has sent 4 of its 10 ns:
    /// 34 ns of 100, by Little's law 8.5 ns for each of four packets.
    #[test]
    fn the_packet_on_the_link_is_metered_without_those_that_wait() {
        let mut l = link();
        for ns in [0, 4, 50, 96] {
            l.send(125, Time::ns(ns));
        }
        let r = l.read(Time::ns(100));
        assert!((r.latency_ns - 10.0).abs() < 1e-9 && (r.little_ns - 8.5).abs() < 1e-9, "{r:?}");
        assert_eq!((r.occupancy, r.peak, r.credits), (0.34, 1, 1));
    }

    #[test]
    fn classes_have_credits_of_their_own() {
        let mut l = link().with_credits(&[1, 2]);
        assert_eq!(l.take(0, 1, Time::ns(0)), Ok(()));
        assert_eq!(l.take(0, 1, Time::ns(0)), Err(CreditWait::Return));
        assert_eq!(l.take(1, 2, Time::ns(0)), Ok(()));
        l.credits_mut(0).give(1, Time::ns(3));
        assert_eq!(l.take(0, 1, Time::ns(3)), Ok(()));
    }
}
