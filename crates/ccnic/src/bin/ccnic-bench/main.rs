//! Measurements of the CC-NIC data plane on this machine, as tidy CSV on standard output:
//! one row per repetition, medians per series on standard error.

mod bound;
#[path = "../shared/cpus.rs"]
mod cpus;
mod histogram;
mod idle;
mod probe;
mod run;
mod scribble;
#[path = "../shared/stdin.rs"]
mod stdin;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use ccnic::{Config, Error, Layout, Signal};
use clap::parser::ValueSource;
use clap::{value_parser, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use run::{Point, Spec};

/// Measure CC-NIC and its ablations between two CPUs of this machine.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    what: What,
}

#[derive(Args, Clone)]
struct Common {
    /// CPU of the application thread.
    #[arg(long, default_value_t = 0, global = true)]
    host_cpu: usize,
    /// CPU of the NIC.
    #[arg(long, default_value_t = 1, global = true)]
    nic_cpu: usize,
    /// Repetitions; series are interleaved, so that noise hits all of them.
    #[arg(long, default_value_t = 5, global = true, value_parser = value_parser!(u64).range(1..))]
    reps: u64,
    /// Measured milliseconds per repetition.
    #[arg(long, default_value_t = 200, global = true, value_parser = value_parser!(u64).range(1..))]
    ms: u64,
    /// Run the NIC as a process of its own instead of a thread.
    #[arg(long, global = true)]
    process: bool,
    /// Back the region with 2 MiB pages, where the kernel gives them.
    #[arg(long, global = true)]
    huge: bool,
    /// Event mode: microseconds that a side polls before it sleeps (0: it polls for ever).
    #[arg(long, global = true, default_value_t = 0)]
    poll_us: u32,
}

#[derive(Subcommand, Clone, PartialEq)]
enum What {
    /// Throughput and latency against the packets in flight, 64 B to 9000 B, CC-NIC and
    /// unoptimised.
    Loopback,
    /// One feature at a time: signalling, layout (Fig. 14), buffer management (Fig. 15),
    /// non-temporal stores.
    Ablation,
    /// TX and RX burst sizes (Fig. 16).
    Batch,
    /// Latency at 80 % of each interface's own peak rate.
    Loaded,
    /// Cache-line ping-pong (Fig. 8), loads of lines the other CPU modified, streaming
    /// (Fig. 9). `hostnet calibrate` reads it.
    Probe,
    /// Checksummed packets until a number is reached; fails on the first altered one, when none
    /// comes back for five seconds, and when the NIC ends.
    Soak {
        /// Packets to exchange.
        #[arg(long, default_value_t = 1_000_000_000, value_parser = value_parser!(u64).range(1..))]
        packets: u64,
        /// Add a third process, served by the same NIC process, that writes random words all over its own region.
        #[arg(long)]
        scribbler: bool,
        /// Most packets in flight; many let a soak run beside other work (with --poll-us).
        #[arg(long, default_value_t = 256, value_parser = value_parser!(u32).range(1..))]
        window: u32,
    },
    /// Bounds on the rate at 64 B: bare line transfers, the interface's work on one CPU, and both together.
    Bound,
    /// CPU time of an idle NIC and round trips after a pause, with and without event mode.
    Idle,
    /// A hostile peer, for tests: random stores over the whole region.
    Scribble {
        /// Socket of the NIC to attach to.
        #[arg(long)]
        socket: PathBuf,
        /// Act as the NIC that listens on the socket instead of as a host.
        #[arg(long)]
        nic: bool,
        /// Seconds after which the process ends (0: never).
        #[arg(long, default_value_t = 0)]
        seconds: u64,
        /// End when standard input is closed.
        #[arg(long)]
        with_stdin: bool,
    },
}

/// Ping-pongs before and after each run.
const PING_PONGS: u64 = 10_000;

/// One line of a plot: what is varied and the measurement.
struct Series {
    experiment: &'static str,
    variant: String,
    spec: Spec,
}

fn main() -> ExitCode {
    let matches = Cli::command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|e| e.exit());
    match without_idle_options(&cli.what, &matches).and_then(|()| measure(&cli)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("ccnic-bench: {e}");
            ExitCode::from(2)
        }
    }
}

