//! The recorder's loop: lets threads run until a packet's work begins, steps them to its end, and lets them run again.

mod addresses;
mod dpdk;
mod sockets;

use crate::burst::{Builder, Burst, Frame};
use crate::flow::After;
use crate::instruction::{Decoder, Meaning, Registers, RCX};
use crate::predictor::Predictor;
use crate::process::Process;
use crate::sys::{self, Go, Points, Report, Tid};
use crate::{Between, Options, Progress, Target, Told};
use hostnet_recording::{Error, PageKind};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

type Raw = libc::user_regs_struct;

/// Accesses after which a recording ends.
const MOST_ACCESSES: usize = 3_000_000;
/// Iterations of a repeated instruction that are stepped one by one.
const FEW_ROUNDS: u64 = 16;
/// Ticks for which the program goes on after the last packet while packets are neither sent nor dropped.
const TICKS_AFTER: u32 = 3;

/// State of a traced thread.
enum Mode {
    /// The thread runs natively.
    Native,
    /// The thread runs natively in a function, whose return is awaited with the stack pointer `stack`.
    Call { call: dpdk::Call, back: u64, stack: u64, burst: Option<Box<Burst>> },
    /// The thread runs natively through work that is not recorded, whose end is awaited.
    Pass,
    /// The thread executes one instruction of a burst's work.
    Step { burst: Box<Burst>, meaning: Rc<Meaning>, before: Box<Registers>, system_call: Option<Box<Raw>> },
}

struct Traced {
    process: usize,
    mode: Mode,
    /// Contents of the debug registers.
    points: Points,
    predictor: Predictor,
    /// Number of the thread in the recording.
    number: Option<u32>,
    /// Stack pointer and return address at which a function's work began.
    entry: (u64, u64),
}

impl Traced {
    fn new(process: usize) -> Traced {
        Traced {
            process,
            mode: Mode::Native,
            points: Points::NONE,
            predictor: Predictor::default(),
            number: None,
            entry: (0, 0),
        }
    }
}

pub(crate) struct Tracer<'a> {
    options: &'a Options,
    processes: Vec<Process>,
    threads: HashMap<Tid, Traced>,
    code: HashMap<(usize, u64), Rc<Meaning>>,
    decoder: Decoder,
    builder: Builder,
    /// Packets that are still to be skipped.
    skip: u32,
    dpdk: dpdk::Ports,
    addresses: addresses::Named,
    /// Whether the program itself has been started, rather than the shell that starts it.
    started: bool,
    given_up: u32,
}

/// Records a program.
pub(crate) fn record(o: &Options, progress: &mut dyn FnMut(Progress) -> Told) -> Result<Builder, Error> {
    let tick = sys::Tick::start().map_err(|e| Error(format!("no timer can be made ({e}).")))?;
    let mut t = Tracer {
        options: o,
        processes: Vec::new(),
        threads: HashMap::new(),
        code: HashMap::new(),
        decoder: Decoder::new(),
        builder: Builder::default(),
        skip: o.skip,
        dpdk: dpdk::Ports::default(),
        addresses: addresses::Named::default(),
        started: matches!(o.target, Target::Attach(_)),
        given_up: 0,
    };
    let child = match &o.target {
        Target::Run { .. } => Some(t.start()?),
        Target::Attach(pid) => t.attach(*pid).map(|()| None)?,
    };
    let begun = Instant::now();
    let outcome = t.run(&tick, progress);
    let took = begun.elapsed();
    t.let_go(child.is_some());
    if let Some(child) = child {
        end(child);
    }
    let told = outcome?;
    if t.builder.packets.is_empty() && told != Told::Abandon {
        return Err(t.nothing(took));
    }
    Ok(t.builder)
}

