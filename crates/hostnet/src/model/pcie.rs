//! PCIe bandwidth by TLP: the bytes that a transaction puts on the wire in each direction, and the payload rate that a
//! link can then carry. After Neugebauer et al., "Understanding PCIe performance for end host networking" (SIGCOMM'18),
//! whose numbers are in `validation/pcie`.

use crate::device::pcie::check_lanes;
use serde::{Deserialize, Serialize};

/// PCIe generation with 8b/10b or 128b/130b symbols; flit mode (6.0 and later) has other overheads and is not covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelGeneration {
    /// 2.5 GT/s, 8b/10b.
    Gen1,
    /// 5 GT/s, 8b/10b.
    Gen2,
    /// 8 GT/s, 128b/130b.
    Gen3,
    /// 16 GT/s, 128b/130b.
    Gen4,
    /// 32 GT/s, 128b/130b.
    Gen5,
}

/// A link with the configuration of its two ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinkSpec {
    /// Generation of the link, which sets rate and line code.
    pub generation: ModelGeneration,
    /// Number of lanes.
    pub lanes: u32,
    /// Maximum payload size of one TLP, in bytes.
    pub mps: u32,
    /// Maximum read request size, in bytes.
    pub mrrs: u32,
    /// Read completion boundary, in bytes.
    pub rcb: u32,
    /// Whether completions are split at the read completion boundary rather than at the maximum payload size.
    pub rcb_chunks: bool,
    /// Whether addresses lie above 4 GiB, which adds four bytes to every request.
    pub wide_addresses: bool,
    /// Whether every TLP carries an end-to-end checksum (ECRC) of four bytes.
    pub ecrc: bool,
    /// Share of a direction that acknowledgements and flow-control updates take; the standard's recommended rates when
    /// absent.
    pub dllp_share: Option<f64>,
}

impl Default for LinkSpec {
    fn default() -> Self {
        LinkSpec {
            generation: ModelGeneration::Gen3,
            lanes: 16,
            mps: 256,
            mrrs: 512,
            rcb: 64,
            rcb_chunks: false,
            wide_addresses: true,
            ecrc: false,
            dllp_share: None,
        }
    }
}

// Sizes in bytes after PCI Express Base Specification 5.0, sections 2.2 and 3.5.
const FRAMING: u32 = 8; // sequence number 2, link CRC 4, start and end symbols 2
const HEADER: u32 = 4; // first doubleword: format, type, length
const REQUEST: u32 = 8; // requester, tag, byte enables, 32-bit address
const COMPLETION: u32 = 8; // completer, status, byte count, requester, tag, lower address
const ADDRESS_HIGH: u32 = 4;
const DIGEST: u32 = 4;
const DLLP: f64 = 8.0; // start 2, body 4, CRC 2
/// Share of a direction that clock compensation takes: four symbols in each 1538.
const SKIP: f64 = 4.0 / 1538.0;

/// Bytes on the wire for a transaction, by direction, including all overheads of the transaction layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct WireBytes {
    /// Bytes from the device to the host: writes and read requests of the device.
    pub up: f64,
    /// Bytes from the host to the device: completions, and accesses of the host.
    pub down: f64,
}

impl std::ops::Add for WireBytes {
    type Output = WireBytes;
    fn add(self, o: WireBytes) -> WireBytes {
        WireBytes { up: self.up + o.up, down: self.down + o.down }
    }
}

impl std::ops::Mul<f64> for WireBytes {
    type Output = WireBytes;
    fn mul(self, k: f64) -> WireBytes {
        WireBytes { up: self.up * k, down: self.down * k }
    }
}

impl WireBytes {
    fn turned(self) -> WireBytes {
        WireBytes { up: self.down, down: self.up }
    }
}

fn pieces(bytes: u32, of: u32) -> f64 {
    f64::from(bytes.div_ceil(of))
}

impl LinkSpec {
    /// Checks the configuration; the error says in one sentence which value is invalid.
    pub fn check(&self) -> Result<(), String> {
        check_lanes(self.lanes, 32)?;
        for (key, value, low, high) in
            [("mps", self.mps, 128, 4096), ("mrrs", self.mrrs, 128, 4096), ("rcb", self.rcb, 64, 128)]
        {
            if !value.is_power_of_two() || !(low..=high).contains(&value) {
                return Err(format!("{key} = {value} is not a power of two from {low} to {high}"));
            }
        }
        if let Some(s) = self.dllp_share.filter(|s| !(0.0..1.0).contains(s)) {
            return Err(format!("dllp_share = {s} is not a share from 0 to 1"));
        }
        Ok(())
    }

