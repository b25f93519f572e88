//! Tests of loading packet captures: formats, protocols, damage, and a committed capture of real traffic.

mod build;
mod damage;

use build::*;
use damage::leniently;
use hostnet::kernel::Time;
use hostnet::traffic::frame::rss_hash;
use hostnet::traffic::pcap::{Capture, CaptureError, CaptureOptions, CapturedCommand, Fault, More, Skipped, Wanted};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use std::path::Path;

fn load(bytes: &[u8]) -> Result<Capture, Fault> {
    Capture::read(bytes, Wanted::default())
}

fn loaded(bytes: &[u8]) -> Capture {
    let capture = load(bytes).unwrap();
    let c = &capture.counts;
    assert_eq!(c.records, c.requests + c.replies + c.skipped.total(), "{c:?}");
    assert_eq!(c.requests, c.gets + c.sets + c.others);
    assert_eq!(c.requests as usize, capture.packets.len());
    capture
}

/// The sentence that a user reads.
fn sentence(bytes: &[u8]) -> String {
    CaptureError { file: "x.pcap".into(), fault: load(bytes).unwrap_err() }.to_string()
}

fn plain(frames: impl IntoIterator<Item = Vec<u8>>) -> Capture {
    loaded(&pcap(false, false, 1, &whole(frames)))
}

/// Key lengths and value lengths of a get, in the order of the keys.
fn values(capture: &Capture, packet: usize) -> Vec<(u16, Option<u32>)> {
    match capture.packets[packet].command {
        CapturedCommand::Get { key_len, value_len, more, .. } => {
            let more = capture.more_keys(more).iter().map(|k| (k.len, k.value_len));
            [(key_len, value_len)].into_iter().chain(more).collect()
        }
        other => panic!("{other:?}"),
    }
}

/// Every byte of a frame, written out: Ethernet II, IPv4 (RFC 791), UDP (RFC 768), memcached's protocol.txt.
#[test]
fn a_frame_spelled_out_byte_by_byte() {
    #[rustfmt::skip]
    let frame = vec![
        0x02, 0, 0, 0, 0, 0x01,  0x02, 0, 0, 0, 0, 0x02,  0x08, 0x00, // to, from, IPv4
        0x45, 0x00, 0x00, 0x2e,  0x00, 0x00, 0x40, 0x00, // 46 bytes, don't fragment
        0x40, 0x11, 0x00, 0x00,  66, 9, 149, 187,  161, 142, 100, 80, // UDP
        0x0a, 0xea, 0x2b, 0xcb,  0x00, 0x1a, 0x00, 0x00, // 2794 to 11211, 26 bytes
        0x00, 0x2a, 0x00, 0x00,  0x00, 0x01, 0x00, 0x00, // request 42, 0 of 1
        b'g', b'e', b't', b' ', b'a', b'b', b'c', b'd', b'\r', b'\n',
    ];
    let capture = plain([frame]);
    let packet = capture.packets[0];
    assert_eq!((packet.at, packet.wire_len), (Time::ZERO, 60));
    let (src, dst) = ("66.9.149.187:2794", "161.142.100.80:11211");
    assert_eq!(packet.flow, rss_hash(src.parse().unwrap(), dst.parse().unwrap()));
    let CapturedCommand::Get { key_len, value_len, more, .. } = packet.command else { panic!("{packet:?}") };
    assert_eq!((key_len, value_len, more), (4, None, More::default()));
    assert_eq!(capture.counts.unknown_values, 1);
}

#[test]
fn a_get_learns_its_value_size_from_the_reply_with_its_id_and_flow() {
    let capture = plain([
        request(5000, 1, b"get k\r\n"),
        request(5000, 2, b"get k\r\n"),
        request(5001, 1, b"get k\r\n"),
        reply(5001, 1, 0, 1, b"VALUE k 0 3\r\nabc\r\nEND\r\n"),
        reply(5000, 2, 0, 1, b"END\r\n"),
        reply(5000, 9, 0, 1, b"VALUE k 0 3\r\nabc\r\nEND\r\n"),
    ]);
    assert_eq!(values(&capture, 0), [(1, None)]);
    assert_eq!(values(&capture, 1), [(1, Some(0))], "a miss");
    assert_eq!(values(&capture, 2), [(1, Some(3))]);
    assert_eq!((capture.counts.replies, capture.counts.unknown_values), (3, 1));
}

