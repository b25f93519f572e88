//! Threads of applications without requests, whose cores run one batch of operations after another.

use super::{Ctx, Software, Step};
use crate::kernel::Time;

/// A thread that runs an application that serves no packets.
#[derive(Clone, Default)]
pub struct FreeRunning {
    /// Number of operations of the present batch, and the time at which the batch began.
    batch: (u64, Time),
}

impl Software for FreeRunning {
    fn step(&mut self, c: &mut Ctx) -> Step {
        c.program.ops.clear();
        let Some(app) = c.app.as_mut().filter(|_| !c.step.stopped) else { return Step::Idle };
        let Some(operations) = app.free_run(c.step.local, c.rng, c.program) else { return Step::Idle };
        self.batch = (operations.into(), c.step.now);
        c.tally.operations += self.batch.0;
        Step::Run
    }

    fn counted_ahead(&self) -> (u64, Time) {
        self.batch
    }

    fn idle(&self, _since: Time, _now: Time) -> Option<Time> {
        Some(Time::ZERO)
    }
}
