//! Tests of the coherent memory system: placement of NIC writes, victims, snoops, sweeps, and the accounting of dirty
//! lines.

use crate::common::{close, get, simulate, small, Rig, LLC_SETS};
use hostnet::kernel::{CoreId, LineAddr, NodeId, RandomStream, TenantId, Time};
use hostnet::machine::{Event, Events};
use hostnet::memory::array::Replacement;
use hostnet::memory::protocol::CopyState;
use hostnet::memory::spec::{CleanVictim, DeviceRead, ReadHit, StoreHit, UpgradeMiss};
use hostnet::memory::stats::AccessClass;
use hostnet::memory::{Agent, Inbound, Outbound, Probe, Sender, Sweep, Txn, TxnOp};

const ALL: u32 = 0b1111;
const LOW_TWO: Inbound = Inbound::Llc { ways: 0b0011 };

fn rig() -> Rig {
    Rig::new(&small(), ALL)
}

impl Rig {
    fn nic(&mut self, line: LineAddr, to: Inbound) {
        self.device_writes(Agent::Nic, line, 1, to);
    }
    fn sweep(&mut self, line: LineAddr, op: Sweep) {
        self.m.mem.on_sweep(&mut self.m.cal, line, op, self.m.now);
        self.settle();
    }
    fn of(&self, c: AccessClass) -> u64 {
        self.m.mem.stats.of(c)
    }
    fn balanced(&self) {
        self.m.mem.check().unwrap();
        assert_eq!(self.m.mem.in_flight(), 0);
    }
}

#[test]
fn a_ddio_write_that_misses_allocates_only_in_the_open_ways_and_reads_no_dram() {
    let mut r = rig();
    for i in 0..200 {
        let line = r.rx + i;
        r.nic(line, LOW_TWO);
    }
    let (held, outside) = r.m.mem.llc_rx_lines(0b0011);
    assert_eq!((held, outside), (2 * LLC_SETS, 0));
    assert_eq!(r.m.mem.stats.dma(Agent::Nic).write_misses, 200);
    // what went out was written, nothing was fetched
    assert_eq!(r.of(AccessClass::RxEvct), 200 - 2 * LLC_SETS);
    assert_eq!(r.dram_transfers(), r.of(AccessClass::RxEvct));
    r.balanced();
}

/// `n` times, a device writes one of 96 lines, or a core, a sweep or a device accesses a written line; after each
/// `every` operations the test asks for the places of received lines. Returns the result of the last count.
fn received_after(n: u64, every: u64) -> [u64; 7] {
    let mut r = rig();
    let mut dice = RandomStream::new(7, "received lines", 0);
    let mut written = [false; 96];
    let mut ways = 0;
    for i in 0..n {
        let at = dice.below(96);
        ways = if dice.below(2) == 0 { 0b0011 } else { 0b0111 };
        r.m.mem.set_device_ways(ways);
        let (line, what) = (r.rx + at, dice.below(5));
        match what * u64::from(std::mem::replace(&mut written[at as usize], true)) {
            0 => r.nic(line, Inbound::Llc { ways }),
            1 => drop(r.read(line)),
            2 => drop(r.write(line)),
            3 => r.device_reads(Agent::Nic, line, 1, Outbound::Nearest),
            _ => r.sweep(line, Sweep::Sweep),
        }
        if i % every == 0 {
            r.m.mem.received_lines();
        }
    }
    let found = r.m.mem.received_lines();
    let in_llc = |ways| r.m.mem.llc_rx_lines(ways).0 - r.m.mem.llc_rx_lines(ways).1;
    assert_eq!(found[1] + found[2], r.m.mem.llc_rx_lines(0).0);
    assert_eq!(found[1], in_llc(ways), "{found:?}");
    r.balanced();
    found
}

#[test]
fn where_received_lines_are_does_not_hang_on_how_often_one_asks() {
    let mut all = [0; 7];
    for n in (1..400).chain([3000]) {
        let once = received_after(n, u64::MAX - 1);
        assert_eq!(received_after(n, 1), once, "after {n}");
        assert_eq!(received_after(n, 37), once, "after {n}");
        (0..7).for_each(|i| all[i] += once[i]);
    }
    assert!(all.iter().all(|n| *n > 0), "each place has been seen: {all:?}");
}

