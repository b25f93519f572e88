//! Tests of the host network's domains: unloaded latencies are sums of hops, saturated rates are limits, and the time
//! of every request on the four paths is accounted for to the picosecond.

use crate::common::platforms;
use hostnet::config::{resolve, Scenario};
use hostnet::host::{run, Host, Outcome};
use hostnet::kernel::{NodeId, Time};
use hostnet::memory::paths::{Path, Sample, PATHS};
use std::sync::Arc;

/// Scenario text for a number of cores, the share of reads in all traffic, and the operation of the four SSDs; "" for
/// no SSDs.
fn text(cores: u32, read_fraction: f64, op: &str, more: &str) -> String {
    let tenant = format!(
        "[[tenant]]\nname = \"s\"\ncores = {cores}\napp = {{ kind = \"stream\", buffer = \"64 MiB\", read_fraction = {read_fraction} }}\n"
    );
    let ssd = format!("[[peripheral]]\nkind = \"ssd\"\nop = \"{op}\"\ncount = 4\nqueue_depth = 8\nblock = \"1 MiB\"\n");
    format!(
        "name = \"d\"\nplatform = \"cascadelake\"\n[placement]\npolicy = \"dma\"\n{}{}[run]\nload = \"saturate\"\nwarmup_time = \"20 us\"\ntime = \"60 us\"\n{more}",
        if cores > 0 { tenant } else { String::new() },
        if op.is_empty() { String::new() } else { ssd },
    )
}

fn spec(text: &str) -> Scenario {
    resolve(text, "d.toml", &[platforms()]).unwrap_or_else(|e| panic!("{e}"))
}

fn measured(text: &str) -> Outcome {
    run(&spec(text), &mut |_| Ok(())).expect("a run whose books balance")
}

fn get(o: &Outcome, metric: &str) -> f64 {
    o.values.named(metric).unwrap_or_else(|| panic!("{metric} is absent"))
}

fn near(a: f64, b: f64, tolerance: f64, what: &str) {
    assert!((a / b - 1.0).abs() <= tolerance, "{what}: {a} against {b}");
}

/// Setting for a core that is alone with memory: one line fill buffer, no refresh, no background reads, rows that stay
/// open.
const ALONE: &str =
    "[override]\nbackground_read_gbs = 0\n[override.core]\nlfb = 1\n[override.memory]\nrefresh = false\npage_idle_ns = 0\n";

/// One command of one 4 KiB page at a time.
fn probe(op: &str) -> String {
    text(0, 1.0, op, ALONE)
        .replace("count = 4", "count = 1")
        .replace("queue_depth = 8", "queue_depth = 1")
        .replace("1 MiB", "4 KiB")
        .replace("block", "command_latency = \"2 us\"\nblock")
        .replace("60 us", "2 ms")
}

/// Latency of a core's read: 24 cycles of 3.3 GHz to the home agent and 9 back, 20 cycles of look-up, the controller's
/// 31.8 ns, column access and burst.
const C2M_READ: f64 = 53.0 / 3.3 + 31.8 + 14.322 + 2.728;

#[test]
fn d01_an_unloaded_core_read_takes_the_sum_of_its_hops() {
    let o = measured(&text(1, 1.0, "", ALONE));
    // A row stays open for 128 lines of each of four bank groups, so nearly all reads find it open. The other reads
    // take an activate, and after a conflict a precharge as well (14.32 ns each). A request leaves a fixed time after
    // the previous request's data, and then waits for the controller's next clock edge.
    let outside = 53.0 / 3.3 + 31.8 + 14.4; // until the next miss takes the buffer
    let edge = (outside / 0.682f64).ceil() * 0.682 - outside;
    let (misses, conflicts) = (get(&o, "act_read"), get(&o, "pre_conflict_read"));
    let rows = (misses + conflicts) * 14.322 / get(&o, "lines_read");
    near(get(&o, "c2m_read_lat_ns"), C2M_READ + rows + edge, 2e-3, "C2M read");
    near(get(&o, "c2m_read_unloaded_ns"), C2M_READ, 1e-4, "sum of hops");
}

