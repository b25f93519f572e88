//! An NVMe SSD as a source of DMA: commands of one block each at a fixed queue depth, moved one chunk at a time. The
//! medium is modelled as a latency per command and a rate.

use super::endpoint::{check_counts, defaults, Device, DeviceBuildContext, DmaDirection, Offer, Piece};
use super::pcie::check_port;
use super::DevicePosts;
use crate::kernel::units::{Bandwidth, Size, Span};
use crate::kernel::with_defaults;
use crate::kernel::{Int, LineAddr, RandomStream, Time};
use crate::memory::region::{Contiguous, Pages};
use crate::memory::LINE;
use crate::placement::DeviceKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Identical NVMe SSDs, each on a port of its own, with their load.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SsdSpec {
    /// Direction of the DMA: storage reads write memory (p2m_write), storage writes read memory (p2m_read).
    pub op: DmaDirection,
    /// Number of SSDs. The default is 1.
    #[serde(default = "one")]
    pub count: u32,
    /// Node that the SSDs are attached to, in whose memory their buffers lie, and that has their cores. The default is 0.
    #[serde(default)]
    pub node: u8,
    /// PCIe lanes of each SSD's port: 1, 2, 4, 8, 12 or 16. The default is 4.
    #[serde(default = "four")]
    pub lanes: u32,
    /// Number of commands that each SSD has outstanding at all times.
    pub queue_depth: u32,
    /// Bytes of a command; the command's buffer in memory has the same size.
    pub block: Size,
    /// Maximum rate of each SSD's medium. When absent, only the link limits the rate.
    #[serde(default)]
    pub media_rate: Option<Bandwidth>,
    /// Maximum number of PCIe read requests that each SSD has outstanding. For `op = "p2m_read"`. The default is 64.
    #[serde(default = "defaults::tags")]
    pub tags: u32,
    /// Number of cores for the kernel's block layer, which does the accounting of every page that these SSDs move.
    /// These cores are numbered after all tenants' cores. At most `count`. With 0, the default, the accounting is not
    /// simulated.
    #[serde(default)]
    pub cores: u32,
    /// Size of the page for which the kernel's block layer does its accounting, with `cores`. The default is 4 KiB,
    /// because the authors' scripts request no huge pages.
    #[serde(default = "defaults::page")]
    pub page: Size,
    /// Contiguity of the buffers' physical memory: "buddy" (the default) for memory as Linux's buddy allocator provides
    /// it, or the size of contiguous pieces, such as "32 KiB". The pieces lie anywhere in memory.
    #[serde(default)]
    pub contiguous: Contiguous,
    /// Details of the device, which scenarios leave alone.
    #[serde(default)]
    pub quirks: SsdQuirks,
}

/// Details of NVMe SSDs that devices differ in.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SsdQuirks {
    /// Number of bytes that an SSD moves for one command before the SSD continues with another: a power of two that
    /// divides `block`. The default is 4 KiB.
    #[serde(default = "interleave")]
    pub interleave: Size,
    /// Time from the end of one command to the first byte of the next command in the same place of the queue: medium,
    /// firmware and the submitting thread. The default is 10 us. It changes nothing in a run in which no command ends: 64 commands
    /// of 8 MiB take 41 ms at 13 GB/s.
    #[serde(default = "latency")]
    pub command_latency: Span,
}

impl Default for SsdQuirks {
    fn default() -> SsdQuirks {
        with_defaults()
    }
}
fn one() -> u32 {
    1
}
fn four() -> u32 {
    4
}
fn interleave() -> Size {
    Size(4096)
}
fn latency() -> Span {
    Span(10_000_000)
}

/// Maximum number of commands of one SSD.
const DEPTH: u32 = 256;
/// Largest size of a command; `MOST` is the limit of all buffers together.
const LARGEST: Size = Size(1 << 30);
const MOST: Size = Size(1 << 40);

