//! Tests of the load generator: requested rates, sizes and flows, closed loops, round trips, the bandwidth test, and
//! captures of returned packets.

use crate::common::{close, get, platforms, refusal, scenario, simulate};
use hostnet::host::{run, run_and_capture, Outcome};
use hostnet::traffic::frame;
use hostnet::traffic::pcap::{Capture, CaptureOptions, Wanted};
use std::path::{Path, PathBuf};

/// A forwarder on two cores.
struct Load<'a> {
    app: &'a str,
    rings: &'a str,
    traffic: &'a str,
    run: &'a str,
}

impl Default for Load<'_> {
    fn default() -> Self {
        Load {
            app: r#"kind = "l3fwd", rules = 64, zero_copy = true"#,
            rings: "rx_buffers = 256",
            traffic: r#"arrivals = "fixed", rate = "1 Mpps", packet = "64 B""#,
            run: r#"load = "fixed", requests = 8000, warmup_requests = 2000"#,
        }
    }
}

impl Load<'_> {
    fn text(&self) -> String {
        let Load { app, rings, traffic, run } = self;
        format!(
            r#"
            name = "load"
            platform = "sim24"
            placement = {{ policy = "ddio", ways = 2 }}
            rings = {{ {rings}, buffer_size = "2 KiB" }}
            tenant = [{{ name = "t", cores = 2, app = {{ {app} }} }}]
            traffic = {{ {traffic} }}
            run = {{ {run} }}
            "#
        )
    }
    fn go(&self) -> Outcome {
        simulate(&self.text())
    }
}

fn rows(o: &Outcome, table: &str) -> Vec<Vec<serde_json::Value>> {
    let rows = o.tables[table]["rows"].as_array().unwrap_or_else(|| panic!("no table {table}"));
    rows.iter().map(|r| r.as_array().expect("a row").clone()).collect()
}

#[test]
fn a_rate_in_bits_is_that_of_the_frames_whatever_their_sizes() {
    let one = r#"arrivals = "fixed", rate = "2 Gbps", packet = "1518 B""#;
    let mix = r#"arrivals = "fixed", rate = "2 Gbps", sizes = "imix""#;
    let own = r#"arrivals = "fixed", rate = "2 Gbps", sizes = [{ size = "64 B", weight = 1 }, { size = "512 B", weight = 3 }]"#;
    // Means: 1518; (7 x 64 + 4 x 594 + 1518) / 12; (64 + 3 x 512) / 4.
    for (traffic, mean) in [(one, 1518.0), (mix, 361.833), (own, 400.0)] {
        let o = Load { traffic, ..Load::default() }.go();
        assert!(close(get(&o, "offered_mrps"), 2e3 / 8.0 / mean, 0.002), "{traffic}: {}", get(&o, "offered_mrps"));
        // Sizes of 8000 packets, whose standard deviation is 1.1 of their mean: 2.5 standard errors are 3 %.
        assert!(close(get(&o, "offered_gbps"), 2.0, 0.03), "{traffic}: {}", get(&o, "offered_gbps"));
        assert!(close(get(&o, "achieved_gbps"), get(&o, "offered_gbps"), 0.01), "{traffic}");
    }
}