/// The paper's 70 ns apply to one core with all its line fill buffers in use (section 4.2, Fig. 6a).
#[test]
fn d01b_a_lone_core_reads_in_70_ns() {
    let o = measured(&text(1, 1.0, "", "").replace("60 us", "500 us"));
    near(get(&o, "lfb_lat_ns"), 70.0, 0.02, "C2M read");
}

#[test]
fn d02_an_unloaded_write_back_takes_10_ns() {
    let o = measured(&text(1, 0.5, "", ALONE));
    near(get(&o, "c2m_write_lat_ns"), 10.0, 1e-3, "C2M write");
    // The write-back leaves so early that no access waits for it. A store's buffer is held longer than a load's because
    // writes delay reads at the controller, from which the paper derives its 10 ns (section 4.2, Fig. 6b).
    near(get(&o, "lfb_lat_ns"), get(&o, "c2m_read_lat_ns"), 2e-3, "line fill buffer");
}

/// Fig. 6(a) and (b) of the technical report: 71 ns and 84.1 ns.
#[test]
fn d02b_a_lone_core_that_stores_holds_its_buffers_13_ns_longer_than_one_that_reads() {
    let lone = |fraction| get(&measured(&text(1, fraction, "", "").replace("60 us", "500 us")), "lfb_lat_ns");
    let longer = lone(0.5) - lone(1.0);
    assert!((longer - 13.1).abs() < 3.0, "{longer} ns");
}

#[test]
fn d03_an_unloaded_device_write_takes_300_ns() {
    let o = measured(&probe("p2m_write"));
    // Entries that are held when the window opens count from that time.
    near(get(&o, "iio_write_lat_ns"), 300.0, 1e-3, "P2M write");
    near(get(&o, "p2m_write_unloaded_ns"), 300.0, 1e-4, "sum of hops");
    assert!(get(&o, "iio_write_peak") < 92.0, "no credit runs out");
}

/// 150 ns and 55 ns between IIO and home agent, 6.06 ns of look-up, 31.8 ns of controller, column access and burst of
/// 14.322 + 2.728 ns.
#[test]
fn d04_an_unloaded_device_read_takes_the_sum_of_its_hops() {
    let mut host = Host::new(Arc::new(spec(&probe("p2m_read")))).expect("a host");
    host.run_for(Time::us(2000));
    let all: Vec<Sample> = host.machine.mem.paths.samples.clone();
    let fastest = all.iter().map(|s| s.end - s.milestones.start).min().expect("reads");
    let hops = 150.0 + 55.0 + 20.0 / 3.3 + 31.8 + 14.322 + 2.728;
    // The controller starts at its next clock edge.
    assert!((0.0..0.683).contains(&(fastest.as_ns() - hops + 0.001)), "{fastest} against {hops} ns");
}

