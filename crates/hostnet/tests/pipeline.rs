//! Tests of a poll-mode driver whose work two cores share: one core receives, the other serves and sends.

use crate::common::{get, platforms, simulate};
use hostnet::config::resolve;

struct Setting {
    cores: u32,
    pipeline: &'static str,
    /// Instructions of a packet at the first core and at the second.
    receive: u32,
    serve: u32,
    rate: f64,
}

impl Setting {
    fn text(&self) -> String {
        let Setting { cores, pipeline, receive, serve, rate } = self;
        format!(
            r#"
name = "pipeline"
placement = {{ policy = "ddio", ways = 4 }}
[platform]
name = "cascadelake"
[platform.poll_mode]
poll_instructions = 40
burst_instructions = 60
receive_instructions = {receive}
transmit_instructions = 40
free_instructions = 10
[[tenant]]
name = "forwarder"
cores = {cores}
stack = "poll_mode"
{pipeline}
app = {{ kind = "testpmd", mode = "macswap", instructions = {serve} }}
[[peripheral]]
kind = "ethernet"
lanes = 16
[traffic]
arrivals = "poisson"
rate = "{rate} Mrps"
packet = "256 B"
[run]
load = "fixed"
requests = 20000
"#
        )
    }
}

/// Packets per microsecond that a core serves with the given number of instructions per packet.
fn bound(instructions: u32) -> f64 {
    let s = Setting { cores: 1, pipeline: "", receive: 40, serve: 20, rate: 1.0 };
    let p = resolve(&s.text(), "p.toml", &[platforms()]).expect("a scenario").platform;
    p.core.clock.0 as f64 * p.core.compute_ipc / f64::from(instructions) / 1e6
}

const PAIR: &str = "pipeline = {}";

#[test]
fn two_cores_in_a_row_are_as_fast_as_the_slower_of_them() {
    let rate = 10.0;
    for (receive, serve) in [(2000, 2000), (3000, 1000), (1000, 3000)] {
        let alone = simulate(&Setting { cores: 1, pipeline: "", receive, serve, rate }.text());
        let pair = simulate(&Setting { cores: 2, pipeline: PAIR, receive, serve, rate }.text());
        let (one, two) = (get(&alone, "throughput_mrps"), get(&pair, "throughput_mrps"));
        let (of_one, of_two) = (bound(receive + serve), bound(receive.max(serve)));
        assert!(one < of_one && one > 0.85 * of_one, "{one} of {of_one}");
        assert!(two < of_two && two > 0.85 * of_two, "{receive} {serve}: {two} of {of_two}");
        // The cores cause the packet losses, whichever of them is slow, but for packets that come while the NIC fetches
        // the descriptor of the packet that was served: a read of memory, behind one other read.
        let fetching = two * 2.0 * get(&pair, "p2m_read_unloaded_ns") / 1e3;
        assert!(
            get(&pair, "drop_rate") > 0.5 && get(&pair, "drop_core_share") > 0.99 - fetching,
            "{}",
            get(&pair, "drop_core_share")
        );
    }
}

#[test]
fn pairs_of_cores_serve_queues_of_their_own() {
    let of = |cores| {
        get(
            &simulate(&Setting { cores, pipeline: PAIR, receive: 2000, serve: 2000, rate: 10.0 }.text()),
            "throughput_mrps",
        )
    };
    let (one, two) = (of(2), of(4));
    assert!((two / one - 2.0).abs() < 0.05, "{one} {two}");
}

#[test]
fn below_the_capacity_nothing_is_lost_and_a_packet_takes_the_way_between_the_cores_longer() {
    let at = |cores, pipeline| simulate(&Setting { cores, pipeline, receive: 100, serve: 100, rate: 1.0 }.text());
    let (alone, pair) = (at(1, ""), at(2, PAIR));
    assert_eq!(get(&alone, "drops") + get(&pair, "drops"), 0.0);
    assert!((get(&pair, "throughput_mrps") - 1.0).abs() < 0.02);
    let more = get(&pair, "lat_mean_us") - get(&alone, "lat_mean_us");
    // Lines of index, slot, descriptor and header move between the cores, each a trip over the crossbar; none goes to
    // memory.
    assert!(more > 0.05 && more < 1.5, "{more} us");
    assert!(get(&pair, "cpu_utilisation") < 0.5);
}

