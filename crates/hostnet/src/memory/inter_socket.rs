//! Inter-socket coherence: requests that travel between two nodes over their links.
//!
//! ```text
//!   core -> own agent --message--> home agent: snoop filter, LLC, memory     line of the other node
//!        <-           <---data----
//!   core -> own agent = home agent --message--> other agent: LLC, L2         line of the own node that the other has
//!        <-                        <---data----
//! ```
//!
//! Tags change when the home agent looks up the line. A snoop only takes time on its path, and later requests for the
//! line wait until its answer has arrived.

use super::filter::cores_of;
use super::home::{DataGrant, LookupResult, CORES};
use super::line_table::LineTurn;
use super::links::{InterSocket, LinkLeg, Trip};
use super::paths::Milestones;
use super::protocol::{CopyState, PrivateAction};
use super::protocol_nodes::{crossing, Copies, CoreRequest, NodeDataSource, NodeSide, NodeTransition};
use super::region::{RegionKind, Sharing};
use super::request::{Agent, Sender};
use super::shadow::CopyPlace;
use super::stats::AccessClass;
use super::{Memory, MemoryEvent, MemoryPosts, Node, Sweep, Txn, TxnOp};
use crate::kernel::{CoreId, LineAddr, NodeId, Time, TxnId};

/// Result of a look-up over both nodes.
enum NodeLookup {
    /// The node answers by itself, as a machine of one node does.
    Here(LookupResult),
    /// The agent of the other node takes part, and also its cores if `asks`.
    Across { row: NodeTransition, asks: bool, with: DataGrant },
}

impl Memory {
    /// Inter-socket links, where the machine has several nodes.
    pub fn inter_socket(&self) -> Option<&InterSocket> {
        self.inter_socket.as_deref()
    }

    fn inter_socket_mut(&mut self) -> &mut InterSocket {
        self.inter_socket.as_deref_mut().expect("several nodes")
    }

    /// Time of a crossing between a memory controller and a home agent of its node, where the fixed latency of memory does
    /// not include it.
    pub fn crossing(&self) -> Time {
        self.nodes.iter().map(|n| n.crossing).min().unwrap_or(Time::ZERO)
    }

    /// Time that a message takes from a home agent to its node's link agent, and from the other node's link agent to a
    /// home agent there. An answer comes straight from where the data is.
    fn crossings(&self) -> Time {
        self.nodes.iter().map(|n| n.crossing).fold(Time::ZERO, |sum, t| sum + t)
    }

    /// Whether the LLC of a node other than `core`'s holds `line`.
    #[inline]
    pub(super) fn other_llc_holds(&self, core: CoreId, line: LineAddr) -> bool {
        self.nodes.several() && {
            let own = self.node_of_core(core);
            self.nodes.enumerate().any(|(n, node)| n != own && node.llc.find(line).is_some())
        }
    }

    /// Copies of a request's line in `node`, without those of the requesting core.
    fn copies_in(&self, node: NodeId, t: &Txn) -> Copies {
        let (line, who) = (t.line, t.core());
        let own = u16::from(t.entry.is_some() && t.op == TxnOp::Read);
        let mut private = CopyState::Nowhere;
        // The filter may name a core that has lost the line, but not while the line is being delivered to it.
        let on_its_way = if self.lines.readers(line) > own { CopyState::Clean } else { CopyState::Nowhere };
        if self.sharing(line) == Sharing::Shared {
            for c in cores_of(self.shared.holders(line)) {
                if c != who && self.node_of_core(c) == node {
                    private = private.max(self.private_copy(c, line).max(on_its_way));
                }
            }
        }
        Copies { private, llc: self.llc_copy(node, line) }
    }

    /// Row of the inter-socket protocol table for a request, and the copies in the node that is not the requester's.
    fn row(&self, t: &Txn) -> (NodeTransition, Copies) {
        let who = t.core();
        let near = self.node_of_core(who);
        let want = match t.op {
            TxnOp::Own if self.holds(who, t.line) => CoreRequest::Upgrade,
            TxnOp::Own => CoreRequest::Own,
            _ => CoreRequest::Read,
        };
        let side = if self.home_of(t.line) == near { NodeSide::Near } else { NodeSide::Far };
        let far = self.copies_in(self.nodes.other_than(near), t);
        let p = &self.inter_socket.as_ref().expect("several nodes").protocol;
        (crossing(want, self.copies_in(near, t), far, side, p), far)
    }

