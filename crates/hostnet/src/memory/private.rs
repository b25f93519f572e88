//! Private caches of a core. Accesses are resolved without events, so that a core runs ahead until an access misses the
//! L2.

use super::array::{CacheArray, CacheSlot, InsertPlace, Victim};
use super::filter::cores_of;
use super::node::FIRST_NODE;
use super::paths::{Milestones, Path};
use super::protocol::CopyState;
use super::region::{RegionKind, Sharing};
use super::shadow::CopyPlace;
use super::{rx_line_states, CleanVictim, Memory, MemoryPosts, PendingVictim, Sender, Txn, TxnOp};
use crate::kernel::{CoreId, Int, LineAddr, NodeId, Time};

/// Private cache in which a core found a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Probe {
    /// The L1.
    L1,
    /// The L2.
    L2,
    /// Neither cache.
    Miss,
}

impl Memory {
    /// Looks up `line` in the core's caches; a write marks the L1's copy dirty. An L2 hit copies the line to the L1.
    #[inline]
    pub fn probe(&mut self, cal: &mut impl MemoryPosts, core: CoreId, line: LineAddr, write: bool, now: Time) -> Probe {
        if let Some(s) = self.l1[core].find_in_slice(line) {
            if write && self.others_hold(core, line, self.l1[core].is_dirty(s)) {
                return Probe::Miss;
            }
            self.l1[core].touch(s);
            if write {
                self.mark_dirty_l1(core, s, line);
            }
            return Probe::L1;
        }
        if let Some(s) = self.l2[core].find_in_slice(line) {
            if write && self.others_hold(core, line, self.l2[core].is_dirty(s)) {
                return Probe::Miss;
            }
            self.l2[core].touch(s);
            self.record_hit(line);
            let s = self.fill_l1(cal, core, line, now);
            if write {
                self.mark_dirty_l1(core, s, line);
            }
            return Probe::L2;
        }
        Probe::Miss
    }

    /// Records that a core uses a line of its L2, or that its L2 receives the line for a prefetch.
    #[inline]
    fn record_hit(&mut self, line: LineAddr) {
        if self.holds_unread
            && self.map.of(line).kind == RegionKind::Rx
            && self.rx_line_states.of(line) == rx_line_states::UNCONSUMED
        {
            self.rx_line_states.set(line, rx_line_states::CONSUMED);
        }
    }

    /// Whether a store to `line` must ask for ownership: the core's copy is clean, and other cores may hold the line or
    /// a device has read it.
    #[inline]
    fn others_hold(&self, core: CoreId, line: LineAddr, dirty: bool) -> bool {
        !dirty
            && (self.sharing(line) == Sharing::Shared
                && (self.shared.holders(line) & !(1 << core.index()) != 0 || self.other_llc_holds(core, line))
                || self.device_reads_allocate() && self.read_by_devices.has(&self.map, line))
    }

    /// Invalidates the copies of `line` in the other cores if `own`, or otherwise cleans them. Returns whether any core
    /// was snooped, and the core that supplied dirty data.
    pub(super) fn snoop(&mut self, core: CoreId, line: LineAddr, own: bool) -> (bool, Option<CoreId>) {
        let others = self.shared.holders(line) & !(1 << core.index());
        let (mut left, mut giver) = (others, None);
        while left != 0 {
            let c = CoreId(left.trailing_zeros().to_u16());
            left &= left - 1;
            let mut dirty = u64::from(self.clean_in(c, line));
            if own {
                dirty += self.invalidate_in(c, line).dirty;
                self.shared.drop_holder(line, c);
            }
            if dirty > 0 {
                debug_assert!(giver.is_none(), "two cores have written line {line}");
                giver = Some(c);
            }
        }
        (others != 0, giver)
    }

    fn mark_dirty_l1(&mut self, core: CoreId, slot: CacheSlot, line: LineAddr) {
        if !self.l1[core].is_dirty(slot) {
            self.l1[core].set_dirty(slot, true);
            self.stats.ledger.created += 1;
            self.record_write(line);
            // A prefetched line is written without a request to the home agent.
            if self.holds_unread
                && self.map.of(line).kind == RegionKind::Rx
                && self.rx_line_states.of(line) == rx_line_states::SWEPT
            {
                self.rx_line_states.set(line, rx_line_states::CONSUMED);
            }
        }
        if let Some(s) = &mut self.shadow {
            s.store(line, CopyPlace::Core(core));
        }
    }

