//! Caches, the home agent and DRAM.
