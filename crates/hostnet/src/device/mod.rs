//! Devices. One file each, and one line of the list below; `docs/develop/extending.md` walks through a new one.

pub mod endpoint;
mod event;
pub mod iio;
pub mod pcie;
pub mod response;

use crate::kernel::{LineAddr, Time};
use crate::meter::drops::Ledger;
use crate::placement::DeviceKind;
use endpoint::{Bay, Device, Direction, Offer, Piece};
#[cfg(test)]
pub(crate) use event::testing;
pub use event::{Event, NicAt, Posts, RingTask, Side};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Declares the devices, a file each: their kinds in scenarios, and the dispatch.
macro_rules! devices {
    ($($(#[$doc:meta])* mod $file:ident => $name:ident($device:ty),)*) => {
        $(pub mod $file;)*

        /// Peripherals behind the I/O controller.
        #[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        pub enum PeripheralSpec {
            $($(#[$doc])* $name(<$device as Device>::Spec),)*
        }

        impl PeripheralSpec {
            /// # Errors
            /// One clause with key and value, when the parameters do not fit together.
            pub fn check(&self) -> Result<(), String> {
                match self { $(PeripheralSpec::$name(s) => <$device as Device>::check(s),)* }
            }

            /// Ports that its devices take.
            pub fn count(&self) -> u32 {
                match self { $(PeripheralSpec::$name(s) => <$device as Device>::count(s),)* }
            }

            /// Read requests of each device under way at most.
            pub fn tags(&self) -> u32 {
                match self { $(PeripheralSpec::$name(s) => <$device as Device>::link(s).1,)* }
            }

            /// The devices, each with its lanes and tags.
            pub fn build(&self, bay: &mut Bay) -> Vec<(Endpoint, u32, u32)> {
                match self {
                    $(PeripheralSpec::$name(s) => {
                        let (lanes, tags) = <$device as Device>::link(s);
                        let mut built = Vec::new();
                        for _ in 0..<$device as Device>::count(s) {
                            built.push((Endpoint::$name(Box::new(<$device as Device>::build(s, bay))), lanes, tags));
                            bay.port += 1;
                        }
                        built
                    })*
                }
            }
        }

        /// What a PCIe port has behind it: a device of any kind; see [`Device`].
        #[derive(Clone)]
        pub enum Endpoint {
            $($(#[$doc])* $name(Box<$device>),)*
        }

        impl Endpoint {
            #[inline]
            pub fn may_move(&self) -> [bool; 2] {
                match self { $(Endpoint::$name(d) => Device::may_move(&**d),)* }
            }
            #[inline]
            pub fn next(&mut self, way: Direction, now: Time) -> Offer {
                match self { $(Endpoint::$name(d) => if d.moves(way) { Device::next(&mut **d, way, now) } else { Offer::Nothing },)* }
            }
            #[inline]
            pub fn take(&mut self, way: Direction, n: u32, now: Time) -> Piece {
                debug_assert!(matches!(self.next(way, now), Offer::Lines(m) if m >= n), "more lines than promised");
                match self { $(Endpoint::$name(d) => Device::take(&mut **d, way, n, now),)* }
            }
            #[inline]
            pub fn done(&mut self, cal: &mut impl Posts, way: Direction, slot: u16, n: u32, now: Time) -> bool {
                debug_assert!(self.moves(way), "the device moves nothing {way:?}");
                match self { $(Endpoint::$name(d) => Device::done(&mut **d, cal, way, slot, n, now),)* }
            }
            #[inline]
            pub fn expect(&mut self, slot: u16, n: u32) -> Option<bool> {
                match self { $(Endpoint::$name(d) => Device::expect(&mut **d, slot, n),)* }
            }
            #[inline]
            pub fn moves(&self, way: Direction) -> bool {
                match self { $(Endpoint::$name(d) => d.moves(way),)* }
            }
            pub fn kind(&self) -> DeviceKind {
                match self { $(Endpoint::$name(_) => <$device as Device>::KIND,)* }
            }
            pub fn makes_work(&self) -> bool {
                match self { $(Endpoint::$name(d) => d.makes_work(),)* }
            }
            pub fn write_at_once(&mut self) -> Option<(LineAddr, u32)> {
                if !self.moves(Direction::P2mWrite) {
                    return None;
                }
                match self { $(Endpoint::$name(d) => d.write_at_once(),)* }
            }
            pub fn completed(&self) -> u64 {
                match self { $(Endpoint::$name(d) => Device::completed(&**d),)* }
            }
            pub fn drops(&self) -> Option<&Ledger> {
                match self { $(Endpoint::$name(d) => Device::drops(&**d),)* }
            }
            pub fn restart_meters(&mut self, now: Time) {
                match self { $(Endpoint::$name(d) => Device::restart_meters(&mut **d, now),)* }
            }
            /// # Errors
            /// One sentence about what is not conserved.
            pub fn check(&self) -> Result<(), String> {
                match self { $(Endpoint::$name(d) => d.audit(),)* }
            }
        }
    };
}

devices! {
    /// NVMe SSDs.
    mod ssd => Ssd(ssd::Ssd),
    /// RoCE NIC with priority flow control.
    mod roce => Roce(roce::Roce),
    /// Ethernet NIC behind a PCIe port, for a poll-mode driver or the kernel's TCP and UDP.
    mod nic => Ethernet(nic::Nic),
}

impl PeripheralSpec {
    /// The Ethernet NIC; None for a device of another kind.
    pub fn ethernet(&self) -> Option<&nic::EthernetSpec> {
        match self {
            PeripheralSpec::Ethernet(e) => Some(e),
            _ => None,
        }
    }
}
