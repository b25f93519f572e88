//! Integrated I/O controllers: each a read and a write buffer of one entry per cache line between PCIe ports
//! and the home agent. An entry is a credit of the P2M-Read or P2M-Write domain.
//!
//! A port is full duplex: its device offers writes and read requests at once. They share the link up and take turns on it;
//! completions have the link down.
//!
//! ```text
//!   device --write TLPs, read requests--> up --> write / read entries --> home agent
//!   device <---------completions--------- down <----- data, in order of addresses
//! ```
//!
//! Times are the IIO's own. A device sees credits and completions a flight time later, and its packets
//! take another to come back: what it does next is therefore due two flight times after its cause.

use super::endpoint::{Direction, Endpoint, Offer, Piece};
use super::nic::{Nic, Packet};
use super::pcie::{Framing, PcieSpec, NON_POSTED, POSTED};
use crate::flow::domain::{Domain, Reading};
use crate::flow::{Credits, Link, Wait};
use crate::kernel::units::Span;
use crate::kernel::{Event, Events, NicAt, RingTask, Side, Time};
use crate::memory::stats::Class;
use crate::memory::{Agent, Memory, Op, Tag, Txn, LINE};
use crate::meter::drops::DropCause;
use crate::placement::{DeviceKind, Placement, Transfer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Buffers of the IIO and its distance to the home agent.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IioSpec {
    /// Controllers, each with buffers of its own; devices are dealt out to them in turn.
    #[serde(default = "one")]
    pub count: u32,
    /// Write buffer entries of each: credits of the P2M-Write domain.
    pub write_buffer: u32,
    /// Read buffer entries of each: credits of the P2M-Read domain.
    pub read_buffer: u32,
    /// From an entry's allocation to the arrival at the home agent.
    pub to_cha: Span,
    /// Time between two lines on their way to the home agent: a clock of the IIO's coherent side.
    #[serde(default)]
    pub line_interval: Span,
    /// The part of `line_interval` that a write takes however few of its line's bytes it has; the rest is in proportion to
    /// them. Every line takes all of it when absent.
    #[serde(default)]
    pub line_header: Option<Span>,
    /// From the home agent's answer to the entry's release.
    pub from_cha: Span,
    /// Time at the home agent that a write takes beside the way to the memory controller: ownership of
    /// the line, without which it may not go on.
    pub ownership: Span,
    /// A write of a part of a line reads the line first, as a cache in front of the home agent does that writes back whole
    /// lines. When false, it goes on as a whole line does.
    #[serde(default)]
    pub fetch_partial: bool,
    /// Way of a register write beside the link: bridges in front of it, and the register.
    #[serde(default)]
    pub register_write: Span,
}

fn one() -> u32 {
    1
}

/// Bytes that a doorbell writes to a register.
const DOORBELL: u32 = 8;
/// Bytes of a ring's tail register.
const TAIL: u32 = 4;

/// Marks reads that fetch a line for a write of a part of it; the rest names the write.
const FETCH: u32 = 1 << 31;

/// Consecutive lines of packets that have arrived, as many as are simulated as one.
#[derive(Clone, Copy, Debug)]
struct Want {
    line: u64,
    lines: u16,
    /// A part of the line is written, which has to be read first.
    partial: bool,
    who: u32,
    device: DeviceKind,
    tag: Tag,
    /// Bytes of the line that are moved.
    bytes: u32,
}

impl Want {
    fn transfer(&self) -> Transfer {
        Transfer { tag: self.tag, ..Transfer::of(Agent::Io, self.device, self.line) }
    }

    /// What its transfer of DRAM counts as: packets are a NIC's wherever it is attached.
    fn classes(&self) -> (Class, Class) {
        match self.device {
            DeviceKind::Nic => (Class::NicRxWr, Class::NicTxRd),
            DeviceKind::Rdma | DeviceKind::Storage => (Class::IoWr, Class::IoRd),
        }
    }
}

impl Piece {
    /// Bytes of its first `n` lines, which are all of them, that cross the link.
    fn bytes(self, n: u32) -> u32 {
        n * LINE as u32 - self.omits
    }

    /// What its first `n` lines, which are all of them, ask for, up to `each` together.
    fn wants(self, n: u32, each: u32, who: u32, device: DeviceKind) -> impl Iterator<Item = Want> {
        (0..n).step_by(each as usize).map(move |at| {
            let lines = each.min(n - at);
            let omits = if at + lines == n { self.omits.min(LINE as u32) } else { 0 };
            Want {
                line: self.line + u64::from(at),
                lines: lines as u16,
                partial: false,
                who,
                device,
                tag: self.tag,
                bytes: LINE as u32 - omits,
            }
        })
    }
}

/// A transaction-layer packet on its way up.
#[derive(Clone, Copy, Debug)]
enum Tlp {
    /// Lines, and what the reserved bits of the first dword say about them.
    Write(Piece, u32, u32),
    Read {
        job: u32,
    },
}

/// A read request of a device.
#[derive(Clone, Copy, Debug, Default)]
struct Job {
    port: u16,
    piece: Piece,
    lines: u32,
    /// Bytes that no completion has taken along yet.
    bytes: u32,
    /// Lines that have come, as a mask, and lines handed to the link.
    here: u64,
    sent: u32,
    /// Lines that have no entry yet.
    entries: u32,
    /// Its tag is on its way back.
    returned: bool,
}

/// One device and its link.
#[derive(Clone)]
struct Port {
    device: Endpoint,
    framing: Framing,
    /// Grants posted credits, in lines of data, and non-posted ones, in requests.
    up: Link,
    down: Link,
    /// Read requests that the device may have under way.
    tags: Credits,
    /// The packet on the link up, which is free again when it has arrived.
    on_wire: Option<Tlp>,
    /// What each way waits for, by `Direction`.
    holds: [Hold; 2],
    /// The way that goes first when both have something.
    turn: Direction,
    moved: u64,
}

/// Why a port does not ask its device for more, one way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Hold {
    /// It does.
    Open,
    /// `Event::Turn` will tell it to.
    Timer,
    /// So many posted credits are missing, and when they come back is not known.
    Credits(u32),
}

