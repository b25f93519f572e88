//! Execution of a program: each op is dispatched as accesses to single lines.

use super::retire::RetireEffect;
use super::{send, AccessState, Cpu, DispatchWait, EarliestUser, Retired, WindowEntry, FRAC};
use crate::core::op::Op;
use crate::core::prefetch::CacheLevel;
use crate::core::CorePosts;
use crate::kernel::{Int, LineAddr, Time};
use crate::memory::{self, Memory, Probe};

#[derive(Clone, Copy)]
pub(super) struct LineAccess {
    pub write: bool,
    pub from_anchor: bool,
    pub anchors: bool,
    pub delay: u16,
}

impl LineAccess {
    /// A load whose address is known at dispatch.
    pub const LOAD: LineAccess = LineAccess { write: false, from_anchor: false, anchors: false, delay: 0 };
}

impl Cpu {
    pub(super) fn run(&mut self, mem: &mut Memory, cal: &mut impl CorePosts) -> Option<Time> {
        self.wait = DispatchWait::Nothing;
        while self.pc < self.program.ops.len() {
            if !self.step(mem, cal) {
                return None;
            }
        }
        self.running = false;
        Some(self.now())
    }

    /// Executes the op at `pc`, or part of it; returns false when the core has to wait.
    fn step(&mut self, mem: &mut Memory, cal: &mut impl CorePosts) -> bool {
        const LOAD: LineAccess = LineAccess::LOAD;
        const STORE: LineAccess = LineAccess { write: true, ..LOAD };
        let op = self.program.ops[self.pc];
        let (line, lines, access) = match op {
            Op::Compute(n) => {
                if self.in_order && self.any_open(|r| r.load) {
                    self.wait = DispatchWait::Loads;
                    return false;
                }
                if self.rob_holds_all {
                    return self.compute_within_rob(n);
                }
                if !self.rob_room() {
                    return false;
                }
                self.compute(n);
                (LineAddr(0), 0, LOAD)
            }
            Op::WalkBody { instructions, dependent, loads } => {
                if self.in_order && self.any_open(|r| r.load) {
                    self.wait = DispatchWait::Loads;
                    return false;
                }
                return self.walk_within_rob(instructions, dependent, loads);
            }
            Op::Load { line, lines } => (line, lines, LOAD),
            Op::Walk { line, loads } => {
                let blocks = u32::from(loads) > self.targets;
                let delay = loads.saturating_sub(self.targets.min(u32::from(u16::MAX)).to_u16());
                (
                    line,
                    1,
                    LineAccess { anchors: blocks, from_anchor: blocks, delay: if blocks { delay } else { 0 }, ..LOAD },
                )
            }
            Op::Anchor { line } => (line, 1, LineAccess { anchors: true, ..LOAD }),
            Op::Chase { line, delay } => (line, 1, LineAccess { anchors: true, from_anchor: true, delay, ..LOAD }),
            Op::Store { line, lines } => (line, lines, STORE),
            Op::DependentLoad { line, lines } => (line, lines, LineAccess { from_anchor: true, ..LOAD }),
            Op::DependentStore { line, lines } => (line, lines, LineAccess { from_anchor: true, ..STORE }),
            Op::Copy { from, to, lines, dependent, behind } => {
                let store = LineAccess { from_anchor: dependent, ..STORE };
                let load = LineAccess { from_anchor: behind, ..LOAD };
                return self.copy(lines, |c, i, second| {
                    if second {
                        c.access(mem, cal, to + i, store)
                    } else {
                        c.access(mem, cal, from + i, load)
                    }
                });
            }
            Op::CopyStream { from, to, lines, behind } => {
                let load = LineAccess { from_anchor: behind, ..LOAD };
                return self.copy(lines, |c, i, second| {
                    if second {
                        c.stream_write(mem, cal, to + i)
                    } else {
                        c.access(mem, cal, from + i, load)
                    }
                });
            }
            Op::Prefetch { line, lines } => {
                for l in line.span(lines) {
                    self.prefetch(mem, cal, l);
                }
                (LineAddr(0), 0, LOAD)
            }
            Op::DependentPrefetch { line } => {
                self.prefetch_from_anchor(mem, cal, line);
                (LineAddr(0), 0, LOAD)
            }
            Op::Ahead { line } => {
                self.fetch_hint(mem, cal, line);
                (LineAddr(0), 0, LOAD)
            }
            Op::PrefetchOwn { line, lines } => {
                for l in line.span(lines) {
                    self.prefetch_own(mem, cal, l);
                }
                (LineAddr(0), 0, LOAD)
            }
            Op::LoadOwn { line } => {
                if !self.load_own(mem, cal, line) {
                    return false;
                }
                (LineAddr(0), 0, LOAD)
            }
            Op::StoreStream { line, lines } => {
                while self.sub < lines {
                    if !self.stream_write(mem, cal, line + u64::from(self.sub)) {
                        return false;
                    }
                    self.sub += 1;
                }
                (LineAddr(0), 0, LOAD)
            }
            Op::Await => {
                if let Some((r, _)) = self.anchor {
                    self.wait = DispatchWait::Record(r);
                    return false;
                }
                let at = self.anchor_ready;
                self.advance_to(at);
                (LineAddr(0), 0, LOAD)
            }
            Op::Keep { slot } => {
                self.kept_open |= self.anchor.is_some();
                self.kept[slot.to_usize()] = (self.anchor, self.anchor_ready);
                (LineAddr(0), 0, LOAD)
            }
            Op::Recall { slot } => {
                (self.anchor, self.anchor_ready) = self.kept[slot.to_usize()];
                (LineAddr(0), 0, LOAD)
            }
            Op::Release { line, tag } => {
                // A store asks for ownership of its line when the store can no longer be squashed; see `release`.
                if !self.any_open(|r| r.load) {
                    self.prefetch_own(mem, cal, line);
                }
                self.release_later(cal, line, tag);
                (LineAddr(0), 0, LOAD)
            }
            Op::Atomic { line } => {
                // Earlier accesses must be done before the store, and the store before later accesses; `half` marks the
                // second wait.
                if !self.all_done() {
                    return false;
                }
                if !self.half {
                    if !self.access(mem, cal, line, LineAccess { anchors: true, ..STORE }) {
                        return false;
                    }
                    self.half = true;
                    if !self.all_done() {
                        return false;
                    }
                }
                self.half = false;
                let done = self.anchor_ready;
                self.advance_to(done);
                (LineAddr(0), 0, LOAD)
            }
            Op::Maintain { line, lines, op } => {
                if op.drops_data() {
                    self.pending_sweeps.push(line, lines);
                }
                self.defer(cal, lines, false, RetireEffect::Notify(Retired::Maintain { line, lines, op }));
                (LineAddr(0), 0, LOAD)
            }
            Op::Invalidate { line, lines, op, instructions } => {
                self.pending_sweeps.push(line, lines);
                self.defer(cal, instructions, false, RetireEffect::Notify(Retired::Maintain { line, lines, op }));
                (LineAddr(0), 0, LOAD)
            }
            Op::Retire { tag, stores } => {
                self.defer(cal, 1, stores, RetireEffect::Notify(Retired::Tag(tag)));
                (LineAddr(0), 0, LOAD)
            }
            Op::Mmio { tag } => {
                let awaits = self.in_order && self.devices.answer.is_some();
                if !std::mem::replace(&mut self.half, awaits) {
                    self.devices.to_leave += 1;
                    self.defer(cal, 1, true, RetireEffect::Mmio(tag));
                }
                if awaits && !self.doorbells_answered() {
                    return false;
                }
                self.half = false;
                (LineAddr(0), 0, LOAD)
            }
            Op::Combine { line, bytes, to } => {
                self.devices.owed += 1;
                self.defer(cal, 1, true, RetireEffect::Combine(line, bytes, to));
                (LineAddr(0), 0, LOAD)
            }
            Op::LoadDevice { bytes } => {
                if !self.half {
                    if !self.all_done() {
                        return false;
                    }
                    self.half = true;
                    self.devices.loading = true;
                    self.defer(cal, 1, true, RetireEffect::Load { bytes });
                }
                if self.devices.loading {
                    self.wait = DispatchWait::Device;
                    return false;
                }
                self.half = false;
                (LineAddr(0), 0, LOAD)
            }
            Op::Fence => {
                if !self.half && !self.all_done() {
                    return false;
                }
                if !self.devices.combined() {
                    if !std::mem::replace(&mut self.half, true) {
                        self.defer(cal, 0, true, RetireEffect::Flush);
                    }
                    self.wait = DispatchWait::Combined;
                    return false;
                }
                self.half = false;
                (LineAddr(0), 0, LOAD)
            }
            Op::Serialise => {
                if !self.serialise() {
                    return false;
                }
                (LineAddr(0), 0, LOAD)
            }
            Op::TakenBranches(n) => {
                self.t += u64::from(n) * self.taken_branch;
                (LineAddr(0), 0, LOAD)
            }
            Op::Stall(ps) => {
                self.t += ps * FRAC;
                (LineAddr(0), 0, LOAD)
            }
            Op::Note { .. } => {
                let at = self.now();
                self.noted.push((op, at));
                (LineAddr(0), 0, LOAD)
            }
        };
        while self.sub < lines {
            if !self.access(mem, cal, line + u64::from(self.sub), access) {
                return false;
            }
            self.sub += 1;
        }
        self.sub = 0;
        self.pc += 1;
        true
    }

