//! A third thread that stores random words all over the region while two hosts' threads and a NIC
//! use it, with an audit after each round. `CCNIC_SCRIBBLE_SECONDS` makes it a long test.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ccnic::{Buf, Config, Error, HostPort, HostQueue, Layout, NicQueue, Signal};

#[allow(dead_code, reason = "each program that shares this file uses a part of it")]
#[path = "../src/bin/ccnic-bench/scribble.rs"]
mod scribble;

/// Every burst call once; a fault is an error value and nothing else.
fn turn(queue: &mut HostQueue, kept: &mut Vec<Buf>) {
    let mut bufs = Vec::new();
    queue.alloc(&mut bufs, 7, 64);
    queue.alloc(&mut bufs, 3, 700);
    for (i, b) in bufs.iter_mut().enumerate() {
        queue.write(b, &[i as u8; 64]);
    }
    if bufs.len() > 8 {
        bufs[1].set_more(true);
        bufs[7].set_more(true);
    }
    if kept.len() < 4 {
        kept.extend(bufs.first().and_then(|b| queue.retain(b).ok()));
    }
    only_faults(queue.tx(&mut bufs));
    queue.free(&mut bufs);
    only_faults(queue.rx(&mut bufs, 33));
    for b in &bufs {
        std::hint::black_box(queue.checksum(b));
    }
    queue.free(&mut bufs);
    if kept.len() == 4 {
        queue.free(kept);
    }
}

fn only_faults(result: Result<usize, Error>) {
    assert!(matches!(result, Ok(_) | Err(Error::Fault(_))), "{result:?}");
}

#[test]
fn random_stores_cost_faults_and_never_a_buffer() {
    let seconds = std::env::var("CCNIC_SCRIBBLE_SECONDS").map_or(7, |s| s.parse().expect("a number"));
    let small = Config { slots: 64, buffers: 128, queues: 2, stack: 16, bulk: 8, ..Config::default() };
    let configs = [
        small.clone(),
        Config { signal: Signal::Register, ..small.clone() },
        Config { layout: Layout::Packed, recycle: false, ..small.clone() },
        Config { layout: Layout::Padded, signal: Signal::Register, ..small.clone() },
        Config { shared_pool: false, poll_us: 5, ..small.clone() },
        Config { slots: 64, buffers: 128, queues: 2, stack: 16, bulk: 8, ..Config::unoptimised() },
        Config { headroom: 128, payload: 2048, small: false, ..small },
    ];
    let share = Duration::from_secs(seconds) / configs.len() as u32;
    for (i, config) in configs.into_iter().enumerate() {
        one(i as u64, config, share);
    }
}

fn one(number: u64, config: Config, share: Duration) {
    let mut port = HostPort::create(config).expect("valid");
    let mut queues = [port.queue(0).expect("first"), port.queue(1).expect("second")];
    let region = port.region().clone();
    let (end, mut rounds) = (Instant::now() + share, 0);
    let stores = AtomicU64::new(0);
    while Instant::now() < end {
        let mut nic = port.local_nic().expect("the last one was dropped");
        let mut far: Vec<NicQueue> = (0..2).map(|q| nic.queue(q).expect("fresh")).collect();
        let (stop, over) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|s| {
            let serve = s.spawn(|| nic.serve_loopback(&mut far, &over));
            let wild = s.spawn(|| {
                let mut words =
                    scribble::Words(0x2545_f491_4f6c_dd1d ^ (rounds + 1 + (number << 32)).wrapping_mul(0x9e37_79b9));
                let mut n = 0;
                while !stop.load(Ordering::Relaxed) {
                    words.store(&region);
                    n += 1;
                    if rounds % 2 == 0 && n % 8 == 0 {
                        (0..200).for_each(|_| std::hint::spin_loop());
                    }
                }
                stores.fetch_add(n, Ordering::Relaxed);
            });
            let hosts: Vec<_> = queues
                .iter_mut()
                .map(|q| {
                    s.spawn(|| {
                        let mut kept = Vec::new();
                        (0..200).for_each(|_| turn(q, &mut kept));
                        q.free(&mut kept);
                    })
                })
                .collect();
            hosts.into_iter().for_each(|h| h.join().expect("the hosts only meet faults"));
            stop.store(true, Ordering::Relaxed);
            wild.join().expect("stores do not fail");
            over.store(true, Ordering::Relaxed);
            serve.join().expect("the NIC only meets faults");
        });
        drop((far, nic));
        let [a, b] = &mut queues;
        port.recover(&mut [a, b]).expect("nobody to wait for");
        let audit = port.audit(&[a, b]);
        assert_eq!(
            (audit.user, audit.stacked, audit.pooled),
            (0, 0, audit.total),
            "configuration {number}, round {rounds}"
        );
        assert_eq!(a.stats().misuse + b.stats().misuse, 0, "configuration {number}, round {rounds}");
        rounds += 1;
    }
    println!("configuration {number}: {rounds} rounds, {} stores", stores.into_inner());
}
