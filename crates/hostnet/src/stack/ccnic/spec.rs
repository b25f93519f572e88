//! What a scenario says about CC-NIC.

use super::pool::FreeRing;
use super::rings::{Shape, GROUP};
use crate::kernel::units::Size;
use crate::kernel::{Int, LineAddr, Real};
use crate::memory::LINE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the NIC does with a packet that it takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// It copies the packet to a fresh receive buffer and sends it back on the same queue pair.
    #[default]
    Loopback,
    /// It forwards packets to and from a PCIe NIC of its node: each thread has a queue of that NIC beside its queue pair.
    Overlay,
    /// It has packets from a wire, writes them to fresh receive buffers, and sends what comes back in the same buffers. The host
    /// forwards them.
    Forward,
}

/// How the NIC learns that a transmit descriptor is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Wake {
    /// Its threads poll.
    #[default]
    Polling,
    /// It keeps the next line of each ring in its cache, and fetches the line anew when the message comes that takes it away.
    Event,
}

/// What the NIC reads of a packet that it sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NicReads {
    /// Every line.
    #[default]
    Payload,
    /// The first line: it has kept the others in its cache since it wrote them.
    Header,
}

/// What the NIC is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NicKind {
    /// Threads on cores, one for each queue pair.
    #[default]
    Software,
    /// A device's agent for each queue pair, which makes the same requests: no instructions between them, no prefetchers, and as many
    /// under way as `nic_requests`. It has a cache as large as a core's, and hears of its ring's next line.
    Agent,
}

/// How a consumer learns of descriptors.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Signalling {
    /// A flag in the descriptor's line.
    #[default]
    Inline,
    /// Tail and head registers, each on a line of its own.
    Register,
}

/// How descriptors of 16 bytes share lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// Up to four on a line, with one signal.
    #[default]
    Grouped,
    /// Four on a line, each with its own signal (E810's format).
    Packed,
    /// One on a line.
    Padded,
}

/// One of the two sides.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum End {
    Host,
    Nic,
}

/// How a producer learns that a unit is free, with inline signals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FreeCheck {
    /// It looks at each unit that it is about to write, and asks for ownership with that look.
    #[default]
    Written,
    /// It reads one unit eight ahead, which vouches for those before it, as the library does.
    Ahead,
}

/// Who manages buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PoolKind {
    /// Both sides: the NIC frees transmit buffers and allocates receive buffers.
    #[default]
    Shared,
    /// The host alone: it posts blank receive buffers, and frees transmit buffers once they are sent.
    Host,
}

/// Which threads have free buffers in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PoolScope {
    /// Those of all queue pairs, as in the library.
    #[default]
    Port,
    /// The host's and the NIC's of one queue pair: each pair has an equal part of the buffers.
    Pair,
}

/// How payload is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stores {
    /// Ordinary stores.
    #[default]
    Cached,
    /// Stores that bypass the caches.
    Nontemporal,
}

/// What the NIC does with a line of payload that it has read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReleaseKind {
    /// It stays where it is.
    #[default]
    None,
    /// `CLFLUSHOPT`: invalid everywhere, written back when dirty.
    Clflushopt,
    /// `CLWB`: written back when dirty, and kept.
    Clwb,
}

/// A set of choices with a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// The interface of a PCIe NIC over coherent memory: register signals, packed descriptors, buffers that the host alone
    /// manages, no recycling, no small buffers, sequential buffers. Keys beside it replace its choices.
    Unoptimised,
}

/// Instructions of the interface, which touch no lines that the two sides share.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Costs {
    /// Allocating a buffer.
    pub alloc: u32,
    /// Freeing a buffer.
    pub free: u32,
    /// The host's, for a packet that it sends, writing it included.
    pub host_tx: u32,
    /// The host's, for a packet that it receives, reading it included.
    pub host_rx: u32,
    /// The NIC's, for a packet that it takes.
    pub nic_tx: u32,
    /// The NIC's, for a packet that it delivers.
    pub nic_rx: u32,
    /// A unit that is written or read: a line of up to four descriptors, or one descriptor.
    pub unit: u32,
    /// A poll that finds nothing, or a burst's first line.
    pub poll: u32,
    /// A bulk operation on the pool.
    pub pool: u32,
}

