//! TCP receivers on a host: senders beyond the wire, the NIC, the kernel's path on each core and the application.

use super::Host;
use crate::app::{App, AppSpec};
use crate::config::scenario::PeripheralSpec;
use crate::config::Scenario;
use crate::core::{Op, Program};
use crate::device::netdev::{EthernetSpec, Frame, FrameCounts, NetDev};
use crate::device::response::Responder;
use crate::kernel::{Event, Time};
use crate::memory::LINE;
use crate::meter::Values;
use crate::stack::tcp::{Choice, Layout, Places, Received, Receiver};
use crate::traffic::dctcp::{Ack, Senders};

/// Weight of a frame's look at the IIO in the average (hostCC's for occupancy).
const WEIGHT: f64 = 1.0 / 8.0;

/// Connections, one to each core of a tenant.
#[derive(Clone)]
pub struct Tcp {
    pub tenant: usize,
    /// The host's cores that the tenant has.
    pub cores: Vec<u16>,
    receivers: Vec<Receiver>,
    senders: Senders,
    /// Bytes of payload in a segment, and of its frame in memory.
    payload: u64,
    frame: u64,
    /// IIO entries from which on the host marks, and those in use on average.
    host_mark: Option<u32>,
    held: f64,
    responder: Option<Responder>,
    /// At the start of the window: frames counted, segments copied, segments sent again.
    before: (FrameCounts, u64, u64, u64),
}

/// The tenant that receives and its NIC.
pub fn parts(s: &Scenario) -> Option<(usize, &EthernetSpec)> {
    let tenant = s.tenants.iter().position(|t| matches!(t.app, AppSpec::TcpReceive(_)))?;
    let nic = s.peripherals.iter().find_map(|p| match p {
        PeripheralSpec::Ethernet(e) => Some(e),
        _ => None,
    })?;
    Some((tenant, nic))
}

impl Tcp {
    pub fn new(s: &Scenario, cores: &[u16]) -> Option<Tcp> {
        let (tenant, nic) = parts(s)?;
        let costs = s.platform.tcp.as_ref()?;
        let layout = Layout { frame: nic.frame_lines(), page: nic.page.0 / LINE };
        let receiver = || Receiver::new(costs, layout, nic.payload(), nic.moderation.into(), nic.moderation_frames);
        let receivers: Vec<Receiver> = cores.iter().map(|_| receiver()).collect();
        let edge = receivers.first().map_or(0, Receiver::first_edge);
        let dctcp = s.traffic.dctcp.clone().unwrap_or_default();
        let flows = cores.len() as u8;
        let senders = Senders::new(&dctcp, flows, edge, nic.frame_bytes(), nic.span(), nic.propagation.into());
        Some(Tcp {
            tenant,
            cores: cores.to_vec(),
            receivers,
            senders,
            payload: nic.payload(),
            frame: nic.frame_bytes(),
            host_mark: nic.host_mark,
            held: 0.0,
            responder: nic.host_response.clone().map(Responder::new),
            before: Default::default(),
        })
    }

    /// Whether a frame that finds `held` IIO entries in use is to be marked.
    fn host_congested(&mut self, held: u32) -> bool {
        self.held += WEIGHT * (f64::from(held) - self.held);
        self.host_mark.is_some_and(|mark| self.held >= f64::from(mark))
    }

    fn copied(&self) -> u64 {
        self.receivers.iter().map(|r| u64::from(r.copied)).sum()
    }
    fn again(&self) -> u64 {
        self.senders.flows.iter().map(|f| f.retransmitted).sum()
    }
    /// Payload that applications have, in bytes.
    pub fn delivered_bytes(&self) -> u64 {
        self.copied() * self.payload
    }
}

/// A queue's memory, for its receiver.
struct Memory<'a> {
    nic: &'a mut NetDev,
    queue: usize,
}

impl Places for Memory<'_> {
    fn line(&mut self, at: u64) -> u64 {
        self.nic.line(self.queue, at)
    }
    fn structure(&mut self, at: u64) -> u64 {
        self.nic.structure(self.queue, at)
    }
}

