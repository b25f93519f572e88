//! Tests of the NIC model as software sees it, attached on the chip and behind a port.

mod bench;

use bench::{ethernet, Bench, Seen, ATTACHMENTS, LINES, ON_PORT, QUEUES, SLOTS};
use hostnet::app::touchdrop::Touchdrop;
use hostnet::app::{AppBuildContext, Application};
use hostnet::core::{Op, Retired};
use hostnet::device::nic::EthernetSpec;
use hostnet::device::NicAt;
use hostnet::kernel::units::{Bandwidth, Size};
use hostnet::kernel::{CoreId, PacketId, QueueId, RandomStream, TenantId, ThreadId, Time};
use hostnet::memory::region::AddressMap;
use hostnet::meter::drops::{DropCause, DropPlace};
use hostnet::stack::qp::QpEffect;
use std::collections::HashSet;

/// Packets that software has received by the end, with the times at which software saw them, in order.
fn see_all(b: &mut Bench) -> Vec<(QueueId, PacketId, Time)> {
    let mut all = Vec::new();
    while let Some(seen) = b.step() {
        let now = b.m.now;
        all.extend(seen.into_iter().filter_map(|s| match s {
            Seen::Visible(queue, id) => Some((queue, id, now)),
            Seen::Sent(_) | Seen::Free | Seen::Retired | Seen::Doorbell(_) => None,
        }));
    }
    all
}

#[test]
fn packets_of_a_queue_are_seen_in_the_order_of_their_arrival() {
    for a in ATTACHMENTS {
        let mut b = Bench::new(a);
        for key in 0..2 * u64::from(SLOTS) {
            b.arrive(Bench::packet(key as u32 % 2, key)).expect("as many buffers as packets");
        }
        let seen = see_all(&mut b);
        assert_eq!(seen.len(), 2 * SLOTS as usize, "{a:?}");
        for queue in 0..QUEUES {
            let mut keys = Vec::new();
            while let Some(id) = b.nic().take(QueueId::new(queue)) {
                keys.push(b.nic().packet(id).key);
            }
            let expected: Vec<u64> = (0..2 * u64::from(SLOTS)).filter(|k| *k as usize % 2 == queue).collect();
            assert_eq!(keys, expected, "{a:?}, queue {queue}");
        }
    }
}

/// After every event, for a wire that delivers more packets than software returns buffers for.
#[test]
fn at_any_time_what_came_was_seen_or_lost_or_is_inside() {
    for a in ATTACHMENTS {
        let (mut b, mut dice) = (Bench::new(a), RandomStream::new(5, "wire", 0));
        let (mut offered, mut seen, mut refused) = (0, 0, 0);
        for _ in 0..400 {
            for _ in 0..dice.below(4) {
                offered += 1;
                refused += u64::from(b.arrive(Bench::packet(dice.below(2) as u32, offered)).is_err());
            }
            for _ in 0..dice.below(60) {
                let Some(events) = b.step() else { break };
                for e in events {
                    let Seen::Visible(queue, id) = e else { continue };
                    seen += 1;
                    assert_eq!(b.nic().take(queue), Some(id));
                    if dice.below(3) > 0 {
                        b.give_back(id);
                        b.nic().end_use(id);
                    }
                }
                let nic = b.nic();
                assert_eq!(offered, seen + nic.drops.total() + nic.packets_inside(), "{a:?}");
                nic.check().expect("balanced books");
            }
        }
        assert!(refused <= b.nic().drops.total() && b.nic().drops.total() > 100, "{a:?}: the test loses packets");
    }
}

#[test]
fn a_full_ring_loses_what_has_no_buffer_and_says_why() {
    for a in ATTACHMENTS {
        let mut b = Bench::new(a);
        b.m.now = Time::ns(50);
        for i in 0..SLOTS + 4 {
            let _ = b.arrive(Bench::packet(0, i.into()));
        }
        assert_eq!(see_all(&mut b).len(), SLOTS as usize);
        assert_eq!((b.nic().buffers(QueueId(0)), b.nic().buffers(QueueId(1))), (0, SLOTS));
        let losses: Vec<_> = b.nic().drops.losses().copied().collect();
        assert_eq!(losses.len(), 1);
        let l = losses[0];
        assert_eq!((l.place, l.cause, l.count), (DropPlace::DescriptorRing, DropCause::NoDescriptor, 4), "{a:?}");
        assert!(Time::ns(50) <= l.first && l.first <= l.last && l.last <= b.m.now);
    }
}

