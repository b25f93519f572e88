//! Tests of coherence where requests of several agents for one line cross: every interleaving on a small machine,
//! compared with a reference.
//!
//! The reference is sequential memory. A read returns a version that was the newest at some time while the read was in
//! flight. At any time, no copy that a core could read is older than the newest version, at most one core has written
//! the line, and DRAM has the content of lines that no cache has to write back (`Memory::coherent`).

use crate::common::{small, two_nodes, Rig};
use hostnet::core;
use hostnet::kernel::{CoreId, LineAddr, Post, RandomStream, ThreadId, Time};
use hostnet::machine::{Event, MachineSignal};
use hostnet::memory::dram::DramSpec;
use hostnet::memory::nodes::{NodesQuirks, NodesSpec};
use hostnet::memory::shadow::{CopyPlace, Shadow};
use hostnet::memory::spec::{HierarchySpec, LlcRole, ModifiedRead, ReadHit};
use hostnet::memory::stats::AccessClass;
use hostnet::memory::{self, Agent, Inbound, Probe, Sender, Txn, TxnOp};
use std::collections::HashSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Act {
    Read,
    Write,
    Stream,
    DeviceRead,
    DeviceWrite,
    DeviceWriteToDram,
    Sweep,
    Flush,
    Clean,
}
use Act::*;

const BY_CORES: [Act; 3] = [Read, Write, Stream];
const BY_OTHERS: [Act; 8] = [Read, Write, DeviceRead, DeviceWrite, DeviceWriteToDram, Sweep, Flush, Clean];

/// Cores 0 and 1, and a device, on one line.
struct World {
    rig: Rig,
    line: LineAddr,
    /// The newest versions of the line, each with the time since which it has been the newest.
    history: Vec<(Time, u64)>,
    /// Arrivals at the home agent and answers, as they came: (agent, is an answer).
    order: Vec<(Sender, bool)>,
}

impl World {
    fn new(h: &HierarchySpec) -> World {
        World::of(Rig::new(h, 0b1111))
    }

    /// Core 0 belongs to one node and core 1 to the other node, whose memory holds the line if it is `far`.
    fn of_two_nodes(far: bool, protocol: NodesQuirks) -> World {
        let nodes = NodesSpec { quirks: protocol, ..two_nodes() };
        let mut w = World::of(Rig::with_nodes(&small(), 0b1111, &DramSpec::default(), &nodes, vec![0, 1]));
        w.line = if far { w.rig.far } else { w.rig.shared };
        w
    }

    fn of(mut rig: Rig) -> World {
        rig.m.mem.shadow = Some(Box::new(Shadow::default()));
        let line = rig.shared;
        World { rig, line, history: Vec::new(), order: Vec::new() }
    }

    /// Lets an agent act: `agent` 0 and 1 are cores, 2 is a device behind the IIO.
    fn act(&mut self, agent: u32, what: Act, at: Time) {
        let (line, lat) = (self.line, self.rig.m.mem.lat);
        let (out, core) = (lat.l1 + lat.l2 + lat.noc, CoreId(agent as u16));
        let (mem, cal) = (&mut self.rig.m.mem, &mut self.rig.m.cal);
        let io = |to| Txn::dma_write(Sender::Io, AccessClass::IoWr, to, line, 1, at);
        match what {
            Read | Write => {
                // Caches answer immediately, so only a core that looks the line up now may use the answer.
                if mem.probe(cal, core, line, what == Write, at) == Probe::Miss {
                    let op = if what == Write { TxnOp::Own } else { TxnOp::Read };
                    mem.send(cal, at + out, Txn::new(op, line, core, at));
                }
            }
            Stream => mem.send(cal, at + out, Txn::new(TxnOp::Stream, line, core, at)),
            DeviceRead => mem.send(cal, at + out, Txn::dma_read(Sender::Io, AccessClass::IoRd, line, 1, at)),
            DeviceWrite => mem.send(cal, at + out, io(Inbound::Llc { ways: 0b11 })),
            DeviceWriteToDram => mem.send(cal, at + out, io(Inbound::Dram)),
            Sweep | Flush | Clean => {
                let op = match what {
                    Sweep => hostnet::memory::Sweep::Sweep,
                    Flush => hostnet::memory::Sweep::Flush,
                    _ => hostnet::memory::Sweep::WriteBack,
                };
                cal.post(at + out, memory::MemoryEvent::sweep(line, 1, op));
            }
        }
    }

