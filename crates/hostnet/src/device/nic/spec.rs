//! Parameters of a NIC, as a platform or a scenario states them.

use super::rings::RingsSpec;
use crate::device::endpoint::{check_buffer, check_counts, check_link, defaults};
use crate::device::pcie::check_port;
use crate::device::response::HostResponse;
use crate::flow::Link;
use crate::kernel::units::{Bandwidth, Size, Span};
use crate::memory::LINE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Timing of an integrated NIC, on the chip.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NicSpec {
    /// Time from the wire to the write of a packet's first line, and from the read of a reply's last line to the wire.
    pub pipeline: Span,
    /// Time between two lines that the receive engine or a transmit engine moves.
    pub line_interval: Span,
    /// Time from the sending of a message to its effect: a queue entry (from the NIC to a polling core, or from a core
    /// to the NIC), or a sweep.
    pub notify: Span,
    /// Slot at which each of the NIC's rings begins.
    #[serde(default)]
    pub ring_start: RingStart,
}

/// Slot at which the rings of an integrated NIC begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RingStart {
    /// A random slot for each ring, as after a long uptime.
    #[default]
    Random,
    /// The first slot of every ring, as after a reset. Rings that the NIC serves evenly then advance in step.
    First,
}

/// An Ethernet NIC behind a PCIe port, driven by the kernel (TCP or UDP) or by a poll-mode driver.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EthernetSpec {
    /// Node that the NIC is attached to, in whose memory its buffers lie. The default is 0.
    #[serde(default)]
    pub node: u8,
    /// PCIe lanes of the NIC's port: 1, 2, 4, 8, 12 or 16. The default is 16.
    #[serde(default = "defaults::nic_lanes")]
    pub lanes: u32,
    /// Maximum number of PCIe read requests that the NIC has outstanding. The default is 64.
    #[serde(default = "defaults::tags")]
    pub tags: u32,
    /// Rate of the Ethernet link. The default is 100 Gbps.
    #[serde(default = "defaults::link")]
    pub link: Bandwidth,
    /// Name by which tenants refer to the NIC, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Largest IP packet. The default is 9000 B.
    #[serde(default = "mtu")]
    pub mtu: Size,
    /// Bytes of a frame on the wire in addition to the IP packet: preamble, header, FCS, gap. The default is 38.
    #[serde(default = "framing")]
    pub framing: u32,
    /// Bytes of the IP and TCP headers, including timestamps. The default is 52.
    #[serde(default = "headers")]
    pub headers: u32,
    /// Size of the NIC's receive buffer, which decides only where packets come faster than they go on to memory. The default
    /// is 130,944 B.
    #[serde(default = "defaults::receive_buffer")]
    pub receive_buffer: Size,
    /// Number of receive descriptors of each core's queue, one per frame. The default is 1024. With descriptor rings in
    /// memory, `rings.receive` applies instead.
    #[serde(default = "descriptors")]
    pub descriptors: u32,
    /// Size of the memory for each core's received frames; its pages are reused after that many bytes, so that a larger one
    /// changes nothing for fewer bytes. The default is 24 MiB.
    #[serde(default = "pool")]
    pub pool: Size,
    /// Size of a physically contiguous page of `pool`; pages lie anywhere in memory. The kernel counts the users of
    /// each page. The default is 4 KiB.
    #[serde(default = "defaults::page")]
    pub page: Size,
    /// Flight time of a frame, MAC to MAC. The default is 100 ns.
    #[serde(default = "defaults::propagation")]
    pub propagation: Span,
    /// Whether the far end of the wire returns each frame to the queue that sent it, after twice `propagation`.
    /// Required for an `app` of kind "loopback". The default is false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub loopback: bool,
    /// Time from a frame's completion in memory to an interrupt, unless `moderation_frames` completions come first. With
    /// `rings.quirks.throttle`, the interrupt also waits for the throttle's interval, and the completions that arrive while software
    /// polls wait for the interval alone: a busy queue then never waits for `moderation`. The default is 16 us.
    #[serde(default = "moderation")]
    pub moderation: Span,
    /// Number of completions that raise the interrupt without waiting for `moderation`. The default is 32.
    #[serde(default = "moderation_frames")]
    pub moderation_frames: u32,
    /// Number of IIO write-buffer entries in use, as a moving average, at or above which the NIC marks arriving frames,
    /// so that senders learn of host congestion (hostCC, SIGCOMM'23). When absent, no frame is marked.
    #[serde(default)]
    pub host_mark: Option<u32>,
    /// Response of the host itself to congestion on the host (hostCC's host-local response). When absent, the host does
    /// not respond.
    #[serde(default)]
    pub host_response: Option<HostResponse>,
    /// Descriptor rings in memory, for a poll-mode driver and for the kernel's UDP. When absent, the keys of this table
    /// have their defaults.
    #[serde(default)]
    pub rings: Option<RingsSpec>,
    /// Flow director rules, each of which directs one flow of `traffic.flows` to a given queue; RSS spreads the other
    /// flows by their Toeplitz hash.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flow_director: Vec<FlowRule>,
}

