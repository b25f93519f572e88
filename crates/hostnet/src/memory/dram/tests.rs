//! Tests of device timing as diagrams (the commands issued, in clocks of the standard), closed forms, and a checker
//! that compares a long command log with every constraint.

use super::channel::DramCommand::{self, Act, Pre, Rd, Ref, Wr};
use super::channel::{READ, WRITE};
use super::mapping::{Decoded, Mapper};
use super::standards::{DeviceWidth, DramDevice, Standard};
use super::timing::DramTiming;
use super::*;
use crate::kernel::rng::RandomStream;
use crate::kernel::{Int, LineAddr, TxnId};

mod on_arrival;
mod plan;

/// One channel whose requests give their place instead of an address, with times in clocks.
struct Bench {
    ch: ScheduledChannel,
    tck: u64,
    next: u32,
    done: Vec<DramCompletion>,
}

fn quiet() -> DramSpec {
    DramSpec {
        standard: Standard::Ddr4_2400,
        channels: 1,
        quirks: DramQuirks { refresh: false, age_cap_ns: 0, ..DramSpec::default().quirks },
        ..DramSpec::default()
    }
}

impl Bench {
    fn new(spec: &DramSpec) -> Bench {
        let ch = ScheduledChannel::new(&spec.plan().unwrap());
        Bench { tck: ch.ch.t.tck, ch, next: 0, done: Vec::new() }
    }
    fn at(&mut self, clock: u64, write: bool, bank: u8, row: u32) -> &mut Self {
        let now = clock * self.tck;
        if self.ch.ch.wake < Due::at(Time(now)) {
            self.ch.advance(now - 1, &mut self.done);
        }
        let line = u64::from(self.next) + 1_000_000 * u64::from(bank);
        let req = DramRequest { token: Some(TxnId::new(self.next.to_usize())), line: LineAddr(line), write, class: 0 };
        self.ch.push(now, req, Decoded { bank, row, column: 0 }, &mut self.done);
        self.next += 1;
        self
    }
    fn read(&mut self, clock: u64, bank: u8, row: u32) -> &mut Self {
        self.at(clock, false, bank, row)
    }
    fn write(&mut self, clock: u64, bank: u8, row: u32) -> &mut Self {
        self.at(clock, true, bank, row)
    }
    fn run(&mut self, clock: u64) -> &mut Self {
        self.ch.advance(clock * self.tck, &mut self.done);
        self
    }
    /// Commands issued so far, in clocks.
    fn issued(&mut self) -> Vec<(u64, DramCommand, usize)> {
        self.run(100_000);
        self.ch.ch.log.iter().map(|&(t, c, b)| (t / self.tck, c, b)).collect()
    }
    /// Clock at which the read's data is complete.
    fn data(&mut self, token: u32) -> u64 {
        self.run(100_000);
        self.done.iter().find(|d| d.token == Some(TxnId::new(token.to_usize()))).unwrap().at.0 / self.tck
    }
}

// DDR4-2400 17-17-17 x8 has 4 groups of 4 banks: bank 4 is in group 1.

#[test]
fn d01_closed_bank_reads_after_trcd_and_data_ends_after_cl_and_burst() {
    let mut b = Bench::new(&quiet());
    b.read(0, 0, 7);
    assert_eq!(b.issued(), [(0, Act, 0), (17, Rd, 0)]);
    assert_eq!(b.data(0), 17 + 17 + 4);
}

#[test]
fn d02_row_hit_takes_cl_and_burst() {
    let mut b = Bench::new(&quiet());
    b.read(0, 0, 7).read(100, 0, 7);
    assert_eq!(b.data(1), 100 + 17 + 4);
}

#[test]
fn d03_conflict_takes_trp_trcd_cl_and_burst() {
    let mut b = Bench::new(&quiet());
    b.read(0, 0, 7).read(100, 0, 8);
    assert_eq!(b.issued()[2..], [(100, Pre, 0), (117, Act, 0), (134, Rd, 0)]);
    assert_eq!(b.data(1), 100 + 17 + 17 + 17 + 4);
}

#[test]
fn d04_precharge_waits_for_tras() {
    let mut b = Bench::new(&quiet());
    b.read(0, 0, 7).read(0, 0, 8);
    assert_eq!(b.issued()[2..], [(39, Pre, 0), (56, Act, 0), (73, Rd, 0)]);
}

