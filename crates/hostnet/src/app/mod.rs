//! Workloads. One file each: what a request is, and the ops it takes. Applications see buffers and
//! their own data as simulated addresses, never caches.

mod content;
pub mod exact;
pub mod lpm;
mod mmu;

use crate::core::spec::TlbSpec;
use crate::core::Program;
use crate::kernel::units::Size;
use crate::kernel::{Int, LineAddr, Stream, TenantId, ThreadId};
use crate::memory::region::{AddressMap, Kind, Sharing};
use crate::traffic::pcap::{Capture, Captured};
pub use content::Content;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

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

/// Where the line is that `probe_latency` loads (CC-NIC, Fig. 7). Cores 0 and 1 are of the first node, core 2 is of the
/// last; lines that another core has are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProbePlace {
    /// The core's own L1.
    LocalL1,
    /// Its own L2 alone.
    LocalL2,
    /// Its node's LLC alone.
    LocalLlc,
    /// Memory of its node, and no cache.
    LocalDram,
    /// The L2 of another core of its node.
    OtherL2,
    /// The LLC of the other node, which is the home.
    RemoteLlc,
    /// Memory of the other node, and no cache.
    RemoteDram,
    /// The L2 of a core of the other node, which is the home (remote-homed).
    RemoteL2Rh,
    /// The same with the reader's node as the home (local-homed).
    RemoteL2Lh,
}

impl ProbePlace {
    /// Whether it needs two nodes.
    pub fn is_remote(self) -> bool {
        use ProbePlace::{RemoteDram, RemoteL2Lh, RemoteL2Rh, RemoteLlc};
        matches!(self, RemoteLlc | RemoteDram | RemoteL2Rh | RemoteL2Lh)
    }
}

/// CC-NIC, section 3.2 and Fig. 7.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbeLatencySpec {
    /// Where the line is.
    pub place: ProbePlace,
}

/// What `probe_device` does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviceProbe {
    /// One uncached load of `bytes`.
    Load,
    /// `stores` combining stores of `bytes`, each to a line of its own.
    Store,
}

/// CC-NIC, section 2.2 and Fig. 3.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbeDeviceSpec {
    /// What it does.
    pub access: DeviceProbe,
    /// Bytes of the load or of each store, 1 to 64.
    pub bytes: u8,
    /// Stores of the burst.
    #[serde(default = "one_store")]
    pub stores: u32,
}
fn one_store() -> u32 {
    1
}

/// What a device asks for in `probe_place`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// A write of the whole line.
    Write,
    /// A read.
    Read,
}

/// IDIO, section II-A and Fig. 1.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbePlaceSpec {
    /// What the device asks for.
    pub request: Asked,
    /// Where the line is before.
    pub place: crate::memory::stats::Place,
    /// The core has written its copy, where it has one.
    #[serde(default)]
    pub dirty: bool,
}

/// What an application did with a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// A reply waits in a transmit buffer.
    Reply,
    /// The same, with bytes that are sent from where they lie, from line `object` on; line `users` counts who has them.
    Gather { object: LineAddr, bytes: u32, users: Option<LineAddr> },
    /// The receive buffer itself is to be sent.
    Forward,
    /// Nothing to send.
    Consumed,
}

/// What building an application needs.
pub struct Site<'a> {
    pub map: &'a mut AddressMap,
    pub tenant: TenantId,
    /// Indices of the tenant's cores on the host.
    pub cores: &'a [ThreadId],
    pub seed: u64,
    pub capture: Option<&'a Arc<Capture>>,
    /// The cores' second-level TLB.
    pub stlb: Option<&'a TlbSpec>,
}

impl Site<'_> {
    /// The first lines of regions of `lines` lines, one for each core of the tenant.
    pub fn per_core(&mut self, lines: u64) -> Vec<LineAddr> {
        let add = |c: &ThreadId| {
            let r = self.map.add(lines, Kind::App, Sharing::of_thread(*c), self.tenant);
            self.map.get(r).base
        };
        self.cores.iter().map(add).collect()
    }
}

/// Where the work of an application's cores comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// Packets of a NIC.
    Packets,
    /// Nobody asks for it.
    Own,
    /// The kernel, which receives for it.
    Kernel,
}

/// Whose packets an application's cores send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// What they have received.
    Network,
    /// Their own, as many as go.
    Always,
    /// Their own, as the traffic of a scenario asks for: they are the load generator.
    Due,
    /// Their own, as the traffic of a scenario asks for, which come back to them: they are generator and sink.
    Loop,
}

/// One tenant's application on all its cores. What is not told is that of an application that drops all packets unread.
pub trait Application: Sized {
    /// Its parameters: the rest of `app` in a scenario.
    type Spec;

    const WORK: Work = Work::Packets;

