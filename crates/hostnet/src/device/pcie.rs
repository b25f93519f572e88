//! A PCIe link, modelled by its transaction-layer packets: bytes on the wire, serialisation in each direction, flight
//! time and flow-control credits.

use crate::flow::Link;
use crate::kernel::units::{Bandwidth, Size, Span};
use crate::kernel::{with_defaults, Int, Time};
use crate::memory::{LINE, LINE_U32};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// PCIe generation: signalling rate and line code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Generation {
    /// 8 GT/s, 128b/130b.
    Gen3,
    /// 16 GT/s, 128b/130b.
    Gen4,
    /// 32 GT/s, 128b/130b.
    Gen5,
    /// 64 GT/s (PAM4) in flit mode: 236 of the 256 bytes of a flit carry transaction-layer packets, the others
    /// data-link-layer packets, CRC and FEC. Packets then have no framing and no CRC of their own.
    Gen6,
}

impl Generation {
    /// Bits per second of one lane after the line code; in flit mode, those of transaction-layer packets (PCI Express
    /// 6.0, 4.2.3: flits).
    pub fn lane_bps(self) -> f64 {
        let (transfers, code) = match self {
            Generation::Gen3 => (8e9, 128.0 / 130.0),
            Generation::Gen4 => (16e9, 128.0 / 130.0),
            Generation::Gen5 => (32e9, 128.0 / 130.0),
            Generation::Gen6 => (64e9, 236.0 / 256.0),
        };
        transfers * code
    }

    /// Name in scenarios.
    pub fn name(self) -> &'static str {
        match self {
            Generation::Gen3 => "gen3",
            Generation::Gen4 => "gen4",
            Generation::Gen5 => "gen5",
            Generation::Gen6 => "gen6",
        }
    }
}

/// PCIe links between the devices and the IIO.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PcieSpec {
    /// PCIe generation of the links: signalling rate and line code.
    pub generation: Generation,
    /// Largest payload of a memory write or a completion.
    pub max_payload: Size,
    /// Largest memory read request.
    pub max_read_request: Size,
    /// Bytes of a memory write in addition to its payload: framing, sequence number, header, CRC.
    pub write_overhead: u32,
    /// Bytes of a memory read request.
    pub read_request: u32,
    /// Bytes of a completion in addition to its payload.
    pub completion_overhead: u32,
    /// Share of the link (0 to 0.5) that data-link-layer packets and skip ordered sets take.
    pub dllp_share: f64,
    /// Flight time of a packet from transmitter to receiver, controllers included.
    pub propagation: Span,
    /// Posted-data credits of a port of four lanes, in lines: the number of written lines that have been sent and whose
    /// IIO entries are not yet free. A wider port has this number for each four of its lanes.
    pub posted_lines: u32,
    /// Non-posted header credits of a port of four lanes: the number of read requests that may wait for IIO entries. A
    /// wider port has this number for each four of its lanes.
    pub non_posted: u32,
    /// Habits of the links of a simulator, which a platform sets; scenarios leave them alone.
    #[serde(default)]
    pub quirks: PcieQuirks,
}

/// Habits of links that simulators of PCIe have.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PcieQuirks {
    /// Rate of one lane after the line code, instead of the rate of `generation`: for a bus that is not a PCIe link.
    #[serde(default)]
    pub lane_rate: Option<Bandwidth>,
    /// Whether the receiver of a packet acts on its header while the payload still occupies the link. When false (the
    /// default), the receiver waits for the whole packet.
    #[serde(default)]
    pub cut_through: bool,
    /// Number of packets for consecutive lines that are simulated as one packet with all their bytes. All of them
    /// arrive with the last packet, which delays the first packets by the time that the others occupy the link, and
    /// makes a simulation faster. The default is 1.
    #[serde(default = "one")]
    pub train: u32,
}

impl Default for PcieQuirks {
    fn default() -> PcieQuirks {
        with_defaults()
    }
}

fn one() -> u32 {
    1
}

