//! Everything that can happen at an instant. Plain and small: components are named by index.

use super::ids::{LineAddr, PacketId, ShortLine, TxnId};

/// Which NIC of a host is meant: the one on the chip, or the one behind a PCIe port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NicAt {
    Chip,
    Port,
}

/// A ring of descriptors: for packets that come, or for those that leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    Receive,
    Transmit,
}

impl Side {
    /// Its place in pairs that hold one value per ring.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// What is due at a queue of a NIC with descriptor rings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RingTask {
    /// The doorbell that moves a ring's tail.
    Tail(Side),
    /// Descriptors are fetched from memory.
    Fetch(Side),
    /// Used descriptors are written back to memory.
    WriteBack(Side),
    /// The places of written descriptors in the NIC's cache are free.
    Recycled(Side),
    /// Another packet's DMA may begin where one has ended.
    Next(Side),
    /// Read requests of frames may be made again.
    Requests,
}

/// How far an access of a core to a device has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceAccess {
    /// A doorbell with this tag is at the IIO.
    Doorbell { tag: u32 },
    /// A write-combining buffer is at the IIO.
    Store { buffer: u8, bytes: u8 },
    /// The IIO has taken it, and the core knows.
    Taken { buffer: u8 },
    /// An uncached load is at the IIO.
    Load { bytes: u8 },
    /// The device answers it.
    Answer { bytes: u8 },
    /// Its data is at the core.
    Loaded,
}

/// An event of the calendar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// Transaction reaches the caching and home agent.
    Cha(TxnId),
    /// Requests that wait for a register of an LLC slice may go on.
    Slices,
    /// Memory channel has something to schedule.
    Dram(u8),
    /// Transaction goes on between nodes.
    Link(TxnId),
    /// Transaction's data reaches its requester.
    Fill(TxnId),
    /// A core's program continues (next phase, or after a stall).
    Core(u16),
    /// Hits of a core that has run ahead are due: another agent may have written these lines.
    Due(u16),
    /// A line that a core waits for has been written or taken away.
    Wake(u16),
    /// A core's retired side effects (sweeps, doorbells, buffer returns) are due.
    Retire(u16),
    /// An access of this core to a device goes on.
    Device(u16, DeviceAccess),
    /// The next packet of traffic source `0` reaches the NIC.
    Arrival(u16),
    /// The load generator sends its next packet.
    Offer,
    /// The next reply is back at the load generator.
    Back,
    /// The load generator gives up requests that have waited too long.
    Overdue,
    /// The NIC's receive engine continues.
    NicRx,
    /// A received packet is visible to its core.
    Delivered(PacketId),
    /// A receive buffer's return reaches the NIC.
    Freed(NicAt, PacketId),
    /// A transmit job of the NIC continues.
    NicTx(NicAt, PacketId),
    /// `task` is due at a queue of the NIC on a port; a doorbell is for `n` descriptors.
    Ring { queue: u16, task: RingTask, n: u32 },
    /// `count` sweep (or flush) messages reach the home agent: see [`Event::sweep`].
    Sweep { line: ShortLine, count: u32, op: u8 },
    /// A packet of port `0` has reached the IIO, and its device goes on.
    Tlp(u16),
    /// A device has written a line for this core, whose L2 is to fetch it: see [`Event::hint`].
    Hint { core: u16, line: ShortLine },
    /// What one way of a port waited for is there: its device is asked again.
    Turn { port: u16, way: u8 },
    /// A device's read request has all its data.
    Completed(u32),
    /// Port `0` of the senders beyond the network is free.
    Emit(u8),
    /// The next segment on the network's wire reaches the NIC.
    Segment,
    /// The next acknowledgement reaches its sender.
    Ack,
    /// Sender `0` looks whether its receiver has fallen silent.
    Probe(u8),
    /// A device or a timer interrupts core `0`.
    Interrupt(u16),
    /// A timer of whoever runs on top of a machine.
    Timer(u32),
    /// A policy's control loop.
    Epoch,
    /// A sample of the trace.
    Sample,
    /// A bin of the timeline ends.
    Bin,
    /// An epoch of the user's own control plane ends.
    Control,
    /// The system behind everything that is simulated reads a line.
    Background,
}

impl Event {
    /// Sweep messages for `count` lines from `line` on.
    #[inline]
    pub fn sweep(line: LineAddr, count: u32, op: u8) -> Event {
        Event::Sweep { line: line.into(), count, op }
    }

    /// A hint for `core` that a device has written `line`.
    #[inline]
    pub fn hint(core: u16, line: LineAddr) -> Event {
        Event::Hint { core, line: line.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_with_its_time_and_link_takes_24_bytes() {
        assert!(size_of::<Event>() <= 12, "{}", size_of::<Event>());
    }
}
