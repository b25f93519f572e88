//! Tests of the L1's prefetchers and of the L2's spatial prefetcher: the lines that these bring, according to Intel's
//! optimisation manual.

use crate::common::{close, execute, get, l2_prefetcher, scenario, simulate, ONE_CORE};
use hostnet::core::l1_prefetch::{L1PrefetchQuirks, L1PrefetchSpec};
use hostnet::core::prefetch::{CacheLevel, PrefetchPattern, PrefetchQuirks, PrefetchSpec};
use hostnet::core::{CoreSpec, Cpu, Op, RobHolds};
use hostnet::kernel::units::Size;
use hostnet::kernel::{Clock, CoreId, LineAddr, TenantId, ThreadId, Time};
use hostnet::machine::Machine;
use hostnet::memory::region::{AddressMap, RegionKind, Sharing};
use hostnet::memory::Memory;

const NEXT: L1PrefetchSpec = L1PrefetchSpec {
    enabled: true,
    quirks: L1PrefetchQuirks { recent: 4, instructions: 0, longest: Size(2048), trigger: 3, misses: 10, stores: 8 },
};
const STRIDE: L1PrefetchSpec =
    L1PrefetchSpec { quirks: L1PrefetchQuirks { recent: 0, instructions: 8, ..NEXT.quirks }, ..NEXT };

/// A core of sim24 with cold caches, and the first line of its memory of the given kind.
fn machine(kind: RegionKind, change: impl FnOnce(&mut CoreSpec)) -> (Machine, LineAddr) {
    let s = scenario(ONE_CORE);
    let mut core = s.platform.core;
    core.stores_per_line = 1;
    change(&mut core);
    let mut map = AddressMap::default();
    let r = map.add(1 << 12, kind, Sharing::Core(CoreId(0)), TenantId(0));
    let base = map.get(r).base;
    let clock = Clock::from_hz(core.clock.0);
    let mem = Memory::new(&s.platform.caches, &s.platform.memory, clock, 1, vec![(1 << 12) - 1], map).unwrap();
    (Machine::without_devices(mem, vec![Cpu::new(ThreadId(0), &core)]), base)
}

/// Numbers of the lines, among the first 24, that prefetchers have brought into the core's caches after `op` on `lines`;
/// the lines of the program itself are left out.
fn brought(kind: RegionKind, change: impl FnOnce(&mut CoreSpec), lines: &[u64], op: fn(LineAddr) -> Op) -> Vec<u64> {
    let (mut m, base) = machine(kind, change);
    let ops: Vec<Op> = lines.iter().flat_map(|l| [op(base + *l), Op::Compute(400)]).chain([Op::Fence]).collect();
    let (_, last, _) = execute(&mut m, &ops, Time::us(1));
    execute(&mut m, &[Op::Compute(4000)], last + Time::us(1));
    m.mem.check().unwrap();
    (0..24).filter(|l| !lines.contains(l) && m.mem.holds(CoreId(0), base + *l)).collect()
}

fn load(line: LineAddr) -> Op {
    Op::Load { line, lines: 1 }
}

fn with(l1: L1PrefetchSpec) -> impl FnOnce(&mut CoreSpec) {
    move |core| core.l1_prefetch = Some(l1)
}

#[test]
fn ascending_loads_bring_the_next_line_and_a_stride_brings_the_next_of_its_own() {
    let none = Vec::<u64>::new();
    assert_eq!(brought(RegionKind::App, |_| {}, &[2, 3, 4], load), none, "nothing without prefetchers");
    assert_eq!(brought(RegionKind::App, with(NEXT), &[2, 3, 4], load), [5]);
    assert_eq!(brought(RegionKind::App, with(NEXT), &[2, 9, 16], load), none);
    assert_eq!(brought(RegionKind::App, with(STRIDE), &[2, 9, 16], load), [23]);
    assert_eq!(brought(RegionKind::App, with(STRIDE), &[20, 14, 8], load), [2]);
    assert_eq!(
        brought(RegionKind::App, with(NEXT), &[6], |line| Op::Walk { line, loads: 8 }),
        [7],
        "eight loads of a line"
    );
    let by_16_bytes = |core: &mut CoreSpec| (core.l1_prefetch, core.stores_per_line) = (Some(NEXT), 4);
    assert_eq!(brought(RegionKind::App, by_16_bytes, &[2, 9], load), [3, 10], "four loads of each line");
    let both = L1PrefetchSpec { quirks: L1PrefetchQuirks { instructions: 8, ..NEXT.quirks }, ..NEXT };
    assert_eq!(brought(RegionKind::App, with(L1PrefetchSpec { enabled: false, ..both }), &[2, 3, 4], load), none);
}

