//! What an out-of-order core does at a poll: it goes on as a branch predictor expects the poll to end.

use crate::core::{CoreSpec, Op, Pipeline, Program};
use crate::kernel::LineAddr;

/// Two bits for a branch: what came twice in a row is expected (Smith, A Study of Branch Prediction Strategies, ISCA 1981).
#[derive(Clone, Copy, Default)]
pub(super) struct Foresight(u8);

impl Foresight {
    /// That of a `core`'s polls; None where it is in order and stops at each.
    pub fn of(core: &CoreSpec) -> Option<Foresight> {
        (core.pipeline == Pipeline::OutOfOrder).then(Foresight::default)
    }

    /// A poll has found something, or nothing.
    pub fn learn(&mut self, found: bool) {
        self.0 = if found { (self.0 + 1).min(3) } else { self.0.saturating_sub(1) };
    }

    fn expects(self) -> bool {
        self.0 >= 2
    }
}

/// Reads `line` and branches on it. What is `there` is found at once by a core that foresees it; else the core waits for the data.
pub(super) fn poll(line: LineAddr, there: bool, foresees: Option<Foresight>, p: &mut Program) {
    p.push(Op::Anchor { line });
    if !(there && foresees.is_some_and(Foresight::expects)) {
        p.push(Op::Await);
    }
}
