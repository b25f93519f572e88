//! Tests of cores that send packets through a PCIe NIC in loopback mode, and read the packets (CC-NIC, section 5.1).
//! The tests check the parts of a round trip, the cost of a burst, the number of packets in flight, and the place of
//! every packet.

use crate::common::{get, refused, simulate};
use hostnet::host::Outcome;

/// A NIC on eight lanes of the third generation, and a driver, as in `poll_mode.rs`.
const BASE: &str = r#"
name = "looped"
placement = { policy = "ddio", ways = 4 }
[platform]
name = "cascadelake"
[platform.iio]
write_buffer = 1024
read_buffer = 1024
[platform.pcie]
posted_lines = 512
dllp_share = 0.0
"#;

struct Setting<'a> {
    bytes: u32,
    cores: u32,
    nic: &'a str,
    rings: &'a str,
    driver: &'a str,
    traffic: &'a str,
    requests: u32,
}

impl Default for Setting<'_> {
    fn default() -> Self {
        let (traffic, requests) = ("arrivals = \"closed\"\noutstanding = 1", 2000);
        Setting { bytes: 64, cores: 1, nic: "", rings: "", driver: "", traffic, requests }
    }
}

impl Setting<'_> {
    fn text(&self) -> String {
        let Setting { bytes, cores, nic, rings, driver, traffic, requests } = self;
        format!(
            "{BASE}[platform.poll_mode]\npoll_instructions = 40\nburst_instructions = 60\nreceive_instructions = 40\n\
             transmit_instructions = 40\nfree_instructions = 10\n{driver}\n[[tenant]]\nname = \"t\"\ncores = {cores}\nstack = \
             \"poll_mode\"\napp = {{ kind = \"loopback\", bytes = \"{bytes} B\" }}\n[[peripheral]]\nkind = \"ethernet\"\nlanes = \
             8\nloopback = true\n{nic}\n[peripheral.rings]\n{rings}\n[traffic]\n{traffic}\n[run]\nload = \"fixed\"\nrequests = \
             {requests}\nwarmup_requests = {requests}\n"
        )
    }
    fn run(&self) -> Outcome {
        simulate(&self.text())
    }
}

fn median_ns(s: &Setting) -> f64 {
    1e3 * get(&s.run(), "rtt_median_us")
}

/// Time in ns of a poll that finds no packet, by which a round trip can be longer, depending on the time at which its
/// frame arrives.
const POLL: f64 = 25.0;

#[test]
fn the_wire_is_in_a_round_trip_twice_and_a_frames_time_on_it_once() {
    let short = median_ns(&Setting { nic: "propagation = \"100 ns\"", ..Setting::default() });
    let long = median_ns(&Setting { nic: "propagation = \"1100 ns\"", ..Setting::default() });
    assert!((long - short - 2000.0).abs() < POLL, "{short} and {long} ns");

    // 1500 B, check sequence, preamble and gap: 1524 B.
    let at = |nic| median_ns(&Setting { nic, bytes: 1500, ..Setting::default() });
    let (slow, fast) = (at("link = \"10 Gbps\""), at("link = \"100 Gbps\""));
    let frame = 1524.0 * 8.0 * (1.0 / 10.0 - 1.0 / 100.0);
    assert!((slow - fast - frame).abs() < POLL, "{slow} and {fast} ns: {frame} expected");
}

/// The host's writes and reads are part of the round trip, because the stamp is written before the other lines of the
/// payload. Of 24 lines instead of one, the core writes each and the NIC reads it, and then the NIC writes each and the
/// core reads it.
#[test]
fn a_large_packet_takes_longer_by_its_way_over_the_link_both_ways_at_least() {
    let nic = "link = \"100 Gbps\"";
    let [small, large] = [64, 1500].map(|bytes| median_ns(&Setting { nic, bytes, ..Setting::default() }));
    // 1436 B more in each direction over eight lanes at 8 GT/s, and on the wire.
    let link = 1436.0 * 8.0 / (8.0 * 8.0 * 128.0 / 130.0);
    let least = 2.0 * link + 1436.0 * 8.0 / 100.0;
    assert!(large - small > least && large - small < least + 600.0, "{small} and {large} ns: {least} at least");
}

