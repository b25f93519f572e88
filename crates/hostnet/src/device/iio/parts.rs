//! Internal parts of the IIO: ports, packets on their links, read requests, and the lines that wait for entries of a
//! controller.

use super::super::endpoint::{DmaDirection, Endpoint, Piece};
use super::super::pcie::Framing;
use crate::flow::domain::Domain;
use crate::flow::{Credits, Link};
use crate::kernel::{Int, LineAddr, PortId, ReadJobId, Time};
use crate::memory::stats::AccessClass;
use crate::memory::{Agent, IoWrite, Tag, LINE_U32};
use crate::placement::{DeviceKind, DeviceTransfer};
use std::collections::VecDeque;

/// Consecutive lines of packets that have arrived at the IIO and that the simulator treats as one unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct IioRequest<S> {
    pub(super) line: LineAddr,
    pub(super) lines: u16,
    /// Whether only a part of the line is written, so that the line must be read first.
    pub(super) partial: bool,
    /// Write or read job that the lines belong to.
    pub(super) source: S,
    pub(super) device: DeviceKind,
    pub(super) tag: Tag,
    /// Bytes of the line that are moved.
    pub(super) bytes: u32,
}

impl<S> IioRequest<S> {
    pub(super) fn transfer(&self) -> DeviceTransfer {
        DeviceTransfer { tag: self.tag, ..DeviceTransfer::of(Agent::Io, self.device, self.line) }
    }

    /// Traffic classes under which the DRAM transfers of a write and of a read are counted. Transfers of packets count
    /// as those of a NIC, wherever the NIC is attached.
    pub(super) fn classes(&self) -> (AccessClass, AccessClass) {
        match self.device {
            DeviceKind::Nic => (AccessClass::NicRxWr, AccessClass::NicTxRd),
            DeviceKind::Rdma | DeviceKind::Storage => (AccessClass::IoWr, AccessClass::IoRd),
        }
    }
}

impl Piece {
    /// Bytes of the piece's first `n` lines, which are all of its lines, that cross the link.
    pub(super) fn bytes(self, n: u32) -> u32 {
        n * LINE_U32 - self.omits
    }

    /// Splits the piece's first `n` lines, which are all of its lines, into units of up to `each` lines that are
    /// simulated together.
    pub(super) fn wants<S: Copy>(
        self,
        n: u32,
        each: u32,
        source: S,
        device: DeviceKind,
    ) -> impl Iterator<Item = IioRequest<S>> {
        let mut next = 0;
        std::iter::from_fn(move || {
            let at = next;
            let lines = each.min(n - at);
            next += lines;
            let omits = if next == n { self.omits.min(LINE_U32) } else { 0 };
            (lines > 0).then(|| IioRequest {
                line: self.line + u64::from(at),
                lines: lines.to_u16(),
                partial: false,
                source,
                device,
                tag: self.tag,
                bytes: LINE_U32 - omits,
            })
        })
    }
}

/// A transaction-layer packet on its way upstream.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tlp {
    /// A memory write: its lines, their number, and the steering tag in the reserved bits of the header's first dword.
    Write(Piece, u32, u32),
    Read {
        job: ReadJobId,
    },
}

/// A read request of a device.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReadJob {
    pub(super) port: PortId,
    pub(super) piece: Piece,
    pub(super) lines: u32,
    /// Bytes that no completion has carried yet.
    pub(super) bytes: u32,
    /// Lines that have arrived from memory, as a bit mask.
    pub(super) here: u64,
    pub(super) sent: u32,
    /// Lines that have no read-buffer entry yet.
    pub(super) entries: u32,
    /// Whether the request's tag is on its way back to the device.
    pub(super) returned: bool,
    /// Time at which the request was sent.
    pub(super) since: Time,
}

