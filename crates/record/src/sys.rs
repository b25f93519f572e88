//! Calls of the system that Rust has no safe form of: ptrace, its events, and a timer. The only module with unsafe
//! code.
//!
//! A traced thread answers only the thread that attached to it. All functions except [`Tick`]'s handler are called by one
//! thread.

use crate::instruction::{Registers, Vectors};
use libc::{c_int, c_long, c_void, pid_t};
use std::io;
use std::mem::{offset_of, size_of, zeroed};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A thread of the kernel.
pub(crate) type Tid = pid_t;

/// Set by SIGTERM, SIGINT and SIGHUP while a [`Tick`] exists.
static STOP: AtomicBool = AtomicBool::new(false);

/// Report of a traced thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// The thread stopped for a signal, which is delivered when it goes on with it.
    Signal(c_int),
    /// The thread stopped at a system call.
    SystemCall,
    /// The thread stopped for an event of ptrace.
    Event(c_int, c_int),
    /// The thread has ended.
    Gone,
}

/// How a stopped thread goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Go {
    Run,
    ToSystemCall,
    Step,
    /// Stays stopped, as a stopped job does.
    Listen,
}

fn ptrace(request: libc::c_uint, tid: Tid, address: usize, data: usize) -> io::Result<c_long> {
    // SAFETY: the requests of this module take numbers, or pointers to buffers that outlive the call and that the
    // request's caller sized as the kernel's ABI asks.
    let answer = unsafe { libc::ptrace(request, tid, address as *mut c_void, data as *mut c_void) };
    // The one answer that is data, the debug status, is never -1.
    if answer == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(answer)
}

/// Attaches to a thread without stopping it. With `own`, the kernel ends the thread when this process ends.
pub(crate) fn seize(tid: Tid, own: bool) -> io::Result<()> {
    let mut options = libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_TRACEEXEC | libc::PTRACE_O_TRACESYSGOOD;
    if own {
        options |= libc::PTRACE_O_EXITKILL | libc::PTRACE_O_TRACEFORK | libc::PTRACE_O_TRACEVFORK;
    }
    ptrace(libc::PTRACE_SEIZE, tid, 0, options as usize).map(drop)
}

/// Asks a running thread to stop; it reports an event.
pub(crate) fn interrupt(tid: Tid) -> io::Result<()> {
    ptrace(libc::PTRACE_INTERRUPT, tid, 0, 0).map(drop)
}

/// Lets a stopped thread go on, and delivers `signal` unless it is 0.
pub(crate) fn go(tid: Tid, how: Go, signal: c_int) -> io::Result<()> {
    let request = match how {
        Go::Run => libc::PTRACE_CONT,
        Go::ToSystemCall => libc::PTRACE_SYSCALL,
        Go::Step => libc::PTRACE_SINGLESTEP,
        Go::Listen => libc::PTRACE_LISTEN,
    };
    ptrace(request, tid, 0, signal as usize).map(drop)
}

/// Lets a stopped thread go for good.
pub(crate) fn detach(tid: Tid, signal: c_int) -> io::Result<()> {
    ptrace(libc::PTRACE_DETACH, tid, 0, signal as usize).map(drop)
}

/// All general registers of a stopped thread.
pub(crate) fn registers(tid: Tid) -> io::Result<libc::user_regs_struct> {
    // SAFETY: the structure is plain numbers, for which zeros are valid.
    let mut r: libc::user_regs_struct = unsafe { zeroed() };
    ptrace(libc::PTRACE_GETREGS, tid, 0, &raw mut r as usize)?;
    Ok(r)
}

/// Changes the general registers of a stopped thread.
pub(crate) fn set_registers(tid: Tid, r: &libc::user_regs_struct) -> io::Result<()> {
    ptrace(libc::PTRACE_SETREGS, tid, 0, &raw const *r as usize).map(drop)
}

/// The registers that addresses need.
pub(crate) fn address_registers(r: &libc::user_regs_struct) -> Registers {
    Registers {
        general: [
            r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14,
            r.r15,
        ],
        fs: r.fs_base,
        gs: r.gs_base,
        rip: r.rip,
        flags: r.eflags,
        vectors: None,
    }
}

/// Number of a debug register's place in the kernel's `struct user`.
fn debug_register(n: usize) -> usize {
    offset_of!(libc::user, u_debugreg) + n * size_of::<u64>()
}

/// Places at which a thread stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Points {
    /// Addresses of instructions, before which the thread stops. Zero is no address.
    Executed([u64; 4]),
    /// Addresses of aligned words of 8 bytes, after whose change the thread stops.
    Written([u64; 4]),
}

