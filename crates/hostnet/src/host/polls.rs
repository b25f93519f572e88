//! Threads that poll: while they find nothing, their polls are counted instead of executed.
//!
//! The two threads of a core share its L1 and its issue slots. The polls of one are counted only while the other one
//! sleeps, or polls as well: before a thread begins anything else, its sibling executes its polls again.

use super::Host;
use crate::core;
use crate::kernel::{Due, Post, ThreadId};
use crate::machine::Event;
use crate::stack::role::IdleState;
use crate::stack::{Software, Step};

#[cfg(test)]
use tests::counts;

/// Whether polls may be counted; tests also execute them.
#[cfg(not(test))]
const fn counts() -> bool {
    true
}

impl Host {
    /// Lets a core run the poll in its buffer, one of `of` that it repeats in turn until `until` at most. The core stops
    /// when its next round only repeats the last one.
    #[inline(never)]
    pub(super) fn poll(&mut self, core: ThreadId, of: usize, until: Due) {
        let m = &mut self.machine;
        if m.mem.siblings.is_some() {
            m.share_slots(core); // as at the start of a program
        }
        let round = self.cores[core].round.get_or_insert_default();
        round.interrupt();
        let repeats = counts() && until.by(m.now).is_none() && round.repeats(&m.cpus[core], &m.mem, of);
        if !repeats || !self.sibling_is_still(core) {
            return self.execute_poll(core, of);
        }
        let m = &mut self.machine;
        let slot = &mut self.cores[core];
        slot.round.iter().flat_map(|round| round.lines()).for_each(|line| m.mem.watch_at_home(core, line));
        if let Some(at) = until.time() {
            m.cal.push(at, Event::Interrupt(core));
        }
        slot.idle = IdleState::PollingInTurn { until };
    }

    /// Executes the poll in a core's buffer.
    fn execute_poll(&mut self, core: ThreadId, of: usize) {
        let m = &mut self.machine;
        if let Some(round) = &mut self.cores[core].round {
            round.note(&m.cpus[core], &m.mem, of);
            if !round.is_steady() {
                self.resume_sibling(core);
            }
        }
        self.machine.start(core);
    }

    /// Whether the other thread of the core, if there is one, has nothing in flight but polls, so that it neither takes
    /// lines out of the L1 nor stores to them.
    fn sibling_is_still(&self, core: ThreadId) -> bool {
        let m = &self.machine;
        m.mem.sibling(core).is_none_or(|other| match self.cores[other].idle {
            IdleState::Not => self.cores[other].round.as_ref().is_some_and(|round| round.is_steady()),
            _ => m.cpus[other].is_quiet(&m.mem),
        })
    }

    /// Lets the other thread of a core execute its polls again.
    fn resume_sibling(&mut self, core: ThreadId) {
        let Some(other) = self.machine.mem.sibling(core) else { return };
        if let IdleState::PollingInTurn { .. } = self.cores[other].idle {
            self.resume_polls(other);
        }
    }

    /// Notes that a thread, which shares its core, does `next`.
    #[cold]
    pub(super) fn on_step_beside_sibling(&mut self, core: ThreadId, next: Step) {
        match next {
            Step::Poll { .. } => return,
            Step::Run => self.resume_sibling(core),
            _ => {}
        }
        self.cores[core].round.iter_mut().for_each(|round| round.interrupt());
    }

    /// Lets a core, for which an event has arrived, execute its polls again.
    #[inline(never)]
    pub(super) fn resume_polls(&mut self, core: ThreadId) {
        let m = &mut self.machine;
        let slot = &mut self.cores[core];
        m.mem.unwatch(core);
        slot.idle = IdleState::Not;
        let Some(round) = &mut slot.round else { return };
        let (polls, end) = round.resume(&mut m.cpus[core], &mut m.mem, &mut m.cal, m.now);
        slot.thread.skip_polls(polls);
        if let Some(end) = end {
            m.cal.post(end.max(m.now), core::CoreEvent::Free(core));
        }
    }

