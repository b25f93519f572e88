//! Memcached over UDP: answers a captured stream of requests from a shared hash table and slab items.

use super::mmu::Mmu;
use super::{lines, AppBuildContext, Application, Content, ServeOutcome};
use crate::core::{Op, Program};
use crate::kernel::rng::mix;
use crate::kernel::{Int, LineAddr, RandomStream};
use crate::memory::region::{RegionKind, Sharing, PAGE_LINES};
use crate::traffic::pcap::{Capture, Captured, CapturedCommand};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;

/// Parameters of the memcached server.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemcachedSpec {
    /// Number of copies of the captured key population, each with its own items: the table of a server that keeps more
    /// items than one short capture accesses. All requests of one pass over the capture go to one copy. The default is
    /// 1.
    #[serde(default = "one")]
    pub populations: u32,
    /// Instructions per request in addition to loads and stores of lines (parsing, hashing, formatting). The default is
    /// 1200.
    #[serde(default = "instructions")]
    pub instructions: u32,
    /// Instructions per request that stores an item, in addition to loads and stores of lines. When absent, the value
    /// of `instructions`.
    #[serde(default)]
    pub set_instructions: Option<u32>,
    /// Atomic operations per key that is read: locks that are taken and released, and the item's reference count. The
    /// default is 0.
    #[serde(default)]
    pub get_atomics: u32,
    /// Atomic operations per item that is stored: locks that are taken and released, and the item's reference count.
    /// The default is 0.
    #[serde(default)]
    pub set_atomics: u32,
    /// Binary logarithm of the number of buckets in the hash table (1 to 32). When absent, there are at least as many
    /// buckets as keys.
    #[serde(default)]
    pub hash_power: Option<u8>,
    /// Bytes of an item before its value: header, key, flags. The default is 80.
    #[serde(default = "overhead")]
    pub item_overhead: u32,
}
fn one() -> u32 {
    1
}
fn instructions() -> u32 {
    1200
}
fn overhead() -> u32 {
    80
}

/// Lines of the table of item locks: 4,096 locks of 40 bytes, as memcached has for four threads. One more line holds
/// all other locks.
const LOCKS: u64 = 2560;

/// One key of a request, and the lines of its item.
#[derive(Clone, Copy)]
struct ItemAccess {
    item: u32,
    lines: u16,
    found: bool,
}

#[derive(Clone)]
struct ReplayRequest {
    set: bool,
    lines: u16,
    wire: u32,
    reply: u16,
    keys: (u32, u16),
}

/// Memcached server over UDP.
#[derive(Clone)]
pub struct Memcached {
    /// Instructions of a GET and of a SET.
    instructions: [u32; 2],
    atomics: [u32; 2],
    requests: Arc<Vec<ReplayRequest>>,
    keys: Arc<Vec<ItemAccess>>,
    populations: u64,
    buckets: u64,
    slot: u64,
    index: LineAddr,
    items: LineAddr,
    /// First line of the locks; without atomic operations, no lock is accessed.
    locks: LineAddr,
    item_count: u64,
    /// Address translation of each core, where the platform describes its TLB.
    mmus: Vec<Mmu>,
}

impl Application for Memcached {
    type Spec = MemcachedSpec;

    fn check(s: &MemcachedSpec, _cores: u32) -> Result<(), String> {
        match s.hash_power.filter(|bits| !(1..=32).contains(bits)) {
            Some(bits) => Err(format!("hash_power = {bits} is not within 1 to 32")),
            None => Ok(()),
        }
    }