/// Two thousand packets through sixteen buffers, which software keeps for arbitrary times.
#[test]
fn no_buffer_is_given_to_two_packets_at_once() {
    for a in ATTACHMENTS {
        let (mut b, mut dice) = (Bench::new(a), RandomStream::new(7, "software", 0));
        let (mut with_software, mut used) = (Vec::new(), HashSet::new());
        let mut packets = 0;
        while packets < 2000 {
            let _ = b.arrive(Bench::packet(0, 0));
            while let Some(events) = b.step() {
                for e in events {
                    let Seen::Visible(queue, id) = e else { continue };
                    assert_eq!(b.nic().take(queue), Some(id));
                    let line = b.nic().packet(id).line;
                    let (from, to) = (b.rx, b.rx + u64::from(SLOTS) * LINES);
                    assert!((from..to).contains(&line) && (line - from) % LINES == 0, "{a:?}: {line} is no buffer");
                    assert!(used.insert(line), "{a:?}: the buffer at {line} has two packets");
                    with_software.push(id);
                    packets += 1;
                }
            }
            while with_software.len() > dice.below(u64::from(SLOTS)) as usize {
                let id = with_software.swap_remove(dice.below(with_software.len() as u64) as usize);
                assert!(used.remove(&b.nic().packet(id).line));
                b.give_back(id);
                b.nic().end_use(id);
            }
        }
    }
}

#[test]
fn a_buffer_goes_back_in_two_steps() {
    for a in ATTACHMENTS {
        let mut b = Bench::new(a);
        (0..SLOTS).for_each(|i| b.arrive(Bench::packet(0, i.into())).expect("there is a buffer"));
        let ids: Vec<PacketId> = see_all(&mut b).iter().map(|s| s.1).collect();
        let now = b.m.now;
        b.nic().replenish(QueueId(0), 4, now);
        assert_eq!(b.nic().buffers(QueueId(0)), 0, "{a:?}: software has no buffer to hand out");
        ids[..3].iter().for_each(|id| b.nic().release(*id));
        assert_eq!(b.nic().buffers(QueueId(0)), 0, "{a:?}: it has not handed them out");
        b.nic().replenish(QueueId(0), 2, now);
        assert_eq!(b.nic().buffers(QueueId(0)), 2);
        b.nic().replenish(QueueId(0), 9, now);
        assert_eq!(b.nic().buffers(QueueId(0)), 3);
    }
}

#[test]
fn a_queue_that_is_too_deep_drops_by_policy_and_not_for_want_of_buffers() {
    for a in ATTACHMENTS {
        let mut b = Bench::new(a);
        b.nic().drop_depth = Some(5);
        for i in 0..8 {
            let _ = b.arrive(Bench::packet(0, i));
            see_all(&mut b);
        }
        let n = b.nic();
        assert_eq!((n.waiting(QueueId(0)), n.drops.of(DropCause::TooLate), n.drops.count()), (5, 3, 3), "{a:?}");
    }
}

/// The least time of a reply of four lines. On the chip: the message, the crossbar to the home agent and back with the
/// look-up in between (8 + 35 + 8 cycles of 3.2 GHz), and the pipeline. Behind a port of sixteen lanes of 7.64 Gb/s: 32
/// bytes of doorbell and two flights; 24 bytes of request; 150 ns and 2 ns per line to the home agent, the look-up, and
/// 55 ns back. Then 276 bytes of completion and two flights, and 294 bytes at 80 ps on the wire.
fn least_reply(a: NicAt) -> Time {
    let cycles = |n: u64| Time(n * 312_500 / 1000);
    match a {
        NicAt::Chip => {
            let nic = bench::spec().platform.nic;
            Time(nic.notify.0 + nic.pipeline.0) + cycles(8 + 35 + 8)
        }
        NicAt::Port(_) => {
            let byte = 8e3 / (8.0 * 128.0 / 130.0 * 16.0 * 0.97);
            let link = Time(((32.0 + 24.0 + 276.0) * byte) as u64);
            link + Time::ns(4 * 150 + 150 + 3 * 2 + 55) + cycles(35) + Time(294 * 80)
        }
    }
}

