//! Where inbound lines go and what happens to spent buffers. One file a policy; `docs/extending.md`
//! walks through a new one.

pub mod ddio;
pub mod dma;
pub mod iat;
pub mod ideal;
pub mod nebula;
pub mod resq;
pub mod sweeper;

use crate::kernel::Time;
use crate::memory::stats::{DmaCounts, MemStats};
use crate::memory::{Agent, Inbound, Outbound, Tag};
use iat::Iat;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who sweeps a transmit buffer, and when (Sweeper, section V-D).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SweepTx {
    /// Nobody.
    #[default]
    None,
    /// The NIC, right after transmission: the SweepBuffer bit of the work queue entry.
    Nic,
    /// The core, when it gets to the completion queue's hint.
    Cpu,
}

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

/// What a device is, however it is attached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceKind {
    /// Packets for software to receive.
    Nic,
    /// Remote memory accesses that no software here sees.
    Rdma,
    Storage,
}

/// A device's transfer as a policy sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transfer {
    /// The attachment of the device.
    pub agent: Agent,
    pub device: DeviceKind,
    /// The first line.
    pub line: u64,
    /// What the device says about it.
    pub tag: Tag,
}

impl Transfer {
    /// A transfer whose device says nothing about it.
    #[inline]
    pub fn of(agent: Agent, device: DeviceKind, line: u64) -> Transfer {
        Transfer { agent, device, line, tag: Tag::default() }
    }
}

/// What a policy sees at the end of an epoch: counts since the window began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counters {
    /// Lines that devices wrote, and those that the LLC did not have.
    pub writes: u64,
    pub write_misses: u64,
}

impl Counters {
    pub fn of(m: &MemStats) -> Counters {
        let sum = |f: fn(&DmaCounts) -> u64| m.dma.iter().map(f).sum();
        Counters { writes: sum(|d| d.writes), write_misses: sum(|d| d.write_misses) }
    }
}

/// The policy at work. It stands below every device: whoever moves lines for one asks it, request by request, and
/// its control loop sees counters once an epoch.
#[derive(Clone, Debug)]
pub struct Placement {
    policy: Policy,
    ways: u32,
    control: Option<(iat::IatSpec, Iat)>,
}

impl Placement {
    pub fn new(s: &PlacementSpec) -> Placement {
        Placement { policy: s.policy, ways: s.ways, control: s.iat.clone().map(|i| (i, Iat::default())) }
    }

    /// Where a write goes.
    #[inline]
    pub fn write(&mut self, t: &Transfer) -> Inbound {
        match self.policy {
            Policy::Dma => dma::write(t),
            Policy::Ddio => ddio::write(t, self.ways),
            Policy::Ideal => ideal::write(t),
        }
    }

    /// Where a read looks.
    #[inline]
    pub fn read(&mut self, t: &Transfer) -> Outbound {
        match self.policy {
            Policy::Dma => dma::read(t),
            Policy::Ddio | Policy::Ideal => Outbound::Nearest,
        }
    }

    /// LLC ways that devices have now.
    pub fn ways(&self) -> u32 {
        self.ways
    }

    /// Whether devices' writes enter the LLC.
    pub fn fills_llc(&self) -> bool {
        self.policy == Policy::Ddio
    }

    /// Time between two decisions of the control loop, if there is one.
    pub fn epoch(&self) -> Option<Time> {
        self.control.as_ref().map(|(s, _)| s.epoch.into())
    }

    /// An epoch ends.
    pub fn decide(&mut self, c: &Counters) {
        if let Some((s, iat)) = &mut self.control {
            self.ways = iat.decide(s, self.ways, c);
        }
    }

    /// Counters begin at zero again.
    pub fn restart(&mut self) {
        if let Some((_, iat)) = &mut self.control {
            *iat = Iat::default();
        }
    }
}
