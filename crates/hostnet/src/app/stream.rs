//! Memory streams: every core walks a private buffer far larger than the caches and keeps its line fill buffers full
//! (the modified STREAM of "Understanding the Host Network", section 2.2).

use super::{AppBuildContext, Application, WorkSource};
use crate::core::{Op, Program};
use crate::kernel::units::Size;
use crate::kernel::RandomStream;
use crate::memory::region::{Contiguous, Pages, Sharing};
use crate::memory::LINE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Order in which the lines are accessed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccessOrder {
    /// Consecutive lines.
    #[default]
    Sequential,
    /// Runs of `run_lines` consecutive lines from random places.
    Random,
}

/// Parameters of memory streams.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamSpec {
    /// Size of each core's buffer.
    pub buffer: Size,
    /// Share of reads in all memory traffic (0.5 to 1). With 1, the default, there are only loads; with 0.5 every line
    /// is stored to.
    #[serde(default = "all")]
    pub read_fraction: f64,
    /// Order in which the lines are accessed: "sequential" (the default) or "random".
    #[serde(default)]
    pub access: AccessOrder,
    /// Number of consecutive lines in a run, with `access = "random"`. The default is 1.
    #[serde(default = "one")]
    pub run_lines: u32,
    /// Instructions per line in addition to the access: address, arithmetic, loop. The default is 3.
    #[serde(default = "instructions")]
    pub instructions: u32,
    /// Contiguity of the buffer's physical memory: "buddy" (the default) for memory as Linux's buddy allocator provides
    /// it, or the size of contiguous pieces, such as "32 KiB". The pieces lie anywhere in memory.
    #[serde(default)]
    pub contiguous: Contiguous,
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
    /// Checks that the parameters fit together.
    ///
    /// # Errors
    /// Returns one clause that names key and value.
    pub fn check(&self) -> Result<(), String> {
        if !(0.5..=1.0).contains(&self.read_fraction) {
            return Err(format!(
                "read_fraction = {} is not within 0.5 (every line stored to) to 1 (loads only)",
                self.read_fraction
            ));
        }
        self.contiguous.check(Size(LINE))?;
        if self.buffer.0 == 0 || self.buffer.0 > 1 << 40 || self.buffer.0 % LINE != 0 {
            return Err(format!("buffer = \"{}\" is not a multiple of 64 B up to 1024 GiB", self.buffer));
        }
        if self.run_lines == 0 || u64::from(self.run_lines) > self.buffer.0 / LINE {
            return Err(format!("run_lines = {} is not within 1 to the buffer's lines", self.run_lines));
        }
        Ok(())
    }
}

/// Number of lines that a core accesses in one program.
const BATCH: u32 = 64;

#[derive(Clone)]
struct StreamCursor {
    pages: Pages,
    at: u64,
    run_left: u32,
    /// Fraction of a store that has been carried over, so that the share of stores is exact.
    owed: f64,
}

/// Memory streams, one on each core.
#[derive(Clone)]
pub struct StreamApp {
    cores: Vec<StreamCursor>,
    lines: u64,
    pattern: AccessOrder,
    run: u32,
    stores: f64,
    instructions: u32,
}

impl Application for StreamApp {
    type Spec = StreamSpec;
    const WORK: WorkSource = WorkSource::Own;

    fn check(s: &StreamSpec, _cores: u32) -> Result<(), String> {
        s.check()
    }

    fn build(s: &StreamSpec, _packet: u32, context: AppBuildContext) -> Result<StreamApp, String> {
        s.check()?;
        let lines = s.buffer.0 / LINE;
        let cores = context
            .cores
            .iter()
            .map(|c| {
                let mut rng = RandomStream::new(context.seed, "stream", c.0.into());
                let buffer = (lines, s.contiguous, rng.below(u64::MAX));
                let pages = context.map.add_pieces(buffer, Sharing::of_thread(*c), context.tenant);
                StreamCursor { pages, at: rng.below(lines), run_left: 0, owed: 0.0 }
            })
            .collect();
        Ok(StreamApp {
            cores,
            lines,
            pattern: s.access,
            run: s.run_lines,
            stores: 1.0 / s.read_fraction - 1.0,
            instructions: s.instructions,
        })
    }

    fn free_run(&mut self, core: usize, rng: &mut RandomStream, p: &mut Program) -> Option<u32> {
        let w = &mut self.cores[core];
        for _ in 0..BATCH {
            if self.pattern == AccessOrder::Random {
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
        Some(BATCH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{TenantId, ThreadId};
    use crate::memory::region::AddressMap;

    /// Lines of one round through a buffer, beginning with the buffer's first line.
    fn round(buffer: &str, contiguous: &str) -> Vec<u64> {
        let text = format!("buffer = \"{buffer}\"\ncontiguous = \"{contiguous}\"");
        let spec: StreamSpec = toml::from_str(&text).unwrap();
        let mut map = AddressMap::default();
        let mut s = StreamApp::build(&spec, 0, AppBuildContext::new(&mut map, TenantId(0), &[ThreadId(0)], 1)).unwrap();
        s.cores[0].at = 0;
        let (mut rng, mut p) = (RandomStream::new(1, "test", 0), Program::default());
        while p.ops.iter().filter(|o| matches!(o, Op::Load { .. })).count() < s.lines as usize {
            s.free_run(0, &mut rng, &mut p);
        }
        let line = |o: &Op| if let Op::Load { line, .. } = o { Some(line.0) } else { None };
        p.ops.iter().filter_map(line).take(s.lines as usize).collect()
    }

    #[test]
    fn neighbouring_lines_stay_together_within_a_piece_only() {
        let lines = round("1 MiB", "16 KiB");
        let breaks = lines.windows(2).filter(|w| w[1] != w[0] + 1).count();
        assert!((50..64).contains(&breaks), "{breaks} breaks in 64 pieces, some of which follow each other by chance");
        assert!(lines.chunks(256).all(|c| c[0] % 256 == lines[0] % 256 && c.windows(2).all(|w| w[1] == w[0] + 1)));
    }

    #[test]
    fn a_buffer_smaller_than_a_piece_is_contiguous() {
        let lines = round("4 KiB", "64 KiB");
        assert_eq!(lines.len(), 64);
        assert!(lines.windows(2).all(|w| w[1] == w[0] + 1));
    }
}
