//! System calls that have no safe wrapper in `rustix`.

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{compiler_fence, fence, Ordering};
use std::sync::OnceLock;

/// True when this process can rely on `membarrier` in place of a fence in the path of every burst.
fn membarrier_works() -> bool {
    static WORKS: OnceLock<bool> = OnceLock::new();
    *WORKS.get_or_init(|| !cfg!(miri) && membarrier(libc::MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED).is_ok())
}

fn membarrier(command: i32) -> io::Result<()> {
    // SAFETY: no pointers; the call orders memory accesses and changes nothing else.
    let rc = unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
    if rc == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// A fence on this CPU and on all that run a registered process: the costly half of a pair whose
/// frequent half is `light_fence`.
pub(super) fn heavy_fence() {
    fence(Ordering::SeqCst);
    if membarrier_works() {
        // A sleep is bounded even if this fails.
        let _ = membarrier(libc::MEMBARRIER_CMD_GLOBAL_EXPEDITED);
    }
}

#[inline]
pub(super) fn light_fence() {
    if membarrier_works() {
        compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

/// `MPOL_BIND` of a page-aligned span to one NUMA node.
pub(super) fn mbind(start: *mut c_void, len: usize, node: u32) -> io::Result<()> {
    const MPOL_BIND: i32 = 2;
    const MPOL_MF_MOVE: u32 = 2;
    let mask: u64 = 1u64.checked_shl(node).ok_or_else(|| io::Error::other(format!("NUMA node {node} is above 63")))?;
    // SAFETY: the kernel reads one mask word and changes only the placement of the pages.
    let rc = unsafe { libc::syscall(libc::SYS_mbind, start, len, MPOL_BIND, &mask as *const u64, 65, MPOL_MF_MOVE) };
    if rc == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// `setsockopt` of a plain value (an integer or one of the packet socket's request structs).
pub(crate) fn set_option<T: Copy>(fd: BorrowedFd<'_>, level: i32, name: i32, value: &T) -> io::Result<()> {
    // SAFETY: the kernel reads `size_of::<T>()` bytes of a live value.
    let rc = unsafe {
        libc::setsockopt(fd.as_raw_fd(), level, name, (value as *const T).cast(), size_of::<T>() as libc::socklen_t)
    };
    if rc == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// A raw packet socket on interface `index` that sees every frame others send there, with
/// no ring yet.
pub(crate) fn packet_socket(index: u32) -> io::Result<OwnedFd> {
    let protocol = (libc::ETH_P_ALL as u16).to_be();
    // SAFETY: no pointers; the result is checked before it is owned.
    let raw = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a fresh descriptor that nobody else owns.
    let fd = unsafe { OwnedFd::from_raw_fd(raw) };
    const PACKET_IGNORE_OUTGOING: i32 = 23;
    set_option(fd.as_fd(), libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &1i32)?;
    let member = libc::packet_mreq {
        mr_ifindex: index as i32,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &member)?;
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol,
        sll_ifindex: index as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    // SAFETY: the kernel reads one `sockaddr_ll`.
    let rc = unsafe {
        libc::bind(
            fd.as_raw_fd(),
            (&address as *const libc::sockaddr_ll).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    if rc == 0 {
        Ok(fd)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Tells the kernel to transmit the frames marked in the socket's TX ring.
pub(crate) fn kick(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: a null buffer of length zero.
    let rc = unsafe { libc::send(fd.as_raw_fd(), std::ptr::null(), 0, libc::MSG_DONTWAIT) };
    if rc >= 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
