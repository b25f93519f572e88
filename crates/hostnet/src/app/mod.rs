//! Workloads. One file each: what a request is, and the ops it takes. Applications see buffers and
//! their own data as simulated addresses, never caches.

pub mod gapbs;
pub mod l3fwd;
pub mod lpm;
pub mod memcached;
pub mod mica;
mod mmu;
pub mod redis;
pub mod stream;
pub mod tcp_receive;
pub mod touchdrop;
pub mod xmem;

use crate::core::spec::TlbSpec;
use crate::core::Program;
use crate::kernel::Stream;
use crate::memory::region::AddressMap;
use crate::traffic::pcap::{Capture, Captured};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A workload and its parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AppSpec {
    /// MICA key-value store.
    Mica(mica::MicaSpec),
    /// Layer-3 forwarder.
    L3fwd(l3fwd::L3fwdSpec),
    /// Random reads of a private array.
    Xmem(xmem::XmemSpec),
    /// Sequential or random reads or updates of a private buffer, as fast as memory goes.
    Stream(stream::StreamSpec),
    /// Redis servers, each asked by a client that never waits.
    Redis(redis::RedisSpec),
    /// A kernel of the GAP Benchmark Suite on a random graph.
    Gapbs(gapbs::GapbsSpec),
    /// Receives long TCP flows through the kernel, one a core, and drops what it gets (iperf).
    TcpReceive(tcp_receive::TcpReceiveSpec),
    /// Reads every packet and drops it.
    Touchdrop(touchdrop::TouchdropSpec),
    /// Key-value server that answers a capture of memcached over UDP.
    Memcached(memcached::MemcachedSpec),
    /// Directed test of one receive buffer's life.
    DirectedRx(DirectedRxSpec),
    /// Directed test of one transmit buffer's life.
    DirectedTx(DirectedTxSpec),
    /// Directed test of a page that changes its owner.
    PageReuse(PageReuseSpec),
}

impl AppSpec {
    /// # Errors
    /// One clause with key and value, when the parameters do not fit together on `cores` cores.
    pub fn check(&self, cores: u32) -> Result<(), String> {
        match self {
            AppSpec::Mica(s) => s.check(cores),
            AppSpec::L3fwd(s) => s.check(),
            AppSpec::Xmem(s) => s.check(),
            AppSpec::Stream(s) => s.check(),
            AppSpec::Redis(s) => s.check(),
            AppSpec::Gapbs(s) => s.check(),
            AppSpec::TcpReceive(s) => s.check(cores),
            _ => Ok(()),
        }
    }
}

impl AppSpec {
    /// Whether cores run it without packets.
    pub fn is_free_running(&self) -> bool {
        matches!(self, AppSpec::Xmem(_) | AppSpec::Stream(_) | AppSpec::Redis(_) | AppSpec::Gapbs(_))
    }
}

/// When a directed test forces the packet out of the LLC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EvictAt {
    #[default]
    None,
    BeforeUse,
    AfterUse,
}

/// Sweeper, Fig. 3 and section II-B.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectedRxSpec {
    /// Cache blocks of the packet.
    pub blocks: u32,
    /// When to force an eviction.
    #[serde(default)]
    pub evict: EvictAt,
}

/// Sweeper, Fig. 4.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectedTxSpec {
    /// Cache blocks of the packet.
    pub blocks: u32,
    /// How long the core is busy with something else after posting.
    pub busy: crate::kernel::units::Span,
}

/// How a page is made safe for its next owner (Sweeper, section V-B).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Guard {
    /// Zeroed through the caches.
    #[default]
    None,
    /// CLWB of every block after zeroing.
    Clwb,
    /// Zeroed by DMA that does not use DDIO.
    Dma,
}

/// Sweeper, section V-B.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PageReuseSpec {
    /// Size of the page.
    pub page: crate::kernel::units::Size,
    /// What the kernel does.
    #[serde(default)]
    pub guard: Guard,
}

/// What a packet asks for; opaque to the NIC.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Content {
    pub kind: u8,
    pub key: u64,
    /// Lines of the packet in its receive buffer.
    pub lines: u16,
    pub value_lines: u16,
    pub wire_bytes: u32,
}

/// What an application did with a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// A reply waits in a transmit buffer.
    Reply,
    /// The receive buffer itself is to be sent.
    Forward,
    /// Nothing to send.
    Consumed,
}

/// One tenant's application on all its cores.
#[derive(Clone)]
pub enum App {
    Mica(mica::Mica),
    L3fwd(l3fwd::L3fwd),
    Xmem(xmem::Xmem),
    Stream(stream::Stream),
    Redis(redis::Redis),
    Gapbs(Box<gapbs::Gapbs>),
    TcpReceive(tcp_receive::TcpReceive),
    Touchdrop(touchdrop::Touchdrop),
    Memcached(memcached::Memcached),
}

/// What building an application needs.
pub struct Site<'a> {
    pub map: &'a mut AddressMap,
    pub tenant: u8,
    /// Indices of the tenant's cores on the host.
    pub cores: &'a [u16],
    pub seed: u64,
    pub capture: Option<&'a Arc<Capture>>,
    /// The cores' second-level TLB.
    pub stlb: Option<&'a TlbSpec>,
}

