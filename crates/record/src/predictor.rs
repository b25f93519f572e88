//! A branch predictor that stands for those of current cores: which branches of a recording are predicted wrongly.
//!
//! Conditional branches: counters of two bits by address, and by address and the last 12 outcomes, of which a third
//! table of counters chooses. Indirect branches: the last target by address and the last 4 targets. Returns: a stack of
//! 32 entries. A branch that was never seen counts as predicted, because the program executed it before the recording
//! began.

use crate::instruction::Branch;
use std::collections::HashMap;

const HISTORY: u64 = (1 << 12) - 1;
const DEEPEST: usize = 32;

/// Branch predictor of a thread.
#[derive(Default)]
pub(crate) struct Predictor {
    local: HashMap<u64, u8>,
    global: HashMap<(u64, u64), u8>,
    choice: HashMap<u64, u8>,
    outcomes: u64,
    targets: HashMap<(u64, u64), u64>,
    last: HashMap<u64, u64>,
    path: u64,
    returns: Vec<u64>,
}

impl Predictor {
    /// Whether a branch at `rip`, in front of the instruction at `next`, is predicted to lead to `target`; learns that it
    /// does.
    pub(crate) fn predicts(&mut self, branch: Branch, rip: u64, next: u64, target: u64) -> bool {
        if matches!(branch, Branch::Call | Branch::IndirectCall) {
            self.returns.push(next);
            if self.returns.len() > DEEPEST {
                self.returns.remove(0);
            }
        }
        match branch {
            Branch::Direct | Branch::Call => true,
            Branch::Return => self.returns.pop().is_none_or(|expected| expected == target),
            Branch::Indirect | Branch::IndirectCall => self.indirect(rip, target),
            Branch::Conditional => self.conditional(rip, target != next),
        }
    }

    fn indirect(&mut self, rip: u64, target: u64) -> bool {
        let by_path = self.targets.insert((rip, self.path), target);
        let last = self.last.insert(rip, target);
        self.path = (self.path << 8 ^ target >> 2) & 0xffff_ffff;
        by_path.or(last).is_none_or(|expected| expected == target)
    }

    fn conditional(&mut self, rip: u64, taken: bool) -> bool {
        let start = if taken { 2 } else { 1 };
        let known = self.local.contains_key(&rip);
        let local = self.local.entry(rip).or_insert(start);
        let by_local = *local > 1;
        learn(local, taken);
        let global = self.global.entry((rip, self.outcomes)).or_insert(if by_local { 2 } else { 1 });
        let by_global = *global > 1;
        learn(global, taken);
        let choice = self.choice.entry(rip).or_insert(1);
        let predicted = if *choice > 1 { by_global } else { by_local };
        if by_local != by_global {
            learn(choice, by_global == taken);
        }
        self.outcomes = (self.outcomes << 1 | u64::from(taken)) & HISTORY;
        !known || predicted == taken
    }
}

fn learn(counter: &mut u8, up: bool) {
    *counter = if up { (*counter + 1).min(3) } else { counter.saturating_sub(1) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a loop of 10 iterations, counters by address miss each exit; the outcomes of the last 12 branches tell the
    /// exit.
    #[test]
    fn a_loop_of_ten_iterations_is_learnt() {
        let mut p = Predictor::default();
        let mut wrong = |loops: u32| {
            (0..loops * 10)
                .filter(|i| !p.predicts(Branch::Conditional, 0x40, 0x42, if i % 10 == 9 { 0x42 } else { 0x20 }))
                .count()
        };
        assert!(wrong(10) <= 10);
        assert_eq!(wrong(10), 0);
    }

    #[test]
    fn returns_and_targets_are_remembered() {
        let mut p = Predictor::default();
        assert!(p.predicts(Branch::Call, 0x10, 0x15, 0x100));
        assert!(p.predicts(Branch::Return, 0x108, 0x109, 0x15));
        p.predicts(Branch::Call, 0x10, 0x15, 0x100);
        assert!(!p.predicts(Branch::Return, 0x108, 0x109, 0x99));
        assert!(p.predicts(Branch::Indirect, 0x200, 0x202, 0x300), "never seen");
        assert!(!p.predicts(Branch::Indirect, 0x200, 0x202, 0x400));
    }
}
