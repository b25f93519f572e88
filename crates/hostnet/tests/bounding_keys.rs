//! Keys that bound each other: where a given key makes a default of another too large, the default gives way, or the sentence
//! names the given key as well.

use crate::common::{get, refusal, refused, scenario, simulate};

const STREAM: &str = r#"
    name = "stream"
    platform = "spr"
    placement = { policy = "dma" }
    tenant = [{ name = "cores", cores = 1, app = { kind = "stream", buffer = "64 MiB" } }]
    run = { load = "saturate", time = "20 us", warmup_time = "5 us" }
"#;

const LOOPBACK: &str = r#"
    name = "loopback"
    platform = "icelake"
    placement = { policy = "dma" }
    tenant = [{ name = "host", cores = 1, stack = "ccnic", app = { kind = "loopback", bytes = "64 B" } }]
    ccnic.ring = 1024
    traffic = { arrivals = "closed", outstanding = 64 }
    run = { load = "fixed", requests = 1000, warmup_requests = 500 }
"#;

const FORWARDER: &str = r#"
    name = "forwarder"
    platform = "icx"
    placement = { policy = "dma" }
    tenant = [{ name = "pmd", cores = 1, stack = "poll_mode", app = { kind = "testpmd" } }]
    peripheral = [{ kind = "ethernet" }]
    traffic = { arrivals = "fixed", rate = "1 Mpps" }
    run = { load = "fixed", requests = 1000 }
"#;

/// The prefetchers of the L1 of `spr` pause when 8 line fill buffers are in use: with 4 in all, when all are.
#[test]
fn prefetchers_of_the_l1_give_way_to_a_core_with_few_line_fill_buffers() {
    let with = |keys: &str| simulate(&format!("{STREAM}    override.core.lfb = 4\n{keys}")).values;
    assert_eq!(with(""), with("override.core.l1_prefetch.quirks.misses = 4"));
    for lfb in [1, 7, 16] {
        for enabled in [true, false] {
            let keys = format!("override.core = {{ lfb = {lfb}, l1_prefetch = {{ enabled = {enabled} }} }}");
            scenario(&format!("{STREAM}    {keys}"));
        }
    }
    let given = "run = {";
    refused(
        STREAM,
        &[(
            given,
            "override.core.l1_prefetch.quirks.misses = 20\n    run = {",
            "override.core.l1_prefetch.quirks.misses = 20 is not within 1 to core.lfb = 16",
        )],
    );
}

/// The host clears 8 lines of a shared pool's ring together. With a pool of its own it frees buffers when fewer than 32
/// descriptors are free, which are those of 8 lines.
#[test]
fn a_small_ring_of_cc_nic_is_told_which_ring_works() {
    let lazy = "ccnic.quirks.lazy_release = 8 is not within 1 to 4, for which ccnic.ring = 4 has room; give less, or ccnic.ring = 8 or more.";
    assert!(refusal(LOOPBACK, "ring = 1024", "ring = 4").contains(lazy));
    let own = LOOPBACK.replace("ccnic.ring", "ccnic.preset = \"unoptimised\"\n    ccnic.ring");
    let freed = "ccnic.quirks.free_threshold = 32 is not within 1 to 31, for which ccnic.ring = 8 has room; give less, or ccnic.ring = 16 or more.";
    assert!(refusal(&own, "ring = 1024", "ring = 8").contains(freed));
    for (text, ring) in [(LOOPBACK, 8), (own.as_str(), 16)] {
        let o = simulate(&text.replace("ring = 1024", &format!("ring = {ring}")));
        assert!(get(&o, "throughput_mrps") > 0.0, "{ring} lines");
    }
}

#[test]
fn a_bound_that_another_key_sets_is_told_with_that_key() {
    let run = "run = {";
    for (keys, said) in [
        (
            "core = { store_queue = 32, stores_per_line = 64 }",
            "platform.core.store_queue = 32 cannot hold the stores of one line, platform.core.stores_per_line = 64",
        ),
        (
            "core.prefetch = { trigger = 8, quirks = { pattern = \"stride\" } }",
            "trigger = 8 is not within 2 to 6, up to which quirks.pattern = \"stride\" counts",
        ),
        (
            "pcie.max_payload = \"512 B\"\n    override.pcie.posted_lines = 4",
            "posted_lines = 4 cannot hold the 8 lines of one write of max_payload = \"512 B\"",
        ),
        (
            "iio.write_buffer = 2\n    override.pcie.quirks.train = 8",
            "train = 8 is more than the entries of platform.iio.write_buffer = 2 or read_buffer = 512",
        ),
        (
            "background_read_gbs = 30.0\n    override.memory.channels = 1",
            "is not within 0 to 25.6, what platform.memory.channels = 1 of standard = \"DDR4-3200\" carry",
        ),
    ] {
        refused(FORWARDER, &[(run, &format!("override.{keys}\n    {run}"), said)]);
    }
    for (keys, said) in [
        (
            "rings = { receive = 64, quirks = { receive_cache = 128 } }",
            "peripheral[0].rings.quirks.receive_cache = 128 is not within 1 to receive = 64",
        ),
        (
            "headers = 1600, mtu = \"1500 B\"",
            "mtu = \"1500 B\" is not within 1601 B, which is above headers = 1600, to 9600 B",
        ),
        (
            "receive_buffer = \"8 KiB\", mtu = \"9000 B\"",
            "receive_buffer = \"8 KiB\" does not hold one frame of mtu = \"9000 B\"",
        ),
    ] {
        refused(FORWARDER, &[("kind = \"ethernet\"", &format!("kind = \"ethernet\", {keys}"), said)]);
    }
    let few = FORWARDER.replace("kind = \"ethernet\"", "kind = \"ethernet\", rings = { receive = 128, transmit = 64 }");
    for (key, said) in [
        (
            "burst = 65",
            "burst = 65 is more than half of the NIC's rings.receive = 128; give rings.receive = 136 or more",
        ),
        (
            "quirks.free_threshold = 64",
            "quirks.free_threshold = 64 is not below the NIC's rings.transmit = 64; give rings.transmit = 72 or more",
        ),
    ] {
        refused(&few, &[(run, &format!("override.poll_mode.{key}\n    {run}"), said)]);
    }
}
