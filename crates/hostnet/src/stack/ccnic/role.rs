//! CC-NIC as a role: its conservation law, and its metrics of a measurement window.

use super::{CcnicInterface, CcnicThread, RoundTrips};
use crate::kernel::{Int, ThreadId};
use crate::memory::OffCore;
use crate::meter::table::table;
use crate::meter::{metric, Values};
use crate::stack::role::{Bus, FunctionalBuffers, Role, RoleView};
use crate::stack::Thread;
use hdrhistogram::Histogram;
use serde_json::{json, Value};
use std::borrow::Cow;

/// Objects to whose lines requests are counted, in the order of `CcnicMemory`'s regions.
const OBJECTS: [&str; 6] = ["tx descriptors", "rx descriptors", "tx registers", "rx registers", "pool", "buffers"];

/// Requests that are counted: all requests, requests that another node answered, or requests of a NIC core for lines of
/// the packet that the core works on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CountedRequests {
    All,
    Remote,
    Watched,
}

/// Threads of both sides of the interface.
fn agents<'a>(view: &'a RoleView) -> impl Iterator<Item = (ThreadId, &'a CcnicThread)> {
    view.own_threads().filter_map(|(c, thread)| match thread {
        Thread::CcNic(a) => Some((c, &**a)),
        _ => None,
    })
}

impl CcnicInterface {
    /// Requests of the host's or the NIC's cores that left their L2, by object.
    fn off_core(&self, view: &RoleView, host: bool, of: CountedRequests) -> [OffCore; 6] {
        let mut sum = [OffCore::default(); 6];
        let Some(counts) = &view.machine.mem.off_core else { return sum };
        let m = &self.memory;
        for (c, _) in agents(view).filter(|(_, a)| a.is_host() == host) {
            let lines = [m.tx_rings, m.rx_rings, m.tx_registers, m.rx_registers, m.pools, m.buffers];
            for (to, line) in sum.iter_mut().zip(lines) {
                let region = view.machine.mem.map.id(line);
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
}

/// An interface and the state of the host that it sees.
type Seen<'a> = (&'a CcnicInterface, RoleView<'a>);

impl CcnicInterface {
    /// Packets of the window.
    fn packets(&self, view: &RoleView) -> u64 {
        // An overlay's packets are counted where the application serves them.
        match self.trips.packets {
            0 => view.tally.completed,
            n => n,
        }
    }

    /// Round trips of the packets of all interfaces.
    fn trips<'a>(all: &[&Seen<'a>]) -> Cow<'a, RoundTrips> {
        let mut each = all.iter().map(|(i, _)| &i.trips);
        let mut sum = each.next().map_or_else(|| Cow::Owned(RoundTrips::new()), Cow::Borrowed);
        each.for_each(|t| sum.to_mut().merge(t));
        sum
    }

