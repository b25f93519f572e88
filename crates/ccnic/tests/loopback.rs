//! Packets through a loopback NIC: nothing lost, duplicated, reordered or altered, and no
//! buffer missing afterwards, for every combination of features.

use std::collections::VecDeque;

use ccnic::{Buf, Class, Config, Error, Home, HostPool, HostPort, HostQueue, Layout, NicQueue, RawBuf, Signal};
use proptest::prelude::*;

fn variants() -> impl Strategy<Value = Config> {
    let layout = prop_oneof![Just(Layout::Grouped), Just(Layout::Packed), Just(Layout::Padded)];
    let signal = prop_oneof![Just(Signal::Inline), Just(Signal::Register)];
    let rings = (layout, signal, any::<bool>(), prop_oneof![Just(16u32), Just(64)], 1u32..9, 1u32..3);
    let pool = (any::<bool>(), any::<bool>(), any::<bool>(), 1u32..40, 1u32..33);
    let room = prop_oneof![Just((0u32, 0u32)), Just((128, 0)), Just((128, 512))];
    (rings, pool, room).prop_map(
        |(
            (layout, signal, shared_pool, slots, rx_lazy, tx_lazy),
            (recycle, nonseq, small, stack, bulk),
            (headroom, payload),
        )| Config {
            headroom,
            payload,
            layout,
            signal,
            shared_pool,
            slots,
            rx_lazy,
            tx_lazy,
            recycle,
            nonseq,
            small,
            stack,
            bulk,
            buffers: 128,
            large_bytes: 1024,
            objects: 4,
            object_bytes: 1024,
            ..Config::default()
        },
    )
}

#[derive(Clone, Debug)]
enum Step {
    /// Send packets given by their segment lengths.
    Send(Vec<Vec<usize>>),
    Nic(usize),
    Receive(usize),
    /// Take buffers from the shared pool past the queue, and give them back.
    Borrow(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let packet = prop_oneof![
        3 => prop::collection::vec(1usize..=128, 1..2),
        1 => prop::collection::vec(1usize..=1024, 1..5),
    ];
    let step = prop_oneof![
        prop::collection::vec(packet, 1..12).prop_map(Step::Send),
        (1usize..40).prop_map(Step::Nic),
        (1usize..40).prop_map(Step::Receive),
        (1usize..40).prop_map(Step::Borrow),
    ];
    prop::collection::vec(step, 1..60)
}

/// Payload bytes that depend on the packet's number, so that a swap or an alteration shows.
fn payload(number: u64, len: usize) -> Vec<u8> {
    let mut x = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..len)
        .map(|_| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x as u8
        })
        .collect()
}

struct Run {
    pool: HostPool,
    /// Most bytes of a segment.
    room: usize,
    queue: HostQueue,
    nic: NicQueue,
    expected: VecDeque<Vec<u8>>,
    partial: Vec<u8>,
    number: u64,
}

impl Run {
    fn send(&mut self, packets: &[Vec<usize>]) {
        for lens in packets {
            let lens: Vec<usize> = lens.iter().map(|&len| len.min(self.room)).collect();
            let total: usize = lens.iter().sum();
            let bytes = payload(self.number, total);
            let mut bufs = Vec::new();
            let mut at = 0;
            for (i, &len) in lens.iter().enumerate() {
                if self.queue.alloc(&mut bufs, 1, len) == 0 {
                    return self.queue.free(&mut bufs);
                }
                let b = bufs.last_mut().expect("just allocated");
                self.queue.write(b, &bytes[at..at + len]);
                b.set_more(i + 1 < lens.len());
                at += len;
            }
            self.queue.tx(&mut bufs).expect("an honest NIC");
            if !bufs.is_empty() {
                assert_eq!(bufs.len(), lens.len(), "a packet is sent whole or not at all");
                return self.queue.free(&mut bufs);
            }
            self.expected.push_back(bytes);
            self.number += 1;
        }
    }

    fn receive(&mut self, max: usize) -> usize {
        let mut bufs = Vec::new();
        let got = self.queue.rx(&mut bufs, max).expect("an honest NIC");
        for b in &bufs {
            self.partial.extend(self.queue.to_vec(b));
            if !b.more() {
                let want = self.expected.pop_front().expect("no packet out of nothing");
                assert_eq!(self.partial, want);
                self.partial.clear();
            }
        }
        self.queue.free(&mut bufs);
        got
    }

