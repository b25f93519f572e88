//! One core: dispatch, reorder buffer, store queue and line fill buffers, driven by an op stream.
//!
//! The core runs ahead of the calendar through everything that its private caches answer. A request that leaves the L2
//! becomes a transaction at its time of issue. Each memory access that is not done has a record (`AccessRecord`), which
//! waits for its address, for a line fill buffer, or for data.

mod access_records;
mod audit;
pub mod combining;
mod deferred_hits;
mod execute;
mod pending_sweeps;
mod polls;
mod prefetching;
mod retire;
mod sibling;
mod smt_slots;
mod walk;

pub use polls::PollRound;
pub use retire::Retired;

use super::hints::Hints;
use super::l1_prefetch::L1Prefetcher;
use super::op::{Op, Program, KEPT_ANCHORS};
use super::prefetch::{self, CacheLevel, Prefetcher};
use super::spec::{CoreSpec, Pipeline, RobHolds};
use crate::core::CorePosts;
use crate::flow::{AheadDomain, Domain};
use crate::kernel::{Clock, CoreId, Int, LineAddr, ThreadId, Time};
use crate::memory::{self, Memory, Probe, Txn};
use combining::DeviceAccesses;
use deferred_hits::DeferredHits;
use execute::LineAccess;
use pending_sweeps::PendingSweeps;
use retire::PendingEffect;
use smt_slots::SmtSlots;
use std::collections::VecDeque;
use std::ops::{Index, IndexMut};
use walk::WalksInRob;

const RECS: usize = 64;
/// Dispatch advances in units of 1/16 ps, since an instruction takes 62.5 ps at 3.2 GHz and a width of 5.
const FRAC: u64 = 16;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AccessState {
    Free,
    /// The address comes from the data of another record, which lists this record among its `children`.
    Address,
    /// The access waits for a line fill buffer.
    Credit,
    Issued,
    /// The data arrives at `done`, a time that is known.
    Done,
}

/// Number, in program order, of the first instruction that an access serves, or none. An access that serves none is
/// before no instruction.
#[derive(Clone, Copy, Debug)]
struct EarliestUser(u64);

impl EarliestUser {
    /// An access that no instruction waits for.
    const NONE: EarliestUser = EarliestUser(u64::MAX);

    /// An access of instruction `seq`.
    #[inline(always)]
    fn of(seq: u64) -> EarliestUser {
        EarliestUser(seq)
    }
    /// Notes that the access serves instruction `seq` too.
    #[inline(always)]
    fn include(&mut self, seq: u64) {
        self.0 = self.0.min(seq);
    }
    /// Whether the access serves an instruction before `seq`.
    #[inline(always)]
    fn is_before(self, seq: u64) -> bool {
        self.0 < seq
    }
}

/// An access to a line that is not done; it occupies one cache line of the computer that runs the simulation.
#[repr(align(64))]
#[derive(Clone, Copy, Debug)]
struct AccessRecord {
    line: LineAddr,
    serves: EarliestUser,
    state: AccessState,
    generation: u32,
    write: bool,
    /// Whether the access is a load; a load blocks retirement.
    load: bool,
    /// Whether the access requests ownership of the line, even if no store to the line has been dispatched.
    owns: bool,
    /// Kind of the instruction, which prefetchers use in place of the instruction's address.
    site: u8,
    delay: u16,
    ready: Time,
    done: Time,
    /// Bit set of the records whose address comes from this record's data.
    children: u64,
}

/// Records of a core by number. Numbers are below `RECS`; masking them avoids a bounds check.
#[derive(Clone)]
struct AccessRecords([AccessRecord; RECS]);

impl Index<u8> for AccessRecords {
    type Output = AccessRecord;
    #[inline]
    fn index(&self, r: u8) -> &AccessRecord {
        &self.0[r.to_usize() % RECS]
    }
}
impl IndexMut<u8> for AccessRecords {
    #[inline]
    fn index_mut(&mut self, r: u8) -> &mut AccessRecord {
        &mut self.0[r.to_usize() % RECS]
    }
}

/// The event that the core waits for before it dispatches further instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum DispatchWait {
    Nothing,
    Record(u8),
    AnyRecord,
    Loads,
    All,
    /// All write-combining buffers have to be empty.
    Combined,
    /// The data of an uncached load has to arrive.
    Device,
    /// Sweeps of the line have to arrive at the home agent.
    Sweeps,
    /// All loads and stores have to be done.
    LoadsAndStores,
    /// All doorbells have to leave the core.
    Doorbells,
}

