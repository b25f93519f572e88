//! Several nodes in one machine, and the links between them.

use crate::kernel::units::{ByteRate, Freq, Size, Span};
use crate::kernel::Int;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Nodes of a machine: sockets, or a processor and an accelerator with coherent memory.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodesSpec {
    /// Nodes, 1 or 2; each has caches and memory controllers of the platform's.
    #[serde(default = "one")]
    pub count: u32,
    /// Cores of a node; `core.count` when absent.
    #[serde(default)]
    pub cores: Option<u32>,
    /// Clock of LLC, crossbar and home agent by node; `caches.uncore_clock` for those that are not listed.
    #[serde(default)]
    pub uncore_clock: Vec<Freq>,
    /// What joins two nodes.
    #[serde(default)]
    pub link: Option<NodeLinkSpec>,
    /// How lines move between nodes.
    #[serde(default)]
    pub protocol: NodesProtocolSpec,
}
fn one() -> u32 {
    1
}

/// Cores that the snoop filter tracks.
pub const MOST_CORES: u32 = 128;

impl NodesSpec {
    /// # Errors
    /// One clause that names the key, its value and what would be valid.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=2).contains(&self.count) {
            return Err(format!("count = {} is not 1 or 2; more nodes are not built yet", self.count));
        }
        if self.uncore_clock.len() > self.count.to_usize() {
            let n = self.uncore_clock.len();
            return Err(format!("uncore_clock has {n} clocks for count = {} nodes", self.count));
        }
        if let Some(f) = self.uncore_clock.iter().find(|f| f.0 < 1_000_000) {
            return Err(format!("uncore_clock = \"{f}\" is below 1 MHz"));
        }
        let Some(l) = &self.link else {
            return if self.count == 1 { Ok(()) } else { Err("count = 2 needs a table link".into()) };
        };
        let positive = [
            ("links", u64::from(l.links)),
            ("rate", l.rate.0),
            ("message", l.message.0),
            ("data", l.data.0),
            ("credits", l.credits.into()),
        ];
        match positive.iter().find(|p| p.1 == 0) {
            Some((key, _)) => Err(format!("link.{key} = 0 must be positive")),
            None if l.data.0 < super::LINE => Err(format!("link.data = \"{}\" does not hold a line of 64 B", l.data)),
            None if l.spare.0 >= l.data.0 => {
                Err(format!("link.spare = \"{}\" is not below link.data = \"{}\"", l.spare, l.data))
            }
            None => Ok(()),
        }
    }
}

impl Default for NodesSpec {
    fn default() -> NodesSpec {
        NodesSpec { count: 1, cores: None, uncore_clock: Vec::new(), link: None, protocol: Default::default() }
    }
}

/// Links between two nodes (UPI, CXL). A hash of its address gives each line one of them; every value is for one direction.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeLinkSpec {
    /// Links.
    pub links: u32,
    /// Rate of one link.
    pub rate: ByteRate,
    /// From one agent to the other, without serialisation.
    pub latency: Span,
    /// Bytes of a message without data: a request, a snoop, a response.
    pub message: Size,
    /// Bytes of a line with its header.
    pub data: Size,
    /// Of these, bytes that the line leaves free in its flits: messages without data that find the link busy travel in them.
    #[serde(default)]
    pub spare: Size,
    /// Requests of a node that may be under way over the links.
    pub credits: u32,
}

/// What the protocol between nodes does beyond MESIF.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodesProtocolSpec {
    /// A read that finds the line modified in the other node takes it, with permission to write. Without, the line is
    /// written to its home and both nodes share it.
    #[serde(default = "yes")]
    pub migratory: bool,
    /// A miss on a line of the reader's own memory that the other node may have written reads memory beside the snoop.
    #[serde(default = "yes")]
    pub speculative: bool,
    /// Time that the useless read adds to such a miss, beside what it waits for.
    #[serde(default)]
    pub speculative_penalty: Span,
}
fn yes() -> bool {
    true
}

impl Default for NodesProtocolSpec {
    fn default() -> NodesProtocolSpec {
        NodesProtocolSpec { migratory: true, speculative: true, speculative_penalty: Span(0) }
    }
}
