//! Records programs whose accesses are known to the instruction. The tests need a C compiler.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use hostnet_record::{record, Between, Options, Target, Told, Value};
use hostnet_recording::{AccessKind, Counts, Outcome, Packet, PageKind, Place, Recording};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A program of `tests/programs`, compiled once for each test.
fn program(name: &str) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name);
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{:?}", std::thread::current().id()));
    let built = Command::new("cc").args(["-O1", "-pthread", "-o"]).arg(&out).arg(source).status();
    match built {
        Ok(status) => assert!(status.success(), "the C compiler failed on {name}"),
        Err(_) => {
            eprintln!("not tested: there is no C compiler (cc)");
            return None;
        }
    }
    may_trace().then_some(out)
}

/// Whether this machine lets a process trace its children at all; some containers forbid it.
fn may_trace() -> bool {
    static MAY: OnceLock<bool> = OnceLock::new();
    *MAY.get_or_init(|| {
        let between = Between::Addresses { enter: "0x1".into(), leave: None, frame: None };
        let o = Options { time: Duration::from_millis(10), ..options(run(Path::new("/bin/true"), &[]), between, 1) };
        match record(&o, &mut |_| Told::Continue) {
            Err(e) if e.to_string().contains("may not be traced") || e.to_string().contains("cannot be traced") => {
                eprintln!("not tested: {e}");
                false
            }
            _ => true,
        }
    })
}

fn options(target: Target, between: Between, packets: u32) -> Options {
    let time = Duration::from_secs(30);
    Options {
        target,
        between,
        packets,
        skip: 0,
        longest: 2_000_000,
        time,
        version: String::new(),
        recorder: "a test".into(),
    }
}

fn run(program: &Path, arguments: &[&str]) -> Target {
    Target::Run { program: program.into(), arguments: arguments.iter().map(|a| a.to_string()).collect() }
}

fn handle() -> Between {
    let value = |text| Value::parse(text).unwrap();
    Between::Addresses { enter: "handle".into(), leave: None, frame: Some((value("rdi"), value("rsi"))) }
}

fn made(o: &Options) -> Recording {
    record(o, &mut |_| Told::Continue).unwrap()
}

/// Kind, place, bytes, instructions before it, and sources of each access.
type Seen = (AccessKind, Place, u32, u32, Vec<u32>);

fn seen(p: &Packet) -> Vec<Seen> {
    let step = |s: &hostnet_recording::Step| {
        (s.access.kind, s.access.place, s.access.bytes, s.before.instructions, s.access.address_from.iter().collect())
    };
    p.steps.iter().map(step).collect()
}

fn kind_of(r: &Recording, place: Place) -> Option<PageKind> {
    match place {
        Place::Memory { page, .. } => Some(r.pages[page as usize].kind),
        _ => None,
    }
}

/// Values are those of the instructions of `chase.c`, counted by hand.
#[test]
fn a_known_function_is_recorded_to_the_instruction() {
    let Some(program) = program("chase.c") else { return };
    let r = made(&options(run(&program, &["1000"]), handle(), 20));
    assert_eq!(r.packets.len(), 20);
    assert_eq!(r.about.command[1..], ["1000"]);
    use AccessKind::{Atomic, Load, Prefetch, Store, StreamStore};
    for (n, p) in (0u64..).zip(&r.packets) {
        assert_eq!((p.received, p.outcome), (1514, Outcome::Consumed));
        let all = seen(p);
        let kinds: Vec<AccessKind> = all.iter().map(|a| a.0).collect();
        let mut want = vec![Load, Load, Load, Store, Load, Store, Load];
        want.extend([Load; 5]);
        want.extend([Prefetch, Atomic, StreamStore, Store, Load, Load, Load]);
        assert_eq!(kinds, want);
        // The frame.
        assert_eq!(all[0], (Load, Place::Frame(12), 2, 1, vec![]));
        assert_eq!((all[2].1, all[4].1, all[12].1), (Place::Frame(0), Place::Frame(16), Place::Frame(64)));
        // The table: index from the frame, in the page and at the offset that follow from it.
        let byte = |factor: u64| n * factor % 256;
        let index = (byte(7) + 256 * byte(3)) % 8192;
        let Place::Memory { page, offset } = all[1].1 else { panic!("{:?}", all[1]) };
        assert_eq!((u64::from(offset), all[1].2, &all[1].4[..]), (index * 4 % 4096, 4, &[1][..]));
        assert_eq!(r.pages[page as usize].kind, PageKind::Global);
        // The list: links of 128 bytes, each found by the one before; (i * 5 + 1) mod 64 follows i.
        let links = [0u64, 1, 6, 31, 28];
        for (a, link) in all[7..12].iter().zip(links) {
            let Place::Memory { offset, .. } = a.1 else { panic!("{a:?}") };
            assert_eq!((u64::from(offset), &a.4[..]), (link * 128 % 4096, &[1][..]));
        }
        assert_eq!((&all[13].4[..], &all[14].4[..]), (&[2][..], &[3][..]), "the last link is two accesses before");
        assert_eq!(all[17].4, [1, 6], "a spilled register keeps its source");
        assert_eq!(kind_of(&r, all[15].1), Some(PageKind::Stack));
        let total = p.total();
        assert_eq!((total.instructions, total.branches, total.taken), (33, 6, 5));
        assert_eq!(p.rest, Counts { branches: 1, taken: 1, ..Counts::default() }, "the return");
    }
}