fn books_balance(text: &str) {
    let mut host = Host::new(Arc::new(spec(text))).expect("a host");
    host.run_for(Time::us(300));
    host.drain();
    host.check().expect("balanced books");
    assert_eq!(host.machine.mem.in_flight(), 0, "a request is lost");
    let p = &host.machine.mem.paths;
    let sum = |path: Path| p.sums()[path as usize].iter().map(|ps| u128::from(*ps)).sum::<u128>();
    let cores: u128 = host.line_fill_buffers().map(|d| d.held_ps()).sum();
    // The path of a write-back to the home agent, and the path of its acknowledgement, lie within the read for which it
    // makes room.
    let ways: u64 = [5, 10, 9, 9].map(|cycles| cycles * 10_000 / 33).iter().sum();
    let within = u128::from(p.count[Path::C2mWrite as usize] * ways);
    assert_eq!(cores, sum(Path::C2mRead) + sum(Path::C2mWrite) - within, "line fill buffers");
    assert!(host.line_fill_buffers().all(|d| d.used() == 0), "a line fill buffer is lost");
    if host.iio_buffers().next().is_some() {
        let held: [u128; 2] = host.iio_buffers().fold([0, 0], |[w, r], b| [w + b.0.held_ps(), r + b.1.held_ps()]);
        assert_eq!(held, [sum(Path::P2mWrite), sum(Path::P2mRead)], "IIO write and read buffers");
        assert!(host.iio_buffers().all(|(w, r)| w.used() + r.used() == 0), "an IIO entry is lost");
    }
    assert_eq!(host.machine.mem.nodes[NodeId(0)].cha_writes.used(), 0, "a write still waits");
    assert!(p.under_way.iter().all(|d| d.used() == 0), "a path's request never ended");
    assert!(p.samples.len() > 50, "{} samples", p.samples.len());
    for s in &p.samples {
        let m = &s.milestones;
        assert!(m.start <= m.cha && m.cha <= m.admitted && m.admitted <= m.queued && m.queued <= m.data, "{s:?}");
        assert_eq!(s.segments().iter().sum::<u64>(), (s.end - m.start).0, "{s:?}");
        let path = PATHS[s.path as usize].1;
        let way = match path {
            "c2m_read" | "c2m_write" => 5 + 10 + 9,
            _ => 0,
        };
        if path == "c2m_write" {
            assert_eq!(s.segments()[7], 9 * 10_000 / 33, "the acknowledgement's way: {s:?}");
        }
        let hop = if way > 0 { f64::from(way) / 3.3 } else { 150.0 };
        // Lines of devices may wait for others that leave the IIO before them.
        let over = s.segments()[0] as f64 / 1e3 - hop;
        assert!(over.abs() < 0.002 || over > 0.0 && way == 0, "{path}: the way to the home agent: {s:?}");
    }
}

#[test]
fn d05_the_hops_of_every_request_add_up_to_the_time_its_credit_was_held_without_contention() {
    books_balance(&text(1, 1.0, "", ALONE));
    books_balance(&text(1, 0.5, "", ALONE).replace("64 MiB", "256 MiB"));
    books_balance(&probe("p2m_write").replace("2 us", "1 ns"));
    books_balance(&probe("p2m_read").replace("2 us", "1 ns"));
}

#[test]
fn d06_and_with_contention() {
    for (fraction, op) in [(1.0, "p2m_write"), (1.0, "p2m_read"), (0.5, "p2m_write"), (0.5, "p2m_read")] {
        books_balance(&text(6, fraction, op, ""));
    }
    // The buffers of the home agent are always full.
    books_balance(&text(6, 0.5, "p2m_write", "[override.caches.llc]\nwrite_buffer = 8\n"));
}

#[test]
fn d07_a_full_line_fill_buffer_bounds_a_core_by_credits_over_latency() {
    let o = measured(&text(2, 1.0, "", ""));
    // Streams keep every buffer in use, except for the 14.4 ns until the next miss takes a free buffer.
    let latency = get(&o, "lfb_lat_ns");
    near(get(&o, "lfb_occ"), 12.0 * latency / (latency + 14.4), 5e-3, "buffers in use");
    let bound = 2.0 * 12.0 * 64.0 / (latency + 14.4);
    near(get(&o, "c2m_gbs"), bound, 5e-3, "throughput is credits x 64 / latency");
    near(get(&o, "lfb_lat_ns"), get(&o, "lfb_little_ns"), 2e-3, "Little's law");
}

/// 8 GT/s x 4 lanes x 128/130, less 3 % of link packets, on four ports; a write has 24 bytes around 256 of payload, and
/// a completion 20.
#[test]
fn d08_devices_alone_move_what_their_links_carry() {
    let link = 4.0 * 8.0 * 4.0 * 128.0 / 130.0 * 0.97 / 8.0;
    for (op, wire) in [("p2m_write", 280.0), ("p2m_read", 276.0)] {
        let o = measured(&text(0, 1.0, op, ""));
        near(get(&o, "p2m_gbs"), link * 256.0 / wire, 5e-3, op);
    }
    let o = measured(&text(0, 1.0, "p2m_write", ""));
    near(get(&o, "iio_write_occ"), get(&o, "p2m_gbs") / 64.0 * get(&o, "iio_write_lat_ns"), 5e-3, "Little's law");
}

