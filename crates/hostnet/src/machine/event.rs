//! Everything that can happen on a machine at an instant: the events of its parts, joined.
//!
//! Each part posts its own type of event to the one calendar, which is generic over the type that it keeps.

use super::DeviceAccess;
use crate::kernel::{Calendar, ThreadId};
use crate::{core, device, memory, traffic};

/// An event of the calendar of a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    Memory(memory::MemoryEvent),
    Core(core::CoreEvent),
    Device(device::DeviceEvent),
    /// An access of a core to a device goes on.
    Access(DeviceAccess),
    /// A device or a timer interrupts core `0`.
    Interrupt(ThreadId),
    /// Traffic, which runs on top of the machine.
    Traffic(traffic::TrafficEvent),
    /// A timer with this number, of whoever runs on top of the machine.
    Timer(u32),
}

/// The calendar of a machine, or of several that share one.
pub type Events = Calendar<Event>;

/// Declares how the event of a part becomes an event of the machine.
macro_rules! joined {
    ($($part:ident($event:ty),)*) => {
        $(impl From<$event> for Event {
            #[inline(always)]
            fn from(e: $event) -> Event {
                Event::$part(e)
            }
        })*
    };
}

joined! {
    Memory(memory::MemoryEvent),
    Core(core::CoreEvent),
    Device(device::DeviceEvent),
    Access(DeviceAccess),
    Traffic(traffic::TrafficEvent),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An event lies in the calendar with its time within a bucket and its link: 20 bytes together.
    #[test]
    fn an_event_with_its_time_and_link_takes_20_bytes() {
        assert!(size_of::<Event>() <= 12, "{}", size_of::<Event>());
        assert_eq!(Events::NODE_BYTES, 20);
    }
}