/// According to the manual, the prefetchers follow load operations, and pause while many other misses are in progress.
#[test]
fn stores_prefetches_and_many_misses_bring_nothing() {
    let none = Vec::<u64>::new();
    let both = || with(L1PrefetchSpec { quirks: L1PrefetchQuirks { instructions: 8, ..NEXT.quirks }, ..NEXT });
    assert_eq!(brought(RegionKind::App, both(), &[2, 3, 4], |line| Op::Store { line, lines: 1 }), none);
    assert_eq!(brought(RegionKind::App, both(), &[2, 3, 4], |line| Op::Prefetch { line, lines: 1 }), none);
    assert_eq!(brought(RegionKind::Rx, both(), &[2, 3, 4], load), none, "a NIC's buffers are not followed");
    // Three simultaneous loads occupy three line fill buffers.
    let three = |line| Op::Load { line, lines: 3 };
    let fewer = |misses| with(L1PrefetchSpec { quirks: L1PrefetchQuirks { misses, ..NEXT.quirks }, ..NEXT });
    assert_eq!(brought(RegionKind::App, fewer(2), &[0], three), [1, 2], "lines that the loop names");
    assert_eq!(brought(RegionKind::App, fewer(4), &[0], three), [1, 2, 3]);
}

/// A prefetched line is in the L1: a load of it takes the four cycles of the L1.
#[test]
fn a_line_that_was_fetched_ahead_is_in_the_l1() {
    let took = |l1: Option<L1PrefetchSpec>| {
        let (mut m, base) = machine(RegionKind::App, |core| core.l1_prefetch = l1);
        let (_, last, _) = execute(&mut m, &[load(base), load(base + 1), Op::Fence], Time::us(1));
        let start = last + Time::us(1);
        let (end, ..) = execute(&mut m, &[Op::Anchor { line: base + 2 }, Op::Await], start);
        (end - start).as_ns()
    };
    let (with, without) = (took(Some(NEXT)), took(None));
    assert!((with - 4.0 * 0.3125).abs() < 0.2, "{with} ns");
    assert!(without > 50.0, "{without} ns from memory");
}

/// Loads that wait for an address hold the core's records but for one or a few, and hits of the L2 that stay in the reorder buffer
/// need one each. A prefetch that such a hit causes does not take the one that the hit needs.
#[test]
fn a_prefetch_leaves_the_last_record_to_the_hit_that_causes_it() {
    for waiting in 56..66 {
        let (mut m, base) = machine(RegionKind::App, |core| {
            core.l1_prefetch = Some(NEXT);
            (core.rob, core.quirks.rob_holds) = (512, RobHolds::All);
        });
        // 900 lines exceed the L1 and fit the L2.
        let warm: Vec<Op> = (0..900).map(|i| load(base + i)).chain([Op::Fence]).collect();
        let (_, last, _) = execute(&mut m, &warm, Time::us(1));
        let dependent = (0..waiting).map(|i| Op::DependentLoad { line: base + 2000 + 2 * i, lines: 1 });
        let hits = (0..64).map(|i| load(base + i));
        let ops: Vec<Op> =
            [Op::Anchor { line: base + 1500 }].into_iter().chain(dependent).chain(hits).chain([Op::Fence]).collect();
        let start = last + Time::us(1);
        let (end, ..) = execute(&mut m, &ops, start);
        m.mem.check().unwrap();
        assert!((end - start).as_ns() > 50.0, "{waiting} loads wait for one from memory");
    }
}

/// Each line that an access brings into the L2 is accompanied by the other line of its aligned pair, above or below.
#[test]
fn the_spatial_prefetcher_completes_aligned_pairs() {
    let l2 = |adjacent| {
        move |core: &mut CoreSpec| {
            core.prefetch =
                Some(PrefetchSpec { quirks: PrefetchQuirks { adjacent, ..l2_prefetcher().quirks }, ..l2_prefetcher() });
        }
    };
    assert_eq!(brought(RegionKind::App, l2(true), &[4, 9, 2], load), [3, 5, 8]);
    assert_eq!(brought(RegionKind::App, l2(false), &[4, 9, 2], load), Vec::<u64>::new());
    assert_eq!(brought(RegionKind::App, l2(true), &[4, 9, 2], |line| Op::Store { line, lines: 1 }), [3, 5, 8]);
}

