//! Tests of IDIO's mechanisms: places and ways of lines, hints, and invalidations.

use crate::common::{execute, scenario, small, IDIO_RUN};
use hostnet::core::hints::HintOverflow;
use hostnet::core::hints::Hints;
use hostnet::core::{Cpu, Op};
use hostnet::kernel::{CoreId, LineAddr, NodeId, Post, TenantId, ThreadId, Time};
use hostnet::machine::Machine;
use hostnet::memory::dram::DramSpec;
use hostnet::memory::protocol::CopyState;
use hostnet::memory::region::{AddressMap, RegionKind, Sharing};
use hostnet::memory::spec::{DeviceRead, HierarchySpec, LlcSpec, ReadHit};
use hostnet::memory::stats::{AccessClass, LineLocation, PLACES};
use hostnet::memory::{Agent, Inbound, Memory, Outbound, Sender, Sweep, Txn};

/// Ways that devices allocate into, and ways of L2 victims.
const DDIO: u32 = 0b0011;
const VICTIMS: u32 = 0b1100;
const INTO_LLC: Inbound = Inbound::Llc { ways: DDIO };
const HINT: Inbound = Inbound::Hint { ways: DDIO, core: CoreId(0) };

/// A core with an L2 of 16 lines above an LLC of 64 in four ways, whose L2 follows hints.
struct Rig {
    m: Machine,
    rx: LineAddr,
}

impl Rig {
    fn new(read_hit: ReadHit, hints: u32, mshrs: Option<u32>) -> Rig {
        Rig::with(read_hit, hints, mshrs, VICTIMS, |_| {})
    }

    fn with(read_hit: ReadHit, hints: u32, mshrs: Option<u32>, victims: u32, change: impl FnOnce(&mut LlcSpec)) -> Rig {
        Rig::reserving(0, read_hit, hints, mshrs, victims, change)
    }

    /// Hints leave `reserve` of the L2's MSHRs to loads and stores.
    fn reserving(
        reserve: u32,
        read_hit: ReadHit,
        hints: u32,
        mshrs: Option<u32>,
        victims: u32,
        change: impl FnOnce(&mut LlcSpec),
    ) -> Rig {
        let mut h: HierarchySpec = small();
        change(&mut h.llc);
        (h.llc.quirks.read_hit, h.llc.quirks.device_read) = (read_hit, DeviceRead::Demote);
        let mut map = AddressMap::default();
        let r = map.add(1 << 12, RegionKind::Rx, Sharing::Core(CoreId(0)), TenantId(0));
        let rx = map.get(r).base;
        map.make_invalidatable(rx);
        map.add(1 << 12, RegionKind::App, Sharing::Core(CoreId(0)), TenantId(0));
        let mut core = scenario(IDIO_RUN).platform.core;
        core.quirks.l2_mshrs = mshrs;
        let clock = hostnet::kernel::Clock::from_hz(core.clock.0);
        let mem = Memory::new(&h, &DramSpec::default(), clock, 1, vec![victims], map).expect("a memory system");
        let mut cpu = Cpu::new(ThreadId(0), &core);
        cpu.follow(Hints::new(hints, HintOverflow::Drop), reserve);
        let mut m = Machine::without_devices(mem, vec![cpu]);
        m.mem.set_device_ways(DDIO);
        m.now = Time::us(1);
        Rig { m, rx }
    }

    fn run(&mut self, ops: &[Op]) {
        let now = self.m.now + Time::us(1);
        execute(&mut self.m, ops, now);
    }
    fn load(&mut self, line: LineAddr) {
        self.run(&[Op::Load { line, lines: 1 }, Op::Fence]);
    }
    fn store(&mut self, line: LineAddr) {
        self.run(&[Op::Store { line, lines: 1 }, Op::Fence]);
    }

