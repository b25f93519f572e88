//! hostnet simulates the host network: the path of a packet between the wire and the core, and the effect of network
//! traffic on all other memory traffic of the host.
//!
//! The modules form layers; docs/develop/architecture.md lists them in order and says what each may import.

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

pub mod probe;

pub mod model;

pub mod config;

pub mod host;

pub mod engine;

pub use engine::Engine;

/// Version of the engine: the package's version and a hash of the sources that decide results.
pub const VERSION: &str = env!("HOSTNET_ENGINE");
