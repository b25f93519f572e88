//! Tests of the message for a scenario that cannot work: one sentence with file, key and value.

use crate::common::platforms;
use hostnet::config::{resolve, resolve_noting, Scenario};
use hostnet::host::run;
use hostnet::placement::Ways;
use proptest::prelude::*;

const GOOD: &str = r#"
name = "kvs"
platform = "sim24"
seed = 1

[placement]
policy = "ddio"
ways = 2
sweep_rx = true
sweep_tx = "none"

[rings]
rx_buffers = 64
buffer_size = "1 KiB"
tx_buffers = 64

[[tenant]]
name = "kvs"
cores = 2
llc_ways = 12
app = { kind = "mica", item_size = "1 KiB", get_fraction = 0.05, pairs = 20000, buckets = 8000, log_size = "2 MiB", zipf = 0.99 }

[traffic]
arrivals = "poisson"
rate = "2 Mrps"
packet = "1 KiB"
spikes = { probability = 0.001, min = "1 us", max = "100 us" }

[run]
load = "fixed"
slo_multiple = 100
requests = 400
warmup_requests = 0
"#;

fn resolved(text: &str) -> Result<Scenario, String> {
    resolve(text, "dir/test.toml", &[platforms()]).map_err(|e| e.to_string())
}

/// The message for `GOOD` after `from` has been replaced by `to`.
fn message(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    let text = GOOD.replacen(from, to, 1);
    resolved(&text).err().unwrap_or_else(|| panic!("{to} was taken"))
}

/// A value of another type than its key takes is refused with the key's full path and what the key takes.
#[test]
fn a_value_of_another_type_names_its_key_and_what_that_takes() {
    let nic = "[[peripheral]]\nkind = \"ethernet\"\n[peripheral.rings]\nreceive = 1024\n";
    for (from, to, told) in [
        (
            "policy = \"ddio\"",
            "policy = 3",
            "placement.policy: invalid type: integer \"3\", expected one of dma, ddio,",
        ),
        ("cores = 2", "cores = 2\nstack = true", "tenant[0].stack: invalid type: boolean \"true\", expected one of "),
        ("kind = \"mica\"", "kind = 5", "tenant[0].app.kind: invalid type: integer \"5\", expected one of "),
        (
            "llc_ways = 12",
            "llc_ways = [0, 1]",
            "tenant[0].llc_ways: expected a whole number of ways, or a range of ways such as",
        ),
        ("llc_ways = 12", "llc_ways = -1", "tenant[0].llc_ways: expected a whole number of ways, or a range"),
        ("seed = 1\n", "seed = 1\noverride = 3\n", "override = 3 is not a table"),
        (
            "[traffic]",
            &format!("{nic}buffer_size = 1000\n[traffic]"),
            "peripheral[0].rings.buffer_size: invalid type: integer",
        ),
        (
            "[traffic]",
            &format!("{nic}buffer_size = 1024\n[traffic]"),
            "peripheral[0].rings.buffer_size: invalid type: integer",
        ),
        ("[traffic]", &format!("{nic}quirks = {{ throttle = 1 }}\n[traffic]"), "peripheral[0].rings.quirks.throttle: "),
    ] {
        let said = message(from, to);
        assert!(
            said.starts_with("dir/test.toml: ") && said.contains(told) && !said.contains("WaysSpec"),
            "{to}: {said}"
        );
    }
}

/// Tenants and NICs have keys from the tables of all; a sentence names the key that was given.
#[test]
fn a_wrong_value_that_a_tenant_or_a_nic_takes_over_is_told_where_it_stands() {
    let own = GOOD.replacen("cores = 2", "cores = 2\ntraffic = { rate = \"1 Mrps\" }", 1);
    let of_all = |keys: &str| own.replacen("packet = \"1 KiB\"", keys, 1);
    let nic = |more: &str| {
        let text = std::fs::read_to_string(platforms().join("../scenarios/testpmd.toml")).expect("a scenario");
        format!("{text}\n{more}\n")
    };
    for (text, told) in [
        (of_all("packet = 5"), ": traffic.packet: invalid type: integer \"5\""),
        (of_all("dctcp = { flows = 2 }"), ": traffic.dctcp.flows: unknown key \"flows\""),
        (own.replacen("rate = \"1 Mrps\"", "rate = 5", 1), ": tenant[0].traffic.rate: "),
        (nic("[override.ethernet]\nlink = 5"), ": platform.ethernet.link: "),
    ] {
        let said = resolved(&text).expect_err(told);
        one_sentence(&said);
        assert!(said.contains(told), "{said}");
    }
}

/// A platform is a name or a table, whatever else of the scenario depends on it.
#[test]
fn a_platform_that_is_neither_name_nor_table_is_refused_with_the_names() {
    for (given, shown) in [("5", "5"), ("[\"icx\"]", "[\"icx\"]"), ("true", "true")] {
        let said = message("platform = \"sim24\"", &format!("platform = {given}"));
        one_sentence(&said);
        let told = format!(
            "platform = {shown} is neither the name of a platform nor a table of its values (there are: altra, "
        );
        assert!(said.contains(&told), "{said}");
    }
}

/// The NIC of a host of which all tenants are gone, or whose tenants take no packets, is left over.
#[test]
fn a_nic_for_no_tenant_is_told() {
    let text = std::fs::read_to_string(platforms().join("../scenarios/testpmd.toml")).expect("a scenario");
    let (head, rest) = text.split_once("[[tenant]]").expect("a tenant");
    let rest = &rest[rest.find("[[peripheral]]").expect("a NIC")..];
    let stream = "[[tenant]]\nname = \"s\"\ncores = 1\napp = { kind = \"stream\", buffer = \"1 MiB\" }\n";
    let traffic = rest[rest.find("[traffic]").expect("a table")..].to_owned();
    let rest = rest.replace(&traffic, "[run]\nload = \"saturate\"\n");
    for tenants in ["", stream] {
        let said = resolved(&format!("{head}{tenants}{rest}")).expect_err("a NIC that nobody uses");
        one_sentence(&said);
        assert!(
            said.contains("peripheral[0] of kind \"ethernet\" is there for no tenant: give a [[tenant]] with stack"),
            "{said}"
        );
    }
}

/// Windows' editors begin a text in UTF-8 with a mark.
#[test]
fn a_scenario_may_begin_with_a_byte_order_mark() {
    assert_eq!(resolved(&format!("\u{feff}{GOOD}")), resolved(GOOD));
}

/// Kinds of applications and of probes are choices of `app.kind`, and of no other key of the table.
#[test]
fn a_choice_of_an_application_offers_the_words_of_its_own_key() {
    let probe = std::fs::read_to_string(platforms().join("../scenarios/directed-rx.toml")).expect("a scenario");
    let of_probe = resolved(&probe.replace("blocks = 2", "blocks = 2, evict = \"probe_place\"")).expect_err("a kind");
    let of_app = message("kind = \"mica\"", "kind = \"mica\", update = \"probe_place\"");
    for (said, told) in [
        (of_app, "tenant[0].app.update: unknown choice \"probe_place\" (valid: in_place, append)."),
        (of_probe, "tenant[0].app.evict: unknown choice \"probe_place\" (valid: none, before_use, after_use)."),
        (
            message("kind = \"mica\"", "kind = \"probe_plaice\""),
            "unknown choice \"probe_plaice\"; did you mean \"probe_place\" (valid: ",
        ),
    ] {
        one_sentence(&said);
        assert!(said.contains(told), "{said}");
    }
}

/// A percentage is a hundredth of its number.
#[test]
fn shares_are_read_as_percentages_too() {
    let run = |keys: &str| {
        let text = GOOD.replacen("load = \"fixed\"", &format!("load = \"peak_loss\"\n{keys}"), 1);
        resolved(&text.replacen("requests = 400", "requests = 4000", 1)).map(|s| s.run)
    };
    for (key, text) in [("precision", "2%"), ("precision", "2 %"), ("precision", "2.0 %")] {
        assert_eq!(run(&format!("{key} = \"{text}\"")).expect("valid").precision, Some(0.02), "{text}");
    }
    assert_eq!(run("loss = \"0.5 %\"").expect("valid").loss, 0.005);
    assert_eq!(run("search_tolerance = \"1%\"").expect("valid").search_tolerance, 0.01);
    for (given, told) in [
        ("precision = \"2\"", "run.precision: invalid value: string \"2\", expected a number such as 0.02, or a percentage such as \"2 %\""),
        ("precision = \"two %\"", "run.precision: invalid value: string \"two %\", expected a number such as 0.02"),
        ("precision = \"70 %\"", "run.precision = 0.7 is not above 0 and below 0.5"),
        ("precision = 0.02\nprecision_of = [\"tenant.a.lat_p99_us\"]", "\"tenant.a.lat_p99_us\" is a number of one tenant"),
        ("precision = 0.02\nprecision_of = [\"cores\"]", "\"cores\" is a constant or a number of the simulation itself, which has no interval"),
        ("precision = 0.02\nprecision_of = [\"sim_events\"]", "\"sim_events\" is a constant or a number of the simulation itself"),
        ("loss = \"2 Mpps\"", "run.loss: invalid value: string \"2 Mpps\", expected a number such as 0.02"),
    ] {
        let said = run(given).err().unwrap_or_else(|| panic!("{given} was taken"));
        one_sentence(&said);
        assert!(said.contains(told), "{given}: {said}");
    }
}

