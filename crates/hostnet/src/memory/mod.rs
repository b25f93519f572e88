//! The coherent memory system: private caches, the home agent with its LLC, and DRAM.
//!
//! `Memory` holds the state; `private` is what happens inside a core's caches, `home` what happens
//! at the home agent, `dram` the controllers behind it.

pub mod array;
pub mod dram;
pub mod home;
pub mod paths;
mod private;
pub mod region;
mod replacement;
mod rx;
pub mod spec;
pub mod stats;
mod ways;

pub use home::{Inbound, Sweep};
pub use private::Probe;

use crate::flow::Domain;
use crate::kernel::{Clock, Event, Events, Time};
use array::{Array, Indexing};
use dram::{mapping::Decoded, Controller, DramSpec, Request};
use paths::{Marks, Path, Paths};
use region::{AddressMap, Kind, Sharing};
use spec::{CacheSpec, CleanVictim, HierarchySpec, LlcRole, ReadHit};
use stats::{Class, MemStats};
use std::collections::VecDeque;

/// Bytes of a cache line, everywhere.
pub const LINE: u64 = 64;

/// Token of a DRAM write: nobody waits for one.
const WRITE: u32 = u32::MAX;

/// What a transaction does at the home agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// Core read.
    Read,
    /// Core read for ownership.
    Own,
    /// Core store of a whole line that bypasses the caches.
    StreamWrite,
    /// NIC read of a transmit buffer.
    NicRead,
    /// A core's write-back: `dirty` when it makes the LLC write `line` to memory.
    WriteBack,
    /// Peripheral read of a line through the IIO.
    IoRead,
    /// Peripheral write of a whole line through the IIO.
    IoWrite,
    /// Read of the system behind everything that is simulated: see `host::background`.
    Background,
}

/// A request on its way through the uncore.
#[derive(Clone, Copy, Debug)]
pub struct Txn {
    pub line: u64,
    pub op: Op,
    /// Core, transmit job of the NIC, or the IIO's business.
    pub who: u32,
    /// The core's record of the access.
    pub record: u8,
    /// The line comes with the duty to write it back.
    pub dirty: bool,
    /// The LLC keeps the line that this is a copy of.
    pub copied: bool,
    /// Does not enter the private caches.
    pub transient: bool,
    pub issued: Time,
    /// Arrival at the memory controller's door.
    pub at_mc: Time,
}

impl Txn {
    /// A request for `line` that `who` makes at `at`. What only some requests have is set beside:
    /// `Txn { transient: true, ..Txn::new(..) }`.
    #[inline]
    pub fn new(op: Op, line: u64, who: u32, at: Time) -> Txn {
        Txn { line, op, who, record: 0, dirty: false, copied: false, transient: false, issued: at, at_mc: at }
    }

    /// A second write-back of one fill has no line fill buffer to hold.
    fn holds_credit(&self) -> bool {
        self.op != Op::WriteBack || !self.transient
    }
}

#[derive(Clone)]
struct Channel {
    next: Time,
    reads: VecDeque<u32>,
    /// By side, see `Memory::side`.
    writes: [VecDeque<Write>; 2],
    /// The side that gave the last write.
    last: usize,
}

impl Channel {
    fn waits_to_write(&self) -> bool {
        self.writes.iter().any(|w| !w.is_empty())
    }

    /// The write whose turn it is, and its side.
    fn next_write(&mut self) -> Option<(Write, usize)> {
        let turn = 1 - self.last;
        let side = if self.writes[turn].is_empty() { self.last } else { turn };
        let w = self.writes[side].pop_front()?;
        self.last = side;
        Some((w, side))
    }
}

/// A write at the controller's door.
#[derive(Clone, Copy)]
struct Write {
    line: u64,
    since: Time,
    path: Path,
    /// Transaction of a device that waits for the queue to take it, or `NOBODY`.
    id: u32,
}

const NOBODY: u32 = u32::MAX;

/// Bytes of tags beyond which the LLC's sets are announced before fills: what a core of the host that we measure on
/// has as L2. Affects no result.
const HOST_CACHE: usize = 2 << 20;

