//! The coherent memory system: private caches, the home agent with its LLC, and DRAM.
//!
//! `Memory` holds the state of all parts. Module `private` describes a core's caches, `home` the home agent, and `dram`
//! the memory controllers.

pub mod array;
mod audit;
mod dma;
pub mod dram;
mod event;
mod filter;
mod functional;
pub mod home;
mod indexing;
mod inter_socket;
mod line_table;
mod links;
mod maintenance;
mod mc_queue;
pub mod memory_link;
mod mshr;
mod node;
pub mod nodes;
pub mod paths;
mod private;
pub mod protocol;
pub mod protocol_nodes;
mod received_lines;
pub mod region;
mod replacement;
pub mod request;
mod rx_line_states;
pub mod shadow;
pub mod siblings;
pub mod spec;
pub mod stats;
pub mod tag;
mod ways;

pub use event::{MemoryEvent, MemoryPosts};
pub use links::{InterSocket, LinkReading};
pub use maintenance::Sweep;
use mshr::MissId;
pub use mshr::Mshrs;
pub use node::{Node, Nodes};
pub use private::Probe;
pub use request::{Agent, Inbound, IoWrite, Outbound, Sender, Txn, TxnOp};
pub use siblings::Siblings;
pub use stats::{OffCore, OffCores};
pub use tag::Tag;

use crate::flow::domain::{Domain, DomainReading};
use crate::kernel::{
    cache_aligned::CacheAligned, hint::prefetch, ChannelId, Clock, CoreId, IdVec, Int, LineAddr, NodeId, TenantId,
    ThreadId, Time, TxnId,
};
use array::{CacheArray, Indexing};
use dram::{DramController, DramSpec};
use indexing::MOST_WAYS;
use mc_queue::McQueue;
use memory_link::MemoryLink;
use node::FIRST_NODE;
use nodes::NodesSpec;
use paths::{Milestones, Path, Paths};
use protocol::{CoreRows, Inclusion, LlcProtocol};
use region::{AddressMap, RegionKind, Sharing};
use spec::{CacheSpec, CleanVictim, HierarchySpec};
use stats::MemStats;

pub use crate::kernel::ids::{LINE, LINE_U32};

/// Bytes of tags above which the LLC's sets are prefetched before fills: the size of the L2 of the computer on which
/// the engine's speed is measured. No result depends on it.
const HOST_CACHE: usize = 2 << 20;

/// Latencies of the hierarchy, converted from cycles once.
#[derive(Clone, Copy)]
pub struct Latencies {
    /// Time of an access that hits the L1.
    pub l1: Time,
    /// Time of an access that hits the L2.
    pub l2: Time,
    /// Time that a line takes from the L2 through the L1 on its way to the core.
    pub from_l2: Time,
    /// Time that a line takes through the L2 and the L1 on its way to the core.
    pub from_llc: Time,
    /// Time of one traversal of the crossbar, the shortest among all nodes.
    pub noc: Time,
    /// Time of a look-up in the LLC, the shortest among all nodes.
    pub llc: Time,
    /// Time of a write from the home agent to the controller and of its acknowledgement.
    pub write_ack: Time,
    /// Time to take a line from its owners before a device's write goes to memory.
    pub ownership: Time,
    /// Time from the home agent back to the IIO.
    pub to_iio: Time,
}

/// Lines that a fill evicts to the next level of the hierarchy; see `private`.
#[derive(Clone, Copy)]
struct PendingVictim {
    core: CoreId,
    thread: ThreadId,
    issued: Time,
    victim: Option<LineAddr>,
    carried: bool,
    /// Record of the write-back that holds the line fill buffer of the fill.
    record: u8,
}