/// A misspelt `platform` is missing as well; the misspelt key is what its writer looks for.
#[test]
fn a_misspelt_key_is_named_before_the_platform_that_is_missing() {
    for (from, to, told) in [
        (
            "platform = \"sim24\"",
            "platfrom = \"sim24\"",
            "unknown key \"platfrom\"; did you mean \"platform\" (valid: ",
        ),
        ("[[tenant]]", "[[tennant]]", "unknown key \"tennant\"; did you mean \"tenant\" (valid: "),
    ] {
        let said = message(from, to);
        one_sentence(&said);
        assert!(said.starts_with("dir/test.toml: ") && said.contains(told), "{to}: {said}");
    }
    assert!(message("platform = \"sim24\"\n", "").contains("platform is missing: the name of one (there are: "));
}

/// Intel's tools take the ways of CAT as bit masks in base 16. The LLC of the platform has 12 ways.
#[test]
fn bit_masks_of_ways_are_answered_with_their_range() {
    let of_devices = "placement.ways = 0x600 is a bit mask, which would read as a number of ways; write its ways as a range, \"9-10\"";
    for (from, to, told) in [
        (
            "llc_ways = 12",
            "llc_ways = 0xf",
            "tenant[0].llc_ways = 0xf is a bit mask, which would read as a number of ways; write its ways as a range, \"0-3\", \
             or the mask as text, \"0xf\"",
        ),
        ("llc_ways = 12", "llc_ways = 0b101", "write its ways as a range, such as \"0-3\""),
        ("ways = 2\nsweep", "ways = 0x600\nsweep", of_devices),
        ("llc_ways = 12", "llc_ways = 240", "llc_ways: 240 is not within 1 to 12; the ways of mask 0xf0 are \"4-7\""),
        ("llc_ways = 12", "llc_ways = 13", "llc_ways: 13 is not within 1 to 12."),
        ("llc_ways = 12", "llc_ways = \"0x5\"", "llc_ways: \"0x5\" is not a bit mask of ways side by side, such as \"0xf\""),
        ("llc_ways = 12", "llc_ways = \"0x1f00\"", "llc_ways: \"0x1f00\" is not within the ways \"0-11\""),
        ("llc_ways = 12", "llc_ways = \"four\"", "such as \"0-3\", or a bit mask such as \"0xf\""),
    ] {
        let said = message(from, to);
        one_sentence(&said);
        assert!(said.contains(told), "{to}: {said}");
    }
}

/// The kernel's driver of descriptor rings takes frames in buffers of the rings.
#[test]
fn pages_of_frames_beside_descriptor_rings_are_refused() {
    let text = std::fs::read_to_string(platforms().join("../scenarios/memcached-kernel.toml")).expect("a scenario");
    let text = text.replace("../captures", &platforms().join("../captures").to_string_lossy());
    assert!(resolved(&text).is_ok());
    let nic = "kind = \"ethernet\"";
    for (key, told) in [
        ("page = \"8 KiB\"", "peripheral[0].page = \"8 KiB\" is for frames in pages"),
        ("pool = \"48 MiB\"", "peripheral[0].pool = \"48 MiB\" is for frames in pages"),
        ("descriptors = 512", "descriptor rings; give rings.receive"),
    ] {
        let said = resolved(&text.replacen(nic, &format!("{nic}\n{key}"), 1)).expect_err(key);
        one_sentence(&said);
        assert!(said.contains(told), "{said}");
        let said = resolved(&format!("{text}\n[override.ethernet]\n{key}\n")).expect_err(key);
        one_sentence(&said);
        assert!(said.contains("override.ethernet.") && said.contains("is for frames in pages"), "{said}");
    }
}

/// PCI Express Base Specification 5.0, section 1.2: links have 1, 2, 4, 8, 12, 16 or 32 lanes.
#[test]
fn lanes_are_widths_of_pcie_links() {
    let text = |device: &str| {
        format!(
            "name = \"d\"\nplatform = \"icelake\"\nplacement = {{ policy = \"ddio\" }}\n[[peripheral]]\n{device}\n[traffic]\n\
             arrivals = \"none\"\n[run]\nload = \"saturate\"\ntime = \"10 us\"\n"
        )
    };
    let ssd = "kind = \"ssd\"\nop = \"p2m_write\"\nqueue_depth = 8\nblock = \"4 KiB\"";
    let roce = "kind = \"roce\"\nop = \"p2m_write\"";
    for device in [ssd, roce] {
        for lanes in [1, 2, 4, 8, 12, 16] {
            let found = resolved(&text(&format!("{device}\nlanes = {lanes}")));
            assert!(found.is_ok(), "{device}, {lanes} lanes: {found:?}");
        }
        for (lanes, near) in [(0, 1), (3, 2), (7, 8), (13, 12), (24, 16)] {
            let said = resolved(&text(&format!("{device}\nlanes = {lanes}"))).expect_err("no link has so many");
            one_sentence(&said);
            let told = format!("peripheral[0].lanes = {lanes} is no width of a PCIe link; {near} is nearest (valid: 1, 2, 4, 8, 12, 16)");
            assert!(said.contains(&told), "{said}");
        }
    }
}

/// A search varies the rates of tenants whose own traffic sets none. Where each tenant sets its own, nothing is left to search.
#[test]
fn a_search_needs_a_tenant_without_a_rate_of_its_own() {
    let own = |rate: &str| {
        let traffic = format!("cores = 2\ntraffic = {{ arrivals = \"poisson\", {rate}packet = \"1 KiB\" }}");
        let text = GOOD.replacen("cores = 2", &traffic, 1).replacen("load = \"fixed\"", "load = \"peak_loss\"", 1);
        text.replacen("requests = 400", "requests = 4000", 1)
    };
    // The search begins at 2 Mrps.
    for rate in ["1 Mrps", "2 Mrps"] {
        let e = resolved(&own(&format!("rate = \"{rate}\", "))).expect_err("no rate to search");
        assert!(e.contains("run.load = \"peak_loss\"") && e.contains("leave tenant[0].traffic.rate out"), "{e}");
        one_sentence(&e);
    }
    assert!(resolved(&own("")).is_ok(), "the tenant sets no rate");
}

/// Streams between two nodes count no requests, and last as long as `run.time` says.
#[test]
fn requests_of_streams_are_refused() {
    let text = std::fs::read_to_string(platforms().join("../scenarios/ccnic-stream.toml")).expect("a scenario");
    assert!(resolved(&text).is_ok());
    for key in ["requests", "warmup_requests"] {
        let e = resolved(&text.replacen("time = \"150 us\"", &format!("time = \"150 us\"\n{key} = 500"), 1))
            .expect_err(key);
        one_sentence(&e);
        assert!(e.contains(&format!("run.{key} = 500")), "{e}");
    }
}

/// A directed test has no tenant whose link could carry a rate, and no packets.
#[test]
fn a_rate_of_packets_beside_a_directed_test_is_refused() {
    let text = std::fs::read_to_string(platforms().join("../scenarios/probe-place.toml")).expect("a scenario");
    let text = text.replace("arrivals = \"none\"", "arrivals = \"poisson\"\nrate = \"1 Mrps\"\npacket = \"64 B\"");
    one_sentence(&resolved(&text).expect_err("nobody takes packets"));
}

/// Checks that a message is one sentence: one line that ends in a full stop, without remains of a parser's message.
fn one_sentence(e: &str) {
    assert!(!e.contains('\n') && e.ends_with('.') && !e.ends_with(".."), "{e}");
    for debris in ["panicked", "Error(", "None", "Some(", "`", "::", "u32", "u64", "f64", "?"] {
        assert!(!e.contains(debris), "{e}");
    }
}