#[derive(Clone, Copy, Debug)]
struct WindowEntry {
    seq: u64,
    rec: u8,
    generation: u32,
    slots: u8,
}

/// Number and total time of memory accesses as the core sees them.
#[derive(Clone, Copy, Debug, Default)]
pub struct AccessTime {
    /// Number of accesses.
    pub accesses: u64,
    /// Sum of the accesses' times from issue to data, in ps.
    pub ps: u128,
}

/// A hardware thread: executes programs and keeps their accesses in flight.
#[derive(Clone)]
pub struct Cpu {
    /// Number of this hardware thread within the machine (`id`) and number of its core (`core`).
    id: ThreadId,
    core: CoreId,
    clock: Clock,
    in_order: bool,
    rob_size: u64,
    /// Whether the ROB limits all instructions, and holds loads that hit the L2.
    rob_holds_all: bool,
    /// Duration of a serialising instruction, in 1/16 ps; None where such an instruction waits for nothing.
    serialise: Option<u64>,
    /// Time that a taken branch costs, in 1/16 ps.
    taken_branch: u64,
    sq_size: u32,
    per_line: u32,
    retry: Time,
    /// Largest number of accesses that one line fill buffer takes.
    targets: u32,
    /// Delay that memory bandwidth allocation adds to `retry` for misses that waited for a line fill buffer.
    miss_throttle: Time,
    smt_slots: SmtSlots,
    t: u64,
    seq: u64,
    /// Program that the thread executes.
    pub program: Program,
    pc: usize,
    sub: u32,
    half: bool,
    records: AccessRecords,
    live: u64,
    finished: u64,
    /// Live records by the low bits of their line numbers.
    by_line: [u64; RECS],
    rob: VecDeque<WindowEntry>,
    /// Sequence number up to which instructions have room in the ROB, according to the oldest entry of the ROB.
    rob_until: u64,
    sq: VecDeque<WindowEntry>,
    sq_used: u32,
    /// Walks whose loads are in the ROB, in program order, with the instructions that wait for them.
    walks: WalksInRob,
    anchor: Option<(u8, u32)>,
    anchor_ready: Time,
    /// Time at which the last of the hits has its data that waited for an address and need no record.
    hits_until: Time,
    /// Anchors that the program keeps; `kept_open` is false once the data of all of them has arrived.
    kept: [(Option<(u8, u32)>, Time); KEPT_ANCHORS + 1],
    kept_open: bool,
    wait: DispatchWait,
    running: bool,
    no_credit: VecDeque<u8>,
    retire: VecDeque<PendingEffect>,
    retire_event: Option<Time>,
    /// Record, with its generation, that the oldest deferred side effect waits for.
    retire_after: Option<(u8, u32)>,
    /// Stores that become visible only after all earlier accesses (`Op::Release`).
    releases: VecDeque<retire::PendingRelease>,
    devices: DeviceAccesses,
    pending_sweeps: PendingSweeps,
    deferred: DeferredHits,
    /// Line fill buffers, as credits.
    pub lfb: AheadDomain,
    /// MSHRs of the L2; absent when only the line fill buffers and the prefetcher's credits limit the L2's misses.
    pub mshrs: Option<Box<Domain>>,
    /// Prefetcher into the L2 or the LLC, if the core has one.
    pub prefetcher: Option<Prefetcher>,
    /// Prefetchers of the L1.
    pub l1_prefetcher: Option<Box<L1Prefetcher>>,
    /// Queue of prefetch hints from devices that write lines for this core.
    pub hints: Option<Box<Hints>>,
    /// Whether doorbells go to the NIC on the chip, and not through the IIO to a NIC on a port.
    pub rings_chip: bool,
    /// Number and total time of the accesses in the measured window.
    pub amat: AccessTime,
    /// Instructions dispatched in the measured window.
    pub instructions: u64,
    /// `Op::Note` that the core has dispatched and that nobody has taken, with the times of their dispatch.
    pub noted: Vec<(Op, Time)>,
}

