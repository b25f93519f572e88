//! Host and NIC as real processes: hand-over of the region, and kill -9 of either side.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ccnic::mem::Mem;
use ccnic::{Config, Error, HostPort, HostQueue, NicServer};

struct Nic {
    child: Child,
    socket: PathBuf,
}

impl Nic {
    fn start(name: &str) -> Nic {
        let socket = std::env::temp_dir().join(format!("ccnic-{name}-{}.sock", std::process::id()));
        let _ = std::fs::remove_file(&socket);
        let child = Command::new(env!("CARGO_BIN_EXE_ccnic-nic"))
            .arg("--socket")
            .arg(&socket)
            .spawn()
            .expect("the NIC program starts");
        wait(|| socket.exists());
        Nic { child, socket }
    }

    /// Sends a signal and waits until it has taken effect.
    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &id]).status().expect("kill runs").success());
        let stopped = || std::fs::read_to_string(format!("/proc/{id}/stat")).expect("alive").contains(") T ");
        wait(|| stopped() == (name == "STOP"));
    }

    fn kill(&mut self) {
        self.child.kill().expect("kill -9");
        self.child.wait().expect("reaped");
    }
}

impl Drop for Nic {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.socket);
    }
}

fn wait(mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < deadline, "timed out");
        std::thread::yield_now();
    }
}

fn connect(port: &mut HostPort, nic: &Nic) {
    // The socket file exists a moment before the process listens.
    wait(|| port.connect(&nic.socket).is_ok());
}

/// Sends up to 32 packets and takes what has come back; returns the number received.
fn turn(queue: &mut HostQueue) -> usize {
    let mut bufs = Vec::new();
    queue.alloc(&mut bufs, 32, 64);
    bufs.iter_mut().for_each(|b| queue.write(b, &[0xab; 64]));
    queue.tx(&mut bufs).expect("an honest NIC");
    queue.free(&mut bufs);
    let got = queue.rx(&mut bufs, 64).expect("an honest NIC");
    assert!(bufs.iter().all(|b| queue.to_vec(b) == [0xab; 64]));
    queue.free(&mut bufs);
    if got == 0 {
        std::thread::yield_now();
    }
    got
}

fn exchange(queue: &mut HostQueue, packets: usize) {
    let mut got = 0;
    wait(|| {
        got += turn(queue);
        got >= packets
    });
}

#[test]
fn a_killed_nic_is_noticed_its_buffers_reclaimed_and_the_next_one_served() {
    for config in [Config::default(), Config::unoptimised()] {
        let mut nic = Nic::start(if config.shared_pool { "kill-cc" } else { "kill-un" });
        let mut port = HostPort::create(config).expect("region");
        let mut queue = port.queue(0).expect("first");
        connect(&mut port, &nic);
        // The application keeps three buffers of its own through all of it.
        let mut kept = Vec::new();
        queue.alloc(&mut kept, 3, 0);
        for _ in 0..3 {
            exchange(&mut queue, 2000);
            assert!(port.peer_alive());
            nic.kill();
            wait(|| !port.peer_alive());
            // Whatever the NIC was doing when it died, the host can go on calling.
            for _ in 0..100 {
                turn(&mut queue);
            }
            let socket = nic.socket.clone();
            assert!(matches!(port.connect(&socket), Err(Error::Usage(_))), "recover first");
            port.recover(&mut [&mut queue]).expect("nobody to wait for");
            let audit = port.audit(&[&queue]);
            assert_eq!(audit.user, kept.len());
            assert_eq!(audit.user + audit.stacked + audit.pooled, audit.total, "no buffer lost");
            drop(nic);
            nic = Nic::start("next");
            connect(&mut port, &nic);
        }
        exchange(&mut queue, 2000);
        assert_eq!(port.resets(), 3);
    }
}

/// A NIC that was stopped, replaced, and goes on acknowledges no reset in its successor's place.
#[test]
fn a_replaced_nic_that_wakes_up_does_not_acknowledge_for_its_successor() {
    for config in [Config::default(), Config { poll_us: 50, ..Config::default() }] {
        let nics = ["first", "second", "third"].map(|name| Nic::start(&format!("replaced-{name}")));
        let mut port = HostPort::create(config).expect("region");
        let mut queue = port.queue(0).expect("first");
        connect(&mut port, &nics[0]);
        exchange(&mut queue, 100);
        nics[0].signal("STOP");
        assert!(matches!(port.recover(&mut [&mut queue]), Err(Error::Peer(_))), "it does not stop its queues");
        connect(&mut port, &nics[1]);
        exchange(&mut queue, 100);
        nics[0].signal("CONT");
        // It finds that it was replaced, and is there for the next host.
        wait(|| ccnic::read_stats(&nics[0].socket).expect("alive").contains("hosts 0\n"));
        nics[1].signal("STOP");
        assert!(matches!(port.recover(&mut [&mut queue]), Err(Error::Peer(_))), "nobody answers for it");
        assert!(!port.peer_alive());
        connect(&mut port, &nics[2]);
        exchange(&mut queue, 100);
        port.recover(&mut [&mut queue]).expect("it follows");
        exchange(&mut queue, 100);
    }
}

