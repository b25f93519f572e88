//! Miss status holding registers of the LLC's slices, and the requests that wait for one.

use super::array::Home;
use super::dma::Source;
use super::node::DEVICES_AT;
use super::paths::Path;
use super::{Agent, Event, Memory, Op, Posts, Txn};
use crate::flow::Domain;
use crate::kernel::ids::niche_id;
use crate::kernel::{IdVec, Int, LineAddr, Time, TxnId};
use std::collections::VecDeque;
use std::num::NonZeroU32;

#[derive(Clone)]
struct Slice {
    registers: Domain,
    /// Requests that came while none was free, in their order.
    waiting: VecDeque<TxnId>,
}

niche_id!(
    /// A miss at the LLC that holds a register.
    MissId(NonZeroU32)
);

/// A miss.
#[derive(Clone, Copy)]
struct Miss {
    slice: u16,
    /// What has to happen before its register is free.
    awaits: u16,
    since: Time,
}

#[derive(Clone)]
pub struct Mshrs {
    slices: Vec<Slice>,
    misses: IdVec<MissId, Miss>,
    spare: Vec<MissId>,
    /// The miss of each transaction.
    of: Vec<Option<MissId>>,
    /// Slices that may take somebody in.
    due: Vec<u16>,
}

impl Mshrs {
    /// `each` registers in each of `slices` slices.
    pub(super) fn new(slices: usize, each: u32) -> Mshrs {
        let slice = Slice { registers: Domain::new(each), waiting: VecDeque::new() };
        Mshrs { slices: vec![slice; slices], misses: IdVec::new(), spare: Vec::new(), of: Vec::new(), due: Vec::new() }
    }

    /// Whether a request for `slice` goes on now; else it waits.
    pub(super) fn enter(&mut self, slice: usize, id: TxnId) -> bool {
        let free = self.is_free(slice);
        if !free {
            self.wait(slice, id);
        }
        free
    }

    /// Whether `slice` has a register, and nobody waits for it.
    #[inline]
    fn is_free(&self, slice: usize) -> bool {
        let s = &self.slices[slice];
        s.waiting.is_empty() && s.registers.free() > 0
    }

    /// Request `id` waits at `slice`, behind those that do.
    fn wait(&mut self, slice: usize, id: TxnId) {
        self.slices[slice].waiting.push_back(id);
    }

    /// A miss at `slice` takes a register, or, when an L2's victim causes it, one more than there are.
    pub(super) fn begin(&mut self, slice: usize, now: Time) -> MissId {
        self.slices[slice].registers.force(now);
        let miss = Miss { slice: slice.to_u16(), awaits: 1, since: now };
        if let Some(i) = self.spare.pop() {
            self.misses[i] = miss;
            return i;
        }
        self.misses.push(miss)
    }

    /// The miss has one thing more to wait for.
    pub(super) fn extend(&mut self, miss: MissId) {
        self.misses[miss].awaits += 1;
    }

    /// One thing that the miss waited for has happened; with the last its register is free, and if somebody waits for
    /// that, `Event::Slices` makes them go on.
    pub(super) fn end(&mut self, cal: &mut impl Posts, miss: MissId, now: Time) {
        let m = &mut self.misses[miss];
        m.awaits -= 1;
        if m.awaits == 0 {
            let m = *m;
            self.slices[usize::from(m.slice)].registers.give(now, m.since);
            self.spare.push(miss);
            if !self.slices[usize::from(m.slice)].waiting.is_empty() {
                self.due.push(m.slice);
                cal.post(now, Event::Slices);
            }
        }
    }

    /// The miss ends when transaction `id` is answered.
    pub(super) fn tie(&mut self, id: TxnId, miss: MissId) {
        if self.of.len() <= id.index() {
            self.of.resize(id.index() + 1, None);
        }
        self.of[id.index()] = Some(miss);
    }

    /// Transaction `id` has been answered.
    pub(super) fn answered(&mut self, cal: &mut impl Posts, id: TxnId, now: Time) {
        if let Some(miss) = self.of.get_mut(id.index()).and_then(Option::take) {
            self.end(cal, miss, now);
        }
    }

