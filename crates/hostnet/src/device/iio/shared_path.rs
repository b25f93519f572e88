//! The path to the home agent that devices share with cores: one crossbar in front of the LLC.
//!
//! ```text
//!   devices --> entries --+
//!                         +--> path --> home agent
//!   cores --> L2s --------+
//! ```
//!
//! Ports of a crossbar take turns, one packet each (gem5, mem/xbar.cc): a core's request waits for earlier requests of
//! cores, for modified lines of L2s beyond the write-back buffer, and for one packet of the devices.

use super::Iio;
use crate::device::DevicePosts;
use crate::kernel::{Int, Time, TxnId};
use crate::memory::Memory;
use std::collections::VecDeque;

/// Use of one controller's path to the home agent by cores.
#[derive(Clone)]
pub(super) struct SharedPath {
    controller: usize,
    /// Time until which requests of cores occupy the path.
    free: Time,
    /// Requests of cores that wait for the path, in the order in which they will get it.
    waiting: VecDeque<TxnId>,
    /// Number of modified lines, written back by L2s, for which the path has already been charged.
    seen: u64,
}

impl SharedPath {
    pub(super) fn new(controller: usize) -> SharedPath {
        SharedPath { controller, free: Time::ZERO, waiting: VecDeque::new(), seen: 0 }
    }
}

impl Iio {
    /// Whether requests of cores use a controller's path to the home agent.
    pub fn is_shared_with_cores(&self) -> bool {
        self.shared.is_some()
    }

    /// Handles `memory::MemoryEvent::Cha` at the start of the path: transaction `id` waits if a core has sent the
    /// transaction and the path is occupied. Returns true when the transaction waits; its event then occurs again when
    /// the transaction has the path.
    ///
    /// Lines that L2s have written back since the last request follow this request, as far as the write-back buffer has
    /// room.
    pub fn delay_core_request(&mut self, mem: &mut Memory, cal: &mut impl DevicePosts, id: TxnId, now: Time) -> bool {
        let Some(shared) = &mut self.shared else { return false };
        if shared.waiting.front() == Some(&id) {
            shared.waiting.pop_front();
            return false;
        }
        if !mem.is_arrival_from_core(id) {
            return false;
        }
        let to_home_agent = &mut self.controllers[shared.controller].to_home_agent;
        to_home_agent.owe_write_backs((mem.written_back - shared.seen).to_u32());
        shared.seen = mem.written_back;
        let at = to_home_agent.admit_core_request(
            now,
            shared.free,
            self.line_interval,
            to_home_agent.packet(self.line_interval),
        );
        shared.free = at + self.line_interval;
        if at > now {
            shared.waiting.push_back(id);
            mem.post_arrival(cal, at, id);
        }
        at > now
    }
}

#[cfg(test)]
mod tests {
    use super::super::{IioQuirks, IioSpec, PcieSpec};
    use super::*;
    use crate::device::testing::{Either, Events};
    use crate::kernel::{CoreId, LineAddr, TenantId};
    use crate::memory::region::{AddressMap, RegionKind, Sharing};
    use crate::memory::stats::AccessClass;
    use crate::memory::testing::memory_of;
    use crate::memory::{self, Sender, Txn, TxnOp};
    use serde::Deserialize;

    /// The part of a platform's file that the tests read.
    #[derive(Deserialize)]
    struct Attachment {
        iio: IioSpec,
        pcie: PcieSpec,
    }

    /// A path on which a request takes 1 ns and a written-back line 3 ns, with room for four lines that wait to be
    /// written back.
    fn parts() -> (Iio, Memory, Events) {
        let platform = include_str!("../../../../../platforms/gem5.toml");
        let Attachment { iio, pcie } = toml::from_str(platform).unwrap();
        let iio = IioSpec {
            quirks: IioQuirks { shared_with_cores: true, write_back_buffer: 4, ..iio.quirks.clone() },
            ..iio
        };
        let mut map = AddressMap::default();
        map.add(64, RegionKind::App, Sharing::Core(CoreId(0)), TenantId(0));
        (Iio::new(&iio, &pcie, Vec::new()), memory_of(platform, 1, map), Events::default())
    }

