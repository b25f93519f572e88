//! Tests of the DMA of a NIC with descriptor rings against closed forms from the sources of gem5 (`docs/models/networks.md`),
//! on the platform that has its settings.

use crate::common::{arrivals, get, simulate};
use hostnet::host::Outcome;

/// A NIC that receives packets at its highest rate, when more packets are offered.
fn at_the_limit(mode: &str, frame: u32, rate: f64, rings: &str, change: &[(&str, &str)]) -> Outcome {
    let text = format!(
        "name = \"dma\"\nplacement = {{ policy = \"ddio\", ways = 16 }}\n[platform]\nname = \"gem5\"\n[[tenant]]\nname = \
         \"t\"\ncores = 4\nstack = \"poll_mode\"\napp = {{ kind = \"testpmd\", mode = \"{mode}\" }}\n[[peripheral]]\nkind = \
         \"ethernet\"\nlink = \"400 Gbps\"\nreceive_buffer = \"64 KiB\"\npropagation = \"1 us\"\n{rings}\n[traffic]\narrivals = \
         \"fixed\"\nrate = \"{rate} Mpps\"\npacket = \"{frame} B\"\nflows = 16\n[run]\nload = \"fixed\"\nrequests = \
         20000\nwarmup_requests = 20000\n"
    );
    let o = simulate(&change.iter().fold(text, |t, (old, new)| t.replace(old, new)));
    assert!(get(&o, "drop_rate") > 0.0, "more is to be offered than the NIC takes");
    o
}

/// Time per packet in ns at that rate.
fn period(mode: &str, frame: u32, rate: f64, rings: &str, change: &[(&str, &str)]) -> f64 {
    ns(&at_the_limit(mode, frame, rate, rings, change))
}

fn ns(o: &Outcome) -> f64 {
    1e3 / get(o, "throughput_mrps")
}

/// Requests of cores to the L3 for each packet.
fn requests_of_cores(o: &Outcome) -> f64 {
    arrivals(o, "path c2m_read") / get(o, "throughput_mrps")
}

/// Setting without an I/O cache, so that its write-backs are no limit.
const NO_CACHE: (&str, &str) =
    ("name = \"gem5\"\n", "name = \"gem5\"\n[platform.iio]\nwrite_back_interval = \"0 ns\"\n");

/// Setting in which requests of cores do not use the crossbar.
const WITHOUT_CORES: (&str, &str) =
    ("name = \"gem5\"\n", "name = \"gem5\"\n[platform.iio]\nshared_with_cores = false\n");

fn lines(frame: u32) -> f64 {
    f64::from(frame.div_ceil(64))
}

/// A line of 64 B holds the I/O bus for 5 cycles of 1 ns, its header and 16 B per cycle (mem/XBar.py). The answer to
/// the last line arrives 15 ns after the line was sent: 3 ns on the bus, 2 in the I/O cache, 1 in the crossbar, 4 in
/// the L3 (12 cycles of the core), and 1, 2 and 2 back. The next packet begins two steps of the state machine later
/// (dev/net/i8254xGBe.cc).
#[test]
fn one_packet_in_flight_takes_its_lines_and_one_round_trip() {
    for (frame, rate) in [(512, 22.0), (1024, 13.0), (1518, 9.0)] {
        let expected = (lines(frame) - 1.0) * 5.0 + 15.0 + 2.0;
        let got = period("rxonly", frame, rate, "", &[]);
        assert!((got / expected - 1.0).abs() < 0.025, "{frame} B: {got:.2} ns a packet, {expected} by the sources");
    }
}

/// Without an I/O cache, the bus takes 5 ns for each written line and 1 ns for each requested line of a forwarded
/// packet; descriptors add a write of 2 ns and requests of 1 ns in each direction. The engine has one list of requests,
/// so these times add up, and between two packets it waits for at most one round trip and two steps.
#[test]
fn one_engine_for_both_ways_carries_a_packets_writes_and_reads_after_each_other() {
    for (frame, rate) in [(1024, 12.0), (1518, 9.0)] {
        let (least, descriptors) = (lines(frame) * 6.0, 2.0 + 1.0 + 1.0 + 5.0 / 4.0);
        let got = period("io", frame, rate, "", &[NO_CACHE]);
        assert!(got > least && got < least + descriptors + 17.0, "{frame} B: {got:.2} ns, {least} for data alone");
    }
}

/// The crossbar of the L3 at 1 GHz takes 1 ns for each request of the I/O cache and 3 ns for each line that the I/O
/// cache writes back: a header, and 64 B at 32 B per cycle (mem/XBar.py). The I/O cache writes back lines that the NIC
/// has written, and lines that the NIC has read and that were modified in the L3. These are all lines of a packet in
/// both directions, except the line that the core has read and holds itself. Descriptors add a part of a line and a
/// quarter of a line that are written, each with its write-back, and a request or two to read them. Each line that the
/// core requests from the L3 takes one request more.
#[test]
fn a_forwarded_packet_crosses_to_the_llc_twice_for_each_line_that_is_modified() {
    for (frame, rate) in [(1024, 12.0), (1518, 9.0)] {
        let n = lines(frame);
        let (data, descriptors) = (2.0 * n + 3.0 * (2.0 * n - 1.0), 4.0 + 1.0 + 2.0);
        let o = at_the_limit("io", frame, rate, "", &[]);
        let (got, least) = (ns(&o), data + requests_of_cores(&o));
        assert!((least..least + descriptors + 2.0).contains(&got), "{frame} B: {got:.2} ns, {least:.2} at least");
    }
}

