//! Tests of the core model, through programs on the caches and DRAM of `platforms/sim24.toml`.

use crate::common::bench::{Bench, LLC_LINES};
use crate::common::{close, execute, l2_prefetcher, scenario, small, two_nodes, Rig, ONE_CORE};
use hostnet::core::prefetch::{PrefetchPattern, PrefetchQuirks, PrefetchSpec};
use hostnet::core::{CoreSpec, Cpu, Op, Pipeline, Retired, RobHolds};
use hostnet::kernel::{Clock, CoreId, LineAddr, RandomStream, TenantId, ThreadId, Time};
use hostnet::machine::{Machine, MachineSignal};
use hostnet::memory::dram::{DramQuirks, DramSpec};
use hostnet::memory::nodes::NodesSpec;
use hostnet::memory::protocol::CopyState;
use hostnet::memory::region::{AddressMap, RegionKind, Sharing};
use hostnet::memory::stats::AccessClass;
use hostnet::memory::{self, Memory, Sweep, Txn};

// sim24: 3.2 GHz; look-ups of 4, 14 and 35 cycles, 4 of crossbar each way.
const CYCLE: f64 = 0.3125;
const L1: f64 = 4.0 * CYCLE;
const L2: f64 = (4.0 + 14.0) * CYCLE;
const LLC: f64 = (4.0 + 14.0 + 4.0 + 35.0 + 4.0) * CYCLE;
/// DDR4-3200: tRCD and CL of 22 clocks of 0.625 ns, a burst of 4; 6.2 ns in the controller.
const DRAM: f64 = 6.2 + (22.0 + 22.0 + 4.0) * 0.625;

#[test]
fn a_dependent_load_takes_the_sum_of_the_parts_at_each_level() {
    for (lines, expected) in [(256, L1), (8_192, L2), (LLC_LINES, LLC)] {
        let mut b = Bench::new(|_| {});
        b.warm(lines);
        let ns = b.chain(lines.into());
        assert!(close(ns, expected, 0.05), "{lines} lines: {ns:.2} ns, not {expected:.2}");
    }
}

/// A line's 64 loads exceed the 8 accesses that its line fill buffer takes: the next line is requested after this line
/// has arrived and the other 56 loads have executed, one per cycle. Where a buffer takes all loads, lines overlap.
#[test]
fn a_walk_over_a_line_s_bytes_holds_the_next_line_back_where_a_line_fill_buffer_takes_few() {
    let per_line = |targets: Option<u32>, loads: u16| {
        let mut b = Bench::new(|core| core.quirks.lfb_targets = targets);
        b.warm(LLC_LINES);
        let walk = |lines: std::ops::Range<u64>| -> Vec<Op> {
            lines.map(|i| Op::Walk { line: b.base + i, loads }).chain([Op::Fence]).collect()
        };
        let (short, long) = (walk(0..1_000), walk(1_000..4_000));
        let (short, long) = (b.run(&short).0, b.run(&long).0);
        (long - short) / 2_000.0
    };
    let expected = 56.0 * CYCLE + LLC;
    let held = per_line(Some(8), 64);
    assert!(close(held, expected, 0.05), "{held:.2} ns a line, not {expected:.2}");
    for (targets, loads) in [(Some(8), 8), (Some(64), 64), (None, 64)] {
        let free = per_line(targets, loads);
        assert!(free < LLC / 4.0, "{targets:?} for {loads}: {free:.2} ns a line");
    }
}

#[test]
fn a_lone_load_from_dram_takes_caches_controller_activate_and_column_access() {
    let mut b = Bench::new(|_| {});
    let (ns, _) = b.run(&[Op::Anchor { line: b.base }, Op::Fence]);
    let expected = LLC + DRAM;
    assert!(close(ns, expected, 0.05), "{ns:.2} ns, not {expected:.2}");
}

/// The address of the prefetched line is in the loaded line: two latencies, one after the other. A prefetch with a
/// known address overlaps with the load. A load of the prefetched line joins the prefetch.
#[test]
fn a_prefetch_whose_address_is_loaded_goes_out_behind_that_load() {
    let takes = |op: fn(LineAddr) -> Op, joined: bool| {
        let mut b = Bench::new(|_| {});
        let far = b.base + 4097; // of another bank
        let mut ops = vec![Op::Anchor { line: b.base }, op(far), Op::Await];
        if joined {
            ops.push(Op::Load { line: far, lines: 1 });
        }
        ops.push(Op::Fence);
        let (ns, _) = b.run(&ops);
        assert!(b.m.mem.holds(CoreId(0), far) && b.m.mem.stats.dram_ps.len() == 2, "one read of each line");
        ns
    };
    let one = LLC + DRAM;
    let beside = takes(|line| Op::Prefetch { line, lines: 1 }, false);
    assert!(close(beside, one, 0.05), "{beside:.2} ns, not {one:.2}");
    for joined in [false, true] {
        let behind = takes(|line| Op::DependentPrefetch { line }, joined);
        assert!(close(behind, 2.0 * one, 0.05), "{behind:.2} ns, not {:.2}", 2.0 * one);
    }
}

