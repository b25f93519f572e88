//! Everything that can happen on a machine at an instant: the events of the machine's parts in one enumeration.
//!
//! Each part has its own type of event and posts that type; the calendar is generic over the type that it keeps. The
//! machine's event has one variant for each variant of its parts, so that the event loop dispatches once.

use super::DeviceAccess;
use crate::core::CoreEvent;
use crate::device::endpoint::DmaDirection;
use crate::device::{DeviceEvent, NicAt, RingTask};
use crate::kernel::ids::ShortLine;
use crate::kernel::{Calendar, ChannelId, CoreId, PacketId, PortId, QueueId, ReadJobId, ThreadId, TxnId};
use crate::memory::{MemoryEvent, Sweep};
use crate::traffic::TrafficEvent;

/// The calendar of a machine, or of several machines that share one calendar.
pub type Events = Calendar<Event>;

/// Declares [`Event`] from the variants of the events of the machine's parts, and a conversion for each part. A
/// conversion that misses a variant of its part does not compile. Each event under `whole` is one variant as a whole.
macro_rules! events {
    (
        whole { $($(#[$doc:meta])* $own:ident($own_type:ty),)+ }
        $($part:ident { $($name:ident $(($($item:ident: $item_type:ty),+))? $({ $($field:ident: $field_type:ty),+ })?,)+ })+
    ) => {
        /// An event of the calendar of a machine; the event types of the parts explain the variants.
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[expect(missing_docs, reason = "the event types of the parts explain the fields")]
        pub enum Event {
            $($(
                #[doc = concat!("[`", stringify!($part), "::", stringify!($name), "`].")]
                $name $(($($item_type),+))? $({ $($field: $field_type),+ })?,
            )+)+
            $($(#[$doc])* $own($own_type),)+
        }

        $(impl From<$part> for Event {
            #[inline(always)]
            fn from(e: $part) -> Event {
                match e {
                    $($part::$name $(($($item),+))? $({ $($field),+ })? => Event::$name $(($($item),+))? $({ $($field),+ })?,)+
                }
            }
        })+
    };
}

events! {
    whole {
        /// An access of a core to a device goes on.
        Access(DeviceAccess),
        /// A device or a timer interrupts a thread.
        Interrupt(ThreadId),
        /// Traffic, which runs on top of the machine.
        Traffic(TrafficEvent),
        /// A timer with this number has expired; the machine's caller set the timer.
        Timer(u32),
    }
    MemoryEvent {
        Cha(id: TxnId),
        Slices,
        Dram(channel: ChannelId),
        Link(id: TxnId),
        MemoryLink,
        Fill(id: TxnId),
        Wake(thread: ThreadId),
        Sweep { line: ShortLine, count: u32, op: Sweep },
        Hint { core: CoreId, line: ShortLine },
    }
    CoreEvent {
        Free(thread: ThreadId),
        Due(thread: ThreadId),
        Retire(thread: ThreadId),
    }
    DeviceEvent {
        NicRx,
        Delivered(id: PacketId),
        Freed(at: NicAt, id: PacketId),
        NicTx(at: NicAt, id: PacketId),
        Ring { port: PortId, queue: QueueId, task: RingTask, n: u16 },
        Tlp(port: PortId),
        Turn { port: PortId, way: DmaDirection },
        Completed(job: ReadJobId),
    }
}

impl From<DeviceAccess> for Event {
    #[inline(always)]
    fn from(e: DeviceAccess) -> Event {
        Event::Access(e)
    }
}

impl From<TrafficEvent> for Event {
    #[inline(always)]
    fn from(e: TrafficEvent) -> Event {
        Event::Traffic(e)
    }
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
