//! Prefetch hints to the computer that runs the simulation.

/// Prefetches the cache line that `place` begins in on the computer that runs the simulation; no result depends on it.
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