#[test]
fn two_recordings_are_the_same() {
    let Some(program) = program("chase.c") else { return };
    let o = options(run(&program, &["1000"]), handle(), 50);
    let (a, b) = (made(&o), made(&o));
    assert_eq!((a.packets, a.pages), (b.packets, b.pages));
}

#[test]
fn addresses_are_as_good_as_symbols() {
    let Some(program) = program("chase.c") else { return };
    let symbols = Command::new("nm").arg(&program).output().expect("binutils come with the compiler").stdout;
    let text = String::from_utf8(symbols).unwrap();
    let address = text.lines().find_map(|l| l.strip_suffix(" T handle")).expect("the symbol");
    let between = Between::Addresses { enter: format!("0x{address}"), leave: None, frame: None };
    let r = made(&options(run(&program, &["1000"]), between, 3));
    assert_eq!(r.packets[0].total().instructions, 33);
}

/// Packets that the program counts for itself go on after the recorder has let it go.
#[test]
fn an_attached_program_goes_on() {
    let Some(program) = program("chase.c") else { return };
    let mut child = Command::new(&program).args(["3000", "300"]).stdout(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let r = made(&options(Target::Attach(child.id() as i32), handle(), 10));
    assert_eq!(r.packets.len(), 10);
    assert_eq!(r.packets[5].total().instructions, 33);
    assert!(child.wait().unwrap().success(), "the program ends by itself, and well");
}

/// A server that has answered and waits for the next message in `recvfrom` when the time of the recording is over.
#[test]
fn an_attached_server_that_waits_for_a_message_goes_on() {
    let Some(program) = program("datagrams.c") else { return };
    let port = 30_000 + (std::process::id() % 10_000) as u16;
    let mut server = Ended(Command::new(&program).arg(port.to_string()).spawn().unwrap());
    let client = std::net::UdpSocket::bind(("127.0.0.1", 0)).unwrap();
    client.connect(("127.0.0.1", port)).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let messages = client.try_clone().unwrap();
    let clients = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        for _ in 0..5 {
            messages.send(&[7; 40]).unwrap();
            messages.recv(&mut [0; 64]).unwrap();
        }
    });
    let o = options(Target::Attach(server.0.id() as i32), Between::Sockets { only: None }, 1000);
    let r = made(&Options { time: Duration::from_secs(2), ..o });
    clients.join().unwrap();
    assert!((4..=5).contains(&r.packets.len()), "{} packets", r.packets.len());
    client.send(&[7; 40]).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(server.0.try_wait().unwrap(), None, "the server lives");
    assert_eq!(client.recv(&mut [0; 64]).unwrap(), 40, "the server answers as before");
    client.send(&[0]).unwrap();
    let ended = server.0.wait().unwrap();
    assert!(ended.success(), "{ended}");
}

/// Each of four threads handles its packets; a table of its own is that thread's, and the counter is everybody's.
#[test]
fn threads_are_recorded_by_themselves() {
    let Some(program) = program("threads.c") else { return };
    let r = made(&options(run(&program, &[]), enter("handle", None), 200));
    assert!(r.threads.len() > 1, "{:?}", r.threads);
    let (mut own, mut shared) = (0, 0);
    for p in &r.packets {
        assert_eq!(p.total().instructions, 4, "{:?}", p.steps);
        let Place::Memory { page, .. } = p.steps[0].access.place else { panic!() };
        assert_eq!(r.pages[page as usize].thread, Some(p.thread));
        own += 1;
        let Place::Memory { page, .. } = p.steps[2].access.place else { panic!() };
        assert_eq!((p.steps[2].access.kind, r.pages[page as usize].thread), (AccessKind::Atomic, None));
        shared += 1;
    }
    assert_eq!((own, shared), (r.packets.len(), r.packets.len()));
}

