//! A NIC process's socket against clients that are silent, slow, hostile or merely curious.

use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ccnic::handshake::{self, Hello};
use ccnic::{Config, Features, HostPort, NicServer, Region, Rss};
use rustix::fs::{MemfdFlags, SealFlags};

fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("ccnic-server-{name}-{}.sock", std::process::id()))
}

/// A `ccnic-nic` process.
struct Nic {
    child: Child,
    socket: PathBuf,
}

impl Nic {
    fn start(name: &str, options: &[&str]) -> Nic {
        let socket = path(name);
        let child = Command::new(env!("CARGO_BIN_EXE_ccnic-nic"))
            .arg("--socket")
            .arg(&socket)
            .args(options)
            .stderr(Stdio::null())
            .spawn()
            .expect("the NIC program starts");
        wait(|| UnixStream::connect(&socket).is_ok());
        Nic { child, socket }
    }

    fn alive(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_none()
    }

    fn stats(&self) -> String {
        ccnic::read_stats(&self.socket).expect("a NIC answers")
    }

    /// Descriptors that the process has open.
    fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).expect("alive").count()
    }

    /// Time that the process has spent on a CPU.
    fn cpu_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("alive");
        let fields: Vec<&str> = stat.rsplit(')').next().expect("a name").split_whitespace().collect();
        // User and system time, in ticks of 10 ms.
        let ticks: u64 = fields[11..13].iter().map(|f| f.parse::<u64>().expect("a number")).sum();
        Duration::from_millis(10 * ticks)
    }

    /// Kibibytes of shared memory that the process has mapped and touched.
    fn shared_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("alive");
        let line = status.lines().find_map(|l| l.strip_prefix("RssShmem:")).expect("a line");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }

    /// Attaches an honest host and sees one packet come back.
    fn serves(&self) -> bool {
        let mut port = HostPort::create(Config { buffers: 64, slots: 16, ..Config::default() }).expect("region");
        let mut queue = port.queue(0).expect("first");
        if port.connect(&self.socket).is_err() {
            return false;
        }
        let mut bufs = Vec::new();
        queue.alloc(&mut bufs, 1, 64);
        queue.write(&mut bufs[0], &[1; 64]);
        queue.tx(&mut bufs).expect("an honest NIC");
        let deadline = Instant::now() + Duration::from_secs(10);
        while queue.rx(&mut bufs, 4).expect("an honest NIC") == 0 {
            if Instant::now() > deadline {
                return false;
            }
            std::thread::yield_now();
        }
        true
    }
}

impl Drop for Nic {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.socket);
        let _ = std::fs::remove_file(self.socket.with_extension("sock.lock"));
    }
}

fn wait(mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < deadline, "timed out");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn hello(config: Config) -> Vec<u8> {
    Hello { config, rss: Rss::default(), features: Features::RSS, term: 0 }.to_bytes()
}

fn send(stream: &UnixStream, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(200))];
    let mut ancillary = rustix::net::SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        ancillary.push(rustix::net::SendAncillaryMessage::ScmRights(fds));
    }
    rustix::net::sendmsg(stream, &[IoSlice::new(bytes)], &mut ancillary, rustix::net::SendFlags::NOSIGNAL)
        .expect("the server listens");
}

/// The NIC's answer: nothing, or why it refuses.
fn answer(mut stream: &UnixStream) -> Result<(), String> {
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
    let mut head = [0; 20];
    stream.read_exact(&mut head).expect("an answer");
    let bytes = u32::from_le_bytes([head[8], head[9], head[10], head[11]]) as usize;
    let mut rest = vec![0; bytes - 20];
    stream.read_exact(&mut rest).expect("all of it");
    let whole = [&head[..], &rest].concat();
    handshake::read_answer(&whole, Features::ALL).map(|_| ()).map_err(|e| e.to_string())
}

