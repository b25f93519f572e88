//! Metrics of a host with several tenants, NICs or nodes: each covers all of them, in whichever order the scenario names them.

use crate::common::{get, platforms, scenario, simulate};
use hostnet::config::resolve;
use hostnet::config::scenario::PeripheralSpec;
use hostnet::host::Outcome;

/// Three cores of a node that stream from its memory.
fn streaming(name: &str, node: u32) -> String {
    format!(
        "[[tenant]]\nname = \"{name}\"\ncores = 3\nnode = {node}\napp = {{ kind = \"stream\", buffer = \"64 MiB\" }}\n"
    )
}

/// A host of two nodes with one channel each, on which `tenants` stream.
fn two_sockets(tenants: &str) -> String {
    format!(
        "name = \"sockets\"\nplatform = \"icx\"\nplacement = {{ policy = \"ddio\", ways = 2 }}\n{tenants}\
         [override.memory]\nchannels = 1\n[traffic]\narrivals = \"none\"\n\
         [run]\nload = \"saturate\"\nwarmup_time = \"20 us\"\ntime = \"40 us\"\n"
    )
}

/// A channel of DDR4-3200 has 25.6 GB/s. Streams at both nodes take what streams at one node take twice over, and the closed
/// form expects that as well.
#[test]
fn channels_of_every_node_count() {
    let one = simulate(&two_sockets(&streaming("a", 0)));
    let both = simulate(&two_sockets(&(streaming("a", 0) + &streaming("b", 1))));
    for (o, used) in [(&one, 1.0), (&both, 2.0)] {
        assert_eq!((get(o, "channels"), get(o, "mem_peak_gbs")), (2.0, 51.2));
        let share = get(o, "mem_bw_gbs") / 51.2;
        assert!((get(o, "mem_utilisation") - share).abs() < 1e-9 && share <= used / 2.0 && share > 0.6 * used / 2.0);
        assert!((get(o, "channels_used") - used).abs() < 0.01 * used, "{} channels", get(o, "channels_used"));
    }
    for (metric, tolerance) in [("c2m_gbs", 0.15), ("rpq_occ", 0.2), ("predicted_c2m_gbs", 1e-9)] {
        let (one, both) = (get(&one, metric), get(&both, metric));
        assert!((both / one - 2.0).abs() < 2.0 * tolerance, "{metric}: {both} at both nodes, {one} at one");
    }
}

/// Value of `column` in each row of the table of tenants that has one.
fn column(o: &Outcome, column: &str) -> Vec<f64> {
    let table = &o.tables["tenants"];
    let columns = table["columns"].as_array().expect("columns");
    let at = columns.iter().position(|c| c["name"] == column).unwrap_or_else(|| panic!("no column {column}"));
    table["rows"].as_array().expect("rows").iter().filter_map(|r| r[at].as_f64()).collect()
}

fn near(a: f64, b: f64, tolerance: f64, what: &str) {
    assert!((a - b).abs() <= tolerance * b.abs(), "{what}: {a} and not {b}");
}

/// Outcomes of a host with `parts` in their order and in the other one.
fn both_orders(head: &str, parts: [&str; 2], rest: &str) -> [Outcome; 2] {
    [[0, 1], [1, 0]].map(|order| simulate(&format!("{head}{}{}{rest}", parts[order[0]], parts[order[1]])))
}

const ICX: &str = "name = \"several\"\nplatform = \"icx\"\nplacement = { policy = \"ddio\", ways = 2 }\n";
const LOAD: &str = "[traffic]\narrivals = \"poisson\"\nrate = \"1 Mpps\"\npacket = \"1 KiB\"\n\
                    [run]\nload = \"fixed\"\nrequests = 3000\nwarmup_requests = 2000\n";

/// Ethernet NIC `name`, with the keys `more`.
fn nic(name: &str, more: &str) -> String {
    format!("[[peripheral]]\nkind = \"ethernet\"\nname = \"{name}\"\n{more}\n")
}

