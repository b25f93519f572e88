//! One core: dispatch, reorder buffer, store queue and line fill buffers over an op stream.
//!
//! The core runs ahead of the calendar through everything its private caches answer. What leaves
//! the L2 becomes a transaction at its time of issue. A record (`Rec`) stands for each memory
//! access that is not done: waiting for its address, for a line fill buffer, or for data.

mod ahead;
mod books;
pub mod combining;
mod due;
mod execute;
mod records;
mod retire;
mod sibling;
mod slots;
mod swept;

pub use retire::Retired;

use super::hints::Hints;
use super::l1_prefetch::L1Prefetcher;
use super::op::Program;
use super::prefetch::{self, CacheLevel, Prefetcher};
use super::spec::{CoreSpec, Pipeline};
use crate::core::Posts;
use crate::flow::Domain;
use crate::kernel::{Clock, CoreId, Int, LineAddr, ThreadId, Time};
use crate::memory::{self, Memory, Probe, Txn};
use combining::DeviceAccesses;
use due::Due;
use retire::Pending;
use slots::Slots;
use std::collections::VecDeque;
use std::ops::{Index, IndexMut};
use swept::Swept;

const RECS: usize = 64;
/// Dispatch advances in 1/16 ps: 3.2 GHz and 5 wide is 62.5 ps an instruction.
const FRAC: u64 = 16;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Free,
    /// Address comes from the data of the record that has it among its `children`.
    Address,
    /// Wants a line fill buffer.
    Credit,
    Issued,
    /// Data is there at `done`.
    Done,
}

/// One line of the host's cache.
#[repr(align(64))]
#[derive(Clone, Copy, Debug)]
struct Rec {
    line: LineAddr,
    seq: u64,
    state: State,
    generation: u32,
    write: bool,
    /// Blocks retirement.
    load: bool,
    /// Asks for the line to write it, whether or not it does yet.
    owns: bool,
    /// What kind of instruction it is, as prefetchers tell them apart.
    site: u8,
    delay: u16,
    ready: Time,
    done: Time,
    /// Records whose address comes from this one's data.
    children: u64,
}

/// A core's records by their number, which is below `RECS`: masked, it needs no check.
#[derive(Clone)]
struct Recs([Rec; RECS]);

impl Index<u8> for Recs {
    type Output = Rec;
    #[inline]
    fn index(&self, r: u8) -> &Rec {
        &self.0[r.to_usize() % RECS]
    }
}
impl IndexMut<u8> for Recs {
    #[inline]
    fn index_mut(&mut self, r: u8) -> &mut Rec {
        &mut self.0[r.to_usize() % RECS]
    }
}

/// What the core waits for before it can dispatch on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wait {
    Nothing,
    Record(u8),
    AnyRecord,
    Loads,
    All,
    /// Until write-combining buffers are empty.
    Combined,
    /// Until an uncached load is back.
    Device,
    /// Until sweeps of the line have arrived.
    Swept,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    seq: u64,
    rec: u8,
    generation: u32,
    slots: u8,
}

/// Mean time of memory accesses as the core sees them.
#[derive(Clone, Copy, Debug, Default)]
pub struct AccessTime {
    pub accesses: u64,
    pub ps: u128,
}

