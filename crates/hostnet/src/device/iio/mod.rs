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

pub use spec::IioSpec;

use super::endpoint::{DmaDirection, Endpoint, Offer, Piece};
use super::nic::{Nic, Packet};
use super::pcie::{PcieSpec, NON_POSTED, POSTED};
use crate::device::{DeviceEvent, DevicePosts, NicAt, RingSide, RingTask};
use crate::flow::domain::Domain;
use crate::flow::{CreditWait, Credits};
use crate::kernel::{IdVec, Int, PacketId, PortId, QueueId, Time};
use crate::memory::stats::AccessClass;
use crate::memory::{Agent, Inbound, Memory, Tag, Txn, TxnOp, LINE, LINE_U32};
use crate::meter::drops::DropCause;
use crate::placement::{DeviceTransfer, Placement};
use parts::{HomeAgentPath, IioController, IioPort, IioRequest, PortHold, ReadJob, Tlp};
use shared_path::SharedPath;
use std::collections::VecDeque;

/// Bytes of a doorbell's register write.
const DOORBELL: u32 = 8;
/// Bytes of the write to a ring's tail register.
const TAIL: u32 = 4;

/// Bit of a request's identifier that marks the read of a line before a partial write; the other bits name the write.
const FETCH: u32 = 1 << 31;

/// Integrated I/O controllers of a host, with their PCIe ports and the devices on the ports.
#[derive(Clone)]
pub struct Iio {
    controllers: Vec<IioController>,
    shared: Option<SharedPath>,
    to_cha: Time,
    line_interval: Time,
    line_header: Time,
    ports: IdVec<PortId, IioPort>,
    /// Port to which the NIC is attached.
    nic: Option<PortId>,
    jobs: Vec<ReadJob>,
    spare: Vec<u32>,
    fetch_partial: bool,
    /// Partial writes whose lines are being read.
    fetches: Vec<IioRequest>,
    spare_fetches: Vec<u32>,
    register_write: Time,
    /// Whether devices send nothing new, so that the machine drains.
    pub stopped: bool,
    since: Time,
    completed_before: u64,
    /// Shortest time that a device read has taken since the restart, from request to last data, as the device sees it.
    shortest_read: Time,
}

impl Iio {
    /// Makes the controllers; `devices` gives each device with the lanes of its port and its maximum number of
    /// outstanding read requests.
    pub fn new(s: &IioSpec, pcie: &PcieSpec, devices: Vec<(Endpoint, u32, u32)>) -> Iio {
        let nic = devices.iter().position(|d| matches!(d.0, Endpoint::Ethernet(_))).map(PortId::new);
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
            to_home_agent: HomeAgentPath::new(s.write_back_interval.into(), s.write_back_buffer),
        };
        Iio {
            controllers: (0..s.count).map(controller).collect(),
            shared: s.shared_with_cores.then(|| SharedPath::new(nic.unwrap_or_default().index() % s.count.to_usize())),
            to_cha: s.to_cha.into(),
            line_interval: s.line_interval.into(),
            line_header: s.line_header.unwrap_or(s.line_interval).into(),
            nic,
            ports: devices.into_iter().enumerate().map(port).collect(),
            jobs: Vec::with_capacity(1024),
            spare: Vec::with_capacity(1024),
            fetch_partial: s.fetch_partial,
            fetches: Vec::new(),
            spare_fetches: Vec::new(),
            register_write: s.register_write.into(),
            stopped: false,
            since: Time::ZERO,
            completed_before: 0,
            shortest_read: Time::MAX,
        }
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
                match port.up.take(POSTED, n, now) {
                    Ok(()) => {}
                    Err(CreditWait::Until(t)) => {
                        self.wait_until(cal, p, way, t);
                        return false;
                    }
                    Err(CreditWait::Return) => {
                        port.holds[way.index()] = PortHold::Credits(n);
                        return false;
                    }
                }
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
                if port.up.take(NON_POSTED, requests, now).is_err() {
                    return false; // the end of a request's wait for entries resumes the port
                }
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

