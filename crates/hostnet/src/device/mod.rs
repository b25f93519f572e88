//! Devices behind PCIe ports, the I/O controllers and the links. Each device is one file and one line of the list
//! below; `docs/develop/extending.md` explains how to add one.

pub mod endpoint;
mod event;
pub mod iio;
pub mod pcie;
pub mod response;

use crate::kernel::{LineAddr, NodeId, Time};
use crate::meter::drops::DropLedger;
use crate::placement::DeviceKind;
use endpoint::{Device, DeviceBuildContext, DmaDirection, Offer, Piece};
#[cfg(test)]
pub(crate) use event::testing;
pub use event::{DeviceEvent, DevicePosts, NicAt, RingSide, RingTask};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Declares the devices, one file each: their kinds in scenarios, and the dispatch over them.
macro_rules! devices {
    ($($(#[$doc:meta])* mod $file:ident => $name:ident($device:ty),)*) => {
        $(pub mod $file;)*

        /// Peripherals behind the I/O controllers.
        #[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        #[expect(clippy::large_enum_variant, reason = "a scenario has a handful of them")]
        pub enum PeripheralSpec {
            $($(#[$doc])* $name(<$device as Device>::Spec),)*
        }

        impl PeripheralSpec {
            /// Checks that the device's parameters fit together.
            ///
            /// # Errors
            /// Returns one clause that names key and value.
            pub fn check(&self) -> Result<(), String> {
                match self { $(PeripheralSpec::$name(s) => <$device as Device>::check(s),)* }
            }

            /// Number of ports that the devices of this entry occupy.
            pub fn count(&self) -> u32 {
                match self { $(PeripheralSpec::$name(s) => <$device as Device>::count(s),)* }
            }

            /// Node that the devices are attached to.
            pub fn node(&self) -> NodeId {
                match self { $(PeripheralSpec::$name(s) => NodeId(<$device as Device>::node(s)),)* }
            }

            /// PCIe lanes of each device.
            pub fn lanes(&self) -> u32 {
                match self { $(PeripheralSpec::$name(s) => <$device as Device>::link(s).0,)* }
            }

            /// Maximum number of read requests that each device has outstanding.
            pub fn tags(&self) -> u32 {
                match self { $(PeripheralSpec::$name(s) => <$device as Device>::link(s).1,)* }
            }

            /// Builds the devices of this entry; returns each with its lanes and tags.
            pub fn build(&self, context: &mut DeviceBuildContext) -> Vec<(Endpoint, u32, u32)> {
                match self {
                    $(PeripheralSpec::$name(s) => {
                        let (lanes, tags) = <$device as Device>::link(s);
                        let mut built = Vec::new();
                        context.node = self.node();
                        for _ in 0..<$device as Device>::count(s) {
                            built.push((Endpoint::$name(Box::new(<$device as Device>::build(s, context))), lanes, tags));
                            context.port += 1;
                        }
                        built
                    })*
                }
            }
        }

        /// A device of any kind behind a PCIe port; see [`Device`].
        #[derive(Clone)]
        pub enum Endpoint {
            $($(#[$doc])* $name(Box<$device>),)*
        }

        impl Endpoint {
            /// Directions in which the device may have a transfer; see `Device::may_move`.
            #[inline]
            pub fn may_move(&self) -> [bool; 2] {
                match self { $(Endpoint::$name(d) => Device::may_move(&**d),)* }
            }
            /// The transfer that the device would make next; see `Device::next`.
            #[inline]
            pub fn next(&mut self, way: DmaDirection, now: Time) -> Offer {
                match self { $(Endpoint::$name(d) => if d.moves(way) { Device::next(&mut **d, way, now) } else { Offer::Nothing },)* }
            }
            /// Takes lines of the next transfer; see `Device::take`.
            #[inline]
            pub fn take(&mut self, way: DmaDirection, n: u32, now: Time) -> Piece {
                debug_assert!(matches!(self.next(way, now), Offer::Lines(m) if m >= n), "more lines than promised");
                match self { $(Endpoint::$name(d) => Device::take(&mut **d, way, n, now),)* }
            }
            /// Notes that lines are done; see `Device::done`.
            #[inline]
            pub fn done(&mut self, cal: &mut impl DevicePosts, way: DmaDirection, slot: u16, n: u32, now: Time) -> bool {
                debug_assert!(self.moves(way), "the device moves nothing {way:?}");
                match self { $(Endpoint::$name(d) => Device::done(&mut **d, cal, way, slot, n, now),)* }
            }
            /// Announces the data of a read request; see `Device::expect`.
            #[inline]
            pub fn expect(&mut self, slot: u16, n: u32) -> Option<bool> {
                match self { $(Endpoint::$name(d) => Device::expect(&mut **d, slot, n),)* }
            }
            /// Whether the device ever moves lines in direction `way`.
            #[inline]
            pub fn moves(&self, way: DmaDirection) -> bool {
                match self { $(Endpoint::$name(d) => d.moves(way),)* }
            }
            /// Kind of the device.
            pub fn kind(&self) -> DeviceKind {
                match self { $(Endpoint::$name(_) => <$device as Device>::KIND,)* }
            }
            /// Whether the device generates work without software; see `Device::makes_work`.
            pub fn makes_work(&self) -> bool {
                match self { $(Endpoint::$name(d) => d.makes_work(),)* }
            }
            /// The lines that the device writes next in functional mode; see `Device::write_functional`.
            pub fn write_functional(&mut self) -> Option<(LineAddr, u32)> {
                if !self.moves(DmaDirection::P2mWrite) {
                    return None;
                }
                match self { $(Endpoint::$name(d) => d.write_functional(),)* }
            }
            /// Number of completed commands, messages or frames; see `Device::completed`.
            pub fn completed(&self) -> u64 {
                match self { $(Endpoint::$name(d) => Device::completed(&**d),)* }
            }
            /// Ledger of the packets that the device has lost; see `Device::drops`.
            pub fn drops(&self) -> Option<&DropLedger> {
                match self { $(Endpoint::$name(d) => Device::drops(&**d),)* }
            }
            /// Begins the measured window at `now`.
            pub fn restart_meters(&mut self, now: Time) {
                match self { $(Endpoint::$name(d) => Device::restart_meters(&mut **d, now),)* }
            }
            /// Checks the device's conservation laws.
            ///
            /// # Errors
            /// Returns one sentence that names the quantity that is not conserved.
            pub fn check(&self) -> Result<(), String> {
                match self { $(Endpoint::$name(d) => d.audit(),)* }
            }
        }
    };
}

devices! {
    /// NVMe SSDs that move blocks to or from memory.
    mod ssd => Ssd(ssd::Ssd),
    /// RoCE NIC with priority flow control.
    mod roce => Roce(roce::Roce),
    /// Ethernet NIC for the kernel's TCP and UDP and for poll-mode drivers.
    mod nic => Ethernet(nic::Nic),
}

impl PeripheralSpec {
    /// Parameters of the Ethernet NIC, if this peripheral is one.
    pub fn ethernet(&self) -> Option<&nic::EthernetSpec> {
        match self {
            PeripheralSpec::Ethernet(e) => Some(e),
            _ => None,
        }
    }
}
