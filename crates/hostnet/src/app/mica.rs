//! MICA key-value store: per-core partitions (EREW), each with a lossy bucket index and a circular log (Lim et al.,
//! NSDI 2014), as HERD serves it; Sweeper, section III and appendix.
//!
//! The index and the layout of the log are modelled exactly: keys are hashed, tags are compared, entries are displaced,
//! and the log wraps. Only the values are not stored.

use super::{lines, AppBuildContext, Application, Content, ServeOutcome};
use crate::core::{Op, Program};
use crate::kernel::hint::prefetch;
use crate::kernel::rng::mix;
use crate::kernel::units::Size;
use crate::kernel::{Int, LineAddr, RandomStream};
use crate::memory::region::{RegionKind, Sharing};
use crate::memory::LINE;
use crate::traffic::zipf::{step, Zipf};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;
use std::sync::Arc;

/// Effect of a SET of a key that the log holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Update {
    /// Overwrites the item in its place (MICA, section 4.3.1, when the new value is no longer than the old one).
    InPlace,
    /// Appends the item at the log's head, and updates the index (HERD's MICA).
    #[default]
    Append,
}

/// Kind of stores with which a SET copies the value into the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CopyKind {
    /// Ordinary stores.
    #[default]
    Cached,
    /// Non-temporal stores.
    Streaming,
}

/// Parameters of the MICA key-value store.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MicaSpec {
    /// Size of an item in the log, including header and key; also the size of a SET's packet. At least 64 B.
    pub item_size: Size,
    /// Fraction of requests that are GETs.
    pub get_fraction: f64,
    /// Number of key-value pairs loaded before the run, over all partitions.
    pub pairs: u64,
    /// Number of buckets of 8 entries, over all partitions.
    pub buckets: u64,
    /// Size of the log of each partition.
    pub log_size: Size,
    /// Skew of key popularity within a partition: Zipf exponent; 0 is uniform.
    pub zipf: f64,
    /// Effect of a SET of a known key: "append" (the default) or "in_place".
    #[serde(default)]
    pub update: Update,
    /// Kind of stores with which a SET writes the log: "cached" (the default) or "streaming".
    #[serde(default)]
    pub copy: CopyKind,
    /// Instructions per request in addition to loads and stores of lines. The default is 250.
    #[serde(default = "instructions")]
    pub instructions: u32,
}
fn instructions() -> u32 {
    250
}

impl MicaSpec {
    /// Checks that `cores` partitions can be made with these parameters.
    ///
    /// # Errors
    /// Returns one clause that names key and value.
    pub fn check(&self, cores: u32) -> Result<(), String> {
        let cores = u64::from(cores);
        let no_room = self.log_size.0 / LINE < u64::from(lines(self.item_size.0));
        if self.item_size.0 < SHORTEST {
            return Err(format!(
                "item_size = \"{}\" is below the {SHORTEST} bytes of the shortest packet, which a SET fills",
                self.item_size
            ));
        }
        if self.pairs < cores || self.buckets < cores || no_room {
            return Err(format!(
                "pairs = {}, buckets = {}, item_size = \"{}\" and log_size = \"{}\" leave a partition of {cores} \
                 without a pair, a bucket or room for an item",
                self.pairs, self.buckets, self.item_size, self.log_size
            ));
        }
        for (key, v) in [("pairs", self.pairs), ("buckets", self.buckets)] {
            if v > 1 << 28 {
                return Err(format!("{key} = {v} is more than the {} supported", 1 << 28));
            }
        }
        if self.log_size.0 > 1 << 40 {
            return Err(format!("log_size = \"{}\" is more than the 1024 GiB supported", self.log_size));
        }
        if !(0.0..=1.0).contains(&self.get_fraction) {
            return Err(format!("get_fraction = {} is not within 0 to 1", self.get_fraction));
        }
        if !(0.0..10.0).contains(&self.zipf) {
            return Err(format!("zipf = {} is not within 0 to 10", self.zipf));
        }
        Ok(())
    }
}

/// Shortest Ethernet frame in bytes, checksum included (IEEE 802.3, 3.2.7).
const SHORTEST: u64 = 64;
const GET: u8 = 0;
const SET: u8 = 1;
const SLOTS: usize = 8; // 8-byte entries in a 64-byte bucket

/// Entry of the index: a 16-bit tag over a 48-bit log position (in lines, never wrapping), so that entries overtaken by
/// the log's head are recognised. Positions begin at one log length, so that no entry is zero.
#[derive(Clone, Copy)]
struct LogEntry(NonZeroU64);

