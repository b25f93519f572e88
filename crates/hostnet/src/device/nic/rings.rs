//! Descriptor rings in memory: their parameters in a scenario, and the positions of software and NIC in a ring.

use super::fitted::FittedPackets;
use crate::kernel::units::{Size, Span};
use crate::kernel::{Int, LineAddr};
use crate::memory::LINE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes of a frame that fit into the buffer of one descriptor by default: the data room of an mbuf (DPDK's default), and
/// of a socket buffer.
pub const DATA_ROOM: u64 = 2048;

/// Sizes that the buffer of one descriptor may have: the largest is that of Intel's NICs (82599 datasheet, SRRCTL.BSIZEPACKET).
pub const BUFFERS: (u64, u64) = (1 << 10, 16 << 10);
/// Largest number of packets whose DMA may be in flight.
pub(super) const MOST_IN_FLIGHT: u32 = 4096;
/// Divisor of the size of a buffer. An mbuf of such a size takes an odd number of lines, which spreads mbufs over channels.
const BUFFER_UNIT: u64 = 2 * LINE;

/// Descriptor rings in memory, and the NIC's caches of their descriptors.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RingsSpec {
    /// Receive descriptors of each queue: a multiple of 8. One of them is never used, so that a full ring differs from
    /// an empty one. The default is 1024.
    pub receive: u32,
    /// Transmit descriptors of each queue: a multiple of 8. One of them is never used, so that a full ring differs from
    /// an empty one. The default is 1024.
    pub transmit: u32,
    /// Size of a descriptor: a power of two up to a cache line. The default is 16 B.
    pub descriptor: Size,
    /// Size of the buffer of one descriptor, into which a whole frame must fit: the data room of an mbuf under a
    /// poll-mode driver, and of a socket buffer under the kernel. A multiple of 128 B within 1 KiB to 16 KiB. The default
    /// is 2 KiB.
    pub buffer_size: Size,
    /// Rule by which the NIC writes used receive descriptors back: "all_used", or a table with `after`.
    pub write_back: WriteBack,
    /// Maximum number of packets whose receive DMA is in flight, up to 4096. The default is 256.
    pub receive_packets: u32,
    /// Habits of the NIC and its driver, which a platform sets; scenarios leave them alone.
    pub quirks: RingsQuirks,
}

/// Habits of NICs with descriptor rings in memory that devices and simulators differ in.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RingsQuirks {
    /// Receive descriptors of each queue that the NIC caches, free and used ones together. The default is 64.
    pub receive_cache: u32,
    /// Transmit descriptors of each queue that the NIC caches, free and used ones together. The default is 64.
    pub transmit_cache: u32,
    /// Number of free cached receive descriptors below which the NIC fetches more. The default is 32. It changes nothing at rates at
    /// which the NIC has fetched descriptors long before packets come.
    pub replenish: u32,
    /// Whether the NIC also writes used receive descriptors back when its receive buffer runs empty, which changes nothing
    /// with `write_back.after = 1`. The default is true.
    pub write_back_idle: bool,
    /// Number of sent transmit descriptors at or above which the NIC writes these descriptors back. The NIC always
    /// writes back the last posted descriptor. The default is 32.
    pub transmit_write_back: u32,
    /// Time from the decision to fetch descriptors to the read request. The time also covers what the NIC spends on
    /// descriptors after they have arrived. The default is 0.
    pub fetch_delay: Span,
    /// Time from the decision to write descriptors back to the write. The default is 0.
    pub write_back_delay: Span,
    /// Time from the end of a write-back until the ring's next write-back may begin and the places of the written
    /// descriptors in the cache are free. Software sees the descriptors earlier, at the end of the write-back. The
    /// default is 0.
    pub write_back_completion: Span,
    /// Time from a packet's last line in memory to the start of the DMA of the next packet, when `receive_packets`
    /// packets were in flight. The default is 0.
    pub receive_turnaround: Span,
    /// Maximum number of frames whose payload is being read from memory, up to 4096. The default is 256.
    pub transmit_packets: u32,
    /// Time from the arrival of a frame's last line in the NIC to the start of the read of the next frame, when
    /// `transmit_packets` frames were in flight. The default is 0.
    pub transmit_turnaround: Span,
    /// Number of outstanding read requests of one transmit queue at which the queue begins no further frame. Each frame
    /// takes one request for its descriptor, and one for every `pcie.max_read_request` bytes of its data. When absent,
    /// a queue has no limit of its own.
    pub queue_requests: Option<u32>,
    /// Time from the arrival of a frame's last line in the NIC until its requests no longer count towards
    /// `queue_requests`. The default is 0.
    pub queue_turnaround: Span,
    /// Whether one DMA engine serves both directions, and issues all lines of a packet, or of a group of descriptors,
    /// before those of another. When false (the default), reads and writes take turns on the link.
    pub one_engine: bool,
    /// Whether frames lie in memory without their check sequence, which the NIC removes on reception and adds on
    /// transmission. When false, every byte of a frame lies in memory, as in a simulator whose frames have no check
    /// sequence. The default is true.
    pub strip_fcs: bool,
    /// Size of the buffer for frames between the transmit DMA and the wire, which fills where the wire is slower. The default
    /// is 128 KiB.
    pub transmit_buffer: Size,
    /// Interrupt throttling of each queue by the kernel's driver. A poll-mode driver takes no interrupts, and the platform's value
    /// changes nothing there.
    pub throttle: Throttle,
    /// Origin of `receive_packets` where it was fitted to one NIC; a NIC with faster links that keeps the value is warned of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fitted: Option<FittedPackets>,
}

