//! Input of the closed form for a run: its host and its offered traffic, for `model::predict`.

use super::Host;
use crate::app::AppSpec;
use crate::config::scenario::PeripheralSpec;
use crate::device::endpoint::DmaDirection;
use crate::device::ssd::SsdSpec;
use crate::kernel::{ChannelId, Int, LineAddr, NodeId, Time};
use crate::memory::array::Indexing;
use crate::memory::dram::timing::DramTiming;
use crate::memory::dram::DramSpec;
use crate::memory::spec::WriteOrder;
use crate::memory::{LINE, LINE_U32};
use crate::meter::{metric, Values};
use crate::model::predict as model;

const READ: usize = 0;
const WRITE: usize = 1;

fn ns(ps: u64) -> f64 {
    ps.to_f64() / 1e3
}

fn or(own: u32, standard: u32) -> f64 {
    f64::from(if own == 0 { standard } else { own })
}

/// Bounds that a PCIe port sets to its device.
struct Port {
    /// Rate of the link, and of the credits that are free once the IIO has a request, in GB/s of payload.
    gbs: f64,
    /// Lines that may be under way by the credits held until memory has answered: posted credits of writes, tags of reads.
    credits: f64,
    /// Time for which a line holds such a credit beyond its stay in the IIO, in ns.
    held_ns: f64,
}

/// Rate of SSDs whose ports carry `port` each, in GB/s: that of the ports or media, or of the command queues where these
/// are short.
fn ssd_gbs(ssd: &SsdSpec, port: f64) -> f64 {
    let media = ssd.media_rate.map_or(f64::INFINITY, |r| r.0.to_f64() / 8e9);
    let wire = port.min(media);
    let block = ssd.block.0.to_f64();
    let queue = f64::from(ssd.queue_depth) * block / (ns(ssd.quirks.command_latency.0) + block / wire);
    wire.min(queue) * f64::from(ssd.count)
}

/// Idle time of the data bus between a write and a read, and between a read and a write, in ns: means over the possible
/// places of the next line.
fn turning(t: &DramTiming, ranks: u32) -> (f64, f64) {
    let ranks = f64::from(ranks);
    let mean = |same: f64, other: f64| same / ranks + other * (1.0 - 1.0 / ranks);
    let gap = |from: usize, to: usize, place: usize| {
        let latency = [t.cl, t.cwl];
        (t.col_to_col[from][place][to] + latency[to]).to_f64() - (latency[from] + t.burst).to_f64()
    };
    let of = |from, to| mean(gap(from, to, 1), gap(from, to, 2)).max(0.0) / 1e3;
    (of(WRITE, READ), of(READ, WRITE))
}

impl Host {
    /// Sets the predictions of the closed form, for runs with sequential streams and SSDs. The closed form describes a node with
    /// its own cores, devices and memory; streams and devices reach no other node's memory.
    pub(super) fn predict(&self, v: &mut Values) {
        let mut of_nodes = None;
        for node in 0..self.spec.nodes().count.to_u8() {
            let Some((offered, host)) = self.offered(node).zip(self.predict_input(node, v)) else { return };
            if offered.cores > 0.0 || offered.device_gbs > 0.0 {
                let p = host.predict(&offered);
                let (c2m, p2m) = of_nodes.unwrap_or_default();
                of_nodes = Some((c2m + p.c2m_gbs, p2m + p.p2m_gbs));
            }
        }
        if let Some((c2m, p2m)) = of_nodes {
            v.set(metric::PREDICTED_C2M_GBS, c2m);
            v.set(metric::PREDICTED_P2M_GBS, p2m);
        }
    }

