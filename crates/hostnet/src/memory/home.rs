//! The caching and home agent (CHA): admission under backpressure, ordering of requests, and look-ups in the LLC.

use super::array::{LineHome, Victim};
use super::filter::cores_of;
use super::line_table::{LineRelease, LineTurn};
use super::node::{Node, FIRST_NODE};
use super::paths::{Milestones, Path};
use super::private::InvalidatedCopies;
use super::protocol::{CopyState, LlcAction};
use super::region::{RegionKind, Sharing};
use super::request::Agent;
use super::shadow::CopyPlace;
use super::stats::AccessClass;
use super::{rx_line_states, Memory, MemoryEvent, MemoryPosts, Txn, TxnOp};
use crate::kernel::{CoreId, Int, LineAddr, NodeId, ThreadId, Time, TxnId};

/// Queues of requests that wait for admission: `CORES` for all requests, `DEVICES` for those of devices where the two
/// take turns, and `FIRST` for an integrated NIC, which has priority.
pub(super) const CORES: usize = 0;
pub(super) const DEVICES: usize = 1;
pub(super) const FIRST: usize = 2;

/// Source of the data for a core's request.
pub(super) enum LookupResult {
    /// A cache on the chip, after the additional time of a snoop.
    Here {
        snoop: Time,
        with: DataGrant,
    },
    InDram(AccessClass),
}

/// Rights and duties that come with data from the chip.
pub(super) enum DataGrant {
    /// The core receives data and may keep a copy.
    Data,
    /// The line is network data outside the modelled caches, which the core must not keep.
    Nothing,
    /// The LLC gives up the line; a dirty line comes with the duty to write it back.
    Line { dirty: bool },
    /// The LLC keeps its copy of the line.
    Copy,
}

impl DataGrant {
    #[inline]
    pub(super) fn record(self, t: &mut Txn) {
        match self {
            DataGrant::Data => {}
            DataGrant::Nothing => t.transient = true,
            DataGrant::Line { dirty } => t.dirty = dirty,
            DataGrant::Copy => t.copied = true,
        }
    }
}

impl Memory {
    /// Handles `MemoryEvent::Cha`: a request arrives, and waits while the home agent does not admit requests of its
    /// kind.
    pub fn on_cha(&mut self, cal: &mut impl MemoryPosts, id: TxnId, now: Time) {
        if self.txns[id].entry.is_some() {
            return self.resume_core_read(cal, id, now);
        }
        if self.mshrs.is_some() {
            return self.on_slice(cal, id, now);
        }
        let t = &self.txns[id];
        let (node, lane) = (self.agent_of(t), self.lane(t));
        if !self.nodes[node].admission[lane].is_empty() || !self.can_admit_lane(node, lane) {
            return self.nodes[node].admission[lane].push_back(id);
        }
        if !self.begin(cal, id, lane, now) {
            self.nodes[node].admission[lane].push_back(id);
        }
    }

    /// Whether a write-back that arrives now is admitted immediately.
    #[inline]
    pub(super) fn admits_write_back(&self, node: NodeId) -> bool {
        let lane = CORES;
        self.nodes[node].admission[lane].is_empty() && self.can_admit_lane(node, lane)
    }

    /// Queues a write-back, which arrived at `marks.cha`, for admission.
    pub(super) fn wait_for_admission(&mut self, t: Txn, milestones: Milestones) {
        if t.holds_credit() {
            self.paths.under_way[Path::C2mWrite.index()].force(milestones.start);
        }
        let node = self.node_of_core(t.core());
        let id = self.txn(t);
        self.milestones[id] = milestones;
        self.nodes[node].admission[CORES].push_back(id);
    }

    /// Admits a write-back, and writes the line that it displaced from the LLC to memory.
    #[inline(always)]
    pub(super) fn admit_write_back(&mut self, cal: &mut impl MemoryPosts, t: &Txn, waited: Time, now: Time) {
        self.paths.record_admission(Path::C2mWrite, waited);
        if t.dirty {
            let class = AccessClass::of_eviction(self.map.of(t.line).kind);
            self.write_dram(cal, self.node_of_core(t.core()), t.line, class, now);
        }
    }

    /// Side that the writes of a path count for: 1 for devices where devices and cores take turns, otherwise 0.
    #[inline]
    pub(super) fn side(&self, path: Path) -> usize {
        usize::from(self.sides && path.is_peripheral())
    }

