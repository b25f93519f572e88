//! Several tenants that receive packets on one host: what each gets, and what they share.

use crate::common::{close, get, refusal, refused, scenario, simulate};
use hostnet::config::scenario::WaysSpec;
use hostnet::host::control::{Control, Decision, EpochView};
use hostnet::host::{run_controlled, Outcome};
use hostnet::kernel::{TenantId, Time};
use hostnet::placement::Settings;
use serde_json::Value;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A forwarder that answers every frame.
const FORWARDER: &str = "{ kind = \"testpmd\", mode = \"macswap\" }";

/// A scenario on one node of icx.
fn on_icx(run: &str, rest: &str) -> String {
    format!(
        "name = \"mixture\"\nplatform = \"icx\"\noverride.nodes.count = 1\nplacement = {{ policy = \"ddio\", ways = 2 }}\n\
         run = {{ load = \"fixed\", {run} }}\n{rest}"
    )
}

const RUN: &str = "requests = 6000, warmup_requests = 1000";

fn nic(name: &str, link: &str) -> String {
    format!("[[peripheral]]\nkind = \"ethernet\"\nname = \"{name}\"\nlink = \"{link}\"\n")
}

fn tenant(name: &str, cores: u32, keys: &str, app: &str, traffic: &str) -> String {
    let traffic = if traffic.is_empty() { String::new() } else { format!("traffic = {{ {traffic} }}\n") };
    format!("[[tenant]]\nname = \"{name}\"\ncores = {cores}\n{keys}\napp = {app}\n{traffic}")
}

/// A poll-mode tenant on NIC `nic`.
fn driven(name: &str, cores: u32, nic: &str, app: &str, traffic: &str) -> String {
    tenant(name, cores, &format!("stack = \"poll_mode\"\nnic = \"{nic}\""), app, traffic)
}

/// Value of `column` in the row of tenant `name`.
fn of(o: &Outcome, name: &str, column: &str) -> f64 {
    let table = &o.tables["tenants"];
    let columns = table["columns"].as_array().expect("columns");
    let at = columns.iter().position(|c| c["name"] == column).unwrap_or_else(|| panic!("no column {column}"));
    let row = table["rows"].as_array().expect("rows").iter().find(|r| r[0] == name);
    row.and_then(|r| r[at].as_f64()).unwrap_or_else(|| panic!("{column} of {name} is null"))
}

/// Sum of `column` over the tenants that have a value.
fn sum(o: &Outcome, column: &str) -> f64 {
    let table = &o.tables["tenants"];
    let at = table["columns"].as_array().and_then(|c| c.iter().position(|c| c["name"] == column)).expect("a column");
    table["rows"].as_array().expect("rows").iter().filter_map(|r: &Value| r[at].as_f64()).sum()
}

/// A chase of pointers over 10 of the LLC's 12 MiB, beside a store with a log of 64 MiB. How much of the array the chase keeps depends
/// on how often it reads for each request of the store, and takes some turns of the LLC to settle. The automatic warm-up, which is mostly
/// without time, ends where 80,000 requests in time do.
#[test]
fn a_chase_beside_a_store_is_warm_when_the_window_begins() {
    let run = |warm_up: &str| {
        let store = "{ kind = \"mica\", item_size = \"512 B\", get_fraction = 0.5, pairs = 65536, buckets = 16384, log_size = \"64 MiB\", \
                     zipf = 0.99 }";
        let llc = "override.caches.llc = { size = \"12 MiB\", ways = 8 }\n";
        let text = on_icx(&format!("requests = 40000{warm_up}"), llc)
            + &nic("n", "100 Gbps")
            + &driven("kv", 2, "n", store, "rate = \"8 Mrps\", arrivals = \"poisson\"")
            + &tenant("chase", 1, "", "{ kind = \"xmem\", array = \"10 MiB\" }", "");
        let o = simulate(&text);
        (of(&o, "chase", "llc_miss_ratio"), of(&o, "chase", "throughput_mops"))
    };
    let (automatic, long) = (run(""), run(", warmup_requests = 80000"));
    assert!((automatic.0 - long.0).abs() < 0.05, "misses {automatic:?}, {long:?}");
    assert!(close(automatic.1, long.1, 0.04), "rates {automatic:?}, {long:?}");
}