    fn build(s: &MemcachedSpec, _packet: u32, context: AppBuildContext) -> Result<Memcached, String> {
        let capture: &Arc<Capture> = context.capture.ok_or("memcached: traffic.arrivals must be \"pcap\"")?;
        let mut ids: HashMap<u64, u32> = HashMap::new();
        let (mut requests, mut keys) = (Vec::new(), Vec::<ItemAccess>::new());
        let mut largest = 1u16;
        for p in &capture.packets {
            let start = keys.len().to_u32();
            let mut add = |hash: u64, value: Option<u32>, set: bool| {
                let next = ids.len().to_u32();
                let item = *ids.entry(hash).or_insert(next);
                let n = lines(u64::from(s.item_overhead) + u64::from(value.unwrap_or(0)));
                largest = largest.max(n);
                keys.push(ItemAccess { item, lines: n, found: set || value.is_some_and(|v| v > 0) });
                u64::from(value.unwrap_or(0))
            };
            let mut bytes = 64u64; // frame header and status line
            let set = match p.command {
                CapturedCommand::Get { key_hash, value_len, more, .. } => {
                    bytes += add(key_hash, value_len, false);
                    for k in capture.more_keys(more) {
                        bytes += add(k.hash, k.value_len, false);
                    }
                    false
                }
                CapturedCommand::Set { key_hash, value_len, .. } => {
                    add(key_hash, Some(value_len), true);
                    true
                }
                CapturedCommand::Other => false,
            };
            requests.push(ReplayRequest {
                set,
                lines: lines(p.wire_len.into()),
                wire: p.wire_len,
                reply: lines(bytes),
                keys: (start, (keys.len().to_u32() - start).to_u16()),
            });
        }
        let populations = u64::from(s.populations.max(1));
        let item_count = ids.len().max(1).to_u64();
        let buckets = match s.hash_power {
            None => (item_count * populations).next_power_of_two(),
            Some(bits) => 1 << bits,
        };
        let atomics = [s.get_atomics, s.set_atomics];
        let table = buckets.div_ceil(8); // 8-byte chain heads
        let slots = item_count * populations * u64::from(largest);
        let mut mmus = Vec::new();
        if let Some(tlb) = context.stlb {
            let pages = (table + slots + LOCKS + 1).div_ceil(PAGE_LINES) + 3;
            for (i, core) in context.cores.iter().enumerate() {
                let mut rng = RandomStream::new(context.seed, "memcached", i.to_u64());
                mmus.push(Mmu::new(tlb, pages, *core, context.tenant, context.map, &mut rng)?);
            }
        }
        let mut region = |n: u64| {
            let r = context.map.add(n, RegionKind::App, Sharing::Shared, context.tenant);
            context.map.get(r).base
        };
        Ok(Memcached {
            instructions: [s.instructions, s.set_instructions.unwrap_or(s.instructions)],
            atomics,
            requests: Arc::new(requests),
            keys: Arc::new(keys),
            populations,
            buckets,
            slot: largest.into(),
            index: region(table),
            items: region(slots),
            locks: if atomics == [0; 2] { LineAddr(0) } else { region(LOCKS + 1) },
            item_count,
            mmus,
        })
    }

    /// Content of captured packet number `i` on repetition `pass`.
    #[inline]
    fn replay(&mut self, _core: usize, _packet: &Captured, i: usize, pass: u64, _rng: &mut RandomStream) -> Content {
        let r = &self.requests[i];
        Content {
            kind: u8::from(r.set),
            key: (pass % self.populations) << 32 | i.to_u64(),
            lines: r.lines,
            value_lines: r.reply,
            wire_bytes: r.wire,
            ..Content::default()
        }
    }

    #[inline]
    fn serve(&mut self, core: usize, c: &Content, rx: LineAddr, tx: LineAddr, p: &mut Program) -> (ServeOutcome, u16) {
        let (population, i) = (c.key >> 32, c.key.low_u32().to_usize());
        let r = self.requests[i].clone();
        p.push(Op::Anchor { line: rx });
        let instructions = self.instructions[usize::from(r.set)];
        p.compute(instructions / 2);
        let mut reply = tx;
        for at in r.keys.0..r.keys.0 + u32::from(r.keys.1) {
            let k = self.keys[at.to_usize()];
            let id = population * self.item_count + u64::from(k.item);
            let bucket = mix(id) & (self.buckets - 1);
            // Atomic operations go to the item's lock, to the release of the lock and to the item's reference count, as
            // far as these exist; further ones go to all other locks.
            let (atomics, lock) = (self.atomics[usize::from(r.set)], self.locks + bucket % LOCKS);
            if atomics > 0 {
                match self.walk(core, LOCKED, lock - self.locks, p) {
                    0 => {}
                    walked => p.push(Op::Chase { line: lock, delay: walked }),
                }
                p.push(Op::Atomic { line: lock });
            }
            let walked = self.walk(core, TABLE, bucket / 8, p);
            p.push(Op::Chase { line: self.index + bucket / 8, delay: 20 + walked });
            if !k.found {
                if atomics > 1 {
                    p.push(Op::Atomic { line: lock });
                }
                continue;
            }
            let item = self.items + id * self.slot;
            let walked = self.walk(core, ITEMS, item - self.items, p);
            p.push(Op::Chase { line: item, delay: 4 + walked });
            for i in 1..atomics {
                let line = [item, lock].get(i.to_usize() - 1).copied().unwrap_or(self.locks + LOCKS);
                p.push(Op::Atomic { line });
            }
            let n = u32::from(k.lines);
            if r.set {
                let lines = n.min(r.lines.into());
                p.push(Op::Copy { from: rx, to: item, lines, dependent: true, behind: false });
            } else {
                let room = (tx + u64::from(r.reply) - reply).to_u32();
                let lines = n.min(room);
                p.push(Op::Copy { from: item, to: reply, lines, dependent: false, behind: false });
                reply += u64::from(lines);
            }
        }
        p.compute(instructions - instructions / 2);
        if reply == tx {
            p.push(Op::Store { line: tx, lines: 1 });
            return (ServeOutcome::Reply, 1);
        }
        (ServeOutcome::Reply, r.reply)
    }
}