/// One controller's buffers, and the lines that wait for an entry.
#[derive(Clone)]
struct Controller {
    write: Domain,
    read: Domain,
    writes: VecDeque<Want>,
    reads: VecDeque<Want>,
    /// When the next line may leave for the home agent.
    free: Time,
}

impl Controller {
    /// When a line of a write that has an entry now leaves: the last of a train, whose others came and left before it. Each of
    /// those takes `interval`, the last one `last`.
    #[inline]
    fn leave_last(&mut self, now: Time, interval: Time, last: Time, lines: u16) -> Time {
        let at = now.max(self.free + interval * u64::from(lines - 1));
        self.free = at + last;
        at
    }

    /// When a line of a request that has an entry now leaves: the first of a train, whose others follow.
    #[inline]
    fn leave_first(&mut self, now: Time, interval: Time, lines: u16) -> Time {
        let at = now.max(self.free);
        self.free = at + interval * u64::from(lines);
        at
    }
}

#[derive(Clone)]
pub struct Iio {
    controllers: Vec<Controller>,
    to_cha: Time,
    line_interval: Time,
    line_header: Time,
    ports: Vec<Port>,
    jobs: Vec<Job>,
    spare: Vec<u32>,
    fetch_partial: bool,
    /// Writes of parts of lines that are being read, and places for more.
    fetches: Vec<Want>,
    spare_fetches: Vec<u32>,
    register_write: Time,
    /// Devices send nothing new.
    pub stopped: bool,
    since: Time,
    completed_before: u64,
}