/// Widths of links, in lanes (PCI Express Base Specification 5.0, section 1.2).
const WIDTHS: [u32; 7] = [1, 2, 4, 8, 12, 16, 32];
/// Lanes of the widest port of a device.
const WIDEST: u32 = 16;

/// Checks that a link can have `lanes` lanes, up to `most`.
///
/// # Errors
/// Returns one clause that names key, value and the nearest valid choice.
pub fn check_lanes(lanes: u32, most: u32) -> Result<(), String> {
    let widths: Vec<u32> = WIDTHS.into_iter().filter(|w| *w <= most).collect();
    if widths.contains(&lanes) {
        return Ok(());
    }
    let near = widths.iter().min_by_key(|w| w.abs_diff(lanes)).map_or(String::new(), |w| format!("; {w} is nearest"));
    let all = widths.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    Err(format!("lanes = {lanes} is no width of a PCIe link{near} (valid: {all})"))
}

/// Checks the number of lanes of a device's port.
///
/// # Errors
/// Returns one clause that names key, value and the nearest valid choice.
pub(super) fn check_port(lanes: u32) -> Result<(), String> {
    check_lanes(lanes, WIDEST)
}

/// Lanes of the narrowest port that the lanes of a controller are divided into.
const QUARTER: u32 = 4;

impl PcieSpec {
    /// Posted-data credits of a port of `lanes` lanes, in lines.
    pub fn posted(&self, lanes: u32) -> u32 {
        self.posted_lines * lanes.div_ceil(QUARTER)
    }
    /// Non-posted header credits of a port of `lanes` lanes.
    pub fn non_posted(&self, lanes: u32) -> u32 {
        self.non_posted * lanes.div_ceil(QUARTER)
    }

    /// Bits per second of one lane after the line code.
    pub fn lane_bps(&self) -> f64 {
        self.quirks.lane_rate.map_or(self.generation.lane_bps(), |r| r.0.to_f64())
    }

    /// Bytes of payload that a port of `lanes` lanes carries per second in packets of the largest payload.
    pub fn payload_rate(&self, lanes: u32) -> f64 {
        let payload = self.max_payload.0.to_f64();
        f64::from(lanes) * self.lane_bps() / 8.0 * (1.0 - self.dllp_share) * payload
            / (payload + f64::from(self.write_overhead))
    }

    /// Sentence about packets of gen 6 whose sizes contain the framing and the CRC that packets in flits lack; None where none
    /// do. A header takes four words of 4 B with a high address and three without (PCI Express 6.0, 2.2.1: flit mode).
    pub fn framed_in_flits(&self) -> Option<String> {
        let flits = self.generation == Generation::Gen6 && self.quirks.lane_rate.is_none();
        let sizes = [
            ("write_overhead", self.write_overhead, 16),
            ("read_request", self.read_request, 16),
            ("completion_overhead", self.completion_overhead, 12),
        ];
        // Framing takes 4 B of each packet of earlier generations, and the CRC another 4.
        let framed: Vec<_> = sizes.into_iter().filter(|(_, has, header)| *has >= header + 8).collect();
        let list = |f: &dyn Fn(&(&str, u32, u32)) -> String| framed.iter().map(f).collect::<Vec<_>>().join(", ");
        (flits && !framed.is_empty()).then(|| {
            format!(
                "platform.pcie: {} contain framing and CRC, which packets in the flits of generation = \"gen6\" lack, so that the \
                 link carries less than it could; give {}",
                list(&|(key, has, _)| format!("{key} = {has}")),
                list(&|(_, _, header)| header.to_string())
            )
        })
    }

