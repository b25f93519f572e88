//! Sweeper: consumed network buffers are discarded instead of written back (sections V-A to V-D).

use crate::core::{Op, Program};
use crate::kernel::LineAddr;
use crate::memory::Sweep;

/// Emits `relinquish(buffer, size)`: one `clsweep` for each cache line, after the last read and before the buffer
/// returns to the NIC.
pub fn relinquish(program: &mut Program, line: LineAddr, lines: u32) {
    program.push(Op::Maintain { line, lines, op: Sweep::Sweep });
}
