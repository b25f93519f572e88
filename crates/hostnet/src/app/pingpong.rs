//! A counter that two threads exchange through two registers (CC-NIC, section 3.2). `stack/pingpong.rs` does the work.

use super::{Application, Site, Work};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where the two registers are. Node 0 is that of the thread that begins, node 1 the other's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum Registers {
    /// On two lines, both homed at node 0.
    S0,
    /// On two lines, both homed at node 1.
    S1,
    /// On two lines, each homed at its reader.
    Rd,
    /// On two lines, each homed at its writer.
    Wr,
    /// On one line, homed at node 0.
    S0C,
    /// On one line, homed at node 1.
    S1C,
}

impl Registers {
    /// Whether they share a line.
    pub fn together(self) -> bool {
        matches!(self, Registers::S0C | Registers::S1C)
    }

    /// Whether the register of the thread that begins is homed at the other's node, and whether the other's is.
    pub fn at_other(self) -> (bool, bool) {
        match self {
            Registers::S0 | Registers::S0C => (false, false),
            Registers::S1 | Registers::S1C => (true, true),
            Registers::Rd => (true, false),
            Registers::Wr => (false, true),
        }
    }
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PingPongSpec {
    /// Where the registers are.
    pub layout: Registers,
    /// Node of the other thread of each pair.
    #[serde(default)]
    pub peer_node: u8,
}

#[derive(Clone)]
pub struct PingPong;

impl Application for PingPong {
    type Spec = PingPongSpec;
    const WORK: Work = Work::Own;

    fn build(_: &PingPongSpec, _packet: u32, _site: Site) -> Result<PingPong, String> {
        Ok(PingPong)
    }
}