    /// Whether the requester's own node can answer a request without the other node and without memory.
    fn is_answered_locally(&self, t: &Txn) -> bool {
        let (row, _) = self.row(t);
        !row.snoops_far() && row.source != NodeDataSource::Memory
    }

    /// Continues a request that has arrived at its home node; returns false for a request that did not travel.
    #[inline]
    pub(super) fn begin_at_home(&mut self, cal: &mut impl MemoryPosts, id: TxnId, now: Time) -> bool {
        self.inter_socket.is_some() && self.begin_after_crossing(cal, id, now)
    }

    #[cold]
    fn begin_after_crossing(&mut self, cal: &mut impl MemoryPosts, id: TxnId, now: Time) -> bool {
        if !self.inter_socket_mut().trip(id).travelled {
            return false;
        }
        let m = &mut self.milestones[id];
        (m.home, m.queued, m.data) = (now, now, now);
        if self.txns[id].op == TxnOp::Stream {
            self.stream_at_home(cal, id, now);
        } else {
            self.enqueue_for_line(cal, id, now);
        }
        true
    }

    /// Starts a core's read at the agent of its own node.
    #[cold]
    pub(super) fn core_read_between_nodes(&mut self, cal: &mut impl MemoryPosts, id: TxnId, now: Time) {
        let t = self.txns[id];
        let near = self.node_of_core(t.core());
        if self.home_of(t.line) != near && !self.is_answered_locally(&t) {
            return self.send_to_other_node(cal, id, now);
        }
        self.enqueue_for_line(cal, id, now);
    }

    /// Orders a request among the requests for its line, and starts it when its turn has come.
    fn enqueue_for_line(&mut self, cal: &mut impl MemoryPosts, id: TxnId, now: Time) {
        let Txn { line, op, entry, .. } = self.txns[id];
        if entry.is_none() && self.map.of(line).is_ordered() {
            match self.lines.enqueue(line, id, op == TxnOp::Own) {
                LineTurn::Now { epoch } => self.txns[id].entry = Some(epoch),
                LineTurn::Later => return,
            }
        }
        self.serve_between_nodes(cal, id, now);
    }

    /// Sends a core's read to the other node when a credit is free. A read with an entry in the line table already has
    /// a credit.
    fn send_to_other_node(&mut self, cal: &mut impl MemoryPosts, id: TxnId, now: Time) {
        let Txn { line, entry, op, .. } = self.txns[id];
        let who = self.txns[id].core();
        let near = self.node_of_core(who);
        let look_up = self.nodes[near].look_up + self.crossings();
        let b = self.inter_socket_mut();
        let credits = &mut b.directions[near].credits;
        if credits.free() == 0 && entry.is_none() {
            credits.refuse();
            return b.directions[near].waiting.push_back(id);
        }
        credits.force(now);
        let at = b.send(near, line, op == TxnOp::Stream, now) + look_up;
        *b.trip(id) = Trip { leg: LinkLeg::ToHome, credit: Some(now), ..Trip::default() };
        cal.post(at, MemoryEvent::Link(id));
    }

