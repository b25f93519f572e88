//! Specification of a core.

use super::l1_prefetch::L1PrefetchSpec;
use super::prefetch::PrefetchSpec;
use crate::kernel::units::{Freq, Span};
use crate::kernel::with_defaults;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Order in which a core executes instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pipeline {
    /// Out of order: misses block retirement; dispatch continues until no ROB entry or no line fill buffer is free.
    #[default]
    OutOfOrder,
    /// In order: the core stalls where a loaded value is first used.
    InOrder,
}

/// Instructions that wait in the reorder buffer until their data has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RobHolds {
    /// Loads that miss the L2 wait, and loads that hit when their address comes so late that the buffer would fill before. The
    /// buffer limits memory accesses; other code is dispatched without limit.
    #[default]
    Misses,
    /// All loads that hit the L2 wait as well, and the buffer limits all instructions. Stores that hit the L2 wait in the
    /// store queue.
    All,
}

/// Specification of the host's cores.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CoreSpec {
    /// Number of cores of a node; `nodes.cores` has precedence. Cores that no tenant takes are idle and change nothing.
    pub count: u32,
    /// Hardware threads of a core, 1 or 2. With two, a node has twice as many logical cores, numbered as in Linux:
    /// first come the first threads of all cores, then the second threads of the same cores in the same order. A core
    /// whose second thread no tenant takes is as fast as a core with one. Two threads that run have half of the core's
    /// buffers each, so that these are even numbers.
    #[serde(default = "one")]
    pub threads: u32,
    /// Clock frequency of the core.
    pub clock: Freq,
    /// Execution order of the pipeline.
    #[serde(default)]
    pub pipeline: Pipeline,
    /// Instructions that a core can dispatch, and retire, in one cycle.
    pub width: u32,
    /// Instructions per cycle that code other than line copies sustains. Dependences, branches and instruction fetch
    /// keep the value below `width`.
    pub compute_ipc: f64,
    /// Number of reorder buffer entries, in instructions.
    pub rob: u32,
    /// Number of store queue entries; a store of a 64-byte line takes `stores_per_line` entries.
    pub store_queue: u32,
    /// Number of line fill buffers: L1 misses, of loads and stores together, that may be outstanding.
    pub lfb: u32,
    /// Load or store instructions that it takes to move one 64-byte line.
    pub stores_per_line: u32,
    /// Hardware prefetcher of the L2 or the LLC; none when absent. The prefetcher follows accesses to application
    /// memory, and with its key `network` also accesses to a NIC's buffers.
    #[serde(default)]
    pub prefetch: Option<PrefetchSpec>,
    /// Hardware prefetchers of the L1, which follow loads of application memory; none when absent.
    #[serde(default)]
    pub l1_prefetch: Option<L1PrefetchSpec>,
    /// Second-level TLB, which the model of Redis uses; without this TLB, address translation takes no time.
    #[serde(default)]
    pub stlb: Option<TlbSpec>,
    /// Habits of the core's buffers for misses, which a platform sets; scenarios leave them alone.
    #[serde(default)]
    pub quirks: CoreQuirks,
}

/// Habits of a core's buffers for misses that processors and simulators differ in.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CoreQuirks {
    /// Instructions that wait in the reorder buffer of an out-of-order core: "misses" (the default) or "all".
    #[serde(default)]
    pub rob_holds: RobHolds,
    /// Core cycles that a serialising instruction takes in an out-of-order core after all earlier loads and stores are
    /// done and all doorbells are answered: the pipeline empties, and fills again. When absent, such instructions wait
    /// for nothing.
    #[serde(default)]
    pub serialise_cycles: Option<u32>,
    /// Core cycles for which a taken branch leaves the fetch stage without instructions. The default is 0.
    #[serde(default)]
    pub taken_branch_cycles: u32,
    /// Number of L2 MSHRs: L2 misses, including those of prefetches, that may be outstanding. When absent, only `lfb`
    /// and the prefetcher's `credits` limit the L2's misses; where the core follows a NIC's prefetch hints, the sum of
    /// both is the limit.
    #[serde(default)]
    pub l2_mshrs: Option<u32>,
    /// Number of accesses that one line fill buffer takes. A further access blocks the L1 until the line has arrived,
    /// and loads then proceed at one a cycle. When absent, there is no limit.
    #[serde(default)]
    pub lfb_targets: Option<u32>,
    /// Time after which a miss that found no free line fill buffer takes a buffer that has become free.
    #[serde(default)]
    pub lfb_retry: Span,
    /// Number of write-combining buffers, each of one line; 1 when absent. Changes nothing for a core that combines stores
    /// of one line at a time.
    #[serde(default)]
    pub combining_buffers: Option<u32>,
}

impl Default for CoreQuirks {
    fn default() -> CoreQuirks {
        with_defaults()
    }
}

fn one() -> u32 {
    1
}

impl CoreSpec {
    /// Resources of one of two threads of a core while both threads run: half of the reorder buffer, the queues and the
    /// buffers for misses (Intel 64 and IA-32 Architectures Optimization Reference Manual, Hyper-Threading Technology,
    /// partitioned resources). Buffers for which the threads of a real processor compete are halved as well.
    pub fn of_one_thread(&self) -> CoreSpec {
        let half = |n: u32| (n / 2).max(1); // of an odd number only where the core's second thread is idle
        let mut of = self.clone();
        of.rob = half(self.rob);
        of.store_queue = half(self.store_queue).max(self.stores_per_line);
        of.lfb = half(self.lfb);
        of.quirks.l2_mshrs = self.quirks.l2_mshrs.map(half);
        of.quirks.combining_buffers = self.quirks.combining_buffers.map(half);
        if let Some(p) = &mut of.prefetch {
            (p.credits, p.quirks.waiting, p.quirks.reserve) =
                (half(p.credits), p.quirks.waiting / 2, p.quirks.reserve / 2);
        }
        of
    }

    /// Keys whose values [`CoreSpec::of_one_thread`] halves, with the values.
    pub fn halved(&self) -> Vec<(&'static str, u32)> {
        let buffers = [("rob", self.rob), ("store_queue", self.store_queue), ("lfb", self.lfb)].map(Some);
        let quirks = [
            self.quirks.l2_mshrs.map(|n| ("quirks.l2_mshrs", n)),
            self.quirks.combining_buffers.map(|n| ("quirks.combining_buffers", n)),
            self.prefetch.as_ref().filter(|p| p.enabled).map(|p| ("prefetch.credits", p.credits)),
        ];
        buffers.into_iter().chain(quirks).flatten().collect()
    }

    /// Core whose programs list each instruction that accesses memory, so that an access is one instruction and not those that
    /// access a whole line.
    pub fn of_single_accesses(&self) -> CoreSpec {
        CoreSpec { stores_per_line: 1, ..self.clone() }
    }
}

/// Last-level TLB of a core, for pages of 4 KiB.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlbSpec {
    /// Number of pages whose translations the TLB holds; `entries` / `ways` must be a power of two.
    pub entries: u32,
    /// Associativity of the TLB, 1 to 24.
    pub ways: u32,
    /// Core cycles of a page walk, not including the access to the last level of the page table.
    pub walk_cycles: u16,
}

impl TlbSpec {
    /// Checks that the TLB's sets are a power of two with 1 to 24 ways.
    ///
    /// # Errors
    /// Fails with one clause that names key and value.
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
