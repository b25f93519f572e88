//! IDIO on the one engine: where lines are and go, hints, invalidations, and what a run of each mode does with packets. The
//! identifiers are those of the specification's features.

mod common;

use common::{execute, get, scenario, simulate, small};
use hostnet::core::hints::Hints;
use hostnet::core::{Cpu, Op};
use hostnet::host::Outcome;
use hostnet::kernel::Time;
use hostnet::machine::Machine;
use hostnet::memory::dram::DramSpec;
use hostnet::memory::protocol::Held;
use hostnet::memory::region::{AddressMap, Kind, Sharing};
use hostnet::memory::spec::{DeviceRead, HierarchySpec, LlcSpec, ReadHit};
use hostnet::memory::stats::{Class, Place, PLACES};
use hostnet::memory::{Agent, Inbound, Memory, Outbound, Sweep, Txn};
use hostnet::placement::idio::HintOverflow;

/// Ways that devices allocate into, and ways of L2 victims.
const DDIO: u32 = 0b0011;
const VICTIMS: u32 = 0b1100;
const INTO_LLC: Inbound = Inbound::Llc { ways: DDIO };
const HINT: Inbound = Inbound::Hint { ways: DDIO, core: 0 };

/// A core with an L2 of 16 lines above an LLC of 64 in four ways, whose L2 follows hints.
struct Rig {
    m: Machine,
    rx: u64,
}

impl Rig {
    fn new(read_hit: ReadHit, hints: u32, mshrs: Option<u32>) -> Rig {
        Rig::with(read_hit, hints, mshrs, VICTIMS, |_| {})
    }

    fn with(read_hit: ReadHit, hints: u32, mshrs: Option<u32>, victims: u32, change: impl FnOnce(&mut LlcSpec)) -> Rig {
        let mut h: HierarchySpec = small();
        change(&mut h.llc);
        (h.llc.read_hit, h.llc.device_read) = (read_hit, DeviceRead::Demote);
        let mut map = AddressMap::default();
        let r = map.add(1 << 12, Kind::Rx, Sharing::Core(0), 0);
        let rx = map.get(r).base;
        map.make_invalidatable(rx);
        map.add(1 << 12, Kind::App, Sharing::Core(0), 0);
        let mut core = scenario(RUN).platform.core;
        core.l2_mshrs = mshrs;
        let clock = hostnet::kernel::Clock::from_hz(core.clock.0);
        let mem = Memory::new(&h, &DramSpec::default(), clock, 1, vec![victims], map).expect("a memory system");
        let mut cpu = Cpu::new(0, &core);
        cpu.follow(Hints::new(hints, HintOverflow::Drop));
        let mut m = Machine::bare(mem, vec![cpu]);
        m.now = Time::us(1);
        Rig { m, rx }
    }

    fn run(&mut self, ops: &[Op]) {
        let now = self.m.now + Time::us(1);
        execute(&mut self.m, ops, now);
    }
    fn load(&mut self, line: u64) {
        self.run(&[Op::Load { line, lines: 1 }, Op::Fence]);
    }
    fn store(&mut self, line: u64) {
        self.run(&[Op::Store { line, lines: 1 }, Op::Fence]);
    }

    /// A device writes lines; `settle` lets it happen.
    fn send(&mut self, line: u64, lines: u16, to: Inbound) {
        let t = Txn::dma_write(Agent::Nic, Class::NicRxWr, to, line, lines, 0, self.m.now);
        self.m.mem.send(&mut self.m.cal, self.m.now, t);
    }
    fn write(&mut self, line: u64, to: Inbound) {
        self.m.now += Time::us(1);
        self.send(line, 1, to);
        self.m.settle();
    }
    fn read(&mut self, line: u64) {
        self.m.now += Time::us(1);
        let t = Txn::dma_read(Agent::Nic, Class::NicTxRd, line, 1, 0, self.m.now);
        self.m.mem.send(&mut self.m.cal, self.m.now, Txn { from: Outbound::Nearest, ..t });
        self.m.settle();
    }
    fn push_out(&mut self, line: u64) {
        let now = self.m.now;
        self.m.mem.push_out(&mut self.m.cal, line, now);
        self.m.settle();
    }

    /// What the L2, or L1, and the LLC have of a line, and whether the LLC's copy is in the ways of devices.
    fn at(&self, line: u64) -> (Held, Held, bool) {
        let mem = &self.m.mem;
        let ddio = mem.llc_way(line).is_some_and(|w| DDIO >> w & 1 == 1);
        (mem.private_copy(0, line), mem.llc_copy(0, line), ddio)
    }
    fn dram(&self) -> u64 {
        self.m.mem.stats.dram.iter().sum()
    }
    fn balanced(&self) {
        self.m.mem.check().expect("balanced books");
    }
}