/// Interrupt throttling: the minimum time between two interrupts, which Linux's e1000 sets after each poll by the
/// number of packets and bytes that the poll found (the driver's parameter InterruptThrottleRate).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Throttle {
    /// No throttling: only `moderation` and `moderation_frames` decide.
    #[default]
    Off,
    /// 4,000 to 70,000 interrupts per second (InterruptThrottleRate = 1).
    Dynamic,
    /// 4,000 to 20,000 interrupts per second (InterruptThrottleRate = 3, the driver's default).
    DynamicConservative,
}

impl Default for RingsSpec {
    fn default() -> RingsSpec {
        RingsSpec {
            receive: 1024,
            transmit: 1024,
            descriptor: Size(16),
            buffer_size: Size(DATA_ROOM),
            write_back: WriteBack::default(),
            receive_packets: 256,
            quirks: RingsQuirks::default(),
        }
    }
}

impl Default for RingsQuirks {
    fn default() -> RingsQuirks {
        RingsQuirks {
            receive_cache: 64,
            transmit_cache: 64,
            replenish: 32,
            write_back_idle: true,
            transmit_write_back: 32,
            fetch_delay: Span(0),
            write_back_delay: Span(0),
            write_back_completion: Span(0),
            receive_turnaround: Span(0),
            transmit_packets: 256,
            transmit_turnaround: Span(0),
            queue_requests: None,
            queue_turnaround: Span(0),
            one_engine: false,
            strip_fcs: true,
            transmit_buffer: Size(128 << 10),
            throttle: Throttle::Off,
            fitted: None,
        }
    }
}

/// Rule for writing used receive descriptors back: "all_used", or a table with `after`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "WriteBackText", into = "WriteBackText")]
#[schemars(with = "WriteBackText")]
pub enum WriteBack {
    /// The NIC writes descriptors back only when every cached descriptor is used.
    AllUsed,
    /// The NIC writes descriptors back from this number of used descriptors on.
    After(u32),
}

/// The rule for write-backs as a scenario states it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum WriteBackText {
    Word(String),
    Table(WriteBackTable),
    /// Any other value, which is rejected with a sentence.
    #[schemars(skip)]
    Other(serde_json::Value),
}

/// Threshold of used receive descriptors at which the NIC writes the descriptors back.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteBackTable {
    /// Number of used receive descriptors at or above which the NIC writes the descriptors back.
    pub after: u32,
}

impl TryFrom<WriteBackText> for WriteBack {
    type Error = String;
    fn try_from(t: WriteBackText) -> Result<WriteBack, String> {
        let wrong = |what: String| {
            Err(format!("write_back = {what} is neither \"all_used\" nor a table such as {{ after = 1 }}"))
        };
        match t {
            WriteBackText::Word(w) if w == "all_used" => Ok(WriteBack::AllUsed),
            WriteBackText::Word(w) => wrong(format!("\"{w}\"")),
            WriteBackText::Table(t) => Ok(WriteBack::After(t.after)),
            WriteBackText::Other(v) => wrong(v.to_string()),
        }
    }
}

impl From<WriteBack> for WriteBackText {
    fn from(w: WriteBack) -> WriteBackText {
        match w {
            WriteBack::AllUsed => WriteBackText::Word("all_used".into()),
            WriteBack::After(after) => WriteBackText::Table(WriteBackTable { after }),
        }
    }
}

