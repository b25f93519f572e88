//! The op stream: what a program asks of its core.

use crate::kernel::LineAddr;
use crate::memory::Sweep;

/// Where lines lie that are mapped write-combining.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mapped {
    /// In a device: its registers and its memory.
    Device,
    /// In this machine's memory, past the caches.
    Memory,
}

/// One step of a program. Lines are 64-byte line numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Op {
    /// `n` instructions that touch no memory beyond the L1.
    Compute(u32),
    /// Load `lines` consecutive lines; addresses are known at dispatch.
    Load { line: LineAddr, lines: u32 },
    /// Load whose address comes from the last anchored load, `delay` cycles after its data.
    /// Becomes the new anchor.
    Chase { line: LineAddr, delay: u16 },
    /// Load whose value later `Chase`s and `Dependent` stores wait for.
    Anchor { line: LineAddr },
    /// `loads` loads of one line after the other, addresses known at dispatch: a walk over its bytes or words. Where a line fill
    /// buffer takes fewer (`core.lfb_targets`), the next line's wait for this one. The instructions of all but one load are the
    /// program's own.
    Walk { line: LineAddr, loads: u16 },
    /// Store `lines` consecutive lines; addresses known at dispatch.
    Store { line: LineAddr, lines: u32 },
    /// The same, but the address comes from the anchor.
    DependentStore { line: LineAddr, lines: u32 },
    /// Load `lines` lines whose address comes from the anchor.
    DependentLoad { line: LineAddr, lines: u32 },
    /// Read `lines` lines at `from` and write them at `to`; with `dependent`, `to` comes from the anchor, and with `behind`, `from`.
    Copy { from: LineAddr, to: LineAddr, lines: u32, dependent: bool, behind: bool },
    /// The same with non-temporal stores: whole lines that bypass the caches.
    CopyStream { from: LineAddr, to: LineAddr, lines: u32, behind: bool },
    /// Software prefetch of `lines` lines.
    Prefetch { line: LineAddr, lines: u32 },
    /// The same for a line whose address comes from the anchor: it goes out when that data is there.
    DependentPrefetch { line: LineAddr },
    /// A read of a line that nothing waits for; one that is there already is left alone.
    Ahead { line: LineAddr },
    /// Waits until the data of the last anchored load is there: a branch on it.
    Await,
    /// A store that becomes visible after all before it, as x86 orders stores, and tells `tag` then. Later loads and side
    /// effects that wait for no stores do not wait for it.
    Release { line: LineAddr, tag: u32 },
    /// The same for stores to come (PREFETCHW): the core owns the lines, and has not written them.
    PrefetchOwn { line: LineAddr, lines: u32 },
    /// Load of a line that the program is about to write, behind a PREFETCHW of it: one request for ownership brings both. Streams
    /// and strides do not see it, as the load finds its line on its way; the line brings the other one of its pair.
    LoadOwn { line: LineAddr },
    /// Non-temporal stores of `lines` whole lines, which bypass the caches.
    StoreStream { line: LineAddr, lines: u32 },
    /// An atomic read-modify-write, such as a compare-and-swap: one store that waits for everything before it, and for which
    /// everything behind it waits. Becomes the anchor.
    Atomic { line: LineAddr },
    /// `clsweep`, `clflushopt` or `clwb` over `lines` lines, once everything before has retired.
    Maintain { line: LineAddr, lines: u32, op: Sweep },
    /// An invalidation without write-back of `lines` lines, in so many instructions, once everything before has retired.
    Invalidate { line: LineAddr, lines: u32, op: Sweep, instructions: u32 },
    /// A side effect, once everything before has retired; `stores` waits for earlier stores too.
    Retire { tag: u32, stores: bool },
    /// An uncached store to a device's register, a doorbell: it leaves once everything before has retired, and tells `tag` then.
    /// One is under way at a time, and it takes along what write-combining buffers hold.
    Mmio { tag: u32 },
    /// An uncached load of `bytes` bytes from a device: one is under way at a time, and nothing goes on before it is back.
    LoadDevice { bytes: u8 },
    /// A store of `bytes` bytes to a line that is mapped write-combining. Stores to one line gather in a buffer, which leaves when
    /// it is full, when all buffers are in use and another line wants one, or with the next fence or uncached access.
    Combine { line: LineAddr, bytes: u8, to: Mapped },
    /// Waits until everything before is done; write-combining buffers leave, and it waits until they are empty.
    Fence,
    /// A wait that is no computation, in picoseconds: a service-time spike, or a directed test that lets time pass.
    Stall(u64),
}

impl Op {
    /// What kind of instruction asks for the op's lines: those that a prefetcher tells apart by their address in a program. A
    /// loop over lines is one instruction, and an access to a line of its own another.
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

    /// Whether instructions of this kind load a line several times.
    pub fn is_walk(site: u8) -> bool {
        site == Op::Walk { line: LineAddr(0), loads: 1 }.site()
    }
}

/// A reused buffer of ops.
#[derive(Clone, Debug, Default)]
pub struct Program {
    pub ops: Vec<Op>,
}

impl Program {
    #[inline]
    pub fn push(&mut self, op: Op) {
        self.ops.push(op);
    }
    /// `n` instructions; nothing when `n` is zero.
    pub fn compute(&mut self, n: u32) {
        if n > 0 {
            self.ops.push(Op::Compute(n));
        }
    }
}
