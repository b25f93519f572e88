//! Conventional DMA: every block goes to DRAM, cached copies are invalidated, transmission reads
//! DRAM (Sweeper, section II-A).

use crate::memory::Inbound;

pub fn inbound() -> Inbound {
    Inbound::Dram
}