/// Tables and columns name tenants, so that two of one name could not be told apart.
#[test]
fn two_tenants_of_one_name_are_refused() {
    let said = message(
        "[traffic]\n",
        "[[tenant]]\nname = \"kvs\"\ncores = 1\napp = { kind = \"xmem\", array = \"1 MiB\" }\n\n[traffic]\n",
    );
    one_sentence(&said);
    assert!(said.contains("tenant[1].name = \"kvs\" is the name of tenant[0], too"), "{said}");
}

/// What two nodes share is nothing on a machine of one, and a poll-mode driver keeps frames in its own buffers.
#[test]
fn overrides_of_parts_that_the_scenario_does_not_use_are_refused() {
    let with = |changes: &str| {
        let text = format!(
            "name = \"c\"\nplatform = \"icx\"\noverride.nodes.count = 1\n{changes}\nrun = {{ load = \"fixed\" }}\n\
             traffic = {{ arrivals = \"fixed\", rate = \"1 Mpps\", packet = \"256 B\" }}\n\
             placement = {{ policy = \"dma\" }}\n[[peripheral]]\nkind = \"ethernet\"\n\
             [[tenant]]\nname = \"t\"\ncores = 1\nstack = \"poll_mode\"\napp = {{ kind = \"touchfwd\" }}\n"
        );
        resolved(&text)
    };
    with("").expect("a scenario");
    for (changes, says) in [
        ("override.nodes.link.credits = 8", "override.nodes.link has no effect: it is for what two nodes share"),
        (
            "override.nodes.quirks.migratory = false",
            "override.nodes.quirks has no effect: it is for what two nodes share",
        ),
        ("override.ethernet.pool = \"48 MiB\"", "override.ethernet.pool is for the kernel, and no tenant"),
        ("override.ethernet.moderation = \"1 us\"", "override.ethernet.moderation is for the kernel, and no tenant"),
    ] {
        let said = with(changes).expect_err(changes);
        one_sentence(&said);
        assert!(said.contains(says), "{said}");
    }
}

/// In a closed loop a client sends its next request when it has a reply; one that no application ever sends makes each request
/// last for `traffic.timeout`.
#[test]
fn a_closed_loop_with_an_application_that_never_answers_is_refused() {
    let with = |app: &str| {
        let text = format!(
            "name = \"c\"\nplatform = \"icx\"\noverride.nodes.count = 1\nrun = {{ load = \"fixed\" }}\n\
             traffic = {{ arrivals = \"closed\", outstanding = 4, packet = \"256 B\" }}\n\
             placement = {{ policy = \"dma\" }}\n[[peripheral]]\nkind = \"ethernet\"\n\
             [[tenant]]\nname = \"t\"\ncores = 1\nstack = \"poll_mode\"\napp = {app}\n"
        );
        resolved(&text)
    };
    for silent in [
        "{ kind = \"touchdrop\" }",
        "{ kind = \"testpmd\", mode = \"rxonly\" }",
        "{ kind = \"l2fwd\", payload = \"drop\" }",
    ] {
        let said = with(silent).expect_err(silent);
        one_sentence(&said);
        assert!(
            said.contains("traffic.arrivals = \"closed\" waits for replies, and the application of tenant[0]"),
            "{said}"
        );
    }
    for answering in ["{ kind = \"touchfwd\" }", "{ kind = \"testpmd\" }", "{ kind = \"l2fwd\" }"] {
        with(answering).unwrap_or_else(|e| panic!("{answering}: {e}"));
    }
}

#[test]
fn the_scenario_itself_runs() {
    let s = resolved(GOOD).unwrap();
    run(&s, &mut |_| Ok(())).unwrap();
}

/// Keys of one choice would have no effect with another choice. Each sentence names the key, its value and the choice.
#[test]
fn a_key_that_another_choice_makes_void_is_refused() {
    let pcap = r#"pcap = { file = "test.rs" }"#;
    for (key, says) in [
        ("burst = 8", "traffic.burst = 8 is for traffic.arrivals = \"burst\", which is \"poisson\" here"),
        ("burst_gap = \"1 us\"", "traffic.burst_gap = \"1 us\" is for traffic.arrivals = \"burst\""),
        ("depth = 4", "traffic.depth = 4 is for traffic.arrivals = \"keep_depth\""),
        ("outstanding = 4", "traffic.outstanding = 4 is for traffic.arrivals = \"closed\""),
        ("timeout = \"5 us\"", "traffic.timeout = \"5 us\" is for traffic.arrivals = \"closed\""),
        (&pcap.replace("test.rs", &file()), "is for traffic.arrivals = \"pcap\", which is \"poisson\" here"),
    ] {
        let said = message("packet = \"1 KiB\"", key);
        one_sentence(&said);
        assert!(said.contains(says), "{said}");
    }
    for (from, to, says) in [
        (
            "\"poisson\"\nrate = \"2 Mrps\"",
            "\"keep_depth\"\ndepth = 4\nrate = \"2 Mrps\"",
            "traffic.rate = \"2 Mrps\" is for",
        ),
        ("packet = \"1 KiB\"", "packet = \"512 B\"", "traffic.packet = \"512 B\": the application of tenant[0] sets"),
        (
            "requests = 400",
            "requests = 400\ntime = \"1 ms\"",
            "run.time = \"1 ms\" is for scenarios whose tenants serve no",
        ),
        ("requests = 400", "requests = 400\nwarmup_time = \"1 us\"", "run.warmup_time = \"1 us\" is for scenarios"),
    ] {
        let said = message(from, to);
        one_sentence(&said);
        assert!(said.contains(says), "{said}");
    }
}

