//! Workloads, one file each: the content of requests, and the operations that serve requests. An application sees
//! simulated addresses of buffers and of its own data, and no caches.

mod content;
pub mod exact_match;
pub mod lpm;
mod mmu;

use crate::core::spec::TlbSpec;
use crate::core::Program;
use crate::kernel::units::Size;
use crate::kernel::{Int, LineAddr, RandomStream, TenantId, ThreadId};
use crate::memory::region::{AddressMap, RegionKind, Sharing};
use crate::traffic::pcap::{Capture, Captured};
pub use content::Content;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Outcome of an application's service of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the documentation of a variant explains its fields")]
pub enum ServeOutcome {
    /// A reply is in a transmit buffer.
    Reply,
    /// A reply is in a transmit buffer, followed by `bytes` bytes from line `object` on that are sent from their place
    /// in memory; line `users` counts their users.
    Gather { object: LineAddr, bytes: u32, users: Option<LineAddr> },
    /// The receive buffer itself is to be sent.
    Forward,
    /// No packet is to be sent.
    Consumed,
}

/// Resources and parameters from which an application is built.
pub struct AppBuildContext<'a> {
    /// Address map of the host, to which the application adds the regions of its data.
    pub map: &'a mut AddressMap,
    /// Tenant that runs the application.
    pub tenant: TenantId,
    /// Indices of the tenant's cores on the host.
    pub cores: &'a [ThreadId],
    /// Seed of the random streams from which the application draws its initial state.
    pub seed: u64,
    /// Capture that the scenario replays, if any.
    pub capture: Option<&'a Arc<Capture>>,
    /// Second-level TLB of the cores.
    pub stlb: Option<&'a TlbSpec>,
    /// Number of instructions with which a core accesses a line (`core.stores_per_line`).
    pub line_instructions: u32,
}

impl<'a> AppBuildContext<'a> {
    /// Context without a capture and without a second-level TLB, of cores that access a line with one instruction.
    pub fn new(map: &'a mut AddressMap, tenant: TenantId, cores: &'a [ThreadId], seed: u64) -> AppBuildContext<'a> {
        AppBuildContext { map, tenant, cores, seed, capture: None, stlb: None, line_instructions: 1 }
    }

    /// Adds a region of `lines` lines for each core of the tenant; returns the regions' first lines.
    pub fn per_core(&mut self, lines: u64) -> Vec<LineAddr> {
        let add = |c: &ThreadId| {
            let r = self.map.add(lines, RegionKind::App, Sharing::of_thread(*c), self.tenant);
            self.map.get(r).base
        };
        self.cores.iter().map(add).collect()
    }
}

/// Source of the work of an application's cores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkSource {
    /// Packets of a NIC.
    Packets,
    /// The application itself, without requests.
    Own,
    /// The kernel, which receives for the application.
    Kernel,
}

/// Origin of the packets that an application's cores send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// Packets that the cores have received from the network.
    Network,
    /// Packets that the application generates, as many as possible.
    Always,
    /// Packets that the scenario's traffic asks the application to send; the application's cores are the load
    /// generator.
    Due,
    /// Packets that the scenario's traffic asks the application to send and that return to the application; its cores
    /// are generator and sink.
    Loop,
}

/// One tenant's application on all its cores. The default methods suit an application that drops all packets unread.
pub trait Application: Sized {
    /// Parameters of the application: all keys of `app` in a scenario except the kind.
    type Spec;

    /// Source of the work of the application's cores.
    const WORK: WorkSource = WorkSource::Packets;

    /// Whether the application implements `stores`, so that warm-up can use it.
    const WARMS_BY_STORES: bool = false;

    /// Whether each access is one instruction that moves a word, in place of the `core.stores_per_line` instructions that move a
    /// whole line.
    const ACCESSES_WORDS: bool = false;

    /// Source of the work of the cores of an application with these parameters.
    fn work(s: &Self::Spec) -> WorkSource {
        let _ = s;
        Self::WORK
    }

    /// Whether cores run the application without packets.
    fn is_free_running(&self) -> bool {
        Self::WORK == WorkSource::Own
    }