#[test]
fn a_multi_key_get_learns_its_sizes_from_one_message_or_from_lone_datagrams() {
    let ask = b"get one two three\r\n";
    let capture = plain([
        request(5000, 1, ask),
        reply(5000, 1, 0, 2, b"VALUE one 0 4\r\nab"),
        reply(5000, 1, 1, 2, b"cd\r\nVALUE three 0 1\r\nx\r\nEND\r\n"),
        // A reply in the form in which memcached 1.6 sends it.
        request(5000, 2, ask),
        reply(5000, 2, 0, 1, b"VALUE one 0 4\r\nabcd\r\n"),
        reply(5000, 2, 0, 1, b"VALUE two 0 2\r\nxy\r\nEND\r\n"),
        // A datagram of the message is lost.
        request(5000, 3, ask),
        reply(5000, 3, 1, 2, b"cd\r\nVALUE three 0 1\r\nx\r\nEND\r\n"),
    ]);
    assert_eq!(values(&capture, 0), [(3, Some(4)), (3, Some(0)), (5, Some(1))]);
    assert_eq!(values(&capture, 1), [(3, Some(4)), (3, Some(2)), (5, Some(0))]);
    assert_eq!(values(&capture, 2), [(3, None), (3, None), (5, None)]);
}

#[test]
fn equal_keys_hash_alike_whatever_the_command() {
    let capture = plain([
        request(5000, 1, b"set k1 0 0 2\r\nvv\r\n"),
        request(5001, 2, b"get k1\r\n"),
        request(5000, 3, b"get k2 k1\r\n"),
        request(5000, 4, b"delete k1\r\n"),
    ]);
    let kinds: Vec<CapturedCommand> = capture.packets.iter().map(|p| p.command).collect();
    let (CapturedCommand::Set { key_hash: set, value_len: 2, .. }, CapturedCommand::Get { key_hash: get, .. }) =
        (kinds[0], kinds[1])
    else {
        panic!("{kinds:?}")
    };
    let CapturedCommand::Get { key_hash: other, more, .. } = kinds[2] else { panic!("{kinds:?}") };
    assert_eq!((set, capture.more_keys(more)[0].hash), (get, get));
    assert_ne!(other, get);
    assert_eq!(kinds[3], CapturedCommand::Other);
}

#[test]
fn what_is_not_a_request_is_counted_by_reason() {
    let get = datagram(1, 0, 1, b"get k\r\n");
    let mut arp = frame(&[], Network::V4, (2, 1), (1, 2), &get);
    arp[12..14].copy_from_slice(&[0x08, 0x06]);
    let mut tcp = frame(&[], Network::V4, (2, 5000), (1, 11211), &[0; 32]);
    tcp[23] = 6;
    tcp[34 + 12] = 0x50; // data offset: five words
    let mut cut_header = request(5000, 1, b"get k\r\n");
    cut_header.truncate(30);
    let capture = plain([
        request(5000, 1, b"get k\r\n"),
        arp,
        tcp,
        frame(&[], Network::V4Fragment, (2, 5000), (1, 11211), &get),
        frame(&[], Network::V6Fragment, (2, 5000), (1, 11211), &get),
        cut_header,
        frame(&[], Network::V4, (2, 5000), (1, 53), &get),
        request(5000, 2, b"\x80\x00\x00\x01 binary\r\n"),
        frame(&[], Network::V4, (2, 5000), (1, 11211), &[0; 4]),
        frame(&[], Network::V4, (2, 5000), (1, 11211), &datagram(3, 1, 2, b"xyz\r\n")),
        reply(5000, 1, 0, 1, b"END\r\n"),
    ]);
    let c = capture.counts;
    let s = c.skipped;
    assert_eq!((c.records, c.requests, c.replies), (11, 1, 1));
    assert_eq!((s.not_ip, s.tcp, s.not_udp, s.fragments, s.malformed, s.cut), (1, 1, 0, 2, 1, 0));
    assert_eq!((s.other_port, s.not_memcached, s.continuation), (1, 2, 1));
    assert_eq!((s.other_link, s.untimed), (0, 0));
}

/// A snap length of 60 bytes keeps the first words of a request, one of 46 bytes keeps only the headers, and one of 30
/// bytes not even those.
#[test]
fn what_the_snap_length_cut_is_told_apart_from_what_is_damaged() {
    let long = || request(5000, 1, format!("get {}\r\n", "k".repeat(200)).as_bytes());
    let keep = |snap, frame| Record { snap, ..whole([frame]).remove(0) };
    let records = [
        keep(usize::MAX, long()),
        keep(60, long()),
        keep(46, long()),
        keep(30, long()),
        keep(60, request(5000, 2, b"get k\r\n")),
    ];
    let capture = loaded(&pcap(false, false, 1, &records));
    let s = capture.counts.skipped;
    assert_eq!((capture.counts.requests, s.cut, s.malformed, s.not_memcached), (2, 3, 0, 0));
}

