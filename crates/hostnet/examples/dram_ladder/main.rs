//! Replays the reference traces in the configurations of other DRAM simulators and prints reference values, measured
//! values and deviations: `dram_ladder [FILTER]`.

mod replay;

use std::time::Instant;

fn main() -> Result<(), String> {
    let filter = std::env::args().nth(1).unwrap_or_default();
    println!(
        "{:<12} {:<12} {:<10} {:>2} {:<12} {:>16} {:>7} {:>14} {:>7} {:>16} {:>6} {:>8}",
        "simulator", "mapping", "standard", "ch", "trace", "GB/s", "%", "latency ns", "%", "row hits", "pt", "Mreq/s"
    );
    for r in replay::references() {
        let name: String = r.simulator.split(' ').next().unwrap_or("").into();
        if !format!("{name} {} {} {} {}", r.mapping, r.standard, r.channels, r.trace).contains(&filter) {
            continue;
        }
        let requests = replay::trace(&r.trace, 1 << 20).ok_or("unknown trace")?;
        let (spec, offer) = replay::profile(&r);
        let t = Instant::now();
        let m = replay::replay(&spec, &requests, offer)?;
        let wall = t.elapsed().as_secs_f64();
        let total = requests.len() as f64;
        println!(
            "{:<12} {:<12} {:<10} {:>2} {:<12} {:>8.2}{:>8.2} {:>+7.1} {:>7.1}{:>7.1} {:>+7.1} {:>8}{:>8} {:>+6.1} {:>8.2}",
            name, r.mapping, r.standard, r.channels, r.trace,
            r.gbps, m.gbps, 100.0 * (m.gbps / r.gbps - 1.0),
            r.latency_ns, m.latency_ns, 100.0 * (m.latency_ns / r.latency_ns - 1.0),
            r.row_hits, m.row_hits, 100.0 * (m.row_hits as f64 - r.row_hits) / total,
            total / wall / 1e6,
        );
    }
    Ok(())
}
