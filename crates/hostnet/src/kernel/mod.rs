//! Time, randomness and the event calendar.

pub mod rng;
pub mod time;

pub use rng::Stream;
pub use time::{Clock, Time};
