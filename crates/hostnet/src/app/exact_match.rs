//! An exact-match table in the layout of DPDK's rte_hash: buckets of eight signatures, a line each, and a line for each
//! key of up to 48 B. A key is in one of two buckets.

use super::AppBuildContext;
use crate::kernel::rng::mix;
use crate::kernel::{Int, LineAddr};
use std::sync::Arc;

/// Signatures per bucket.
const WAYS: usize = 8;
/// Maximum number of keys that move to make room for a new key before the table counts as full.
const MOST_MOVES: usize = 500;

/// Location of one key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeyPlace {
    /// Bucket that a look-up reads first.
    pub bucket: u32,
    /// Second bucket, which a look-up reads next; None where the first bucket holds the key.
    pub other: Option<u32>,
}

/// Tables of all cores, one for each core, all with the same keys, numbered from zero.
#[derive(Clone)]
pub struct ExactMatch {
    keys: Arc<[KeyPlace]>,
    buckets: u32,
    /// First line of each core's table.
    bases: Vec<LineAddr>,
}

impl ExactMatch {
    /// Tables with room for `entries` keys, which hold `keys` keys.
    ///
    /// # Errors
    /// Returns one sentence when the keys do not fit their buckets.
    pub fn new(keys: u32, entries: u32, context: &mut AppBuildContext) -> Result<ExactMatch, String> {
        let buckets = (entries / WAYS.to_u32()).max(1).next_power_of_two();
        let stream = mix(context.seed ^ 0xe4ac);
        let homes = |key: u32| {
            let hash = mix(stream ^ u64::from(key));
            [hash.low_u32() % buckets, (hash >> 32).to_u32() % buckets]
        };
        let places = places(keys, buckets, homes)
            .ok_or_else(|| format!("rules = {keys} do not fit an exact-match table of {entries} entries"))?;
        let found = |(key, place): (u32, u32)| {
            let [bucket, _] = homes(key);
            KeyPlace { bucket, other: (place != bucket).then_some(place) }
        };
        let keys = (0..keys).zip(places).map(found).collect();
        let lines = u64::from(buckets) + u64::from(entries);
        Ok(ExactMatch { keys, buckets, bases: context.per_core(lines) })
    }

    /// Lines that a look-up of `key` reads, one after the other: one or two buckets, and the key.
    pub fn lines(&self, core: usize, key: u32) -> impl Iterator<Item = LineAddr> {
        let (base, f) = (self.bases[core], self.keys[key.to_usize()]);
        let bucket = |b: u32| base + u64::from(b);
        let stored = base + u64::from(self.buckets) + u64::from(key);
        [Some(bucket(f.bucket)), f.other.map(bucket), Some(stored)].into_iter().flatten()
    }
}

/// Bucket of each key, by cuckoo hashing: a key that finds both its buckets full takes the place of another key, which
/// moves on.
fn places(keys: u32, buckets: u32, homes: impl Fn(u32) -> [u32; 2]) -> Option<Vec<u32>> {
    let mut held = vec![Vec::with_capacity(WAYS); buckets.to_usize()];
    let mut places = vec![0; keys.to_usize()];
    for key in 0..keys {
        let (mut key, mut to) = (key, homes(key)[0]);
        let mut moves = 0;
        loop {
            let other = homes(key).into_iter().find(|b| held[b.to_usize()].len() < WAYS);
            if let Some(b) = other {
                held[b.to_usize()].push(key);
                places[key.to_usize()] = b;
                break;
            }
            if moves == MOST_MOVES {
                return None;
            }
            moves += 1;
            places[key.to_usize()] = to;
            let evicted = std::mem::replace(&mut held[to.to_usize()][moves % WAYS], key);
            let [a, b] = homes(evicted);
            (key, to) = (evicted, if a == to { b } else { a });
        }
    }
    Some(places)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{TenantId, ThreadId};
    use crate::memory::region::AddressMap;
    use std::collections::HashMap;

    fn table(keys: u32, entries: u32) -> Result<ExactMatch, String> {
        let mut map = AddressMap::default();
        let mut context = AppBuildContext::new(&mut map, TenantId(0), &[ThreadId(0), ThreadId(1)], 1);
        ExactMatch::new(keys, entries, &mut context)
    }

    #[test]
    fn a_bucket_holds_eight_keys_and_what_overflows_stands_in_another() {
        let t = table(900, 1024).unwrap();
        let mut held = HashMap::<u32, u32>::new();
        for f in t.keys.iter() {
            *held.entry(f.other.unwrap_or(f.bucket)).or_default() += 1;
        }
        assert!(held.values().all(|n| *n <= 8) && held.values().sum::<u32>() == 900);
        let overflowed = t.keys.iter().filter(|f| f.other.is_some()).count();
        // The mean is 7.03 keys per bucket. In a Poisson distribution with that mean, 0.65 keys per bucket exceed the
        // eighth, hence 84 in all, and some keys that had to move.
        assert!((84..252).contains(&overflowed), "{overflowed}");
    }

    #[test]
    fn each_core_has_a_table_of_its_own_and_each_key_a_line() {
        let t = table(512, 1024).unwrap();
        let keys = |core| (0..512).map(|k| t.lines(core, k).last().unwrap()).collect::<Vec<_>>();
        let (a, b) = (keys(0), keys(1));
        assert!(a.windows(2).all(|w| w[1] == w[0] + 1));
        assert!(b[0] >= a[0] + 128 + 1024);
    }

    #[test]
    fn more_keys_than_places_are_refused() {
        let e = table(2000, 1024).err().unwrap();
        assert!(e.contains("2000") && e.contains("1024"), "{e}");
    }
}
