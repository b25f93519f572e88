//! Tests of a host that serves datagrams through the kernel's sockets, on the Ethernet NIC with descriptor rings in
//! memory.

use crate::common::{get, refusal, scenario, simulate};
use hostnet::device::nic::Nic;
use hostnet::host::{Host, Outcome};
use hostnet::kernel::{PortId, RandomStream, Time};
use hostnet::traffic::arrival::Arrivals;
use std::sync::Arc;

/// Costs in instructions, so large that the time of caches and links is small in comparison.
const BASE: &str = r#"
name = "udp"
placement = { policy = "ddio", ways = 4 }
[platform]
name = "cascadelake"
[platform.poll_mode]
poll_instructions = 40
burst_instructions = 60
receive_instructions = 100
transmit_instructions = 100
free_instructions = 40
[platform.tcp]
frame = 6000
read = 9000
piece = 300
line = 6
interrupt = 20000
wake = 24000
[platform.udp]
receive = 5000
send = 12000
free = 400
receive_buffer = "212992 B"
"#;
/// Instructions of one request in the kernel: two lines are copied in each direction, and a socket buffer is freed in
/// each direction.
const POLLED: f64 = 6000.0 + 5000.0 + 400.0;
const CALLED: f64 = 9000.0 + 12000.0 + 400.0 + 2.0 * (300.0 + 2.0 * 6.0);
/// Instructions of one request in the application, `touchfwd`: 20, and those for each byte.
const SERVED: f64 = 20.0 + 10.0 * 128.0;

struct Setting {
    stack: &'static str,
    cores: u32,
    /// Behind `kind = "ethernet"`.
    nic: &'static str,
    traffic: String,
    load: &'static str,
    more: &'static str,
}

impl Default for Setting {
    fn default() -> Setting {
        Setting { stack: "kernel", cores: 1, nic: "lanes = 8", traffic: fixed(0.01), load: "fixed", more: "" }
    }
}

fn fixed(mrps: f64) -> String {
    format!("arrivals = \"fixed\"\nrate = \"{mrps} Mrps\"")
}

impl Setting {
    fn text(&self) -> String {
        let Setting { stack, cores, nic, traffic, load, more } = self;
        format!(
            "{BASE}{more}\n[[tenant]]\nname = \"t\"\ncores = {cores}\nstack = \"{stack}\"\napp = {{ kind = \"touchfwd\", \
             instructions_per_byte = 10.0 }}\n[[peripheral]]\nkind = \"ethernet\"\n{nic}\n[traffic]\n{traffic}\npacket = \"128 \
             B\"\n[run]\nload = \"{load}\"\nrequests = 4000\nwarmup_requests = 1000\n"
        )
    }
    fn run(&self) -> Outcome {
        simulate(&self.text())
    }
}

/// Instructions per microsecond on cascadelake at `ghz`.
fn per_us(ghz: f64) -> f64 {
    ghz * 1e3 * scenario(&Setting::default().text()).platform.core.compute_ipc
}

/// The core sleeps between requests, so that each request causes an interrupt after the moderation time and wakes the
/// application.
#[test]
fn an_unloaded_request_takes_the_moderation_and_the_sum_of_its_costs() {
    for (moderation, us) in [("16 us", 16.0), ("40 us", 40.0)] {
        let nic = format!("moderation = \"{moderation}\"");
        let o = Setting { nic: nic.leak(), ..Setting::default() }.run();
        // A poll frees buffers that were sent before; a later poll frees the buffer of this reply.
        let instructions = 20000.0 + POLLED + 24000.0 + CALLED + SERVED;
        let expected = us + instructions / per_us(3.3);
        let seen = get(&o, "lat_mean_us");
        // In addition: DMA and doorbells of about 2 us, and a few misses.
        assert!(seen > expected && seen < expected + 4.0, "{seen} us, the sum is {expected}");
        assert_eq!(get(&o, "drops"), 0.0);
    }
}

#[test]
fn many_completions_interrupt_at_once() {
    let one = Setting { nic: "moderation = \"40 us\"\nmoderation_frames = 1", ..Setting::default() }.run();
    let late = Setting { nic: "moderation = \"40 us\"", ..Setting::default() }.run();
    let sooner = get(&late, "lat_mean_us") - get(&one, "lat_mean_us");
    assert!((39.0..41.0).contains(&sooner), "{sooner}");
}