impl App {
    /// # Errors
    /// One clause with key and value, when the parameters do not fit together.
    pub fn build(spec: &AppSpec, packet: u32, site: Site) -> Result<App, String> {
        Ok(match spec {
            AppSpec::Mica(s) => App::Mica(mica::Mica::build(s, site)?),
            AppSpec::L3fwd(s) => App::L3fwd(l3fwd::L3fwd::build(s, packet, site)?),
            AppSpec::Xmem(s) => App::Xmem(xmem::Xmem::build(s, site)?),
            AppSpec::Stream(s) => App::Stream(stream::Stream::build(s, site)?),
            AppSpec::Redis(s) => App::Redis(redis::Redis::build(s, site)?),
            AppSpec::Gapbs(s) => App::Gapbs(Box::new(gapbs::Gapbs::build(s, site)?)),
            AppSpec::TcpReceive(s) => App::TcpReceive(tcp_receive::TcpReceive::build(s, site)),
            AppSpec::Touchdrop(s) => App::Touchdrop(touchdrop::Touchdrop::build(s, packet)),
            AppSpec::Memcached(s) => App::Memcached(memcached::Memcached::build(s, site)?),
            AppSpec::DirectedRx(_) | AppSpec::DirectedTx(_) | AppSpec::PageReuse(_) => {
                return Err("a directed test takes no traffic".into())
            }
        })
    }

    /// Draws the next packet's content for the tenant's `core`-th core.
    #[inline]
    pub fn content(&mut self, core: usize, rng: &mut Stream) -> Content {
        match self {
            App::Mica(a) => a.content(core, rng),
            App::L3fwd(a) => a.content(rng),
            App::Touchdrop(a) => a.content(),
            App::Memcached(_) | App::Xmem(_) | App::Stream(_) | App::Redis(_) | App::Gapbs(_) | App::TcpReceive(_) => {
                Content::default()
            }
        }
    }

    /// The content of the `i`-th captured packet on the `pass`-th repetition, for the tenant's `core`-th core. Size and
    /// flow are the packet's; what it asks for is memcached's own, and drawn for the others.
    #[inline]
    pub fn replay(&mut self, core: usize, packet: &Captured, i: usize, pass: u64, rng: &mut Stream) -> Content {
        let drawn = match self {
            App::Memcached(a) => return a.replay(i, pass),
            App::L3fwd(a) => a.to(packet.flow),
            app => app.content(core, rng),
        };
        Content { lines: lines(packet.wire_len.into()), wire_bytes: packet.wire_len, ..drawn }
    }

    /// `core`, as the tenant counts them, will soon be asked for `key`: what its look-up reads may be fetched.
    #[inline]
    pub fn announce(&self, core: usize, key: u64) {
        if let App::Mica(m) = self {
            m.announce(core, key);
        }
    }

    /// Ops that serve packet content `c` in receive buffer `rx`; a reply goes to `tx`, whose lines are
    /// returned.
    #[inline]
    pub fn serve(&mut self, core: usize, c: &Content, rx: u64, tx: u64, p: &mut Program) -> (Answer, u16) {
        match self {
            App::Mica(a) => a.serve(core, c, rx, tx, p),
            App::L3fwd(a) => a.serve(c, rx, tx, p),
            App::Touchdrop(a) => a.serve(c, rx, p),
            App::Memcached(a) => a.serve(core, c, rx, tx, p),
            App::Xmem(_) | App::Stream(_) | App::Redis(_) | App::Gapbs(_) | App::TcpReceive(_) => (Answer::Consumed, 0),
        }
    }

    /// Ops of a core that serves no packets; returns the operations they count as, or None for
    /// applications that only react.
    #[inline]
    pub fn free_run(&mut self, core: usize, rng: &mut Stream, p: &mut Program) -> Option<u32> {
        match self {
            App::Xmem(a) => Some(a.run(core, rng, p)),
            App::Stream(a) => Some(a.run(core, rng, p)),
            App::Redis(a) => Some(a.run(core, rng, p)),
            App::Gapbs(a) => Some(a.run(core, p)),
            _ => None,
        }
    }

    /// Ops of the stores that a while of `free_run` comes to, for caches that keep nothing else. False when only
    /// `free_run` can tell.
    pub fn stores(&mut self, core: usize, rng: &mut Stream, p: &mut Program) -> bool {
        match self {
            App::Redis(a) => a.stores(core, rng, p),
            App::Gapbs(a) => a.stores(core, rng, p),
            _ => return false,
        }
        true
    }

    /// Whether `stores` knows.
    pub fn warms_by_stores(&self) -> bool {
        matches!(self, App::Redis(_) | App::Gapbs(_))
    }

    pub fn is_free_running(&self) -> bool {
        matches!(self, App::Xmem(_) | App::Stream(_) | App::Redis(_) | App::Gapbs(_))
    }
}

/// Lines that `bytes` take.
pub fn lines(bytes: u64) -> u16 {
    bytes.div_ceil(crate::memory::LINE).max(1) as u16
}
