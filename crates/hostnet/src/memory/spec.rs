//! What a cache hierarchy is made of.

use super::array::{shape, Indexing, Replacement};
use super::LINE;
use crate::kernel::units::{Freq, Size, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One level of private cache.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheSpec {
    /// Capacity.
    pub size: Size,
    /// Associativity.
    pub ways: u32,
    /// Cycles of the core clock that a look-up adds to an access.
    pub latency_cycles: u32,
    /// Cycles of the core clock that a line takes through this cache on its way from the next one to who asked.
    #[serde(default)]
    pub response_cycles: u32,
    /// Replacement policy.
    #[serde(default)]
    pub replacement: Replacement,
}

/// What a core's read hit leaves in the LLC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReadHit {
    /// The line stays, dirty if it was; the core gets a clean copy (Sweeper, section V-C).
    #[default]
    Retain,
    /// The line moves to the private cache with its dirtiness (Skylake, as IDIO describes it).
    Migrate,
}

/// What a device's read does with a line's copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviceRead {
    /// Nothing: the device gets a snapshot.
    #[default]
    Snapshot,
    /// A line that the LLC has not, or that is dirty, goes down to the LLC first (IDIO, sections II-A and III).
    Demote,
    /// The line ends in the LLC, in place or else in the ways of device writes, from DRAM too, with the duty to write it
    /// back. Private copies stay, shared and clean: a core asks the LLC for ownership before it stores again.
    Install,
}

/// Where a clean victim of an L2 goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CleanVictim {
    /// Into the LLC, as dirty ones do.
    #[default]
    Allocate,
    /// Into the LLC when it was fetched from DRAM; the copy of a line that the LLC had is dropped.
    AllocateFetched,
    /// Nowhere.
    Drop,
}

/// How DRAM fills for cores treat the LLC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LlcRole {
    /// Non-inclusive: fills bypass the LLC, L2 victims fill it.
    #[default]
    Victim,
    /// Mostly inclusive: fills go to the LLC as well.
    Inclusive,
    /// The same, and the private caches hold nothing that the LLC does not: what it evicts is taken from them
    /// (back-invalidation).
    StrictlyInclusive,
}

/// What a store's hit leaves in an LLC whose role is `victim`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StoreHit {
    /// Nothing: the line moves to the private cache with its dirtiness.
    #[default]
    Move,
    /// The line, dirty if it was; the core gets a copy to write (zSim).
    Retain,
}

/// What a store asks for whose core has a clean copy of a line that the LLC has lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UpgradeMiss {
    /// Permission to write, and no data.
    #[default]
    Grant,
    /// The line: it is read from DRAM, and enters the LLC in the ways of the core's tenant (zSim). Needs
    /// `device_read = "install"`.
    Fetch,
}

/// What a core's read of a line leaves that another core of its node has modified, in an LLC whose role is `victim`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModifiedRead {
    /// Both cores read it from now on, beside the LLC's copy.
    #[default]
    Share,
    /// The reader alone has it, with permission to write: it migrates. Needs `read_hit = "migrate"`.
    Take,
}

/// Which ways a placement policy's first ways are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviceWays {
    /// Those from way 0 on. Cores look for an empty way there first.
    #[default]
    Lowest,
    /// Those from the last way down.
    Highest,
}

