//! Tests of two hosts joined by a link, where one host is the software load generator of the other, and of packets that
//! originate on a core.

use crate::common::{get, platforms, refused, simulate};
use hostnet::config::resolve;
use hostnet::host::{hosts, Outcome};
use std::sync::Arc;

const BASE: &str = r#"
name = "two"
placement = { policy = "ddio", ways = 4 }
[platform]
name = "cascadelake"
[platform.poll_mode]
poll_instructions = 40
burst_instructions = 60
receive_instructions = 40
transmit_instructions = 40
free_instructions = 10
[[tenant]]
name = "server"
cores = 2
stack = "poll_mode"
app = { kind = "testpmd", mode = "macswap" }
[[peripheral]]
kind = "ethernet"
lanes = 16
propagation = "3 us"
"#;

fn text(rate: f64, frame: u32, client: &str) -> String {
    format!(
        "{BASE}[traffic]\narrivals = \"poisson\"\nrate = \"{rate} Mrps\"\npacket = \"{frame} B\"\n{client}\n[run]\nload = \"fixed\"\n\
         requests = 20000\nwarmup_requests = 10000\n"
    )
}

fn client(cores: u32, more: &str) -> String {
    format!("[client]\ncores = {cores}\napp = {{ kind = \"load_generator\"{more} }}")
}

/// A row of the table of packets.
fn row(o: &Outcome, what: &str) -> f64 {
    let rows = o.tables["packets"]["rows"].as_array().expect("rows");
    rows.iter().find(|r| r[0] == what).and_then(|r| r[1].as_f64()).expect("a count")
}

#[test]
fn a_client_that_keeps_up_offers_the_plan_and_sees_the_link_and_its_own_software_in_a_round_trip() {
    let (frame, rate) = (256, 2.0);
    let alone = simulate(&text(rate, frame, ""));
    let pair = simulate(&text(rate, frame, &client(2, "")));
    for o in [&alone, &pair] {
        assert!((get(o, "offered_mrps") / rate - 1.0).abs() < 0.02, "{}", get(o, "offered_mrps"));
        assert_eq!(get(o, "drops"), 0.0);
    }
    assert_eq!(get(&pair, "client_drops"), 0.0);
    assert!(get(&pair, "client_late") < 20.0);
    // Twice 3 us of flight and twice the frame at 100 Gb/s are lower bounds of both; software and PCIe of a second host
    // add to them.
    let wire = 2.0 * (3.0 + f64::from(frame + 20) * 8.0 / 100e3);
    let (least, more) = (get(&alone, "rtt_mean_us"), get(&pair, "rtt_mean_us"));
    assert!(least > wire && more > least + 1.0 && more < least + 6.0, "{wire} {least} {more}");
    // The two machines together do more work than one.
    assert!(get(&pair, "sim_events") > 1.3 * get(&alone, "sim_events"));
    assert!(alone.values.named("client_utilisation").is_none() && get(&pair, "client_utilisation") > 0.05);
}

/// A calculation for in-order code: a request takes its instructions at 2 per cycle, and no other time is significant.
#[test]
fn a_slow_client_bounds_the_rate_and_loses_nothing() {
    let instructions = 20_000;
    let o = simulate(&text(2.0, 256, &client(1, &format!(", request_instructions = {instructions}"))));
    // Cascade Lake of the platform: two instructions a cycle.
    let spec = resolve(&text(2.0, 256, ""), "two.toml", &[platforms()]).expect("a scenario");
    let hz = spec.platform.core.clock.0 as f64 * spec.platform.core.compute_ipc;
    let bound = hz / f64::from(instructions) / 1e6;
    let got = get(&o, "offered_mrps");
    assert!(got < bound && got > 0.9 * bound, "{got} Mrps, bound {bound}");
    assert_eq!(get(&o, "drops") + get(&o, "client_drops"), 0.0);
    assert!(get(&o, "client_utilisation") > 0.999, "{}", get(&o, "client_utilisation"));
    // Requests that were planned and not sent wait at the client.
    assert!(get(&o, "client_late") > 10_000.0);
    // Two cores send twice as much.
    let two = simulate(&text(2.0, 256, &client(2, &format!(", request_instructions = {instructions}"))));
    assert!((get(&two, "offered_mrps") / got - 2.0).abs() < 0.05);
}

