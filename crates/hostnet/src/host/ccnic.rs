//! CC-NIC on a host: allocation of its memory, its threads on both sides, and its metrics of a measurement window.

use super::measure::table;
use super::tenant::TenantState;
use super::threads::demand;
use super::{CoreSlot, Host};
use crate::app::loopback::LoopbackSpec;
use crate::app::AppSpec;
use crate::config::scenario::StackSpec;
use crate::config::Scenario;
use crate::kernel::{Int, LineAddr, NodeId, TenantId, ThreadId};
use crate::memory::region::{AddressMap, RegionKind, Sharing};
use crate::memory::OffCore;
use crate::meter::Values;
use crate::stack::ccnic::spec::{CcnicMode, CcnicSide, CcnicSpec, PoolKind};
use crate::stack::ccnic::{CcnicInterface, CcnicMemory, CcnicThread, Setup};
use crate::stack::Thread;
use serde_json::{json, Value};

/// The tenant on CC-NIC, and its application.
pub struct CcnicTenant<'a> {
    pub tenant: TenantId,
    pub queues: u32,
    /// Generator of packets; None for an overlay.
    pub app: Option<&'a LoopbackSpec>,
    pub spec: CcnicSpec,
}

/// Parts of the scenario that describe `tenant` on CC-NIC; None on another stack.
pub fn parts(s: &Scenario, tenant: TenantId) -> Option<CcnicTenant<'_>> {
    if s.tenant(tenant).stack != Some(StackSpec::Ccnic) {
        return None;
    }
    let app = match &s.tenant(tenant).app {
        AppSpec::Loopback(app) => Some(app),
        _ => None,
    };
    let queues = s.peers_of(tenant)?.cores.max(s.tenant(tenant).receivers());
    Some(CcnicTenant { tenant, queues, app, spec: s.ccnic.clone().unwrap_or_default() })
}

/// Objects to whose lines requests are counted, in the order of `CcnicMemory`'s regions.
const OBJECTS: [&str; 6] = ["tx descriptors", "rx descriptors", "tx registers", "rx registers", "pool", "payload"];

/// Allocates the memory of `tenant`'s interface, at its home nodes; any core's caches may hold all of it.
pub fn build(s: &Scenario, tenant: TenantId, map: &mut AddressMap) -> Option<Box<CcnicInterface>> {
    let CcnicTenant { queues, spec, .. } = parts(s, tenant)?;
    let nodes = |end| match end {
        CcnicSide::Host => NodeId(s.tenant(tenant).node),
        CcnicSide::Nic => NodeId(spec.nic_node.to_u8()),
    };
    let (tx, rx, buffer) = (nodes(spec.tx_home), nodes(spec.rx_home), nodes(spec.buffer_home));
    let mut homes = [tx, rx, tx, rx, buffer, buffer].into_iter();
    let [tx_rings, rx_rings, tx_registers, rx_registers, pools, buffers] = spec.lines(queues.into()).map(|lines| {
        let r = map.add(lines, RegionKind::App, Sharing::Shared, tenant);
        map.set_home(r, homes.next().unwrap_or(buffer));
        map.get(r).base
    });
    let nic = s.ringed().filter(|_| s.overlay()).map(|ringed| ringed.port);
    let memory = CcnicMemory { tx_rings, rx_rings, tx_registers, rx_registers, pools, buffers };
    Some(Box::new(CcnicInterface::new(&spec, queues, memory, nic)))
}

/// Thread of core `local` of `tenant`; cores beyond the tenant's own belong to the NIC. `driven` yields an overlay's
/// drivers, each with the first line of the data that it sends.
pub fn thread(
    s: &Scenario,
    tenant: TenantId,
    i: &CcnicInterface,
    local: usize,
    driven: &mut impl Iterator<Item = (Thread, LineAddr)>,
) -> Thread {
    let p = parts(s, tenant).expect("an interface has a tenant");
    let own = s.tenant(p.tenant).cores.to_usize();
    let forwards = p.spec.mode == CcnicMode::Forward;
    let setup = Setup { spec: &p.spec, core: &s.platform.core, interface: i };
    let demand = |queue, app: &LoopbackSpec| demand(s, tenant, queue, i.pairs.len(), app.bytes.0);
    Thread::CcNic(Box::new(match (local.checked_sub(own), p.app) {
        (None, Some(app)) if forwards => CcnicThread::server(setup, Some(app), local, own),
        (Some(queue), Some(app)) if forwards => CcnicThread::wire(setup, queue, app, demand(queue, app)),
        (None, Some(app)) => CcnicThread::host(setup, local, app, demand(local, app)),
        (None, None) => CcnicThread::server(setup, None, local, own),
        (Some(first), Some(app)) => match s.peers_of(p.tenant).map_or(own, |p| p.cores.to_usize()) {
            threads if threads < own => CcnicThread::bank(setup, (first..own).step_by(threads), app),
            _ => CcnicThread::nic(setup, first, app),
        },
        (Some(queue), None) => match driven.next() {
            Some((Thread::PollMode(driver), data)) => CcnicThread::overlay(setup, queue, *driver, data),
            _ => unreachable!("an overlay has a poll-mode driver for each thread of the NIC"),
        },
    }))
}

