//! Random mixtures of tenants, devices and policies: each runs and is conserved, or one sentence says what the hardware
//! or the files lack.

use crate::common::platforms;
use hostnet::app::WorkSource;
use hostnet::config::scenario::TenantSpec;
use hostnet::config::{resolve, Scenario};
use hostnet::host::{run, Host};
use hostnet::kernel::{RandomStream, TenantId, Time};
use hostnet::traffic::arrival::Arrivals;
use rustix::time::{clock_gettime, ClockId};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{mpsc, Arc};
use std::thread;
use std::time::Duration;

/// A platform with what its tenants may use.
struct Machine {
    name: &'static str,
    cores: u64,
    nodes: u64,
    poll_mode: bool,
    udp: bool,
    tcp: bool,
    ports: bool,
    block: bool,
    ccnic: bool,
    /// Sizes of an L2 and an LLC with the ways and slices of the platform and few sets, which a short run fills.
    caches: (&'static str, &'static str),
}

const fn machine(name: &'static str, cores: u64, l2: &'static str, llc: &'static str) -> Machine {
    Machine {
        name,
        cores,
        nodes: 1,
        poll_mode: false,
        udp: false,
        tcp: false,
        ports: true,
        block: false,
        ccnic: false,
        caches: (l2, llc),
    }
}

const MACHINES: [Machine; 11] = [
    Machine { poll_mode: true, udp: true, tcp: true, ..machine("altra", 12, "64 KiB", "512 KiB") },
    Machine { tcp: true, block: true, ..machine("cascadelake", 8, "64 KiB", "792 KiB") },
    Machine { poll_mode: true, udp: true, tcp: true, ..machine("gem5", 4, "128 KiB", "512 KiB") },
    Machine { block: true, ..machine("icelake", 12, "80 KiB", "768 KiB") },
    Machine { poll_mode: true, ccnic: true, nodes: 2, ..machine("icx", 12, "80 KiB", "576 KiB") },
    Machine { poll_mode: true, ..machine("idio-gem5", 3, "128 KiB", "384 KiB") },
    Machine { block: true, ..machine("sapphirerapids", 12, "128 KiB", "840 KiB") },
    Machine { ports: false, ..machine("sim24", 12, "80 KiB", "576 KiB") },
    Machine { poll_mode: true, ..machine("skylake-idio", 12, "64 KiB", "704 KiB") },
    Machine { poll_mode: true, ..machine("skylake", 12, "64 KiB", "792 KiB") },
    Machine { ccnic: true, nodes: 2, ..machine("spr", 12, "128 KiB", "840 KiB") },
];

/// Refusals that say "not built yet", by the words that tell them apart. The other four of docs/use/mixtures.md are of keys
/// that no draw has.
const NOT_BUILT: [&str; 1] = ["is not built yet for several nodes"];

/// Percentage of the mixtures on two hardware threads of each core.
const ON_SECOND_THREADS: u64 = 15;

/// Simulated time of a mixture's packets, shared by the cores that are always busy: a core that streams costs about a
/// millisecond of the simulator's time in each simulated microsecond.
const SPAN_US: f64 = 48.0;
/// Real time after which a mixture counts as endless; one takes some 20 ms of CPU time.
const LONGEST: Duration = Duration::from_secs(60);
/// Number of measured requests at least and at most; warm-up takes a third as many.
const FEWEST: f64 = 18.0;
const MOST: f64 = 150.0;

struct Draw(RandomStream);