impl Cpu {
    /// Makes hardware thread `id` of the machine, on the core of the same number.
    pub fn new(id: ThreadId, s: &CoreSpec) -> Cpu {
        let clock = Clock::from_hz(s.clock.0);
        let serialise = s.quirks.serialise_cycles.filter(|_| s.pipeline == Pipeline::OutOfOrder);
        let rec = AccessRecord {
            line: LineAddr(0),
            serves: EarliestUser::NONE,
            state: AccessState::Free,
            generation: 0,
            write: false,
            load: false,
            owns: false,
            site: 0,
            delay: 0,
            ready: Time::ZERO,
            done: Time::ZERO,
            children: 0,
        };
        Cpu {
            id,
            core: CoreId(id.0),
            clock,
            in_order: s.pipeline == Pipeline::InOrder,
            rob_size: s.rob.into(),
            rob_holds_all: s.quirks.rob_holds == RobHolds::All && s.pipeline == Pipeline::OutOfOrder,
            serialise: serialise.map(|n| clock.span(n.into()).0 * FRAC),
            taken_branch: clock.span(s.quirks.taken_branch_cycles.into()).0 * FRAC,
            sq_size: s.store_queue,
            per_line: s.stores_per_line,
            retry: s.quirks.lfb_retry.into(),
            targets: s.quirks.lfb_targets.unwrap_or(u32::MAX),
            miss_throttle: Time::ZERO,
            smt_slots: SmtSlots::new(clock, s),
            t: 0,
            seq: 0,
            program: Program::default(),
            pc: 0,
            sub: 0,
            half: false,
            records: AccessRecords([rec; RECS]),
            live: 0,
            finished: 0,
            by_line: [0; RECS],
            rob: VecDeque::with_capacity(512),
            rob_until: 0,
            sq: VecDeque::with_capacity(128),
            sq_used: 0,
            walks: WalksInRob::default(),
            anchor: None,
            anchor_ready: Time::ZERO,
            hits_until: Time::ZERO,
            kept: [(None, Time::ZERO); KEPT_ANCHORS + 1],
            kept_open: false,
            wait: DispatchWait::Nothing,
            running: false,
            no_credit: VecDeque::with_capacity(RECS),
            retire: VecDeque::with_capacity(64),
            retire_event: None,
            retire_after: None,
            releases: VecDeque::new(),
            devices: DeviceAccesses::new(s.quirks.combining_buffers.unwrap_or(1)),
            pending_sweeps: PendingSweeps::default(),
            deferred: DeferredHits::default(),
            lfb: AheadDomain::new(s.lfb),
            mshrs: s.quirks.l2_mshrs.map(|n| Box::new(Domain::new(n))),
            prefetcher: s.prefetch.as_ref().and_then(Prefetcher::new),
            l1_prefetcher: s.l1_prefetch.as_ref().and_then(L1Prefetcher::new).map(Box::new),
            hints: None,
            rings_chip: false,
            amat: AccessTime::default(),
            instructions: 0,
            noted: Vec::new(),
        }
    }

    /// Makes the core follow prefetch hints. A core without a prefetcher reserves `reserve` MSHRs of the L2 for
    /// accesses.
    pub fn follow(&mut self, hints: Hints, reserve: u32) {
        let ahead = self.prefetcher.get_or_insert_with(|| Prefetcher::without_streams(reserve));
        let all = self.lfb.credits() + ahead.queue.credits();
        let mshrs = self.mshrs.get_or_insert_with(|| Box::new(Domain::new(all)));
        ahead.widen(mshrs.credits());
        self.hints = Some(Box::new(hints));
    }

    /// Present time of the core, at which the next instruction dispatches; it may lie ahead of the calendar.
    #[inline]
    pub fn now(&self) -> Time {
        Time(self.t / FRAC)
    }
    /// Share of its program, which began at `began`, that the core has executed at `now`. A core dispatches ahead of the
    /// calendar what waits for nothing; such ops are taken to follow each other evenly.
    pub fn executed(&self, began: Time, now: Time) -> f64 {
        let (ops, ahead) = (&self.program.ops, self.now().saturating_sub(now));
        if ops.is_empty() || !self.running && ahead == Time::ZERO {
            return 1.0;
        }
        let of_op = ops.get(self.pc).map_or(0.0, |op| {
            let parts = match *op {
                Op::Compute(n) => n,
                _ => op.accesses().map_or(1, |(_, lines, _)| lines),
            };
            (f64::from(self.sub) / f64::from(parts.max(1))).min(1.0)
        });
        let taken = self.now().saturating_sub(began).0.max(1);
        (self.pc.to_f64() + of_op) / ops.len().to_f64() * (1.0 - ahead.0.to_f64() / taken.to_f64()).max(0.0)
    }

    #[inline]
    fn advance_to(&mut self, at: Time) {
        self.t = self.t.max(at.0 * FRAC);
    }
    #[inline]
    fn dispatch(&mut self, n: u32) {
        self.seq += u64::from(n);
        self.instructions += u64::from(n);
        self.t += u64::from(n) * self.smt_slots.access;
    }

