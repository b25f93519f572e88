//! Central dispatch: one queue for all cores.

use crate::common::{close, get, refused, simulate};
use hostnet::host::Outcome;

/// A forwarder with `cores` cores behind `stack`, at `rate`.
fn forwarder(stack: &str, cores: u32, rate: &str, more: &str) -> String {
    format!(
        "name = \"dispatch\"\nplatform = \"sim24\"\nplacement = {{ policy = \"ddio\", ways = 2 }}\n\
         rings = {{ rx_buffers = 1024, buffer_size = \"1 KiB\" }}\n\
         tenant = [{{ name = \"a\", cores = {cores}, stack = {stack}, app = {{ kind = \"l3fwd\", rules = 1024 }} }}]\n\
         traffic = {{ arrivals = \"poisson\", rate = \"{rate}\", packet = \"1 KiB\"{more} }}\n\
         run = {{ load = \"fixed\", requests = 20000, warmup_requests = 4000 }}\n"
    )
}

/// Packets that each worker has served.
fn served(o: &Outcome) -> Vec<f64> {
    let rows = o.tables["dispatch"]["rows"].as_array().expect("rows");
    rows.iter().map(|r| r[1].as_f64().expect("a number")).collect()
}

#[test]
fn every_packet_is_served_by_one_worker() {
    let o = simulate(&forwarder("\"dispatch\"", 5, "3 Mrps", ""));
    let served = served(&o);
    assert_eq!(served.len(), 4);
    // A packet that a worker has served may be on its way through the NIC at either end of the window.
    close(served.iter().sum(), 20_000.0, 0.002);
    assert_eq!(get(&o, "drop_rate"), 0.0);
}

/// The dispatcher spends 6400 instructions a packet, which at 2 instructions a cycle and 3.2 GHz are 1 us: it hands out at
/// most 1 Mpps, however many workers there are.
#[test]
fn the_dispatcher_limits_the_rate() {
    let stack = "{ kind = \"dispatch\", instructions = 6400 }";
    let text = forwarder(stack, 9, "3 Mrps", "")
        .replace("arrivals = \"poisson\", rate = \"3 Mrps\"", "arrivals = \"keep_depth\", depth = 8");
    let o = simulate(&text.replace("\"fixed\"", "\"saturate\""));
    let rate = get(&o, "throughput_mrps");
    assert!(rate < 1.0 && rate > 0.9, "{rate} Mrps");
}

/// M/M/n against n times M/M/1 (Kleinrock): with stalls of up to 20 us, packets wait behind a stall in the queue of their
/// core, where a single queue passes them to the next core. The workers of both systems are 8 cores.
#[test]
fn a_single_queue_does_not_wait_behind_a_stall() {
    let spikes = ", spikes = { probability = 0.005, min = \"10 us\", max = \"20 us\" }";
    let own = simulate(&forwarder("\"queue_pair\"", 8, "12 Mrps", spikes));
    let single = simulate(&forwarder("\"dispatch\"", 9, "12 Mrps", spikes));
    let p99 = |o: &Outcome| get(o, "lat_p99_us");
    assert!(p99(&own) > 3.0 * p99(&single), "{} us with own queues, {} us with one", p99(&own), p99(&single));
    assert!(get(&single, "lat_mean_us") < get(&own, "lat_mean_us"));
}

#[test]
fn mistakes_are_one_sentence() {
    let stack = "stack = \"dispatch\"";
    refused(
        &forwarder("\"dispatch\"", 5, "1 Mrps", ""),
        &[
            (stack, "stack = \"dispach\"", "tenant[0].stack: unknown choice \"dispach\"; did you mean \"dispatch\""),
            (
                stack,
                "stack = { kind = \"dispatch\", dept = 2 }",
                "tenant[0].stack: unknown key \"dept\"; did you mean \"depth\"",
            ),
            (
                stack,
                "stack = { kind = \"dispatch\", depth = \"two\" }",
                "tenant[0].stack.depth: invalid type: string \"two\"",
            ),
            ("cores = 5", "cores = 1", "cores = 1 leaves no worker"),
            (stack, "stack = \"extension\"", "tenant[0].stack = \"extension\" names no component"),
        ],
    );
}