#[test]
fn d16_a_slower_medium_bounds_its_device() {
    for op in ["p2m_write", "p2m_read"] {
        let slow = text(0, 1.0, op, "").replace("count = 4", "count = 2\nmedia_rate = \"8 Gbps\"");
        near(get(&measured(&slow), "p2m_gbs"), 2.0, 1e-2, op);
    }
}

#[test]
fn d09_too_few_entries_bound_devices_by_credits_over_latency() {
    for (op, key, hops) in [("p2m_write", "write_buffer", 297.0), ("p2m_read", "read_buffer", 265.0)] {
        let o = measured(&text(0, 1.0, op, &format!("[override.iio]\n{key} = 16\n")));
        let latency = get(&o, if op == "p2m_write" { "iio_write_lat_ns" } else { "iio_read_lat_ns" });
        assert!(latency > 0.995 * hops && latency < 1.25 * hops, "{op}: {latency} ns");
        near(get(&o, "p2m_gbs"), 16.0 * 64.0 / latency, 1e-2, op);
    }
}

/// Devices are distributed over controllers: two controllers give four devices twice the entries of one, and give a
/// single device no more than one controller has.
#[test]
fn d20_a_second_controller_brings_credits_of_its_own() {
    let two = "[override.iio]\ncount = 2\nwrite_buffer = 8\nread_buffer = 8\n";
    for (op, kind) in [("p2m_write", "write"), ("p2m_read", "read")] {
        for (devices, entries) in [(4, 16.0), (1, 8.0)] {
            let t = text(0, 1.0, op, two).replace("count = 4", &format!("count = {devices}"));
            let o = measured(&t);
            near(get(&o, &format!("iio_{kind}_credits")), 16.0, 1e-9, "credits of both");
            let bound = entries * 64.0 / get(&o, &format!("iio_{kind}_lat_ns"));
            near(get(&o, "p2m_gbs"), bound, 1e-2, &format!("{devices} devices, {op}"));
        }
    }
    books_balance(&text(6, 0.5, "p2m_write", "[override.iio]\ncount = 2\n"));
    books_balance(&text(6, 1.0, "p2m_read", "[override.iio]\ncount = 3\n"));
}

#[test]
fn d10_reads_alone_stay_below_the_channels_peak_and_come_near_it() {
    let o = measured(&text(8, 1.0, "", ""));
    let peak = 2.0 * 64.0 / 2.728;
    assert!(get(&o, "mem_bw_gbs") < peak && get(&o, "mem_bw_gbs") > 0.75 * peak, "{}", get(&o, "mem_bw_gbs"));
}

#[test]
fn d11_a_full_home_agent_makes_cores_and_devices_wait_alike() {
    let o = measured(&text(6, 0.5, "p2m_write", "[override.caches.llc]\nwrite_buffer = 16\n"));
    let (cores, devices) = (get(&o, "cha_adm_c2m_ns"), get(&o, "cha_adm_p2m_ns"));
    assert!(cores > 20.0 && devices > 20.0, "{cores} and {devices} ns");
    assert!(devices < 2.0 * cores && cores < 2.0 * devices, "{cores} and {devices} ns");
    assert!(get(&o, "cha_wait_peak") <= 16.0 + 6.0 * 2.0, "one fill may send two writes");
    near(get(&o, "iio_write_peak"), 92.0, 1e-9, "the device's credits run out");
}