    /// Performs a request whose turn has come.
    #[cold]
    pub(super) fn serve_between_nodes(&mut self, cal: &mut impl MemoryPosts, id: TxnId, now: Time) {
        if self.is_superseded(id) {
            return self.enqueue_for_line(cal, id, now);
        }
        let t = self.txns[id];
        let (near, home) = (self.node_of_core(t.core()), self.home_of(t.line));
        let travelled = self.inter_socket_mut().trip(id).travelled;
        if near != home && !travelled && !self.is_answered_locally(&t) {
            return self.send_to_other_node(cal, id, now);
        }
        let back = LinkLeg::Back { from: home };
        match self.look_up_both_nodes(cal, &t, now) {
            NodeLookup::Here(LookupResult::Here { snoop, with }) => {
                self.record_grant(id, with);
                let Node { noc, look_up, .. } = self.nodes[near];
                if !travelled {
                    return cal.post(now + look_up + snoop + noc, MemoryEvent::Fill(id));
                }
                // The line has come to the requester's node in the meantime, so the home agent sends the request back.
                let leaves = now + self.nodes[home].look_up;
                let trip = self.inter_socket_mut().trip(id);
                (trip.leg, trip.data, trip.awaits, trip.more) = (back, false, 1, look_up + snoop);
                self.send_answer(cal, id, leaves);
            }
            NodeLookup::Here(LookupResult::InDram(class)) => {
                self.record_copy(t.line, CopyPlace::Dram, CopyPlace::ToCore(t.core()));
                if travelled {
                    let changes = self.mark_in_directory(&t, false);
                    let trip = self.inter_socket_mut().trip(id);
                    (trip.leg, trip.data, trip.awaits, trip.changes_directory) = (back, true, 1, changes);
                }
                self.read_dram(cal, id, class, now);
            }
            NodeLookup::Across { row, asks, with } => {
                self.record_grant(id, with);
                let far = self.nodes.other_than(near);
                let asked = if asks { self.snoop_latency(far) } else { Time::ZERO };
                let mut leaves = now + self.nodes[far].look_up + asked;
                if home == near {
                    let own = self.nodes[near].look_up + self.crossings();
                    leaves = leaves + own + (self.inter_socket_mut().send(near, t.line, false, now) - now);
                }
                let trip = self.inter_socket_mut().trip(id);
                (trip.leg, trip.awaits) = (LinkLeg::Back { from: far }, 1);
                trip.data = row.source == NodeDataSource::Far;
                self.send_answer(cal, id, leaves);
                if row.speculates {
                    self.issue_speculative_read(cal, id, now);
                }
            }
        }
    }

    /// Notes the rights and duties that come with a request's answer.
    fn record_grant(&mut self, id: TxnId, with: DataGrant) {
        let t = &mut self.txns[id];
        if t.entry.is_some() && matches!(with, DataGrant::Line { .. }) {
            self.lines.take_ownership(t.line, id);
        }
        with.record(t);
    }

    /// Sends an answer at `at` that needs no read of memory.
    fn send_answer(&mut self, cal: &mut impl MemoryPosts, id: TxnId, at: Time) {
        let m = &mut self.milestones[id];
        (m.owner, m.queued, m.data) = (at, at, at);
        cal.post(at, MemoryEvent::Link(id));
    }

    /// Reads memory in parallel with the snoop of `parent`, and the answer to the snoop waits for this read.
    fn issue_speculative_read(&mut self, cal: &mut impl MemoryPosts, parent: TxnId, now: Time) {
        let t = self.txns[parent];
        let class = AccessClass::of_read(self.map.of(t.line).kind);
        let id = self.txn(Txn { sender: Sender::Background, class, ..Txn::new(TxnOp::Read, t.line, t.core(), now) });
        self.milestones[id] = Milestones::at(now, now);
        let b = self.inter_socket_mut();
        b.speculative_reads += 1;
        *b.trip(id) = Trip { leg: LinkLeg::Useless { parent }, ..Trip::default() };
        let more = b.protocol.speculative_penalty.into();
        let trip = b.trip(parent);
        (trip.awaits, trip.more) = (2, more);
        self.read_dram(cal, id, class, now);
    }

    /// Sends memory's data for transaction `id`, which the home agent receives at `known`, over the link; returns false
    /// when the data stays in the node.
    #[cold]
    pub(super) fn forward_data(&mut self, cal: &mut impl MemoryPosts, id: TxnId, known: Time) -> bool {
        let leg = self.inter_socket_mut().trip(id).leg;
        let travels = matches!(leg, LinkLeg::Back { .. } | LinkLeg::Useless { .. });
        if travels {
            cal.post(known, MemoryEvent::Link(id));
        }
        travels
    }

    /// Handles `MemoryEvent::Link`: a transaction goes on over the inter-socket link.
    pub fn on_link(&mut self, cal: &mut impl MemoryPosts, id: TxnId, now: Time) {
        let Txn { line, class, .. } = self.txns[id];
        let home = self.home_of(line);
        let b = self.inter_socket_mut();
        let trip = b.trip(id);
        match trip.leg {
            LinkLeg::None => unreachable!("no leg"),
            LinkLeg::ToHome => {
                (trip.leg, trip.travelled) = (LinkLeg::None, true);
                let waits = !self.nodes[home].admission[CORES].is_empty() || !self.can_admit_lane(home, CORES);
                if waits {
                    self.nodes[home].admission[CORES].push_back(id);
                } else {
                    self.begin_at_home(cal, id, now);
                }
            }
            LinkLeg::Back { from } => {
                let data = trip.data;
                trip.crossed = true;
                let changes = std::mem::take(&mut trip.changes_directory);
                let at = b.send(from, line, data, now);
                if changes {
                    self.write_directory(cal, line, now);
                }
                self.on_partial_answer(cal, id, at);
            }
            LinkLeg::Useless { parent } => {
                self.free_txn(id);
                self.on_partial_answer(cal, parent, now);
            }
            LinkLeg::Write => {
                self.free_txn(id);
                self.clear_directory(line);
                self.write_at_home(cal, line, class, None, now);
            }
        }
    }