impl Iio {
    pub fn new(s: &IioSpec, pcie: &PcieSpec, devices: Vec<(Endpoint, u32, u32)>) -> Iio {
        let port = |(device, lanes, tags): (Endpoint, u32, u32)| Port {
            device,
            framing: pcie.framing(),
            up: pcie.up(lanes),
            down: pcie.down(lanes),
            tags: Credits::new(tags),
            on_wire: None,
            holds: [Hold::Open; 2],
            turn: Direction::P2mWrite,
            moved: 0,
        };
        let controller = |_| Controller {
            write: Domain::new(s.write_buffer),
            read: Domain::new(s.read_buffer),
            writes: VecDeque::with_capacity(1024),
            reads: VecDeque::with_capacity(4096),
            free: Time::ZERO,
        };
        Iio {
            controllers: (0..s.count).map(controller).collect(),
            to_cha: s.to_cha.into(),
            line_interval: s.line_interval.into(),
            line_header: s.line_header.unwrap_or(s.line_interval).into(),
            ports: devices.into_iter().map(port).collect(),
            jobs: Vec::with_capacity(1024),
            spare: Vec::with_capacity(1024),
            fetch_partial: s.fetch_partial,
            fetches: Vec::new(),
            spare_fetches: Vec::new(),
            register_write: s.register_write.into(),
            stopped: false,
            since: Time::ZERO,
            completed_before: 0,
        }
    }

    /// Devices begin.
    pub fn start(&mut self, cal: &mut Events, now: Time) {
        for p in 0..self.ports.len() {
            self.launch(cal, p, now);
        }
    }

    /// Port `p` asks its device again at `at`.
    fn wait_until(&mut self, cal: &mut Events, p: usize, way: Direction, at: Time) {
        self.ports[p].holds[way as usize] = Hold::Timer;
        cal.push(at, Event::Turn { port: p as u16, way: way as u8 });
    }

    /// The device on port `p` sends its next packet, if it may.
    fn launch(&mut self, cal: &mut Events, p: usize, now: Time) {
        let port = &self.ports[p];
        if port.on_wire.is_some() || (self.stopped && port.device.makes_work()) {
            return;
        }
        let first = port.turn;
        if !self.send(cal, p, first, now) {
            self.send(cal, p, first.other(), now);
        }
    }

    /// A packet of one way sets out; false when there is none that may.
    fn send(&mut self, cal: &mut Events, p: usize, way: Direction, now: Time) -> bool {
        let port = &mut self.ports[p];
        if port.holds[way as usize] != Hold::Open {
            return false;
        }
        let lines = match port.device.next(way, now) {
            Offer::Lines(n) => n,
            Offer::At(t) => {
                self.wait_until(cal, p, way, t);
                return false;
            }
            Offer::Nothing => return false,
        };
        let end = match way {
            Direction::P2mWrite => {
                let n = lines.min(port.framing.payload / LINE as u32 * port.framing.train);
                match port.up.take(POSTED, n, now) {
                    Ok(()) => {}
                    Err(Wait::Until(t)) => {
                        self.wait_until(cal, p, way, t);
                        return false;
                    }
                    Err(Wait::Return) => {
                        port.holds[way as usize] = Hold::Credits(n);
                        return false;
                    }
                }
                let piece = port.device.take(way, n, now);
                port.on_wire = Some(Tlp::Write(piece, n, piece.tag.encode()));
                let bytes = piece.bytes(n);
                let end = port.up.send(port.framing.writes(bytes, n), now);
                let last = bytes - bytes.saturating_sub(1) / port.framing.payload * port.framing.payload;
                port.framing.acted_on(&port.up, last, end)
            }
            Direction::P2mRead => {
                let n = lines.min(port.framing.request / LINE as u32 * port.framing.train);
                let requests = port.framing.requests(n);
                if let Err(wait) = port.tags.look(requests, now) {
                    if let Wait::Until(t) = wait {
                        self.wait_until(cal, p, way, t);
                    }
                    return false; // otherwise the end of a request goes on
                }
                if port.up.take(NON_POSTED, requests, now).is_err() {
                    return false; // the end of a request's wait for entries goes on
                }
                port.tags.take(requests, now).expect("they are free");
                let piece = port.device.take(way, n, now);
                let job = Job { port: p as u16, piece, lines: n, bytes: piece.bytes(n), entries: n, ..Job::default() };
                let job = self.job(job);
                let port = &mut self.ports[p];
                port.on_wire = Some(Tlp::Read { job });
                // Data comes back more slowly than requests go: what they ask for begins with the first.
                let first = u64::from(port.framing.read_request);
                let rest = u64::from(requests - 1) * first;
                let end = port.up.send(first, now);
                if rest > 0 {
                    port.up.send(rest, now);
                }
                end
            }
        };
        self.ports[p].turn = way.other();
        cal.push(end, Event::Tlp(p as u16));
        true
    }

