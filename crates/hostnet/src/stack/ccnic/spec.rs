//! Parameters of CC-NIC, as a scenario states them.

use super::pool::FreeRing;
use super::rings::{RingShape, GROUP};
use crate::kernel::units::Size;
use crate::kernel::{Int, LineAddr, Real};
use crate::memory::LINE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Action of the NIC on a packet that it takes from the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CcnicMode {
    /// The NIC copies each packet to a fresh receive buffer and sends it back on the same queue pair.
    #[default]
    Loopback,
    /// The NIC forwards packets to and from a PCIe NIC of its node: each thread has its queue pair, and a queue of that
    /// NIC.
    Overlay,
    /// The NIC receives packets from a wire and writes them to fresh receive buffers. It sends the packets that the host
    /// returns in the same buffers, or the answers of the host's application.
    Forward,
}

/// Mechanism by which the NIC learns that a transmit descriptor is ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Wake {
    /// The NIC's threads poll the rings.
    #[default]
    Polling,
    /// The NIC keeps the next line of each ring in its cache, and fetches the line again when the coherence message
    /// arrives that invalidates it.
    Event,
}

/// Lines of a packet that the NIC reads to send it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NicReads {
    /// All lines of the packet.
    #[default]
    Payload,
    /// Only the first line: the NIC wrote the other lines itself, and has kept them in its cache.
    Header,
}

/// Implementation of the NIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NicKind {
    /// Threads on cores, one for each queue pair.
    #[default]
    Software,
    /// A device agent for each queue pair, which makes the same memory requests as a thread: no instructions between
    /// the requests, no prefetchers, and up to `nic_requests` of them outstanding. The agent has a cache as large as a
    /// core's, and is notified when the next line of its ring changes.
    Agent,
}

/// Mechanism by which a consumer learns of new descriptors.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Signalling {
    /// A flag in the descriptor's own line.
    #[default]
    Inline,
    /// Tail and head registers, each on a line of its own.
    Register,
}

/// Layout of 16-byte descriptors in cache lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DescriptorLayout {
    /// Up to four descriptors per line, with one signal for the line.
    #[default]
    Grouped,
    /// Four descriptors per line, each with its own signal (E810's format).
    Packed,
    /// One descriptor per line.
    Padded,
}

/// Side of the interface: host or NIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CcnicSide {
    /// The host.
    Host,
    /// The NIC.
    Nic,
}

/// Mechanism by which a producer learns that a unit is free, with inline signals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FreeCheck {
    /// The producer checks each unit that it is about to write, and requests ownership of the unit's line with that
    /// check.
    #[default]
    Written,
    /// The producer reads the unit eight ahead, which shows that the units before it are free, as the library does.
    Ahead,
}

/// Sides of the interface that manage buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PoolKind {
    /// Both sides: the NIC frees transmit buffers and allocates receive buffers.
    #[default]
    Shared,
    /// The host alone: it posts blank receive buffers, and frees transmit buffers once they are sent.
    Host,
}

/// Threads that share free buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PoolScope {
    /// The threads of all queue pairs, as in the library.
    #[default]
    Port,
    /// The host's and the NIC's thread of one queue pair: each pair has an equal part of the buffers.
    Pair,
}

/// Kind of stores that write payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stores {
    /// Ordinary stores.
    #[default]
    Cached,
    /// Stores that bypass the caches.
    Nontemporal,
}

/// Cache maintenance that the NIC performs on payload lines after reading them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReleaseKind {
    /// No cache maintenance: the line stays in its cache.
    #[default]
    None,
    /// `CLFLUSHOPT`: the line is invalidated in all caches, and written back if dirty.
    Clflushopt,
    /// `CLWB`: the line is written back if dirty, and kept.
    Clwb,
}

/// Named set of choices for the interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// The interface of a PCIe NIC over coherent memory: register signals, packed descriptors, buffers that the host
    /// alone manages, no recycling, no small buffers, sequential buffers. Keys beside `preset` override its choices.
    Unoptimised,
}