    /// Checks that the parameters of the links fit together.
    ///
    /// # Errors
    /// Returns one clause that names key and value.
    pub fn check(&self) -> Result<(), String> {
        for (key, s) in [("max_payload", self.max_payload), ("max_read_request", self.max_read_request)] {
            if !s.0.is_power_of_two() || !(64..=4096).contains(&s.0) {
                return Err(format!("{key} = \"{s}\" is not a power of two within 64 B to 4 KiB"));
            }
        }
        if !(0.0..0.5).contains(&self.dllp_share) {
            return Err(format!("dllp_share = {} is not within 0 to 0.5", self.dllp_share));
        }
        if self.generation == Generation::Gen6 && self.quirks.lane_rate.is_none() && self.dllp_share > 0.0 {
            return Err(format!(
                "dllp_share = {} counts twice with generation = \"gen6\", whose flits have room for these packets; give 0",
                self.dllp_share
            ));
        }
        let payload = (self.max_payload.0 / LINE).to_u32();
        if self.posted_lines < payload {
            return Err(format!(
                "posted_lines = {} cannot hold the {payload} lines of one write of max_payload = \"{}\"",
                self.posted_lines, self.max_payload
            ));
        }
        if self.non_posted == 0 {
            return Err("non_posted = 0 must be positive".into());
        }
        if self.quirks.lane_rate.is_some_and(|r| r.0 < 1_000_000_000) {
            return Err("quirks.lane_rate is below 1 Gbps".into());
        }
        let most =
            (self.posted_lines / payload).min(self.non_posted).min(64 * LINE_U32 / self.max_read_request.0.to_u32());
        if !(1..=most).contains(&self.quirks.train) {
            return Err(format!(
                "quirks.train = {} is not within 1 to {most}, which posted_lines = {} of max_payload = \"{}\", non_posted = {} and \
                 max_read_request = \"{}\" allow",
                self.quirks.train, self.posted_lines, self.max_payload, self.non_posted, self.max_read_request
            ));
        }
        Ok(())
    }
}

/// Credit class of posted packets (memory writes) on the upstream link.
pub const POSTED: usize = 0;
/// Credit class of non-posted packets (memory reads) on the upstream link.
pub const NON_POSTED: usize = 1;

impl PcieSpec {
    /// One direction of a port of `lanes` lanes.
    fn link(&self, lanes: u32) -> Link {
        let bps = self.lane_bps() * f64::from(lanes) * (1.0 - self.dllp_share);
        Link::new(bps, self.propagation.into())
    }
    /// The upstream link, from a device to the IIO, with the credits that the device needs to send.
    pub fn up(&self, lanes: u32) -> Link {
        self.link(lanes).with_credits(&[self.posted(lanes), self.non_posted(lanes)])
    }
    /// The downstream link, from the IIO to a device, which accepts every packet.
    pub fn down(&self, lanes: u32) -> Link {
        self.link(lanes)
    }
    /// The parameters by which transfers are cut into packets.
    pub fn framing(&self) -> Framing {
        Framing {
            payload: self.max_payload.0.to_u32(),
            request: self.max_read_request.0.to_u32(),
            write_overhead: self.write_overhead,
            read_request: self.read_request,
            completion_overhead: self.completion_overhead,
            train: self.quirks.train,
            cut_through: self.quirks.cut_through,
        }
    }
}

/// Sizes of transaction-layer packets, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Framing {
    /// Largest payload of a write or a completion in bytes, a power of two.
    pub payload: u32,
    /// Largest read request in bytes, a power of two.
    pub request: u32,
    write_overhead: u32,
    /// Bytes of a read request on the link.
    pub read_request: u32,
    completion_overhead: u32,
    /// Number of packets that are simulated as one.
    pub train: u32,
    cut_through: bool,
}

