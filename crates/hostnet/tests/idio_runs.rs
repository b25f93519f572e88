//! Tests of IDIO in whole runs: modes, invalidation, classes, recycling, bursts, and a user-defined control plane.

use crate::common::{get, refusal, scenario, simulate, IDIO_RUN};
use hostnet::host::Outcome;
use hostnet::kernel::{CoreId, Time};

fn with(changes: &[(&str, &str)]) -> Outcome {
    let mut text = IDIO_RUN.to_string();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    simulate(&text)
}

fn mode(mode: &str, more: &[(&str, &str)]) -> Outcome {
    let placement = format!("policy = \"idio\", mode = \"{mode}\"");
    let mut changes = vec![("policy = \"idio\"", placement.as_str())];
    changes.extend_from_slice(more);
    with(&changes)
}

/// Hints for each packet in each mode. Below the burst threshold the FSM of an L2 that writes back little still
/// decreases to 0b00; the FSM stays off when only a burst may end state 0b11.
#[test]
fn each_mode_hints_the_lines_that_it_is_to() {
    let sticky = ("ways = 2 }", "ways = 2, idio = { sticky = true } }");
    let quiet = ("ways = 2 }", "ways = 2, idio = { sticky = true, burst_threshold = \"100 Gbps\" } }");
    for (name, change, hints) in [
        ("invalidate", None, None),
        ("prefetch", None, Some(24.0)),
        ("static", None, Some(24.0)),
        ("dynamic", None, Some(24.0)),
        ("dynamic", Some(sticky), Some(24.0)), // 1514 bytes are more than 1250 in 1 us
        ("dynamic", Some(quiet), Some(1.0)),
    ] {
        let o = mode(name, change.as_slice());
        let per_packet = o.values.named("hints").map(|n| n / 4096.0);
        match (per_packet, hints) {
            (Some(n), Some(hints)) => assert!((n - hints).abs() <= 0.01 * hints, "{name}: {n} hints a packet"),
            (n, hints) => assert_eq!(n, hints, "{name}"),
        }
        assert_eq!(get(&o, "drops"), 0.0);
    }
}

/// Two queues whose threads run on one core, and no packet of a burst: the FSM of that core's L2 comes down to 0b00 and
/// has all 24 lines of each packet hinted, whichever thread receives the packet. The L2 has one queue of hints.
#[test]
fn hints_for_second_threads_go_to_the_l2_of_their_core() {
    let o = mode(
        "dynamic",
        &[
            ("ways = 2 }", "ways = 2, idio = { burst_threshold = \"100 Gbps\" } }"),
            ("override = {", "override = { core = { count = 1, threads = 2 },"),
        ],
    );
    assert_eq!((get(&o, "cores"), get(&o, "drops")), (2.0, 0.0));
    let hints = get(&o, "hints") / 4096.0;
    assert!((hints - 24.0).abs() <= 0.24, "{hints} hints a packet");
    let rows = o.tables["cores"]["rows"].as_array().expect("rows");
    let at_thread: Vec<f64> = rows.iter().filter_map(|r| r[6].as_f64()).collect();
    assert_eq!(at_thread, [get(&o, "hints"), 0.0]);
}

/// Rings of 3 MiB through L2s of 1 MiB: without invalidation each line goes down once a packet, with it none does, and
/// nothing is written to DRAM.
#[test]
fn invalidation_ends_write_backs_of_spent_buffers() {
    let keep = mode("prefetch", &[]);
    assert!(get(&keep, "mlc_wb") >= 0.9 * 24.0 * 4096.0, "{} write-backs", get(&keep, "mlc_wb"));
    for depth in ["mlc", "llc"] {
        let idio = format!("ways = 2, idio = {{ invalidate = \"{depth}\" }} }}");
        for name in ["invalidate", "static"] {
            let o = mode(name, &[("ways = 2 }", &idio)]);
            let left = get(&o, "mlc_wb") + get(&o, "llc_wb");
            assert!(left <= 0.02 * 24.0 * 4096.0, "{name} {depth}: {left} lines moved");
        }
    }
}

