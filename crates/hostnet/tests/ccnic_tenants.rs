//! Tenants on CC-NIC: applications that serve packets, several interfaces on one host, and packets of several buffers.
//! Expected values follow from rates, instructions and lines of packets.

use crate::common::{close, get, platforms, refused, simulate};
use hostnet::host::Outcome;

/// Tenants on two nodes of icx; `run` and `tenants` are lines of TOML.
fn text(run: &str, tenants: &str) -> String {
    format!(
        "name = \"coherent\"\nplatform = \"icx\"\nplacement = {{ policy = \"ddio\", ways = 2 }}\nrun = {{ load = \"fixed\", {run} }}\n\
         {tenants}"
    )
}

/// A tenant on CC-NIC with the table `ccnic`.
fn tenant(name: &str, cores: u32, ccnic: &str, app: &str, traffic: &str) -> String {
    format!(
        "[[tenant]]\nname = \"{name}\"\ncores = {cores}\nstack = \"ccnic\"\nccnic = {{ {ccnic} }}\napp = {app}\ntraffic = {{ {traffic} }}\n"
    )
}

const RUN: &str = "requests = 8000, warmup_requests = 2000";

/// Value of `column` in the row of tenant `name`.
fn of(o: &Outcome, name: &str, column: &str) -> f64 {
    let table = &o.tables["tenants"];
    let at = table["columns"].as_array().and_then(|c| c.iter().position(|c| c["name"] == column)).expect("a column");
    let row = table["rows"].as_array().expect("rows").iter().find(|r| r[0] == name);
    row.and_then(|r| r[at].as_f64()).unwrap_or_else(|| panic!("{column} of {name} is null"))
}

/// Requests that left the L2 of cores of `side` for `object`, per packet.
fn cell(o: &Outcome, side: &str, object: &str, column: &str) -> f64 {
    let t = &o.tables["off_core"];
    let column = t["columns"].as_array().and_then(|c| c.iter().position(|c| c["name"] == column)).expect("a column");
    let row = t["rows"].as_array().expect("rows").iter().find(|r| r[0] == side && r[1] == object).expect("a row");
    row[column].as_f64().expect("a number")
}

const CLOSED: &str = "arrivals = \"closed\", outstanding = 16";
const LOOPBACK: &str = "{ kind = \"loopback\", bytes = \"64 B\" }";

/// Each tenant has cores, queue pairs and buffers of its own, and two of them do not fill the links between the nodes.
#[test]
fn two_equal_tenants_get_each_what_one_gets_alone() {
    let one = |name| tenant(name, 2, "nic_node = 1", LOOPBACK, CLOSED);
    let run = "requests = 20000, warmup_requests = 5000";
    let (both, alone) = (simulate(&text(run, &(one("a") + &one("b")))), simulate(&text(run, &one("a"))));
    let expected = of(&alone, "a", "throughput_mops");
    for name in ["a", "b"] {
        let got = of(&both, name, "throughput_mops");
        assert!(close(got, expected, 0.03), "{name}: {got} Mops, {expected} alone");
        let (beside, by_itself) = (of(&both, name, "lat_mean_us"), of(&alone, "a", "lat_mean_us"));
        assert!(close(beside, by_itself, 0.04), "{name}: {beside} us a round trip, {by_itself} alone");
    }
    let sum = of(&both, "a", "throughput_mops") + of(&both, "b", "throughput_mops");
    assert!(close(get(&both, "throughput_mrps"), sum, 1e-6), "{} Mrps of {sum}", get(&both, "throughput_mrps"));
}

