//! TAS on a host: its memory, its threads, and clients at the other end of the wire.

use super::traffic_source::DrawnPacket;
use super::Host;
use crate::app::tcp_echo::HEADERS;
use crate::app::{lines, AppSpec, Content};
use crate::config::Scenario;
use crate::device::nic::{Nic, RingsSpec};
use crate::device::NicAt;
use crate::kernel::{IdVec, Int, PacketId, PortId, Post, TenantId, ThreadId};
use crate::memory::region::{AddressMap, RegionKind, Sharing};
use crate::meter::drops::Loss;
use crate::meter::Values;
use crate::stack::ccnic::{CcnicInterface, CcnicThread, Setup};
use crate::stack::tas::{frame, sizes, Io, Service, Tas, TasMemory, TasSegment, ACKNOWLEDGES, ASKS, REPLIES};
use crate::stack::Thread;
use crate::traffic::frame::rss_hash;
use crate::traffic::generator::addresses;
use crate::traffic::TrafficEvent;

/// Allocates the memory of `tenant`'s TAS, if it has one. `groups` are the cores of each tenant.
pub fn build(
    s: &Scenario,
    tenant: TenantId,
    map: &mut AddressMap,
    groups: &IdVec<TenantId, Vec<ThreadId>>,
) -> Option<Box<Service>> {
    let AppSpec::TcpEcho(spec) = &s.tenant(tenant).app else { return None };
    let (cores, fast) = (&groups[tenant], s.tenant(tenant).receivers().to_usize());
    let mut add = |lines, sharing| {
        let r = map.add(lines, RegionKind::App, sharing, tenant);
        map.get(r).base
    };
    let (shared, own, sockets) = sizes(spec.flows);
    let [buckets, states, receive, transmit] = shared.map(|n| add(n, Sharing::Shared));
    let thread = |c: &ThreadId| {
        let [to, from, managed] = own;
        [add(to, Sharing::Shared), add(from, Sharing::Shared), add(managed, Sharing::of_thread(*c))]
    };
    let threads = cores[..fast].iter().map(thread).collect();
    let sockets = map.add(sockets, RegionKind::App, Sharing::of_thread(cores[fast]), tenant);
    let sockets = map.get(sockets).base;
    let memory = TasMemory { buckets, states, receive, transmit, threads, sockets };
    Some(Box::new(Service::new(spec.clone(), memory, fast)))
}

/// Assigns each flow to the queue that RSS chooses among those of `function`.
pub fn steer(service: &mut Service, nic: &Nic, function: u8) {
    for (i, flow) in service.flows.iter_mut().enumerate() {
        let (source, destination) = addresses(i.to_u32());
        flow.hash = rss_hash(source, destination);
        flow.queue = nic.classify(function, i.to_u32(), flow.hash);
    }
}

/// Thread of core `local` of TAS's tenant, with the next driver or with queue pairs of an overlay.
pub fn thread(
    s: &Scenario,
    fast: usize,
    local: usize,
    interface: Option<&CcnicInterface>,
    drivers: &mut impl Iterator<Item = Thread>,
) -> Thread {
    Thread::Tas(Box::new(match interface {
        _ if local == fast => Tas::echo(),
        Some(interface) => {
            let spec = s.ccnic.clone().unwrap_or_default();
            let setup = Setup { spec: &spec, core: &s.platform.core, interface };
            Tas::fast(local, Io::Ports(CcnicThread::ports(setup, local, fast)))
        }
        None => match drivers.next() {
            Some(Thread::PollMode(d)) => Tas::fast(local, Io::Driver(d)),
            _ => unreachable!("each thread of the fast path has a driver"),
        },
    }))
}

impl Host {
    /// Makes the first requests of `tenant`'s clients; returns false without TAS.
    pub(super) fn start_tas(&mut self, tenant: TenantId) -> bool {
        let Some(t) = &mut self.tenants[tenant].tas else { return false };
        let (now, n) = (self.machine.now, t.client.begin(self.machine.now));
        (0..n).for_each(|_| self.machine.cal.post(now, TrafficEvent::Offer(tenant)));
        true
    }

    /// Draws the next segment of `tenant`'s clients.
    pub(super) fn draw_segment(&mut self, tenant: TenantId) -> Option<DrawnPacket> {
        let state = &mut self.tenants[tenant];
        let (t, s) = (state.tas.as_mut()?, state.source.as_ref()?);
        let segment = t.client.take()?;
        let flow = &t.flows[segment.flow.to_usize()];
        let content = Content {
            kind: if segment.bytes > 0 { ASKS } else { ACKNOWLEDGES },
            key: segment.key(),
            lines: lines(HEADERS + segment.bytes),
            value_lines: 0,
            wire_bytes: frame(segment.bytes),
        };
        Some(DrawnPacket {
            core: s.cores[flow.queue.index() - s.first_queue.index()],
            flow: Some((segment.flow, flow.hash)),
            client: 0,
            content,
        })
    }

