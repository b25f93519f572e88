//! Contents of a tag array: the lines that the array holds, and counts of the lines in a range.

use super::super::ways::{bits, Block, TAGS};
use super::CacheArray;
use crate::kernel::{Int, LineAddr};
use std::ops::Range;

impl CacheArray {
    /// Lines that the array holds, each with its way and whether it is dirty.
    pub fn iter(&self) -> impl Iterator<Item = (LineAddr, u32, bool)> + '_ {
        self.tagged(TAGS)
    }

    /// Lines within the non-empty range `lines` that the array holds, each with its way and whether it is dirty.
    pub fn iter_within(&self, lines: Range<LineAddr>) -> impl Iterator<Item = (LineAddr, u32, bool)> + '_ {
        let tag = |line: LineAddr| (line.0 >> self.set_bits).to_u32();
        self.tagged(tag(lines.start)..tag(lines.end - 1) + 1).filter(move |l| lines.contains(&l.0))
    }

    /// Smallest range that contains all lines with the same tags as `lines`.
    pub fn lines_of_tags(&self, lines: &Range<LineAddr>) -> Range<LineAddr> {
        let all = |line: u64| LineAddr(line << self.set_bits);
        all(lines.start.0 >> self.set_bits)..all(lines.end.0.div_ceil(1 << self.set_bits))
    }

    /// Number of the lines in `lines`, a range from `lines_of_tags`, that the array holds, and how many of them are in
    /// `ways`.
    pub fn count(&self, lines: &Range<LineAddr>, ways: u32) -> (u64, u64) {
        let tag = |line: LineAddr| (line.0 >> self.set_bits).to_u32();
        let (first, tags) = (tag(lines.start), tag(lines.end) - tag(lines.start));
        self.blocks.chunks_exact(1 << u32::from(self.wide)).fold((0, 0), |(all, some), set| {
            let found = set.iter().rev().fold(0, |found, block| found << 16 | block.within(first, tags)) & self.all;
            (all + u64::from(found.count_ones()), some + u64::from((found & ways).count_ones()))
        })
    }

    fn tagged(&self, among: Range<u32>) -> impl Iterator<Item = (LineAddr, u32, bool)> + '_ {
        (0..self.sets).flat_map(move |set| {
            let base = set << u32::from(self.wide);
            let last = self.last(base);
            let within = |block: &Block| block.within(among.start, among.end - among.start);
            let mut found = within(&self.blocks[base.to_usize()]);
            if self.wide {
                found |= within(self.last_block(base)) << 16;
            }
            bits(found & self.all)
                .filter_map(move |w| Some((self.line(self.tag(base, w)?, base), w, last >> w & 1 == 1)))
        })
    }
}