    /// Admission queue of a request.
    #[inline]
    pub(super) fn lane(&self, t: &Txn) -> usize {
        match t.agent() {
            Agent::Nic => FIRST,
            Agent::Io if self.sides => DEVICES,
            _ => CORES,
        }
    }

    /// Whether there is room for the write that a request of `lane` may cause. The last credits are reserved for the
    /// integrated NIC.
    #[inline]
    pub(super) fn can_admit_lane(&self, node: NodeId, lane: usize) -> bool {
        let kept = if lane == FIRST { 0 } else { self.nic_credits };
        let node = &self.nodes[node];
        let within_share = !self.sides || node.waiting[usize::from(lane != CORES)] < node.cha_writes.credits() / 2;
        node.cha_writes.free() > kept && within_share
    }

    /// Admits the requests that wait at `node`, as long as there is room.
    #[inline]
    pub(super) fn admit_waiting_requests(&mut self, cal: &mut impl MemoryPosts, node: NodeId, now: Time) {
        if self.nodes[node].admission.iter().any(|lane| !lane.is_empty()) {
            self.admit_waiting(cal, node, now);
        }
    }

    #[inline(never)]
    fn admit_waiting(&mut self, cal: &mut impl MemoryPosts, node: NodeId, now: Time) {
        for lane in [FIRST, CORES, DEVICES] {
            while let Some(id) = self.nodes[node].admission[lane].front().copied() {
                if !self.can_admit_lane(node, lane) {
                    self.prefetch_txn(id); // it comes next
                    break;
                }
                if !self.begin(cal, id, lane, now) {
                    break;
                }
                self.nodes[node].admission[lane].pop_front();
            }
        }
    }

    /// Starts an admitted request; returns false while there is no room for the other lines of the request.
    #[inline(never)]
    pub(super) fn begin(&mut self, cal: &mut impl MemoryPosts, id: TxnId, lane: usize, now: Time) -> bool {
        if self.begin_at_home(cal, id, now) {
            return true;
        }
        let op = self.txns[id].op;
        let m = &mut self.milestones[id];
        (m.admitted, m.queued, m.data) = (now, now, now);
        let waited = now - m.cha;
        match op {
            TxnOp::Read | TxnOp::Own => {
                self.paths.record_admission(Path::C2mRead, waited);
                self.core_read(cal, id, now);
            }
            TxnOp::WriteBack => {
                let t = self.txns[id];
                self.txns[id].dirty = false;
                self.admit_write_back(cal, &t, waited, now);
                cal.post(now + self.latency_from_agent(&t), MemoryEvent::Fill(id));
            }
            TxnOp::DmaRead | TxnOp::DmaWrite => return self.begin_device_request(cal, id, lane, waited, now),
            TxnOp::Stream => self.begin_stream(cal, id, waited, now),
            TxnOp::Uncached => self.read_dram(cal, id, AccessClass::BackgroundRd, now),
        }
        true
    }

    /// Starts an admitted request of a device; returns false while there is no room for the other lines of the request.
    #[inline(never)]
    fn begin_device_request(
        &mut self,
        cal: &mut impl MemoryPosts,
        id: TxnId,
        lane: usize,
        waited: Time,
        now: Time,
    ) -> bool {
        let Txn { op, sender, .. } = self.txns[id];
        if op == TxnOp::DmaWrite && sender.agent() == Agent::Nic {
            return self.write_burst(cal, id, lane, now);
        }
        self.paths.record_admission(Path::of(op), waited);
        if op == TxnOp::DmaWrite {
            self.io_write(cal, id, now);
        } else {
            self.read_burst(cal, id, now);
        }
        true
    }

    /// Starts an admitted store of a core that bypasses the caches.
    #[inline(never)]
    fn begin_stream(&mut self, cal: &mut impl MemoryPosts, id: TxnId, waited: Time, now: Time) {
        self.paths.record_admission(Path::of(TxnOp::Stream), waited);
        if self.inter_socket.is_some() {
            return self.stream_between_nodes(cal, id, now);
        }
        let t = self.txns[id];
        self.stream(cal, self.agent_of(&t), t.line, now);
        cal.post(now + self.latency_from_agent(&t), MemoryEvent::Fill(id));
    }

    /// Starts a core's read, or queues the read where several agents use the line.
    #[inline(always)]
    fn core_read(&mut self, cal: &mut impl MemoryPosts, id: TxnId, now: Time) {
        if self.inter_socket.is_some() {
            return self.core_read_between_nodes(cal, id, now);
        }
        if self.enqueue_core_read(id) {
            self.core_read_in_turn(cal, id, now);
        }
    }

