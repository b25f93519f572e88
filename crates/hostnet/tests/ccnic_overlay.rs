//! CC-NIC over a PCIe NIC of the other socket.

mod common;

use common::{get, refused, simulate};
use hostnet::host::Outcome;

/// A store of small objects behind the overlay, or directly on the NIC of the first socket.
fn text(overlay: bool, ccnic: &str, traffic: &str) -> String {
    let (node, stack) = if overlay { (1, "ccnic") } else { (0, "poll_mode") };
    let nodes = if overlay { "" } else { "[override.nodes]\ncount = 1" };
    let ccnic = if overlay { format!("[ccnic]\nmode = \"overlay\"\nnic_node = 0\n{ccnic}") } else { String::new() };
    format!(
        r#"
        name = "overlay"
        platform = "icx"
        {nodes}
        [placement]
        policy = "ddio"
        ways = 2
        [[tenant]]
        name = "kv"
        node = {node}
        cores = 2
        stack = "{stack}"
        app = {{ kind = "clique_map", objects = 4096, get_fraction = 0.95, zipf = 0.75, below_100 = 0.61 }}
        {ccnic}
        [[peripheral]]
        kind = "ethernet"
        [traffic]
        spread = "turns"
        {traffic}
        [run]
        load = "fixed"
        warmup_requests = 200
        requests = 800
        "#
    )
}

/// A cell of the table of requests that left the L2: `side` and `object` name the row.
fn remote_reads(o: &Outcome, side: &str, object: &str) -> f64 {
    let t = &o.tables["off_core"];
    let column = t["columns"].as_array().unwrap().iter().position(|c| c["name"] == "remote_reads").unwrap();
    let row = t["rows"].as_array().unwrap().iter().find(|r| r[0] == side && r[1] == object).unwrap();
    row[column].as_f64().unwrap()
}

const SLOW: &str = "arrivals = \"fixed\"\nrate = \"2 Mrps\"";
const ALONE: &str = "arrivals = \"closed\"\noutstanding = 1";
const BUSY: &str = "arrivals = \"closed\"\noutstanding = 256";

#[test]
fn every_request_is_answered_with_the_bytes_that_the_nic_alone_would_send() {
    let (overlay, direct) = (simulate(&text(true, "", SLOW)), simulate(&text(false, "", SLOW)));
    let rates = [&overlay, &direct].map(|o| get(o, "throughput_mrps"));
    assert!((rates[0] / rates[1] - 1.0).abs() < 0.01, "{rates:?} Mops through the overlay and directly");
    // A copied object's frame is counted in whole lines: 31.5 bytes more on average.
    let bytes = [&overlay, &direct].map(|o| get(o, "achieved_gbps") / get(o, "throughput_mrps") / 8e-3);
    assert!((0.0..64.0).contains(&(bytes[0] - bytes[1])), "{bytes:?} bytes a reply");
    assert_eq!(get(&overlay, "drop_rate"), 0.0);
    // One segment instead of two: the overlay has copied the object behind the header.
    let reads = [get(&overlay, "tx_payload_reads_per_packet"), get(&direct, "tx_payload_reads_per_packet")];
    assert!((reads[0] - 1.0).abs() < 1e-9 && reads[1] > 1.9, "{reads:?}");
}

/// One request under way: nearly all are GETs, whose frames are a line each way.
#[test]
fn a_request_s_frame_crosses_once_each_way_and_the_overlay_adds_transfers() {
    let (overlay, direct) = (simulate(&text(true, "", ALONE)), simulate(&text(false, "", ALONE)));
    for (side, most) in [("NIC", 1.02), ("host", 1.35)] {
        let n = remote_reads(&overlay, side, "payload");
        assert!((0.98..most).contains(&n), "{side} reads {n} lines of frames a request");
    }
    // Two transfers each way take 114 ns at least, and one follows the other.
    let more = 1e3 * (get(&overlay, "lat_mean_us") - get(&direct, "lat_mean_us"));
    assert!((4.0 * 114.0..2500.0).contains(&more), "the overlay adds {more} ns");
}

#[test]
fn every_interface_carries_requests_and_cores_take_turns_at_queue_pairs() {
    for more in [
        "nic_threads = 5",
        "layout = \"padded\"",
        "layout = \"packed\"",
        "signal = \"register\"",
        "recycle = false",
        "tx_batch = 1\nrx_batch = 1\nnic_batch = 1",
    ] {
        let o = simulate(&text(true, more, BUSY));
        assert!(get(&o, "throughput_mrps") > 0.5, "{more}: {} Mops", get(&o, "throughput_mrps"));
        assert_eq!(get(&o, "drop_rate"), 0.0, "{more}");
    }
}

#[test]
fn what_an_overlay_lacks_is_one_sentence() {
    let base = text(true, "", SLOW);
    refused(
        &base,
        &[
            ("nic_node = 0", "nic_node = 1", "needs nic_node = 0, where devices are attached"),
            ("nic_node = 0", "nic_node = 0\nnic_threads = 1", "nic_threads = 1 is fewer than the tenant's 2 cores"),
            ("nic_node = 0", "nic_node = 0\nnic_threads = 40", "ask for 40 cores; a node has 16"),
            ("nic_node = 0", "nic_node = 0\npreset = \"unoptimised\"", "with pool = \"host\""),
            ("mode = \"overlay\"", "mode = \"loopback\"", "without an overlay of CC-NIC is not built yet"),
            ("load = \"fixed\"", "load = \"peak_slo\"", "needs run.load = \"fixed\""),
            ("warmup_requests = 200", "", "run.warmup_requests or run.warmup_time"),
            (
                "[[peripheral]]\n        kind = \"ethernet\"",
                "",
                "needs one [[peripheral]] of kind \"ethernet\"; here are 0",
            ),
            (
                "policy = \"ddio\"\n        ways = 2",
                "policy = \"idio\"\n        mode = \"dynamic\"\n        ways = 2",
                "not built yet",
            ),
        ],
    );
}
