//! The kernel's TCP receive path on one core (Linux with NAPI, GRO and aRFS, so that interrupt and application share the
//! core): completions are polled into segments, segments queue at the socket, and `recv` copies them to the application.
//!
//! A core does one thing at a time. Interrupts go before the application; what a step changes takes effect at its end.

use crate::core::{Op, Program};
use crate::kernel::units::{Size, Span};
use crate::kernel::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What the kernel's receive path costs beside the memory accesses that are simulated: completions, headers, payload.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TcpSpec {
    /// A frame in the driver and in GRO: descriptor, pages, merging.
    pub frame: Span,
    /// A merged segment in IP and TCP: socket buffer, protocol, acknowledgement.
    pub segment: Span,
    /// A `recv` call: system call, locks, freeing pages.
    pub read: Span,
    /// An interrupt and the start of polling.
    pub interrupt: Span,
    /// Waking the application that waits in `recv`.
    pub wake: Span,
    /// Frames that one poll takes at most (NAPI weight).
    pub poll_budget: u32,
    /// Payload that GRO merges at most.
    pub merge: Size,
    /// Window that a socket offers at first.
    pub first_window: Size,
    /// Largest window that a socket offers. It grows by what the application copies in a round-trip time (dynamic
    /// right-sizing, as Linux does it).
    pub receive_window: Size,
}

impl TcpSpec {
    /// # Errors
    /// One clause with key and value.
    pub fn check(&self) -> Result<(), String> {
        if self.poll_budget == 0 || self.poll_budget > 1024 {
            return Err(format!("poll_budget = {} is not within 1 to 1024", self.poll_budget));
        }
        if self.first_window.0 > self.receive_window.0 {
            return Err(format!(
                "first_window = \"{}\" is above receive_window = \"{}\"",
                self.first_window, self.receive_window
            ));
        }
        for (key, s) in
            [("merge", self.merge), ("first_window", self.first_window), ("receive_window", self.receive_window)]
        {
            if s.0 < 9600 || s.0 > 1 << 30 {
                return Err(format!("{key} = \"{s}\" is not within 9600 B to 1 GiB"));
            }
        }
        Ok(())
    }
}

/// A frame in the core's memory: the lines to touch, and what it carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Received {
    pub seq: u32,
    pub marked: bool,
    pub completion: u64,
    /// Offset of the frame in its pool.
    pub at: u64,
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
pub enum Step {
    #[default]
    Idle,
    Poll,
    Copy,
}

/// What it should do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    Poll,
    Copy,
    /// Nothing until the interrupt that is due then.
    Until(Time),
    Nothing,
}

/// Time that a core spent, by what it did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Busy {
    pub poll: Time,
    pub copy: Time,
    /// Of polling and copying, what the application's system calls cost beside the copy.
    pub calls: Time,
}

