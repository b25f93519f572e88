//! Queues that share a pool, are closed and opened again, and lose their NIC.

use std::sync::atomic::{AtomicBool, Ordering};

use ccnic::mem::Mem;
use ccnic::{Config, Error, HostPort, HostQueue, NicPort, NicQueue, Rss};

/// Every queue pair goes on receiving, whatever the others keep in their stacks.
#[test]
fn no_queue_is_starved_by_the_stacks_of_the_others() {
    for (queues, bytes) in [(1, 1500), (2, 1500), (3, 1500), (4, 1500), (8, 1500), (8, 64), (32, 64), (64, 1500)] {
        let mut port = HostPort::create_private(Config { queues, ..Config::default() }).expect("valid");
        let mut hosts: Vec<HostQueue> = (0..queues).map(|q| port.queue(q).expect("fresh")).collect();
        let mut nic = port.local_nic().expect("first");
        let mut nics: Vec<NicQueue> = (0..queues).map(|q| nic.queue(q).expect("fresh")).collect();
        let payload = vec![1u8; bytes];
        for round in 0..20_000 {
            let q = round % queues as usize;
            let mut packet = nics[q].alloc_packet(bytes).expect("honest").expect("a buffer is free");
            nics[q].write_packet(&packet, &payload);
            nics[q].rx_post(&mut packet).expect("honest");
            let mut bufs = Vec::new();
            assert_eq!(hosts[q].rx(&mut bufs, 32).expect("honest"), 1, "{queues} queues, round {round}");
            hosts[q].free(&mut bufs);
        }
        let audit = port.audit(&hosts.iter().collect::<Vec<_>>());
        assert!(audit.stacked <= audit.total / 4, "{audit:?}");
    }
}

/// A side that finds no buffer is counted, and the others' stacks come to it.
#[test]
fn starvation_is_counted_and_empties_the_other_stacks() {
    let config = Config { queues: 2, buffers: 64, small: false, ..Config::default() };
    let mut port = HostPort::create_private(config).expect("valid");
    let (mut a, mut b) = (port.queue(0).expect("first"), port.queue(1).expect("second"));
    let (mut mine, mut theirs) = (Vec::new(), Vec::new());
    // Everything is out but what lies in the stack of `a`.
    a.alloc(&mut mine, 1, 1500);
    a.free(&mut mine);
    let idle = port.audit(&[&a, &b]).stacked;
    assert!(idle > 0);
    assert_eq!(b.alloc(&mut theirs, 64, 1500), 64 - idle);
    assert_eq!(b.stats().starved, 1);
    // The next burst of `a` gives it all back.
    a.alloc(&mut mine, 1, 1500);
    a.free(&mut mine);
    assert_eq!(b.alloc(&mut theirs, idle, 1500), idle);
    assert_eq!(b.stats().starved, 1);
}

/// With few buffers, or many queues, the host posts fewer blanks and keeps some to send.
#[test]
fn posted_blanks_leave_buffers_to_send() {
    for (queues, slots, buffers) in [(1, 1024, 1000), (1, 1024, 64), (4, 1024, 2048), (4, 1024, 64), (64, 64, 1024)] {
        let mut port =
            HostPort::create_private(Config { queues, slots, buffers, ..Config::unoptimised() }).expect("valid");
        let mut hosts: Vec<HostQueue> = (0..queues).map(|q| port.queue(q).expect("fresh")).collect();
        let mut nic = port.local_nic().expect("first");
        let mut nics: Vec<NicQueue> = (0..queues).map(|q| nic.queue(q).expect("fresh")).collect();
        for host in &mut hosts {
            host.rx(&mut Vec::new(), 1).expect("honest");
        }
        for round in 0..3 * slots as usize {
            for (host, nic) in hosts.iter_mut().zip(&mut nics) {
                assert!(turn(host, nic), "{queues} queues, {slots} slots, {buffers} buffers, round {round}");
            }
        }
    }
}

/// Transfers between stacks and pool, per packet, over a thousand bursts of one queue.
fn pool_traffic(host: &mut HostQueue, nic: &mut NicQueue) -> u64 {
    let before = host.stats();
    (0..1000).for_each(|_| assert!(turn(host, nic)));
    let after = host.stats();
    after.pool_takes + after.pool_puts - before.pool_takes - before.pool_puts
}

