//! Closed-form models: what a link, a domain or a memory controller can do, without running anything.
//! They take plain numbers (of a simulated run or of real counters) and know nothing of the engine's state.

pub mod domain;
pub mod mc;
pub mod pcie;
pub mod predict;
