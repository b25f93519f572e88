//! Stores and loads that bypass the caches: write-combining buffers, and accesses to devices' registers.
//!
//! ```text
//!              same line                 full, fence, uncached access,        the device or memory
//!   store --> open buffer <--+           or no buffer is free                 has taken it
//!                            +-- gathers --------------> leaves ------------------> free
//! ```

use super::{send, Cpu, DispatchWait};
use crate::core::op::Mapped;
use crate::core::CorePosts;
use crate::kernel::{Int, LineAddr, Time};
use crate::memory::{self, Memory, Txn, LINE};
use std::collections::VecDeque;

/// `Txn::record` of the first write-combining buffer; lower numbers denote accesses, and numbers from `prefetch::FIRST`
/// on denote prefetches.
pub(super) const RECORDS: u8 = 64;
/// Largest number of write-combining buffers, because there are no more record numbers.
pub const MOST_BUFFERS: u32 = 48;

/// A write-combining buffer.
#[derive(Clone, Copy, Debug)]
struct CombiningBuffer {
    line: LineAddr,
    to: Mapped,
    bytes: u8,
    state: BufferState,
    /// Rank of the buffer in the order in which buffers were opened.
    age: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum BufferState {
    Free,
    Open,
    Flushing,
}

/// An access to a device that leaves the core; accesses leave in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DeviceOp {
    /// An uncached store with this tag.
    Doorbell(u32),
    /// The contents of a write-combining buffer.
    Buffer { buffer: u8, bytes: u8 },
    /// An uncached load.
    Load { bytes: u8 },
}

#[derive(Clone, Debug)]
pub(super) struct DeviceAccesses {
    /// Shortest time between two doorbells.
    pub doorbell_gap: Time,
    /// Time from the departure of a doorbell to the arrival of its answer; None where doorbells are not answered.
    pub answer: Option<Time>,
    /// Number of dispatched doorbells that have not left the core.
    pub to_leave: u32,
    /// Time at which the last doorbell that has left is answered.
    pub answered: Time,
    /// Earliest time at which the next uncached store may leave.
    pub free: Time,
    buffers: Vec<CombiningBuffer>,
    opened: u64,
    /// Number of dispatched combining stores that no buffer has taken yet.
    pub owed: u32,
    /// Whether the oldest combining store waits for a buffer.
    pub blocked: bool,
    /// Whether an uncached load is outstanding.
    pub loading: bool,
    pub outgoing: VecDeque<DeviceOp>,
}

impl DeviceAccesses {
    pub fn new(buffers: u32) -> DeviceAccesses {
        DeviceAccesses {
            doorbell_gap: Time::ZERO,
            answer: None,
            to_leave: 0,
            answered: Time::ZERO,
            free: Time::ZERO,
            buffers: vec![
                CombiningBuffer {
                    line: LineAddr(0),
                    to: Mapped::Device,
                    bytes: 0,
                    state: BufferState::Free,
                    age: 0
                };
                buffers.to_usize()
            ],
            opened: 0,
            owed: 0,
            blocked: false,
            loading: false,
            outgoing: VecDeque::new(),
        }
    }

    /// Whether every combining store has left the core and been accepted at its destination.
    pub fn combined(&self) -> bool {
        self.owed == 0 && self.buffers.iter().all(|b| b.state == BufferState::Free)
    }

    /// Buffer that takes a store to `line`: the buffer open for the line, or a free one.
    fn place(&self, line: LineAddr, to: Mapped) -> Option<usize> {
        let same = |b: &CombiningBuffer| b.state == BufferState::Open && b.line == line && b.to == to;
        let open = self.buffers.iter().position(same);
        open.or_else(|| self.buffers.iter().position(|b| b.state == BufferState::Free))
    }

    fn oldest_open(&self) -> Option<usize> {
        let open = self.buffers.iter().enumerate().filter(|(_, b)| b.state == BufferState::Open);
        open.min_by_key(|(_, b)| b.age).map(|(i, _)| i)
    }
}