#[test]
fn d05_precharge_waits_for_trtp() {
    let mut b = Bench::new(&quiet());
    b.read(0, 0, 7).read(100, 0, 7).read(100, 0, 8);
    assert_eq!(b.issued()[2..4], [(100, Rd, 0), (109, Pre, 0)]);
}

#[test]
fn d06_precharge_waits_for_twr_after_write_data() {
    let mut b = Bench::new(&quiet());
    b.write(0, 0, 7).write(0, 0, 8);
    assert_eq!(b.issued()[..3], [(0, Act, 0), (17, Wr, 0), (17 + 12 + 4 + 18, Pre, 0)]);
}

#[test]
fn d07_activates_keep_trrd_s_between_groups_and_trrd_l_within() {
    let mut b = Bench::new(&quiet());
    b.read(0, 0, 7).read(0, 4, 7);
    assert_eq!(b.issued()[..2], [(0, Act, 0), (4, Act, 4)]);
    let mut b = Bench::new(&quiet());
    b.read(0, 0, 7).read(0, 1, 7);
    assert_eq!(b.issued()[..2], [(0, Act, 0), (6, Act, 1)]);
}

#[test]
fn d08_fifth_activate_waits_for_tfaw() {
    let mut b = Bench::new(&quiet());
    b.read(0, 0, 7).read(0, 4, 7).read(0, 8, 7).read(0, 12, 7).read(0, 1, 7);
    let acts: Vec<u64> = b.issued().iter().filter(|c| c.1 == Act).map(|c| c.0).collect();
    assert_eq!(acts, [0, 4, 8, 12, 26]);
}

#[test]
fn d09_reads_keep_tccd_l_within_a_group_and_tccd_s_between() {
    let mut b = Bench::new(&quiet());
    b.read(0, 0, 7).read(50, 0, 7).read(50, 0, 7);
    assert_eq!(b.issued()[2..], [(50, Rd, 0), (56, Rd, 0)]);
    let mut b = Bench::new(&quiet());
    b.read(0, 0, 7).read(0, 4, 7).read(50, 0, 7).read(50, 4, 7);
    assert_eq!(b.issued()[4..], [(50, Rd, 0), (54, Rd, 4)]);
}

#[test]
fn d10_read_after_write_waits_for_twtr_l_or_s() {
    let mut b = Bench::new(&quiet());
    b.read(0, 0, 7).read(0, 4, 7).write(100, 0, 7).run(100).read(101, 0, 7);
    assert_eq!(b.issued()[4..], [(100, Wr, 0), (100 + 12 + 4 + 9, Rd, 0)]);
    let mut b = Bench::new(&quiet());
    b.read(0, 0, 7).read(0, 4, 7).write(100, 0, 7).run(100).read(101, 4, 7);
    assert_eq!(b.issued()[4..], [(100, Wr, 0), (100 + 12 + 4 + 3, Rd, 4)]);
}

#[test]
fn d11_write_after_read_leaves_two_clocks_on_the_bus() {
    let mut b = Bench::new(&quiet());
    b.read(0, 0, 7).read(100, 0, 7).run(100).write(101, 0, 7);
    // Read data ends at 100 + 17 + 4; write data starts 12 clocks after its command.
    assert_eq!(b.issued()[2..], [(100, Rd, 0), (100 + 17 + 4 + 2 - 12, Wr, 0)]);
}

#[test]
fn d12_ranks_leave_tcs_between_their_bursts() {
    let mut b = Bench::new(&DramSpec { ranks: 2, ..quiet() });
    b.read(0, 0, 7).read(0, 16, 7).read(100, 0, 7).read(100, 16, 7);
    assert_eq!(b.issued()[4..], [(100, Rd, 0), (100 + 4 + 2, Rd, 16)]);
}

#[test]
fn d13_activates_of_two_ranks_are_bound_by_the_command_bus_only() {
    let mut b = Bench::new(&DramSpec { ranks: 2, ..quiet() });
    b.read(0, 0, 7).read(0, 16, 7);
    assert_eq!(b.issued()[..2], [(0, Act, 0), (1, Act, 16)]);
}

