//! Application that writes and sends packets, and reads the packets that return (CC-NIC, section 5.1). With CC-NIC the
//! threads of `stack/ccnic` do the work. Behind a PCIe NIC a poll-mode driver calls the application for its accesses to
//! packets.

use super::{lines, AppBuildContext, Application, Content, Origin, ServeOutcome, WorkSource};
use crate::core::{Op, Program};
use crate::kernel::units::Size;
use crate::kernel::{Int, LineAddr, RandomStream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Part of a packet that the host accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Touched {
    /// All lines of the packet.
    #[default]
    Payload,
    /// The first line of the packet.
    Header,
}

/// Parameters of the application that sends packets and reads the packets that return.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoopbackSpec {
    /// Size of a packet (1 B to 32 KiB), all of which lies in memory. Behind a PCIe NIC a frame has its check sequence
    /// in addition.
    pub bytes: Size,
    /// Part of a packet that the host writes and reads: "payload" (all lines, the default) or "header" (the first
    /// line), which are the same for packets of one line.
    #[serde(default)]
    pub touch: Touched,
}

/// Application that sends packets and reads the packets that return.
#[derive(Clone)]
pub struct Loopback {
    content: Content,
    /// Lines of a packet that the host writes and reads.
    touched: u32,
}

impl Application for Loopback {
    type Spec = LoopbackSpec;
    const WORK: WorkSource = WorkSource::Own;

    fn check(s: &LoopbackSpec, _cores: u32) -> Result<(), String> {
        if (1..=32_768).contains(&s.bytes.0) {
            return Ok(());
        }
        Err(format!("bytes = \"{}\" is not within 1 B to 32 KiB", s.bytes))
    }

    fn origin(_: &LoopbackSpec) -> Origin {
        Origin::Loop
    }

    fn build(s: &LoopbackSpec, _packet: u32, _context: AppBuildContext) -> Result<Loopback, String> {
        let content = Content { lines: lines(s.bytes.0), wire_bytes: s.bytes.0.to_u32(), ..Content::default() };
        Ok(Loopback { content, touched: if s.touch == Touched::Header { 1 } else { content.lines.into() } })
    }
    #[inline]
    fn content(&mut self, _core: usize, _rng: &mut RandomStream) -> Content {
        self.content
    }
    /// Reads a received packet.
    #[inline]
    fn serve(
        &mut self,
        _core: usize,
        _c: &Content,
        rx: LineAddr,
        _tx: LineAddr,
        p: &mut Program,
    ) -> (ServeOutcome, u16) {
        p.push(Op::Load { line: rx, lines: self.touched });
        (ServeOutcome::Consumed, 0)
    }
    /// Writes a packet to be sent.
    #[inline]
    fn make(&mut self, _core: usize, _c: &Content, tx: LineAddr, p: &mut Program) {
        p.push(Op::Store { line: tx, lines: self.touched });
    }
}
