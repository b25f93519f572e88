//! The network of TCP receivers: senders beyond the wire, the NIC, and the signals and responses of a congested host.

use super::{ReceivedFrame, Receiver};
use crate::core::Op;
use crate::device::nic::{EthernetSpec, Nic, NicCounts, Packet};
use crate::device::response::Responder;
use crate::device::NicAt;
use crate::kernel::{IdVec, Int, PacketId, PortId, QueueId, TenantId, ThreadId, Time};
use crate::machine::Machine;
use crate::memory::LINE;
use crate::meter::drops::DropLedger;
use crate::meter::life::key_of_segment;
use crate::meter::{metric, Values};
use crate::stack::role::{end_packet, own_threads, Bus, CoreSlot, Role, RoleView};
use crate::stack::Thread;
use crate::traffic::dctcp::{DctcpSpec, Senders};
use crate::traffic::TrafficEvent;

/// Weight of a frame's sample of the IIO's occupancy in the moving average (the weight that hostCC uses for occupancy).
const WEIGHT: f64 = 1.0 / 8.0;

/// TCP connections, one to each core of a tenant.
#[derive(Clone)]
pub struct Network {
    place: NetworkPlace,
    senders: Senders,
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

/// Takes the next frame that is wholly in memory, with its queue, for the kernel.
pub fn received(nic: &mut Nic) -> Option<(QueueId, ReceivedFrame)> {
    let id = nic.landed()?;
    let (p, at) = (*nic.packet(id), nic.offset(id));
    let queue = p.queue;
    // Software takes the frame when it polls.
    nic.life_goes_on(id, key_of_segment(queue.index(), p.key.to_u32()));
    let taken = nic.take(queue);
    debug_assert_eq!(taken, Some(id), "frames of a queue overtake each other");
    nic.packet(id).done = true;
    nic.release(id);
    let r = ReceivedFrame { seq: p.key.to_u32(), marked: p.marked, completion: p.completion, at, last: false };
    Some((queue, r))
}

/// Receivers of `tenant`'s connections.
fn receivers(threads: &IdVec<ThreadId, CoreSlot>, tenant: TenantId) -> impl Iterator<Item = &Receiver> {
    own_threads(threads, tenant).filter_map(|(_, thread)| match thread {
        Thread::Tcp(t) => Some(&t.receiver),
        _ => None,
    })
}

/// Segments that `tenant`'s receivers have copied to the application.
fn copied(threads: &IdVec<ThreadId, CoreSlot>, tenant: TenantId) -> u64 {
    receivers(threads, tenant).map(|r| u64::from(r.copied)).sum()
}

/// Position of a network in a host: its tenant with the cores, the port of its NIC, and the cores that a congested host
/// slows.
#[derive(Clone, Debug)]
pub struct NetworkPlace {
    /// Tenant that receives.
    pub tenant: TenantId,
    /// Port of the NIC that receives the frames.
    pub port: PortId,
    /// The tenant's cores, by their number on the host.
    pub cores: Vec<ThreadId>,
    /// Cores of applications that do not receive TCP, whose misses the host's response slows.
    pub others: Vec<ThreadId>,
}

impl Network {
    /// Connections to a tenant's cores behind `nic`, whose senders are `dctcp`; `edge` is the number of segments that the
    /// receiver admits at first.
    pub fn new(place: NetworkPlace, nic: &EthernetSpec, dctcp: &DctcpSpec, edge: u32) -> Network {
        let flows = place.cores.len().to_u8();
        let senders = Senders::new(dctcp, place.tenant, flows, edge, nic.frame_bytes(), nic.wire_bytes(), nic.wire());
        Network {
            place,
            senders,
            payload: nic.payload(),
            frame: nic.frame_bytes(),
            host_mark: nic.host_mark,
            held: 0.0,
            responder: nic.host_response.clone().map(Responder::new),
            before: Default::default(),
        }
    }

    /// Whether the host marks a frame that finds `held` IIO entries in use.
    fn host_congested(&mut self, held: u32) -> bool {
        self.held += WEIGHT * (f64::from(held) - self.held);
        self.host_mark.is_some_and(|mark| self.held >= f64::from(mark))
    }

    /// Bytes of payload that applications have received since the host began.
    pub fn delivered(&self, threads: &IdVec<ThreadId, CoreSlot>) -> u64 {
        copied(threads, self.place.tenant) * self.payload
    }

