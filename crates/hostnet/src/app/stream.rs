//! Memory streams: every core walks a private buffer far larger than the caches and keeps its line fill
//! buffers full (the modified STREAM of "Understanding the Host Network", section 2.2).

use super::Site;
use crate::core::{Op, Program};
use crate::kernel::units::Size;
use crate::kernel::Stream as Rng;
use crate::memory::region::{Kind, Pages, Sharing};
use crate::memory::LINE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Order of the lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// One after the other.
    #[default]
    Sequential,
    /// Runs of `run_lines` lines from random places.
    Random,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamSpec {
    /// Each core's buffer.
    pub buffer: Size,
    /// Reads over all memory traffic: 1 only loads, 0.5 stores to every line.
    #[serde(default = "all")]
    pub read_fraction: f64,
    /// Order of the lines.
    #[serde(default)]
    pub access: Pattern,
    /// Consecutive lines of a random run.
    #[serde(default = "one")]
    pub run_lines: u32,
    /// Instructions per line besides the access: address, arithmetic, loop.
    #[serde(default = "instructions")]
    pub instructions: u32,
    /// Contiguous physical memory of the buffer; larger pieces lie anywhere. The authors' scripts ask for no huge pages.
    #[serde(default = "super::small_page")]
    pub page: Size,
}
fn all() -> f64 {
    1.0
}
fn one() -> u32 {
    1
}
fn instructions() -> u32 {
    3
}

impl StreamSpec {
    /// # Errors
    /// One clause with key and value.
    pub fn check(&self) -> Result<(), String> {
        if !(0.5..=1.0).contains(&self.read_fraction) {
            return Err(format!(
                "read_fraction = {} is not within 0.5 (every line stored to) to 1 (loads only)",
                self.read_fraction
            ));
        }
        if !self.page.0.is_power_of_two() || self.page.0 < LINE {
            return Err(format!("page = \"{}\" is not a power of two of at least 64 B", self.page));
        }
        if self.buffer.0 < self.page.0 || self.buffer.0 > 1 << 40 || self.buffer.0 % self.page.0 != 0 {
            return Err(format!(
                "buffer = \"{}\" is not a multiple of page = \"{}\" up to 1024 GiB",
                self.buffer, self.page
            ));
        }
        if self.run_lines == 0 || u64::from(self.run_lines) > self.buffer.0 / LINE {
            return Err(format!("run_lines = {} is not within 1 to the buffer's lines", self.run_lines));
        }
        Ok(())
    }
}

/// Lines that a core works on between two looks at its program.
const BATCH: u32 = 64;

#[derive(Clone)]
struct Walk {
    pages: Pages,
    at: u64,
    run_left: u32,
    /// Stores owed, so that their share comes out exactly.
    owed: f64,
}

#[derive(Clone)]
pub struct Stream {
    cores: Vec<Walk>,
    lines: u64,
    pattern: Pattern,
    run: u32,
    stores: f64,
    instructions: u32,
}

impl Stream {
    pub fn build(s: &StreamSpec, site: Site) -> Result<Stream, String> {
        s.check()?;
        let lines = s.buffer.0 / LINE;
        let cores = site
            .cores
            .iter()
            .map(|c| {
                let r = site.map.add(lines, Kind::App, Sharing::Core(*c), site.tenant);
                let mut rng = Rng::new(site.seed, "stream", (*c).into());
                let key = rng.below(u64::MAX);
                let pages = Pages::new(site.map.get(r).base, lines, s.page.0 / LINE, key);
                Walk { pages, at: rng.below(lines), run_left: 0, owed: 0.0 }
            })
            .collect();
        Ok(Stream {
            cores,
            lines,
            pattern: s.access,
            run: s.run_lines,
            stores: 1.0 / s.read_fraction - 1.0,
            instructions: s.instructions,
        })
    }

    pub fn run(&mut self, core: usize, rng: &mut Rng, p: &mut Program) -> u32 {
        let w = &mut self.cores[core];
        for _ in 0..BATCH {
            if self.pattern == Pattern::Random {
                if w.run_left == 0 {
                    w.run_left = self.run;
                    w.at = rng.below(self.lines);
                }
                w.run_left -= 1;
            }
            let line = w.pages.line(w.at);
            w.at = if w.at + 1 == self.lines { 0 } else { w.at + 1 };
            w.owed += self.stores;
            if w.owed >= 1.0 {
                w.owed -= 1.0;
                p.push(Op::Store { line, lines: 1 });
            } else {
                p.push(Op::Load { line, lines: 1 });
            }
            p.compute(self.instructions);
        }
        BATCH
    }
}
