//! What is inside: ports, packets on their links, requests, and the lines that want entries of a controller.

use super::super::endpoint::{Direction, Endpoint, Piece};
use super::super::pcie::Framing;
use crate::flow::domain::Domain;
use crate::flow::{Credits, Link};
use crate::kernel::{Int, LineAddr, PortId, Time};
use crate::memory::stats::Class;
use crate::memory::{Agent, Tag, LINE_U32};
use crate::placement::{DeviceKind, Transfer};
use std::collections::VecDeque;

/// Consecutive lines of packets that have arrived, as many as are simulated as one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Want {
    pub(super) line: LineAddr,
    pub(super) lines: u16,
    /// A part of the line is written, which has to be read first.
    pub(super) partial: bool,
    pub(super) who: u32,
    pub(super) device: DeviceKind,
    pub(super) tag: Tag,
    /// Bytes of the line that are moved.
    pub(super) bytes: u32,
}

impl Want {
    pub(super) fn transfer(&self) -> Transfer {
        Transfer { tag: self.tag, ..Transfer::of(Agent::Io, self.device, self.line) }
    }

    /// What its transfer of DRAM counts as: packets are a NIC's wherever it is attached.
    pub(super) fn classes(&self) -> (Class, Class) {
        match self.device {
            DeviceKind::Nic => (Class::NicRxWr, Class::NicTxRd),
            DeviceKind::Rdma | DeviceKind::Storage => (Class::IoWr, Class::IoRd),
        }
    }
}

impl Piece {
    /// Bytes of its first `n` lines, which are all of them, that cross the link.
    pub(super) fn bytes(self, n: u32) -> u32 {
        n * LINE_U32 - self.omits
    }

    /// What its first `n` lines, which are all of them, ask for, up to `each` together.
    pub(super) fn wants(self, n: u32, each: u32, who: u32, device: DeviceKind) -> impl Iterator<Item = Want> {
        let mut next = 0;
        std::iter::from_fn(move || {
            let at = next;
            let lines = each.min(n - at);
            next += lines;
            let omits = if next == n { self.omits.min(LINE_U32) } else { 0 };
            (lines > 0).then(|| Want {
                line: self.line + u64::from(at),
                lines: lines.to_u16(),
                partial: false,
                who,
                device,
                tag: self.tag,
                bytes: LINE_U32 - omits,
            })
        })
    }
}

/// A transaction-layer packet on its way up.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tlp {
    /// Lines, and what the reserved bits of the first dword say about them.
    Write(Piece, u32, u32),
    Read {
        job: u32,
    },
}

/// A read request of a device.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Job {
    pub(super) port: PortId,
    pub(super) piece: Piece,
    pub(super) lines: u32,
    /// Bytes that no completion has taken along yet.
    pub(super) bytes: u32,
    /// Lines that have come, as a mask, and lines handed to the link.
    pub(super) here: u64,
    pub(super) sent: u32,
    /// Lines that have no entry yet.
    pub(super) entries: u32,
    /// Its tag is on its way back.
    pub(super) returned: bool,
    /// When it set out.
    pub(super) since: Time,
}

/// One device and its link.
#[derive(Clone)]
pub(super) struct Port {
    pub(super) device: Endpoint,
    /// The controller that it belongs to.
    pub(super) controller: usize,
    pub(super) framing: Framing,
    /// Grants posted credits, in lines of data, and non-posted ones, in requests.
    pub(super) up: Link,
    pub(super) down: Link,
    /// Read requests that the device may have under way.
    pub(super) tags: Credits,
    /// The packet on the link up, which is free again when it has arrived.
    pub(super) on_wire: Option<Tlp>,
    /// What each way waits for, by `Direction`.
    pub(super) holds: [Hold; 2],
    /// The way that goes first when both have something.
    pub(super) turn: Direction,
    pub(super) moved: u64,
}

/// Why a port does not ask its device for more, one way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Hold {
    /// It does.
    Open,
    /// `Event::Turn` will tell it to.
    Timer,
    /// So many posted credits are missing, and when they come back is not known.
    Credits(u32),
}

/// One controller's buffers, and the lines that wait for an entry.
#[derive(Clone)]
pub(super) struct Controller {
    pub(super) write: Domain,
    pub(super) read: Domain,
    pub(super) writes: VecDeque<Want>,
    pub(super) reads: VecDeque<Want>,
    pub(super) door: Door,
}

