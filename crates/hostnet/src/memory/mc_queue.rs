//! Memory-controller ingress: reads and writes enter the queues of the channels, or wait for room there.

use super::dram::{self, mapping::Decoded, Overflow};
use super::mshr::MissId;
use super::node::FIRST_NODE;
use super::paths::Path;
use super::stats::AccessClass;
use super::{Agent, Memory, MemoryEvent, MemoryPosts, TxnOp};
use crate::kernel::{ChannelId, Due, LineAddr, NodeId, Time, TxnId};
use std::collections::VecDeque;

#[derive(Clone)]
pub(super) struct McQueue {
    /// Time of the earliest event that the channel has posted and that has not occurred.
    pub next: Due,
    reads: VecDeque<(TxnId, Decoded)>,
    /// Waiting writes by side; see `Memory::side`.
    writes: [VecDeque<Write>; 2],
    /// Number of waiting writes (`own_writes`), and of all waiting requests (`all`).
    own_writes: u32,
    all: u32,
    /// Waiting reads and writes in the order of their arrival, where both share one ingress queue.
    shared: Option<VecDeque<McRequest>>,
    /// Side that supplied the last write.
    pub last: usize,
    /// Node of the channel.
    node: NodeId,
}

impl McQueue {
    pub fn new(overflow: Overflow, node: NodeId) -> McQueue {
        McQueue {
            next: Due::NEVER,
            reads: VecDeque::new(),
            writes: Default::default(),
            own_writes: 0,
            all: 0,
            shared: (overflow == Overflow::Shared).then(VecDeque::new),
            last: 0,
            node,
        }
    }

    /// Number of writes that wait for the channel's write queue.
    pub fn writes_waiting(&self) -> usize {
        let shared = self.shared.iter().flatten().filter(|r| matches!(r, McRequest::Write(_))).count();
        self.writes.iter().map(VecDeque::len).sum::<usize>() + shared
    }

    /// Number of waiting writes that an LLC miss with an MSHR waits for.
    pub fn victims_waiting(&self) -> usize {
        let behind =
            self.shared.iter().flatten().filter_map(|r| if let McRequest::Write(w) = r { Some(w) } else { None });
        self.writes.iter().flatten().chain(behind).filter(|w| w.miss.is_some()).count()
    }

    fn has_waiting(&self) -> bool {
        self.all > 0
    }

    fn has_waiting_writes(&self) -> bool {
        self.own_writes > 0
    }

    /// Queues a write behind the waiting writes of its side.
    fn enqueue_write(&mut self, w: Write, side: usize) {
        self.writes[side].push_back(w);
        self.own_writes += 1;
        self.all += 1;
    }

    /// Queues a read behind the waiting reads.
    fn enqueue_read(&mut self, id: TxnId, at: Decoded) {
        self.reads.push_back((id, at));
        self.all += 1;
    }

    fn dequeue_read(&mut self) -> Option<(TxnId, Decoded)> {
        let r = self.reads.pop_front()?;
        self.all -= 1;
        Some(r)
    }

    /// Takes the write whose turn it is, with the write's side; the sides alternate.
    fn dequeue_write(&mut self) -> Option<(Write, usize)> {
        let turn = 1 - self.last;
        let side = if self.writes[turn].is_empty() { self.last } else { turn };
        let w = self.writes[side].pop_front()?;
        self.last = side;
        self.own_writes -= 1;
        self.all -= 1;
        Some((w, side))
    }
}

/// A write that waits for the channel's write queue.
#[derive(Clone, Copy)]
pub(super) struct Write {
    line: LineAddr,
    at: Decoded,
    since: Time,
    path: Path,
    /// Transaction of a device that waits until the queue takes the write.
    id: Option<TxnId>,
    /// The miss that displaced the line.
    miss: Option<MissId>,
}

/// A request in an ingress queue that reads and writes share.
#[derive(Clone, Copy)]
enum McRequest {
    Read(TxnId, Decoded),
    Write(Write),
}