    /// Whether `stores` is implemented for this application.
    fn warms_by_stores(&self) -> bool {
        Self::WARMS_BY_STORES
    }

    /// Checks that the parameters fit together on `cores` cores.
    ///
    /// # Errors
    /// Returns one clause that names key and value.
    fn check(s: &Self::Spec, cores: u32) -> Result<(), String> {
        let _ = (s, cores);
        Ok(())
    }

    /// Size of the largest packet that carries a request: `drawn`, unless the application determines its size. `drawn`
    /// is None for captures.
    fn largest(s: &Self::Spec, drawn: Option<Size>) -> Option<Size> {
        let _ = s;
        drawn
    }

    /// Origin of the packets that the application's cores send.
    fn origin(s: &Self::Spec) -> Origin {
        let _ = s;
        Origin::Network
    }

    /// Whether the application sends anything in answer to the packets that it receives.
    fn answers(s: &Self::Spec) -> bool {
        let _ = s;
        true
    }

    /// Path of the file that the application reads, as the scenario gives it.
    fn input(s: &mut Self::Spec) -> Option<&mut String> {
        let _ = s;
        None
    }

    /// Bytes of the largest packet that the application sends because its file says so; 0 for an application without a
    /// file.
    fn largest_recorded(&self) -> u32 {
        0
    }

    /// Builds the application with its data in regions of `context.map`; packets have `packet` bytes when the
    /// application does not determine their size.  # Errors Returns one clause that names key and value when the
    /// parameters do not fit together.
    fn build(s: &Self::Spec, packet: u32, context: AppBuildContext) -> Result<Self, String>;

    /// Draws the content of the next packet for core number `core` of the tenant.
    #[inline]
    fn content(&mut self, core: usize, rng: &mut RandomStream) -> Content {
        let _ = (core, rng);
        Content::default()
    }

    /// Content of captured packet number `i` on repetition `pass`, for core number `core` of the tenant. Size and flow
    /// are those of the packet; the request is drawn when the capture does not contain it.
    #[inline]
    fn replay(&mut self, core: usize, packet: &Captured, i: usize, pass: u64, rng: &mut RandomStream) -> Content {
        let _ = (i, pass);
        self.content(core, rng).of_size(packet)
    }

    /// Announces that core number `core` of the tenant will soon ask for `key`, so that the computer that runs the
    /// simulation may prefetch the data of the look-up.
    #[inline]
    fn prefetch_on_host(&self, core: usize, key: u64) {
        let _ = (core, key);
    }

    /// Appends the operations that precede the service of a burst of packets, where packets arrive in bursts. The
    /// packets are given with their receive buffers.
    #[inline]
    fn begin_burst(&mut self, core: usize, packets: &mut dyn Iterator<Item = (Content, LineAddr)>, p: &mut Program) {
        let _ = (core, packets, p);
    }

    /// Appends the operations that serve packet content `c` in receive buffer `rx`; a reply goes to `tx`. Returns the
    /// answer and the reply's lines.
    #[inline]
    fn serve(&mut self, core: usize, c: &Content, rx: LineAddr, tx: LineAddr, p: &mut Program) -> (ServeOutcome, u16) {
        let _ = (core, c, rx, tx, p);
        (ServeOutcome::Consumed, 0)
    }

    /// Appends the operations that write a packet with content `c`, which the application generates, to the buffer at
    /// `tx`.
    #[inline]
    fn make(&mut self, core: usize, c: &Content, tx: LineAddr, p: &mut Program) {
        let _ = (core, c, tx, p);
    }

    /// Appends the operations between the service of a burst of `packets` packets and the transmission of the replies,
    /// where packets arrive in bursts.
    #[inline]
    fn end_burst(&mut self, core: usize, packets: u32, p: &mut Program) {
        let _ = (core, packets, p);
    }

    /// Appends operations of a core that serves no packets; returns the number of operations that these count as, or
    /// None for applications that only react to packets.
    #[inline]
    fn free_run(&mut self, core: usize, rng: &mut RandomStream, p: &mut Program) -> Option<u32> {
        let _ = (core, rng, p);
        None
    }

