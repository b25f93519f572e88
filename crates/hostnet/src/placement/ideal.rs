//! Ideal-DDIO: an LLC without limit for incoming packets alone (Sweeper, section III).

use crate::memory::Inbound;

pub fn inbound() -> Inbound {
    Inbound::Apart
}
