//! Tests of CC-NIC as threads on cores: the number of requests between nodes follows from the protocol, and rates
//! follow from the instructions.

use crate::common::platforms;
use hostnet::config::resolve;
use hostnet::host::{run, Outcome};

/// Two nodes of Sapphire Rapids without hardware prefetchers; `app`, `ccnic`, `traffic` and `run` are lines of TOML.
fn text(app: &str, ccnic: &str, traffic: &str, run: &str) -> String {
    format!(
        r#"
        name = "test"
        [placement]
        policy = "dma"
        [platform]
        name = "sapphirerapids"
        [platform.nodes]
        count = 2
        cores = 14
        [platform.nodes.link]
        links = 3
        rate = "22.4 GB/s"
        latency = "25 ns"
        message = "16 B"
        data = "78 B"
        credits = 256
        [[tenant]]
        name = "host"
        cores = 1
        {app}
        {ccnic}
        [traffic]
        {traffic}
        [run]
        load = "fixed"
        {run}
        "#
    )
}

fn outcome(text: &str) -> Outcome {
    let s = resolve(text, "test.toml", &[platforms()]).unwrap_or_else(|e| panic!("{e}"));
    run(&s, &mut |_| Ok(())).unwrap_or_else(|e| panic!("{e}"))
}

/// A loopback of packets of `bytes`, with `under_way` packets in flight, between two nodes unless `more` changes that.
fn loopback(bytes: u32, under_way: u32, more: &str) -> Outcome {
    let app = format!("stack = \"ccnic\"\n        app = {{ kind = \"loopback\", bytes = \"{bytes} B\" }}");
    let closed = format!("arrivals = \"closed\"\n        outstanding = {under_way}");
    let nic = if more.contains("nic_node") { "" } else { "nic_node = 1\n" };
    let ccnic = format!("[ccnic]\n{nic}{more}");
    // Whole rounds of a ring of 64 lines, which has 256 descriptors.
    outcome(&text(&app, &format!("{ccnic}\nring = 64"), &closed, "requests = 4096\nwarmup_requests = 2048"))
}

fn get(o: &Outcome, name: &str) -> f64 {
    o.values.named(name).unwrap_or_else(|| panic!("{name} is absent"))
}

/// The first thousand packets of the unoptimised interface, one in flight, in rings of 256 descriptors.
fn loopback_from_cold(more: &str) -> Outcome {
    let app = "stack = \"ccnic\"\n        app = { kind = \"loopback\", bytes = \"64 B\" }";
    let ccnic = format!("[ccnic]\nnic_node = 1\nring = 64\npreset = \"unoptimised\"\n{more}");
    let closed = "arrivals = \"closed\"\n        outstanding = 1";
    outcome(&text(app, &ccnic, closed, "requests = 1000\nwarmup_requests = 0"))
}

/// A cell of the table of requests that left the L2: `side` and `object` name the row.
fn cell(o: &Outcome, side: &str, object: &str, column: &str) -> f64 {
    let t = &o.tables["off_core"];
    let column = t["columns"].as_array().unwrap().iter().position(|c| c["name"] == column).unwrap();
    let row = t["rows"].as_array().unwrap().iter().find(|r| r[0] == side && r[1] == object).unwrap();
    row[column].as_f64().unwrap()
}

fn near(what: &str, value: f64, expected: f64, by: f64) {
    assert!((value - expected).abs() <= by, "{what} is {value}, not {expected} within {by}");
}

/// CC-NIC, section 3.2: over two lines, each side makes a read and a request for ownership; over one line that
/// migrates, each side makes one read.
#[test]
fn a_ping_pong_takes_four_requests_over_two_lines_and_two_over_one() {
    let trips = |layout: &str| {
        let app = format!("app = {{ kind = \"pingpong\", layout = \"{layout}\", peer_node = 1 }}");
        outcome(&text(&app, "", "arrivals = \"none\"", "requests = 500\nwarmup_requests = 100"))
    };
    let ns = |l: &str| get(&trips(l), "pingpong_ns");
    for layout in ["S0", "S1", "Rd", "Wr"] {
        near(layout, get(&trips(layout), "remote_requests"), 4.0, 0.02);
    }
    for layout in ["S0C", "S1C"] {
        near(layout, get(&trips(layout), "remote_requests"), 2.0, 0.02);
        assert!(ns(layout) < ns("Wr") && ns("Wr") < ns("Rd"));
    }
}

