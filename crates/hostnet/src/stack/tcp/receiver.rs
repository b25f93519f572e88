//! The kernel's TCP receive path on one core (Linux with NAPI, GRO and aRFS, so that interrupt and application share
//! the core): polls turn completions into segments, segments queue at the socket, and `recv` copies the segments to the
//! application.
//!
//! A core does one thing at a time. Interrupts have priority over the application; the changes of a step take effect at
//! its end.

use super::TcpSpec;
use crate::core::{Op, Program};
use crate::kernel::{Int, LineAddr, Time};
use crate::memory::LINE;
use std::collections::VecDeque;

/// A frame in the core's memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReceivedFrame {
    /// Number of the segment.
    pub seq: u32,
    /// Whether the segment carries a congestion mark.
    pub marked: bool,
    /// Line of the NIC's completion for the frame.
    pub completion: LineAddr,
    /// Offset of the frame in its pool, in lines.
    pub at: u64,
    /// Whether the frame ends a merged segment, whose memory is freed when this frame has been copied.
    pub last: bool,
}

/// Layout of frames in memory, in lines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FrameLayout {
    /// Lines of a frame.
    pub frame: u64,
    /// Lines of a page.
    pub page: u64,
}

impl FrameLayout {
    /// First offset, on each of its pages, of the frame at `at`.
    fn pages(self, at: u64) -> impl Iterator<Item = u64> {
        let first = at / self.page;
        let last = (at + self.frame - 1) / self.page;
        (first..=last).map(move |p| (p * self.page).max(at))
    }
}

/// Physical locations of the parts of frames, by their offset in the pool.
pub trait FramePlaces {
    /// Line at offset `at` of the pool.
    fn line(&mut self, at: u64) -> LineAddr;
    /// Line of the kernel's structure for the page at offset `at`.
    fn structure(&mut self, at: u64) -> LineAddr;
    /// Frees the frame at `at`, which is no longer used.
    fn free(&mut self, at: u64) {
        let _ = at;
    }
}

/// The application as the caller of `recv`: the first line and the number of lines of its buffer, and the instructions
/// that the application executes between a full buffer and the next call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reader {
    pub buffer: LineAddr,
    pub lines: u64,
    pub gap_instructions: u32,
}

/// Consecutive segments that were merged; every segment below `next` had arrived by then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Merged {
    pub from: u32,
    pub to: u32,
    pub next: u32,
    pub marked: u32,
}

/// Present activity of the core.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ReceiverPhase {
    #[default]
    Idle,
    Poll,
    Copy,
    Release,
}

/// Next activity of the core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReceiverAction {
    Poll,
    Copy,
    /// Free the memory of segments that have been copied, or release the socket.
    Release,
    /// Sleep until the interrupt that is due at this time.
    Until(Time),
    Nothing,
}

/// Time that a core spent, by activity.
#[derive(Clone, Copy, Debug, Default)]
pub struct Busy {
    pub poll: Time,
    pub copy: Time,
    pub release: Time,
    /// Instructions of the application's system calls, which are part of the time for copying.
    pub calls: u64,
}

impl Busy {
    pub fn total(&self) -> Time {
        self.poll + self.copy + self.release
    }
}

/// One core's receive path, with one connection.
#[derive(Clone)]
pub struct Receiver {
    layout: FrameLayout,
    budget: usize,
    merge: u32,
    /// Number of segments that the socket may hold.
    buffer: u32,
    /// Frames whose completions are in memory.
    completed: VecDeque<ReceivedFrame>,
    /// Whether polling continues without an interrupt.
    polling: bool,
    /// Next segment in order.
    next: u32,
    /// Later segments that have arrived.
    early: VecDeque<Option<ReceivedFrame>>,
    queue: VecDeque<ReceivedFrame>,
    /// Frames that the driver has taken and the connection has not processed. While `recv` holds the socket's lock,
    /// these frames wait (the socket's backlog).
    backlog: VecDeque<ReceivedFrame>,
    /// Segments into which the frames were merged.
    runs: Vec<Merged>,
    locked: bool,
    /// Whether `recv` ends or has emptied the queue, and therefore releases the socket.
    unlock: bool,
    /// Frames that have been copied and still use their pages.
    copies: Vec<u64>,
    /// Whether the frames of a whole segment are to be freed.
    free: bool,
    /// Number of segments that the application has received.
    pub copied: u32,
    /// Edge of the window that the sender knows.
    edge: u32,
    /// Present work of the core.
    pub phase: ReceiverPhase,
    /// Time at which the present work began.
    pub since: Time,
    merged: Vec<Merged>,
    polled: u32,
    /// Whether the application waits in `recv`.
    asleep: bool,
    /// Lines of the application's buffer that the present `recv` has filled.
    filled: u64,
    /// Time of the core in each kind of work, in the measured window.
    pub busy: Busy,
    /// Number of segments that had arrived before.
    pub duplicates: u64,
    /// Number of interrupts.
    pub interrupts: u64,
}