    /// A device writes lines; `settle` waits until the writes are complete.
    fn send(&mut self, line: LineAddr, lines: u16, to: Inbound) {
        let t = Txn::dma_write(Sender::Nic(None), AccessClass::NicRxWr, to, line, lines, self.m.now);
        self.m.mem.send(&mut self.m.cal, self.m.now, t);
    }
    fn write(&mut self, line: LineAddr, to: Inbound) {
        self.m.now += Time::us(1);
        self.send(line, 1, to);
        self.m.settle();
    }
    fn read(&mut self, line: LineAddr) {
        self.m.now += Time::us(1);
        let t = Txn::dma_read(Sender::Nic(None), AccessClass::NicTxRd, line, 1, self.m.now);
        self.m.mem.send(&mut self.m.cal, self.m.now, Txn { from: Outbound::Nearest, ..t });
        self.m.settle();
    }
    fn push_out(&mut self, line: LineAddr) {
        let now = self.m.now;
        self.m.mem.push_out(&mut self.m.cal, line, now);
        self.m.settle();
    }

    /// Copies of a line in the L2 or L1 and in the LLC, and whether the LLC's copy is in the ways of devices.
    fn at(&self, line: LineAddr) -> (CopyState, CopyState, bool) {
        let mem = &self.m.mem;
        let ddio = mem.llc_way(line).is_some_and(|w| DDIO >> w & 1 == 1);
        (mem.private_copy(CoreId(0), line), mem.llc_copy(NodeId(0), line), ddio)
    }
    fn dram(&self) -> u64 {
        self.m.mem.stats.dram.iter().sum()
    }
    fn balanced(&self) {
        self.m.mem.check().expect("balanced books");
    }
}

/// A rig, and one of its lines at `place`; in the private caches the line is dirty or not, where it is there.
fn line_at(place: LineLocation, dirty: bool) -> (Rig, LineAddr) {
    let read_hit = if place == LineLocation::Both { ReadHit::Retain } else { ReadHit::Migrate };
    let mut r = Rig::new(read_hit, 32, None);
    let line = r.rx + 5;
    let touch = |r: &mut Rig| if dirty { r.store(line) } else { r.load(line) };
    match place {
        LineLocation::Mlc => {
            touch(&mut r);
            r.m.mem.restart_meters(r.m.now);
        }
        LineLocation::Both => {
            r.write(line, INTO_LLC);
            r.load(line);
            touch(&mut r);
        }
        LineLocation::Llc => {
            r.store(line);
            r.push_out(line);
        }
        LineLocation::Ddio => r.write(line, INTO_LLC),
        LineLocation::Dram => {}
    }
    let expected = match place {
        LineLocation::Mlc => (if dirty { CopyState::Dirty } else { CopyState::Clean }, CopyState::Nowhere, false),
        LineLocation::Both => (if dirty { CopyState::Dirty } else { CopyState::Clean }, CopyState::Dirty, true),
        LineLocation::Llc => (CopyState::Nowhere, CopyState::Dirty, false),
        LineLocation::Ddio => (CopyState::Nowhere, CopyState::Dirty, true),
        LineLocation::Dram => (CopyState::Nowhere, CopyState::Nowhere, false),
    };
    assert_eq!(r.at(line), expected, "{place:?} dirty {dirty}");
    r.m.mem.restart_meters(r.m.now);
    (r, line)
}

fn counted(at: LineLocation) -> [u64; 5] {
    let mut n = [0; 5];
    n[at as usize] = 1;
    n
}

/// Every case ends with a dirty line in the LLC and without a DRAM access; P1 and P5 allocate in the ways of devices,
/// and lines in the other places are updated in place.
#[test]
fn a_device_write_updates_the_llc_in_place_or_allocates_in_its_ways() {
    for (place, in_ddio, invalidated) in [
        (LineLocation::Mlc, true, 1),
        (LineLocation::Both, true, 1),
        (LineLocation::Llc, false, 0),
        (LineLocation::Ddio, true, 0),
        (LineLocation::Dram, true, 0),
    ] {
        for dirty in [false, true] {
            let (mut r, line) = line_at(place, dirty);
            r.write(line, INTO_LLC);
            assert_eq!(r.at(line), (CopyState::Nowhere, CopyState::Dirty, in_ddio), "{place:?}");
            assert_eq!(r.dram(), 0, "{place:?}: nothing is fetched or written back");
            let s = &r.m.mem.stats;
            assert_eq!(s.dma(Agent::Nic).wrote_at, counted(place));
            assert_eq!(
                (s.cores[CoreId(0)].mlc_invalidations, s.cores[CoreId(0)].mlc_wb),
                (invalidated, 0),
                "{place:?}"
            );
            r.balanced();
        }
    }
}

