//! Threads that poll several places in turn: while they find nothing, their polls are counted instead of executed.

use super::Host;
use crate::core;
use crate::kernel::{Due, Post, ThreadId};
use crate::machine::Event;
use crate::stack::role::IdleState;
use crate::stack::Software;

impl Host {
    /// Lets a core run the poll in its buffer, one of `of` that it repeats in turn until `until` at most. The core stops
    /// when its next round only repeats the last one.
    #[inline(never)]
    pub(super) fn poll(&mut self, core: ThreadId, of: usize, until: Due) {
        let m = &mut self.machine;
        let slot = &mut self.cores[core];
        let round = slot.round.get_or_insert_default();
        // A sibling thread writes lines without taking them away, and changes the duration of instructions.
        let alone = m.mem.sibling(core).is_none();
        if !alone || until.by(m.now).is_some() || !round.repeats(&m.cpus[core], &m.mem, of) {
            return m.start(core);
        }
        round.lines().for_each(|line| m.mem.watch_at_home(core, line));
        if let Some(at) = until.time() {
            m.cal.push(at, Event::Interrupt(core));
        }
        slot.idle = IdleState::PollingInTurn { until };
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
    pub(super) fn count_rounds(&mut self) {
        let m = &mut self.machine;
        for (core, slot) in self.cores.enumerate_mut() {
            if let (IdleState::PollingInTurn { .. }, Some(round)) = (slot.idle, &mut slot.round) {
                round.count(&mut m.cpus[core], &m.mem, m.now);
            }
        }
    }

    /// Excludes polls up to now from the window that begins.
    pub(super) fn leave_out_rounds(&mut self) {
        let m = &mut self.machine;
        for (core, slot) in self.cores.enumerate_mut() {
            if let (IdleState::PollingInTurn { .. }, Some(round)) = (slot.idle, &mut slot.round) {
                round.leave_out(&m.cpus[core], &m.mem, m.now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::Op;
    use crate::host::tests::{pair, program, until_free};
    use crate::kernel::{LineAddr, Time};
    use crate::stack::Notice;

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

    /// Polls two lines in turn, each in a program of its own; the other core writes line `written` after `silence`. The
    /// polls are counted where `counted` says so, and executed otherwise. Returns the number of events, too.
    fn polls(counted: bool, written: usize, silence: Time) -> (Found, u64) {
        let (mut host, base) = pair();
        let lines = [base, base + 64];
        let programs = [0, 1].map(|k| poll_of(lines[k], COMPUTE[k]));
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
            host.machine.cpus[POLLER].program.ops = programs[next].to_vec();
            if counted {
                host.poll(POLLER, 2, Due::NEVER);
            } else {
                host.machine.start(POLLER);
            }
            let (end, _) = until_free(&mut host, POLLER);
            let cpu = &host.machine.cpus[POLLER];
            let line = programs.iter().position(|p| p[..] == cpu.program.ops).expect("one of the programs");
            let (accesses, ps) = (cpu.amat.accesses - loads.accesses, cpu.amat.ps - loads.ps);
            if ps > u128::from(accesses * hit.0) {
                let instructions = cpu.instructions - before;
                let found = Found { after: end - began, line, instructions, accesses };
                return (found, host.machine.cal.popped() - events);
            }
            next = 1 - line;
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
                let (executed, all) = polls(false, written, silence);
                let (counted, few) = polls(true, written, silence);
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
