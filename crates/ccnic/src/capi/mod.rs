//! The C ABI declared in `include/ccnic.h`, where each function's contract is written.
//!
//! Every function checks its pointers for null and reports failures as negative codes; the
//! sentence is kept per thread for `ccnic_last_error`. Pointers that are not null must be
//! what the header says they are; that is the only thing taken on trust.
#![allow(clippy::missing_safety_doc, reason = "the header states each contract once")]

mod nic;
mod pool;

use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{mpsc, Arc};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::buf::RawBuf;
use crate::config::Config;
use crate::error::Error;
use crate::host::HostPort;
use crate::nic::{NicPort, NicQueue};
use crate::offload::Offload;
use crate::queue::HostQueue;
use crate::rss::Rss;

thread_local! {
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

/// `ccnic_port`.
pub struct CPort {
    port: HostPort,
    notice: Option<CString>,
    nic: Option<(Arc<AtomicBool>, JoinHandle<()>)>,
}

/// `ccnic_config`: its size in bytes, and the message form of [`Config`], one word per field.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CConfig {
    struct_size: u32,
    words: [u32; Config::WORDS],
}

impl CConfig {
    /// Reads as much as the caller's version of the structure has.
    unsafe fn read(config: *const CConfig) -> Result<Config, Error> {
        // SAFETY: the first word of a valid `ccnic_config` is its size.
        let size = unsafe { (&raw const (*config).struct_size).read() };
        if !(8..=4096).contains(&size) || size % 4 != 0 {
            return Err(Error::Config(format!(
                "struct_size = {size} is not that of a ccnic_config; call ccnic_config_init first"
            )));
        }
        // SAFETY: the structure has `size` bytes, by its own word.
        let words = unsafe { std::slice::from_raw_parts(config.cast::<u32>().add(1), size as usize / 4 - 1) };
        Config::from_words(words)
    }
}

/// Copies a structure of words to a caller whose version of it may be shorter or longer.
unsafe fn copy_out(words: &[u64], to: *mut u64, size: usize) {
    let n = (size / 8).min(words.len());
    // SAFETY: the caller has `size` bytes there.
    unsafe {
        std::ptr::copy_nonoverlapping(words.as_ptr(), to, n);
        std::ptr::write_bytes(to.add(n), 0, size / 8 - n);
    }
}

fn code(e: &Error) -> c_int {
    LAST.with(|l| *l.borrow_mut() = CString::new(e.to_string()).unwrap_or_default());
    match e {
        Error::Config(_) => -1,
        Error::Fault(_) => -2,
        Error::Usage(_) => -3,
        Error::Peer(_) => -4,
        Error::Io(_) => -5,
    }
}

fn null() -> c_int {
    code(&Error::Usage("a pointer argument is null"))
}

fn done(result: Result<(), Error>) -> c_int {
    result.map_or_else(|e| code(&e), |()| 0)
}

fn count(result: Result<usize, Error>) -> c_int {
    result.map_or_else(|e| code(&e), |n| n as c_int)
}

/// A burst array; none for null, which is allowed when empty.
unsafe fn slice<'a>(bufs: *const RawBuf, n: u32) -> Option<&'a [RawBuf]> {
    if n == 0 {
        return Some(&[]);
    }
    // SAFETY: the caller passed `n` buffers, as the header demands.
    (!bufs.is_null()).then(|| unsafe { std::slice::from_raw_parts(bufs, n as usize) })
}

unsafe fn slice_mut<'a>(bufs: *mut RawBuf, n: u32) -> Option<&'a mut [RawBuf]> {
    if n == 0 {
        return Some(&mut []);
    }
    // SAFETY: as in `slice`.
    (!bufs.is_null()).then(|| unsafe { std::slice::from_raw_parts_mut(bufs, n as usize) })
}

