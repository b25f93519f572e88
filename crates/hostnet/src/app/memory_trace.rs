//! Memory trace of another simulator: each core executes the accesses of the trace over and over, in memory of its own.
//!
//! Pages of 4 KiB are renumbered densely in the order of their first access, so that accesses keep their place within a
//! page and the distances of pages are lost.

mod champsim;
mod text;

use super::recorded::compile::{with_anchors, Act, Draft, Place, TemplateStep, PLACES};
use super::recorded::run;
use super::{AppBuildContext, Application, WorkSource};
use crate::core::Program;
use crate::kernel::{Int, LineAddr, RandomStream};
use crate::memory::LINE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::sync::Arc;

/// Number of accesses of a stretch of `free_run`.
const BATCH: u32 = 32;
/// Lines of a page.
const PAGE_LINES: u64 = 4096 / LINE;
/// First bytes of compressed files, with a command that decompresses them.
const COMPRESSED: [(&[u8], &str); 5] = [
    (b"\xfd7zXZ\0", "xz -dk"),
    (b"\x1f\x8b", "gunzip -k"),
    (b"\x28\xb5\x2f\xfd", "zstd -d"),
    (b"\x04\x22\x4d\x18", "lz4 -d"),
    (b"BZh", "bunzip2 -k"),
];
/// Mark with which Windows' editors begin a text in UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Parameters of a memory trace.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryTraceSpec {
    /// Trace to execute: a text trace of Ramulator 2 (`LD ADDRESS` and `ST ADDRESS`, or `BUBBLES LOAD [STORE]`) or of
    /// DRAMsim3 (`ADDRESS READ CYCLE`), or a ChampSim trace. The content tells the format. The file is looked for
    /// beside the scenario and in the folders of platforms.
    pub file: String,
    /// Number of lines of a text trace, or of instructions of a ChampSim trace, that a core executes before it begins
    /// again at the first. A shorter trace is executed whole. The default is 1,000,000.
    #[serde(default = "entries")]
    pub entries: u64,
    /// Instructions before each access of a trace that counts no instructions. The default is 0.
    #[serde(default)]
    pub gap_instructions: Option<u32>,
}
fn entries() -> u64 {
    1_000_000
}

/// Most entries of a trace that fit in memory: some 32 bytes are kept of each.
const MOST_ENTRIES: u64 = 1 << 28;

/// A memory trace on all cores of a tenant.
#[derive(Clone)]
pub struct MemoryTrace {
    steps: Arc<[TemplateStep]>,
    /// First line of each core's memory, and the step that the core executes next.
    cores: Vec<(LineAddr, usize)>,
}

impl Application for MemoryTrace {
    type Spec = MemoryTraceSpec;
    const WORK: WorkSource = WorkSource::Own;
    const ACCESSES_WORDS: bool = true;

    fn check(s: &MemoryTraceSpec, _cores: u32) -> Result<(), String> {
        if !(1..=MOST_ENTRIES).contains(&s.entries) {
            return Err(format!("entries = {} is not within 1 to {MOST_ENTRIES}", s.entries));
        }
        Ok(())
    }

    fn input(s: &mut MemoryTraceSpec) -> Option<&mut String> {
        Some(&mut s.file)
    }

    fn build(s: &MemoryTraceSpec, _packet: u32, mut context: AppBuildContext) -> Result<MemoryTrace, String> {
        let mut accesses = Accesses::default();
        read(s, &mut accesses)?;
        if accesses.drafts.is_empty() {
            return Err(format!("file = \"{}\" holds no access to memory", s.file));
        }
        let lines = accesses.pages.len().to_u64() * PAGE_LINES;
        let steps = with_anchors(accesses.drafts);
        let part = steps.len().div_ceil(context.cores.len());
        let cores = context.per_core(lines).into_iter().enumerate().map(|(i, base)| (base, i * part % steps.len()));
        Ok(MemoryTrace { cores: cores.collect(), steps: steps.into() })
    }

