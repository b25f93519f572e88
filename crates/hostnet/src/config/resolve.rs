//! Resolution of a scenario: from a file's text to a checked scenario.

use super::registry::{Registry, EXTENSION};
use super::scenario::{Load, Scenario, TrafficSpec};
use super::unknown::unknown_key;
use super::{check, check_ranges, check_unused, presets, renamed, sources, Platform};
use crate::placement::Ways;
use serde::de::DeserializeOwned;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::fmt;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// Reason why a scenario cannot be run, as one finished sentence.
#[derive(Clone, Debug, PartialEq)]
pub struct SpecError(pub String);

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for SpecError {}

/// Makes one line of a text, whatever characters the quoted values contain.
fn sentence(text: String) -> SpecError {
    let escape = |c: char| if c.is_control() { c.escape_default().collect() } else { String::from(c) };
    SpecError(text.chars().map(escape).collect())
}

fn err<T>(file: &str, why: impl fmt::Display) -> Result<T, SpecError> {
    Err(sentence(format!("{file}: {why}.")))
}

/// Parses `text` (TOML, or JSON when `file` ends in .json), inlines its platform, applies `[override]`, and checks
/// everything. Platforms are looked for beside the file and in `search`.
///
/// # Errors
/// Returns one sentence that names file, key, value and the nearest valid choice.
pub fn resolve(text: &str, file: &str, search: &[PathBuf]) -> Result<Scenario, SpecError> {
    resolve_noting(text, file, search).map(|(scenario, _)| scenario)
}

/// Resolves as [`resolve`] does, and returns beside the scenario a sentence for each old name in it or in its platform.
///
/// # Errors
/// One sentence that names file, key, value and the nearest valid choice.
pub fn resolve_noting(text: &str, file: &str, search: &[PathBuf]) -> Result<(Scenario, Vec<String>), SpecError> {
    resolve_with(&Registry::default(), text, file, search)
}

/// Resolves as [`resolve_noting`] does a scenario that may name components of `registry`.
///
/// # Errors
/// One sentence that names file, key, value and the nearest valid choice.
pub fn resolve_with(
    registry: &Registry,
    text: &str,
    file: &str,
    search: &[PathBuf],
) -> Result<(Scenario, Vec<String>), SpecError> {
    let mut notes = Vec::new();
    let Parsed { mut root, written } = parse(text, file, "", &mut notes)?;
    let Some(table) = root.as_object_mut() else {
        return err(file, "a scenario is a table of keys");
    };
    if table.get("platform").is_none_or(Value::is_null) {
        only_known_tables(table).or_else(|why| err(file, why))?;
        return err(
            file,
            format!("platform is missing: the name of one (there are: {})", platforms_of(search).join(", ")),
        );
    }
    if let Some(other) = table.get("platform").filter(|p| !p.is_string() && !p.is_object()) {
        return err(
            file,
            format!(
                "platform = {other} is neither the name of a platform nor a table of its values (there are: {})",
                platforms_of(search).join(", ")
            ),
        );
    }
    let over = table.remove("override");
    let part = part_of_platform(table);
    let mut own = written;
    let own = own.as_object_mut().map_or([None, None], |table| [part_of_platform(table), table.remove("override")]);
    let changes = [part.clone(), over.clone()];
    if let Some(Value::String(name)) = table.get("platform") {
        let mut platform = platform(name, file, search, &mut notes)?;
        if let Some(part) = part {
            merge(&mut platform, part);
        }
        table.insert("platform".into(), platform);
    }
    let mut lacked = Vec::new();
    if let Some(over) = over {
        let Some(platform) = table.get_mut("platform") else {
            return err(file, "override needs a platform to override");
        };
        if !over.is_object() {
            return err(file, format!("override = {over} is not a table of values of the platform"));
        }
        lacked = tables_without(platform, &over);
        merge(platform, over);
    }
    ethernet_of_platform(&mut root);
    ccnic_of_platform(&mut root);
    traffic_of_tenants(&mut root);
    client(&mut root, file, search, &mut notes)?;
    all_ways(&mut root);
    let mut s = scenario_of(registry, root, file).map_err(|e| explain_missing_table(e, file, &lacked))?;
    for own in changes.iter().flatten() {
        sources::check(own, &s.platform).or_else(|why| err(file, why))?;
    }
    locate_inputs(&mut s, file, search)?;
    check::check(&s).or_else(|why| err(file, with_platforms_that_have_it(why, file, search)))?;
    for (own, table) in own.iter().zip(["platform", "override"]) {
        let own = own.as_ref().unwrap_or(&Value::Null);
        check_unused::choices(own, &s.platform).or_else(|why| err(file, format!("{table}.{why}")))?;
    }
    changes[1].iter().try_for_each(|own| check_unused::outgrown(own, &s)).or_else(|why| err(file, why))?;
    changes[1].iter().try_for_each(|own| check_unused::overridden(own, &s)).or_else(|why| err(file, why))?;
    Ok((s, notes))
}