/// One core's receive path, with one connection.
#[derive(Clone)]
pub struct Receiver {
    moderation: Time,
    moderation_frames: usize,
    budget: usize,
    merge: u32,
    window: u32,
    window_limit: u32,
    /// Right-sizing: copied by then, at what time, and the most in one round trip.
    sized: (u32, Time, u32),
    /// Frames whose completions are there, and when the first of them will have raised an interrupt.
    completed: VecDeque<Received>,
    interrupt: Time,
    /// Polling goes on without an interrupt.
    polling: bool,
    /// Next segment in order; beyond it, which ones have come.
    next: u32,
    early: VecDeque<Option<Received>>,
    queue: VecDeque<Received>,
    /// Segments that the application has; the window's edge that the sender knows.
    pub copied: u32,
    edge: u32,
    pub step: Step,
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
    /// `payload` is a full segment's; interrupts come `moderation` after a completion, or with `frames` of them.
    pub fn new(s: &TcpSpec, payload: u64, moderation: Time, frames: u32) -> Receiver {
        let segments = |s: Size| (s.0 / payload).max(2) as u32;
        let window = segments(s.first_window);
        Receiver {
            moderation,
            moderation_frames: frames as usize,
            budget: s.poll_budget as usize,
            merge: (s.merge.0 / payload).max(1) as u32,
            window,
            window_limit: segments(s.receive_window),
            sized: (0, Time::ZERO, window / 2),
            completed: VecDeque::with_capacity(1024),
            interrupt: Time::MAX,
            polling: false,
            next: 0,
            early: VecDeque::with_capacity(1024),
            queue: VecDeque::with_capacity(1024),
            copied: 0,
            edge: window,
            step: Step::Idle,
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

    /// A frame's completion is in memory. Returns when the interrupt is due if this is what asks for one.
    pub fn landed(&mut self, r: Received, now: Time) -> Option<Time> {
        self.completed.push_back(r);
        let n = self.completed.len();
        if self.polling || (n > 1 && n != self.moderation_frames) {
            return None;
        }
        let due = if n >= self.moderation_frames { now } else { now + self.moderation };
        self.interrupt = self.interrupt.min(due);
        Some(self.interrupt)
    }

    pub fn choose(&self, now: Time) -> Choice {
        if !self.completed.is_empty() && (self.polling || self.interrupt <= now) {
            return Choice::Poll;
        }
        if !self.queue.is_empty() {
            return Choice::Copy;
        }
        if self.completed.is_empty() {
            Choice::Nothing
        } else {
            Choice::Until(self.interrupt)
        }
    }

    /// Ops of a poll; `line` finds a line of a frame by its offset.
    pub fn poll(&mut self, s: &TcpSpec, p: &mut Program, mut line: impl FnMut(&Received, u64) -> u64) {
        self.step = Step::Poll;
        if !self.polling {
            self.polling = true;
            self.interrupts += 1;
            p.push(Op::Stall(s.interrupt.0));
        }
        let n = self.completed.len().min(self.budget);
        self.polled = n as u32;
        self.merged.clear();
        for _ in 0..n {
            let r = self.completed.pop_front().expect("counted");
            // The completion says where the frame is, its header to whom it belongs.
            p.push(Op::Anchor { line: r.completion });
            p.push(Op::Chase { line: line(&r, 0), delay: 0 });
            p.push(Op::Fence);
            p.push(Op::Stall(s.frame.0));
            self.take(r);
        }
        for _ in 0..self.merged.len() {
            p.push(Op::Stall(s.segment.0));
        }
    }

    /// A frame's segment enters the connection.
    fn take(&mut self, r: Received) {
        let ahead = r.seq.wrapping_sub(self.next) as usize;
        if r.seq < self.next || self.early.get(ahead).is_some_and(Option::is_some) {
            self.duplicates += 1;
            return;
        }
        let mark = u32::from(r.marked);
        match self.merged.last_mut() {
            Some(m) if m.to == r.seq && m.to - m.from < self.merge => {
                m.to += 1;
                m.marked += mark;
            }
            _ => self.merged.push(Merged { from: r.seq, to: r.seq + 1, next: 0, marked: mark }),
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
        if let Some(m) = self.merged.last_mut() {
            m.next = self.next;
        }
    }

    /// Ops that copy the oldest segment, or as much of it as the present `recv` takes, to the application's buffer of
    /// `lines` lines from `to` on; a segment has `payload` lines.
    pub fn copy(
        &mut self,
        s: &TcpSpec,
        p: &mut Program,
        (to, lines, payload): (u64, u64, u64),
        mut line: impl FnMut(&Received, u64) -> u64,
    ) {
        self.step = Step::Copy;
        if self.asleep {
            // `recv` had run dry: what it got went to the application, which called again and waited.
            self.asleep = false;
            self.filled = 0;
            self.calls(s.wake, p);
            self.calls(s.read, p);
        }
        let r = *self.queue.front().expect("something to copy");
        for i in 0..payload {
            if self.filled == lines {
                self.filled = 0;
                self.calls(s.read, p);
            }
            p.push(Op::Copy { from: line(&r, 1 + i), to: to + self.filled, lines: 1, dependent: false });
            self.filled += 1;
        }
    }

    fn calls(&mut self, cost: Span, p: &mut Program) {
        self.busy.calls += Time::from(cost);
        p.push(Op::Stall(cost.0));
    }

    /// The step ends at `now`. Says whether the window has opened enough to tell the sender (Linux: when it is at least twice
    /// what the sender knows of) and how many descriptors go back; `merged` has what is to be acknowledged.
    pub fn end(&mut self, now: Time) -> (bool, u32) {
        let spent = now - self.since;
        let mut descriptors = 0;
        let mut opened = false;
        match std::mem::take(&mut self.step) {
            Step::Idle => self.merged.clear(),
            Step::Poll => {
                self.busy.poll += spent;
                descriptors = std::mem::take(&mut self.polled);
                if self.completed.is_empty() {
                    self.polling = false;
                    self.interrupt = Time::MAX;
                }
            }
            Step::Copy => {
                self.merged.clear();
                self.busy.copy += spent;
                self.queue.pop_front();
                self.copied += 1;
                self.asleep = self.queue.is_empty();
                let known = self.edge - self.next;
                let room = self.copied + self.window - self.next;
                opened = 2 * known <= self.window && room >= 2 * known && room >= self.window / 16;
            }
        }
        (opened, descriptors)
    }

    /// Segments that the step that has just ended merged.
    pub fn merged(&self) -> &[Merged] {
        &self.merged
    }

    /// A round trip of `rtt` may have passed: sizes the window by what the application took in it.
    pub fn size(&mut self, now: Time, rtt: Time) {
        let (copied, since, most) = self.sized;
        if rtt == Time::ZERO || now - since < rtt {
            return;
        }
        let took = self.copied - copied;
        if took > most {
            let base = 2 * took + 16;
            let grow = base * (took - most) / most.max(1);
            self.window = self.window.max((base + 2 * grow).min(self.window_limit));
        }
        self.sized = (self.copied, now, most.max(took));
    }

    /// Everything below has come; and how far the sender may go, which it is told now.
    pub fn tell(&mut self) -> (u32, u32) {
        self.edge = self.edge.max(self.copied + self.window);
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
        (self.next, (self.completed.len() + early) as u64)
    }

    /// # Errors
    /// When segments in order are neither copied nor waiting.
    pub fn check(&self) -> Result<(), String> {
        if self.next != self.copied + self.queue.len() as u32 {
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
