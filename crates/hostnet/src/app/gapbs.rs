//! Graph kernels of the GAP Benchmark Suite on a uniform random graph that all cores share: PageRank in pull direction,
//! and betweenness centrality by Brandes' algorithm ("Understanding the Host Network", section 2.1 and appendix B).
//!
//! The graph never changes, but it is computed instead of stored: a hash of a node's number gives its neighbours. Cores
//! that run a kernel access every line of the kernel's arrays that the suite's code accesses.

use super::{AppBuildContext, Application};
use crate::core::{Op, Program};
use crate::kernel::rng::mix;
use crate::kernel::RandomStream as Rng;
use crate::kernel::{Int, LineAddr};
use crate::memory::region::{Contiguous, Pages, Sharing, PAGE};
use crate::memory::LINE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Graph kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kernel {
    /// PageRank: each node adds up the contributions of its neighbours.
    #[default]
    Pagerank,
    /// Betweenness centrality: a breadth-first search that counts shortest paths, and a backward pass that adds up
    /// dependencies.
    Betweenness,
}

/// Parameters of a graph kernel and of its graph.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GapbsSpec {
    /// Graph kernel that the cores run: "pagerank" (the default) or "betweenness".
    #[serde(default)]
    pub kernel: Kernel,
    /// Binary logarithm of the number of nodes (10 to 30).
    pub scale: u32,
    /// Edges per node that the generator draws, a multiple of 4; each edge is stored at both of its ends. The default
    /// is 16.
    #[serde(default = "degree")]
    pub degree: u32,
    /// Contiguity of the arrays' physical memory: "buddy" (the default) for memory as Linux's buddy allocator provides
    /// it, or the size of contiguous pieces, such as "32 KiB". The pieces lie anywhere in memory.
    #[serde(default)]
    pub contiguous: Contiguous,
}
fn degree() -> u32 {
    16
}

impl GapbsSpec {
    /// Checks that the graph's parameters are usable.
    ///
    /// # Errors
    /// Returns one clause that names key and value.
    pub fn check(&self) -> Result<(), String> {
        if !(10..=30).contains(&self.scale) {
            return Err(format!("scale = {} is not within 10 to 30", self.scale));
        }
        if !(4..=64).contains(&self.degree) || self.degree % 4 != 0 {
            return Err(format!("degree = {} is not a multiple of 4 within 4 to 64", self.degree));
        }
        self.contiguous.check(PAGE)?;
        Ok(())
    }
}

/// Instructions per edge in addition to the accesses, counted from the loops of the suite's source (pr.cc, bc.cc) after
/// compilation: address, arithmetic, compare and branch. `NODE` is the number of instructions per node: the surrounding
/// loop and the division or reset.
const EDGE: u32 = 4;
const NODE: u32 = 12;
/// Instructions that represent the about twenty cycles of a locked read-modify-write, with which no other instruction
/// overlaps (Fog's tables, Skylake).
const LOCKED: u32 = 40;
/// Number of nodes whose stores make one program of `stores`.
const CHUNK: u64 = 64;
/// Step length with which steps fill the interval from 0 to 1 evenly.
const GOLDEN: f64 = 0.618_033_988_749_895;

/// An array over pages with `1 << per_line` elements per line.
#[derive(Clone)]
struct GraphArray {
    pages: Pages,
    per_line: u32,
}

impl GraphArray {
    /// Line of element `i`.
    #[inline]
    fn line(&mut self, i: u64) -> LineAddr {
        self.pages.line(i >> self.per_line)
    }
}

/// A hash of `x` in [0, 1).
#[inline]
fn uniform(x: u64) -> f64 {
    (mix(x) >> 11).to_f64() / (1u64 << 53).to_f64()
}