/// Requests that are counted: all requests, requests that another node answered, or requests of a NIC core for lines of
/// the packet that the core works on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CountedRequests {
    All,
    Remote,
    Watched,
}

impl Host {
    /// The first tenant on CC-NIC, with its interface.
    fn interface(&self) -> Option<(TenantId, &CcnicInterface)> {
        self.tenants.enumerate().find_map(|(t, state)| Some((t, state.ccnic.as_deref()?)))
    }

    pub(super) fn has_ccnic(&self) -> bool {
        self.interface().is_some()
    }

    /// Whether a window lasts for a number of requests, rather than for a time.
    pub(super) fn counts_requests(&self) -> bool {
        self.sources().next().is_some() || self.counts_own_requests()
    }

    /// Whether the host's threads count requests that do not pass through a NIC.
    pub(super) fn counts_own_requests(&self) -> bool {
        self.tenants.iter().any(TenantState::counts_own_requests)
    }

    /// Threads of both sides of `tenant`'s interface.
    fn agents(&self, tenant: TenantId) -> impl Iterator<Item = (ThreadId, &CcnicThread)> {
        let cores = self.cores.enumerate().filter(move |(_, slot)| slot.tenant == tenant);
        cores.filter_map(|(c, CoreSlot { thread, .. })| match thread {
            Thread::CcNic(a) => Some((c, &**a)),
            _ => None,
        })
    }

    /// Checks that each buffer of CC-NIC is in exactly one place.
    ///
    /// # Errors
    /// Returns one sentence when a buffer is in no place, or in two.
    pub(super) fn check_ccnic(&self) -> Result<(), String> {
        let Some((tenant, i)) = self.interface() else { return Ok(()) };
        let all: u32 = i.pools.iter().flat_map(|p| p.count).sum();
        let free: usize = i.pools.iter().flat_map(|p| &p.rings).map(|r| r.free()).sum();
        let held: usize = self.agents(tenant).map(|(_, a)| a.held()).sum();
        // Buffers in rings are in nobody's stacks, unless the host alone manages buffers. TAS holds some buffers of its
        // own.
        let hosts =
            self.spec.ccnic.as_ref().is_some_and(|c| c.pool == PoolKind::Host) && self.tenants[tenant].tas.is_none();
        if free + held > all.to_usize() || hosts && free + held < all.to_usize() {
            return Err(format!("{all} buffers are {free} in the pool and {held} with threads"));
        }
        Ok(())
    }

    /// Requests of the host's or the NIC's cores that left their L2, by object.
    fn off_core(&self, host: bool, of: CountedRequests) -> [OffCore; 6] {
        let mut sum = [OffCore::default(); 6];
        let (Some((tenant, i)), Some(counts)) = (self.interface(), &self.machine.mem.off_core) else { return sum };
        let m = &i.memory;
        for (c, _) in self.agents(tenant).filter(|(_, a)| a.is_host() == host) {
            let lines = [m.tx_rings, m.rx_rings, m.tx_registers, m.rx_registers, m.pools, m.buffers];
            for (to, line) in sum.iter_mut().zip(lines) {
                let region = self.machine.mem.map.id(line);
                let n = match of {
                    CountedRequests::All => counts.of(c, region),
                    CountedRequests::Remote => counts.remote(c, region),
                    CountedRequests::Watched => counts.watched(c, region),
                };
                *to = OffCore { reads: to.reads + n.reads, owns: to.owns + n.owns, streams: to.streams + n.streams };
            }
        }
        sum
    }