impl Draw {
    fn chance(&mut self, percent: u64) -> bool {
        self.0.below(100) < percent
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.0.below(choices.len() as u64) as usize]
    }

    /// Keys of the packets that a tenant serves, and about how many of them come in a microsecond; `sized` if the
    /// application leaves their size to the traffic.
    fn traffic(&mut self, app: &str, sized: bool) -> (String, f64) {
        if app.contains("memcached") {
            let file = platforms().join("../captures/memcached-udp.pcap");
            let timing = self.of(&["fixed", "poisson"]);
            let file = file.display();
            let keys = "arrivals = \"pcap\", rate = \"800 krps\"";
            return (format!("{keys}, pcap = {{ file = \"{file}\", timing = \"{timing}\" }}"), 0.8);
        }
        let (mut keys, rate) = match self.0.below(8) {
            0 => ("arrivals = \"fixed\", rate = \"0.8 Mpps\"".into(), 0.8),
            1 => ("arrivals = \"burst\", burst = 16, burst_period = \"12 us\", burst_gap = \"200 ns\"".into(), 1.3),
            2 if !app.contains("touchdrop") => {
                (format!("arrivals = \"closed\", outstanding = {}", self.of(&[1, 8, 40])), 1.0)
            }
            3 => ("arrivals = \"uniform\", rate = \"1.2 Mpps\"".into(), 1.2),
            4 => (format!("arrivals = \"poisson\", rate = \"{} Mpps\"", self.of(&["0.5", "2", "8"])), 1.0),
            5 => ("arrivals = \"keep_depth\", depth = 4".into(), 1.0),
            _ => ("arrivals = \"poisson\", rate = \"1 Mpps\"".to_owned(), 1.0),
        };
        if sized {
            write!(keys, ", packet = \"{}\"", self.of(&["64 B", "300 B", "1 KiB", "1514 B"])).unwrap();
        }
        (keys, rate)
    }

    /// An application that serves packets, and whether traffic sets the size of its packets.
    fn server(&mut self) -> (&'static str, bool) {
        self.of(&[
            ("{ kind = \"testpmd\", mode = \"macswap\" }", true),
            ("{ kind = \"testpmd\", mode = \"io\" }", true),
            ("{ kind = \"l2fwd\" }", true),
            ("{ kind = \"l3fwd\", rules = 100 }", true),
            ("{ kind = \"l3fwd\", rules = 64, zero_copy = true }", true),
            ("{ kind = \"touchdrop\", instructions = 50 }", true),
            ("{ kind = \"touchfwd\" }", true),
            ("{ kind = \"rxptx\", interval = \"150 ns\" }", true),
            ("{ kind = \"memcached\" }", false), // which only a capture asks for anything
            ("{ kind = \"clique_map\", objects = 2000, get_fraction = 0.95, zipf = 0.75, below_100 = 0.61 }", false),
            (
                "{ kind = \"mica\", item_size = \"256 B\", get_fraction = 0.9, pairs = 2048, buckets = 512, log_size = \"512 KiB\", zipf = 0.9 }",
                false,
            ),
        ])
    }

    /// Keys of an interface over coherent memory, for a tenant with `cores` cores.
    fn ccnic(&mut self, cores: u64) -> &'static str {
        match self.0.below(8) {
            0 => ", wake = \"event\"",
            1 => ", wake = \"event\", nic = \"agent\"",
            2 if cores > 1 => ", nic_threads = 1",
            3 => ", idle_queues = 2",
            4 => ", layout = \"padded\", free_check = \"ahead\"",
            5 => ", recycle = false",
            6 => ", pool_scope = \"pair\"",
            _ => "",
        }
    }

    fn free(&mut self) -> &'static str {
        self.of(&[
            "{ kind = \"xmem\", array = \"48 KiB\" }",
            "{ kind = \"xmem\", array = \"512 KiB\", order = \"cycle\" }",
            "{ kind = \"stream\", buffer = \"4 MiB\", read_fraction = 0.5 }",
            "{ kind = \"stream\", buffer = \"2 MiB\", access = \"random\", run_lines = 4 }",
            "{ kind = \"llc_antagonist\", buffer = \"256 KiB\" }",
            "{ kind = \"gapbs\", kernel = \"pagerank\", scale = 10 }",
            "{ kind = \"redis\", keys = 200, value = \"1 KiB\" }",
        ])
    }

    /// Keys of the placement; `pairs` if a tenant has buffers of queue pairs, which may be swept.
    fn placement(&mut self, pairs: bool) -> String {
        // Beside other tenants sweeps are refused, so most of those mixtures ask for none.
        let sweeps = pairs || self.chance(5);
        let policy = self.of(&[
            "policy = \"ddio\"",
            "policy = \"ddio\"",
            "policy = \"ddio\", ways = \"all\"",
            "policy = \"dma\"",
            "policy = \"ideal\"",
            "policy = \"idio\", mode = \"dynamic\"",
            "policy = \"idio\", mode = \"static\"",
            "policy = \"idio\", mode = \"invalidate\"",
            "policy = \"ddio\", iat = { epoch = \"5 us\", min_ways = 1, max_ways = 4, grow_above = 1e6, shrink_below = 1e5 }",
        ]);
        let mut keys = policy.to_owned();
        if sweeps && !policy.contains("idio") && self.chance(20) {
            keys += ", sweep_rx = true";
        }
        if sweeps && self.chance(12) {
            write!(keys, ", sweep_tx = \"{}\"", self.of(&["nic", "cpu"])).unwrap();
        }
        keys
    }
}