/// A rig and a line of it at `place`, dirty in the private caches or not where it is there.
fn line_at(place: Place, dirty: bool) -> (Rig, u64) {
    let read_hit = if place == Place::Both { ReadHit::Retain } else { ReadHit::Migrate };
    let mut r = Rig::new(read_hit, 32, None);
    let line = r.rx + 5;
    let touch = |r: &mut Rig| if dirty { r.store(line) } else { r.load(line) };
    match place {
        Place::Mlc => {
            touch(&mut r);
            r.m.mem.restart_meters(r.m.now);
        }
        Place::Both => {
            r.write(line, INTO_LLC);
            r.load(line);
            touch(&mut r);
        }
        Place::Llc => {
            r.store(line);
            r.push_out(line);
        }
        Place::Ddio => r.write(line, INTO_LLC),
        Place::Dram => r.write(line + 64, INTO_LLC), // so that the ways of devices are known
    }
    let expected = match place {
        Place::Mlc => (if dirty { Held::Dirty } else { Held::Clean }, Held::Nowhere, false),
        Place::Both => (if dirty { Held::Dirty } else { Held::Clean }, Held::Dirty, true),
        Place::Llc => (Held::Nowhere, Held::Dirty, false),
        Place::Ddio => (Held::Nowhere, Held::Dirty, true),
        Place::Dram => (Held::Nowhere, Held::Nowhere, false),
    };
    assert_eq!(r.at(line), expected, "{place:?} dirty {dirty}");
    r.m.mem.restart_meters(r.m.now);
    (r, line)
}

fn counted(at: Place) -> [u64; 5] {
    let mut n = [0; 5];
    n[at as usize] = 1;
    n
}

/// idio.f.packet_locations, idio.f.dma_write_path, idio.f.mlc_invalidation: all ends are a dirty line in the LLC and no
/// DRAM access; P1 and P5 allocate in the ways of devices, the others are updated where they are.
#[test]
fn a_device_write_updates_the_llc_in_place_or_allocates_in_its_ways() {
    for (place, in_ddio, invalidated) in [
        (Place::Mlc, true, 1),
        (Place::Both, true, 1),
        (Place::Llc, false, 0),
        (Place::Ddio, true, 0),
        (Place::Dram, true, 0),
    ] {
        for dirty in [false, true] {
            let (mut r, line) = line_at(place, dirty);
            r.write(line, INTO_LLC);
            assert_eq!(r.at(line), (Held::Nowhere, Held::Dirty, in_ddio), "{place:?}");
            assert_eq!(r.dram(), 0, "{place:?}: nothing is fetched or written back");
            let s = &r.m.mem.stats;
            assert_eq!(s.dma(Agent::Nic).wrote_at, counted(place));
            assert_eq!((s.cores[0].mlc_invalidations, s.cores[0].mlc_wb), (invalidated, 0), "{place:?}");
            r.balanced();
        }
    }
}

/// idio.f.dma_read_path: P1 and dirty P2 go down to the LLC and leave the private caches; clean P2, P3 and P4 stay; P5 is
/// read from DRAM and enters no cache.
#[test]
fn a_device_read_takes_what_only_a_core_has_down_to_the_llc() {
    use Held::{Clean, Dirty, Nowhere};
    for (place, dirty, end, write_backs, reads) in [
        (Place::Mlc, false, (Nowhere, Clean, false), 1, 0),
        (Place::Mlc, true, (Nowhere, Dirty, false), 1, 0),
        (Place::Both, false, (Clean, Dirty, true), 0, 0),
        (Place::Both, true, (Nowhere, Dirty, true), 1, 0),
        (Place::Llc, false, (Nowhere, Dirty, false), 0, 0),
        (Place::Ddio, false, (Nowhere, Dirty, true), 0, 0),
        (Place::Dram, false, (Nowhere, Nowhere, false), 0, 1),
    ] {
        let (mut r, line) = line_at(place, dirty);
        r.read(line);
        assert_eq!(r.at(line), end, "{place:?} dirty {dirty}");
        let s = &r.m.mem.stats;
        assert_eq!((s.cores[0].mlc_wb, s.of(Class::NicTxRd), r.dram()), (write_backs, reads, reads), "{place:?}");
        assert_eq!(s.dma(Agent::Nic).read_at, counted(place));
        r.balanced();
    }
}

/// idio.f.demand_fill: a line in the LLC moves to the L2; one that was evicted comes from DRAM, past the LLC.
#[test]
fn a_core_moves_a_received_line_from_the_llc_or_fetches_it_from_dram() {
    let (mut r, line) = line_at(Place::Ddio, false);
    r.load(line);
    assert_eq!((r.at(line), r.dram()), ((Held::Dirty, Held::Nowhere, false), 0));
    let (mut r, line) = line_at(Place::Ddio, false);
    let now = r.m.now;
    assert_eq!(r.m.mem.force_out(&mut r.m.cal, line, now), Some(true));
    r.load(line);
    assert_eq!(r.at(line), (Held::Clean, Held::Nowhere, false));
    assert_eq!((r.m.mem.stats.of(Class::RxEvct), r.m.mem.stats.of(Class::CpuRxRd)), (1, 1));
    r.balanced();
}