impl Memory {
    /// Sends a read to the memory controller of its line.
    pub(super) fn read_dram(&mut self, cal: &mut impl MemoryPosts, id: TxnId, class: AccessClass, now: Time) {
        let line = self.txns[id].line;
        let t = &mut self.txns[id];
        t.at_mc = now;
        if t.op != TxnOp::Uncached {
            self.paths.at_home_agent[Path::of(t.op).index()].force(now);
        }
        self.stats.count(class);
        if class != AccessClass::BackgroundRd {
            self.stats.count_tenant_read(self.map.of(line).tenant); // background reads are of no tenant
        }
        let (ch, at) = self.route(line);
        let c = &self.channels[ch];
        if c.shared.is_some() {
            self.enqueue_shared(cal, ch, McRequest::Read(id, at), now);
        } else if !c.reads.is_empty() {
            return self.channels[ch].enqueue_read(id, at); // the channel's next event does not change
        } else if self.has_room(ch, false, now) {
            self.enqueue(ch, line, Some(id), at, now);
        } else {
            self.channels[ch].enqueue_read(id, at);
        }
        self.schedule_channel(cal, ch, now);
    }

    /// Sends a write of node `from` to the memory controller of its line; no transaction waits for the write.
    pub(super) fn write_dram(
        &mut self,
        cal: &mut impl MemoryPosts,
        from: NodeId,
        line: LineAddr,
        class: AccessClass,
        now: Time,
    ) {
        self.write_dram_for(cal, from, line, class, None, now);
    }

    /// Sends a write to the memory controller of its line for a device's transaction `id`, which ends when the queue
    /// has accepted the write. Returns false when no answer will come: a write to another node leaves with the link
    /// immediately.
    pub(super) fn write_dram_for(
        &mut self,
        cal: &mut impl MemoryPosts,
        from: NodeId,
        line: LineAddr,
        class: AccessClass,
        id: Option<TxnId>,
        now: Time,
    ) -> bool {
        self.stats.count(class);
        self.stats.ledger.written += 1;
        if self.functional {
            return false; // no functional access counts for a tenant
        }
        self.stats.count_tenant_write(self.map.of(line).tenant);
        if self.nodes.several() {
            if self.home_of(line) != from {
                self.write_back_to_other_node(cal, from, line, class, now);
                return false;
            }
            self.clear_directory(line);
        }
        self.write_at_home(cal, line, class, id, now);
        id.is_some()
    }

    /// Sends a write that has arrived at its home node to the memory controller.
    #[inline(always)]
    pub(super) fn write_at_home(
        &mut self,
        cal: &mut impl MemoryPosts,
        line: LineAddr,
        class: AccessClass,
        id: Option<TxnId>,
        now: Time,
    ) {
        let (ch, at) = self.route(line);
        let path = if class.is_device_write() || id.is_some() { Path::P2mWrite } else { Path::C2mWrite };
        let miss = self.miss;
        // Constructed in its final place; see `Memory::txn`.
        let w = || Write { line, at, since: now, path, id, miss };
        self.paths.at_home_agent[path.index()].force(now);
        if let Some((m, miss)) = self.mshrs.as_mut().zip(miss) {
            m.add_dependency(miss);
        }
        if self.memory_link.is_some() && path == Path::C2mWrite {
            return self.write_over_link(cal, w(), now);
        }
        if self.channels[ch].shared.is_some() {
            let home = &mut self.nodes[self.channels[ch].node];
            home.waiting[0] += 1;
            home.cha_writes.force(now);
            self.enqueue_shared(cal, ch, McRequest::Write(w()), now);
        } else if !self.channels[ch].has_waiting_writes() && self.has_room(ch, true, now) {
            self.enqueue(ch, line, None, at, now);
            self.on_write_accepted(cal, &w(), now);
        } else {
            let first = !self.channels[ch].has_waiting_writes();
            self.enqueue_write(ch, w(), now);
            if !first {
                return; // the channel's next event does not change
            }
        }
        self.schedule_channel(cal, ch, now);
    }

    /// Sends a write that has crossed the memory link, and holds a credit of the home agent, to the queue of its channel.
    pub(super) fn write_after_link(&mut self, cal: &mut impl MemoryPosts, w: Write, now: Time) {
        let (ch, _) = self.route(w.line);
        if self.channels[ch].shared.is_some() {
            self.enqueue_shared(cal, ch, McRequest::Write(w), now);
        } else if !self.channels[ch].has_waiting_writes() && self.has_room(ch, true, now) {
            self.admit_waiting_write(cal, ch, &w, self.side(w.path), now);
        } else {
            let side = self.side(w.path);
            self.channels[ch].enqueue_write(w, side);
        }
        self.schedule_channel(cal, ch, now);
    }