/// Cores of one socket behave alike: on Emerald Rapids a ping-pong takes 124 ns over one line and 249 ns over two
/// lines, which are four transfers (docs/ccnic/data/emerald-rapids, probe.csv).
#[test]
fn within_a_socket_a_line_that_is_read_and_written_in_turn_moves_once_a_turn() {
    let trip = |layout: &str, take: bool| {
        let app = format!("app = {{ kind = \"pingpong\", layout = \"{layout}\", peer_node = 0 }}");
        let of_llc = if take { "[override.caches.llc]\nmodified_read = \"take\"" } else { "" };
        get(
            &outcome(&text(&app, of_llc, "arrivals = \"none\"", "requests = 500\nwarmup_requests = 100")),
            "pingpong_ns",
        )
    };
    let (one, two) = (trip("S0C", true), trip("S0", true));
    near("two lines over one", two / one, 249.2 / 124.1, 0.3);
    assert!(trip("S0C", false) > 1.4 * one, "with a request for ownership after each read");
}

/// Section 5.6: a packet takes a quarter of a read for full lines of four descriptors, and one read for recycled
/// payload, with neither registers nor requests for ownership of payload.
#[test]
fn a_batched_packet_costs_the_nic_one_read_of_payload_and_a_quarter_of_descriptors() {
    let o = loopback(64, 128, "tx_batch = 8\nrx_batch = 8");
    near("payload", get(&o, "nic_remote_reads_payload"), 1.0, 0.01);
    for (what, object, consumer, producer) in
        [("sent", "tx descriptors", "NIC", "host"), ("received", "rx descriptors", "host", "NIC")]
    {
        near(what, cell(&o, consumer, object, "remote_reads"), 0.25, 0.005);
        near(what, cell(&o, producer, object, "remote_rfos"), 0.25, 0.005);
        near(what, cell(&o, producer, object, "remote_reads"), 0.0, 0.005);
    }
    near("payload received", cell(&o, "host", "buffers", "remote_reads"), 1.0, 0.01);
    near("ownership of payload", get(&o, "host_remote_rfos_payload"), 0.0, 0.01);
    for side in ["host", "NIC"] {
        for ring in ["tx registers", "rx registers"] {
            assert_eq!(cell(&o, side, ring, "reads") + cell(&o, side, ring, "rfos"), 0.0, "{side} {ring}");
        }
    }
}

/// For a single descriptor, the producer takes the line back from the consumer that polls it, and the consumer reads
/// it: one transfer in each direction, whatever the layout. Registers take one more line in each direction (section
/// 3.2). A producer that checks one unit of eight ahead takes that line from the consumer, whose poll takes it back: an
/// eighth more.
#[test]
fn the_line_of_a_signal_crosses_once_each_way() {
    let forms = [
        ("", 0.0, 0.0),
        ("layout = \"packed\"", 0.0, 0.0),
        ("layout = \"padded\"", 0.0, 0.0),
        ("signal = \"register\"", 1.0, 0.0),
        ("free_check = \"ahead\"", 0.0, 0.125),
    ];
    for (form, registers, more) in forms {
        let o = loopback(64, 1, form);
        for (producer, consumer, ring) in [("host", "NIC", "tx"), ("NIC", "host", "rx")] {
            let is = |side: &str, object: &str, column: &str, expected: f64| {
                let what = format!("{form}: {column} of {side}, {ring} {object}");
                near(&what, cell(&o, side, &format!("{ring} {object}"), column), expected, 0.01);
            };
            is(consumer, "descriptors", "remote_reads", 1.0 + more);
            is(producer, "descriptors", "remote_rfos", 1.0);
            is(producer, "descriptors", "remote_reads", more);
            is(consumer, "registers", "remote_reads", registers);
            is(producer, "registers", "remote_rfos", registers);
        }
        for side in ["host", "NIC"] {
            near("payload", cell(&o, side, "buffers", "remote_reads"), 1.0, 0.01);
        }
    }
}

/// With the interface of a PCIe NIC at the host, each tail that has moved announces a line that the other side has
/// written since.
#[test]
fn packed_descriptors_behind_a_register_are_read_again_for_each_that_comes_alone() {
    let o = loopback(64, 1, "preset = \"unoptimised\"");
    near("sent", cell(&o, "NIC", "tx descriptors", "remote_reads"), 1.0, 0.01);
    near("received", cell(&o, "host", "rx descriptors", "remote_reads"), 1.0, 0.01);
}

/// A burst of 32 over a long link, without read-ahead. A thread that waits for each of eight polls takes eight trips. A
/// thread that predicts its polls takes two trips, for descriptors and for payload, and part of a third for lines that
/// it returns.
#[test]
fn a_core_that_foresees_its_polls_does_not_wait_for_each_of_them() {
    let far = "[override.nodes.link]\nlatency = \"1 us\"\n[override.core]\nlfb = 48";
    let app = "app = { kind = \"pingpong\", layout = \"S0C\", peer_node = 1 }";
    let trips = outcome(&text(app, far, "arrivals = \"none\"", "requests = 500\nwarmup_requests = 100"));
    let trip = get(&trips, "pingpong_ns") / 2.0;
    let app = "stack = \"ccnic\"\n        app = { kind = \"loopback\", bytes = \"64 B\" }";
    // A burst fits the reorder buffer of 512 instructions.
    let costs = "alloc = 1, free = 1, host_tx = 1, host_rx = 1, nic_tx = 1, nic_rx = 1, unit = 1, poll = 1, pool = 1";
    let ccnic = format!("[ccnic]\nnic_node = 1\nread_ahead = 0\ncosts = {{ {costs} }}\n{far}");
    let closed = "arrivals = \"closed\"\n        outstanding = 1024";
    let o = outcome(&text(app, &ccnic, closed, "requests = 8192\nwarmup_requests = 4096"));
    let burst = 32e3 / get(&o, "achieved_mpps");
    assert!(burst < 4.0 * trip, "{burst} ns a burst, with trips of {trip}");
}

