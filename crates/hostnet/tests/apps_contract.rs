//! Tests of applications with storage, and of the stream prefetcher: the memory traffic follows from the lines that a
//! query or an edge accesses, and line fill buffers are in use where misses overlap.

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

/// Four SSDs that write memory, with cores of the kernel for their pages.
const SSDS: &str =
    "[[peripheral]]\nkind = \"ssd\"\nop = \"p2m_write\"\ncount = 4\nqueue_depth = 64\nblock = \"8 MiB\"\ncores = 2\n";

fn measured(cores: u32, app: &str, more: &str) -> Outcome {
    run(&spec(cores, app, more), &mut |_| Ok(())).expect("a run whose books balance")
}

fn get(o: &Outcome, metric: &str) -> f64 {
    o.values.named(metric).unwrap_or_else(|| panic!("{metric} is absent"))
}

fn near(a: f64, b: f64, tolerance: f64, what: &str) {
    assert!((a / b - 1.0).abs() <= tolerance, "{what}: {a} against {b}");
}

/// Number of memory lines read and written per operation.
fn lines(o: &Outcome) -> (f64, f64) {
    let per = |m| get(o, m) * 1e3 / 64.0 / get(o, "t0_mops");
    (per("mem_c2m_read_gbs"), per("mem_c2m_write_gbs"))
}

const PREFETCH: &str = "[override.core.prefetch]\nenabled = true\n";
/// Setting with which no clean line enters the LLC, so that all lines except stored ones come from memory, and all
/// lines that have entered leave in turn.
const DROP: &str = "[override.caches.llc]\nclean_victim = \"drop\"\nreplacement = \"lru\"\n";

/// Each edge takes one gather, each 16 edges a line of the list, and each 32 edges a sixteenth of a line of scores and
/// an eighth of a line of the index. Cores that wait only for memory keep their line fill buffers busy.
#[test]
fn a01_pagerank_reads_what_its_edges_touch_and_fills_the_line_fill_buffers() {
    let o = measured(2, "kind = \"gapbs\", scale = 25", DROP);
    let (read, _) = lines(&o);
    near(read, 1.0 + 1.0 / 16.0 + (1.0 / 16.0 + 1.0 / 8.0) / 32.0, 0.01, "lines per edge");
    // A miss that waited for a line fill buffer takes the buffer 14.4 ns after it has become free.
    let latency = get(&o, "lfb_lat_ns");
    let in_use = get(&o, "lfb_credits") * latency / (latency + 14.4);
    assert!(get(&o, "lfb_occ") > 0.9 * in_use, "{} of {in_use}", get(&o, "lfb_occ"));
    assert!(get(&o, "t0_llc_miss_ratio") > 0.95);
}

/// With clean victims the LLC holds the most recently used lines, where gathers are 1.0 of 1.067 accesses per edge. Of
/// 2^21 lines, those that the LLC (405,504 lines) and two L2s (16,384 lines) hold are hits.
#[test]
fn a01b_pagerank_hits_what_share_of_the_scores_the_llc_holds() {
    let o = measured(2, "kind = \"gapbs\", scale = 25", "");
    let others = 1.0 / 16.0 + (1.0 / 16.0 + 1.0 / 8.0) / 32.0;
    let of = |cache: f64| cache / (1.0 + others) / f64::from(1 << 21);
    // Lines in the L2s never reach the LLC.
    let hits = of(405_504.0) / (1.0 - of(16_384.0) + others);
    near(1.0 - get(&o, "t0_llc_miss_ratio"), hits, 0.05, "hits");
}

/// A query reads the bucket, the entry and key of its own key and of the keys before it in the chain (0.48 on average),
/// the object, and 17 lines of string. Keys may share a line with one just read, and objects may be in the LLC. Each
/// page takes a page walk, whose page-table line is in the L2 if one of the last 655 queries has used it, because 655
/// queries with 25 lines each fill the L2. That holds for 92 % of the lines for buckets (256 lines, once per query),
/// for 73, 63 and 74 % of those for entries, keys and objects, and for 2 % of those for strings (40,960 lines, 1.25
/// times).
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

/// A SET reads the lines of the string that it overwrites, and all lines that it stores are written to memory: string,
/// entry, object.
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
    assert!(off.values.named("prefetch_occ").is_none());
}

#[test]
fn a05_prefetching_leaves_random_lines_alone() {
    let random = "kind = \"stream\", buffer = \"64 MiB\", access = \"random\"";
    let (off, on) = (measured(1, random, ""), measured(1, random, PREFETCH));
    near(get(&on, "c2m_gbs"), get(&off, "c2m_gbs"), 0.02, "throughput");
    near(get(&on, "mem_c2m_read_gbs"), get(&off, "mem_c2m_read_gbs"), 0.02, "memory traffic");
}

/// Stores to shared memory with the prefetcher on: the ledger of dirty lines must balance, which the end of the run
/// checks.
#[test]
fn a06_shared_graphs_stay_coherent_with_prefetchers() {
    for kernel in ["pagerank", "betweenness"] {
        let o = measured(4, &format!("kind = \"gapbs\", kernel = \"{kernel}\", scale = 16"), PREFETCH);
        assert!(get(&o, "t0_mops") > 0.0);
    }
}

/// The content of the LLC at the start of a window must be typical for the whole window. Devices and the kernel's page
/// accounting bring as many lines as they displace, 2.875 lines for each page of 64 lines. An application that hardly
/// stores writes hardly any lines: PageRank writes a sixteenth of a line for 32 edges.
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
    // The kernel's lines evict from the LLC the 16 MB of objects that one server alone would keep there.
    let redis = |more: &str| measured(1, "kind = \"redis\", keys = 1000000, value = \"1 KiB\"", more);
    let hits = |o: &Outcome| 1.0 - get(o, "t0_llc_miss_ratio");
    let (alone, beside) = (hits(&redis(DROP)), hits(&redis(&(SSDS.to_string() + DROP))));
    assert!(alone > 0.03 && beside < alone / 2.0, "{alone} of the lines are in the LLC alone, {beside} beside devices");
}

/// Devices beside streams that only read, and so write no lines: all dirty lines of the LLC belong to devices.
#[test]
fn a08_streams_beside_devices_begin_with_a_steady_llc() {
    let o = measured(6, "kind = \"stream\", buffer = \"64 MiB\"", SSDS);
    near(get(&o, "mem_p2m_write_gbs"), get(&o, "p2m_gbs") * (1.0 + 2.875 / 64.0), 0.02, "written for devices");
    assert!(get(&o, "mem_c2m_write_gbs") < 0.01 * get(&o, "c2m_gbs"), "{} GB/s", get(&o, "mem_c2m_write_gbs"));
}
