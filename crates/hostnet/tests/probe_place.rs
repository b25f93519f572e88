//! Directed tests of one request of a device for a line in each of the five places (IDIO, section II-A and Fig. 1).

use crate::common::{get, platforms, scenario, simulate};
use hostnet::config::resolve;
use hostnet::host::{self, Outcome};

fn text(request: &str, place: &str, dirty: bool, policy: &str, read_hit: &str) -> String {
    format!(
        r#"
        name = "place"
        platform = "skylake-idio"
        placement = {{ {policy} }}
        rings = {{ rx_buffers = 4096, buffer_size = "2 KiB" }}
        tenant = [{{ name = "t", cores = 1, llc_ways = "2-8",
                     app = {{ kind = "probe_place", request = "{request}", place = "{place}", dirty = {dirty} }} }}]
        traffic = {{ arrivals = "none" }}
        run = {{ load = "none" }}
        override.caches.llc.read_hit = "{read_hit}"
        "#
    )
}

fn probe(request: &str, place: &str, dirty: bool) -> Outcome {
    let read_hit = if place == "both" { "retain" } else { "migrate" };
    simulate(&text(request, place, dirty, r#"policy = "ddio", ways = 2"#, read_hit))
}

/// Places P1 to P5 of IDIO, by whether a write allocates a line in the LLC and whether the line ends in the ways of
/// devices; a line in both caches is in a way of the directory. No write reads memory or makes an L2 write back.
#[test]
fn a_write_takes_a_line_of_the_devices_ways_unless_the_llc_has_it() {
    for (place, allocates, in_ddio) in
        [("mlc", 1.0, 1.0), ("both", 0.0, 0.0), ("llc", 0.0, 0.0), ("ddio", 0.0, 1.0), ("dram", 1.0, 1.0)]
    {
        for dirty in [false, true] {
            let o = probe("write", place, dirty);
            let expected = [
                ("llc_allocations", allocates),
                ("in_ddio_ways_after", in_ddio),
                ("mlc_copies_after", 0.0),
                ("mlc_wb", 0.0),
                ("lines_read", 0.0),
            ];
            for (metric, value) in expected {
                assert_eq!(get(&o, metric), value, "{metric} of {place}, dirty {dirty}");
            }
        }
    }
    assert_eq!(get(&probe("write", "dram", false), "ways_allocated"), 2.0, "of eleven");
}

/// The LLC answers with a line that it holds; a line that no cache has comes from memory; a line of an L2 goes to the
/// LLC.
#[test]
fn a_read_goes_to_memory_for_what_no_cache_has_alone() {
    for (place, reads, write_backs) in [("mlc", 0.0, 1.0), ("llc", 0.0, 0.0), ("ddio", 0.0, 0.0), ("dram", 1.0, 0.0)] {
        let o = probe("read", place, place == "mlc");
        assert_eq!(get(&o, "lines_read"), reads, "{place}");
        assert_eq!(get(&o, "mlc_wb"), write_backs, "{place}");
        assert_eq!(get(&o, "mlc_copies_after"), 0.0, "{place}");
    }
}

/// A cache that hands lines over to the core that reads them has no line in both places.
#[test]
fn a_place_that_the_platform_does_not_know_is_refused() {
    let s = scenario(&text("write", "both", false, r#"policy = "ddio", ways = 2"#, "migrate"));
    let said = host::run(&s, &mut |_| Ok(())).map(drop).expect_err("the LLC keeps no copy");
    assert!(said.contains("tenant[0].app.place = \"both\"") && said.contains("caches.llc.quirks.read_hit"), "{said}");
}

/// The probe of a core's loads names lines of another node, on which its third core is.
#[test]
fn a_place_in_another_node_needs_one_and_three_cores() {
    let why = |place: &str, cores: u32| {
        let text = format!(
            "name = \"p\"\nplatform = \"icelake\"\nplacement = {{ policy = \"ddio\" }}\ntraffic = {{ arrivals = \"none\" }}\nrun = {{ load = \"none\" }}\ntenant = [{{ name = \"p\", cores = {cores}, app = {{ kind = \"probe_latency\", place = \"{place}\" }} }}]"
        );
        resolve(&text, "p.toml", &[platforms()]).map(|_| ()).map_err(|e| e.to_string())
    };
    assert_eq!(why("local_dram", 3), Ok(()));
    let node = "p.toml: tenant[0].app.place = \"remote_l2_rh\" needs platform.nodes.count = 2.";
    assert_eq!(why("remote_l2_rh", 3), Err(node.into()));
    assert!(why("local_dram", 2).is_err_and(|e| e.contains("tenant[0].cores = 2")));
}

/// gem5's controllers keep writes in their queues until these are half full: refreshes continue, and the test ends.
#[test]
fn a_test_ends_where_controllers_keep_writes() {
    for request in ["write", "read"] {
        let t = text(request, "dram", false, r#"policy = "ddio", ways = 2"#, "migrate");
        let o = simulate(&t.replacen("skylake-idio", "gem5", 1));
        assert!(request == "read" || get(&o, "ways_allocated") == 2.0);
    }
}
