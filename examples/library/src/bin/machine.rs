//! A machine without a scenario: one core follows a chain of loads through working sets that fit into L1, L2 and LLC, and
//! through memory that no cache holds. Prints the time of a load.

use hostnet::core::{Cpu, Op};
use hostnet::kernel::{Clock, CoreId, LineAddr, RandomStream, TenantId, ThreadId, Time};
use hostnet::machine::{Machine, MachineSignal};
use hostnet::memory::region::{AddressMap, RegionKind, Sharing};
use hostnet::memory::Memory;
use std::error::Error;
use std::path::Path;

/// Values of the machine; a platform's file is read as part of a scenario.
const SCENARIO: &str = r#"
name = "chain"
platform = "sim24"
placement = { policy = "ddio" }
tenant = [{ name = "chain", cores = 1, app = { kind = "xmem", array = "1 MiB" } }]
traffic = { arrivals = "none" }
run = { load = "none" }
"#;
const CORE: ThreadId = ThreadId(0);
const LINES: u64 = 1 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let platforms = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../platforms");
    let platform = hostnet::config::resolve(SCENARIO, "chain.toml", &[platforms])?.platform;

    let mut map = AddressMap::default();
    let region = map.add(LINES, RegionKind::App, Sharing::Core(CoreId(0)), TenantId(0));
    let base = map.get(region).base;
    let clock = Clock::from_hz(platform.core.clock.0);
    let ways = vec![(1 << platform.caches.llc.ways) - 1];
    let memory = Memory::new(&platform.caches, &platform.memory, clock, 1, ways, map)?;
    let mut machine = Machine::without_devices(memory, vec![Cpu::new(CORE, &platform.core)]);

    let mut draw = RandomStream::new(1, "chain", 0);
    // Lines that no cache holds, each in a page of its own.
    let mut cold = (0..).map(|i| base + LINES / 2 + i * 64);
    println!("{:>6} {:>10}", "set", "ns a load");
    for (name, lines) in [("L1", 1 << 8), ("L2", 1 << 13), ("LLC", 1 << 17)] {
        for _ in 0..2 {
            run(&mut machine, &[Op::Load { line: base, lines }, Op::Fence]);
        }
        let chain: Vec<LineAddr> = (0..8192).map(|_| base + draw.below(lines.into())).collect();
        println!("{name:>6} {:>10.2}", chase(&mut machine, &chain, &mut cold));
    }
    let chain: Vec<LineAddr> = cold.by_ref().take(512).collect();
    println!("{:>6} {:>10.2}", "DRAM", chase(&mut machine, &chain, &mut cold));
    Ok(())
}

/// Nanoseconds per load of a chain in which each address depends on the load before. A core does not wait for the last hits
/// of its program, so a miss ends the chain, and the time of a miss alone is subtracted.
fn chase(machine: &mut Machine, chain: &[LineAddr], cold: &mut impl Iterator<Item = LineAddr>) -> f64 {
    let mut timed = |chain: &[LineAddr]| {
        let loads = chain.iter().copied().chain(cold.next());
        let mut program: Vec<Op> = loads.map(|line| Op::Chase { line, delay: 0 }).collect();
        program.push(Op::Fence);
        run(machine, &program).as_ns()
    };
    (timed(chain) - timed(&[])) / chain.len() as f64
}

/// Runs a program on the core and returns the time until its last access is complete.
fn run(machine: &mut Machine, program: &[Op]) -> Time {
    let ops = &mut machine.cpus[CORE].program.ops;
    ops.clear();
    ops.extend_from_slice(program);
    let start = machine.now;
    machine.start(CORE);
    while let Some(signal) = machine.next_signal() {
        if let MachineSignal::Retired(thread) = signal {
            while machine.retired(thread).is_some() {}
        }
    }
    machine.now - start
}
