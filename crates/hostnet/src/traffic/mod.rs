//! Traffic from outside the host: arrival processes, generators, captures, TCP senders, and searches over the offered
//! rate.

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

pub use event::{TrafficEvent, TrafficPosts};