    /// Notes that the region of `line` is no longer read-only.
    #[inline]
    pub(super) fn record_write(&mut self, line: LineAddr) {
        if self.races && self.sharing(line) == Sharing::Shared {
            self.map.note_write(line);
        }
    }

    /// Whether an access of `core` would hit a line that must not be looked up ahead of the calendar, because another
    /// core or a device may write or read the line before the time of the access.
    #[inline(always)]
    pub fn hit_may_change(&self, core: CoreId, line: LineAddr, write: bool) -> bool {
        self.races && self.hit_races(core, line, write)
    }

    #[inline(never)]
    fn hit_races(&self, core: CoreId, line: LineAddr, write: bool) -> bool {
        self.region_may_change(line, write) && self.hits(core, line, write)
    }

    /// Whether the L2s of cores include their L1s, so that an L2 which evicts a line also takes it from the L1.
    pub fn l2_includes_l1(&self) -> bool {
        self.l2_inclusive
    }

    /// Whether another agent may write `line` while a core that holds the line reads it.
    pub fn read_may_race(&self, line: LineAddr) -> bool {
        self.races && self.region_may_change(line, false)
    }

    #[inline]
    fn region_may_change(&self, line: LineAddr, write: bool) -> bool {
        let r = self.map.of(line);
        match r.sharing {
            Sharing::Shared => write || r.written,
            Sharing::Core(_) => r.polled && !write,
            Sharing::Device => false,
        }
    }

    /// Whether a store of `core` to `line` would hit.
    pub fn owns(&self, core: CoreId, line: LineAddr) -> bool {
        self.hits(core, line, true)
    }

    /// Whether `probe` would find `line`.
    fn hits(&self, core: CoreId, line: LineAddr, write: bool) -> bool {
        if !write {
            return self.holds(core, line);
        }
        match self.private_copy(core, line) {
            CopyState::Nowhere => false,
            copy => !self.others_hold(core, line, copy == CopyState::Dirty),
        }
    }

    fn fill_l1(&mut self, cal: &mut impl MemoryPosts, core: CoreId, line: LineAddr, now: Time) -> CacheSlot {
        let place = self.l1_place(core, line);
        self.enter_l1(cal, core, place, now)
    }

    #[inline(always)]
    fn l1_place(&mut self, core: CoreId, line: LineAddr) -> InsertPlace {
        let mask = u32::MAX >> (32 - self.l1[core].ways());
        self.l1[core].choose_in_slice(line, mask)
    }

    #[inline]
    fn enter_l1(&mut self, cal: &mut impl MemoryPosts, core: CoreId, place: InsertPlace, now: Time) -> CacheSlot {
        let victim = self.l1[core].fill(place, false);
        if let Some(Victim { line, dirty: true, .. }) = victim {
            self.write_back_from_l1(cal, core, line, now);
        }
        place.slot()
    }

    /// Inserts a dirty line that the L1 evicts into the L2.
    #[inline(never)]
    fn write_back_from_l1(&mut self, cal: &mut impl MemoryPosts, core: CoreId, line: LineAddr, now: Time) {
        match self.l2[core].find_in_slice(line) {
            Some(s) if self.l2[core].is_dirty(s) => self.stats.ledger.merged += 1,
            Some(s) => self.l2[core].set_dirty(s, true),
            None => self.fill_l2(cal, core, line, true, false, now),
        }
    }

