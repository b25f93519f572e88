//! Checks of a platform's provenance: each entry refers to a value or a table, and is of a known kind.

use super::resolve::nearest;
use super::Platform;
use serde_json::Value;

/// Kinds of sources; each source begins with one of them.
const KINDS: [&str; 9] =
    ["datasheet", "paper", "artifact", "standard", "measured", "fitted", "read", "base", "assumed"];
/// Kinds of sources that hostnet itself adds where a platform's file gives no source.
const OWN_KINDS: [&str; 2] = ["default", "no source"];
/// Keys of a platform that hold text instead of values.
const WORDS: [&str; 3] = ["name", "description", "provenance"];

/// Refuses tables below `table.provenance`, which TOML makes of a dotted key without quotes.
///
/// # Errors
/// Returns one clause that names the key.
pub(super) fn are_quoted(table: &Value) -> Result<(), String> {
    let entries = table.get("provenance").and_then(Value::as_object).into_iter().flatten();
    for (key, value) in entries {
        if let Some((inner, _)) = value.as_object().and_then(|t| t.iter().next()) {
            return Err(format!(
                "provenance.{key}.{inner} is a table's key; put it in quotes: \"{key}.{inner}\" = ..."
            ));
        }
    }
    Ok(())
}

/// Checks that each entry of `table.provenance` refers to something that `platform` has, and is of a known kind.
///
/// # Errors
/// Returns one clause that names key, value and the nearest valid choice.
pub(super) fn check(table: &Value, platform: &Platform) -> Result<(), String> {
    let Some(entries) = table.get("provenance").and_then(Value::as_object).filter(|e| !e.is_empty()) else {
        return Ok(());
    };
    let mut values = serde_json::to_value(platform).map_err(|e| e.to_string())?;
    if let Some(values) = values.as_object_mut() {
        values.retain(|key, _| !WORDS.contains(&key.as_str()));
    }
    for (key, source) in entries {
        has(&values, key)?;
        if let Some(source) = source.as_str() {
            of_a_kind(key, source)?;
        }
    }
    Ok(())
}

/// Checks that `values` have `key`, a path with dots.
fn has(values: &Value, key: &str) -> Result<(), String> {
    let (mut at, mut path) = (values, Vec::new());
    for part in key.split('.') {
        let Some(next) = at.get(part) else {
            let table = path.join(".");
            let Some(known) = at.as_object() else {
                let no = if at.is_null() { "is a table that the platform lacks" } else { "is a value without keys" };
                return Err(format!("provenance: unknown key \"{key}\", as {table} {no}"));
            };
            let whole = |k: &String| if path.is_empty() { k.clone() } else { format!("{table}.{k}") };
            let known: Vec<String> = known.keys().map(whole).collect();
            let near = nearest(&whole(&part.into()), known.iter().map(String::as_str));
            return Err(format!("provenance: unknown key \"{key}\"{near} (valid: {})", known.join(", ")));
        };
        path.push(part);
        at = next;
    }
    Ok(())
}

fn of_a_kind(key: &str, source: &str) -> Result<(), String> {
    let kind = source.split_once(':').map(|(kind, _)| kind);
    if kind.is_some_and(|k| KINDS.contains(&k) || OWN_KINDS.contains(&k)) {
        return Ok(());
    }
    if let Some(kind) = KINDS.iter().find(|k| source.split_whitespace().next() == Some(k)) {
        return Err(format!(
            "provenance.\"{key}\" = \"{source}\" lacks the colon after its kind; write \"{kind}: \" and the source"
        ));
    }
    let word = kind.or_else(|| source.split_whitespace().next()).unwrap_or_default();
    let near = nearest(word, KINDS.into_iter());
    let list = KINDS.join(", ");
    Err(format!("provenance.\"{key}\" = \"{source}\" does not begin with a kind and a colon{near} (valid: {list})"))
}
