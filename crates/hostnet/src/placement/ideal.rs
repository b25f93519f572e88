//! Ideal DDIO: incoming packets go to an additional LLC of unlimited size (Sweeper, section III).

use super::{DataPlane, DeviceTransfer, PlacementSpec};
use crate::memory::Inbound;

/// Data plane of ideal DDIO.
#[derive(Clone, Debug)]
pub struct Ideal;

impl DataPlane for Ideal {
    fn new(_: &PlacementSpec) -> Ideal {
        Ideal
    }
    fn write(&mut self, _: &DeviceTransfer) -> Inbound {
        Inbound::OutsideCaches
    }
    fn reads_tags(&self) -> bool {
        false
    }
    fn keeps_buffers_apart(&self) -> bool {
        true
    }
}
