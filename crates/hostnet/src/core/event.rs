//! Events of cores.

use crate::kernel::{Post, ThreadId};
use crate::memory;

/// An event of a hardware thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CoreEvent {
    /// The program of the thread has ended, or the thread starts: its software provides the next program.
    Free(ThreadId),
    /// Hits that a core has deferred are due: another agent may have written these lines.
    Due(ThreadId),
    /// A core's retired side effects (sweeps, doorbells, buffer returns) are due.
    Retire(ThreadId),
}

/// A calendar to which cores post their own events and those of the memory system.
pub trait CorePosts: Post<CoreEvent> + memory::MemoryPosts {}
impl<C: Post<CoreEvent> + memory::MemoryPosts> CorePosts for C {}
