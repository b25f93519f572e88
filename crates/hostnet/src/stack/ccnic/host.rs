//! The host's thread of a queue pair, which writes and sends packets, and reads the packets that return.

use super::rings::{
    Consumer, Desc, PostHost, Producer, Publication, RingWords, BLANKS, BLANKS_LEAST, CHAINED, GROUP, NO_RECYCLE,
};
use super::spec::PoolKind;
use super::{lines_of, CcnicEffect, CcnicInterface, CcnicThreadState, Demand, DuePackets, RingKind};
use crate::core::{Op, Program};
use crate::kernel::Int;
use crate::kernel::LineAddr;
use crate::meter::life::Milestone;
use crate::stack::{Awaited, Ctx, Step};
use std::collections::VecDeque;

/// Instructions of a pause in which a thread that can make no progress waits.
const PAUSE: u32 = 200;

#[derive(Clone)]
enum HostReceiveRing {
    Lines(Consumer),
    Slots(PostHost),
}

impl HostReceiveRing {
    /// The line to poll, or None when a unit is known to be ready.
    fn line_to_poll(&self) -> Option<LineAddr> {
        match self {
            HostReceiveRing::Lines(r) => r.line_to_poll(),
            HostReceiveRing::Slots(r) => r.line_to_poll(),
        }
    }
    fn line(&self) -> LineAddr {
        match self {
            HostReceiveRing::Lines(r) => r.line(),
            HostReceiveRing::Slots(r) => r.line(),
        }
    }
    fn finds(&self, words: &RingWords) -> bool {
        match self {
            HostReceiveRing::Lines(r) => r.finds(words),
            HostReceiveRing::Slots(r) => r.finds(words),
        }
    }
    /// Maximum number of descriptors of a unit.
    fn group(&self) -> usize {
        match self {
            HostReceiveRing::Lines(r) => r.shape.group,
            HostReceiveRing::Slots(_) => 1,
        }
    }
}

#[derive(Clone)]
pub struct CcnicHost {
    pub(super) common: CcnicThreadState,
    pub(super) tx: Producer,
    rx: HostReceiveRing,
    pub(super) demand: Demand,
    header_only: bool,
    /// Number of packets that have been sent and have not returned.
    under_way: u32,
    /// Descriptors that were taken from the ring and have not been processed: descriptors of the burst that is being
    /// gathered, and descriptors for which the last burst had no room.
    pub(super) taken: VecDeque<Desc>,
    /// Whether a poll comes next.
    owes_poll: bool,
    /// Whether the last poll was for further packets of a burst.
    gathers: bool,
    /// Whether the last step waited for buffers or for room in the ring.
    pub(super) stuck: bool,
    /// Buffers of the burst that is being received.
    pub(super) received: Vec<u32>,
    /// Sent buffers whose transmission has not completed, with their unit's index, where only the host manages buffers.
    pub(super) awaiting_completion: VecDeque<(u64, u32)>,
    /// Objects sent from their place in memory whose transmission has not completed: their unit's index, and the line
    /// that counts their users.
    pub(super) objects: VecDeque<(u64, LineAddr)>,
    posted: u32,
    /// Whether the next descriptor continues a packet.
    pub(super) continues: bool,
    /// Line of the descriptors of the packets that were taken last.
    last: LineAddr,
    /// Line of descriptors that was read last.
    read: Option<LineAddr>,
    /// Last line of a burst's descriptors that a register has announced; the line may still be in flight.
    announced_by_register: Option<LineAddr>,
}