#[test]
fn a_chain_of_dram_loads_takes_one_latency_each() {
    let mut b = Bench::new(|_| {});
    let mut dice = RandomStream::new(1, "chain", 0);
    let n = 5_000;
    let mut ops: Vec<Op> = (0..n).map(|_| Op::Chase { line: b.base + dice.below(1 << 20), delay: 0 }).collect();
    ops.push(Op::Fence);
    let (ns, _) = b.run(&ops);
    let s = &b.m.mem.stats.tenants[TenantId(0)];
    // some lines occur twice, and hit
    let misses = s.llc_misses as f64;
    assert!(misses > 0.99 * f64::from(n));
    let expected = LLC + b.m.mem.stats.dram_ps.mean() / 1e3;
    assert!(close(ns / misses, expected, 0.02), "{:.2} ns, not {expected:.2}", ns / misses);
}

#[test]
fn line_fill_buffers_limit_bandwidth_to_their_number_over_the_latency() {
    for lfb in [4, 16] {
        let mut b = Bench::new(|c| c.lfb = lfb);
        b.warm(LLC_LINES);
        let (ns, _) = b.run(&[Op::Load { line: b.base, lines: LLC_LINES }, Op::Fence]);
        let per_line = ns / f64::from(LLC_LINES);
        let expected = LLC / f64::from(lfb);
        assert!(close(per_line, expected, 0.05), "{lfb}: {per_line:.3} ns, not {expected:.3}");
    }
}

#[test]
fn the_reorder_buffer_limits_misses_under_way() {
    // 352 entries hold four loads of 88 instructions each
    let mut b = Bench::new(|_| {});
    b.warm(LLC_LINES);
    let mut ops = Vec::new();
    for i in 0..4_000 {
        ops.push(Op::Load { line: b.base + i, lines: 1 });
        ops.push(Op::Compute(86));
    }
    ops.push(Op::Fence);
    let narrow = b.run(&ops).0 / 4_000.0;
    // four loads at a time, or dispatch: the load's 2 instructions at 5 per cycle, 86 others at 2
    let expected = (LLC / 4.0).max((2.0 / 5.0 + 86.0 / 2.0) * CYCLE);
    assert!(close(narrow, expected, 0.1), "{narrow:.2} ns, not {expected:.2}");

    let mut b = Bench::new(|c| (c.width, c.compute_ipc) = (64, 64.0));
    b.warm(LLC_LINES);
    let wide = b.run(&ops).0 / 4_000.0;
    assert!(close(wide, LLC / 4.0, 0.08), "{wide:.2} ns, not {:.2}", LLC / 4.0);
}

#[test]
fn the_store_queue_limits_stores_under_way() {
    for (entries, lines) in [(4, 2.0), (16, 8.0)] {
        let mut b = Bench::new(|c| c.store_queue = entries);
        b.warm(LLC_LINES);
        let n = 10_000;
        let (ns, _) = b.run(&[Op::Store { line: b.base, lines: n }, Op::Fence]);
        let expected = LLC / lines;
        let each = ns / f64::from(n);
        assert!(close(each, expected, 0.05), "{entries} entries: {each:.2} ns, not {expected:.2}");
    }
}

/// A core that stalls where a loaded value is first used.
/// Time of an iteration that loads a line (2 instructions at 5 per cycle) and executes `n` instructions (at 2 per
/// cycle), of which all beyond the `rob`th wait for the line, which takes `latency` ns.
fn behind_a_load(n: u32, rob: u32, latency: f64) -> f64 {
    latency + f64::from(n + 2 - rob) / 2.0 * CYCLE
}

/// In a buffer of 64 instructions, 138 of 200 instructions wait for a load that the LLC answers; in one of 16, 26 of 40
/// for a load that the L2 answers. Where the buffer holds misses alone, other code goes on in front of the next load,
/// and no instruction waits for the L2.
#[test]
fn the_reorder_buffer_holds_other_code_and_hits_of_the_l2_where_it_holds_all() {
    for (lines, latency, rob, n) in [(LLC_LINES, LLC, 64, 200), (8_192, L2, 16, 40)] {
        let iteration = |holds: RobHolds| {
            let mut b = Bench::new(|c| (c.rob, c.quirks.rob_holds) = (rob, holds));
            b.warm(lines);
            let ops: Vec<Op> =
                (0..4_000).flat_map(|i| [Op::Load { line: b.base + i, lines: 1 }, Op::Compute(n)]).collect();
            b.run(&ops).0 / 4_000.0
        };
        let (all, misses) = (iteration(RobHolds::All), iteration(RobHolds::Misses));
        let (held, free) = (behind_a_load(n, rob, latency), (f64::from(n) / 2.0 + 2.0 / 5.0) * CYCLE);
        assert!(close(all, held, 0.02), "{lines} lines: {all:.2} ns, not {held:.2}");
        assert!(close(misses, free, 0.02), "{lines} lines: {misses:.2} ns, not {free:.2}");
    }
}

