//! Tests of look-ups, replacement and marks of one tag array.

use super::*;
use crate::kernel::units::Size;
use crate::kernel::{CoreId, LineAddr, TenantId};
use crate::memory::region::{AddressMap, RegionKind, Sharing};

fn one_set(ways: u32, policy: Replacement) -> CacheArray {
    CacheArray::new(1, ways, policy, Indexing::Modulo, 1).unwrap()
}
fn fill(a: &mut CacheArray, lines: impl IntoIterator<Item = u64>) {
    let mask = (1u32 << a.ways()) - 1;
    for l in lines {
        a.insert_at(a.home(LineAddr(l)), false, mask);
    }
}

#[test]
fn lru_evicts_the_line_unused_for_longest() {
    let mut a = one_set(4, Replacement::Lru);
    fill(&mut a, 0..4);
    let s = a.find(LineAddr(0)).unwrap();
    a.touch(s);
    assert_eq!(
        a.insert_in_slice(LineAddr(9), false, 0b1111).1,
        Some(Victim { line: LineAddr(1), dirty: false, marked: false })
    );
}

#[test]
fn a_way_mask_confines_allocation_but_not_lookup() {
    let mut a = one_set(4, Replacement::Lru);
    fill(&mut a, 0..4);
    for line in 10..20 {
        let (slot, v) = a.insert_in_slice(LineAddr(line), true, 0b0011);
        assert!(slot.way < 2);
        assert!(v.unwrap().line.0 != 2 && v.unwrap().line.0 != 3);
    }
    assert!(a.find(LineAddr(2)).is_some() && a.find(LineAddr(3)).is_some());
}

#[test]
fn lru_order_holds_across_more_ways_than_one_vector() {
    for ways in [1u32, 4, 12, 13, 16, 17, 20, 24] {
        let mut a = one_set(ways, Replacement::Lru);
        fill(&mut a, 0..u64::from(ways));
        for step in 0..1000u64 {
            let line = step * 7 % u64::from(ways);
            let s = a.find(LineAddr(line)).unwrap();
            a.touch(s);
        }
        // The last uses of all lines, oldest first, are the last `ways` different numbers of the sequence.
        let mut order: Vec<u64> = Vec::new();
        for step in (0..1000u64).rev() {
            let line = step * 7 % u64::from(ways);
            if !order.contains(&line) {
                order.push(line);
            }
        }
        let untouched = (0..u64::from(ways)).filter(|l| !order.contains(l));
        let expect: Vec<u64> = untouched.chain(order.iter().rev().copied()).collect();
        let mask = u32::MAX >> (32 - ways);
        for gone in expect {
            let (set, slot) = (1000 + gone, a.find(LineAddr(gone)).unwrap());
            let told = |a: &CacheArray| a.oldest_in_slice(LineAddr(set)).map(|v| (v.line.0, v.dirty, v.marked));
            assert_eq!(told(&a), Some((gone, false, false)), "{ways} ways");
            a.mark(slot);
            assert_eq!(told(&a), Some((gone, false, true)), "{ways} ways");
            a.set_dirty(slot, true);
            assert_eq!(told(&a), Some((gone, true, true)), "{ways} ways");
            let victim = a.insert_in_slice(LineAddr(1000 + gone), false, mask).1.unwrap();
            assert_eq!((victim.line.0, victim.dirty, victim.marked), (gone, true, true), "{ways} ways");
        }
    }
}

#[test]
fn srrip_keeps_a_reused_line_through_a_scan_that_lru_would_lose_it_to() {
    let survives = |p| {
        let mut a = one_set(4, p);
        fill(&mut a, [7]);
        let s = a.find(LineAddr(7)).unwrap();
        a.touch(s);
        fill(&mut a, 100..105);
        a.find(LineAddr(7)).is_some()
    };
    assert!(survives(Replacement::Srrip));
    assert!(!survives(Replacement::Lru));
}

#[test]
fn a_line_that_expired_goes_before_lines_never_used_again_and_a_use_takes_that_back() {
    let mut a = one_set(4, Replacement::Srrip);
    fill(&mut a, 0..4);
    let slot = |a: &CacheArray, line| a.find(LineAddr(line)).unwrap();
    for (expired, used, gone) in [(2, None, 2), (1, Some(1), 0)] {
        let mut a = a.clone();
        a.expire(slot(&a, expired));
        if let Some(line) = used {
            a.touch(slot(&a, line));
        }
        assert_eq!(a.insert_in_slice(LineAddr(100), false, 0b1111).1.unwrap().line.0, gone);
    }
}

