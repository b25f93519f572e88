//! hostnet: what happens to a packet, and to everybody else's memory traffic,
//! between the wire and the core.
//!
//! The modules are listed from the lowest to the highest, and each imports only from those listed above it
//! (docs/develop/architecture.md, checked by tests/layers.rs).

pub mod kernel;

pub mod meter;

pub mod flow;

pub mod memory;

pub mod core;

pub mod placement;

pub mod device;

pub mod traffic;

pub mod machine;

pub mod app;

pub mod stack;

pub mod model;

pub mod config;

pub mod host;

/// The engine's version: the package's, and a hash of the sources that decide results.
pub const VERSION: &str = env!("HOSTNET_ENGINE");