impl Receiver {
    /// A receive path for full segments of `payload` bytes, each of which takes `size` bytes of the socket's buffer.
    pub fn new(s: &TcpSpec, layout: FrameLayout, payload: u64, size: u64) -> Receiver {
        let buffer = (s.receive_buffer.0 / size).to_u32();
        Receiver {
            layout,
            budget: s.quirks.poll_budget.to_usize(),
            merge: (s.quirks.merge.0 / payload).max(1).to_u32(),
            buffer,
            completed: VecDeque::with_capacity(1024),
            polling: false,
            next: 0,
            early: VecDeque::with_capacity(1024),
            queue: VecDeque::with_capacity(1024),
            backlog: VecDeque::with_capacity(1024),
            runs: Vec::with_capacity(64),
            locked: false,
            unlock: false,
            copies: Vec::with_capacity(64),
            free: false,
            copied: 0,
            edge: buffer / 2,
            phase: ReceiverPhase::Idle,
            since: Time::ZERO,
            merged: Vec::with_capacity(64),
            polled: 0,
            asleep: true,
            filled: 0,
            busy: Busy::default(),
            duplicates: 0,
            interrupts: 0,
        }
    }

    /// Number of segments that a sender may have outstanding at the start.
    pub fn first_edge(&self) -> u32 {
        self.edge
    }

    /// Records that a frame's completion is in memory.
    pub fn landed(&mut self, r: ReceivedFrame) {
        self.completed.push_back(r);
    }

    /// Whether the driver polls, and needs no interrupt.
    pub fn is_polling(&self) -> bool {
        self.polling
    }

    /// Decides what the core does next; `interrupt` is the time at which the NIC's requested interrupt is due.
    pub fn choose(&self, now: Time, interrupt: Option<Time>) -> ReceiverAction {
        if !self.completed.is_empty() && (self.polling || interrupt.is_some_and(|t| t <= now)) {
            return ReceiverAction::Poll;
        }
        match (self.rest(), interrupt) {
            (ReceiverAction::Nothing, Some(t)) if !self.completed.is_empty() => ReceiverAction::Until(t),
            (rest, _) => rest,
        }
    }

    /// Decides what the core does when it does not poll.
    pub fn rest(&self) -> ReceiverAction {
        if self.unlock || self.free {
            ReceiverAction::Release
        } else if !self.queue.is_empty() {
            ReceiverAction::Copy
        } else {
            ReceiverAction::Nothing
        }
    }

    /// Appends the operations of a poll.
    pub fn poll(&mut self, s: &TcpSpec, p: &mut Program, at: &mut impl FramePlaces) {
        self.begin_poll();
        if !self.polling {
            self.polling = true;
            self.interrupts += 1;
            p.compute(s.interrupt);
        }
        let n = self.completed.len().min(self.budget);
        self.polled = n.to_u32();
        for _ in 0..n {
            let r = self.completed.pop_front().expect("counted");
            // The completion contains the frame's address, and the frame's header identifies the connection.
            p.push(Op::Load { line: r.completion, lines: 1 });
            self.count_users(r.at, p, at);
            for i in 0..self.layout.frame.min(s.quirks.head.0 / LINE) {
                p.push(Op::Load { line: at.line(r.at + i), lines: 1 });
            }
            p.push(Op::Fence);
            p.compute(s.frame);
            self.merge(r);
        }
        self.end_poll(s, p, at);
    }

