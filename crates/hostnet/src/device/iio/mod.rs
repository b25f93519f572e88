//! Integrated I/O controllers (IIO): each has a read and a write buffer of one entry per cache line between its PCIe
//! ports and the home agent. An entry is a credit of the P2M-Read or P2M-Write domain.
//!
//! A port is full duplex: its device offers writes and read requests at the same time. Writes and read requests take
//! turns on the upstream link; completions have the downstream link to themselves.
//!
//! ```text
//!   device --write TLPs, read requests--> up --> write / read entries --> home agent
//!   device <---------completions--------- down <----- data, in order of addresses
//! ```
//!
//! All times are those of the IIO. A device sees credits and completions one flight time later, and its packets take
//! another flight time to return: a device's reaction is therefore scheduled two flight times after its cause.

mod meters;
mod parts;
mod shared_path;
mod spec;

pub use spec::{IioQuirks, IioSpec};

use super::endpoint::{DmaDirection, Endpoint, Offer, Piece};
use super::nic::{Nic, Packet};
use super::pcie::{PcieSpec, NON_POSTED, POSTED};
use crate::device::{DeviceEvent, DevicePosts, NicAt, RingSide, RingTask};
use crate::flow::domain::Domain;
use crate::flow::{CreditWait, Credits};
use crate::kernel::{IdVec, Int, NodeId, PacketId, PartialWriteId, PortId, QueueId, ReadJobId, Time};
use crate::memory::stats::AccessClass;
use crate::memory::{Agent, Inbound, IoWrite, Memory, Sender, Tag, Txn, LINE, LINE_U32};
use crate::meter::drops::DropCause;
use crate::placement::{DeviceTransfer, Placement};
use parts::{HomeAgentPath, IioController, IioPort, IioRequest, PortHold, ReadJob, Tlp};
use shared_path::SharedPath;
use std::collections::VecDeque;

/// Bytes of a doorbell's register write.
const DOORBELL: u32 = 8;
/// Bytes of the write to a ring's tail register.
const TAIL: u32 = 4;

/// Integrated I/O: the controllers, PCIe ports and transfers between devices and the home agent.
#[derive(Clone)]
pub struct Iio {
    controllers: Vec<IioController>,
    shared: Option<SharedPath>,
    to_cha: Time,
    line_interval: Time,
    line_header: Time,
    ports: IdVec<PortId, IioPort>,
    jobs: IdVec<ReadJobId, ReadJob>,
    spare: Vec<ReadJobId>,
    fetch_partial: bool,
    /// Writes of parts of lines whose lines are being read.
    fetches: IdVec<PartialWriteId, IioRequest<IoWrite>>,
    spare_fetches: Vec<PartialWriteId>,
    register_write: Time,
    /// Time from the effect of a register write to its answer at the IIO, if there is one.
    register_answer: Option<Time>,
    /// Whether devices send nothing new, so that the machine drains.
    pub stopped: bool,
    since: Time,
    completed_before: u64,
    /// Shortest time that a device read has taken since the restart, from request to last data, as the device sees it.
    shortest_read: Option<Time>,
}

/// The sender of write `w`.
fn write_of(w: IoWrite) -> Sender {
    Sender::IoWrite(w)
}

/// Class of the credits that packets in direction `way` take.
fn credits_of(way: DmaDirection) -> usize {
    match way {
        DmaDirection::P2mWrite => POSTED,
        DmaDirection::P2mRead => NON_POSTED,
    }
}