/// Each tenant's packets come at its own rate to its own queues: a tenant whose packets went to another one's queues
/// would complete fewer than are offered to it.
#[test]
fn tenants_on_one_nic_get_each_its_own_rate_in_its_own_queues() {
    let text = on_icx(RUN, "")
        + &driven("two cores", 2, "a", FORWARDER, "arrivals = \"fixed\", rate = \"1.2 Mpps\", packet = \"256 B\"")
        + &driven(
            "sink",
            1,
            "a",
            "{ kind = \"touchdrop\" }",
            "arrivals = \"poisson\", rate = \"0.4 Mpps\", packet = \"1 KiB\"",
        )
        + &driven(
            "flows",
            3,
            "a",
            FORWARDER,
            "arrivals = \"fixed\", rate = \"0.8 Mpps\", packet = \"256 B\", flows = 64",
        )
        + &nic("a", "100 Gbps");
    let o = simulate(&text);
    // Of 6000 requests some 1000 are the sink's: three standard errors of a Poisson process are 10 %.
    for (name, rate, tolerance) in [("two cores", 1.2, 0.01), ("flows", 0.8, 0.01), ("sink", 0.4, 0.1)] {
        assert!(close(of(&o, name, "offered_mops"), rate, tolerance), "{name}: {}", of(&o, name, "offered_mops"));
        assert!(
            close(of(&o, name, "throughput_mops"), of(&o, name, "offered_mops"), 0.01),
            "{name}: {}",
            of(&o, name, "throughput_mops")
        );
        assert_eq!(of(&o, name, "drop_rate"), 0.0, "{name}");
    }
}

/// Frames of 1514 bytes and the 20 bytes between them take 1.2272 us of 10 Gb/s.
#[test]
fn tenants_on_one_nic_share_its_link() {
    let traffic = "arrivals = \"fixed\", rate = \"6 Gbps\", packet = \"1514 B\"";
    let text = on_icx(RUN, "")
        + &driven("a", 2, "nic", FORWARDER, traffic)
        + &driven("b", 2, "nic", FORWARDER, traffic)
        + &nic("nic", "10 Gbps");
    let o = simulate(&text);
    let line = 1.0 / 1.2272;
    assert!(close(get(&o, "throughput_mrps"), line, 0.002), "{} of {line} Mpps", get(&o, "throughput_mrps"));
    let came = sum(&o, "offered_mops");
    assert!(close(came, line, 0.002), "{came} of {line} Mpps came to the NIC");
    for name in ["a", "b"] {
        let own = of(&o, name, "throughput_mops");
        assert!(close(own, line / 2.0, 0.01), "{name}: {own}");
    }
    // One of them alone has room.
    let alone = on_icx(RUN, "") + &driven("a", 2, "nic", FORWARDER, traffic) + &nic("nic", "10 Gbps");
    let rate = 6e9 / 8.0 / 1514.0 / 1e6;
    assert!(close(get(&simulate(&alone), "throughput_mrps"), rate, 0.01));
}

#[test]
fn a_tenant_on_another_nic_that_gets_nothing_leaves_a_tenant_as_it_was() {
    let busy = driven("busy", 2, "a", FORWARDER, "arrivals = \"poisson\", rate = \"2 Mpps\", packet = \"512 B\"");
    let idle = driven("idle", 2, "b", FORWARDER, "arrivals = \"fixed\", rate = \"1 pps\", packet = \"512 B\"");
    let alone = simulate(&(on_icx(RUN, "") + &busy + &nic("a", "100 Gbps")));
    let beside = simulate(&(on_icx(RUN, "") + &busy + &idle + &nic("a", "100 Gbps") + &nic("b", "100 Gbps")));
    for column in ["lat_mean_us", "lat_p50_us", "lat_p99_us", "throughput_mops"] {
        let (one, two) = (of(&alone, "busy", column), of(&beside, "busy", column));
        assert!(close(two, one, 0.01), "{column}: {one} alone, {two} beside an idle tenant");
    }
    assert_eq!(of(&beside, "idle", "throughput_mops"), 0.0);
}

#[test]
fn the_tenants_add_up_to_the_host() {
    let text = on_icx(RUN, "")
        + &driven("a", 2, "n", FORWARDER, "arrivals = \"poisson\", rate = \"1 Mpps\", packet = \"1514 B\"")
        // One core, and three times what it can serve: most is dropped.
        + &driven("b", 1, "n", "{ kind = \"touchdrop\", instructions = 40000 }", "arrivals = \"poisson\", rate = \"3 Mpps\", packet = \"128 B\"")
        + &tenant("c", 1, "", "{ kind = \"l3fwd\", rules = 100 }", "arrivals = \"poisson\", rate = \"1 Mpps\", packet = \"64 B\"")
        + &tenant("memory", 1, "", "{ kind = \"stream\", buffer = \"64 MiB\", read_fraction = 0.5 }", "")
        + &nic("n", "100 Gbps");
    let o = simulate(&text);
    let dropped: f64 = ["a", "b", "c"].iter().map(|t| of(&o, t, "drop_rate") * of(&o, t, "offered_mops")).sum();
    let served: f64 = ["a", "b", "c"].iter().map(|t| of(&o, t, "throughput_mops")).sum();
    for (what, tenants, host) in [
        ("served", served, get(&o, "throughput_mrps")),
        ("offered", sum(&o, "offered_mops"), get(&o, "offered_mrps")),
        ("dropped", dropped, get(&o, "drop_rate") * get(&o, "offered_mrps")),
        ("read", sum(&o, "dram_read_gbs"), get(&o, "mem_read_gbs")),
        ("written", sum(&o, "dram_write_gbs"), get(&o, "mem_write_gbs")),
        ("of DRAM", sum(&o, "dram_share"), 1.0),
    ] {
        assert!(close(tenants, host, 1e-6), "{what}: {tenants} of the tenants, {host} of the host");
    }
    assert!(dropped > 0.5, "{dropped} Mpps are dropped");
}

