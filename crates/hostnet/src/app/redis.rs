//! Redis: one single-threaded server per core with a keyspace of its own, queried over connections that always have a
//! pipeline of queries waiting ("Understanding the Host Network", section 2.1).
//!
//! The index and every object lie where Redis 6 with jemalloc puts them. A client causes system calls and copies at its
//! server. The client itself runs elsewhere and accesses lines that stay on the chip, so it is not simulated.

use super::mmu::Mmu;
use super::{AppBuildContext, Application, WorkSource};
use crate::core::{Op, Program};
use crate::kernel::rng::mix;
use crate::kernel::units::Size;
use crate::kernel::RandomStream as Rng;
use crate::kernel::{ids::niche_id, Int, LineAddr};
use crate::memory::region::{Contiguous, Pages, RegionKind, Sharing, PAGE, PAGE_LINES};
use crate::memory::LINE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;
use std::sync::Arc;

/// Command of every query.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RedisCommand {
    /// GET: reads the value of a key (YCSB-C).
    #[default]
    Get,
    /// SET: gives a key another value of the same size.
    Set,
}

/// Parameters of the Redis servers and their clients.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RedisSpec {
    /// Command of every query: "get" (the default) or "set". Keys are uniformly random.
    #[serde(default)]
    pub command: RedisCommand,
    /// Number of keys of each server.
    pub keys: u64,
    /// Size of a value (64 B to 64 KiB).
    pub value: Size,
    /// Number of connections of each server. The default is 2.
    #[serde(default = "connections")]
    pub connections: u32,
    /// Number of queries that a connection has waiting when its turn comes. The default is 32.
    #[serde(default = "pipeline")]
    pub pipeline: u32,
    /// Instructions of a query in addition to its copies: parsing, hashing, dispatch, reply header. The default is
    /// 2300.
    #[serde(default = "query_instructions")]
    pub query_instructions: u32,
    /// Instructions of a connection's turn in addition to its queries: poll, receive, send. The default is 12,300.
    #[serde(default = "turn_instructions")]
    pub turn_instructions: u32,
    /// Size of the socket memory of each server; copies pass through this memory in turn. The default is 208 KiB.
    #[serde(default = "socket")]
    pub socket: Size,
    /// Contiguity of the heap's physical memory: "buddy" (the default) for memory as Linux's buddy allocator provides
    /// it, or the size of contiguous pieces, such as "32 KiB". The pieces lie anywhere in memory.
    #[serde(default)]
    pub contiguous: Contiguous,
}
fn connections() -> u32 {
    2
}
fn pipeline() -> u32 {
    32
}
// Without pipelining Redis answers 200 k GET/s over a Unix socket on a Xeon X5670 (2.93 GHz), and with 16 queries at a
// time 863 k on a Core i7 920 (2.66 GHz). These are 14,650 and 3,083 cycles; Redis's author and users published both
// rates. Hence a query takes 2,300 cycles and a turn 12,300, on cores of one generation; as many instructions are
// assumed.
fn query_instructions() -> u32 {
    2300
}
fn turn_instructions() -> u32 {
    12_300
}
fn socket() -> Size {
    Size(208 << 10) // Linux's default send buffer
}

impl RedisSpec {
    /// Checks that the parameters fit together.
    ///
    /// # Errors
    /// Returns one clause that names key and value.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=1 << 28).contains(&self.keys) {
            return Err(format!("keys = {} is not within 1 to {}", self.keys, 1 << 28));
        }
        if !(LINE..=64 << 10).contains(&self.value.0) {
            return Err(format!("value = \"{}\" is not within 64 B to 64 KiB", self.value));
        }
        for (key, v) in [("connections", self.connections), ("pipeline", self.pipeline)] {
            if !(1..=1 << 12).contains(&v) {
                return Err(format!("{key} = {v} is not within 1 to 4096"));
            }
        }
        self.contiguous.check(PAGE)?;
        if self.socket.0 < self.value.0 {
            return Err(format!("socket = \"{}\" does not hold a value of \"{}\"", self.socket, self.value));
        }
        Ok(())
    }
}

/// Bytes of a hash entry in jemalloc's size classes; `KEY` and `OBJECT` are the bytes of a key string and of an object
/// header.
const ENTRY: u64 = 24;
const KEY: u64 = 32;
const OBJECT: u64 = 16;
const BUCKET: u64 = 8;
/// Bytes of a value's string header and terminator.
const STRING: u64 = 6;
/// Cycles that a mispredicted branch costs after its data has arrived.
const REDIRECT: u16 = 16;

