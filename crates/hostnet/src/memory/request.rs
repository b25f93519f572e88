//! Requests to the memory system. Cores, prefetchers, NICs, peripherals and the background all send a [`Txn`] through
//! [`Memory::send`](super::Memory::send), and `Event::Fill` announces the answer.

use super::array::LineHome;
use super::stats::AccessClass;
use super::tag::Tag;
use crate::kernel::{CoreId, LineAddr, PacketId, PartialWriteId, PortId, ReadJobId, ThreadId, Time};

/// Operation of a transaction at the home agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TxnOp {
    /// A core reads a line.
    Read,
    /// A core reads a line to write it.
    Own,
    /// A core stores a whole line, bypassing the caches.
    Stream,
    /// A core writes a line back; `dirty` says whether the write-back makes the LLC write `line` to memory.
    WriteBack,
    /// A device reads lines without changing their places (PCIe reads take a snapshot).
    DmaRead,
    /// A device writes whole lines.
    DmaWrite,
    /// The background reads a line without asking any cache; see `host::background`.
    Uncached,
}

/// Kind of agent that sends a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Agent {
    /// A core or its prefetcher.
    Core,
    /// A NIC on the chip.
    Nic,
    /// The background, which stands for the part of the system that is not simulated.
    Background,
    /// A device behind the IIO.
    Io,
}

impl Agent {
    /// The index of the agent in tables by agent.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self as usize
    }
}
/// Number of kinds of agents.
pub const AGENTS: usize = 4;

/// Write of the device on a port, which knows the lines by its number `slot`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct IoWrite {
    /// Port of the device.
    pub port: PortId,
    /// Number by which the device knows the lines.
    pub slot: u16,
}

/// Sender of a request, with what the request is for. Requests in functional mode have no answer, so those of devices
/// name nothing. The variants are in the order of [`Agent`], so that the kind of a sender is a minimum.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sender {
    /// A core or its prefetcher, for a hardware thread.
    Core {
        /// Core whose caches and buffers the request passes.
        core: CoreId,
        /// Hardware thread that the request serves.
        thread: ThreadId,
    },
    /// The NIC on the chip, for a packet.
    Nic(Option<PacketId>),
    /// Nobody who waits for an answer: the background, or the memory system itself.
    Background,
    /// The IIO, for a write of a device.
    IoWrite(IoWrite),
    /// The IIO, for a read request of a device.
    IoRead(ReadJobId),
    /// The IIO, for the read of a line that a write changes in part, before that write.
    IoMerge(PartialWriteId),
    /// The IIO, for a device in functional mode.
    Io,
}

impl Sender {
    /// Kind of the sender.
    #[inline(always)]
    pub const fn agent(self) -> Agent {
        match self {
            Sender::Core { .. } => Agent::Core,
            Sender::Nic(_) => Agent::Nic,
            Sender::Background => Agent::Background,
            Sender::IoWrite(_) | Sender::IoRead(_) | Sender::IoMerge(_) | Sender::Io => Agent::Io,
        }
    }
}

/// Destination of an inbound line, which the placement policy chooses for each request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the documentation of a variant explains its fields")]
pub enum Inbound {
    /// DRAM; cached copies are invalidated (conventional DMA).
    Dram,
    /// The LLC: in place if the line is present, otherwise in one of these ways (DDIO).
    Llc { ways: u32 },
    /// The LLC, as with `LlcAction`, and the L2 of `core` receives a prefetch hint by `Event::Hint` (IDIO).
    Hint { ways: u32, core: CoreId },
    /// A separate cache of unlimited size (ideal DDIO).
    OutsideCaches,
}

/// Source of the data for a device's read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Outbound {
    /// The nearest copy: in private caches, in the LLC or in DRAM.
    #[default]
    Nearest,
    /// DRAM, to which dirty copies are written first (conventional DMA of an integrated NIC).
    Dram,
}