    /// Runs until no request is in flight; each action in `due` begins at its time.
    fn run(&mut self, due: &[(Time, u32, Act)]) -> Result<(), String> {
        let mut due = due.to_vec();
        due.sort_by_key(|d| d.0);
        let mut due = std::collections::VecDeque::from(due);
        for d in &due {
            self.rig.m.cal.post(d.0, core::CoreEvent::Free(ThreadId(0))); // time to act
        }
        self.history = vec![(Time::ZERO, self.rig.m.mem.version(self.line))];
        while let Some(e) = self.rig.m.pop() {
            let now = self.rig.m.now;
            while due.front().is_some_and(|d| d.0 <= now) {
                let (at, agent, what) = due.pop_front().expect("one is due");
                self.act(agent, what, at);
            }
            if let Event::Cha(id) = e {
                self.order.push((self.rig.m.mem.request(id).sender, false));
            }
            let signal = self.rig.m.handle(e);
            let (mem, cal) = (&mut self.rig.m.mem, &mut self.rig.m.cal);
            if let Some(MachineSignal::Answer(id)) = signal {
                let t = mem.answered(cal, id, now);
                self.order.push((t.sender, true));
                if t.agent() == Agent::Core && matches!(t.op, TxnOp::Read | TxnOp::Own) {
                    let seen = mem.shadow.as_ref().expect("set").at(self.line, CopyPlace::ToCore(t.core()));
                    let from = self.history.iter().rposition(|h| h.0 <= t.issued).unwrap_or(0);
                    if !self.history[from..].iter().any(|h| h.1 == seen) {
                        return Err(format!("core {} read version {seen} of {:?}", t.core(), self.history));
                    }
                    if !t.transient {
                        mem.fill(cal, t.core(), &t, t.op == TxnOp::Own, now);
                    }
                }
            }
            let newest = mem.version(self.line);
            if self.history.last().is_some_and(|h| h.1 != newest) {
                self.history.push((now, newest));
            }
            mem.coherent(self.line)?;
        }
        self.rig.m.mem.check()
    }

    /// Puts the line into a state that earlier accesses could have left.
    fn begin(&mut self, state: u32) {
        self.line += 1;
        let start = self.rig.m.now + Time::us(1);
        let past: &[Act] = match state {
            0 => &[],
            1 => &[Write],
            2 => &[Read],
            _ => &[DeviceWrite],
        };
        for (i, what) in past.iter().enumerate() {
            self.run(&[(start + Time::us(i as u64), if *what == DeviceWrite { 2 } else { 1 }, *what)]).unwrap();
        }
        self.order.clear();
    }
}

fn hierarchies() -> [HierarchySpec; 4] {
    let (mut migrate, mut inclusive) = (small(), small());
    migrate.llc.quirks.read_hit = ReadHit::Migrate;
    let mut take = migrate.clone();
    take.llc.quirks.modified_read = ModifiedRead::Take;
    inclusive.llc.role = LlcRole::Inclusive;
    [small(), migrate, take, inclusive]
}

/// Offsets in steps of 2 ns, which is less than the time between any two milestones of a request.
fn offsets() -> impl Iterator<Item = Time> {
    (0..45).map(|i| Time::ns(2 * i))
}

#[test]
fn whatever_crosses_a_core_s_access_leaves_a_coherent_line() {
    for h in hierarchies() {
        let mut w = World::new(&h);
        for (state, a, b) in (0..4).flat_map(|s| BY_CORES.map(|a| BY_OTHERS.map(|b| (s, a, b)))).flatten() {
            let other = if matches!(b, Read | Write | Sweep | Flush | Clean) { 1 } else { 2 };
            let mut orders = HashSet::new();
            for off in offsets() {
                for first in [true, false] {
                    w.begin(state);
                    let start = w.rig.m.now + Time::us(1);
                    let (ta, tb) = if first { (start, start + off) } else { (start + off, start) };
                    w.run(&[(ta, 0, a), (tb, other, b)]).unwrap_or_else(|e| {
                        panic!("{:?}: {a:?} and {b:?} {off} apart from state {state}: {e}", h.llc.quirks.read_hit)
                    });
                    orders.insert(w.order.clone());
                }
            }
            let both_travel = state == 0 && a != Stream && !matches!(b, Sweep | Flush | Clean);
            // The actions occur one after the other in either order, and crossing; a write that finds room is answered
            // on arrival.
            assert!(!both_travel || orders.len() >= 3, "{a:?} and {b:?} met in {} ways only", orders.len());
        }
    }
}

fn protocols() -> [NodesQuirks; 3] {
    let p = |migratory, speculative| NodesQuirks { migratory, speculative, ..Default::default() };
    [p(true, true), p(false, true), p(true, false)]
}

