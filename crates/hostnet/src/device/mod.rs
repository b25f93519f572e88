//! Devices.

pub mod nic;
