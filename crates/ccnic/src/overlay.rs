//! Overlay mode: a NIC whose far side is a Linux network interface.

use std::sync::atomic::AtomicBool;

use crate::error::Error;
use crate::nic::{NicPort, NicQueue};

/// placeholder
pub struct Overlay;
impl Overlay {
    /// placeholder
    pub fn open(_iface: &str) -> Result<Overlay, Error> { unimplemented!() }
    /// placeholder
    pub fn serve(&mut self, _p: &NicPort, _q: &mut [NicQueue], _s: &AtomicBool) -> Result<(), Error> { unimplemented!() }
}