/// Checks that a scenario has the tables and keys in `table`.
fn only_known_tables(table: &Map<String, Value>) -> Result<(), String> {
    let schema: Value = serde_json::from_str(&super::schema()).unwrap_or_default();
    let known = schema["properties"].as_object().into_iter().flatten().map(|(key, _)| key.as_str());
    let known: Vec<&str> = known.chain(["override"]).collect();
    match table.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(unknown_key(key, &known)),
        None => Ok(()),
    }
}

/// Reads the resolved form of a scenario: nothing is merged into it, looked for or renamed. `file` names it in messages.
///
/// # Errors
/// One sentence that names file, key and value.
pub fn resolved(text: &str, file: &str) -> Result<Scenario, SpecError> {
    let root = serde_json::from_str(text).or_else(|e| err(file, e))?;
    let mut s = scenario_of(&Registry::default(), root, file)?;
    locate_inputs(&mut s, file, &[])?;
    check::check(&s).or_else(|why| err(file, why))?;
    Ok(s)
}

/// The scenario that the complete tables of `root` describe, with its components of `registry`.
fn scenario_of(registry: &Registry, mut root: Value, file: &str) -> Result<Scenario, SpecError> {
    registry.mark(&mut root);
    let mut s: Scenario = typed_with(registry, root, file)?;
    registry.attach(&mut s).or_else(|why| err(file, why))?;
    Ok(s)
}

/// Finds the captures and recordings of a scenario.
fn locate_inputs(s: &mut Scenario, file: &str, search: &[PathBuf]) -> Result<(), SpecError> {
    if let Some(p) = s.traffic.pcap_mut() {
        locate(&mut p.file, "traffic.pcap", file, search)?;
    }
    for (i, t) in s.tenants.iter_mut().enumerate() {
        if let Some(p) = t.traffic.as_deref_mut().and_then(TrafficSpec::pcap_mut) {
            locate(&mut p.file, &format!("tenant[{i}].traffic.pcap"), file, search)?;
        }
        if let Some(input) = t.app.input() {
            locate(input, &format!("tenant[{i}].app"), file, search)?;
        }
    }
    Ok(())
}

/// Finds the file `given` of the table at `key`, beside the scenario's file or in `search`.
fn locate(given: &mut String, key: &str, file: &str, search: &[PathBuf]) -> Result<(), SpecError> {
    let beside = Path::new(file).parent().unwrap_or(Path::new("")).join(&*given);
    let found = search.iter().map(|d| d.join(&*given)).find(|c| c.exists());
    if !Path::new(given).is_absolute() {
        let path = if beside.exists() { beside } else { found.unwrap_or(beside) };
        // A result of this run finds the same file from any directory.
        *given = std::path::absolute(&path).unwrap_or(path).to_string_lossy().into_owned();
    }
    if !Path::new(given).is_file() {
        return err(file, format!("{key}.file = \"{given}\" is not a file"));
    }
    Ok(())
}

/// Appends, to a clause that ends in what a platform lacks, the platforms that have it.
fn with_platforms_that_have_it(why: String, file: &str, search: &[PathBuf]) -> String {
    let Some((needs, _)) = why.split_once(", which platform ").filter(|_| why.ends_with(" lacks")) else { return why };
    let tables: Vec<&str> = needs.split("platform.").skip(1).filter_map(|t| t.split(' ').next()).collect();
    let has = |p: Value| tables.iter().all(|t| p.get(*t).is_some_and(Value::is_object));
    let mut with = platforms_of(search);
    with.retain(|name| platform(name, file, search, &mut Vec::new()).is_ok_and(has));
    match with[..] {
        [] => why,
        _ => format!("{why} (these have: {})", with.join(", ")),
    }
}