/// Without DDIO every line of an SSD goes to DRAM, at the rate of writes over four lanes of PCIe 4.0: 16 GT/s, 128 of 130 bits,
/// 3 % of packets of the link, and 256 of 280 bytes. None of these lines belongs to a tenant.
#[test]
fn lines_of_an_ssd_belong_to_no_tenant() {
    let text = on_icx(RUN, "").replacen("\"ddio\", ways = 2", "\"dma\"", 1)
        + &driven("first", 2, "n", FORWARDER, "arrivals = \"fixed\", rate = \"1 Mpps\", packet = \"512 B\"")
        + &tenant("second", 1, "", "{ kind = \"stream\", buffer = \"64 MiB\" }", "")
        + &nic("n", "100 Gbps")
        + "[[peripheral]]\nkind = \"ssd\"\nop = \"p2m_write\"\nqueue_depth = 64\nblock = \"64 KiB\"\n";
    let o = simulate(&text);
    let rest = get(&o, "mem_bw_gbs") - sum(&o, "dram_read_gbs") - sum(&o, "dram_write_gbs");
    let ssd = 16.0 * 4.0 * 128.0 / 130.0 * 0.97 / 8.0 * 256.0 / 280.0;
    assert!(close(rest, ssd, 0.02), "{rest} GB/s of no tenant, {ssd} GB/s of the SSD");
    assert!(close(1.0 - sum(&o, "dram_share"), rest / get(&o, "mem_bw_gbs"), 1e-6));
    // A frame of 512 B is written to memory, read, and sent from the caches: 16 lines and its descriptors.
    assert!(of(&o, "first", "dram_share") * get(&o, "mem_bw_gbs") < 2.0, "{}", of(&o, "first", "dram_share"));
}

/// Below its capacity each tenant serves what is offered to it, whichever stack and NIC it has.
#[test]
fn stacks_and_nics_of_all_kinds_run_side_by_side() {
    let fixed = |rate: &str| format!("arrivals = \"fixed\", rate = \"{rate}\", packet = \"512 B\"");
    let chip = tenant("chip", 1, "", "{ kind = \"l3fwd\", rules = 100 }", &fixed("1 Mpps"));
    let port = driven("port", 1, "n", FORWARDER, &fixed("0.5 Mpps"));
    let o = simulate(&(on_icx(RUN, "") + &chip + &port + &nic("n", "100 Gbps")));
    for (name, rate) in [("chip", 1.0), ("port", 0.5)] {
        assert!(close(of(&o, name, "throughput_mops"), rate, 0.01), "{name}: {}", of(&o, name, "throughput_mops"));
    }

    let kernel = tenant("kernel", 1, "stack = \"kernel\"\nnic = \"n\"", "{ kind = \"touchfwd\" }", &fixed("0.05 Mpps"));
    let text = on_icx(RUN, "").replace("icx", "altra").replace("override.nodes.count = 1\n", "");
    let o = simulate(&(text + &kernel + &port + &nic("n", "100 Gbps")));
    for (name, rate) in [("kernel", 0.05), ("port", 0.5)] {
        assert!(close(of(&o, name, "throughput_mops"), rate, 0.02), "{name}: {}", of(&o, name, "throughput_mops"));
    }
    // A socket costs system calls and an interrupt's work.
    assert!(of(&o, "kernel", "lat_mean_us") > 2.0 * of(&o, "port", "lat_mean_us"));
}

/// A search varies the rate of the tenants that give none of their own; the others keep theirs.
#[test]
fn a_search_leaves_the_rates_that_tenants_give_themselves() {
    let text = on_icx(RUN, "traffic = { arrivals = \"poisson\", packet = \"512 B\" }\n")
        .replace("load = \"fixed\"", "load = \"peak_loss\", search_tolerance = 0.2")
        + &driven("searched", 1, "n", "{ kind = \"touchfwd\" }", "")
        + &driven("given", 1, "n", FORWARDER, "arrivals = \"fixed\", rate = \"0.7 Mpps\"")
        + &nic("n", "100 Gbps");
    let o = simulate(&text);
    assert!(close(of(&o, "given", "throughput_mops"), 0.7, 0.01), "{}", of(&o, "given", "throughput_mops"));
    assert!(of(&o, "searched", "throughput_mops") > 1.0, "{}", of(&o, "searched", "throughput_mops"));
}

