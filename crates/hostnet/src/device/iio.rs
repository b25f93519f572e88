//! Integrated I/O controllers: each a read and a write buffer of one entry per cache line between PCIe ports
//! and the home agent. An entry is a credit of the P2M-Read or P2M-Write domain.
//!
//! Times are the IIO's own. A device sees credits and completions a flight time later, and its packets
//! take another to come back: what it does next is therefore due two flight times after its cause.

use super::endpoint::{Direction, Endpoint, Next};
use super::netdev::NetDev;
use super::pcie::{Link, PcieSpec, Wire};
use crate::flow::domain::{Domain, Reading};
use crate::kernel::units::Span;
use crate::kernel::{Event, Events, Time};
use crate::memory::stats::Class;
use crate::memory::{Agent, Memory, Op, Txn, LINE};
use crate::placement::{Placement, Transfer};
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
    /// From the home agent's answer to the entry's release.
    pub from_cha: Span,
    /// Time at the home agent that a write takes beside the way to the memory controller: ownership of
    /// the line, without which it may not go on.
    pub ownership: Span,
}

fn one() -> u32 {
    1
}

/// A line of a packet that has arrived.
#[derive(Clone, Copy, Debug)]
struct Want {
    line: u64,
    who: u32,
}

/// A packet on its way up.
#[derive(Clone, Copy, Debug)]
enum Packet {
    Write { line: u64, lines: u32, slot: u8 },
    Read { job: u32 },
}

/// A read request of a device.
#[derive(Clone, Copy, Debug, Default)]
struct Job {
    port: u16,
    slot: u8,
    line: u64,
    lines: u32,
    /// Lines that have come, as a mask, and lines handed to the link.
    here: u64,
    sent: u32,
    /// Lines that have no entry yet.
    entries: u32,
}

/// One device and its link.
#[derive(Clone)]
struct Port {
    device: Endpoint,
    link: Link,
    up: Wire,
    down: Wire,
    on_wire: Option<Packet>,
    /// An event of this port is due.
    pending: bool,
    /// Posted-data credits left, and when those on their way back arrive.
    posted: u32,
    posted_limit: u32,
    returning: VecDeque<Time>,
    /// Credits that the next write needs; 0 when it does not wait for any.
    short: u32,
    non_posted: u32,
    tags: u32,
    moved: u64,
}

/// One controller's buffers, and the lines that wait for an entry.
#[derive(Clone)]
struct Stack {
    write: Domain,
    read: Domain,
    writes: VecDeque<Want>,
    reads: VecDeque<Want>,
    /// When the next line may leave for the home agent.
    free: Time,
}

impl Stack {
    /// When a line that has an entry now leaves.
    #[inline]
    fn leave(&mut self, now: Time, interval: Time) -> Time {
        let at = self.free.max(now);
        self.free = at + interval;
        at
    }
}

#[derive(Clone)]
pub struct Iio {
    stacks: Vec<Stack>,
    to_cha: Time,
    line_interval: Time,
    ports: Vec<Port>,
    jobs: Vec<Job>,
    spare: Vec<u32>,
    /// Devices send nothing new.
    pub stopped: bool,
    since: Time,
    completed_before: u64,
}

