//! Protocol of the home agent as a table: the effect of each request on a line, by the copies of the line.
//!
//! *Private caches* are those of all cores except the requester; for devices and maintenance, the private caches of all
//! cores. The home agent acts on the rows of cores, and `tests/protocol.rs` checks the memory system against every row.

use super::replacement::Replacement;
use super::spec::{DeviceRead, LlcRole, LlcSpec, ModifiedRead, ReadHit, StoreHit, UpgradeMiss};

/// Best copy of a line in a group of caches.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CopyState {
    /// No copy.
    Nowhere,
    /// A clean copy.
    Clean,
    /// A dirty copy.
    Dirty,
}

impl CopyState {
    /// The index of the copy in tables by copy; a better copy has a higher index.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self as usize
    }
}
/// All states.
pub const HELD: [CopyState; 3] = [CopyState::Nowhere, CopyState::Clean, CopyState::Dirty];

/// Request of an agent for a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineRequest {
    /// A core reads the line.
    Read,
    /// A core without a copy asks for the data and the permission to write.
    Own,
    /// A core that has a clean copy asks for the permission to write.
    Upgrade,
    /// A core writes the whole line with a store that bypasses the caches.
    Stream,
    /// A device reads the nearest copy.
    DmaRead,
    /// A device reads DRAM.
    DmaReadDram,
    /// A device writes the line into the LLC.
    DmaWriteLlc,
    /// A device writes the line to DRAM.
    DmaWriteDram,
    /// All copies are invalidated, and dirty data is dropped (`clsweep`).
    Sweep,
    /// All copies are invalidated, and dirty data is written back (CLFLUSHOPT).
    Flush,
    /// Dirty data is written back, and the copies stay (CLWB).
    Clean,
}
/// All requests.
pub const REQUESTS: [LineRequest; 11] = [
    LineRequest::Read,
    LineRequest::Own,
    LineRequest::Upgrade,
    LineRequest::Stream,
    LineRequest::DmaRead,
    LineRequest::DmaReadDram,
    LineRequest::DmaWriteLlc,
    LineRequest::DmaWriteDram,
    LineRequest::Sweep,
    LineRequest::Flush,
    LineRequest::Clean,
];

/// Effect of a request on the copies in private caches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PrivateAction {
    /// The copies stay as they are.
    Stay,
    /// The copies stay and become clean.
    Share,
    /// The copies are invalidated.
    Drop,
}

/// Source of the requested data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DataHolder {
    /// No data is needed.
    Nobody,
    /// A private cache.
    Private,
    /// The LLC.
    Llc,
    /// DRAM.
    Dram,
}

/// Effect of a request on the LLC's copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LlcAction {
    /// The LLC's copy stays as it is.
    Stay,
    /// The LLC receives a clean copy.
    FillClean,
    /// The LLC receives a copy with the duty to write it back.
    FillDirty,
    /// The LLC's copy moves to the core, with the duty to write it back if it was dirty.
    HandOver,
    /// The LLC's copy becomes clean.
    Clean,
    /// The LLC's copy is invalidated.
    Drop,
}

/// Effect of a request on DRAM: whether dirty data, or new data that no cache takes, is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DramAction {
    /// Nothing is written.
    Untouched,
    /// Data is written.
    Written,
}

/// Right-hand side of a row of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transition {
    /// Effect on the copies in private caches.
    pub private: PrivateAction,
    /// Source of the requested data.
    pub data: DataHolder,
    /// Effect on the LLC's copy.
    pub llc: LlcAction,
    /// Effect on DRAM.
    pub dram: DramAction,
}

/// Choices of an LLC that the table depends on, once they have been checked. Each choice has what belongs to it alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LlcProtocol {
    /// Inclusion policy of the LLC.
    pub role: Inclusion,
    /// Treatment of a line's copies when a device reads the line.
    pub device_read: DeviceReads,
    /// Replacement policy of the LLC.
    pub replacement: LlcReplacement,
}

/// Inclusion policy of an LLC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inclusion {
    /// Fills bypass the LLC, and victims of L2s fill it.
    Victim(VictimLlc),
    /// Fills go to the LLC as well, which keeps its copy when a core reads or stores.
    Inclusive,
    /// Fills go to the LLC as well, and a line that the LLC evicts is invalidated in the private caches.
    StrictlyInclusive,
}

