//! Tests of a core that runs ahead of the calendar through its private caches. An action of another agent on a line
//! before the core's own time must have reached the core when the core looks the line up. The tests try every offset
//! between the two, in steps of one cycle.

use crate::common::{scenario, TWO_CORES};
use hostnet::core::{Cpu, Op, Pipeline};
use hostnet::host::Host;
use hostnet::kernel::{Clock, CoreId, LineAddr, PortId, QueueId, TenantId, ThreadId, Time};
use hostnet::machine::{Machine, MachineSignal};
use hostnet::memory::protocol::CopyState;
use hostnet::memory::region::{AddressMap, RegionKind, Sharing};
use hostnet::memory::shadow::{CopyPlace, Shadow};
use hostnet::memory::stats::AccessClass;
use hostnet::memory::{Inbound, Memory, Sender, Txn};
use std::sync::Arc;

/// Two cycles of sim24 in ps, where a cycle takes 312.5 ps.
const TWO_CYCLES: u64 = 625;
/// Time in ps from a core of sim24 to the home agent: look-ups of 4 and 14 cycles, and 4 cycles of crossbar.
const TO_HOME: u64 = (4 + 14 + 4) * TWO_CYCLES / 2;
const CROSSBAR: u64 = 4 * TWO_CYCLES / 2;
const L1: u64 = 4 * TWO_CYCLES / 2;

/// Two cores, a line that core 0 has in its L1, and lines that only core 0 uses.
struct Bench {
    m: Machine,
    line: LineAddr,
    own: LineAddr,
}

impl Bench {
    /// A bench whose line is application data of both cores, or lies in a ring that a device writes.
    fn new(ring: bool, pipeline: Pipeline) -> Bench {
        let mut map = AddressMap::default();
        let r = match ring {
            true => map.add(1 << 10, RegionKind::Rx, Sharing::Core(CoreId(0)), TenantId(0)),
            false => map.add(1 << 10, RegionKind::App, Sharing::Shared, TenantId(0)),
        };
        if ring {
            map.set_polled(r);
        }
        let own = map.add(1 << 10, RegionKind::App, Sharing::Core(CoreId(0)), TenantId(0));
        let (line, own) = (map.get(r).base, map.get(own).base);
        Bench::of(map, line, own, !ring, pipeline)
    }

    /// A bench with the given regions; `line` lies in a region that is `shared`, and `own` in a region of core 0 alone.
    fn of(map: AddressMap, line: LineAddr, own: LineAddr, shared: bool, pipeline: Pipeline) -> Bench {
        let s = scenario(TWO_CORES);
        let mut core = s.platform.core;
        core.pipeline = pipeline;
        let clock = Clock::from_hz(core.clock.0);
        let mem = Memory::new(&s.platform.caches, &s.platform.memory, clock, 2, vec![(1 << 12) - 1], map);
        let mut m = Machine::without_devices(
            mem.expect("a valid memory"),
            vec![Cpu::new(ThreadId(0), &core), Cpu::new(ThreadId(1), &core)],
        );
        m.now = Time::ns(1);
        let mut b = Bench { m, line, own };
        // Another agent has written to the shared region before, and core 0 has a clean copy of the line.
        if shared {
            b.go(&[(1, &[Op::Store { line: line + 1, lines: 1 }])]);
        }
        b.go(&[(0, &[Op::Load { line, lines: 1 }, Op::Load { line: own, lines: 1 }])]);
        assert_eq!(b.m.mem.private_copy(CoreId(0), line), CopyState::Clean);
        b.m.mem.shadow = Some(Box::new(Shadow::default()));
        b
    }

    /// Starts the given programs at the same time and lets all of them end; a later call begins 10 us later.
    fn go(&mut self, programs: &[(usize, &[Op])]) {
        self.m.now += Time::us(10);
        for c in &mut self.m.cpus {
            c.restart_meters(self.m.now);
        }
        for (core, ops) in programs {
            let thread = ThreadId::new(*core);
            self.m.cpus[thread].program.ops = ops.to_vec();
            self.m.start(thread);
        }
        self.end();
    }