/// idio.f.mlc_victim_wb, idio.f.llc_victim_wb, idio.f.stat_mlc_wb: a read line that the L2 gives up leaves the ways of
/// devices, and write-backs to DRAM are told apart by whether anybody had read the line.
#[test]
fn a_victim_of_the_l2_is_outside_the_ways_of_devices_and_its_write_back_is_no_leak() {
    let (mut r, line) = line_at(Place::Ddio, false);
    r.load(line);
    // Lines 16 apart share a set of both L2 and LLC. Four more displace the first from four ways of L2 and two of L1.
    for i in 1..=4 {
        r.load(line + 16 * i);
    }
    let (private, llc, ddio) = r.at(line);
    assert_eq!((private, llc, ddio), (Held::Nowhere, Held::Dirty, false));
    let s = &r.m.mem.stats;
    assert!(s.cores[0].mlc_wb >= 1 && s.cores[0].mlc_wb_consumed >= 1);
    assert_eq!(s.llc_wb, 0);
    let now = r.m.now;
    r.m.mem.force_out(&mut r.m.cal, line, now);
    assert_eq!((r.m.mem.stats.llc_wb, r.m.mem.stats.rx_evct_premature), (1, 0));
    let unread = r.rx + 200;
    r.write(unread, INTO_LLC);
    r.m.mem.force_out(&mut r.m.cal, unread, now);
    assert_eq!((r.m.mem.stats.llc_wb, r.m.mem.stats.rx_evct_premature), (2, 1));
}

/// idio.f.llc_partitions: of four ways the lowest is the devices', the highest the directory's. What a core has too is in the
/// last; what only the LLC has is in the first when a device has written it, and between them when an L2 gave it up.
#[test]
fn each_line_is_in_the_ways_of_its_kind() {
    let way = |r: &Rig, line: u64| r.m.mem.llc_way(line);
    for (place, ways) in [
        (Place::Mlc, None),
        (Place::Both, Some(0b1000)),
        (Place::Llc, Some(0b0110)),
        (Place::Ddio, Some(0b0001)),
        (Place::Dram, None),
    ] {
        let read_hit = if place == Place::Both { ReadHit::Retain } else { ReadHit::Migrate };
        let mut r = Rig::with(read_hit, 32, None, 0b1110, |llc| llc.inclusive_ways = 1);
        let (line, one) = (r.rx + 5, Inbound::Llc { ways: 0b0001 });
        match place {
            Place::Mlc => r.load(line),
            Place::Both => {
                r.write(line, one);
                r.load(line);
                assert_eq!(r.at(line).1, Held::Dirty, "the LLC keeps its copy as it was");
            }
            Place::Llc => {
                r.store(line);
                r.push_out(line);
            }
            Place::Ddio => r.write(line, one),
            Place::Dram => {}
        }
        let is = way(&r, line).map(|w| 1u32 << w);
        assert_eq!(is.is_some(), ways.is_some(), "{place:?}");
        assert!(is.is_none_or(|w| ways.is_some_and(|m| w & m != 0)), "{place:?} is in {is:?}");
        r.balanced();
    }
}

/// idio.f.llc_partitions: victims of the L2 fill their own two ways and no others: of lines of one set, two stay.
#[test]
fn victims_of_the_l2_have_what_the_directory_and_devices_leave() {
    let mut r = Rig::with(ReadHit::Migrate, 32, None, 0b1110, |llc| llc.inclusive_ways = 1);
    let lines: Vec<u64> = (0..6).map(|i| r.rx + 5 + 16 * i).collect();
    for l in &lines {
        r.store(*l);
        r.push_out(*l);
    }
    let held = lines.iter().filter(|l| r.m.mem.llc_way(**l).is_some()).count();
    assert_eq!(held, 2, "of four ways");
    assert_eq!(r.m.mem.stats.llc_wb, 4);
    r.balanced();
}