impl Points {
    pub(crate) const NONE: Points = Points::Executed([0; 4]);
}

/// Stops a thread at up to four places, and at no others.
pub(crate) fn set_points(tid: Tid, points: Points) -> io::Result<()> {
    ptrace(libc::PTRACE_POKEUSER, tid, debug_register(7), 0)?;
    let (addresses, kind) = match points {
        Points::Executed(addresses) => (addresses, 0),
        Points::Written(addresses) => (addresses, 0b1001), // 8 bytes, written
    };
    let mut enabled = 0;
    for (n, address) in addresses.into_iter().enumerate().filter(|(_, a)| *a != 0) {
        ptrace(libc::PTRACE_POKEUSER, tid, debug_register(n), address as usize)?;
        enabled |= 1 << (2 * n) | kind << (16 + 4 * n);
    }
    if enabled == 0 {
        return Ok(());
    }
    ptrace(libc::PTRACE_POKEUSER, tid, debug_register(7), enabled).map(drop)
}

/// Whether a thread has stopped because a word of its [`Points`] was written; the next call tells of later writes.
pub(crate) fn takes_written(tid: Tid) -> io::Result<bool> {
    let hit = ptrace(libc::PTRACE_PEEKUSER, tid, debug_register(6), 0)?;
    ptrace(libc::PTRACE_POKEUSER, tid, debug_register(6), 0)?;
    Ok(hit & 0b1111 != 0)
}

/// Vector and mask registers of a stopped thread, in the layout that CPUID describes for XSAVE.
pub(crate) fn vectors(tid: Tid) -> io::Result<Box<Vectors>> {
    let mut area = vec![0u8; 16384];
    let mut part = libc::iovec { iov_base: area.as_mut_ptr().cast(), iov_len: area.len() };
    const NT_X86_XSTATE: usize = 0x202;
    ptrace(libc::PTRACE_GETREGSET, tid, NT_X86_XSTATE, &raw mut part as usize)?;
    area.truncate(part.iov_len);
    let mut v = Box::new(Vectors { bytes: [[0; 64]; 32], masks: [0; 8] });
    let mut copy = |from: usize, register: usize, to: usize, bytes: usize| {
        if let Some(source) = area.get(from..from + bytes) {
            v.bytes[register][to..to + bytes].copy_from_slice(source);
        }
    };
    let [upper, opmask, upper_512, second_half] = [2, 5, 6, 7].map(component);
    for r in 0..16 {
        copy(160 + 16 * r, r, 0, 16);
        if upper > 0 {
            copy(upper + 16 * r, r, 16, 16);
        }
        if upper_512 > 0 {
            copy(upper_512 + 32 * r, r, 32, 32);
            copy(second_half + 64 * r, 16 + r, 0, 64);
        }
    }
    for (r, mask) in v.masks.iter_mut().enumerate().filter(|_| opmask > 0) {
        if let Some(Ok(bytes)) = area.get(opmask + 8 * r..opmask + 8 * r + 8).map(TryInto::try_into) {
            *mask = u64::from_le_bytes(bytes);
        }
    }
    Ok(v)
}

/// Offset of a component of the XSAVE area, or 0 if the processor has none.
fn component(n: u32) -> usize {
    #[allow(unused_unsafe, reason = "newer compilers know that CPUID is safe")]
    // SAFETY: every x86-64 processor has CPUID, and leaf 13 is zeros where it is not supported.
    let leaf = unsafe { std::arch::x86_64::__cpuid_count(13, n) };
    leaf.ebx as usize
}

/// Waits for the next report of a traced thread or of a child of this thread. `None` when a signal interrupts the wait,
/// such as that of a [`Tick`].
///
/// # Errors
/// Returns an error if no such thread is left.
pub(crate) fn wait() -> io::Result<Option<(Tid, Report)>> {
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    let tid = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::__WNOTHREAD) };
    if tid < 0 {
        let e = io::Error::last_os_error();
        return if e.kind() == io::ErrorKind::Interrupted { Ok(None) } else { Err(e) };
    }
    Ok(Some((tid, report(status))))
}

fn report(status: c_int) -> Report {
    if !libc::WIFSTOPPED(status) {
        return Report::Gone;
    }
    match (libc::WSTOPSIG(status), status >> 16) {
        (signal, event) if event != 0 => Report::Event(event, signal),
        (signal, _) if signal == libc::SIGTRAP | 0x80 => Report::SystemCall,
        (signal, _) => Report::Signal(signal),
    }
}