fn client(port: u16, messages: usize) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        use std::io::{Read, Write};
        let begun = Instant::now();
        let mut stream = loop {
            match std::net::TcpStream::connect(("127.0.0.1", port)) {
                Ok(s) => break s,
                Err(e) => assert!(begun.elapsed() < Duration::from_secs(20), "{e}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let mut buffer = [0; 64];
        for _ in 0..messages {
            if stream.write_all(&[7; 40]).and_then(|()| stream.read(&mut buffer)).is_err() {
                return;
            }
        }
    })
}

/// The server reads 40 bytes into one buffer, copies 8 of them to another, and sends 16 bytes from there.
#[test]
fn messages_of_sockets_are_packets() {
    let Some(program) = program("echo.c") else { return };
    let port = 20_000 + (std::process::id() % 10_000) as u16;
    let client = client(port, 1000);
    let r = made(&options(run(&program, &[&port.to_string()]), Between::Sockets { only: None }, 30));
    client.join().unwrap();
    assert_eq!(r.packets.len(), 30);
    for p in &r.packets[1..] {
        assert_eq!((p.received, p.outcome), (40, Outcome::Replied(16)));
        let frame = p.steps.iter().find(|s| matches!(s.access.place, Place::Frame(_))).unwrap();
        assert_eq!((frame.access.kind, frame.access.place, frame.access.bytes), (AccessKind::Load, Place::Frame(8), 8));
        let reply = p.steps.iter().find(|s| matches!(s.access.place, Place::Reply(_))).unwrap();
        assert_eq!(
            (reply.access.kind, reply.access.place, reply.access.bytes),
            (AccessKind::Store, Place::Reply(4), 8)
        );
        assert!(p.total().system_calls >= 2, "receive and send");
    }
}

fn refused(o: &Options) -> String {
    record(o, &mut |_| Told::Continue).unwrap_err().to_string()
}

fn enter(name: &str, leave: Option<&str>) -> Between {
    Between::Addresses { enter: name.into(), leave: leave.map(Into::into), frame: None }
}

fn instructions(r: &Recording) -> Vec<u32> {
    r.packets.iter().map(|p| p.total().instructions).collect()
}

/// Two calls of three are short. down(n) has 6 n + 4 instructions, of which 3 come before the recursive call; of rounds(n) each
/// of n + 1 rounds has 3, and 2 follow.
#[test]
fn work_that_runs_natively_holds_no_packets_of_its_own() {
    let Some(program) = program("calls.c") else { return };
    let (short, long) = (|n: u32| 6 * n + 4, |n: u32| 3 * (n + 1) + 2);
    for (argument, name, instructions_of) in [("d", "down", &short as &dyn Fn(u32) -> u32), ("r", "rounds", &long)] {
        let o = options(run(&program, &[argument]), enter(name, None), 20);
        let limit = instructions_of(4) + 1;
        let r = made(&Options { longest: limit.into(), ..o.clone() });
        assert_eq!(instructions(&r), vec![instructions_of(4); 20], "{name}: the long calls are let go as a whole");
        let r = made(&Options { skip: 2, packets: 4, ..o });
        let want = [200, 4, 4, 200].map(instructions_of);
        assert_eq!(instructions(&r), want, "{name}: two whole calls pass");
    }
}

/// Work that ends where it begins lasts from one arrival to the next: a round of `rounds`, or what leads to the next call.
#[test]
fn work_may_end_where_it_begins() {
    let Some(program) = program("calls.c") else { return };
    let r = made(&options(run(&program, &["r"]), enter("rounds", Some("rounds")), 4));
    assert_eq!(instructions(&r), [3, 3, 3, 3]);
    let r = made(&Options { skip: 3, ..options(run(&program, &["r"]), enter("rounds", Some("rounds")), 4) });
    assert!(r.packets[0].total().instructions == 3 && r.packets[1].total().instructions > 3, "{:?}", instructions(&r));
}

/// The program sorts i numbers of 4 bytes, which begin a page, in call i of the C library's qsort; all of them are recorded.
#[test]
fn functions_of_libraries_are_recorded_from_the_first_call_on() {
    let Some(program) = program("calls.c") else { return };
    let recorded = || made(&options(run(&program, &["q"]), enter("qsort", None), 20));
    let (a, b) = (recorded(), recorded());
    let read = |p: &Packet| -> Vec<(u32, u64)> {
        let compared = p.steps.iter().map(|s| s.access).filter(|a| a.bytes == 4 && a.kind == AccessKind::Load);
        compared
            .filter_map(|a| match a.place {
                Place::Memory { page, offset } => Some((page, u64::from(offset) + 4)),
                _ => None,
            })
            .collect()
    };
    let first = read(&a.packets[1]);
    let (numbers, _) = first.iter().find(|(_, end)| *end == 4).expect("the first number is compared");
    for (i, p) in (1u64..).zip(&a.packets).skip(1) {
        let end = read(p).into_iter().filter(|(page, _)| page == numbers).map(|(_, end)| end).max();
        assert_eq!(end, Some(4 * i), "call {i}");
    }
    assert_eq!(a.packets.len(), 20);
    assert_eq!((a.packets, a.pages), (b.packets, b.pages));
}