/// Regions of a server, in the order of their pages.
const TABLE: usize = 0;
const ITEMS: usize = 1;
const LOCKED: usize = 2;

impl Memcached {
    /// Appends the read of the page table for line `at` of a region, where `core`'s TLB does not hold the page; returns
    /// the additional cycles of the page walk.
    fn walk(&mut self, core: usize, region: usize, at: u64, p: &mut Program) -> u16 {
        let Some(mmu) = self.mmus.get_mut(core) else { return 0 };
        let before = [0, self.buckets.div_ceil(8), self.item_count * self.populations * self.slot];
        let page: u64 = before[..=region].iter().map(|lines| lines.div_ceil(PAGE_LINES)).sum();
        let Some(line) = mmu.walk(page + at / PAGE_LINES) else { return 0 };
        p.push(Op::Chase { line, delay: 0 });
        mmu.walk
    }

    /// Lines of the largest reply.
    pub fn largest_reply(&self) -> u16 {
        self.requests.iter().map(|r| r.reply).max().unwrap_or(1)
    }
    /// Lines of the largest request.
    pub fn largest_request(&self) -> u16 {
        self.requests.iter().map(|r| r.lines).max().unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{TenantId, ThreadId};

    /// A server with one item, which a GET and a SET request.
    fn server(atomics: [u32; 2]) -> Memcached {
        let request = |set| ReplayRequest { set, lines: 1, wire: 64, reply: 1, keys: (0, 1) };
        Memcached {
            instructions: [10, 20],
            atomics,
            requests: Arc::new(vec![request(false), request(true)]),
            keys: Arc::new(vec![ItemAccess { item: 0, lines: 1, found: true }]),
            populations: 1,
            buckets: 1,
            slot: 1,
            index: LineAddr(1000),
            items: LineAddr(2000),
            locks: LineAddr(10_000),
            item_count: 1,
            mmus: Vec::new(),
        }
    }

    /// Lines of the atomic operations of request number `i`.
    fn touched(atomics: [u32; 2], i: u64) -> Vec<u64> {
        let mut p = Program::default();
        let c = Content { kind: 0, key: i, lines: 1, value_lines: 1, wire_bytes: 64, ..Content::default() };
        server(atomics).serve(0, &c, LineAddr(1), LineAddr(2), &mut p);
        let atomics = p.ops.iter().filter_map(|op| match op {
            Op::Atomic { line } => Some(line.0),
            _ => None,
        });
        atomics.collect()
    }

    /// Table, item and locks lie in one page each.
    #[test]
    fn a_page_that_the_tlb_does_not_know_is_walked_for_once() {
        let spec = crate::core::spec::TlbSpec { entries: 4, ways: 4, walk_cycles: 42 };
        let (mut map, mut rng) = (crate::memory::region::AddressMap::default(), RandomStream::new(1, "test", 0));
        let mut m = server([3, 0]);
        m.mmus.push(Mmu::new(&spec, 3, ThreadId(0), TenantId(0), &mut map, &mut rng).expect("a shape that works"));
        let mut waits = || {
            let mut p = Program::default();
            m.serve(
                0,
                &Content { kind: 0, key: 0, lines: 1, value_lines: 1, wire_bytes: 64, ..Content::default() },
                LineAddr(1),
                LineAddr(2),
                &mut p,
            );
            let chases = p.ops.iter().filter_map(|op| match op {
                Op::Chase { delay, .. } => Some(*delay),
                _ => None,
            });
            chases.collect::<Vec<_>>()
        };
        assert_eq!(waits(), [0, 42, 0, 20 + 42, 0, 4 + 42], "an entry of the page table, and what waits for it");
        assert_eq!(waits(), [20, 4]);
    }

    /// thread.c: item_lock, refcount_incr, item_unlock; a store additionally takes the locks of the slabs, of the LRU
    /// and of the statistics.
    #[test]
    fn atomic_operations_go_to_the_items_lock_its_reference_count_and_the_other_locks() {
        assert!(touched([0, 0], 0).is_empty() && touched([3, 0], 1).is_empty());
        assert_eq!(touched([3, 5], 0), [10_000, 2000, 10_000]);
        let others = 10_000 + LOCKS;
        assert_eq!(touched([3, 5], 1), [10_000, 2000, 10_000, others, others]);
    }
}
