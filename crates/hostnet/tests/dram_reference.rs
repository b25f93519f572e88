//! Compares the memory model with measurements of Ramulator 2.1, DRAMsim3 and gem5 on the same traces and
//! configurations (`validation/dram/dram.csv`).

use crate::hierarchy_reference::drive::replay::{self, profile, references, trace, Measured, Offer, Reference};
use hostnet::kernel::{LineAddr, NodeId, Time, TxnId};
use hostnet::memory::dram::standards::Standard;
use hostnet::memory::dram::{DramController, DramQuirks, DramRequest, DramSpec};

/// Relative tolerance of the bandwidth and of the mean read latency; the tolerance of row hits is in fractions of the
/// requests.
const BANDWIDTH: f64 = 0.05;
const LATENCY: f64 = 0.10;
const HITS: f64 = 0.02;

fn deviations(r: &Reference) -> (f64, f64, f64) {
    // A quarter of the recorded length, so that all rows take seconds.
    let requests = trace(&r.trace, 1 << 18).expect("a known trace");
    let (spec, offer) = profile(r);
    let m: Measured = replay::replay(&spec, &requests, offer).expect("a valid spec");
    let hits = m.row_hits as f64 / requests.len() as f64 - r.row_hits / f64::from(1 << 20);
    (m.gbps / r.gbps - 1.0, m.latency_ns / r.latency_ns - 1.0, hits)
}

/// Compares every row of `simulator`; the known deviations must still deviate.
fn compare(simulator: &str, known: &[(u32, &str)]) {
    let mut wrong = Vec::new();
    let rows: Vec<_> = references().into_iter().filter(|r| r.simulator.starts_with(simulator)).collect();
    assert!(rows.len() >= 12, "{} rows of {simulator}", rows.len());
    for r in rows {
        let (bandwidth, latency, hits) = deviations(&r);
        let agrees = bandwidth.abs() <= BANDWIDTH && latency.abs() <= LATENCY && hits.abs() <= HITS;
        let listed = known.contains(&(r.channels, r.trace.as_str()));
        if agrees == listed {
            wrong.push(format!(
                "{} {} x{} {}: bandwidth {:+.1} %, latency {:+.1} %, row hits {:+.1} points, {}",
                r.mapping,
                r.standard,
                r.channels,
                r.trace,
                100.0 * bandwidth,
                100.0 * latency,
                100.0 * hits,
                if listed { "but listed as a known deviation" } else { "beyond tolerance" },
            ));
        }
    }
    assert!(wrong.is_empty(), "{simulator}:\n{}", wrong.join("\n"));
}

#[test]
fn agrees_with_ramulator() {
    compare("ramulator", &[]);
}

#[test]
fn agrees_with_dramsim3() {
    compare("dramsim3", &[]);
}

#[test]
fn agrees_with_gem5() {
    // validation/DEVIATIONS.md, D1.
    compare("gem5", &[(4, "e_8str")]);
}

fn quiet(channels: u32) -> DramSpec {
    DramSpec {
        standard: Standard::Ddr4_2400,
        channels,
        quirks: DramQuirks { refresh: false, age_cap_ns: 0, ..DramSpec::default().quirks },
        ..DramSpec::default()
    }
}

#[test]
fn sequential_reads_of_one_row_are_bound_by_tccd_l() {
    // All requests in one bank group: one line per 6 clocks of 0.833 ns.
    let lines: Vec<(u64, bool)> = (0..100_000).map(|i| (i % 128, false)).collect();
    let m = replay::replay(&quiet(1), &lines, Offer::PerClock).unwrap();
    let bound = 64.0 / (6.0 * 0.833);
    assert!((m.gbps / bound - 1.0).abs() < 0.002, "{} against {bound}", m.gbps);
}

#[test]
fn interleaved_bank_groups_fill_the_bus() {
    let spec = DramSpec { mapping: "rorabacobgch".into(), ..quiet(1) };
    let lines: Vec<(u64, bool)> = (0..100_000).map(|i| (i % 512, false)).collect();
    let m = replay::replay(&spec, &lines, Offer::PerClock).unwrap();
    let peak = 64.0 / (4.0 * 0.833);
    assert!((m.gbps / peak - 1.0).abs() < 0.002, "{} against {peak}", m.gbps);
}

