//! Key-value server with objects of many sizes ("CC-NIC", section 5.7: CliqueMap's production sizes, DPDK's
//! `rte_hash`).
//!
//! ```text
//!   key --hash--> bucket of 8 signatures --> entry with pointer and key --> header, data of the object
//!                 the other one, when it is there                           GET: sent from here, SET: copied to here
//! ```
//!
//! All cores share index and objects. `index` gives the location of a key. The header of an object holds its length
//! and the number of its users, as in DPDK's external buffers: the reply to a GET is a user until it has been sent.

use super::{lines, AppBuildContext, Application, Content, ServeOutcome};
use crate::core::{Op, Program};
use crate::device::nic::DATA_ROOM;
use crate::kernel::rng::mix;
use crate::kernel::units::Size;
use crate::kernel::{Int, LineAddr, RandomStream, Real};
use crate::memory::region::{RegionKind, Sharing};
use crate::memory::{LINE, LINE_U32};
use crate::traffic::zipf::{step, Zipf};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

mod index;

use index::CuckooIndex;

/// Method by which GETs are looked up in the index.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LookupMode {
    /// Each GET is looked up separately (`rte_hash_lookup_data`).
    #[default]
    Single,
    /// All GETs of a burst are looked up together (`rte_hash_lookup_bulk_data`): both buckets of each key are fetched,
    /// then the entries, and then keys are compared.
    Bulk,
}

/// Parameters of the key-value server CliqueMap.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CliqueMapSpec {
    /// Number of objects, each with a key.
    pub objects: u64,
    /// Fraction of requests that are GETs.
    pub get_fraction: f64,
    /// Skew of the keys' popularity: Zipf exponent; 0 is uniform.
    pub zipf: f64,
    /// Fraction of objects below 100 B (0.001 to 0.999). Sizes are log-normal.
    pub below_100: f64,
    /// Size that 0.01 % of the objects would exceed; larger objects are cut to this size. The default is 9536 B, which
    /// is 9600 B with headers.
    #[serde(default = "largest")]
    pub largest: Size,
    /// Bytes of a frame in addition to the object. The default is 64.
    #[serde(default = "headers")]
    pub headers: u32,
    /// Method by which GETs are looked up in the index: "single" or "bulk". The default, "single", is assumed: the
    /// paper says only that the index is DPDK's.
    #[serde(default)]
    pub lookup: LookupMode,
    /// Instructions of a GET in addition to those of the driver and for mbufs: the received header, the look-up, the
    /// reply's header and its second segment. The default is 309, or 319 with `lookup = "bulk"`; both values were
    /// measured with callgrind in a server on DPDK 22.11.
    #[serde(default)]
    pub get_instructions: Option<u32>,
    /// Instructions of a SET in addition to those of the driver, for mbufs and for copying the object: the new object,
    /// two look-ups, locks, and the replaced object. The default is 582, or 597 with `lookup = "bulk"`, whose loop
    /// skips SETs; both values were measured with callgrind in a server on DPDK 22.11.
    #[serde(default)]
    pub set_instructions: Option<u32>,
    /// Whether the server counts an object's users: one atomic operation when a reply refers to the object, and another
    /// one when the reply has been sent. When false, a SET may replace an object while it is being sent. The default is
    /// true.
    #[serde(default = "counted")]
    pub counted: bool,
}
fn largest() -> Size {
    Size(9536) // 9600 B with headers
}
fn headers() -> u32 {
    64
}
fn counted() -> bool {
    true
}

/// Standard normal quantile of the objects that are cut; `SMALL` is the size in bytes of the other quantile.
const CUT: f64 = 3.719;
const SMALL: f64 = 100.0;
/// Bytes of an entry: a pointer and a key of 16 bytes, at a multiple of 16 (`rte_hash_key`, KEY_ALIGNMENT).
const ENTRY: u64 = 32;
/// Lines of an object before its data: `rte_mbuf_ext_shared_info` of 24 bytes, and the length.
const HEADER: u64 = 1;
/// Number of locks of SETs, one line each: SETs of one key execute one after the other.
const LOCKS: u64 = 1024;
const GET: u8 = 0;
const SET: u8 = 1;

