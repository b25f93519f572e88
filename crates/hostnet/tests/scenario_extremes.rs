//! Tests of values at the ends of their types, and of missing keys: the user always reads one sentence.

use crate::common::{platforms, scenario};
use hostnet::config::resolve;

fn shipped(name: &str) -> String {
    std::fs::read_to_string(platforms().join(format!("../scenarios/{name}.toml"))).unwrap()
}

/// The sentence about `text`.
fn refused(text: &str) -> String {
    let e = resolve(text, "dir/test.toml", &[platforms()]).map(drop).expect_err(text).to_string();
    assert!(e.starts_with("dir/test.toml: ") && e.ends_with('.') && !e.contains('\n') && !e.contains('`'), "{e}");
    e
}

/// The sentence about a shipped scenario after a value of its platform has been changed.
fn with(name: &str, table: &str, line: &str) -> String {
    refused(&format!("{}\n[override.{table}]\n{line}\n", shipped(name)))
}

#[test]
fn a_clock_or_a_rate_that_stands_still_is_refused() {
    for (name, table, line, says) in [
        ("kvs", "core", "clock = \"0 Hz\"", "platform.core.clock = \"0 Hz\" is not within 1 MHz to 20 GHz"),
        ("kvs", "caches", "uncore_clock = \"0 Hz\"", "platform.caches.uncore_clock = \"0 Hz\" is not within 1 MHz to"),
        ("kvs", "caches", "uncore_clock = \"18446744073 GHz\"", "platform.caches.uncore_clock"),
        (
            "ccnic-upi",
            "nodes",
            "uncore_clock = [\"0 Hz\"]",
            "platform.nodes.uncore_clock[0] = \"0 Hz\" is not within 1 MHz",
        ),
        ("ccnic-upi", "nodes.link", "rate = \"0 B/s\"", "platform.nodes.link.rate = \"0 B/s\" is not within 1 MB/s to"),
        (
            "testpmd",
            "pcie",
            "lane_rate = \"0 bps\"",
            "platform.pcie.quirks.lane_rate = \"0 bps\" is not within 1 Mbps to",
        ),
    ] {
        let said = with(name, table, line);
        assert!(said.contains(says), "{said}");
    }
}

#[test]
fn dram_that_could_never_answer_is_refused_with_the_timing_at_fault() {
    for (line, says) in [
        ("tck_ps = 0", "platform.memory.quirks.timing.tck_ps = 0 is not within 100 to 100000"),
        ("refi_ps = 0", "platform.memory.quirks.timing.refi_ps = 0 is not within 1 to"),
        (
            "rfc_ps = 350000\nrefi_ps = 350000",
            "timing.refi_ps = 350000 leaves no time for an access beside refreshes of rfc_ps = ",
        ),
        ("rfc_ps = 7800000", "leaves no time for an access beside refreshes of rfc_ps = 7800000; give more than "),
        ("rcd_ps = 18000000000000", "timing.rcd_ps = 18000000000000 is "),
        ("ccd_l_ps = 2000000", "platform.memory.quirks.timing.ccd_l_ps = 2000000 is not within 0 to 1000000"),
    ] {
        let said = with("kvs", "memory.quirks.timing", line);
        assert!(said.contains(says), "{said}");
    }
    let said = with("kvs", "memory", "ranks = 1073741824\nbank_groups = 4");
    assert!(said.contains("banks per channel, more than the 64 supported"), "{said}");
    let said = with("kvs", "memory", "ranks = 3000000000");
    assert!(said.contains("platform.memory.ranks = 3000000000 is more than 1073741824"), "{said}");
}

/// Without refreshes, the timings of refreshes have no effect.
#[test]
fn timings_of_refreshes_are_free_where_there_are_none() {
    let own = "[override.memory]\nrefresh = false\n[override.memory.quirks.timing]\nrefi_ps = 1";
    scenario(&format!("{}\n{own}\n", shipped("kvs")));
}