    fn end(&mut self) {
        while let Some(s) = self.m.next_signal() {
            if let MachineSignal::Answer(id) = s {
                self.m.mem.answered(&mut self.m.cal, id, self.m.now);
            }
        }
    }

    /// Whether the last access of core 0's program was a hit, after `hits` other accesses that were hits.
    fn hit(&self, hits: u64) -> bool {
        let a = self.m.cpus[ThreadId(0)].amat;
        assert_eq!(a.accesses, hits + 1);
        a.ps == u128::from(L1 * (hits + 1))
    }
}

/// Programs of core 0 that access `line` at `at` ps after their start; all accesses before that access hit.
fn programs(b: &Bench, at: u64, access: fn(LineAddr) -> Op) -> Vec<(u64, Vec<Op>)> {
    let wait = Op::Stall(at);
    vec![
        (0, vec![wait, access(b.line)]),
        // The core's time differs from the time of the access, whose address comes from a load.
        (1, vec![Op::Stall(at - L1), Op::Anchor { line: b.own }, access(b.line)]),
    ]
}

fn load(line: LineAddr) -> Op {
    Op::DependentLoad { line, lines: 1 }
}
fn store(line: LineAddr) -> Op {
    Op::DependentStore { line, lines: 1 }
}

/// The action of the other agent reaches the home agent 100 ns after the start. Calls `check` with the time of core 0's
/// access.
fn each_offset(mut check: impl FnMut(u64)) {
    (60_000..140_000).step_by(312).for_each(&mut check);
}
const HOME: u64 = 100_000;

#[test]
fn a_load_misses_when_another_core_has_stored_before_it() {
    for pipeline in [Pipeline::OutOfOrder, Pipeline::InOrder] {
        for first in [0, 1] {
            each_offset(|at| {
                for which in 0..2 {
                    let mut b = Bench::new(false, pipeline);
                    let (hits, reader) = programs(&b, at, load).swap_remove(which);
                    let writer = [Op::Stall(HOME - TO_HOME), Op::Store { line: b.line, lines: 1 }];
                    let mut both: [(usize, &[Op]); 2] = [(0, &reader), (1, &writer)];
                    both.rotate_left(first);
                    b.go(&both);
                    let newest = b.m.mem.version(b.line);
                    assert_eq!(newest, 1, "one store");
                    if at > HOME + CROSSBAR {
                        assert!(!b.hit(hits), "{at} ps is after the store, which nobody saw ({pipeline:?})");
                        assert_eq!(b.m.mem.shadow.as_ref().unwrap().at(b.line, CopyPlace::Core(CoreId(0))), newest);
                    } else if at < HOME {
                        assert!(b.hit(hits), "{at} ps is before the store ({pipeline:?})");
                    }
                    b.m.mem.coherent(b.line).unwrap();
                }
            });
        }
    }
}

#[test]
fn a_store_ahead_of_the_calendar_is_not_seen_before_its_time() {
    for first in [0, 1] {
        each_offset(|at| {
            for which in 0..2 {
                let mut b = Bench::new(false, Pipeline::OutOfOrder);
                let (_, writer) = programs(&b, at, store).swap_remove(which);
                let reader = [Op::Stall(HOME - TO_HOME), Op::Load { line: b.line, lines: 1 }];
                let mut both: [(usize, &[Op]); 2] = [(0, &writer), (1, &reader)];
                both.rotate_left(first);
                b.go(&both);
                let seen = b.m.mem.shadow.as_ref().unwrap().at(b.line, CopyPlace::ToCore(CoreId(1)));
                if at > HOME + CROSSBAR {
                    assert_eq!(seen, 0, "a load that came before the store at {at} ps read what it wrote");
                } else if at < HOME {
                    assert_eq!(seen, 1, "a load that came after the store at {at} ps read what was before");
                }
                b.m.mem.coherent(b.line).unwrap();
            }
        });
    }
}

#[test]
fn a_poll_of_a_ring_misses_when_the_device_has_written_before_it() {
    each_offset(|at| polls_beside_a_write(Bench::new(true, Pipeline::OutOfOrder), at));
}

