//! Runs one scenario file and prints its metrics: `cargo run --release --example point -- FILE ["from=>to" ...]`. Each
//! further argument replaces the text `from` in the file by `to`.

use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    end(print(&args, &mut io::stdout().lock()));
}

/// Panics when the output could not be written, unless its reader, such as `head`, had seen enough.
fn end(printed: io::Result<()>) {
    match printed {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => {}
        printed => printed.expect("standard output can be written"),
    }
}

fn print(args: &[String], out: &mut impl Write) -> io::Result<()> {
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
    for table in ["search", "tenants"] {
        let rows = o.tables.get(table).and_then(|t| t["rows"].as_array());
        for r in rows.into_iter().flatten() {
            writeln!(out, "{r}")?;
        }
    }
    let get = |m| o.values.named(m).unwrap_or(0.0);
    writeln!(
        out,
        "wall {wall:.2} s, {:.0} requests/s, {:.1} M events/s, {:.0} events/request",
        get("sim_requests") / wall,
        get("sim_events") / wall / 1e6,
        get("sim_events") / get("sim_requests").max(1.0)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Closed(usize);

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            self.0 += 1;
            Err(ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_has_gone_ends_the_output_quietly() {
        std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).expect("the top of the repository");
        let mut out = Closed(0);
        end(print(&["scenarios/directed-rx.toml".to_owned()], &mut out));
        assert_eq!(out.0, 1, "everything goes to the reader, and nothing after it has gone");
    }
}
