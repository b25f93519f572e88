//! hostnet: what happens to a packet, and to everybody else's memory traffic,
//! between the wire and the core.
//!
//! The modules are listed from the lowest to the highest, and each imports only from those listed above it
//! (docs/develop/architecture.md, checked by tests/layers.rs).

pub mod kernel;

pub mod meter;

pub mod flow;

#[expect(missing_docs, reason = "inside the engine, a documented type explains its members")]
pub mod memory;

#[expect(missing_docs, reason = "inside the engine, a documented type explains its members")]
pub mod core;

pub mod placement;

#[expect(missing_docs, reason = "inside the engine, a documented type explains its members")]
pub mod device;

#[expect(missing_docs, reason = "inside the engine, a documented type explains its members")]
pub mod traffic;

#[expect(missing_docs, reason = "inside the engine, a documented type explains its members")]
pub mod machine;

#[expect(missing_docs, reason = "inside the engine, a documented type explains its members")]
pub mod app;

#[expect(missing_docs, reason = "inside the engine, a documented type explains its members")]
pub mod stack;

pub mod model;

pub mod config;

pub mod host;

/// The engine's version: the package's, and a hash of the sources that decide results.
pub const VERSION: &str = env!("HOSTNET_ENGINE");
