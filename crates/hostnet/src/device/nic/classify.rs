//! Packet classification in the NIC: the choice of a receive queue, and the steering tags that the packet's lines carry
//! for placement.

use crate::kernel::{CoreId, IdVec, Int, QueueId, Time};
use crate::memory::Tag;
use crate::placement::idio::{BurstMarking, IdioSpec};

use std::collections::HashMap;

/// Receive-side scaling: a table of queues that is indexed by the flow's hash. Every packet carries its queue's
/// steering tag towards memory.
#[derive(Clone, Debug)]
pub struct Classifier {
    /// Queues of each function of the NIC, of which each tenant has one: the first queue, and their number.
    functions: Vec<(QueueId, usize)>,
    queues: usize,
    /// Flow director: flows of a function with an explicit queue, which is looked up before the hash is used.
    exact: HashMap<(u8, u32), QueueId>,
}

impl Classifier {
    /// A single function, which maps hash `i` to queue `i` modulo `queues`.
    pub fn spread(queues: usize) -> Classifier {
        Classifier { functions: vec![(QueueId(0), queues)], queues, exact: HashMap::new() }
    }

    /// Divides the queues into functions with these numbers of queues, in order, so that a hash selects among the queues
    /// of the packet's function.
    ///
    /// # Panics
    /// Panics when the functions do not have all queues.
    pub fn divide(&mut self, queues: &[usize]) {
        let mut next = 0;
        let function = |n: &usize| {
            next += n;
            (QueueId::new(next - n), *n)
        };
        self.functions = queues.iter().map(function).collect();
        assert_eq!(next, self.queues, "every queue belongs to a function");
    }

    /// Directs packets of `flow` to `queue` of `function` from now on.
    pub fn direct(&mut self, function: u8, flow: u32, queue: QueueId) {
        let first = self.functions[usize::from(function)].0;
        self.exact.insert((function, flow), QueueId::new(first.index() + queue.index()));
    }

    /// Queue of a packet of `flow` with RSS hash `hash` for `function`. A packet without a hash uses its flow number as
    /// the number of its queue, and has no addresses for the flow director to match.
    #[inline]
    pub fn queue(&self, function: u8, flow: u32, hash: Option<u32>) -> QueueId {
        let Some(hash) = hash else { return QueueId::new(flow.to_usize() % self.queues) };
        if !self.exact.is_empty() {
            if let Some(queue) = self.exact.get(&(function, flow)) {
                return *queue;
            }
        }
        let (first, n) = self.functions[usize::from(function)];
        QueueId::new(first.index() + hash.to_usize() % n)
    }
}

/// Bytes that arrived for one core in the current interval.
#[derive(Clone, Copy, Debug, Default)]
struct ByteCounter {
    interval: u64,
    bytes: u64,
    /// Whether the bytes of the previous interval exceeded the threshold.
    before: bool,
}

/// IDIO's classifier (section V-A): it derives a packet's class from the DSCP and its core from the queue, and detects
/// whether a burst to that core has begun.
#[derive(Clone, Debug)]
pub struct Marker {
    /// Bit mask with a bit set for each DSCP of class 1.
    class_1: u64,
    threshold: u64,
    interval: Time,
    burst: BurstMarking,
    /// Core that serves each queue.
    cores: IdVec<QueueId, CoreId>,
    counters: IdVec<CoreId, ByteCounter>,
}

impl Marker {
    /// A classifier for queues that threads of `cores` serve. Threads of one core share its counter and its tag.
    pub fn new(s: &IdioSpec, cores: IdVec<QueueId, CoreId>) -> Marker {
        Marker {
            class_1: s.class1_dscp.iter().fold(0, |m, d| m | 1 << d),
            threshold: s.burst_bytes(),
            interval: s.interval.into(),
            burst: s.quirks.burst,
            counters: IdVec::filled(ByteCounter::default(), cores.iter().max().map_or(0, |c| c.index() + 1)),
            cores,
        }
    }

    /// Steering tags of a packet's first line and of its other lines. `at` is the packet's arrival time; when `at` is
    /// None, the packet's bytes do not count towards a burst.
    pub fn tags(&mut self, queue: QueueId, dscp: u8, bytes: u32, at: Option<Time>) -> [Tag; 2] {
        let core = self.cores[queue];
        let burst = at.is_some_and(|now| self.is_burst(core, bytes, now));
        let class_1 = self.class_1 >> (dscp & 63) & 1 == 1;
        [true, false].map(|header| Tag::new(core, class_1, header, burst))
    }

    /// Steering tag for lines of `queue` that belong to no packet: descriptors are steered like payload of the queue's
    /// core.
    pub fn tag(&self, queue: QueueId) -> Tag {
        Tag::new(self.cores[queue], false, false, false).of_descriptor()
    }

