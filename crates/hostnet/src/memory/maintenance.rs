//! Cache maintenance: lines that software or tests explicitly sweep, flush, write back or evict.

use super::filter::cores_of;
use super::node::Node;
use super::region::{RegionKind, Sharing};
use super::shadow::CopyPlace;
use super::stats::AccessClass;
use super::{rx_line_states, Memory, MemoryPosts};
use crate::kernel::{CoreId, LineAddr, Time};

/// Effect of a cache-maintenance message on a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sweep {
    /// `clsweep`: copies are invalidated everywhere and dirty data is dropped (Sweeper, section V-B).
    Sweep,
    /// x86 `CLFLUSHOPT`: copies are invalidated everywhere and dirty data is written back.
    Flush,
    /// x86 `CLWB`: dirty data is written back, and clean copies stay.
    WriteBack,
    /// Copies are invalidated everywhere, and dirty data is dropped where the page allows it (IDIO, section V-D, with
    /// the LLC).
    Invalidate,
    /// Copies in the issuing core's caches are invalidated, and dirty data is dropped where the page allows it; no
    /// message leaves the core.
    InvalidateOwn,
}

impl Sweep {
    /// Whether the operation discards dirty data, so that it must only be used on data that is no longer needed.
    pub fn drops_data(self) -> bool {
        matches!(self, Sweep::Sweep | Sweep::Invalidate | Sweep::InvalidateOwn)
    }
}

impl Memory {
    /// Evicts `line` from the LLC as a replacement would; returns whether the eviction wrote DRAM, or None when the LLC
    /// does not hold the line.
    pub fn force_out(&mut self, cal: &mut impl MemoryPosts, line: LineAddr, now: Time) -> Option<bool> {
        let held = |n: &Node| n.llc.find(line);
        let (node, slot) = self.nodes.enumerate().find_map(|(i, n)| Some((i, held(n)?)))?;
        let mut dirty = self.nodes[node].llc.remove(slot);
        if self.strict {
            dirty = self.back_invalidate(cal, line, dirty, now);
        }
        if dirty {
            self.evict(cal, node, line, now);
        }
        Some(dirty)
    }

    /// Evicts dirty copies of `line` from private caches to the LLC, and invalidates clean ones.
    pub fn push_out(&mut self, cal: &mut impl MemoryPosts, line: LineAddr, now: Time) {
        let holders = match self.sharing(line) {
            Sharing::Core(c) => 1 << c.index(),
            Sharing::Shared => self.shared.holders(line),
            Sharing::Device => 0,
        };
        for c in cores_of(holders) {
            let dirty = self.invalidate_in(c, line).dirty;
            if self.sharing(line) == Sharing::Shared {
                self.shared.drop_holder(line, c);
            }
            self.stats.ledger.merged += u64::from(dirty > 1);
            if dirty > 0 {
                self.fill_llc(cal, c, line, true, now);
            }
        }
    }

    pub(super) fn drop_llc(&mut self, line: LineAddr) -> u64 {
        let drop = |n: &mut Node| n.llc.find(line).map_or(0, |s| u64::from(n.llc.remove(s)));
        self.nodes.iter_mut().map(drop).sum()
    }

    /// Cleans the copies that cores have or are about to receive; returns the core that had a dirty copy.
    pub(super) fn clean_above(&mut self, line: LineAddr) -> Option<CoreId> {
        let dirty = self.clean_private(line);
        let Some(owner) = self.lines.owner(line) else { return dirty };
        // The line is on its way to a core, which receives it clean.
        let t = &mut self.txns[owner];
        let moving = std::mem::take(&mut t.dirty).then(|| t.core());
        self.stats.ledger.merged += u64::from(moving.is_some() && dirty.is_some());
        dirty.or(moving)
    }

    /// Writes a dirty line back from any cache, and leaves clean copies.
    pub(super) fn clean(&mut self, cal: &mut impl MemoryPosts, line: LineAddr, now: Time) {
        let mut dirty = self.clean_above(line).map(|core| self.node_of_core(core));
        for (n, node) in self.nodes.enumerate_mut() {
            let Some(s) = node.llc.find(line) else { continue };
            if node.llc.is_dirty(s) {
                self.stats.ledger.merged += u64::from(dirty.is_some());
                dirty = Some(n);
            }
            node.llc.set_dirty(s, false);
        }
        if let Some(from) = dirty {
            let class = AccessClass::of_eviction(self.map.of(line).kind);
            if let Some(s) = &mut self.shadow {
                s.settle(line, CopyPlace::Dram);
                self.nodes.enumerate().for_each(|(n, _)| s.settle(line, CopyPlace::Llc(n)));
                // The line passes through the LLC, which keeps this copy.
            }
            self.write_dram(cal, from, line, class, now);
        }
    }

    /// Handles a cache-maintenance message for `line` at the home agent. The caches of the issuing core have seen the
    /// message on its way.
    pub fn on_sweep(&mut self, cal: &mut impl MemoryPosts, line: LineAddr, op: Sweep, now: Time) {
        self.stats.sweep_messages += 1;
        match op {
            Sweep::Invalidate if !self.allows_invalidation(line) => {}
            Sweep::Sweep | Sweep::Invalidate => {
                let dropped = self.invalidate_all_copies(cal, line, now).dirty + self.drop_llc(line);
                self.stats.ledger.swept += dropped;
                if self.map.of(line).kind == RegionKind::Rx {
                    let race = self.rx_line_states.of(line) == rx_line_states::UNCONSUMED;
                    self.rx_line_states.set(line, rx_line_states::SWEPT);
                    self.stats.sweep_races += u64::from(race);
                }
                if let Some(s) = &mut self.shadow {
                    s.drop_cached(line);
                }
            }
            Sweep::Flush => {
                self.clean(cal, line, now);
                let left = self.invalidate_all_copies(cal, line, now).dirty + self.drop_llc(line);
                debug_assert_eq!(left, 0, "cleaned just now");
            }
            Sweep::WriteBack => self.clean(cal, line, now),
            Sweep::InvalidateOwn => unreachable!("a core's own caches are all that it is about"),
        }
    }
}