/// Instructions of the interface's operations, in addition to the simulated accesses to lines that host and NIC share.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CcnicCosts {
    /// Instructions to allocate a buffer. The default is 70.
    pub alloc: u32,
    /// Instructions to free a buffer. The default is 70.
    pub free: u32,
    /// Instructions of the host for a packet that it sends, writing the packet included. The default is 150.
    pub host_tx: u32,
    /// Instructions of the host for a packet that it receives, reading the packet included. The default is 150.
    pub host_rx: u32,
    /// Instructions of the NIC for a packet that it takes from the host. The default is 138.
    pub nic_tx: u32,
    /// Instructions of the NIC for a packet that it delivers to the host. The default is 138.
    pub nic_rx: u32,
    /// Instructions to write or read a unit: a line of up to four descriptors, or one descriptor. The default is 28.
    pub unit: u32,
    /// Instructions of a poll that finds no packet, or of the poll of a burst's first line. The default is 20.
    pub poll: u32,
    /// Instructions of a bulk operation on the pool. The default is 60.
    pub pool: u32,
}

impl Default for CcnicCosts {
    fn default() -> CcnicCosts {
        CcnicCosts {
            alloc: 70,
            free: 70,
            host_tx: 150,
            host_rx: 150,
            nic_tx: 138,
            nic_rx: 138,
            unit: 28,
            poll: 20,
            pool: 60,
        }
    }
}

/// Default of `nic_requests`, the outstanding requests of an agent; the value is assumed.
const AGENT_REQUESTS: u32 = 64;

/// Default of `tx_free_thresh` in DPDK's drivers for Intel NICs (`ICE_DEFAULT_TX_FREE_THRESH` of the E810's).
const TX_FREE_THRESH: u32 = 32;

/// Buffers of a cache in testpmd.
const TESTPMD_CACHE: u32 = 250;

/// CC-NIC, the interface between host and NIC over coherent memory.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CcnicSpec {
    /// Action of the NIC on packets from the host: "loopback" (the default), "overlay" or "forward".
    pub mode: CcnicMode,
    /// Node of the NIC's cores; if this is the tenant's own node, host and NIC share a socket. The default is 0.
    pub nic_node: u32,
    /// Implementation of the NIC: threads on cores ("software", the default) or device agents ("agent").
    pub nic: NicKind,
    /// Number of the NIC's threads. When absent, there are as many as the tenant has cores ("1-1"). In overlay mode
    /// each thread has a queue pair, and the tenant's cores divide the queue pairs among themselves. In the other modes
    /// each of the tenant's cores has a queue pair, and the NIC's threads divide the queue pairs among themselves.
    pub nic_threads: Option<u32>,
    /// Mechanism by which the NIC learns that a transmit descriptor is ready: "polling" (the default) or "event".
    pub wake: Wake,
    /// Lines of a packet that the NIC reads to send it: "payload" (all lines, the default), or "header" for
    /// `mode = "forward"`.
    pub nic_reads: NicReads,
    /// Mechanism by which a consumer learns of new descriptors: "inline" (the default) or "register".
    pub signal: Signalling,
    /// Layout of 16-byte descriptors in cache lines. The default is "grouped".
    pub layout: DescriptorLayout,
    /// Whether each thread of host and NIC keeps freed buffers on a stack and reuses the most recently freed buffer
    /// first. The default is true.
    pub recycle: bool,
    /// Whether packets that fit `small_buffer` use small buffers. The default is true.
    pub small_buffers: bool,
    /// Whether successive allocations from the pool are never adjacent in memory. The default is true.
    pub nonsequential: bool,
    /// Sides that manage buffers: "shared" (both, the default) or "host" (the host alone).
    pub pool: PoolKind,
    /// Number of lines of a ring of grouped descriptors: a power of two. Rings of other layouts have the same number of
    /// descriptors, four times this value. The default is 256.
    pub ring: u32,
    /// Maximum number of packets that the host sends in a batch. The default is 32.
    pub tx_batch: u32,
    /// Maximum number of packets that the host takes in a batch. The default is 32.
    pub rx_batch: u32,
    /// Kind of stores with which both sides write payload: "cached" (the default) or "nontemporal".
    pub stores: Stores,
    /// Cache maintenance that the NIC performs on payload lines after reading them. The default is "none".
    pub release: ReleaseKind,
    /// Named set of interface choices, such as "unoptimised"; other keys of this table override them. When absent, the
    /// defaults of the keys apply.
    pub preset: Option<Preset>,
    /// Number of large buffers; with `small_buffers`, the share `small_share` of these is split into small ones. The
    /// default is 2048.
    pub buffers: u32,
    /// Details of the implementation that the interface leaves open; scenarios leave them alone.
    pub quirks: CcnicQuirks,
}