impl Iio {
    pub fn new(s: &IioSpec, pcie: &PcieSpec, devices: Vec<(Endpoint, u32, u32)>) -> Iio {
        let port = |(device, lanes, tags): (Endpoint, u32, u32)| Port {
            device,
            link: Link::new(pcie, lanes),
            up: Wire::default(),
            down: Wire::default(),
            on_wire: None,
            pending: false,
            posted: pcie.posted(lanes),
            posted_limit: pcie.posted(lanes),
            returning: VecDeque::with_capacity(pcie.posted(lanes) as usize),
            short: 0,
            non_posted: pcie.non_posted(lanes),
            tags,
            moved: 0,
        };
        let stack = |_| Stack {
            write: Domain::new(s.write_buffer),
            read: Domain::new(s.read_buffer),
            writes: VecDeque::with_capacity(1024),
            reads: VecDeque::with_capacity(4096),
            free: Time::ZERO,
        };
        Iio {
            stacks: (0..s.count).map(stack).collect(),
            to_cha: s.to_cha.into(),
            line_interval: s.line_interval.into(),
            ports: devices.into_iter().map(port).collect(),
            jobs: Vec::with_capacity(1024),
            spare: Vec::with_capacity(1024),
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

    fn post(&mut self, cal: &mut Events, p: usize, at: Time) {
        self.ports[p].pending = true;
        cal.push(at, Event::Tlp(p as u16));
    }

    /// The device on port `p` sends its next packet, if it may.
    fn launch(&mut self, cal: &mut Events, p: usize, now: Time) {
        let port = &mut self.ports[p];
        if port.pending || self.stopped {
            return;
        }
        let lines = match port.device.next(now) {
            Next::Lines(n) => n,
            Next::At(t) => return self.post(cal, p, t),
            Next::Nothing => return,
        };
        let end = match port.device.op() {
            Direction::P2mWrite => {
                let n = lines.min(port.link.payload / LINE as u32);
                while port.returning.front().is_some_and(|t| *t <= now) {
                    port.returning.pop_front();
                    port.posted += 1;
                }
                if port.posted < n {
                    let missing = n - port.posted;
                    port.short = missing;
                    if let Some(t) = port.returning.get(missing as usize - 1).copied() {
                        port.short = 0;
                        self.post(cal, p, t);
                    }
                    return;
                }
                port.posted -= n;
                port.device.pace(n, now);
                let (line, slot) = port.device.take(n);
                port.on_wire = Some(Packet::Write { line, lines: n, slot });
                port.up.send(now, port.link.write(n * LINE as u32))
            }
            Direction::P2mRead => {
                if port.tags == 0 || port.non_posted == 0 {
                    return; // the end of a request, or of its wait for entries, goes on
                }
                port.tags -= 1;
                port.non_posted -= 1;
                let n = lines.min(port.link.request / LINE as u32);
                port.device.pace(n, now);
                let (line, slot) = port.device.take(n);
                let job = Job { port: p as u16, slot, line, lines: n, entries: n, ..Job::default() };
                let id = match self.spare.pop() {
                    Some(id) => {
                        self.jobs[id as usize] = job;
                        id
                    }
                    None => {
                        self.jobs.push(job);
                        (self.jobs.len() - 1) as u32
                    }
                };
                let port = &mut self.ports[p];
                port.on_wire = Some(Packet::Read { job: id });
                port.up.send(now, port.link.read_request())
            }
        };
        self.post(cal, p, end);
    }

    /// `Event::Tlp`: the packet on port `p`'s wire has arrived, and the device goes on.
    pub fn on_tlp(&mut self, mem: &mut Memory, cal: &mut Events, placement: &mut Placement, p: usize, now: Time) {
        self.ports[p].pending = false;
        match self.ports[p].on_wire.take() {
            Some(Packet::Write { line, lines, slot }) => {
                let who = (p as u32) << 8 | u32::from(slot);
                let c = self.stack_of(p);
                self.stacks[c].writes.extend((0..u64::from(lines)).map(|i| Want { line: line + i, who }));
                self.enter_writes(mem, cal, placement, c, now);
            }
            Some(Packet::Read { job }) => {
                let j = self.jobs[job as usize];
                let c = self.stack_of(p);
                self.stacks[c].reads.extend((0..u64::from(j.lines)).map(|i| Want { line: j.line + i, who: job }));
                self.enter_reads(mem, cal, placement, c, now);
            }
            None => {}
        }
        self.launch(cal, p, now);
    }

    /// The controller that a port belongs to.
    #[inline]
    fn stack_of(&self, p: usize) -> usize {
        p % self.stacks.len()
    }

    fn enter_writes(&mut self, mem: &mut Memory, cal: &mut Events, placement: &mut Placement, c: usize, now: Time) {
        let stack = &mut self.stacks[c];
        while stack.write.free() > 0 {
            let Some(w) = stack.writes.pop_front() else { break };
            stack.write.take(now);
            let at = stack.leave(now, self.line_interval) + self.to_cha;
            let to = placement.write(&Transfer::of(Agent::Io, w.line));
            mem.send(cal, at, Txn::dma_write(Agent::Io, Class::IoWr, to, w.line, 1, w.who, now));
        }
    }

    fn enter_reads(&mut self, mem: &mut Memory, cal: &mut Events, placement: &mut Placement, c: usize, now: Time) {
        while self.stacks[c].read.free() > 0 {
            let stack = &mut self.stacks[c];
            let Some(w) = stack.reads.pop_front() else { break };
            stack.read.take(now);
            let at = stack.leave(now, self.line_interval) + self.to_cha;
            let from = placement.read(&Transfer::of(Agent::Io, w.line));
            let t = Txn::dma_read(Agent::Io, Class::IoRd, w.line, 1, w.who, now);
            mem.send(cal, at, Txn { from, ..t });
            let j = &mut self.jobs[w.who as usize];
            j.entries -= 1;
            if j.entries == 0 {
                let p = usize::from(j.port);
                self.ports[p].non_posted += 1;
                self.launch(cal, p, now);
            }
        }
    }

    /// `Event::Fill`: the home agent has answered for a line.
    pub fn on_line(&mut self, mem: &mut Memory, cal: &mut Events, placement: &mut Placement, t: &Txn, now: Time) {
        let p = self.port_of(t);
        let c = self.stack_of(p);
        if t.op == Op::DmaWrite {
            self.stacks[c].write.give(now, t.issued);
            let port = &mut self.ports[p];
            port.moved += 1;
            let back = now + port.link.flight * 2;
            port.returning.push_back(back);
            if port.short > 0 && port.returning.len() >= port.short as usize {
                let at = port.returning[port.short as usize - 1];
                port.short = 0;
                self.post(cal, p, at);
            }
            self.end_lines(cal, p, t.who as u8, 1, now);
            return self.enter_writes(mem, cal, placement, c, now);
        }
        self.stacks[c].read.give(now, t.issued);
        let j = &mut self.jobs[t.who as usize];
        j.here |= 1 << (t.line - j.line);
        let port = &mut self.ports[p];
        let payload = port.link.payload / LINE as u32;
        while j.sent < j.lines {
            // Completions keep the order of addresses within a request.
            let n = payload.min(j.lines - j.sent);
            let want = ((1u64 << n) - 1) << j.sent;
            if j.here & want != want {
                break;
            }
            let end = port.down.send(now, port.link.completion(n * LINE as u32));
            j.sent += n;
            if j.sent == j.lines {
                cal.push(end + port.link.flight * 2, Event::Completed(t.who));
            }
        }
        self.enter_reads(mem, cal, placement, c, now);
    }

    /// `Event::Completed`: all of a read request is at its device.
    pub fn on_completed(&mut self, cal: &mut Events, job: u32, now: Time) {
        let j = self.jobs[job as usize];
        self.spare.push(job);
        let p = usize::from(j.port);
        self.ports[p].tags += 1;
        self.ports[p].moved += u64::from(j.lines);
        self.end_lines(cal, p, j.slot, j.lines, now);
        self.launch(cal, p, now);
    }

    fn end_lines(&mut self, cal: &mut Events, p: usize, slot: u8, n: u32, now: Time) {
        let port = &mut self.ports[p];
        if port.device.done(slot, n, now) && port.short == 0 {
            self.launch(cal, p, now);
        }
    }

    /// Moves `lines` lines of each writing device without timing.
    pub fn write_at_once(&mut self, mem: &mut Memory, cal: &mut Events, placement: &mut Placement, lines: u64) {
        for port in self.ports.iter_mut().filter(|p| p.device.op() == Direction::P2mWrite) {
            let mut moved = 0;
            while moved < lines {
                let Some((line, n)) = port.device.at_once() else { break };
                let to = placement.write(&Transfer::of(Agent::Io, line));
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
        for s in &mut self.stacks {
            s.write.restart(now);
            s.read.restart(now);
        }
        self.completed_before = self.completed();
        for p in &mut self.ports {
            p.moved = 0;
            p.up.restart();
            p.down.restart();
            p.device.restart_meters(now);
        }
    }

    /// The write buffers and the read buffers of the controllers.
    pub fn buffers(&self) -> impl Iterator<Item = (&Domain, &Domain)> {
        self.stacks.iter().map(|s| (&s.write, &s.read))
    }

    /// All write buffers together, and all read buffers.
    pub fn readings(&self, now: Time) -> [Option<Reading>; 2] {
        let all = |f: fn(&Stack) -> &Domain| Reading::together(self.stacks.iter().map(|s| f(s).read(now)));
        [all(|s| &s.write), all(|s| &s.read)]
    }

    /// Since the restart: lines moved, blocks completed.
    pub fn moved(&self) -> (u64, u64) {
        (self.ports.iter().map(|p| p.moved).sum(), self.completed() - self.completed_before)
    }

    /// Share of time that the ports carried packets, up and down.
    pub fn utilisation(&self, now: Time) -> (f64, f64) {
        let span = (now - self.since).0.max(1) as f64 * self.ports.len().max(1) as f64;
        let sum = |f: fn(&Port) -> &Wire| self.ports.iter().map(|p| f(p).busy().0).sum::<u64>() as f64 / span;
        (sum(|p| &p.up), sum(|p| &p.down))
    }

    /// The Ethernet NIC, if there is one, and its port.
    pub fn netdev(&mut self) -> Option<(usize, &mut NetDev)> {
        self.ports.iter_mut().enumerate().find_map(|(i, p)| match &mut p.device {
            Endpoint::NetDev(d) => Some((i, d)),
            _ => None,
        })
    }

    /// The port of the device that asked for a line.
    #[inline]
    pub fn port_of(&self, t: &Txn) -> usize {
        if t.op == Op::DmaWrite {
            (t.who >> 8) as usize
        } else {
            self.jobs[t.who as usize].port.into()
        }
    }

    /// Write entries that are in use at the controller of port `p`.
    pub fn held_writes(&self, p: usize) -> u32 {
        self.stacks[self.stack_of(p)].write.used()
    }

    /// The same to look at.
    pub fn ethernet(&self) -> Option<&NetDev> {
        self.devices().find_map(|d| match d {
            Endpoint::NetDev(d) => Some(d),
            _ => None,
        })
    }

    /// The device on port `p` has something to move.
    pub fn kick(&mut self, cal: &mut Events, p: usize, now: Time) {
        self.launch(cal, p, now);
    }

    /// The devices, in order of their ports.
    pub fn devices(&self) -> impl Iterator<Item = &Endpoint> {
        self.ports.iter().map(|p| &p.device)
    }

    /// Checks that no credit is lost, and what devices promise.
    ///
    /// # Errors
    /// One sentence with the counts that do not add up.
    pub fn check(&self) -> Result<(), String> {
        self.devices().try_for_each(Endpoint::check)?;
        let on_wire = |p: &Port| match p.on_wire {
            Some(Packet::Write { lines, .. }) => lines,
            _ => 0,
        };
        let out: u32 = self.ports.iter().map(|p| p.posted_limit - p.posted - p.returning.len() as u32).sum();
        let wire: u32 = self.ports.iter().map(on_wire).sum();
        let held: u32 = self.stacks.iter().map(|s| s.write.used() + s.writes.len() as u32).sum();
        let inside = held + wire;
        if out != inside {
            return Err(format!("{out} posted-data credits are out for {inside} lines on their way"));
        }
        Ok(())
    }
}
