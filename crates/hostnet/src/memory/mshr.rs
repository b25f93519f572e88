//! Miss status holding registers (MSHRs) of the LLC's slices, and the requests that wait for an MSHR.

use super::array::LineHome;
use super::dma::ReadSource;
use super::node::FIRST_NODE;
use super::paths::Path;
use super::{Agent, Memory, MemoryEvent, MemoryPosts, Txn, TxnOp};
use crate::flow::Domain;
use crate::kernel::ids::niche_id;
use crate::kernel::{IdVec, Int, Time, TxnId};
use std::collections::VecDeque;
use std::num::NonZeroU32;

#[derive(Clone)]
struct Slice {
    registers: Domain,
    /// Requests that arrived while no MSHR was free, in order of arrival.
    waiting: VecDeque<TxnId>,
}

niche_id!(
    /// A miss at the LLC that holds a register.
    MissId(NonZeroU32)
);

/// An LLC miss that holds an MSHR.
#[derive(Clone, Copy)]
struct Miss {
    slice: u16,
    /// Number of events that have to occur before the MSHR is free.
    awaits: u16,
    since: Time,
}

/// MSHRs of an LLC's slices, with the requests that wait for an MSHR.
#[derive(Clone)]
pub struct Mshrs {
    slices: Vec<Slice>,
    misses: IdVec<MissId, Miss>,
    spare: Vec<MissId>,
    /// The miss of each transaction.
    of: Vec<Option<MissId>>,
    /// Slices at which a waiting request may be able to proceed.
    due: Vec<u16>,
}

impl Mshrs {
    /// Makes `each` MSHRs in each of `slices` slices.
    pub(super) fn new(slices: usize, each: u32) -> Mshrs {
        let slice = Slice { registers: Domain::new(each), waiting: VecDeque::new() };
        Mshrs { slices: vec![slice; slices], misses: IdVec::new(), spare: Vec::new(), of: Vec::new(), due: Vec::new() }
    }

    /// Whether a request for `slice` may proceed now; otherwise the request is queued.
    pub(super) fn try_admit(&mut self, slice: usize, id: TxnId) -> bool {
        let free = self.is_free(slice);
        if !free {
            self.enqueue(slice, id);
        }
        free
    }

    /// Whether `slice` has a free MSHR that no request waits for.
    #[inline]
    fn is_free(&self, slice: usize) -> bool {
        let s = &self.slices[slice];
        s.waiting.is_empty() && s.registers.free() > 0
    }

    /// Appends request `id` to the queue of `slice`.
    fn enqueue(&mut self, slice: usize, id: TxnId) {
        self.slices[slice].waiting.push_back(id);
    }

    /// Takes an MSHR for a miss at `slice`; the victim of an L2 takes one even when none is free.
    pub(super) fn allocate(&mut self, slice: usize, now: Time) -> MissId {
        self.slices[slice].registers.force(now);
        let miss = Miss { slice: slice.to_u16(), awaits: 1, since: now };
        if let Some(i) = self.spare.pop() {
            self.misses[i] = miss;
            return i;
        }
        self.misses.push(miss)
    }

    /// Adds one event that has to occur before the miss ends.
    pub(super) fn add_dependency(&mut self, miss: MissId) {
        self.misses[miss].awaits += 1;
    }

    /// Records that one event that the miss waited for has occurred. The last such event frees the MSHR; if a request
    /// waits for the MSHR, `MemoryEvent::Slices` resumes it.
    pub(super) fn complete_dependency(&mut self, cal: &mut impl MemoryPosts, miss: MissId, now: Time) {
        let m = &mut self.misses[miss];
        m.awaits -= 1;
        if m.awaits == 0 {
            let m = *m;
            self.slices[usize::from(m.slice)].registers.give(now, m.since);
            self.spare.push(miss);
            if !self.slices[usize::from(m.slice)].waiting.is_empty() {
                self.due.push(m.slice);
                cal.post(now, MemoryEvent::Slices);
            }
        }
    }