impl Iio {
    /// The IIO with `devices` on its ports, each with its lanes and tags, in the order of the ports.
    ///
    /// # Panics
    /// Panics when a NIC has been built for another port.
    pub fn new(s: &IioSpec, pcie: &PcieSpec, devices: Vec<(Endpoint, u32, u32)>) -> Iio {
        let port = |(i, (device, lanes, tags)): (usize, (Endpoint, u32, u32))| IioPort {
            device,
            controller: i % s.count.to_usize(),
            framing: pcie.framing(),
            up: pcie.up(lanes),
            down: pcie.down(lanes),
            tags: Credits::new(tags),
            on_wire: None,
            holds: [PortHold::Open; 2],
            turn: DmaDirection::P2mWrite,
            moved: 0,
        };
        let controller = |_| IioController {
            write: Domain::new(s.write_buffer),
            read: Domain::new(s.read_buffer),
            writes: VecDeque::with_capacity(1024),
            reads: VecDeque::with_capacity(4096),
            to_home_agent: HomeAgentPath::new(s.quirks.write_back_interval.into(), s.quirks.write_back_buffer),
        };
        let ports: IdVec<PortId, IioPort> = devices.into_iter().enumerate().map(port).collect();
        let first = ports.iter().find(|p| matches!(p.device, Endpoint::Ethernet(_))).map_or(0, |p| p.controller);
        let iio = Iio {
            controllers: (0..s.count).map(controller).collect(),
            shared: s.quirks.shared_with_cores.then(|| SharedPath::new(first)),
            to_cha: s.to_cha.into(),
            line_interval: s.line_interval.into(),
            line_header: s.quirks.line_header.unwrap_or(s.line_interval).into(),
            ports,
            jobs: Vec::with_capacity(1024).into(),
            spare: Vec::with_capacity(1024),
            fetch_partial: s.quirks.fetch_partial,
            fetches: IdVec::new(),
            spare_fetches: Vec::new(),
            register_write: s.quirks.register_write.into(),
            register_answer: s.quirks.register_answer.map(Time::from),
            stopped: false,
            since: Time::ZERO,
            completed_before: 0,
            shortest_read: None,
        };
        for (port, nic) in iio.nics() {
            assert_eq!(nic.port(), Some(port), "the port that the NIC was built for");
        }
        iio
    }

    /// Attaches the device on each port to its node of `nodes`. Each node has as many controllers as `s` says.
    pub fn attach(&mut self, nodes: &IdVec<PortId, NodeId>, s: &IioSpec) {
        let count = s.count.to_usize();
        let mut of_node: Vec<usize> = Vec::new();
        for (p, node) in nodes.enumerate() {
            of_node.resize(of_node.len().max(node.index() + 1), 0);
            self.ports[p].controller = node.index() * count + of_node[node.index()] % count;
            of_node[node.index()] += 1;
        }
        let controller = self.controllers[0].clone();
        self.controllers.resize_with(of_node.len().max(1) * count, || controller.clone());
        let first = self.ports.iter().find(|p| matches!(p.device, Endpoint::Ethernet(_))).map_or(0, |p| p.controller);
        self.shared = s.quirks.shared_with_cores.then(|| SharedPath::new(first));
    }

    /// Lets every device launch its first transfer.
    pub fn start(&mut self, cal: &mut impl DevicePosts, now: Time) {
        for p in self.ports.ids() {
            self.launch(cal, p, now);
        }
    }

    /// Schedules port `p` to ask its device again at time `at`.
    fn wait_until(&mut self, cal: &mut impl DevicePosts, p: PortId, way: DmaDirection, at: Time) {
        self.ports[p].holds[way.index()] = PortHold::Timer;
        cal.post(at, DeviceEvent::Turn { port: p, way });
    }

    /// Takes `n` credits of the packets that port `p` sends in direction `way`. Returns false when fewer are left; the port
    /// then asks its device again once they have come back.
    #[inline]
    fn take_credits(&mut self, cal: &mut impl DevicePosts, p: PortId, way: DmaDirection, n: u32, now: Time) -> bool {
        let port = &mut self.ports[p];
        match port.up.take(credits_of(way), n, now) {
            Ok(()) => return true,
            Err(CreditWait::Until(t)) => self.wait_until(cal, p, way, t),
            Err(CreditWait::Return) => port.holds[way.index()] = PortHold::Credits(n),
        }
        false
    }

    /// Returns `n` credits of direction `way` to the device on port `p`. They reach the device one flight time later, and what
    /// it sends with them takes another.
    #[inline]
    fn return_credits(&mut self, cal: &mut impl DevicePosts, p: PortId, way: DmaDirection, n: u32, now: Time) {
        let port = &mut self.ports[p];
        let back = now + port.up.flight * 2;
        let credits = port.up.credits_mut(credits_of(way));
        credits.give_at(n, back);
        if let PortHold::Credits(n) = port.holds[way.index()] {
            if let CreditWait::Until(at) = credits.wait_for(n) {
                self.wait_until(cal, p, way, at);
            }
        }
    }

    /// Sends the next packet of the device on port `p`, if the device has a packet that may be sent. Usually there is
    /// no such packet.
    #[inline]
    fn launch(&mut self, cal: &mut impl DevicePosts, p: PortId, now: Time) {
        let port = &self.ports[p];
        if port.on_wire.is_none() {
            let may = port.device.may_move();
            if may != [false; 2] && !(self.stopped && port.device.makes_work()) {
                self.launch_one(cal, p, may, now);
            }
        }
    }