    /// Notes that one of the parts that an answer waits for arrives at `at`.
    fn on_partial_answer(&mut self, cal: &mut impl MemoryPosts, id: TxnId, at: Time) {
        let near = self.node_of_core(self.txns[id].core());
        let noc = self.nodes[near].noc;
        let trip = self.inter_socket_mut().trip(id);
        trip.ready = trip.ready.max(at);
        trip.awaits -= 1;
        if trip.awaits == 0 {
            let (ready, more) = (trip.ready, trip.more);
            self.milestones[id].back = ready;
            cal.post(ready + more + noc, MemoryEvent::Fill(id));
        }
    }

    /// Returns the link credit of an answered transaction that may have crossed, and sends the next request that waits
    /// for a credit.
    #[cold]
    pub(super) fn end_crossing(&mut self, cal: &mut impl MemoryPosts, id: TxnId, now: Time) {
        let t = self.txns[id];
        let trip = *self.inter_socket_mut().trip(id);
        if trip.crossed && t.agent() == Agent::Core {
            let remote = &mut self.stats.remote[t.core()];
            match t.op {
                TxnOp::Own => remote.rfos += 1,
                TxnOp::Read => remote.reads += 1,
                _ => {}
            }
            if let Some(n) = &mut self.off_core {
                n.note_remote(t.thread(), self.map.id(t.line), t.line, t.op);
            }
        }
        let Some(since) = trip.credit else { return };
        let near = self.node_of_core(t.core());
        let d = &mut self.inter_socket_mut().directions[near];
        d.credits.give(now, since);
        if let Some(next) = d.waiting.pop_front() {
            self.send_to_other_node(cal, next, now);
        }
    }

    /// Sends cache maintenance of `lines` lines from `core` now; each line with another home node takes a message over
    /// the link. Returns when the last message arrives.
    pub fn maintain(
        &mut self,
        cal: &mut impl MemoryPosts,
        core: CoreId,
        line: LineAddr,
        lines: u32,
        op: Sweep,
        now: Time,
    ) -> Time {
        let out = self.latency_to_agent(core);
        let mut at = now + out;
        if self.nodes.several() && self.home_of(line) != self.node_of_core(core) {
            let near = self.node_of_core(core);
            let look_up = self.nodes[near].look_up + self.crossings();
            for l in line.span(lines) {
                at = at.max(self.inter_socket_mut().send(near, l, false, now) + out + look_up);
            }
        }
        cal.post(at, MemoryEvent::sweep(line, lines, op));
        at
    }

    /// Writes a line back from node `from` to the other node.
    #[cold]
    pub(super) fn write_back_to_other_node(
        &mut self,
        cal: &mut impl MemoryPosts,
        from: NodeId,
        line: LineAddr,
        class: AccessClass,
        now: Time,
    ) {
        let id =
            self.txn(Txn { sender: Sender::Background, class, ..Txn::new(TxnOp::WriteBack, line, CoreId(0), now) });
        let b = self.inter_socket_mut();
        *b.trip(id) = Trip { leg: LinkLeg::Write, ..Trip::default() };
        let at = b.send(from, line, true, now) + self.crossings();
        cal.post(at, MemoryEvent::Link(id));
    }

