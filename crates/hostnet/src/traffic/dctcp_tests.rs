//! One sender, compared with RFC 8257 and Linux.

use super::*;

const G: f64 = 1.0 / 16.0;

fn flow(window: u32) -> DctcpFlow {
    DctcpFlow::new(&DctcpSpec { initial_window: window, ..DctcpSpec::default() }, 10_000, 9014)
}

fn send_all(f: &mut DctcpFlow, now: Time) {
    while f.may_send() {
        f.send(now);
    }
}

/// Delivers all outstanding segments, `marked` of them with a mark, in one acknowledgement.
fn round(f: &mut DctcpFlow, marked: u32, now: Time) {
    send_all(f, now);
    let (from, to) = (f.base, f.next());
    f.acknowledge(&Ack { flow: 0, next: to, from, to, edge: 10_000, marked }, G, 1, now);
}

/// RFC 8257: alpha = (1 - g) alpha + g F, and a window with marks shrinks by alpha / 2.
#[test]
fn alpha_follows_the_marked_share_and_the_window_follows_alpha() {
    let mut f = flow(16);
    f.threshold = 16.0;
    for k in 1..=5 {
        round(&mut f, 0, Time::us(k));
        assert!((f.alpha - (1.0 - G).powi(k as i32)).abs() < 1e-12);
    }
    let (alpha, out) = (f.alpha, f.window.floor());
    let before = f.window + out / f.window; // acknowledged segments increase the window first
    round(&mut f, (out / 2.0) as u32, Time::us(9));
    let expected = (1.0 - G) * alpha + G * (out / 2.0).floor() / out;
    assert!((f.alpha - expected).abs() < 1e-12, "{} against {expected}", f.alpha);
    assert!((f.window - before * (1.0 - expected / 2.0)).abs() < 1e-9, "{}", f.window);
}

#[test]
fn an_unmarked_flow_doubles_its_window_a_round_until_the_threshold_and_then_adds_one() {
    let mut f = flow(4);
    f.threshold = 16.0;
    for expected in [8.0, 16.0, 17.0] {
        round(&mut f, 0, Time::us(1));
        assert!((f.window - expected).abs() < 1e-9, "{} against {expected}", f.window);
    }
}

#[test]
fn a_gap_of_three_is_a_loss_that_is_sent_again_and_halves_the_window_once() {
    let mut f = flow(16);
    send_all(&mut f, Time::ZERO);
    let ack = |next, from, to| Ack { flow: 0, next, from, to, edge: 10_000, marked: 0 };
    // Segment 0 is lost, then segment 8: both within one window.
    f.acknowledge(&ack(0, 1, 3), G, 1, Time::us(1));
    assert_eq!((f.lost, f.out), (0, 14), "two later ones prove nothing");
    f.acknowledge(&ack(0, 3, 8), G, 1, Time::us(1));
    assert_eq!((f.lost, f.out), (1, 8));
    assert_eq!(f.window, 8.0);
    f.acknowledge(&ack(0, 9, 16), G, 1, Time::us(1));
    assert_eq!((f.lost, f.out), (2, 0));
    assert_eq!(f.window, 8.0, "halved once for this window");
    assert_eq!((f.send(Time::us(2)), f.send(Time::us(2))), (0, 8));
    assert_eq!(f.retransmitted, 2);
    f.acknowledge(&ack(8, 0, 1), G, 1, Time::us(3));
    f.acknowledge(&ack(16, 8, 9), G, 1, Time::us(3));
    assert_eq!((f.base, f.out, f.lost, f.recover), (16, 0, 0, None));
}

#[test]
fn a_closed_window_stops_a_flow_and_an_update_lets_it_go_on() {
    let mut f = flow(100);
    f.edge = 5;
    send_all(&mut f, Time::ZERO);
    assert_eq!(f.next(), 5);
    f.acknowledge(&Ack { flow: 0, next: 0, from: 0, to: 0, edge: 9, marked: 0 }, G, 1, Time::us(1));
    send_all(&mut f, Time::us(1));
    assert_eq!(f.next(), 9);
}

#[test]
fn a_sender_keeps_what_its_socket_holds_until_it_is_acknowledged() {
    let spec = DctcpSpec { initial_window: 100, send_buffer: Size(20 * 9014 + 500), ..DctcpSpec::default() };
    let mut f = DctcpFlow::new(&spec, 10_000, 9014);
    send_all(&mut f, Time::ZERO);
    assert_eq!(f.next(), 20);
    f.acknowledge(&Ack { flow: 0, next: 5, from: 0, to: 5, edge: 10_000, marked: 0 }, G, 1, Time::us(1));
    send_all(&mut f, Time::us(1));
    assert_eq!(f.next(), 25);
}

#[test]
fn silence_sends_the_last_segment_again() {
    let mut f = flow(4);
    send_all(&mut f, Time::ZERO);
    assert!(f.probe());
    assert_eq!(f.send(Time::us(2000)), 3);
    // The arrival of the last segment shows that the three segments before it are lost.
    f.acknowledge(&Ack { flow: 0, next: 0, from: 3, to: 4, edge: 10_000, marked: 0 }, G, 1, Time::us(2040));
    assert_eq!((f.lost, f.out), (2, 1));
}