    /// Rate in Gb/s of one direction after symbol encoding.
    pub fn raw_gbps(&self) -> f64 {
        let (gt, encoding) = match self.generation {
            ModelGeneration::Gen1 => (2.5, 8.0 / 10.0),
            ModelGeneration::Gen2 => (5.0, 8.0 / 10.0),
            ModelGeneration::Gen3 => (8.0, 128.0 / 130.0),
            ModelGeneration::Gen4 => (16.0, 128.0 / 130.0),
            ModelGeneration::Gen5 => (32.0, 128.0 / 130.0),
        };
        gt * encoding * f64::from(self.lanes)
    }

    /// Number of symbol times after which an acknowledgement, and likewise a flow-control update, is due (Base
    /// Specification 5.0, section 3.6.2.2 and tables 2-46 to 2-48).
    pub fn acknowledge_every(&self) -> f64 {
        let factor = match (self.lanes, self.mps) {
            (1..=4, ..=256) => 1.4,
            (8, ..=256) => 2.5,
            (..=8, _) => 1.0,
            (_, ..=256) => 3.0,
            (_, _) => 2.0,
        };
        let internal_delay = match self.generation {
            ModelGeneration::Gen1 => 19.0,
            ModelGeneration::Gen2 => 70.0,
            _ => 115.0,
        };
        let overhead = 28.0; // header, digest and framing of the largest TLP
        ((f64::from(self.mps) + overhead) * factor / f64::from(self.lanes)).floor() + internal_delay
    }

    /// Rate in Gb/s of one direction that is left for TLPs: without the acknowledgements and flow-control updates of
    /// the other direction, and without clock compensation.
    pub fn tlp_gbps(&self) -> f64 {
        let dllps = self.dllp_share.unwrap_or_else(|| 2.0 * DLLP / self.acknowledge_every() + SKIP);
        self.raw_gbps() * (1.0 - dllps)
    }

    fn extra(&self) -> u32 {
        if self.ecrc {
            DIGEST
        } else {
            0
        }
    }

    /// Bytes of a memory write or a read request besides the payload.
    pub fn request_bytes(&self) -> u32 {
        FRAMING + HEADER + REQUEST + if self.wide_addresses { ADDRESS_HIGH } else { 0 } + self.extra()
    }

    /// Bytes of a completion besides the payload.
    pub fn completion_bytes(&self) -> u32 {
        FRAMING + HEADER + COMPLETION + self.extra()
    }

    /// Wire bytes of a device's write of `bytes` bytes of host memory.
    pub fn write(&self, bytes: u32) -> WireBytes {
        WireBytes { up: f64::from(bytes) + pieces(bytes, self.mps) * f64::from(self.request_bytes()), down: 0.0 }
    }

    /// Wire bytes of a device's read of `bytes` bytes of host memory from an aligned address.
    pub fn read(&self, bytes: u32) -> WireBytes {
        let piece = if self.rcb_chunks { self.rcb } else { self.mps };
        WireBytes {
            up: pieces(bytes, self.mrrs) * f64::from(self.request_bytes()),
            down: f64::from(bytes) + pieces(bytes, piece) * f64::from(self.completion_bytes()),
        }
    }

    /// Payload rate in Gb/s when transactions of `payload` bytes, each with the wire bytes `wire`, follow each other.
    pub fn payload_gbps(&self, payload: u32, wire: WireBytes) -> f64 {
        self.tlp_gbps() * f64::from(payload) / wire.up.max(wire.down)
    }

    /// Payload rate in Gb/s of DMA writes of `bytes` each.
    pub fn write_gbps(&self, bytes: u32) -> f64 {
        self.payload_gbps(bytes, self.write(bytes))
    }

    /// Payload rate in Gb/s of DMA reads of `bytes` each.
    pub fn read_gbps(&self, bytes: u32) -> f64 {
        self.payload_gbps(bytes, self.read(bytes))
    }

    /// Payload rate in Gb/s in each direction of as many DMA writes as reads, of `bytes` each.
    pub fn read_write_gbps(&self, bytes: u32) -> f64 {
        self.payload_gbps(bytes, self.write(bytes) + self.read(bytes))
    }
}

