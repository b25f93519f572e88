//! X-Mem: one random read after another over a private array (Sweeper, section VI-E; Gottscho et al., ISPASS 2016).

use super::{AppBuildContext, Application, WorkSource};
use crate::core::{Op, Program};
use crate::kernel::units::Size;
use crate::kernel::{Int, LineAddr, RandomStream};
use crate::memory::LINE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Order in which the words are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReadOrder {
    /// A random line for each read.
    #[default]
    Random,
    /// Every 64-bit word is read once, in a random order that repeats and is the same for all cores. LRU keeps fewer
    /// lines of such a cycle than of random lines. X-Mem follows pointers that it has shuffled; if the shuffle leaves
    /// one cycle, X-Mem's walk equals this order.
    Cycle,
}

/// Largest array in bytes that can be read in a cycle, because the order of a cycle must be stored.
const MOST_WALKED: u64 = 256 << 20;
/// 64-bit words per line.
const WORDS: u64 = LINE / 8;

/// Parameters of X-Mem.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct XmemSpec {
    /// Size of each core's array.
    pub array: Size,
    /// Instructions between two reads. The default is 4.
    #[serde(default = "gap")]
    pub gap_instructions: u32,
    /// Number of chains of dependent reads that are outstanding together. The default is 1.
    #[serde(default = "one")]
    pub parallelism: u32,
    /// Order in which the array is read: "random" (the default) or "cycle" (arrays of up to 256 MiB).
    #[serde(default)]
    pub order: ReadOrder,
}
fn gap() -> u32 {
    4
}
fn one() -> u32 {
    1
}

impl XmemSpec {
    /// Checks that the parameters fit together.
    ///
    /// # Errors
    /// Returns one clause that names key and value.
    pub fn check(&self) -> Result<(), String> {
        if !(LINE..=1 << 40).contains(&self.array.0) {
            return Err(format!("array = \"{}\" is not within 64 B to 1024 GiB", self.array));
        }
        if self.parallelism == 0 {
            return Err("parallelism = 0 must be positive".into());
        }
        if self.order == ReadOrder::Cycle && self.array.0 > MOST_WALKED {
            return Err(format!("array = \"{}\" with order = \"cycle\" is more than 256 MiB", self.array));
        }
        Ok(())
    }
}

const BATCH: u32 = 32;

/// X-Mem: one random read after another over a private array.
#[derive(Clone)]
pub struct Xmem {
    bases: Vec<LineAddr>,
    lines: u64,
    gap: u32,
    parallelism: u32,
    /// Reads of each core since the latest one that waited for an earlier read.
    reads: Vec<u32>,
    walk: Option<CyclicOrder>,
}

/// Repeated order of lines, and the position of each core in it.
#[derive(Clone)]
struct CyclicOrder {
    lines: Arc<[u32]>,
    at: Vec<u32>,
}

impl CyclicOrder {
    fn new(lines: u64, cores: usize, seed: u64) -> CyclicOrder {
        let mut rng = RandomStream::new(seed, "xmem walk", 0);
        let mut order: Vec<u32> = (0..lines * WORDS).map(|word| (word / WORDS).to_u32()).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, rng.below(i.to_u64() + 1).to_usize());
        }
        CyclicOrder { lines: order.into(), at: vec![0; cores] }
    }

    #[inline]
    fn next(&mut self, core: usize) -> u64 {
        let at = &mut self.at[core];
        let line = self.lines[at.to_usize()];
        *at = if at.to_usize() + 1 == self.lines.len() { 0 } else { *at + 1 };
        line.into()
    }
}

impl Application for Xmem {
    type Spec = XmemSpec;
    const WORK: WorkSource = WorkSource::Own;
    const ACCESSES_WORDS: bool = true;

    fn check(s: &XmemSpec, _cores: u32) -> Result<(), String> {
        s.check()
    }

    fn build(s: &XmemSpec, _packet: u32, mut context: AppBuildContext) -> Result<Xmem, String> {
        s.check()?;
        let lines = s.array.0 / LINE;
        let walk = (s.order == ReadOrder::Cycle).then(|| CyclicOrder::new(lines, context.cores.len(), context.seed));
        let bases = context.per_core(lines);
        let reads = vec![0; bases.len()];
        Ok(Xmem { bases, lines, gap: s.gap_instructions, parallelism: s.parallelism, reads, walk })
    }