/// The register, the descriptor that the register announces, and the payload that the descriptor names: three
/// transfers, one after the other, in each direction (sections 2.1 and 3.2). A ping-pong over one line takes two
/// transfers.
#[test]
fn behind_a_register_descriptor_and_payload_are_read_one_after_the_other() {
    let app = "app = { kind = \"pingpong\", layout = \"S0C\", peer_node = 1 }";
    let two =
        get(&outcome(&text(app, "", "arrivals = \"none\"", "requests = 500\nwarmup_requests = 100")), "pingpong_ns");
    for form in ["signal = \"register\"", "preset = \"unoptimised\""] {
        let rtt = get(&loopback(64, 1, form), "rtt_min_ns");
        assert!(rtt > 3.0 * two, "{form}: {rtt} ns, and six transfers take {} ns", 3.0 * two);
    }
}

#[test]
fn registers_cost_reads_of_their_own() {
    let inline = loopback(64, 1, "");
    let register = loopback(64, 1, "signal = \"register\"");
    assert!(get(&register, "nic_remote_reads_register") > 0.9);
    assert!(get(&register, "rtt_median_us") > get(&inline, "rtt_median_us"));
    let unoptimised = loopback(64, 1, "preset = \"unoptimised\"");
    assert!(get(&unoptimised, "rtt_median_us") > get(&inline, "rtt_median_us"));
}

/// Section 3.2: the NIC learns of a packet and its descriptor from one line where the signal is in the descriptor, and
/// from two lines where a register announces the descriptor. Lines that a prefetcher of the host takes between two
/// packets do not count.
#[test]
fn a_signal_in_its_descriptor_takes_one_line_and_a_register_two() {
    let signal = |form: &str| get(&loopback(64, 1, form), "nic_signal_reads");
    near("in the descriptor", signal(""), 1.0, 0.01);
    near("in a register", signal("signal = \"register\""), 2.0, 0.01);
    // In the meantime the host posts blank buffers, one for each packet or many together.
    near("unoptimised", signal("preset = \"unoptimised\""), 2.0, 0.01);
}

/// 1500 bytes are 24 lines. The NIC has to read some lines of the next packet and also writes them; such a line is
/// transferred with a request for ownership.
#[test]
fn every_line_of_a_large_packet_crosses_once_each_way() {
    let o = loopback(1500, 16, "");
    let lines = |side: &str| ["remote_reads", "remote_rfos"].map(|c| cell(&o, side, "buffers", c)).iter().sum::<f64>();
    near("NIC", lines("NIC"), 24.0, 0.3);
    near("host", lines("host"), 24.0, 0.3);
}

#[test]
fn who_manages_buffers_does_so_once_a_packet() {
    let shared = loopback(64, 64, "");
    assert_eq!((get(&shared, "host_blanks_per_packet"), get(&shared, "host_tx_frees_per_packet")), (0.0, 0.0));
    near("with stacks", get(&shared, "pool_ops_per_packet"), 0.0, 0.01);
    // Each side takes every buffer from the pool, and returns it to the pool.
    for scope in ["port", "pair"] {
        let bare = loopback(64, 128, &format!("recycle = false\npool_scope = \"{scope}\""));
        near("without stacks", get(&bare, "pool_ops_per_packet"), 4.0, 0.1);
    }
    let host = loopback(64, 64, "pool = \"host\"\nsmall_buffers = false");
    near("blanks", get(&host, "host_blanks_per_packet"), 1.0, 0.02);
    near("buffers that were sent", get(&host, "host_tx_frees_per_packet"), 1.0, 0.02);
    // A driver allocates a blank buffer and a buffer to send, and frees the received and the sent buffer: with a cache
    // it does not access the pool.
    let driver = |cache: &str| loopback(64, 64, &format!("preset = \"unoptimised\"\n{cache}"));
    near("with a cache", get(&driver(""), "pool_ops_per_packet"), 0.0, 0.05);
    near("without one", get(&driver("cache = 0"), "pool_ops_per_packet"), 4.0, 0.05);
}

