//! The op stream: the instructions and memory accesses that a program asks its core to execute.

use crate::kernel::{LineAddr, PacketId, PortId};
use crate::memory::Sweep;

/// Target of lines that are mapped write-combining.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mapped {
    /// A device: its registers and its memory.
    Device,
    /// Memory of this machine; the stores reach it without entering a cache.
    Memory,
}

/// Number of slots in which applications keep anchors ([`Op::Keep`]).
pub const KEPT_ANCHORS: usize = 8;

/// Slot in which a stack keeps the anchor of an application, while the stack makes an access depend on a load of its own.
pub const STACK_ANCHOR: u8 = 8;

/// One step of a program. `line` is the number of the first 64-byte line that the op accesses, and `lines` the number
/// of lines.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the documentation of a variant explains its fields")]
pub enum Op {
    /// `n` instructions that touch no memory beyond the L1.
    Compute(u32),
    /// Loads of `lines` consecutive lines whose addresses are known at dispatch.
    Load { line: LineAddr, lines: u32 },
    /// Load whose address is known `delay` cycles after the data of the last anchor has arrived; the load becomes the
    /// new anchor.
    Chase { line: LineAddr, delay: u16 },
    /// Load that becomes the anchor: later `Chase` and `Dependent…` ops wait for its data.
    Anchor { line: LineAddr },
    /// Walk over the bytes or words of a line: `loads` loads of the line, one after the other, with addresses known at
    /// dispatch. Where a line fill buffer takes fewer accesses (`core.quirks.lfb_targets`), the walk over the next line waits
    /// for this walk. The op dispatches the instructions of one load; the program adds the instructions of the other
    /// loads.
    Walk { line: LineAddr, loads: u16 },
    /// Instructions of the loop over the line of the preceding `Walk`: `instructions` that take slots of the core, of which
    /// `dependent` need the line's data, and `loads` that only take entries of the ROB. While the line is missing, the
    /// core executes the independent instructions of those entries that its ROB holds.
    WalkBody { instructions: u32, dependent: u32, loads: u32 },
    /// Stores of `lines` consecutive lines whose addresses are known at dispatch.
    Store { line: LineAddr, lines: u32 },
    /// Stores of `lines` consecutive lines whose address comes from the data of the anchor.
    DependentStore { line: LineAddr, lines: u32 },
    /// Loads of `lines` consecutive lines whose address comes from the data of the anchor.
    DependentLoad { line: LineAddr, lines: u32 },
    /// Copies `lines` lines from `from` to `to`. The address of `to` comes from the anchor's data if `dependent`, and
    /// that of `from` if `behind`.
    Copy { from: LineAddr, to: LineAddr, lines: u32, dependent: bool, behind: bool },
    /// Copies `lines` lines from `from` to `to` with non-temporal stores, which write whole lines and bypass the
    /// caches; the address of `from` comes from the anchor's data if `behind`.
    CopyStream { from: LineAddr, to: LineAddr, lines: u32, behind: bool },
    /// Software prefetches of `lines` consecutive lines for reading.
    Prefetch { line: LineAddr, lines: u32 },
    /// Software prefetch for reading of a line whose address comes from the anchor; the prefetch is sent when the
    /// anchor's data arrives.
    DependentPrefetch { line: LineAddr },
    /// Read of a line for which no instruction and no side effect waits; the read has no effect if the line is present.
    Ahead { line: LineAddr },
    /// Waits until the data of the last anchor has arrived, as a branch on the data does.
    Await,
    /// Keeps the anchor in slot `slot` (below [`KEPT_ANCHORS`], or [`STACK_ANCHOR`]), as a register keeps a loaded value.
    Keep { slot: u8 },
    /// Makes the load or atomic operation that slot `slot` keeps the anchor again.
    Recall { slot: u8 },
    /// Store that becomes visible after all earlier accesses, as x86 orders stores, and then reports `tag`. Later
    /// loads, and side effects that wait for no stores, do not wait for this store.
    Release { line: LineAddr, tag: u32 },
    /// Software prefetches for writing (PREFETCHW) of `lines` consecutive lines: the core obtains ownership of the
    /// lines without writing them.
    PrefetchOwn { line: LineAddr, lines: u32 },
    /// Load of a line that the program is about to write, behind a PREFETCHW of the line: a single request for
    /// ownership brings data and ownership. The stream and stride prefetchers do not observe the load, because the load
    /// finds its line outstanding; the adjacent-line prefetcher fetches the other line of the pair.
    LoadOwn { line: LineAddr },
    /// Non-temporal stores of `lines` consecutive whole lines, which bypass the caches.
    StoreStream { line: LineAddr, lines: u32 },
    /// Atomic read-modify-write, such as a compare-and-swap: one store that waits for all earlier accesses and blocks
    /// all later ones. The store becomes the anchor.
    Atomic { line: LineAddr },
    /// Cache maintenance (`clsweep`, `clflushopt` or `clwb`, by `op`) of `lines` lines, once all earlier instructions
    /// have retired.
    Maintain { line: LineAddr, lines: u32, op: Sweep },
    /// Invalidation of `lines` lines without write-back, by `instructions` instructions, after all earlier instructions
    /// have retired.
    Invalidate { line: LineAddr, lines: u32, op: Sweep, instructions: u32 },
    /// Serialising instruction, such as AArch64's read of a system register in gem5: waits until all earlier loads and
    /// stores are done and all earlier doorbells are answered, and takes `core.quirks.serialise_cycles` more. The op waits for
    /// nothing in an in-order core and where that key is absent.
    Serialise,
    /// Taken branches, each of which costs the core's fetch stage `core.quirks.taken_branch_cycles`.
    TakenBranches(u32),
    /// Side effect that reports `tag` after all earlier instructions have retired; with `stores`, earlier stores must
    /// be done as well.
    Retire { tag: u32, stores: bool },
    /// Uncached store to a device's register (a doorbell), which leaves and reports `tag` once all earlier instructions
    /// have retired. The store first sends the contents of all write-combining buffers. An in-order core waits for the answer,
    /// where doorbells are answered, as gem5's MinorCPU does for stores that are strictly ordered (cpu/minor/lsq.cc,
    /// `tryToSendToTransfers`).
    Mmio { tag: u32 },
    /// Uncached load of `bytes` bytes from a device. The program continues only after the data has arrived, so that
    /// only one such load is outstanding.
    LoadDevice { bytes: u8 },
    /// Store of `bytes` bytes to a line that is mapped write-combining. Stores to one line gather in a buffer. The core
    /// sends the buffer's contents when the buffer is full, when another line needs a buffer and all are in use, or
    /// with the next fence or uncached access.
    Combine { line: LineAddr, bytes: u8, to: Mapped },
    /// Fence: waits until all earlier accesses are done, then sends the contents of all write-combining buffers and
    /// waits until the buffers are empty.
    Fence,
    /// Pause of a given number of picoseconds without computation: a spike of the service time, or a wait in a directed
    /// test.
    Stall(u64),
    /// Notes the time at which the core dispatches this op: the service of a packet of the NIC on `port` begins, or has
    /// been dispatched (`answered`). The op takes no time, and only programs of packets whose lives are recorded contain
    /// it.
    Note { port: PortId, packet: PacketId, answered: bool },
}