/// Buffers far larger than the DDIO ways: every line that enters displaces one.
#[test]
fn d12_ddio_leaves_the_memory_traffic_of_large_blocks_unchanged() {
    let long = text(0, 1.0, "p2m_write", "").replace("queue_depth = 8", "queue_depth = 16");
    let on = measured(&long.replace("policy = \"dma\"", "policy = \"ddio\"\nways = 2"));
    let off = measured(&long);
    near(get(&off, "mem_p2m_write_gbs"), get(&off, "p2m_gbs"), 1e-2, "off");
    near(get(&on, "mem_p2m_write_gbs"), get(&on, "p2m_gbs"), 3e-2, "on");
    near(get(&on, "p2m_gbs"), get(&off, "p2m_gbs"), 1e-2, "throughput");
}

#[test]
fn d13_a_store_per_line_makes_as_many_writes_as_reads() {
    for (fraction, writes) in [(1.0, 0.0), (0.8, 0.25), (0.5, 1.0)] {
        let o = measured(&text(2, fraction, "", ""));
        let ratio = get(&o, "mem_c2m_write_gbs") / get(&o, "mem_c2m_read_gbs");
        assert!((ratio - writes).abs() < 0.02, "read_fraction = {fraction}: {ratio}");
    }
}

/// A packet of 256 B is four lines, which wait 0, 1, 2 and 3 clocks of 2 ns.
#[test]
fn d21_lines_leave_the_iio_a_clock_apart() {
    let lat = |interval: &str| {
        let more = format!("{ALONE}[override.iio]\nline_interval = \"{interval}\"\n");
        get(&measured(&probe("p2m_write").replace(ALONE, &more)), "iio_write_lat_ns")
    };
    let (none, two) = (lat("0 ps"), lat("2 ns"));
    assert!((two - none - 3.0).abs() < 0.05, "{two} and {none} ns");
}

/// Four SSDs that write, with the kernel's page accounting for `depth` commands of 8 MiB each.
fn storage(depth: u32, cores: u32) -> String {
    text(0, 1.0, "p2m_write", "")
        .replace("queue_depth = 8", &format!("queue_depth = {depth}\ncores = {cores}"))
        .replace("1 MiB", "8 MiB")
        .replace("60 us", "500 us")
}

/// Background reads go straight to the memory controllers.
#[test]
fn d29_the_home_agent_holds_no_reads_of_the_background() {
    let o = measured(&text(0, 1.0, "p2m_write", "[override]\nbackground_read_gbs = 10\n"));
    near(get(&o, "mem_read_gbs"), 10.0, 0.05, "background reads");
    assert_eq!((get(&o, "mem_c2m_read_gbs"), get(&o, "cha_c2m_read_occ")), (0.0, 0.0));
    assert_eq!(o.values.named("cha_dram_read_c2m_ns"), None);
}

/// A credit of a read request that the IIO has taken needs one flight to the device, and the next request another. One credit
/// makes one request of 512 B for each two flights of 2 us and the 24 B of a request on four lanes of 8 GT/s.
#[test]
fn d28_credits_of_read_requests_take_a_flight_to_come_back() {
    let one = "[override.pcie]\nnon_posted = 1\npropagation = \"2 us\"\n";
    let o = measured(&text(0, 1.0, "p2m_read", one).replace("count = 4", "count = 1").replace("60 us", "400 us"));
    let request = 24.0 * 8.0 / (4.0 * 8.0 * 128.0 / 130.0 * 0.97);
    near(get(&o, "p2m_gbs"), 512.0 / (4000.0 + request), 0.02, "one request a round trip"); // of 100, one lies on the border
    near(get(&o, "pcie_non_posted_util"), 1.0, 1e-3, "the credit is in use all the time");
}