#[derive(Clone)]
pub struct Cpu {
    /// Its number among the machine's threads, and that of its core.
    id: ThreadId,
    core: CoreId,
    clock: Clock,
    in_order: bool,
    rob_size: u64,
    sq_size: u32,
    per_line: u32,
    retry: Time,
    /// Accesses that a line fill buffer takes.
    targets: u32,
    /// What somebody holds this core's misses back for, beyond `retry`.
    held_back: Time,
    slots: Slots,
    t: u64,
    seq: u64,
    pub program: Program,
    pc: usize,
    sub: u32,
    half: bool,
    recs: Recs,
    live: u64,
    finished: u64,
    /// Live records by the low bits of their line.
    by_line: [u64; RECS],
    rob: VecDeque<Entry>,
    /// Instructions before this one have room in the ROB, as far as its oldest entry tells.
    rob_until: u64,
    sq: VecDeque<Entry>,
    sq_used: u32,
    anchor: Option<(u8, u32)>,
    anchor_ready: Time,
    wait: Wait,
    running: bool,
    no_credit: VecDeque<u8>,
    retire: VecDeque<Pending>,
    retire_event: Option<Time>,
    /// Record, with its generation, that the oldest side effect waits for.
    retire_after: Option<(u8, u32)>,
    /// Stores that become visible after all before them.
    releases: VecDeque<retire::Release>,
    devices: DeviceAccesses,
    swept: Swept,
    due: Due,
    pub lfb: Domain,
    /// L2 misses under way, where they are bounded together.
    pub mshrs: Option<Box<Domain>>,
    pub prefetcher: Option<Prefetcher>,
    /// Those of the L1.
    pub l1_prefetcher: Option<Box<L1Prefetcher>>,
    /// Hints of devices that write lines for this core.
    pub hints: Option<Box<Hints>>,
    pub amat: AccessTime,
    /// Instructions dispatched in the measured window.
    pub instructions: u64,
}

impl Cpu {
    /// Thread `id` of the machine, alone on the core of that number.
    pub fn new(id: ThreadId, s: &CoreSpec) -> Cpu {
        let clock = Clock::from_hz(s.clock.0);
        let rec = Rec {
            line: LineAddr(0),
            seq: 0,
            state: State::Free,
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
            sq_size: s.store_queue,
            per_line: s.stores_per_line,
            retry: s.lfb_retry.into(),
            targets: s.lfb_targets.unwrap_or(u32::MAX),
            held_back: Time::ZERO,
            slots: Slots::new(clock, s),
            t: 0,
            seq: 0,
            program: Program::default(),
            pc: 0,
            sub: 0,
            half: false,
            recs: Recs([rec; RECS]),
            live: 0,
            finished: 0,
            by_line: [0; RECS],
            rob: VecDeque::with_capacity(512),
            rob_until: 0,
            sq: VecDeque::with_capacity(128),
            sq_used: 0,
            anchor: None,
            anchor_ready: Time::ZERO,
            wait: Wait::Nothing,
            running: false,
            no_credit: VecDeque::with_capacity(RECS),
            retire: VecDeque::with_capacity(64),
            retire_event: None,
            retire_after: None,
            releases: VecDeque::new(),
            devices: DeviceAccesses::new(s.combining_buffers.unwrap_or(1)),
            swept: Swept::default(),
            due: Due::default(),
            lfb: Domain::new(s.lfb),
            mshrs: s.l2_mshrs.map(|n| Box::new(Domain::new(n))),
            prefetcher: s.prefetch.as_ref().and_then(Prefetcher::new),
            l1_prefetcher: s.l1_prefetch.as_ref().and_then(L1Prefetcher::new).map(Box::new),
            hints: None,
            amat: AccessTime::default(),
            instructions: 0,
        }
    }

    /// Follows hints from now on. A core without a prefetcher leaves `reserve` of the L2's misses to accesses.
    pub fn follow(&mut self, hints: Hints, reserve: u32) {
        let ahead = self.prefetcher.get_or_insert_with(|| Prefetcher::without_streams(reserve));
        let all = self.lfb.credits() + ahead.queue.credits();
        let mshrs = self.mshrs.get_or_insert_with(|| Box::new(Domain::new(all)));
        ahead.widen(mshrs.credits());
        self.hints = Some(Box::new(hints));
    }

    /// The core's own time: when the next instruction dispatches.
    #[inline]
    pub fn now(&self) -> Time {
        Time(self.t / FRAC)
    }
    #[inline]
    fn not_before(&mut self, at: Time) {
        self.t = self.t.max(at.0 * FRAC);
    }
    #[inline]
    fn dispatch(&mut self, n: u32) {
        self.seq += u64::from(n);
        self.instructions += u64::from(n);
        self.t += u64::from(n) * self.slots.access;
    }

