//! Which of some lines come into an array, and which leave it.

use super::super::received::Move;
use super::{Array, EMPTY};

impl Array {
    /// `tag` comes into a way, or leaves it.
    #[cold]
    #[inline(never)]
    pub(super) fn note_move(&mut self, base: u32, way: u32, tag: u32, comes: bool) {
        let line = self.line(tag, base);
        if let Some((_, notes)) = self.moves.as_mut().filter(|m| tag != EMPTY && m.0.contains(&line)) {
            notes.add(Move { line, way, comes });
        }
    }

    /// What has moved since this was asked last.
    pub(in crate::memory) fn moved(&mut self) -> Vec<Move> {
        self.moves.as_mut().map(|m| m.1.take()).unwrap_or_default()
    }
}
