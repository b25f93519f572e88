//! A PCIe link by its transaction-layer packets: bytes on the wire, serialisation by direction, flight
//! time, flow-control credits.

use crate::kernel::units::{Size, Span};
use crate::kernel::Time;
use crate::memory::LINE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Signalling rate and line code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Generation {
    /// 8 GT/s, 128b/130b.
    Gen3,
    /// 16 GT/s, 128b/130b.
    Gen4,
    /// 32 GT/s, 128b/130b.
    Gen5,
}

impl Generation {
    /// Bits per second of one lane after the line code.
    pub fn lane_bps(self) -> f64 {
        let transfers = match self {
            Generation::Gen3 => 8e9,
            Generation::Gen4 => 16e9,
            Generation::Gen5 => 32e9,
        };
        transfers * 128.0 / 130.0
    }
}

/// The links between devices and the IIO.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PcieSpec {
    /// Signalling rate and line code.
    pub generation: Generation,
    /// Largest payload of a write or a completion.
    pub max_payload: Size,
    /// Largest read request.
    pub max_read_request: Size,
    /// Bytes of a memory write besides its payload: framing, sequence number, header, CRC.
    pub write_overhead: u32,
    /// Bytes of a memory read request.
    pub read_request: u32,
    /// Bytes of a completion besides its payload.
    pub completion_overhead: u32,
    /// Share of the link that data-link packets and skip sets take.
    pub dllp_share: f64,
    /// Flight time of a packet, transmitter to receiver, controllers included.
    pub propagation: Span,
    /// Posted-data credits of a port of four lanes, in lines: writes sent whose IIO entries are not yet free.
    /// A wider port has as many times more as the ports that it could be divided into.
    pub posted_lines: u32,
    /// Non-posted header credits of a port of four lanes: read requests that wait for IIO entries.
    pub non_posted: u32,
}

/// Lanes of the narrowest port that a stack is divided into.
const QUARTER: u32 = 4;

impl PcieSpec {
    /// Posted-data credits of a port of `lanes`, in lines.
    pub fn posted(&self, lanes: u32) -> u32 {
        self.posted_lines * lanes.div_ceil(QUARTER)
    }
    /// Non-posted header credits of a port of `lanes`.
    pub fn non_posted(&self, lanes: u32) -> u32 {
        self.non_posted * lanes.div_ceil(QUARTER)
    }

    /// # Errors
    /// One clause that names key and value.
    pub fn check(&self) -> Result<(), String> {
        for (key, s) in [("max_payload", self.max_payload), ("max_read_request", self.max_read_request)] {
            if !s.0.is_power_of_two() || !(64..=4096).contains(&s.0) {
                return Err(format!("{key} = \"{s}\" is not a power of two within 64 B to 4 KiB"));
            }
        }
        if !(0.0..0.5).contains(&self.dllp_share) {
            return Err(format!("dllp_share = {} is not within 0 to 0.5", self.dllp_share));
        }
        let payload = (self.max_payload.0 / LINE) as u32;
        if self.posted_lines < payload {
            return Err(format!("posted_lines = {} cannot hold one write of {payload} lines", self.posted_lines));
        }
        if self.non_posted == 0 {
            return Err("non_posted = 0 must be positive".into());
        }
        Ok(())
    }
}

/// The timing of one link.
#[derive(Clone, Debug)]
pub struct Link {
    /// Picoseconds per byte.
    ps: f64,
    pub payload: u32,
    pub request: u32,
    write_overhead: u32,
    read_request: u32,
    completion_overhead: u32,
    pub flight: Time,
}

impl Link {
    pub fn new(s: &PcieSpec, lanes: u32) -> Link {
        let bps = s.generation.lane_bps() * f64::from(lanes) * (1.0 - s.dllp_share);
        Link {
            ps: 8e12 / bps,
            payload: s.max_payload.0 as u32,
            request: s.max_read_request.0 as u32,
            write_overhead: s.write_overhead,
            read_request: s.read_request,
            completion_overhead: s.completion_overhead,
            flight: s.propagation.into(),
        }
    }
    fn span(&self, bytes: u32) -> Time {
        Time((f64::from(bytes) * self.ps).round() as u64)
    }
    /// Time that a write of `bytes` payload holds the link.
    pub fn write(&self, bytes: u32) -> Time {
        self.span(bytes + self.write_overhead)
    }
    pub fn read_request(&self) -> Time {
        self.span(self.read_request)
    }
    pub fn completion(&self, bytes: u32) -> Time {
        self.span(bytes + self.completion_overhead)
    }
}

/// One direction of a link: packets follow each other.
#[derive(Clone, Debug, Default)]
pub struct Wire {
    free: Time,
    busy: u64,
}

impl Wire {
    /// A packet that holds the wire for `span` is ready at `now`; returns when its last byte leaves.
    pub fn send(&mut self, now: Time, span: Time) -> Time {
        self.free = self.free.max(now) + span;
        self.busy += span.0;
        self.free
    }
    pub fn restart(&mut self) {
        self.busy = 0;
    }
    /// Time that packets sent since the restart hold the wire.
    pub fn busy(&self) -> Time {
        Time(self.busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> PcieSpec {
        PcieSpec {
            generation: Generation::Gen3,
            max_payload: Size(256),
            max_read_request: Size(512),
            write_overhead: 24,
            read_request: 24,
            completion_overhead: 20,
            dllp_share: 0.0,
            propagation: Span(100_000),
            posted_lines: 64,
            non_posted: 32,
        }
    }

    /// 8 GT/s x 8 lanes x 128/130 is 63.015 Gb/s; of every 280 bytes 256 are payload.
    #[test]
    fn back_to_back_writes_move_their_share_of_the_link() {
        let link = Link::new(&spec(), 8);
        let mut wire = Wire::default();
        let end = (0..1000).fold(Time::ZERO, |_, _| wire.send(Time::ZERO, link.write(256)));
        let gbps = 1000.0 * 256.0 * 8.0 / end.as_ns();
        let expected = 8.0 * 8.0 * 128.0 / 130.0 * 256.0 / 280.0;
        assert!((gbps / expected - 1.0).abs() < 1e-4, "{gbps} against {expected}");
        assert_eq!(wire.busy(), end);
    }

    #[test]
    fn a_packet_that_comes_late_finds_the_wire_idle() {
        let mut wire = Wire::default();
        assert_eq!(wire.send(Time::ns(0), Time::ns(10)), Time::ns(10));
        assert_eq!(wire.send(Time::ns(4), Time::ns(10)), Time::ns(20));
        assert_eq!(wire.send(Time::ns(50), Time::ns(10)), Time::ns(60));
    }
}
