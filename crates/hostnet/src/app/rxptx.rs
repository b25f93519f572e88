//! RXpTX: receives a burst of packets, waits, exchanges the addresses of each packet, and sends the burst.

use super::testpmd::swap_addresses;
use super::{lines, AppBuildContext, Application, Content, ServeOutcome};
use crate::core::{Op, Program};
use crate::kernel::units::Span;
use crate::kernel::{LineAddr, RandomStream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of RXpTX.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RxptxSpec {
    /// Time for which the core waits in a loop after each received burst.
    pub interval: Span,
    /// Instructions per packet in addition to the access to its first line, whose addresses are exchanged. The default
    /// is 20.
    #[serde(default = "instructions")]
    pub instructions: u32,
}
fn instructions() -> u32 {
    20
}

/// RXpTX: receives a burst of packets, waits, exchanges the addresses of each packet, and sends the burst.
#[derive(Clone)]
pub struct Rxptx {
    interval: Time,
    instructions: u32,
    content: Content,
}

impl Application for Rxptx {
    type Spec = RxptxSpec;

    fn build(s: &RxptxSpec, packet: u32, _context: AppBuildContext) -> Result<Rxptx, String> {
        let content = Content { lines: lines(packet.into()), wire_bytes: packet, ..Content::default() };
        Ok(Rxptx { interval: s.interval.into(), instructions: s.instructions, content })
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
        swap_addresses(rx, p);
        p.compute(self.instructions);
        (ServeOutcome::Forward, c.lines)
    }
    #[inline]
    fn begin_burst(&mut self, _core: usize, packets: &mut dyn Iterator<Item = (Content, LineAddr)>, p: &mut Program) {
        if packets.next().is_some() && self.interval > Time::ZERO {
            p.push(Op::Serialise);
            p.push(Op::Stall(self.interval.0));
        }
    }
}
