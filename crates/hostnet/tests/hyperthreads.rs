//! Tests of two hardware threads of one core and of the resources that they share: issue slots, caches, and lines in
//! flight.

use crate::common::{get, refusal, refused, scenario, simulate, ONE_CORE};
use hostnet::core::{CoreSpec, Cpu, Op};
use hostnet::kernel::{Clock, CoreId, IdVec, LineAddr, TenantId, ThreadId, Time};
use hostnet::machine::{Machine, MachineSignal};
use hostnet::memory::region::{AddressMap, RegionKind, Sharing};
use hostnet::memory::stats::AccessClass;
use hostnet::memory::{Memory, Siblings};

/// Threads on cores of sim24, and a region that all threads share.
struct Bench {
    m: Machine,
    line: LineAddr,
    core: CoreSpec,
    /// Ends of each thread's programs.
    ends: Vec<Vec<Time>>,
}

impl Bench {
    /// A bench whose threads run on the given `cores`.
    fn new(cores: &[u16], change: impl FnOnce(&mut CoreSpec)) -> Bench {
        let s = scenario(ONE_CORE);
        let mut core = s.platform.core;
        change(&mut core);
        let mut map = AddressMap::default();
        let r = map.add(1 << 12, RegionKind::App, Sharing::Shared, TenantId(0));
        let line = map.get(r).base;
        let clock = Clock::from_hz(core.clock.0);
        let (h, d) = (&s.platform.caches, &s.platform.memory);
        let n = u32::from(*cores.iter().max().expect("a thread")) + 1;
        let mut mem = Memory::new(h, d, clock, n, vec![(1 << 12) - 1], map).expect("a valid memory");
        let cores: IdVec<ThreadId, CoreId> = cores.iter().copied().map(CoreId).collect();
        mem.siblings = Siblings::of(&cores);
        let half = core.of_one_thread();
        let cpu = |(t, c): (ThreadId, &CoreId)| {
            let of = if mem.sibling(t).is_some() { &half } else { &core };
            Cpu::new(t, of).on_core(*c)
        };
        let cpus: IdVec<ThreadId, Cpu> = cores.enumerate().map(cpu).collect();
        let mut m = Machine::without_devices(mem, cpus);
        m.now = Time::ns(1);
        Bench { m, line, core, ends: vec![Vec::new(); cores.len()] }
    }

    /// Each thread runs its program the given number of times.
    fn go(&mut self, programs: &[(&[Op], u32)]) {
        let mut left: Vec<u32> = programs.iter().map(|p| p.1).collect();
        for (t, (ops, _)) in programs.iter().enumerate() {
            let thread = ThreadId::new(t);
            self.m.cpus[thread].program.ops = ops.to_vec();
            self.m.start(thread);
        }
        while let Some(s) = self.m.next_signal() {
            let MachineSignal::CoreFree(t) = s else { continue };
            let (thread, t) = (t, t.index());
            self.ends[t].push(self.m.now);
            left[t] -= 1;
            if left[t] > 0 {
                self.m.start(thread);
            }
        }
    }

    /// Nanoseconds of a program of thread `t`, averaged over the second half of its runs.
    fn each(&self, t: usize) -> f64 {
        let ends = &self.ends[t];
        let half = ends.len() / 2;
        (ends[ends.len() - 1] - ends[half - 1]).as_ns() / (ends.len() - half) as f64
    }

    fn reads(&self) -> u64 {
        self.m.mem.stats.of(AccessClass::CpuOtherRd)
    }
}

const PROGRAM: [Op; 1] = [Op::Compute(1000)];

/// Code that sustains the core's width takes every slot: each of two threads gets half of the slots, and a thread alone
/// gets all.
#[test]
fn threads_that_each_fill_all_slots_take_twice_as_long() {
    let all = |s: &mut CoreSpec| s.compute_ipc = f64::from(s.width);
    let mut alone = Bench::new(&[0], all);
    alone.go(&[(&PROGRAM, 200)]);
    let clock = alone.core.clock.0 as f64 / 1e9;
    let expected = 1000.0 / f64::from(alone.core.width) / clock;
    assert!((alone.each(0) / expected - 1.0).abs() < 0.01, "{} ns, {expected} by the width", alone.each(0));
    let mut both = Bench::new(&[0, 0], all);
    both.go(&[(&PROGRAM, 200), (&PROGRAM, 200)]);
    for t in 0..2 {
        assert!((both.each(t) / expected - 2.0).abs() < 0.02, "thread {t}: {} ns, {expected} alone", both.each(t));
    }
}

