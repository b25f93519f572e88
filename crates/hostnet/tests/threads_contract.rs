//! Tests of threads: the cost of polling, wake-ups at whole polls, and applications that are served.

use crate::common::{close, get, scenario, simulate};
use hostnet::host::{Host, Outcome};
use hostnet::kernel::{QueueId, ThreadId, Time};
use hostnet::traffic::arrival::Arrivals;
use hostnet::traffic::pcap::{Capture, Wanted};
use std::path::Path;
use std::sync::Arc;

/// sim24: 3.2 GHz and two instructions a cycle.
const PER_NS: f64 = 6.4;

/// One core that drops packets of 64 B, and polls an empty queue with the given number of instructions.
fn drops(polls: u32) -> String {
    format!(
        r#"
        name = "polls"
        platform = "sim24"
        placement = {{ policy = "ddio" }}
        rings = {{ rx_buffers = 64, buffer_size = "1 KiB" }}
        tenant = [{{ name = "a", cores = 1, app = {{ kind = "touchdrop" }} }}]
        traffic = {{ arrivals = "fixed", rate = "0.1 Mrps", packet = "64 B" }}
        run = {{ load = "fixed", requests = 2000, warmup_requests = 100 }}
        override = {{ queue_pair = {{ empty_poll_instructions = {polls} }} }}
        "#
    )
}

/// A host with a packet every 10 us, for 2 ms: instructions in the second millisecond, and events.
fn idle(polls: u32) -> (Host, f64, u64) {
    let mut host = Host::new(Arc::new(scenario(&drops(polls)))).expect("a host");
    host.offer(hostnet::kernel::TenantId(0), Some(Arrivals::fixed(1e5)), 0);
    host.run_for(Time::us(1_000));
    let (instructions, events) = (host.machine.cpus[ThreadId(0)].instructions, host.machine.cal.popped());
    host.run_for(Time::us(1_000));
    let n = host.machine.cpus[ThreadId(0)].instructions - instructions;
    let events = host.machine.cal.popped() - events;
    (host, n as f64, events)
}

#[test]
fn an_empty_ring_costs_the_instructions_that_a_core_polls_all_the_time() {
    for polls in [20, 200, 6_400] {
        let (_, instructions, _) = idle(polls);
        // All instructions except those of 100 packets, whose loads and 550 instructions take about 0.2 us each, 2 % of
        // the time.
        let all = PER_NS * 1e6;
        assert!((0.97 * all..=1.01 * all).contains(&instructions), "{polls}: {instructions} of {all}");
    }
}

#[test]
fn waiting_is_no_event() {
    let (often, seldom) = (idle(20).2, idle(2_000).2);
    assert_eq!(often, seldom, "events of the same packets");
}

#[test]
fn a_core_notices_a_packet_with_the_next_whole_poll() {
    // Polls of 1 us compared with polls of 3 ns: a packet waits for half a poll on average, and for a whole poll at
    // most.
    let (close_by, coarse) = (simulate(&drops(20)), simulate(&drops(6_400)));
    let more = |m| get(&coarse, m) - get(&close_by, m);
    let whole = 6_400.0 / PER_NS / 1e3;
    assert!(close(more("lat_mean_us"), whole / 2.0, 0.2), "{} us more in the mean", more("lat_mean_us"));
    assert!(more("lat_max_us") <= whole && more("lat_max_us") > 0.8 * whole, "{} us more", more("lat_max_us"));
}

#[test]
fn no_packet_is_lost_to_a_core_that_polls() {
    for polls in [1, 200, 64_000] {
        let mut host = Host::new(Arc::new(scenario(&drops(polls)))).expect("a host");
        host.offer(hostnet::kernel::TenantId(0), Some(Arrivals::bursts(Time::us(20), 16, 1e9)), 0);
        host.run_for(Time::us(1_000));
        host.check().expect("balanced books");
        host.offer(hostnet::kernel::TenantId(0), None, 0);
        host.run_for(Time::us(200));
        host.check().expect("balanced books");
        let nic = &host.machine.nic;
        assert_eq!((nic.unconsumed(QueueId(0)), nic.unfinished()), (0, 0), "{polls}: packets wait for ever");
        assert!(nic.counts.accepted >= 49 * 16);
    }
}

/// Ten cores that forward packets of 1 KiB, conventional DMA.
fn forwards(zero_copy: bool) -> Outcome {
    simulate(&format!(
        r#"
        name = "l3fwd"
        platform = "sim24"
        placement = {{ policy = "dma" }}
        rings = {{ rx_buffers = 256, buffer_size = "1 KiB" }}
        tenant = [{{ name = "fwd", cores = 10, app = {{ kind = "l3fwd", rules = 1000, zero_copy = {zero_copy} }} }}]
        traffic = {{ arrivals = "poisson", rate = "5 Mpps", packet = "1024 B" }}
        run = {{ load = "fixed", requests = 20000, warmup_requests = 20000 }}
        "#
    ))
}

