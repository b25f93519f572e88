//! A software load generator, which writes requests into packets and reads the replies.

use super::{AppBuildContext, Application, Content, Origin, ServeOutcome};
use crate::core::{Op, Program};
use crate::kernel::LineAddr;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of the load generator in software.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadGeneratorSpec {
    /// Instructions of a request in addition to the stores of its lines: due time, text, time stamp. The default, 100,
    /// is assumed.
    #[serde(default = "request")]
    pub request_instructions: u32,
    /// Instructions of a reply in addition to the load of its first line: matching the reply to its request, and
    /// measuring the latency. The default, 50, is assumed.
    #[serde(default = "reply")]
    pub reply_instructions: u32,
}
fn request() -> u32 {
    100
}
fn reply() -> u32 {
    50
}

/// Load generator in software.
#[derive(Clone)]
pub struct LoadGenerator {
    spec: LoadGeneratorSpec,
}

impl Application for LoadGenerator {
    type Spec = LoadGeneratorSpec;

    fn origin(_: &LoadGeneratorSpec) -> Origin {
        Origin::Due
    }
    fn build(s: &LoadGeneratorSpec, _packet: u32, _context: AppBuildContext) -> Result<LoadGenerator, String> {
        Ok(LoadGenerator { spec: s.clone() })
    }
    #[inline]
    fn serve(
        &mut self,
        _core: usize,
        _c: &Content,
        rx: LineAddr,
        _tx: LineAddr,
        p: &mut Program,
    ) -> (ServeOutcome, u16) {
        p.push(Op::Load { line: rx, lines: 1 });
        p.compute(self.spec.reply_instructions);
        (ServeOutcome::Consumed, 0)
    }
    #[inline]
    fn make(&mut self, _core: usize, c: &Content, tx: LineAddr, p: &mut Program) {
        p.compute(self.spec.request_instructions);
        p.push(Op::Store { line: tx, lines: c.lines.into() });
    }
}
