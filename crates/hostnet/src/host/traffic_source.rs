//! Packets that a load generator offers to a host: their destination, their time, and their path to the NIC.

use super::Host;
use crate::app::Content;
use crate::config::scenario::SpreadSpec;
use crate::device::iio::Iio;
use crate::device::nic::{Nic, Packet};
use crate::device::NicAt;
use crate::kernel::{Int, Post, QueueId, RandomStream, TenantId, ThreadId, Time};
use crate::stack::BurstTimes;
use crate::traffic::arrival::Arrivals;
use crate::traffic::generator::Generator;
use crate::traffic::pcap::Capture;
use crate::traffic::TrafficEvent;
use std::collections::VecDeque;
use std::sync::Arc;

#[derive(Clone)]
pub(super) struct TrafficSource {
    pub(super) arrivals: Option<Arrivals>,
    /// Time at which the time of the arrival process is zero.
    pub(super) base: Time,
    pub(super) rng: RandomStream,
    /// NIC that receives the packets.
    pub(super) at: NicAt,
    /// Number of packets that a driver of descriptor rings takes in a batch; None without such rings.
    pub(super) burst: Option<u32>,
    /// Cores that receive the packets.
    pub(super) cores: Vec<ThreadId>,
    /// Queue of the first of these cores; those of the others follow, but on the chip, where each core has its own.
    pub(super) first_queue: QueueId,
    /// Function of the NIC whose packets these are.
    pub(super) function: u8,
    /// Differentiated services code point of the packets.
    pub(super) dscp: u8,
    pub(super) spread: SpreadSpec,
    /// Whether the NIC is in loopback mode and returns the packets that the host's cores, as the generator, send.
    pub(super) loops: bool,
    /// Queues whose frames were lost on their return, where the senders have not given the frames up.
    pub(super) lost: VecDeque<QueueId>,
    /// Number of waiting packets that the generator maintains per core; 0 for an open loop.
    pub(super) depth: u32,
    pub(super) capture: Option<Arc<Capture>>,
    pub(super) next: u64,
    /// Index of the core at which the search for the shortest queue begins.
    pub(super) turn: usize,
    pub(super) generator: Generator,
    /// Packets that have come to the NIC in the window; `dropped` are those of them that the NIC has dropped.
    pub(super) offered: u64,
    pub(super) dropped: u64,
    pub(super) bursts: BurstStarts,
}

/// Packets by which a tenant's queues had grown in the window when bursts began.
#[derive(Clone, Copy, Default)]
pub(super) struct BurstStarts {
    first: Option<i64>,
    latest: Option<i64>,
}

impl BurstStarts {
    fn add(&mut self, grown: i64) {
        match self.first {
            None => self.first = Some(grown),
            Some(_) => self.latest = Some(grown),
        }
    }

    /// The part of `grown`, the growth in the whole window, that lies before the first whole burst and after the last one;
    /// 0 in a window without a whole burst.
    fn outside(&self, grown: i64) -> i64 {
        self.first.zip(self.latest).map_or(0, |(first, latest)| first + grown - latest)
    }
}

impl TrafficSource {
    /// Core with the fewest entries in its queue; several such cores take turns.
    fn shortest(&mut self, nic: &Nic) -> usize {
        let n = self.cores.len();
        let round = (0..n).map(|i| (self.turn + i) % n);
        let least = round.min_by_key(|i| nic.unconsumed(QueueId(self.cores[*i].0))).unwrap_or(0);
        self.turn = (least + 1) % n;
        least
    }
}

/// Owner of the next packet: no particular core, a core, or a client in a closed loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PacketOwner {
    Any,
    Core(ThreadId),
    Client(u32),
}

/// A packet before its address is known: its core, its flow with the RSS hash, and its content.
pub(super) struct DrawnPacket {
    pub(super) core: ThreadId,
    pub(super) flow: Option<(u32, u32)>,
    /// Client of a closed loop.
    pub(super) client: u32,
    pub(super) content: Content,
    /// Differentiated services code point: that of the tenant, or of the captured packet where the tenant has none.
    pub(super) dscp: u8,
}