/// Code that sustains a quarter of the width leaves three quarters: neither thread slows the other. A thread on another
/// core leaves all slots.
#[test]
fn threads_that_leave_each_other_slots_run_at_full_speed() {
    let quarter = |s: &mut CoreSpec| s.compute_ipc = f64::from(s.width) / 4.0;
    let mut alone = Bench::new(&[0], quarter);
    alone.go(&[(&PROGRAM, 200)]);
    for cores in [[0, 0], [0, 1]] {
        let mut both = Bench::new(&cores, quarter);
        both.go(&[(&PROGRAM, 200), (&PROGRAM, 200)]);
        assert!((both.each(1) / alone.each(0) - 1.0).abs() < 0.01, "{cores:?}: {} ns", both.each(1));
    }
}

/// As many independent misses overlap as there are line fill buffers. Each of two threads has half of the buffers, so
/// that a thread takes twice as long for the same lines.
#[test]
fn a_thread_beside_another_has_half_the_line_fill_buffers() {
    let lines = 2048;
    let few = |s: &mut CoreSpec| (s.lfb, s.prefetch, s.rob) = (8, None, 512);
    let time = |cores: &[u16]| {
        let mut b = Bench::new(cores, few);
        let load = [Op::Load { line: b.line, lines }, Op::Fence];
        let mut programs: Vec<(&[Op], u32)> = vec![(&load, 1)];
        programs.resize(cores.len(), (&[Op::Compute(1)], 1));
        b.go(&programs);
        b.ends[0][0].as_ns()
    };
    let (whole, half) = (time(&[0]), time(&[0, 0]));
    assert!((half / whole - 2.0).abs() < 0.1, "{half} ns with half of them, {whole} with all");
}

/// Both threads miss on the same line: one request goes to memory, and both threads get the line when it arrives.
#[test]
fn a_line_that_one_thread_has_asked_for_is_not_asked_for_again() {
    let load = |b: &Bench| [Op::Anchor { line: b.line }, Op::Await];
    let mut alone = Bench::new(&[0], |_| {});
    let program = load(&alone);
    alone.go(&[(&program, 1)]);
    let mut both = Bench::new(&[0, 0], |_| {});
    let program = load(&both);
    both.go(&[(&program, 1), (&program, 1)]);
    assert_eq!((alone.reads(), both.reads()), (1, 1));
    let hit = both.m.mem.lat.l1;
    assert_eq!(both.ends[0][0], alone.ends[0][0]);
    assert!(both.ends[1][0] >= alone.ends[0][0] && both.ends[1][0] <= alone.ends[0][0] + hit);
}

/// A line that one thread has loaded is in the L1 of the other thread.
#[test]
fn threads_of_a_core_have_its_caches_in_common() {
    let mut b = Bench::new(&[0, 0], |_| {});
    let load = [Op::Anchor { line: b.line }, Op::Await];
    b.go(&[(&load, 1), (&[], 1)]);
    let start = b.m.now;
    b.m.cpus[ThreadId(1)].program.ops = load.to_vec();
    b.m.start(ThreadId(1));
    b.m.settle();
    assert!(b.m.mem.holds(CoreId(0), b.line));
    assert_eq!((b.reads(), b.m.cpus[ThreadId(1)].now() - start), (1, b.m.mem.lat.l1));
}

/// A store of one thread to a line that it has does not delay the other thread: both have the same copy.
#[test]
fn a_line_that_one_thread_has_written_is_the_other_one_s_to_write() {
    let mut b = Bench::new(&[0, 0], |_| {});
    let store = [Op::Store { line: b.line, lines: 1 }, Op::Fence];
    b.go(&[(&store, 1), (&[], 1)]);
    let reads = b.reads();
    b.go(&[(&[], 1), (&store, 1)]);
    assert_eq!((reads, b.reads()), (1, 1));
}

const KV: &str = "name = \"kv\"\nplatform = \"icx\"\nplacement = { policy = \"ddio\", ways = 2 }\n[[tenant]]\nname = \"kv\"\nnode = \
                  1\ncores = 24\nstack = \"ccnic\"\napp = { kind = \"clique_map\", objects = 10000, get_fraction = 0.95, zipf = \
                  0.75, below_100 = 0.61 }\n[ccnic]\nmode = \"overlay\"\nnic_node = 0\nnic_threads = 24\n[[peripheral]]\nkind = \
                  \"ethernet\"\n[traffic]\narrivals = \"closed\"\noutstanding = 768\nspread = \"flow\"\n[run]\nload = \
                  \"fixed\"\nrequests = 6000\nwarmup_requests = 6000\n";

/// 24 threads of 16 cores on both sockets: no packet is lost, and every packet is accounted for, which `simulate`
/// checks.
#[test]
fn a_key_value_store_on_second_threads_loses_nothing_and_gains_on_its_cores_alone() {
    let rate = |n: &str| {
        let o = simulate(&KV.replace("cores = 24", n).replace("nic_threads = 24", &n.replace("cores", "nic_threads")));
        assert_eq!(get(&o, "drop_rate"), 0.0);
        get(&o, "throughput_mrps")
    };
    let (sixteen, all) = (rate("cores = 16"), rate("cores = 32"));
    assert!(all > sixteen && all < 2.0 * sixteen, "{all} on 32 threads, {sixteen} on 16 cores");
    let o = simulate(KV);
    assert_eq!(get(&o, "cores"), 24.0);
}