/// Details of the implementation of CC-NIC that the interface leaves open.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CcnicQuirks {
    /// Maximum number of outstanding requests of each device agent, for `nic = "agent"`. The default is 64, which is
    /// assumed.
    pub nic_requests: Option<u32>,
    /// Number of unused queue pairs that each of the NIC's threads has in addition to its own, and polls with
    /// `wake = "polling"`. The default is 0.
    pub idle_queues: u32,
    /// Side in whose memory the transmit rings lie. The default is "host".
    pub tx_home: CcnicSide,
    /// Side in whose memory the receive rings lie. The default is "nic".
    pub rx_home: CcnicSide,
    /// Side in whose memory the buffers lie. The default is "host".
    pub buffer_home: CcnicSide,
    /// Threads that share free buffers: "port" (those of all queue pairs, the default) or "pair" (those of one queue
    /// pair).
    pub pool_scope: PoolScope,
    /// Maximum number of packets that the NIC takes in a batch, which is at least four: a line of grouped descriptors is taken whole.
    /// The default is 32.
    pub nic_batch: u32,
    /// Number of receive-ring lines that the host consumes before it clears them. The default is 8.
    pub lazy_release: u32,
    /// Mechanism by which a producer learns that a unit is free, with `signal = "inline"`: "written" (the default) or
    /// "ahead".
    pub free_check: FreeCheck,
    /// Number of units ahead for which a producer requests ownership, with `signal = "inline"`. The default, 0,
    /// requests none, as in the paper; the library uses 2.
    pub own_ahead: u32,
    /// Maximum number of lines of grouped descriptors, including the next line, that a consumer requests while it finds
    /// successive lines ready. With 0 the consumer waits for each line before it requests another; the library uses 6.
    /// When absent, the consumer reads ahead as an out-of-order core with branch prediction does, for descriptors of
    /// any layout. Such a core reads ahead as many polls as fit the reorder buffer together with the instructions of a
    /// unit, and none beyond the end of the burst.
    pub read_ahead: Option<u32>,
    /// Whether the hardware prefetchers of the host's cores are on, where the platform has any. The default is true.
    pub host_prefetch: bool,
    /// Whether the hardware prefetchers of the NIC's cores are on, where the platform has any. The default is false.
    pub nic_prefetch: bool,
    /// Size of a large buffer, its metadata included: a power of two. A packet of an app of kind "loopback" that is larger
    /// than the room behind the metadata takes several buffers with a descriptor each. The default is 4096 B.
    pub large_buffer: Size,
    /// Whether large buffers lie an odd number of lines apart, so that their first lines spread over the channels of memory,
    /// as `rte_mempool` pads its objects (DPDK, `optimize_object_size`). The default is false: CC-NIC's buffers have 4096 B,
    /// which split into 32 of 128 B (section 3.3).
    pub spread: bool,
    /// Size of a small buffer, its metadata included: a power of two. The default is 128 B.
    pub small_buffer: Size,
    /// Size of the metadata at the start of each buffer: "0 B", "64 B" (the default) or "128 B". Only the host accesses
    /// it. The host writes it to allocate a buffer and to receive a packet, and reads it to send, to post or to free a
    /// buffer.
    pub metadata: Size,
    /// Share of the large buffers that is split into small ones, with `small_buffers`. The default is 0.25.
    pub small_share: f64,
    /// Maximum number of buffers in a thread's stack of either size, with `recycle`. The default is 512.
    pub stack: u32,
    /// Number of buffers that a thread's stack takes from the pool at a time, with `recycle`. The default is 32.
    pub bulk: u32,
    /// Size in buffers of a thread's cache in front of the pool when `recycle` is false, after `rte_mempool`. An
    /// allocation that finds too few buffers in the cache takes this many buffers more than it needs. A free that would
    /// fill the cache beyond one and a half times this size first empties the cache. With 0 each burst goes to the
    /// pool. When absent, the size is 250, the value of testpmd, for `pool = "host"`, and 0 otherwise. With a cache or
    /// with `pool = "host"`, each queue pair has at least as many large buffers as two rings, a batch and a cache hold.
    pub cache: Option<u32>,
    /// Number of free transmit descriptors below which the host frees sent buffers, for `pool = "host"` (DPDK:
    /// `tx_free_thresh`): as many buffers as this number, or as the burst needs. When absent, the value is 32, that of
    /// DPDK's drivers for Intel NICs. The library frees all sent buffers once 32 have been sent: 993 of 1024 descriptors.
    pub free_threshold: Option<u32>,
    /// Instructions of the interface's operations.
    pub costs: CcnicCosts,
}

