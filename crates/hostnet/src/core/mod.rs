//! Cores: they execute an op stream and send memory requests.

pub mod cpu;
mod event;
pub mod hints;
pub mod l1_prefetch;
pub mod op;
pub mod prefetch;
pub mod spec;
pub mod strides;

pub use cpu::{Cpu, PollRound, Retired};
pub use event::{CoreEvent, CorePosts};
pub use op::{Mapped, Op, Program};
pub use spec::{CoreQuirks, CoreSpec, Pipeline, RobHolds};
