//! The network of TCP receivers: senders beyond the wire, the NIC, and the signals and responses of a congested host.

use super::threads::tcp_receiver;
use super::Host;
use crate::app::AppSpec;
use crate::config::scenario::PeripheralSpec;
use crate::config::Scenario;
use crate::core::Op;
use crate::device::nic::{EthernetSpec, Nic, NicCounts, Packet};
use crate::device::response::Responder;
use crate::device::NicAt;
use crate::kernel::{Int, PacketId, QueueId, TenantId, ThreadId, Time};
use crate::memory::LINE;
use crate::meter::drops::DropLedger;
use crate::meter::Values;
use crate::stack::tcp::{ReceivedFrame, Receiver};
use crate::stack::{Notice, Thread};
use crate::traffic;
use crate::traffic::dctcp::Senders;

/// Weight of a frame's sample of the IIO's occupancy in the moving average (the weight that hostCC uses for occupancy).
const WEIGHT: f64 = 1.0 / 8.0;

/// TCP connections, one to each core of a tenant.
#[derive(Clone)]
pub struct Network {
    pub tenant: TenantId,
    /// The tenant's cores, by their number on the host.
    pub cores: Vec<ThreadId>,
    pub senders: Senders,
    /// Bytes of payload in a segment.
    payload: u64,
    /// Number of bytes of a segment's frame in memory.
    frame: u64,
    /// Number of IIO entries in use at or above which the host marks frames.
    host_mark: Option<u32>,
    /// Moving average of the entries in use.
    held: f64,
    responder: Option<Responder>,
    /// Counts at the start of the window: the NIC's counts, segments copied, segments retransmitted, segments sent.
    before: (NicCounts, u64, u64, u64),
}

/// The tenant that receives TCP, and its NIC.
pub fn parts(s: &Scenario) -> Option<(TenantId, &EthernetSpec)> {
    let tenant = s.find_tenant(|t| matches!(t.app, AppSpec::TcpReceive(_)))?;
    let nic = s.peripherals.iter().find_map(PeripheralSpec::ethernet)?;
    Some((tenant, nic))
}

/// Takes the next frame that is wholly in memory, with its queue, for the kernel.
fn received(nic: &mut Nic) -> Option<(QueueId, ReceivedFrame)> {
    let id = nic.landed()?;
    let (p, at) = (*nic.packet(id), nic.offset(id));
    let queue = p.queue;
    let taken = nic.take(queue);
    debug_assert_eq!(taken, Some(id), "frames of a queue overtake each other");
    nic.packet(id).done = true;
    nic.release(id);
    let r = ReceivedFrame { seq: p.key.to_u32(), marked: p.marked, completion: p.completion, at, last: false };
    Some((queue, r))
}

impl Network {
    pub fn new(s: &Scenario, cores: &[ThreadId]) -> Option<Network> {
        let (tenant, nic) = parts(s)?;
        let edge = tcp_receiver(s).map_or(0, |r| r.receiver.first_edge());
        let dctcp = s.traffic.dctcp.clone().unwrap_or_default();
        let flows = cores.len().to_u8();
        let senders = Senders::new(&dctcp, flows, edge, nic.frame_bytes(), nic.wire_bytes(), nic.wire());
        Some(Network {
            tenant,
            cores: cores.to_vec(),
            senders,
            payload: nic.payload(),
            frame: nic.frame_bytes(),
            host_mark: nic.host_mark,
            held: 0.0,
            responder: nic.host_response.clone().map(Responder::new),
            before: Default::default(),
        })
    }

    /// Whether the host marks a frame that finds `held` IIO entries in use.
    fn host_congested(&mut self, held: u32) -> bool {
        self.held += WEIGHT * (f64::from(held) - self.held);
        self.host_mark.is_some_and(|mark| self.held >= f64::from(mark))
    }

    fn retransmitted(&self) -> u64 {
        self.senders.flows.iter().map(|f| f.retransmitted).sum()
    }
}

impl Host {
    /// Receivers of the network's tenant.
    fn receivers(&self) -> impl Iterator<Item = &Receiver> {
        self.cores.iter().filter_map(|c| match &c.thread {
            Thread::Tcp(t) => Some(&t.receiver),
            _ => None,
        })
    }

    fn copied(&self) -> u64 {
        self.receivers().map(|r| u64::from(r.copied)).sum()
    }

