//! Any bytes as a packet capture: loading must neither panic nor break its own bookkeeping.
#![no_main]

use hostnet::traffic::pcap::{Capture, CaptureOptions, CapturedCommand, Wanted};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for wanted in [Wanted::default(), Wanted::Frames(None), Wanted::Frames(Some(53))] {
        check(bytes, wanted.into());
        check(bytes, CaptureOptions { wanted, lenient: true, untimed: true, frames: true });
    }
});

fn check(bytes: &[u8], how: CaptureOptions) {
    let Ok(capture) = Capture::read(bytes, how) else {
        return;
    };
    let c = &capture.counts;
    assert_eq!(c.records, c.requests + c.replies + c.skipped.total());
    assert_eq!(c.requests as usize, capture.packets.len());
    assert_eq!(capture.frames.len(), if how.frames { capture.packets.len() } else { 0 });
    assert!(how.untimed || capture.packets.is_sorted_by_key(|p| p.at));
    for packet in &capture.packets {
        if let CapturedCommand::Get { more, .. } = packet.command {
            assert_eq!(capture.more_keys(more).len(), usize::from(more.count));
        }
    }
}