impl CcnicHost {
    /// A host thread that sends the packets that `app` describes; None for a thread that sends no packets of its own.
    pub(super) fn new(
        mut common: CcnicThreadState,
        i: &CcnicInterface,
        header_only: bool,
        demand: Demand,
    ) -> CcnicHost {
        common.metadata_lines = i.metadata_lines.to_u32();
        let (spec, q) = (&common.spec, common.queue.to_u64());
        let tx = Producer::new(i.memory.tx(spec, q));
        let shape = i.memory.rx(spec, q);
        let rx = match spec.pool {
            PoolKind::Shared => {
                let lazy = u64::from(spec.quirks.lazy_release) * GROUP.to_u64() / shape.group.to_u64();
                // The read-ahead leaves room for one prefetch of each payload.
                HostReceiveRing::Lines(Consumer::new(common.reads(shape, 1), lazy))
            }
            PoolKind::Host => HostReceiveRing::Slots(PostHost::new(shape)),
        };
        CcnicHost {
            common,
            tx,
            rx,
            demand,
            header_only,
            under_way: 0,
            taken: VecDeque::new(),
            owes_poll: false,
            gathers: false,
            stuck: false,
            received: Vec::new(),
            awaiting_completion: VecDeque::new(),
            objects: VecDeque::new(),
            posted: 0,
            continues: false,
            last: LineAddr(0),
            read: None,
            announced_by_register: None,
        }
    }

    /// Number of buffers that the thread holds outside its stacks.
    pub(super) fn held(&self) -> usize {
        self.taken.len() + self.received.len() + self.awaiting_completion.len() + self.posted.to_usize()
    }

    /// Lines that the thread accesses of a buffer with `bytes` bytes, which is the `first` one of its packet or not.
    pub(super) fn touched(&self, bytes: u32, first: bool) -> u32 {
        match (self.header_only, first) {
            (true, first) => u32::from(first),
            (false, _) => lines_of(bytes),
        }
    }

    pub(super) fn step(&mut self, c: &mut Ctx) -> Step {
        if self.owes_poll {
            return self.poll_next(c);
        }
        if std::mem::take(&mut self.common.polled) {
            let gathers = std::mem::take(&mut self.gathers) || self.taken.is_empty();
            if gathers && self.gathers_more(c) {
                self.gathers = true;
                return Step::Run;
            }
            let mut got = self.receive(c);
            got |= self.end_receive(c);
            let sent = self.send(c);
            if !got && !sent {
                return self.wait(c);
            }
        } else {
            self.end_receive(c);
            self.send(c);
        }
        self.owes_poll = true;
        if !c.program.ops.is_empty() {
            return Step::Run; // the thread sees a ready unit when the core's time has reached this point
        }
        self.poll_next(c)
    }

    fn poll_next(&mut self, c: &mut Ctx) -> Step {
        self.owes_poll = false;
        if self.taken.is_empty() {
            self.poll(true, c);
        } else {
            self.common.poll(None, true, true, c.program);
        }
        Step::Run
    }

    /// Takes the units that are ready and polls again for further packets of the burst; returns false when the burst is
    /// complete.
    pub(super) fn gathers_more(&mut self, c: &mut Ctx) -> bool {
        let before = self.taken.len();
        if self.tx.shape.register && self.rx.line_to_poll().is_some() {
            self.read = None; // the tail may have moved within the line that was read last
        }
        self.take(c);
        let room = (self.common.spec.rx_batch.to_usize()).saturating_sub(self.taken.len());
        let more = self.taken.len() > before && room >= self.rx.group();
        if more {
            self.poll(false, c);
        }
        more
    }

    /// Polls the receive ring; `first` begins a new burst.
    pub(super) fn poll(&mut self, first: bool, c: &mut Ctx) {
        let there = c.roles.get::<CcnicInterface>().is_some_and(|i| self.rx.finds(&i.pairs[self.common.queue].rx));
        self.common.poll(self.rx.line_to_poll(), there, first, c.program);
    }

    /// The line that shows whether packets are ready.
    pub(super) fn polled_line(&self) -> LineAddr {
        self.rx.line_to_poll().unwrap_or(self.rx.line())
    }

    /// Packets that the generator was asked for.
    pub(super) fn due_packets(&self) -> Option<DuePackets> {
        self.demand.packets()
    }

