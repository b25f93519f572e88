//! What a PCIe port has behind it: any device that moves lines to or from memory, as its port sees it.

use super::nic::{FrameMemory, RingMemory};
pub use super::Endpoint;
use super::Posts;
use crate::kernel::units::{Bandwidth, Size, Span};
use crate::kernel::{Int, LineAddr, Stream, TenantId, Time};
use crate::memory::region::{AddressMap, Contiguous, Kind, Pages, Sharing, PAGE};
use crate::memory::{Tag, LINE};
use crate::meter::drops::Ledger;
use crate::placement::DeviceKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What devices take when the scenario does not say: a 100 Gbps NIC with half of the mlx5 driver's buffer (docs/models/networks.md),
/// and pages of 4 KiB, as the authors' scripts ask for no huge ones.
pub(super) mod defaults {
    use crate::kernel::units::{Bandwidth, Size, Span};

    pub fn nic_lanes() -> u32 {
        16
    }
    pub fn link() -> Bandwidth {
        Bandwidth(100_000_000_000)
    }
    pub fn receive_buffer() -> Size {
        Size(130_944)
    }
    pub fn propagation() -> Span {
        Span(100_000)
    }
    pub fn tags() -> u32 {
        64
    }
    pub fn page() -> Size {
        Size(4096)
    }
}

/// Each count must be within 1 and its most.
///
/// # Errors
/// One clause with key and value.
pub(super) fn check_counts(counts: &[(&str, u32, u32)]) -> Result<(), String> {
    match counts.iter().find(|(_, v, most)| *v == 0 || v > most) {
        Some((key, v, most)) => Err(format!("{key} = {v} is not within 1 to {most}")),
        None => Ok(()),
    }
}

/// # Errors
/// One clause with key and value.
pub(super) fn check_link(link: Bandwidth, propagation: Span) -> Result<(), String> {
    if link.0 < 1_000_000_000 {
        return Err(format!("link = \"{link}\" is below 1 Gbps"));
    }
    if propagation.0 > 1_000_000_000_000 {
        return Err(format!("propagation = \"{propagation}\" is more than 1 s"));
    }
    Ok(())
}

/// # Errors
/// One clause with key and value.
pub(super) fn check_buffer(buffer: Size) -> Result<(), String> {
    if buffer.0 > 1 << 30 {
        return Err(format!("receive_buffer = \"{buffer}\" is above 1 GiB"));
    }
    Ok(())
}

/// Which way the DMA goes. A storage read writes memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// The device reads memory: a storage write, or a network sender.
    P2mRead,
    /// The device writes memory: a storage read, or a network receiver.
    P2mWrite,
}

impl Direction {
    /// Its place in pairs that hold one value per direction.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }

    #[inline]
    pub fn other(self) -> Direction {
        match self {
            Direction::P2mRead => Direction::P2mWrite,
            Direction::P2mWrite => Direction::P2mRead,
        }
    }
}

/// What a device would move next, one way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Offer {
    /// Up to this many consecutive lines.
    Lines(u32),
    /// Nothing before then.
    At(Time),
    /// Nothing until something that it waits for ends.
    Nothing,
}

/// Lines that a device has handed to its port.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Piece {
    pub line: LineAddr,
    /// What the device knows them by.
    pub slot: u16,
    /// Steering tag of their packet: what the device tells placement about them.
    pub tag: Tag,
    /// Bytes of these lines that do not cross the link: what is moved begins or ends within a line.
    pub omits: u32,
}

/// What building a device needs.
pub struct Bay<'a> {
    pub map: &'a mut AddressMap,
    pub seed: u64,
    /// The port that the device gets.
    pub port: usize,
    /// Memory for the frames of the tenant that receives TCP, for the NIC that takes it.
    pub queues: Vec<FrameMemory>,
    /// Memory for the descriptor rings of the tenant that has such, a pair for each core.
    pub rings: Vec<RingMemory>,
    /// `pcie.max_read_request`.
    pub read_request: Size,
}

impl Bay<'_> {
    /// Pages for `lines` lines of the device's buffers, and a random stream of its own named `what`.
    pub fn buffer(&mut self, what: &str, lines: u64, contiguous: Contiguous) -> (Pages, Stream) {
        let page = PAGE.0 / LINE;
        let lines = contiguous.whole(lines, page);
        let r = self.map.add(lines, Kind::Io, Sharing::Device, TenantId(0));
        let mut rng = Stream::new(self.seed, what, self.port.to_u64());
        let key = rng.below(u64::MAX);
        (Pages::new(self.map.get(r).base, lines, contiguous, page, key), rng)
    }
}

/// A device, full duplex. Its port asks `next` of each way, then `take`, and says `done` per line written or per request
/// read; either way goes on while the other waits. What is not told is that of a device that only moves lines.
pub trait Device: Sized {
    /// Its parameters: an entry of `peripheral` in a scenario.
    type Spec;

    const KIND: DeviceKind;

    /// # Errors
    /// One clause with key and value, when the parameters do not fit together.
    fn check(s: &Self::Spec) -> Result<(), String>;

    /// Lanes of its port, and read requests that it has under way at most.
    fn link(s: &Self::Spec) -> (u32, u32);

    /// Devices that one entry stands for, each on a port of its own.
    fn count(s: &Self::Spec) -> u32 {
        let _ = s;
        1
    }

    fn build(s: &Self::Spec, bay: &mut Bay) -> Self;

    /// Whether the device ever moves lines that way; of the other way it is not asked.
    fn moves(&self, way: Direction) -> bool;

    /// By `Direction`: false where it is sure to have nothing until something is done to it, so that `next` need not be asked.
    #[inline]
    fn may_move(&self) -> [bool; 2] {
        [true; 2]
    }

    /// What it would move next.
    fn next(&mut self, way: Direction, now: Time) -> Offer;

    /// Moves the first `n` of the lines that `next` promised.
    fn take(&mut self, way: Direction, n: u32, now: Time) -> Piece;

    /// `n` lines of `slot` are done; true when the device may have more to do because of it.
    fn done(&mut self, cal: &mut impl Posts, way: Direction, slot: u16, n: u32, now: Time) -> bool;

    /// The `n` lines of a read request of `slot` will be here soon, behind those of requests before it. `Some(false)`: they end
    /// nothing and count as done. `Some(true)`: they end something. None: the device is told of every request when it ends.
    fn expect(&mut self, slot: u16, n: u32) -> Option<bool> {
        let _ = (slot, n);
        None
    }

    /// Commands, messages or frames that have ended.
    fn completed(&self) -> u64;

    /// Whether it finds work of its own, which must be stopped before it comes to rest.
    fn makes_work(&self) -> bool {
        true
    }

    /// Some lines that the device writes, without timing: (first line, lines), for caches that are being warmed.
    fn write_at_once(&mut self) -> Option<(LineAddr, u32)> {
        None
    }

    /// What it has lost.
    fn drops(&self) -> Option<&Ledger> {
        None
    }

    /// A new window begins.
    fn restart_meters(&mut self, now: Time) {
        let _ = now;
    }

    /// # Errors
    /// One sentence about what is not conserved.
    fn audit(&self) -> Result<(), String> {
        Ok(())
    }
}
