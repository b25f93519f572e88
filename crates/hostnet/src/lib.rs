//! hostnet: what happens to a packet, and to everybody else's memory traffic,
//! between the wire and the core.
//!
//! Modules are layered; each imports only from those listed above it
//! (docs/architecture.md).

pub mod kernel;
pub mod memory;
pub mod traffic;
