//! The kernel's TCP receive path on one core (Linux with NAPI, GRO and aRFS, so that interrupt and application share the
//! core): completions are polled into segments, segments queue at the socket, and `recv` copies them to the application.
//!
//! A core does one thing at a time. Interrupts go before the application; what a step changes takes effect at its end.

use super::TcpSpec;
use crate::core::{Op, Program};
use crate::kernel::{Int, LineAddr, Time};
use crate::memory::LINE;
use std::collections::VecDeque;

/// A frame in the core's memory: the lines to touch, and what it carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Received {
    pub seq: u32,
    pub marked: bool,
    pub completion: LineAddr,
    /// Offset of the frame in its pool.
    pub at: u64,
    /// It ends a merged segment: what that held is freed once this one has been copied.
    pub last: bool,
}

/// How frames lie in memory, in lines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Layout {
    pub frame: u64,
    pub page: u64,
}

impl Layout {
    /// Where the frame at `at` begins on each of its pages.
    fn pages(self, at: u64) -> impl Iterator<Item = u64> {
        let first = at / self.page;
        let last = (at + self.frame - 1) / self.page;
        (first..=last).map(move |p| (p * self.page).max(at))
    }
}

/// Where the parts of frames are in physical memory, by their offset in the pool.
pub trait Places {
    fn line(&mut self, at: u64) -> LineAddr;
    /// The kernel's structure for that line's page.
    fn structure(&mut self, at: u64) -> LineAddr;
    /// The frame at `at` is used no more.
    fn free(&mut self, at: u64) {
        let _ = at;
    }
}

/// The application, as `recv` sees it: its buffer's first line and lines, and the instructions that it spends once the
/// buffer is full before it asks again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reader {
    pub buffer: LineAddr,
    pub lines: u64,
    pub between: u32,
}

/// Segments that came one after the other and were merged; everything below `next` had come by then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Merged {
    pub from: u32,
    pub to: u32,
    pub next: u32,
    pub marked: u32,
}

/// What the core is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Phase {
    #[default]
    Idle,
    Poll,
    Copy,
    Release,
}

/// What it should do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    Poll,
    Copy,
    /// Free what has been copied, or let the socket go.
    Release,
    /// Nothing until the interrupt that is due then.
    Until(Time),
    Nothing,
}

/// Time that a core spent, by what it did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Busy {
    pub poll: Time,
    pub copy: Time,
    pub release: Time,
    /// Instructions of the application's system calls, which lie within copying.
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
    layout: Layout,
    budget: usize,
    merge: u32,
    /// Segments that the socket may hold.
    buffer: u32,
    /// Frames whose completions are there.
    completed: VecDeque<Received>,
    /// Polling goes on without an interrupt.
    polling: bool,
    /// Next segment in order; beyond it, which ones have come.
    next: u32,
    early: VecDeque<Option<Received>>,
    queue: VecDeque<Received>,
    /// Frames that the driver has taken, and the segments that they were merged to, until the connection sees them.
    /// While `recv` holds the socket's lock, they wait (the socket's backlog).
    backlog: VecDeque<Received>,
    runs: Vec<Merged>,
    locked: bool,
    /// `recv` ends or has run dry: it lets the socket go.
    unlock: bool,
    /// Frames that have been copied and still use their pages; a whole segment's are freed.
    copies: Vec<u64>,
    free: bool,
    /// Segments that the application has; the window's edge that the sender knows.
    pub copied: u32,
    edge: u32,
    pub phase: Phase,
    pub since: Time,
    merged: Vec<Merged>,
    polled: u32,
    /// The application waits in `recv`.
    asleep: bool,
    /// Lines of the present `recv` that are filled, of the application's buffer.
    filled: u64,
    pub busy: Busy,
    /// Segments that had come before.
    pub duplicates: u64,
    pub interrupts: u64,
}

