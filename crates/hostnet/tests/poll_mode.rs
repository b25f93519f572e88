//! Tests of a host that serves packets through the Ethernet NIC behind its port, with descriptor rings in memory and a
//! poll-mode driver.

use crate::common::{get, refused, scenario, simulate};
use hostnet::host::{Host, Outcome};
use hostnet::kernel::{PortId, QueueId, RandomStream, Time};
use hostnet::traffic::frame::rss_hash;
use hostnet::traffic::generator::addresses;
use std::sync::Arc;

/// A NIC on eight lanes of the third generation, and a driver; each test adds the other settings.
const BASE: &str = r#"
name = "pmd"
placement = { policy = "ddio", ways = 4 }
[platform]
name = "cascadelake"
[platform.iio]
write_buffer = 1024
read_buffer = 1024
[platform.pcie]
posted_lines = 512
dllp_share = 0.0
[platform.poll_mode]
poll_instructions = 40
burst_instructions = 60
receive_instructions = 40
transmit_instructions = 40
free_instructions = 10
"#;

struct Setting<'a> {
    app: &'a str,
    cores: u32,
    nic: &'a str,
    rings: String,
    rate: f64,
    frame: u32,
    requests: u32,
}

impl Default for Setting<'_> {
    fn default() -> Self {
        Setting {
            app: r#"kind = "testpmd", mode = "macswap""#,
            cores: 1,
            nic: "lanes = 8",
            rings: String::new(),
            rate: 2.0,
            frame: 256,
            requests: 20_000,
        }
    }
}

impl Setting<'_> {
    fn text(&self) -> String {
        let Setting { app, cores, nic, rings, rate, frame, requests } = self;
        format!(
            "{BASE}[[tenant]]\nname = \"t\"\ncores = {cores}\nstack = \"poll_mode\"\napp = {{ {app} }}\n[[peripheral]]\nkind = \
             \"ethernet\"\n{nic}\n[peripheral.rings]\n{rings}\n[traffic]\narrivals = \"poisson\"\nrate = \"{rate} Mrps\"\npacket = \
             \"{frame} B\"\n[run]\nload = \"fixed\"\nrequests = {requests}\nwarmup_requests = {requests}\n"
        )
    }
    fn run(&self) -> Outcome {
        simulate(&self.text())
    }
}

/// Bits per second that eight lanes at 8 GT/s carry after the line code.
const GEN3_X8: f64 = 8.0 * 8e9 * 128.0 / 130.0;

/// Bytes of transaction-layer packets for each packet, from the time for which a link was busy.
fn link_bytes(o: &Outcome, metric: &str) -> f64 {
    get(o, metric) * GEN3_X8 / 8.0 / (get(o, "throughput_mrps") * 1e6)
}

/// Bytes up the link per packet: writes of at most 256 bytes with 24 more on the link, a write-back of 24 bytes and 16
/// per descriptor, and requests of 24 bytes for at most 512 bytes of descriptors (Neugebauer et al., SIGCOMM'18,
/// section 3).
fn receive_bytes(frame: u32, per_write_back: f64) -> f64 {
    let payload = f64::from(frame - 4);
    payload + 24.0 * (payload / 256.0).ceil() + 16.0 + 24.0 / per_write_back + 24.0 / 32.0
}

