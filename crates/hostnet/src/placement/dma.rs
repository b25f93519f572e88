//! Conventional DMA: every block goes to DRAM, cached copies are invalidated. An integrated NIC's transmission reads
//! DRAM (Sweeper, section II-A); a device behind the IIO is answered by whoever has the line, as on real processors.

use super::{DataPlane, PlacementSpec, Transfer};
use crate::memory::{Agent, Inbound, Outbound};

/// Data plane of conventional DMA.
#[derive(Clone, Debug)]
pub struct Dma;

impl DataPlane for Dma {
    fn new(_: &PlacementSpec) -> Dma {
        Dma
    }
    fn write(&mut self, _: &Transfer) -> Inbound {
        Inbound::Dram
    }
    fn read(&mut self, t: &Transfer) -> Outbound {
        if t.agent == Agent::Nic {
            Outbound::Dram
        } else {
            Outbound::Nearest
        }
    }
}
