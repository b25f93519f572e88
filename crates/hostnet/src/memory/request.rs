//! What any agent asks of memory. Cores, prefetchers, NICs, peripherals and the background send the same
//! [`Txn`] through the same door, [`Memory::send`](super::Memory::send), and are answered by `Event::Fill`.

use super::array::Home;
use super::stats::Class;
use super::tag::Tag;
use crate::kernel::{CoreId, Int, LineAddr, ThreadId, Time};

/// What a transaction does at the home agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// A core reads a line.
    Read,
    /// A core reads a line to write it.
    Own,
    /// A core stores a whole line past the caches.
    Stream,
    /// A core's write-back: `dirty` when it makes the LLC write `line` to memory.
    WriteBack,
    /// A device reads lines; nothing changes place (PCIe reads take a snapshot).
    DmaRead,
    /// A device writes whole lines.
    DmaWrite,
    /// A read that no cache is asked for: see `host::background`.
    Uncached,
}

/// Who asks. `Txn::who` says which one, in the agent's own numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Agent {
    /// A core or its prefetcher.
    Core,
    /// A NIC on the chip.
    Nic,
    /// A device behind the IIO.
    Io,
    /// The system behind everything that is simulated.
    Background,
}

impl Agent {
    /// The position of the agent in tables by agent.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self as usize
    }
}
/// Kinds of agents.
pub const AGENTS: usize = 4;

/// Where an inbound line goes; placement policies decide, request by request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inbound {
    /// To DRAM; cached copies are invalidated (conventional DMA).
    Dram,
    /// Into the LLC: in place when present, else into one of these ways (DDIO).
    Llc { ways: u32 },
    /// The same, and the L2 of `core` is told to fetch it: `Event::Hint` (IDIO).
    Hint { ways: u32, core: CoreId },
    /// Into a cache of its own without limit (ideal-DDIO).
    Apart,
}

/// Where a device's read looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Outbound {
    /// Wherever the line is: private caches, LLC, DRAM.
    #[default]
    Nearest,
    /// In DRAM, which dirty copies are written to first (conventional DMA of an integrated NIC).
    Dram,
}

/// A request on its way through the uncore.
#[derive(Clone, Copy, Debug)]
pub struct Txn {
    pub line: LineAddr,
    pub op: Op,
    pub agent: Agent,
    /// Core, packet of the NIC, or the IIO's business.
    pub who: u32,
    /// Of a core: the hardware thread that asks, in the machine's order.
    pub thread: ThreadId,
    /// The core's record of the access. In the answer to a device's read: how many of its lines the LLC has modified.
    pub record: u8,
    /// The line comes with the duty to write it back.
    pub dirty: bool,
    /// The LLC keeps the line that this is a copy of.
    pub copied: bool,
    /// Does not enter the private caches.
    pub transient: bool,
    /// Fetches the line before anybody asks for it, which is no use of it.
    pub ahead: bool,
    /// Consecutive lines from `line` on. In an answer: those that it is for.
    pub lines: u16,
    pub tag: Tag,
    /// Where LLCs have the line, once the request is on its way, if it is for one line.
    pub home: Home,
    /// It has an entry among the lines that several agents use, since that epoch of it.
    pub entry: Option<u16>,
    /// What its transfers with DRAM are counted as.
    pub class: Class,
    /// Destination of a write.
    pub to: Inbound,
    /// Source of a read.
    pub from: Outbound,
    pub issued: Time,
    /// Arrival at the memory controller's door.
    pub at_mc: Time,
}

impl Txn {
    /// A core's request for `line`, made at `at` by the thread of its number. What only some requests have is set beside:
    /// `Txn { transient: true, ..Txn::new(..) }`.
    #[inline(always)]
    pub fn new(op: Op, line: LineAddr, core: CoreId, at: Time) -> Txn {
        Txn {
            line,
            op,
            agent: Agent::Core,
            who: core.0.into(),
            thread: ThreadId(core.0),
            record: 0,
            dirty: false,
            copied: false,
            transient: false,
            ahead: false,
            lines: 1,
            tag: Tag::default(),
            home: Home::default(),
            entry: None,
            class: Class::CpuOtherRd,
            to: Inbound::Dram,
            from: Outbound::Nearest,
            issued: at,
            at_mc: at,
        }
    }

    /// A device's read of `lines` lines, counted as `class`.
    #[inline]
    pub fn dma_read(agent: Agent, class: Class, line: LineAddr, lines: u16, who: u32, at: Time) -> Txn {
        Txn { agent, class, lines, transient: true, who, ..Txn::new(Op::DmaRead, line, CoreId(0), at) }
    }

    /// A device's write of `lines` whole lines to `to`, counted as `class`.
    #[inline]
    pub fn dma_write(agent: Agent, class: Class, to: Inbound, line: LineAddr, lines: u16, who: u32, at: Time) -> Txn {
        Txn { agent, class, lines, to, transient: true, who, ..Txn::new(Op::DmaWrite, line, CoreId(0), at) }
    }

    /// A read of no simulated core.
    #[inline]
    pub fn background(line: LineAddr, at: Time) -> Txn {
        Txn { agent: Agent::Background, class: Class::BackgroundRd, ..Txn::new(Op::Uncached, line, CoreId(0), at) }
    }

    /// The core that asks; only requests of cores have one.
    #[inline(always)]
    pub fn core(&self) -> CoreId {
        debug_assert!(matches!(self.agent, Agent::Core | Agent::Background), "{:?} is no core", self.agent);
        CoreId(self.who.to_u16())
    }

    /// A second write-back of one fill has no line fill buffer to hold.
    pub(super) fn holds_credit(&self) -> bool {
        self.op != Op::WriteBack || !self.transient
    }
}