/// Lines in P1 and dirty lines in P2 are evicted to the LLC and leave the private caches; clean lines in P2, and lines
/// in P3 and P4, stay; a line in P5 is read from DRAM and enters no cache.
#[test]
fn a_device_read_takes_what_only_a_core_has_down_to_the_llc() {
    use CopyState::{Clean, Dirty, Nowhere};
    for (place, dirty, end, write_backs, reads) in [
        (LineLocation::Mlc, false, (Nowhere, Clean, false), 1, 0),
        (LineLocation::Mlc, true, (Nowhere, Dirty, false), 1, 0),
        (LineLocation::Both, false, (Clean, Dirty, true), 0, 0),
        (LineLocation::Both, true, (Nowhere, Dirty, true), 1, 0),
        (LineLocation::Llc, false, (Nowhere, Dirty, false), 0, 0),
        (LineLocation::Ddio, false, (Nowhere, Dirty, true), 0, 0),
        (LineLocation::Dram, false, (Nowhere, Nowhere, false), 0, 1),
    ] {
        let (mut r, line) = line_at(place, dirty);
        r.read(line);
        assert_eq!(r.at(line), end, "{place:?} dirty {dirty}");
        let s = &r.m.mem.stats;
        assert_eq!(
            (s.cores[CoreId(0)].mlc_wb, s.of(AccessClass::NicTxRd), r.dram()),
            (write_backs, reads, reads),
            "{place:?}"
        );
        assert_eq!(s.dma(Agent::Nic).read_at, counted(place));
        r.balanced();
    }
}

/// A line in the LLC moves to the L2; an evicted line comes from DRAM and bypasses the LLC.
#[test]
fn a_core_moves_a_received_line_from_the_llc_or_fetches_it_from_dram() {
    let (mut r, line) = line_at(LineLocation::Ddio, false);
    r.load(line);
    assert_eq!((r.at(line), r.dram()), ((CopyState::Dirty, CopyState::Nowhere, false), 0));
    let (mut r, line) = line_at(LineLocation::Ddio, false);
    let now = r.m.now;
    assert_eq!(r.m.mem.force_out(&mut r.m.cal, line, now), Some(true));
    r.load(line);
    assert_eq!(r.at(line), (CopyState::Clean, CopyState::Nowhere, false));
    assert_eq!((r.m.mem.stats.of(AccessClass::RxEvct), r.m.mem.stats.of(AccessClass::CpuRxRd)), (1, 1));
    r.balanced();
}

/// A read line that the L2 evicts leaves the ways of devices, and write-backs to DRAM are distinguished by whether a
/// core had read the line.
#[test]
fn a_victim_of_the_l2_is_outside_the_ways_of_devices_and_its_write_back_is_no_leak() {
    let (mut r, line) = line_at(LineLocation::Ddio, false);
    r.load(line);
    // Lines 16 apart share a set of both L2 and LLC. Four more lines displace the first from four ways of L2 and two of
    // L1.
    for i in 1..=4 {
        r.load(line + 16 * i);
    }
    let (private, llc, ddio) = r.at(line);
    assert_eq!((private, llc, ddio), (CopyState::Nowhere, CopyState::Dirty, false));
    let s = &r.m.mem.stats;
    assert!(s.cores[CoreId(0)].mlc_wb >= 1 && s.cores[CoreId(0)].mlc_wb_consumed >= 1);
    assert_eq!(s.llc_wb, 0);
    r.m.mem.force_out(&mut r.m.cal, line, r.m.now);
    assert_eq!((r.m.mem.stats.llc_wb, r.m.mem.stats.rx_evct_premature), (1, 0));
    let unread = r.rx + 200;
    r.write(unread, INTO_LLC);
    r.m.mem.force_out(&mut r.m.cal, unread, r.m.now);
    assert_eq!((r.m.mem.stats.llc_wb, r.m.mem.stats.rx_evct_premature), (2, 1));
}