fn offer(nic: &Nic, message: &[u8], fds: &[BorrowedFd<'_>]) -> (UnixStream, Result<(), String>) {
    let stream = UnixStream::connect(&nic.socket).expect("the NIC listens");
    send(&stream, message, fds);
    let answer = answer(&stream);
    (stream, answer)
}

fn memfd(bytes: u64, flags: MemfdFlags, seals: SealFlags) -> rustix::io::Result<OwnedFd> {
    let fd = rustix::fs::memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | flags)?;
    rustix::fs::ftruncate(&fd, bytes)?;
    rustix::fs::fcntl_add_seals(&fd, seals)?;
    Ok(fd)
}

/// A region as the library makes it, grown to `bytes` without touching the rest.
fn genuine(bytes: u64) -> OwnedFd {
    let port = HostPort::create(Config::default()).expect("region");
    let fd = memfd(bytes, MemfdFlags::empty(), SealFlags::SHRINK).expect("a memfd");
    let mut head = vec![0; 4096];
    port.region().copy_out(0, &mut head);
    rustix::io::pwrite(&fd, &head, 0).expect("room");
    fd
}

/// A hole in ordinary pages is filled with zeros at the next access; reserved pages are gone.
#[test]
fn a_region_whose_pages_can_be_taken_away_never_kills_the_nic() {
    let mut nic = Nic::start("holes", &[]);
    let region = genuine(64 << 20);
    let (host, accepted) = offer(&nic, &hello(Config::default()), &[region.as_fd()]);
    assert_eq!(accepted, Ok(()));
    let all = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
    for _ in 0..20 {
        rustix::fs::fallocate(&region, all, 0, 64 << 20).expect("the seals allow it");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(nic.alive());
    drop(host);
    assert!(nic.serves());
    for (what, fd) in [
        ("not sealed", memfd(64 << 20, MemfdFlags::empty(), SealFlags::GROW).expect("a memfd")),
        ("4096 bytes", memfd(4096, MemfdFlags::empty(), SealFlags::SHRINK).expect("a memfd")),
        ("magic", memfd(64 << 20, MemfdFlags::empty(), SealFlags::SHRINK).expect("a memfd")),
    ] {
        let (_, refused) = offer(&nic, &hello(Config::default()), &[fd.as_fd()]);
        let why = refused.expect_err(what);
        assert!(why.contains(what) || what == "magic" && why.contains("was not made by"), "{what}: {why}");
    }
    let zero = std::fs::File::options().read(true).write(true).open("/dev/zero").expect("there");
    assert!(offer(&nic, &hello(Config::default()), &[zero.as_fd()]).1.is_err());
    assert!(offer(&nic, &hello(Config::default()), &[]).1.expect_err("no region").contains("descriptors"));
    assert!(offer(&nic, &hello(Config::default()), &[zero.as_fd(); 3]).1.is_err());
    // A kernel without hugetlbfs has no such memory to offer.
    if let Ok(fd) = memfd(64 << 20, MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB, SealFlags::SHRINK) {
        let why = offer(&nic, &hello(Config::default()), &[fd.as_fd()]).1.expect_err("hugetlb");
        assert!(why.contains("ordinary pages"), "{why}");
    }
    assert!(nic.alive() && nic.serves());
}

#[test]
fn the_nic_maps_what_the_configuration_needs_and_no_more_than_its_limit() {
    let nic = Nic::start("sparse", &["--max-region", "64"]);
    let region = genuine(6 << 30);
    let start = Instant::now();
    let (_host, accepted) = offer(&nic, &hello(Config::default()), &[region.as_fd()]);
    assert_eq!(accepted, Ok(()));
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert!(nic.shared_memory() < 20 << 10, "{} KiB of a region of 9 MiB", nic.shared_memory());
    let greedy = Config { buffers: 1 << 20, large_bytes: 32768, ..Config::default() };
    let why = offer(&nic, &hello(greedy), &[region.as_fd()]).1.expect_err("32 GiB");
    assert!(why.contains("at most 67108864"), "{why}");
}

#[test]
fn silent_slow_and_idle_clients_delay_nobody() {
    let nic = Nic::start("silent", &[]);
    let silent: Vec<UnixStream> = (0..8).map(|_| UnixStream::connect(&nic.socket).expect("listening")).collect();
    let mut slow = UnixStream::connect(&nic.socket).expect("listening");
    slow.write_all(&hello(Config::default())[..50]).expect("sent");
    let start = Instant::now();
    assert!(nic.serves());
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    // A host that is attached and does nothing.
    let region = genuine(64 << 20);
    let (idle, accepted) = offer(&nic, &hello(Config::default()), &[region.as_fd()]);
    assert_eq!(accepted, Ok(()));
    let start = Instant::now();
    assert!(nic.serves());
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    // Its region is taken, also if the message comes again.
    let why = offer(&nic, &hello(Config::default()), &[region.as_fd()]).1.expect_err("it has a NIC");
    assert!(why.contains("another NIC"), "{why}");
    // The greeting may come in two parts.
    let region = genuine(64 << 20);
    let stream = UnixStream::connect(&nic.socket).expect("listening");
    let whole = hello(Config::default());
    send(&stream, &whole[..50], &[region.as_fd()]);
    std::thread::sleep(Duration::from_millis(20));
    send(&stream, &whole[50..], &[]);
    assert_eq!(answer(&stream), Ok(()));
    drop((silent, idle));
}

/// Clients that send descriptors and then nothing hold few of the NIC's, together.
#[test]
fn unfinished_handshakes_hold_few_descriptors() {
    let nic = Nic::start("parked", &[]);
    let before = nic.descriptors();
    let null = std::fs::File::open("/dev/null").expect("there");
    let silent: Vec<UnixStream> = (0..20)
        .map(|_| {
            let stream = UnixStream::connect(&nic.socket).expect("listening");
            send(&stream, &hello(Config::default())[..12], &[null.as_fd(); 65]);
            stream
        })
        .collect();
    assert!(nic.serves());
    let held = nic.descriptors() - before;
    assert!(held < 20 + 3 * 65, "{held} descriptors");
    assert!(answer(&silent[0]).expect_err("it held on to them for the longest time").contains("unfinished"));
}

/// A NIC without a descriptor for the next client waits until there is one, and does not spin.
#[test]
fn a_nic_that_has_no_descriptor_left_rests() {
    use rustix::process::{prlimit, Pid, Resource, Rlimit};
    let nic = Nic::start("exhausted", &[]);
    let pid = Pid::from_raw(nic.child.id() as i32);
    let most = |n: u64| prlimit(pid, Resource::Nofile, Rlimit { current: Some(n), maximum: Some(1 << 10) });
    let enough = most(nic.descriptors() as u64).expect("a child");
    let clients: Vec<UnixStream> = (0..4).map(|_| UnixStream::connect(&nic.socket).expect("listening")).collect();
    std::thread::sleep(Duration::from_millis(100));
    let before = nic.cpu_time();
    std::thread::sleep(Duration::from_secs(1));
    let busy = nic.cpu_time() - before;
    assert!(busy < Duration::from_millis(200), "{busy:?} in a second");
    most(enough.current.unwrap_or(1 << 10).min(1 << 10)).expect("a child");
    assert!(nic.serves());
    drop(clients);
}

/// One deadline for the whole handshake: bytes that trickle in do not extend it.
#[test]
fn a_dripping_nic_holds_connect_for_one_deadline() {
    let socket = path("drip");
    let listener = UnixListener::bind(&socket).expect("a free path");
    let server = std::thread::spawn(move || {
        let (mut host, _) = listener.accept().expect("the host");
        for byte in handshake::answer(Err("x")) {
            if host.write_all(&[byte]).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(1500));
        }
    });
    let mut port = HostPort::create(Config::default()).expect("region");
    let start = Instant::now();
    assert!(port.connect(&socket).is_err());
    assert!(start.elapsed() < Duration::from_secs(7), "{:?}", start.elapsed());
    std::fs::remove_file(&socket).expect("there");
    server.join().expect("no panic");
}

