//! DMA at the home agent: reads and writes of whole lines by devices of any attachment.

use super::array::LineHome;
use super::home::FIRST;
use super::paths::{Milestones, Path};
use super::protocol::{CopyState, DeviceReads};
use super::region::{RegionKind, Sharing};
use super::request::{Agent, Inbound, Outbound, TxnOp};
use super::shadow::CopyPlace;
use super::stats::LineLocation;
use super::{rx_line_states, Memory, MemoryEvent, MemoryPosts, Txn};
use crate::kernel::{CoreId, LineAddr, NodeId, Time, TxnId};

/// Source of the data for a device's read, and the time that the source takes beyond the look-up.
pub(super) enum ReadSource {
    /// A cache on the chip answers; `modified` says whether that cache is the LLC and holds the line modified.
    Chip {
        snoop: Time,
        modified: bool,
    },
    Dram,
}

impl Memory {
    /// Time of the path from the home agent back to the requester.
    #[inline(always)]
    pub(super) fn latency_from_agent(&self, t: &Txn) -> Time {
        if t.agent() == Agent::Io {
            self.lat.to_iio
        } else {
            self.nodes[self.agent_of(t)].noc
        }
    }

    /// Places the lines of an integrated NIC's burst as long as writes are admitted; returns true after the last line.
    pub(super) fn write_burst(&mut self, cal: &mut impl MemoryPosts, id: TxnId, lane: usize, now: Time) -> bool {
        debug_assert_eq!(lane, FIRST);
        let mut t = self.txns[id];
        loop {
            t.home = self.home_of_device_line(t.line);
            self.place_first_line(cal, &t, None, now);
            t.line += 1;
            t.lines -= 1;
            if t.lines == 0 {
                break;
            }
            if !self.can_admit_lane(self.agent_of(&t), lane) {
                self.txns[id] = t;
                return false;
            }
        }
        self.paths.record_admission(Path::P2mWrite, now - self.milestones[id].cha);
        cal.post(now, MemoryEvent::Fill(id));
        true
    }

    /// Performs a write of a device behind the IIO. The credit of a line returns once the LLC or a write queue has
    /// accepted it; lines that the LLC accepts immediately are answered together.
    pub(super) fn io_write(&mut self, cal: &mut impl MemoryPosts, id: TxnId, now: Time) {
        let t = self.txns[id];
        let mut here = t.lines;
        if t.lines == 1 {
            if !self.place_first_line(cal, &t, Some(id), now) {
                return; // a write queue will answer
            }
        } else {
            for line in t.line.span(t.lines) {
                let one = Txn { line, lines: 1, home: self.home_of_device_line(line), ..t };
                let part = self.txn(one);
                self.milestones[part] = self.milestones[id];
                if self.place_first_line(cal, &one, Some(part), now) {
                    self.free_txn(part);
                } else {
                    here -= 1;
                    self.paths.under_way[Path::P2mWrite.index()].force(t.issued);
                }
            }
            if here == 0 {
                self.paths.under_way[Path::P2mWrite.index()].give(now, t.issued);
                return self.free_txn(id);
            }
            self.txns[id].lines = here;
        }
        let freed = now + self.lat.ownership + self.nodes[self.agent_of(&t)].look_up;
        let held = &mut self.paths.at_home_agent[Path::P2mWrite.index()];
        held.force(now);
        held.give_at(freed, now);
        cal.post(freed + self.lat.to_iio, MemoryEvent::Fill(id));
    }

    /// Place in which the LLC that serves devices looks for `line`.
    #[inline]
    pub(super) fn home_of_device_line(&self, line: LineAddr) -> LineHome {
        self.nodes[self.devices_node(line)].llc.home(line)
    }

