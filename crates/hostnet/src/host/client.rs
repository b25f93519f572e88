//! The load generator of a host: its construction, its wire, its closed loop, and its metrics of a measurement window.

use super::traffic_source::{PacketOwner, TrafficSource};
use super::two_hosts::LinkEnd;
use super::Host;
use crate::app::AppSpec;
use crate::config::scenario::{ArrivalsSpec as Spec, Protocol};
use crate::config::traffic::sets_no_size;
use crate::config::Scenario;
use crate::device::nic::Packet;
use crate::device::NicAt;
use crate::kernel::{Int, Post, RandomStream, TenantId, Time};
use crate::meter::table::table;
use crate::meter::{metric, MetricId, Values};
use crate::stack::ccnic::CcnicInterface;
use crate::traffic::generator::{Flows, Generator, Rtt, Sizes, CHECKSUM};
use crate::traffic::mac::Mac;
use crate::traffic::pcap::Capture;
use crate::traffic::writer::{FrameFormat, ReturnedFrames};
use crate::traffic::TrafficEvent;
use serde_json::{json, Value};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Percentiles of round trips, with their shares.
pub(super) const RTT_PERCENTILES: [(MetricId, f64); 4] =
    [(metric::RTT_MEDIAN_US, 0.5), (metric::RTT_P90_US, 0.9), (metric::RTT_P99_US, 0.99), (metric::RTT_P999_US, 0.999)];

/// Builds the generator that a scenario describes for `tenant`, before which `order` others have one.
pub fn generator(s: &Scenario, tenant: TenantId, order: u64) -> Generator {
    let t = s.traffic_of(tenant);
    let sizes = sizes(s, tenant, order);
    let flows = match (t.flows, t.protocol) {
        (_, Protocol::Ethernet) => Flows::unseen(),
        (Some(n), Protocol::Udp) => Flows::udp(n),
        (None, Protocol::Udp) => Flows::Any,
    };
    let g = Generator::new(tenant, sizes, flows);
    let checksum = if t.arrivals() == Spec::Pcap { CHECKSUM } else { 0 };
    match (&t.link, s.nic_of(tenant).filter(|_| s.ring_of(tenant).is_some()).map(|(_, nic)| nic)) {
        (Some(l), _) => g.over(l.rate, l.propagation.into(), false, checksum),
        (None, Some(nic)) => g.over(nic.link, nic.propagation.into(), true, checksum),
        (None, None) => g,
    }
}

/// Sizes of the frames of `tenant`'s traffic, drawn from stream `order`; None where they are all equal, or the application
/// determines them.
pub fn sizes(s: &Scenario, tenant: TenantId, order: u64) -> Option<Sizes> {
    let t = s.traffic_of(tenant);
    let drawn = t.sizes.is_some() && sets_no_size(&s.tenant(tenant).app);
    drawn.then(|| {
        let table = t.frames().into_iter().map(|f| (f.size.0.to_u32(), f.weight));
        Sizes::new(table, RandomStream::new(s.seed, "sizes", order))
    })
}

/// A file that gets its name when all of its content has been written; until then, and after a failure, no file of that
/// name exists.
pub struct PartialFile {
    name: PathBuf,
    part: PathBuf,
    file: File,
}

impl PartialFile {
    /// Creates the unfinished file beside its later name.
    ///
    /// # Errors
    /// Returns one sentence when no file can be created there.
    pub fn beside(name: &Path) -> Result<PartialFile, String> {
        let mut part = name.as_os_str().to_owned();
        part.push(format!(".part-{}", std::process::id()));
        let part = PathBuf::from(part);
        let refuse = |why: String| format!("{} cannot be written: {why}", name.display());
        if name.is_dir() {
            return Err(refuse("it is a directory".into()));
        }
        let file = File::create(&part).map_err(|e| refuse(e.to_string()))?;
        Ok(PartialFile { name: name.into(), part, file })
    }

    /// Writes the content and gives the file its name.
    ///
    /// # Errors
    /// Returns one sentence with the system's error.
    pub fn finish(self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), String> {
        let mut out = BufWriter::new(&self.file);
        let written = write(&mut out).and_then(|()| out.flush());
        written
            .and_then(|()| std::fs::rename(&self.part, &self.name))
            .map_err(|e| format!("{} cannot be written: {e}", self.name.display()))
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        // After the file has been renamed, no unfinished file is left to remove.
        let _ = std::fs::remove_file(&self.part);
    }
}

impl Host {
    /// Starts a closed loop of `tenant`'s generator with `most` outstanding requests at any time.
    pub fn offer_closed(&mut self, tenant: TenantId, most: u32, timeout: Time) {
        let now = self.machine.now;
        let state = &mut self.tenants[tenant];
        if let Some(clients) = state.roles.clients() {
            (0..clients.begin(now)).for_each(|_| self.machine.cal.post(now, TrafficEvent::Offer(tenant)));
        } else if let Some(s) = &mut state.source {
            s.arrivals = None;
            s.depth = 0;
            s.generator.close(most, timeout, &mut self.machine.cal, now);
        }
    }