#[test]
fn one_flow_keeps_one_core_busy_and_many_keep_all() {
    let busy = |more: &str| {
        let traffic = format!(r#"arrivals = "poisson", rate = "14 Mpps", packet = "64 B", {more}"#);
        let o = Load { traffic: &traffic, ..Load::default() }.go();
        (get(&o, "cores_busy"), get(&o, "drop_rate"))
    };
    // A core takes about 0.1 us for a packet.
    for one in ["flows = 1", r#"protocol = "ethernet""#] {
        let (cores, lost) = busy(one);
        assert!(cores <= 1.0 && lost > 0.1, "{one}: {cores} cores, {lost} lost");
    }
    let (cores, lost) = busy("flows = 4096");
    assert!(cores > 1.2 && lost == 0.0, "{cores} cores, {lost} lost");
}

/// Little's law of a closed loop: requests under way = rate x round trip.
#[test]
fn a_closed_loop_keeps_as_many_requests_under_way_as_it_was_told() {
    for n in [1, 7, 40] {
        for link in ["", r#", link = { rate = "100 Gbps", propagation = "2 us" }"#] {
            let traffic = format!(r#"arrivals = "closed", outstanding = {n}, packet = "256 B"{link}"#);
            let o = Load { traffic: &traffic, ..Load::default() }.go();
            let under_way = get(&o, "throughput_mrps") * get(&o, "rtt_mean_us");
            assert!(close(under_way, f64::from(n), 0.01), "{n}{link}: {under_way}");
        }
    }
}

#[test]
fn a_closed_loop_gives_up_requests_that_nobody_answers() {
    let traffic = r#"arrivals = "closed", outstanding = 3, timeout = "10 us", packet = "256 B""#;
    // A scenario with such an application is refused, because it has no purpose but to test this.
    let mut s = scenario(&Load { traffic, ..Load::default() }.text());
    s.tenants[0].app = serde_json::from_str(r#"{ "kind": "touchdrop" }"#).expect("an application");
    let o = run(&s, &mut |_| Ok(())).expect("a run");
    assert!(close(get(&o, "throughput_mrps"), 0.3, 0.01), "three every 10 us: {}", get(&o, "throughput_mrps"));
    assert_eq!(o.values.named("rtt_mean_us"), None, "nothing came back");
}

/// Out and back: 2 x 3 us, and 84 bytes (a frame of 64 with preamble and gap) at 40 Gb/s twice, 2 x 16.8 ns.
#[test]
fn a_round_trip_is_the_wire_both_ways_and_the_host() {
    let traffic =
        r#"arrivals = "fixed", rate = "1 Mpps", packet = "64 B", link = { rate = "40 Gbps", propagation = "3 us" }"#;
    let o = Load { traffic, ..Load::default() }.go();
    let on_the_wire = get(&o, "rtt_mean_us") - get(&o, "lat_mean_us");
    // Latencies are recorded in whole ns.
    assert!((on_the_wire - 6.0336).abs() < 0.002, "{on_the_wire}");
    assert!(get(&o, "rtt_median_us") <= get(&o, "rtt_p90_us") && get(&o, "rtt_p99_us") <= get(&o, "rtt_p999_us"));
}

#[test]
fn only_packets_that_come_back_have_a_round_trip() {
    let traffic = r#"arrivals = "poisson", rate = "60 Mpps", packet = "64 B""#;
    let o = Load { traffic, ..Load::default() }.go();
    assert!(get(&o, "drop_rate") > 0.3);
    let table = rows(&o, "rtt");
    let counted: u64 = table.iter().map(|r| r[2].as_u64().expect("a count")).sum();
    assert_eq!(counted, 8000, "those that were served");
    assert_eq!(table.last().expect("rows")[1].as_f64(), Some(1.0));
    let packets: Vec<u64> = rows(&o, "packets").iter().map(|r| r[1].as_u64().expect("a count")).collect();
    let [before, offered, served, lost, after] = packets[..] else { panic!("{packets:?}") };
    assert_eq!(before + offered, served + lost + after);
    let by_cause: u64 = rows(&o, "drops").iter().map(|r| r[2].as_u64().expect("a count")).sum();
    assert!(lost > 0 && lost == by_cause);
}

#[test]
fn bursts_have_the_period_and_the_gap_that_were_asked_for() {
    let traffic = r#"arrivals = "burst", burst = 20, burst_period = "50 us", burst_gap = "500 ns", packet = "64 B""#;
    let o = Load { traffic, ..Load::default() }.go();
    assert!(close(get(&o, "offered_mrps"), 0.4, 0.01));
    // 500 ns suffice for a packet before the next one arrives: no packet waits.
    let together = r#"arrivals = "burst", burst = 20, burst_period = "50 us", packet = "64 B""#;
    let packed = Load { traffic: together, ..Load::default() }.go();
    assert!(close(get(&packed, "offered_mrps"), 0.4, 0.01));
    assert!(get(&packed, "lat_p99_us") > 2.0 * get(&o, "lat_p99_us"));
}

#[test]
fn every_arrival_process_offers_the_rate() {
    for process in ["uniform", "log_normal", "pareto", "poisson"] {
        let traffic = format!(r#"arrivals = "{process}", rate = "2 Mpps", packet = "64 B""#);
        let o = Load { traffic: &traffic, ..Load::default() }.go();
        // 4 standard errors of the mean of 8000 gaps whose standard deviation equals their mean.
        assert!(close(get(&o, "offered_mrps"), 2.0, 0.045), "{process}: {}", get(&o, "offered_mrps"));
    }
}

/// Rate that one core serves which touches packets of 64 bytes.
fn served(rings: &str) -> f64 {
    let traffic = r#"arrivals = "keep_depth", depth = 8, packet = "64 B""#;
    let run = r#"load = "saturate", requests = 20000"#;
    get(&Load { app: TOUCH, rings, traffic, run }.go(), "throughput_mrps")
}
/// Bursts of which each core gets half.
const BURSTS: &str = r#"arrivals = "burst", burst = 200, packet = "64 B", spread = "round_robin""#;
const TOUCH: &str = r#"kind = "touchdrop", instructions = 1000"#;

/// Rings of 2 x 8192 packets can absorb the excess of 3 % over 20000 packets 27 times: no packet is dropped, and the
/// loss is visible nevertheless.
#[test]
fn an_overload_that_deep_queues_swallow_is_a_loss() {
    let rings = "rx_buffers = 8192";
    let rate = 1.03 * served(rings);
    let traffic = format!(r#"arrivals = "fixed", rate = "{:.0} kpps", packet = "64 B""#, rate * 1e3);
    let run = r#"load = "fixed", requests = 20000, warmup_requests = 4000"#;
    let o = Load { app: TOUCH, rings, traffic: &traffic, run }.go();
    assert_eq!(get(&o, "drop_rate"), 0.0);
    assert!(close(get(&o, "loss_rate"), 0.03 / 1.03, 0.1), "{}", get(&o, "loss_rate"));
}

/// At half of what the host serves, queues are empty before each burst of 200 packets, wherever the window ends.
#[test]
fn a_burst_that_is_under_way_at_the_end_of_a_window_is_no_loss() {
    let rings = "rx_buffers = 1024";
    let rate = 0.5 * served(rings);
    let traffic = format!(r#"{BURSTS}, rate = "{:.0} kpps""#, rate * 1e3);
    for requests in [3900, 3950, 4000, 4050, 4099] {
        let run = format!(r#"load = "fixed", requests = {requests}, warmup_requests = 2000"#);
        let o = Load { app: TOUCH, rings, traffic: &traffic, run: &run }.go();
        assert_eq!(get(&o, "drop_rate"), 0.0);
        assert_eq!(get(&o, "loss_rate"), 0.0, "{requests} requests");
        assert!(!o.warnings.iter().any(|w| w.contains("queues")), "{requests} requests: {:?}", o.warnings);
    }
}

/// Bursts of 200 packets that come faster than they are served leave a queue that is longer from burst to burst. Of what is
/// offered, at least 3 in 103 packets are not served; an end within a burst hides, or adds, one burst at most.
#[test]
fn an_overload_in_bursts_is_a_loss() {
    let rings = "rx_buffers = 8192";
    let rate = 1.03 * served(rings);
    let traffic = format!(r#"{BURSTS}, rate = "{:.0} kpps""#, rate * 1e3);
    let run = r#"load = "fixed", requests = 20000, warmup_requests = 4000"#;
    let o = Load { app: TOUCH, rings, traffic: &traffic, run }.go();
    assert_eq!(get(&o, "drop_rate"), 0.0);
    let (lost, unserved) = (get(&o, "loss_rate"), 1.0 - get(&o, "throughput_mrps") / get(&o, "offered_mrps"));
    assert!(lost > 0.9 * 0.03 / 1.03 && (lost - unserved).abs() <= 200.0 / 20_000.0, "{lost}, and {unserved}");
    assert!(o.warnings.iter().any(|w| w.contains("queues grew")), "{:?}", o.warnings);
}

/// Service is 1 - 1 % of the peak, whether the queues hold 64 packets or 8192.
#[test]
fn the_bandwidth_test_finds_the_same_knee_behind_shallow_and_deep_queues() {
    for rings in ["rx_buffers = 64", "rx_buffers = 8192"] {
        let traffic = r#"arrivals = "fixed", packet = "64 B""#;
        let run = r#"load = "peak_loss", requests = 20000"#;
        let o = Load { app: TOUCH, rings, traffic, run }.go();
        let knee = served(rings) / 0.99;
        assert!(close(get(&o, "offered_mrps"), knee, 0.012), "{rings}: {}, not {knee}", get(&o, "offered_mrps"));
        assert!(get(&o, "loss_rate") <= 0.01);
        let curve = rows(&o, "search");
        assert!(curve.iter().all(|r| (r[5].as_f64() <= Some(0.01)) == (r[4] == true)), "{curve:?}");
        assert!(curve.iter().any(|r| r[4] == false), "the first rate that fails is known");
    }
}

/// Frames of 64 B, and then of 1518 B, which take more time: a rate that passes clearly over the first frames may fail over the
/// whole window. Whichever window a search ends with, the rate that it reports loses 1 % at most, and so does no rate that failed.
#[test]
fn a_rate_that_passes_early_and_fails_later_is_not_the_peak() {
    let folder = Folder::new("late");
    for small in [20_000u32, 23_000, 26_000, 29_000] {
        let file = folder.0.join(format!("{small}.pcap"));
        let frames = (0..small + 30_000).map(|i| (i, if i < small { 60 } else { 1514 }));
        let header = [0xa1b2_3c4d, 0x0004_0002, 0, 0, 65_535, 1].map(u32::to_le_bytes).concat();
        let records = frames.flat_map(|(i, size): (u32, u16)| {
            let ip =
                [&[0x45, 0][..], &(size - 14).to_be_bytes(), &[0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]];
            let ports = [1024 + (i % 64) as u16, 80, size - 34, 0].map(u16::to_be_bytes).concat();
            let frame = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0][..], &ip.concat(), &ports].concat();
            [[0, i, 42, size.into()].map(u32::to_le_bytes).concat(), frame].concat()
        });
        std::fs::write(&file, header.into_iter().chain(records).collect::<Vec<u8>>()).expect("a capture");
        let traffic = format!(r#"arrivals = "pcap", pcap = {{ file = "{}", timing = "poisson" }}"#, file.display());
        let run = r#"load = "peak_loss", requests = 40000, precision = 0.005, warmup_requests = 4000"#;
        let o = Load { app: r#"kind = "touchdrop""#, traffic: &traffic, run, ..Load::default() }.go();
        assert!(get(&o, "loss_rate") <= 0.01, "{small}: {}", get(&o, "loss_rate"));
        let curve = rows(&o, "search");
        assert!(curve.iter().all(|r| (r[5].as_f64() <= Some(0.01)) == (r[4] == true)), "{curve:?}");
    }
}

/// In queues that hold a burst, the host serves bursts as fast as single packets.
#[test]
fn the_bandwidth_test_finds_the_same_knee_in_bursts() {
    let rings = "rx_buffers = 8192";
    for run in [r#"load = "peak_loss", requests = 20000"#, r#"load = "peak_loss", requests = 20000, precision = 0.02"#]
    {
        let o = Load { app: TOUCH, rings, traffic: BURSTS, run }.go();
        let knee = served(rings) / 0.99;
        assert!(close(get(&o, "offered_mrps"), knee, 0.02), "{run}: {}, not {knee}", get(&o, "offered_mrps"));
    }
}

#[test]
fn a_step_puts_every_rate_of_the_test_on_its_grid() {
    for load in ["peak_loss", "peak_slo", "peak_nodrop"] {
        let begins = if load == "peak_loss" { r#", rate = "40 Gbps""# } else { "" };
        let traffic = format!(r#"arrivals = "fixed", packet = "1000 B"{begins}"#);
        let run = format!(r#"load = "{load}", step = "5 Gbps", requests = 4000"#);
        let o = Load { app: TOUCH, traffic: &traffic, run: &run, ..Load::default() }.go();
        let curve = rows(&o, "search");
        let mut rates: Vec<(f64, bool)> =
            curve.iter().map(|r| (r[0].as_f64().expect("a rate") * 8.0, r[4] == true)).collect();
        rates.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(rates.iter().all(|(gbps, _)| (gbps / 5.0 - (gbps / 5.0).round()).abs() < 1e-9), "{load}: {rates:?}");
        let best = rates.iter().rfind(|r| r.1).expect("one passes").0;
        let worse = rates.iter().find(|r| !r.1).expect("one fails").0;
        assert!((worse - best - 5.0).abs() < 1e-9, "{load}: {rates:?}");
        assert!(close(get(&o, "offered_gbps"), best, 0.01), "{load}");
    }
}

/// 1 Gb/s carries 1e9 / (8 x 84) frames of 64 bytes per second.
#[test]
fn a_host_that_is_faster_than_the_link_has_its_rate_as_peak() {
    let traffic = r#"arrivals = "fixed", packet = "64 B", link = { rate = "1 Gbps" }"#;
    let run = r#"load = "peak_loss", requests = 4000"#;
    let o = Load { traffic, run, ..Load::default() }.go();
    assert!(close(get(&o, "throughput_mrps"), 1e3 / 8.0 / 84.0, 0.002), "{}", get(&o, "throughput_mrps"));
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("hostnet-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        Folder(path)
    }
    fn files(&self) -> Vec<String> {
        let found = std::fs::read_dir(&self.0).expect("a directory");
        found.map(|f| f.expect("a file").file_name().to_string_lossy().into_owned()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn captured(l: &Load, to: &Path) -> Outcome {
    run_and_capture(&scenario(&l.text()), to, &mut |_| Ok(())).unwrap_or_else(|e| panic!("{e}"))
}

fn be(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |n, b| n << 8 | u64::from(*b))
}

/// Sum of 16-bit words with carries folded in: 0xffff over a header with a right checksum (RFC 1071).
fn ones_sum(bytes: &[u8]) -> u64 {
    let sum: u64 = bytes.chunks(2).map(|w| be(w) << (8 * (2 - w.len()))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    (folded & 0xffff) + (folded >> 16)
}

/// Byte by byte: draft-ietf-opsawg-pcap, Ethernet II, RFC 791, RFC 768.
#[test]
fn what_came_back_is_a_capture_of_valid_frames_stamped_with_their_round_trips() {
    let folder = Folder::new("returned");
    let file = folder.0.join("out.pcap");
    let traffic = r#"arrivals = "poisson", rate = "1 Mpps", sizes = "imix", flows = 5, stamp = 44, link = { rate = "40 Gbps", propagation = "3 us" }"#;
    let l = Load { traffic, ..Load::default() };
    let o = captured(&l, &file);
    assert_eq!(folder.files(), ["out.pcap"]);
    let plain = l.go();
    assert_eq!((&o.values, &o.tables), (&plain.values, &plain.tables), "watching changes nothing");

    let bytes = std::fs::read(&file).expect("the capture");
    let le = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four")) as usize;
    assert_eq!((le(0), &bytes[4..8], le(20)), (0xa1b2_3c4d, &[2, 0, 4, 0][..], 1), "nanoseconds, 2.4, Ethernet");
    let (mut at, mut n, mut sum, mut last) = (24, 0u32, 0.0, 0);
    let mut ports = std::collections::BTreeMap::new();
    while at < bytes.len() {
        let ns = le(at) * 1_000_000_000 + le(at + 4);
        let frame = &bytes[at + 16..][..le(at + 8)];
        assert_eq!(le(at + 8), le(at + 12), "whole frames");
        assert!([60, 590, 1514].contains(&frame.len()), "{} bytes without the checksum", frame.len());
        // Frames go to the generator, from the host: a forwarder swaps the two addresses.
        assert_eq!((&frame[..6], &frame[6..12]), (&[2, 0, 0, 0, 0, 2][..], &[2, 0, 0, 0, 0, 1][..]));
        assert_eq!((be(&frame[12..15]), be(&frame[16..18])), (0x0008_0045, frame.len() as u64 - 14));
        assert_eq!((frame[23], ones_sum(&frame[14..34])), (17, 0xffff), "UDP, and a right header checksum");
        let pseudo = [&frame[26..34], &[0, 17], &frame[38..40]].concat();
        let whole = [&pseudo[..], &frame[34..]].concat();
        assert_eq!((be(&frame[38..40]), ones_sum(&whole)), (frame.len() as u64 - 34, 0xffff));
        *ports.entry(be(&frame[34..36])).or_insert(0) += 1;
        assert!(ns >= last, "in the order in which they came back");
        last = ns;
        sum += ns as f64 - be(&frame[44..52]) as f64 / 1e3;
        at += 16 + frame.len();
        n += 1;
    }
    assert_eq!(n, 8000);
    let mean_us = sum / f64::from(n) / 1e3;
    assert!((mean_us - get(&o, "rtt_mean_us")).abs() < 0.001, "{mean_us}");
    assert_eq!(ports.keys().copied().collect::<Vec<_>>(), [1024, 1025, 1026, 1027, 1028]);
    assert_eq!(Capture::load(&file, Wanted::Frames(None)).expect("a capture").packets.len(), 8000);
}

/// Frames of 64 B to one tenant and of 512 B to the other, three times as often: a capture leaves the checksum of 4 B out.
#[test]
fn packets_of_every_tenant_come_back_in_one_capture_in_their_order() {
    let folder = Folder::new("tenants");
    let tenant = |name: &str, packet: u32, rate: u32| {
        format!(
            "{{ name = \"{name}\", cores = 1, app = {{ kind = \"l3fwd\", rules = 64, zero_copy = true }}, \
             traffic = {{ packet = \"{packet} B\", rate = \"{rate} Mpps\", stamp = 44 }} }}"
        )
    };
    let text = Load { run: r#"load = "fixed", requests = 4000, warmup_requests = 1000"#, ..Load::default() }.text();
    let first = text.find("tenant = ").expect("tenants");
    let last = first + text[first..].find('\n').expect("a line");
    let tenants = format!("tenant = [{}, {}]", tenant("small", 64, 1), tenant("large", 512, 3));
    let file = folder.0.join("out.pcap");
    let s = scenario(&text.replace(&text[first..last], &tenants));
    run_and_capture(&s, &file, &mut |_| Ok(())).unwrap_or_else(|e| panic!("{e}"));
    let bytes = std::fs::read(&file).expect("the capture");
    let le = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four")) as usize;
    let (mut at, mut last, mut seen) = (24, 0, std::collections::BTreeMap::new());
    while at < bytes.len() {
        let (ns, length) = (le(at) * 1_000_000_000 + le(at + 4), le(at + 8));
        assert!(ns >= last, "{ns} ns after {last}");
        *seen.entry(length).or_insert(0_u32) += 1;
        (at, last) = (at + 16 + length, ns);
    }
    let (small, large) = (seen[&60], seen[&508]);
    assert!(seen.len() == 2 && small + large >= 4000 && small.abs_diff(1000) < 20, "{seen:?}");
}

#[test]
fn captured_frames_come_back_with_their_addresses_swapped_or_rewritten() {
    let folder = Folder::new("replayed");
    let (own, out) = (folder.0.join("in.pcap"), folder.0.join("out.pcap"));
    // Frames made by this generator, whose address in them is 02:..:07.
    let first = r#"arrivals = "fixed", rate = "1 Mpps", sizes = "imix", source_mac = "02:00:00:00:00:07""#;
    captured(&Load { traffic: first, ..Load::default() }, &own);
    let read = |file: &Path| {
        let how = CaptureOptions { wanted: Wanted::Frames(None), frames: true, ..CaptureOptions::default() };
        Capture::load(file, how).expect("a capture").frames
    };
    let requests = read(&own);
    assert_eq!(&requests[0][..6], [2, 0, 0, 0, 0, 7]);
    let replay = |more: &str| {
        let traffic = format!(r#"arrivals = "pcap", pcap = {{ file = "{}" }}, {more}"#, own.display());
        let run = r#"load = "fixed", requests = 1000, warmup_requests = 0"#;
        captured(&Load { traffic: &traffic, run, ..Load::default() }, &out);
        read(&out)
    };
    // The capture's source is the address of this host, as it was recorded on the way back.
    let back = replay(r#"destination_mac = "02:00:00:00:00:99""#);
    assert_eq!(back.len(), 1000);
    for frame in &back {
        assert_eq!((&frame[..6], &frame[6..12]), (&[2, 0, 0, 0, 0, 1][..], &[2, 0, 0, 0, 0, 0x99][..]));
    }
    let bodies: std::collections::HashSet<&[u8]> = requests.iter().map(|f| &f[12..]).collect();
    assert!(back.iter().all(|f| bodies.contains(&f[12..])), "nothing but addresses changes");
    let back = replay(r#"source_mac = "02:00:00:00:00:aa""#);
    assert!(back.iter().all(|f| f[..12] == [2, 0, 0, 0, 0, 0xaa, 2, 0, 0, 0, 0, 1]));
}

/// Requests of the committed capture are numbered; answers carry these numbers and go back to the port of the request.
#[test]
fn answers_of_memcached_bear_the_ids_of_their_requests() {
    let folder = Folder::new("memcached");
    let out = folder.0.join("out.pcap");
    let real = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures/memcached-udp.pcap");
    let traffic = format!(r#"arrivals = "pcap", rate = "1 Mrps", pcap = {{ file = "{}" }}"#, real.display());
    let run = r#"load = "fixed", requests = 3000, warmup_requests = 0"#;
    captured(&Load { app: r#"kind = "memcached""#, traffic: &traffic, run, ..Load::default() }, &out);
    let frames = |file: &Path, wanted| {
        let how = CaptureOptions { wanted, frames: true, ..CaptureOptions::default() };
        Capture::load(file, how).expect("a capture").frames
    };
    let key = |client: std::net::SocketAddr, payload: &[u8]| (client, be(&payload[..2]));
    let asked: std::collections::HashSet<_> = frames(&real, Wanted::default())
        .iter()
        .map(|f| frame::datagram(f).expect("a request"))
        .map(|d| key(d.src, d.payload))
        .collect();
    let back = frames(&out, Wanted::Frames(None));
    assert_eq!(back.len(), 3000);
    for f in &back {
        let d = frame::datagram(f).expect("an answer");
        assert_eq!(d.src.port(), 11211);
        assert!(asked.contains(&key(d.dst, d.payload)), "{d:?}");
        assert_eq!(&d.payload[2..8], [0, 0, 0, 1, 0, 0]);
    }
}

#[test]
fn a_capture_that_cannot_be_made_leaves_no_file() {
    let folder = Folder::new("refused");
    let out = folder.0.join("out.pcap");
    let refused =
        |l: &Load, to: &Path| run_and_capture(&scenario(&l.text()), to, &mut |_| Ok(())).expect_err("refused");
    let search = Load { run: r#"load = "peak_loss", requests = 4000"#, ..Load::default() };
    assert!(refused(&search, &out).contains("run.load = \"fixed\""));
    let nowhere = folder.0.join("no/such/out.pcap");
    assert!(refused(&Load::default(), &nowhere).contains("out.pcap cannot be written"));
    assert!(refused(&Load::default(), &folder.0).contains("it is a directory"));
    let aborted = run_and_capture(&scenario(&Load::default().text()), &out, &mut |_| Err("aborted".into()));
    assert_eq!(aborted.expect_err("aborted"), "aborted");
    for (name, to) in [("pcie-e810", "a generator on the host's cores"), ("tcp-echo-cx6", "clients over TCP")] {
        let text = std::fs::read_to_string(platforms().join(format!("../scenarios/{name}.toml"))).unwrap();
        let refused = run_and_capture(&scenario(&text), &out, &mut |_| Ok(())).expect_err("refused");
        assert!(refused.contains(&format!("a capture of what comes back to {to} is not built yet")), "{refused}");
    }
    assert_eq!(folder.files(), [""; 0]);
}

/// TestPMD behind an Ethernet NIC, whose link is 100 Gb/s over 100 ns.
fn behind_a_port(traffic: &str, run: &str) -> Outcome {
    simulate(&format!(
        r#"
        name = "testpmd"
        platform = {{ name = "icelake", poll_mode = {{ poll_instructions = 40, burst_instructions = 60, receive_instructions = 40, transmit_instructions = 40, free_instructions = 10 }} }}
        placement = {{ policy = "ddio", ways = 2 }}
        tenant = [{{ name = "t", cores = 1, stack = "poll_mode", app = {{ kind = "testpmd", mode = "macswap" }} }}]
        peripheral = [{{ kind = "ethernet", link = "100 Gbps", propagation = "100 ns", rings = {{ receive = 256, transmit = 256 }} }}]
        traffic = {{ {traffic}, packet = "256 B" }}
        run = {{ {run} }}
        "#
    ))
}

/// The NIC sends over its own wire, which its latency includes; 256 + 20 bytes at 100 Gb/s to the NIC, and 100 ns in
/// each direction, remain.
#[test]
fn a_round_trip_over_an_ethernet_nic_has_its_link() {
    let run = r#"load = "fixed", requests = 8000, warmup_requests = 2000"#;
    let o = behind_a_port(r#"arrivals = "fixed", rate = "2 Gbps""#, run);
    let on_the_wire = get(&o, "rtt_mean_us") - get(&o, "lat_mean_us");
    assert!((on_the_wire - 0.22208).abs() < 0.002, "{on_the_wire}");
    let closed = behind_a_port(r#"arrivals = "closed", outstanding = 16"#, run);
    let under_way = get(&closed, "throughput_mrps") * get(&closed, "rtt_mean_us");
    assert!(close(under_way, 16.0, 0.01), "{under_way}");
}

/// The capacity of a wire and of a calendar: 100 Gb/s are 11.97 Mpps of 1024 bytes and 20 bytes of framing.
#[test]
fn traffic_that_cannot_come_is_refused() {
    let pmd = "name = \"p\"\nplatform = \"gem5\"\nplacement = { policy = \"ddio\" }\n[[tenant]]\nname = \"p\"\ncores = 1\nstack \
               = \"poll_mode\"\napp = { kind = \"testpmd\" }\n[[peripheral]]\nkind = \"ethernet\"\n[traffic]\narrivals = \
               \"fixed\"\nrate = \"1 Mpps\"\npacket = \"1024 B\"\n[run]\nload = \"fixed\"\n";
    scenario(pmd);
    let fixed = "\"fixed\"\nrate = \"1 Mpps\"";
    let burst = |more: &str| (fixed, format!("\"burst\"\nburst = 32\n{more}"));
    let swap = |from, to: &str| (from, to.to_string());
    for ((from, to), says) in [
        (burst("burst_gap = \"0 ns\"\nrate = \"1 Mpps\""), "traffic.burst_gap = \"0 ps\" must be positive"),
        (burst("burst_gap = \"2 us\"\nrate = \"1 Mpps\""), "fewer packets come than traffic.rate = \"1 Mrps\""),
        (burst("burst_period = \"1 us\""), "traffic.burst_period = \"1 us\" is more than the link carries: 11.97"),
        (
            swap("rate = \"1 Mpps\"", "rate = \"99 Gbps\""),
            "traffic.rate = \"99 Gbps\" is more than the link carries: 11.9732 Mpps of 1024 bytes, or 98.0843 Gbps",
        ),
        (
            swap("load = \"fixed\"", "load = \"peak_loss\"\nstep = \"12 Mpps\""),
            "run.step = \"12 Mrps\" is more than the link",
        ),
        (swap("packet =", "spread = \"shortest_queue\"\npacket ="), "\"shortest_queue\" is for a NIC on the chip"),
        (
            swap("load = \"fixed\"", "load = \"fixed\"\nrequests = 1000000000000\nwarmup_requests = 80000000000"),
            "at traffic.rate = \"1 Mrps\" are 300 hours; 288",
        ),
    ] {
        let said = refusal(pmd, from, &to);
        assert!(said.contains(says), "{said}");
    }
}

/// A link's flight of 200 us in each direction is longer than a run of 2,000 packets: the packets of the probe must
/// have left by then.
#[test]
fn each_rate_of_a_bandwidth_test_is_offered() {
    let text = "name = \"t\"\nplatform = \"gem5\"\nplacement = { policy = \"ddio\" }\n[[tenant]]\nname = \"t\"\ncores = 4\nstack = \
                \"poll_mode\"\napp = { kind = \"testpmd\", mode = \"macswap\" }\n[[peripheral]]\nkind = \"ethernet\"\n[traffic]\n\
                arrivals = \"fixed\"\npacket = \"64 B\"\nflows = 64\n[run]\nload = \"peak_loss\"\nstep = \"1 Gbps\"\nrequests = 2000\n";
    let curve = rows(&simulate(text), "search");
    for r in &curve {
        let (rate, offered) = (r[0].as_f64().expect("a rate"), r[6].as_f64().expect("bits"));
        assert!(close(offered, rate * 64.0 * 8.0 / 1e3, 0.03), "{r:?}");
    }
    assert!(curve.len() > 2);
}

/// 100 Gb/s carries 100e9 / (8 x 276) frames of 256 bytes per second; one core serves fewer.
#[test]
fn the_bandwidth_test_ends_below_the_link_s_rate_where_the_core_is_slower() {
    let o = behind_a_port(r#"arrivals = "fixed", rate = "60 Gbps""#, r#"load = "peak_loss", requests = 8000"#);
    let curve = rows(&o, "search");
    assert!(curve.iter().all(|r| r[0].as_f64() <= Some(1e5 / 8.0 / 276.0 + 1e-6)), "{curve:?}");
    let worst = curve.iter().filter(|r| r[4] == true).map(|r| r[5].as_f64().expect("a loss")).fold(0.0, f64::max);
    assert!(worst <= 0.01 && get(&o, "throughput_mrps") > 10.0, "{curve:?}");
}

/// Packets come 100 ns apart over a wire of 200 us. Without a warm-up the window begins when the first may arrive, so that 3,000
/// packets take 300 us and not 500.
#[test]
fn a_window_without_warm_up_begins_when_packets_may_arrive() {
    let outcome = simulate(
        r#"
        name = "at-once"
        platform = "gem5"
        placement = { policy = "ddio", ways = 2 }
        traffic = { arrivals = "fixed", rate = "10 Mpps", packet = "64 B" }
        run = { load = "fixed", requests = 3000, warmup_requests = 0 }
        peripheral = [{ kind = "ethernet", propagation = "200 us" }]
        [[tenant]]
        name = "forwarder"
        cores = 1
        stack = "poll_mode"
        app = { kind = "testpmd", mode = "macswap" }
        "#,
    );
    for metric in ["offered_mrps", "throughput_mrps"] {
        let rate = get(&outcome, metric);
        assert!(close(rate, 10.0, 0.02), "{metric} {rate}");
    }
    assert!(!outcome.warnings.iter().any(|w| w.contains("queues grew")), "{:?}", outcome.warnings);
}
