//! Devices.

pub mod endpoint;
pub mod iio;
pub mod nic;
pub mod pcie;
pub mod response;
pub mod roce;
pub mod ssd;
