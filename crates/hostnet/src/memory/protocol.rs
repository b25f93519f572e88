//! Protocol of the home agent as a table: the effect of each request on a line, by the copies of the line.
//!
//! Private caches are those of all cores but the requester; for devices and maintenance, those of all cores. The home
//! agent acts on the rows of cores, and `tests/protocol.rs` checks the memory system against every row.

use super::spec::{DeviceRead, LlcRole, ModifiedRead, ReadHit, StoreHit, UpgradeMiss};

/// Best copy of a line in a group of caches.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Held {
    Nowhere,
    Clean,
    Dirty,
}

impl Held {
    /// The position of the copy in tables by copy: the better, the higher.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self as usize
    }
}
pub const HELD: [Held; 3] = [Held::Nowhere, Held::Clean, Held::Dirty];

/// Request of an agent for a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
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
pub const REQUESTS: [Request; 11] = [
    Request::Read,
    Request::Own,
    Request::Upgrade,
    Request::Stream,
    Request::DmaRead,
    Request::DmaReadDram,
    Request::DmaWriteLlc,
    Request::DmaWriteDram,
    Request::Sweep,
    Request::Flush,
    Request::Clean,
];

/// Effect of a request on the copies in private caches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Private {
    Stay,
    /// The copies stay and become clean.
    Share,
    Drop,
}

/// Source of the requested data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Data {
    Nobody,
    Private,
    Llc,
    Dram,
}

/// Effect of a request on the LLC's copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Llc {
    Stay,
    /// The LLC receives a clean copy.
    FillClean,
    /// The LLC receives a copy with the duty to write it back.
    FillDirty,
    /// The LLC's copy moves to the core, with the duty to write it back if it was dirty.
    Give,
    Clean,
    Drop,
}

/// Effect of a request on DRAM: whether dirty data, or new data that no cache takes, is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dram {
    Untouched,
    Written,
}

/// Right-hand side of a row of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transition {
    pub private: Private,
    pub data: Data,
    pub llc: Llc,
    pub dram: Dram,
}

/// Choices of a cache hierarchy that the table depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Habits {
    pub role: LlcRole,
    pub read_hit: ReadHit,
    pub store_hit: StoreHit,
    pub upgrade_miss: UpgradeMiss,
    pub modified_read: ModifiedRead,
    pub device_read: DeviceRead,
    pub device_read_ages: bool,
}

impl Habits {
    /// Whether a read takes a modified line from the core that has it.
    #[inline]
    pub fn takes_modified(&self) -> bool {
        self.modified_read == ModifiedRead::Take
    }
}

/// Effect on the LLC's copy when a core requests a line that no other core has dirty: a precomputed part of the table.
#[derive(Clone, Debug)]
pub struct CoreRows([[[Llc; HELD.len()]; 2]; 3]);

impl CoreRows {
    pub fn new(h: Habits) -> CoreRows {
        let asks = [Request::Read, Request::Own, Request::Upgrade];
        let others = [Held::Nowhere, Held::Clean];
        CoreRows(asks.map(|r| others.map(|private| HELD.map(|llc| transition(r, private, llc, h).llc))))
    }

    /// Effect of a core's read on the LLC's copy; the core may ask for ownership (`owns`) of a line it has
    /// (`upgrades`), and other cores may have copies (`others`).
    #[inline]
    pub fn llc(&self, owns: bool, upgrades: bool, others: bool, llc: Held) -> Llc {
        self.0[usize::from(owns) + usize::from(upgrades)][usize::from(others)][llc.index()]
    }
}

