//! Events of devices and of the ports that they are attached to.

use super::endpoint::DmaDirection;
use crate::kernel::{PacketId, PortId, Post, QueueId, ReadJobId};
use crate::memory;

/// A NIC of a host: the one on the chip, or the one behind this PCIe port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NicAt {
    /// The NIC on the chip.
    Chip,
    /// The NIC behind this PCIe port.
    Port(PortId),
}

/// A ring of descriptors: for received packets, or for packets to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RingSide {
    /// The ring for received packets.
    Receive,
    /// The ring for packets to be sent.
    Transmit,
}

impl RingSide {
    /// Index of the side in pairs that hold one value per ring.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// An event of a queue of a NIC with descriptor rings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RingTask {
    /// The doorbell that moves a ring's tail arrives.
    Tail(RingSide),
    /// The NIC fetches descriptors from memory.
    Fetch(RingSide),
    /// The NIC writes used descriptors back to memory.
    WriteBack(RingSide),
    /// The places in the NIC's cache of descriptors that were written back become free.
    Recycled(RingSide),
    /// Another packet's DMA may begin in the place of one that has ended.
    Next(RingSide),
    /// The NIC may make read requests for frames again.
    Requests,
}

/// An event of a device or of its port.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the documentation of a variant explains its fields")]
pub enum DeviceEvent {
    /// The NIC's receive engine continues.
    NicRx,
    /// A received packet is visible to its core.
    Delivered(PacketId),
    /// A returned receive buffer reaches the NIC.
    Freed(NicAt, PacketId),
    /// A transmit job of the NIC continues.
    NicTx(NicAt, PacketId),
    /// `task` is due at a queue of the NIC on `port`, for `n` descriptors or requests. A ring has at most 65,535 descriptors in use.
    Ring { port: PortId, queue: QueueId, task: RingTask, n: u16 },
    /// A packet of port `0` has reached the IIO, and the device of the port continues.
    Tlp(PortId),
    /// One direction of a port may proceed: the port asks its device for the next transfer.
    Turn { port: PortId, way: DmaDirection },
    /// A device's read request has all its data.
    Completed(ReadJobId),
}

/// A calendar to which devices post their own events and those of the memory system.
pub trait DevicePosts: Post<DeviceEvent> + memory::MemoryPosts {}
impl<C: Post<DeviceEvent> + memory::MemoryPosts> DevicePosts for C {}

/// Calendars for the unit tests of devices.
#[cfg(test)]
pub(crate) mod testing {
    use super::DeviceEvent;
    use crate::kernel::Calendar;
    use crate::memory;

    /// An event of a device or of the memory system below it.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub(crate) enum Either {
        Device(DeviceEvent),
        Memory(memory::MemoryEvent),
    }

    impl From<DeviceEvent> for Either {
        fn from(e: DeviceEvent) -> Either {
            Either::Device(e)
        }
    }
    impl From<memory::MemoryEvent> for Either {
        fn from(e: memory::MemoryEvent) -> Either {
            Either::Memory(e)
        }
    }

    pub(crate) type Events = Calendar<Either>;
}