/// jemalloc's size class of `bytes`; there are four classes for each power of two.
fn size_class(bytes: u64) -> u64 {
    let step = bytes.next_power_of_two() / 8;
    bytes.next_multiple_of(step.max(16))
}

niche_id!(
    /// Key of the dictionary, by its number.
    RedisKey(NonZeroU32)
);

/// Dictionary with chained buckets, newest entry first, whose number of buckets is a power of two not below the number
/// of keys.
struct RedisIndex {
    heads: Vec<Option<RedisKey>>,
    next: Vec<Option<RedisKey>>,
}

impl RedisIndex {
    fn new(keys: u64) -> RedisIndex {
        let buckets = keys.next_power_of_two();
        let mut x = RedisIndex { heads: vec![None; buckets.to_usize()], next: vec![None; keys.to_usize()] };
        for k in 0..keys.to_u32() {
            let b = x.bucket(k).to_usize();
            x.next[k.to_usize()] = x.heads[b].replace(RedisKey::new(k.to_usize()));
        }
        x
    }
    /// The keys of `bucket` that are looked at before `key` of that bucket is found.
    fn before(&self, bucket: u64, key: u32) -> impl Iterator<Item = u32> + '_ {
        let first = self.heads[bucket.to_usize()];
        let entries = std::iter::successors(first, |at| self.next[at.index()]);
        entries.map(|at| at.index().to_u32()).take_while(move |at| *at != key)
    }
    #[inline]
    fn bucket(&self, key: u32) -> u64 {
        mix(key.into()) & (self.heads.len().to_u64() - 1)
    }
}

/// Consecutive objects of one size in a heap whose pages lie anywhere.
#[derive(Clone)]
struct Slab {
    pages: Pages,
    size: u64,
    /// Number of the slab's first page among the server's pages.
    first: u64,
}

impl Slab {
    #[inline]
    fn line(&mut self, i: u32) -> LineAddr {
        self.pages.line(u64::from(i) * self.size / LINE)
    }
    #[inline]
    fn page(&self, i: u32) -> u64 {
        self.first + u64::from(i) * self.size / PAGE.0
    }
    /// Calls `f` for each run of lines that holds the first `bytes` bytes of object `i`, from line number `from` on.
    fn each_run(&mut self, i: u32, bytes: u64, from: u64, mut f: impl FnMut(LineAddr, u32)) {
        let start = u64::from(i) * self.size;
        let (mut line, end) = (start / LINE + from, (start + bytes).div_ceil(LINE));
        let mut run = (LineAddr(0), 0);
        while line < end {
            let at = self.pages.line(line);
            if run.1 > 0 && at != run.0 + u64::from(run.1) {
                f(run.0, run.1);
                run.1 = 0;
            }
            run = if run.1 == 0 { (at, 1) } else { (run.0, run.1 + 1) };
            line += 1;
        }
        f(run.0, run.1);
    }
}

/// Memory of buffers that are reused in turn, with the position of the next bytes.
#[derive(Clone)]
struct BufferRing {
    base: LineAddr,
    lines: u64,
    at: u64,
}

impl BufferRing {
    fn take(&mut self, lines: u64) -> LineAddr {
        if self.at + lines > self.lines {
            self.at = 0;
        }
        self.at += lines;
        self.base + self.at - lines
    }
}

#[derive(Clone)]
struct RedisServer {
    buckets: Slab,
    entries: Slab,
    keys: Slab,
    objects: Slab,
    values: Slab,
    /// User-space buffers from which a connection sends and into which it receives, one per connection.
    buffers: Vec<BufferRing>,
    socket: BufferRing,
    /// Number of queries that remain in the connection's turn.
    left: u32,
    connection: usize,
    /// Object and string that the last SET freed, and which the allocator reuses first.
    freed: u32,
    mmu: Option<Mmu>,
    /// Location of each key's object and string. Only SETs move them.
    slots: Vec<u32>,
}

/// Redis servers, one on each core.
#[derive(Clone)]
pub struct Redis {
    servers: Vec<RedisServer>,
    index: Arc<RedisIndex>,
    spec: RedisSpec,
    value_lines: u64,
}

impl Application for Redis {
    type Spec = RedisSpec;
    const WORK: WorkSource = WorkSource::Own;
    const WARMS_BY_STORES: bool = true;

    fn check(s: &RedisSpec, _cores: u32) -> Result<(), String> {
        s.check()
    }

