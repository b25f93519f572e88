//! Prefetchers of the L1 (Intel 64 and IA-32 Architectures Optimization Reference Manual, "Data Prefetching to L1"):
//! the next line behind ascending loads ("DCU"), and the stride of an instruction ("DCU IP").
//!
//! The prefetchers follow loads only, hits and misses alike. A prefetched line lies in the load's page of 4 KiB. The
//! prefetchers pause while many misses are outstanding and behind a run of stores. Instructions have no address in this
//! model; the kind of an op and the region that the op loads from take the place of an address. Distances are whole
//! lines.

use super::prefetch::PAGE;
use crate::kernel::units::Size;
use crate::kernel::{Int, LineAddr};
use crate::memory::LINE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Prefetchers of the L1: a next-line prefetcher and a stride prefetcher.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct L1PrefetchSpec {
    /// Whether the L1's prefetchers work.
    pub enabled: bool,
    /// Habits of the L1's prefetchers, which a platform sets; scenarios leave them alone.
    pub quirks: L1PrefetchQuirks,
}

/// Maximum number of a core's line fill buffers.
pub const MOST_LFB: u32 = 48;

/// Habits of the prefetchers of the L1 that processors differ in.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct L1PrefetchQuirks {
    /// Number of most recently loaded lines that the next-line prefetcher remembers; 0 disables the prefetcher. A load
    /// of the line that follows a remembered line, or several loads of one line, make the prefetcher fetch the line
    /// after the loaded one.
    pub recent: u32,
    /// Number of instructions whose strides the stride prefetcher follows; 0 disables the prefetcher. Each load at its
    /// instruction's stride prefetches the line one stride further on.
    pub instructions: u32,
    /// Longest stride that the stride prefetcher follows, between 64 B and 4 KiB; longer distances between loads are
    /// ignored.
    pub longest: Size,
    /// Number of loads at one distance, including the first load, at or above which the stride prefetcher fetches
    /// lines.
    pub trigger: u32,
    /// Number of line fill buffers (`core.lfb`) in use at which the L1's prefetchers pause. On a core with fewer, they pause
    /// when all are in use.
    pub misses: u32,
    /// Number of consecutive stores, counted in lines, after which the next load prefetches nothing.
    pub stores: u32,
}

impl L1PrefetchSpec {
    /// Checks that every value is within its range.
    ///
    /// # Errors
    /// Fails with one clause that names key and value.
    pub fn check(&self) -> Result<(), String> {
        for (key, v, least, most) in [
            ("quirks.recent", self.quirks.recent, 0, 64),
            ("quirks.instructions", self.quirks.instructions, 0, 256),
            ("quirks.trigger", self.quirks.trigger, 2, 16),
            ("quirks.misses", self.quirks.misses, 1, MOST_LFB),
            ("quirks.stores", self.quirks.stores, 1, 1024),
        ] {
            if !(least..=most).contains(&v) {
                return Err(format!("{key} = {v} is not within {least} to {most}"));
            }
        }
        if !(LINE..PAGE * LINE).contains(&self.quirks.longest.0) {
            return Err(format!(
                "quirks.longest = \"{}\" is not within a line and a page of 4 KiB",
                self.quirks.longest
            ));
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug)]
struct L1StrideEntry {
    instruction: u32,
    last: LineAddr,
    stride: i64,
    /// Consecutive loads at the stride, including the first load.
    run: u32,
    used: u64,
}

/// The prefetchers of one L1.
#[derive(Clone, Debug)]
pub struct L1Prefetcher {
    /// Most recently loaded lines, oldest first.
    recent: VecDeque<LineAddr>,
    recent_most: usize,
    entries: Vec<L1StrideEntry>,
    most: usize,
    /// Longest stride, in lines.
    longest: i64,
    trigger: u32,
    /// Number of line fill buffers in use at which the prefetchers pause.
    pub misses: u32,
    stores: u32,
    /// Stores since the last load.
    in_a_row: u32,
    tick: u64,
}

impl L1Prefetcher {
    /// The prefetchers that `s` describes; None if they are disabled.
    pub fn new(s: &L1PrefetchSpec) -> Option<L1Prefetcher> {
        s.enabled.then(|| L1Prefetcher {
            recent: VecDeque::with_capacity(s.quirks.recent.to_usize()),
            recent_most: s.quirks.recent.to_usize(),
            entries: Vec::with_capacity(s.quirks.instructions.to_usize()),
            most: s.quirks.instructions.to_usize(),
            longest: (s.quirks.longest.0 / LINE).cast_signed(),
            trigger: s.quirks.trigger,
            misses: s.quirks.misses,
            stores: s.quirks.stores,
            in_a_row: 0,
            tick: 0,
        })
    }

    /// Notes a store to a line.
    #[inline]
    pub fn store(&mut self) {
        self.in_a_row = self.in_a_row.saturating_add(1);
    }

    /// Observes a load of `line` by `instruction`; `several` says that the line is loaded several times. Returns the
    /// lines to prefetch: the next line, and the line one stride further on.
    pub fn load(&mut self, instruction: u32, line: LineAddr, several: bool) -> [Option<LineAddr>; 2] {
        let paused = std::mem::take(&mut self.in_a_row) >= self.stores;
        let (next, stride) = (self.next_line(line, several), self.at_stride(instruction, line));
        let in_page = |l: &LineAddr| l.0 / PAGE == line.0 / PAGE && !paused;
        [next.filter(in_page), stride.filter(in_page).filter(|s| next != Some(*s))]
    }