    /// Performs a core's store of a whole line that bypasses the caches, at the agent of the core's node. The store is
    /// done when the home node has the line and no cache has a copy.
    #[cold]
    pub(super) fn stream_between_nodes(&mut self, cal: &mut impl MemoryPosts, id: TxnId, now: Time) {
        let Txn { line, .. } = self.txns[id];
        let who = self.txns[id].core();
        let near = self.node_of_core(who);
        if self.home_of(line) != near {
            return self.send_to_other_node(cal, id, now);
        }
        let far = self.nodes.other_than(near);
        let there = self.copies_in(far, &self.txns[id]);
        self.stream(cal, near, line, now);
        if there.none() {
            return cal.post(now + self.nodes[near].noc, MemoryEvent::Fill(id));
        }
        let own = self.nodes[near].look_up + self.crossings();
        let asked = if there.private == CopyState::Nowhere { Time::ZERO } else { self.snoop_latency(far) };
        let at = self.inter_socket_mut().send(near, line, false, now) + own + self.nodes[far].look_up + asked;
        let trip = self.inter_socket_mut().trip(id);
        (trip.leg, trip.awaits) = (LinkLeg::Back { from: far }, 1);
        self.send_answer(cal, id, at);
    }

    fn stream_at_home(&mut self, cal: &mut impl MemoryPosts, id: TxnId, now: Time) {
        let line = self.txns[id].line;
        let home = self.home_of(line);
        self.stream(cal, home, line, now);
        let trip = self.inter_socket_mut().trip(id);
        (trip.leg, trip.awaits) = (LinkLeg::Back { from: home }, 1);
        let at = now + self.nodes[home].look_up;
        self.send_answer(cal, id, at);
    }

    /// Answers a core's request on several nodes in functional mode.
    #[cold]
    pub(super) fn look_up_both_nodes_functional(&mut self, cal: &mut impl MemoryPosts, mut t: Txn) -> Txn {
        match self.look_up_both_nodes(cal, &t, t.issued) {
            NodeLookup::Here(LookupResult::Here { with, .. }) | NodeLookup::Across { with, .. } => with.record(&mut t),
            NodeLookup::Here(LookupResult::InDram(class)) => {
                self.mark_in_directory(&t, false);
                self.stats.count(class);
            }
        }
        t
    }

    /// Performs the effects of a core's request on the caches of both nodes.
    fn look_up_both_nodes(&mut self, cal: &mut impl MemoryPosts, t: &Txn, now: Time) -> NodeLookup {
        let (row, there) = self.row(t);
        let local = !row.snoops_far() && row.source != NodeDataSource::Nobody || row.source == NodeDataSource::Memory;
        if local {
            return NodeLookup::Here(self.look_up(cal, t, now));
        }
        let (line, who) = (t.line, t.core());
        let near = self.node_of_core(who);
        let far = self.nodes.other_than(near);
        let (tenant, kind) = (self.map.of(line).tenant, self.map.of(line).kind);
        self.record_use(t, kind);
        let counts = &mut self.stats.tenants[tenant];
        counts.app += u64::from(kind == RegionKind::App);
        counts.llc_misses += 1;
        self.stats.cores[who].llc_misses += 1;
        let own = t.op == TxnOp::Own;
        if own || row.far == PrivateAction::Drop {
            self.notify_watchers(cal, line, now);
        }
        let asks = there.private != CopyState::Nowhere
            && (own
                || there.private == CopyState::Dirty
                || there.llc == CopyState::Nowhere
                || row.far == PrivateAction::Drop);
        self.record_source(&row, line, who, far);
        let holders = self.shared.holders(line);
        let (mut dirty, mut peers) = (0, false);
        for c in cores_of(holders).filter(|c| *c != who) {
            if self.node_of_core(c) == near {
                if own {
                    peers = true;
                    dirty += self.invalidate_in(c, line).dirty;
                    self.shared.drop_holder(line, c);
                }
                continue;
            }
            match row.far {
                PrivateAction::Stay => {}
                PrivateAction::Share => dirty += u64::from(self.clean_in(c, line)),
                PrivateAction::Drop => {
                    dirty += self.invalidate_in(c, line).dirty;
                    self.shared.drop_holder(line, c);
                }
            }
        }
        if let Some(s) = self.nodes[far].llc.find(line).filter(|_| row.far != PrivateAction::Stay) {
            dirty += u64::from(self.nodes[far].llc.is_dirty(s));
            if row.far == PrivateAction::Drop {
                self.nodes[far].llc.remove(s);
            } else {
                self.nodes[far].llc.set_dirty(s, false);
            }
        }
        // The LLC of the requester's node gives up a line that the requester is going to write.
        let gives = self.llc_protocol.gives_to_stores();
        let slot = self.nodes[near].llc.find(line).filter(|_| own);
        let kept = slot.is_some() && !gives;
        if let Some(s) = slot.filter(|_| gives) {
            dirty += u64::from(self.nodes[near].llc.remove(s));
        }
        self.stats.ledger.merged += dirty.saturating_sub(1);
        self.shared.add(line, who);
        if row.written {
            // The line travels with the answer, or is already at its home node.
            let home = self.home_of(line);
            self.write_dram(cal, home, line, AccessClass::of_eviction(kind), now);
            dirty = 0;
        }
        let takes = row.source == NodeDataSource::Far && row.far == PrivateAction::Drop;
        // Shared data is written together with its new state.
        if self.mark_in_directory(t, takes) && !row.written {
            self.write_directory(cal, line, now);
        }
        let with = match row.far {
            _ if kept => DataGrant::Copy,
            PrivateAction::Drop => DataGrant::Line { dirty: dirty > 0 },
            _ if own => DataGrant::Line { dirty: dirty > 0 },
            _ => DataGrant::Data,
        };
        if row.source == NodeDataSource::Nobody && row.far == PrivateAction::Stay {
            let snoop = if peers { self.snoop_latency(near) } else { Time::ZERO };
            return NodeLookup::Here(LookupResult::Here { snoop, with });
        }
        NodeLookup::Across { row, asks, with }
    }