impl Default for CcnicSpec {
    /// The optimised interface of CC-NIC, with every feature switched on.
    fn default() -> CcnicSpec {
        CcnicSpec {
            mode: CcnicMode::Loopback,
            nic_node: 0,
            nic: NicKind::Software,
            nic_threads: None,
            wake: Wake::Polling,
            nic_reads: NicReads::Payload,
            signal: Signalling::Inline,
            layout: DescriptorLayout::Grouped,
            recycle: true,
            small_buffers: true,
            nonsequential: true,
            pool: PoolKind::Shared,
            ring: 256,
            tx_batch: 32,
            rx_batch: 32,
            stores: Stores::Cached,
            release: ReleaseKind::None,
            preset: None,
            buffers: 2048,
            quirks: CcnicQuirks::default(),
        }
    }
}

impl Default for CcnicQuirks {
    fn default() -> CcnicQuirks {
        CcnicQuirks {
            nic_requests: None,
            idle_queues: 0,
            tx_home: CcnicSide::Host,
            rx_home: CcnicSide::Nic,
            buffer_home: CcnicSide::Host,
            pool_scope: PoolScope::Port,
            nic_batch: 32,
            lazy_release: 8,
            free_check: FreeCheck::Written,
            own_ahead: 0,
            read_ahead: None,
            host_prefetch: true,
            nic_prefetch: false,
            large_buffer: Size(4096),
            spread: false,
            small_buffer: Size(128),
            metadata: Size(LINE),
            small_share: 0.25,
            stack: 512,
            bulk: 32,
            cache: None,
            free_threshold: None,
            costs: CcnicCosts::default(),
        }
    }
}

/// Least and largest number of lines of a ring.
const RINGS: (u32, u32) = (4, 16_384);

impl CcnicSpec {
    /// Lines of each memory region for `queues` used queue pairs, in the order of [`CcnicMemory`](super::CcnicMemory).
    pub fn lines(&self, queues: u64) -> [u64; 6] {
        let ring = |group: bool| self.units(group) / self.per_line(group);
        let [small, large] = self.counts(queues.to_u32());
        let pools = u64::from(self.pools(queues.to_u32())) * self.pool_lines(queues.to_u32());
        let buffers = u64::from(small) * self.quirks.small_buffer.0 / LINE + u64::from(large) * self.large_stride();
        let rings = queues * u64::from(1 + self.quirks.idle_queues);
        let registers = rings * 2;
        [rings * ring(true), rings * ring(self.groups_rx()), registers, registers, pools, buffers]
    }

    /// Number of lines from one large buffer to the next.
    pub fn large_stride(&self) -> u64 {
        let lines = self.quirks.large_buffer.0 / LINE;
        if self.quirks.spread {
            lines | 1
        } else {
            lines
        }
    }

