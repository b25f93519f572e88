//! An engine with a policy, an application and two stacks of one's own: runs the scenario that the first argument names, or
//! own.toml, and prints what it measured.

mod counting;
mod headers;
mod lookup;
mod stealing;

use hostnet::placement::DataPlane;
use hostnet::Engine;
use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let engine = Engine::new()
        .policy("headers", headers::Headers::new)
        .app::<lookup::Lookup>("lookup")
        .stack::<stealing::Stealing>("stealing")
        .stack::<counting::Counting>("counting");
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let file = std::env::args().nth(1).map_or_else(|| here.join("own.toml"), PathBuf::from);
    let text = std::fs::read_to_string(&file)?;
    let scenario = engine.resolve(&text, &file.to_string_lossy(), &[here.join("../../platforms")])?;
    let outcome = engine.run(&scenario)?;
    for (metric, value) in hostnet::meter::METRICS.iter().zip(&outcome.values.0) {
        if let Some(value) = value {
            println!("{:28} {value:.4} {}", metric.name, metric.unit);
        }
    }
    for name in ["stealing", "counting"] {
        if let Some(table) = outcome.tables.get(name) {
            println!("{name} {}", table["rows"]);
        }
    }
    Ok(())
}