    /// Bytes of payload that applications have received in the window.
    pub fn delivered_in_window(&self, threads: &IdVec<ThreadId, CoreSlot>) -> u64 {
        (copied(threads, self.place.tenant) - self.before.1) * self.payload
    }

    /// Time between the restart and `now` in which the link to the receiver carried segments.
    pub fn link_busy(&self, now: Time) -> Time {
        self.senders.link_busy(now)
    }

    /// Senders of the connections.
    pub fn senders(&mut self) -> &mut Senders {
        &mut self.senders
    }

    /// Ledger of the segments that the network has lost.
    pub fn drops(&self) -> &DropLedger {
        &self.senders.drops
    }

    /// Programs that write the structures of all pages, as the kernel does when it hands the pages to the NIC; each with
    /// its core.
    pub fn structures(&self, machine: &Machine) -> Vec<(ThreadId, Op)> {
        let nic = machine.look_at_nic(NicAt::Port(self.place.port));
        let store = |(i, core): (usize, &ThreadId)| {
            let lines = nic?.structures(QueueId::new(i));
            Some((*core, Op::Store { line: lines.start, lines: (lines.end - lines.start).to_u32() }))
        };
        self.place.cores.iter().enumerate().filter_map(store).collect()
    }

    fn retransmitted(&self) -> u64 {
        self.senders.flows.iter().map(|f| f.retransmitted).sum()
    }

    /// Lets a segment arrive at the NIC, and the host respond to its congestion.
    fn arrive(&mut self, bus: &mut Bus) {
        let now = bus.machine.now;
        let s = self.senders.arriving();
        let port = self.place.port;
        let Some(iio) = &mut bus.machine.iio else { return };
        let congested = self.host_congested(iio.held_writes(port));
        let Some(nic) = iio.nic(port) else { return };
        let bytes = nic.counts.delivered * self.frame;
        let frame = Packet {
            flow: s.flow.into(),
            key: s.seq.into(),
            marked: s.marked || congested,
            wire_bytes: self.frame.to_u32(),
            lines: self.frame.div_ceil(LINE).to_u16(),
            uses: 1,
            ..Packet::default()
        };
        // The senders detect losses themselves in this model.
        let _ = bus.machine.arrive(NicAt::Port(port), frame);
        if let Some(delay) = self.responder.as_mut().and_then(|r| r.look(self.held, bytes, now)) {
            self.place.others.iter().for_each(|c| bus.machine.cpus[*c].throttle_misses(delay));
        }
    }
}

/// A network and the state of the host that it sees.
type NetworkView<'a> = (&'a Network, RoleView<'a>);

impl Network {
    /// NIC that receives the frames.
    fn nic<'a>(&self, view: &RoleView<'a>) -> Option<&'a Nic> {
        view.machine.look_at_nic(NicAt::Port(self.place.port))
    }

    /// Times of the window in which the receivers copied payload, in which they ran interrupts, driver and protocol, and in which
    /// they were busy, in ps.
    fn busy(&self, view: &RoleView) -> [f64; 3] {
        let receivers = || receivers(view.threads, view.tenant);
        let sum = |f: fn(&Receiver) -> Time| receivers().map(|r| f(r).0).sum::<u64>().to_f64();
        let cpu = &view.machine.cpus[self.place.cores[0]];
        let calls: f64 = receivers().map(|r| cpu.compute_time(r.busy.calls).0.to_f64()).sum();
        let (poll, copy) = (sum(|r| r.busy.poll), sum(|r| r.busy.copy) - calls);
        [copy, poll, poll + copy + calls + sum(|r| r.busy.release)]
    }

    /// Sets the metrics of all networks of a host in the window that ends now.
    pub fn report(all: &[NetworkView], v: &mut Values) {
        let Some((_, view)) = all.first() else { return };
        let span = view.span().to_f64();
        let sum = |f: &dyn Fn(&NetworkView) -> u64| all.iter().map(f).sum::<u64>().to_f64();
        let delivered = sum(&|(n, view)| n.delivered_in_window(view.threads));
        v.set(metric::NET_GBS, delivered / span * 1e3);
        let lost = sum(&|(n, view)| n.nic(view).map_or(0, |nic| nic.drops.count()));
        let arrived = sum(&|(n, view)| n.nic(view).map_or(0, |nic| nic.counts.offered - n.before.0.offered));
        v.set(metric::PACKET_LOSS, lost / arrived);
        // Tenants that serve packets have other NICs.
        v.set(metric::DROPS, v.get(metric::DROPS).unwrap_or(0.0) + lost);
        let again = sum(&|(n, _)| n.retransmitted() - n.before.2);
        v.set(metric::TCP_RETRANSMITS, again / sum(&|(n, _)| n.senders.sent - n.before.3));
        let senders: Vec<&Senders> = all.iter().map(|(n, _)| &n.senders).collect();
        let (rtt, window, alpha) = Senders::state(&senders);
        v.set(metric::TCP_RTT_US, rtt / 1e3);
        v.set(metric::TCP_CWND, window);
        v.set(metric::DCTCP_ALPHA, alpha);
        let levels: Vec<f64> = all.iter().filter_map(|(n, _)| Some(n.responder.as_ref()?.mean_level())).collect();
        v.set(metric::HOST_LEVEL, levels.iter().sum::<f64>() / levels.len().to_f64());
        let [copy, poll, busy] = all.iter().fold([0.0; 3], |sum, (n, view)| {
            let own = n.busy(view);
            std::array::from_fn(|i| sum[i] + own[i])
        });
        v.set(metric::NET_BUSY, busy / span);
        v.set(metric::NET_COPY_SHARE, copy / busy);
        v.set(metric::NET_POLL_SHARE, poll / busy);
        let stats = &view.machine.mem.stats;
        let reads = sum(&|(_, view)| stats.tenants.get(view.tenant).map_or(0, |t| t.llc_misses));
        v.set(metric::MEM_NET_READ_GBS, reads * LINE.to_f64() / span * 1e3);
    }
}

