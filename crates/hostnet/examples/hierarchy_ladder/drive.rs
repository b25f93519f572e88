//! One elastic traffic generator in front of three cache levels and DRAM, driven as gem5's `TrafficGen` drives them.

use hostnet::kernel::units::{Freq, Size, Span};
use hostnet::kernel::{Clock, CoreId, LineAddr, RandomStream, TenantId, Time};
use hostnet::machine::{Event, Machine, MachineSignal};
use hostnet::memory::array::{Indexing, Replacement};
use hostnet::memory::dram::DramSpec;
use hostnet::memory::region::{AddressMap, RegionKind, Sharing};
use hostnet::memory::spec::{CacheSpec, CleanVictim, HierarchySpec, LlcQuirks, LlcRole, LlcSpec, ReadHit, WriteBacks};
use hostnet::memory::stats::AccessClass;
use hostnet::memory::{Memory, Probe, Txn, TxnOp, LINE};

/// The timer of the next access; the other timers are those of the slots.
const STIMULUS: u32 = u32::MAX;

#[path = "../dram_ladder/replay.rs"]
#[allow(dead_code, reason = "each program that shares this file uses a part of it")]
pub mod replay;

/// A row of `validation/hierarchy/gem5_hierarchy.csv`.
#[derive(Clone, Debug)]
pub struct Row {
    pub caches: bool,
    pub random: bool,
    pub channels: u32,
    pub span_lines: u64,
    /// Largest number of outstanding L1 misses; the levels below allow more.
    pub mshrs: usize,
    pub read_percent: u32,
    pub period_ps: u64,
    pub requests: u64,
    pub expected: Figures,
}

/// Results of a row: the reference's or a run's.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    pub gbps: f64,
    pub latency_ns: f64,
    pub dram_read_gbps: f64,
    pub dram_write_gbps: f64,
    /// Hits and misses: of reads and writes at the L1, of reads at the L2, and of reads at the L3.
    pub levels: [(u64, u64); 3],
}

/// All rows of the reference file.
pub fn rows() -> Vec<Row> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../validation/hierarchy/gem5_hierarchy.csv");
    let text = std::fs::read_to_string(path).expect("validation/hierarchy/gem5_hierarchy.csv");
    text.lines().skip(1).map(row).collect()
}

fn row(l: &str) -> Row {
    // The only quoted field of a row is that of the MSHRs.
    let (mshrs, plain) = match l.split('"').collect::<Vec<_>>()[..] {
        [head, quoted, tail] => {
            let first = quoted.split(',').next().expect("a number");
            (first.parse().expect("MSHRs"), format!("{head}{tail}"))
        }
        _ => (0, l.to_string()),
    };
    let f: Vec<&str> = plain.split(',').collect();
    let num = |i: usize| f[i].parse::<f64>().expect("a number");
    let pair = |i: usize| {
        let (hit, miss) = f[i].split_once('/').unwrap_or(("0", "0"));
        (hit.parse().expect("hits"), miss.parse().expect("misses"))
    };
    let period_ps = num(6) as u64;
    Row {
        caches: f[0] == "1",
        random: f[1] == "random",
        channels: num(2) as u32,
        span_lines: Size::parse(f[3]).expect("a size").0 / LINE,
        mshrs,
        read_percent: num(5) as u32,
        period_ps,
        requests: if period_ps == 200_000 { 20_000 } else { 1 << 20 },
        expected: Figures {
            gbps: num(8),
            latency_ns: num(9),
            dram_read_gbps: num(10),
            dram_write_gbps: num(11),
            levels: [pair(12), pair(13), pair(14)],
        },
    }
}

impl Row {
    pub fn name(&self) -> String {
        format!(
            "{} {} ch{} {}KiB mshr{} r{} p{}",
            if self.caches { "caches" } else { "dram" },
            if self.random { "random" } else { "linear" },
            self.channels,
            self.span_lines * LINE / 1024,
            self.mshrs,
            self.read_percent,
            self.period_ps
        )
    }
}

/// Caches of the gem5 reference: fills go to every level, and clean victims are dropped.
fn hierarchy() -> HierarchySpec {
    let cache = |kib: u64, ways, latency_cycles| CacheSpec {
        size: Size(kib << 10),
        ways,
        latency_cycles,
        response_cycles: 0,
        replacement: Replacement::Lru,
    };
    HierarchySpec {
        l1d: cache(32, 8, 4),
        l2: cache(1024, 16, 10),
        l2_inclusive: false,
        llc: LlcSpec {
            size: Size(36 << 20),
            ways: 18,
            latency_cycles: 30,
            slices: 1,
            indexing: Indexing::Modulo,
            replacement: Replacement::Lru,
            role: LlcRole::Inclusive,
            write_buffer: 512,
            write_order: Default::default(),
            write_ack: Span(0),
            quirks: LlcQuirks {
                preset: None,
                mshrs: 0,
                clean_victim_cleans: false,
                response_cycles: 0,
                read_hit: ReadHit::Retain,
                store_hit: Default::default(),
                upgrade_miss: Default::default(),
                modified_read: Default::default(),
                clean_victim: CleanVictim::Drop,
                write_back_uses: true,
                device_read: Default::default(),
                device_read_ages: false,
                device_ways: Default::default(),
                inclusive_ways: 0,
                nic_credits: 0,
                writebacks: WriteBacks::Immediate,
                memory_link: None,
            },
        },
        // The reference's unloaded latencies with and without caches, 69.2 ns and 51.3 ns, differ by the time of its
        // crossbars and cache responses, both ways, and 44 cycles of look-ups.
        uncore_clock: Freq(3_000_000_000),
        noc_cycles: 5,
    }
}