/// The protocol table. `private` is the best copy of other cores (for devices and maintenance, of all cores).
#[inline]
pub fn transition(r: Request, private: Held, llc: Held, h: Habits) -> Transition {
    use Held::{Clean, Dirty, Nowhere};
    let row = |private, data, llc, dram| Transition { private, data, llc, dram };
    let victim = h.role == LlcRole::Victim;
    let gives = victim && h.store_hit == StoreHit::Move;
    let installs = h.device_read == DeviceRead::Install;
    let written = if private == Dirty || llc == Dirty { Dram::Written } else { Dram::Untouched };
    let calm = Dram::Untouched;
    match (r, private, llc) {
        (Request::Read, Dirty, _) if h.takes_modified() => row(Private::Drop, Data::Private, Llc::Give, calm),
        (Request::Read, Dirty, _) => row(Private::Share, Data::Private, Llc::FillDirty, calm),
        (Request::Read, _, Nowhere) if victim => row(Private::Stay, Data::Dram, Llc::Stay, calm),
        (Request::Read, _, Nowhere) => row(Private::Stay, Data::Dram, Llc::FillClean, calm),
        (Request::Read, Nowhere, _) if victim && h.read_hit == ReadHit::Migrate => {
            row(Private::Stay, Data::Llc, Llc::Give, calm)
        }
        (Request::Read, _, _) => row(Private::Stay, Data::Llc, Llc::Stay, calm),

        (Request::Upgrade, Nowhere | Clean, Nowhere) if h.upgrade_miss == UpgradeMiss::Fetch => {
            row(Private::Drop, Data::Dram, Llc::FillClean, calm)
        }
        // Where cores keep lines that devices read, their own copies answer for a line that the LLC has evicted.
        (Request::Upgrade, Nowhere | Clean, Nowhere) if installs => row(Private::Drop, Data::Nobody, Llc::Stay, calm),
        (Request::Upgrade, _, _) => transition(Request::Own, private, llc, h),

        // A dirty copy passes through the LLC, which gives it on.
        (Request::Own, Dirty, _) if gives => row(Private::Drop, Data::Private, Llc::Give, calm),
        (Request::Own, Dirty, _) => row(Private::Drop, Data::Private, Llc::FillDirty, calm),
        (Request::Own, _, Nowhere) if victim => row(Private::Drop, Data::Dram, Llc::Stay, calm),
        (Request::Own, _, Nowhere) => row(Private::Drop, Data::Dram, Llc::FillClean, calm),
        (Request::Own, _, Clean | Dirty) if gives => row(Private::Drop, Data::Llc, Llc::Give, calm),
        (Request::Own, _, Clean | Dirty) => row(Private::Drop, Data::Llc, Llc::Stay, calm),

        // Whole lines overwrite the copies in caches.
        (Request::Stream | Request::DmaWriteDram, _, _) => row(Private::Drop, Data::Nobody, Llc::Drop, Dram::Written),
        (Request::DmaWriteLlc, _, _) => row(Private::Drop, Data::Nobody, Llc::FillDirty, calm),

        (Request::DmaRead, Dirty, _) if installs => row(Private::Share, Data::Private, Llc::FillDirty, calm),
        (Request::DmaRead, Clean, Nowhere) if installs => row(Private::Stay, Data::Private, Llc::FillClean, calm),
        (Request::DmaRead, Nowhere, Nowhere) if installs => row(Private::Stay, Data::Dram, Llc::FillClean, calm),
        (Request::DmaRead, Dirty, _) if h.device_read == DeviceRead::Demote => {
            row(Private::Drop, Data::Private, Llc::FillDirty, calm)
        }
        (Request::DmaRead, Clean, Nowhere) if h.device_read == DeviceRead::Demote => {
            row(Private::Drop, Data::Private, Llc::FillClean, calm)
        }
        (Request::DmaRead, Clean | Dirty, _) => row(Private::Stay, Data::Private, Llc::Stay, calm),
        (Request::DmaRead, Nowhere, Clean | Dirty) => row(Private::Stay, Data::Llc, Llc::Stay, calm),
        (Request::DmaRead, Nowhere, Nowhere) => row(Private::Stay, Data::Dram, Llc::Stay, calm),
        (Request::DmaReadDram, _, _) => row(Private::Share, Data::Dram, Llc::Clean, written),

        // Maintenance drops dirty data, writes and drops it, or writes it.
        (Request::Sweep, _, _) => row(Private::Drop, Data::Nobody, Llc::Drop, calm),
        (Request::Flush, _, _) => row(Private::Drop, Data::Nobody, Llc::Drop, written),
        (Request::Clean, _, _) => row(Private::Share, Data::Nobody, Llc::Clean, written),
    }
}