#[test]
fn the_table_says_what_was_skipped_and_why() {
    let mut tcp = frame(&[], Network::V4, (2, 5000), (1, 11211), &[0; 32]);
    tcp[23] = 6;
    tcp[34 + 12] = 0x50; // data offset: five words
    let fragment = frame(&[], Network::V4Fragment, (2, 5000), (1, 11211), &datagram(1, 0, 1, b"get k\r\n"));
    let capture = plain([request(5000, 1, b"get k\r\n"), tcp.clone(), tcp, fragment]);
    let row = |kind: &'static str, what: &str, n: u64| (kind, what.to_string(), n);
    let expected = [
        row("file", "packets in the file", 4),
        row("replayed", "packets replayed", 1),
        row("reply", "replies of the server", 0),
        row("skipped", "fragments of IP datagrams", 1),
        row("skipped", "TCP", 2),
        row("note", "values whose size no reply told", 1),
    ];
    assert_eq!(capture.counts.rows(), expected);
}

/// Applications other than memcached take every IP packet, with its size, time and flow.
#[test]
fn every_ip_packet_is_replayed_where_no_protocol_is_asked_for() {
    let get = datagram(1, 0, 1, b"get k\r\n");
    let udp = frame(&[], Network::V4, (2, 5000), (1, 53), &get);
    let mut tcp = frame(&[], Network::V4, (2, 5000), (1, 80), &[0; 32]);
    tcp[23] = 6;
    tcp[34 + 12] = 0x50; // data offset: five words
    let mut icmp = udp.clone();
    icmp[23] = 1;
    let mut arp = udp.clone();
    arp[12..14].copy_from_slice(&[0x08, 0x06]);
    let fragment = frame(&[], Network::V6Fragment, (2, 5000), (1, 53), &get);
    let frames = [udp.clone(), tcp.clone(), icmp.clone(), arp, fragment.clone()];
    let mut records = whole(frames);
    for (i, r) in records.iter_mut().enumerate() {
        r.ticks = 10 * (i as u64 + 1);
        r.snap = 60; // the length on the wire counts
    }
    let file = pcap(false, false, 1, &records);
    let capture = Capture::read(&file[..], Wanted::Frames(None)).unwrap();
    assert_eq!((capture.counts.requests, capture.counts.skipped.not_ip, capture.counts.skipped.total()), (4, 1, 1));
    assert_eq!(capture.times(), [0, 10, 20, 40].map(Time::us));
    let lengths: Vec<u32> = capture.packets.iter().map(|p| p.wire_len).collect();
    assert_eq!(lengths, [udp.len(), tcp.len(), icmp.len(), fragment.len()].map(|n| n as u32));
    let flow = |to: u16| {
        let end = |host: u8, port| std::net::SocketAddr::from(([10, 0, 0, host], port));
        rss_hash(end(2, 5000), end(1, to))
    };
    assert_eq!([capture.packets[0].flow, capture.packets[1].flow], [flow(53), flow(80)]);
    assert_ne!(capture.packets[2].flow, flow(53), "ICMP has no ports");

    let some = Capture::read(&file[..], Wanted::Frames(Some(80))).unwrap();
    assert_eq!(
        (some.packets.len(), some.packets[0].wire_len, some.counts.skipped),
        (1, tcp.len() as u32, Skipped { other_port: 1, not_udp: 1, not_ip: 1, cut: 1, ..Skipped::default() }),
        "only UDP to port 53 is known to go to another port; the fragment's own header is cut"
    );
    let none = Capture::read(&file[..], Wanted::Frames(Some(9))).unwrap_err();
    assert!(matches!(none, Fault::NoFrame { packets: 5, port: Some(9), .. }), "{none:?}");
}

#[test]
fn the_server_port_is_an_option() {
    let f = frame(&[], Network::V4, (2, 5000), (1, 7777), &datagram(1, 0, 1, b"get k\r\n"));
    let file = pcap(false, false, 1, &whole([f]));
    assert_eq!(Capture::read(&file[..], Wanted::Memcached(7777)).unwrap().counts.gets, 1);
    let skipped = Box::new(Skipped { other_port: 1, ..Skipped::default() });
    assert_eq!(load(&file), Err(Fault::NoRequest { packets: 1, port: 11211, skipped }));
}

#[test]
fn timestamps_that_go_backwards_are_sorted_and_counted() {
    let mut records = whole((0..4).map(|i| request(5000 + i, 1, b"get k\r\n")));
    for (r, ticks) in records.iter_mut().zip([30, 10, 20, 40]) {
        r.ticks = ticks;
    }
    let capture = loaded(&pcap(false, false, 1, &records));
    let times: Vec<Time> = capture.times();
    assert_eq!(times, [0, 10, 20, 30].map(Time::us));
    assert_eq!(capture.counts.backwards, 2);
    let flow = |port| {
        let client = std::net::SocketAddr::from(([10, 0, 0, CLIENT], port));
        rss_hash(client, std::net::SocketAddr::from(([10, 0, 0, SERVER], 11211)))
    };
    let flows: Vec<u32> = capture.packets.iter().map(|p| p.flow).collect();
    assert_eq!(flows, [5001, 5002, 5000, 5003].map(flow));
}