/// Requests of the host for lines of buffers, per packet: reads and requests for ownership, in rings of 1024
/// descriptors, whose buffers of 4 KiB have more metadata lines of one page offset than the 512 that an L2 holds.
fn buffer_requests(more: &str) -> [f64; 2] {
    let app = "stack = \"ccnic\"\n        app = { kind = \"loopback\", bytes = \"64 B\" }";
    let ccnic = format!("[ccnic]\nnic_node = 1\n{more}");
    let closed = "arrivals = \"closed\"\n        outstanding = 64";
    let o = outcome(&text(app, &ccnic, closed, "requests = 4096\nwarmup_requests = 4096"));
    ["reads", "rfos"].map(|column| cell(&o, "host", "buffers", column))
}

/// A host that posts blank buffers and frees sent ones late meets the metadata of each buffer a whole ring after its
/// last use: it writes the metadata to receive a packet, and reads it to free a sent buffer. A buffer is allocated right
/// after it was freed. With the library's threshold the sent buffers are hot; with stacks all buffers are.
#[test]
fn metadata_leaves_the_caches_with_the_rings_that_hold_the_buffers() {
    let more = |ccnic: &str| {
        let [with, without] = ["64 B", "0 B"].map(|size| buffer_requests(&format!("{ccnic}\nmetadata = \"{size}\"")));
        [with[0] - without[0], with[1] - without[1]]
    };
    for (ccnic, reads, owns) in [
        ("", 0.0, 0.0),
        ("preset = \"unoptimised\"", 1.0, 1.0),
        ("preset = \"unoptimised\"\nfree_threshold = 993", 0.0, 1.0),
    ] {
        let got = more(ccnic);
        near(&format!("reads, {ccnic}"), got[0], reads, 0.05);
        near(&format!("requests for ownership, {ccnic}"), got[1], owns, 0.05);
    }
}

/// DPDK's `tx_free_thresh`: of `ring` descriptors all but the threshold hold sent buffers before the driver frees as
/// many buffers as the threshold. With the library's threshold it frees all of them once 32 have been sent.
#[test]
fn sent_buffers_are_freed_once_few_descriptors_are_free() {
    for (more, least, most) in [
        ("", 256 - 32 + 1 - 32, 256 - 32),
        ("free_threshold = 100", 256 - 100 + 1 - 100, 256 - 100),
        ("free_threshold = 225", 0, 31),
    ] {
        let o = loopback_from_cold(more);
        let out = 1000.0 * (1.0 - get(&o, "host_tx_frees_per_packet"));
        assert!((f64::from(least)..=f64::from(most)).contains(&out), "{more}: {out} sent buffers are not freed");
    }
}

/// Section 2.1: a buffer begins with metadata, so that a small one of 128 B has room for 64 B, and a large one of 4096 B
/// for 4032 B.
#[test]
fn metadata_takes_its_room_from_the_buffer() {
    let descriptors = |bytes: u32, more: &str| cell(&loopback(bytes, 1, more), "NIC", "tx descriptors", "remote_reads");
    let of = |bytes: u32, more: &str| descriptors(bytes, &format!("layout = \"padded\"\n{more}"));
    for (bytes, more, buffers) in [
        (4032, "", 1.0),
        (4033, "", 2.0),
        (4096, "metadata = \"0 B\"", 1.0),
        (4096, "metadata = \"128 B\"\nsmall_buffers = false", 2.0),
    ] {
        near(&format!("buffers of {bytes} B, {more}"), of(bytes, more), buffers, 0.02);
    }
}

/// Section 3.3: without recycling, lines that the NIC has sent stay in the NIC's caches, and the host's next write to
/// each of these lines asks the other node for ownership. With recycling, the host writes to lines that it used last
/// itself.
#[test]
fn a_write_to_a_buffer_that_the_nic_has_sent_asks_for_ownership_once_a_line() {
    for bytes in [64, 1500] {
        // With this number of buffers, which no burst divides, the host gets some buffers that the NIC has returned.
        let bare = loopback(bytes, 128, "recycle = false\nbuffers = 1000");
        let written = get(&bare, "host_writes_retained");
        assert!(written > 0.1, "{written} lines a packet");
        near("requests a line", get(&bare, "host_remote_rfos_payload") / written, 1.0, 0.1);
    }
    assert_eq!(get(&loopback(64, 128, ""), "host_writes_retained"), 0.0);
}

