//! Specification of several nodes in one machine, and of the links between them.

use crate::kernel::units::{ByteRate, Freq, Size, Span};
use crate::kernel::Int;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Nodes of a machine: sockets, or a processor and an accelerator with coherent memory.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodesSpec {
    /// Number of nodes, 1 or 2; each has caches and memory controllers as the platform specifies. Two nodes need
    /// `link`.
    #[serde(default = "one")]
    pub count: u32,
    /// Number of cores of a node. When absent, `core.count`.
    #[serde(default)]
    pub cores: Option<u32>,
    /// Clock frequencies of LLC, crossbar and home agent, by node. Nodes beyond the list have `caches.uncore_clock`.
    #[serde(default)]
    pub uncore_clock: Vec<Freq>,
    /// Cycles of one crossing between a node's home agents and its link agent, and between a home agent and a memory
    /// controller, at the node's uncore clock. With 0, the default, `link.latency` and `memory.static_latency_ns` include
    /// these crossings.
    #[serde(default)]
    pub crossing_cycles: u32,
    /// Links between two nodes; needed when `count` is 2.
    #[serde(default)]
    pub link: Option<NodeLinkSpec>,
    /// Habits of the coherence protocol between nodes, which a platform sets; scenarios leave them alone.
    #[serde(default)]
    pub quirks: NodesQuirks,
}
fn one() -> u32 {
    1
}

/// Largest number of cores that the snoop filter tracks.
pub const MOST_CORES: u32 = 128;

impl NodesSpec {
    /// Checks that the values are valid and that two nodes have links.
    ///
    /// # Errors
    /// Fails with one clause that names the key, its value and the valid values.
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
        let uncore_clock = Vec::new();
        NodesSpec { count: 1, cores: None, uncore_clock, crossing_cycles: 0, link: None, quirks: Default::default() }
    }
}

/// Links between two nodes (UPI, CXL). A hash of a line's address assigns the line to one of the links; every value is
/// for one direction.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeLinkSpec {
    /// Number of parallel links.
    pub links: u32,
    /// Data rate of one link, in bytes per second.
    pub rate: ByteRate,
    /// Latency of a link from one agent to the other, without serialisation.
    pub latency: Span,
    /// Size of a message without data (a request, a snoop or a response), including its header.
    pub message: Size,
    /// Size of a message with a line of 64 B, including its header.
    pub data: Size,
    /// Bytes of `data` that a line leaves free in its flits. Messages without data that find the link busy use them. 0
    /// when absent.
    #[serde(default)]
    pub spare: Size,
    /// Number of requests of a node that may be outstanding over the links.
    pub credits: u32,
}

/// Choices of the coherence protocol between nodes, which is MESIF.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodesQuirks {
    /// Whether a read that finds the line modified in the other node takes the line with the permission to write.
    /// Otherwise the line is written to its home and both nodes share it. True when absent.
    #[serde(default = "yes")]
    pub migratory: bool,
    /// Whether a miss on a line of the reader's own memory that the other node may have modified reads memory in
    /// parallel with the snoop. True when absent.
    #[serde(default = "yes")]
    pub speculative: bool,
    /// Time that a speculative read whose data is not used adds to the miss that caused the read, beyond the wait for
    /// the read; see `speculative`. 0 when absent.
    #[serde(default)]
    pub speculative_penalty: Span,
    /// Whether memory keeps the directory of the copies in the other node with each line, so that a new state costs a
    /// write. The home node writes a line that the other node takes from the home's caches, and one that it reads from
    /// memory first. False when absent.
    #[serde(default)]
    pub directory_writes: bool,
}
fn yes() -> bool {
    true
}

impl Default for NodesQuirks {
    fn default() -> NodesQuirks {
        NodesQuirks { migratory: true, speculative: true, speculative_penalty: Span(0), directory_writes: false }
    }
}