/// idio.f.m2_mlc_prefetch, idio.f.mlc_hint_queue: the hinted line moves from the LLC to the L2 without a DRAM access. That
/// is no use of it: when it is evicted before the core reads it, that was premature.
#[test]
fn a_hint_brings_the_line_to_the_l2_and_is_no_use_of_it() {
    let mut r = Rig::new(ReadHit::Migrate, 32, None);
    let line = r.rx + 9;
    r.write(line, HINT);
    assert_eq!((r.at(line), r.dram()), ((Held::Dirty, Held::Nowhere, false), 0));
    let h = r.m.cpus[0].hints.as_ref().expect("follows hints").counts;
    assert_eq!((h.came, h.fetched, h.dropped, h.late), (1, 1, 0, 0));
    r.push_out(line);
    let now = r.m.now;
    r.m.mem.force_out(&mut r.m.cal, line, now);
    assert_eq!((r.m.mem.stats.rx_evct_premature, r.m.mem.stats.rx_evct_consumed), (1, 0));
    // What the core has read is consumed, however it came.
    r.write(line, HINT);
    r.load(line);
    r.m.mem.consumed(line, 1);
    r.push_out(line);
    let now = r.m.now;
    r.m.mem.force_out(&mut r.m.cal, line, now);
    assert_eq!((r.m.mem.stats.rx_evct_premature, r.m.mem.stats.rx_evct_consumed), (1, 1));
    r.balanced();
}

/// idio.f.mlc_hint_queue: hints share the L2's misses with loads. Four may be under way, and each takes 1 + 4 + 14 + ...
/// cycles, so that of 40 hints at once four become prefetches, as many as there are places wait and the others are lost.
#[test]
fn hints_wait_for_misses_of_the_l2_and_are_lost_when_the_queue_is_full() {
    let mut r = Rig::new(ReadHit::Migrate, 8, Some(4));
    r.send(r.rx, 40, HINT);
    r.m.settle();
    let h = r.m.cpus[0].hints.as_ref().expect("follows hints").counts;
    assert_eq!((h.came, h.fetched, h.dropped), (40, 12, 28), "four at once, and eight that waited");
    assert_eq!(r.m.cpus[0].mshrs.as_ref().map(|m| m.used()), Some(0));
    r.balanced();
    // Loads that miss keep hints waiting: those of the core, from DRAM, come first.
    let mut r = Rig::new(ReadHit::Migrate, 8, Some(4));
    let now = r.m.now + Time::us(1);
    r.m.cpus[0].program.ops = (0..4).map(|i| Op::Load { line: r.rx + 100 + i, lines: 1 }).collect();
    r.m.now = now;
    r.m.start(0);
    r.send(r.rx, 2, HINT);
    let mut last_load = None;
    while let Some(e) = r.m.pop() {
        r.m.handle(e);
        let fetched = r.m.cpus[0].hints.as_ref().expect("follows hints").counts.fetched;
        let loads = (0..4).filter(|i| r.m.mem.holds(0, r.rx + 100 + i)).count();
        if fetched > 0 && last_load.is_none() {
            last_load = Some(loads);
        }
    }
    assert!(last_load.is_some_and(|n| n >= 1), "a hint is followed once a load has ended: {last_load:?}");
    r.balanced();
}

/// A hint is no use of a line; the load that finds the line is one.
#[test]
fn a_hinted_line_is_unread_until_a_load_hits_it() {
    let mut r = Rig::new(ReadHit::Migrate, 32, None);
    let line = r.rx + 3;
    r.write(line, HINT);
    assert_eq!(r.at(line).0, Held::Dirty, "it is in the L2");
    assert_eq!(r.m.mem.received_lines()[3..], [1, 0, 1, 0], "unread, and the first of its packet");
    r.load(line);
    assert_eq!(r.m.mem.received_lines()[3..], [0, 1, 1, 1], "read, in the L2");
}

/// A load of a line whose prefetch is under way waits for that, and asks for it no second time.
#[test]
fn a_load_joins_the_prefetch_of_its_line() {
    let mut r = Rig::new(ReadHit::Migrate, 32, None);
    let line = r.rx + 3;
    r.m.now += Time::us(1);
    let at = r.m.now + r.m.mem.lat.noc;
    r.m.mem.dma_at_once(&mut r.m.cal, &Txn::dma_write(Agent::Nic, Class::NicRxWr, INTO_LLC, line, 1, 0, r.m.now));
    r.m.cal.push(at, hostnet::kernel::Event::hint(0, line));
    r.m.cpus[0].program.ops = vec![Op::Stall(at.0 - r.m.now.0 + 1_000), Op::Load { line, lines: 1 }, Op::Fence];
    r.m.start(0);
    r.m.settle();
    let t = &r.m.mem.stats.tenants[0];
    assert_eq!((t.llc_hits, t.llc_misses), (1, 0));
    assert_eq!(r.at(line).0, Held::Dirty);
    r.balanced();
}