impl Host {
    /// Replaces the arrival process of `tenant`'s packets from now on; with a `depth`, each core of the tenant always has
    /// that number of packets waiting instead.
    pub fn offer(&mut self, tenant: TenantId, arrivals: Option<Arrivals>, depth: u32) {
        let now = self.machine.now;
        let state = &mut self.tenants[tenant];
        let Some(s) = &mut state.source else { return };
        let was_open = s.arrivals.is_some();
        s.arrivals = arrivals;
        s.base = now;
        s.bursts = BurstStarts::default();
        state.tally.bursts = s.arrivals.as_ref().and_then(Arrivals::period).map(|p| BurstTimes::new(now, p));
        s.depth = depth;
        if depth > 0 {
            for core in s.cores.clone() {
                self.refill_queue(core);
            }
        } else if !was_open {
            self.next_arrival(tenant);
        }
    }

    /// Posts the next packet of `tenant`, at the end of simulated time if it comes later; the run then ends. When the last
    /// packet of the previous process came after this one was due, the new process
    /// begins that much later, so that nothing happens in the past.
    pub(super) fn next_arrival(&mut self, tenant: TenantId) {
        let now = self.machine.now;
        let state = &mut self.tenants[tenant];
        let Some(s) = &mut state.source else { return };
        let Some(a) = &mut s.arrivals else { return };
        let due = a.next();
        let late = now.saturating_sub(s.base.saturating_add(due));
        s.base += late;
        if let Some(b) = &mut state.tally.bursts {
            b.begin_later(late);
        }
        let wired = s.generator.has_wire();
        let e = if wired { TrafficEvent::Offer(tenant) } else { TrafficEvent::Arrival(tenant) };
        self.machine.cal.post(s.base.saturating_add(due).min(Time::END), e);
    }

    /// Records how far the queues of `tenant` have grown if the packet that is due now begins a burst.
    #[inline]
    pub(super) fn begin_burst(&mut self, tenant: TenantId) {
        let begins = |s: &TrafficSource| s.arrivals.as_ref().is_some_and(Arrivals::begins_burst);
        if self.tenants[tenant].source.as_ref().is_some_and(begins) {
            let grown = self.grown(tenant);
            self.tenants[tenant].source.iter_mut().for_each(|s| s.bursts.add(grown));
        }
    }

    /// Packets by which the queues of `tenant` have grown in the window.
    pub(super) fn grown(&self, tenant: TenantId) -> i64 {
        let state = &self.tenants[tenant];
        let count = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let (offered, dropped) = state.source.as_ref().map_or((0, 0), |s| (s.offered, s.dropped));
        count(offered) - count(dropped + self.socket_losses(tenant)) - count(state.tally.completed)
    }

    /// Packets by which the queues of `tenant` have grown in the window beside its whole bursts: most of a burst that is under
    /// way is in the queues, and leaves them before the next burst. Queues are compared where bursts begin.
    pub(super) fn grown_beside_bursts(&self, tenant: TenantId) -> i64 {
        self.tenants[tenant].source.as_ref().map_or(0, |s| s.bursts.outside(self.grown(tenant)))
    }

    /// Packets by which the queues of all tenants have grown in the window beside whole bursts.
    pub(super) fn all_grown_beside_bursts(&self) -> i64 {
        self.sources().map(|(t, _)| self.grown_beside_bursts(t)).sum()
    }

    /// Lets packets arrive for `core` until the number of waiting packets that its tenant's source maintains is there.
    pub(super) fn refill_queue(&mut self, core: ThreadId) {
        let tenant = self.cores[core].tenant;
        let source = self.tenants[tenant].source.as_ref().filter(|s| s.depth > 0);
        let Some(TrafficSource { at, depth, .. }) = source else { return };
        let (at, depth, queue) = (*at, *depth, self.queue(core));
        let linked = self.owners.linked == Some(tenant);
        loop {
            let coming = if linked { self.requests_on_the_way(queue) } else { 0 };
            let enough = self.machine.nic_at(at).is_none_or(|n| n.unconsumed(queue) + coming >= depth);
            let owner = PacketOwner::Core(core);
            if enough || !(if linked { self.plan(tenant, owner) } else { self.inject(tenant, owner) }) {
                break;
            }
        }
    }

