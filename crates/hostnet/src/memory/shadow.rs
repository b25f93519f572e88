//! Shadow memory: the version of each line that every copy holds. It is an oracle for tests and directed runs, and
//! influences no timing.

use super::region::Sharing;
use super::{Memory, Node};
use crate::kernel::{CoreId, LineAddr, NodeId};
use std::collections::HashMap;

/// Place of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CopyPlace {
    /// Private caches of a core.
    Core(CoreId),
    /// On its way to a core.
    ToCore(CoreId),
    /// LLC of a node.
    Llc(NodeId),
    /// DRAM.
    Dram,
}

/// Versions by line and place. A line that no agent has written has version 0 everywhere.
#[derive(Clone, Debug, Default)]
pub struct Shadow {
    newest: HashMap<LineAddr, u64>,
    copies: HashMap<(LineAddr, CopyPlace), u64>,
    last: u64,
}

impl Shadow {
    /// Writes a new version at `at`.
    #[cold]
    pub(super) fn store(&mut self, line: LineAddr, at: CopyPlace) {
        self.last += 1;
        self.newest.insert(line, self.last);
        self.copies.insert((line, at), self.last);
    }

    /// Copies the version at `from` to `to`.
    #[cold]
    pub(super) fn copy(&mut self, line: LineAddr, from: CopyPlace, to: CopyPlace) {
        let v = self.at(line, from);
        self.copies.insert((line, to), v);
    }

    /// Copies the newest version of the line, in whichever place, to `to`.
    #[cold]
    pub(super) fn settle(&mut self, line: LineAddr, to: CopyPlace) {
        let v = self.newest(line);
        self.copies.insert((line, to), v);
    }

    /// Discards every cached copy, so that DRAM's version becomes the newest.
    #[cold]
    pub(super) fn drop_cached(&mut self, line: LineAddr) {
        self.fall_back(line, CopyPlace::Dram);
    }

    /// Discards all versions that are newer than the copy at `place`.
    #[cold]
    pub(super) fn fall_back(&mut self, line: LineAddr, place: CopyPlace) {
        let v = self.at(line, place);
        self.newest.insert(line, v);
    }

    /// Version of the copy of `line` at `place`; 0 for no copy.
    pub fn at(&self, line: LineAddr, place: CopyPlace) -> u64 {
        self.copies.get(&(line, place)).copied().unwrap_or(0)
    }

    /// Version of the newest write of `line`.
    pub fn newest(&self, line: LineAddr) -> u64 {
        self.newest.get(&line).copied().unwrap_or(0)
    }
}

impl Memory {
    #[inline]
    pub(super) fn record_copy(&mut self, line: LineAddr, from: CopyPlace, to: CopyPlace) {
        if let Some(s) = &mut self.shadow {
            s.copy(line, from, to);
        }
    }

    /// Copies the version of `core` to its node's LLC, for a line that the core evicts or shares.
    #[inline]
    pub(super) fn record_copy_from_core(&mut self, core: CoreId, line: LineAddr) {
        self.record_copy(line, CopyPlace::Core(core), CopyPlace::Llc(self.node_of_core(core)));
    }

    /// Version of `line` that a reader obtains now (0 without a shadow).
    pub fn version(&self, line: LineAddr) -> u64 {
        self.shadow.as_ref().map_or(0, |s| s.newest(line))
    }

    /// Checks that the copies of `line` may coexist in a coherent machine (with a shadow).
    ///
    /// # Errors
    /// Fails with one sentence about the copies that may not coexist.
    pub fn coherent(&self, line: LineAddr) -> Result<(), String> {
        let Some(s) = &self.shadow else { return Ok(()) };
        let newest = s.newest(line);
        let (mut holders, mut dirty) = (Vec::new(), Vec::new());
        for c in self.l2.ids() {
            let (a, b) = (self.l1[c].find(line), self.l2[c].find(line));
            if a.is_none() && b.is_none() {
                continue;
            }
            holders.push(c);
            if a.is_some_and(|x| self.l1[c].is_dirty(x)) || b.is_some_and(|x| self.l2[c].is_dirty(x)) {
                dirty.push(c);
            }
            let v = s.at(line, CopyPlace::Core(c));
            if v != newest {
                return Err(format!("core {c} holds version {v} of line {line}, the newest is {newest}"));
            }
        }
        if dirty.len() > 1 || (dirty.len() == 1 && holders.len() > 1) {
            return Err(format!("cores {holders:?} hold line {line}, which cores {dirty:?} have written"));
        }
        let moving = self.lines.owner(line).is_some_and(|id| self.txns[id].dirty);
        let mut llc_dirty = false;
        for (n, Node { llc, .. }) in self.nodes.enumerate() {
            let Some(slot) = llc.find(line) else { continue };
            llc_dirty |= llc.is_dirty(slot);
            let v = s.at(line, CopyPlace::Llc(n));
            // While a core has a newer version of the line, the LLC of the core's node may hold an older one.
            let behind = dirty.iter().any(|c| self.node_of_core(*c) == n);
            if v != newest && !behind {
                return Err(format!("the LLC of node {n} holds version {v} of line {line}, the newest is {newest}"));
            }
        }
        let written = |n: NodeId| {
            let llc = &self.nodes[n].llc;
            llc.find(line).is_some_and(|x| llc.is_dirty(x)) || dirty.iter().any(|c| self.node_of_core(*c) == n)
        };
        let held =
            |n: NodeId| self.nodes[n].llc.find(line).is_some() || holders.iter().any(|c| self.node_of_core(*c) == n);
        let ids = self.nodes.enumerate().map(|(n, _)| n);
        for n in ids.clone() {
            if let Some(o) = ids.clone().find(|o| *o != n && written(n) && held(*o)) {
                return Err(format!("node {o} has line {line}, which node {n} has written"));
            }
        }
        let clean = dirty.is_empty() && !llc_dirty && !moving;
        let foreign = self.sharing(line) != Sharing::Device && self.ideal_network;
        if clean && !foreign && s.at(line, CopyPlace::Dram) != newest {
            let v = s.at(line, CopyPlace::Dram);
            return Err(format!(
                "no cache has written line {line}, yet DRAM has version {v} and the newest is {newest}"
            ));
        }
        Ok(())
    }
}
