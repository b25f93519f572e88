//! Utilisation of every part of the host that can be full: engines, links and media by the share of time in which they
//! are busy, buffers and registers by the share of their credits in use. Where several parts are alike, the fullest one
//! counts, because one full part is a limit of what passes through it.

use super::Host;
use crate::device::endpoint::Endpoint;
use crate::device::iio::Iio;
use crate::device::NicAt;
use crate::flow::domain::DomainReading;
use crate::kernel::{Int, NodeId, Time};
use crate::memory::Mshrs;
use crate::meter::{metric, MetricId, Values};
use crate::stack::tcp::Network;

/// Share of a domain's credits in use.
fn in_use(r: DomainReading) -> f64 {
    r.occupancy / f64::from(r.credits.max(1))
}

/// The largest share; None where there is none.
fn fullest(shares: impl Iterator<Item = f64>) -> Option<f64> {
    shares.reduce(f64::max)
}

impl Host {
    /// Adds the utilisation of each part to `v`, where the host has the part.
    pub(super) fn servers(&self, v: &mut Values) {
        let now = self.machine.now;
        let span = (now - self.meters.window.start).0.max(1).to_f64();
        let share = |busy: Time| self.share_of_window(busy);
        let mem = &self.machine.mem;
        let devices = || self.machine.iio.iter().flat_map(Iio::devices);
        let ahead = self.machine.cpus.iter().filter_map(|c| c.prefetcher.as_ref()).map(|p| p.queue.read(now));
        let link = mem.inter_socket().map(|b| [0, 1].map(|n| in_use(b.read(NodeId(n), now).requests)));
        let media = devices().filter_map(|d| match d {
            Endpoint::Ssd(d) => d.media_busy(now),
            _ => None,
        });
        let (wire_in, wire_out) = self.wires();
        let in_flight = |side: usize| {
            let nics = self.machine.iio.iter().flat_map(Iio::nics);
            fullest(nics.filter_map(|(_, nic)| Some(nic.in_flight(now)?[side])))
        };
        let engine =
            self.sources().any(|(_, s)| s.at == NicAt::Chip).then(|| self.machine.nic.engine_busy(now)).flatten();
        let cpus = || self.machine.cpus.iter();
        let memory_link = mem.memory_link().map(|l| l.busy_until(now));
        let all: [(MetricId, Option<f64>); 15] = [
            (metric::NIC_RECEIVE_UTIL, in_flight(0)),
            (metric::NIC_TRANSMIT_UTIL, in_flight(1)),
            (metric::NIC_ENGINE_UTIL, engine.map(share)),
            (metric::CHA_WAIT_UTIL, fullest(mem.nodes.iter().map(|n| in_use(n.cha_writes.read(now))))),
            (
                metric::LLC_MSHR_UTIL,
                fullest(mem.mshrs().into_iter().flat_map(Mshrs::registers).map(|d| in_use(d.read(now)))),
            ),
            (metric::L2_MSHR_UTIL, fullest(cpus().filter_map(|c| Some(in_use(c.mshrs.as_ref()?.read(now)))))),
            (metric::LFB_FULLEST_UTIL, fullest(cpus().map(|c| in_use(c.lfb.read(now))))),
            (metric::MEM_CHANNEL_UTIL, fullest(self.channel_shares(span))),
            (metric::MEMORY_LINK_READ_UTIL, memory_link.map(|[read, _]| share(read))),
            (metric::MEMORY_LINK_WRITE_UTIL, memory_link.map(|[_, write]| share(write))),
            (metric::PREFETCH_UTIL, fullest(ahead.filter(|r| r.credits > 0).map(in_use))),
            (metric::LINK_CREDITS_UTIL, link.map(|[a, b]| a.max(b))),
            (metric::WIRE_IN_UTIL, wire_in.map(share)),
            (metric::WIRE_OUT_UTIL, wire_out.map(share)),
            (metric::SSD_MEDIA_UTIL, fullest(media.map(share))),
        ];
        let ports = self.machine.iio.iter().flat_map(|iio| {
            let [posted, non_posted, tags] = iio.credits_in_use(now);
            [
                (metric::PCIE_BUSIEST_UTIL, iio.busiest_link(now)),
                (metric::PCIE_POSTED_UTIL, posted),
                (metric::PCIE_NON_POSTED_UTIL, non_posted),
                (metric::PCIE_TAGS_UTIL, tags),
            ]
        });
        for (name, x) in all.into_iter().chain(ports) {
            x.into_iter().for_each(|x| v.set(name, x));
        }
    }

    /// Share of the window that `busy` is, at most 1.
    pub(super) fn share_of_window(&self, busy: Time) -> f64 {
        let span = (self.machine.now - self.meters.window.start).0.max(1).to_f64();
        (busy.0.to_f64() / span).min(1.0)
    }

    /// Shares of the window in which the data bus of each memory channel carried lines.
    fn channel_shares(&self, span: f64) -> impl Iterator<Item = f64> {
        let before = self.meters.window.dram.iter();
        let busy = self.channels().into_iter().zip(before).map(|(a, b)| a.bus_busy_ps - b.bus_busy_ps);
        busy.map(move |ps| ps.to_f64() / span).collect::<Vec<_>>().into_iter()
    }

    /// Times in which the busiest network link to the host, and the busiest from the host, carried packets.
    fn wires(&self) -> (Option<Time>, Option<Time>) {
        let now = self.machine.now;
        let mut inward: Vec<(NicAt, Time)> = Vec::new();
        let mut outward = Vec::new();
        for (_, s) in self.sources() {
            let Some((there, back)) = s.generator.wire_busy(now) else { continue };
            outward.extend(back);
            // Several tenants take turns on the link of a NIC on a port; at the NIC on the chip each tenant has its own.
            match inward.iter_mut().find(|w| w.0 == s.at && s.at != NicAt::Chip) {
                Some(w) => w.1 += there,
                None => inward.push((s.at, there)),
            }
        }
        let mut inward: Vec<Time> = inward.into_iter().map(|w| w.1).collect();
        let networks = self.tenants.iter().filter_map(|t| t.roles.get::<Network>());
        inward.extend(networks.map(|n| n.link_busy(now)));
        for device in self.machine.iio.iter().flat_map(Iio::devices) {
            match device {
                Endpoint::Ethernet(nic) => outward.extend(nic.wire_busy(now)),
                Endpoint::Roce(nic) if nic.receives() => inward.push(nic.link_busy(now)),
                Endpoint::Roce(nic) => outward.push(nic.link_busy(now)),
                _ => {} // no other device has a link of a network
            }
        }
        (inward.into_iter().max(), outward.into_iter().max())
    }
}