fn dram(channels: u32) -> DramSpec {
    let spec = replay::profile(&replay::Reference {
        simulator: "gem5".into(),
        mapping: String::new(),
        standard: "DDR4-2400".into(),
        channels,
        trace: String::new(),
        gbps: 0.0,
        latency_ns: 0.0,
        row_hits: 0.0,
    })
    .0;
    // 10 + 10 ns in the controller; `noc_cycles` stands for the crossbars.
    DramSpec { static_latency_ns: 20.0, ..spec }
}

/// Request stream of the generator.
struct Stimulus {
    row: Row,
    lines: RandomStream,
    kinds: RandomStream,
    made: u64,
}

impl Stimulus {
    fn new(row: &Row) -> Stimulus {
        Stimulus {
            row: row.clone(),
            lines: RandomStream::new(1, "lines", 0),
            kinds: RandomStream::new(1, "kinds", 0),
            made: 0,
        }
    }
    fn next(&mut self) -> (u64, bool) {
        let line =
            if self.row.random { self.lines.below(self.row.span_lines) } else { self.made % self.row.span_lines };
        self.made += 1;
        let write = self.row.read_percent < 100 && self.kinds.below(100) >= self.row.read_percent.into();
        (line, write)
    }
}

/// Simulates a row.
///
/// # Errors
/// Fails with one clause when the memory system cannot be built.
pub fn run(row: &Row) -> Result<Figures, String> {
    if row.caches {
        let mut g = Generator::new(row)?;
        g.go();
        return Ok(g.figures());
    }
    let mut s = Stimulus::new(row);
    let requests: Vec<_> = (0..row.requests).map(|_| s.next()).collect();
    let m = replay::replay(&dram(row.channels), &requests, replay::Offer::Every(row.period_ps))?;
    Ok(Figures { gbps: m.gbps, latency_ns: m.latency_ns, dram_read_gbps: m.gbps, ..Figures::default() })
}

/// An outstanding L1 miss, with the requests that wait for it.
#[derive(Clone, Copy, Default)]
struct Mshr {
    line: u64,
    write: bool,
    reads: u64,
    /// Sum of the times at which the reads were made, in picoseconds.
    made_ps: u64,
}

pub struct Generator {
    stimulus: Stimulus,
    m: Machine,
    mshrs: Vec<Mshr>,
    free: Vec<u8>,
    /// Number of outstanding misses by the low bits of their lines, so that most look-ups need no search.
    filter: Vec<u16>,
    head: Option<(u64, bool, Time)>,
    /// Time at which the L1's response port becomes free; gem5's `L2XBar` moves 32 B in a cycle.
    port_free: Time,
    per_line: Time,
    left: u64,
    reads: u64,
    latency_ps: u64,
    levels: [(u64, u64); 2],
    end: Time,
}

impl Generator {
    pub fn new(row: &Row) -> Result<Generator, String> {
        let mut map = AddressMap::default();
        map.add(row.span_lines, RegionKind::App, Sharing::Core(CoreId(0)), TenantId(0));
        let clock = Clock::from_hz(3_000_000_000);
        let ways = vec![(1 << 18) - 1];
        let mem = Memory::new(&hierarchy(), &dram(row.channels), clock, 1, ways, map)?;
        Ok(Generator {
            stimulus: Stimulus::new(row),
            m: Machine::without_devices(mem, Vec::new()),
            mshrs: vec![Mshr::default(); row.mshrs],
            free: (0..row.mshrs).map(|i| i as u8).collect(),
            filter: vec![0; 4096],
            head: None,
            port_free: Time::ZERO,
            per_line: clock.span(LINE / 32),
            left: row.requests,
            reads: 0,
            latency_ps: 0,
            levels: [(0, 0); 2],
            end: Time::ZERO,
        })
    }