    /// Inserts `line` into the L2 of `core`; `copied` marks a clean copy of a line that the LLC holds.
    #[inline(never)]
    fn fill_l2(
        &mut self,
        cal: &mut impl MemoryPosts,
        core: CoreId,
        line: LineAddr,
        dirty: bool,
        copied: bool,
        now: Time,
    ) {
        if let Sharing::Shared = self.sharing(line) {
            self.shared.add(line, core);
        }
        let mask = u32::MAX >> (32 - self.l2[core].ways());
        let (slot, victim) = self.l2[core].insert_in_slice(line, dirty, mask);
        if copied && self.clean_victim == CleanVictim::AllocateFetched {
            self.l2[core].mark(slot);
        }
        if let Some(mut v) = victim {
            if self.sharing(v.line) == Sharing::Shared
                && (self.l2_inclusive || self.l1[core].find_in_slice(v.line).is_none())
            {
                self.shared.drop_holder(v.line, core);
            }
            if self.l2_inclusive {
                if let Some(s) = self.l1[core].find_in_slice(v.line) {
                    let above = self.l1[core].remove(s);
                    self.stats.ledger.merged += u64::from(above && v.dirty);
                    v.dirty |= above;
                }
            }
            if v.dirty || self.llc_accepts(&v) {
                self.count_write_back(core, v.line);
                self.written_back += u64::from(v.dirty && !self.functional);
                self.fill_llc(cal, core, v.line, v.dirty, now);
                self.evict_from_l2(cal, core, &v, now);
            }
        }
    }

    /// Counts that the L2 of `core` evicts `line` to the LLC.
    #[inline]
    pub(super) fn count_write_back(&mut self, core: CoreId, line: LineAddr) {
        // Without hints and prefetches, only a read fetches a received line into an L2.
        let was_read = |life| matches!(life, rx_line_states::CONSUMED | rx_line_states::SWEPT);
        let read =
            self.map.of(line).kind == RegionKind::Rx && (!self.holds_unread || was_read(self.rx_line_states.of(line)));
        let counts = &mut self.stats.cores[core];
        counts.mlc_wb += 1;
        counts.mlc_wb_consumed += u64::from(read);
    }

    /// Whether a clean victim of an L2 goes to the LLC.
    #[inline]
    pub(super) fn llc_accepts(&self, v: &Victim) -> bool {
        match self.clean_victim {
            CleanVictim::Allocate => true,
            CleanVictim::AllocateFetched => !v.marked,
            CleanVictim::Drop => false,
        }
    }

    /// Fills L2 and L1 with the data of a core's miss. `write` leaves the line dirty in the L1; `t.dirty` says whether
    /// the duty to write the line back came with the data. Returns true when a write-back left that keeps the line fill
    /// buffer until the home agent has admitted the write-back.
    pub fn fill(&mut self, cal: &mut impl MemoryPosts, core: CoreId, t: &Txn, write: bool, now: Time) -> bool {
        if self.writebacks && !self.functional {
            self.pending_victim = Some(PendingVictim {
                core,
                thread: t.thread(),
                issued: t.issued,
                record: 0,
                victim: None,
                carried: false,
            });
        }
        self.fill_private(cal, core, t, write, now);
        self.send_pending_victim(cal, now)
    }

    /// Fills the L2 with the data of a prefetch; a write-back that the fill causes carries `record`. Returns true when
    /// the write-back keeps the prefetch's credit.
    pub fn fill_prefetch(&mut self, cal: &mut impl MemoryPosts, core: CoreId, t: &Txn, record: u8, now: Time) -> bool {
        if self.writebacks && !self.functional {
            self.pending_victim = Some(PendingVictim {
                core,
                thread: t.thread(),
                issued: t.issued,
                record,
                victim: None,
                carried: false,
            });
        }
        self.fill_l2_once(cal, core, t, now);
        self.send_pending_victim(cal, now)
    }

    /// Ends a fill; returns whether a write-back keeps the fill's line fill buffer. An inclusive LLC may have evicted a
    /// line where the L2 evicted none.
    #[inline]
    fn send_pending_victim(&mut self, cal: &mut impl MemoryPosts, now: Time) -> bool {
        let Some(l) = self.pending_victim.take() else { return false };
        if let Some(line) = l.victim {
            self.write_victim(cal, self.node_of_core(l.core), line, now);
        }
        l.carried
    }

    /// Whether the L2's prefetcher should fetch `line`: the core does not have the line, and the line belongs to
    /// application memory or, if the prefetcher follows the `network`, to the core's receive buffers.
    pub fn worth_prefetching(&self, core: CoreId, line: LineAddr, network: bool) -> bool {
        let r = self.map.of(line);
        let own = network && r.kind == RegionKind::Rx && r.sharing == Sharing::Core(core);
        let may = (r.kind == RegionKind::App || own) && line < r.base + r.lines;
        may && self.l2[core].find_in_slice(line).is_none() && self.l1[core].find_in_slice(line).is_none()
    }