/// Home-side latencies, converted once.
#[derive(Clone, Copy)]
pub struct Latencies {
    pub l1: Time,
    pub l2: Time,
    pub noc: Time,
    pub llc: Time,
    /// A write's way from the home agent to the controller, and its acknowledgement.
    pub write_ack: Time,
    /// Taking a line from its owners before a device's write goes to memory.
    pub ownership: Time,
    /// From the home agent back to the IIO.
    pub to_iio: Time,
}

/// What a fill sends down: see `private`.
#[derive(Clone, Copy)]
struct Leaving {
    core: u32,
    issued: Time,
    victim: Option<u64>,
    carried: bool,
    /// Of the write-back that holds the fill's credit.
    record: u8,
}

#[derive(Clone)]
pub struct Memory {
    pub map: AddressMap,
    pub stats: MemStats,
    pub lat: Latencies,
    l1: Vec<Array>,
    l2: Vec<Array>,
    llc: Array,
    l2_inclusive: bool,
    role: LlcRole,
    read_hit: ReadHit,
    clean_victim: CleanVictim,
    /// LLC ways that each tenant's fills may take.
    tenant_ways: Vec<u32>,
    /// Network data lives in a cache of its own without limit (ideal-DDIO).
    pub ideal_network: bool,
    /// Accesses take no time and DRAM is only counted: caches are being warmed.
    pub functional: bool,
    pub dram: Controller,
    channels: Vec<Channel>,
    done: Vec<dram::Completion>,
    txns: Vec<Txn>,
    marks: Vec<Marks>,
    free_txns: Vec<u32>,
    live_txns: u32,
    /// Cores (0) and devices (1) queue apart; else all share the first of two queues.
    sides: bool,
    /// Requests that the home agent has not admitted yet, by side.
    admission: [VecDeque<u32>; 2],
    /// Writes that wait at the home agent, by side.
    waiting: [u32; 2],
    /// The NIC waits for admission.
    nic_waits: bool,
    /// Credits of `cha_writes` that cores leave to the NIC.
    nic_credits: u32,
    /// Writes waiting at the home agent: the second stage of backpressure.
    pub cha_writes: Domain,
    /// Where the time of requests goes.
    pub paths: Paths,
    /// Where device writes go.
    pub io_inbound: Inbound,
    /// Write-backs travel to the home agent as requests of their own.
    writebacks: bool,
    /// The tags are more than a core of the host keeps close.
    spread: bool,
    leaving: Option<Leaving>,
    /// The device's transaction that the next eviction makes room for.
    evicts_for: Option<u32>,
    lives: rx::Lives,
    /// The holders of lines in shared regions.
    shared: private::SharedFilter,
    pub shadow: Option<Box<home::Shadow>>,
}

fn build(c: &CacheSpec, what: &str) -> Result<Array, String> {
    let sets = c.size.0 / LINE / u64::from(c.ways.max(1));
    Array::new(sets as u32, c.ways, c.replacement, Indexing::Modulo, 1).map_err(|e| format!("{what}: {e}"))
}