/// Of four ways the lowest belongs to devices and the highest to the directory. A line that a core also has is in the
/// highest way. A line that only the LLC has is in the lowest way when a device has written it, and in between when an
/// L2 evicted it.
#[test]
fn each_line_is_in_the_ways_of_its_kind() {
    let way = |r: &Rig, line: LineAddr| r.m.mem.llc_way(line);
    for (place, ways) in [
        (LineLocation::Mlc, None),
        (LineLocation::Both, Some(0b1000)),
        (LineLocation::Llc, Some(0b0110)),
        (LineLocation::Ddio, Some(0b0001)),
        (LineLocation::Dram, None),
    ] {
        let read_hit = if place == LineLocation::Both { ReadHit::Retain } else { ReadHit::Migrate };
        let mut r = Rig::with(read_hit, 32, None, 0b1110, |llc| llc.quirks.inclusive_ways = 1);
        let (line, one) = (r.rx + 5, Inbound::Llc { ways: 0b0001 });
        match place {
            LineLocation::Mlc => r.load(line),
            LineLocation::Both => {
                r.write(line, one);
                r.load(line);
                assert_eq!(r.at(line).1, CopyState::Dirty, "the LLC keeps its copy as it was");
            }
            LineLocation::Llc => {
                r.store(line);
                r.push_out(line);
            }
            LineLocation::Ddio => r.write(line, one),
            LineLocation::Dram => {}
        }
        let is = way(&r, line).map(|w| 1u32 << w);
        assert_eq!(is.is_some(), ways.is_some(), "{place:?}");
        assert!(is.is_none_or(|w| ways.is_some_and(|m| w & m != 0)), "{place:?} is in {is:?}");
        r.balanced();
    }
}

/// Victims of the L2 fill their own two ways and no others: of the lines of one set, two stay.
#[test]
fn victims_of_the_l2_have_what_the_directory_and_devices_leave() {
    let mut r = Rig::with(ReadHit::Migrate, 32, None, 0b1110, |llc| llc.quirks.inclusive_ways = 1);
    let lines: Vec<LineAddr> = (0..6).map(|i| r.rx + 5 + 16 * i).collect();
    for l in &lines {
        r.store(*l);
        r.push_out(*l);
    }
    let held = lines.iter().filter(|l| r.m.mem.llc_way(**l).is_some()).count();
    assert_eq!(held, 2, "of four ways");
    assert_eq!(r.m.mem.stats.llc_wb, 4);
    r.balanced();
}

/// A line that enters the directory's ways displaces another line, as a miss does: its MSHR is freed when the displaced
/// line has been accepted.
#[test]
fn a_register_for_a_line_that_comes_to_the_directory_s_ways_is_given_back() {
    for n in [1, 2] {
        let own = |llc: &mut LlcSpec| (llc.quirks.inclusive_ways, llc.quirks.mshrs) = (1, n);
        let mut r = Rig::with(ReadHit::Retain, 32, None, 0b1110, own);
        // All lines belong to one set, so that later lines displace earlier ones from the only way that lines of a core
        // have in that set.
        for i in 0..2 * u64::from(n) + 2 {
            let line = r.rx + 5 + 16 * i;
            r.write(line, Inbound::Llc { ways: 0b0001 });
            r.load(line);
            assert_eq!(r.m.mem.llc_way(line), Some(3));
            r.balanced();
        }
        let slices = r.m.mem.mshrs().expect("registers").registers();
        assert_eq!(slices.map(|d| (d.used(), d.peak())).collect::<Vec<_>>(), [(0, 1)]);
    }
}

/// The hinted line moves from the LLC to the L2 without a DRAM access. The hint is not a use of the line: an eviction
/// before the core reads the line is premature.
#[test]
fn a_hint_brings_the_line_to_the_l2_and_is_no_use_of_it() {
    let mut r = Rig::new(ReadHit::Migrate, 32, None);
    let line = r.rx + 9;
    r.write(line, HINT);
    assert_eq!((r.at(line), r.dram()), ((CopyState::Dirty, CopyState::Nowhere, false), 0));
    let h = r.m.cpus[ThreadId(0)].hints.as_ref().expect("follows hints").counts;
    assert_eq!((h.came, h.fetched, h.dropped, h.late), (1, 1, 0, 0));
    r.push_out(line);
    let now = r.m.now;
    r.m.mem.force_out(&mut r.m.cal, line, now);
    assert_eq!((r.m.mem.stats.rx_evct_premature, r.m.mem.stats.rx_evct_consumed), (1, 0));
    // A line that the core has read is consumed, whichever way it arrived.
    r.write(line, HINT);
    r.load(line);
    r.m.mem.consumed(line, 1);
    r.push_out(line);
    let now = r.m.now;
    r.m.mem.force_out(&mut r.m.cal, line, now);
    assert_eq!((r.m.mem.stats.rx_evct_premature, r.m.mem.stats.rx_evct_consumed), (1, 1));
    r.balanced();
}

