//! Specification of a cache hierarchy.

use super::array::{shape, Indexing, Replacement};
use super::memory_link::MemoryLinkSpec;
use super::protocol::LlcProtocol;
use super::LINE;
use crate::kernel::units::{Freq, Size, Span};
use crate::kernel::with_defaults;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One level of private cache.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheSpec {
    /// Capacity of the cache.
    pub size: Size,
    /// Associativity of the cache.
    pub ways: u32,
    /// Cycles of the core clock that a look-up adds to an access.
    pub latency_cycles: u32,
    /// Cycles of the core clock that a line takes through this cache on its way from the next level to the requester; 0
    /// when absent.
    #[serde(default)]
    pub response_cycles: u32,
    /// Replacement policy of the cache.
    #[serde(default)]
    pub replacement: Replacement,
}

/// Treatment of the LLC's copy when a core's read hits it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReadHit {
    /// The line stays in the LLC with its dirty state; the core receives a clean copy (Sweeper, section V-C).
    #[default]
    Retain,
    /// The line moves to the private cache with its dirty state (Skylake, as IDIO describes it).
    Migrate,
}

/// Treatment of a line's copies when a device reads the line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviceRead {
    /// No copy changes; the device receives a snapshot.
    #[default]
    Snapshot,
    /// A private copy is first evicted to the LLC if the copy is dirty or the LLC does not hold the line (IDIO,
    /// sections II-A and III).
    Demote,
    /// The line is installed in the LLC with the duty to write it back: in place or in the ways of device writes, even
    /// if it comes from DRAM. Private copies stay, shared and clean; before its next store, a core asks the LLC for
    /// ownership.
    Install,
}

/// Destination of a clean victim of an L2.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CleanVictim {
    /// The victim goes to the LLC, as dirty victims do.
    #[default]
    Allocate,
    /// The victim goes to the LLC if its line was fetched from DRAM; the copy of a line that the LLC supplied is
    /// dropped.
    AllocateFetched,
    /// The victim is dropped.
    Drop,
}

/// Inclusion policy of the LLC for fills from DRAM for cores.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LlcRole {
    /// Non-inclusive: fills bypass the LLC, and victims of L2s fill it.
    #[default]
    Victim,
    /// Mostly inclusive: fills go to the LLC as well.
    Inclusive,
    /// Strictly inclusive: fills go to the LLC as well, and a line that the LLC evicts is invalidated in the private
    /// caches (back-invalidation).
    StrictlyInclusive,
}

impl LlcRole {
    /// The word by which a scenario names the role.
    pub(super) const fn word(self) -> &'static str {
        match self {
            LlcRole::Victim => "victim",
            LlcRole::Inclusive => "inclusive",
            LlcRole::StrictlyInclusive => "strictly_inclusive",
        }
    }
}

/// Treatment of the LLC's copy when a store hits it, for `role = "victim"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StoreHit {
    /// The line moves to the private cache with its dirty state.
    #[default]
    Move,
    /// The line stays in the LLC with its dirty state; the core receives a copy to write (zSim).
    Retain,
}

/// Request of a store whose core has a clean copy of a line that the LLC has evicted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UpgradeMiss {
    /// The store asks for permission to write, without data.
    #[default]
    Grant,
    /// The store asks for the line itself, which is read from DRAM and enters the LLC in the ways of the core's tenant
    /// (zSim). Needs `device_read = "install"`.
    Fetch,
}

/// Treatment of a line that another core of the node has modified when a core reads it, for `role = "victim"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModifiedRead {
    /// Both cores keep clean copies, and the LLC receives a copy.
    #[default]
    Share,
    /// The line migrates to the reader with the permission to write. Needs `read_hit = "migrate"`.
    Take,
}

/// LLC ways that the first ways of a placement policy are mapped to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviceWays {
    /// The ways from way 0 on, in which cores look for an empty way first.
    #[default]
    Lowest,
    /// The ways from the last way down.
    Highest,
}

