//! Recordings of real programs: for each packet, the instructions that a program retired and the memory that it
//! accessed.
//!
//! A [`Recording`] holds addresses and sizes, and never a byte of a packet or of the program's memory. [`Recording::read`]
//! and [`Recording::write`] read and write files, whose bytes `docs/use/recording-format.md` describes.
//!
//! ```no_run
//! let recording = hostnet_recording::Recording::read("l3fwd.rec")?;
//! for packet in &recording.packets {
//!     for step in packet.steps.iter() {
//!         println!("{} instructions, then {:?}", step.before.instructions, step.access);
//!     }
//! }
//! # Ok::<(), hostnet_recording::Error>(())
//! ```

mod bytes;
mod file;

use serde::Serialize;
use std::fmt;
use std::sync::Arc;

pub use file::{MAGIC, VERSION};

/// Bytes of a page of the program's memory.
pub const PAGE: u64 = 4096;

/// Largest number of earlier loads that a dependence names.
pub const SOURCES: usize = 4;

/// A recorded program: its packets, and the memory that the packets access.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recording {
    /// Origin of the recording.
    pub about: About,
    /// Threads that handled packets. [`Packet::thread`] and [`Page::thread`] are indices of this list.
    pub threads: Vec<Thread>,
    /// Pages of the program's memory, in the order of the first access. [`Place::Memory`] names a page by its index.
    pub pages: Vec<Page>,
    /// Packets, in the order in which the program began to handle them.
    pub packets: Vec<Packet>,
}

/// Origin of a recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct About {
    /// File name of the program, without its directory.
    pub program: String,
    /// Version of the program, or an empty string if the version is unknown.
    pub version: String,
    /// Program and arguments, as they were given.
    pub command: Vec<String>,
    /// Time at which the recording began, in UTC, such as `2026-11-26T21:37:28Z`.
    pub date: String,
    /// Processor and operating system of the machine.
    pub machine: String,
    /// Name and version of the recorder.
    pub recorder: String,
    /// Events that begin and end the work of a packet.
    pub boundary: Boundary,
}

/// Events that begin and end the work of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Boundary {
    /// Receive and transmit functions of DPDK's drivers. The instructions of the drivers are not recorded.
    Dpdk,
    /// System calls that receive and send. The instructions of the kernel are not recorded.
    Sockets,
    /// Addresses or symbols that the user named.
    Addresses,
}

/// A thread that handled packets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Thread {
    /// Name of the thread.
    pub name: String,
}

/// A page of the program's memory. Pages are numbered densely; their real addresses are not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Page {
    /// Origin of the page.
    pub kind: PageKind,
    /// The only thread that accessed the page, or `None` for a page that several threads accessed.
    pub thread: Option<u32>,
}

/// Origin of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PageKind {
    /// The heap (`brk`).
    Heap,
    /// Variables and constants of the program and of its libraries.
    Global,
    /// Stack or thread-local storage of a thread.
    Stack,
    /// Other mappings: anonymous memory, huge pages, shared memory and files.
    Mmap,
}

/// A packet, and the program's work on it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Packet {
    /// Thread that handled the packet.
    pub thread: u32,
    /// Number of the burst in which the packet arrived; packets of a burst have the same number and follow each other.
    pub burst: u32,
    /// Length of the frame or message as received, in bytes.
    pub received: u32,
    /// Fate of the packet.
    pub outcome: Outcome,
    /// Accesses in program order. Packets with the same steps share them.
    pub steps: Arc<[Step]>,
    /// Counts from the last access to the end of the packet's work.
    pub rest: Counts,
}

/// Fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The program sent the received frame itself, with this length in bytes.
    Forwarded(u32),
    /// The program sent this number of bytes from other memory, which [`Place::Reply`] names.
    Replied(u32),
    /// The program sent nothing: it dropped the packet, or kept it until after the recording's end.
    Consumed,
}

/// A memory access, and what was executed since the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Step {
    /// Counts since the previous access of the packet. The instruction that makes this access is included, unless the
    /// instruction made the previous access as well.
    pub before: Counts,
    /// Earlier loads of the packet whose data the mispredicted branches among `before` depend on: instructions after
    /// such a branch begin once this data has arrived.
    pub branches_from: Sources,
    /// The access.
    pub access: Access,
}

