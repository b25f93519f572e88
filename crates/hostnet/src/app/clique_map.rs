//! Key-value server with objects of many sizes ("CC-NIC", section 5.7: CliqueMap's production sizes, DPDK's `rte_hash`).
//!
//! ```text
//!   key --hash--> bucket of 8 signatures --> entry with key and pointer --> object
//!                 the other one, when it is there                           GET: sent from here, SET: copied to here
//! ```
//!
//! All cores share index and objects. Where a key's signature is, is what its hash and those of the keys before it say.

use super::{lines, Answer, Application, Content, Site};
use crate::core::{Op, Program};
use crate::kernel::rng::mix;
use crate::kernel::units::Size;
use crate::kernel::Stream;
use crate::memory::region::{Kind, Sharing};
use crate::memory::LINE;
use crate::stack::mempool::DATA_ROOM;
use crate::traffic::zipf::Zipf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CliqueMapSpec {
    /// Objects, each with a key.
    pub objects: u64,
    /// Fraction of requests that are GETs.
    pub get_fraction: f64,
    /// Skew of the keys' popularity: zipf exponent; 0 is uniform.
    pub zipf: f64,
    /// Fraction of objects below 100 B. Sizes are log-normal.
    pub below_100: f64,
    /// The size that 0.01 % of objects would be above: those are cut to it.
    #[serde(default = "largest")]
    pub largest: Size,
    /// Bytes of a frame beside the object.
    #[serde(default = "headers")]
    pub headers: u32,
    /// Instructions per request besides loads and stores of lines.
    #[serde(default = "instructions")]
    pub instructions: u32,
}
fn largest() -> Size {
    Size(9536) // 9600 B with headers
}
fn headers() -> u32 {
    64
}
fn instructions() -> u32 {
    250
}

/// Standard normal quantile of the objects that are cut, and the size that the other quantile is of.
const CUT: f64 = 3.719;
const SMALL: f64 = 100.0;
/// Entries of a bucket, which is a line.
const SLOTS: u64 = 8;
const GET: u8 = 0;
const SET: u8 = 1;