#[test]
fn d14_refresh_comes_every_trefi_closes_the_rank_and_takes_trfc() {
    let mut b = Bench::new(&DramSpec { quirks: DramQuirks { refresh: true, ..quiet().quirks }, ..quiet() });
    // tREFI 7.8 us and tRFC 350 ns in clocks of 0.833 ns, rounded up.
    let (refi, rfc) = (9364, 421);
    b.read(refi - 60, 0, 7).read(refi - 2, 0, 7).read(refi - 1, 0, 8);
    let all = b.issued();
    assert_eq!(all[3..6], [(refi + 7, Pre, 0), (refi + 24, Ref, 0), (refi + 24 + rfc, Act, 0)]);
}

#[test]
fn d15_an_idle_channel_catches_up_on_refreshes() {
    let mut b = Bench::new(&DramSpec { quirks: DramQuirks { refresh: true, ..quiet().quirks }, ..quiet() });
    b.read(0, 0, 7).run(1000).read(9364 * 5 + 10, 0, 7);
    assert_eq!(b.data(1), 9364 * 5 + 421 + 17 + 17 + 4);
    assert_eq!(b.ch.ch.stats.refreshes, 5);
}

/// A write that waits below the mark at which idle channels write: once the first refresh has closed its rows, the
/// channel asks to be woken for nothing, and a day later it has refreshed as often as a day has intervals.
#[test]
fn d15_a_channel_in_which_only_writes_wait_is_idle() {
    for scheduler in [Scheduler::HitFirst, Scheduler::FirstReady, Scheduler::Transaction] {
        let mut b = Bench::new(&DramSpec {
            scheduler,
            quirks: DramQuirks { refresh: true, write_idle: 0.5, ..quiet().quirks },
            ..quiet()
        });
        b.read(0, 0, 7).write(100, 4, 7).run(9364 + 1000);
        assert!(b.ch.ch.wake.is_never(), "{scheduler:?}");
        let day = 86_400_000_000_000_000 / 833;
        let intervals = day / 9364;
        b.read(intervals * 9364 + 10, 0, 7);
        b.run(intervals * 9364 + 600);
        let data = b.done.iter().find(|d| d.token == Some(TxnId::new(2))).map(|d| d.at.0 / b.tck);
        assert_eq!(data, Some(intervals * 9364 + 421 + 17 + 17 + 4), "{scheduler:?}");
        assert_eq!(b.ch.ch.stats.refreshes, intervals);
        assert_eq!((b.ch.ch.stats.reads(), b.ch.ch.stats.writes(), b.ch.ch.used[WRITE]), (2, 0, 1));
    }
}

/// Beside clocks of every length, times up to the end of simulated time and their neighbours.
#[test]
fn an_edge_is_the_next_multiple_of_the_clock_at_any_time() {
    let device = Standard::Ddr4_2400.device(DeviceWidth::X8);
    let of = |tck| DramTiming::new(&DramDevice { tck_ps: tck, ..device }, &Default::default());
    for t in (2..1300).map(of).chain([of(1), of(4096), of(8191)]) {
        let multiple = crate::kernel::Time::END.0 / t.tck * t.tck;
        for at in [0, 1, t.tck - 1, t.tck, (1 << 54) + 7, multiple - 1, multiple, multiple + 1] {
            assert!(t.whole);
            assert_eq!(t.edge(at), at.div_ceil(t.tck) * t.tck, "{at} in clocks of {} ps", t.tck);
        }
    }
}

#[test]
fn d16_sweeper_device_is_ddr4_3200_x16_with_eight_banks() {
    let d = Standard::Ddr4_3200.device(DeviceWidth::X16);
    assert_eq!(d.bank_groups * d.banks_per_group, 8);
    let mut b = Bench::new(&DramSpec { standard: Standard::Ddr4_3200, device_width: DeviceWidth::X16, ..quiet() });
    b.read(0, 0, 1).read(0, 4, 1).read(0, 1, 1).read(0, 5, 1).read(0, 2, 1);
    let acts: Vec<u64> = b.issued().iter().filter(|c| c.1 == Act).map(|c| c.0).collect();
    assert_eq!(acts, [0, 9, 18, 27, 48]); // tRRD_S 9, tRRD_L 11 (0, 4, 1 alternate), tFAW 48
}

#[test]
fn p01_closed_page_precharges_with_the_access() {
    let mut b = Bench::new(&DramSpec { page_policy: PagePolicy::Closed, ..quiet() });
    b.read(0, 0, 7).read(200, 0, 7);
    assert_eq!(b.issued()[2..], [(39, Pre, 0), (200, Act, 0), (217, Rd, 0), (239, Pre, 0)]);
}