/// More changes than are recorded between two counts.
#[test]
fn where_received_lines_are_is_counted_anew_after_very_many_moves() {
    assert_eq!(received_after(150_000, 140_000), received_after(150_000, u64::MAX - 1));
}

#[test]
fn a_ddio_write_that_hits_stays_in_its_way_even_outside_the_open_ones() {
    let mut r = Rig::new(&small(), 0b1000); // cores fill way 3 only
    let line = r.rx;
    r.nic(line, Inbound::Dram);
    r.write(line);
    r.m.mem.push_out(&mut r.m.cal, line, r.m.now);
    assert_eq!(r.m.mem.llc_rx_lines(0b1000), (1, 0), "the victim lies in way 3");
    r.nic(line, LOW_TWO);
    assert_eq!(r.m.mem.llc_rx_lines(0b1000), (1, 0));
    assert_eq!(r.m.mem.stats.dma(Agent::Nic).write_misses, 1, "the first, to DRAM");
    assert_eq!(r.m.mem.copies(line), (1, 1));
    r.balanced();
}

#[test]
fn nic_writes_invalidate_private_copies() {
    for (to, left) in [(LOW_TWO, 1), (Inbound::Dram, 0)] {
        let mut r = rig();
        let line = r.rx;
        r.nic(line, to);
        r.read(line);
        assert!(r.m.mem.copies(line).0 > left);
        r.nic(line, to);
        assert_eq!(r.m.mem.copies(line).0, left, "{to:?}");
        assert_eq!(r.read(line).probe, Probe::Miss);
        r.balanced();
    }
}

#[test]
fn a_dma_write_goes_to_dram_once_and_the_core_fetches_it_once() {
    let mut r = rig();
    let line = r.rx;
    r.nic(line, Inbound::Dram);
    assert_eq!((r.of(AccessClass::NicRxWr), r.m.mem.copies(line).0), (1, 0));
    r.read(line);
    assert_eq!((r.of(AccessClass::CpuRxRd), r.dram_transfers()), (1, 2));
    r.balanced();
}

#[test]
fn dma_transmission_writes_dirty_lines_back_and_reads_dram() {
    let mut r = rig();
    let line = r.tx;
    r.write(line);
    assert_eq!(r.of(AccessClass::CpuTxRdWr), 1);
    r.device_reads(Agent::Nic, line, 1, Outbound::Dram);
    assert_eq!((r.of(AccessClass::TxEvct), r.of(AccessClass::NicTxRd)), (1, 1));
    r.device_reads(Agent::Nic, line, 1, Outbound::Dram);
    assert_eq!((r.of(AccessClass::TxEvct), r.of(AccessClass::NicTxRd)), (1, 2), "clean by now");
    r.balanced();
}

#[test]
fn ddio_transmission_is_served_by_the_caches_and_does_not_allocate_on_a_miss() {
    let mut r = rig();
    let line = r.tx;
    r.write(line);
    r.device_reads(Agent::Nic, line, 1, Outbound::Nearest);
    assert_eq!(r.of(AccessClass::NicTxRd), 0);
    r.device_reads(Agent::Nic, line + 1, 1, Outbound::Nearest);
    assert_eq!((r.of(AccessClass::NicTxRd), r.m.mem.copies(line + 1).0), (1, 0));
    r.balanced();
}

#[test]
fn ideal_network_data_never_touches_dram_and_costs_an_llc_hit() {
    let mut r = rig();
    r.m.mem.ideal_network = true;
    for i in 0..1000 {
        let line = r.rx + i;
        r.nic(line, Inbound::OutsideCaches);
    }
    for i in 0..1000 {
        let seen = r.read(r.rx + i);
        assert_eq!(seen.took, Time(21_563)); // 69 cycles of 312.5 ps
    }
    assert_eq!(r.dram_transfers(), 0);
    assert_eq!(r.m.mem.llc_rx_lines(0).0, 0);
    r.balanced();
}

#[test]
fn a_core_s_read_leaves_the_nic_s_line_dirty_in_the_llc() {
    let mut r = rig();
    let line = r.rx;
    r.nic(line, LOW_TWO);
    r.read(line);
    assert_eq!(r.m.mem.copies(line), (3, 1)); // L1, L2 and the dirty one
    assert_eq!(r.m.mem.force_out(&mut r.m.cal, line, r.m.now), Some(true));
    r.settle();
    assert_eq!(r.of(AccessClass::RxEvct), 1);
    r.balanced();
}