#[test]
fn a_reply_leaves_when_its_data_is_there_and_its_buffer_comes_back() {
    for a in ATTACHMENTS {
        let mut b = Bench::new(a);
        b.arrive(Bench::packet(0, 1)).expect("there is a buffer");
        let id = see_all(&mut b)[0].1;
        assert_eq!(b.nic().take(QueueId(0)), Some(id));
        b.give_back(id);
        // The reply lies in the LLC, as after a packet that arrived there.
        let line = b.nic().next_tx(QueueId(0));
        for l in line.span(LINES) {
            b.m.mem.spill_functional(&mut b.m.cal, CoreId(0), l);
        }
        let posted = b.m.now;
        b.reply(id, LINES as u16);
        let mut sent = None;
        while let Some(seen) = b.step() {
            if seen == [Seen::Sent(id)] {
                sent = Some(b.m.now - posted);
                b.sent(id);
            }
        }
        let (took, least) = (sent.expect("it leaves"), least_reply(a));
        assert!(took >= least && took.0 <= least.0 + 5_000, "{a:?}: {took} against {least}");
        assert_eq!(b.nic().counts.sent, 1);
        // Sixteen replies may be in flight together, and one more has to wait.
        for i in 0..=SLOTS {
            b.arrive(Bench::packet(0, i.into())).expect("buffers come back");
            see_all(&mut b);
            let taken = b.nic().take(QueueId(0));
            assert_eq!(taken.is_some(), i < SLOTS, "{a:?}: {i} replies are out");
            if let Some(id) = taken {
                let now = b.m.now;
                b.nic().reserve_tx(QueueId(0), now);
                b.give_back(id);
            }
        }
    }
}

/// Queue pairs that read every packet and answer it with a packet of the same size: two hundred packets, none of which
/// is lost.
#[test]
fn an_echo_runs_on_every_attachment() {
    for a in ATTACHMENTS {
        let (mut b, mut dice) = (Bench::new(a), RandomStream::new(9, "echo", 0));
        let (mut offered, mut answered) = (0, 0);
        let (mut serving, mut idle) = (Vec::new(), 0);
        while answered < 200 {
            if offered < 200 && dice.below(4) == 0 && b.nic().unconsumed(QueueId::new(offered as usize % 2)) < 8 {
                b.arrive(Bench::packet(offered as u32 % 2, offered)).expect("room for eight");
                offered += 1;
            }
            let events = b.step();
            idle = if events.is_some() { 0 } else { idle + 1 };
            assert!(idle < 1000, "{a:?}: nothing is left to do, and {answered} of {offered} packets are answered");
            for e in events.unwrap_or_default() {
                match e {
                    Seen::Visible(queue, _) => serving.push(queue),
                    Seen::Sent(id) => {
                        b.sent(id);
                        answered += 1;
                    }
                    Seen::Free | Seen::Retired | Seen::Doorbell(_) => unreachable!("no core runs"),
                }
            }
            serving.retain(|queue| {
                let Some(id) = b.nic().take(*queue) else { return true };
                b.reply(id, LINES as u16);
                b.give_back(id);
                false
            });
        }
        assert!(see_all(&mut b).is_empty() && serving.is_empty());
        let counts = b.nic().counts.clone();
        assert_eq!((counts.offered, counts.delivered, counts.sent), (200, 200, 200), "{a:?}");
        assert_eq!(
            (b.nic().buffers(QueueId(0)), b.nic().buffers(QueueId(1))),
            (SLOTS, SLOTS),
            "{a:?}: buffers come back"
        );
        assert_eq!(b.m.mem.in_flight(), 0, "{a:?}: a request is lost");
        b.m.mem.check().expect("no dirty line is lost");
        if let Some(iio) = &b.m.iio {
            iio.check().expect("every credit is accounted for");
            assert!(iio.is_idle(), "a credit has not come back");
        }
    }
}