    fn job(&mut self, job: Job) -> u32 {
        if let Some(id) = self.spare.pop() {
            self.jobs[id as usize] = job;
            return id;
        }
        self.jobs.push(job);
        (self.jobs.len() - 1) as u32
    }

    /// `Event::Turn`: what one way of port `p` waited for is there.
    pub fn on_turn(&mut self, cal: &mut Events, p: usize, way: u8, now: Time) {
        self.ports[p].holds[usize::from(way)] = Hold::Open;
        self.launch(cal, p, now);
    }

    /// `Event::Tlp`: the packet on port `p`'s link has arrived, and the device goes on.
    pub fn on_tlp(&mut self, mem: &mut Memory, cal: &mut Events, placement: &mut Placement, p: usize, now: Time) {
        let device = self.ports[p].device.kind();
        match self.ports[p].on_wire.take() {
            Some(Tlp::Write(piece, lines, reserved)) => {
                let piece = Piece { tag: Tag::decode(reserved), ..piece };
                let who = (p as u32) << 16 | u32::from(piece.slot);
                let c = self.controller_of(p);
                let each = self.ports[p].framing.train;
                let whole = lines - u32::from(self.fetch_partial && piece.omits > 0);
                for w in piece.wants(whole, each, who, device) {
                    self.want_write(mem, cal, placement, c, w, now);
                }
                if whole < lines {
                    let line = piece.line + u64::from(whole);
                    let bytes = LINE as u32 - piece.omits.min(LINE as u32);
                    let w = Want { line, lines: 1, partial: true, who, device, tag: piece.tag, bytes };
                    self.want_write(mem, cal, placement, c, w, now);
                }
            }
            Some(Tlp::Read { job }) => {
                let j = self.jobs[job as usize];
                let c = self.controller_of(p);
                for w in j.piece.wants(j.lines, self.ports[p].framing.train, job, device) {
                    let ctl = &mut self.controllers[c];
                    if ctl.reads.is_empty() && ctl.read.free() >= w.lines.into() {
                        self.enter_read(mem, cal, placement, c, w, now);
                    } else {
                        ctl.reads.push_back(w);
                    }
                }
            }
            None => {}
        }
        self.launch(cal, p, now);
    }

    /// The controller that a port belongs to.
    #[inline]
    fn controller_of(&self, p: usize) -> usize {
        p % self.controllers.len()
    }

    /// Lines have arrived, which need entries.
    #[inline]
    fn want_write(&mut self, mem: &mut Memory, cal: &mut Events, door: &mut Placement, c: usize, w: Want, now: Time) {
        let ctl = &mut self.controllers[c];
        if ctl.writes.is_empty() && ctl.write.free() >= w.lines.into() {
            self.enter_write(mem, cal, door, c, w, now);
        } else {
            ctl.writes.push_back(w);
        }
    }

    /// Lines that wait get the entries that are free.
    fn enter_writes(&mut self, mem: &mut Memory, cal: &mut Events, placement: &mut Placement, c: usize, now: Time) {
        while let Some(&w) = self.controllers[c].writes.front() {
            if self.controllers[c].write.free() < w.lines.into() {
                break;
            }
            self.controllers[c].writes.pop_front();
            self.enter_write(mem, cal, placement, c, w, now);
        }
    }