#[test]
fn where_reads_migrate_the_llc_gives_line_and_duty_away() {
    let mut h = small();
    h.llc.quirks.read_hit = ReadHit::Migrate;
    let mut r = Rig::new(&h, ALL);
    let line = r.rx;
    r.nic(line, LOW_TWO);
    r.read(line);
    assert_eq!(r.m.mem.copies(line), (2, 0));
    r.m.mem.push_out(&mut r.m.cal, line, r.m.now);
    assert_eq!(r.m.mem.copies(line), (1, 1), "the victim is dirty");
    r.balanced();
}

#[test]
fn ownership_takes_the_dirty_line_out_of_the_llc() {
    let mut r = rig();
    let line = r.rx;
    r.nic(line, LOW_TWO);
    r.write(line);
    assert_eq!(r.m.mem.copies(line).1, 0);
    assert_eq!(r.m.mem.force_out(&mut r.m.cal, line, r.m.now), None);
    r.m.mem.push_out(&mut r.m.cal, line, r.m.now);
    assert_eq!(r.m.mem.force_out(&mut r.m.cal, line, r.m.now), Some(true));
    r.settle();
    assert_eq!(r.dram_transfers(), 1, "one write-back for two dirty versions");
    r.balanced();
}

#[test]
fn a_clean_victim_takes_the_duty_to_write_back_along_only_where_it_cleans() {
    for cleans in [false, true] {
        let mut h = small();
        h.llc.quirks.read_hit = ReadHit::Retain;
        h.llc.quirks.clean_victim_cleans = cleans;
        let mut r = Rig::new(&h, 0b1100);
        let line = r.rx;
        r.nic(line, LOW_TWO);
        r.read(line);
        assert_eq!(r.m.mem.copies(line), (3, 1), "the LLC has the duty, the core clean copies");
        (0..40).for_each(|i| _ = r.read(r.app + i)); // more than the L2 holds
        assert_eq!(r.m.mem.copies(line), (1, u32::from(!cleans)));
        assert_eq!(r.m.mem.force_out(&mut r.m.cal, line, r.m.now), Some(!cleans));
        r.settle();
        assert_eq!(r.of(AccessClass::RxEvct), u64::from(!cleans));
        r.balanced();
    }
}

#[test]
fn a_store_whose_line_the_llc_has_lost_takes_it_into_the_tenant_s_ways_only_where_it_fetches() {
    for (upgrade_miss, fetches) in [(UpgradeMiss::Grant, 0), (UpgradeMiss::Fetch, 1)] {
        let mut h = small();
        (h.llc.quirks.device_read, h.llc.quirks.store_hit) = (DeviceRead::Install, StoreHit::Retain);
        h.llc.quirks.upgrade_miss = upgrade_miss;
        assert_eq!(h.check(), Ok(()));
        let mut r = Rig::new(&h, 0b1000);
        let line = r.tx;
        r.m.mem.set_device_ways(0b0011);
        r.write(line);
        r.device_reads(Agent::Nic, line, 1, Outbound::Nearest);
        // Two received lines of the same set take both ways of devices.
        let pushes = |r: &mut Rig, from: u64| (from..from + 2).for_each(|i| r.nic(r.rx + i * LLC_SETS, LOW_TWO));
        pushes(&mut r, 0);
        assert_eq!(
            (r.m.mem.private_copy(CoreId(0), line), r.m.mem.llc_copy(NodeId(0), line)),
            (CopyState::Clean, CopyState::Nowhere)
        );
        assert_eq!(r.of(AccessClass::TxEvct), 1);
        r.write(line);
        assert_eq!(r.of(AccessClass::CpuTxRdWr), 1 + fetches, "and the first store");
        r.device_reads(Agent::Nic, line, 1, Outbound::Nearest);
        pushes(&mut r, 2);
        // A line that is read back into the devices' ways is evicted again; in the tenant's way it stays.
        assert_eq!(r.of(AccessClass::TxEvct), 2 - fetches);
        r.balanced();
    }
    let mut h = small();
    h.llc.quirks.upgrade_miss = UpgradeMiss::Fetch;
    assert_eq!(h.check(), Err("caches.llc.quirks.upgrade_miss = \"fetch\" needs device_read = \"install\"".into()));
}