    /// Number of pools for `queues` queue pairs.
    pub fn pools(&self, queues: u32) -> u32 {
        match self.quirks.pool_scope {
            PoolScope::Port => 1,
            PoolScope::Pair => queues,
        }
    }

    /// Lines of the free rings of one pool.
    pub fn pool_lines(&self, queues: u32) -> u64 {
        self.counts(queues).into_iter().map(|n| FreeRing::lines(n.div_ceil(self.pools(queues)))).sum()
    }

    /// Bytes of payload that a large buffer holds.
    pub fn large_room(&self) -> u64 {
        self.quirks.large_buffer.0 - self.quirks.metadata.0
    }

    /// Bytes of payload that a small buffer holds.
    pub fn small_room(&self) -> u64 {
        self.quirks.small_buffer.0 - self.quirks.metadata.0
    }

    /// Size of the smallest buffer that holds `bytes` bytes of payload.
    pub fn buffer_for(&self, bytes: u64) -> Size {
        Size((bytes + self.quirks.metadata.0).next_power_of_two())
    }

    /// Number of large buffers that a packet of `bytes` bytes takes.
    pub fn segments(&self, bytes: u64) -> u32 {
        bytes.div_ceil(self.large_room()).max(1).to_u32()
    }

    /// Number of free transmit descriptors below which the host frees sent buffers, where it alone manages buffers.
    pub fn free_threshold(&self) -> u32 {
        self.quirks.free_threshold.unwrap_or(TX_FREE_THRESH)
    }

    /// Maximum number of outstanding requests of each of the NIC's agents; None for threads.
    pub fn agent_requests(&self) -> Option<u32> {
        (self.nic == NicKind::Agent).then(|| self.quirks.nic_requests.unwrap_or(AGENT_REQUESTS))
    }

    /// Numbers of small and of large buffers for `queues` queue pairs.
    pub fn counts(&self, queues: u32) -> [u32; 2] {
        let split =
            if self.small_buffers { (f64::from(self.buffers) * self.quirks.small_share).whole().to_u32() } else { 0 };
        let small = split * (self.quirks.large_buffer.0 / self.quirks.small_buffer.0).to_u32();
        let large = self.buffers - split;
        match self.cache() {
            0 if self.pool == PoolKind::Shared => [small, large],
            // DPDK's l3fwd computes its number of buffers in this way.
            cache => [small, large.max(queues * (2 * GROUP.to_u32() * self.ring + self.tx_batch + cache))],
        }
    }

    /// Size in buffers of a thread's cache in front of the pool; 0 without such a cache, for example where buffers are
    /// recycled.
    pub fn cache(&self) -> u32 {
        let of_a_driver = if self.pool == PoolKind::Host { TESTPMD_CACHE } else { 0 };
        if self.recycle {
            0
        } else {
            self.quirks.cache.unwrap_or(of_a_driver)
        }
    }

    /// Whether receive rings may group descriptors. A host that posts blank buffers determines each slot's buffer
    /// before packets arrive, which excludes grouping.
    pub fn groups_rx(&self) -> bool {
        self.pool == PoolKind::Shared
    }

    fn group(&self, may: bool) -> usize {
        if self.layout == DescriptorLayout::Grouped && may {
            GROUP
        } else {
            1
        }
    }

    fn units(&self, may: bool) -> u64 {
        u64::from(self.ring) * GROUP.to_u64() / self.group(may).to_u64()
    }

    fn per_line(&self, may: bool) -> u64 {
        if self.layout == DescriptorLayout::Padded || self.group(may) == GROUP {
            1
        } else {
            GROUP.to_u64()
        }
    }

    /// Shape of ring `queue` in a region that begins at line `base` and whose registers begin at line `registers`;
    /// `groups` says whether descriptors may be grouped.
    pub fn shape(&self, base: LineAddr, registers: LineAddr, queue: u64, groups: bool) -> RingShape {
        let (units, per_line) = (self.units(groups), self.per_line(groups));
        RingShape {
            base: base + queue * (units / per_line),
            units,
            per_line,
            group: self.group(groups),
            register: self.signal == Signalling::Register,
            tail: registers + 2 * queue,
            head: registers + 2 * queue + 1,
            probe: match self.quirks.free_check {
                FreeCheck::Written => 1,
                FreeCheck::Ahead => 8,
            },
            own_ahead: self.quirks.own_ahead.into(),
            read_ahead: self.quirks.read_ahead.unwrap_or(0).into(),
            speculates: false,
        }
    }

