//! An application: each packet reads some lines of a table, one after the other, and is answered in place.

use hostnet::app::{AppBuildContext, Application, Content, ServeOutcome};
use hostnet::core::{Op, Program};
use hostnet::kernel::units::Size;
use hostnet::kernel::{LineAddr, RandomStream};
use hostnet::memory::region::{RegionKind, Sharing};
use schemars::JsonSchema;
use serde::Deserialize;

/// Parameters of the application.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LookupSpec {
    /// Size of the table, which all cores share.
    pub table: Size,
    /// Number of dependent reads of a packet.
    pub reads: u32,
}

/// Reads of a table that depend on each other.
#[derive(Clone)]
pub struct Lookup {
    base: LineAddr,
    lines: u64,
    reads: u32,
    bytes: u32,
}

impl Application for Lookup {
    type Spec = LookupSpec;

    fn check(s: &LookupSpec, _cores: u32) -> Result<(), String> {
        if s.table.0 < 64 {
            return Err(format!("table = \"{}\" holds no line; give at least 64 B", s.table));
        }
        Ok(())
    }

    fn build(s: &LookupSpec, packet: u32, context: AppBuildContext) -> Result<Lookup, String> {
        let lines = s.table.0 / 64;
        let region = context.map.add(lines, RegionKind::App, Sharing::Shared, context.tenant);
        Ok(Lookup { base: context.map.get(region).base, lines, reads: s.reads, bytes: packet })
    }

    fn content(&mut self, _core: usize, rng: &mut RandomStream) -> Content {
        let lines = hostnet::app::lines(self.bytes.into());
        Content { key: rng.below(u64::MAX), lines, wire_bytes: self.bytes, ..Content::default() }
    }

    fn serve(
        &mut self,
        _core: usize,
        c: &Content,
        rx: LineAddr,
        _tx: LineAddr,
        p: &mut Program,
    ) -> (ServeOutcome, u16) {
        p.push(Op::DependentLoad { line: rx, lines: 1 });
        for i in 0..u64::from(self.reads) {
            // A multiplicative hash: each read is of another line.
            let at = (c.key ^ i).wrapping_mul(0x9e37_79b9_7f4a_7c15) % self.lines;
            p.compute(10);
            p.push(Op::DependentLoad { line: self.base + at, lines: 1 });
        }
        p.push(Op::Store { line: rx, lines: 1 });
        (ServeOutcome::Forward, c.lines)
    }
}
