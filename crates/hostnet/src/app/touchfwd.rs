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
    /// Instructions, of those per byte, that need the byte, so that they wait while its line is missing. The default is 0.
    #[serde(default)]
    pub dependent_per_byte: f64,
    /// Loads per byte that `instructions_per_byte` does not contain because they use a unit of their own; they take
    /// entries of the reorder buffer. The default is 0.
    #[serde(default)]
    pub loads_per_byte: u32,
    /// Taken branches per byte, each of which costs `core.quirks.taken_branch_cycles`; without that key they change nothing. The
    /// default is 0.
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
        s.loops().check()
    }
    fn build(s: &TouchfwdSpec, packet: u32, _context: AppBuildContext) -> Result<Touchfwd, String> {
        let content = Content { lines: lines(packet.into()), wire_bytes: packet, ..Content::default() };
        Ok(Touchfwd { loops: s.loops(), instructions: s.instructions, content })
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

impl TouchfwdSpec {
    fn loops(&self) -> ByteLoop {
        ByteLoop {
            per_byte: self.instructions_per_byte,
            dependent: self.dependent_per_byte,
            loads: self.loads_per_byte,
            branches: self.taken_branches_per_byte,
        }
    }
}

/// A loop over the bytes of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct ByteLoop {
    /// Instructions per byte, and those of them that need the byte.
    pub per_byte: f64,
    pub dependent: f64,
    /// Loads per byte beside the instructions.
    pub loads: u32,
    /// Taken branches per byte.
    pub branches: u32,
}

impl ByteLoop {
    /// Checks the numbers of instructions and loads per byte.
    ///
    /// # Errors
    /// Returns one clause that names key and value.
    pub fn check(self) -> Result<(), String> {
        let ByteLoop { per_byte, dependent, loads, .. } = self;
        if !(0.0..=1000.0).contains(&per_byte) {
            return Err(format!("instructions_per_byte = {per_byte} is not within 0 to 1000"));
        }
        if !(0.0..=per_byte).contains(&dependent) {
            return Err(format!(
                "dependent_per_byte = {dependent} is not within 0 to instructions_per_byte = {per_byte}"
            ));
        }
        if loads > 1000 || loads > 0 && per_byte == 0.0 {
            let most = if per_byte == 0.0 { "0, since instructions_per_byte = 0" } else { "0 to 1000" };
            return Err(format!("loads_per_byte = {loads} is not within {most}"));
        }
        Ok(())
    }
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
        let count = |per_byte: f64| (bytes * per_byte).round().whole().to_u32();
        let instructions = count(l.per_byte);
        if l.dependent == 0.0 && l.loads == 0 {
            p.compute(instructions);
        } else {
            let (dependent, loads) = (count(l.dependent), count(l.loads.into()));
            p.push(Op::WalkBody { instructions, dependent, loads: loads.saturating_sub(1) });
        }
        p.take_branches((bytes * f64::from(l.branches)).round().whole().to_u32());
    }
}