/// gem5's L3 with the prefetcher class of the L2: the prefetcher observes misses of the L2, and fetches only into the
/// L3.
#[test]
fn a_prefetcher_of_the_llc_brings_lines_there_and_no_further() {
    let llc = |core: &mut CoreSpec| {
        core.quirks.l2_mshrs = Some(4);
        core.prefetch = Some(PrefetchSpec {
            degree: 8,
            credits: 32,
            quirks: PrefetchQuirks {
                into: CacheLevel::Llc,
                pattern: PrefetchPattern::Stride,
                network: true,
                waiting: 32,
                ..l2_prefetcher().quirks
            },
            ..l2_prefetcher()
        });
    };
    for kind in [RegionKind::App, RegionKind::Rx] {
        let (mut m, base) = machine(kind, llc);
        let ops: Vec<Op> = (0..3).flat_map(|l| [load(base + l), Op::Compute(400)]).chain([Op::Fence]).collect();
        let (_, last, _) = execute(&mut m, &ops, Time::us(1));
        let start = last + Time::us(1);
        execute(&mut m, &[Op::Compute(4000)], start);
        m.mem.check().unwrap();
        let in_llc: Vec<u64> = (3..24).filter(|l| m.mem.in_llc_or_shared(CoreId(0), base + *l)).collect();
        assert_eq!(in_llc, (3..11).collect::<Vec<_>>(), "eight lines behind the third load");
        assert!((3..24).all(|l| !m.mem.holds(CoreId(0), base + l)), "none of them in the core's caches");
        let took = |m: &mut Machine, line, now| execute(m, &[Op::Anchor { line }, Op::Fence], now).1 - now;
        let (hit, miss) = (took(&mut m, base + 3, start + Time::us(9)), took(&mut m, base + 900, start + Time::us(20)));
        assert!(hit + Time::from_ns_f64(20.0) < miss, "{hit} from the LLC, {miss} from DRAM");
        m.cpus[ThreadId(0)].check(&m.mem).unwrap();
    }
}

/// A load of a line that the LLC's prefetcher is fetching waits for that line, and sends no request to DRAM.
#[test]
fn a_load_joins_a_prefetch_of_the_llc() {
    let (mut m, base) = machine(RegionKind::App, |core| {
        core.quirks.l2_mshrs = Some(4);
        core.prefetch = Some(PrefetchSpec {
            degree: 8,
            credits: 32,
            quirks: PrefetchQuirks {
                into: CacheLevel::Llc,
                pattern: PrefetchPattern::Stride,
                waiting: 32,
                ..l2_prefetcher().quirks
            },
            ..l2_prefetcher()
        });
    });
    let ops: Vec<Op> = (0..11).map(|l| load(base + l)).chain([Op::Fence]).collect();
    let (_, last, _) = execute(&mut m, &ops, Time::us(1));
    execute(&mut m, &[Op::Compute(4000)], last + Time::us(1));
    m.mem.check().unwrap();
    m.cpus[ThreadId(0)].check(&m.mem).unwrap();
    assert!((0..11).all(|l| m.mem.holds(CoreId(0), base + l)), "what was loaded is in the core's caches");
}

/// The L2 sees an access once it has a line fill buffer, and then as many lines ahead as the prefetcher's distance: those
/// lines and the buffers' are under way together. Accesses that wait for a buffer neither hide the lines ahead nor confuse the
/// prefetcher's direction.
#[test]
fn a_core_that_runs_ahead_of_its_line_fill_buffers_has_buffers_and_distance_under_way() {
    let ns_of = |lines: u32, lfb: u32, distance: u32| {
        let (mut m, base) = machine(RegionKind::App, |core| {
            (core.lfb, core.rob, core.quirks.lfb_retry) = (lfb, 512, Default::default());
            core.prefetch = (distance > 0).then(|| PrefetchSpec {
                distance,
                credits: 64,
                quirks: PrefetchQuirks { next_page: true, ..l2_prefetcher().quirks },
                ..l2_prefetcher()
            });
        });
        let ops = [Op::Load { line: base, lines }, Op::Fence];
        let start = Time::us(1);
        let (end, ..) = execute(&mut m, &ops, start);
        (end - start).as_ns()
    };
    let latency = ns_of(1, 12, 0);
    for (lfb, distance) in [(6, 0), (6, 12), (12, 20), (24, 8)] {
        let (short, long) = (ns_of(512, lfb, distance), ns_of(1536, lfb, distance));
        let expected = 1024.0 * latency / f64::from(lfb + distance);
        assert!(close(long - short, expected, 0.1), "{lfb} + {distance}: {} ns, expected {expected}", long - short);
    }
}

/// Each line that a stream updates is read once and written back once from the beginning of the window, wherever the pages of its
/// buffer lie: the next-page prefetcher goes on in the page with the next virtual addresses.
#[test]
fn an_updating_stream_reads_and_writes_back_what_it_updates() {
    for contiguous in ["buddy", "4 KiB"] {
        let o = simulate(&format!(
            r#"
            name = "updates"
            platform = "spr"
            override = {{ nodes = {{ count = 1 }} }}
            placement = {{ policy = "dma" }}
            run = {{ load = "saturate", warmup_time = "8 us", time = "60 us" }}
            [[tenant]]
            name = "stream"
            cores = 16
            app = {{ kind = "stream", buffer = "1 GiB", read_fraction = 0.5, contiguous = "{contiguous}" }}
            "#
        ));
        let (updated, written, read) = (get(&o, "c2m_gbs"), get(&o, "mem_write_gbs"), get(&o, "mem_read_gbs"));
        assert!((written / updated - 1.0).abs() < 0.025, "{contiguous}: {written} GB/s written, {updated} updated");
        assert!((read / updated - 1.0).abs() < 0.01, "{contiguous}: {read} GB/s read, {updated} updated");
    }
}
