//! Tests of the time that a line takes through caches on its way to the core (gem5's `response_latency`): each cache
//! that the line passes adds its own time, and the cache that holds the line adds none.

use crate::common::{execute, scenario, ONE_CORE};
use hostnet::core::{Cpu, Op};
use hostnet::kernel::{Clock, CoreId, TenantId, ThreadId, Time};
use hostnet::machine::Machine;
use hostnet::memory::region::{AddressMap, RegionKind, Sharing};
use hostnet::memory::Memory;

/// Cycles of responses through L1, L2 and LLC.
const RESPONSES: [u32; 3] = [30, 110, 230];
/// Line of the load that measures the end of another load, and goes to DRAM.
const FAR: u64 = 65_000;

/// Time that a load takes on sim24 together with a load from DRAM whose address it provides. `others` lines have been
/// loaded after its line; if it is `cold`, the line itself has not been loaded.
fn load_and_one_from_dram(responses: [u32; 3], cold: bool, others: u32) -> Time {
    let s = scenario(ONE_CORE);
    let mut caches = s.platform.caches;
    [caches.l1d.response_cycles, caches.l2.response_cycles, caches.llc.quirks.response_cycles] = responses;
    let mut map = AddressMap::default();
    let r = map.add(1 << 16, RegionKind::App, Sharing::Core(CoreId(0)), TenantId(0));
    let base = map.get(r).base;
    let clock = Clock::from_hz(s.platform.core.clock.0);
    let mem = Memory::new(&caches, &s.platform.memory, clock, 1, vec![(1 << 12) - 1], map).unwrap();
    let mut m = Machine::without_devices(mem, vec![Cpu::new(ThreadId(0), &s.platform.core)]);
    let mut now = Time::us(1);
    if !cold {
        for op in [Op::Load { line: base, lines: 1 }, Op::Load { line: base + 1, lines: others }] {
            now = execute(&mut m, &[op, Op::Fence], now).1 + Time::us(10);
        }
    }
    let chain = [Op::Anchor { line: base }, Op::Chase { line: base + FAR, delay: 0 }, Op::Fence];
    execute(&mut m, &chain, now).1 - now
}

#[test]
fn each_cache_that_a_line_passes_adds_its_response() {
    let s = scenario(ONE_CORE);
    let core = Clock::from_hz(s.platform.core.clock.0);
    let uncore = Clock::from_hz(s.platform.caches.uncore_clock.0);
    let [l1, l2, llc] = RESPONSES;
    let from_dram = core.span((l1 + l2).into()) + uncore.span(llc.into());
    let cases = [
        ("L1", false, 1, Time::ZERO),
        ("L2", false, 4_000, core.span(l1.into())),
        ("LLC", false, 60_000, core.span((l1 + l2).into())),
        ("DRAM", true, 0, from_dram),
    ];
    for (level, cold, others, more) in cases {
        let expected = (more + from_dram).as_ns();
        let without = load_and_one_from_dram([0; 3], cold, others);
        let with = load_and_one_from_dram(RESPONSES, cold, others);
        // DRAM runs on a separate clock.
        let added = (with - without).as_ns();
        assert!((added - expected).abs() < 2.0, "{level}: {added} ns more, not {expected}");
    }
}
