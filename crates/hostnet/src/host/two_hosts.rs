//! Two hosts joined by a link: one serves, and software on the other is its load generator.
//!
//! ```text
//!   traffic's plan --> due at a core --> its NIC --> link --> NIC --> server
//!   round trips    <-- core is done  <-- its NIC <-- link <-- NIC <-----+
//! ```
//!
//! Both hosts have machines of their own in one [`World`]. A packet that leaves one host for the other is put into an
//! outbox and transferred after the event.

use super::life::round_trips;
use super::measure::Outcome;
use super::traffic_source::TrafficSource;
use super::Host;
use crate::config::Scenario;
use crate::device::nic::{Nic, Packet};
use crate::kernel::{Int, QueueId, TenantId, ThreadId, Time};
use crate::machine::{Machine, World};
use crate::meter::{metric, Values};
use crate::stack::{Notice, Role};
use crate::traffic::generator::reply_bytes;
use crate::traffic::software::{Answered, SoftwareClient};
use crate::traffic::TrafficEvent;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Transfer from one host to the other.
#[derive(Clone, Copy)]
enum LinkMessage {
    /// A request of the traffic is due.
    Planned(Packet),
    /// A frame with the time at which its last bit arrives; also the number and the core of the request that the frame
    /// carries or answers.
    Frame(Time, Packet, (u64, u16)),
}

/// One host's end of the link.
#[derive(Clone)]
pub(super) struct LinkEnd {
    flight: Time,
    out: VecDeque<LinkMessage>,
    /// Frames in flight to this host.
    coming: VecDeque<(Packet, (u64, u16))>,
    /// Number of frames that have left.
    left: u64,
    /// Requests that were planned for each queue of this host, if it is the server, and that have not arrived.
    planned: HashMap<QueueId, u32>,
    /// Requests in this host, if it is the server, by arrival time and flow.
    asked: HashMap<(Time, u32), VecDeque<(u64, u16)>>,
}

impl LinkEnd {
    pub fn new(flight: Time) -> LinkEnd {
        let (out, coming) = Default::default();
        LinkEnd { flight, out, coming, left: 0, planned: HashMap::new(), asked: HashMap::new() }
    }

    /// Transfers a request of the traffic that is due to the client.
    pub fn plan_request(&mut self, p: Packet) {
        *self.planned.entry(p.queue).or_default() += 1;
        self.out.push_back(LinkMessage::Planned(p));
    }

    /// Requests on their way to `queue` of this host: planned, and not arrived.
    pub fn on_the_way(&self, queue: QueueId) -> u32 {
        self.planned.get(&queue).copied().unwrap_or(0)
    }

    /// Sends frame `p`, which carries or answers a request with this number and core.
    pub fn send(&mut self, p: Packet, request: (u64, u16), now: Time) {
        self.left += 1;
        self.out.push_back(LinkMessage::Frame(now + self.flight, p, request));
    }

    /// Transfers the reply to `p`, which is on the wire.
    pub fn reply(&mut self, p: &Packet, now: Time) {
        let key = (p.arrived, p.flow);
        let Some(waiting) = self.asked.get_mut(&key) else { return };
        let Some(request) = waiting.pop_front() else { return };
        if waiting.is_empty() {
            self.asked.remove(&key);
        }
        let (number, core) = request;
        let reply = Packet { flow: core.into(), key: number, wire_bytes: reply_bytes(p), uses: 1, ..Packet::default() };
        self.send(reply, request, now);
    }
}

impl Role for LinkEnd {}

impl Host {
    /// Lets a frame of the other host for `tenant` arrive from the link. Returns false when there is no other host.
    pub(super) fn on_link_arrival(&mut self, tenant: TenantId) -> bool {
        if self.owners.linked != Some(tenant) {
            return false;
        }
        let Some((p, request)) = self.link_end_mut().and_then(|e| e.coming.pop_front()) else { return false };
        if let Some(n) = self.link_end_mut().and_then(|e| e.planned.get_mut(&p.queue)) {
            *n = n.saturating_sub(1);
        }
        let now = self.machine.now;
        self.comes(tenant, Some(request.0));
        let delivered = self.deliver_to_nic(tenant, p);
        self.comes(tenant, None);
        if delivered && self.software_client().is_none() {
            if let Some(e) = self.link_end_mut() {
                e.asked.entry((now, p.flow)).or_default().push_back(request);
            }
        }
        true
    }
}

