//! L2 forwarder: reads and edits the Ethernet header and sends the packet in place, or drops it (IDIO, Table II).

use super::{lines, AppBuildContext, Application, Content, ServeOutcome};
use crate::core::{Op, Program};
use crate::kernel::{LineAddr, RandomStream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Action on a packet after its header has been processed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Payload {
    /// The NIC sends the packet from its receive buffer.
    #[default]
    Forward,
    /// The packet is dropped with its payload unread.
    Drop,
}

/// Parameters of the layer-2 forwarder.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct L2fwdSpec {
    /// Action on a packet after its header has been processed: "forward" (the default) or "drop".
    #[serde(default)]
    pub payload: Payload,
    /// Instructions per packet in addition to the header's load and store. The default is 100.
    #[serde(default = "instructions")]
    pub instructions: u32,
}
fn instructions() -> u32 {
    100
}

/// Layer-2 forwarder.
#[derive(Clone)]
pub struct L2fwd {
    payload: Payload,
    instructions: u32,
    content: Content,
}

impl Application for L2fwd {
    type Spec = L2fwdSpec;

    fn answers(s: &L2fwdSpec) -> bool {
        s.payload != Payload::Drop
    }
    fn build(s: &L2fwdSpec, packet: u32, _context: AppBuildContext) -> Result<L2fwd, String> {
        let content = Content { lines: lines(packet.into()), wire_bytes: packet, ..Content::default() };
        Ok(L2fwd { payload: s.payload, instructions: s.instructions, content })
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
        p.push(Op::Anchor { line: rx });
        p.compute(self.instructions);
        if self.payload == Payload::Drop {
            return (ServeOutcome::Consumed, 0);
        }
        p.push(Op::DependentStore { line: rx, lines: 1 });
        (ServeOutcome::Forward, c.lines)
    }
}
