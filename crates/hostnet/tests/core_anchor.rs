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
