//! What arrives from the wire.

pub mod arrival;
pub mod dctcp;
mod event;
pub mod frame;
pub mod generator;
pub mod mac;
pub mod memcached;
pub mod pcap;
pub mod records;
pub mod search;
pub mod software;
pub mod spikes;
pub mod writer;
pub mod zipf;

pub use event::{Event, Posts};