/// A core behind NIC `nic` that sends every packet back; `traffic` are keys of its traffic.
fn forwarder(name: &str, nic: &str, traffic: &str) -> String {
    format!(
        "[[tenant]]\nname = \"{name}\"\ncores = 1\nstack = \"poll_mode\"\nnic = \"{nic}\"\n\
         app = {{ kind = \"testpmd\", mode = \"macswap\" }}\ntraffic = {{ {traffic} }}\n"
    )
}

/// Two cores that forward packets of `packet` bytes through CC-NIC.
fn coherent(name: &str, packet: u32, rate: &str) -> String {
    format!(
        "[[tenant]]\nname = \"{name}\"\ncores = 2\nstack = \"ccnic\"\nccnic = {{ mode = \"forward\", nic_node = 1 }}\n\
         app = {{ kind = \"l3fwd\", rules = 1000 }}\ntraffic = {{ packet = \"{packet} B\", rate = \"{rate}\" }}\n"
    )
}

/// A million packets a second of 1 KiB, and two million of 512 B, are 8.192 Gb/s each: both come back, and both have round trips.
#[test]
fn packets_through_coherent_memory_and_through_a_nic_come_back_to_one_generator() {
    let tenants = [forwarder("pcie", "a", ""), coherent("cc", 512, "2 Mpps")];
    for o in both_orders(&(ICX.to_string() + &nic("a", "")), [&tenants[0], &tenants[1]], LOAD) {
        near(get(&o, "offered_mrps"), 3.0, 0.06, "offered_mrps");
        near(get(&o, "offered_gbps"), 16.4, 0.06, "offered_gbps");
        near(get(&o, "achieved_gbps"), get(&o, "offered_gbps"), 0.02, "achieved_gbps");
        assert_eq!(get(&o, "cores"), 3.0);
        let packets = o.tables["rtt"]["rows"].as_array().expect("rows").iter().filter_map(|r| r[2].as_u64());
        near(packets.sum::<u64>() as f64, get(&o, "throughput_mrps") * o.measured.as_ns() / 1e3, 0.01, "round trips");
        let median = get(&o, "rtt_median_us");
        assert!(get(&o, "rtt_min_ns") / 1e3 <= median && median <= get(&o, "rtt_p99_us"), "{median} us");
    }
}

#[test]
fn every_tenant_on_coherent_memory_counts() {
    let tenants = [coherent("small", 128, "3 Mpps"), coherent("large", 1024, "1 Mpps")];
    let [a, b] = both_orders(ICX, [&tenants[0], &tenants[1]], LOAD);
    for o in [&a, &b] {
        near(get(o, "achieved_mpps"), column(o, "throughput_mops").iter().sum(), 1e-9, "achieved_mpps");
        near(get(o, "achieved_gbps"), 3.0 * 128.0 * 8e-3 + 1024.0 * 8e-3, 0.05, "achieved_gbps");
    }
    for metric in ["rtt_mean_us", "payload_lines_crossed", "host_remote_reads", "host_instructions_per_packet"] {
        near(get(&a, metric), get(&b, metric), 0.05, metric);
    }
}

/// Receivers of TCP at two NICs, the second of which carries 10 Gb/s and keeps its core less than busy.
#[test]
fn every_receiver_of_tcp_counts() {
    let receiver = |name: &str, link: &str| {
        nic(name, &format!("mtu = \"1500 B\"\nlink = \"{link}\""))
            + &format!("[[tenant]]\nname = \"{name}\"\ncores = 1\nnic = \"{name}\"\nstack = \"kernel\"\napp = {{ kind = \"tcp_receive\" }}\n")
    };
    let head = "name = \"tcp\"\nplatform = \"altra\"\nplacement = { policy = \"ddio\", ways = 4 }\n";
    let rest = "[traffic]\narrivals = \"none\"\n[run]\nload = \"saturate\"\ntime = \"1 ms\"\nwarmup_time = \"1 ms\"\n";
    for o in both_orders(head, [&receiver("fast", "100 Gbps"), &receiver("slow", "10 Gbps")], rest) {
        let gbps = column(&o, "net_gbps");
        assert!(gbps.len() == 2 && gbps.iter().all(|x| *x > 5.0), "{gbps:?}");
        near(get(&o, "net_gbs"), gbps.iter().sum::<f64>() / 8.0, 1e-9, "net_gbs");
        let busy = get(&o, "net_busy");
        assert!(busy > 1.3 && busy <= 2.0, "{busy} cores");
    }
}