/// Interrupts per second, from the time that they take: e1000's low-latency class has at most 20,000, which are
/// 49.92 us apart. One more interval passes after a poll. Without throttling there are more interrupts.
#[test]
fn a_throttled_queue_interrupts_an_interval_apart() {
    let interrupts = |throttle: &str| {
        let nic = format!("moderation = \"1 us\"\nmoderation_frames = 1000\n[peripheral.rings]\n{throttle}");
        let text = Setting { nic: nic.leak(), traffic: fixed(0.1), ..Setting::default() }.text();
        let busy = |text: &str| get(&simulate(text), "cpu_utilisation");
        let share = busy(&text) - busy(&text.replace("interrupt = 20000", "interrupt = 0"));
        1e6 * share / (20000.0 / per_us(3.3))
    };
    let (free, throttled) = (interrupts(""), interrupts("throttle = \"dynamic_conservative\""));
    assert!(free > 25_000.0, "{free} without throttling");
    assert!((10_000.0..20_050.0).contains(&throttled), "{throttled}");
}

/// 16 requests are always in flight: the core never sleeps, and serves one after the other. Interrupts take no time in
/// this test.
fn saturated(clock: &'static str) -> Outcome {
    let more = format!("[platform.core]\nclock = \"{clock}\"\n");
    let s =
        Setting { traffic: "arrivals = \"closed\"\noutstanding = 16".into(), more: more.leak(), ..Setting::default() };
    simulate(&s.text().replace("interrupt = 20000", "interrupt = 0"))
}

/// The time of a request is the sum of its instructions at the core's clock, and a remainder that the clock does not
/// change: lines that devices have written or read, and doorbells.
#[test]
fn a_saturated_server_takes_the_sum_of_its_costs_for_each_request_at_any_clock() {
    let took = ["1 GHz", "2 GHz", "3.3 GHz"].map(|clock| {
        let o = saturated(clock);
        assert!(get(&o, "cpu_utilisation") > 0.999);
        1.0 / get(&o, "throughput_mrps")
    });
    let costs = [1.0, 2.0, 3.3].map(|ghz| (POLLED + CALLED + SERVED) / per_us(ghz));
    for i in 0..3 {
        let rest = took[i] - costs[i];
        assert!((0.0..0.3).contains(&rest), "{} us, the sum is {}", took[i], costs[i]);
    }
    for (i, j) in [(0, 1), (1, 2)] {
        let ratio = (took[i] - took[j]) / (costs[i] - costs[j]);
        assert!((0.97..1.03).contains(&ratio), "{ratio} of what the sums differ by");
    }
}

/// Rows of the drop table whose place and cause contain the given words.
fn ledger(o: &Outcome, place: &str, cause: &str) -> f64 {
    let rows = o.tables["drops"]["rows"].as_array().expect("rows");
    let says = |v: &serde_json::Value, word: &str| v.as_str().is_some_and(|s| s.contains(word));
    rows.iter().filter(|r| says(&r[0], place) && says(&r[1], cause)).map(|r| r[2].as_f64().expect("a count")).sum()
}

/// Linux: a poll that has used up its budget leaves the remaining frames to a thread, so that the application gets half
/// of the core.
#[test]
fn an_overloaded_socket_drops_and_the_application_keeps_half_of_the_core() {
    let o = Setting { traffic: fixed(1.0), ..Setting::default() }.run();
    let half = per_us(3.3) / 2.0 / (CALLED + SERVED);
    let ratio = get(&o, "throughput_mrps") / half;
    assert!((0.9..1.03).contains(&ratio), "{ratio} of {half} Mrps");
    let lost = ledger(&o, "socket", "socket full");
    assert!(lost > 100.0, "{lost}");
    assert!((lost + ledger(&o, "NIC", "") - get(&o, "drops")).abs() < 0.5);
}

/// 212992 bytes are 256 socket buffers of 832 bytes (Linux), and one more is accepted.
#[test]
fn a_socket_holds_256_small_datagrams_and_one() {
    let text = Setting { nic: "moderation = \"1 ms\"\nmoderation_frames = 300", ..Setting::default() }.text();
    let text = text.replace("frame = 6000", "frame = 6000\npoll_budget = 1024");
    let mut host = Host::new(Arc::new(scenario(&text))).expect("a host");
    // 300 come at 10 Mrps and are polled at once; the application has none before.
    host.offer(hostnet::kernel::TenantId(0), Some(Arrivals::fixed(10e6)), 0);
    host.run_for(Time::us(30));
    host.offer(hostnet::kernel::TenantId(0), None, 0);
    host.run_for(Time::us(20_000));
    host.check().expect("conserved");
    let nic = host.machine.iio.as_ref().and_then(|i| i.nic(PortId(0))).expect("its NIC");
    assert_eq!((nic.drops.total(), nic.unfinished()), (0, 0));
    assert!(nic.counts.offered > 290, "{}", nic.counts.offered);
    assert_eq!((nic.counts.sent, lost_in_sockets(nic)), (257, nic.counts.offered - 257));
}

