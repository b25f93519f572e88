//! LLCAntagonist: random reads and writes of a buffer, without end (IDIO, Table II). Its metric is cycles per
//! instruction.

use super::{AppBuildContext, Application, WorkSource};
use crate::core::{Op, Program};
use crate::kernel::units::Size;
use crate::kernel::{LineAddr, RandomStream};
use crate::memory::LINE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of LLCAntagonist.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LlcAntagonistSpec {
    /// Size of each core's buffer.
    pub buffer: Size,
    /// Share of the accesses that are writes (0 to 1). The default is 0.5.
    #[serde(default = "half")]
    pub writes: f64,
    /// Instructions between two accesses. The default is 4.
    #[serde(default = "gap")]
    pub gap_instructions: u32,
}
fn half() -> f64 {
    0.5
}
fn gap() -> u32 {
    4
}

/// Number of accesses of a program.
const BATCH: u32 = 32;

/// LLCAntagonist: random reads and writes of a private buffer.
#[derive(Clone)]
pub struct LlcAntagonist {
    bases: Vec<LineAddr>,
    lines: u64,
    writes: f64,
    gap: u32,
}

impl Application for LlcAntagonist {
    type Spec = LlcAntagonistSpec;
    const WORK: WorkSource = WorkSource::Own;
    const ACCESSES_WORDS: bool = true;

    fn check(s: &LlcAntagonistSpec, _cores: u32) -> Result<(), String> {
        if !(LINE..=1 << 40).contains(&s.buffer.0) {
            return Err(format!("buffer = \"{}\" is not within 64 B to 1024 GiB", s.buffer));
        }
        if !(0.0..=1.0).contains(&s.writes) {
            return Err(format!("writes = {} is not within 0 to 1", s.writes));
        }
        Ok(())
    }

    fn build(s: &LlcAntagonistSpec, _packet: u32, mut context: AppBuildContext) -> Result<LlcAntagonist, String> {
        let lines = s.buffer.0 / LINE;
        Ok(LlcAntagonist { bases: context.per_core(lines), lines, writes: s.writes, gap: s.gap_instructions })
    }

    fn free_run(&mut self, core: usize, rng: &mut RandomStream, p: &mut Program) -> Option<u32> {
        for _ in 0..BATCH {
            let line = self.bases[core] + rng.below(self.lines);
            if rng.unit() < self.writes {
                p.push(Op::Store { line, lines: 1 });
            } else {
                p.push(Op::Load { line, lines: 1 });
            }
            p.compute(self.gap);
        }
        Some(BATCH)
    }
}