    fn job(&mut self, job: ReadJob) -> u32 {
        if let Some(id) = self.spare.pop() {
            self.jobs[id.to_usize()] = job;
            return id;
        }
        self.jobs.push(job);
        (self.jobs.len() - 1).to_u32()
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
                let piece = Piece { tag: Tag::decode(reserved), ..piece };
                let who = u32::from(p.0) << 16 | u32::from(piece.slot);
                let c = self.controller_of(p);
                let each = self.ports[p].framing.train;
                let whole = lines - u32::from(self.fetch_partial && piece.omits > 0);
                for w in piece.wants(whole, each, who, device) {
                    self.want_write(mem, cal, placement, c, w, now);
                }
                if whole < lines {
                    let line = piece.line + u64::from(whole);
                    let bytes = LINE_U32 - piece.omits.min(LINE_U32);
                    let w = IioRequest { line, lines: 1, partial: true, who, device, tag: piece.tag, bytes };
                    self.want_write(mem, cal, placement, c, w, now);
                }
            }
            Some(Tlp::Read { job }) => {
                let j = self.jobs[job.to_usize()];
                let c = self.controller_of(p);
                for w in j.piece.wants(j.lines, self.ports[p].framing.train, job, device) {
                    let ctl = &mut self.controllers[c];
                    if ctl.reads.is_empty() && ctl.read.free() >= w.lines.into() {
                        self.enter_read(mem, cal, placement, c, w, now); // the device continues below
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
        w: IioRequest,
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
        w: IioRequest,
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
            let who = FETCH | self.fetch(w);
            let t = Txn::dma_read(Agent::Io, w.classes().1, w.line, 1, who, now);
            // The line is read for the bytes beyond the frame's end, which no agent uses.
            return mem.send(cal, at, Txn { from, tag: w.tag, ahead: true, ..t });
        }
        let t = Txn::dma_write(Agent::Io, w.classes().0, to, w.line, w.lines, w.who, now);
        mem.send(cal, at, Txn { tag: w.tag, ..t });
    }

    fn fetch(&mut self, w: IioRequest) -> u32 {
        if let Some(i) = self.spare_fetches.pop() {
            self.fetches[i.to_usize()] = w;
            return i;
        }
        self.fetches.push(w);
        (self.fetches.len() - 1).to_u32()
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
            if self.enter_read(mem, cal, placement, c, w, now) {
                self.launch(cal, self.jobs[w.who.to_usize()].port, now);
            }
        }
    }

    /// Allocates read-buffer entries for the lines of `w` and sends their reads to the home agent. With its last line,
    /// a request returns its non-posted credit; the function then returns true, because the device may send again.
    #[inline]
    fn enter_read(
        &mut self,
        mem: &mut Memory,
        cal: &mut impl DevicePosts,
        rule: &mut Placement,
        c: usize,
        w: IioRequest,
        now: Time,
    ) -> bool {
        let ctl = &mut self.controllers[c];
        ctl.read.force_many(w.lines.into(), now);
        let at = ctl.to_home_agent.admit_first_line(now, self.line_interval, w.lines) + self.to_cha;
        let from = rule.read(&w.transfer());
        let t = Txn::dma_read(Agent::Io, w.classes().1, w.line, w.lines, w.who, now);
        mem.send(cal, at, Txn { from, tag: w.tag, ..t });
        let j = &mut self.jobs[w.who.to_usize()];
        j.entries -= u32::from(w.lines);
        if j.entries > 0 {
            return false;
        }
        let (p, lines) = (j.port, j.lines);
        let requests = self.ports[p].framing.requests(lines);
        self.ports[p].up.credits_mut(NON_POSTED).give(requests, now);
        true
    }