/// Counts of instructions between two accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Counts {
    /// Instructions retired.
    pub instructions: u32,
    /// Branches, calls and returns among the instructions.
    pub branches: u32,
    /// Branches, calls and returns that were taken.
    pub taken: u32,
    /// Branches that a predictor with the history of the recorded packets predicts wrongly.
    pub mispredicted: u32,
    /// Fences and serialising instructions among the instructions.
    pub fences: u32,
    /// System calls among the instructions. The kernel's instructions and accesses are not recorded.
    pub system_calls: u32,
}

impl Counts {
    /// Adds the counts of `other`.
    pub fn add(&mut self, other: Counts) {
        self.instructions = self.instructions.saturating_add(other.instructions);
        self.branches = self.branches.saturating_add(other.branches);
        self.taken = self.taken.saturating_add(other.taken);
        self.mispredicted = self.mispredicted.saturating_add(other.mispredicted);
        self.fences = self.fences.saturating_add(other.fences);
        self.system_calls = self.system_calls.saturating_add(other.system_calls);
    }
}

/// A memory access. An access may cross lines, but not pages: the recorder splits one that does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Access {
    /// Kind of the access.
    pub kind: AccessKind,
    /// First byte of the access.
    pub place: Place,
    /// Number of bytes.
    pub bytes: u32,
    /// Earlier loads of the packet whose data the address depends on.
    pub address_from: Sources,
}

/// Kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessKind {
    /// A load.
    Load,
    /// A store.
    Store,
    /// A locked or otherwise atomic read-modify-write.
    Atomic,
    /// A software prefetch for reading.
    Prefetch,
    /// A software prefetch for writing (PREFETCHW).
    PrefetchOwn,
    /// A non-temporal store.
    StreamStore,
    /// A write-back or eviction of a line (CLFLUSH, CLFLUSHOPT, CLWB, CLDEMOTE).
    Flush,
}

impl AccessKind {
    /// Whether later addresses can depend on the data of such an access.
    pub fn loads(self) -> bool {
        matches!(self, AccessKind::Load | AccessKind::Atomic)
    }
}

/// First byte of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The received frame or message. The offset counts from its first byte and is negative in the headroom.
    Frame(i32),
    /// The metadata of the received frame (DPDK's mbuf), by the offset in the metadata.
    Metadata(u32),
    /// The frame or message that the program sends in reply, by the offset from its first byte.
    Reply(i32),
    /// The metadata of the reply.
    ReplyMetadata(u32),
    /// The program's memory.
    Memory {
        /// Index of the page in [`Recording::pages`].
        page: u32,
        /// Offset in the page, below [`PAGE`].
        offset: u16,
    },
}

/// Earlier loads that something depends on, as backward distances in steps: 1 is the packet's previous access.
/// Distances ascend. Of more than [`SOURCES`] loads the latest are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sources([u32; SOURCES]);

impl Sources {
    /// The given distances, in any order, of which zeros are dropped and the smallest are kept.
    pub fn new(distances: impl IntoIterator<Item = u32>) -> Sources {
        let mut all: Vec<u32> = distances.into_iter().filter(|d| *d > 0).collect();
        all.sort_unstable();
        all.dedup();
        let mut kept = [0; SOURCES];
        kept.iter_mut().zip(all).for_each(|(to, from)| *to = from);
        Sources(kept)
    }
    /// The distances.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied().take_while(|d| *d > 0)
    }
    /// Whether there is no such load in the packet.
    pub fn is_empty(&self) -> bool {
        self.0[0] == 0
    }
}

impl Serialize for Sources {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(self.iter())
    }
}

impl Packet {
    /// Sum of all counts of the packet.
    pub fn total(&self) -> Counts {
        let mut sum = self.rest;
        self.steps.iter().for_each(|s| sum.add(s.before));
        sum
    }
}

/// A recording that cannot be read or written: one sentence that names the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(pub String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}