/// The others recycle again once the buffers that were missing are back, or who missed them is gone.
#[test]
fn starvation_that_is_over_leaves_recycling_on() {
    for close_hungry in [false, true] {
        let mut port = HostPort::create_private(Config { queues: 2, ..Config::default() }).expect("valid");
        let (mut a, mut b) = (port.queue(0).expect("first"), port.queue(1).expect("second"));
        let mut nic = port.local_nic().expect("first");
        let (mut na, _nb) = (nic.queue(0).expect("first"), nic.queue(1).expect("second"));
        assert!(turn(&mut a, &mut na));
        let usual = pool_traffic(&mut a, &mut na);
        let mut all = Vec::new();
        b.alloc(&mut all, 1 << 20, 1500);
        assert_eq!(b.stats().starved, 1);
        if close_hungry {
            // Most of what it took stays with the application.
            b.free(&mut all.split_off(100));
            b.alloc(&mut all, 1 << 20, 1500);
            let mut few = all.split_off(all.len() - 8);
            drop(b);
            a.free(&mut few);
        } else {
            b.free(&mut all);
        }
        assert_eq!(pool_traffic(&mut a, &mut na), usual, "a starver that is gone: {close_hungry}");
    }
}

/// One packet through queue `q`; true if it came back.
fn turn(host: &mut HostQueue, nic: &mut NicQueue) -> bool {
    let mut bufs = Vec::new();
    host.alloc(&mut bufs, 1, 64);
    host.write(&mut bufs[0], &[7; 64]);
    host.tx(&mut bufs).expect("honest");
    nic.loopback(32).expect("honest");
    let got = host.rx(&mut bufs, 32).expect("honest");
    host.free(&mut bufs);
    got == 1
}

#[test]
fn a_closed_queue_opens_again_where_it_was_and_the_port_recovers_without_it() {
    for config in [Config::default(), Config::unoptimised()] {
        let mut port = HostPort::create_private(Config { queues: 2, ..config }).expect("valid");
        let mut a = port.queue(0).expect("first");
        let mut b = port.queue(1).expect("second");
        let mut nic = port.local_nic().expect("first");
        let (mut na, mut nb) = (nic.queue(0).expect("first"), nic.queue(1).expect("second"));
        // Blanks, where the host posts them, have to be there before a packet.
        a.rx(&mut Vec::new(), 1).expect("honest");
        b.rx(&mut Vec::new(), 1).expect("honest");
        for _ in 0..100 {
            assert!(turn(&mut a, &mut na) && turn(&mut b, &mut nb));
            drop(b);
            b = port.queue(1).expect("it was closed");
        }
        assert!(matches!(port.queue(1), Err(Error::Usage(_))), "it is open");
        drop((b, nb));
        // A reset does without the closed queue on either side.
        let stop = AtomicBool::new(false);
        std::thread::scope(|s| {
            let (stop, na) = (&stop, &mut na);
            let t = s.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let _ = na.loopback(1);
                }
            });
            port.recover(&mut [&mut a]).expect("all open queues");
            stop.store(true, Ordering::Relaxed);
            t.join().expect("no panic");
        });
        let audit = port.audit(&[&a]);
        assert_eq!((audit.user, audit.stacked + audit.pooled), (0, audit.total));
        let b = port.queue(1).expect("closed");
        assert!(port.recover(&mut [&mut a]).is_err(), "queue 1 is open again");
        drop(b);
        a.rx(&mut Vec::new(), 1).expect("honest");
        assert!(turn(&mut a, &mut na));
    }
}

