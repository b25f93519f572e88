//! Interrupt throttling by the driver: the algorithm with which Linux's e1000 sets the NIC's ITR register after each
//! poll (drivers/net/ethernet/intel/e1000/e1000_main.c and e1000_param.c).
//!
//! ```text
//!   interrupt --> polls: packets and bytes of each way are counted
//!       ^           |
//!       |           v all found
//!       +-- so long after the one before -- kind of traffic --> interrupts a second --> ITR
//! ```

use crate::device::nic::Throttle;
use crate::kernel::Time;

/// Packets and bytes that polls have found since an interrupt, in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PollCounts {
    pub packets: u32,
    pub bytes: u32,
}

impl PollCounts {
    pub fn add(&mut self, bytes: u32) {
        self.packets = self.packets.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// Class of traffic: few small packets, more of them, or bulk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum TrafficKind {
    LowestLatency,
    LowLatency,
    Bulk,
}

impl TrafficKind {
    /// Class of traffic after an interrupt whose polls found `f`.
    fn next(self, f: PollCounts) -> TrafficKind {
        let PollCounts { packets, bytes } = f;
        if packets == 0 {
            return self;
        }
        let each = bytes / packets;
        match self {
            TrafficKind::LowestLatency if each > 8000 => TrafficKind::Bulk,
            TrafficKind::LowestLatency if packets < 5 && bytes > 512 => TrafficKind::LowLatency,
            TrafficKind::LowLatency if bytes > 10_000 && (packets < 10 || each > 1200) => TrafficKind::Bulk,
            TrafficKind::LowLatency if bytes > 10_000 && packets > 35 => TrafficKind::LowestLatency,
            TrafficKind::LowLatency if bytes <= 10_000 && each > 2000 => TrafficKind::Bulk,
            TrafficKind::LowLatency if packets <= 2 && bytes < 512 => TrafficKind::LowestLatency,
            TrafficKind::Bulk if bytes > 25_000 && packets > 35 => TrafficKind::LowLatency,
            TrafficKind::Bulk if bytes < 6000 => TrafficKind::LowLatency,
            same => same,
        }
    }

    /// Interrupts per second that the driver aims at.
    fn rate(self) -> u32 {
        match self {
            TrafficKind::LowestLatency => 70_000,
            TrafficKind::LowLatency => 20_000,
            TrafficKind::Bulk => 4000,
        }
    }
}

/// The driver's throttling state for one queue.
#[derive(Clone, Debug)]
pub struct Itr {
    least: TrafficKind,
    /// Traffic classes of the received and of the sent packets.
    kinds: [TrafficKind; 2],
    rate: u32,
}

impl Itr {
    /// Throttling state for mode `t`; None when interrupts are not throttled.
    pub fn new(t: Throttle) -> Option<Itr> {
        let least = match t {
            Throttle::Off => return None,
            Throttle::Dynamic => TrafficKind::LowestLatency,
            Throttle::DynamicConservative => TrafficKind::LowLatency,
        };
        Some(Itr { least, kinds: [TrafficKind::LowestLatency; 2], rate: TrafficKind::LowLatency.rate() })
    }

    /// Minimum time between two interrupts. The register counts units of 256 ns.
    pub fn interval(&self) -> Time {
        Time::ns(256 * (1_000_000_000 / (u64::from(self.rate) * 256)))
    }

    /// Updates the rate after the polls of an interrupt, which found these received and sent packets. A rate increases
    /// in steps.
    pub fn ended(&mut self, found: [PollCounts; 2]) {
        for (kind, f) in self.kinds.iter_mut().zip(found) {
            *kind = kind.next(f).max(self.least);
        }
        let rate = self.kinds[0].max(self.kinds[1]).rate();
        self.rate = rate.min(if rate > self.rate { self.rate + rate / 4 } else { rate });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Interrupts per second after interrupts that received these numbers of packets of these sizes.
    fn rates(t: Throttle, of: &[(u32, u32)]) -> Vec<u32> {
        let mut itr = Itr::new(t).expect("throttled");
        let mut one = |&(packets, each): &(u32, u32)| {
            itr.ended([PollCounts { packets, bytes: packets * each }, PollCounts::default()]);
            itr.rate
        };
        of.iter().map(&mut one).collect()
    }

    /// Linux's kernel documentation: 4,000 interrupts per second for bulk, 20,000 for low latency, 70,000 for lowest
    /// latency, a class that the conservative mode does not have; a rate rises by a quarter of the new rate.
    #[test]
    fn bulk_traffic_lowers_the_rate_at_once_and_small_packets_raise_it_in_steps() {
        let of = [(20, 1500), (60, 1500), (2, 100), (2, 100), (2, 100), (2, 100), (2, 100)];
        assert_eq!(rates(Throttle::DynamicConservative, &of), [20_000, 4000, 9000, 14_000, 19_000, 20_000, 20_000]);
    }

    #[test]
    fn the_first_interrupt_tells_lowest_latency_from_low() {
        // Few packets of more than 512 bytes in all are low latency; a single small packet is not.
        assert_eq!(rates(Throttle::Dynamic, &[(4, 200)]), [20_000]);
        assert_eq!(rates(Throttle::Dynamic, &[(1, 100); 4]), [37_500, 55_000, 70_000, 70_000]);
        assert_eq!(rates(Throttle::DynamicConservative, &[(1, 100); 2]), [20_000, 20_000]);
    }

    #[test]
    fn the_slower_way_decides() {
        let mut itr = Itr::new(Throttle::DynamicConservative).expect("throttled");
        let (small, large) = (PollCounts { packets: 10, bytes: 1000 }, PollCounts { packets: 12, bytes: 18_000 });
        itr.ended([small, small]);
        itr.ended([small, large]);
        assert_eq!(itr.rate, 4000);
        itr.ended([small, PollCounts::default()]);
        assert_eq!(itr.rate, 4000, "a way without packets stays what it was");
    }

    /// 10^9 / (20,000 x 256) = 195.3 and 10^9 / (4,000 x 256) = 976.6; the register holds only the whole units.
    #[test]
    fn the_register_has_whole_units_of_256_ns() {
        let mut itr = Itr::new(Throttle::DynamicConservative).expect("throttled");
        assert_eq!(itr.interval(), Time::ns(195 * 256));
        itr.ended([PollCounts::default(), PollCounts::default()]);
        itr.ended([PollCounts { packets: 12, bytes: 18_000 }, PollCounts::default()]);
        assert_eq!(itr.interval(), Time::ns(976 * 256));
    }
}
