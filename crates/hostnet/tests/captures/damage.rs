//! Tests of capture files that are truncated or damaged: the reader reports one sentence with the place, or returns
//! every packet before the damage.

use super::*;
use crate::common::scenario;
use hostnet::host::run;

#[test]
fn each_kind_of_damage_has_its_sentence() {
    let frames = || whole((0..3).map(|i| request(5000, i, b"get k\r\n")));
    let good = pcap(false, false, 1, &frames());
    // File header 24 bytes; each record 16 + 57.
    assert_eq!(good.len(), 24 + 3 * 73);
    for cut in [98, 112, 113, 169] {
        assert_eq!(
            sentence(&good[..cut]),
            "capture x.pcap is truncated: it ends inside the record of packet 2, which begins at byte 97"
        );
    }
    let ng = pcapng(false, &[ETHERNET], &frames());
    // Section header 28, interface 24; packet blocks 32 + 60.
    assert_eq!(
        sentence(&ng[..28 + 24 + 92 + 50]),
        "capture x.pcap is truncated: it ends inside the record of packet 2, which begins at byte 144"
    );
    let not = "capture x.pcap is not a pcap or pcapng file, or ends inside its file header";
    assert_eq!(sentence(b"plain text, long enough for a header"), not);
    assert_eq!(sentence(&good[..10]), not);
    assert_eq!(sentence(b""), not);
    assert_eq!(sentence(&good[..24]), "capture x.pcap holds no packets");
    assert_eq!(sentence(&pcapng(true, &[ETHERNET], &[])), "capture x.pcap holds no packets");
    assert_eq!(
        sentence(&pcap(true, true, 113, &frames())),
        "capture x.pcap was taken on a link of type Linux cooked (interface \"any\"), but only Ethernet can be replayed"
    );
    assert_eq!(
        sentence(&pcap(false, false, 147, &frames())),
        "capture x.pcap was taken on a link of type 147, but only Ethernet can be replayed"
    );
    assert_eq!(
        sentence(&pcap(false, false, 1, &whole([reply(5000, 1, 0, 1, b"END\r\n")]))),
        "capture x.pcap holds no memcached request to UDP port 11211 among its 1 packets"
    );
    let mut lost = frames();
    lost[1].interface = 3;
    assert_eq!(
        sentence(&pcapng(false, &[ETHERNET], &lost)),
        "capture x.pcap is damaged: packet 2 at byte 144 names interface 3, which the file does not describe"
    );
    let mut length = ng.clone();
    length[144 + 4] = 13; // not a multiple of four, and shorter than the block's header
    assert_eq!(sentence(&length), "capture x.pcap is damaged at byte 144, at or before packet 2");
    // A whole packet block of 60 bytes of packet whose captured length is 200: tshark calls the file damaged, too.
    let mut beyond = ng.clone();
    beyond[144 + 20] = 200;
    assert_eq!(sentence(&beyond), "capture x.pcap is damaged at byte 144, at or before packet 2");
    assert_eq!(sentence(&beyond[..144 + 92]), "capture x.pcap is damaged at byte 144, at or before packet 2");
    // A block whose length is no multiple of four is none, however long the file is (pcapng draft, section 3.1).
    let mut odd = ng.clone();
    odd[144 + 4] = 155;
    assert_eq!(sentence(&odd), "capture x.pcap is damaged at byte 144, at or before packet 2");
    // A section header with 100 KiB of comments, and a block of 17 MiB.
    let block = |kind: u32, body: usize| {
        let length = (12 + body as u32).to_le_bytes();
        [&kind.to_le_bytes(), &length, &vec![0; body][..], &length].concat()
    };
    let comment = [&1u16.to_le_bytes(), &50_000u16.to_le_bytes(), &vec![b'x'; 50_000][..]].concat();
    let length = (28 + 2 * comment.len() as u32).to_le_bytes();
    let long = [&ng[..4], &length, &ng[8..24], &comment, &comment, &length, &ng[28..]].concat();
    assert_eq!(loaded(&long).counts.records, 3);
    assert_eq!(
        sentence(&[&ng[..52], &block(0x7777, 17 << 20), &ng[52..]].concat()),
        format!("capture x.pcap has a block of {} B at byte 52, and {} B are the most", 12 + (17 << 20), 16 << 20)
    );
    // Before version 2.3, the length on the wire came before the captured one (libpcap, sf-pcap.c).
    let mut old = good.clone();
    old[6] = 2;
    for record in (24..old.len()).step_by(73) {
        old[record + 12] = old[record + 8];
        old[record + 8] = 200;
    }
    assert_eq!(
        sentence(&old),
        "capture x.pcap is a pcap of version 2.2, whose record of packet 1 at byte 24 is none of version 2.4; convert it with \
         `editcap -F pcap`"
    );
    let modified = [&[0xa1, 0xb2, 0xcd, 0x34], &good[4..]].concat();
    assert!(sentence(&modified).contains("is a modified pcap (magic number a1b2cd34) in big-endian byte order"));
    let mut just = frames();
    just[2].ticks = (12 * 24 + 1) * 3600 * 1_000_000;
    assert!(sentence(&pcap(false, false, 1, &just)).contains("lies 13 days behind the first"));
    let mut late = frames();
    late[2].ticks = 214 * 86_400 * 1_000_000;
    assert_eq!(
        sentence(&pcap(false, false, 1, &late)),
        "capture x.pcap is too long: packet 3 lies 214 days behind the first that is replayed, and 12 days are the most; give traffic.rate, or set traffic.pcap.timing = \"fixed\" or \"poisson\""
    );
}