/// Refuses options that would not change what is measured.
fn without_idle_options(what: &What, matches: &ArgMatches) -> Result<(), Error> {
    let idle: &[&str] = match what {
        What::Loopback | What::Ablation | What::Batch | What::Loaded | What::Bound => &[],
        What::Probe => &["ms", "process", "huge", "poll_us"],
        What::Soak { .. } => &["reps", "ms"],
        What::Idle => &["process", "huge", "poll_us"],
        What::Scribble { .. } => &["host_cpu", "nic_cpu", "reps", "ms", "process", "huge", "poll_us"],
    };
    let Some((name, given)) = matches.subcommand() else { return Ok(()) };
    match idle.iter().find(|option| given.value_source(option) == Some(ValueSource::CommandLine)) {
        Some(option) => {
            let option = option.replace('_', "-");
            Err(Error::Config(format!("--{option} has no effect on {name}; leave it out")))
        }
        None => Ok(()),
    }
}

fn measure(cli: &Cli) -> Result<(), Error> {
    let c = &cli.common;
    if !matches!(cli.what, What::Scribble { .. }) {
        cpus::check("--host-cpu", c.host_cpu)?;
        cpus::check("--nic-cpu", c.nic_cpu)?;
    }
    match &cli.what {
        What::Loopback => report(c, &loopback(c)),
        What::Ablation => report(c, &ablation(c)),
        What::Batch => report(c, &batch(c)),
        What::Loaded => loaded(c),
        What::Probe => probes(c),
        What::Soak { packets, scribbler, window } => soak(c, *packets, *scribbler, *window),
        What::Bound => bounds(c),
        What::Idle => idle::measure((c.host_cpu, c.nic_cpu), c.reps, c.ms),
        What::Scribble { socket, nic, seconds, with_stdin } => {
            if *with_stdin {
                stdin::end_with(|| ())?;
            }
            let run = if *nic { scribble::nic } else { scribble::host };
            run(socket, *seconds)
        }
    }
}

fn spec(c: &Common, config: Config, size: usize, window: u64) -> Spec {
    Spec {
        config: Config { huge: c.huge, poll_us: c.poll_us, ..config },
        size,
        tx_batch: 32,
        rx_batch: 32,
        window,
        rate: None,
        warmup: Duration::from_millis(c.ms / 4),
        measure: Duration::from_millis(c.ms),
        packets: None,
        host_cpu: c.host_cpu,
        nic_cpu: c.nic_cpu,
        process: c.process,
        scribbler: false,
    }
}