/// Fills in keys of an Ethernet NIC from its platform. A TCP receiver without a driver of descriptor rings gets no
/// rings.
fn ethernet_of_platform(root: &mut Value) {
    let Some(mut of_platform) = root.pointer("/platform/ethernet").filter(|e| e.is_object()).cloned() else { return };
    let kind = |t: &Value| {
        t.pointer("/app/kind").and_then(Value::as_str) == Some("tcp_receive")
            && t.get("stack").is_none_or(Value::is_null)
    };
    if root.get("tenant").and_then(Value::as_array).is_some_and(|t| t.iter().any(kind)) {
        of_platform.as_object_mut().and_then(|e| e.remove("rings"));
    }
    for p in root.get_mut("peripheral").and_then(Value::as_array_mut).into_iter().flatten() {
        if p.get("kind").and_then(Value::as_str) == Some("ethernet") {
            let own = std::mem::replace(p, of_platform.clone());
            merge(p, own);
        }
    }
}

/// Fills in keys of CC-NIC from the platform, and those of a tenant's CC-NIC from the scenario. A preset overrides the
/// keys of the tables before it, and is overridden by the other keys of its own table.
fn ccnic_of_platform(root: &mut Value) {
    let Some(table) = root.as_object_mut() else { return };
    let asked = |t: &Value| t.get("stack").and_then(Value::as_str) == Some("ccnic");
    let any = table.get("tenant").and_then(Value::as_array).is_some_and(|t| t.iter().any(asked));
    if !any {
        return;
    }
    let of_platform = table.get("platform").and_then(|p| p.get("ccnic")).filter(|c| c.is_object()).cloned();
    let mut all = Value::Object(Map::new());
    let scenario = table.remove("ccnic").unwrap_or(Value::Object(Map::new()));
    of_platform.into_iter().chain([scenario]).for_each(|part| merge_ccnic(&mut all, part));
    for tenant in table.get_mut("tenant").and_then(Value::as_array_mut).into_iter().flatten().filter(|t| asked(t)) {
        let mut of_tenant = all.clone();
        match tenant.get("ccnic").filter(|c| !c.is_null()) {
            Some(own) if own.is_object() => merge_ccnic(&mut of_tenant, own.clone()),
            Some(_) => continue,
            None => {}
        }
        tenant["ccnic"] = of_tenant;
    }
    table.insert("ccnic".into(), all);
}

/// Merges the table `part` of CC-NIC into `all`: first the keys of its preset, then its other keys.
fn merge_ccnic(all: &mut Value, part: Value) {
    if part.get("preset").and_then(Value::as_str) == Some("unoptimised") {
        merge(all, unoptimised());
    }
    merge(all, part);
}

/// Keys that `preset = "unoptimised"` sets.
fn unoptimised() -> Value {
    serde_json::json!({
        "signal": "register", "layout": "packed", "pool": "host", "recycle": false, "small_buffers": false,
        "nonsequential": false, "quirks": { "pool_scope": "port" }
    })
}

/// Keys of `traffic` that belong to one arrival process.
const OF_PROCESS: [&str; 11] =
    ["rate", "depth", "burst", "burst_gap", "burst_period", "cv", "outstanding", "timeout", "pcap", "spread", "flows"];

/// Keys of `traffic` that belong to packets that no capture provides.
const OF_MADE_PACKETS: [&str; 3] = ["packet", "sizes", "protocol"];

/// Fills in the keys of a tenant's own traffic from the scenario's. A tenant with another arrival process takes none of the
/// keys that belong to the scenario's process. A search varies the rate of tenants that give none, so that these take none from
/// the scenario either.
fn traffic_of_tenants(root: &mut Value) {
    let mut of_all = root.get("traffic").filter(|t| t.is_object()).cloned().unwrap_or(Value::Object(Map::new()));
    let load = root.pointer("/run/load").and_then(|load| Load::deserialize(load).ok());
    if let (true, Some(of_all)) = (load.is_some_and(Load::searches), of_all.as_object_mut()) {
        of_all.remove("rate");
    }
    for tenant in root.get_mut("tenant").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(own) = tenant.get_mut("traffic").filter(|t| t.is_object()) else { continue };
        let mut all = of_all.clone();
        if own.get("arrivals").is_some_and(|a| Some(a) != of_all.get("arrivals")) {
            let replays = own["arrivals"] == "pcap";
            let other = |key: &str| OF_PROCESS.contains(&key) || replays && OF_MADE_PACKETS.contains(&key);
            if let Some(all) = all.as_object_mut() {
                all.retain(|key, _| !other(key));
            }
        }
        let own = std::mem::replace(own, Value::Null);
        merge(&mut all, own);
        tenant["traffic"] = all;
    }
}

/// Replaces `placement.ways = "all"` by the number of LLC ways on the table's own platform.
fn all_ways(table: &mut Value) {
    let Some(of) = table.pointer("/platform/caches/llc/ways").cloned() else { return };
    if let Some(ways) = table.pointer_mut("/placement/ways").filter(|w| *w == "all") {
        *ways = of;
    }
}

