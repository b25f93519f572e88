//! TouchDrop: reads every line of a packet and drops it.

use super::{lines, Answer, Application, Content, Site};
use crate::core::{Op, Program};
use crate::kernel::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TouchdropSpec {
    /// Instructions per packet besides its loads.
    #[serde(default = "instructions")]
    pub instructions: u32,
}
fn instructions() -> u32 {
    100
}

#[derive(Clone)]
pub struct Touchdrop {
    instructions: u32,
    content: Content,
}

impl Application for Touchdrop {
    type Spec = TouchdropSpec;

    fn build(s: &TouchdropSpec, packet: u32, _site: Site) -> Result<Touchdrop, String> {
        let content = Content { lines: lines(packet.into()), wire_bytes: packet, ..Content::default() };
        Ok(Touchdrop { instructions: s.instructions, content })
    }
    #[inline]
    fn content(&mut self, _core: usize, _rng: &mut Stream) -> Content {
        self.content
    }
    #[inline]
    fn serve(&mut self, _core: usize, c: &Content, rx: u64, _tx: u64, p: &mut Program) -> (Answer, u16) {
        p.push(Op::Load { line: rx, lines: c.lines.into() });
        p.compute(self.instructions);
        (Answer::Consumed, 0)
    }
}
