//! The committed table: a block a case, a line a metric.

use super::cases::root;
use super::Metrics;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// A value that is not as it was.
pub struct Difference {
    /// Name of the case.
    pub case: String,
    /// Name of the metric.
    pub metric: String,
    /// Value in the table, if the table has one.
    pub before: Option<String>,
    /// Value of this run, if it yielded one.
    pub after: Option<String>,
}

fn path() -> std::path::PathBuf {
    root().join("crates/hostnet/same/table.txt")
}

fn read() -> BTreeMap<String, Metrics> {
    let mut all: BTreeMap<String, Metrics> = BTreeMap::new();
    let mut case = String::new();
    for line in std::fs::read_to_string(path()).unwrap_or_default().lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            case = name.to_string();
            all.entry(case.clone()).or_default();
        } else if let Some((metric, value)) = line.split_once(' ') {
            all.entry(case.clone()).or_default().insert(metric.to_string(), value.to_string());
        }
    }
    all
}

/// Writes what was measured; cases that did not run keep their lines unless `whole`.
pub fn write(measured: &BTreeMap<String, Metrics>, whole: bool) {
    let mut all = if whole { BTreeMap::new() } else { read() };
    all.extend(measured.iter().map(|(case, metrics)| (case.clone(), metrics.clone())));
    let mut text = String::new();
    for (case, metrics) in all {
        writeln!(text, "[{case}]").expect("text grows");
        for (metric, value) in metrics {
            writeln!(text, "{metric} {value}").expect("text grows");
        }
        text.push('\n');
    }
    std::fs::write(path(), text).unwrap_or_else(|why| panic!("{}: {why}", path().display()));
}

/// Every metric of the cases that ran whose value is not the table's; of all cases where `whole`.
pub fn differences(measured: &BTreeMap<String, Metrics>, whole: bool) -> Vec<Difference> {
    let table = read();
    let none = Metrics::new();
    let mut cases: BTreeSet<&String> = measured.keys().collect();
    if whole {
        cases.extend(table.keys());
    }
    let mut found = Vec::new();
    for case in cases {
        let (before, after) = (table.get(case).unwrap_or(&none), measured.get(case).unwrap_or(&none));
        let metrics: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        for metric in metrics.into_iter().filter(|m| before.get(*m) != after.get(*m)) {
            found.push(Difference {
                case: case.clone(),
                metric: metric.clone(),
                before: before.get(metric).cloned(),
                after: after.get(metric).cloned(),
            });
        }
    }
    found
}

/// Prints differences: metric, before, after, by case.
pub fn show(differences: &[Difference]) {
    let mut case = "";
    for d in differences {
        if d.case != case {
            case = &d.case;
            println!("\n{case}");
        }
        let or_none = |v: &Option<String>| v.clone().unwrap_or_else(|| "-".into());
        println!("  {:32} {:>24}  {:>24}", d.metric, or_none(&d.before), or_none(&d.after));
    }
}
