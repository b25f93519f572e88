//! TestPMD: forwards or drops packets and reads at most their Ethernet header, or sends packets that it generates.

use super::{lines, AppBuildContext, Application, Content, Origin, ServeOutcome};
use crate::core::{Op, Program};
use crate::kernel::{LineAddr, RandomStream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Forwarding mode of TestPMD.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TestpmdMode {
    /// Packets are sent unchanged and unread.
    #[default]
    Io,
    /// The addresses of packets are exchanged before they are sent.
    Macswap,
    /// Packets are freed unread.
    Rxonly,
    /// TestPMD generates and sends packets as fast as possible, and receives none. The headers of a packet fit one
    /// line, which is written.
    Txonly,
}

/// Parameters of TestPMD.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TestpmdSpec {
    /// Forwarding mode: "io" (the default), "macswap", "rxonly" or "txonly".
    #[serde(default)]
    pub mode: TestpmdMode,
    /// Instructions per packet in addition to the access to its first line, if there is any. The default is 20.
    #[serde(default = "instructions")]
    pub instructions: u32,
}
fn instructions() -> u32 {
    20
}

/// TestPMD: forwards, drops or generates packets.
#[derive(Clone)]
pub struct Testpmd {
    mode: TestpmdMode,
    instructions: u32,
    content: Content,
}

impl Application for Testpmd {
    type Spec = TestpmdSpec;

    fn answers(s: &TestpmdSpec) -> bool {
        s.mode != TestpmdMode::Rxonly
    }
    fn origin(s: &TestpmdSpec) -> Origin {
        if s.mode == TestpmdMode::Txonly {
            Origin::Always
        } else {
            Origin::Network
        }
    }
    fn build(s: &TestpmdSpec, packet: u32, _context: AppBuildContext) -> Result<Testpmd, String> {
        let content = Content { lines: lines(packet.into()), wire_bytes: packet, ..Content::default() };
        Ok(Testpmd { mode: s.mode, instructions: s.instructions, content })
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
        if self.mode == TestpmdMode::Macswap {
            swap_addresses(rx, p);
        }
        p.compute(self.instructions);
        match self.mode {
            TestpmdMode::Rxonly | TestpmdMode::Txonly => (ServeOutcome::Consumed, 0),
            TestpmdMode::Io | TestpmdMode::Macswap => (ServeOutcome::Forward, c.lines),
        }
    }
    #[inline]
    fn make(&mut self, _core: usize, _c: &Content, tx: LineAddr, p: &mut Program) {
        p.push(Op::Store { line: tx, lines: 1 });
        p.compute(self.instructions);
    }
}

/// Exchanges the addresses of the packet at `rx`: reads and writes its first line.
#[inline]
pub(super) fn swap_addresses(rx: LineAddr, p: &mut Program) {
    p.push(Op::Load { line: rx, lines: 1 });
    p.push(Op::Store { line: rx, lines: 1 });
}