#[test]
fn interfaces_of_pcapng_keep_their_own_clocks_and_links() {
    let interfaces = [
        Interface { tsresol: Some(9), ..ETHERNET },
        Interface { tsresol: Some(6), tsoffset: Some(-100), ..ETHERNET },
        Interface { link: 113, ..ETHERNET },
    ];
    let at = |interface, ticks| Record { interface, ticks, snap: usize::MAX, frame: request(5000, 1, b"get k\r\n") };
    for big in [false, true] {
        let records = [at(0, 5_000_000_000), at(1, 105_000_001), at(2, 7), at(0, 5_000_002_000)];
        let mut file = pcapng(big, &interfaces, &records);
        file.extend(simple_packet(big, &request(5000, 1, b"get k\r\n")));
        let capture = loaded(&file);
        assert_eq!(capture.times(), [0, 1, 2].map(Time::us));
        let skipped = capture.counts.skipped;
        assert_eq!((skipped.other_link, skipped.untimed, skipped.total()), (1, 1, 2));
    }
}

#[test]
fn a_second_section_has_its_own_byte_order_and_interfaces() {
    let section = |big, tsresol, ticks| {
        let mut records = whole([request(5000, 1, b"get k\r\n")]);
        records[0].ticks = ticks;
        pcapng(big, &[Interface { tsresol: Some(tsresol), ..ETHERNET }], &records)
    };
    let file = [section(false, 9, 7_000), section(true, 6, 9)].concat();
    assert_eq!(loaded(&file).times(), [0, 2].map(Time::us));
}

/// RFC 2675: with a UDP length of zero, the IP header gives the length.
#[test]
fn a_udp_length_of_zero_is_that_of_the_packet() {
    let mut answer = reply(5000, 1, 0, 1, b"VALUE k 0 3\r\nabc\r\nEND\r\n");
    answer[14 + 20 + 4..][..2].copy_from_slice(&[0, 0]);
    let capture = plain([request(5000, 1, b"get k\r\n"), answer]);
    assert_eq!(values(&capture, 0), [(1, Some(3))]);
}

/// The upper half of a pcap file's link type gives the length of the frames' check sequences.
#[test]
fn the_link_type_may_carry_the_checksum_length() {
    let file = pcap(false, false, 0x1400_0001, &whole([request(5000, 1, b"get k\r\n")]));
    assert_eq!(loaded(&file).counts.gets, 1);
}

#[test]
fn a_packet_larger_than_the_read_buffer() {
    let mut big = request(5000, 1, b"get k\r\n");
    big.resize(200_000, 0);
    let capture = plain([big, request(5000, 2, b"get k\r\n")]);
    assert_eq!((capture.counts.gets, capture.packets[0].wire_len), (2, 200_000));
}

/// Simple packet blocks have no time stamps, and their snap length determines the padding (pcapng, section 4.4).
#[test]
fn packets_without_time_stamps_are_replayed_when_somebody_else_says_when() {
    let frames: Vec<_> = (0..3).map(|i| request(5000 + i, 1, b"get k\r\n")).collect();
    for big in [false, true] {
        let mut file = pcapng(big, &[ETHERNET], &[]);
        frames.iter().for_each(|f| file.extend(simple_packet(big, f)));
        assert_eq!(
            sentence(&file),
            "capture x.pcap has no time stamps on its 3 packets; set traffic.pcap.timing = \"fixed\" or \"poisson\""
        );
        let how = CaptureOptions { untimed: true, frames: true, ..CaptureOptions::default() };
        let capture = Capture::read(&file[..], how).unwrap();
        // 57 bytes, and three bytes of padding that do not belong to the frame.
        assert!(capture.frames.iter().zip(&frames).all(|(a, b)| **a == **b));
        assert!(capture.packets.iter().all(|p| p.wire_len == 57));
        // Among packets with time stamps, these packets keep the file's order.
        let mut mixed = pcapng(
            big,
            &[Interface { tsresol: Some(9), ..ETHERNET }],
            &[Record { ticks: 1_700_000_000_000_000_000, ..whole([request(6000, 1, b"get k\r\n")]).remove(0) }],
        );
        mixed.extend(simple_packet(big, &frames[0]));
        assert_eq!(Capture::read(&mixed[..], how).unwrap().packets.len(), 2);
    }
}