/// Expected number of nodes that a breadth-first search from a random node finds at each depth, in a graph of `nodes`
/// nodes with `degree` random neighbours each. A node remains undiscovered when none of the frontier's edges leads to
/// that node.
fn levels(nodes: f64, degree: f64) -> Vec<f64> {
    let (mut found, mut seen) = (vec![1.0], 1.0);
    while nodes - seen >= 1.0 {
        let edges = degree * found[found.len() - 1] / nodes;
        let new = (nodes - seen) * (1.0 - (-edges).exp());
        if new < 0.5 {
            break;
        }
        found.push(new);
        seen += new;
    }
    found
}

/// Position of a thread in its kernel.
#[derive(Clone, Copy)]
struct GraphCursor {
    /// The node: its number, or for searches its position in the order of discovery.
    at: u64,
    /// Progress of a search, as the share of nodes found; `back` is set in the backward pass.
    found: f64,
    back: bool,
}

/// Graph kernel that all cores of a tenant run together.
#[derive(Clone)]
pub struct Gapbs {
    kernel: Kernel,
    nodes: u64,
    /// Neighbours of a node.
    edges: u64,
    seed: u64,
    /// Array of the start of each node's neighbours.
    index: GraphArray,
    neighbours: GraphArray,
    /// PageRank's contributions, or a search's depths; `scores` are the scores of both kernels, `paths` and
    /// `dependencies` the path counts and dependencies of a search.
    contributions: GraphArray,
    scores: GraphArray,
    paths: GraphArray,
    dependencies: GraphArray,
    queue: GraphArray,
    successors: GraphArray,
    /// Shares of nodes found up to each depth.
    levels: Vec<f64>,
    cores: Vec<GraphCursor>,
}

impl Application for Gapbs {
    type Spec = GapbsSpec;
    const WORK: super::WorkSource = super::WorkSource::Own;
    const WARMS_BY_STORES: bool = true;

    fn check(s: &GapbsSpec, _cores: u32) -> Result<(), String> {
        s.check()
    }

    fn build(s: &GapbsSpec, _packet: u32, context: AppBuildContext) -> Result<Gapbs, String> {
        s.check()?;
        let (nodes, edges) = (1u64 << s.scale, u64::from(2 * s.degree));
        let mut rng = Rng::new(context.seed, "gapbs", 0);
        let search = s.kernel == Kernel::Betweenness;
        // Elements have `bits` bits; arrays that a kernel does not use take one page.
        let mut array = |used: bool, elements: u64, bits: u64| {
            let lines = if used { (elements * bits).div_ceil(8 * LINE) } else { 1 };
            let buffer = (lines, s.contiguous, rng.below(u64::MAX));
            let pages = context.map.add_pieces(buffer, Sharing::Shared, context.tenant);
            GraphArray { pages, per_line: (8 * LINE / bits).trailing_zeros() }
        };
        let index = array(true, nodes, 64);
        let neighbours = array(true, nodes * edges, 32);
        let contributions = array(true, nodes, 32); // or depths
        let scores = array(true, nodes, 32);
        let paths = array(search, nodes, 64);
        let dependencies = array(search, nodes, 32);
        let queue = array(search, nodes, 32);
        let successors = array(search, nodes * edges, 1);
        let mut seen = 0.0;
        let mut levels = levels(nodes.to_f64(), edges.to_f64());
        for found in &mut levels {
            seen += *found / nodes.to_f64();
            *found = seen;
        }
        let seed = rng.below(u64::MAX);
        let n = context.cores.len().to_u64();
        let cores =
            (0..n).map(|c| GraphCursor { at: nodes / n * c + rng.below(nodes / n), found: rng.unit(), back: true });
        Ok(Gapbs {
            kernel: s.kernel,
            nodes,
            edges,
            seed,
            levels,
            cores: cores.collect(),
            index,
            neighbours,
            contributions,
            scores,
            paths,
            dependencies,
            queue,
            successors,
        })
    }

