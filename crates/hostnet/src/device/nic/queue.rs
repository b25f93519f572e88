//! A queue: its descriptors and receive buffers, the packets that wait for software, its transmit buffers.

use super::moderation::Moderation;
use crate::flow::Credits;
use crate::kernel::{Int, LineAddr, PacketId, Time};
use crate::memory::region::Pages;
use crate::memory::Tag;
use std::collections::VecDeque;

/// Memory that a kernel's frames go through.
#[derive(Clone)]
pub struct FrameMemory {
    pub pages: Pages,
    /// First line of the pages, of the completions, and of the kernel's structures, one line a page.
    pub frames: LineAddr,
    pub completions: LineAddr,
    pub structures: LineAddr,
}

/// Which buffer the next descriptor names.
#[derive(Clone)]
enum Supply {
    /// A ring of buffers of its own: one that software has given back goes to its end.
    Ring { posted: VecDeque<u32>, back: VecDeque<u32> },
    /// The kernel's pages, one buffer after the other; they are used again after the last.
    Cycle { next: u32, of: u32 },
}

/// Where the buffers lie.
#[derive(Clone)]
enum Place {
    /// One after the other.
    Base(LineAddr),
    /// On pages that lie anywhere.
    Pages { memory: FrameMemory, page_lines: u64 },
}

/// Receive buffers and the descriptors that name them.
#[derive(Clone)]
pub(super) struct Receive {
    supply: Supply,
    place: Place,
    /// Lines of a buffer.
    stride: u64,
    /// Descriptors: taken by packets, returned by software.
    pub descriptors: Credits,
    completions: Option<Completions>,
}

/// What a completion in a queue tells software.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Completion {
    /// The packet has been received.
    Received(PacketId),
    /// A packet has been sent.
    Sent,
}

/// A completion queue in memory, an entry a line.
#[derive(Clone)]
struct Completions {
    base: LineAddr,
    next: u64,
    of: u64,
}

/// Completion queue entries of a core, one a line.
pub const COMPLETIONS: u64 = 4096;

impl Receive {
    /// `slots` buffers of `lines` lines each from `base` on, all of them the NIC's.
    pub fn ring(base: LineAddr, slots: u32, lines: u64) -> Receive {
        Receive {
            supply: Supply::Ring { posted: (0..slots).collect(), back: VecDeque::with_capacity(slots.to_usize()) },
            place: Place::Base(base),
            stride: lines,
            descriptors: Credits::new(slots),
            completions: None,
        }
    }

    /// Frames of `lines` lines, one after the other through `pool` lines of pages.
    pub fn pages(memory: FrameMemory, pool: u64, page_lines: u64, lines: u64, descriptors: u32) -> Receive {
        let completions = memory.completions;
        let mut r = Receive {
            supply: Supply::Cycle { next: 0, of: (pool / lines).to_u32() },
            place: Place::Pages { memory, page_lines },
            stride: lines,
            descriptors: Credits::new(descriptors),
            completions: None,
        };
        r.complete_to(completions, COMPLETIONS);
        r
    }

    pub fn complete_to(&mut self, base: LineAddr, of: u64) {
        self.completions = Some(Completions { base, next: 0, of });
    }

    /// A descriptor and its buffer for a packet.
    pub fn take(&mut self, now: Time) -> Option<u32> {
        self.descriptors.take(1, now).ok()?;
        Some(match &mut self.supply {
            Supply::Ring { posted, .. } => posted.pop_front().expect("a descriptor names a buffer"),
            Supply::Cycle { next, of } => {
                let buffer = *next;
                *next = (buffer + 1) % *of;
                buffer
            }
        })
    }

    /// The line of the next completion, where completions go to memory.
    pub fn completion(&mut self) -> Option<LineAddr> {
        let c = self.completions.as_mut()?;
        let line = c.base + c.next;
        c.next = (c.next + 1) % c.of;
        Some(line)
    }

    /// Software is done with `buffer`.
    pub fn release(&mut self, buffer: u32) {
        if let Supply::Ring { back, .. } = &mut self.supply {
            back.push_back(buffer);
        }
    }

    /// Software hands `n` descriptors to the NIC, as far as it has buffers for them; returns how many.
    pub fn replenish(&mut self, n: u32, now: Time) -> u32 {
        let n = match &mut self.supply {
            Supply::Ring { posted, back } => {
                let n = n.min(back.len().to_u32());
                posted.extend(back.drain(..n.to_usize()));
                n
            }
            Supply::Cycle { .. } => n,
        };
        self.descriptors.give(n, now);
        n
    }