/// Ethernet NICs by what uses them: drivers of rings, or a receiver that the NIC tells of each frame.
#[derive(Clone, Copy, PartialEq)]
enum Use {
    Nothing,
    Rings,
    Alone,
    Loop,
}

/// The text of mixture number `n`.
fn mixture(n: u64) -> String {
    let mut d = Draw(RandomStream::new(n, "mixture", 0));
    let m = &MACHINES[d.0.below(MACHINES.len() as u64) as usize];
    let several = m.nodes > 1 && d.chance(40);
    // Node of the devices on ports, and of the tenants whose packets come through them or through the NIC on the chip.
    let node = if several { d.0.below(2) } else { 0 };
    let there = if node > 0 { "node = 1\n" } else { "" };
    let mut peripherals = String::new();
    let mut nics: Vec<Use> = Vec::new();
    let devices = if m.ports { d.0.below(4) } else { 0 };
    for _ in 0..devices {
        match d.0.below(6) {
            0 => {
                let cores = if m.block && m.cores > 4 { d.0.below(2) } else { 0 };
                let op = d.of(&["p2m_write", "p2m_read"]);
                writeln!(
                    peripherals,
                    "[[peripheral]]\nkind = \"ssd\"\n{there}op = \"{op}\"\nqueue_depth = 4\nblock = \"64 KiB\"\ncores = {cores}"
                )
                .unwrap();
            }
            1 => {
                let op = d.of(&["p2m_write", "p2m_read"]);
                writeln!(peripherals, "[[peripheral]]\nkind = \"roce\"\n{there}op = \"{op}\"").unwrap();
            }
            _ => {
                nics.push(Use::Nothing);
            }
        }
    }
    let (second_threads, half) = (d.chance(ON_SECOND_THREADS), m.cores / 2);
    let mut left = if second_threads { 2 * half } else { m.cores };
    left -= u64::from(peripherals.contains("cores = 1"));
    let (mut pairs, mut busy, mut rate) = (false, 0, 0.0);
    let mut tenants = String::new();
    let count = 1 + d.0.below(5);
    for i in 0..count {
        let mut cores = 1 + d.0.below(2.min(left.max(1)));
        let free_nic = nics.iter().position(|u| *u == Use::Nothing);
        let shared_nic = (0..nics.len()).filter(|i| matches!(nics[*i], Use::Nothing | Use::Rings)).collect::<Vec<_>>();
        let (mut keys, app);
        let own;
        match d.0.below(16) {
            0..=3 if m.poll_mode && !shared_nic.is_empty() => {
                let nic = d.of(&shared_nic);
                nics[nic] = Use::Rings;
                let (kind, sized) = d.server();
                keys = format!("stack = \"poll_mode\"\n{there}nic = \"nic{nic}\"\n");
                if left >= 2 && d.chance(20) {
                    cores = 2;
                    keys += "pipeline = {}\n";
                }
                if d.chance(15) {
                    writeln!(keys, "recycling = \"{}\"", d.of(&["copy", "reallocate"])).unwrap();
                }
                (app, own) = (kind.to_owned(), Some(d.traffic(kind, sized)));
            }
            4 | 5 if m.udp && !shared_nic.is_empty() => {
                let nic = d.of(&shared_nic);
                nics[nic] = Use::Rings;
                let (kind, sized) = d.server();
                keys = format!("stack = \"kernel\"\n{there}nic = \"nic{nic}\"\n");
                (app, own) = (kind.to_owned(), Some(d.traffic(kind, sized)));
            }
            6 if m.tcp && free_nic.is_some() => {
                let nic = free_nic.unwrap();
                nics[nic] = Use::Alone;
                keys = format!("{there}nic = \"nic{nic}\"\n");
                if m.udp {
                    keys += "stack = \"kernel\"\n";
                }
                (app, own) = ("{ kind = \"tcp_receive\" }".into(), None);
            }
            7 | 8 => {
                let (kind, sized) = d.server();
                pairs = true;
                keys = d.of(&["", "stack = \"queue_pair\"\n"]).to_owned() + there;
                (app, own) = (kind.to_owned(), Some(d.traffic(kind, sized)));
            }
            9 if m.poll_mode && free_nic.is_some() && left >= 2 => {
                let nic = free_nic.unwrap();
                nics[nic] = Use::Alone;
                cores = 2;
                keys = format!("stack = \"poll_mode\"\n{there}nic = \"nic{nic}\"\n");
                (app, own) = (
                    "{ kind = \"tcp_echo\", rpc = \"64 B\", flows = 16, pipelined = 2 }".into(),
                    Some(("arrivals = \"closed\", outstanding = 32".into(), 1.0)),
                );
            }
            10 if m.ccnic && left >= 2 * cores => {
                left -= cores;
                let (more, nic_node) = (d.ccnic(cores), if several { d.0.below(2) } else { 0 });
                keys = format!("stack = \"ccnic\"\nccnic = {{ mode = \"loopback\", nic_node = {nic_node}{more} }}\n");
                let kind = format!("{{ kind = \"loopback\", bytes = \"{}\" }}", d.of(&["64 B", "1500 B", "9000 B"]));
                (app, own) = (kind, Some(("arrivals = \"closed\", outstanding = 8".into(), 1.0)));
            }
            11 if m.ccnic && left >= 2 * cores => {
                left -= cores;
                let (more, nic_node) = (d.ccnic(cores), if several { d.0.below(2) } else { 0 });
                keys = format!("stack = \"ccnic\"\nccnic = {{ mode = \"forward\", nic_node = {nic_node}{more} }}\n");
                let (kind, sized) = d.server();
                let packets =
                    d.of(&["closed\", outstanding = 8", "poisson\", rate = \"1 Mpps\"", "fixed\", rate = \"2 Mpps\""]);
                let size = if sized { ", packet = \"300 B\"" } else { "" };
                (app, own) = (kind.to_owned(), Some((format!("arrivals = \"{packets}{size}"), 1.0)));
            }
            14 if m.poll_mode && m.ccnic && free_nic.is_some() && left >= 2 * cores => {
                left -= cores;
                nics[free_nic.unwrap()] = Use::Alone;
                let at = if several { "node = 1\n" } else { "" };
                let more = d.of(&["", ", release = \"clwb\"", ", preset = \"unoptimised\"", ", idle_queues = 2"]);
                keys = format!(
                    "stack = \"ccnic\"\n{at}nic = \"nic{}\"\nccnic = {{ mode = \"overlay\", nic_node = {node}{more} }}\n",
                    free_nic.unwrap()
                );
                let (kind, sized) = d.server();
                (app, own) = (kind.to_owned(), Some(d.traffic(kind, sized)));
            }
            12 if m.poll_mode && free_nic.is_some() => {
                nics[free_nic.unwrap()] = Use::Loop;
                keys = format!("stack = \"poll_mode\"\n{there}nic = \"nic{}\"\n", free_nic.unwrap());
                (app, own) = (
                    "{ kind = \"loopback\", bytes = \"64 B\" }".into(),
                    Some(("arrivals = \"closed\", outstanding = 8".into(), 1.0)),
                );
            }
            13 if several => {
                keys = String::new();
                let (kind, each_us) =
                    d.of(&[("pingpong\", layout = \"Wr", 1.0), ("stream_transfer\", stores = \"cached", 0.0)]);
                rate += each_us;
                (app, own) = (format!("{{ kind = \"{kind}\", peer_node = 1 }}"), None);
            }
            _ => {
                keys = String::new();
                if several && d.chance(40) {
                    keys += "node = 1\n";
                }
                busy += cores;
                (app, own) = (d.free().to_owned(), None);
            }
        }
        if cores > left {
            break;
        }
        left -= cores;
        writeln!(tenants, "[[tenant]]\nname = \"t{i}\"\ncores = {cores}\n{keys}app = {app}").unwrap();
        if let Some((own, each_us)) = own {
            rate += each_us;
            writeln!(tenants, "traffic = {{ {own} }}").unwrap();
        }
    }
    for (i, used) in nics.iter().enumerate().filter(|(_, used)| **used != Use::Nothing) {
        writeln!(peripherals, "[[peripheral]]\nkind = \"ethernet\"\nname = \"nic{i}\"\n{}", there.trim_end()).unwrap();
        if *used == Use::Loop {
            peripherals += "loopback = true\n";
        } else if n % 5 == 0 {
            peripherals += "link = \"10 Gbps\"\n";
        }
    }
    let mut changed = Vec::new();
    // A host without packets fills its caches first, so that these are always small.
    if rate == 0.0 || n % 8 > 0 {
        let (l2, llc) = m.caches;
        changed.push(format!("caches = {{ l2 = {{ size = \"{l2}\" }}, llc = {{ size = \"{llc}\" }} }}"));
    }
    if second_threads {
        changed.push(format!("core = {{ threads = 2, count = {half} }}"));
    }
    let nodes = [(second_threads, format!("cores = {half}")), (!several, "count = 1".into())];
    let nodes: Vec<_> = nodes.into_iter().filter(|(is, _)| *is && m.nodes > 1).map(|(_, key)| key).collect();
    if !nodes.is_empty() {
        changed.push(format!("nodes = {{ {} }}", nodes.join(", ")));
    }
    let mut text = format!("name = \"mixture {n}\"\nplatform = \"{}\"\n", m.name);
    if !changed.is_empty() {
        writeln!(text, "override = {{ {} }}", changed.join(", ")).unwrap();
    }
    writeln!(text, "placement = {{ {} }}", d.placement(pairs)).unwrap();
    if d.chance(if pairs { 50 } else { 3 }) {
        text += "rings = { rx_buffers = 128, buffer_size = \"2 KiB\" }\n";
    }
    if rate > 0.0 {
        let requests = (SPAN_US * rate / (1 + busy) as f64).clamp(FEWEST, MOST) as u64;
        writeln!(text, "run = {{ load = \"fixed\", requests = {requests}, warmup_requests = {} }}", requests / 3)
            .unwrap();
    } else {
        text += "run = { load = \"saturate\", warmup_time = \"2 us\", time = \"5 us\" }\n";
    }
    text + &tenants + &peripherals
}

