//! L3 forwarder: parse, route look-up, send (DPDK's l3fwd on queue pairs; Sweeper, sections III, IV-B).

use super::exact_match::ExactMatch;
use super::lpm::Lpm;
use super::{lines, AppBuildContext, Application, Content, ServeOutcome};
use crate::core::{Op, Program};
use crate::kernel::rng::mix;
use crate::kernel::{Int, LineAddr, RandomStream};
use crate::memory::region::{RegionKind, Sharing};
use crate::traffic::pcap::Captured;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Route look-up of a forwarder.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RouteTable {
    /// Longest-prefix match (DIR-24-8) in tables that all cores share.
    #[default]
    Lpm,
    /// Exact match of the whole 5-tuple, by hash, in a table of each core (DPDK's rte_hash).
    ExactMatch,
}

/// Parameters of the layer-3 forwarder.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct L3fwdSpec {
    /// Number of routes, each a /24 prefix or a 5-tuple; packets spread evenly over the routes.
    pub rules: u32,
    /// Route look-up: "lpm" (longest-prefix match, the default) or "exact_match".
    #[serde(default)]
    pub table: RouteTable,
    /// Number of keys that an exact-match table has room for, at least `rules`; only for `table = "exact_match"`. The
    /// default is twice `rules`.
    #[serde(default)]
    pub table_entries: Option<u32>,
    /// Whether the forwarder edits the packet in its receive buffer and sends it from there. When false (the default),
    /// the forwarder copies the packet to a transmit buffer.
    #[serde(default)]
    pub zero_copy: bool,
    /// Instructions per packet in addition to loads and stores of lines. The default is 150.
    #[serde(default = "instructions")]
    pub instructions: u32,
}
fn instructions() -> u32 {
    150
}

const ENTRIES_PER_LINE: u32 = 16; // 4-byte entries

/// Layer-3 forwarder.
#[derive(Clone)]
pub struct L3fwd {
    instructions: u32,
    zero_copy: bool,
    wire_bytes: u32,
    lines: u16,
    routes: Routes,
}

#[derive(Clone)]
enum Routes {
    Lpm {
        /// The table, and an address of each route.
        lpm: Arc<(Lpm, Vec<u32>)>,
        tbl24: LineAddr,
        tbl8: LineAddr,
    },
    ExactMatch {
        table: ExactMatch,
        rules: u32,
    },
}

impl L3fwdSpec {
    /// Checks that the routes fit the table.
    ///
    /// # Errors
    /// Returns one clause that names key and value.
    pub fn check(&self) -> Result<(), String> {
        if self.rules == 0 || self.rules > 1 << 20 {
            return Err(format!("rules = {} is not within 1 to 1048576", self.rules));
        }
        match (self.table, self.table_entries) {
            (RouteTable::Lpm, Some(_)) => Err("table_entries is for table = \"exact_match\"".into()),
            (_, Some(n)) if n < self.rules || n > 1 << 22 => {
                Err(format!("table_entries = {n} is not within rules = {} to 4194304", self.rules))
            }
            _ => Ok(()),
        }
    }
}

impl Application for L3fwd {
    type Spec = L3fwdSpec;

    fn check(s: &L3fwdSpec, _cores: u32) -> Result<(), String> {
        s.check()
    }

    fn build(s: &L3fwdSpec, packet: u32, mut context: AppBuildContext) -> Result<L3fwd, String> {
        s.check()?;
        let routes = match s.table {
            RouteTable::Lpm => Routes::lpm(s, context),
            RouteTable::ExactMatch => Routes::ExactMatch {
                table: ExactMatch::new(s.rules, s.table_entries.unwrap_or(2 * s.rules), &mut context)?,
                rules: s.rules,
            },
        };
        Ok(L3fwd {
            instructions: s.instructions,
            zero_copy: s.zero_copy,
            wire_bytes: packet,
            lines: lines(packet.into()),
            routes,
        })
    }

    #[inline]
    fn content(&mut self, _core: usize, rng: &mut RandomStream) -> Content {
        let route = rng.below(self.routes.count().to_u64()).to_usize();
        self.at(route, rng.below(256).to_u32())
    }

    /// Content of a packet of a captured flow; all packets of a flow take one route.
    #[inline]
    fn replay(&mut self, _core: usize, packet: &Captured, _i: usize, _pass: u64, _rng: &mut RandomStream) -> Content {
        let route = mix(packet.flow.into()).to_usize() % self.routes.count();
        self.at(route, packet.flow & 0xff).of_size(packet)
    }

    #[inline]
    fn serve(&mut self, core: usize, c: &Content, rx: LineAddr, tx: LineAddr, p: &mut Program) -> (ServeOutcome, u16) {
        p.push(Op::Anchor { line: rx });
        p.compute(self.instructions / 2);
        match &self.routes {
            Routes::Lpm { lpm, tbl24, tbl8 } => {
                let at = lpm.0.lookup(c.key.to_u32());
                p.push(Op::Chase { line: *tbl24 + u64::from(at.tbl24 / ENTRIES_PER_LINE), delay: 8 });
                if let Some(i) = at.tbl8 {
                    p.push(Op::Chase { line: *tbl8 + u64::from(i / ENTRIES_PER_LINE), delay: 2 });
                }
            }
            Routes::ExactMatch { table, .. } => {
                for line in table.lines(core, c.key.to_u32()) {
                    p.push(Op::Chase { line, delay: 8 });
                }
            }
        }
        p.compute(self.instructions - self.instructions / 2);
        if self.zero_copy {
            p.push(Op::DependentStore { line: rx, lines: 1 });
            return (ServeOutcome::Forward, c.lines);
        }
        p.push(Op::Copy { from: rx, to: tx, lines: c.lines.into(), dependent: false, behind: false });
        (ServeOutcome::Reply, c.lines)
    }
}

impl L3fwd {
    fn at(&self, route: usize, host: u32) -> Content {
        let key = match &self.routes {
            Routes::Lpm { lpm, .. } => lpm.1[route] | host,
            Routes::ExactMatch { .. } => route.to_u32(),
        };
        Content { key: key.into(), lines: self.lines, wire_bytes: self.wire_bytes, ..Content::default() }
    }
}

impl Routes {
    fn count(&self) -> usize {
        match self {
            Routes::Lpm { lpm, .. } => lpm.1.len(),
            Routes::ExactMatch { rules, .. } => rules.to_usize(),
        }
    }

    fn lpm(s: &L3fwdSpec, context: AppBuildContext) -> Routes {
        let mut lpm = Lpm::default();
        let mut rng = RandomStream::new(context.seed, "l3fwd routes", context.tenant.0.into());
        // Routes lie at least one line of the table apart, so that n routes touch n lines.
        let stride = (1u32 << 24) / ENTRIES_PER_LINE / s.rules.next_power_of_two();
        let routes: Vec<u32> = (0..s.rules)
            .map(|i| {
                let line = i * stride + rng.below(stride.into()).to_u32();
                let ip = (line * ENTRIES_PER_LINE + rng.below(16).to_u32()) << 8;
                lpm.add(ip, 24, i & 0xff);
                ip
            })
            .collect();
        let mut region = |entries: u64| {
            let n = entries.div_ceil(ENTRIES_PER_LINE.into()).max(1);
            let r = context.map.add(n, RegionKind::App, Sharing::Shared, context.tenant);
            context.map.get(r).base
        };
        let tbl24 = region(1 << 24);
        let tbl8 = region(lpm.tbl8_entries().to_u64());
        Routes::Lpm { lpm: Arc::new((lpm, routes)), tbl24, tbl8 }
    }
}
