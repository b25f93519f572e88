//! CPU time per DRAM request at saturation, as a median of several runs. Run with
//! `cargo bench -p hostnet --bench dram [FILTER]`.

mod common;

#[path = "../examples/dram_ladder/replay.rs"]
#[allow(dead_code, reason = "each program that shares this file uses a part of it")]
mod replay;

use common::{cpu_seconds, filter, median};
use hostnet::memory::dram::standards::{DeviceWidth, Standard};
use hostnet::memory::dram::DramSpec;
use replay::Offer;

fn main() {
    let filter = filter();
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
        let seconds = median(7, || {
            let t = cpu_seconds();
            replay::replay(&spec, &requests, Offer::PerClock).expect("a valid spec");
            cpu_seconds() - t
        });
        let ns = seconds * 1e9 / requests.len() as f64;
        println!("{name:<34} {ns:>12.1} {:>12.2}", 1e3 / ns);
    }
}