impl LogEntry {
    fn new(tag: u64, position: u64) -> LogEntry {
        LogEntry(NonZeroU64::new(tag | position).expect("positions begin behind zero"))
    }
    fn tag(self) -> u64 {
        self.0.get() & !POSITION
    }
    fn position(self) -> u64 {
        self.0.get() & POSITION
    }
}

/// Index and log of one core.
#[derive(Clone)]
struct Partition {
    buckets: Arc<Vec<[Option<LogEntry>; SLOTS]>>,
    head: u64,
    log_lines: u64,
    log_base: LineAddr,
    index_base: LineAddr,
    oldest: u8,
}

impl Partition {
    fn bucket(&self, key: u64) -> (usize, u64) {
        let h = mix(key);
        let b = ((h >> 32) * self.buckets.len().to_u64()) >> 32;
        (b.to_usize(), (h & 0xffff) << 48)
    }
    fn find(&self, key: u64) -> (usize, Option<(usize, u64)>) {
        let (b, tag) = self.bucket(key);
        let alive = |p: u64| p <= self.head && self.head - p <= self.log_lines;
        let mut entries = self.buckets[b].iter().enumerate().filter_map(|(s, e)| Some((s, (*e)?)));
        let hit = entries.find(|(_, e)| e.tag() == tag && alive(e.position()));
        (b, hit.map(|(s, e)| (s, e.position())))
    }
    /// Appends an item of `n` lines; returns its position.
    fn append(&mut self, n: u64) -> u64 {
        if self.head % self.log_lines + n > self.log_lines {
            self.head += self.log_lines - self.head % self.log_lines; // items do not wrap
        }
        let at = self.head;
        self.head += n;
        at
    }
    fn insert(&mut self, key: u64, position: u64) {
        let (b, tag) = self.bucket(key);
        let (_, hit) = self.find(key);
        let slot = match hit {
            Some((s, _)) => s,
            None => match self.buckets[b].iter().position(Option::is_none) {
                Some(s) => s,
                None => {
                    self.oldest = self.oldest.wrapping_add(1);
                    self.oldest.to_usize() % SLOTS // lossy: an entry is displaced
                }
            },
        };
        Arc::make_mut(&mut self.buckets)[b][slot] = Some(LogEntry::new(tag, position));
    }
    fn line(&self, position: u64) -> LineAddr {
        self.log_base + position % self.log_lines
    }
}
const POSITION: u64 = (1 << 48) - 1;

/// MICA key-value store.
#[derive(Clone)]
pub struct Mica {
    spec: MicaSpec,
    zipf: Zipf,
    keys: u64,
    stride: u64,
    item: u16,
    parts: Vec<Partition>,
    /// Number of GETs that found no item.
    pub misses: u64,
}

impl Application for Mica {
    type Spec = MicaSpec;

    fn check(s: &MicaSpec, cores: u32) -> Result<(), String> {
        s.check(cores)
    }

    fn largest(s: &MicaSpec, _drawn: Option<Size>) -> Option<Size> {
        Some(s.item_size)
    }

    fn build(s: &MicaSpec, _packet: u32, context: AppBuildContext) -> Result<Mica, String> {
        s.check(context.cores.len().to_u32())?;
        let cores = context.cores.len().to_u64();
        let item = lines(s.item_size.0);
        let log_lines = s.log_size.0 / LINE;
        let keys = s.pairs / cores;
        let buckets = s.buckets / cores;
        // Popularity must not follow the order of insertion, so a step that is coprime to the number of keys spreads
        // the ranks.
        let stride = step(keys);
        let parts = context
            .cores
            .iter()
            .map(|c| {
                let mut region = |n: u64| {
                    let r = context.map.add(n, RegionKind::App, Sharing::of_thread(*c), context.tenant);
                    context.map.get(r).base
                };
                let mut p = Partition {
                    buckets: Arc::new(vec![[None; SLOTS]; buckets.to_usize()]),
                    head: log_lines,
                    log_lines,
                    log_base: region(log_lines),
                    index_base: region(buckets),
                    oldest: 0,
                };
                for key in 0..keys {
                    let at = p.append(item.into());
                    p.insert(key, at);
                }
                p
            })
            .collect();
        let zipf = Zipf::new(keys, s.zipf);
        Ok(Mica { spec: s.clone(), zipf, keys, stride, item, parts, misses: 0 })
    }

