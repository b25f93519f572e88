//! Tests of scheduling by column commands only, with rows that open at the arrival of their requests.

use super::*;

/// Column commands issued, with their clocks.
fn columns(b: &mut Bench) -> Vec<(u64, DramCommand, usize)> {
    let mut all: Vec<_> = b.issued().into_iter().filter(|c| matches!(c.1, Rd | Wr)).collect();
    all.sort_by_key(|c| c.0);
    all
}

fn on_arrival() -> DramSpec {
    DramSpec { scheduler: Scheduler::OnArrival, page_policy: PagePolicy::ClosedAdaptive, ranks: 2, ..quiet() }
}

#[test]
fn z01_a_row_counts_as_opened_when_its_request_came_in_either_mode() {
    let mut b = Bench::new(&on_arrival());
    // The read goes first; the write's row is open by then, and its data follows immediately.
    b.read(0, 0, 7).write(0, 4, 7);
    assert_eq!(columns(&mut b), [(17, Rd, 0), (21, Wr, 4)]);
}

#[test]
fn z02_a_read_waits_for_the_turnaround_after_a_write_of_another_rank() {
    let mut b = Bench::new(&on_arrival());
    // Bank 16 is in the second rank. CWL 12, burst 4, tWTR_S 3.
    b.write(0, 0, 7).read(18, 16, 7);
    assert_eq!(columns(&mut b), [(17, Wr, 0), (17 + 12 + 4 + 3, Rd, 16)]);
}

#[test]
fn z03_writes_go_on_down_to_the_low_mark_once_one_went() {
    let mut spec = on_arrival();
    (spec.wpq, spec.write_high, spec.write_low) = (8, 0.75, 0.25);
    let mut b = Bench::new(&spec);
    // Seven writes are above the watermark of six: writes go first until one is left, which waits for the read.
    for bank in 0..7 {
        b.write(0, bank, 7);
    }
    b.read(0, 20, 7);
    let order: Vec<_> = columns(&mut b).into_iter().map(|c| c.1).collect();
    assert_eq!(order, [Wr, Wr, Wr, Wr, Wr, Wr, Rd, Wr]);
    // Six writes are not above the watermark.
    let mut b = Bench::new(&spec);
    for bank in 0..6 {
        b.write(0, bank, 7);
    }
    b.read(0, 20, 7);
    assert_eq!(columns(&mut b)[0].1, Rd);
}

#[test]
fn z04_a_request_for_a_busy_bank_lets_younger_ones_of_other_banks_go_first() {
    let mut b = Bench::new(&on_arrival());
    b.read(0, 0, 7).read(1, 0, 8).read(2, 4, 7);
    let order: Vec<_> = columns(&mut b).into_iter().map(|c| c.2).collect();
    assert_eq!(order, [0, 4, 0]);
}

#[test]
fn z05_a_long_random_run_serves_each_request_once_its_activate_allows_it() {
    let spec =
        DramSpec { quirks: DramQuirks { refresh: true, page_idle_ns: 30.0, ..on_arrival().quirks }, ..on_arrival() };
    let mut b = Bench::new(&spec);
    let mut rng = RandomStream::new(2, "dram test", 0);
    let (mut clock, mut came) = (0, [0, 0]);
    for _ in 0..20_000 {
        let write = rng.below(3) == 0;
        // Occasionally no request arrives for longer than a refresh interval.
        clock += if rng.below(500) == 0 { 30_000 } else { rng.below(12) };
        while !b.ch.ch.can_accept(write) {
            clock += 1;
            b.run(clock);
        }
        b.at(clock, write, rng.below(32) as u8, rng.below(3) as u32);
        came[write as usize] += 1;
    }
    b.run(clock + 200_000);
    let s = b.ch.ch.stats(b.ch.ch.clock);
    assert_eq!(b.ch.ch.used, [0, 0]);
    assert_eq!([s.reads() + s.reads_forwarded, s.writes() + s.writes_merged], came);
    assert!(s.refreshes > 100 && s.mode_switches > 100);
    // A column command comes at least tRCD after the bank's last activate, and a burst after the last column command of
    // any bank.
    let (tck, rcd, burst) = (b.ch.ch.t.tck, b.ch.ch.t.rcd, b.ch.ch.t.burst);
    let mut last = 0;
    let mut opened = [0; 32];
    for &(at, command, bank) in &b.ch.ch.log {
        match command {
            Act => opened[bank] = at,
            Rd | Wr => {
                assert!(at >= opened[bank] + rcd, "bank {bank} at clock {}", at / tck);
                assert!(last == 0 || at >= last + burst, "at clock {}", at / tck);
                last = at;
            }
            _ => {}
        }
    }
}