/// Fills in what `[client]` omits: the platform, the NIC, and the shared link.
fn client(root: &mut Value, file: &str, search: &[PathBuf], notes: &mut Vec<String>) -> Result<(), SpecError> {
    let Some(mut client) = root.get("client").and_then(Value::as_object).cloned() else { return Ok(()) };
    let platform = match client.get("platform") {
        Some(Value::String(name)) => platform(name, file, search, notes)?,
        Some(table) => table.clone(),
        None => root["platform"].clone(),
    };
    let ethernet = |p: &&Value| p.get("kind").and_then(Value::as_str) == Some("ethernet");
    let peer = root.get("peripheral").and_then(Value::as_array).and_then(|p| p.iter().find(ethernet)).cloned();
    let mut nic = platform.get("ethernet").cloned().unwrap_or(Value::Object(Map::new()));
    for key in ["link", "propagation"] {
        if let (Some(v), Some(nic)) = (peer.as_ref().and_then(|p| p.get(key)), nic.as_object_mut()) {
            nic.insert(key.into(), v.clone());
        }
    }
    merge(&mut nic, client.get("ethernet").cloned().unwrap_or(Value::Object(Map::new())));
    client.insert("ethernet".into(), nic);
    client.insert("platform".into(), platform);
    if !client.get("placement").is_some_and(Value::is_object)
        && root.pointer("/placement/ways").is_some_and(|w| w == "all")
    {
        client.insert("placement".into(), root["placement"].clone());
    }
    root["client"] = Value::Object(client);
    all_ways(&mut root["client"]);
    Ok(())
}

/// Tables of `over` that are missing in the platform, each with the platform's name.
fn tables_without(platform: &Value, over: &Value) -> Vec<(String, String)> {
    let name = platform.get("name").and_then(Value::as_str).unwrap_or_default();
    let mut absent = Vec::new();
    let mut left: Vec<(String, &Value, &Value)> = vec![(String::new(), platform, over)];
    while let Some((at, of, over)) = left.pop() {
        for (key, table) in over.as_object().into_iter().flatten().filter(|(_, t)| t.is_object()) {
            match of.get(key.as_str()).filter(|v| !v.is_null()) {
                Some(of) => left.push((format!("{at}{key}."), of, table)),
                None => absent.push((format!("{at}{key}"), name.into())),
            }
        }
    }
    absent
}

/// Extends the message about a missing key where `override` changes part of a table that the platform lacks.
fn explain_missing_table(e: SpecError, file: &str, lacked: &[(String, String)]) -> SpecError {
    let missing = |key: &String| e.0.starts_with(&format!("{file}: platform.{key}: missing"));
    match lacked.iter().find(|(key, _)| missing(key)) {
        Some((key, name)) => {
            let why = e.0.trim_end_matches('.');
            SpecError(format!("{why}, as override.{key} changes a table that platform \"{name}\" lacks."))
        }
        None => e,
    }
}

/// Splits `[platform]` with a name and some of its tables, rather than a whole platform: leaves the name in place, and
/// returns the rest, which replaces the platform's values as `[override]` does.
fn part_of_platform(table: &mut Map<String, Value>) -> Option<Value> {
    let platform = table.get_mut("platform")?;
    let given = platform.as_object_mut()?;
    let needed = ["core", "caches", "memory", "nic", "queue_pair"];
    if needed.iter().all(|key| given.contains_key(*key)) || !given.get("name")?.is_string() {
        return None;
    }
    let (name, part) = (given.remove("name")?, Value::Object(std::mem::take(given)));
    *platform = name;
    Some(part)
}

/// Tables of a file: with presets written out (`root`), and as they are written.
struct Parsed {
    root: Value,
    written: Value,
}

/// The tables of `text` under their new names. `below` is the path of these tables in a scenario, as for [`renamed::rename`].
fn parse(text: &str, file: &str, below: &str, notes: &mut Vec<String>) -> Result<Parsed, SpecError> {
    let mut root = tables(text, file)?;
    let said = renamed::rename(&mut root, below, &renamed::ALL).or_else(|why| err(file, why))?;
    notes.extend(said.into_iter().map(|what| sentence(format!("{file}: {what}.")).0));
    let written = root.clone();
    presets::expand(&mut root, below);
    Ok(Parsed { root, written })
}

