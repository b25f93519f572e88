//! Tests of TCP as a service: an echo server whose TCP runs on cores of its own, behind a NIC and behind an overlay.

use crate::common::{get, refusal, refused, scenario, simulate};
use hostnet::app::tcp_echo::{Calls, FastPathCosts};
use hostnet::host::Host;
use hostnet::kernel::Time;
use std::sync::Arc;

fn text(overlay: bool, fast: u32, (flows, pipelined): (u32, u32), calls: &str, requests: u32) -> String {
    let (node, stack) = if overlay { (1, "ccnic") } else { (0, "poll_mode") };
    let nodes = if overlay { "" } else { "[override.nodes]\ncount = 1" };
    let ccnic = if overlay { "[ccnic]\nmode = \"overlay\"\nnic_node = 0\nnic_threads = 4" } else { "" };
    let (cores, outstanding) = (fast + 1, flows * pipelined);
    format!(
        r#"
        name = "echo"
        platform = "icx"
        {nodes}
        [placement]
        policy = "ddio"
        ways = 2
        [[tenant]]
        name = "echo"
        node = {node}
        cores = {cores}
        stack = "{stack}"
        app = {{ kind = "tcp_echo", rpc = "64 B", flows = {flows}, pipelined = {pipelined}, calls = "{calls}" }}
        {ccnic}
        [[peripheral]]
        kind = "ethernet"
        [traffic]
        arrivals = "closed"
        outstanding = {outstanding}
        [run]
        load = "fixed"
        warmup_requests = 200
        requests = {requests}
        "#
    )
}

/// At any time the host checks that packets and requests are conserved, that the bytes of a flow arrive in order, that
/// no request is answered before it is read, and that no two threads of the fast path work on one flow.
#[test]
fn requests_are_answered_once_and_in_order_with_any_threads_calls_and_interfaces() {
    for (overlay, fast, flows, calls, preset) in [
        (false, 1, (1, 1), "sockets", ""),
        (false, 3, (24, 8), "sockets", ""),
        (false, 2, (9, 40), "low_level", ""),
        (true, 2, (24, 8), "sockets", ""),
        (true, 3, (9, 40), "low_level", ""),
        (true, 2, (24, 8), "sockets", "preset = \"unoptimised\""),
        (true, 3, (9, 40), "low_level", "preset = \"unoptimised\""),
    ] {
        let text =
            text(overlay, fast, flows, calls, 400).replacen("nic_node = 0", &format!("nic_node = 0\n{preset}"), 1);
        let mut host = Host::new(Arc::new(scenario(&text))).expect("a host");
        host.offer_closed(hostnet::kernel::TenantId(0), flows.0 * flows.1, Time::ns(1_000_000));
        for slice in 0..20 {
            host.run_for(Time::ns(5_000));
            host.check().unwrap_or_else(|e| panic!("overlay {overlay} {preset}, {fast} threads, slice {slice}: {e}"));
        }
        host.drain();
        host.check().unwrap_or_else(|e| panic!("overlay {overlay} {preset}, {fast} threads, drained: {e}"));
        let o = simulate(&text);
        assert!(get(&o, "throughput_mrps") > 0.0, "nothing was answered");
    }
}

/// A closed loop: the number of requests without a reply is the rate times the round-trip time (Little's law).
#[test]
fn the_clients_always_have_as_many_requests_without_a_reply_as_they_should() {
    for (overlay, calls) in [(false, "sockets"), (true, "low_level")] {
        let o = simulate(&text(overlay, 2, (16, 8), calls, 8000));
        let under_way = get(&o, "throughput_mrps") * get(&o, "rtt_mean_us");
        assert!((under_way / 128.0 - 1.0).abs() < 0.03, "{under_way} requests under way, not 128");
    }
}

/// Clients in a closed loop send a request for each answer, whatever segments and acknowledgements carry it, and each packet that
/// came has ended or is inside.
#[test]
fn offered_requests_are_requests_and_packets_are_packets() {
    for (overlay, flows) in [(false, (1, 1)), (false, (16, 8)), (true, (16, 8))] {
        let o = simulate(&text(overlay, 2, flows, "sockets", 4000));
        assert_eq!(get(&o, "offered_mrps"), get(&o, "throughput_mrps"));
        let rows = o.tables["packets"]["rows"].as_array().expect("rows");
        let [start, offered, served, lost, end] = std::array::from_fn(|i| rows[i][1].as_u64().expect("a count"));
        assert_eq!(start + offered, served + lost + end, "{rows:?}");
        // A request of one in flight takes a segment, and the acknowledgement of its answer another packet.
        assert!(flows != (1, 1) || (offered as f64 / 4000.0 - 2.0).abs() < 0.01, "{offered} packets");
    }
}