/// A walk over a line has 200 instructions at 2 a cycle, 80 of which need the line's data, and 40 loads beside them, one of
/// which is the walk's own. Of the entries that a ROB of `rob` holds behind the first load's two, five sixths are
/// instructions, and a third needs the data. Independent instructions are executed meanwhile; the dependent ones follow
/// the data, so that none waits only where the independent ones last longer than the latency.
#[test]
fn a_walk_s_instructions_wait_for_the_line_as_far_as_they_need_it() {
    const BODY: Op = Op::WalkBody { instructions: 200, dependent: 80, loads: 40 };
    let slots = |n: f64| n / 2.0 * CYCLE;
    for (lines, latency, rob) in [(LLC_LINES, LLC, 64), (LLC_LINES, LLC, 128), (8_192, L2, 128), (64, L1, 64)] {
        let mut b = Bench::new(|c| (c.rob, c.quirks.rob_holds) = (rob, RobHolds::All));
        b.warm(lines);
        let ops: Vec<Op> =
            (0..4_000).flat_map(|i| [Op::Walk { line: b.base + i % u64::from(lines), loads: 64 }, BODY]).collect();
        let ns = b.run(&ops).0 / 4_000.0;
        let held = f64::from(rob - 2);
        let (all, dependent) = (held * 5.0 / 6.0, held / 3.0);
        let expected = if slots(all - dependent) < latency && lines > 64 {
            latency + slots(dependent) + slots(200.0 - all)
        } else {
            slots(200.0) + 2.0 / 5.0 * CYCLE
        };
        assert!(close(ns, expected, 0.02), "{lines} lines, {rob} entries: {ns:.2} ns, not {expected:.2}");
    }
}

/// A serialising instruction waits for loads, stores and the answer of a doorbell, but for no prefetch; then the
/// pipeline takes 10 cycles, and the instruction a slot. Without the key, and in order, it waits for nothing itself.
#[test]
fn a_serialising_instruction_waits_for_loads_stores_and_answered_doorbells() {
    let takes = |before: fn(LineAddr) -> Op, change: fn(&mut CoreSpec)| {
        let mut b = Bench::new(|c| {
            c.quirks.serialise_cycles = Some(10);
            change(c);
        });
        b.m.cpus[ThreadId(0)].answer_doorbells(Some(Time::ns(150)));
        b.run(&[before(b.base), Op::Serialise]).0
    };
    let drain = (10.0 + 1.0 / 5.0) * CYCLE;
    let load: fn(LineAddr) -> Op = |line| Op::Load { line, lines: 1 };
    let store: fn(LineAddr) -> Op = |line| Op::Store { line, lines: 1 };
    let prefetch: fn(LineAddr) -> Op = |line| Op::Prefetch { line, lines: 1 };
    let doorbell: fn(LineAddr) -> Op = |_| Op::Mmio { tag: 1 };
    let slot = CYCLE / 5.0;
    for (before, waits) in [
        (load, LLC + DRAM),
        (store, LLC + DRAM),
        (prefetch, slot),
        (doorbell, 150.0 + slot),
        (|_| Op::Compute(2), CYCLE),
    ] {
        let ns = takes(before, |_| {});
        assert!(close(ns, waits + drain, 0.05), "{:?}: {ns:.2} ns, not {:.2}", before(LineAddr(0)), waits + drain);
    }
    // The doorbell has left, and is not answered, when the data of a load behind it arrives.
    let mut b = Bench::new(|c| c.quirks.serialise_cycles = Some(10));
    b.m.cpus[ThreadId(0)].answer_doorbells(Some(Time::ns(150)));
    let (ns, _) = b.run(&[doorbell(b.base), load(b.base), Op::Serialise]);
    assert!(close(ns, 150.0 + slot + drain, 0.05), "{ns:.2} ns, not {:.2}", 150.0 + slot + drain);
    let ns = takes(doorbell, |c| c.quirks.serialise_cycles = None);
    assert!(ns < 1.0, "{ns:.2} ns");
    let ns = takes(load, |c| c.pipeline = Pipeline::InOrder);
    assert!(ns < 1.0, "{ns:.2} ns: an in-order core waits where the value is used");
}