    /// Appends the operations of the next node; returns the number of its edges that were followed.
    fn free_run(&mut self, core: usize, _rng: &mut Rng, p: &mut Program) -> Option<u32> {
        Some(match self.kernel {
            Kernel::Pagerank => self.pull(core, p),
            Kernel::Betweenness => {
                let (w, level) = self.work(core);
                if w.back {
                    self.search_back(w.at, level, p)
                } else {
                    self.search(w.at, level, p)
                }
            }
        })
    }

    /// Appends the stores of several nodes, one line each.
    fn stores(&mut self, core: usize, rng: &mut Rng, p: &mut Program) {
        for _ in 0..CHUNK {
            let at = self.cores[core].at;
            match self.kernel {
                Kernel::Pagerank => {
                    self.cores[core].at = (at + 16) % self.nodes;
                    p.push(Op::Store { line: self.scores.line(at), lines: 1 });
                }
                Kernel::Betweenness => {
                    let v = rng.below(self.nodes);
                    p.push(Op::Store { line: self.paths.line(v), lines: 1 });
                }
            }
        }
    }
}

impl Gapbs {
    #[inline]
    fn neighbour(&self, u: u64, i: u64) -> u64 {
        mix(self.seed ^ (u * self.edges + i)) & (self.nodes - 1)
    }

    /// Line of `u`'s neighbours from number `i` on, when it is a new line.
    #[inline]
    fn list(&mut self, u: u64, i: u64) -> Option<LineAddr> {
        let at = u * self.edges + i;
        (i == 0 || at % 16 == 0).then(|| self.neighbours.line(at))
    }

    /// PageRank: a node gathers the contributions of its neighbours. The pass that updates contributions between two
    /// such passes moves 1 % of their lines, and is not modelled.
    fn pull(&mut self, core: usize, p: &mut Program) -> u32 {
        let u = self.cores[core].at;
        self.cores[core].at = (u + 1) % self.nodes;
        p.push(Op::Load { line: self.index.line(u), lines: 1 });
        for i in 0..self.edges {
            if let Some(line) = self.list(u, i) {
                p.push(Op::Anchor { line });
            }
            let v = self.neighbour(u, i);
            p.push(Op::DependentLoad { line: self.contributions.line(v), lines: 1 });
            p.compute(EDGE);
        }
        p.push(Op::Store { line: self.scores.line(u), lines: 1 });
        p.compute(NODE);
        self.edges.to_u32()
    }

    /// Advances a core to its next node. In the suite, passes over all depths, forward and backward, follow each other.
    /// Here nodes of all passes follow each other, each pass with a share of nodes that matches its size.
    fn work(&mut self, core: usize) -> (GraphCursor, u8) {
        let w = &mut self.cores[core];
        w.back = !w.back;
        w.at = (w.at + 1) % self.nodes;
        if w.back {
            w.found = (w.found + GOLDEN).fract();
        }
        let level = self.levels.iter().position(|upto| w.found < *upto).unwrap_or(self.levels.len() - 1);
        (*w, level.to_u8())
    }

    /// Shares of all nodes that are found up to `level`, and up to the next level.
    fn next_level(&self, level: u8) -> (f64, f64) {
        let upto = |l: usize| self.levels[l.min(self.levels.len() - 1)];
        (upto(level.into()), upto(level.to_usize() + 1))
    }

