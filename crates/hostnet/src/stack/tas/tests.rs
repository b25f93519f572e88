use super::*;
use crate::kernel::LineAddr;

/// Lines computed by hand: a buffer has 128 lines, RPCs of 64 B begin lines, and a segment of 1448 B ends in the middle
/// of a line.
#[test]
fn bytes_of_a_buffer_lie_in_the_lines_that_follow_from_their_place() {
    let rpc = |n: u64| pieces(LineAddr(1000), 0, n * 64, 64);
    assert_eq!(
        (rpc(0), rpc(1), rpc(127)),
        (vec![(LineAddr(1000), 1)], vec![(LineAddr(1001), 1)], vec![(LineAddr(1127), 1)])
    );
    assert_eq!(rpc(128), rpc(0), "the ring begins again");
    assert_eq!(pieces(LineAddr(1000), 2, 0, 1448), vec![(LineAddr(1000 + 2 * 128), 23)]);
    // The next segment begins 40 bytes into the last line: 40 + 1448 bytes are 24 lines.
    assert_eq!(pieces(LineAddr(1000), 0, 1448, 1448), vec![(LineAddr(1022), 24)]);
    assert_eq!(pieces(LineAddr(1000), 0, 8192 - 64, 192), vec![(LineAddr(1127), 1), (LineAddr(1000), 2)]);
}

/// Ethernet 14, IP 20, TCP 20, timestamps 12 bytes; the frame of one RPC is 130 B in three lines, an acknowledgement 66
/// B in two.
#[test]
fn frames_are_headers_and_data_with_a_check_sequence_on_the_wire() {
    assert_eq!((HEADERS, frame(0), frame(64), frame(MSS)), (66, 70, 134, 1518));
    assert_eq!((lines(HEADERS), lines(HEADERS + 64), lines(HEADERS + MSS)), (2, 3, 24));
}

#[test]
fn segments_go_through_keys_unchanged() {
    for (at, bytes) in [(0, 0), (64, 64), (1 << 40, 1448)] {
        let s = TasSegment { flow: 7, at, bytes };
        assert_eq!(TasSegment::of(7, s.key()), s);
    }
}

/// A client of two flows with 30 RPCs of 64 B each: 1920 B are a segment of 1448 B and one of 472 B.
#[test]
fn a_client_acknowledges_each_segment_and_asks_again_for_each_whole_reply() {
    let text = "rpc = \"64 B\"\nflows = 2\npipelined = 30";
    let mut c = TasClient::new(&toml::from_str(text).expect("a spec"));
    assert_eq!(c.begin(Time::ZERO), 4);
    let sent: Vec<_> = std::iter::from_fn(|| c.take()).map(|s| (s.flow, s.at, s.bytes)).collect();
    assert_eq!(sent, [(0, 0, 1448), (0, 1448, 472), (1, 0, 1448), (1, 1448, 472)]);
    // 100 bytes of replies are one complete reply; the next 28 complete the second.
    assert_eq!(c.on_segment_sent(TasSegment { flow: 1, at: 0, bytes: 100 }).len(), 1);
    assert_eq!(c.on_segment_sent(TasSegment { flow: 1, at: 100, bytes: 28 }).len(), 1);
    assert_eq!(c.on_segment_arrival(Time::ns(1)), Ok(2));
    let next: Vec<_> = std::iter::from_fn(|| c.take()).map(|s| s.bytes).collect();
    assert_eq!(next, [0, 64], "an acknowledgement, and one request");
    assert_eq!((c.check(), c.requests, c.replies), (Ok(()), 61, 2));
    c.on_segment_sent(TasSegment { flow: 1, at: 200, bytes: 64 });
    c.on_segment_arrival(Time::ns(2)).expect("the second one");
    assert!(c.on_segment_arrival(Time::ns(3)).is_err_and(|e| e.contains("byte 200 came where byte 128 was next")));
}