/// A tenant's own rate is its own also where it equals the rate at which the search begins.
#[test]
fn a_search_leaves_a_tenant_s_rate_that_equals_where_it_begins() {
    let of_start = |start: &str| {
        let traffic = format!("traffic = {{ arrivals = \"poisson\", rate = \"{start}\", packet = \"512 B\" }}\n");
        let text = on_icx(RUN, &traffic).replace("load = \"fixed\"", "load = \"peak_loss\", search_tolerance = 0.2")
            + &driven("searched", 1, "n", "{ kind = \"touchfwd\" }", "")
            + &driven("given", 1, "n", FORWARDER, "arrivals = \"fixed\", rate = \"0.7 Mpps\"")
            + &nic("n", "100 Gbps");
        let o = simulate(&text);
        ["searched", "given"].map(|name| of(&o, name, "throughput_mops"))
    };
    for start in ["0.7 Mpps", "0.8 Mpps"] {
        let [searched, given] = of_start(start);
        assert!(close(given, 0.7, 0.01) && searched > 1.0, "from {start}: {given} and {searched}");
    }
}

/// Where the host is faster than its link, replies of the capacity probe wait for the wire. They are gone when the search tries its
/// first rate: at most of what the link carries latencies are a few microseconds, and frames of 716 B and 20 B take 235.5 ns on a
/// link of 25 Gb/s, which leaves 4.246 Mpps.
#[test]
fn a_search_under_a_latency_objective_finds_what_the_link_carries() {
    let line = 25e3 / 8.0 / 736.0;
    for load in ["peak_slo", "peak_nodrop"] {
        let text = on_icx("requests = 5000", "traffic = { arrivals = \"poisson\", packet = \"716 B\" }\n")
            .replace("\"fixed\"", &format!("\"{load}\""))
            + &driven("forwarder", 1, "n", "{ kind = \"l3fwd\", rules = 1000 }", "")
            + &nic("n", "25 Gbps");
        let o = simulate(&text);
        let (rate, p99) = (get(&o, "throughput_mrps"), get(&o, "lat_p99_us"));
        assert!(rate > 0.95 * line && rate < 1.01 * line, "{load}: {rate} of {line} Mpps");
        assert!(p99 < 50.0, "{load}: {p99} us at the peak");
    }
}

/// A NIC in coherent memory needs no PCIe port, and leaves that of another tenant alone.
#[test]
fn a_coherent_nic_runs_beside_one_behind_a_port() {
    let run = "requests = 20000, warmup_requests = 5000";
    let both = on_icx(run, "ccnic = { nic_node = 1 }\n").replace("override.nodes.count = 1\n", "");
    let pair = tenant(
        "pair",
        2,
        "stack = \"ccnic\"",
        "{ kind = \"loopback\", bytes = \"64 B\" }",
        "arrivals = \"closed\", outstanding = 16",
    );
    let port = driven("port", 1, "n", FORWARDER, "arrivals = \"fixed\", rate = \"0.5 Mpps\", packet = \"512 B\"");
    let o = simulate(&(both.clone() + &pair + &port + &nic("n", "100 Gbps")));
    let alone = simulate(&(both + &pair));
    assert!(close(of(&o, "port", "throughput_mops"), 0.5, 0.02), "{}", of(&o, "port", "throughput_mops"));
    let (with, without) = (of(&o, "pair", "throughput_mops"), of(&alone, "pair", "throughput_mops"));
    assert!(close(with, without, 0.02), "{with} Mops beside the port, {without} alone");
}

/// The second core of a pipeline sweeps what it has read: a frame of 1514 bytes lies in 24 lines.
#[test]
fn a_pipeline_sweeps_each_line_of_a_dropped_frame_once() {
    let traffic = "arrivals = \"poisson\", rate = \"1 Mpps\", packet = \"1514 B\"";
    let pipeline = tenant("pair", 2, "stack = \"poll_mode\"\npipeline = {}", "{ kind = \"touchdrop\" }", traffic);
    let text = on_icx(RUN, "").replace("ways = 2", "ways = 2, sweep_rx = true") + &pipeline + &nic("n", "100 Gbps");
    let o = simulate(&text);
    assert!(close(get(&o, "clsweeps_per_req"), 24.0, 0.02), "{}", get(&o, "clsweeps_per_req"));
}

/// TAS copies what a segment carries, answers pure acknowledgements with nothing, and sweeps the buffers of both.
#[test]
fn tas_sweeps_the_buffers_of_segments_that_it_has_copied() {
    let run = "requests = 4000, warmup_requests = 4000";
    let text = |more: &str| {
        let echo = driven("echo", 3, "n", ECHO, CLOSED);
        on_icx(run, "").replace("ways = 2", &format!("ways = 2{more}")) + &echo + &nic("n", "100 Gbps")
    };
    let o = simulate(&text(", sweep_rx = true"));
    assert!(get(&o, "clsweeps_per_req") > 0.0, "{}", get(&o, "clsweeps_per_req"));
    for more in [", sweep_tx = \"cpu\"", ", sweep_tx = \"nic\""] {
        assert!(get(&simulate(&text(more)), "throughput_mrps") > 0.0, "{more}");
    }
}