impl CliqueMapSpec {
    fn get_instructions(&self) -> u32 {
        self.get_instructions.unwrap_or(match self.lookup {
            LookupMode::Single => 309,
            LookupMode::Bulk => 319,
        })
    }

    fn set_instructions(&self) -> u32 {
        self.set_instructions.unwrap_or(match self.lookup {
            LookupMode::Single => 582,
            LookupMode::Bulk => 597,
        })
    }

    /// Mean and standard deviation of the logarithm of sizes, from the two quantiles.
    fn log_normal(&self) -> (f64, f64) {
        let z = normal_quantile(self.below_100);
        let sigma = (self.largest.0.to_f64() / SMALL).ln() / (CUT - z);
        (SMALL.ln() - z * sigma, sigma)
    }
}

/// Standard normal quantile, to 4.5e-4 (Abramowitz and Stegun, 26.2.23).
fn normal_quantile(p: f64) -> f64 {
    let t = (-2.0 * p.min(1.0 - p).ln()).sqrt();
    let above =
        t - (2.515_517 + t * (0.802_853 + t * 0.010_328)) / (1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308)));
    if p < 0.5 {
        -above
    } else {
        above
    }
}

/// Objects and index, which no core modifies.
#[derive(Debug)]
struct ObjectTable {
    /// First line of each object relative to the first object, and its bytes.
    objects: Vec<(u32, u16)>,
    index: CuckooIndex,
    /// Number of entries from a key to the next popular one.
    step: u64,
}

/// Key-value server with objects of many sizes.
#[derive(Clone)]
pub struct CliqueMap {
    spec: CliqueMapSpec,
    zipf: Zipf,
    table: Arc<ObjectTable>,
    /// First line of the buckets, followed by those of the entries, the objects (`base`) and the locks.
    buckets: LineAddr,
    entries: LineAddr,
    base: LineAddr,
    locks: LineAddr,
}

impl CliqueMap {
    /// Bytes of a key's object.
    pub fn bytes(&self, key: u64) -> u32 {
        self.table.objects[key.to_usize()].1.into()
    }

    /// Line of a key's entry. The table's first entry belongs to no key.
    fn entry(&self, key: u64) -> LineAddr {
        let at = 1 + key * self.table.step % self.spec.objects;
        self.entries + at * ENTRY / LINE
    }

    /// Appends the look-up of `key`, whose hash takes 20 cycles.
    fn find(&self, key: u64, p: &mut Program) {
        let index = &self.table.index;
        p.push(Op::Chase { line: self.buckets + u64::from(index.first(key)), delay: 20 });
        if index.is_second(key) {
            p.push(Op::Chase { line: self.buckets + u64::from(index.second(key)), delay: 4 });
        }
        p.push(Op::Chase { line: self.entry(key), delay: 4 }); // key comparison
    }
}

impl Application for CliqueMap {
    type Spec = CliqueMapSpec;

    fn check(s: &CliqueMapSpec, _cores: u32) -> Result<(), String> {
        if !(1..=1 << 24).contains(&s.objects) {
            return Err(format!("objects = {} is not within 1 to {}", s.objects, 1 << 24));
        }
        for (key, v) in [("get_fraction", s.get_fraction), ("below_100", s.below_100)] {
            if !(0.0..=1.0).contains(&v) {
                return Err(format!("{key} = {v} is not within 0 to 1"));
            }
        }
        if !(0.001..=0.999).contains(&s.below_100) {
            return Err(format!("below_100 = {} is not within 0.001 to 0.999", s.below_100));
        }
        if !(0.0..10.0).contains(&s.zipf) {
            return Err(format!("zipf = {} is not within 0 to 10", s.zipf));
        }
        if !(128..=15_360).contains(&s.largest.0) {
            return Err(format!("largest = \"{}\" is not within 128 B to 15 KiB", s.largest));
        }
        if !(64..=256).contains(&s.headers) {
            return Err(format!("headers = {} is not within 64 to 256 bytes", s.headers));
        }
        Ok(())
    }