    /// Draws the next packet of `tenant`. The source chooses a core for a packet without one.
    pub(super) fn draw(&mut self, tenant: TenantId, owner: PacketOwner) -> Option<DrawnPacket> {
        let state = &mut self.tenants[tenant];
        if let Some(clients) = state.roles.clients() {
            let (segment, s) = (clients.draw()?, state.source.as_ref()?);
            return Some(DrawnPacket {
                core: s.cores[segment.queue.index() - s.first_queue.index()],
                flow: Some((segment.flow, segment.hash)),
                client: 0,
                content: segment.content,
                dscp: s.dscp,
            });
        }
        let (s, app) = (state.source.as_mut()?, state.app.as_mut()?);
        let mut flow = None;
        let n = s.next;
        s.next += 1;
        s.generator.drawn.number = n;
        let (core, client) = match owner {
            PacketOwner::Any => (None, n.to_u32()),
            PacketOwner::Core(core) => (Some(core), 0),
            PacketOwner::Client(client) => (None, client),
        };
        Some(match &s.capture {
            Some(capture) => {
                let (pass, i) = (n / capture.packets.len().to_u64(), n.to_usize() % capture.packets.len());
                s.generator.drawn.captured = Some(i.to_u32());
                let packet = &capture.packets[i];
                let local = core.and_then(|c| s.cores.iter().position(|x| *x == c));
                let local = local.unwrap_or(packet.flow.to_usize() % s.cores.len());
                DrawnPacket {
                    core: s.cores[local],
                    flow,
                    client,
                    content: app.replay(local, packet, i, pass, &mut s.rng),
                    dscp: if s.dscp == 0 { packet.dscp } else { s.dscp },
                }
            }
            None => {
                let i = match core {
                    Some(c) => s.cores.iter().position(|x| *x == c).unwrap_or(0),
                    None => match s.spread {
                        SpreadSpec::Random | SpreadSpec::Flow => {
                            let own = (s.spread == SpreadSpec::Flow).then_some(client);
                            flow = s.generator.flow(own, &mut s.rng);
                            let nic = self.machine.look_at_nic(s.at);
                            match (flow, nic.filter(|_| s.at != NicAt::Chip)) {
                                (Some((flow, hash)), Some(nic)) => {
                                    nic.classify(s.function, flow, hash).index() - s.first_queue.index()
                                }
                                (Some((_, hash)), None) => hash.to_usize() % s.cores.len(),
                                (None, _) => match own {
                                    Some(client) => client.to_usize() % s.cores.len(),
                                    None => s.rng.below(s.cores.len().to_u64()).to_usize(),
                                },
                            }
                        }
                        SpreadSpec::RoundRobin => n.to_usize() % s.cores.len(),
                        SpreadSpec::ShortestQueue => s.shortest(&self.machine.nic),
                    },
                };
                let content = app.content(i, &mut s.rng);
                let content = match s.generator.size() {
                    Some(bytes) => content.sized(bytes),
                    None => content,
                };
                DrawnPacket { core: s.cores[i], flow, client, content, dscp: s.dscp }
            }
        })
    }

    /// Number of packets that the NICs have accepted and whose service has not ended.
    pub(super) fn unfinished(&self) -> u64 {
        let on_ports = self.machine.iio.iter().flat_map(Iio::nics).map(|(_, nic)| nic.unfinished());
        self.machine.nic.unfinished() + on_ports.sum::<u64>()
    }

    /// Draws the next packet of `tenant` in the form in which it goes to the NIC.
    pub(super) fn draw_packet(&mut self, tenant: TenantId, owner: PacketOwner) -> Option<Packet> {
        let DrawnPacket { core, flow, client, content, dscp } = self.draw(tenant, owner)?;
        let (at, function) = self.tenants[tenant].source.as_ref().map(|s| (s.at, s.function))?;
        let mut p = Packet { dscp, function, client, ..packet(self.queue(core), at, &content) };
        if let Some((flow, hash)) = flow.filter(|_| at != NicAt::Chip) {
            (p.flow, p.hash) = (flow, Some(hash));
        }
        Some(p)
    }

    /// Lets a packet of `tenant` arrive now, without a wire. Returns false when it is dropped.
    pub(super) fn inject(&mut self, tenant: TenantId, owner: PacketOwner) -> bool {
        let Some(p) = self.draw_packet(tenant, owner) else { return false };
        if let Some(s) = &mut self.tenants[tenant].source {
            s.generator.ask(&Packet { arrived: self.machine.now, ..p }, &mut self.machine.cal);
        }
        self.deliver_to_nic(tenant, p)
    }

    /// Lets packet `p` of `tenant` arrive from the wire. Returns false when it is dropped on arrival.
    pub(super) fn deliver_to_nic(&mut self, tenant: TenantId, p: Packet) -> bool {
        let mut at = NicAt::Chip;
        if let Some(s) = &mut self.tenants[tenant].source {
            s.generator.offered_bytes += u64::from(p.wire_bytes);
            s.offered += 1;
            at = s.at;
        }
        let taken = self.machine.arrive(at, p).is_ok();
        if !taken {
            self.tenants[tenant].source.iter_mut().for_each(|s| s.dropped += 1);
        }
        taken
    }