/// Of a pool that all pairs share, each burst needs the line of the head twice, for the buffers of the host and of the
/// NIC. Each time the line comes from another core, which takes about half a ping-pong, however many pairs there are.
/// Pairs with pools of their own share only a link, which they do not fill.
#[test]
fn pairs_with_pools_of_their_own_do_not_wait_for_each_other() {
    let app = "app = { kind = \"pingpong\", layout = \"S0C\", peer_node = 0 }";
    let near_by = outcome(&text(app, "", "arrivals = \"none\"", "requests = 500\nwarmup_requests = 100"));
    let transfer = get(&near_by, "pingpong_ns") / 2.0;
    let rate = |pairs: u32, scope: &str| {
        let app = "stack = \"ccnic\"\n        app = { kind = \"loopback\", bytes = \"64 B\" }";
        let batches = "tx_batch = 4\nrx_batch = 4\nnic_batch = 4";
        let pool = format!("recycle = false\nbuffers = {}\npool_scope = \"{scope}\"", 170 * pairs);
        let ccnic = format!("[ccnic]\nnic_node = 1\nring = 64\n{batches}\n{pool}");
        let run = format!("requests = {}\nwarmup_requests = {}", 1000 * pairs, 1000 * pairs);
        let one = text(app, &ccnic, "arrivals = \"closed\"\n        outstanding = 32", &run);
        get(&outcome(&one.replace("cores = 1\n", &format!("cores = {pairs}\n"))), "achieved_mpps")
    };
    let most = 4e3 / (2.0 * transfer);
    let (one, port, pair) = (rate(1, "pair"), rate(12, "port"), rate(12, "pair"));
    assert!(port < 1.1 * most && 1.1 * most < pair, "{port} and {pair} Mpps; one head allows {most}");
    near("of twelve pairs", pair / 12.0, one, 0.05 * one);
    near("of one pair", rate(1, "port"), one, 0.03 * one);
}

/// On one node no request crosses the link, and the rate follows from the instructions: 70 + 150 + 150 + 70 for a
/// packet, two units of 28 for four packets, and polls.
#[test]
fn on_one_node_the_hosts_instructions_bound_the_rate() {
    let o = loopback(64, 128, "nic_node = 0");
    assert_eq!(get(&o, "host_remote_reads") + get(&o, "nic_remote_rfos"), 0.0);
    let instructions = get(&o, "host_instructions_per_packet");
    near("instructions", instructions, 454.0, 20.0);
    let most = 1.9e3 * 2.0 / instructions; // 1.9 GHz, two a cycle
    let rate = get(&o, "achieved_mpps");
    assert!(rate < 1.1 * most && rate > 0.75 * most, "{rate} Mpps of {most}");
    near("Gb/s", get(&o, "achieved_gbps"), rate * 0.512, 1e-6);
}

/// A burst of 32 has the fixed part of one poll, not of eight polls for its eight lines, and its payloads are read
/// after all its descriptors.
#[test]
fn a_burst_has_one_poll_s_fixed_part() {
    let n = |poll: u32| {
        get(&loopback(64, 128, &format!("nic_node = 0\ncosts = {{ poll = {poll} }}")), "host_instructions_per_packet")
    };
    near("of 3200 instructions", n(3220) - n(20), 3200.0 / 32.0, 15.0);
}

#[test]
fn an_open_loop_gets_the_rate_that_it_offers() {
    let app = "stack = \"ccnic\"\n        app = { kind = \"loopback\", bytes = \"64 B\" }";
    for arrivals in ["fixed", "poisson"] {
        let traffic = format!("arrivals = \"{arrivals}\"\nrate = \"2 Mrps\"");
        let o = outcome(&text(app, "[ccnic]\nnic_node = 1", &traffic, "requests = 3000\nwarmup_requests = 500"));
        near(arrivals, get(&o, "achieved_mpps"), 2.0, if arrivals == "fixed" { 0.01 } else { 0.15 });
    }
}

#[test]
fn every_switch_carries_packets() {
    for more in [
        "layout = \"packed\"",
        "layout = \"padded\"",
        "layout = \"packed\"\nsignal = \"register\"",
        "layout = \"padded\"\nsignal = \"register\"",
        "stores = \"nontemporal\"",
        "release = \"clflushopt\"",
        "release = \"clwb\"",
        "recycle = false\nrelease = \"clflushopt\"",
        "own_ahead = 2\nread_ahead = 6",
        "pool = \"host\"\nsmall_buffers = false\nlayout = \"padded\"",
        "tx_home = \"nic\"\nrx_home = \"host\"\nbuffer_home = \"nic\"",
        "tx_batch = 1\nrx_batch = 1",
    ] {
        let o = loopback(64, 64, more);
        assert!(get(&o, "achieved_mpps") > 1.0, "{more}: {} Mpps", get(&o, "achieved_mpps"));
    }
}