/// See `ccnic.h`.
#[no_mangle]
pub extern "C" fn ccnic_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// See `ccnic.h`.
#[no_mangle]
pub extern "C" fn ccnic_last_error() -> *const c_char {
    LAST.with(|l| l.borrow().as_ptr())
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_config_init_sized(config: *mut CConfig, struct_size: u32, unoptimised: c_int) {
    if config.is_null() || struct_size < 4 {
        return;
    }
    let c = if unoptimised != 0 { Config::unoptimised() } else { Config::default() };
    let n = (struct_size as usize / 4 - 1).min(Config::WORDS);
    // SAFETY: a `ccnic_config` of `struct_size` bytes to fill.
    unsafe {
        let to = config.cast::<u32>();
        to.write_bytes(0, struct_size as usize / 4);
        to.write(struct_size);
        std::ptr::copy_nonoverlapping(c.to_words().as_ptr(), to.add(1), n);
    }
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_port_create(config: *const CConfig, out: *mut *mut CPort) -> c_int {
    if config.is_null() || out.is_null() {
        return null();
    }
    // SAFETY: a valid `ccnic_config`.
    match unsafe { CConfig::read(config) }.and_then(HostPort::create) {
        Ok(port) => {
            let notice = port.notice().and_then(|n| CString::new(n).ok());
            // SAFETY: a valid place for a pointer.
            unsafe { out.write(Box::into_raw(Box::new(CPort { port, notice, nic: None }))) };
            0
        }
        Err(e) => code(&e),
    }
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_port_notice(port: *const CPort) -> *const c_char {
    if port.is_null() {
        return std::ptr::null();
    }
    // SAFETY: a live port.
    unsafe { &*port }.notice.as_ref().map_or(std::ptr::null(), |n| n.as_ptr())
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_port_features(port: *const CPort) -> u32 {
    if port.is_null() {
        return 0;
    }
    // SAFETY: a live port.
    unsafe { &*port }.port.features().0
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_port_set_rss(port: *mut CPort, rss: *const CRss) -> c_int {
    if port.is_null() || rss.is_null() {
        return null();
    }
    // SAFETY: a live port, and a structure to read.
    let (port, rss) = unsafe { (&mut *port, *rss) };
    done(port.port.set_rss(Rss::new(rss.key, rss.table, rss.fields)))
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_port_set_mtu(port: *mut CPort, mtu: u32) -> c_int {
    if port.is_null() {
        return null();
    }
    // SAFETY: a live port.
    done(unsafe { &mut *port }.port.set_mtu(mtu))
}

/// `ccnic_rss`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CRss {
    key: [u8; 40],
    table: [u8; Rss::ENTRIES],
    fields: u32,
}

/// `ccnic_offload`.
#[repr(C)]
pub struct COffload {
    flags: u8,
    gso_type: u8,
    hdr_len: u16,
    gso_size: u16,
    csum_start: u16,
    csum_offset: u16,
    zero: u16,
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_offload_parse(bytes: *const c_void, frame: u32, out: *mut COffload) -> c_int {
    if bytes.is_null() || out.is_null() {
        return null();
    }
    let mut copy = [0u8; Offload::BYTES];
    // SAFETY: as many bytes to read as the structure has; a peer may write them meanwhile, so
    // they are copied before they are looked at.
    unsafe { std::ptr::copy(bytes.cast::<u8>(), copy.as_mut_ptr(), copy.len()) };
    match Offload::parse(&copy, frame as usize) {
        Ok(o) => {
            let Offload { flags, gso_type, hdr_len, gso_size, csum_start, csum_offset } = o;
            // SAFETY: a valid place for the structure.
            unsafe { out.write(COffload { flags, gso_type, hdr_len, gso_size, csum_start, csum_offset, zero: 0 }) };
            0
        }
        Err(fault) => code(&Error::Fault(fault)),
    }
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_port_destroy(port: *mut CPort) {
    if !port.is_null() {
        // SAFETY: made by `ccnic_port_create` and not used again.
        let mut port = unsafe { Box::from_raw(port) };
        stop_nic(&mut port);
    }
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_port_connect(port: *mut CPort, path: *const c_char) -> c_int {
    if port.is_null() || path.is_null() {
        return null();
    }
    // SAFETY: a live port, and a terminated string.
    let (port, path) = unsafe { (&mut *port, CStr::from_ptr(path)) };
    done(match path.to_str() {
        Ok(path) => port.port.connect(path),
        Err(_) => Err(Error::Usage("the socket path is not UTF-8")),
    })
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_port_start_loopback(port: *mut CPort, cpu: c_int) -> c_int {
    if port.is_null() {
        return null();
    }
    // SAFETY: a live port.
    done(start_loopback(unsafe { &mut *port }, cpu))
}

fn start_loopback(port: &mut CPort, cpu: c_int) -> Result<(), Error> {
    if port.port.peer_alive() {
        return Err(Error::Usage("the port already has a NIC"));
    }
    stop_nic(port);
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    let (placed, place) = mpsc::channel();
    let (give, take) = mpsc::channel::<(NicPort, Vec<NicQueue>)>();
    let thread = std::thread::Builder::new().name("ccnic-nic".into()).spawn(move || {
        // Without a receiver there is nothing to take, either.
        let _ = placed.send(usize::try_from(cpu).map_or(Ok(()), crate::pin_to_cpu));
        if let Ok((nic, mut queues)) = take.recv() {
            nic.serve_loopback(&mut queues, &flag);
        }
    })?;
    place.recv().unwrap_or(Err(Error::Usage("the NIC thread ended")))?;
    let mut nic = port.port.local_nic()?;
    let queues: Result<Vec<_>, Error> = (0..nic.config().served()).map(|q| nic.queue(q)).collect();
    let queues = queues?;
    // The thread waits for it.
    let _ = give.send((nic, queues));
    port.nic = Some((stop, thread));
    Ok(())
}

fn stop_nic(port: &mut CPort) {
    if let Some((stop, thread)) = port.nic.take() {
        stop.store(true, Ordering::Relaxed);
        // A panic of the NIC thread is the same to the host as its end.
        let _ = thread.join();
    }
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_port_stop_nic(port: *mut CPort) {
    if !port.is_null() {
        // SAFETY: a live port.
        let port = unsafe { &mut *port };
        stop_nic(port);
        port.port.disconnect();
    }
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_port_set_served(port: *mut CPort, queues: u32) -> c_int {
    if port.is_null() {
        return null();
    }
    // SAFETY: a live port.
    done(unsafe { &mut *port }.port.set_served(queues))
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_port_peer_alive(port: *const CPort) -> c_int {
    if port.is_null() {
        return 0;
    }
    // SAFETY: a live port.
    c_int::from(unsafe { &*port }.port.peer_alive())
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_port_recover(port: *mut CPort, queues: *const *mut HostQueue, n: u32) -> c_int {
    if port.is_null() || (queues.is_null() && n > 0) {
        return null();
    }
    // SAFETY: `n` pointers, which are only compared here: two references to one queue must not be.
    let pointers = unsafe {
        if n == 0 {
            &[][..]
        } else {
            std::slice::from_raw_parts(queues, n as usize)
        }
    };
    if (1..pointers.len()).any(|i| pointers[..i].contains(&pointers[i])) {
        return code(&Error::Usage("recover was given the same queue twice"));
    }
    let mut open = Vec::with_capacity(n as usize);
    for i in 0..n as usize {
        // SAFETY: `n` pointers to distinct open queues that no thread is using.
        match unsafe { (*queues.add(i)).as_mut() } {
            Some(q) => open.push(q),
            None => return null(),
        }
    }
    // SAFETY: a live port.
    done(unsafe { &mut *port }.port.recover(&mut open))
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_port_resets(port: *const CPort) -> u64 {
    if port.is_null() {
        return 0;
    }
    // SAFETY: a live port.
    unsafe { &*port }.port.resets()
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_queue_open(port: *mut CPort, id: u32, out: *mut *mut HostQueue) -> c_int {
    if port.is_null() || out.is_null() {
        return null();
    }
    // SAFETY: a live port.
    match unsafe { &mut *port }.port.queue(id) {
        Ok(queue) => {
            // SAFETY: a valid place for a pointer.
            unsafe { out.write(Box::into_raw(Box::new(queue))) };
            0
        }
        Err(e) => code(&e),
    }
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_queue_close(queue: *mut HostQueue) {
    if !queue.is_null() {
        // SAFETY: made by `ccnic_queue_open` and not used again.
        drop(unsafe { Box::from_raw(queue) });
    }
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_alloc(queue: *mut HostQueue, bufs: *mut RawBuf, n: u32, size_hint: u32) -> c_int {
    // SAFETY: `n` buffers.
    let (false, Some(bufs)) = (queue.is_null(), unsafe { slice_mut(bufs, n) }) else {
        return null();
    };
    // SAFETY: a live queue of this thread.
    let queue = unsafe { &mut *queue };
    queue.alloc_raw(bufs, size_hint as usize) as c_int
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_free(queue: *mut HostQueue, bufs: *const RawBuf, n: u32) -> c_int {
    // SAFETY: `n` buffers.
    let (false, Some(bufs)) = (queue.is_null(), unsafe { slice(bufs, n) }) else {
        return null();
    };
    // SAFETY: a live queue of this thread.
    let queue = unsafe { &mut *queue };
    queue.free_raw(bufs) as c_int
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_retain(queue: *mut HostQueue, buf: *const RawBuf) -> c_int {
    if queue.is_null() || buf.is_null() {
        return null();
    }
    // SAFETY: a live queue of this thread, and a buffer.
    let (queue, index) = unsafe { (&mut *queue, (*buf).index) };
    done(queue.retain_index(index))
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_tx(queue: *mut HostQueue, bufs: *const RawBuf, n: u32) -> c_int {
    // SAFETY: `n` buffers.
    let (false, Some(bufs)) = (queue.is_null(), unsafe { slice(bufs, n) }) else {
        return null();
    };
    // SAFETY: a live queue of this thread.
    let queue = unsafe { &mut *queue };
    count(queue.tx_raw(bufs))
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_rx(queue: *mut HostQueue, bufs: *mut RawBuf, n: u32) -> c_int {
    // SAFETY: `n` buffers.
    let (false, Some(bufs)) = (queue.is_null(), unsafe { slice_mut(bufs, n) }) else {
        return null();
    };
    // SAFETY: a live queue of this thread.
    let queue = unsafe { &mut *queue };
    count(queue.rx_raw(bufs))
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_sweep(queue: *mut HostQueue) -> c_int {
    if queue.is_null() {
        return null();
    }
    // SAFETY: a live queue of this thread.
    count(unsafe { &mut *queue }.sweep())
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_data(queue: *const HostQueue, buf: *const RawBuf, room: *mut u32) -> *mut c_void {
    if queue.is_null() || buf.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: a live queue, and a buffer.
    let (queue, buf) = unsafe { (&*queue, &*buf) };
    let Some((data, size)) = queue.data_ptr(buf) else {
        return std::ptr::null_mut();
    };
    if !room.is_null() {
        // SAFETY: a valid place for a number.
        unsafe { room.write(size as u32) };
    }
    data.cast()
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_base(queue: *const HostQueue) -> *mut c_void {
    if queue.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: a live queue.
    unsafe { &*queue }.region().ptr(0, 0).cast()
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_wait(queue: *mut HostQueue, timeout_us: u32) -> c_int {
    if queue.is_null() {
        return null();
    }
    // SAFETY: a live queue of this thread.
    let waited = unsafe { &mut *queue }.wait(Duration::from_micros(timeout_us.into()));
    count(waited.map(usize::from))
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_event_fd(queue: *const HostQueue) -> c_int {
    if queue.is_null() {
        return null();
    }
    // SAFETY: a live queue.
    let end = unsafe { &*queue }.event_fd();
    end.map_or_else(|| done(Err(Error::Usage("the queue has no NIC in event mode"))), |e| e.as_raw_fd())
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_arm(queue: *mut HostQueue) -> c_int {
    if queue.is_null() {
        return null();
    }
    // SAFETY: a live queue of this thread.
    count(unsafe { &mut *queue }.arm().map(usize::from))
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_disarm(queue: *mut HostQueue) {
    if !queue.is_null() {
        // SAFETY: a live queue of this thread.
        unsafe { &mut *queue }.disarm();
    }
}

/// See `ccnic.h`.
#[no_mangle]
pub unsafe extern "C" fn ccnic_queue_stats_sized(queue: *const HostQueue, out: *mut u64, size: usize) {
    if !queue.is_null() && !out.is_null() {
        // SAFETY: a live queue, and `size` bytes for the counters.
        unsafe { copy_out(&(*queue).stats().words(), out, size) };
    }
}