    /// Largest frame that arrives, which fits an mbuf.
    fn largest(s: &CliqueMapSpec, _drawn: Option<Size>) -> Option<Size> {
        Some(Size((s.largest.0 + u64::from(s.headers)).min(DATA_ROOM)))
    }

    fn build(s: &CliqueMapSpec, _packet: u32, context: AppBuildContext) -> Result<CliqueMap, String> {
        let (mean, sigma) = s.log_normal();
        let mut rng = RandomStream::new(context.seed, "object sizes", 0);
        let mut at = 0u64;
        let mut size = || {
            // The Box-Muller transform.
            let (u, v) = (1.0 - rng.unit(), rng.unit());
            let z = (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos();
            let bytes = (mean + sigma * z).exp().clamp(1.0, s.largest.0.to_f64()).whole();
            let first = at;
            at += HEADER + bytes.div_ceil(LINE);
            (first.to_u32(), bytes.to_u16())
        };
        let objects: Vec<_> = (0..s.objects).map(|_| size()).collect();
        let index = CuckooIndex::of(s.objects);
        let mut region = |lines: u64| {
            let r = context.map.add(lines, RegionKind::App, Sharing::Shared, context.tenant);
            context.map.get(r).base
        };
        let entries = ((1 + s.objects) * ENTRY).div_ceil(LINE);
        let (buckets, entries, base, locks) = (region(index.buckets()), region(entries), region(at), region(LOCKS + 1));
        Ok(CliqueMap {
            spec: s.clone(),
            zipf: Zipf::new(s.objects, s.zipf),
            table: Arc::new(ObjectTable { objects, index, step: step(s.objects) }),
            buckets,
            entries,
            base,
            locks,
        })
    }

    #[inline]
    fn content(&mut self, _core: usize, rng: &mut RandomStream) -> Content {
        // Popularity does not depend on size: sizes are drawn in the order of the keys' numbers.
        let key = self.zipf.draw(rng);
        let get = rng.unit() < self.spec.get_fraction;
        let carried = if get { 0 } else { self.bytes(key) };
        let frame = (self.spec.headers + carried).min(DATA_ROOM.to_u32());
        Content {
            kind: if get { GET } else { SET },
            key,
            lines: lines(frame.into()),
            value_lines: lines(self.bytes(key).into()),
            wire_bytes: frame,
            ..Content::default()
        }
    }

    /// Appends the bulk look-up of a burst, which goes through all keys three times and takes half of the instructions
    /// of a GET.
    fn begin_burst(&mut self, _core: usize, packets: &mut dyn Iterator<Item = (Content, LineAddr)>, p: &mut Program) {
        if self.spec.lookup == LookupMode::Single {
            return;
        }
        let keys: Vec<(u64, LineAddr)> = packets.filter(|(c, _)| c.kind == GET).map(|(c, rx)| (c.key, rx)).collect();
        let (index, pass) = (&self.table.index, self.spec.get_instructions() / 2 / 3);
        let buckets = |key: u64| [index.first(key), index.second(key)].map(|b| self.buckets + u64::from(b));
        for &(key, rx) in &keys {
            p.push(Op::Anchor { line: rx });
            p.compute(pass);
            buckets(key).into_iter().for_each(|line| p.push(Op::DependentPrefetch { line }));
        }
        for &(key, _) in &keys {
            let [first, second] = buckets(key);
            let (there, other) = if index.is_second(key) { (second, first) } else { (first, second) };
            p.compute(pass);
            p.push(Op::Load { line: other, lines: 1 });
            p.push(Op::Anchor { line: there });
            p.push(Op::DependentPrefetch { line: self.entry(key) });
        }
        for &(key, _) in &keys {
            p.compute(pass);
            p.push(Op::Load { line: self.entry(key), lines: 1 });
        }
    }

    #[inline]
    fn serve(&mut self, _core: usize, c: &Content, rx: LineAddr, tx: LineAddr, p: &mut Program) -> (ServeOutcome, u16) {
        let (first, bytes) = self.table.objects[c.key.to_usize()];
        let header = self.base + u64::from(first);
        let object = header + HEADER;
        p.push(Op::Anchor { line: rx });
        if c.kind == GET {
            let work = self.spec.get_instructions();
            match self.spec.lookup {
                LookupMode::Single => {
                    p.compute(work / 2);
                    self.find(c.key, p);
                }
                LookupMode::Bulk => p.push(Op::Anchor { line: self.entry(c.key) }),
            }
            p.push(Op::Chase { line: header, delay: 4 }); // its length
            if self.spec.counted {
                p.push(Op::Atomic { line: header });
            }
            p.compute(work - work / 2);
            p.push(Op::Store { line: tx, lines: 1 });
            let users = self.spec.counted.then_some(header);
            return (ServeOutcome::Gather { object, bytes: bytes.into(), users }, 1);
        }
        // A new object takes the place of the old one in this model, and is complete before the index refers to it.
        let work = self.spec.set_instructions();
        p.compute(work / 2);
        p.push(Op::Store { line: header, lines: 1 });
        let n = u32::from(c.lines).min(u32::from(bytes).div_ceil(LINE_U32));
        p.push(Op::Copy { from: rx, to: object, lines: n, dependent: false, behind: false });
        let (own, all) = (self.locks + mix(c.key) % LOCKS, self.locks + LOCKS);
        p.push(Op::Atomic { line: own });
        p.push(Op::Anchor { line: rx }); // the key
        self.find(c.key, p);
        p.push(Op::Atomic { line: all });
        p.push(Op::Store { line: self.entry(c.key), lines: 1 });
        p.push(Op::Atomic { line: all });
        p.push(Op::Atomic { line: own });
        if self.spec.counted {
            p.push(Op::Atomic { line: header });
        }
        p.compute(work - work / 2);
        p.push(Op::Store { line: tx, lines: 1 });
        (ServeOutcome::Reply, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{TenantId, ThreadId};
    use crate::memory::region::AddressMap;

    fn map(below_100: f64) -> CliqueMap {
        let text = format!("objects = 200000\nget_fraction = 0.95\nzipf = 0.75\nbelow_100 = {below_100}");
        let spec: CliqueMapSpec = toml::from_str(&text).unwrap();
        let mut map = AddressMap::default();
        let context = AppBuildContext::new(&mut map, TenantId(0), &[ThreadId(0), ThreadId(1)], 1);
        CliqueMap::build(&spec, 0, context).unwrap()
    }

    /// The two quantiles that the paper gives: 61 % of Ads' objects and 13 % of Geo's are below 100 B, and 0.01 % are
    /// cut.
    #[test]
    fn sizes_have_the_quantiles_that_are_given() {
        for share in [0.61, 0.13] {
            let m = map(share);
            let n = m.spec.objects as f64;
            let count = |f: &dyn Fn(u32) -> bool| (0..m.spec.objects).filter(|k| f(m.bytes(*k))).count() as f64;
            let below = count(&|b| b < 100) / n;
            assert!((below - share).abs() < 0.005, "{below}, not {share}"); // four standard deviations
            let cut = count(&|b| u64::from(b) == m.spec.largest.0);
            assert!((4.0..=40.0).contains(&cut), "{cut} of 200000 objects, not about 20");
        }
    }

    /// Every object begins behind the end of the previous one: first a line with DPDK's shared information and the
    /// length, then the data.
    #[test]
    fn objects_do_not_overlap() {
        let m = map(0.61);
        for pair in m.table.objects.windows(2) {
            assert_eq!(u64::from(pair[1].0), u64::from(pair[0].0) + 1 + u64::from(pair[0].1).div_ceil(64));
        }
    }

    /// Serves a request for a key of ten lines; returns its operations, its answer and the line on which the object
    /// begins.
    fn serve(m: &mut CliqueMap, kind: u8) -> (Vec<Op>, ServeOutcome, LineAddr) {
        let key = (0..m.spec.objects).find(|k| m.bytes(*k) == 640).expect("some object has ten lines");
        let mut p = Program::default();
        let c = Content { kind, key, lines: if kind == GET { 1 } else { 11 }, ..Content::default() };
        let (answer, lines) = m.serve(0, &c, LineAddr(1 << 40), LineAddr(1 << 41), &mut p);
        assert_eq!(lines, 1);
        (p.ops, answer, m.base + u64::from(m.table.objects[key as usize].0))
    }

    fn atomics(ops: &[Op]) -> Vec<LineAddr> {
        let line = |op: &Op| if let Op::Atomic { line } = op { Some(*line) } else { None };
        ops.iter().filter_map(line).collect()
    }

    /// A GET sends the object from its place in memory and accesses none of its data; a SET writes all of its data.
    #[test]
    fn a_get_copies_nothing_and_a_set_copies_the_object() {
        let mut m = map(0.13);
        let (ops, answer, first) = serve(&mut m, GET);
        assert_eq!(answer, ServeOutcome::Gather { object: first + 1, bytes: 640, users: Some(first) });
        assert!(ops.iter().all(|o| !matches!(o, Op::Copy { .. })));
        let (ops, answer, first) = serve(&mut m, SET);
        assert_eq!(answer, ServeOutcome::Reply);
        assert!(ops.contains(&Op::Copy {
            from: LineAddr(1 << 40),
            to: first + 1,
            lines: 10,
            dependent: false,
            behind: false
        }));
    }

    /// A GET makes one `rte_mbuf_ext_refcnt_update` for the segment that is attached. A SET takes and releases the lock
    /// of its key, which lies with 1023 other locks before the index's own (RTE_HASH_EXTRA_FLAGS_MULTI_WRITER_ADD), and
    /// releases the replaced object.
    #[test]
    fn a_get_is_one_atomic_operation_before_it_is_sent_and_a_set_is_five() {
        let mut m = map(0.13);
        let (ops, _, first) = serve(&mut m, GET);
        assert_eq!(atomics(&ops), [first]);
        let (ops, _, first) = serve(&mut m, SET);
        let [own, taken, released, again, object] = atomics(&ops)[..] else { panic!("not five: {ops:?}") };
        assert_eq!((taken, released, again, object), (m.locks + 1024, m.locks + 1024, own, first));
        assert!((m.locks..m.locks + 1024).contains(&own));
        m.spec.counted = false;
        let (ops, answer, _) = serve(&mut m, GET);
        assert!(atomics(&ops).is_empty() && matches!(answer, ServeOutcome::Gather { users: None, .. }));
        assert_eq!(atomics(&serve(&mut m, SET).0).len(), 4);
    }

    /// A GET waits for its bucket, its entry and its object, one after the other. Entries are 32 bytes (a pointer, a
    /// key of 16, KEY_ALIGNMENT), so that two entries share a line, and the first entry belongs to no key.
    #[test]
    fn a_get_reads_a_bucket_an_entry_and_a_header() {
        let mut m = map(0.13);
        let (ops, ..) = serve(&mut m, GET);
        let chased = |op: &Op| if let Op::Chase { line, .. } = op { Some(*line) } else { None };
        let lines: Vec<LineAddr> = ops.iter().filter_map(chased).collect();
        let key = (0..m.spec.objects).find(|k| m.bytes(*k) == 640).expect("some object has ten lines");
        assert_eq!(lines.len(), if m.table.index.is_second(key) { 4 } else { 3 });
        assert_eq!(lines[0], m.buckets + u64::from(m.table.index.first(key)));
        let mut entries = vec![0; 100_001];
        (0..m.spec.objects).for_each(|k| entries[(m.entry(k) - m.entries) as usize] += 1);
        assert_eq!((entries[0], entries[100_000]), (1, 1), "200000 keys behind one entry");
        assert!(entries[1..100_000].iter().all(|n| *n == 2));
        assert_eq!(lines[lines.len() - 2], m.entry(key));
    }

    /// `rte_hash_lookup_bulk_data` of DPDK 22.11 (`__bulk_lookup_prefetching_loop`, `__bulk_lookup_lf`) works in three
    /// passes: both buckets of each key are prefetched; both are compared with the signature and the entry is
    /// prefetched, key after key; then keys are compared. SETs are looked up separately. A GET takes 319 instructions
    /// there.
    #[test]
    fn a_look_up_in_bulk_fetches_all_buckets_then_all_entries_and_then_compares_keys() {
        let mut m = map(0.13);
        m.spec.lookup = LookupMode::Bulk;
        let content = |key, kind| Content { kind, key, lines: 1, ..Content::default() };
        let second =
            (0..m.spec.objects).find(|k| m.table.index.is_second(*k)).expect("some key lies in its second bucket");
        let keys = [7, second, 4711];
        assert!(![7, 4711].iter().any(|k| m.table.index.is_second(*k)));
        let burst = [content(7, GET), content(second, GET), content(5, SET), content(4711, GET)];
        let mut p = Program::default();
        m.begin_burst(0, &mut burst.iter().zip(1 << 40..).map(|(c, rx)| (*c, LineAddr(rx))), &mut p);
        let (at, index) = (m.buckets, &m.table.index);
        let pair = |k: u64| [index.first(k), index.second(k)].map(|b| at + u64::from(b));
        let (mut fetched, mut read) = (Vec::new(), Vec::new());
        for op in &p.ops {
            match *op {
                Op::DependentPrefetch { line } => fetched.push((line, read.len())),
                Op::Load { line, lines: 1 } => read.push(line),
                Op::Anchor { line } if line < LineAddr(1 << 40) => read.push(line),
                _ => {}
            }
        }
        // Each line is listed with the number of lines that are read before it.
        let mut expected: Vec<_> = keys.iter().flat_map(|k| pair(*k)).map(|line| (line, 0)).collect();
        expected.extend(keys.iter().zip([2, 4, 6]).map(|(k, before)| (m.entry(*k), before)));
        assert_eq!(fetched, expected);
        for (pair_read, k) in read[..6].chunks(2).zip(keys) {
            let mut pair = pair(k);
            if k != second {
                pair.reverse(); // the last line leads to the entry
            }
            assert_eq!(pair_read, pair);
        }
        assert_eq!(read[6..], keys.map(|k| m.entry(k)));
        // A GET of the burst proceeds from its entry to the object.
        m.serve(0, &burst[0], LineAddr(1 << 40), LineAddr(1 << 41), &mut p);
        m.serve(0, &burst[1], LineAddr(1 << 40), LineAddr(1 << 41), &mut p);
        m.serve(0, &burst[3], LineAddr(1 << 40), LineAddr(1 << 41), &mut p);
        let chased = p.ops.iter().filter(|op| matches!(op, Op::Chase { .. })).count();
        assert_eq!(chased, 3, "a header each");
        let computed = |op: &Op| if let Op::Compute(n) = op { *n } else { 0 };
        assert_eq!(p.ops.iter().map(computed).sum::<u32>(), 3 * 319);
    }
}