/// idio.f.invalidate_instr, idio.f.invalidate_multi, idio.f.m1_self_invalidate: by place and depth, what is left; dirty data
/// is dropped and DRAM is not touched.
#[test]
fn an_invalidation_drops_lines_as_deep_as_it_reaches_without_a_write_back() {
    for place in [Place::Mlc, Place::Both, Place::Llc, Place::Ddio] {
        for (op, dirty) in [Sweep::InvalidateOwn, Sweep::Invalidate].into_iter().flat_map(|o| [(o, false), (o, true)]) {
            let (mut r, line) = line_at(place, dirty);
            let llc = r.at(line).1;
            r.run(&[Op::Invalidate { line, lines: 1, op, instructions: 1 }, Op::Fence]);
            let left = if op == Sweep::Invalidate { Held::Nowhere } else { llc };
            let at = r.at(line);
            assert_eq!((at.0, at.1), (Held::Nowhere, left), "{place:?} {op:?}");
            assert_eq!((r.dram(), r.m.mem.stats.llc_wb), (0, 0));
            assert_eq!(r.m.mem.stats.sweep_messages, u64::from(op == Sweep::Invalidate), "messages of {op:?}");
            r.balanced();
        }
    }
}

/// idio.f.invalidate_multi: a range takes one instruction, lines one each.
#[test]
fn a_range_is_one_instruction_and_drops_every_line_of_it() {
    for (instructions, each) in [(24, 24), (1, 1)] {
        let mut r = Rig::new(ReadHit::Migrate, 32, None);
        let line = r.rx;
        r.send(line, 12, INTO_LLC);
        r.m.settle();
        let before = r.m.cpus[0].instructions;
        r.run(&[Op::Invalidate { line, lines: 12, op: Sweep::Invalidate, instructions: each }]);
        assert_eq!(r.m.cpus[0].instructions - before, instructions);
        assert!((line..line + 12).all(|l| r.at(l) == (Held::Nowhere, Held::Nowhere, false)));
        assert_eq!(r.dram(), 0);
        r.balanced();
    }
}

/// idio.f.invalidatable_page: on a page without the bit the instruction does nothing, so that nobody sees what was there
/// before the page was zeroed.
#[test]
fn pages_without_the_bit_keep_their_newest_data() {
    for op in [Sweep::InvalidateOwn, Sweep::Invalidate] {
        let mut r = Rig::new(ReadHit::Migrate, 32, None);
        r.m.mem.shadow = Some(Box::default());
        let zeroed = r.m.mem.map.iter().nth(1).expect("the application's region").base;
        r.store(zeroed);
        let version = r.m.mem.version(zeroed);
        r.run(&[Op::Invalidate { line: zeroed, lines: 1, op, instructions: 1 }, Op::Fence]);
        assert_eq!(r.at(zeroed).0, Held::Dirty);
        assert_eq!((r.m.mem.version(zeroed), r.m.mem.stats.refused_invalidations), (version, 1), "{op:?}");
        // On one that has the bit, what was written is lost.
        r.store(r.rx);
        let version = r.m.mem.version(r.rx);
        r.run(&[Op::Invalidate { line: r.rx, lines: 1, op, instructions: 1 }, Op::Fence]);
        assert_ne!(r.m.mem.version(r.rx), version);
        r.m.mem.coherent(r.rx).expect("coherent");
    }
}

/// idio.f.m3_direct_dram: payload of class 1 is one DRAM write, and what caches had of it is dropped.
#[test]
fn a_line_for_dram_invalidates_every_copy_without_writing_it_back() {
    for place in PLACES {
        for dirty in [false, true] {
            let (mut r, line) = line_at(place, dirty);
            r.write(line, Inbound::Dram);
            assert_eq!(r.at(line), (Held::Nowhere, Held::Nowhere, false), "{place:?}");
            assert_eq!((r.m.mem.stats.of(Class::NicRxWr), r.dram()), (1, 1), "{place:?}");
            assert_eq!(r.m.mem.stats.dma(Agent::Nic).wrote_at, counted(place));
            r.balanced();
        }
    }
}

/// Two cores that receive packets of 24 lines at 4 Gb/s each.
const RUN: &str = r#"
    name = "idio"
    platform = "cascadelake"
    placement = { policy = "idio", ways = 2 }
    rings = { rx_buffers = 1024, buffer_size = "2 KiB" }
    tenant = [{ name = "nf", cores = 2, llc_ways = "2-10", app = { kind = "touchdrop" } }]
    traffic = { arrivals = "fixed", rate = "0.66 Mpps", packet = "1514 B", spread = "turns" }
    run = { load = "fixed", requests = 4096, warmup_requests = 4096 }
    override = { caches = { llc = { size = "2816 KiB", slices = 2, device_read = "demote" } } }
"#;

fn with(changes: &[(&str, &str)]) -> Outcome {
    let mut text = RUN.to_string();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    simulate(&text)
}

fn mode(mode: &str, more: &[(&str, &str)]) -> Outcome {
    let placement = format!("policy = \"idio\", mode = \"{mode}\"");
    let mut changes = vec![("policy = \"idio\"", placement.as_str())];
    changes.extend_from_slice(more);
    with(&changes)
}

