//! Parameters of the integrated I/O controllers, as a platform states them.

use crate::kernel::units::Span;
use crate::kernel::with_defaults;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Integrated I/O controllers: their buffers, and the time and bandwidth of the path to the home agent.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IioSpec {
    /// Number of I/O controllers, each with buffers of its own; devices are assigned to the controllers round robin.
    #[serde(default = "one")]
    pub count: u32,
    /// Write-buffer entries of each controller, one per cache line: credits of the P2M-Write domain.
    pub write_buffer: u32,
    /// Read-buffer entries of each controller, one per cache line: credits of the P2M-Read domain.
    pub read_buffer: u32,
    /// Time from an entry's allocation to the request's arrival at the home agent.
    pub to_cha: Span,
    /// Time between two lines on their way to the home agent, those that devices write and requests for those that they read
    /// alike: one clock period of the IIO's coherent side. The default is 0.
    #[serde(default)]
    pub line_interval: Span,
    /// Time from the home agent's answer to the release of the buffer entry.
    pub from_cha: Span,
    /// Time that a write spends at the home agent to obtain ownership of its line, in addition to the path to the
    /// memory controller; a write proceeds only with ownership.
    pub ownership: Span,
    /// Habits of the I/O controllers, which a platform sets; scenarios leave them alone.
    #[serde(default)]
    pub quirks: IioQuirks,
}

/// Habits of I/O controllers that processors and simulators differ in.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IioQuirks {
    /// Part of `line_interval` that a write takes regardless of how many bytes of its line it carries; the remainder of
    /// `line_interval` is in proportion to the bytes. When absent, every line takes all of `line_interval`.
    #[serde(default)]
    pub line_header: Option<Span>,
    /// Whether a write of a part of a line reads the line first. A cache in front of the home agent does so when it
    /// writes back whole lines. When false (the default), a partial write proceeds like a write of a whole line.
    #[serde(default)]
    pub fetch_partial: bool,
    /// Time that each write-back of a cache in front of the home agent takes on the path to the home agent. Such a
    /// cache keeps the lines that devices write to caches, and lines that devices read while the LLC had them modified.
    /// Each such line is written back once, after requests, and the `line_interval` of a request then covers no data.
    /// The default, 0, means that there is no such cache.
    #[serde(default)]
    pub write_back_interval: Span,
    /// Number of lines that may wait to be written back when `write_back_interval` is not 0; when more lines wait,
    /// requests wait for the oldest. The default is 1.
    #[serde(default = "one")]
    pub write_back_buffer: u32,
    /// Whether requests of cores also use the path to the home agent, for `line_interval` each. A modified line that an
    /// L2 writes back to the LLC then takes `write_back_interval` on this path, which is the path of the NIC's port.
    /// The default is false.
    #[serde(default)]
    pub shared_with_cores: bool,
    /// Time that a register write takes in addition to the link: in the bridges in front of the link, and in the
    /// register itself. The default is 0.
    #[serde(default)]
    pub register_write: Span,
    /// Time from the effect of a register write at the device to its answer at the IIO. A serialising instruction waits
    /// for the answer of each doorbell, and an in-order core waits for it at once. When absent, register writes are posted and have no answer.
    #[serde(default)]
    pub register_answer: Option<Span>,
}

impl Default for IioQuirks {
    fn default() -> IioQuirks {
        with_defaults()
    }
}

fn one() -> u32 {
    1
}
