//! Caches, the home agent and DRAM.
pub mod dram;
