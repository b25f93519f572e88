//! One queue of a NIC: its descriptors and receive buffers, the packets that wait for software, and its transmit
//! buffers.

use super::moderation::Moderation;
use crate::flow::Credits;
use crate::kernel::{Int, LineAddr, PacketId, Time};
use crate::memory::region::Pages;
use std::collections::VecDeque;

/// Memory that holds a kernel's received frames.
#[derive(Clone)]
pub struct FrameMemory {
    /// Pages in which the frames lie.
    pub pages: Pages,
    /// First line of the pages.
    pub frames: LineAddr,
    /// First line of the completions.
    pub completions: LineAddr,
    /// First line of the kernel's page structures, one line per page.
    pub structures: LineAddr,
}

/// Supply of receive buffers, which chooses the buffer that the next descriptor names.
#[derive(Clone)]
enum Supply {
    /// Ring of the queue's own buffers: a buffer that software has returned goes to the end.
    Ring { posted: VecDeque<u32>, back: VecDeque<u32> },
    /// The kernel's pages, cut into buffers that are used one after the other and again after the last.
    Cycle { next: u32, of: u32 },
}

/// Location of the receive buffers in memory.
#[derive(Clone)]
enum BufferPlace {
    /// Contiguous buffers from this line on.
    Base(LineAddr),
    /// Buffers on physical pages that lie anywhere.
    Pages { memory: FrameMemory, page_lines: u64 },
}

/// Receive buffers of a queue and the descriptors that name them.
#[derive(Clone)]
pub(super) struct ReceiveBuffers {
    supply: Supply,
    place: BufferPlace,
    /// Lines of a buffer.
    stride: u64,
    /// Descriptors: taken by packets, returned by software.
    pub descriptors: Credits,
    completions: Option<Completions>,
}

/// Message of a completion in a queue to software.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Completion {
    /// The packet has been received.
    Received(PacketId),
    /// A packet has been sent.
    Sent,
}

/// Completion queue in memory, one line per entry.
#[derive(Clone)]
struct Completions {
    base: LineAddr,
    next: u64,
    of: u64,
}

/// Entries of a core's completion queue, one line each.
pub const COMPLETIONS: u64 = 4096;

impl ReceiveBuffers {
    /// A ring of `slots` buffers of `lines` lines each from line `base` on, all of which the NIC may fill.
    pub fn ring(base: LineAddr, slots: u32, lines: u64) -> ReceiveBuffers {
        ReceiveBuffers {
            supply: Supply::Ring { posted: (0..slots).collect(), back: VecDeque::with_capacity(slots.to_usize()) },
            place: BufferPlace::Base(base),
            stride: lines,
            descriptors: Credits::new(slots),
            completions: None,
        }
    }