    /// Dispatches `n` instructions that touch no memory.
    pub(super) fn compute(&mut self, n: u32) {
        self.seq += u64::from(n);
        self.instructions += u64::from(n);
        self.t += u64::from(n) * self.smt_slots.compute;
    }

    /// Dispatches `n` instructions as far as the ROB has room; returns false, and sets `wait`, when it has none.
    fn compute_within_rob(&mut self, n: u32) -> bool {
        while self.sub < n {
            if !self.rob_room() {
                return false;
            }
            let room = (self.rob_until - self.seq).min(n.into()).to_u32();
            let some = room.min(n - self.sub);
            self.compute(some);
            self.sub += some;
        }
        self.sub = 0;
        self.pc += 1;
        true
    }

    /// Executes a serialising instruction; returns false when the core must wait, and sets `wait` to the reason.
    fn serialise(&mut self) -> bool {
        let Some(drain) = self.serialise else { return true };
        if self.any_open(|r| r.load || r.write) {
            self.wait = DispatchWait::LoadsAndStores;
            return false;
        }
        let done = self.latest(|r| r.load || r.write).max(self.hits_until);
        self.advance_to(done);
        self.walks_retire();
        if self.devices.answer.is_some() && !self.doorbells_answered() {
            return false;
        }
        self.t += drain;
        self.dispatch(1);
        true
    }

