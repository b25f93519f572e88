//! TouchDrop: reads every line of a packet and drops it.

use super::{lines, Answer, Content};
use crate::core::{Op, Program};
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

impl Touchdrop {
    pub fn build(s: &TouchdropSpec, packet: u32) -> Touchdrop {
        let content = Content { lines: lines(packet.into()), wire_bytes: packet, ..Content::default() };
        Touchdrop { instructions: s.instructions, content }
    }
    pub fn content(&self) -> Content {
        self.content
    }
    pub fn serve(&self, c: &Content, rx: u64, p: &mut Program) -> (Answer, u16) {
        p.push(Op::Load { line: rx, lines: c.lines.into() });
        p.compute(self.instructions);
        (Answer::Consumed, 0)
    }
}
