//! Tests of CC-NIC as an overlay on a PCIe NIC of the other socket.

use crate::common::{get, refused, scenario, simulate};
use hostnet::host::{Host, Outcome};
use hostnet::kernel::Time;
use hostnet::traffic::frame::rss_hash;
use hostnet::traffic::generator::addresses;
use std::sync::Arc;

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
        spread = "round_robin"
        {traffic}
        [run]
        load = "fixed"
        warmup_requests = 200
        requests = 800
        "#
    )
}

/// A cell of the table of requests that left the L2: `side` and `object` name the row.
fn cell(o: &Outcome, side: &str, object: &str, column: &str) -> f64 {
    let t = &o.tables["off_core"];
    let column = t["columns"].as_array().unwrap().iter().position(|c| c["name"] == column).unwrap();
    let row = t["rows"].as_array().unwrap().iter().find(|r| r[0] == side && r[1] == object).unwrap();
    row[column].as_f64().unwrap()
}

const SLOW: &str = "arrivals = \"fixed\"\nrate = \"2 Mrps\"";
const ALONE: &str = "arrivals = \"closed\"\noutstanding = 1";
const BUSY: &str = "arrivals = \"closed\"\noutstanding = 256";
const UNOPTIMISED: &str = "preset = \"unoptimised\"";

fn remote_reads(o: &Outcome, side: &str, object: &str) -> f64 {
    cell(o, side, object, "remote_reads")
}

#[test]
fn every_request_is_answered_with_the_bytes_that_the_nic_alone_would_send() {
    let (overlay, direct) = (simulate(&text(true, "", SLOW)), simulate(&text(false, "", SLOW)));
    let rates = [&overlay, &direct].map(|o| get(o, "throughput_mrps"));
    assert!((rates[0] / rates[1] - 1.0).abs() < 0.01, "{rates:?} Mops through the overlay and directly");
    // The frame with a copied object is counted in whole lines: 31.5 bytes more on average.
    let bytes = [&overlay, &direct].map(|o| get(o, "achieved_gbps") / get(o, "throughput_mrps") / 8e-3);
    assert!((0.0..64.0).contains(&(bytes[0] - bytes[1])), "{bytes:?} bytes a reply");
    assert_eq!(get(&overlay, "drop_rate"), 0.0);
    // One segment instead of two, because the overlay has copied the object behind the header.
    let reads = [get(&overlay, "tx_payload_reads_per_packet"), get(&direct, "tx_payload_reads_per_packet")];
    // At each core, a window may end between the count of a request and the reads of its reply.
    assert!((reads[0] - 1.0).abs() < 3.0 / 800.0 && reads[1] > 1.9, "{reads:?}");
}

/// With one request in flight, nearly all requests are GETs, whose frames are one line in each direction.
#[test]
fn a_request_s_frame_crosses_once_each_way_and_the_overlay_adds_transfers() {
    let (overlay, direct) = (simulate(&text(true, "", ALONE)), simulate(&text(false, "", ALONE)));
    for (side, most) in [("NIC", 1.02), ("host", 1.35)] {
        let n = remote_reads(&overlay, side, "buffers");
        assert!((0.98..most).contains(&n), "{side} reads {n} lines of frames a request");
    }
    // Two transfers in each direction take at least 114 ns, one after the other.
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
        UNOPTIMISED,
        "preset = \"unoptimised\"\nnic_threads = 5",
        "preset = \"unoptimised\"\nsignal = \"inline\"",
        "preset = \"unoptimised\"\nnic_batch = 1",
        "pool = \"host\"\nsmall_buffers = false",
        "tx_batch = 1\nrx_batch = 1\nnic_batch = 1",
    ] {
        let o = simulate(&text(true, more, BUSY));
        assert!(get(&o, "throughput_mrps") > 0.5, "{more}: {} Mops", get(&o, "throughput_mrps"));
        assert_eq!(get(&o, "drop_rate"), 0.0, "{more}");
    }
}