    /// Runs until the last response.
    pub fn go(&mut self) {
        self.m.cal.push(Time::ZERO, Event::Timer(STIMULUS));
        // The loop does not wait for an empty calendar, because writes may stay in the controller's queue indefinitely.
        while self.left > 0 || self.free.len() < self.mshrs.len() {
            let Some(s) = self.m.next_signal() else { return };
            let now = self.m.now;
            match s {
                MachineSignal::Timer(STIMULUS) => {
                    let (line, write) = self.stimulus.next();
                    self.head = Some((line, write, now));
                    self.offer(now);
                }
                MachineSignal::Timer(slot) => self.respond_now(slot as u8, now),
                MachineSignal::Answer(id) => {
                    let t = self.m.mem.answered(&mut self.m.cal, id, now);
                    let write = self.mshrs[t.record as usize].write;
                    self.m.mem.fill(&mut self.m.cal, CoreId(0), &t, write, now);
                    self.respond(t.record, now);
                }
                s => unreachable!("nobody causes {s:?}"),
            }
        }
    }

    /// Issues the oldest request, unless the L1 is blocked because all MSHRs are in use.
    fn offer(&mut self, now: Time) {
        let Some((line, write, made)) = self.head else { return };
        if self.free.is_empty() {
            return;
        }
        self.head = None;
        self.left -= 1;
        self.access(line, write, made, now);
        if self.left > 0 {
            let period = Time(self.stimulus.row.period_ps);
            self.m.cal.push((made + period).max(now), Event::Timer(STIMULUS));
        }
    }

    fn access(&mut self, line: u64, write: bool, made: Time, now: Time) {
        let lat = self.m.mem.lat;
        let bucket = line as usize & 4095;
        if self.filter[bucket] > 0 {
            let same = |m: &&mut Mshr| m.line == line && m.reads + u64::from(m.write) > 0;
            if let Some(m) = self.mshrs.iter_mut().find(same) {
                self.levels[0].1 += 1;
                m.write |= write;
                m.reads += u64::from(!write);
                m.made_ps += if write { 0 } else { made.0 };
                return;
            }
        }
        let probe = self.m.mem.probe(&mut self.m.cal, CoreId(0), LineAddr(line), write, now);
        if probe == Probe::L1 {
            self.levels[0].0 += 1;
            self.reads += u64::from(!write);
            self.latency_ps += if write { 0 } else { (now + lat.l1 - made).0 };
            self.end = self.end.max(now + lat.l1);
            return;
        }
        self.levels[0].1 += 1;
        let slot = self.free.pop().expect("looked at before");
        self.filter[bucket] += 1;
        self.mshrs[slot as usize] =
            Mshr { line, write, reads: u64::from(!write), made_ps: if write { 0 } else { made.0 } };
        let crossing = lat.noc + lat.noc;
        let t = Txn {
            record: slot,
            ..Txn::new(if write { TxnOp::Own } else { TxnOp::Read }, LineAddr(line), CoreId(0), now)
        };
        match probe {
            Probe::L2 => {
                self.levels[1].0 += u64::from(!write);
                let at = now + lat.l1 + lat.l2;
                let at = self.port(at);
                self.m.cal.push(at, Event::Timer(slot.into()));
            }
            _ if write => {
                // A write obtains ownership without data, up and down the hierarchy; then the line is complete.
                self.m.mem.fill(&mut self.m.cal, CoreId(0), &t, true, now);
                let at = now + lat.l1 + lat.l2 + lat.llc + crossing;
                self.m.cal.push(at, Event::Timer(slot.into()));
            }
            _ => {
                self.levels[1].1 += 1;
                self.m.mem.send(&mut self.m.cal, now + lat.l1 + lat.l2 + lat.noc, t);
            }
        }
    }

    /// Reserves the response port for a line that is ready at `at`; returns when the transfer starts.
    fn port(&mut self, at: Time) -> Time {
        let start = at.max(self.port_free);
        self.port_free = start + self.per_line;
        start
    }

    fn respond(&mut self, slot: u8, now: Time) {
        let at = self.port(now);
        if at > now {
            self.m.cal.push(at, Event::Timer(slot.into()));
        } else {
            self.respond_now(slot, now);
        }
    }

    fn respond_now(&mut self, slot: u8, now: Time) {
        let m = std::mem::take(&mut self.mshrs[slot as usize]);
        self.filter[m.line as usize & 4095] -= 1;
        self.free.push(slot);
        self.reads += m.reads;
        self.latency_ps += m.reads * now.0 - m.made_ps;
        self.end = self.end.max(now);
        self.offer(now);
    }

    /// Number of events that the run took.
    pub fn events(&self) -> u64 {
        self.m.cal.popped()
    }

    pub fn figures(&self) -> Figures {
        let ns = self.end.as_ns();
        let gbps = |lines: u64| (lines * LINE) as f64 / ns;
        let l3 = &self.m.mem.stats.tenants[TenantId(0)];
        Figures {
            gbps: gbps(self.stimulus.made),
            latency_ns: self.latency_ps as f64 / self.reads as f64 / 1e3,
            dram_read_gbps: gbps(self.m.mem.stats.of(AccessClass::CpuOtherRd)),
            dram_write_gbps: gbps(self.m.mem.stats.of(AccessClass::OtherEvct)),
            levels: [self.levels[0], self.levels[1], (l3.llc_hits, l3.llc_misses)],
        }
    }
}