/// One device and its link.
#[derive(Clone)]
pub(super) struct IioPort {
    pub(super) device: Endpoint,
    /// Index of the controller that the port belongs to.
    pub(super) controller: usize,
    pub(super) framing: Framing,
    /// Upstream link, which grants posted credits in lines of data and non-posted credits in requests.
    pub(super) up: Link,
    pub(super) down: Link,
    /// Tags: the read requests that the device may have outstanding.
    pub(super) tags: Credits,
    /// Packet on the upstream link; the link is free again when the packet has arrived.
    pub(super) on_wire: Option<Tlp>,
    /// Reason why each direction is on hold, by `DmaDirection`.
    pub(super) holds: [PortHold; 2],
    /// Direction that goes first when both directions have a packet to send.
    pub(super) turn: DmaDirection,
    pub(super) moved: u64,
}

/// Reason why a port does not ask its device for more in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PortHold {
    /// The port is not on hold and asks its device.
    Open,
    /// The port asks again at a known time, with `Event::Turn`.
    Timer,
    /// Flow-control credits are missing: their number, when the time of their return is unknown.
    Credits(u32),
}

/// Buffers of one controller, and the lines that wait for an entry.
#[derive(Clone)]
pub(super) struct IioController {
    pub(super) write: Domain,
    pub(super) read: Domain,
    pub(super) writes: VecDeque<IioRequest<IoWrite>>,
    pub(super) reads: VecDeque<IioRequest<ReadJobId>>,
    pub(super) to_home_agent: HomeAgentPath,
}

/// Serialising path from a controller to the home agent.
#[derive(Clone)]
pub(super) struct HomeAgentPath {
    /// Time at which the next line may leave.
    free: Time,
    /// Time on the path that a line takes when it is written back.
    write_back: Time,
    most: Time,
    /// Time on the path that the lines waiting to be written back will take.
    owed: Time,
    /// Time on the path that lines have taken since the restart, up to `free`.
    busy: Time,
}

impl HomeAgentPath {
    pub(super) fn new(write_back: Time, buffer: u32) -> HomeAgentPath {
        HomeAgentPath {
            free: Time::ZERO,
            write_back,
            most: write_back * u64::from(buffer),
            owed: Time::ZERO,
            busy: Time::ZERO,
        }
    }

    /// Starts a new window.
    pub(super) fn restart(&mut self, now: Time) {
        self.busy = self.free.saturating_sub(now);
    }

    /// Time up to `now` for which lines have been on the path since the restart.
    pub(super) fn busy_until(&self, now: Time) -> Time {
        self.busy.saturating_sub(self.free.saturating_sub(now))
    }

    /// Time on the path that a device's longest packet takes, given a line's `interval`.
    #[inline]
    pub(super) fn packet(&self, interval: Time) -> Time {
        interval.max(self.write_back)
    }

    /// Adds `lines` modified lines to those that wait to be written back.
    #[inline]
    pub(super) fn owe_write_backs(&mut self, lines: u32) {
        self.owed += self.write_back * u64::from(lines);
    }

    /// Writes lines back in the time up to `now` in which no request used the path; lines beyond the buffer's capacity
    /// go before the next request. Returns the time on the path that these take.
    #[inline]
    fn write_back(&mut self, now: Time) -> Time {
        if self.owed == Time::ZERO {
            return Time::ZERO;
        }
        if now > self.free {
            let gone = self.owed.min(now - self.free);
            self.owed = self.owed - gone;
            self.free += gone;
            self.busy += gone;
        }
        let beyond = self.owed.saturating_sub(self.most);
        self.free += beyond;
        self.busy += beyond;
        self.owed = self.owed - beyond;
        beyond
    }

    /// Time at which the last line of a train leaves for a write that gets its entries now; the other lines of the
    /// train have arrived and left before it. The last line occupies the path for `last`, each of the others for
    /// `interval`.
    #[inline]
    pub(super) fn admit_last_line(&mut self, now: Time, interval: Time, last: Time, lines: u16) -> Time {
        self.write_back(now);
        let at = now.max(self.free + interval * u64::from(lines - 1));
        self.free = at + last;
        self.busy += interval * u64::from(lines - 1) + last;
        at
    }