impl Host {
    /// Source of the packets that come over the link from the other host.
    fn linked_source(&self) -> Option<&TrafficSource> {
        self.tenants[self.owners.linked?].source.as_ref()
    }

    /// End of the link to the other host.
    fn link_end(&self) -> Option<&LinkEnd> {
        self.tenants[self.owners.linked?].roles.get()
    }

    /// End of the link to the other host.
    fn link_end_mut(&mut self) -> Option<&mut LinkEnd> {
        self.tenants[self.owners.linked?].roles.get_mut()
    }

    /// Requests on their way to `queue` over the link from the other host.
    pub(super) fn requests_on_the_way(&self, queue: QueueId) -> u32 {
        self.link_end().map_or(0, |e| e.on_the_way(queue))
    }

    /// Load generator that this host's cores are, if it is the client.
    fn software_client(&self) -> Option<&SoftwareClient> {
        self.tenants[self.owners.linked?].roles.get()
    }

    /// Load generator that this host's cores are, if it is the client.
    fn software_client_mut(&mut self) -> Option<&mut SoftwareClient> {
        self.tenants[self.owners.linked?].roles.get_mut()
    }

    /// Joins `tenant` to the other host by a link on which a frame flies for `flight`.
    fn link(&mut self, tenant: TenantId, flight: Time) {
        self.owners.linked = Some(tenant);
        self.tenants[tenant].roles.add(LinkEnd::new(flight));
    }

    /// NIC at this end of the link.
    fn linked_nic(&self) -> Option<&Nic> {
        self.machine.look_at_nic(self.linked_source()?.at)
    }
}

impl AsMut<Machine> for Host {
    fn as_mut(&mut self) -> &mut Machine {
        &mut self.machine
    }
}

/// Builds the host of a scenario, and the host of its client if the scenario has one.
///
/// # Errors
/// Returns one sentence that names the key or the file that does not work.
pub fn hosts(spec: &Arc<Scenario>, keep_frames: bool) -> Result<World<Host>, String> {
    let mut members = vec![Host::build(spec.clone(), keep_frames)?];
    if let Some(other) = spec.client_host() {
        let mut client = Host::build(Arc::new(other), false)?;
        let cores = client.spec.tenants[0].cores.to_usize();
        let nic = client.spec.peripherals[0].ethernet().expect("a client has a NIC");
        let flight = nic.propagation.into();
        client.link(TenantId(0), flight);
        client.tenants[TenantId(0)].roles.add(SoftwareClient::new(cores));
        let served = members[0].spec.ringed().map_or(TenantId(0), |r| r.tenant);
        members[0].link(served, flight);
        members.push(client);
    }
    let mut world = World::new(members);
    world.lend(0);
    Ok(world)
}

impl World<Host> {
    /// Runs until the time of the first host is `end` or later, or until `done` returns true for the first host; both are
    /// checked after each event. The first host has the calendar afterwards.
    pub fn run_until(&mut self, end: Time, mut done: impl FnMut(&Host) -> bool) {
        if self.members.len() == 1 {
            return self.members[0].run_until(end, done);
        }
        self.carry(0); // requests that were planned between two runs
        while let Some((i, e)) = self.pop() {
            self.members[i].handle(e);
            self.carry(i);
            if done(&self.members[0]) || self.members[0].machine.now >= end {
                break;
            }
        }
        let now = self.members.iter().map(|h| h.machine.now).max().unwrap_or_default();
        self.members.iter_mut().for_each(|h| h.machine.now = now);
        self.lend(0);
    }