    fn next_line(&mut self, line: LineAddr, several: bool) -> Option<LineAddr> {
        if self.recent_most == 0 {
            return None;
        }
        let ascends = several || self.recent.iter().any(|l| *l + 1 == line);
        if !self.recent.contains(&line) {
            if self.recent.len() == self.recent_most {
                self.recent.pop_front();
            }
            self.recent.push_back(line);
        }
        ascends.then_some(line + 1)
    }

    fn at_stride(&mut self, instruction: u32, line: LineAddr) -> Option<LineAddr> {
        self.tick += 1;
        let Some(e) = self.entries.iter_mut().find(|e| e.instruction == instruction) else {
            if self.most > 0 {
                if self.entries.len() == self.most {
                    let oldest = (0..self.most).min_by_key(|i| self.entries[*i].used)?;
                    self.entries.swap_remove(oldest);
                }
                self.entries.push(L1StrideEntry { instruction, last: line, stride: 0, run: 1, used: self.tick });
            }
            return None;
        };
        e.used = self.tick;
        let stride = line.signed_offset_from(e.last);
        e.last = line;
        if stride == e.stride {
            e.run = e.run.saturating_add(1);
        } else {
            (e.stride, e.run) = (stride, 2);
        }
        let follows = stride != 0 && stride.abs() <= self.longest && e.run >= self.trigger;
        follows.then(|| line.offset_by(stride))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(recent: u32, instructions: u32) -> L1Prefetcher {
        let s = L1PrefetchSpec {
            enabled: true,
            quirks: L1PrefetchQuirks { recent, instructions, longest: Size(2048), trigger: 3, misses: 6, stores: 4 },
        };
        s.check().unwrap();
        L1Prefetcher::new(&s).unwrap()
    }

    fn fetched(p: &mut L1Prefetcher, instruction: u32, lines: &[u64]) -> Vec<Vec<u64>> {
        let load = |l: &u64| p.load(instruction, LineAddr(*l), false).into_iter().flatten().map(|l| l.0).collect();
        lines.iter().map(load).collect()
    }

    /// Intel's manual: an ascending access to recently loaded data prefetches the next line, and no prefetch crosses a
    /// page.
    #[test]
    fn a_load_behind_a_recent_line_fetches_the_next_one_in_its_page() {
        let mut p = of(2, 0);
        let none = Vec::<u64>::new;
        assert_eq!(fetched(&mut p, 0, &[10, 11, 12]), [none(), vec![12], vec![13]]);
        assert_eq!(fetched(&mut p, 0, &[40, 39, 38]), [none(), none(), none()], "no descent");
        assert_eq!(fetched(&mut p, 0, &[20, 30, 21, 50, 51, 31]), [none(), none(), vec![22], none(), vec![52], none()]);
        assert_eq!(fetched(&mut p, 0, &[62, 63]), [none(), none()], "line 64 is another page's");
        assert_eq!(p.load(0, LineAddr(90), true), [Some(LineAddr(91)), None], "several loads of one line ascend");
    }

    /// Intel's manual: a load with a regular stride of up to 2 KiB, forward or backward, prefetches the sum of address
    /// and stride.
    #[test]
    fn a_load_at_its_instruction_s_stride_fetches_one_line_at_that_distance() {
        let mut p = of(0, 8);
        let none = Vec::<u64>::new;
        assert_eq!(fetched(&mut p, 1, &[0, 3, 6, 9]), [none(), none(), vec![9], vec![12]]);
        assert_eq!(fetched(&mut p, 2, &[60, 55, 50]), [none(), none(), vec![45]]);
        assert_eq!(fetched(&mut p, 1, &[10, 11, 12]), [none(), vec![12], vec![13]], "9, 10 and 11 are another stride");
        assert_eq!(fetched(&mut p, 3, &[0, 33]), [none(), none()]);
        assert_eq!(fetched(&mut p, 4, &[64, 96, 64, 96]), [none(), none(), none(), none()]);
        assert_eq!(fetched(&mut p, 5, &[128, 144, 160]), [none(), none(), vec![176]]);
        assert_eq!(fetched(&mut p, 6, &[256, 284, 312]), [none(), none(), none()], "340 is in the next page");
        assert_eq!(fetched(&mut p, 7, &[384, 384, 384]), [none(), none(), none()], "a poll has no stride");
    }

    #[test]
    fn strides_beyond_the_longest_are_not_followed() {
        // Four lines within a page are at most 21 apart, so a longest stride of 20 lines stands for the 32 lines of
        // 2 KiB.
        let mut p = L1Prefetcher { longest: 20, ..of(0, 8) };
        let at = |stride: u64| [64 * 9, 64 * 9 + stride, 64 * 9 + 2 * stride];
        assert_eq!(fetched(&mut p, 1, &at(20)).concat(), [64 * 9 + 60]);
        assert!(fetched(&mut p, 2, &at(21)).concat().is_empty());
    }

    #[test]
    fn nothing_is_fetched_behind_a_run_of_stores() {
        let mut p = of(2, 8);
        for (stores, want) in [(3, Some(LineAddr(2))), (4, None)] {
            p.load(0, LineAddr(0), false);
            (0..stores).for_each(|_| p.store());
            assert_eq!(p.load(1, LineAddr(1), false)[0], want, "{stores} stores before the load");
        }
    }

    #[test]
    fn a_full_table_forgets_the_instruction_that_loaded_longest_ago() {
        let mut p = of(0, 2);
        for (instruction, line) in [(1, 0), (2, 0), (1, 1), (3, 0), (1, 2)] {
            let got = p.load(instruction, LineAddr(line), false)[1];
            assert_eq!(got, (line == 2).then_some(LineAddr(3)));
        }
        assert_eq!(fetched(&mut p, 2, &[1, 2]).concat(), Vec::<u64>::new(), "2 was forgotten");
    }
}