    /// Appends the stores of a stretch of `free_run`, to warm caches that hold only stored lines.
    fn stores(&mut self, core: usize, rng: &mut RandomStream, p: &mut Program) {
        let _ = (core, rng, p);
    }
}

/// Boxes an application, so that large applications stay small in `App`.
impl<T: Application> Application for Box<T> {
    type Spec = T::Spec;
    const WORK: WorkSource = T::WORK;
    const WARMS_BY_STORES: bool = T::WARMS_BY_STORES;
    const ACCESSES_WORDS: bool = T::ACCESSES_WORDS;

    fn check(s: &T::Spec, cores: u32) -> Result<(), String> {
        T::check(s, cores)
    }
    fn largest(s: &T::Spec, drawn: Option<Size>) -> Option<Size> {
        T::largest(s, drawn)
    }
    fn origin(s: &T::Spec) -> Origin {
        T::origin(s)
    }
    fn answers(s: &T::Spec) -> bool {
        T::answers(s)
    }
    fn input(s: &mut T::Spec) -> Option<&mut String> {
        T::input(s)
    }
    fn largest_recorded(&self) -> u32 {
        (**self).largest_recorded()
    }
    fn build(s: &T::Spec, packet: u32, context: AppBuildContext) -> Result<Self, String> {
        T::build(s, packet, context).map(Box::new)
    }
    #[inline]
    fn content(&mut self, core: usize, rng: &mut RandomStream) -> Content {
        (**self).content(core, rng)
    }
    #[inline]
    fn replay(&mut self, core: usize, packet: &Captured, i: usize, pass: u64, rng: &mut RandomStream) -> Content {
        (**self).replay(core, packet, i, pass, rng)
    }
    #[inline]
    fn prefetch_on_host(&self, core: usize, key: u64) {
        (**self).prefetch_on_host(core, key);
    }
    #[inline]
    fn begin_burst(&mut self, core: usize, packets: &mut dyn Iterator<Item = (Content, LineAddr)>, p: &mut Program) {
        (**self).begin_burst(core, packets, p);
    }
    #[inline]
    fn serve(&mut self, core: usize, c: &Content, rx: LineAddr, tx: LineAddr, p: &mut Program) -> (ServeOutcome, u16) {
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
    fn free_run(&mut self, core: usize, rng: &mut RandomStream, p: &mut Program) -> Option<u32> {
        (**self).free_run(core, rng, p)
    }
    fn stores(&mut self, core: usize, rng: &mut RandomStream, p: &mut Program) {
        (**self).stores(core, rng, p);
    }
}

/// Declares the applications, one file each: their kinds in scenarios, and the dispatch over them.
macro_rules! apps {
    ($($(#[$doc:meta])* mod $file:ident => $name:ident($app:ty),)*) => {
        $(pub mod $file;)*

        /// A workload and its parameters.
        #[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        pub enum AppSpec {
            $($(#[$doc])* $name(<$app as Application>::Spec),)*
        }

        impl AppSpec {
            /// Checks that the parameters fit together on `cores` cores.
            ///
            /// # Errors
            /// Returns one clause that names key and value.
            pub fn check(&self, cores: u32) -> Result<(), String> {
                match self {
                    $(AppSpec::$name(s) => <$app>::check(s, cores),)*
                }
            }

            /// Source of the work of the application's cores.
            pub fn work(&self) -> WorkSource {
                match self {
                    $(AppSpec::$name(s) => <$app>::work(s),)*
                }
            }

            /// Whether each access of the application is one instruction that moves a word.
            pub fn accesses_words(&self) -> bool {
                match self {
                    $(AppSpec::$name(_) => <$app>::ACCESSES_WORDS,)*
                }
            }

            /// Kind of the application, as scenarios name it.
            pub fn kind(&self) -> String {
                match self {
                    AppSpec::Extension(e) => e.name.clone(),
                    of_engine => {
                        let kind = serde_json::to_value(of_engine).ok().and_then(|v| v["kind"].as_str().map(String::from));
                        kind.unwrap_or_default()
                    }
                }
            }

            /// Size of the largest packet that carries a request, when that size is known; packets whose size the
            /// application does not determine have size `drawn`.
            pub fn largest(&self, drawn: Option<Size>) -> Option<Size> {
                match self {
                    $(AppSpec::$name(s) if <$app>::work(s) == WorkSource::Packets => <$app>::largest(s, drawn),)*
                    _ => None,
                }
            }

            /// Path of the file that the application reads.
            pub fn input(&mut self) -> Option<&mut String> {
                match self {
                    $(AppSpec::$name(s) => <$app>::input(s),)*
                }
            }

            /// Whether the application sends anything in answer to the packets that it receives.
            pub fn answers(&self) -> bool {
                match self {
                    $(AppSpec::$name(s) => <$app>::answers(s),)*
                }
            }

            /// Origin of the packets that the application's cores send.
            pub fn origin(&self) -> Origin {
                match self {
                    $(AppSpec::$name(s) => <$app>::origin(s),)*
                }
            }
        }

        /// One tenant's application of any kind, on all its cores; see [`Application`].
        #[derive(Clone)]
        pub enum App {
            $($(#[$doc])* $name($app),)*
        }

        impl App {
            /// Builds the application with its data in regions of `context.map`.  # Errors Returns one clause that
            /// names key and value when the parameters do not fit together.
            pub fn build(spec: &AppSpec, packet: u32, context: AppBuildContext) -> Result<App, String> {
                match spec {
                    $(AppSpec::$name(s) => <$app>::build(s, packet, context).map(App::$name),)*
                }
            }
            /// Bytes of the largest packet that the application's file tells it to send.
            pub fn largest_recorded(&self) -> u32 {
                match self { $(App::$name(a) => a.largest_recorded(),)* }
            }
            /// Draws the content of a packet; see `Application::content`.
            #[inline]
            pub fn content(&mut self, core: usize, rng: &mut RandomStream) -> Content {
                match self { $(App::$name(a) => a.content(core, rng),)* }
            }
            /// Content of a captured packet; see `Application::replay`.
            #[inline]
            pub fn replay(&mut self, core: usize, packet: &Captured, i: usize, pass: u64, rng: &mut RandomStream) -> Content {
                match self { $(App::$name(a) => a.replay(core, packet, i, pass, rng),)* }
            }
            /// Announces a key; see `Application::prefetch_on_host`.
            #[inline]
            pub fn prefetch_on_host(&self, core: usize, key: u64) {
                match self { $(App::$name(a) => a.prefetch_on_host(core, key),)* }
            }
            /// Appends the operations that precede the service of a burst; see `Application::begin_burst`.
            #[inline]
            pub fn begin_burst(&mut self, core: usize, packets: &mut dyn Iterator<Item = (Content, LineAddr)>, p: &mut Program) {
                match self { $(App::$name(a) => a.begin_burst(core, packets, p),)* }
            }
            /// Appends the operations that serve a packet; see `Application::serve`.
            #[inline]
            pub fn serve(&mut self, core: usize, c: &Content, rx: LineAddr, tx: LineAddr, p: &mut Program) -> (ServeOutcome, u16) {
                match self { $(App::$name(a) => a.serve(core, c, rx, tx, p),)* }
            }
            /// Appends the operations that write a generated packet; see `Application::make`.
            #[inline]
            pub fn make(&mut self, core: usize, c: &Content, tx: LineAddr, p: &mut Program) {
                match self { $(App::$name(a) => a.make(core, c, tx, p),)* }
            }
            /// Appends the operations that follow the service of a burst; see `Application::end_burst`.
            #[inline]
            pub fn end_burst(&mut self, core: usize, packets: u32, p: &mut Program) {
                match self { $(App::$name(a) => a.end_burst(core, packets, p),)* }
            }
            /// Appends operations of a core that serves no packets; see `Application::free_run`.
            #[inline]
            pub fn free_run(&mut self, core: usize, rng: &mut RandomStream, p: &mut Program) -> Option<u32> {
                match self { $(App::$name(a) => a.free_run(core, rng, p),)* }
            }
            /// Appends the stores of a stretch of `free_run`; returns false for an application that does not implement
            /// `stores`.
            pub fn stores(&mut self, core: usize, rng: &mut RandomStream, p: &mut Program) -> bool {
                match self { $(App::$name(a) => a.stores(core, rng, p),)* }
                self.warms_by_stores()
            }
            /// Whether `stores` is implemented for this application.
            pub fn warms_by_stores(&self) -> bool {
                match self { $(App::$name(a) => a.warms_by_stores(),)* }
            }
            /// Whether cores run the application without packets.
            pub fn is_free_running(&self) -> bool {
                match self { $(App::$name(a) => a.is_free_running(),)* }
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
    /// Sequential or random reads or updates of a private buffer, as fast as memory allows.
    mod stream => Stream(stream::StreamApp),
    /// Redis servers, each queried by a client that keeps a pipeline of queries waiting.
    mod redis => Redis(redis::Redis),
    /// A kernel of the GAP Benchmark Suite on a random graph.
    mod gapbs => Gapbs(Box<gapbs::Gapbs>),
    /// Receiver of long TCP flows through the kernel, one per core, which drops the data (iperf).
    mod tcp_receive => TcpReceive(tcp_receive::TcpReceive),
    /// Reader of every line of a packet, which then drops the packet.
    mod touchdrop => Touchdrop(touchdrop::Touchdrop),
    /// Layer-2 forwarder: edits the header and sends the packet in place, or drops it.
    mod l2fwd => L2fwd(l2fwd::L2fwd),
    /// Random reads and writes of a private buffer; its metric is cycles per instruction.
    mod llc_antagonist => LlcAntagonist(llc_antagonist::LlcAntagonist),
    /// Forwarder of unread packets, which can also drop packets or send its own (DPDK's testpmd).
    mod testpmd => Testpmd(testpmd::Testpmd),
    /// Load generator in software: sends the requests of a scenario's traffic and takes the replies, on the host of
    /// `[client]`.
    mod load_generator => LoadGenerator(load_generator::LoadGenerator),
    /// Reader of every byte of a packet, which then forwards the packet.
    mod touchfwd => Touchfwd(touchfwd::Touchfwd),
    /// Receives a burst of packets, waits, and sends the burst.
    mod rxptx => Rxptx(rxptx::Rxptx),
    /// Key-value server that answers a capture of memcached over UDP.
    mod memcached => Memcached(memcached::Memcached),
    /// Counter that two threads exchange through two registers in coherent memory.
    mod pingpong => Pingpong(pingpong::PingPong),
    /// Streams from writers to readers, in pairs.
    mod stream_transfer => StreamTransfer(stream_transfer::StreamTransfer),
    /// Sender of packets through CC-NIC, or through a PCIe NIC in loopback mode, which reads the packets that return.
    mod loopback => Loopback(loopback::Loopback),
    /// Key-value server with objects of many sizes, which are sent from their place in memory (CliqueMap).
    mod clique_map => CliqueMap(clique_map::CliqueMap),
    /// Stores of blocks to a device or to memory, with a fence after each block.
    mod block_stores => BlockStores(block_stores::BlockStores),
    /// RPC server that returns requests over TCP as a service (TAS), whose fast path has cores of its own.
    mod tcp_echo => TcpEcho(tcp_echo::TcpEcho),
    /// Real program: each packet runs what `hostnet record` has recorded for a packet.
    mod recorded => Recorded(recorded::Recorded),
    /// Memory trace of another simulator (Ramulator 2, DRAMsim3 or ChampSim), which each core executes over and over.
    mod memory_trace => MemoryTrace(memory_trace::MemoryTrace),
    /// Application of one's own, which an engine knows by its kind.
    mod extension => Extension(extension::ExtensionApp),
}

/// Number of lines that `bytes` bytes take, at least one.
pub fn lines(bytes: u64) -> u16 {
    bytes.div_ceil(crate::memory::LINE).max(1).to_u16()
}
