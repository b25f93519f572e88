//! Directed test of accesses to a device that bypass the caches (CC-NIC, section 2.2 and Fig. 3).

use super::{Bench, DeviceProbe, ProbeDeviceSpec};
use crate::core::{Mapped, Op, Retired};
use crate::kernel::{LineAddr, ThreadId, Time};
use crate::machine::MachineSignal;
use crate::meter::{metric, Values};

/// Maximum number of stores in a burst.
const MOST_STORES: u32 = 4096;

impl Bench {
    /// Runs the directed test of accesses to a device.
    ///
    /// # Errors
    /// Returns one sentence when the test does not fit the machine.
    pub(super) fn probe_device(&mut self, s: &ProbeDeviceSpec, v: &mut Values) -> Result<(), String> {
        if !(1..=64).contains(&s.bytes) {
            return Err(format!("tenant[0].app.bytes = {} is not within 1 to 64", s.bytes));
        }
        if !(1..=MOST_STORES).contains(&s.stores) {
            return Err(format!("tenant[0].app.stores = {} is not within 1 to {MOST_STORES}", s.stores));
        }
        let start = self.machine.now;
        match s.access {
            DeviceProbe::Load => {
                let (end, _) = self.past_caches(vec![Op::LoadDevice { bytes: s.bytes }]);
                v.set(metric::MMIO_READ_NS, (end - start).as_ns());
            }
            DeviceProbe::Store => {
                let store = |i: u32| {
                    let store = Op::Combine { line: LineAddr(i.into()), bytes: s.bytes, to: Mapped::Device };
                    [store, Op::Retire { tag: i, stores: true }]
                };
                let mut ops: Vec<Op> = (0..s.stores).flat_map(store).collect();
                ops.push(Op::Fence);
                let (_, taken) = self.past_caches(ops);
                let before = taken.len().checked_sub(2).map_or(start, |i| taken[i]);
                let last = taken.last().map_or(start, |t| *t);
                v.set(metric::MMIO_STORE_NS, (last - before).as_ns());
                v.set(metric::MMIO_BURST_NS, (last - start).as_ns());
            }
        }
        Ok(())
    }

    /// Runs `ops` on core 0; returns the time at which the last op ended, and the times at which their side effects
    /// were due.
    fn past_caches(&mut self, ops: Vec<Op>) -> (Time, Vec<Time>) {
        self.machine.cpus[ThreadId(0)].program.ops = ops;
        self.machine.start(ThreadId(0));
        let (mut end, mut due) = (self.machine.now, Vec::new());
        while let Some(s) = self.machine.next_signal() {
            match s {
                MachineSignal::CoreFree(_) => end = self.machine.now,
                MachineSignal::Retired(core) => {
                    while let Some(r) = self.machine.retired(core) {
                        due.extend(matches!(r, Retired::Tag(_)).then_some(self.machine.now));
                    }
                }
                s => self.on(s),
            }
        }
        (end, due)
    }
}