    /// Whether the core's LLC has `line`, or other cores may have it.
    pub fn in_llc_or_shared(&self, core: CoreId, line: LineAddr) -> bool {
        self.is_shared(line) || self.nodes[self.node_of_core(core)].llc.find(line).is_some()
    }

    /// Inserts a line that was prefetched into the core's LLC.
    pub fn fill_llc_prefetch(&mut self, cal: &mut impl MemoryPosts, core: CoreId, t: &Txn, now: Time) {
        if t.transient || t.copied {
            return;
        }
        self.record_copy(t.line, CopyPlace::ToCore(core), CopyPlace::Core(core));
        self.fill_llc(cal, core, t.line, t.dirty, now);
    }

    /// Whether the L1's prefetchers should fetch `line`: the line belongs to application memory, and the L1 does not
    /// have it.
    pub fn worth_loading(&self, core: CoreId, line: LineAddr) -> bool {
        let r = self.map.of(line);
        r.kind == RegionKind::App && line < r.base + r.lines && self.l1[core].find_in_slice(line).is_none()
    }

    /// Whether a hint should fetch `line`, which a device has written for a core: no private cache of the core has the
    /// line.
    pub fn worth_fetching(&self, core: CoreId, line: LineAddr) -> bool {
        self.l2[core].find_in_slice(line).is_none() && self.l1[core].find_in_slice(line).is_none()
    }

    /// Whether several cores may have copies of `line`.
    pub fn is_shared(&self, line: LineAddr) -> bool {
        self.sharing(line) == Sharing::Shared
    }

    /// Sends an L2 victim to the home agent as a request, together with the line that it displaced from the LLC. The
    /// victim leaves early enough to be acknowledged when the fill is complete, so that only a home agent that admits
    /// nothing delays the line fill buffer. Tags are updated immediately, so that no look-up misses a line in flight.
    fn evict_from_l2(&mut self, cal: &mut impl MemoryPosts, core: CoreId, v: &Victim, now: Time) {
        let Some(l) = &mut self.pending_victim else { return };
        let out = l.victim.take();
        if !v.dirty && out.is_none() {
            return;
        }
        let record = l.record;
        let mut t = Txn {
            dirty: out.is_some(),
            transient: l.carried || !v.dirty, // at most one write-back holds the buffer
            at_mc: now,
            sender: Sender::Core { core: l.core, thread: l.thread },
            ..Txn::new(TxnOp::WriteBack, out.unwrap_or(v.line), l.core, l.issued)
        };
        let node = self.node_of_core(core);
        let noc = self.nodes[node].noc;
        let at = Time(now.0.saturating_sub(noc.0));
        let way = self.lat.l1 + self.lat.l2 + noc;
        let milestones = Milestones::at(Time(at.0.saturating_sub(way.0)), at);
        if self.admits_write_back(node) {
            self.admit_write_back(cal, &t, Time::ZERO, now);
            if t.holds_credit() {
                self.paths.under_way[Path::C2mWrite.index()].force(milestones.start);
                self.paths.record(Path::C2mWrite, 1, &milestones, now);
            }
            return;
        }
        if !t.transient {
            t.record = record;
            self.pending_victim.as_mut().expect("taken from above").carried = true;
        }
        self.wait_for_admission(t, milestones);
    }

    #[inline(always)]
    fn fill_l2_once(&mut self, cal: &mut impl MemoryPosts, core: CoreId, t: &Txn, now: Time) {
        let (line, dirty) = (t.line, t.dirty);
        if self.shadow.is_some() && !self.holds(core, line) {
            self.record_copy(line, CopyPlace::ToCore(core), CopyPlace::Core(core));
        }
        // An eviction may have brought the line while this request was in flight.
        match self.l2[core].find_in_slice(line) {
            Some(s) if dirty && self.l2[core].is_dirty(s) => self.stats.ledger.merged += 1,
            Some(s) if dirty => self.l2[core].set_dirty(s, true),
            Some(_) => {}
            None => {
                if self.strict {
                    self.fill_inclusive_llc(cal, self.node_of_core(core), line, now);
                }
                self.fill_l2(cal, core, line, dirty, t.copied, now);
            }
        }
    }

