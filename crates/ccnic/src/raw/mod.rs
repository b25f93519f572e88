//! The crate's unsafe code: the mapped region and the system calls without a safe wrapper.
//!
//! # Invariants
//!
//! 1. A [`Region`] owns `len` readable and writable bytes at `base`, 64-byte aligned, from
//!    construction to drop. A mapped region is backed by a memfd of ordinary pages, sealed
//!    against shrinking (checked, not assumed, when the fd came from a peer): the kernel fills a
//!    hole that a peer punches with zeros, so no access can fault.
//! 2. Every access checks its range against `len` before it forms a pointer. No caller, and
//!    so no value read from shared memory, can reach outside the region.
//! 3. Words are only touched through atomics and bytes only through raw copies; no
//!    reference to shared memory is ever formed, so a peer that writes at the wrong time can
//!    change values but not break aliasing or typing. Payload bytes are never interpreted.
//! 4. Between well-behaved sides, payload copies are ordered by the release store and the
//!    acquire load of the ring or pool slot that hands the buffer over (the loom models check).

mod region;
pub(crate) mod sys;
pub(crate) mod xdp;

pub use region::{timestamp, Region};