    /// Runs both sides until nothing moves.
    fn settle(&mut self) {
        let mut quiet = 0;
        while quiet < 3 {
            let moved = self.nic.loopback(64).expect("an honest host") + self.receive(64);
            quiet = if moved == 0 { quiet + 1 } else { 0 };
        }
    }
}

fn open(config: Config) -> (HostPort, ccnic::NicPort, Run) {
    let mut port = HostPort::create_private(config).expect("valid configuration");
    // Some steps take buffers past the queue.
    let pool = port.pool().expect("before the queue");
    let queue = port.queue(0).expect("first");
    let mut nic_port = port.local_nic().expect("first");
    let nic = nic_port.queue(0).expect("first");
    let room = port.config().capacity() as usize;
    let run = Run { pool, room, queue, nic, expected: VecDeque::new(), partial: Vec::new(), number: 0 };
    (port, nic_port, run)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 3 } else { 400 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_duplicated_reordered_or_altered(config in variants(), steps in steps()) {
        let (mut port, nic_port, mut run) = open(config);
        for step in &steps {
            match step {
                Step::Send(packets) => run.send(packets),
                Step::Nic(budget) => { run.nic.loopback(*budget).expect("an honest host"); }
                Step::Receive(max) => { run.receive(*max); }
                Step::Borrow(count) => {
                    let mut bufs = vec![RawBuf::default(); *count];
                    let got = run.pool.take(&mut bufs);
                    prop_assert_eq!(run.pool.put(&bufs[..got]), got);
                    prop_assert_eq!(run.pool.put(&bufs[..got]), 0, "a second time they are not the caller's");
                }
            }
        }
        run.settle();
        prop_assert!(run.expected.is_empty(), "{} packets missing", run.expected.len());
        prop_assert_eq!(run.queue.stats().misuse, 0);

        // With the NIC gone, every buffer is found again.
        drop(nic_port);
        let Run { mut queue, nic, .. } = run;
        drop(nic);
        port.recover(&mut [&mut queue]).expect("no peer to wait for");
        let audit = port.audit(&[&queue]);
        prop_assert_eq!(audit.user, 0);
        prop_assert_eq!(audit.stacked + audit.pooled, audit.total);
    }
}

struct StopOnDrop<'a>(&'a std::sync::atomic::AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

/// Two threads at full speed with random pauses, checked in order.
#[test]
fn threads_with_pauses_keep_order() {
    let packets: u64 = if cfg!(miri) { 200 } else { 200_000 };
    for config in [
        Config { slots: 64, buffers: 256, ..Config::default() },
        Config { slots: 64, buffers: 256, ..Config::unoptimised() },
        Config { shared_pool: false, slots: 64, buffers: 256, ..Config::default() },
    ] {
        let mut port = HostPort::create_private(config).expect("valid");
        let mut queue = port.queue(0).expect("first");
        let mut nic_port = port.local_nic().expect("first");
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            // Also when an assertion below fails, or the scope would wait for ever.
            let _stop = StopOnDrop(&stop);
            scope.spawn(|| {
                let mut q = nic_port.queue(0).expect("first");
                let mut turn = 0u64;
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    turn += 1;
                    if q.loopback(1 + (turn % 37) as usize).expect("honest") == 0 || turn % 1009 == 0 {
                        std::thread::yield_now();
                    }
                }
            });
            let (mut sent, mut got, mut bufs) = (0u64, 0u64, Vec::new());
            while got < packets {
                let burst = (1 + sent % 33).min(packets - sent) as usize;
                if sent - got < 200 && queue.alloc(&mut bufs, burst, 64) > 0 {
                    for (fresh, b) in (sent..).zip(&mut bufs) {
                        queue.write(b, &payload(fresh, 16 + (fresh % 49) as usize));
                    }
                    sent += queue.tx(&mut bufs).expect("honest") as u64;
                    queue.free(&mut bufs);
                }
                let n = queue.rx(&mut bufs, 32).expect("honest");
                for b in &bufs {
                    assert_eq!(queue.to_vec(b), payload(got, 16 + (got % 49) as usize), "packet {got}");
                    got += 1;
                }
                queue.free(&mut bufs);
                if n == 0 {
                    std::thread::yield_now();
                }
            }
        });
    }
}