/// A core polls its queue and reads every line: TouchDrop, and then the same with a reply of four lines. At the end the
/// test checks that no packet or credit is left.
#[test]
fn a_queue_pair_s_core_reads_and_answers_through_every_attachment() {
    const PACKETS: u64 = 300;
    let qp = bench::spec().platform.queue_pair;
    for (a, answers) in ATTACHMENTS.into_iter().flat_map(|a| [(a, false), (a, true)]) {
        let mut b = Bench::new(a);
        let mut map = AddressMap::default();
        let site = AppBuildContext::new(&mut map, TenantId(0), &[ThreadId(0)], 1);
        let spec = serde_json::from_str("{}").expect("defaults");
        let mut app = Touchdrop::build(&spec, 64 * LINES as u32, site).expect("it keeps no data");
        let content = app.content(0, &mut RandomStream::new(1, "content", 0));
        let (mut offered, mut ended, mut idle, mut sent) = (0, 0, true, 0);
        while ended < PACKETS || sent < PACKETS * u64::from(answers) {
            while offered < PACKETS && b.nic().unconsumed(QueueId(0)) < 6 && b.nic().buffers(QueueId(0)) > 6 {
                b.arrive(Bench::packet(0, offered)).expect("there are buffers");
                offered += 1;
            }
            for e in b.step().expect("there is more to do") {
                match e {
                    Seen::Visible(..) => {}
                    Seen::Free => idle = true,
                    Seen::Sent(id) => {
                        b.sent(id);
                        sent += 1;
                    }
                    Seen::Doorbell(tag) => b.post(QpEffect::of(tag).1),
                    Seen::Retired => {
                        while let Some(r) = b.m.retired(ThreadId(0)) {
                            let Retired::Tag(tag) = r else {
                                assert!(a == ON_PORT && matches!(r, Retired::Mmio(_)), "{a:?}: {r:?}");
                                continue; // on its way
                            };
                            match QpEffect::of(tag) {
                                (QpEffect::Post, id) => b.post(id),
                                (QpEffect::FreeRx, id) => {
                                    b.give_back(id);
                                    ended += 1;
                                }
                                (QpEffect::Done, id) => b.nic().end_use(id),
                            }
                        }
                    }
                }
            }
            let Some(id) = idle.then(|| b.nic().take(QueueId(0))).flatten() else { continue };
            idle = false;
            let (p, tx, now) = (*b.nic().packet(id), b.nic().next_tx(QueueId(0)), b.m.now);
            b.m.cpus[ThreadId(0)].program.ops.clear();
            b.m.cpus[ThreadId(0)].program.compute(qp.poll_instructions);
            app.serve(0, &content, p.line, tx, &mut b.m.cpus[ThreadId(0)].program);
            if answers {
                b.m.cpus[ThreadId(0)].program.push(Op::Store { line: tx, lines: LINES as u32 });
                b.m.cpus[ThreadId(0)].program.compute(qp.post_instructions);
                b.m.cpus[ThreadId(0)].program.push(Op::Mmio { tag: QpEffect::Post.tag(id) });
                b.nic().reserve_tx(QueueId(0), now);
                (b.nic().packet(id).tx_line, b.nic().packet(id).tx_lines) = (tx, LINES as u16);
            }
            b.m.cpus[ThreadId(0)].program.push(Op::Retire { tag: QpEffect::FreeRx.tag(id), stores: false });
            if !answers {
                b.m.cpus[ThreadId(0)].program.push(Op::Retire { tag: QpEffect::Done.tag(id), stores: true });
            }
            b.m.start(ThreadId(0));
        }
        see_all(&mut b);
        let c = b.nic().counts.clone();
        let replies = PACKETS * u64::from(answers);
        assert_eq!((c.offered, c.delivered, c.sent, b.nic().packets_inside()), (PACKETS, PACKETS, replies, 0), "{a:?}");
        assert_eq!((b.nic().buffers(QueueId(0)), b.nic().waiting(QueueId(0))), (SLOTS, 0), "{a:?}");
        assert_eq!(b.m.mem.in_flight(), 0, "{a:?}: a request is lost");
        b.m.mem.check().expect("no dirty line is lost");
        assert!(b.m.iio.as_ref().is_none_or(|i| i.is_idle()), "a credit has not come back");
    }
}