/// Ends the program that this recording has started: it may clean up for three seconds.
fn end(mut child: std::process::Child) {
    sys::kill(child.id() as Tid, libc::SIGTERM);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(3) {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    // It has ended by itself in the meantime if it cannot be killed.
    let _ = child.kill();
    let _ = child.wait();
}

impl Tracer<'_> {
    /// Starts the program: a shell stops itself, is attached to, and becomes the program.
    fn start(&mut self) -> Result<std::process::Child, Error> {
        let Target::Run { program, arguments } = &self.options.target else { unreachable!("a program is run") };
        let mut command = std::process::Command::new("/bin/sh");
        command.args(["-c", "kill -STOP $$; exec \"$@\"", "sh"]).arg(program).args(arguments);
        command.env("LD_BIND_NOW", "1"); // so that no packet's work includes the search for a symbol
        let started = sys::with_fixed_addresses(|| command.spawn());
        let mut child = started.map_err(|e| Error(format!("/bin/sh: cannot be run ({e}).")))?;
        let pid = child.id() as Tid;
        let seized = sys::wait_stopped(pid).and_then(|_| sys::seize(pid, true)).and_then(|()| self.adopt(pid));
        if let Err(e) = seized {
            let _ = child.kill();
            let _ = child.wait();
            return Err(not_allowed(&program.display().to_string(), &e));
        }
        sys::kill(pid, libc::SIGCONT);
        Ok(child)
    }

    /// Attaches to all threads of a process.
    fn attach(&mut self, pid: i32) -> Result<(), Error> {
        let named = format!("process {pid}");
        check_process(pid)?;
        loop {
            let mut more = false;
            for tid in tasks(pid) {
                if self.threads.contains_key(&tid) {
                    continue;
                }
                match sys::seize(tid, false).and_then(|()| self.adopt(tid)) {
                    Ok(()) => more = true,
                    Err(e) if e.raw_os_error() == Some(libc::ESRCH) => {}
                    Err(e) => {
                        self.let_go(false);
                        return Err(not_allowed(&named, &e));
                    }
                }
            }
            if !more {
                break;
            }
        }
        if let Err(e) = self.look_for_boundary(0) {
            self.let_go(false);
            return Err(e);
        }
        self.interrupt_all();
        Ok(())
    }

    /// Notes a thread that is traced.
    fn adopt(&mut self, tid: Tid) -> std::io::Result<()> {
        let pid = group(tid).unwrap_or(tid);
        let process = match self.processes.iter().position(|p| p.pid == pid) {
            Some(p) => p,
            None => {
                self.processes.push(Process::open(pid)?);
                self.processes.len() - 1
            }
        };
        self.threads.entry(tid).or_insert_with(|| Traced::new(process));
        Ok(())
    }

    fn interrupt_all(&self) {
        for tid in self.threads.keys() {
            // A thread that has ended is reported by the next wait.
            let _ = sys::interrupt(*tid);
        }
    }

    fn run(&mut self, tick: &sys::Tick, progress: &mut dyn FnMut(Progress) -> Told) -> Result<Told, Error> {
        let (begun, mut after) = (Instant::now(), 0);
        let mut told_at = Instant::now();
        loop {
            if self.is_complete() && self.dpdk.pending.is_empty() {
                return Ok(Told::Continue);
            }
            let report = match sys::wait() {
                Ok(report) => report,
                Err(_) => return if self.builder.packets.is_empty() { Err(self.ended()) } else { Ok(Told::Finish) },
            };
            if let Some((tid, report)) = report {
                self.handle(tid, report)?;
                if self.threads.is_empty() {
                    return if self.builder.packets.is_empty() { Err(self.ended()) } else { Ok(Told::Finish) };
                }
            }
            if told_at.elapsed() < Duration::from_millis(100) {
                continue;
            }
            told_at = Instant::now();
            after += u32::from(self.is_complete());
            if after > TICKS_AFTER || self.builder.accesses > MOST_ACCESSES || begun.elapsed() > self.options.time {
                return Ok(Told::Finish);
            }
            let packets = (self.builder.packets.len() as u32).min(self.options.packets);
            let told = progress(Progress { packets, skipped: self.options.skip - self.skip });
            if told != Told::Continue || tick.is_stopped() {
                return Ok(if told == Told::Continue { Told::Finish } else { told });
            }
            for p in 0..self.processes.len() {
                self.look_for_boundary(p)?;
            }
        }
    }

    fn is_complete(&self) -> bool {
        self.builder.packets.len() >= self.options.packets as usize
    }

    /// Looks for the places at which packets' work begins in a process, and stops its threads to set breakpoints if the
    /// places have changed.
    fn look_for_boundary(&mut self, p: usize) -> Result<(), Error> {
        if !self.started {
            return Ok(());
        }
        let process = &mut self.processes[p];
        let changed = match &self.options.between {
            Between::Sockets { .. } => false,
            Between::Dpdk => self.dpdk.look(p, process)?,
            Between::Addresses { .. } => self.addresses.look(p, process, &self.options.between)?,
        };
        if changed {
            for (tid, _) in self.threads.iter().filter(|(_, t)| t.process == p) {
                let _ = sys::interrupt(*tid);
            }
        }
        Ok(())
    }

    /// Where a thread stops while the boundary is not found, which a library that is not loaded yet may have.
    fn loader_stop(&mut self, process: usize) -> Option<u64> {
        if !self.started || matches!(self.options.between, Between::Sockets { .. }) {
            return None;
        }
        self.processes[process].loader_stop()
    }

    /// Addresses of words after whose change the boundary is looked for anew.
    fn awaited(&self, process: usize) -> Vec<u64> {
        match &self.options.between {
            Between::Sockets { .. } => Vec::new(),
            Between::Dpdk => self.dpdk.awaited(process),
            Between::Addresses { .. } => self.addresses.awaited(process),
        }
    }

    /// Addresses at which a thread that runs natively stops.
    fn entries(&self, process: usize) -> Vec<u64> {
        match &self.options.between {
            Between::Sockets { .. } => Vec::new(),
            Between::Dpdk => self.dpdk.entries(process),
            Between::Addresses { .. } => self.addresses.entries(process),
        }
    }

    fn handle(&mut self, tid: Tid, report: Report) -> Result<(), Error> {
        if report == Report::Gone {
            self.threads.remove(&tid);
            return Ok(());
        }
        if !self.threads.contains_key(&tid) {
            if self.adopt(tid).is_err() {
                return Ok(()); // it has ended
            }
            // A program may have loaded libraries before it made its first thread.
            self.look_for_boundary(self.threads[&tid].process)?;
        }
        let outcome = match report {
            Report::Gone => Ok(()),
            Report::Event(libc::PTRACE_EVENT_EXEC, _) => self.executed(tid),
            Report::Event(libc::PTRACE_EVENT_STOP, signal) if signal != libc::SIGTRAP => sys::go(tid, Go::Listen, 0),
            Report::Event(libc::PTRACE_EVENT_STOP, _) => restart(tid).and_then(|()| self.go_on(tid, 0)),
            Report::Event(..) => self.go_on(tid, 0),
            Report::SystemCall => self.at_system_call(tid),
            Report::Signal(libc::SIGTRAP) => self.at_trap(tid),
            Report::Signal(signal) => self.go_on(tid, signal),
        };
        match outcome {
            // The thread was killed in the meantime, and the next wait reports its end.
            Err(e) if e.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            Err(e) => Err(Error(format!("thread {tid} of the program cannot be traced any more ({e})."))),
            Ok(()) => match self.dpdk.refused.take() {
                Some(e) => Err(e),
                None => Ok(()),
            },
        }
    }

    /// A process runs another program from now on: one of the own ones, or what it asks for.
    fn executed(&mut self, tid: Tid) -> std::io::Result<()> {
        let pid = group(tid).unwrap_or(tid);
        let Some(p) = self.processes.iter().position(|p| p.pid == pid) else { return self.go_on(tid, 0) };
        self.processes[p] = Process::open(pid)?;
        self.code.retain(|(process, _), _| *process != p);
        self.threads.retain(|t, traced| *t == tid || traced.process != p);
        self.threads.insert(tid, Traced::new(p));
        self.dpdk.forget(p);
        self.addresses.forget(p);
        self.started = true;
        // Symbols of the program itself are known before its first instruction; those of libraries are looked for again.
        if let Err(e) = self.look_for_boundary(p) {
            self.dpdk.refused = Some(e);
        }
        self.go_on(tid, 0)
    }

    /// Lets a stopped thread go on in what it does.
    fn go_on(&mut self, tid: Tid, signal: i32) -> std::io::Result<()> {
        let Some(t) = self.threads.get(&tid) else { return sys::go(tid, Go::Run, signal) };
        match &t.mode {
            Mode::Native => self.run_natively(tid, signal),
            Mode::Call { back, .. } => {
                let back = *back;
                self.run_to(tid, back, signal)
            }
            Mode::Pass => self.pass(tid, signal),
            Mode::Step { .. } => sys::go(tid, Go::Step, signal),
        }
    }

    fn run_natively(&mut self, tid: Tid, signal: i32) -> std::io::Result<()> {
        let process = self.threads[&tid].process;
        let four = |points: &[u64]| {
            let mut addresses = [0; 4];
            addresses.iter_mut().zip(points).for_each(|(a, p)| *a = *p);
            addresses
        };
        let (entries, awaited) = (self.entries(process), self.awaited(process));
        let points = match (&entries[..], &awaited[..]) {
            ([], []) => Points::Executed(four(self.loader_stop(process).as_slice())),
            ([], awaited) => Points::Written(four(awaited)),
            (entries, _) => Points::Executed(four(entries)),
        };
        self.set_points(tid, points)?;
        let sockets = self.only_sockets().is_some() && self.started;
        sys::go(tid, if sockets { Go::ToSystemCall } else { Go::Run }, signal)
    }

    /// Lets a thread run until it reaches `address`.
    fn run_to(&mut self, tid: Tid, address: u64, signal: i32) -> std::io::Result<()> {
        self.set_points(tid, Points::Executed([0, 0, 0, address]))?;
        sys::go(tid, Go::Run, signal)
    }

    fn set_points(&mut self, tid: Tid, points: Points) -> std::io::Result<()> {
        if let Some(t) = self.threads.get_mut(&tid).filter(|t| t.points != points) {
            sys::set_points(tid, points)?;
            t.points = points;
        }
        Ok(())
    }

    /// A thread stopped for SIGTRAP: at a breakpoint, after a step, or for a reason of its own.
    fn at_trap(&mut self, tid: Tid) -> std::io::Result<()> {
        let raw = sys::registers(tid)?;
        let t = &self.threads[&tid];
        let (process, own) = (t.process, is_at(t.points, raw.rip));
        let entered = own && self.entries(process).contains(&raw.rip);
        let passed = matches!(t.mode, Mode::Pass) && self.leaves(tid, &raw);
        let t = self.threads.get_mut(&tid).expect("the thread is known");
        let written = matches!(t.points, Points::Written(_)) && sys::takes_written(tid)?;
        match std::mem::replace(&mut t.mode, Mode::Native) {
            Mode::Native if entered => self.at_entry(tid, &raw),
            // The functions of a port, or the loaded files, have changed.
            Mode::Native if written || own => {
                if let Err(e) = self.look_for_boundary(process) {
                    self.dpdk.refused = Some(e);
                }
                self.run_natively(tid, 0)
            }
            Mode::Native => self.run_natively(tid, libc::SIGTRAP),
            Mode::Call { call, back, stack, burst } if raw.rip == back && raw.rsp > stack => {
                self.returned(tid, &raw, call, burst)
            }
            Mode::Pass if passed => self.left(tid, &raw),
            mode @ (Mode::Call { .. } | Mode::Pass) => {
                t.mode = mode;
                self.go_on(tid, if own { 0 } else { libc::SIGTRAP })
            }
            Mode::Step { mut burst, meaning, before, system_call } => {
                if raw.rip == before.rip && meaning.branch.is_none() {
                    // An iteration of a repeated instruction, or the return of a system call before the first step.
                    t.mode = Mode::Step { burst, meaning, before, system_call };
                    return sys::go(tid, Go::Step, 0);
                }
                let rounds = before.general[RCX].wrapping_sub(raw.rcx);
                burst.flow.execute(&meaning, &before, After { rip: raw.rip, rounds }, &mut t.predictor);
                match system_call {
                    Some(call) => self.called_system(tid, &call, &raw, burst),
                    None => self.step(tid, &raw, burst),
                }
            }
        }
    }

    /// A thread that ran natively is at a place where a packet's work may begin.
    fn at_entry(&mut self, tid: Tid, raw: &Raw) -> std::io::Result<()> {
        match self.options.between {
            Between::Dpdk => self.at_driver(tid, raw, None),
            Between::Addresses { .. } => self.at_enter(tid, raw),
            Between::Sockets { .. } => self.run_natively(tid, 0),
        }
    }

    /// Whether a burst that begins now is recorded; counts those that are skipped.
    fn wants(&mut self, packets: u32) -> bool {
        if self.skip > 0 {
            self.skip = self.skip.saturating_sub(packets);
            return false;
        }
        !self.is_complete()
    }

    /// Executes the next instruction of a burst's work, or ends the work.
    fn step(&mut self, tid: Tid, raw: &Raw, burst: Box<Burst>) -> std::io::Result<()> {
        if burst.flow.instructions > self.options.longest {
            return self.give_up(tid);
        }
        let process = self.threads[&tid].process;
        match &self.options.between {
            Between::Dpdk if self.dpdk.is_entry(process, raw.rip) => return self.at_driver(tid, raw, Some(burst)),
            // Work that ends where it begins has to get there anew.
            Between::Addresses { .. } if burst.flow.instructions > 0 && self.leaves(tid, raw) => {
                self.complete(tid, raw, &burst);
                return self.left(tid, raw);
            }
            _ => {}
        }
        let Some(meaning) = self.meaning(process, raw.rip) else {
            // The program is about to fail by itself, or executes what no decoder knows.
            return self.give_up(tid);
        };
        let mut system_call = None;
        if meaning.system_call && self.only_sockets().is_some() {
            if sockets::is_idle(raw.rax) {
                if !burst.frames.is_empty() {
                    self.complete(tid, raw, &burst);
                }
                return self.run_natively(tid, 0);
            }
            system_call = Some(Box::new(*raw));
        }
        let mut before = Box::new(sys::address_registers(raw));
        if meaning.needs_vectors {
            before.vectors = Some(sys::vectors(tid)?);
        }
        let long = meaning.repeated && raw.rcx > FEW_ROUNDS;
        let next = raw.rip + meaning.length;
        self.threads.get_mut(&tid).expect("the thread is known").mode =
            Mode::Step { burst, meaning, before, system_call };
        if long {
            return self.run_to(tid, next, 0);
        }
        sys::go(tid, Go::Step, 0)
    }

    /// Lets a thread go on natively with work that is too long, or cannot be recorded.
    fn give_up(&mut self, tid: Tid) -> std::io::Result<()> {
        self.given_up += 1;
        match self.options.between {
            Between::Addresses { .. } => self.pass(tid, 0),
            _ => self.run_natively(tid, 0),
        }
    }

    fn meaning(&mut self, process: usize, rip: u64) -> Option<Rc<Meaning>> {
        if let Some(m) = self.code.get(&(process, rip)) {
            return Some(m.clone());
        }
        let bytes = self.processes[process].read(rip, 15);
        let m = Rc::new(self.decoder.decode(&bytes, rip)?);
        self.code.insert((process, rip), m.clone());
        Some(m)
    }

    /// Begins the work of a burst at the next instruction.
    fn begin(&mut self, tid: Tid, raw: &Raw, frames: Vec<Frame>) -> std::io::Result<()> {
        self.step(tid, raw, Box::new(Burst::new(frames)))
    }

    /// Adds the packets of a burst whose work has ended.
    fn complete(&mut self, tid: Tid, raw: &Raw, burst: &Burst) {
        let t = self.threads.get_mut(&tid).expect("the thread is known");
        let number = *t.number.get_or_insert_with(|| {
            self.builder.threads.push(hostnet_recording::Thread { name: name(tid) });
            self.builder.threads.len() as u32 - 1
        });
        let process = &mut self.processes[t.process];
        process.refresh();
        let stack = process.mapping(raw.rsp).map(|m| m.start..m.end);
        let mut kind = |address| match (process.mapping(address), &stack) {
            (_, Some(s)) if s.contains(&address) => PageKind::Stack,
            (Some(m), _) => m.kind,
            _ => PageKind::Mmap,
        };
        let first = self.builder.packets.len();
        self.builder.add(burst, t.process, number, &mut kind);
        if self.options.between == Between::Dpdk {
            self.dpdk.await_sending(t.process, first, &burst.frames);
        }
    }

    /// Detaches from all threads, none of which keeps a breakpoint.
    fn let_go(&mut self, own: bool) {
        // Work that has ended where its thread waits for the next message. The thread still executes one instruction, that call.
        let mut in_call = Vec::new();
        for tid in self.threads.keys().copied().collect::<Vec<_>>() {
            let t = self.threads.get_mut(&tid).expect("the thread is known");
            match std::mem::replace(&mut t.mode, Mode::Native) {
                Mode::Step { burst, system_call: Some(raw), .. } if !burst.frames.is_empty() => {
                    in_call.push(tid);
                    self.complete(tid, &raw, &burst);
                }
                mode => t.mode = mode,
            }
        }
        self.interrupt_all();
        let begun = Instant::now();
        while !self.threads.is_empty() && begun.elapsed() < Duration::from_secs(5) {
            let (tid, report) = match sys::wait() {
                Ok(Some(r)) => r,
                Ok(None) => continue,
                Err(_) => return,
            };
            let Some(t) = self.threads.remove(&tid) else {
                // A thread that began in the meantime.
                if report != Report::Gone {
                    let _ = sys::detach(tid, 0);
                }
                continue;
            };
            let signal = match report {
                Report::Gone => continue,
                Report::Signal(libc::SIGTRAP) => {
                    let at = sys::registers(tid).map_or(0, |r| r.rip);
                    let written = matches!(t.points, Points::Written(_)) && sys::takes_written(tid).unwrap_or(false);
                    let stepped = matches!(t.mode, Mode::Step { .. }) || in_call.contains(&tid);
                    let mine = stepped || is_at(t.points, at) || written;
                    if mine {
                        0
                    } else {
                        libc::SIGTRAP
                    }
                }
                Report::Signal(signal) => signal,
                Report::Event(libc::PTRACE_EVENT_STOP, libc::SIGTRAP) => {
                    // Without the restart, the program sees a call that a signal interrupted.
                    let _ = restart(tid);
                    // The end of a call that was stepped over has left a trap, which would kill the program.
                    if sys::has_pending(tid, libc::SIGTRAP) && sys::go(tid, Go::Run, 0).is_ok() {
                        in_call.push(tid);
                        self.threads.insert(tid, t);
                        continue;
                    }
                    0
                }
                _ => 0,
            };
            // A thread that is killed now keeps nothing.
            let _ = sys::set_points(tid, Points::NONE);
            let _ = sys::detach(tid, signal);
        }
        debug_assert!(own || self.threads.is_empty());
    }

    fn ended(&self) -> Error {
        let what = match &self.options.target {
            Target::Run { program, .. } => program.display().to_string(),
            Target::Attach(pid) => format!("process {pid}"),
        };
        Error(format!("{what}: ended before it had handled a packet; {}.", self.hint()))
    }

    fn nothing(&self, took: Duration) -> Error {
        if self.given_up > 0 {
            return Error(format!(
                "no packet's work ended within {} instructions (--longest); name other boundaries with --enter and --leave.",
                self.options.longest
            ));
        }
        Error(format!("no packet's work ended within {:.1} s; {}.", took.as_secs_f64(), self.hint()))
    }

    fn hint(&self) -> String {
        match &self.options.between {
            Between::Dpdk if !self.dpdk.is_found() => {
                "the program has no rte_eth_fp_ops of DPDK, so give --sockets or --enter".into()
            }
            Between::Dpdk => "no port of DPDK received a packet".into(),
            Between::Sockets { only: None } => "no socket of the program received a message".into(),
            Between::Sockets { .. } => "no socket that --socket names received a message".into(),
            Between::Addresses { enter, leave: Some(leave), .. } if !self.addresses.is_found() => {
                format!("the program and its libraries do not have both {enter} and {leave}")
            }
            Between::Addresses { enter, .. } if !self.addresses.is_found() => {
                format!("neither the program nor its libraries have a symbol {enter}")
            }
            Between::Addresses { enter, leave: Some(leave), .. } if self.addresses.is_reached() => {
                format!("the program reached {enter}, but not {leave} after it")
            }
            Between::Addresses { enter, .. } if self.addresses.is_reached() => {
                format!("the program reached {enter}, but no call of it returned")
            }
            Between::Addresses { enter, .. } => format!("the program did not reach {enter}"),
        }
    }
}