    #[inline]
    fn content(&mut self, core: usize, rng: &mut RandomStream) -> Content {
        let rank = self.zipf.draw(rng).min(self.keys - 1);
        let key = rank * self.stride % self.keys; // both factors are below 2^28
                                                  // The host fetches the bucket while the packet travels.
        self.prefetch_on_host(core, key);
        let get = rng.unit() < self.spec.get_fraction;
        Content {
            kind: if get { GET } else { SET },
            key,
            lines: if get { 1 } else { self.item },
            value_lines: self.item,
            wire_bytes: if get { 64 } else { self.spec.item_size.0.to_u32() },
            ..Content::default()
        }
    }

    #[inline]
    fn prefetch_on_host(&self, core: usize, key: u64) {
        if let Some(p) = self.parts.get(core) {
            prefetch(&p.buckets[p.bucket(key).0]);
        }
    }

    #[inline]
    fn serve(&mut self, core: usize, c: &Content, rx: LineAddr, tx: LineAddr, p: &mut Program) -> (ServeOutcome, u16) {
        let part = &mut self.parts[core];
        let n = u32::from(self.item);
        let work = self.spec.instructions;
        p.push(Op::Anchor { line: rx });
        p.compute(work / 2);
        let (bucket, hit) = part.find(c.key);
        let index_line = part.index_base + bucket.to_u64();
        p.push(Op::Chase { line: index_line, delay: 20 }); // after hashing the key
        if c.kind == GET {
            let Some((_, at)) = hit else {
                self.misses += 1;
                p.push(Op::Store { line: tx, lines: 1 });
                return (ServeOutcome::Reply, 1);
            };
            let line = part.line(at);
            p.push(Op::Chase { line, delay: 4 }); // key comparison
            if n > 1 {
                p.push(Op::DependentLoad { line: line + 1, lines: n - 1 });
            }
            p.compute(work - work / 2);
            p.push(Op::Store { line: tx, lines: n });
            return (ServeOutcome::Reply, self.item);
        }
        let in_place = self.spec.update == Update::InPlace;
        let (to, dependent) = match hit {
            Some((_, at)) if in_place => {
                p.push(Op::Chase { line: part.line(at), delay: 4 });
                (part.line(at), true)
            }
            _ => {
                let at = part.append(n.into());
                part.insert(c.key, at);
                p.push(Op::DependentStore { line: index_line, lines: 1 });
                (part.line(at), false)
            }
        };
        let lines = n.min(c.lines.into()); // a captured packet may be shorter than an item
        p.push(match self.spec.copy {
            CopyKind::Cached => Op::Copy { from: rx, to, lines, dependent, behind: false },
            CopyKind::Streaming => Op::CopyStream { from: rx, to, lines, behind: false },
        });
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

    fn store(pairs: u64, buckets: u64, log: u64, update: Update) -> Mica {
        let spec = MicaSpec {
            item_size: Size(1024),
            get_fraction: 0.5,
            pairs,
            buckets,
            log_size: Size(log),
            zipf: 0.99,
            update,
            copy: CopyKind::Cached,
            instructions: 250,
        };
        let mut map = AddressMap::default();
        let context = AppBuildContext::new(&mut map, TenantId(0), &[ThreadId(0)], 1);
        Mica::build(&spec, 0, context).unwrap()
    }

    #[test]
    fn every_preloaded_key_is_found_where_it_was_appended() {
        let m = store(1000, 4000, 4 << 20, Update::InPlace);
        let p = &m.parts[0];
        for key in 0..1000 {
            assert_eq!(p.find(key).1.unwrap().1, p.log_lines + key * 16);
        }
    }

    #[test]
    fn items_that_the_log_has_overtaken_are_gone() {
        let m = store(1000, 4000, 512 * 1024, Update::Append); // room for 512 items
        let alive = (0..1000).filter(|k| m.parts[0].find(*k).1.is_some()).count();
        assert_eq!(alive, 512);
        assert!(m.parts[0].find(0).1.is_none() && m.parts[0].find(999).1.is_some());
    }

    #[test]
    fn a_full_bucket_loses_an_entry_and_no_more() {
        let m = store(16, 1, 1 << 20, Update::Append);
        let alive = (0..16).filter(|k| m.parts[0].find(*k).1.is_some()).count();
        assert_eq!(alive, 8);
    }

    #[test]
    fn an_update_in_place_leaves_the_log_s_head_alone_and_an_append_moves_it() {
        for (update, grows) in [(Update::InPlace, 0), (Update::Append, 16)] {
            let mut m = store(100, 400, 1 << 20, update);
            let head = m.parts[0].head;
            let c = Content { kind: SET, key: 5, lines: 16, value_lines: 16, wire_bytes: 1024, ..Content::default() };
            m.serve(0, &c, LineAddr(0), LineAddr(100), &mut Program::default());
            assert_eq!(m.parts[0].head - head, grows);
        }
    }
}