/// Memory system of one host: caches, home agents and DRAM.
#[derive(Clone)]
pub struct Memory {
    /// Map of the regions in memory.
    pub map: AddressMap,
    /// Counters of the memory system.
    pub stats: MemStats,
    /// Latencies of the hierarchy.
    pub lat: Latencies,
    l1: IdVec<CoreId, CacheArray>,
    l2: IdVec<CoreId, CacheArray>,
    /// Node of each core.
    core_nodes: IdVec<CoreId, NodeId>,
    /// Nodes of the host, each with its LLC.
    pub nodes: Nodes,
    /// Inter-socket links, where the machine has several nodes.
    inter_socket: Option<Box<InterSocket>>,
    /// Link between caches and memory controllers, where they are on chips of their own.
    memory_link: Option<Box<MemoryLink>>,
    l2_inclusive: bool,
    llc_protocol: LlcProtocol,
    core_rows: CoreRows,
    /// Whether the LLC is strictly inclusive: lines that it evicts are invalidated in private caches.
    strict: bool,
    write_back_uses: bool,
    /// Whether the ways of devices count from the last way down.
    from_last: bool,
    /// Mask of the directory-inclusive ways, which hold lines that a core also has; 0 without such ways.
    inclusive_ways: u32,
    /// MSHRs of the LLC, where they are limited (`mshrs`), and the miss whose look-up is in progress (`miss`).
    mshrs: Option<Box<Mshrs>>,
    miss: Option<MissId>,
    clean_victim: CleanVictim,
    clean_victim_cleans: bool,
    /// Mask of the LLC ways that fills of each tenant may allocate into.
    tenant_ways: IdVec<TenantId, u32>,
    /// Whether network data is kept in a separate cache of unlimited size (ideal DDIO).
    pub ideal_network: bool,
    /// Functional mode, which warms the caches: accesses take no time, and DRAM only counts them.
    pub functional: bool,
    /// Memory controllers and DRAM of all channels.
    pub dram: DramController,
    channels: IdVec<ChannelId, McQueue>,
    done: Vec<dram::DramCompletion>,
    txns: CacheAligned<TxnId, Txn>,
    milestones: CacheAligned<TxnId, Milestones>,
    free_txns: Vec<TxnId>,
    live_txns: u32,
    /// Whether writes of cores (0) and devices (1) wait in separate queues; otherwise all wait in the first of two.
    sides: bool,
    /// Credits of `cha_writes` that are reserved for the integrated NIC.
    nic_credits: u32,
    /// Milestones of requests, by datapath.
    pub paths: Paths,
    /// Whether write-backs travel to the home agent as requests of their own.
    writebacks: bool,
    /// Whether some region has lines that another agent may change while a core has them in its caches.
    races: bool,
    /// Whether the tags exceed the cache of a core of the computer that runs the simulation.
    spread: bool,
    pending_victim: Option<PendingVictim>,
    /// Number of modified lines that L2s have evicted to the LLC, without those of functional mode.
    pub written_back: u64,
    /// Transaction of a device for which the next eviction makes room.
    evicts_for: Option<TxnId>,
    rx_line_states: rx_line_states::RxLineStates,
    /// Places of received lines, which are counted from the first call that asks for them.
    received: Option<Box<received_lines::ReceivedLines>>,
    /// Whether L2s may hold received lines that no core has read, because hints or prefetches have fetched them.
    holds_unread: bool,
    /// Mask of the LLC ways that writes of devices may allocate into; see [`Memory::set_device_ways`].
    device_ways: u32,
    /// Snoop filter of shared regions.
    shared: filter::SharedFilter,
    /// Lines that a device has read and of which a core may keep a copy, so that a store must ask for ownership
    /// (`device_read = "install"`).
    read_by_devices: filter::LineSet,
    /// Outstanding requests of cores for lines that other agents use as well.
    lines: line_table::LineTable,
    /// Lines that threads watch: line, thread, and the node of the thread's core where the thread learns of a write when
    /// the invalidation has reached its caches.
    watched: Vec<(LineAddr, ThreadId, Option<NodeId>)>,
    /// Version of every copy of a line, for tests of coherence.
    pub shadow: Option<Box<shadow::Shadow>>,
    /// Counters of the requests that leave cores, where a caller has asked for them.
    pub off_core: Option<OffCores>,
    /// Hardware threads that share a core, if there are any.
    pub siblings: Option<Box<Siblings>>,
}