#[test]
fn packets_are_conserved_between_two_hosts_to_the_packet_whoever_loses_some() {
    // A server that is too slow; and a client that sends half a thousand requests before the first reply returns, and
    // has hardly a buffer.
    let slow = text(4.0, 1024, &client(2, "")).replace("mode = \"macswap\"", "mode = \"macswap\", instructions = 4000");
    let few = "[client.ethernet]\nreceive_buffer = \"16 KiB\"\nrings = { receive = 64, receive_cache = 32, replenish = 16 }\n[run]";
    let deaf = text(1.0, 1024, &client(1, ", reply_instructions = 4000")).replace("[run]", few);
    let deaf = deaf.replace("arrivals = \"poisson\"", "arrivals = \"burst\"\nburst = 512").replace("3 us", "100 us");
    for (name, text) in [("slow", slow), ("deaf", deaf)] {
        let o = simulate(&text);
        let inside = row(&o, "in the host at the start") + row(&o, "offered");
        assert_eq!(inside, row(&o, "served") + row(&o, "lost") + row(&o, "in the host at the end"));
        let lost = (get(&o, "drops"), get(&o, "client_drops"));
        assert!(
            if name == "slow" { lost.0 > 1000.0 && lost.1 == 0.0 } else { lost.0 == 0.0 && lost.1 > 100.0 },
            "{lost:?}"
        );
    }
}

#[test]
fn what_lies_between_two_hosts_is_checked() {
    let spec = resolve(&text(1.0, 256, &client(1, "")), "two.toml", &[platforms()]).expect("a scenario");
    let mut world = hosts(&Arc::new(spec), false).expect("two hosts");
    assert_eq!(world.members.len(), 2);
    assert_eq!(world.check(), Ok(()));
    // A frame that no host sent.
    let frame = hostnet::device::nic::Packet { wire_bytes: 64, lines: 1, uses: 1, ..Default::default() };
    world.members[0]
        .machine
        .arrive(hostnet::device::NicAt::Port(hostnet::kernel::PortId(0)), frame)
        .expect("there is room");
    assert!(world.check().expect_err("nobody sent it").contains("requests left"));
}

#[test]
fn a_client_of_another_platform_is_looked_up_and_what_is_not_built_is_one_sentence() {
    let good = text(1.0, 256, &client(1, "").replace("[client]", "[client]\nplatform = \"skylake\""));
    let spec = resolve(&good, "two.toml", &[platforms()]).expect("a scenario");
    let host = spec.client_host().expect("a client");
    assert_eq!(host.platform.name, "skylake");
    // The link belongs to the server.
    assert_eq!(host.peripherals[0].ethernet().map(|e| e.propagation.0), Some(3_000_000));
    refused(
        &good,
        &[
            ("platform = \"skylake\"", "platform = \"skylike\"", "did you mean \"skylake\""),
            ("kind = \"load_generator\"", "kind = \"testpmd\"", "client.app.kind must be \"load_generator\""),
            ("platform = \"skylake\"", "stack = \"kernel\"", "client: stack = \"kernel\" needs platform.udp"),
            ("platform = \"skylake\"", "stack = \"queue_pair\"", "the link of two hosts joins their Ethernet NICs"),
            ("platform = \"skylake\"", "stack = \"ccnic\"", "a load generator there is not built yet"),
            ("cores = 1\napp", "cores = 100\napp", "client: tenants ask for 100 cores"),
            ("platform = \"skylake\"", "ethernet = { propagation = \"1 us\" }", "it is the same link"),
            (
                "stack = \"poll_mode\"\napp = { kind = \"testpmd\", mode = \"macswap\" }",
                "app = { kind = \"touchdrop\" }",
                "",
            ),
        ],
    );
}

