//! Lives of packets: on every stack their stages and parts tile the latency to the picosecond, and their latencies are
//! those that the run's own meters report.

use crate::common::{get, platforms};
use hdrhistogram::Histogram;
use hostnet::config::scenario::Load;
use hostnet::config::{resolve, Scenario};
use hostnet::host::{run, trace, Lived, Outcome, PacketTrace, Pick};
use hostnet::kernel::units::{OfferedRate, Rate, Span};
use hostnet::meter::life::{LifePart, RequestKind};
use std::collections::BTreeSet;

/// A scenario that comes with hostnet, with a short window.
fn shipped(name: &str, requests: u64) -> Scenario {
    let file = platforms().join(format!("../scenarios/{name}.toml"));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{name}: {e}"));
    let mut s = resolve(&text, file.to_str().expect("a path"), &[platforms()]).unwrap_or_else(|e| panic!("{e}"));
    s.run.requests = requests;
    s.run.warmup_requests = Some(requests / 4);
    s
}

/// A scenario at a fixed rate in place of its search.
fn at(name: &str, requests: u64, per_second: u64) -> Scenario {
    let mut s = shipped(name, requests);
    s.run.load = Load::Fixed;
    s.traffic.rate = Some(OfferedRate::Packets(Rate(per_second)));
    s
}

fn traced(s: &Scenario, pick: Pick) -> (Outcome, PacketTrace) {
    trace(s, pick, &mut |_| Ok(())).unwrap_or_else(|e| panic!("{}: {e}", s.name))
}

/// Checks that stages tile the life, and parts each stage.
fn tiles(p: &Lived) {
    let end = p.arrived + p.latency;
    assert_eq!(p.stages.first().map(|s| s.from.0), Some(p.arrived), "packet {}", p.number);
    assert_eq!(p.stages.last().map(|s| s.to.0), Some(end), "packet {}", p.number);
    assert!(p.stages.windows(2).all(|w| w[0].to == w[1].from), "packet {}: {:?}", p.number, p.stages);
    for s in &p.stages {
        assert!(s.from < s.to);
        assert_eq!((s.parts[0].from, s.parts[s.parts.len() - 1].to), (s.from, s.to), "{s:?}");
        assert!(s.parts.windows(2).all(|w| w[0].to == w[1].from), "{s:?}");
        assert!(s.parts.iter().all(|x| x.from < x.to), "{s:?}");
    }
    let sum: u64 = p.stages.iter().flat_map(|s| &s.parts).map(|x| x.to.0 - x.from.0).sum();
    assert_eq!(sum, p.latency);
}

/// Stages that packets of a run pass.
fn stages(t: &PacketTrace) -> BTreeSet<LifePart> {
    t.packets.iter().flat_map(|p| &p.stages).map(|s| s.part).collect()
}

/// The quantiles that a meter of the engine reports, from latencies in ps: it counts whole nanoseconds in a histogram of
/// three digits.
fn metered(latencies: &[u64]) -> Histogram<u64> {
    let mut h = Histogram::new_with_bounds(1, 1 << 40, 3).expect("valid bounds");
    latencies.iter().for_each(|ps| h.saturating_record((ps / 1000).max(1)));
    h
}

fn check(s: &Scenario, expected: &[LifePart]) -> (Outcome, PacketTrace) {
    let plain = run(s, &mut |_| Ok(())).unwrap_or_else(|e| panic!("{}: {e}", s.name));
    let (followed, t) = traced(s, Pick::First(3000));
    let bits = |o: &Outcome| o.values.0.iter().map(|v| v.map(f64::to_bits)).collect::<Vec<_>>();
    assert_eq!(bits(&plain), bits(&followed), "{}: a followed run differs", s.name);
    assert!(t.packets.len() >= 1000, "{}: {} packets", s.name, t.packets.len());
    t.packets.iter().for_each(tiles);
    assert!(t.packets.iter().enumerate().all(|(i, p)| p.latency == t.latencies[p.number - 1] && p.number == i + 1));
    assert!(t.packets.windows(2).all(|w| w[0].arrived <= w[1].arrived));
    let passed = stages(&t);
    for part in expected {
        assert!(passed.contains(part), "{}: no packet passes {}; {passed:?}", s.name, part.key());
    }
    // Each request that served a packet did so while the packet lived.
    for p in &t.packets {
        assert!(!p.requests.is_empty(), "{}: packet {} moved no line", s.name, p.number);
        for r in p.requests.iter().filter(|r| r.kind != RequestKind::Core) {
            assert!(p.arrived <= r.start().0 && r.end().0 <= p.arrived + p.latency, "{r:?}");
        }
    }
    (plain, t)
}

/// Checks the latencies of all packets against the run's own percentiles and mean.
fn agrees_with_the_meters(o: &Outcome, t: &PacketTrace) {
    let h = metered(&t.latencies);
    let quantiles = [("lat_p50_us", 0.5), ("lat_p90_us", 0.9), ("lat_p99_us", 0.99), ("lat_p999_us", 0.999)];
    for (name, q) in quantiles {
        assert_eq!(get(o, name), h.value_at_quantile(q) as f64 / 1e3, "{name}");
    }
    assert_eq!(get(o, "lat_mean_us"), h.mean() / 1e3);
    assert_eq!(get(o, "lat_max_us"), h.max() as f64 / 1e3);
}

const RECEIVE: [LifePart; 3] = [LifePart::NicReceive, LifePart::Placement, LifePart::Announcement];