    /// Traffic that `node` is offered; None where the closed form does not describe it.
    fn offered(&self, node: u8) -> Option<model::Offered> {
        let mut o = model::Offered::default();
        for t in &self.spec.tenants {
            let AppSpec::Stream(s) = &t.app else { return None };
            if s.access != crate::app::stream::AccessOrder::Sequential {
                return None;
            }
            if t.node == node {
                // Of several streams the closed form has the mean core.
                o.cores += f64::from(t.cores);
                let share = f64::from(t.cores) / o.cores;
                o.core_writes += share * (1.0 / s.read_fraction - 1.0 - o.core_writes);
                o.core_run += share * (s.contiguous.mean_lines() - o.core_run);
            }
        }
        let here: Vec<_> = self.spec.peripherals.iter().filter(|p| p.node() == NodeId(node)).collect();
        let op = match here.as_slice() {
            [] => return Some(o),
            [PeripheralSpec::Ssd(ssd)] => {
                let port = self.port(ssd.lanes, ssd.op, ssd.tags)?;
                o.device_gbs = ssd_gbs(ssd, port.gbs);
                (o.pcie_credits, o.pcie_ns) = (f64::from(ssd.count) * port.credits, port.held_ns);
                o.device_streams = f64::from(ssd.count);
                o.device_run = (ssd.quirks.interleave.0 / LINE).to_f64();
                if let Some(b) = self.spec.platform.block.as_ref().filter(|_| ssd.cores > 0) {
                    let page = (ssd.page.0 / LINE).to_f64();
                    let (reads, writes) = b.lines_per_page();
                    (o.kernel_reads, o.kernel_writes) = (reads / page, writes / page);
                    o.kernel_lines = f64::from(ssd.count) * b.lines_kept(ssd.lines() / (ssd.page.0 / LINE)).to_f64();
                }
                ssd.op
            }
            [PeripheralSpec::Roce(nic)] => {
                let port = self.port(nic.lanes, nic.op, nic.tags)?;
                o.device_gbs = nic.payload_gbs().min(port.gbs);
                (o.pcie_credits, o.pcie_ns) = (port.credits, port.held_ns);
                o.device_streams = 1.0;
                o.device_run = nic.contiguous.mean_lines().min((nic.buffer.0 / LINE).to_f64());
                nic.op
            }
            _ => return None,
        };
        o.device_writes = op == DmaDirection::P2mWrite;
        o.device_request = (self.spec.platform.pcie.as_ref()?.max_read_request.0 / LINE).to_f64();
        Some(o)
    }

    /// The port of a device with `lanes` lanes that moves data in direction `op` with so many `tags`.
    fn port(&self, lanes: u32, op: DmaDirection, tags: u32) -> Option<Port> {
        let p = &self.spec.platform;
        let (pcie, iio) = (p.pcie.as_ref()?, p.iio.as_ref()?);
        let (tlp, up, down) = (pcie.framing(), pcie.up(lanes), pcie.down(lanes));
        let flights = 2.0 * up.flight.as_ns();
        let each = Time::from(iio.line_interval).as_ns();
        let packet = f64::from(tlp.payload / LINE_U32);
        Some(match op {
            DmaDirection::P2mWrite => {
                let sent = up.time(tlp.write(tlp.payload)).as_ns();
                // A packet leaves with all of its credits, so that its last line decides when the next packet leaves.
                let packets = f64::from(pcie.posted(lanes) / (tlp.payload / LINE_U32));
                Port {
                    gbs: f64::from(tlp.payload) / sent,
                    credits: packet * packets,
                    held_ns: sent + (packet - 1.0) / 2.0 * each + flights,
                }
            }
            DmaDirection::P2mRead => {
                let sent = up.time(tlp.read_request.into()).as_ns();
                let completion = down.time(tlp.completion(tlp.payload.min(tlp.request))).as_ns();
                let lines = f64::from(tlp.request / LINE_U32);
                let completions = f64::from(tlp.request.div_ceil(tlp.payload));
                // The last completion waits for the last line, or for the completions before it.
                let first = packet.min(lines);
                let data = ((lines - 1.0) * each + completion).max((first - 1.0) * each + completions * completion);
                // The IIO takes a request at once while its buffer has room.
                let requests = f64::from(pcie.non_posted(lanes)) * f64::from(tlp.request) / (sent + flights);
                Port {
                    gbs: (f64::from(tlp.payload.min(tlp.request)) / completion).min(requests),
                    credits: f64::from(tags) * lines,
                    held_ns: sent + data + flights,
                }
            }
        })
    }

