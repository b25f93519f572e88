//! Measures the memory system of this machine and writes the figures as JSON, which `hostnet calibrate --measured` reads.

use clap::Parser;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Measure the memory system of this machine.
#[derive(Parser)]
#[command(version)]
struct Cli {
    /// Fewer points and repetitions: a few seconds instead of a minute or two.
    #[arg(long)]
    quick: bool,
    /// File for the JSON, instead of standard output.
    #[arg(long, short)]
    out: Option<PathBuf>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match measured(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("hostnet-measure: {e}");
            ExitCode::from(2)
        }
    }
}

fn measured(cli: &Cli) -> Result<(), String> {
    let shown = std::io::stderr().is_terminal();
    let mut progress = |what: &str, share: f64| {
        if shown {
            eprint!("\r\x1b[K{what} {:.0} %", share * 100.0);
        }
        true
    };
    let found = hostnet_measure::measure(&hostnet_measure::Options { quick: cli.quick }, &mut progress);
    if shown {
        eprint!("\r\x1b[K");
    }
    let text = serde_json::to_string_pretty(&found?).map_err(|e| e.to_string())? + "\n";
    match &cli.out {
        Some(path) => std::fs::write(path, text).map_err(|e| format!("{}: cannot be written ({e}).", path.display())),
        None => std::io::stdout().write_all(text.as_bytes()).map_err(|e| format!("standard output: {e}.")),
    }
}