    /// Starts the ops in `program` at `now`; returns the time the last one dispatched, or None when
    /// the core is stalled and `on_fill` will say.
    pub fn start(&mut self, mem: &mut Memory, cal: &mut impl Posts, now: Time) -> Option<Time> {
        debug_assert!(!self.running);
        self.due.at(mem, now);
        self.not_before(now);
        self.pc = 0;
        self.sub = 0;
        self.half = false;
        self.running = true;
        self.release_finished(now);
        self.run(mem, cal)
    }

    /// `memory::Event::Fill` of one of this core's transactions. Returns the program's end as `start` does.
    pub fn on_fill(&mut self, mem: &mut Memory, cal: &mut impl Posts, t: &Txn, now: Time) -> Option<Time> {
        self.due.at(mem, now);
        if t.op == memory::Op::WriteBack {
            if t.record == prefetch::WRITE_BACK {
                self.prefetch_ended(now, t.issued);
                self.send_waiting(mem, cal, now);
                self.follow_hints(mem, cal, now);
            } else if !t.transient {
                self.lfb.give(now, t.issued);
                self.hand_out(mem, cal, now);
            }
            return if self.running && self.may_go_on() { self.go_on(mem, cal, now) } else { None };
        }
        if t.op == memory::Op::Stream && t.record >= combining::RECORDS {
            return self.on_taken(mem, cal, t.record - combining::RECORDS, now);
        }
        let (mut t, mut record) = (t, t.record);
        let joined;
        let ahead = record >= prefetch::FIRST;
        let landed = if ahead { self.prefetcher.as_mut().map(|p| p.land(record)) } else { None };
        let (into, waiter) = landed.unwrap_or_default();
        // A place among the L2's misses: its own, or that of the access that waits.
        if let Some(m) = self.mshrs.as_mut().filter(|_| t.op != memory::Op::Stream) {
            match (into, waiter) {
                (CacheLevel::L2, _) => m.give(now, t.issued),
                (CacheLevel::Llc, Some((_, since))) => m.give(now, since),
                (CacheLevel::Llc, None) => {}
            }
        }
        if ahead {
            let Some((r, since)) = waiter else {
                let held = match into {
                    CacheLevel::L2 => !t.transient && mem.fill_ahead(cal, self.core, t, prefetch::WRITE_BACK, now),
                    CacheLevel::Llc => {
                        mem.fill_llc_ahead(cal, self.core, t, now);
                        false
                    }
                };
                if !held {
                    self.prefetch_ended(now, t.issued);
                }
                self.mshrs.as_ref()?;
                // A miss may have waited for this one's place.
                self.hand_out(mem, cal, now);
                return if self.running && self.may_go_on() { self.go_on(mem, cal, now) } else { None };
            };
            self.prefetch_ended(now, t.issued);
            joined = Txn { issued: since, ..*t };
            (record, t) = (r, &joined);
        }
        let rec = self.recs[record];
        let fills = t.op != memory::Op::Stream && !t.transient;
        // A store that joined a read of a line that others have must still ask for it.
        let owns = t.op != memory::Op::Read || !rec.write || !mem.is_shared(rec.line);
        let held = fills && mem.fill(cal, self.core, t, rec.write && owns, now);
        if !held {
            self.lfb.give(now, t.issued);
        }
        if !owns {
            self.hand_out(mem, cal, now);
            self.reach(mem, cal, record, now);
            if self.releases_wait() {
                self.schedule_retirement(cal, now); // the line may have come with the permission to write
            }
            return if self.running && self.may_go_on() { self.go_on(mem, cal, now) } else { None };
        }
        if t.op != memory::Op::Stream {
            self.amat.accesses += 1;
            self.amat.ps += u128::from((now - rec.ready.min(now)).0);
        }
        self.hand_out(mem, cal, now);
        self.complete(mem, cal, record, now);
        if self.releases_wait() {
            self.release(mem, cal, now);
        }
        self.release_finished(now);
        if self.effects_wait() {
            self.schedule_retirement(cal, now);
        }
        if self.running && self.may_go_on() {
            return self.go_on(mem, cal, now);
        }
        None
    }