fn build(c: &CacheSpec, what: &str) -> Result<CacheArray, String> {
    let sets = c.size.0 / LINE / u64::from(c.ways.max(1));
    CacheArray::new(sets.to_u32(), c.ways, c.replacement, Indexing::Modulo, 1).map_err(|e| format!("{what}: {e}"))
}

impl Memory {
    /// Makes a memory system with cold caches for `cores` cores with the clock `clock`. `tenant_ways[t]` is the mask of
    /// LLC ways of tenant t.
    ///
    /// # Errors
    /// Fails with one clause that names the cache whose shape does not work.
    pub fn new(
        h: &HierarchySpec,
        d: &DramSpec,
        clock: Clock,
        cores: u32,
        tenant_ways: Vec<u32>,
        map: AddressMap,
    ) -> Result<Memory, String> {
        Memory::with_nodes(h, d, &NodesSpec::default(), clock, vec![NodeId(0); cores.to_usize()], tenant_ways, map)
    }

    /// Makes a memory system with cold caches and several nodes. `core_nodes` gives the node of each core; every node
    /// has an LLC and memory controllers as specified.
    ///
    /// # Errors
    /// Fails with one clause that names the cache whose shape does not work.
    pub fn with_nodes(
        h: &HierarchySpec,
        d: &DramSpec,
        nodes: &NodesSpec,
        clock: Clock,
        core_nodes: Vec<NodeId>,
        tenant_ways: Vec<u32>,
        mut map: AddressMap,
    ) -> Result<Memory, String> {
        let cores = core_nodes.len();
        let core_nodes = IdVec::from(core_nodes);
        map.settle_homes(&core_nodes);
        let l1 = build(&h.l1d, "caches.l1d")?;
        let l2 = build(&h.l2, "caches.l2")?;
        let sets = h.llc.size.0 / LINE / u64::from(h.llc.ways.max(1));
        let llc = CacheArray::new(sets.to_u32(), h.llc.ways, h.llc.replacement, h.llc.indexing, h.llc.slices)
            .map_err(|e| format!("caches.llc: {e}"))?;
        let dram = DramController::of_nodes(&d.plan()?, nodes.count);
        let llc_slices = llc.slices();
        let channels = dram.channels().map(|ch| McQueue::new(d.quirks.overflow, dram.node_of(ch))).collect();
        let spread = cores * l2.bytes() + nodes.count.to_usize() * llc.bytes() > HOST_CACHE;
        let inter_socket = InterSocket::new(nodes);
        let nodes = Nodes::new(nodes.count.to_usize(), |n| {
            let uncore = Clock::from_hz(nodes.uncore_clock.get(n).unwrap_or(&h.uncore_clock).0);
            Node {
                llc: llc.clone(),
                taken_in: [0; MOST_WAYS],
                noc: uncore.span(h.noc_cycles.into()),
                look_up: uncore.span(h.llc.latency_cycles.into()),
                crossing: uncore.span(nodes.crossing_cycles.into()),
                from_dram: uncore.span((h.llc.quirks.response_cycles + nodes.crossing_cycles).into()),
                admission: Default::default(),
                waiting: [0; 2],
                cha_writes: Domain::new(h.llc.write_buffer),
            }
        });
        let rx: Vec<_> = map.iter().filter(|r| r.kind == RegionKind::Rx).collect();
        let rx_base = rx.iter().map(|r| r.base).min().unwrap_or_default();
        let rx_end = rx.iter().map(|r| r.base + r.lines).max().unwrap_or_default();
        let llc_protocol = LlcProtocol::of(&h.llc)?;
        let inclusive_ways = llc_protocol.victim().map_or(0, |v| v.inclusive_ways);
        let races = map.iter().any(|r| r.sharing == Sharing::Shared || r.polled);
        Ok(Memory {
            stats: MemStats::new(tenant_ways.len(), cores),
            lat: Latencies {
                l1: clock.span(h.l1d.latency_cycles.into()),
                l2: clock.span(h.l2.latency_cycles.into()),
                from_l2: clock.span(h.l1d.response_cycles.into()),
                from_llc: clock.span((h.l1d.response_cycles + h.l2.response_cycles).into()),
                noc: nodes.iter().map(|n| n.noc).min().unwrap_or(Time::ZERO),
                llc: nodes.iter().map(|n| n.look_up).min().unwrap_or(Time::ZERO),
                write_ack: h.llc.write_ack.into(),
                ownership: Time::ZERO,
                to_iio: Time::ZERO,
            },
            paths: Paths::default(),
            races,
            writebacks: h.llc.quirks.writebacks == spec::WriteBacks::Admitted,
            spread,
            pending_victim: None,
            written_back: 0,
            evicts_for: None,
            shared: filter::SharedFilter::of_cores(cores),
            read_by_devices: filter::LineSet::default(),
            l1: IdVec::filled(l1, cores),
            l2: IdVec::filled(l2, cores),
            core_nodes,
            nodes,
            inter_socket,
            memory_link: h.llc.quirks.memory_link.as_ref().map(|l| Box::new(MemoryLink::new(l))),
            l2_inclusive: h.l2_inclusive,
            core_rows: CoreRows::new(llc_protocol),
            llc_protocol,
            strict: llc_protocol.role == Inclusion::StrictlyInclusive,
            write_back_uses: h.llc.quirks.write_back_uses,
            from_last: h.llc.quirks.device_ways == spec::DeviceWays::Highest,
            inclusive_ways,
            mshrs: (h.llc.quirks.mshrs > 0).then(|| Box::new(Mshrs::new(llc_slices, h.llc.quirks.mshrs))),
            miss: None,
            clean_victim: h.llc.quirks.clean_victim,
            clean_victim_cleans: h.llc.quirks.clean_victim_cleans,
            tenant_ways: tenant_ways.into_iter().map(|w| w & !inclusive_ways).collect(),
            ideal_network: false,
            functional: false,
            channels,
            dram,
            done: Vec::with_capacity(64),
            txns: CacheAligned::with_capacity(1024),
            milestones: CacheAligned::with_capacity(1024),
            free_txns: Vec::with_capacity(1024),
            live_txns: 0,
            sides: h.llc.write_order == spec::WriteOrder::RoundRobin,
            nic_credits: h.llc.quirks.nic_credits,
            rx_line_states: rx_line_states::RxLineStates::new(rx_base, rx_end),
            received: None,
            holds_unread: false,
            device_ways: 0,
            map,
            lines: line_table::LineTable::default(),
            watched: Vec::new(),
            shadow: None,
            off_core: None,
            siblings: None,
        })
    }

