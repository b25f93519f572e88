//! Tests of write-combining buffers and uncached loads, by the rules of "CC-NIC" (ASPLOS 2024), section 2.2.

use crate::common::{close, execute, get, scenario, simulate, ONE_CORE};
use hostnet::core::{Cpu, Mapped, Op, Retired};
use hostnet::host::Host;
use hostnet::kernel::{Clock, CoreId, LineAddr, TenantId, ThreadId, Time};
use hostnet::machine::{Machine, MachineSignal};
use hostnet::memory::region::{AddressMap, RegionKind, Sharing};
use hostnet::memory::Memory;
use std::sync::Arc;

/// Cycle of sim24, which runs at 3.2 GHz and dispatches 5 instructions per cycle, or 2 of computations.
const CYCLE: f64 = 0.3125;
/// Time until the device has taken the content of a buffer, and until a load has returned.
const WAY: f64 = 400.0;

/// Runs ops on a core of sim24 with the given number of buffers, with a device `WAY` away. `ops` gets the first line of
/// the core's memory. Returns the time that the ops took in ns, the retired side effects with their times, and the
/// machine.
fn run(buffers: u32, ops: impl FnOnce(LineAddr) -> Vec<Op>) -> (f64, Vec<(f64, Retired)>, Machine) {
    let s = scenario(ONE_CORE);
    let mut core = s.platform.core;
    core.quirks.combining_buffers = Some(buffers);
    let mut map = AddressMap::default();
    let r = map.add(1 << 14, RegionKind::App, Sharing::Core(CoreId(0)), TenantId(0));
    let base = map.get(r).base;
    let clock = Clock::from_hz(core.clock.0);
    let mem = Memory::new(&s.platform.caches, &s.platform.memory, clock, 1, vec![(1 << 12) - 1], map).unwrap();
    let mut m = Machine::without_devices(mem, vec![Cpu::new(ThreadId(0), &core)]);
    m.nic.notify = Time::ns(WAY as u64);
    let start = Time::ns(1);
    let (end, _, retired) = execute(&mut m, &ops(base), start);
    let since = |t: Time| (t - start).as_ns();
    (since(end), retired.into_iter().map(|(t, r)| (since(t), r)).collect(), m)
}

fn combine(line: LineAddr, bytes: u8) -> Op {
    Op::Combine { line, bytes, to: Mapped::Device }
}

/// Times at which buffers leave for the device, and their bytes.
fn left(retired: &[(f64, Retired)]) -> Vec<(f64, u8)> {
    let one = |(t, r): &(f64, Retired)| match r {
        Retired::Combined { bytes, .. } => Some((*t, *bytes)),
        _ => None,
    };
    retired.iter().filter_map(one).collect()
}

#[test]
fn a_buffer_leaves_when_it_is_full() {
    let (_, retired, _) = run(4, |_| (0..16).flat_map(|i| [Op::Compute(64), combine(LineAddr(i / 8), 8)]).collect());
    // Eight stores of 8 B, each 64 instructions at 2 per cycle and 1 at 5 after the previous store.
    let line = 8.0 * (64.0 / 2.0 + 1.0 / 5.0) * CYCLE;
    let left = left(&retired);
    assert_eq!(left.iter().map(|l| l.1).collect::<Vec<_>>(), [64, 64]);
    assert!(close(left[0].0, line, 0.01) && close(left[1].0, 2.0 * line, 0.01), "{left:?}, not {line} and twice that");
}

#[test]
fn stores_to_one_line_gather_in_one_buffer_whatever_comes_between() {
    let (_, retired, _) =
        run(4, |_| vec![combine(LineAddr(1), 4), combine(LineAddr(2), 4), combine(LineAddr(1), 4), Op::Fence]);
    assert_eq!(
        left(&retired).iter().map(|l| l.1).collect::<Vec<_>>(),
        [8, 4],
        "in the order in which they were opened"
    );
}