/// What became of a mixture.
enum End {
    Ran,
    /// The refusal, with the file's name.
    Refused(String),
    /// What is wrong.
    Bug(String),
}

/// Resolves and runs mixture `n`, and lets every third one drain.
fn end(n: u64, text: &str) -> End {
    let tried = catch_unwind(AssertUnwindSafe(|| {
        let s = match resolve(text, "mix.toml", &[platforms()]) {
            Ok(s) => s,
            Err(e) => return End::Refused(e.to_string()),
        };
        match run(&s, &mut |_| Ok(())) {
            Ok(o) => match finite(&o) {
                Some(metric) => End::Bug(format!("{metric} is no number")),
                None if n % 3 > 0 => End::Ran,
                None => drained(s).map_or_else(|e| End::Bug(format!("drained: {e}")), |()| End::Ran),
            },
            Err(e) => End::Bug(e),
        }
    }));
    tried.unwrap_or_else(|p| {
        let said = p.downcast_ref::<String>().cloned().or_else(|| p.downcast_ref::<&str>().map(|s| s.to_string()));
        End::Bug(format!("panic: {}", said.unwrap_or_default()))
    })
}

/// The end of each mixture from `from` to `to`, and the CPU time that it took. One that takes longer than `LONGEST` ends
/// the test with its text: the mixtures are bounded, so that the simulator's time no longer advances.
fn ends(from: u64, to: u64) -> impl Iterator<Item = (String, End, Duration)> {
    let (give, take) = mpsc::channel();
    thread::spawn(move || {
        for n in from..to {
            let text = mixture(n);
            let before = cpu_time();
            let end = end(n, &text);
            if give.send((text, end, cpu_time() - before)).is_err() {
                return;
            }
        }
    });
    (from..to).map(move |n| match take.recv_timeout(LONGEST) {
        Ok(end) => end,
        Err(_) => panic!("no end after {LONGEST:?}:\n{}", mixture(n)),
    })
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}