    /// Gives `core` an L2 of a different shape; its L2 must still be empty.
    ///
    /// # Errors
    /// Fails with one clause that names the shape that does not work.
    pub fn resize_l2(&mut self, core: CoreId, c: &CacheSpec) -> Result<(), String> {
        debug_assert_eq!(self.l2[core].held(), 0);
        self.l2[core] = build(c, "tenant.l2_size")?;
        Ok(())
    }

    /// Associativity of the LLC of each node.
    pub fn llc_ways(&self) -> u32 {
        self.nodes[FIRST_NODE].llc.ways()
    }

    /// Readings of the writes that wait at all home agents together.
    pub fn cha_writes(&self, now: Time) -> DomainReading {
        let all = self.nodes.iter().map(|n| n.cha_writes.read(now));
        DomainReading::together(all).expect("a machine has a node")
    }

    /// Number of writes that wait at all home agents.
    pub fn writes_at_home_agents(&self) -> u32 {
        self.nodes.iter().map(|n| n.cha_writes.used()).sum()
    }

    /// Node of core `c`.
    #[inline]
    pub fn node_of_core(&self, c: CoreId) -> NodeId {
        self.core_nodes[c]
    }

    /// Time from a core to the agent of its node, which a miss takes after the look-ups in L1 and L2.
    #[inline]
    pub fn latency_to_agent(&self, core: CoreId) -> Time {
        let noc = if self.nodes.several() { self.nodes[self.node_of_core(core)].noc } else { self.lat.noc };
        self.lat.l1 + self.lat.l2 + noc
    }