impl Memory {
    /// A cold memory system for `cores` cores. `tenant_ways[t]` is tenant t's LLC way mask.
    ///
    /// # Errors
    /// One clause that names the cache whose shape does not work.
    pub fn new(
        h: &HierarchySpec,
        d: &DramSpec,
        clock: Clock,
        cores: u32,
        tenant_ways: Vec<u32>,
        map: AddressMap,
    ) -> Result<Memory, String> {
        let l1 = build(&h.l1d, "caches.l1d")?;
        let l2 = build(&h.l2, "caches.l2")?;
        let sets = h.llc.size.0 / LINE / u64::from(h.llc.ways.max(1));
        let llc = Array::new(sets as u32, h.llc.ways, h.llc.replacement, h.llc.indexing, h.llc.slices)
            .map_err(|e| format!("caches.llc: {e}"))?;
        let dram = Controller::new(d)?;
        let channel = Channel { next: Time::MAX, reads: VecDeque::new(), writes: Default::default(), last: 0 };
        let rx: Vec<_> = map.iter().filter(|r| r.kind == Kind::Rx).collect();
        let rx_base = rx.iter().map(|r| r.base).min().unwrap_or(0);
        let rx_end = rx.iter().map(|r| r.base + r.lines).max().unwrap_or(0);
        Ok(Memory {
            stats: MemStats::new(tenant_ways.len()),
            lat: Latencies {
                l1: clock.span(h.l1d.latency_cycles.into()),
                l2: clock.span(h.l2.latency_cycles.into()),
                noc: clock.span(h.noc_cycles.into()),
                llc: clock.span(h.llc.latency_cycles.into()),
                write_ack: h.llc.write_ack.into(),
                ownership: Time::ZERO,
                to_iio: Time::ZERO,
            },
            paths: Paths::default(),
            io_inbound: Inbound::Dram,
            writebacks: h.llc.writebacks == spec::WriteBacks::Admitted,
            spread: cores as usize * l2.bytes() + llc.bytes() > HOST_CACHE,
            leaving: None,
            evicts_for: None,
            shared: private::SharedFilter::default(),
            l1: vec![l1; cores as usize],
            l2: vec![l2; cores as usize],
            llc,
            l2_inclusive: h.l2_inclusive,
            role: h.llc.role,
            read_hit: h.llc.read_hit,
            clean_victim: h.llc.clean_victim,
            tenant_ways,
            ideal_network: false,
            functional: false,
            channels: vec![channel; dram.channels()],
            dram,
            done: Vec::with_capacity(64),
            txns: Vec::with_capacity(1024),
            marks: Vec::with_capacity(1024),
            free_txns: Vec::with_capacity(1024),
            live_txns: 0,
            admission: Default::default(),
            sides: h.llc.write_order == spec::WriteOrder::Turns,
            waiting: [0; 2],
            nic_waits: false,
            nic_credits: h.llc.nic_credits,
            cha_writes: Domain::new(h.llc.write_buffer),
            lives: rx::Lives::new(rx_base, rx_end),
            map,
            shadow: None,
        })
    }

    /// Lines that the LLC and the private caches hold.
    pub fn lines_held(&self) -> u64 {
        let arrays = self.l2.iter().chain([&self.llc]);
        arrays.map(|a| a.held() as u64).sum()
    }
    pub fn llc_ways(&self) -> u32 {
        self.llc.ways()
    }

    fn txn(&mut self, t: Txn) -> u32 {
        self.live_txns += 1;
        if let Some(id) = self.free_txns.pop() {
            self.txns[id as usize] = t;
            return id;
        }
        self.txns.push(t);
        self.marks.push(Marks::default());
        (self.txns.len() - 1) as u32
    }

    #[inline]
    pub fn op(&self, id: u32) -> Op {
        self.txns[id as usize].op
    }

    #[inline]
    pub fn who(&self, id: u32) -> u32 {
        self.txns[id as usize].who
    }

    /// Takes a finished transaction out.
    #[inline]
    pub fn finish(&mut self, id: u32) -> Txn {
        self.live_txns -= 1;
        self.free_txns.push(id);
        let t = self.txns[id as usize];
        self.txns[id as usize].dirty = false;
        t
    }

    /// Sends a request to the home agent; it arrives at `at`. `Event::Fill` answers it.
    pub fn send(&mut self, cal: &mut Events, at: Time, t: Txn) {
        self.llc.announce(t.line);
        if self.spread && matches!(t.op, Op::Read | Op::Own) {
            // What the fill will push out of the L2, whose set the core has just looked at.
            if let Some(v) = self.l2[t.who as usize].oldest_dirty(t.line) {
                self.llc.announce(v);
            }
        }
        self.paths.under_way[Path::of(t.op) as usize].force(t.issued);
        let id = self.txn(t);
        self.marks[id as usize] = Marks::at(t.issued, at);
        cal.push(at, Event::Cha(id));
    }

    /// A request that `send` took ends: its milestones go into the books.
    #[inline]
    pub fn ended(&mut self, id: u32, now: Time) {
        let t = &self.txns[id as usize];
        if t.holds_credit() {
            self.paths.end(Path::of(t.op), &self.marks[id as usize], now);
        }
    }