/// idio.f.policy_*, idio.f.header_mark: hints a packet. Below the burst threshold the FSM of an L2 that writes back little
/// comes down to 0b00 all the same, and stays off when it may leave 0b11 only by a burst.
#[test]
fn each_mode_hints_the_lines_that_it_is_to() {
    let sticky = ("ways = 2 }", "ways = 2, idio = { sticky = true } }");
    let quiet = ("ways = 2 }", "ways = 2, idio = { sticky = true, burst_threshold = \"100 Gbps\" } }");
    for (name, change, hints) in [
        ("invalidate", None, None),
        ("prefetch", None, Some(24.0)),
        ("static", None, Some(24.0)),
        ("dynamic", None, Some(24.0)),
        ("dynamic", Some(sticky), Some(24.0)), // 1514 bytes are more than 1250 in 1 us
        ("dynamic", Some(quiet), Some(1.0)),
    ] {
        let o = mode(name, change.as_slice());
        let per_packet = o.values.get("hints").map(|n| n / 4096.0);
        match (per_packet, hints) {
            (Some(n), Some(hints)) => assert!((n - hints).abs() <= 0.01 * hints, "{name}: {n} hints a packet"),
            (n, hints) => assert_eq!(n, hints, "{name}"),
        }
        assert_eq!(get(&o, "drops"), 0.0);
    }
}

/// idio.f.m1_self_invalidate, idio.f.sw_hook: rings of 3 MiB through L2s of 1 MiB: without invalidation each line goes down
/// once a packet, with it none does, and nothing is written to DRAM.
#[test]
fn invalidation_ends_write_backs_of_spent_buffers() {
    let keep = mode("prefetch", &[]);
    assert!(get(&keep, "mlc_wb") >= 0.9 * 24.0 * 4096.0, "{} write-backs", get(&keep, "mlc_wb"));
    for depth in ["mlc", "llc"] {
        let idio = format!("ways = 2, idio = {{ invalidate = \"{depth}\" }} }}");
        for name in ["invalidate", "static"] {
            let o = mode(name, &[("ways = 2 }", &idio)]);
            let left = get(&o, "mlc_wb") + get(&o, "llc_wb");
            assert!(left <= 0.02 * 24.0 * 4096.0, "{name} {depth}: {left} lines moved");
        }
    }
}

/// idio.f.m3_direct_dram, idio.f.app_class: of 16 lines of class 1, 15 are written to DRAM and the header is hinted.
#[test]
fn payload_of_class_1_goes_to_dram_and_its_header_to_the_l2() {
    let o = mode(
        "dynamic",
        &[
            ("ways = 2 }", "ways = 2, idio = { class1_dscp = [8] } }"),
            ("cores = 2,", "cores = 2, dscp = 8,"),
            ("kind = \"touchdrop\"", "kind = \"l2fwd\", payload = \"drop\""),
            ("1514 B", "1024 B"),
        ],
    );
    assert_eq!(get(&o, "acc_nic_rx_wr"), 15.0);
    assert!((get(&o, "hints") / 4096.0 - 1.0).abs() < 0.01);
    assert_eq!(get(&o, "acc_cpu_rx_rd"), 0.0, "headers come from caches");
}

/// idio.f.sw_hook, idio.w.l2fwd: a packet that is sent in place is invalidated after its transmission, so that no line of
/// it is written to DRAM and none stays; without invalidation the ring's lines stay.
#[test]
fn forwarded_packets_are_invalidated_after_transmission() {
    let app = [("kind = \"touchdrop\"", "kind = \"l2fwd\""), ("1514 B", "1024 B")];
    let timeline = ("requests = 4096, w", "timeline = \"100 us\", requests = 4096, w");
    let spent = |o: &Outcome| {
        let rows = o.tables["timeline"]["rows"].as_array().expect("rows");
        assert!(rows.len() >= 10);
        rows.iter().filter_map(|r| r[11].as_f64()).fold(0.0, f64::max)
    };
    let (keep, drop) = (mode("prefetch", &[app[0], app[1], timeline]), mode("static", &[app[0], app[1], timeline]));
    assert!(spent(&keep) > 16.0 * 1024.0, "{}", spent(&keep));
    assert!(spent(&drop) < 0.01 * spent(&keep), "{}", spent(&drop));
    assert_eq!((get(&drop, "llc_wb"), get(&drop, "acc_nic_tx_rd")), (0.0, 0.0));
}

