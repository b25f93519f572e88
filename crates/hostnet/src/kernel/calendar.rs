//! The event calendar: a calendar queue (Brown, CACM 31(10), 1988) over picoseconds.
//!
//! Events within the horizon are kept in sorted bucket lists, later events in a heap. Events with equal times leave by
//! lane and then in the order of their insertion, which makes runs reproducible. Where several machines share a
//! calendar, the lane is the machine that an event is for; a machine with a calendar of its own uses lane 0.

use super::{Int, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const WIDTH_BITS: u32 = 7; // 128 ps a bucket: a loaded host has an event in every fourth
const BUCKETS: usize = 1 << 12; // horizon 524 ns, beyond most memory accesses
const WORDS: usize = BUCKETS / 64;
/// Number of low bits of a node's key that hold the lane; the other bits hold the time within the bucket.
const LANE_BITS: u32 = 8;
/// Number of low bits of a far key that hold the order of insertion; the other bits hold the lane.
const SEQUENCE_BITS: u32 = u64::BITS - LANE_BITS;

#[derive(Clone, Copy)]
struct CalendarNode<E> {
    /// Time within the bucket, then lane. The bucket's number, which the window tells, is the rest of the time.
    at: u16,
    next: u32,
    event: E,
}

/// Key of an event at `at` among the events of its bucket.
#[inline]
fn key_in_bucket(at: Time, lane: u8) -> u16 {
    (at.0 & ((1 << WIDTH_BITS) - 1)).to_u16() << LANE_BITS | u16::from(lane)
}

/// Number of the window's first bucket with which an event in `bucket`, beyond the window, enters the window.
#[inline]
fn enters(bucket: u64) -> u64 {
    bucket + 1 - BUCKETS.to_u64()
}

/// Takes events of type `E` for later: a calendar of any type that an `E` can become.
pub trait Post<E> {
    /// Posts `event` for `at`, which must not lie before the last event that the calendar has handed out.
    fn post(&mut self, at: Time, event: E);
}

impl<E, J: Copy + From<E>> Post<E> for Calendar<J> {
    /// Inlined into callers, as [`Calendar::push`] is, so that the conversion of a known variant costs nothing.
    #[inline(always)]
    fn post(&mut self, at: Time, event: E) {
        self.push(at, event.into());
    }
}

/// Pending events in time order.
#[derive(Clone)]
pub struct Calendar<E> {
    nodes: Vec<CalendarNode<E>>,
    /// First free node, from which `next` leads to the others; the end of the list is the number of nodes.
    free: u32,
    /// Last node of each bucket's circular list, where the bucket is `used`; the `next` of the last node is the first.
    last: Box<[u32; BUCKETS]>,
    /// Bit map of the buckets that have events; `words` has a bit for each non-zero word of `used`.
    used: [u64; WORDS],
    words: u64,
    /// Number (time >> WIDTH_BITS) of the bucket that the window starts at.
    cursor: u64,
    /// Events beyond the horizon, as time, lane with order of insertion, and node.
    far: BinaryHeap<Reverse<(u64, u64, u32)>>,
    far_seq: u64,
    /// Number of the window's first bucket with which the earliest event in `far` enters the window.
    far_enters: u64,
    popped: u64,
    /// Lane of the last popped event, which `push` uses for new events.
    lane: u8,
}

impl<E: Copy> Default for Calendar<E> {
    fn default() -> Self {
        Calendar {
            nodes: Vec::with_capacity(1024),
            free: 0,
            last: Box::new([0; BUCKETS]),
            used: [0; WORDS],
            words: 0,
            cursor: 0,
            far: BinaryHeap::new(),
            far_seq: 0,
            far_enters: u64::MAX,
            popped: 0,
            lane: 0,
        }
    }
}

impl<E: Copy> Calendar<E> {
    /// Bytes of an event with its time and its link.
    pub const NODE_BYTES: usize = size_of::<CalendarNode<E>>();

    /// Inserts `event` at time `at`, which must not lie before the last popped event.
    ///
    /// The function is inlined so that the event is constructed in its final place: copying an event that was just
    /// written in parts stalls the processor.
    #[inline(always)]
    pub fn push(&mut self, at: Time, event: E) {
        self.insert(at, self.lane, event);
    }

    /// Inserts `event` at time `at` into lane `lane`; `at` must not lie before the last popped event.
    pub fn push_to(&mut self, lane: u8, at: Time, event: E) {
        self.insert(at, lane, event);
    }

    /// Lane of the last popped event, or of the last call of `set_lane`.
    #[inline]
    pub fn lane(&self) -> u8 {
        self.lane
    }

    /// Sets the lane that `push` uses for new events until the next event is popped.
    pub fn set_lane(&mut self, lane: u8) {
        self.lane = lane;
    }

    #[inline(always)]
    fn insert(&mut self, at: Time, lane: u8, event: E) {
        let id = self.free;
        let id = if let Some(node) = self.nodes.get_mut(id.to_usize()) {
            self.free = node.next;
            node.event = event;
            id
        } else {
            self.nodes.push(CalendarNode { at: 0, next: id, event });
            self.free = id + 1;
            id
        };
        self.place(id, at, lane);
    }

    /// Puts node `id` into the bucket list or the heap that its time belongs to. The node's key is computed here rather
    /// than in `insert`, so that the callers of `insert` stay short.
    #[inline(never)]
    fn place(&mut self, id: u32, at: Time, lane: u8) {
        let bucket = at.0 >> WIDTH_BITS;
        debug_assert!(bucket >= self.cursor, "an event was posted into the past");
        if bucket >= self.cursor + BUCKETS.to_u64() {
            self.place_far(id, at, lane);
        } else {
            self.link(id, bucket, key_in_bucket(at, lane));
        }
    }

    /// Puts node `id`, whose time lies beyond the window, into the heap.
    #[inline(never)]
    fn place_far(&mut self, id: u32, at: Time, lane: u8) {
        self.far_seq += 1;
        self.far_enters = self.far_enters.min(enters(at.0 >> WIDTH_BITS));
        self.nodes[id.to_usize()].at = key_in_bucket(at, lane);
        self.far.push(Reverse((at.0, u64::from(lane) << SEQUENCE_BITS | self.far_seq, id)));
    }

    /// Puts node `id` with key `at` into the sorted list of its bucket.
    #[inline(never)]
    fn link(&mut self, id: u32, bucket: u64, at: u16) {
        let b = bucket.to_usize() & (BUCKETS - 1);
        self.nodes[id.to_usize()].at = at;
        let (word, bit) = (&mut self.used[b / 64], 1 << (b % 64));
        if *word & bit == 0 {
            *word |= bit;
            self.words |= 1 << (b / 64);
            self.nodes[id.to_usize()].next = id;
            self.last[b] = id;
            return;
        }
        let tail = self.last[b];
        let (mut prev, mut next) = (tail, self.nodes[tail.to_usize()].next);
        if self.nodes[tail.to_usize()].at <= at {
            self.last[b] = id;
        } else {
            // Searches for the last node that is not later than the new one; the list is circular, so the search may
            // start at its last node.
            while self.nodes[next.to_usize()].at <= at {
                (prev, next) = (next, self.nodes[next.to_usize()].next);
            }
        }
        self.nodes[id.to_usize()].next = next;
        self.nodes[prev.to_usize()].next = id;
    }

    /// Moves events that the window has reached from the heap to their buckets.
    #[cold]
    fn migrate(&mut self) {
        let end = self.cursor + BUCKETS.to_u64();
        self.far_enters = u64::MAX;
        while let Some(Reverse((at, _, _))) = self.far.peek() {
            let bucket = *at >> WIDTH_BITS;
            if bucket >= end {
                self.far_enters = enters(bucket);
                break;
            }
            let Reverse((_, _, id)) = self.far.pop().expect("peeked");
            self.link(id, bucket, self.nodes[id.to_usize()].at);
        }
    }

    /// Removes and returns the earliest event.
    ///
    /// The function is inlined so that the event is not copied on its way to the caller.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<(Time, E)> {
        if self.words == 0 {
            let Reverse((at, _, _)) = self.far.peek()?;
            self.cursor = at >> WIDTH_BITS;
            self.migrate();
        }
        let start = self.cursor.to_usize() & (BUCKETS - 1);
        let b = self.first_used(start);
        let ahead = (b + BUCKETS - start) & (BUCKETS - 1);
        self.cursor += ahead.to_u64();
        if self.far_enters <= self.cursor {
            self.migrate();
        }
        let tail = self.last[b];
        let id = self.nodes[tail.to_usize()].next;
        let node = self.nodes[id.to_usize()];
        if id == tail {
            let word = &mut self.used[b / 64];
            *word &= !(1 << (b % 64));
            self.words &= !(u64::from(*word == 0) << (b / 64));
        } else {
            self.nodes[tail.to_usize()].next = node.next;
        }
        self.nodes[id.to_usize()].next = self.free;
        self.free = id;
        self.popped += 1;
        let [in_bucket, lane] = node.at.to_be_bytes();
        self.lane = lane;
        Some((Time(self.cursor << WIDTH_BITS | u64::from(in_bucket)), node.event))
    }

    #[inline]
    fn first_used(&self, start: usize) -> usize {
        const { assert!(WORDS == 64) };
        let w = start / 64;
        let first = self.used[w] & (u64::MAX << (start % 64));
        if first != 0 {
            return w * 64 + first.trailing_zeros().to_usize();
        }
        // The search begins with the next word and ends with the first one, whose buckets before `start` come last.
        debug_assert!(self.words != 0, "the caller has found that a bucket is in use");
        let ahead = self.words.rotate_right(w.to_u32() + 1).trailing_zeros().to_usize();
        let i = (w + 1 + ahead) % WORDS;
        i * 64 + self.used[i].trailing_zeros().to_usize() % 64
    }

    /// Time of the earliest event.
    pub fn next_at(&self) -> Option<Time> {
        if self.words == 0 {
            return self.far.peek().map(|Reverse((at, _, _))| Time(*at));
        }
        let start = self.cursor.to_usize() & (BUCKETS - 1);
        let b = self.first_used(start);
        let bucket = self.cursor + ((b + BUCKETS - start) & (BUCKETS - 1)).to_u64();
        let first = self.nodes[self.last[b].to_usize()].next;
        let [in_bucket, _] = self.nodes[first.to_usize()].at.to_be_bytes();
        Some(Time(bucket << WIDTH_BITS | u64::from(in_bucket)))
    }
    /// Number of events popped so far.
    pub fn popped(&self) -> u64 {
        self.popped
    }
    /// Whether no event is pending.
    pub fn is_empty(&self) -> bool {
        self.words == 0 && self.far.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::RandomStream;

    /// Times up to 2^64 ps, among them neighbours of 2^56 ps, where keys of 64 bits with a lane would wrap.
    #[test]
    fn every_time_of_64_bits_keeps_its_order() {
        let mut rng = RandomStream::new(5, "calendar", 1);
        let around = |t: u64| [t - 1, t, t + 1];
        let mut times: Vec<u64> = (56..64).flat_map(|bits| around(1 << bits)).chain([0, u64::MAX]).collect();
        times.extend((0..1000).map(|_| rng.below(u64::MAX)));
        let mut cal = Calendar::default();
        for (i, t) in times.iter().enumerate() {
            cal.push_to((i % 3) as u8, Time(*t), i);
        }
        times.sort_unstable();
        let left: Vec<u64> = std::iter::from_fn(|| cal.pop()).map(|(t, _)| t.0).collect();
        assert_eq!(left, times);
    }

    #[test]
    fn within_one_instant_beyond_the_horizon_the_lane_decides() {
        let mut cal = Calendar::default();
        for lane in [2, 0, 1] {
            cal.push_to(lane, Time::us(1_000_000_000), lane);
        }
        let left: Vec<u8> = std::iter::from_fn(|| cal.pop()).map(|(_, e)| e).collect();
        assert_eq!(left, [0, 1, 2]);
    }

    #[test]
    fn leaves_in_time_order_and_first_come_first_served_within_one_instant() {
        let mut rng = RandomStream::new(3, "calendar", 0);
        let mut cal = Calendar::default();
        let mut now = 0u64;
        let mut expect: Vec<(u64, u32)> = Vec::new();
        let mut id = 0;
        for _ in 0..20_000 {
            for _ in 0..rng.below(3) {
                // a mix of same-instant, near and beyond-horizon events
                let at = now + [0, rng.below(700), rng.below(9_000_000)][rng.below(3) as usize];
                cal.push(Time(at), id);
                expect.push((at, id));
                id += 1;
            }
            let next = cal.next_at();
            if let Some((t, e)) = cal.pop() {
                assert_eq!(next, Some(t));
                let (i, best) = expect.iter().copied().enumerate().min_by_key(|(_, x)| (x.0, x.1)).unwrap();
                assert_eq!((t.0, e), best);
                expect.swap_remove(i);
                now = t.0;
            }
            if expect.len() > 60 {
                while let Some((t, e)) = cal.pop() {
                    let i = expect.iter().position(|x| *x == (t.0, e)).unwrap();
                    assert!(expect.iter().all(|x| *x >= (t.0, 0) && (x.0 > t.0 || x.1 >= e)));
                    expect.swap_remove(i);
                    now = t.0;
                }
                assert!(expect.is_empty());
            }
        }
    }
}