impl SsdSpec {
    /// Checks that the SSD's parameters fit together.
    ///
    /// # Errors
    /// Returns one clause that names key and value.
    pub fn check(&self) -> Result<(), String> {
        check_port(self.lanes)?;
        check_counts(&[
            ("count", self.count, 16),
            ("queue_depth", self.queue_depth, DEPTH),
            ("tags", self.tags, 1024),
        ])?;
        if self.cores > self.count {
            return Err(format!("cores = {} are more than the {} devices", self.cores, self.count));
        }
        for (key, s) in [("block", self.block), ("quirks.interleave", self.quirks.interleave), ("page", self.page)] {
            if s.0 == 0 || s.0 % LINE != 0 {
                return Err(format!("{key} = \"{s}\" is not a multiple of 64 B"));
            }
        }
        let all = [self.queue_depth, self.count].into_iter().fold(self.block.0, |n, of| n.saturating_mul(of.into()));
        if self.block > LARGEST {
            return Err(format!("block = \"{}\" is more than {LARGEST}", self.block));
        }
        if all > MOST.0 {
            return Err(format!(
                "block = \"{}\" of queue_depth = {} commands and count = {} devices is more than {MOST} of buffers",
                self.block, self.queue_depth, self.count
            ));
        }
        if self.media_rate.is_some_and(|r| r.0 == 0) {
            return Err("media_rate = \"0 bps\" must be positive".into());
        }
        if !self.page.0.is_power_of_two() {
            return Err(format!("page = \"{}\" is not a power of two", self.page));
        }
        let contiguous = self.contiguous.check(self.quirks.interleave.max(self.page));
        contiguous.map_err(|e| {
            format!("{e}; it holds interleave = \"{}\" and page = \"{}\"", self.quirks.interleave, self.page)
        })?;
        if !self.quirks.interleave.0.is_power_of_two() {
            return Err(format!("quirks.interleave = \"{}\" is not a power of two", self.quirks.interleave));
        }
        if self.block.0 % self.quirks.interleave.0 != 0 {
            return Err(format!(
                "quirks.interleave = \"{}\" does not divide block = \"{}\"",
                self.quirks.interleave, self.block
            ));
        }
        Ok(())
    }
    /// Lines of one SSD's buffers.
    pub fn lines(&self) -> u64 {
        u64::from(self.queue_depth) * self.block.0 / LINE
    }
}

#[derive(Clone, Copy, Debug)]
struct Active {
    slot: u16,
    at: u32,
}

/// NVMe drive that reads or writes blocks.
#[derive(Clone)]
pub struct Ssd {
    /// Direction in which the drive moves data.
    pub op: DmaDirection,
    block: u32,
    chunk: u32,
    latency: Time,
    pages: Pages,
    active: Vec<Active>,
    /// Commands whose first byte is not available yet, in order of time.
    coming: VecDeque<(Time, u16)>,
    /// Lines of each slot's command that are not done.
    left: Vec<u32>,
    /// Index into `active` of the command being served.
    turn: usize,
    /// Number of remaining lines of the present chunk.
    chunk_left: u32,
    rng: RandomStream,
    /// Time in picoseconds that the medium takes for a line.
    media_ps: u64,
    /// Time until which the medium is busy.
    media_free: Time,
    /// Time since the restart for which the medium is busy, up to `media_free`.
    media_busy: Time,
    completed: u64,
}

impl Ssd {
    /// A drive with its buffer in `pages`; `rng` is its random stream.
    pub fn new(s: &SsdSpec, pages: Pages, rng: RandomStream) -> Ssd {
        let block = (s.block.0 / LINE).to_u32();
        Ssd {
            op: s.op,
            block,
            chunk: (s.quirks.interleave.0 / LINE).to_u32(),
            latency: s.quirks.command_latency.into(),
            pages,
            active: Vec::with_capacity(s.queue_depth.to_usize()),
            coming: (0..s.queue_depth).map(|i| (Time::ZERO, i.to_u16())).collect(),
            left: vec![block; s.queue_depth.to_usize()],
            turn: 0,
            chunk_left: 0,
            rng,
            media_ps: s.media_rate.map_or(0, |r| LINE * 8 * 1_000_000_000_000 / r.0),
            media_free: Time::ZERO,
            media_busy: Time::ZERO,
            completed: 0,
        }
    }