#[test]
fn p02_adaptive_page_closes_only_for_a_waiting_conflict() {
    let spec = DramSpec { page_policy: PagePolicy::OpenAdaptive, ..quiet() };
    let mut b = Bench::new(&spec);
    b.read(0, 0, 7).read(200, 0, 7);
    assert_eq!(b.issued()[2..], [(200, Rd, 0)]);
    let mut b = Bench::new(&spec);
    b.read(0, 0, 7).read(0, 0, 8);
    assert_eq!(b.issued()[1..4], [(17, Rd, 0), (39, Pre, 0), (56, Act, 0)]);
}

#[test]
fn p03_age_cap_lets_a_conflict_pass_a_stream_of_hits() {
    let wait = |cap| {
        let mut b =
            Bench::new(&DramSpec { rpq: 1024, quirks: DramQuirks { age_cap_ns: cap, ..quiet().quirks }, ..quiet() });
        b.read(0, 0, 7).read(1, 0, 8);
        for i in 0..500 {
            b.read(2 + i, 0, 7);
        }
        b.data(1)
    };
    assert!(wait(0) > 500 * 6, "{}", wait(0));
    // The age cap, the column command in progress, tRTP, tRP, tRCD, CL and burst.
    assert!(wait(500) <= 601 + 6 + 9 + 17 + 17 + 17 + 4, "{}", wait(500));
}

/// A row is closed 100 ns (120 clocks) after its earliest precharge: tRAS (39) after the activate, which is later than
/// tRTP after the read.
#[test]
fn p04_a_row_is_closed_once_nobody_has_used_it_for_long() {
    let timed = || Bench::new(&DramSpec { quirks: DramQuirks { page_idle_ns: 100.0, ..quiet().quirks }, ..quiet() });
    let closed = 39 + 120;
    let mut b = timed();
    b.read(0, 0, 7).read(closed - 1, 0, 7);
    assert_eq!(b.issued()[2..], [(closed - 1, Rd, 0)]);
    // Each use delays the close, by tRTP (9) and the idle time.
    b.read(closed - 1 + 9 + 119, 0, 7);
    assert_eq!(b.issued().len(), 4);
    let mut b = timed();
    b.read(0, 0, 7).read(closed + 100, 0, 8);
    assert_eq!(b.issued()[2..], [(closed, Pre, 0), (closed + 100, Act, 0), (closed + 117, Rd, 0)]);
    // The next row may open tRP after the close, and not before.
    let mut b = timed();
    b.read(0, 0, 7).read(closed + 3, 0, 8);
    assert_eq!(b.issued()[3..], [(closed + 17, Act, 0), (closed + 34, Rd, 0)]);
}

#[test]
fn q01_reads_are_served_from_the_write_queue_and_writes_merge() {
    let mut b = Bench::new(&DramSpec { quirks: DramQuirks { write_idle: 0.5, ..quiet().quirks }, ..quiet() });
    let place = Decoded { bank: 3, row: 1, column: 0 };
    let w = DramRequest { token: None, line: LineAddr(42), write: true, class: 0 };
    b.ch.push(0, w, place, &mut b.done);
    b.ch.push(0, w, place, &mut b.done);
    b.ch.push(
        0,
        DramRequest { token: Some(TxnId::new(9)), line: LineAddr(42), write: false, class: 5 },
        place,
        &mut b.done,
    );
    assert_eq!(b.ch.ch.used, [0, 1]);
    let hit = b.done[0];
    assert_eq!((hit.token, hit.class, hit.outcome), (Some(TxnId::new(9)), 5, RowOutcome::Forwarded));
    assert_eq!((b.ch.ch.stats.writes_merged, b.ch.ch.stats.reads_forwarded), (1, 1));
}

#[test]
fn q02_write_mode_lasts_from_the_high_to_the_low_watermark() {
    let mut b = Bench::new(&DramSpec { rpq: 64, wpq: 10, write_high: 0.8, write_low: 0.2, ..quiet() });
    b.read(0, 0, 7);
    for i in 0..9 {
        b.write(0, 4 + i % 2, 7);
    }
    for _ in 0..40 {
        b.read(1, 0, 7);
    }
    let order: Vec<DramCommand> = b.issued().iter().map(|c| c.1).filter(|c| matches!(c, Rd | Wr)).collect();
    let first = order.iter().position(|c| *c == Wr).unwrap();
    let burst = order[first..].iter().take_while(|c| **c == Wr).count();
    assert_eq!(burst, 8); // from 9 entries (more than 8) down to 1 (less than 2)
}