    /// Starts the ops in `program` at `now`. Returns the time at which the last op dispatched, or None when the core
    /// has to wait; a later call such as `on_fill` then returns the end.
    pub fn start(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, now: Time) -> Option<Time> {
        debug_assert!(!self.running);
        self.deferred.at(mem, now);
        self.advance_to(now);
        self.pc = 0;
        self.sub = 0;
        self.half = false;
        self.running = true;
        self.release_finished(now);
        self.run(mem, cal)
    }

    /// Handles `memory::MemoryEvent::Fill` of one of this core's transactions. Returns the program's end as `start` does.
    pub fn on_fill(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, t: &Txn, now: Time) -> Option<Time> {
        self.deferred.at(mem, now);
        if t.op == memory::TxnOp::WriteBack {
            if t.record == prefetch::WRITE_BACK {
                self.prefetch_ended(now, t.issued);
                self.send_waiting(mem, cal, now);
                self.follow_hints(mem, cal, now);
            } else if !t.transient {
                self.lfb.give(now, t.issued);
                self.grant_lfbs(mem, cal, now);
            }
            return if self.running && self.can_resume() { self.resume(mem, cal, now) } else { None };
        }
        if t.op == memory::TxnOp::Stream && t.record >= combining::RECORDS {
            return self.on_buffer_taken(mem, cal, t.record - combining::RECORDS, now);
        }
        let (mut t, mut record) = (t, t.record);
        let joined;
        let ahead = record >= prefetch::FIRST;
        let landed = if ahead { self.prefetcher.as_mut().map(|p| p.land(record)) } else { None };
        let (into, waiter) = landed.unwrap_or_default();
        // The fill frees an MSHR of the L2: the prefetch's own, or that of the access waiting for the prefetch.
        if let Some(m) = self.mshrs.as_mut().filter(|_| t.op != memory::TxnOp::Stream) {
            match (into, waiter) {
                (CacheLevel::L2, _) => m.give(now, t.issued),
                (CacheLevel::Llc, Some((_, since))) => m.give(now, since),
                (CacheLevel::Llc, None) => {}
            }
        }
        if ahead {
            let Some((r, since)) = waiter else {
                let held = match into {
                    CacheLevel::L2 => !t.transient && mem.fill_prefetch(cal, self.core, t, prefetch::WRITE_BACK, now),
                    CacheLevel::Llc => {
                        mem.fill_llc_prefetch(cal, self.core, t, now);
                        false
                    }
                };
                if !held {
                    self.prefetch_ended(now, t.issued);
                }
                self.mshrs.as_ref()?;
                // A miss may have waited for the MSHR that has become free.
                self.grant_lfbs(mem, cal, now);
                return if self.running && self.can_resume() { self.resume(mem, cal, now) } else { None };
            };
            self.prefetch_ended(now, t.issued);
            joined = Txn { issued: since, ..*t };
            (record, t) = (r, &joined);
        }
        let rec = self.records[record];
        let fills = t.op != memory::TxnOp::Stream && !t.transient;
        // A store that joined a read of a line shared with other cores must still request ownership.
        let owns = t.op != memory::TxnOp::Read || !rec.write || !mem.is_shared(rec.line);
        let held = fills && mem.fill(cal, self.core, t, rec.write && owns, now);
        if !held {
            self.lfb.give(now, t.issued);
        }
        if !owns {
            self.grant_lfbs(mem, cal, now);
            self.look_up_access(mem, cal, record, now);
            if self.effects_wait() {
                self.schedule_retirement(cal, now); // the line may have arrived with the permission to write
            }
            return if self.running && self.can_resume() { self.resume(mem, cal, now) } else { None };
        }
        if t.op != memory::TxnOp::Stream {
            self.amat.accesses += 1;
            self.amat.ps += u128::from((now - rec.ready.min(now)).0);
        }
        self.grant_lfbs(mem, cal, now);
        self.complete(mem, cal, record, now);
        if self.releases_wait() {
            self.release(mem, cal, now);
        }
        self.release_finished(now);
        if self.effects_wait() {
            self.schedule_retirement(cal, now);
        }
        if self.running && self.can_resume() {
            return self.resume(mem, cal, now);
        }
        None
    }

    fn resume(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, now: Time) -> Option<Time> {
        self.advance_to(now);
        self.run(mem, cal)
    }

