//! TouchDrop: reads every line of a packet and drops the packet.

use super::touchfwd::{touch, ByteLoop};
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
}
fn instructions() -> u32 {
    100
}

impl TouchdropSpec {
    fn loops(&self) -> ByteLoop {
        ByteLoop {
            per_byte: self.instructions_per_byte,
            dependent: self.dependent_per_byte,
            loads: self.loads_per_byte,
            branches: self.taken_branches_per_byte,
        }
    }
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
        s.loops().check()
    }
    fn answers(_: &TouchdropSpec) -> bool {
        false
    }
    fn build(s: &TouchdropSpec, packet: u32, _context: AppBuildContext) -> Result<Touchdrop, String> {
        let content = Content { lines: lines(packet.into()), wire_bytes: packet, ..Content::default() };
        Ok(Touchdrop { instructions: s.instructions, loops: s.loops(), content })
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