/// Runs the tenants for a while, ends their packets, and checks that nothing is lost on the way out.
fn drained(s: Scenario) -> Result<(), String> {
    if s.client.is_some() {
        return Ok(());
    }
    let s = Arc::new(s);
    let mut host = Host::new(s.clone())?;
    let tenants: Vec<TenantId> = (0..s.tenants.len()).map(TenantId::new).collect();
    // Cores whose NIC loops back generate their packets themselves.
    for (t, spec) in tenants.iter().zip(&s.tenants).filter(|(_, t)| !t.loops()) {
        let traffic = spec.traffic.as_deref().unwrap_or(&s.traffic);
        match traffic.outstanding() {
            0 => host.offer(*t, Some(Arrivals::fixed(1e6)), 0),
            n => host.offer_closed(*t, n, traffic.timeout().into()),
        }
    }
    for _ in 0..8 {
        host.run_for(Time::us(1));
        host.check()?;
    }
    for (t, spec) in tenants.iter().zip(&s.tenants) {
        let traffic = spec.traffic.as_deref().unwrap_or(&s.traffic);
        if traffic.outstanding() == 0 {
            host.offer(*t, None, 0);
        }
    }
    if s.tenants.iter().all(serves) && s.peripherals.iter().all(|p| p.ethernet().is_some()) {
        host.run_for(Time::us(400));
        host.check()?;
        let nics = host.machine.iio.iter().flat_map(|iio| iio.nics());
        if let Some((port, nic)) = nics.into_iter().find(|(_, nic)| nic.unfinished() > 0) {
            return Err(format!("{} packets stay in the NIC on port {port}", nic.unfinished()));
        }
    }
    host.drain();
    host.check()
}