/// Hints share the L2's MSHRs with loads. Four may be in flight, and each takes 1 + 4 + 14 + ... cycles, so that of 40
/// simultaneous hints four become prefetches, as many as there are places wait, and the others are lost.
#[test]
fn hints_wait_for_misses_of_the_l2_and_are_lost_when_the_queue_is_full() {
    let mut r = Rig::new(ReadHit::Migrate, 8, Some(4));
    r.send(r.rx, 40, HINT);
    r.m.settle();
    let h = r.m.cpus[ThreadId(0)].hints.as_ref().expect("follows hints").counts;
    assert_eq!((h.came, h.fetched, h.dropped), (40, 12, 28), "four at once, and eight that waited");
    assert_eq!(r.m.cpus[ThreadId(0)].mshrs.as_ref().map(|m| m.used()), Some(0));
    r.balanced();
    // Two of the four MSHRs are left to accesses.
    let mut r = Rig::reserving(2, ReadHit::Migrate, 8, Some(4), VICTIMS, |_| {});
    r.send(r.rx, 40, HINT);
    r.m.settle();
    let h = r.m.cpus[ThreadId(0)].hints.as_ref().expect("follows hints").counts;
    assert_eq!((h.came, h.fetched, h.dropped), (40, 10, 30), "two at once, and eight that waited");
    r.balanced();
    // Loads that miss make hints wait: the core's loads, from DRAM, go first.
    let mut r = Rig::new(ReadHit::Migrate, 8, Some(4));
    let now = r.m.now + Time::us(1);
    r.m.cpus[ThreadId(0)].program.ops = (0..4).map(|i| Op::Load { line: r.rx + 100 + i, lines: 1 }).collect();
    r.m.now = now;
    r.m.start(ThreadId(0));
    r.send(r.rx, 2, HINT);
    let mut last_load = None;
    while let Some(e) = r.m.pop() {
        r.m.handle(e);
        let fetched = r.m.cpus[ThreadId(0)].hints.as_ref().expect("follows hints").counts.fetched;
        let loads = (0..4).filter(|i| r.m.mem.holds(CoreId(0), r.rx + 100 + *i)).count();
        if fetched > 0 && last_load.is_none() {
            last_load = Some(loads);
        }
    }
    assert!(last_load.is_some_and(|n| n >= 1), "a hint is followed once a load has ended: {last_load:?}");
    r.balanced();
}

/// A hint is not a use of a line; the load that finds the line is one.
#[test]
fn a_hinted_line_is_unread_until_a_load_hits_it() {
    let mut r = Rig::new(ReadHit::Migrate, 32, None);
    let line = r.rx + 3;
    r.write(line, HINT);
    assert_eq!(r.at(line).0, CopyState::Dirty, "it is in the L2");
    assert_eq!(r.m.mem.received_lines()[3..], [1, 0, 1, 0], "unread, and the first of its packet");
    r.load(line);
    assert_eq!(r.m.mem.received_lines()[3..], [0, 1, 1, 1], "read, in the L2");
}

/// A load of a line whose prefetch is in flight waits for the prefetch, and does not request the line again.
#[test]
fn a_load_joins_the_prefetch_of_its_line() {
    let mut r = Rig::new(ReadHit::Migrate, 32, None);
    let line = r.rx + 3;
    r.m.now += Time::us(1);
    let at = r.m.now + r.m.mem.lat.noc;
    r.m.mem.dma_functional(
        &mut r.m.cal,
        &Txn::dma_write(Sender::Nic(None), AccessClass::NicRxWr, INTO_LLC, line, 1, r.m.now),
    );
    r.m.cal.post(at, hostnet::memory::MemoryEvent::hint(CoreId(0), line));
    r.m.cpus[ThreadId(0)].program.ops =
        vec![Op::Stall(at.0 - r.m.now.0 + 1_000), Op::Load { line, lines: 1 }, Op::Fence];
    r.m.start(ThreadId(0));
    r.m.settle();
    let t = &r.m.mem.stats.tenants[TenantId(0)];
    assert_eq!((t.llc_hits, t.llc_misses), (1, 0));
    assert_eq!(r.at(line).0, CopyState::Dirty);
    r.balanced();
}

