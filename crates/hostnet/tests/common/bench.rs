//! A core on the caches and DRAM of `platforms/sim24.toml`.

use crate::common::{execute, scenario, ONE_CORE};
use hostnet::core::{CoreSpec, Cpu, Op, Retired};
use hostnet::kernel::{Clock, CoreId, LineAddr, TenantId, ThreadId, Time};
use hostnet::machine::Machine;
use hostnet::memory::region::{AddressMap, RegionKind, Sharing};
use hostnet::memory::Memory;

/// Number of lines that exceeds the 20,480 lines of the L2 and is below the 589,824 lines of the LLC.
pub const LLC_LINES: u32 = 40_960;

/// A core with warm caches, and the present time.
pub struct Bench {
    pub m: Machine,
    pub now: Time,
    pub base: LineAddr,
}

impl Bench {
    pub fn new(change: impl FnOnce(&mut CoreSpec)) -> Bench {
        let s = scenario(ONE_CORE);
        let mut core = s.platform.core;
        change(&mut core);
        let mut map = AddressMap::default();
        let r = map.add(1 << 20, RegionKind::App, Sharing::Core(CoreId(0)), TenantId(0));
        let base = map.get(r).base;
        let clock = Clock::from_hz(core.clock.0);
        let (h, d) = (&s.platform.caches, &s.platform.memory);
        let mem = Memory::new(h, d, clock, 1, vec![(1 << 12) - 1], map).unwrap();
        Bench { m: Machine::without_devices(mem, vec![Cpu::new(ThreadId(0), &core)]), now: Time::ns(1), base }
    }

    /// Time from the start of `ops` to the dispatch of the last op, in ns, and the retired side effects with their
    /// times.
    pub fn run(&mut self, ops: &[Op]) -> (f64, Vec<(Time, Retired)>) {
        let start = self.now;
        let (end, last, retired) = execute(&mut self.m, ops, start);
        self.now = last.max(end) + Time::us(1);
        ((end - start).as_ns(), retired)
    }

    /// Brings lines `0..n` into the caches, as far as they fit.
    pub fn warm(&mut self, n: u32) {
        for _ in 0..2 {
            self.run(&[Op::Load { line: self.base, lines: n }, Op::Fence]);
        }
    }

    /// Nanoseconds per load of a dependent chain that walks repeatedly over `lines` lines, in order.
    pub fn chain(&mut self, lines: u64) -> f64 {
        let (from, n) = (self.base, u64::from(LLC_LINES));
        let ops: Vec<Op> = (0..n).map(|i| Op::Chase { line: from + i % lines, delay: 0 }).collect();
        // The fence waits for accesses that left the caches; a last miss waits for the chain of hits.
        let timed = |b: &mut Bench, ops: &[Op], miss: LineAddr| {
            let mut all = ops.to_vec();
            all.push(Op::Chase { line: miss, delay: 0 });
            all.push(Op::Fence);
            b.run(&all).0
        };
        let far = self.base + (1 << 19);
        let whole = timed(self, &ops, far);
        let none = timed(self, &[], far + 128);
        (whole - none) / n as f64
    }
}
