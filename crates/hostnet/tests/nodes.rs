//! Tests of two nodes: the latency of each access, the effect of each row of the protocol, and the traffic of the
//! links.

use crate::common::{close, get, platforms, simulate, small, two_nodes, Rig, MHZ_3200};
use hostnet::kernel::units::{Freq, Span};
use hostnet::kernel::{Clock, CoreId, LineAddr, NodeId, Time};
use hostnet::machine::MachineSignal;
use hostnet::memory::dram::{DramQuirks, DramSpec};
use hostnet::memory::nodes::{NodesQuirks, NodesSpec};
use hostnet::memory::paths::Path;
use hostnet::memory::protocol::{CopyState, PrivateAction, HELD};
use hostnet::memory::protocol_nodes::{crossing, Copies, CoreRequest, NodeDataSource, NodeSide, NodeTransition, WANTS};
use hostnet::memory::shadow::Shadow;
use hostnet::memory::spec::{HierarchySpec, ReadHit};
use hostnet::memory::stats::AccessClass;
use hostnet::memory::{Agent, Inbound, Sweep, Txn, TxnOp};

/// A rig whose cores 0 and 1 belong to node 0, and cores 2 and 3 to node 1.
fn rig(h: &HierarchySpec, nodes: &NodesSpec) -> Rig {
    let d = DramSpec {
        static_latency_ns: 20.0,
        quirks: DramQuirks { refresh: false, ..DramSpec::default().quirks },
        ..DramSpec::default()
    };
    let mut r = Rig::with_nodes(h, 0b1111, &d, nodes, vec![0, 0, 1, 1]);
    r.m.mem.shadow = Some(Box::new(Shadow::default()));
    r
}

fn later(r: &mut Rig) {
    r.m.now += Time::us(1);
    r.m.mem.restart_meters(r.m.now);
}

/// The hops of `small()` and `two_nodes()`, computed only from their numbers.
struct Hops {
    l1: Time,
    l2: Time,
    noc: Time,
    llc: Time,
    link: Time,
    message: Time,
    data: Time,
    /// Time of a read from an open row; `activate` is the additional time to open a row.
    hit: Time,
    activate: Time,
}

/// Time from `t` to the next edge of DDR4-3200's clock, on which commands leave.
fn edge(t: Time) -> Time {
    Time(t.0.next_multiple_of(625)) - t
}

fn hops(r: &Rig) -> Hops {
    let c = Clock::from_hz(MHZ_3200);
    let t = r.m.mem.dram.timing();
    let hit = Time(t.cl + t.burst) + Time::ns(20);
    let ps = |n| Time(n);
    Hops {
        l1: c.span(4),
        l2: c.span(14),
        noc: c.span(8),
        llc: c.span(35),
        link: ps(50_000),
        message: ps(800),
        data: ps(4_000),
        hit,
        activate: Time(t.rcd),
    }
}