    fn go_on(&mut self, mem: &mut Memory, cal: &mut impl Posts, now: Time) -> Option<Time> {
        self.not_before(now);
        self.run(mem, cal)
    }

    /// Misses that wait for a line fill buffer get it `by` later than they would (memory bandwidth allocation).
    pub fn hold_back(&mut self, by: Time) {
        self.held_back = by;
    }

    /// Gives free line fill buffers to the misses that wait for one.
    #[inline]
    fn hand_out(&mut self, mem: &mut Memory, cal: &mut impl Posts, now: Time) {
        if !self.no_credit.is_empty() {
            self.hand_out_buffers(mem, cal, now);
        }
        self.send_waiting(mem, cal, now);
        if self.hints.is_some() {
            self.follow_hints(mem, cal, now);
        }
    }

    #[inline(never)]
    fn hand_out_buffers(&mut self, mem: &mut Memory, cal: &mut impl Posts, now: Time) {
        let finished = self.finished;
        while self.may_miss() {
            let Some(next) = self.no_credit.pop_front() else { break };
            let ready = self.recs[next].ready.max(now + self.retry + self.held_back);
            if self.prefetcher.is_some() || mem.siblings.is_some() {
                self.reach(mem, cal, next, ready); // its line may have come meanwhile
            } else {
                self.issue(mem, cal, next, ready);
            }
        }
        if self.finished != finished && !self.retire.is_empty() {
            // A miss has found its line, which side effects may have waited for.
            self.schedule_retirement(cal, now);
        }
    }

    /// Whether one miss more may be under way.
    #[inline]
    fn may_miss(&self) -> bool {
        self.lfb.free() > 0 && self.mshrs.as_ref().is_none_or(|m| m.free() > 0)
    }

    fn may_go_on(&mut self) -> bool {
        let open = self.live & !self.finished;
        match self.wait {
            Wait::Nothing => true,
            Wait::Record(r) => self.recs[r].state == State::Done || open >> r & 1 == 0,
            Wait::AnyRecord => self.live != u64::MAX,
            Wait::Loads => !self.any_open(|r| r.load),
            Wait::All => open == 0,
            Wait::Combined => self.devices.combined(),
            Wait::Device => !self.devices.loading,
            Wait::Swept => false,
        }
    }

    /// A record's data is there at `at`: those that waited for it as their address go on.
    fn complete(&mut self, mem: &mut Memory, cal: &mut impl Posts, r: u8, at: Time) {
        self.recs[r].state = State::Done;
        self.recs[r].done = at;
        self.finished |= 1 << r;
        if self.anchor == Some((r, self.recs[r].generation)) {
            self.anchor = None;
            self.anchor_ready = at;
        }
        let children = std::mem::take(&mut self.recs[r].children);
        let stores = if children & children.wrapping_sub(1) == 0 { 0 } else { self.stores_of(children) };
        for mut waiting in [children & !stores, stores] {
            while waiting != 0 {
                let c = waiting.trailing_zeros().to_u8();
                waiting &= waiting - 1;
                let rec = &self.recs[c];
                debug_assert!(rec.state == State::Address);
                let ready = rec.ready.max(at) + self.clock.span(rec.delay.into());
                self.reach(mem, cal, c, ready);
            }
        }
    }

    /// Those of `records` that write: a load of the same line asks first.
    #[cold]
    fn stores_of(&self, mut records: u64) -> u64 {
        let mut stores = 0;
        while records != 0 {
            let r = records.trailing_zeros().to_u8();
            records &= records - 1;
            stores |= u64::from(self.recs[r].write) << r;
        }
        stores
    }