    /// Number of banks of a channel over which a page of consecutive lines is spread, as a mean over the channels.
    fn banks_per_stream(&self) -> f64 {
        let mut seen: Vec<(ChannelId, u8)> = LineAddr(0)
            .span(4096 / LINE)
            .map(|line| {
                let (ch, at) = self.machine.mem.dram.route(NodeId(0), line);
                (ch, at.bank)
            })
            .collect();
        seen.sort_unstable();
        seen.dedup();
        let mut channels: Vec<ChannelId> = seen.iter().map(|s| s.0).collect();
        channels.dedup();
        seen.len().to_f64() / channels.len().max(1).to_f64()
    }

    /// The hardware of `node`, of whose I/O controllers each has a device, if it is to count.
    fn predict_input(&self, node: u8, v: &Values) -> Option<model::PredictHost> {
        let (p, t) = (&self.spec.platform, self.machine.mem.dram.timing());
        let d: &DramSpec = &p.memory;
        let modes = d.plan().ok()?.scheduler.modes().cloned();
        let device = d.standard.device(d.device_width);
        let groups = or(d.quirks.bank_groups, device.bank_groups);
        let iio = p.iio.as_ref()?;
        let devices = self.spec.peripherals.iter().filter(|p| p.node() == NodeId(node)).map(PeripheralSpec::count);
        let controllers = devices.sum::<u32>().clamp(1, iio.count.max(1));
        let (t_wtr_ns, t_rtw_ns) = turning(t, d.ranks);
        // A bound of 0 means no bound.
        let bound = |lines: u32| if lines == 0 { f64::INFINITY } else { f64::from(lines) };
        Some(model::PredictHost {
            channels: f64::from(d.channels * device.subchannels),
            banks: f64::from(d.ranks) * groups * or(d.quirks.banks_per_group, device.banks_per_group),
            banks_per_stream: self.banks_per_stream(),
            lines_per_row: f64::from(device.lines_per_row),
            t_trans_ns: ns(t.burst),
            t_rcd_ns: ns(t.rcd),
            t_rp_ns: ns(t.rp),
            t_ras_ns: ns(t.ras),
            t_cwl_ns: ns(t.cwl),
            t_wr_ns: ns(t.col_to_pre[WRITE] - t.cwl - t.burst),
            t_wtr_ns,
            t_rtw_ns,
            t_rfc_ns: if d.quirks.refresh { ns(t.rfc) } else { 0.0 },
            t_refi_ns: ns(t.refi),
            rpq: f64::from(d.rpq),
            wpq: f64::from(d.wpq),
            write_drain: (d.write_high - d.write_low) * f64::from(d.wpq),
            write_burst: bound(modes.as_ref().map_or(0, |m| m.max_write_burst)),
            read_burst: f64::from(modes.as_ref().map_or(0, |m| m.min_read_burst)).max(1.0),
            writes_yield: modes.is_some_and(|m| m.writes_yield),
            victims_apart: match p.caches.llc.indexing {
                _ if p.caches.llc.slices == 1 => 0.0,
                Indexing::Modulo | Indexing::FoldedSlices => 0.0,
                Indexing::InterleavedSlices => 0.5, // 18 slices of 11 ways: 0.48, see array_tests
                Indexing::HashedSlices | Indexing::EvenSlices => 1.0,
            },
            lfb_credits: f64::from(p.core.lfb),
            lfb_retry_ns: Time::from(p.core.quirks.lfb_retry).as_ns(),
            iio_write_credits: f64::from(controllers * iio.write_buffer),
            iio_read_credits: f64::from(controllers * iio.read_buffer),
            llc_lines: (p.caches.llc.size.0 / LINE).to_f64(),
            cha_buffer: f64::from(p.caches.llc.write_buffer),
            writes_in_turn: p.caches.llc.write_order == WriteOrder::RoundRobin,
            c2m_read_ns: v.get(metric::C2M_READ_UNLOADED_NS)?,
            p2m_read_ns: v.get(metric::P2M_READ_UNLOADED_NS)?,
            p2m_write_ns: v.get(metric::P2M_WRITE_UNLOADED_NS)?,
        })
    }
}