/// A request on its way through the uncore.
#[derive(Clone, Copy, Debug)]
pub struct Txn {
    /// First line that the request concerns.
    pub line: LineAddr,
    /// Kind of the request.
    pub op: TxnOp,
    /// Sender of the request, which receives the answer.
    pub sender: Sender,
    /// Record of the access in its core. In the answer to a device's read, the number of lines that the LLC has
    /// modified.
    pub record: u8,
    /// Whether the line comes with the duty to write it back.
    pub dirty: bool,
    /// Whether the answer is a copy of a line that stays in the LLC.
    pub copied: bool,
    /// Whether the line must not enter the private caches.
    pub transient: bool,
    /// Whether the request fetches the line before an instruction asks for it, so that the request does not count as a
    /// use of the line.
    pub ahead: bool,
    /// Number of consecutive lines from `line` on. In an answer, the number of lines that are answered.
    pub lines: u16,
    /// Steering tag of a device's request.
    pub tag: Tag,
    /// Set and tag under which LLCs look for the line, for a request of one line that has been sent.
    pub home: LineHome,
    /// Epoch at which the request entered the line table, if it did.
    pub entry: Option<u16>,
    /// Class under which transfers with DRAM are counted.
    pub class: AccessClass,
    /// Destination of a device's write.
    pub to: Inbound,
    /// Source of a device's read.
    pub from: Outbound,
    /// Time at which the agent issued the request.
    pub issued: Time,
    /// Time of arrival at the memory controller.
    pub at_mc: Time,
}

impl Txn {
    /// Makes a request of `core` for `line` at `at`, sent by the thread of the same number. Fields that only some
    /// requests need are set by the caller: `Txn { transient: true, ..Txn::new(..) }`.
    #[inline(always)]
    pub fn new(op: TxnOp, line: LineAddr, core: CoreId, at: Time) -> Txn {
        Txn {
            line,
            op,
            sender: Sender::Core { core, thread: ThreadId(core.0) },
            record: 0,
            dirty: false,
            copied: false,
            transient: false,
            ahead: false,
            lines: 1,
            tag: Tag::default(),
            home: LineHome::default(),
            entry: None,
            class: AccessClass::CpuOtherRd,
            to: Inbound::Dram,
            from: Outbound::Nearest,
            issued: at,
            at_mc: at,
        }
    }

    /// Makes a device's read of `lines` lines, counted as `class`.
    #[inline]
    pub fn dma_read(sender: Sender, class: AccessClass, line: LineAddr, lines: u16, at: Time) -> Txn {
        Txn { sender, class, lines, transient: true, ..Txn::new(TxnOp::DmaRead, line, CoreId(0), at) }
    }

    /// Makes a device's write of `lines` whole lines to `to`, counted as `class`.
    #[inline]
    pub fn dma_write(sender: Sender, class: AccessClass, to: Inbound, line: LineAddr, lines: u16, at: Time) -> Txn {
        Txn { sender, class, lines, to, transient: true, ..Txn::new(TxnOp::DmaWrite, line, CoreId(0), at) }
    }

    /// Makes a read of the background, which no simulated core sends.
    #[inline]
    pub fn background(line: LineAddr, at: Time) -> Txn {
        Txn {
            sender: Sender::Background,
            class: AccessClass::BackgroundRd,
            ..Txn::new(TxnOp::Uncached, line, CoreId(0), at)
        }
    }

    /// Kind of the sender.
    #[inline(always)]
    pub const fn agent(&self) -> Agent {
        self.sender.agent()
    }

    /// The core that asks; only requests of cores have one.
    #[inline(always)]
    pub fn core(&self) -> CoreId {
        match self.sender {
            Sender::Core { core, .. } => core,
            other => unreachable!("{other:?} is no core"),
        }
    }

    /// The hardware thread that asks; only requests of cores have one.
    #[inline(always)]
    pub fn thread(&self) -> ThreadId {
        match self.sender {
            Sender::Core { thread, .. } => thread,
            other => unreachable!("{other:?} is no thread of a core"),
        }
    }

    /// Whether the request holds a credit of its source; the second write-back of a fill has no line fill buffer to
    /// hold.
    pub(super) fn holds_credit(&self) -> bool {
        self.op != TxnOp::WriteBack || !self.transient
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request lies in one cache line.
    #[test]
    fn a_request_takes_64_bytes() {
        assert!(size_of::<Txn>() <= 64, "{} bytes, {} of the sender", size_of::<Txn>(), size_of::<Sender>());
    }
}
