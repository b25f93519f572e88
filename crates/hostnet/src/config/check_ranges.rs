//! Checks for values that no machine has, whatever their key: slips of a unit or of a digit. The engine counts in
//! picoseconds and in lines, and would divide by such values or overflow.

use super::check::{need, Check};
use super::scenario::{Platform, Scenario};
use crate::kernel::units::{Bandwidth, ByteRate, Freq, OfferedRate, Pace, Rate, Size, Span};
use serde_json::Value;

/// Keys whose values are words, and the seed, which may be any number.
const WORDS: [&str; 7] = ["name", "description", "provenance", "file", "mapping", "seed", "llc_ways"];

/// Keys of rates that are only compared with other rates, so that no division depends on them.
const COMPARED: [&str; 3] = ["rate", "step", "burst_threshold"];

/// Tables of components on a chip or beside it, where nothing takes longer than `ON_CHIP`.
const CHIP: [&str; 7] = ["core.", "caches.", "memory.", "nodes.", "iio.", "pcie.", "nic."];
const ON_CHIP: Span = Span(100_000_000);
const ANYWHERE: Span = Span(10_000_000_000_000);
/// Maximum length of a run, and maximum of the times in `traffic`.
const RUNS: Span = Span(3_600_000_000_000_000);

/// Range of clock frequencies of cores and uncores.
const CLOCKS: (Freq, Freq) = (Freq(1_000_000), Freq(20_000_000_000));
const BITS: (Bandwidth, Bandwidth) = (Bandwidth(1_000_000), Bandwidth(100_000_000_000_000));
const BYTES: (ByteRate, ByteRate) = (ByteRate(1_000_000), ByteRate(100_000_000_000_000));
const FASTEST: Rate = Rate(1_000_000_000_000);
const FASTEST_PACE: Pace = Pace(1_000_000_000_000);

/// Maximum capacity by the end of the key; the last entry is for all other keys.
const SIZES: [(&str, Size); 4] = [
    ("caches.l1d.size", Size(16 << 20)),
    ("caches.l2.size", Size(256 << 20)),
    ("caches.llc.size", Size(16 << 30)),
    ("", Size(1 << 40)),
];

/// Maximum whole number by a part of the key; the last entry is for all other keys. The first entries count hardware
/// resources, each of which the engine represents separately.
const COUNTS: [(&str, u64); 19] = [
    ("core.width", 64),
    ("core.rob", 1 << 16),
    ("core.store_queue", 1 << 16),
    ("core.stores_per_line", 64),
    ("caches.llc.quirks.mshrs", 1 << 16),
    ("caches.llc.write_buffer", 1 << 20),
    ("iio.write_buffer", 1 << 16),
    ("iio.read_buffer", 1 << 16),
    ("pcie.posted_lines", 1 << 16),
    ("pcie.non_posted", 1 << 16),
    ("pcie.read_request", 1 << 12),
    ("_overhead", 1 << 12),
    ("memory.quirks.bank_queue", 1 << 12),
    ("populations", 1 << 12),
    ("_cycles", 1 << 20),
    ("_atomics", 1 << 10),
    ("instructions", 1 << 24),
    ("requests", 1_000_000_000_000),
    ("", 1 << 30),
];

/// Checks every value of a scenario for its range.
///
/// # Errors
/// Returns one clause that names key, value and what would be valid.
pub(super) fn ranges(s: &Scenario) -> Check {
    let spec = serde_json::to_value(s).map_err(|e| e.to_string())?;
    within(&mut String::new(), &spec)
}

/// Checks every value of a platform for its range.
///
/// # Errors
/// Returns one clause whose key begins with `platform`.
pub(super) fn of_platform(p: &Platform) -> Check {
    let spec = serde_json::to_value(p).map_err(|e| e.to_string())?;
    within(&mut String::from("platform"), &spec)
}

/// Checks the values below `path`, which is as before where they are within their ranges.
fn within(path: &mut String, v: &Value) -> Check {
    let length = path.len();
    match v {
        Value::Object(table) => {
            for (key, v) in table.iter().filter(|(key, _)| !WORDS.contains(&key.as_str())) {
                path.push_str(if length == 0 { "" } else { "." });
                path.push_str(key);
                within(path, v)?;
                path.truncate(length);
            }
            Ok(())
        }
        Value::Array(list) => list.iter().enumerate().try_for_each(|(i, v)| {
            path.push_str(&format!("[{i}]"));
            within(path, v)?;
            path.truncate(length);
            Ok(())
        }),
        Value::Number(n) => number(path, n),
        // A quantity begins with its number.
        Value::String(text) if text.starts_with(|c: char| c.is_ascii_digit()) => quantity(path, text),
        Value::String(_) | Value::Null | Value::Bool(_) => Ok(()),
    }
}

fn number(path: &str, n: &serde_json::Number) -> Check {
    let Some(whole) = n.as_u64() else {
        let most = if path.ends_with("_ns") { 1e9 } else { 1e12 };
        let near = n.as_f64().is_none_or(|f| f.abs() <= most);
        return need(near, || format!("{path} = {n} is more than {most}"));
    };
    let most = COUNTS.iter().find(|(part, _)| path.contains(part)).map_or(u64::MAX, |of| of.1);
    need(whole <= most, || format!("{path} = {n} is more than {most}"))
}

fn quantity(path: &str, text: &str) -> Check {
    let beyond = |least: &str, most: &str| format!("{path} = \"{text}\" is not within {least} to {most}");
    let above = |most: &str| format!("{path} = \"{text}\" is more than {most}");
    let key = path.rsplit('.').next().unwrap_or(path);
    if let Ok(time) = Span::parse(text) {
        let of_platform = path.split_once("platform.").map(|at| at.1);
        let most = match of_platform {
            Some(at) if CHIP.iter().any(|table| at.starts_with(table)) => ON_CHIP,
            None if path.starts_with("run.") || path.starts_with("traffic.") => RUNS,
            _ => ANYWHERE,
        };
        return need(time <= most, || above(&most.to_string()));
    }
    if let Ok(size) = Size::parse(text) {
        let most = SIZES.iter().find(|(end, _)| path.ends_with(end)).map_or(Size(u64::MAX), |of| of.1);
        return need(size <= most, || above(&most.to_string()));
    }
    if let Ok(clock) = Freq::parse(text) {
        let (least, most) = CLOCKS;
        return need((least..=most).contains(&clock), || beyond(&least.to_string(), &most.to_string()));
    }
    if let Ok(rate) = ByteRate::parse(text) {
        let (least, most) = BYTES;
        return need((least..=most).contains(&rate), || beyond(&least.to_string(), &most.to_string()));
    }
    if let Ok(pace) = Pace::parse(text) {
        return need(pace <= FASTEST_PACE, || above(&FASTEST_PACE.to_string()));
    }
    match OfferedRate::parse(text) {
        Ok(OfferedRate::Packets(rate)) => need(rate <= FASTEST, || above(&FASTEST.to_string())),
        Ok(OfferedRate::Bits(rate)) => {
            let (least, most) = BITS;
            let least = if COMPARED.contains(&key) { Bandwidth(0) } else { least };
            need((least..=most).contains(&rate), || beyond(&least.to_string(), &most.to_string()))
        }
        Err(_) => Ok(()), // a word
    }
}