fn interfaces() -> [(&'static str, Config); 2] {
    [("ccnic", Config::default()), ("unopt", Config::unoptimised())]
}

fn loopback(c: &Common) -> Vec<Series> {
    let mut all = Vec::new();
    for size in [64, 256, 1500, 4096, 9000] {
        for window in [1, 8, 32, 128, 512] {
            for (name, config) in interfaces() {
                all.push(Series { experiment: "loopback", variant: name.into(), spec: spec(c, config, size, window) });
            }
        }
    }
    all
}

fn ablation(c: &Common) -> Vec<Series> {
    let full = Config::default();
    let mut all = Vec::new();
    let mut add = |experiment, variant: &str, config: &Config| {
        for window in [1, 256] {
            all.push(Series { experiment, variant: variant.into(), spec: spec(c, config.clone(), 64, window) });
        }
    };
    add("fig14a", "inline", &full);
    add("fig14a", "register", &Config { signal: Signal::Register, ..full.clone() });
    add("fig14b", "opt", &full);
    add("fig14b", "pack", &Config { layout: Layout::Packed, ..full.clone() });
    add("fig14b", "pad", &Config { layout: Layout::Padded, ..full.clone() });
    // Fig. 15 removes one feature after another.
    let no_recycle = Config { recycle: false, nonseq: false, ..full.clone() };
    let no_small = Config { small: false, ..no_recycle.clone() };
    let host_only = Config { shared_pool: false, ..no_small.clone() };
    add("fig15", "full", &full);
    add("fig15", "no_recycle_nonseq", &no_recycle);
    add("fig15", "no_small", &no_small);
    add("fig15", "no_shared_pool", &host_only);
    add("single", "sequential_fill", &Config { nonseq: false, ..full.clone() });
    add("single", "no_small", &Config { small: false, ..full.clone() });
    add("single", "host_only", &Config { shared_pool: false, ..full.clone() });
    add("single", "nt_stores", &Config { nt_stores: true, ..full.clone() });
    add("single", "eager_rx_release", &Config { rx_lazy: 1, ..full.clone() });
    add("whole", "ccnic", &full);
    add("whole", "unopt", &Config::unoptimised());
    add("whole", "unopt_with_host_cache", &Config { recycle: true, ..Config::unoptimised() });
    all
}

fn batch(c: &Common) -> Vec<Series> {
    let mut all = Vec::new();
    for n in [1, 2, 4, 8, 16, 32] {
        for (name, config) in interfaces() {
            let base = spec(c, config, 64, 256);
            all.push(Series { experiment: "fig16a", variant: name.into(), spec: Spec { tx_batch: n, ..base.clone() } });
            all.push(Series { experiment: "fig16b", variant: name.into(), spec: Spec { rx_batch: n, ..base } });
        }
    }
    all
}

/// Measures the peak rate of each interface and, right afterwards, its latency at 80 % of that rate.
fn loaded(c: &Common) -> Result<(), Error> {
    let mut rows = Vec::new();
    for rep in 0..c.reps {
        for size in [64, 1500] {
            for (name, config) in interfaces() {
                let series = |experiment, rate, window| Series {
                    experiment,
                    variant: name.into(),
                    spec: Spec { rate, ..spec(c, config.clone(), size, window) },
                };
                let peak = measure_row(c, rep, &series("peak", None, 256))?;
                let rate = Some(0.8 * peak.point.mpps);
                rows.push(peak);
                rows.push(measure_row(c, rep, &series("load80", rate, 512))?);
            }
        }
    }
    medians(&rows);
    Ok(())
}

/// One repetition of one series.
struct Row {
    key: String,
    place: &'static str,
    point: Point,
}

/// Runs every series once per repetition.
fn report(c: &Common, series: &[Series]) -> Result<(), Error> {
    let mut rows = Vec::new();
    for rep in 0..c.reps {
        for s in series {
            rows.push(measure_row(c, rep, s)?);
        }
    }
    medians(&rows);
    Ok(())
}

/// Names the distance of the two CPUs: virtual machines move them between a shared cache (near) and beyond it (far),
/// which changes every result, so each run is bracketed by a ping-pong.
fn place(before: f64, after: f64) -> &'static str {
    if before.max(after) < 150.0 {
        "near"
    } else if before.min(after) > 250.0 {
        "far"
    } else {
        "moved"
    }
}

fn measure_row(c: &Common, rep: u64, s: &Series) -> Result<Row, Error> {
    static HEADER: std::sync::Once = std::sync::Once::new();
    HEADER.call_once(|| {
        println!(
            "experiment,variant,size_bytes,tx_batch,rx_batch,window,rate_mpps,rep,place,pingpong_ns,packets,\
             mpps,gbps,lat_min_ns,lat_p50_ns,lat_p99_ns,units_per_packet,pool_per_packet,corrupt"
        );
    });
    let cpus = (c.host_cpu, c.nic_cpu);
    let before = probe::ping_pong(cpus, true, PING_PONGS)?;
    let p = run::run(&s.spec)?;
    let after = probe::ping_pong(cpus, true, PING_PONGS)?;
    let place = place(before, after);
    // No packet of a run that ended well was altered.
    println!(
        "{},{},{},{},{},{},{},{rep},{place},{:.1},{},{:.4},{:.3},{:.1},{:.1},{:.1},{:.4},{:.4},0",
        s.experiment,
        s.variant,
        s.spec.size,
        s.spec.tx_batch,
        s.spec.rx_batch,
        s.spec.window,
        s.spec.rate.map_or(String::new(), |r| format!("{r:.3}")),
        before.max(after),
        p.packets,
        p.mpps,
        p.gbps,
        p.lat_min_ns,
        p.lat_p50_ns,
        p.lat_p99_ns,
        p.units_per_packet,
        p.pool_per_packet
    );
    let key = format!(
        "{} | {} | {} | {} | {} | {}",
        s.experiment, s.variant, s.spec.size, s.spec.tx_batch, s.spec.rx_batch, s.spec.window
    );
    Ok(Row { key, place, point: p })
}

/// The median of at least one value: of an even number, the mean of the middle two.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        (values[middle - 1] + values[middle]) / 2.0
    }
}

