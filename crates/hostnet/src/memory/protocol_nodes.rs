//! Protocol between two nodes as a table: the effect of a core's request on a line that both nodes may have.
//!
//! The protocol is MESIF as Skylake-SP and later use it between sockets. The LLC of a node holds lines of any home
//! node. The home agent knows exactly which node has copies. `tests/nodes.rs` checks the memory system against every
//! row.

use super::nodes::NodesQuirks;
use super::protocol::{CopyState, PrivateAction};

/// Request of a core that its own caches cannot grant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CoreRequest {
    /// A core reads the line.
    Read,
    /// A core without a copy asks for the data and the permission to write.
    Own,
    /// A core that has a clean copy asks for the permission to write.
    Upgrade,
}
/// All requests.
pub const WANTS: [CoreRequest; 3] = [CoreRequest::Read, CoreRequest::Own, CoreRequest::Upgrade];

/// Copies of a line in one node, without those of the requester.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Copies {
    /// Best copy of the line among the private caches of the node's cores.
    pub private: CopyState,
    /// Copy in the node's LLC.
    pub llc: CopyState,
}

impl Copies {
    /// Whether the node has no copy.
    pub fn none(self) -> bool {
        self.private == CopyState::Nowhere && self.llc == CopyState::Nowhere
    }
    /// Whether the node has a dirty copy.
    pub fn modified(self) -> bool {
        self.private == CopyState::Dirty || self.llc == CopyState::Dirty
    }
}

/// One of two nodes, seen from the requesting core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeSide {
    /// The requester's own node.
    Near,
    /// The other node.
    Far,
}

/// Source of the requested data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeDataSource {
    /// No data is needed.
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
pub struct NodeTransition {
    /// Source of the requested data.
    pub source: NodeDataSource,
    /// Effect on the other node's copies, including that of its LLC.
    pub far: PrivateAction,
    /// Whether the answer carries the duty to write the line back.
    pub dirty: bool,
    /// Whether dirty data is written to its home.
    pub written: bool,
    /// Whether memory of the home node is read speculatively, and its data is not used.
    pub speculates: bool,
}

impl NodeTransition {
    /// Whether the agent of the other node takes part for a reason other than being the home agent.
    pub fn snoops_far(self) -> bool {
        self.source == NodeDataSource::Far || self.far != PrivateAction::Stay
    }
}

/// The protocol table. A node with a modified copy is the only node that has copies.
#[inline]
pub fn crossing(want: CoreRequest, near: Copies, far: Copies, home: NodeSide, p: &NodesQuirks) -> NodeTransition {
    use CopyState::{Clean, Nowhere};
    let snoops = home == NodeSide::Near;
    let row = |source, far| {
        let speculates = source == NodeDataSource::Far && snoops && p.speculative;
        NodeTransition { source, far, dirty: false, written: false, speculates }
    };
    let far_has = if far.none() { PrivateAction::Stay } else { PrivateAction::Drop };
    match want {
        CoreRequest::Upgrade => row(NodeDataSource::Nobody, far_has),
        CoreRequest::Read if near.modified() || near.llc != Nowhere => row(NodeDataSource::Near, PrivateAction::Stay),
        CoreRequest::Own if near.modified() || near.llc != Nowhere => row(NodeDataSource::Near, far_has),
        _ if far.none() => row(NodeDataSource::Memory, PrivateAction::Stay),
        CoreRequest::Own if far.modified() => {
            NodeTransition { dirty: true, ..row(NodeDataSource::Far, PrivateAction::Drop) }
        }
        // A line that cores read while the LLC holds a copy is shared already.
        CoreRequest::Read if far.modified() && p.migratory && far.private != Clean => {
            NodeTransition { dirty: true, ..row(NodeDataSource::Far, PrivateAction::Drop) }
        }
        CoreRequest::Read if far.modified() => {
            NodeTransition { written: true, ..row(NodeDataSource::Far, PrivateAction::Share) }
        }
        // The line is clean in the other node, which is its home: the LLC there answers if it can.
        CoreRequest::Own if !snoops && far.llc == Nowhere => row(NodeDataSource::Memory, PrivateAction::Drop),
        CoreRequest::Read if !snoops && far.llc == Nowhere => row(NodeDataSource::Memory, PrivateAction::Stay),
        // Both nodes share the line, so the other node has not written it and memory answers.
        CoreRequest::Read if snoops && near.private == Clean => row(NodeDataSource::Memory, PrivateAction::Stay),
        CoreRequest::Own => row(NodeDataSource::Far, PrivateAction::Drop),
        CoreRequest::Read => row(NodeDataSource::Far, PrivateAction::Stay),
    }
}