    /// A line gets an entry and leaves for the home agent.
    #[inline]
    fn enter_write(&mut self, mem: &mut Memory, cal: &mut Events, door: &mut Placement, c: usize, w: Want, now: Time) {
        let ctl = &mut self.controllers[c];
        ctl.write.force_many(w.lines.into(), now);
        let data = Time((self.line_interval - self.line_header).0 * u64::from(w.bytes) / LINE);
        let at = ctl.leave_last(now, self.line_interval, self.line_header + data, w.lines) + self.to_cha;
        if w.partial {
            let from = door.read(&w.transfer());
            let who = FETCH | self.fetch(w);
            let t = Txn::dma_read(Agent::Io, w.classes().1, w.line, 1, who, now);
            return mem.send(cal, at, Txn { from, tag: w.tag, ..t });
        }
        let to = door.write(&w.transfer());
        let t = Txn::dma_write(Agent::Io, w.classes().0, to, w.line, w.lines, w.who, now);
        mem.send(cal, at, Txn { tag: w.tag, ..t });
    }

    fn fetch(&mut self, w: Want) -> u32 {
        if let Some(i) = self.spare_fetches.pop() {
            self.fetches[i as usize] = w;
            return i;
        }
        self.fetches.push(w);
        (self.fetches.len() - 1) as u32
    }

    /// As `enter_writes`.
    fn enter_reads(&mut self, mem: &mut Memory, cal: &mut Events, placement: &mut Placement, c: usize, now: Time) {
        while let Some(&w) = self.controllers[c].reads.front() {
            if self.controllers[c].read.free() < w.lines.into() {
                break;
            }
            self.controllers[c].reads.pop_front();
            self.enter_read(mem, cal, placement, c, w, now);
        }
    }

    /// As `enter_write`; with its last line a request gives its credit back.
    #[inline]
    fn enter_read(&mut self, mem: &mut Memory, cal: &mut Events, door: &mut Placement, c: usize, w: Want, now: Time) {
        let ctl = &mut self.controllers[c];
        ctl.read.force_many(w.lines.into(), now);
        let at = ctl.leave_first(now, self.line_interval, w.lines) + self.to_cha;
        let from = door.read(&w.transfer());
        let t = Txn::dma_read(Agent::Io, w.classes().1, w.line, w.lines, w.who, now);
        mem.send(cal, at, Txn { from, tag: w.tag, ..t });
        let j = &mut self.jobs[w.who as usize];
        j.entries -= u32::from(w.lines);
        if j.entries == 0 {
            let (p, lines) = (usize::from(j.port), j.lines);
            let requests = self.ports[p].framing.requests(lines);
            self.ports[p].up.credits_mut(NON_POSTED).give(requests, now);
            self.launch(cal, p, now);
        }
    }