    /// Delays misses that wait for a line fill buffer by `by` (memory bandwidth allocation).
    pub fn throttle_misses(&mut self, by: Time) {
        self.miss_throttle = by;
    }

    /// Gives free line fill buffers to waiting misses, and then free MSHRs to waiting prefetches.
    #[inline]
    fn grant_lfbs(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, now: Time) {
        if !self.no_credit.is_empty() {
            self.grant_waiting_lfbs(mem, cal, now);
        }
        self.send_waiting(mem, cal, now);
        if self.hints.is_some() {
            self.follow_hints(mem, cal, now);
        }
    }

    #[inline(never)]
    fn grant_waiting_lfbs(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, now: Time) {
        let finished = self.finished;
        while self.may_miss() {
            let Some(next) = self.no_credit.pop_front() else { break };
            let ready = self.records[next].ready.max(now + self.retry + self.miss_throttle);
            if self.prefetcher.is_some() || mem.siblings.is_some() {
                self.look_up_access(mem, cal, next, ready); // its line may have arrived in the meantime
            } else {
                self.issue(mem, cal, next, ready);
            }
        }
        if self.finished != finished && !self.retire.is_empty() {
            // A waiting miss has found its line in a cache, and side effects may have waited for it.
            self.schedule_retirement(cal, now);
        }
    }

    /// Whether the core may have one further miss outstanding.
    #[inline]
    fn may_miss(&self) -> bool {
        self.lfb.free() > 0 && self.mshrs.as_ref().is_none_or(|m| m.free() > 0)
    }

    #[inline(always)]
    fn can_resume(&mut self) -> bool {
        let open = self.live & !self.finished;
        match self.wait {
            DispatchWait::Nothing => true,
            DispatchWait::Record(r) => self.records[r].state == AccessState::Done || open >> r & 1 == 0,
            DispatchWait::AnyRecord => self.live != u64::MAX,
            DispatchWait::Loads => !self.any_open(|r| r.load),
            DispatchWait::All => open == 0,
            DispatchWait::Combined => self.devices.combined(),
            DispatchWait::Device => !self.devices.loading,
            DispatchWait::Sweeps => false,
            DispatchWait::LoadsAndStores => !self.any_open(|r| r.load || r.write),
            DispatchWait::Doorbells => self.devices.to_leave == 0,
        }
    }

    /// Completes record `r`, whose data arrives at `at`, and starts the accesses whose address comes from this data.
    fn complete(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, r: u8, at: Time) {
        self.records[r].state = AccessState::Done;
        self.records[r].done = at;
        self.finished |= 1 << r;
        if self.anchor == Some((r, self.records[r].generation)) {
            self.anchor = None;
            self.anchor_ready = at;
        }
        if self.kept_open {
            let arrived = Some((r, self.records[r].generation));
            self.kept.iter_mut().filter(|k| k.0 == arrived).for_each(|k| *k = (None, at));
            self.kept_open = self.kept.iter().any(|k| k.0.is_some());
        }
        self.walks.arrived(r, self.records[r].generation, at);
        let children = std::mem::take(&mut self.records[r].children);
        let stores = if children & children.wrapping_sub(1) == 0 { 0 } else { self.stores_of(children) };
        for mut waiting in [children & !stores, stores] {
            while waiting != 0 {
                let c = waiting.trailing_zeros().to_u8();
                waiting &= waiting - 1;
                let rec = &self.records[c];
                debug_assert!(rec.state == AccessState::Address);
                let ready = rec.ready.max(at) + self.clock.span(rec.delay.into());
                self.look_up_access(mem, cal, c, ready);
            }
        }
    }

    /// Stores among `access_records`. A load of the same line must be looked up before these stores.
    #[cold]
    fn stores_of(&self, mut records: u64) -> u64 {
        let mut stores = 0;
        while records != 0 {
            let r = records.trailing_zeros().to_u8();
            records &= records - 1;
            stores |= u64::from(self.records[r].write) << r;
        }
        stores
    }