#[test]
fn open_buffers_stay_until_a_fence_or_an_uncached_access() {
    let (_, retired, _) = run(4, |_| vec![combine(LineAddr(1), 16), combine(LineAddr(2), 16)]);
    assert_eq!(left(&retired), [], "nothing makes them leave");
    for ends in [Op::Fence, Op::Mmio { tag: 7 }, Op::LoadDevice { bytes: 8 }] {
        let (_, retired, _) = run(4, |_| vec![combine(LineAddr(1), 16), Op::Compute(3_200), ends]);
        let left = left(&retired);
        assert_eq!(left.len(), 1, "{ends:?}");
        assert!(close(left[0].0, 500.0, 0.01), "{left:?}: 3200 instructions at 2 x 3.2 GHz");
    }
}

/// Two buffers that leave together arrive at the device together; the fence ends when both have been taken.
#[test]
fn a_fence_waits_until_the_device_has_taken_all_buffers() {
    let (took, ..) = run(4, |_| vec![combine(LineAddr(1), 16), combine(LineAddr(2), 16), Op::Fence]);
    assert!(close(took, WAY, 0.01), "{took}");
    let (took, ..) = run(4, |_| vec![combine(LineAddr(1), 16), Op::Fence, combine(LineAddr(2), 16), Op::Fence]);
    assert!(close(took, 2.0 * WAY, 0.01), "{took}");
    let (took, ..) = run(4, |_| vec![Op::Compute(64), Op::Fence]);
    assert!(close(took, 64.0 / 2.0 * CYCLE, 0.01), "{took}: nothing to wait for");
}

/// Each store is to a line of its own. Stores up to the number of buffers take no extra time; each further store waits
/// until the oldest buffer has left and been taken.
#[test]
fn a_store_that_finds_no_buffer_waits_until_one_has_been_taken() {
    for buffers in [2, 5] {
        let stores =
            |_| (0..8).flat_map(|i| [combine(LineAddr(i), 4), Op::Retire { tag: i as u32, stores: true }]).collect();
        let (_, retired, _) = run(buffers, stores);
        let tags = retired.iter().filter(|(_, r)| matches!(r, Retired::Tag(_)));
        for ((at, _), i) in tags.zip(0u32..) {
            let waits = (i + 1).saturating_sub(buffers);
            let expected = f64::from(waits) * WAY;
            assert!((at - expected).abs() < 2.0, "{buffers} buffers: store {i} at {at} ns, not {expected}");
        }
        assert!(left(&retired).iter().all(|l| l.1 == 4), "a part of a line leaves alone");
    }
}

#[test]
fn nothing_goes_on_before_an_uncached_load_is_back() {
    let (took, retired, _) =
        run(4, |_| vec![Op::LoadDevice { bytes: 8 }, Op::LoadDevice { bytes: 64 }, Op::Compute(64)]);
    assert!(close(took, 2.0 * WAY + 64.0 / 2.0 * CYCLE, 0.01), "{took}");
    assert_eq!(retired.iter().map(|r| r.1).collect::<Vec<_>>(), [8, 64].map(|bytes| Retired::Load { bytes }));
}

/// Stores to memory that is mapped write-combining bypass the caches, and each line is one write to DRAM.
#[test]
fn combining_stores_to_memory_go_past_the_caches() {
    let (took, retired, m) = run(4, |base| {
        (0..8).map(|i| Op::Combine { line: base + i, bytes: 64, to: Mapped::Memory }).chain([Op::Fence]).collect()
    });
    assert_eq!(retired, [], "nothing of it is a device's business");
    assert_eq!(m.mem.stats.ledger.written, 8);
    assert!((0..8).all(|i| m.mem.copies(m.mem.map.iter().next().expect("a region").base + i).0 == 0));
    // Four buffers for eight lines: twice L1, L2 and the crossbar to the home agent, and the crossbar back.
    let trip = (4.0 + 14.0 + 4.0 + 4.0) * CYCLE;
    assert!(took >= 2.0 * trip && took < 4.0 * trip, "{took} ns, a trip is {trip}");
}