/// The NIC may write every word of the page of control words, and dies. After a reset the next NIC takes the region as any other.
#[test]
fn control_words_that_a_dead_nic_has_overwritten_keep_no_other_nic_away() {
    let mut nic = Nic::start("overwritten");
    let mut port = HostPort::create(Config::default()).expect("region");
    let mut queue = port.queue(0).expect("first");
    connect(&mut port, &nic);
    exchange(&mut queue, 100);
    nic.kill();
    (0..512).for_each(|word| port.region().put(word, 0x5a5a_5a5a_5a5a_5a5a));
    wait(|| !port.peer_alive());
    port.recover(&mut [&mut queue]).expect("nobody to wait for");
    let nic = Nic::start("honest");
    connect(&mut port, &nic);
    exchange(&mut queue, 2000);
}

/// Runs only as a child of the test below: a host that talks until it is killed.
#[test]
fn child_host() {
    let Some(socket) = std::env::var_os("CCNIC_TEST_CHILD_SOCKET") else {
        return;
    };
    let mut port = HostPort::create(Config::default()).expect("region");
    let mut queue = port.queue(0).expect("first");
    wait(|| port.connect(&socket).is_ok());
    exchange(&mut queue, 1000);
    println!("\nready");
    loop {
        turn(&mut queue);
    }
}

#[test]
fn a_killed_host_is_noticed_and_the_next_one_served() {
    let nic = Nic::start("host");
    for _ in 0..3 {
        let mut host = Command::new(std::env::current_exe().expect("this test"))
            .args(["child_host", "--exact", "--nocapture"])
            .env("CCNIC_TEST_CHILD_SOCKET", &nic.socket)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the child host starts");
        let lines = BufReader::new(host.stdout.take().expect("piped")).lines();
        let ready = lines.map_while(Result::ok).any(|l| l == "ready");
        host.kill().expect("kill -9");
        host.wait().expect("reaped");
        assert!(ready, "the host exchanged packets with the NIC");
    }
    let mut port = HostPort::create(Config::default()).expect("region");
    let mut queue = port.queue(0).expect("first");
    connect(&mut port, &nic);
    exchange(&mut queue, 1000);
}

/// A live NIC follows a reset that the host asks for.
#[test]
fn a_reset_with_a_live_nic_loses_nothing() {
    let nic = Nic::start("reset");
    let mut port = HostPort::create(Config { queues: 2, ..Config::default() }).expect("region");
    let (mut a, mut b) = (port.queue(0).expect("first"), port.queue(1).expect("second"));
    connect(&mut port, &nic);
    for _ in 0..5 {
        exchange(&mut a, 500);
        exchange(&mut b, 500);
        port.recover(&mut [&mut a, &mut b]).expect("a live NIC");
        assert!(port.peer_alive());
    }
    exchange(&mut a, 500);
    exchange(&mut b, 500);
}

/// A host parts from a live NIC and comes back, serving more queues each time; the NIC that
/// was left never touches the rings again.
#[test]
fn a_host_changes_its_nic_and_the_queues_served() {
    let mut nics = [Nic::start("first"), Nic::start("second")];
    let mut port = HostPort::create(Config { queues: 3, ..Config::default() }).expect("region");
    let mut queues: Vec<HostQueue> = Vec::new();
    for served in 1..4u32 {
        port.set_served(served).expect("no NIC");
        queues.push(port.queue(served - 1).expect("opened once"));
        connect(&mut port, &nics[served as usize % 2]);
        assert!(matches!(port.set_served(1), Err(Error::Usage(_))), "a NIC serves them already");
        queues.iter_mut().for_each(|q| exchange(q, 500));
        port.disconnect();
        assert!(!port.peer_alive());
        let mut open: Vec<&mut HostQueue> = queues.iter_mut().collect();
        port.recover(&mut open).expect("nobody to wait for");
        let audit = port.audit(&queues.iter().collect::<Vec<_>>());
        assert_eq!((audit.user, audit.stacked + audit.pooled), (0, audit.total), "no buffer lost");
    }
    nics.iter_mut().for_each(Nic::kill);
}

#[test]
fn a_host_that_sends_nonsense_is_refused() {
    let path = std::env::temp_dir().join(format!("ccnic-nonsense-{}.sock", std::process::id()));
    let server = NicServer::bind(&path).expect("free path");
    for greeting in [&b"hello"[..], &[0; 100], &[0x43, 0x43, 0x43, 0x31]] {
        use std::io::Write;
        let mut s = std::os::unix::net::UnixStream::connect(&path).expect("listening");
        s.write_all(greeting).expect("sent");
        assert!(server.accept().is_err());
    }
}
