//! X-Mem: one random read after another over a private array (Sweeper, section VI-E).

use super::{Application, Site, Work};
use crate::core::{Op, Program};
use crate::kernel::units::Size;
use crate::kernel::Stream;
use crate::memory::LINE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct XmemSpec {
    /// Each core's array.
    pub array: Size,
    /// Instructions between two reads.
    #[serde(default = "gap")]
    pub gap_instructions: u32,
    /// Chains of dependent reads under way at once.
    #[serde(default = "one")]
    pub parallelism: u32,
}
fn gap() -> u32 {
    4
}
fn one() -> u32 {
    1
}

impl XmemSpec {
    /// # Errors
    /// One clause with key and value.
    pub fn check(&self) -> Result<(), String> {
        if !(LINE..=1 << 40).contains(&self.array.0) {
            return Err(format!("array = \"{}\" is not within 64 B to 1024 GiB", self.array));
        }
        if self.parallelism == 0 {
            return Err("parallelism = 0 must be positive".into());
        }
        Ok(())
    }
}

const BATCH: u32 = 32;

#[derive(Clone)]
pub struct Xmem {
    bases: Vec<u64>,
    lines: u64,
    gap: u32,
    parallelism: u32,
}

impl Application for Xmem {
    type Spec = XmemSpec;
    const WORK: Work = Work::Own;

    fn check(s: &XmemSpec, _cores: u32) -> Result<(), String> {
        s.check()
    }

    fn build(s: &XmemSpec, _packet: u32, mut site: Site) -> Result<Xmem, String> {
        s.check()?;
        let lines = s.array.0 / LINE;
        Ok(Xmem { bases: site.per_core(lines), lines, gap: s.gap_instructions, parallelism: s.parallelism })
    }

    fn free_run(&mut self, core: usize, rng: &mut Stream, p: &mut Program) -> Option<u32> {
        for i in 0..BATCH {
            let line = self.bases[core] + rng.below(self.lines);
            if i % self.parallelism == 0 {
                p.push(Op::Chase { line, delay: 0 });
            } else {
                p.push(Op::Load { line, lines: 1 });
            }
            p.compute(self.gap);
        }
        Some(BATCH)
    }
}
