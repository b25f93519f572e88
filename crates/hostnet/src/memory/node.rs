//! A node: an LLC with its home agent, the channels of memory behind it, and the cores beside it.

use super::array::Array;
use crate::flow::Domain;
use crate::kernel::Time;
use std::collections::VecDeque;

/// The node that devices are attached to.
pub(super) const DEVICES_AT: usize = 0;

/// One of a machine's nodes.
#[derive(Clone)]
pub struct Node {
    pub(super) llc: Array,
    /// One traversal of the crossbar, and a look-up in the LLC, at the node's uncore clock.
    pub(super) noc: Time,
    pub(super) look_up: Time,
    /// Requests that the home agent has not admitted yet: see `home::CORES`.
    pub(super) admission: [VecDeque<u32>; 3],
    /// Writes that wait at the home agent, by side.
    pub(super) waiting: [u32; 2],
    /// Writes waiting at the home agent: the second stage of backpressure.
    pub cha_writes: Domain,
}