#[test]
fn only_a_dead_socket_is_replaced() {
    let socket = path("precious");
    std::fs::write(&socket, "data").expect("a file");
    let e = NicServer::bind(&socket).err().expect("refused").to_string();
    assert!(e.contains("another kind"), "{e}");
    assert_eq!(std::fs::read_to_string(&socket).expect("still there"), "data");
    std::fs::remove_file(&socket).expect("there");

    // A socket that a dead process left.
    drop(UnixListener::bind(&socket).expect("a free path"));
    let server = NicServer::bind(&socket).expect("nobody listens");
    let e = NicServer::bind(&socket).err().expect("refused").to_string();
    assert!(e.contains("in use"), "{e}");
    assert!(socket.exists(), "the refused one took nothing away");

    // Somebody else's socket that has taken the name meanwhile stays.
    std::fs::remove_file(&socket).expect("there");
    let other = UnixListener::bind(&socket).expect("a free path");
    drop(server);
    assert!(socket.exists());
    assert!(!socket.with_extension("sock.lock").exists(), "the lock went with its server");
    let e = NicServer::bind(&socket).err().expect("refused").to_string();
    assert!(e.contains("another program"), "{e}");
    drop(other);
    std::fs::remove_file(&socket).expect("there");
}

#[test]
fn a_mere_probe_is_no_host_and_hosts_are_served_side_by_side() {
    let mut nic = Nic::start("probe", &["--hosts", "2", "--at-once", "2"]);
    for _ in 0..5 {
        drop(UnixStream::connect(&nic.socket).expect("listening"));
    }
    assert!(nic.stats().contains("hosts 0\n"), "{}", nic.stats());
    let mut ports: Vec<HostPort> = (0..2)
        .map(|_| {
            let mut port = HostPort::create(Config { buffers: 64, ..Config::default() }).expect("region");
            port.connect(&nic.socket).expect("room for two");
            port
        })
        .collect();
    assert!(nic.alive());
    ports.clear();
    wait(|| !nic.alive());
}