    fn is_burst(&mut self, core: CoreId, bytes: u32, now: Time) -> bool {
        let (interval, most) = (now.0 / self.interval.0, self.threshold);
        let c = &mut self.counters[core];
        if interval != c.interval {
            let before = interval == c.interval + 1 && c.bytes > most;
            *c = ByteCounter { interval, bytes: 0, before };
        }
        let was = c.bytes > most;
        c.bytes += u64::from(bytes);
        let above = c.bytes > most;
        match self.burst {
            BurstMarking::Level => above,
            BurstMarking::Edge => above && !was && !c.before,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::idio::IdioQuirks;

    #[test]
    fn flows_of_one_hash_share_a_queue_and_the_table_is_used_evenly() {
        let c = Classifier::spread(3);
        let queues: Vec<_> = (0..7).map(|f| c.queue(0, f, None)).collect();
        assert_eq!(queues, [0, 1, 2, 0, 1, 2, 0].map(QueueId));
        let queues: Vec<_> = (0..7).map(|h| c.queue(0, 9, Some(h))).collect();
        assert_eq!(queues, [0, 1, 2, 0, 1, 2, 0].map(QueueId));
    }

    #[test]
    fn a_flow_that_is_directed_goes_to_its_queue_and_others_do_not() {
        let mut c = Classifier::spread(3);
        c.direct(0, 4, QueueId(2));
        let queues: Vec<_> = (0..7).map(|f| c.queue(0, f, Some(f))).collect();
        assert_eq!(queues, [0, 1, 2, 0, 2, 2, 0].map(QueueId));
        assert_eq!(c.queue(0, 4, None), QueueId(1), "a packet without addresses matches nothing");
    }

    /// Two functions of one and of two queues: hashes spread over a function's own queues, and so do rules.
    #[test]
    fn a_function_has_queues_of_its_own() {
        let mut c = Classifier::spread(3);
        c.divide(&[1, 2]);
        c.direct(1, 4, QueueId(1));
        let of = |function| (0..5).map(|h| c.queue(function, h, Some(h)).0).collect::<Vec<_>>();
        assert_eq!((of(0), of(1)), (vec![0, 0, 0, 0, 0], vec![1, 2, 1, 2, 2]));
        assert_eq!(c.queue(1, 0, None), QueueId(0), "a packet without addresses names its queue");
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
            assert_eq!(c.queue(0, i as u32, Some(hash)), QueueId(queue), "{source}");
        }
    }

    /// The class comes from the table of DSCP values, the core from the queue.
    #[test]
    fn lines_are_tagged_with_the_core_of_their_queue_and_the_class_of_their_dscp() {
        let s = IdioSpec { class1_dscp: vec![8, 63], ..IdioSpec::default() };
        let mut m = Marker::new(&s, IdVec::from_iter([4, 9].map(CoreId)));
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

    /// 1250 bytes in 1 us are not a burst, but 1251 bytes are; each core has its own counter, which every interval
    /// resets. Packets: time in ns, core, bytes, marked with `BurstMarking::Edge`, marked with `BurstMarking::Level`.
    #[test]
    fn a_core_whose_bytes_exceed_the_threshold_of_an_interval_is_in_a_burst() {
        let packets = [
            (0, 0, 1250, false, false),
            (900, 1, 1250, false, false),   // the packet belongs to another core
            (999, 0, 1, true, true),        // 1251 in the first interval
            (999, 0, 500, false, true),     // the edge is over
            (1_000, 0, 1250, false, false), // a new interval
            (1_500, 0, 64, false, true),    // above the threshold, as in the interval before
            (2_100, 0, 64, false, false),
            (3_000, 0, 2000, true, true), // the interval before was below the threshold
            (4_000, 0, 2000, false, true),
            (6_000, 0, 2000, true, true), // no packet arrived in the interval before
        ];
        for burst in [BurstMarking::Edge, BurstMarking::Level] {
            let mut m = Marker::new(
                &IdioSpec { quirks: IdioQuirks { burst, ..IdioSpec::default().quirks }, ..IdioSpec::default() },
                IdVec::from_iter([0, 1].map(CoreId)),
            );
            for (ns, core, bytes, edge, level) in packets {
                let [header, payload] = m.tags(QueueId(core), 0, bytes, Some(Time::ns(ns)));
                let expected = if burst == BurstMarking::Edge { edge } else { level };
                assert_eq!(header.is_burst(), expected, "{burst:?} at {ns} ns");
                assert_eq!(payload.is_burst(), expected);
            }
        }
    }

    /// Two queues whose threads run on one core have 700 bytes each in an interval, 1400 together, which are a burst to
    /// that core.
    #[test]
    fn queues_of_one_core_share_its_tag_and_its_burst() {
        let mut m = Marker::new(&IdioSpec::default(), IdVec::from_iter([5, 5].map(CoreId)));
        let [first, _] = m.tags(QueueId(0), 0, 700, Some(Time::ZERO));
        let [second, _] = m.tags(QueueId(1), 0, 700, Some(Time::ZERO));
        assert_eq!(
            (first.core(), second.core(), m.tag(QueueId(1)).core()),
            (Some(CoreId(5)), Some(CoreId(5)), Some(CoreId(5)))
        );
        assert_eq!((first.is_burst(), second.is_burst()), (false, true));
    }
}
