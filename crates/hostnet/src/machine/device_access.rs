//! Accesses of cores to devices, past the caches: write-combining buffers, and uncached loads.
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
use crate::kernel::{DeviceAccess, Event, Time};

impl Machine {
    /// Something leaves `core` for a device now, if `r` is that.
    #[inline]
    pub(super) fn leaves_for_device(&mut self, core: usize, r: Retired) {
        let access = match r {
            Retired::Combined { buffer, bytes } => DeviceAccess::Store { buffer, bytes },
            Retired::Load { bytes } => DeviceAccess::Load { bytes },
            _ => return,
        };
        let at = match (&self.iio, access) {
            (Some(_), _) => return self.access(core, self.at_home(core) + self.mem.lat.to_iio, access),
            (None, _) => self.now + self.nic.notify,
        };
        let end = match access {
            DeviceAccess::Store { buffer, .. } => DeviceAccess::Taken { buffer },
            _ => DeviceAccess::Loaded,
        };
        self.access(core, at, end);
    }

    fn access(&mut self, core: usize, at: Time, access: DeviceAccess) {
        self.cal.push(at, Event::Device(core as u16, access));
    }

    /// `Event::Device`.
    #[inline(never)]
    pub(super) fn on_device_access(&mut self, core: u16, access: DeviceAccess) {
        let (now, c) = (self.now, usize::from(core));
        let back = self.mem.way_out(c) - self.mem.lat.l1 - self.mem.lat.l2;
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
            (_, None) => unreachable!("nothing reaches an IIO that is not there"),
        };
        self.access(c, next.0, next.1);
    }
}