#[test]
fn d22_the_kernel_reads_and_writes_three_lines_for_each_page_that_a_device_moves() {
    let extra = |o: &Outcome| {
        let pages = get(o, "p2m_gbs") / 4096.0;
        (get(o, "mem_p2m_read_gbs") / 64.0 / pages, (get(o, "mem_p2m_write_gbs") - get(o, "p2m_gbs")) / 64.0 / pages)
    };
    // 2 GiB of buffers need 64 MiB of page accounting. Between two uses of a line the kernel writes half of these
    // lines, more than the LLC's 24.75 MiB, so that all of them come from memory and return to memory.
    let (reads, writes) = extra(&measured(&storage(64, 2)));
    near(reads, 3.0, 0.02, "lines read");
    near(writes, 2.875, 0.03, "lines written");
    // 32 MiB of buffers need 1 MiB of page accounting, half of it for each of two L2s, where it stays.
    let (reads, writes) = extra(&measured(&storage(1, 2)));
    assert!(reads < 0.02 && writes.abs() < 0.02, "{reads} {writes}");
    // Without cores of the kernel there is no page accounting.
    let o = measured(&storage(64, 0));
    assert_eq!(get(&o, "mem_p2m_read_gbs"), 0.0);
    assert_eq!(o.values.named("storage_busy"), None);
}

/// Rows stay open however long they are unused.
const OPEN: &str = "[override.memory]\npage_idle_ns = 0\n[run]";

/// Structures of neighbouring pages are neighbours and find rows open that they opened themselves, unless the device's
/// lines have closed these rows in the meantime; structures of single pages hardly do.
#[test]
fn d24_structures_of_neighbouring_pages_share_rows() {
    let opened = |contiguous: &str| {
        let o = measured(
            &storage(64, 2)
                .replace("cores = 2", &format!("cores = 2\ncontiguous = \"{contiguous}\""))
                .replace("[run]", OPEN),
        );
        get(&o, "act_read") / get(&o, "lines_read")
    };
    let (single, together) = (opened("4 KiB"), opened("1 MiB"));
    assert!(single > 1.1 * together, "{single} of the kernel's reads open a row, with neighbours {together}");
}

/// Background reads arrive at the requested rate, at random times, and count neither as traffic of the cores nor of
/// devices. Each read opens a row, in addition to the 1.6 % of a stream in pieces of 21 KiB on average (at least two
/// rows for 330 lines), and occasionally makes the stream open its row again.
#[test]
fn d25_an_idle_system_reads_lines_anywhere() {
    let run = |gbs: f64| {
        let more = format!("[override]\nbackground_read_gbs = {gbs}\n");
        measured(&text(1, 1.0, "", &more).replace("60 us", "2 ms").replace("64 MiB", "512 MiB"))
    };
    let (without, with) = (run(0.0), run(0.2285));
    let background = |o: &Outcome| get(o, "mem_read_gbs") - get(o, "mem_c2m_read_gbs") - get(o, "mem_p2m_read_gbs");
    assert!(background(&without).abs() < 1e-9);
    // 7,100 reads in 2 ms, and four standard errors of their number.
    near(background(&with), 0.2285, 4.0 / 7100f64.sqrt(), "GB/s");
    let opened = get(&with, "row_miss_ratio") - get(&without, "row_miss_ratio");
    let share = 0.2285 / get(&with, "mem_read_gbs");
    assert!(
        (share..1.5 * share).contains(&opened),
        "{opened} of the reads open rows more, {share} are not the stream's"
    );
}

#[test]
fn d23_the_kernel_s_cores_are_no_application() {
    let cores = |n: u32| {
        measured(&text(2, 1.0, "p2m_write", "").replace("queue_depth = 8", &format!("queue_depth = 64\ncores = {n}")))
    };
    let (without, with) = (cores(0), cores(4));
    // The line fill buffers of two streaming cores are full except for 14.4 ns per miss, with or without other cores
    // that work occasionally.
    for o in [&without, &with] {
        let latency = get(o, "lfb_lat_ns");
        near(get(o, "lfb_occ"), 12.0 * latency / (latency + 14.4), 0.01, "line fill buffers");
    }
    assert!((0.05..2.0).contains(&get(&with, "storage_busy")));
    let kernel = |o: &Outcome| o.tables["domains"].to_string().matches("\"kernel core ").count();
    assert_eq!((kernel(&without), kernel(&with)), (0, 4), "domains say whose core they are of");
    // Device and cores move the same amount, whichever cores do the page accounting.
    near(get(&with, "p2m_gbs"), get(&without, "p2m_gbs"), 0.01, "P2M");
}

