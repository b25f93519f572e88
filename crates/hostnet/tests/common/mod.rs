//! A small memory system for tests, and scenarios from text.

pub mod bench;

use hostnet::config::{resolve, Scenario};
use hostnet::core::prefetch::{PrefetchPattern, PrefetchQuirks, PrefetchSpec};
use hostnet::core::{Op, Retired};
use hostnet::host::{run, Outcome};
use hostnet::kernel::units::{ByteRate, Freq, Size, Span};
use hostnet::kernel::{Clock, CoreId, LineAddr, NodeId, TenantId, ThreadId, Time, TxnId};
use hostnet::machine::{Machine, MachineSignal};
use hostnet::memory::array::{Indexing, Replacement};
use hostnet::memory::dram::DramSpec;
use hostnet::memory::nodes::{NodeLinkSpec, NodesQuirks, NodesSpec};
use hostnet::memory::region::{AddressMap, RegionKind, Sharing};
use hostnet::memory::spec::{CacheSpec, CleanVictim, HierarchySpec, LlcQuirks, LlcRole, LlcSpec, ReadHit, WriteBacks};
use hostnet::memory::stats::AccessClass;
use hostnet::memory::{self, Agent, Inbound, Memory, Outbound, Probe, Sender, Txn};
use std::path::PathBuf;

pub const MHZ_3200: u64 = 3_200_000_000;

/// Sets of the small LLC; it has four ways.
pub const LLC_SETS: u64 = 16;

/// Caches of 4 lines (L1), 16 lines (L2) and 64 lines in 4 ways (LLC), with 4 + 14 + 35 cycles of look-ups and 8 cycles
/// of crossbar in each direction.
pub fn small() -> HierarchySpec {
    let cache = |lines: u64, ways, latency_cycles| CacheSpec {
        size: Size(lines * 64),
        ways,
        latency_cycles,
        response_cycles: 0,
        replacement: Replacement::Lru,
    };
    HierarchySpec {
        l1d: cache(4, 2, 4),
        l2: cache(16, 4, 14),
        l2_inclusive: false,
        llc: LlcSpec {
            size: Size(LLC_SETS * 4 * 64),
            ways: 4,
            latency_cycles: 35,
            slices: 1,
            indexing: Indexing::Modulo,
            replacement: Replacement::Lru,
            role: LlcRole::Victim,
            write_buffer: 256,
            write_order: Default::default(),
            write_ack: Span(0),
            quirks: LlcQuirks {
                preset: None,
                clean_victim_cleans: false,
                response_cycles: 0,
                read_hit: ReadHit::Retain,
                store_hit: Default::default(),
                upgrade_miss: Default::default(),
                modified_read: Default::default(),
                clean_victim: CleanVictim::Allocate,
                write_back_uses: true,
                device_read: Default::default(),
                device_read_ages: false,
                device_ways: Default::default(),
                inclusive_ways: 0,
                mshrs: 0,
                nic_credits: 0,
                writebacks: WriteBacks::Immediate,
                memory_link: None,
            },
        },
        uncore_clock: Freq(MHZ_3200),
        noc_cycles: 8,
    }
}

/// Two nodes with one link in each direction: 50 ns, and 0.8 ns for a message or 4 ns for a line.
pub fn two_nodes() -> NodesSpec {
    let link = NodeLinkSpec {
        links: 1,
        rate: ByteRate(20_000_000_000),
        latency: Span(50_000),
        message: Size(16),
        data: Size(80),
        spare: Size(0),
        credits: 64,
    };
    let quirks = NodesQuirks { migratory: true, speculative: false, ..NodesQuirks::default() };
    NodesSpec { count: 2, link: Some(link), quirks, ..NodesSpec::default() }
}

/// Result of a core's access, and the time that the access took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    pub probe: Probe,
    pub took: Time,
}

/// A device that waits for no answer, on the chip or behind the IIO.
fn sender_of(agent: Agent) -> Sender {
    match agent {
        Agent::Nic => Sender::Nic(None),
        Agent::Io => Sender::Io,
        other => panic!("{other:?} is no device"),
    }
}

/// Two cores on a memory system with a receive and a transmit region of core 0, one of application data
/// of core 0, and one that both share.
pub struct Rig {
    pub m: Machine,
    /// Answers to requests, with their times.
    pub answers: Vec<(Time, Txn)>,
    pub rx: LineAddr,
    pub tx: LineAddr,
    pub app: LineAddr,
    pub shared: LineAddr,
    /// A line of a shared region in the memory of the last node.
    pub far: LineAddr,
}

impl Rig {
    pub fn new(h: &HierarchySpec, tenant_ways: u32) -> Rig {
        Rig::with_memory(h, tenant_ways, &DramSpec::default())
    }

    pub fn with_memory(h: &HierarchySpec, tenant_ways: u32, d: &DramSpec) -> Rig {
        Rig::with_nodes(h, tenant_ways, d, &NodesSpec::default(), vec![0; 2])
    }

