//! What goes past the caches: write-combining buffers, and accesses to devices' registers.
//!
//! ```text
//!              same line                 full, fence, uncached access,        the device or memory
//!   store --> open buffer <--+           or no buffer is free                 has taken it
//!                            +-- gathers --------------> leaves ------------------> free
//! ```

use super::{send, Cpu};
use crate::core::op::Mapped;
use crate::core::Posts;
use crate::kernel::{Int, LineAddr, Time};
use crate::memory::{self, Memory, Txn, LINE};
use std::collections::VecDeque;

/// Records of transactions that empty a buffer: behind those of accesses, before the prefetcher's.
pub(super) const RECORDS: u8 = 64;
/// Most buffers that there are records for.
pub const MOST_BUFFERS: u32 = 48;

/// A write-combining buffer.
#[derive(Clone, Copy, Debug)]
struct Buffer {
    line: LineAddr,
    to: Mapped,
    bytes: u8,
    state: Use,
    /// Order in which buffers were opened.
    age: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Use {
    Free,
    Open,
    Leaves,
}

/// What leaves the core for a device, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Leaving {
    /// An uncached store, with its tag.
    Doorbell(u32),
    /// A write-combining buffer.
    Buffer { buffer: u8, bytes: u8 },
    /// An uncached load.
    Load { bytes: u8 },
}

#[derive(Clone, Debug)]
pub(super) struct DeviceAccesses {
    /// From one doorbell to the next, at least.
    pub doorbell_gap: Time,
    /// When the next uncached store may leave.
    pub free: Time,
    buffers: Vec<Buffer>,
    opened: u64,
    /// Combining stores that have been dispatched and are in no buffer yet.
    pub owed: u32,
    /// The oldest store finds no buffer.
    pub blocked: bool,
    /// An uncached load is under way.
    pub loading: bool,
    pub leaving: VecDeque<Leaving>,
}

impl DeviceAccesses {
    pub fn new(buffers: u32) -> DeviceAccesses {
        DeviceAccesses {
            doorbell_gap: Time::ZERO,
            free: Time::ZERO,
            buffers: vec![
                Buffer { line: LineAddr(0), to: Mapped::Device, bytes: 0, state: Use::Free, age: 0 };
                buffers.to_usize()
            ],
            opened: 0,
            owed: 0,
            blocked: false,
            loading: false,
            leaving: VecDeque::new(),
        }
    }

    /// Whether no combining store is anywhere in the core.
    pub fn combined(&self) -> bool {
        self.owed == 0 && self.buffers.iter().all(|b| b.state == Use::Free)
    }

    /// The buffer that takes a store to `line`: the one that is open for it, or a free one.
    fn place(&self, line: LineAddr, to: Mapped) -> Option<usize> {
        let same = |b: &Buffer| b.state == Use::Open && b.line == line && b.to == to;
        let open = self.buffers.iter().position(same);
        open.or_else(|| self.buffers.iter().position(|b| b.state == Use::Free))
    }

    fn oldest_open(&self) -> Option<usize> {
        let open = self.buffers.iter().enumerate().filter(|(_, b)| b.state == Use::Open);
        open.min_by_key(|(_, b)| b.age).map(|(i, _)| i)
    }
}

impl Cpu {
    /// Doorbells leave at least `gap` apart.
    pub fn space_doorbells(&mut self, gap: Time) {
        self.devices.doorbell_gap = gap;
    }

    /// A combining store retires at `now`: false when no buffer takes it yet.
    pub(super) fn combine(
        &mut self,
        mem: &mut Memory,
        cal: &mut impl Posts,
        (line, bytes, to): (LineAddr, u8, Mapped),
        now: Time,
    ) -> bool {
        let Some(i) = self.devices.place(line, to) else {
            let leaves = self.devices.buffers.iter().any(|b| b.state == Use::Leaves);
            if let Some(oldest) = self.devices.oldest_open().filter(|_| !leaves) {
                self.empty(mem, cal, oldest, now);
            }
            self.devices.blocked = true;
            return false;
        };
        let d = &mut self.devices;
        d.owed -= 1;
        if d.buffers[i].state == Use::Free {
            d.opened += 1;
            d.buffers[i] = Buffer { line, to, bytes: 0, state: Use::Open, age: d.opened };
        }
        let b = &mut d.buffers[i];
        b.bytes = (b.bytes + bytes).min(LINE.to_u8());
        if u64::from(b.bytes) == LINE {
            self.empty(mem, cal, i, now);
        }
        true
    }

    /// A buffer leaves.
    fn empty(&mut self, mem: &mut Memory, cal: &mut impl Posts, i: usize, now: Time) {
        let b = &mut self.devices.buffers[i];
        b.state = Use::Leaves;
        let (buffer, Buffer { line, bytes, to, .. }) = (i.to_u8(), *b);
        match to {
            Mapped::Device => self.devices.leaving.push_back(Leaving::Buffer { buffer, bytes }),
            Mapped::Memory => {
                let t = self.request(memory::Op::Stream, line, now);
                send(mem, cal, now, Txn { record: RECORDS + buffer, ..t });
            }
        }
    }

    /// All open buffers leave, in the order in which they were opened.
    pub(super) fn empty_all(&mut self, mem: &mut Memory, cal: &mut impl Posts, now: Time) {
        while let Some(i) = self.devices.oldest_open() {
            self.empty(mem, cal, i, now);
        }
    }

    /// What buffer `buffer` held has been taken. Returns the program's end as `start` does.
    pub fn on_taken(&mut self, mem: &mut Memory, cal: &mut impl Posts, buffer: u8, now: Time) -> Option<Time> {
        self.devices.buffers[usize::from(buffer)].state = Use::Free;
        self.past_caches(mem, cal, now)
    }

    /// The data of an uncached load is there. Returns the program's end as `start` does.
    pub fn on_loaded(&mut self, mem: &mut Memory, cal: &mut impl Posts, now: Time) -> Option<Time> {
        self.devices.loading = false;
        self.past_caches(mem, cal, now)
    }

    fn past_caches(&mut self, mem: &mut Memory, cal: &mut impl Posts, now: Time) -> Option<Time> {
        self.due.at(mem, now);
        self.devices.blocked = false;
        if self.effects_wait() {
            self.schedule_retirement(cal, now);
        }
        if self.running && self.may_go_on() {
            return self.go_on(mem, cal, now);
        }
        None
    }
}