/// A host that is refused, before or after its region is looked at, is not one of those that `--hosts` counts.
#[test]
fn a_refused_host_is_not_counted_as_served() {
    let mut nic = Nic::start("counted", &["--hosts", "1"]);
    let region = memfd(64 << 20, MemfdFlags::empty(), SealFlags::SHRINK).expect("a memfd");
    for _ in 0..3 {
        let why = offer(&nic, &hello(Config::default()), &[region.as_fd()]).1.expect_err("no region of the library");
        assert!(why.contains("was not made by"), "{why}");
    }
    assert!(nic.serves());
    wait(|| !nic.alive());
}

#[test]
fn the_counters_can_be_asked_for_while_hosts_are_served() {
    let nic = Nic::start("stats", &[]);
    let mut port = HostPort::create(Config { poll_us: 100, ..Config::default() }).expect("region");
    let mut queue = port.queue(0).expect("first");
    port.connect(&nic.socket).expect("listening");
    assert!(port.features().has(Features::EVENT));
    let mut bufs = Vec::new();
    queue.alloc(&mut bufs, 10, 64);
    bufs.iter_mut().for_each(|b| queue.write(b, &[1; 64]));
    assert_eq!(queue.tx(&mut bufs).expect("room"), 10);
    wait(|| nic.stats().contains("host1.rx 10\n"));
    assert!(nic.stats().contains("hosts 1\n") && nic.stats().contains("host1.rx_bytes 640\n"), "{}", nic.stats());
    let printed = Command::new(env!("CARGO_BIN_EXE_ccnic-nic"))
        .args(["--stats", "--socket"])
        .arg(&nic.socket)
        .output()
        .expect("the program runs");
    assert!(printed.status.success() && String::from_utf8_lossy(&printed.stdout).contains("host1.faults 0\n"));
    drop((queue, port));
    wait(|| nic.stats().contains("gone.rx 10\n"));
}