/// A request of either node, with its messages between the nodes, takes up to about 200 ns. Steps of 6 ns are shorter
/// than the time between most milestones, and between all milestones of the protocol.
#[test]
fn whatever_crosses_an_access_of_the_other_node_leaves_a_coherent_line() {
    for (far, protocol) in [false, true].into_iter().flat_map(|f| protocols().map(|p| (f, p))) {
        let mut w = World::of_two_nodes(far, protocol);
        let others = [Read, Write, Stream, Sweep, Flush, Clean];
        for (state, a, b) in (0..3).flat_map(|s| BY_CORES.map(|a| others.map(|b| (s, a, b)))).flatten() {
            let mut orders = HashSet::new();
            for off in (0..40).map(|i| Time::ns(6 * i)) {
                for first in [true, false] {
                    w.begin(state);
                    let start = w.rig.m.now + Time::us(1);
                    let (ta, tb) = if first { (start, start + off) } else { (start + off, start) };
                    w.run(&[(ta, 0, a), (tb, 1, b)]).unwrap_or_else(|e| {
                        panic!("far {far}, {protocol:?}: {a:?} and {b:?} {off} apart from state {state}: {e}")
                    });
                    orders.insert(w.order.clone());
                }
            }
            let both_travel = state == 0 && !matches!(b, Sweep | Flush | Clean);
            assert!(!both_travel || orders.len() >= 3, "{a:?} and {b:?} met in {} ways only", orders.len());
        }
    }
}

/// Two cores of each node access lines at random; the sets of these lines conflict, so that lines are also evicted.
#[test]
fn requests_of_both_nodes_lose_and_double_no_dirty_line() {
    for (seed, protocol) in protocols().into_iter().enumerate() {
        let nodes = NodesSpec { quirks: protocol, ..two_nodes() };
        let rig = Rig::with_nodes(&small(), 0b1111, &DramSpec::default(), &nodes, vec![0, 0, 1, 1]);
        let mut w = World::of(rig);
        let mut dice = RandomStream::new(seed as u64, "nodes", 0);
        for i in 0..3000 {
            let base = if dice.below(2) == 0 { w.rig.shared } else { w.rig.far };
            w.line = base + dice.below(40) * 16;
            let start = w.rig.m.now + Time::ns(100);
            let due: Vec<_> = (0..4u32)
                .map(|core| {
                    let acts = [Read, Write, Read, Write, Read, Write, Stream, Flush, Clean, Sweep];
                    (start + Time::ns(dice.below(200)), core, acts[dice.below(10) as usize])
                })
                .collect();
            w.run(&due).unwrap_or_else(|e| panic!("seed {seed}, step {i}, {due:?}: {e}"));
        }
        assert_eq!(w.rig.m.mem.in_flight(), 0);
    }
}

#[test]
fn two_cores_and_a_device_that_cross_leave_a_coherent_line() {
    for h in hierarchies() {
        let mut w = World::new(&h);
        for (x, y, d) in [
            (Write, Write, DeviceWrite),
            (Write, Read, DeviceWrite),
            (Write, Write, DeviceRead),
            (Read, Write, DeviceWriteToDram),
            (Read, Read, DeviceWrite),
            (Stream, Write, DeviceWrite),
        ] {
            for state in 0..4 {
                for (i, j) in offsets().step_by(2).flat_map(|i| offsets().step_by(2).map(move |j| (i, j))) {
                    w.begin(state);
                    let start = w.rig.m.now + Time::us(1);
                    w.run(&[(start, 0, x), (start + i, 1, y), (start + j, 2, d)])
                        .unwrap_or_else(|e| panic!("{x:?}, {y:?} after {i}, {d:?} after {j} from state {state}: {e}"));
                }
            }
        }
    }
}

/// Two of three cores wait while the third core has the line in flight, and a device writes the line in the meantime.
/// The core that comes first may take the line, and the other core must get the line from the first one.
#[test]
fn three_cores_and_a_device_that_cross_leave_a_coherent_line() {
    for h in hierarchies() {
        let rig = Rig::with_nodes(&h, 0b1111, &DramSpec::default(), &NodesSpec::default(), vec![0; 3]);
        let mut w = World::of(rig);
        let steps = || offsets().step_by(3);
        for (x, y, z) in [(Write, Read, Read), (Write, Read, Write), (Read, Read, Read), (Read, Write, Read)] {
            let mut crossings: Vec<_> = steps().flat_map(|i| steps().map(move |j| (i, j))).collect();
            crossings.sort();
            for ((i, j), k) in crossings.into_iter().flat_map(|ij| steps().map(move |k| (ij, k))) {
                w.begin(0);
                let start = w.rig.m.now + Time::us(1);
                let due = [(start, 0, x), (start + i, 1, y), (start + j, 2, z), (start + k, 3, DeviceWrite)];
                w.run(&due).unwrap_or_else(|e| {
                    let hit = h.llc.quirks.read_hit;
                    panic!("{hit:?}: {x:?}, {y:?} after {i}, {z:?} after {j}, a device's write after {k}: {e}")
                });
            }
        }
    }
}