/// A snap length of 60: the block holds 60 bytes of a longer packet, without padding.
#[test]
fn a_simple_packet_block_ends_at_the_snap_length() {
    let long = request(5000, 1, format!("get {}\r\n", "k".repeat(100)).as_bytes());
    let mut file = pcapng(false, &[Interface { snap: 58, ..ETHERNET }], &[]);
    let mut block = simple_packet(false, &long[..60]);
    block[8..12].copy_from_slice(&(long.len() as u32).to_le_bytes()); // its length on the wire
    file.extend(block);
    let how = CaptureOptions { wanted: Wanted::Frames(None), untimed: true, frames: true, ..CaptureOptions::default() };
    let capture = Capture::read(&file[..], how).unwrap();
    assert_eq!((&capture.frames[0][..], capture.packets[0].wire_len), (&long[..58], long.len() as u32));
}

/// Appendix A of the pcapng draft: an obsolete Packet Block, with an interface of 16 bits and a count of losses, is a
/// packet like any other.
#[test]
fn packet_blocks_are_packets_beside_enhanced_ones() {
    let frames: Vec<Vec<u8>> = (0..4).map(|i| request(5000 + i, 1, b"get key\r\n")).collect();
    for big in [false, true] {
        let interfaces = [ETHERNET, Interface { tsresol: Some(9), ..ETHERNET }];
        let mut file = pcapng(big, &interfaces, &whole(frames[..1].to_vec()));
        for (i, frame) in frames.iter().enumerate().skip(1) {
            // Interface 1 counts nanoseconds; the packet blocks have lost packets and comments.
            let record = Record { interface: 1, ticks: 1_000 * i as u64, snap: usize::MAX, frame: frame.clone() };
            file.extend(packet_block(big, &record));
        }
        let capture = loaded(&file);
        assert_eq!(capture.times(), [0, 1, 2, 3].map(Time::us), "big endian: {big}");
        assert_eq!(capture.packets, plain(frames.clone()).packets);
        // A packet block that ends inside its packet, and one of an interface that is not there.
        let mut short = pcapng(big, &[ETHERNET], &[]);
        let record = Record { interface: 0, ticks: 0, snap: usize::MAX, frame: frames[0].clone() };
        let mut block = packet_block(big, &record);
        let length = 1000u32;
        block[20..24].copy_from_slice(&if big { length.to_be_bytes() } else { length.to_le_bytes() });
        short.extend(block);
        assert_eq!(sentence(&short), "capture x.pcap is damaged at byte 76, at or before packet 1");
        let mut lost = pcapng(big, &[ETHERNET], &[]);
        lost.extend(packet_block(big, &Record { interface: 7, ..record }));
        assert!(sentence(&lost).contains("names interface 7"), "{}", sentence(&lost));
    }
}

/// Frames of 34 bytes end behind an IPv4 header without options: nothing says which port they go to.
#[test]
fn frames_cut_before_their_ports_are_no_packets_to_another_port() {
    let frames = || (0..10).map(|_| frame(&[], Network::V4, (2, 5000), (1, 2000), &[0; 18]));
    let cut = |n: usize| {
        let mut records = whole(frames());
        records[..n].iter_mut().for_each(|r| r.snap = 34);
        pcap(false, false, 1, &records)
    };
    let some = Capture::read(&cut(5)[..], Wanted::Frames(Some(2000))).unwrap();
    assert_eq!((some.packets.len(), some.counts.skipped), (5, Skipped { cut: 5, ..Skipped::default() }));
    let none = Capture::read(&cut(10)[..], Wanted::Frames(Some(2000))).unwrap_err();
    assert_eq!(
        CaptureError { file: "x.pcap".into(), fault: none }.to_string(),
        "capture x.pcap holds no packet to UDP or TCP port 2000 among its 10 packets (10 cut short by the snap length)"
    );
    // A fragment has ports at most in its first part, which nothing joins to the others.
    let parts = [Network::V4Fragment, Network::V6Fragment].map(|net| frame(&[], net, (2, 5000), (1, 2000), &[0; 18]));
    let parts = pcap(false, false, 1, &whole(parts.into_iter().chain(frames())));
    let whole_ones = Capture::read(&parts[..], Wanted::Frames(Some(2000))).unwrap();
    assert_eq!((whole_ones.packets.len(), whole_ones.counts.skipped.fragments), (10, 2));
    // Without a port they are replayed: their length and their addresses are known.
    assert_eq!(Capture::read(&cut(10)[..], Wanted::Frames(None)).unwrap().packets.len(), 10);
    let memcached = load(&cut(10)).unwrap_err();
    assert!(matches!(&memcached, Fault::NoRequest { skipped, .. } if skipped.cut == 10), "{memcached:?}");
}

/// A frame whose header of TCP has `words` words of four bytes.
fn tcp_frame(net: Network, tags: &[u16], port: u16, words: u8) -> Vec<u8> {
    let mut f = frame(tags, net, (2, port), (1, 80), &[0; 200]);
    let (ip, options) = (14 + 4 * tags.len(), 24);
    let (protocol, tcp) = if net == Network::V4 { (ip + 9, ip + 20) } else { (ip + 6, ip + 40) };
    f[protocol] = 6;
    f[tcp + 12] = words << 4;
    f.truncate(tcp + 20 + options + 100);
    f
}

