//! Counters of a channel that an uncore also offers: time at high queue levels, and how evenly reads spread over a few
//! banks.

use crate::kernel::Int;

/// Number of banks that are watched: the first four of rank 0, as in the measurements of "Understanding the Host
/// Network" (section 5.1).
const WATCHED: usize = 4;
/// Number of reads of the watched banks that make one sample.
const READS: u32 = 1000;
/// Number of bins for the ratio of busiest to mean bank, from 1 to `WATCHED` in steps of 1/16.
pub const BINS: usize = (WATCHED - 1) * 16 + 1;

/// Meter of the time that a queue spent at or above a level.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TimeAboveLevel {
    level: usize,
    since: Option<u64>,
    ps: u64,
}

impl TimeAboveLevel {
    /// A meter of the time for which a queue holds at least `level` entries.
    pub fn new(level: usize) -> TimeAboveLevel {
        TimeAboveLevel { level, ..TimeAboveLevel::default() }
    }
    /// Notes that the queue holds `used` entries from `at` on.
    #[inline]
    pub fn set_occupancy(&mut self, used: usize, at: u64) {
        match self.since {
            None if used >= self.level => self.since = Some(at),
            Some(since) if used < self.level => {
                self.ps += at.saturating_sub(since);
                self.since = None;
            }
            _ => {}
        }
    }
    /// Time in ps up to `now` for which the queue held at least `level` entries.
    pub fn read(&self, now: u64) -> u64 {
        self.ps + self.since.map_or(0, |s| now.saturating_sub(s))
    }
}

/// Metered levels of one queue: its "full" mark, and its capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueueLevels {
    /// Time with at least the number of entries that counts as full.
    pub mark: TimeAboveLevel,
    /// Time with all entries in use.
    pub full: TimeAboveLevel,
    /// The lower of both levels.
    low: usize,
}

impl QueueLevels {
    /// Meters of a queue of `capacity` entries that counts as full from `mark` entries on; with `mark` 0, from
    /// `capacity` on.
    pub fn new(mark: u32, capacity: u32) -> QueueLevels {
        let mark = if mark == 0 { capacity } else { mark };
        let low = mark.min(capacity).to_usize();
        QueueLevels { mark: TimeAboveLevel::new(mark.to_usize()), full: TimeAboveLevel::new(capacity.to_usize()), low }
    }
    /// Notes that the queue holds `used` entries from `at` on, which is one more or one fewer than before.
    #[inline(always)]
    pub fn set_occupancy(&mut self, used: usize, at: u64) {
        if used + 1 < self.low {
            return;
        }
        self.mark.set_occupancy(used, at);
        self.full.set_occupancy(used, at);
    }
}

/// Sampled ratio of the reads of the busiest watched bank to the mean of the watched banks.
#[derive(Clone, Debug, PartialEq)]
pub struct Deviation {
    counts: [u32; WATCHED],
    total: u32,
    /// Number of samples by ratio: bin `i` holds ratios from 1 + i/16 up.
    pub bins: [u32; BINS],
}

impl Default for Deviation {
    fn default() -> Deviation {
        Deviation { counts: [0; WATCHED], total: 0, bins: [0; BINS] }
    }
}

impl Deviation {
    /// Counts a read of bank `bank`.
    #[inline]
    pub fn read(&mut self, bank: usize) {
        if bank >= WATCHED {
            return;
        }
        self.counts[bank] += 1;
        self.total += 1;
        if self.total == READS {
            let most = self.counts.iter().max().copied().unwrap_or(0);
            let bin = (most.to_usize() * WATCHED * 16 / READS.to_usize()).saturating_sub(16);
            self.bins[bin.min(BINS - 1)] += 1;
            self.counts = [0; WATCHED];
            self.total = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_above_a_level_counts_from_crossing_to_crossing() {
        let mut a = TimeAboveLevel::new(3);
        a.set_occupancy(3, 100);
        a.set_occupancy(4, 150);
        a.set_occupancy(2, 180);
        a.set_occupancy(3, 200);
        assert_eq!(a.read(250), 80 + 50);
    }

    #[test]
    fn both_levels_of_a_queue_are_metered_from_one_step_to_another() {
        let mut l = QueueLevels::new(2, 3);
        for (at, used) in [1, 2, 3, 2, 1, 0, 1, 2].into_iter().enumerate() {
            l.set_occupancy(used, at as u64 * 10);
        }
        // Two or more entries from 10 to 40 and from 70 on, three from 20 to 30.
        assert_eq!((l.mark.read(75), l.full.read(75)), (30 + 5, 10));
    }

    #[test]
    fn reads_of_one_bank_only_deviate_by_the_number_of_banks() {
        let mut d = Deviation::default();
        (0..1000).for_each(|_| d.read(1));
        assert_eq!(d.bins[BINS - 1], 1, "1000 reads over a mean of 250 is 4");
        (0..1000).for_each(|i| d.read(i % 4));
        assert_eq!(d.bins[0], 1, "evenly spread reads deviate by 1");
    }
}
