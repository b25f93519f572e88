//! Devices.

pub mod iio;
pub mod nic;
pub mod pcie;
pub mod ssd;
