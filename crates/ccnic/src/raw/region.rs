use std::alloc::{alloc_zeroed, dealloc, handle_alloc_error, Layout};
use std::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{fence, AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;

use rustix::fs::{fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, MemfdFlags, SealFlags};
use rustix::mm::{madvise, mmap, mmap_anonymous, munmap, Advice, MapFlags, ProtFlags};

use crate::mem::Mem;

const LINE: usize = 64;
const HUGE_PAGE: usize = 2 << 20;

/// Memory that a host and a NIC both map, or that threads of one process share.
///
/// `Send` and `Sync`: every access is atomic or a raw copy (see the module's invariants).
/// A clone refers to the same memory.
#[derive(Clone, Debug)]
pub struct Region {
    base: NonNull<u8>,
    len: usize,
    backing: Arc<Backing>,
}

/// Frees the memory when the last clone goes.
#[derive(Debug)]
enum Backing {
    Mapped { fd: OwnedFd, base: NonNull<u8>, len: usize },
    Heap { base: NonNull<u8>, layout: Layout },
}

// SAFETY: the pointers are to memory this value owns; it only hands out the fd.
unsafe impl Send for Backing {}
// SAFETY: as above.
unsafe impl Sync for Backing {}

// SAFETY: the pointer is to memory owned by this value, and invariant 3 keeps every shared
// access atomic or ordered by one.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Zeroed memory of this process only, for threads and for tests under Miri.
    /// `len` is in bytes and is rounded up to a line.
    pub fn heap(len: usize) -> Region {
        let layout = Layout::from_size_align(len.max(1).next_multiple_of(LINE), 4096)
            .expect("region length fits the address space");
        // SAFETY: the layout has a non-zero size.
        let raw = unsafe { alloc_zeroed(layout) };
        let Some(base) = NonNull::new(raw) else { handle_alloc_error(layout) };
        Region { base, len: layout.size(), backing: Arc::new(Backing::Heap { base, layout }) }
    }

    /// A new memfd of at least `len` bytes, mapped, populated, and sealed against resizing. With
    /// `huge` on transparent 2 MiB pages, if the kernel gives them; if not, the sentence says so.
    ///
    /// Reserved (hugetlb) pages are not used: whoever holds the descriptor can punch holes into
    /// such memory, and the next access to one kills the other side when none is left to fill it.
    pub fn memfd(len: usize, huge: bool) -> io::Result<(Region, Option<String>)> {
        let len = len.max(1).next_multiple_of(if huge { HUGE_PAGE } else { 4096 });
        let fd = rustix::fs::memfd_create("ccnic", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&fd, len as u64)?;
        fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        if !huge {
            return Ok((Region::map(fd, len)?, None));
        }
        let region = Region::map_huge(fd, len)?;
        let notice = region.collapse().err().map(|e| {
            format!("the kernel gives no 2 MiB pages ({e}), so the region uses 4 KiB pages; look at /sys/kernel/mm/transparent_hugepage")
        });
        Ok((region, notice))
    }

    /// Maps the first `len` bytes of a memfd received from a peer. Refuses one whose pages can
    /// vanish, because touching a vanished page kills the process: not memory of the kernel's
    /// shmem (a hole in it is filled with zeros), or not sealed against shrinking, or too short.
    pub fn from_fd(fd: OwnedFd, len: usize, huge: bool) -> io::Result<Region> {
        const SHMEM: i64 = 0x0102_1994;
        if rustix::fs::fstatfs(&fd)?.f_type as i64 != SHMEM {
            return Err(io::Error::other("the peer's region is not a memfd of ordinary pages"));
        }
        let seals = fcntl_get_seals(&fd)?;
        if !seals.contains(SealFlags::SHRINK) {
            return Err(io::Error::other("the peer's region is not sealed against shrinking"));
        }
        let len = len.max(1).next_multiple_of(if huge { HUGE_PAGE } else { 4096 });
        let size = usize::try_from(fstat(&fd)?.st_size).unwrap_or(0);
        if size < len {
            return Err(io::Error::other(format!(
                "the peer's region has {size} bytes where its configuration needs {len}"
            )));
        }
        if !huge {
            return Region::map(fd, len);
        }
        let region = Region::map_huge(fd, len)?;
        // Where the owner got none, this side has none either; the owner has said so.
        let _ = region.collapse();
        Ok(region)
    }

    /// Maps `len` bytes at an address where 2 MiB pages fit.
    fn map_huge(fd: OwnedFd, len: usize) -> io::Result<Region> {
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh reservation at an address the kernel chooses aliases nothing, and the
        // file is mapped inside it; what is left of it is given back.
        let base = unsafe {
            let null = std::ptr::null_mut();
            let room =
                mmap_anonymous(null, len + HUGE_PAGE, ProtFlags::empty(), MapFlags::PRIVATE | MapFlags::NORESERVE)?;
            let lead = room.cast::<u8>().align_offset(HUGE_PAGE);
            let at = room.cast::<u8>().add(lead);
            if lead > 0 {
                munmap(room, lead)?;
            }
            munmap(at.add(len).cast(), HUGE_PAGE - lead)?;
            mmap(at.cast(), len, prot, MapFlags::SHARED | MapFlags::FIXED, &fd, 0)?
        };
        let base = NonNull::new(base.cast()).expect("mmap never returns null");
        Ok(Region { base, len, backing: Arc::new(Backing::Mapped { fd, base, len }) })
    }

    /// Populates the region and gathers its pages into 2 MiB pages.
    fn collapse(&self) -> io::Result<()> {
        let base = self.base.as_ptr().cast::<c_void>();
        // SAFETY: advice about this value's own mapping; populating writes nothing.
        unsafe {
            // The kernel may lack either; what counts is the last.
            let _ = madvise(base, self.len, Advice::LinuxHugepage);
            let _ = madvise(base, self.len, Advice::LinuxPopulateWrite);
            if libc::madvise(base, self.len, libc::MADV_COLLAPSE) != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    }

    /// Maps `len` bytes of a file descriptor as it is, for the packet socket's ring, whose
    /// size the kernel fixed.
    pub(crate) fn map(fd: OwnedFd, len: usize) -> io::Result<Region> {
        Region::map_at(fd, len, 0)
    }

    /// Maps `len` bytes of a file descriptor from byte `offset` on; see `map`.
    pub(crate) fn map_at(fd: OwnedFd, len: usize, offset: u64) -> io::Result<Region> {
        // SAFETY: a fresh mapping at an address the kernel chooses aliases nothing.
        let raw = unsafe {
            mmap(
                std::ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::POPULATE,
                &fd,
                offset,
            )?
        };
        let base = NonNull::new(raw.cast()).expect("mmap never returns null");
        Ok(Region { base, len, backing: Arc::new(Backing::Mapped { fd, base, len }) })
    }

    /// The memfd to hand to a peer; none for heap memory.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        match &*self.backing {
            Backing::Mapped { fd, .. } => Some(fd.as_fd()),
            Backing::Heap { .. } => None,
        }
    }

    /// Size in bytes.
    #[allow(clippy::len_without_is_empty, reason = "a region is never empty")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Address of `len` bytes at `offset`, for callers that touch payload in place. The peer
    /// may write the same bytes at any time, so what is read through it must be copied
    /// before it is trusted.
    pub fn ptr(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(offset <= self.len && len <= self.len - offset, "span outside the region");
        // SAFETY: the span was checked to lie inside the region.
        unsafe { self.base.as_ptr().add(offset) }
    }

    /// Copies `from` into the region at byte `offset`.
    #[inline]
    pub fn copy_in(&self, offset: usize, from: &[u8]) {
        let to = self.ptr(offset, from.len());
        if let Ok(line) = <&[u8; LINE]>::try_from(from) {
            // The commonest small packet; inlined it costs two vector moves.
            // SAFETY: the span was checked.
            return unsafe { to.cast::<[u8; LINE]>().write(*line) };
        }
        // SAFETY: both spans are valid for `from.len()` bytes, and `from` is private memory.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) }
    }

    /// Copies `from` into the region at byte `offset` with non-temporal stores, which bypass the caches. Falls back to
    /// cached stores off x86-64 and for what is not whole 8-byte words.
    pub fn copy_in_nt(&self, offset: usize, from: &[u8]) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        let to = self.ptr(offset, from.len());
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let done = 0;
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        let mut done = 0;
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if to.cast::<u64>().is_aligned() {
            for chunk in from.chunks_exact(8) {
                let word = i64::from_ne_bytes(chunk.try_into().expect("eight bytes"));
                // SAFETY: `to + done` is 8-byte aligned and inside the checked span.
                unsafe { core::arch::x86_64::_mm_stream_si64(to.add(done).cast(), word) };
                done += 8;
            }
            // SAFETY: no operands; orders the stores above before the signal that follows.
            unsafe { core::arch::x86_64::_mm_sfence() };
        }
        self.copy_in(offset + done, &from[done..]);
    }

    /// Copies bytes at `offset` out of the region.
    #[inline]
    pub fn copy_out(&self, offset: usize, to: &mut [u8]) {
        let from = self.ptr(offset, to.len());
        // SAFETY: both spans are valid for `to.len()` bytes, and `to` is private memory.
        unsafe { std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len()) }
    }

    /// Copies `len` bytes inside the region; the spans may overlap (a peer chose them).
    #[inline]
    pub fn copy_within(&self, from: usize, to: usize, len: usize) {
        let (from, to) = (self.ptr(from, len), self.ptr(to, len));
        if len == LINE {
            // The commonest small packet; inlined it costs four vector moves.
            // SAFETY: both spans were checked, and the value passes through registers.
            return unsafe { to.cast::<[u8; LINE]>().write(from.cast::<[u8; LINE]>().read()) };
        }
        // SAFETY: both spans were checked; `copy` allows them to overlap.
        unsafe { std::ptr::copy(from, to, len) }
    }

    /// Copies `len` bytes from `other` at `from` to this region at `to`.
    pub(crate) fn copy_between(&self, to: usize, other: &Region, from: usize, len: usize) {
        let (from, to) = (other.ptr(from, len), self.ptr(to, len));
        // SAFETY: both spans were checked; two regions are distinct mappings.
        unsafe { std::ptr::copy(from, to, len) }
    }

    /// Reads every byte of a span in place and returns the wrapping sum of its little-endian
    /// words (the last one zero-padded).
    #[inline]
    pub fn checksum(&self, offset: usize, len: usize) -> u64 {
        let from = self.ptr(offset, len);
        let mut sum = 0u64;
        for at in (0..len & !7).step_by(8) {
            // SAFETY: `at + 8 <= len`, inside the checked span.
            let word = unsafe { from.add(at).cast::<u64>().read_unaligned() };
            sum = sum.wrapping_add(u64::from_le(word));
        }
        let mut tail = [0u8; 8];
        let rest = len & 7;
        self.copy_out(offset + len - rest, &mut tail[..rest]);
        sum.wrapping_add(u64::from_le_bytes(tail))
    }

    /// Sets a span to zero; only while no peer uses it.
    pub(crate) fn zero(&self, offset: usize, len: usize) {
        let to = self.ptr(offset, len);
        // SAFETY: the span was checked.
        unsafe { std::ptr::write_bytes(to, 0, len) }
    }

    /// Places the pages of a span on a NUMA node. The span must start on a page.
    pub(crate) fn bind_node(&self, offset: usize, len: usize, node: u32) -> io::Result<()> {
        super::sys::mbind(self.ptr(offset, len).cast::<c_void>(), len, node)
    }

    #[inline]
    fn word(&self, word: usize) -> &AtomicU64 {
        assert!(word < self.len / 8, "word outside the region");
        // SAFETY: in range, aligned (the base is), and only ever accessed as an atomic.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().cast::<u64>().add(word)) }
    }

    /// Half a word at byte `offset`, as the kernel's rings use for indices.
    fn half(&self, offset: usize) -> &AtomicU32 {
        assert!(offset % 4 == 0 && offset <= self.len - 4, "half word outside the region");
        // SAFETY: in range, aligned, and only ever accessed as an atomic.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }

    pub(crate) fn get32_acquire(&self, offset: usize) -> u32 {
        self.half(offset).load(Ordering::Acquire)
    }

    pub(crate) fn put32_release(&self, offset: usize, value: u32) {
        self.half(offset).store(value, Ordering::Release)
    }

    #[inline]
    pub(crate) fn prefetch_byte(&self, offset: usize) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            use core::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
            // SAFETY: a prefetch never faults, whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(self.base.as_ptr().wrapping_add(offset).cast()) };
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = offset;
    }
}

