//! Which choices of a scenario no case makes: every kind, stack, policy, search and platform has to be in one.

use super::cases::root;
use super::Case;
use serde_json::Value;
use std::collections::BTreeSet;

/// A key and one of its words.
type Choice = (String, String);

/// Words that `resolve` replaces by what they stand for, so that no resolved scenario has them.
const REPLACED: [(&str, &str); 1] = [("ways", "all")];

/// Every choice among words that the schema offers, with the key that makes it.
fn offered(schema: &Value) -> BTreeSet<Choice> {
    let mut found = BTreeSet::new();
    properties(schema, &mut |key, property| {
        words(schema, property, &mut |word| {
            found.insert((key.into(), word));
        });
    });
    found
}

/// Calls `each` with every property of the schema and of its definitions.
fn properties(at: &Value, each: &mut dyn FnMut(&str, &Value)) {
    match at {
        Value::Object(table) => {
            for (key, property) in table.get("properties").and_then(Value::as_object).into_iter().flatten() {
                each(key, property);
            }
            table.values().for_each(|v| properties(v, each));
        }
        Value::Array(list) => list.iter().for_each(|v| properties(v, each)),
        _ => {}
    }
}

/// Calls `each` with the words that a property may be, through references.
fn words(schema: &Value, property: &Value, each: &mut dyn FnMut(String)) {
    if let Some(target) = property.get("$ref").and_then(Value::as_str) {
        let at = schema.pointer(target.trim_start_matches('#')).expect("references lead somewhere");
        if at.get("properties").is_none() {
            words(schema, at, each);
        }
    }
    let text = |v: &Value| v.as_str().map(String::from);
    property.get("const").and_then(text).into_iter().for_each(&mut *each);
    property.get("enum").and_then(Value::as_array).into_iter().flatten().filter_map(text).for_each(&mut *each);
    for several in ["oneOf", "anyOf"] {
        for one in property.get(several).and_then(Value::as_array).into_iter().flatten() {
            if one.get("properties").is_none() {
                words(schema, one, each);
            }
        }
    }
}

/// Every key of a resolved scenario whose value is a word.
fn made(at: &Value, found: &mut BTreeSet<Choice>) {
    match at {
        Value::Object(table) => {
            for (key, value) in table {
                if let Some(word) = value.as_str() {
                    found.insert((key.clone(), word.into()));
                }
                made(value, found);
            }
        }
        Value::Array(list) => list.iter().for_each(|v| made(v, found)),
        _ => {}
    }
}

/// What the schema offers, or a platform that ships, and no case has; a line each.
pub fn missing(cases: &[Case]) -> Vec<String> {
    let schema: Value = serde_json::from_str(&hostnet::config::schema()).expect("the schema is JSON");
    let mut found = BTreeSet::new();
    let mut platforms = BTreeSet::new();
    for case in cases {
        made(&serde_json::to_value(&case.scenario).expect("scenarios serialize"), &mut found);
        platforms.insert(case.scenario.platform.name.clone());
    }
    let choices = offered(&schema).into_iter().filter(|c| !found.contains(c));
    let choices = choices.filter(|(key, word)| !REPLACED.contains(&(key.as_str(), word.as_str())));
    let mut lines: Vec<String> = choices.map(|(key, word)| format!("{key} = \"{word}\"")).collect();
    for entry in std::fs::read_dir(root().join("platforms")).expect("platforms").flatten() {
        let name = entry.path().file_stem().expect("a name").to_string_lossy().into_owned();
        if !platforms.contains(&name) {
            lines.push(format!("platform = \"{name}\""));
        }
    }
    lines
}