#[test]
fn q05_either_direction_gets_a_bounded_burst_while_the_other_is_refilled() {
    let spec = DramSpec {
        rpq: 64,
        wpq: 64,
        write_high: 0.1,
        write_low: 0.0,
        quirks: DramQuirks { min_read_burst: 5, max_write_burst: 7, ..quiet().quirks },
        ..quiet()
    };
    let mut b = Bench::new(&spec);
    // Neither queue is empty before the last bursts.
    for i in 0..40 {
        b.write(0, 4 + i % 2, 7);
        b.read(0, i % 2, 7);
    }
    let order: Vec<DramCommand> = b.issued().iter().map(|c| c.1).filter(|c| matches!(c, Rd | Wr)).collect();
    let bursts: Vec<(DramCommand, usize)> = order.chunk_by(|a, b| a == b).map(|c| (c[0], c.len())).collect();
    assert_eq!(order.len(), 80);
    for (command, n) in &bursts[1..8] {
        assert_eq!(*n, if *command == Rd { 5 } else { 7 }, "{bursts:?}");
    }
}

#[test]
fn q04_writes_that_fill_a_gap_make_room_for_a_read_at_once_when_they_yield() {
    for yields in [false, true] {
        let spec =
            DramSpec { write_low: 0.0, quirks: DramQuirks { writes_yield: yields, ..quiet().quirks }, ..quiet() };
        let mut b = Bench::new(&spec);
        for bank in [0, 4, 8, 12, 1, 5, 9, 13] {
            b.write(0, bank, 7);
        }
        b.read(20, 2, 7);
        let order: Vec<DramCommand> = b.issued().iter().map(|c| c.1).filter(|c| matches!(c, Rd | Wr)).collect();
        let before = order.iter().position(|c| *c == Rd).unwrap();
        // tFAW of 26 clocks lets four rows open before the read arrives; those writes are in progress.
        assert_eq!(before, if yields { 4 } else { 8 }, "{order:?}");
        assert_eq!(b.ch.ch.stats.drains, u64::from(!yields));
    }
}

/// Writes for the rank that refreshes, and a read for the other rank.
#[test]
fn q05_a_mode_whose_requests_all_wait_for_a_refresh_gives_way() {
    // Timings in clocks: tREFI 9364, tRFC 421; a read of an open rank takes tRCD 17, CL 17 and 4 of data.
    let (refi, rfc) = (9364, 421);
    for turns in [false, true] {
        let spec = DramSpec {
            ranks: 2,
            write_high: 0.1,
            write_low: 0.0,
            quirks: DramQuirks { refresh: true, refresh_turns: turns, ..quiet().quirks },
            ..quiet()
        };
        let mut b = Bench::new(&spec);
        b.run(refi + 1);
        for row in 0..8 {
            b.write(refi + 10, 0, row);
        }
        b.read(refi + 20, 16, 7);
        let data = b.data(8);
        if turns {
            assert_eq!(data, refi + 20 + 17 + 17 + 4);
        } else {
            assert!(data > refi + rfc, "write mode holds the channel: {data}");
        }
        assert_eq!(b.issued().iter().filter(|c| c.1 == Wr).count(), 8);
    }
}

#[test]
fn q03_occupancy_integral_is_arrivals_times_residence() {
    let mut b = Bench::new(&quiet());
    b.read(0, 0, 7).read(100, 0, 7);
    b.run(1000);
    // Entries leave with their column commands, at 17 and at 100.
    assert_eq!(b.ch.ch.stats(1000 * 833).entry_ps[0], 17 * 833);
}

