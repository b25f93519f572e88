//! Searches over the ways of a set, many at a time.

use bytemuck::{Pod, Zeroable};

/// A host cache line: a set of up to 12 ways lies in one, so that a look-up and the replacement
/// that follows touch the host's memory once.
#[repr(C, align(64))]
#[derive(Clone, Copy, Zeroable, Pod)]
pub(super) struct Block(pub [u32; 16]);

impl Block {
    /// A bit for each word that is `tag`.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub fn equal(&self, tag: u32) -> u32 {
        use std::arch::x86_64::{
            __m128i, _mm_cmpeq_epi32, _mm_load_si128, _mm_movemask_epi8, _mm_packs_epi16, _mm_packs_epi32,
            _mm_set1_epi32,
        };
        // SAFETY: SSE2 is part of x86-64, and the four loads are aligned and inside the block.
        unsafe {
            let want = _mm_set1_epi32(tag as i32);
            let words: *const __m128i = self.0.as_ptr().cast();
            let same = |i: usize| _mm_cmpeq_epi32(_mm_load_si128(words.add(i)), want);
            let bytes = _mm_packs_epi16(_mm_packs_epi32(same(0), same(1)), _mm_packs_epi32(same(2), same(3)));
            _mm_movemask_epi8(bytes) as u32
        }
    }

    /// A bit for each word that is `tag`.
    #[cfg(not(target_arch = "x86_64"))]
    #[inline]
    pub fn equal(&self, tag: u32) -> u32 {
        self.0.iter().enumerate().fold(0, |m, (i, w)| m | u32::from(*w == tag) << i)
    }
}

/// The place of the bit of `among` that has `nth` bits below it.
#[inline]
pub(super) fn nth_bit(mut among: u32, nth: u32) -> u32 {
    // Masks are one run of ways, or one that a single way is missing from: no loop of unknown length for those.
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

/// The lowest of the ages that `among` has bits for, and the first place it is at; 255 and no place without bits.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn least(ages: [u8; 16], among: u32) -> (u8, u32) {
    use std::arch::x86_64::{
        __m128i, _mm_and_si128, _mm_cmpeq_epi8, _mm_cvtsi128_si32, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8,
        _mm_or_si128, _mm_set1_epi64x, _mm_set1_epi8, _mm_srli_si128, _mm_unpacklo_epi64, _mm_xor_si128,
    };
    // SAFETY: SSE2 is part of x86-64, and the load is of the 16 bytes of `ages`.
    unsafe {
        let bits = _mm_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
        let spread = _mm_unpacklo_epi64(_mm_set1_epi8(among as i8), _mm_set1_epi8((among >> 8) as i8));
        let open = _mm_cmpeq_epi8(_mm_and_si128(spread, bits), bits);
        let ages = _mm_loadu_si128(ages.as_ptr().cast::<__m128i>());
        let ages = _mm_or_si128(ages, _mm_xor_si128(open, _mm_set1_epi8(-1)));
        let m = _mm_min_epu8(ages, _mm_srli_si128(ages, 8));
        let m = _mm_min_epu8(m, _mm_srli_si128(m, 4));
        let m = _mm_min_epu8(m, _mm_srli_si128(m, 2));
        let m = _mm_min_epu8(m, _mm_srli_si128(m, 1));
        let lowest = _mm_cvtsi128_si32(m) as u8;
        let at = _mm_movemask_epi8(_mm_cmpeq_epi8(ages, _mm_set1_epi8(lowest as i8))) as u32 & among;
        (lowest, at.trailing_zeros())
    }
}

/// The lowest of the ages that `among` has bits for, and the first place it is at; 255 and no place without bits.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(super) fn least(ages: [u8; 16], among: u32) -> (u8, u32) {
    let open = (0..16).filter(|w| among >> w & 1 == 1);
    open.map(|w| (ages[w as usize], w)).min().unwrap_or((u8::MAX, u32::BITS))
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
    fn the_least_used_of_any_ways_is_the_first_of_the_lowest_age() {
        let mut rng = crate::kernel::Stream::new(5, "ages", 0);
        for _ in 0..20_000 {
            let span = [2, 256][rng.below(2) as usize];
            let ages: [u8; 16] = std::array::from_fn(|_| 255 - rng.below(span) as u8);
            let among = rng.below(1 << 16) as u32 & rng.below(1 << 16) as u32;
            let open = (0..16).filter(|w| among >> w & 1 == 1);
            let plain = open.map(|w| (ages[w as usize], w)).min().unwrap_or((255, 32));
            assert_eq!(least(ages, among), plain, "{ages:?} {among:#b}");
        }
    }
}