/// Descriptor rings as the drivers of a host have them.
#[test]
fn a_core_sees_a_descriptor_of_a_hosts_rings_only_after_its_write() {
    for stack in ["poll_mode", "kernel"] {
        let text = format!(
            "name = \"rings\"\nplatform = \"gem5\"\nplacement = {{ policy = \"ddio\" }}\n[[tenant]]\nname = \"a\"\ncores = \
             1\nstack = \"{stack}\"\napp = {{ kind = \"touchfwd\" }}\n[[peripheral]]\nkind = \
             \"ethernet\"\n[traffic]\narrivals = \"none\"\npacket = \"64 B\"\n[run]\nload = \"none\"\n"
        );
        let host = Host::new(Arc::new(scenario(&text))).expect("a host");
        let nic = host.machine.iio.as_ref().and_then(|i| i.nic(PortId(0))).expect("its NIC");
        let mut map = host.machine.mem.map.clone();
        let own = map.add(1 << 10, RegionKind::App, Sharing::Core(CoreId(0)), TenantId(0));
        let own = map.get(own).base;
        let (receive, transmit) = nic.layouts(QueueId(0));
        for line in [receive.line(0), transmit.line(1000)] {
            for at in [60_000, 99_000, 103_000, 139_000] {
                polls_beside_a_write(Bench::of(map.clone(), line, own, false, Pipeline::OutOfOrder), at);
            }
        }
    }
}

/// A device's write reaches the home agent 100 ns after the start, and core 0 reads the written line `at` ps after the
/// start.
fn polls_beside_a_write(mut b: Bench, at: u64) {
    let arrives = b.m.now + Time::us(10) + Time(HOME);
    let t = Txn::dma_write(Sender::Io, AccessClass::IoWr, Inbound::Llc { ways: 0b11 }, b.line, 1, b.m.now);
    b.m.mem.send(&mut b.m.cal, arrives, t);
    let poll = [Op::Stall(at), Op::Load { line: b.line, lines: 1 }];
    b.go(&[(0, &poll)]);
    if at > HOME + CROSSBAR {
        assert!(!b.hit(0), "{at} ps is after the device's write, which the core did not see");
        assert_eq!(b.m.mem.shadow.as_ref().unwrap().at(b.line, CopyPlace::Core(CoreId(0))), 1);
    } else if at < HOME {
        assert!(b.hit(0), "{at} ps is before the device's write");
    }
}

/// A program has more accesses than the core has records, all ahead of the calendar: the core continues, and each
/// access takes the time of a hit.
#[test]
fn many_hits_ahead_of_the_calendar_are_hits() {
    for pipeline in [Pipeline::OutOfOrder, Pipeline::InOrder] {
        let mut b = Bench::new(false, pipeline);
        let mut ops = vec![Op::Stall(50_000)];
        for _ in 0..300 {
            ops.extend([load(b.line), Op::Compute(40), Op::Chase { line: b.line, delay: 3 }]);
        }
        ops.push(Op::Fence);
        b.go(&[(0, &ops)]);
        let a = b.m.cpus[ThreadId(0)].amat;
        assert_eq!((a.accesses, a.ps), (600, u128::from(600 * L1)));
        assert!(b.m.cpus[ThreadId(0)].is_idle());
    }
}

/// Lines of a region that no agent writes, and lines that one core uses, need no event.
#[test]
fn read_only_and_private_lines_are_read_ahead_of_the_calendar() {
    let mut b = Bench::new(false, Pipeline::OutOfOrder);
    let shared = b.m.mem.map.iter().next().expect("a region").written;
    assert!(shared, "core 1 has written to it");
    let before = b.m.cal.popped();
    b.go(&[(0, &[Op::Stall(50_000), Op::Load { line: b.own, lines: 1 }])]);
    assert_eq!(b.m.cal.popped() - before, 1, "the end of the program");
    let before = b.m.cal.popped();
    b.go(&[(0, &[Op::Stall(50_000), Op::Load { line: b.line, lines: 1 }])]);
    assert_eq!(b.m.cal.popped() - before, 2, "the end of the program, and the hit");
}