/// The receive buffer holds three packets of 256 bytes and loses a fourth packet that arrives before a line has left.
#[test]
fn a_receive_buffer_that_is_full_says_so() {
    let small = EthernetSpec { receive_buffer: Size(3 * 256 + 100), ..ethernet() };
    let mut b = Bench::with(ON_PORT, &small, 1);
    // The first packet leaves immediately: its lines have left the buffer.
    let verdicts: Vec<_> = (0..6).map(|i| b.arrive(Bench::packet(0, i))).collect();
    assert_eq!(verdicts.iter().filter(|v| v.is_ok()).count(), 4);
    assert!(verdicts[4..].iter().all(|v| *v == Err(DropCause::BufferFull)));
    assert_eq!(see_all(&mut b).len(), 4);
    assert_eq!(b.nic().peak(), Some(3 * 256));
}

/// Both directions at the same time over four lanes. A request of 512 bytes takes 24 bytes up and 552 bytes down. The
/// downstream link limits reads. Writes have the part of the upstream link that requests leave, with 256 of 280 bytes
/// as payload, and a fifth of them are completions of 88 bytes.
#[test]
fn both_ways_share_a_link_as_their_packets_take_it() {
    let fast = EthernetSpec { link: Bandwidth(400_000_000_000), ..ethernet() };
    let mut b = Bench::with(ON_PORT, &fast, 4);
    let tx = b.tx;
    b.nic().attach_transmit(QueueId(1), tx, 64, LINES);
    let (mut received, mut sent) = (0, 0);
    let mut window = None;
    let mut posted = 0;
    loop {
        while b.nic().unconsumed(QueueId(0)) < 8 && b.nic().packets_inside() < 12 {
            b.arrive(Bench::packet(0, 0)).expect("room");
        }
        while posted < 60 {
            let now = b.m.now;
            let line = b.nic().next_tx(QueueId(1));
            b.nic().reserve_tx(QueueId(1), now);
            let p = hostnet::device::nic::Packet {
                queue: QueueId(1),
                tx_line: line,
                tx_lines: 4,
                uses: 1,
                ..Default::default()
            };
            let id = b.nic().register_packet(p);
            b.post(id);
            posted += 1;
        }
        for e in b.step().expect("there is always something to do") {
            match e {
                Seen::Visible(queue, id) => {
                    assert_eq!(b.nic().take(queue), Some(id));
                    b.give_back(id);
                    b.nic().end_use(id);
                    received += 1;
                }
                Seen::Sent(id) => {
                    b.sent(id);
                    sent += 1;
                    posted -= 1;
                }
                Seen::Free | Seen::Retired | Seen::Doorbell(_) => unreachable!("no core runs"),
            }
        }
        if b.m.now >= Time::us(20) && window.is_none() {
            window = Some((b.m.now, received, sent));
        }
        if b.m.now >= Time::us(220) {
            break;
        }
    }
    let (start, r0, s0) = window.expect("a window");
    let ns = (b.m.now - start).as_ns();
    let link = 8.0 * 128.0 / 130.0 * 4.0 * 0.97 / 8.0; // GB/s
                                                       // A reply of 256 bytes: 24 bytes up, and 276 bytes down together
                                                       // with a doorbell of 32.
    let replies = link / (276.0 + 32.0);
    let packets = (link - replies * 24.0) / (280.0 + 88.0);
    let (read, written) = ((sent - s0) as f64 / ns, (received - r0) as f64 / ns);
    assert!((read / replies - 1.0).abs() < 0.01, "{read} replies a ns, {replies} by the link down");
    assert!((written / packets - 1.0).abs() < 0.01, "{written} packets a ns, {packets} by the link up");
}
