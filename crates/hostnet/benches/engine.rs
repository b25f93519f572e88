//! Simulated requests (or lines) per CPU second, of whole hosts and of caches with DRAM, as medians of several runs.
//! Building and warm-up are not timed. Run with `cargo bench -p hostnet --bench engine [FILTER]`.

mod common;
#[path = "../examples/hierarchy_ladder/drive.rs"]
#[allow(dead_code, reason = "each program that shares this file uses a part of it")]
mod drive;

use common::{cpu_seconds, filter, median};
use hostnet_recording::{About, Access, AccessKind, Boundary, Counts, Packet, Place, Recording, Sources, Step, Thread};
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::time::Instant;

const RUNS: usize = 5;

const MICA: &str = r#"
name = "mica"
platform = "sim24"
placement = { policy = "ddio", ways = 2 }
rings = { rx_buffers = 1024, buffer_size = "1 KiB" }
traffic = { arrivals = "fixed", rate = "24 Mrps" }
run = { load = "fixed", requests = 60000, warmup_requests = 60000 }
[[tenant]]
name = "kvs"
cores = 24
app = { kind = "mica", item_size = "1 KiB", get_fraction = 0.05, pairs = 2400000, buckets = 1000000, log_size = "256 MiB", zipf = 0.99, update = "in_place" }
"#;

const TOUCHDROP: &str = r#"
name = "touchdrop"
platform = "sim24"
placement = { policy = "ddio", ways = 2 }
rings = { rx_buffers = 1024, buffer_size = "2 KiB" }
traffic = { arrivals = "fixed", rate = "14 Mpps", packet = "1514 B" }
run = { load = "fixed", requests = 120000, warmup_requests = 40000 }
[[tenant]]
name = "drop"
cores = 2
app = { kind = "touchdrop" }
"#;

const TESTPMD: &str = r#"
name = "testpmd"
platform = "gem5"
placement = { policy = "ddio", ways = 4 }
peripheral = [{ kind = "ethernet" }]
traffic = { arrivals = "fixed", rate = "6 Mpps", packet = "64 B", flows = 1 }
run = { load = "fixed", requests = 300000, warmup_requests = 4000 }
[[tenant]]
name = "testpmd"
cores = 1
stack = "poll_mode"
app = { kind = "testpmd", mode = "macswap" }
"#;

/// Writes to `file` a recording with TestPMD's accesses, which should replay in at most twice TestPMD's time.
fn record_testpmd(file: &Path) {
    let counts = |instructions| Counts { instructions, ..Counts::default() };
    let step = |kind| Step {
        before: counts(4),
        branches_from: Sources::default(),
        access: Access { kind, place: Place::Frame(0), bytes: 8, address_from: Sources::default() },
    };
    let text = String::new;
    let (program, version, date, machine, recorder) = (text(), text(), text(), text(), text());
    let about = About { program, version, command: Vec::new(), date, machine, recorder, boundary: Boundary::Dpdk };
    let steps = [step(AccessKind::Load), step(AccessKind::Store)].into();
    let (received, outcome, rest) = (64, hostnet_recording::Outcome::Forwarded(64), counts(20));
    let packets = vec![Packet { thread: 0, burst: 0, received, outcome, steps, rest }];
    let threads = vec![Thread { name: text() }];
    Recording { about, threads, pages: Vec::new(), packets }.write(file).expect("a directory for temporary files");
}

/// Returns the CPU seconds of the measured part, its simulated requests, the events per request, and the simulated
/// seconds.
fn host(text: &str) -> (f64, f64, f64, f64) {
    let platforms = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../platforms");
    let spec = hostnet::config::resolve(text, "bench.toml", &[platforms]).expect("a valid scenario");
    // Progress is 0.5 when the warm-up ends.
    let mut start = 0.0;
    let o = hostnet::host::run(&spec, &mut |done| {
        if done <= 0.5 {
            start = cpu_seconds();
        }
        Ok(())
    })
    .expect("a run");
    let seconds = cpu_seconds() - start;
    let get = |m| o.values.named(m).expect("counted in every run");
    assert!(get("drop_rate") < 0.01, "the rate is to be one that the host sustains");
    let n = spec.run.requests as f64;
    (seconds, n, get("sim_events") / get("sim_requests"), n / (get("throughput_mrps") * 1e6))
}

