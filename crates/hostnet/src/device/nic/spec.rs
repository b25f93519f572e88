//! What a scenario says about a NIC.

use super::rings::RingsSpec;
use crate::device::endpoint::{check_buffer, check_counts, check_link, defaults};
use crate::device::response::HostResponse;
use crate::flow::Link;
use crate::kernel::units::{Bandwidth, Size, Span};
use crate::memory::LINE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The NIC's own timing.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NicSpec {
    /// From the wire to the first line's write, and from the last line's read to the wire.
    pub pipeline: Span,
    /// Between two lines that the receive or a transmit engine moves.
    pub line_interval: Span,
    /// From a message to its effect on the other side: a queue entry (NIC to polling core, core to NIC) or a sweep.
    pub notify: Span,
    /// The slot at which each ring begins.
    #[serde(default)]
    pub ring_start: RingStart,
}

/// The slot of its rings at which an integrated NIC begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RingStart {
    /// A random one for each ring, as after a long uptime.
    #[default]
    Random,
    /// The first one of every ring, as after a reset. Rings that are served evenly then stay in step.
    First,
}

/// An Ethernet NIC, under the kernel or under a poll-mode driver.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EthernetSpec {
    /// PCIe lanes.
    #[serde(default = "defaults::nic_lanes")]
    pub lanes: u32,
    /// Read requests that the NIC has under way at most.
    #[serde(default = "defaults::tags")]
    pub tags: u32,
    /// Rate of the link.
    #[serde(default = "defaults::link")]
    pub link: Bandwidth,
    /// Largest IP packet.
    #[serde(default = "mtu")]
    pub mtu: Size,
    /// Bytes of a frame on the wire beside the IP packet: preamble, header, FCS, gap.
    #[serde(default = "framing")]
    pub framing: u32,
    /// Bytes of IP and TCP headers with timestamps.
    #[serde(default = "headers")]
    pub headers: u32,
    /// Receive buffer of the NIC.
    #[serde(default = "defaults::receive_buffer")]
    pub receive_buffer: Size,
    /// Receive descriptors of each core, one a frame.
    #[serde(default = "descriptors")]
    pub descriptors: u32,
    /// Memory that each core's frames go through: pages are used again after that much.
    #[serde(default = "pool")]
    pub pool: Size,
    /// Contiguous physical memory of the pool; larger pieces lie anywhere. The kernel counts the users of each.
    #[serde(default = "defaults::page")]
    pub page: Size,
    /// Flight time of a frame, MAC to MAC.
    #[serde(default = "defaults::propagation")]
    pub propagation: Span,
    /// The far end of the wire returns each frame to the queue that it left from: it is back after twice `propagation`. For
    /// an `app` of kind "loopback".
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub loopback: bool,
    /// From a frame's completion in memory to an interrupt, unless many come.
    #[serde(default = "moderation")]
    pub moderation: Span,
    /// Completions that raise the interrupt at once.
    #[serde(default = "moderation_frames")]
    pub moderation_frames: u32,
    /// Congestion of the host told to the senders (hostCC, SIGCOMM'23): frames that come while the IIO has this many
    /// write entries in use, on a moving average, count as marked. Absent: never.
    #[serde(default)]
    pub host_mark: Option<u32>,
    /// What the host does itself about its congestion. Absent: nothing.
    #[serde(default)]
    pub host_response: Option<HostResponse>,
    /// Descriptor rings in memory, for a poll-mode driver and for the kernel's UDP; their defaults when absent.
    #[serde(default)]
    pub rings: Option<RingsSpec>,
    /// Flow director: flows of `traffic.flows` that go to a said queue; RSS spreads the others by their Toeplitz hash.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flow_director: Vec<FlowRule>,
}

/// An exact match of the flow director.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowRule {
    /// Number of the flow, from 0.
    pub flow: u32,
    /// Queue, and so core of the tenant, from 0.
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
    /// # Errors
    /// One clause with key and value.
    pub fn check(&self) -> Result<(), String> {
        check_counts(&[("lanes", self.lanes, 16), ("tags", self.tags, 1024)])?;
        check_link(self.link, self.propagation)?;
        check_buffer(self.receive_buffer)?;
        let least = u64::from(self.headers) + 1;
        if !(least..=9600).contains(&self.mtu.0) {
            return Err(format!("mtu = \"{}\" is not within {least} to 9600 B", self.mtu));
        }
        if self.receive_buffer.0 < self.frame_bytes() {
            return Err(format!("receive_buffer = \"{}\" does not hold one frame", self.receive_buffer));
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
    /// The wire, one way.
    pub fn wire(&self) -> Link {
        Link::ethernet(self.link, self.propagation.into())
    }
}