#[test]
fn what_does_not_fit_together_is_one_sentence() {
    let app = "stack = \"ccnic\"\n        app = { kind = \"loopback\", bytes = \"64 B\" }";
    let (closed, none) = ("arrivals = \"closed\"\noutstanding = 1", "arrivals = \"none\"");
    let said = |app: &str, ccnic: &str, traffic: &str| {
        let e = resolve(&text(app, ccnic, traffic, ""), "test.toml", &[platforms()]).err();
        e.map_or_else(|| panic!("{ccnic} {traffic} was taken"), |e| e.to_string())
    };
    for (app, ccnic, traffic, part) in [
        (app, "[ccnic]\nring = 100", closed, "ccnic.ring = 100 is not a power of two"),
        (app, "[ccnic]\npool = \"host\"", closed, "ccnic.small_buffers = true needs pool"),
        (app, "[ccnic]\ncache = 64", closed, "ccnic.quirks.cache needs recycle = false"),
        (app, "[ccnic]\nrecycle = false\ncache = 513", closed, "ccnic.quirks.cache = 513 is not within 0 to 512"),
        (app, "[ccnic]\nmetadata = \"32 B\"", closed, "ccnic.quirks.metadata = \"32 B\" is not \"0 B\", \"64 B\" or"),
        (app, "[ccnic]\nsmall_buffer = \"64 B\"", closed, "has no room behind metadata = \"64 B\"; give small_buffer"),
        (app, "[ccnic]\nfree_threshold = 32", closed, "ccnic.quirks.free_threshold is for pool = \"host\""),
        (
            app,
            "[ccnic]\npreset = \"unoptimised\"\nring = 64\nfree_threshold = 256",
            closed,
            "ccnic.quirks.free_threshold = 256 is not within 1 to 255",
        ),
        (app, "[ccnic]\nnic_node = 2", closed, "ccnic.nic_node = 2 does not exist: nodes count from 0 to 1"),
        (app, "[ccnic]\nnic = \"card\"", closed, "unknown choice \"card\""),
        (app, "[ccnic]\nnic = \"agent\"", closed, "ccnic.nic = \"agent\" has no poll loop"),
        (app, "[ccnic]\nnic_requests = 8", closed, "ccnic.quirks.nic_requests is for nic = \"agent\""),
        (app, "[ccnic]\nmode = \"overlay\"", closed, "the PCIe NIC returns nothing that the application of kind"),
        (app, "[ccnic]\nmode = \"overlay\"\nnic = \"agent\"", closed, "the PCIe NIC returns nothing"),
        (&app.replace("64 B", "1500 B"), "[ccnic]\nbuffers = 64", closed, "fewer than four batches"),
        // Of 128 B a packet of 65 B needs more than is left behind the metadata.
        (
            &app.replace("64 B", "65 B"),
            "[ccnic]\nbuffers = 1000\nsmall_share = 0.9",
            closed,
            "leaves 100 for packets of 65 B",
        ),
        (app, "", "arrivals = \"keep_depth\"\ndepth = 1", "needs traffic.arrivals"),
        (app, "", "arrivals = \"closed\"\noutstanding = 1\npacket = \"64 B\"", "takes the app's own sizes"),
        ("app = { kind = \"loopback\", bytes = \"64 B\" }", "", closed, "needs stack = \"ccnic\""),
        ("app = { kind = \"xmem\", array = \"4 KiB\" }", "[ccnic]\nring = 64", none, "ccnic needs a tenant with stack"),
        ("app = { kind = \"pingpong\", layout = \"Wr\", peer_node = 3 }", "", none, "peer_node = 3 does not exist"),
    ] {
        let e = said(app, ccnic, traffic);
        assert!(e.contains(part) && e.ends_with('.') && !e.contains('\n'), "{e}");
    }
}

/// With one packet in flight, a polling NIC sees the packet after a poll of each queue pair; a NIC that is notified
/// sees the packet immediately.
#[test]
fn polls_of_unused_queue_pairs_delay_what_the_nic_sees_and_messages_do_not() {
    let seen = |more: &str| get(&loopback(64, 1, more), "signal_discovery_ns");
    let (one, many) = (seen("idle_queues = 0"), seen("idle_queues = 63"));
    let [heard, of_many] = ["idle_queues = 0", "idle_queues = 63"].map(|n| seen(&format!("wake = \"event\"\n{n}")));
    // 63 polls of 20 instructions, at two per cycle of 1.9 GHz, with 5 cycles of L1 each. The position of the
    // descriptor in the round is fixed, because a single packet circulates.
    let round = 63.0 * (20.0 / 2.0 + 5.0) / 1.9;
    assert!((0.1 * round..1.05 * round).contains(&(many - one)), "{} ns more, of a round of {round} ns", many - one);
    near("a message among many", of_many, heard, 1.0);
    assert!(heard <= one, "{heard} ns by a message, {one} by a poll");
}

/// Twelve queue pairs of twelve cores, with the given number of threads of the NIC on the same node.
fn twelve_pairs(threads: u32, requests: u32, more: &str, traffic: &str) -> Outcome {
    let app = "stack = \"ccnic\"\n        app = { kind = \"loopback\", bytes = \"64 B\" }";
    let ccnic = format!("[ccnic]\nnic_node = 1\nring = 64\nnic_threads = {threads}\n{more}");
    let run = format!("requests = {requests}\nwarmup_requests = {}", requests / 2);
    outcome(&text(app, &ccnic, traffic, &run).replace("cores = 1\n", "cores = 12\n"))
}