    /// Sets the metrics of all interfaces of a host in the window that ends now, but those of the load generator.
    pub fn report(all: &[Seen], v: &mut Values) {
        let posting: Vec<&Seen> =
            all.iter().filter(|(i, view)| i.packets(view) > 0 && i.trips.packets + i.trips.blanks > 0).collect();
        let packets = |of: &[&Seen]| of.iter().map(|(i, view)| i.packets(view)).sum::<u64>().to_f64();
        if !posting.is_empty() {
            let (t, packets) = (CcnicInterface::trips(&posting), packets(&posting));
            v.set(metric::HOST_BLANKS_PER_PACKET, t.blanks.to_f64() / packets);
            v.set(metric::HOST_TX_FREES_PER_PACKET, t.swept.to_f64() / packets);
            v.set(metric::HOST_WRITES_RETAINED, t.retained.to_f64() / packets);
        }
        let returning: Vec<&Seen> = posting.into_iter().filter(|(i, _)| i.trips.packets > 0).collect();
        let Some((_, view)) = returning.first() else { return };
        let t = CcnicInterface::trips(&returning);
        let per = |n: u64| n.to_f64() / t.packets.to_f64();
        v.set(metric::ACHIEVED_MPPS, t.packets.to_f64() / (view.span().to_f64() / 1e6));
        v.set(metric::RTT_MIN_NS, t.histogram.min().to_f64() / 1e3);
        let off_core = |host: bool, of: CountedRequests| {
            returning.iter().map(|(i, view)| i.off_core(view, host, of)).fold([OffCore::default(); 6], together)
        };
        for (host, of, reads, owns) in [
            (true, CountedRequests::All, metric::HOST_READS_PER_PACKET, metric::HOST_RFOS_PER_PACKET),
            (false, CountedRequests::All, metric::NIC_READS_PER_PACKET, metric::NIC_RFOS_PER_PACKET),
            (true, CountedRequests::Remote, metric::HOST_REMOTE_READS, metric::HOST_REMOTE_RFOS),
            (false, CountedRequests::Remote, metric::NIC_REMOTE_READS, metric::NIC_REMOTE_RFOS),
        ] {
            let n = off_core(host, of);
            v.set(reads, per(n.iter().map(|o| o.reads).sum()));
            v.set(owns, per(n.iter().map(|o| o.owns).sum()));
        }
        let [of_host, of_nic] = [true, false].map(|host| off_core(host, CountedRequests::Remote));
        let crossed = [of_host[5], of_nic[5]].map(|o| o.reads + o.owns + o.streams);
        v.set(metric::PAYLOAD_LINES_CROSSED, per(crossed.iter().sum()));
        if !t.discovery.is_empty() {
            v.set(metric::SIGNAL_DISCOVERY_NS, t.discovery.value_at_quantile(0.5).to_f64() / 1e3);
        }
        v.set(metric::HOST_REMOTE_RFOS_PAYLOAD, per(of_host[5].owns));
        v.set(metric::NIC_REMOTE_READS_DESCRIPTOR, per(of_nic[0].reads + of_nic[1].reads));
        v.set(metric::NIC_REMOTE_READS_TX, per(of_nic[0].reads + of_nic[2].reads));
        // Other interfaces do not record which packet a core of the NIC works on.
        let recorded: Vec<&Seen> = returning.iter().copied().filter(|(i, _)| !i.nic_cores.is_empty()).collect();
        if !recorded.is_empty() {
            let watched = |(i, view): &&Seen| {
                let at_work = i.off_core(view, false, CountedRequests::Watched);
                at_work[0].reads + at_work[2].reads
            };
            v.set(metric::NIC_SIGNAL_READS, recorded.iter().map(watched).sum::<u64>().to_f64() / packets(&recorded));
        }
        v.set(metric::NIC_REMOTE_READS_REGISTER, per(of_nic[2].reads + of_nic[3].reads));
        v.set(metric::NIC_REMOTE_READS_PAYLOAD, per(of_nic[5].reads));
        let (mut host, mut nic, mut pool, mut fallbacks) = (0, 0, 0, 0);
        for (_, view) in &returning {
            for (c, a) in agents(view) {
                *(if a.is_host() { &mut host } else { &mut nic }) += view.machine.cpus[c].instructions;
                let n = a.pool_counts();
                pool += n.takes + n.puts;
                fallbacks += n.fallbacks;
            }
        }
        v.set(metric::HOST_INSTRUCTIONS_PER_PACKET, per(host));
        v.set(metric::NIC_INSTRUCTIONS_PER_PACKET, per(nic));
        v.set(metric::POOL_OPS_PER_PACKET, per(pool));
        v.set(metric::SMALL_FALLBACKS, fallbacks.to_f64());
    }