impl Mem for Region {
    #[inline]
    fn get(&self, word: usize) -> u64 {
        self.word(word).load(Ordering::Relaxed)
    }
    #[inline]
    fn get_acquire(&self, word: usize) -> u64 {
        self.word(word).load(Ordering::Acquire)
    }
    #[inline]
    fn put(&self, word: usize, value: u64) {
        self.word(word).store(value, Ordering::Relaxed)
    }
    #[inline]
    fn put_release(&self, word: usize, value: u64) {
        self.word(word).store(value, Ordering::Release)
    }
    #[inline]
    fn add(&self, word: usize, value: u64) -> u64 {
        self.word(word).fetch_add(value, Ordering::AcqRel)
    }
    #[inline]
    fn swap_if(&self, word: usize, old: u64, new: u64) -> bool {
        self.word(word).compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
    fn fence(&self) {
        fence(Ordering::SeqCst);
    }
    fn heavy_fence(&self) {
        super::sys::heavy_fence();
    }
    #[inline]
    fn light_fence(&self) {
        super::sys::light_fence();
    }
    #[inline]
    fn prefetch_write(&self, word: usize) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            use core::arch::x86_64::{_mm_prefetch, _MM_HINT_ET0};
            // SAFETY: a prefetch never faults, whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_ET0>(self.base.as_ptr().wrapping_add(word * 8).cast()) };
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = word;
    }
    #[inline]
    fn prefetch_read(&self, word: usize) {
        self.prefetch_byte(word * 8);
    }
}

impl Drop for Backing {
    fn drop(&mut self) {
        match self {
            // SAFETY: the mapping was made in `map` with this length and is dropped once.
            Backing::Mapped { base, len, .. } => unsafe {
                let _ = munmap(base.as_ptr().cast(), *len);
            },
            // SAFETY: allocated in `heap` with this layout.
            Backing::Heap { base, layout } => unsafe { dealloc(base.as_ptr(), *layout) },
        }
    }
}

/// A cheap monotonic counter for measurements: the time-stamp counter on x86-64, else
/// nanoseconds. Its rate is constant; calibrate it against a clock.
#[inline]
pub fn timestamp() -> u64 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        // SAFETY: the instruction has no preconditions.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    {
        static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
        START.get_or_init(std::time::Instant::now).elapsed().as_nanos() as u64
    }
}