/// The NIC's instructions per packet limit the rate of a thread, however many queue pairs the thread serves: two
/// threads forward twice as many packets, and three threads three times as many. Rates are at 1.9 GHz and two
/// instructions per cycle; lines that come from the other node take some of the time.
#[test]
fn threads_of_the_nic_that_serve_several_queue_pairs_bound_the_rate_by_their_number() {
    let busy = "arrivals = \"closed\"\n        outstanding = 64";
    let one = twelve_pairs(1, 24000, "", busy);
    let (rate, most) = (get(&one, "achieved_mpps"), 1.9e3 * 2.0 / get(&one, "nic_instructions_per_packet"));
    assert!(rate < 1.02 * most && rate > 0.5 * most, "{rate} Mpps of {most}");
    for threads in [2, 3] {
        let many = get(&twelve_pairs(threads, 24000, "", busy), "achieved_mpps") / rate;
        assert!((many / f64::from(threads) - 1.0).abs() < 0.1, "{threads} threads forward {many} times as much as one");
    }
}

/// A thread that serves several queue pairs visits each pair once per round of polls, at a random time after the
/// arrival of a rare packet: with six more polls in a round, three polls later on average. A poll takes 400
/// instructions in this test, at two per cycle of 1.9 GHz, and 5 cycles of L1.
#[test]
fn a_packet_waits_half_a_round_of_the_polls_of_its_thread() {
    let seldom = "arrivals = \"poisson\"\n        rate = \"0.05 Mpps\"";
    let seen =
        |threads| get(&twelve_pairs(threads, 2000, "[ccnic.quirks.costs]\npoll = 400", seldom), "signal_discovery_ns");
    let (more, three) = (seen(1) - seen(2), 3.0 * (400.0 / 2.0 + 5.0) / 1.9);
    near("later", more, three, 0.15 * three); // the median of 2,000 packets is known within 15 ns
}

#[test]
fn threads_of_the_nic_are_as_many_as_queue_pairs_at_most() {
    let app = "stack = \"ccnic\"\n        app = { kind = \"loopback\", bytes = \"64 B\" }";
    let closed = "arrivals = \"closed\"\noutstanding = 1";
    for (ccnic, part) in [
        ("nic_threads = 0", "ccnic.nic_threads = 0 is not within 1 to the tenant's 2 cores"),
        ("nic_threads = 3", "ccnic.nic_threads = 3 is not within 1 to the tenant's 2 cores"),
        ("nic_threads = 1\nwake = \"event\"", "an event is a write of one line that the thread keeps"),
    ] {
        let two = text(app, &format!("[ccnic]\n{ccnic}"), closed, "").replace("cores = 1\n", "cores = 2\n");
        let e = resolve(&two, "test.toml", &[platforms()]).err().unwrap_or_else(|| panic!("{ccnic} was taken"));
        assert!(e.to_string().contains(part), "{e}");
    }
}

/// A device's agent moves the same lines as a thread. The agent saves at most the instructions of the thread, which are
/// those of `Costs` at two per cycle of 1.9 GHz: allocating and freeing buffers, taking and delivering the packet, a
/// unit of either ring, and the poll.
#[test]
fn an_agent_makes_the_requests_of_a_thread_without_its_instructions() {
    const AGENT: &str = "nic = \"agent\"\nwake = \"event\"";
    let batched = |more: &str| loopback(64, 128, &format!("tx_batch = 8\nrx_batch = 8\n{more}"));
    let (thread, agent) = (batched(""), batched(AGENT));
    for object in ["tx descriptors", "rx descriptors", "buffers"] {
        for column in ["remote_reads", "remote_rfos"] {
            near(object, cell(&agent, "NIC", object, column), cell(&thread, "NIC", object, column), 0.02);
        }
    }
    let bound = get(&thread, "achieved_mpps");
    near("the rate, which the host bounds", get(&agent, "achieved_mpps"), bound, 0.01 * bound);
    let rtt = |more: &str| get(&loopback(64, 1, more), "rtt_min_ns");
    let saved = rtt("") - rtt(AGENT);
    let all = (70.0 + 70.0 + 138.0 + 138.0 + 28.0 + 28.0 + 20.0) / 2.0 / 1.9;
    assert!((0.3 * all..all).contains(&saved), "{saved} ns less, and the instructions take {all}");
    // One request after the other: a read of payload, a quarter of a read for descriptors, and a quarter of a request
    // for ownership for descriptors.
    let app = "app = { kind = \"pingpong\", layout = \"S0C\", peer_node = 1 }";
    let ping = outcome(&text(app, "", "arrivals = \"none\"", "requests = 500\nwarmup_requests = 100"));
    let most = 1e3 / (1.5 * get(&ping, "pingpong_ns") / 2.0);
    let few = get(&batched(&format!("{AGENT}\nnic_requests = 1")), "achieved_mpps");
    assert!(few < most.min(0.9 * bound), "{few} Mpps with one request under way, and {most} are the most");
}