/// A control plane decides on the host with the tenants, once per epoch, while a second host sends to it.
#[test]
fn a_control_plane_runs_beside_a_client() {
    let text = on_icx(RUN, "client = { cores = 2, app = { kind = \"load_generator\" } }\n")
        + "traffic = { arrivals = \"poisson\", rate = \"1 Mpps\", packet = \"512 B\" }\n"
        + &driven("forwarder", 2, "n", FORWARDER, "")
        + &nic("n", "100 Gbps");
    let calls = Arc::new(AtomicU64::new(0));
    let counted = calls.clone();
    let decide = move |seen: EpochView| {
        counted.fetch_add(1, Ordering::Relaxed);
        assert_eq!(seen.cores.len(), 2);
        Ok(Settings { ways: Some(3), prefetch: Vec::new() }.into())
    };
    let control = Control::new(Time::us(10), Arc::new(Mutex::new(decide)));
    let o = run_controlled(&scenario(&text), control, &mut |_| Ok(())).unwrap_or_else(|e| panic!("{e}"));
    let epochs = o.sim.as_ns() / 10_000.0;
    assert!((calls.load(Ordering::Relaxed) as f64 - epochs).abs() <= 1.0, "{calls:?} calls in {epochs} epochs");
}

/// Epochs see what the table of tenants sums up: over all epochs of the window, each packet comes once and is served once.
#[test]
fn a_control_plane_sees_tenants() {
    let text = on_icx(RUN, "")
        + "traffic = { arrivals = \"poisson\", rate = \"2 Mpps\", packet = \"512 B\" }\n"
        + &driven("forwarder", 2, "n", FORWARDER, "")
        + &tenant("memory", 2, "llc_ways = 1", "{ kind = \"xmem\", array = \"4 MiB\" }", "")
        + &nic("n", "100 Gbps");
    let seen = Arc::new(Mutex::new((0, 0, 0)));
    let told = seen.clone();
    let decide = move |epoch: EpochView| {
        let [forwarder, memory] = &epoch.tenants[..] else { panic!("{:?}", epoch.tenants) };
        assert_eq!((forwarder.name.as_str(), memory.name.as_str()), ("forwarder", "memory"));
        assert_eq!((memory.offered, memory.lost, memory.latency_us(0.5)), (0, 0, None));
        assert!(forwarder.served == 0 || forwarder.latency_us(0.99) >= forwarder.latency_us(0.5));
        let of_cores = epoch.cores.iter().map(|c| c.llc_misses).sum::<u64>();
        let mut sums = told.lock().unwrap();
        sums.0 += forwarder.offered;
        sums.1 += forwarder.served;
        sums.2 += of_cores.abs_diff(forwarder.llc_misses + memory.llc_misses);
        Ok(Decision::default())
    };
    let o = controlled(&text, Time::us(20), decide).unwrap_or_else(|e| panic!("{e}"));
    let (offered, served, apart) = *seen.lock().unwrap();
    let in_window = of(&o, "forwarder", "throughput_mops") * o.measured.as_ns() / 1e3;
    assert!(
        served as f64 >= in_window && (offered as f64 - served as f64).abs() < 200.0,
        "{offered} {served} {in_window}"
    );
    assert_eq!(apart, 0, "misses of cores are those of the tenants that run on them");
    let decide =
        |_: EpochView| Ok(Decision { tenant_ways: vec![(TenantId(1), WaysSpec::Count(40))], ..Decision::default() });
    let said = controlled(&text, Time::us(20), decide).unwrap_err();
    assert!(said.contains("the control plane sets llc_ways: 40 is not within 1 to"), "{said}");
}

fn controlled(
    text: &str,
    every: Time,
    decide: impl FnMut(EpochView) -> Result<Decision, String> + Send + 'static,
) -> Result<Outcome, String> {
    run_controlled(&scenario(text), Control::new(every, Arc::new(Mutex::new(decide))), &mut |_| Ok(()))
}

/// A core reads random lines of an array of A. Of the lines that its L2 lacks, w ways of W hold the share w W / (A - L2), since
/// the LLC gets the victims of the L2: the others miss. Nobody else's victims go to these ways.
#[test]
fn misses_follow_the_ways_that_a_control_plane_gives() {
    const ARRAY: f64 = 2304.0;
    const L2: f64 = 80.0;
    const WAY: f64 = 6144.0 / 12.0;
    let text = on_icx(
        RUN,
        "override.caches = { l2 = { size = \"80 KiB\" }, llc = { size = \"6 MiB\", indexing = \"modulo\" } }\n",
    )
    .replace("override.nodes.count = 1", "override.nodes.count = 1\noverride.core.prefetch.enabled = false")
        + "traffic = { arrivals = \"poisson\", rate = \"2 Mpps\", packet = \"512 B\" }\n"
        + &driven("forwarder", 2, "n", FORWARDER, "").replace("cores = 2\n", "cores = 2\nllc_ways = \"8-11\"\n")
        + &tenant("memory", 1, "llc_ways = \"2-2\"", "{ kind = \"xmem\", array = \"2304 KiB\", parallelism = 10 }", "")
        + &nic("n", "100 Gbps");
    for ways in 1..=4 {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let told = seen.clone();
        let decide = move |epoch: EpochView| {
            told.lock().unwrap().push((epoch.tenants[1].llc_hits, epoch.tenants[1].llc_misses));
            let range = WaysSpec::Range(format!("2-{}", 1 + ways));
            Ok(Decision { tenant_ways: vec![(TenantId(1), range)], ..Decision::default() })
        };
        controlled(&text, Time::us(100), decide).unwrap_or_else(|e| panic!("{e}"));
        let seen = seen.lock().unwrap();
        let (hits, misses) = seen[seen.len() / 2..].iter().fold((0, 0), |(h, m), s| (h + s.0, m + s.1));
        let (share, expected) = (misses as f64 / (hits + misses) as f64, 1.0 - f64::from(ways) * WAY / (ARRAY - L2));
        assert!(
            (share - expected).abs() < 0.04,
            "{ways} ways: {share:.3} of the accesses miss, {expected:.3} by their sizes"
        );
    }
}