    /// Forward step of a search: finds undiscovered neighbours of a node, and adds paths to all neighbours one level
    /// deeper.
    fn search(&mut self, at: u64, level: u8, p: &mut Program) -> u32 {
        let u = self.node(at, p);
        let next = self.next_level(level);
        // Among the edges that lead from this level to a node of the next level, the first one finds the node.
        let before = if level == 0 { 0.0 } else { self.levels[level.to_usize() - 1] };
        let parents = (next.0 - before) * self.edges.to_f64();
        let first = (1.0 - (-parents).exp()) / parents;
        p.push(Op::DependentLoad { line: self.paths.line(u), lines: 1 });
        for i in 0..self.edges {
            if let Some(line) = self.list(u, i) {
                p.push(if i == 0 { Op::Chase { line, delay: 0 } } else { Op::Anchor { line } });
            }
            let v = self.neighbour(u, i);
            p.push(Op::DependentLoad { line: self.contributions.line(v), lines: 1 });
            p.compute(EDGE);
            if !self.is_deeper(v, next) {
                continue;
            }
            if uniform(v ^ u.rotate_left(32)) < first {
                self.locked(p, |g| g.contributions.line(v));
                p.push(Op::Store { line: self.queue.line(at), lines: 1 });
            }
            self.locked(p, |g| g.successors.line(u * g.edges + i));
            self.locked(p, |g| g.paths.line(v));
        }
        p.compute(NODE);
        self.edges.to_u32()
    }

    /// Backward step of a search: a node adds up the dependencies of its successors.
    fn search_back(&mut self, at: u64, level: u8, p: &mut Program) -> u32 {
        let u = self.node(at, p);
        let next = self.next_level(level);
        p.push(Op::DependentLoad { line: self.paths.line(u), lines: 1 });
        let mut listed = None;
        let mut followed = 0;
        for i in 0..self.edges {
            if i % 512 == 0 {
                p.push(Op::DependentLoad { line: self.successors.line(u * self.edges + i), lines: 1 });
            }
            p.compute(EDGE);
            let v = self.neighbour(u, i);
            if !self.is_deeper(v, next) {
                continue;
            }
            let line = self.neighbours.line(u * self.edges + i);
            if Some(line) != listed {
                listed = Some(line);
                p.push(if followed == 0 { Op::Chase { line, delay: 0 } } else { Op::Anchor { line } });
            }
            p.push(Op::DependentLoad { line: self.paths.line(v), lines: 1 });
            p.push(Op::DependentLoad { line: self.dependencies.line(v), lines: 1 });
            p.compute(2 * EDGE);
            followed += 1;
        }
        p.push(Op::DependentStore { line: self.dependencies.line(u), lines: 1 });
        p.push(Op::DependentStore { line: self.scores.line(u), lines: 1 });
        p.compute(NODE);
        self.edges.to_u32()
    }

    /// Reads a node of the queue, and the start of its neighbours. The queue is in the order of discovery, which is
    /// random.
    fn node(&mut self, at: u64, p: &mut Program) -> u64 {
        p.push(Op::Load { line: self.queue.line(at), lines: 1 });
        let u = mix(self.seed ^ !at) & (self.nodes - 1);
        p.push(Op::Anchor { line: self.index.line(u) });
        u
    }

    /// Whether a search finds `v` in the level that these shares enclose. A node's level is a property of the node;
    /// levels are drawn in proportion to their sizes.
    #[inline]
    fn is_deeper(&self, v: u64, (from, to): (f64, f64)) -> bool {
        let x = uniform(v ^ self.seed);
        from <= x && x < to
    }

