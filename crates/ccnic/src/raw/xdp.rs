//! AF_XDP: the socket with its frames and rings, and the program that redirects frames to it.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::sys::set_option;
use super::Region;

/// Where a ring lies in the socket's mapping.
#[derive(Clone, Copy)]
pub(crate) struct RingPlace {
    pub page_offset: u64,
    pub producer: u64,
    pub consumer: u64,
    pub desc: u64,
}

/// A socket over `frames`, which must live as long as it, with rings of `entries`; returns the
/// places of the RX, TX, fill and completion ring.
pub(crate) fn socket(frames: &Region, frame: u32, entries: u32) -> io::Result<(OwnedFd, [RingPlace; 4])> {
    use std::os::fd::AsFd;
    // SAFETY: no pointers; the result is checked before it is owned.
    let fd = owned(unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) }.into())?;
    let memory = libc::xdp_umem_reg_v1 {
        addr: frames.ptr(0, frames.len()) as u64,
        len: frames.len() as u64,
        chunk_size: frame,
        headroom: 0,
    };
    set_option(fd.as_fd(), libc::SOL_XDP, libc::XDP_UMEM_REG, &memory)?;
    for ring in [libc::XDP_UMEM_FILL_RING, libc::XDP_UMEM_COMPLETION_RING, libc::XDP_RX_RING, libc::XDP_TX_RING] {
        set_option(fd.as_fd(), libc::SOL_XDP, ring, &entries)?;
    }
    // SAFETY: plain numbers, for which zero is a value.
    let mut offsets: libc::xdp_mmap_offsets = unsafe { std::mem::zeroed() };
    let mut len = size_of::<libc::xdp_mmap_offsets>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes of a live value.
    let rc = unsafe {
        let to = (&mut offsets as *mut libc::xdp_mmap_offsets).cast();
        libc::getsockopt(fd.as_raw_fd(), libc::SOL_XDP, libc::XDP_MMAP_OFFSETS, to, &mut len)
    };
    if rc != 0 {
        return Err(io::Error::last_os_error());
    }
    let place = |page_offset: u64, o: libc::xdp_ring_offset| RingPlace {
        page_offset,
        producer: o.producer,
        consumer: o.consumer,
        desc: o.desc,
    };
    let places = [
        place(libc::XDP_PGOFF_RX_RING as u64, offsets.rx),
        place(libc::XDP_PGOFF_TX_RING as u64, offsets.tx),
        place(libc::XDP_UMEM_PGOFF_FILL_RING, offsets.fr),
        place(libc::XDP_UMEM_PGOFF_COMPLETION_RING, offsets.cr),
    ];
    Ok((fd, places))
}

/// Binds the socket to queue 0 of interface `index`.
pub(crate) fn bind(fd: BorrowedFd<'_>, index: u32) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: 0,
        sxdp_ifindex: index,
        sxdp_queue_id: 0,
        sxdp_shared_umem_fd: 0,
    };
    // SAFETY: the kernel reads one `sockaddr_xdp`.
    let rc = unsafe {
        let at = (&address as *const libc::sockaddr_xdp).cast();
        libc::bind(fd.as_raw_fd(), at, size_of::<libc::sockaddr_xdp>() as libc::socklen_t)
    };
    if rc == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Attaches to interface `index` a program that hands frames of queue 0 to the socket and all
/// others to the kernel. Closing the result detaches it.
pub(crate) fn redirect(socket: BorrowedFd<'_>, index: u32) -> io::Result<OwnedFd> {
    const MAP_CREATE: u32 = 0;
    const MAP_UPDATE: u32 = 2;
    const PROG_LOAD: u32 = 5;
    const LINK_CREATE: u32 = 28;
    const MAP_TYPE_XSKMAP: u32 = 17;
    const PROG_TYPE_XDP: u32 = 6;
    const ATTACH_XDP: u32 = 37;

    let map = owned(bpf(MAP_CREATE, &[MAP_TYPE_XSKMAP, 4, 4, 1, 0, 0])?)?;
    let (key, value) = (0u32, socket.as_raw_fd());
    let [key_low, key_high] = halves(&key as *const u32 as u64);
    let [value_low, value_high] = halves(&value as *const i32 as u64);
    bpf(MAP_UPDATE, &[map.as_raw_fd() as u32, 0, key_low, key_high, value_low, value_high, 0, 0])?;

    let instruction = |code: u8, registers: u8, offset: u16, value: u32| {
        u64::from(code) | u64::from(registers) << 8 | u64::from(offset) << 16 | u64::from(value) << 32
    };
    const XDP_PASS: u32 = 2;
    const REDIRECT_MAP: u32 = 51;
    const PSEUDO_MAP_FD: u8 = 1;
    // return bpf_redirect_map(map, context->rx_queue_index, XDP_PASS);
    let program = [
        instruction(0x61, 0x12, 16, 0), // r2 = *(u32 *)(r1 + 16)
        instruction(0x18, PSEUDO_MAP_FD << 4 | 1, 0, map.as_raw_fd() as u32), // r1 = map
        0,
        instruction(0xb7, 3, 0, XDP_PASS), // r3 = XDP_PASS
        instruction(0x85, 0, 0, REDIRECT_MAP),
        instruction(0x95, 0, 0, 0),
    ];
    let license = c"Apache-2.0";
    let [program_low, program_high] = halves(program.as_ptr() as u64);
    let [license_low, license_high] = halves(license.as_ptr() as u64);
    let load =
        [PROG_TYPE_XDP, program.len() as u32, program_low, program_high, license_low, license_high, 0, 0, 0, 0, 0, 0];
    let loaded = owned(bpf(PROG_LOAD, &load)?)?;
    owned(bpf(LINK_CREATE, &[loaded.as_raw_fd() as u32, index, ATTACH_XDP, 0])?)
}

fn halves(word: u64) -> [u32; 2] {
    let bytes = word.to_ne_bytes();
    [0, 4].map(|at| u32::from_ne_bytes(std::array::from_fn(|i| bytes[at + i])))
}

/// One `bpf` call; the attributes are the words of the command's struct, the rest is zero.
/// Pointers among them must be to live memory that the command only reads.
fn bpf(command: u32, words: &[u32]) -> io::Result<i64> {
    let mut attributes = [0u64; 16];
    for (i, pair) in words.chunks(2).enumerate() {
        let mut bytes = [0; 8];
        for (to, word) in bytes.chunks_exact_mut(4).zip(pair) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        attributes[i] = u64::from_ne_bytes(bytes);
    }
    // SAFETY: the kernel reads the attributes, and through the pointers in them what the
    // callers above keep alive: a key, a value, a program and its licence.
    let rc = unsafe { libc::syscall(libc::SYS_bpf, command, attributes.as_ptr(), size_of_val(&attributes)) };
    if rc < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(rc)
    }
}

fn owned(fd: i64) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a fresh descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}