/// The header crosses to the host and back. The NIC reads the lines that it has kept from its own cache, be it one line
/// or all.
#[test]
fn a_forwarded_packet_s_payload_stays_with_the_nic() {
    let forward = |touch: &str, reads: &str| {
        let app =
            format!("stack = \"ccnic\"\napp = {{ kind = \"loopback\", bytes = \"1500 B\", touch = \"{touch}\" }}");
        let ccnic = format!("[ccnic]\nmode = \"forward\"\nnic_node = 1\nnic_reads = \"{reads}\"");
        let closed = "arrivals = \"closed\"\noutstanding = 8";
        let o = outcome(&text(&app, &ccnic, closed, "requests = 2000\nwarmup_requests = 1000"));
        assert!(get(&o, "achieved_mpps") > 0.5);
        get(&o, "payload_lines_crossed")
    };
    near("lines of the header", forward("header", "header"), 2.0, 0.02);
    near("lines with a NIC that reads all", forward("header", "payload"), 2.0, 0.02);
    // 24 lines cross to the host, of which one returns; a migratory read also takes the ownership of the others.
    let all = forward("payload", "header");
    assert!(all >= 24.0, "{all} lines where the host reads all of 24");
}

/// A closed loop of 1500 B with a thousand packets under way at each of `cores` cores, and `buffers` buffers for all of them.
fn tight(cores: u32, buffers: u32, run_more: &str) -> Result<Outcome, String> {
    let text = format!(
        "name = \"tight\"\nplatform = \"icx\"\nplacement = {{ policy = \"ddio\", ways = 2 }}\n[ccnic]\nnic_node = 1\nbuffers = \
         {buffers}\n[[tenant]]\nname = \"host\"\ncores = {cores}\nstack = \"ccnic\"\napp = {{ kind = \"loopback\", bytes = \"1500 \
         B\" }}\n[traffic]\narrivals = \"closed\"\noutstanding = 1000\n[run]\nload = \"fixed\"\nrequests = 2000\n{run_more}"
    );
    let s = resolve(&text, "test.toml", &[platforms()]).unwrap_or_else(|e| panic!("{e}"));
    run(&s, &mut |_| Ok(()))
}

/// 16 cores want 16,000 packets under way, and there are 2200 buffers. Threads that exchanged as many packets without time would
/// hold all buffers on one side; a burst each leaves buffers to return them in.
#[test]
fn threads_that_fill_the_caches_leave_buffers_to_return_packets_in() {
    let o = tight(16, 2200, "").unwrap_or_else(|e| panic!("{e}"));
    let (rate, ns) = (get(&o, "achieved_mpps"), get(&o, "rtt_median_us"));
    // Little's law: no more packets are under way than there are buffers.
    assert!(rate > 1.0 && rate * ns < 2200.0, "{rate} Mpps with round trips of {ns} us");
}

/// Rings of 4 to 16 lines hold the packets that are under way in one direction, of which a burst and the units that are released
/// together are half or more. No packet is lost or doubled, however long the window: the rate times the round trip, by Little's law,
/// stays the same and below the number of packets. A round trip leaves out the wait for the rest of a burst.
#[test]
fn small_rings_keep_every_packet_under_way() {
    for (ring, under_way, more) in
        [(16, 64, ""), (8, 32, ""), (8, 32, "layout = \"padded\""), (4, 16, "quirks.lazy_release = 1")]
    {
        let app = "stack = \"ccnic\"\n        app = { kind = \"loopback\", bytes = \"64 B\" }";
        let closed = format!("arrivals = \"closed\"\n        outstanding = {under_way}");
        let ccnic = format!("[ccnic]\nnic_node = 1\nring = {ring}\n{more}");
        let inside = |requests: u32| {
            let o = outcome(&text(app, &ccnic, &closed, &format!("requests = {requests}\nwarmup_requests = 1000")));
            get(&o, "achieved_mpps") * get(&o, "rtt_mean_us")
        };
        let (short, long) = (inside(2_000), inside(16_000));
        let all = f64::from(under_way);
        assert!(long > 0.5 * all && long < 1.02 * all, "{ring} lines, {more}: {long} of {all} packets under way");
        assert!((long / short - 1.0).abs() < 0.1, "{ring} lines, {more}: {short}, then {long}");
    }
}

/// Packets of one core fill 160 buffers in both rings, and none is left to receive one in.
#[test]
fn a_closed_loop_that_holds_every_buffer_is_told() {
    let why = tight(1, 160, "warmup_requests = 100").err().unwrap_or_else(|| panic!("the run ended"));
    assert!(why.contains("the run stands still: no packet of the closed loop came back for 100 ms"), "{why}");
    assert!(why.contains("traffic.outstanding"), "{why}");
}
