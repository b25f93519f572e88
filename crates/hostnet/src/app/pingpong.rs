//! A counter that two threads exchange through two registers (CC-NIC, section 3.2). `stack/pingpong.rs` does the work.

use super::{Application, Site, Work};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Location of the two registers. Node 0 is the node of the thread that begins, node 1 that of the other thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum Registers {
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

impl Registers {
    /// Whether the registers share a line.
    pub fn together(self) -> bool {
        matches!(self, Registers::S0C | Registers::S1C)
    }

    /// Whether each register is homed at node 1: the register of the thread that begins, and the other thread's
    /// register.
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
    /// Location of the two registers.
    pub layout: Registers,
    /// Node of the other thread of each pair. The default is 0.
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
