//! The resolved form of a scenario: an engine that gets it reads it once and merges nothing.

use crate::common::{platforms, refusal};
use hostnet::config::{resolve, resolved, Scenario};
use serde_json::{json, Value};
use std::path::PathBuf;

fn scenarios() -> Vec<(PathBuf, Scenario)> {
    let folder = platforms().parent().expect("a parent").join("scenarios");
    let files = std::fs::read_dir(folder).expect("scenarios").map(|e| e.expect("an entry").path());
    files
        .filter(|p| p.extension().is_some_and(|e| e == "toml"))
        .map(|p| {
            let text = std::fs::read_to_string(&p).expect("a scenario");
            let s = resolve(&text, &p.to_string_lossy(), &[platforms()]).unwrap_or_else(|e| panic!("{e}"));
            (p, s)
        })
        .collect()
}

#[test]
fn the_resolved_form_of_each_scenario_is_the_scenario() {
    let all = scenarios();
    assert!(all.len() > 50);
    for (path, s) in all {
        let text = serde_json::to_value(&s).expect("scenarios serialize").to_string();
        let again = resolved(&text, "resolved.json").unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert_eq!(serde_json::to_value(&again).expect("scenarios serialize").to_string(), text, "{}", path.display());
        let merged = resolve(&text, "resolved.json", &[]).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert!(merged == again, "{}", path.display());
    }
}

#[test]
fn nothing_is_merged_into_the_resolved_form_and_what_is_invalid_in_it_is_refused() {
    let (_, s) = scenarios().into_iter().find(|(p, _)| p.ends_with("kvs.toml")).expect("kvs");
    let whole = serde_json::to_value(&s).expect("scenarios serialize");
    let said = |change: &dyn Fn(&mut Value)| {
        let mut changed = whole.clone();
        change(&mut changed);
        resolved(&changed.to_string(), "resolved.json").expect_err("it is not what resolve makes").0
    };
    let e = said(&|v| v["override"] = json!({"memory": {"channels": 8}}));
    assert!(e.contains("unknown key \"override\""), "{e}");
    let e = said(&|v| v["platform"] = "sim24".into());
    assert!(e.contains("platform"), "{e}");
    let e = said(&|v| v["platform"]["memory"]["rpq"] = 0.into());
    assert!(e.starts_with("resolved.json: platform.memory: rpq = 0") || e.contains("rpq"), "{e}");
    let e = said(&|v| v["platform"]["memory"]["refresh"] = true.into());
    assert!(e.contains("unknown key \"refresh\""), "old names are of files alone: {e}");
}

#[test]
fn a_preset_that_is_unknown_is_refused_with_those_that_there_are() {
    let text = std::fs::read_to_string(platforms().parent().expect("a parent").join("scenarios/quadrant1.toml"));
    let text = text.expect("quadrant1") + "\n[override.caches.llc.quirks]\npreset = \"zsim\"\n";
    let e = refusal(&text, "\"zsim\"", "\"zsin\"");
    assert!(e.contains("platform.caches.llc.quirks.preset: unknown choice \"zsin\"; did you mean \"zsim\""), "{e}");
}

/// The machine of Sweeper's paper states each value of the preset by itself, because tests of the memory system read its file.
#[test]
fn the_platform_of_sweepers_paper_has_the_values_of_the_preset_of_its_simulator() {
    let text =
        std::fs::read_to_string(platforms().parent().expect("a parent").join("scenarios/kvs.toml")).expect("kvs");
    let plain = resolve(&text, "kvs.toml", &[platforms()]).expect("kvs");
    let preset = "\n[override.caches.llc.quirks]\npreset = \"zsim\"\n[override.memory.quirks]\npreset = \"zsim\"\n";
    let mut same = resolve(&(text + preset), "kvs.toml", &[platforms()]).expect("kvs");
    assert!(same.platform.caches.llc.quirks.preset.take().is_some());
    assert!(same.platform.memory.quirks.preset.take().is_some());
    assert_eq!(same.platform.caches, plain.platform.caches);
    assert_eq!(same.platform.memory, plain.platform.memory);
}