fn is_at(points: Points, address: u64) -> bool {
    matches!(points, Points::Executed(all) if all.contains(&address))
}

/// Executes a system call anew that only the recorder has interrupted.
fn restart(tid: Tid) -> std::io::Result<()> {
    let mut raw = sys::registers(tid)?;
    let interrupted = raw.rax as i64 == -i64::from(libc::EINTR);
    if interrupted && raw.orig_rax as i64 >= 0 {
        raw.rax = raw.orig_rax;
        raw.rip -= 2; // SYSCALL has two bytes
        sys::set_registers(tid, &raw)?;
    }
    Ok(())
}

fn status(tid: Tid, key: &str) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let line = text.lines().find(|l| l.starts_with(key))?;
    Some(line[key.len()..].trim().to_string())
}

fn group(tid: Tid) -> Option<Tid> {
    status(tid, "Tgid:")?.parse().ok()
}

fn name(tid: Tid) -> String {
    status(tid, "Name:").unwrap_or_default()
}

fn tasks(pid: Tid) -> Vec<Tid> {
    let Ok(list) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    list.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// Refuses processes that are absent, another user's, or traced already.
fn check_process(pid: Tid) -> Result<(), Error> {
    let no = |what: String| Err(Error(format!("process {pid}: {what}.")));
    let Some(users) = status(pid, "Uid:") else { return no("does not exist".into()) };
    if group(pid) != Some(pid) {
        return no("is a thread; give its process, which `ps` shows".into());
    }
    let user = users.split_whitespace().nth(1).and_then(|u| u.parse().ok());
    if user != Some(sys::user()) {
        let user = user.unwrap_or(0);
        return no(format!("belongs to user {user}; run hostnet record as that user, such as with sudo -u '#{user}'"));
    }
    match status(pid, "TracerPid:").as_deref() {
        None | Some("0") => Ok(()),
        Some(tracer) => no(format!("is traced by process {tracer}, such as a debugger; end that one first")),
    }
}

fn not_allowed(what: &str, e: &std::io::Error) -> Error {
    if e.raw_os_error() != Some(libc::EPERM) {
        return Error(format!("{what}: cannot be traced ({e})."));
    }
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    Error(format!("{what}: may not be traced; {}.", to_allow(scope.as_deref().ok())))
}

/// Advice on how to allow tracing, by the contents of the kernel's `yama/ptrace_scope`, which a kernel without Yama lacks.
fn to_allow(scope: Option<&str>) -> &'static str {
    match scope.map(str::trim) {
        Some("1" | "2") => {
            "allow it with `sudo sysctl kernel.yama.ptrace_scope=0`, or let hostnet record start the program"
        }
        Some("3") => "kernel.yama.ptrace_scope is 3, which forbids it until the machine is started anew",
        _ => {
            "run hostnet record with the capability CAP_SYS_PTRACE, as the container or its seccomp profile may forbid"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values and their meanings are those of the kernel's Documentation/admin-guide/LSM/Yama.rst: 0 is classic, 1
    /// allows descendants only, 2 allows administrators only, and 3 forbids to attach and cannot be changed.
    #[test]
    fn a_refusal_says_what_to_allow() {
        for changeable in ["1\n", "2\n"] {
            assert!(to_allow(Some(changeable)).contains("sudo sysctl kernel.yama.ptrace_scope=0"), "{changeable}");
        }
        assert!(to_allow(Some("3\n")).contains("until the machine is started anew"));
        for other in [None, Some("0\n")] {
            assert!(to_allow(other).contains("CAP_SYS_PTRACE"), "{other:?}");
        }
        let error = |number| not_allowed("process 7", &std::io::Error::from_raw_os_error(number)).0;
        assert!(error(libc::EPERM).starts_with("process 7: may not be traced; "));
        assert!(error(libc::EIO).starts_with("process 7: cannot be traced ("));
    }
}
