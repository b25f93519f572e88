//! Everything that can happen at an instant. Plain and small: components are named by index.

/// An event of the calendar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// Transaction reaches the caching and home agent.
    Cha(u32),
    /// Memory channel has something to schedule.
    Dram(u8),
    /// Transaction's data reaches its requester.
    Fill(u32),
    /// A core's program continues (next phase, or after a stall).
    Core(u16),
    /// A core's retired side effects (sweeps, doorbells, buffer returns) are due.
    Retire(u16),
    /// The next packet of traffic source `0` reaches the NIC.
    Arrival(u16),
    /// The NIC's receive engine continues.
    NicRx,
    /// A received packet is visible to its core.
    Delivered(u32),
    /// A receive buffer's return reaches the NIC.
    Freed(u32),
    /// A transmit job of the NIC continues.
    NicTx(u32),
    /// `count` sweep (or flush) messages from `line` on reach the home agent.
    Sweep { line: u64, count: u32, op: u8 },
    /// A packet of port `0` has reached the IIO, and its device goes on.
    Tlp(u16),
    /// A device's read request has all its data.
    Completed(u32),
    /// A policy's control loop.
    Epoch,
    /// A sample of the timeline.
    Sample,
}