/// Exact-match rule of the flow director.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowRule {
    /// Number of the flow, from 0.
    pub flow: u32,
    /// Queue of the flow, and so the tenant's core that serves it, from 0.
    pub queue: u16,
}
fn mtu() -> Size {
    Size(9000)
}
fn framing() -> u32 {
    38
}
fn headers() -> u32 {
    52
}
fn descriptors() -> u32 {
    1024
}
fn pool() -> Size {
    Size(24 << 20)
}
fn moderation() -> Span {
    Span(16_000_000)
}
fn moderation_frames() -> u32 {
    32
}

/// Bytes of an Ethernet header, which goes to memory with the packet.
const ETHERNET: u64 = 14;

impl EthernetSpec {
    /// Checks that the NIC's parameters fit together.
    ///
    /// # Errors
    /// Returns one clause that names key and value.
    pub fn check(&self) -> Result<(), String> {
        check_port(self.lanes)?;
        check_counts(&[("tags", self.tags, 1024)])?;
        check_link(self.link, self.propagation)?;
        check_buffer(self.receive_buffer)?;
        let least = u64::from(self.headers) + 1;
        if !(least..=9600).contains(&self.mtu.0) {
            return Err(format!(
                "mtu = \"{}\" is not within {least} B, which is above headers = {}, to 9600 B",
                self.mtu, self.headers
            ));
        }
        if self.receive_buffer.0 < self.frame_bytes() {
            return Err(format!(
                "receive_buffer = \"{}\" does not hold one frame of mtu = \"{}\"",
                self.receive_buffer, self.mtu
            ));
        }
        for (key, v) in [("descriptors", self.descriptors), ("moderation_frames", self.moderation_frames)] {
            if v == 0 {
                return Err(format!("{key} = 0 must be positive"));
            }
        }
        if self.host_mark == Some(0) {
            return Err("host_mark = 0 must be positive".into());
        }
        if let Some(r) = &self.host_response {
            r.check()?;
        }
        if let Some(r) = &self.rings {
            r.check().map_err(|e| format!("rings.{e}"))?;
        }
        if !self.page.0.is_power_of_two() || self.page.0 < LINE || self.pool.0 % self.page.0 != 0 {
            return Err(format!(
                "page = \"{}\" is not a power of two that divides pool = \"{}\"",
                self.page, self.pool
            ));
        }
        if self.pool.0 < 2 * self.frame_lines() * LINE * u64::from(self.descriptors) {
            return Err(format!(
                "pool = \"{}\" does not hold the frames of descriptors = {} twice",
                self.pool, self.descriptors
            ));
        }
        Ok(())
    }
    /// Bytes of a full frame in memory.
    pub fn frame_bytes(&self) -> u64 {
        self.mtu.0 + ETHERNET
    }
    /// Lines of the largest frame in memory.
    pub fn frame_lines(&self) -> u64 {
        self.frame_bytes().div_ceil(LINE)
    }
    /// Bytes of TCP payload in a full frame.
    pub fn payload(&self) -> u64 {
        self.mtu.0 - u64::from(self.headers)
    }
    /// Bytes of a full frame on the wire.
    pub fn wire_bytes(&self) -> u64 {
        self.mtu.0 + u64::from(self.framing)
    }
    /// The Ethernet link in one direction.
    pub fn wire(&self) -> Link {
        Link::ethernet(self.link, self.propagation.into())
    }
}
