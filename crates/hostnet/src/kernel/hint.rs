//! Hints to the machine that simulates.

/// Asks for the line of the host's cache that `place` begins in. Affects no result.
#[inline]
pub fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        #[allow(unsafe_code, reason = "the intrinsic has no safe form")]
        // SAFETY: a prefetch neither faults nor changes anything.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast())
        };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