    /// Time at which a core's request that arrives now leaves, where earlier cores' requests hold the path until
    /// `cores`. The request waits for these requests, for the lines that no longer fit into the write-back buffer, and for
    /// one packet of a device, which takes at most `packet`.
    #[inline]
    pub(super) fn admit_core_request(&mut self, now: Time, cores: Time, interval: Time, packet: Time) -> Time {
        let at = now.max(cores) + self.write_back(now);
        let at = at.max(self.free.min(at + packet));
        self.free = self.free.max(at) + interval;
        self.busy += interval;
        at
    }

    /// Time at which the first line of a train leaves for a read request that gets its entries now; the other lines
    /// follow, one per `interval`.
    #[inline]
    pub(super) fn admit_first_line(&mut self, now: Time, interval: Time, lines: u16) -> Time {
        self.write_back(now);
        let at = now.max(self.free);
        self.free = at + interval * u64::from(lines);
        self.busy += interval * u64::from(lines);
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EACH: Time = Time::ns(1);

    /// A path whose write-backs take 3 ns each, of which four may wait.
    fn to_home_agent() -> HomeAgentPath {
        HomeAgentPath::new(Time::ns(3), 4)
    }

    #[test]
    fn what_is_written_back_lets_requests_go_first_while_there_is_room() {
        let mut d = to_home_agent();
        d.owe_write_backs(4);
        assert_eq!(d.admit_first_line(Time::ZERO, EACH, 1), Time::ZERO);
        assert_eq!(d.admit_first_line(Time::ZERO, EACH, 1), Time::ns(1));
    }

    #[test]
    fn a_request_waits_for_the_lines_that_have_no_room() {
        let mut d = to_home_agent();
        d.owe_write_backs(6);
        assert_eq!(d.admit_first_line(Time::ZERO, EACH, 1), Time::ns(6)); // two lines of 3 ns go before the request
        assert_eq!(d.admit_first_line(Time::ZERO, EACH, 1), Time::ns(7)); // and four lines may wait
    }

    #[test]
    fn lines_are_written_back_where_no_request_goes() {
        let mut d = to_home_agent();
        d.owe_write_backs(4);
        assert_eq!(d.admit_first_line(Time::ns(9), EACH, 1), Time::ns(9)); // three lines have left
        d.owe_write_backs(4); // five lines wait
        assert_eq!(d.admit_first_line(Time::ns(10), EACH, 1), Time::ns(13));
    }

    /// Two lines from 2 ns on, of 1 ns each, and a write-back of 3 ns that follows them: busy from 2 to 7 ns, of which a window
    /// from 4 ns on sees the rest.
    #[test]
    fn the_path_is_busy_while_lines_are_on_it() {
        let mut d = to_home_agent();
        d.admit_first_line(Time::ns(2), EACH, 2);
        d.owe_write_backs(1);
        assert_eq!([2, 3, 4].map(|t| d.busy_until(Time::ns(t))), [0, 1, 2].map(Time::ns));
        d.restart(Time::ns(3));
        assert_eq!(d.admit_first_line(Time::ns(20), EACH, 1), Time::ns(20));
        assert_eq!(d.busy_until(Time::ns(30)), Time::ns(1 + 3 + 1));
    }

    /// In the long run each line takes the time of its request and of its write-back.
    #[test]
    fn lines_take_both_their_ways_when_they_never_end() {
        let mut d = to_home_agent();
        let mut at = Time::ZERO;
        for _ in 0..1000 {
            at = d.admit_last_line(at, EACH, EACH, 1);
            d.owe_write_backs(1);
        }
        let least = Time::ns(999 + 3 * (999 - 4));
        assert!(at >= least && at <= least + Time::ns(4), "{at:?}");
    }
}