/// Choices of a victim LLC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VictimLlc {
    /// Treatment of the LLC's copy when a core's read hits it.
    pub read_hit: VictimRead,
    /// Treatment of the LLC's copy when a store hits it.
    pub store_hit: StoreHit,
    /// Mask of the directory-inclusive ways.
    pub inclusive_ways: u32,
}

/// Treatment of a victim LLC's copy when a core's read hits it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VictimRead {
    /// The line stays in the LLC, and the core receives a clean copy.
    Retain,
    /// The line moves to the private cache with its dirty state; `modified_read` says what becomes of a line that another
    /// core of the node has modified.
    Migrate {
        /// Treatment of a line that another core of the node has modified.
        modified_read: ModifiedRead,
    },
}

/// Treatment of a line's copies when a device reads the line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceReads {
    /// No copy changes.
    Snapshot,
    /// A private copy is first evicted to the LLC.
    Demote,
    /// The line is installed in the LLC, and private copies stay; `upgrade_miss` is the request of a store whose core has a
    /// clean copy of a line that the LLC has evicted since.
    Install {
        /// Request of a store whose core has such a copy.
        upgrade_miss: UpgradeMiss,
    },
}

/// Replacement policy of an LLC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LlcReplacement {
    /// Re-reference intervals, the longest of which a device's read may give to a line.
    Srrip {
        /// Whether a device's read gives a line the oldest age; otherwise the read counts as a use.
        device_read_ages: bool,
    },
    /// A policy under which a device's read counts as a use.
    Other(Replacement),
}

impl LlcProtocol {
    /// The protocol of an LLC.
    ///
    /// # Errors
    /// Fails with one clause that names key and value.
    pub fn of(llc: &LlcSpec) -> Result<LlcProtocol, String> {
        let q = &llc.quirks;
        let victim = llc.role == LlcRole::Victim;
        let most = if victim { llc.ways.saturating_sub(1) } else { 0 };
        if q.inclusive_ways > most {
            return Err(format!(
                "caches.llc.quirks.inclusive_ways = {} is not within 0 to {most}, what {} ways of role = \"{}\" allow",
                q.inclusive_ways,
                llc.ways,
                llc.role.word()
            ));
        }
        let moves = victim && q.read_hit == ReadHit::Migrate;
        if q.modified_read == ModifiedRead::Take && !moves {
            return Err(
                "caches.llc.quirks.modified_read = \"take\" needs role = \"victim\" and read_hit = \"migrate\"".into(),
            );
        }
        if q.upgrade_miss == UpgradeMiss::Fetch && q.device_read != DeviceRead::Install {
            return Err("caches.llc.quirks.upgrade_miss = \"fetch\" needs device_read = \"install\"".into());
        }
        Ok(LlcProtocol {
            role: match llc.role {
                LlcRole::Victim => Inclusion::Victim(VictimLlc {
                    read_hit: match q.read_hit {
                        ReadHit::Retain => VictimRead::Retain,
                        ReadHit::Migrate => VictimRead::Migrate { modified_read: q.modified_read },
                    },
                    store_hit: q.store_hit,
                    inclusive_ways: llc.inclusive_mask(),
                }),
                LlcRole::Inclusive => Inclusion::Inclusive,
                LlcRole::StrictlyInclusive => Inclusion::StrictlyInclusive,
            },
            device_read: match q.device_read {
                DeviceRead::Snapshot => DeviceReads::Snapshot,
                DeviceRead::Demote => DeviceReads::Demote,
                DeviceRead::Install => DeviceReads::Install { upgrade_miss: q.upgrade_miss },
            },
            replacement: match llc.replacement {
                Replacement::Srrip => LlcReplacement::Srrip { device_read_ages: q.device_read_ages },
                other => LlcReplacement::Other(other),
            },
        })
    }

    /// Choices of a victim LLC.
    #[inline]
    pub fn victim(&self) -> Option<&VictimLlc> {
        match &self.role {
            Inclusion::Victim(victim) => Some(victim),
            Inclusion::Inclusive | Inclusion::StrictlyInclusive => None,
        }
    }

    /// Whether a read takes a modified line away from the core that has it.
    #[inline]
    pub fn takes_modified(&self) -> bool {
        let takes = VictimRead::Migrate { modified_read: ModifiedRead::Take };
        self.victim().is_some_and(|v| v.read_hit == takes)
    }