/// Number of datagrams that sockets of an idle host lose, whose application answers every datagram.
fn lost_in_sockets(nic: &Nic) -> u64 {
    nic.counts.offered - nic.drops.total() - nic.counts.sent
}

#[test]
fn at_any_time_what_was_offered_was_served_or_lost_or_is_inside() {
    let mut lost = 0;
    for (i, (cores, rate, nic)) in [
        (1, 0.02, "lanes = 8"),
        (2, 0.3, "lanes = 8\nreceive_buffer = \"16 KiB\""),
        (1, 3.0, "lanes = 8\nreceive_buffer = \"16 KiB\"\n[peripheral.rings]\nreceive = 64\ntransmit = 64"),
        (3, 10.0, "moderation = \"3 us\"\n[peripheral.rings]\nreceive = 128\nwrite_back = \"all_used\""),
        (1, 5.0, "link = \"1 Gbps\"\n[peripheral.rings]\ntransmit = 64"),
    ]
    .into_iter()
    .enumerate()
    {
        let text = Setting { cores, nic, ..Setting::default() }.text();
        let mut host = Host::new(Arc::new(scenario(&text))).expect("a host");
        host.offer(
            hostnet::kernel::TenantId(0),
            Some(Arrivals::poisson(rate * 1e6, RandomStream::new(i as u64, "wire", 0))),
            0,
        );
        for _ in 0..200 {
            host.run_for(Time::us(2));
            host.check().unwrap_or_else(|e| panic!("{e}\n{text}"));
        }
        host.offer(hostnet::kernel::TenantId(0), None, 0);
        host.run_for(Time::us(100_000));
        host.check().unwrap_or_else(|e| panic!("{e}\n{text}"));
        let nic = host.machine.iio.as_ref().and_then(|i| i.nic(PortId(0))).expect("its NIC");
        assert_eq!((nic.packets_inside(), nic.unfinished()), (0, 0), "a packet is stuck:\n{text}");
        assert!(nic.counts.delivered > 5, "{text}");
        lost += lost_in_sockets(nic);
        host.drain();
        host.check().unwrap_or_else(|e| panic!("{e}\n{text}"));
    }
    assert!(lost > 100, "the test loses packets in sockets: {lost}");
}

#[test]
fn the_kernel_serves_fewer_requests_than_a_poll_mode_driver() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../captures/memcached-zipf.pcap");
    let knee = |stack: &str| {
        let text = format!(
            "name = \"memcached\"\nplatform = \"gem5\"\nplacement = {{ policy = \"ddio\", ways = 4 }}\n[[tenant]]\nname = \
             \"m\"\ncores = 1\nstack = \"{stack}\"\napp = {{ kind = \"memcached\" }}\n[[peripheral]]\nkind = \
             \"ethernet\"\n[traffic]\narrivals = \"pcap\"\npcap = {{ file = \"{file}\", timing = \"fixed\" }}\n[run]\nload = \
             \"peak_loss\"\nstep = \"10 krps\"\nrequests = 20000\n"
        );
        get(&simulate(&text), "offered_mrps")
    };
    let (kernel, polled) = (knee("kernel"), knee("poll_mode"));
    assert!(kernel > 0.05 && kernel < polled / 2.0, "{kernel} Mrps, {polled} with a poll-mode driver");
}

#[test]
fn a_socket_that_cannot_be_is_one_sentence() {
    let good = Setting::default().text();
    for (from, to, said) in [
        (
            "[[peripheral]]\nkind = \"ethernet\"\nlanes = 8\n",
            "",
            "needs one [[peripheral]] of kind \"ethernet\"; here are 0",
        ),
        (
            "[platform.udp]\nreceive = 5000\nsend = 12000\nfree = 400\nreceive_buffer = \"212992 B\"\n",
            "",
            "needs platform.udp",
        ),
        ("\"212992 B\"", "\"1 KiB\"", "receive_buffer = \"1 KiB\" is not within 2048 B to 16 MiB"),
        ("arrivals = \"fixed\"\nrate = \"0.01 Mrps\"", "arrivals = \"keep_depth\"\ndepth = 8", "choose closed"),
        ("packet = \"128 B\"", "packet = \"4 KiB\"", "packet"),
    ] {
        let e = refusal(&good, from, to);
        assert!(e.contains(said), "{e}");
    }
}