#[test]
fn sizes_times_and_counts_beyond_all_machines_are_refused() {
    let blocks = |block: &str| shipped("quadrant3").replacen("8 MiB", block, 1);
    resolve(&blocks("256 MiB"), "dir/test.toml", &[platforms()]).unwrap();
    for (text, says) in [
        (blocks("1000000 GiB"), "peripheral[0].block = \"1000000 GiB\" is more than 1024 GiB"),
        (blocks("2 GiB"), "peripheral[0].block = \"2 GiB\" is more than 1 GiB"),
        (
            blocks("1 GiB").replace("queue_depth = 64", "queue_depth = 256").replace("count = 4", "count = 16"),
            "peripheral[0].block = \"1 GiB\" of queue_depth = 256 commands and count = 16 devices is more than 1024 GiB",
        ),
    ] {
        let said = refused(&text);
        assert!(said.contains(says), "{said}");
    }
    for (table, line, says) in [
        ("caches.l1d", "size = \"1 GiB\"", "platform.caches.l1d.size = \"1 GiB\" is more than 16 MiB"),
        ("caches.llc", "write_ack = \"3600 s\"", "platform.caches.llc.write_ack = \"3600 s\" is more than 100 us"),
        ("nic", "pipeline = \"18446743 s\"", "platform.nic.pipeline = \"18446743 s\" is more than 100 us"),
        ("caches", "noc_cycles = 4294967295", "platform.caches.noc_cycles = 4294967295 is more than 1048576"),
        ("core", "rob = 4294967295", "platform.core.rob = 4294967295 is more than 65536"),
        ("memory", "age_cap_ns = 1000000000000", "platform.memory.quirks.age_cap_ns = 1000000000000 is more than"),
    ] {
        let said = with("quadrant3", table, line);
        assert!(said.contains(says), "{said}");
    }
    let probe = refused(&shipped("dctcp-receiver").replacen("[traffic.dctcp]", "[traffic.dctcp]\nprobe = \"1 ps\"", 1));
    assert!(probe.contains("traffic.dctcp.probe = \"1 ps\" is below 1 us"), "{probe}");
}

/// Tables of several kinds are read as a whole, and the message names the key nevertheless.
#[test]
fn a_value_of_the_wrong_kind_in_a_table_of_several_kinds_is_told_with_its_key() {
    for (to, says) in [
        ("count = 1000000000000000", "peripheral[0].count: invalid value: integer \"1000000000000000\", expected a whole number of at most 4294967295"),
        ("count = -4", "peripheral[0].count: invalid value: integer \"-4\", expected a whole number of at least 0"),
        ("count = 1.5", "peripheral[0].count: invalid type: floating point \"1.5\", expected a whole number of at least 0"),
        ("count = \"four\"", "peripheral[0].count: invalid type: string \"four\", expected a whole number of at least 0"),
    ] {
        let said = refused(&shipped("quadrant3").replacen("count = 4", to, 1));
        assert!(said.contains(says), "{said}");
    }
    let said = refused(&shipped("quadrant3").replacen("8 MiB", "8 GHz", 1));
    assert!(said.contains("peripheral[0].block: expected a size such as \"36 MiB\", not \"8 GHz\""), "{said}");
}

/// The message about a missing value lists the valid choices, for every kind of value.
#[test]
fn a_key_that_is_missing_comes_with_what_may_stand_there() {
    for (name, line, says) in [
        ("quadrant3", "block =", "peripheral[0]: missing field \"block\" (a size such as \"36 MiB\")"),
        ("quadrant3", "op =", "peripheral[0]: missing field \"op\" (valid: p2m_read, p2m_write)"),
        ("quadrant3", "queue_depth =", "peripheral[0]: missing field \"queue_depth\" (a whole number of at least 0)"),
        ("quadrant3", "app =", "tenant[0]: missing field \"app\" (a table)"),
        ("quadrant3", "policy =", "placement: missing field \"policy\" (valid: dma, "),
        ("quadrant3", "load =", "run: missing field \"load\" (valid: fixed, peak_slo, "),
        ("quadrant3", "platform =", "platform is missing: the name of one (there are: altra, "),
    ] {
        let text: Vec<String> = shipped(name).lines().filter(|l| !l.starts_with(line)).map(String::from).collect();
        let said = refused(&text.join("\n"));
        assert!(said.contains(says), "{said}");
    }
}

/// A tenant waits for packets, and the scenario does not say how they arrive: with a table `traffic`, or without one.
#[test]
fn traffic_that_is_missing_comes_with_the_ways_packets_can_arrive() {
    let kvs = shipped("kvs");
    let without = |line: &str| kvs.lines().filter(|l| !l.starts_with(line)).collect::<Vec<_>>().join("\n");
    let said = refused(&without("arrivals"));
    assert!(said.contains("traffic: missing field \"arrivals\" (valid: poisson, fixed, "), "{said}");
    let (before, rest) = kvs.split_once("[traffic]").unwrap();
    let after = rest.split_once("[run]").unwrap().1;
    let said = refused(&format!("{before}[run]{after}"));
    assert!(said.contains("traffic.arrivals = \"none\", which it is by default, leaves a tenant"), "{said}");
    assert!(
        said.contains("(valid: poisson, fixed, uniform, log_normal, pareto, burst, closed, keep_depth, pcap)"),
        "{said}"
    );
    let kind = refused(&kvs.replacen("kind = ", "sort = ", 1));
    assert!(kind.contains("tenant[0].app: missing field \"kind\" (valid: "), "{kind}");
}
