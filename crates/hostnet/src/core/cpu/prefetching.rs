//! Lines that a core fetches before an instruction asks for them: hardware prefetches and prefetch hints of devices.

use super::{send, AccessState, Cpu, EarliestUser};
use crate::core::op::Op;
use crate::core::prefetch::{CacheLevel, Prefetcher};
use crate::core::CorePosts;
use crate::kernel::{LineAddr, Time};
use crate::memory::{self, Memory, Probe, Txn};

impl Cpu {
    /// Handles `memory::MemoryEvent::Hint`: a device has written `line` for this core.
    pub fn on_hint(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, line: LineAddr, now: Time) {
        if let Some(h) = &mut self.hints {
            h.push(line, now);
        }
        self.follow_hints(mem, cal, now);
    }

    /// Turns the oldest hints into prefetches, as long as the L2 may have further misses outstanding.
    #[inline(never)]
    pub(super) fn follow_hints(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, now: Time) {
        while let Some(line) = self.hints.as_ref().and_then(|h| h.first()) {
            let under_way = self.prefetcher.as_ref().is_some_and(|p| p.fetches(line)) || self.is_asked_for(mem, line);
            let fetch = !under_way && mem.worth_fetching(self.core, line);
            if fetch {
                let (Some(p), Some(m)) = (&mut self.prefetcher, &mut self.mshrs) else { return };
                if m.free() <= p.reserve {
                    return;
                }
                let Some(record) = p.take(line, false, CacheLevel::L2, now) else { return };
                m.take(now);
                let t = Txn { record, ahead: true, ..self.request(memory::TxnOp::Read, line, now) };
                send(mem, cal, now, t);
            }
            if let Some(h) = &mut self.hints {
                h.pop(fetch, now);
            }
        }
    }

    /// Kind of the instruction at `pc`, which a prefetcher uses in place of the instruction's address; 0 where no
    /// prefetcher needs the kind.
    #[inline]
    pub(super) fn site(&self) -> u8 {
        if self.l1_prefetcher.is_none() && !self.prefetcher.as_ref().is_some_and(Prefetcher::by_instruction) {
            return 0;
        }
        self.program.ops.get(self.pc).map_or(0, Op::site)
    }

    /// Shows the L2's prefetcher the access `of`, a line and the kind of the instruction, which missed the L1. `goes`
    /// says whether the access is a request that goes to the L2 now, and `own` whether the request asks for ownership.
    #[inline]
    pub(super) fn train_prefetcher(
        &mut self,
        mem: &mut Memory,
        cal: &mut impl CorePosts,
        of: (LineAddr, u8),
        (goes, own): (bool, bool),
        at: Time,
    ) {
        if goes && self.prefetcher.as_ref().is_some_and(Prefetcher::watches) {
            self.issue_prefetches(mem, cal, of, own, at);
        }
    }

    #[inline(never)]
    fn issue_prefetches(
        &mut self,
        mem: &mut Memory,
        cal: &mut impl CorePosts,
        (line, site): (LineAddr, u8),
        own: bool,
        at: Time,
    ) {
        let Some(p) = &mut self.prefetcher else { return };
        let instruction = u32::from(mem.map.id(line).0) << 8 | u32::from(site);
        let lines = p.observe(instruction, line, |step| mem.map.neighbouring_page(line, step));
        if p.waiting.is_used() {
            p.waiting.drop_line(line);
            return self.defer_prefetches(mem, cal, lines, at);
        }
        let crosses = p.next_page;
        for l in lines {
            let Some(l) = (if crosses { mem.map.in_virtual_order(line, l) } else { Some(l) }) else { break };
            if self.may_prefetch() {
                self.fetch(mem, cal, l, own, at);
            }
        }
    }

    /// Whether a prefetch may take an MSHR of the L2 now.
    #[inline]
    pub(super) fn may_prefetch(&self) -> bool {
        if self.prefetcher.as_ref().is_some_and(|p| p.into == CacheLevel::Llc) {
            return true; // the prefetcher's credits limit it
        }
        let reserve = self.prefetcher.as_ref().map_or(0, |p| p.reserve);
        self.mshrs.as_ref().is_none_or(|m| m.free() > reserve)
    }