/// A NIC of this process that slept through a reset is cut off; only its successor runs.
#[test]
fn a_nic_that_slept_through_a_reset_never_runs_beside_its_successor() {
    let mut port = HostPort::create_private(Config::default()).expect("valid");
    let mut queue = port.queue(0).expect("first");
    let mut old = port.local_nic().expect("first");
    let mut asleep = old.queue(0).expect("first");
    asleep.loopback(1).expect("honest");
    assert!(matches!(port.recover(&mut [&mut queue]), Err(Error::Peer(_))), "it does not stop");
    assert!(!old.host_alive(), "it is told when it asks");
    let mut new = port.local_nic().expect("the place is free");
    let mut awake = new.queue(0).expect("first");
    for _ in 0..1000 {
        let mut bufs = Vec::new();
        queue.alloc(&mut bufs, 1, 64);
        queue.write(&mut bufs[0], &[1; 64]);
        queue.tx(&mut bufs).expect("honest");
        assert_eq!(asleep.loopback(8).unwrap_or(0), 0, "the old one moves nothing");
        awake.loopback(8).expect("honest");
        assert_eq!(queue.rx(&mut bufs, 8).expect("honest"), 1);
        queue.free(&mut bufs);
    }
    // One whose port was dropped is cut off, too, though its queue lives.
    drop(new);
    assert!(!port.peer_alive());
    port.recover(&mut [&mut queue]).expect("nobody to wait for");
    assert_eq!(awake.loopback(8).unwrap_or(0), 0);
}

/// A port has no features without a NIC, whether the NIC went by itself or was sent away.
#[test]
fn features_go_with_the_nic() {
    let mut port = HostPort::create_private(Config { offload: 1, ..Config::default() }).expect("valid");
    let nic = port.local_nic().expect("first");
    assert!(port.features().has(ccnic::Features::CHECKSUM));
    drop(nic);
    assert_eq!(port.features(), ccnic::Features::default());
}

/// A NIC that serves fewer queues keeps key and fields of the application, and the next one has the table again.
#[test]
fn fewer_queues_leave_the_rest_of_rss_alone() {
    let mut port = HostPort::create_private(Config { queues: 4, ..Config::default() }).expect("valid");
    let rss = Rss::new([7; 40], std::array::from_fn(|i| (3 - i % 4) as u8), Rss::IP);
    port.set_rss(rss.clone()).expect("all are served");
    for (served, table) in [(4, [3, 2, 1, 0]), (2, [1, 0, 1, 0]), (1, [0; 4]), (0, [3, 2, 1, 0])] {
        port.set_served(served).expect("no NIC");
        let nic = port.local_nic().expect("the place is free");
        assert_eq!((nic.rss().key, nic.rss().fields), (rss.key, rss.fields));
        assert_eq!(nic.rss().table[..4], table, "{served} are served");
        drop(nic);
        port.recover(&mut []).expect("nobody to wait for");
    }
}

/// What NICs drop is counted from the moment when the queue was opened, and neither forgotten nor counted twice when they go.
#[test]
fn drops_are_counted_since_the_queue_was_opened() {
    let (mut port, queue, nic, far) = pair(Config::default());
    // The word in which the NIC counts for the first queue.
    let region = port.region().clone();
    let drop_one = || region.put(27, region.get(27) + 1);
    drop_one();
    assert_eq!(queue.stats().drops, 1);
    drop(queue);
    let mut queue = port.queue(0).expect("closed");
    assert_eq!(queue.stats().drops, 0, "it was opened again");
    drop_one();
    drop_one();
    drop((nic, far));
    assert_eq!(queue.stats().drops, 2, "the NIC is gone");
    for round in 1..4 {
        port.recover(&mut [&mut queue]).expect("nobody to wait for");
        assert_eq!(queue.stats().drops, 1 + round);
        let _next = port.local_nic().expect("the place is free");
        drop_one();
        assert_eq!(queue.stats().drops, 2 + round);
    }
    region.put(27, u64::MAX);
    port.recover(&mut [&mut queue]).expect("nobody to wait for");
    region.put(27, u64::MAX);
    assert_eq!(queue.stats().drops, u64::MAX, "a NIC may say anything");
}

