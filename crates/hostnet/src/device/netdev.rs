//! An Ethernet NIC that receives into rings of the kernel: a finite buffer behind the wire, which loses packets when the
//! host does not take them fast enough; a receive ring and a completion queue in memory per core.
//!
//! A frame is one DMA of consecutive lines, and then of its completion's line, which the core finds once every line
//! before it has been written.

use super::endpoint::{check_buffer, check_counts, check_link, defaults, Offer, Piece};
use super::response::HostResponse;
use crate::flow::{Credits, Link};
use crate::kernel::units::{Bandwidth, Size, Span};
use crate::kernel::Time;
use crate::memory::region::Pages;
use crate::memory::LINE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// An Ethernet NIC under the kernel's TCP.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EthernetSpec {
    /// PCIe lanes.
    #[serde(default = "defaults::nic_lanes")]
    pub lanes: u32,
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
/// Most frames under way between NIC and memory.
const SLOTS: usize = 256;

impl EthernetSpec {
    /// # Errors
    /// One clause with key and value.
    pub fn check(&self) -> Result<(), String> {
        check_counts(&[("lanes", self.lanes, 16)])?;
        check_link(self.link)?;
        check_buffer(self.receive_buffer)?;
        if !(576..=9600).contains(&self.mtu.0) {
            return Err(format!("mtu = \"{}\" is not within 576 to 9600 B", self.mtu));
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

/// A frame; what it carries is the sender's and the stack's business.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Frame {
    pub queue: u8,
    pub seq: u32,
    pub marked: bool,
    /// Where it lies in memory: offset in its queue's pool, in lines; and the line of its completion.
    pub at: u64,
    pub completion: u64,
}

/// Frames that came and what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FrameCounts {
    pub offered: u64,
    /// Lost for want of room in the NIC.
    pub no_room: u64,
    /// Lost for want of a descriptor.
    pub no_descriptor: u64,
    pub delivered: u64,
}

impl FrameCounts {
    pub fn lost(&self) -> u64 {
        self.no_room + self.no_descriptor
    }
}

/// A queue's memory.
#[derive(Clone)]
pub struct FrameMemory {
    pub pages: Pages,
    /// First line of the pages, of the completions, and of the kernel's structures, one line a page.
    pub frames: u64,
    pub completions: u64,
    pub structures: u64,
}

#[derive(Clone)]
struct Queue {
    memory: FrameMemory,
    lines: u64,
    at: u64,
    /// Completions are written one after the other.
    next_completion: u64,
    descriptors: u32,
}

#[derive(Clone)]
pub struct NetDev {
    queues: Vec<Queue>,
    frame_bytes: u32,
    frame_lines: u32,
    page_lines: u64,
    /// Bytes of the receive buffer.
    buffer: Credits,
    fifo: VecDeque<Frame>,
    /// The frame whose lines are moving, and how many are left, its completion included.
    moving: Option<(Frame, u32)>,
    slots: Vec<(Frame, u32)>,
    slot: usize,
    /// Frames wholly in memory that nobody has fetched.
    landed: VecDeque<Frame>,
    /// Frames between the NIC's buffer and `landed`.
    under_way: u32,
    pub counts: FrameCounts,
}

/// Completion queue entries of a core, one a line.
pub const COMPLETIONS: u64 = 4096;

impl NetDev {
    pub fn new(s: &EthernetSpec, queues: Vec<FrameMemory>) -> NetDev {
        let lines = s.pool.0 / LINE;
        let queue = |memory| Queue {
            memory,
            lines: lines - lines % s.frame_lines(),
            at: 0,
            next_completion: 0,
            descriptors: s.descriptors,
        };
        NetDev {
            queues: queues.into_iter().map(queue).collect(),
            frame_bytes: s.frame_bytes() as u32,
            frame_lines: s.frame_lines() as u32,
            page_lines: s.page.0 / LINE,
            buffer: Credits::new(s.receive_buffer.0 as u32),
            fifo: VecDeque::with_capacity(64),
            moving: None,
            slots: vec![(Frame::default(), 0); SLOTS],
            slot: 0,
            landed: VecDeque::with_capacity(64),
            under_way: 0,
            counts: FrameCounts::default(),
        }
    }