    /// Orders a core's read among the requests for its line; returns false when the read has to wait.
    #[inline(always)]
    fn enqueue_core_read(&mut self, id: TxnId) -> bool {
        let t = &mut self.txns[id];
        if self.map.of(t.line).is_ordered() {
            match self.lines.enqueue(t.line, id, t.op == TxnOp::Own) {
                LineTurn::Now { epoch } => t.entry = Some(epoch),
                LineTurn::Later => return false,
            }
        }
        true
    }

    /// Continues a core's read whose turn has come.
    #[cold]
    fn resume_core_read(&mut self, cal: &mut impl MemoryPosts, id: TxnId, now: Time) {
        if self.inter_socket.is_some() {
            self.serve_between_nodes(cal, id, now);
        } else if !self.is_superseded(id) || self.enqueue_core_read(id) {
            self.core_read_in_turn(cal, id, now);
        }
    }

    /// Whether another reader took the line when it and `id` became eligible together; `id` has then lost its turn.
    pub(super) fn is_superseded(&mut self, id: TxnId) -> bool {
        let Txn { line, entry, .. } = self.txns[id];
        let Some(epoch) = entry else { return false };
        let lost = self.lines.owner(line).is_some_and(|owner| owner != id);
        if lost {
            self.lines.release(line, id, epoch);
            self.txns[id].entry = None;
        }
        lost
    }

    /// Performs a core's read whose turn has come on a machine of one node.
    #[inline(always)]
    fn core_read_in_turn(&mut self, cal: &mut impl MemoryPosts, id: TxnId, now: Time) {
        let t = self.txns[id];
        let (who, Txn { line, entry, .. }) = (t.core(), t);
        match self.look_up_here(cal, &t, t.home, FIRST_NODE, now) {
            LookupResult::Here { snoop, with } => {
                if entry.is_some() && matches!(with, DataGrant::Line { .. }) {
                    self.lines.take_ownership(line, id);
                }
                with.record(&mut self.txns[id]);
                let node = &self.nodes[FIRST_NODE];
                cal.post(now + node.look_up + snoop + node.noc + self.lat.from_llc, MemoryEvent::Fill(id));
            }
            LookupResult::InDram(class) => {
                self.record_copy(line, CopyPlace::Dram, CopyPlace::ToCore(who));
                self.bind_mshr(id);
                self.read_dram(cal, id, class, now);
            }
        }
    }

    /// Ends a core's request for a line of several agents, and starts the next request for the line. Returns whether
    /// the data may only be used once and not be kept, because the line was invalidated on its way to the core.
    #[inline(never)]
    pub(super) fn release_line(&mut self, cal: &mut impl MemoryPosts, id: TxnId, epoch: u16, now: Time) -> bool {
        let t = self.txns[id];
        let line = t.line;
        let LineRelease { stale, others_wait } = self.lines.release(line, id, epoch);
        if stale && self.sharing(line) == Sharing::Shared && !self.holds(t.core(), line) {
            self.shared.drop_holder(line, t.core());
        }
        if others_wait {
            self.resume_waiting_requests(cal, line, now);
        }
        stale
    }

    /// Starts the next requests for `line` whose turn has come.
    #[cold]
    fn resume_waiting_requests(&mut self, cal: &mut impl MemoryPosts, line: LineAddr, now: Time) {
        // On several nodes, a line reaches its core before the snoop of another core arrives from the home agent, so
        // that a waiting store of the first core succeeds.
        let at = if self.inter_socket.is_some() { now + self.lat.noc } else { now };
        let Memory { lines, txns, .. } = self;
        while let Some((next, epoch)) = lines.dequeue(line, |id| txns[id].op == TxnOp::Own) {
            txns[next].entry = Some(epoch);
            cal.post(at, MemoryEvent::Cha(next)); // after the end of the previous request
        }
    }

    /// Invalidates every copy of `line`, including those on their way; returns what private caches had, and the number
    /// of dirty copies.
    #[inline(always)]
    pub(super) fn invalidate_all_copies(
        &mut self,
        cal: &mut impl MemoryPosts,
        line: LineAddr,
        now: Time,
    ) -> InvalidatedCopies {
        self.notify_watchers(cal, line, now);
        self.record_write(line);
        let mut taken = self.invalidate_private(line);
        if let Some(owner) = self.lines.invalidate(line) {
            taken.dirty += u64::from(std::mem::take(&mut self.txns[owner].dirty));
        }
        taken
    }

