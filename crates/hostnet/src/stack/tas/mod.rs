//! TCP as a service (TAS, EuroSys 2019): threads of a fast path run TCP for an application on a core of its own.
//!
//! ```text
//!   NIC -> fast path: copy to the flow's receive buffer --- entry ---> application: reads, writes
//!                     acknowledge in the same mbuf                       the transmit buffer
//!   NIC <- fast path: copy from the flow's transmit buffer  <-- entry --- tells how many bytes
//! ```
//!
//! Entries go through two queues in memory for each thread of the fast path; the state of a flow is two lines. Other
//! threads see the effect of a store when the core's `Op::Release` completes. A segment holds the bytes that a flow has
//! to send, up to 1448, so that one segment carries all waiting RPCs, as in TAS's queue manager. Each segment with data
//! is acknowledged immediately, as TAS does.

mod client;
mod echo;
mod fast;
pub(super) mod io;
mod role;

pub use client::{TasClient, TasSegment};
pub use fast::{frame, ACKNOWLEDGES, ASKS, REPLIES};
pub use io::Io;

use super::{Ctx, Software, Step, StepMachine};
use crate::app::tcp_echo::{TcpEchoSpec, HEADERS, MSS, SOCKET_BUFFER};
use crate::core::{Op, Program};
use crate::device::NicAt;
use crate::kernel::{Int, LineAddr, QueueId, ThreadId, Time};
use crate::machine::Machine;
use crate::memory::LINE;
use crate::meter::life::{Lives, Milestone};
use std::collections::VecDeque;

/// Segments or entries that the fast path takes in a batch (artifact: `BATCH_SIZE`).
const BATCH: usize = 16;
/// Entries that a poll of the application takes (artifact: `max_events` of the echo server).
const EVENTS: usize = 128;
/// Entries per line in the queue to the application, and in the queue from the application (artifact: 32 and 16 bytes).
const TO_APP: u64 = 2;
const FROM_APP: u64 = 4;
/// Lines of a context queue. TAS's queues are 2 MiB and 512 KiB; a measurement window does not wrap around queues of
/// this size.
const QUEUE: u64 = 512;
/// Lines of a flow's state (artifact: 128 bytes). `BUCKETS` is the number of lines of all hash buckets, and `SOCKET`
/// that of a flow's socket with its part of epoll and its buffer.
const STATE: u64 = 2;
const BUCKETS: u64 = (2 << 20) / LINE;
const SOCKET: u64 = 8;
/// Flows per line of the queue manager (artifact: 32 bytes each).
const MANAGED: u64 = 2;
/// Tag of an operation that makes an entry visible. Drivers and queue pairs have no such tag.
const POSTED: u32 = 3;

/// First lines of the memory regions of TAS.
#[derive(Clone, Debug)]
pub struct TasMemory {
    /// First line of the hash table of flows.
    pub buckets: LineAddr,
    /// First line of the flows' states.
    pub states: LineAddr,
    /// First line of the flows' receive buffers.
    pub receive: LineAddr,
    /// First line of the flows' transmit buffers.
    pub transmit: LineAddr,
    /// For each thread of the fast path: the queue of entries to the application, the queue of entries from the
    /// application, and the entries of the queue manager.
    pub threads: Vec<[LineAddr; 3]>,
    /// First line of the application's sockets.
    pub sockets: LineAddr,
}

/// Lines of each region for `flows` connections: buckets, states, receive and transmit buffers, the regions of a
/// thread, and sockets.
pub fn sizes(flows: u32) -> ([u64; 4], [u64; 3], u64) {
    let n = u64::from(flows);
    let buffers = n * SOCKET_BUFFER / LINE;
    ([BUCKETS, n * STATE, buffers, buffers], [QUEUE, QUEUE, n.div_ceil(MANAGED)], n * SOCKET)
}