    /// Ends the transmission of `tenant`'s packet `id` by the NIC on `port`: the server's data go to the client.
    pub(super) fn on_segment_sent(&mut self, tenant: TenantId, port: PortId, id: PacketId) {
        let now = self.machine.now;
        let Some(nic) = self.machine.nic_at(NicAt::Port(port)) else { return };
        let p = *nic.packet(id);
        nic.packet(id).done = true;
        nic.end_use(id);
        let state = &mut self.tenants[tenant];
        let (Some(t), Some(s)) = (&mut state.tas, &mut state.source) else { return };
        t.ended += 1;
        if p.kind != REPLIES {
            return;
        }
        t.segments += 1;
        let back = s.generator.back_at(p.wire_bytes, now);
        let rpc = t.spec.rpc.0.to_u32();
        for made in t.client.on_segment_sent(TasSegment::of(p.flow, p.key)) {
            state.tally.completed(now - made, rpc);
            s.generator.came_back(back - made, rpc);
        }
        self.machine.cal.post(back, TrafficEvent::Back(tenant));
    }

    /// Delivers the oldest segment of `tenant`'s server on its way to its client; returns false without TAS.
    pub(super) fn on_segment_arrival(&mut self, tenant: TenantId) -> bool {
        let Some(t) = self.tenants[tenant].tas.as_mut() else { return false };
        let now = self.machine.now;
        if self.stopped {
            return true;
        }
        match t.client.on_segment_arrival(now) {
            Ok(n) => (0..n).for_each(|_| self.machine.cal.post(now, TrafficEvent::Offer(tenant))),
            Err(why) => t.broken = Some(why),
        }
        true
    }

    /// Checks TAS's packets and requests.
    ///
    /// # Errors
    /// Returns one sentence about packets or requests that are not conserved, or that arrive out of order.
    pub(super) fn check_tas(&self) -> Result<(), String> {
        let all = self.tenants.enumerate().filter_map(|(t, state)| Some((t, state.tas.as_ref()?)));
        all.into_iter().try_for_each(|(tenant, t)| self.check_service(tenant, t))
    }

    fn check_service(&self, tenant: TenantId, t: &Service) -> Result<(), String> {
        let nic = self.tenants[tenant].source.as_ref().and_then(|s| self.machine.look_at_nic(s.at));
        // Bytes out of order follow from a loss, and the message about the loss is more helpful.
        if let Some((drops, first)) = nic.and_then(|nic| Some((&nic.drops, nic.drops.first_ever()?))) {
            return Err(self.lost_of_tcp(first, drops.total()));
        }
        if let Some(why) = &t.broken {
            return Err(why.clone());
        }
        if !self.stopped {
            t.client.check()?;
        }
        let told = |f: &&crate::stack::tas::TasFlow| {
            f.sent > f.available || f.available > f.written || f.written > f.read || f.read > f.received
        };
        match t.flows.iter().find(told) {
            Some(f) => Err(format!("a flow has answered what it has not: {f:?}")),
            None => Ok(()),
        }
    }

    /// Message about a lost segment, which the clients cannot retransmit, with the choices that the user has.
    fn lost_of_tcp(&self, first: &Loss, all: u64) -> String {
        let s = &self.spec;
        let nics = s.peripherals.iter().enumerate();
        let room = nics.filter_map(|(i, p)| Some((i, p.ethernet()?))).next().map_or(String::new(), |(i, nic)| {
            let descriptors = nic.rings.as_ref().map_or(RingsSpec::default().receive, |r| r.receive);
            format!(
                ", or enlarge peripheral[{i}].receive_buffer = \"{}\" or peripheral[{i}].rings.receive = {descriptors}",
                nic.receive_buffer
            )
        });
        format!(
            "{all} segments of TCP were lost, the first in the NIC's {} (\"{}\"), and retransmission is not built for TAS; lower \
             the load, which is traffic.outstanding = flows x pipelined of tenant[{}].app{room}",
            first.place.name(),
            first.cause.sentence().trim_end_matches('.'),
            s.tas_tenant().unwrap_or_default()
        )
    }

    pub(super) fn tas_metrics(&self, v: &mut Values) {
        for state in self.tenants.iter() {
            let Some(t) = state.tas.as_ref().filter(|t| t.segments > 0) else { continue };
            v.set("tcp_rpcs_per_segment", state.tally.completed.to_f64() / t.segments.to_f64());
        }
    }
}
