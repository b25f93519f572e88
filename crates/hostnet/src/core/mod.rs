//! Cores: an op stream in, memory requests out.

pub mod cpu;
mod event;
pub mod hints;
pub mod l1_prefetch;
pub mod op;
pub mod prefetch;
pub mod spec;
pub mod strides;

pub use cpu::{Cpu, Retired};
pub use event::{Event, Posts};
pub use op::{Mapped, Op, Program};
pub use spec::{CoreSpec, Pipeline};
