//! Side effects of instructions, which take place only when all earlier instructions have retired.

use super::combining::DeviceOp;
use super::{AccessRecord, Cpu};
use crate::core::op::Mapped;
use crate::core::{CoreEvent, CorePosts};
use crate::kernel::{LineAddr, Time};
use crate::memory::{Memory, Probe, Sweep};

/// A side effect that takes place now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Retired {
    /// Cache maintenance of consecutive lines begins.
    Maintain {
        /// First line.
        line: LineAddr,
        /// Number of lines.
        lines: u32,
        /// Kind of maintenance.
        op: Sweep,
    },
    /// The side effect with this tag takes place.
    Tag(u32),
    /// An uncached store with this tag leaves the core for a device's register.
    Mmio(u32),
    /// A write-combining buffer leaves the core for a device.
    Combined {
        /// Number of the buffer.
        buffer: u8,
        /// Bytes in the buffer.
        bytes: u8,
    },
    /// An uncached load leaves the core for a device.
    Load {
        /// Bytes of the load.
        bytes: u8,
    },
}

/// A side effect that waits for earlier instructions.
#[derive(Clone, Copy, Debug)]
pub(super) enum RetireEffect {
    Notify(Retired),
    Mmio(u32),
    /// A store goes into a write-combining buffer: line, bytes and destination.
    Combine(LineAddr, u8, Mapped),
    /// An uncached load leaves the core.
    Load {
        bytes: u8,
    },
    /// All write-combining buffers leave the core.
    Flush,
}