/// Medians per series and place, as a table on standard error.
fn medians(rows: &[Row]) {
    eprintln!(
        "| place | experiment | variant | size B | tx | rx | window | runs | Mpps | Gb/s | min ns | p50 ns | p99 ns |"
    );
    eprintln!("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for place in ["near", "far", "moved"] {
        let mut done: Vec<&str> = Vec::new();
        for row in rows.iter().filter(|r| r.place == place) {
            if done.contains(&row.key.as_str()) {
                continue;
            }
            done.push(&row.key);
            let group: Vec<&Point> =
                rows.iter().filter(|r| r.place == place && r.key == row.key).map(|r| &r.point).collect();
            let of = |f: fn(&Point) -> f64| median(group.iter().map(|p| f(p)).collect());
            eprintln!(
                "| {place} | {} | {} | {:.2} | {:.2} | {:.0} | {:.0} | {:.0} |",
                row.key,
                group.len(),
                of(|p| p.mpps),
                of(|p| p.gbps),
                of(|p| p.lat_min_ns),
                of(|p| p.lat_p50_ns),
                of(|p| p.lat_p99_ns)
            );
        }
    }
}

fn probes(c: &Common) -> Result<(), Error> {
    println!("experiment,variant,size_bytes,rep,value,unit");
    let cpus = (c.host_cpu, c.nic_cpu);
    for rep in 0..c.reps {
        for (variant, together) in [("one_line", true), ("two_lines", false)] {
            let ns = probe::ping_pong(cpus, together, 200_000)?;
            println!("pingpong,{variant},64,{rep},{ns:.1},ns");
        }
        // Lines within the L1 of the CPU that wrote them, on pages within the reach of the reader's
        // address translation.
        let ns = probe::transfer(cpus, 64, 2048)?;
        println!("transfer,modified_line,64,{rep},{ns:.1},ns");
        for (variant, nt) in [("cached", false), ("non_temporal", true)] {
            for chunk in [64 << 10, 1 << 20] {
                let gbps = probe::stream(cpus, chunk, nt, (256 << 20) / chunk as u64)?;
                println!("stream,{variant},{chunk},{rep},{gbps:.2},Gb/s");
            }
        }
    }
    Ok(())
}

fn bounds(c: &Common) -> Result<(), Error> {
    println!("experiment,variant,size_bytes,rep,value,unit");
    let (cpus, time) = ((c.host_cpu, c.nic_cpu), Duration::from_millis(c.ms));
    let row = |variant, rep, value: f64, unit| println!("bound,{variant},64,{rep},{value:.2},{unit}");
    for rep in 0..c.reps {
        row("pingpong", rep, probe::ping_pong(cpus, true, PING_PONGS)?, "ns");
        row("transfer", rep, probe::transfer(cpus, 64, 2048)?, "ns");
        row("transfers_alone", rep, bound::transfers(cpus, c.huge, time)?, "Mpps");
        let (least, median) = bound::round_trip(cpus, c.huge)?;
        row("transfers_round_trip_min", rep, least, "ns");
        row("transfers_round_trip_p50", rep, median, "ns");
        let (host, nic) = bound::work(c.host_cpu, c.huge, time)?;
        row("host_work_alone", rep, host, "ns");
        row("nic_work_alone", rep, nic, "ns");
        let p = run::run(&spec(c, Config::default(), 64, 256))?;
        row("ccnic", rep, p.mpps, "Mpps");
        row("lines_published", rep, p.units_per_packet, "per packet");
        let one = run::run(&spec(c, Config::default(), 64, 1))?;
        row("round_trip_min", rep, one.lat_min_ns, "ns");
        row("round_trip_p50", rep, one.lat_p50_ns, "ns");
    }
    Ok(())
}

fn soak(c: &Common, packets: u64, scribbler: bool, window: u32) -> Result<(), Error> {
    let full = Config::default();
    // Room for the window in either ring and in the pool.
    let slots = window.clamp(full.slots, 65536).next_power_of_two();
    let config = Config { slots, buffers: full.buffers.max(4 * slots), ..full };
    let base = spec(c, config, 64, window.into());
    let spec =
        Spec { packets: Some(packets), warmup: Duration::ZERO, scribbler, process: c.process || scribbler, ..base };
    let variant = if scribbler { "beside_scribbler" } else { "ccnic" };
    report(&Common { reps: 1, ..c.clone() }, &[Series { experiment: "soak", variant: variant.into(), spec }])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_is_the_mean_of_the_middle_two() {
        assert_eq!(median(vec![7.0]), 7.0);
        assert_eq!(median(vec![9.0, 1.0]), 5.0);
        assert_eq!(median(vec![9.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 100.0, 1.0, 2.0]), 3.0);
    }
}