/// Packets that come one each half microsecond are 40 in each epoch of 20 us, whether or not a measured window begins within it.
#[test]
fn an_epoch_over_a_windows_start_has_all_its_packets() {
    let text = on_icx("requests = 3000, warmup_requests = 1013", "")
        + "traffic = { arrivals = \"fixed\", rate = \"2 Mpps\", packet = \"512 B\" }\n"
        + &driven("forwarder", 1, "n", FORWARDER, "")
        + &nic("n", "100 Gbps");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = seen.clone();
    let decide = move |e: EpochView| {
        told.lock().unwrap().push((e.tenants[0].offered, e.tenants[0].served, e.dma_writes));
        Ok(Decision::default())
    };
    controlled(&text, Time::us(20), decide).unwrap_or_else(|e| panic!("{e}"));
    let seen = seen.lock().unwrap();
    assert!(seen.len() > 90, "{} epochs", seen.len());
    for (i, (offered, served, lines)) in seen.iter().enumerate().skip(1) {
        assert!(
            offered.abs_diff(40) <= 1 && served.abs_diff(40) <= 4,
            "epoch {i}: {offered} came, {served} were served"
        );
        assert!(*lines >= 8 * 36, "epoch {i}: {lines} lines of packets of eight lines");
    }
}

/// A control plane that sets nothing does not change what a search finds, and has its epochs at every rate of the search.
#[test]
fn a_search_runs_with_a_control_plane() {
    let text = on_icx("requests = 3000, warmup_requests = 1000", "")
        .replace("load = \"fixed\"", "load = \"peak_loss\"")
        + "traffic = { arrivals = \"fixed\", rate = \"8 Mpps\", packet = \"512 B\" }\n"
        + &driven("forwarder", 1, "n", FORWARDER, "")
        + &nic("n", "100 Gbps");
    let alone = simulate(&text);
    let offered = Arc::new(AtomicU64::new(0));
    let most = offered.clone();
    let decide = move |e: EpochView| {
        most.fetch_max(e.tenants[0].offered, Ordering::Relaxed);
        Ok(Decision::default())
    };
    let beside = controlled(&text, Time::us(10), decide).unwrap_or_else(|e| panic!("{e}"));
    for metric in ["throughput_mrps", "offered_mrps", "lat_p99_us"] {
        assert_eq!(get(&beside, metric), get(&alone, metric), "{metric}");
    }
    let (found, tried) = (get(&beside, "offered_mrps"), offered.load(Ordering::Relaxed) as f64 / 10.0);
    assert!(tried > found, "epochs saw {tried} Mpps at most, and the search found {found}");
    let fails = |_: EpochView| Err("mine".to_owned());
    assert_eq!(controlled(&text, Time::us(10), fails).unwrap_err(), "mine");
}

/// Frames of 1514 B take 1514 + 20 byte times on the wire. A search that varies the rate of a tenant tries no rate that the link
/// of that tenant's NIC does not carry, and any that it carries, whichever NIC comes first.
#[test]
fn a_search_is_bounded_by_the_link_of_the_searched_tenants_own_nic() {
    let tried = |first: &str, second: &str, shared: bool| {
        let at = if shared { "a" } else { "b" };
        let text = on_icx("requests = 1500, warmup_requests = 500, loss = 0.01", "")
            .replace("\"fixed\"", "\"peak_loss\"")
            + "traffic = { arrivals = \"fixed\", packet = \"1514 B\" }\n"
            + &driven("router", 1, "a", FORWARDER, "arrivals = \"fixed\", rate = \"0.2 Mpps\"")
            + &driven("forwarder", 4, at, FORWARDER, "")
            + &nic("a", first)
            + &nic("b", second);
        let text = if shared { text.replace(&nic("b", second), "") } else { text };
        let rows = simulate(&text).tables["search"]["rows"].clone();
        rows.as_array().expect("rows").iter().filter_map(|r| r[0].as_f64()).fold(0.0, f64::max)
    };
    let line = |gbps: f64| gbps * 1e3 / 8.0 / 1534.0;
    let slow = tried("100 Gbps", "10 Gbps", false);
    assert!(close(slow, line(10.0), 0.001), "{slow}");
    assert!(tried("10 Gbps", "40 Gbps", false) > 2.0 * line(10.0));
    let shared = tried("10 Gbps", "", true);
    assert!(close(shared, line(10.0) - 0.2, 0.001), "{shared}");
}

