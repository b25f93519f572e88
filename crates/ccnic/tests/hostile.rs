//! A peer that writes anything anywhere: errors and counted resets, never a crash, an access
//! outside the region or a leaked buffer.

use std::sync::atomic::{AtomicBool, Ordering};

use ccnic::mem::Mem;
use ccnic::{Config, Error, HostPort, HostQueue, NicPort, NicQueue, Region};
use proptest::prelude::*;

fn configs() -> impl Strategy<Value = Config> {
    prop_oneof![
        Just(Config::default()),
        Just(Config::unoptimised()),
        Just(Config { shared_pool: false, ..Config::default() }),
        Just(Config { layout: ccnic::Layout::Packed, recycle: false, ..Config::default() }),
        Just(Config { signal: ccnic::Signal::Register, objects: 4, ..Config::default() }),
    ]
    .prop_map(|c| Config { slots: 16, buffers: 64, large_bytes: 1024, stack: 8, bulk: 4, ..c })
}

/// One scribble: where (control words are likelier than payload) and what.
#[derive(Clone, Debug)]
struct Scribble {
    word: u32,
    value: u64,
    flip: bool,
}

fn scribbles() -> impl Strategy<Value = Vec<Scribble>> {
    let value = prop_oneof![
        any::<u64>(),
        (0u64..64).prop_map(|b| 1 << b),
        0u64..0x20000,
        Just(u64::MAX),
        // A plausible descriptor with any length and flags.
        (any::<u16>(), 0u64..4).prop_map(|(len, flags)| 1 << 63 | flags << 16 | u64::from(len)),
    ];
    let one = (0u32..1 << 14, value, any::<bool>()).prop_map(|(word, value, flip)| Scribble { word, value, flip });
    prop::collection::vec(one, 1..40)
}

fn scribble(region: &Region, s: &Scribble) {
    let words = (region.len() / 8) as u32;
    let at = (s.word % words) as usize;
    let value = if s.flip { region.get(at) ^ 1 << (s.value & 63) } else { s.value };
    region.put(at, value);
}

/// Uses every burst call; a fault is an error value and nothing else.
fn use_host(queue: &mut HostQueue) -> Result<(), Error> {
    let mut bufs = Vec::new();
    queue.alloc(&mut bufs, 5, 64);
    queue.alloc(&mut bufs, 2, 700);
    for (i, b) in bufs.iter_mut().enumerate() {
        queue.write(b, &[i as u8; 64]);
    }
    let sent = queue.tx(&mut bufs);
    queue.free(&mut bufs);
    let mut back = Vec::new();
    let got = queue.rx(&mut back, 9);
    for b in &back {
        queue.checksum(b);
    }
    queue.free(&mut back);
    sent.and(got).map(|_| ())
}

fn nic_of(port: &mut HostPort) -> (NicPort, NicQueue) {
    let mut nic = port.local_nic().expect("after recover");
    let queue = nic.queue(0).expect("first");
    (nic, queue)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 1500 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// Both sides go on calling while words change under them; after a reset the port works
    /// and every buffer is there.
    #[test]
    fn any_corruption_ends_in_a_clean_reset(config in configs(), rounds in prop::collection::vec(scribbles(), 1..6)) {
        let mut port = HostPort::create_private(config).expect("valid");
        let mut queue = port.queue(0).expect("first");
        let region = port.region().clone();
        for (i, round) in rounds.iter().enumerate() {
            let (nic, mut nic_queue) = nic_of(&mut port);
            for s in round {
                let _ = use_host(&mut queue);
                scribble(&region, s);
                let _ = nic_queue.loopback(16);
            }
            drop((nic, nic_queue));
            port.recover(&mut [&mut queue]).expect("no NIC to wait for");
            prop_assert_eq!(port.resets(), i as u64 + 1);
            let audit = port.audit(&[&queue]);
            prop_assert_eq!(audit.user, 0);
            prop_assert_eq!(audit.stacked + audit.pooled, audit.total);
        }
        let (_nic, mut nic_queue) = nic_of(&mut port);
        for _ in 0..20 {
            use_host(&mut queue).expect("clean after the reset");
            nic_queue.loopback(16).expect("clean after the reset");
        }
        prop_assert!(queue.stats().rx > 0);
    }
}

/// Each kind of lie is named, on the side that meets it.
#[test]
fn lies_are_told_apart() {
    use ccnic::Fault;
    // TX ring of queue 0 starts after the control page; see the layout in the design notes.
    let line = 4096 / 8;
    let cases = [
        (line + 1, 5u64, Fault::Signal),
        (line, u64::MAX, Fault::Address),
        (line + 1, 1 << 63, Fault::Length),
        (line + 1, 1 << 63 | 129, Fault::Length),
        (line + 1, 1 << 63 | 1 << 16 | 64, Fault::Chain),
    ];
    for (word, value, expect) in cases {
        let mut port = HostPort::create_private(Config::default()).expect("valid");
        let mut queue = port.queue(0).expect("first");
        let (_nic, mut nic) = nic_of(&mut port);
        nic.loopback(1).expect("honest so far");
        let mut bufs = Vec::new();
        queue.alloc(&mut bufs, 1, 64);
        queue.write(&mut bufs[0], &[1; 64]);
        queue.tx(&mut bufs).expect("room");
        port.region().put(word, value);
        match nic.loopback(16) {
            Err(Error::Fault(f)) => assert_eq!(f, expect),
            other => panic!("{expect:?} gave {other:?}"),
        }
        assert!(matches!(queue.rx(&mut bufs, 1), Err(Error::Fault(Fault::Peer))), "the host learns of it");
    }
}

