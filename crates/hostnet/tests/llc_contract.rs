//! Tests of the choices of a last-level cache: MSHRs, inclusion, reads of devices that install lines, and the order of
//! requests at a memory controller.

use crate::common::{close, get, simulate, small, Rig, LLC_SETS};
use hostnet::kernel::units::Size;
use hostnet::kernel::{CoreId, NodeId, RandomStream, TenantId, Time};
use hostnet::memory::dram::{DramQuirks, DramSpec, Overflow};
use hostnet::memory::protocol::CopyState;
use hostnet::memory::spec::{CleanVictim, DeviceRead, DeviceWays, HierarchySpec, LlcRole, StoreHit};
use hostnet::memory::stats::AccessClass;
use hostnet::memory::{Agent, Inbound, Outbound, Probe, Sender, Txn, TxnOp};
use proptest::prelude::*;
use std::collections::BTreeMap;

const ALL: u32 = 0b1111;

fn with(mshrs: u32) -> HierarchySpec {
    let mut h = small();
    h.llc.quirks.mshrs = mshrs;
    h
}

/// Sends all requests that `ask` puts into the calendar, and returns the time until all are complete.
fn time_of(r: &mut Rig, ask: impl FnOnce(&mut Rig)) -> Time {
    let start = r.m.now;
    ask(r);
    r.settle();
    r.answers.iter().map(|a| a.0).max().expect("answers") - start
}

/// 64 simultaneous reads of rows in banks that no other request uses.
fn reads_of_all_banks(r: &mut Rig) {
    for i in 0..64 {
        r.request(0, r.app + i % 4 + i / 4 * 512, TxnOp::Read);
    }
}

#[test]
fn a_slice_with_n_registers_serves_n_misses_in_the_time_of_one() {
    for n in [1, 2, 8] {
        let mut h = with(n);
        h.llc.quirks.clean_victim = CleanVictim::Drop; // a victim of an L2 takes an MSHR as well
        let mut r = Rig::new(&h, ALL);
        let t = r.m.mem.dram.timing().clone();
        let lat = r.m.mem.lat;
        let took = time_of(&mut r, reads_of_all_banks);
        // The MSHR is held from the look-up to the answer: activate, read, burst, and the path back.
        let held = Time(t.rcd + t.cl + t.burst) + lat.llc + lat.noc;
        let expected = held.0 * 64 / u64::from(n) + (lat.l1 + lat.l2 + lat.noc).0;
        assert!(close(took.0 as f64, expected as f64, 0.03), "{n}: {took:?}, expected {expected} ps");
        let reading: Vec<_> = r.m.mem.mshrs().unwrap().registers().map(|d| (d.peak(), d.used())).collect();
        assert_eq!(reading, [(n, 0)]);
        r.m.mem.check().unwrap();
    }
    let mut free = Rig::new(&with(0), ALL);
    let mut one = Rig::new(&with(1), ALL);
    let (free, one) = (time_of(&mut free, reads_of_all_banks), time_of(&mut one, reads_of_all_banks));
    assert!(one.0 > 20 * free.0, "{free:?} {one:?}");
}

/// 400 lines from the NIC, more than the cache holds.
fn burst(r: &mut Rig) {
    for i in 0..400 {
        r.device_writes_later(Agent::Nic, r.rx + i, Inbound::Llc { ways: ALL });
    }
}

#[test]
fn a_miss_holds_its_register_until_the_controller_has_taken_its_victim() {
    let narrow = DramSpec { channels: 1, wpq: 2, ..DramSpec::default() };
    for n in [1, 3, 6] {
        let mut r = Rig::with_memory(&with(n), ALL, &narrow);
        burst(&mut r);
        r.settle();
        assert_eq!(r.m.mem.stats.of(AccessClass::RxEvct), 400 - 64);
        // Each victim that waits for a memory-controller queue has an MSHR of its own.
        assert_eq!(r.m.mem.nodes[NodeId(0)].cha_writes.peak(), n);
        r.m.mem.check().unwrap();
    }
}