    /// The next request that goes on.
    pub(super) fn next(&mut self) -> Option<TxnId> {
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

    /// The registers of each slice.
    pub fn registers(&self) -> impl Iterator<Item = &Domain> {
        self.slices.iter().map(|s| &s.registers)
    }

    /// Each register that is taken belongs to a miss, and each miss waits for something: its answer, or one of `victims` lines
    /// that have not been taken in.
    ///
    /// # Errors
    /// One sentence about registers that are not conserved.
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
    /// A miss at the LLC takes a register, where there are such, until `end_look_up` or its answer and until the line
    /// that it pushes out has been taken in.
    #[inline(always)]
    pub(super) fn begin_miss(&mut self, home: Home, now: Time) {
        if self.functional {
            return;
        }
        if let Some(m) = &mut self.mshrs {
            debug_assert!(self.miss.is_none(), "a miss within a miss");
            self.miss = Some(m.begin(self.nodes[DEVICES_AT].llc.slice(home), now));
        }
    }

    /// The miss needs no data.
    #[inline]
    pub(super) fn end_look_up(&mut self, cal: &mut impl Posts, now: Time) {
        if let Some(miss) = self.miss.take() {
            self.mshrs.as_mut().expect("a miss holds a register").end(cal, miss, now);
        }
    }

    /// The miss ends when transaction `id` is answered.
    #[inline]
    pub(super) fn tie_miss(&mut self, id: TxnId) {
        if let Some(miss) = self.miss.take() {
            self.mshrs.as_mut().expect("a miss holds a register").tie(id, miss);
        }
    }

    /// A request arrives at the slice of its first line.
    #[inline(never)]
    pub(super) fn on_slice(&mut self, cal: &mut impl Posts, id: TxnId, now: Time) {
        let Txn { line, op, lines, agent, .. } = self.txns[id];
        if lines > 1 && agent == Agent::Nic {
            return self.on_slices(cal, id, now);
        }
        let past = matches!(op, Op::Stream | Op::Uncached);
        let (slices, slice) = self.slice_of(line);
        if past || slices.enter(slice, id) {
            self.begin_whole(cal, id, now);
        }
    }

    /// The registers, and the slice of `line` that they belong to.
    #[inline]
    fn slice_of(&mut self, line: LineAddr) -> (&mut Mshrs, usize) {
        let llc = &self.nodes[DEVICES_AT].llc;
        let slice = llc.slice(llc.home(line));
        (self.mshrs.as_mut().expect("registers for misses"), slice)
    }

    /// The lines of an integrated NIC's burst arrive, each at its slice. Those that are done at the same time are answered
    /// together; one that waits, for its slice or for DRAM, becomes a transaction of its own.
    fn on_slices(&mut self, cal: &mut impl Posts, id: TxnId, now: Time) {
        let t = self.txns[id];
        let m = &mut self.marks[id];
        let waited = now - m.cha;
        (m.admitted, m.queued, m.data) = (now, now, now);
        // Lines that the LLC takes or gives, and those that a core gives.
        let (mut here, mut near, mut snooped) = (0, 0, Time::ZERO);
        for line in t.line.span(t.lines) {
            let one = Txn { line, lines: 1, ..t };
            let (slices, slice) = self.slice_of(line);
            if !slices.is_free(slice) {
                let part = self.part(id, one);
                let (slices, slice) = self.slice_of(line);
                slices.wait(slice, part);
                continue;
            }
            self.paths.admit(Path::of(t.op), waited);
            if t.op == Op::DmaWrite {
                self.place(cal, &one, None, now);
                here += 1;
                continue;
            }
            match self.source(cal, &one, line, now) {
                Source::Chip { snoop: Time::ZERO, .. } => here += 1,
                Source::Chip { snoop, .. } => (near, snooped) = (near + 1, snoop),
                Source::Dram => {
                    let part = self.part(id, one);
                    self.tie_miss(part);
                    self.read_dram(cal, part, t.class, now);
                }
            }
        }
        let back = if t.op == Op::DmaWrite { now } else { now + self.nodes[DEVICES_AT].look_up + self.way_back(&t) };
        for (lines, at) in [(here, back), (near, back + snooped)] {
            if lines > 0 {
                let part = self.part(id, Txn { lines, ..t });
                cal.post(at, Event::Fill(part));
            }
        }
        self.finish(id);
    }

    /// A part of transaction `id` that goes its own way from now on.
    fn part(&mut self, id: TxnId, t: Txn) -> TxnId {
        let part = self.txn(t);
        self.marks[part] = self.marks[id];
        part
    }

    fn begin_whole(&mut self, cal: &mut impl Posts, id: TxnId, now: Time) {
        let lane = self.lane(&self.txns[id]);
        while !self.begin(cal, id, lane, now) {}
    }

    /// `Event::Slices`: requests go on that waited for a register.
    #[inline(never)]
    pub fn resume_slices(&mut self, cal: &mut impl Posts, now: Time) {
        while let Some(id) = self.mshrs.as_mut().and_then(|m| m.next()) {
            self.begin_whole(cal, id, now);
        }
    }
}