/// The ports are the first four bytes of TCP's header and of UDP's (RFC 9293, section 3.1, and RFC 768), so a frame that was
/// cut behind them has the flow and the port of the whole one.
#[test]
fn frames_cut_behind_their_ports_keep_them() {
    for (net, tags, header) in [
        (Network::V4, &[][..], 34),
        (Network::V4, &[0x8100][..], 38),
        (Network::V6, &[][..], 54),
        (Network::V6, &[0x88a8, 0x8100][..], 62),
    ] {
        let tcp = (0..8).map(|i| tcp_frame(net, tags, 1000 + i, 8));
        let udp = (0..8).map(|i| frame(tags, net, (2, 1000 + i), (1, 80), &[0; 100]));
        let frames: Vec<_> = tcp.chain(udp).collect();
        let read = |snap: usize, port| {
            let mut records = whole(frames.clone());
            records.iter_mut().for_each(|r| r.snap = snap);
            Capture::read(&pcap(false, false, 1, &records)[..], Wanted::Frames(port))
        };
        let flows = |c: &Capture| c.packets.iter().map(|p| p.flow).collect::<Vec<_>>();
        let uncut = flows(&read(usize::MAX, None).unwrap());
        for snap in header + 4..header + 40 {
            assert_eq!(flows(&read(snap, None).unwrap()), uncut, "{net:?} {tags:?} {snap}");
            let to_80 = read(snap, Some(80)).unwrap();
            assert_eq!((to_80.packets.len(), to_80.counts.skipped.total()), (16, 0), "{net:?} {tags:?} {snap}");
            assert!(matches!(read(snap, Some(81)), Err(Fault::NoFrame { skipped, .. }) if skipped.other_port == 16));
        }
        let none = read(header + 3, Some(80)).unwrap_err();
        assert!(matches!(&none, Fault::NoFrame { skipped, .. } if skipped.cut == 16), "{none:?}");
        // Of a server of memcached, TCP is TCP however little is kept of it.
        let mut records = whole(frames.clone());
        records.iter_mut().for_each(|r| r.snap = header + 12);
        let none = load(&pcap(false, false, 1, &records)).unwrap_err();
        assert!(
            matches!(&none, Fault::NoRequest { skipped, .. } if (skipped.tcp, skipped.other_port) == (8, 8)),
            "{none:?}"
        );
    }
}

/// A header that the IP packet itself is too short for is damaged, not cut.
#[test]
fn a_packet_too_short_for_its_header_is_damaged() {
    let mut f = tcp_frame(Network::V4, &[], 1000, 8);
    f[16..18].copy_from_slice(&30u16.to_be_bytes()); // total length of IPv4: ten bytes of TCP
    let none = Capture::read(&pcap(false, false, 1, &whole([f]))[..], Wanted::Frames(Some(80))).unwrap_err();
    assert!(matches!(&none, Fault::NoFrame { skipped, .. } if skipped.malformed == 1), "{none:?}");
}

/// Tags beyond the two of 802.1ad are legal Ethernet, however many there are.
#[test]
fn four_tags_are_no_obstacle() {
    let tags = [0x88a8, 0x8100, 0x8100, 0x9100];
    let f = |tags| frame(tags, Network::V4, (CLIENT, 5000), (SERVER, 11211), &datagram(1, 0, 1, b"get k\r\n"));
    let [tagged, bare] = [f(&tags[..]), f(&[])].map(|f| plain([f]).packets[0]);
    assert_eq!((tagged.flow, tagged.command), (bare.flow, bare.command));
    assert_eq!(tagged.wire_len, bare.wire_len + 16);
}

/// Jumbo frames, and as many tags as operators stack: 802.1ad before 802.1Q, IPv4 and IPv6.
#[test]
fn jumbo_frames_and_stacked_tags_keep_their_flow() {
    let payload = vec![0; 8900];
    for net in [Network::V4, Network::V6] {
        let flows: Vec<_> = TAGS
            .iter()
            .map(|tags| {
                let f = frame(tags, net, (CLIENT, 5000), (SERVER, 9), &payload);
                let length = f.len() as u32;
                let capture = Capture::read(&pcap(false, true, 1, &whole([f]))[..], Wanted::Frames(Some(9))).unwrap();
                assert_eq!(capture.packets[0].wire_len, length);
                assert!(length >= 8942, "14 + 20 + 8 bytes of headers at least: {length}");
                capture.packets[0].flow
            })
            .collect();
        assert!(flows.iter().all(|f| *f == flows[0]), "tags are no part of a flow");
    }
}

