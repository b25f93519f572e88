//! TouchFwd: reads every byte of a packet, exchanges the packet's addresses, and forwards the packet.

use super::testpmd::swap_addresses;
use super::{lines, AppBuildContext, Application, Content, ServeOutcome};
use crate::core::{Op, Program};
use crate::kernel::{Int, LineAddr, RandomStream, Real};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of TouchFwd.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TouchfwdSpec {
    /// Instructions per byte of the packet: load, compare and branch. The default is 3.
    #[serde(default = "per_byte")]
    pub instructions_per_byte: f64,
    /// Taken branches per byte, each of which costs `core.quirks.taken_branch_cycles`. The default is 0.
    #[serde(default)]
    pub taken_branches_per_byte: u32,
    /// Instructions per packet in addition to those per byte. The default is 20.
    #[serde(default = "instructions")]
    pub instructions: u32,
}
fn per_byte() -> f64 {
    3.0
}
fn instructions() -> u32 {
    20
}

/// TouchFwd: reads every byte of a packet, exchanges the packet's addresses, and forwards the packet.
#[derive(Clone)]
pub struct Touchfwd {
    loops: ByteLoop,
    instructions: u32,
    content: Content,
}

impl Application for Touchfwd {
    type Spec = TouchfwdSpec;

    fn check(s: &TouchfwdSpec, _cores: u32) -> Result<(), String> {
        check_per_byte(s.instructions_per_byte)
    }
    fn build(s: &TouchfwdSpec, packet: u32, _context: AppBuildContext) -> Result<Touchfwd, String> {
        let content = Content { lines: lines(packet.into()), wire_bytes: packet, ..Content::default() };
        let loops = ByteLoop { per_byte: s.instructions_per_byte, branches: s.taken_branches_per_byte };
        Ok(Touchfwd { loops, instructions: s.instructions, content })
    }
    #[inline]
    fn content(&mut self, _core: usize, _rng: &mut RandomStream) -> Content {
        self.content
    }
    #[inline]
    fn serve(
        &mut self,
        _core: usize,
        c: &Content,
        rx: LineAddr,
        _tx: LineAddr,
        p: &mut Program,
    ) -> (ServeOutcome, u16) {
        p.compute(self.instructions);
        touch(p, rx, c, self.loops);
        swap_addresses(rx, p);
        (ServeOutcome::Forward, c.lines)
    }
}

/// A loop over the bytes of a packet: its instructions and its taken branches per byte.
#[derive(Clone, Copy, Debug)]
pub(super) struct ByteLoop {
    pub per_byte: f64,
    pub branches: u32,
}

/// Checks the number of instructions per byte.
///
/// # Errors
/// Returns one clause that names key and value.
pub(super) fn check_per_byte(per_byte: f64) -> Result<(), String> {
    if !(0.0..=1000.0).contains(&per_byte) {
        return Err(format!("instructions_per_byte = {per_byte} is not within 0 to 1000"));
    }
    Ok(())
}

/// Reads the packet at `rx`, byte by byte, with the instructions of `l` for each byte: line by line, a load followed by
/// the instructions.
#[inline]
pub(super) fn touch(p: &mut Program, rx: LineAddr, c: &Content, l: ByteLoop) {
    if l.per_byte == 0.0 {
        p.push(Op::Load { line: rx, lines: c.lines.into() });
        return;
    }
    let bytes = f64::from(c.wire_bytes) / f64::from(c.lines.max(1));
    for line in rx.span(c.lines) {
        p.push(Op::Walk { line, loads: bytes.ceil().whole().to_u16() });
        p.compute((bytes * l.per_byte).round().whole().to_u32());
        p.take_branches((bytes * f64::from(l.branches)).round().whole().to_u32());
    }
}