/// A rate of the scenario, or one that a search tries, compresses captured times that are too long.
#[test]
fn a_search_replays_captures_of_any_length() {
    let mut packets = whole((0..400).map(|i| request(5000, i, b"get k\r\n")));
    for (i, packet) in packets.iter_mut().enumerate() {
        packet.ticks = i as u64 * 86_400 * 1_000_000 / 4; // 100 days in all
    }
    let path = std::env::temp_dir().join(format!("hostnet-long-{}.pcap", std::process::id()));
    std::fs::write(&path, pcap(false, false, 1, &packets)).expect("a file");
    let text = format!(
        r#"
        name = "long"
        platform = "icx"
        placement = {{ policy = "ddio" }}
        tenant = [{{ name = "nf", cores = 2, app = {{ kind = "touchdrop" }} }}]
        traffic = {{ arrivals = "pcap", pcap = {{ file = '{}' }} }}
        run = {{ load = "peak_nodrop", requests = 400, warmup_requests = 400, search_tolerance = 0.2 }}
        "#,
        path.display()
    );
    let found = run(&scenario(&text), &mut |_| Ok(())).map(|o| o.values.named("throughput_mrps"));
    assert!(found.as_ref().is_ok_and(|rate| *rate > Some(0.0)), "{found:?}");
    let fixed = run(&scenario(&text.replace("peak_nodrop", "fixed")), &mut |_| Ok(())).map(|o| o.warnings);
    assert!(fixed.as_ref().is_err_and(|e| e.contains("days behind the first")), "{fixed:?}");
    std::fs::remove_file(&path).expect("a file");
}

/// A claimed length that no packet has is damage wherever the file ends, in each format.
#[test]
fn an_impossible_length_is_damage_and_no_truncation() {
    let frames = || whole((0..2).map(|i| request(5000, i, b"get k\r\n")));
    let claims = |big: bool, file: &mut [u8], at: usize| {
        let length = 4_325_376u32;
        file[at..at + 4].copy_from_slice(&if big { length.to_be_bytes() } else { length.to_le_bytes() });
    };
    for big in [false, true] {
        let mut legacy = pcap(big, false, 1, &frames());
        claims(big, &mut legacy, 24 + 73 + 8);
        assert_eq!(
            sentence(&legacy),
            "capture x.pcap is damaged at byte 97, at or before packet 2: the packet claims 4325376 B, and 262144 B are the most"
        );
        // Block length and captured length of the second packet block, behind 28 + 24 + 92 bytes.
        let mut ng = pcapng(big, &[ETHERNET], &frames());
        claims(big, &mut ng, 144 + 4);
        claims(big, &mut ng, 144 + 20);
        assert!(sentence(&ng).contains("damaged at byte 144"), "{}", sentence(&ng));
        assert!(sentence(&ng).contains("claims 4325376 B"), "{}", sentence(&ng));
    }
}

/// First bytes of RFC 1952, RFC 8878, and the formats of lz4, xz and bzip2.
#[test]
fn a_compressed_capture_is_told_from_one_that_is_none() {
    for (start, program) in [
        (&b"\x1f\x8b\x08\0\0\0\0\0"[..], "gzip"),
        (b"\x28\xb5\x2f\xfd\0\0\0\0", "zstd"),
        (b"\x04\x22\x4d\x18\0\0\0\0", "lz4"),
        (b"\xfd7zXZ\0\0\0", "xz"),
        (b"BZh91AY&", "bzip2"),
    ] {
        let said = sentence(&[start, &[0; 40]].concat());
        assert_eq!(said, format!("capture x.pcap is compressed with {program}; decompress it first"));
    }
}