/// A lone request is a frame of 64 B of data each way, 134 B with headers and checksum, and its acknowledgement 70 B: as many bits
/// are offered as come back.
#[test]
fn rates_in_bits_are_those_of_frames_in_both_directions() {
    let o = simulate(&text(false, 1, (1, 1), "low_level", 400));
    let bits = get(&o, "throughput_mrps") * (134.0 + 70.0) * 8.0 / 1e3;
    for metric in ["offered_gbps", "achieved_gbps"] {
        assert!((get(&o, metric) / bits - 1.0).abs() < 0.01, "{metric}: {} and not {bits}", get(&o, metric));
    }
}

/// One request in flight is one segment in each direction; the server and the client each send one acknowledgement. A
/// frame of 134 B with its check sequence takes 20 B more on the wire.
#[test]
fn rpcs_that_wait_go_in_one_segment_and_a_lone_one_by_itself() {
    let alone = simulate(&text(false, 1, (1, 1), "low_level", 300));
    assert_eq!(get(&alone, "tcp_rpcs_per_segment"), 1.0);
    // 64 RPCs of one flow: with TAS's own calls, all RPCs of an event are answered together, and a segment holds
    // 1448 B, which are 22.6 RPCs.
    let many = simulate(&text(false, 1, (1, 64), "low_level", 6400));
    let n = get(&many, "tcp_rpcs_per_segment");
    assert!((20.0..=1448.0 / 64.0 + 1e-9).contains(&n), "{n} RPCs a segment");
    // With sockets each turn of epoll answers one RPC of a flow.
    let sockets = simulate(&text(false, 1, (1, 64), "sockets", 3200));
    let n = get(&sockets, "tcp_rpcs_per_segment");
    assert!((1.0..2.0).contains(&n), "{n} RPCs a segment");
}

/// One RPC is two frames in each direction: data and an acknowledgement. Frames of 64 B and of 1448 B of data differ by
/// 21 lines, and no other traffic of the NIC depends on the size.
#[test]
fn an_rpc_moves_two_frames_each_way_and_the_lines_of_its_data() {
    let bytes = |rpc: &str| {
        let t = text(false, 1, (1, 1), "low_level", 1000).replace("rpc = \"64 B\"", &format!("rpc = \"{rpc}\""));
        let o = simulate(&t);
        assert!((get(&o, "tx_payload_reads_per_packet") - 2.0).abs() < 0.01, "{rpc}");
        get(&o, "p2m_gbs") * 1e3 / get(&o, "throughput_mrps")
    };
    let more = (bytes("1448 B") - bytes("64 B")) / 64.0;
    let lines = |data: u32| (66 + data).div_ceil(64);
    assert!((more - f64::from(2 * (lines(1448) - lines(64)))).abs() < 0.1, "{more} lines more");
}

/// The application's thread limits the rate: counted instructions, at two per cycle and 3.1 GHz, with as many events as
/// flows in each turn, are the least time. Loads and stores add to that time.
#[test]
fn the_server_s_thread_is_no_faster_than_its_instructions() {
    for (calls, flows, rpcs) in [("sockets", 48u32, 1.0), ("low_level", 48, 22.6)] {
        let o = simulate(&text(false, 8, (flows, 64), calls, 20_000));
        let c = if calls == "sockets" { Calls::Sockets.costs() } else { Calls::LowLevel.costs() };
        // The largest number of events that a turn can have: all flows.
        let events = f64::from(flows) * rpcs;
        let turn = f64::from(c.poll + 8 * c.queue) / events;
        let per_rpc = turn + f64::from(c.event) / 22.6 + f64::from(c.rpc);
        let most = 3100.0 * 2.0 / per_rpc;
        let rate = get(&o, "throughput_mrps");
        assert!(rate < most, "{calls}: {rate} Mops, and instructions allow {most}");
        assert!(rate > 0.15 * most, "{calls}: {rate} Mops, far below {most}");
    }
}

