//! Threads in pairs: a writer that fills a buffer, and a reader that copies its content away (CC-NIC, section 3.3).

use super::{Awaited, Ctx, Role, RoleView, Software, Step};
use crate::core::Op;
use crate::kernel::{Int, LineAddr, Time};
use crate::memory::LINE;
use crate::meter::{metric, Values};

/// Maximum number of lines of a program.
const PIECE: u64 = 64;
/// Instructions of a poll; also the instructions of the loop around a piece.
const POLL: u32 = 4;

/// Role of a thread in a pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the documentation of a variant explains its fields")]
pub enum TransferRole {
    /// Writes the buffer, with ordinary stores or with stores that bypass the caches.
    Writer { nontemporal: bool },
    /// Copies the written chunks to memory of its own, which begins at line `to`.
    Reader { to: LineAddr },
    /// Reads the buffer without waiting for a writer.
    Alone,
}

/// Memory of a pair: the buffer, and for each side a register with the number of chunks that it has completed.
#[derive(Clone, Copy, Debug)]
pub struct PairMemory {
    /// First line of the buffer.
    pub buffer: LineAddr,
    /// Lines of a chunk.
    pub chunk: u64,
    /// Number of chunks of the buffer.
    pub chunks: u64,
    /// Line and number of the register that holds the number of chunks written.
    pub written: Register,
    /// Line and number of the register that holds the number of chunks read.
    pub read: Register,
}

/// Line and number of a register.
type Register = (LineAddr, usize);

/// Values of the registers of the pairs of threads of a tenant.
#[derive(Clone)]
pub struct TransferPairs(Vec<u64>);

impl TransferPairs {
    /// State of pairs with `registers` registers together, which are all zero.
    pub fn new(registers: usize) -> TransferPairs {
        TransferPairs(vec![0; registers])
    }
}

impl Role for TransferPairs {}

impl TransferPairs {
    /// Sets the metrics of all tenants' pairs in the window that ends now.
    pub fn report(all: &[(&TransferPairs, RoleView)], v: &mut Values) {
        let Some((_, view)) = all.first() else { return };
        let (us, lines) = (view.span().to_f64() / 1e6, all.iter().map(|(_, view)| view.operations()).sum::<f64>());
        v.set(metric::STREAM_GBPS, lines * (LINE * 8).to_f64() / us / 1e3);
    }
}

/// A thread of a pair.
#[derive(Clone)]
pub struct TransferThread {
    role: TransferRole,
    memory: PairMemory,
    /// Number of chunks completed; `at` counts the lines of the next chunk, and `told` the chunks whose completion the
    /// other side can see.
    done: u64,
    at: u64,
    known_done: u64,
    polled: bool,
    /// Number of lines that the latest program of the thread reads, and the time at which the program began.
    piece: (u64, Time),
}

impl TransferThread {
    /// A thread with role `role` in a pair with memory `memory`.
    pub fn new(role: TransferRole, memory: PairMemory) -> TransferThread {
        TransferThread { role, memory, done: 0, at: 0, known_done: 0, polled: false, piece: (0, Time::ZERO) }
    }

    /// The thread's own register, and the other thread's register with the value that lets this thread continue.
    fn registers(&self) -> Option<(Register, Register, u64)> {
        let m = &self.memory;
        match self.role {
            TransferRole::Writer { .. } => Some((m.written, m.read, (self.done + 1).saturating_sub(m.chunks))),
            TransferRole::Reader { .. } => Some((m.read, m.written, self.done + 1)),
            TransferRole::Alone => None,
        }
    }
}

impl Software for TransferThread {
    fn step(&mut self, c: &mut Ctx) -> Step {
        c.program.ops.clear();
        if c.step.stopped {
            return Step::Idle;
        }
        self.piece.0 = 0;
        if let Some((_, other, needs)) = self.registers().filter(|_| self.at == 0) {
            let seen = std::mem::take(&mut self.polled);
            let registers = |c: &Ctx| c.roles.get::<TransferPairs>().map_or(0, |pairs| pairs.0[other.1]);
            let ready = needs == 0 || seen && registers(c) >= needs;
            if !ready && seen {
                return Step::Wait { on: Awaited::Line(other.0), instructions: POLL };
            }
            if !ready {
                self.polled = true;
                c.program.compute(POLL);
                c.program.push(Op::Anchor { line: other.0 });
                c.program.push(Op::Await);
                return Step::Run;
            }
        }
        let m = self.memory;
        let line = m.buffer + self.done % m.chunks * m.chunk + self.at;
        let n = PIECE.min(m.chunk - self.at);
        let lines = n.to_u32();
        c.program.compute(POLL);
        match self.role {
            TransferRole::Writer { nontemporal: false } => c.program.push(Op::Store { line, lines }),
            TransferRole::Writer { nontemporal: true } => c.program.push(Op::StoreStream { line, lines }),
            TransferRole::Reader { to } => {
                c.program.push(Op::Copy { from: line, to: to + self.at, lines, dependent: false, behind: false })
            }
            TransferRole::Alone => c.program.push(Op::Load { line, lines }),
        }
        if !matches!(self.role, TransferRole::Writer { .. }) {
            self.piece = (n, c.step.now);
            c.tally.operations += n;
        }
        self.at += n;
        if self.at == m.chunk {
            self.at = 0;
            self.done += 1;
            if let Some((own, _, _)) = self.registers() {
                c.program.push(Op::Release { line: own.0, tag: 0 });
            }
        }
        Step::Run
    }

    fn counted_ahead(&self) -> (u64, Time) {
        self.piece
    }

    fn retired(&mut self, _: u32, c: &mut Ctx) {
        self.known_done += 1;
        if let (Some((own, _, _)), Some(pairs)) = (self.registers(), c.roles.get_mut::<TransferPairs>()) {
            pairs.0[own.1] = self.known_done;
        }
    }
}
