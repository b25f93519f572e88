//! Compares every metric of short scenarios with a committed table, bit for bit.
//!
//! `cases.toml` lists the scenarios, `table.txt` what they yielded when it was last written. A redesign of the engine leaves the
//! table as it is; a change of a model changes it in a diff that a person can read. The table guards against
//! accidents and proves nothing about what is right: expected values of tests come from elsewhere.
//!
//! `make same` compares, `make same-write` writes the table anew. `cargo test --profile checks -p hostnet --test same -- idio probe`
//! runs only cases whose names contain one of these words.

mod cases;
mod coverage;
mod table;

use hostnet::config::Scenario;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::time::Instant;

/// Every metric of a case that has a value, by name.
type Metrics = BTreeMap<String, String>;

/// One short scenario.
#[derive(Clone)]
struct Case {
    /// Name in the table.
    name: String,
    /// The scenario as resolved.
    scenario: Scenario,
}

impl Case {
    /// Runs the case and prints every metric that has a value so that no bit is lost.
    ///
    /// # Panics
    /// When the run ends in an error: a case that measures nothing guards nothing.
    fn run(&self) -> Metrics {
        let outcome = hostnet::host::run(&self.scenario, &mut |_| Ok(()));
        let outcome = outcome.unwrap_or_else(|why| panic!("case \"{}\": {why}", self.name));
        let named = hostnet::meter::METRICS.iter().zip(&outcome.values.0);
        named.filter_map(|(m, v)| v.map(|v| (m.name.to_string(), format!("{v:?}")))).collect()
    }
}

/// Every case, resolved.
///
/// # Errors
/// A sentence for each case that is no valid scenario.
fn resolved() -> Result<Vec<Case>, Vec<String>> {
    let of = |case: cases::Written| match case.resolve() {
        Ok(scenario) => Ok(Case { scenario, name: case.name }),
        Err(why) => Err(format!("case \"{}\": {why}", case.name)),
    };
    let (good, bad): (Vec<_>, Vec<_>) = cases::written().into_iter().map(of).partition(Result::is_ok);
    if bad.is_empty() {
        Ok(good.into_iter().flatten().collect())
    } else {
        Err(bad.into_iter().filter_map(Result::err).collect())
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| arguments.iter().any(|a| a == flag);
    let words: Vec<&String> = arguments.iter().filter(|a| !a.starts_with('-')).collect();
    let all = match resolved() {
        Ok(all) => all,
        Err(sentences) => {
            println!("{}", sentences.join("\n"));
            return ExitCode::FAILURE;
        }
    };
    if has("--list") {
        all.iter().for_each(|c| println!("{}: test", c.name));
        return ExitCode::SUCCESS;
    }
    let chosen: Vec<_> =
        all.iter().filter(|c| words.is_empty() || words.iter().any(|w| c.name.contains(*w))).cloned().collect();
    let whole = chosen.len() == all.len();
    if whole {
        let missing = coverage::missing(&all);
        if !missing.is_empty() {
            println!("No case of crates/hostnet/same/cases.toml has:\n  {}", missing.join("\n  "));
            return ExitCode::FAILURE;
        }
    }
    let measured = run_all(&chosen, has("--times"));
    if has("--write") {
        table::write(&measured, whole);
        println!("wrote {} cases", measured.len());
        return ExitCode::SUCCESS;
    }
    let differences = table::differences(&measured, whole);
    let changed: std::collections::BTreeSet<&str> = differences.iter().map(|d| d.case.as_str()).collect();
    table::show(&differences);
    let word = if differences.is_empty() { "ok" } else { "FAILED" };
    println!("\ntest result: {word}. {} passed; {} failed", measured.len() - changed.len(), changed.len());
    if differences.is_empty() {
        ExitCode::SUCCESS
    } else {
        println!("Where the change is meant, `make same-write` writes crates/hostnet/same/table.txt anew.");
        ExitCode::FAILURE
    }
}

/// Runs the cases on as many threads as there are processors.
fn run_all(chosen: &[Case], times: bool) -> BTreeMap<String, Metrics> {
    let next = AtomicUsize::new(0);
    let measured = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from).min(chosen.len().max(1)) {
            scope.spawn(|| {
                while let Some(case) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let began = Instant::now();
                    let metrics = case.run();
                    if times {
                        println!("{:6.2} s  {}", began.elapsed().as_secs_f64(), case.name);
                    }
                    measured.lock().expect("no case panicked").insert(case.name.clone(), metrics);
                }
            });
        }
    });
    measured.into_inner().expect("no case panicked")
}