/// Copies that an invalidation leaves, by place and depth; dirty data is dropped and DRAM is not accessed.
#[test]
fn an_invalidation_drops_lines_as_deep_as_it_reaches_without_a_write_back() {
    for place in [LineLocation::Mlc, LineLocation::Both, LineLocation::Llc, LineLocation::Ddio] {
        for (op, dirty) in [Sweep::InvalidateOwn, Sweep::Invalidate].into_iter().flat_map(|o| [(o, false), (o, true)]) {
            let (mut r, line) = line_at(place, dirty);
            let llc = r.at(line).1;
            r.run(&[Op::Invalidate { line, lines: 1, op, instructions: 1 }, Op::Fence]);
            let left = if op == Sweep::Invalidate { CopyState::Nowhere } else { llc };
            let at = r.at(line);
            assert_eq!((at.0, at.1), (CopyState::Nowhere, left), "{place:?} {op:?}");
            assert_eq!((r.dram(), r.m.mem.stats.llc_wb), (0, 0));
            assert_eq!(r.m.mem.stats.sweep_messages, u64::from(op == Sweep::Invalidate), "messages of {op:?}");
            r.balanced();
        }
    }
}

/// An invalidation of a range takes one instruction, an invalidation by lines takes one per line.
#[test]
fn a_range_is_one_instruction_and_drops_every_line_of_it() {
    for (instructions, each) in [(24, 24), (1, 1)] {
        let mut r = Rig::new(ReadHit::Migrate, 32, None);
        let line = r.rx;
        r.send(line, 12, INTO_LLC);
        r.m.settle();
        let before = r.m.cpus[ThreadId(0)].instructions;
        r.run(&[Op::Invalidate { line, lines: 12, op: Sweep::Invalidate, instructions: each }]);
        assert_eq!(r.m.cpus[ThreadId(0)].instructions - before, instructions);
        assert!(line.span(12u64).all(|l| r.at(l) == (CopyState::Nowhere, CopyState::Nowhere, false)));
        assert_eq!(r.dram(), 0);
        r.balanced();
    }
}

/// On a page without the bit the instruction has no effect, so that no program sees the content from before the page
/// was zeroed.
#[test]
fn pages_without_the_bit_keep_their_newest_data() {
    for op in [Sweep::InvalidateOwn, Sweep::Invalidate] {
        let mut r = Rig::new(ReadHit::Migrate, 32, None);
        r.m.mem.shadow = Some(Box::default());
        let zeroed = r.m.mem.map.iter().nth(1).expect("the application's region").base;
        r.store(zeroed);
        let version = r.m.mem.version(zeroed);
        r.run(&[Op::Invalidate { line: zeroed, lines: 1, op, instructions: 1 }, Op::Fence]);
        assert_eq!(r.at(zeroed).0, CopyState::Dirty);
        assert_eq!((r.m.mem.version(zeroed), r.m.mem.stats.refused_invalidations), (version, 1), "{op:?}");
        // On a page with the bit, written data is lost.
        r.store(r.rx);
        let version = r.m.mem.version(r.rx);
        r.run(&[Op::Invalidate { line: r.rx, lines: 1, op, instructions: 1 }, Op::Fence]);
        assert_ne!(r.m.mem.version(r.rx), version);
        r.m.mem.coherent(r.rx).expect("coherent");
    }
}

/// Payload of class 1 is one DRAM write, and copies in caches are dropped.
#[test]
fn a_line_for_dram_invalidates_every_copy_without_writing_it_back() {
    for place in PLACES {
        for dirty in [false, true] {
            let (mut r, line) = line_at(place, dirty);
            r.write(line, Inbound::Dram);
            assert_eq!(r.at(line), (CopyState::Nowhere, CopyState::Nowhere, false), "{place:?}");
            assert_eq!((r.m.mem.stats.of(AccessClass::NicRxWr), r.dram()), (1, 1), "{place:?}");
            assert_eq!(r.m.mem.stats.dma(Agent::Nic).wrote_at, counted(place));
            r.balanced();
        }
    }
}