/// Shared last-level cache and its home agent (CHA).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LlcSpec {
    /// Capacity of the LLC, all slices together.
    pub size: Size,
    /// Associativity of the LLC, 1 to 24.
    pub ways: u32,
    /// Cycles of the uncore clock that a look-up adds to an access.
    pub latency_cycles: u32,
    /// Number of slices; the number of sets of a slice must be a power of two.
    pub slices: u32,
    /// Function that spreads lines over slices and sets.
    #[serde(default)]
    pub indexing: Indexing,
    /// Replacement policy of the LLC.
    #[serde(default)]
    pub replacement: Replacement,
    /// Inclusion policy of the LLC for fills from DRAM for cores.
    #[serde(default)]
    pub role: LlcRole,
    /// Number of writes that may wait at the home agent for a full write pending queue (`memory.wpq`) before it stops
    /// admitting requests, the second stage of backpressure. If `mshrs` is set, it limits nothing but write-backs, and those only
    /// with `writebacks = "admitted"`.
    pub write_buffer: u32,
    /// Order in which writes that wait at the home agent enter a channel's write queue.
    #[serde(default)]
    pub write_order: WriteOrder,
    /// Time of a write from the home agent to the memory controller, and of the acknowledgement that its queue has
    /// accepted the write; 0 when absent.
    #[serde(default)]
    pub write_ack: Span,
    /// Habits of the LLC and its home agent, which a platform sets; scenarios leave them alone.
    #[serde(default)]
    pub quirks: LlcQuirks,
}

/// Named set of quirks of the LLC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LlcPreset {
    /// Non-inclusive LLC of Xeon servers since Skylake, as Understanding the Host Network and IDIO describe it.
    SkylakeSp,
    /// LLC of the fork of zSim with which Sweeper was evaluated.
    Zsim,
    /// Mostly exclusive cache of gem5's classic memory system.
    Gem5,
}

/// Habits of the LLC and its home agent that processors and simulators differ in.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LlcQuirks {
    /// Named set of quirks that the other keys of this table override. When absent, the defaults of the keys apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<LlcPreset>,
    /// Cycles of the uncore clock that a line takes through the LLC on its way from DRAM to the requester; 0 when
    /// absent.
    #[serde(default)]
    pub response_cycles: u32,
    /// Treatment of the LLC's copy when a core's read hits it, for `role = "victim"`; other LLCs retain the line.
    #[serde(default)]
    pub read_hit: ReadHit,
    /// Treatment of the LLC's copy when a store hits it, for `role = "victim"`; other LLCs retain the line.
    #[serde(default)]
    pub store_hit: StoreHit,
    /// Request of a store whose core has a clean copy of a line that the LLC has evicted; `fetch` needs
    /// `device_read = "install"`.
    #[serde(default)]
    pub upgrade_miss: UpgradeMiss,
    /// Treatment of a line that another core of the node has modified when a core reads it; `take` needs
    /// `role = "victim"` and `read_hit = "migrate"`.
    #[serde(default)]
    pub modified_read: ModifiedRead,
    /// Destination of clean victims of L2s.
    #[serde(default)]
    pub clean_victim: CleanVictim,
    /// Whether a clean victim of an L2 marks its line in the LLC clean although the LLC's copy is dirty, so that data
    /// is lost. Sweeper's published runs do so by mistake; no processor does. False when absent.
    #[serde(default)]
    pub clean_victim_cleans: bool,
    /// Whether a dirty victim of an L2 that finds its line in the LLC counts as a use of the line. True when absent.
    #[serde(default = "yes")]
    pub write_back_uses: bool,
    /// Treatment of a line's copies when a device reads the line.
    #[serde(default)]
    pub device_read: DeviceRead,
    /// Whether a device's read of a line in the LLC gives the line the oldest age, because no further use is expected;
    /// otherwise the read counts as a use. Needs `replacement = "srrip"`. False when absent.
    #[serde(default)]
    pub device_read_ages: bool,
    /// LLC ways that the first ways of a placement policy (`placement.ways`) are mapped to.
    #[serde(default)]
    pub device_ways: DeviceWays,
    /// Number of directory-inclusive ways, which hold lines that a core also has. These ways lie at the other end of a
    /// set than the ways of devices (`device_ways`), and victims of L2s go to other ways. 0, the default, means none;
    /// any other number needs `role = "victim"`.
    #[serde(default)]
    pub inclusive_ways: u32,
    /// Number of entries of `write_buffer` that only the integrated NIC may use, so that data from the wire has
    /// priority. 0 when absent; if `mshrs` is set, it has an effect only with `writebacks = "admitted"`.
    #[serde(default)]
    pub nic_credits: u32,
    /// Number of miss status holding registers (MSHRs) of each slice; 0, the default, means no limit. A miss holds an
    /// MSHR until its data has reached the requester and the memory controller has accepted the line that it displaced.
    /// While a slice has no free MSHR, all requests to it wait, hits included; victims of L2s that miss take one in any case. With
    /// MSHRs, `write_buffer` and `nic_credits` limit nothing but write-backs that are `admitted` (`writebacks`).
    #[serde(default)]
    pub mshrs: u32,
    /// Way in which a victim of an L2 reaches the home agent.
    #[serde(default)]
    pub writebacks: WriteBacks,
    /// Link between the caches of a node and its memory controllers, for one node; when absent, lines cross at any rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_link: Option<MemoryLinkSpec>,
}