    /// Looks up record `r`, whose address is known at `ready`, and sends it to the home agent on a miss.
    fn look_up_access(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, r: u8, ready: Time) {
        let AccessRecord { line, write, load, owns, site, .. } = self.records[r];
        self.records[r].ready = ready;
        if !(write || load) {
            return self.look_up_prefetch(mem, cal, r, ready);
        }
        if self.must_defer(mem, line, write, ready) {
            return self.defer_lookup(cal, r, ready);
        }
        let found = match owns && !mem.owns(self.core, line) {
            true => Probe::Miss,
            false => mem.probe(cal, self.core, line, write, ready),
        };
        let lat = match found {
            Probe::L1 => mem.lat.l1,
            Probe::L2 => {
                self.train_prefetcher(mem, cal, (line, site), (true, write || owns), ready);
                mem.lat.l1 + mem.lat.l2 + mem.lat.from_l2
            }
            Probe::Miss => {
                if let Some(first) = self.same_line(line).filter(|o| *o != r) {
                    // Another access has already requested the line, and the delay of this access is over.
                    (self.records[r].state, self.records[r].delay) = (AccessState::Address, 0);
                    self.records[first].children |= 1 << r;
                    return;
                }
                if self.defer_to_sibling(mem, r, line) {
                    return;
                }
                let goes = self.request_lfb(mem, cal, r, ready);
                self.train_prefetcher(mem, cal, (line, site), (goes, write || owns), ready);
                return self.train_l1_prefetcher(mem, cal, (line, site), !load, ready);
            }
        };
        self.record_latency(lat);
        self.complete(mem, cal, r, ready + lat);
        self.train_l1_prefetcher(mem, cal, (line, site), !load, ready);
    }

    /// Looks up a software prefetch, record `r`, whose address is known at `ready`; a prefetch that finds nothing to
    /// fetch is done.
    fn look_up_prefetch(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, r: u8, ready: Time) {
        let line = self.records[r].line;
        let asks = self.same_line(line).is_none_or(|o| o == r) && !self.must_defer(mem, line, false, ready);
        let asks = asks && !mem.sibling_fetches(self.id, line);
        if asks && mem.probe(cal, self.core, line, false, ready) == Probe::Miss {
            self.request_lfb(mem, cal, r, ready);
        } else {
            self.complete(mem, cal, r, ready);
        }
    }

    #[inline]
    fn record_latency(&mut self, lat: Time) {
        self.amat.accesses += 1;
        self.amat.ps += u128::from(lat.0);
    }

    /// Sends record `r` to the L2, or queues the record for a line fill buffer; returns whether the record was sent.
    #[inline(never)]
    fn request_lfb(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, r: u8, ready: Time) -> bool {
        let line = self.records[r].line;
        if let Some(at) = self.prefetcher.as_mut().and_then(|p| p.waiting.overtaken(line, ready)) {
            if self.may_prefetch() {
                self.fetch(mem, cal, line, false, at);
            }
        }
        let goes = self.may_miss();
        if goes {
            self.issue_here(mem, cal, r, ready);
        } else {
            self.records[r].state = AccessState::Credit;
            self.no_credit.push_back(r);
        }
        goes
    }

    #[inline(never)]
    fn issue(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, r: u8, at: Time) {
        self.issue_here(mem, cal, r, at);
    }

    /// Inlined body of `issue`: takes a line fill buffer and sends record `r` to the L2.
    #[inline(always)]
    fn issue_here(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, r: u8, at: Time) {
        self.lfb.take(at);
        let rec = &mut self.records[r];
        rec.state = AccessState::Issued;
        if let Some(p) = &mut self.prefetcher {
            // A prefetch for reading does not bring the ownership that a store to shared memory needs.
            let own = (rec.write || rec.owns) && mem.is_shared(rec.line);
            match p.join(rec.line, own, r, at) {
                Some(CacheLevel::L2) => return,
                Some(CacheLevel::Llc) => {
                    if let Some(m) = &mut self.mshrs {
                        m.take(at);
                    }
                    return;
                }
                None => {}
            }
        }
        if let Some(m) = &mut self.mshrs {
            m.take(at);
        }
        let op = if rec.write || rec.owns { memory::TxnOp::Own } else { memory::TxnOp::Read };
        let line = self.records[r].line;
        send(mem, cal, at, self.txn(r, op, at));
        self.complete_pair(mem, cal, line, op == memory::TxnOp::Own, at);
    }

    #[inline(always)]
    fn txn(&self, r: u8, op: memory::TxnOp, at: Time) -> Txn {
        Txn { record: r, ..self.request(op, self.records[r].line, at) }
    }
}

/// Sends a transaction to the home agent; the transaction arrives after the look-ups in L1 and L2 and the crossbar.
#[inline(always)]
fn send(mem: &mut Memory, cal: &mut impl CorePosts, at: Time, t: Txn) {
    let arrive = at + mem.latency_to_agent(t.core());
    mem.send_from_core(cal, arrive, t);
}