#[test]
fn nonsense_is_refused() {
    let nic = Nic::start("nonsense", &[]);
    for message in [&b"hello, this is no greeting at all"[..], &[0; 100], &hello(Config::default())[4..]] {
        let stream = UnixStream::connect(&nic.socket).expect("listening");
        send(&stream, message, &[]);
        assert!(answer(&stream).expect_err("nonsense").contains("not one of CC-NIC's"));
    }
    let mut other = hello(Config::default());
    other[4..8].copy_from_slice(&(7u32 << 16).to_le_bytes());
    let stream = UnixStream::connect(&nic.socket).expect("listening");
    send(&stream, &other, &[]);
    assert!(answer(&stream).expect_err("a later version").contains("version 7.0"));
    assert!(nic.stats().contains("refused 4\n"), "{}", nic.stats());
}

/// What another user is told who connects to the NIC; none where this test cannot become one.
fn another_user(nic: &Nic) -> Option<String> {
    use std::os::unix::process::CommandExt;
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can become another user");
        return None;
    }
    let out = Command::new(std::env::current_exe().expect("this test"))
        .args(["child_of_another_user", "--exact", "--nocapture"])
        .env("CCNIC_TEST_SOCKET", &nic.socket)
        .uid(65534)
        .output();
    match out {
        Ok(out) if out.status.success() => Some(String::from_utf8_lossy(&out.stdout).into_owned()),
        _ => {
            eprintln!("skipped: another user cannot run this test");
            None
        }
    }
}

/// With the usual umask of 022; who is allowed can connect, and everybody else learns why they cannot.
#[test]
fn a_user_who_is_allowed_is_served_and_another_is_refused_in_one_sentence() {
    let closed = Nic::start("closed", &[]);
    let Some(said) = another_user(&closed) else { return };
    let why = "user 65534 may not connect to socket";
    assert!(said.contains(why) && said.contains("--allow-user 65534"), "{said}");
    let open = Nic::start("other", &["--allow-user", "1"]);
    let said = another_user(&open).expect("as before");
    assert!(said.contains("user 65534 may not use this NIC"), "{said}");
    let open = Nic::start("allowed", &["--allow-user", "1", "--allow-user", "65534"]);
    let said = another_user(&open).expect("as before");
    assert!(said.contains("it is served"), "{said}");
}

/// Runs only as a child of the test above.
#[test]
fn child_of_another_user() {
    if let Some(socket) = std::env::var_os("CCNIC_TEST_SOCKET") {
        let mut port = HostPort::create(Config::default()).expect("region");
        println!("{}", port.connect(socket).map_or_else(|e| e.to_string(), |()| "it is served".into()));
    }
}

/// Transparent huge pages or, in one sentence, none.
#[test]
fn huge_pages_fall_back_to_small_ones_in_one_sentence() {
    let (region, notice) = Region::memfd(5 << 20, true).expect("memory either way");
    assert_eq!(region.len(), 6 << 20);
    region.copy_in(6 << 20, &[]);
    region.copy_in((6 << 20) - 4, b"last");
    let maps = std::fs::read_to_string("/proc/self/smaps").expect("Linux");
    let ours = maps.split("memfd:ccnic").find(|m| m.contains("Size:               6144 kB"));
    let mapped = ours.is_some_and(|m| m.contains("ShmemPmdMapped:     6144 kB"));
    assert_eq!(mapped, notice.is_none(), "{notice:?}");
    if let Some(why) = notice {
        assert!(why.contains("so the region uses 4 KiB pages"), "{why}");
    }
}