impl Host {
    /// Caches without timing: the structures of all pages have been written when the pages were handed to the NIC.
    pub(super) fn warm_tcp(&mut self, program: &mut Program) {
        let (Some(tcp), Some(iio)) = (&self.tcp, &self.iio) else { return };
        let Some(nic) = iio.ethernet() else { return };
        let cores: Vec<_> = tcp.cores.iter().enumerate().map(|(i, c)| (*c, nic.structures(i))).collect();
        for (core, lines) in cores {
            program.ops.clear();
            program.push(Op::Store { line: lines.start, lines: (lines.end - lines.start) as u32 });
            self.execute_at_once(core, program);
        }
    }

    pub(super) fn start_tcp(&mut self) {
        if let Some(tcp) = &mut self.tcp {
            tcp.senders.start(&mut self.cal, self.now);
        }
    }

    pub(super) fn stop_tcp(&mut self) {
        if let Some(tcp) = &mut self.tcp {
            tcp.senders.stopped = true;
        }
    }

    /// Events of the network.
    pub(super) fn on_network(&mut self, e: Event) {
        let now = self.now;
        let (Some(tcp), Some(iio)) = (&mut self.tcp, &mut self.iio) else { return };
        match e {
            Event::Emit(port) => tcp.senders.on_emit(&mut self.cal, port.into(), now),
            Event::Ack => tcp.senders.on_ack(&mut self.cal, now),
            Event::Probe(flow) => tcp.senders.on_probe(&mut self.cal, flow.into(), now),
            Event::Segment => {
                let s = tcp.senders.arriving();
                let Some((port, _)) = iio.netdev() else { return };
                let congested = tcp.host_congested(iio.held_writes(port));
                let Some((_, nic)) = iio.netdev() else { return };
                let frame = Frame { queue: s.flow, seq: s.seq, marked: s.marked || congested, ..Frame::default() };
                let bytes = nic.counts.delivered * tcp.frame;
                if nic.arrive(frame) {
                    iio.kick(&mut self.cal, port, now);
                }
                let delay = tcp.responder.as_mut().and_then(|r| r.look(tcp.held, bytes, now));
                if let Some(delay) = delay {
                    self.hold_back(delay);
                }
            }
            Event::Interrupt(core) if self.cores[core as usize].idle => {
                self.cores[core as usize].idle = false;
                self.tcp_work(core as usize);
            }
            _ => {}
        }
    }

    /// From now on misses of applications that do not receive wait longer for a line fill buffer.
    fn hold_back(&mut self, delay: Time) {
        let receivers = self.tcp.as_ref().map(|t| t.tenant);
        for (c, cpu) in self.cores.iter().zip(&mut self.cpus) {
            let tenant = usize::from(c.tenant);
            if tenant < self.apps.len() && Some(tenant) != receivers {
                cpu.hold_back(delay);
            }
        }
    }

    /// Frames that are wholly in memory come to their cores' notice.
    pub(super) fn frames_landed(&mut self) {
        let (Some(tcp), Some(iio)) = (&mut self.tcp, &mut self.iio) else { return };
        let Some((_, nic)) = iio.netdev() else { return };
        while let Some(f) = nic.landed() {
            let received = Received { seq: f.seq, marked: f.marked, completion: f.completion, at: f.at, last: false };
            let core = tcp.cores[f.queue as usize];
            if let Some(due) = tcp.receivers[f.queue as usize].landed(received, self.now) {
                if self.cores[core as usize].idle {
                    self.cal.push(due, Event::Interrupt(core));
                }
            }
        }
    }

    /// A core of the receivers ends a step and begins the next.
    pub(super) fn tcp_work(&mut self, core: usize) {
        let now = self.now;
        let (Some(tcp), Some(iio), Some(costs)) = (&mut self.tcp, &mut self.iio, &self.spec.platform.tcp) else {
            return;
        };
        let i = usize::from(self.cores[core].local);
        let Some((_, nic)) = iio.netdev() else { return };
        let r = &mut tcp.receivers[i];
        let (opened, descriptors) = r.end(now);
        nic.replenish(i, descriptors);
        let (next, edge) = if opened || !r.merged().is_empty() { r.tell() } else { (0, 0) };
        let flow = i as u8;
        for m in r.merged() {
            let ack = Ack { flow, next: m.next, from: m.from, to: m.to, edge, marked: m.marked };
            tcp.senders.acknowledge(&mut self.cal, ack, now);
        }
        if opened {
            let ack = Ack { flow, next, from: next, to: next, edge, marked: 0 };
            tcp.senders.acknowledge(&mut self.cal, ack, now);
        }
        let choice = if self.stopped { Choice::Nothing } else { r.choose(now) };
        let cpu = &mut self.cpus[core];
        cpu.program.ops.clear();
        let mut places = Memory { nic, queue: i };
        match choice {
            Choice::Poll => r.poll(costs, &mut cpu.program, &mut places),
            Choice::Copy => {
                let App::TcpReceive(app) = &self.apps[tcp.tenant] else { return };
                r.copy(costs, &mut cpu.program, (app.buffer(i), app.between), &mut places);
            }
            Choice::Release => r.release(costs, &mut cpu.program, &mut places),
            Choice::Until(at) => {
                self.cores[core].idle = true;
                return self.cal.push(at.max(now), Event::Interrupt(core as u16));
            }
            Choice::Nothing => {
                self.cores[core].idle = true;
                return;
            }
        }
        r.since = now;
        let end = cpu.start(&mut self.mem, &mut self.cal, now);
        self.ends(core, end);
    }