#[test]
fn many_requests_of_random_agents_lose_and_double_no_dirty_line() {
    for seed in 0..8 {
        for h in hierarchies() {
            let mut w = World::new(&h);
            let mut dice = RandomStream::new(seed, "agents", 0);
            let acts = [Read, Write, Stream, DeviceRead, DeviceWrite, DeviceWriteToDram, Sweep, Flush, Clean];
            for _ in 0..400 {
                w.begin(dice.below(4) as u32);
                let start = w.rig.m.now + Time::us(1);
                let mut busy = [false; 2];
                let due: Vec<_> = (0..6)
                    .filter_map(|_| {
                        let what = acts[dice.below(9) as usize];
                        let agent = if matches!(what, DeviceRead | DeviceWrite | DeviceWriteToDram) {
                            2
                        } else {
                            dice.below(2) as u32
                        };
                        // A core has at most one access to a line in flight.
                        let free = agent == 2 || !std::mem::replace(&mut busy[agent as usize], true);
                        free.then(|| (start + Time::ns(dice.below(90)), agent, what))
                    })
                    .collect();
                w.run(&due).unwrap_or_else(|e| panic!("seed {seed}, {due:?}: {e}"));
            }
        }
    }
}

/// The sets of the small caches conflict, so that some lines are evicted while others arrive.
#[test]
fn evictions_beside_crossing_requests_keep_the_books() {
    let mut w = World::new(&small());
    let mut dice = RandomStream::new(9, "evictions", 0);
    let base = w.rig.shared;
    for i in 0..4000u64 {
        w.line = base + dice.below(40) * 16;
        let start = w.rig.m.now + Time::ns(100);
        let second = [Write, Read, DeviceWrite, DeviceRead][dice.below(4) as usize];
        let agent = if matches!(second, DeviceWrite | DeviceRead) { 2 } else { 1 };
        let first = [Read, Write][dice.below(2) as usize];
        let apart = Time::ns(dice.below(60));
        w.run(&[(start, 0, first), (start + apart, agent, second)]).unwrap_or_else(|e| panic!("step {i}: {e}"));
    }
    assert_eq!(w.rig.m.mem.in_flight(), 0);
}

#[test]
fn of_two_stores_that_cross_one_waits_and_takes_the_line_from_the_other() {
    let mut w = World::new(&small());
    w.begin(0);
    let start = w.rig.m.now + Time::us(1);
    let before = w.rig.m.mem.version(w.line);
    w.run(&[(start, 0, Write), (start + Time::ns(1), 1, Write)]).unwrap();
    assert_eq!(w.rig.m.mem.version(w.line), before + 2, "both have stored");
    assert_eq!(w.rig.m.mem.copies(w.line).0, 2, "the second has the line, in both of its caches");
    let answers: Vec<Sender> = w.order.iter().filter(|o| o.1).map(|o| o.0).collect();
    assert_eq!(answers, [0, 1].map(|c| Sender::Core { core: CoreId(c), thread: ThreadId(c) }));
    // Fetched once: the second got it from the first.
    assert_eq!(w.rig.m.mem.stats.of(AccessClass::CpuOtherRd), 1);
}

#[test]
fn a_fill_that_a_device_s_write_has_overtaken_is_used_once_and_not_kept() {
    let mut w = World::new(&small());
    let line = w.rig.rx;
    w.line = line;
    let start = w.rig.m.now + Time::us(1);
    // The read is on its way back from DRAM when the device writes.
    w.run(&[(start, 0, Read), (start + Time::ns(20), 2, DeviceWrite)]).unwrap();
    assert_eq!(w.rig.m.mem.copies(line), (1, 1), "the LLC alone has the line");
    let now = w.rig.m.now + Time::us(1);
    assert_eq!(w.rig.m.mem.probe(&mut w.rig.m.cal, CoreId(0), line, false, now), Probe::Miss);
}

#[test]
fn a_device_s_read_finds_a_dirty_line_in_a_private_cache() {
    for agent in [Agent::Nic, Agent::Io] {
        let mut r = Rig::new(&small(), 0b1111);
        let line = r.tx;
        r.write(line);
        let before = r.dram_transfers();
        r.device_reads(agent, line, 1, Default::default());
        assert_eq!(r.dram_transfers(), before, "{agent:?} went to DRAM, which has old data");
        assert_eq!(r.m.mem.copies(line).0, 2, "nothing moves");
        r.m.mem.check().unwrap();
    }
}

#[test]
fn a_sweep_reaches_a_fill_that_is_under_way() {
    let mut w = World::new(&small());
    w.begin(3);
    let start = w.rig.m.now + Time::us(1);
    w.run(&[(start, 0, Write), (start + Time::ns(8), 1, Act::Sweep)]).unwrap();
    let swept = w.rig.m.mem.stats.ledger.swept;
    assert!(swept >= 1, "the device's line was dirty and is dropped");
}
