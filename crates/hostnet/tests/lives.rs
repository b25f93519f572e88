//! Lives of packets: on every stack their stages and parts tile the latency to the picosecond, and their latencies are
//! those that the run's own meters report.

use crate::common::{get, platforms};
use hdrhistogram::Histogram;
use hostnet::app::AppSpec;
use hostnet::config::scenario::{ArrivalProcess, Load};
use hostnet::config::{resolve, Scenario};
use hostnet::host::{run, trace, Lived, Outcome, PacketTrace, Pick};
use hostnet::kernel::units::{OfferedRate, Rate, Span};
use hostnet::kernel::Time;
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
    s.traffic.set_rate(OfferedRate::Packets(Rate(per_second)));
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
    check_of(s, expected, 1000)
}

fn check_of(s: &Scenario, expected: &[LifePart], least: usize) -> (Outcome, PacketTrace) {
    let plain = run(s, &mut |_| Ok(())).unwrap_or_else(|e| panic!("{}: {e}", s.name));
    let (followed, t) = traced(s, Pick::First(3000));
    let bits = |o: &Outcome| o.values.0.iter().map(|v| v.map(f64::to_bits)).collect::<Vec<_>>();
    assert_eq!(bits(&plain), bits(&followed), "{}: a followed run differs", s.name);
    assert!(t.packets.len() >= least, "{}: {} packets", s.name, t.packets.len());
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

/// Time in which a core of the scenario's platform executes this many instructions, in ps.
fn of_instructions(s: &Scenario, n: u32) -> f64 {
    f64::from(n) / s.platform.core.compute_ipc / s.platform.core.clock.0 as f64 * 1e12
}

/// Durations of a stage of each packet that passes it.
fn times(t: &PacketTrace, part: LifePart) -> Vec<u64> {
    let of = |p: &Lived| {
        let found: Vec<u64> = p.stages.iter().filter(|s| s.part == part).map(|s| s.to.0 - s.from.0).collect();
        (!found.is_empty()).then(|| found.iter().sum())
    };
    t.packets.iter().filter_map(of).collect()
}

const SOCKET: [LifePart; 4] = [LifePart::RingWait, LifePart::Protocol, LifePart::SocketWait, LifePart::Service];

/// A driver that takes 39,600 instructions for a frame and one frame in a poll: no segment passes the protocol in less, and
/// the quickest one adds a dozen accesses to it.
#[test]
fn segments_of_the_kernel_s_tcp() {
    let text = "name = \"t\"\nplatform = \"cascadelake\"\nplacement = { policy = \"dma\" }\ntraffic = { arrivals = \"none\", dctcp = \
                {} }\noverride.tcp = { frame = 39600, segment = 0, receive_buffer = \"128 KiB\", quirks.poll_budget = 1 }\nrun = { load = \"saturate\", warmup_time = \"300 us\", time = \
                \"400 us\" }\n[[tenant]]\nname = \"iperf\"\ncores = 2\napp = { kind = \"tcp_receive\" }\n[[peripheral]]\nkind = \
                \"ethernet\"";
    let s = resolve(text, "t.toml", &[platforms()]).unwrap_or_else(|e| panic!("{e}"));
    let (o, t) = check_of(&s, &[&RECEIVE[1..2], &SOCKET[..]].concat(), 50);
    let (least, quickest) =
        (of_instructions(&s, 39_600), *times(&t, LifePart::Protocol).iter().min().expect("some") as f64);
    assert!(quickest >= least && quickest < least + 1e6, "{quickest} ps, of which {least} are the driver's");
    // The application has received what ended in the window: 8948 bytes a segment.
    let received = get(&o, "net_gbs") * 400e3 / 8948.0;
    assert!((t.ended as f64 - received).abs() < 1.5, "{} {received}", t.ended);
}

/// A frame of 1518 bytes has 24 lines; the copy of those behind the head cannot be quicker than its instructions.
#[test]
fn segments_behind_descriptor_rings() {
    let mut s = shipped("iperf", 1000);
    (s.run.warmup_time, s.run.time) = (Some(Span(3_000_000_000)), Span(1_000_000_000));
    let (_, t) = check_of(&s, &[&RECEIVE[..], &SOCKET[..]].concat(), 80);
    let tcp = &s.platform.tcp.as_ref().expect("a kernel").quirks;
    let copy = tcp.piece + 20 * tcp.line;
    let quickest = *times(&t, LifePart::Service).iter().min().expect("some") as f64;
    assert!(quickest >= of_instructions(&s, copy), "{quickest} ps");
}

/// The fast path takes 30,000 instructions for a segment with data, the application's entries come back, and the last
/// byte of the reply leaves in a frame of 122 bytes at least.
#[test]
fn segments_of_tcp_as_a_service() {
    for name in ["tcp-echo-cx6", "tcp-echo-overlay"] {
        let mut s = shipped(name, 1500);
        let AppSpec::TcpEcho(echo) = &mut s.tenants[0].app else { panic!("an echo server") };
        (echo.flows, echo.pipelined, echo.quirks.data) = (8, 2, 30_000);
        s.traffic.process = ArrivalProcess::Closed { outstanding: 16, timeout: s.traffic.timeout() };
        let parts = [LifePart::RingWait, LifePart::Protocol, LifePart::EntryWait, LifePart::Service];
        let (_, t) =
            check_of(&s, &[&RECEIVE[..], &parts[..], &[LifePart::SocketWait, LifePart::Transmission]].concat(), 500);
        assert_eq!(stages(&t).contains(&LifePart::HostDiscovery), name.ends_with("overlay"));
        let least = of_instructions(&s, 30_000);
        let received = |p: &Lived| p.stages.iter().find(|s| s.part == LifePart::Protocol).map(|s| s.to.0 - s.from.0);
        let quickest = t.packets.iter().filter_map(received).min().expect("some") as f64;
        assert!(
            quickest >= least && quickest < 1.3 * least,
            "{name}: {quickest} ps, of which {least} are the segment's"
        );
    }
}

/// Both hosts of a round trip: its latency is the one that the client meters, and each frame flies for the link's
/// propagation, exactly.
#[test]
fn round_trips_of_a_client() {
    for (name, stack, rate) in [("testpmd", "", 500_000), ("memcached-dpdk", "stack = \"kernel\"\n", 50_000)] {
        let file = platforms().join(format!("../scenarios/{name}.toml"));
        let text = std::fs::read_to_string(&file).expect("a scenario");
        let client = format!(
            "\n[client]\ncores = 2\n{stack}app = {{ kind = \"load_generator\", request_instructions = 2000 }}\n"
        );
        let mut s = resolve(&(text + &client), file.to_str().expect("a path"), &[platforms()])
            .unwrap_or_else(|e| panic!("{e}"));
        (s.run.load, s.run.requests, s.run.warmup_requests) = (Load::Fixed, 1500, Some(300));
        s.traffic.set_rate(OfferedRate::Packets(Rate(rate)));
        let parts = [LifePart::Request, LifePart::Doorbell, LifePart::Flight, LifePart::RingWait, LifePart::Service];
        let (o, t) = check(&s, &[&RECEIVE[1..], &parts[..]].concat());
        let h = metered(&t.latencies);
        for (metric, q) in [("rtt_median_us", 0.5), ("rtt_p90_us", 0.9), ("rtt_p99_us", 0.99)] {
            assert_eq!(get(&o, metric), h.value_at_quantile(q) as f64 / 1e3, "{name}: {metric}");
        }
        // Threads of both hosts were seen at work, those of the server first.
        let threads: BTreeSet<bool> = t.threads.iter().map(|x| Some(x.thread) < t.client).collect();
        assert_eq!((threads.len(), t.queues.is_empty()), (2, false), "{name}");
        let nic = s.peripherals[0].ethernet().expect("a NIC");
        let flight = Time::from(nic.propagation).0;
        assert!(times(&t, LifePart::Flight).iter().all(|ps| *ps == 2 * flight), "{name}: {flight}");
        let least = of_instructions(&s, 2000);
        assert!(times(&t, LifePart::Request).iter().all(|ps| *ps as f64 >= least), "{name}: {least} ps");
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
