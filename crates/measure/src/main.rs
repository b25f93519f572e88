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
    /// Measure mixtures of chases and streams, which `hostnet study real here --measured` reads, instead of what
    /// `hostnet calibrate` needs.
    #[arg(long)]
    mixtures: bool,
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
    let options = hostnet_measure::Options { quick: cli.quick };
    let found = if cli.mixtures {
        hostnet_measure::measure_mixtures(&options, &mut progress).map(|m| serde_json::to_string_pretty(&m))
    } else {
        hostnet_measure::measure(&options, &mut progress).map(|m| serde_json::to_string_pretty(&m))
    };
    if shown {
        eprint!("\r\x1b[K");
    }
    let text = found?.map_err(|e| e.to_string())? + "\n";
    match &cli.out {
        Some(path) => std::fs::write(path, text).map_err(|e| format!("{}: cannot be written ({e}).", path.display())),
        None => std::io::stdout().write_all(text.as_bytes()).map_err(|e| format!("standard output: {e}.")),
    }
}
