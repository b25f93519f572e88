//! What a PCIe port has behind it: any device that moves lines to or from memory, as its port sees it.

use super::nic::Nic;
use super::roce::Roce;
use super::ssd::Ssd;
use crate::kernel::units::{Bandwidth, Size};
use crate::kernel::{Events, Time};
use crate::memory::Tag;
use crate::meter::drops::Ledger;
use crate::placement::DeviceKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What devices take when the scenario does not say: a 100 Gbps NIC with half of the mlx5 driver's buffer (docs/network.md),
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
pub(super) fn check_link(link: Bandwidth) -> Result<(), String> {
    if link.0 < 1_000_000_000 {
        return Err(format!("link = \"{link}\" is below 1 Gbps"));
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
    pub line: u64,
    /// What the device knows them by.
    pub slot: u16,
    /// Steering tag of their packet: what the device tells placement about them.
    pub tag: Tag,
}

/// A device, full duplex. Its port asks `next` of each way, then `take`, and says `done` per line written or per request
/// read; either way goes on while the other waits.
#[derive(Clone)]
pub enum Endpoint {
    Ssd(Box<Ssd>),
    Roce(Box<Roce>),
    Nic(Box<Nic>),
}

impl Endpoint {
    pub fn next(&mut self, way: Direction, now: Time) -> Offer {
        match self {
            Endpoint::Ssd(d) if d.op == way => d.next(now),
            Endpoint::Roce(d) if d.op == way => d.next(now),
            Endpoint::Nic(d) => d.next(way, now),
            _ => Offer::Nothing,
        }
    }

    /// Moves the first `n` of the lines that `next` promised.
    pub fn take(&mut self, way: Direction, n: u32, now: Time) -> Piece {
        debug_assert!(matches!(self.next(way, now), Offer::Lines(m) if m >= n), "more lines than promised");
        match self {
            Endpoint::Ssd(d) => d.take(n, now),
            Endpoint::Roce(d) => d.take(n, now),
            Endpoint::Nic(d) => d.move_lines(way, n, now),
        }
    }

    /// `n` lines of `slot` are done; true when the device may have more to do because of it.
    pub fn done(&mut self, cal: &mut Events, way: Direction, slot: u16, n: u32, now: Time) -> bool {
        debug_assert!(self.moves(way), "the device moves nothing {way:?}");
        match self {
            Endpoint::Ssd(d) => d.done(slot, n, now),
            Endpoint::Roce(d) => d.done(n, now),
            Endpoint::Nic(d) => d.moved(cal, way, slot, n, now),
        }
    }

    /// Whether the device ever moves lines that way.
    pub fn moves(&self, way: Direction) -> bool {
        match self {
            Endpoint::Ssd(d) => d.op == way,
            Endpoint::Roce(d) => d.op == way,
            Endpoint::Nic(_) => true,
        }
    }

    pub fn kind(&self) -> DeviceKind {
        match self {
            Endpoint::Ssd(_) => DeviceKind::Storage,
            Endpoint::Roce(_) => DeviceKind::Rdma,
            Endpoint::Nic(_) => DeviceKind::Nic,
        }
    }

    /// Whether it finds work of its own, which must be stopped before it comes to rest.
    pub fn makes_work(&self) -> bool {
        matches!(self, Endpoint::Ssd(_) | Endpoint::Roce(_))
    }

    /// Some lines that the device writes, without timing: (first line, lines), for caches that are being warmed.
    pub fn write_at_once(&mut self) -> Option<(u64, u32)> {
        if !self.moves(Direction::P2mWrite) {
            return None;
        }
        match self {
            Endpoint::Ssd(d) => d.at_once(),
            Endpoint::Roce(d) => Some(d.at_once()),
            Endpoint::Nic(_) => None,
        }
    }

    /// Commands, messages or frames that have ended.
    pub fn completed(&self) -> u64 {
        match self {
            Endpoint::Ssd(d) => d.completed,
            Endpoint::Roce(d) => d.completed,
            Endpoint::Nic(d) => d.counts.delivered,
        }
    }

    /// What it has lost.
    pub fn drops(&self) -> Option<&Ledger> {
        match self {
            Endpoint::Ssd(_) => None,
            Endpoint::Roce(d) => Some(d.drops()),
            Endpoint::Nic(d) => Some(&d.drops),
        }
    }

    pub fn restart_meters(&mut self, now: Time) {
        match self {
            Endpoint::Ssd(_) => {}
            Endpoint::Roce(d) => d.restart_meters(now),
            Endpoint::Nic(d) => d.restart_meters(now),
        }
    }

    /// # Errors
    /// One sentence about what is not conserved.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Endpoint::Ssd(_) => Ok(()),
            Endpoint::Roce(d) => d.check(),
            Endpoint::Nic(d) => d.check(),
        }
    }
}
