//! Compares the closed form of PCIe with the public pcie-bench model (`validation/pcie/pcie_bench.csv`), and with
//! numbers that follow from the standard by hand.

use hostnet::model::pcie::{ethernet_gbps, DriverModel, LinkSpec, ModelGeneration, PacketFlow};

const TOLERANCE: f64 = 0.03;

/// A link, the bytes of a frame, and each column's value.
type Row = (LinkSpec, u32, Vec<(String, f64)>);

fn rows() -> Vec<Row> {
    let text = include_str!("../../../validation/pcie/pcie_bench.csv");
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().expect("a header").split(',').collect();
    lines
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            let (generation, lanes) = match cells[0] {
                "gen3x8" => (ModelGeneration::Gen3, 8),
                "gen3x16" => (ModelGeneration::Gen3, 16),
                "gen4x16" => (ModelGeneration::Gen4, 16),
                other => panic!("link {other}"),
            };
            let values = names[2..].iter().zip(&cells[2..]).map(|(n, v)| ((*n).to_string(), v.parse().unwrap()));
            (LinkSpec { generation, lanes, ..LinkSpec::default() }, cells[1].parse().unwrap(), values.collect())
        })
        .collect()
}

fn ours(link: &LinkSpec, frame: u32, column: &str) -> f64 {
    let bytes = frame - 4;
    let flow = if column.contains("_bi_") {
        PacketFlow::Both
    } else if column.contains("_tx_") {
        PacketFlow::Transmit
    } else {
        PacketFlow::Receive
    };
    // As published: without the request for the receive descriptor.
    let driver = |d: DriverModel| DriverModel { rx_fetch_request: false, ..d }.gbps(link, bytes, flow);
    match column {
        "mwr_gbps" => link.write_gbps(bytes),
        "mrd_gbps" => link.read_gbps(bytes),
        "rdwr_each_dir_gbps" => link.read_write_gbps(bytes),
        "eth40g_gbps" => ethernet_gbps(40.0, frame),
        "eth100g_gbps" => ethernet_gbps(100.0, frame),
        c if c.starts_with("simple") => driver(DriverModel::SIMPLE),
        c if c.starts_with("kernel") => driver(DriverModel::KERNEL),
        c if c.starts_with("dpdk") => driver(DriverModel::DPDK),
        other => panic!("column {other}"),
    }
}

#[test]
fn every_row_agrees_with_pcie_bench() {
    let rows = rows();
    assert_eq!(rows.len(), 48);
    let mut wrong = Vec::new();
    for (link, frame, values) in &rows {
        assert_eq!(values.len(), 14);
        for (column, expected) in values {
            let off = ours(link, *frame, column) / expected - 1.0;
            // Ethernet's limit is published with frames four bytes short; all other terms are the same.
            let tolerance = if column.starts_with("eth") { TOLERANCE } else { 1e-4 };
            if off.abs() > tolerance {
                wrong.push(format!("{link:?} {frame} B {column}: {:+.2} %", 100.0 * off));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_descriptor_request_costs_receivers_upstream_bytes() {
    // 24 bytes more than the packet and its descriptor, 84 + 40: the upstream direction limits the poll-mode driver.
    let link = LinkSpec::default();
    let with = DriverModel::DPDK.gbps(&link, 60, PacketFlow::Receive);
    let without = DriverModel { rx_fetch_request: false, ..DriverModel::DPDK }.gbps(&link, 60, PacketFlow::Receive);
    assert!((without / with - (84.0 + 40.0 + 24.0) / (84.0 + 40.0)).abs() < 1e-12, "{with} {without}");
}

#[test]
fn acknowledgement_limits_are_the_standards_table() {
    // Base Specification 5.0, tables 2-46 to 2-48, in symbol times.
    use ModelGeneration::{Gen1, Gen2, Gen3, Gen5};
    for (generation, lanes, mps, symbols) in [
        (Gen1, 1, 128, 237.0),
        (Gen1, 8, 128, 67.0),
        (Gen1, 12, 128, 58.0),
        (Gen1, 16, 4096, 534.0),
        (Gen2, 2, 256, 268.0),
        (Gen3, 4, 256, 214.0),
        (Gen3, 8, 256, 203.0),
        (Gen3, 8, 512, 182.0),
        (Gen3, 16, 256, 168.0),
        (Gen5, 16, 1024, 246.0),
    ] {
        let link = LinkSpec { generation, lanes, mps, ..LinkSpec::default() };
        assert_eq!(link.acknowledge_every(), symbols, "{link:?}");
    }
}

#[test]
fn raw_rate_is_transfers_times_lanes_times_encoding() {
    let rate = |generation, lanes| LinkSpec { generation, lanes, ..LinkSpec::default() }.raw_gbps();
    assert_eq!(rate(ModelGeneration::Gen1, 1), 2.0);
    assert_eq!(rate(ModelGeneration::Gen2, 4), 16.0);
    assert!((rate(ModelGeneration::Gen3, 16) - 128.0 * 128.0 / 130.0).abs() < 1e-9);
    assert!((rate(ModelGeneration::Gen5, 16) - 512.0 * 128.0 / 130.0).abs() < 1e-9);
}

#[test]
fn headers_digests_and_chunks_are_counted_per_packet() {
    let link = LinkSpec::default();
    // 300 bytes: two writes of 24 + data; one request up, two completions of 20 + data down.
    assert_eq!((link.write(300).up, link.write(300).down), (348.0, 0.0));
    assert_eq!((link.read(300).up, link.read(300).down), (24.0, 340.0));
    let narrow = LinkSpec { wide_addresses: false, ..link };
    assert_eq!(narrow.write(64).up, 64.0 + 20.0);
    let digest = LinkSpec { ecrc: true, ..link };
    assert_eq!((digest.write(64).up, digest.read(64).up, digest.read(64).down), (92.0, 28.0, 88.0));
    let chunks = LinkSpec { rcb_chunks: true, ..link };
    assert_eq!(chunks.read(300).down, 300.0 + 5.0 * 20.0);
}

#[test]
fn a_misconfigured_link_is_one_sentence() {
    let link = LinkSpec { mps: 200, ..LinkSpec::default() };
    assert_eq!(link.check().unwrap_err(), "mps = 200 is not a power of two from 128 to 4096");
    assert!(LinkSpec::default().check().is_ok());
}
