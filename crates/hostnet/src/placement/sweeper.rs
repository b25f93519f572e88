//! Sweeper: consumed network buffers are dropped instead of written back (sections V-A to V-D).

use crate::core::{Op, Program};
use crate::kernel::LineAddr;
use crate::memory::Sweep;

/// `relinquish(buffer, size)`: one `clsweep` for each cache block, after the last read and before the
/// buffer goes back to the NIC.
pub fn relinquish(program: &mut Program, line: LineAddr, lines: u32) {
    program.push(Op::Maintain { line, lines, op: Sweep::Sweep });
}
