//! Rows closed by a timer that adapts, as Intel's server controllers do (Xeon E5 v2, datasheet, volume 2, IDLETIME): a
//! row that nobody has used for some time is closed; among so many requests, those that find a row closed too early let the
//! time grow, and those that find another row still open let it shrink.
//!
//! A row is found closed when the next request for its bank comes, as of when its time was up.

use super::channel::{Channel, NONE, NO_ROW};

/// Requests between two looks, and more of either kind than which count (the register's defaults).
const WINDOW: u32 = 64;
const MANY: u32 = 6;
/// Bounds of the time in clocks, and the share by which it changes; neither is published.
const LEAST: u64 = 8;
const MOST: u64 = 4096;
const START: u64 = MOST;
const STEP: u64 = 8;

#[derive(Clone, Debug)]
pub(super) struct IdleTimer {
    clock: u64,
    limit: u64,
    requests: u32,
    /// Requests for a row that the timer closed, and for a bank where it left another row open.
    early: u32,
    late: u32,
    /// By bank, the row that the timer closed last, until the next request.
    closed: Vec<u32>,
}

impl IdleTimer {
    pub fn new(clock: u64, banks: usize) -> IdleTimer {
        IdleTimer { clock, limit: START * clock, requests: 0, early: 0, late: 0, closed: vec![NO_ROW; banks] }
    }

    fn count(&mut self, early: bool, late: bool) {
        self.requests += 1;
        self.early += u32::from(early);
        self.late += u32::from(late);
        if self.requests == WINDOW {
            let step = self.limit / STEP;
            let longer = if self.early > MANY { step } else { 0 };
            let shorter = if self.late > MANY { step } else { 0 };
            self.limit = (self.limit + longer - shorter).clamp(LEAST * self.clock, MOST * self.clock);
            (self.requests, self.early, self.late) = (0, 0, 0);
        }
    }
}

impl Channel {
    /// A request for `row` of bank `b` comes at `now`: was the bank's row closed meanwhile?
    pub(super) fn time_row(&mut self, b: usize, row: u32, dir: usize, now: u64) {
        let Some(timer) = &mut self.idle else { return };
        let bank = &self.banks[b];
        let (open, first) = (bank.row, bank.q[dir].miss == NONE);
        let wanted = bank.active != NONE || bank.q.iter().any(|q| q.hit != NONE);
        // Requests of the present direction have their precharge coming, and so has a rank that is to refresh.
        let waited = bank.q[self.write_mode as usize].miss != NONE || self.blocked >> b & 1 == 1;
        let at = self.scan.lanes[b].pre_at.saturating_add(timer.limit);
        let closes = open != NO_ROW && !wanted && !waited && at <= now;
        let was = std::mem::replace(&mut timer.closed[b], NO_ROW);
        let closed = if closes {
            open
        } else if open == NO_ROW {
            was
        } else {
            NO_ROW
        };
        timer.count(closed == row, !closes && open != NO_ROW && open != row && first);
        if closes {
            self.stats.precharges += 1;
            self.close(b, at);
        }
    }
}