#[test]
fn while_a_slice_has_no_register_hits_wait_too() {
    let narrow = DramSpec { channels: 1, wpq: 2, ..DramSpec::default() };
    let hit = |mshrs| {
        let mut r = Rig::with_memory(&with(mshrs), ALL, &narrow);
        let line = r.app;
        r.write(line);
        r.m.mem.push_out(&mut r.m.cal, line, r.m.now);
        r.answers.clear();
        for i in 0..80 {
            // The written lines belong to other sets than the line.
            r.device_writes_later(Agent::Nic, r.rx + 16 * i + 1, Inbound::Llc { ways: ALL });
        }
        let start = r.m.now;
        r.request(0, line, TxnOp::Read);
        r.settle();
        let answer = r.answers.iter().find(|a| a.1.agent() == Agent::Core).expect("the hit").0;
        assert_eq!(r.m.mem.stats.tenants[TenantId(0)].llc_misses, 1, "the store before");
        (answer - start, r.m.mem.lat)
    };
    let (free, lat) = hit(100);
    assert_eq!(free, lat.l1 + lat.l2 + lat.noc + lat.llc + lat.noc);
    let (waits, _) = hit(2);
    assert!(waits > Time::ns(100) + free, "{waits:?}");
}

#[test]
fn a_burst_of_the_nic_ends_as_its_lines_do_when_they_come_one_by_one() {
    let narrow = DramSpec { channels: 1, wpq: 2, ..DramSpec::default() };
    for (n, installs) in [(1, false), (3, true), (32, false), (32, true)] {
        let mut h = with(n);
        if installs {
            h.llc.quirks.device_read = DeviceRead::Install;
        }
        let run = |whole: bool| {
            let mut r = Rig::with_memory(&h, ALL, &narrow);
            let mut dice = RandomStream::new(5, "bursts", 0);
            for round in 0..20 {
                for _ in 0..6 {
                    r.access(0, r.rx + dice.below(96), true);
                    r.access(0, r.tx + dice.below(96), true);
                }
                let from = dice.below(72);
                for lines in if whole { vec![(from, 24)] } else { (from..from + 24).map(|l| (l, 1)).collect() } {
                    let (at, n) = lines;
                    let (write, read) = (AccessClass::NicRxWr, AccessClass::NicTxRd);
                    let t = match round % 3 {
                        0 => Txn::dma_write(Sender::Nic(None), write, Inbound::Dram, r.rx + at, n, r.m.now),
                        1 => Txn::dma_write(Sender::Nic(None), write, Inbound::Llc { ways: 3 }, r.rx + at, n, r.m.now),
                        _ => Txn::dma_read(Sender::Nic(None), read, r.tx + at, n, r.m.now),
                    };
                    r.m.mem.send(&mut r.m.cal, r.m.now, t);
                }
                r.settle();
            }
            r.m.mem.check().unwrap();
            // Lines by the time of their answers.
            let mut done = BTreeMap::new();
            for (at, t) in r.answers.iter().filter(|a| a.1.agent() == Agent::Nic) {
                *done.entry(*at).or_insert(0) += t.lines;
            }
            let m = &r.m.mem;
            let transfers = format!("{:?} {:?} {:?}", m.stats.dma, m.stats.ledger, m.stats.dram);
            (done, transfers, m.paths.count, m.paths.sums(), m.paths.admitted)
        };
        assert_eq!(run(true), run(false), "{n} registers, {installs}");
    }
}

fn strict() -> HierarchySpec {
    let mut h = small();
    (h.llc.role, h.l2_inclusive) = (LlcRole::StrictlyInclusive, true);
    h
}