#[test]
fn d14_the_same_seed_gives_the_same_bits() {
    let a = measured(&text(3, 0.5, "p2m_write", ""));
    let b = measured(&text(3, 0.5, "p2m_write", ""));
    assert_eq!(a.values, b.values);
}

#[test]
fn d15_what_cannot_run_says_so_in_one_sentence() {
    let bad = |from: &str, to: &str| {
        let t = text(1, 1.0, "p2m_write", "");
        assert!(t.contains(from));
        let e = resolve(&t.replace(from, to), "d.toml", &[platforms()]).expect_err(to).to_string();
        assert!(e.ends_with('.') && !e.contains('\n'), "{e}");
        e
    };
    assert!(bad("read_fraction = 1 ", "read_fraction = 0.3 ").contains("tenant[0].app: read_fraction = 0.3"));
    assert!(bad("queue_depth = 8", "queue_depth = 0").contains("peripheral[0].queue_depth = 0"));
    assert!(bad("queue_depth = 8", "queue_depth = 8\ncores = 5")
        .contains("peripheral[0].cores = 5 are more than the 4 devices"));
    for piece in ["3 KiB", "2 GiB", "0 B"] {
        let more = format!("read_fraction = 1, contiguous = \"{piece}\" ");
        let e = bad("read_fraction = 1 ", &more);
        assert!(e.contains(&format!("contiguous = \"{piece}\" is not a power of two within 64 B to 1 GiB")), "{e}");
    }
    let e = bad("queue_depth = 8", "queue_depth = 8\ninterleave = \"64 KiB\"");
    assert!(
        e.contains("contiguous = \"buddy\" has pieces of 4 KiB") && e.contains("holds interleave = \"64 KiB\""),
        "{e}"
    );
    let e = bad("read_fraction = 1 ", "read_fraction = 1, contiguous = \"body\" ");
    assert!(e.contains("expected \"buddy\" or a size such as \"32 KiB\", not \"body\""), "{e}");
    for gbs in ["-1", "1000"] {
        let e = bad("[run]", &format!("[override]\nbackground_read_gbs = {gbs}\n[run]"));
        assert!(e.contains("platform.background_read_gbs = ") && e.contains("is not within 0 to"), "{e}");
    }
    let e = bad("[run]", "[override.memory]\npage_idle_ns = -1\n[run]");
    assert!(e.contains("page_idle_ns = -1 is outside 0 to 1000000"), "{e}");
    let e = bad("[run]", "[override.core]\nstlb = { entries = 1000, ways = 12, walk_cycles = 20 }\n[run]");
    assert!(e.contains("stlb.entries = 1000 in ways = 12"), "{e}");
    assert!(bad("p2m_write", "p2m_wrte").contains("did you mean \"p2m_write\""));
    assert!(bad("platform = \"cascadelake\"", "platform = \"sim24\"").contains("platform \"sim24\" lacks"));
}

/// When writes of a channel are shared evenly, each side reaches the rate of the other side or all that it asks for; in
/// order of arrival, cores displace the device.
#[test]
fn d18_writes_in_turns_keep_the_cores_from_crowding_the_device_out() {
    let by = |order: &str| {
        measured(
            &text(6, 0.5, "p2m_write", &format!("[override.caches.llc]\nwrite_order = \"{order}\"\n"))
                .replace("60 us", "300 us"),
        )
    };
    let (arrival, turns) = (by("arrival"), by("round_robin"));
    let writes = |o: &Outcome| (get(o, "mem_c2m_write_gbs"), get(o, "mem_p2m_write_gbs"));
    let (cores, device) = writes(&arrival);
    assert!(cores > 1.5 * device, "{cores} and {device}");
    let (cores, device) = writes(&turns);
    near(cores, device, 0.05, "both sides write as much");
    near(get(&turns, "mem_bw_gbs"), get(&arrival, "mem_bw_gbs"), 0.05, "nothing is lost by taking turns");
}