    /// Checks that a ring has as many lines as its pool releases together.
    fn fits_ring(&self) -> Result<(), String> {
        let (lazy, threshold, ring) = (self.quirks.lazy_release, self.free_threshold(), self.ring);
        let (key, v, most, lines) = match self.pool {
            PoolKind::Shared => ("quirks.lazy_release", lazy, ring, lazy),
            PoolKind::Host => {
                let lines = threshold.saturating_add(1).div_ceil(GROUP.to_u32());
                ("quirks.free_threshold", threshold, GROUP.to_u32() * ring - 1, lines)
            }
        };
        if (1..=most).contains(&v) {
            return Ok(());
        }
        let larger = match lines.checked_next_power_of_two().filter(|n| (ring + 1..=RINGS.1).contains(n)) {
            Some(least) => format!(", or ccnic.ring = {least} or more"),
            None => String::new(),
        };
        Err(format!("{key} = {v} is not within 1 to {most}, for which ccnic.ring = {ring} has room; give less{larger}"))
    }

    /// Checks that the values fit together for `queues` queue pairs and packets of `bytes` bytes.
    ///
    /// # Errors
    /// Returns one clause that names key and value.
    pub fn check(&self, queues: u32, bytes: u64) -> Result<(), String> {
        let within = |key: &str, v: u32, least: u32, most: u32| {
            ((least..=most).contains(&v)).then_some(()).ok_or(format!("{key} = {v} is not within {least} to {most}"))
        };
        within("ring", self.ring, RINGS.0, RINGS.1)?;
        within("tx_batch", self.tx_batch, 1, 256)?;
        within("rx_batch", self.rx_batch, 1, 256)?;
        within("quirks.nic_batch", self.quirks.nic_batch, 1, 256)?;
        self.fits_ring()?;
        within("quirks.own_ahead", self.quirks.own_ahead, 0, 7)?;
        within("quirks.read_ahead", self.quirks.read_ahead.unwrap_or(0), 0, 64)?;
        within("buffers", self.buffers, 64, 1 << 20)?;
        within("quirks.stack", self.quirks.stack, 1, 1 << 16)?;
        within("quirks.bulk", self.quirks.bulk, 1, 256)?;
        within("quirks.cache", self.quirks.cache.unwrap_or(0), 0, 512)?;
        if self.recycle && self.quirks.cache.is_some_and(|n| n > 0) {
            return Err(
                "quirks.cache needs recycle = false: buffers that are recycled lie on stacks; give stack for their size"
                    .into(),
            );
        }
        within("quirks.idle_queues", self.quirks.idle_queues, 0, 4096)?;
        if self.nic == NicKind::Agent && self.mode == CcnicMode::Overlay {
            return Err(
                "nic = \"agent\" executes no instructions, and the threads of mode = \"overlay\" run the driver of a PCIe NIC; \
                 give nic = \"software\""
                    .into(),
            );
        }
        if self.nic == NicKind::Agent && (self.wake != Wake::Event || self.quirks.nic_prefetch) {
            return Err(
                "nic = \"agent\" has no poll loop and no prefetchers; give wake = \"event\" and nic_prefetch = false"
                    .into(),
            );
        }
        if self.quirks.nic_requests.is_some() && self.nic != NicKind::Agent {
            return Err(
                "quirks.nic_requests is for nic = \"agent\": threads have the line fill buffers of their cores".into(),
            );
        }
        within("quirks.nic_requests", self.quirks.nic_requests.unwrap_or(1), 1, 64)?;
        if self.mode == CcnicMode::Overlay && self.wake == Wake::Event {
            return Err(
                "wake = \"event\" is a write of one line that a thread keeps, and the threads of mode = \"overlay\" look at a \
                 descriptor of the PCIe NIC as well; give wake = \"polling\""
                    .into(),
            );
        }
        if self.mode == CcnicMode::Forward && (self.pool == PoolKind::Host || self.release != ReleaseKind::None) {
            return Err(
                "mode = \"forward\" needs pool = \"shared\" and no release: the NIC gives buffers to the host".into()
            );
        }
        if self.mode != CcnicMode::Forward && self.nic_reads == NicReads::Header {
            return Err(
                "nic_reads = \"header\" is for mode = \"forward\": in other modes the NIC copies packets".into()
            );
        }
        if !self.ring.is_power_of_two() {
            return Err(format!("ring = {} is not a power of two", self.ring));
        }
        for (key, size, least, most) in [
            ("quirks.large_buffer", self.quirks.large_buffer, 1024, 32_768),
            ("quirks.small_buffer", self.quirks.small_buffer, 64, 1024),
        ] {
            if !size.0.is_power_of_two() || !(least..=most).contains(&size.0) {
                return Err(format!("{key} = \"{size}\" is not a power of two within {least} B to {most} B"));
            }
        }
        if ![0, LINE, 2 * LINE].contains(&self.quirks.metadata.0) {
            return Err(format!(
                "quirks.metadata = \"{}\" is not \"0 B\", \"64 B\" or \"128 B\"",
                self.quirks.metadata
            ));
        }
        if self.small_buffers && self.quirks.small_buffer.0 <= self.quirks.metadata.0 {
            return Err(format!(
                "quirks.small_buffer = \"{}\" has no room behind metadata = \"{}\"; give small_buffer = \"{}\"",
                self.quirks.small_buffer,
                self.quirks.metadata,
                Size(2 * self.quirks.metadata.0)
            ));
        }
        if self.pool == PoolKind::Shared && self.quirks.free_threshold.is_some() {
            return Err(
                "quirks.free_threshold is for pool = \"host\": with pool = \"shared\" the NIC frees the buffers that it has sent"
                    .into(),
            );
        }
        if !(0.0..=0.9).contains(&self.quirks.small_share) {
            return Err(format!("quirks.small_share = {} is not within 0 to 0.9", self.quirks.small_share));
        }
        let segments = self.segments(bytes);
        if segments > 1 && u64::from(segments) > u64::from(self.ring) * GROUP.to_u64() / 2 {
            return Err(format!(
                "ring = {} has no room for the {segments} buffers of a packet of {bytes} B; give large_buffer = \"{}\"",
                self.ring,
                self.buffer_for(bytes)
            ));
        }
        if self.pool == PoolKind::Host && self.small_buffers {
            return Err(
                "small_buffers = true needs pool = \"shared\": the host posts blank buffers before it knows sizes; \
                        give small_buffers = false"
                    .into(),
            );
        }
        let batches = u64::from(queues) * u64::from(self.tx_batch.max(self.quirks.nic_batch)) * u64::from(segments);
        let [small, large] = self.counts(queues).map(u64::from);
        let of = if self.small_buffers && bytes <= self.small_room() { small.max(large) } else { large };
        if of < 4 * batches {
            return Err(format!(
                "buffers = {} leaves {of} for packets of {bytes} B, fewer than four batches for each of {queues} queue pairs",
                self.buffers
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Buffers of 4 KiB begin on one channel of eight, which take turns of 256 B, unless the pool spreads them: eight in a
    /// row then begin a line further each, and 32 in a row on every channel.
    #[test]
    fn a_spread_pool_begins_its_buffers_on_every_channel() {
        let channels = |spread: bool, buffers: u64| {
            let mut spec = CcnicSpec::default();
            spec.quirks.spread = spread;
            let first = |n: u64| n * spec.large_stride() * LINE / 256 % 8;
            (0..buffers).map(first).collect::<std::collections::BTreeSet<_>>().len()
        };
        assert_eq!(channels(false, 32), 1);
        assert_eq!(channels(true, 32), 8);
    }
}