impl Default for WriteBack {
    fn default() -> WriteBack {
        WriteBack::After(1)
    }
}

impl RingsSpec {
    /// Checks that the rings' parameters fit together.
    ///
    /// # Errors
    /// Returns one clause that names key and value.
    pub fn check(&self) -> Result<(), String> {
        for (key, n) in [("receive", self.receive), ("transmit", self.transmit)] {
            if !(64..=1 << 16).contains(&n) || n % 8 != 0 {
                return Err(format!("{key} = {n} is not a multiple of 8 within 64 to 65536"));
            }
        }
        let d = self.descriptor;
        if !d.0.is_power_of_two() || !(8..=LINE).contains(&d.0) {
            return Err(format!("descriptor = \"{d}\" is not a power of two within 8 to 64 B"));
        }
        let b = self.buffer_size;
        if !(BUFFERS.0..=BUFFERS.1).contains(&b.0) || b.0 % BUFFER_UNIT != 0 {
            return Err(format!("buffer_size = \"{b}\" is not a multiple of 128 B within 1 KiB to 16 KiB"));
        }
        let after = match self.write_back {
            WriteBack::After(n) => ("write_back.after", n, self.quirks.receive_cache, "quirks.receive_cache = "),
            WriteBack::AllUsed => ("write_back", 1, 1, ""),
        };
        let counts = [
            ("quirks.receive_cache", self.quirks.receive_cache, self.receive, "receive = "),
            ("quirks.transmit_cache", self.quirks.transmit_cache, self.transmit, "transmit = "),
            ("quirks.replenish", self.quirks.replenish, self.quirks.receive_cache, "quirks.receive_cache = "),
            after,
            (
                "quirks.transmit_write_back",
                self.quirks.transmit_write_back,
                self.quirks.transmit_cache,
                "quirks.transmit_cache = ",
            ),
            ("receive_packets", self.receive_packets, MOST_IN_FLIGHT, ""),
            ("quirks.transmit_packets", self.quirks.transmit_packets, MOST_IN_FLIGHT, ""),
            ("quirks.queue_requests", self.quirks.queue_requests.unwrap_or(1), 1024, ""),
        ];
        if let Some((key, n, most, of)) = counts.iter().find(|(_, n, most, _)| *n == 0 || n > most) {
            return Err(format!("{key} = {n} is not within 1 to {of}{most}"));
        }
        if self.quirks.queue_requests.is_none() && self.quirks.queue_turnaround.0 > 0 {
            return Err(format!(
                "quirks.queue_turnaround = \"{}\" needs queue_requests, whose requests it delays",
                self.quirks.queue_turnaround
            ));
        }
        if let Some(fitted) = &self.quirks.fitted {
            fitted.check().map_err(|why| format!("quirks.fitted.{why}"))?;
        }
        if !(16 << 10..=1 << 30).contains(&self.quirks.transmit_buffer.0) {
            return Err(format!(
                "quirks.transmit_buffer = \"{}\" is not within 16 KiB to 1 GiB",
                self.quirks.transmit_buffer
            ));
        }
        Ok(())
    }
}

/// First lines of a queue's receive ring and transmit ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RingMemory {
    /// First line of the receive ring.
    pub receive: LineAddr,
    /// First line of the transmit ring.
    pub transmit: LineAddr,
}

/// Memory layout of a ring's descriptors, which are numbered from the first one ever used, round after round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RingLayout {
    base: LineAddr,
    slots: u64,
    /// Descriptors per line, a power of two.
    pub per_line: u64,
}

impl RingLayout {
    /// The layout of a ring of `slots` descriptors from line `base` on; `descriptor` is the size of a descriptor.
    pub fn new(base: LineAddr, slots: u32, descriptor: Size) -> RingLayout {
        RingLayout { base, slots: slots.into(), per_line: LINE / descriptor.0 }
    }

    /// Lines that a ring of `slots` descriptors occupies.
    pub fn lines(slots: u32, descriptor: Size) -> u64 {
        (u64::from(slots) * descriptor.0).div_ceil(LINE)
    }

    /// Descriptors of which software may give the NIC all at the same time: one less than the ring's slots.
    pub fn usable(&self) -> u64 {
        self.slots - 1
    }