    /// Moves a write that holds a credit of the home agent into its channel's queue, which has room.
    #[inline(always)]
    fn admit_waiting_write(&mut self, cal: &mut impl MemoryPosts, ch: ChannelId, w: &Write, side: usize, now: Time) {
        let home = &mut self.nodes[self.channels[ch].node];
        home.waiting[side] -= 1;
        home.cha_writes.give(now, w.since);
        self.enqueue(ch, w.line, None, w.at, now);
        self.on_write_accepted(cal, w, now);
    }

    /// Queues a write until the channel's queue has room; the write keeps its credit of the home agent.
    #[inline(always)]
    fn enqueue_write(&mut self, ch: ChannelId, w: Write, now: Time) {
        let side = self.side(w.path);
        let c = &mut self.channels[ch];
        c.enqueue_write(w, side);
        let home = &mut self.nodes[c.node];
        home.waiting[side] += 1;
        home.cha_writes.force(now);
    }

    /// Notes that a channel's queue has accepted a write, and informs the home agent and the device.
    #[inline(always)]
    fn on_write_accepted(&mut self, cal: &mut impl MemoryPosts, w: &Write, now: Time) {
        let Write { path, since, id, miss, .. } = *w;
        if let Some((m, miss)) = self.mshrs.as_mut().zip(miss) {
            m.complete_dependency(cal, miss, now);
        }
        let device = if id.is_none() { Time::ZERO } else { self.lat.ownership };
        let freed = now + device + self.lat.write_ack;
        self.paths.at_home_agent[path.index()].give_at(freed, since);
        if let Some(id) = id {
            let m = &mut self.milestones[id];
            (m.queued, m.data) = (now, now);
            cal.post(freed + self.lat.to_iio, MemoryEvent::Fill(id));
        }
    }

    /// Channel of a line, and its place in the channel.
    #[inline]
    fn route(&self, line: LineAddr) -> (ChannelId, Decoded) {
        let home = if self.nodes.several() { self.home_of(line) } else { FIRST_NODE };
        self.dram.route(home, line)
    }

    #[inline]
    fn enqueue(&mut self, ch: ChannelId, line: LineAddr, reader: Option<TxnId>, at: Decoded, now: Time) {
        let req = dram::DramRequest { token: reader, line, write: reader.is_none(), class: 0 };
        if let Some(id) = reader {
            self.milestones[id].queued = now;
        }
        self.dram.push(now, ch, req, at, &mut self.done);
    }

    /// Whether channel `ch` has room at `now`.
    #[inline]
    fn has_room(&mut self, ch: ChannelId, write: bool, now: Time) -> bool {
        self.dram.can_accept(ch, write) || {
            self.dram.advance(now, ch, &mut self.done);
            self.dram.can_accept(ch, write)
        }
    }

    /// Posts an event for the time at which channel `ch` next has work, and delivers completed reads.
    #[inline(always)]
    fn schedule_channel(&mut self, cal: &mut impl MemoryPosts, ch: ChannelId, now: Time) {
        let c = &mut self.channels[ch];
        if let Some(next) = self.dram.wake(ch, c.has_waiting()) {
            let next = next.max(now);
            if Due::at(next) < c.next {
                c.next = Due::at(next);
                cal.post(next, MemoryEvent::Dram(ch));
            }
        }
        if !self.done.is_empty() {
            self.deliver(cal, ch, now);
        }
    }

    /// Sends data that channel `ch` has read to its requesters.
    #[inline(never)]
    fn deliver(&mut self, cal: &mut impl MemoryPosts, ch: ChannelId, now: Time) {
        for i in 0..self.done.len() {
            let dram::DramCompletion { token, at, .. } = self.done[i];
            let id = token.expect("somebody waits for a read");
            let t = &self.txns[id];
            let at = at.max(now);
            self.stats.dram_latency(at - t.at_mc);
            let (path, through_agent) = (Path::of(t.op), t.op != TxnOp::Uncached);
            let node = &self.nodes[self.channels[ch].node];
            let of_core = t.agent() == Agent::Core;
            let left = match &mut self.memory_link {
                Some(link) if of_core => link.receive(at),
                _ => at,
            };
            let known = left + node.look_up + node.from_dram;
            let private = if of_core { self.lat.from_llc } else { Time::ZERO };
            let (back, at_mc) = (self.latency_from_agent(t) + private, t.at_mc);
            if self.inter_socket.is_some() && self.forward_data(cal, id, known) {
                self.paths.at_home_agent[path.index()].give_at(known, at_mc);
                self.milestones[id].data = at;
                continue;
            }
            // Data goes straight to a core, but the home agent's entry remains until the core has it.
            let freed = if path == Path::C2mRead { known + back } else { known };
            if through_agent {
                self.paths.at_home_agent[path.index()].give_at(freed, at_mc);
            }
            self.milestones[id].data = at;
            cal.post(known + back, MemoryEvent::Fill(id));
        }
        self.done.clear();
    }