    /// Makes the answer of transaction `id` an event that the miss waits for.
    pub(super) fn bind_txn(&mut self, id: TxnId, miss: MissId) {
        if self.of.len() <= id.index() {
            self.of.resize(id.index() + 1, None);
        }
        self.of[id.index()] = Some(miss);
    }

    /// Ends the miss of transaction `id`, which has been answered.
    pub(super) fn on_answer(&mut self, cal: &mut impl MemoryPosts, id: TxnId, now: Time) {
        if let Some(miss) = self.of.get_mut(id.index()).and_then(Option::take) {
            self.complete_dependency(cal, miss, now);
        }
    }

    /// Next request that may proceed.
    pub(super) fn dequeue(&mut self) -> Option<TxnId> {
        while let Some(&slice) = self.due.last() {
            let s = &mut self.slices[usize::from(slice)];
            if s.registers.free() > 0 {
                if let Some(id) = s.waiting.pop_front() {
                    return Some(id);
                }
            }
            self.due.pop();
        }
        None
    }

    /// MSHRs of each slice.
    pub fn registers(&self) -> impl Iterator<Item = &Domain> {
        self.slices.iter().map(|s| &s.registers)
    }

    /// Checks that each MSHR in use belongs to a miss, and that each miss waits for an event: its answer, or the
    /// acceptance of one of `victims` displaced lines by the memory controller.
    ///
    /// # Errors
    /// Fails with one sentence about the MSHRs that are not conserved.
    pub(super) fn check(&self, victims: usize) -> Result<(), String> {
        let mut live = vec![0; self.slices.len()];
        for m in self.misses.iter().filter(|m| m.awaits > 0) {
            live[usize::from(m.slice)] += 1;
        }
        if let Some((i, s)) = self.slices.iter().enumerate().find(|(i, s)| s.registers.used() != live[*i]) {
            return Err(format!(
                "slice {i} of the LLC has {} registers out for {} misses",
                s.registers.used(),
                live[i]
            ));
        }
        let awaits: usize = self.misses.iter().map(|m| usize::from(m.awaits)).sum();
        let answers = self.of.iter().filter(|m| m.is_some()).count();
        if awaits != answers + victims {
            return Err(format!(
                "misses of the LLC wait for {awaits} events; {answers} answers and {victims} victims are to come"
            ));
        }
        Ok(())
    }

    pub(super) fn restart(&mut self, now: Time) {
        self.slices.iter_mut().for_each(|s| s.registers.restart(now));
    }
}

impl Memory {
    /// Takes an MSHR for a miss at the LLC, where MSHRs are limited. The miss holds the MSHR until `end_lookup` or the
    /// answer of a transaction, and until the memory controller has accepted the line that the miss displaced.
    #[inline(always)]
    pub(super) fn allocate_mshr(&mut self, home: LineHome, now: Time) {
        if self.functional {
            return;
        }
        if let Some(m) = &mut self.mshrs {
            debug_assert!(self.miss.is_none(), "a miss within a miss");
            self.miss = Some(m.allocate(self.nodes[FIRST_NODE].llc.slice(home), now));
        }
    }

    /// Ends the look-up of a miss that needs no data.
    #[inline]
    pub(super) fn end_lookup(&mut self, cal: &mut impl MemoryPosts, now: Time) {
        if let Some(miss) = self.miss.take() {
            self.mshrs.as_mut().expect("a miss holds a register").complete_dependency(cal, miss, now);
        }
    }

    /// Makes the answer of transaction `id` the end of the present miss.
    #[inline]
    pub(super) fn bind_mshr(&mut self, id: TxnId) {
        if let Some(miss) = self.miss.take() {
            self.mshrs.as_mut().expect("a miss holds a register").bind_txn(id, miss);
        }
    }

