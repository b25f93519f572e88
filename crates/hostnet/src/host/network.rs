//! The network of TCP receivers: senders beyond the wire, the NIC, and the signals and responses of a congested host.

use super::tenant::TenantState;
use super::threads::tcp_receiver;
use super::Host;
use crate::app::AppSpec;
use crate::config::Scenario;
use crate::core::Op;
use crate::device::nic::{Nic, NicCounts, Packet};
use crate::device::response::Responder;
use crate::device::NicAt;
use crate::kernel::{Int, PacketId, PortId, QueueId, TenantId, ThreadId, Time};
use crate::memory::LINE;
use crate::meter::drops::DropLedger;
use crate::meter::Values;
use crate::stack::tcp::{ReceivedFrame, Receiver};
use crate::stack::{Notice, Thread};
use crate::traffic::dctcp::Senders;
use crate::traffic::TrafficEvent;

/// Weight of a frame's sample of the IIO's occupancy in the moving average (the weight that hostCC uses for occupancy).
const WEIGHT: f64 = 1.0 / 8.0;

/// TCP connections, one to each core of a tenant.
#[derive(Clone)]
pub struct Network {
    pub tenant: TenantId,
    /// Port of the NIC that receives the frames.
    pub port: PortId,
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

/// The tenants that receive TCP, each with an Ethernet NIC.
pub fn receiving(s: &Scenario) -> impl Iterator<Item = TenantId> + '_ {
    let receives = |t: &TenantId| matches!(s.tenant(*t).app, AppSpec::TcpReceive(_));
    s.tenant_ids().filter(receives).filter(|t| s.nic_of(*t).is_some())
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
    /// Connections to `cores`, those of `tenant`; None without an Ethernet NIC.
    pub fn new(s: &Scenario, tenant: TenantId, cores: &[ThreadId]) -> Option<Network> {
        let (port, nic) = s.nic_of(tenant)?;
        let edge = tcp_receiver(s, tenant).map_or(0, |r| r.receiver.first_edge());
        let dctcp = s.traffic_of(tenant).dctcp.clone().unwrap_or_default();
        let flows = cores.len().to_u8();
        let senders = Senders::new(&dctcp, tenant, flows, edge, nic.frame_bytes(), nic.wire_bytes(), nic.wire());
        Some(Network {
            tenant,
            port,
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

    /// Bytes of payload that applications have received in the window, after `copied` segments since the beginning.
    pub(super) fn delivered_in_window(&self, copied: u64) -> u64 {
        (copied - self.before.1) * self.payload
    }

    fn retransmitted(&self) -> u64 {
        self.senders.flows.iter().map(|f| f.retransmitted).sum()
    }
}

impl Host {
    /// The networks of TCP receivers.
    pub(super) fn networks(&self) -> impl Iterator<Item = &Network> {
        self.tenants.iter().filter_map(|t| t.network.as_ref())
    }

    /// Receivers of `tenant`'s connections.
    fn receivers(&self, tenant: TenantId) -> impl Iterator<Item = &Receiver> {
        self.cores.iter().filter(move |c| c.tenant == tenant).filter_map(|c| match &c.thread {
            Thread::Tcp(t) => Some(&t.receiver),
            _ => None,
        })
    }

    /// Segments that `tenant`'s receivers have copied to the application.
    pub(super) fn copied(&self, tenant: TenantId) -> u64 {
        self.receivers(tenant).map(|r| u64::from(r.copied)).sum()
    }

    /// Bytes that applications have received: payload of TCP, and frames of others.
    pub(super) fn delivered_bytes(&self) -> u64 {
        let of = |(tenant, state): (TenantId, &TenantState)| match &state.network {
            Some(n) => self.copied(tenant) * n.payload,
            None => state.tally.wire_bytes,
        };
        self.tenants.enumerate().map(of).sum()
    }

    /// Warms caches in functional mode: the kernel wrote the structures of all pages when it handed the pages to the
    /// NIC.
    pub(super) fn warm_network(&mut self) {
        let Some(iio) = &self.machine.iio else { return };
        let of = |tcp: &Network| {
            let (nic, cores) = (iio.nic(tcp.port), tcp.cores.clone());
            let lines = |(i, core)| Some((core, nic?.structures(QueueId::new(i))));
            cores.into_iter().enumerate().filter_map(lines).collect::<Vec<_>>()
        };
        let cores: Vec<_> = self.networks().flat_map(of).collect();
        for (core, lines) in cores {
            let p = &mut self.machine.cpus[core].program;
            p.ops.clear();
            p.push(Op::Store { line: lines.start, lines: (lines.end - lines.start).to_u32() });
            self.execute_functional(core);
        }
    }

    pub(super) fn start_network(&mut self) {
        for tcp in self.tenants.iter_mut().filter_map(|t| t.network.as_mut()) {
            tcp.senders.start(&mut self.machine.cal, self.machine.now);
        }
    }

    pub(super) fn stop_network(&mut self) {
        for tcp in self.tenants.iter_mut().filter_map(|t| t.network.as_mut()) {
            tcp.senders.stopped = true;
        }
    }

    /// Handles events of `tenant`'s network.
    pub(super) fn on_network(&mut self, tenant: TenantId, e: TrafficEvent) {
        let now = self.machine.now;
        let (Some(tcp), Some(iio)) = (&mut self.tenants[tenant].network, &mut self.machine.iio) else { return };
        match e {
            TrafficEvent::Emit { port, .. } => tcp.senders.on_emit(&mut self.machine.cal, port.into(), now),
            TrafficEvent::Ack(_) => tcp.senders.on_ack(&mut self.machine.cal, now),
            TrafficEvent::Probe { flow, .. } => tcp.senders.on_probe(&mut self.machine.cal, flow.into(), now),
            TrafficEvent::Segment(_) => {
                let s = tcp.senders.arriving();
                let at = NicAt::Port(tcp.port);
                let congested = tcp.host_congested(iio.held_writes(tcp.port));
                let Some(nic) = iio.nic(tcp.port) else { return };
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
                let _ = self.machine.arrive(at, frame);
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
        for (c, cpu) in self.cores.iter().zip(&mut self.machine.cpus) {
            let state = &self.tenants[c.tenant];
            if state.app.is_some() && state.network.is_none() {
                cpu.throttle_misses(delay);
            }
        }
    }

    /// Notifies cores of frames from the NIC on `port` that are wholly in memory.
    pub(super) fn frames_landed(&mut self, port: PortId) {
        while let Some((queue, received)) = self.machine.nic_at(NicAt::Port(port)).and_then(received) {
            let Some(core) = self.driver_of(port, queue) else { continue };
            self.notify(core, Notice::Frame(received));
        }
        self.deliver_interrupts(port);
    }

    /// Returns packet `id`, an acknowledgement of `tenant` on the wire of the NIC on `port`, to its sender.
    pub(super) fn on_acknowledgement_sent(&mut self, tenant: TenantId, port: PortId, id: PacketId) {
        let now = self.machine.now;
        if let Some(nic) = self.machine.nic_at(NicAt::Port(port)) {
            nic.packet(id).done = true;
            nic.end_use(id);
        }
        if let Some(tcp) = &mut self.tenants[tenant].network {
            tcp.senders.on_acknowledgement_sent(&mut self.machine.cal, id, now);
        }
    }

    pub(super) fn restart_network(&mut self) {
        let now = self.machine.now;
        for tenant in self.tenants.ids() {
            let copied = self.copied(tenant);
            let (Some(tcp), Some(iio)) = (&mut self.tenants[tenant].network, &mut self.machine.iio) else { continue };
            let counts = iio.nic(tcp.port).map(|n| n.counts.clone()).unwrap_or_default();
            tcp.before = (counts, copied, tcp.retransmitted(), tcp.senders.sent);
            tcp.senders.restart_meters(now);
            if let Some(r) = &mut tcp.responder {
                r.restart_meters(now);
            }
        }
    }

    /// Sets the metrics of TCP receivers.
    pub(super) fn network_metrics(&self, v: &mut Values) {
        let Some(tcp) = self.networks().next() else { return };
        let Some(nic) = self.machine.iio.as_ref().and_then(|iio| iio.nic(tcp.port)) else { return };
        let span = (self.machine.now - self.window.start).0.max(1).to_f64();
        let (counts, copied, again, sent) = tcp.before.clone();
        v.set("net_gbs", (self.copied(tcp.tenant) - copied).to_f64() * tcp.payload.to_f64() / span * 1e3);
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
        let sum = |f: fn(&Receiver) -> Time| self.receivers(tcp.tenant).map(|r| f(r).0).sum::<u64>().to_f64();
        let cpu = &self.machine.cpus[tcp.cores[0]];
        let calls: f64 = self.receivers(tcp.tenant).map(|r| cpu.compute_time(r.busy.calls).0.to_f64()).sum();
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
        self.networks().map(|t| &t.senders.drops)
    }

    /// Checks that no segment is lost uncounted.
    ///
    /// # Errors
    /// Returns one sentence about segments that are not conserved.
    pub(super) fn check_network(&self) -> Result<(), String> {
        self.networks().try_for_each(|tcp| self.check_connections(tcp))
    }

    fn check_connections(&self, tcp: &Network) -> Result<(), String> {
        tcp.senders.check()?;
        let mut kept = 0;
        for r in self.receivers(tcp.tenant) {
            r.check()?;
            let (in_order, waiting) = r.holds();
            kept += u64::from(in_order) + waiting + r.duplicates;
        }
        let nic = self.machine.iio.as_ref().and_then(|i| i.nic(tcp.port));
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