/// In order, each of three doorbells takes its answer's 150 ns, without a serialising instruction; out of order, or where doorbells
/// are not answered, none is waited for.
#[test]
fn an_in_order_core_waits_for_the_answer_of_each_doorbell() {
    let takes = |pipeline, answer: Option<Time>| {
        let mut b = Bench::new(|c| c.pipeline = pipeline);
        b.m.cpus[ThreadId(0)].answer_doorbells(answer);
        let ops: Vec<Op> = (0..3).flat_map(|tag| [Op::Mmio { tag }, Op::Compute(2)]).collect();
        b.run(&ops).0
    };
    let answer = Some(Time::ns(150));
    let (waits, ahead) = (takes(Pipeline::InOrder, answer), takes(Pipeline::OutOfOrder, answer));
    let instructions = 3.0 * (2.0 / 2.0 + 1.0 / 5.0) * CYCLE;
    assert!(close(waits, 3.0 * 150.0 + instructions, 0.02), "{waits:.2} ns");
    assert!(ahead < 10.0 && takes(Pipeline::InOrder, None) < 10.0, "{ahead:.2} ns");
}

#[test]
fn a_taken_branch_costs_its_cycles() {
    let mut b = Bench::new(|c| c.quirks.taken_branch_cycles = 4);
    let (ns, _) = b.run(&[Op::Compute(100), Op::TakenBranches(50)]);
    let expected = (100.0 / 2.0 + 50.0 * 4.0) * CYCLE;
    assert!(close(ns, expected, 0.001), "{ns:.2} ns, not {expected:.2}");
}

fn in_order(change: impl FnOnce(&mut CoreSpec)) -> Bench {
    Bench::new(|c| {
        c.pipeline = Pipeline::InOrder;
        change(c);
    })
}

#[test]
fn in_order_a_use_waits_for_its_load_and_out_of_order_it_does_not() {
    let time = |mut b: Bench| {
        b.warm(LLC_LINES);
        let mut ops = Vec::new();
        for i in 0..2_000 {
            ops.push(Op::Load { line: b.base + i, lines: 1 });
            ops.push(Op::Compute(20));
        }
        ops.push(Op::Fence);
        b.run(&ops).0 / 2_000.0
    };
    let (out, inn) = (time(Bench::new(|_| {})), time(in_order(|_| {})));
    // In order: the latency, plus the load's 2 instructions at 5 per cycle and 20 others at 2. Out of order, the 352
    // entries hold 16 such loads, as many as there are line fill buffers.
    let instructions = (2.0 / 5.0 + 20.0 / 2.0) * CYCLE;
    assert!(close(inn, LLC + instructions, 0.05), "{inn:.2} ns, not {:.2}", LLC + instructions);
    assert!(close(out, instructions.max(LLC / 16.0), 0.05), "{out:.2} ns, not {instructions:.2}");
}

#[test]
fn in_order_dependent_misses_do_not_overlap() {
    let mut b = in_order(|_| {});
    b.warm(LLC_LINES);
    let ns = b.chain(LLC_LINES.into());
    assert!(close(ns, LLC, 0.05), "{ns:.2} ns, not {LLC:.2}");
}

#[test]
fn in_order_independent_loads_that_nobody_uses_share_the_line_fill_buffers() {
    for lfb in [2, 8] {
        let mut b = in_order(|c| c.lfb = lfb);
        b.warm(LLC_LINES);
        let (ns, _) = b.run(&[Op::Load { line: b.base, lines: LLC_LINES }, Op::Fence]);
        let (each, expected) = (ns / f64::from(LLC_LINES), LLC / f64::from(lfb));
        assert!(close(each, expected, 0.05), "{lfb}: {each:.3} ns, not {expected:.3}");
    }
}

#[test]
fn in_order_a_hit_holds_the_pipeline_for_its_latency() {
    for (lines, latency) in [(256, L1), (8_192, L2)] {
        let mut b = in_order(|_| {});
        b.warm(lines);
        let (ns, _) = b.run(&[Op::Load { line: b.base, lines }]);
        let each = ns / f64::from(lines);
        assert!(close(each, latency, 0.05), "{each:.3} ns, not {latency:.3}");
    }
}