impl Receiver {
    /// `payload` is a full segment's, which counts as `size` bytes of the socket's buffer.
    pub fn new(s: &TcpSpec, layout: Layout, payload: u64, size: u64) -> Receiver {
        let buffer = (s.receive_buffer.0 / size).to_u32();
        Receiver {
            layout,
            budget: s.poll_budget.to_usize(),
            merge: (s.merge.0 / payload).max(1).to_u32(),
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
            phase: Phase::Idle,
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

    /// Segments that a sender may have under way at first.
    pub fn first_edge(&self) -> u32 {
        self.edge
    }

    /// A frame's completion is in memory.
    pub fn landed(&mut self, r: Received) {
        self.completed.push_back(r);
    }

    /// Whether it polls, and wants no interrupt.
    pub fn is_polling(&self) -> bool {
        self.polling
    }

    /// `interrupt` is when the NIC's is due that has been asked for.
    pub fn choose(&self, now: Time, interrupt: Option<Time>) -> Choice {
        if !self.completed.is_empty() && (self.polling || interrupt.is_some_and(|t| t <= now)) {
            return Choice::Poll;
        }
        match (self.rest(), interrupt) {
            (Choice::Nothing, Some(t)) if !self.completed.is_empty() => Choice::Until(t),
            (rest, _) => rest,
        }
    }

    /// What there is to do beside polling.
    pub fn rest(&self) -> Choice {
        if self.unlock || self.free {
            Choice::Release
        } else if !self.queue.is_empty() {
            Choice::Copy
        } else {
            Choice::Nothing
        }
    }

    /// Ops of a poll.
    pub fn poll(&mut self, s: &TcpSpec, p: &mut Program, at: &mut impl Places) {
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
            // The completion says where the frame is, its header to whom it belongs.
            p.push(Op::Load { line: r.completion, lines: 1 });
            self.count_users(r.at, p, at);
            for i in 0..self.layout.frame.min(s.head.0 / LINE) {
                p.push(Op::Load { line: at.line(r.at + i), lines: 1 });
            }
            p.push(Op::Fence);
            p.compute(s.frame);
            self.merge(r);
        }
        self.end_poll(s, p, at);
    }

    /// A poll begins.
    pub fn begin_poll(&mut self) {
        self.phase = Phase::Poll;
        self.merged.clear();
    }

    /// A poll has taken all its frames: the connection sees them, unless the application holds the socket.
    pub fn end_poll(&mut self, s: &TcpSpec, p: &mut Program, at: &mut impl Places) {
        if !self.locked {
            self.deliver(s, p, at);
        }
    }

    /// GRO: a frame that follows the last one lengthens its segment.
    pub fn merge(&mut self, r: Received) {
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

    /// The connection sees the segments that wait for it.
    fn deliver(&mut self, s: &TcpSpec, p: &mut Program, at: &mut impl Places) {
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

    /// The frame at `at` begins or ends to use its pages. A locked instruction waits for every access before it, and what
    /// follows waits for it.
    fn count_users(&self, at: u64, p: &mut Program, places: &mut impl Places) {
        for page in self.layout.pages(at) {
            p.push(Op::Fence);
            p.push(Op::Store { line: places.structure(page), lines: 1 });
            p.push(Op::Fence);
        }
    }

    /// A frame's segment enters the connection; false when it had come before.
    fn take(&mut self, r: Received) -> bool {
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

    /// Ops that copy the oldest segment to the application's buffer.
    pub fn copy(&mut self, s: &TcpSpec, p: &mut Program, reader: Reader, at: &mut impl Places) {
        self.phase = Phase::Copy;
        self.merged.clear();
        self.locked = true;
        if self.asleep {
            // `recv` had run dry: what it got went to the application, which called again for the rest and waited.
            self.asleep = false;
            self.calls(s.wake, p);
            self.calls(s.read, p);
        }
        let r = *self.queue.front().expect("something to copy");
        let head = s.head.0 / LINE;
        p.compute(s.piece);
        for i in 1..self.layout.frame {
            if i == head || i > head && (r.at + i) % self.layout.page == 0 {
                p.compute(s.piece);
            }
            if self.filled == reader.lines {
                self.filled = 0;
                self.unlock = true;
                self.calls(reader.between, p);
                self.calls(s.read, p);
            }
            let to = reader.buffer + self.filled;
            if i < head {
                p.push(Op::Store { line: to, lines: 1 }); // from the socket buffer
            } else {
                p.push(Op::Copy { from: at.line(r.at + i), to, lines: 1, dependent: false, behind: false });
                p.compute(s.line);
            }
            self.filled += 1;
        }
        self.copies.push(r.at);
        self.free |= r.last;
    }

    /// Ops that free the segments that have been copied and, when `recv` lets the socket go, take in what came meanwhile.
    pub fn release(&mut self, s: &TcpSpec, p: &mut Program, at: &mut impl Places) {
        self.phase = Phase::Release;
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

    /// The step ends at `now`. Says whether the window has opened enough to tell the sender (Linux: when it is at least twice
    /// what the sender knows of) and how many descriptors go back; `merged` has what is to be acknowledged.
    pub fn end(&mut self, now: Time) -> (bool, u32) {
        let spent = now - self.since;
        let mut descriptors = 0;
        let mut opened = false;
        match std::mem::take(&mut self.phase) {
            Phase::Idle => self.merged.clear(),
            Phase::Poll => {
                self.busy.poll += spent;
                descriptors = std::mem::take(&mut self.polled);
                if self.completed.is_empty() {
                    self.polling = false;
                }
            }
            Phase::Copy => {
                self.busy.copy += spent;
                self.queue.pop_front();
                self.copied += 1;
                self.unlock |= self.queue.is_empty();
            }
            Phase::Release => {
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

    /// Segments that the connection saw in the step that has just ended.
    pub fn merged(&self) -> &[Merged] {
        &self.merged
    }

    /// Segments beyond the last in order that there is room for.
    fn room(&self) -> u32 {
        let held = self.queue.len() + self.early.iter().flatten().count();
        self.buffer.saturating_sub(held.to_u32()) / 2
    }

    /// Everything below has come; and how far the sender may go, which it is told now.
    pub fn tell(&mut self) -> (u32, u32) {
        self.edge = self.edge.max(self.next + self.room());
        (self.next, self.edge)
    }

    pub fn restart_meters(&mut self, now: Time) {
        self.busy = Busy::default();
        self.since = self.since.max(now);
        self.interrupts = 0;
    }

    /// Segments that have come in order; frames and segments that wait here.
    pub fn holds(&self) -> (u32, u64) {
        let early = self.early.iter().flatten().count();
        (self.next, (self.completed.len() + self.backlog.len() + early).to_u64())
    }

    /// # Errors
    /// When segments in order are neither copied nor waiting.
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
