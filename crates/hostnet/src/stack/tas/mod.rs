//! TCP as a service (TAS, EuroSys 2019): threads of a fast path run TCP for an application on a core of its own.
//!
//! ```text
//!   NIC -> fast path: copy to the flow's receive buffer --- entry ---> application: reads, writes
//!                     acknowledge in the same mbuf                       the transmit buffer
//!   NIC <- fast path: copy from the flow's transmit buffer  <-- entry --- tells how many bytes
//! ```
//!
//! Entries go through two queues in memory for each thread of the fast path, flow state is two lines. A store's effect is seen
//! by others when the core's `Op::Release` says so. A segment holds what a flow has to send, up to 1448 bytes, so that RPCs that
//! wait go together, as TAS's queue manager takes them. Each segment with data is acknowledged at once, as TAS does.

mod client;
mod echo;
mod fast;
pub(super) mod io;

pub use client::{Client, Segment};
pub use fast::{frame, ACKNOWLEDGES, ASKS, REPLIES};
pub use io::Io;

use super::{Ctx, Software, Step};
use crate::app::tcp_echo::{TcpEchoSpec, HEADERS, MSS, SOCKET_BUFFER};
use crate::kernel::{Int, LineAddr, QueueId, Time};
use crate::machine::Machine;
use crate::memory::LINE;
use std::collections::VecDeque;

/// Segments or entries that the fast path takes at once (artifact: `BATCH_SIZE`).
const BATCH: usize = 16;
/// Entries that a poll of the application takes (artifact: `max_events` of the echo server).
const EVENTS: usize = 128;
/// Entries of a line, to the application and from it (artifact: 32 and 16 bytes).
const TO_APP: u64 = 2;
const FROM_APP: u64 = 4;
/// Lines of a context queue. TAS's are 2 MiB and 512 KiB; windows of a run do not go round these.
const QUEUE: u64 = 512;
/// Lines of a flow's state (artifact: 128 bytes), of all buckets, and of a flow's socket with its part of epoll and its buffer.
const STATE: u64 = 2;
const BUCKETS: u64 = (2 << 20) / LINE;
const SOCKET: u64 = 8;
/// Flows of a line of the queue manager (artifact: 32 bytes each).
const MANAGED: u64 = 2;
/// The tag of an entry that others see. Drivers and queue pairs have none like it.
const POSTED: u32 = 3;

/// Where the parts lie: first lines.
#[derive(Clone, Debug)]
pub struct Memory {
    pub buckets: LineAddr,
    pub states: LineAddr,
    pub receive: LineAddr,
    pub transmit: LineAddr,
    /// By thread of the fast path: entries to the application and from it, and places of its queue manager.
    pub threads: Vec<[LineAddr; 3]>,
    pub sockets: LineAddr,
}

/// Lines of each part for `flows` connections: buckets, states, receive and transmit buffers; those of a thread; sockets.
pub fn sizes(flows: u32) -> ([u64; 4], [u64; 3], u64) {
    let n = u64::from(flows);
    let buffers = n * SOCKET_BUFFER / LINE;
    ([BUCKETS, n * STATE, buffers, buffers], [QUEUE, QUEUE, n.div_ceil(MANAGED)], n * SOCKET)
}

/// One connection as the server has it. Bytes count from the first one of either direction.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// The queue of the NIC that its segments come through, and RSS's hash.
    pub queue: QueueId,
    pub hash: u32,
    /// Received, read by the application, and of its replies written, told to the fast path, and sent.
    pub received: u64,
    pub read: u64,
    pub written: u64,
    pub available: u64,
    pub sent: u64,
    /// It is in a queue manager.
    managed: bool,
    /// The thread of the fast path that has it.
    owner: Option<usize>,
}

/// An entry of a context queue: a flow, and bytes that were received or are to be sent.
#[derive(Clone, Copy, Debug)]
struct Entry {
    flow: u32,
    bytes: u32,
}

