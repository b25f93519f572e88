//! Credit-based flow control: domains that hold credits, the queues that form when credits run out, and serialising
//! links.

pub mod credits;
pub mod domain;
pub mod link;

pub use credits::{CreditWait, Credits};
pub use domain::{AheadDomain, Domain};
pub use link::Link;
