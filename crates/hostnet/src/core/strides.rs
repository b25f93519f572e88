//! Stride prefetcher and its queue: gem5's StridePrefetcher (src/mem/cache/prefetch/stride.cc) and queue (queued.cc),
//! with the parameters of Prefetcher.py.
//!
//! Each instruction has an entry with its last line, a stride and a confidence. An access at the stride raises the
//! confidence; any other access lowers it, and once the confidence is below the threshold the new distance replaces the
//! stride. At or above the threshold, lines at the distance of the last two accesses are prefetched, even if this
//! distance is not the stride (after a jump). Instructions have no address in this model; the table is fully
//! associative and replaces the entry used least recently, where gem5's table has four ways.

use super::prefetch::PAGE;
use crate::kernel::{Int, LineAddr, Time};
use std::collections::VecDeque;

/// Largest and initial value of a confidence counter of 3 bits (`confidence_counter_bits`, `initial_confidence`).
const SURE: u32 = 7;
const BEGIN: u32 = 4;

#[derive(Clone, Copy, Debug)]
struct StrideEntry {
    instruction: u32,
    last: LineAddr,
    stride: i64,
    confidence: u32,
    used: u64,
}

/// Table of the instructions that the prefetcher follows.
#[derive(Clone, Debug)]
pub struct Strides {
    entries: Vec<StrideEntry>,
    most: usize,
    degree: i64,
    /// Smallest confidence at which the prefetcher fetches.
    threshold: u32,
}

impl Strides {
    /// Makes a table of `most` instructions; at the access number `trigger`, the stride of a new instruction counts as
    /// confirmed.
    pub fn new(most: u32, degree: u32, trigger: u32) -> Strides {
        // The second access lowers the confidence by one, and each access that confirms the stride raises it by one.
        let threshold = BEGIN - 1 + (trigger - 2);
        Strides {
            entries: Vec::with_capacity(most.to_usize()),
            most: most.to_usize(),
            degree: degree.into(),
            threshold,
        }
    }

    /// Observes that `instruction` requests `line`: returns the first line to prefetch, the distance to the next one,
    /// and the number of lines.
    pub fn observe(&mut self, instruction: u32, line: LineAddr, tick: u64) -> (LineAddr, i64, i64) {
        let Some(e) = self.entries.iter_mut().find(|e| e.instruction == instruction) else {
            if self.entries.len() == self.most {
                let oldest = (0..self.most).min_by_key(|i| self.entries[*i].used).expect("some entries");
                self.entries.swap_remove(oldest);
            }
            self.entries.push(StrideEntry { instruction, last: line, stride: 0, confidence: BEGIN, used: tick });
            return (line, 0, 0);
        };
        e.used = tick;
        let stride = line.signed_offset_from(e.last);
        e.last = line;
        if stride == e.stride && stride != 0 {
            e.confidence = (e.confidence + 1).min(SURE);
        } else {
            e.confidence = e.confidence.saturating_sub(1);
            if e.confidence < self.threshold {
                e.stride = stride;
            }
        }
        if e.confidence < self.threshold {
            return (line, 0, 0);
        }
        let step = if stride == 0 { 1 } else { stride }; // strides below a line are rounded up to one
        let at = (line.0 % PAGE).cast_signed();
        let in_page = if step > 0 { (PAGE.cast_signed() - 1 - at) / step } else { at / -step };
        (line.offset_by(step), step, in_page.min(self.degree))
    }
}

/// Prefetches that wait for a free MSHR of the L2, oldest first, each with the time at which its wait began.
#[derive(Clone, Debug)]
pub struct WaitingPrefetches {
    queue: VecDeque<(LineAddr, Time)>,
    places: usize,
    /// Prefetches of a core that has run ahead of the calendar, each with the time at which it joins the queue.
    later: VecDeque<(LineAddr, Time)>,
}

impl WaitingPrefetches {
    /// An empty queue of `places` entries.
    pub fn new(places: u32) -> WaitingPrefetches {
        let places = places.to_usize();
        WaitingPrefetches { queue: VecDeque::with_capacity(places), places, later: VecDeque::new() }
    }

