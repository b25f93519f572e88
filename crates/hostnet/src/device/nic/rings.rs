//! Descriptor rings in memory: what a scenario says about them, and how far each side has come round one.

use crate::kernel::units::{Size, Span};
use crate::kernel::{Int, LineAddr};
use crate::memory::LINE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes of a frame that the buffer behind a descriptor holds, as drivers post it: the data room of an mbuf (DPDK's default), and
/// of a socket buffer.
pub const DATA_ROOM: u64 = 2048;

/// Descriptor rings in memory, and the NIC's caches of their descriptors.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RingsSpec {
    /// Receive descriptors of each queue; a multiple of 8. One of them is never used, so that a full ring differs from an
    /// empty one.
    pub receive: u32,
    /// Transmit descriptors of each queue, likewise.
    pub transmit: u32,
    /// Size of a descriptor; a power of two up to a line.
    pub descriptor: Size,
    /// Receive descriptors that the NIC caches for each queue, free and used ones together.
    pub receive_cache: u32,
    /// Transmit descriptors that it caches for each queue.
    pub transmit_cache: u32,
    /// It fetches receive descriptors when fewer than this many free ones are cached.
    pub replenish: u32,
    /// When used receive descriptors are written back.
    pub write_back: WriteBack,
    /// They are also written back when the receive buffer runs empty.
    pub write_back_idle: bool,
    /// Sent descriptors from which on they are written back; the last of what was posted always are.
    pub transmit_write_back: u32,
    /// From the decision to fetch descriptors to the request, and what their use takes beyond their arrival.
    pub fetch_delay: Span,
    /// From the decision to write descriptors back to the write.
    pub write_back_delay: Span,
    /// From a write-back's end to the next one of its ring, and to the use of its places in the cache. Software sees the
    /// descriptors before that.
    pub write_back_completion: Span,
    /// Packets whose receive DMA is in flight at most.
    pub receive_packets: u32,
    /// From a packet's last line in memory to the DMA of the packet that takes its place among them.
    pub receive_turnaround: Span,
    /// Frames whose payload is being read at most.
    pub transmit_packets: u32,
    /// From a frame's last line in the NIC to the read of the frame that takes its place among them.
    pub transmit_turnaround: Span,
    /// Read requests of one transmit queue under way, from which on it begins no frame: one for each frame's descriptor, and
    /// its data in pieces of `pcie.max_read_request`. Absent: a queue has no limit of its own.
    pub queue_requests: Option<u32>,
    /// From a frame's last line in the NIC to the return of its requests to its queue's.
    pub queue_turnaround: Span,
    /// One DMA engine for both ways: the lines of a packet, or of descriptors, all set out before those of another. When
    /// false, reads and writes take turns on the link.
    pub one_engine: bool,
    /// Frames lie in memory without their check sequence, which the NIC takes off and puts on. When false, a frame is data
    /// all through, as in a simulator whose frames have no check sequence.
    pub strip_fcs: bool,
    /// Bytes of frames between the transmit DMA and the wire.
    pub transmit_buffer: Size,
    /// How the kernel's driver throttles a queue's interrupts.
    pub throttle: Throttle,
}

/// Interrupt throttling: the least time from one interrupt to the next, which Linux's e1000 sets after each poll by what that has
/// found (its parameter InterruptThrottleRate).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Throttle {
    /// Not at all: `moderation` alone decides.
    #[default]
    Off,
    /// 4,000 to 70,000 interrupts a second (1).
    Dynamic,
    /// 4,000 to 20,000 (3, the driver's default).
    DynamicConservative,
}

impl Default for RingsSpec {
    fn default() -> RingsSpec {
        RingsSpec {
            receive: 1024,
            transmit: 1024,
            descriptor: Size(16),
            receive_cache: 64,
            transmit_cache: 64,
            replenish: 32,
            write_back: WriteBack::default(),
            write_back_idle: true,
            transmit_write_back: 32,
            fetch_delay: Span(0),
            write_back_delay: Span(0),
            write_back_completion: Span(0),
            receive_packets: 256,
            receive_turnaround: Span(0),
            transmit_packets: 256,
            transmit_turnaround: Span(0),
            queue_requests: None,
            queue_turnaround: Span(0),
            one_engine: false,
            strip_fcs: true,
            transmit_buffer: Size(128 << 10),
            throttle: Throttle::Off,
        }
    }
}

/// When used receive descriptors are written back: "all_used", or a table with `after`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "WriteBackText", into = "WriteBackText")]
#[schemars(with = "WriteBackText")]
pub enum WriteBack {
    /// Only when every cached descriptor is used.
    AllUsed,
    /// From so many used descriptors on.
    After(u32),
}

/// As it is written.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum WriteBackText {
    Word(String),
    Table(WriteBackTable),
    /// Neither, which is refused with a sentence.
    #[schemars(skip)]
    Other(serde_json::Value),
}