/// State of one connection at the server. In either direction, byte counts begin with the first byte.
#[derive(Clone, Debug, Default)]
pub struct TasFlow {
    /// Queue of the NIC that receives the flow's segments.
    pub queue: QueueId,
    /// RSS hash of the flow.
    pub hash: u32,
    /// Number of bytes received from the client.
    pub received: u64,
    /// Number of bytes that the application has read.
    pub read: u64,
    /// Number of bytes of replies that the application has written.
    pub written: u64,
    /// Number of bytes of replies announced to the fast path.
    pub available: u64,
    /// Number of bytes of replies sent.
    pub sent: u64,
    /// Whether the flow is in a queue manager.
    managed: bool,
    /// Thread of the fast path that owns the flow.
    owner: Option<usize>,
    /// Number of received bytes that entries have announced to the application.
    delivered: u64,
    /// Number of bytes of replies that entries have announced to the fast path.
    announced: u64,
    /// Segments whose lives are recorded and that no reply carries yet: the number of bytes up to the segment's end, and
    /// the number by which its life is known.
    followed: VecDeque<(u64, usize)>,
}

/// An entry of a context queue: a flow, and the number of bytes that were received or are to be sent.
#[derive(Clone, Copy, Debug)]
struct ContextEntry {
    flow: u32,
    bytes: u32,
}

/// The two context queues between a thread of the fast path and the application.
#[derive(Clone, Debug, Default)]
struct Context {
    /// Entries of the queue to the application that the application can see.
    to_app: VecDeque<ContextEntry>,
    /// Numbers of entries ever put into the queue to the application, and ever taken out.
    to_app_ends: (u64, u64),
    from_app: VecDeque<ContextEntry>,
    from_app_ends: (u64, u64),
}

/// State shared by the threads of TAS.
#[derive(Clone)]
pub struct Service {
    /// Parameters of the server.
    pub spec: TcpEchoSpec,
    memory: TasMemory,
    /// State of each flow.
    pub flows: Vec<TasFlow>,
    contexts: Vec<Context>,
    /// Cores of the threads of the fast path, and of the application.
    cores: Vec<ThreadId>,
    /// Cores whose threads are to look at entries that have become visible to them.
    woken: Vec<ThreadId>,
    /// The clients.
    pub client: TasClient,
    /// Number of packets that have ended since the beginning.
    pub ended: u64,
    /// Data segments sent in the measurement window.
    pub segments: u64,
    /// Reason why the run is invalid, if it is.
    pub broken: Option<String>,
    /// NIC that receives the segments.
    nic: Option<NicAt>,
    /// Clause that says what a user may change when segments are lost.
    remedy: String,
}

impl Service {
    /// A service whose segments come through `nic`, and whose fast path runs on all of `cores` but the last one, which is
    /// the application's; `remedy` is the clause that says what a user may change when segments are lost.
    pub fn new(
        spec: TcpEchoSpec,
        memory: TasMemory,
        cores: &[ThreadId],
        nic: Option<NicAt>,
        remedy: String,
    ) -> Service {
        Service {
            flows: vec![TasFlow::default(); spec.flows.to_usize()],
            client: TasClient::new(&spec),
            spec,
            memory,
            contexts: vec![Context::default(); cores.len() - 1],
            cores: cores.to_vec(),
            woken: Vec::new(),
            ended: 0,
            segments: 0,
            broken: None,
            nic,
            remedy,
        }
    }

    fn state(&self, flow: u32) -> LineAddr {
        self.memory.states + u64::from(flow) * STATE
    }
    fn bucket(&self, flow: u32) -> LineAddr {
        self.memory.buckets + u64::from(self.flows[flow.to_usize()].hash) % BUCKETS
    }
    fn socket(&self, flow: u32) -> LineAddr {
        self.memory.sockets + u64::from(flow) * SOCKET
    }
    /// Pieces of `bytes` bytes from number `at` on in a flow's receive buffer: first line and number of lines of each
    /// piece.
    fn received_at(&self, flow: u32, at: u64, bytes: u64) -> Vec<(LineAddr, u32)> {
        pieces(self.memory.receive, flow, at, bytes)
    }
    fn transmit_at(&self, flow: u32, at: u64, bytes: u64) -> Vec<(LineAddr, u32)> {
        pieces(self.memory.transmit, flow, at, bytes)
    }