impl RetireEffect {
    /// Whether the effect waits for earlier stores to `line`, as CLFLUSHOPT and CLWB do (Intel 64 and IA-32 Architectures Software
    /// Developer's Manual: ordered with respect to older writes to the cache line).
    fn follows_stores_to(&self, line: LineAddr) -> bool {
        match *self {
            RetireEffect::Notify(Retired::Maintain { line: first, lines, op }) => {
                !op.drops_data() && line.is_within(first, lines.into())
            }
            _ => false,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct PendingEffect {
    seq: u64,
    at: Time,
    stores: bool,
    what: RetireEffect,
}

/// Progress of a store that waits for all earlier accesses (`Op::Release`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReleaseState {
    Waits,
    /// The store has requested ownership of its line.
    Requested,
    /// The store is done, and its tag is to be reported.
    Done,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct PendingRelease {
    seq: u64,
    at: Time,
    line: LineAddr,
    tag: u32,
    turn: ReleaseState,
    /// Whether the store has requested its line before all earlier accesses were done.
    ahead: bool,
}

/// Number of waiting stores, counted from the oldest, that may request their lines early. The value is assumed; the
/// line fill buffers are a further limit.
const SENIOR: usize = 8;

impl Cpu {
    pub(super) fn defer(&mut self, cal: &mut impl CorePosts, instructions: u32, stores: bool, what: RetireEffect) {
        self.dispatch(instructions);
        let at = self.now().max(self.hits_until);
        self.retire.push_back(PendingEffect { seq: self.seq, at, stores, what });
        if self.retire.len() == 1 {
            self.schedule_retirement(cal, at);
        }
    }

    /// Whether the access for which the oldest side effect waits is still open.
    #[inline]
    fn still_waits(&self) -> bool {
        self.retire_after.is_some_and(|(r, generation)| {
            let open = (self.live & !self.finished) >> r & 1 == 1;
            open && self.records[r].generation == generation
        })
    }

    /// Earliest time of the oldest side effect; None while an earlier access is open.
    fn retirement(&mut self) -> Option<Time> {
        let p = self.retire.front()?;
        if self.still_waits() {
            return None;
        }
        let before = |r: &AccessRecord| {
            r.serves.is_before(p.seq) && (r.load || p.stores || r.write && p.what.follows_stores_to(r.line))
        };
        let first = self.first_open(before);
        self.retire_after = first.map(|r| (r, self.records[r].generation));
        if first.is_some() {
            return None;
        }
        let at = p.at.max(self.latest(before));
        match p.what {
            RetireEffect::Mmio(_) | RetireEffect::Load { .. } => Some(at.max(self.devices.free)),
            RetireEffect::Combine(..) if self.devices.blocked => None,
            _ => Some(at),
        }
    }

    pub(super) fn release_later(&mut self, cal: &mut impl CorePosts, line: LineAddr, tag: u32) {
        self.dispatch(1);
        let at = self.now().max(self.hits_until);
        self.releases.push_back(PendingRelease {
            seq: self.seq,
            at,
            line,
            tag,
            turn: ReleaseState::Waits,
            ahead: false,
        });
        if self.releases.len() == 1 {
            self.schedule_retirement(cal, at);
        }
    }

    /// Earliest time at which the oldest release can make progress or be reported; None while an earlier access is open
    /// or the release's own line is outstanding.
    fn next_release(&mut self) -> Option<Time> {
        if self.releases.front()?.turn == ReleaseState::Done {
            return Some(Time::ZERO);
        }
        self.may_release(0)
    }

    /// Time at which all accesses before release `i` are done, as far as that time is known; once the release has
    /// requested its line, its own store counts as well.
    fn may_release(&self, i: usize) -> Option<Time> {
        let p = self.releases[i];
        let before = |r: &AccessRecord| r.serves.is_before(p.seq);
        let no_record = p.turn == ReleaseState::Waits && self.live == u64::MAX && self.finished == 0;
        (!no_record && self.first_open(before).is_none()).then(|| p.at.max(self.latest(before)))
    }

    /// Advances the waiting release stores in program order. A store writes a line that has just arrived before a
    /// waiting request of another agent can invalidate the line.
    pub(super) fn release(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, now: Time) {
        for i in 0..self.releases.len() {
            let PendingRelease { seq, line, turn, .. } = self.releases[i];
            if turn == ReleaseState::Done {
                continue;
            }
            if self.may_release(i).is_none_or(|at| at > now) {
                return self.request_ownership_early(mem, cal, i, now);
            }
            if turn == ReleaseState::Requested || mem.probe(cal, self.core, line, true, now) != Probe::Miss {
                self.releases[i].turn = ReleaseState::Done;
                continue;
            }
            let r = match self.same_line(line) {
                Some(r) => r,
                None => {
                    let Some(r) = self.new_rec(line, true, false, now) else { return };
                    if !self.defer_to_sibling(mem, r, line) {
                        self.request_lfb(mem, cal, r, now);
                    }
                    r
                }
            };
            self.records[r].write = true;
            self.records[r].serves.include(seq - 1);
            self.releases[i].turn = ReleaseState::Requested;
            return self.request_ownership_early(mem, cal, i + 1, now);
        }
    }

    /// Requests the lines of the stores, from release `i` on, that can no longer be squashed because all loads before
    /// them are done.
    fn request_ownership_early(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, i: usize, now: Time) {
        for i in i..self.releases.len().min(i + SENIOR) {
            let PendingRelease { seq, at, line, turn, ahead, .. } = self.releases[i];
            if ahead || turn != ReleaseState::Waits {
                continue;
            }
            if at > now || !self.may_miss() || self.first_open(|r| r.load && r.serves.is_before(seq)).is_some() {
                return;
            }
            self.releases[i].ahead = true;
            self.prefetch_ownership(mem, cal, line, now);
        }
    }

    /// Whether release stores wait for earlier accesses.
    #[inline]
    pub(super) fn releases_wait(&self) -> bool {
        !self.releases.is_empty()
    }

    pub(super) fn effects_wait(&self) -> bool {
        !self.retire.is_empty() || !self.releases.is_empty()
    }

    #[inline]
    pub(super) fn schedule_retirement(&mut self, cal: &mut impl CorePosts, now: Time) {
        if self.releases_wait() || !self.still_waits() {
            self.post_retirement(cal, now);
        }
    }

    #[inline(never)]
    fn post_retirement(&mut self, cal: &mut impl CorePosts, now: Time) {
        let due = match (self.retirement(), self.next_release()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        if let Some(at) = due {
            let at = at.max(now);
            if self.retire_event.is_none_or(|t| at < t) {
                self.retire_event = Some(at);
                cal.post(at, CoreEvent::Retire(self.id));
            }
        }
    }

    /// Handles `CoreEvent::Retire`: takes the next side effect that is due at `now`. The caller repeats the call until it
    /// returns None.
    pub fn retired(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, now: Time) -> Option<Retired> {
        if self.retire_event.is_some_and(|t| t <= now) {
            self.retire_event = None;
        }
        loop {
            match self.devices.outgoing.pop_front() {
                Some(DeviceOp::Doorbell(tag)) => return Some(Retired::Mmio(tag)),
                Some(DeviceOp::Buffer { buffer, bytes }) => return Some(Retired::Combined { buffer, bytes }),
                Some(DeviceOp::Load { bytes }) => return Some(Retired::Load { bytes }),
                None => {}
            }
            if self.retirement().is_none_or(|at| at > now) {
                self.release(mem, cal, now);
                if self.releases.front().is_some_and(|r| r.turn == ReleaseState::Done) {
                    return self.releases.pop_front().map(|r| Retired::Tag(r.tag));
                }
                self.schedule_retirement(cal, now);
                return None;
            }
            if let RetireEffect::Combine(line, bytes, to) = self.retire.front()?.what {
                if !self.combine(mem, cal, (line, bytes, to), now) {
                    continue;
                }
            }
            self.retire_after = None;
            match self.retire.pop_front()?.what {
                RetireEffect::Notify(r) => return Some(r),
                RetireEffect::Mmio(tag) => {
                    self.flush_buffers(mem, cal, now);
                    self.devices.outgoing.push_back(DeviceOp::Doorbell(tag));
                    self.devices.free = now + self.devices.doorbell_gap;
                    self.doorbell_leaves(cal, now);
                }
                RetireEffect::Load { bytes } => {
                    self.flush_buffers(mem, cal, now);
                    self.devices.outgoing.push_back(DeviceOp::Load { bytes });
                }
                RetireEffect::Combine(..) => {}
                RetireEffect::Flush => self.flush_buffers(mem, cal, now),
            }
        }
    }
}
