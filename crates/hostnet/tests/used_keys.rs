//! Every key that a scenario gives has an effect or is refused, unless the schema says what its effect depends on.
//!
//! A draw takes one of the short scenarios of `make same` and one key of the schema, and gives the key other valid values. Some
//! value must change a metric or a table of the result; or every value is refused in a sentence; or the documentation of the
//! key, or the list [`CONDITIONS`], says why nothing changes.

#[path = "../same/cases.rs"]
mod cases;

use cases::{set, Written};
use hostnet::config::Scenario;
use hostnet::host::{run, Outcome};
use hostnet::kernel::RandomStream;
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::time::{Duration, Instant};

/// A key of a scenario: its path, its schema, and its value as resolved.
#[derive(Clone, Debug)]
struct Key {
    path: String,
    schema: Value,
    value: Value,
    /// Whether the scenario has the table of the key.
    in_table: bool,
}

/// The schema behind references and behind "or null".
fn real<'a>(root: &'a Value, at: &'a Value) -> &'a Value {
    if let Some(target) = at.get("$ref").and_then(Value::as_str) {
        return real(root, root.pointer(target.trim_start_matches('#')).expect("references lead somewhere"));
    }
    if let Some(choices) = at.get("anyOf").and_then(Value::as_array) {
        let mut some = choices.iter().filter(|c| c.get("type").and_then(Value::as_str) != Some("null"));
        if let (Some(one), None) = (some.next(), some.next()) {
            return real(root, one);
        }
    }
    at
}

/// Collects the keys below `path` that have one value, rather than a table or a list.
fn keys(root: &Value, at: &Value, value: &Value, (path, in_table): (&str, bool), found: &mut Vec<Key>) {
    let schema = real(root, at);
    if let Some(kinds) = schema.get("oneOf").and_then(Value::as_array) {
        let is = |k: &&Value| {
            let kind = k.pointer("/properties/kind/const");
            kind.is_some() && kind == value.get("kind")
        };
        if let Some(kind) = kinds.iter().find(is) {
            return keys(root, kind, value, (path, in_table), found);
        }
    }
    if let (Some(items), Some(list)) = (schema.get("items"), value.as_array()) {
        return list.iter().enumerate().for_each(|(i, v)| keys(root, items, v, (&format!("{path}.{i}"), true), found));
    }
    match schema.get("properties").and_then(Value::as_object) {
        Some(properties) => {
            for (key, property) in properties {
                let dot = if path.is_empty() { "" } else { "." };
                let inner = value.get(key).unwrap_or(&Value::Null);
                keys(root, property, inner, (&format!("{path}{dot}{key}"), !value.is_null()), found);
            }
        }
        None => {
            let mut schema = schema.clone();
            if let (Some(text), Some(table)) = (at.get("description"), schema.as_object_mut()) {
                table.insert("description".into(), text.clone());
            }
            found.push(Key { path: path.into(), schema, value: value.clone(), in_table });
        }
    }
}

/// Words that a schema allows.
fn words(schema: &Value) -> Vec<Value> {
    let mut all: Vec<Value> = schema.get("const").cloned().into_iter().collect();
    all.extend(schema.get("enum").and_then(Value::as_array).into_iter().flatten().cloned());
    for one in schema.get("oneOf").and_then(Value::as_array).into_iter().flatten() {
        all.extend(words(one));
    }
    all
}

/// Other values of a key, the nearest first.
fn others(key: &Key) -> Vec<Value> {
    let words: Vec<Value> = words(&key.schema).into_iter().filter(|w| *w != key.value).collect();
    if !words.is_empty() {
        return words;
    }
    let kinds = key.schema.get("type").cloned().unwrap_or_default();
    let is = |kind: &str| kinds == kind || kinds.as_array().is_some_and(|all| all.iter().any(|k| k == kind));
    let mut all = if is("boolean") {
        vec![json!(true), json!(false)]
    } else if is("integer") {
        match key.value.as_u64() {
            Some(n) => [2 * n, n / 2, n + 1, 16 * n, n / 16, 1, 0, 1000].map(|n| json!(n)).to_vec(),
            None => [8, 1, 64, 1000, 2, 0].map(|n: u64| json!(n)).to_vec(),
        }
    } else if is("number") {
        let n = key.value.as_f64().unwrap_or(0.5);
        [2.0 * n, n / 2.0, 16.0 * n, n / 16.0, 0.5, 0.9, 1.0, 0.0].map(|n| json!(n)).to_vec()
    } else if let Some(example) = key.schema.get("examples").and_then(|e| e.get(0)).and_then(Value::as_str) {
        let text = key.value.as_str().unwrap_or(example);
        let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
        match number.parse::<f64>() {
            Ok(n) if n > 0.0 => {
                [2.0, 0.5, 16.0, 1.0 / 16.0, 0.001, 1000.0].map(|f| json!(format!("{} {unit}", n * f))).to_vec()
            }
            Ok(_) => [1.0, 100.0, 10_000.0]
                .map(|n| json!(format!("{n} {}", example.split_once(' ').map_or("", |e| e.1))))
                .to_vec(),
            Err(_) => Vec::new(),
        }
    } else {
        Vec::new()
    };
    all.retain(|v| *v != key.value && !(key.value.is_null() && key.schema.get("default") == Some(v)));
    all.dedup();
    all
}