    pub(super) fn ccnic_metrics(&self, v: &mut Values, us: f64) {
        let Some((tenant, i)) = self.interface() else { return };
        let t = &i.trips;
        // An overlay's packets are counted where the application serves them.
        let packets = if t.packets == 0 { self.tenants[tenant].tally.completed } else { t.packets };
        let per = |n: u64| n.to_f64() / packets.to_f64();
        if packets > 0 && (t.packets > 0 || t.blanks > 0) {
            v.set("host_blanks_per_packet", per(t.blanks));
            v.set("host_tx_frees_per_packet", per(t.swept));
            v.set("host_writes_retained", per(t.retained));
        }
        if t.packets == 0 {
            return;
        }
        v.set("achieved_mpps", t.packets.to_f64() / us);
        v.set("achieved_gbps", t.bytes.to_f64() * 8.0 / us / 1e3);
        v.set("rtt_min_ns", t.histogram.min().to_f64() / 1e3);
        v.set("rtt_mean_us", t.histogram.mean() / 1e6);
        let quantiles = [("rtt_median_us", 0.5), ("rtt_p90_us", 0.9), ("rtt_p99_us", 0.99), ("rtt_p999_us", 0.999)];
        for (name, q) in quantiles {
            v.set(name, t.histogram.value_at_quantile(q).to_f64() / 1e6);
        }
        for (host, of, reads, owns) in [
            (true, CountedRequests::All, "host_reads_per_packet", "host_rfos_per_packet"),
            (false, CountedRequests::All, "nic_reads_per_packet", "nic_rfos_per_packet"),
            (true, CountedRequests::Remote, "host_remote_reads", "host_remote_rfos"),
            (false, CountedRequests::Remote, "nic_remote_reads", "nic_remote_rfos"),
        ] {
            let n = self.off_core(host, of);
            v.set(reads, per(n.iter().map(|o| o.reads).sum()));
            v.set(owns, per(n.iter().map(|o| o.owns).sum()));
        }
        let (of_host, of_nic) =
            (self.off_core(true, CountedRequests::Remote), self.off_core(false, CountedRequests::Remote));
        let crossed = [of_host[5], of_nic[5]].map(|o| o.reads + o.owns + o.streams);
        v.set("payload_lines_crossed", per(crossed.iter().sum()));
        if !t.discovery.is_empty() {
            v.set("signal_discovery_ns", t.discovery.value_at_quantile(0.5).to_f64() / 1e3);
        }
        v.set("host_remote_rfos_payload", per(of_host[5].owns));
        v.set("nic_remote_reads_descriptor", per(of_nic[0].reads + of_nic[1].reads));
        v.set("nic_remote_reads_tx", per(of_nic[0].reads + of_nic[2].reads));
        if !i.nic_cores.is_empty() {
            let at_work = self.off_core(false, CountedRequests::Watched);
            v.set("nic_signal_reads", per(at_work[0].reads + at_work[2].reads));
        }
        v.set("nic_remote_reads_register", per(of_nic[2].reads + of_nic[3].reads));
        v.set("nic_remote_reads_payload", per(of_nic[5].reads));
        let (mut host, mut nic, mut pool, mut fallbacks) = (0, 0, 0, 0);
        for (c, a) in self.agents(tenant) {
            *(if a.is_host() { &mut host } else { &mut nic }) += self.machine.cpus[c].instructions;
            let n = a.pool_counts();
            pool += n.takes + n.puts;
            fallbacks += n.fallbacks;
        }
        v.set("host_instructions_per_packet", per(host));
        v.set("nic_instructions_per_packet", per(nic));
        v.set("pool_ops_per_packet", per(pool));
        v.set("small_fallbacks", fallbacks.to_f64());
        v.set("throughput_mrps", t.packets.to_f64() / us);
    }

    /// Table of the requests that left the L2, by side and object.
    pub(super) fn off_core_table(&self) -> Option<Value> {
        let (tenant, i) = self.interface()?;
        let packets = match i.trips.packets {
            0 => self.tenants[tenant].tally.completed,
            n => n,
        };
        let packets = packets.max(1).to_f64();
        let mut rows = Vec::new();
        for (side, host) in [("host", true), ("NIC", false)] {
            for ((object, n), r) in OBJECTS
                .iter()
                .zip(self.off_core(host, CountedRequests::All))
                .zip(self.off_core(host, CountedRequests::Remote))
            {
                let per = |k: u64| json!(k.to_f64() / packets);
                let row = [n.reads, n.owns, n.streams, r.reads, r.owns, r.streams].map(per);
                rows.push([json!(side), json!(object)].into_iter().chain(row).collect());
            }
        }
        let unit = "1/packet";
        let columns = [
            ("side", ""),
            ("object", ""),
            ("reads", unit),
            ("rfos", unit),
            ("nontemporal", unit),
            ("remote_reads", unit),
            ("remote_rfos", unit),
            ("remote_nontemporal", unit),
        ];
        Some(table(&columns, rows))
    }
}
