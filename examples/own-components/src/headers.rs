//! A policy: headers go into the LLC, all other lines to DRAM.

use hostnet::memory::Inbound;
use hostnet::placement::{DataPlane, DeviceTransfer, PlacementSpec, Ways};

/// Places the first line of each packet in the LLC.
#[derive(Clone, Debug)]
pub struct Headers {
    ways: Ways,
}

impl DataPlane for Headers {
    fn new(s: &PlacementSpec) -> Headers {
        Headers { ways: s.ways }
    }
    fn write(&mut self, t: &DeviceTransfer) -> Inbound {
        if t.tag.is_header() {
            Inbound::Llc { ways: self.ways.mask() }
        } else {
            Inbound::Dram
        }
    }
    fn ways(&self) -> u32 {
        self.ways.count
    }
}
