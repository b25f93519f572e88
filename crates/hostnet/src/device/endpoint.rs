//! The interface between a PCIe port and the device behind it: any device that moves cache lines to or from memory
//! implements [`Device`].

use super::nic::{FrameMemory, RingMemory};
use super::DevicePosts;
pub use super::Endpoint;
use crate::kernel::units::{Bandwidth, Size, Span};
use crate::kernel::{IdVec, Int, LineAddr, NodeId, PortId, RandomStream, TenantId, Time};
use crate::memory::region::{AddressMap, Contiguous, Pages, RegionKind, Sharing, PAGE};
use crate::memory::{Tag, LINE};
use crate::meter::drops::DropLedger;
use crate::placement::DeviceKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Defaults of the peripherals' keys: a 100 Gbps NIC with half of the mlx5 driver's receive buffer (docs/models/networks.md),
/// and pages of 4 KiB, because the authors' scripts request no huge pages.
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

/// Checks that each count is within 1 and its maximum.
///
/// # Errors
/// Returns one clause that names key and value.
pub(super) fn check_counts(counts: &[(&str, u32, u32)]) -> Result<(), String> {
    match counts.iter().find(|(_, v, most)| *v == 0 || v > most) {
        Some((key, v, most)) => Err(format!("{key} = {v} is not within 1 to {most}")),
        None => Ok(()),
    }
}

/// Checks the rate and the flight time of an Ethernet link.
///
/// # Errors
/// Returns one clause that names key and value.
pub(super) fn check_link(link: Bandwidth, propagation: Span) -> Result<(), String> {
    if link.0 < 1_000_000_000 {
        return Err(format!("link = \"{link}\" is below 1 Gbps"));
    }
    if propagation.0 > 1_000_000_000_000 {
        return Err(format!("propagation = \"{propagation}\" is more than 1 s"));
    }
    Ok(())
}

/// Checks the size of a NIC's receive buffer.
///
/// # Errors
/// Returns one clause that names key and value.
pub(super) fn check_buffer(buffer: Size) -> Result<(), String> {
    if buffer.0 > 1 << 30 {
        return Err(format!("receive_buffer = \"{buffer}\" is above 1 GiB"));
    }
    Ok(())
}

/// Direction of a device's DMA, as memory sees it: a storage read writes memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DmaDirection {
    /// The device reads memory: a storage write, or a network sender.
    P2mRead,
    /// The device writes memory: a storage read, or a network receiver.
    P2mWrite,
}

impl DmaDirection {
    /// Index of the direction in pairs that hold one value per direction.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The opposite direction.
    #[inline]
    pub fn other(self) -> DmaDirection {
        match self {
            DmaDirection::P2mRead => DmaDirection::P2mWrite,
            DmaDirection::P2mWrite => DmaDirection::P2mRead,
        }
    }
}

/// Transfer that a device offers to its port in one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Offer {
    /// Up to this many consecutive lines are ready to move.
    Lines(u32),
    /// Nothing is ready before this time.
    At(Time),
    /// Nothing is ready until an event completes that the device waits for.
    Nothing,
}

/// Consecutive lines that a device has handed to its port.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Piece {
    /// First of the lines.
    pub line: LineAddr,
    /// Identifier by which the device recognises these lines when they are done.
    pub slot: u16,
    /// Steering tag of the packet that the lines belong to, which placement policies read.
    pub tag: Tag,
    /// Bytes of these lines that do not cross the link, because the transfer begins or ends within a line.
    pub omits: u32,
}

/// Memory for the queues of an Ethernet NIC.
#[derive(Default)]
pub struct NicMemory {
    /// Memory for the frames of a tenant that receives kernel TCP without descriptor rings; one entry per queue.
    pub frames: Vec<FrameMemory>,
    /// Memory for the descriptor rings: a pair for each queue.
    pub rings: Vec<RingMemory>,
}

/// Resources and parameters with which a device is built.
pub struct DeviceBuildContext<'a> {
    /// Address map of the host, to which the device adds the regions of its buffers.
    pub map: &'a mut AddressMap,
    /// Seed of the device's random streams.
    pub seed: u64,
    /// Number of the port to which the device will be attached.
    pub port: usize,
    /// Memory for the queues of the Ethernet NIC on each port.
    pub nics: IdVec<PortId, NicMemory>,
    /// Node to which the device will be attached.
    pub node: NodeId,
    /// The kernel behind the tenants, to which the buffers of devices belong.
    pub kernel: TenantId,
    /// Largest read request on the PCIe link: the key `pcie.max_read_request`.
    pub read_request: Size,
}