    /// Goes on once every doorbell is answered; returns false, and sets `wait`, while one has not left.
    fn doorbells_answered(&mut self) -> bool {
        if self.devices.to_leave > 0 {
            self.wait = DispatchWait::Doorbells;
            return false;
        }
        let answered = self.devices.answered;
        self.advance_to(answered);
        true
    }

    /// Whether every access is done at the core's present time; otherwise sets `wait`.
    fn all_done(&mut self) -> bool {
        if self.any_open(|_| true) {
            self.wait = DispatchWait::All;
            return false;
        }
        let at = self.latest(|_| true).max(self.hits_until);
        self.advance_to(at);
        true
    }

    /// Performs an access to one line; returns false when the core must wait, and sets `wait` to the reason.
    fn access(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, line: LineAddr, a: LineAccess) -> bool {
        if !self.rob_room() || (a.write && !self.sq_room()) {
            return false;
        }
        if a.write && !self.pending_sweeps.is_empty() && !self.is_behind_sweeps(cal, line) {
            return false;
        }
        if self.in_order && (a.write || a.from_anchor) && self.any_open(|r| r.load) {
            self.wait = DispatchWait::Loads;
            return false;
        }
        let (mut ready, mut outlasts) = (self.now(), false);
        if a.from_anchor {
            if let Some((parent, _)) = self.anchor {
                let Some(r) = self.new_rec(line, a.write, !a.write, ready) else {
                    self.wait = DispatchWait::AnyRecord;
                    return false;
                };
                self.records[r].state = AccessState::Address;
                self.records[parent].children |= 1 << r;
                self.records[r].delay = a.delay;
                self.enter(r, a);
                return true;
            }
            ready = ready.max(self.anchor_ready + self.clock.span(a.delay.into()));
            outlasts = self.outlasts_rob(ready);
        }
        if (outlasts || self.rob_holds_all) && self.live == u64::MAX && self.wait_for_record().is_none() {
            self.wait = DispatchWait::AnyRecord; // a hit that stays in the ROB needs a record
            return false;
        }
        if self.must_defer(mem, line, a.write, ready) {
            let Some(r) = self.new_rec(line, a.write, !a.write, ready) else {
                self.wait = DispatchWait::AnyRecord;
                return false;
            };
            self.defer_lookup(cal, r, ready);
            self.enter(r, a);
            return true;
        }
        let lat = match mem.probe(cal, self.core, line, a.write, ready) {
            Probe::L1 => {
                if outlasts {
                    return self.enter_hit(mem, cal, (line, ready, mem.lat.l1), a);
                }
                mem.lat.l1
            }
            Probe::L2 => {
                let reaches = self.prefetcher.as_ref().is_some_and(|p| p.into == CacheLevel::L2);
                self.train_prefetcher(mem, cal, (line, self.site()), (reaches, a.write), ready);
                let lat = mem.lat.l1 + mem.lat.l2 + mem.lat.from_l2;
                if outlasts || self.rob_holds_all {
                    return self.enter_hit(mem, cal, (line, ready, lat), a);
                }
                lat
            }
            Probe::Miss => {
                let (r, goes) = match self.same_line(line) {
                    Some(r) => {
                        self.records[r].write |= a.write;
                        self.records[r].load |= !a.write;
                        self.records[r].serves.include(self.seq); // a hint may have requested the line first
                        (r, false)
                    }
                    None => {
                        let Some(r) = self.new_rec(line, a.write, !a.write, ready) else {
                            self.wait = DispatchWait::AnyRecord;
                            return false;
                        };
                        let goes = !self.defer_to_sibling(mem, r, line) && self.request_lfb(mem, cal, r, ready);
                        (r, goes)
                    }
                };
                let site = self.site();
                self.train_prefetcher(mem, cal, (line, site), (goes, a.write), ready);
                self.enter(r, a);
                self.train_l1_prefetcher(mem, cal, (line, site), a.write, ready);
                return true;
            }
        };
        self.record_latency(lat);
        self.train_l1_prefetcher(mem, cal, (line, self.site()), a.write, ready);
        self.dispatch(self.per_line);
        if a.from_anchor {
            self.hits_until = self.hits_until.max(ready + lat);
        }
        if a.anchors {
            self.anchor = None;
            self.anchor_ready = ready + lat;
        }
        if self.in_order && !a.write {
            self.advance_to(ready + lat);
        }
        true
    }