fn tables(text: &str, file: &str) -> Result<Value, SpecError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text); // the mark with which Windows' editors begin a file
    if file.ends_with(".json") {
        return serde_json::from_str(text).or_else(|e| err(file, e));
    }
    match text.parse::<toml::Table>() {
        Ok(t) => {
            if let Some(what) = infinite("", &toml::Value::Table(t.clone())) {
                return err(file, format!("{what} is not a finite number"));
            }
            if let Some(why) = DeTable::parse(text).ok().and_then(|t| mask("", t.get_ref())) {
                return err(file, why);
            }
            serde_json::to_value(t).or_else(|e| err(file, e))
        }
        Err(e) => {
            let line = e.span().map_or(0, |s| text[..s.start].matches('\n').count() + 1);
            let twice = e.span().and_then(|s| text.get(s)).filter(|_| e.message() == "duplicate key");
            let key = twice.map_or(String::new(), |key| format!(" \"{}\"", key.trim_matches('"')));
            let said = e.message().trim().replace('\n', ", ").replace('`', "\"");
            err(file, format!("line {line} is not TOML: {said}{key}"))
        }
    }
}

/// The first number that JSON cannot hold, with its key.
fn infinite(path: &str, v: &toml::Value) -> Option<String> {
    let dot = if path.is_empty() { "" } else { "." };
    match v {
        toml::Value::Float(f) if !f.is_finite() => Some(format!("{path} = {f}")),
        toml::Value::Table(t) => t.iter().find_map(|(k, v)| infinite(&format!("{path}{dot}{k}"), v)),
        toml::Value::Array(a) => a.iter().enumerate().find_map(|(i, v)| infinite(&format!("{path}[{i}]"), v)),
        _ => None,
    }
}

/// Clause about the first number of ways that is written as a bit mask, in a base other than ten.
fn mask(path: &str, table: &DeTable) -> Option<String> {
    let dot = if path.is_empty() { "" } else { "." };
    table.iter().find_map(|(key, value)| mask_in(&format!("{path}{dot}{}", key.get_ref()), value.get_ref()))
}

/// The clause of [`mask`] about the value at `path`.
fn mask_in(path: &str, value: &DeValue) -> Option<String> {
    let of_ways = path.ends_with(".llc_ways") || path.ends_with("placement.ways");
    match value {
        DeValue::Integer(n) if of_ways && n.radix() != 10 => {
            let bits = u32::from_str_radix(n.as_str(), n.radix()).ok().and_then(Ways::of_mask);
            let ways = bits.unwrap_or(Ways { first: 0, count: 4 });
            let such = if bits.is_some() { "" } else { "such as " };
            Some(format!(
                "{path} = {n} is a bit mask, which would read as a number of ways; write its ways as a range, \
                 {such}\"{}\", or the mask as text, {such}\"{:#x}\"",
                ways.range(),
                ways.mask()
            ))
        }
        DeValue::Table(table) => mask(path, table),
        DeValue::Array(list) => {
            list.iter().enumerate().find_map(|(i, v)| mask_in(&format!("{path}[{i}]"), v.get_ref()))
        }
        _ => None,
    }
}

/// Loads the platform `name`, checked on its own, so that messages name the right file. When the file has the key
/// `base`, its other values replace those of the platform with that name, which may have a base itself.
fn platform(name: &str, file: &str, search: &[PathBuf], notes: &mut Vec<String>) -> Result<Value, SpecError> {
    let (path, text) = find_platform("platform", name, file, search)?;
    platform_of(&path, &text, &mut Vec::new(), search, notes)
}

/// The platform of the file `path`, whose content is `text`. `above` has the files whose bases lead here.
fn platform_of(
    path: &str,
    text: &str,
    above: &mut Vec<PathBuf>,
    search: &[PathBuf],
    notes: &mut Vec<String>,
) -> Result<Value, SpecError> {
    let Parsed { root: mut own, written } = parse(text, path, "platform", notes)?;
    let mut all = match own.as_object_mut().and_then(|t| t.remove("base")) {
        None => {
            check_platform(&own, &own, &written, path)?;
            add_default_sources(&mut own, path);
            return Ok(own);
        }
        Some(Value::String(base)) => {
            let (path_of_base, text) = find_platform("base", &base, path, search)?;
            above.push(whole_path(path));
            if above.contains(&whole_path(&path_of_base)) {
                return err(
                    path,
                    format!("base = \"{base}\" leads back to {path_of_base}; name a platform whose bases end"),
                );
            }
            let all = platform_of(&path_of_base, &text, above, search, notes)?;
            if let Some(own) = own.as_object_mut() {
                own.entry("description").or_insert_with(|| format!("{base}, with other values").into());
            }
            add_default_sources(&mut own, path);
            all
        }
        Some(other) => return err(path, format!("base = {other} is not the name of a platform")),
    };
    merge(&mut all, own.clone());
    check_platform(&all, &own, &written, path)?;
    Ok(all)
}