#[test]
fn what_an_inclusive_llc_evicts_leaves_the_private_caches_and_dirty_data_goes_to_memory() {
    for dirty in [false, true] {
        let mut r = Rig::new(&strict(), ALL);
        let line = r.app;
        r.access(0, line, dirty);
        assert_ne!(r.m.mem.private_copy(CoreId(0), line), CopyState::Nowhere);
        assert_eq!(r.m.mem.llc_copy(NodeId(0), line), CopyState::Clean);
        let before = r.m.mem.stats.of(AccessClass::OtherEvct);
        for i in 0..4 {
            // The writes go to the set of the line.
            r.device_writes(Agent::Nic, r.rx + 16 * i, 1, Inbound::Llc { ways: ALL });
        }
        assert_eq!(r.m.mem.copies(line).0, 0);
        assert_eq!(r.m.mem.stats.of(AccessClass::OtherEvct) - before, u64::from(dirty));
        r.m.mem.check().unwrap();
    }
}

#[test]
fn private_caches_never_hold_what_a_strictly_inclusive_llc_has_not() {
    for mshrs in [0, 2] {
        let mut h = strict();
        h.llc.quirks.mshrs = mshrs;
        let mut r = Rig::new(&h, ALL);
        r.m.mem.shadow = Some(Box::default());
        let mut rng = RandomStream::new(2, "inclusion", 0);
        for _ in 0..3000 {
            let mut asked = Vec::new(); // a core merges its requests for a line
            for _ in 0..1 + rng.below(6) {
                let lines = [r.rx, r.tx, r.app, r.shared];
                let line = lines[rng.below(4) as usize] + rng.below(60);
                if asked.contains(&line) {
                    continue;
                }
                asked.push(line);
                match rng.below(8) {
                    0 | 1 => r.device_writes_later(Agent::Nic, line, Inbound::Llc { ways: 0b0011 }),
                    n => {
                        let core = if line >= r.shared { rng.below(2) as u32 } else { 0 };
                        let op = if n < 5 { TxnOp::Read } else { TxnOp::Own };
                        let now = r.m.now;
                        let probe = r.m.mem.probe(&mut r.m.cal, CoreId(core as u16), line, op == TxnOp::Own, now);
                        if probe == Probe::Miss {
                            r.request(core, line, op);
                        }
                    }
                }
            }
            r.settle();
            for line in [r.rx, r.tx, r.app, r.shared].into_iter().flat_map(|b| b.span(60u64)) {
                let held = (0..2).any(|c| r.m.mem.private_copy(CoreId(c), line) != CopyState::Nowhere);
                assert!(!held || r.m.mem.llc_copy(NodeId(0), line) != CopyState::Nowhere, "line {line}");
                r.m.mem.coherent(line).unwrap();
            }
            r.m.mem.check().unwrap();
        }
        assert!(r.m.mem.stats.of(AccessClass::OtherEvct) > 1000, "lines were evicted");
    }
}