    /// The address of record `r` is known at `ready`: look it up, and go to the home agent if need be.
    fn reach(&mut self, mem: &mut Memory, cal: &mut impl Posts, r: u8, ready: Time) {
        let Rec { line, write, load, owns, site, .. } = self.recs[r];
        self.recs[r].ready = ready;
        if !(write || load) {
            return self.reach_hint(mem, cal, r, ready);
        }
        if self.is_ahead(mem, line, write, ready) {
            return self.look_up_later(cal, r, ready);
        }
        let found = match owns && !mem.owns(self.core, line) {
            true => Probe::Miss,
            false => mem.probe(cal, self.core, line, write, ready),
        };
        let lat = match found {
            Probe::L1 => mem.lat.l1,
            Probe::L2 => {
                self.look_ahead(mem, cal, (line, site), (true, write || owns), ready);
                mem.lat.l1 + mem.lat.l2 + mem.lat.from_l2
            }
            Probe::Miss => {
                if let Some(first) = self.same_line(line).filter(|o| *o != r) {
                    // Its line is on its way, and its own delay is over.
                    (self.recs[r].state, self.recs[r].delay) = (State::Address, 0);
                    self.recs[first].children |= 1 << r;
                    return;
                }
                if self.leaves_to_sibling(mem, r, line) {
                    return;
                }
                let goes = self.want_credit(mem, cal, r, ready);
                self.look_ahead(mem, cal, (line, site), (goes, write || owns), ready);
                return self.teach(mem, cal, (line, site), !load, ready);
            }
        };
        self.note(lat);
        self.complete(mem, cal, r, ready + lat);
        self.teach(mem, cal, (line, site), !load, ready);
    }

    /// The same for a prefetch that the program asked for.
    fn reach_hint(&mut self, mem: &mut Memory, cal: &mut impl Posts, r: u8, ready: Time) {
        let line = self.recs[r].line;
        let asks = self.same_line(line).is_none_or(|o| o == r) && !self.is_ahead(mem, line, false, ready);
        let asks = asks && !mem.sibling_fetches(self.id, line);
        if asks && mem.probe(cal, self.core, line, false, ready) == Probe::Miss {
            self.want_credit(mem, cal, r, ready);
        } else {
            self.complete(mem, cal, r, ready);
        }
    }

    #[inline]
    fn note(&mut self, lat: Time) {
        self.amat.accesses += 1;
        self.amat.ps += u128::from(lat.0);
    }

    /// Record `r` goes to the L2 now, or waits for a line fill buffer; which of the two.
    #[inline(never)]
    fn want_credit(&mut self, mem: &mut Memory, cal: &mut impl Posts, r: u8, ready: Time) -> bool {
        let line = self.recs[r].line;
        if let Some(at) = self.prefetcher.as_mut().and_then(|p| p.waiting.overtaken(line, ready)) {
            if self.may_prefetch() {
                self.fetch(mem, cal, line, false, at);
            }
        }
        let goes = self.may_miss();
        if goes {
            self.issue_here(mem, cal, r, ready);
        } else {
            self.recs[r].state = State::Credit;
            self.no_credit.push_back(r);
        }
        goes
    }

    #[inline(never)]
    fn issue(&mut self, mem: &mut Memory, cal: &mut impl Posts, r: u8, at: Time) {
        self.issue_here(mem, cal, r, at);
    }

    /// The same as part of its caller.
    #[inline(always)]
    fn issue_here(&mut self, mem: &mut Memory, cal: &mut impl Posts, r: u8, at: Time) {
        self.lfb.take(at);
        let rec = &mut self.recs[r];
        rec.state = State::Issued;
        if let Some(p) = &mut self.prefetcher {
            // A prefetch that reads does not bring the ownership that a store to shared memory needs.
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
        let op = if rec.write || rec.owns { memory::Op::Own } else { memory::Op::Read };
        let line = self.recs[r].line;
        send(mem, cal, at, self.txn(r, op, at));
        self.complete_pair(mem, cal, line, op == memory::Op::Own, at);
    }

    #[inline(always)]
    fn txn(&self, r: u8, op: memory::Op, at: Time) -> Txn {
        Txn { record: r, ..self.request(op, self.recs[r].line, at) }
    }
}

/// L1 and L2 look-ups and the crossbar lie between issue and the home agent.
#[inline(always)]
fn send(mem: &mut Memory, cal: &mut impl Posts, at: Time, t: Txn) {
    let arrive = at + mem.way_out(t.core());
    mem.send_from_core(cal, arrive, t);
}