/// Compares SRRIP with the loop of the paper (Jaleel et al., ISCA 2010), which increments all intervals until a way has
/// the largest one.
#[test]
fn srrip_s_victim_is_the_first_way_that_reaches_the_last_interval_step_by_step() {
    for ways in [11, 16] {
        let mut rng = crate::kernel::RandomStream::new(4, "srrip", 0);
        let mut a = one_set(ways, Replacement::Srrip);
        let mut model = vec![(None, 0); ways as usize]; // lines and intervals
        for line in 0..20_000 {
            let held = model[rng.below(u64::from(ways)) as usize].0.filter(|_| rng.below(3) > 0);
            if let Some(slot) = held.and_then(|l| a.find(LineAddr(l))) {
                a.touch(slot);
                model[slot.way as usize].1 = 0;
                continue;
            }
            let mask = (rng.below(1 << ways) as u32 | 1 << rng.below(u64::from(ways))) & a.all;
            let open = |way: &usize| mask >> way & 1 == 1;
            let empty = (0..model.len()).filter(open).find(|w| model[*w].0.is_none());
            let way = empty.unwrap_or_else(|| loop {
                if let Some(w) = (0..model.len()).filter(open).find(|w| model[*w].1 == 3) {
                    break w;
                }
                model.iter_mut().for_each(|m| m.1 = (m.1 + 1).min(3));
            });
            let (slot, gone) = a.insert_in_slice(LineAddr(line), false, mask);
            assert_eq!((slot.way as usize, gone.map(|v| v.line.0)), (way, model[way].0), "line {line}");
            model[way] = (Some(line), 2);
        }
    }
}

#[test]
fn nru_evicts_one_of_the_ways_not_used_since_all_the_others_were_and_never_the_newest() {
    let mut a = one_set(4, Replacement::Nru);
    fill(&mut a, 0..4); // the fourth use clears the other three
    let mask = 0b1111;
    let mut gone: Vec<u64> =
        (10..13).map(|line| a.insert_in_slice(LineAddr(line), false, mask).1.unwrap().line.0).collect();
    gone.sort_unstable();
    assert_eq!(gone, [0, 1, 2], "3 was used last");
    // Lines 10 to 12 have been used since line 3, and the use of line 12 cleared the bits of the others.
    let next = a.insert_in_slice(LineAddr(13), false, mask).1.unwrap().line.0;
    assert!([3, 10, 11].contains(&next), "{next}");
}

#[test]
fn nmru_spares_the_way_used_last_unless_it_is_the_only_one() {
    let mut a = one_set(4, Replacement::Nmru);
    fill(&mut a, 0..4);
    let mut last = 3;
    let mut gone = [0u32; 2];
    for line in 4..4000 {
        let out = a.insert_in_slice(LineAddr(line), false, 0b1111).1.unwrap().line.0;
        assert_ne!(out, last);
        gone[usize::from(out == last.saturating_sub(1))] += 1;
        last = line;
    }
    // Each of the other three lines is equally likely to be the victim.
    assert!((gone[1] as f64 / 3996.0 - 1.0 / 3.0).abs() < 0.03, "{gone:?}");
    assert!(
        a.insert_in_slice(LineAddr(5000), false, 0b1).1.is_some()
            && a.insert_in_slice(LineAddr(5001), false, 0b1).1.is_some()
    );
}

#[test]
fn tree_plru_of_four_ways_follows_the_textbook_sequence() {
    let mut a = one_set(4, Replacement::TreePlru);
    fill(&mut a, 0..4); // touched 0 1 2 3: root points left, left pair at way 0
    let mask = 0b1111;
    assert_eq!(a.insert_in_slice(LineAddr(10), false, mask).1.unwrap().line.0, 0);
    assert_eq!(a.insert_in_slice(LineAddr(11), false, mask).1.unwrap().line.0, 2);
    assert_eq!(a.insert_in_slice(LineAddr(12), false, mask).1.unwrap().line.0, 1);
    assert_eq!(a.insert_in_slice(LineAddr(13), false, mask).1.unwrap().line.0, 3);
}

#[test]
fn addresses_come_back_from_tags_with_slices_that_are_no_power_of_two() {
    let mut a = CacheArray::new(24 * 2048, 12, Replacement::Lru, Indexing::HashedSlices, 24).unwrap();
    for line in (0..200_000u64).step_by(97) {
        let (slot, _) = a.insert_at(a.home(LineAddr(line)), true, 0xfff);
        assert_eq!(a.find(LineAddr(line)), Some(slot));
        assert!(line % 9_700 != 0 || a.iter().any(|l| l == (LineAddr(line), slot.way, true)));
    }
}

