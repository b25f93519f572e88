//! Searches over the ways of a cache set, many ways at a time.

use crate::kernel::Int;
use bytemuck::{Pod, Zeroable};
use std::ops::Range;

/// A cache line of the computer that runs the simulation. A set of up to 12 ways fits into one block, so that a look-up
/// and the following replacement touch memory only once.
#[repr(C, align(64))]
#[derive(Clone, Copy, Zeroable, Pod)]
pub(super) struct Block(pub [u32; 16]);

/// Word of a way that holds no line.
const EMPTY: u32 = u32::MAX;
/// Tags that a line can have.
pub(super) const TAGS: Range<u32> = 0..EMPTY;

/// Word of a way that holds the line with `tag`, or no line: blocks keep tags as plain words, which are compared many at
/// a time.
#[inline(always)]
pub(super) fn word_of(tag: Option<u32>) -> u32 {
    debug_assert!(tag.is_none_or(|tag| TAGS.contains(&tag)), "no line has the tag of an empty way");
    tag.unwrap_or(EMPTY)
}

/// Tag of the line that a way with this word holds; None when the way is empty.
#[inline(always)]
pub(super) fn tag_in(word: u32) -> Option<u32> {
    (word != EMPTY).then_some(word)
}

impl Block {
    /// Bytes of the second half of the block.
    #[inline]
    pub fn upper(&self) -> &[u8; 32] {
        let bytes: &[u8; 64] = bytemuck::cast_ref(self);
        bytes.last_chunk().expect("64 bytes")
    }
    #[inline]
    pub fn upper_mut(&mut self) -> &mut [u8; 32] {
        let bytes: &mut [u8; 64] = bytemuck::cast_mut(self);
        bytes.last_chunk_mut().expect("64 bytes")
    }
    /// One byte of the second half of the block.
    #[inline]
    pub fn age_mut(&mut self, at: u32) -> &mut u8 {
        &mut self.upper_mut()[at.to_usize() % 32]
    }

    /// Bit mask of the ways that hold `tag`, or that are empty for None.
    #[inline]
    pub fn ways_with(&self, tag: Option<u32>) -> u32 {
        self.equal(word_of(tag))
    }

    /// Bit mask of the words that equal `word`.
    #[cfg(target_arch = "x86_64")]
    #[allow(unsafe_code, reason = "loads of SSE2 take pointers")]
    #[inline]
    fn equal(&self, word: u32) -> u32 {
        use std::arch::x86_64::{
            __m128i, _mm_cmpeq_epi32, _mm_load_si128, _mm_movemask_epi8, _mm_packs_epi16, _mm_packs_epi32,
            _mm_set1_epi32,
        };
        // SAFETY: SSE2 is part of x86-64, and the four loads are aligned and inside the block.
        unsafe {
            let want = _mm_set1_epi32(word.cast_signed());
            let words: *const __m128i = self.0.as_ptr().cast();
            let same = |i: usize| _mm_cmpeq_epi32(_mm_load_si128(words.add(i)), want);
            let bytes = _mm_packs_epi16(_mm_packs_epi32(same(0), same(1)), _mm_packs_epi32(same(2), same(3)));
            _mm_movemask_epi8(bytes).to_u32()
        }
    }

    /// Bit mask of the words that equal `word`.
    #[cfg(not(target_arch = "x86_64"))]
    #[inline]
    fn equal(&self, word: u32) -> u32 {
        self.0.iter().enumerate().fold(0, |m, (i, w)| m | u32::from(*w == word) << i)
    }
}

impl Block {
    /// Bit mask of the words that are at least `from` and less than `from + n`.
    #[cfg(target_arch = "x86_64")]
    #[allow(unsafe_code, reason = "loads of SSE2 take pointers")]
    #[inline]
    pub fn within(&self, from: u32, n: u32) -> u32 {
        use std::arch::x86_64::{
            __m128i, _mm_cmpgt_epi32, _mm_load_si128, _mm_movemask_epi8, _mm_packs_epi16, _mm_packs_epi32,
            _mm_set1_epi32, _mm_sub_epi32,
        };
        // SSE2 compares words as signed numbers, of which this word is the lowest.
        const LOWEST: u32 = 1 << 31;
        // SAFETY: SSE2 is part of x86-64, and the four loads are aligned and inside the block.
        unsafe {
            let first = _mm_set1_epi32(from.wrapping_sub(LOWEST).cast_signed());
            let end = _mm_set1_epi32(n.wrapping_add(LOWEST).cast_signed());
            let words: *const __m128i = self.0.as_ptr().cast();
            let inside = |i: usize| _mm_cmpgt_epi32(end, _mm_sub_epi32(_mm_load_si128(words.add(i)), first));
            let bytes = _mm_packs_epi16(_mm_packs_epi32(inside(0), inside(1)), _mm_packs_epi32(inside(2), inside(3)));
            _mm_movemask_epi8(bytes).to_u32()
        }
    }

    /// Bit mask of the words that are at least `from` and less than `from + n`.
    #[cfg(not(target_arch = "x86_64"))]
    #[inline]
    pub fn within(&self, from: u32, n: u32) -> u32 {
        self.0.iter().enumerate().fold(0, |m, (i, w)| m | u32::from(w.wrapping_sub(from) < n) << i)
    }
}