    /// Whether the LLC gives up a line that a core is going to write.
    #[inline]
    pub fn gives_to_stores(&self) -> bool {
        self.victim().is_some_and(|v| v.store_hit == StoreHit::Move)
    }

    /// Whether a device's read installs the line in the LLC.
    #[inline]
    pub fn installs(&self) -> bool {
        matches!(self.device_read, DeviceReads::Install { .. })
    }

    /// Whether a store whose core has a clean copy of a line that the LLC has evicted asks for the line itself.
    #[inline]
    pub fn fetches_on_upgrade(&self) -> bool {
        self.device_read == DeviceReads::Install { upgrade_miss: UpgradeMiss::Fetch }
    }

    /// Whether a device's read of a line in the LLC gives the line the oldest age.
    #[inline]
    pub fn device_reads_age(&self) -> bool {
        self.replacement == LlcReplacement::Srrip { device_read_ages: true }
    }
}

impl LlcSpec {
    /// Reason why `key` of the table `caches.llc.quirks` has no effect, if the LLC's other choices leave it without any.
    pub fn unused(&self, key: &str) -> Option<String> {
        match key {
            "read_hit" | "store_hit" | "inclusive_ways" if self.role != LlcRole::Victim => {
                Some(format!("has no effect with role = \"{}\"; it is for role = \"victim\"", self.role.word()))
            }
            "device_read_ages" if self.replacement != Replacement::Srrip => {
                let of = serde_json::to_value(self.replacement).unwrap_or_default();
                Some(format!("has no effect with replacement = {of}; it is for replacement = \"srrip\""))
            }
            _ => None,
        }
    }
}

/// Effect on the LLC's copy when a core requests a line of which no other core has a dirty copy: a precomputed part of
/// the table.
#[derive(Clone, Debug)]
pub struct CoreRows([[[LlcAction; HELD.len()]; 2]; 3]);

impl CoreRows {
    /// The part of the table for hierarchy `h`.
    pub fn new(h: LlcProtocol) -> CoreRows {
        let asks = [LineRequest::Read, LineRequest::Own, LineRequest::Upgrade];
        let others = [CopyState::Nowhere, CopyState::Clean];
        CoreRows(asks.map(|r| others.map(|private| HELD.map(|llc| transition(r, private, llc, h).llc))))
    }

    /// Effect of a core's read on the LLC's copy. The core may ask for ownership (`owns`) of a line that it already has
    /// (`upgrades`), and other cores may have copies (`others`).
    #[inline]
    pub fn llc(&self, owns: bool, upgrades: bool, others: bool, llc: CopyState) -> LlcAction {
        self.0[usize::from(owns) + usize::from(upgrades)][usize::from(others)][llc.index()]
    }
}

