//! An application behind CC-NIC pings a kernel in another network namespace over a veth pair.
//! Needs root and `ip`; skipped, with a line on stderr, where either is missing.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use ccnic::{Config, Features, HostPort, HostQueue, Offload, Rss};

const MAC: [u8; 6] = [0x02, 0xcc, 0x01, 0, 0, 0x01];
const OUR_IP: [u8; 4] = [10, 231, 77, 1];
const PEER_IP: [u8; 4] = [10, 231, 77, 2];

/// The namespace and the veth pair, removed on drop.
struct Net {
    ns: String,
    near: String,
}

fn ip(args: &str) -> bool {
    Command::new("ip").args(args.split(' ')).output().is_ok_and(|o| o.status.success())
}

impl Net {
    fn create(kind: char) -> Option<Net> {
        let id = std::process::id() % 100_000;
        let net = Net { ns: format!("ccnic{kind}{id}"), near: format!("ccn{kind}{id}") };
        let (ns, near) = (&net.ns, &net.near);
        let made = ip(&format!("netns add {ns}"))
            && ip(&format!("link add {near} type veth peer name far netns {ns}"))
            && ip(&format!("link set {near} up"))
            && ip(&format!("-n {ns} addr add 10.231.77.2/24 dev far"))
            && ip(&format!("-n {ns} link set far up"));
        made.then_some(net)
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        ip(&format!("link del {}", self.near));
        ip(&format!("netns del {}", self.ns));
    }
}

fn ethernet(to: [u8; 6], kind: u16, body: &[u8]) -> Vec<u8> {
    [&to[..], &MAC, &kind.to_be_bytes(), body].concat()
}