#[test]
fn clean_l2_victims_fill_the_tenant_s_ways_or_are_dropped() {
    for (policy, held) in [(CleanVictim::Allocate, LLC_SETS), (CleanVictim::Drop, 0)] {
        let mut h = small();
        h.llc.quirks.clean_victim = policy;
        let mut r = Rig::new(&h, 0b0100);
        for i in 0..200 {
            let line = r.rx + i;
            r.nic(line, Inbound::Dram);
            r.read(line);
        }
        assert_eq!(r.m.mem.llc_rx_lines(0b0100), (held, 0), "{policy:?}");
        assert_eq!(r.of(AccessClass::RxEvct), 0, "they were clean");
        r.balanced();
    }
}

#[test]
fn dirty_l2_victims_always_reach_the_llc_and_from_there_dram() {
    let mut h = small();
    h.llc.quirks.clean_victim = CleanVictim::Drop;
    let mut r = Rig::new(&h, 0b0100);
    let n = 200;
    for i in 0..n {
        let line = r.app + i;
        r.write(line);
    }
    // 16 sets of one way, and L2 and L1: all other lines were written
    let resident = (0..n).filter(|i| r.m.mem.copies(r.app + *i).0 > 0).count() as u64;
    assert!((LLC_SETS + 16..=LLC_SETS + 20).contains(&resident), "{resident}");
    assert_eq!(r.of(AccessClass::OtherEvct), n - resident);
    assert_eq!(r.of(AccessClass::CpuOtherRd), n);
    r.balanced();
}

#[test]
fn a_reader_gets_another_core_s_dirty_line_without_dram_and_both_keep_it() {
    let mut r = rig();
    let line = r.shared;
    r.access(0, line, true);
    let before = r.dram_transfers();
    let seen = r.access(1, line, false);
    assert_eq!(r.dram_transfers(), before);
    // 69 cycles, and to the owner's L2 and back: 8 + 14 + 8
    assert_eq!(seen.took, Time(30_938));
    assert_eq!(r.access(0, line, false).probe, Probe::L1);
    assert_eq!(r.access(1, line, false).probe, Probe::L1);
    r.balanced();
}

#[test]
fn a_store_to_a_shared_line_takes_it_from_the_other_cores() {
    let mut r = rig();
    let line = r.shared;
    r.access(0, line, true);
    r.access(1, line, false);
    assert_eq!(r.access(1, line, true).probe, Probe::Miss, "a shared copy is not owned");
    assert_eq!(r.access(0, line, false).probe, Probe::Miss, "the old owner lost it");
    assert_eq!(r.of(AccessClass::CpuOtherRd), 1, "only the very first access saw DRAM");
    r.balanced();
}

#[test]
fn a_sweep_drops_dirty_data_at_every_level_without_a_dram_write() {
    let mut r = rig();
    let line = r.rx;
    let places: [fn(&mut Rig, LineAddr); 3] = [
        |r, l| {
            r.write(l); // L1
        },
        |r, l| {
            // dirty in the L2: two more lines of the same L1 set evict the line
            r.write(l);
            r.read(l + 2);
            r.read(l + 4);
        },
        |r, l| r.nic(l, LOW_TWO), // LLC
    ];
    for (i, place) in places.iter().enumerate() {
        for l in [line, line + 2, line + 4] {
            r.nic(l, LOW_TWO);
            r.read(l);
            r.m.mem.consumed(l, 1);
            r.sweep(l, Sweep::Sweep);
            r.nic(l, LOW_TWO);
        }
        place(&mut r, line);
        r.m.mem.consumed(line, 1);
        let before = r.m.mem.stats.ledger.swept;
        r.sweep(line, Sweep::Sweep);
        assert_eq!(r.m.mem.copies(line), (0, 0), "place {i}");
        assert!(r.m.mem.stats.ledger.swept > before, "place {i}");
    }
    assert_eq!(r.of(AccessClass::RxEvct), 0);
    assert_eq!((r.m.mem.stats.stale_reads, r.m.mem.stats.sweep_races), (0, 0));
    r.balanced();
}

#[test]
fn reading_a_swept_line_and_sweeping_an_unread_one_are_noticed() {
    let mut r = rig();
    let line = r.rx;
    r.nic(line, LOW_TWO);
    r.sweep(line, Sweep::Sweep);
    assert_eq!(r.m.mem.stats.sweep_races, 1);
    r.read(line);
    assert_eq!(r.m.mem.stats.stale_reads, 1);
}

