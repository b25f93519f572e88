//! Keys that a scenario gives and that another key overrules: each is refused with a sentence that names both.

use crate::common::{platforms, refused, scenario};
use hostnet::config::resolve;

const DROPPER: &str = r#"
    name = "dropper"
    platform = "icx"
    placement = { policy = "ddio", ways = 2 }
    rings = { rx_buffers = 64, buffer_size = "2 KiB" }
    tenant = [{ name = "nf", cores = 2, app = { kind = "touchdrop" } }]
    traffic = { arrivals = "fixed", rate = "1 Mpps", packet = "256 B" }
    run = { load = "fixed", requests = 2000 }
"#;

/// One file serves a fixed load and a search: the rate of the one may stay, as the keys of a search may stay beside a fixed load.
#[test]
fn a_rate_may_stay_beside_a_search_that_measures_where_to_begin() {
    for load in ["peak_slo", "peak_nodrop", "peak_loss"] {
        assert!(scenario(&DROPPER.replace("load = \"fixed\"", &format!("load = \"{load}\""))).traffic.rate().is_some());
    }
}

/// The packets of a capture have flows, which tell the core.
#[test]
fn a_spread_of_packets_that_a_capture_gives_is_refused() {
    let capture = platforms().join("../captures/memcached-udp.pcap");
    let pcap = format!("arrivals = \"pcap\", pcap = {{ file = '{}' }}", capture.display());
    let text = DROPPER.replace("arrivals = \"fixed\"", &pcap).replace(", packet = \"256 B\"", "");
    scenario(&text);
    let said = "is for traffic.arrivals = \"fixed\" and others whose packets are made, which is \"pcap\" here";
    for spread in ["round_robin", "shortest_queue"] {
        let given = format!("rate = \"1 Mpps\", spread = \"{spread}\"");
        refused(&text, &[("rate = \"1 Mpps\"", &given, &format!("traffic.spread = \"{spread}\" {said}"))]);
    }
}

/// A node of `icx` has 16 cores by `nodes.cores`, whatever `core.count` is; 16 asks for what there is.
#[test]
fn a_number_of_cores_that_the_platform_s_nodes_overrule_is_refused() {
    let said = "core.count = 8 has no effect: nodes.cores = 16 of platform \"icx\" is the number of cores of a node; give nodes.cores instead";
    let run = "run = {";
    refused(
        DROPPER,
        &[
            (run, "override.core.count = 8\n    run = {", &format!("override.{said}")),
            ("platform = \"icx\"", "platform = { name = \"icx\", core = { count = 8 } }", &format!("platform.{said}")),
            (run, "override.nodes.cores = 200\n    run = {", "platform.nodes.cores = 200 makes 400 cores"),
        ],
    );
    for taken in ["core.count = 16", "nodes.cores = 8", "nodes.cores = 8\n    override.core.count = 8"] {
        let s = scenario(&DROPPER.replace(run, &format!("override.{taken}\n    {run}")));
        assert_eq!(s.cores_per_node(), if taken.ends_with("16") { 16 } else { 8 }, "{taken}");
    }
}

#[test]
fn a_platform_s_file_with_a_number_of_cores_that_its_base_overrules_is_refused() {
    let dir = std::env::temp_dir().join(format!("hostnet-cores-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory");
    let text = DROPPER.replace("\"icx\"", "\"own\"");
    let with = |keys: &str| {
        std::fs::write(dir.join("own.toml"), format!("name = \"own\"\nbase = \"icx\"\n{keys}\n")).expect("a file");
        let file = dir.join("scenario.toml");
        resolve(&text, file.to_str().expect("a path in UTF-8"), &[platforms()]).map(|s| s.cores_per_node())
    };
    let e = with("core.count = 8").expect_err("16 cores instead of 8").to_string();
    assert!(e.contains("own.toml: core.count = 8 has no effect: nodes.cores = 16 of platform \"own\""), "{e}");
    assert_eq!(with("core.count = 8\nnodes.cores = 8"), Ok(8));
    std::fs::remove_dir_all(&dir).expect("a directory");
}