/// What a run yields: metrics, tables and warnings, without the counts of the simulator's own work.
fn result(outcome: &Outcome) -> (Vec<Option<u64>>, String) {
    let mut values: Vec<_> = outcome.values.0.iter().map(|v| v.map(f64::to_bits)).collect();
    for (m, v) in hostnet::meter::METRICS.iter().zip(&mut values) {
        if m.name.starts_with("sim_") {
            *v = None;
        }
    }
    (values, json!([outcome.tables, outcome.warnings]).to_string())
}

type Results = BTreeMap<String, (Vec<Option<u64>>, String)>;

/// What became of a draw.
enum End {
    /// Some value changed the result.
    Changed,
    /// The key belongs to hardware that this scenario does not load, and changed the result of another one.
    Elsewhere,
    /// No value is valid; the sentence that refuses the first.
    Refused(String),
    /// No other value is known.
    NoOther,
    /// The documentation of the key says why nothing changed.
    Documented,
    /// These values are valid and changed nothing.
    Unused(Vec<Value>),
    /// A run ended in an error or a panic.
    Bug(String),
}

/// The scenario with the keys of tenants' traffic that they take from the scenario.
fn spelled(s: &Scenario) -> Scenario {
    let mut s = s.clone();
    for t in s.tenant_ids().collect::<Vec<_>>() {
        s.tenants[t.index()].traffic = Some(Box::new(s.traffic_of(t).clone()));
    }
    s
}

/// Gives `key` other values in `case` until one changes the result.
fn try_values(case: &Written, key: &Key, base: &mut Results) -> End {
    let all = others(key);
    if all.is_empty() {
        return End::NoOther;
    }
    let own = spelled(&case.resolve().expect("a valid case"));
    let (mut unchanged, mut said) = (Vec::new(), None);
    for value in all {
        let mut changed = case.clone();
        let path = match key.path.strip_prefix("platform.") {
            Some(of_platform) => format!("override.{of_platform}"),
            None => key.path.clone(),
        };
        set(&mut changed.table, &path, value.clone());
        let scenario = match changed.resolve() {
            Ok(scenario) => scenario,
            Err(e) => {
                said.get_or_insert(format!("{value}: {e}"));
                continue;
            }
        };
        if spelled(&scenario) == own {
            continue; // the value that the key has when it is absent
        }
        let before = base.entry(case.name.clone()).or_insert_with(|| {
            let scenario = case.resolve().expect("a valid case");
            result(&run(&scenario, &mut |_| Ok(())).expect("a case that runs"))
        });
        let begun = Instant::now();
        let mut progress = |_| match begun.elapsed() > Duration::from_secs(10) {
            true => Err("it takes too long".to_owned()),
            false => Ok(()),
        };
        match catch_unwind(AssertUnwindSafe(|| run(&scenario, &mut progress))) {
            Ok(Ok(outcome)) if result(&outcome) == *before => unchanged.push(value),
            Ok(Err(e)) if e.contains("panic") => return End::Bug(format!("{value}: {e}")),
            Ok(_) => return End::Changed,
            Err(_) => return End::Bug(format!("{value}: panic")),
        }
    }
    if unchanged.is_empty() {
        End::Refused(said.unwrap_or_default())
    } else {
        End::Unused(unchanged)
    }
}

/// The path without numbers of list entries.
fn kind_of_path(path: &str) -> String {
    path.split('.').filter(|part| part.parse::<u32>().is_err()).collect::<Vec<_>>().join(".")
}