fn sum16(bytes: &[u8]) -> u16 {
    let mut sum: u32 = bytes.chunks(2).map(|c| u32::from(c[0]) << 8 | u32::from(*c.get(1).unwrap_or(&0))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn arp(op: u8, to: [u8; 6]) -> Vec<u8> {
    ethernet(to, 0x0806, &[&[0, 1, 8, 0, 6, 4, 0, op][..], &MAC, &OUR_IP, &to, &PEER_IP].concat())
}

fn echo_request(to: [u8; 6], sequence: u16, data: usize) -> Vec<u8> {
    let mut icmp = vec![8, 0, 0, 0, 0xcc, 0x01];
    icmp.extend(sequence.to_be_bytes());
    icmp.extend((0..data).map(|i| i as u8 ^ sequence as u8));
    let check = sum16(&icmp).to_be_bytes();
    icmp[2..4].copy_from_slice(&check);
    let total = (20 + icmp.len()) as u16;
    let mut head = vec![0x45, 0];
    head.extend(total.to_be_bytes());
    head.extend([0, 0, 0, 0, 64, 1, 0, 0]);
    head.extend(OUR_IP);
    head.extend(PEER_IP);
    let check = sum16(&head).to_be_bytes();
    head[10..12].copy_from_slice(&check);
    ethernet(to, 0x0800, &[head, icmp].concat())
}

/// Sends one frame, over several segments when `split`.
fn send(queue: &mut HostQueue, frame: &[u8], split: bool) {
    let mut bufs = Vec::new();
    let parts: Vec<&[u8]> = if split { frame.chunks(frame.len().div_ceil(3)).collect() } else { vec![frame] };
    for (i, part) in parts.iter().enumerate() {
        assert_eq!(queue.alloc(&mut bufs, 1, part.len()), 1);
        let b = bufs.last_mut().expect("one");
        queue.write(b, part);
        b.set_more(i + 1 < parts.len());
    }
    queue.tx(&mut bufs).expect("an honest NIC");
    assert!(bufs.is_empty());
}

fn receive(queue: &mut HostQueue, mut wanted: impl FnMut(&[u8]) -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(2);
    while Instant::now() < deadline {
        let mut bufs = Vec::new();
        queue.rx(&mut bufs, 32).expect("an honest NIC");
        let hit = bufs.iter().any(|b| wanted(&queue.to_vec(b)));
        queue.free(&mut bufs);
        if hit {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

#[test]
fn a_kernel_across_a_veth_pair_answers_through_ccnic() {
    match Net::create('p') {
        Some(net) => ping_peer(&net, "packet"),
        None => eprintln!("skipped: network namespaces need root and the ip program"),
    }
}

#[test]
fn a_kernel_answers_through_an_xdp_socket() {
    match Net::create('x') {
        Some(net) => {
            ping_peer(&net, "xdp");
            let shown = Command::new("ip").args(["link", "show", &net.near]).output().expect("ip runs");
            let shown = String::from_utf8_lossy(&shown.stdout);
            assert!(shown.contains(&net.near) && !shown.contains("xdp"), "no program stays behind: {shown}");
        }
        None => eprintln!("skipped: network namespaces need root and the ip program"),
    }
}

/// Sum of a UDP datagram of IPv4 with its pseudo header; zero if the checksum holds.
fn udp_sum(frame: &[u8]) -> u16 {
    let udp = &frame[34..14 + usize::from(u16::from_be_bytes([frame[16], frame[17]]))];
    let pseudo = [&frame[26..34], &[0, 17], &(udp.len() as u16).to_be_bytes()].concat();
    sum16(&[&pseudo[..], udp, &[0; 2][..udp.len() % 2]].concat())
}

/// A UDP datagram to a closed port whose checksum is left to the NIC: the kernel answers only
/// those that it would have delivered.
fn unfinished_udp(to: [u8; 6]) -> (Offload, Vec<u8>) {
    let body = b"checksum left out";
    let len = (8 + body.len()) as u16;
    let mut f = ethernet(to, 0x0800, &[0x45, 0]);
    f.extend((20 + len).to_be_bytes());
    f.extend([0, 0, 0, 0, 64, 17, 0, 0]);
    f.extend(OUR_IP);
    f.extend(PEER_IP);
    let check = sum16(&f[14..34]).to_be_bytes();
    f[24..26].copy_from_slice(&check);
    // The field holds the sum of the pseudo header, not its complement.
    let pseudo = !sum16(&[&f[26..34], &[0, 17], &len.to_be_bytes()].concat());
    f.extend([40000u16.to_be_bytes(), 9u16.to_be_bytes(), len.to_be_bytes(), pseudo.to_be_bytes()].concat());
    f.extend(body);
    (Offload { flags: Offload::NEEDS_CSUM, csum_start: 34, csum_offset: 6, ..Offload::default() }, f)
}

/// Checksums that one side leaves to the device, in both directions, with and without an
/// agreement; and received flows on the queue that the table names.
#[test]
fn checksums_left_to_the_device_and_the_table_of_queues_are_honoured() {
    for (offload, via) in [(0, "packet"), (1, "packet"), (1, "xdp")] {
        let Some(net) = Net::create('o') else {
            eprintln!("skipped: network namespaces need root and the ip program");
            return;
        };
        let mac = "02:cc:01:00:00:01";
        assert!(ip(&format!("-n {} neigh add 10.231.77.1 lladdr {mac} dev far", net.ns)));
        let shown = Command::new("ip").args(["-n", &net.ns, "link", "show", "far"]).output().expect("ip runs");
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        let far = shown.split("link/ether ").nth(1).expect("an address").split(' ').next().expect("one");
        let bytes: Vec<u8> = far.split(':').map(|b| u8::from_str_radix(b, 16).expect("hexadecimal")).collect();
        let far: [u8; 6] = bytes.try_into().expect("six");

        let mut port = HostPort::create(Config { queues: 3, offload, mtu: 1514, ..Config::default() }).expect("region");
        port.set_rss(Rss::new([1; 40], [2; Rss::ENTRIES], Rss::IP)).expect("queue 2 is served");
        let mut queues: Vec<HostQueue> = (0..3).map(|q| port.queue(q).expect("fresh")).collect();
        let mut nic = attach(&net.near, via, &mut port);
        assert_eq!(port.features().has(Features::CHECKSUM), offload > 0);
        assert!(!port.features().has(Features::SEGMENT) || via == "packet" && offload > 0);

        // From the kernel; the interface may take a moment to come up.
        let mut seen = None;
        for _ in 0..20 {
            let command = "echo to ccnic > /dev/udp/10.231.77.1/5555";
            let sent = Command::new("ip").args(["netns", "exec", &net.ns, "bash", "-c", command]).status();
            assert!(sent.expect("ip runs").success());
            let until = Instant::now() + Duration::from_millis(200);
            while seen.is_none() && Instant::now() < until {
                seen = received(&mut queues, |f| f.len() > 42 && f[23] == 17 && f[36..38] == 5555u16.to_be_bytes());
            }
            if seen.is_some() {
                break;
            }
        }
        let (queue, todo, frame) = seen.expect("the datagram arrives");
        assert_eq!(queue, 2, "as the table says");
        match todo {
            Some(o) => assert!(offload > 0 && via == "packet" && o.flags & Offload::NEEDS_CSUM != 0),
            // Nobody computed it on the way of a veth pair but the NIC; XDP knows of no checksums.
            None => assert!(via == "xdp" || udp_sum(&frame) == 0, "the NIC completes it"),
        }

        // To the kernel.
        let (todo, frame) = unfinished_udp(far);
        let mut bufs = Vec::new();
        queues[0].alloc(&mut bufs, 1, 0);
        queues[0].write_offload(&mut bufs[0], &todo, &frame);
        let sent = queues[0].tx(&mut bufs);
        if offload > 0 {
            assert_eq!(sent.expect("agreed"), 1);
            let until = Instant::now() + Duration::from_secs(5);
            let mut answer = None;
            while answer.is_none() && Instant::now() < until {
                answer = received(&mut queues, |f| f.len() > 42 && f[23] == 1 && f[34..36] == [3, 3]);
            }
            assert!(answer.is_some(), "port unreachable: its checksum was right ({via})");
        } else {
            assert!(sent.is_err(), "not agreed");
        }
        drop((queues, port));
        assert!(nic.wait().expect("the NIC ends with its host").success());
    }
}

/// The first wanted frame among what has arrived: its queue, what is left to do, its bytes.
fn received(queues: &mut [HostQueue], wanted: impl Fn(&[u8]) -> bool) -> Option<(usize, Option<Offload>, Vec<u8>)> {
    let mut hit = None;
    for (i, q) in queues.iter_mut().enumerate() {
        let mut bufs = Vec::new();
        q.rx(&mut bufs, 32).expect("an honest NIC");
        for b in &bufs {
            let todo = q.offload(b, b.len());
            let mut frame = q.to_vec(b);
            if b.offloads() {
                frame.drain(..Offload::BYTES);
            }
            if wanted(&frame) {
                hit.get_or_insert((i, todo, frame));
            }
        }
        q.free(&mut bufs);
    }
    hit
}

/// Starts an overlay for one host and attaches `port` to it.
fn attach(iface: &str, via: &str, port: &mut HostPort) -> Child {
    let socket = std::env::temp_dir().join(format!("{iface}.sock"));
    let nic = Command::new(env!("CARGO_BIN_EXE_ccnic-nic"))
        .args(["--mode", "overlay", "--via", via, "--iface", iface, "--hosts", "1", "--socket"])
        .arg(&socket)
        .spawn()
        .expect("the NIC program starts");
    let deadline = Instant::now() + Duration::from_secs(10);
    while port.connect(&socket).is_err() {
        assert!(Instant::now() < deadline, "the NIC does not listen");
        std::thread::yield_now();
    }
    nic
}

fn ping_peer(net: &Net, via: &str) {
    let mut port = HostPort::create(Config::default()).expect("region");
    let mut queue = port.queue(0).expect("first");
    let mut nic = attach(&net.near, via, &mut port);

    // The interface may take a moment to come up, so ask more than once.
    let mut peer = None;
    for _ in 0..5 {
        send(&mut queue, &arp(1, [0xff; 6]), false);
        if receive(&mut queue, |f| {
            let reply = f.len() >= 42 && f[12..14] == [8, 6] && f[21] == 2 && f[28..32] == PEER_IP;
            if reply {
                peer = f[22..28].try_into().ok();
            }
            reply
        }) {
            break;
        }
    }
    let peer: [u8; 6] = peer.expect("the peer answers ARP");
    let mut answered = 0;
    for sequence in 0..50u16 {
        let data = 8 + 29 * usize::from(sequence);
        send(&mut queue, &echo_request(peer, sequence, data), sequence % 2 == 1);
        answered += usize::from(receive(&mut queue, |f| {
            // The kernel asks for our address in turn before it answers.
            f.len() >= 42 + data
                && f[12..14] == [8, 0]
                && f[23] == 1
                && f[34] == 0
                && f[40..42] == sequence.to_be_bytes()
                && f[42..42 + data].iter().enumerate().all(|(i, &b)| b == i as u8 ^ sequence as u8)
        }));
    }
    assert_eq!(answered, 50, "every echo request is answered, byte for byte");
    drop((queue, port));
    assert!(nic.wait().expect("the NIC ends with its host").success());
}

/// An application at one end of a veth pair, with an overlay of its own.
struct End {
    queue: HostQueue,
    port: HostPort,
    nic: Child,
}

impl End {
    fn open(iface: &str, config: Config) -> End {
        let mut port = HostPort::create(config).expect("region");
        let queue = port.queue(0).expect("first");
        let nic = attach(iface, "packet", &mut port);
        End { queue, port, nic }
    }

    /// Receives until `count` frames of the test's kind are there, or no more come.
    fn receive(&mut self, count: usize) -> Vec<Vec<u8>> {
        let (mut frames, mut quiet) = (Vec::new(), Instant::now());
        while frames.len() < count && quiet.elapsed() < Duration::from_secs(3) {
            let before = frames.len();
            frames.extend(self.burst());
            if frames.len() > before {
                quiet = Instant::now();
            }
            std::thread::yield_now();
        }
        frames
    }

    /// The frames of the test's kind that one call receives.
    fn burst(&mut self) -> Vec<Vec<u8>> {
        let mut bufs = Vec::new();
        self.queue.rx(&mut bufs, 64).expect("an honest NIC");
        let all: Vec<Vec<u8>> = bufs.iter().map(|b| self.queue.to_vec(b)).collect();
        self.queue.free(&mut bufs);
        all.into_iter().filter(|f| f.len() >= 14 && f[6..12] == MAC).collect()
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.port.disconnect();
        assert!(self.nic.wait().expect("the NIC ends with its host").success());
    }
}

/// Two ends of a veth pair in this namespace, which says nothing by itself; removed on drop.
struct Wire([String; 2]);

impl Wire {
    fn create(kind: char) -> Option<Wire> {
        let id = std::process::id() % 100_000;
        let ends = ["n", "f"].map(|end| format!("cc{end}{kind}{id}"));
        let made = ip(&format!("link add {} type veth peer name {}", ends[0], ends[1]));
        if !made {
            eprintln!("skipped: interfaces need root and the ip program");
            return None;
        }
        let wire = Wire(ends);
        for end in &wire.0 {
            // A kernel without IPv6 has no such file, and says nothing either.
            let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{end}/disable_ipv6"), "1");
            assert!(ip(&format!("link set {end} up")));
        }
        Some(wire)
    }

    fn open(&self, near: Config) -> (End, End) {
        let far = Config { offload: 1, ..Config::default() };
        let (mut near, mut far) = (End::open(&self.0[0], near), End::open(&self.0[1], far));
        // The interfaces may take a moment to come up.
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            send(&mut far.queue, &experimental(0, 60), false);
            std::thread::sleep(Duration::from_millis(20));
            if !near.burst().is_empty() {
                break;
            }
            assert!(Instant::now() < deadline, "no frame arrives");
        }
        std::thread::sleep(Duration::from_millis(50));
        while !near.burst().is_empty() {}
        (near, far)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        ip(&format!("link del {}", self.0[0]));
    }
}

/// A frame of the type for local experiments.
fn experimental(number: u8, bytes: usize) -> Vec<u8> {
    ethernet([0xff; 6], 0x88b5, &vec![number; bytes - 14])
}

/// Frames that found the RX ring full are delivered when there is room, and do not wait for another arrival.
#[test]
fn frames_that_waited_for_the_ring_are_delivered_without_another_arrival() {
    let Some(wire) = Wire::create('w') else { return };
    let (mut near, mut far) = wire.open(Config { slots: 16, ..Config::default() });
    for number in 0..64 {
        send(&mut far.queue, &experimental(number, 60), false);
    }
    std::thread::sleep(Duration::from_millis(300));
    let mut frames = near.burst();
    assert!(frames.len() > 4, "four lines hold more than {} frames", frames.len());
    frames.extend(near.receive(64 - frames.len()));
    let numbers: Vec<u8> = frames.iter().map(|f| f[14]).collect();
    assert_eq!(numbers, (0..64).collect::<Vec<u8>>());
}

/// Frames without a whole Ethernet header are dropped and counted, and those behind them are sent.
#[test]
fn frames_that_are_too_short_hold_up_no_others() {
    let Some(wire) = Wire::create('s') else { return };
    let (mut near, mut far) = wire.open(Config::default());
    for bytes in [1, 10, 13] {
        send(&mut near.queue, &experimental(0, 60)[..bytes], false);
    }
    for number in 0..20 {
        send(&mut near.queue, &experimental(number, 14 + usize::from(number) + 1), false);
    }
    let frames = far.receive(20);
    assert_eq!(frames.iter().map(|f| f[14]).collect::<Vec<u8>>(), (0..20).collect::<Vec<u8>>());
    assert_eq!(near.queue.stats().drops, 3);
    // The same NIC after a reset.
    near.port.recover(&mut [&mut near.queue]).expect("it follows");
    send(&mut near.queue, &experimental(0, 60)[..10], false);
    send(&mut near.queue, &experimental(0, 60), false);
    assert_eq!((far.receive(1).len(), near.queue.stats().drops), (1, 4));
}

/// A frame keeps its VLAN tags, which the kernel takes out, and a checksum that was left out is found behind them.
#[test]
fn vlan_tags_of_arriving_frames_stay() {
    let Some(wire) = Wire::create('v') else { return };
    for offload in [0, 1] {
        let (mut near, mut far) = wire.open(Config { offload, ..Config::default() });
        let plain = experimental(9, 60);
        for tag in [&[0x81, 0, 0x20, 5][..], &[0x88, 0xa8, 0, 7], &[0x88, 0xa8, 0, 7, 0x81, 0, 0xef, 0xff]] {
            let tagged = [&plain[..12], tag, &plain[12..]].concat();
            send(&mut far.queue, &tagged, false);
            assert_eq!(near.receive(1), [tagged]);
        }
        let tag = [0x81, 0, 0, 5];
        let (todo, plain) = unfinished_udp([0xff; 6]);
        let tagged = [&plain[..12], &tag, &plain[12..]].concat();
        let mut bufs = Vec::new();
        far.queue.alloc(&mut bufs, 1, 0);
        far.queue.write_offload(&mut bufs[0], &Offload { csum_start: 38, ..todo }, &tagged);
        far.queue.tx(&mut bufs).expect("agreed");
        let deadline = Instant::now() + Duration::from_secs(3);
        let (_, todo, frame) = loop {
            let udp = |f: &[u8]| f.len() > 42 && f[12..16] == tag && f[27] == 17;
            if let Some(hit) = received(std::slice::from_mut(&mut near.queue), udp) {
                break hit;
            }
            assert!(Instant::now() < deadline, "it does not arrive");
        };
        match todo {
            Some(o) => assert_eq!((offload, o.csum_start, frame), (1, 38, tagged)),
            None => assert_eq!((offload, udp_sum(&[&frame[..12], &frame[16..]].concat())), (0, 0)),
        }
    }
}