#[test]
fn lines_within_bounds_are_those_of_all_lines_that_lie_there() {
    for (sets, slices, indexing) in [
        (2048, 1, Indexing::Modulo),
        (24 * 2048, 24, Indexing::HashedSlices),
        (18 * 2048, 18, Indexing::InterleavedSlices),
        (18 * 2048, 18, Indexing::EvenSlices),
    ] {
        let mut a = CacheArray::new(sets, 11, Replacement::Lru, indexing, slices).unwrap();
        fill(&mut a, (0..60_000).step_by(7));
        // Tags change every 2048 lines: the bounds lie on such a border, beside it, within one tag, and in different
        // tags.
        for within in [0..1, 2048..4096, 2047..2050, 4097..4099, 4095..40_960, 40_959..60_000, 59_999..90_000] {
            let lines = LineAddr(within.start)..LineAddr(within.end);
            let mut found: Vec<u64> = a.iter_within(lines.clone()).map(|l| l.0 .0).collect();
            found.sort_unstable();
            let all: Vec<u64> =
                (0..60_000).step_by(7).filter(|l| within.contains(l) && a.find(LineAddr(*l)).is_some()).collect();
            assert_eq!(found, all, "{within:?} in {sets} sets");
            let whole = a.lines_of_tags(&lines);
            let ways: Vec<u32> = a.iter_within(whole.clone()).map(|l| l.1).collect();
            let low = ways.iter().filter(|w| **w < 3).count();
            assert_eq!(a.count(&whole, 0b111), (ways.len() as u64, low as u64), "{whole:?} in {sets} sets");
        }
    }
}

#[test]
fn hashed_slices_spread_a_ring_evenly() {
    let a = CacheArray::new(24 * 2048, 12, Replacement::Lru, Indexing::HashedSlices, 24).unwrap();
    let mut per = vec![0u32; 24];
    for line in 0..240_000u64 {
        per[a.set_of(a.home(LineAddr(line)).base) / 2048] += 1;
    }
    assert!(per.iter().all(|n| (9_500..10_500).contains(n)), "{per:?}"); // 5 sigma
}

#[test]
fn even_slices_give_each_set_one_line_of_as_many_contiguous_ones() {
    for slices in [10u64, 16, 18] {
        let sets = slices * 2048;
        let a = CacheArray::new(sets as u32, 11, Replacement::Lru, Indexing::EvenSlices, slices as u32).unwrap();
        let mut orders = std::collections::BTreeSet::new();
        for stretch in [0, 1, 2, 77, 5000] {
            let mut seen = vec![false; sets as usize];
            for line in stretch * sets..(stretch + 1) * sets {
                assert!(
                    !std::mem::replace(&mut seen[a.set_of(a.home(LineAddr(line)).base)], true),
                    "{slices} slices, line {line}"
                );
            }
            orders.insert((0..64).map(|i| a.set_of(a.home(LineAddr(stretch * sets + i)).base)).collect::<Vec<_>>());
        }
        assert!(orders.len() > 1, "stretches are permuted");
    }
}

/// An LLC of 18 slices and 11 ways, and the function that finds the slice of a line.
fn interleaved() -> (CacheArray, impl Fn(&CacheArray, u64) -> usize) {
    let a = CacheArray::new(18 * 2048, 11, Replacement::Lru, Indexing::InterleavedSlices, 18).unwrap();
    (a, |a: &CacheArray, line: u64| a.set_of(a.home(LineAddr(line)).base) / 2048)
}

#[test]
fn interleaved_slices_are_binary_permutations_of_one_sequence() {
    let (a, slice) = interleaved();
    let lines = 1 << SEQUENCE_BITS;
    let block = |b: u64| -> Vec<usize> { (0..lines).map(|i| slice(&a, b * lines + i)).collect() };
    let first = block(0);
    for b in 0..20 {
        let here = block(b);
        let permuted = |k: u64| (0..lines).all(|i| here[(i ^ k) as usize] == first[i as usize]);
        assert!((0..lines).any(permuted), "block {b}");
        for neighbours in here.chunks(16) {
            let mut seen = neighbours.to_vec();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), 16, "aligned neighbours are in slices of their own");
        }
    }
    let held = |s: usize| first.iter().filter(|x| **x == s).count();
    assert!((0..18).all(|s| [910, 911].contains(&held(s))), "2^14 lines over 18 slices");
}

#[test]
fn interleaved_slices_break_the_order_of_a_stream_s_victims_at_every_other_line() {
    // An independent model of the same rules in another language finds a neighbour behind 52 % of the victims.
    let (mut a, _) = interleaved();
    let page = |n: u64| crate::kernel::rng::mix(n) >> 44 << 6;
    let pages = 3 * 18 * 2048 * 11 / 64;
    let (mut last, mut follow, mut all) = (0, 0, 0);
    for line in (0..2 * pages).flat_map(|n| (0..64).map(move |i| page(n % pages) + i)) {
        if a.find(LineAddr(line)).is_none() {
            if let (_, Some(v)) = a.insert_at(a.home(LineAddr(line)), false, 0x7ff) {
                (follow, all) = (follow + u64::from(v.line.0 == last + 1), all + 1);
                last = v.line.0;
            }
        }
    }
    assert!((45..60).contains(&(100 * follow / all)), "{follow} of {all}");
}