    /// A rig with the given number of nodes, and cores on these nodes.
    pub fn with_nodes(h: &HierarchySpec, tenant_ways: u32, d: &DramSpec, nodes: &NodesSpec, cores: Vec<u8>) -> Rig {
        let mut map = AddressMap::default();
        let mut add = |kind, sharing| {
            let r = map.add(1 << 14, kind, sharing, TenantId(0));
            map.get(r).base
        };
        let rx = add(RegionKind::Rx, Sharing::Core(CoreId(0)));
        let tx = add(RegionKind::Tx, Sharing::Core(CoreId(0)));
        let app = add(RegionKind::App, Sharing::Core(CoreId(0)));
        let shared = add(RegionKind::App, Sharing::Shared);
        let far = map.add(1 << 14, RegionKind::App, Sharing::Shared, TenantId(0));
        map.set_home(far, NodeId(nodes.count as u8 - 1));
        let far = map.get(far).base;
        let clock = Clock::from_hz(MHZ_3200);
        let mem =
            Memory::with_nodes(h, d, nodes, clock, cores.into_iter().map(NodeId).collect(), vec![tenant_ways], map);
        let mem = mem.expect("a valid memory system");
        let mut m = Machine::without_devices(mem, Vec::new());
        m.now = Time::ns(1);
        Rig { m, answers: Vec::new(), rx, tx, app, shared, far }
    }

    /// Handles events until none is left.
    pub fn settle(&mut self) {
        while let Some(s) = self.m.next_signal() {
            if let MachineSignal::Answer(id) = s {
                self.fill(id, None);
            }
        }
    }

    /// Ends transaction `id` after its answer: a line for a core enters the core's caches, and `write`, or else the
    /// transaction, says whether it is written.
    pub fn fill(&mut self, id: TxnId, write: Option<bool>) {
        let f = self.m.mem.answered(&mut self.m.cal, id, self.m.now);
        self.answers.push((self.m.now, f));
        if f.agent() == Agent::Core && !f.transient && matches!(f.op, memory::TxnOp::Read | memory::TxnOp::Own) {
            let own = f.op == memory::TxnOp::Own;
            self.m.mem.fill(&mut self.m.cal, f.core(), &f, write.unwrap_or(own), self.m.now);
        }
    }

    /// A device's write of one line, which is in flight when the function returns.
    pub fn device_writes_later(&mut self, agent: Agent, line: LineAddr, to: Inbound) {
        let t = Txn::dma_write(sender_of(agent), AccessClass::NicRxWr, to, line, 1, self.m.now);
        self.m.mem.send(&mut self.m.cal, self.m.now, t);
    }

    /// A device's write of `lines` lines, which is complete when the function returns.
    pub fn device_writes(&mut self, agent: Agent, line: LineAddr, lines: u16, to: Inbound) {
        let t = Txn::dma_write(sender_of(agent), AccessClass::NicRxWr, to, line, lines, self.m.now);
        self.m.mem.send(&mut self.m.cal, self.m.now, t);
        self.settle();
    }

    /// A device's read of `lines` lines, which is complete when the function returns.
    pub fn device_reads(&mut self, agent: Agent, line: LineAddr, lines: u16, from: Outbound) {
        let t = Txn::dma_read(sender_of(agent), AccessClass::NicTxRd, line, lines, self.m.now);
        self.m.mem.send(&mut self.m.cal, self.m.now, Txn { from, ..t });
        self.settle();
    }

    pub fn request(&mut self, core: u32, line: LineAddr, op: memory::TxnOp) {
        let lat = self.m.mem.lat;
        let t = Txn::new(op, line, CoreId(core as u16), self.m.now);
        self.m.mem.send(&mut self.m.cal, self.m.now + lat.l1 + lat.l2 + lat.noc, t);
    }

    pub fn access(&mut self, core: u32, line: LineAddr, write: bool) -> Seen {
        let start = self.m.now;
        let probe = self.m.mem.probe(&mut self.m.cal, CoreId(core as u16), line, write, start);
        if probe == Probe::Miss {
            self.request(core, line, if write { memory::TxnOp::Own } else { memory::TxnOp::Read });
        }
        // Accesses of DRAM that victims cause must not count.
        let mut took = Time::ZERO;
        while let Some(s) = self.m.next_signal() {
            if let MachineSignal::Answer(id) = s {
                took = self.m.now - start;
                self.fill(id, Some(write));
            }
        }
        Seen { probe, took }
    }
    pub fn read(&mut self, line: LineAddr) -> Seen {
        self.access(0, line, false)
    }
    pub fn write(&mut self, line: LineAddr) -> Seen {
        self.access(0, line, true)
    }
    pub fn dram_transfers(&self) -> u64 {
        self.m.mem.stats.dram.iter().sum()
    }
}

