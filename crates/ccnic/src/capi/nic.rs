//! The NIC's side of the C ABI.

use std::ffi::{c_char, c_int, c_void, CStr};

use super::{code, copy_out, count, done, null, slice, slice_mut, CPort};
use crate::buf::RawBuf;
use crate::desc::MAX_SEGMENTS;
use crate::error::Error;
use crate::nic::{NicPort, NicQueue};
use crate::server::NicServer;

/// Hands a fresh object to C, or reports why there is none.
pub(super) unsafe fn give<T>(result: Result<T, Error>, out: *mut *mut T) -> c_int {
    match result {
        Ok(value) => {
            // SAFETY: the caller checked that `out` is a place for a pointer.
            unsafe { out.write(Box::into_raw(Box::new(value))) };
            0
        }
        Err(e) => code(&e),
    }
}

/// Takes an object back from C.
unsafe fn drop_box<T>(object: *mut T) {
    if !object.is_null() {
        // SAFETY: made by `give` and not used again.
        drop(unsafe { Box::from_raw(object) });
    }
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_server_listen(path: *const c_char, out: *mut *mut NicServer) -> c_int {
    if path.is_null() || out.is_null() {
        return null();
    }
    // SAFETY: a terminated string.
    let server = match unsafe { CStr::from_ptr(path) }.to_str() {
        Ok(path) => NicServer::bind(path),
        Err(_) => Err(Error::Usage("the socket path is not UTF-8")),
    };
    // SAFETY: a valid place for a pointer.
    unsafe { give(server, out) }
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_server_accept(server: *const NicServer, out: *mut *mut NicPort) -> c_int {
    if server.is_null() || out.is_null() {
        return null();
    }
    // SAFETY: a live server, and a valid place for a pointer.
    unsafe { give((*server).accept(), out) }
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_server_close(server: *mut NicServer) {
    // SAFETY: as the header demands.
    unsafe { drop_box(server) }
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_nic_attach(port: *mut CPort, out: *mut *mut NicPort) -> c_int {
    if port.is_null() || out.is_null() {
        return null();
    }
    // SAFETY: a live port, and a valid place for a pointer.
    unsafe { give((*port).port.local_nic(), out) }
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_nic_destroy(nic: *mut NicPort) {
    // SAFETY: as the header demands.
    unsafe { drop_box(nic) }
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_nic_host_alive(nic: *const NicPort) -> c_int {
    if nic.is_null() {
        return 0;
    }
    // SAFETY: a live NIC.
    c_int::from(unsafe { &*nic }.host_alive())
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_nic_queues(nic: *const NicPort) -> u32 {
    if nic.is_null() {
        return 0;
    }
    // SAFETY: a live NIC.
    unsafe { &*nic }.config().served()
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_nic_queue_open(nic: *mut NicPort, id: u32, out: *mut *mut NicQueue) -> c_int {
    if nic.is_null() || out.is_null() {
        return null();
    }
    // SAFETY: a live NIC, and a valid place for a pointer.
    unsafe { give((*nic).queue(id), out) }
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_nic_queue_close(queue: *mut NicQueue) {
    // SAFETY: as the header demands.
    unsafe { drop_box(queue) }
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_nic_tx_poll(queue: *mut NicQueue, bufs: *mut RawBuf, n: u32) -> c_int {
    // SAFETY: `n` buffers.
    let (false, Some(bufs)) = (queue.is_null(), unsafe { slice_mut(bufs, n) }) else {
        return null();
    };
    // SAFETY: a live queue of this thread.
    let queue = unsafe { &mut *queue };
    count(queue.tx_poll_raw(bufs))
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_nic_tx_done(queue: *mut NicQueue) {
    if !queue.is_null() {
        // SAFETY: a live queue of this thread.
        unsafe { &mut *queue }.tx_done();
    }
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_nic_free(queue: *mut NicQueue, bufs: *const RawBuf, n: u32) {
    // SAFETY: `n` buffers.
    if let (false, Some(bufs)) = (queue.is_null(), unsafe { slice(bufs, n) }) {
        // SAFETY: a live queue of this thread.
        unsafe { &mut *queue }.free_raw(bufs);
    }
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_nic_alloc(queue: *mut NicQueue, bytes: u32, bufs: *mut RawBuf) -> c_int {
    if queue.is_null() || bufs.is_null() {
        return null();
    }
    let mut raw = [RawBuf::default(); MAX_SEGMENTS];
    // SAFETY: a live queue of this thread.
    let got = unsafe { &mut *queue }.alloc_packet_raw(bytes as usize, &mut raw);
    if let Ok(n) = got {
        // SAFETY: room for `MAX_SEGMENTS` buffers, as the header demands.
        unsafe { std::slice::from_raw_parts_mut(bufs, MAX_SEGMENTS)[..n].copy_from_slice(&raw[..n]) };
    }
    count(got)
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_nic_rx_post(queue: *mut NicQueue, bufs: *const RawBuf, n: u32) -> c_int {
    // SAFETY: `n` buffers.
    let (false, Some(bufs)) = (queue.is_null(), unsafe { slice(bufs, n) }) else {
        return null();
    };
    // SAFETY: a live queue of this thread.
    let queue = unsafe { &mut *queue };
    count(queue.rx_post_raw(bufs))
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_nic_loopback(queue: *mut NicQueue, budget: u32) -> c_int {
    if queue.is_null() {
        return null();
    }
    // SAFETY: a live queue of this thread.
    count(unsafe { &mut *queue }.loopback(budget as usize))
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_nic_drain(queue: *mut NicQueue) {
    if !queue.is_null() {
        // SAFETY: a live queue of this thread.
        unsafe { &mut *queue }.drain();
    }
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_nic_base(queue: *const NicQueue) -> *mut c_void {
    if queue.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: a live queue.
    unsafe { &*queue }.region().ptr(0, 0).cast()
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_nic_wait(queue: *mut NicQueue) -> c_int {
    if queue.is_null() {
        return null();
    }
    // SAFETY: a live queue of this thread.
    done(unsafe { &mut *queue }.wait())
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_nic_features(nic: *const NicPort) -> u32 {
    if nic.is_null() {
        return 0;
    }
    // SAFETY: a live NIC.
    unsafe { &*nic }.features().0
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_nic_rss_queue(nic: *const NicPort, frame: *const c_void, len: u32) -> u32 {
    if nic.is_null() || frame.is_null() {
        return 0;
    }
    // SAFETY: a live NIC, and `len` bytes of a frame.
    let (nic, frame) = unsafe { (&*nic, std::slice::from_raw_parts(frame.cast::<u8>(), len as usize)) };
    nic.rss().queue(frame, nic.config().served()).0
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_server_allow_user(server: *mut NicServer, uid: u32) {
    if !server.is_null() {
        // SAFETY: a live server.
        done(unsafe { &mut *server }.allow_user(uid));
    }
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_server_set_limit(server: *mut NicServer, bytes: u64) {
    if !server.is_null() {
        // SAFETY: a live server.
        unsafe { &mut *server }.set_limit(usize::try_from(bytes).unwrap_or(usize::MAX));
    }
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_nic_queue_stats_sized(queue: *const NicQueue, out: *mut u64, size: usize) {
    if !queue.is_null() && !out.is_null() {
        // SAFETY: a live queue, and `size` bytes for the counters.
        unsafe { copy_out(&(*queue).stats().words(), out, size) };
    }
}
