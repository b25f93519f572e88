//! A node: an LLC with its home agent, the memory channels of that home agent, and the cores attached to it.

use super::array::CacheArray;
use super::indexing::MOST_WAYS;
use crate::flow::Domain;
use crate::kernel::{NodeId, Time, TxnId};
use std::collections::VecDeque;
use std::iter::once;
use std::ops::{Index, IndexMut};

/// The node of a machine with one node.
pub(super) const FIRST_NODE: NodeId = NodeId(0);

/// One node of a machine.
#[derive(Clone)]
pub struct Node {
    pub(super) llc: CacheArray,
    /// Number of lines that each way of the LLC has taken in.
    pub(super) taken_in: [u64; MOST_WAYS],
    /// Time of one traversal of the crossbar (`noc`), and time of a look-up in the LLC (`look_up`), at the node's
    /// uncore clock.
    pub(super) noc: Time,
    pub(super) look_up: Time,
    /// Time of a crossing between home agents and the link agent, or a memory controller, at the node's uncore clock.
    pub(super) crossing: Time,
    /// Time that a line from DRAM takes through the LLC on its way to the requester, and from the memory controller.
    pub(super) from_dram: Time,
    /// Requests that wait for admission by the home agent, by queue; see `home::CORES`.
    pub(super) admission: [VecDeque<TxnId>; 3],
    /// Number of writes that wait at the home agent, by side.
    pub(super) waiting: [u32; 2],
    /// Credits of writes that wait at the home agent, the second stage of backpressure.
    pub cha_writes: Domain,
}

/// Nodes of a machine. The first node is stored inline, so that a machine of one node needs no look-up.
#[derive(Clone)]
pub struct Nodes {
    first: Node,
    others: Vec<Node>,
}

impl Nodes {
    /// Makes `n` nodes, at least one; `of` makes each node.
    pub fn new(n: usize, mut of: impl FnMut(usize) -> Node) -> Nodes {
        Nodes { first: of(0), others: (1..n).map(of).collect() }
    }

    /// Number of nodes, at least one.
    #[inline]
    pub fn len(&self) -> usize {
        1 + self.others.len()
    }

    /// False: a host has at least one node.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Whether the machine has more than one node.
    #[inline]
    pub fn several(&self) -> bool {
        !self.others.is_empty()
    }

    /// Node other than the first; not inlined, so that look-ups on a machine of one node stay short.
    #[cold]
    #[inline(never)]
    fn other(&self, n: NodeId) -> &Node {
        &self.others[n.index() - 1]
    }

    #[cold]
    #[inline(never)]
    fn other_mut(&mut self, n: NodeId) -> &mut Node {
        &mut self.others[n.index() - 1]
    }

    /// The other node of a machine with two nodes.
    #[inline]
    pub fn other_than(&self, node: NodeId) -> NodeId {
        NodeId(1 - node.0)
    }

    /// The nodes by their identifiers, in order.
    pub fn enumerate(&self) -> impl Iterator<Item = (NodeId, &Node)> + Clone {
        self.iter().enumerate().map(|(i, node)| (NodeId::new(i), node))
    }

    /// The nodes, by number.
    pub fn iter(&self) -> impl Iterator<Item = &Node> + Clone {
        once(&self.first).chain(&self.others)
    }

    /// The nodes by their identifiers for writing, in order.
    pub fn enumerate_mut(&mut self) -> impl Iterator<Item = (NodeId, &mut Node)> {
        self.iter_mut().enumerate().map(|(i, node)| (NodeId::new(i), node))
    }

    /// The nodes, by number, for changes.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Node> {
        once(&mut self.first).chain(&mut self.others)
    }
}

impl Index<NodeId> for Nodes {
    type Output = Node;
    #[inline(always)]
    fn index(&self, n: NodeId) -> &Node {
        if n == FIRST_NODE {
            &self.first
        } else {
            self.other(n)
        }
    }
}

impl IndexMut<NodeId> for Nodes {
    #[inline(always)]
    fn index_mut(&mut self, n: NodeId) -> &mut Node {
        if n == FIRST_NODE {
            &mut self.first
        } else {
            self.other_mut(n)
        }
    }
}
