//! Tests of a RoCE NIC with priority flow control: line rate when the host keeps up; pauses, and no loss, when it does
//! not.

use crate::common::{get, platforms, scenario, simulate};
use hostnet::config::resolve;
use hostnet::host::Host;
use hostnet::kernel::Time;
use std::sync::Arc;

fn text(op: &str, device: &str, more: &str) -> String {
    format!(
        "name = \"r\"\nplatform = \"cascadelake\"\n[placement]\npolicy = \"dma\"\n[[peripheral]]\nkind = \"roce\"\nop = \
         \"{op}\"\n{device}\n[run]\nload = \"saturate\"\nwarmup_time = \"50 us\"\ntime = \"400 us\"\n{more}"
    )
}

fn near(a: f64, b: f64, tolerance: f64, what: &str) {
    assert!((a / b - 1.0).abs() <= tolerance, "{what}: {a} against {b}");
}

/// Line rate of a message of 16 packets of 4096 B, each with 8 of preamble, 14 Ethernet, 20 IPv4, 8 UDP, 12 BTH, 4
/// ICRC, 4 FCS and 12 of gap; the first has 16 of RETH: 97.96 of 100 Gb/s. The paper's two servers reach about 98.
const LINE_RATE: f64 = 12.5 * 65536.0 / (16.0 * (4096.0 + 82.0) + 16.0);

/// Time of a pause frame's path and effect, and of the data in flight by then; and the hysteresis: the defaults of the
/// spec.
const REACTION_NS: f64 = 2017.28 + 2.0 * 100.0;

#[test]
fn n01_an_idle_host_takes_and_gives_line_rate_and_pauses_nobody() {
    let w = simulate(&text("p2m_write", "", ""));
    near(get(&w, "p2m_gbs"), LINE_RATE, 2e-3, "writes");
    assert_eq!(get(&w, "pfc_pause_fraction"), 0.0);
    near(get(&w, "iio_write_occ"), LINE_RATE / 64.0 * get(&w, "iio_write_lat_ns"), 5e-3, "Little's law");
    let r = simulate(&text("p2m_read", "", ""));
    near(get(&r, "p2m_gbs"), LINE_RATE, 2e-3, "reads");
    near(get(&r, "cha_p2m_read_occ"), LINE_RATE / 64.0 * get(&r, "cha_dram_read_p2m_ns"), 2e-2, "Little's law");
}

/// A host that takes r of the link's c pauses its peer for the share 1 - r/c. From one pause frame to the next, the
/// buffer rises by (c - r) D above XOFF, falls to XON and by r D below XON, and rises again: c (c D + h) / (r (c - r)).
#[test]
fn n02_a_slow_host_pauses_the_peer_for_what_it_cannot_take() {
    for entries in [16.0, 32.0] {
        let o = simulate(&text("p2m_write", "", &format!("[override.iio]\nwrite_buffer = {entries}\n")));
        let r = get(&o, "p2m_gbs");
        near(r, entries * 64.0 / get(&o, "iio_write_lat_ns"), 1e-2, "credits over latency");
        near(get(&o, "pfc_pause_fraction"), 1.0 - r / LINE_RATE, 3e-2, "share of time paused");
        // A packet is payload and wire time, and buffers fill by whole packets: half a packet at each turn.
        let hysteresis = 87_920.0 - 83_720.0 + 4096.0;
        let cycle = LINE_RATE * (LINE_RATE * REACTION_NS + hysteresis) / (r * (LINE_RATE - r));
        near(get(&o, "pfc_pauses"), 400e3 / cycle, 0.12, "pause frames");
        near(get(&o, "iio_write_occ"), entries, 2e-2, "the NIC always has something for the IIO");
    }
}

#[test]
fn n03_nothing_is_lost_and_the_buffer_stays_below_its_headroom() {
    let o = simulate(&text("p2m_write", "", "[override.iio]\nwrite_buffer = 4\n"));
    let peak = get(&o, "nic_buffer_peak_kib") * 1024.0;
    assert!(peak > 87_920.0 && peak <= 87_920.0 + 12.5 * REACTION_NS + 2.0 * 4194.0, "{peak}");
}

#[test]
fn n04_a_buffer_that_would_lose_packets_is_refused() {
    for (device, key) in [
        ("receive_buffer = \"96 KiB\"", "peripheral[0].receive_buffer = \"96 KiB\" loses packets"),
        ("propagation = \"2 us\"", "receive_buffer"),
        ("xon = \"100 KiB\"", "peripheral[0].quirks.xon = \"100 KiB\" is above xoff"),
        ("mtu = \"1500 B\"", "peripheral[0].mtu = \"1500 B\" is not one of"),
        ("message = \"6 KiB\"", "peripheral[0].message = \"6 KiB\" is not a multiple of mtu"),
        (
            "lanes = 32",
            "peripheral[0].lanes = 32 is no width of a PCIe link; 16 is nearest (valid: 1, 2, 4, 8, 12, 16)",
        ),
    ] {
        let e = resolve(&text("p2m_write", device, ""), "r.toml", &[platforms()]).expect_err(device).to_string();
        assert!(e.contains(key) && e.ends_with('.') && !e.contains('\n'), "{e}");
    }
}