/// Fig. 10: with a shared pool the host neither posts RX buffers nor sweeps completions.
#[test]
fn shared_pool_spares_the_host_posts_and_sweeps() {
    for (shared_pool, expect_work) in [(true, false), (false, true)] {
        let (_port, _nic, mut run) = open(Config { shared_pool, ..Config::default() });
        for _ in 0..100 {
            run.send(&vec![vec![64]; 32]);
            run.settle();
        }
        let stats = run.queue.stats();
        assert_eq!(stats.rx, 3200);
        assert_eq!(stats.posts > 0, expect_work, "posts with shared_pool = {shared_pool}");
        assert_eq!(stats.sweeps > 0, expect_work, "sweeps with shared_pool = {shared_pool}");
    }
}

/// §3.2: a burst of 32 takes 8 lines when grouped and 32 units otherwise; a short group is
/// published at once.
#[test]
fn grouping_decides_the_units_per_burst() {
    for (layout, burst, units) in
        [(Layout::Grouped, 32, 8), (Layout::Grouped, 5, 2), (Layout::Packed, 32, 32), (Layout::Padded, 32, 32)]
    {
        let (_port, _nic, mut run) = open(Config { layout, ..Config::default() });
        let mut bufs = Vec::new();
        run.queue.alloc(&mut bufs, burst, 64);
        bufs.iter_mut().for_each(|b| run.queue.write(b, &[7; 64]));
        assert_eq!(run.queue.tx(&mut bufs).expect("room"), burst);
        assert_eq!(run.queue.stats().units, units, "{layout:?}");
    }
}

#[test]
fn sizes_select_classes_and_recycling_reuses_the_hottest_buffer() {
    let (_port, _nic, mut run) = open(Config::default());
    let q = &mut run.queue;
    let mut bufs = Vec::new();
    q.alloc(&mut bufs, 1, 128);
    q.alloc(&mut bufs, 1, 129);
    q.alloc(&mut bufs, 1, 0);
    let classes: Vec<Class> = bufs.iter().map(|b| q.class(b)).collect();
    assert_eq!(classes, [Class::Small, Class::Large, Class::Large]);
    let last = bufs.pop().expect("three");
    let hottest = last.index();
    q.free(&mut vec![last]);
    let mut again = Vec::new();
    q.alloc(&mut again, 1, 0);
    assert_eq!(again[0].index(), hottest);
}

/// §3.3: a retained buffer is not recycled by the NIC; the host gets it back by its own
/// reference, and completion drops the other.
#[test]
fn retained_buffers_survive_transmission() {
    let (port, _nic, mut run) = open(Config { recycle: false, ..Config::default() });
    let mut bufs = Vec::new();
    run.queue.alloc(&mut bufs, 1, 64);
    run.queue.write(&mut bufs[0], &[42; 64]);
    let kept = run.queue.retain(&bufs[0]).expect("few references");
    for _ in 0..3 {
        let again = run.queue.retain(&kept).expect("few references");
        run.queue.tx(&mut bufs).expect("room");
        run.expected.push_back(vec![42; 64]);
        run.settle();
        run.queue.sweep().expect("honest");
        bufs.push(again);
    }
    assert_eq!(run.queue.to_vec(&kept), vec![42; 64]);
    assert_eq!(port.audit(&[&run.queue]).user, 1);
    bufs.push(kept);
    run.queue.free(&mut bufs);
    assert_eq!(port.audit(&[&run.queue]).user, 0);
}

/// §5.7: header in a buffer, payload in an object that the NIC only borrows.
#[test]
fn objects_travel_as_second_segments() {
    let (port, _nic, mut run) = open(Config { objects: 1, ..Config::default() });
    for round in 0..5u8 {
        let mut object = port.object(0).expect("free again after each round");
        assert!(matches!(port.object(0), Err(Error::Usage(_))), "one owner at a time");
        run.queue.write(&mut object, &[round; 3000]);
        let mut bufs: Vec<Buf> = Vec::new();
        run.queue.alloc(&mut bufs, 1, 40);
        run.queue.write(&mut bufs[0], &[0xee; 40]);
        bufs[0].set_more(true);
        bufs.push(object);
        assert_eq!(run.queue.tx(&mut bufs).expect("room"), 2);
        run.expected.push_back([vec![0xee; 40], vec![round; 3000]].concat());
        run.settle();
        assert!(run.expected.is_empty());
        assert_eq!(run.queue.sweep().expect("honest"), 1);
    }
}