    /// Handles `MemoryEvent::Dram`.
    pub fn on_dram(&mut self, cal: &mut impl MemoryPosts, ch: ChannelId, now: Time) {
        if self.channels[ch].next != Due::at(now) {
            return; // an earlier event has replaced this one
        }
        self.channels[ch].next = Due::NEVER;
        let goes_in = self.dram.advance(now, ch, &mut self.done) && self.can_admit(ch);
        if goes_in {
            self.admit_from_queue(cal, ch, now);
        }
        self.schedule_channel(cal, ch, now);
        if goes_in {
            // Credits of the home agent return only when waiting writes enter a queue.
            self.admit_waiting_requests(cal, self.channels[ch].node, now);
        }
    }

    /// Whether a waiting request can enter a queue. Most entries that become free are those of reads, which no request
    /// waits for while writes do.
    #[inline]
    fn can_admit(&self, ch: ChannelId) -> bool {
        let c = &self.channels[ch];
        c.has_waiting_writes() && self.dram.can_accept(ch, true)
            || !c.reads.is_empty() && self.dram.can_accept(ch, false)
            || c.shared.is_some()
    }

    /// Moves waiting requests into the channel's queues as long as there is room.
    #[inline(never)]
    fn admit_from_queue(&mut self, cal: &mut impl MemoryPosts, ch: ChannelId, now: Time) {
        while self.dram.can_accept(ch, true) {
            let Some((w, side)) = self.channels[ch].dequeue_write() else { break };
            self.admit_waiting_write(cal, ch, &w, side, now);
        }
        while self.dram.can_accept(ch, false) {
            let Some((id, at)) = self.channels[ch].dequeue_read() else { break };
            self.enqueue(ch, self.txns[id].line, Some(id), at, now);
        }
        self.serve_shared(cal, ch, now);
    }

    /// Adds a request to a channel with a shared ingress queue: it enters while both queues have room, and waits
    /// otherwise.
    fn enqueue_shared(&mut self, cal: &mut impl MemoryPosts, ch: ChannelId, r: McRequest, now: Time) {
        if self.both_have_room(ch) || self.dram.advance(now, ch, &mut self.done) && self.both_have_room(ch) {
            self.admit_to_channel(cal, ch, r, now);
        } else {
            let c = &mut self.channels[ch];
            c.shared.as_mut().expect("a shared door").push_back(r);
            c.all += 1;
        }
    }

    fn both_have_room(&self, ch: ChannelId) -> bool {
        self.dram.can_accept(ch, false) && self.dram.can_accept(ch, true)
    }

    /// Moves the first request of a shared ingress queue into the channel's queue; one may enter after each command.
    fn serve_shared(&mut self, cal: &mut impl MemoryPosts, ch: ChannelId, now: Time) {
        if self.both_have_room(ch) {
            if let Some(r) = self.channels[ch].shared.as_mut().and_then(VecDeque::pop_front) {
                self.channels[ch].all -= 1;
                self.admit_to_channel(cal, ch, r, now);
            }
        }
    }

    fn admit_to_channel(&mut self, cal: &mut impl MemoryPosts, ch: ChannelId, r: McRequest, now: Time) {
        let (line, reader, at) = match r {
            McRequest::Read(id, at) => (self.txns[id].line, Some(id), at),
            McRequest::Write(w) => (w.line, None, w.at),
        };
        self.enqueue(ch, line, reader, at, now);
        if let McRequest::Write(w) = r {
            let home = &mut self.nodes[self.channels[ch].node];
            home.waiting[0] -= 1;
            home.cha_writes.give(now, w.since);
            self.on_write_accepted(cal, &w, now);
        }
    }
}