    /// Waits when no packet has arrived and none can be sent.
    fn wait(&mut self, c: &mut Ctx) -> Step {
        if !c.program.ops.is_empty() {
            return Step::Run; // the thread has read the lines
        }
        let on = Awaited::Line(self.polled_line());
        let instructions = self.common.spec.quirks.costs.poll;
        match self.demand.next() {
            Some(until) => Step::WaitUntil { on, instructions, until },
            None if self.under_way > 0 => Step::Wait { on, instructions },
            None => {
                // There is no buffer, or no room in the ring; the other side will return some.
                self.stuck = true;
                c.program.compute(PAUSE);
                Step::Run
            }
        }
    }

    /// Takes the next unit of the receive ring, if it is ready.
    fn take(&mut self, c: &mut Ctx) {
        let Some(i) = c.roles.get_mut::<CcnicInterface>() else { return };
        let words = &i.pairs[self.common.queue].rx;
        let mut descs = [Desc::default(); GROUP];
        let mut ahead = Vec::new();
        let line = self.rx.line();
        let room = (self.common.spec.rx_batch.to_usize()).saturating_sub(self.taken.len());
        let more = (room / self.rx.group()).saturating_sub(1);
        let asked = self.rx.line_to_poll().is_some();
        let n = match &mut self.rx {
            HostReceiveRing::Lines(r) => r.poll(words, more.to_u64(), &mut descs, &mut |l| ahead.push(l)),
            HostReceiveRing::Slots(r) => match r.poll(words) {
                Some(d) => {
                    descs[0] = d;
                    1
                }
                None => 0,
            },
        };
        if asked {
            self.common.train_predictor(n > 0);
        }
        if n == 0 {
            return;
        }
        let p = &mut *c.program;
        if Some(line) != self.read || !self.tx.shape.register {
            p.push(Op::Anchor { line });
            self.read = Some(line);
        }
        self.last = line;
        self.announced_by_register = self.tx.shape.register.then_some(line);
        ahead.into_iter().for_each(|line| p.push(Op::Ahead { line }));
        p.compute(self.common.spec.quirks.costs.unit);
        for d in &descs[..n] {
            p.push(Op::DependentPrefetch { line: i.line(d.buffer - 1) });
            i.passes(d.buffer - 1, Milestone::FoundByHost);
        }
        self.taken.extend(&descs[..n]);
        if let HostReceiveRing::Slots(_) = self.rx {
            self.posted -= n.to_u32();
        }
    }

    /// Reads the packets that were taken, up to the size of a burst. Returns false when there are none.
    fn receive(&mut self, c: &mut Ctx) -> bool {
        let batch = self.common.spec.rx_batch.to_usize();
        let (Some(i), p) = (c.roles.get::<CcnicInterface>(), &mut *c.program) else { return false };
        let n = self.taken.len().min(batch);
        self.await_descriptors(p);
        for _ in 0..n {
            let Some(d) = self.taken.pop_front() else { break };
            let lines = self.touched(d.bytes.into(), !self.continues);
            self.common.receive_metadata(i, d.buffer - 1, p);
            if lines > 0 {
                p.push(Op::DependentLoad { line: i.line(d.buffer - 1), lines });
            }
            self.received.push(d.buffer - 1);
            self.continues = d.flags & CHAINED != 0;
            if !self.continues {
                p.compute(self.common.spec.quirks.costs.host_rx);
                p.push(Op::Retire { tag: CcnicEffect::Seen.tag(d.buffer - 1), stores: false });
                self.under_way -= 1;
            }
        }
        n > 0
    }

    /// Makes the payload wait for the descriptors that name it, where a register has announced them.
    pub(super) fn await_descriptors(&mut self, p: &mut Program) {
        if let Some(line) = self.announced_by_register.take() {
            self.common.follow(line, p);
        }
    }

    /// Line of descriptors that was read last, where the core runs ahead of the line's arrival.
    pub(super) fn foreseen_line(&self) -> Option<LineAddr> {
        self.common.predictor.map(|_| self.last)
    }