    /// Whether prefetches can wait, that is, whether the queue has any entries.
    #[inline]
    pub fn is_used(&self) -> bool {
        self.places > 0
    }
    /// Whether no prefetch is queued.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether no prefetch is queued or deferred.
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.later.is_empty()
    }

    /// Removes the waiting prefetch of `line`, because an access requests the line itself (`queue_squash`).
    pub fn drop_line(&mut self, line: LineAddr) {
        self.queue.retain(|w| w.0 != line);
    }

    /// Queues a prefetch of `line` at `at`, unless a prefetch of the line waits already (`queue_filter`); a full queue
    /// drops the oldest.
    pub fn push(&mut self, line: LineAddr, at: Time) {
        if self.queue.iter().any(|w| w.0 == line) {
            return;
        }
        if self.queue.len() == self.places {
            self.queue.pop_front();
        }
        self.queue.push_back((line, at));
    }

    /// Removes the oldest prefetch from the queue; returns its line and the time at which it was queued.
    pub fn pop(&mut self) -> Option<(LineAddr, Time)> {
        self.queue.pop_front()
    }

    /// Defers a prefetch of `line` until the calendar reaches `at`.
    pub fn defer(&mut self, line: LineAddr, at: Time) {
        if !self.later.iter().any(|w| w.0 == line) {
            self.later.push_back((line, at));
        }
    }

    /// Removes the deferred prefetch of `line` that an access at `at` overtakes, and returns the prefetch's time.
    pub fn overtaken(&mut self, line: LineAddr, at: Time) -> Option<Time> {
        let i = self.later.iter().position(|w| w.0 == line && w.1 < at)?;
        self.later.remove(i).map(|w| w.1)
    }

    /// Queues the deferred prefetches whose time is `horizon` or earlier.
    pub fn ripen(&mut self, horizon: Time) {
        while let Some(i) = self.later.iter().position(|w| w.1 <= horizon) {
            let (line, at) = self.later.remove(i).expect("it is there");
            self.push(line, at);
        }
    }

    /// Time of the earliest deferred prefetch.
    pub fn next(&self) -> Option<Time> {
        self.later.iter().map(|w| w.1).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines that an access of `instruction` prefetches, as distances from the first line of the page.
    fn fetched(s: &mut Strides, instruction: u32, page: u64, at: u64) -> Vec<u64> {
        let first = LineAddr(page * PAGE);
        let (from, step, n) = s.observe(instruction, first + at, 0);
        (0..n).map(|i| from.offset_by(i * step) - first).collect()
    }

    /// Confidences computed by hand from stride.cc with a degree of 8, as released: 4 (new), 3, 4, 5, 6; 5 at the jump,
    /// which prefetches at the jump's distance; 6. In the next page the confidence is 5, without a prefetch because all
    /// 8 lines lie in other pages; 6.
    #[test]
    fn an_instruction_goes_on_at_its_stride_behind_a_jump_and_in_a_new_page() {
        let mut s = Strides::new(64, 8, 3);
        let eight = |from: u64| (from..from + 8).collect::<Vec<_>>();
        for (page, at, want) in [
            (9, 0, vec![]),
            (9, 1, vec![]),
            (9, 2, eight(3)),
            (9, 3, eight(4)),
            (9, 4, eight(5)),
            (9, 20, vec![36, 52]),
            (9, 21, eight(22)),
            (40, 60, vec![]),
            (40, 61, vec![62, 63]),
        ] {
            assert_eq!(fetched(&mut s, 1, page, at), want, "line {at} of page {page}");
        }
    }

    /// A jump lowers the confidence by one, and below the threshold of 4 the last distance becomes the stride.
    /// Confidences: 5 after four lines, then 4, 3, 2 (with a stride of 3), 3, 4.
    #[test]
    fn a_stride_that_no_longer_holds_is_replaced_once_confidence_is_low() {
        let mut s = Strides::new(64, 2, 3);
        for at in 0..4 {
            fetched(&mut s, 1, 1, at);
        }
        for (at, want) in [(10, vec![17, 24]), (8, vec![]), (11, vec![]), (14, vec![]), (17, vec![20, 23])] {
            assert_eq!(fetched(&mut s, 1, 1, at), want, "line {at}");
        }
    }

    #[test]
    fn instructions_do_not_meet_and_strides_may_be_negative() {
        let mut s = Strides::new(64, 8, 3);
        for (up, down) in [(0, 63), (2, 60), (4, 57)] {
            let got = (fetched(&mut s, 1, 3, up), fetched(&mut s, 2, 3, down));
            let want: (Vec<u64>, Vec<u64>) = match up {
                4 => ((1..9).map(|i| 4 + 2 * i).collect(), (1..9).map(|i| 57 - 3 * i).collect()),
                _ => (vec![], vec![]),
            };
            assert_eq!(got, want);
        }
    }

    #[test]
    fn a_full_table_forgets_the_instruction_that_was_used_longest_ago() {
        let mut s = Strides::new(2, 8, 3);
        for (tick, (instruction, line)) in
            [(1, 0), (2, 0), (1, 1), (3, 0), (1, 2), (2, 1), (2, 2)].into_iter().enumerate()
        {
            let (_, _, n) = s.observe(instruction, LineAddr(line), tick as u64);
            assert_eq!(n > 0, (instruction, line) == (1, 2), "{instruction} has two lines before, and 2 was forgotten");
        }
    }

    /// Queue of queued.cc: first in, first out, of limited size; each line once; a demand for a line removes it; a full
    /// queue drops the oldest.
    #[test]
    fn the_queue_keeps_each_line_once_and_loses_the_oldest() {
        let mut w = WaitingPrefetches::new(3);
        for line in [1, 2, 1, 3, 4, 5] {
            w.push(LineAddr(line), Time(line));
        }
        w.drop_line(LineAddr(4));
        let out: Vec<_> = std::iter::from_fn(|| w.pop()).collect();
        assert_eq!(out, [(LineAddr(3), Time(3)), (LineAddr(5), Time(5))]);
        assert!(w.is_empty() && w.is_used() && !WaitingPrefetches::new(0).is_used());
    }

    /// A prefetch that a core makes ahead of the calendar takes no place in the queue before its time, except when an
    /// access overtakes it.
    #[test]
    fn prefetches_of_times_to_come_wait_apart() {
        let mut w = WaitingPrefetches::new(1);
        for (line, at) in [(1, 10), (2, 20), (1, 30), (3, 40)] {
            w.defer(LineAddr(line), Time(at));
        }
        assert!(w.is_empty());
        assert_eq!(w.overtaken(LineAddr(3), Time(40)), None);
        assert_eq!(w.overtaken(LineAddr(3), Time(41)), Some(Time(40)));
        w.ripen(Time(10));
        assert_eq!((w.pop(), w.next()), (Some((LineAddr(1), Time(10))), Some(Time(20))));
        w.ripen(Time(50));
        assert_eq!((w.pop(), w.next()), (Some((LineAddr(2), Time(20))), None));
    }
}
