//! Sentences about keys and metrics that do not exist, the same for files, for Python and for the command line.

use super::resolve::{hint, nearest};
use serde_json::Value;

/// Clause about key `word`, which a table with the keys `valid` lacks: the table that has the key, or the nearest valid key.
pub fn unknown_key(word: &str, valid: &[&str]) -> String {
    let mut valid: Vec<&str> = valid.to_vec();
    valid.sort_unstable();
    let hint = place_of(word, &valid).unwrap_or_else(|| nearest(word, valid.iter().copied()));
    format!("unknown key \"{word}\"{hint} (valid: {})", valid.join(", "))
}

/// Clause about metric `word`, where the metrics `known` exist: with the nearest one, or where all are listed.
pub fn unknown_metric(word: &str, known: &[&str]) -> String {
    let near = hint(word, known.iter().copied());
    let near = if near.is_empty() { "`hostnet metrics` lists them".into() } else { near };
    format!("there is no metric \"{word}\"; {near}")
}

/// Text `; traffic has it` for a key of another table of a scenario, where one table alone has the key and no key of
/// `valid` is nearer than a slip.
fn place_of(word: &str, valid: &[&str]) -> Option<String> {
    if valid.iter().any(|key| strsim::damerau_levenshtein(key, word) == 1) {
        return None;
    }
    let schema: Value = serde_json::from_str(&super::schema()).ok()?;
    let tables = schema["properties"].as_object()?;
    let keys = |table: &Value| {
        let named = table["$ref"].as_str().or_else(|| table["anyOf"][0]["$ref"].as_str());
        let of = named.and_then(|r| schema.pointer(r.trim_start_matches('#')));
        of.and_then(|t| t["properties"].as_object()).map(|p| p.keys().cloned().collect::<Vec<_>>()).unwrap_or_default()
    };
    if let Some(table) = tables.get(word) {
        let what = if keys(table).is_empty() { "key" } else { "table" };
        return Some(format!("; \"{word}\" is a {what} of its own"));
    }
    let holders: Vec<&String> =
        tables.iter().filter(|(_, t)| keys(t).iter().any(|key| key == word)).map(|(name, _)| name).collect();
    match holders[..] {
        [one] => Some(format!("; {one} has it")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::unknown_key;

    #[test]
    fn a_key_of_another_table_is_told_where_it_stands() {
        for (word, hint) in [
            ("seed", "; \"seed\" is a key of its own"),
            ("placement", "; \"placement\" is a table of its own"),
            ("rate", "; traffic has it"),
            ("lod", "; did you mean \"load\""),
            ("zzzzzz", ""),
        ] {
            let said = format!("unknown key \"{word}\"{hint} (valid: load, requests)");
            assert_eq!(unknown_key(word, &["requests", "load"]), said);
        }
    }
}