/// Whether a signal waits for the thread, as far as the system says.
pub(crate) fn has_pending(tid: Tid, signal: c_int) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let waiting = status.lines().find_map(|l| l.strip_prefix("SigPnd:"));
    let waiting = waiting.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    waiting >> (signal - 1) & 1 == 1
}

/// Waits until a child has stopped itself.
pub(crate) fn wait_stopped(pid: Tid) -> io::Result<bool> {
    let mut status = 0;
    loop {
        // SAFETY: `status` outlives the call.
        if unsafe { libc::waitpid(pid, &raw mut status, libc::WUNTRACED) } == pid {
            return Ok(libc::WIFSTOPPED(status));
        }
        let e = io::Error::last_os_error();
        if e.kind() != io::ErrorKind::Interrupted {
            return Err(e);
        }
    }
}

/// Sends a signal to a process.
pub(crate) fn kill(pid: Tid, signal: c_int) {
    // SAFETY: a call with numbers only. A process that has ended is no error here.
    unsafe { libc::kill(pid, signal) };
}

/// Effective user of this process.
pub(crate) fn user() -> u32 {
    // SAFETY: a call without arguments, which cannot fail.
    unsafe { libc::geteuid() }
}

/// Runs `f`, whose children have the same addresses in each run.
pub(crate) fn with_fixed_addresses<T>(f: impl FnOnce() -> T) -> T {
    // SAFETY: calls with numbers only; 0xffff_ffff asks for the current value.
    let before = unsafe { libc::personality(0xffff_ffff) };
    if before >= 0 {
        // SAFETY: as above.
        unsafe { libc::personality((before | libc::ADDR_NO_RANDOMIZE) as libc::c_ulong) };
    }
    let out = f();
    if before >= 0 {
        // SAFETY: as above.
        unsafe { libc::personality(before as libc::c_ulong) };
    }
    out
}

/// Number of [`Tick`]s, and the actions of signals from before the first.
static TICKS: Mutex<(u32, Vec<(c_int, libc::sigaction)>)> = Mutex::new((0, Vec::new()));

fn ticks() -> MutexGuard<'static, (u32, Vec<(c_int, libc::sigaction)>)> {
    TICKS.lock().unwrap_or_else(PoisonError::into_inner)
}

extern "C" fn on_signal(signal: c_int) {
    if signal != libc::SIGALRM {
        STOP.store(true, Ordering::Relaxed);
    }
}

/// Lets [`on_signal`] handle a signal, and returns the action from before.
fn handle(signal: c_int) -> io::Result<libc::sigaction> {
    // SAFETY: both structures are plain data for which zeros are valid; the handler only stores an atomic, which is safe
    // in a signal.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        let mut before: libc::sigaction = zeroed();
        if libc::sigaction(signal, &raw const action, &raw mut before) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(before)
    }
}

/// A timer that interrupts [`wait`] of the thread that made it ten times a second. SIGTERM, SIGINT and SIGHUP ask for the
/// end while there is such a timer.
pub(crate) struct Tick(libc::timer_t);

impl Tick {
    pub(crate) fn start() -> io::Result<Tick> {
        let mut ticks = ticks();
        if ticks.0 == 0 {
            STOP.store(false, Ordering::Relaxed);
            for signal in [libc::SIGALRM, libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
                ticks.1.push((signal, handle(signal)?));
            }
        }
        // SAFETY: the structures are plain data and outlive the calls. The signal goes to the calling thread, so that
        // its wait is interrupted and that of no other thread.
        let timer = unsafe {
            let mut event: libc::sigevent = zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = libc::SIGALRM;
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer: libc::timer_t = zeroed();
            if libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) != 0 {
                return Err(io::Error::last_os_error());
            }
            let period = libc::timespec { tv_sec: 0, tv_nsec: 100_000_000 };
            let every = libc::itimerspec { it_interval: period, it_value: period };
            libc::timer_settime(timer, 0, &raw const every, std::ptr::null_mut());
            timer
        };
        ticks.0 += 1;
        Ok(Tick(timer))
    }

    /// Whether a signal asked for the end.
    pub(crate) fn is_stopped(&self) -> bool {
        STOP.load(Ordering::Relaxed)
    }
}

impl Drop for Tick {
    fn drop(&mut self) {
        let mut ticks = ticks();
        // SAFETY: the timer is this object's own.
        unsafe { libc::timer_delete(self.0) };
        ticks.0 -= 1;
        if ticks.0 == 0 {
            for (signal, before) in std::mem::take(&mut ticks.1) {
                // SAFETY: the action is the one that `start` replaced.
                unsafe { libc::sigaction(signal, &raw const before, std::ptr::null_mut()) };
            }
        }
    }
}
