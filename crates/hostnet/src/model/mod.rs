//! Closed-form models: the performance of a link, a domain or a memory controller, computed without a simulation. The
//! models take plain numbers (of a simulated run or of real counters) and are independent of the engine's state.

pub mod domain;
pub mod mc;
pub mod pcie;
pub mod predict;
