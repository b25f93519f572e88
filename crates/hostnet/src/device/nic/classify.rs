//! Which queue a packet goes to, and what its lines tell placement.

use crate::kernel::{CoreId, IdVec, Int, QueueId, ThreadId, Time};
use crate::memory::Tag;
use crate::placement::idio::{Burst, IdioSpec};

use std::collections::HashMap;

/// Receive-side scaling: a table of queues that the flow's hash points into. Its queues are told apart by a steering tag, which
/// every packet of theirs carries towards memory.
#[derive(Clone, Debug)]
pub struct Classifier {
    table: Vec<QueueId>,
    /// Flow director: flows whose queue is said, before the hash is asked.
    exact: HashMap<u32, QueueId>,
}

impl Classifier {
    /// Hash `i` goes to queue `i`, and those beyond the last begin again.
    pub fn spread(queues: usize) -> Classifier {
        Classifier { table: (0..queues).map(QueueId::new).collect(), exact: HashMap::new() }
    }

    /// Flow `flow` goes to `queue` from now on.
    pub fn direct(&mut self, flow: u32, queue: QueueId) {
        self.exact.insert(flow, queue);
    }

    /// The queue of a flow and its RSS hash. One without a hash is its own hash, and has no addresses to match.
    #[inline]
    pub fn queue(&self, flow: u32, hash: Option<u32>) -> QueueId {
        if hash.is_some() && !self.exact.is_empty() {
            if let Some(queue) = self.exact.get(&flow) {
                return *queue;
            }
        }
        self.table[hash.unwrap_or(flow).to_usize() % self.table.len()]
    }
}

/// Bytes that came for one core.
#[derive(Clone, Copy, Debug, Default)]
struct Bytes {
    interval: u64,
    bytes: u64,
    /// There were more than the threshold in the interval before.
    before: bool,
}

/// IDIO's classifier (section V-A): class from the DSCP, core from the queue, and whether a burst to that core has begun.
#[derive(Clone, Debug)]
pub struct Marker {
    /// A bit for each DSCP of class 1.
    class_1: u64,
    threshold: u64,
    interval: Time,
    burst: Burst,
    /// The core of each queue.
    cores: IdVec<QueueId, ThreadId>,
    counters: Vec<Bytes>,
}

/// The core that a tag names for `thread`: tags do not tell threads of one core apart, and call each by its own number.
fn steered_to(thread: ThreadId) -> CoreId {
    CoreId(thread.0)
}

impl Marker {
    /// For queues of these cores.
    pub fn new(s: &IdioSpec, cores: IdVec<QueueId, ThreadId>) -> Marker {
        Marker {
            class_1: s.class1_dscp.iter().fold(0, |m, d| m | 1 << d),
            threshold: s.burst_bytes(),
            interval: s.interval.into(),
            burst: s.burst,
            counters: vec![Bytes::default(); cores.iter().max().map_or(0, |c| c.index() + 1)],
            cores,
        }
    }

    /// The tags of a packet's first line and of its others. `at` is when it came, unless its bytes are not to count.
    pub fn tags(&mut self, queue: QueueId, dscp: u8, bytes: u32, at: Option<Time>) -> [Tag; 2] {
        let core = self.cores[queue];
        let burst = at.is_some_and(|now| self.is_burst(core, bytes, now));
        let class_1 = self.class_1 >> (dscp & 63) & 1 == 1;
        [true, false].map(|header| Tag::new(steered_to(core), class_1, header, burst))
    }

    /// What lines of `queue` that are of no packet carry: descriptors are steered as payload of its core.
    pub fn tag(&self, queue: QueueId) -> Tag {
        Tag::new(steered_to(self.cores[queue]), false, false, false)
    }

