//! Accesses of cores to devices, past the caches: doorbells, write-combining buffers, and uncached loads.
//!
//! ```text
//!   core -- L1, L2, crossbar --> home agent -- from_cha --> IIO -- link --> device     a store's buffer is free when the link has it
//!   core <----- crossbar ------- home agent <-- to_cha ---- IIO <-- link --    |       and the acknowledgement is back
//!                                                                 completion <-+       of a load
//! ```
//!
//! Without a device on a port, what is stored is taken and what is loaded is there after the way to the NIC on the chip.

use super::Machine;
use crate::core::Retired;
use crate::kernel::{DeviceAccess, Event, Int, Time};

impl Machine {
    /// Something leaves `core` for a device now, if `r` is that. Returns what is left to do for whoever runs on top: what rings
    /// at the NIC on the chip is a tag.
    #[inline]
    pub(super) fn leaves_for_device(&mut self, core: usize, r: Retired) -> Retired {
        let access = match r {
            Retired::Mmio(tag) if self.has_nic_on_port() => DeviceAccess::Doorbell { tag },
            Retired::Mmio(tag) => return Retired::Tag(tag),
            Retired::Combined { buffer, bytes } => DeviceAccess::Store { buffer, bytes },
            Retired::Load { bytes } => DeviceAccess::Load { bytes },
            _ => return r,
        };
        if self.iio.is_some() {
            self.access(core, self.at_home(core) + self.mem.lat.to_iio, access);
            return r;
        }
        let end = match access {
            DeviceAccess::Store { buffer, .. } => DeviceAccess::Taken { buffer },
            _ => DeviceAccess::Loaded,
        };
        self.access(core, self.now + self.nic.notify, end);
        r
    }

    fn has_nic_on_port(&mut self) -> bool {
        self.iio.as_mut().is_some_and(|i| i.nic().is_some())
    }

    /// Back from the IIO to `core`.
    fn way_back(&self, core: usize) -> Time {
        self.mem.way_out(self.core_of(core)) - self.mem.lat.l1 - self.mem.lat.l2
    }

    /// From one doorbell of `core` to the next. Where the NIC is on a port it is a trip to the IIO and back, as one uncached store is
    /// under way between a core and the root complex (CC-NIC, section 2.2). The NIC on the chip takes messages that nobody answers.
    pub(super) fn doorbell_gap(&mut self, core: usize) -> Time {
        if self.has_nic_on_port() {
            self.mem.way_out(self.core_of(core)) + self.mem.lat.to_iio + self.way_back(core)
        } else {
            self.nic.notify
        }
    }

    fn access(&mut self, core: usize, at: Time, access: DeviceAccess) {
        self.cal.push(at, Event::Device(core.to_u16(), access));
    }

    /// `Event::Device`.
    #[inline(never)]
    pub(super) fn on_device_access(&mut self, core: u16, access: DeviceAccess) {
        let (now, c) = (self.now, usize::from(core));
        let back = self.way_back(c);
        let next = match (access, &mut self.iio) {
            (DeviceAccess::Store { buffer, bytes }, Some(iio)) => {
                (iio.store(bytes.into(), now) + back, DeviceAccess::Taken { buffer })
            }
            (DeviceAccess::Load { bytes }, Some(iio)) => (iio.load(now), DeviceAccess::Answer { bytes }),
            (DeviceAccess::Answer { bytes }, Some(iio)) => (iio.answer(bytes.into(), now) + back, DeviceAccess::Loaded),
            (DeviceAccess::Taken { buffer }, _) => {
                let end = self.cpus[c].on_taken(&mut self.mem, &mut self.cal, buffer, now);
                return self.ends(c, end);
            }
            (DeviceAccess::Loaded, _) => {
                let end = self.cpus[c].on_loaded(&mut self.mem, &mut self.cal, now);
                return self.ends(c, end);
            }
            (DeviceAccess::Doorbell { .. }, _) => unreachable!("a doorbell is a signal"),
            (_, None) => unreachable!("nothing reaches an IIO that is not there"),
        };
        self.access(c, next.0, next.1);
    }
}