#[test]
fn missing_files_and_directories_are_named() {
    let say = |p: &str| Capture::load(Path::new(p), Wanted::default()).unwrap_err().to_string();
    assert_eq!(say("no/such.pcap"), "capture no/such.pcap cannot be read: there is no such file");
    assert_eq!(say("src"), "capture src cannot be read: it is a directory");
}

#[derive(Clone, Debug)]
enum Body {
    Get(Vec<String>),
    Set(String, u32),
}

fn body() -> impl Strategy<Value = Body> {
    let key = "[!-~]{1,40}";
    prop_oneof![
        prop::collection::vec(key, 1..5).prop_map(Body::Get),
        (key, 0u32..1200).prop_map(|(key, len)| Body::Set(key, len)),
    ]
}

fn text(body: &Body) -> Vec<u8> {
    match body {
        Body::Get(keys) => format!("get {}\r\n", keys.join(" ")).into_bytes(),
        Body::Set(key, len) => format!("set {key} 0 0 {len}\r\n{}\r\n", "v".repeat(*len as usize)).into_bytes(),
    }
}

fn network() -> impl Strategy<Value = Network> {
    use Network::*;
    prop_oneof![Just(V4), Just(V4Options), Just(V6), Just(V6Extensions)]
}

proptest! {
    /// Packets that were written are read unchanged, in each format, byte order, resolution and encapsulation.
    #[test]
    fn files_are_read_as_they_were_written(
        requests in prop::collection::vec(
            (body(), network(), 0usize..3, 1024u16..60000, 0u64..10_000_000), 1..20),
        start in 0u64..1 << 31,
        tsresol in prop_oneof![Just(6u8), Just(9), Just(0x80 | 20), Just(11)],
        big: bool,
    ) {
        let mut ticks = start;
        let mut records = Vec::new();
        for (body, net, tags, port, gap) in &requests {
            let payload = datagram(7, 0, 1, &text(body));
            let frame = frame(TAGS[*tags], *net, (CLIENT, *port), (SERVER, 11211), &payload);
            // A SET keeps only its command line, as with a short snap length.
            let snap = match body {
                Body::Set(_, len) => frame.len() - *len as usize,
                Body::Get(_) => frame.len(),
            };
            records.push(Record { interface: 0, ticks, snap, frame });
            ticks += gap;
        }
        let interface = Interface { tsresol: Some(tsresol), ..ETHERNET };
        let files = [
            (6, pcap(big, false, 1, &records)),
            (9, pcap(big, true, 1, &records)),
            (6, pcapng(big, &[ETHERNET], &records)),
            (tsresol, pcapng(big, &[interface], &records)),
        ];
        for (resolution, file) in files {
            let capture = loaded(&file);
            prop_assert_eq!(capture.packets.len(), requests.len());
            let ps = |ticks: u64| match resolution {
                6 => ticks * 1_000_000,
                9 => ticks * 1_000,
                11 => ticks * 10,
                _ => ((u128::from(ticks) * 1_000_000_000_000) >> 20) as u64,
            };
            let mut hashes = HashMap::new();
            for (i, (packet, (body, net, _, port, _))) in
                capture.packets.iter().zip(&requests).enumerate()
            {
                prop_assert_eq!(packet.at.0, ps(records[i].ticks) - ps(start));
                prop_assert_eq!(packet.wire_len as usize, records[i].frame.len());
                let ends = match net {
                    Network::V4 | Network::V4Options =>
                        (format!("10.0.0.2:{port}"), "10.0.0.1:11211"),
                    _ => (format!("[fd00::2]:{port}"), "[fd00::1]:11211"),
                };
                let flow = rss_hash(ends.0.parse().unwrap(), ends.1.parse().unwrap());
                prop_assert_eq!(packet.flow, flow);
                let mut same = |key: &str, hash| *hashes.entry(key.to_owned()).or_insert(hash) == hash;
                match (packet.command, body) {
                    (CapturedCommand::Get { key_hash, key_len, more, .. }, Body::Get(keys)) => {
                        prop_assert!(same(&keys[0], key_hash) && usize::from(key_len) == keys[0].len());
                        let more = capture.more_keys(more);
                        prop_assert_eq!(more.len(), keys.len() - 1);
                        for (found, key) in more.iter().zip(&keys[1..]) {
                            prop_assert!(same(key, found.hash) && usize::from(found.len) == key.len());
                        }
                    }
                    (CapturedCommand::Set { key_hash, key_len, value_len }, Body::Set(key, len)) => {
                        prop_assert!(same(key, key_hash) && usize::from(key_len) == key.len());
                        prop_assert_eq!(value_len, *len);
                    }
                    other => prop_assert!(false, "{:?}", other),
                }
            }
            let distinct: HashSet<u64> = hashes.values().copied().collect();
            prop_assert_eq!(distinct.len(), hashes.len());
        }
    }

    /// A file that is cut anywhere gives an error or, when it is cut between two records, a shorter capture.
    #[test]
    fn a_cut_file_is_truncated_or_shorter(at in 0.0f64..1.0, big: bool, ng: bool) {
        let records = whole((0..6).map(|i| request(5000, i, b"get k\r\n")));
        let file = match ng {
            true => pcapng(big, &[ETHERNET], &records),
            false => pcap(big, true, 1, &records),
        };
        let cut = &file[..(at * file.len() as f64) as usize];
        if let (Ok(lenient), Ok(strict)) = (leniently(cut), load(cut)) {
            prop_assert_eq!(lenient, strict);
        }
        match load(cut) {
            Ok(capture) => prop_assert!(capture.packets.len() <= 6),
            Err(Fault::Damaged(_) | Fault::Empty) => {}
            Err(other) => prop_assert!(false, "{:?}", other),
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        _ = load(&bytes);
        for header in [pcap(false, true, 1, &[]), pcapng(true, &[ETHERNET], &[])] {
            _ = load(&[header, bytes.clone()].concat());
        }
        _ = load(&pcap(false, false, 1, &whole([bytes.clone()])));
        _ = load(&pcap(false, false, 1, &whole([request(5000, 1, &bytes)])));
        let answered = [request(5000, 1, b"get k\r\n"), reply(5000, 1, 0, 1, &bytes)];
        _ = load(&pcap(false, false, 1, &whole(answered)));
    }

    #[test]
    fn flipped_bytes_never_panic(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6), ng: bool,
    ) {
        let mut records = whole((0..3).map(|i| request(5000, i, b"get k kk\r\n")));
        records.extend(whole([reply(5000, 1, 0, 1, b"VALUE k 0 3\r\nabc\r\nEND\r\n")]));
        let mut file = match ng {
            true => pcapng(false, &[ETHERNET], &records),
            false => pcap(false, true, 1, &records),
        };
        for (at, byte) in flips {
            let at = at.index(file.len());
            file[at] = byte;
        }
        _ = load(&file);
    }
}