    /// Sends the prefetches that have waited longest, as long as the L2 may have further misses outstanding.
    #[inline]
    pub(super) fn send_waiting(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, now: Time) {
        if self.prefetcher.as_ref().is_some_and(|p| !p.waiting.is_empty()) {
            self.send_oldest(mem, cal, now);
        }
    }

    #[inline(never)]
    fn send_oldest(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, now: Time) {
        while self.may_prefetch() {
            let Some(p) = self.prefetcher.as_mut().filter(|p| p.queue.free() > 0) else { return };
            let Some((line, since)) = p.waiting.pop() else { return };
            self.fetch(mem, cal, line, false, now.max(since));
        }
    }

    /// Prefetches `line`, unless it is present or already requested; `own` says that a request for ownership caused the
    /// prefetch.
    pub(super) fn fetch(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, line: LineAddr, own: bool, at: Time) {
        let Some(p) = &self.prefetcher else { return };
        let (network, own, into, core) = (p.network, own && p.ownership, p.into, self.core);
        let there = into == CacheLevel::Llc && mem.in_llc_or_shared(core, line);
        // The L2 knows nothing of accesses that wait for a line fill buffer.
        let asked = self.same_line(line).is_some_and(|r| self.records[r].state == AccessState::Issued);
        if there || asked || !mem.worth_prefetching(core, line, network) || mem.sibling_fetches(self.id, line) {
            return;
        }
        let Some(record) = self.prefetcher.as_mut().and_then(|p| p.take(line, own, into, at)) else { return };
        if let Some(m) = self.mshrs.as_mut().filter(|_| into == CacheLevel::L2) {
            m.take(at);
        }
        let op = if own { memory::TxnOp::Own } else { memory::TxnOp::Read };
        let t = Txn { record, ahead: true, ..self.request(op, line, at) };
        send(mem, cal, at, t);
    }

    /// Prefetches the other line of the 128-byte pair after an access has requested `line` from beyond the L2, with
    /// ownership if `own`.
    #[inline]
    pub(super) fn complete_pair(
        &mut self,
        mem: &mut Memory,
        cal: &mut impl CorePosts,
        line: LineAddr,
        own: bool,
        at: Time,
    ) {
        if self.prefetcher.as_ref().is_some_and(|p| p.adjacent) && self.may_prefetch() {
            self.fetch(mem, cal, LineAddr(line.0 ^ 1), own, at);
        }
    }

    /// Shows the L1's prefetchers a load or store at `at`; `of` holds the line and the kind of the instruction.
    #[inline]
    pub(super) fn train_l1_prefetcher(
        &mut self,
        mem: &mut Memory,
        cal: &mut impl CorePosts,
        of: (LineAddr, u8),
        store: bool,
        at: Time,
    ) {
        if let Some(p) = &mut self.l1_prefetcher {
            if store {
                p.store();
            } else {
                self.follow_load(mem, cal, of, at);
            }
        }
    }

    #[inline(never)]
    fn follow_load(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, (line, site): (LineAddr, u8), at: Time) {
        let Some(p) = &mut self.l1_prefetcher else { return };
        let several = self.per_line > 1 || Op::is_walk(site);
        let lines = p.load(u32::from(mem.map.id(line).0) << 8 | u32::from(site), line, several);
        let misses = p.misses;
        for l in lines.into_iter().flatten() {
            if self.lfb.credits() - self.lfb.free() < misses {
                self.fetch_to_l1(mem, cal, (l, site), at);
            }
        }
    }

    /// Loads into the L1 a line that is neither there nor requested; no instruction waits for the line.
    fn fetch_to_l1(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, (line, site): (LineAddr, u8), at: Time) {
        let asks = self.live != u64::MAX && self.may_miss() && !self.is_asked_for(mem, line);
        if !asks || !mem.worth_loading(self.core, line) || self.must_defer(mem, line, false, at) {
            return;
        }
        if mem.probe(cal, self.core, line, false, at) == Probe::Miss {
            if let Some(r) = self.new_rec(line, false, false, at) {
                self.records[r].serves = EarliestUser::NONE;
                self.issue(mem, cal, r, at);
            }
        }
        self.train_prefetcher(mem, cal, (line, site), (true, false), at);
    }

    pub(super) fn prefetch_ended(&mut self, now: Time, taken: Time) {
        if let Some(p) = &mut self.prefetcher {
            p.queue.give(now, taken);
        }
    }
}