/// Every operation of a reader moves a line of 512 bits.
#[test]
fn every_stream_between_nodes_counts() {
    let stream = |cores: u32| {
        format!(
            "[[tenant]]\nname = \"{cores}\"\ncores = {cores}\n\
             app = {{ kind = \"stream_transfer\", peer_node = 1, buffer = \"1 MiB\", chunk = \"16 KiB\" }}\n"
        )
    };
    let rest = "[run]\nload = \"saturate\"\ntime = \"40 us\"\nwarmup_time = \"20 us\"\n";
    for o in both_orders(ICX, [&stream(1), &stream(3)], rest) {
        let lines = column(&o, "throughput_mops");
        near(get(&o, "stream_gbps"), lines.iter().sum::<f64>() * 0.512, 1e-9, "stream_gbps");
    }
}

/// A pair on one node asks the other node nothing, and a pair over both asks four times a trip: the register of either side is
/// read by one core and then written by the other.
#[test]
fn every_ping_pong_counts() {
    let pair = |name: &str, node: u32| {
        format!(
            "[[tenant]]\nname = \"{name}\"\ncores = 1\napp = {{ kind = \"pingpong\", peer_node = {node}, layout = \"S0\" }}\n"
        )
    };
    let rest = "[run]\nload = \"fixed\"\nrequests = 600\nwarmup_requests = 100\n";
    let [a, b] = both_orders(ICX, [&pair("near", 0), &pair("far", 1)], rest);
    let trips = column(&a, "throughput_mops");
    near(get(&a, "remote_requests"), 4.0 * trips[1] / (trips[0] + trips[1]), 0.02, "remote_requests");
    for metric in ["remote_requests", "pingpong_ns"] {
        near(get(&a, metric), get(&b, metric), 0.02, metric);
    }
}

/// A frame of 1020 B without its checksum is written to memory and read from there, whichever NIC it passes; one NIC has hardly any.
#[test]
fn every_nic_with_rings_counts() {
    let nics = [nic("a", ""), nic("b", "")].concat();
    let head = format!("{ICX}{nics}[override.nodes]\ncount = 1\n");
    let tenants = [forwarder("busy", "a", "rate = \"2 Mpps\""), forwarder("calm", "b", "rate = \"1 kpps\"")];
    let [a, b] = both_orders(&head, [&tenants[0], &tenants[1]], LOAD);
    for o in [&a, &b] {
        near(get(o, "frame_bytes_moved"), 2040.0, 0.01, "frame_bytes_moved");
        near(get(o, "tx_payload_reads_per_packet"), 1.0, 0.01, "tx_payload_reads_per_packet");
        assert!(get(o, "dma_busy") > 0.1 && get(o, "dma_peak_gbs") > 2.0 && get(o, "doorbells_per_packet") > 0.2);
    }
    near(get(&a, "descriptors_per_write_back"), get(&b, "descriptors_per_write_back"), 0.05, "write-backs");
}