/// Returns lines and wall-clock seconds of parallel runs, one for each core of the computer, as a study runs its
/// points.
fn side_by_side(text: &str, cores: usize) -> (f64, f64) {
    let ready = Barrier::new(cores);
    let one = &|seed: usize| {
        let text = format!("seed = {seed}\n{text}");
        let spec =
            hostnet::config::resolve(&text, "bench.toml", &[root().join("platforms")]).expect("a valid scenario");
        let mut start = None;
        let o = hostnet::host::run(&spec, &mut |done| {
            if done >= 0.5 && start.is_none() {
                ready.wait();
                start = Some(Instant::now());
            }
            Ok(())
        })
        .expect("a run");
        (o.values.named("sim_lines").expect("counted in every run"), start.expect("a warm-up"), Instant::now())
    };
    let runs: Vec<_> = std::thread::scope(|s| {
        let threads: Vec<_> = (1..=cores).map(|seed| s.spawn(move || one(seed))).collect();
        threads.into_iter().map(|t| t.join().expect("a run")).collect()
    });
    let start = runs.iter().map(|r| r.1).min().expect("runs");
    let end = runs.iter().map(|r| r.2).max().expect("runs");
    (runs.iter().map(|r| r.0).sum(), (end - start).as_secs_f64())
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn main() {
    let filter = filter();
    println!("{:<34} {:>14} {:>12} {:>10}", "case", "requests/s", "events/s", "ns/event");
    // Each rate is near the peak that the host sustains: 26 Mrps, 18 Mpps and 15 Mpps.
    let long = TESTPMD.replace("64 B", "1518 B").replace("6 Mpps", "2 Mpps").replace("300000", "100000");
    let file = std::env::temp_dir().join(format!("hostnet-bench-{}.rec", std::process::id()));
    record_testpmd(&file);
    let app = format!("kind = \"recorded\", file = \"{}\"", file.display());
    let recorded = TESTPMD.replace("kind = \"testpmd\", mode = \"macswap\"", &app);
    let appending = MICA.replace("in_place", "append").replace("24 Mrps", "17 Mrps");
    for (name, text) in [
        ("MICA 1 KB, 24 cores", MICA),
        ("MICA 1 KB, SETs append", &appending),
        ("TouchDrop 1514 B, 2 cores", TOUCHDROP),
        ("TestPMD 64 B", TESTPMD),
        ("TestPMD 64 B, recorded", &recorded),
        ("TestPMD 1518 B", &long),
    ] {
        if name.contains(&filter) {
            let (mut requests, mut events, mut simulated) = (0.0, 0.0, 0.0);
            let seconds = median(RUNS, || {
                let (seconds, n, per, time) = host(text);
                (requests, events, simulated) = (n, n * per, time);
                seconds
            });
            let per_event = seconds / events;
            println!("{name:<34} {:>14.0} {:>12.3e} {:>10.1}", requests / seconds, 1.0 / per_event, per_event * 1e9);
            let (long, many) = (seconds / simulated, seconds / requests * 1e6);
            println!("{:<34} {long:>14.1} s a simulated second, {many:.2} s a million requests", "");
        }
    }
    std::fs::remove_file(&file).expect("the file was written");
    let name = "quadrant 3 (lines)";
    if name.contains(&filter) {
        let text = std::fs::read_to_string(root().join("scenarios/quadrant3.toml")).expect("the scenario");
        let text = text.replace("time = \"500 us\"", "time = \"2 ms\"");
        let mut events = 0.0;
        let mut lines = 0.0;
        let seconds = median(RUNS, || {
            let spec =
                hostnet::config::resolve(&text, "bench.toml", &[root().join("platforms")]).expect("a valid scenario");
            let (mut start, mut before) = (0.0, 0.0);
            let o = hostnet::host::run(&spec, &mut |done| {
                if done <= 0.5 {
                    start = cpu_seconds();
                    before = done;
                }
                Ok(())
            })
            .expect("a run");
            assert_eq!(before, 0.5, "the warm-up ends at half");
            lines = o.values.named("sim_lines").expect("counted in every run");
            events = o.values.named("sim_events").expect("counted in every run");
            cpu_seconds() - start
        });
        // The events include those of the warm-up of 50 us, the time does not.
        let (rate, per_event) = (lines / seconds, seconds / events * 2.05 / 2.0);
        println!("{name:<34} {rate:>14.0} {:>12.3e} {:>10.1}", 1.0 / per_event, per_event * 1e9);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut lines = 0.0;
        let seconds = median(RUNS, || {
            let (n, seconds) = side_by_side(&text, cores);
            lines = n;
            seconds
        });
        println!(
            "{:<34} {:>14.0} a wall second, a run on each core",
            format!("the same, {cores} cores"),
            lines / seconds
        );
    }
    for (name, row) in [
        ("hierarchy, random reads", "caches random ch1 1048576KiB mshr256 r100 p1666"),
        ("hierarchy, linear reads", "caches linear ch1 1048576KiB mshr256 r100 p1666"),
    ] {
        if name.contains(&filter) {
            let row = drive::rows().into_iter().find(|r| r.name() == row).expect("a row of the ladder");
            let mut events = 0.0;
            let seconds = median(RUNS, || {
                let mut g = drive::Generator::new(&row).expect("a valid configuration");
                let t = cpu_seconds();
                g.go();
                events = g.events() as f64;
                cpu_seconds() - t
            });
            let (rate, per_event) = (row.requests as f64 / seconds, seconds / events);
            println!("{name:<34} {rate:>14.0} {:>12.3e} {:>10.1}", 1.0 / per_event, per_event * 1e9);
        }
    }
}