    /// Registers `thread`, which runs on `core`, for one `MemoryEvent::Wake` when another agent writes or invalidates `line`.
    pub fn watch(&mut self, thread: ThreadId, core: CoreId, line: LineAddr) {
        self.watched.push((line, thread, Some(self.core_nodes[core])));
    }

    /// Registers `thread` as [`Memory::watch`] does; the event comes when the home agent takes the line away, before the
    /// invalidation has reached the thread's caches.
    pub fn watch_at_home(&mut self, thread: ThreadId, line: LineAddr) {
        self.watched.push((line, thread, None));
    }

    /// Removes all registrations of `thread`.
    pub fn unwatch(&mut self, thread: ThreadId) {
        self.watched.retain(|w| w.1 != thread);
    }

    /// Wakes the threads that wait for `line` when the invalidation has reached their caches.
    #[inline]
    pub(super) fn notify_watchers(&mut self, cal: &mut impl MemoryPosts, line: LineAddr, now: Time) {
        if self.watched.iter().any(|w| w.0 == line) {
            self.wake_watchers(cal, line, now);
        }
    }

    /// Wakes the threads that wait for `line`, and removes their registrations.
    #[cold]
    fn wake_watchers(&mut self, cal: &mut impl MemoryPosts, line: LineAddr, now: Time) {
        let Memory { watched, nodes, lat, .. } = self;
        watched.retain(|&(l, thread, node)| {
            if l == line {
                let way = node.map_or(Time::ZERO, |n| nodes[n].noc + lat.l2);
                cal.post(now + way, MemoryEvent::Wake(thread));
            }
            l != line
        });
    }

    /// Whether the private caches of `core` hold `line`.
    pub fn holds(&self, core: CoreId, line: LineAddr) -> bool {
        self.l1[core].find_in_slice(line).is_some() || self.l2[core].find_in_slice(line).is_some()
    }

    /// Performs the effects of a core's request on the caches of its node.
    #[inline(never)]
    pub(super) fn look_up(&mut self, cal: &mut impl MemoryPosts, t: &Txn, now: Time) -> LookupResult {
        let node = self.node_of_core(t.core());
        let home = self.nodes[node].llc.home(t.line);
        self.look_up_here(cal, t, home, node, now)
    }

    /// Inlined body of `look_up`: performs the effects of a core's request on the caches of `node`.
    #[inline(always)]
    fn look_up_here(
        &mut self,
        cal: &mut impl MemoryPosts,
        t: &Txn,
        home: LineHome,
        node: NodeId,
        now: Time,
    ) -> LookupResult {
        let (who, Txn { line, op, .. }) = (t.core(), *t);
        let region = self.map.of(line);
        let (kind, tenant) = (region.kind, region.tenant);
        let (mut snoop, mut alone) = (Time::ZERO, true);
        match region.sharing {
            Sharing::Device => unreachable!("no core touches device buffers"),
            Sharing::Core(c) => {
                assert_eq!(c, who, "a core touched another core's region");
            }
            Sharing::Shared => {
                snoop = self.snoop_others(cal, line, op, who, now);
                alone = self.shared.add(line, who);
            }
        }
        self.record_use(t, kind);
        let outside_caches = self.is_outside_caches(kind);
        let llc = &self.nodes[node].llc;
        debug_assert_eq!(home, llc.home(line));
        let slot = if outside_caches { None } else { llc.find_at(home) };
        let mut upgrades = false;
        if self.device_reads_allocate() {
            upgrades = op == TxnOp::Own && self.holds(who, line);
            self.read_by_devices.remove(&self.map, line);
            if upgrades && !outside_caches && slot.is_none() && !self.llc_protocol.fetches_on_upgrade() {
                self.record_copy(line, CopyPlace::Core(who), CopyPlace::ToCore(who));
                return LookupResult::Here { snoop, with: DataGrant::Copy };
            }
        }
        let counts = &mut self.stats.tenants[tenant];
        counts.app += u64::from(kind == RegionKind::App);
        counts.llc_hits += u64::from(outside_caches || slot.is_some());
        let missed = u64::from(!outside_caches && slot.is_none());
        counts.llc_misses += missed;
        self.stats.cores[who].llc_misses += missed;
        if outside_caches {
            return LookupResult::Here { snoop, with: DataGrant::Nothing };
        }
        let llc =
            slot.map_or(CopyState::Nowhere, |s| if llc.is_dirty(s) { CopyState::Dirty } else { CopyState::Clean });
        // The dirty copies of other cores have already gone to the LLC.
        let becomes = self.core_rows.llc(op == TxnOp::Own, upgrades, !alone, llc);
        let Some(slot) = slot else {
            self.allocate_mshr(home, now);
            if becomes == LlcAction::FillClean {
                let mask = self.tenant_ways[tenant];
                self.record_copy(line, CopyPlace::Dram, CopyPlace::Llc(node));
                self.llc_insert(cal, node, home, false, mask, now);
            }
            return LookupResult::InDram(AccessClass::of_read(kind));
        };
        self.nodes[node].llc.touch(slot);
        self.record_copy(line, CopyPlace::Llc(node), CopyPlace::ToCore(who));
        if becomes == LlcAction::HandOver {
            return LookupResult::Here { snoop, with: DataGrant::Line { dirty: self.nodes[node].llc.remove(slot) } };
        }
        if self.inclusive_ways != 0 && self.inclusive_ways >> slot.way() & 1 == 0 {
            self.allocate_mshr(home, now);
            let dirty = self.nodes[node].llc.remove(slot);
            self.llc_insert(cal, node, home, dirty, self.inclusive_ways, now);
            self.end_lookup(cal, now);
        }
        LookupResult::Here { snoop, with: DataGrant::Copy }
    }