impl Framing {
    /// Bytes on the link of one write with `bytes` bytes of payload.
    pub fn write(&self, bytes: u32) -> u64 {
        (bytes + self.write_overhead).into()
    }
    /// Bytes on the link of the writes that carry `bytes` bytes of payload to `lines` lines.
    pub fn writes(&self, bytes: u32, lines: u32) -> u64 {
        let packets = (lines * LINE_U32 + self.payload - 1) >> self.payload.trailing_zeros();
        (bytes + packets * self.write_overhead).into()
    }
    /// Payload bytes of the last of the writes that carry `bytes` bytes.
    pub fn last(&self, bytes: u32) -> u32 {
        bytes - (bytes.saturating_sub(1) & !(self.payload - 1))
    }
    /// Number of read requests for `lines` lines.
    pub fn requests(&self, lines: u32) -> u32 {
        (lines * LINE_U32 + self.request - 1) >> self.request.trailing_zeros()
    }
    /// Time at which the receiver acts on a packet with `bytes` bytes of payload whose last byte arrives at `end`.
    pub fn acted_on(&self, link: &Link, bytes: u32, end: Time) -> Time {
        if self.cut_through {
            end - link.time(bytes.min(self.payload).into())
        } else {
            end
        }
    }
    /// Bytes on the link of a completion with `bytes` bytes of payload.
    pub fn completion(&self, bytes: u32) -> u64 {
        (bytes + self.completion_overhead).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Time;

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
            quirks: PcieQuirks { lane_rate: None, cut_through: false, train: 1 },
        }
    }

    /// 8 GT/s x 8 lanes x 128/130 is 63.015 Gb/s; 256 of every 280 bytes are payload.
    #[test]
    fn back_to_back_writes_move_their_share_of_the_link() {
        let (mut link, framing) = (spec().up(8), spec().framing());
        let end = (0..1000).fold(Time::ZERO, |_, _| link.send(framing.write(256), Time::ZERO));
        let gbps = 1000.0 * 256.0 * 8.0 / end.as_ns();
        let expected = 8.0 * 8.0 * 128.0 / 130.0 * 256.0 / 280.0;
        assert!((gbps / expected - 1.0).abs() < 1e-4, "{gbps} against {expected}");
        assert_eq!(link.busy(), end);
    }

    /// PCI Express 6.0, 4.2.3: a flit of 256 bytes has 236 bytes of transaction-layer packets, 6 of data-link-layer packets, 8 of
    /// CRC and 6 of FEC. Sixteen lanes of 64 GT/s carry 128 GB/s, and 118 GB/s of packets.
    #[test]
    fn flits_of_the_sixth_generation_carry_236_of_256_bytes() {
        assert_eq!(236 + 6 + 8 + 6, 256);
        assert_eq!(16.0 * Generation::Gen6.lane_bps() / 8.0, 118e9);
    }

    /// PCI Express 5.0, 2.2 and 4.2.2.2: a packet has a token of 4 B with its sequence number, and 4 B of CRC. A header takes four
    /// words of 4 B with a high address, and three in a completion. In flits the header alone is left.
    #[test]
    fn framing_and_crc_of_packets_in_flits_are_named() {
        let mut s = spec();
        (s.write_overhead, s.read_request, s.completion_overhead) = (4 + 16 + 4, 4 + 16 + 4, 4 + 12 + 4);
        assert_eq!(s.framed_in_flits(), None);
        (s.generation, s.dllp_share) = (Generation::Gen6, 0.0);
        let said = s.framed_in_flits().expect("a sentence");
        assert!(
            said.starts_with("platform.pcie: write_overhead = 24, read_request = 24, completion_overhead = 20 "),
            "{said}"
        );
        assert!(said.ends_with("; give 16, 16, 12"), "{said}");
        (s.write_overhead, s.read_request) = (16, 16);
        let said = s.framed_in_flits().expect("a sentence");
        assert!(said.starts_with("platform.pcie: completion_overhead = 20 ") && said.ends_with("; give 12"), "{said}");
        s.completion_overhead = 12;
        assert_eq!(s.framed_in_flits(), None);
    }

    #[test]
    fn a_wider_port_has_the_credits_of_the_ports_that_it_could_be() {
        for (lanes, ports) in [(1, 1), (4, 1), (8, 2), (16, 4)] {
            let up = spec().up(lanes);
            assert_eq!((up.credits(POSTED).credits(), up.credits(NON_POSTED).credits()), (64 * ports, 32 * ports));
        }
    }
}
