//! Protocol between two nodes as a table: the effect of a core's request on a line that both nodes may have.
//!
//! The protocol is MESIF as Skylake-SP and later use it between sockets. The LLC of a node holds lines of any home
//! node. The home agent knows exactly which node has copies. `tests/nodes.rs` checks the memory system against every
//! row.

use super::nodes::NodesProtocolSpec;
use super::protocol::{Held, Private};

/// Request of a core that its own caches cannot grant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Want {
    Read,
    Own,
    /// A core that has a clean copy asks for the permission to write.
    Upgrade,
}
pub const WANTS: [Want; 3] = [Want::Read, Want::Own, Want::Upgrade];

/// Copies of a line in one node, without those of the requester.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Copies {
    /// Best copy of the node's cores.
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

/// One of two nodes, seen from the requesting core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The requester's own node.
    Near,
    Far,
}

/// Source of the requested data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    Nobody,
    /// Caches of the requester's node, by the protocol of one node.
    Near,
    /// Caches of the other node.
    Far,
    /// Memory of the home node.
    Memory,
}

/// Right-hand side of a row of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crossing {
    pub source: Source,
    /// Effect on the other node's copies, including that of its LLC.
    pub far: Private,
    /// Whether the answer carries the duty to write the line back.
    pub dirty: bool,
    /// Whether dirty data is written to its home.
    pub written: bool,
    /// Whether memory of the home node is read speculatively, and its data is not used.
    pub speculates: bool,
}

impl Crossing {
    /// Whether the agent of the other node takes part for a reason other than being the home agent.
    pub fn asks_far(self) -> bool {
        self.source == Source::Far || self.far != Private::Stay
    }
}

/// The protocol table. A node with a modified copy is the only node that has copies.
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
        // A line that cores read beside their LLC's copy is shared already.
        Want::Read if far.modified() && p.migratory && far.private != Clean => {
            Crossing { dirty: true, ..row(Source::Far, Private::Drop) }
        }
        Want::Read if far.modified() => Crossing { written: true, ..row(Source::Far, Private::Share) },
        // The line is clean in the other node, which is its home: the LLC there answers if it can.
        Want::Own if !snoops && far.llc == Nowhere => row(Source::Memory, Private::Drop),
        Want::Read if !snoops && far.llc == Nowhere => row(Source::Memory, Private::Stay),
        // Both nodes share the line, so the other node has not written it and memory answers.
        Want::Read if snoops && near.private == Clean => row(Source::Memory, Private::Stay),
        Want::Own => row(Source::Far, Private::Drop),
        Want::Read => row(Source::Far, Private::Stay),
    }
}