/// A threshold.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteBackTable {
    /// Used descriptors from which on they are written back.
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
    /// # Errors
    /// One clause with key and value.
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
        let after = match self.write_back {
            WriteBack::After(n) => ("write_back.after", n, self.receive_cache),
            WriteBack::AllUsed => ("write_back", 1, 1),
        };
        let counts = [
            ("receive_cache", self.receive_cache, self.receive),
            ("transmit_cache", self.transmit_cache, self.transmit),
            ("replenish", self.replenish, self.receive_cache),
            after,
            ("transmit_write_back", self.transmit_write_back, self.transmit_cache),
            ("receive_packets", self.receive_packets, 256),
            ("transmit_packets", self.transmit_packets, 256),
            ("queue_requests", self.queue_requests.unwrap_or(1), 1024),
        ];
        if let Some((key, n, most)) = counts.iter().find(|(_, n, most)| *n == 0 || n > most) {
            return Err(format!("{key} = {n} is not within 1 to {most}"));
        }
        if !(16 << 10..=1 << 30).contains(&self.transmit_buffer.0) {
            return Err(format!("transmit_buffer = \"{}\" is not within 16 KiB to 1 GiB", self.transmit_buffer));
        }
        Ok(())
    }
}

/// First lines of a queue's two rings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RingMemory {
    pub receive: LineAddr,
    pub transmit: LineAddr,
}

/// Where a ring's descriptors lie. They are counted on from the first one ever used, round after round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    base: LineAddr,
    slots: u64,
    /// Descriptors of a line, a power of two.
    pub per_line: u64,
}

impl Layout {
    pub fn new(base: LineAddr, slots: u32, descriptor: Size) -> Layout {
        Layout { base, slots: slots.into(), per_line: LINE / descriptor.0 }
    }

    /// Lines that a ring of `slots` descriptors takes.
    pub fn lines(slots: u32, descriptor: Size) -> u64 {
        (u64::from(slots) * descriptor.0).div_ceil(LINE)
    }

    /// Descriptors that software may hand to the NIC at once.
    pub fn usable(&self) -> u64 {
        self.slots - 1
    }

    /// Where in the ring descriptor `i` lies. Most rings have a power of two of them, which needs no division.
    #[inline]
    fn slot(&self, i: u64) -> u64 {
        if self.slots.is_power_of_two() {
            i & (self.slots - 1)
        } else {
            i % self.slots
        }
    }

    /// The line of descriptor `i`.
    #[inline]
    pub fn line(&self, i: u64) -> LineAddr {
        self.base + (self.slot(i) >> self.per_line.trailing_zeros())
    }

    /// Whether descriptor `i` is the first of its line.
    #[inline]
    pub fn begins_line(&self, i: u64) -> bool {
        i & (self.per_line - 1) == 0
    }

    /// How many descriptors follow each other in memory from `i` on.
    #[inline]
    pub fn together(&self, i: u64) -> u64 {
        self.slots - self.slot(i)
    }

    /// First line, lines and bytes of `n` descriptors from `i` on, which follow each other in memory.
    #[inline]
    pub fn span(&self, i: u64, n: u64) -> (LineAddr, u32, u32) {
        debug_assert!(n > 0 && n <= self.together(i));
        let (first, last) = (self.line(i), self.line(i + n - 1));
        (first, (last - first + 1).to_u32(), (n * (LINE >> self.per_line.trailing_zeros())).to_u32())
    }
}

/// How far software and the NIC have come round one ring, in descriptors since the beginning:
/// `recycled <= seen <= written <= filled <= used <= fetched <= asked <= posted`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ring {
    pub layout: Layout,
    pub cache: u64,
    /// Software has handed them to the NIC, as its doorbells say.
    pub posted: u64,
    /// Their fetch has been asked for; and they are in the NIC's cache.
    pub asked: u64,
    pub fetched: u64,
    /// They have packets; and all of those packets has been moved.
    pub used: u64,
    pub filled: u64,
    /// Their write-back has begun; and it is where software sees it.
    pub written: u64,
    pub seen: u64,
    /// Their places in the cache are free.
    pub recycled: u64,
    /// A fetch, or a write-back, is decided on or under way.
    pub fetching: bool,
    pub writing: bool,
}

impl Ring {
    pub fn new(layout: Layout, cache: u32) -> Ring {
        Ring {
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

    /// Descriptors that one fetch can bring: those that are posted, follow each other and find room in the cache.
    #[inline]
    pub fn fetchable(&self) -> u64 {
        let room = self.cache - (self.asked - self.recycled);
        (self.posted - self.asked).min(room).min(self.layout.together(self.asked))
    }

    /// Whether there are any.
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

    /// A descriptor goes all the way round, and whatever is under way with it.
    pub fn step_at_once(&mut self) {
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

    /// # Errors
    /// When the counts are out of order.
    pub fn check(&self) -> Result<(), String> {
        let Ring { recycled, seen, written, filled, used, fetched, asked, posted, .. } = *self;
        let order = [recycled, seen, written, filled, used, fetched, asked, posted];
        if order.windows(2).any(|w| w[0] > w[1]) || asked - recycled > self.cache {
            return Err(format!("a descriptor ring is out of order: {self:?}"));
        }
        Ok(())
    }
}
