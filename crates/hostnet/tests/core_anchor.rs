//! Tests of anchored accesses, whose address comes from the data of another access, and of the requests that such
//! accesses share.

use crate::common::bench::{Bench, LLC_LINES};
use crate::common::close;
use hostnet::core::Op;
use hostnet::machine::Machine;

/// sim24: 3.2 GHz; look-ups of 4, 14 and 35 cycles, 4 of crossbar each way.
const CYCLE: f64 = 0.3125;
const LLC: f64 = (4.0 + 14.0 + 4.0 + 35.0 + 4.0) * CYCLE;

fn requests(m: &Machine) -> u64 {
    m.mem.paths.count.iter().sum()
}

/// Hits of the L1 and of the L2.
const HITS: [(u32, f64); 2] = [(64, 4.0 * CYCLE), (8192, (4.0 + 14.0) * CYCLE)];

/// A chain of loads that hit takes the latency of each, also in a program that nothing waits for: loads whose address comes late
/// fill the reorder buffer, and dispatch is ahead of them by no more than the buffer holds.
#[test]
fn a_chain_of_hits_takes_the_latency_of_each() {
    for (lines, hit) in HITS {
        let mut b = Bench::new(|_| {});
        b.warm(lines);
        let base = b.base;
        let hops =
            |n: u32| (0..n).map(|i| Op::Chase { line: base + u64::from(i % lines), delay: 0 }).collect::<Vec<_>>();
        let (few, many) = (b.run(&hops(4_000)).0, b.run(&hops(12_000)).0);
        assert!(close(many - few, 8_000.0 * hit, 0.02), "{:.2} ns a hop, and a hit {hit:.2}", (many - few) / 8_000.0);
        let waits = b.run(&[hops(4_000), vec![Op::Fence]].concat()).0;
        assert!(close(waits, 4_000.0 * hit, 0.02), "{waits:.0} ns with a fence behind 4000 hops");
    }
}

/// A side effect behind a chain of ten hits, which fits the reorder buffer, takes place when the last of them has its data;
/// dispatch ends long before.
#[test]
fn a_side_effect_waits_for_the_hits_before_it() {
    for (lines, hit) in HITS {
        let mut b = Bench::new(|_| {});
        b.warm(lines);
        let start = b.now;
        let mut ops: Vec<Op> = (0..10).map(|i| Op::Chase { line: b.base + i, delay: 0 }).collect();
        ops.push(Op::Retire { tag: 7, stores: false });
        let (dispatched, retired) = b.run(&ops);
        let after = (retired[0].0 - start).as_ns();
        assert!(close(after, 10.0 * hit, 0.03), "{after:.1} ns behind ten hits of {hit:.2}");
        assert!(dispatched < 0.5 * after, "dispatched after {dispatched:.1} of {after:.1} ns");
    }
}

/// Prefetches behind an anchored load wait for line fill buffers, as Intel's event L1D_PEND_MISS.FB_FULL counts. With
/// two buffers, six lines of the LLC arrive two at a time, and loads of these lines request none again.
#[test]
fn prefetches_wait_for_line_fill_buffers_and_loads_join_them() {
    let mut b = Bench::new(|core| core.lfb = 2);
    b.warm(LLC_LINES);
    let lines = || (0..6).map(|i| 100 + 64 * i);
    for known in [true, false] {
        b.warm(LLC_LINES);
        // The address is known before the prefetches, or comes from the LLC.
        let mut ops = vec![Op::Anchor { line: b.base }];
        ops.extend(known.then_some(Op::Await));
        ops.extend(lines().map(|i| Op::DependentPrefetch { line: b.base + i }));
        let before = requests(&b.m);
        let alone = b.run(&[&ops[..], &[Op::Fence]].concat()).0;
        assert!(
            close(alone, 4.0 * LLC, 0.05),
            "known {known}: {alone:.1} ns, and three pairs behind a line {:.1}",
            4.0 * LLC
        );
        assert_eq!(requests(&b.m) - before, 7, "known {known}");
        b.warm(LLC_LINES);
        ops.extend(lines().map(|i| Op::DependentLoad { line: b.base + i, lines: 1 }));
        ops.push(Op::Fence);
        let before = requests(&b.m);
        let loaded = b.run(&ops).0;
        assert!(close(loaded, 4.0 * LLC, 0.08), "known {known}: {loaded:.1} ns with loads");
        assert_eq!(requests(&b.m) - before, 7, "known {known}: a load asked again");
    }
}

/// A copy whose source address comes from an anchored load begins behind that load; a copy from a known address
/// overlaps with the load.
#[test]
fn a_copy_behind_an_anchor_waits_for_its_data() {
    let takes = |behind: bool| {
        let mut b = Bench::new(|_| {});
        b.warm(LLC_LINES);
        let copy = Op::Copy { from: b.base + 640, to: b.base + 10_000, lines: 1, dependent: behind, behind };
        b.run(&[Op::Anchor { line: b.base }, copy, Op::Fence]).0
    };
    assert!(close(takes(false), LLC, 0.05), "known: {:.1} ns", takes(false));
    assert!(close(takes(true), 2.0 * LLC, 0.05), "from the anchor: {:.1} ns", takes(true));
}

/// A load whose address is 40 cycles old, and which finds its line in flight, has its data when the line arrives: the
/// load's own delay has passed in the meantime.
#[test]
fn a_late_load_that_joins_a_request_waits_for_the_line_alone() {
    let mut b = Bench::new(|_| {});
    b.warm(LLC_LINES);
    let line = b.base + 640;
    let ops = [Op::Anchor { line: b.base }, Op::DependentPrefetch { line }, Op::Chase { line, delay: 40 }, Op::Fence];
    let ns = b.run(&ops).0;
    assert!(close(ns, 2.0 * LLC, 0.05), "{ns:.1} ns, and two look-ups {:.1}", 2.0 * LLC);
}
