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

/// 255 for each of the low 16 bits of `mask` that is set, else 0.
#[inline]
pub(super) fn spread(mask: u32) -> [u8; 16] {
    std::array::from_fn(|i| 0u8.wrapping_sub((mask >> i & 1) as u8))
}

/// The first of the lowest `ages` among the ways that are not `closed` (255 there, else 0), one of which must be open.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn least(ages: [u8; 16], closed: [u8; 16]) -> u32 {
    // SAFETY: SSE2 is part of x86-64.
    unsafe {
        let [ages, closed] = [ages, closed].map(sse2::load);
        let lowest = sse2::lowest(sse2::open(ages, closed));
        sse2::places(ages, closed, lowest).trailing_zeros()
    }
}

/// The same for up to 32 ways.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn least_of_two(ages: [[u8; 16]; 2], closed: [[u8; 16]; 2]) -> u32 {
    // SAFETY: SSE2 is part of x86-64.
    unsafe {
        let [a, b] = ages.map(sse2::load);
        let [c, d] = closed.map(sse2::load);
        let lowest = sse2::lowest(std::arch::x86_64::_mm_min_epu8(sse2::open(a, c), sse2::open(b, d)));
        (sse2::places(a, c, lowest) | sse2::places(b, d, lowest) << 16).trailing_zeros()
    }
}

#[cfg(target_arch = "x86_64")]
mod sse2 {
    use std::arch::x86_64::{
        __m128i, _mm_andnot_si128, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128,
        _mm_shuffle_epi32, _mm_shufflelo_epi16, _mm_srli_epi16, _mm_unpacklo_epi8,
    };

    #[inline]
    pub fn load(bytes: [u8; 16]) -> __m128i {
        // SAFETY: SSE2 is part of x86-64, and the load is of the 16 bytes.
        unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
    }

    /// The ages of open ways, 255 for the others.
    #[inline]
    pub unsafe fn open(ages: __m128i, closed: __m128i) -> __m128i {
        _mm_or_si128(ages, closed)
    }

    /// The lowest byte, in all places.
    #[inline]
    pub unsafe fn lowest(v: __m128i) -> __m128i {
        let m = _mm_min_epu8(v, _mm_shuffle_epi32::<0b01_00_11_10>(v));
        let m = _mm_min_epu8(m, _mm_shuffle_epi32::<0b10_11_00_01>(m));
        let m = _mm_min_epu8(m, _mm_shufflelo_epi16::<0b10_11_00_01>(m));
        let m = _mm_min_epu8(m, _mm_srli_epi16::<8>(m));
        let m = _mm_unpacklo_epi8(m, m);
        _mm_shuffle_epi32::<0>(_mm_shufflelo_epi16::<0>(m))
    }

    /// A bit for each open way of age `lowest`.
    #[inline]
    pub unsafe fn places(ages: __m128i, closed: __m128i, lowest: __m128i) -> u32 {
        _mm_movemask_epi8(_mm_andnot_si128(closed, _mm_cmpeq_epi8(ages, lowest))) as u32
    }
}

/// The first of the lowest `ages` among the ways that are not `closed` (255 there, else 0), one of which must be open.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(super) fn least(ages: [u8; 16], closed: [u8; 16]) -> u32 {
    least_of_two([ages, [0; 16]], [closed, [u8::MAX; 16]])
}

/// The same for up to 32 ways.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(super) fn least_of_two(ages: [[u8; 16]; 2], closed: [[u8; 16]; 2]) -> u32 {
    let (ages, closed) = (ages.as_flattened(), closed.as_flattened());
    let open = (0..32).filter(|w| closed[*w] == 0);
    open.min_by_key(|w| ages[*w]).unwrap_or(32) as u32
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
            let ages: [u8; 32] = std::array::from_fn(|_| 255 - rng.below(span) as u8);
            let among = (rng.below(1 << 32) & rng.below(1 << 32)) as u32 | 1 << rng.below(16);
            let first = |among: u32| (0..32).filter(|w| among >> w & 1 == 1).min_by_key(|w| ages[*w as usize]).unwrap();
            let low: [u8; 16] = ages[..16].try_into().unwrap();
            let high = ages[16..].try_into().unwrap();
            let closed = [spread(!among), spread(!among >> 16)];
            assert_eq!(least(low, closed[0]), first(among & 0xffff), "{ages:?} {among:#b}");
            assert_eq!(least_of_two([low, high], closed), first(among), "{ages:?} {among:#b}");
        }
    }
}
