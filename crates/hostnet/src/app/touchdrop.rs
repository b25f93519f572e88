//! TouchDrop: reads every line of a packet and drops the packet.

use super::touchfwd::{check_per_byte, touch, ByteLoop};
use super::{lines, AppBuildContext, Application, Content, ServeOutcome};
use crate::core::Program;
use crate::kernel::{LineAddr, RandomStream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of TouchDrop.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TouchdropSpec {
    /// Instructions per packet in addition to its loads. The default is 100.
    #[serde(default = "instructions")]
    pub instructions: u32,
    /// Instructions per byte, between the loads of the packet's lines. With 0, the default, all loads are issued
    /// together.
    #[serde(default)]
    pub instructions_per_byte: f64,
    /// Taken branches per byte, each of which costs `core.quirks.taken_branch_cycles`. The default is 0.
    #[serde(default)]
    pub taken_branches_per_byte: u32,
}
fn instructions() -> u32 {
    100
}

/// TouchDrop: reads every line of a packet and drops the packet.
#[derive(Clone)]
pub struct Touchdrop {
    instructions: u32,
    loops: ByteLoop,
    content: Content,
}

impl Application for Touchdrop {
    type Spec = TouchdropSpec;

    fn check(s: &TouchdropSpec, _cores: u32) -> Result<(), String> {
        check_per_byte(s.instructions_per_byte)
    }
    fn build(s: &TouchdropSpec, packet: u32, _context: AppBuildContext) -> Result<Touchdrop, String> {
        let content = Content { lines: lines(packet.into()), wire_bytes: packet, ..Content::default() };
        let loops = ByteLoop { per_byte: s.instructions_per_byte, branches: s.taken_branches_per_byte };
        Ok(Touchdrop { instructions: s.instructions, loops, content })
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
        touch(p, rx, c, self.loops);
        p.compute(self.instructions);
        (ServeOutcome::Consumed, 0)
    }
}