    /// Handles `TrafficEvent::Offer`: the generator of `tenant` sends a packet, over its wire if it has one.
    pub(super) fn on_offer(&mut self, tenant: TenantId) {
        let state = &mut self.tenants[tenant];
        let Some(s) = &mut state.source else { return };
        let (wire, open) = (s.generator.has_wire(), s.arrivals.is_some());
        let closed = s.generator.is_closed() || state.roles.clients().is_some();
        let owner = s.generator.due().map_or(PacketOwner::Any, PacketOwner::Client);
        // A source that has changed to another process leaves its last event in the calendar.
        if !(closed || open) || self.run.stopped {
            return;
        }
        self.begin_burst(tenant);
        if self.owners.linked == Some(tenant) {
            self.plan(tenant, owner);
        } else if wire {
            if let Some(p) = self.draw_packet(tenant, owner) {
                let now = self.machine.now;
                let Some(s) = &mut self.tenants[tenant].source else { return };
                let arrives = s.generator.send(p, &mut self.machine.cal, now);
                self.machine.cal.post(arrives, TrafficEvent::Arrival(tenant));
                self.share_wire(tenant);
            }
        } else {
            self.inject(tenant, owner);
        }
        self.next_arrival(tenant);
    }

    /// Plans a request of `tenant`'s traffic, which is due now at the other host. Returns false without a request.
    pub(super) fn plan(&mut self, tenant: TenantId, owner: PacketOwner) -> bool {
        let now = self.machine.now;
        let Some(p) = self.draw_packet(tenant, owner) else { return false };
        let (p, state) = (Packet { arrived: now, ..p }, &mut self.tenants[tenant]);
        if let Some(s) = &mut state.source {
            s.generator.plan(&p, &mut self.machine.cal);
        }
        if let Some(e) = state.roles.get_mut::<LinkEnd>() {
            e.plan_request(p);
        }
        true
    }

    /// Makes the wire of `tenant`'s NIC as busy for the other tenants of that NIC as it is for this one.
    fn share_wire(&mut self, tenant: TenantId) {
        let source = self.tenants[tenant].source.as_ref().filter(|s| s.at != NicAt::Chip);
        let Some((at, busy)) = source.map(|s| (s.at, s.generator.wire_is_busy_until())) else { return };
        let others = self.tenants.enumerate_mut().filter(|(t, _)| *t != tenant);
        for s in others.filter_map(|(_, state)| state.source.as_mut()).filter(|s| s.at == at) {
            s.generator.wait_for_wire(busy);
        }
    }

    /// Handles `TrafficEvent::Arrival` at the end of `tenant`'s wire. Returns false when there is no wire.
    pub(super) fn on_wire_arrival(&mut self, tenant: TenantId) -> bool {
        let source = &mut self.tenants[tenant].source;
        let Some(s) = source.as_mut().filter(|s| s.generator.has_wire()) else { return false };
        if let Some(p) = s.generator.take_off() {
            if !self.deliver_to_nic(tenant, p) {
                self.lost_in_loop(tenant, p.queue);
            }
        }
        true
    }

    /// Handles `TrafficEvent::Back`: a reply is back at the generator of `tenant`.
    pub(super) fn on_back(&mut self, tenant: TenantId) {
        if self.any_role(tenant, |role, bus| role.on_traffic(TrafficEvent::Back(tenant), bus)) {
            return;
        }
        let source = self.tenants[tenant].source.as_mut().filter(|_| !self.run.stopped);
        if let Some(s) = source {
            s.generator.on_back(&mut self.machine.cal, self.machine.now);
        }
    }

    /// Handles `TrafficEvent::Overdue`: requests of `tenant`'s generator, or a frame of a loop, have waited too long.
    pub(super) fn on_overdue(&mut self, tenant: TenantId) {
        if self.give_up_lost_frame(tenant) {
            return;
        }
        let source = self.tenants[tenant].source.as_mut().filter(|_| !self.run.stopped);
        if let Some(s) = source {
            s.generator.on_overdue(&mut self.machine.cal, self.machine.now);
        }
    }

    /// Reports the reply of `tenant` to `p`, which has left the NIC, to its sender.
    #[inline]
    pub(super) fn replied(&mut self, tenant: TenantId, p: &Packet) {
        let state = &mut self.tenants[tenant];
        if let Some(e) = state.roles.get_mut::<LinkEnd>() {
            e.reply(p, self.machine.now);
        } else if let Some(s) = &mut state.source {
            s.generator.replied(p, &mut self.machine.cal, self.machine.now);
        }
    }

    /// Starts to record every packet that returns, for `returned`.
    pub fn record_returned(&mut self) {
        for s in self.tenants.iter_mut().filter_map(|t| t.source.as_mut()) {
            s.generator.record();
        }
    }

