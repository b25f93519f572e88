//! A counter that two threads exchange through two registers (CC-NIC, section 3.2). `stack/pingpong.rs` does the work.

use super::{AppBuildContext, Application, WorkSource};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Location of the two registers. Node 0 is the node of the thread that begins, node 1 that of the other thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum RegisterLayout {
    /// Two lines, both homed at node 0.
    S0,
    /// Two lines, both homed at node 1.
    S1,
    /// Two lines, each homed at its reader.
    Rd,
    /// Two lines, each homed at its writer.
    Wr,
    /// One line, homed at node 0.
    S0C,
    /// One line, homed at node 1.
    S1C,
}

impl RegisterLayout {
    /// Whether the registers share a line.
    pub fn together(self) -> bool {
        matches!(self, RegisterLayout::S0C | RegisterLayout::S1C)
    }

    /// Whether each register is homed at node 1: the register of the thread that begins, and the other thread's
    /// register.
    pub fn at_other(self) -> (bool, bool) {
        match self {
            RegisterLayout::S0 | RegisterLayout::S0C => (false, false),
            RegisterLayout::S1 | RegisterLayout::S1C => (true, true),
            RegisterLayout::Rd => (true, false),
            RegisterLayout::Wr => (false, true),
        }
    }
}

/// Parameters of the exchange of a counter between two threads.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PingPongSpec {
    /// Location of the two registers.
    pub layout: RegisterLayout,
    /// Node of the other thread of each pair. The default is 0.
    #[serde(default)]
    pub peer_node: u8,
}

/// Application whose threads exchange a counter.
#[derive(Clone)]
pub struct PingPong;

impl Application for PingPong {
    type Spec = PingPongSpec;
    const WORK: WorkSource = WorkSource::Own;

    fn build(_: &PingPongSpec, _packet: u32, _context: AppBuildContext) -> Result<PingPong, String> {
        Ok(PingPong)
    }
}