#[test]
fn m01_fields_are_cut_from_the_top_bit_down() {
    let shape = ChannelShape { ranks: 2, bank_groups: 4, banks_per_group: 4, lines_per_row: 128, rows: 1 << 16 };
    let m = Mapper::new("rorababgcoch", 2, false, false, &shape).unwrap();
    // row 5, rank 1, bank 2, group 3, column 100, channel 1
    let line = ((((5 * 2 + 1) * 4 + 2) * 4 + 3) * 128 + 100) * 2 + 1;
    let (ch, inner) = m.channel(LineAddr(line));
    assert_eq!((ch, m.decode(inner)), (1, Decoded { bank: 16 + 3 * 4 + 2, row: 5, column: 100 }));
    for bad in ["rorababgco", "rorababgcoxx", "rororababgcoch", "corarobabgch", ""] {
        assert!(Mapper::new(bad, 2, false, false, &shape).is_err(), "{bad}");
    }
}

#[test]
fn m02_every_mapping_is_a_bijection_on_any_number_of_channels() {
    let shape = ChannelShape { ranks: 2, bank_groups: 2, banks_per_group: 2, lines_per_row: 16, rows: 1 << 16 };
    for order in ["rorababgcoch", "RoBaRaCoCh", "rochrababgco", "rorabacobgch", "MOP4CLXOR"] {
        for channels in [1u32, 2, 3, 4, 6, 12, 16] {
            for hash in [false, true] {
                let m = Mapper::new(order, channels, hash, hash, &shape).unwrap();
                let n = 3 * (1u64 << 14);
                let mut seen = std::collections::HashSet::new();
                for line in 0..n {
                    let (ch, inner) = m.channel(LineAddr(line));
                    assert!(ch < channels as usize);
                    let d = m.decode(inner);
                    assert!(seen.insert((ch, d.bank, d.row, d.column)), "{order} {channels} {hash} {line}");
                }
            }
        }
    }
}

#[test]
fn m03_consecutive_lines_go_round_the_channels() {
    let shape = ChannelShape { ranks: 1, bank_groups: 4, banks_per_group: 4, lines_per_row: 128, rows: 1 << 16 };
    let m = Mapper::new("RoBaRaCoCh", 3, false, false, &shape).unwrap();
    let base = (1u64 << 40) / 3 * 3;
    assert!((0..300).all(|i| m.channel(LineAddr(base + i)).0 == (i % 3) as usize));
}

/// Checks the earliest permitted distances, taken from the standard's clocks, for each pair of commands.
fn check(log: &[(u64, DramCommand, usize)], d: &DramDevice, shape: &ChannelShape) {
    let per_rank = (shape.bank_groups * shape.banks_per_group) as usize;
    let rank = |c: &(u64, DramCommand, usize)| if c.1 == Ref { c.2 } else { c.2 / per_rank };
    let group = |b: usize| b / shape.banks_per_group as usize;
    let whole = |ns: u64| (ns * 1000).div_ceil(d.tck_ps);
    let data = |c: DramCommand| if c == Rd { d.cl } else { d.cwl };
    for (i, b) in log.iter().enumerate() {
        let mut acts = 0;
        for a in log[..i].iter().rev().take_while(|a| b.0.saturating_sub(a.0) < 1200 * d.tck_ps) {
            let gap = b.0.saturating_sub(a.0) / d.tck_ps;
            let (same_bank, same_rank) = (a.2 == b.2 && a.1 != Ref && b.1 != Ref, rank(a) == rank(b));
            let same_group = a.1 != Ref && b.1 != Ref && group(a.2) == group(b.2);
            let least = match (a.1, b.1) {
                (Act, Act) if same_bank => d.ras + d.rp,
                (Act, Act) if same_rank => {
                    acts += 1;
                    let pair = if same_group { d.rrd_l } else { d.rrd_s };
                    if acts == 4 {
                        pair.max(d.faw)
                    } else {
                        pair
                    }
                }
                (Act, Rd | Wr) if same_bank => d.rcd,
                (Act, Pre) if same_bank => d.ras,
                (Pre, Act) if same_bank => d.rp,
                (Pre, Ref) if same_rank => d.rp,
                (Rd, Pre) if same_bank => d.rtp,
                (Wr, Pre) if same_bank => d.cwl + d.burst + d.wr,
                (Ref, Act) if same_rank => whole(d.rfc_ns),
                (Rd, Rd) if same_group => d.ccd_l,
                (Wr, Wr) if same_group => d.ccd_l_wr,
                (Rd, Rd) | (Wr, Wr) if same_rank => d.ccd_s,
                (Rd, Rd) | (Wr, Wr) => d.burst + d.cs,
                (Wr, Rd) if same_rank => d.cwl + d.burst + if same_group { d.wtr_l } else { d.wtr_s },
                // On the data bus the bubble separates the first burst from the second.
                (Rd, Wr) => data(Rd) + d.burst + d.rtw - data(Wr),
                (Wr, Rd) => (data(Wr) + d.burst + d.cs).saturating_sub(data(Rd)),
                _ => 0,
            };
            assert!(gap >= least, "{a:?} then {b:?}: {gap} clocks, {least} needed");
        }
    }
}