/// Buffers that a NIC took before a reset are dead after it.
#[test]
fn buffers_of_an_old_epoch_are_not_published() {
    for config in [Config::default(), Config::unoptimised()] {
        let (mut port, mut queue, _nic, mut far) = pair(config);
        queue.rx(&mut Vec::new(), 1).expect("honest");
        let mut old = far.alloc_packet(64).expect("honest").expect("free");
        let stop = AtomicBool::new(false);
        std::thread::scope(|s| {
            let (stop, far) = (&stop, &mut far);
            let t = s.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let _ = far.tx_poll(&mut Vec::new(), 4);
                }
            });
            port.recover(&mut [&mut queue]).expect("it follows");
            std::thread::sleep(std::time::Duration::from_millis(20));
            stop.store(true, Ordering::Relaxed);
            t.join().expect("no panic");
        });
        assert!(matches!(far.rx_post(&mut old), Err(Error::Usage(_))));
        assert_eq!(queue.rx(&mut Vec::new(), 4).expect("honest"), 0);
        let mut again = far.alloc_packet(64).expect("honest");
        if let Some(packet) = &mut again {
            far.write_packet(packet, &[5; 64]);
            far.rx_post(packet).expect("of this epoch");
        }
        let mut bufs = Vec::new();
        assert_eq!(queue.rx(&mut bufs, 4).expect("honest"), usize::from(again.is_some()));
    }
}

/// The words of a ring, for a peer that lies.
fn tx_line(unit: usize) -> usize {
    4096 / 8 + unit * 8
}

/// A NIC that clears only the line that is probed: the buffers in the others are not forgotten.
#[test]
fn lent_buffers_are_not_displaced_by_a_nic_that_clears_the_probed_line_only() {
    let config = Config { slots: 64, buffers: 256, ..Config::default() };
    let mut port = HostPort::create_private(config).expect("valid");
    let mut queue = port.queue(0).expect("first");
    let region = port.region().clone();
    let mut fault = None;
    for _ in 0..40 {
        let mut bufs = Vec::new();
        queue.alloc(&mut bufs, 1, 64);
        queue.write(&mut bufs[0], &[1; 64]);
        let kept = queue.retain(&bufs[0]).expect("ours");
        if let Err(e) = queue.tx(&mut bufs) {
            fault.get_or_insert(e.to_string());
        }
        queue.free(&mut bufs);
        queue.free(&mut vec![kept]);
        for unit in 1..16 {
            region.put(tx_line(unit) + 1, 0);
        }
    }
    assert!(fault.is_some(), "a slot that is still taken is a fault");
    port.recover(&mut [&mut queue]).expect("no NIC to wait for");
    let audit = port.audit(&[&queue]);
    assert_eq!((audit.user, audit.stacked + audit.pooled), (0, audit.total), "{audit:?}");
}

/// A NIC that hands one buffer to everybody, through the pool's ring.
#[test]
fn a_forged_pool_entry_never_gives_one_buffer_to_two_threads() {
    use std::sync::atomic::AtomicU32;
    let config =
        Config { queues: 2, slots: 64, buffers: 64, bulk: 1, small: false, recycle: false, ..Config::default() };
    let mut port = HostPort::create_private(config).expect("valid");
    let mut queues = [port.queue(0).expect("first"), port.queue(1).expect("second")];
    let region = port.region().clone();
    // The pool's slots carry lap 1 in their upper 16 bits.
    let first = (512..).find(|&w| (0..64).all(|i| region.get(w + i) >> 48 == 1)).expect("a full pool");
    let (head, tail) = (first - 16, first - 8);
    let addr = region.get(first) & ((1 << 48) - 1);
    let owners: Vec<AtomicU32> = (0..64).map(|_| AtomicU32::new(0)).collect();
    let stop = AtomicBool::new(false);
    std::thread::scope(|s| {
        let workers: Vec<_> = queues
            .iter_mut()
            .map(|q| {
                let (owners, stop) = (&owners, &stop);
                s.spawn(move || {
                    let (mut bufs, mut twice) = (Vec::new(), 0);
                    while !stop.load(Ordering::Relaxed) {
                        if q.alloc(&mut bufs, 1, 0) == 1 {
                            let at = bufs[0].index() as usize;
                            twice += u32::from(owners[at].fetch_add(1, Ordering::SeqCst) > 0);
                            (0..20).for_each(|_| std::hint::spin_loop());
                            owners[at].fetch_sub(1, Ordering::SeqCst);
                            q.free(&mut bufs);
                        }
                    }
                    twice
                })
            })
            .collect();
        let end = std::time::Instant::now() + std::time::Duration::from_millis(if cfg!(miri) { 50 } else { 2000 });
        while std::time::Instant::now() < end {
            let at = region.get(head);
            for k in at..at + 64 {
                region.put(first + (k & 63) as usize, ((k >> 6) + 1) << 48 | addr);
            }
            region.put(tail, at + 64);
            std::thread::yield_now();
        }
        stop.store(true, Ordering::Relaxed);
        let twice: u32 = workers.into_iter().map(|w| w.join().expect("no panic")).sum();
        assert_eq!(twice, 0, "moments with two owners");
    });
    let [a, b] = &mut queues;
    port.recover(&mut [a, b]).expect("no NIC to wait for");
    let audit = port.audit(&[a, b]);
    assert_eq!((audit.user, audit.stacked, audit.pooled), (0, 0, audit.total), "{audit:?}");
}