/// A tenant that cannot keep up, so that its queues grow, beside one of CC-NIC, which loses nothing: what was offered is what was completed, lost or is
/// in queues, and lost packets are not hidden by requests of the other tenant.
#[test]
fn requests_of_all_tenants_are_offered_and_only_lost_ones_are_missing() {
    let text = "name = \"mixture\"\nplatform = \"icx\"\nplacement = { policy = \"ddio\", ways = 2 }\nccnic = { nic_node = 1 }\n\
                run = { load = \"fixed\", requests = 8000, warmup_requests = 3000 }\n\
                traffic = { arrivals = \"closed\", outstanding = 16 }\n"
        .to_string()
        + &tenant("coherent", 1, "stack = \"ccnic\"", "{ kind = \"loopback\", bytes = \"64 B\" }", "")
        + &driven("lossy", 1, "n", FORWARDER, "arrivals = \"fixed\", rate = \"80 Mpps\", packet = \"64 B\"")
        + &nic("n", "100 Gbps");
    let o = simulate(&text);
    let mrps = |name| of(&o, name, "throughput_mops");
    assert!(of(&o, "lossy", "loss_rate") > 0.1 && mrps("coherent") > 1.0, "a case with losses");
    assert!(close(get(&o, "offered_mrps"), 80.0 + mrps("coherent"), 0.02), "{}", get(&o, "offered_mrps"));
    let missing = 80.0 - mrps("lossy");
    assert!(close(get(&o, "loss_rate") * get(&o, "offered_mrps"), missing, 0.03), "{}", get(&o, "loss_rate"));
}

const ECHO: &str = "{ kind = \"tcp_echo\", rpc = \"64 B\", flows = 32, pipelined = 2 }";
const CLOSED: &str = "arrivals = \"closed\", outstanding = 64";

/// Little's law: 64 requests are always under way.
#[test]
fn tcp_clients_have_their_requests_under_way_beside_other_tenants() {
    let run = "requests = 8000, warmup_requests = 8000";
    let echo = driven("echo", 3, "n", ECHO, CLOSED);
    let memory = tenant("memory", 2, "", "{ kind = \"xmem\", array = \"256 KiB\" }", "");
    let under_way = |o: &Outcome| of(o, "echo", "throughput_mops") * of(o, "echo", "lat_mean_us");
    let beside = simulate(&(on_icx(run, "") + &echo + &memory + &nic("n", "100 Gbps")));
    assert_eq!((get(&beside, "drops"), get(&beside, "loss_rate")), (0.0, 0.0), "acknowledgements are no requests");
    assert!(close(under_way(&beside), 64.0, 0.05), "{}", under_way(&beside));
    assert!(of(&beside, "memory", "throughput_mops") > 0.0);

    let client = "client = { cores = 2, app = { kind = \"load_generator\" } }\n";
    let traffic = "arrivals = \"poisson\", rate = \"1 Mpps\", packet = \"512 B\"";
    let text = on_icx(run, client)
        + &format!("traffic = {{ {traffic} }}\n")
        + &driven("forwarder", 2, "m", FORWARDER, "")
        + &echo
        + &nic("m", "100 Gbps")
        + &nic("n", "100 Gbps");
    let o = simulate(&text);
    assert!(close(under_way(&o), 64.0, 0.05), "{}", under_way(&o));
    assert!(close(of(&o, "forwarder", "offered_mops"), 1.0, 0.1), "{}", of(&o, "forwarder", "offered_mops"));
    assert_eq!(of(&o, "forwarder", "drop_rate"), 0.0);
}

#[test]
fn what_cannot_serve_all_tenants_is_refused_with_the_reason() {
    let echo = driven("echo", 3, "n", ECHO, CLOSED);
    let port = driven("port", 1, "m", FORWARDER, "arrivals = \"fixed\", rate = \"0.5 Mpps\", packet = \"512 B\"");
    let text = on_icx(RUN, "") + &echo + &port + &nic("n", "100 Gbps") + &nic("m", "100 Gbps");
    refused(
        &text,
        &[
            ("nic = \"m\"", "nic = \"n\"", "keeps state of each connection by the NIC's queue"),
            ("nic = \"m\"", "nic = \"x\"", "tenant[1].nic = \"x\" is the name of no [[peripheral]]"),
            ("nic = \"m\"", "", "tenant[1].nic is missing: there are 2 Ethernet NICs"),
            ("name = \"m\"", "name = \"n\"", "two [[peripheral]]s have the name \"n\""),
            ("rate = \"0.5 Mpps\"", "rate = \"0 pps\"", "tenant[1].traffic.rate"),
            ("app = { kind = \"testpmd\"", "app = { kind = \"loopback\"", "tenant[1]"),
        ],
    );
}

