//! Runs one scenario file and prints its metrics: `cargo run --release --example point -- FILE ["from=>to" ...]`, where `to` replaces the text `from`.

use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;

fn main() {
    match print(&mut io::stdout().lock()) {
        // Whoever reads the output, such as `head`, has seen enough.
        Err(e) if e.kind() == ErrorKind::BrokenPipe => {}
        printed => printed.expect("standard output can be written"),
    }
}

fn print(out: &mut impl Write) -> io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let file = args.first().expect("a scenario file");
    let mut text = std::fs::read_to_string(file).expect("readable");
    for set in &args[1..] {
        let (from, to) = set.split_once("=>").expect("from=>to");
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    let scenario =
        hostnet::config::resolve(&text, file, &[PathBuf::from("platforms")]).unwrap_or_else(|e| panic!("{e}"));
    let start = std::time::Instant::now();
    let o = hostnet::host::run(&scenario, &mut |_| Ok(())).unwrap_or_else(|e| panic!("{e}"));
    let wall = start.elapsed().as_secs_f64();
    for (m, v) in hostnet::meter::METRICS.iter().zip(&o.values.0) {
        if let Some(v) = v {
            writeln!(out, "{:28} {v:.4} {}", m.name, m.unit)?;
        }
    }
    if let Some(s) = o.tables.get("search") {
        for r in s["rows"].as_array().into_iter().flatten() {
            writeln!(out, "{r}")?;
        }
    }
    let get = |m| o.values.get(m).unwrap_or(0.0);
    writeln!(
        out,
        "wall {wall:.2} s, {:.0} requests/s, {:.1} M events/s, {:.0} events/request",
        get("sim_requests") / wall,
        get("sim_events") / wall / 1e6,
        get("sim_events") / get("sim_requests").max(1.0)
    )
}