/// Section 2.2: DDIO changes no regime. Large blocks miss, and each line waits for the line that it evicts.
#[test]
fn d19_ddio_does_not_save_a_device_from_full_write_queues() {
    let spec = |policy: &str| {
        text(6, 0.5, "p2m_write", "")
            .replace("policy = \"dma\"", policy)
            .replace("60 us", "300 us")
            .replace("1 MiB", "8 MiB")
    };
    let (off, on) = (measured(&spec("policy = \"dma\"")), measured(&spec("policy = \"ddio\"\nways = 2")));
    assert!(get(&off, "p2m_gbs") < 13.0);
    near(get(&on, "p2m_gbs"), get(&off, "p2m_gbs"), 0.1, "P2M beside six storing cores");
    near(get(&on, "mem_bw_gbs"), get(&off, "mem_bw_gbs"), 0.05, "memory traffic");
}

/// Two SSDs whose blocks do not fit the LLC: every write misses in the ways that it may use.
#[test]
fn d26_dynamic_ways_grow_beside_a_peripheral_too() {
    let ways = |iat: &str| {
        let t = storage(32, 0).replace("policy = \"dma\"", &format!("policy = \"ddio\"\nways = 2{iat}"));
        let spec = spec(&t);
        let mut host = hostnet::host::Host::new(std::sync::Arc::new(spec)).unwrap();
        host.run_for(hostnet::kernel::Time::us(200));
        host.placement_ways()
    };
    let control = "\niat = { epoch = \"10 us\", min_ways = 2, max_ways = 5, grow_above = 0.1, shrink_below = 0.01 }";
    assert_eq!((ways(""), ways(control)), (2, 5));
}

#[test]
fn d27_what_a_policy_cannot_do_beside_a_peripheral_is_refused_in_one_sentence() {
    for (asked, key) in [
        ("resq = true", "placement.resq"),
        ("sweep_rx = true", "placement.sweep_rx"),
        ("sweep_tx = \"nic\"", "placement.sweep_tx"),
    ] {
        let t = storage(32, 0).replace("policy = \"dma\"", &format!("policy = \"ddio\"\n{asked}"));
        let e = resolve(&t, "x.toml", &[platforms()]).map(drop).unwrap_err().to_string();
        assert!(e.contains(key) && e.contains("peripheral") && !e.contains('\n'), "{e}");
    }
    let t = format!("{}\n[rings]\nrx_buffers = 64\nbuffer_size = \"2 KiB\"\nproactive_drop = 10\n", storage(32, 0));
    let e = resolve(&t, "x.toml", &[platforms()]).map(drop).unwrap_err().to_string();
    assert!(e.contains("rings.proactive_drop"), "{e}");
}

/// 50,000 instructions a packet let a core run ahead by more than the window's borders are apart from its misses; by
/// Little's law, occupancy over rate is the time that misses take.
#[test]
fn line_fill_buffers_of_a_core_that_runs_far_ahead_obey_little_s_law() {
    let o = measured(
        "name = \"ahead\"\nplatform = \"sim24\"\nplacement = { policy = \"ddio\" }\n[[tenant]]\nname = \"drop\"\ncores = 4\napp = { \
         kind = \"touchdrop\", instructions = 50000 }\n[traffic]\narrivals = \"poisson\"\nrate = \"100 krps\"\npacket = \"1 \
         KiB\"\n[run]\nload = \"fixed\"\nrequests = 60\nwarmup_requests = 20\n",
    );
    let (lat, little) = (get(&o, "lfb_lat_ns"), get(&o, "lfb_little_ns"));
    assert!(get(&o, "lfb_occ") > 0.0);
    near(little, lat, 0.05, "residence in a line fill buffer");
}
