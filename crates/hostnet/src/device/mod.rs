//! Devices.

pub mod endpoint;
pub mod iio;
pub mod netdev;
pub mod nic;
pub mod pcie;
pub mod roce;
pub mod ssd;