/// A port with one queue, and its NIC; neither has anything to do.
fn pair(config: Config) -> (HostPort, HostQueue, NicPort, NicQueue) {
    let mut port = HostPort::create_private(config).expect("valid");
    let queue = port.queue(0).expect("first");
    let mut nic = port.local_nic().expect("first");
    let mut far = nic.queue(0).expect("first");
    far.loopback(1).expect("honest");
    (port, queue, nic, far)
}

/// Whole packets only, on either side, also when a fault ends the burst.
#[test]
fn a_fault_behind_a_segment_delivers_no_part_of_its_packet() {
    // The NIC's side: the second segment of a packet has a bad address.
    let (port, mut queue, _nic, mut far) = pair(Config::default());
    let region = port.region().clone();
    let mut bufs = Vec::new();
    queue.alloc(&mut bufs, 2, 64);
    bufs.iter_mut().for_each(|b| queue.write(b, &[1; 64]));
    queue.tx(&mut bufs).expect("room");
    let line = tx_line(0);
    region.put(line + 4, 7);
    region.put(line + 5, 64);
    region.put(line + 3, 1 << 16 | 64);
    let mut out = Vec::new();
    assert_eq!(far.tx_poll(&mut out, 16).expect("the first packet is sound"), 1);
    assert!(!out[0].more());
    assert!(far.tx_poll(&mut out, 16).is_err());
    assert_eq!((far.stats().rx, far.stats().rx_bytes), (1, 64), "what was delivered");

    // The host's side, into arrays that are too short for a packet, too.
    for room in [2, 4, 16] {
        let (mut port, mut queue, nic, mut far) = pair(Config::default());
        let region = port.region().clone();
        for _ in 0..3 {
            let mut one = far.alloc_packet(64).expect("honest").expect("free");
            far.write_packet(&one, &[2; 64]);
            far.rx_post(&mut one).expect("honest");
        }
        // Three lines of one packet each; the second becomes a packet whose end is bad.
        let rx = (4096 + 1024 * 16 + 4096) / 8 + 8;
        region.put(rx + 2, 7);
        region.put(rx + 3, 64);
        region.put_release(rx + 1, 1 << 63 | 1 << 16 | 64);
        let (mut got, mut out) = (0, Vec::new());
        loop {
            match queue.rx(&mut out, room) {
                Ok(n) => got += n,
                Err(Error::Fault(_)) => break,
                Err(e) => panic!("{e}"),
            }
        }
        assert_eq!(got, 1, "room for {room}");
        assert!(!out[0].more());
        queue.free(&mut out);
        drop((far, nic));
        port.recover(&mut [&mut queue]).expect("nobody to wait for");
        let audit = port.audit(&[&queue]);
        assert_eq!((audit.user, audit.stacked + audit.pooled), (0, audit.total), "{audit:?}");
    }
}

/// Packets in front of a fault in their line are counted with their bytes.
#[test]
fn packets_and_bytes_of_a_faulty_line_agree() {
    let (port, mut queue, _nic, mut far) = pair(Config::default());
    let mut two: Vec<_> = (0..2).flat_map(|_| far.alloc_packet(64).expect("honest").expect("free")).collect();
    far.rx_post(&mut two).expect("honest");
    let rx = (4096 + 1024 * 16 + 4096) / 8;
    port.region().put(rx + 4, 7);
    port.region().put(rx + 5, 64);
    let mut out = Vec::new();
    assert_eq!(queue.rx(&mut out, 16).expect("two are sound"), 2);
    assert_eq!((queue.stats().rx, queue.stats().rx_bytes), (2, 128));
}