/// At any time the host checks that packets are conserved, and that each buffer is in the pool or with the host.
#[test]
fn a_host_that_manages_buffers_loses_none_and_no_packet() {
    for (more, under_way) in [(UNOPTIMISED, 256), ("preset = \"unoptimised\"\nnic_threads = 5", 700)] {
        let mut host = Host::new(Arc::new(scenario(&text(true, more, BUSY)))).expect("a host");
        host.offer_closed(hostnet::kernel::TenantId(0), under_way, Time::ns(1_000_000));
        for slice in 0..40 {
            host.run_for(Time::ns(2_500));
            host.check().unwrap_or_else(|e| panic!("{more}, slice {slice}: {e}"));
        }
        host.drain();
        host.check().unwrap_or_else(|e| panic!("{more}, drained: {e}"));
    }
    // Twice the rate that the server can serve: each arriving packet is served, lost or still inside.
    let o = simulate(&text(true, UNOPTIMISED, "arrivals = \"fixed\"\nrate = \"60 Mrps\""));
    let rows = o.tables["packets"]["rows"].as_array().unwrap();
    let n = |what: &str| rows.iter().find(|r| r[0] == what).and_then(|r| r[1].as_u64()).unwrap();
    let left = n("served") + n("lost") + n("in the host at the end");
    assert_eq!(n("in the host at the start") + n("offered"), left);
}

/// One blank buffer for each request, one buffer for each reply, which the host frees later, and a NIC that never
/// accesses the pool. Where both sides share the pool without recycling, the NIC takes one buffer and frees one.
#[test]
fn the_host_alone_allocates_and_frees() {
    let long = |more: &str| {
        simulate(&text(true, more, BUSY).replacen("warmup_requests = 200", "warmup_requests = 2400", 1).replacen(
            "requests = 800",
            "requests = 8000",
            1,
        ))
    };
    let driver = long("preset = \"unoptimised\"\nhost_prefetch = false");
    for metric in ["host_blanks_per_packet", "host_tx_frees_per_packet"] {
        let n = get(&driver, metric);
        assert!((n - 1.0).abs() < 0.02, "{metric} is {n}"); // a window may end within two runs of 32 of each core
    }
    let of_pool = |o: &Outcome| ["reads", "rfos"].map(|c| cell(o, "NIC", "pool", c)).iter().sum::<f64>();
    assert_eq!(of_pool(&driver), 0.0);
    // The host used a blank buffer last, so the NIC asks for ownership of each line that it writes, and the host then
    // reads the line. For SETs, one request in twenty, the host does not read a last line that holds no part of the
    // object.
    let blank = |o: &Outcome| [cell(o, "NIC", "buffers", "remote_rfos"), remote_reads(o, "host", "buffers")];
    let [owned, read] = blank(&driver);
    assert!(owned > 1.0 && (-0.01..0.05).contains(&(owned - read)), "{owned} lines of blanks owned, {read} read");
    let [owned, _] = blank(&long("host_prefetch = false"));
    assert!(owned < 0.4, "{owned} lines owned of buffers that the NIC has recycled");
    let shared = simulate(&text(true, "recycle = false\nsmall_buffers = false", BUSY));
    assert!(of_pool(&shared) > 0.1, "{} lines of the pool", of_pool(&shared));
    assert!(shared.values.named("host_blanks_per_packet").is_none());
}