/// idio.f.burst_model, idio.f.stat_exe, idio.f.timeline: bursts of a ring for each core every millisecond; no packet is
/// lost, and the time of a burst is at least that of its arrival, 2047 gaps of 300 ns.
#[test]
fn bursts_fill_the_rings_and_are_timed() {
    let o = with(&[
        (
            "arrivals = \"fixed\", rate = \"0.66 Mpps\"",
            "arrivals = \"burst\", burst = 2048, burst_period = \"1 ms\", burst_gap = \"300 ns\"",
        ),
        ("requests = 4096, w", "timeline = \"10 us\", requests = 8192, w"),
    ]);
    assert_eq!(get(&o, "drops"), 0.0);
    let us = get(&o, "burst_us");
    assert!((614.1..1000.0).contains(&us), "{us}");
    // At least what a frame takes on the link, less than two of them take to come.
    let start = get(&o, "burst_start_us");
    assert!((0.01..0.6).contains(&start), "{start}");
    let rows = o.tables["timeline"]["rows"].as_array().expect("rows");
    let dma: f64 = rows.iter().filter_map(|r| r[4].as_f64()).sum::<f64>() * 10.0;
    assert!((dma / (8192.0 * 24.0) - 1.0).abs() < 0.1, "{dma} lines in the timeline");
}

#[test]
fn an_antagonist_has_an_l2_of_its_own_size_and_tells_its_cycles_of_an_instruction() {
    let of = |size: &str| {
        let o = with(&[(
            "app = { kind = \"touchdrop\" } }]",
            &format!(
                "app = {{ kind = \"touchdrop\" }} }}, {{ name = \"llc\", cores = 1, {size} app = {{ kind = \"llc_antagonist\", buffer = \"900 KiB\" }} }}]"
            ),
        )]);
        get(&o, "t1_cpi")
    };
    let (whole, small) = (of(""), of("l2_size = \"256 KiB\","));
    // 900 KiB fit an L2 of 1 MiB; of 256 KiB, most accesses go to the LLC.
    assert!(small > 1.5 * whole, "{small} against {whole}");
}

#[test]
fn what_does_not_fit_is_one_sentence() {
    use hostnet::config::resolve;
    for (from, to, said) in [
        (
            "policy = \"idio\"",
            "policy = \"ddio\", mode = \"static\"",
            "placement.mode needs placement.policy = \"idio\"",
        ),
        ("ways = 2 }", "ways = 2, idio = { class1_dscp = [64] } }", "placement.idio.class1_dscp holds 64"),
        ("ways = 2 }", "ways = 2, idio = { average = 0 } }", "placement.idio.average = 0 is not within 1"),
        ("ways = 2 }", "ways = 2, sweep_rx = true }", "placement.sweep_rx = true is what IDIO's own"),
        ("cores = 2,", "cores = 2, dscp = 64,", "tenant[0].dscp = 64 is not within 0 to 63"),
        ("ways = 2 }", "ways = 2, idio = { mlc_threshold = \"50 MHz\" } }", "a pace"),
    ] {
        let text = RUN.replace(from, to);
        let e = resolve(&text, "test.toml", &[common::platforms()]).expect_err(to);
        assert!(e.to_string().contains(said), "{e}");
    }
}

/// The same two cores behind the PCIe NIC, with a poll-mode driver.
fn polled(changes: &[(&str, &str)]) -> Outcome {
    let mut text = r#"
        name = "polled"
        platform = "idio-gem5"
        placement = { policy = "idio", ways = 2, idio = { sticky = true, burst_threshold = "100 Tbps" } }
        tenant = [{ name = "nf", cores = 2, stack = "poll_mode", app = { kind = "touchdrop" } }]
        peripheral = [{ kind = "ethernet", rings = { receive = 1024, transmit = 1024 } }]
        traffic = { arrivals = "fixed", rate = "0.66 Mpps", packet = "1514 B", spread = "turns" }
        run = { load = "fixed", requests = 4096, warmup_requests = 4096 }
    "#
    .to_string();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    simulate(&text)
}

/// idio.f.header_mark, idio.f.tlp_encoding: behind a PCIe port the header is a write of its own, and of a core whose FSM
/// is off it alone is hinted; in the static mode so are its other 23 lines, and descriptors beside.
#[test]
fn tags_reach_the_policy_through_a_pcie_port() {
    let off = polled(&[]);
    assert_eq!(get(&off, "hints"), 4096.0);
    let all = polled(&[("policy = \"idio\",", "policy = \"idio\", mode = \"static\",")]);
    let per_packet = get(&all, "hints") / 4096.0;
    assert!((24.0..26.0).contains(&per_packet), "{per_packet} hints a packet");
    assert_eq!(get(&off, "drops") + get(&all, "drops"), 0.0);
}