impl Op {
    /// Kind of the instruction that asks for the op's lines, which prefetchers use in place of an instruction address.
    /// A loop over lines counts as one instruction, and an access to a single line as another.
    #[inline]
    pub fn site(&self) -> u8 {
        let (kind, lines) = match *self {
            Op::Load { lines, .. } => (0, lines),
            Op::Store { lines, .. } => (1, lines),
            Op::DependentLoad { lines, .. } => (2, lines),
            Op::DependentStore { lines, .. } => (3, lines),
            Op::Copy { .. } | Op::CopyStream { .. } => (4, 2),
            Op::Walk { .. } => (5, 2),
            Op::Anchor { .. } => (6, 1),
            Op::Chase { .. } => (7, 1),
            _ => (8, 1),
        };
        kind << 1 | u8::from(lines > 1)
    }

    /// First line of the cached memory that the op reads or writes, the number of lines, and whether the op writes them; of a
    /// copy, those of its destination. None for ops that bypass the caches, maintain them, or access no memory.
    pub fn accesses(&self) -> Option<(LineAddr, u32, bool)> {
        match *self {
            Op::Load { line, lines } | Op::DependentLoad { line, lines } | Op::Prefetch { line, lines } => {
                Some((line, lines, false))
            }
            Op::Store { line, lines }
            | Op::DependentStore { line, lines }
            | Op::PrefetchOwn { line, lines }
            | Op::Copy { to: line, lines, .. } => Some((line, lines, true)),
            Op::Anchor { line }
            | Op::Chase { line, .. }
            | Op::Walk { line, .. }
            | Op::Ahead { line }
            | Op::DependentPrefetch { line } => Some((line, 1, false)),
            Op::Release { line, .. } | Op::LoadOwn { line } | Op::Atomic { line } => Some((line, 1, true)),
            Op::CopyStream { .. }
            | Op::StoreStream { .. }
            | Op::Combine { .. }
            | Op::Maintain { .. }
            | Op::Invalidate { .. }
            | Op::LoadDevice { .. }
            | Op::Mmio { .. }
            | Op::Retire { .. }
            | Op::Compute(_)
            | Op::Fence
            | Op::Await
            | Op::Keep { .. }
            | Op::Recall { .. }
            | Op::Stall(_)
            | Op::Serialise
            | Op::TakenBranches(_)
            | Op::WalkBody { .. }
            | Op::Note { .. } => None,
        }
    }

    /// Whether instructions of kind `site` load a line several times (`Walk`).
    pub fn is_walk(site: u8) -> bool {
        site == Op::Walk { line: LineAddr(0), loads: 1 }.site()
    }
}

/// A program: a buffer of ops that is reused.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Ops in program order.
    pub ops: Vec<Op>,
}

impl Program {
    /// Appends an op.
    #[inline]
    pub fn push(&mut self, op: Op) {
        self.ops.push(op);
    }
    /// Appends `n` instructions that touch no memory, or nothing when `n` is zero.
    pub fn compute(&mut self, n: u32) {
        if n > 0 {
            self.ops.push(Op::Compute(n));
        }
    }
    /// Appends `n` taken branches, or nothing when `n` is zero.
    pub fn take_branches(&mut self, n: u32) {
        if n > 0 {
            self.ops.push(Op::TakenBranches(n));
        }
    }
}
