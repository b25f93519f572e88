//! Scenarios that differ in the metrics that decide: each gets from one simulation the result that it has alone.

use crate::common::scenario;
use hostnet::config::Scenario;
use hostnet::host::{fill_key, run, run_each, Outcome};

const OPEN: &str = r#"
name = "open"
platform = "sim24"
placement = { policy = "ddio", ways = 2 }
rings = { rx_buffers = 256, buffer_size = "1 KiB" }
tenant = [{ name = "touchdrop", cores = 2, app = { kind = "touchdrop", instructions = 700 } }]
traffic = { arrivals = "poisson", packet = "1 KiB" RATE }

[run]
requests = 30000
precision = 0.03
"#;

/// Scenarios that are equal but for their names and the metric that decides; `text` ends with the table `run`.
fn deciding(text: &str, metrics: [&str; 3]) -> Vec<Scenario> {
    let with = |metric: &str| {
        let mut s = scenario(&format!("{text}precision_of = [\"{metric}\"]\n"));
        s.name = format!("by {metric}");
        s
    };
    metrics.map(with).into()
}

/// Every value, interval, table and warning of each scenario, alone and from one simulation; and the lengths of the windows.
fn compare(specs: &[Scenario]) {
    let alone: Vec<Outcome> = specs.iter().map(|s| run(s, &mut |_| Ok(())).unwrap_or_else(|e| panic!("{e}"))).collect();
    let mut together = vec![None; specs.len()];
    let ended = run_each(specs, false, &mut |_| Ok(()), &mut |i, o| together[i] = Some(format!("{o:#?}")));
    assert_eq!(ended, Ok(()));
    let mut lengths: Vec<_> = alone.iter().map(|o| o.measured).collect();
    lengths.sort();
    lengths.dedup();
    assert_eq!(lengths.len(), specs.len(), "each window ends at a time of its own: {lengths:?}");
    for (i, (alone, together)) in alone.iter().zip(together).enumerate() {
        assert_eq!(Some(format!("{alone:#?}")), together, "{}", specs[i].name);
    }
}

#[test]
fn windows_of_requests_end_as_alone() {
    let text = OPEN.replace("RATE", ", rate = \"4 Mrps\"") + "load = \"fixed\"\n";
    compare(&deciding(&text, ["lat_p99_us", "throughput_mrps", "lat_mean_us"]));
}

#[test]
fn windows_of_time_end_as_alone() {
    let text = r#"
name = "stream"
platform = "cascadelake"
placement = { policy = "dma" }
tenant = [{ name = "stream", cores = 2, app = { kind = "stream", buffer = "64 MiB", read_fraction = 0.5 } }]
peripheral = [{ kind = "ssd", op = "p2m_write", count = 4, queue_depth = 64, block = "8 MiB", cores = 2 }]

[run]
load = "saturate"
warmup_time = "20 us"
time = "200 us"
precision = 0.02
"#;
    compare(&deciding(text, ["mem_bw_gbs", "c2m_gbs", "row_miss_ratio"]));
}

#[test]
fn windows_of_a_search_end_as_alone() {
    let text = OPEN.replace("RATE", "") + "load = \"peak_loss\"\nstep = \"20 Gbps\"\n";
    compare(&deciding(&text, ["lat_mean_us", "throughput_mrps", "service_mean_us"]));
}

#[test]
fn another_simulation_is_refused() {
    let text = OPEN.replace("RATE", ", rate = \"4 Mrps\"") + "load = \"fixed\"\n";
    let mut specs = deciding(&text, ["lat_p99_us", "throughput_mrps", "lat_mean_us"]);
    specs[1].seed = 2;
    let why = run_each(&specs, false, &mut |_| Ok(()), &mut |_, _| panic!("a result"));
    assert!(why.is_err_and(|e| e.starts_with("by throughput_mrps is another simulation than by lat_p99_us;")));
}

/// Scenarios that differ in the rate, the load, the depth of standing queues, the stalls of requests and what is measured fill the
/// caches in the same way. Each has the result that it has alone, with the caches that the one before it has filled.
#[test]
fn caches_that_another_scenario_has_filled_change_no_result() {
    let of = |traffic: &str, run: &str| scenario(&OPEN.replace("RATE", traffic).replace("precision = 0.03", run));
    let specs = [
        of(", rate = \"4 Mrps\"", "load = \"fixed\""),
        of(
            ", rate = \"2 Mrps\", spikes = { probability = 0.001, min = \"1 us\", max = \"10 us\" }",
            "load = \"fixed\"",
        ),
        of("", "load = \"peak_slo\"\nprecision = 0.05"),
        of(", rate = \"5 Mrps\"", "load = \"fixed\"\nprecision_of = [\"lat_mean_us\"]\nprecision = 0.1"),
        scenario(
            &OPEN
                .replace("RATE", ", rate = \"3 Mrps\"")
                .replace("poisson", "fixed")
                .replace("precision = 0.03", "load = \"fixed\""),
        ),
    ];
    share_filled_caches(&specs);
    let depths = ["4", "32"].map(|depth| {
        let traffic = OPEN.replace("poisson", "keep_depth").replace("RATE", &format!(", depth = {depth}"));
        scenario(&traffic.replace("precision = 0.03", "load = \"saturate\""))
    });
    share_filled_caches(&depths);
}

/// Fails unless `specs` fill the caches in the same way, and each has the result that it has alone.
fn share_filled_caches(specs: &[Scenario]) {
    let keys: Vec<_> = specs.iter().map(fill_key).collect();
    assert!(keys[0].is_some() && keys.iter().all(|k| *k == keys[0]));
    for s in specs {
        let alone = run(s, &mut |_| Ok(())).unwrap_or_else(|e| panic!("{e}"));
        let mut after = None;
        let ended = run_each(std::slice::from_ref(s), true, &mut |_| Ok(()), &mut |_, o| after = Some(o));
        assert_eq!(ended, Ok(()));
        assert_eq!(format!("{:#?}", Some(alone)), format!("{after:#?}"), "{:?}", s.traffic);
    }
}

/// What fills the caches in another way has another key, and caches that no packet fills in functional mode have none.
#[test]
fn scenarios_whose_caches_fill_in_another_way_have_another_key() {
    let of = |traffic: &str| scenario(&(OPEN.replace("RATE", traffic) + "load = \"fixed\"\n"));
    let first = of(", rate = \"4 Mrps\"");
    let key = fill_key(&first);
    for change in [
        |s: &mut Scenario| s.seed = 2,
        |s: &mut Scenario| s.placement.sweep_rx = true,
        |s: &mut Scenario| s.platform.caches.llc.ways = 11,
        |s: &mut Scenario| s.run.warmup_requests = Some(1000),
    ] {
        let mut other = first.clone();
        change(&mut other);
        assert_ne!(fill_key(&other), key);
    }
}