    /// Handles `memory::MemoryEvent::Fill`: the home agent has answered for the lines of `t`.
    pub fn on_line(
        &mut self,
        mem: &mut Memory,
        cal: &mut impl DevicePosts,
        placement: &mut Placement,
        t: &Txn,
        now: Time,
    ) {
        let p = self.port_of(t);
        let c = self.controller_of(p);
        let n = u32::from(t.lines);
        let fetched = t.op == TxnOp::DmaRead && t.who & FETCH != 0;
        if t.op == TxnOp::DmaWrite || fetched {
            let mut slot = t.who.low_u16();
            if fetched {
                // The write is complete at this point; nothing waits for its path to the destination.
                let i = t.who & !FETCH;
                let w = self.fetches[i.to_usize()];
                self.spare_fetches.push(i);
                slot = w.who.low_u16();
                let to = placement.write(&w.transfer());
                let t = Txn::dma_write(Agent::Io, w.classes().0, to, w.line, 1, w.who, now);
                mem.dma_functional(cal, &Txn { tag: w.tag, ..t });
            }
            self.controllers[c].write.give_many(n, now, t.issued);
            let port = &mut self.ports[p];
            port.moved += u64::from(n);
            let back = now + port.up.flight * 2;
            let posted = port.up.credits_mut(POSTED);
            posted.give_at(n, back);
            if let PortHold::Credits(n) = port.holds[DmaDirection::P2mWrite.index()] {
                if let CreditWait::Until(at) = posted.wait_for(n) {
                    self.wait_until(cal, p, DmaDirection::P2mWrite, at);
                }
            }
            if self.ports[p].device.done(cal, DmaDirection::P2mWrite, slot, n, now) {
                self.launch(cal, p, now);
            }
            return self.enter_writes(mem, cal, placement, c, now);
        }
        let ctl = &mut self.controllers[c];
        ctl.read.give_many(n, now, t.issued);
        ctl.to_home_agent.owe_write_backs(t.record.into());
        let j = &mut self.jobs[t.who.to_usize()];
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
                self.shortest_read = self.shortest_read.min(at - j.since);
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
                    self.spare.push(t.who);
                } else {
                    j.returned = ends.is_some();
                    cal.post(at, DeviceEvent::Completed(t.who));
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
    pub fn on_completed(&mut self, cal: &mut impl DevicePosts, job: u32, now: Time) {
        let j = self.jobs[job.to_usize()];
        self.jobs[job.to_usize()].returned = false;
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
                let t = Txn::dma_write(Agent::Io, AccessClass::IoWr, to, line, n.to_u16(), 0, Time::ZERO);
                mem.dma_functional(cal, &t);
                moved += u64::from(n);
            }
        }
    }

    /// The NIC that is attached to a port, with its port number, if there is one.
    #[inline]
    pub fn nic(&mut self) -> Option<(PortId, &mut Nic)> {
        let port = self.nic?;
        match &mut self.ports[port].device {
            Endpoint::Ethernet(d) => Some((port, d)),
            _ => None,
        }
    }

    /// Hands a packet from the wire to the NIC on a port.
    ///
    /// # Errors
    /// Returns the cause when the packet is dropped on arrival.
    pub fn arrive(&mut self, cal: &mut impl DevicePosts, packet: Packet, now: Time) -> Result<(), DropCause> {
        let (port, nic) = self.nic().expect("a NIC on a port");
        nic.arrive(cal, packet, now)?;
        self.launch(cal, port, now);
        Ok(())
    }

    /// Sends a doorbell for packet `id`'s reply, which has reached the IIO, down the link to the NIC on a port.
    pub fn post(&mut self, cal: &mut impl DevicePosts, id: PacketId, now: Time) {
        let (port, nic) = self.nic().expect("a NIC on a port");
        nic.ring(id);
        let port = &mut self.ports[port];
        let end = port.down.send(port.framing.write(DOORBELL), now);
        let at = end + port.down.flight * 2 + self.register_write;
        cal.post(at, DeviceEvent::NicTx(NicAt::Port, id));
    }

    /// Handles `DeviceEvent::NicTx` of the NIC on a port: a doorbell has arrived, or a reply has left. Returns true once the
    /// reply is sent.
    pub fn on_nic_tx(&mut self, cal: &mut impl DevicePosts, id: PacketId, now: Time) -> bool {
        let (port, nic) = self.nic().expect("a NIC on a port");
        let sent = nic.on_tx_port(id, now);
        self.launch(cal, port, now); // a doorbell brings work, and a frame that has left makes room
        sent
    }

    /// Sends a doorbell for `n` descriptors of `queue`'s ring on `side`, which has reached the IIO, down the link to
    /// the NIC on a port.
    pub fn ring(&mut self, cal: &mut impl DevicePosts, queue: QueueId, side: RingSide, n: u32, now: Time) {
        let (port, _) = self.nic().expect("a NIC on a port");
        let port = &mut self.ports[port];
        let end = port.down.send(port.framing.write(TAIL), now);
        let at = end + port.down.flight * 2 + self.register_write;
        cal.post(at, DeviceEvent::Ring { queue, task: RingTask::Tail(side), n: n.to_u16() });
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

    /// Handles `DeviceEvent::Ring`: a task is due at a queue of the NIC on a port.
    pub fn on_ring(&mut self, cal: &mut impl DevicePosts, queue: QueueId, task: RingTask, n: u32, now: Time) {
        let (port, nic) = self.nic().expect("a NIC on a port");
        nic.on_ring(cal, queue, task, n, now);
        self.launch(cal, port, now);
    }

    /// Whether the device on port `p` is a NIC with packets that have become visible to software.
    #[inline]
    pub fn has_landed(&self, p: PortId) -> bool {
        matches!(&self.ports[p].device, Endpoint::Ethernet(n) if n.has_landed())
    }

    /// Port of the device that issued transaction `t`.
    #[inline]
    pub fn port_of(&self, t: &Txn) -> PortId {
        if t.op == TxnOp::DmaWrite {
            PortId((t.who >> 16).to_u16())
        } else if t.who & FETCH != 0 {
            PortId((self.fetches[(t.who & !FETCH).to_usize()].who >> 16).to_u16())
        } else {
            self.jobs[t.who.to_usize()].port
        }
    }

    /// Write-buffer entries in use at the controller of port `p`.
    pub fn held_writes(&self, p: PortId) -> u32 {
        self.controllers[self.controller_of(p)].write.used()
    }

    /// The NIC that is attached to a port, by shared reference, if there is one.
    pub fn nic_ref(&self) -> Option<&Nic> {
        match &self.ports[self.nic?].device {
            Endpoint::Ethernet(d) => Some(d),
            _ => None,
        }
    }

    /// All devices, in the order of their ports.
    pub fn devices(&self) -> impl Iterator<Item = &Endpoint> {
        self.ports.iter().map(|p| &p.device)
    }
}
