//! CPU time per DRAM request at saturation, as a median of several runs.
//! `cargo bench -p hostnet --bench dram [FILTER]`.

use std::sync::LazyLock;
use std::time::Instant;

#[path = "../examples/dram_ladder/replay.rs"]
#[allow(dead_code)]
mod replay;

use hostnet::memory::dram::standards::{DeviceWidth, Standard};
use hostnet::memory::dram::DramSpec;
use replay::Offer;

/// CPU seconds of this process where Linux tells, else elapsed seconds.
fn cpu_seconds() -> f64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let ns = std::fs::read_to_string("/proc/self/schedstat").ok();
    let ns = ns.and_then(|s| s.split(' ').next().and_then(|f| f.parse::<f64>().ok()));
    ns.map_or_else(|| START.elapsed().as_secs_f64(), |ns| ns / 1e9)
}

fn main() {
    let filter = std::env::args().skip(1).find(|a| !a.starts_with('-')).unwrap_or_default();
    let base = |channels| DramSpec { standard: Standard::Ddr4_2400, channels, ..DramSpec::default() };
    let sweeper = DramSpec {
        standard: Standard::Ddr4_3200,
        device_width: DeviceWidth::X16,
        ranks: 4,
        channels: 4,
        ..DramSpec::default()
    };
    println!("{:<34} {:>12} {:>12}", "case", "ns/request", "Mrequest/s");
    for (name, spec, trace) in [
        ("random reads, 1 channel", base(1), "b_rand_rd"),
        ("random reads, 4 channels", base(4), "b_rand_rd"),
        ("random reads, 4 ch x 4 ranks x16", sweeper, "b_rand_rd"),
        ("sequential reads, 1 channel", base(1), "a_seq_rd"),
        ("random reads and writes, 1 channel", base(1), "d_rand_rw"),
    ] {
        if !name.contains(&filter) {
            continue;
        }
        let requests = replay::trace(trace, 1 << 18).expect("a known trace");
        let mut runs: Vec<f64> = (0..7)
            .map(|_| {
                let t = cpu_seconds();
                replay::replay(&spec, &requests, Offer::PerClock).expect("a valid spec");
                cpu_seconds() - t
            })
            .collect();
        runs.sort_by(f64::total_cmp);
        let ns = runs[runs.len() / 2] * 1e9 / requests.len() as f64;
        println!("{name:<34} {ns:>12.1} {:>12.2}", 1e3 / ns);
    }
}