    fn build(s: &RedisSpec, _packet: u32, context: AppBuildContext) -> Result<Redis, String> {
        s.check()?;
        let map = context.map;
        let value_lines = (s.value.0 + STRING).div_ceil(LINE);
        let batch = u64::from(s.pipeline) * value_lines;
        let mut servers = Vec::new();
        for &core in context.cores {
            let mut rng = Rng::new(context.seed, "redis", core.0.into());
            let mut pages = 0;
            let mut slab = |objects: u64, size: u64| {
                let lines = (objects * size).div_ceil(LINE);
                let first = pages;
                pages += s.contiguous.whole(lines, PAGE_LINES) / PAGE_LINES;
                let buffer = (lines, s.contiguous, rng.below(u64::MAX));
                Slab { pages: map.add_pieces(buffer, Sharing::of_thread(core), context.tenant), size, first }
            };
            let buckets = slab(s.keys.next_power_of_two(), BUCKET);
            let entries = slab(s.keys, ENTRY);
            let keys = slab(s.keys, KEY);
            let objects = slab(s.keys + 1, OBJECT);
            let values = slab(s.keys + 1, size_class(s.value.0 + STRING));
            let mut region = |lines: u64| {
                let r = map.add(lines, RegionKind::App, Sharing::of_thread(core), context.tenant);
                map.get(r).base
            };
            let buffers = (0..s.connections).map(|_| BufferRing { base: region(batch), lines: batch, at: 0 }).collect();
            let lines = s.socket.0 / LINE;
            let socket = BufferRing { base: region(lines), lines, at: 0 };
            let mmu = context.stlb.map(|t| Mmu::new(t, pages, core, context.tenant, map, &mut rng)).transpose()?;
            servers.push(RedisServer {
                mmu,
                buckets,
                entries,
                keys,
                objects,
                values,
                buffers,
                socket,
                left: rng.below(s.pipeline.into()).to_u32(),
                connection: 0,
                freed: s.keys.to_u32(),
                slots: if s.command == RedisCommand::Set { (0..s.keys.to_u32()).collect() } else { Vec::new() },
            });
        }
        Ok(Redis { servers, index: Arc::new(RedisIndex::new(s.keys)), spec: s.clone(), value_lines })
    }

    /// Appends the stores that some queries make to the heap.
    fn stores(&mut self, core: usize, rng: &mut Rng, p: &mut Program) {
        let s = &mut self.servers[core];
        for _ in 0..self.spec.pipeline {
            let key = rng.below(self.spec.keys).to_u32();
            match self.spec.command {
                RedisCommand::Get => p.push(Op::Store { line: s.objects.line(key), lines: 1 }),
                RedisCommand::Set => s.set(key, self.spec.value.0, self.value_lines, p),
            }
        }
    }

    /// Appends the operations of the next query, and of the change of connections when a turn ends; returns one query.
    fn free_run(&mut self, core: usize, rng: &mut Rng, p: &mut Program) -> Option<u32> {
        let s = &mut self.servers[core];
        if s.left == 0 {
            s.turn(&self.spec, self.value_lines, p);
        }
        s.left -= 1;
        let key = rng.below(self.spec.keys).to_u32();
        p.compute(self.spec.query_instructions / 2);
        s.find(&self.index, key, p);
        match self.spec.command {
            RedisCommand::Get => s.get(key, self.spec.value.0, self.value_lines, p),
            RedisCommand::Set => s.set(key, self.spec.value.0, self.value_lines, p),
        }
        p.compute(self.spec.query_instructions.div_ceil(2));
        Some(1)
    }
}

/// Line of the page table that an access to `page` must wait for, and the additional cycles of the page walk.
fn walk(mmu: &mut Option<Mmu>, page: u64) -> Option<(LineAddr, u16)> {
    mmu.as_mut().and_then(|m| m.walk(page).map(|line| (line, m.walk)))
}

/// Appends a load of object `i`, whose address the previous load gives.
fn chase(mmu: &mut Option<Mmu>, slab: &mut Slab, i: u32, p: &mut Program) {
    let mut delay = 0;
    if let Some((line, cycles)) = walk(mmu, slab.page(i)) {
        p.push(Op::Chase { line, delay: 0 });
        delay = cycles;
    }
    p.push(Op::Chase { line: slab.line(i), delay });
}

