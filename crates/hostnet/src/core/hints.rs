//! Queue of prefetch hints at the L2: lines that a device has written for this core, and which the L2 is to prefetch
//! (IDIO, section V-C).

use crate::flow::Domain;
use crate::kernel::{Int, LineAddr, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Treatment of a prefetch hint that finds the queue full; `drop` by default.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HintOverflow {
    /// The hint is lost, and the line stays in the LLC.
    #[default]
    Drop,
    /// The controller keeps the hint until the queue has room.
    Stall,
}

/// Numbers of hints and of their outcomes in the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HintCounts {
    /// Hints that arrived.
    pub came: u64,
    /// Hints that were dropped because the queue was full.
    pub dropped: u64,
    /// Hints whose line the core had or had requested already.
    pub late: u64,
    /// Hints that caused a prefetch.
    pub fetched: u64,
}

/// Hint queue of one core.
#[derive(Clone, Debug)]
pub struct Hints {
    /// Lines of the queued hints, each with its time of arrival.
    queue: VecDeque<(LineAddr, Time)>,
    /// Lines that the device's controller keeps until the queue has room.
    stalled: VecDeque<LineAddr>,
    overflow: HintOverflow,
    /// Entries of the queue, as credits.
    pub places: Domain,
    /// Numbers of hints and of their outcomes in the measured window.
    pub counts: HintCounts,
}

impl Hints {
    /// An empty queue of `places` entries.
    pub fn new(places: u32, overflow: HintOverflow) -> Hints {
        Hints {
            queue: VecDeque::with_capacity(places.to_usize()),
            stalled: VecDeque::new(),
            overflow,
            places: Domain::new(places),
            counts: HintCounts::default(),
        }
    }

    /// Adds a hint for `line`; when the queue is full, drops the hint or leaves the hint with the controller.
    pub fn push(&mut self, line: LineAddr, now: Time) {
        self.counts.came += 1;
        if self.places.take(now) {
            self.queue.push_back((line, now));
        } else if self.overflow == HintOverflow::Stall {
            self.stalled.push_back(line);
        } else {
            self.counts.dropped += 1;
        }
    }

    /// Line of the oldest hint.
    pub fn first(&self) -> Option<LineAddr> {
        self.queue.front().map(|h| h.0)
    }

    /// Removes the oldest hint; `fetched` says whether the hint caused a prefetch, rather than arriving late.
    pub fn pop(&mut self, fetched: bool, now: Time) {
        let Some((_, since)) = self.queue.pop_front() else { return };
        self.places.give(now.max(since), since);
        self.counts.fetched += u64::from(fetched);
        self.counts.late += u64::from(!fetched);
        if let Some(line) = self.stalled.pop_front() {
            self.places.take(now);
            self.queue.push_back((line, now));
        }
    }

    /// Begins the measured window at `now`.
    pub fn restart(&mut self, now: Time) {
        self.places.restart(now);
        self.counts = HintCounts::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The queue holds 32 hints in order of arrival; the overflow policy decides what happens to a hint that finds the
    /// queue full.
    #[test]
    fn a_full_queue_loses_hints_or_keeps_them_for_later() {
        for (overflow, left) in [(HintOverflow::Drop, 32), (HintOverflow::Stall, 40)] {
            let mut h = Hints::new(32, overflow);
            for line in 0..40 {
                h.push(LineAddr(line), Time(line));
            }
            assert_eq!(h.places.used(), 32);
            let out: Vec<LineAddr> = std::iter::from_fn(|| {
                let line = h.first()?;
                h.pop(true, Time(100));
                Some(line)
            })
            .collect();
            assert_eq!(out, (0..left).map(LineAddr).collect::<Vec<_>>(), "{overflow:?}");
            assert_eq!((h.counts.came, h.counts.dropped), (40, 40 - left));
            assert_eq!(h.places.used(), 0);
        }
    }
}