/// The program copies 64 i + 1 bytes in call i, mod 32, by memcpy, whose symbol is that of a function that chooses it.
#[test]
fn indirect_functions_are_recorded_from_the_first_call_on() {
    let Some(program) = program("calls.c") else { return };
    let linked = program.with_extension("static");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/calls.c");
    let built = Command::new("cc").args(["-O1", "-static", "-o"]).arg(&linked).arg(source).status();
    let whole = built.is_ok_and(|s| s.success()).then(|| linked.clone()); // not every machine has a static C library
    for program in [Some(program), whole].into_iter().flatten() {
        let r = made(&options(run(&program, &["m"]), enter("memcpy", None), 30));
        let stored = |p: &Packet| -> u64 {
            let pages = p.steps.iter().map(|s| s.access).filter(|a| a.kind == AccessKind::Store);
            let ends = pages.filter_map(|a| match a.place {
                Place::Memory { offset, .. } => Some(u64::from(offset) + u64::from(a.bytes)),
                _ => None,
            });
            ends.max().unwrap_or_default()
        };
        let copied: Vec<u64> = r.packets.iter().map(stored).collect();
        // A static C library copies before the program does.
        let own = copied.iter().position(|n| *n == 64 + 1).expect("the program's first call");
        assert_eq!(copied[own..], (1..=30).map(|i| 64 * i + 1).collect::<Vec<u64>>()[..30 - own], "{copied:?}");
        assert!(own == 0 || program.ends_with(linked.file_name().unwrap_or_default()), "{copied:?}");
    }
}

#[test]
fn refusals_are_sentences() {
    let Some(program) = program("chase.c") else { return };
    let e = refused(&options(run(&program, &["10"]), enter("no_such_symbol", None), 1));
    assert!(e.ends_with("neither the program nor its libraries have a symbol no_such_symbol."), "{e}");
    let e = refused(&options(run(&program, &["10"]), enter("handle", Some("main")), 1));
    assert!(e.ends_with("the program reached handle, but not main after it."), "{e}");
    let e = refused(&options(run(&program, &["10"]), enter("handle", Some("no_such_symbol")), 1));
    assert!(e.ends_with("the program and its libraries do not have both handle and no_such_symbol."), "{e}");
    let e = refused(&options(run(&program, &["10"]), Between::Dpdk, 1));
    assert!(e.contains("ended before it had handled a packet; the program has no rte_eth_fp_ops"), "{e}");
    let e = refused(&options(run(&program, &["10"]), enter("0xhandle", None), 1));
    assert_eq!(e, "0xhandle is no hexadecimal address, such as 0x401136.");
    let e = refused(&options(Target::Attach(i32::MAX), handle(), 1));
    assert_eq!(e, format!("process {}: does not exist.", i32::MAX));
}

struct Ended(Child);
impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_program_that_is_traced_already_is_refused() {
    let Some(program) = program("chase.c") else { return };
    let child = Ended(Command::new(&program).args(["1000000", "1000"]).stdout(Stdio::null()).spawn().unwrap());
    let target = Target::Attach(child.0.id() as i32);
    let o = options(target.clone(), handle(), 5);
    let mut other = String::new();
    let slow = Options { packets: 1_000_000, ..o.clone() };
    record(&slow, &mut |p| {
        if p.packets == 0 {
            return Told::Continue;
        }
        other = std::thread::scope(|s| s.spawn(|| refused(&o)).join().unwrap());
        Told::Finish
    })
    .unwrap();
    assert!(other.contains("is traced by process"), "{other}");
}

/// A program that handles a packet a millisecond for ten minutes is recorded for half a second, and its progress shown.
#[test]
fn a_recording_ends_in_time_and_shows_its_progress() {
    let Some(program) = program("chase.c") else { return };
    let time = Duration::from_millis(500);
    let o = Options { time, ..options(run(&program, &["600000", "1000"]), handle(), 100_000) };
    let (begun, mut shown) = (Instant::now(), vec![]);
    let r = record(&o, &mut |p| {
        shown.push(p.packets);
        Told::Continue
    })
    .unwrap();
    assert!(begun.elapsed() < 20 * time, "{:?}", begun.elapsed());
    assert!(!r.packets.is_empty() && r.packets.len() < 10_000, "{}", r.packets.len());
    assert!(shown.len() <= 6 && shown.is_sorted(), "ten times a second: {shown:?}");
    assert!(shown.last().is_some_and(|p| (1..=r.packets.len()).contains(&(*p as usize))), "{shown:?}");
}
