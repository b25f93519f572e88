//! The receive path, step by step, compared with the kernel's behaviour.

use super::*;
use crate::kernel::units::Size;
use crate::kernel::LineAddr;
use crate::stack::tcp::TcpQuirks;

/// Frames of 141 lines in pages of 64 lines; a line is represented by its offset, and a page's structure by 10^6 plus
/// the page's number.
const LAYOUT: FrameLayout = FrameLayout { frame: 141, page: 64 };
const PAYLOAD: u64 = 8948;

struct Plain;
impl FramePlaces for Plain {
    fn line(&mut self, at: u64) -> LineAddr {
        LineAddr(at)
    }
    fn structure(&mut self, at: u64) -> LineAddr {
        LineAddr(1_000_000 + at / LAYOUT.page)
    }
}

fn costs(buffer: u64) -> TcpSpec {
    TcpSpec {
        frame: 3300,
        segment: 5280,
        read: 0,
        interrupt: 0,
        wake: 0,
        receive_buffer: Size(buffer * PAYLOAD),
        quirks: TcpQuirks { piece: 200, line: 0, head: Size(256), poll_budget: 64, merge: Size(64 << 10) },
    }
}

fn receiver(s: &TcpSpec) -> Receiver {
    Receiver::new(s, LAYOUT, PAYLOAD, PAYLOAD)
}

fn land(r: &mut Receiver, seq: u32) {
    let at = u64::from(seq) * LAYOUT.frame;
    r.landed(ReceivedFrame { seq, marked: false, completion: LineAddr(9_000_000), at, last: false });
}

/// Performs one step that the core chooses, and returns its operations.
fn step(r: &mut Receiver, s: &TcpSpec) -> (ReceiverAction, Vec<Op>) {
    let (choice, mut p) = (r.choose(Time::ZERO, Some(Time::ZERO)), Program::default());
    match choice {
        ReceiverAction::Poll => r.poll(s, &mut p, &mut Plain),
        ReceiverAction::Copy => {
            r.copy(s, &mut p, Reader { buffer: LineAddr(5_000_000), lines: 2048, gap_instructions: 0 }, &mut Plain);
        }
        ReceiverAction::Release => r.release(s, &mut p, &mut Plain),
        _ => {}
    }
    r.end(Time::ZERO);
    (choice, p.ops)
}

fn structures(ops: &[Op]) -> Vec<u64> {
    let page = |o: &Op| match *o {
        Op::Store { line, .. } if (1_000_000..2_000_000).contains(&line.0) => Some(line.0 - 1_000_000),
        _ => None,
    };
    ops.iter().filter_map(page).collect()
}

#[test]
fn acknowledgements_wait_while_recv_holds_the_socket() {
    let s = costs(100);
    let mut r = receiver(&s);
    (0..2).for_each(|n| land(&mut r, n));
    assert_eq!(step(&mut r, &s).0, ReceiverAction::Poll);
    assert_eq!(r.merged(), [Merged { from: 0, to: 2, next: 2, marked: 0 }], "at once, while nobody reads");
    assert_eq!(step(&mut r, &s).0, ReceiverAction::Copy);
    (2..5).for_each(|n| land(&mut r, n));
    let (choice, ops) = step(&mut r, &s);
    assert_eq!((choice, r.merged()), (ReceiverAction::Poll, &[][..]));
    assert!(!ops.contains(&Op::Compute(s.segment)), "the protocol waits as well");
    assert_eq!(step(&mut r, &s).0, ReceiverAction::Copy);
    let (choice, ops) = step(&mut r, &s);
    assert_eq!(choice, ReceiverAction::Release, "the queue has run dry");
    assert!(ops.contains(&Op::Compute(s.segment)));
    assert_eq!(r.merged(), [Merged { from: 2, to: 5, next: 5, marked: 0 }]);
    r.check().expect("balanced");
}

/// Frame n covers lines 141 n to 141 n + 140, hence pages 141 n / 64 to (141 n + 140) / 64.
#[test]
fn users_of_pages_are_counted_when_a_frame_comes_and_when_its_segment_has_been_copied() {
    let s = costs(100);
    let mut r = receiver(&s);
    (0..2).for_each(|n| land(&mut r, n));
    let pages = [0, 1, 2, 2, 3, 4];
    let (_, ops) = step(&mut r, &s);
    assert_eq!(structures(&ops), pages);
    for (i, o) in ops.iter().enumerate().filter(|(_, o)| !structures(&[**o]).is_empty()) {
        assert_eq!((ops[i - 1], ops[i + 1]), (Op::Fence, Op::Fence), "{o:?} is locked");
    }
    for _ in 0..2 {
        let (choice, ops) = step(&mut r, &s);
        assert_eq!((choice, structures(&ops).len()), (ReceiverAction::Copy, 0));
    }
    let (choice, ops) = step(&mut r, &s);
    assert_eq!((choice, structures(&ops)), (ReceiverAction::Release, pages.to_vec()));
}

/// Frame 0 lies on three pages, and its head is a piece of its own. Each line except the first, which holds headers, is
/// stored once, and the head's lines are read when the frame is polled.
#[test]
fn a_copy_goes_in_pieces_that_end_with_their_pages() {
    let s = costs(100);
    let mut r = receiver(&s);
    land(&mut r, 0);
    let reads = |ops: &[Op]| -> Vec<u64> {
        let read = |o: &Op| match *o {
            Op::Load { line, .. } | Op::Copy { from: line, .. } if line.0 < 141 => Some(line.0),
            _ => None,
        };
        ops.iter().filter_map(read).collect()
    };
    let polled = reads(&step(&mut r, &s).1);
    let ops = step(&mut r, &s).1;
    assert_eq!([polled, reads(&ops)].concat(), (0..141).collect::<Vec<_>>());
    assert_eq!(ops.iter().filter(|o| **o == Op::Compute(200)).count(), 4);
    let stored = ops.iter().filter(|o| matches!(o, Op::Store { .. } | Op::Copy { .. })).count();
    assert_eq!(stored, 140);
}

#[test]
fn half_of_what_is_free_is_offered_and_never_taken_back() {
    let s = costs(20);
    let mut r = receiver(&s);
    assert_eq!(r.first_edge(), 10);
    (0..4).for_each(|n| land(&mut r, n));
    step(&mut r, &s);
    assert_eq!(r.acknowledge(), (4, 4 + (20 - 4) / 2));
    (4..12).for_each(|n| land(&mut r, n));
    step(&mut r, &s);
    assert_eq!(r.acknowledge(), (12, 12 + (20 - 12) / 2));
}
