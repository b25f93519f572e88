//! Event mode: who finds nothing for a while sleeps, and is woken by the other side.

use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use ccnic::{Config, Features, HostPort, HostQueue, Offload};

fn config() -> Config {
    Config { poll_us: 200, buffers: 256, ..Config::default() }
}

/// CPU time that a process has used.
fn cpu_time(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("alive");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("a name").split_whitespace().collect();
    let ticks: u64 = fields[11..13].iter().map(|f| f.parse::<u64>().expect("a number")).sum();
    Duration::from_millis(ticks * 10)
}

struct Nic(Child, PathBuf);

impl Nic {
    fn start() -> Nic {
        let socket = std::env::temp_dir().join(format!("ccnic-event-{}.sock", std::process::id()));
        let child = Command::new(env!("CARGO_BIN_EXE_ccnic-nic")).arg("--socket").arg(&socket).spawn().expect("starts");
        Nic(child, socket)
    }
}

impl Drop for Nic {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
        let _ = std::fs::remove_file(&self.1);
        let _ = std::fs::remove_file(self.1.with_extension("sock.lock"));
    }
}

/// One packet there and back, waiting without polling; how long it took.
fn round_trip(queue: &mut HostQueue) -> Duration {
    let mut bufs = Vec::new();
    queue.alloc(&mut bufs, 1, 64);
    queue.write(&mut bufs[0], &[3; 64]);
    let start = Instant::now();
    assert_eq!(queue.tx(&mut bufs).expect("room"), 1);
    while queue.rx(&mut bufs, 4).expect("an honest NIC") == 0 {
        assert!(start.elapsed() < Duration::from_secs(10), "the packet does not come back");
        queue.wait(Duration::from_secs(1)).expect("an honest NIC");
    }
    assert_eq!(queue.to_vec(&bufs[0]), [3; 64]);
    queue.free(&mut bufs);
    start.elapsed()
}

#[test]
fn idle_sides_sleep_and_wake_each_other_across_processes() {
    let nic = Nic::start();
    let mut port = HostPort::create(config()).expect("region");
    let mut queue = port.queue(0).expect("first");
    let deadline = Instant::now() + Duration::from_secs(10);
    while port.connect(&nic.1).is_err() {
        assert!(Instant::now() < deadline, "the NIC does not listen");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(port.features().has(Features::EVENT));
    round_trip(&mut queue);
    let (before, start) = (cpu_time(nic.0.id()), Instant::now());
    std::thread::sleep(Duration::from_millis(1500));
    let used = cpu_time(nic.0.id()) - before;
    assert!(used < start.elapsed() / 10, "idle for {:?}, busy for {used:?}", start.elapsed());

    // Every round trip ends long before a sleep does by itself.
    let mut times: Vec<Duration> = (0..100)
        .map(|i| {
            std::thread::sleep(Duration::from_micros(100 * (i % 10)));
            round_trip(&mut queue)
        })
        .collect();
    times.sort();
    assert!(times[90] < Duration::from_millis(50), "{:?}", &times[90..]);
    assert!(queue.stats().wakes > 0, "{:?}", queue.stats());

    // A host that waits learns at once that its NIC is gone.
    drop(nic);
    let start = Instant::now();
    let mut looks = 0;
    while port.peer_alive() {
        queue.wait(Duration::from_secs(5)).expect("no fault");
        looks += 1;
        assert!(looks < 1000 && start.elapsed() < Duration::from_secs(5));
    }
}

/// Who sleeps in a poll of their own is woken once for each time they armed the queue.
#[test]
fn an_armed_queue_makes_its_descriptor_readable() {
    use rustix::event::{poll, PollFd, PollFlags, Timespec};
    for config in [config(), Config { poll_us: 200, ..Config::unoptimised() }] {
        let mut port = HostPort::create(config).expect("region");
        let mut queue = port.queue(0).expect("first");
        let mut nic = port.local_nic().expect("first");
        let mut far = nic.queue(0).expect("first");
        let fd = queue.event_fd().expect("event mode");
        let rung = |ms: i64| {
            let limit = Timespec { tv_sec: 0, tv_nsec: ms * 1_000_000 };
            poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&limit)).expect("no signal") == 1
        };
        let mut bufs = Vec::new();
        for armed in [true, false, true] {
            if armed {
                assert!(!queue.arm().expect("sound"), "nothing waits");
            }
            queue.alloc(&mut bufs, 1, 64);
            queue.write(&mut bufs[0], &[3; 64]);
            assert_eq!(queue.tx(&mut bufs).expect("room"), 1);
            assert!(!rung(1), "the NIC has done nothing yet");
            far.loopback(4).expect("honest");
            assert_eq!(rung(1), armed);
            assert!(queue.arm().expect("sound"), "a packet waits");
            queue.disarm();
            assert!(!rung(1), "nothing is left of the wake-up");
            assert_eq!(queue.rx(&mut bufs, 4).expect("honest"), 1);
            queue.free(&mut bufs);
        }
        drop((far, nic));
        assert!(rung(999), "a NIC that is gone wakes, too");
    }

    let mut port = HostPort::create(Config::default()).expect("region");
    assert!(port.queue(0).expect("first").arm().expect("sound"), "who does not sleep has to poll");
}

