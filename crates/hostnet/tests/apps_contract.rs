//! Tests of the applications beside storage, and of the stream prefetcher: the memory traffic that follows from what a
//! query or an edge touches, and line fill buffers in use where misses overlap.

use hostnet::config::{resolve, Scenario};
use hostnet::host::{run, Outcome};
use hostnet::placement::PlacementPolicy;
use std::path::PathBuf;

fn spec(cores: u32, app: &str, more: &str) -> Scenario {
    let text = format!(
        "name = \"a\"\nplatform = \"cascadelake\"\nplacement = {{ policy = \"dma\" }}\n[[tenant]]\nname = \"a\"\ncores = {cores}\n\
         app = {{ {app} }}\n[run]\nload = \"saturate\"\nwarmup_time = \"20 us\"\ntime = \"300 us\"\n{more}"
    );
    let platforms = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../platforms");
    resolve(&text, "a.toml", &[platforms]).unwrap_or_else(|e| panic!("{e}"))
}

/// Four SSDs that write memory, with the kernel's cores for them.
const SSDS: &str =
    "[[peripheral]]\nkind = \"ssd\"\nop = \"p2m_write\"\ncount = 4\nqueue_depth = 64\nblock = \"8 MiB\"\ncores = 2\n";

fn measured(cores: u32, app: &str, more: &str) -> Outcome {
    run(&spec(cores, app, more), &mut |_| Ok(())).expect("a run whose books balance")
}

fn get(o: &Outcome, metric: &str) -> f64 {
    o.values.get(metric).unwrap_or_else(|| panic!("{metric} is absent"))
}

fn near(a: f64, b: f64, tolerance: f64, what: &str) {
    assert!((a / b - 1.0).abs() <= tolerance, "{what}: {a} against {b}");
}

/// Lines of memory per operation, read and written.
fn lines(o: &Outcome) -> (f64, f64) {
    let per = |m| get(o, m) * 1e3 / 64.0 / get(o, "t0_mops");
    (per("mem_c2m_read_gbs"), per("mem_c2m_write_gbs"))
}

const PREFETCH: &str = "[override.core.prefetch]\nenabled = true\n";
/// No clean line enters the LLC, so that all but what is stored comes from memory; and what has entered leaves in turn.
const DROP: &str = "[override.caches.llc]\nclean_victim = \"drop\"\nreplacement = \"lru\"\n";

/// Per edge a gather, per 16 edges a line of the list, per 32 the sixteenth of a score's and the eighth of an index' line; and
/// cores that wait for nothing but memory keep their line fill buffers busy.
#[test]
fn a01_pagerank_reads_what_its_edges_touch_and_fills_the_line_fill_buffers() {
    let o = measured(2, "kind = \"gapbs\", scale = 25", DROP);
    let (read, _) = lines(&o);
    near(read, 1.0 + 1.0 / 16.0 + (1.0 / 16.0 + 1.0 / 8.0) / 32.0, 0.01, "lines per edge");
    // A miss that waited for an entry takes it 14.4 ns after it has become free.
    let latency = get(&o, "lfb_lat_ns");
    let in_use = get(&o, "lfb_credits") * latency / (latency + 14.4);
    assert!(get(&o, "lfb_occ") > 0.9 * in_use, "{} of {in_use}", get(&o, "lfb_occ"));
    assert!(get(&o, "t0_llc_miss_ratio") > 0.95);
}

/// With clean victims in it the LLC holds the lines that were used last, gathers 1.0 of 1.067 for each edge; those of 2^21
/// that it (405,504 lines) and two L2s (16,384) hold hit.
#[test]
fn a01b_pagerank_hits_what_share_of_the_scores_the_llc_holds() {
    let o = measured(2, "kind = \"gapbs\", scale = 25", "");
    let others = 1.0 / 16.0 + (1.0 / 16.0 + 1.0 / 8.0) / 32.0;
    let of = |cache: f64| cache / (1.0 + others) / f64::from(1 << 21);
    // What the L2s hold never turns to the LLC.
    let hits = of(405_504.0) / (1.0 - of(16_384.0) + others);
    near(1.0 - get(&o, "t0_llc_miss_ratio"), hits, 0.05, "hits");
}

/// Bucket, entry and key of the key and of those before it in the chain (0.48 on average), object, 17 lines of string; keys
/// may share a line with one just read, and objects may be in the LLC. Each page takes a walk, whose line of the page table is
/// in the L2 if it was there within the 655 queries that fill it with 25 lines each: 92 % of those of the buckets (256 lines,
/// once a query), 73, 63 and 74 % of the entries', keys' and objects', 2 % of the strings' (40,960 lines, 1.25 times).
const WALKS: f64 = 0.08 + 1.48 * (0.27 + 0.37) + 0.26 + 1.25 * 0.98;

