//! What devices do at the home agent: reads and writes of whole lines, through whichever attachment they came.

use super::array::Home;
use super::home::FIRST;
use super::paths::{Marks, Path};
use super::region::{Kind, Sharing};
use super::request::{Agent, Inbound, Op, Outbound};
use super::shadow::At;
use super::spec::DeviceRead;
use super::{rx, Memory, Txn, NOBODY};
use crate::kernel::{Event, Events, Time};

/// What a device's read found, and what that cost beside the look-up.
enum Source {
    Chip { snoop: Time },
    Dram,
}

impl Memory {
    /// From the home agent back to a device.
    #[inline]
    pub(super) fn way_back(&self, agent: Agent) -> Time {
        if agent == Agent::Io {
            self.lat.to_iio
        } else {
            self.lat.noc
        }
    }

    /// Places the lines of an integrated NIC's burst, as far as there is room; true after the last one.
    pub(super) fn write_burst(&mut self, cal: &mut Events, id: u32, lane: usize, now: Time) -> bool {
        debug_assert_eq!(lane, FIRST);
        loop {
            let t = &mut self.txns[id as usize];
            let first = *t;
            t.line += 1;
            t.lines -= 1;
            let last = t.lines == 0;
            self.place(cal, &first, NOBODY, now);
            if last {
                self.paths.admit(Path::P2mWrite, now - self.marks[id as usize].cha);
                cal.push(now, Event::Fill(id));
                return true;
            }
            if !self.admits(lane) {
                return false;
            }
        }
    }

    /// A device behind the IIO writes one line. Its entry comes back once the LLC or a write queue has it.
    pub(super) fn io_write(&mut self, cal: &mut Events, id: u32, now: Time) {
        let t = self.txns[id as usize];
        if !self.place(cal, &t, id, now) {
            return; // a write queue will answer
        }
        let freed = now + self.lat.ownership + self.lat.llc;
        let held = &mut self.paths.held[Path::P2mWrite as usize];
        held.force(now);
        held.give(freed, now);
        cal.push(freed + self.lat.to_iio, Event::Fill(id));
    }

    /// The first line of a device's write goes to its place. False when `waiter` has to wait for a write queue: for the
    /// line itself, or for the one that makes room for it.
    fn place(&mut self, cal: &mut Events, t: &Txn, waiter: u32, now: Time) -> bool {
        let Txn { line, to, agent, class, .. } = *t;
        let kind = self.map.of(line).kind;
        if kind == Kind::Rx {
            self.lives.set(line, rx::UNCONSUMED);
        }
        if let Some(s) = &mut self.shadow {
            s.store(line, if to == Inbound::Dram { At::Dram } else { At::Llc });
        }
        let dropped = self.take_away(cal, line, now);
        self.stats.ledger.overwritten += dropped;
        let counts = &mut self.stats.dma[agent as usize];
        counts.writes += 1;
        match to {
            Inbound::Apart => true,
            Inbound::Dram => {
                counts.write_misses += 1;
                let dropped = self.drop_llc(line);
                self.stats.ledger.overwritten += dropped;
                self.stats.ledger.bypassed += 1;
                self.write_dram_for(cal, line, class, waiter, now);
                false
            }
            Inbound::Llc { ways } => {
                self.evicts_for = (waiter != NOBODY).then_some(waiter);
                let hit = self.ddio_write(cal, line, ways, now);
                self.stats.dma[agent as usize].write_misses += u64::from(!hit);
                waiter == NOBODY || self.evicts_for.take().is_some()
            }
        }
    }

    /// A device's whole line enters the LLC, in place or else into one of `ways`; true when it was there.
    fn ddio_write(&mut self, cal: &mut Events, line: u64, ways: u32, now: Time) -> bool {
        self.stats.ledger.created += 1;
        let home = self.llc.home(line);
        let ways = self.ways_of_devices(ways);
        self.device_ways = ways;
        let Some(s) = self.llc.find_at(home) else {
            self.begin_miss(home, now);
            self.llc_insert(cal, home, true, ways, now);
            self.end_look_up(cal, now);
            return false;
        };
        self.stats.ledger.overwritten += u64::from(self.llc.is_dirty(s));
        self.llc.set_dirty(s, true);
        self.llc.touch(s);
        true
    }