/// Threads that sleep at every chance, with pauses around the time when they fall asleep.
#[test]
fn no_wake_up_is_lost_around_falling_asleep() {
    for config in [config(), Config { poll_us: 200, ..Config::unoptimised() }] {
        let mut port = HostPort::create(Config { poll_us: 1, ..config }).expect("region");
        let mut queue = port.queue(0).expect("first");
        let mut nic = port.local_nic().expect("first");
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|s| {
            let mut far = vec![nic.queue(0).expect("first")];
            let stop = &stop;
            s.spawn(move || nic.serve_loopback(&mut far, stop));
            let mut slow = 0;
            for i in 0..3000u32 {
                let until = Instant::now() + Duration::from_nanos(u64::from(i % 60) * 100);
                while Instant::now() < until {
                    std::hint::spin_loop();
                }
                slow += u32::from(round_trip(&mut queue) > Duration::from_millis(90));
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            // A lost wake-up costs the whole nap, each time; a loaded machine costs it now and then.
            assert!(slow < 30, "{slow} of 3000 took as long as a nap");
        });
        assert!(queue.stats().sleeps > 0, "{:?}", queue.stats());
    }
}

#[test]
fn offload_headers_travel_both_ways_and_need_an_agreement() {
    let tcp = Offload { flags: 1, gso_type: 1, hdr_len: 54, gso_size: 1000, csum_start: 34, csum_offset: 16 };
    for offload in [1, 0] {
        let config = Config { offload, mtu: 1500, ..Config::default() };
        let mut port = HostPort::create_private(config).expect("valid");
        let mut queue = port.queue(0).expect("first");
        let mut nic = port.local_nic().expect("first");
        let mut far = nic.queue(0).expect("first");
        let mut bufs = Vec::new();
        // 54 bytes of headers and 2946 of payload: longer than the MTU, but each segment is not.
        queue.alloc(&mut bufs, 1, 0);
        queue.write_offload(&mut bufs[0], &tcp, &[7; 3000]);
        let sent = queue.tx(&mut bufs);
        if offload == 0 {
            assert!(sent.expect_err("not agreed").to_string().contains("not agreed"));
            continue;
        }
        assert_eq!(sent.expect("agreed"), 1);
        far.loopback(4).expect("honest");
        assert_eq!(queue.rx(&mut bufs, 4).expect("honest"), 1);
        assert_eq!(queue.offload(&bufs[0], bufs[0].len()), Some(tcp));
        assert_eq!(queue.to_vec(&bufs[0])[Offload::BYTES..], [7; 3000]);
        queue.free(&mut bufs);
        // Segments longer than the MTU, and a plain packet of that length, are refused.
        queue.alloc(&mut bufs, 1, 0);
        queue.write_offload(&mut bufs[0], &Offload { gso_size: 1447, ..tcp }, &[7; 3000]);
        assert!(queue.tx(&mut bufs).expect_err("1501 bytes").to_string().contains("MTU"));
        queue.free(&mut bufs);
        queue.alloc(&mut bufs, 1, 0);
        queue.write(&mut bufs[0], &[7; 1501]);
        assert!(queue.tx(&mut bufs).expect_err("1501 bytes").to_string().contains("MTU"));
        queue.write(&mut bufs[0], &[7; 1500]);
        assert_eq!(queue.tx(&mut bufs).expect("1500 bytes"), 1);
        assert_eq!(queue.stats().oversize, 2);
    }
}