#[test]
fn a_device_s_read_that_installs_leaves_the_core_a_clean_copy_and_its_next_store_asks_the_llc() {
    let mut h = small();
    h.llc.quirks.store_hit = StoreHit::Retain;
    h.llc.quirks.device_read = DeviceRead::Install;
    let mut r = Rig::new(&h, ALL);
    let line = r.tx;
    r.write(line);
    let before = r.dram_transfers();
    r.device_reads(Agent::Nic, line, 1, Outbound::Nearest);
    assert_eq!(
        (r.m.mem.private_copy(CoreId(0), line), r.m.mem.llc_copy(NodeId(0), line)),
        (CopyState::Clean, CopyState::Dirty)
    );
    assert_eq!(r.read(line).probe, Probe::L1);
    let hits = r.m.mem.stats.tenants[TenantId(0)].llc_hits;
    assert_eq!(r.write(line).probe, Probe::Miss);
    assert_eq!(r.m.mem.stats.tenants[TenantId(0)].llc_hits, hits + 1);
    assert_eq!(r.write(line).probe, Probe::L1, "the core owns it now");
    assert_eq!(r.dram_transfers(), before);
    // The LLC loses the line: the core still has the data, and needs only permission to write.
    r.device_reads(Agent::Nic, line, 1, Outbound::Nearest);
    let now = r.m.now;
    assert_eq!(r.m.mem.force_out(&mut r.m.cal, line, now), Some(true));
    r.settle();
    let before = r.dram_transfers();
    assert_eq!(r.write(line).probe, Probe::Miss);
    assert_eq!((r.dram_transfers(), r.m.mem.private_copy(CoreId(0), line)), (before, CopyState::Dirty));
    // A line that no cache has comes from memory and stays, in the ways of device writes.
    r.m.mem.set_device_ways(0b0001);
    for i in 1..5 {
        r.device_reads(Agent::Nic, r.app + 16 * i + 5, 1, Outbound::Nearest);
    }
    let there = (1..5).filter(|i| r.m.mem.llc_copy(NodeId(0), r.app + 16 * i + 5) == CopyState::Clean).count();
    assert_eq!((there, r.m.mem.stats.of(AccessClass::NicTxRd)), (1, 4));
    r.m.mem.check().unwrap();
}

#[test]
fn ways_of_devices_count_from_the_end_that_is_chosen() {
    for (ways, first, inside) in [(DeviceWays::Lowest, 0b0011, 0b0011), (DeviceWays::Highest, 0b0011, 0b1100)] {
        let mut h = small();
        h.llc.quirks.device_ways = ways;
        let mut r = Rig::new(&h, ALL);
        assert_eq!(r.m.mem.device_way_mask(first), inside);
        for i in 0..200 {
            r.device_writes(Agent::Nic, r.rx + i, 1, Inbound::Llc { ways: first });
        }
        assert_eq!(r.m.mem.llc_rx_lines(first), (32, 0), "16 sets of two ways");
    }
}

/// A read that arrives while `n` writes of one bank wait for the memory-controller queue.
fn read_behind(overflow: Overflow, n: u64) -> Time {
    let d = DramSpec {
        channels: 1,
        rpq: 4,
        wpq: 4,
        quirks: DramQuirks {
            max_write_burst: 4,
            min_read_burst: 1,
            overflow,
            refresh: false,
            ..DramSpec::default().quirks
        },
        ..DramSpec::default()
    };
    let mut r = Rig::with_memory(&small(), ALL, &d);
    for i in 0..4 + n {
        r.device_writes_later(Agent::Nic, r.rx + 2048 * (i % 8) + i / 8, Inbound::Dram);
    }
    let start = r.m.now;
    r.request(0, r.app, TxnOp::Read);
    r.settle();
    r.m.mem.check().unwrap();
    r.answers.iter().find(|a| a.1.agent() == Agent::Core).expect("the read").0 - start
}

#[test]
fn at_a_shared_door_a_read_waits_behind_the_writes_that_came_before_it() {
    let (apart, shared) = (read_behind(Overflow::Separate, 24), read_behind(Overflow::Shared, 24));
    // All writes except those that the queue still holds were sent before the read enters: a burst of at least 2.5 ns
    // each.
    assert!(shared.0 > apart.0 + 20 * 2_500, "{apart:?} {shared:?}");
    let empty = |o| read_behind(o, 0);
    assert_eq!(empty(Overflow::Separate), empty(Overflow::Shared), "with room for all both are the same");
}

