//! Longest-prefix match as in DPDK's rte_lpm (DIR-24-8, Gupta et al., INFOCOM 1998): one table of 2^24 entries, and
//! groups of 256 entries for prefixes longer than 24 bits.

use crate::kernel::Int;

const VALID: u32 = 1 << 31;
const GROUP: u32 = 1 << 30;
const DEPTH_SHIFT: u32 = 24;
const VALUE: u32 = (1 << 24) - 1;

/// Entries of the two tables that a look-up reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LpmLookup {
    /// Index of the entry that the look-up reads in the table of 2^24 entries.
    pub tbl24: u32,
    /// Index of the entry that the look-up reads in the groups of 256 entries; None for prefixes of at most 24 bits.
    pub tbl8: Option<u32>,
    /// Next hop of the longest prefix that matches; None if no prefix matches.
    pub next_hop: Option<u32>,
}

/// Routing table for longest-prefix match.
#[derive(Clone)]
pub struct Lpm {
    tbl24: Vec<u32>,
    tbl8: Vec<u32>,
}

impl Default for Lpm {
    fn default() -> Self {
        Lpm { tbl24: vec![0; 1 << 24], tbl8: Vec::new() }
    }
}

fn entry(depth: u32, hop: u32) -> u32 {
    VALID | (depth & 0x3f) << DEPTH_SHIFT | hop & VALUE
}
fn depth(e: u32) -> u32 {
    e >> DEPTH_SHIFT & 0x3f
}

impl Lpm {
    /// Adds the route `ip`/`prefix` with next hop `hop`; `prefix` is 1 to 32.
    pub fn add(&mut self, ip: u32, prefix: u32, hop: u32) {
        let set = |slot: &mut u32| {
            if *slot & VALID == 0 || depth(*slot) <= prefix {
                *slot = entry(prefix, hop);
            }
        };
        if prefix <= 24 {
            let first = (ip >> (32 - prefix) << (32 - prefix)) >> 8;
            for i in first..first + (1 << (24 - prefix)) {
                let e = self.tbl24[i.to_usize()];
                if e & GROUP != 0 && e & VALID != 0 {
                    let g = ((e & VALUE) * 256).to_usize();
                    self.tbl8[g..g + 256].iter_mut().for_each(set);
                } else {
                    set(&mut self.tbl24[i.to_usize()]);
                }
            }
            return;
        }
        let slot = (ip >> 8).to_usize();
        let e = self.tbl24[slot];
        let group = if e & VALID != 0 && e & GROUP != 0 {
            e & VALUE
        } else {
            let g = (self.tbl8.len() / 256).to_u32();
            self.tbl8.extend(std::iter::repeat_n(e, 256));
            self.tbl24[slot] = VALID | GROUP | g;
            g
        };
        let first = group * 256 + ((ip & 0xff) >> (32 - prefix) << (32 - prefix));
        let n = 1u32 << (32 - prefix);
        self.tbl8[first.to_usize()..(first + n).to_usize()].iter_mut().for_each(set);
    }

    /// Looks up the IPv4 address `ip`.
    pub fn lookup(&self, ip: u32) -> LpmLookup {
        let tbl24 = ip >> 8;
        let e = self.tbl24[tbl24.to_usize()];
        let hop = |e: u32| (e & VALID != 0).then_some(e & VALUE);
        if e & VALID != 0 && e & GROUP != 0 {
            let i = (e & VALUE) * 256 + (ip & 0xff);
            return LpmLookup { tbl24, tbl8: Some(i), next_hop: hop(self.tbl8[i.to_usize()]) };
        }
        LpmLookup { tbl24, tbl8: None, next_hop: hop(e) }
    }

    /// Number of entries in all groups of 256 entries.
    pub fn tbl8_entries(&self) -> usize {
        self.tbl8.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::RandomStream;

    #[test]
    fn agrees_with_a_linear_search_for_the_longest_prefix() {
        let mut rng = RandomStream::new(5, "lpm", 0);
        let mut rules = Vec::new();
        let mut lpm = Lpm::default();
        for hop in 0..300 {
            let depth = 8 + rng.below(25) as u32;
            let ip = (rng.below(4) << 30 | rng.below(1 << 12) << 14 | rng.below(1 << 14)) as u32;
            let ip = ip >> (32 - depth) << (32 - depth);
            rules.retain(|(i, d, _)| (*i, *d) != (ip, depth));
            rules.push((ip, depth, hop));
            lpm.add(ip, depth, hop);
        }
        for n in 0..20_000u64 {
            let ip = if n % 2 == 0 {
                rng.below(1 << 32) as u32
            } else {
                rules[rng.below(rules.len() as u64) as usize].0 | rng.below(256) as u32
            };
            let best = rules.iter().filter(|(r, d, _)| ip >> (32 - d) == r >> (32 - d)).max_by_key(|(_, d, _)| *d);
            assert_eq!(lpm.lookup(ip).next_hop, best.map(|b| b.2), "{ip:x}");
        }
    }
}
