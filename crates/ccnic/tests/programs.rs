//! What `ccnic-bench` and `ccnic-nic` refuse, and how their runs end.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use ccnic::NicServer;

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ccnic-bench")).args(arguments).output().expect("the program runs")
}

fn nic(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ccnic-nic")).args(arguments).output().expect("the program runs")
}

fn socket(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("ccnic-programs-{name}-{}.sock", std::process::id()))
}

/// A directory with `ccnic-bench` and, as its `ccnic-nic`, the test `fake_nic` of this program.
struct Fake {
    directory: PathBuf,
    fault: &'static str,
}

impl Fake {
    fn new(fault: &'static str) -> Fake {
        let directory = std::env::temp_dir().join(format!("ccnic-fake-{fault}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        std::fs::copy(env!("CARGO_BIN_EXE_ccnic-bench"), directory.join("ccnic-bench")).expect("copied");
        let this = std::env::current_exe().expect("this program");
        let text = format!(
            "#!/bin/sh\nwhile [ \"$1\" != --socket ]; do shift; done\nCCNIC_FAKE_SOCKET=\"$2\" exec {} --exact fake_nic --ignored >/dev/null\n",
            this.display()
        );
        let script = directory.join("ccnic-nic");
        std::fs::write(&script, text).expect("written");
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("executable");
        Fake { directory, fault }
    }

    fn soak(&self) -> Output {
        Command::new(self.directory.join("ccnic-bench"))
            .args(["soak", "--process", "--packets", "1000000000"])
            .env("CCNIC_FAKE_FAULT", self.fault)
            .output()
            .expect("the program runs")
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// A NIC with a fault, started by [`Fake`].
#[test]
#[ignore = "a program for other tests"]
fn fake_nic() {
    let (Ok(socket), Ok(fault)) = (std::env::var("CCNIC_FAKE_SOCKET"), std::env::var("CCNIC_FAKE_FAULT")) else {
        return;
    };
    let server = NicServer::bind(socket).expect("a free name");
    let mut port = server.accept().expect("a host");
    let mut queue = port.queue(0).expect("its queue");
    let mut handled = 0;
    while handled < 100_000 {
        handled += queue.loopback(32).expect("an honest host");
    }
    match fault.as_str() {
        "dies" => std::process::exit(0),
        "loses" => {
            while port.host_alive() {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        _ => {
            let mut taken = Vec::new();
            while port.host_alive() {
                queue.tx_poll(&mut taken, 32).expect("an honest host");
                for buf in &taken {
                    let mut payload = Vec::new();
                    queue.read(buf, &mut payload);
                    payload[40] ^= 1;
                    let mut packet = queue.alloc_packet(payload.len()).expect("open").expect("buffers");
                    queue.write_packet(&packet, &payload);
                    queue.rx_post(&mut packet).expect("one packet");
                }
                queue.tx_done();
                queue.free(&mut taken);
            }
        }
    }
}

#[test]
fn a_soak_ends_at_the_first_altered_packet_and_without_packets_or_a_nic() {
    for (fault, says) in
        [("alters", "came back altered"), ("loses", "no packet came back for 5 s"), ("dies", "the NIC ended")]
    {
        let start = Instant::now();
        let output = Fake::new(fault).soak();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(says), "{told:?}");
        // A header and no row, long before 10^9 packets.
        assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 1);
        assert!(start.elapsed() < Duration::from_secs(if fault == "loses" { 60 } else { 30 }), "{:?}", start.elapsed());
    }
}

/// Processes whose command line contains `word`.
fn processes(word: &str) -> usize {
    let all =
        std::fs::read_dir("/proc").expect("procfs").filter_map(|e| std::fs::read(e.ok()?.path().join("cmdline")).ok());
    all.filter(|line| String::from_utf8_lossy(line).contains(word)).count()
}

fn wait(mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < deadline, "timed out");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// SIGKILL leaves no more time than SIGTERM does.
#[test]
fn a_killed_bench_leaves_no_process_and_no_socket() {
    let mut bench = Command::new(env!("CARGO_BIN_EXE_ccnic-bench"))
        .args(["soak", "--scribbler", "--window", "64"])
        .stdout(Stdio::null())
        .spawn()
        .expect("the program starts");
    let socket = std::env::temp_dir().join(format!("ccnic-bench-{}.sock", bench.id()));
    let name = socket.to_str().expect("ASCII").to_owned();
    // The NIC and the scribbler are told the socket.
    wait(|| processes(&name) == 2);
    bench.kill().expect("kill -9");
    bench.wait().expect("reaped");
    wait(|| processes(&name) == 0);
    assert!(!socket.exists() && !PathBuf::from(name + ".lock").exists());
}

/// Checks that a program refused to run, measured nothing and named all `words`.
#[track_caller]
fn refused(output: &Output, words: &[&str]) {
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    for word in words {
        assert!(told.contains(word), "{word:?} is missing in {told:?}");
    }
}

#[test]
fn zero_is_refused_with_the_option_and_the_least_value() {
    for (arguments, option) in [
        (["loopback", "--ms", "0"], "--ms"),
        (["loopback", "--reps", "0"], "--reps"),
        (["soak", "--packets", "0"], "--packets"),
        (["soak", "--window", "0"], "--window"),
    ] {
        refused(&bench(&arguments), &[option, "'0'", "1.."]);
    }
}

#[test]
fn a_cpu_that_is_not_there_is_refused_with_those_that_are() {
    for option in ["--nic-cpu", "--host-cpu"] {
        for what in ["bound", "loopback", "idle", "probe", "soak"] {
            refused(&bench(&[what, option, "1023"]), &[option, "1023", "choose from"]);
        }
        refused(&bench(&["probe", option, "5000"]), &[option, "5000", "choose from"]);
    }
    let socket = socket("cpu");
    let socket = socket.to_str().expect("a path of ASCII");
    refused(&nic(&["--socket", socket, "--cpu", "1023"]), &["--cpu", "1023", "choose from"]);
    assert!(!std::path::Path::new(socket).exists());
}

#[test]
fn options_without_effect_are_refused_by_name() {
    for arguments in [
        ["probe", "--process", "", ""],
        ["probe", "--huge", "", ""],
        ["probe", "--poll-us", "5", ""],
        ["probe", "--ms", "5", ""],
        ["soak", "--reps", "5", ""],
        ["soak", "--ms", "5", ""],
        ["idle", "--process", "", ""],
        ["scribble", "--ms", "5", "--socket=/nowhere"],
    ] {
        let given: Vec<&str> = arguments.into_iter().filter(|a| !a.is_empty()).collect();
        refused(&bench(&given), &[given[1], given[0], "has no effect"]);
    }
    // A global option may stand in front of the command.
    refused(&bench(&["--ms", "5", "probe"]), &["--ms", "probe", "has no effect"]);
    let socket = socket("idle");
    let socket = socket.to_str().expect("a path of ASCII");
    refused(&nic(&["--socket", socket, "--iface", "lo"]), &["--iface", "--mode loopback", "has no effect"]);
    refused(&nic(&["--socket", socket, "--via", "packet"]), &["--via", "--mode loopback", "has no effect"]);
}

#[test]
fn a_nic_for_nobody_and_of_no_memory_is_refused_with_the_range() {
    let socket = socket("range");
    let socket = socket.to_str().expect("a path of ASCII");
    // 2^64 bytes are 2^44 MiB.
    for (option, value) in [("--at-once", "0"), ("--max-region", "0"), ("--max-region", "17592186044416")] {
        refused(&nic(&["--socket", socket, option, value]), &[option, value, "1.."]);
    }
}

#[test]
fn the_widest_window_is_served_by_a_process() {
    let output = bench(&["soak", "--process", "--window", "65536", "--packets", "200000"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 2);
}

#[test]
fn a_socket_without_a_nic_is_named() {
    let socket = socket("nobody");
    let path = socket.to_str().expect("a path of ASCII");
    refused(&nic(&["--stats", "--socket", path]), &[path, "No such file or directory"]);
    refused(&bench(&["scribble", "--socket", path]), &[path, "No such file or directory"]);
    std::fs::write(&socket, "").expect("written");
    let output = nic(&["--stats", "--socket", path]);
    std::fs::remove_file(&socket).expect("removed");
    refused(&output, &[path, "Connection refused"]);
}