/// The path of an existing file, which is one path however the file is named.
fn whole_path(file: &str) -> PathBuf {
    std::fs::canonicalize(file).unwrap_or_else(|_| file.into())
}

/// Checks a platform, the provenance that the platform's file, `own`, gives, and the keys that are written in the file.
fn check_platform(all: &Value, own: &Value, written: &Value, file: &str) -> Result<(), SpecError> {
    sources::are_quoted(own).or_else(|why| err(file, why))?;
    let platform: Platform = typed(all.clone(), file)?;
    sources::check(own, &platform).or_else(|why| err(file, why))?;
    // The file has the platform's keys at its top.
    let valid = check_ranges::of_platform(&platform).and_then(|()| check::platform(&platform));
    valid.or_else(|why| err(file, why.replace("platform.", "")))?;
    check_unused::choices(written, &platform).or_else(|why| err(file, why))
}

/// Gives each value of `own` the source of the nearest table around it that has one in this file, as a source of the base
/// platform does not describe it; a value without any is marked.
fn add_default_sources(own: &mut Value, file: &str) {
    let Some(table) = own.as_object_mut() else { return };
    let words = |key: &str| matches!(key, "name" | "description" | "provenance");
    let values = table.iter().filter(|(key, _)| !words(key));
    let changed: Vec<String> = values.flat_map(|(key, value)| leaf_paths(key.clone(), value)).collect();
    let sources = table.entry("provenance").or_insert_with(|| Value::Object(Map::new()));
    if let Some(sources) = sources.as_object_mut() {
        for path in changed {
            let mut around = path.as_str();
            while let (false, Some((table, _))) = (sources.contains_key(around), around.rsplit_once('.')) {
                around = table;
            }
            let none = || format!("no source: {file} gives none").into();
            let source = sources.get(around).cloned().unwrap_or_else(none);
            sources.insert(path, source);
        }
    }
}

/// Dotted paths of the values below `path`.
fn leaf_paths(path: String, value: &Value) -> Vec<String> {
    match value {
        Value::Object(t) => t.iter().flat_map(|(key, v)| leaf_paths(format!("{path}.{key}"), v)).collect(),
        _ => vec![path],
    }
}

/// Finds the platform that `file` names under `key`; returns its path and text.
fn find_platform(key: &str, name: &str, file: &str, search: &[PathBuf]) -> Result<(String, String), SpecError> {
    let beside = Path::new(file).parent().unwrap_or(Path::new(""));
    let candidates = [beside.join(name), beside.join(format!("{name}.toml"))]
        .into_iter()
        .chain(search.iter().map(|d| d.join(format!("{name}.toml"))))
        .chain(search.iter().map(|d| d.join("platforms").join(format!("{name}.toml"))))
        .chain(search.iter().filter(|_| name.ends_with(".toml")).map(|d| d.join(name)));
    for path in candidates {
        if path.is_file() {
            let shown = path.to_string_lossy().into_owned();
            return match std::fs::read_to_string(&path) {
                Ok(text) => Ok((shown, text)),
                Err(e) => err(&shown, format!("cannot be read: {e}")),
            };
        }
    }
    let known = platforms_of(search);
    let near = nearest(name, known.iter().map(String::as_str));
    let list = known.join(", ");
    err(file, format!("{key} = \"{name}\" does not exist{near} (there are: {list})"))
}

/// Names of the platforms in `search`, sorted.
fn platforms_of(search: &[PathBuf]) -> Vec<String> {
    let mut known: Vec<String> = search
        .iter()
        .flat_map(|d| [d.clone(), d.join("platforms")])
        .filter(|d| d.ends_with("platforms")) // the folder of a scenario also holds other scenarios
        .filter_map(|d| std::fs::read_dir(d).ok())
        .flatten()
        .filter_map(|e| {
            let p = e.ok()?.path();
            (p.extension()? == "toml").then(|| p.file_stem()?.to_str().map(String::from))?
        })
        .collect();
    known.sort();
    known.dedup();
    known
}

/// Text `; did you mean "x"` for the choice nearest to `word`, or an empty text if none is near.
pub fn nearest<'a>(word: &str, choices: impl Iterator<Item = &'a str>) -> String {
    let hint = hint(word, choices);
    if hint.is_empty() {
        hint
    } else {
        format!("; {hint}")
    }
}

