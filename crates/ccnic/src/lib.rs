//! A host-NIC packet interface over cache-coherent shared memory.
//!
//! A *host* owns a region of shared memory with a buffer pool and one TX and one RX ring per
//! queue pair; a *NIC* (threads of the same process, or another process that received the
//! region over a Unix socket) consumes TX packets and produces RX packets. The interface
//! follows CC-NIC (ASPLOS 2024): four descriptors and one signal per cache line, no
//! registers, buffers recycled on both sides of one shared pool. Every feature is a switch
//! in [`Config`], down to the E810-style interface of [`Config::unoptimised`].
//!
//! ```
//! use ccnic::{Config, HostPort};
//!
//! # fn main() -> Result<(), ccnic::Error> {
//! let mut port = HostPort::create(Config::default())?;
//! let mut queue = port.queue(0)?;
//! let mut nic = port.local_nic()?;
//! let mut nic_queue = nic.queue(0)?;
//!
//! let mut bufs = Vec::new();
//! queue.alloc(&mut bufs, 1, 64);
//! queue.write(&mut bufs[0], b"hello, NIC");
//! queue.tx(&mut bufs)?;
//! nic_queue.loopback(32)?;
//! queue.rx(&mut bufs, 32)?;
//! assert_eq!(queue.to_vec(&bufs[0]), b"hello, NIC");
//! queue.free(&mut bufs);
//! # Ok(())
//! # }
//! ```
//!
//! Neither side trusts the other: see [`Fault`] and [`HostPort::recover`].

mod bell;
mod buf;
#[allow(unsafe_code, reason = "C passes pointers")]
pub mod capi;
mod channel;
mod config;
mod desc;
mod error;
pub mod handshake;
mod host;
mod layout;
mod ledger;
pub mod mem;
mod nic;
mod offload;
pub mod overlay;
pub mod pool;
pub mod post;
mod queue;
#[allow(unsafe_code, reason = "the only module that maps and touches shared memory")]
mod raw;
pub mod reset;
pub mod ring;
mod rss;
mod server;
mod side;

pub use buf::{Buf, RawBuf};
pub use channel::read_stats;
pub use config::{Config, Home, Layout, Signal};
pub use desc::{Desc, MAX_SEGMENTS, MORE, NO_RECYCLE, OFFLOAD};
pub use error::{Error, Fault};
pub use handshake::Features;
pub use host::{Audit, HostPort};
pub use layout::Class;
pub use nic::{NicPort, NicQueue};
pub use offload::Offload;
pub use queue::HostQueue;
pub use raw::{timestamp, Region};
pub use rss::Rss;
pub use server::{Caller, NicServer, Offer, StatsReply};
pub use side::{HostPool, Stats};

/// Restricts the calling thread to one CPU.
pub fn pin_to_cpu(cpu: usize) -> Result<(), Error> {
    let mut set = rustix::thread::CpuSet::new();
    if cpu >= rustix::thread::CpuSet::MAX_CPU {
        return Err(Error::Config(format!("cpu = {cpu} is above the largest CPU number")));
    }
    set.set(cpu);
    rustix::thread::sched_setaffinity(None, &set)?;
    Ok(())
}
