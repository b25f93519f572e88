//! Simulates the rows of `validation/hierarchy/gem5_hierarchy.csv` and prints reference values, measured values and
//! deviations: `hierarchy_ladder [FILTER]`.

#[allow(dead_code, reason = "each program that shares this file uses a part of it")]
mod drive;

use std::time::Instant;

fn main() -> Result<(), String> {
    let filter = std::env::args().nth(1).unwrap_or_default();
    println!(
        "{:<44} {:>22} {:>24} {:>15} {:>15} {:>30} {:>6}",
        "row", "GB/s", "latency ns", "DRAM read", "DRAM write", "hits L1 L2 L3", "Mreq/s"
    );
    for row in drive::rows() {
        let name = row.name();
        if !name.contains(&filter) {
            continue;
        }
        let start = Instant::now();
        let m = drive::run(&row)?;
        let wall = start.elapsed().as_secs_f64();
        let e = &row.expected;
        let off = |a: f64, b: f64| 100.0 * (a / b - 1.0);
        let hits = m.levels.iter().zip(e.levels).map(|(m, e)| format!("{}:{}", m.0, e.0));
        println!(
            "{name:<44} {:>7.2} {:>7.2} {:>+6.1} {:>8.1} {:>8.1} {:>+6.1} {:>7.2} {:>7.2} {:>7.2} {:>7.2} {:>30} {:>6.2}",
            e.gbps, m.gbps, off(m.gbps, e.gbps),
            e.latency_ns, m.latency_ns, off(m.latency_ns, e.latency_ns),
            e.dram_read_gbps, m.dram_read_gbps, e.dram_write_gbps, m.dram_write_gbps,
            hits.collect::<Vec<_>>().join(" "),
            row.requests as f64 / wall / 1e6,
        );
    }
    Ok(())
}
