//! A node: an LLC with its home agent, the channels of memory behind it, and the cores beside it.

use super::array::Array;
use crate::flow::Domain;
use crate::kernel::{NodeId, Time, TxnId};
use std::collections::VecDeque;
use std::iter::once;
use std::ops::{Index, IndexMut};

/// The node that devices are attached to.
pub(super) const DEVICES_AT: NodeId = NodeId(0);

/// One of a machine's nodes.
#[derive(Clone)]
pub struct Node {
    pub(super) llc: Array,
    /// One traversal of the crossbar, and a look-up in the LLC, at the node's uncore clock.
    pub(super) noc: Time,
    pub(super) look_up: Time,
    /// What a line from DRAM takes through the LLC on its way to who asked.
    pub(super) from_dram: Time,
    /// Requests that the home agent has not admitted yet: see `home::CORES`.
    pub(super) admission: [VecDeque<TxnId>; 3],
    /// Writes that wait at the home agent, by side.
    pub(super) waiting: [u32; 2],
    /// Writes waiting at the home agent: the second stage of backpressure.
    pub cha_writes: Domain,
}

/// The nodes of a machine. The first lies beside what else memory has, so that a machine of one node looks none up.
#[derive(Clone)]
pub struct Nodes {
    first: Node,
    others: Vec<Node>,
}

impl Nodes {
    /// `n` nodes as `of` makes them, and one at least.
    pub fn new(n: usize, mut of: impl FnMut(usize) -> Node) -> Nodes {
        Nodes { first: of(0), others: (1..n).map(of).collect() }
    }

    #[inline]
    pub fn len(&self) -> usize {
        1 + self.others.len()
    }

    pub fn is_empty(&self) -> bool {
        false
    }

    /// Whether there are others than the first.
    #[inline]
    pub fn several(&self) -> bool {
        !self.others.is_empty()
    }

    /// Apart from those who look a node up, so that on a machine of one node they are short.
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

    /// The other node of a machine of two.
    #[inline]
    pub fn other_than(&self, node: NodeId) -> NodeId {
        NodeId(1 - node.0)
    }

    /// The nodes by their identifiers, in order.
    pub fn enumerate(&self) -> impl Iterator<Item = (NodeId, &Node)> + Clone {
        self.iter().enumerate().map(|(i, node)| (NodeId::new(i), node))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Node> + Clone {
        once(&self.first).chain(&self.others)
    }

    /// The nodes by their identifiers for writing, in order.
    pub fn enumerate_mut(&mut self) -> impl Iterator<Item = (NodeId, &mut Node)> {
        self.iter_mut().enumerate().map(|(i, node)| (NodeId::new(i), node))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Node> {
        once(&mut self.first).chain(&mut self.others)
    }
}

impl Index<NodeId> for Nodes {
    type Output = Node;
    #[inline(always)]
    fn index(&self, n: NodeId) -> &Node {
        if n == DEVICES_AT {
            &self.first
        } else {
            self.other(n)
        }
    }
}

impl IndexMut<NodeId> for Nodes {
    #[inline(always)]
    fn index_mut(&mut self, n: NodeId) -> &mut Node {
        if n == DEVICES_AT {
            &mut self.first
        } else {
            self.other_mut(n)
        }
    }
}
