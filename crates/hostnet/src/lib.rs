//! hostnet: what happens to a packet, and to everybody else's memory traffic,
//! between the wire and the core.
//!
//! Modules are layered; each imports only from those listed above it
//! (docs/develop/architecture.md).

pub mod app;
pub mod config;
pub mod core;
pub mod device;
pub mod flow;
pub mod host;
pub mod kernel;
pub mod machine;
pub mod memory;
pub mod meter;
pub mod model;
pub mod placement;
pub mod stack;
pub mod traffic;

/// The engine's version: the package's, and a hash of the sources that decide results.
pub const VERSION: &str = env!("HOSTNET_ENGINE");