/// Text `did you mean "x"` for the choice nearest to `word`, or an empty text if none is near.
pub fn hint<'a>(word: &str, choices: impl Iterator<Item = &'a str>) -> String {
    nearest_choice(word, choices).map_or(String::new(), |c| format!("did you mean \"{c}\""))
}

/// The choice nearest to `word`, by the number of letters to change (Damerau and Levenshtein); None if none is near.
pub fn nearest_choice<'a>(word: &str, choices: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase(); // in the same notation as all choices
    let distance = |c: &'a str| {
        let lower = c.to_lowercase();
        // A slip hits the first letter less often than the others.
        (strsim::damerau_levenshtein(&word, &lower), lower.chars().next() != word.chars().next(), c)
    };
    choices.map(distance).min().filter(|(d, _, c)| *d <= 2.max(c.len() / 3)).map(|(_, _, c)| c)
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(a), Value::Object(b)) => {
            for (k, v) in b {
                merge(a.entry(k).or_insert(Value::Object(Map::new())), v);
            }
        }
        (a, b) => *a = b,
    }
}

/// Deserializes a value; an error message contains the path of the key.
fn typed<T: DeserializeOwned>(v: Value, file: &str) -> Result<T, SpecError> {
    typed_with(&Registry::default(), v, file)
}

/// Deserializes a value that may name components of `registry`; an error message contains the path of the key.
fn typed_with<T: DeserializeOwned>(registry: &Registry, v: Value, file: &str) -> Result<T, SpecError> {
    serde_path_to_error::deserialize(&v).map_err(|e| {
        let why = e.inner().to_string();
        if why.starts_with(['[', '.']) {
            // A clause about a key of a table that does not fit the table's other keys.
            let path = e.path().to_string();
            let why = if path.ends_with("traffic") { why.replace("traffic.", &format!("{path}.")) } else { why };
            return sentence(format!("{file}: {path}{why}."));
        }
        let path = key_at_fault::<T>(e.path().to_string(), &v, &why);
        let shown = given_as(&path, &v).unwrap_or_else(|| path.clone());
        let at = if path == "." { String::new() } else { format!("{shown}: ") };
        let of_choice = NO_CHOICE.iter().find_map(|end| why.strip_suffix(end));
        if let Some((said, words)) = of_choice.and_then(|said| Some((said, words::<T>(&v, &path)?))) {
            let said = said.replace('`', "\"");
            return sentence(format!("{file}: {at}{said}, expected one of {words}."));
        }
        let choices = choices::<T>(&v, &path, &why).unwrap_or_default();
        sentence(format!("{file}: {at}{}{choices}.", explain(&path, &v, &why, registry)))
    })
}

/// Ends of Serde's sentences about a value that is no word where a choice is.
const NO_CHOICE: [&str; 2] = [", expected string or map", ", expected variant identifier"];

/// Path of the value that `why` quotes, where `path` ends at a table around it because tables of several kinds are read as a
/// whole. Of several such values it is the one without which the error is another.
fn key_at_fault<T: DeserializeOwned>(path: String, root: &Value, why: &str) -> String {
    let Some(table @ Value::Object(_)) = lookup(root, &path) else { return path };
    let mut found = Vec::new();
    quoted_values(table, if path == "." { "" } else { &path }, why, &mut found);
    if found.len() > 1 {
        let decides = |at: &String| {
            let mut without = root.clone();
            let Some(v) = without.pointer_mut(&pointer(at)) else { return false };
            *v = Value::Null;
            serde_path_to_error::deserialize::<_, T>(&without).err().is_none_or(|e| e.inner().to_string() != why)
        };
        found.retain(decides);
    }
    match &found[..] {
        [at] => at.clone(),
        _ => path,
    }
}

/// Key that gives the value at `path`, where a tenant or a NIC has the value from a table of the scenario or of the platform.
fn given_as(path: &str, root: &Value) -> Option<String> {
    let of_tenant = || path.strip_prefix("tenant[")?.split_once("].traffic.").map(|(_, key)| format!("traffic.{key}"));
    let of_nic =
        || path.strip_prefix("peripheral[")?.split_once("].").map(|(_, key)| format!("platform.ethernet.{key}"));
    let given = of_tenant().or_else(of_nic)?;
    lookup(root, &given).is_some_and(|v| lookup(root, path) == Some(v)).then_some(given)
}