    /// Writes the first line of a device's write, whose `home` is known, to the destination that the policy chose.
    /// Returns false when `waiter` has to wait for a write queue: for the line itself, or for the line that it displaced.
    pub(super) fn place_first_line(
        &mut self,
        cal: &mut impl MemoryPosts,
        t: &Txn,
        waiter: Option<TxnId>,
        now: Time,
    ) -> bool {
        let Txn { line, home, to, class, .. } = *t;
        debug_assert_eq!(home, self.home_of_device_line(line));
        let (agent, node) = (t.agent(), self.devices_node(line));
        let kind = self.map.of(line).kind;
        if kind == RegionKind::Rx {
            self.rx_line_states.set(line, rx_line_states::UNCONSUMED);
        }
        if let Some(s) = &mut self.shadow {
            s.store(line, if to == Inbound::Dram { CopyPlace::Dram } else { CopyPlace::Llc(node) });
        }
        let taken = self.invalidate_all_copies(cal, line, now);
        self.stats.ledger.overwritten += taken.dirty;
        if taken.held {
            if let Sharing::Core(c) = self.sharing(line) {
                self.stats.cores[c].mlc_invalidations += 1;
            }
        }
        self.stats.dma[agent.index()].writes += 1;
        self.stats.nic_lines += u64::from(class.is_of_nic());
        let (way, placed) = match to {
            Inbound::OutsideCaches => return true,
            Inbound::Dram => {
                let slot = self.nodes[node].llc.find_at(home);
                let dropped = slot.map_or(0, |s| u64::from(self.nodes[node].llc.remove(s)));
                self.stats.ledger.overwritten += dropped;
                self.stats.ledger.bypassed += 1;
                let told = self.write_dram_for(cal, node, line, class, waiter, now);
                self.stats.dma[agent.index()].write_misses += 1;
                (slot.map(|s| s.way()), !told)
            }
            Inbound::Llc { ways } | Inbound::Hint { ways, .. } => {
                self.evicts_for = waiter;
                let way = self.ddio_write(cal, node, home, ways, now);
                self.stats.dma[agent.index()].write_misses += u64::from(way.is_none());
                if let Inbound::Hint { core, .. } = to {
                    self.send_hint(cal, core, line, now);
                }
                (way, waiter.is_none() || self.evicts_for.take().is_some())
            }
        };
        let was = self.location_of(taken.held, way);
        self.stats.dma[agent.index()].wrote_at[was.index()] += 1;
        placed
    }

    /// Place of a line, given whether private caches held the line and in which way the LLC holds it.
    #[inline]
    pub(super) fn location_of(&self, private: bool, way: Option<u32>) -> LineLocation {
        match way {
            None if private => LineLocation::Mlc,
            None => LineLocation::Dram,
            Some(_) if private => LineLocation::Both,
            Some(w) if self.device_ways >> w & 1 == 1 => LineLocation::Ddio,
            Some(_) => LineLocation::Llc,
        }
    }

    /// Sends a prefetch hint for `line` to the L2 of `core`.
    fn send_hint(&mut self, cal: &mut impl MemoryPosts, core: CoreId, line: LineAddr, now: Time) {
        self.holds_unread = true;
        if self.functional {
            return self.fetch_functional(cal, core, line);
        }
        cal.post(now + self.nodes[self.devices_node(line)].noc, MemoryEvent::hint(core, line));
    }

    /// Writes a whole line of a device into the LLC, in place or into one of `ways`; returns the way in which the LLC
    /// had it.
    fn ddio_write(
        &mut self,
        cal: &mut impl MemoryPosts,
        node: NodeId,
        home: LineHome,
        ways: u32,
        now: Time,
    ) -> Option<u32> {
        self.stats.ledger.created += 1;
        let ways = self.device_way_mask(ways);
        let Some(s) = self.nodes[node].llc.find_at(home) else {
            self.allocate_mshr(home, now);
            self.llc_insert(cal, node, home, true, ways, now);
            self.end_lookup(cal, now);
            return None;
        };
        self.stats.ledger.overwritten += u64::from(self.nodes[node].llc.is_dirty(s));
        self.nodes[node].llc.set_dirty(s, true);
        self.nodes[node].llc.touch(s);
        Some(s.way())
    }

