//! Conversions between types of numbers that `From` does not offer because such a conversion can lose information.
//!
//! Each conversion names the guarantee that its caller gives, and builds with debug assertions check the guarantee;
//! `as` does neither.

/// An integer that can be converted to another integer or floating-point type with the same value.
pub trait Int: Copy {
    /// The nearest `f64`, which equals the number below 2^53.
    fn to_f64(self) -> f64;
    /// The number as a `u8`; the caller guarantees that it is below 2^8.
    fn to_u8(self) -> u8;
    /// The number as a `u16`; the caller guarantees that it is below 2^16.
    fn to_u16(self) -> u16;
    /// The number as a `u32`; the caller guarantees that it is below 2^32.
    fn to_u32(self) -> u32;
    /// The number as a `u64`; the caller guarantees that it is neither negative nor 2^64 or more.
    fn to_u64(self) -> u64;
    /// The number as an index or a length; the caller guarantees that it fits the address space.
    fn to_usize(self) -> usize;
    /// The lowest 32 bits, for hashes and packed values; the other bits are dropped on purpose.
    fn low_u32(self) -> u32;
    /// The lowest 16 bits, for hashes and packed values; the other bits are dropped on purpose.
    fn low_u16(self) -> u16;
    /// The lowest 8 bits, for hashes and packed values; the other bits are dropped on purpose.
    fn low_u8(self) -> u8;
}

macro_rules! fits {
    ($value:expr, $kind:ty) => {{
        debug_assert!(<$kind>::try_from($value).is_ok(), "{} is no {}", $value, stringify!($kind));
        $value as $kind
    }};
}

macro_rules! ints {
    ($($kind:ty),*) => {
        $(impl Int for $kind {
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn to_u8(self) -> u8 {
                fits!(self, u8)
            }
            #[inline(always)]
            fn to_u16(self) -> u16 {
                fits!(self, u16)
            }
            #[inline(always)]
            fn to_u32(self) -> u32 {
                fits!(self, u32)
            }
            #[inline(always)]
            fn to_u64(self) -> u64 {
                fits!(self, u64)
            }
            #[inline(always)]
            fn to_usize(self) -> usize {
                fits!(self, usize)
            }
            #[inline(always)]
            fn low_u32(self) -> u32 {
                self as u32
            }
            #[inline(always)]
            fn low_u16(self) -> u16 {
                self as u16
            }
            #[inline(always)]
            fn low_u8(self) -> u8 {
                self as u8
            }
        })*
    };
}

ints!(u8, u16, u32, u64, u128, usize, i32, i64, i128);

/// A real number that can be converted to an integer.
pub trait Real: Copy {
    /// The number without its fraction: zero when the number is negative or not a number, and `u64::MAX` at most.
    fn whole(self) -> u64;
}

impl Real for f64 {
    #[inline(always)]
    fn whole(self) -> u64 {
        self as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_fits_keeps_its_value() {
        assert_eq!((255u64.to_u8(), 65_535usize.to_u16(), u64::from(u32::MAX).to_u32()), (255, 65_535, u32::MAX));
        assert_eq!((7i64.to_u64(), 7u128.to_usize(), (1u64 << 53).to_f64()), (7, 7, 9_007_199_254_740_992.0));
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "256 is no u8")]
    fn a_number_that_does_not_fit_is_a_mistake() {
        256u64.to_u8();
    }

    #[test]
    fn low_bits_drop_the_rest() {
        let x = 0x0123_4567_89ab_cdefu64;
        assert_eq!((x.low_u32(), x.low_u16(), x.low_u8()), (0x89ab_cdef, 0xcdef, 0xef));
    }

    #[test]
    fn a_real_number_loses_its_fraction_and_never_wraps() {
        assert_eq!((2.9.whole(), (-1.0).whole(), f64::NAN.whole(), 1e30.whole()), (2, 0, 0, u64::MAX));
    }
}