    /// A device reads. Lines found on the chip are answered together; each that DRAM delivers by itself.
    pub(super) fn read_burst(&mut self, cal: &mut Events, id: u32, now: Time) {
        let t = self.txns[id as usize];
        let (mut here, mut snoop) = (0, Time::ZERO);
        for line in t.line..t.line + u64::from(t.lines) {
            match self.source(cal, &t, line, now) {
                Source::Chip { snoop: s } => {
                    here += 1;
                    snoop = snoop.max(s);
                }
                Source::Dram if t.lines == 1 => {
                    self.tie_miss(id);
                    return self.read_dram(cal, id, t.class, now);
                }
                Source::Dram => {
                    let part = self.txn(Txn { line, lines: 1, ..t });
                    self.marks[part as usize] = Marks { admitted: now, ..self.marks[id as usize] };
                    self.paths.under_way[Path::P2mRead as usize].force(t.issued);
                    self.tie_miss(part);
                    self.read_dram(cal, part, t.class, now);
                }
            }
        }
        if here == 0 {
            self.paths.under_way[Path::P2mRead as usize].give(now, t.issued);
            self.finish(id);
            return;
        }
        self.txns[id as usize].lines = here;
        cal.push(now + self.lat.llc + snoop + self.way_back(t.agent), Event::Fill(id));
    }

    /// Looks for a line that a device reads. A private copy answers for the LLC, which may take it.
    fn source(&mut self, cal: &mut Events, t: &Txn, line: u64, now: Time) -> Source {
        let kind = self.map.of(line).kind;
        if kind == Kind::Rx {
            let stale = self.lives.of(line) == rx::SWEPT;
            self.lives.set(line, if stale { rx::SWEPT } else { rx::CONSUMED });
            self.stats.stale_reads += u64::from(stale);
        }
        self.stats.dma[t.agent as usize].reads += 1;
        if self.apart(kind) {
            return Source::Chip { snoop: Time::ZERO };
        }
        if t.from == Outbound::Dram {
            self.clean(cal, line, now); // memory must be up to date first
            return Source::Dram;
        }
        let near = self.held_by_a_core(line);
        let home = self.llc.home(line);
        let slot = self.llc.find_at(home);
        if let Some(s) = slot {
            self.llc.touch(s);
        }
        let missed = !near && slot.is_none();
        if missed {
            self.begin_miss(home, now);
            self.stats.dma[t.agent as usize].read_misses += 1;
        }
        if self.habits.device_read == DeviceRead::Install {
            self.install(cal, home, line, near, now);
        }
        if missed {
            return Source::Dram;
        }
        Source::Chip { snoop: if near { self.lat.noc + self.lat.l2 } else { Time::ZERO } }
    }

    /// A line that a device reads comes into the LLC: from a core that is `near`, or with the data that DRAM delivers.
    fn install(&mut self, cal: &mut Events, home: Home, line: u64, near: bool, now: Time) {
        let dirty = if near { self.take_away(cal, line, now) } else { 0 };
        if dirty > 0 {
            if let Some(s) = &mut self.shadow {
                s.settle(line, At::Llc);
            }
        }
        if let Some(s) = self.llc.find_at(home) {
            let both = u64::from(self.llc.is_dirty(s)) + dirty;
            self.stats.ledger.merged += both.saturating_sub(1);
            self.llc.set_dirty(s, both > 0);
            return;
        }
        self.stats.ledger.merged += dirty.saturating_sub(1);
        if dirty == 0 {
            self.note_copy(line, At::Dram, At::Llc);
        }
        let looks_up = near && self.miss == NOBODY; // what comes from a core misses the LLC as well
        if looks_up {
            self.begin_miss(home, now);
        }
        self.llc_insert(cal, home, dirty > 0, self.device_ways, now);
        if looks_up {
            self.end_look_up(cal, now);
        }
    }

    /// Whether a private cache has `line`, or is about to.
    fn held_by_a_core(&self, line: u64) -> bool {
        match self.sharing(line) {
            Sharing::Device => false,
            Sharing::Core(c) => self.holds(c.into(), line) || self.lines.owner(line).is_some(),
            Sharing::Shared => {
                let holders = self.shared.holders(line);
                self.lines.owner(line).is_some()
                    || (0..self.l2.len()).any(|c| holders >> c & 1 == 1 && self.holds(c, line))
            }
        }
    }

    /// A device's request with everything it causes, at `t.issued` and without a door: see [`Memory::functional`].
    pub fn dma_at_once(&mut self, cal: &mut Events, t: &Txn) {
        for line in t.line..t.line + u64::from(t.lines) {
            if t.op == Op::DmaWrite {
                self.place(cal, &Txn { line, ..*t }, NOBODY, t.issued);
            } else if let Source::Dram = self.source(cal, t, line, t.issued) {
                self.end_look_up(cal, t.issued);
                self.stats.count(t.class);
            }
        }
    }
}
