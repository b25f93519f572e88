//! Calls of the system that Rust has no safe form of: mappings, pinning, priority, and stores past the caches. The only
//! module with unsafe code.

use crate::measured::PageKind;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// Words of a line.
pub(crate) const WORDS: usize = 8;
const HUGE: usize = 2 << 20;

/// Zeroed memory of this process, which its threads share.
pub(crate) struct Buffer {
    base: NonNull<AtomicU64>,
    bytes: usize,
    /// Pages that the memory has.
    pub(crate) pages: PageKind,
}

// SAFETY: a buffer owns its mapping, and is reached through atomics only.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Maps `bytes`, rounded up to whole huge pages: of huge pages where they may be had, or of small ones if `small`.
    pub(crate) fn new(bytes: usize, small: bool) -> io::Result<Buffer> {
        let bytes = bytes.next_multiple_of(HUGE);
        if !small {
            if let Ok(base) = map(bytes, libc::MAP_HUGETLB | libc::MAP_POPULATE) {
                return Ok(Buffer { base, bytes, pages: PageKind::Reserved });
            }
        }
        let base = map(bytes, 0)?;
        let advice = if small { libc::MADV_NOHUGEPAGE } else { libc::MADV_HUGEPAGE };
        // SAFETY: the range is a mapping of this function.
        let advised = unsafe { libc::madvise(base.as_ptr().cast(), bytes, advice) } == 0;
        let mut buffer = Buffer { base, bytes, pages: PageKind::Small };
        buffer.words().iter().step_by(4096 / 8).for_each(|w| w.store(0, std::sync::atomic::Ordering::Relaxed));
        if advised && !small && huge_share(base.as_ptr() as usize) > 0.5 {
            buffer.pages = PageKind::Transparent;
        }
        Ok(buffer)
    }

    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: base and length are those of the mapping, which lives as long as the buffer; its pages are zeroed, and
        // any bits are a valid AtomicU64.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.bytes / 8) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, to which no reference is left.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

fn map(bytes: usize, flags: libc::c_int) -> io::Result<NonNull<AtomicU64>> {
    // The kernel aligns mappings of this size to huge pages since 6.7; older ones leave a small page at each end.
    let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: an anonymous mapping at an address of the kernel's choice.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    if at == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(at.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))
}

/// Share of the mapping at `address` that lies in transparent huge pages, as /proc/self/smaps says.
fn huge_share(address: usize) -> f64 {
    let text = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    let within = |head: &str| {
        let (from, to) = head.split_once('-')?;
        let of = |s| usize::from_str_radix(s, 16).ok();
        Some((of(from)?..of(to)?).contains(&address))
    };
    let (mut inside, mut size, mut huge) = (false, 0.0, 0.0);
    for line in text.lines() {
        let mut parts = line.split_whitespace();
        let head = parts.next().unwrap_or_default();
        let kib = parts.next().and_then(|v| v.parse::<f64>().ok());
        match (head, kib) {
            ("Size:", Some(kib)) if inside => size = kib,
            ("AnonHugePages:", Some(kib)) if inside => huge = kib,
            _ => inside = within(head).unwrap_or(inside),
        }
    }
    if size > 0.0 {
        huge / size
    } else {
        0.0
    }
}

/// CPUs on which this process may run.
pub(crate) fn allowed() -> Vec<u32> {
    // SAFETY: a set of zeros is an empty set, which the call fills.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set);
        set
    };
    // SAFETY: the index is below the number of bits of the set.
    (0..libc::CPU_SETSIZE as u32).filter(|c| unsafe { libc::CPU_ISSET(*c as usize, &set) }).collect()
}

/// Moves the calling thread to a CPU, and asks for priority over other threads; returns whether the thread has it.
pub(crate) fn pin(cpu: u32) -> io::Result<bool> {
    // SAFETY: the set is a local of the size that is passed; `cpu` is one that `allowed` returned.
    let done = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu as usize, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call takes numbers; on Linux it applies to the calling thread.
    Ok(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) } == 0)
}

/// Number of times that the kernel has taken the CPU away from the calling thread.
pub(crate) fn preemptions() -> i64 {
    // SAFETY: a zeroed rusage is valid, and the call fills it.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage.ru_nivcsw
    }
}

/// Whether [`store_past_caches`] and [`flush`] do what their names say on this processor.
pub(crate) const PAST_CACHES: bool = cfg!(target_arch = "x86_64");

/// Stores a line with non-temporal stores; with ordinary ones on processors that have no such stores.
#[inline(always)]
pub(crate) fn store_past_caches(line: &[AtomicU64], value: u64) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_set1_epi64x, _mm_stream_si128};
        assert!(line.len() >= WORDS && line.as_ptr().addr() % 16 == 0, "a whole line");
        // SAFETY: SSE2 is part of x86-64; the words are within the slice, which allows stores through a shared reference,
        // and aligned to 16 B.
        unsafe {
            let v = _mm_set1_epi64x(value as i64);
            for i in 0..4 {
                _mm_stream_si128(line.as_ptr().add(2 * i).cast_mut().cast(), v);
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    line[..WORDS].iter().for_each(|w| w.store(value, std::sync::atomic::Ordering::Relaxed));
}

/// Writes a line back to memory and removes it from all caches; does nothing on processors where [`PAST_CACHES`] is not set.
pub(crate) fn flush(line: &[AtomicU64]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_clflush, _mm_mfence};
        // SAFETY: SSE2 is part of x86-64, and the address is that of a reference; the line's contents do not change.
        unsafe {
            _mm_clflush(line.as_ptr().cast());
            _mm_mfence();
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn a_buffer_is_zeroed_and_a_line_is_stored_whole() {
        for small in [false, true] {
            let b = Buffer::new(5 << 20, small).unwrap();
            assert_eq!(b.words().len(), (6 << 20) / 8, "whole huge pages");
            assert!(!small || b.pages == PageKind::Small);
            store_past_caches(&b.words()[8..], 7);
            let read: Vec<u64> = b.words()[..24].iter().map(|w| w.load(Relaxed)).collect();
            assert_eq!(read, [[0; 8], [7; 8], [0; 8]].concat());
        }
    }

    #[test]
    fn a_thread_runs_where_it_is_pinned() {
        let last = *allowed().last().unwrap();
        std::thread::scope(|s| {
            s.spawn(|| {
                pin(last).unwrap();
                // SAFETY: the call takes and changes nothing.
                assert_eq!(unsafe { libc::sched_getcpu() }, last as i32);
                assert_eq!(allowed(), [last]);
            });
        });
    }
}