impl Hops {
    fn out(&self) -> Time {
        self.l1 + self.l2 + self.noc
    }
    fn ask(&self) -> Time {
        self.noc + self.l2 + self.noc
    }
    /// A message travels out, and data travels back.
    fn round(&self) -> Time {
        self.message + self.link + self.data + self.link
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum From {
    Dram,
    /// A core has written the line, which is in its L2.
    L2,
    /// A core has written the line, and its L2 has evicted it.
    Llc,
}

/// Time at which the load of `latency` begins.
const START: Time = Time::us(10);

/// The latency of core 0's load of a line whose home is `home`, after core `by` has left the line in the given state.
fn latency(nodes: &NodesSpec, home: u8, by: Option<u32>, from: From) -> (Rig, Time) {
    let mut r = rig(&small(), nodes);
    let line = if home == 0 { r.shared } else { r.far } + 5;
    if let Some(core) = by {
        r.access(core, line, true);
    }
    if from == From::Llc {
        let now = r.m.now;
        r.m.mem.push_out(&mut r.m.cal, line, now);
        r.settle();
    }
    r.m.now = START;
    r.m.mem.restart_meters(START);
    let took = r.access(0, line, false).took;
    r.m.mem.check().unwrap();
    r.m.mem.coherent(line).unwrap();
    (r, took)
}

#[test]
fn an_access_takes_the_sum_of_its_hops() {
    let n = two_nodes();
    let h = hops(&rig(&small(), &n));
    let (out, ask, round) = (h.out(), h.ask(), h.round());
    let dram = |after: Time| edge(START + after) + h.activate + h.hit;
    let there = h.llc + h.message + h.link;
    let cases = [
        (0, None, From::Dram, out + dram(out) + h.llc + h.noc),
        (1, None, From::Dram, out + h.llc + round + dram(out + there) + h.llc + h.noc),
        (0, Some(1), From::L2, out + h.llc + ask + h.noc),
        (0, Some(1), From::Llc, out + h.llc + h.noc),
        (1, Some(1), From::L2, out + h.llc + ask + h.noc),
        (1, Some(1), From::Llc, out + h.llc + h.noc),
        (1, Some(2), From::L2, out + h.llc + round + h.llc + ask + h.noc),
        (0, Some(2), From::L2, out + h.llc + round + h.llc + ask + h.noc),
        (1, Some(2), From::Llc, out + h.llc + round + h.llc + h.noc),
        (0, Some(2), From::Llc, out + h.llc + round + h.llc + h.noc),
    ];
    for (home, by, from, expected) in cases {
        let (r, took) = latency(&n, home, by, from);
        assert_eq!(took, expected, "home {home}, by {by:?} from {from:?}");
        // The milestones of the load cover its whole time, and no other request exists.
        let paths = &r.m.mem.paths;
        let read = Path::C2mRead as usize;
        assert_eq!(paths.count[read], 1);
        assert_eq!(paths.sums()[read].iter().sum::<u64>(), took.0, "home {home}, by {by:?} from {from:?}");
        let crosses = by == Some(2) || (by.is_none() && home == 1);
        assert_eq!(r.m.mem.stats.remote[CoreId(0)].reads, u64::from(crosses));
    }
}

#[test]
fn a_useless_read_of_the_own_memory_holds_the_answer_back_and_costs_bandwidth() {
    let mut n = two_nodes();
    let without = latency(&n, 0, Some(2), From::L2).1;
    n.quirks = NodesQuirks { speculative_penalty: Span(7_000), ..NodesQuirks::default() };
    let (r, with) = latency(&n, 0, Some(2), From::L2);
    assert_eq!(with, without + Time::ns(7));
    assert_eq!(r.m.mem.inter_socket().unwrap().speculative_reads, 1);
    assert_eq!(r.m.mem.stats.of(AccessClass::CpuOtherRd), 1);
    // For a line homed where it was written, nothing is read from memory.
    let (r, took) = latency(&n, 1, Some(2), From::L2);
    assert_eq!((took, r.m.mem.inter_socket().unwrap().speculative_reads), (without, 0));
    // When memory is slower than the other node, the load waits for memory.
    let mut near = two_nodes();
    near.quirks.speculative = true;
    near.link.as_mut().unwrap().latency = Span(100);
    let h = hops(&r);
    let (_, took) = latency(&near, 0, Some(2), From::L2);
    let snoop = h.llc + h.message + h.data + Time(200) + h.llc + h.ask();
    // Core 2's access has left the row open.
    let memory = edge(START + h.out()) + h.hit + h.llc;
    assert!(memory > snoop);
    assert_eq!(took, h.out() + memory + h.noc);
}

#[test]
fn the_parts_of_a_read_of_the_other_node_s_memory_are_its_hops() {
    let n = two_nodes();
    let (r, _) = latency(&n, 1, None, From::Dram);
    let h = hops(&r);
    let parts = r.m.mem.paths.sums()[Path::C2mRead as usize];
    let there = h.llc + h.message + h.link;
    let dram = edge(START + h.out() + there) + h.activate + h.hit;
    let zero = Time::ZERO;
    let hops = [h.out(), zero, there, zero, zero, dram, h.llc + h.data + h.link, h.noc];
    assert_eq!(parts, hops.map(|t| t.0));
    let (r, _) = latency(&n, 0, Some(2), From::L2);
    let parts = r.m.mem.paths.sums()[Path::C2mRead as usize];
    let snoop = h.llc + h.message + h.link + h.llc + h.ask();
    let hops = [h.out(), zero, zero, snoop, zero, zero, h.data + h.link, h.noc];
    assert_eq!(parts, hops.map(|t| t.0));
}

#[test]
fn a_slower_uncore_of_the_other_node_slows_what_it_answers() {
    let mut n = two_nodes();
    let fast = latency(&n, 1, Some(2), From::Llc).1;
    n.uncore_clock = vec![Freq(MHZ_3200), Freq(MHZ_3200 / 2)];
    let slow = latency(&n, 1, Some(2), From::Llc).1;
    assert_eq!(slow - fast, Clock::from_hz(MHZ_3200 / 2).span(35) - Clock::from_hz(MHZ_3200).span(35));
    let own = latency(&n, 0, Some(1), From::L2).1;
    assert_eq!(own, latency(&two_nodes(), 0, Some(1), From::L2).1);
}

/// A request crosses from the agent to the link in its own node, and from the link to the agent in the other; a line from
/// memory crosses from the controller. Each crossing takes its own node's clock.
#[test]
fn crossings_to_links_and_controllers_take_the_clock_of_their_node() {
    let with = |clock: [u64; 2], crossing_cycles: u32, home: u8, by: Option<u32>, from: From| {
        let uncore_clock = clock.map(Freq).to_vec();
        latency(&NodesSpec { uncore_clock, crossing_cycles, ..two_nodes() }, home, by, from).1
    };
    let (c, half) = (Clock::from_hz(MHZ_3200), Clock::from_hz(MHZ_3200 / 2));
    // The crossings of each access: in the reader's node, and in the other one.
    for (home, by, from, own, other) in [
        (0, Some(1), From::L2, 0, 0),
        (0, Some(1), From::Llc, 0, 0),
        (0, Some(2), From::L2, 1, 1),
        (0, Some(2), From::Llc, 1, 1),
        (1, Some(2), From::L2, 1, 1),
        (1, Some(2), From::Llc, 1, 1),
    ] {
        let more = |clock| with(clock, 10, home, by, from) - with(clock, 0, home, by, from);
        let at = format!("home {home}, by {by:?} from {from:?}");
        assert_eq!(more([MHZ_3200, MHZ_3200]), c.span(10) * (own + other), "{at}");
        assert_eq!(more([MHZ_3200, MHZ_3200 / 2]), c.span(10) * own + half.span(10) * other, "{at}");
        assert_eq!(more([MHZ_3200 / 2, MHZ_3200]), half.span(10) * own + c.span(10) * other, "{at}");
    }
    // A command of DRAM leaves on an edge of its clock.
    let n = NodesSpec { crossing_cycles: 10, ..two_nodes() };
    let h = hops(&rig(&small(), &n));
    let x = c.span(10);
    let dram = |after: Time| edge(START + after) + h.activate + h.hit;
    let there = h.llc + x * 2 + h.message + h.link;
    let back = h.data + h.link;
    assert_eq!(latency(&n, 0, None, From::Dram).1, h.out() + dram(h.out()) + x + h.llc + h.noc);
    assert_eq!(latency(&n, 1, None, From::Dram).1, h.out() + there + dram(h.out() + there) + x + h.llc + back + h.noc);
}

/// Of the time of a load from the other node, three crossings and a look-up take that node's clock for a line of an L2,
/// and two for a line of memory: at half the clock they take twice as long.
#[test]
fn a_slow_other_node_holds_a_transfer_of_a_cache_up_by_three_crossings_and_memory_by_two() {
    let text = PROBE.replace("count = 2\n", "count = 2\ncrossing_cycles = 9\nCLOCK\n");
    let at = |place: &str, clock: &str| {
        let clock = format!("uncore_clock = [\"2.8 GHz\", \"{clock}\"]");
        get(&simulate(&text.replace("remote_l2_rh", place).replace("CLOCK", &clock)), "access_ns")
    };
    let (fast, slow) = (Clock::from_hz(2_800_000_000), Clock::from_hz(1_400_000_000));
    let longer = |cycles: u64| (slow.span(cycles) - fast.span(cycles)).as_ns();
    // The look-up has 20 cycles, and a crossing 9.
    let l2 = at("remote_l2_rh", "1.4 GHz") - at("remote_l2_rh", "2.8 GHz");
    assert!((l2 - longer(20) - 3.0 * longer(9)).abs() < 2e-3, "{l2} ns");
    let memory = at("remote_dram", "1.4 GHz") - at("remote_dram", "2.8 GHz");
    assert!((memory - longer(20) - 2.0 * longer(9)).abs() < 0.63, "{memory} ns: up to a clock of DRAM more or less");
}

#[test]
fn a_read_of_a_line_that_the_other_node_has_written_takes_it_or_shares_it() {
    for migratory in [true, false] {
        let mut n = two_nodes();
        n.quirks.migratory = migratory;
        for home in [0, 1] {
            let (mut r, _) = latency(&n, home, Some(2), From::L2);
            let line = if home == 0 { r.shared } else { r.far } + 5;
            let left = r.m.mem.private_copy(CoreId(2), line);
            assert_eq!(left, if migratory { CopyState::Nowhere } else { CopyState::Clean });
            assert_eq!(r.m.mem.stats.ledger.written, u64::from(!migratory));
            later(&mut r);
            r.access(0, line, true);
            assert_eq!(r.m.mem.stats.remote[CoreId(0)].rfos, u64::from(!migratory), "a store after the read");
            r.m.mem.coherent(line).unwrap();
            r.m.mem.check().unwrap();
        }
    }
}

/// Memory keeps the directory: a new state is a write of the line at its home. Memory's reader knows the old state; a
/// home agent whose caches give the line away does not, and writes each time.
#[test]
fn a_new_state_in_memory_s_directory_is_a_write_of_the_line_at_its_home() {
    let mut n = two_nodes();
    n.quirks.directory_writes = true;
    let mut r = rig(&small(), &n);
    r.m.mem.restart_meters(r.m.now);
    let (far, near) = (r.far + 5, r.shared + 5);
    let written = |r: &Rig| {
        let dram = &r.m.mem.dram;
        let of = |node| dram.channels().filter(move |ch| dram.node_of(*ch) == node);
        let [own, other] = [0, 1].map(|n| of(NodeId(n)).map(|ch| dram.stats(r.m.now, ch).writes()).sum::<u64>());
        assert_eq!(own + other, r.m.mem.inter_socket().unwrap().directory_writes);
        [own, other]
    };
    // Each access, and the writes to the memory of node 0 and of node 1 so far.
    for (core, line, store, expected) in [
        (0, near, false, [0, 0]), // at home, from memory
        (0, far, false, [0, 0]),  // from the other memory, where the line has been before the run
        (2, far, true, [0, 0]),   // the home takes the line back
        (0, far, false, [0, 1]),  // a modified line of the home's caches moves
        (2, far, true, [0, 1]),
        (0, far, true, [0, 2]),  // and again
        (0, far, true, [0, 2]),  // its owner stores
        (2, near, true, [0, 2]), // the other way: clean at home, and memory knows the state
        (0, near, true, [0, 2]),
        (2, near, true, [1, 2]), // modified at home
    ] {
        r.access(core, line, store);
        r.settle();
        assert_eq!(written(&r), expected, "core {core} at {line:?}, a store: {store}");
    }
    // A write-back ends the state: the next reader needs a new one, and a second reader does not.
    let now = r.m.now;
    r.m.mem.push_out(&mut r.m.cal, far, now);
    r.m.mem.force_out(&mut r.m.cal, far, now);
    r.settle();
    later(&mut r);
    for core in [0, 1] {
        r.access(core, far + 64, false);
        r.access(core, far, false);
    }
    assert_eq!(r.m.mem.inter_socket().unwrap().directory_writes, 1, "the line that was written, once");
    r.m.mem.check().unwrap();
    // A machine whose directory costs nothing writes nothing.
    let mut r = rig(&small(), &two_nodes());
    let line = r.far + 5;
    for (core, store) in [(0, false), (2, true), (0, true)] {
        r.access(core, line, store);
    }
    assert_eq!(r.m.mem.inter_socket().unwrap().directory_writes, 0);
}

#[test]
fn a_line_of_the_other_node_is_kept_in_the_own_llc_and_goes_home_when_it_must() {
    let mut r = rig(&small(), &two_nodes());
    let line = r.far + 5;
    r.access(0, line, true);
    let now = r.m.now;
    r.m.mem.push_out(&mut r.m.cal, line, now);
    assert_eq!(
        (r.m.mem.llc_copy(NodeId(0), line), r.m.mem.llc_copy(NodeId(1), line)),
        (CopyState::Dirty, CopyState::Nowhere)
    );
    later(&mut r);
    let now = r.m.now;
    r.m.mem.force_out(&mut r.m.cal, line, now);
    r.settle();
    let b = r.m.mem.inter_socket().unwrap();
    assert_eq!(
        (b.read(NodeId(0), r.m.now).bytes, b.read(NodeId(1), r.m.now).bytes),
        (80, 0),
        "the line and nothing else"
    );
    let dram = &r.m.mem.dram;
    let writes = |node| {
        dram.channels().filter(|ch| dram.node_of(*ch) == node).map(|ch| dram.stats(r.m.now, ch).writes()).sum::<u64>()
    };
    assert_eq!([0, 1].map(|n| writes(NodeId(n))), [0, 1]);
    r.m.mem.check().unwrap();
}

#[test]
fn a_non_temporal_store_crosses_the_link_and_ends_when_the_home_has_it() {
    let mut r = rig(&small(), &two_nodes());
    let (line, h) = (r.far + 5, hops(&r));
    r.access(2, line, true);
    later(&mut r);
    let start = r.m.now;
    r.request(0, line, TxnOp::Stream);
    r.settle();
    let took = r.answers.last().unwrap().0 - start;
    assert_eq!(took, h.out() + h.llc + h.data + h.link + h.llc + h.message + h.link + h.noc);
    assert_eq!(r.m.mem.copies(line).0, 0);
    let b = r.m.mem.inter_socket().unwrap();
    assert_eq!((b.read(NodeId(0), r.m.now).bytes, b.read(NodeId(1), r.m.now).bytes), (80, 16));
    r.m.mem.check().unwrap();
    r.m.mem.coherent(line).unwrap();
    // A load from the own memory, of a line that the other node has: a snoop and its answer.
    let line = r.shared + 5;
    r.access(2, line, true);
    later(&mut r);
    let start = r.m.now;
    r.request(0, line, TxnOp::Stream);
    r.settle();
    let took = r.answers.last().unwrap().0 - start;
    assert_eq!(took, h.out() + h.llc * 2 + h.ask() + (h.message + h.link) * 2 + h.noc);
    r.m.mem.check().unwrap();
}

#[test]
fn maintenance_of_a_line_that_the_other_node_has_written_writes_it_home() {
    for (op, left) in [(Sweep::Flush, CopyState::Nowhere), (Sweep::WriteBack, CopyState::Clean)] {
        let mut r = rig(&small(), &two_nodes());
        let line = r.shared + 5;
        r.access(2, line, true);
        later(&mut r);
        let now = r.m.now;
        r.m.mem.on_sweep(&mut r.m.cal, line, op, now);
        r.settle();
        assert_eq!(r.m.mem.private_copy(CoreId(2), line), left);
        assert_eq!(r.m.mem.inter_socket().unwrap().read(NodeId(1), r.m.now).payload, 64, "{op:?}");
        assert_eq!(r.m.mem.stats.ledger.written, 1);
        r.m.mem.check().unwrap();
        r.m.mem.coherent(line).unwrap();
    }
}

/// All combinations that can occur: a node with a modified copy is the only one with any copy.
fn every_row() -> impl Iterator<Item = (CoreRequest, Copies, Copies, NodeSide, NodesQuirks, NodeTransition)> {
    let copies = || HELD.into_iter().flat_map(|p| HELD.into_iter().map(move |l| Copies { private: p, llc: l }));
    let all = WANTS.into_iter().flat_map(move |w| copies().flat_map(move |n| copies().map(move |f| (w, n, f))));
    let rows = all.flat_map(|(w, n, f)| {
        [(NodeSide::Near, true), (NodeSide::Near, false), (NodeSide::Far, true), (NodeSide::Far, false)].map(
            |(s, m)| {
                let p = NodesQuirks { migratory: m, ..NodesQuirks::default() };
                (w, n, f, s, p, crossing(w, n, f, s, &p))
            },
        )
    });
    rows.filter(|(w, n, f, ..)| {
        (n.none() || !f.modified())
            && (f.none() || !n.modified())
            && !(*w == CoreRequest::Upgrade && (f.modified() || n.private == CopyState::Dirty))
    })
}

#[test]
fn the_table_keeps_one_writer_and_the_newest_data() {
    for (want, near, far, home, p, row) in every_row() {
        let at = format!("{want:?} near {near:?} far {far:?} home {home:?} {p:?}: {row:?}");
        // A core that is going to write is the only holder afterwards.
        let leaves = row.far == PrivateAction::Drop || far.none();
        assert!(want == CoreRequest::Read || leaves, "{at}");
        // The newest copy answers.
        if far.modified() && want != CoreRequest::Upgrade {
            assert_eq!(row.source, NodeDataSource::Far, "{at}");
            assert!(row.dirty != row.written, "modified data comes along or is written: {at}");
            assert_eq!(row.dirty, want == CoreRequest::Own || p.migratory && far.private != CopyState::Clean, "{at}");
        } else {
            assert!(!row.dirty && !row.written, "{at}");
        }
        if near.modified() && want != CoreRequest::Upgrade {
            assert_eq!(row.source, NodeDataSource::Near, "{at}");
        }
        if row.source == NodeDataSource::Memory {
            assert!(!near.modified() && !far.modified(), "{at}");
        }
        if row.source == NodeDataSource::Far {
            assert!(!far.none(), "{at}");
        }
        // Only a snoop for a line of the own memory causes a read of memory whose data is not used.
        assert_eq!(row.speculates, home == NodeSide::Near && row.source == NodeDataSource::Far, "{at}");
    }
}

/// A rig in which core 1 and the LLC of node 0, and core 2 and the LLC of node 1, hold the line in the given states.
/// Core 0 has a clean copy if it upgrades. None if the combination cannot occur.
fn rig_with(want: CoreRequest, near: Copies, far: Copies, home: NodeSide, p: NodesQuirks) -> Option<(Rig, LineAddr)> {
    let nodes = NodesSpec { quirks: p, ..two_nodes() };
    let mut h = small();
    h.llc.quirks.read_hit = ReadHit::Retain;
    let mut r = rig(&h, &nodes);
    let line = if home == NodeSide::Near { r.shared } else { r.far } + 5;
    for (core, spare, c) in [(1, 0, near), (2, 3, far)] {
        let now = r.m.now;
        match c.llc {
            CopyState::Nowhere => {}
            CopyState::Dirty => {
                r.access(spare, line, true);
                r.m.mem.push_out(&mut r.m.cal, line, now);
            }
            CopyState::Clean => {
                // Of the other node's copies, those stay that may coexist with the line.
                r.access(spare, line, false);
                r.m.mem.demote(&mut r.m.cal, CoreId(spare as u16), line, now);
            }
        }
        match c.private {
            CopyState::Nowhere => {}
            CopyState::Clean => drop(r.access(core, line, false)),
            CopyState::Dirty => drop(r.access(core, line, true)),
        }
        r.settle();
    }
    if want == CoreRequest::Upgrade {
        r.access(0, line, false);
    }
    let mine = if want == CoreRequest::Upgrade { CopyState::Clean } else { CopyState::Nowhere };
    let m = &r.m.mem;
    let there = m.private_copy(CoreId(0), line) == mine
        && m.private_copy(CoreId(1), line) == near.private
        && m.private_copy(CoreId(2), line) == far.private
        && m.private_copy(CoreId(3), line) == CopyState::Nowhere
        && m.llc_copy(NodeId(0), line) == near.llc
        && m.llc_copy(NodeId(1), line) == far.llc;
    m.coherent(line).unwrap();
    later(&mut r);
    there.then_some((r, line))
}

#[test]
fn the_memory_system_does_what_every_row_between_nodes_says() {
    let mut rows = 0;
    for (want, near, far, home, p, row) in every_row() {
        let Some((mut r, line)) = rig_with(want, near, far, home, p) else { continue };
        rows += 1;
        let at = format!("{want:?} near {near:?} far {far:?} home {home:?} migratory {}: {row:?}", p.migratory);
        let ledger = r.m.mem.stats.ledger;
        r.access(0, line, want != CoreRequest::Read);
        let m = &r.m.mem;
        m.coherent(line).unwrap_or_else(|e| panic!("{at}: {e}"));
        m.check().unwrap_or_else(|e| panic!("{at}: {e}"));
        let after = |held: CopyState| match row.far {
            PrivateAction::Stay => held,
            PrivateAction::Share if held == CopyState::Nowhere => CopyState::Nowhere,
            PrivateAction::Share => CopyState::Clean,
            PrivateAction::Drop => CopyState::Nowhere,
        };
        assert_eq!(m.private_copy(CoreId(2), line), after(far.private), "core 2 after {at}");
        assert_eq!(m.llc_copy(NodeId(1), line), after(far.llc), "the other LLC after {at}");
        let mine = if want != CoreRequest::Read || row.dirty { CopyState::Dirty } else { CopyState::Clean };
        assert_eq!(m.private_copy(CoreId(0), line), mine, "core 0 after {at}");
        if want != CoreRequest::Read {
            assert_eq!(m.private_copy(CoreId(1), line), CopyState::Nowhere, "core 1 after {at}");
        }
        assert_eq!(m.stats.ledger.written > ledger.written, row.written, "written by {at}");
        let reads = u64::from(row.source == NodeDataSource::Memory) + u64::from(row.speculates);
        assert_eq!(m.stats.of(AccessClass::CpuOtherRd), reads, "reads of memory for {at}");
        let crosses = row.snoops_far() || row.source == NodeDataSource::Memory && home == NodeSide::Far;
        let remote = m.stats.remote[CoreId(0)];
        assert_eq!(
            (remote.reads, remote.rfos),
            if want == CoreRequest::Read { (u64::from(crosses), 0) } else { (0, u64::from(crosses)) },
            "{at}"
        );
    }
    assert!(rows >= 60, "{rows} rows have been seen");
}

/// Many reads in flight keep the link busy: the link carries lines at its rate, less their headers.
#[test]
fn reads_of_the_other_node_s_memory_reach_the_link_s_data_maximum() {
    for credits in [64, 4] {
        let mut n = two_nodes();
        n.link.as_mut().unwrap().credits = credits;
        let mut r = rig(&small(), &n);
        r.m.mem.shadow = None;
        let (base, total, start) = (r.far, 3000u64, r.m.now);
        let mut next = 0;
        let send = |r: &mut Rig, next: &mut u64| {
            let core = (*next % 2) as u16;
            let t = Txn { transient: true, ..Txn::new(TxnOp::Read, base + *next, CoreId(core), r.m.now) };
            *next += 1;
            let at = r.m.now;
            r.m.mem.send(&mut r.m.cal, at, t);
        };
        (0..48).for_each(|_| send(&mut r, &mut next));
        while let Some(s) = r.m.next_signal() {
            if let MachineSignal::Answer(id) = s {
                r.m.mem.answered(&mut r.m.cal, id, r.m.now);
                if next < total {
                    send(&mut r, &mut next);
                }
            }
        }
        let span = (r.m.now - start).as_ns();
        let got = total as f64 * 64.0 / span;
        let link = 20.0 * 64.0 / 80.0;
        let back = r.m.mem.inter_socket().unwrap().read(NodeId(1), r.m.now);
        if credits == 64 {
            assert!(close(got, link, 0.02), "{got} GB/s of {link}");
            assert!(back.utilisation > 0.98, "{back:?}");
        } else {
            // The rate that the credits allow: this number of lines in the time that each is in flight.
            let there = r.m.mem.inter_socket().unwrap().read(NodeId(0), r.m.now).requests;
            assert!(close(got, 4.0 * 64.0 / there.latency_ns, 0.02), "{got} GB/s, {there:?}");
            assert_eq!(there.peak, 4);
        }
        assert_eq!(back.payload, total * 64);
        r.m.mem.check().unwrap();
    }
}

#[test]
fn a_line_that_112_cores_read_is_one_core_s_when_it_stores() {
    let cores = (0..112).map(|c| c / 56).collect();
    let mut r = Rig::with_nodes(&small(), 0b1111, &DramSpec::default(), &two_nodes(), cores);
    r.m.mem.shadow = Some(Box::new(Shadow::default()));
    for line in [r.shared + 5, r.far + 5] {
        for core in 0..112 {
            r.access(core, line, false);
        }
        assert!((0..112).all(|c| r.m.mem.private_copy(CoreId(c), line) == CopyState::Clean));
        r.access(111, line, true);
        assert!((0..111).all(|c| r.m.mem.private_copy(CoreId(c), line) == CopyState::Nowhere));
        assert_eq!(
            (r.m.mem.llc_copy(NodeId(0), line), r.m.mem.private_copy(CoreId(111), line)),
            (CopyState::Nowhere, CopyState::Dirty)
        );
        r.m.mem.coherent(line).unwrap();
    }
    r.m.mem.check().unwrap();
}

/// Two sockets of icelake.
const PROBE: &str = r#"
name = "probe"
platform = "icelake"
placement = { policy = "ddio" }
tenant = [{ name = "probe", cores = 3, app = { kind = "probe_latency", place = "remote_l2_rh" } }]
traffic = { arrivals = "none" }
run = { load = "none" }

[override.nodes]
count = 2
link = { links = 3, rate = "20 GB/s", latency = "30 ns", message = "16 B", data = "80 B", credits = 64 }
quirks = { speculative_penalty = "5 ns" }
"#;

#[test]
fn the_probe_s_latencies_are_sums_of_the_platform_s_hops() {
    // 2.8 GHz: L1 of 5 cycles, L2 of 9, LLC of 20, crossbar of 9. Each is rounded to a picosecond.
    let c = |cycles: u64| Clock::from_hz(2_800_000_000).span(cycles).as_ns();
    let (out, noc, llc, ask) = (c(5) + c(9) + c(9), c(9), c(20), c(9) + c(9) + c(9));
    let (message, data) = (30.0 + 0.8, 30.0 + 4.0);
    let remote = out + llc + message + llc + data + noc;
    let cases = [
        ("local_l1", c(5)),
        ("local_l2", c(5) + c(9)),
        ("local_llc", out + llc + noc),
        ("other_l2", out + llc + ask + noc),
        ("remote_llc", remote),
        ("remote_l2_rh", remote + ask),
        ("remote_l2_lh", remote + ask + 5.0),
    ];
    let probe = |place: &str| simulate(&PROBE.replace("remote_l2_rh", place));
    for (place, expected) in cases {
        let o = probe(place);
        let got = get(&o, "access_ns");
        assert!((got - expected).abs() < 1e-6, "{place}: {got} ns, not {expected}");
        assert_eq!(get(&o, "speculative_reads"), f64::from(u8::from(place == "remote_l2_lh")), "{place}");
    }
    // DDR4-3200: tRCD and CL of 22 clocks of 0.625 ns, a burst of 4, and up to one clock until the first command.
    let dram = 31.8 + 48.0 * 0.625;
    for (place, hops) in [("local_dram", out + llc + noc), ("remote_dram", remote)] {
        let got = get(&probe(place), "access_ns") - hops - dram;
        assert!((0.0..=0.626).contains(&got), "{place}: {got} ns more than the hops");
    }
}

#[test]
fn what_is_not_built_for_two_nodes_is_refused_in_a_sentence() {
    let said =
        |text: &str| hostnet::config::resolve(text, "test.toml", &[platforms()]).map(drop).unwrap_err().to_string();
    let cases: [(&str, &str, &[&str]); 7] = [
        ("count = 2", "count = 3", &["platform.nodes.count = 3", "1 or 2"]),
        ("links = 3", "links = 0", &["platform.nodes.link.links = 0", "positive"]),
        ("data = \"80 B\"", "data = \"60 B\"", &["platform.nodes.link.data = \"60 B\"", "64 B"]),
        ("cores = 3", "cores = 3, node = 2", &["tenant[0].node = 2", "0 to 1"]),
        ("[override.nodes]", "[override.caches.llc]\nmshrs = 16\n[override.nodes]", &["mshrs = 16", "several nodes"]),
        (
            "[override.nodes]",
            "[override.caches.l2]\nresponse_cycles = 12\n[override.nodes]",
            &["response_cycles of caches.l1d, caches.l2 and caches.llc", "several nodes"],
        ),
        (
            "[override.nodes]",
            "[override.caches.llc]\nrole = \"strictly_inclusive\"\n[override.nodes]",
            &["strictly_inclusive", "several nodes"],
        ),
    ];
    for (from, to, words) in cases {
        let e = said(&PROBE.replacen(from, to, 1));
        assert!(words.iter().all(|w| e.contains(w)) && e.starts_with("test.toml: "), "{to}: {e}");
    }
    let packets = PROBE.replace("{ kind = \"probe_latency\", place = \"remote_l2_rh\" }", "{ kind = \"testpmd\" }");
    let packets = packets.replace("cores = 3", "cores = 3, node = 1");
    let two =
        packets.replace("tenant = [", "tenant = [{ name = \"there\", cores = 1, app = { kind = \"testpmd\" } }, ");
    assert!(said(&two).contains("the integrated NIC is on the chip of node 0"), "{}", said(&two));
    let port =
        packets.replace("node = 1,", "node = 1, stack = \"poll_mode\",") + "[[peripheral]]\nkind = \"ethernet\"\n";
    assert!(
        said(&port).contains("the NIC is attached to node 0 and writes to the memory of that node"),
        "{}",
        said(&port)
    );
    let nowhere = port + "node = 2\n";
    assert!(said(&nowhere).contains("peripheral[0].node = 2 does not exist"), "{}", said(&nowhere));
    let unlinked = PROBE.lines().filter(|l| !l.starts_with("link")).collect::<Vec<_>>().join("\n");
    assert!(said(&unlinked).contains("platform.nodes.count = 2 needs a table link"));
}

/// Free-running cores of both sockets: the metrics of the links have values, and all conservation checks pass.
#[test]
fn tenants_of_two_nodes_run_beside_each_other() {
    let text = PROBE
        .replace(
            "tenant = [{ name = \"probe\", cores = 3, app = { kind = \"probe_latency\", place = \"remote_l2_rh\" } }]",
            "tenant = [\n { name = \"a\", cores = 2, app = { kind = \"xmem\", array = \"1 MiB\" } },\n { name = \"b\", node = 1, cores = 2, app = { kind = \"xmem\", array = \"1 MiB\" } },\n]",
        )
        .replace("run = { load = \"none\" }", "run = { load = \"saturate\", time = \"20 us\" }");
    let o = simulate(&text);
    // Each tenant has its data in its own node.
    assert_eq!((get(&o, "link_utilisation"), get(&o, "remote_reads")), (0.0, 0.0));
    assert!(get(&o, "c2m_read_lat_ns") > 0.0);
}

/// A line that a device's write evicts from the LLC may belong to the other node: the link takes the evicted line, and
/// the device's own write is answered.
#[test]
fn a_device_s_write_ends_when_it_pushes_a_line_of_the_other_node_out() {
    for to in [Inbound::Llc { ways: 0b1111 }, Inbound::Dram] {
        let mut r = rig(&small(), &two_nodes());
        for i in 0..400 {
            r.access(0, r.far + i, true); // most lines end in the LLC of node 0, dirty
        }
        let before = r.answers.len();
        let written = r.m.mem.stats.ledger.written;
        for i in 0..400 {
            r.device_writes(Agent::Io, if to == Inbound::Dram { r.far + 1000 } else { r.rx } + i, 1, to);
        }
        assert_eq!(r.answers.len() - before, 400, "{to:?}");
        assert!(r.m.mem.stats.ledger.written > written + 16, "lines of the other node went home");
        assert_eq!(r.m.mem.in_flight(), 0);
        r.m.mem.check().unwrap();
    }
}

/// Tenants and devices of one node of icx, `node`; the two nodes are alike.
fn all_on(node: u8, placement: &str, rest: &str) -> String {
    let text = format!("name = \"placed\"\nplatform = \"icx\"\nplacement = {{ {placement} }}\n{rest}");
    text.replace("cores =", &format!("node = {node}\ncores ="))
        .replace("kind = \"ethernet\"", &format!("kind = \"ethernet\"\nnode = {node}"))
}

const FORWARDER: &str = "[[tenant]]\nname = \"forwarder\"\ncores = 2\nstack = \"poll_mode\"\napp = { kind = \"l3fwd\", rules = 100, \
                         zero_copy = true }\ntraffic = { arrivals = \"poisson\", rate = \"60 Gbps\", packet = \"1514 B\" }\n\
                         [[peripheral]]\nkind = \"ethernet\"\n[run]\nload = \"fixed\"\nrequests = 4000\nwarmup_requests = 2000\n";

/// Everything at node 1 behaves as everything at node 0, under every policy, and nothing crosses the links.
#[test]
fn devices_and_their_tenants_are_the_same_at_either_node() {
    let store = "[[tenant]]\nname = \"store\"\ncores = 2\napp = { kind = \"mica\", item_size = \"256 B\", get_fraction = 0.9, pairs = 2048, \
                 buckets = 512, log_size = \"2 MiB\", zipf = 0.9 }\ntraffic = { arrivals = \"poisson\", rate = \"4 Mrps\" }\n\
                 [rings]\nrx_buffers = 128\nbuffer_size = \"1 KiB\"\n[run]\nload = \"fixed\"\nrequests = 4000\nwarmup_requests = 2000\n";
    for policy in ["\"ddio\", ways = 2", "\"dma\"", "\"ideal\"", "\"idio\", mode = \"dynamic\""] {
        // Buffers apart from the caches are those of the NIC on the chip.
        for rest in [FORWARDER, store].into_iter().filter(|rest| !policy.contains("ideal") || *rest == store) {
            let at = |node| simulate(&all_on(node, &format!("policy = {policy}"), rest));
            let (first, second) = (at(0), at(1));
            for metric in ["throughput_mrps", "lat_mean_us", "mem_bw_gbs", "acc_total"] {
                let (a, b) = (get(&first, metric), get(&second, metric));
                assert!((a - b).abs() <= 0.01 * a.abs(), "{policy}: {metric} is {a} at node 0, {b} at node 1");
            }
            assert_eq!(get(&second, "link_utilisation"), 0.0, "{policy}");
        }
    }
}

/// A NIC at each node, each with a tenant there: neither takes anything from the other.
#[test]
fn a_nic_at_each_node_leaves_the_other_alone() {
    let half = |node: u8| {
        all_on(node, "policy = \"ddio\", ways = 2", FORWARDER)
            .replace("kind = \"ethernet\"", &format!("kind = \"ethernet\"\nname = \"nic{node}\""))
            .replace("stack =", &format!("nic = \"nic{node}\"\nstack ="))
            .replace("\"forwarder\"", &format!("\"forwarder {node}\""))
    };
    let second = half(1);
    let tables = &second[second.find("[[tenant]]").expect("a tenant")..second.find("[run]").expect("a run")];
    let both =
        simulate(&half(0).replace("[run]", &format!("{tables}[run]")).replace("requests = 4000", "requests = 8000"));
    let alone = simulate(&half(0));
    let (rate, twice) = (get(&alone, "throughput_mrps"), get(&both, "throughput_mrps"));
    assert!((twice / rate / 2.0 - 1.0).abs() < 0.02, "{twice} Mrps of two, {rate} of one");
    let (one, two) = (get(&alone, "lat_mean_us"), get(&both, "lat_mean_us"));
    assert!((two / one - 1.0).abs() < 0.02, "{two} us beside the other, {one} alone");
}

/// SSDs at node 1 with the kernel's cores there move as many lines as at node 0.
#[test]
fn storage_is_the_same_at_either_node() {
    let text = |node: u8| {
        format!(
            "name = \"storage\"\nplatform = \"icelake\"\noverride = {{ nodes = {{ count = 2, cores = 4, link = {{ links = 3, rate = \"22.4 \
             GB/s\", latency = \"25 ns\", message = \"16 B\", data = \"78 B\", credits = 256 }} }} }}\nplacement = {{ policy = \"ddio\", ways = 2 \
             }}\n[[peripheral]]\nkind = \"ssd\"\nnode = {node}\nop = \"p2m_write\"\nqueue_depth = 8\nblock = \"64 KiB\"\ncores = 1\n[run]\nload = \
             \"saturate\"\nwarmup_time = \"5 us\"\ntime = \"30 us\"\n"
        )
    };
    let [first, second] = [0, 1].map(|node| get(&simulate(&text(node)), "p2m_gbs"));
    assert!(first > 1.0 && (first / second - 1.0).abs() < 0.01, "{first} GB/s at node 0, {second} at node 1");
}