#[test]
fn recency_survives_the_wrap_of_a_set_s_clock() {
    let mut a = one_set(4, Replacement::Lru);
    fill(&mut a, 0..4);
    for n in 0..1000u64 {
        let s = a.find(LineAddr(n % 3)).unwrap(); // 0, 1 and 2 in turn; 3 is never used again
        a.touch(s);
    }
    // Line 999 evicted after a use of line 0, so the order of last use is 3, 1, 2, 0.
    for gone in [3, 1, 2, 0] {
        assert_eq!(a.insert_in_slice(LineAddr(100 + gone), false, 0b1111).1.unwrap().line.0, gone);
    }
}

/// An array of 24 slices of 2048 sets, as large as the LLC of a published simulator.
fn folded() -> CacheArray {
    CacheArray::new(24 * 2048, 12, Replacement::Lru, Indexing::FoldedSlices, 24).unwrap()
}

#[test]
fn folded_slices_are_the_xor_of_four_groups_of_16_bits_modulo_the_slices() {
    let a = folded();
    let mut rng = crate::kernel::RandomStream::new(7, "folded", 0);
    for _ in 0..20_000 {
        let line = rng.below(1 << 40);
        let groups = (0..4).map(|i| line >> (16 * i) & 0xffff);
        assert_eq!(a.slice(a.home(LineAddr(line))) as u64, groups.fold(0, |x, g| x ^ g) % 24, "{line:#x}");
    }
}

#[test]
fn with_folded_slices_four_mebibytes_reach_an_eighth_of_the_sets() {
    // 24 is a multiple of eight, so within 2^16 lines the low three bits of slice and set differ by the same XOR.
    let a = folded();
    for base in [0u64, 5 << 16, 0x1234 << 16] {
        let sets: std::collections::HashSet<_> = (base..base + (1 << 16)).map(|l| a.home(LineAddr(l)).base).collect();
        assert_eq!(sets.len(), 24 * 2048 / 8);
    }
}

#[test]
fn a_scan_lets_an_older_line_of_a_higher_way_go_before_an_empty_way() {
    let mut a = one_set(4, Replacement::LruScan);
    for line in [3, 2, 1, 0] {
        a.insert_in_slice(LineAddr(line), false, a.all);
    }
    let at = |a: &CacheArray, line: u64| a.find(LineAddr(line)).expect("held");
    // An untouched set fills from the highest way down, so line 3 is the oldest and lies in way 3.
    assert_eq!([3, 2, 1, 0].map(|l| at(&a, l).way()), [3, 2, 1, 0]);
    a.touch(at(&a, 2));
    a.remove(at(&a, 2));
    // Way 2 is empty and was used last; line 3 behind it is older.
    let (slot, gone) = a.insert_in_slice(LineAddr(9), false, a.all);
    assert_eq!((slot.way(), gone.map(|v| v.line.0)), (3, Some(3)));
    // No line behind way 2 is older now.
    let (slot, gone) = a.insert_in_slice(LineAddr(10), false, a.all);
    assert_eq!((slot.way(), gone), (2, None));
    // Without empty ways the victim is the LRU line of the mask; line 1 was inserted before line 0.
    let (slot, gone) = a.insert_in_slice(LineAddr(11), false, 0b0011);
    assert_eq!((slot.way(), gone.map(|v| v.line.0)), (1, Some(1)));
}

/// Twelve rings of 64 KiB. When the rings lie back to back, two of their lines fall into each set of an eighth of all
/// sets. With twice the alignment, four lines fall into each set of a sixteenth of all sets, and two ways hold only
/// half of the lines.
#[test]
fn two_ways_hold_small_rings_that_lie_back_to_back_and_half_of_those_with_gaps() {
    let (rings, lines) = (12, 1024);
    for (alignment, held) in [(64, rings * lines), (128, rings * lines / 2)] {
        let mut map = AddressMap::aligned(Size(alignment << 10));
        let mut a = CacheArray::new(24 * 2048, 2, Replacement::Lru, Indexing::FoldedSlices, 24).unwrap();
        for core in 0..rings as u16 {
            let r = map.add(lines, RegionKind::Tx, Sharing::Core(CoreId(core)), TenantId(0));
            let base = map.get(r).base;
            assert_eq!(base.0, u64::from(core) * alignment * 16, "16 lines to 1 KiB");
            fill(&mut a, base.0..base.0 + lines);
            assert_eq!(map.of(base + lines - 1).sharing, Sharing::Core(CoreId(core)));
        }
        assert_eq!(a.held() as u64, held);
    }
}