    /// Slot of descriptor `i` in the ring. Most rings have a power of two of slots, which needs no division.
    #[inline]
    fn slot(&self, i: u64) -> u64 {
        if self.slots.is_power_of_two() {
            i & (self.slots - 1)
        } else {
            i % self.slots
        }
    }

    /// Line of descriptor `i`.
    #[inline]
    pub fn line(&self, i: u64) -> LineAddr {
        self.base + (self.slot(i) >> self.per_line.trailing_zeros())
    }

    /// Whether descriptor `i` is the first of its line.
    #[inline]
    pub fn begins_line(&self, i: u64) -> bool {
        i & (self.per_line - 1) == 0
    }

    /// Number of descriptors that are contiguous in memory from `i` on.
    #[inline]
    pub fn together(&self, i: u64) -> u64 {
        self.slots - self.slot(i)
    }

    /// First line, number of lines and bytes of `n` descriptors from `i` on, which are contiguous in memory.
    #[inline]
    pub fn span(&self, i: u64, n: u64) -> (LineAddr, u32, u32) {
        debug_assert!(n > 0 && n <= self.together(i));
        let (first, last) = (self.line(i), self.line(i + n - 1));
        (first, (last - first + 1).to_u32(), (n * (LINE >> self.per_line.trailing_zeros())).to_u32())
    }
}

/// Positions of software and the NIC in one ring, in descriptors since the beginning:
/// `recycled <= seen <= written <= filled <= used <= fetched <= asked <= posted`.
#[derive(Clone, Copy, Debug)]
pub(super) struct DescriptorRing {
    pub layout: RingLayout,
    pub cache: u64,
    /// Descriptors that software has given to the NIC with doorbells.
    pub posted: u64,
    /// Descriptors whose fetch has been requested; `fetched` descriptors are in the NIC's cache.
    pub asked: u64,
    pub fetched: u64,
    /// Descriptors that have been assigned to packets; for `filled` descriptors, the packet's data has been moved
    /// completely.
    pub used: u64,
    pub filled: u64,
    /// Descriptors whose write-back has begun; `seen` descriptors are visible to software.
    pub written: u64,
    pub seen: u64,
    /// Descriptors whose places in the cache are free again.
    pub recycled: u64,
    /// Whether a fetch is planned or in flight; `writing` says the same of a write-back.
    pub fetching: bool,
    pub writing: bool,
}

impl DescriptorRing {
    pub fn new(layout: RingLayout, cache: u32) -> DescriptorRing {
        DescriptorRing {
            layout,
            cache: cache.into(),
            posted: 0,
            asked: 0,
            fetched: 0,
            used: 0,
            filled: 0,
            written: 0,
            seen: 0,
            recycled: 0,
            fetching: false,
            writing: false,
        }
    }

    /// Number of descriptors that one fetch can bring, which are posted, contiguous in memory, and fit into the cache.
    #[inline]
    pub fn fetchable(&self) -> u64 {
        let room = self.cache - (self.asked - self.recycled);
        (self.posted - self.asked).min(room).min(self.layout.together(self.asked))
    }

    /// Whether any descriptor can be fetched.
    #[inline]
    pub fn can_fetch(&self) -> bool {
        self.posted > self.asked && self.cache > self.asked - self.recycled
    }

    /// Free descriptors in the cache.
    #[inline]
    pub fn cached(&self) -> u64 {
        self.fetched - self.used
    }

    /// Used descriptors that one write-back can take.
    #[inline]
    pub fn writable(&self) -> u64 {
        (self.filled - self.written).min(self.layout.together(self.written))
    }

    /// Moves one descriptor through all stages of the ring in functional mode, and advances the positions of transfers
    /// in flight accordingly.
    pub fn step_functional(&mut self) {
        for n in [
            &mut self.posted,
            &mut self.asked,
            &mut self.fetched,
            &mut self.used,
            &mut self.filled,
            &mut self.written,
            &mut self.seen,
            &mut self.recycled,
        ] {
            *n += 1;
        }
    }

    /// Checks the order of the ring's counts.
    ///
    /// # Errors
    /// Returns one sentence when the counts are out of order.
    pub fn check(&self) -> Result<(), String> {
        let DescriptorRing { recycled, seen, written, filled, used, fetched, asked, posted, .. } = *self;
        let order = [recycled, seen, written, filled, used, fetched, asked, posted];
        if order.windows(2).any(|w| w[0] > w[1]) || asked - recycled > self.cache {
            return Err(format!("a descriptor ring is out of order: {self:?}"));
        }
        Ok(())
    }
}