/// Interaction of a driver with its NIC, in packets per event; `None` where an event does not happen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DriverModel {
    /// Packets per write of the transmit tail pointer.
    pub tx_tail: u32,
    /// Transmit descriptors that the NIC fetches with one read.
    pub tx_fetch: u32,
    /// Transmit descriptors that the NIC writes back with one write.
    pub tx_writeback: Option<u32>,
    /// Packets per transmit interrupt.
    pub tx_interrupt: Option<u32>,
    /// Packets per read of the transmit head pointer.
    pub tx_head: Option<u32>,
    /// Packets per write of the receive tail pointer.
    pub rx_tail: u32,
    /// Whether the request of a receive descriptor's fetch is counted for each packet; the published numbers do not
    /// count it.
    pub rx_fetch_request: bool,
    /// Packets per receive interrupt.
    pub rx_interrupt: Option<u32>,
    /// Packets per read of the receive head pointer.
    pub rx_head: Option<u32>,
}

/// Direction of the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketFlow {
    /// The host sends.
    Transmit,
    /// The host receives.
    Receive,
    /// The host sends and receives as many packets.
    Both,
}

const POINTER: u32 = 4;
const DESCRIPTOR: u32 = 16;
const INTERRUPT: u32 = 4; // the payload of an MSI write

impl DriverModel {
    /// A simple driver, which performs every interaction for every packet.
    pub const SIMPLE: DriverModel = DriverModel {
        tx_tail: 1,
        tx_fetch: 1,
        tx_writeback: None,
        tx_interrupt: Some(1),
        tx_head: Some(1),
        rx_tail: 1,
        rx_fetch_request: true,
        rx_interrupt: Some(1),
        rx_head: Some(1),
    };
    /// A kernel driver of the 82599, with batched descriptors and moderated interrupts.
    pub const KERNEL: DriverModel = DriverModel {
        tx_tail: 1,
        tx_fetch: 40,
        tx_writeback: Some(8),
        tx_interrupt: Some(32),
        tx_head: Some(1),
        rx_tail: 32,
        rx_fetch_request: true,
        rx_interrupt: Some(32),
        rx_head: Some(8),
    };
    /// A poll-mode driver of the 82599, without interrupts and reads of device registers.
    pub const DPDK: DriverModel = DriverModel {
        tx_tail: 32,
        tx_fetch: 40,
        tx_writeback: Some(8),
        tx_interrupt: None,
        tx_head: None,
        rx_tail: 32,
        rx_fetch_request: true,
        rx_interrupt: None,
        rx_head: None,
    };

    fn transmit(&self, l: &LinkSpec, packet: u32) -> WireBytes {
        l.read(packet)
            + l.write(POINTER).turned() * per(Some(self.tx_tail))
            + l.read(DESCRIPTOR * self.tx_fetch) * per(Some(self.tx_fetch))
            + self.tx_writeback.map_or(WireBytes::default(), |n| l.write(DESCRIPTOR * n) * per(Some(n)))
            + l.write(INTERRUPT) * per(self.tx_interrupt)
            + l.read(POINTER).turned() * per(self.tx_head)
    }

    fn receive(&self, l: &LinkSpec, packet: u32) -> WireBytes {
        let mut fetch = l.read(DESCRIPTOR);
        if !self.rx_fetch_request {
            fetch.up = 0.0;
        }
        l.write(packet)
            + l.write(POINTER).turned() * per(Some(self.rx_tail))
            + fetch
            + l.write(DESCRIPTOR)
            + l.write(INTERRUPT) * per(self.rx_interrupt)
            + l.read(POINTER).turned() * per(self.rx_head)
    }

    /// Packet rate in Gb/s per direction; `packet` is the size in bytes without the frame check sequence.
    pub fn gbps(&self, link: &LinkSpec, packet: u32, flow: PacketFlow) -> f64 {
        let wire = match flow {
            PacketFlow::Transmit => self.transmit(link, packet),
            PacketFlow::Receive => self.receive(link, packet),
            PacketFlow::Both => self.transmit(link, packet) + self.receive(link, packet),
        };
        link.payload_gbps(packet, wire)
    }
}

fn per(packets: Option<u32>) -> f64 {
    packets.map_or(0.0, |n| 1.0 / f64::from(n))
}

/// Rate in Gb/s of frames without their frame check sequence on Ethernet of `rate_gbps`; `frame` is the size in bytes
/// with that sequence. Preamble, start delimiter and inter-frame gap add 20 bytes (IEEE 802.3).
pub fn ethernet_gbps(rate_gbps: f64, frame: u32) -> f64 {
    rate_gbps * f64::from(frame - 4) / f64::from(frame + 20)
}