    /// Times in nanoseconds at which `n` requests that arrive at time zero have passed the path, with the numbers of
    /// the requests.
    fn passed(n: u64, before: impl FnOnce(&mut Iio, &mut Memory)) -> Vec<(u64, usize)> {
        let (mut iio, mut mem, mut cal) = parts();
        before(&mut iio, &mut mem);
        (0..n).for_each(|line| {
            mem.send(&mut cal, Time::ZERO, Txn::new(TxnOp::Read, LineAddr(line), CoreId(0), Time::ZERO))
        });
        let mut gone = Vec::new();
        while let Some((at, e)) = cal.pop() {
            let Either::Memory(memory::MemoryEvent::Cha(id)) = e else { panic!("{e:?}") };
            if !iio.delay_core_request(&mut mem, &mut cal, id, at) {
                gone.push((at.0 / 1000, id.index()));
            }
        }
        gone
    }

    #[test]
    fn requests_of_cores_follow_each_other_and_each_waits_once() {
        assert_eq!(passed(3, |_, _| {}), [(0, 0), (1, 1), (2, 2)]);
    }

    #[test]
    fn requests_of_cores_wait_for_lines_of_devices_and_these_for_them() {
        let device = |iio: &mut Iio, at| iio.controllers[0].to_home_agent.admit_first_line(at, Time::ns(1), 5);
        let after = passed(2, |iio, _| assert_eq!(device(iio, Time::ZERO), Time::ZERO));
        // One packet of 3 ns goes before each request: the first request has the path from 3 to 4 ns.
        assert_eq!(after, [(3, 0), (6, 1)]);
        let short = passed(2, |iio, _| {
            assert_eq!(iio.controllers[0].to_home_agent.admit_first_line(Time::ZERO, Time::ns(1), 2), Time::ZERO)
        });
        assert_eq!(short, [(2, 0), (3, 1)]);
        let (mut iio, mut mem, mut cal) = parts();
        for n in 0..2 {
            mem.send(&mut cal, Time::ZERO, Txn::new(TxnOp::Own, LineAddr(n.to_u64()), CoreId(0), Time::ZERO));
            iio.delay_core_request(&mut mem, &mut cal, TxnId::new(n), Time::ZERO);
        }
        assert_eq!(device(&mut iio, Time::ZERO), Time::ns(2));
    }

    #[test]
    fn what_an_l2_has_written_back_goes_behind_requests_while_there_is_room() {
        assert_eq!(passed(2, |_, mem| mem.written_back = 4), [(0, 0), (1, 1)]);
        assert_eq!(passed(2, |_, mem| mem.written_back = 5), [(3, 0), (4, 1)]);
    }

    /// Each request comes with a line that its L2 writes back. Four of these fit into the buffer; the others take 3 ns each
    /// before a request, so that the path carries a request each 4 ns. What a device has sent before goes in turns with
    /// them, at most 3 ns with each request; its 60 ns are thus gone after 20 requests, and no backlog stays.
    #[test]
    fn what_l2s_write_back_holds_up_cores_and_not_devices() {
        let (mut iio, mut mem, mut cal) = parts();
        let device = |iio: &mut Iio, at| iio.controllers[0].to_home_agent.admit_first_line(at, Time::ns(1), 60);
        assert_eq!(device(&mut iio, Time::ZERO), Time::ZERO);
        let mut passed = Vec::new();
        for n in 0..40 {
            mem.written_back += 1;
            mem.send(&mut cal, Time::ZERO, Txn::new(TxnOp::Read, LineAddr(n), CoreId(0), Time::ZERO));
            iio.delay_core_request(&mut mem, &mut cal, TxnId::new(n.to_usize()), Time::ZERO);
            passed.push(iio.shared.as_ref().unwrap().free - Time::ns(1));
        }
        assert_eq!((passed[0], passed[3], passed[4]), (Time::ns(3), Time::ns(15), Time::ns(22)));
        let last = passed[39];
        assert_eq!(last, Time::ns(60 + 36 * 3 + 39));
        assert_eq!(device(&mut iio, last), last + Time::ns(1));
    }

    #[test]
    fn requests_of_devices_have_had_the_way_when_they_come() {
        let (mut iio, mut mem, mut cal) = parts();
        for _ in 0..2 {
            mem.send(&mut cal, Time::ZERO, Txn::dma_read(Sender::Io, AccessClass::NicTxRd, LineAddr(0), 1, Time::ZERO));
        }
        assert!((0..2).map(TxnId::new).all(|id| !iio.delay_core_request(&mut mem, &mut cal, id, Time::ZERO)));
    }
}
