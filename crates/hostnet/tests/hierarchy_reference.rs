//! Compares caches and DRAM together with gem5's measurements with the same generator
//! (`validation/hierarchy/gem5_hierarchy.csv`).

#[path = "../examples/hierarchy_ladder/drive.rs"]
#[allow(dead_code, reason = "each program that shares this file uses a part of it")]
pub mod drive;

use drive::{run, Figures, Row};

const BANDWIDTH: f64 = 0.05;
const LATENCY: f64 = 0.10;
/// Hits and misses, in fractions of the requests.
const HITS: f64 = 0.02;

/// Rows that deviate, by the names that `Row::name` gives; `validation/DEVIATIONS.md` gives the reasons.
const KNOWN: &[&str] = &[
    "caches linear ch1 16KiB mshr256 r100 p333",
    "caches linear ch1 1048576KiB mshr256 r50 p1666",
    "caches linear ch4 1048576KiB mshr16 r100 p416",
    "caches linear ch4 1048576KiB mshr256 r50 p416",
    "caches random ch1 1048576KiB mshr256 r50 p1666",
    "caches random ch4 1048576KiB mshr256 r50 p416",
];

fn within(measured: f64, expected: f64, tolerance: f64) -> bool {
    (measured - expected).abs() <= tolerance * expected
}

fn counts_agree(row: &Row, m: &Figures) -> bool {
    let n = row.requests as f64;
    m.levels.iter().zip(row.expected.levels).all(|(m, e)| {
        let near = |a: u64, b: u64| (a as f64 - b as f64).abs() <= HITS * n;
        e == (0, 0) || (near(m.0, e.0) && near(m.1, e.1))
    })
}

fn compare(select: impl Fn(&Row) -> bool) {
    let rows: Vec<Row> = drive::rows().into_iter().filter(|r| select(r)).collect();
    assert!(!rows.is_empty());
    let mut wrong = Vec::new();
    for row in rows {
        let (m, e) = (run(&row).expect("a valid configuration"), &row.expected);
        if !counts_agree(&row, &m) {
            wrong.push(format!("{}: hits and misses {:?}, not {:?}", row.name(), m.levels, e.levels));
        }
        let agrees = within(m.gbps, e.gbps, BANDWIDTH)
            && within(m.dram_read_gbps, e.dram_read_gbps, BANDWIDTH)
            && within(m.dram_write_gbps, e.dram_write_gbps, BANDWIDTH)
            && within(m.latency_ns, e.latency_ns, LATENCY);
        let listed = KNOWN.contains(&row.name().as_str());
        if agrees == listed {
            let why = if listed { "listed as a known deviation, but agrees" } else { "deviates" };
            wrong.push(format!("{} {why}: {m:.2?}, not {e:.2?}", row.name()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn unloaded(r: &Row) -> bool {
    r.period_ps == 200_000
}

#[test]
fn unloaded_latencies_agree_with_gem5_within_5_percent() {
    let rows: Vec<Row> = drive::rows().into_iter().filter(unloaded).collect();
    assert_eq!(rows.len(), 8);
    for row in rows {
        let m = run(&row).expect("a valid configuration");
        let e = row.expected.latency_ns;
        assert!(within(m.latency_ns, e, 0.05), "{}: {:.1} ns, not {e}", row.name(), m.latency_ns);
    }
}

#[test]
fn unloaded_latency_through_the_caches_is_the_sum_of_the_parts() {
    // DRAM alone, 4 + 10 + 30 cycles of look-ups and 2 x 5 cycles of crossbar at 3 GHz
    let latency = |caches: bool| {
        let rows = drive::rows();
        let row = rows.iter().find(|r| r.caches == caches && unloaded(r) && !r.random);
        run(row.expect("such a row")).expect("a valid configuration").latency_ns
    };
    let parts = latency(false) + 54.0 / 3.0;
    let whole = latency(true);
    assert!((whole - parts).abs() < 0.05 * parts, "{whole:.1} ns, not {parts:.1}");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn linear_rows_agree_with_gem5() {
    compare(|r| r.caches && !r.random && !unloaded(r));
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn random_rows_on_one_channel_agree_with_gem5() {
    compare(|r| r.caches && r.random && r.channels == 1 && !unloaded(r));
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn random_rows_on_four_channels_agree_with_gem5() {
    compare(|r| r.caches && r.random && r.channels == 4 && !unloaded(r));
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn rows_without_caches_agree_with_gem5() {
    compare(|r| !r.caches);
}