    /// The last bit of a frame comes off the wire; false when it is lost.
    pub fn arrive(&mut self, f: Frame, now: Time) -> bool {
        self.counts.offered += 1;
        if self.buffer.take(self.frame_bytes, now).is_err() {
            self.counts.no_room += 1;
            return false;
        }
        self.fifo.push_back(f);
        true
    }

    pub fn offer(&mut self, now: Time) -> Offer {
        loop {
            if let Some((f, left)) = self.moving {
                if left == 1 {
                    return Offer::Lines(1); // the completion
                }
                let at = f.at + u64::from(self.frame_lines + 1 - left);
                return Offer::Lines((left - 1).min((self.page_lines - at % self.page_lines) as u32));
            }
            let Some(mut f) = self.fifo.pop_front() else { return Offer::Nothing };
            let q = &mut self.queues[f.queue as usize];
            if q.descriptors == 0 {
                self.buffer.give(self.frame_bytes, now);
                self.counts.no_descriptor += 1;
                continue;
            }
            q.descriptors -= 1;
            f.at = q.at;
            q.at = (q.at + u64::from(self.frame_lines)) % q.lines;
            f.completion = q.memory.completions + q.next_completion;
            q.next_completion = (q.next_completion + 1) % COMPLETIONS;
            self.slot = (self.slot + 1) % SLOTS;
            assert_eq!(self.slots[self.slot].1, 0, "more frames between NIC and memory than slots");
            self.slots[self.slot] = (f, self.frame_lines + 1);
            self.moving = Some((f, self.frame_lines + 1));
            self.under_way += 1;
        }
    }

    /// Moves the first `n` of the lines that `offer` promised. They leave the buffer; a completion does not come from there.
    pub fn take(&mut self, n: u32, now: Time) -> Piece {
        let (f, left) = self.moving.expect("lines were promised");
        if left > 1 {
            let rest = (left - 1 - n) * LINE as u32; // the last line is not full
            let before = ((left - 1) * LINE as u32).min(self.frame_bytes);
            self.buffer.give(before - rest.min(before), now);
        }
        self.moving = (left > n).then_some((f, left - n));
        let slot = self.slot as u16;
        if left == 1 {
            return Piece { line: f.completion, slot, tag: 0 };
        }
        let at = f.at + u64::from(self.frame_lines + 1 - left);
        Piece { line: self.queues[f.queue as usize].memory.pages.line(at), slot, tag: 0 }
    }

    /// `n` lines of `slot` are in memory.
    pub fn done(&mut self, slot: u16, n: u32) {
        let (f, left) = &mut self.slots[slot as usize];
        *left -= n;
        if *left == 0 {
            self.counts.delivered += 1;
            self.under_way -= 1;
            self.landed.push_back(*f);
        }
    }

    /// A frame whose completion the core can see.
    pub fn landed(&mut self) -> Option<Frame> {
        self.landed.pop_front()
    }

    /// The driver has given `queue` `n` descriptors back.
    pub fn replenish(&mut self, queue: usize, n: u32) {
        self.queues[queue].descriptors += n;
    }

    /// The line at `at` lines from the beginning of `queue`'s pool.
    pub fn line(&mut self, queue: usize, at: u64) -> u64 {
        self.queues[queue].memory.pages.line(at)
    }

    /// The line of the kernel's structure for the page that has that line.
    pub fn structure(&mut self, queue: usize, at: u64) -> u64 {
        let m = &mut self.queues[queue].memory;
        m.structures + (m.pages.line(at) - m.frames) / self.page_lines
    }

    /// Lines of all these structures.
    pub fn structures(&self, queue: usize) -> std::ops::Range<u64> {
        let q = &self.queues[queue];
        q.memory.structures..q.memory.structures + q.lines.div_ceil(self.page_lines)
    }

    pub fn restart_meters(&mut self, now: Time) {
        self.buffer.restart(now);
    }
    /// Most bytes in the receive buffer since the restart.
    pub fn peak(&self) -> u64 {
        self.buffer.peak().into()
    }

    /// # Errors
    /// One sentence with the counts that do not add up.
    pub fn check(&self) -> Result<(), String> {
        let c = self.counts;
        let inside = self.fifo.len() as u64 + u64::from(self.under_way);
        if c.offered != c.lost() + c.delivered + inside {
            return Err(format!("frames are not conserved at the NIC: {c:?}, {inside} inside"));
        }
        Ok(())
    }
}
