//! Events of the memory system.

use super::Sweep;
use crate::kernel::ids::ShortLine;
use crate::kernel::{ChannelId, CoreId, LineAddr, Post, ThreadId, TxnId};

/// An event of the memory system, or an event by which the memory system reaches a core.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the documentation of a variant explains its fields")]
pub enum MemoryEvent {
    /// A transaction arrives at the caching and home agent.
    Cha(TxnId),
    /// Requests that wait for a register of an LLC slice may go on.
    Slices,
    /// Memory channel has something to schedule.
    Dram(ChannelId),
    /// Transaction goes on between nodes.
    Link(TxnId),
    /// A written line has crossed the link between caches and memory controllers.
    MemoryLink,
    /// The data of a transaction reaches the requester.
    Fill(TxnId),
    /// Another agent has written or taken away a line that a core waits for.
    Wake(ThreadId),
    /// `count` sweep (or flush) messages reach the home agent: see [`MemoryEvent::sweep`].
    Sweep { line: ShortLine, count: u32, op: Sweep },
    /// A device has written a line for this core, and the core's L2 is to fetch the line: see [`MemoryEvent::hint`].
    Hint { core: CoreId, line: ShortLine },
}

impl MemoryEvent {
    /// Sweep messages for `count` lines from `line` on.
    #[inline]
    pub fn sweep(line: LineAddr, count: u32, op: Sweep) -> MemoryEvent {
        MemoryEvent::Sweep { line: line.into(), count, op }
    }

    /// A hint for `core` that a device has written `line`.
    #[inline]
    pub fn hint(core: CoreId, line: LineAddr) -> MemoryEvent {
        MemoryEvent::Hint { core, line: line.into() }
    }
}

/// A calendar to which the memory system posts its events.
pub trait MemoryPosts: Post<MemoryEvent> {}
impl<C: Post<MemoryEvent>> MemoryPosts for C {}