    /// Appends a locked read-modify-write of the line that `of` returns.
    fn locked(&mut self, p: &mut Program, of: impl FnOnce(&mut Gapbs) -> LineAddr) {
        let line = of(self);
        p.push(Op::Fence);
        p.push(Op::Store { line, lines: 1 });
        p.compute(LOCKED);
        p.push(Op::Fence);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{TenantId, ThreadId};
    use crate::memory::region::AddressMap;

    fn gapbs(kernel: &str, scale: u32, map: &mut AddressMap) -> Gapbs {
        let spec: GapbsSpec = toml::from_str(&format!("kernel = \"{kernel}\"\nscale = {scale}")).unwrap();
        Gapbs::build(&spec, 0, AppBuildContext::new(map, TenantId(0), &[ThreadId(0)], 1)).unwrap()
    }

    /// Breadth-first searches of a stored random graph find the number of nodes at each depth that the recurrence
    /// gives.
    #[test]
    fn levels_are_those_of_a_search() {
        let (nodes, degree, sources) = (1usize << 15, 32, 16);
        let mut rng = Rng::new(3, "graph", 0);
        let mut lists = vec![Vec::new(); nodes];
        for u in 0..nodes {
            for _ in 0..degree / 2 {
                let v = rng.below(nodes as u64) as usize;
                lists[u].push(v);
                lists[v].push(u);
            }
        }
        let mut found = [0.0; 16];
        for source in 0..sources {
            let mut seen = vec![false; nodes];
            let mut frontier = vec![source];
            seen[source] = true;
            for depth in &mut found {
                *depth += frontier.len() as f64 / sources as f64;
                let edges = frontier.iter().flat_map(|u| &lists[*u]);
                frontier = edges.filter(|v| !std::mem::replace(&mut seen[**v], true)).copied().collect();
            }
        }
        let expected = levels(nodes as f64, f64::from(degree));
        for (d, n) in found.iter().enumerate().filter(|(_, n)| **n > 100.0) {
            assert!((expected[d] / n - 1.0).abs() < 0.1, "depth {d}: {} for {n}", expected[d]);
        }
    }

    #[test]
    fn arrays_take_what_the_paper_says() {
        let mut map = AddressMap::default();
        gapbs("pagerank", 25, &mut map);
        let gb = (map.iter().map(|r| r.lines).sum::<u64>() * LINE) as f64 / 1e9;
        assert!((gb - 5.0).abs() < 0.3, "{gb} GB");
    }

    /// Per node with 32 neighbours: 32 gathers, two lines of the list, and 1/16 or 1/8 line of each array walked.
    #[test]
    fn pagerank_reads_each_neighbour_and_writes_in_order() {
        let mut g = gapbs("pagerank", 20, &mut AddressMap::default());
        let (mut gathers, mut lists, mut lines) = (0, 0, std::collections::HashSet::new());
        let n = 4096;
        for _ in 0..n {
            let mut p = Program::default();
            g.pull(0, &mut p);
            for op in &p.ops {
                match op {
                    Op::DependentLoad { .. } => gathers += 1,
                    Op::Anchor { .. } => lists += 1,
                    Op::Load { line, .. } | Op::Store { line, .. } => drop(lines.insert(*line)),
                    _ => {}
                }
            }
        }
        assert_eq!((gathers, lists), (32 * n, 2 * n));
        let walked = f64::from(n as u32) * (1.0 / 16.0 + 1.0 / 8.0);
        assert!((lines.len() as f64 / walked - 1.0).abs() < 0.01, "{} for {walked}", lines.len());
    }

    /// The search adds paths along every edge to the next level, and the backward pass reads as many successors.
    #[test]
    fn betweenness_follows_the_edges_to_the_next_level() {
        let mut g = gapbs("betweenness", 25, &mut AddressMap::default());
        let level = (g.levels.len() - 2) as u8;
        let share = g.next_level(level).1 - g.next_level(level).0;
        let n = 1000u64;
        let (mut locked, mut read) = (0, 0);
        for at in 0..n {
            let mut p = Program::default();
            g.search(at, level, &mut p);
            locked += p.ops.iter().filter(|o| matches!(o, Op::Fence)).count() / 2;
            p.ops.clear();
            g.search_back(at, level, &mut p);
            // the node's own paths and successors, then two per successor
            read += p.ops.iter().filter(|o| matches!(o, Op::DependentLoad { .. })).count() - 2;
        }
        let successors = n as f64 * 32.0 * share;
        assert!((read as f64 / 2.0 / successors - 1.0).abs() < 0.03, "{read} for {successors}");
        let found = 1.0 / (32.0 * (g.levels[level as usize] - g.levels[level as usize - 1]));
        let expected = successors * (2.0 + found);
        assert!((locked as f64 / expected - 1.0).abs() < 0.03, "{locked} for {expected}");
    }
}