/// Positions of the bits of `mask`, in ascending order.
#[inline]
pub(super) fn bits(mut mask: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let at = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (at < 32).then_some(at)
    })
}

/// Position of the set bit of `among` that has `nth` set bits below it.
#[inline]
pub(super) fn nth_bit(mut among: u32, nth: u32) -> u32 {
    // Masks are one run of ways, or a run with a single gap; both avoid a loop of unknown length.
    let first = among.trailing_zeros();
    let run = among >> first;
    let filled = run | run.wrapping_add(1);
    if filled & filled.wrapping_add(1) == 0 {
        return first + nth + u32::from(nth >= run.trailing_ones());
    }
    for _ in 0..nth {
        among &= among - 1;
    }
    among.trailing_zeros()
}

/// Bytes that are 255 for each bit of `mask` that is set, and otherwise 0.
#[inline]
pub(super) fn spread(mask: u32) -> [u8; 32] {
    std::array::from_fn(|i| 0u8.wrapping_sub((mask >> i & 1).to_u8()))
}

/// First of the lowest `ages` that are not `closed`, where a byte of 255 is closed and a byte of 0 is open; at least
/// one byte must be open.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "loads of SSE2 take pointers")]
#[inline]
pub(super) fn least(ages: &[u8; 32], closed: &[u8; 32]) -> u32 {
    use std::arch::x86_64::{
        __m128i, _mm_andnot_si128, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128,
        _mm_shuffle_epi32, _mm_shufflelo_epi16, _mm_srli_epi16, _mm_unpacklo_epi8,
    };
    // SAFETY: SSE2 is part of x86-64, and the loads are of the 32 bytes.
    unsafe {
        let halves = |bytes: &[u8; 32]| {
            let at: *const __m128i = bytes.as_ptr().cast();
            [_mm_loadu_si128(at), _mm_loadu_si128(at.add(1))]
        };
        let ([a, b], [c, d]) = (halves(ages), halves(closed));
        let m = _mm_min_epu8(_mm_or_si128(a, c), _mm_or_si128(b, d));
        let m = _mm_min_epu8(m, _mm_shuffle_epi32::<0b01_00_11_10>(m));
        let m = _mm_min_epu8(m, _mm_shuffle_epi32::<0b10_11_00_01>(m));
        let m = _mm_min_epu8(m, _mm_shufflelo_epi16::<0b10_11_00_01>(m));
        let m = _mm_min_epu8(m, _mm_srli_epi16::<8>(m));
        let m = _mm_unpacklo_epi8(m, m);
        let lowest = _mm_shuffle_epi32::<0>(_mm_shufflelo_epi16::<0>(m));
        let places = |ages, closed| _mm_movemask_epi8(_mm_andnot_si128(closed, _mm_cmpeq_epi8(ages, lowest))).to_u32();
        (places(a, c) | places(b, d) << 16).trailing_zeros()
    }
}

/// First of the lowest `ages` that are not `closed`, where a byte of 255 is closed and a byte of 0 is open; at least
/// one byte must be open.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(super) fn least(ages: &[u8; 32], closed: &[u8; 32]) -> u32 {
    (0..32).filter(|w| closed[*w] == 0).min_by_key(|w| ages[*w]).unwrap_or(32).to_u32()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_bit_is_found_in_runs_in_runs_with_a_hole_and_anywhere() {
        for among in 1u32..1 << 13 {
            let places: Vec<u32> = (0..32).filter(|b| among >> b & 1 == 1).collect();
            for (nth, place) in places.into_iter().enumerate() {
                assert_eq!(nth_bit(among, nth as u32), place, "{among:#b} {nth}");
            }
        }
    }

    #[test]
    fn words_within_a_range_are_found_up_to_the_last_word() {
        let mut rng = crate::kernel::RandomStream::new(5, "words", 0);
        for _ in 0..20_000 {
            // Words near zero, near the middle, where signed words change sign, and near the last one.
            let any = |rng: &mut crate::kernel::RandomStream| {
                [0u32, 1 << 31, u32::MAX - 7][rng.below(3) as usize].wrapping_add(rng.below(8) as u32)
            };
            let block = Block(std::array::from_fn(|_| any(&mut rng)));
            let (from, end) = (any(&mut rng), any(&mut rng));
            let (from, n) = (from.min(end), from.max(end) - from.min(end));
            let is_within = |w: u32| (u64::from(from)..u64::from(from) + u64::from(n)).contains(&w.into());
            let expected = (0..16).filter(|i| is_within(block.0[*i])).fold(0, |m, i| m | 1 << i);
            assert_eq!(block.within(from, n), expected, "{:?} from {from}, {n}", block.0);
        }
    }

    #[test]
    fn the_least_used_of_any_ways_is_the_first_of_the_lowest_age() {
        let mut rng = crate::kernel::RandomStream::new(5, "ages", 0);
        for _ in 0..20_000 {
            let span = [2, 256][rng.below(2) as usize];
            let ages: [u8; 32] = std::array::from_fn(|_| 255 - rng.below(span) as u8);
            let among = (rng.below(1 << 32) & rng.below(1 << 32)) as u32 | 1 << rng.below(16);
            let first = |among: u32| (0..32).filter(|w| among >> w & 1 == 1).min_by_key(|w| ages[*w as usize]).unwrap();
            assert_eq!(least(&ages, &spread(!among)), first(among), "{ages:?} {among:#b}");
        }
    }
}