/// A core of `icx` behind the E810's port. L1 and L2 take 5 + 9 cycles of 3.1 GHz, the crossbar 27 cycles of 2.4 GHz,
/// and the path 55 ns from the home agent to the IIO and 150 ns back. The link has 16 lanes of PCIe 4, of which
/// data-link packets take 3 %, and 150 ns of flight in each direction.
const OUT: f64 = 14.0 / 3.1 + 27.0 / 2.4 + 55.0;
const BACK: f64 = 27.0 / 2.4;
fn on_link(bytes: f64) -> f64 {
    bytes * 8.0 / (16.0 * 16.0 * 128.0 / 130.0 * 0.97)
}

fn probe(app: &str) -> hostnet::host::Outcome {
    simulate(&format!(
        "name = \"probe\"\nplatform = \"icx\"\nplacement = {{ policy = \"ddio\", ways = 2 }}\n[override.nodes]\ncount = 1\n\
         [[tenant]]\nname = \"core\"\ncores = 1\napp = {{ kind = \"probe_device\", {app} }}\n[[peripheral]]\nkind = \
         \"ethernet\"\n[traffic]\narrivals = \"none\"\n[run]\nload = \"none\"\n"
    ))
}

#[test]
fn a_load_from_a_device_is_a_request_down_the_link_and_a_completion_up() {
    for bytes in [8, 64] {
        let got = get(&probe(&format!("access = \"load\", bytes = {bytes}")), "mmio_read_ns");
        let link = on_link(24.0) + 150.0 + 150.0 + on_link(20.0 + f64::from(bytes));
        let expected = OUT + link + 150.0 + BACK;
        assert!((got - expected).abs() < 1.0, "{bytes} B: {got} ns, not {expected}");
    }
}

/// A machine of `icx` with one core and an E810 that receives no packets.
fn behind_a_port() -> Machine {
    let s = scenario(
        "name = \"ring\"\nplatform = \"icx\"\nplacement = { policy = \"ddio\", ways = 2 }\n[override.nodes]\ncount = 1\n\
         [[tenant]]\nname = \"core\"\ncores = 1\nstack = \"poll_mode\"\napp = { kind = \"testpmd\" }\n[[peripheral]]\n\
         kind = \"ethernet\"\n[traffic]\narrivals = \"fixed\"\nrate = \"1 Mpps\"\n[run]\nload = \"fixed\"\n",
    );
    Host::new(Arc::new(s)).expect("it fits").machine
}

/// One uncached access is in flight between a core and the root complex (section 2.2): the next doorbell leaves when
/// the answer to the previous one has returned.
#[test]
fn doorbells_reach_the_link_of_a_port_a_round_trip_apart() {
    let mut m = behind_a_port();
    m.cpus[ThreadId(0)].program.ops = (1..=3).map(|tag| Op::Mmio { tag }).collect();
    let start = m.now;
    m.start(ThreadId(0));
    let mut came = Vec::new();
    while let Some(s) = m.next_signal() {
        match s {
            MachineSignal::Retired(core) => while m.retired(core).is_some() {},
            MachineSignal::Doorbell(ThreadId(0), tag) => came.push((tag, (m.now - start).as_ns())),
            _ => {}
        }
    }
    assert_eq!(came.iter().map(|c| c.0).collect::<Vec<_>>(), [1, 2, 3]);
    for (i, (_, at)) in came.iter().enumerate() {
        let expected = OUT + i as f64 * (OUT + BACK);
        assert!((at - expected).abs() < 1.0, "doorbell {i}: {at} ns, not {expected}");
    }
}

#[test]
fn stores_to_a_device_beyond_the_buffers_cost_a_trip_to_the_link() {
    let trip = OUT + on_link(4.0 + 24.0) + BACK;
    for (stores, expected) in [(24, 0.0), (25, trip), (40, trip)] {
        let got = get(&probe(&format!("access = \"store\", bytes = 4, stores = {stores}")), "mmio_store_ns");
        assert!((got - expected).abs() < 1.0, "store {stores}: {got} ns, not {expected}");
    }
}