    /// Adds to the cores' counts the polls up to now.
    pub(super) fn count_polls(&mut self) {
        let m = &mut self.machine;
        let now = m.now;
        for (core, slot) in self.cores.enumerate_mut() {
            let cpu = &mut m.cpus[core];
            match &mut slot.idle {
                IdleState::Polling { since, instructions, counted, .. } => {
                    let polls = cpu.next_poll(*since, now, *instructions).1;
                    cpu.instructions += (polls - *counted) * u64::from(*instructions);
                    *counted = polls;
                }
                IdleState::PollingInTurn { .. } => {
                    slot.round.iter_mut().for_each(|round| round.count(cpu, &m.mem, now));
                }
                IdleState::Not | IdleState::Asleep => {}
            }
        }
    }

    /// Excludes polls up to now from the window that begins.
    pub(super) fn restart_polls(&mut self) {
        let m = &mut self.machine;
        let now = m.now;
        for (core, slot) in self.cores.enumerate_mut() {
            let cpu = &m.cpus[core];
            match &mut slot.idle {
                IdleState::Polling { since, instructions, counted, .. } => {
                    *counted = cpu.next_poll(*since, now, *instructions).1;
                }
                IdleState::PollingInTurn { .. } => {
                    slot.round.iter_mut().for_each(|round| round.leave_out(cpu, &m.mem, now));
                }
                IdleState::Not | IdleState::Asleep => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::Op;
    use crate::host::tests::{pair, program, scenario, until_free};
    use crate::host::{run as run_host, Outcome};
    use crate::kernel::{LineAddr, Time};
    use crate::meter::METRICS;
    use crate::stack::Notice;
    use std::cell::Cell;

    thread_local! {
        /// Whether every poll is executed, so that a test can tell what counting changes.
        static EXECUTES: Cell<bool> = const { Cell::new(false) };
    }

    pub(super) fn counts() -> bool {
        !EXECUTES.get()
    }

    const POLLER: ThreadId = ThreadId(0);
    const WRITER: ThreadId = ThreadId(1);
    /// Instructions before each of the two loads: 20 and 50 ns at 2 instructions a cycle of 3.2 GHz.
    const COMPUTE: [u32; 2] = [128, 320];

    fn poll_of(line: LineAddr, n: u32) -> [Op; 3] {
        [Op::Compute(n), Op::Anchor { line }, Op::Await]
    }

    /// Result of a core that polls two lines in turn until another agent has taken one of them away.
    #[derive(Debug, PartialEq, Eq)]
    struct Found {
        /// Time from the begin of the polls to the end of the poll that missed.
        after: Time,
        /// Line that this poll read, 0 or 1.
        line: usize,
        instructions: u64,
        accesses: u64,
    }

    /// Whether one program loads both lines, or each has a program of its own.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Loads {
        Apart,
        Together,
    }

    impl Loads {
        fn programs(self, [a, b]: [LineAddr; 2]) -> Vec<Vec<Op>> {
            let (a, b) = (poll_of(a, COMPUTE[0]), poll_of(b, COMPUTE[1]));
            match self {
                Loads::Apart => vec![a.to_vec(), b.to_vec()],
                Loads::Together => vec![[&a[..2], &b[..]].concat()],
            }
        }
    }

    /// Polls two lines in turn; the other core writes line `written` after `silence`. The polls are counted where
    /// `counted` says so, and executed otherwise. Returns the number of events, too.
    fn polls(counted: bool, loads: Loads, written: usize, silence: Time) -> (Found, u64) {
        let (mut host, base) = pair();
        let lines = [base, base + 64];
        let programs = loads.programs(lines);
        // Loads of memory that has been written are looked up at their time, not ahead of the calendar.
        program(&mut host, WRITER, &[Op::Store { line: base + 128, lines: 1 }, Op::Fence]);
        until_free(&mut host, WRITER);
        for line in lines {
            program(&mut host, POLLER, &[Op::Anchor { line }, Op::Fence]);
            until_free(&mut host, POLLER);
        }
        program(&mut host, WRITER, &[Op::Stall(silence.0), Op::Store { line: lines[written], lines: 1 }, Op::Fence]);
        let (began, before) = (host.machine.now, host.machine.cpus[POLLER].instructions);
        let (loads, events) = (host.machine.cpus[POLLER].amat, host.machine.cal.popped());
        let hit = host.machine.mem.lat.l1;
        let mut next = 0;
        loop {
            host.machine.cpus[POLLER].program.ops.clone_from(&programs[next]);
            if counted {
                host.poll(POLLER, programs.len(), Due::NEVER);
            } else {
                host.machine.start(POLLER);
            }
            let (end, _) = until_free(&mut host, POLLER);
            let cpu = &host.machine.cpus[POLLER];
            let line = programs.iter().position(|p| *p == cpu.program.ops).expect("one of the programs");
            let (accesses, ps) = (cpu.amat.accesses - loads.accesses, cpu.amat.ps - loads.ps);
            if ps > u128::from(accesses * hit.0) {
                let instructions = cpu.instructions - before;
                let found = Found { after: end - began, line, instructions, accesses };
                return (found, host.machine.cal.popped() - events);
            }
            next = (line + 1) % programs.len();
        }
    }

    /// A round takes 20 + 50 ns and two hits of the L1. The poll that finds the write ends a miss after its look-up, which
    /// is the first one of its line after the write; every poll has the instructions of its code and of its load.
    #[test]
    fn counted_polls_find_a_write_when_executed_ones_do() {
        let host = pair().0;
        let (l, per_line) = (host.machine.mem.lat, u64::from(host.spec.platform.core.stores_per_line));
        let round = Time::ns(70) + l.l1 * 2;
        for written in [0, 1] {
            let offset = [Time::ns(20), Time::ns(70) + l.l1][written];
            let mut misses = Vec::new();
            for ps in (3_000_000..3_000_000 + round.0).step_by(1371) {
                let silence = Time(ps);
                let (executed, all) = polls(false, Loads::Apart, written, silence);
                let (counted, few) = polls(true, Loads::Apart, written, silence);
                assert_eq!(counted, executed, "line {written} after {silence}");
                assert!(few * 4 < all, "{few} events instead of {all}");
                assert_eq!(counted.line, written);
                let rounds = (counted.after - offset).0 / round.0;
                let complete = u64::from(COMPUTE[0] + COMPUTE[1]) + 2 * per_line;
                let partial = [u64::from(COMPUTE[0]) + per_line, complete][written];
                assert_eq!(counted.instructions, rounds * complete + partial);
                misses.push(counted.after - offset - round * rounds);
                // The store reaches the home agent behind the silence, and the poll waits for its turn in the round.
                assert!(counted.after > silence && counted.after < silence + round + Time::ns(150));
            }
            let (least, most) = (misses.iter().min().expect("some"), misses.iter().max().expect("some"));
            assert!(*least >= l.l1 + l.l2 + l.noc + l.llc + l.noc, "{least} is no miss");
            assert!(*most < Time::ns(150), "{most}");
        }
    }

    /// One program loads both lines, and waits for the second one only: its counted polls find a write when executed ones do.
    #[test]
    fn counted_polls_of_two_lines_at_once_find_a_write_when_executed_ones_do() {
        for written in [0, 1] {
            for ps in (3_000_000..3_080_000).step_by(371) {
                let (executed, all) = polls(false, Loads::Together, written, Time(ps));
                let (counted, few) = polls(true, Loads::Together, written, Time(ps));
                assert_eq!(counted, executed, "line {written} after {ps} ps");
                assert!(few * 4 < all, "{few} events instead of {all}");
            }
        }
    }

    /// Every metric but the number of events is the same, bit for bit.
    #[test]
    fn a_run_with_counted_polls_measures_what_a_run_with_executed_polls_does() {
        let run = "run = { load = \"fixed\", warmup_requests = 4, requests = 12 }";
        let hosts: toml::Table = include_str!("../../tests/idle_polls.toml").parse().expect("TOML");
        for host in hosts["host"].as_array().expect("hosts") {
            let [name, rest] = ["name", "scenario"].map(|key| host[key].as_str().expect("text"));
            let rest = rest.replace("@rate@", "10 krps").replace("@flight@", "500 us");
            let text = format!("name = \"polls\"\nplatform = \"icx\"\n{rest}\n{run}\n");
            let spec = scenario(&text);
            let [executed, counted] = [true, false].map(|executes| {
                EXECUTES.set(executes);
                run_host(&spec, &mut |_| Ok(())).unwrap_or_else(|e| panic!("{name}: {e}"))
            });
            let events = |o: &Outcome| o.values.named("sim_events").expect("events");
            let (few, all) = (events(&counted), events(&executed));
            assert!(few * 4.0 < all, "{name}: {few} events instead of {all}");
            let metrics = METRICS.iter().zip(executed.values.0.iter().zip(&counted.values.0));
            for (m, (executed, counted)) in metrics.filter(|(m, _)| m.name != "sim_events") {
                assert_eq!(counted, executed, "{name}: {}", m.name);
            }
        }
    }

    /// Whatever else arrives leaves the polls where they are, and a time that passes ends the wait.
    #[test]
    fn a_notice_and_a_time_let_the_round_go_on_where_it_is() {
        let (mut host, base) = pair();
        let read = poll_of(base, COMPUTE[0]);
        program(&mut host, POLLER, &[Op::Anchor { line: base }, Op::Fence]);
        let (begun, _) = until_free(&mut host, POLLER);
        let period = Time::ns(20) + host.machine.mem.lat.l1;
        let begin = |host: &mut Host, until| {
            for _ in 0..3 {
                host.machine.cpus[POLLER].program.ops = read.to_vec();
                host.poll(POLLER, 1, until);
                if let IdleState::PollingInTurn { .. } = host.cores[POLLER].idle {
                    return;
                }
                until_free(host, POLLER);
            }
            panic!("the polls are executed");
        };
        let until = begun + Time::ns(1000);
        begin(&mut host, Due::at(until));
        let (end, _) = until_free(&mut host, POLLER);
        let phase = |end: Time, at: Time| {
            assert!(end >= at && end < at + period, "{end} is the end of the poll at {at}");
            assert_eq!((end - begun).0 % period.0, 0, "{end}");
        };
        phase(end, until);
        begin(&mut host, Due::NEVER);
        let at = host.machine.now + Time::ns(777);
        program(&mut host, WRITER, &[Op::Stall(777_000)]);
        until_free(&mut host, WRITER);
        host.notify(POLLER, Notice::Queue);
        phase(until_free(&mut host, POLLER).0, at);
    }

    /// A line that the core has lost, and a core with an access in flight, are reasons to execute the polls.
    #[test]
    fn a_core_that_has_lost_a_line_executes_its_polls() {
        let (mut host, base) = pair();
        let read = poll_of(base, COMPUTE[0]);
        for k in 0..3 {
            program(&mut host, WRITER, &[Op::Store { line: base, lines: 1 }, Op::Fence]);
            until_free(&mut host, WRITER);
            host.machine.cpus[POLLER].program.ops = read.to_vec();
            host.poll(POLLER, 1, Due::NEVER);
            assert!(matches!(host.cores[POLLER].idle, IdleState::Asleep | IdleState::Not), "poll {k}");
            until_free(&mut host, POLLER);
        }
    }
}