    /// Records a core's use of a line; the first use of a line of a receive buffer consumes the line.
    #[inline(always)]
    pub(super) fn record_use(&mut self, t: &Txn, kind: RegionKind) {
        let Txn { line, op, ahead, .. } = *t;
        if kind == RegionKind::Rx && ahead {
            self.holds_unread = true;
        } else if kind == RegionKind::Rx {
            let used = |life| life == rx_line_states::UNCONSUMED || (life == rx_line_states::SWEPT && op == TxnOp::Own);
            let life =
                self.rx_line_states.change(line, |life| if used(life) { rx_line_states::CONSUMED } else { life });
            let stale = life == rx_line_states::SWEPT && op == TxnOp::Read;
            self.stats.stale_reads += u64::from(stale);
        }
    }

    /// Snoops the other cores that may have copies of a shared line; returns the time of the snoop.
    #[inline(never)]
    fn snoop_others(&mut self, cal: &mut impl MemoryPosts, line: LineAddr, op: TxnOp, who: CoreId, now: Time) -> Time {
        let own = op == TxnOp::Own || self.llc_protocol.takes_modified() && self.another_has_modified(line, who);
        if own {
            self.notify_watchers(cal, line, now);
        }
        let (asked, giver) = self.snoop(who, line, own);
        if let Some(giver) = giver {
            // The data goes through the home agent, which keeps it.
            self.fill_llc(cal, giver, line, true, now);
        }
        if asked && (own || giver.is_some()) {
            self.snoop_latency(self.node_of_core(who))
        } else {
            Time::ZERO
        }
    }

    /// Whether a core other than `who` has a modified copy of `line`.
    fn another_has_modified(&self, line: LineAddr, who: CoreId) -> bool {
        cores_of(self.shared.holders(line)).any(|c| c != who && self.private_copy(c, line) == CopyState::Dirty)
    }

    /// Time from a home agent to a core of `node` and back, with the look-up in the core's L2.
    #[inline]
    pub(super) fn snoop_latency(&self, node: NodeId) -> Time {
        let noc = self.nodes[node].noc;
        noc + self.lat.l2 + noc
    }

    /// Stores a whole line of a core of node `from`, bypassing the caches.
    pub(super) fn stream(&mut self, cal: &mut impl MemoryPosts, from: NodeId, line: LineAddr, now: Time) {
        let dropped = self.invalidate_all_copies(cal, line, now).dirty + self.drop_llc(line);
        self.stats.ledger.overwritten += dropped;
        self.stats.ledger.bypassed += 1;
        let class = AccessClass::of_eviction(self.map.of(line).kind);
        if let Some(s) = &mut self.shadow {
            s.store(line, CopyPlace::Dram);
        }
        self.write_dram(cal, from, line, class, now);
    }