#[test]
fn row_misses_over_all_banks_are_bound_by_tfaw() {
    // Every access needs another row, bank after bank and group after group.
    let spec = DramSpec { mapping: "rocorababgch".into(), ..quiet(1) };
    let lines: Vec<(u64, bool)> = (0..100_000u64).map(|i| (i % 16 + (i / 16) * 16 * 128, false)).collect();
    let m = replay::replay(&spec, &lines, Offer::PerClock).unwrap();
    let bound = 4.0 * 64.0 / (26.0 * 0.833);
    assert!(m.gbps <= bound && m.gbps > 0.99 * bound, "{} against {bound}", m.gbps);
}

#[test]
fn refresh_costs_trfc_of_every_trefi_and_little_more() {
    let spec = |refresh| DramSpec {
        mapping: "rorabacobgch".into(),
        quirks: DramQuirks { refresh, ..quiet(1).quirks },
        ..quiet(1)
    };
    let lines: Vec<(u64, bool)> = (0..400_000).map(|i| (i % 512, false)).collect();
    let time = |refresh| replay::replay(&spec(refresh), &lines, Offer::PerClock).unwrap().sim_ns;
    let loss = 1.0 - time(false) / time(true);
    let (refi, rfc) = (9364.0, 421.0);
    // In addition to tRFC: closing the rows (tRTP + tRP) and opening the first row again (tRCD).
    assert!(loss > rfc / refi && loss < (rfc + 9.0 + 17.0 + 17.0 + 30.0) / refi, "{loss}");
}

#[test]
fn three_channels_give_three_times_the_bandwidth_of_one() {
    let lines = trace("b_rand_rd", 1 << 17).unwrap();
    let gbps = |channels| {
        let spec = DramSpec { rpq: 64, ..quiet(channels) };
        replay::replay(&spec, &lines, Offer::PerClock).unwrap().gbps
    };
    let (one, three) = (gbps(1), gbps(3));
    assert!(three > 2.9 * one && three < 3.0 * one * 1.001, "{one} and {three}");
}

/// Reads so far apart that none meets another, as in `gem5_hierarchy.csv`.
#[test]
fn unloaded_latency_agrees_with_gem5() {
    for (pattern, channels, expected) in
        [("linear", 1, 51.3), ("linear", 4, 51.2), ("random", 1, 73.0), ("random", 4, 67.6)]
    {
        let r = Reference {
            simulator: "gem5".into(),
            mapping: "RoRaBaCoCh".into(),
            standard: "DDR4-2400".into(),
            channels,
            trace: if pattern == "linear" { "a_seq_rd".into() } else { "b_rand_rd".into() },
            gbps: 0.32,
            latency_ns: expected,
            row_hits: 0.0,
        };
        let (spec, _) = profile(&r);
        let lines = trace(&r.trace, 20_000).unwrap();
        // The period is not 200 ns, of which tREFI is a multiple: gem5's requests met refresh in all phases.
        let m = replay::replay(&spec, &lines, Offer::Every(200_401)).unwrap();
        let off = m.latency_ns / expected - 1.0;
        assert!(off.abs() < 0.03, "{pattern} x{channels}: {} against {expected}", m.latency_ns);
    }
}

#[test]
fn a_copy_of_a_warm_controller_goes_on_alike() {
    let mut a = DramController::new(&quiet(1).plan().unwrap());
    let mut done = Vec::new();
    let lines = trace("d_rand_rw", 1000).unwrap();
    let feed = |c: &mut DramController, from: usize, done: &mut Vec<_>| {
        for (i, &(line, write)) in lines.iter().enumerate().skip(from).take(500) {
            let now = Time::ns(40 * i as u64);
            let (ch, place) = c.route(NodeId(0), LineAddr(line));
            c.advance(now, ch, done);
            assert!(c.can_accept(ch, write));
            c.push(
                now,
                ch,
                DramRequest { token: Some(TxnId::new(i)), line: LineAddr(line), write, class: 0 },
                place,
                done,
            );
        }
    };
    feed(&mut a, 0, &mut done);
    let mut b = a.clone();
    let (mut da, mut db) = (Vec::new(), Vec::new());
    feed(&mut a, 500, &mut da);
    feed(&mut b, 500, &mut db);
    assert!(da.len() > 100);
    assert_eq!(da, db);
}