    /// Home node of `line`.
    #[inline]
    pub fn home_of(&self, line: LineAddr) -> NodeId {
        self.map.of(line).home.expect("every region has a home")
    }

    /// Node whose agent receives a request first.
    #[inline]
    fn agent_of(&self, t: &Txn) -> NodeId {
        if !self.nodes.several() {
            return FIRST_NODE;
        }
        match t.agent() {
            Agent::Core => self.node_of_core(t.core()),
            Agent::Nic | Agent::Io => self.home_of(t.line),
            _ => FIRST_NODE,
        }
    }

    /// Node whose home agent performs the requests of devices for `line`: devices move lines of the memory of their own
    /// node.
    #[inline]
    fn devices_node(&self, line: LineAddr) -> NodeId {
        if self.nodes.several() {
            self.home_of(line)
        } else {
            FIRST_NODE
        }
    }

    /// Makes a transaction and returns its number. The function is inlined so that the transaction is constructed in
    /// its final place: copying a value that was just written in parts stalls the processor.
    #[inline(always)]
    fn txn(&mut self, t: Txn) -> TxnId {
        self.live_txns += 1;
        if let Some(id) = self.free_txns.pop() {
            self.txns[id] = t;
            return id;
        }
        self.milestones.push(Milestones::default());
        self.txns.push(t)
    }

    /// Sends a request to the home agent, where it arrives at `at`; `MemoryEvent::Fill` announces the answer.
    #[inline(always)]
    pub fn send(&mut self, cal: &mut impl MemoryPosts, at: Time, t: Txn) {
        let id = self.txn(t);
        self.send_to_home(cal, at, id);
    }

    /// Sends a core's request to the home agent, where it arrives at `at`, and counts it for its thread.
    #[inline(always)]
    pub fn send_from_core(&mut self, cal: &mut impl MemoryPosts, at: Time, t: Txn) {
        if let Some(n) = &mut self.off_core {
            n.note(t.thread(), self.map.id(t.line), t.op);
        }
        if let Some(s) = &mut self.siblings {
            s.request_sent(&t);
        }
        self.send(cal, at, t);
    }

    /// Starts transaction `id`, which arrives at the home agent at `at`.
    #[inline(never)]
    fn send_to_home(&mut self, cal: &mut impl MemoryPosts, at: Time, id: TxnId) {
        let t = &self.txns[id];
        let Txn { line, lines, op, sender, issued, .. } = *t;
        let (node, n) = (self.agent_of(t), self.request_count(t));
        if lines == 1 {
            let llc = &self.nodes[node].llc;
            let home = llc.home(line);
            llc.prefetch_home_on_host(home);
            if self.nodes.several() {
                self.nodes[self.nodes.other_than(node)].llc.prefetch_on_host(line);
            }
            self.txns[id].home = home;
        } else {
            self.prefetch_on_host(line, lines.into());
        }
        if let (Sender::Core { core, .. }, TxnOp::Read | TxnOp::Own, true) = (sender, op, self.spread) {
            // The victim that the fill will evict from the L2, whose set the core has just looked up.
            let victim = self.l2[core].oldest_in_slice(line);
            if let Some(v) = victim.filter(|v| v.dirty || self.llc_accepts(v)) {
                self.nodes[node].llc.prefetch_on_host(v.line);
            }
            if self.races {
                self.prefetch_holders_on_host(line);
                if let Some(v) = victim {
                    self.prefetch_holders_on_host(v.line);
                }
            }
        }
        if sender.agent() != Agent::Background {
            self.paths.under_way[Path::of(op).index()].force_many(n, issued);
        }
        self.milestones[id] = Milestones::at(issued, at);
        cal.post(at, MemoryEvent::Cha(id));
    }

