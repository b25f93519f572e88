//! Tests of one path to the home agent for cores and devices: its long-run throughput, and the waiting of each side for
//! the other.

use crate::common::{arrivals, get, simulate};
use hostnet::host::Outcome;

/// Measures a path whose requests and write-backs take the given number of nanoseconds, with `cores` streaming cores
/// and an SSD.
fn measured(shared: bool, [request, write_back]: [u32; 2], cores: u32, reads: f64, more: &str) -> Outcome {
    simulate(&format!(
        "name = \"way\"\nplatform = \"cascadelake\"\nplacement = {{ policy = \"dma\" }}\n[override]\nbackground_read_gbs = \
         0\n[override.iio]\nline_interval = \"{request} ns\"\nwrite_back_interval = \"{write_back} ns\"\nshared_with_cores = \
         {shared}\n[[tenant]]\nname = \"t\"\ncores = {cores}\napp = {{ kind = \"stream\", buffer = \"64 MiB\", read_fraction = \
         {reads} }}\n[[peripheral]]\nkind = \"ssd\"\n{more}\n[run]\nload = \"saturate\"\nwarmup_time = \"50 us\"\ntime = \"200 us\"\n"
    ))
}

/// An SSD with next to no load, and four SSDs that write as fast as they can.
const IDLE: &str = "op = \"p2m_write\"\nqueue_depth = 1\nblock = \"4 KiB\"\ncommand_latency = \"1 ms\"";
const BUSY: &str = "op = \"p2m_write\"\ncount = 4\nqueue_depth = 8\nblock = \"1 MiB\"";

fn near(got: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((got / expected - 1.0).abs() <= tolerance, "{what}: {got:.3}, {expected:.3} expected");
}

/// Two cores, and six cores, whose misses would be faster without the path: one request in 20 ns. By Little's law each
/// of a core's 12 misses takes as long as all of them take on the path, less the 14.4 ns until a miss takes a free
/// buffer (`core.quirks.lfb_retry`).
#[test]
fn cores_that_read_have_one_request_at_a_time_on_the_way() {
    for cores in [2, 6] {
        let o = measured(true, [20, 0], cores, 1.0, IDLE);
        near(1e3 / arrivals(&o, "path c2m_read"), 20.0, 0.005, "ns a request");
        near(get(&o, "c2m_read_lat_ns"), f64::from(cores * 12) * 20.0 - 14.4, 0.005, "ns of a read");
        let off = measured(false, [20, 0], cores, 1.0, IDLE);
        assert!(1e3 / arrivals(&off, "path c2m_read") < 10.0, "a way of their own is no limit");
    }
}

/// Each stored line is requested once, and written back once by its L2. A line that is only read is not written back.
#[test]
fn a_line_that_cores_modify_takes_its_request_and_its_write_back() {
    for (reads, takes) in [(1.0, 20.0), (0.5, 20.0 + 15.0)] {
        let o = measured(true, [20, 15], 4, reads, IDLE);
        near(1e3 / arrivals(&o, "path c2m_read"), takes, 0.01, "ns a line");
    }
}

/// Cores and devices take turns, one packet each: each side has half of the path, and together they fill it.
#[test]
fn cores_and_devices_fill_the_way_together() {
    let o = measured(true, [20, 0], 4, 1.0, BUSY);
    let [cores, devices] = ["path c2m_read", "path p2m_write"].map(|p| arrivals(&o, p) * 20e-3);
    near(cores + devices, 1.0, 0.01, "share of time");
    near(cores, 0.5, 0.05, "share of cores");
}

/// A core with one miss at a time, and devices that fill the path: the core's request waits for one of their lines.
#[test]
fn a_request_of_a_core_waits_for_one_packet_of_the_devices() {
    let one = format!("{BUSY}\n[override.core]\nlfb = 1");
    let [on, off] = [true, false].map(|shared| get(&measured(shared, [20, 0], 1, 1.0, &one), "c2m_read_lat_ns"));
    near(on - off, 20.0, 0.05, "ns of waiting");
}