/// What a lenient reader is left with may have a fault of its own, which is then the one to report.
#[test]
fn damage_does_not_hide_why_the_packets_before_it_cannot_be_replayed() {
    let packets = || whole((0..2).map(|i| request(5000, i, b"get k\r\n")));
    let said = |file: Vec<u8>| {
        let fault = leniently(&[&file[..], &[1; 15]].concat()).map(drop).expect_err("nothing can be replayed");
        CaptureError { file: "x.pcap".into(), fault }.to_string()
    };
    assert!(said(pcap(false, false, 101, &packets())).contains("taken on a link of type raw IP"));
    let mut far = packets();
    far[1].ticks = 300 * 86_400 * 1_000_000;
    assert!(said(pcap(false, false, 1, &far)).contains("is too long: packet 2 lies 300 days behind"));
    let replies = whole([reply(5000, 1, 0, 1, b"END\r\n")]);
    assert!(said(pcap(false, false, 1, &replies)).contains("holds no memcached request"));
}

pub fn leniently(bytes: &[u8]) -> Result<Capture, Fault> {
    Capture::read(bytes, CaptureOptions { lenient: true, ..CaptureOptions::default() })
}

/// When a file is damaged, a lenient reader returns every packet before the damage, and no other packet.
#[test]
fn a_lenient_reader_has_every_packet_before_the_damage() {
    let frames = || whole((0..5).map(|i| request(5000 + i, 1, b"get k\r\n")));
    let whole_of = |n: usize| loaded(&pcap(false, false, 1, &frames()[..n])).packets;
    for big in [false, true] {
        // File header 24 bytes, each record 16 + 57.
        let good = pcap(big, false, 1, &frames());
        let cut = leniently(&good[..24 + 3 * 73 + 40]).unwrap();
        assert_eq!((cut.packets, cut.counts.records), (whole_of(3), 3));
        let said = Fault::Damaged(cut.damage.expect("damage"));
        let said = CaptureError { file: "x.pcap".into(), fault: said }.to_string();
        assert_eq!(
            said,
            "capture x.pcap is truncated: it ends inside the record of packet 4, which begins at byte 243"
        );
        // A length beyond any snap length: the reader cannot find the record after such a packet.
        let mut long = pcap(big, false, 1, &frames());
        long[24 + 2 * 73 + 8..][..4].copy_from_slice(&if big {
            300_000u32.to_be_bytes()
        } else {
            300_000u32.to_le_bytes()
        });
        long.resize(400_000, 0);
        assert_eq!(load(&long).map(drop), Err(leniently(&long).unwrap().damage.expect("damage").into()));
        assert!(sentence(&long).contains("damaged at byte 170, at or before packet 3"), "{}", sentence(&long));
        assert_eq!(leniently(&long).unwrap().packets, whole_of(2));
        // pcapng: section header 28, interface 24, packet blocks 32 + 60; one block names an interface that does not
        // exist.
        let mut lost = frames();
        lost[3].interface = 9;
        assert_eq!(leniently(&pcapng(big, &[ETHERNET], &lost)).unwrap().packets, whole_of(3));
        // An option of the interface, whose time resolution comes after it, claims more bytes than the block has.
        let mut option = pcapng(big, &[Interface { tsresol: Some(9), ..ETHERNET }], &frames());
        option[28 + 16 + 2..][..2].copy_from_slice(&[0x7f; 2]);
        assert_eq!(sentence(&option), "capture x.pcap is damaged at byte 28, at or before packet 1");
        // The second length of a block contradicts the first.
        let mut ng = pcapng(big, &[ETHERNET], &frames());
        let end = 28 + 24 + 2 * 92;
        ng[end - 4..end].copy_from_slice(&[0x11; 4]);
        assert!(sentence(&ng).contains("packet 2"), "{}", sentence(&ng));
        assert_eq!(leniently(&ng).unwrap().packets, whole_of(1));
    }
    let rows = leniently(&pcap(false, false, 1, &frames())[..24 + 73 + 5]).unwrap().rows(None);
    let note = ("note", "packets before the damage that ends the file".to_string(), 1);
    assert!(rows.contains(&note), "{rows:?}");
    assert_eq!(leniently(&pcap(false, false, 1, &frames())).unwrap().damage, None);
}

/// A file of which no packet is usable is refused because of its damage.
#[test]
fn damage_before_the_first_packet_is_a_sentence_for_lenient_readers_too() {
    let good = pcap(false, false, 1, &whole([request(5000, 1, b"get k\r\n")]));
    let Err(fault) = leniently(&good[..60]) else { panic!("nothing is left") };
    let said = CaptureError { file: "x.pcap".into(), fault }.to_string();
    assert_eq!(said, "capture x.pcap is truncated: it ends inside the record of packet 1, which begins at byte 24");
    assert!(leniently(b"no capture at all, but long enough").is_err());
}
