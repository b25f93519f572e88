//! Branch prediction at polls: an out-of-order core runs ahead with the outcome that its predictor expects.

use crate::core::{CoreSpec, Op, Pipeline, Program};
use crate::kernel::{Int, LineAddr};

/// Two-bit saturating counter for a branch, which changes its prediction after two equal outcomes (Smith, A Study of
/// Branch Prediction Strategies, ISCA 1981).
#[derive(Clone, Copy, Default)]
pub(super) struct BranchPredictor(u8);

/// Largest value of the counter; so many equal outcomes leave nothing to learn from a further one.
const FULL: u64 = 3;

/// Skips `polls` polls that find nothing, of `all` places in turn from place `at` on; returns the place of the next poll. `skip`
/// trains the predictor of a place.
pub(super) fn skip_in_turn(at: usize, all: usize, polls: u64, skip: impl FnMut(usize)) -> usize {
    let learned = polls.min(FULL * all.to_u64()).to_usize();
    (at..at + learned).map(|k| k % all).for_each(skip);
    (at + (polls % all.to_u64()).to_usize()) % all
}

impl BranchPredictor {
    /// The predictor of polls on `core`; None for an in-order core, which stops at each poll.
    pub fn of(core: &CoreSpec) -> Option<BranchPredictor> {
        (core.pipeline == Pipeline::OutOfOrder).then(BranchPredictor::default)
    }

    /// Trains the predictor with the outcome of a poll.
    pub fn train(&mut self, found: bool) {
        self.0 = if found { (self.0 + 1).min(3) } else { self.0.saturating_sub(1) };
    }

    /// Trains the predictor with `polls` polls that have found nothing.
    pub fn train_in_vain(&mut self, polls: u64) {
        (0..polls.min(FULL)).for_each(|_| self.train(false));
    }

    fn expects(self) -> bool {
        self.0 >= 2
    }
}

/// Reads `line` and branches on its content. A core that predicts success does not wait for a line whose unit is
/// `there`; otherwise the core waits for the data.
pub(super) fn poll(line: LineAddr, there: bool, foresees: Option<BranchPredictor>, p: &mut Program) {
    p.push(Op::Anchor { line });
    if !(there && foresees.is_some_and(BranchPredictor::expects)) {
        p.push(Op::Await);
    }
}