    /// Contents of the frames that return to the generator of `tenant`, which may replay `capture`.
    fn frames(&self, tenant: TenantId, capture: Option<Arc<Capture>>) -> FrameFormat {
        let t = self.spec.traffic_of(tenant);
        FrameFormat {
            host: t.destination_mac.unwrap_or(Mac::HOST),
            generator: t.source_mac,
            udp: t.protocol == Protocol::Udp,
            stamp: t.stamp,
            capture,
            answers: matches!(self.spec.tenant(tenant).app, AppSpec::Memcached(_)),
        }
    }

    /// Packets that returned in the window to the generator of each tenant.
    pub(super) fn returned(&self) -> ReturnedFrames {
        let own = |(t, s): (_, &TrafficSource)| (self.frames(t, s.capture.clone()), s.generator.returned().to_vec());
        self.sources().map(own).collect()
    }

    /// Sets the generator's metrics of a window of `us` microseconds.
    pub(super) fn client_metrics(&self, v: &mut Values, us: f64) {
        let Some(rtt) = self.round_trips() else { return };
        let sent: u64 = self.sources().map(|(_, s)| s.generator.offered_bytes).sum();
        let offered = sent.to_f64() + self.bytes_offered_to_interfaces();
        v.set(metric::OFFERED_GBPS, offered * 8.0 / us / 1e3);
        if rtt.count() == 0 {
            return;
        }
        v.set(metric::ACHIEVED_GBPS, rtt.bytes.to_f64() * 8.0 / us / 1e3);
        v.set(metric::RTT_MEAN_US, rtt.mean_ns() / 1e3);
        v.set(metric::RTT_SD_US, rtt.sd_ns() / 1e3);
    }

    /// Bytes of the packets that were due in the window at interfaces of CC-NIC, whose threads generate them.
    fn bytes_offered_to_interfaces(&self) -> f64 {
        let interfaces = self.roles_of::<CcnicInterface>().into_iter();
        let own = interfaces.filter(|(_, view)| self.tenants[view.tenant].source.is_none());
        own.map(|(interface, view)| match (self.due(view.tenant), &self.spec.tenant(view.tenant).app) {
            (Some(d), AppSpec::Loopback(app)) => d.due.to_f64() * app.bytes.0.to_f64(),
            (Some(d), _) => d.due.to_f64() * self.spec.traffic_of(view.tenant).frame_sizes().1,
            // In a closed loop a packet is sent for each that is back.
            (None, _) => interface.trips.bytes.to_f64(),
        })
        .sum()
    }

    /// Round-trip times of the packets of all generators in the window, those of CC-NIC's threads among them; None without a
    /// generator beyond a wire.
    pub(super) fn round_trips(&self) -> Option<Cow<'_, Rtt>> {
        let mut all = self.sources().map(|(_, s)| &s.generator.rtt);
        let mut sum = Cow::Borrowed(all.next()?);
        all.for_each(|rtt| sum.to_mut().merge(rtt));
        let interfaces = self.roles_of::<CcnicInterface>();
        let trips = interfaces.iter().map(|(interface, _)| &interface.trips).filter(|t| t.packets > 0);
        trips.for_each(|t| sum.to_mut().merge_trips(&t.histogram, t.bytes));
        Some(sum)
    }

    /// Table of the window's round-trip times: the share of packets with at most this time, and the number of packets
    /// with this time.
    pub(super) fn rtt_table(&self) -> Option<Value> {
        let rtt = self.round_trips()?;
        let mut seen = 0;
        let row = |x: hdrhistogram::iterators::IterationValue<u64>| {
            seen += x.count_at_value();
            let (us, n) = (x.value_iterated_to().to_f64() / 1e3, x.count_at_value());
            vec![json!(us), json!(seen.to_f64() / rtt.count().to_f64()), json!(n)]
        };
        let rows: Vec<_> = rtt.histogram.iter_recorded().map(row).collect();
        let columns = [("rtt_us", "us"), ("fraction", "1"), ("packets", "packets")];
        (!rows.is_empty()).then(|| table(&columns, rows))
    }

    /// Table of the window's packets. The packets in the host at the start and the packets offered equal the packets
    /// served, the packets lost and the packets in the host at the end.
    pub(super) fn packet_table(&self) -> Option<Value> {
        self.sources().next()?;
        let before = self.meters.window.packets;
        let (ended, own) = self.packets_ended();
        let (ended_before, own_before) = self.meters.window.ended;
        let rows = [
            ("in the host at the start", before.1),
            ("offered", self.packets_offered() - before.0),
            ("served", (ended + own_before).saturating_sub(ended_before + own)),
            ("lost", self.lost()),
            ("in the host at the end", self.packets_inside()),
        ];
        let rows = rows.map(|(what, n)| vec![json!(what), json!(n)]).to_vec();
        Some(table(&[("what", ""), ("packets", "packets")], rows))
    }
}