impl CliqueMapSpec {
    /// Mean and standard deviation of the logarithm of sizes, by the two quantiles.
    fn log_normal(&self) -> (f64, f64) {
        let z = normal_quantile(self.below_100);
        let sigma = (self.largest.0 as f64 / SMALL).ln() / (CUT - z);
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

/// What no core changes.
#[derive(Debug)]
struct Table {
    /// First line of each object, from the first one's on, and its bytes.
    objects: Vec<(u32, u16)>,
    /// Keys that lie in their second bucket.
    second: Vec<bool>,
    buckets: u64,
}

impl Table {
    fn bucket(&self, key: u64, second: bool) -> u64 {
        let h = mix(key);
        let at = if second { mix(h) } else { h };
        at & (self.buckets - 1)
    }
}

#[derive(Clone)]
pub struct CliqueMap {
    spec: CliqueMapSpec,
    zipf: Zipf,
    table: Arc<Table>,
    /// First lines of index, entries and objects.
    index: u64,
    entries: u64,
    base: u64,
}

impl CliqueMap {
    /// Bytes of a key's object.
    pub fn bytes(&self, key: u64) -> u32 {
        self.table.objects[key as usize].1.into()
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

    /// A frame that comes fits an mbuf.
    fn largest(s: &CliqueMapSpec, _drawn: Option<Size>) -> Option<Size> {
        Some(Size((s.largest.0 + u64::from(s.headers)).min(DATA_ROOM)))
    }

    fn build(s: &CliqueMapSpec, _packet: u32, site: Site) -> Result<CliqueMap, String> {
        let (mean, sigma) = s.log_normal();
        let mut rng = Stream::new(site.seed, "object sizes", 0);
        let mut at = 0u64;
        let mut size = || {
            // Box-Muller.
            let (u, v) = (1.0 - rng.unit(), rng.unit());
            let z = (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos();
            let bytes = (mean + sigma * z).exp().clamp(1.0, s.largest.0 as f64) as u64;
            let first = at;
            at += bytes.div_ceil(LINE);
            (first as u32, bytes as u16)
        };
        let objects: Vec<_> = (0..s.objects).map(|_| size()).collect();
        // Twice as many places as keys, at least.
        let buckets = (2 * s.objects.div_ceil(SLOTS)).next_power_of_two();
        let mut table = Table { objects, second: Vec::new(), buckets };
        let mut full = vec![0u8; buckets as usize];
        for key in 0..s.objects {
            let second = u64::from(full[table.bucket(key, false) as usize]) >= SLOTS;
            full[table.bucket(key, second) as usize] += 1;
            table.second.push(second);
        }
        let mut region = |lines: u64| {
            let r = site.map.add(lines, Kind::App, Sharing::Shared, site.tenant);
            site.map.get(r).base
        };
        let (index, entries, base) = (region(buckets), region(s.objects), region(at.max(1)));
        Ok(CliqueMap {
            spec: s.clone(),
            zipf: Zipf::new(s.objects, s.zipf),
            table: Arc::new(table),
            index,
            entries,
            base,
        })
    }

    #[inline]
    fn content(&mut self, _core: usize, rng: &mut Stream) -> Content {
        // Popularity has nothing to do with sizes, which are drawn in the order of keys.
        let key = self.zipf.draw(rng);
        let get = rng.unit() < self.spec.get_fraction;
        let carried = if get { 0 } else { self.bytes(key) };
        let frame = (self.spec.headers + carried).min(DATA_ROOM as u32);
        Content {
            kind: if get { GET } else { SET },
            key,
            lines: lines(frame.into()),
            value_lines: lines(self.bytes(key).into()),
            wire_bytes: frame,
        }
    }

    #[inline]
    fn serve(&mut self, _core: usize, c: &Content, rx: u64, tx: u64, p: &mut Program) -> (Answer, u16) {
        let (first, bytes) = self.table.objects[c.key as usize];
        let object = self.base + u64::from(first);
        let work = self.spec.instructions;
        p.push(Op::Anchor { line: rx });
        p.compute(work / 2);
        p.push(Op::Chase { line: self.index + self.table.bucket(c.key, false), delay: 20 }); // after hashing the key
        if self.table.second[c.key as usize] {
            p.push(Op::Chase { line: self.index + self.table.bucket(c.key, true), delay: 4 });
        }
        p.push(Op::Chase { line: self.entries + c.key, delay: 4 }); // key comparison
        p.compute(work - work / 2);
        if c.kind == GET {
            p.push(Op::Store { line: tx, lines: 1 });
            return (Answer::Gather { object, bytes: bytes.into() }, 1);
        }
        let n = u32::from(c.lines).min(u32::from(bytes).div_ceil(LINE as u32));
        p.push(Op::Copy { from: rx, to: object, lines: n, dependent: true, behind: false });
        p.push(Op::Store { line: tx, lines: 1 });
        (Answer::Reply, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::region::AddressMap;

    fn map(below_100: f64) -> CliqueMap {
        let text = format!("objects = 200000\nget_fraction = 0.95\nzipf = 0.75\nbelow_100 = {below_100}");
        let spec: CliqueMapSpec = toml::from_str(&text).unwrap();
        let mut map = AddressMap::default();
        let site = Site { map: &mut map, tenant: 0, cores: &[0, 1], seed: 1, capture: None, stlb: None };
        CliqueMap::build(&spec, 0, site).unwrap()
    }

    /// The two quantiles that the paper gives: 61 % of Ads' objects and 13 % of Geo's are below 100 B, and 0.01 % are cut.
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

    /// Every object lies behind the one before it.
    #[test]
    fn objects_do_not_overlap() {
        let m = map(0.61);
        for pair in m.table.objects.windows(2) {
            assert_eq!(u64::from(pair[1].0), u64::from(pair[0].0) + u64::from(pair[0].1).div_ceil(LINE));
        }
    }

    /// A GET sends the object from where it lies and touches none of it; a SET writes all of it.
    #[test]
    fn a_get_copies_nothing_and_a_set_copies_the_object() {
        let mut m = map(0.13);
        let key = (0..m.spec.objects).find(|k| m.bytes(*k) == 640).expect("some object has ten lines");
        let (rx, tx) = (1 << 40, 1 << 41);
        let mut p = Program::default();
        let get = Content { kind: GET, key, lines: 1, ..Content::default() };
        let (answer, header) = m.serve(0, &get, rx, tx, &mut p);
        let object = m.base + u64::from(m.table.objects[key as usize].0);
        assert_eq!((answer, header), (Answer::Gather { object, bytes: 640 }, 1));
        assert!(p.ops.iter().all(|o| !matches!(o, Op::Copy { .. })));
        p.ops.clear();
        let set = Content { kind: SET, key, lines: 11, ..Content::default() };
        assert_eq!(m.serve(0, &set, rx, tx, &mut p), (Answer::Reply, 1));
        assert!(p.ops.contains(&Op::Copy { from: rx, to: object, lines: 10, dependent: true, behind: false }));
    }

    #[test]
    fn a_key_s_second_bucket_is_looked_at_only_when_its_first_was_full() {
        let m = map(0.61);
        let second = m.table.second.iter().filter(|s| **s).count() as f64 / m.spec.objects as f64;
        // Keys a bucket are Poisson with mean 200000 / 65536; those beyond the eighth: sum over n of (n - 8) P(n), of 3.05.
        let mean = 200_000.0 / 65_536.0_f64;
        let mut chance = (-mean).exp();
        let mut beyond = 0.0;
        for n in 1..40 {
            chance *= mean / f64::from(n);
            beyond += chance * f64::from((n - 8).max(0));
        }
        let expected = beyond / mean;
        assert!((second - expected).abs() < expected * 0.25 + 1e-4, "{second}, not {expected}");
    }
}