    #[inline(always)]
    fn fill_private(&mut self, cal: &mut impl MemoryPosts, core: CoreId, t: &Txn, write: bool, now: Time) {
        let line = t.line;
        self.record_hit(line);
        // The L1's victim goes to the L2: the computer that runs the simulation prefetches its set while the L2 is
        // filled. The fill of the L2 leaves the L1 unchanged unless the L2 is inclusive.
        let mut place = None;
        if !self.l2_inclusive && self.l1[core].find_in_slice(line).is_none() {
            let p = self.l1_place(core, line);
            if let Some(v) = self.l1[core].displaces(&p) {
                self.l2[core].prefetch_in_slice_on_host(v);
            }
            place = Some(p);
        }
        self.fill_l2_once(cal, core, t, now);
        let slot = match place {
            Some(p) => self.enter_l1(cal, core, p, now),
            None => match self.l1[core].find_in_slice(line) {
                Some(slot) => slot,
                None => self.fill_l1(cal, core, line, now),
            },
        };
        if write {
            self.mark_dirty_l1(core, slot, line);
        }
    }

    /// Invalidates every private copy of `line`; returns what the caches had.
    #[inline(always)]
    pub(super) fn invalidate_private(&mut self, line: LineAddr) -> InvalidatedCopies {
        match self.sharing(line) {
            Sharing::Core(c) => self.invalidate_in(c, line),
            Sharing::Device => InvalidatedCopies::default(),
            Sharing::Shared => {
                let holders = self.shared.take(line);
                cores_of(holders).map(|c| self.invalidate_in(c, line)).fold(InvalidatedCopies::default(), |a, b| {
                    InvalidatedCopies { held: a.held || b.held, dirty: a.dirty + b.dirty }
                })
            }
        }
    }

    #[inline(never)]
    pub(super) fn invalidate_in(&mut self, core: CoreId, line: LineAddr) -> InvalidatedCopies {
        let remove = |a: &mut CacheArray| a.find_in_slice(line).map(|s| u64::from(a.remove(s)));
        let (l1, l2) = (remove(&mut self.l1[core]), remove(&mut self.l2[core]));
        InvalidatedCopies { held: l1.is_some() || l2.is_some(), dirty: l1.unwrap_or(0) + l2.unwrap_or(0) }
    }

    /// Invalidates the copies of `lines` lines from `line` on in the caches of `core`, dirty or not, where their page
    /// allows it. Copies in the LLC stay (IDIO, section V-D).
    pub fn invalidate_own(&mut self, core: CoreId, line: LineAddr, lines: u64) {
        for l in line.span(lines) {
            if !self.allows_invalidation(l) {
                continue;
            }
            let taken = self.invalidate_in(core, l);
            if self.sharing(l) == Sharing::Shared {
                self.shared.drop_holder(l, core);
            }
            self.stats.ledger.swept += taken.dirty;
            if self.map.of(l).kind == RegionKind::Rx {
                self.rx_line_states.set(l, rx_line_states::SWEPT);
            }
            let node = self.node_of_core(core);
            let llc = self.nodes[node].llc.find(l).is_some();
            if let Some(s) = self.shadow.as_mut().filter(|_| taken.dirty > 0) {
                s.fall_back(l, if llc { CopyPlace::Llc(node) } else { CopyPlace::Dram });
            }
        }
    }

    /// Whether the data of `line` may be discarded according to its page; counts refusals.
    pub(super) fn allows_invalidation(&mut self, line: LineAddr) -> bool {
        let allowed = self.map.of(line).invalidatable;
        self.stats.refused_invalidations += u64::from(!allowed);
        allowed
    }

    /// Evicts `line`, clean or dirty, from the caches of `core` to the LLC, as a device's read may require.
    pub fn demote(&mut self, cal: &mut impl MemoryPosts, core: CoreId, line: LineAddr, now: Time) {
        let taken = self.invalidate_in(core, line);
        if self.sharing(line) == Sharing::Shared {
            self.shared.drop_holder(line, core);
        }
        if taken.held {
            self.stats.ledger.merged += taken.dirty.saturating_sub(1);
            self.count_write_back(core, line);
            self.fill_llc(cal, core, line, taken.dirty > 0, now);
        }
    }