    /// Bytes of payload that applications have received.
    pub(super) fn delivered_bytes(&self) -> u64 {
        match &self.network {
            Some(n) => self.copied() * n.payload,
            None => self.tally.wire_bytes,
        }
    }

    /// Warms caches in functional mode: the kernel wrote the structures of all pages when it handed the pages to the
    /// NIC.
    pub(super) fn warm_network(&mut self) {
        let (Some(tcp), Some(iio)) = (&self.network, &self.machine.iio) else { return };
        let Some(nic) = iio.nic_ref() else { return };
        let cores: Vec<_> = tcp.cores.iter().enumerate().map(|(i, c)| (*c, nic.structures(QueueId::new(i)))).collect();
        for (core, lines) in cores {
            let p = &mut self.machine.cpus[core].program;
            p.ops.clear();
            p.push(Op::Store { line: lines.start, lines: (lines.end - lines.start).to_u32() });
            self.execute_functional(core);
        }
    }

    pub(super) fn start_network(&mut self) {
        if let Some(tcp) = &mut self.network {
            tcp.senders.start(&mut self.machine.cal, self.machine.now);
        }
    }

    pub(super) fn stop_network(&mut self) {
        if let Some(tcp) = &mut self.network {
            tcp.senders.stopped = true;
        }
    }

    /// Handles events of the network.
    pub(super) fn on_network(&mut self, e: traffic::TrafficEvent) {
        let now = self.machine.now;
        let (Some(tcp), Some(iio)) = (&mut self.network, &mut self.machine.iio) else { return };
        match e {
            traffic::TrafficEvent::Emit(port) => tcp.senders.on_emit(&mut self.machine.cal, port.into(), now),
            traffic::TrafficEvent::Ack => tcp.senders.on_ack(&mut self.machine.cal, now),
            traffic::TrafficEvent::Probe(flow) => tcp.senders.on_probe(&mut self.machine.cal, flow.into(), now),
            traffic::TrafficEvent::Segment => {
                let s = tcp.senders.arriving();
                let Some((port, _)) = iio.nic() else { return };
                let congested = tcp.host_congested(iio.held_writes(port));
                let Some((_, nic)) = iio.nic() else { return };
                let bytes = nic.counts.delivered * tcp.frame;
                let frame = Packet {
                    flow: s.flow.into(),
                    key: s.seq.into(),
                    marked: s.marked || congested,
                    wire_bytes: tcp.frame.to_u32(),
                    lines: tcp.frame.div_ceil(LINE).to_u16(),
                    uses: 1,
                    ..Packet::default()
                };
                // The senders detect losses themselves in this model.
                let _ = self.machine.arrive(NicAt::Port, frame);
                let delay = tcp.responder.as_mut().and_then(|r| r.look(tcp.held, bytes, now));
                if let Some(delay) = delay {
                    self.throttle_misses(delay);
                }
            }
            _ => {}
        }
    }

    /// From now on, makes misses of applications that do not receive wait for `delay` before they get a line fill
    /// buffer.
    fn throttle_misses(&mut self, delay: Time) {
        let receivers = self.network.as_ref().map(|t| t.tenant);
        for (c, cpu) in self.cores.iter().zip(&mut self.machine.cpus) {
            if c.tenant.index() < self.apps.len() && Some(c.tenant) != receivers {
                cpu.throttle_misses(delay);
            }
        }
    }

    /// Core that receives the frames of `queue`.
    pub(super) fn receiver_of(&self, queue: QueueId) -> Option<ThreadId> {
        self.network.as_ref()?.cores.get(queue.index()).copied()
    }

    /// Notifies cores of frames that are wholly in memory.
    pub(super) fn frames_landed(&mut self) {
        while let Some((queue, received)) = self.machine.nic_at(NicAt::Port).and_then(received) {
            let Some(network) = &self.network else { return };
            let core = network.cores[queue.index()];
            self.notify(core, Notice::Frame(received));
        }
        self.deliver_interrupts(Host::receiver_of);
    }

    /// Returns packet `id`, an acknowledgement that is on the wire, to its sender.
    pub(super) fn on_acknowledgement_sent(&mut self, id: PacketId) {
        let now = self.machine.now;
        if let Some(nic) = self.machine.nic_at(NicAt::Port) {
            nic.packet(id).done = true;
            nic.end_use(id);
        }
        if let Some(tcp) = &mut self.network {
            tcp.senders.on_acknowledgement_sent(&mut self.machine.cal, id, now);
        }
    }

