//! L3 forwarder: parse, route look-up, send (DPDK's l3fwd on queue pairs; Sweeper, sections III, IV-B).

use super::lpm::Lpm;
use super::{lines, Answer, Application, Content, Site};
use crate::core::{Op, Program};
use crate::kernel::rng::mix;
use crate::kernel::Stream;
use crate::memory::region::{Kind, Sharing};
use crate::traffic::pcap::Captured;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct L3fwdSpec {
    /// Routes, each a /24 of its own; packets spread evenly over them.
    pub rules: u32,
    /// Edits the packet in its receive buffer and sends it from there; otherwise it is copied to a
    /// transmit buffer.
    #[serde(default)]
    pub zero_copy: bool,
    /// Instructions per packet besides loads and stores of lines.
    #[serde(default = "instructions")]
    pub instructions: u32,
}
fn instructions() -> u32 {
    150
}

const ENTRIES_PER_LINE: u32 = 16; // 4-byte entries

#[derive(Clone)]
pub struct L3fwd {
    instructions: u32,
    zero_copy: bool,
    wire_bytes: u32,
    lines: u16,
    tables: Arc<(Lpm, Vec<u32>)>,
    tbl24: u64,
    tbl8: u64,
}

impl L3fwdSpec {
    /// # Errors
    /// One clause with key and value.
    pub fn check(&self) -> Result<(), String> {
        if self.rules == 0 || self.rules > 1 << 20 {
            return Err(format!("rules = {} is not within 1 to 1048576", self.rules));
        }
        Ok(())
    }
}

impl Application for L3fwd {
    type Spec = L3fwdSpec;

    fn check(s: &L3fwdSpec, _cores: u32) -> Result<(), String> {
        s.check()
    }

    fn build(s: &L3fwdSpec, packet: u32, site: Site) -> Result<L3fwd, String> {
        s.check()?;
        let mut lpm = Lpm::default();
        let mut rng = Stream::new(site.seed, "l3fwd routes", site.tenant.into());
        // Routes a line of the table apart, so that n routes touch n lines.
        let stride = (1u32 << 24) / ENTRIES_PER_LINE / s.rules.next_power_of_two();
        let routes: Vec<u32> = (0..s.rules)
            .map(|i| {
                let line = i * stride + rng.below(stride.into()) as u32;
                let ip = (line * ENTRIES_PER_LINE + rng.below(16) as u32) << 8;
                lpm.add(ip, 24, i & 0xff);
                ip
            })
            .collect();
        let mut region = |entries: u64| {
            let n = entries.div_ceil(ENTRIES_PER_LINE.into()).max(1);
            let r = site.map.add(n, Kind::App, Sharing::Shared, site.tenant);
            site.map.get(r).base
        };
        let tbl24 = region(1 << 24);
        let tbl8 = region(lpm.tbl8_entries() as u64);
        Ok(L3fwd {
            instructions: s.instructions,
            zero_copy: s.zero_copy,
            wire_bytes: packet,
            lines: lines(packet.into()),
            tables: Arc::new((lpm, routes)),
            tbl24,
            tbl8,
        })
    }

    #[inline]
    fn content(&mut self, _core: usize, rng: &mut Stream) -> Content {
        let routes = &self.tables.1;
        self.at(rng.below(routes.len() as u64) as usize, rng.below(256) as u32)
    }

    /// A packet of a captured flow: all of them take one route.
    #[inline]
    fn replay(&mut self, _core: usize, packet: &Captured, _i: usize, _pass: u64, _rng: &mut Stream) -> Content {
        let route = mix(packet.flow.into()) as usize % self.tables.1.len();
        self.at(route, packet.flow & 0xff).of_size(packet)
    }

    #[inline]
    fn serve(&mut self, _core: usize, c: &Content, rx: u64, tx: u64, p: &mut Program) -> (Answer, u16) {
        p.push(Op::Anchor { line: rx });
        p.compute(self.instructions / 2);
        let at = self.tables.0.lookup(c.key as u32);
        p.push(Op::Chase { line: self.tbl24 + u64::from(at.tbl24 / ENTRIES_PER_LINE), delay: 8 });
        if let Some(i) = at.tbl8 {
            p.push(Op::Chase { line: self.tbl8 + u64::from(i / ENTRIES_PER_LINE), delay: 2 });
        }
        p.compute(self.instructions - self.instructions / 2);
        if self.zero_copy {
            p.push(Op::DependentStore { line: rx, lines: 1 });
            return (Answer::Forward, c.lines);
        }
        p.push(Op::Copy { from: rx, to: tx, lines: c.lines.into(), dependent: false });
        (Answer::Reply, c.lines)
    }
}

impl L3fwd {
    fn at(&self, route: usize, host: u32) -> Content {
        let ip = self.tables.1[route] | host;
        Content { key: ip.into(), lines: self.lines, wire_bytes: self.wire_bytes, ..Content::default() }
    }
}