/// One request in flight, with one line in each direction except for SETs. Each side stores a tail for the request, and
/// the other side reads the tail and then the descriptor's line. A read of a line that the other side has modified
/// takes the line with permission to write. The NIC therefore reads a line of blank buffers again for each of them, and
/// only a side that writes without reading asks for ownership. The host reads the NIC's progress once for 32 replies.
/// Prefetchers would take lines that the other side polls.
#[test]
fn a_request_takes_a_register_a_descriptor_and_its_frame_each_way() {
    // Warm-up has passed through all rings once.
    let text = |more: &str| text(true, more, ALONE).replacen("warmup_requests = 200", "warmup_requests = 2400", 1);
    let o = simulate(&text("preset = \"unoptimised\"\nhost_prefetch = false"));
    for (side, object, column, least, most) in [
        // A poll may arrive while the store of the tail waits for earlier stores; the tail is then read again.
        ("NIC", "tx registers", "remote_reads", 0.99, 2.0),
        ("host", "rx registers", "remote_reads", 0.99, 2.0),
        ("host", "rx descriptors", "remote_reads", 0.99, 1.01),
        // 95 % of the replies have two descriptors, half of them on two lines when SETs arrive at random.
        ("NIC", "tx descriptors", "remote_reads", 1.0, 1.5),
        ("NIC", "rx descriptors", "remote_reads", 0.99, 1.01),
        ("NIC", "rx descriptors", "remote_rfos", 0.0, 0.01),
        ("host", "rx descriptors", "remote_rfos", 0.0, 0.01),
        ("NIC", "rx registers", "remote_reads", 0.0, 0.01),
        ("host", "tx registers", "remote_reads", 1.0 / 32.0 - 0.005, 1.0 / 32.0 + 0.005),
        ("NIC", "buffers", "remote_reads", 0.98, 1.02),
    ] {
        let n = cell(&o, side, object, column);
        assert!((least..most).contains(&n), "{side}, {object}: {n} {column} a request");
    }
    for (writer, reader, object) in
        [("host", "NIC", "tx registers"), ("NIC", "host", "rx registers"), ("host", "NIC", "tx descriptors")]
    {
        let (owned, read) = (cell(&o, writer, object, "remote_rfos"), remote_reads(&o, reader, object));
        assert!(
            (owned - read).abs() < 0.01,
            "{object}: the {writer} owns {owned} lines a request, of which {read} are read"
        );
    }
    let inline = simulate(&text("host_prefetch = false"));
    for (side, object) in [("NIC", "tx registers"), ("host", "rx registers")] {
        assert_eq!(remote_reads(&inline, side, object), 0.0);
    }
    // Register, descriptor and frame are read one after the other; an inlined signal is part of the descriptor. The
    // difference is a transfer of 114 ns in each direction.
    let more = 1e3 * (get(&o, "lat_mean_us") - get(&inline, "lat_mean_us"));
    assert!((2.0 * 114.0..900.0).contains(&more), "{more} ns more than inlined signals");
}

/// Objects belong to the host in either mode: the host takes them back at the cost of freeing a buffer. In addition,
/// the host frees received buffers, and where only the host manages buffers, also the buffers of replies. All requests
/// are GETs on one core of 3.1 GHz.
#[test]
fn the_host_takes_objects_back_that_have_been_sent() {
    let instructions = |ccnic: &str, counted: bool, free: u32| {
        let ccnic = format!("{ccnic}\ncosts = {{ free = {free} }}");
        let long = text(true, &ccnic, BUSY).replace("cores = 2", "cores = 1").replace("= 0.95", "= 1.0");
        let long = long
            .replace("_requests = 200", "_requests = 2000")
            .replace("requests = 800", "requests = 8000")
            .replace("0.61 }", &format!("0.61, counted = {counted} }}"));
        let o = simulate(&long);
        // The NIC's thread on the other core polls while it waits.
        let cores = &o.tables["cores"];
        let at = cores["columns"].as_array().and_then(|c| c.iter().position(|c| c["name"] == "cpi")).expect("a column");
        let server = cores["rows"][0][at].as_f64().expect("its cycles");
        3.1e3 / (get(&o, "throughput_mrps") * server)
    };
    for (ccnic, buffers) in [("", 1.0), (UNOPTIMISED, 2.0)] {
        for (counted, objects) in [(true, 1.0), (false, 0.0)] {
            let freed = (instructions(ccnic, counted, 4020) - instructions(ccnic, counted, 2020)) / 2e3;
            let expected = buffers + objects;
            assert!(
                (freed - expected).abs() < 0.05,
                "{ccnic}, counted {counted}: {freed} freed a request, not {expected}"
            );
        }
    }
}