    /// `Event::Fill`: the home agent has answered for a line.
    pub fn on_line(&mut self, mem: &mut Memory, cal: &mut Events, placement: &mut Placement, t: &Txn, now: Time) {
        let p = self.port_of(t);
        let c = self.controller_of(p);
        let n = u32::from(t.lines);
        let fetched = t.op == Op::DmaRead && t.who & FETCH != 0;
        if t.op == Op::DmaWrite || fetched {
            let mut slot = t.who as u16;
            if fetched {
                // The write is done here, and nobody waits for the line's way to where writes go.
                let i = t.who & !FETCH;
                let w = self.fetches[i as usize];
                self.spare_fetches.push(i);
                slot = w.who as u16;
                let to = placement.write(&w.transfer());
                let t = Txn::dma_write(Agent::Io, w.classes().0, to, w.line, 1, w.who, now);
                mem.dma_at_once(cal, &Txn { tag: w.tag, ..t });
            }
            self.controllers[c].write.give_many(n, now, t.issued);
            let port = &mut self.ports[p];
            port.moved += u64::from(n);
            let back = now + port.up.flight * 2;
            let posted = port.up.credits_mut(POSTED);
            posted.give_at(n, back);
            if let Hold::Credits(n) = port.holds[Direction::P2mWrite as usize] {
                if let Wait::Until(at) = posted.wait_for(n) {
                    self.wait_until(cal, p, Direction::P2mWrite, at);
                }
            }
            self.end_lines(cal, p, Direction::P2mWrite, (slot, n), now);
            return self.enter_writes(mem, cal, placement, c, now);
        }
        self.controllers[c].read.give_many(n, now, t.issued);
        let j = &mut self.jobs[t.who as usize];
        if self.ports[p].framing.train > 1 {
            // Which of a train's lines they are does not matter: its device hears of the last one.
            (0..n).for_each(|_| j.here |= j.here + 1);
        } else {
            j.here |= 1 << (t.line - j.piece.line);
        }
        let port = &mut self.ports[p];
        let payload = port.framing.payload / LINE as u32;
        while j.sent < j.lines {
            // Completions keep the order of addresses within a request.
            let n = payload.min(j.lines - j.sent);
            let want = ((1u64 << n) - 1) << j.sent;
            if j.here & want != want {
                break;
            }
            j.sent += n;
            let bytes = if j.sent == j.lines { j.bytes } else { j.bytes.min(n * LINE as u32) };
            j.bytes -= bytes;
            let end = port.down.send(port.framing.completion(bytes), now);
            if j.sent == j.lines {
                let end = port.framing.acted_on(&port.down, bytes, end);
                let at = end + port.down.flight * 2;
                let requests = port.framing.requests(j.lines);
                let ends = port.device.expect(j.piece.slot, j.lines);
                let mut wait = false;
                if ends.is_some() {
                    let open = port.holds[Direction::P2mRead as usize] == Hold::Open;
                    wait = open && port.tags.look(requests, now) == Err(Wait::Return);
                    port.tags.give_at(requests, at);
                }
                if ends == Some(false) {
                    port.moved += u64::from(j.lines);
                    self.spare.push(t.who);
                } else {
                    j.returned = ends.is_some();
                    cal.push(at, Event::Completed(t.who));
                }
                if wait {
                    self.wait_until(cal, p, Direction::P2mRead, at); // a request may wait for this tag
                }
                break;
            }
        }
        self.enter_reads(mem, cal, placement, c, now);
    }

    /// `Event::Completed`: all of a read request is at its device.
    pub fn on_completed(&mut self, cal: &mut Events, job: u32, now: Time) {
        let j = self.jobs[job as usize];
        self.jobs[job as usize].returned = false;
        self.spare.push(job);
        let p = usize::from(j.port);
        if !j.returned {
            let requests = self.ports[p].framing.requests(j.lines);
            self.ports[p].tags.give(requests, now);
        }
        self.ports[p].moved += u64::from(j.lines);
        self.end_lines(cal, p, Direction::P2mRead, (j.piece.slot, j.lines), now);
        self.launch(cal, p, now);
    }

    fn end_lines(&mut self, cal: &mut Events, p: usize, way: Direction, (slot, n): (u16, u32), now: Time) {
        if self.ports[p].device.done(cal, way, slot, n, now) {
            self.launch(cal, p, now);
        }
    }

    /// Moves `lines` lines of each writing device without timing.
    pub fn write_at_once(&mut self, mem: &mut Memory, cal: &mut Events, placement: &mut Placement, lines: u64) {
        for port in &mut self.ports {
            let mut moved = 0;
            while moved < lines {
                let Some((line, n)) = port.device.write_at_once() else { break };
                let to = placement.write(&Transfer::of(Agent::Io, port.device.kind(), line));
                let t = Txn::dma_write(Agent::Io, Class::IoWr, to, line, n as u16, 0, Time::ZERO);
                mem.dma_at_once(cal, &t);
                moved += u64::from(n);
            }
        }
    }

    fn completed(&self) -> u64 {
        self.ports.iter().map(|p| p.device.completed()).sum()
    }

    pub fn restart_meters(&mut self, now: Time) {
        self.since = now;
        for s in &mut self.controllers {
            s.write.restart(now);
            s.read.restart(now);
        }
        self.completed_before = self.completed();
        for p in &mut self.ports {
            p.moved = 0;
            p.up.restart(now);
            p.down.restart(now);
            p.tags.restart(now);
            p.device.restart_meters(now);
        }
    }