    /// Notes in the directory that memory keeps that the node that is not the line's home has a copy; returns whether the
    /// line must be written because this state is new. A home agent whose caches supply the line does not know the state
    /// in memory, so that the state is written each time the other node `takes` the line.
    fn mark_in_directory(&mut self, t: &Txn, takes: bool) -> bool {
        let is_home = self.node_of_core(t.core()) == self.home_of(t.line);
        let Memory { inter_socket, map, functional, .. } = self;
        let Some(local) = inter_socket.as_deref_mut().and_then(|b| b.directory.as_mut()).filter(|_| !is_home) else {
            return false;
        };
        let is_new = takes || local.has(map, t.line);
        local.remove(map, t.line);
        is_new && !*functional
    }

    /// Writes `line` to its home's memory because its state in the directory has changed.
    fn write_directory(&mut self, cal: &mut impl MemoryPosts, line: LineAddr, now: Time) {
        self.inter_socket_mut().directory_writes += 1;
        let (kind, tenant) = (self.map.of(line).kind, self.map.of(line).tenant);
        let class = AccessClass::of_eviction(kind);
        self.stats.count(class);
        self.stats.count_tenant_write(tenant);
        self.write_at_home(cal, line, class, None, now);
    }

    /// Notes that `line` is written to its home's memory, with the state that the other node has no copy.
    pub(super) fn clear_directory(&mut self, line: LineAddr) {
        let Memory { inter_socket, map, .. } = self;
        if let Some(local) = inter_socket.as_deref_mut().and_then(|b| b.directory.as_mut()) {
            local.add(map, line);
        }
    }

    /// Notes, if there is a shadow memory, which copy supplies the answer and memory.
    fn record_source(&mut self, row: &NodeTransition, line: LineAddr, who: CoreId, far: NodeId) {
        if self.shadow.is_none() {
            return;
        }
        let near = self.node_of_core(who);
        let far_cores = || cores_of(self.shared.holders(line)).filter(|c| self.node_of_core(*c) == far);
        let writer = far_cores().find(|c| self.private_copy(*c, line) == CopyState::Dirty);
        let from = match row.source {
            NodeDataSource::Nobody => CopyPlace::Core(who),
            NodeDataSource::Near | NodeDataSource::Memory => CopyPlace::Llc(near),
            NodeDataSource::Far if writer.is_none() && self.llc_copy(far, line) != CopyState::Nowhere => {
                CopyPlace::Llc(far)
            }
            NodeDataSource::Far => match writer.or_else(|| far_cores().find(|c| self.holds(*c, line))) {
                Some(c) => CopyPlace::Core(c),
                None => CopyPlace::ToCore(far_cores().next().expect("a copy")),
            },
        };
        self.record_copy(line, from, CopyPlace::ToCore(who));
        if row.written {
            self.record_copy(line, from, CopyPlace::Dram);
            self.record_copy(line, from, CopyPlace::Llc(far));
        }
    }
}