/// Two threads are never idle, so the number of requests times their mean service time is the time of two threads.
#[test]
fn time_that_busy_threads_spend_on_requests_is_the_time_there_is() {
    let busy = "arrivals = \"closed\"\noutstanding = 1024";
    for overlay in [true, false] {
        let o = simulate(&text(overlay, "nic_threads = 8", busy).replace("requests = 800", "requests = 8000"));
        let spent = get(&o, "service_mean_us") * get(&o, "throughput_mrps");
        assert!((1.8..=2.02).contains(&spent), "{spent} threads, overlay: {overlay}");
    }
}

/// The requests of this store take so many instructions that the threads are the limit. Two threads serve 3 queue
/// pairs: the first thread has two pairs, and the second has one. Clients that keep their queue keep both threads busy,
/// so the rate is 2, whether clients have queues in turn or flows that are hashed to queues. Otherwise requests gather
/// at the thread with the larger share, which always has work, and the rate is one over that share: 2 / 3 where
/// requests go to queues in turn.
#[test]
fn clients_that_keep_their_queue_have_the_sum_of_all_threads_and_others_wait_for_the_slowest() {
    let clients = 768;
    let rate = |cores: u32, how: &str, requests: u32| {
        let busy = format!("arrivals = \"closed\"\noutstanding = {clients}");
        let text = text(true, &format!("nic_threads = {}", if cores > 1 { 3 } else { 1 }), &busy)
            .replace("cores = 2", &format!("cores = {cores}"))
            .replace("below_100 = 0.61 }", "below_100 = 0.61, get_instructions = 6000, counted = false }")
            .replace("get_fraction = 0.95", "get_fraction = 1.0")
            .replace("spread = \"round_robin\"", how)
            .replace("warmup_requests = 200", "warmup_requests = 4000")
            .replace("requests = 800", &format!("requests = {requests}"));
        get(&simulate(&text), "throughput_mrps")
    };
    let one = rate(1, "spread = \"round_robin\"", 4000);
    let at_first = (0..clients).map(addresses).filter(|(from, to)| rss_hash(*from, *to) % 3 != 1).count();
    let [turns, queues] = ["round_robin", "flow"].map(|spread| format!("spread = \"{spread}\""));
    let [drawn, flows] = ["random", "flow"].map(|spread| format!("flows = {clients}\nspread = \"{spread}\""));
    let of_flows = f64::from(clients) / at_first as f64;
    for (how, threads) in [(queues, 2.0), (flows, 2.0), (turns, 1.5), (drawn, of_flows)] {
        let n = rate(2, &how, 32_000) / one;
        assert!((n / threads - 1.0).abs() < 0.02, "{how}: the rate of {n} threads, not {threads}");
    }
}

/// A store whose objects fill the caches in tens of thousands of requests is as fast after the automatic warm-up, which lets the
/// application serve requests in functional mode, as after 150,000 requests in timed mode. After 200 requests its objects are in
/// memory still.
#[test]
fn the_automatic_warm_up_fills_the_caches_with_the_application_s_objects() {
    let rate = |warm_up: &str| {
        let text = text(true, "nic_threads = 2", BUSY)
            .replace("objects = 4096", "objects = 40000")
            .replace("warmup_requests = 200", warm_up)
            .replace("requests = 800", "requests = 16000");
        get(&simulate(&text), "throughput_mrps")
    };
    let (cold, automatic, long) = (rate("warmup_requests = 200"), rate(""), rate("warmup_requests = 150_000"));
    assert!((automatic / long - 1.0).abs() < 0.03, "{automatic} Mrps, after a long warm-up {long}");
    assert!(cold < 0.9 * long, "{cold} Mrps cold, {long} warm");
}