    /// Whether the ROB would be full of later instructions before a load whose address is known at `ready` has left it.
    fn outlasts_rob(&self, ready: Time) -> bool {
        ready.0 * FRAC > self.t + self.rob_size * self.smt_slots.access
    }

    /// Enters an access that hits a private cache, at `ready`, into the ROB or the store queue for the time `lat` of the hit.
    #[inline(never)]
    fn enter_hit(
        &mut self,
        mem: &mut Memory,
        cal: &mut impl CorePosts,
        (line, ready, lat): (LineAddr, Time, Time),
        a: LineAccess,
    ) -> bool {
        self.record_latency(lat);
        let r = self.new_rec(line, a.write, !a.write, ready).expect("a record is free");
        self.train_l1_prefetcher(mem, cal, (line, self.site()), a.write, ready);
        self.enter(r, a);
        self.complete(mem, cal, r, ready + lat);
        true
    }

    /// Loads a line together with its ownership; returns false when the core must wait, and sets `wait` to the reason.
    fn load_own(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, line: LineAddr) -> bool {
        if !self.rob_room() {
            return false;
        }
        let ready = self.now();
        let r = match self.same_line(line) {
            Some(r) => {
                self.records[r].load = true;
                self.records[r].serves.include(self.seq);
                r
            }
            None if mem.owns(self.core, line) && !self.must_defer(mem, line, true, ready) => {
                self.record_latency(mem.lat.l1);
                self.dispatch(self.per_line);
                return true;
            }
            None => {
                let Some(r) = self.new_rec(line, false, true, ready) else {
                    self.wait = DispatchWait::AnyRecord;
                    return false;
                };
                self.records[r].owns = true;
                if self.must_defer(mem, line, true, ready) {
                    self.defer_lookup(cal, r, ready);
                } else if !self.defer_to_sibling(mem, r, line) {
                    self.request_lfb(mem, cal, r, ready);
                }
                r
            }
        };
        self.enter(r, LineAccess::LOAD);
        true
    }