impl RedisServer {
    /// Ends a connection's turn and begins the turn of the next connection: the kernel copies the values that SETs
    /// receive and that GETs return.
    fn turn(&mut self, spec: &RedisSpec, value_lines: u64, p: &mut Program) {
        let copy = |p: &mut Program, from, to| {
            let lines = value_lines.to_u32();
            p.push(Op::Copy { from, to, lines, dependent: false, behind: false });
        };
        p.compute(spec.turn_instructions / 2);
        if spec.command == RedisCommand::Get {
            for _ in 0..spec.pipeline {
                let from = self.buffers[self.connection].take(value_lines);
                copy(p, from, self.socket.take(value_lines));
            }
        }
        self.connection = (self.connection + 1) % self.buffers.len();
        if spec.command == RedisCommand::Set {
            for _ in 0..spec.pipeline {
                let to = self.buffers[self.connection].take(value_lines);
                copy(p, self.socket.take(value_lines), to);
            }
        }
        p.compute(spec.turn_instructions.div_ceil(2));
        self.left = spec.pipeline;
    }

    /// Walks the bucket of a key. The core compares the entries before the key's own entry, which were inserted later,
    /// and its prediction fails at each of them; the comparison of the key's own entry is not on the critical path.
    fn find(&mut self, index: &RedisIndex, key: u32, p: &mut Program) {
        let bucket = index.bucket(key);
        let line = self.buckets.line(bucket.to_u32());
        match walk(&mut self.mmu, self.buckets.page(bucket.to_u32())) {
            Some((entry, cycles)) => {
                p.push(Op::Anchor { line: entry });
                p.push(Op::Chase { line, delay: cycles });
            }
            None => p.push(Op::Anchor { line }),
        }
        for at in index.before(bucket, key) {
            chase(&mut self.mmu, &mut self.entries, at, p);
            chase(&mut self.mmu, &mut self.keys, at, p);
            p.push(Op::Chase { line: self.entries.line(at), delay: REDIRECT });
        }
        chase(&mut self.mmu, &mut self.entries, key, p);
        if let Some((line, _)) = walk(&mut self.mmu, self.keys.page(key)) {
            p.push(Op::DependentLoad { line, lines: 1 });
        }
        p.push(Op::DependentLoad { line: self.keys.line(key), lines: 1 });
    }

    /// Serves a GET: updates the object's time of last use, and copies its string to the reply.
    fn get(&mut self, key: u32, bytes: u64, value_lines: u64, p: &mut Program) {
        chase(&mut self.mmu, &mut self.objects, key, p);
        p.push(Op::DependentStore { line: self.objects.line(key), lines: 1 });
        chase(&mut self.mmu, &mut self.values, key, p);
        self.second_page(key, bytes, p);
        self.values.each_run(key, bytes + STRING, 1, |line, lines| p.push(Op::DependentLoad { line, lines }));
        let line = self.buffers[self.connection].take(value_lines);
        p.push(Op::Store { line, lines: value_lines.to_u32() });
    }

    /// Reads the page table for strings that extend into another page, which needs a translation as well.
    fn second_page(&mut self, i: u32, bytes: u64, p: &mut Program) {
        let end = (u64::from(i) * self.values.size + bytes + STRING - 1) / PAGE.0;
        for page in self.values.page(i) + 1..=self.values.first + end {
            if let Some((line, _)) = walk(&mut self.mmu, page) {
                p.push(Op::DependentLoad { line, lines: 1 });
            }
        }
    }