#[test]
fn bad_configurations_are_refused_by_name() {
    for (config, key) in [
        (Config { slots: 1000, ..Config::default() }, "slots = 1000"),
        (Config { queues: 0, ..Config::default() }, "queues = 0"),
        (Config { large_bytes: 512, ..Config::default() }, "large_bytes = 512"),
        (
            Config { small_bytes: 1024, large_bytes: 2048, payload: 600, ..Config::default() },
            "small_bytes = 1024 is more than the 600 payload bytes of a large buffer; the nearest valid value is 512",
        ),
        (
            Config { small_bytes: 1024, large_bytes: 1024, headroom: 128, ..Config::default() },
            "small_bytes = 1024 is more than the 896 payload bytes of a large buffer; the nearest valid value is 512",
        ),
        (
            Config { queues: 5, buffers: 64, ..Config::unoptimised() },
            "buffers = 64 leaves fewer than 16 large buffers for each of 5 queues; the nearest valid value is 80",
        ),
        (
            Config { queues: 4, buffers: 64, small: true, ..Config::unoptimised() },
            "buffers = 64 leaves fewer than 16 large buffers for each of 4 queues; the nearest valid value is 85",
        ),
        (
            Config { buffers: 64, tx_lazy: 64, ..Config::unoptimised() },
            "tx_lazy = 64 lets the NIC keep all buffers that a queue has to send; the nearest valid value is 29",
        ),
        (
            Config { buffers: 64, tx_lazy: 64, shared_pool: false, small: false, ..Config::default() },
            "tx_lazy = 64 lets the NIC keep all buffers that a queue has to send; the nearest valid value is 8",
        ),
        (
            Config { pool_home: Home::Writer, ..Config::default() },
            "pool_home = 0 is neither 2 (the host) nor 3 (the NIC)",
        ),
        (
            Config { pool_home: Home::Reader, ..Config::default() },
            "pool_home = 1 is neither 2 (the host) nor 3 (the NIC)",
        ),
    ] {
        let Err(e) = HostPort::create_private(config) else { panic!("{key} accepted") };
        assert!(e.to_string().starts_with(key), "{e}");
    }
}

/// With as many lines as the NIC may keep, packets of one segment and of four go on for ever.
#[test]
fn a_nic_that_keeps_the_most_lines_leaves_buffers_to_send() {
    for (layout, tx_lazy) in [(Layout::Packed, 29), (Layout::Padded, 29), (Layout::Grouped, 8)] {
        for segments in [1, 4] {
            let config = Config { layout, tx_lazy, buffers: 64, ..Config::unoptimised() };
            let (_port, _nic, mut run) = open(config);
            run.queue.rx(&mut Vec::new(), 1).expect("nothing yet");
            for round in 0..100 {
                let sent = run.number;
                run.send(&vec![vec![64; segments]; 40]);
                assert!(run.number > sent, "{layout:?}, {segments} segments, round {round}");
                run.settle();
            }
            assert!(run.expected.is_empty());
        }
    }
}

/// The NIC may lag behind what was sent, also at the first buffer that is lent.
#[test]
fn a_register_ring_lends_buffers_while_the_nic_lags() {
    for layout in [Layout::Grouped, Layout::Packed] {
        let config = Config { signal: Signal::Register, layout, objects: 64, ..Config::default() };
        let (port, _nic, mut run) = open(config);
        run.send(&vec![vec![200]; 10]);
        let mut bufs = Vec::new();
        run.queue.alloc(&mut bufs, 1, 200);
        run.queue.write(&mut bufs[0], &[9; 200]);
        let kept = run.queue.retain(&bufs[0]).expect("few references");
        assert_eq!(run.queue.tx(&mut bufs).expect("room"), 1);
        run.expected.push_back(vec![9; 200]);
        assert_eq!(run.queue.sweep().expect("an honest NIC"), 0);
        // More than the burst calls let pass without a sweep of their own.
        for i in 0..40 {
            let mut object = port.object(i).expect("fresh");
            run.queue.write(&mut object, &[7; 100]);
            assert_eq!(run.queue.tx(&mut vec![object]).expect("an honest NIC"), 1);
            run.expected.push_back(vec![7; 100]);
        }
        run.settle();
        assert_eq!(run.queue.sweep().expect("an honest NIC"), 41);
        run.queue.free(&mut vec![kept]);
        assert_eq!(port.audit(&[&run.queue]).user, 0);
    }
}