/// Of 16 lines of class 1, 15 are written to DRAM and the header is hinted.
#[test]
fn payload_of_class_1_goes_to_dram_and_its_header_to_the_l2() {
    let o = mode(
        "dynamic",
        &[
            ("ways = 2 }", "ways = 2, idio = { class1_dscp = [8] } }"),
            ("cores = 2,", "cores = 2, dscp = 8,"),
            ("kind = \"touchdrop\"", "kind = \"l2fwd\", payload = \"drop\""),
            ("1514 B", "1024 B"),
        ],
    );
    assert_eq!(get(&o, "acc_nic_rx_wr"), 15.0);
    assert!((get(&o, "hints") / 4096.0 - 1.0).abs() < 0.01);
    assert_eq!(get(&o, "acc_cpu_rx_rd"), 0.0, "headers come from caches");
}

/// A packet that is sent in place is invalidated after its transmission, so that no line of it is written to DRAM and
/// none stays cached; without invalidation the ring's lines stay.
#[test]
fn forwarded_packets_are_invalidated_after_transmission() {
    let app = [("kind = \"touchdrop\"", "kind = \"l2fwd\""), ("1514 B", "1024 B")];
    let timeline = ("requests = 4096, w", "timeline = \"100 us\", requests = 4096, w");
    let spent = |o: &Outcome| {
        let rows = o.tables["timeline"]["rows"].as_array().expect("rows");
        assert!(rows.len() >= 10);
        rows.iter().filter_map(|r| r[11].as_f64()).fold(0.0, f64::max)
    };
    let (keep, drop) = (mode("prefetch", &[app[0], app[1], timeline]), mode("static", &[app[0], app[1], timeline]));
    assert!(spent(&keep) > 16.0 * 1024.0, "{}", spent(&keep));
    // The bins sum up to the window's mean: lines of 64 B that DRAM moved.
    let rows = keep.tables["timeline"]["rows"].as_array().expect("rows");
    let mean = rows.iter().filter_map(|r| r[14].as_f64()).sum::<f64>() / rows.len() as f64;
    let of_window = get(&keep, "mem_bw_gbs");
    assert!(of_window > 0.1 && (mean / of_window - 1.0).abs() < 0.05, "{mean} against {of_window} GB/s");
    assert!(spent(&drop) < 0.01 * spent(&keep), "{}", spent(&drop));
    assert_eq!((get(&drop, "llc_wb"), get(&drop, "acc_nic_tx_rd")), (0.0, 0.0));
}

/// Each core receives bursts of a whole ring every millisecond; no packet is lost, and the duration of a burst is at
/// least the duration of its arrival, 2047 gaps of 300 ns.
#[test]
fn bursts_fill_the_rings_and_are_timed() {
    let o = with(&[
        (
            "arrivals = \"fixed\", rate = \"0.66 Mpps\"",
            "arrivals = \"burst\", burst = 2048, burst_period = \"1 ms\", burst_gap = \"300 ns\"",
        ),
        ("requests = 4096, w", "timeline = \"10 us\", requests = 8192, w"),
    ]);
    assert_eq!(get(&o, "drops"), 0.0);
    let us = get(&o, "burst_us");
    assert!((614.1..1000.0).contains(&us), "{us}");
    // The start takes at least the time of a frame on the link, and less than the time between two frames.
    let start = get(&o, "burst_start_us");
    assert!((0.01..0.6).contains(&start), "{start}");
    let rows = o.tables["timeline"]["rows"].as_array().expect("rows");
    let dma: f64 = rows.iter().filter_map(|r| r[4].as_f64()).sum::<f64>() * 10.0;
    assert!((dma / (8192.0 * 24.0) - 1.0).abs() < 0.1, "{dma} lines in the timeline");
}

#[test]
fn an_antagonist_has_an_l2_of_its_own_size_and_tells_its_cycles_of_an_instruction() {
    let of = |size: &str| {
        let o = with(&[(
            "app = { kind = \"touchdrop\" } }]",
            &format!(
                "app = {{ kind = \"touchdrop\" }} }}, {{ name = \"llc\", cores = 1, {size} app = {{ kind = \"llc_antagonist\", buffer = \"900 KiB\" }} }}]"
            ),
        )]);
        get(&o, "t1_cpi")
    };
    let (whole, small) = (of(""), of("l2_size = \"256 KiB\","));
    // 900 KiB fit an L2 of 1 MiB; with an L2 of 256 KiB, most accesses go to the LLC.
    assert!(small > 1.5 * whole, "{small} against {whole}");
}