#[test]
fn what_second_threads_cannot_run_yet_is_said() {
    refused(
        KV,
        &[
            (
                "cores = 24",
                "cores = 33",
                "tenants of node 1 ask for 33 cores (tenant[0].cores = 33); a node has 16 of 2 threads each",
            ),
            ("nic_node = 0", "nic_node = 0\nnic = \"agent\"\nwake = \"event\"", "shares no core"),
            ("[[tenant]]", "override = { core = { threads = 3 } }\n[[tenant]]", "core.threads = 3 is not 1 or 2"),
            ("[[tenant]]", "override = { core = { threads = 1 } }\n[[tenant]]", "ask for 24 cores; a node has 16"),
        ],
    );
}

const ONE_NODE: &str = "name = \"s\"\nplatform = \"icx\"\nplacement = { policy = \"dma\" }\noverride = { nodes = { count = 1 } }\n\
                        [[tenant]]\nname = \"s\"\ncores = 16\napp = { kind = \"stream\", buffer = \"1 GiB\", read_fraction = \
                        1.0 }\n[run]\nload = \"saturate\"\nwarmup_time = \"1 us\"\ntime = \"5 us\"\n";

/// Two threads of a core have half of its buffers each; where no second thread runs, an odd number is as good as any.
#[test]
fn buffers_that_two_threads_share_are_even() {
    let one = "nodes = { count = 1 }";
    let with = |core: &str| format!("{one}, core = {{ {core} }}");
    let threads = |cores: u32| ONE_NODE.replace("cores = 16", &format!("cores = {cores}"));
    let odd = |cores: u32, core: &str| threads(cores).replace(one, &with(core));
    assert_eq!(get(&simulate(&odd(16, "lfb = 3, rob = 351")), "lfb_credits"), 3.0);
    assert_eq!(get(&simulate(&odd(32, "lfb = 4, rob = 350")), "lfb_credits"), 2.0);
    for (core, said) in [
        ("lfb = 3", "platform.core.lfb = 3 is odd: node 0 has more threads than its 16 cores, and each thread has half; choose 2 or 4"),
        ("lfb = 1", "platform.core.lfb = 1 is odd: node 0 has more threads than its 16 cores, and each thread has half; choose 2."),
        ("rob = 351", "platform.core.rob = 351 is odd"),
        ("prefetch = { credits = 27 }", "platform.core.prefetch.credits = 27 is odd"),
        ("quirks = { combining_buffers = 5 }", "platform.core.quirks.combining_buffers = 5 is odd"),
    ] {
        let e = refusal(&threads(17), one, &with(core));
        assert!(e.contains(said), "{e}");
    }
}

/// The platform has 16 cores a node, each with 12 line fill buffers, and 32 on both nodes. On one node, the 17th
/// thread shares a core: two threads have 6 buffers each and 15 have 12.
#[test]
fn one_node_of_a_platform_with_two_has_the_cores_of_one() {
    for (cores, expected) in [(16, 12.0), (17, (15.0 * 12.0 + 2.0 * 6.0) / 17.0), (32, 6.0)] {
        let o = simulate(&ONE_NODE.replace("cores = 16", &format!("cores = {cores}")));
        assert_eq!(get(&o, "lfb_credits"), expected, "{cores} cores");
    }
    refused(
        ONE_NODE,
        &[
            ("cores = 16", "cores = 33", "tenants ask for 33 cores (tenant[0].cores = 33); platform.nodes.cores is 16 of 2 threads each"),
            (
                "cores = 16",
                "cores = 16\nl2_size = \"640 KiB\"\napp = { kind = \"xmem\", array = \"4 KiB\" }\n[[tenant]]\nname = \"o\"\ncores = 1",
                "tenant[0].l2_size is of a core whose two threads run tenants with different L2 sizes",
            ),
        ],
    );
    let single = ONE_NODE.replace("count = 1 }", "count = 1 }, core = { threads = 1 }");
    refused(
        &single,
        &[("cores = 16", "cores = 17", "tenants ask for 17 cores (tenant[0].cores = 17); platform.nodes.cores is 16")],
    );
}

/// A scenario on one core of icx with two hardware threads; `rest` are tenants, devices and the length of the run.
fn on_one_core(rest: &str) -> String {
    format!(
        "name = \"two threads\"\nplatform = \"icx\"\noverride = {{ nodes = {{ count = 1, cores = 1 }} }}\nplacement = {{ policy = \
         \"ddio\", ways = 2 }}\n{rest}"
    )
}