proptest! {
    /// Compares one set of four ways with a list from the least to the most recently used line. Private caches hold all
    /// lines of the test, so that only first accesses and evictions reach the LLC.
    #[test]
    fn whether_a_write_back_is_a_use_decides_who_leaves_next(
        uses in any::<bool>(), steps in prop::collection::vec((0..3u8, 0..8u64), 1..150),
    ) {
        let mut h = small();
        for private in [&mut h.l1d, &mut h.l2] {
            (private.size, private.ways) = (Size(16 * 64), 16);
        }
        (h.llc.quirks.store_hit, h.llc.quirks.write_back_uses) = (StoreHit::Retain, uses);
        let mut r = Rig::new(&h, ALL);
        let (mut private, mut set) = (BTreeMap::new(), Vec::new());
        for (what, i) in steps {
            let line = r.app + LLC_SETS * i;
            let in_set = set.iter().position(|l| *l == line);
            if what < 2 {
                r.access(0, line, what == 1);
                if let (false, Some(at)) = (private.contains_key(&line), in_set) {
                    set.remove(at);
                    set.push(line);
                }
                *private.entry(line).or_default() |= what == 1;
            } else {
                r.m.mem.push_out(&mut r.m.cal, line, r.m.now);
                r.settle();
                match (private.remove(&line), in_set) {
                    (Some(true), Some(at)) if uses => {
                        set.remove(at);
                        set.push(line);
                    }
                    (Some(true), None) => {
                        if set.len() == 4 {
                            set.remove(0);
                        }
                        set.push(line);
                    }
                    _ => {}
                }
            }
            let there = |i: &u64| r.m.mem.llc_copy(NodeId(0), r.app + LLC_SETS * i) != CopyState::Nowhere;
            let expected = |i: &u64| set.contains(&(r.app + LLC_SETS * i));
            let (seen, expected): (Vec<_>, Vec<_>) = ((0..8).filter(there).collect(), (0..8).filter(expected).collect());
            prop_assert_eq!(seen, expected);
        }
        r.m.mem.check().unwrap();
    }
}

const FORWARDER: &str = r#"
    name = "forwarder"
    platform = "sim24"
    placement = { policy = "ideal" }
    rings = { rx_buffers = 512, buffer_size = "64 B" }
    [[tenant]]
    name = "l3fwd"
    cores = 4
    app = { kind = "l3fwd", rules = 16 }
"#;