    /// Ends a burst: frees buffers, releases ring lines, posts blank buffers. Returns whether any of these was
    /// necessary.
    pub(super) fn end_receive(&mut self, c: &mut Ctx) -> bool {
        let Some(i) = c.roles.get_mut::<CcnicInterface>() else { return false };
        let p = &mut *c.program;
        let any = !self.received.is_empty();
        if any {
            let received = std::mem::take(&mut self.received);
            self.common.free(i, received.into_iter(), p);
        }
        let mut stores: Vec<Publication> = Vec::new();
        match &mut self.rx {
            HostReceiveRing::Lines(r) => r.release(&mut |s| stores.push(s)),
            HostReceiveRing::Slots(r) => {
                while r.vacant() >= BLANKS_LEAST {
                    let want = r.vacant().min(BLANKS).to_usize();
                    let blanks = self.common.alloc(i, 0, want, p);
                    let got = blanks.len();
                    self.posted += got.to_u32();
                    i.trips.blanks += got.to_u64();
                    blanks.iter().for_each(|b| self.common.read_metadata(i, *b, p));
                    stores.extend(blanks.into_iter().map(|b| r.post(b + 1)));
                    if got < want {
                        break;
                    }
                }
                p.compute(self.common.spec.quirks.costs.unit * stores.len().to_u32());
                stores.extend(r.commit());
            }
        }
        let any = any || !stores.is_empty();
        stores.into_iter().for_each(|s| self.common.store(RingKind::Rx, s, p));
        any
    }

    /// Number of transmit descriptors that hold no buffer or object whose transmission may not have completed.
    fn free_descriptors(&self) -> usize {
        let oldest = [self.awaiting_completion.front().map(|l| l.0), self.objects.front().map(|o| o.0)];
        let used = oldest.into_iter().flatten().min().map_or(0, |unit| self.tx.position() - unit);
        self.tx.shape.units.saturating_sub(used).to_usize() * self.tx.shape.group
    }

    /// Frees up to `most` buffers that only the host manages, and objects, when their transmission has completed.
    fn free_completed(&mut self, i: &mut CcnicInterface, most: usize, c: &mut Program) {
        let oldest = [self.awaiting_completion.front().map(|l| l.0), self.objects.front().map(|o| o.0)];
        let Some(oldest) = oldest.into_iter().flatten().min() else { return };
        // Units that have been overwritten were free.
        let from = oldest.max(self.tx.position().saturating_sub(self.tx.shape.units));
        let words = &i.pairs[self.common.queue].tx;
        let mut to = self.tx.consumed(words, from, &mut |line| c.push(Op::Load { line, lines: 1 }));
        let mut done = Vec::new();
        while let Some((unit, b)) = self.awaiting_completion.front().copied().filter(|l| l.0 < to) {
            if done.len() == most {
                to = unit; // objects are freed with their descriptors
                break;
            }
            self.awaiting_completion.pop_front();
            done.push(b);
        }
        while let Some((_, users)) = self.objects.front().copied().filter(|o| o.0 < to) {
            self.objects.pop_front();
            c.compute(self.common.spec.quirks.costs.free);
            c.push(Op::Atomic { line: users });
        }
        i.trips.swept += done.len().to_u64();
        self.common.free(i, done.into_iter(), c);
    }

    /// Allocates up to `n` buffers for packets of `hint` bytes; where only the host manages buffers, buffers already
    /// sent are reclaimed.
    pub(super) fn buffers(&mut self, i: &mut CcnicInterface, hint: u32, n: usize, p: &mut Program) -> Vec<u32> {
        let mut buffers = self.common.alloc(i, hint, n, p);
        if buffers.len() < n && self.common.spec.pool == PoolKind::Host {
            self.free_completed(i, usize::MAX, p);
            let more = n - buffers.len();
            buffers.extend(self.common.alloc(i, hint, more, p));
        }
        buffers.iter().for_each(|b| self.common.write_metadata(i, *b, p));
        buffers
    }