/// 16 lines arrive, the core reads and edits the first, and the NIC reads all: the edited line is written to memory
/// before.
#[test]
fn l3fwd_touches_the_header_of_what_it_forwards_in_place() {
    let o = forwards(true);
    assert!(close(get(&o, "throughput_mrps"), 5.0, 0.02) && get(&o, "drops") == 0.0);
    for (metric, lines) in [
        ("acc_nic_rx_wr", 16.0),
        ("acc_cpu_rx_rd", 1.0),
        ("acc_rx_evct", 1.0),
        ("acc_nic_tx_rd", 16.0),
        ("acc_tx_evct", 0.0),
    ] {
        let measured = get(&o, metric);
        assert!((measured - lines).abs() <= 0.02 * lines.max(1.0), "{metric}: {measured}, not {lines}");
    }
}

/// Each of 16 lines is read and copied to a transmit buffer of a ring that the L2 keeps; the buffer is written to
/// memory when the NIC reads it.
#[test]
fn l3fwd_copies_what_it_does_not_forward_in_place() {
    let o = forwards(false);
    assert!(close(get(&o, "throughput_mrps"), 5.0, 0.02) && get(&o, "drops") == 0.0);
    for (metric, lines) in [
        ("acc_nic_rx_wr", 16.0),
        ("acc_cpu_rx_rd", 16.0),
        ("acc_rx_evct", 0.0),
        ("acc_nic_tx_rd", 16.0),
        ("acc_tx_evct", 16.0),
    ] {
        let measured = get(&o, metric);
        assert!((measured - lines).abs() <= 0.02 * lines.max(1.0), "{metric}: {measured}, not {lines}");
    }
}

/// The capture's requests, each once, to servers with the given keys of `app`.
fn memcached(more: &str) -> (Capture, Outcome) {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../captures/memcached-udp.pcap");
    let capture = Capture::load(Path::new(file), Wanted::default()).expect("the capture");
    let n = capture.packets.len();
    let o = simulate(&format!(
        r#"
        name = "memcached"
        platform = "sim24"
        placement = {{ policy = "dma" }}
        rings = {{ rx_buffers = 256, buffer_size = "2 KiB" }}
        tenant = [{{ name = "kvs", cores = 8, app = {{ kind = "memcached" {more} }} }}]
        traffic = {{ arrivals = "pcap", rate = "4 Mrps", pcap = {{ file = "{file}", timing = "fixed" }} }}
        run = {{ load = "fixed", requests = {n}, warmup_requests = {n} }}
        "#
    ));
    (capture, o)
}

/// 5,386 of the capture's 6,000 requests are GETs (`captures/memcached-udp.counts`, from tshark).
#[test]
fn memcached_takes_the_instructions_of_a_get_and_of_a_set() {
    let mean = |more| get(&memcached(more).1, "service_mean_us") * 1e3;
    let added =
        mean(", instructions = 3200, set_instructions = 7200") - mean(", instructions = 1200, set_instructions = 1200");
    let counted = (5_386.0 * 2_000.0 + 614.0 * 6_000.0) / 6_000.0 / PER_NS;
    assert!(close(added, counted, 0.03), "{added} of {counted} ns");
}

/// The capture's requests, in the lines that they take, all answered.
#[test]
fn memcached_answers_a_capture_at_the_rate_that_it_comes() {
    let (capture, o) = memcached("");
    let n = capture.packets.len();
    assert!(close(get(&o, "throughput_mrps"), 4.0, 0.02) && get(&o, "drops") == 0.0);
    let lines: u32 = capture.packets.iter().map(|p| p.wire_len.div_ceil(64)).sum();
    let bytes: u64 = capture.packets.iter().map(|p| u64::from(p.wire_len)).sum();
    let mean = f64::from(lines) / n as f64;
    assert!(close(get(&o, "acc_nic_rx_wr"), mean, 0.01), "{} of {mean} lines", get(&o, "acc_nic_rx_wr"));
    let gbps = 4.0 * 8.0 * bytes as f64 / n as f64 / 1e3;
    assert!(close(get(&o, "net_gbps"), gbps, 0.02), "{} of {gbps} Gb/s", get(&o, "net_gbps"));
    // A reply of at least one line is written to memory for the NIC.
    assert!(get(&o, "acc_nic_tx_rd") >= 1.0 && get(&o, "acc_tx_evct") > 0.0);
    // Every request takes at least its 1200 instructions.
    assert!(get(&o, "service_mean_us") > 1_200.0 / PER_NS / 1e3);
}