    /// The write buffers and the read buffers of the controllers.
    pub fn buffers(&self) -> impl Iterator<Item = (&Domain, &Domain)> {
        self.controllers.iter().map(|s| (&s.write, &s.read))
    }

    /// All write buffers together, and all read buffers.
    pub fn readings(&self, now: Time) -> [Option<Reading>; 2] {
        let all = |f: fn(&Controller) -> &Domain| Reading::together(self.controllers.iter().map(|s| f(s).read(now)));
        [all(|s| &s.write), all(|s| &s.read)]
    }

    /// The links and the credits of all ports together, by name.
    pub fn link_readings(&self, now: Time) -> impl Iterator<Item = (&'static str, Reading)> + '_ {
        let all = |f: &dyn Fn(&Port) -> Reading| Reading::together(self.ports.iter().map(f));
        let rows = [
            ("PCIe up", all(&|p| p.up.read(now))),
            ("PCIe down", all(&|p| p.down.read(now))),
            ("PCIe posted credits", all(&|p| p.up.credits(POSTED).read(now))),
            ("PCIe non-posted credits", all(&|p| p.up.credits(NON_POSTED).read(now))),
            ("PCIe tags", all(&|p| p.tags.read(now))),
        ];
        rows.into_iter().filter_map(|(name, r)| Some((name, r.filter(|r| r.arrival_rate > 0.0)?)))
    }

    /// Since the restart: lines moved, blocks completed.
    pub fn moved(&self) -> (u64, u64) {
        (self.ports.iter().map(|p| p.moved).sum(), self.completed() - self.completed_before)
    }

    /// Share of time that the ports carried packets, up and down.
    pub fn utilisation(&self, now: Time) -> (f64, f64) {
        let span = (now - self.since).0.max(1) as f64 * self.ports.len().max(1) as f64;
        let sum = |f: fn(&Port) -> &Link| self.ports.iter().map(|p| f(p).busy().0).sum::<u64>() as f64 / span;
        (sum(|p| &p.up), sum(|p| &p.down))
    }

    /// The NIC that is attached to a port, if there is one, and its port.
    pub fn nic(&mut self) -> Option<(usize, &mut Nic)> {
        self.ports.iter_mut().enumerate().find_map(|(i, p)| match &mut p.device {
            Endpoint::Ethernet(d) => Some((i, &mut **d)),
            _ => None,
        })
    }

    /// A packet comes off the wire of that NIC.
    ///
    /// # Errors
    /// The cause, when it is dropped at once.
    pub fn arrive(&mut self, cal: &mut Events, packet: Packet, now: Time) -> Result<(), DropCause> {
        let (port, nic) = self.nic().expect("a NIC on a port");
        nic.arrive(cal, packet, now)?;
        self.launch(cal, port, now);
        Ok(())
    }

    /// A doorbell for packet `id`'s reply is here: it goes down the link to that NIC.
    pub fn post(&mut self, cal: &mut Events, id: u32, now: Time) {
        let (port, nic) = self.nic().expect("a NIC on a port");
        nic.ring(id);
        let port = &mut self.ports[port];
        let end = port.down.send(port.framing.write(DOORBELL), now);
        let at = end + port.down.flight * 2 + self.register_write;
        cal.push(at, Event::NicTx(NicAt::Port, id));
    }

    /// `Event::NicTx` of that NIC: a doorbell has come, or a reply has left. True once it is sent.
    pub fn on_nic_tx(&mut self, cal: &mut Events, id: u32, now: Time) -> bool {
        let (port, nic) = self.nic().expect("a NIC on a port");
        let sent = nic.on_tx_port(id, now);
        self.launch(cal, port, now); // a doorbell is work, and a frame that has left makes room
        sent
    }

    /// A doorbell of `side` of `queue` is here, for `n` descriptors: it goes down the link to that NIC.
    pub fn ring(&mut self, cal: &mut Events, queue: u16, side: Side, n: u32, now: Time) {
        let (port, _) = self.nic().expect("a NIC on a port");
        let port = &mut self.ports[port];
        let end = port.down.send(port.framing.write(TAIL), now);
        let at = end + port.down.flight * 2 + self.register_write;
        cal.push(at, Event::Ring { queue, task: RingTask::Tail(side), n });
    }

    /// `Event::Ring`: something is due at a queue of that NIC.
    pub fn on_ring(&mut self, cal: &mut Events, queue: u16, task: RingTask, n: u32, now: Time) {
        let (port, nic) = self.nic().expect("a NIC on a port");
        nic.on_ring(cal, queue.into(), task, n, now);
        self.launch(cal, port, now);
    }

    /// Whether the device on port `p` is a NIC with packets that have become visible.
    #[inline]
    pub fn has_landed(&self, p: usize) -> bool {
        matches!(&self.ports[p].device, Endpoint::Ethernet(n) if n.has_landed())
    }

    /// The port of the device that asked for a line.
    #[inline]
    pub fn port_of(&self, t: &Txn) -> usize {
        if t.op == Op::DmaWrite {
            (t.who >> 16) as usize
        } else if t.who & FETCH != 0 {
            (self.fetches[(t.who & !FETCH) as usize].who >> 16) as usize
        } else {
            self.jobs[t.who as usize].port.into()
        }
    }

    /// Write entries that are in use at the controller of port `p`.
    pub fn held_writes(&self, p: usize) -> u32 {
        self.controllers[self.controller_of(p)].write.used()
    }

    /// The same to look at.
    pub fn look_at_nic(&self) -> Option<&Nic> {
        self.devices().find_map(|d| match d {
            Endpoint::Ethernet(d) => Some(&**d),
            _ => None,
        })
    }

    /// The devices, in order of their ports.
    pub fn devices(&self) -> impl Iterator<Item = &Endpoint> {
        self.ports.iter().map(|p| &p.device)
    }

    /// Whether nothing is under way: every credit and every entry is back.
    pub fn at_rest(&self) -> bool {
        let port = |p: &Port| {
            let credits = [p.up.credits(POSTED), p.up.credits(NON_POSTED), &p.tags];
            p.on_wire.is_none() && credits.iter().all(|c| c.held() == 0)
        };
        self.ports.iter().all(port) && self.buffers().all(|(write, read)| write.used() + read.used() == 0)
    }

    /// Checks that no credit is lost, and what devices promise.
    ///
    /// # Errors
    /// One sentence with the counts that do not add up.
    pub fn check(&self) -> Result<(), String> {
        self.devices().try_for_each(Endpoint::check)?;
        let sum = |f: fn(&Port) -> u32| self.ports.iter().map(f).sum::<u32>();
        let waiting_lines = |c: &Controller| c.writes.iter().map(|w| u32::from(w.lines)).sum::<u32>();
        let entries: u32 = self.controllers.iter().map(|s| s.write.used() + waiting_lines(s)).sum();
        let on_wire = sum(|p| match p.on_wire {
            Some(Tlp::Write(_, lines, _)) => lines,
            _ => 0,
        });
        let of = |j: &Job| self.ports[usize::from(j.port)].framing.requests(j.lines);
        let every: u32 = self.jobs.iter().map(of).sum();
        let ended: u32 = self.spare.iter().map(|id| of(&self.jobs[*id as usize])).sum();
        let returned: u32 = self.jobs.iter().filter(|j| j.returned).map(of).sum();
        let waiting: u32 = self.jobs.iter().filter(|j| j.entries > 0).map(of).sum();
        for (what, out, inside) in [
            ("posted credits", sum(|p| p.up.credits(POSTED).held()), entries + on_wire),
            ("non-posted credits", sum(|p| p.up.credits(NON_POSTED).held()), waiting),
            ("tags", sum(|p| p.tags.held()), every - ended - returned),
        ] {
            if out != inside {
                return Err(format!("{out} {what} of devices are out, {inside} are accounted for"));
            }
        }
        Ok(())
    }
}