#[test]
fn what_an_overlay_lacks_is_one_sentence() {
    let base = text(true, "", SLOW);
    refused(
        &base,
        &[
            ("nic_node = 0", "nic_node = 1", "the NIC is attached to node 0 and writes to the memory of that node"),
            ("nic_node = 0", "nic_node = 0\nwake = \"event\"", "look at a descriptor of the PCIe NIC as well"),
            (
                "nic_node = 0",
                "nic_node = 0\nlarge_buffer = \"1024 B\"",
                "which the application reads at successive addresses",
            ),
            ("nic_node = 0", "nic_node = 0\nnic_threads = 1", "nic_threads = 1 is fewer than the tenant's 2 cores"),
            ("nic_node = 0", "nic_node = 0\nnic_threads = 40", "ask for 40 cores; a node has 16"),
            ("mode = \"overlay\"", "mode = \"loopback\"", "sends nothing of its own; give ccnic.mode = \"forward\""),
            ("load = \"fixed\"", "load = \"peak_slo\"", "needs run.load = \"fixed\""),
            (
                "[[peripheral]]\n        kind = \"ethernet\"",
                "",
                "needs one [[peripheral]] of kind \"ethernet\"; here are 0",
            ),
        ],
    );
}

/// Half of a ping-pong between the two sockets with the given `[override]`, in ns.
fn trip(far: &str) -> f64 {
    let ping = format!(
        r#"
        name = "trip"
        platform = "icx"
        {far}
        [placement]
        policy = "dma"
        [[tenant]]
        name = "ping"
        cores = 1
        app = {{ kind = "pingpong", layout = "S0C", peer_node = 1 }}
        [traffic]
        arrivals = "none"
        [run]
        load = "fixed"
        warmup_requests = 100
        requests = 500
        "#
    );
    get(&simulate(&ping), "pingpong_ns") / 2.0
}

/// Time of 32 requests at each of two threads on either side of a long link, in trips over the link, with `under_way`
/// requests in flight.
fn trips_of_a_burst(under_way: u32, core: &str) -> f64 {
    let far = format!("[override.nodes.link]\nlatency = \"2 us\"\n[override.core]\nlfb = 48\n{core}");
    let busy = format!("arrivals = \"closed\"\noutstanding = {under_way}");
    // Requests of one line of descriptors in each direction, which take hardly any instructions.
    let costs = "alloc = 1, free = 1, host_tx = 1, host_rx = 1, nic_tx = 1, nic_rx = 1, unit = 1, poll = 1, pool = 1";
    let ccnic = format!("layout = \"padded\"\nhost_prefetch = false\nread_ahead = 0\ncosts = {{ {costs} }}\n{far}");
    let text = text(true, &ccnic, &busy)
        .replace("below_100 = 0.61 }", "below_100 = 0.61, get_instructions = 10, counted = false }")
        .replace("get_fraction = 0.95", "get_fraction = 1.0")
        .replace("warmup_requests = 200", &format!("warmup_requests = {}", 2 * under_way.max(100)))
        .replace("requests = 800", &format!("requests = {}", 3 * under_way.max(100)));
    32.0 * 2.0 / get(&simulate(&text), "throughput_mrps") * 1e3 / trip(&far)
}

/// A server that waits for each of its 32 polls takes 32 trips per burst, and an overlay, whose replies have two
/// descriptors, takes 64. Cores that predict their polls take only the trips of accesses that depend on one another:
/// descriptors, frames, and the lines written next.
#[test]
fn servers_and_overlays_go_on_behind_polls_that_they_foresee() {
    let burst = trips_of_a_burst(2048, "");
    assert!((2.0..24.0).contains(&burst), "{burst} trips a burst");
    let in_order = trips_of_a_burst(2048, "pipeline = \"in_order\"");
    assert!(in_order > 64.0, "{in_order} trips a burst of cores that are in order");
    // A single request is not predicted: a line of descriptors, and then the frame that it names, cross in each
    // direction.
    let alone = trips_of_a_burst(1, "") / 64.0;
    assert!((4.0..12.0).contains(&alone), "{alone} trips for one request");
}