    /// Time between the restart and `now` in which the medium was busy; None for a medium without a rate of its own.
    pub fn media_busy(&self, now: Time) -> Option<Time> {
        (self.media_ps > 0).then(|| self.media_busy.saturating_sub(self.media_free.saturating_sub(now)))
    }

    fn hand_over(&mut self, n: u32) -> Piece {
        let a = &mut self.active[self.turn];
        let (slot, at) = (a.slot, a.at);
        a.at += n;
        self.chunk_left -= n;
        if a.at == self.block {
            self.active.swap_remove(self.turn);
        }
        Piece {
            line: self.pages.line(u64::from(slot) * u64::from(self.block) + u64::from(at)),
            slot,
            ..Piece::default()
        }
    }

    /// Counts `n` lines of `slot`'s command as done; returns true when they complete the command.
    fn end(&mut self, slot: u16, n: u32, now: Time) -> bool {
        let left = &mut self.left[slot.to_usize()];
        *left -= n;
        if *left > 0 {
            return false;
        }
        *left = self.block;
        self.completed += 1;
        self.coming.push_back((now + self.latency, slot));
        true
    }
}

impl Device for Ssd {
    type Spec = SsdSpec;

    fn node(s: &SsdSpec) -> u8 {
        s.node
    }
    const KIND: DeviceKind = DeviceKind::Storage;

    fn check(s: &SsdSpec) -> Result<(), String> {
        s.check()
    }
    fn link(s: &SsdSpec) -> (u32, u32) {
        (s.lanes, s.tags)
    }
    fn count(s: &SsdSpec) -> u32 {
        s.count
    }
    fn build(s: &SsdSpec, context: &mut DeviceBuildContext) -> Ssd {
        let (pages, rng) = context.buffer("ssd", s.lines(), s.contiguous);
        Ssd::new(s, pages, rng)
    }
    #[inline]
    fn moves(&self, way: DmaDirection) -> bool {
        self.op == way
    }
    #[inline]
    fn may_move(&self) -> [bool; 2] {
        [DmaDirection::P2mRead, DmaDirection::P2mWrite].map(|way| self.op == way)
    }
    fn done(&mut self, _cal: &mut impl DevicePosts, _way: DmaDirection, slot: u16, n: u32, now: Time) -> bool {
        self.end(slot, n, now)
    }
    fn completed(&self) -> u64 {
        self.completed
    }

    /// Returns the next lines that the SSD offers; it serves its commands in random order, one chunk at a time.
    fn next(&mut self, _way: DmaDirection, now: Time) -> Offer {
        if self.media_free > now {
            return Offer::At(self.media_free);
        }
        if self.chunk_left > 0 {
            return Offer::Lines(self.chunk_left);
        }
        while let Some(&(at, slot)) = self.coming.front().filter(|c| c.0 <= now) {
            debug_assert!(at <= now);
            self.active.push(Active { slot, at: 0 });
            self.coming.pop_front();
        }
        if self.active.is_empty() {
            return self.coming.front().map_or(Offer::Nothing, |c| Offer::At(c.0));
        }
        self.turn = self.rng.below(self.active.len().to_u64()).to_usize();
        self.chunk_left = self.chunk.min(self.block - self.active[self.turn].at);
        Offer::Lines(self.chunk_left)
    }

    /// Hands over the first `n` of the lines that `next` offered; the medium is busy with them from `now` on.
    fn take(&mut self, _way: DmaDirection, n: u32, now: Time) -> Piece {
        let span = Time(self.media_ps * u64::from(n));
        self.media_free = self.media_free.max(now) + span;
        self.media_busy += span;
        self.hand_over(n)
    }

    fn restart_meters(&mut self, now: Time) {
        self.media_busy = self.media_free.saturating_sub(now);
    }

    fn write_functional(&mut self) -> Option<(LineAddr, u32)> {
        let Offer::Lines(n) = self.next(self.op, Time::ZERO) else { return None };
        let piece = self.hand_over(n);
        self.end(piece.slot, n, Time::ZERO);
        Some((piece.line, n))
    }
}