#[test]
fn in_order_stores_stall_nobody_until_the_store_queue_is_full() {
    // Two lines fit the queue: the time is that of the stores' 4 instructions at 5 per cycle and 1000 others at 2,
    // without the misses.
    let mut b = in_order(|c| c.store_queue = 4);
    b.warm(LLC_LINES);
    let (ns, _) = b.run(&[Op::Store { line: b.base, lines: 2 }, Op::Compute(1_000)]);
    let expected = (4.0 / 5.0 + 1_000.0 / 2.0) * CYCLE;
    assert!(close(ns, expected, 0.01), "{ns:.2} ns, not {expected:.2}");
    // From the third line on, each store waits for an entry: two misses at a time.
    let mut b = in_order(|c| c.store_queue = 4);
    b.warm(LLC_LINES);
    let (ns, _) = b.run(&[Op::Store { line: b.base, lines: 10_000 }, Op::Fence]);
    assert!(close(ns / 10_000.0, LLC / 2.0, 0.05), "{:.2} ns, not {:.2}", ns / 10_000.0, LLC / 2.0);
}

#[test]
fn in_order_a_store_waits_for_the_load_before_it() {
    let mut b = in_order(|_| {});
    b.warm(LLC_LINES);
    let mut ops = Vec::new();
    for i in 0..1_000 {
        ops.push(Op::Copy { from: b.base + i, to: b.base + 20_000 + i, lines: 1, dependent: false, behind: false });
    }
    let (ns, _) = b.run(&ops);
    assert!(close(ns / 1_000.0, LLC, 0.05), "a line copied takes {:.2} ns, a load {LLC:.2}", ns / 1_000.0);
}

#[test]
fn sweeps_and_side_effects_retire_in_order_after_the_loads_before_them() {
    let mut b = Bench::new(|_| {});
    let line = b.base + 100;
    let (_, retired) = b.run(&[
        Op::Load { line, lines: 4 },
        Op::Maintain { line, lines: 4, op: Sweep::Sweep },
        Op::Retire { tag: 1, stores: false },
        Op::Retire { tag: 2, stores: true },
    ]);
    let what: Vec<Retired> = retired.iter().map(|r| r.1).collect();
    let sweep = Retired::Maintain { line, lines: 4, op: Sweep::Sweep };
    assert_eq!(what, [sweep, Retired::Tag(1), Retired::Tag(2)]);
    assert!(retired.is_sorted_by_key(|r| r.0));
    let load = Time::from_ns_f64(LLC + DRAM);
    assert!(retired[0].0 > load, "the sweep left at {}, before the data came", retired[0].0);
}

/// Intel SDM, CLFLUSHOPT and CLWB: ordered with respect to older writes to the cache line. Each stored line is written to DRAM
/// once; stores to other lines hold up nothing.
#[test]
fn a_flush_waits_for_the_stores_to_its_lines_before_it() {
    for (op, left) in [(Sweep::Flush, CopyState::Nowhere), (Sweep::WriteBack, CopyState::Clean)] {
        let mut b = Bench::new(|_| {});
        let (line, far, start) = (b.base + 100, b.base + 5_000, b.now);
        let (_, retired) =
            b.run(&[Op::Store { line, lines: 4 }, Op::Maintain { line, lines: 4, op }, Op::Fence, Op::Compute(1)]);
        assert!((retired[0].0 - start).as_ns() > LLC + DRAM - 1.0, "{op:?} left before the data came");
        assert_eq!(b.m.mem.stats.of(AccessClass::OtherEvct), 4, "{op:?}");
        assert_eq!(b.m.mem.private_copy(CoreId(0), line), left, "{op:?}");
        b.m.mem.check().unwrap();
        let start = b.now;
        let (_, retired) = b.run(&[Op::Store { line: far, lines: 1 }, Op::Maintain { line, lines: 4, op }]);
        assert!((retired[0].0 - start).as_ns() < 2.0, "{op:?} waits for a store to another line");
    }
}

/// Strides as in gem5: the third load of a loop requests eight lines ahead. With one of three MSHRs left, the
/// prefetches are sent one after the other when they may wait; when they may not wait, all but one are lost. A software
/// prefetch is not a load, and does not train the prefetcher.
#[test]
fn prefetches_of_a_stride_wait_for_registers_that_loads_leave() {
    let fetched = |waiting: u32, op: fn(LineAddr) -> Op| {
        let mut b = Bench::new(|core| {
            core.quirks.l2_mshrs = Some(3);
            core.prefetch = Some(PrefetchSpec {
                streams: 64,
                degree: 8,
                credits: 32,
                quirks: PrefetchQuirks {
                    pattern: PrefetchPattern::Stride,
                    waiting,
                    reserve: 2,
                    ..l2_prefetcher().quirks
                },
                ..l2_prefetcher()
            });
        });
        b.run(&[op(b.base), Op::Fence]);
        b.run(&[Op::Compute(1000)]);
        (3..12).map(|l| u8::from(b.m.mem.holds(CoreId(0), b.base + l))).collect::<Vec<_>>()
    };
    let load = |line| Op::Load { line, lines: 3 };
    assert_eq!(fetched(32, load), [1, 1, 1, 1, 1, 1, 1, 1, 0]);
    assert!(fetched(0, load).iter().sum::<u8>() <= 1);
    assert_eq!(fetched(32, |line| Op::Prefetch { line, lines: 3 }), [0; 9]);
}