    /// Whether `MemoryEvent::Cha` of `id` is the arrival of a core's request, rather than the turn of a request that
    /// waited for a line.
    #[inline]
    pub fn is_arrival_from_core(&self, id: TxnId) -> bool {
        self.txns[id].agent() == Agent::Core && self.txns[id].entry.is_none()
    }

    /// Delays request `id`, which has just arrived, until `at`.
    pub fn post_arrival(&mut self, cal: &mut impl MemoryPosts, at: Time, id: TxnId) {
        self.milestones[id] = Milestones::at(self.milestones[id].start, at);
        cal.post(at, MemoryEvent::Cha(id));
    }

    /// Prefetches the records of request `id`, which the engine needs soon, on the computer that runs the simulation.
    #[inline]
    fn prefetch_txn(&self, id: TxnId) {
        prefetch(&self.txns[id]);
        prefetch(&self.milestones[id]);
    }

    /// Request that has been answered, in the form in which `answered` will return it.
    #[inline]
    pub fn request(&self, id: TxnId) -> &Txn {
        &self.txns[id]
    }

    /// Times at which request `id`, which is about to end at `end`, passed from one hop to the next, in the form of its
    /// start and the ends of the parts in `paths::SEGMENTS`.
    pub fn borders(&self, id: TxnId, end: Time) -> [Time; paths::PARTS + 1] {
        self.milestones[id].borders(end)
    }

    /// Handles `MemoryEvent::Fill`: ends a request, accounts for its milestones, and returns the answer for the
    /// requesting agent.
    #[inline(always)]
    pub fn answered(&mut self, cal: &mut impl MemoryPosts, id: TxnId, now: Time) -> Txn {
        let answer = self.end_request(cal, id, now);
        if let Some(s) = self.siblings.as_mut().filter(|_| answer.agent() == Agent::Core) {
            s.request_ended(&answer);
        }
        answer
    }

    /// Ends a request; returns its answer, which is `transient` where the data may only be used once and not be kept.
    #[inline(never)]
    fn end_request(&mut self, cal: &mut impl MemoryPosts, id: TxnId, now: Time) -> Txn {
        // Copied before it is written, because the copy would otherwise stall; see `txn`.
        let mut answer = self.txns[id];
        self.txns[id].dirty = false;
        let t = &self.txns[id];
        let (entry, path) = (t.entry, Path::of(t.op));
        let counted = if t.agent() != Agent::Background && t.holds_credit() { self.request_count(t) } else { 0 };
        answer.transient |= entry.is_some_and(|epoch| self.release_line(cal, id, epoch, now));
        if counted > 0 {
            self.paths.record(path, counted, &self.milestones[id], now);
        }
        if self.inter_socket.is_some() {
            self.end_crossing(cal, id, now);
        }
        self.free_txn(id);
        if let Some(m) = &mut self.mshrs {
            m.on_answer(cal, id, now);
        }
        answer
    }

    #[inline]
    fn free_txn(&mut self, id: TxnId) {
        self.live_txns -= 1;
        self.free_txns.push(id);
        if let Some(b) = &mut self.inter_socket {
            b.clear(id);
        }
    }

    /// Prefetches the sets of `lines` lines from `line` on, all of one region, in the LLC and in the L2 of their owner,
    /// on the computer that runs the simulation.
    #[inline]
    pub fn prefetch_on_host(&self, line: LineAddr, lines: u64) {
        let llc = &self.nodes[FIRST_NODE].llc;
        line.span(lines).for_each(|l| llc.prefetch_on_host(l));
        if let Sharing::Core(c) = self.sharing(line) {
            let l2 = &self.l2[c];
            line.span(lines).for_each(|l| l2.prefetch_in_slice_on_host(l));
        }
    }

    /// Prefetches the snoop filter's entry of `line`, if it has one, on the computer that runs the simulation.
    #[inline]
    fn prefetch_holders_on_host(&self, line: LineAddr) {
        if self.is_shared(line) {
            self.shared.prefetch_on_host(line);
        }
    }

