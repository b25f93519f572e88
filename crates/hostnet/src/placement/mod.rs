//! Where inbound lines go and what happens to spent buffers. One file a policy; `docs/extending.md`
//! walks through a new one.

pub mod ddio;
pub mod dma;
pub mod iat;
pub mod ideal;
pub mod nebula;
pub mod resq;
pub mod sweeper;

use crate::device::nic::SweepTx;
use crate::memory::Inbound;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How inbound packets are injected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// To DRAM.
    Dma,
    /// Into some ways of the LLC.
    Ddio,
    /// Into an LLC of its own without limit.
    Ideal,
}

/// Everything that a scenario says about placement.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlacementSpec {
    /// How inbound packets are injected.
    pub policy: Policy,
    /// LLC ways that NIC writes may allocate into, counted from way 0.
    #[serde(default = "ddio::default_ways")]
    pub ways: u32,
    /// Sweeper on receive: software relinquishes a buffer after its last read.
    #[serde(default)]
    pub sweep_rx: bool,
    /// Sweeper on transmit, and who does it.
    #[serde(default)]
    pub sweep_tx: SweepTx,
    /// Moves ways between the NIC and the cores at run time.
    #[serde(default)]
    pub iat: Option<iat::IatSpec>,
    /// Caps receive rings so that all buffers fit the ways.
    #[serde(default)]
    pub resq: bool,
}

impl PlacementSpec {
    /// Where the NIC's next write goes.
    pub fn inbound(&self, ways: u32) -> Inbound {
        match self.policy {
            Policy::Dma => dma::inbound(),
            Policy::Ddio => ddio::inbound(ways),
            Policy::Ideal => ideal::inbound(),
        }
    }
    /// Whether transmit buffers are fetched from DRAM.
    pub fn tx_from_dram(&self) -> bool {
        self.policy == Policy::Dma
    }
}