impl Default for Costs {
    fn default() -> Costs {
        Costs {
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

/// Requests that an agent has under way: assumed.
const AGENT_REQUESTS: u32 = 64;

/// Buffers of a cache, as testpmd has it.
const TESTPMD_CACHE: u32 = 250;

/// The interface between host and NIC over coherent memory (CC-NIC).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CcnicSpec {
    /// What the NIC does with packets.
    pub mode: Mode,
    /// Node of the NIC's cores; the tenant's own is same-socket mode.
    pub nic_node: u32,
    /// What the NIC is made of.
    pub nic: NicKind,
    /// Requests that an agent has under way, at most. Absent: 64, which is assumed.
    pub nic_requests: Option<u32>,
    /// Threads of the NIC; as many as the tenant has cores when absent ("1-1"). In overlay mode each has a queue pair, and the tenant's
    /// cores take turns at theirs. In loopback each of the tenant's cores has a queue pair, and the NIC's threads poll theirs in
    /// turn.
    pub nic_threads: Option<u32>,
    /// How the NIC learns that a transmit descriptor is there.
    pub wake: Wake,
    /// Queue pairs of each of the NIC's threads that nobody uses, beside its own.
    pub idle_queues: u32,
    /// What the NIC reads of a packet that it sends, in forward mode.
    pub nic_reads: NicReads,
    /// How a consumer learns of descriptors.
    pub signal: Signalling,
    /// How descriptors share lines.
    pub layout: Layout,
    /// Home of the transmit rings.
    pub tx_home: End,
    /// Home of the receive rings.
    pub rx_home: End,
    /// Home of the buffers.
    pub buffer_home: End,
    /// Buffers that came back last are used first, from stacks of each thread on both sides.
    pub recycle: bool,
    /// Packets that fit `small_buffer` use small buffers.
    pub small_buffers: bool,
    /// Successive allocations from the pool are never adjacent in memory.
    pub nonsequential: bool,
    /// Who manages buffers.
    pub pool: PoolKind,
    /// Which threads have free buffers in common.
    pub pool_scope: PoolScope,
    /// Lines of a ring of grouped descriptors; rings of other layouts have as many descriptors, four times this.
    pub ring: u32,
    /// Most packets that the host sends at once.
    pub tx_batch: u32,
    /// Most packets that the host takes at once.
    pub rx_batch: u32,
    /// Most packets that the NIC takes at once.
    pub nic_batch: u32,
    /// Lines of the receive ring that the host keeps before it clears them.
    pub lazy_release: u32,
    /// How a producer learns that a unit is free, with inline signals.
    pub free_check: FreeCheck,
    /// Units ahead that a producer asks ownership of, with inline signals; 0: none, as the paper has it. The library's is 2.
    pub own_ahead: u32,
    /// Most lines of grouped descriptors that a consumer asks for, the next one counted, while it finds one ready after the
    /// other; 0: it waits for each line before it asks for another. The library's is 6. Absent: what a core does that predicts
    /// its branches, with descriptors of any layout. It asks for as many polls as fit its reorder buffer beside the
    /// instructions of a unit, and for none behind the burst's last.
    pub read_ahead: Option<u32>,
    /// Whether the hardware prefetchers of the host's cores run, where the platform has any.
    pub host_prefetch: bool,
    /// The same of the NIC's cores.
    pub nic_prefetch: bool,
    /// How payload is written, by both sides.
    pub stores: Stores,
    /// What the NIC does with a line of payload that it has read.
    pub release: ReleaseKind,
    /// A set of choices with a name.
    pub preset: Option<Preset>,
    /// Large buffers, before some of them are split into small ones.
    pub buffers: u32,
    /// Size of a large buffer.
    pub large_buffer: Size,
    /// Size of a small buffer.
    pub small_buffer: Size,
    /// Share of the large buffers that is split.
    pub small_share: f64,
    /// Most buffers of a thread's stack of either size.
    pub stack: u32,
    /// Buffers that come from the pool at once.
    pub bulk: u32,
    /// Size of a thread's cache in front of the pool where nothing is recycled, as `rte_mempool` has it: a call that finds too few
    /// buffers there takes this many more than it needs, and one that would fill it beyond one and a half times this empties
    /// it first. 0: each burst goes to the pool. Absent: 250 (testpmd's) where the host alone manages buffers, which is what
    /// its drivers do, and else 0. Large buffers are then at least a ring each way, a burst and a cache for each queue pair.
    pub cache: Option<u32>,
    /// Instructions.
    pub costs: Costs,
}

impl Default for CcnicSpec {
    /// Every feature on.
    fn default() -> CcnicSpec {
        CcnicSpec {
            mode: Mode::Loopback,
            nic_node: 0,
            nic: NicKind::Software,
            nic_requests: None,
            nic_threads: None,
            wake: Wake::Polling,
            idle_queues: 0,
            nic_reads: NicReads::Payload,
            signal: Signalling::Inline,
            layout: Layout::Grouped,
            tx_home: End::Host,
            rx_home: End::Nic,
            buffer_home: End::Host,
            recycle: true,
            small_buffers: true,
            nonsequential: true,
            pool: PoolKind::Shared,
            pool_scope: PoolScope::Port,
            ring: 256,
            tx_batch: 32,
            rx_batch: 32,
            nic_batch: 32,
            lazy_release: 8,
            free_check: FreeCheck::Written,
            own_ahead: 0,
            read_ahead: None,
            host_prefetch: true,
            nic_prefetch: false,
            stores: Stores::Cached,
            release: ReleaseKind::None,
            preset: None,
            buffers: 2048,
            large_buffer: Size(4096),
            small_buffer: Size(128),
            small_share: 0.25,
            stack: 512,
            bulk: 32,
            cache: None,
            costs: Costs::default(),
        }
    }
}

impl CcnicSpec {
    /// Lines of each region for `queues` queue pairs that are used, in the order of [`Memory`](super::Memory).
    pub fn lines(&self, queues: u64) -> [u64; 6] {
        let ring = |group: bool| self.units(group) / self.per_line(group);
        let [small, large] = self.counts(queues.to_u32());
        let pools = u64::from(self.pools(queues.to_u32())) * self.pool_lines(queues.to_u32());
        let buffers = u64::from(small) * self.small_buffer.0 / LINE + u64::from(large) * self.large_buffer.0 / LINE;
        let rings = queues * u64::from(1 + self.idle_queues);
        let registers = rings * 2;
        [rings * ring(true), rings * ring(self.groups_rx()), registers, registers, pools, buffers]
    }

    /// Pools for `queues` queue pairs.
    pub fn pools(&self, queues: u32) -> u32 {
        match self.pool_scope {
            PoolScope::Port => 1,
            PoolScope::Pair => queues,
        }
    }

    /// Lines of the free rings of one of them.
    pub fn pool_lines(&self, queues: u32) -> u64 {
        self.counts(queues).into_iter().map(|n| FreeRing::lines(n.div_ceil(self.pools(queues)))).sum()
    }

    /// Requests that each of the NIC's agents has under way, at most; None for threads.
    pub fn agent_requests(&self) -> Option<u32> {
        (self.nic == NicKind::Agent).then(|| self.nic_requests.unwrap_or(AGENT_REQUESTS))
    }

    /// Small and large buffers for `queues` queue pairs.
    pub fn counts(&self, queues: u32) -> [u32; 2] {
        let split = if self.small_buffers { (f64::from(self.buffers) * self.small_share).whole().to_u32() } else { 0 };
        let small = split * (self.large_buffer.0 / self.small_buffer.0).to_u32();
        let large = self.buffers - split;
        match self.cache() {
            0 => [small, large],
            // DPDK's l3fwd counts its buffers so.
            cache => [small, large.max(queues * (2 * GROUP as u32 * self.ring + self.tx_batch + cache))],
        }
    }

    /// Size of a thread's cache in front of the pool; 0 when there is none, as where buffers are recycled.
    pub fn cache(&self) -> u32 {
        let of_a_driver = if self.pool == PoolKind::Host { TESTPMD_CACHE } else { 0 };
        if self.recycle {
            0
        } else {
            self.cache.unwrap_or(of_a_driver)
        }
    }

    /// Whether receive rings may have groups: where the host posts blanks it fixes each slot's buffer before the packets come.
    pub fn groups_rx(&self) -> bool {
        self.pool == PoolKind::Shared
    }

    fn group(&self, may: bool) -> usize {
        if self.layout == Layout::Grouped && may {
            GROUP
        } else {
            1
        }
    }

    fn units(&self, may: bool) -> u64 {
        u64::from(self.ring) * GROUP as u64 / self.group(may).to_u64()
    }

    fn per_line(&self, may: bool) -> u64 {
        if self.layout == Layout::Padded || self.group(may) == GROUP {
            1
        } else {
            GROUP as u64
        }
    }

    /// Ring `queue` of a region that begins at line `base`, and whose registers begin at line `registers`; `groups` says
    /// whether it may have groups.
    pub fn shape(&self, base: LineAddr, registers: LineAddr, queue: u64, groups: bool) -> Shape {
        let (units, per_line) = (self.units(groups), self.per_line(groups));
        Shape {
            base: base + queue * (units / per_line),
            units,
            per_line,
            group: self.group(groups),
            register: self.signal == Signalling::Register,
            tail: registers + 2 * queue,
            head: registers + 2 * queue + 1,
            probe: match self.free_check {
                FreeCheck::Written => 1,
                FreeCheck::Ahead => 8,
            },
            own_ahead: self.own_ahead.into(),
            read_ahead: self.read_ahead.unwrap_or(0).into(),
            speculates: false,
        }
    }

    /// # Errors
    /// One clause with key and value, when the values do not fit together for `queues` queue pairs and packets of `bytes`.
    pub fn check(&self, queues: u32, bytes: u64) -> Result<(), String> {
        let within = |key: &str, v: u32, least: u32, most: u32| {
            ((least..=most).contains(&v)).then_some(()).ok_or(format!("{key} = {v} is not within {least} to {most}"))
        };
        within("ring", self.ring, 4, 16_384)?;
        within("tx_batch", self.tx_batch, 1, 256)?;
        within("rx_batch", self.rx_batch, 1, 256)?;
        within("nic_batch", self.nic_batch, 1, 256)?;
        within("lazy_release", self.lazy_release, 1, self.ring)?;
        within("own_ahead", self.own_ahead, 0, 7)?;
        within("read_ahead", self.read_ahead.unwrap_or(0), 0, 64)?;
        within("buffers", self.buffers, 64, 1 << 20)?;
        within("stack", self.stack, 1, 1 << 16)?;
        within("bulk", self.bulk, 1, 256)?;
        within("cache", self.cache.unwrap_or(0), 0, 512)?;
        if self.recycle && self.cache.is_some_and(|n| n > 0) {
            return Err(
                "cache needs recycle = false: buffers that are recycled lie on stacks; give stack for their size"
                    .into(),
            );
        }
        within("idle_queues", self.idle_queues, 0, 4096)?;
        if self.nic == NicKind::Agent && (self.wake != Wake::Event || self.nic_prefetch) {
            return Err(
                "nic = \"agent\" has no poll loop and no prefetchers; give wake = \"event\" and nic_prefetch = false"
                    .into(),
            );
        }
        if self.nic_requests.is_some() && self.nic != NicKind::Agent {
            return Err("nic_requests is for nic = \"agent\": threads have the line fill buffers of their cores".into());
        }
        within("nic_requests", self.nic_requests.unwrap_or(1), 1, 64)?;
        let loopback = self.mode == Mode::Loopback;
        if !loopback && (self.wake == Wake::Event || self.idle_queues > 0) {
            return Err("wake = \"event\" and idle_queues are not built yet for other modes than \"loopback\"".into());
        }
        if self.mode == Mode::Forward && (self.pool == PoolKind::Host || self.release != ReleaseKind::None) {
            return Err(
                "mode = \"forward\" needs pool = \"shared\" and no release: the NIC gives buffers to the host".into()
            );
        }
        if self.mode != Mode::Forward && self.nic_reads == NicReads::Header {
            return Err(
                "nic_reads = \"header\" is for mode = \"forward\": in other modes the NIC copies packets".into()
            );
        }
        if !self.ring.is_power_of_two() {
            return Err(format!("ring = {} is not a power of two", self.ring));
        }
        for (key, size, least, most) in
            [("large_buffer", self.large_buffer, 1024, 32_768), ("small_buffer", self.small_buffer, 64, 1024)]
        {
            if !size.0.is_power_of_two() || !(least..=most).contains(&size.0) {
                return Err(format!("{key} = \"{size}\" is not a power of two within {least} B to {most} B"));
            }
        }
        if !(0.0..=0.9).contains(&self.small_share) {
            return Err(format!("small_share = {} is not within 0 to 0.9", self.small_share));
        }
        if bytes > self.large_buffer.0 {
            return Err(format!(
                "large_buffer = \"{}\" does not hold a packet of {bytes} B, and packets of several buffers are not built yet",
                self.large_buffer
            ));
        }
        if self.pool == PoolKind::Host && self.small_buffers {
            return Err(
                "small_buffers = true needs pool = \"shared\": the host posts blank buffers before it knows sizes; \
                        give small_buffers = false"
                    .into(),
            );
        }
        let batches = u64::from(queues) * u64::from(self.tx_batch.max(self.nic_batch));
        let [small, large] = self.counts(queues).map(u64::from);
        let of = if self.small_buffers && bytes <= self.small_buffer.0 { small.max(large) } else { large };
        if of < 4 * batches {
            return Err(format!(
                "buffers = {} leaves {of} for packets of {bytes} B, fewer than four batches for each of {queues} queue pairs",
                self.buffers
            ));
        }
        Ok(())
    }
}