/// Two loads that hit the L2 make the stream prefetcher fetch the third line with the only MSHR. The load of that line
/// waits for an MSHR, and finds its line when it gets one. No other access is in flight then.
#[test]
fn side_effects_happen_behind_a_load_whose_line_was_prefetched_while_it_waited() {
    let mut b = Bench::new(|core| {
        core.quirks.l2_mshrs = Some(1);
        core.prefetch = Some(PrefetchSpec { degree: 4, trigger: 2, ..l2_prefetcher() });
    });
    // Each of the two lines enters the L2 only, and leaves the L1 and the streams of the prefetcher.
    for i in 0..2 {
        b.run(&[Op::Load { line: b.base + i, lines: 1 }, Op::Fence]);
        b.run(&[Op::Load { line: b.base + 4_096, lines: 2_048 }, Op::Fence]);
    }
    let (_, retired) = b.run(&[Op::Load { line: b.base, lines: 3 }, Op::Retire { tag: 7, stores: false }]);
    assert_eq!(retired.into_iter().map(|r| r.1).collect::<Vec<_>>(), [Retired::Tag(7)]);
}

#[test]
fn a_buffer_s_return_does_not_wait_for_stores_but_a_doorbell_does() {
    let retire = |stores| {
        let mut b = Bench::new(|_| {});
        let start = b.now;
        let (_, r) = b.run(&[Op::Store { line: b.base, lines: 1 }, Op::Retire { tag: 7, stores }]);
        assert_eq!(r.len(), 1);
        (r[0].0 - start).as_ns()
    };
    assert!(retire(true) > LLC + DRAM - 1.0);
    assert!(retire(false) < 2.0);
}

/// Times in ns at which the doorbells of `ops` for the NIC on the chip leave the core, with their tags; the doorbells
/// are at least `gap` apart.
fn leave(gap: Time, ops: impl FnOnce(LineAddr) -> Vec<Op>) -> Vec<(f64, u32)> {
    let mut b = Bench::new(|_| {});
    b.m.cpus[ThreadId(0)].space_doorbells(gap);
    let (ops, start) = (ops(b.base), b.now);
    let (_, retired) = b.run(&ops);
    let tag = |r: Retired| match r {
        Retired::Tag(tag) => tag,
        r => panic!("{r:?}"),
    };
    retired.into_iter().map(|(t, r)| ((t - start).as_ns(), tag(r))).collect()
}

fn doorbell(tag: u32) -> Op {
    Op::Mmio { tag }
}

#[test]
fn a_doorbell_leaves_after_the_stores_before_it_and_one_is_under_way_at_a_time() {
    let left = leave(Time::ns(400), |line| vec![Op::Store { line, lines: 1 }, doorbell(1), doorbell(2), doorbell(3)]);
    assert_eq!(left.iter().map(|l| l.1).collect::<Vec<_>>(), [1, 2, 3]);
    // The store's miss: see a_lone_load_from_dram_...
    let stored = LLC + DRAM;
    assert!(close(left[0].0, stored, 0.05), "{} ns, not {stored}", left[0].0);
    assert_eq!([left[1].0 - left[0].0, left[2].0 - left[1].0].map(|d| d.round()), [400.0, 400.0]);
}

/// Two cores of sim24 that share a region, which starts at the returned line.
fn pair() -> (Machine, LineAddr) {
    pair_with(|_| {})
}

fn pair_with(change: impl FnOnce(&mut CoreSpec)) -> (Machine, LineAddr) {
    let s = scenario(ONE_CORE);
    let mut core = s.platform.core;
    change(&mut core);
    let mut map = AddressMap::default();
    let r = map.add(1 << 14, RegionKind::App, Sharing::Shared, TenantId(0));
    let base = map.get(r).base;
    let clock = Clock::from_hz(core.clock.0);
    let (h, d) = (&s.platform.caches, &s.platform.memory);
    let mem = Memory::new(h, d, clock, 2, vec![(1 << 12) - 1], map).unwrap();
    (Machine::without_devices(mem, vec![Cpu::new(ThreadId(0), &core), Cpu::new(ThreadId(1), &core)]), base)
}

fn requests(m: &Machine) -> u64 {
    m.mem.paths.count.iter().sum()
}