    /// Sets the load generator's metrics on a host whose only packets are those of its interfaces.
    pub fn report_round_trips(all: &[Seen], v: &mut Values) {
        let returning: Vec<&Seen> = all.iter().filter(|(i, _)| i.trips.packets > 0).collect();
        let Some((_, view)) = returning.first() else { return };
        let t = CcnicInterface::trips(&returning);
        v.set(metric::ACHIEVED_GBPS, t.bytes.to_f64() * 8.0 / (view.span().to_f64() / 1e6) / 1e3);
        v.set(metric::RTT_MEAN_US, t.histogram.mean() / 1e6);
        let quantiles = [
            (metric::RTT_MEDIAN_US, 0.5),
            (metric::RTT_P90_US, 0.9),
            (metric::RTT_P99_US, 0.99),
            (metric::RTT_P999_US, 0.999),
        ];
        for (name, q) in quantiles {
            v.set(name, t.histogram.value_at_quantile(q).to_f64() / 1e6);
        }
    }
}

/// Requests to each object, of two interfaces.
fn together(mut sum: [OffCore; 6], more: [OffCore; 6]) -> [OffCore; 6] {
    for (to, n) in sum.iter_mut().zip(more) {
        *to = OffCore { reads: to.reads + n.reads, owns: to.owns + n.owns, streams: to.streams + n.streams };
    }
    sum
}

impl Role for CcnicInterface {
    fn runs_from_start(&self) -> bool {
        true
    }

    fn restart_meters(&mut self, _: &mut Bus) {
        self.restart();
    }

    fn counts_requests(&self, served: bool) -> bool {
        !served
    }

    fn warms_up_timed(&self) -> bool {
        true
    }

    fn exchange_round(&self) -> Option<u64> {
        self.nic.is_none().then_some(self.descriptors)
    }

    /// Two large buffers of each thread: the same ones for every packet, as the stacks of buffers hand out the last one first. In an
    /// overlay the thread of a queue of the PCIe NIC forwards to the queue pair of the same number, and sends what comes back. Otherwise
    /// each core of the NIC carries the same share of the packets.
    fn functional_buffers(&self, local: usize, cores: usize, n: u64) -> Option<FunctionalBuffers> {
        let threads = self.nic_threads.len().max(1).to_u64();
        let (server, sender) = match local.checked_sub(cores) {
            Some(queue) => (queue % cores, queue),
            None => (local, (n % threads).to_usize()),
        };
        let first = self.small + 2 * server.to_u32();
        let sender = self.nic_threads.get(sender).copied();
        Some(FunctionalBuffers { received: self.line(first), answer: self.line(first + 1), server, sender })
    }

    fn latency(&self) -> Option<&Histogram<u64>> {
        (self.trips.packets > 0).then_some(&self.trips.histogram)
    }

    fn take_wake_up(&mut self) -> Option<ThreadId> {
        self.woken.pop()
    }

    /// Checks that each buffer of CC-NIC is in exactly one place.
    fn check_conservation(&self, view: &RoleView) -> Result<(), String> {
        let all: u32 = self.pools.iter().flat_map(|p| p.count).sum();
        let free: usize = self.pools.iter().flat_map(|p| &p.rings).map(|r| r.free()).sum();
        let held: usize = agents(view).map(|(_, a)| a.held()).sum();
        // Buffers in rings are in nobody's stacks, unless the host alone manages buffers.
        if free + held > all.to_usize() || self.all_known && free + held < all.to_usize() {
            return Err(format!("{all} buffers are {free} in the pool and {held} with threads"));
        }
        Ok(())
    }

    /// Table of the requests that left the L2, by side and object.
    fn tables(&self, view: &RoleView) -> Vec<(&'static str, Value)> {
        let packets = self.packets(view).max(1).to_f64();
        let mut rows = Vec::new();
        for (side, host) in [("host", true), ("NIC", false)] {
            for ((object, n), r) in OBJECTS
                .iter()
                .zip(self.off_core(view, host, CountedRequests::All))
                .zip(self.off_core(view, host, CountedRequests::Remote))
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
        vec![("off_core", table(&columns, rows))]
    }
}