/// Whether a tenant does nothing once its packets have ended.
fn serves(t: &TenantSpec) -> bool {
    let ends = t.traffic.as_ref().is_some_and(|t| t.outstanding() == 0);
    ends && t.stack.ccnic().is_none() && t.work() == WorkSource::Packets
}

/// The first metric that is infinite or no number.
fn finite(o: &hostnet::host::Outcome) -> Option<&'static str> {
    let mut all = hostnet::meter::METRICS.iter().zip(&o.values.0);
    all.find(|(_, v)| v.is_some_and(|v| !v.is_finite())).map(|(m, _)| m.name)
}

/// The refusal without numbers and names, so that equal reasons count together.
fn reason(said: &str) -> String {
    let words = said.trim_start_matches("mix.toml: ").chars();
    words.map(|c| if c.is_ascii_digit() { '#' } else { c }).collect()
}

/// Draws mixtures `from` to `to`, each of which must run or be refused in a sentence; prints what became of them.
fn draws(from: u64, to: u64) {
    let (mut ran, mut reasons, mut bugs) = (0u64, BTreeMap::<String, u64>::new(), Vec::new());
    let (mut all, mut longest) = (Duration::ZERO, (Duration::ZERO, 0));
    for (n, (text, end, took)) in (from..to).zip(ends(from, to)) {
        all += took;
        longest = longest.max((took, n));
        match end {
            End::Ran => ran += 1,
            End::Refused(said) => {
                let sentence = said.starts_with("mix.toml: ") && said.ends_with('.') && !said.contains('\n');
                let built = !said.contains("not built yet") || NOT_BUILT.iter().any(|known| said.contains(known));
                if !sentence || !built {
                    bugs.push(format!("{said}\n{text}"));
                }
                *reasons.entry(reason(&said)).or_default() += 1;
            }
            End::Bug(why) => bugs.push(format!("{why}\n{text}")),
        }
    }
    println!("{ran} of {} ran", to - from);
    let mut by_count: Vec<_> = reasons.into_iter().collect();
    by_count.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    by_count.iter().for_each(|(why, n)| println!("{n:5} {why}"));
    println!(
        "CPU time: {:.1?} each in the mean, {:.0?} at most, of mixture {}",
        all / (to - from) as u32,
        longest.0,
        longest.1
    );
    assert!(bugs.is_empty(), "{} bugs:\n{}", bugs.len(), bugs.join("\n----\n"));
    assert!(ran * 100 >= (to - from) * 75, "only {ran} of {} ran", to - from);
}

#[test]
fn each_drawn_mixture_runs_and_is_conserved_or_is_refused_in_a_sentence() {
    draws(0, 150);
}

/// Takes a minute or two; `MIXTURES=from-to` chooses the numbers.
#[test]
#[ignore = "takes a minute or two"]
fn thousands_of_mixtures_run_or_are_refused_in_a_sentence() {
    let range = std::env::var("MIXTURES").unwrap_or_else(|_| "0-3000".into());
    let (from, to) = range.split_once('-').expect("from-to");
    draws(from.parse().expect("a number"), to.parse().expect("a number"));
}