/// Four segments are a packet's most, also where the host posts the buffers.
#[test]
fn an_endless_chain_is_a_fault() {
    for register in [false, true] {
        let signal = if register { ccnic::Signal::Register } else { ccnic::Signal::Inline };
        let config = Config { shared_pool: false, signal, ..Config::default() };
        let mut port = HostPort::create_private(config).expect("valid");
        let mut queue = port.queue(0).expect("first");
        let region = port.region().clone();
        let mut out = Vec::new();
        queue.rx(&mut out, 1024).expect("nothing yet");
        let ring = (4096 + 1024 * 16 + 4096) / 8;
        for slot in 0..1000 {
            let ready = if register { 0 } else { 1 << 63 };
            region.put(ring + 2 * slot + 1, ready | 1 << 16 | 64);
        }
        if register {
            // The NIC's register lies on the page behind the ring.
            region.put(ring + 1024 * 2, 1000);
        }
        assert!(matches!(queue.rx(&mut out, 1024), Err(Error::Fault(ccnic::Fault::Chain))));
        assert!(out.is_empty());
    }
}

/// Where the host sweeps: a NIC that delivers a buffer whose transmission it has not completed.
#[test]
fn a_buffer_in_flight_cannot_be_delivered_before_it_is_completed() {
    let mut port = HostPort::create_private(Config { shared_pool: false, ..Config::default() }).expect("valid");
    let mut queue = port.queue(0).expect("first");
    let region = port.region().clone();
    queue.rx(&mut Vec::new(), 1).expect("nothing yet");
    let mut bufs = Vec::new();
    queue.alloc(&mut bufs, 1, 64);
    queue.write(&mut bufs[0], &[1; 64]);
    queue.tx(&mut bufs).expect("room");
    let ring = (4096 + 1024 * 16 + 4096) / 8;
    region.put(ring, region.get(tx_line(0)));
    region.put_release(ring + 1, 1 << 63 | 64);
    assert!(matches!(queue.rx(&mut bufs, 1), Err(Error::Fault(ccnic::Fault::Owner))));
    port.recover(&mut [&mut queue]).expect("no NIC to wait for");
    let audit = port.audit(&[&queue]);
    assert_eq!((audit.user, audit.stacked + audit.pooled), (0, audit.total));
}

/// An application that only sends learns that its NIC has stopped: of a sweep, and when the ring is full.
#[test]
fn a_sender_learns_of_the_fault_that_stopped_the_nic() {
    for by_sweep in [true, false] {
        let (port, mut queue, _nic, mut far) = pair(Config::default());
        let mut bufs = Vec::new();
        queue.alloc(&mut bufs, 1, 64);
        queue.write(&mut bufs[0], &[1; 64]);
        queue.tx(&mut bufs).expect("room");
        port.region().put(tx_line(0), 8);
        assert!(matches!(far.loopback(32), Err(Error::Fault(ccnic::Fault::Address))));
        let mut outcome = Ok(1);
        if by_sweep {
            outcome = queue.sweep();
        } else {
            // One buffer to a line.
            for _ in 0..1024 / 4 {
                queue.alloc(&mut bufs, 1, 64);
                queue.write(&mut bufs[0], &[1; 64]);
                outcome = queue.tx(&mut bufs);
                queue.free(&mut bufs);
            }
        }
        assert!(matches!(outcome, Err(Error::Fault(ccnic::Fault::Peer))), "{outcome:?}");
        assert_eq!(queue.fault(), Some(ccnic::Fault::Peer));
    }
}

/// What one side sends the other receives, by packets and by bytes; a first start is no reset.
#[test]
fn the_counters_of_the_nic_agree_with_those_of_the_host() {
    for config in [Config::default(), Config::unoptimised()] {
        let (_port, mut queue, _nic, mut far) = pair(config);
        queue.rx(&mut Vec::new(), 1).expect("honest");
        (0..50).for_each(|_| assert!(turn(&mut queue, &mut far)));
        let (host, nic) = (queue.stats(), far.stats());
        assert_eq!((host.tx, host.tx_bytes), (50, 50 * 64));
        assert_eq!((nic.rx, nic.rx_bytes, nic.tx, nic.tx_bytes), (50, 50 * 64, 50, 50 * 64));
        assert_eq!((host.resets, nic.resets), (0, 0));
    }
}