    /// Handles the arrival of a request at the slice of its first line.
    #[inline(never)]
    pub(super) fn on_slice(&mut self, cal: &mut impl MemoryPosts, id: TxnId, now: Time) {
        let Txn { line, op, home, lines, sender, .. } = self.txns[id];
        if lines > 1 && sender.agent() == Agent::Nic {
            return self.on_slices(cal, id, now);
        }
        let past = matches!(op, TxnOp::Stream | TxnOp::Uncached);
        let home = if lines == 1 { home } else { self.nodes[FIRST_NODE].llc.home(line) };
        debug_assert_eq!(home, self.nodes[FIRST_NODE].llc.home(line));
        let (slices, slice) = self.slice_at(home);
        if past || slices.try_admit(slice, id) {
            self.begin_whole(cal, id, now);
        }
    }

    /// MSHRs of the LLC, and the slice of a line whose place in the LLC is `home`.
    #[inline]
    fn slice_at(&mut self, home: LineHome) -> (&mut Mshrs, usize) {
        let slice = self.nodes[FIRST_NODE].llc.slice(home);
        (self.mshrs.as_mut().expect("registers for misses"), slice)
    }

    /// Handles the arrival of the lines of an integrated NIC's burst, each at its slice. Lines that are done at the
    /// same time are answered together; a line that waits for its slice or for DRAM becomes a transaction of its own.
    fn on_slices(&mut self, cal: &mut impl MemoryPosts, id: TxnId, now: Time) {
        let t = self.txns[id];
        let m = &mut self.milestones[id];
        let waited = now - m.cha;
        (m.admitted, m.queued, m.data) = (now, now, now);
        // Number of lines that the LLC accepts or supplies (`here`), and of lines that a core supplies (`near`).
        let (mut here, mut near, mut snooped) = (0, 0, Time::ZERO);
        let mut one = Txn { lines: 1, ..t };
        for line in t.line.span(t.lines) {
            (one.line, one.home) = (line, self.nodes[FIRST_NODE].llc.home(line));
            let (slices, slice) = self.slice_at(one.home);
            if !slices.is_free(slice) {
                let part = self.split_request(id, one);
                let (slices, slice) = self.slice_at(one.home);
                slices.enqueue(slice, part);
                continue;
            }
            self.paths.record_admission(Path::of(t.op), waited);
            if t.op == TxnOp::DmaWrite {
                self.place_first_line(cal, &one, None, now);
                here += 1;
                continue;
            }
            match self.find_read_source(cal, &one, line, one.home, now) {
                ReadSource::Chip { snoop: Time::ZERO, .. } => here += 1,
                ReadSource::Chip { snoop, .. } => (near, snooped) = (near + 1, snoop),
                ReadSource::Dram => {
                    let part = self.split_request(id, one);
                    self.bind_mshr(part);
                    self.read_dram(cal, part, t.class, now);
                }
            }
        }
        let back = if t.op == TxnOp::DmaWrite {
            now
        } else {
            now + self.nodes[FIRST_NODE].look_up + self.latency_from_agent(&t)
        };
        for (lines, at) in [(here, back), (near, back + snooped)] {
            if lines > 0 {
                let part = self.split_request(id, Txn { lines, ..t });
                cal.post(at, MemoryEvent::Fill(part));
            }
        }
        self.free_txn(id);
    }

    /// Splits a part off transaction `id`; the part proceeds separately.
    fn split_request(&mut self, id: TxnId, t: Txn) -> TxnId {
        let part = self.txn(t);
        self.milestones[part] = self.milestones[id];
        part
    }

    fn begin_whole(&mut self, cal: &mut impl MemoryPosts, id: TxnId, now: Time) {
        let lane = self.lane(&self.txns[id]);
        while !self.begin(cal, id, lane, now) {}
    }

    /// Lets requests that waited for an MSHR proceed.
    #[inline(never)]
    pub fn resume_slices(&mut self, cal: &mut impl MemoryPosts, now: Time) {
        while let Some(id) = self.mshrs.as_mut().and_then(|m| m.dequeue()) {
            self.begin_whole(cal, id, now);
        }
    }
}