#[test]
fn clflushopt_writes_dirty_data_back_once_and_leaves_no_copy() {
    let mut r = rig();
    let line = r.app;
    r.write(line);
    r.sweep(line, Sweep::Flush);
    assert_eq!((r.of(AccessClass::OtherEvct), r.m.mem.copies(line)), (1, (0, 0)));
    r.read(line);
    r.sweep(line, Sweep::Flush);
    assert_eq!((r.of(AccessClass::OtherEvct), r.m.mem.copies(line)), (1, (0, 0)), "clean data is not written");
    r.balanced();
}

#[test]
fn clwb_writes_dirty_data_back_once_and_leaves_clean_copies() {
    let mut r = rig();
    let line = r.app;
    r.write(line);
    let copies = r.m.mem.copies(line).0;
    for _ in 0..2 {
        r.sweep(line, Sweep::WriteBack);
        assert_eq!((r.of(AccessClass::OtherEvct), r.m.mem.copies(line).0), (1, copies));
    }
    assert_eq!(r.read(line).probe, Probe::L1);
    r.balanced();
}

#[test]
fn evictions_before_the_first_read_are_premature_and_cost_a_dram_read_each() {
    let mut r = rig();
    let n = 100;
    for i in 0..n {
        let line = r.rx + i;
        r.nic(line, LOW_TWO);
    }
    let premature = r.m.mem.stats.rx_evct_premature;
    assert_eq!(premature, n - 2 * LLC_SETS);
    for i in (0..n).rev() {
        r.read(r.rx + i); // newest first, so that reading does not evict unread lines
    }
    assert_eq!(r.of(AccessClass::CpuRxRd), premature);
    assert_eq!(r.m.mem.stats.rx_evct_premature, premature);
    // a second round evicts the consumed lines
    for i in 0..n {
        let line = r.rx + 200 + i;
        r.nic(line, LOW_TWO);
    }
    let s = &r.m.mem.stats;
    assert_eq!(s.rx_evct_premature + s.rx_evct_consumed, r.of(AccessClass::RxEvct));
    assert!(s.rx_evct_consumed > 0);
    r.balanced();
}

#[test]
fn every_dirty_line_is_accounted_for_under_random_traffic() {
    for (seed, migrate, inclusive) in [(1, false, false), (2, true, false), (3, false, true)] {
        let mut h = small();
        h.llc.quirks.read_hit = if migrate { ReadHit::Migrate } else { ReadHit::Retain };
        h.l2_inclusive = inclusive;
        let mut r = Rig::new(&h, 0b1110);
        let mut dice = RandomStream::new(seed, "ledger", 0);
        for step in 0..20_000 {
            let at = dice.below(120);
            let core = dice.below(2) as u32;
            match dice.below(9) {
                0 | 1 => r.nic(r.rx + at, LOW_TWO),
                2 => r.nic(r.rx + at, Inbound::Dram),
                3 => _ = r.write(r.rx + at),
                4 => _ = r.read(r.rx + at),
                5 => _ = r.access(core, r.shared + at, true),
                6 => _ = r.access(core, r.shared + at, false),
                7 => r.request(0, r.app + at, TxnOp::Stream),
                _ => {
                    let op = [Sweep::Sweep, Sweep::Flush, Sweep::WriteBack][dice.below(3) as usize];
                    let base = [r.rx, r.shared, r.app][dice.below(3) as usize];
                    r.sweep(base + at, op);
                }
            }
            if step % 100 == 0 {
                r.settle();
                r.m.mem.check().unwrap_or_else(|e| panic!("step {step}, seed {seed}: {e}"));
            }
        }
        r.settle();
        r.balanced();
    }
}

#[test]
fn a_dirty_line_that_gets_lost_is_caught() {
    let mut r = rig();
    let line = r.rx;
    r.nic(line, LOW_TWO);
    r.request(0, line, TxnOp::Own);
    r.m.settle(); // the answer is discarded, and with it the only dirty copy
    let why = r.m.mem.check().unwrap_err();
    assert!(why.contains("dirty lines are not conserved: 0 resident"), "{why}");
}