/// At a rate, the packets that became due are those that were carried and those that wait: on one core, and on a NIC's thread
/// with two queue pairs.
#[test]
fn at_a_rate_what_was_offered_was_carried_or_waits() {
    for (ccnic, app) in [
        ("nic_node = 1", LOOPBACK),
        ("mode = \"forward\", nic_node = 1", LOOPBACK),
        ("mode = \"forward\", nic_node = 1, nic_threads = 1", "{ kind = \"testpmd\" }"),
    ] {
        let at = |mpps: u32| {
            let size = if app == LOOPBACK { "" } else { ", packet = \"64 B\"" };
            let traffic = format!("arrivals = \"poisson\", rate = \"{mpps} Mpps\"{size}");
            simulate(&text(RUN, &tenant("t", 2, ccnic, app, &traffic)))
        };
        let grew = |o: &Outcome| o.warnings.iter().any(|w| w.contains("packets of the tenant \"t\" that became due"));
        let (calm, over) = (at(2), at(600));
        assert!(!grew(&calm) && grew(&over), "{ccnic}: {:?} {:?}", calm.warnings, over.warnings);
        assert!(close(get(&calm, "offered_mrps"), 2.0, 0.04), "{ccnic}: {}", get(&calm, "offered_mrps"));
        assert!(get(&calm, "loss_rate") < 0.005, "{ccnic}: {}", get(&calm, "loss_rate"));
        for (offered, carried, loss) in [
            (get(&over, "offered_mrps"), get(&over, "throughput_mrps"), get(&over, "loss_rate")),
            (of(&over, "t", "offered_mops"), of(&over, "t", "throughput_mops"), of(&over, "t", "loss_rate")),
        ] {
            assert!(close(offered, 600.0, 0.03), "{ccnic}: {offered}");
            assert!(
                close(carried, offered * (1.0 - loss), 1e-6) && loss > 0.3,
                "{ccnic}: {carried}, {offered}, {loss}"
            );
        }
    }
}

/// Interfaces of different modes: a generator, a key-value server over a PCIe NIC, and a forwarder at a wire.
#[test]
fn tenants_have_interfaces_of_their_own_kind() {
    let server = "{ kind = \"clique_map\", objects = 2000, get_fraction = 0.95, zipf = 0.75, below_100 = 0.61 }";
    let fixed = |rate: &str| format!("arrivals = \"fixed\", rate = \"{rate}\"");
    let forwarder = "{ kind = \"l3fwd\", rules = 100, zero_copy = true }";
    let tenants = tenant("generator", 1, "nic_node = 1", LOOPBACK, &fixed("2 Mpps"))
        + &tenant("server", 2, "mode = \"overlay\"", server, &fixed("1 Mrps"))
            .replace("cores = 2", "cores = 2\nnode = 1")
        + &tenant(
            "forwarder",
            1,
            "mode = \"forward\", nic_node = 1",
            forwarder,
            &(fixed("3 Mpps") + ", packet = \"256 B\""),
        )
        + "[[peripheral]]\nkind = \"ethernet\"\n";
    let o = simulate(&text("requests = 12000, warmup_requests = 4000", &tenants));
    for (name, rate) in [("generator", 2.0), ("server", 1.0), ("forwarder", 3.0)] {
        let got = of(&o, name, "throughput_mops");
        assert!(close(got, rate, 0.02), "{name}: {got} Mops of {rate}");
    }
}

/// The NIC's wire brings packets of 1 KiB, 16 lines, of which an application reads those that it needs; the host prefetches
/// the first line of each. A NIC of the other node has written them, so that each read leaves the host's L2.
#[test]
fn an_application_at_a_wire_reads_the_lines_that_it_needs() {
    let packet = "arrivals = \"fixed\", rate = \"0.5 Mpps\", packet = \"1 KiB\"";
    let store = "{ kind = \"mica\", item_size = \"256 B\", get_fraction = 1.0, pairs = 2048, buckets = 512, log_size = \"2 MiB\", zipf = 0.9 }";
    let recorded = format!(
        "{{ kind = \"recorded\", file = \"{}\" }}",
        platforms().join("../recordings/testpmd-macswap.rec").display()
    );
    for (app, traffic, lines) in [
        ("{ kind = \"testpmd\", mode = \"io\" }", packet, 1.0),
        ("{ kind = \"testpmd\", mode = \"macswap\" }", packet, 1.0),
        ("{ kind = \"l3fwd\", rules = 100, zero_copy = true }", packet, 1.0),
        ("{ kind = \"touchdrop\" }", packet, 16.0),
        ("{ kind = \"touchfwd\" }", packet, 16.0),
        (store, "arrivals = \"fixed\", rate = \"0.5 Mrps\"", 1.0),
        (&recorded, packet, 1.0),
    ] {
        for more in [
            "",
            ", wake = \"event\"",
            ", nic = \"agent\", wake = \"event\"",
            ", preset = \"unoptimised\", pool = \"shared\"",
        ] {
            let ccnic = format!("mode = \"forward\", nic_node = 1, host_prefetch = false, metadata = \"0 B\"{more}");
            let o =
                simulate(&text("requests = 2000, warmup_requests = 500", &tenant("served", 1, &ccnic, app, traffic)));
            assert!(close(get(&o, "achieved_mpps"), 0.5, 0.01), "{app}{more}: {} Mpps", get(&o, "achieved_mpps"));
            let read = cell(&o, "host", "buffers", "reads");
            assert!((read - lines).abs() < 0.02 + 0.01 * lines, "{app}{more}: {read} lines of payload, not {lines}");
        }
    }
}