    /// Serves a SET: writes a new object and string in the place that was freed last, and frees the old object and
    /// string.
    fn set(&mut self, key: u32, bytes: u64, value_lines: u64, p: &mut Program) {
        let new = std::mem::replace(&mut self.freed, self.slots[key.to_usize()]);
        let old = std::mem::replace(&mut self.slots[key.to_usize()], new);
        chase(&mut self.mmu, &mut self.objects, old, p);
        p.push(Op::DependentStore { line: self.objects.line(old), lines: 1 });
        chase(&mut self.mmu, &mut self.values, old, p); // the header contains the object's size
        self.second_page(new, bytes, p);
        let line = self.buffers[self.connection].take(value_lines);
        p.push(Op::Load { line, lines: value_lines.to_u32() });
        self.values.each_run(new, bytes + STRING, 0, |line, lines| p.push(Op::Store { line, lines }));
        p.push(Op::Store { line: self.objects.line(new), lines: 1 });
        p.push(Op::Store { line: self.entries.line(key), lines: 1 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{TenantId, ThreadId};
    use crate::memory::region::AddressMap;

    fn redis(command: &str, keys: u64, map: &mut AddressMap) -> Redis {
        let text = format!("command = \"{command}\"\nkeys = {keys}\nvalue = \"1 KiB\"");
        let spec: RedisSpec = toml::from_str(&text).unwrap();
        Redis::build(&spec, 0, AppBuildContext::new(map, TenantId(0), &[ThreadId(0)], 1)).unwrap()
    }

    #[test]
    fn size_classes_are_those_of_jemalloc() {
        let classes = [(17, 32), (129, 160), (1030, 1280), (1281, 1536), (2049, 2560)];
        for (bytes, class) in classes {
            assert_eq!(size_class(bytes), class, "{bytes} bytes");
        }
    }

    #[test]
    fn every_key_is_found_in_its_bucket() {
        let x = RedisIndex::new(3000);
        for key in 0..3000 {
            let bucket = x.bucket(key);
            let last = x.before(bucket, key).last().map_or(x.heads[bucket as usize], |k| x.next[k as usize]);
            assert_eq!(last.map(RedisKey::index), Some(key as usize), "key {key} is lost");
        }
    }

    /// Chained hashing with load factor a: a successful search visits 1 + a / 2 entries (Knuth, vol. 3, 6.4). Each
    /// entry but the last costs a comparison and a redirected branch.
    #[test]
    fn a_get_touches_the_lines_that_its_objects_take() {
        let keys = 1_000_000;
        let mut r = redis("get", keys, &mut AddressMap::default());
        let (mut rng, n) = (Rng::new(1, "test", 0), 4000);
        let (mut chased, mut values, mut stored) = (0, 0, 0);
        for _ in 0..n {
            let mut p = Program::default();
            r.servers[0].left = 8; // no end of a turn
            r.free_run(0, &mut rng, &mut p);
            for op in &p.ops {
                match op {
                    Op::Anchor { .. } | Op::Chase { .. } => chased += 1,
                    Op::DependentLoad { lines, .. } => values += lines,
                    Op::Store { lines, .. } => stored += lines,
                    _ => {}
                }
            }
        }
        let mean = |x: u32| f64::from(x) / f64::from(n);
        let passed = keys as f64 / (1 << 20) as f64 / 2.0;
        // bucket, own entry, object, string; three more for each entry passed
        assert!((mean(chased) - (4.0 + 3.0 * passed)).abs() < 0.15, "{}", mean(chased));
        // 1030 bytes at a multiple of 256 take 17 lines; the first line is chased, and the line of the key is added
        assert!((mean(values) - 17.0).abs() < 0.01, "{}", mean(values));
        assert_eq!(mean(stored), 17.0);
    }

    /// Strings of 1030 bytes begin every 1280 bytes: the first string lies in one page, the fourth (3840 to 4869) in
    /// two.
    #[test]
    fn a_string_in_two_pages_takes_two_walks() {
        let text = "keys = 64\nvalue = \"1 KiB\"\ncontiguous = \"1 MiB\"";
        let spec: RedisSpec = toml::from_str(text).unwrap();
        let stlb = crate::core::spec::TlbSpec { entries: 1, ways: 1, walk_cycles: 20 };
        let mut map = AddressMap::default();
        let context =
            AppBuildContext { stlb: Some(&stlb), ..AppBuildContext::new(&mut map, TenantId(0), &[ThreadId(0)], 1) };
        let mut r = Redis::build(&spec, 0, context).unwrap();
        let mut ops = |key| {
            let mut p = Program::default();
            r.servers[0].get(key, 1024, 17, &mut p);
            p.ops.len()
        };
        assert_eq!(ops(3), ops(0) + 1);
    }

    #[test]
    fn a_set_writes_where_the_one_before_freed() {
        let mut r = redis("set", 64, &mut AddressMap::default());
        let s = &mut r.servers[0];
        let first_string = s.values.line(5);
        let mut written = Vec::new();
        for key in [5, 9, 7] {
            let mut p = Program::default();
            s.set(key, 1024, 17, &mut p);
            written.push(p.ops.iter().find_map(|o| if let Op::Store { line, .. } = o { Some(*line) } else { None }));
        }
        assert_eq!(written[1], Some(first_string));
        let mut slots = s.slots.clone();
        slots.push(s.freed);
        slots.sort_unstable();
        assert_eq!(slots, (0..65).collect::<Vec<u32>>(), "objects are neither lost nor shared");
    }
}
