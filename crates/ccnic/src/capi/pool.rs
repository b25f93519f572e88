//! Buffers of a whole port in the C ABI, for callers that place their own mempool in it.

use std::ffi::{c_int, c_void};

use super::nic::give;
use super::{null, slice, slice_mut, CPort};
use crate::buf::RawBuf;
use crate::side::HostPool;

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_pool_open(port: *mut CPort, out: *mut *mut HostPool) -> c_int {
    if port.is_null() || out.is_null() {
        return null();
    }
    // SAFETY: a live port, and a valid place for a pointer.
    unsafe { give((*port).port.pool(), out) }
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_pool_close(pool: *mut HostPool) {
    if !pool.is_null() {
        // SAFETY: made by `ccnic_pool_open` and not used again.
        drop(unsafe { Box::from_raw(pool) });
    }
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_pool_take(pool: *const HostPool, bufs: *mut RawBuf, n: u32) -> c_int {
    // SAFETY: `n` buffers.
    let (false, Some(bufs)) = (pool.is_null(), unsafe { slice_mut(bufs, n) }) else {
        return null();
    };
    // SAFETY: a live pool.
    let pool = unsafe { &*pool };
    pool.take(bufs) as c_int
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_pool_put(pool: *const HostPool, bufs: *const RawBuf, n: u32) -> c_int {
    // SAFETY: `n` buffers.
    let (false, Some(bufs)) = (pool.is_null(), unsafe { slice(bufs, n) }) else {
        return null();
    };
    // SAFETY: a live pool.
    let pool = unsafe { &*pool };
    pool.put(bufs) as c_int
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_pool_available(pool: *const HostPool) -> c_int {
    if pool.is_null() {
        return null();
    }
    // SAFETY: a live pool.
    unsafe { &*pool }.available() as c_int
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_pool_buffer(
    pool: *const HostPool,
    n: u32,
    buf: *mut RawBuf,
    room: *mut u32,
) -> *mut c_void {
    if pool.is_null() || buf.is_null() || room.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: a live pool.
    let Some((raw, data, size)) = unsafe { &*pool }.buffer(n) else {
        return std::ptr::null_mut();
    };
    // SAFETY: valid places for a handle and a number.
    unsafe {
        buf.write(raw);
        room.write(size as u32);
    }
    data.cast()
}