/// A service of 20,000 instructions, two a cycle of 3.1 GHz, takes 3.226 us, and the interface's share some 600 more.
#[test]
fn an_application_s_instructions_bound_its_rate() {
    let app = "{ kind = \"testpmd\", mode = \"io\", instructions = 20000 }";
    for mode in ["forward\", nic_node = 1, nic = \"software", "overlay"] {
        let packet = "packet = \"256 B\"";
        let served = tenant("slow", 1, &format!("mode = \"{mode}\""), app, &format!("{CLOSED}, {packet}"));
        let served = match mode {
            "overlay" => served.replace("cores = 1", "cores = 1\nnode = 1") + "[[peripheral]]\nkind = \"ethernet\"\n",
            _ => served,
        };
        let o = simulate(&text("requests = 2000, warmup_requests = 500", &served));
        let took = 1.0 / of(&o, "slow", "throughput_mops");
        let (least, most) = (20_000.0 / 2.0 / 3100.0, 21_200.0 / 2.0 / 3100.0);
        assert!((least..most).contains(&took), "{mode}: {took} us a packet, of {least} to {most}");
    }
}

/// Frames of a PCIe NIC reach every kind of application over an overlay, and what is not answered ends there.
#[test]
fn an_overlay_serves_every_kind_of_application() {
    let capture = platforms().join("../captures/memcached-udp.pcap");
    let captured = format!(
        "arrivals = \"pcap\", rate = \"0.08 Mpps\", pcap = {{ file = \"{}\", timing = \"fixed\" }}",
        capture.display()
    );
    let packet = "arrivals = \"fixed\", rate = \"1 Mpps\", packet = \"1 KiB\"";
    let bursts = "arrivals = \"burst\", burst = 8, burst_period = \"8 us\", packet = \"1 KiB\"";
    for (app, traffic, rate) in [
        ("{ kind = \"touchdrop\" }", packet, 1.0),
        ("{ kind = \"l3fwd\", rules = 100, zero_copy = true }", bursts, 1.0),
        ("{ kind = \"l3fwd\", rules = 100 }", packet, 1.0),
        ("{ kind = \"memcached\" }", captured.as_str(), 0.08),
    ] {
        for more in ["", ", preset = \"unoptimised\"", ", release = \"clwb\", idle_queues = 3"] {
            let served = tenant("served", 1, &format!("mode = \"overlay\"{more}"), app, traffic)
                .replace("cores = 1", "cores = 1\nnode = 1");
            let o = simulate(&text(
                "requests = 3000, warmup_requests = 1000",
                &(served + "[[peripheral]]\nkind = \"ethernet\"\n"),
            ));
            let got = of(&o, "served", "throughput_mops");
            assert!(close(got, rate, 0.02), "{app}{more}: {got} Mops of {rate}");
            assert_eq!(get(&o, "drop_rate"), 0.0, "{app}{more}");
        }
    }
}

/// Three queue pairs of a thread at a wire: the NIC's work of each packet bounds the rate, so that one thread carries a third
/// of what three do, where the host has time to spare.
#[test]
fn threads_of_a_wire_that_serve_several_queue_pairs_bound_the_rate_by_their_number() {
    let app = "{ kind = \"testpmd\", mode = \"io\", instructions = 1 }";
    let rate = |threads: u32| {
        let ccnic = format!(
            "mode = \"forward\", nic_node = 1, nic_threads = {threads}, costs = {{ nic_tx = 1000, nic_rx = 1000 }}"
        );
        let served = tenant("served", 3, &ccnic, app, "arrivals = \"closed\", outstanding = 64, packet = \"64 B\"");
        get(&simulate(&text(RUN, &served)), "achieved_mpps")
    };
    let ratio = rate(3) / rate(1);
    assert!(close(ratio, 3.0, 0.05), "three threads carry {ratio} times what one does");
}

