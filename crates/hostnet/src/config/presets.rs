//! Named sets of quirks: the key `preset` of a table `quirks` stands for the values that the set has, with their sources.

use serde_json::{Map, Value};
use std::sync::LazyLock;

/// Tables of a platform whose `quirks` have presets.
const COMPONENTS: [&[&str]; 3] = [&["caches", "llc"], &["memory"], &["core", "prefetch"]];

/// Value and source of each key, by preset, below the path of the component.
static PRESETS: LazyLock<Value> = LazyLock::new(|| {
    let table: toml::Table = include_str!("presets.toml").parse().expect("the presets are TOML");
    serde_json::to_value(table).expect("the presets are finite numbers, truths and words")
});

/// Writes out the presets of the tables in `root`, a scenario or (where `below` is `platform`) a platform's file. Other keys
/// of a table of quirks override its preset.
pub fn expand(root: &mut Value, below: &str) {
    if below == "platform" {
        platform(root);
        return;
    }
    for place in ["/platform", "/override", "/client/platform"] {
        if let Some(table) = root.pointer_mut(place).filter(|table| table.is_object()) {
            platform(table);
        }
    }
}

fn platform(tables: &mut Value) {
    for component in COMPONENTS {
        let Some(quirks) = at(tables, component).and_then(|c| c.get("quirks")) else { continue };
        let name = quirks.get("preset").and_then(Value::as_str).unwrap_or_default();
        let Some(preset) = get(&PRESETS, component).and_then(|c| c.get(name)).and_then(Value::as_object) else {
            continue;
        };
        let chosen: Vec<_> = preset.iter().filter(|(key, _)| quirks.get(key.as_str()).is_none()).collect();
        let mut sources = Map::new();
        for (key, of) in chosen {
            if let Some(quirks) = at(tables, component).and_then(|c| c.get_mut("quirks")) {
                quirks[key] = of[0].clone();
            }
            sources.insert(format!("{}.quirks.{key}", component.join(".")), of[1].clone());
        }
        if sources.is_empty() {
            continue;
        }
        let Some(known) = tables.as_object_mut().map(|t| t.entry("provenance").or_insert_with(|| Map::new().into()))
        else {
            continue;
        };
        for (path, source) in sources {
            if let Some(known) = known.as_object_mut() {
                known.entry(path).or_insert(source);
            }
        }
    }
}

fn at<'a>(tables: &'a mut Value, path: &[&str]) -> Option<&'a mut Value> {
    path.iter().try_fold(tables, |table, key| table.get_mut(*key))
}

fn get<'a>(tables: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(tables, |table, key| table.get(*key))
}

#[cfg(test)]
mod tests {
    use super::{expand, get, COMPONENTS, PRESETS};
    use crate::core::prefetch::{PrefetchPreset, PrefetchQuirks};
    use crate::memory::dram::{DramPreset, DramQuirks};
    use crate::memory::spec::{LlcPreset, LlcQuirks};
    use schemars::schema_for;
    use serde_json::{json, Value};

    #[test]
    fn presets_of_a_component_set_the_same_keys_to_valid_values_and_are_those_that_the_schema_names() {
        let choices = [schema_for!(LlcPreset), schema_for!(DramPreset), schema_for!(PrefetchPreset)];
        for (component, choices) in COMPONENTS.into_iter().zip(choices) {
            let presets = get(&PRESETS, component).and_then(Value::as_object).expect("a table of presets");
            let named: Vec<&str> = choices
                .get("oneOf")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(|c| c["const"].as_str())
                .collect();
            let mut sorted = named.clone();
            sorted.sort_unstable();
            assert_eq!(presets.keys().collect::<Vec<_>>(), sorted);
            let keys = |name: &str| presets[name].as_object().expect("a table").keys().cloned().collect::<Vec<_>>();
            assert!(named.iter().all(|name| keys(name) == keys(named[0])), "{component:?}");
            for preset in presets.values() {
                let values: Value =
                    preset.as_object().into_iter().flatten().map(|(k, v)| (k.clone(), v[0].clone())).collect();
                let valid = match component {
                    ["memory"] => serde_json::from_value::<DramQuirks>(values).map(drop),
                    ["caches", ..] => serde_json::from_value::<LlcQuirks>(values).map(drop),
                    _ => serde_json::from_value::<PrefetchQuirks>(values).map(drop),
                };
                assert_eq!(valid.map_err(|e| e.to_string()), Ok(()));
            }
        }
    }

    #[test]
    fn a_preset_stands_for_its_values_and_sources_and_single_quirks_override_it() {
        let mut p = json!({
            "memory": {"quirks": {"preset": "gem5", "row_access_limit": 4}},
            "provenance": {"memory.quirks.overflow": "assumed: a"},
        });
        expand(&mut p, "platform");
        let quirks = &p["memory"]["quirks"];
        assert_eq!((&quirks["row_access_limit"], &quirks["entry_release"]), (&json!(4), &json!("data")));
        let sources = p["provenance"].as_object().expect("a table");
        assert_eq!(sources["memory.quirks.overflow"], "assumed: a");
        assert!(sources["memory.quirks.entry_release"].as_str().is_some_and(|s| s.starts_with("artifact: gem5's")));
        assert!(!sources.contains_key("memory.quirks.row_access_limit"), "{sources:?}");
    }

    #[test]
    fn a_scenario_may_name_a_preset_under_override_and_an_unknown_one_stays_as_it_is() {
        let mut s = json!({"platform": "icx", "override": {"caches": {"llc": {"quirks": {"preset": "zsim"}}}}});
        expand(&mut s, "");
        assert_eq!(s["override"]["caches"]["llc"]["quirks"]["store_hit"], "retain");
        let mut s = json!({"override": {"memory": {"quirks": {"preset": "zsin"}}}});
        let before = s.clone();
        expand(&mut s, "");
        assert_eq!(s, before);
    }
}
