//! Tests of stores that become visible in order, and of branches on loads, observed by two cores.

use crate::common::{scenario, TWO_CORES};
use hostnet::core::{Cpu, Op, Retired};
use hostnet::kernel::{Clock, LineAddr, TenantId, ThreadId, Time};
use hostnet::machine::{Machine, MachineSignal};
use hostnet::memory::region::{AddressMap, RegionKind, Sharing};
use hostnet::memory::Memory;

/// Two cores of sim24 and a region that both share, with a record of events.
struct Bench {
    m: Machine,
    line: LineAddr,
    /// Ends of programs and tags, by core.
    free: [Time; 2],
    told: Vec<(u16, u32, Time)>,
}

impl Bench {
    fn new() -> Bench {
        let s = scenario(TWO_CORES);
        let mut map = AddressMap::default();
        let r = map.add(1 << 10, RegionKind::App, Sharing::Shared, TenantId(0));
        let line = map.get(r).base;
        let (core, p) = (&s.platform.core, &s.platform);
        let clock = Clock::from_hz(core.clock.0);
        let mem = Memory::new(&p.caches, &p.memory, clock, 2, vec![(1 << 12) - 1], map).expect("a valid memory");
        let mut m = Machine::without_devices(mem, vec![Cpu::new(ThreadId(0), core), Cpu::new(ThreadId(1), core)]);
        m.now = Time::ns(1);
        Bench { m, line, free: [Time::ZERO; 2], told: Vec::new() }
    }

    /// Runs the given programs from now until all are complete.
    fn go(&mut self, programs: &[(usize, &[Op])]) {
        self.told.clear();
        for (core, ops) in programs {
            let thread = ThreadId::new(*core);
            self.m.cpus[thread].program.ops = ops.to_vec();
            self.m.start(thread);
        }
        while let Some(s) = self.m.next_signal() {
            match s {
                MachineSignal::CoreFree(c) => self.free[c.index()] = self.m.now,
                MachineSignal::Retired(c) => {
                    while let Some(r) = self.m.retired(c) {
                        if let Retired::Tag(t) = r {
                            self.told.push((c.0, t, self.m.now));
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Time that the given ops take until all stores are done.
    fn time(&mut self, ops: &[Op]) -> Time {
        let start = self.m.now;
        self.go(&[(0, ops)]);
        self.free[0] - start
    }
}

#[test]
fn a_release_is_told_when_the_stores_before_it_are_done_and_loads_behind_it_do_not_wait() {
    let mut b = Bench::new();
    let (own, signal, payload) = (b.line, b.line + 8, b.line + 16);
    b.go(&[(0, &[Op::Store { line: signal, lines: 1 }, Op::Load { line: own, lines: 1 }, Op::Fence])]);
    let missed = b.time(&[Op::Store { line: payload, lines: 1 }, Op::Fence]);
    let mut b = Bench::new();
    b.go(&[(0, &[Op::Store { line: signal, lines: 1 }, Op::Load { line: own, lines: 1 }, Op::Fence])]);
    let start = b.m.now;
    b.go(&[(
        0,
        &[
            Op::Store { line: payload, lines: 1 },
            Op::Release { line: signal, tag: 7 },
            Op::Anchor { line: own },
            Op::Await,
        ],
    )]);
    let [(0, 7, told)] = b.told[..] else { panic!("{:?}", b.told) };
    assert!(told - start >= missed - Time::ns(1), "told after {}, the store takes {missed}", told - start);
    assert!(told - start < missed + Time::ns(1));
    assert!(b.free[0] - start < missed, "a load that hits is done before");
}

#[test]
fn releases_are_told_in_their_order_though_the_second_line_is_there_first() {
    let mut b = Bench::new();
    let (first, second) = (b.line, b.line + 8);
    b.go(&[(0, &[Op::Store { line: second, lines: 1 }, Op::Fence])]);
    b.go(&[(0, &[Op::Release { line: first, tag: 1 }, Op::Release { line: second, tag: 2 }])]);
    assert_eq!(b.told.iter().map(|t| t.1).collect::<Vec<_>>(), [1, 2]);
}

/// The other core reads the line repeatedly; its last read comes after the store.
#[test]
fn a_line_that_another_core_takes_is_asked_for_again_and_stored_to_once() {
    for offset in 0..60 {
        let mut b = Bench::new();
        let (signal, payload) = (b.line, b.line + 16);
        b.go(&[(0, &[Op::Store { line: signal, lines: 1 }, Op::Fence])]);
        let reads = [Op::Stall(offset * 1250), Op::Anchor { line: signal }, Op::Await];
        b.go(&[(0, &[Op::Store { line: payload, lines: 1 }, Op::Release { line: signal, tag: 3 }]), (1, &reads)]);
        assert_eq!(b.told.iter().filter(|t| t.1 == 3).count(), 1, "{offset}");
        let told = b.told[0].2;
        // A core that reads afterwards has to request the line.
        let hit = b.time(&[Op::Anchor { line: signal }, Op::Await]);
        assert!(told > Time::ZERO && hit < Time::ns(10), "the core that stored has the line, at offset {offset}");
    }
}

#[test]
fn a_branch_waits_for_its_load_and_not_for_stores() {
    let mut b = Bench::new();
    let (hit, missed) = (b.line, b.line + 32);
    b.go(&[(0, &[Op::Load { line: hit, lines: 1 }, Op::Fence])]);
    let alone = b.time(&[Op::Anchor { line: hit }, Op::Await]);
    let behind = b.time(&[Op::Store { line: missed, lines: 1 }, Op::Anchor { line: hit }, Op::Await]);
    assert!(behind < alone + Time::ns(2), "{behind} behind a store that misses, {alone} alone");
    let load = b.time(&[Op::Anchor { line: missed + 32 }, Op::Await]);
    let fenced = b.time(&[Op::Anchor { line: missed + 64 }, Op::Fence]);
    assert!(load > alone && fenced >= alone);
}