    /// `lines` lines from `line` on, all of one region, will soon be looked up in the LLC and in the caches of their
    /// owner.
    #[inline]
    pub fn announce(&self, line: u64, lines: u64) {
        for l in line..line + lines {
            self.llc.announce(l);
        }
        if let Sharing::Core(c) = self.sharing(line) {
            for l in line..line + lines {
                self.l2[c as usize].announce(l);
            }
        }
    }

    /// The buffer instance has had its last read: evictions from now on are of dead data.
    pub fn consumed(&mut self, line: u64, lines: u64) {
        if self.map.of(line).kind != Kind::Rx {
            return;
        }
        for l in line..line + lines {
            if self.lives.of(l) == rx::UNCONSUMED {
                self.lives.set(l, rx::CONSUMED);
            }
        }
    }

    /// Whether a network line lives outside the modelled caches.
    #[inline]
    fn apart(&self, kind: Kind) -> bool {
        self.ideal_network && kind == Kind::Rx
    }

    /// Puts a read at the memory controller's door.
    fn read_dram(&mut self, cal: &mut Events, id: u32, class: Class, now: Time) {
        let line = self.txns[id as usize].line;
        let t = &mut self.txns[id as usize];
        t.at_mc = now;
        self.paths.held[Path::of(t.op) as usize].force(now);
        self.stats.count(class);
        let (ch, at) = self.dram.route(line);
        let c = &self.channels[ch];
        if c.reads.is_empty() && self.accepts(ch, false, now) {
            self.enqueue(ch, line, id, at, now);
        } else {
            self.channels[ch].reads.push_back(id);
        }
        self.arm(cal, ch, now);
    }

    /// Puts a write at the memory controller's door; nobody waits for it.
    fn write_dram(&mut self, cal: &mut Events, line: u64, class: Class, now: Time) {
        self.write_dram_for(cal, line, class, NOBODY, now);
    }

    /// The same for a device's transaction `id`, which ends when the queue has taken the write.
    fn write_dram_for(&mut self, cal: &mut Events, line: u64, class: Class, id: u32, now: Time) {
        self.stats.count(class);
        self.stats.ledger.written += 1;
        if let Some(s) = &mut self.shadow {
            s.write_back(line);
        }
        if self.functional {
            return;
        }
        let (ch, at) = self.dram.route(line);
        let path = if class.is_device_write() || id != NOBODY { Path::P2mWrite } else { Path::C2mWrite };
        if !self.channels[ch].waits_to_write() && self.accepts(ch, true, now) {
            self.enqueue(ch, line, WRITE, at, now);
            self.accepted(cal, path, now, id, now);
        } else {
            let side = self.side(path);
            self.channels[ch].writes[side].push_back(Write { line, since: now, path, id });
            self.waiting[side] += 1;
            self.cha_writes.force(now);
        }
        self.arm(cal, ch, now);
    }

    /// A channel's queue has taken a write: the home agent hears of it, and so does the device.
    #[inline]
    fn accepted(&mut self, cal: &mut Events, path: Path, since: Time, id: u32, now: Time) {
        let device = if id == NOBODY { Time::ZERO } else { self.lat.ownership };
        let freed = now + device + self.lat.write_ack;
        let held = &mut self.paths.held[path as usize];
        held.force(since);
        held.give(freed, since);
        if id != NOBODY {
            let m = &mut self.marks[id as usize];
            (m.queued, m.data) = (now, now);
            cal.push(freed + self.lat.to_iio, Event::Fill(id));
        }
    }

    #[inline]
    fn enqueue(&mut self, ch: usize, line: u64, token: u32, at: Decoded, now: Time) {
        let req = Request { token, line, write: token == WRITE, class: 0 };
        if token != WRITE {
            self.marks[token as usize].queued = now;
        }
        self.dram.push(now, ch, req, at, &mut self.done);
    }

    /// Whether channel `ch` has room now.
    #[inline]
    fn accepts(&mut self, ch: usize, write: bool, now: Time) -> bool {
        self.dram.can_accept(ch, write) || {
            self.dram.advance(now, ch, &mut self.done);
            self.dram.can_accept(ch, write)
        }
    }