    /// Numbers of the segments that the next poll takes.
    pub fn next_polled(&self) -> impl Iterator<Item = u32> + '_ {
        self.completed.iter().take(self.budget).map(|r| r.seq)
    }

    /// Begins a poll.
    pub fn begin_poll(&mut self) {
        self.phase = ReceiverPhase::Poll;
        self.merged.clear();
    }

    /// Ends a poll, all of whose frames have been taken: the connection processes the frames, unless the application
    /// holds the socket.
    pub fn end_poll(&mut self, s: &TcpSpec, p: &mut Program, at: &mut impl FramePlaces) {
        if !self.locked {
            self.deliver(s, p, at);
        }
    }

    /// Merges a frame as GRO does: a frame that continues the last segment extends that segment.
    pub fn merge(&mut self, r: ReceivedFrame) {
        self.backlog.push_back(r);
        let mark = u32::from(r.marked);
        match self.runs.last_mut() {
            Some(m) if m.to == r.seq && m.to - m.from < self.merge => {
                m.to += 1;
                m.marked += mark;
            }
            _ => self.runs.push(Merged { from: r.seq, to: r.seq + 1, next: 0, marked: mark }),
        }
    }

    /// Delivers the segments that wait to the connection.
    fn deliver(&mut self, s: &TcpSpec, p: &mut Program, at: &mut impl FramePlaces) {
        for i in 0..self.runs.len() {
            p.compute(s.segment);
            let mut run = self.runs[i];
            for seq in run.from..run.to {
                let mut r = self.backlog.pop_front().expect("a run's frames wait");
                r.last = seq + 1 == run.to;
                if !self.take(r) {
                    self.count_users(r.at, p, at);
                    at.free(r.at);
                }
            }
            run.next = self.next;
            self.merged.push(run);
        }
        self.runs.clear();
    }

    /// Counts the frame at `at` as a user of its pages, or no longer as one. A locked instruction waits for every
    /// access before it, and later accesses wait for it.
    fn count_users(&self, at: u64, p: &mut Program, places: &mut impl FramePlaces) {
        for page in self.layout.pages(at) {
            p.push(Op::Fence);
            p.push(Op::Store { line: places.structure(page), lines: 1 });
            p.push(Op::Fence);
        }
    }

    /// Adds a frame's segment to the connection; returns false when the segment had arrived before.
    fn take(&mut self, r: ReceivedFrame) -> bool {
        let ahead = r.seq.wrapping_sub(self.next).to_usize();
        if r.seq < self.next || self.early.get(ahead).is_some_and(Option::is_some) {
            self.duplicates += 1;
            return false;
        }
        while self.early.len() <= ahead {
            self.early.push_back(None);
        }
        self.early[ahead] = Some(r);
        while let Some(Some(r)) = self.early.front().copied() {
            self.early.pop_front();
            self.queue.push_back(r);
            self.next += 1;
        }
        true
    }

    /// Appends the operations that copy the oldest segment to the application's buffer. Returns the number of calls of `recv` that
    /// return a full buffer.
    pub fn copy(&mut self, s: &TcpSpec, p: &mut Program, reader: Reader, at: &mut impl FramePlaces) -> u64 {
        self.phase = ReceiverPhase::Copy;
        self.merged.clear();
        self.locked = true;
        if self.asleep {
            // `recv` had emptied the queue: the application received what there was, called `recv` again for the
            // remaining bytes and waited.
            self.asleep = false;
            self.calls(s.wake, p);
            self.calls(s.read, p);
        }
        let r = *self.queue.front().expect("something to copy");
        let head = s.quirks.head.0 / LINE;
        let mut returned = 0;
        p.compute(s.quirks.piece);
        for i in 1..self.layout.frame {
            if i == head || i > head && (r.at + i) % self.layout.page == 0 {
                p.compute(s.quirks.piece);
            }
            if self.filled == reader.lines {
                self.filled = 0;
                self.unlock = true;
                returned += 1;
                self.calls(reader.gap_instructions, p);
                self.calls(s.read, p);
            }
            let to = reader.buffer + self.filled;
            if i < head {
                p.push(Op::Store { line: to, lines: 1 }); // from the socket buffer
            } else {
                p.push(Op::Copy { from: at.line(r.at + i), to, lines: 1, dependent: false, behind: false });
                p.compute(s.quirks.line);
            }
            self.filled += 1;
        }
        self.copies.push(r.at);
        self.free |= r.last;
        returned
    }

    /// Appends the operations that free the segments that have been copied and, when `recv` releases the socket, that
    /// deliver the segments that have arrived in the meantime.
    pub fn release(&mut self, s: &TcpSpec, p: &mut Program, at: &mut impl FramePlaces) {
        self.phase = ReceiverPhase::Release;
        self.merged.clear();
        if std::mem::take(&mut self.free) {
            for i in 0..self.copies.len() {
                self.count_users(self.copies[i], p, at);
                at.free(self.copies[i]);
            }
            self.copies.clear();
        }
        if self.unlock {
            self.locked = false;
            self.deliver(s, p, at);
        }
    }

    fn calls(&mut self, instructions: u32, p: &mut Program) {
        self.busy.calls += u64::from(instructions);
        p.compute(instructions);
    }

    /// Ends the step at `now`. Returns whether the window has opened enough to tell the sender (Linux: when it is at
    /// least twice the window that the sender knows) and how many descriptors return to the NIC; `merged` holds the
    /// segments to be acknowledged.
    pub fn end(&mut self, now: Time) -> (bool, u32) {
        let spent = now - self.since;
        let mut descriptors = 0;
        let mut opened = false;
        match std::mem::take(&mut self.phase) {
            ReceiverPhase::Idle => self.merged.clear(),
            ReceiverPhase::Poll => {
                self.busy.poll += spent;
                descriptors = std::mem::take(&mut self.polled);
                if self.completed.is_empty() {
                    self.polling = false;
                }
            }
            ReceiverPhase::Copy => {
                self.busy.copy += spent;
                self.queue.pop_front();
                self.copied += 1;
                self.unlock |= self.queue.is_empty();
            }
            ReceiverPhase::Release => {
                self.busy.release += spent;
                if std::mem::take(&mut self.unlock) {
                    self.asleep = self.queue.is_empty();
                    let (known, room) = (self.edge - self.next, self.room());
                    opened = 2 * known <= self.buffer / 2 && room >= 2 * known && room >= self.buffer / 32;
                }
            }
        }
        (opened, descriptors)
    }

    /// Segments that the connection processed in the step that has just ended.
    pub fn merged(&self) -> &[Merged] {
        &self.merged
    }

    /// Number of segments, beyond the last one in order, for which there is room.
    fn room(&self) -> u32 {
        let held = self.queue.len() + self.early.iter().flatten().count();
        self.buffer.saturating_sub(held.to_u32()) / 2
    }

    /// Updates the window; returns the next segment in order and the new edge, both of which are sent to the sender
    /// now.
    pub fn acknowledge(&mut self) -> (u32, u32) {
        self.edge = self.edge.max(self.next + self.room());
        (self.next, self.edge)
    }

    /// Begins the measured window at `now`.
    pub fn restart_meters(&mut self, now: Time) {
        self.busy = Busy::default();
        self.since = self.since.max(now);
        self.interrupts = 0;
    }

    /// Number of segments that have arrived in order, and number of frames and segments that wait in the receive path.
    pub fn holds(&self) -> (u32, u64) {
        let early = self.early.iter().flatten().count();
        (self.next, (self.completed.len() + self.backlog.len() + early).to_u64())
    }

    /// Checks that every segment in order is copied or waiting.
    ///
    /// # Errors
    /// Returns one sentence when a segment in order is neither copied nor waiting.
    pub fn check(&self) -> Result<(), String> {
        if self.next != self.copied + self.queue.len().to_u32() {
            return Err(format!(
                "{} segments came in order, {} were copied, {} wait",
                self.next,
                self.copied,
                self.queue.len()
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "receiver_tests.rs"]
mod tests;