    /// Queue of a core's packets: the integrated NIC has one queue for each core, a NIC on a port one for each core
    /// that drives it.
    pub(super) fn queue(&self, core: ThreadId) -> QueueId {
        let slot = &self.cores[core];
        match &self.tenants[slot.tenant].source {
            Some(s) if s.at != NicAt::Chip => {
                let local = |c: ThreadId| usize::from(self.cores[c].local);
                QueueId::new(s.first_queue.index() + local(core) - local(s.cores[0]))
            }
            _ => QueueId(core.0),
        }
    }

    /// NICs that receive the generators' packets.
    pub(super) fn serving_nics(&self) -> impl Iterator<Item = (NicAt, &Nic)> {
        let mut all: Vec<NicAt> = Vec::new();
        for (_, s) in self.sources() {
            if !all.contains(&s.at) {
                all.push(s.at);
            }
        }
        all.into_iter().filter_map(|at| Some((at, self.machine.look_at_nic(at)?)))
    }

    /// Sum of a count of the NICs that receive the generators' packets.
    pub(super) fn sum_of_nics(&self, of: impl Fn(&Nic) -> u64) -> u64 {
        self.serving_nics().map(|(_, nic)| of(nic)).sum()
    }

    /// Number of packets that have ended in the host since it began, and number of those that the host itself has begun, as
    /// a server of TCP begins the segments of its answers. Packets of a loop are those of a generator.
    pub(super) fn packets_ended(&self) -> (u64, u64) {
        let loops = |at: NicAt| self.sources().any(|(_, s)| s.at == at && s.loops);
        let own = self.serving_nics().filter(|(at, _)| !loops(*at)).map(|(_, nic)| nic.counts.originated);
        (self.sources().map(|(t, _)| self.tenants[t].ended()).sum(), own.sum())
    }

    /// Checks, for each NIC that receives the generators' packets, that each packet has ended, was lost, or is inside.
    ///
    /// # Errors
    /// Returns one sentence about packets that are not conserved.
    pub(super) fn check_packets(&self) -> Result<(), String> {
        for (at, nic) in self.serving_nics() {
            let tenants: Vec<TenantId> = self.sources().filter(|(_, s)| s.at == at).map(|(t, _)| t).collect();
            let sum = |f: &dyn Fn(TenantId) -> u64| tenants.iter().map(|t| f(*t)).sum::<u64>();
            let loops = tenants.iter().any(|t| self.tenants[*t].source.as_ref().is_some_and(|s| s.loops));
            let begun = nic.counts.originated + if loops { 0 } else { nic.counts.offered };
            let in_loop = sum(&|t| self.in_loop_of(t));
            let in_sockets = sum(&|t| self.socket_losses_ever(t));
            let ended = |t: TenantId| self.tenants[t].ended();
            let (accepted, ended) = (begun - nic.drops.total() - in_sockets - in_loop, sum(&ended));
            if accepted != ended + nic.unfinished() {
                return Err(format!(
                    "packets are not conserved: {accepted} accepted, {ended} completed, {} in flight",
                    nic.unfinished()
                ));
            }
            let under_way = sum(&|t| self.tenants[t].source.as_ref().map_or(0, |s| s.generator.on_wire()));
            let sent = sum(&|t| self.tenants[t].source.as_ref().map_or(0, |s| s.generator.sent));
            let linked = self.owners.linked.is_some_and(|t| tenants.contains(&t));
            if !linked && sent != nic.counts.offered + under_way {
                return Err(format!(
                    "{sent} packets were sent, {} came to the NIC and {under_way} are on the wire",
                    nic.counts.offered
                ));
            }
        }
        Ok(())
    }
}

/// A packet with content `c` for a queue of the NIC at `at`. On the chip the packet's buffer and its reply are two uses
/// of the packet's record.
pub(super) fn packet(queue: QueueId, at: NicAt, c: &Content) -> Packet {
    Packet {
        flow: queue.0.into(),
        queue,
        lines: c.lines,
        wire_bytes: c.wire_bytes,
        kind: c.kind,
        key: c.key,
        value_lines: c.value_lines,
        uses: if at == NicAt::Chip { 2 } else { 1 },
        ..Packet::default()
    }
}
