//! What a core is made of.

use super::prefetch::PrefetchSpec;
use crate::kernel::units::{Freq, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Scheduling of a core.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pipeline {
    /// Misses block retirement; dispatch goes on until the ROB or a credit runs out.
    #[default]
    OutOfOrder,
    /// Stalls where a loaded value is first used.
    InOrder,
}

/// One kind of core.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CoreSpec {
    /// Cores on the host.
    pub count: u32,
    /// Clock.
    pub clock: Freq,
    /// Scheduling.
    #[serde(default)]
    pub pipeline: Pipeline,
    /// Instructions dispatched (and retired) a cycle.
    pub width: u32,
    /// Instructions a cycle that code other than line copies sustains: dependences, branches and
    /// instruction fetch keep it below the width.
    pub compute_ipc: f64,
    /// Reorder buffer entries.
    pub rob: u32,
    /// Store queue entries; a 64-byte line store takes `stores_per_line`.
    pub store_queue: u32,
    /// Line fill buffers: L1 misses under way at once, loads and stores together.
    pub lfb: u32,
    /// How long after a line fill buffer has become free a miss that found none takes it.
    #[serde(default)]
    pub lfb_retry: Span,
    /// Load (or store) instructions that move one 64-byte line.
    pub stores_per_line: u32,
    /// Stream prefetcher of the L2; none when absent. It follows application memory, not buffers of a NIC.
    #[serde(default)]
    pub prefetch: Option<PrefetchSpec>,
}