#[test]
fn a_prefetch_to_own_takes_the_line_from_others_and_the_store_finds_it() {
    let (mut m, line) = pair();
    m.mem.access_functional(&mut m.cal, CoreId(1), line, true);
    let ahead = [Op::PrefetchOwn { line, lines: 1 }, Op::Fence];
    let (_, over, _) = execute(&mut m, &ahead, Time::us(1));
    assert_eq!((m.mem.private_copy(CoreId(1), line), requests(&m)), (CopyState::Nowhere, 1));
    assert!(m.mem.owns(CoreId(0), line));
    execute(&mut m, &[Op::Store { line, lines: 1 }, Op::PrefetchOwn { line, lines: 1 }, Op::Fence], over + Time::us(1));
    assert_eq!(requests(&m), 1, "the store needs none, nor does another prefetch");
    assert_eq!(m.mem.private_copy(CoreId(0), line), CopyState::Dirty);
    m.mem.check().unwrap();
}

/// The other line of a pair, next to a stored line, has been read by another core. A prefetch with ownership takes the
/// other line away, and a store to it needs no further request. A prefetch for reading shares the line, and the store
/// asks for ownership. Next to a loaded line, both prefetches read.
#[test]
fn a_pair_behind_a_request_for_ownership_is_owned_where_the_prefetcher_asks_so() {
    let run = |ownership: bool, first: fn(LineAddr) -> Op| {
        let (mut m, line) = pair_with(|core| {
            core.prefetch = Some(PrefetchSpec {
                quirks: PrefetchQuirks {
                    into: Default::default(),
                    adjacent: true,
                    ownership,
                    ..l2_prefetcher().quirks
                },
                ..l2_prefetcher()
            });
        });
        m.mem.access_functional(&mut m.cal, CoreId(1), line + 1, false);
        let (_, over, _) = execute(&mut m, &[first(line), Op::Fence], Time::us(1));
        let (_, over, _) = execute(&mut m, &[Op::Compute(4000)], over + Time::us(1));
        assert_eq!(requests(&m), 2, "the line and its pair");
        let owned = (m.mem.owns(CoreId(0), line + 1), m.mem.private_copy(CoreId(1), line + 1));
        execute(&mut m, &[Op::Store { line: line + 1, lines: 1 }, Op::Fence], over + Time::us(1));
        m.mem.check().unwrap();
        (owned, requests(&m))
    };
    let store = |line| Op::Store { line, lines: 1 };
    let load = |line| Op::Load { line, lines: 1 };
    let shared = ((false, CopyState::Clean), 3);
    assert_eq!(run(true, store), ((true, CopyState::Nowhere), 2));
    assert_eq!([run(false, store), run(true, load), run(false, load)], [shared; 3]);
}

#[test]
fn a_store_that_meets_its_prefetch_to_own_waits_for_it_alone() {
    let (mut m, line) = pair();
    let ops = [Op::PrefetchOwn { line, lines: 1 }, Op::Store { line, lines: 1 }, Op::Fence];
    execute(&mut m, &ops, Time::us(1));
    assert_eq!((requests(&m), m.mem.private_copy(CoreId(0), line)), (1, CopyState::Dirty));
    m.mem.check().unwrap();
}

#[test]
fn a_load_of_a_line_that_is_about_to_be_written_brings_ownership_and_the_store_needs_no_more() {
    let (mut m, line) = pair();
    m.mem.access_functional(&mut m.cal, CoreId(1), line, true);
    let ops = [Op::LoadOwn { line }, Op::Release { line, tag: 7 }, Op::Fence];
    let (_, over, told) = execute(&mut m, &ops, Time::us(1));
    assert_eq!(
        (requests(&m), m.mem.private_copy(CoreId(0), line), m.mem.private_copy(CoreId(1), line)),
        (1, CopyState::Dirty, CopyState::Nowhere)
    );
    assert_eq!(told.len(), 1);
    // A prefetch whose core owns the line is a hit; other cores still have to ask for a line that they share.
    execute(&mut m, &[Op::LoadOwn { line }, Op::Fence], over + Time::us(1));
    assert_eq!(requests(&m), 1);
    m.mem.access_functional(&mut m.cal, CoreId(0), line + 64, false);
    m.mem.access_functional(&mut m.cal, CoreId(1), line + 64, false);
    assert!(!m.mem.owns(CoreId(0), line + 64));
    execute(&mut m, &[Op::LoadOwn { line: line + 64 }, Op::Fence], over + Time::us(2));
    assert!(m.mem.owns(CoreId(0), line + 64) && requests(&m) == 2);
    m.mem.check().unwrap();
}