/// The way from a controller to the home agent.
#[derive(Clone)]
pub(super) struct Door {
    /// When the next line may leave.
    free: Time,
    /// What a line takes that is written back, and how many of these may wait.
    write_back: Time,
    most: Time,
    /// What waits to be written back, in time.
    owed: Time,
}

impl Door {
    pub(super) fn new(write_back: Time, buffer: u32) -> Door {
        Door { free: Time::ZERO, write_back, most: write_back * u64::from(buffer), owed: Time::ZERO }
    }

    /// The longest packet.
    #[inline]
    pub(super) fn packet(&self, interval: Time) -> Time {
        interval.max(self.write_back)
    }

    /// `lines` lines are modified and will be written back.
    #[inline]
    pub(super) fn owe(&mut self, lines: u32) {
        self.owed += self.write_back * u64::from(lines);
    }

    /// Until `now` lines were written back where no request went; what has no room goes before the next request.
    #[inline]
    fn write_back(&mut self, now: Time) {
        if self.owed == Time::ZERO {
            return;
        }
        if now > self.free {
            let gone = self.owed.min(now - self.free);
            self.owed = self.owed - gone;
            self.free += gone;
        }
        if self.owed > self.most {
            self.free += self.owed - self.most;
            self.owed = self.most;
        }
    }

    /// When a line of a write that has an entry now leaves: the last of a train, whose others came and left before it. Each of
    /// those takes `interval`, the last one `last`.
    #[inline]
    pub(super) fn leave_last(&mut self, now: Time, interval: Time, last: Time, lines: u16) -> Time {
        self.write_back(now);
        let at = now.max(self.free + interval * u64::from(lines - 1));
        self.free = at + last;
        at
    }

    /// When a core's request leaves that comes now, where the cores before it have had the way until `cores`. It waits for these, and
    /// for one packet of a device, which takes `packet` at most.
    #[inline]
    pub(super) fn let_in(&mut self, now: Time, cores: Time, interval: Time, packet: Time) -> Time {
        self.write_back(now);
        let at = now.max(cores);
        let at = at.max(self.free.min(at + packet));
        self.free = self.free.max(at) + interval;
        at
    }

    /// When a line of a request that has an entry now leaves: the first of a train, whose others follow.
    #[inline]
    pub(super) fn leave_first(&mut self, now: Time, interval: Time, lines: u16) -> Time {
        self.write_back(now);
        let at = now.max(self.free);
        self.free = at + interval * u64::from(lines);
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EACH: Time = Time::ns(1);

    /// A door whose write-backs take 3 ns, of which four may wait.
    fn door() -> Door {
        Door::new(Time::ns(3), 4)
    }

    #[test]
    fn what_is_written_back_lets_requests_go_first_while_there_is_room() {
        let mut d = door();
        d.owe(4);
        assert_eq!(d.leave_first(Time::ZERO, EACH, 1), Time::ZERO);
        assert_eq!(d.leave_first(Time::ZERO, EACH, 1), Time::ns(1));
    }

    #[test]
    fn a_request_waits_for_the_lines_that_have_no_room() {
        let mut d = door();
        d.owe(6);
        assert_eq!(d.leave_first(Time::ZERO, EACH, 1), Time::ns(6)); // two lines of 3 ns go before it
        assert_eq!(d.leave_first(Time::ZERO, EACH, 1), Time::ns(7)); // and four may wait
    }

    #[test]
    fn lines_are_written_back_where_no_request_goes() {
        let mut d = door();
        d.owe(4);
        assert_eq!(d.leave_first(Time::ns(9), EACH, 1), Time::ns(9)); // three are gone
        d.owe(4); // five wait
        assert_eq!(d.leave_first(Time::ns(10), EACH, 1), Time::ns(13));
    }

    /// In the long run each line takes its request and its write-back.
    #[test]
    fn lines_take_both_their_ways_when_they_never_end() {
        let mut d = door();
        let mut at = Time::ZERO;
        for _ in 0..1000 {
            at = d.leave_last(at, EACH, EACH, 1);
            d.owe(1);
        }
        let least = Time::ns(999 + 3 * (999 - 4));
        assert!(at >= least && at <= least + Time::ns(4), "{at:?}");
    }
}