#[test]
fn a_small_ring_holds_the_first_core_back_and_loses_nothing_itself() {
    let small = Setting { cores: 2, pipeline: "pipeline = { ring = 64 }", receive: 100, serve: 3000, rate: 10.0 };
    let large = Setting { cores: 2, pipeline: "pipeline = { ring = 4096 }", receive: 100, serve: 3000, rate: 10.0 };
    let (small, large) = (simulate(&small.text()), simulate(&large.text()));
    let (a, b) = (get(&small, "throughput_mrps"), get(&large, "throughput_mrps"));
    assert!((a / b - 1.0).abs() < 0.03, "{a} {b}");
    // Packets in the ring wait longer: 4032 packets more, at the second core's rate.
    let waits = get(&large, "lat_p50_us") - get(&small, "lat_p50_us");
    assert!((waits / (4032.0 / b) - 1.0).abs() < 0.1, "{waits} us, {} expected", 4032.0 / b);
}

/// The second core copies a frame, or keeps it for later, before it serves it, and nothing is lost. A buffer whose frame has
/// been copied is swept: each line of the frame once.
#[test]
fn the_second_core_of_a_pipeline_copies_or_keeps_what_the_first_one_took() {
    for (recycling, swept) in [("run_to_completion", 0.0), ("copy", 1.0), ("reallocate", 0.0)] {
        let text = Setting { cores: 2, pipeline: PAIR, receive: 100, serve: 300, rate: 1.0 }.text();
        let text = text.replacen("stack =", &format!("recycling = \"{recycling}\"\nstack ="), 1);
        let o = simulate(&text.replace("ways = 4", "ways = 4, sweep_rx = true"));
        assert_eq!(get(&o, "drops"), 0.0, "{recycling}");
        assert!((get(&o, "throughput_mrps") - 1.0).abs() < 0.02, "{recycling}: {}", get(&o, "throughput_mrps"));
        let lines = 4.0 * swept; // 256 bytes
        assert!(
            (get(&o, "clsweeps_per_req") - lines).abs() <= 0.02 * lines,
            "{recycling}: {}",
            get(&o, "clsweeps_per_req")
        );
    }
}

#[test]
fn what_cannot_be_a_pipeline_is_one_sentence() {
    let good = Setting { cores: 2, pipeline: PAIR, receive: 100, serve: 100, rate: 1.0 }.text();
    for (from, to, says) in [
        ("cores = 2", "cores = 3", "cores = 3 are not pairs"),
        (PAIR, "pipeline = { ring = 100 }", "ring = 100 is not a power of two"),
        (PAIR, "pipeline = { rings = 64 }", "did you mean \"ring\""),
        ("stack = \"poll_mode\"", "stack = \"kernel\"", "need stack = \"poll_mode\""),
        (
            "app = { kind = \"testpmd\", mode = \"macswap\", instructions = 100 }",
            "app = { kind = \"clique_map\", objects = 2000, get_fraction = 0.95, zipf = 0.75, below_100 = 0.61 }",
            "replies of two segments take buffers at the second core",
        ),
        ("policy = \"ddio\", ways = 4", "policy = \"idio\", ways = 4", "a tag names one, and both cores of a pair"),
    ] {
        assert!(good.contains(from), "{from}");
        let e = resolve(&good.replacen(from, to, 1), "p.toml", &[platforms()]).expect_err(to).to_string();
        assert!(e.contains(says) && e.starts_with("p.toml: ") && e.ends_with('.') && !e.contains('\n'), "{e}");
    }
}