#[test]
fn a02_a_get_reads_its_index_and_value_from_memory() {
    let o = measured(3, "kind = \"redis\", keys = 1000000, value = \"1 KiB\"", DROP);
    let (read, written) = lines(&o);
    let read = read - WALKS;
    assert!((1.0 + 2.0 * 1.4 + 16.8..1.0 + 2.0 * 1.48 + 1.0 + 17.3).contains(&read), "{read}");
    assert!(written < 1.0, "only the object's time of use: {written}");
    assert!(get(&o, "t0_llc_miss_ratio") > 0.95);
}

/// A SET reads the lines of the string that it overwrites, and all that it stores comes to memory: string, entry, object.
#[test]
fn a03_a_set_writes_as_much_as_it_stores() {
    let o = measured(3, "kind = \"redis\", command = \"set\", keys = 1000000, value = \"1 KiB\"", DROP);
    let (read, written) = lines(&o);
    near(written, 17.0 + 1.0 + 1.0, 0.05, "lines written");
    near(read, 1.0 + 2.0 * 1.48 + 1.0 + 17.0 + WALKS, 0.06, "lines read");
}

#[test]
fn a04_prefetching_hides_latency_of_a_stream_and_fetches_each_line_once() {
    let stream = "kind = \"stream\", buffer = \"64 MiB\"";
    let (off, on) = (measured(1, stream, ""), measured(1, stream, PREFETCH));
    assert!(get(&on, "c2m_gbs") > 1.2 * get(&off, "c2m_gbs"), "{} GB/s", get(&on, "c2m_gbs"));
    near(get(&on, "mem_c2m_read_gbs"), get(&on, "c2m_gbs"), 0.02, "memory traffic of what the core read");
    // domains: credits and Little's law
    let queue = 20.0;
    assert!(get(&on, "prefetch_occ") <= queue);
    assert!(off.values.get("prefetch_occ").is_none());
}

#[test]
fn a05_prefetching_leaves_random_lines_alone() {
    let random = "kind = \"stream\", buffer = \"64 MiB\", access = \"random\"";
    let (off, on) = (measured(1, random, ""), measured(1, random, PREFETCH));
    near(get(&on, "c2m_gbs"), get(&off, "c2m_gbs"), 0.02, "throughput");
    near(get(&on, "mem_c2m_read_gbs"), get(&off, "mem_c2m_read_gbs"), 0.02, "memory traffic");
}

/// Stores to shared memory with the prefetcher on: the books of dirty lines must balance (checked at the end of the run).
#[test]
fn a06_shared_graphs_stay_coherent_with_prefetchers() {
    for kernel in ["pagerank", "betweenness"] {
        let o = measured(4, &format!("kind = \"gapbs\", kernel = \"{kernel}\", scale = 16"), PREFETCH);
        assert!(get(&o, "t0_mops") > 0.0);
    }
}

/// What the LLC holds when a window begins is what it goes on to hold: devices and the kernel's books bring as much as they
/// displace, 2.875 lines for each page's 64, and an application that stores hardly anything writes hardly anything: of PageRank
/// a sixteenth of a line for 32 edges.
#[test]
fn a07_windows_beside_devices_begin_with_a_steady_llc() {
    for (policy, victims) in [("dma", ""), ("ddio", ""), ("dma", DROP), ("ddio", DROP)] {
        let mut s = spec(4, "kind = \"gapbs\", scale = 25", &(SSDS.to_string() + victims));
        s.placement.policy = if policy == "dma" { PlacementPolicy::Dma } else { PlacementPolicy::Ddio };
        let o = run(&s, &mut |_| Ok(())).expect("a run whose books balance");
        let p2m = get(&o, "p2m_gbs") * (1.0 + 2.875 / 64.0);
        near(get(&o, "mem_p2m_write_gbs"), p2m, 0.02, policy);
        assert!(lines(&o).1 < 2.0 / 16.0 / 32.0, "{policy}: {} lines written per edge", lines(&o).1);
    }
    // The kernel's lines drive out of the LLC what one server's objects, 16 MB, had there alone.
    let redis = |more: &str| measured(1, "kind = \"redis\", keys = 1000000, value = \"1 KiB\"", more);
    let hits = |o: &Outcome| 1.0 - get(o, "t0_llc_miss_ratio");
    let (alone, beside) = (hits(&redis(DROP)), hits(&redis(&(SSDS.to_string() + DROP))));
    assert!(alone > 0.03 && beside < alone / 2.0, "{alone} of the lines are in the LLC alone, {beside} beside devices");
}

/// Beside streams that read, too, which write nothing: what dirty lines the LLC has are the devices'.
#[test]
fn a08_streams_beside_devices_begin_with_a_steady_llc() {
    let o = measured(6, "kind = \"stream\", buffer = \"64 MiB\"", SSDS);
    near(get(&o, "mem_p2m_write_gbs"), get(&o, "p2m_gbs") * (1.0 + 2.875 / 64.0), 0.02, "written for devices");
    assert!(get(&o, "mem_c2m_write_gbs") < 0.01 * get(&o, "c2m_gbs"), "{} GB/s", get(&o, "mem_c2m_write_gbs"));
}