#[test]
fn queue_pairs_on_the_chip() {
    let (o, t) = check(
        &shipped("l3fwd", 4000),
        &[&RECEIVE[..], &[LifePart::RingWait, LifePart::Service, LifePart::Doorbell]].concat(),
    );
    agrees_with_the_meters(&o, &t);
    assert!(stages(&t).contains(&LifePart::PayloadRead) && !stages(&t).contains(&LifePart::DescriptorFetch));
}

#[test]
fn a_poll_mode_driver_that_runs_each_packet_to_completion() {
    let expected =
        [&RECEIVE[..], &[LifePart::RingWait, LifePart::Service, LifePart::Doorbell, LifePart::Transmission]].concat();
    let (o, t) = check(&shipped("ddio-bench", 4000), &expected);
    agrees_with_the_meters(&o, &t);
}

#[test]
fn a_poll_mode_driver_that_serves_bursts() {
    let expected = [LifePart::CoreQueue, LifePart::Service, LifePart::BurstEnd, LifePart::DescriptorFetch];
    let (o, t) = check(&shipped("l2fwd-bursts", 4000), &[&RECEIVE[..], &expected].concat());
    agrees_with_the_meters(&o, &t);
}

#[test]
fn sockets_of_the_kernel() {
    let s = at("memcached-kernel", 3000, 100_000);
    let (o, t) = check(&s, &[&RECEIVE[..], &[LifePart::RingWait, LifePart::CoreQueue, LifePart::Service]].concat());
    agrees_with_the_meters(&o, &t);
}

#[test]
fn central_dispatch() {
    let (o, t) = check(&shipped("dispatch", 4000), &[LifePart::RingWait, LifePart::CoreQueue, LifePart::Service]);
    agrees_with_the_meters(&o, &t);
}

#[test]
fn a_coherent_overlay_before_a_nic() {
    let expected = [
        LifePart::RingWait,
        LifePart::HostDiscovery,
        LifePart::Service,
        LifePart::NicDiscovery,
        LifePart::Transmission,
    ];
    let (o, t) = check(&shipped("kv-overlay", 3000), &expected);
    agrees_with_the_meters(&o, &t);
}

#[test]
fn packets_of_coherent_queue_pairs() {
    for name in ["ccnic-loopback", "ccnic-forward"] {
        let s = shipped(name, 3000);
        let (o, t) = check(&s, &[LifePart::HostDiscovery, LifePart::NicDiscovery]);
        // The interface meters round trips in picoseconds.
        let mut h: Histogram<u64> = Histogram::new_with_bounds(1, 1 << 44, 3).expect("valid bounds");
        t.latencies.iter().for_each(|ps| h.saturating_record(*ps));
        for (metric, q) in [("rtt_median_us", 0.5), ("rtt_p90_us", 0.9), ("rtt_p99_us", 0.99)] {
            assert_eq!(get(&o, metric), h.value_at_quantile(q) as f64 / 1e6, "{name}: {metric}");
        }
        assert_eq!(get(&o, "rtt_min_ns"), h.min() as f64 / 1e3, "{name}");
    }
}

#[test]
fn a_search_follows_packets_of_the_rate_that_it_found() {
    let s = shipped("testpmd", 3000);
    let (o, t) = traced(&s, Pick::Slowest(20));
    agrees_with_the_meters(&o, &t);
    assert_eq!(t.packets.len(), 20);
    t.packets.iter().for_each(tiles);
}

#[test]
fn packets_are_picked_by_number_and_by_latency() {
    let s = shipped("l3fwd", 3000);
    let all = traced(&s, Pick::First(usize::MAX)).1;
    let mut sorted = all.latencies.clone();
    sorted.sort_unstable();
    let one = |pick| {
        let (_, t) = traced(&s, pick);
        let [p] = &t.packets[..] else { panic!("{pick:?}: {} packets", t.packets.len()) };
        tiles(p);
        assert_eq!(t.ended, all.ended);
        (p.number, p.latency)
    };
    assert_eq!(one(Pick::Number(17)), (17, all.latencies[16]));
    // Nearest rank: the smallest latency that at least this share of the packets does not exceed.
    let rank = |q: f64| sorted[(q * sorted.len() as f64).ceil() as usize - 1];
    assert_eq!(one(Pick::Quantile(0.5)).1, rank(0.5));
    assert_eq!(one(Pick::Quantile(0.99)).1, rank(0.99));
    assert_eq!(one(Pick::Slowest(1)).1, sorted[sorted.len() - 1]);
    let drawn = traced(&s, Pick::Random(50)).1;
    let distinct: BTreeSet<_> = drawn.packets.iter().map(|p| p.number).collect();
    assert_eq!(distinct.len(), 50);
    assert!(drawn.packets.iter().all(|p| p.latency == all.latencies[p.number - 1]));
}

#[test]
fn what_cannot_be_followed_is_refused_in_a_sentence() {
    let refusal = |s: &Scenario, pick| trace(s, pick, &mut |_| Ok(())).expect_err("a refusal");
    let s = shipped("l3fwd", 1000);
    let why = refusal(&s, Pick::Number(10_000));
    assert!(why.starts_with("packet 10000 is not within 1 to "), "{why}");
    assert!(refusal(&shipped("directed-rx", 1000), Pick::First(1)).contains("directed test"));
    let mut alone = shipped("quadrant1", 1000);
    alone.run.time = Span(20_000_000);
    assert!(refusal(&alone, Pick::First(1)).contains("no packet"));
}