impl Default for LlcQuirks {
    fn default() -> LlcQuirks {
        with_defaults()
    }
}

fn yes() -> bool {
    true
}

/// Order in which writes that wait at the home agent enter a channel's write queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WriteOrder {
    /// Writes enter in order of arrival.
    #[default]
    Arrival,
    /// Cores and devices take turns, and neither uses more than half of `write_buffer`, so that only the source that
    /// fills the buffer waits (isolation in the sense of Understanding the Host Network, section 7).
    RoundRobin,
}

/// Way in which a victim of an L2 reaches the home agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WriteBacks {
    /// The victim arrives immediately and without a request; no line fill buffer waits.
    #[default]
    Immediate,
    /// The victim travels as a request that must be admitted; the line fill buffer whose fill caused the eviction
    /// becomes free only after the admission (Understanding the Host Network, section 4.1). The request leaves so early
    /// that an immediate admission does not delay the buffer.
    Admitted,
}

/// Private caches of every core, the shared LLC and the crossbar between them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HierarchySpec {
    /// Level-one data cache, one per core.
    pub l1d: CacheSpec,
    /// Level-two (mid-level) cache, one per core.
    pub l2: CacheSpec,
    /// Whether the L2 holds every line of its L1. False when absent.
    #[serde(default)]
    pub l2_inclusive: bool,
    /// Last-level cache, one per node.
    pub llc: LlcSpec,
    /// Clock frequency of the LLC, the crossbar and the home agent.
    pub uncore_clock: Freq,
    /// Cycles of the uncore clock for one traversal of the crossbar in one direction.
    pub noc_cycles: u32,
}

impl LlcSpec {
    /// Mask of the directory-inclusive ways.
    pub fn inclusive_mask(&self) -> u32 {
        let lowest = (1u32 << self.quirks.inclusive_ways.min(31)) - 1;
        match self.quirks.device_ways {
            DeviceWays::Highest => lowest,
            DeviceWays::Lowest => lowest << self.ways.saturating_sub(self.quirks.inclusive_ways),
        }
    }
}

impl HierarchySpec {
    /// Checks that the shapes of the caches are possible and that the choices of the LLC are compatible.
    ///
    /// # Errors
    /// Fails with one clause that names key and value.
    pub fn check(&self) -> Result<(), String> {
        let one = |key: &str, size: Size, ways: u32, indexing, slices| {
            let way = LINE * u64::from(ways.max(1));
            if size.0 % way != 0 {
                return Err(format!("{key}.size = \"{size}\" is not a multiple of {ways} ways of 64 B"));
            }
            shape(size.0 / way, ways, indexing, slices)
                .map_err(|e| format!("{key}.size = \"{size}\" makes {e}"))
                .map(drop)
        };
        one("caches.l1d", self.l1d.size, self.l1d.ways, Indexing::Modulo, 1)?;
        one("caches.l2", self.l2.size, self.l2.ways, Indexing::Modulo, 1)?;
        let llc = &self.llc;
        LlcProtocol::of(llc)?;
        one("caches.llc", llc.size, llc.ways, llc.indexing, llc.slices)
    }
}