    fn free_run(&mut self, core: usize, _rng: &mut RandomStream, p: &mut Program) -> Option<u32> {
        let (base, at) = &mut self.cores[core];
        let (mut n, mut end) = (0, *at);
        while n < BATCH && end < self.steps.len() {
            n += u32::from(!matches!(self.steps[end].act, Act::Keep(_) | Act::Recall(_)));
            end += 1;
        }
        run(&self.steps[*at..end], [u32::MAX; 2], &[*base; PLACES], p);
        *at = if end == self.steps.len() { 0 } else { end };
        Some(n)
    }
}

/// Reads the trace of `s` into `accesses`.
fn read(s: &MemoryTraceSpec, accesses: &mut Accesses) -> Result<(), String> {
    let named = |why: String| format!("file = \"{}\" {why}", s.file);
    let file = File::open(&s.file).map_err(|e| named(format!("cannot be read: {e}")))?;
    let length = file.metadata().map_err(|e| named(format!("cannot be read: {e}")))?.len();
    let mut input = BufReader::with_capacity(1 << 16, file);
    let start = input.fill_buf().map_err(|e| named(format!("cannot be read: {e}")))?;
    if let Some((_, command)) = COMPRESSED.iter().find(|(mark, _)| start.starts_with(mark)) {
        return Err(named(format!("is compressed; decompress it first: {command} {}", s.file)));
    }
    if start.strip_prefix(MARK).is_some_and(text::is_text) {
        input.consume(MARK.len());
        return text::read(&mut input, s, accesses).map_err(named);
    }
    if text::is_text(start) {
        return text::read(&mut input, s, accesses).map_err(named);
    }
    if length == 0 || length % champsim::RECORD.to_u64() != 0 {
        return Err(named(format!(
            "is no memory trace: it is neither text nor a whole number of ChampSim's records of {} bytes",
            champsim::RECORD
        )));
    }
    if let Some(n) = s.gap_instructions {
        return Err(format!(
            "gap_instructions = {n} has no effect: a ChampSim trace counts its instructions; leave it out"
        ));
    }
    champsim::read(&mut input, s.entries, accesses).map_err(|e| named(format!("cannot be read: {e}")))
}

/// Accesses of a trace so far, as steps before anchors are assigned. The simulated core executes one instruction for each.
#[derive(Default)]
struct Accesses {
    drafts: Vec<Draft>,
    pages: HashMap<u64, u32>,
    /// Instructions since the latest access, with the accessing instruction itself.
    pending: u32,
    /// Instructions that the simulated core executes in excess of the traced ones; later instructions make up for them.
    excess: u32,
}

impl Accesses {
    /// Counts instructions that access no memory.
    fn execute(&mut self, instructions: u32) {
        self.pending = self.pending.saturating_add(instructions);
    }

    /// Appends an access at byte `address`, by an instruction that is counted already or counted later; returns the
    /// number of its step. The access waits for the data of step `after`.
    fn access(&mut self, address: u64, store: bool, after: Option<usize>) -> usize {
        let next = self.pages.len().to_u32();
        let page = *self.pages.entry(address / 4096).or_insert(next);
        let line = page * PAGE_LINES.to_u32() + (address % 4096 / LINE).to_u32();
        let made_up = self.excess.min(self.pending);
        let instructions = std::mem::take(&mut self.pending) - made_up;
        self.excess = self.excess - made_up + 1;
        let act = match (store, after.is_some()) {
            (false, false) => Act::Load,
            (false, true) => Act::DependentLoad,
            (true, false) => Act::Store,
            (true, true) => Act::DependentStore,
        };
        self.drafts.push(Draft { step: TemplateStep { instructions, line, lines: 1, place: Place::Own, act }, after });
        self.drafts.len() - 1
    }
}

#[cfg(test)]
mod tests;