/// Draws a key; `most` is the number of other scenarios that may show its effect.
fn draw(all: &[Written], case: &Written, key: &Key, most: usize, base: &mut Results) -> End {
    let end = try_values(case, key, base);
    let End::Unused(_) = &end else { return end };
    if is_documented(key) {
        return End::Documented;
    }
    // A run of some thousand packets does not load every part of the hardware and of an application.
    let loaded = ["platform.", "peripheral.", "ccnic.", "rings.", "placement.iat.", "placement.idio.", "tenant."];
    if loaded.iter().any(|table| key.path.starts_with(table)) {
        let stack = |c: &Written| c.table.pointer("/tenant/0/stack").cloned();
        let others = all.iter().filter(|c| c.name != case.name && (most > FEW || !is_slow(c)));
        let (alike, unlike): (Vec<_>, Vec<_>) = others.partition(|c| stack(c) == stack(case));
        // Parts of a platform may serve one stack alone.
        let far = most > FEW && key.path.starts_with("platform.");
        for other in alike.into_iter().take(most).chain(unlike.into_iter().filter(|_| far)) {
            let found = keys_of(other).into_iter().find(|k| kind_of_path(&k.path) == kind_of_path(&key.path));
            if found.is_some_and(|k| matches!(try_values(other, &k, base), End::Changed)) {
                return End::Elsewhere;
            }
        }
    }
    end
}

fn schema() -> Value {
    serde_json::from_str(&hostnet::config::schema()).expect("the schema is JSON")
}

/// Every key of a case.
fn keys_of(case: &Written) -> Vec<Key> {
    let schema = schema();
    let resolved = serde_json::to_value(case.resolve().expect("a valid case")).expect("scenarios serialize");
    let mut found = Vec::new();
    keys(&schema, &schema, &resolved, ("", true), &mut found);
    found
}

/// Keys whose effect depends on the rest of the scenario: the end of the path, and the words of the schema that say so.
const CONDITIONS: [(&str, &str); 48] = [
    ("seed", "Seed of every random stream"),
    ("quirks.receive_branches", "without that key they change nothing"),
    ("quirks.transmit_branches", "without that key they change nothing"),
    ("taken_branches_per_byte", "without that key they change nothing"),
    ("run.slo_multiple", "Objective of `load = \"peak_slo\"`"),
    ("run.loss", "Objective of `load = \"peak_loss\"`"),
    ("run.step", "Grid of the rates that a search tries"),
    ("run.precision", "fewer than 1,024 `requests` are measured whole"),
    ("run.search_tolerance", "bracket at which a search stops"),
    ("traffic.flows", "no effect on a single core"),
    ("traffic.spread", "that belongs to no flow"),
    ("traffic.timeout", "only where a reply comes later, or not at all"),
    ("traffic.protocol", "captures that `run --pcap` writes, only RSS"),
    ("traffic.stamp", "captures that `run --pcap` writes"),
    ("traffic.destination_mac", "captures that `run --pcap` writes"),
    ("traffic.source_mac", "captures that `run --pcap` writes"),
    ("traffic.burst_period", "no effect on a run within one burst"),
    ("traffic.dctcp.burst", "with several flows"),
    ("traffic.dctcp.send_buffer", "a flow whose congestion window is smaller"),
    ("traffic.dctcp.mark", "with `ports` above 1"),
    ("traffic.dctcp.queue", "with `ports` above 1"),
    ("nodes.cores", "Number of cores of a node"),
    ("quirks.combining_buffers", "stores of one line at a time"),
    ("core.count", "no tenant takes are idle and change nothing"),
    ("core.threads", "is as fast as a core with one"),
    ("peripheral.receive_buffer", "only where packets come faster than they go on to memory"),
    ("tenant.app.touch", "the same for packets of one line"),
    ("tenant.app.dirty", "its copy of the line, where it has one"),
    ("tenant.node", "a probe of its own core's L1 or L2 finds the same"),
    ("traffic.pcap.lenient", "Without damage, both replay the whole file"),
    ("tenant.dscp", "`placement.idio.class1_dscp` lists it"),
    ("placement.iat.shrink_below", "Changes nothing while the misses stay above it"),
    ("ethernet.pool", "changes nothing for fewer bytes"),
    ("placement.iat.min_ways", "matters once the loop has shrunk so far"),
    ("placement.sweep_tx", "Applications that send nothing have no such buffers"),
    ("quirks.detach_instructions", "whose metadata represents data elsewhere"),
    ("placement.resq", "Rings whose buffers fit stay as they are"),
    ("placement.sweep_rx", "sends in place has no last read"),
    ("quirks.throttle", "A poll-mode driver takes no interrupts"),
    ("quirks.replenish", "fetched descriptors long before packets come"),
    ("quirks.command_latency", "a run in which no command ends"),
    ("peripheral.moderation", "a busy queue then never waits for `moderation`"),
    ("rings.quirks.write_back_idle", "changes nothing with `write_back.after = 1`"),
    ("idio.quirks.hint_overflow", "finds the queue full"),
    ("rings.quirks.transmit_buffer", "fills where the wire is slower"),
    ("rings.quirks.transmit_turnaround", "when `transmit_packets` frames were in flight"),
    ("rings.quirks.fitted.receive_packets", "is one's own, and is not judged"),
    ("rings.quirks.receive_turnaround", "when `receive_packets` packets were in flight"),
];