#[test]
fn what_does_not_fit_is_one_sentence() {
    for (from, to, said) in [
        (
            "policy = \"idio\"",
            "policy = \"ddio\", mode = \"static\"",
            "placement.mode needs placement.policy = \"idio\"",
        ),
        ("ways = 2 }", "ways = 2, idio = { class1_dscp = [64] } }", "placement.idio.class1_dscp holds 64"),
        ("ways = 2 }", "ways = 2, idio = { average = 0 } }", "placement.idio.quirks.average = 0 is not within 1"),
        ("ways = 2 }", "ways = 2, sweep_rx = true }", "placement.sweep_rx = true is what IDIO's own"),
        ("cores = 2,", "cores = 2, dscp = 64,", "tenant[0].dscp = 64 is not within 0 to 63"),
        ("ways = 2 }", "ways = 2, idio = { mlc_threshold = \"50 MHz\" } }", "a pace"),
    ] {
        let e = refusal(IDIO_RUN, from, to);
        assert!(e.contains(said), "{e}");
    }
}

/// The two cores of `IDIO_RUN` behind the PCIe NIC, with a poll-mode driver.
fn polled(changes: &[(&str, &str)]) -> Outcome {
    let mut text = r#"
        name = "polled"
        platform = "idio-gem5"
        placement = { policy = "idio", ways = 2, idio = { sticky = true, burst_threshold = "100 Tbps" } }
        tenant = [{ name = "nf", cores = 2, stack = "poll_mode", app = { kind = "touchdrop" } }]
        peripheral = [{ kind = "ethernet", rings = { receive = 1024, transmit = 1024 } }]
        traffic = { arrivals = "fixed", rate = "0.66 Mpps", packet = "1514 B", spread = "round_robin" }
        run = { load = "fixed", requests = 4096, warmup_requests = 4096 }
    "#
    .to_string();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    simulate(&text)
}

/// Behind a PCIe port the header is a separate write. Only the header is hinted for a core whose FSM is off; in the
/// static mode its other 23 lines are hinted as well, and also descriptors.
#[test]
fn tags_reach_the_policy_through_a_pcie_port() {
    let off = polled(&[]);
    assert_eq!(get(&off, "hints"), 4096.0);
    let all = polled(&[("policy = \"idio\",", "policy = \"idio\", mode = \"static\",")]);
    let per_packet = get(&all, "hints") / 4096.0;
    assert!((24.0..26.0).contains(&per_packet), "{per_packet} hints a packet");
    assert_eq!(get(&off, "drops") + get(&all, "drops"), 0.0);
}

/// Behind a PCIe port, packets also count as a NIC's transfers of DRAM. Of 24 lines 23 are payload, which goes to DRAM;
/// a forwarded packet is read from DRAM again.
#[test]
fn packets_behind_a_pcie_port_count_as_the_nic_s() {
    let class_1 = ("burst_threshold", "class1_dscp = [8], burst_threshold");
    let dscp = ("stack = \"poll_mode\"", "dscp = 8, stack = \"poll_mode\"");
    let o = polled(&[class_1, dscp, ("\"touchdrop\"", "\"l2fwd\"")]);
    let per = |class: &str| get(&o, class);
    assert!((per("acc_nic_rx_wr") - 23.0).abs() < 0.1, "{}", per("acc_nic_rx_wr"));
    assert!((per("acc_nic_tx_rd") - 23.0).abs() < 0.5, "{}", per("acc_nic_tx_rd"));
    assert_eq!((per("acc_io_wr"), per("acc_io_rd")), (0.0, 0.0));
}

/// A descriptor of 16 B takes the header's part of a line's time on the I/O bus and a quarter of the remainder; a frame
/// of 1514 B is 23 lines and 42 B. At 250 ns per line, of which the header takes 50, a packet takes 23 x 250 + 50 +
/// 131.25 + 50 + 50 ns.
#[test]
fn short_writes_take_their_share_of_the_io_bus() {
    for (header, per_packet) in [("250 ns", 25.0 * 250.0), ("50 ns", 23.0 * 250.0 + 181.25 + 100.0)] {
        let bus =
            format!("override.iio = {{ line_interval = \"250 ns\", line_header = \"{header}\" }}\n        run = {{");
        let o = polled(&[
            ("0.66 Mpps", "0.3 Mpps"),
            (
                "policy = \"idio\", ways = 2, idio = { sticky = true, burst_threshold = \"100 Tbps\" }",
                "policy = \"ddio\", ways = 2",
            ),
            ("run = {", &bus),
        ]);
        // In addition one descriptor is read for each packet, four descriptors in a line.
        let expected = 1e3 / (per_packet + 250.0 / 4.0);
        let got = get(&o, "throughput_mrps");
        assert!((got / expected - 1.0).abs() < 0.02, "{header}: {got} Mpps, not {expected}");
    }
}

