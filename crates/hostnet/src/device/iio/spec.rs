//! What an integrated I/O controller is made of, as a platform says it.

use crate::kernel::units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Buffers of the IIO and its distance to the home agent.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IioSpec {
    /// Controllers, each with buffers of its own; devices are dealt out to them in turn.
    #[serde(default = "one")]
    pub count: u32,
    /// Write buffer entries of each: credits of the P2M-Write domain.
    pub write_buffer: u32,
    /// Read buffer entries of each: credits of the P2M-Read domain.
    pub read_buffer: u32,
    /// From an entry's allocation to the arrival at the home agent.
    pub to_cha: Span,
    /// Time between two lines on their way to the home agent: a clock of the IIO's coherent side.
    #[serde(default)]
    pub line_interval: Span,
    /// The part of `line_interval` that a write takes however few of its line's bytes it has; the rest is in proportion to
    /// them. Every line takes all of it when absent.
    #[serde(default)]
    pub line_header: Option<Span>,
    /// From the home agent's answer to the entry's release.
    pub from_cha: Span,
    /// Time at the home agent that a write takes beside the way to the memory controller: ownership of
    /// the line, without which it may not go on.
    pub ownership: Span,
    /// A write of a part of a line reads the line first, as a cache in front of the home agent does that writes back whole
    /// lines. When false, it goes on as a whole line does.
    #[serde(default)]
    pub fetch_partial: bool,
    /// How long a line takes the way to the home agent when a cache in front of it writes the line back. Such a cache keeps what
    /// devices write to caches, and what they read while the LLC had it modified; each of these lines goes back once, behind
    /// requests. A request then takes `line_interval` without data. Zero: there is no such cache.
    #[serde(default)]
    pub write_back_interval: Span,
    /// Lines that may wait to be written back; requests wait for the oldest when there are more.
    #[serde(default = "one")]
    pub write_back_buffer: u32,
    /// Requests of cores pass the way to the home agent too, each `line_interval`. A modified line that their L2s give to the
    /// LLC takes `write_back_interval`, as one of the cache in front does. It is the way of the NIC's port.
    #[serde(default)]
    pub shared_with_cores: bool,
    /// Way of a register write beside the link: bridges in front of it, and the register.
    #[serde(default)]
    pub register_write: Span,
}

fn one() -> u32 {
    1
}