#[test]
fn a_frame_is_written_to_memory_once_and_read_once() {
    for bytes in [64, 1500] {
        let moved = get(&Setting { bytes, ..Setting::default() }.run(), "frame_bytes_moved");
        assert!((moved / f64::from(2 * bytes) - 1.0).abs() < 0.01, "{moved} bytes of a frame of {bytes}");
    }
}

#[test]
fn a_burst_has_one_doorbell() {
    // More packets are due than a core can send, and the NIC is faster than the core, so that every burst is full and
    // finds room.
    for n in [1, 4, 16] {
        let driver = format!("transmit_burst = {n}\nallocate_instructions = 600");
        let traffic = "arrivals = \"fixed\"\nrate = \"100 Mpps\"";
        let o = Setting { driver: &driver, traffic, requests: 20_000, ..Setting::default() }.run();
        // Per packet sent; fewer packets have returned while rings fill.
        let sent = get(&o, "offered_mrps") / get(&o, "throughput_mrps");
        let bells = get(&o, "doorbells_per_packet") * f64::from(n) / sent;
        assert!((bells - 1.0).abs() < 0.01, "{bells} doorbells for a burst of {n}");
        assert_eq!(get(&o, "drops"), 0.0);
    }
}

#[test]
fn what_is_due_goes_at_once_and_waits_for_no_burst() {
    // A packet every 5 us takes no longer than a single packet: it does not wait for the other packets of a burst of
    // 32.
    let alone = median_ns(&Setting::default());
    let traffic = "arrivals = \"fixed\"\nrate = \"0.2 Mpps\"";
    let o = Setting { traffic, ..Setting::default() }.run();
    let rate = get(&o, "throughput_mrps");
    assert!((1e3 * get(&o, "rtt_median_us") - alone).abs() < 2.0 * POLL && (rate - 0.2).abs() < 0.002, "{rate} Mpps");
    assert!((get(&o, "doorbells_per_packet") - 1.0).abs() < 0.01);
}

/// Little's law over the window; a packet that has been read is sent again with the next burst of its core.
#[test]
fn a_window_bounds_the_packets_under_way_at_each_core() {
    for (window, cores) in [(1, 1), (1, 3), (8, 1), (64, 2)] {
        let traffic = format!("arrivals = \"closed\"\noutstanding = {window}");
        let o = Setting { traffic: &traffic, cores, requests: 20_000, ..Setting::default() }.run();
        let under_way = get(&o, "throughput_mrps") * get(&o, "rtt_mean_us");
        let most = f64::from(window * cores);
        assert!(under_way <= most * 1.001 && under_way > 0.6 * most, "{under_way:.2} of {window} at {cores} cores");
        assert!(ledger(&o)[4] <= u64::from(window * cores), "{:?}", ledger(&o));
    }
}

/// A core that should send 140 Mpps of 64 B, which the wire carries, spends at least the 40 instructions of a packet's
/// transmission on each and sends fewer: what stays due is the rest of those due.
#[test]
fn packets_that_a_core_cannot_send_are_named() {
    let at = |mpps: u32| {
        let traffic = format!("arrivals = \"fixed\"\nrate = \"{mpps} Mpps\"");
        Setting { traffic: &traffic, nic: "link = \"100 Gbps\"", requests: 4000, ..Setting::default() }.run()
    };
    let said = |o: &Outcome| o.warnings.iter().find(|w| w.contains("of the tenant \"t\" that became due")).cloned();
    let (calm, over) = (at(1), at(140));
    assert_eq!(said(&calm), None);
    let said = said(&over).expect("a warning");
    let share = 100.0 * (1.0 - get(&over, "offered_mrps") / 140.0);
    let told: f64 =
        said.split(", ").nth(1).and_then(|s| s.split(' ').next()).and_then(|n| n.parse().ok()).expect("a share");
    assert!((told - share).abs() < 1.0, "{said}: {share}");
}

