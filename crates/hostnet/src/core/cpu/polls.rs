//! Rounds of polls that find nothing, which are counted instead of executed.
//!
//! A thread that polls several places in turn runs one short program for each poll. As long as the L1 holds all polled
//! lines, each round takes the same time, which follows from the instructions and the latency of the L1:
//!
//! ```text
//!   round:   | compute  load 1 .. data | compute  load 2 .. data |  and again, until another agent takes a line away
//!   look-up:            x                          x                or something else arrives
//! ```
//!
//! A poll may also load several lines, and wait for the data of the last one. The thread then goes on within the round,
//! with the first look-up behind that event, in the state in which the executed polls would have left the core.
//!
//! On a core with a second thread, executed polls set the share of the issue slots that the thread takes, once in each
//! window of time. Counted ones set it as often, and with the same counts.

use super::{Cpu, LineAccess, FRAC};
use crate::core::op::Op;
use crate::core::CorePosts;
use crate::kernel::{Int, LineAddr, Time};
use crate::memory::Memory;
use std::collections::VecDeque;

/// Instructions and accesses of polls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundCounts {
    /// Number of instructions.
    pub instructions: u64,
    /// Number of lines that were looked up.
    pub accesses: u64,
}

impl RoundCounts {
    fn plus(self, o: RoundCounts, times: u64) -> RoundCounts {
        RoundCounts {
            instructions: self.instructions + o.instructions * times,
            accesses: self.accesses + o.accesses * times,
        }
    }
}

/// Course of a program of polls from its start to its end, or to a look-up that lies in the future.
#[derive(Clone, Copy)]
struct PollCourse {
    /// Time of the core, in 1/16 ps: at the end, or at the dispatch of the load whose look-up is to come.
    t: u64,
    /// Time of the last event of the core.
    event: Time,
    /// Counts of what has been dispatched.
    counts: RoundCounts,
    /// Place of the load whose look-up is to come, and the instructions dispatched with it.
    next: Option<(usize, u64)>,
}

/// Place of a core within its rounds of polls.
struct PollPlace {
    /// Number of polls that have ended.
    ended: u64,
    /// Counts of the polls before the present one.
    before: RoundCounts,
    /// Present poll.
    course: PollCourse,
}

/// The programs of a round, each a poll that found nothing, in the order in which the thread repeats them.
#[derive(Clone, Default)]
pub struct PollRound {
    /// Programs, and the core's time at their start.
    polls: VecDeque<(Vec<Op>, u64)>,
    /// Time of the core at which the last program ends if the L1 holds its lines.
    ends: Option<u64>,
    /// Whether the core, at its last poll, could only count from then on.
    steady: bool,
    /// Start of the rounds that are only counted, and duration of each, in 1/16 ps.
    began: u64,
    period: u64,
    /// Time within a round at which each poll begins, in 1/16 ps, and the instructions of the polls before.
    starts: Vec<(u64, u64)>,
    round: RoundCounts,
    /// Counts that do not belong to the measured window, or that the core has already.
    counted: RoundCounts,
}