/// At the limit of the DMA a packet takes 1 ns more for each request of its core. A core that waits finds more packets
/// in a poll, and so rings doorbells and writes descriptors less often. Each additional line that devices move takes
/// 1 ns, and 3 ns if it is written back. Requests that come while the engine turns around, 5 and 2 ns of each packet, hold up nothing.
#[test]
fn requests_of_cores_take_their_time_on_the_crossbar() {
    for (frame, rate) in [(1024, 12.0), (1518, 9.0)] {
        let with = at_the_limit("io", frame, rate, "", &[]);
        let without = at_the_limit("io", frame, rate, "", &[WITHOUT_CORES]);
        let requests = requests_of_cores(&with);
        assert!((2.0..3.0).contains(&requests), "{requests:.2} lines of a packet and its descriptors");
        let moved = |o| get(o, "dma_mtps") / get(o, "throughput_mrps");
        let more = moved(&with) - moved(&without);
        let (one, other) = (requests + more, requests + 4.0 * more);
        let got = ns(&with) - ns(&without);
        let least = one.min(other) * (1.0 - (5.0 + 2.0) / ns(&with));
        assert!(
            (least - 0.05..one.max(other) + 0.05).contains(&got),
            "{frame} B: {got:.3} ns more, {requests:.3} requests, {more:.3} lines"
        );
    }
}

/// Where devices write to memory, lines go to four channels, each with a separate path: no write-back takes the
/// crossbar.
#[test]
fn lines_that_go_to_dram_take_no_write_back_to_the_llc() {
    let dma = ("policy = \"ddio\", ways = 16", "policy = \"dma\"");
    let of = |interval| {
        let own = format!("name = \"gem5\"\n[platform.iio]\nwrite_back_interval = \"{interval}\"\n");
        period("io", 1024, 12.0, "", &[dma, ("name = \"gem5\"\n", &own)])
    };
    let (without, with) = (of("0 ns"), of("30 ns"));
    assert!((with / without - 1.0).abs() < 0.01, "{with:.2} ns a frame, {without:.2} without");
}

/// When the payload of one frame is read at a time, each frame waits for the data of the previous one: a round trip of
/// 15 ns, 5 ns for each further line on the way down, and the turnaround, which is long in this test so that nothing
/// else is the limit. The first line lies in the caches of the core that has read it: 2 ns and 14 of the core's cycles
/// more, which delay the other lines.
#[test]
fn frames_that_are_read_one_at_a_time_wait_for_each_others_data() {
    let one = "[peripheral.rings]\nreceive_packets = 16\none_engine = false";
    let one = &format!("{one}\ntransmit_turnaround = \"150 ns\"");
    let frame = 512;
    let expected = (lines(frame) - 1.0) * 5.0 + 15.0 + 2.0 + 14.0 / 3.0 + 150.0;
    let got = period("io", frame, 15.0, one, &[NO_CACHE]);
    assert!((expected..expected * 1.03).contains(&got), "{got:.2} ns a frame, {expected} at least");
    let two = period("io", frame, 15.0, &format!("{one}\ntransmit_packets = 2"), &[NO_CACHE]);
    assert!((two * 2.0 / got - 1.0).abs() < 0.05, "{two:.2} ns with two, {got:.2} with one");
}

/// A queue with the maximum number of read requests in flight begins no frame. Each of four queues may have the
/// requests of one frame of 1024 B: one for its descriptor and two of 512 B; they return a long turnaround after the
/// frame's last line. Each queue therefore sends a frame in a round trip and the turnaround, and four queues send four
/// frames; with twice the requests the rate doubles.
#[test]
fn a_queue_s_read_requests_bound_its_frames_by_their_round_trip() {
    let open = "[peripheral.rings]\nreceive_packets = 64\ntransmit_packets = 64\none_engine = false\nqueue_turnaround = \"1000 ns\"";
    let request = (NO_CACHE.1, &format!("{}[platform.pcie]\nmax_read_request = \"512 B\"\n", NO_CACHE.1)[..]);
    let frame = 1024;
    let of =
        |requests| period("io", frame, 10.0, &format!("{open}\nqueue_requests = {requests}"), &[NO_CACHE, request]);
    let least = (lines(frame) * 5.0 + 15.0 + 1000.0) / 4.0;
    let (three, six) = (of(3), of(6));
    assert!((least..least * 1.08).contains(&three), "{three:.1} ns a frame, {least:.1} at least");
    assert!((six * 2.0 / three - 1.0).abs() < 0.06, "{six:.1} ns with six, {three:.1} with three");
}

/// Of 1518 B the last line is written in part. Where devices write to memory, this write needs a read of DRAM: 33 ns of
/// path and at least 14.16 + 3.33 ns at an open row, whereas a write waits for 9 ns. Frames of whole lines wait for no
/// read.
#[test]
fn a_part_of_a_line_waits_for_the_line() {
    let dma = ("policy = \"ddio\", ways = 16", "policy = \"dma\"");
    let off = ("name = \"gem5\"\n", "name = \"gem5\"\n[platform.iio]\nfetch_partial = false\n");
    let [part, whole] = [1518, 1024].map(|frame| {
        let with = period("rxonly", frame, 12.0, "", &[dma]);
        with - period("rxonly", frame, 12.0, "", &[dma, off])
    });
    let least = 33.0 + 14.16 + 3.33 - 9.0;
    assert!((least..least + 60.0).contains(&part), "{part:.1} ns more, at least {least}");
    assert!(whole.abs() < 5.0, "{whole:.1} ns");
}