    /// Performs a device's read. Lines found on the chip are answered together, and each line from DRAM separately.
    pub(super) fn read_burst(&mut self, cal: &mut impl MemoryPosts, id: TxnId, now: Time) {
        let t = self.txns[id];
        let (mut here, mut snoop, mut modified) = (0, Time::ZERO, 0);
        for line in t.line.span(t.lines) {
            let home = if t.lines == 1 { t.home } else { self.home_of_device_line(line) };
            match self.find_read_source(cal, &t, line, home, now) {
                ReadSource::Chip { snoop: s, modified: m } => {
                    here += 1;
                    modified += u8::from(m);
                    snoop = snoop.max(s);
                }
                ReadSource::Dram if t.lines == 1 => {
                    self.bind_mshr(id);
                    return self.read_dram(cal, id, t.class, now);
                }
                ReadSource::Dram => {
                    let part = self.txn(Txn { line, lines: 1, ..t });
                    self.milestones[part] = Milestones { admitted: now, ..self.milestones[id] };
                    self.paths.under_way[Path::P2mRead.index()].force(t.issued);
                    self.bind_mshr(part);
                    self.read_dram(cal, part, t.class, now);
                }
            }
        }
        if here == 0 {
            self.paths.under_way[Path::P2mRead.index()].give(now, t.issued);
            self.free_txn(id);
            return;
        }
        let answer = &mut self.txns[id];
        (answer.lines, answer.record) = (here, modified);
        let look_up = self.nodes[self.agent_of(&t)].look_up;
        cal.post(now + look_up + snoop + self.latency_from_agent(&t), MemoryEvent::Fill(id));
    }

    /// Looks up a line, at its place `home` in the LLC, that a device reads. A private copy answers in place of the LLC, which may take over the line.
    pub(super) fn find_read_source(
        &mut self,
        cal: &mut impl MemoryPosts,
        t: &Txn,
        line: LineAddr,
        home: LineHome,
        now: Time,
    ) -> ReadSource {
        debug_assert_eq!(home, self.home_of_device_line(line));
        let (kind, node) = (self.map.of(line).kind, self.devices_node(line));
        if kind == RegionKind::Rx {
            let stale = self.rx_line_states.of(line) == rx_line_states::SWEPT;
            self.rx_line_states.set(line, if stale { rx_line_states::SWEPT } else { rx_line_states::CONSUMED });
            self.stats.stale_reads += u64::from(stale && !t.ahead);
        }
        self.stats.dma[t.agent().index()].reads += 1;
        self.stats.nic_lines += u64::from(t.class.is_of_nic());
        if self.is_outside_caches(kind) {
            return ReadSource::Chip { snoop: Time::ZERO, modified: false };
        }
        if t.from == Outbound::Dram {
            self.clean(cal, line, now); // memory must be up to date first
            return ReadSource::Dram;
        }
        let near = self.held_by_a_core(line);
        let slot = self.nodes[node].llc.find_at(home);
        if let Some(s) = slot {
            let llc = &mut self.nodes[node].llc;
            if self.llc_protocol.device_reads_age() {
                llc.expire(s);
            } else {
                llc.touch(s);
            }
        }
        let was = self.location_of(near, slot.map(|s| s.way()));
        self.stats.dma[t.agent().index()].read_at[was.index()] += 1;
        if near && self.llc_protocol.device_read == DeviceReads::Demote {
            self.demote_for_device(cal, line, slot.is_some(), now);
        }
        let missed = !near && slot.is_none();
        if missed {
            self.allocate_mshr(home, now);
            self.stats.dma[t.agent().index()].read_misses += 1;
        }
        if self.llc_protocol.installs() {
            self.allocate_for_device_read(cal, home, line, near, now);
        }
        if missed {
            return ReadSource::Dram;
        }
        if near {
            return ReadSource::Chip { snoop: self.nodes[node].noc + self.lat.l2, modified: false };
        }
        let modified = slot.is_some_and(|s| self.nodes[node].llc.is_dirty(s));
        ReadSource::Chip { snoop: Time::ZERO, modified }
    }