impl PollRound {
    /// Lines that a round reads.
    pub fn lines(&self) -> impl Iterator<Item = LineAddr> + '_ {
        self.polls.iter().flat_map(|(ops, _)| ops).filter_map(|op| polled(op).map(|(line, _)| line))
    }

    /// Whether the core, at its last poll, could only count from then on.
    pub fn is_steady(&self) -> bool {
        self.steady
    }

    /// Notes that the thread does something else than repeat its polls.
    pub fn interrupt(&mut self) {
        self.steady = false;
    }

    /// Returns whether the core can only count the polls from now on, beginning with the one in its buffer, one of `of` that
    /// the thread repeats in turn. The last round must have taken the time that it takes with all lines in the L1. The core
    /// must have nothing in flight, and still hold all lines.
    pub fn repeats(&mut self, cpu: &Cpu, mem: &Memory, of: usize) -> bool {
        if self.ends != Some(cpu.t) {
            self.polls.clear();
        }
        let again = self.polls.len() == of && self.polls[0].0 == cpu.program.ops;
        self.steady = again && self.begins(cpu, mem);
        self.steady
    }

    /// Notes the poll in the buffer of `cpu`, one of `of` that the thread repeats in turn, which the core executes; the
    /// thread has found nothing since its last poll.
    pub fn note(&mut self, cpu: &Cpu, mem: &Memory, of: usize) {
        let mut ops = if self.polls.len() >= of { self.polls.pop_front().unwrap_or_default().0 } else { Vec::new() };
        ops.clone_from(&cpu.program.ops);
        self.ends = cpu.course(mem, &ops, cpu.t, Time::MAX).map(|c| c.t);
        self.polls.push_back((ops, cpu.t));
    }

    /// Whether the round that begins now takes as long as the last one; if so, begins to count.
    fn begins(&mut self, cpu: &Cpu, mem: &Memory) -> bool {
        (self.began, self.counted, self.round) = (cpu.t, RoundCounts::default(), RoundCounts::default());
        self.period = cpu.t - self.polls[0].1;
        if self.period == 0 || !cpu.is_quiet(mem) || !self.lines().all(|l| mem.holds(cpu.core, l)) {
            return false;
        }
        self.starts.clear();
        let mut t = cpu.t;
        for (ops, _) in &self.polls {
            let Some(course) = cpu.course(mem, ops, t, Time::MAX) else { return false };
            self.starts.push((t - self.began, self.round.instructions));
            t = course.t;
            self.round = self.round.plus(course.counts, 1);
        }
        t == self.began + self.period && (mem.sibling(cpu.id).is_none() || self.share_settles(cpu))
    }

    /// Whether executed polls would leave the share of the slots that `cpu` takes as it is.
    fn share_settles(&self, cpu: &Cpu) -> bool {
        let programs = self.polls.len();
        cpu.smt_slots.is_settled(self.round.instructions, self.period, programs)
    }

    /// Place of the core in its rounds at `now`.
    fn place(&self, cpu: &Cpu, mem: &Memory, now: Time) -> PollPlace {
        let rounds = ((now.0 + 1) * FRAC - 1).saturating_sub(self.began) / self.period;
        let mut t = self.began + rounds * self.period;
        let (mut ended, mut before) =
            (rounds * self.polls.len().to_u64(), RoundCounts::default().plus(self.round, rounds));
        let mut polls = self.polls.iter().map(|(ops, _)| ops).cycle();
        loop {
            let ops = polls.next().map_or(&[][..], Vec::as_slice);
            let course = cpu.course(mem, ops, t, now).expect("a program of polls");
            if course.next.is_some() || Time(course.t / FRAC) > now {
                return PollPlace { ended, before, course };
            }
            t = course.t;
            ended += 1;
            before = before.plus(course.counts, 1);
        }
    }

    /// Excludes the polls up to `now` from the counts of `cpu`.
    pub fn leave_out(&mut self, cpu: &Cpu, mem: &Memory, now: Time) {
        let place = self.place(cpu, mem, now);
        self.counted = place.before.plus(place.course.counts, 1);
    }

    /// Adds the polls up to `now` to the counts of `cpu`.
    pub fn count(&mut self, cpu: &mut Cpu, mem: &Memory, now: Time) {
        if mem.sibling(cpu.id).is_some() {
            self.take_slots(cpu, now);
        }
        let before = self.counted;
        self.leave_out(cpu, mem, now);
        let (now, accesses) = (self.counted, self.counted.accesses - before.accesses);
        cpu.instructions += now.instructions - before.instructions;
        cpu.amat.accesses += accesses;
        cpu.amat.ps += u128::from(accesses * mem.lat.l1.0);
    }

    /// Brings the share of the slots that `cpu` takes to where the starts of polls up to `now` leave it.
    fn take_slots(&self, cpu: &mut Cpu, now: Time) {
        loop {
            let (at, instructions) = self.first_start(cpu.smt_slots.window_ends());
            if at > now {
                return;
            }
            cpu.smt_slots.average(cpu.instructions + instructions - self.counted.instructions, at);
        }
    }

    /// Time of the first start of a poll at `from` or later, and the number of instructions before it.
    fn first_start(&self, from: Time) -> (Time, u64) {
        let since = (from.0 * FRAC).saturating_sub(self.began);
        let (rounds, within) = (since / self.period, since % self.period);
        let next = (self.period, self.round.instructions);
        let (at, before) = self.starts.iter().copied().find(|s| s.0 >= within).unwrap_or(next);
        let at = Time((self.began + rounds * self.period + at) / FRAC);
        (at, rounds * self.round.instructions + before)
    }

    /// Lets `cpu` execute its polls from `now` on, within the round. Returns the number of polls that have ended since the
    /// last one that the thread made, and the end of the present one, if it is known.
    pub fn resume(
        &mut self,
        cpu: &mut Cpu,
        mem: &mut Memory,
        cal: &mut impl CorePosts,
        now: Time,
    ) -> (u64, Option<Time>) {
        self.count(cpu, mem, now);
        let PollPlace { ended, course, .. } = self.place(cpu, mem, now);
        let present = (ended % self.polls.len().to_u64()).to_usize();
        cpu.program.ops.clone_from(&self.polls[present].0);
        self.polls.clear();
        self.steady = false;
        (ended, cpu.go_on_polling(mem, cal, course, now))
    }
}

/// Line that an operation of a poll loads, and whether the wait for data is for this load.
fn polled(op: &Op) -> Option<(LineAddr, bool)> {
    match *op {
        Op::Anchor { line } => Some((line, true)),
        Op::Load { line, lines: 1 } => Some((line, false)),
        _ => None,
    }
}

