//! A small memory system to play with, and scenarios from text.
#![allow(dead_code)]

use hostnet::config::{resolve, Scenario};
use hostnet::core::{Cpu, Op, Retired};
use hostnet::host::{run, Outcome};
use hostnet::kernel::units::{Size, Span};
use hostnet::kernel::{Clock, Event, Events, Time};
use hostnet::memory::array::{Indexing, Replacement};
use hostnet::memory::dram::DramSpec;
use hostnet::memory::region::{AddressMap, Kind, Sharing};
use hostnet::memory::spec::{CacheSpec, CleanVictim, HierarchySpec, LlcRole, LlcSpec, ReadHit, WriteBacks};
use hostnet::memory::stats::Class;
use hostnet::memory::{self, Agent, Inbound, Memory, Outbound, Probe, Txn};
use std::path::PathBuf;

pub const MHZ_3200: u64 = 3_200_000_000;

/// Sets of the small LLC; it has four ways.
pub const LLC_SETS: u64 = 16;

/// L1 of 4 lines, L2 of 16, LLC of 64 in 4 ways; 4 + 14 + 35 cycles and 8 of crossbar each way.
pub fn small() -> HierarchySpec {
    let cache = |lines: u64, ways, latency_cycles| CacheSpec {
        size: Size(lines * 64),
        ways,
        latency_cycles,
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
            read_hit: ReadHit::Retain,
            clean_victim: CleanVictim::Allocate,
            write_buffer: 256,
            nic_credits: 0,
            write_order: Default::default(),
            writebacks: WriteBacks::AtOnce,
            write_ack: Span(0),
        },
        noc_cycles: 8,
    }
}

/// What a core's access found, and how long it took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    pub probe: Probe,
    pub took: Time,
}

/// Two cores on a memory system with a receive and a transmit region of core 0, one of application data
/// of core 0, and one that both share.
pub struct Rig {
    pub mem: Memory,
    pub cal: Events,
    pub now: Time,
    /// Answers to requests, with their times.
    pub answers: Vec<(Time, Txn)>,
    pub rx: u64,
    pub tx: u64,
    pub app: u64,
    pub shared: u64,
}

impl Rig {
    pub fn new(h: &HierarchySpec, tenant_ways: u32) -> Rig {
        let mut map = AddressMap::default();
        let mut add = |kind, sharing| {
            let r = map.add(1 << 14, kind, sharing, 0);
            map.get(r).base
        };
        let rx = add(Kind::Rx, Sharing::Core(0));
        let tx = add(Kind::Tx, Sharing::Core(0));
        let app = add(Kind::App, Sharing::Core(0));
        let shared = add(Kind::App, Sharing::Shared);
        let clock = Clock::from_hz(MHZ_3200);
        let mem = Memory::new(h, &DramSpec::default(), clock, 2, vec![tenant_ways], map);
        let mem = mem.expect("a valid memory system");
        Rig { mem, cal: Events::default(), now: Time::ns(1), answers: Vec::new(), rx, tx, app, shared }
    }

    /// Handles events until none is left.
    pub fn settle(&mut self) {
        while let Some((t, e)) = self.cal.pop() {
            self.now = t;
            match e {
                Event::Cha(id) => self.mem.on_cha(&mut self.cal, id, t),
                Event::Dram(ch) => self.mem.on_dram(&mut self.cal, ch.into(), t),
                Event::Fill(id) => {
                    let f = self.mem.answered(&mut self.cal, id, t);
                    self.answers.push((t, f));
                    if f.agent == Agent::Core && !f.transient && f.op != memory::Op::WriteBack {
                        self.mem.fill(&mut self.cal, f.who as usize, &f, f.op == memory::Op::Own, t);
                    }
                }
                _ => {}
            }
        }
    }

    /// A device's write of `lines` lines, over when it returns.
    pub fn device_writes(&mut self, agent: Agent, line: u64, lines: u16, to: Inbound) {
        let t = Txn::dma_write(agent, Class::NicRxWr, to, line, lines, 0, self.now);
        self.mem.send(&mut self.cal, self.now, t);
        self.settle();
    }

    /// A device's read of `lines` lines, over when it returns.
    pub fn device_reads(&mut self, agent: Agent, line: u64, lines: u16, from: Outbound) {
        let t = Txn::dma_read(agent, Class::NicTxRd, line, lines, 0, self.now);
        self.mem.send(&mut self.cal, self.now, Txn { from, ..t });
        self.settle();
    }

    pub fn request(&mut self, core: u32, line: u64, op: memory::Op) {
        let lat = self.mem.lat;
        let t = Txn::new(op, line, core, self.now);
        self.mem.send(&mut self.cal, self.now + lat.l1 + lat.l2 + lat.noc, t);
    }

    pub fn access(&mut self, core: u32, line: u64, write: bool) -> Seen {
        let start = self.now;
        let probe = self.mem.probe(&mut self.cal, core as usize, line, write, start);
        if probe == Probe::Miss {
            self.request(core, line, if write { memory::Op::Own } else { memory::Op::Read });
        }
        // Whatever DRAM has to do with victims must not count.
        let mut took = Time::ZERO;
        while let Some((t, e)) = self.cal.pop() {
            self.now = t;
            match e {
                Event::Fill(id) => {
                    took = t - start;
                    let f = self.mem.answered(&mut self.cal, id, t);
                    if !f.transient {
                        self.mem.fill(&mut self.cal, f.who as usize, &f, write, t);
                    }
                }
                Event::Cha(id) => self.mem.on_cha(&mut self.cal, id, t),
                Event::Dram(ch) => self.mem.on_dram(&mut self.cal, ch.into(), t),
                _ => {}
            }
        }
        Seen { probe, took }
    }
    pub fn read(&mut self, line: u64) -> Seen {
        self.access(0, line, false)
    }
    pub fn write(&mut self, line: u64) -> Seen {
        self.access(0, line, true)
    }
    pub fn dram_transfers(&self) -> u64 {
        self.mem.stats.dram.iter().sum()
    }
}

/// Runs `ops` from `now` on; returns when the last one dispatched, when everything was over, and what
/// retired when.
pub fn execute(
    cpu: &mut Cpu,
    mem: &mut Memory,
    cal: &mut Events,
    ops: &[Op],
    now: Time,
) -> (Time, Time, Vec<(Time, Retired)>) {
    cpu.program.ops.clear();
    cpu.program.ops.extend_from_slice(ops);
    let mut end = cpu.start(mem, cal, now);
    let mut last = end.unwrap_or(now);
    let mut retired = Vec::new();
    while let Some((t, e)) = cal.pop() {
        last = last.max(t);
        match e {
            Event::Cha(id) => mem.on_cha(cal, id, t),
            Event::Dram(ch) => mem.on_dram(cal, ch.into(), t),
            Event::Fill(id) => {
                let f = mem.answered(cal, id, t);
                let e = cpu.on_fill(mem, cal, f, t);
                end = end.or(e);
            }
            Event::Retire(_) => {
                while let Some(r) = cpu.retired(cal, t) {
                    retired.push((t, r));
                }
            }
            _ => {}
        }
    }
    (end.expect("the program ends"), last, retired)
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

/// A metric that must be there.
pub fn get(o: &Outcome, metric: &str) -> f64 {
    o.values.get(metric).unwrap_or_else(|| panic!("{metric} is null"))
}

pub fn close(measured: f64, expected: f64, tolerance: f64) -> bool {
    (measured - expected).abs() <= tolerance * expected.abs()
}
