//! Proactive drop after NeBuLa: the NIC drops an arriving packet when so many packets wait that the new one would miss
//! its latency objective, which bounds buffer occupancy (Sweeper, section VII; Sutherland et al., ISCA 2020).

use crate::kernel::{Int, Real};

/// Queue depth at or above which a packet cannot meet `slo_ns` at `service_ns` a request.
pub fn depth(slo_ns: f64, service_ns: f64) -> u32 {
    (slo_ns / service_ns).floor().max(1.0).whole().min(u32::MAX.into()).to_u32()
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_objective_of_100_service_times_admits_100_waiting_packets() {
        assert_eq!(super::depth(90_000.0, 900.0), 100);
    }
}