/// Whether the documentation of the key says when it has no effect.
fn is_documented(key: &Key) -> bool {
    let text = key.schema.get("description").and_then(Value::as_str).unwrap_or_default().replace('\n', " ");
    CONDITIONS.iter().any(|(end, says)| kind_of_path(&key.path).ends_with(end) && text.contains(says))
}

/// Draws keys `from` to `to`, and begins none after `most`; prints what became of them.
fn draws(from: u64, to: u64, most: Duration, longest: bool) {
    let (all, begun) = (cases::written(), Instant::now());
    let mut base = Results::new();
    let (mut tally, mut bad) = (BTreeMap::<&str, u32>::new(), Vec::new());
    for n in from..to {
        if begun.elapsed() > most {
            println!("time is up before draw {n}");
            break;
        }
        let mut d = RandomStream::new(n, "key", 0);
        let case = &all[d.below(all.len() as u64) as usize];
        if !longest && is_slow(case) {
            continue;
        }
        let mut found = keys_of(case);
        // A short test reaches too few scenarios to find one that loads a given part of the hardware.
        let of_platform = longest && d.below(3) == 0;
        found.retain(|k| k.path.starts_with("platform.") == of_platform);
        if longest {
            // Most keys of a table that the scenario lacks are refused, for want of the table's other keys.
            let in_table = d.below(8) > 0;
            found.retain(|k| k.in_table == in_table);
        }
        if found.is_empty() {
            continue;
        }
        let key = &found[d.below(found.len() as u64) as usize];
        let word = match draw(&all, case, key, if longest { MANY } else { FEW }, &mut base) {
            End::Changed => "changed",
            End::Elsewhere => "changed elsewhere",
            End::Documented => "documented",
            End::Refused(why) => {
                if longest {
                    println!("refused {} | {} | {why}", key.path, case.name);
                }
                "refused"
            }
            End::NoOther => "no other value known",
            End::Unused(values) => {
                let values: Vec<String> = values.iter().map(Value::to_string).collect();
                println!("UNUSED {} | {} | {} -> {}", key.path, case.name, key.value, values.join(", "));
                bad.push(key.path.clone());
                "unused"
            }
            End::Bug(why) => {
                println!("BUG {} | {} | {why}", key.path, case.name);
                bad.push(key.path.clone());
                "bug"
            }
        };
        *tally.entry(word).or_default() += 1;
    }
    println!("{tally:?}");
    assert!(bad.is_empty(), "{} keys", bad.len());
}

/// Number of other scenarios that may show the effect of a key in the short test.
const FEW: usize = 8;
/// Number of other scenarios with the same stack that may show it in the long one.
const MANY: usize = 40;

fn is_slow(case: &Written) -> bool {
    SLOW.iter().any(|slow| case.name.contains(slow))
}

/// Cases whose runs take long.
const SLOW: [&str; 7] = ["quadrant", "redis", "gapbs", "kvs", "inclusive LLC", "l3fwd", "colocation"];

#[test]
fn a_drawn_key_has_an_effect_or_is_refused() {
    draws(0, 90, Duration::MAX, false);
}

/// Takes half an hour at most, or `MINUTES`; `KEYS=from-to` chooses the draws.
#[test]
#[ignore = "takes up to half an hour"]
fn thousands_of_drawn_keys_have_an_effect_or_are_refused() {
    let range = std::env::var("KEYS").unwrap_or_else(|_| "1000-3000".into());
    let (from, to) = range.split_once('-').expect("from-to");
    let minutes = std::env::var("MINUTES").map_or(30, |m| m.parse().expect("a number"));
    draws(from.parse().expect("a number"), to.parse().expect("a number"), Duration::from_secs(60 * minutes), true);
}