    fn free_run(&mut self, core: usize, rng: &mut RandomStream, p: &mut Program) -> Option<u32> {
        let mut reads = self.reads[core];
        for _ in 0..BATCH {
            let line = self.bases[core] + self.walk.as_mut().map_or_else(|| rng.below(self.lines), |w| w.next(core));
            p.push(if reads == 0 { Op::Chase { line, delay: 0 } } else { Op::Load { line, lines: 1 } });
            reads = if reads + 1 == self.parallelism { 0 } else { reads + 1 };
            p.compute(self.gap);
        }
        self.reads[core] = reads;
        Some(BATCH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{TenantId, ThreadId};
    use crate::memory::region::AddressMap;

    /// First lines that core number `core` of two cores reads, relative to the start of its array.
    fn reads(app: &mut Xmem, core: usize, n: usize) -> Vec<u64> {
        let (mut rng, mut p) = (RandomStream::new(1, "test", 0), Program::default());
        while p.ops.len() < 2 * n {
            app.free_run(core, &mut rng, &mut p);
        }
        let line = |o: &Op| if let Op::Chase { line, .. } = o { Some(*line - app.bases[core]) } else { None };
        p.ops.iter().filter_map(line).take(n).collect()
    }

    fn xmem(text: &str) -> Result<Xmem, String> {
        let spec: XmemSpec = toml::from_str(text).unwrap();
        let mut map = AddressMap::default();
        let context = AppBuildContext::new(&mut map, TenantId(0), &[ThreadId(0), ThreadId(1)], 1);
        Xmem::build(&spec, 0, context)
    }

    #[test]
    fn a_cycle_reads_every_word_once_and_then_again_in_the_same_order() {
        let mut app = xmem("array = \"64 KiB\"\norder = \"cycle\"").unwrap();
        let words = (64 << 10) / 8;
        let two = reads(&mut app, 0, 2 * words);
        let (first, second) = two.split_at(words);
        assert_eq!(first, second);
        let mut times = vec![0; words / 8];
        first.iter().for_each(|l| times[*l as usize] += 1);
        assert!(times.iter().all(|n| *n == 8), "eight words a line");
        assert!(first.windows(2).filter(|w| w[0] == w[1]).count() < words / 100, "in no sequence");
        assert_eq!(reads(&mut app, 1, words), first, "one order for all cores");
    }

    #[test]
    fn lru_keeps_less_of_a_cycle_than_of_drawn_lines() {
        // A line of eight words is absent from the last t of the cycle's words with probability (1-t)^8, and a read
        // misses with probability (1-t)^7: where LRU keeps half of the lines, 2^(-7/8) = 0.545 of reads miss. For
        // random lines the share is one half.
        for (order, miss) in [("cycle", 0.545), ("random", 0.5)] {
            let mut app = xmem(&format!("array = \"256 KiB\"\norder = \"{order}\"")).unwrap();
            let lines = reads(&mut app, 0, 96 << 10);
            let (mut stack, mut missed) = (Vec::<u64>::new(), 0);
            for (i, l) in lines.iter().enumerate() {
                let at = stack.iter().rposition(|s| s == l);
                missed += u32::from(at.is_none() && i >= 32 << 10);
                at.map(|a| stack.remove(a));
                stack.push(*l);
                if stack.len() > 2048 {
                    stack.remove(0);
                }
            }
            let share = f64::from(missed) / f64::from(64 << 10);
            assert!((share - miss).abs() < 0.01, "{order}: {share}");
        }
    }

    /// One read of each round of `parallelism` reads waits for that of the round before, and each core counts its own.
    #[test]
    fn a_read_in_so_many_waits_for_the_one_before() {
        for parallelism in [1, 3, 16, 31, 32, 48, 100] {
            let mut app =
                xmem(&format!("array = \"1 MiB\"\ngap_instructions = 0\nparallelism = {parallelism}")).unwrap();
            let (mut rng, mut programs) = (RandomStream::new(1, "test", 0), [Program::default(), Program::default()]);
            for core in [0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0] {
                app.free_run(core, &mut rng, &mut programs[core]);
            }
            for p in programs {
                for (i, op) in p.ops.iter().enumerate() {
                    assert_eq!(matches!(op, Op::Chase { .. }), i % parallelism == 0, "read {i} with {parallelism}");
                }
            }
        }
    }

    #[test]
    fn an_array_whose_order_would_be_too_long_is_refused() {
        let e = xmem("array = \"257 MiB\"\norder = \"cycle\"").err().unwrap();
        assert!(e.contains("257 MiB") && e.contains("256 MiB"), "{e}");
    }
}