/// A RoCE NIC sends a pause frame when its buffer is filled beyond `xoff`.
#[test]
fn the_fullest_buffer_of_any_nic_counts() {
    let text = |ethernet: &str| {
        format!(
            "name = \"roce\"\nplatform = \"icelake\"\nplacement = {{ policy = \"dma\" }}\n[[tenant]]\nname = \"s\"\ncores = 12\n\
             app = {{ kind = \"stream\", buffer = \"64 MiB\", read_fraction = 0.5 }}\n[[peripheral]]\nkind = \"roce\"\n\
             op = \"p2m_write\"\nlink = \"100 Gbps\"\n{ethernet}"
        )
    };
    let s = scenario(&text(&(nic("a", "") + &forwarder("f", "a", "") + LOAD)));
    let xoff = s.peripherals.iter().find_map(|p| match p {
        PeripheralSpec::Roce(nic) => Some(nic.quirks.xoff.0 as f64 / 1024.0),
        _ => None,
    });
    let o = hostnet::host::run(&s, &mut |_| Ok(())).unwrap_or_else(|e| panic!("{e}"));
    let (peak, xoff) = (get(&o, "nic_buffer_peak_kib"), xoff.expect("a RoCE NIC"));
    assert!(get(&o, "pfc_pauses") > 0.0 && peak >= xoff, "{peak} KiB, pauses from {xoff} KiB on");
}

/// Packets of 256 B and 20 B beside them on a link of 25 Gb/s, which software on another host sends.
#[test]
fn the_link_from_a_client_s_nic_counts() {
    let text = ICX.to_string()
        + &nic("a", "link = \"25 Gbps\"")
        + &forwarder("f", "a", "rate = \"4 Mpps\"")
        + "[client]\ncores = 2\napp = { kind = \"load_generator\" }\n"
        + &LOAD.replace("1 KiB", "256 B");
    let o = simulate(&text);
    near(get(&o, "wire_in_util"), get(&o, "offered_mrps") * 276.0 * 8.0 / 25e3, 0.03, "wire_in_util");
}

/// Bursts of 4 packets are 64 times as frequent as those of 256, so that their mean is nearly theirs.
#[test]
fn bursts_of_every_tenant_count() {
    let nics = [nic("a", ""), nic("b", "")].concat();
    let head = format!("{ICX}{nics}[override.nodes]\ncount = 1\n");
    let rest = LOAD.replace("poisson", "burst").replace("3000", "12000");
    let tenants = [forwarder("short", "a", "burst = 4"), forwarder("long", "b", "burst = 256")];
    let [a, b] = both_orders(&head, [&tenants[0], &tenants[1]], &rest);
    for metric in ["burst_us", "burst_start_us"] {
        near(get(&a, metric), get(&b, metric), 0.05, metric);
    }
    let alone = simulate(&(head + &tenants[0] + &rest).replace(&nic("b", ""), ""));
    let (mean, short) = (get(&a, "burst_us"), get(&alone, "burst_us"));
    assert!(mean > short && mean < 1.5 * short, "{mean} us, the short ones {short}");
}

/// A core forwards more than the million packets a second at which the search begins, and CC-NIC carries what it is offered.
#[test]
fn a_search_varies_the_generator_s_rate_and_leaves_coherent_memory_alone() {
    let load = LOAD.replace("\"fixed\"", "\"peak_loss\"");
    let o = simulate(
        &(ICX.to_string() + &nic("a", "") + &forwarder("pcie", "a", "") + &coherent("cc", 512, "2 Mpps") + &load),
    );
    let served = column(&o, "throughput_mops");
    assert!(served[0] > 2.0, "{} Mpps", served[0]);
    near(served[1], 2.0, 0.25, "CC-NIC's rate"); // some 270 packets of a Poisson process
    let alone = ICX.to_string() + &coherent("cc", 512, "2 Mpps") + &load;
    let e = resolve(&alone, "test.toml", &[platforms()]).expect_err("no generator").to_string();
    assert!(
        e.contains("run.load = \"peak_loss\"") && e.contains("tenant[0] has its packets from the threads of CC-NIC"),
        "{e}"
    );
}
