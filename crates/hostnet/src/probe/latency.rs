//! Latency of one load, by the location of the line (CC-NIC, section 3.2 and Fig. 7).

use super::{Bench, ProbePlace};
use crate::core::Op;
use crate::kernel::{Int, LineAddr, ThreadId};
use crate::memory::region::Sharing;
use crate::memory::LINE;
use crate::meter::{metric, Values};

impl Bench {
    /// Measures one load of core 0, for a line in `place`.
    pub(super) fn probe(&mut self, place: ProbePlace, v: &mut Values) {
        let shared: Vec<LineAddr> =
            self.machine.mem.map.iter().filter(|r| r.sharing == Sharing::Shared).map(|r| r.base).collect();
        let (near, far) = (shared[0], shared[shared.len() - 1]);
        let (line, writer) = match place {
            ProbePlace::LocalL1 | ProbePlace::LocalL2 | ProbePlace::LocalLlc => (near, Some(ThreadId(0))),
            ProbePlace::LocalDram => (near, None),
            ProbePlace::OtherL2 => (near, Some(ThreadId(1))),
            ProbePlace::RemoteDram => (far, None),
            ProbePlace::RemoteLlc | ProbePlace::RemoteL2Rh => (far, Some(ThreadId(2))),
            ProbePlace::RemoteL2Lh => (near, Some(ThreadId(2))),
        };
        if let Some(core) = writer {
            self.execute_on(core, &[Op::Store { line, lines: 1 }, Op::Fence]);
        }
        match place {
            ProbePlace::LocalLlc | ProbePlace::RemoteLlc => {
                self.machine.mem.push_out(&mut self.machine.cal, line, self.machine.now);
            }
            ProbePlace::LocalL2 => {
                // Other lines of the same set replace the line in the L1.
                let l1 = &self.l1;
                let sets = l1.size.0 / LINE / u64::from(l1.ways);
                let others = (1..=u64::from(l1.ways)).map(|i| Op::Anchor { line: line + i * sets });
                self.execute(&others.chain([Op::Fence]).collect::<Vec<_>>());
            }
            _ => {}
        }
        self.settle();
        let now = self.machine.now;
        self.machine.mem.restart_meters(now);
        self.machine.cpus[ThreadId(0)].restart_meters(now);
        self.execute(&[Op::Anchor { line }, Op::Fence]);
        let seen = self.machine.cpus[ThreadId(0)].amat;
        v.set(metric::ACCESS_NS, seen.ps.to_f64() / seen.accesses.to_f64() / 1e3);
        let vain = self.machine.mem.inter_socket().map_or(0, |b| b.speculative_reads);
        v.set(metric::SPECULATIVE_READS, vain.to_f64());
    }
}