    /// Whether `stores` knows what to do.
    const WARMS_BY_STORES: bool = false;

    /// # Errors
    /// One clause with key and value, when the parameters do not fit together on `cores` cores.
    fn check(s: &Self::Spec, cores: u32) -> Result<(), String> {
        let _ = (s, cores);
        Ok(())
    }

    /// The largest packet that asks for something: `drawn`, which captures do not tell, unless the application sets it.
    fn largest(s: &Self::Spec, drawn: Option<Size>) -> Option<Size> {
        let _ = s;
        drawn
    }

    /// Whose packets its cores send.
    fn origin(s: &Self::Spec) -> Origin {
        let _ = s;
        Origin::Network
    }

    /// The application with its data in `site`; packets are of `packet` bytes when it does not set that.
    ///
    /// # Errors
    /// One clause with key and value, when the parameters do not fit together.
    fn build(s: &Self::Spec, packet: u32, site: Site) -> Result<Self, String>;

    /// Draws the next packet's content for the tenant's `core`-th core.
    #[inline]
    fn content(&mut self, core: usize, rng: &mut Stream) -> Content {
        let _ = (core, rng);
        Content::default()
    }

    /// The content of the `i`-th captured packet on the `pass`-th repetition, for the tenant's `core`-th core. Size and
    /// flow are the packet's; what it asks for is drawn when the capture does not tell.
    #[inline]
    fn replay(&mut self, core: usize, packet: &Captured, i: usize, pass: u64, rng: &mut Stream) -> Content {
        let _ = (i, pass);
        self.content(core, rng).of_size(packet)
    }

    /// `core`, as the tenant counts them, will soon be asked for `key`: what its look-up reads may be fetched.
    #[inline]
    fn announce(&self, core: usize, key: u64) {
        let _ = (core, key);
    }

    /// Ops before the service of a burst of packets, which are given with their receive buffers, where packets come in bursts.
    #[inline]
    fn begin_burst(&mut self, core: usize, packets: &mut dyn Iterator<Item = (Content, LineAddr)>, p: &mut Program) {
        let _ = (core, packets, p);
    }

    /// Ops that serve packet content `c` in receive buffer `rx`; a reply goes to `tx`, whose lines are
    /// returned.
    #[inline]
    fn serve(&mut self, core: usize, c: &Content, rx: LineAddr, tx: LineAddr, p: &mut Program) -> (Answer, u16) {
        let _ = (core, c, rx, tx, p);
        (Answer::Consumed, 0)
    }

    /// Ops that make a packet of its own with content `c` in the buffer at `tx`.
    #[inline]
    fn make(&mut self, core: usize, c: &Content, tx: LineAddr, p: &mut Program) {
        let _ = (core, c, tx, p);
    }

    /// Ops between the service of a burst of `packets` packets and the sending of its replies, where packets come in bursts.
    #[inline]
    fn end_burst(&mut self, core: usize, packets: u32, p: &mut Program) {
        let _ = (core, packets, p);
    }

    /// Ops of a core that serves no packets; returns the operations they count as, or None for
    /// applications that only react.
    #[inline]
    fn free_run(&mut self, core: usize, rng: &mut Stream, p: &mut Program) -> Option<u32> {
        let _ = (core, rng, p);
        None
    }

    /// Ops of the stores that a while of `free_run` comes to, for caches that keep nothing else.
    fn stores(&mut self, core: usize, rng: &mut Stream, p: &mut Program) {
        let _ = (core, rng, p);
    }
}

/// Large applications stay small in `App`.
impl<T: Application> Application for Box<T> {
    type Spec = T::Spec;
    const WORK: Work = T::WORK;
    const WARMS_BY_STORES: bool = T::WARMS_BY_STORES;

    fn check(s: &T::Spec, cores: u32) -> Result<(), String> {
        T::check(s, cores)
    }
    fn largest(s: &T::Spec, drawn: Option<Size>) -> Option<Size> {
        T::largest(s, drawn)
    }
    fn origin(s: &T::Spec) -> Origin {
        T::origin(s)
    }
    fn build(s: &T::Spec, packet: u32, site: Site) -> Result<Self, String> {
        T::build(s, packet, site).map(Box::new)
    }
    #[inline]
    fn content(&mut self, core: usize, rng: &mut Stream) -> Content {
        (**self).content(core, rng)
    }
    #[inline]
    fn replay(&mut self, core: usize, packet: &Captured, i: usize, pass: u64, rng: &mut Stream) -> Content {
        (**self).replay(core, packet, i, pass, rng)
    }
    #[inline]
    fn announce(&self, core: usize, key: u64) {
        (**self).announce(core, key);
    }
    #[inline]
    fn begin_burst(&mut self, core: usize, packets: &mut dyn Iterator<Item = (Content, LineAddr)>, p: &mut Program) {
        (**self).begin_burst(core, packets, p);
    }
    #[inline]
    fn serve(&mut self, core: usize, c: &Content, rx: LineAddr, tx: LineAddr, p: &mut Program) -> (Answer, u16) {
        (**self).serve(core, c, rx, tx, p)
    }
    #[inline]
    fn make(&mut self, core: usize, c: &Content, tx: LineAddr, p: &mut Program) {
        (**self).make(core, c, tx, p);
    }
    #[inline]
    fn end_burst(&mut self, core: usize, packets: u32, p: &mut Program) {
        (**self).end_burst(core, packets, p);
    }
    #[inline]
    fn free_run(&mut self, core: usize, rng: &mut Stream, p: &mut Program) -> Option<u32> {
        (**self).free_run(core, rng, p)
    }
    fn stores(&mut self, core: usize, rng: &mut Stream, p: &mut Program) {
        (**self).stores(core, rng, p);
    }
}

