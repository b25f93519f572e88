//! Messages of sockets: system calls that receive and send, between calls that wait.

use super::{Raw, Tracer};
use crate::burst::{Burst, Frame, Piece};
use crate::process::Process;
use crate::sys::Tid;
use crate::{Between, Sockets};

/// Largest number of parts of a message that is believed.
const MOST_PARTS: u64 = 1024;

/// Direction of the message of a system call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Receive,
    Send,
}

/// Where a system call finds its message.
#[derive(Clone, Copy)]
enum Shape {
    /// Address and length are the second and third argument.
    Plain,
    /// The second argument is a list of parts, and the third their number.
    Parts,
    /// The second argument is a `msghdr`.
    Header,
    /// The second argument is a list of `mmsghdr`.
    Headers,
    /// The message lies in no memory of the program.
    File,
}

fn meaning(number: u64) -> Option<(Direction, Shape)> {
    use Direction::{Receive, Send};
    Some(match number as i64 {
        libc::SYS_read | libc::SYS_recvfrom => (Receive, Shape::Plain),
        libc::SYS_readv => (Receive, Shape::Parts),
        libc::SYS_recvmsg => (Receive, Shape::Header),
        libc::SYS_recvmmsg => (Receive, Shape::Headers),
        libc::SYS_write | libc::SYS_sendto => (Send, Shape::Plain),
        libc::SYS_writev => (Send, Shape::Parts),
        libc::SYS_sendmsg => (Send, Shape::Header),
        libc::SYS_sendmmsg => (Send, Shape::Headers),
        libc::SYS_sendfile => (Send, Shape::File),
        _ => return None,
    })
}

/// Whether a program waits for events in this system call.
pub(super) fn is_idle(number: u64) -> bool {
    matches!(
        number as i64,
        libc::SYS_epoll_wait
            | libc::SYS_epoll_pwait
            | libc::SYS_epoll_pwait2
            | libc::SYS_poll
            | libc::SYS_ppoll
            | libc::SYS_select
            | libc::SYS_pselect6
            | libc::SYS_nanosleep
            | libc::SYS_clock_nanosleep
    )
}

/// Messages of a system call that has succeeded: each with its pieces and its length.
fn messages(process: &Process, shape: Shape, call: &Raw, result: u64) -> Vec<Frame> {
    match shape {
        Shape::Plain => vec![message(&[(call.rsi, call.rdx)], result)],
        Shape::Parts => vec![message(&parts(process, call.rsi, call.rdx), result)],
        Shape::Header => vec![header(process, call.rsi, result)],
        Shape::Headers => (0..result.min(MOST_PARTS))
            .map(|i| {
                let at = call.rsi + 64 * i; // 56 bytes of msghdr, the length, and 4 bytes of padding
                let length = process.word(at + 56).unwrap_or_default() & 0xffff_ffff;
                header(process, at, length)
            })
            .collect(),
        Shape::File => vec![message(&[], result)],
    }
}

fn header(process: &Process, at: u64, length: u64) -> Frame {
    let (list, count) = (process.word(at + 16), process.word(at + 24));
    message(&parts(process, list.unwrap_or_default(), count.unwrap_or_default()), length)
}

fn parts(process: &Process, list: u64, count: u64) -> Vec<(u64, u64)> {
    let bytes = process.read(list, 16 * count.min(MOST_PARTS) as usize);
    let word = |b: &[u8]| u64::from_le_bytes(b.try_into().unwrap_or_default());
    bytes.chunks_exact(16).map(|b| (word(&b[..8]), word(&b[8..]))).collect()
}

fn message(parts: &[(u64, u64)], length: u64) -> Frame {
    let mut frame = Frame { length: length.min(u32::MAX.into()) as u32, ..Frame::default() };
    let mut before = 0;
    for (start, bytes) in parts {
        let bytes = (*bytes).min(length - before);
        frame.data.push(Piece { start: *start, end: start.saturating_add(bytes), zero: start.wrapping_sub(before) });
        before += bytes;
    }
    frame
}

impl Tracer<'_> {
    /// A thread that runs natively is at the begin or the end of a system call.
    pub(super) fn at_system_call(&mut self, tid: Tid) -> std::io::Result<()> {
        let raw = crate::sys::registers(tid)?;
        // At the begin of a call the result is -ENOSYS.
        if raw.rax as i64 <= 0 || self.is_complete() {
            return self.run_natively(tid, 0);
        }
        let process = self.threads[&tid].process;
        if is_idle(raw.orig_rax) && self.skip == 0 {
            return self.begin(tid, &raw, Vec::new());
        }
        let received = self.received(process, &raw, raw.orig_rax, raw.rax);
        if received.is_empty() || !self.wants(received.len() as u32) {
            return self.run_natively(tid, 0);
        }
        self.begin(tid, &raw, received)
    }

    /// Chosen sockets, if messages of sockets are recorded.
    pub(super) fn only_sockets(&self) -> Option<Option<Sockets>> {
        match self.options.between {
            Between::Sockets { only } => Some(only),
            _ => None,
        }
    }

    /// Whether a descriptor is a socket whose messages are recorded.
    fn is_recorded(&self, process: usize, descriptor: u64) -> bool {
        self.only_sockets().is_some_and(|only| self.processes[process].is_socket(descriptor, only))
    }

    fn received(&self, process: usize, call: &Raw, number: u64, result: u64) -> Vec<Frame> {
        match meaning(number) {
            Some((Direction::Receive, shape)) if result as i64 > 0 && self.is_recorded(process, call.rdi) => {
                messages(&self.processes[process], shape, call, result)
            }
            _ => Vec::new(),
        }
    }

    /// A system call in a packet's work has returned. `call` are the registers before it.
    pub(super) fn called_system(
        &mut self,
        tid: Tid,
        call: &Raw,
        raw: &Raw,
        mut burst: Box<Burst>,
    ) -> std::io::Result<()> {
        let p = self.threads[&tid].process;
        let received = self.received(p, call, call.rax, raw.rax);
        if !received.is_empty() {
            if burst.frames.is_empty() {
                burst.frames = received;
                return self.step(tid, raw, burst);
            }
            self.complete(tid, raw, &burst);
            return if self.is_complete() { self.run_natively(tid, 0) } else { self.begin(tid, raw, received) };
        }
        let receives = meaning(call.rax).is_some_and(|m| m.0 == Direction::Receive) && raw.rax as i64 > 0;
        if receives && burst.frames.is_empty() && self.processes[p].is_socket(call.rdi, None) {
            return self.run_natively(tid, 0); // the message of a socket that is not recorded
        }
        let sends = meaning(call.rax).filter(|m| m.0 == Direction::Send && raw.rax as i64 > 0);
        if let Some((_, shape)) = sends.filter(|_| self.is_recorded(p, call.rdi)) {
            let sent = messages(&self.processes[p], shape, call, raw.rax);
            match burst.replies.first_mut().filter(|_| burst.frames.len() == 1) {
                // A reply in several parts.
                Some(reply) => {
                    for more in sent {
                        let before = u64::from(reply.length);
                        let moved = more.data.iter().map(|d| Piece { zero: d.zero.wrapping_sub(before), ..*d });
                        reply.data.extend(moved);
                        reply.length = reply.length.saturating_add(more.length);
                    }
                }
                None => burst.replies.extend(sent),
            }
        }
        self.step(tid, raw, burst)
    }
}