impl DeviceBuildContext<'_> {
    /// Allocates pages for `lines` lines of the device's buffers, and a random stream of the device's own named `what`.
    pub fn buffer(&mut self, what: &str, lines: u64, contiguous: Contiguous) -> (Pages, RandomStream) {
        let page = PAGE.0 / LINE;
        let lines = contiguous.whole(lines, page);
        let r = self.map.add(lines, RegionKind::Io, Sharing::Device, self.kernel);
        self.map.set_home(r, self.node);
        let mut rng = RandomStream::new(self.seed, what, self.port.to_u64());
        let key = rng.below(u64::MAX);
        (Pages::new(self.map.get(r).base, lines, contiguous, page, key), rng)
    }
}

/// A full-duplex device behind a PCIe port. The port calls `next` for each direction, then `take`, and then `done` for
/// every written line and every completed read request; one direction proceeds while the other waits. The default
/// methods suit a device that only moves lines.
pub trait Device: Sized {
    /// Parameters of the device: an entry of `peripheral` in a scenario.
    type Spec;

    /// Number of the node that the devices of an entry are attached to.
    fn node(s: &Self::Spec) -> u8 {
        let _ = s;
        0
    }

    /// Kind of the device, as results name it.
    const KIND: DeviceKind;

    /// Checks that the parameters fit together.
    ///
    /// # Errors
    /// Returns one clause that names key and value.
    fn check(s: &Self::Spec) -> Result<(), String>;

    /// Lanes of the device's port, and the maximum number of read requests that the device has outstanding.
    fn link(s: &Self::Spec) -> (u32, u32);

    /// Number of devices that one `peripheral` entry stands for, each on a port of its own.
    fn count(s: &Self::Spec) -> u32 {
        let _ = s;
        1
    }

    /// Builds the device with its buffers in regions of `context.map`.
    fn build(s: &Self::Spec, context: &mut DeviceBuildContext) -> Self;

    /// Whether the device ever moves lines in direction `way`; the port never calls `next` for the other direction.
    fn moves(&self, way: DmaDirection) -> bool;

    /// By `DmaDirection`: false where the device will offer nothing until another call changes its state, so that the
    /// port need not call `next`.
    #[inline]
    fn may_move(&self) -> [bool; 2] {
        [true; 2]
    }

    /// Returns the transfer that the device would make next in direction `way`.
    fn next(&mut self, way: DmaDirection, now: Time) -> Offer;

    /// Hands over the first `n` of the lines that `next` offered.
    fn take(&mut self, way: DmaDirection, n: u32, now: Time) -> Piece;

    /// Reports that `n` lines of `slot` are done; returns true when the device may have more to transfer as a result.
    fn done(&mut self, cal: &mut impl DevicePosts, way: DmaDirection, slot: u16, n: u32, now: Time) -> bool;

    /// Announces that the `n` lines of a read request of `slot` will arrive soon, behind the lines of earlier requests.
    /// Returns `Some(false)` when these lines complete no transfer and count as done, `Some(true)` when they complete a
    /// transfer, and None when the device needs a call of `done` at the end of every request.
    fn expect(&mut self, slot: u16, n: u32) -> Option<bool> {
        let _ = (slot, n);
        None
    }

    /// Number of commands, messages or frames that the device has completed.
    fn completed(&self) -> u64;

    /// Whether the device generates work without software, which must be stopped before the machine can drain.
    fn makes_work(&self) -> bool {
        true
    }

    /// Lines that the device writes in functional mode, which warms caches without timing: first line and number of
    /// lines.
    fn write_functional(&mut self) -> Option<(LineAddr, u32)> {
        None
    }

    /// Ledger of the packets that the device has lost; None for a device that cannot lose packets.
    fn drops(&self) -> Option<&DropLedger> {
        None
    }

    /// Restarts the device's meters, because a new measurement window begins.
    fn restart_meters(&mut self, now: Time) {
        let _ = now;
    }

    /// Checks the device's conservation laws at the end of a run.
    ///
    /// # Errors
    /// Returns one sentence that names the quantity that is not conserved.
    fn audit(&self) -> Result<(), String> {
        Ok(())
    }
}