    /// Transfers the content of host `from`'s outbox to the other host.
    fn carry(&mut self, from: usize) {
        let (to, now) = (1 - from, self.members[from].machine.now);
        while let Some(c) = self.members[from].link_end_mut().and_then(|e| e.out.pop_front()) {
            match c {
                LinkMessage::Frame(at, p, request) => {
                    self.lend(from);
                    let tenant = self.members[to].owners.linked.unwrap_or(TenantId(0));
                    let arrival = TrafficEvent::Arrival(tenant);
                    self.members[from].machine.cal.push_to(to.to_u8(), at, arrival.into());
                    if let Some(e) = self.members[to].link_end_mut() {
                        e.coming.push_back((p, request));
                    }
                }
                LinkMessage::Planned(p) => {
                    self.lend(to);
                    let other = &mut self.members[to];
                    other.machine.now = now;
                    let client = other.software_client_mut();
                    let core = client.expect("the other host is the client").plan(p);
                    other.notify(ThreadId::new(core), Notice::Begin);
                }
            }
        }
        let (first, others) = self.members.split_at_mut(1);
        let Some(client) = others[0].software_client_mut() else { return };
        let answered: Vec<Answered> = std::iter::from_fn(|| client.told()).collect();
        if answered.is_empty() {
            return;
        }
        let tenant = first[0].owners.linked.unwrap_or(TenantId(0));
        self.lend(0);
        let server = &mut self.members[0];
        let Some(s) = &mut server.tenants[tenant].source else { return };
        for a in answered {
            s.generator.came_back(a.back - a.sent, a.bytes);
            s.generator.answered(a.due, a.client, &mut server.machine.cal, now);
        }
    }

    /// Adds the lives of the window's round trips to its outcome, where the run has a client and records lives.
    pub(super) fn client_lives(&mut self, outcome: &mut Outcome) {
        if let ([server, client], Some(_)) = (&mut self.members[..], &outcome.lives) {
            outcome.lives = Some(Box::new(round_trips(server, client)));
        }
    }

    /// Starts a new window at every host.
    pub(super) fn restart_window(&mut self) {
        self.members.iter_mut().for_each(Host::restart_window);
    }

    /// Adds the client's metrics of the window.
    pub(super) fn client_metrics(&self, v: &mut Values) {
        let Some(client) = self.members.get(1) else { return };
        v.set(metric::CLIENT_UTILISATION, client.polling_share());
        // The client's NIC drives the link to the host.
        if let Some(busy) = client.linked_nic().and_then(|nic| nic.wire_busy(client.machine.now)) {
            let others = v.get(metric::WIRE_IN_UTIL).unwrap_or(0.0);
            v.set(metric::WIRE_IN_UTIL, others.max(client.share_of_window(busy)));
        }
        v.set(metric::CLIENT_DROPS, client.lost().to_f64());
        v.set(metric::CLIENT_LATE, client.software_client().map_or(0, SoftwareClient::late).to_f64());
    }

    /// Checks the conservation laws at every host and between the hosts.
    ///
    /// # Errors
    /// Returns one sentence about what is not conserved.
    pub fn check(&self) -> Result<(), String> {
        self.members.iter().try_for_each(Host::check)?;
        let [server, client] = &self.members[..] else { return Ok(()) };
        let (Some(here), Some(there), Some(s)) = (server.link_end(), client.link_end(), server.linked_source()) else {
            return Ok(());
        };
        let (planned, late) = (s.generator.sent, client.software_client().map_or(0, SoftwareClient::late));
        let begun = client.linked_nic().map_or(0, |n| n.counts.originated);
        if planned != late + begun {
            return Err(format!("{planned} requests were due at the client, {late} wait and {begun} were begun"));
        }
        for (what, end, other, at) in [("requests", there, here, server), ("replies", here, there, client)] {
            let (left, under_way, came) =
                (end.left, other.coming.len().to_u64(), at.linked_nic().map_or(0, |n| n.counts.offered));
            if left != under_way + came {
                return Err(format!("{left} {what} left, {came} came and {under_way} are on the link"));
            }
        }
        Ok(())
    }
}
