//! The cases: scenarios that ship, made short, with some keys changed.

use hostnet::config::{resolve, Scenario};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A TOML file as a JSON table.
fn toml_table(text: &str, file: &str) -> Map<String, Value> {
    toml::from_str(text).unwrap_or_else(|why| panic!("{file}: {why}"))
}

/// Sets the value of a dotted path, such as `tenant.0.app.kind`; `null` removes it.
pub fn set(root: &mut Value, path: &str, value: Value) {
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

/// A case as its file and `cases.toml` write it.
#[derive(Clone)]
pub struct Written {
    /// Name in the table.
    pub name: String,
    /// The keys of the scenario.
    pub table: Value,
    /// Path beside which the scenario's captures lie, in errors as well.
    file: String,
}

impl Written {
    /// Resolves the scenario, with its platform.
    ///
    /// # Errors
    /// A sentence when the scenario is not valid.
    pub fn resolve(&self) -> Result<Scenario, String> {
        let search = [root().join("platforms"), root().join("captures")];
        resolve(&self.table.to_string(), &self.file, &search).map_err(|why| why.to_string())
    }
}

/// Every case of `cases.toml`.
pub fn written() -> Vec<Written> {
    let list = root().join("crates/hostnet/same/cases.toml");
    let text = std::fs::read_to_string(&list).unwrap_or_else(|why| panic!("{}: {why}", list.display()));
    let list = toml_table(&text, "cases.toml");
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
        Written { name, table, file: file.with_extension("json").to_string_lossy().into_owned() }
    };
    cases.iter().map(of).collect()
}