    /// Frame buffers of `lines` lines each, which follow each other in `pool` lines of pages.
    pub fn pages(memory: FrameMemory, pool: u64, page_lines: u64, lines: u64, descriptors: u32) -> ReceiveBuffers {
        let completions = memory.completions;
        let mut r = ReceiveBuffers {
            supply: Supply::Cycle { next: 0, of: (pool / lines).to_u32() },
            place: BufferPlace::Pages { memory, page_lines },
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

    /// Takes a descriptor and its buffer for a packet.
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

    /// Line of the next completion, where completions go to memory.
    pub fn completion(&mut self) -> Option<LineAddr> {
        let c = self.completions.as_mut()?;
        let line = c.base + c.next;
        c.next = (c.next + 1) % c.of;
        Some(line)
    }

    /// Returns `buffer`, which software no longer needs.
    pub fn release(&mut self, buffer: u32) {
        if let Supply::Ring { back, .. } = &mut self.supply {
            back.push_back(buffer);
        }
    }

    /// Gives `n` descriptors to the NIC, as far as software has buffers for them; returns their number.
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

    /// First line of the next buffer of an idle ring, which goes to the ring's end; None while all buffers hold
    /// packets.
    pub fn cycle(&mut self) -> Option<LineAddr> {
        let Supply::Ring { posted, .. } = &mut self.supply else { unreachable!("pages are warmed by the kernel") };
        let buffer = posted.pop_front()?;
        posted.push_back(buffer);
        Some(self.line(buffer, 0))
    }

    /// Starts the ring at slot `n`, as after a long uptime.
    pub fn start_at(&mut self, n: u64) {
        if let Supply::Ring { posted, .. } = &mut self.supply {
            posted.rotate_left(n.to_usize());
        }
    }

    /// Offset of `buffer` in its queue's memory, in lines.
    pub fn offset(&self, buffer: u32) -> u64 {
        u64::from(buffer) * self.stride
    }

    /// Line `i` of `buffer`.
    #[inline]
    pub fn line(&mut self, buffer: u32, i: u64) -> LineAddr {
        let at = u64::from(buffer) * self.stride + i;
        match &mut self.place {
            BufferPlace::Base(base) => *base + at,
            BufferPlace::Pages { memory, .. } => memory.pages.line(at),
        }
    }

    /// Number of lines, up to `n`, that are contiguous from line `i` of `buffer` on.
    #[inline]
    pub fn together(&self, buffer: u32, i: u64, n: u32) -> u32 {
        match &self.place {
            BufferPlace::Base(_) => n,
            BufferPlace::Pages { page_lines, .. } => {
                n.min((page_lines - (self.offset(buffer) + i) % page_lines).to_u32())
            }
        }
    }

    /// Memory of the kernel's frames, and lines per page.
    pub fn kernel(&mut self) -> (&mut FrameMemory, u64) {
        match &mut self.place {
            BufferPlace::Pages { memory, page_lines } => (memory, *page_lines),
            BufferPlace::Base(_) => unreachable!("only the kernel's frames have pages"),
        }
    }

    /// Lines of the kernel's page structures.
    pub fn structures(&self) -> std::ops::Range<LineAddr> {
        let (BufferPlace::Pages { memory, page_lines }, Supply::Cycle { of, .. }) = (&self.place, &self.supply) else {
            unreachable!("only the kernel's frames have pages")
        };
        let lines = u64::from(*of) * self.stride;
        memory.structures..memory.structures + lines.div_ceil(*page_lines)
    }

    /// Checks that the descriptors and the posted buffers agree.
    ///
    /// # Errors
    /// Returns one sentence when their numbers differ.
    pub fn check(&self) -> Result<(), String> {
        if let Supply::Ring { posted, .. } = &self.supply {
            if posted.len().to_u32() != self.descriptors.free() {
                return Err(format!("{} descriptors name {} buffers", self.descriptors.free(), posted.len()));
            }
        }
        Ok(())
    }
}

/// Transmit buffers of a queue, used in turn.
#[derive(Clone)]
pub(super) struct TransmitBuffers {
    base: LineAddr,
    lines: u64,
    next: u32,
    pub buffers: Credits,
}

impl TransmitBuffers {
    pub fn new(base: LineAddr, slots: u32, lines: u64) -> TransmitBuffers {
        TransmitBuffers { base, lines, next: 0, buffers: Credits::new(slots) }
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

/// Descriptors, buffers and packets of one queue.
#[derive(Clone, Default)]
pub(super) struct Queue {
    pub receive: Option<ReceiveBuffers>,
    pub transmit: Option<TransmitBuffers>,
    /// Completions that software can see and has not taken.
    pub waiting: VecDeque<Completion>,
    /// Number of packets that wait in the NIC for a buffer.
    pub buffered: u32,
    /// Packets that have a buffer and are not visible yet, in arrival order.
    pub arriving: VecDeque<PacketId>,
    /// Transmit buffers whose sweep is left to the core: line, number of lines, time sent.
    pub hints: VecDeque<(LineAddr, u16, Time)>,
    /// Packets that were sent from their receive buffers and that software has not taken back.
    pub reclaims: VecDeque<PacketId>,
    /// Whether the ring has become full and has not been half empty since then.
    pub full: bool,
    /// Interrupt moderation of the queue, behind a port.
    pub moderation: Moderation,
    /// Function of the NIC that has the queue.
    pub function: u8,
}

impl Queue {
    #[inline]
    pub fn receive(&mut self) -> &mut ReceiveBuffers {
        self.receive.as_mut().expect("the queue has receive buffers")
    }
    #[inline]
    pub fn transmit(&mut self) -> &mut TransmitBuffers {
        self.transmit.as_mut().expect("the queue has transmit buffers")
    }
}