/// Forward progress: a store without earlier accesses is done with the line that it has fetched before another core
/// gets the line, whenever that core asks. The store then needs one request, and the other core one.
#[test]
fn a_store_whose_turn_it_is_is_done_before_its_line_goes_to_who_polls_it() {
    let alone =
        [|line| vec![Op::Release { line, tag: 7 }], |line| vec![Op::LoadOwn { line }, Op::Release { line, tag: 7 }]];
    let d = DramSpec { quirks: DramQuirks { refresh: false, ..DramSpec::default().quirks }, ..DramSpec::default() };
    let spec = scenario(ONE_CORE).platform.core;
    for (nodes, far) in [(NodesSpec::default(), false), (two_nodes(), false), (two_nodes(), true)] {
        let last = nodes.count as u8 - 1;
        for ops in alone {
            for (modified, op) in
                [true, false].into_iter().flat_map(|m| [memory::TxnOp::Read, memory::TxnOp::Own].map(|o| (m, o)))
            {
                for off in (0..100).map(|i| Time::ns(3 * i)) {
                    let mut r = Rig::with_nodes(&small(), 0b1111, &d, &nodes, vec![0, last, last]);
                    r.m.cpus.push(Cpu::new(ThreadId(0), &spec));
                    let line = if far { r.far } else { r.shared } + 5;
                    if modified {
                        r.m.mem.access_functional(&mut r.m.cal, CoreId(2), line, true);
                    }
                    let start = Time::us(1);
                    let poll = Txn::new(op, line, CoreId(1), start + off);
                    r.m.mem.send(&mut r.m.cal, start + off, poll);
                    r.m.cpus[ThreadId(0)].program.ops = ops(line);
                    r.m.now = start;
                    r.m.start(ThreadId(0));
                    while let Some(s) = r.m.next_signal() {
                        match s {
                            MachineSignal::Answer(id) => r.fill(id, None),
                            MachineSignal::Retired(core) => while r.m.retired(core).is_some() {},
                            _ => {}
                        }
                    }
                    let case = format!("{last} {far}, modified {modified}, {op:?} after {off}");
                    assert_eq!(requests(&r.m), 2, "{case}");
                    r.m.mem.coherent(line).unwrap();
                    r.m.mem.check().unwrap();
                }
            }
        }
    }
}

#[test]
fn an_atomic_waits_for_what_is_before_it_and_holds_up_what_follows() {
    let took = |first: fn(LineAddr) -> Op| {
        let (mut m, line) = pair();
        let ops =
            [Op::Load { line: line + 64, lines: 1 }, first(line), Op::Load { line: line + 128, lines: 1 }, Op::Fence];
        let start = Time::us(1);
        let (end, ..) = execute(&mut m, &ops, start);
        m.mem.check().unwrap();
        assert_eq!((requests(&m), m.mem.private_copy(CoreId(0), line)), (3, CopyState::Dirty));
        (end - start).as_ns()
    };
    let (store, atomic) = (took(|line| Op::Store { line, lines: 1 }), took(|line| Op::Atomic { line }));
    // Three misses overlap, or follow one after the other. Pages are closed after each access.
    let miss = LLC + DRAM;
    let chain = 3.0 * miss;
    assert!(close(store, miss, 0.2), "{store} ns for three stores and loads, not {miss}");
    assert!(close(atomic, chain, 0.02), "{atomic} ns with an atomic, not {chain}");
}

#[test]
fn a_non_temporal_store_writes_memory_and_reads_nothing() {
    let (mut m, line) = pair();
    m.mem.access_functional(&mut m.cal, CoreId(1), line, true);
    m.mem.restart_meters(Time::ZERO);
    execute(&mut m, &[Op::StoreStream { line, lines: 20 }, Op::Fence], Time::us(1));
    assert_eq!((requests(&m), m.mem.stats.ledger.bypassed, m.mem.copies(line).0), (20, 20, 0));
    assert_eq!(m.mem.stats.dram.iter().sum::<u64>(), 20, "writes alone");
    m.mem.check().unwrap();
}

/// A buffer that is in use and that no access holds.
#[test]
fn a_lost_line_fill_buffer_or_register_does_not_go_unnoticed() {
    let books = |lose: fn(&mut Cpu)| {
        let mut b = Bench::new(|core| core.quirks.l2_mshrs = Some(4));
        b.run(&[Op::Load { line: b.base, lines: 64 }, Op::Fence]);
        lose(&mut b.m.cpus[ThreadId(0)]);
        b.m.cpus[ThreadId(0)].check(&b.m.mem)
    };
    assert_eq!(books(|_| ()), Ok(()));
    let e = books(|c| assert!(c.lfb.take(Time::us(1)))).expect_err("a buffer is lost");
    assert_eq!(e, "core 0 has 1 line fill buffers out for 0 misses and 0 victims");
    let e = books(|c| c.mshrs.as_mut().expect("registers").force(Time::us(1))).expect_err("a register is lost");
    assert_eq!(e, "core 0 has 1 registers of its L2 out for 0 misses");
}
