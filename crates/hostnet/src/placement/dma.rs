//! Conventional DMA: every inbound line goes to DRAM, and cached copies are invalidated. Transmission of an integrated
//! NIC reads DRAM (Sweeper, section II-A); a device behind the IIO is answered by the nearest holder of the line, as on
//! real processors.

use super::{DataPlane, DeviceTransfer, PlacementSpec};
use crate::memory::{Agent, Inbound, Outbound};

/// Data plane of conventional DMA.
#[derive(Clone, Debug)]
pub struct Dma;

impl DataPlane for Dma {
    fn new(_: &PlacementSpec) -> Dma {
        Dma
    }
    fn write(&mut self, _: &DeviceTransfer) -> Inbound {
        Inbound::Dram
    }
    fn reads_tags(&self) -> bool {
        false
    }
    fn read(&mut self, t: &DeviceTransfer) -> Outbound {
        if t.agent == Agent::Nic {
            Outbound::Dram
        } else {
            Outbound::Nearest
        }
    }
}