/// Invalidation ends write-backs of buffers in each mode; of copied packets, 24 lines each, the lines beyond the
/// capacity of the L2 are written back.
#[test]
fn buffers_are_dropped_in_each_recycling_mode_and_copies_are_not() {
    for (mode, least, most) in [("run_to_completion", 0.0, 1.0), ("reallocate", 0.0, 1.0), ("copy", 20.0, 26.0)] {
        let recycling = format!("stack = \"poll_mode\", recycling = \"{mode}\"");
        let o = polled(&[("stack = \"poll_mode\"", &recycling)]);
        let per_packet = get(&o, "mlc_wb") / 4096.0;
        assert!((least..most).contains(&per_packet), "{mode}: {per_packet} write-backs a packet");
        assert_eq!(get(&o, "drops"), 0.0);
    }
}

/// The engine calls a user-defined control plane once per epoch, applies its settings from then on, and ends the run on
/// its error.
#[test]
fn a_control_plane_of_ones_own_turns_prefetching_off() {
    use hostnet::host::control::{Control, EpochView};
    use hostnet::host::run_controlled;
    use hostnet::placement::Settings;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, Mutex};
    let s = scenario(&IDIO_RUN.replace("policy = \"idio\"", "policy = \"idio\", mode = \"static\""));
    let calls = Arc::new(AtomicU64::new(0));
    let counted = calls.clone();
    let decide = move |seen: EpochView| {
        counted.fetch_add(1, Ordering::Relaxed);
        assert_eq!((seen.cores.len(), seen.ways), (2, 2));
        Ok(Settings { ways: None, prefetch: [0, 1].map(|c| (CoreId(c), Some(false))).to_vec() }.into())
    };
    let control = Control::new(Time::us(10), Arc::new(Mutex::new(decide)));
    let o = run_controlled(&s, control, &mut |_| Ok(())).expect("a run");
    let epochs = o.sim.as_ns() / 10_000.0;
    assert!((calls.load(Ordering::Relaxed) as f64 - epochs).abs() <= 1.0, "{calls:?} calls in {epochs} epochs");
    assert!((get(&o, "hints") / 4096.0 - 1.0).abs() < 0.01, "headers alone: {}", get(&o, "hints"));
    for (settings, said) in [
        (Settings { ways: Some(12), prefetch: Vec::new() }, "ways = 12, which is not within 1 to 11"),
        (Settings { ways: Some(3), prefetch: Vec::new() }, ""),
    ] {
        let decide =
            move |_: EpochView| if said.is_empty() { Err("enough".into()) } else { Ok(settings.clone().into()) };
        let control = Control::new(Time::us(10), Arc::new(Mutex::new(decide)));
        let e = run_controlled(&s, control, &mut |_| Ok(())).expect_err("an error");
        assert!(e.contains(if said.is_empty() { "enough" } else { said }), "{e}");
    }
}

/// Of 1518 B the last line is written in part, and gem5's I/O cache reads it first. In a buffer that software has
/// dropped, or the NIC has swept, this read is not a use of old data: no agent uses the bytes behind a frame's end. All
/// frames return.
#[test]
fn frames_that_end_within_a_line_may_go_to_buffers_that_were_dropped() {
    for placement in
        ["policy = \"idio\"", "policy = \"ddio\", sweep_tx = \"nic\"", "policy = \"ddio\", sweep_tx = \"cpu\""]
    {
        let o = simulate(&format!(
            "name = \"parts\"\nplacement = {{ {placement} }}\n[platform]\nname = \"gem5\"\n[[tenant]]\nname = \"t\"\ncores = \
             1\nstack = \"poll_mode\"\napp = {{ kind = \"testpmd\", mode = \"macswap\" }}\n[[peripheral]]\nkind = \
             \"ethernet\"\n[traffic]\narrivals = \"fixed\"\nrate = \"1 Mpps\"\npacket = \"1518 B\"\n[run]\nload = \
             \"fixed\"\nrequests = 4000\nwarmup_requests = 1000\n"
        ));
        assert!((get(&o, "throughput_mrps") - 1.0).abs() < 0.01 && get(&o, "drops") == 0.0, "{placement}");
    }
}