/// The committed capture has the counts that tcpdump and tshark report (captures/count.sh).
#[test]
fn the_real_capture_holds_what_tcpdump_and_tshark_find_in_it() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures");
    let counts = std::fs::read_to_string(dir.join("memcached-udp.counts")).unwrap();
    let expected: HashMap<&str, u64> =
        counts.lines().map(|line| line.split_once(' ').unwrap()).map(|(name, n)| (name, n.parse().unwrap())).collect();
    let capture = Capture::load(&dir.join("memcached-udp.pcap"), Wanted::default()).unwrap();
    let c = capture.counts;
    assert_eq!(c.records, expected["records"]);
    assert_eq!(c.requests, expected["requests"]);
    assert_eq!((c.gets, c.sets, c.others), (expected["gets"], expected["sets"], 0));
    assert_eq!(c.replies, expected["replies"]);
    assert_eq!((c.skipped.not_udp, c.skipped.total()), (expected["not_udp"], expected["not_udp"]));

    let bytes: u64 = capture.packets.iter().map(|p| u64::from(p.wire_len)).sum();
    assert_eq!(bytes, expected["request_bytes"]);
    let flows: HashSet<u32> = capture.packets.iter().map(|p| p.flow).collect();
    assert_eq!(flows.len() as u64, expected["flows"]);
    let last = capture.packets.last().unwrap().at;
    assert_eq!(last, Time::ns(expected["last_ns"] - expected["first_ns"]));

    let mut keys = HashSet::new();
    let (mut set_bytes, mut asked) = (0, Vec::new());
    for packet in &capture.packets {
        match packet.command {
            CapturedCommand::Set { key_hash, value_len, .. } => {
                keys.insert(key_hash);
                set_bytes += u64::from(value_len);
            }
            CapturedCommand::Get { key_hash, value_len, more, .. } => {
                keys.insert(key_hash);
                asked.push(value_len);
                let more = capture.more_keys(more);
                keys.extend(more.iter().map(|k| k.hash));
                asked.extend(more.iter().map(|k| k.value_len));
            }
            CapturedCommand::Other => {}
        }
    }
    assert_eq!(set_bytes, expected["set_bytes"]);
    assert_eq!(keys.len() as u64, expected["distinct_keys"]);
    assert_eq!(asked.len() as u64, expected["keys_asked"]);
    let hits = asked.iter().flatten().filter(|n| **n > 0);
    assert_eq!(hits.clone().count() as u64, expected["values"]);
    assert_eq!(hits.map(|n| u64::from(*n)).sum::<u64>(), expected["value_bytes"]);
    let misses = asked.iter().flatten().filter(|n| **n == 0).count() as u64;
    assert_eq!(misses + c.unknown_values, expected["keys_asked"] - expected["values"]);
    assert!(misses >= expected["empty_replies"]);
}