/// testpmd's txonly: the link limits the rate, and with short frames the core does.
#[test]
fn a_core_that_only_sends_fills_the_link_with_long_frames_and_is_the_bound_with_short_ones() {
    let of = |frame: u32, instructions: u32| {
        let app = format!("mode = \"txonly\", instructions = {instructions}");
        let t = BASE.replace("mode = \"macswap\"", &app).replace("cores = 2", "cores = 1");
        let t = format!(
            "{t}[traffic]\narrivals = \"none\"\npacket = \"{frame} B\"\n[run]\nload = \"fixed\"\nrequests = 30000\n"
        );
        simulate(&t)
    };
    let long = of(1518, 20);
    let line = 100e3 / (8.0 * 1538.0);
    assert!((get(&long, "throughput_mrps") / line - 1.0).abs() < 0.02, "{} of {line}", get(&long, "throughput_mrps"));
    assert_eq!(get(&long, "offered_mrps"), 0.0);
    let slow = of(64, 2000);
    let spec = resolve(&text(1.0, 64, ""), "t.toml", &[platforms()]).expect("a scenario");
    let bound = spec.platform.core.clock.0 as f64 * spec.platform.core.compute_ipc / 2000.0 / 1e6;
    let got = get(&slow, "throughput_mrps");
    assert!(got < bound && got > 0.9 * bound, "{got} Mpps, bound {bound}");
    assert!(get(&slow, "cpu_utilisation") > 0.999);
}

#[test]
fn a_core_that_only_sends_takes_no_traffic() {
    let t = BASE.replace("macswap", "txonly");
    let run = "[run]\nload = \"fixed\"\nrequests = 1000\n";
    let with = format!("{t}[traffic]\narrivals = \"fixed\"\nrate = \"1 Mpps\"\n{run}");
    let e = resolve(&with, "t.toml", &[platforms()]).expect_err("refused").to_string();
    assert!(e.contains("tenant[0].app sends packets of its own: give traffic.arrivals = \"none\""), "{e}");
    let bare = format!("{}{run}", t.replace("stack = \"poll_mode\"\n", ""));
    assert!(resolve(&bare, "t.toml", &[platforms()]).is_err());
}

/// Cascade Lake's LLC has 11 ways, gem5's 16.
#[test]
fn all_ways_are_those_of_each_host_s_own_llc() {
    let ways = |more: &str| {
        let of_all = text(1.0, 64, &client(1, "")).replacen("ways = 4", "ways = \"all\"", 1);
        let s = resolve(&of_all.replacen("[client]", &format!("[client]\n{more}"), 1), "two.toml", &[platforms()])
            .unwrap_or_else(|e| panic!("{e}"));
        let own = s.client.and_then(|c| c.placement).expect("a placement");
        (s.placement.ways.count, own.ways.count)
    };
    assert_eq!(ways("platform = \"gem5\""), (11, 16));
    assert_eq!(ways(""), (11, 11));
    assert_eq!(ways("platform = \"gem5\"\nplacement = { policy = \"ddio\", ways = 3 }"), (11, 3));
    assert_eq!(ways("platform = \"gem5\"\nplacement = { policy = \"ddio\", ways = \"all\" }"), (11, 16));
}

/// `text` with another arrival process and another load.
fn loaded(traffic: &str, client: &str, run: &str) -> String {
    format!(
        "{BASE}[traffic]\n{traffic}\npacket = \"256 B\"\n{client}\n[run]\nrequests = 20000\nwarmup_requests = 10000\n{run}\n"
    )
}

/// Little's law: with N requests outstanding, rate x round trip = N, as far as the client's cores begin each request at
/// once.
#[test]
fn a_closed_loop_of_software_keeps_its_requests_outstanding() {
    for n in [1.0, 16.0] {
        let o =
            simulate(&loaded(&format!("arrivals = \"closed\"\noutstanding = {n}"), &client(4, ""), "load = \"fixed\""));
        let held = get(&o, "throughput_mrps") * get(&o, "rtt_mean_us");
        assert!((held / n - 1.0).abs() < 0.03, "{held} of {n} requests outstanding");
        // Twice 3 us of flight bound the round trip from below.
        assert!(get(&o, "rtt_mean_us") > 6.0);
    }
}

