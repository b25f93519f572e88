//! Directed test of one request of a device for a line in a known place (IDIO, section II-A and Fig. 1).

use super::{Bench, ProbePlaceSpec, ProbeRequest};
use crate::core::Op;
use crate::kernel::{CoreId, Int, LineAddr};
use crate::memory::protocol::CopyState;
use crate::memory::region::RegionKind;
use crate::memory::stats::{AccessClass, LineLocation};
use crate::memory::{Agent, Inbound, Sender, Txn};
use crate::meter::{metric, Values};
use crate::placement::{DeviceKind, DeviceTransfer};
use serde_json::json;

/// The word by which a scenario names a place.
fn word(place: LineLocation) -> String {
    json!(place).as_str().unwrap_or_default().into()
}

impl Bench {
    /// Runs the directed test of one device request.
    ///
    /// # Errors
    /// Returns one sentence when this machine's caches do not hold a line in the given place.
    pub(super) fn probe_placement(&mut self, s: &ProbePlaceSpec, v: &mut Values) -> Result<(), String> {
        let buffers = self.machine.mem.map.iter().find(|r| r.kind == RegionKind::Rx);
        let (line, lines) = buffers.map(|r| (r.base, r.lines)).expect("a core has receive buffers");
        let load = [Op::Load { line, lines: 1 }, Op::Fence];
        let store = [Op::Store { line, lines: 1 }, Op::Fence];
        if matches!(s.place, LineLocation::Both | LineLocation::Ddio) {
            self.device_writes(line, 1);
        }
        match s.place {
            LineLocation::Mlc | LineLocation::Both => {
                self.execute(&load);
                if s.dirty {
                    self.execute(&store);
                }
            }
            LineLocation::Llc => {
                self.execute(&store);
                self.machine.mem.push_out(&mut self.machine.cal, line, self.machine.now);
            }
            LineLocation::Ddio | LineLocation::Dram => {}
        }
        self.settle();
        let before = self.machine.mem.llc_way(line);
        let place = self.machine.mem.place_of(line);
        if place != s.place {
            return Err(format!(
                "tenant[0].app.place = \"{}\" is not where this platform's caches keep the line, which is \"{}\"; see \
                 caches.llc.quirks.read_hit and tenant[0].llc_ways",
                word(s.place),
                word(place)
            ));
        }
        self.machine.mem.restart_meters(self.machine.now);
        match s.request {
            ProbeRequest::Write => self.device_writes(line, 1),
            ProbeRequest::Read => {
                let now = self.machine.now;
                let t = Txn::dma_read(Sender::Nic(None), AccessClass::NicTxRd, line, 1, now);
                self.machine.mem.dma_functional(&mut self.machine.cal, &t);
                self.run_until_idle();
            }
        }
        self.settle();
        let after = self.machine.mem.llc_way(line);
        let (reads, writes) = self.moved();
        let stats = &self.machine.mem.stats;
        v.set(metric::MLC_WB, stats.cores.iter().map(|c| c.mlc_wb.to_f64()).sum());
        v.set(metric::LLC_WB, stats.llc_wb.to_f64());
        v.set(metric::LINES_READ, reads.to_f64());
        v.set(metric::LINES_WRITTEN, writes.to_f64());
        v.set(
            metric::MLC_COPIES_AFTER,
            f64::from(u8::from(self.machine.mem.private_copy(CoreId(0), line) != CopyState::Nowhere)),
        );
        v.set(metric::IN_DDIO_WAYS_AFTER, f64::from(u8::from(self.machine.mem.is_ddio_way(after))));
        v.set(metric::LLC_ALLOCATIONS, f64::from(u8::from(after.is_some() && after != before)));
        if (s.request, s.place) == (ProbeRequest::Write, LineLocation::Dram) {
            self.device_writes(line, lines);
            let ways = line.span(lines).filter_map(|l| self.machine.mem.llc_way(l));
            v.set(metric::WAYS_ALLOCATED, f64::from(ways.fold(0u32, |all, w| all | 1 << w).count_ones()));
        }
        Ok(())
    }

    /// Writes `n` lines as the NIC does, one after the other, to the destinations of the placement policy.
    fn device_writes(&mut self, line: LineAddr, n: u64) {
        for l in line.span(n) {
            let to: Inbound = self.machine.placement.write(&DeviceTransfer::of(Agent::Nic, DeviceKind::Nic, l));
            let t = Txn::dma_write(Sender::Nic(None), AccessClass::NicRxWr, to, l, 1, self.machine.now);
            self.machine.mem.dma_functional(&mut self.machine.cal, &t);
        }
        self.run_until_idle();
    }
}
