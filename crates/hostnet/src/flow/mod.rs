//! Credits and the queues that form when they run out.

pub mod domain;
pub use domain::Domain;