#[test]
fn c01_a_long_random_run_keeps_every_constraint() {
    for (standard, width, ranks) in [
        (Standard::Ddr4_2400, DeviceWidth::X8, 1),
        (Standard::Ddr4_3200, DeviceWidth::X16, 4),
        (Standard::Ddr5_4800, DeviceWidth::X8, 2),
        (Standard::Lpddr5_6400, DeviceWidth::X16, 1),
    ] {
        use PagePolicy::{Closed, ClosedAdaptive, Open, OpenAdaptive};
        use Scheduler::{FirstReady, HitFirst, Transaction};
        for (bank_queue, scheduler, page_policy, age_cap_ns) in [
            (0, HitFirst, Open, 0),
            (0, HitFirst, OpenAdaptive, 300),
            (0, FirstReady, Open, 300),
            (0, FirstReady, ClosedAdaptive, 0),
            (0, Transaction, Closed, 0),
            (0, Transaction, OpenAdaptive, 0),
            (8, HitFirst, Open, 0),
        ] {
            let spec = DramSpec {
                standard,
                device_width: width,
                ranks,
                scheduler,
                page_policy,
                quirks: DramQuirks {
                    bank_queue,
                    age_cap_ns,
                    page_idle_ns: if age_cap_ns == 0 { 30.0 } else { 0.0 },
                    refresh: true,
                    ..quiet().quirks
                },
                ..quiet()
            };
            let d = standard.device(width);
            let shape = spec.shape(&d).unwrap();
            let banks = u64::from(ranks * shape.bank_groups * shape.banks_per_group);
            let mut b = Bench::new(&spec);
            let mut rng = RandomStream::new(1, "dram test", 0);
            let mut clock = 0;
            for _ in 0..6000 {
                let write = rng.below(3) == 0;
                clock += rng.below(12);
                while !b.ch.ch.can_accept(write) {
                    clock += 1;
                    b.run(clock);
                }
                b.at(clock, write, rng.below(banks) as u8, rng.below(3) as u32);
            }
            b.run(clock + 200_000);
            let mut log = b.ch.ch.log.clone();
            log.sort_by_key(|c| c.0);
            assert_eq!(b.ch.ch.used, [0, 0]);
            assert!(log.iter().filter(|c| c.1 == Ref).count() > 2);
            check(&log, &d, &shape);
        }
    }
}

/// A queue that is full most of the time holds no more than its entries in the mean, and is full for no more than all of the time,
/// whichever command frees the entries and however far ahead it was decided.
#[test]
fn c02_no_queue_holds_more_than_its_entries_or_is_full_for_longer_than_there_is() {
    use EntryRelease::{Activate, Column, Data};
    use Scheduler::{FirstReady, HitFirst, OnArrival, Transaction};
    for (scheduler, releases) in [
        (HitFirst, &[Activate, Column, Data][..]),
        (FirstReady, &[Activate, Column, Data]),
        (Transaction, &[Column, Data]),
        (OnArrival, &[Column, Data]),
    ] {
        for &entry_release in releases {
            let page_policy = if scheduler == OnArrival { PagePolicy::ClosedAdaptive } else { PagePolicy::Open };
            let spec = DramSpec {
                scheduler,
                page_policy,
                rpq: 16,
                wpq: 16,
                quirks: DramQuirks { entry_release, page_idle_ns: 0.0, ..quiet().quirks },
                ..quiet()
            };
            let mut b = Bench::new(&spec);
            let mut rng = RandomStream::new(3, "dram test", 0);
            let mut clock = 0;
            for _ in 0..20_000 {
                let write = rng.below(2) == 0;
                while !b.ch.ch.can_accept(write) {
                    clock += 1;
                    b.run(clock);
                }
                b.at(clock, write, rng.below(16) as u8, rng.below(40) as u32);
            }
            let now = clock * b.tck;
            let stats = b.ch.ch.stats(now);
            for dir in [READ, WRITE] {
                let (mean, full) = (stats.entry_ps[dir] as f64 / now as f64, stats.full_ps[dir] as f64 / now as f64);
                assert!(mean <= 16.0 && full <= 1.0, "{scheduler:?}, {entry_release:?}: {mean} entries, full {full}");
            }
            let full: u64 = stats.full_ps.iter().sum();
            assert!(full > now / 4, "{scheduler:?}, {entry_release:?}: the queues are seldom full, {full} of {now} ps");
        }
    }
}