/// idio.f.m3_direct_dram behind a PCIe port: packets are a NIC's transfers of DRAM there too. Of 24 lines 23 are payload, which
/// goes to DRAM; what is forwarded comes from there again.
#[test]
fn packets_behind_a_pcie_port_count_as_the_nic_s() {
    let class_1 = ("burst_threshold", "class1_dscp = [8], burst_threshold");
    let dscp = ("stack = \"poll_mode\"", "dscp = 8, stack = \"poll_mode\"");
    let o = polled(&[class_1, dscp, ("\"touchdrop\"", "\"l2fwd\"")]);
    let per = |class: &str| get(&o, class);
    assert!((per("acc_nic_rx_wr") - 23.0).abs() < 0.1, "{}", per("acc_nic_rx_wr"));
    assert!((per("acc_nic_tx_rd") - 23.0).abs() < 0.5, "{}", per("acc_nic_tx_rd"));
    assert_eq!((per("acc_io_wr"), per("acc_io_rd")), (0.0, 0.0));
}

/// A 16 B descriptor takes the header's part of a line's time on the I/O bus and a quarter of the rest; a frame of 1514 B is
/// 23 lines and 42 B. At 250 ns a line, of which 50 are the header, a packet takes 23 x 250 + 50 + 131.25 + 50 + 50 ns.
#[test]
fn short_writes_take_their_share_of_the_io_bus() {
    for (header, per_packet) in [("250 ns", 25.0 * 250.0), ("50 ns", 23.0 * 250.0 + 181.25 + 100.0)] {
        let bus =
            format!("override.iio = {{ line_interval = \"250 ns\", line_header = \"{header}\" }}\n        run = {{");
        let o = polled(&[
            ("0.66 Mpps", "0.3 Mpps"),
            (
                "policy = \"idio\", ways = 2, idio = { sticky = true, burst_threshold = \"100 Tbps\" }",
                "policy = \"ddio\", ways = 2",
            ),
            ("run = {", &bus),
        ]);
        // One descriptor is read for each packet as well, four in a line.
        let expected = 1e3 / (per_packet + 250.0 / 4.0);
        let got = get(&o, "throughput_mrps");
        assert!((got / expected - 1.0).abs() < 0.02, "{header}: {got} Mpps, not {expected}");
    }
}

/// idio.f.recycle_copy, idio.f.recycle_realloc, idio.f.recycle_rtc: invalidation ends write-backs of buffers in each mode;
/// of what was copied, 24 lines a packet, more than the L2 holds is written back. Without the prefetcher, which brings others.
#[test]
fn buffers_are_dropped_in_each_recycling_mode_and_copies_are_not() {
    for (mode, least, most) in [("run_to_completion", 0.0, 1.0), ("reallocate", 0.0, 1.0), ("copy", 20.0, 26.0)] {
        let recycling = format!("stack = \"poll_mode\", recycling = \"{mode}\"");
        let o = polled(&[
            ("stack = \"poll_mode\"", &recycling),
            ("run = {", "override.core.prefetch.enabled = false\n        run = {"),
        ]);
        let per_packet = get(&o, "mlc_wb") / 4096.0;
        assert!((least..most).contains(&per_packet), "{mode}: {per_packet} write-backs a packet");
        assert_eq!(get(&o, "drops"), 0.0);
    }
}

/// A control plane of the user's own is asked once an epoch, what it says holds from then on, and its error ends the run.
#[test]
fn a_control_plane_of_ones_own_turns_prefetching_off() {
    use hostnet::host::control::{Control, View};
    use hostnet::host::run_controlled;
    use hostnet::placement::Settings;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, Mutex};
    let s = scenario(&RUN.replace("policy = \"idio\"", "policy = \"idio\", mode = \"static\""));
    let calls = Arc::new(AtomicU64::new(0));
    let counted = calls.clone();
    let decide = move |seen: View| {
        counted.fetch_add(1, Ordering::Relaxed);
        assert_eq!((seen.cores.len(), seen.ways), (2, 2));
        Ok(Settings { ways: None, prefetch: vec![(0, Some(false)), (1, Some(false))] })
    };
    let control = Control::new(Time::us(10), Arc::new(Mutex::new(decide)));
    let o = run_controlled(&s, control, &mut |_| Ok(())).expect("a run");
    let epochs = o.sim.as_ns() / 10_000.0;
    assert!((calls.load(Ordering::Relaxed) as f64 - epochs).abs() <= 1.0, "{calls:?} calls in {epochs} epochs");
    assert!((get(&o, "hints") / 4096.0 - 1.0).abs() < 0.01, "headers alone: {}", get(&o, "hints"));
    for (settings, said) in [
        (Settings { ways: Some(12), prefetch: Vec::new() }, "ways = 12, which is not within 1 to 11"),
        (Settings { ways: Some(3), prefetch: Vec::new() }, ""),
    ] {
        let decide = move |_: View| if said.is_empty() { Err("enough".into()) } else { Ok(settings.clone()) };
        let control = Control::new(Time::us(10), Arc::new(Mutex::new(decide)));
        let e = run_controlled(&s, control, &mut |_| Ok(())).expect_err("an error");
        assert!(e.contains(if said.is_empty() { "enough" } else { said }), "{e}");
    }
}
