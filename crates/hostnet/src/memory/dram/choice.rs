//! Candidate commands as numbers: the smallest number is the earliest command, and among equally early ones the
//! preferred one.

use super::channel::{Channel, AGE_BITS};
use crate::kernel::{Due, Int, Time};

/// A candidate command as one number, so that the preferred one is found as a minimum without branches:
/// `[tier: 2][age: 28][bank: 6]`. A `TimedCommand` adds 28 higher bits with the time since the channel's `epoch`.
pub(super) type CommandKey = u64;
/// A key with the time of its command, or no command, which is later than every command.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct TimedCommand(u64);

pub(super) const BANK_BITS: u32 = 6;
pub(super) const TIER_SHIFT: u32 = BANK_BITS + AGE_BITS;
pub(super) const TIME_SHIFT: u32 = TIER_SHIFT + 2;
/// Length of an epoch in picoseconds; the first choice made later than this starts a new epoch.
pub(super) const EPOCH: u64 = 1 << 24;

/// Tiers of commands: slots that a row was opened for come first, then refreshes; row hits and the other commands share
/// the third tier, or other commands follow in the fourth.
pub(super) const ACTIVE: u64 = 0;
pub(super) const REFRESH: u64 = 1;
pub(super) const QUEUE: u64 = 2;
pub(super) const BEHIND: u64 = 3;

#[inline]
pub(super) fn key(tier: u64, age: u32, bank: usize) -> CommandKey {
    tier << TIER_SHIFT | u64::from(age) << BANK_BITS | bank.to_u64()
}

/// Smallest choice that `of` has for the banks of `mask`. Two banks are evaluated at a time, the last of an odd number
/// twice, because that leaves fewer unpredictable branches.
#[inline]
pub(super) fn least(mut mask: u64, of: impl Fn(usize) -> TimedCommand) -> TimedCommand {
    let mut best = TimedCommand::NONE;
    while mask != 0 {
        let one = mask.trailing_zeros();
        mask &= mask - 1;
        let two = if mask == 0 { one } else { mask.trailing_zeros() };
        mask &= mask.wrapping_sub(1);
        best = best.min(of(one.to_usize())).min(of(two.to_usize()));
    }
    best
}

impl TimedCommand {
    /// No command.
    pub const NONE: TimedCommand = TimedCommand(u64::MAX);

    #[inline(always)]
    pub fn is_none(self) -> bool {
        self == TimedCommand::NONE
    }
    /// Bank of the command, or rank of a refresh.
    #[inline(always)]
    pub fn bank(self) -> usize {
        (self.0 & ((1 << BANK_BITS) - 1)).to_usize()
    }
    #[inline(always)]
    pub fn age(self) -> u32 {
        (self.0 >> BANK_BITS).low_u32() & ((1 << AGE_BITS) - 1)
    }
    #[inline(always)]
    pub fn tier(self) -> u64 {
        self.0 >> TIER_SHIFT & 3
    }
}

impl Channel {
    /// Makes the choice of a command that is possible at `at`, which must not precede the epoch.
    #[inline]
    pub(super) fn choice(&self, at: u64, key: CommandKey) -> TimedCommand {
        debug_assert!(at - self.epoch < 1 << (u64::BITS - TIME_SHIFT), "timings beyond a choice's 268 us");
        TimedCommand((at - self.epoch) << TIME_SHIFT | key)
    }

    #[inline]
    pub(super) fn time_of(&self, c: TimedCommand) -> Due {
        if c.is_none() {
            return Due::NEVER;
        }
        Due::at(Time(self.epoch + (c.0 >> TIME_SHIFT)))
    }

    /// Starts an epoch at `floor` if the last one is over, so that times fit into a `TimedCommand` again. Returns true if it
    /// did; the choices made so far are then invalid.
    #[inline]
    pub(super) fn begin_epoch(&mut self, floor: u64) -> bool {
        let over = floor - self.epoch > EPOCH;
        if over {
            self.epoch = floor;
        }
        over
    }
}
