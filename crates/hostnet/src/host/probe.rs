//! Directed test: how long a load takes by where its line is, on an idle machine (CC-NIC, Fig. 7).

use super::Host;
use crate::app::Place;
use crate::core::Op;
use crate::kernel::Time;
use crate::memory::region::Kind;
use crate::meter::Values;

/// Lines loaded, one after the other, and how far apart they are: a page and three lines, so that banks differ.
const LINES: u64 = 64;
const STRIDE: u64 = 67;

impl Host {
    /// Sets the median time of a load and the speculative reads of memory for each.
    ///
    /// # Errors
    /// One sentence when the place is on a node that the machine does not have.
    pub(super) fn probe(&mut self, place: Place, v: &mut Values) -> Result<(), String> {
        let nodes = self.spec.nodes();
        if place.remote() && nodes.count < 2 {
            return Err("tenant[0].app.place names node 1, which a machine of one node does not have; \
                        choose local_l1, other_l2, local_llc or local_dram"
                .into());
        }
        let far = nodes.cores.unwrap_or(self.spec.platform.core.count) as u16;
        let base = self.machine.mem.map.iter().find(|r| r.kind == Kind::App).map_or(0, |r| r.base);
        let mut times: Vec<Time> = Vec::new();
        let before = self.machine.mem.speculative_reads();
        for line in (0..LINES).map(|i| base + i * STRIDE) {
            let (mem, cal) = (&mut self.machine.mem, &mut self.machine.cal);
            match place {
                Place::LocalDram | Place::RemoteDram => {}
                Place::LocalL1 => mem.access_at_once(cal, 0, line, false),
                Place::OtherL2 => mem.access_at_once(cal, 1, line, true),
                Place::RemoteL2Rh | Place::RemoteL2Lh => mem.access_at_once(cal, far, line, true),
                Place::LocalLlc => _ = mem.spill_at_once(cal, 0, line),
                Place::RemoteLlc => _ = mem.spill_at_once(cal, far.into(), line),
            }
            self.settle();
            times.push(self.execute(&[Op::Anchor { line }, Op::Fence]).0);
        }
        times.sort_unstable();
        v.set("access_ns", times[times.len() / 2].as_ns());
        v.set("speculative_reads", (self.machine.mem.speculative_reads() - before) as f64 / LINES as f64);
        Ok(())
    }
}