    /// Moves a line from a core's L2 into the LLC.
    pub(super) fn fill_llc(
        &mut self,
        cal: &mut impl MemoryPosts,
        core: CoreId,
        line: LineAddr,
        dirty: bool,
        now: Time,
    ) {
        let node = self.node_of_core(core);
        let llc = &mut self.nodes[node].llc;
        let home = llc.home(line);
        if let Some(s) = llc.find_at(home) {
            if dirty {
                if self.write_back_uses {
                    llc.touch(s);
                }
                self.stats.ledger.merged += u64::from(llc.is_dirty(s));
                llc.set_dirty(s, true);
                self.record_copy_from_core(core, line);
            } else if self.clean_victim_cleans && llc.is_dirty(s) {
                llc.set_dirty(s, false);
                self.stats.ledger.lost += 1;
            }
            return;
        }
        debug_assert!(core.index() < self.l2.len());
        self.record_copy_from_core(core, line);
        let tenant = self.map.of(line).tenant;
        self.stats.tenants[tenant].dirty_fills += u64::from(dirty);
        let mask = self.tenant_ways[tenant];
        self.allocate_mshr(home, now);
        let before = self.stats.llc_wb;
        self.llc_insert(cal, node, home, dirty, mask, now);
        self.stats.llc_wb_pushed += self.stats.llc_wb - before;
        self.end_lookup(cal, now);
    }

    pub(super) fn llc_insert(
        &mut self,
        cal: &mut impl MemoryPosts,
        node: NodeId,
        home: LineHome,
        dirty: bool,
        mask: u32,
        now: Time,
    ) {
        let Node { llc, taken_in, .. } = &mut self.nodes[node];
        let (slot, victim) = llc.insert_at(home, dirty, mask);
        taken_in[slot.way().to_usize()] += 1;
        let Some(Victim { line, mut dirty, .. }) = victim else { return };
        if self.strict {
            dirty = self.back_invalidate(cal, line, dirty, now);
        }
        if dirty {
            self.evict(cal, node, line, now);
        }
    }

    /// Invalidates the private copies of a line that an inclusive LLC evicts; `dirty` says whether the LLC's copy is
    /// dirty. Returns whether any copy was dirty. Data on its way to a core enters the LLC again.
    pub(super) fn back_invalidate(
        &mut self,
        cal: &mut impl MemoryPosts,
        line: LineAddr,
        dirty: bool,
        now: Time,
    ) -> bool {
        self.notify_watchers(cal, line, now);
        let above = self.invalidate_private(line).dirty;
        if above > 0 {
            self.stats.ledger.merged += above - u64::from(!dirty);
            if let Some(s) = &mut self.shadow {
                s.settle(line, CopyPlace::Llc(FIRST_NODE));
            }
        }
        dirty || above > 0
    }

    /// Inserts a line that a core receives into the LLC as well.
    pub(super) fn fill_inclusive_llc(&mut self, cal: &mut impl MemoryPosts, node: NodeId, line: LineAddr, now: Time) {
        let llc = &self.nodes[node].llc;
        let home = llc.home(line);
        if llc.find_at(home).is_none() {
            let mask = self.tenant_ways[self.map.of(line).tenant];
            self.record_copy(line, CopyPlace::Dram, CopyPlace::Llc(node));
            self.llc_insert(cal, node, home, false, mask, now);
        }
    }

    pub(super) fn evict(&mut self, cal: &mut impl MemoryPosts, node: NodeId, line: LineAddr, now: Time) {
        self.record_copy(line, CopyPlace::Llc(node), CopyPlace::Dram);
        let kind = self.map.of(line).kind;
        self.stats.llc_wb += 1;
        if kind == RegionKind::Rx {
            if self.rx_line_states.of(line) == rx_line_states::UNCONSUMED {
                self.stats.rx_evct_premature += 1;
            } else {
                self.stats.rx_evct_consumed += 1;
            }
        }
        match &mut self.pending_victim {
            Some(l) if l.victim.is_none() => l.victim = Some(line),
            _ => self.write_victim(cal, node, line, now),
        }
    }

    /// Writes a victim of the LLC to DRAM separately, not together with a core's write-back.
    pub(super) fn write_victim(&mut self, cal: &mut impl MemoryPosts, node: NodeId, line: LineAddr, now: Time) {
        let id = self.evicts_for;
        if self.write_dram_for(cal, node, line, AccessClass::of_eviction(self.map.of(line).kind), id, now) {
            self.evicts_for = None;
        }
    }
}