    /// Installs a line that a device reads in the LLC. The data comes from DRAM, or from a core, which keeps a clean
    /// copy if `near`.
    fn allocate_for_device_read(
        &mut self,
        cal: &mut impl MemoryPosts,
        home: LineHome,
        line: LineAddr,
        near: bool,
        now: Time,
    ) {
        let node = self.devices_node(line);
        let dirty = near && self.clean_above(line).is_some();
        if near {
            self.read_by_devices.add(&self.map, line);
        }
        if dirty {
            if let Some(s) = &mut self.shadow {
                s.settle(line, CopyPlace::Llc(node));
            }
        }
        if let Some(s) = self.nodes[node].llc.find_at(home) {
            let here = self.nodes[node].llc.is_dirty(s);
            self.stats.ledger.merged += u64::from(here && dirty);
            self.nodes[node].llc.set_dirty(s, here || dirty);
            return;
        }
        if !dirty {
            self.record_copy(line, CopyPlace::Dram, CopyPlace::Llc(node));
        }
        let ways =
            if self.device_ways == 0 { u32::MAX >> (32 - self.nodes[node].llc.ways()) } else { self.device_ways };
        let looks_up = near && self.miss.is_none(); // a line that comes from a core misses the LLC as well
        if looks_up {
            self.allocate_mshr(home, now);
        }
        self.llc_insert(cal, node, home, dirty, ways, now);
        if looks_up {
            self.end_lookup(cal, now);
        }
    }

    /// Evicts to the LLC a private copy that is dirty or whose line the LLC does not hold.
    fn demote_for_device(&mut self, cal: &mut impl MemoryPosts, line: LineAddr, in_llc: bool, now: Time) {
        let holders = match self.sharing(line) {
            Sharing::Device => 0,
            Sharing::Core(c) => 1u128 << c.index(),
            Sharing::Shared => self.shared.holders(line),
        };
        let of = |m: &Memory, c: CoreId| {
            if holders >> c.index() & 1 == 1 {
                m.private_copy(c, line)
            } else {
                CopyState::Nowhere
            }
        };
        let dirty = self.l2.ids().any(|c| of(self, c) == CopyState::Dirty);
        if !dirty && in_llc {
            return;
        }
        for c in self.l2.ids() {
            if of(self, c) != CopyState::Nowhere {
                self.demote(cal, c, line, now);
            }
        }
    }

    /// Whether a private cache has `line`, or is about to receive it.
    #[inline(always)]
    fn held_by_a_core(&self, line: LineAddr) -> bool {
        match self.sharing(line) {
            Sharing::Device => false,
            Sharing::Core(c) => self.holds(c, line) || self.lines.owner(line).is_some(),
            Sharing::Shared => {
                let holders = self.shared.holders(line);
                self.lines.owner(line).is_some()
                    || self.l2.ids().any(|c| holders >> c.index() & 1 == 1 && self.holds(c, line))
            }
        }
    }

    /// Performs a device's request with all its consequences at `t.issued` in functional mode, without queues and
    /// without an answer; see [`Memory::functional`].
    pub fn dma_functional(&mut self, cal: &mut impl MemoryPosts, t: &Txn) {
        self.prefetch_on_host(t.line, t.lines.into());
        for line in t.line.span(t.lines) {
            let home = self.home_of_device_line(line);
            if t.op == TxnOp::DmaWrite {
                self.place_first_line(cal, &Txn { line, home, ..*t }, None, t.issued);
            } else if let ReadSource::Dram = self.find_read_source(cal, t, line, home, t.issued) {
                self.end_lookup(cal, t.issued);
                self.stats.count(t.class);
            }
        }
    }
}