/// Counts of instructions in TAS at d3926ba: see docs/models/nodes.md.
#[test]
fn costs_are_those_that_were_counted() {
    let c = FastPathCosts::default();
    // Bursts of 16 and of one, and empty turns, without the stubs that simulate the driver: instructions of the parts
    // of the loop.
    let (sixteen, one, idle) = (10_607.5, 803.1, 48.0);
    let data = (sixteen - one) / 15.0;
    let table = [
        ("turn", c.turn, idle + 153.5 + 39.0 + 112.0 + 1638.0 + 14.0),
        ("data", c.data, data),
        ("burst", c.burst, one - data - idle),
        ("acknowledgement", c.acknowledgement, (6906.9 - 569.9) / 15.0),
        ("entry", c.entry, (9659.9 - 1638.0) / 16.0),
        ("segment", c.segment, (6159.0 - 153.5) / 16.0),
    ];
    for (what, ours, counted) in table {
        assert!((f64::from(ours) - counted).abs() <= 1.0, "{what}: {ours}, counted {counted}");
    }
    let sockets = Calls::Sockets.costs();
    // One and 64 events in a wait of one queue, and reads and writes of 64 B.
    assert!((f64::from(sockets.event) - (31_439.0 - 3390.0) / 63.0).abs() <= 1.0);
    assert!((f64::from(sockets.poll + sockets.queue + sockets.event) - 3390.0).abs() <= 1.0);
    assert_eq!(sockets.rpc, 214 + 262);
    let own = Calls::LowLevel.costs();
    // Empty polls of one queue and of five; 16 events of one RPC and of eight.
    assert_eq!((own.poll + own.queue, own.poll + 5 * own.queue), (300, 524));
    assert!((f64::from(own.rpc) - (14_849.0 - 2417.0) / 16.0 / 7.0).abs() <= 1.0);
    assert!((f64::from(own.event) - ((5573.0 - 300.0) / 16.0 + 40.0)).abs() <= 1.0);
}

/// A frame that a NIC's full buffer loses ends the run. The sentence says where and why the frame was lost, and which
/// setting would prevent the loss.
#[test]
fn a_lost_segment_is_told_with_its_place_its_cause_and_what_to_change() {
    let with = |buffer: &str| {
        let own = format!("kind = \"ethernet\"\n        receive_buffer = \"{buffer}\"");
        let t = text(false, 1, (96, 64), "sockets", 4000).replacen("kind = \"ethernet\"", &own, 1);
        hostnet::host::run(&scenario(&t), &mut |_| Ok(()))
    };
    let said = with("16 KiB").map(|_| ()).unwrap_err();
    for part in [
        " segments of TCP were lost, the first in the NIC's receive buffer (\"",
        "retransmission is not built for TAS; lower the load, which is traffic.outstanding = flows x pipelined of tenant[0].app",
        "or enlarge peripheral[0].receive_buffer = \"16 KiB\" or peripheral[0].rings.receive = 1024",
    ] {
        assert!(said.contains(part), "\"{said}\" does not say {part}");
    }
    assert!(["Drop)", "wire brings them"].iter().any(|cause| said.contains(cause)), "no cause: {said}");
    with("8 MiB").expect("nothing is lost in a larger buffer");
}

#[test]
fn what_cannot_be_is_one_sentence() {
    let t = text(false, 2, (8, 4), "sockets", 400);
    refused(
        &t,
        &[
            ("cores = 3", "cores = 1", "TAS has 1 to 16 of the fast path"),
            ("rpc = \"64 B\"", "rpc = \"1449 B\"", "the data of a segment"),
            ("pipelined = 4", "pipelined = 129", "a buffer of 8192 B holds"),
            ("outstanding = 32", "outstanding = 31", "outstanding = 32, which is flows x pipelined"),
            ("stack = \"poll_mode\"", "stack = \"queue_pair\"", "needs stack = \"poll_mode\""),
            ("warmup_requests = 200", "warmup_time = \"1 us\"", "run.warmup_requests"),
            ("calls = \"sockets\"", "calls = \"kernel\"", "low_level"),
            ("outstanding = 32", "outstanding = 32\nspread = \"flow\"", "traffic.spread is for other stacks"),
        ],
    );
    let e = refusal(&text(true, 4, (8, 4), "sockets", 400), "nic_threads = 4", "nic_threads = 3");
    assert!(e.contains("fewer than the tenant's 4 cores that poll"), "{e}");
}
