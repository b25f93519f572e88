//! The cases: scenarios that ship, made short, with some keys changed.

use super::Metrics;
use hostnet::config::{resolve, Scenario};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// One short scenario.
#[derive(Clone)]
pub struct Case {
    /// Name in the table.
    pub name: String,
    /// The scenario as resolved.
    pub scenario: Scenario,
}

impl Case {
    /// Runs the case and prints every metric that has a value so that no bit is lost.
    ///
    /// # Panics
    /// When the run ends in an error: a case that measures nothing guards nothing.
    pub fn run(&self) -> Metrics {
        let outcome = hostnet::host::run(&self.scenario, &mut |_| Ok(()));
        let outcome = outcome.unwrap_or_else(|why| panic!("case \"{}\": {why}", self.name));
        let named = hostnet::meter::METRICS.iter().zip(&outcome.values.0);
        named.filter_map(|(m, v)| v.map(|v| (m.name.to_string(), format!("{v:?}")))).collect()
    }
}

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A TOML file as a JSON table.
fn toml_table(text: &str, file: &str) -> Map<String, Value> {
    toml::from_str(text).unwrap_or_else(|why| panic!("{file}: {why}"))
}

/// Sets the value of a dotted path, such as `tenant.0.app.kind`; `null` removes it.
fn set(root: &mut Value, path: &str, value: Value) {
    let mut at = root;
    let mut keys = path.split('.').peekable();
    while let Some(key) = keys.next() {
        let last = keys.peek().is_none();
        match at {
            Value::Array(list) => {
                let n: usize = key.parse().unwrap_or_else(|_| panic!("{path}: {key} is no index"));
                if n == list.len() {
                    list.push(Value::Object(Map::new()));
                }
                at = &mut list[n];
            }
            other => {
                let next_is_index = keys.peek().is_some_and(|k| k.parse::<usize>().is_ok());
                let empty = || if next_is_index { Value::Array(Vec::new()) } else { Value::Object(Map::new()) };
                if !other.is_object() {
                    *other = Value::Object(Map::new());
                }
                let table = other.as_object_mut().expect("a table");
                if last && value.is_null() {
                    table.remove(key);
                    return;
                }
                at = table.entry(key).or_insert_with(empty);
            }
        }
    }
    *at = value;
}

/// Every case of `cases.toml`, resolved.
///
/// # Errors
/// A sentence for each case that is no valid scenario.
pub fn read() -> Result<Vec<Case>, Vec<String>> {
    let list = root().join("crates/hostnet/same/cases.toml");
    let text = std::fs::read_to_string(&list).unwrap_or_else(|why| panic!("{}: {why}", list.display()));
    let list = toml_table(&text, "cases.toml");
    let search = [root().join("platforms"), root().join("captures")];
    let cases = list["case"].as_array().expect("a list of cases");
    let of = |case: &Value| {
        let text_of = |key: &str| case.get(key).and_then(Value::as_str);
        let base = text_of("scenario").expect("a scenario");
        let name = text_of("name").unwrap_or(base).to_string();
        let file = root().join("scenarios").join(format!("{base}.toml"));
        let text = std::fs::read_to_string(&file).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
        let mut table = Value::Object(toml_table(&text, base));
        for (path, value) in case.get("set").and_then(Value::as_object).into_iter().flatten() {
            let value = if value.as_str() == Some("(none)") { Value::Null } else { value.clone() };
            set(&mut table, path, value);
        }
        let beside = file.with_extension("json");
        let scenario = resolve(&table.to_string(), &beside.to_string_lossy(), &search);
        scenario.map(|scenario| Case { scenario, name: name.clone() }).map_err(|why| format!("case \"{name}\": {why}"))
    };
    let (good, bad): (Vec<_>, Vec<_>) = cases.iter().map(of).partition(Result::is_ok);
    if bad.is_empty() {
        Ok(good.into_iter().flatten().collect())
    } else {
        Err(bad.into_iter().filter_map(Result::err).collect())
    }
}