/// A tenant has one stack with the options of that stack, and one arrival process with the keys of that process.
#[test]
fn an_option_of_another_stack_or_process_is_refused_with_its_key() {
    let text = on_icx(RUN, "") + &tenant("one", 2, "dscp = 0", FORWARDER, "") + &nic("a", "100 Gbps");
    refused(
        &text,
        &[
            ("dscp = 0", "stack = \"queue_pair\"\nrecycling = \"copy\"", "tenant[0].recycling is of a poll-mode driver"),
            ("dscp = 0", "pipeline = {}", "tenant[0].pipeline: its cores need stack = \"poll_mode\""),
            ("dscp = 0", "ccnic = { recycle = false }", "tenant[0].ccnic needs stack = \"ccnic\""),
            ("dscp = 0", "nic = \"a\"", "tenant[0].nic = \"a\": the tenant's packets come through no Ethernet NIC"),
            (
                "dscp = 0",
                "traffic = { arrivals = \"fixed\", rate = \"1 Mpps\", depth = 4 }",
                "tenant[0].traffic.depth = 4 is for tenant[0].traffic.arrivals = \"keep_depth\", which is \"fixed\" here",
            ),
        ],
    );
}

/// A port of one lane of gen 4 carries 1.7 GB/s of frames of 1518 B, and 16 Gb/s are offered. The other tenant has forty-five of forty-six
/// packets of the host, so that the host's queues as a whole grow by less than a hundredth of what is offered.
#[test]
fn a_tenant_whose_queues_grow_is_named_beside_one_with_far_more_packets() {
    let text = |rate: &str| {
        let tenant = |name: &str, traffic: &str| {
            format!(
                "[[tenant]]\nname = \"{name}\"\ncores = 2\nstack = \"poll_mode\"\nnic = \"{name}\"\napp = {{ kind = \"testpmd\" }}\n\
                 traffic = {{ arrivals = \"fixed\", {traffic} }}\n"
            )
        };
        format!(
            "name = \"two\"\nplatform = \"icx\"\nplacement = {{ policy = \"ddio\", ways = 2 }}\nrun = {{ load = \"fixed\", requests = \
             20000, warmup_requests = 1000 }}\n[override.nodes]\ncount = 1\n[[peripheral]]\nkind = \"ethernet\"\nname = \"narrow\"\n\
             lanes = 1\nreceive_buffer = \"64 MiB\"\n[[peripheral]]\nkind = \"ethernet\"\nname = \"wide\"\n{}{}",
            tenant("narrow", &format!("rate = \"{rate}\", packet = \"1518 B\"")),
            tenant("wide", "rate = \"60 Mpps\", packet = \"64 B\"")
        )
    };
    let said = |o: &Outcome| o.warnings.iter().filter(|w| w.starts_with("queues of")).cloned().collect::<Vec<_>>();
    let (calm, over) = (simulate(&text("5 Gbps")), simulate(&text("16 Gbps")));
    assert_eq!(said(&calm), Vec::<String>::new());
    let said = said(&over);
    assert!(said.len() == 1 && said[0].starts_with("queues of the tenant \"narrow\" grew by "), "{said:?}");
    let rows = over.tables["tenants"]["rows"].as_array().expect("rows");
    let columns = over.tables["tenants"]["columns"].as_array().expect("columns");
    let loss =
        columns.iter().position(|c| c["name"] == "loss_rate").and_then(|at| rows[0][at].as_f64()).expect("a loss");
    assert!(said[0].contains(&format!("{:.1} % of those offered to it", 100.0 * loss)), "{said:?}: {loss}");
    assert!(get(&over, "loss_rate") < 0.01, "{}", get(&over, "loss_rate"));
}

/// The kernel is one of two drivers on the first NIC, which takes the kernel's keys; the drivers of the second all poll.
#[test]
fn a_nic_that_the_kernel_shares_with_a_polling_driver_has_the_kernel_s_keys() {
    let kernel = tenant("sockets", 1, "stack = \"kernel\"\nnic = \"front\"", "{ kind = \"touchfwd\" }", "");
    let text = [
        "name = \"shared\"\nplatform = \"altra\"\nplacement = { policy = \"ddio\", ways = 2 }\n\
         traffic = { arrivals = \"poisson\", rate = \"50 kpps\", packet = \"64 B\" }\nrun = { load = \"fixed\" }\n",
        &nic("front", "100 Gbps"),
        &nic("back", "100 Gbps"),
        &driven("forwarder", 1, "front", FORWARDER, ""),
        &kernel,
        &driven("router", 1, "back", FORWARDER, ""),
    ]
    .concat();
    let of = |name: &str| format!("name = \"{name}\"\nlink");
    let with = |name: &str| format!("moderation = \"50 us\"\n{}", of(name));
    scenario(&text.replace(&of("front"), &with("front")));
    let said = refusal(&text, &of("back"), &with("back"));
    assert!(said.contains("peripheral[1].moderation") && said.contains("poll-mode"), "{said}");
}