#[test]
fn cores_leave_the_home_agent_s_last_credits_to_the_nic() {
    let mut spec = small();
    (spec.llc.write_buffer, spec.llc.quirks.nic_credits) = (8, 4);
    for (waiting, core_enters, nic_enters) in [(3, true, true), (4, false, true), (7, false, true), (8, false, false)] {
        let mut r = Rig::new(&spec, ALL);
        let mut i = 0;
        while r.m.mem.nodes[NodeId(0)].cha_writes.used() < waiting {
            let t = Txn::dma_write(Sender::Nic(None), AccessClass::NicRxWr, Inbound::Dram, r.rx + i, 1, r.m.now);
            r.m.mem.dma_functional(&mut r.m.cal, &t);
            i += 1;
        }
        let writes = r.m.mem.stats.dma(Agent::Nic).writes;
        r.request(0, r.app, TxnOp::Read);
        let burst = Txn::dma_write(Sender::Nic(None), AccessClass::NicRxWr, Inbound::Dram, r.rx + i, 1, r.m.now);
        r.m.mem.send(&mut r.m.cal, r.m.now + Time::ns(20), burst); // behind the core's
        let mut later = Vec::new();
        while let Some(e) = r.m.pop() {
            match e {
                Event::Cha(_) => _ = r.m.handle(e),
                e => later.push((r.m.now, e)), // DRAM stands still meanwhile
            }
        }
        let entered = r.m.mem.stats.tenants[TenantId(0)].llc_misses == 1;
        assert_eq!(entered, core_enters, "{waiting} writes wait");
        assert_eq!(r.m.mem.stats.dma(Agent::Nic).writes - writes, u64::from(nic_enters), "{waiting} writes wait");
        r.m.cal = Events::default(); // the commands that stood still lie before the last event
        for (t, e) in later {
            r.m.cal.push(t, e);
        }
        r.settle();
        assert_eq!(r.m.mem.stats.tenants[TenantId(0)].llc_misses, 1, "whoever waited enters later");
        r.balanced();
    }
}

/// A ring of five lines of a set with four ways, where the NIC writes and then reads each line. Where a read makes a
/// line the youngest, the next line to be written is always the one that was just evicted. Where a read makes a line
/// the oldest, all lines are, and the first way takes the lines that the other three do not hold: two of five lines.
#[test]
fn lines_that_a_device_has_read_and_that_go_first_leave_room_for_the_others() {
    let hits = |ages: bool| {
        let mut h = small();
        h.llc.replacement = Replacement::Srrip;
        h.llc.quirks.device_read_ages = ages;
        let mut r = Rig::new(&h, ALL);
        let mut round = || {
            for i in 0..5 {
                let line = r.rx + LLC_SETS * i;
                r.nic(line, Inbound::Llc { ways: ALL });
                r.device_reads(Agent::Nic, line, 1, Outbound::Nearest);
            }
            let d = &r.m.mem.stats.dma[Agent::Nic as usize];
            d.writes - d.write_misses
        };
        let warm = round();
        (0..10).map(|_| round()).last().unwrap() - warm
    };
    assert_eq!((hits(false), hits(true)), (0, 30));
}

#[test]
fn an_inclusive_llc_loses_no_write_back_whether_home_agents_admit_them_or_not() {
    // Eight streams that write all lines that they read, with an LLC so small that a line may leave it before the line
    // reaches the core. The line then enters again and evicts a written one, also where the L2 has room for the line.
    for (writebacks, victims) in [("admitted", "allocate"), ("admitted", "drop"), ("immediate", "allocate")] {
        let o = simulate(&format!(
            "name = \"stream\"
            platform = \"cascadelake\"
            placement = {{ policy = \"dma\" }}
            [[tenant]]
            name = \"stream\"
            cores = 8
            app = {{ kind = \"stream\", buffer = \"16 MiB\", read_fraction = 0.5 }}
            [run]
            load = \"saturate\"
            warmup_time = \"100 us\"
            time = \"100 us\"
            [override.caches.l2]
            size = \"64 KiB\"
            [override.caches.llc]
            size = \"11 KiB\"
            slices = 1
            role = \"strictly_inclusive\"
            writebacks = \"{writebacks}\"
            clean_victim = \"{victims}\""
        ));
        // The run fails if a dirty line is not conserved. In the steady state all lines that are read are written.
        let (reads, writes) = (get(&o, "mem_c2m_read_gbs"), get(&o, "mem_c2m_write_gbs"));
        assert!(close(writes, reads, 0.03), "{writebacks}, {victims}: {reads} and {writes} GB/s");
    }
}
