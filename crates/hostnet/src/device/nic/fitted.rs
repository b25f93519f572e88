//! Links to which a value of a NIC was fitted, and what a faster link means for it.

use super::rings::MOST_IN_FLIGHT;
use super::spec::EthernetSpec;
use crate::device::endpoint::{check_counts, check_link};
use crate::device::pcie::{check_port, Generation, PcieSpec};
use crate::kernel::units::{Bandwidth, Span};
use crate::kernel::{Int, Real};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Origin of a fitted `receive_packets`: the links of the NIC that was measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FittedPackets {
    /// Value of `receive_packets` that was fitted. Another value of `receive_packets` is one's own, and is not judged.
    pub receive_packets: u32,
    /// Result of the measured NIC that the value reproduces, as a result has it: "76 million packets of 64 B a second".
    pub to: String,
    /// Rate of the Ethernet link of the measured NIC; a faster one here changes no result, and causes a warning.
    pub link: Bandwidth,
    /// PCIe generation of the measured NIC's port; a faster one here changes no result, and causes a warning.
    pub generation: Generation,
    /// PCIe lanes of the measured NIC's port; more of them here change no result, and cause a warning.
    pub lanes: u32,
}

impl FittedPackets {
    /// Checks that the links can exist.
    ///
    /// # Errors
    /// Returns one clause that names key and value.
    pub(super) fn check(&self) -> Result<(), String> {
        check_counts(&[("receive_packets", self.receive_packets, MOST_IN_FLIGHT)])?;
        check_port(self.lanes)?;
        check_link(self.link, Span(0))
    }

    /// Sentence about a NIC at `path` that keeps the fitted value with faster links than those of the measured NIC.
    fn outgrown(&self, path: &str, nic: &EthernetSpec, pcie: &PcieSpec) -> Option<String> {
        let wire = nic.link.0.to_f64() / self.link.0.to_f64();
        let port = |lane: f64, lanes: u32| lane * f64::from(lanes);
        let measured = port(self.generation.lane_bps(), self.lanes);
        let faster = wire.max(port(pcie.lane_bps(), nic.lanes) / measured);
        if faster <= 1.0 {
            return None;
        }
        let scaled = (f64::from(self.receive_packets) * faster).ceil().whole().min(MOST_IN_FLIGHT.into());
        Some(format!(
            "{path}.rings.receive_packets = {} was fitted to {} of a NIC with link = \"{}\" and {} lanes of {}, and this NIC has \
             \"{}\" and {} lanes of {}: the rate of small packets stays that NIC's; give the value of your NIC, or {scaled}, which \
             grows with the faster link",
            self.receive_packets,
            self.to,
            self.link,
            self.lanes,
            self.generation.name(),
            nic.link,
            nic.lanes,
            pcie.generation.name(),
        ))
    }
}

impl EthernetSpec {
    /// Sentence about a fitted value that this NIC, at `path` of a scenario, has outgrown.
    pub fn outgrown(&self, path: &str, pcie: &PcieSpec) -> Option<String> {
        let rings = self.rings.as_ref()?;
        let fitted = rings.quirks.fitted.as_ref().filter(|f| f.receive_packets == rings.receive_packets)?;
        fitted.outgrown(path, self, pcie)
    }
}
