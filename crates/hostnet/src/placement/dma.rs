//! Conventional DMA: every block goes to DRAM, cached copies are invalidated. An integrated NIC's transmission reads
//! DRAM (Sweeper, section II-A); a device behind the IIO is answered by whoever has the line, as on real processors.

use super::Transfer;
use crate::memory::{Agent, Inbound, Outbound};

pub fn write(_: &Transfer) -> Inbound {
    Inbound::Dram
}

pub fn read(t: &Transfer) -> Outbound {
    if t.agent == Agent::Nic {
        Outbound::Dram
    } else {
        Outbound::Nearest
    }
}
