//! What a core is made of.

use super::l1_prefetch::L1PrefetchSpec;
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
    /// Hardware threads of each, 1 or 2. With two, a node has twice as many logical cores, numbered as Linux does: those
    /// beyond its cores are the second threads of the first ones.
    #[serde(default = "one")]
    pub threads: u32,
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
    /// L2 misses under way at once, those of prefetches included. When absent, line fill buffers and the prefetcher's credits
    /// are the only bounds; where a NIC's hints are followed, both together are.
    #[serde(default)]
    pub l2_mshrs: Option<u32>,
    /// Accesses that one line fill buffer takes. One more blocks the L1 until the line is there, and loads then go on one a
    /// cycle. Without a limit when absent.
    #[serde(default)]
    pub lfb_targets: Option<u32>,
    /// How long after a line fill buffer has become free a miss that found none takes it.
    #[serde(default)]
    pub lfb_retry: Span,
    /// Write-combining buffers, of a line each. One when absent.
    #[serde(default)]
    pub combining_buffers: Option<u32>,
    /// Load (or store) instructions that move one 64-byte line.
    pub stores_per_line: u32,
    /// Prefetcher of the L2; none when absent. It follows application memory, and a NIC's buffers if it is told to.
    #[serde(default)]
    pub prefetch: Option<PrefetchSpec>,
    /// Prefetchers of the L1; none when absent. They follow loads of application memory.
    #[serde(default)]
    pub l1_prefetch: Option<L1PrefetchSpec>,
    /// Second-level TLB; addresses cost nothing to translate when absent. Redis servers use it.
    #[serde(default)]
    pub stlb: Option<TlbSpec>,
}

fn one() -> u32 {
    1
}

impl CoreSpec {
    /// What one of two threads has while both run: half of the reorder buffer, the queues and the buffers for misses (Intel 64
    /// and IA-32 Architectures Optimization Reference Manual, Hyper-Threading Technology, partitioned resources). Buffers
    /// that the threads compete for on the processor are halved, too.
    pub fn of_one_thread(&self) -> CoreSpec {
        let half = |n: u32| (n / 2).max(1);
        let mut of = self.clone();
        of.rob = half(self.rob);
        of.store_queue = half(self.store_queue).max(self.stores_per_line);
        of.lfb = half(self.lfb);
        of.l2_mshrs = self.l2_mshrs.map(half);
        of.combining_buffers = self.combining_buffers.map(half);
        if let Some(p) = &mut of.prefetch {
            (p.credits, p.waiting, p.reserve) = (half(p.credits), p.waiting / 2, p.reserve / 2);
        }
        of
    }
}

/// The TLB that a core asks last, of pages of 4 KiB.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlbSpec {
    /// Pages that it knows.
    pub entries: u32,
    /// Associativity.
    pub ways: u32,
    /// Cycles of a page walk besides the access to the last level of the page table.
    pub walk_cycles: u16,
}

impl TlbSpec {
    /// # Errors
    /// One clause with key and value.
    pub fn check(&self) -> Result<(), String> {
        let sets = self.entries / self.ways.max(1);
        if !(1..=24).contains(&self.ways) || !sets.is_power_of_two() || sets * self.ways != self.entries {
            return Err(format!(
                "stlb.entries = {} in ways = {}: the sets must be a power of two, of 1 to 24 ways",
                self.entries, self.ways
            ));
        }
        Ok(())
    }
}
