//! Accesses of cores to devices that bypass the caches: doorbells, write-combining buffers, and uncached loads.
//!
//! ```text
//!   core -- L1, L2, crossbar --> home agent -- from_cha --> IIO -- link --> device
//!   core <----- crossbar ------- home agent <-- to_cha ---- IIO <-- link --    |
//!                                                                 completion <-+   of a load
//! ```
//!
//! A write-combining buffer is free once the link has its data and the acknowledgement has reached the core.
//!
//! Without an IIO, a store is accepted and a load answered after the notification time of the NIC on the chip.

use super::Machine;
use crate::core::Retired;
use crate::device::iio::Iio;
use crate::kernel::{Post, ThreadId, Time};

/// Progress of a thread's access to a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the documentation of a variant explains its fields")]
pub enum DeviceAccess {
    /// A doorbell with this tag is at the IIO.
    Doorbell { thread: ThreadId, tag: u32 },
    /// A write-combining buffer is at the IIO.
    Store { thread: ThreadId, buffer: u8, bytes: u8 },
    /// The IIO has taken the store, and the thread has received the acknowledgement.
    Taken { thread: ThreadId, buffer: u8 },
    /// An uncached load is at the IIO.
    Load { thread: ThreadId, bytes: u8 },
    /// The device answers an uncached load.
    Answer { thread: ThreadId, bytes: u8 },
    /// The data of an uncached load is at the thread.
    Loaded { thread: ThreadId },
}

impl Machine {
    /// Sends a retired access to a device, if `r` is one. Returns the effect that the machine's caller has to perform:
    /// a doorbell of the NIC on the chip becomes a tag.
    #[inline]
    pub(super) fn send_to_device(&mut self, thread: ThreadId, r: Retired) -> Retired {
        let access = match r {
            Retired::Mmio(tag) if !self.cpus[thread].rings_chip => DeviceAccess::Doorbell { thread, tag },
            Retired::Mmio(tag) => return Retired::Tag(tag),
            Retired::Combined { buffer, bytes } => DeviceAccess::Store { thread, buffer, bytes },
            Retired::Load { bytes } => DeviceAccess::Load { thread, bytes },
            _ => return r,
        };
        if self.iio.is_some() {
            self.cal.post(self.arrival_at_home(thread) + self.mem.lat.to_iio, access);
            return r;
        }
        let end = match access {
            DeviceAccess::Store { buffer, .. } => DeviceAccess::Taken { thread, buffer },
            _ => DeviceAccess::Loaded { thread },
        };
        self.cal.post(self.now + self.nic.notify, end);
        r
    }

    /// Lets the doorbells of `thread` ring the NIC on the chip, where NICs on ports stand beside it.
    pub fn ring_chip(&mut self, thread: ThreadId) {
        self.cpus[thread].rings_chip = true;
        let gap = self.doorbell_gap(thread);
        self.cpus[thread].space_doorbells(gap);
        self.cpus[thread].answer_doorbells(None);
    }

    pub(super) fn has_nics_on_ports(&self) -> bool {
        self.iio.as_ref().is_some_and(|i| i.nics().next().is_some())
    }

    /// Time of the path from the IIO back to `core`.
    fn latency_from_iio(&self, thread: ThreadId) -> Time {
        self.mem.latency_to_agent(self.core_of(thread)) - self.mem.lat.l1 - self.mem.lat.l2
    }

    /// Shortest time between two doorbells of `thread`. For a NIC on a port, the time is a round trip to the IIO, because
    /// only one uncached store may be outstanding between a core and the root complex (CC-NIC, section 2.2). The NIC on
    /// the chip takes messages without acknowledgement.
    pub(super) fn doorbell_gap(&self, thread: ThreadId) -> Time {
        if !self.cpus[thread].rings_chip {
            self.mem.latency_to_agent(self.core_of(thread)) + self.mem.lat.to_iio + self.latency_from_iio(thread)
        } else {
            self.nic.notify
        }
    }

    /// Time from the departure of a doorbell of `thread` to the arrival of its answer, if it has one: the way to the IIO
    /// and back, the way to the register of a NIC on a port, and the way from there.
    pub(super) fn doorbell_answer(&self, thread: ThreadId) -> Option<Time> {
        if self.cpus[thread].rings_chip {
            return None;
        }
        let beyond = self.iio.as_ref().and_then(Iio::register_round_trip)?;
        Some(self.doorbell_gap(thread) + beyond)
    }

    /// `Event::Access`.
    #[inline(never)]
    pub(super) fn on_device_access(&mut self, access: DeviceAccess) {
        let now = self.now;
        let next = match (access, &mut self.iio) {
            (DeviceAccess::Store { thread, buffer, bytes }, Some(iio)) => {
                let taken = iio.store(bytes.into(), now);
                (taken + self.latency_from_iio(thread), DeviceAccess::Taken { thread, buffer })
            }
            (DeviceAccess::Load { thread, bytes }, Some(iio)) => {
                (iio.load(now), DeviceAccess::Answer { thread, bytes })
            }
            (DeviceAccess::Answer { thread, bytes }, Some(iio)) => {
                let answered = iio.answer(bytes.into(), now);
                (answered + self.latency_from_iio(thread), DeviceAccess::Loaded { thread })
            }
            (DeviceAccess::Taken { thread, buffer }, _) => {
                let c = thread;
                let end = self.cpus[c].on_buffer_taken(&mut self.mem, &mut self.cal, buffer, now);
                return self.end_program(c, end);
            }
            (DeviceAccess::Loaded { thread }, _) => {
                let c = thread;
                let end = self.cpus[c].on_loaded(&mut self.mem, &mut self.cal, now);
                return self.end_program(c, end);
            }
            (DeviceAccess::Doorbell { .. }, _) => unreachable!("a doorbell is a signal"),
            (_, None) => unreachable!("nothing reaches an IIO that is not there"),
        };
        self.cal.post(next.0, next.1);
    }
}
