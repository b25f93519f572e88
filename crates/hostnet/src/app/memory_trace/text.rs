//! Text traces: those of Ramulator 2's frontends `LoadStoreTrace` and `SimpleO3`, and of DRAMsim3's trace CPU.

use super::{Accesses, MemoryTraceSpec};
use crate::kernel::Int;
use std::io::BufRead;

/// Whether a file that begins with `start` is text.
pub(super) fn is_text(start: &[u8]) -> bool {
    !start.is_empty() && start.iter().take(256).all(|b| b.is_ascii_graphic() || b.is_ascii_whitespace())
}

/// Program whose text traces have a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TextFormat {
    LoadStore,
    SimpleO3,
    Dramsim3,
}

impl TextFormat {
    /// How a line of the format looks.
    fn shape(self) -> &'static str {
        match self {
            TextFormat::LoadStore => "`LD ADDRESS` or `ST ADDRESS`",
            TextFormat::SimpleO3 => "`BUBBLES LOAD [STORE]`",
            TextFormat::Dramsim3 => "`ADDRESS READ|WRITE CYCLE`",
        }
    }
}

/// A line of a text trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TraceLine {
    /// An access at a byte address (`LoadStoreTrace`, DRAMsim3).
    Access { address: u64, store: bool },
    /// Instructions without access to memory, a load, and the store that writes an evicted line back (`SimpleO3`).
    Bubbles { instructions: u32, load: u64, store: Option<u64> },
}

/// A number as `LoadStoreTrace` reads it: hexadecimal behind `0x`, or decimal.
fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x").or(word.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

/// An address of DRAMsim3, which is hexadecimal with `0x` or without.
fn hexadecimal(word: &str) -> Option<u64> {
    u64::from_str_radix(word.trim_start_matches("0x").trim_start_matches("0X"), 16).ok()
}

/// The format and the meaning of a line; None for a line of no known format.
pub(super) fn parse(line: &str) -> Option<(TextFormat, TraceLine)> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let timed = |address: &str, cycle: &str, store| {
        cycle.parse::<u64>().ok()?;
        Some((TextFormat::Dramsim3, TraceLine::Access { address: hexadecimal(address)?, store }))
    };
    let plain = |address, store| Some((TextFormat::LoadStore, TraceLine::Access { address: number(address)?, store }));
    let bubbles = |instructions: &str, load, store: Option<&&str>| {
        let store = store.map(|s| number(s).ok_or(())).transpose().ok()?;
        let line = TraceLine::Bubbles { instructions: instructions.parse().ok()?, load: number(load)?, store };
        Some((TextFormat::SimpleO3, line))
    };
    match words[..] {
        ["LD", address] => plain(address, false),
        ["ST", address] => plain(address, true),
        [address, "READ" | "read" | "P_MEM_RD" | "P_FETCH", cycle] => timed(address, cycle, false),
        [address, "WRITE" | "write" | "P_MEM_WR" | "BOFF", cycle] => timed(address, cycle, true),
        [instructions, load] => bubbles(instructions, load, None),
        [instructions, load, ref store] => bubbles(instructions, load, Some(store)),
        _ => None,
    }
}

/// Reads the lines that `s` asks for.
///
/// # Errors
/// Returns what is wrong with the file, for a clause that begins with its name.
pub(super) fn read(input: &mut dyn BufRead, s: &MemoryTraceSpec, accesses: &mut Accesses) -> Result<(), String> {
    let gap = s.gap_instructions.unwrap_or(0);
    let mut first = None;
    for (i, line) in input.lines().take(s.entries.to_usize()).enumerate() {
        let line = line.map_err(|e| format!("cannot be read: {e}"))?;
        if line.trim().is_empty() {
            continue;
        }
        let parsed = parse(&line);
        if let Some((format, _)) = parsed {
            let (of_line, of_first) = (format, *first.get_or_insert(format));
            if of_line != of_first {
                return Err(format!(
                    "mixes formats: line {} is {}, and the lines before are {}",
                    i + 1,
                    of_line.shape(),
                    of_first.shape()
                ));
            }
        }
        match parsed.map(|(_, line)| line) {
            Some(TraceLine::Access { address, store }) => {
                accesses.execute(gap);
                accesses.access(address, store, None);
                accesses.execute(1);
            }
            Some(TraceLine::Bubbles { instructions, load, store }) => {
                if s.gap_instructions.is_some() {
                    return Err(format!("counts instructions in line {}: leave gap_instructions out", i + 1));
                }
                accesses.execute(instructions);
                for (address, store) in [(Some(load), false), (store, true)] {
                    if let Some(address) = address {
                        accesses.access(address, store, None);
                        accesses.execute(1);
                    }
                }
            }
            None => {
                let shown: String = line.chars().take(40).collect();
                return Err(format!(
                    "has the line {} \"{shown}\", which is none of `LD ADDRESS`, `ST ADDRESS`, `BUBBLES LOAD [STORE]` \
                     (Ramulator 2) and `ADDRESS READ|WRITE CYCLE` (DRAMsim3)",
                    i + 1
                ));
            }
        }
    }
    Ok(())
}
