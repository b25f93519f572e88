//! What a core's request does to a line that two nodes may have: the protocol between nodes, as a table.
//!
//! It is MESIF as Skylake-SP and later use it between sockets. The LLC of a node keeps lines of any home. The home agent
//! knows exactly which node has copies. `tests/nodes.rs` holds every row against what the memory system does.

use super::nodes::NodesProtocolSpec;
use super::protocol::{Held, Private};

/// What a core asks of a line that its own caches do not grant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Want {
    Read,
    Own,
    /// A core that has a clean copy asks to write it.
    Upgrade,
}
pub const WANTS: [Want; 3] = [Want::Read, Want::Own, Want::Upgrade];

/// What one node has of a line, but for who asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Copies {
    /// The best copy of its cores.
    pub private: Held,
    pub llc: Held,
}

impl Copies {
    pub fn none(self) -> bool {
        self.private == Held::Nowhere && self.llc == Held::Nowhere
    }
    pub fn modified(self) -> bool {
        self.private == Held::Dirty || self.llc == Held::Dirty
    }
}

/// One of two nodes, as the core that asks sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Its own.
    Near,
    Far,
}

/// Who has the data that is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    Nobody,
    /// Caches of the own node, by the protocol of one node.
    Near,
    /// Caches of the other node.
    Far,
    /// Memory of the home.
    Memory,
}

/// One row's right-hand side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crossing {
    pub source: Source,
    /// What becomes of the other node's copies, those of its LLC as well.
    pub far: Private,
    /// The duty to write the line back comes along.
    pub dirty: bool,
    /// Dirty data is written to its home.
    pub written: bool,
    /// Memory of the home is read in vain.
    pub speculates: bool,
}

impl Crossing {
    /// Whether the other node's agent takes part for other reasons than being the home.
    pub fn asks_far(self) -> bool {
        self.source == Source::Far || self.far != Private::Stay
    }
}

/// The table. A node with a modified copy is the only one that has any.
#[inline]
pub fn crossing(want: Want, near: Copies, far: Copies, home: Side, p: &NodesProtocolSpec) -> Crossing {
    use Held::{Clean, Nowhere};
    let snoops = home == Side::Near;
    let row = |source, far| {
        let speculates = source == Source::Far && snoops && p.speculative;
        Crossing { source, far, dirty: false, written: false, speculates }
    };
    let far_has = if far.none() { Private::Stay } else { Private::Drop };
    match want {
        Want::Upgrade => row(Source::Nobody, far_has),
        Want::Read if near.modified() || near.llc != Nowhere => row(Source::Near, Private::Stay),
        Want::Own if near.modified() || near.llc != Nowhere => row(Source::Near, far_has),
        _ if far.none() => row(Source::Memory, Private::Stay),
        Want::Own if far.modified() => Crossing { dirty: true, ..row(Source::Far, Private::Drop) },
        // One that others read beside their LLC is shared already.
        Want::Read if far.modified() && p.migratory && far.private != Clean => {
            Crossing { dirty: true, ..row(Source::Far, Private::Drop) }
        }
        Want::Read if far.modified() => Crossing { written: true, ..row(Source::Far, Private::Share) },
        // Clean in the other node, which is the home: its LLC answers if it can.
        Want::Own if !snoops && far.llc == Nowhere => row(Source::Memory, Private::Drop),
        Want::Read if !snoops && far.llc == Nowhere => row(Source::Memory, Private::Stay),
        // Both nodes share the line: the other one has not written it, and memory answers.
        Want::Read if snoops && near.private == Clean => row(Source::Memory, Private::Stay),
        Want::Own => row(Source::Far, Private::Drop),
        Want::Read => row(Source::Far, Private::Stay),
    }
}