    fn is_burst(&mut self, core: ThreadId, bytes: u32, now: Time) -> bool {
        let (interval, most) = (now.0 / self.interval.0, self.threshold);
        let c = &mut self.counters[core.index()];
        if interval != c.interval {
            let before = interval == c.interval + 1 && c.bytes > most;
            *c = Bytes { interval, bytes: 0, before };
        }
        let was = c.bytes > most;
        c.bytes += u64::from(bytes);
        let above = c.bytes > most;
        match self.burst {
            Burst::Level => above,
            Burst::Edge => above && !was && !c.before,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_of_one_hash_share_a_queue_and_the_table_is_used_evenly() {
        let c = Classifier::spread(3);
        let queues: Vec<_> = (0..7).map(|f| c.queue(f, None)).collect();
        assert_eq!(queues, [0, 1, 2, 0, 1, 2, 0].map(QueueId));
        let queues: Vec<_> = (0..7).map(|h| c.queue(9, Some(h))).collect();
        assert_eq!(queues, [0, 1, 2, 0, 1, 2, 0].map(QueueId));
    }

    #[test]
    fn a_flow_that_is_directed_goes_to_its_queue_and_others_do_not() {
        let mut c = Classifier::spread(3);
        c.direct(4, QueueId(2));
        let queues: Vec<_> = (0..7).map(|f| c.queue(f, Some(f))).collect();
        assert_eq!(queues, [0, 1, 2, 0, 2, 2, 0].map(QueueId));
        assert_eq!(c.queue(4, None), QueueId(1), "a packet without addresses matches nothing");
    }

    /// Hashes of "Verifying the RSS hash calculation" (learn.microsoft.com), IPv4 with ports, that a table of 128 entries
    /// maps to four queues in turn.
    #[test]
    fn published_hashes_go_to_the_queues_of_a_table_in_turn() {
        let flows = [
            ("66.9.149.187:2794", 0x51cc_c178_u32, 0),
            ("199.92.111.2:14230", 0xc626_b0ea, 2),
            ("24.19.198.95:12898", 0x5c2b_394a, 2),
            ("38.27.205.30:48228", 0xafc7_327f, 3),
            ("153.39.163.191:44251", 0x10e8_28a2, 2),
        ];
        let c = Classifier::spread(4);
        for (i, (source, hash, queue)) in flows.into_iter().enumerate() {
            assert_eq!(c.queue(i as u32, Some(hash)), QueueId(queue), "{source}");
        }
    }

    /// idio.f.app_class, idio.f.header_mark, idio.f.dest_core: class from the table of DSCP values, core from the queue.
    #[test]
    fn lines_are_tagged_with_the_core_of_their_queue_and_the_class_of_their_dscp() {
        let s = IdioSpec { class1_dscp: vec![8, 63], ..IdioSpec::default() };
        let mut m = Marker::new(&s, IdVec::from_iter([4, 9].map(ThreadId)));
        for (queue, dscp, class_1) in [(0, 0, false), (0, 8, true), (1, 63, true), (1, 9, false)] {
            let core = [4, 9][usize::from(queue)];
            let [header, payload] = m.tags(QueueId(queue), dscp, 64, Some(Time::ZERO));
            assert_eq!((header.core(), header.is_header()), (Some(CoreId(core)), true));
            assert_eq!(
                (payload.core(), payload.is_header()),
                ((!class_1).then_some(CoreId(core)), false),
                "DSCP {dscp}"
            );
        }
    }

    /// idio.f.burst_detector: 1250 bytes in 1 us are no burst, 1251 are; each core has its counter, which each interval
    /// resets. Packets: time in ns, core, bytes, marked at the edge, marked by level.
    #[test]
    fn a_core_whose_bytes_exceed_the_threshold_of_an_interval_is_in_a_burst() {
        let packets = [
            (0, 0, 1250, false, false),
            (900, 1, 1250, false, false),   // another core's
            (999, 0, 1, true, true),        // 1251 in the first interval
            (999, 0, 500, false, true),     // the edge is over
            (1_000, 0, 1250, false, false), // a new interval
            (1_500, 0, 64, false, true),    // above, as it was before
            (2_100, 0, 64, false, false),
            (3_000, 0, 2000, true, true), // the interval before was below
            (4_000, 0, 2000, false, true),
            (6_000, 0, 2000, true, true), // nothing came in the interval before
        ];
        for burst in [Burst::Edge, Burst::Level] {
            let mut m = Marker::new(&IdioSpec { burst, ..IdioSpec::default() }, IdVec::from_iter([0, 1].map(ThreadId)));
            for (ns, core, bytes, edge, level) in packets {
                let [header, payload] = m.tags(QueueId(core), 0, bytes, Some(Time::ns(ns)));
                let expected = if burst == Burst::Edge { edge } else { level };
                assert_eq!(header.is_burst(), expected, "{burst:?} at {ns} ns");
                assert_eq!(payload.is_burst(), expected);
            }
        }
    }
}
