//! Ideal-DDIO: an LLC without limit for incoming packets alone (Sweeper, section III).

use super::Transfer;
use crate::memory::Inbound;

pub fn write(_: &Transfer) -> Inbound {
    Inbound::Apart
}