#[test]
fn s01_a_wrong_spec_is_one_sentence_with_key_value_and_remedy() {
    let message = |spec: DramSpec| spec.plan().expect_err("an error");
    let ranks = message(DramSpec { ranks: 3, ..quiet() });
    assert!(ranks.contains("ranks = 3") && ranks.contains('4'), "{ranks}");
    for bad in [
        DramSpec { channels: 0, ..quiet() },
        DramSpec { channels: 17, ..quiet() },
        DramSpec { ranks: 8, ..quiet() }, // 128 banks
        DramSpec { rpq: 0, ..quiet() },
        DramSpec { write_low: 0.9, write_high: 0.8, ..quiet() },
        DramSpec { mapping: "roba".into(), ..quiet() },
        DramSpec { quirks: DramQuirks { alignment: Size(96 << 10), ..quiet().quirks }, ..quiet() },
        DramSpec { quirks: DramQuirks { alignment: Size(8 << 20), ..quiet().quirks }, ..quiet() },
    ] {
        let m = message(bad);
        assert!(!m.is_empty() && !m.contains('\n'), "{m}");
    }
}

#[test]
fn s02_peak_bandwidth_of_each_standard_is_its_data_rate() {
    use Standard::*;
    for (standard, mega_transfers, bytes_wide) in [
        (Ddr4_2400, 2400.0, 8.0),
        (Ddr4_2666, 2666.0, 8.0),
        (Ddr4_2933, 2933.0, 8.0),
        (Ddr4_3200, 3200.0, 8.0),
        (Ddr5_4800, 4800.0, 8.0), // both sub-channels
        (Ddr5_5600, 5600.0, 8.0),
        (Hbm2e3200, 3200.0, 16.0), // both pseudo-channels
        (Lpddr5_6400, 6400.0, 2.0),
    ] {
        let d = standard.device(DeviceWidth::X8);
        let gbps = 64e3 * f64::from(d.subchannels) / (d.burst * d.tck_ps) as f64;
        let rate = mega_transfers * bytes_wide / 1e3;
        assert!((gbps / rate - 1.0).abs() < 0.003, "{standard:?}: {gbps} against {rate}");
    }
}

/// DDR4-3200 of 8 Gb x8 (JESD79-4C): 22-22-22 at 625 ps, tRFC 350 ns, tREFI 7.8 us, four groups of four banks. DDR5-4800 of 16 Gb
/// (JESD79-5B): tRFC 295 ns, which are 710 clocks of 416 ps. Values of one's own stay; the engine's constraints are the same.
#[test]
fn quirks_in_full_have_the_values_of_the_standard() {
    let mut spec = DramSpec::default();
    spec.quirks.timing.rp_ps = Some(20_000);
    let q = spec.quirks_in_full();
    let t = &q.timing;
    assert_eq!([t.tck_ps, t.cl_ps, t.rcd_ps, t.rp_ps], [625, 13_750, 13_750, 20_000].map(Some));
    assert_eq!([t.ras_ps, t.faw_ps, t.rfc_ps, t.refi_ps], [32_500, 21_250, 350_000, 7_800_000].map(Some));
    assert_eq!((q.bank_groups, q.banks_per_group), (4, 4));
    spec.device_width = DeviceWidth::X16;
    assert_eq!(spec.quirks_in_full().bank_groups, 2);
    spec.standard = Standard::Ddr5_4800;
    assert_eq!(spec.quirks_in_full().timing.rfc_ps, Some(710 * 416));
    for standard in [Standard::Ddr4_2933, Standard::Hbm2e3200, Standard::Lpddr5_6400] {
        let d = standard.device(DeviceWidth::X8);
        let own = &spec.quirks.timing;
        assert_eq!(DramTiming::new(&d, own), DramTiming::new(&d, &own.in_full(&d)), "{standard:?}");
    }
}
