//! Events of cores.

use crate::kernel::{Post, ThreadId};
use crate::memory;

/// An event of a hardware thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CoreEvent {
    /// Program of the core has ended, or the core begins: its software says what comes next.
    Free(ThreadId),
    /// Hits of a core that has run ahead are due: another agent may have written these lines.
    Due(ThreadId),
    /// A core's retired side effects (sweeps, doorbells, buffer returns) are due.
    Retire(ThreadId),
}

/// A calendar that cores post their events to, and those of the memory system that they ask.
pub trait CorePosts: Post<CoreEvent> + memory::MemoryPosts {}
impl<C: Post<CoreEvent> + memory::MemoryPosts> CorePosts for C {}