/// The shared last-level cache and its home agent (CHA).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LlcSpec {
    /// Capacity over all slices.
    pub size: Size,
    /// Associativity.
    pub ways: u32,
    /// Cycles of the uncore clock that a look-up adds to an access.
    pub latency_cycles: u32,
    /// Cycles of the uncore clock that a line takes through the LLC on its way from DRAM to who asked.
    #[serde(default)]
    pub response_cycles: u32,
    /// Slices; sets of a slice must come out as a power of two.
    pub slices: u32,
    /// How lines spread over slices.
    #[serde(default)]
    pub indexing: Indexing,
    /// Replacement policy.
    #[serde(default)]
    pub replacement: Replacement,
    /// Role in the hierarchy.
    #[serde(default)]
    pub role: LlcRole,
    /// What a core's read hit leaves behind.
    #[serde(default)]
    pub read_hit: ReadHit,
    /// What a store's hit leaves behind.
    #[serde(default)]
    pub store_hit: StoreHit,
    /// What a store asks for whose core has a clean copy of a line that the LLC has lost.
    #[serde(default)]
    pub upgrade_miss: UpgradeMiss,
    /// What a read of a line leaves that another core of the node has modified.
    #[serde(default)]
    pub modified_read: ModifiedRead,
    /// Where clean L2 victims go.
    #[serde(default)]
    pub clean_victim: CleanVictim,
    /// A clean L2 victim that finds its line dirty leaves it clean, so that its data is lost. Sweeper's published runs were
    /// made so, by a slip; no machine does it.
    #[serde(default)]
    pub clean_victim_cleans: bool,
    /// A dirty L2 victim that finds its line counts as a use of it.
    #[serde(default = "yes")]
    pub write_back_uses: bool,
    /// What a device's read does with the line's copies.
    #[serde(default)]
    pub device_read: DeviceRead,
    /// A line that a device reads in the LLC has the oldest age then, as nobody is expected to use it; else the read counts
    /// as a use. Needs replacement = "srrip".
    #[serde(default)]
    pub device_read_ages: bool,
    /// Which ways a placement policy's first ways are.
    #[serde(default)]
    pub device_ways: DeviceWays,
    /// Directory-inclusive ways: those for lines that a core has too, at the other end of a set than the ways of devices.
    /// Victims of L2s go elsewhere. None when 0; they need role = "victim".
    #[serde(default)]
    pub inclusive_ways: u32,
    /// Miss status holding registers of each slice; 0 is no limit. A miss holds one until its data has reached who asked
    /// and the memory controller has taken in the line that it pushed out. While a slice has none, whatever comes for it
    /// waits, hits too, and `write_buffer` and `nic_credits` have no effect.
    #[serde(default)]
    pub mshrs: u32,
    /// Writes that may wait at the home agent for a full write pending queue before it stops
    /// admitting requests (second stage of backpressure).
    pub write_buffer: u32,
    /// Of these, how many only the integrated NIC may use, so that what has come over the wire goes first.
    #[serde(default)]
    pub nic_credits: u32,
    /// Who of those that wait goes first.
    #[serde(default)]
    pub write_order: WriteOrder,
    /// How an L2 victim reaches the home agent.
    #[serde(default)]
    pub writebacks: WriteBacks,
    /// A write's way from the home agent to the memory controller, and the acknowledgement that its
    /// queue has it.
    #[serde(default)]
    pub write_ack: Span,
}

fn yes() -> bool {
    true
}

/// In which order writes that wait at the home agent enter a channel's queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WriteOrder {
    /// As they came.
    #[default]
    Arrival,
    /// Cores and devices take turns, and neither takes more than half of the room, so that the one that
    /// fills it is the one that waits (isolation as Understanding the Host Network, section 7, asks for).
    Turns,
}

/// How an L2 victim reaches the home agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WriteBacks {
    /// At once; nobody waits.
    #[default]
    AtOnce,
    /// As a request that must be admitted; the line fill buffer whose fill caused it is free only then
    /// (Understanding the Host Network, section 4.1). It leaves so early that an agent which admits it at once
    /// costs the buffer nothing.
    Admitted,
}

/// Private caches of every core, the shared cache and the crossbar between them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HierarchySpec {
    /// Level-one data cache, one per core.
    pub l1d: CacheSpec,
    /// Level-two (mid-level) cache, one per core.
    pub l2: CacheSpec,
    /// L2 holds every line of its L1.
    #[serde(default)]
    pub l2_inclusive: bool,
    /// Last-level cache.
    pub llc: LlcSpec,
    /// Clock of the LLC, the crossbar and the home agent.
    pub uncore_clock: Freq,
    /// Cycles of the uncore clock for one traversal of the crossbar, each way.
    pub noc_cycles: u32,
}

impl LlcSpec {
    /// The mask of the directory-inclusive ways.
    pub fn inclusive_mask(&self) -> u32 {
        let lowest = (1u32 << self.inclusive_ways.min(31)) - 1;
        match self.device_ways {
            DeviceWays::Highest => lowest,
            DeviceWays::Lowest => lowest << self.ways.saturating_sub(self.inclusive_ways),
        }
    }
}

impl HierarchySpec {
    /// # Errors
    /// One clause that names the cache whose shape does not work.
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
        let most = if llc.role == LlcRole::Victim { llc.ways.saturating_sub(1) } else { 0 };
        if llc.inclusive_ways > most {
            return Err(format!(
                "caches.llc.inclusive_ways = {} is not within 0 to {most}, what {} ways of role = \"{}\" allow",
                llc.inclusive_ways,
                llc.ways,
                if llc.role == LlcRole::Victim { "victim" } else { "inclusive" }
            ));
        }
        let moves = llc.role == LlcRole::Victim && llc.read_hit == ReadHit::Migrate;
        if llc.modified_read == ModifiedRead::Take && !moves {
            return Err("caches.llc.modified_read = \"take\" needs role = \"victim\" and read_hit = \"migrate\"".into());
        }
        if llc.upgrade_miss == UpgradeMiss::Fetch && llc.device_read != DeviceRead::Install {
            return Err("caches.llc.upgrade_miss = \"fetch\" needs device_read = \"install\"".into());
        }
        one("caches.llc", llc.size, llc.ways, llc.indexing, llc.slices)
    }
}
