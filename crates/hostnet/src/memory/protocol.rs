//! Protocol of the home agent as a table: the effect of each request on a line, by the copies of the line.
//!
//! *Private caches* are those of all cores except the requester; for devices and maintenance, the private caches of all
//! cores. The home agent acts on the rows of cores, and `tests/protocol.rs` checks the memory system against every row.

use super::spec::{DeviceRead, LlcRole, ModifiedRead, ReadHit, StoreHit, UpgradeMiss};

/// Best copy of a line in a group of caches.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CopyState {
    Nowhere,
    Clean,
    Dirty,
}

impl CopyState {
    /// The index of the copy in tables by copy; a better copy has a higher index.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self as usize
    }
}
pub const HELD: [CopyState; 3] = [CopyState::Nowhere, CopyState::Clean, CopyState::Dirty];

/// Request of an agent for a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineRequest {
    Read,
    Own,
    /// A core that has a clean copy asks for the permission to write.
    Upgrade,
    Stream,
    /// A device reads the nearest copy.
    DmaRead,
    /// A device reads DRAM.
    DmaReadDram,
    DmaWriteLlc,
    DmaWriteDram,
    Sweep,
    Flush,
    Clean,
}
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
    Stay,
    /// The copies stay and become clean.
    Share,
    Drop,
}

/// Source of the requested data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DataHolder {
    Nobody,
    Private,
    Llc,
    Dram,
}

/// Effect of a request on the LLC's copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LlcAction {
    Stay,
    /// The LLC receives a clean copy.
    FillClean,
    /// The LLC receives a copy with the duty to write it back.
    FillDirty,
    /// The LLC's copy moves to the core, with the duty to write it back if it was dirty.
    HandOver,
    Clean,
    Drop,
}

/// Effect of a request on DRAM: whether dirty data, or new data that no cache takes, is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DramAction {
    Untouched,
    Written,
}

/// Right-hand side of a row of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transition {
    pub private: PrivateAction,
    pub data: DataHolder,
    pub llc: LlcAction,
    pub dram: DramAction,
}

/// Choices of a cache hierarchy that the table depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LlcProtocol {
    pub role: LlcRole,
    pub read_hit: ReadHit,
    pub store_hit: StoreHit,
    pub upgrade_miss: UpgradeMiss,
    pub modified_read: ModifiedRead,
    pub device_read: DeviceRead,
    pub device_read_ages: bool,
}

impl LlcProtocol {
    /// Whether a read takes a modified line away from the core that has it.
    #[inline]
    pub fn takes_modified(&self) -> bool {
        self.modified_read == ModifiedRead::Take
    }
}

/// Effect on the LLC's copy when a core requests a line of which no other core has a dirty copy: a precomputed part of
/// the table.
#[derive(Clone, Debug)]
pub struct CoreRows([[[LlcAction; HELD.len()]; 2]; 3]);

impl CoreRows {
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
    let victim = h.role == LlcRole::Victim;
    let gives = victim && h.store_hit == StoreHit::Move;
    let installs = h.device_read == DeviceRead::Install;
    let written = if private == Dirty || llc == Dirty { DramAction::Written } else { DramAction::Untouched };
    let calm = DramAction::Untouched;
    match (r, private, llc) {
        (LineRequest::Read, Dirty, _) if h.takes_modified() => {
            row(PrivateAction::Drop, DataHolder::Private, LlcAction::HandOver, calm)
        }
        (LineRequest::Read, Dirty, _) => row(PrivateAction::Share, DataHolder::Private, LlcAction::FillDirty, calm),
        (LineRequest::Read, _, Nowhere) if victim => row(PrivateAction::Stay, DataHolder::Dram, LlcAction::Stay, calm),
        (LineRequest::Read, _, Nowhere) => row(PrivateAction::Stay, DataHolder::Dram, LlcAction::FillClean, calm),
        (LineRequest::Read, Nowhere, _) if victim && h.read_hit == ReadHit::Migrate => {
            row(PrivateAction::Stay, DataHolder::Llc, LlcAction::HandOver, calm)
        }
        (LineRequest::Read, _, _) => row(PrivateAction::Stay, DataHolder::Llc, LlcAction::Stay, calm),

        (LineRequest::Upgrade, Nowhere | Clean, Nowhere) if h.upgrade_miss == UpgradeMiss::Fetch => {
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
        (LineRequest::DmaRead, Dirty, _) if h.device_read == DeviceRead::Demote => {
            row(PrivateAction::Drop, DataHolder::Private, LlcAction::FillDirty, calm)
        }
        (LineRequest::DmaRead, Clean, Nowhere) if h.device_read == DeviceRead::Demote => {
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