/// The loads since the last wait for data, of which the last one has its data at `data`, in 1/16 ps.
#[derive(Clone, Copy)]
struct OpenLoads {
    data: u64,
    anchors: bool,
    /// Whether the look-up of the last load is an event of its own, for which a wait waits.
    deferred: bool,
}

impl Cpu {
    /// Course of the program `ops` of polls that starts at `t`, in 1/16 ps, up to the last look-up at `until`; None where
    /// `ops` does anything else than poll lines of the L1.
    fn course(&self, mem: &Memory, ops: &[Op], t: u64, until: Time) -> Option<PollCourse> {
        let mut c = PollCourse { t, event: Time(t / FRAC), counts: RoundCounts::default(), next: None };
        let mut dispatched = c.event;
        let mut open: Option<OpenLoads> = None;
        for (pc, op) in ops.iter().enumerate() {
            match *op {
                Op::Compute(n) => {
                    c.counts.instructions += u64::from(n);
                    c.t += u64::from(n) * self.smt_slots.compute;
                }
                Op::Serialise => {
                    let Some(drain) = self.serialise else { continue };
                    if let Some(o) = open.as_mut().filter(|o| o.deferred) {
                        (o.deferred, c.t, dispatched) = (false, c.t.max(o.data), c.event);
                    }
                    c.counts.instructions += 1;
                    c.t += drain + self.smt_slots.access;
                }
                Op::Await => {
                    let o = open.take().filter(|o| o.anchors)?;
                    c.t = c.t.max(o.data);
                    if o.deferred {
                        dispatched = c.event;
                    }
                }
                _ => {
                    let (line, anchors) = polled(op)?;
                    let (ready, races) = (Time(c.t / FRAC), mem.read_may_race(line));
                    if open.is_some_and(|o| self.in_order || (o.deferred && !races)) {
                        return None;
                    }
                    if races && ready > c.event + mem.lat.noc {
                        if ready > until {
                            let with = self.dispatched_together(&ops[pc..]);
                            c.counts.instructions += with;
                            return Some(PollCourse { next: Some((pc, with)), ..c });
                        }
                        c.event = ready;
                    }
                    c.counts.instructions += u64::from(self.per_line);
                    c.counts.accesses += 1;
                    c.t += u64::from(self.per_line) * self.smt_slots.access;
                    let deferred = races && ready > dispatched + mem.lat.noc;
                    open = Some(OpenLoads { data: (ready + mem.lat.l1).0 * FRAC, anchors, deferred });
                }
            }
        }
        open.is_none().then_some(c)
    }

    /// Instructions that the core dispatches before it waits for the first data of `ops`.
    fn dispatched_together(&self, ops: &[Op]) -> u64 {
        let of = |op: &Op| match *op {
            Op::Compute(n) => u64::from(n),
            _ => u64::from(self.per_line),
        };
        ops.iter().take_while(|op| !matches!(op, Op::Await | Op::Serialise)).map(of).sum()
    }

    /// Whether the core has nothing in flight, so that nothing but its own polls and other agents can change its caches.
    /// Prefetch hints fill the L2, which evicts nothing from the L1 unless it includes the L1.
    pub fn is_quiet(&self, mem: &Memory) -> bool {
        let ahead = self.prefetcher.as_ref().is_none_or(|p| p.queue.used() == 0 && p.waiting.is_idle());
        ahead
            && (self.hints.is_none() || !mem.l2_includes_l1())
            && self.live & !self.finished == 0
            && self.lfb.used() == 0
            && self.no_credit.is_empty()
            && !self.effects_wait()
            && self.pending_sweeps.all_arrived(self.now())
    }

    /// Goes on with a program of polls at the place that `course` describes. Returns the program's end as `start` does.
    fn go_on_polling(
        &mut self,
        mem: &mut Memory,
        cal: &mut impl CorePosts,
        course: PollCourse,
        now: Time,
    ) -> Option<Time> {
        self.t = course.t;
        self.release_finished(now);
        let Some((pc, with)) = course.next else { return Some(self.now()) };
        (self.pc, self.sub, self.half, self.running) = (pc, 0, false, true);
        self.deferred.at(mem, course.event);
        self.instructions -= with; // counted with the polls before
        while let Some((line, anchors)) = self.next_polled() {
            let ready = self.now();
            let r = self.new_rec(line, false, true, ready)?;
            self.defer_lookup(cal, r, ready);
            self.enter(r, LineAccess { anchors, ..LineAccess::LOAD });
            self.pc += 1;
        }
        self.run(mem, cal)
    }

    /// Dispatches instructions up to the next load before the core waits for data; returns what the load reads.
    fn next_polled(&mut self) -> Option<(LineAddr, bool)> {
        while let Op::Compute(n) = *self.program.ops.get(self.pc)? {
            self.compute(n);
            self.pc += 1;
        }
        polled(self.program.ops.get(self.pc)?)
    }
}
