//! Credits, the queues that form when they run out, and the links that packets follow each other on.

pub mod credits;
pub mod domain;
pub mod link;

pub use credits::{Credits, Wait};
pub use domain::Domain;
pub use link::Link;