    #[inline(never)]
    fn launch_one(&mut self, cal: &mut impl DevicePosts, p: PortId, may: [bool; 2], now: Time) {
        let port = &self.ports[p];
        let (first, second) = (port.turn, port.turn.other());
        let sent = may[first.index()] && self.send(cal, p, first, now);
        if !sent && may[second.index()] {
            self.send(cal, p, second, now);
        }
    }

    /// Sends one packet in direction `way`; returns false when none is ready or allowed.
    fn send(&mut self, cal: &mut impl DevicePosts, p: PortId, way: DmaDirection, now: Time) -> bool {
        let port = &mut self.ports[p];
        if port.holds[way.index()] != PortHold::Open {
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
            DmaDirection::P2mWrite => {
                let n = lines.min(port.framing.payload / LINE_U32 * port.framing.train);
                if !self.take_credits(cal, p, way, n, now) {
                    return false;
                }
                let port = &mut self.ports[p];
                let piece = port.device.take(way, n, now);
                port.on_wire = Some(Tlp::Write(piece, n, piece.tag.encode()));
                let bytes = piece.bytes(n);
                let end = port.up.send(port.framing.writes(bytes, n), now);
                port.framing.acted_on(&port.up, port.framing.last(bytes), end)
            }
            DmaDirection::P2mRead => {
                let n = lines.min(port.framing.request / LINE_U32 * port.framing.train);
                let requests = port.framing.requests(n);
                if let Err(wait) = port.tags.look(requests, now) {
                    if let CreditWait::Until(t) = wait {
                        self.wait_until(cal, p, way, t);
                    }
                    return false; // otherwise the end of a request resumes the port
                }
                if !self.take_credits(cal, p, way, requests, now) {
                    return false;
                }
                let port = &mut self.ports[p];
                port.tags.take(requests, now).expect("they are free");
                let piece = port.device.take(way, n, now);
                let bytes = piece.bytes(n);
                let job = ReadJob { port: p, piece, lines: n, bytes, entries: n, since: now, ..ReadJob::default() };
                let job = self.job(job);
                let port = &mut self.ports[p];
                port.on_wire = Some(Tlp::Read { job });
                // Completions return more slowly than requests are sent, so the data of all requests is counted from
                // the first request.
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
        cal.post(end, DeviceEvent::Tlp(p));
        true
    }

    fn job(&mut self, job: ReadJob) -> ReadJobId {
        if let Some(id) = self.spare.pop() {
            self.jobs[id] = job;
            return id;
        }
        self.jobs.push(job)
    }

    /// Handles `DeviceEvent::Turn`: the time until which direction `way` of port `p` was held has come.
    pub fn on_turn(&mut self, cal: &mut impl DevicePosts, p: PortId, way: DmaDirection, now: Time) {
        self.ports[p].holds[way.index()] = PortHold::Open;
        self.launch(cal, p, now);
    }

    /// Handles `DeviceEvent::Tlp`: the packet on the upstream link of port `p` has arrived, and the device may send the next
    /// one.
    pub fn on_tlp(
        &mut self,
        mem: &mut Memory,
        cal: &mut impl DevicePosts,
        placement: &mut Placement,
        p: PortId,
        now: Time,
    ) {
        let device = self.ports[p].device.kind();
        match self.ports[p].on_wire.take() {
            Some(Tlp::Write(piece, lines, reserved)) => {
                let piece = Piece { tag: Tag::decode(reserved).with_hint_of(piece.tag), ..piece };
                let source = IoWrite { port: p, slot: piece.slot };
                let c = self.controller_of(p);
                let each = self.ports[p].framing.train;
                let whole = lines - u32::from(self.fetch_partial && piece.omits > 0);
                for w in piece.wants(whole, each, source, device) {
                    self.want_write(mem, cal, placement, c, w, now);
                }
                if whole < lines {
                    let line = piece.line + u64::from(whole);
                    let bytes = LINE_U32 - piece.omits.min(LINE_U32);
                    let w = IioRequest { line, lines: 1, partial: true, source, device, tag: piece.tag, bytes };
                    self.want_write(mem, cal, placement, c, w, now);
                }
            }
            Some(Tlp::Read { job }) => {
                let j = self.jobs[job];
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

    /// Controller that port `p` belongs to.
    #[inline]
    fn controller_of(&self, p: PortId) -> usize {
        self.ports[p].controller
    }

    /// Allocates write-buffer entries for lines that have arrived, or queues the lines until entries are free.
    #[inline]
    fn want_write(
        &mut self,
        mem: &mut Memory,
        cal: &mut impl DevicePosts,
        rule: &mut Placement,
        c: usize,
        w: IioRequest<IoWrite>,
        now: Time,
    ) {
        let ctl = &mut self.controllers[c];
        if ctl.writes.is_empty() && ctl.write.free() >= w.lines.into() {
            self.enter_write(mem, cal, rule, c, w, now);
        } else {
            ctl.writes.push_back(w);
        }
    }

    /// Gives free write-buffer entries to the lines that wait for them.
    fn enter_writes(
        &mut self,
        mem: &mut Memory,
        cal: &mut impl DevicePosts,
        placement: &mut Placement,
        c: usize,
        now: Time,
    ) {
        while let Some(&w) = self.controllers[c].writes.front() {
            if self.controllers[c].write.free() < w.lines.into() {
                break;
            }
            self.controllers[c].writes.pop_front();
            self.enter_write(mem, cal, placement, c, w, now);
        }
    }

    /// Allocates write-buffer entries for the lines of `w` and sends the lines to the home agent.
    #[inline]
    fn enter_write(
        &mut self,
        mem: &mut Memory,
        cal: &mut impl DevicePosts,
        rule: &mut Placement,
        c: usize,
        w: IioRequest<IoWrite>,
        now: Time,
    ) {
        let ctl = &mut self.controllers[c];
        ctl.write.force_many(w.lines.into(), now);
        let data = Time((self.line_interval - self.line_header).0 * u64::from(w.bytes) / LINE);
        let at =
            ctl.to_home_agent.admit_last_line(now, self.line_interval, self.line_header + data, w.lines) + self.to_cha;
        let to = rule.write(&w.transfer());
        if to != Inbound::Dram {
            ctl.to_home_agent.owe_write_backs(w.lines.into());
        }
        if w.partial {
            let from = rule.read(&w.transfer());
            let source = Sender::IoMerge(self.fetch(w));
            let t = Txn::dma_read(source, w.classes().1, w.line, 1, now);
            // The line is read for the bytes beyond the frame's end, which nobody uses.
            return mem.send(cal, at, Txn { from, tag: w.tag, ahead: true, ..t });
        }
        let t = Txn::dma_write(write_of(w.source), w.classes().0, to, w.line, w.lines, now);
        mem.send(cal, at, Txn { tag: w.tag, ..t });
    }

    fn fetch(&mut self, w: IioRequest<IoWrite>) -> PartialWriteId {
        if let Some(i) = self.spare_fetches.pop() {
            self.fetches[i] = w;
            return i;
        }
        self.fetches.push(w)
    }

    /// Gives free read-buffer entries to the lines that wait for them.
    fn enter_reads(
        &mut self,
        mem: &mut Memory,
        cal: &mut impl DevicePosts,
        placement: &mut Placement,
        c: usize,
        now: Time,
    ) {
        while let Some(&w) = self.controllers[c].reads.front() {
            if self.controllers[c].read.free() < w.lines.into() {
                break;
            }
            self.controllers[c].reads.pop_front();
            self.enter_read(mem, cal, placement, c, w, now);
        }
    }

    /// Allocates read-buffer entries for the lines of `w` and sends their reads to the home agent. With its last line a
    /// request returns its non-posted credit.
    #[inline]
    fn enter_read(
        &mut self,
        mem: &mut Memory,
        cal: &mut impl DevicePosts,
        rule: &mut Placement,
        c: usize,
        w: IioRequest<ReadJobId>,
        now: Time,
    ) {
        let ctl = &mut self.controllers[c];
        ctl.read.force_many(w.lines.into(), now);
        let at = ctl.to_home_agent.admit_first_line(now, self.line_interval, w.lines) + self.to_cha;
        let from = rule.read(&w.transfer());
        let t = Txn::dma_read(Sender::IoRead(w.source), w.classes().1, w.line, w.lines, now);
        mem.send(cal, at, Txn { from, tag: w.tag, ..t });
        let j = &mut self.jobs[w.source];
        j.entries -= u32::from(w.lines);
        if j.entries == 0 {
            let (p, lines) = (j.port, j.lines);
            let requests = self.ports[p].framing.requests(lines);
            self.return_credits(cal, p, DmaDirection::P2mRead, requests, now);
        }
    }

    /// Handles `memory::MemoryEvent::Fill`: the home agent has answered for the lines of `t`. Returns the port of the
    /// device that sent `t`.
    pub fn on_line(
        &mut self,
        mem: &mut Memory,
        cal: &mut impl DevicePosts,
        placement: &mut Placement,
        t: &Txn,
        now: Time,
    ) -> PortId {
        match t.sender {
            Sender::IoWrite(w) => {
                self.written(mem, cal, placement, w, t, now);
                w.port
            }
            Sender::IoMerge(id) => {
                // The write is complete here; its own way to its destination takes no time that anyone waits for.
                let w = self.fetches[id];
                self.spare_fetches.push(id);
                let to = placement.write(&w.transfer());
                let write = Txn::dma_write(write_of(w.source), w.classes().0, to, w.line, 1, now);
                mem.dma_functional(cal, &Txn { tag: w.tag, ..write });
                self.written(mem, cal, placement, w.source, t, now);
                w.source.port
            }
            Sender::IoRead(job) => {
                let port = self.jobs[job].port;
                self.have_read(mem, cal, placement, job, t, now);
                port
            }
            other => unreachable!("{other:?} is no request of the IIO"),
        }
    }

    /// Ends the write `w` of the lines that `t` answers for.
    #[inline]
    fn written(
        &mut self,
        mem: &mut Memory,
        cal: &mut impl DevicePosts,
        placement: &mut Placement,
        w: IoWrite,
        t: &Txn,
        now: Time,
    ) {
        let IoWrite { port: p, slot } = w;
        let (c, n) = (self.controller_of(p), u32::from(t.lines));
        self.controllers[c].write.give_many(n, now, t.issued);
        self.ports[p].moved += u64::from(n);
        self.return_credits(cal, p, DmaDirection::P2mWrite, n, now);
        if self.ports[p].device.done(cal, DmaDirection::P2mWrite, slot, n, now) {
            self.launch(cal, p, now);
        }
        self.enter_writes(mem, cal, placement, c, now);
    }

    /// Sends the lines of `job` that `t` answers for to the device, in order of addresses.
    #[inline]
    fn have_read(
        &mut self,
        mem: &mut Memory,
        cal: &mut impl DevicePosts,
        placement: &mut Placement,
        job: ReadJobId,
        t: &Txn,
        now: Time,
    ) {
        let p = self.jobs[job].port;
        let (c, n) = (self.controller_of(p), u32::from(t.lines));
        let ctl = &mut self.controllers[c];
        ctl.read.give_many(n, now, t.issued);
        ctl.to_home_agent.owe_write_backs(t.record.into());
        let j = &mut self.jobs[job];
        if self.ports[p].framing.train > 1 {
            // The lines of a train need not be distinguished: the device only learns when the last line is done.
            (0..n).for_each(|_| j.here |= j.here + 1);
        } else {
            j.here |= 1 << (t.line - j.piece.line);
        }
        let port = &mut self.ports[p];
        let payload = port.framing.payload / LINE_U32;
        while j.sent < j.lines {
            // Completions keep the order of addresses within a request.
            let n = payload.min(j.lines - j.sent);
            let want = ((1u64 << n) - 1) << j.sent;
            if j.here & want != want {
                break;
            }
            j.sent += n;
            let bytes = if j.sent == j.lines { j.bytes } else { j.bytes.min(n * LINE_U32) };
            j.bytes -= bytes;
            let end = port.down.send(port.framing.completion(bytes), now);
            if j.sent == j.lines {
                let end = port.framing.acted_on(&port.down, bytes, end);
                let at = end + port.down.flight * 2;
                let took = at - j.since;
                self.shortest_read = Some(self.shortest_read.map_or(took, |shortest| shortest.min(took)));
                let requests = port.framing.requests(j.lines);
                let ends = port.device.expect(j.piece.slot, j.lines);
                let mut wait = false;
                if ends.is_some() {
                    let open = port.holds[DmaDirection::P2mRead.index()] == PortHold::Open;
                    wait = open && port.tags.look(requests, now) == Err(CreditWait::Return);
                    port.tags.give_at(requests, at);
                }
                if ends == Some(false) {
                    port.moved += u64::from(j.lines);
                    self.spare.push(job);
                } else {
                    j.returned = ends.is_some();
                    cal.post(at, DeviceEvent::Completed(job));
                }
                if wait {
                    self.wait_until(cal, p, DmaDirection::P2mRead, at); // a request may wait for the tag that has become free
                }
                break;
            }
        }
        self.enter_reads(mem, cal, placement, c, now);
    }

    /// Handles `DeviceEvent::Completed`: all data of a read request has reached its device.
    pub fn on_completed(&mut self, cal: &mut impl DevicePosts, job: ReadJobId, now: Time) {
        let j = self.jobs[job];
        self.jobs[job].returned = false;
        self.spare.push(job);
        let p = j.port;
        if !j.returned {
            let requests = self.ports[p].framing.requests(j.lines);
            self.ports[p].tags.give(requests, now);
        }
        self.ports[p].moved += u64::from(j.lines);
        self.ports[p].device.done(cal, DmaDirection::P2mRead, j.piece.slot, j.lines, now);
        self.launch(cal, p, now);
    }

    /// Moves `lines` lines of each writing device in functional mode, without timing.
    pub fn write_functional(
        &mut self,
        mem: &mut Memory,
        cal: &mut impl DevicePosts,
        placement: &mut Placement,
        lines: u64,
    ) {
        for port in &mut self.ports {
            let mut moved = 0;
            while moved < lines {
                let Some((line, n)) = port.device.write_functional() else { break };
                let to = placement.write(&DeviceTransfer::of(Agent::Io, port.device.kind(), line));
                let t = Txn::dma_write(Sender::Io, AccessClass::IoWr, to, line, n.to_u16(), Time::ZERO);
                mem.dma_functional(cal, &t);
                moved += u64::from(n);
            }
        }
    }

    /// The Ethernet NIC on `port`; None where the port has another device, or none.
    #[inline]
    pub fn nic(&self, port: PortId) -> Option<&Nic> {
        match &self.ports.get(port)?.device {
            Endpoint::Ethernet(nic) => Some(nic),
            _ => None,
        }
    }

    /// The Ethernet NIC on `port`, for writing.
    #[inline]
    pub fn nic_mut(&mut self, port: PortId) -> Option<&mut Nic> {
        match &mut self.ports.get_mut(port)?.device {
            Endpoint::Ethernet(nic) => Some(nic),
            _ => None,
        }
    }

    /// All Ethernet NICs with their ports, in the order of the ports.
    pub fn nics(&self) -> impl Iterator<Item = (PortId, &Nic)> {
        self.ports.ids().filter_map(|port| Some((port, self.nic(port)?)))
    }

    /// All Ethernet NICs, in the order of their ports.
    pub fn nics_mut(&mut self) -> impl Iterator<Item = &mut Nic> {
        self.ports.iter_mut().filter_map(|p| match &mut p.device {
            Endpoint::Ethernet(nic) => Some(&mut **nic),
            _ => None,
        })
    }

    /// The Ethernet NIC on `port`, where the caller knows that there is one.
    fn nic_on(&mut self, port: PortId) -> &mut Nic {
        self.nic_mut(port).unwrap_or_else(|| panic!("port {port} has no NIC"))
    }

    /// Hands a packet from the wire to the NIC on `port`.
    ///
    /// # Errors
    /// Returns the cause when the packet is dropped on arrival.
    ///
    /// # Panics
    /// Panics when `port` has no NIC.
    pub fn arrive(
        &mut self,
        cal: &mut impl DevicePosts,
        port: PortId,
        packet: Packet,
        now: Time,
    ) -> Result<(), DropCause> {
        self.nic_on(port).arrive(cal, packet, now)?;
        self.launch(cal, port, now);
        Ok(())
    }

    /// Sends a doorbell for packet `id`'s reply, which has reached the IIO, down the link to the NIC on `port`.
    ///
    /// # Panics
    /// Panics when `port` has no NIC.
    pub fn post(&mut self, cal: &mut impl DevicePosts, port: PortId, id: PacketId, now: Time) {
        self.nic_on(port).ring(id);
        let at = self.write_register(port, DOORBELL, now);
        cal.post(at, DeviceEvent::NicTx(NicAt::Port(port), id));
    }

    /// Time at which the NIC on `port` acts on a register write of `bytes` bytes that is at the IIO now.
    fn write_register(&mut self, port: PortId, bytes: u32, now: Time) -> Time {
        let port = &mut self.ports[port];
        let end = port.down.send(port.framing.write(bytes), now);
        end + port.down.flight * 2 + self.register_write
    }

    /// Time from a register write at the IIO to its answer there, where register writes are answered.
    pub fn register_round_trip(&self) -> Option<Time> {
        let flight = self.ports.iter().map(|p| p.down.flight).max()?;
        Some(flight * 2 + self.register_write + self.register_answer?)
    }

    /// Handles `DeviceEvent::NicTx` of the NIC on `port`: a doorbell has arrived, or a reply has left. Returns true once
    /// the reply is sent.
    ///
    /// # Panics
    /// Panics when `port` has no NIC.
    pub fn on_nic_tx(&mut self, cal: &mut impl DevicePosts, port: PortId, id: PacketId, now: Time) -> bool {
        let sent = self.nic_on(port).on_tx_port(id, now);
        self.launch(cal, port, now); // a doorbell is work, and a frame that has left makes room
        sent
    }

    /// Sends a doorbell for `n` descriptors of `queue`'s ring on `side`, which has reached the IIO, down the link to
    /// the NIC on `port`.
    pub fn ring(
        &mut self,
        cal: &mut impl DevicePosts,
        port: PortId,
        queue: QueueId,
        side: RingSide,
        n: u32,
        now: Time,
    ) {
        let at = self.write_register(port, TAIL, now);
        if let Some(l) = self.nic_on(port).lives.as_mut().filter(|_| side == RingSide::Transmit) {
            l.posted(queue, n);
        }
        cal.post(at, DeviceEvent::Ring { port, queue, task: RingTask::Tail(side), n: n.to_u16() });
    }

    /// Sends a core's store of `bytes` bytes, which has reached the IIO, to the device on the first port; returns the
    /// time at which the store has left on the link. The device accepts every store.
    pub fn store(&mut self, bytes: u32, now: Time) -> Time {
        let port = &mut self.ports[PortId(0)];
        port.down.send(port.framing.write(bytes), now)
    }

    /// Sends a core's load, which has reached the IIO, to the device on the first port; returns the time at which the
    /// device answers.
    pub fn load(&mut self, now: Time) -> Time {
        let port = &mut self.ports[PortId(0)];
        port.down.send(port.framing.read_request.into(), now) + port.down.flight * 2
    }

    /// Sends the answer of the device on the first port to a load of `bytes` bytes; returns the time at which the home
    /// agent has the data.
    pub fn answer(&mut self, bytes: u32, now: Time) -> Time {
        let port = &mut self.ports[PortId(0)];
        port.up.send(port.framing.completion(bytes), now) + self.to_cha
    }

    /// Handles `DeviceEvent::Ring`: a task is due at a queue of the NIC on `port`.
    ///
    /// # Panics
    /// Panics when `port` has no NIC.
    pub fn on_ring(
        &mut self,
        cal: &mut impl DevicePosts,
        port: PortId,
        queue: QueueId,
        task: RingTask,
        n: u32,
        now: Time,
    ) {
        self.nic_on(port).on_ring(cal, queue, task, n, now);
        self.launch(cal, port, now);
    }

    /// Whether the device on port `p` is a NIC with packets that have become visible to software.
    #[inline]
    pub fn has_landed(&self, p: PortId) -> bool {
        self.nic(p).is_some_and(Nic::has_landed)
    }

    /// Port, and the packet of its NIC, whose lines request `t` moves; None for descriptors and other devices.
    pub fn packet_of(&self, t: &Txn) -> Option<(PortId, PacketId)> {
        let (port, slot, write) = match t.sender {
            Sender::IoWrite(w) => (w.port, w.slot, true),
            Sender::IoMerge(id) => (self.fetches[id].source.port, self.fetches[id].source.slot, true),
            Sender::IoRead(job) => (self.jobs[job].port, self.jobs[job].piece.slot, false),
            _ => return None,
        };
        Some((port, self.nic(port)?.packet_in(slot, write)?))
    }

    /// Write-buffer entries in use at the controller of port `p`.
    pub fn held_writes(&self, p: PortId) -> u32 {
        self.controllers[self.controller_of(p)].write.used()
    }

    /// All devices, in the order of their ports.
    pub fn devices(&self) -> impl Iterator<Item = &Endpoint> {
        self.ports.iter().map(|p| &p.device)
    }
}
