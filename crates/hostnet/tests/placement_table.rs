//! Placement by a table in whole runs: the lines of each class that DRAM, the LLC and the L2 of a core get for each packet.

use crate::common::{get, refused, simulate, IDIO_RUN};
use hostnet::host::Outcome;

/// Lines of 1,514 bytes.
const LINES: f64 = 24.0;

/// The run of IDIO's tests with this placement instead.
fn with(placement: &str) -> Outcome {
    let own = "policy = \"idio\", ways = 2";
    assert!(IDIO_RUN.contains(own));
    let o = simulate(&IDIO_RUN.replace(own, placement));
    assert_eq!(get(&o, "drops"), 0.0);
    o
}

fn table(classes: &str) -> Outcome {
    with(&format!("policy = \"table\", ways = 2, table = {{ {classes} }}"))
}

/// Each line of a packet that the table sends to DRAM is written there once, and each one that it sends to an L2 is hinted once.
#[test]
fn headers_and_payload_go_to_their_own_places() {
    for (classes, dram, hints) in [
        ("", 0.0, 0.0),
        ("header = \"llc\", payload = \"dram\"", LINES - 1.0, 0.0),
        ("header = \"mlc\", payload = \"dram\"", LINES - 1.0, 1.0),
        ("header = \"dram\", payload = \"mlc\"", 1.0, LINES - 1.0),
        ("header = \"mlc\", payload = \"mlc\"", 0.0, LINES),
        ("header = \"dram\", payload = \"dram\"", LINES, 0.0),
    ] {
        let o = table(classes);
        let hinted = o.values.named("hints").unwrap_or(0.0) / 4096.0;
        assert!((get(&o, "acc_nic_rx_wr") - dram).abs() < 1e-9, "{classes}: {} lines", get(&o, "acc_nic_rx_wr"));
        assert!((hinted - hints).abs() <= 0.01 * hints, "{classes}: {hinted} hints");
    }
}

/// Payload of class 1 goes elsewhere than other payload, and its header does not.
#[test]
fn payload_of_class_1_has_a_place_of_its_own() {
    let classes =
        "table = { header = \"mlc\", payload = \"llc\", payload_class1 = \"dram\" }, idio = { class1_dscp = [8] }";
    let of = |dscp: &str| {
        let text = IDIO_RUN.replace("policy = \"idio\", ways = 2", &format!("policy = \"table\", ways = 2, {classes}"));
        simulate(&text.replace("name = \"nf\",", &format!("name = \"nf\", dscp = {dscp},")))
    };
    assert_eq!(get(&of("0"), "acc_nic_rx_wr"), 0.0);
    assert!((get(&of("8"), "acc_nic_rx_wr") - (LINES - 1.0)).abs() < 1e-9);
}

/// A table that names one place for all classes is the policy that knows only this place.
#[test]
fn one_place_for_all_is_dma_or_ddio() {
    let lines = |o: &Outcome| ["acc_nic_rx_wr", "acc_cpu_rx_rd", "acc_rx_evct"].map(|m| get(o, m));
    let all = |place: &str| table(&format!("header = \"{place}\", payload = \"{place}\", descriptor = \"{place}\""));
    assert_eq!(lines(&all("llc")), lines(&with("policy = \"ddio\", ways = 2")));
    assert_eq!(lines(&all("dram")), lines(&with("policy = \"dma\"")));
}

/// A NIC with rings in memory that writes each descriptor back by itself: one write a packet beside the packet's lines.
#[test]
fn descriptors_have_a_place_of_their_own() {
    let run = |classes: &str| {
        let o = simulate(&format!(
            "name = \"rings\"\nplacement = {{ policy = \"table\", ways = 2, table = {{ {classes} }} }}\n[platform]\nname = \
             \"icx\"\n[platform.nodes]\ncount = 1\n[[tenant]]\nname = \"t\"\ncores = 1\nstack = \"poll_mode\"\napp = {{ kind = \
             \"testpmd\", mode = \"rxonly\" }}\n[[peripheral]]\nkind = \"ethernet\"\n[peripheral.rings]\nwrite_back = {{ after = 1 \
             }}\n[traffic]\narrivals = \"fixed\"\nrate = \"1 Mpps\"\npacket = \"1540 B\"\n[run]\nload = \"fixed\"\nrequests = \
             4000\nwarmup_requests = 4000\n"
        ));
        assert_eq!(get(&o, "drops"), 0.0);
        assert!((get(&o, "descriptors_per_write_back") - 1.0).abs() < 0.01);
        get(&o, "acc_nic_rx_wr")
    };
    // 1,536 bytes without the frame's check sequence.
    let lines = 24.0;
    for (classes, expected) in [
        ("descriptor = \"llc\"", 0.0),
        ("descriptor = \"dram\"", 1.0),
        ("header = \"dram\"", 1.0),
        ("payload = \"dram\", descriptor = \"dram\"", lines),
        ("header = \"dram\", payload = \"dram\", descriptor = \"dram\"", lines + 1.0),
    ] {
        let found = run(classes);
        assert!((found - expected).abs() <= 0.01 * expected, "{classes}: {found} lines, {expected} by the table");
    }
}

/// Headers go to two of the ways for devices, and the other 23 lines of a frame to six. The core reads headers alone, so that the
/// NIC finds all other lines of the frames that it sends where it wrote them.
#[test]
fn ways_of_all_classes_are_ways_for_devices() {
    let o = simulate(
        "name = \"rings\"\nplacement = { policy = \"table\", ways = \"0-7\", table = { header = \"llc 0-1\", payload = \"llc \
         2-7\", descriptor = \"llc 0-1\" } }\n[platform]\nname = \"icx\"\n[platform.nodes]\ncount = 1\n[[tenant]]\nname = \
         \"t\"\ncores = 1\nstack = \"poll_mode\"\napp = { kind = \"testpmd\", mode = \"io\" }\n[[peripheral]]\nkind = \
         \"ethernet\"\n[traffic]\narrivals = \"fixed\"\nrate = \"1 Mpps\"\npacket = \"1540 B\"\n[run]\nload = \
         \"fixed\"\nrequests = 4000\nwarmup_requests = 4000\n",
    );
    let rows = o.tables["places"]["rows"].as_array().expect("rows");
    let of = |place: &str| -> u64 {
        let here = rows.iter().filter(|r| r[1] == "read" && r[2] == place);
        here.map(|r| r[3].as_u64().expect("lines")).sum()
    };
    assert_eq!(of("LLC, other ways"), 0);
    assert!(of("LLC, DDIO ways").abs_diff(23 * 4000) < 100, "{} lines", of("LLC, DDIO ways"));
}

#[test]
fn a_table_belongs_to_its_policy() {
    refused(
        &IDIO_RUN.replace("policy = \"idio\", ways = 2", "policy = \"table\", ways = 2, table = { header = \"mlc\" }"),
        &[
            ("policy = \"table\"", "policy = \"ddio\"", "placement.table needs placement.policy = \"table\""),
            (", table = { header = \"mlc\" }", "", "placement.policy = \"table\" needs the table placement.table"),
            ("header = \"mlc\"", "header = \"L2\"", "placement.table.header: \"L2\" is no destination"),
            ("header = \"mlc\"", "headers = \"mlc\"", "header"),
            (
                "policy = \"table\"",
                "policy = \"table\", mode = \"static\"",
                "placement.mode needs placement.policy = \"idio\"",
            ),
        ],
    );
}