    /// Delivers what is done, and asks for an event when channel `ch` next has something to do.
    #[inline]
    fn arm(&mut self, cal: &mut Events, ch: usize, now: Time) {
        let c = &self.channels[ch];
        let waiting = !c.reads.is_empty() || c.waits_to_write();
        if let Some(next) = self.dram.wake(ch, waiting) {
            let next = next.max(now);
            if next < self.channels[ch].next {
                self.channels[ch].next = next;
                cal.push(next, Event::Dram(ch as u8));
            }
        }
        for i in 0..self.done.len() {
            let d = self.done[i];
            let t = &self.txns[d.token as usize];
            let at = d.at.max(now);
            self.stats.dram_latency(at - t.at_mc);
            let known = at + self.lat.llc;
            let path = Path::of(t.op);
            let back = if t.op == Op::IoRead { self.lat.to_iio } else { self.lat.noc };
            // Data goes straight to a core; the home agent's entry is there until the core has it.
            let freed = if path == Path::C2mRead { known + back } else { known };
            self.paths.held[path as usize].give(freed, t.at_mc);
            self.marks[d.token as usize].data = at;
            cal.push(known + back, Event::Fill(d.token));
        }
        self.done.clear();
    }

    /// `Event::Dram`.
    pub fn on_dram(&mut self, cal: &mut Events, ch: usize, now: Time) {
        if self.channels[ch].next != now {
            return; // an earlier event took this one's place
        }
        self.channels[ch].next = Time::MAX;
        if self.dram.advance(now, ch, &mut self.done) {
            while self.dram.can_accept(ch, true) {
                let Some((w, side)) = self.channels[ch].next_write() else { break };
                self.waiting[side] -= 1;
                self.cha_writes.give(now, w.since);
                let (_, at) = self.dram.route(w.line);
                self.enqueue(ch, w.line, WRITE, at, now);
                self.accepted(cal, w.path, w.since, w.id, now);
            }
            while !self.channels[ch].reads.is_empty() && self.dram.can_accept(ch, false) {
                let id = self.channels[ch].reads.pop_front().expect("not empty");
                let line = self.txns[id as usize].line;
                let (_, at) = self.dram.route(line);
                self.enqueue(ch, line, id, at, now);
            }
        }
        self.arm(cal, ch, now);
        self.resume(cal, now);
    }

    /// Starts the measured window.
    pub fn restart_meters(&mut self, now: Time) {
        self.stats.restart();
        self.cha_writes.restart(now);
        self.paths.restart(now);
    }

    /// LLC lines that hold receive buffers: (all of them, those outside `ways`).
    pub fn llc_rx_lines(&self, ways: u32) -> (u64, u64) {
        let mut n = (0, 0);
        let lines = self.lives.range();
        if lines.is_empty() {
            return n;
        }
        for (line, way, _) in self.llc.iter_within(lines) {
            if self.map.of(line).kind == Kind::Rx {
                n.0 += 1;
                n.1 += u64::from(ways >> way & 1 == 0);
            }
        }
        n
    }

    /// Checks that every dirty line is accounted for and that no request is lost.
    ///
    /// # Errors
    /// One sentence with the counts that do not add up.
    pub fn check(&self) -> Result<(), String> {
        let waiting: usize = self.channels.iter().flat_map(|c| &c.writes).map(VecDeque::len).sum();
        if [self.cha_writes.used(), self.waiting.iter().sum()] != [waiting as u32; 2] {
            return Err(format!("{} home-agent credits are out for {waiting} waiting writes", self.cha_writes.used()));
        }
        let arrays = self.l1.iter().chain(&self.l2).chain([&self.llc]);
        let resident = arrays.map(|a| a.iter().filter(|l| l.2).count() as u64).sum::<u64>();
        // Ownership that is on its way to a core.
        let moving = self.txns.iter().filter(|t| t.dirty).count() as u64;
        self.stats.ledger.check(resident + moving)
    }

    /// Requests of cores and devices that are under way.
    pub fn in_flight(&self) -> u32 {
        self.live_txns
    }

    fn sharing(&self, line: u64) -> Sharing {
        self.map.of(line).sharing
    }
}