/// Keys of the way that a device does not use changed nothing; each is used the other way.
#[test]
fn keys_of_the_other_direction_are_refused() {
    let ssds = |op: &str, more: &str| {
        text(op, more, "").replacen("\"roce\"", "\"ssd\"\ncount = 2\nqueue_depth = 8\nblock = \"64 KiB\"", 1)
    };
    let refused = |text: &str| resolve(text, "r.toml", &[platforms()]).err().map(|e| e.to_string());
    for (op, other, key, value) in [
        ("p2m_read", "p2m_write", "receive_buffer", "\"160 KiB\""),
        ("p2m_read", "p2m_write", "propagation", "\"50 ns\""),
        ("p2m_read", "p2m_write", "quirks.xoff", "\"86 KiB\""),
        ("p2m_read", "p2m_write", "quirks.xon", "\"40 KiB\""),
        ("p2m_read", "p2m_write", "quirks.pause_response", "\"1 us\""),
        ("p2m_write", "p2m_read", "tags", "8"),
        ("p2m_write", "p2m_read", "quirks.transmit_buffer", "\"64 KiB\""),
    ] {
        let line = format!("{key} = {value}");
        let said = refused(&text(op, &line, "")).expect(key);
        let told = format!("peripheral[0].{key} = ");
        assert!(said.contains(&told) && said.contains(op) && said.ends_with("; leave it out."), "{said}");
        assert_eq!(refused(&text(other, &line, "")), None, "{key}");
    }
    assert!(refused(&ssds("p2m_write", "tags = 8")).expect("tags").contains("peripheral[0].tags = 8 has no effect"));
    assert_eq!(refused(&ssds("p2m_read", "tags = 8")), None);
    let pages = refused(&ssds("p2m_read", "page = \"2 KiB\"")).expect("page");
    assert!(pages.contains("peripheral[0].page = \"2 KiB\" has no effect: no core accounts for pages"), "{pages}");
    // Nothing that comes can be lost where nothing comes.
    assert_eq!(refused(&text("p2m_read", "link = \"400 Gbps\"", "")), None);
}

#[test]
fn n05_reads_are_bounded_by_entries_and_by_what_the_nic_holds() {
    let o = simulate(&text("p2m_read", "", "[override.iio]\nread_buffer = 16\n"));
    near(get(&o, "p2m_gbs"), 16.0 * 64.0 / get(&o, "iio_read_lat_ns"), 1e-2, "credits over latency");
    // One packet at a time: request, data, serialisation, then the next.
    let o = simulate(&text("p2m_read", "transmit_buffer = \"4 KiB\"", ""));
    assert!(get(&o, "p2m_gbs") < 0.5 * LINE_RATE, "{}", get(&o, "p2m_gbs"));
}

#[test]
fn n06_a_narrow_port_bounds_the_nic() {
    let o = simulate(&text("p2m_write", "lanes = 4", ""));
    near(get(&o, "p2m_gbs"), 8.0 * 4.0 * 128.0 / 130.0 * 0.97 / 8.0 * 256.0 / 280.0, 5e-3, "writes over four lanes");
    assert!(get(&o, "pfc_pause_fraction") > 0.7);
}

#[test]
fn n07_books_balance_under_pauses_beside_cores() {
    let cores =
        "[[tenant]]\nname = \"s\"\ncores = 6\napp = { kind = \"stream\", buffer = \"64 MiB\", read_fraction = 0.5 }\n";
    for op in ["p2m_write", "p2m_read"] {
        let t = text(op, "", "").replace("[[peripheral]]", &format!("{cores}[[peripheral]]"));
        let mut host = Host::new(Arc::new(scenario(&t))).expect("a host");
        host.run_for(Time::us(300));
        host.drain();
        host.check().expect("balanced books");
        assert_eq!(host.machine.mem.in_flight(), 0, "a request is lost");
        let used: Vec<_> = host.iio_buffers().map(|(write, read)| (write.used(), read.used())).collect();
        assert_eq!(used, [(0, 0)], "an IIO entry is lost");
    }
}

#[test]
fn n08_a_trace_adds_up_to_the_means() {
    let o = simulate(
        &text("p2m_write", "", "[override.iio]\nwrite_buffer = 32\n")
            .replace("time = \"400 us\"", "time = \"400 us\"\ntrace = \"1 us\""),
    );
    let rows = o.tables["trace"]["rows"].as_array().expect("rows");
    assert!((399..=400).contains(&rows.len()), "{} rows", rows.len());
    let mean = |c: usize| rows.iter().map(|r| r[c].as_f64().expect("a number")).sum::<f64>() / rows.len() as f64;
    near(mean(1), get(&o, "iio_write_occ"), 5e-3, "IIO write occupancy");
    near(mean(3), get(&o, "p2m_gbs"), 5e-3, "payload");
    near(mean(4), get(&o, "pfc_pause_fraction"), 2e-2, "pauses");
    assert!((rows[0][0].as_f64().expect("time") - 1.0).abs() < 0.01);
}