/// The protocol table. `private` is the best copy of other cores (for devices and maintenance, of all cores).
#[inline]
pub fn transition(r: LineRequest, private: CopyState, llc: CopyState, h: LlcProtocol) -> Transition {
    use CopyState::{Clean, Dirty, Nowhere};
    let row = |private, data, llc, dram| Transition { private, data, llc, dram };
    let victim = h.victim().is_some();
    let migrates = h.victim().is_some_and(|v| v.read_hit != VictimRead::Retain);
    let gives = h.gives_to_stores();
    let installs = h.installs();
    let written = if private == Dirty || llc == Dirty { DramAction::Written } else { DramAction::Untouched };
    let calm = DramAction::Untouched;
    match (r, private, llc) {
        (LineRequest::Read, Dirty, _) if h.takes_modified() => {
            row(PrivateAction::Drop, DataHolder::Private, LlcAction::HandOver, calm)
        }
        (LineRequest::Read, Dirty, _) => row(PrivateAction::Share, DataHolder::Private, LlcAction::FillDirty, calm),
        (LineRequest::Read, _, Nowhere) if victim => row(PrivateAction::Stay, DataHolder::Dram, LlcAction::Stay, calm),
        (LineRequest::Read, _, Nowhere) => row(PrivateAction::Stay, DataHolder::Dram, LlcAction::FillClean, calm),
        (LineRequest::Read, Nowhere, _) if migrates => {
            row(PrivateAction::Stay, DataHolder::Llc, LlcAction::HandOver, calm)
        }
        (LineRequest::Read, _, _) => row(PrivateAction::Stay, DataHolder::Llc, LlcAction::Stay, calm),

        (LineRequest::Upgrade, Nowhere | Clean, Nowhere) if h.fetches_on_upgrade() => {
            row(PrivateAction::Drop, DataHolder::Dram, LlcAction::FillClean, calm)
        }
        // Where cores keep lines that devices read, their own copies answer for a line that the LLC has evicted.
        (LineRequest::Upgrade, Nowhere | Clean, Nowhere) if installs => {
            row(PrivateAction::Drop, DataHolder::Nobody, LlcAction::Stay, calm)
        }
        (LineRequest::Upgrade, _, _) => transition(LineRequest::Own, private, llc, h),

        // A dirty copy passes through the LLC, which supplies the data.
        (LineRequest::Own, Dirty, _) if gives => {
            row(PrivateAction::Drop, DataHolder::Private, LlcAction::HandOver, calm)
        }
        (LineRequest::Own, Dirty, _) => row(PrivateAction::Drop, DataHolder::Private, LlcAction::FillDirty, calm),
        (LineRequest::Own, _, Nowhere) if victim => row(PrivateAction::Drop, DataHolder::Dram, LlcAction::Stay, calm),
        (LineRequest::Own, _, Nowhere) => row(PrivateAction::Drop, DataHolder::Dram, LlcAction::FillClean, calm),
        (LineRequest::Own, _, Clean | Dirty) if gives => {
            row(PrivateAction::Drop, DataHolder::Llc, LlcAction::HandOver, calm)
        }
        (LineRequest::Own, _, Clean | Dirty) => row(PrivateAction::Drop, DataHolder::Llc, LlcAction::Stay, calm),

        // Whole lines overwrite the copies in caches.
        (LineRequest::Stream | LineRequest::DmaWriteDram, _, _) => {
            row(PrivateAction::Drop, DataHolder::Nobody, LlcAction::Drop, DramAction::Written)
        }
        (LineRequest::DmaWriteLlc, _, _) => row(PrivateAction::Drop, DataHolder::Nobody, LlcAction::FillDirty, calm),

        (LineRequest::DmaRead, Dirty, _) if installs => {
            row(PrivateAction::Share, DataHolder::Private, LlcAction::FillDirty, calm)
        }
        (LineRequest::DmaRead, Clean, Nowhere) if installs => {
            row(PrivateAction::Stay, DataHolder::Private, LlcAction::FillClean, calm)
        }
        (LineRequest::DmaRead, Nowhere, Nowhere) if installs => {
            row(PrivateAction::Stay, DataHolder::Dram, LlcAction::FillClean, calm)
        }
        (LineRequest::DmaRead, Dirty, _) if h.device_read == DeviceReads::Demote => {
            row(PrivateAction::Drop, DataHolder::Private, LlcAction::FillDirty, calm)
        }
        (LineRequest::DmaRead, Clean, Nowhere) if h.device_read == DeviceReads::Demote => {
            row(PrivateAction::Drop, DataHolder::Private, LlcAction::FillClean, calm)
        }
        (LineRequest::DmaRead, Clean | Dirty, _) => {
            row(PrivateAction::Stay, DataHolder::Private, LlcAction::Stay, calm)
        }
        (LineRequest::DmaRead, Nowhere, Clean | Dirty) => {
            row(PrivateAction::Stay, DataHolder::Llc, LlcAction::Stay, calm)
        }
        (LineRequest::DmaRead, Nowhere, Nowhere) => row(PrivateAction::Stay, DataHolder::Dram, LlcAction::Stay, calm),
        (LineRequest::DmaReadDram, _, _) => row(PrivateAction::Share, DataHolder::Dram, LlcAction::Clean, written),

        // Maintenance drops dirty data, writes and drops it, or writes it.
        (LineRequest::Sweep, _, _) => row(PrivateAction::Drop, DataHolder::Nobody, LlcAction::Drop, calm),
        (LineRequest::Flush, _, _) => row(PrivateAction::Drop, DataHolder::Nobody, LlcAction::Drop, written),
        (LineRequest::Clean, _, _) => row(PrivateAction::Share, DataHolder::Nobody, LlcAction::Clean, written),
    }
}