    /// The next buffer of an idle ring, which goes to its end; None while packets are in all of them.
    pub fn cycle(&mut self) -> Option<LineAddr> {
        let Supply::Ring { posted, .. } = &mut self.supply else { unreachable!("pages are warmed by the kernel") };
        let buffer = posted.pop_front()?;
        posted.push_back(buffer);
        Some(self.line(buffer, 0))
    }

    /// Begins at slot `n`, as an uptime would leave it.
    pub fn start_at(&mut self, n: u64) {
        if let Supply::Ring { posted, .. } = &mut self.supply {
            posted.rotate_left(n.to_usize());
        }
    }

    /// Offset of a buffer in its queue's memory, in lines.
    pub fn offset(&self, buffer: u32) -> u64 {
        u64::from(buffer) * self.stride
    }

    /// Line `i` of `buffer`.
    #[inline]
    pub fn line(&mut self, buffer: u32, i: u64) -> LineAddr {
        let at = u64::from(buffer) * self.stride + i;
        match &mut self.place {
            Place::Base(base) => *base + at,
            Place::Pages { memory, .. } => memory.pages.line(at),
        }
    }

    /// How many of `n` lines from line `i` of `buffer` on follow each other.
    #[inline]
    pub fn together(&self, buffer: u32, i: u64, n: u32) -> u32 {
        match &self.place {
            Place::Base(_) => n,
            Place::Pages { page_lines, .. } => n.min((page_lines - (self.offset(buffer) + i) % page_lines).to_u32()),
        }
    }

    /// The memory of the kernel's frames, and lines of a page.
    pub fn kernel(&mut self) -> (&mut FrameMemory, u64) {
        match &mut self.place {
            Place::Pages { memory, page_lines } => (memory, *page_lines),
            Place::Base(_) => unreachable!("only the kernel's frames have pages"),
        }
    }

    /// Lines of the kernel's structures.
    pub fn structures(&self) -> std::ops::Range<LineAddr> {
        let (Place::Pages { memory, page_lines }, Supply::Cycle { of, .. }) = (&self.place, &self.supply) else {
            unreachable!("only the kernel's frames have pages")
        };
        let lines = u64::from(*of) * self.stride;
        memory.structures..memory.structures + lines.div_ceil(*page_lines)
    }

    /// # Errors
    /// When descriptors and buffers do not agree.
    pub fn check(&self) -> Result<(), String> {
        if let Supply::Ring { posted, .. } = &self.supply {
            if posted.len().to_u32() != self.descriptors.free() {
                return Err(format!("{} descriptors name {} buffers", self.descriptors.free(), posted.len()));
            }
        }
        Ok(())
    }
}

/// Transmit buffers, used in turn.
#[derive(Clone)]
pub(super) struct Transmit {
    base: LineAddr,
    lines: u64,
    next: u32,
    pub buffers: Credits,
}

impl Transmit {
    pub fn new(base: LineAddr, slots: u32, lines: u64) -> Transmit {
        Transmit { base, lines, next: 0, buffers: Credits::new(slots) }
    }
    pub fn start_at(&mut self, n: u64) {
        self.next = n.to_u32();
    }
    /// First line of the next buffer.
    pub fn line(&self) -> LineAddr {
        self.base + u64::from(self.next) * self.lines
    }
    pub fn step(&mut self) {
        self.next = (self.next + 1) % self.buffers.credits();
    }
}

/// One queue.
#[derive(Clone, Default)]
pub(super) struct Queue {
    pub receive: Option<Receive>,
    pub transmit: Option<Transmit>,
    /// Completions that software can see and has not taken.
    pub waiting: VecDeque<Completion>,
    /// Packets that wait in the NIC for a buffer.
    pub buffered: u32,
    /// Packets that have a buffer and cannot be seen yet, in their order.
    pub arriving: VecDeque<PacketId>,
    /// Transmit buffers whose sweep is left to the core (line, lines, sent).
    pub hints: VecDeque<(LineAddr, u16, Time)>,
    /// Packets that were sent from their receive buffers, which software has not taken back.
    pub reclaims: VecDeque<PacketId>,
    /// The ring has run full and has not been half empty since.
    pub full: bool,
    /// Steering tag of its packets.
    pub tag: Tag,
    /// Of its interrupts, behind a port.
    pub moderation: Moderation,
}

impl Queue {
    #[inline]
    pub fn receive(&mut self) -> &mut Receive {
        self.receive.as_mut().expect("the queue has receive buffers")
    }
    #[inline]
    pub fn transmit(&mut self) -> &mut Transmit {
        self.transmit.as_mut().expect("the queue has transmit buffers")
    }
}