/// Paths of the values in `v`, which stands at `path`, that `why` quotes.
fn quoted_values(v: &Value, path: &str, why: &str, found: &mut Vec<String>) {
    let quoted = match v {
        Value::String(s) => why.contains(&format!("\"{s}\"")) || why.starts_with(&format!("unknown variant `{s}`")),
        Value::Number(_) | Value::Bool(_) => why.contains(&format!("`{v}`")),
        Value::Object(table) => {
            let key = |k: &String| if path.is_empty() { k.clone() } else { format!("{path}.{k}") };
            table.iter().for_each(|(k, v)| quoted_values(v, &key(k), why, found));
            false
        }
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(i, v)| quoted_values(v, &format!("{path}[{i}]"), why, found));
            false
        }
        Value::Null => false,
    };
    if quoted {
        found.push(path.into());
    }
}

/// Valid values, in brackets, for the field whose absence caused the error `why`: the values that the error for an
/// empty word names.
fn choices<T: DeserializeOwned>(v: &Value, path: &str, why: &str) -> Option<String> {
    let field = why.strip_prefix("missing field `")?.split('`').next()?;
    let mut v = v.clone();
    v.pointer_mut(&pointer(path))?.as_object_mut()?.insert(field.into(), "".into());
    let told = serde_path_to_error::deserialize::<_, T>(&v).err()?.inner().to_string();
    if let Some(words) = words_in(&told) {
        return Some(format!(" (valid: {words})"));
    }
    let of_a_kind = told.strip_prefix("invalid type: string \"\", expected ").map(in_words);
    let quantity = || told.strip_prefix("expected ")?.split_once(", not \"\"").map(|of| of.0);
    Some(format!(" ({})", of_a_kind.or_else(quantity)?))
}

/// Words that the key `path` takes.
fn words<T: DeserializeOwned>(v: &Value, path: &str) -> Option<String> {
    let mut v = v.clone();
    *v.pointer_mut(&pointer(path))? = "".into();
    words_in(&serde_path_to_error::deserialize::<_, T>(&v).err()?.inner().to_string())
}

/// Words that the error `told` about an empty word names.
fn words_in(told: &str) -> Option<String> {
    let words = told.strip_prefix("unknown variant ``")?.split('`').skip(1).step_by(2).filter(|w| *w != EXTENSION);
    Some(words.collect::<Vec<_>>().join(", "))
}

/// Rewords an error of Serde, with the value at fault and the nearest valid key.
fn explain(path: &str, root: &Value, why: &str, registry: &Registry) -> String {
    let mut quoted: Vec<&str> = why.split('`').skip(1).step_by(2).collect();
    if quoted.iter().skip(1).any(|w| *w == EXTENSION) {
        quoted.retain(|w| *w != EXTENSION);
        quoted.extend(registry.names(path));
    }
    if let Some((word, valid)) = quoted.split_first() {
        if why.starts_with("unknown field") {
            return unknown_key(word, valid);
        }
        if why.starts_with("unknown variant") {
            let near = nearest(word, valid.iter().copied());
            return format!("unknown choice \"{word}\"{near} (valid: {})", valid.join(", "));
        }
    }
    let value = lookup(root, path).filter(|v| !v.is_object() && !v.is_array());
    let mut why = why.replace('`', "\"");
    if let Some((said, wanted)) = why.rsplit_once(", expected ") {
        let large = said.strip_prefix("invalid value: integer \"").is_some_and(|n| !n.starts_with('-'));
        why = format!("{said}, expected {}", most(wanted).filter(|_| large).as_deref().unwrap_or(in_words(wanted)));
    }
    match value {
        Some(v) if !why.contains(&v.to_string()) => format!("{why} (the value is {v})"),
        _ => why,
    }
}

/// Range of the numbers that fit a type, for the message about a number that is too large.
fn most(wanted: &str) -> Option<String> {
    let most = match wanted {
        "u8" => u8::MAX.into(),
        "u16" => u16::MAX.into(),
        "u32" => u32::MAX.into(),
        "u64" | "usize" => u64::MAX,
        _ => return None,
    };
    Some(format!("a whole number of at most {most}"))
}

/// TOML's name of a type that Rust names differently.
fn in_words(wanted: &str) -> &str {
    match wanted {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number of at least 0",
        "f64" => "a number",
        "a sequence" => "a list",
        "a boolean" => "true or false",
        _ if wanted == "a map" || wanted.starts_with("struct ") || wanted.starts_with("internally tagged") => "a table",
        _ => wanted,
    }
}

fn lookup<'a>(root: &'a Value, path: &str) -> Option<&'a Value> {
    root.pointer(&pointer(path))
}

/// The path `a.b[2].c`, or `.` for the whole, as a JSON pointer.
fn pointer(path: &str) -> String {
    if path == "." {
        return String::new();
    }
    format!("/{}", path.replace(['.', '['], "/").replace(']', ""))
}