    pub(super) fn restart_network(&mut self) {
        let (copied, now) = (self.copied(), self.machine.now);
        let (Some(tcp), Some(iio)) = (&mut self.network, &mut self.machine.iio) else { return };
        let counts = iio.nic().map(|(_, n)| n.counts.clone()).unwrap_or_default();
        tcp.before = (counts, copied, tcp.retransmitted(), tcp.senders.sent);
        tcp.senders.restart_meters(now);
        if let Some(r) = &mut tcp.responder {
            r.restart_meters(self.machine.now);
        }
    }

    /// Sets the metrics of TCP receivers.
    pub(super) fn network_metrics(&self, v: &mut Values) {
        let (Some(tcp), Some(iio)) = (&self.network, &self.machine.iio) else { return };
        let Some(nic) = iio.nic_ref() else { return };
        let span = (self.machine.now - self.window.start).0.max(1).to_f64();
        let (counts, copied, again, sent) = tcp.before.clone();
        v.set("net_gbs", (self.copied() - copied).to_f64() * tcp.payload.to_f64() / span * 1e3);
        let lost = nic.drops.count().to_f64();
        v.set("drops", lost);
        v.set("packet_loss", lost / (nic.counts.offered - counts.offered).to_f64());
        v.set("nic_buffer_peak_kib", nic.peak().to_f64() / 1024.0);
        v.set("tcp_retransmits", (tcp.retransmitted() - again).to_f64() / (tcp.senders.sent - sent).to_f64());
        let (rtt, window, alpha) = tcp.senders.state();
        v.set("tcp_rtt_us", rtt / 1e3);
        v.set("tcp_cwnd", window);
        v.set("dctcp_alpha", alpha);
        if let Some(r) = &tcp.responder {
            v.set("host_level", r.mean_level());
        }
        let sum = |f: fn(&Receiver) -> Time| self.receivers().map(|r| f(r).0).sum::<u64>().to_f64();
        let cpu = &self.machine.cpus[tcp.cores[0]];
        let calls: f64 = self.receivers().map(|r| cpu.compute_time(r.busy.calls).0.to_f64()).sum();
        let (poll, copy) = (sum(|r| r.busy.poll), sum(|r| r.busy.copy) - calls);
        let busy = poll + copy + calls + sum(|r| r.busy.release);
        v.set("net_busy", busy / span);
        v.set("net_copy_share", copy / busy);
        v.set("net_poll_share", poll / busy);
        let reads = self.machine.mem.stats.tenants.get(tcp.tenant).map_or(0, |t| t.llc_misses);
        v.set("mem_net_read_gbs", reads.to_f64() * LINE.to_f64() / span * 1e3);
    }

    /// Ledger of the segments that the network has lost.
    pub(super) fn network_drops(&self) -> impl Iterator<Item = &DropLedger> {
        self.network.iter().map(|t| &t.senders.drops)
    }

    /// Checks that no segment is lost uncounted.
    ///
    /// # Errors
    /// Returns one sentence about segments that are not conserved.
    pub(super) fn check_network(&self) -> Result<(), String> {
        let Some(tcp) = &self.network else { return Ok(()) };
        tcp.senders.check()?;
        let mut kept = 0;
        for r in self.receivers() {
            r.check()?;
            let (in_order, waiting) = r.holds();
            kept += u64::from(in_order) + waiting + r.duplicates;
        }
        let nic = self.machine.iio.as_ref().and_then(|i| i.nic_ref());
        kept += nic.map_or(0, |n| (0..tcp.cores.len()).map(|q| n.waiting(QueueId::new(q)).to_u64()).sum());
        let counts = nic.map(|n| n.counts.clone()).unwrap_or_default();
        if counts.delivered != kept {
            return Err(format!("{} frames were delivered, the kernel knows of {kept}", counts.delivered));
        }
        let out = counts.offered + tcp.senders.on_wire() + tcp.senders.drops.total();
        if tcp.senders.sent != out {
            return Err(format!("{} segments were sent, {out} are accounted for", tcp.senders.sent));
        }
        Ok(())
    }
}