#[test]
fn even_gaps_to_the_shortest_queue_make_nobody_wait() {
    let run = |spread: &str| {
        let load = format!(
            "traffic = {{ arrivals = \"fixed\", rate = \"14 Mrps\", packet = \"64 B\", spread = \"{spread}\" }}
             run = {{ load = \"fixed\", requests = 8000 }}"
        );
        simulate(&(FORWARDER.replace("[[tenant]]", &format!("{load}\n[[tenant]]"))))
    };
    let (even, random) = (run("shortest_queue"), run("random"));
    // D/D/4 has no queue: a packet waits at most for the end of an empty poll, 200 instructions at two per cycle. With
    // a random choice of the core, some packets wait for the whole service of another.
    let spread = get(&even, "lat_p99_us") - get(&even, "lat_p50_us");
    assert!(spread < 0.0313 + 0.002, "{spread}");
    assert!(get(&random, "lat_p99_us") > get(&even, "lat_p99_us") + get(&even, "service_mean_us"));
}

#[test]
fn a_nic_whose_lines_go_on_one_by_one_delivers_as_many_packets() {
    let run = |mshrs: u32| {
        simulate(&format!(
            "{}
            [traffic]
            arrivals = \"fixed\"
            rate = \"10 Mrps\"
            packet = \"1 KiB\"
            [run]
            load = \"fixed\"
            requests = 8000
            [override.caches.llc]
            mshrs = {mshrs}",
            FORWARDER.replace("policy = \"ideal\"", "policy = \"ddio\"").replace("64 B", "1 KiB")
        ))
    };
    let (all, each) = (run(0), run(32));
    for o in [&all, &each] {
        assert!(close(get(o, "throughput_mrps"), 10.0, 0.01));
        assert_eq!(get(o, "drops"), 0.0);
    }
    // No line waits at this load.
    assert!(close(get(&each, "lat_p50_us"), get(&all, "lat_p50_us"), 0.03));
}

/// Number of packets per core in the system, by Little's law.
fn standing(queue_pair: &str) -> f64 {
    let o = simulate(&format!(
        "{}
        [traffic]
        arrivals = \"keep_depth\"
        depth = 100
        packet = \"64 B\"
        [run]
        load = \"saturate\"
        requests = 40000
        [override.queue_pair]
        {queue_pair}",
        FORWARDER
    ));
    get(&o, "throughput_mrps") * get(&o, "lat_mean_us") / 4.0
}

#[test]
fn a_standing_queue_that_counts_completions_holds_half_as_many_packets() {
    let plain = standing("send_completions = false");
    assert!((100.0..103.0).contains(&plain), "{plain}");
    // Completions replace the packets that are taken, and take hardly any time: the number of packets decreases evenly
    // from all to none.
    let counted = standing("send_completions = true\npoll_instructions = 4");
    assert!((45.0..58.0).contains(&counted), "{counted}");
}

#[test]
fn a_standing_queue_may_fill_its_ring() {
    let o = simulate(&format!(
        "{}
        [traffic]
        arrivals = \"keep_depth\"
        depth = 512
        packet = \"64 B\"
        [run]
        load = \"saturate\"
        requests = 8000",
        FORWARDER
    ));
    // Of 512 buffers the core holds one.
    let held = get(&o, "throughput_mrps") * get(&o, "lat_mean_us") / 4.0;
    assert!(held <= 513.0, "{held}");
}

#[test]
fn a_batch_is_off_the_queue_before_its_first_packet_is_served() {
    // On average (n + 1) / 2 packets of the batch remain.
    let more = standing("send_completions = false\nbatch = 32") - standing("send_completions = false");
    assert!(close(more, 15.5, 0.1), "{more}");
}

#[test]
fn a_batch_of_packets_passes_over_completions() {
    // 100 waiting packets become completions 32 at a time: 132, 100, 68 and 36 packets are there when a batch begins.
    // The fifth batch finds four packets, and takes all completions and the packets that arrive for them.
    let of = |what: &str| {
        standing(&format!(
            "send_completions = true\npoll_instructions = 4\nbatch = 32\nbatch_of = \"{what}\"\nbatch_polls = 2000"
        ))
    };
    let packets = of("packets");
    assert!(close(packets, (132.0 + 100.0 + 68.0 + 36.0) / 4.0 - 15.5, 0.03), "{packets}");
    // The fifth batch of entries is four packets, and as many more arrive for its completions as leave later.
    let entries = of("entries");
    assert!(entries < 0.97 * packets, "{entries}");
}

#[test]
fn rings_in_step_evict_into_one_rank_at_a_time() {
    let run = |start: &str| {
        simulate(&format!(
            "name = \"step\"
            platform = \"sim24\"
            placement = {{ policy = \"ddio\", ways = 2 }}
            rings = {{ rx_buffers = 1024, buffer_size = \"1 KiB\" }}
            tenant = [{{ name = \"t\", cores = 24, app = {{ kind = \"touchdrop\" }} }}]
            traffic = {{ arrivals = \"fixed\", spread = \"shortest_queue\", rate = \"60 Mpps\", packet = \"1 KiB\" }}
            run = {{ load = \"fixed\", requests = 40_000 }}
            [override.memory]
            mapping = \"RoRaCoBaCh\"
            [override.nic]
            ring_start = \"{start}\""
        ))
    };
    // All 16 lines of a packet go to DRAM: 61 of 102 GB/s. Rings are four ranks long, so that the same slots of all
    // rings lie in one rank, whose eight banks carry a third of the peak (94 clocks per write).
    let (apart, together) = (run("random"), run("first"));
    assert!(close(get(&apart, "mem_bw_gbs"), 60.0 * 16.0 * 64.0 / 1000.0, 0.01), "{}", get(&apart, "mem_bw_gbs"));
    assert!(get(&together, "throughput_mrps") < 0.67 * get(&apart, "throughput_mrps"));
}

/// Mean latency of a core that receives a packet every 2 us, and the core's service time.
fn batched(queue_pair: &str) -> (f64, f64) {
    let o = simulate(&format!(
        "{}
        [traffic]
        arrivals = \"fixed\"
        rate = \"2 Mrps\"
        spread = \"shortest_queue\"
        packet = \"64 B\"
        [run]
        load = \"fixed\"
        requests = 8000
        [override.queue_pair]
        batch = 8
        batch_of = \"packets\"
        {queue_pair}",
        FORWARDER
    ));
    (get(&o, "lat_mean_us"), get(&o, "service_mean_us"))
}

#[test]
fn a_batch_is_served_when_it_is_whole_or_has_waited_for_its_polls() {
    let (alone, service) = batched("batch_polls = 0");
    // The first of eight packets waits for seven gaps, the last for seven services.
    let whole = batched("batch_polls = 1000").0;
    assert!(close(whole - alone, 3.5 * (2.0 + service), 0.02), "{whole} {alone} {service}");
    // 64 polls of 100 instructions, two per cycle of 3.2 GHz, are 1 us: each packet is served alone.
    let late = batched("batch_polls = 64").0;
    assert!((late - alone - 1.0).abs() < 0.02, "{late} {alone}");
}

/// Hit rate of an LRU cache of `c` lines, by Che's approximation: `classes` holds pairs of (share of the accesses,
/// lines).
fn che(c: f64, classes: &[(f64, f64)]) -> f64 {
    let held = |t: f64| classes.iter().map(|(p, n)| n * (1.0 - (-p / n * t).exp())).sum::<f64>();
    let (mut lo, mut hi) = (0.0, 1e9);
    for _ in 0..200 {
        let t = (lo + hi) / 2.0;
        if held(t) < c {
            lo = t;
        } else {
            hi = t;
        }
    }
    classes.iter().map(|(p, n)| p * (1.0 - (-p / n * lo).exp())).sum()
}

#[test]
fn an_exact_match_table_misses_as_its_size_over_the_cache_s_says() {
    for (rules, entries) in [(65_536u32, 131_072u32), (32_768, 262_144)] {
        let o = simulate(&format!(
            r#"
            name = "exact"
            platform = "sim24"
            placement = {{ policy = "ideal" }}
            rings = {{ rx_buffers = 64, buffer_size = "64 B" }}
            [[tenant]]
            name = "l3fwd"
            cores = 1
            app = {{ kind = "l3fwd", rules = {rules}, table = "exact_match", table_entries = {entries} }}
            [traffic]
            arrivals = "keep_depth"
            depth = 2
            packet = "64 B"
            [run]
            load = "saturate"
            requests = 60000
            [override.caches.l2]
            size = "20 KiB"
            [override.caches.l1d]
            size = "3 KiB"
            [override.caches.llc]
            size = "1536 KiB"
            slices = 1
            replacement = "lru"
            role = "strictly_inclusive"
            "#
        ));
        // When n keys are distributed over m buckets at random, the number of keys in a bucket follows a Poisson
        // distribution with mean n / m, and the bucket is read in proportion.
        let (n, m) = (f64::from(rules), f64::from(entries) / 8.0);
        let mut with = m * (-n / m).exp();
        let mut classes = vec![(0.5, n)];
        for k in 1..20 {
            with *= n / m / f64::from(k);
            classes.push((0.5 * with * f64::from(k) / n, with));
        }
        // Hits in the private caches are not uses of the LLC's line; 64 transmit buffers of one line also stay in the
        // private caches.
        let hits = che(24_576.0 - 64.0, &classes);
        let expected = 2.0 * (1.0 - hits);
        let seen = get(&o, "acc_cpu_other_rd");
        assert!(close(seen, expected, 0.04), "{rules} of {entries}: {seen:.3}, expected {expected:.3}");
    }
}