    /// Reclaims buffers and objects that have been sent, before a burst of `burst` packets: where only the host manages
    /// buffers, once few transmit descriptors are free, and otherwise once there are many objects.
    pub(super) fn free_completed_batch(&mut self, i: &mut CcnicInterface, burst: usize, p: &mut Program) {
        match self.common.spec.pool {
            PoolKind::Host => {
                let least = burst.max(self.common.spec.free_threshold().to_usize());
                if self.free_descriptors() < least {
                    self.free_completed(i, least, p);
                }
            }
            PoolKind::Shared if self.objects.len() >= BLANKS.to_usize() => self.free_completed(i, usize::MAX, p),
            PoolKind::Shared => {}
        }
    }

    /// Publishes a unit of descriptors, for which the ring has room.
    pub(super) fn publish(&mut self, unit: &mut Vec<Desc>, p: &mut Program) {
        if !unit.is_empty() {
            let s = self.tx.publish(unit);
            p.compute(self.common.spec.quirks.costs.unit);
            self.common.store(RingKind::Tx, s, p);
            unit.clear();
        }
    }

    /// Sends the packets that are due, as far as buffers and ring have room. Returns false when no packet was sent.
    fn send(&mut self, c: &mut Ctx) -> bool {
        let due = self.demand.due(c.step.now, self.under_way).min(self.common.spec.tx_batch).to_usize();
        if due == 0 {
            return false;
        }
        let (queue, group) = (self.common.queue, self.tx.shape.group);
        let Some(i) = c.roles.get_mut::<CcnicInterface>() else { return false };
        let p = &mut *c.program;
        let shared = self.common.spec.pool == PoolKind::Shared;
        let segments = self.common.segments();
        self.free_completed_batch(i, due * segments, p);
        // The thread reserves room for whole units first, so that no buffer is returned unsent. It checks the ring
        // after it has written the payload.
        let (mut units, words) = (0, &i.pairs[queue].tx);
        let mut looked = Vec::new();
        while units * group < due * segments && self.tx.ensure(words, units.to_u64() + 1, &mut |line| looked.push(line))
        {
            units += 1;
        }
        let n = due.min(units * group / segments) * segments;
        let hint = if shared { self.common.bytes } else { 0 };
        let mut buffers = self.buffers(i, hint, n, p);
        let whole = buffers.len() / segments * segments;
        if whole < buffers.len() {
            self.common.free(i, buffers.drain(whole..), p);
        }
        for packet in buffers.chunks(segments) {
            let last = packet[segments - 1];
            p.push(Op::Retire { tag: CcnicEffect::Stamp.tag(last), stores: false });
            for (k, b) in packet.iter().enumerate() {
                self.common.read_metadata(i, *b, p);
                let lines = self.touched(self.common.segment(k), k == 0);
                if lines > 0 {
                    self.common.write(i.line(*b), lines, p);
                }
                i.trips.retained += u64::from(lines) * u64::from(std::mem::take(&mut i.sent[b.to_usize()]));
            }
            p.compute(self.common.spec.quirks.costs.host_tx);
        }
        self.common.read_free_lines(&self.tx.shape, &looked, p);
        let flags = if shared { 0 } else { NO_RECYCLE };
        let descs: Vec<Desc> =
            buffers.iter().enumerate().map(|(k, b)| self.common.descriptor(k % segments, *b, flags)).collect();
        for chunk in descs.chunks(group) {
            if !shared {
                let at = self.tx.position();
                self.awaiting_completion.extend(chunk.iter().map(|d| (at, d.buffer - 1)));
            }
            let s = self.tx.publish(chunk);
            p.compute(self.common.spec.quirks.costs.unit);
            self.common.store(RingKind::Tx, s, p);
        }
        if let Some(s) = self.tx.commit() {
            self.common.store(RingKind::Tx, s, p);
        }
        let sent = (buffers.len() / segments).to_u32();
        self.under_way += sent;
        self.demand.sent(sent);
        sent > 0
    }

    pub(super) fn retired(&mut self, tag: u32, c: &mut Ctx) {
        let (effect, buffer) = CcnicEffect::of(tag);
        match effect {
            CcnicEffect::Visible => self.common.visible(c),
            CcnicEffect::Stamp => self.common.stamp(buffer, c),
            CcnicEffect::Seen => self.common.seen(buffer, c),
        }
    }
}
