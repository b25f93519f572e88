//! Record of the lines of a range that enter and leave a tag array.

use super::super::received_lines::LineMove;
use super::CacheArray;

impl CacheArray {
    /// Records that the line with `tag`, if there is one, enters a way or leaves it.
    #[cold]
    #[inline(never)]
    pub(super) fn log_move(&mut self, base: u32, way: u32, tag: Option<u32>, comes: bool) {
        let Some(line) = tag.map(|tag| self.line(tag, base)) else { return };
        if let Some((_, notes)) = self.moves.as_mut().filter(|m| m.0.contains(&line)) {
            notes.add(LineMove { line, way, comes });
        }
    }

    /// Insertions and removals since the last call.
    pub(in crate::memory) fn moved(&mut self) -> Vec<LineMove> {
        self.moves.as_mut().map(|m| m.1.take()).unwrap_or_default()
    }
}