/// Numbers of packets that were inside, began, were served, were lost, and are inside now.
fn ledger(o: &Outcome) -> [u64; 5] {
    let rows = o.tables["packets"]["rows"].as_array().expect("rows");
    std::array::from_fn(|i| rows[i][1].as_u64().expect("a count"))
}

#[test]
fn every_packet_is_read_lost_or_under_way() {
    let lossless = Setting { traffic: "arrivals = \"closed\"\noutstanding = 256", ..Setting::default() };
    // The DMA of one packet at a time is slower than the wire: 256 frames do not fit the receive buffer.
    let traffic = "arrivals = \"closed\"\noutstanding = 256\ntimeout = \"100 us\"";
    let (nic, rings) = ("link = \"100 Gbps\"\nreceive_buffer = \"64 KiB\"", "receive_packets = 1");
    let losing = Setting { bytes: 1500, nic, rings, traffic, requests: 4000, ..Setting::default() };
    let open = "arrivals = \"poisson\"\nrate = \"6 Mpps\"";
    let flooded = Setting { traffic: open, bytes: 1500, nic, rings, requests: 4000, ..Setting::default() };
    for (s, loses) in [(lossless, false), (losing, true), (flooded, true)] {
        let o = s.run();
        let [before, begun, served, lost, inside] = ledger(&o);
        assert_eq!(before + begun, served + lost + inside, "{:?}", ledger(&o));
        assert_eq!(lost > 0, loses, "{lost} lost");
        assert!((s.requests..s.requests + 32).contains(&(served as u32)), "{served}");
        assert_eq!(get(&o, "drops"), lost as f64);
    }
}

#[test]
fn a_packet_comes_back_to_the_queue_that_it_left_from() {
    // Cores with unequal shares would end with unequal counts; each core has a window of its own.
    let traffic = "arrivals = \"closed\"\noutstanding = 4";
    let o = Setting { traffic, cores: 4, requests: 8000, ..Setting::default() }.run();
    assert_eq!(get(&o, "drops"), 0.0);
    assert!(get(&o, "rtt_p99_us") < 1.5 * get(&o, "rtt_median_us"));
}

#[test]
fn what_makes_no_sense_beside_a_loop_is_one_sentence() {
    let text = Setting::default().text();
    let cases = [
        (
            "loopback = true\n",
            "",
            "tenant[0].app of kind \"loopback\" with stack = \"poll_mode\" needs loopback = true",
        ),
        (
            "app = { kind = \"loopback\", bytes = \"64 B\" }",
            "app = { kind = \"testpmd\" }",
            "peripheral[0].loopback = true needs a tenant with stack = \"poll_mode\" and app of kind \"loopback\"",
        ),
        ("stack = \"poll_mode\"\n", "", "tenant[0].app of kind \"loopback\" needs stack = \"ccnic\" or \"poll_mode\""),
        ("bytes = \"64 B\"", "bytes = \"4 KiB\"", "tenant[0].app.bytes = \"4 KiB\" is not within 60 B"),
        ("[traffic]\n", "[traffic]\npacket = \"64 B\"\n", "traffic.packet is for packets from outside"),
        ("[traffic]\n", "[traffic]\nspread = \"turns\"\n", "traffic.spread is for packets from outside"),
        ("\"closed\"\noutstanding = 1", "\"keep_depth\"\ndepth = 4", "traffic.arrivals = \"keep_depth\""),
        ("load = \"fixed\"", "load = \"peak_slo\"", "run.load = \"peak_slo\""),
    ];
    refused(&text, &cases);
}