/// Runs `ops` on core 0 from `now` on; returns the time of the last dispatch, the time at which all accesses were
/// complete, and the retired side effects with their times.
pub fn execute(m: &mut Machine, ops: &[Op], now: Time) -> (Time, Time, Vec<(Time, Retired)>) {
    m.cpus[ThreadId(0)].program.ops.clear();
    m.cpus[ThreadId(0)].program.ops.extend_from_slice(ops);
    m.now = now;
    m.start(ThreadId(0));
    let mut end = None;
    let mut retired = Vec::new();
    while let Some(s) = m.next_signal() {
        match s {
            MachineSignal::CoreFree(_) => end = Some(m.now),
            MachineSignal::Retired(core) => {
                while let Some(r) = m.retired(core) {
                    retired.push((m.now, r));
                }
            }
            _ => {}
        }
    }
    (end.expect("the program ends"), m.now, retired)
}

pub fn platforms() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../platforms")
}

pub fn scenario(text: &str) -> Scenario {
    resolve(text, "test.toml", &[platforms()]).unwrap_or_else(|e| panic!("{e}"))
}

pub fn simulate(text: &str) -> Outcome {
    run(&scenario(text), &mut |_| Ok(())).unwrap_or_else(|e| panic!("{e}"))
}

/// A metric that must have a value.
pub fn get(o: &Outcome, metric: &str) -> f64 {
    o.values.named(metric).unwrap_or_else(|| panic!("{metric} is null"))
}

/// Number of arrivals at a domain per microsecond.
pub fn arrivals(o: &Outcome, domain: &str) -> f64 {
    let table = &o.tables["domains"];
    let names = table["columns"].as_array().expect("columns");
    let at = names.iter().position(|c| c["name"] == "arrivals_per_us").expect("a column");
    let row = table["rows"].as_array().expect("rows").iter().find(|r| r[0] == domain);
    row.and_then(|r| r[at].as_f64()).unwrap_or_else(|| panic!("no domain {domain}"))
}

pub fn close(measured: f64, expected: f64, tolerance: f64) -> bool {
    (measured - expected).abs() <= tolerance * expected.abs()
}

/// Two cores under IDIO that receive packets of 24 lines at 4 Gb/s each.
pub const IDIO_RUN: &str = r#"
    name = "idio"
    platform = "cascadelake"
    placement = { policy = "idio", ways = 2 }
    rings = { rx_buffers = 1024, buffer_size = "2 KiB" }
    tenant = [{ name = "nf", cores = 2, llc_ways = "2-10", app = { kind = "touchdrop" } }]
    traffic = { arrivals = "fixed", rate = "0.66 Mpps", packet = "1514 B", spread = "round_robin" }
    run = { load = "fixed", requests = 4096, warmup_requests = 4096 }
    override = { caches = { llc = { size = "2816 KiB", slices = 2, device_read = "demote" } } }
"#;

/// Two cores of sim24 without any traffic.
pub const TWO_CORES: &str = r#"
    name = "two"
    platform = "sim24"
    placement = { policy = "ddio" }
    tenant = [{ name = "a", cores = 2, app = { kind = "xmem", array = "1 MiB" } }]
    traffic = { arrivals = "none" }
    run = { load = "none" }
"#;

/// A core of sim24 without any traffic.
pub const ONE_CORE: &str = r#"
    name = "core"
    platform = "sim24"
    placement = { policy = "ddio" }
    tenant = [{ name = "a", cores = 1, app = { kind = "xmem", array = "1 MiB" } }]
    traffic = { arrivals = "none" }
    run = { load = "none" }
"#;

/// The sentence with which a scenario is refused after `to` has replaced `from`.
pub fn refusal(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from}");
    let e = resolve(&text.replacen(from, to, 1), "dir/own.toml", &[platforms()]).err();
    let e = e.unwrap_or_else(|| panic!("{to} was taken")).to_string();
    assert!(e.starts_with("dir/own.toml: ") && e.ends_with('.') && !e.contains('\n'), "{e}");
    e
}

/// Each replacement of `from` by `to` is refused with a sentence that contains `says`.
pub fn refused(text: &str, cases: &[(&str, &str, &str)]) {
    for (from, to, says) in cases {
        let e = refusal(text, from, to);
        assert!(e.contains(says), "{e}");
    }
}

/// An L2 prefetcher of streams that no limit restricts.
pub fn l2_prefetcher() -> PrefetchSpec {
    PrefetchSpec {
        enabled: true,
        streams: 4,
        distance: 8,
        degree: 2,
        trigger: 3,
        credits: 16,
        quirks: PrefetchQuirks {
            preset: None,
            into: Default::default(),
            pattern: PrefetchPattern::Stream,
            network: false,
            waiting: 0,
            reserve: 0,
            adjacent: false,
            ownership: false,
            next_page: false,
        },
    }
}