/// Threads that wait for each other's stores share the line in their L1: no invalidation tells the waiting thread, and
/// every store is seen.
#[test]
fn threads_of_a_core_see_each_other_s_stores_without_the_home_agent() {
    let ping = "app = { kind = \"pingpong\", layout = \"Wr\" }\n[run]\nload = \"fixed\"\nrequests = 400\nwarmup_requests = 100\n";
    let tenant = "[[tenant]]\nname = \"ping\"\ncores = 1\n";
    let trip = |cores: &str| {
        let o = simulate(&on_one_core(&format!("{tenant}{ping}")).replace("cores = 1 }", cores));
        get(&o, "pingpong_ns")
    };
    let (siblings, apart) = (trip("cores = 1 }"), trip("cores = 2 }"));
    // On cores of their own each of four accesses of a turn goes to the other core: 2 x (L1 + L2 + crossbar + LLC) at least.
    assert!(siblings < apart / 4.0, "{siblings} ns on one core, {apart} ns on two");
}

/// The second thread of a core serves what the first one receives, at the rate that comes.
#[test]
fn a_pipeline_runs_on_the_two_threads_of_a_core() {
    let text = on_one_core(
        "[[tenant]]\nname = \"pair\"\ncores = 2\nstack = \"poll_mode\"\npipeline = {}\napp = { kind = \"touchfwd\" }\n\
         traffic = { arrivals = \"fixed\", rate = \"0.5 Mpps\", packet = \"256 B\" }\n[[peripheral]]\nkind = \"ethernet\"\n\
         [run]\nload = \"fixed\"\nrequests = 2000\nwarmup_requests = 500\n",
    );
    let o = simulate(&text);
    assert_eq!(get(&o, "drop_rate"), 0.0);
    assert!((get(&o, "throughput_mrps") / 0.5 - 1.0).abs() < 0.02, "{}", get(&o, "throughput_mrps"));
}

/// TAS's fast path and its server, and CC-NIC's host and NIC, wait for lines of each other on one core. Little's law: the
/// requests under way are those that the clients keep.
#[test]
fn services_run_on_the_two_threads_of_a_core() {
    let echo = on_one_core(
        "[[tenant]]\nname = \"echo\"\ncores = 2\nstack = \"poll_mode\"\napp = { kind = \"tcp_echo\", rpc = \"64 B\", flows = 8, \
         pipelined = 2 }\ntraffic = { arrivals = \"closed\", outstanding = 16 }\n[[peripheral]]\nkind = \"ethernet\"\n\
         [run]\nload = \"fixed\"\nrequests = 2000\nwarmup_requests = 2000\n",
    );
    let o = simulate(&echo);
    let under_way = get(&o, "throughput_mrps") * get(&o, "lat_mean_us");
    assert!((under_way / 16.0 - 1.0).abs() < 0.1, "{under_way} requests under way");
    let loopback = on_one_core(
        "[[tenant]]\nname = \"pair\"\ncores = 1\nstack = \"ccnic\"\napp = { kind = \"loopback\", bytes = \"64 B\" }\n\
         traffic = { arrivals = \"closed\", outstanding = 8 }\n[run]\nload = \"fixed\"\nrequests = 4000\nwarmup_requests = 1000\n",
    );
    let o = simulate(&loopback);
    let under_way = get(&o, "achieved_mpps") * get(&o, "rtt_mean_us");
    // A round trip excludes the time from a packet's return to the time stamp of the next one.
    assert!((4.0..8.0).contains(&under_way), "{under_way} packets under way");
    refused(&loopback, &[("[run]", "[ccnic]\nnic = \"agent\"\nwake = \"event\"\n[run]", "shares no core")]);
}

/// Receivers of the kernel wait for interrupts on second threads as on first ones.
#[test]
fn the_kernel_receives_on_second_threads() {
    let text = "name = \"sockets\"\nplatform = \"altra\"\noverride = { core = { threads = 2, count = 2 } }\nplacement = { policy = \
                \"ddio\", ways = 2 }\n[[tenant]]\nname = \"sockets\"\ncores = 4\nstack = \"kernel\"\napp = { kind = \"touchfwd\" }\n\
                traffic = { arrivals = \"fixed\", rate = \"0.1 Mpps\", packet = \"256 B\" }\n[[peripheral]]\nkind = \"ethernet\"\n\
                [run]\nload = \"fixed\"\nrequests = 1000\nwarmup_requests = 300\n";
    let o = simulate(text);
    assert_eq!(get(&o, "drop_rate"), 0.0);
    assert!((get(&o, "throughput_mrps") / 0.1 - 1.0).abs() < 0.03, "{}", get(&o, "throughput_mrps"));
}