#[test]
fn the_receive_path_puts_the_closed_forms_bytes_on_the_link() {
    for frame in [64, 65, 128, 256, 257, 260, 261, 512, 1024, 1280, 1500, 1518] {
        let o = Setting { app: r#"kind = "testpmd", mode = "rxonly""#, frame, ..Setting::default() }.run();
        assert_eq!(get(&o, "drops"), 0.0);
        let (seen, expected) =
            (link_bytes(&o, "pcie_up_util"), receive_bytes(frame, get(&o, "descriptors_per_write_back")));
        assert!(
            (seen / expected - 1.0).abs() < 0.02,
            "{frame} B: {seen:.1} bytes up, {expected:.1} by the closed form"
        );
    }
}

/// A core that is offered 30 Mpps carries far fewer; without losses, because the NIC has room for all others, queues grow by them.
#[test]
fn a_window_whose_queues_grew_says_so() {
    let at = |rate| Setting { nic: "lanes = 8\nreceive_buffer = \"256 MiB\"", rate, ..Setting::default() }.run();
    let (calm, over) = (at(2.0), at(30.0));
    assert_eq!((get(&calm, "drops"), get(&over, "drops")), (0.0, 0.0));
    let grew = |o: &Outcome| o.warnings.iter().any(|w| w.starts_with("queues grew by "));
    assert!(!grew(&calm) && grew(&over), "{:?} {:?}", calm.warnings, over.warnings);
    let unserved = get(&over, "offered_mrps") - get(&over, "throughput_mrps");
    assert!((get(&over, "loss_rate") * get(&over, "offered_mrps") / unserved - 1.0).abs() < 1e-6);
}

/// 24 rings of 1024 buffers take 24,576 packets to pass once, and the caches fill until then.
#[test]
fn a_window_whose_caches_were_still_filling_says_so() {
    let of = |warm_up: &str| {
        simulate(&format!(
            "name = \"w\"\nplatform = \"sim24\"\nplacement = {{ policy = \"ddio\", ways = 12 }}\nrings = {{ rx_buffers = 1024, \
             buffer_size = \"1 KiB\" }}\n[[tenant]]\nname = \"t\"\ncores = 24\napp = {{ kind = \"touchdrop\" }}\n[traffic]\n\
             arrivals = \"poisson\"\nrate = \"20 Mrps\"\npacket = \"1024 B\"\n[run]\nload = \"fixed\"\nrequests = 6000\n{warm_up}"
        ))
    };
    let filling = |o: &Outcome| o.warnings.iter().any(|w| w.starts_with("the caches were still filling"));
    let (short, automatic) = (of("warmup_requests = 4000"), of(""));
    assert!(filling(&short) && !filling(&automatic), "{:?} {:?}", short.warnings, automatic.warnings);
}

/// Mbufs with room for it take a jumbo frame whole.
#[test]
fn a_jumbo_frame_comes_in_one_large_mbuf() {
    for (frame, room) in [(4096, "4 KiB"), (9018, "9216 B"), (16_000, "16 KiB")] {
        let (app, rings) = (r#"kind = "testpmd", mode = "rxonly""#, format!("buffer_size = \"{room}\""));
        let nic = "lanes = 8\nreceive_buffer = \"4 MiB\"";
        let o = Setting { app, frame, rings, nic, rate: 0.3, requests: 5000, ..Setting::default() }.run();
        assert_eq!(get(&o, "drops"), 0.0);
        let (seen, expected) =
            (link_bytes(&o, "pcie_up_util"), receive_bytes(frame, get(&o, "descriptors_per_write_back")));
        assert!(
            (seen / expected - 1.0).abs() < 0.02,
            "{frame} B: {seen:.1} bytes up, {expected:.1} by the closed form"
        );
    }
}

/// `dpdk_rx_gbps` of pcie-bench for eight lanes of the third generation, which omits the request for descriptors and
/// takes 8.14 % of the link for data-link packets.
#[test]
fn a_nic_that_its_link_limits_receives_as_fast_as_pcie_bench_says() {
    for (frame, published) in [(512, 49.338), (1024, 51.0748), (1518, 51.6122)] {
        let rate = (70e3 / 8.0 / f64::from(frame)).round();
        let s = Setting {
            app: r#"kind = "testpmd", mode = "rxonly""#,
            cores: 2,
            frame,
            rate,
            requests: 30_000,
            ..Setting::default()
        };
        let o = simulate(&s.text().replace("dllp_share = 0.0", "dllp_share = 0.0814"));
        let got = get(&o, "throughput_mrps") * 8.0 * f64::from(frame - 4) / 1e3;
        assert!((got / published - 1.0).abs() < 0.03, "{frame} B: {got:.2} Gb/s, published {published}");
        assert!((get(&o, "drop_dma_share") - 1.0).abs() < 1e-9, "the link is what is too slow");
    }
}

/// Two DDIO ways, 6 MiB. Frames of 24 lines pass through the receive ring's 512 buffers, 0.75 MiB, and through the
/// buffers that the driver keeps: up to the buffers of 8,192 descriptors, 12 MiB.
#[test]
fn packets_pass_through_the_buffers_that_the_driver_has_not_freed() {
    let nowhere = |free: &str| {
        let rings = "receive = 512\ntransmit = 8192".into();
        let s = Setting { frame: 1518, rate: 1.0, rings, requests: 30_000, ..Setting::default() };
        let text = s.text().replace("ways = 4", "ways = 2");
        let o =
            simulate(&text.replace("[platform.poll_mode]", &format!("[platform.poll_mode]\nfree_sent = \"{free}\"")));
        get(&o, "p2m_write_uncached_ratio")
    };
    let (burst, threshold, reuse) = (nowhere("burst"), nowhere("threshold"), nowhere("reuse"));
    assert!(burst < 0.02, "{burst}");
    // Lines are reused after 12.75 MiB, of which 6 MiB fit, and cores take some lines out in addition.
    assert!(threshold > 1.0 - 6.0 / 12.75 - 2.0 / 24.0, "{threshold}");
    // A buffer that is freed with the descriptor that sent it is kept as long as one that is freed for room.
    assert!((reuse - threshold).abs() < 0.02, "{reuse}");
}

#[test]
fn what_is_written_back_at_once_follows_the_policy() {
    // With a packet every 10 us, each descriptor is written back alone.
    let one = Setting { rate: 0.1, ..Setting::default() }.run();
    assert!(
        (1.0..1.05).contains(&get(&one, "descriptors_per_write_back")),
        "{}",
        get(&one, "descriptors_per_write_back")
    );
    // Only when the whole cache is used, and never because the buffer has become empty.
    for cache in [32, 64] {
        let rings = format!("receive_cache = {cache}\nwrite_back = \"all_used\"\nwrite_back_idle = false");
        let all = Setting { rings, ..Setting::default() }.run();
        assert!((get(&all, "descriptors_per_write_back") / f64::from(cache) - 1.0).abs() < 0.05);
    }
    let rings = "write_back = { after = 8 }\nwrite_back_idle = false".into();
    let eight = Setting { rings, ..Setting::default() }.run();
    let eight = get(&eight, "descriptors_per_write_back");
    assert!((7.9..8.8).contains(&eight), "{eight}"); // the end of the ring cuts one short
}

/// Losses by cause, as in the drop table.
fn ledger(o: &Outcome, cause: &str) -> f64 {
    let rows = o.tables["drops"]["rows"].as_array().expect("rows");
    let of = rows.iter().filter(|r| r[1].as_str().is_some_and(|s| s.contains(cause)));
    of.map(|r| r[2].as_f64().expect("a count")).sum()
}

/// A slow core causes losses first at the receive ring, a slow DMA at the receive buffer, and a slow wire at the
/// transmit ring. Each lost packet has a cause of its own, as in the release (`i8254xGBe.cc`): while the NIC fetches the
/// descriptor that a slow core has just given, a packet is lost to the DMA. Such a fetch comes with each packet served, and
/// takes a read of memory, behind one other read.
#[test]
fn packets_are_lost_in_the_receive_buffer_and_the_cause_is_what_filled_first() {
    let slow_core = Setting {
        app: r#"kind = "touchfwd", instructions_per_byte = 20.0"#,
        rings: "receive = 256".into(),
        rate: 4.0,
        ..Setting::default()
    };
    let slow_dma = Setting { nic: "lanes = 1", frame: 1024, rate: 3.0, ..Setting::default() };
    // With one read request at a time, frames are fetched more slowly than they arrive.
    let slow_fetch = Setting { nic: "lanes = 8\ntags = 1", rate: 4.0, ..Setting::default() };
    for (setting, cause, share) in [
        (slow_core, "CoreDrop", "drop_core_share"),
        (slow_dma, "DmaDrop", "drop_dma_share"),
        (slow_fetch, "TxDrop", "drop_tx_share"),
    ] {
        let o = setting.run();
        assert!(get(&o, "drop_rate") > 0.1, "{cause}: {}", get(&o, "drop_rate"));
        let fetching = get(&o, "throughput_mrps") * 2.0 * get(&o, "p2m_read_unloaded_ns") / 1e3;
        assert!(get(&o, share) > 0.99 - fetching, "{cause}: {} with {fetching}", get(&o, share));
        assert!(get(&o, share) > 0.5, "{cause}: {}", get(&o, share));
        // The counts of the drop machine equal those of the ledger.
        for (name, share) in
            [("DmaDrop", "drop_dma_share"), ("CoreDrop", "drop_core_share"), ("TxDrop", "drop_tx_share")]
        {
            assert!((ledger(&o, name) - get(&o, share) * get(&o, "drops")).abs() < 0.5, "{name}");
        }
    }
}

fn dice<T: Copy>(d: &mut RandomStream, of: &[T]) -> T {
    of[d.below(of.len() as u64) as usize]
}

/// Any small configuration, at rates far below and far beyond its capacity, checked every microsecond.
#[test]
fn at_any_time_what_was_offered_was_served_or_lost_or_is_inside() {
    let mut d = RandomStream::new(3, "configurations", 0);
    let mut lost = 0;
    for i in 0..24 {
        let cache = dice(&mut d, &[8, 32, 64]);
        let write_back = dice(&mut d, &["\"all_used\"", "{ after = 1 }", "{ after = 4 }"]);
        let rings = format!(
            "receive = {}\ntransmit = {}\nreceive_cache = {cache}\ntransmit_cache = {}\nreplenish = {}\ntransmit_write_back = \
             {}\nwrite_back = {write_back}\nfetch_delay = \"{} ns\"\nwrite_back_delay = \"{} ns\"\nreceive_packets = \
             {}\ndescriptor = \"{} B\"\ntransmit_packets = {}\none_engine = {}\nwrite_back_completion = \"{} ns\"\nreceive_turnaround = \"{} ns\"\ntransmit_turnaround = \"{} \
             ns\"\nstrip_fcs = {}",
            dice(&mut d, &[64, 128]),
            dice(&mut d, &[64, 128]),
            dice(&mut d, &[4, 64]),
            dice(&mut d, &[1, cache / 2]),
            dice(&mut d, &[1, 4]),
            dice(&mut d, &[0, 10]),
            dice(&mut d, &[0, 10]),
            dice(&mut d, &[1, 2, 256]),
            dice(&mut d, &[8, 16, 32, 64]),
            dice(&mut d, &[1, 3, 256]),
            dice(&mut d, &[true, false]),
            dice(&mut d, &[0, 10]),
            dice(&mut d, &[0, 5]),
            dice(&mut d, &[0, 2]),
            dice(&mut d, &[true, false]),
        );
        let app = dice(
            &mut d,
            &[
                r#"kind = "testpmd""#,
                r#"kind = "testpmd", mode = "rxonly""#,
                r#"kind = "touchfwd""#,
                r#"kind = "touchdrop""#,
                r#"kind = "rxptx", interval = "300 ns""#,
                r#"kind = "l3fwd", rules = 64"#,
            ],
        );
        let nic = dice(
            &mut d,
            &[
                "lanes = 8\nreceive_buffer = \"16 KiB\"",
                "lanes = 1\nreceive_buffer = \"16 KiB\"",
                "link = \"2 Gbps\"\nreceive_buffer = \"16 KiB\"",
            ],
        );
        let s = Setting {
            app,
            nic,
            rings,
            cores: dice(&mut d, &[1, 2, 3]),
            rate: dice(&mut d, &[0.5, 5.0, 60.0]),
            frame: dice(&mut d, &[64, 65, 300, 1518]),
            ..Setting::default()
        };
        let rate = s.rate * 1e6;
        // The offered rate sometimes exceeds the link's rate.
        let mut text = Setting { rate: 0.1, ..s }.text();
        if i % 2 == 1 {
            text = text
                .replace("[platform.iio]", "[platform.iio]\nfetch_partial = true\nregister_write = \"88 ns\"")
                .replace("[platform.pcie]", "[platform.pcie]\nlane_rate = \"8 Gbps\"\ncut_through = true\ntrain = 4");
        }
        let spec = Arc::new(scenario(&text));
        let mut host = Host::new(spec).expect("a host");
        host.offer(
            hostnet::kernel::TenantId(0),
            Some(hostnet::traffic::arrival::Arrivals::poisson(rate, RandomStream::new(i, "wire", 0))),
            0,
        );
        for _ in 0..60 {
            host.run_for(Time::us(1));
            host.check().unwrap_or_else(|e| panic!("{e}\n{text}"));
        }
        // Without anything new all that is inside is served, but for what the policy never writes back.
        host.offer(hostnet::kernel::TenantId(0), None, 0);
        host.run_for(Time::us(30_000)); // what is on the wire comes at its rate
        host.check().unwrap_or_else(|e| panic!("{e}\n{text}"));
        let nic = host.machine.iio.as_ref().and_then(|i| i.nic(PortId(0))).expect("its NIC");
        assert!(nic.counts.delivered > 10, "{text}");
        assert_eq!((nic.packets_inside(), nic.unfinished()), (0, 0), "a packet is stuck:\n{text}");
        lost += nic.drops.total();
        host.drain();
        host.check().unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert!(host.machine.iio.as_ref().is_some_and(hostnet::device::iio::Iio::is_idle), "{text}");
    }
    assert!(lost > 1000, "the test loses packets");
}

/// A core that polls an empty ring is busy with packets for the time that they take, and only for that time.
#[test]
fn an_idle_core_polls_and_a_loaded_one_does_not() {
    let app = r#"kind = "touchfwd", instructions_per_byte = 10.0"#;
    let busy = |rate: f64| get(&Setting { app, rate, frame: 64, ..Setting::default() }.run(), "cpu_utilisation");
    let (low, twice, over) = (busy(0.1), busy(0.2), busy(10.0));
    assert!(low > 0.0 && low < 0.1, "{low}");
    assert!((twice / low / 2.0 - 1.0).abs() < 0.1, "{low} {twice}");
    assert!(over > 0.97, "{over}");
}

/// 60,000 instructions of each burst on either side. The time of a packet on an overloaded core follows from the
/// packets of both bursts, and packets are gathered for a transmit burst longer than for a receive burst. Four packets
/// share a line of descriptors, which takes 1 us from the LLC. A core that stops at each poll has at most four packets
/// in that time. A core that predicts its polls reads the next lines in the meantime, as far as its reorder buffer
/// allows: at least half as many again.
#[test]
fn a_core_that_foresees_its_polls_does_not_wait_for_each_line_of_descriptors() {
    let per_us = |pipeline: &str| {
        let slow = format!(
            "[platform.core]\npipeline = \"{pipeline}\"\n[platform.caches]\nuncore_clock = \"1 GHz\"\n\
             [platform.caches.llc]\nlatency_cycles = 1000\n[platform.poll_mode]\nburst = 4\n"
        );
        let quick = "poll_instructions = 1\nburst_instructions = 1\nreceive_instructions = 1\n";
        let s = Setting { app: r#"kind = "testpmd", mode = "rxonly""#, rate: 12.0, frame: 64, ..Setting::default() };
        let text = s.text().replace("[platform.poll_mode]\n", &slow);
        let costs = "poll_instructions = 40\nburst_instructions = 60\nreceive_instructions = 40\n";
        assert!(text.contains(costs));
        get(&simulate(&text.replace(costs, quick)), "throughput_mrps")
    };
    let (foreseen, stopped) = (per_us("out_of_order"), per_us("in_order"));
    assert!(stopped <= 4.0 && foreseen > 6.0, "{foreseen} and {stopped} packets in a microsecond");
}

/// A buffer that has just been swept or invalidated is the next to be taken, and its core writes an answer there before
/// the sweep has reached the home agent. In program order the sweep comes first, so that no part of the answer may be
/// lost.
#[test]
fn what_is_written_to_a_swept_buffer_survives_the_sweep() {
    let store = r#"kind = "mica", item_size = "512 B", get_fraction = 0.5, pairs = 20000, buckets = 8000, log_size = "16 MiB", zipf = 0.9"#;
    for platform in ["cascadelake", "gem5"] {
        for placement in [r#""ddio", ways = 4, sweep_rx = true"#, r#""idio", ways = 4, mode = "invalidate""#] {
            for (app, frame) in [(store, 64), (r#"kind = "l3fwd", rules = 64"#, 1000)] {
                let s = Setting { app, frame, rate: 1.0, requests: 1500, ..Setting::default() };
                let text = s.text().replace("name = \"cascadelake\"", &format!("name = \"{platform}\""));
                let text = text.replace(r#""ddio", ways = 4"#, placement);
                let text = if app == store { text.replace("packet = \"64 B\"\n", "") } else { text };
                assert_eq!(get(&simulate(&text), "drops"), 0.0, "{platform}, {placement}, {app}");
            }
        }
    }
}

#[test]
fn transmit_bursts_have_lengths_of_their_own() {
    let mpps = |receive: f64, transmit: f64| {
        let text = Setting { rate: 10.0, frame: 64, requests: 4000, ..Setting::default() }.text();
        let text = text.replace(
            "burst_instructions = 60\n",
            &format!("burst = {receive}\ntransmit_burst = {transmit}\nburst_instructions = 60000\n"),
        );
        get(&simulate(&text), "throughput_mrps")
    };
    let alike = mpps(32.0, 32.0);
    for (receive, transmit) in [(32.0, 8.0), (32.0, 1.0), (8.0, 32.0)] {
        // 90 instructions, and memory.
        let fixed = |r: f64, t: f64| 60_000.0 / r + 60_000.0 / t + 600.0;
        let (ratio, want) = (alike / mpps(receive, transmit), fixed(receive, transmit) / fixed(32.0, 32.0));
        assert!((ratio / want - 1.0).abs() < 0.15, "{receive} {transmit}: {ratio}, not {want}");
    }
}

/// The core waits for the interval once per burst. At one packet per burst the interval is part of each packet's
/// latency.
#[test]
fn rxptx_waits_once_a_burst() {
    let mean = |app| Setting { app, rate: 0.02, requests: 2_000, ..Setting::default() }.run();
    let (none, some) = (mean(r#"kind = "rxptx", interval = "0 ns""#), mean(r#"kind = "rxptx", interval = "1 us""#));
    let longer = get(&some, "lat_mean_us") - get(&none, "lat_mean_us");
    assert!((0.95..1.06).contains(&longer), "{longer}");
    let most = |rate| {
        get(
            &Setting { app: r#"kind = "rxptx", interval = "10 us""#, rate, ..Setting::default() }.run(),
            "throughput_mrps",
        )
    };
    // 32 packets in 10 us, and the time that they take.
    assert!((2.6..3.2).contains(&most(10.0)), "{}", most(10.0));
}

/// Number of frames that each of three queues has sent, of random flows.
fn sent_by_queue(flows: u32, rules: &str) -> [u64; 3] {
    let text = Setting { cores: 3, ..Setting::default() }.text();
    let text = text.replace("lanes = 8\n", &format!("lanes = 8\nflow_director = [{rules}]\n"));
    let text = text.replace("[traffic]\n", &format!("[traffic]\nflows = {flows}\n"));
    let mut host = Host::new(Arc::new(scenario(&text))).expect("a host");
    host.offer(
        hostnet::kernel::TenantId(0),
        Some(hostnet::traffic::arrival::Arrivals::poisson(4e6, RandomStream::new(7, "wire", 0))),
        0,
    );
    host.run_for(Time::us(3000));
    host.check().unwrap_or_else(|e| panic!("{e}"));
    let nic = host.machine.iio.as_ref().and_then(|i| i.nic(PortId(0))).expect("its NIC");
    std::array::from_fn(|queue| nic.sent_descriptors(QueueId::new(queue)))
}

/// RSS: a table with the queues in turn, and the Toeplitz hash of the flow's addresses.
fn rss_queue(flow: u32) -> usize {
    let (source, destination) = addresses(flow);
    rss_hash(source, destination) as usize % 3
}

#[test]
fn rss_spreads_flows_by_the_hash_of_their_addresses() {
    let alone = |queue| std::array::from_fn(|q| q == queue);
    assert_eq!(sent_by_queue(1, "").map(|n| n > 0), alone(rss_queue(0)));
    let mut share = [0.0; 3];
    (0..50).for_each(|flow| share[rss_queue(flow)] += 1.0 / 50.0);
    let sent = sent_by_queue(50, "");
    let all = sent.iter().sum::<u64>() as f64;
    for (n, share) in sent.into_iter().zip(share) {
        // Five standard deviations of the shares of about 12000 packets, and the frames that are not written back yet.
        assert!((n as f64 / all - share).abs() < 0.03, "{sent:?}");
    }
}

#[test]
fn the_flow_director_comes_before_rss_and_only_for_its_flows() {
    let other = (rss_queue(0) + 1) % 3;
    let alone = |queue| std::array::from_fn(|q| q == queue);
    assert_eq!(sent_by_queue(1, &format!("{{ flow = 0, queue = {other} }}")).map(|n| n > 0), alone(other));
    // All flows except those of one queue keep their queue.
    let rules: Vec<_> =
        (0..50).filter(|f| rss_queue(*f) == 0).map(|f| format!("{{ flow = {f}, queue = 2 }}")).collect();
    let (before, after) = (sent_by_queue(50, ""), sent_by_queue(50, &rules.join(", ")));
    assert!(before[0] > 0 && after[0] == 0, "{before:?} {after:?}");
    assert!(after[1].abs_diff(before[1]) <= 64 && after[2] > before[2], "{before:?} {after:?}");
}

#[test]
fn a_stack_that_cannot_be_is_one_sentence() {
    let good = Setting::default().text();
    let nic = "[[peripheral]]\nkind = \"ethernet\"\nlanes = 8\n[peripheral.rings]\n";
    refused(
        &good,
        &[
            ("stack = \"poll_mode\"", "stack = \"kernel\"", "tenant[0].stack = \"kernel\" needs platform.udp"),
            (nic, "", "needs one [[peripheral]] of kind \"ethernet\"; here are 0"),
            (
                nic,
                "[[peripheral]]\nkind = \"ethernet\"\n[[peripheral]]\nkind = \"ethernet\"\n",
                "tenant[0].nic is missing: there are 2 Ethernet NICs",
            ),
            ("stack = \"poll_mode\"\n", "", "no tenant's packets come through peripheral[0] of kind \"ethernet\""),
            (
                "lanes = 8\n[peripheral.rings]\n",
                "[peripheral.rings]\nreceive = 1001\n",
                "receive = 1001 is not a multiple of 8",
            ),
            (
                "[peripheral.rings]\n",
                "[peripheral.rings]\nwrite_back = \"some\"\n",
                "write_back = \"some\" is neither \"all_used\" nor a table",
            ),
            ("free_instructions = 10", "free_instructions = 10\nmempool = 100", "; 0 makes as many"),
            (
                "packet = \"256 B\"",
                "packet = \"4 KiB\"",
                "peripheral[0].rings.buffer_size = \"2 KiB\" does not hold a packet of \"4 KiB\"",
            ),
            ("[peripheral.rings]\n", "[peripheral.rings]\nbuffer_size = \"32 KiB\"\n", "within 1 KiB to 16 KiB"),
            ("[peripheral.rings]\n", "[peripheral.rings]\nbuffer_size = \"2100 B\"\n", "not a multiple of 128 B"),
            ("lanes = 8\n", "flow_director = [{ flow = 0, queue = 0 }]\n", "flow_director needs traffic.flows"),
            (
                "lanes = 8\n[peripheral.rings]\n\n[traffic]\n",
                "flow_director = [{ flow = 9, queue = 0 }]\n[traffic]\nflows = 9\n",
                "peripheral[0].flow_director[0].flow = 9 is not within 0 to 8",
            ),
            (
                "lanes = 8\n[peripheral.rings]\n\n[traffic]\n",
                "flow_director = [{ flow = 8, queue = 1 }]\n[traffic]\nflows = 9\n",
                "peripheral[0].flow_director[0].queue = 1 is not within 0 to 0, one for each core of \"t\"",
            ),
            ("ways = 4 }", "ways = 4, resq = true }", "placement.resq = true is for queue pairs"),
        ],
    );
}

/// Two caches of 250, two bursts of 32, and the descriptors of both rings.
#[test]
fn a_mempool_of_no_size_holds_what_rings_caches_and_bursts_can_hold() {
    for (receive, transmit) in [(1024, 1024), (256, 512)] {
        let rings = format!("[peripheral.rings]\nreceive = {receive}\ntransmit = {transmit}\n");
        let buffers = |said: &str| {
            let text = Setting::default().text().replace("[peripheral.rings]\n", &rings);
            let costs = format!("free_instructions = 10\nmempool_cache = 250\nburst = 32\n{said}");
            let s = scenario(&text.replace("free_instructions = 10", &costs));
            let nic = s.peripherals[0].ethernet().and_then(|n| n.rings.clone()).expect("rings");
            s.platform.poll_mode.expect("a driver").buffers(&nic)
        };
        let least = receive + transmit + 2 * 250 + 2 * 32;
        assert_eq!([buffers(""), buffers("mempool = 0"), buffers("mempool = 9000")], [least, least, 9000]);
    }
}

/// Keys that a `[[peripheral]]` lacks are taken from its platform's `[ethernet]`, and keys that this table lacks have a
/// default.
#[test]
fn a_nic_takes_what_it_does_not_say_from_its_platform() {
    let platform = "[platform.ethernet]\nlink = \"40 Gbps\"\nlanes = 4\n[platform.ethernet.rings]\nreceive = 256\n[platform.poll_mode]\n";
    let text = Setting::default().text().replace("[platform.poll_mode]\n", platform);
    let s = scenario(&text.replace("[peripheral.rings]\n", "[peripheral.rings]\ntransmit = 128\n"));
    let nic = s.peripherals[0].ethernet().expect("it is one");
    let rings = nic.rings.as_ref().expect("it has them");
    assert_eq!((nic.link.0, nic.lanes), (40_000_000_000, 8));
    assert_eq!((rings.receive, rings.transmit, rings.quirks.receive_cache), (256, 128, 64));
}

/// Frames from DRAM are read out of order; a core that is offered more than it serves continues to serve.
#[test]
fn an_overloaded_core_goes_on_when_frames_are_fetched_out_of_order() {
    let s = Setting { frame: 128, ..Setting::default() };
    let text = s.text().replace("placement = { policy = \"ddio\", ways = 4 }", "placement = { policy = \"dma\" }");
    let mut host = Host::new(Arc::new(scenario(&text))).expect("a host");
    host.offer(
        hostnet::kernel::TenantId(0),
        Some(hostnet::traffic::arrival::Arrivals::poisson(30e6, RandomStream::new(5, "wire", 0))),
        0,
    );
    host.run_for(Time::us(2000));
    let served =
        |host: &Host| host.machine.iio.as_ref().and_then(|i| i.nic(PortId(0))).map_or(0, |nic| nic.counts.sent);
    let before = served(&host);
    host.run_for(Time::us(1000));
    assert!(served(&host) > before + 1000, "{before} frames were sent, and then {}", served(&host) - before);
}
