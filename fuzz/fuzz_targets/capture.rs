//! Any bytes as a packet capture: loading must neither panic nor break its own bookkeeping.
#![no_main]

use hostnet::traffic::pcap::{Capture, Command, Wanted};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for wanted in [Wanted::default(), Wanted::Frames(None), Wanted::Frames(Some(53))] {
        check(bytes, wanted);
    }
});

fn check(bytes: &[u8], wanted: Wanted) {
    let Ok(capture) = Capture::read(bytes, wanted) else {
        return;
    };
    let c = &capture.counts;
    assert_eq!(c.records, c.requests + c.replies + c.skipped.total());
    assert_eq!(c.requests as usize, capture.packets.len());
    assert!(capture.packets.is_sorted_by_key(|p| p.at));
    for packet in &capture.packets {
        if let Command::Get { more, .. } = packet.command {
            assert_eq!(capture.more_keys(more).len(), usize::from(more.count));
        }
    }
}