/// A file that exists.
fn file() -> String {
    format!("{}/Cargo.toml", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_key_that_no_stack_or_application_of_the_scenario_takes_is_refused() {
    let streams =
        "name = \"s\"\nplatform = \"sim24\"\nplacement = { policy = \"dma\" }\n[[tenant]]\nname = \"s\"\ncores = 1\n\
                   app = { kind = \"stream\", buffer = \"1 MiB\" }\n[run]\nload = \"saturate\"\n";
    let pmd = "name = \"p\"\nplatform = \"gem5\"\nplacement = { policy = \"ddio\" }\n[[tenant]]\nname = \"p\"\ncores = 1\nstack \
               = \"poll_mode\"\napp = { kind = \"testpmd\" }\n[[peripheral]]\nkind = \"ethernet\"\n[traffic]\narrivals = \
               \"fixed\"\nrate = \"1 Mpps\"\n[run]\nload = \"fixed\"\n";
    let ccnic = "name = \"c\"\nplatform = \"icx\"\nplacement = { policy = \"dma\" }\n[[tenant]]\nname = \"c\"\ncores = 1\nstack = \
                 \"ccnic\"\napp = { kind = \"loopback\", bytes = \"64 B\" }\n[ccnic]\nnic_node = 1\n[traffic]\narrivals = \
                 \"closed\"\noutstanding = 1\n[run]\nload = \"fixed\"\n";
    let iperf = "name = \"i\"\nplatform = \"gem5\"\nplacement = { policy = \"ddio\" }\n[[tenant]]\nname = \"i\"\ncores = 1\nstack = \
                 \"kernel\"\napp = { kind = \"tcp_receive\" }\n[[peripheral]]\nkind = \"ethernet\"\nmtu = \"1500 B\"\n[traffic]\n\
                 arrivals = \"none\"\n[run]\nload = \"saturate\"\n";
    let probe =
        "name = \"d\"\nplatform = \"sim24\"\nplacement = { policy = \"ddio\" }\n[[tenant]]\nname = \"d\"\ncores = 1\n\
                 app = { kind = \"directed_rx\", blocks = 16 }\n[run]\nload = \"none\"\n";
    let sender = &pmd
        .replace("\"testpmd\"", "\"testpmd\", mode = \"txonly\"")
        .replace("arrivals = \"fixed\"\nrate = \"1 Mpps\"", "arrivals = \"none\"");
    let icx = &pmd.replace("\"gem5\"", "\"icx\"\noverride.nodes.count = 1");
    for (text, from, to, says) in [
        (streams, "buffer =", "run_lines = 4, buffer =", "tenant[0].app.run_lines = 4 is for access = \"random\""),
        (streams, "\"saturate\"", "\"saturate\"\nrequests = 5", "run.requests = 5 is for tenants that serve packets"),
        (streams, "\"saturate\"", "\"saturate\"\nwarmup_requests = 5", "run.warmup_requests = 5 is for tenants"),
        (pmd, "\"ethernet\"", "\"ethernet\"\ndescriptors = 512", "peripheral[0].descriptors = 512 is for the kernel"),
        (
            pmd,
            "\"ethernet\"",
            "\"ethernet\"\nmoderation = \"5 us\"",
            "peripheral[0].moderation = \"5 us\" is for the kernel",
        ),
        (
            pmd,
            "\"ethernet\"",
            "\"ethernet\"\nrings = { throttle = \"dynamic\" }",
            "peripheral[0].rings.quirks.throttle is for the kernel",
        ),
        (ccnic, "\"dma\"", "\"ddio\", sweep_rx = true", "placement.sweep_rx is for other stacks"),
        (ccnic, "outstanding = 1", "outstanding = 1\ntimeout = \"2 ms\"", "traffic.timeout is for other stacks"),
        (
            streams,
            "[run]",
            "[traffic]\narrivals = \"none\"\nflows = 3\n[run]",
            "traffic.flows = 3 has no effect: no tenant takes",
        ),
        (streams, "\"dma\"", "\"ddio\", sweep_rx = true", "placement.sweep_rx = true relinquishes receive buffers"),
        (
            streams,
            "cores = 1",
            "cores = 1\ndscp = 3",
            "tenant[0].dscp = 3 has no effect: the application takes no packets",
        ),
        (pmd, "cores = 1", "cores = 1\ndscp = 3", "placement.policy = \"ddio\" does not look at classes of packets"),
        (
            pmd,
            "[run]",
            "[rings]\nrx_buffers = 64\nbuffer_size = \"4 KiB\"\n[run]",
            "rings.buffer_size = \"4 KiB\" has no effect",
        ),
        (
            pmd,
            "[run]",
            "[override.tcp]\nframe = 5\n[run]",
            "override.tcp has no effect: it is for tenants that receive",
        ),
        (pmd, "[run]", "[override.queue_pair]\nbatch = 5\n[run]", "override.queue_pair has no effect"),
        (
            pmd,
            "\"ethernet\"",
            "\"ethernet\"\nrings = { queue_turnaround = \"1 us\" }",
            "peripheral[0].rings.quirks.queue_turnaround = \"1 us\" needs queue_requests",
        ),
        (
            icx,
            "[run]",
            "[override.pcie]\ngeneration = \"gen6\"\ndllp_share = 0.0\n[run]",
            "override.pcie.generation = \"gen6\" makes a port of 16 lanes carry",
        ),
        (
            icx,
            "[run]",
            "[override.pcie]\ngeneration = \"gen6\"\n[run]",
            "counts twice with generation = \"gen6\", whose flits have room for these packets; give 0",
        ),
        (
            pmd,
            "\"ethernet\"",
            "\"ethernet\"\nrings = { transmit_packets = 5000 }",
            "peripheral[0].rings.quirks.transmit_packets = 5000 is not within 1 to 4096",
        ),
        (iperf, "none\"", "none\"\npacket = \"512 B\"", "segments of a TCP receiver are those of traffic.dctcp"),
        (
            iperf,
            "none\"",
            "none\"\nflows = 4",
            "traffic.flows = 4 has no effect: no tenant takes packets from this table",
        ),
        (
            iperf,
            "cores = 1\n",
            "cores = 1\ntraffic = { arrivals = \"none\", packet = \"512 B\" }\n",
            "tenant[0].traffic.packet = \"512 B\"",
        ),
        (
            probe,
            "[run]",
            "[traffic]\narrivals = \"fixed\"\nrate = \"1 Mrps\"\n[run]",
            "traffic.arrivals = \"fixed\" has no effect",
        ),
        (
            probe,
            "\"none\"",
            "\"none\"\nloss = 0.5",
            "run.loss = 0.5 has no effect: a directed test determines its length",
        ),
        (
            probe,
            "\"ddio\"",
            "\"ddio\", sweep_tx = \"nic\"",
            "placement.sweep_tx sweeps transmit buffers of queue pairs, and this directed test",
        ),
        (
            probe,
            "\"ddio\"",
            "\"ddio\", resq = true",
            "placement.resq = true caps receive rings of queue pairs, and this directed test",
        ),
        (sender, "\"fixed\"", "\"fixed\"\ntime = \"9 us\"", "a tenant here sends its own; give run.requests"),
        (sender, "\"fixed\"", "\"fixed\"\nwarmup_time = \"9 us\"", "its own; give run.warmup_requests"),
        (sender, "\"fixed\"", "\"saturate\"", "give traffic.arrivals = \"none\" and run.load = \"fixed\""),
        (ccnic, "outstanding = 1", "outstanding = 1\nflows = 4", "traffic.flows is for other stacks"),
        (ccnic, "outstanding = 1", "outstanding = 1\nrate = \"1 Mpps\"", "traffic.rate = \"1 Mrps\" is for"),
    ] {
        resolved(text).unwrap();
        assert!(text.contains(from), "{from}");
        let said = resolved(&text.replacen(from, to, 1)).unwrap_err();
        one_sentence(&said);
        assert!(said.contains(says), "{said}");
    }
}

/// The numbers of ways are those of the processors: a slice of Skylake has 11 ways, gem5's L3 16, Sapphire Rapids 15.
#[test]
fn all_ways_are_those_of_the_llc_that_the_scenario_runs_on() {
    let own = GOOD.replacen("llc_ways = 12\n", "", 1);
    for (platform, ways, more) in [
        ("sim24", 12, ""),
        ("skylake", 11, ""),
        ("gem5", 16, ""),
        ("sapphirerapids", 15, ""),
        ("sim24", 8, "[override.caches.llc]\nsize = \"24 MiB\"\nways = 8\n"),
    ] {
        let on = own.replacen("\"sim24\"", &format!("\"{platform}\""), 1) + more;
        let with = |w: &str| resolved(&on.replacen("ways = 2\n", &format!("ways = {w}\n"), 1));
        let all = with("\"all\"").unwrap();
        assert_eq!(all.placement.ways, Ways::low(ways), "{platform}");
        assert_eq!(all, with(&ways.to_string()).unwrap());
        assert!(with(&(ways + 1).to_string()).unwrap_err().contains(&format!("the LLC's {ways} ways")));
    }
}

/// A number of ways lies at the bottom for devices and at the top for tenants; the LLC has 12.
#[test]
fn a_range_of_ways_is_the_same_as_a_number_where_they_are_the_same_ways() {
    let with = |ways: &str| resolved(&GOOD.replacen("ways = 2\n", &format!("ways = {ways}\n"), 1));
    assert_eq!(with("\"0-3\"").unwrap(), with("4").unwrap());
    assert_eq!(with("4").unwrap().placement.ways.mask(), 0b1111);
    assert_eq!(with("\"4-7\"").unwrap().placement.ways.mask(), 0b1111_0000);
    assert_eq!(with("\"0xf0\"").unwrap(), with("\"4-7\"").unwrap());
    assert!(with("\"9-12\"").unwrap_err().contains("placement.ways = \"9-12\" is not within the LLC's ways, 0 to 11"));
    assert!(with("\"7-4\"").unwrap_err().contains("\"7-4\" is not a range of ways such as \"0-3\""));
}

#[test]
fn a_part_of_a_table_that_the_platform_lacks_is_refused_with_both_names() {
    let said = resolved(&format!("{GOOD}\n[override.poll_mode]\nburst = 64\n")).unwrap_err();
    one_sentence(&said);
    for word in ["platform.poll_mode", "missing", "override.poll_mode", "platform \"sim24\" lacks"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    // The table exists, and the missing key belongs to the scenario itself.
    let own = GOOD.replacen("cores = 2\n", "", 1) + "\n[override.poll_mode]\nburst = 64\n";
    assert!(!resolved(&own.replacen("sim24", "gem5", 1)).unwrap_err().contains("override"));
}

#[test]
fn a_part_of_a_table_within_a_table_that_the_platform_lacks_is_refused_with_both_names() {
    let e = resolved(&format!("{GOOD}\n[override.core.prefetch]\nenabled = true\n")).unwrap_err();
    one_sentence(&e);
    assert!(e.ends_with("as override.core.prefetch changes a table that platform \"sim24\" lacks."), "{e}");
}

#[test]
fn what_a_platform_lacks_comes_with_the_platforms_that_have_it() {
    let text = GOOD
        .replace("[rings]\nrx_buffers = 64\nbuffer_size = \"1 KiB\"\ntx_buffers = 64\n", "")
        .replace("llc_ways = 12\n", "llc_ways = 12\nstack = \"poll_mode\"\n")
        + "\n[[peripheral]]\nkind = \"ethernet\"\nlanes = 16\ntags = 32\nlink = \"100 Gbps\"\n";
    let e = resolved(&text).unwrap_err();
    one_sentence(&e);
    let (what, have) = e.split_once(", which platform \"sim24\" lacks (these have: ").expect(&e);
    assert!(what.ends_with("needs platform.poll_mode") || what.ends_with("need platform.iio and platform.pcie"), "{e}");
    let have: Vec<_> = have.strip_suffix(").").expect(&e).split(", ").collect();
    assert!(have.contains(&"gem5") && have.contains(&"altra") && !have.contains(&"sim24"), "{e}");
    assert!(have.is_sorted(), "{e}");
}

/// Only the files of `altra` and `gem5` have both tables.
#[test]
fn a_platform_that_lacks_two_tables_comes_with_the_platforms_that_have_both() {
    let root = platforms().parent().expect("a parent").to_path_buf();
    let text = std::fs::read_to_string(root.join("scenarios/memcached-kernel.toml")).expect("a scenario");
    let text = text.replace("platform = \"gem5\"", "platform = \"skylake\"").replace("..", &root.to_string_lossy());
    let e = resolved(&text).unwrap_err();
    let lacks = "needs platform.tcp and platform.udp, which platform \"skylake\" lacks (these have: altra, gem5)";
    assert!(e.contains(lacks), "{e}");
}

#[test]
fn a_platform_may_be_a_name_with_some_values() {
    let named = resolved(&format!("{GOOD}\n[override.memory]\nchannels = 8\n")).unwrap();
    assert_eq!(named.platform.memory.channels, 8);
    let table = GOOD.replacen("platform = \"sim24\"", "platform = { name = \"sim24\", memory = { channels = 8 } }", 1);
    assert_eq!(resolved(&table).unwrap(), named);
    let wrong = table.replacen("channels", "chanels", 1);
    let said = resolved(&wrong).unwrap_err();
    assert!(said.contains("platform.memory") && said.contains("did you mean \"channels\""), "{said}");
    let nowhere = table.replacen("{ name = \"sim24\"", "{ name = \"sim25\"", 1);
    assert!(resolved(&nowhere).unwrap_err().contains("did you mean \"sim24\""));
    let nameless = table.replacen("name = \"sim24\", ", "", 1);
    assert!(resolved(&nameless).unwrap_err().contains("missing field"), "no name");
}

/// The mapping of a processor's hash, which a platform has, does not suit all memories: the sentence begins with the key
/// whose value does not, and names the mapping as it is written.
#[test]
fn memory_that_a_mapping_does_not_suit_is_named() {
    let with = |memory: &str| {
        let text = GOOD.replacen("platform = \"sim24\"", "platform = \"icx\"", 1);
        let e = resolved(&format!("{text}\n[override.memory]\n{memory}\n")).unwrap_err();
        one_sentence(&e);
        e
    };
    let (sp, fine) = ("mapping = \"skylake_sp\"", "mapping = \"skylake_sp_fine\"");
    for (memory, said, mapping) in [
        ("channels = 12", "platform.memory.channels = 12 does not go with", sp),
        ("channels = 12\nmapping = \"skylake_sp_fine\"", "platform.memory.channels = 12 does not go with", fine),
        (
            "ranks = 8\nquirks = { bank_groups = 4, banks_per_group = 2 }",
            "platform.memory.quirks.banks_per_group = 2 does",
            sp,
        ),
        (
            "standard = \"DDR5-5600\"\ndevice_width = \"x16\"",
            "platform.memory.standard = \"DDR5-5600\" does not go with",
            sp,
        ),
        ("device_width = \"x16\"", "platform.memory.device_width = \"x16\" does not go with", sp),
        (
            "channels = 1\nmapping = \"skylake\"",
            "platform.memory.channels = 1 does not go with",
            "mapping = \"skylake\"",
        ),
        ("quirks = { channel_hash = true }", "platform.memory.quirks.channel_hash = true", sp),
        (
            "quirks = { preset = \"skylake_sp\" }",
            "quirks.bank_hash = true, which quirks.preset = \"skylake_sp\" may set,",
            sp,
        ),
    ] {
        let e = with(memory);
        assert!(e.contains(said) && e.contains(mapping) && e.contains("mapping of address fields such as"), "{e}");
    }
    // What the sentences name as another choice is one.
    let text = GOOD.replacen("platform = \"sim24\"", "platform = \"icx\"", 1);
    resolved(&format!("{text}\n[override.memory]\nchannels = 12\nmapping = \"rorabacobgch\"\n")).unwrap();
}

/// `base`: a platform's file contains only its changes, with their provenance; errors name the file at fault.
#[test]
fn a_platform_may_change_values_of_another() {
    let dir = std::env::temp_dir().join(format!("hostnet-base-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let with = |name: &str, text: &str| {
        std::fs::write(dir.join(format!("{name}.toml")), text).unwrap();
        let scenario = GOOD.replacen("platform = \"sim24\"", &format!("platform = \"{name}\""), 1);
        resolve(&scenario, "dir/test.toml", &[dir.clone(), platforms()]).map_err(|e| e.to_string())
    };
    let own = "name = \"mine\"\nbase = \"sim24\"\nmemory = { channels = 8 }\nprovenance = { \"memory.channels\" = \"assumed: \" }";
    let (changed, base) = (with("mine", own).unwrap().platform, resolved(GOOD).unwrap().platform);
    assert_eq!((changed.name.as_str(), changed.memory.channels), ("mine", 8));
    assert_eq!(changed.provenance["memory.channels"], "assumed: ");
    assert_eq!((&changed.core, &changed.caches), (&base.core, &base.caches));
    assert_eq!(changed.provenance.len(), base.provenance.len());
    let third = own.replace("sim24", "mine").replace("mine\"\nbase", "third\"\nbase").replace("memory", "core");
    let third = third.replace("channels", "width");
    let third = with("third", &third).unwrap().platform;
    assert_eq!((third.name.as_str(), third.memory.channels, third.core.width), ("third", 8, 8));
    assert_eq!(third.provenance["memory.channels"], changed.provenance["memory.channels"]);
    assert_eq!(third.provenance["core.clock"], base.provenance["core.clock"]);
    std::fs::write(dir.join("round.toml"), own.replace("sim24", "wrong")).unwrap();
    for (text, said) in [
        (own.replace("channels = 8", "chanels = 8"), "wrong.toml: memory.chanels: unknown key"),
        (own.replace("sim24", "sim42"), "wrong.toml: base = \"sim42\" does not exist; did you mean \"sim24\""),
        (own.replace("sim24", "wrong"), "wrong.toml: base = \"wrong\" leads back to "),
        (own.replace("sim24", "round"), "round.toml: base = \"wrong\" leads back to "),
        (own.replace("\"sim24\"", "3"), "wrong.toml: base = 3 is not the name of a platform."),
    ] {
        let e = with("wrong", &text).unwrap_err();
        one_sentence(&e);
        assert!(e.contains(said), "{e}");
    }
    std::fs::remove_dir_all(dir).unwrap();
}

/// A value that no machine has is a fault of the file that gives it: the platform's, its base's, or the scenario's.
#[test]
fn a_wrong_value_is_blamed_on_the_file_that_gives_it() {
    let dir = std::env::temp_dir().join(format!("hostnet-blame-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.join(name), text).unwrap();
    let shipped = std::fs::read_to_string(platforms().join("sim24.toml")).unwrap();
    let with = |name: &str, more: &str| {
        let scenario = GOOD.replacen("platform = \"sim24\"", &format!("platform = \"{name}\""), 1);
        resolve(&format!("{scenario}{more}"), "dir/test.toml", &[dir.clone(), platforms()]).map_err(|e| e.to_string())
    };
    for (own, said) in [
        ("[core]\nlfb = 64", "core.lfb = 64 is more than 48."),
        ("[core]\nclock = \"90 GHz\"", "core.clock = \"90 GHz\" is not within "),
        ("[core]\ncompute_ipc = 9.0", "core.compute_ipc = 9 is not within 0 to core.width = "),
        ("[memory]\nchannels = 0", "memory.channels = 0"),
    ] {
        write("mine.toml", &format!("name = \"mine\"\nbase = \"sim24\"\n{own}"));
        let e = with("mine", "").unwrap_err();
        one_sentence(&e);
        assert!(e.contains(&format!("mine.toml: {said}")) && !e.contains("dir/test.toml"), "{e}");
    }
    write("mine.toml", "name = \"\"\nbase = \"sim24\"");
    assert!(with("mine", "").unwrap_err().ends_with("mine.toml: name = \"\" is empty."));
    write("wide.toml", &shipped.replacen("width = ", "width = 9", 1));
    write("mine.toml", "name = \"mine\"\nbase = \"wide\"");
    let e = with("mine", "").unwrap_err();
    assert!(e.contains("wide.toml: core.width = 9"), "{e}");
    let e = with("sim24", "\n[override.core]\nlfb = 64").unwrap_err();
    assert!(e.starts_with("dir/test.toml: platform.core.lfb = 64"), "{e}");
    std::fs::remove_dir_all(dir).unwrap();
}

/// A value has the source that its file gives it or a table around it; without one it is marked, with a base and without.
#[test]
fn a_value_without_a_source_is_marked() {
    let dir = std::env::temp_dir().join(format!("hostnet-marked-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let source = |own: &str, key: &str| {
        std::fs::write(dir.join("mine.toml"), own).unwrap();
        let scenario = GOOD.replacen("platform = \"sim24\"", "platform = \"mine\"", 1);
        let made = resolve(&scenario, "dir/test.toml", &[dir.clone(), platforms()]).unwrap();
        made.platform.provenance.get(key).cloned().unwrap_or_default()
    };
    let shipped = std::fs::read_to_string(platforms().join("sim24.toml")).unwrap();
    let (values, _) = shipped.split_once("[provenance]").unwrap();
    let whole = format!("{values}[provenance]\n\"caches.llc\" = \"assumed: x\"\n\"core.rob\" = \"paper: y\"\n");
    assert!(source(&whole, "core.clock").starts_with("no source: "));
    assert_eq!(source(&whole, "core.rob"), "paper: y");
    assert_eq!(source(&whole, "caches.llc.size"), "assumed: x");
    let based = "name = \"mine\"\nbase = \"sim24\"\ncaches = { llc = { size = \"18 MiB\" } }\n[provenance]\n";
    assert!(source(based, "caches.llc.size").starts_with("no source: "));
    assert_eq!(source(&format!("{based}\"caches.llc\" = \"assumed: x\""), "caches.llc.size"), "assumed: x");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_key_that_is_given_twice_is_named() {
    for (text, said) in [
        (format!("{GOOD}\n[placement]\n"), "is not TOML: duplicate key \"placement\"."),
        (GOOD.replacen("seed = 1", "seed = 1\nseed = 2", 1), "is not TOML: duplicate key \"seed\"."),
    ] {
        let e = resolved(&text).unwrap_err();
        assert!(e.ends_with(said), "{e}");
    }
}

/// The provenance in a platform's file is checked like its values: docs/use/cli.md lists the kinds of sources.
#[test]
fn a_source_is_of_a_value_that_the_platform_has_and_of_a_known_kind() {
    let dir = std::env::temp_dir().join(format!("hostnet-sources-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let with = |own: &str| {
        std::fs::write(dir.join("mine.toml"), format!("name = \"mine\"\nbase = \"sim24\"\n[provenance]\n{own}"))
            .unwrap();
        let scenario = GOOD.replacen("platform = \"sim24\"", "platform = \"mine\"", 1);
        resolve(&scenario, "dir/test.toml", &[dir.clone(), platforms()]).map_err(|e| e.to_string())
    };
    for kind in ["datasheet", "paper", "artifact", "standard", "measured", "fitted", "assumed", "no source", "default"]
    {
        with(&format!("\"core.clock\" = \"{kind}: x\"\n\"caches.llc\" = \"{kind}: x\"")).unwrap();
    }
    with("ethernet = \"assumed: none\"").unwrap();
    for (own, said) in [
        ("\"core.clok\" = \"paper: x\"", "provenance: unknown key \"core.clok\"; did you mean \"core.clock\" (valid: core."),
        ("\"cores.clock\" = \"paper: x\"", "provenance: unknown key \"cores.clock\"; did you mean \"core\""),
        ("\"caches.l4.size\" = \"paper: x\"", "\"caches.l4.size\"; did you mean \"caches.l2\""),
        ("\"traffic.rate\" = \"paper: x\"", "unknown key \"traffic.rate\" (valid: background_read_gbs, block, caches, ccnic, core,"),
        ("\"ethernet.link\" = \"paper: x\"", "\"ethernet.link\", as ethernet is a table that the platform lacks."),
        ("\"core.count.all\" = \"paper: x\"", "\"core.count.all\", as core.count is a value without keys."),
        ("core.clock = \"paper: x\"", "put it in quotes: \"core.clock\" = "),
        ("\"core.clock\" = \"datashet: x\"", "provenance.\"core.clock\" = \"datashet: x\" does not begin with a kind and a colon; did you mean \"datasheet\""),
        ("\"core.clock\" = \"the vendor\"", "a kind and a colon (valid: datasheet, paper, artifact, standard, measured, fitted, read, base, assumed)."),
        ("\"core.clock\" = \"\"", "\"\" does not begin with a kind"),
        ("\"core.clock\" = \"Paper x\"", "did you mean \"paper\""),
        ("\"core.clock\" = \"paper\"", "lacks the colon after its kind; write \"paper: \" and the source."),
        ("\"core.clock\" = \"fitted to x\"", "lacks the colon after its kind; write \"fitted: \" and the source."),
    ] {
        let e = with(own).unwrap_err();
        assert!(e.contains(said) && e.contains("mine.toml: provenance"), "{e}");
        assert!(!e.contains('\n') && e.ends_with('.'), "{e}");
    }
    let over = format!("{GOOD}\n[override.provenance]\n\"core.clok\" = \"paper: x\"");
    assert!(resolved(&over).unwrap_err().starts_with("dir/test.toml: provenance: unknown key \"core.clok\""));
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn every_bad_value_is_named_with_its_file_and_key() {
    let cases: &[(&str, &str, &[&str])] = &[
        // unknown keys, and the nearest valid key
        ("ways = 2\n", "wayz = 2\n", &["placement", "\"wayz\"", "did you mean \"ways\""]),
        ("seed = 1", "sead = 1", &["\"sead\"", "did you mean \"seed\""]),
        ("requests = 400", "request = 400", &["run", "\"request\"", "\"requests\""]),
        ("cores = 2", "core = 2", &["tenant[0]", "\"core\"", "\"cores\""]),
        // choices
        ("policy = \"ddio\"", "policy = \"dido\"", &["placement.policy", "\"dido\"", "did you mean \"ddio\""]),
        ("load = \"fixed\"", "load = \"fast\"", &["run.load", "\"fast\"", "peak_slo"]),
        (
            "arrivals = \"poisson\"",
            "arrivals = \"poison\"",
            &["traffic.arrivals", "\"poison\"", "did you mean \"poisson\""],
        ),
        ("kind = \"mica\"", "kind = \"micah\"", &["tenant[0].app", "\"micah\"", "\"mica\""]),
        // units
        ("buffer_size = \"1 KiB\"", "buffer_size = \"1 us\"", &["rings.buffer_size", "a size such as", "\"1 us\""]),
        ("rate = \"2 Mrps\"", "rate = \"2 GHz\"", &["traffic.rate", "a rate such as", "\"2 GHz\""]),
        ("buffer_size = \"1 KiB\"", "buffer_size = 1024", &["rings.buffer_size", "unit", "1024"]),
        ("min = \"1 us\"", "min = \"1 KiB\"", &["traffic.spikes.min", "a time such as", "\"1 KiB\""]),
        // zero and negative
        ("buffer_size = \"1 KiB\"", "buffer_size = \"0 B\"", &["rings.buffer_size"]),
        ("buffer_size = \"1 KiB\"", "buffer_size = \"-1 KiB\"", &["rings.buffer_size", "\"-1 KiB\""]),
        ("tx_buffers = 64", "tx_buffers = 0", &["rings.tx_buffers = 0"]),
        ("tx_buffers = 64", "tx_buffers = -3", &["rings.tx_buffers", "-3"]),
        ("requests = 400", "requests = 0", &["run.requests = 0"]),
        ("packet = \"1 KiB\"", "packet = \"0 B\"", &["traffic.packet"]),
        // the load generator
        ("rate = \"2 Mrps\"", "rate = \"2 Gbps\"", &["traffic.rate = \"2 Gbps\"", "in bits", "packets per second"]),
        ("packet = \"1 KiB\"", "sizes = \"imx\"", &["traffic.sizes", "\"imx\"", "imix"]),
        ("packet = \"1 KiB\"", "sizes = 64", &["traffic.sizes", "\"imix\" or a list", "64"]),
        ("packet = \"1 KiB\"", "sizes = \"imix\"", &["traffic.sizes", "tenant[0]", "sets its packets' sizes itself"]),
        ("packet = \"1 KiB\"", "sizes = []", &["traffic.sizes has no size"]),
        ("packet = \"1 KiB\"", "packet = \"1 KiB\"\nsizes = \"imix\"", &["traffic.packet and traffic.sizes", "keep one"]),
        (
            "packet = \"1 KiB\"",
            "sizes = [{ size = \"32 B\", weight = 1 }]",
            &["traffic.sizes[0].size = \"32 B\"", "64 bytes", "shortest Ethernet frame"],
        ),
        ("packet = \"1 KiB\"", "packet = \"65536 B\"", &["traffic.packet = \"64 KiB\"", "65535"]),
        ("packet = \"1 KiB\"", "flows = 0", &["traffic.flows = 0", "1 to 1048576"]),
        ("packet = \"1 KiB\"", "spread = \"flow\"", &["traffic.spread = \"flow\"", "\"closed\"", "\"poisson\" here", "round_robin"]),
        ("packet = \"1 KiB\"", "flows = 2\nspread = \"turns\"", &["traffic.spread = \"round_robin\"", "flows = 2", "leave it out"]),
        ("packet = \"1 KiB\"", "flows = 2\nprotocol = \"ethernet\"", &["traffic.flows = 2", "\"udp\"", "one flow"]),
        ("packet = \"1 KiB\"", "protocol = \"tcp\"", &["traffic.protocol", "\"tcp\"", "udp"]),
        ("packet = \"1 KiB\"", "stamp = 20", &["traffic.stamp = 20", "42 to 1012"]),
        ("packet = \"1 KiB\"", "cv = 1.0", &["traffic.cv", "\"log_normal\"", "\"poisson\" here"]),
        ("arrivals = \"poisson\"", "arrivals = \"uniform\"\ncv = 0.6", &["traffic.cv = 0.6", "above 0 and up to 0.577"]),
        ("packet = \"1 KiB\"", "burst_gap = \"1 us\"", &["traffic.burst_gap", "\"burst\"", "\"poisson\" here"]),
        ("packet = \"1 KiB\"", "outstanding = 4", &["traffic.outstanding", "\"closed\"", "\"poisson\" here"]),
        ("arrivals = \"poisson\"\nrate = \"2 Mrps\"", "arrivals = \"closed\"", &["traffic.outstanding = 0 must be positive"]),
        ("policy = \"ddio\"", "policy = \"DDIO\"", &["placement.policy", "did you mean \"ddio\""]),
        ("packet = \"1 KiB\"", "source_mac = \"02:00\"", &["traffic.source_mac", "an Ethernet address such as", "\"02:00\""]),
        (
            "packet = \"1 KiB\"",
            "link = { rate = \"1 bps\" }",
            &["traffic.link.rate = \"1 bps\"", "1 Mbps to 1.6 Tbps"],
        ),
        ("load = \"fixed\"", "load = \"peak_slo\"\nstep = \"0 pps\"", &["run.step = 0 must be positive"]),
        ("load = \"fixed\"", "load = \"peak_loss\"\nloss = 0.0", &["run.loss = 0 is not above 0 and below 1"]),
        ("load = \"fixed\"", "load = \"peak_loss\"", &["run.requests = 400", "a loss of 0.01", "1000 or more"]),
        ("packet = \"1 KiB\"", "packet = \"1 B\"", &["traffic.packet = \"1 B\"", "64 bytes", "shortest Ethernet frame"]),
        ("packet = \"1 KiB\"", "packet = \"63 B\"", &["traffic.packet = \"63 B\"", "64 bytes"]),
        ("item_size = \"1 KiB\"", "item_size = \"1 B\"", &["tenant[0].app: item_size = \"1 B\"", "64 bytes"]),
        ("name = \"kvs\"\nplatform", "name = \"\"\nplatform", &["test.toml: name = \"\" is empty"]),
        ("name = \"kvs\"\ncores", "name = \" \"\ncores", &["tenant[0].name = \" \" is empty"]),
        (
            "[run]\n",
            "[override.core]\nclock = \"1000000 GHz\"\n[run]\n",
            &["platform.core.clock = \"1000000 GHz\"", "1 MHz to 20 GHz"],
        ),
        ("cores = 2", "cores = 0", &["tenant[0].cores = 0"]),
        ("rate = \"2 Mrps\"", "rate = \"0 Mrps\"", &["traffic.rate = 0"]),
        // kinds of values, in TOML's words
        ("seed = 1", "seed = -1", &["seed", "-1", "a whole number of at least 0"]),
        ("cores = 2", "cores = 2.5", &["tenant[0].cores", "2.5", "a whole number of at least 0"]),
        ("sweep_rx = true", "sweep_rx = 3", &["placement.sweep_rx", "3", "true or false"]),
        ("zipf = 0.99", "zipf = nan", &["tenant[0].app.zipf = NaN is not a finite number"]),
        ("slo_multiple = 100", "slo_multiple = -inf", &["run.slo_multiple = -inf is not a finite number"]),
        ("zipf = 0.99", "zipf = \"much\"", &["tenant[0].app", "\"much\"", "a number"]),
        ("slo_multiple = 100", "slo_multiple = 0", &["run.slo_multiple = 0"]),
        // contradictions
        ("ways = 2\n", "ways = 13\n", &["placement.ways = 13", "12"]),
        ("ways = 2\n", "ways = 0\n", &["placement.ways = 0"]),
        ("ways = 2\n", "ways = \"most\"\n", &["placement.ways: ", "whole number", "\"all\"", "\"most\""]),
        ("ways = 2\n", "ways = -1\n", &["placement.ways: ", "whole number", "\"all\"", "-1"]),
        ("policy = \"ddio\"\nways = 2\n", "policy = \"dma\"\nways = 99\n", &["placement.ways = 99", "12"]),
        ("llc_ways = 12", "llc_ways = 13", &["tenant[0].llc_ways", "13", "12"]),
        ("llc_ways = 12", "llc_ways = \"9-14\"", &["tenant[0].llc_ways", "\"9-14\"", "0-11"]),
        ("cores = 2", "cores = 25", &["25 cores", "platform.core.count is 24"]),
        ("rx_buffers = 64", "rx_buffers = 1000", &["rings.rx_buffers = 1000", "power of two", "1024"]),
        ("rx_buffers = 64", "rx_buffers = 0", &["rings.rx_buffers = 0"]),
        ("buffer_size = \"1 KiB\"", "buffer_size = \"512 B\"", &["rings.buffer_size = \"512 B\"", "1 KiB"]),
        ("probability = 0.001", "probability = 1.5", &["traffic.spikes.probability = 1.5"]),
        ("min = \"1 us\"", "min = \"1 ms\"", &["traffic.spikes.min", "max"]),
        ("rate = \"2 Mrps\"\n", "", &["traffic.rate is missing"]),
        ("get_fraction = 0.05", "get_fraction = 1.05", &["tenant[0].app: get_fraction = 1.05"]),
        ("load = \"fixed\"", "load = \"saturate\"", &["run.load", "keep_depth"]),
        (
            "kind = \"mica\", item_size = \"1 KiB\", get_fraction = 0.05, pairs = 20000, buckets = 8000, log_size = \"2 MiB\", zipf = 0.99",
            "kind = \"memcached\"",
            &["tenant[0].app", "\"memcached\"", "traffic.arrivals = \"pcap\""],
        ),
        // files
        ("platform = \"sim24\"", "platform = \"sim42\"", &["platform = \"sim42\"", "did you mean \"sim24\""]),
        ("platform = \"sim24\"", "platform = \"epyc\"", &["platform = \"epyc\"", "cascadelake,", "gem5,", "icelake,"]),
        ("platform = \"sim24\"", "", &["platform"]),
        ("seed = 1", "seed = ", &["line 4"]),
        ("[run]", "[run", &["line"]),
    ];
    for (from, to, expected) in cases {
        let e = message(from, to);
        one_sentence(&e);
        assert!(e.starts_with("dir/test.toml: "), "{to}: {e}");
        for part in *expected {
            assert!(e.contains(part), "{to}: \"{e}\" does not say {part}");
        }
    }
}

/// Lines that a link carries as one packet need as many requests in flight: a frame of a longer train would never
/// leave.
#[test]
fn a_device_may_ask_for_as_many_lines_as_its_link_carries_together() {
    let forwarder = std::fs::read_to_string(platforms().join("../scenarios/testpmd.toml")).unwrap();
    let with = |tags: u32| resolved(&format!("{forwarder}\n[override.ethernet]\ntags = {tags}\n"));
    assert!(with(8).is_ok());
    let e = with(7).unwrap_err();
    one_sentence(&e);
    assert!(e.contains("peripheral[0].tags = 7 is less than platform.pcie.quirks.train = 8"), "{e}");
}

/// A host without packets has no rate to search for, and is measured for a time.
#[test]
fn what_asks_for_packets_needs_a_tenant_that_serves_them() {
    let quadrant = std::fs::read_to_string(platforms().join("../scenarios/quadrant1.toml")).unwrap();
    for (run, expected) in [
        ("load = \"peak_slo\"", "run.load searches for a rate"),
        ("load = \"peak_nodrop\"", "run.load searches for a rate"),
        ("load = \"saturate\"\ntime = \"0 us\"", "run.time"),
    ] {
        let text = format!("{}[run]\n{run}\n", quadrant.split("[run]").next().unwrap());
        let e = resolved(&text).expect_err(run);
        one_sentence(&e);
        assert!(e.contains(expected), "{run}: {e}");
    }
}

#[test]
fn overrides_of_the_platform_are_checked_like_the_platform() {
    for (text, expected) in [
        ("[override.memory]\nchannels = 17", &["platform.memory.channels = 17", "16"][..]),
        ("[override.memory]\nchanels = 4", &["platform.memory", "\"chanels\"", "\"channels\""]),
        ("[override.core]\ncount = 0", &["platform.core.count = 0"]),
        ("[override.core]\nclock = \"3 Hz\"", &["platform.core.clock = \"3 Hz\"", "1 MHz"]),
        ("[override.core]\nlfb = 0", &["platform.core.lfb = 0"]),
        (
            "[override.caches.llc]\nsize = \"30 MiB\"",
            &["platform.caches.llc.size = \"30 MiB\"", "\"18 MiB\" or \"36 MiB\""],
        ),
        ("[override.caches.l2]\nways = 0", &["platform.caches.l2.ways = 0"]),
        ("[override.caches.l1d]\nsize = \"-48 KiB\"", &["platform.caches.l1d.size", "-48 KiB"]),
        ("[override.memory]\nmapping = \"RoBaCo\"", &["platform.memory", "mapping", "RoBaCo"]),
    ] {
        let e = resolved(&format!("{GOOD}\n{text}\n")).expect_err(text);
        one_sentence(&e);
        assert!(e.starts_with("dir/test.toml: "), "{text}: {e}");
        for part in expected {
            assert!(e.contains(part), "{text}: \"{e}\" does not say {part}");
        }
    }
}

#[test]
fn captures_that_cannot_be_replayed_are_named() {
    let text = |file: &str| {
        GOOD.replace("arrivals = \"poisson\"", &format!("arrivals = \"pcap\"\npcap = {{ file = \"{file}\" }}"))
            .replace("packet = \"1 KiB\"\n", "")
            .replace(
                "app = { kind = \"mica\", item_size = \"1 KiB\", get_fraction = 0.05, pairs = 20000, buckets = 8000, log_size = \"2 MiB\", zipf = 0.99 }",
                "app = { kind = \"memcached\" }",
            )
    };
    let dir = std::env::temp_dir().join(format!("hostnet-errors-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let whole = std::fs::read(platforms().join("../captures/memcached-udp.pcap")).unwrap();
    let mut wifi = whole.clone();
    wifi[20..24].copy_from_slice(&105u32.to_le_bytes()); // link type IEEE 802.11
    for (name, bytes) in [
        ("empty.pcap", &[][..]),
        ("header-only.pcap", &whole[..24]),
        ("truncated.pcap", &whole[..30]),
        ("wifi.pcap", &wifi[..]),
        ("text.pcap", b"this is not a capture, it is a sentence"),
    ] {
        let path = dir.join(name);
        std::fs::write(&path, bytes).unwrap();
        let s = match resolved(&text(path.to_str().unwrap())) {
            Ok(s) => run(&s, &mut |_| Ok(())).map(drop),
            Err(e) => Err(e),
        };
        let e = s.expect_err(name);
        one_sentence(&format!("{e}."));
        assert!(e.contains(name), "{name}: {e}");
    }
    for none in ["nowhere.pcap", "."] {
        let e = resolved(&text(none)).expect_err("no such file");
        one_sentence(&e);
        assert!(e.contains("traffic.pcap.file") && e.contains(none) && e.contains("is not a file"), "{e}");
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

/// Values that a user may write at any key.
const VALUES: &[&str] = &[
    "0",
    "-1",
    "1",
    "3",
    "4294967295",
    "18446744073709551615",
    "1e300",
    "nan",
    "inf",
    "true",
    "\"\"",
    "\"0 B\"",
    "\"1 B\"",
    "\"64 GiB\"",
    "\"1 ps\"",
    "\"1 ns\"",
    "\"1e30 s\"",
    "\"-5 us\"",
    "\"1 Hz\"",
    "\"ddio\"",
    "\"dma\"",
    "\"ideal\"",
    "\"none\"",
    "\"nic\"",
    "\"peak_slo\"",
    "\"keep_depth\"",
    "\"pcap\"",
    "[]",
    "{}",
    "[1, 2]",
    "\"12\"",
    "\"0-3\"",
    "\u{22}\u{e9}\u{22}",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any value at any key either resolves or is refused in one sentence.
    #[test]
    fn no_value_at_any_key_panics(
        changes in prop::collection::vec((0usize..64, 0usize..VALUES.len()), 1..4),
        over in prop::option::of((0usize..64, 0usize..VALUES.len())),
    ) {
        let mut lines: Vec<String> = GOOD.lines().map(String::from).collect();
        for (at, value) in changes {
            let at = at % lines.len();
            let Some((key, _)) = lines[at].split_once(" = ") else { continue };
            lines[at] = format!("{key} = {}", VALUES[value]);
        }
        if let Some((at, value)) = over {
            let keys = [
                "core.count", "core.clock", "core.rob", "core.lfb", "core.width", "core.store_queue",
                "core.stores_per_line", "caches.llc.size", "caches.llc.ways", "caches.llc.slices",
                "caches.llc.write_buffer", "caches.l1d.size", "caches.l1d.ways", "caches.l2.size",
                "caches.l2.ways", "memory.channels", "memory.ranks", "memory.rpq", "memory.wpq",
                "memory.mapping", "memory.write_high", "memory.quirks.bank_groups", "nic.pipeline",
                "nic.line_interval", "queue_pair.poll_instructions",
            ];
            lines.push(format!("[override]\n{} = {}", keys[at % keys.len()], VALUES[value]));
        }
        if let Err(e) = resolved(&lines.join("\n")) {
            prop_assert!(e.starts_with("dir/test.toml: ") && !e.contains('\n') && e.ends_with('.'), "{}", e);
        }
    }

    /// Damaged text is refused with a sentence, without a panic.
    #[test]
    fn no_damage_to_the_text_panics(
        cuts in prop::collection::vec((0usize..GOOD.len(), 0usize..12, "[ -~\\n]{0,6}"), 1..5),
    ) {
        let mut text: Vec<u8> = GOOD.bytes().collect();
        for (at, n, insert) in cuts {
            let at = at.min(text.len());
            let end = (at + n).min(text.len());
            text.splice(at..end, insert.bytes());
        }
        let text = String::from_utf8(text).expect("ASCII");
        if let Err(e) = resolved(&text) {
            prop_assert!(e.starts_with("dir/test.toml: ") && !e.contains('\n') && e.ends_with('.'), "{}", e);
        }
    }
}

/// An old key in a scenario: the note names the new key, and the new key gets the value.
#[test]
fn an_old_name_of_a_key_is_accepted_and_noted() {
    let text = r#"
        name = "iperf"
        platform = "gem5"
        placement = { policy = "dma" }
        tenant = [{ name = "iperf", cores = 1, stack = "kernel", app = { kind = "tcp_receive", between = 5 } }]
        peripheral = [{ kind = "ethernet", mtu = "1500 B" }]
        traffic = { arrivals = "none", dctcp = {} }
        run = { load = "saturate", time = "1 ms", warmup_time = "1 ms" }
    "#;
    let search = [platforms()];
    let (old, notes) = resolve_noting(text, "own.toml", &search).unwrap_or_else(|e| panic!("{e}"));
    let now = "own.toml: tenant[0].app.between is now tenant[0].app.gap_instructions; the old name is accepted in this version only.";
    assert_eq!(notes, [now]);
    let renamed = text.replace("between", "gap_instructions");
    assert_eq!(resolve_noting(&renamed, "own.toml", &search), Ok((old, Vec::new())));
    let both = text.replace("between = 5", "between = 5, gap_instructions = 5");
    let e = resolve_noting(&both, "own.toml", &search).expect_err("both names are given").to_string();
    one_sentence(&e);
    assert!(e.starts_with("own.toml: tenant[0].app.between is the old name of tenant[0].app.gap_instructions"), "{e}");
}
