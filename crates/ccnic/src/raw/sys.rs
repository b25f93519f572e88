//! System calls that have no safe wrapper in `rustix`.

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `MPOL_BIND` of a page-aligned span to one NUMA node.
pub(super) fn mbind(start: *mut c_void, len: usize, node: u32) -> io::Result<()> {
    const MPOL_BIND: i32 = 2;
    const MPOL_MF_MOVE: u32 = 2;
    let mask: u64 = 1u64
        .checked_shl(node)
        .ok_or_else(|| io::Error::other(format!("NUMA node {node} is above 63")))?;
    // SAFETY: the kernel reads one mask word and changes only the placement of the pages.
    let rc = unsafe {
        libc::syscall(libc::SYS_mbind, start, len, MPOL_BIND, &mask as *const u64, 65, MPOL_MF_MOVE)
    };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// `setsockopt` of a plain value (an integer or one of the packet socket's request structs).
pub(crate) fn set_option<T: Copy>(fd: BorrowedFd<'_>, level: i32, name: i32, value: &T) -> io::Result<()> {
    // SAFETY: the kernel reads `size_of::<T>()` bytes of a live value.
    let rc = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (value as *const T).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