    pub(super) fn restart_tcp(&mut self) {
        let (Some(tcp), Some(iio)) = (&mut self.tcp, &mut self.iio) else { return };
        let counts = iio.netdev().map_or(FrameCounts::default(), |(_, n)| n.counts);
        tcp.before = (counts, tcp.copied(), tcp.again(), tcp.senders.sent);
        tcp.senders.restart_meters();
        if let Some(r) = &mut tcp.responder {
            r.restart_meters(self.now);
        }
        for r in &mut tcp.receivers {
            r.restart_meters(self.now);
        }
    }

    /// Sets the metrics of TCP receivers.
    pub(super) fn tcp_metrics(&self, v: &mut Values) {
        let (Some(tcp), Some(iio)) = (&self.tcp, &self.iio) else { return };
        let Some(nic) = iio.ethernet() else { return };
        let span = (self.now - self.window.start).0.max(1) as f64;
        let (counts, copied, again, sent) = tcp.before;
        v.set("net_gbs", (tcp.copied() - copied) as f64 * tcp.payload as f64 / span * 1e3);
        let lost = (nic.counts.lost() - counts.lost()) as f64;
        v.set("drops", lost);
        v.set("packet_loss", lost / (nic.counts.offered - counts.offered) as f64);
        v.set("nic_buffer_peak_kib", nic.peak() as f64 / 1024.0);
        v.set("tcp_retransmits", (tcp.again() - again) as f64 / (tcp.senders.sent - sent) as f64);
        let (rtt, window, alpha) = tcp.senders.state();
        v.set("tcp_rtt_us", rtt / 1e3);
        v.set("tcp_cwnd", window);
        v.set("dctcp_alpha", alpha);
        if let Some(r) = &tcp.responder {
            v.set("host_level", r.mean_level());
        }
        let sum = |f: fn(&Receiver) -> Time| tcp.receivers.iter().map(|r| f(r).0).sum::<u64>() as f64;
        let calls = sum(|r| r.busy.calls);
        let (poll, copy) = (sum(|r| r.busy.poll), sum(|r| r.busy.copy) - calls);
        let busy = poll + copy + calls + sum(|r| r.busy.release);
        v.set("net_busy", busy / span);
        v.set("net_copy_share", copy / busy);
        v.set("net_poll_share", poll / busy);
        let reads = self.mem.stats.tenants.get(tcp.tenant).map_or(0, |t| t.llc_misses);
        v.set("mem_net_read_gbs", reads as f64 * LINE as f64 / span * 1e3);
    }

    /// # Errors
    /// One sentence about segments that are not conserved.
    pub(super) fn check_tcp(&self) -> Result<(), String> {
        let Some(tcp) = &self.tcp else { return Ok(()) };
        tcp.senders.check()?;
        let mut kept = 0;
        for r in &tcp.receivers {
            r.check()?;
            let (in_order, waiting) = r.holds();
            kept += u64::from(in_order) + waiting + r.duplicates;
        }
        let counts = self.iio.as_ref().and_then(|i| i.ethernet()).map_or(FrameCounts::default(), |n| n.counts);
        if counts.delivered != kept {
            return Err(format!("{} frames were delivered, the kernel knows of {kept}", counts.delivered));
        }
        let out = counts.offered + tcp.senders.on_wire() + tcp.senders.dropped;
        if tcp.senders.sent != out {
            return Err(format!("{} segments were sent, {out} are accounted for", tcp.senders.sent));
        }
        Ok(())
    }
}