impl Cpu {
    /// Sets the shortest time between two doorbells.
    pub fn space_doorbells(&mut self, gap: Time) {
        self.devices.doorbell_gap = gap;
    }

    /// Sets the time from the departure of a doorbell to the arrival of its answer.
    pub fn answer_doorbells(&mut self, after: Option<Time>) {
        self.devices.answer = after;
    }

    /// Notes that a doorbell leaves at `now`. A serialising instruction that waits for it goes on with its answer.
    pub(super) fn doorbell_leaves(&mut self, cal: &mut impl CorePosts, now: Time) {
        self.devices.to_leave -= 1;
        if let Some(after) = self.devices.answer {
            self.devices.answered = now + after;
            if self.wait == DispatchWait::Doorbells && self.devices.to_leave == 0 {
                self.post_due(cal, now + after);
            }
        }
    }

    /// Puts a combining store that retires at `now` into a buffer; returns false while no buffer can take it.
    pub(super) fn combine(
        &mut self,
        mem: &mut Memory,
        cal: &mut impl CorePosts,
        (line, bytes, to): (LineAddr, u8, Mapped),
        now: Time,
    ) -> bool {
        let Some(i) = self.devices.place(line, to) else {
            let leaves = self.devices.buffers.iter().any(|b| b.state == BufferState::Flushing);
            if let Some(oldest) = self.devices.oldest_open().filter(|_| !leaves) {
                self.flush_buffer(mem, cal, oldest, now);
            }
            self.devices.blocked = true;
            return false;
        };
        let d = &mut self.devices;
        d.owed -= 1;
        if d.buffers[i].state == BufferState::Free {
            d.opened += 1;
            d.buffers[i] = CombiningBuffer { line, to, bytes: 0, state: BufferState::Open, age: d.opened };
        }
        let b = &mut d.buffers[i];
        b.bytes = (b.bytes + bytes).min(LINE.to_u8());
        if u64::from(b.bytes) == LINE {
            self.flush_buffer(mem, cal, i, now);
        }
        true
    }

    /// Sends the contents of buffer `i` to the device or to memory.
    fn flush_buffer(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, i: usize, now: Time) {
        let b = &mut self.devices.buffers[i];
        b.state = BufferState::Flushing;
        let (buffer, CombiningBuffer { line, bytes, to, .. }) = (i.to_u8(), *b);
        match to {
            Mapped::Device => self.devices.outgoing.push_back(DeviceOp::Buffer { buffer, bytes }),
            Mapped::Memory => {
                let t = self.request(memory::TxnOp::Stream, line, now);
                send(mem, cal, now, Txn { record: RECORDS + buffer, ..t });
            }
        }
    }

    /// Sends the contents of all open buffers, in the order in which they were opened.
    pub(super) fn flush_buffers(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, now: Time) {
        while let Some(i) = self.devices.oldest_open() {
            self.flush_buffer(mem, cal, i, now);
        }
    }

    /// Frees buffer `buffer`, whose contents have been accepted at their destination. Returns the program's end as
    /// `start` does.
    pub fn on_buffer_taken(
        &mut self,
        mem: &mut Memory,
        cal: &mut impl CorePosts,
        buffer: u8,
        now: Time,
    ) -> Option<Time> {
        self.devices.buffers[usize::from(buffer)].state = BufferState::Free;
        self.drain_device_ops(mem, cal, now)
    }

    /// Ends an uncached load, whose data has arrived. Returns the program's end as `start` does.
    pub fn on_loaded(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, now: Time) -> Option<Time> {
        self.devices.loading = false;
        self.drain_device_ops(mem, cal, now)
    }

    fn drain_device_ops(&mut self, mem: &mut Memory, cal: &mut impl CorePosts, now: Time) -> Option<Time> {
        self.deferred.at(mem, now);
        self.devices.blocked = false;
        if self.effects_wait() {
            self.schedule_retirement(cal, now);
        }
        if self.running && self.can_resume() {
            return self.resume(mem, cal, now);
        }
        None
    }
}