/// Each side reads what the other has written. With recycled buffers a line crosses the link once each way; in buffers of the
/// host alone, which come round in turn, the request for ownership of each write crosses, too. 9000 B in buffers with room for 4032 B
/// are 63 + 63 + 15 lines.
#[test]
fn a_packet_in_several_buffers_moves_the_lines_of_the_packet() {
    let o = |bytes: u32, ccnic: &str| {
        let (app, ccnic) =
            (format!("{{ kind = \"loopback\", bytes = \"{bytes} B\" }}"), format!("nic_node = 1, ring = 64, {ccnic}"));
        let closed = "arrivals = \"closed\", outstanding = 4";
        simulate(&text("requests = 2000, warmup_requests = 1000", &tenant("jumbo", 1, &ccnic, &app, closed)))
    };
    for (bytes, ccnic, lines) in [
        (8064, "large_buffer = \"4096 B\"", 2.0 * 126.0),
        (9000, "large_buffer = \"16 KiB\"", 2.0 * 141.0),
        (9000, "preset = \"unoptimised\"", 4.0 * 141.0),
    ] {
        let crossed = get(&o(bytes, ccnic), "payload_lines_crossed");
        assert!(close(crossed, lines, 0.01), "{bytes} B, {ccnic}: {crossed} lines cross, not {lines}");
    }
    // Each packet takes three buffers at either side, and the host reads all of it.
    let three = o(9000, "recycle = false, host_prefetch = false");
    assert!(
        close(cell(&three, "host", "buffers", "reads"), 141.0, 0.01),
        "{}",
        cell(&three, "host", "buffers", "reads")
    );
    assert!(close(get(&three, "pool_ops_per_packet"), 12.0, 0.02), "{}", get(&three, "pool_ops_per_packet"));
    let bytes = get(&three, "achieved_gbps") / get(&three, "achieved_mpps") * 1e3 / 8.0;
    assert!(close(bytes, 9000.0, 1e-6), "{bytes} B a packet");
}

/// A host that returns packets in their own buffers reads and writes the first line of the first of them, and prefetches the
/// first line of each.
#[test]
fn a_forwarder_of_headers_touches_the_first_lines_of_a_packet_in_three_buffers() {
    let app = "{ kind = \"loopback\", bytes = \"9000 B\", touch = \"header\" }";
    let ccnic = "mode = \"forward\", nic_node = 1, ring = 64, nic_reads = \"header\", host_prefetch = false";
    let o = simulate(&text(
        "requests = 2000, warmup_requests = 1000",
        &tenant("jumbo", 1, ccnic, app, "arrivals = \"closed\", outstanding = 4"),
    ));
    let read = cell(&o, "host", "buffers", "reads");
    assert!((read - 3.0).abs() < 0.05, "{read} lines of payload");
}

#[test]
fn what_a_tenant_s_interface_lacks_is_one_sentence() {
    let served = tenant(
        "served",
        1,
        "mode = \"forward\", nic_node = 1",
        "{ kind = \"touchfwd\" }",
        "arrivals = \"closed\", outstanding = 4, packet = \"1 KiB\"",
    );
    let base = text(RUN, &(tenant("generator", 1, "nic_node = 1", LOOPBACK, CLOSED) + &served));
    refused(
        &base,
        &[
            (
                "mode = \"forward\", nic_node = 1",
                "mode = \"forward\", nic_node = 2",
                "tenant[1].ccnic.nic_node = 2 does not exist",
            ),
            (
                "mode = \"forward\", nic_node = 1",
                "mode = \"loopback\", nic_node = 1",
                "sends nothing of its own; give tenant[1].ccnic.mode = \"forward\"",
            ),
            ("{ kind = \"touchfwd\" }", "{ kind = \"xmem\", array = \"4 KiB\" }", "receives no packets of a NIC"),
            (
                "mode = \"forward\", nic_node = 1",
                "mode = \"forward\", nic_reads = \"header\"",
                "may write all of an answer",
            ),
            (
                "packet = \"1 KiB\"",
                "packet = \"9000 B\"",
                "which the application reads at successive addresses; give \"16 KiB\"",
            ),
            (
                "arrivals = \"closed\", outstanding = 4, packet",
                "arrivals = \"burst\", burst = 4, burst_period = \"4 us\", packet",
                "needs tenant[1].traffic.arrivals",
            ),
            (
                "stack = \"ccnic\"\nccnic = { nic_node = 1 }",
                "ccnic = { nic_node = 1 }",
                "tenant[0].ccnic needs stack = \"ccnic\"",
            ),
        ],
    );
}