    /// Marks lines of a receive buffer as consumed after the last read, so that later evictions count as evictions of
    /// dead data.
    pub fn consumed(&mut self, line: LineAddr, lines: u64) {
        if self.map.of(line).kind != RegionKind::Rx {
            return;
        }
        for l in line.span(lines) {
            if self.rx_line_states.of(l) == rx_line_states::UNCONSUMED {
                self.rx_line_states.set(l, rx_line_states::CONSUMED);
            }
        }
    }

    /// Whether a line of this kind is network data outside the modelled caches (ideal DDIO).
    #[inline]
    fn is_outside_caches(&self, kind: RegionKind) -> bool {
        self.ideal_network && kind == RegionKind::Rx
    }

    /// Starts a measured window: clears the meters.
    pub fn restart_meters(&mut self, now: Time) {
        self.stats.restart();
        self.off_core.iter_mut().for_each(OffCores::restart);
        self.nodes.iter_mut().for_each(|n| n.cha_writes.restart(now));
        self.paths.restart(now);
        self.inter_socket.iter_mut().for_each(|b| b.restart(now));
        self.memory_link.iter_mut().for_each(|l| l.restart(now));
        self.mshrs.iter_mut().for_each(|m| m.restart(now));
        self.dram.trace.iter_mut().for_each(|t| t.restart(now));
    }

    /// Mask of the LLC ways to which the ways of a placement policy are mapped.
    #[inline]
    pub fn device_way_mask(&self, ways: u32) -> u32 {
        if self.from_last {
            ways.reverse_bits() >> (32 - self.llc_ways())
        } else {
            ways
        }
    }

    /// Sets the LLC ways that writes of devices may allocate into, as the placement policy numbers them. Each write names its
    /// own ways among them; lines in any of them count as lines in ways for devices, and reads of devices allocate into them.
    pub fn set_device_ways(&mut self, ways: u32) {
        self.device_ways = self.device_way_mask(ways);
    }

    /// Whether LLC misses need an MSHR, so that the lines of a burst proceed one by one.
    pub fn has_mshrs(&self) -> bool {
        self.mshrs.is_some()
    }

    /// Number of requests that a transaction stands for: each line of an integrated NIC's burst where lines proceed one
    /// by one.
    #[inline]
    fn request_count(&self, t: &Txn) -> u32 {
        if t.agent() == Agent::Nic && self.has_mshrs() {
            t.lines.into()
        } else {
            1
        }
    }

    /// Lets the victims of `tenant`'s L2s enter the ways of `mask` alone from now on.
    pub fn set_tenant_ways(&mut self, tenant: TenantId, mask: u32) {
        self.tenant_ways[tenant] = mask;
    }

    /// MSHRs of the LLC, where they are limited.
    pub fn mshrs(&self) -> Option<&Mshrs> {
        self.mshrs.as_deref()
    }

    /// Whether lines that devices read are installed in the LLC.
    #[inline]
    fn device_reads_allocate(&self) -> bool {
        self.llc_protocol.installs()
    }

    /// Number of outstanding requests of cores and devices.
    pub fn in_flight(&self) -> u32 {
        self.live_txns
    }

    fn sharing(&self, line: LineAddr) -> Sharing {
        self.map.of(line).sharing
    }
}

/// Memory systems for the unit tests of other modules.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::kernel::units::Freq;
    use serde::Deserialize;

    /// The part of a platform's file that a memory system needs.
    #[derive(Deserialize)]
    struct Platform {
        caches: HierarchySpec,
        memory: DramSpec,
        core: Core,
    }

    #[derive(Deserialize)]
    struct Core {
        clock: Freq,
    }

    /// The memory system that `platform`, the text of a platform's file, describes, for `cores` cores and one tenant.
    pub(crate) fn memory_of(platform: &str, cores: u32, map: AddressMap) -> Memory {
        let Platform { caches, memory, core } = toml::from_str(platform).expect("a platform");
        Memory::new(&caches, &memory, Clock::from_hz(core.clock.0), cores, vec![1], map).expect("a memory system")
    }
}