/// The two context queues between a thread of the fast path and the application.
#[derive(Clone, Debug, Default)]
struct Context {
    /// Entries that the other side can see; and those ever put in and taken out.
    to_app: VecDeque<Entry>,
    to_app_ends: (u64, u64),
    from_app: VecDeque<Entry>,
    from_app_ends: (u64, u64),
}

/// What the threads share.
#[derive(Clone)]
pub struct Service {
    pub spec: TcpEchoSpec,
    memory: Memory,
    pub flows: Vec<Flow>,
    contexts: Vec<Context>,
    pub client: Client,
    /// Packets that have ended since the beginning.
    pub ended: u64,
    /// Data segments sent in the window.
    pub segments: u64,
    /// Why the run is not valid, if so.
    pub broken: Option<String>,
}

impl Service {
    /// One with `threads` of the fast path.
    pub fn new(spec: TcpEchoSpec, memory: Memory, threads: usize) -> Service {
        Service {
            flows: vec![Flow::default(); spec.flows.to_usize()],
            client: Client::new(&spec),
            spec,
            memory,
            contexts: vec![Context::default(); threads],
            ended: 0,
            segments: 0,
            broken: None,
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
    /// The pieces of `bytes` bytes from the `at`-th on in a flow's buffer: first line and lines.
    fn received_at(&self, flow: u32, at: u64, bytes: u64) -> Vec<(LineAddr, u32)> {
        pieces(self.memory.receive, flow, at, bytes)
    }
    fn transmit_at(&self, flow: u32, at: u64, bytes: u64) -> Vec<(LineAddr, u32)> {
        pieces(self.memory.transmit, flow, at, bytes)
    }

    /// Thread `local` of the fast path works on `flow`, which no other thread does.
    fn own(&mut self, flow: u32, local: usize) {
        let owner = self.flows[flow.to_usize()].owner.get_or_insert(local);
        if *owner != local {
            self.broken = Some(format!("flow {flow} is worked on by threads {owner} and {local} of the fast path"));
        }
    }
}

/// The same in the ring of bytes that begins at line `base` for the first flow.
fn pieces(base: LineAddr, flow: u32, at: u64, bytes: u64) -> Vec<(LineAddr, u32)> {
    let (base, at) = (base + u64::from(flow) * (SOCKET_BUFFER / LINE), at % SOCKET_BUFFER);
    let piece = |from: u64, to: u64| (base + from / LINE, (to.div_ceil(LINE) - from / LINE).to_u32());
    match (at + bytes).checked_sub(SOCKET_BUFFER) {
        None | Some(0) => vec![piece(at, at + bytes)],
        Some(over) => vec![piece(at, SOCKET_BUFFER), piece(0, over)],
    }
}

/// Lines of `bytes` bytes that begin a line.
fn lines(bytes: u64) -> u32 {
    bytes.div_ceil(LINE).to_u32()
}

/// A thread of TAS.
#[derive(Clone)]
pub enum Tas {
    Fast(fast::FastPath),
    Echo(echo::Echo),
}

impl Tas {
    /// The `local`-th thread of the fast path, over `io`.
    pub fn fast(local: usize, io: Io) -> Tas {
        Tas::Fast(fast::FastPath::new(local, io))
    }
    /// The application's.
    pub fn echo() -> Tas {
        Tas::Echo(echo::Echo::default())
    }
}

impl Software for Tas {
    fn step(&mut self, c: &mut Ctx) -> Step {
        c.program.ops.clear();
        if c.stopped {
            return Step::Idle;
        }
        match self {
            Tas::Fast(f) => f.step(c),
            Tas::Echo(e) => e.step(c),
        }
    }

    fn retired(&mut self, tag: u32, c: &mut Ctx) {
        match self {
            Tas::Fast(f) => f.retired(tag, c),
            Tas::Echo(e) => e.posted(c),
        }
    }

    fn retired_at_once(&mut self, tag: u32, m: &mut Machine) {
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