impl Role for Network {
    fn start(&mut self, bus: &mut Bus) {
        self.senders.start(&mut bus.machine.cal, bus.machine.now);
    }

    fn stop(&mut self) {
        self.senders.stopped = true;
    }

    fn on_traffic(&mut self, e: TrafficEvent, bus: &mut Bus) -> bool {
        let (cal, now) = (&mut bus.machine.cal, bus.machine.now);
        match e {
            TrafficEvent::Emit { port, .. } => self.senders.on_emit(cal, port.into(), now),
            TrafficEvent::Ack(_) => self.senders.on_ack(cal, now),
            TrafficEvent::Probe { flow, .. } => self.senders.on_probe(cal, flow.into(), now),
            TrafficEvent::Segment(_) => self.arrive(bus),
            _ => return false,
        }
        true
    }

    /// Returns an acknowledgement, which is on the wire, to its sender.
    fn on_sent(&mut self, port: PortId, id: PacketId, bus: &mut Bus) -> bool {
        let now = bus.machine.now;
        if let Some(nic) = bus.machine.nic_at(NicAt::Port(port)) {
            end_packet(nic, id);
        }
        self.senders.on_acknowledgement_sent(&mut bus.machine.cal, id, now);
        true
    }

    fn restart_meters(&mut self, bus: &mut Bus) {
        let now = bus.machine.now;
        let nic = bus.machine.look_at_nic(NicAt::Port(self.place.port));
        let counts = nic.map(|n| n.counts.clone()).unwrap_or_default();
        self.before = (counts, copied(bus.threads, bus.tenant), self.retransmitted(), self.senders.sent);
        self.senders.restart_meters(now);
        if let Some(r) = &mut self.responder {
            r.restart_meters(now);
        }
    }

    /// Checks that no segment is lost uncounted.
    fn check_conservation(&self, view: &RoleView) -> Result<(), String> {
        self.senders.check()?;
        let mut kept = 0;
        for r in receivers(view.threads, view.tenant) {
            r.check()?;
            let (in_order, waiting) = r.holds();
            kept += u64::from(in_order) + waiting + r.duplicates;
        }
        let nic = view.machine.look_at_nic(NicAt::Port(self.place.port));
        kept += nic.map_or(0, |n| (0..self.place.cores.len()).map(|q| n.waiting(QueueId::new(q)).to_u64()).sum());
        let counts = nic.map(|n| n.counts.clone()).unwrap_or_default();
        if counts.delivered != kept {
            return Err(format!("{} frames were delivered, the kernel knows of {kept}", counts.delivered));
        }
        let out = counts.offered + self.senders.on_wire() + self.senders.drops.total();
        if self.senders.sent != out {
            return Err(format!("{} segments were sent, {out} are accounted for", self.senders.sent));
        }
        Ok(())
    }
}