    /// Lives of the packets of TAS's NIC, where the run records lives.
    fn lives<'a>(&self, m: &'a mut StepMachine) -> Option<&'a mut Lives> {
        let Some(NicAt::Port(port)) = self.nic else { return None };
        m.iio.as_deref_mut()?.nic_mut(port)?.lives.as_deref_mut()
    }

    /// Lets the followed segments of `flow` up to byte `until` pass a milestone.
    fn pass(&self, flow: u32, until: u64, what: Milestone, m: &mut StepMachine) {
        if let Some(l) = self.lives(m) {
            let passed = self.flows[flow.to_usize()].followed.iter().take_while(|s| s.0 <= until);
            passed.for_each(|(_, key)| l.mark(*key, what));
        }
    }

    /// Records that thread `local` of the fast path works on `flow`, which no other thread may do.
    fn own(&mut self, flow: u32, local: usize) {
        let owner = self.flows[flow.to_usize()].owner.get_or_insert(local);
        if *owner != local {
            self.broken = Some(format!("flow {flow} is worked on by threads {owner} and {local} of the fast path"));
        }
    }
}

/// Pieces of `bytes` bytes from number `at` on in the byte ring of `flow`, where the first flow's ring begins at line
/// `base`.
fn pieces(base: LineAddr, flow: u32, at: u64, bytes: u64) -> Vec<(LineAddr, u32)> {
    let (base, at) = (base + u64::from(flow) * (SOCKET_BUFFER / LINE), at % SOCKET_BUFFER);
    let piece = |from: u64, to: u64| (base + from / LINE, (to.div_ceil(LINE) - from / LINE).to_u32());
    match (at + bytes).checked_sub(SOCKET_BUFFER) {
        None | Some(0) => vec![piece(at, at + bytes)],
        Some(over) => vec![piece(at, SOCKET_BUFFER), piece(0, over)],
    }
}

/// Whether `p`, without its polls, accesses no memory.
fn only_computes(p: &Program) -> bool {
    p.ops.iter().all(|op| matches!(op, Op::Compute(_)))
}

/// Lines of `bytes` bytes that begin at the start of a line.
fn lines(bytes: u64) -> u32 {
    bytes.div_ceil(LINE).to_u32()
}

/// A thread of TAS.
#[derive(Clone)]
pub enum Tas {
    /// A thread of the fast path.
    Fast(fast::FastPath),
    /// A thread of the application.
    Echo(echo::Echo),
}

impl Tas {
    /// Thread number `local` of the fast path, over `io`.
    pub fn fast(local: usize, io: Io) -> Tas {
        Tas::Fast(fast::FastPath::new(local, io))
    }
    /// The application's thread.
    pub fn echo() -> Tas {
        Tas::Echo(echo::Echo::default())
    }
}

impl Software for Tas {
    fn step(&mut self, c: &mut Ctx) -> Step {
        c.program.ops.clear();
        if c.step.stopped {
            return Step::Idle;
        }
        match self {
            Tas::Fast(f) => f.step(c),
            Tas::Echo(e) => e.step(c),
        }
    }

    fn skip_polls(&mut self, polls: u64) {
        if let Tas::Fast(f) = self {
            f.skip_polls(polls);
        }
    }

    fn retired(&mut self, tag: u32, c: &mut Ctx) {
        match self {
            Tas::Fast(f) => f.retired(tag, c),
            Tas::Echo(e) => e.posted(c),
        }
    }

    fn retired_functional(&mut self, tag: u32, m: &mut Machine) {
        unreachable!("tag {tag} without time, at {}: TAS warms up in time", m.now.0)
    }

    fn restart_meters(&mut self, now: Time) {
        if let Tas::Fast(f) = self {
            f.io.restart_meters(now);
        }
    }
}

#[cfg(test)]
mod tests;
