//! Runs a scenario at several rates, and prints what the forwarder carries and how long a packet takes.

use std::error::Error;
use std::path::Path;

const SCENARIO: &str = r#"
name = "forwarder"
platform = "skylake"
placement = { policy = "ddio", ways = 2 }

[[tenant]]
name = "forwarder"
cores = 1
stack = "poll_mode"
app = { kind = "testpmd", mode = "macswap" }

[[peripheral]]
kind = "ethernet"

[traffic]
arrivals = "poisson"
rate = "RATE"
packet = "1514 B"

[run]
load = "fixed"
requests = 2_000
warmup_requests = 1_000
"#;

fn main() -> Result<(), Box<dyn Error>> {
    let platforms = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../platforms");
    println!("{:>8} {:>14} {:>10} {:>10}", "offered", "carried, Gb/s", "p50, us", "p99, us");
    for rate in ["5 Gbps", "10 Gbps", "20 Gbps"] {
        let text = SCENARIO.replace("RATE", rate);
        let scenario = hostnet::config::resolve(&text, "forwarder.toml", &[platforms.clone()])?;
        let outcome = hostnet::host::run(&scenario, &mut |_fraction| Ok(()))?;
        let metric = |name| outcome.values.named(name).unwrap_or(f64::NAN);
        let (carried, p50, p99) = (metric("net_gbps"), metric("lat_p50_us"), metric("lat_p99_us"));
        println!("{rate:>8} {carried:>14.2} {p50:>10.3} {p99:>10.3}");
    }
    Ok(())
}