/// A NIC that delivers the same buffer twice.
#[test]
fn a_buffer_delivered_twice_is_refused() {
    let mut port = HostPort::create_private(Config { rx_lazy: 1, ..Config::default() }).expect("valid");
    let mut queue = port.queue(0).expect("first");
    let (_nic, mut nic) = nic_of(&mut port);
    let mut bufs = Vec::new();
    for _ in 0..2 {
        queue.alloc(&mut bufs, 1, 64);
        queue.write(&mut bufs[0], &[1; 64]);
        queue.tx(&mut bufs).expect("room");
    }
    nic.loopback(1).expect("honest");
    queue.rx(&mut bufs, 1).expect("honest");
    // The first RX line again, in the second one's place.
    let rx = (4096 + 1024 * 16 + 4096) / 8;
    port.region().put(rx + 8, port.region().get(rx));
    port.region().put_release(rx + 9, 1 << 63 | 64);
    assert!(matches!(queue.rx(&mut bufs, 1), Err(Error::Fault(ccnic::Fault::Owner))));
}

/// A NIC that says it starves, and makes up how many buffers wait in the pool: half of such numbers are 2^63 or more.
#[test]
fn numbers_of_buffers_that_a_nic_has_made_up_overflow_nothing() {
    let config = Config { slots: 64, buffers: 128, stack: 16, bulk: 8, ..Config::default() };
    let mut port = HostPort::create_private(config).expect("valid");
    let mut queue = port.queue(0).expect("first");
    // The word by which a side says that it starves, and the words of this configuration's rings and pools.
    let (hunger, control) = (16, 4500);
    let mut x = 0x9e37_79b9_7f4a_7c15u64;
    let mut bufs = Vec::new();
    queue.alloc(&mut bufs, 4, 64);
    for _ in 0..16 {
        for word in 0..control {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            port.region().put(word, x);
        }
        port.region().put(hunger, 1);
        queue.free(&mut bufs);
        port.recover(&mut [&mut queue]).expect("nobody to wait for");
        queue.alloc(&mut bufs, 4, 64);
        let audit = port.audit(&[&queue]);
        assert_eq!((audit.user, audit.stacked + audit.pooled), (4, audit.total - 4), "no buffer lost");
    }
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A writer that races with both sides at full speed, through live resets.
#[test]
fn racing_scribbles_are_survived() {
    if cfg!(miri) {
        return; // a racing writer is a data race by design
    }
    for config in [Config::default(), Config::unoptimised()] {
        let mut port = HostPort::create(Config { slots: 64, buffers: 128, ..config }).expect("valid");
        let mut queue = port.queue(0).expect("first");
        let mut nic = port.local_nic().expect("first");
        let mut nic_queue = nic.queue(0).expect("first");
        let region = port.region().clone();
        let (stop, quiet) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let _stop = StopOnDrop(&stop);
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    if nic_queue.loopback(32).unwrap_or(0) == 0 {
                        std::thread::yield_now();
                    }
                }
            });
            scope.spawn(|| {
                let mut x = 0x2545_f491_4f6c_dd1du64;
                while !stop.load(Ordering::Relaxed) {
                    if !quiet.load(Ordering::Relaxed) {
                        x ^= x << 13;
                        x ^= x >> 7;
                        x ^= x << 17;
                        // Rings, registers and pools of this configuration, not the epochs,
                        // whose loss is a lost peer (tested above).
                        let word = 512 + (x >> 20) % 4000;
                        region.put(word as usize, if x & 1 == 0 { x } else { 1 << 63 | (x & 0xff) });
                    }
                    std::thread::yield_now();
                }
            });
            for round in 0..40 {
                quiet.store(false, Ordering::Relaxed);
                for _ in 0..300 {
                    let _ = use_host(&mut queue);
                }
                quiet.store(true, Ordering::Relaxed);
                std::thread::sleep(std::time::Duration::from_millis(2));
                port.recover(&mut [&mut queue]).expect("the NIC follows");
                let audit = port.audit(&[&queue]);
                assert_eq!(audit.user, 0, "round {round}");
            }
            let before = queue.stats().rx;
            for _ in 0..10_000 {
                use_host(&mut queue).expect("clean");
                if queue.stats().rx > before + 100 {
                    return;
                }
                std::thread::yield_now();
            }
            panic!("no packets after the last reset");
        });
    }
}