/// Declares the applications, a file each: their kinds in scenarios, and the dispatch. Directed tests are kinds that the
/// host drives itself.
macro_rules! apps {
    (
        $($(#[$doc:meta])* mod $file:ident => $name:ident($app:ty),)*
        --- directed tests ---
        $($(#[$test_doc:meta])* $test:ident($spec:ty),)*
    ) => {
        $(pub mod $file;)*

        /// A workload and its parameters.
        #[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        pub enum AppSpec {
            $($(#[$doc])* $name(<$app as Application>::Spec),)*
            $($(#[$test_doc])* $test($spec),)*
        }

        impl AppSpec {
            /// # Errors
            /// One clause with key and value, when the parameters do not fit together on `cores` cores.
            pub fn check(&self, cores: u32) -> Result<(), String> {
                match self {
                    $(AppSpec::$name(s) => <$app>::check(s, cores),)*
                    $(AppSpec::$test(_) => Ok(()),)*
                }
            }

            /// Where its cores' work comes from; that of directed tests is packets.
            pub fn work(&self) -> Work {
                match self {
                    $(AppSpec::$name(_) => <$app>::WORK,)*
                    $(AppSpec::$test(_) => Work::Packets,)*
                }
            }

            /// Whether it is a directed test, which drives the host itself.
            pub fn is_directed(&self) -> bool {
                match self {
                    $(AppSpec::$name(_) => false,)*
                    $(AppSpec::$test(_) => true,)*
                }
            }

            /// The largest packet that it is asked with, when that is known; packets whose size it does not set have `drawn`.
            pub fn largest(&self, drawn: Option<Size>) -> Option<Size> {
                match self {
                    $(AppSpec::$name(s) if <$app>::WORK == Work::Packets => <$app>::largest(s, drawn),)*
                    _ => None,
                }
            }

            /// Whose packets its cores send.
            pub fn origin(&self) -> Origin {
                match self {
                    $(AppSpec::$name(s) => <$app>::origin(s),)*
                    $(AppSpec::$test(_) => Origin::Network,)*
                }
            }
        }

        /// One tenant's application on all its cores, of any kind; see [`Application`].
        #[derive(Clone)]
        pub enum App {
            $($(#[$doc])* $name($app),)*
        }

        impl App {
            /// # Errors
            /// One clause with key and value, when the parameters do not fit together.
            pub fn build(spec: &AppSpec, packet: u32, site: Site) -> Result<App, String> {
                match spec {
                    $(AppSpec::$name(s) => <$app>::build(s, packet, site).map(App::$name),)*
                    $(AppSpec::$test(_) => Err("a directed test takes no traffic".into()),)*
                }
            }
            #[inline]
            pub fn content(&mut self, core: usize, rng: &mut Stream) -> Content {
                match self { $(App::$name(a) => a.content(core, rng),)* }
            }
            #[inline]
            pub fn replay(&mut self, core: usize, packet: &Captured, i: usize, pass: u64, rng: &mut Stream) -> Content {
                match self { $(App::$name(a) => a.replay(core, packet, i, pass, rng),)* }
            }
            #[inline]
            pub fn announce(&self, core: usize, key: u64) {
                match self { $(App::$name(a) => a.announce(core, key),)* }
            }
            #[inline]
            pub fn begin_burst(&mut self, core: usize, packets: &mut dyn Iterator<Item = (Content, LineAddr)>, p: &mut Program) {
                match self { $(App::$name(a) => a.begin_burst(core, packets, p),)* }
            }
            #[inline]
            pub fn serve(&mut self, core: usize, c: &Content, rx: LineAddr, tx: LineAddr, p: &mut Program) -> (Answer, u16) {
                match self { $(App::$name(a) => a.serve(core, c, rx, tx, p),)* }
            }
            #[inline]
            pub fn make(&mut self, core: usize, c: &Content, tx: LineAddr, p: &mut Program) {
                match self { $(App::$name(a) => a.make(core, c, tx, p),)* }
            }
            #[inline]
            pub fn end_burst(&mut self, core: usize, packets: u32, p: &mut Program) {
                match self { $(App::$name(a) => a.end_burst(core, packets, p),)* }
            }
            #[inline]
            pub fn free_run(&mut self, core: usize, rng: &mut Stream, p: &mut Program) -> Option<u32> {
                match self { $(App::$name(a) => a.free_run(core, rng, p),)* }
            }
            /// False when only `free_run` can tell.
            pub fn stores(&mut self, core: usize, rng: &mut Stream, p: &mut Program) -> bool {
                match self { $(App::$name(a) => a.stores(core, rng, p),)* }
                self.warms_by_stores()
            }
            /// Whether `stores` knows.
            pub fn warms_by_stores(&self) -> bool {
                match self { $(App::$name(_) => <$app>::WARMS_BY_STORES,)* }
            }
            /// Whether cores run it without packets.
            pub fn is_free_running(&self) -> bool {
                match self { $(App::$name(_) => <$app>::WORK == Work::Own,)* }
            }
        }
    };
}

apps! {
    /// MICA key-value store.
    mod mica => Mica(mica::Mica),
    /// Layer-3 forwarder.
    mod l3fwd => L3fwd(l3fwd::L3fwd),
    /// Random reads of a private array.
    mod xmem => Xmem(xmem::Xmem),
    /// Sequential or random reads or updates of a private buffer, as fast as memory goes.
    mod stream => Stream(stream::StreamApp),
    /// Redis servers, each asked by a client that never waits.
    mod redis => Redis(redis::Redis),
    /// A kernel of the GAP Benchmark Suite on a random graph.
    mod gapbs => Gapbs(Box<gapbs::Gapbs>),
    /// Receives long TCP flows through the kernel, one a core, and drops what it gets (iperf).
    mod tcp_receive => TcpReceive(tcp_receive::TcpReceive),
    /// Reads every packet and drops it.
    mod touchdrop => Touchdrop(touchdrop::Touchdrop),
    /// Layer-2 forwarder: edits the header and sends the packet in place, or drops it.
    mod l2fwd => L2fwd(l2fwd::L2fwd),
    /// Random reads and writes of a private buffer; its measure is the cycles of an instruction.
    mod llc_antagonist => LlcAntagonist(llc_antagonist::LlcAntagonist),
    /// Forwards packets unread, drops them, or sends its own (DPDK's testpmd).
    mod testpmd => Testpmd(testpmd::Testpmd),
    /// Sends the requests of a scenario's traffic, and takes the replies: software on the host of `[client]`.
    mod load_generator => LoadGenerator(load_generator::LoadGenerator),
    /// Reads every byte of a packet and forwards it.
    mod touchfwd => Touchfwd(touchfwd::Touchfwd),
    /// Receives a burst, waits, and sends it.
    mod rxptx => Rxptx(rxptx::Rxptx),
    /// Key-value server that answers a capture of memcached over UDP.
    mod memcached => Memcached(memcached::Memcached),
    /// A counter that two threads exchange through two registers in coherent memory.
    mod pingpong => Pingpong(pingpong::PingPong),
    /// Streams from writers to readers in pairs.
    mod transfer => StreamTransfer(transfer::StreamTransfer),
    /// Sends packets through CC-NIC, or through a PCIe NIC whose wire loops back, and reads what comes back.
    mod loopback => Loopback(loopback::Loopback),
    /// Key-value server with objects of many sizes, which are sent from where they lie (CliqueMap).
    mod clique_map => CliqueMap(clique_map::CliqueMap),
    /// Stores of blocks to a device or to memory, a fence after each.
    mod block_stores => BlockStores(block_stores::BlockStores),
    /// Sends requests back over TCP as a service (TAS), whose fast path has cores of its own.
    mod tcp_echo => TcpEcho(tcp_echo::TcpEcho),
    --- directed tests ---
    /// Directed test of one receive buffer's life.
    DirectedRx(DirectedRxSpec),
    /// Directed test of one transmit buffer's life.
    DirectedTx(DirectedTxSpec),
    /// Directed test of a page that changes its owner.
    PageReuse(PageReuseSpec),
    /// Directed test of one load's latency, by where the line is.
    ProbeLatency(ProbeLatencySpec),
    /// Directed test of a load from a device, or of a burst of combining stores to it.
    ProbeDevice(ProbeDeviceSpec),
    /// Directed test of one request of a device, by where the line is.
    ProbePlace(ProbePlaceSpec),
}

/// Lines that `bytes` take.
pub fn lines(bytes: u64) -> u16 {
    bytes.div_ceil(crate::memory::LINE).max(1).to_u16()
}
