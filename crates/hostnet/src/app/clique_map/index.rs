//! Locations of keys in DPDK's hash table (`rte_hash`): each key is in one of two buckets of eight signatures. When
//! both buckets of a new key are full, keys move to their other buckets, along the shortest path that a breadth-first
//! search finds.

use crate::kernel::rng::mix;
use crate::kernel::{ids::niche_id, Int};
use std::num::NonZeroU32;

/// Entries of a bucket, which is one line: signatures of 2 bytes, entry numbers of 4 bytes, flags, a pointer.
const SLOTS: usize = 8;
/// Maximum number of buckets that a search visits (RTE_HASH_BFS_QUEUE_MAX_LEN).
const SEARCHED: usize = 1000;

niche_id!(
    /// Key of the table, by its number.
    CuckooKey(NonZeroU32)
);

/// Locations of the keys 0, 1, 2 and so on, which were inserted in this order.
#[derive(Debug)]
pub struct CuckooIndex {
    mask: u32,
    /// Whether each key lies in its second bucket.
    second: Vec<bool>,
}

/// A bucket that a search has reached, from a slot of a previous bucket.
#[derive(Clone, Copy)]
struct SearchNode {
    bucket: u32,
    from: Option<usize>,
    slot: usize,
}

impl CuckooIndex {
    /// An index for `keys` keys. The number of slots is the next power of two, or the power of two after that when a
    /// key finds no slot.
    pub fn of(keys: u64) -> CuckooIndex {
        let mut places = keys.next_power_of_two().max(SLOTS.to_u64());
        loop {
            match CuckooIndex::within(keys.to_u32(), places) {
                Some(index) => return index,
                None => places *= 2,
            }
        }
    }

    fn within(keys: u32, places: u64) -> Option<CuckooIndex> {
        let buckets = places.to_usize() / SLOTS;
        let mut index = CuckooIndex { mask: buckets.to_u32() - 1, second: vec![false; keys.to_usize()] };
        let (mut slots, mut queue) = (vec![[None; SLOTS]; buckets], Vec::with_capacity(SEARCHED));
        for key in 0..keys {
            let (first, second) = (index.first(key.into()), index.second(key.into()));
            let (mut at, mut free) =
                [first, second].into_iter().find_map(|start| index.search(start, &slots, &mut queue))?;
            while let SearchNode { bucket, from: Some(from), slot } = queue[at] {
                slots[bucket.to_usize()][free] = slots[queue[from].bucket.to_usize()][slot];
                (at, free) = (from, slot);
            }
            slots[queue[at].bucket.to_usize()][free] = Some(CuckooKey::new(key.to_usize()));
        }
        for (bucket, keys) in slots.iter().enumerate() {
            for key in keys.iter().flatten().map(|key| key.index()) {
                index.second[key] = index.first(key.to_u64()) != bucket.to_u32();
            }
        }
        Some(index)
    }

    /// Searches the path from bucket `start` to the nearest free slot; returns the last visited bucket, as an index
    /// into `queue`, and the slot there.
    fn search(
        &self,
        start: u32,
        slots: &[[Option<CuckooKey>; SLOTS]],
        queue: &mut Vec<SearchNode>,
    ) -> Option<(usize, usize)> {
        queue.clear();
        queue.push(SearchNode { bucket: start, from: None, slot: 0 });
        let mut at = 0;
        while at < queue.len() && queue.len() < SEARCHED - SLOTS {
            let bucket = queue[at].bucket;
            for (slot, &key) in slots[bucket.to_usize()].iter().enumerate() {
                let Some(key) = key else { return Some((at, slot)) };
                let other = self.other(bucket, key.index().to_u64());
                queue.push(SearchNode { bucket: other, from: Some(at), slot });
            }
            at += 1;
        }
        None
    }

    /// The other bucket of a key that lies in `bucket`, by the key's signature.
    fn other(&self, bucket: u32, key: u64) -> u32 {
        (bucket ^ mix(key).low_u32() >> 16) & self.mask
    }

    pub fn buckets(&self) -> u64 {
        u64::from(self.mask) + 1
    }

    pub fn first(&self, key: u64) -> u32 {
        mix(key).low_u32() & self.mask
    }

    pub fn second(&self, key: u64) -> u32 {
        self.other(self.first(key), key)
    }

    pub fn is_second(&self, key: u64) -> bool {
        self.second[key.to_usize()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(index: &CuckooIndex) -> f64 {
        index.second.iter().filter(|s| **s).count() as f64 / index.second.len() as f64
    }

    /// In rte_hash of DPDK 22.11 with a million keys of 16 bytes and CRC hashes, 17.37 % of the keys lie in their
    /// second bucket when the table is made for a million keys. When the table is made for two million, 0.70 % do. Four
    /// standard deviations of the shares are 0.15 % and 0.04 %.
    #[test]
    fn as_many_keys_lie_in_their_second_bucket_as_dpdk_has_there() {
        for (places, expected, tolerance) in [(1 << 20, 0.1737, 0.0025), (1 << 21, 0.0070, 0.0005)] {
            let index = CuckooIndex::within(1_000_000, places).expect("room");
            assert!((share(&index) - expected).abs() < tolerance, "{} of {places} places", share(&index));
        }
    }

    #[test]
    fn every_key_is_in_one_of_its_two_buckets_and_no_bucket_has_more_than_eight() {
        let index = CuckooIndex::of(7000);
        assert_eq!(index.buckets(), 1024);
        let mut keys = vec![0; 1024];
        for key in 0..7000 {
            keys[if index.is_second(key) { index.second(key) } else { index.first(key) } as usize] += 1;
        }
        assert!(keys.iter().all(|n| *n <= SLOTS) && keys.iter().sum::<usize>() == 7000);
        assert!(share(&index) > 0.0);
    }

    /// A key can move only if the other bucket of its other bucket is the bucket where the key lies (partial-key cuckoo
    /// hashing).
    #[test]
    fn buckets_of_a_key_are_each_other_s_other_one() {
        let index = CuckooIndex::of(7000);
        assert!((0..7000).all(|key| index.other(index.second(key), key) == index.first(key)));
        let apart = (0..7000).filter(|key| index.second(*key) != index.first(*key)).count();
        assert!(apart > 6950, "{apart} keys of 7000 have two buckets, of 1024");
    }

    /// 4096 keys would have to fill all of 4096 slots, which no search achieves.
    #[test]
    fn keys_that_find_no_room_get_twice_the_places() {
        assert_eq!(CuckooIndex::of(4096).buckets(), 1024);
        assert_eq!(CuckooIndex::of(3).buckets(), 1);
    }
}