    #[inline(always)]
    pub(super) fn enter(&mut self, r: u8, a: LineAccess) {
        let generation = self.records[r].generation;
        let e = WindowEntry { seq: self.seq, rec: r, generation, slots: self.per_line.to_u8() };
        if a.write {
            self.sq_used += self.per_line;
            self.sq.push_back(e);
        } else {
            self.rob.push_back(e);
        }
        if a.anchors {
            self.anchor = Some((r, generation));
        }
        self.dispatch(self.per_line);
    }

    fn stream_write(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, line: LineAddr) -> bool {
        if !self.rob_room() {
            return false;
        }
        let at = self.now();
        if self.lfb.free() == 0 {
            self.wait = DispatchWait::AnyRecord; // the next fill frees a buffer
            return false;
        }
        let Some(r) = self.new_rec(line, true, false, at) else {
            self.wait = DispatchWait::AnyRecord;
            return false;
        };
        self.lfb.take(at);
        self.records[r].state = AccessState::Issued;
        let t = self.txn(r, memory::TxnOp::Stream, at);
        send(mem, cal, at, t);
        self.dispatch(self.per_line);
        true
    }

    fn copy(&mut self, lines: u32, mut one: impl FnMut(&mut Cpu, u64, bool) -> bool) -> bool {
        while self.sub < lines {
            let i = u64::from(self.sub);
            if !one(self, i, self.half) {
                return false;
            }
            self.sub += u32::from(self.half);
            self.half = !self.half;
        }
        self.sub = 0;
        self.pc += 1;
        true
    }

    fn prefetch_own(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, line: LineAddr) {
        self.dispatch(1);
        let at = self.now();
        self.prefetch_ownership(mem, cal, line, at);
    }

    /// Requests ownership of `line`, unless the core owns the line or has requested ownership.
    pub(super) fn prefetch_ownership(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, line: LineAddr, at: Time) {
        if !self.may_miss() || self.is_asked_for(mem, line) || mem.owns(self.core, line) {
            return;
        }
        if let Some(r) = self.new_rec(line, false, false, at) {
            self.records[r].owns = true;
            self.records[r].serves = EarliestUser::NONE; // no later store waits for this one
            self.issue(mem, cal, r, at);
        }
    }

    /// Prefetches a line whose address comes from the anchor. Only loads that find the line outstanding wait for the
    /// prefetch's record. The prefetch waits for a line fill buffer; Intel's event L1D_PEND_MISS.FB_FULL counts the
    /// cycles of such waits.
    fn prefetch_from_anchor(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, line: LineAddr) {
        self.dispatch(1);
        let at = self.now();
        let Some(r) = self.new_rec(line, false, false, at) else { return };
        self.records[r].serves = EarliestUser::NONE;
        if let Some((parent, _)) = self.anchor {
            self.records[r].state = AccessState::Address;
            self.records[parent].children |= 1 << r;
        } else {
            self.look_up_access(mem, cal, r, at.max(self.anchor_ready));
        }
    }

    fn prefetch(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, line: LineAddr) {
        self.dispatch(1);
        let at = self.now();
        self.prefetch_at(mem, cal, line, at);
    }

    fn prefetch_at(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, line: LineAddr, at: Time) {
        if !self.may_miss() || self.is_asked_for(mem, line) {
            return; // prefetches are hints
        }
        if mem.probe(cal, self.core, line, false, at) == Probe::Miss {
            if let Some(r) = self.new_rec(line, false, false, at) {
                self.issue(mem, cal, r, at);
            }
        }
    }

    /// Reads a line for which no instruction and no side effect waits.
    fn fetch_hint(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, line: LineAddr) {
        self.dispatch(1);
        let at = self.now();
        if !self.may_miss() || self.is_asked_for(mem, line) || self.must_defer(mem, line, false, at) {
            return;
        }
        if mem.probe(cal, self.core, line, false, at) == Probe::Miss {
            if let Some(r) = self.new_rec(line, false, false, at) {
                self.records[r].serves = EarliestUser::NONE;
                self.issue(mem, cal, r, at);
            }
        }
    }
}