/// The server is the bottleneck, whoever offers it more than it can take.
#[test]
fn a_client_that_keeps_packets_waiting_finds_the_servers_capacity() {
    let traffic = "arrivals = \"keep_depth\"\ndepth = 256";
    let alone = simulate(&loaded(traffic, "", "load = \"saturate\""));
    let pair = simulate(&loaded(traffic, &client(8, ""), "load = \"saturate\""));
    let rate = |o: &Outcome| get(o, "throughput_mrps");
    assert!((rate(&pair) / rate(&alone) - 1.0).abs() < 0.03, "{} of {}", rate(&pair), rate(&alone));
    assert_eq!(get(&pair, "drops"), 0.0);
}

#[test]
fn a_search_with_a_client_ends_where_the_server_or_the_client_does() {
    let search = |cores: u32| {
        let traffic = "arrivals = \"poisson\"";
        let client = if cores == 0 { String::new() } else { client(cores, "") };
        let o = simulate(&loaded(traffic, &client, "load = \"peak_loss\"\nloss = 0.01\nsearch_tolerance = 0.02"));
        get(&o, "throughput_mrps")
    };
    let (alone, many, one) = (search(0), search(8), search(1));
    assert!((many / alone - 1.0).abs() < 0.06, "{many} Mrps with a client that keeps up, {alone} without one");
    assert!(one < 0.7 * alone, "{one} Mrps with one core that sends");
}

/// Sockets of the kernel send what the traffic plans, and a core's instructions bound their rate: a request takes its own,
/// those of `sendmsg`, of `recvmsg` and of the datagram that comes back.
#[test]
fn a_client_of_sockets_offers_the_plan_as_far_as_its_instructions_allow() {
    let text = |rate: &str, instructions: u32| {
        format!(
            "name = \"sockets\"\nplatform = \"altra\"\nplacement = {{ policy = \"ddio\", ways = 2 }}\n[[tenant]]\nname = \"server\"\ncores = 2\n\
             stack = \"poll_mode\"\napp = {{ kind = \"testpmd\", mode = \"macswap\" }}\n[[peripheral]]\nkind = \"ethernet\"\n[traffic]\n\
             arrivals = \"poisson\"\nrate = \"{rate}\"\npacket = \"256 B\"\n[client]\ncores = 2\nstack = \"kernel\"\napp = {{ kind = \
             \"load_generator\", request_instructions = {instructions} }}\n[run]\nload = \"fixed\"\nrequests = 4000\nwarmup_requests = 2000\n"
        )
    };
    let o = simulate(&text("0.1 Mpps", 100));
    assert!((get(&o, "offered_mrps") / 0.1 - 1.0).abs() < 0.04, "{}", get(&o, "offered_mrps"));
    assert_eq!(get(&o, "drops") + get(&o, "client_drops"), 0.0);
    // The round trip of a driver that polls is shorter by interrupts, wake-ups and system calls.
    let polled = simulate(&text("0.1 Mpps", 100).replace("stack = \"kernel\"\n", ""));
    assert!(get(&o, "rtt_mean_us") > get(&polled, "rtt_mean_us") + 2.0, "{} us", get(&o, "rtt_mean_us"));
    let spec = resolve(&text("1 Mpps", 100), "two.toml", &[platforms()]).expect("a scenario");
    let hz = spec.platform.core.clock.0 as f64 * spec.platform.core.compute_ipc;
    let slow = simulate(&text("1 Mpps", 100_000));
    let bound = 2.0 * hz / 100_000.0 / 1e6;
    let got = get(&slow, "offered_mrps");
    assert!(got < bound && got > 0.75 * bound, "{got} Mrps, bound {bound}");
}