    /// Fetches `line`, which no instruction has asked for yet, into the L2 of `core` in functional mode.
    pub(super) fn fetch_functional(&mut self, cal: &mut impl MemoryPosts, core: CoreId, line: LineAddr) {
        if !self.worth_fetching(core, line) {
            return;
        }
        let t = Txn { ahead: true, ..Txn::new(TxnOp::Read, line, core, Time::ZERO) };
        let t = self.look_up_functional(cal, t);
        if !t.transient {
            self.fill_l2_once(cal, core, &t, Time::ZERO);
        }
    }

    /// Cleans every private copy of `line`; returns the core that had a dirty copy.
    pub(super) fn clean_private(&mut self, line: LineAddr) -> Option<CoreId> {
        match self.sharing(line) {
            Sharing::Core(c) => self.clean_in(c, line).then_some(c),
            Sharing::Device => None,
            Sharing::Shared => {
                let holders = self.shared.holders(line);
                let (mut writer, mut dirty) = (None, 0u64);
                for c in cores_of(holders) {
                    if self.clean_in(c, line) {
                        (writer, dirty) = (Some(c), dirty + 1);
                    }
                }
                self.stats.ledger.merged += dirty.saturating_sub(1);
                writer
            }
        }
    }

    pub(super) fn clean_in(&mut self, core: CoreId, line: LineAddr) -> bool {
        let mut dirty = 0;
        for a in [&mut self.l1[core], &mut self.l2[core]] {
            if let Some(s) = a.find(line) {
                dirty += u64::from(a.is_dirty(s));
                a.set_dirty(s, false);
            }
        }
        self.stats.ledger.merged += u64::from(dirty > 1);
        dirty > 0
    }

    /// Best copy of `line` in the caches of `core`.
    pub fn private_copy(&self, core: CoreId, line: LineAddr) -> CopyState {
        let held = |a: &CacheArray| state(a, a.find_in_slice(line));
        match held(&self.l1[core]) {
            CopyState::Dirty => CopyState::Dirty,
            copy => copy.max(held(&self.l2[core])),
        }
    }

    /// Copy of `line` in the LLC of `node`.
    pub fn llc_copy(&self, node: NodeId, line: LineAddr) -> CopyState {
        let llc = &self.nodes[node].llc;
        state(llc, llc.find(line))
    }

    /// Way of the first node's LLC that holds `line`.
    pub fn llc_way(&self, line: LineAddr) -> Option<u32> {
        self.nodes[FIRST_NODE].llc.find(line).map(|s| s.way())
    }

    /// Whether writes of devices may allocate into `way`.
    pub fn is_ddio_way(&self, way: Option<u32>) -> bool {
        way.is_some_and(|w| self.device_ways >> w & 1 == 1)
    }

    /// Place at which a request of a device would find `line`.
    pub fn place_of(&self, line: LineAddr) -> super::stats::LineLocation {
        let private = self.l2.ids().any(|c| self.private_copy(c, line) != CopyState::Nowhere);
        self.location_of(private, self.llc_way(line))
    }

    /// Number of valid copies of `line` in all caches, and number of dirty ones in LLCs.
    pub fn copies(&self, line: LineAddr) -> (u32, u32) {
        let held = |a: &super::CacheArray| u32::from(a.find(line).is_some());
        let llcs = self.nodes.iter().map(|n| &n.llc);
        let n = self.l1.iter().chain(&self.l2).chain(llcs.clone()).map(held).sum();
        (n, llcs.filter(|a| a.find(line).is_some_and(|s| a.is_dirty(s))).count().to_u32())
    }
}

/// Copies that private caches had of an invalidated line.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InvalidatedCopies {
    pub held: bool,
    /// Number of dirty copies.
    pub dirty: u64,
}

/// Copy in slot `found` of `a`.
fn state(a: &CacheArray, found: Option<CacheSlot>) -> CopyState {
    match found {
        None => CopyState::Nowhere,
        Some(s) if a.is_dirty(s) => CopyState::Dirty,
        Some(_) => CopyState::Clean,
    }
}
