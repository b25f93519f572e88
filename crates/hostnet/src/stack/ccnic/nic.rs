//! The NIC's thread of a queue pair, which takes packets, copies each to a fresh receive buffer, and delivers the
//! copies.

use super::rings::{Consumer, Desc, PostNic, Producer, Publication, CHAINED, EXTERNAL, GROUP, NO_RECYCLE};
use super::spec::{PoolKind, Wake};
use super::{lines_of, CcnicInterface, CcnicThreadState, RingKind};
use crate::core::{Op, Program};
use crate::kernel::{Due, Int, LineAddr};
use crate::meter::life::Milestone;
use crate::stack::{Awaited, Ctx, Step};

/// Instructions of a pause in which a thread that can make no progress waits.
const PAUSE: u32 = 200;

#[derive(Clone)]
enum NicReceiveRing {
    Lines(Producer),
    Slots(PostNic),
}

#[derive(Clone)]
pub struct CcnicNic {
    pub(super) common: CcnicThreadState,
    pub(super) tx: Consumer,
    rx: NicReceiveRing,
    /// Packets that the thread has taken and not yet copied.
    pub(super) pending: Vec<Desc>,
    /// Copies that are not published yet.
    pub(super) filled: Vec<Desc>,
    /// Line of descriptors that was read last.
    read: Option<LineAddr>,
    /// Last line of a burst's descriptors that a register has announced; the line may still be in flight.
    announced_by_register: Option<LineAddr>,
    /// Lines of unused queue pairs that the thread polls.
    idle: Vec<LineAddr>,
    /// Whether the last step waited for buffers or for room in the ring.
    pub(super) stuck: bool,
}

impl CcnicNic {
    pub(super) fn new(common: CcnicThreadState, i: &CcnicInterface) -> CcnicNic {
        let (spec, q) = (&common.spec, common.queue.to_u64());
        let tx = Consumer::new(common.reads(i.memory.tx(spec, q), 1 + spec.quirks.costs.nic_tx), 1);
        let shape = i.memory.rx(spec, q);
        let rx = match spec.pool {
            PoolKind::Shared => NicReceiveRing::Lines(Producer::new(shape)),
            PoolKind::Host => NicReceiveRing::Slots(PostNic::new(shape)),
        };
        let (queues, idle) = (i.pairs.len().to_u64(), u64::from(spec.quirks.idle_queues));
        let ring = |k| Consumer::new(i.memory.tx(spec, queues + q * idle + k), 1);
        let idle = if spec.wake == Wake::Polling {
            (0..idle).filter_map(|k| ring(k).line_to_poll()).collect()
        } else {
            Vec::new()
        };
        CcnicNic {
            common,
            tx,
            rx,
            pending: Vec::new(),
            filled: Vec::new(),
            read: None,
            announced_by_register: None,
            idle,
            stuck: false,
        }
    }

    /// Number of buffers that the thread holds outside its stacks. Buffers that only the host manages count at the
    /// host.
    pub(super) fn held(&self) -> usize {
        match self.rx {
            NicReceiveRing::Lines(_) => {
                self.pending.iter().filter(|d| d.flags & EXTERNAL == 0).count() + self.filled.len()
            }
            NicReceiveRing::Slots(_) => 0,
        }
    }

    pub(super) fn step(&mut self, c: &mut Ctx) -> Step {
        if std::mem::take(&mut self.common.polled) {
            let more = self.take(c);
            if more && self.pending.len() + GROUP <= (self.common.spec.quirks.nic_batch.to_usize()).max(GROUP) {
                self.poll(false, c);
                return Step::Run;
            }
            if !self.has_work() {
                let line = self.polled_line();
                match self.common.spec.wake {
                    // The agent that the message wakes executes no program, and continues without delay.
                    Wake::Event => return Step::Wait { on: Awaited::Line(line), instructions: 0 },
                    Wake::Polling if self.idle.is_empty() => {
                        return Step::Wait {
                            on: Awaited::Line(line),
                            instructions: self.common.spec.quirks.costs.poll,
                        };
                    }
                    Wake::Polling => {
                        self.poll_idle(c);
                        self.poll(true, c);
                        return Step::Poll { of: 1, until: Due::NEVER };
                    }
                }
            }
        }
        if self.has_work() {
            self.deliver(c);
            if self.has_work() {
                // There is no buffer, or no room in the ring; the host will return some.
                self.stuck = c.program.ops.is_empty();
                c.program.compute(PAUSE);
            }
            return Step::Run; // the thread sees a ready unit when the core's time has reached this point
        }
        self.poll_idle(c);
        self.poll(self.common.spec.wake == Wake::Polling, c);
        Step::Run
    }

    /// Polls the unused queue pairs of the thread.
    pub(super) fn poll_idle(&self, c: &mut Ctx) {
        for line in &self.idle {
            c.program.compute(self.common.spec.quirks.costs.poll);
            c.program.push(Op::Anchor { line: *line });
            c.program.push(Op::Await);
        }
    }

    /// Leaves the unused queue pairs to another queue pair of the thread.
    pub(super) fn has_no_idle_queues(&mut self) {
        self.idle.clear();
    }

    /// Takes packets, and delivers them at the end of a burst, as one turn of a thread that serves several queue pairs;
    /// returns true while the burst goes on.
    pub(super) fn turn(&mut self, c: &mut Ctx) -> bool {
        let more = self.take(c);
        if more && self.pending.len() + GROUP <= (self.common.spec.quirks.nic_batch.to_usize()).max(GROUP) {
            self.poll(false, c);
            return true;
        }
        if self.has_work() {
            self.deliver(c);
        }
        false
    }

    /// The line that shows whether packets are ready.
    pub(super) fn polled_line(&self) -> LineAddr {
        self.tx.line_to_poll().unwrap_or(self.tx.line())
    }

    /// Whether packets that were taken, or copies that are not published, wait.
    pub(super) fn has_work(&self) -> bool {
        !self.pending.is_empty() || !self.filled.is_empty()
    }

    /// Polls the transmit ring; `first` begins a new burst.
    pub(super) fn poll(&mut self, first: bool, c: &mut Ctx) {
        let there = c.roles.get::<CcnicInterface>().is_some_and(|i| self.tx.finds(&i.pairs[self.common.queue].tx));
        self.common.poll(self.tx.line_to_poll(), there, first, c.program);
    }

    /// Takes the next unit of the transmit ring. Returns false when there is none.
    pub(super) fn take(&mut self, c: &mut Ctx) -> bool {
        if self.tx.shape.register && self.tx.line_to_poll().is_some() {
            self.read = None; // the tail may have moved within the line that was read last
        }
        let Some(i) = c.roles.get_mut::<CcnicInterface>() else { return false };
        let p = &mut *c.program;
        let mut descs = [Desc::default(); GROUP];
        let line = self.tx.line();
        let mut ahead = Vec::new();
        let room = (self.common.spec.quirks.nic_batch.to_usize()).saturating_sub(self.pending.len());
        let more = (room / self.tx.shape.group).saturating_sub(1).to_u64();
        let asked = self.tx.line_to_poll().is_some();
        let n = self.tx.poll(&i.pairs[self.common.queue].tx, more, &mut descs, &mut |l| ahead.push(l));
        if asked {
            self.common.train_predictor(n > 0);
        }
        if n == 0 {
            return false;
        }
        if let Some(since) = i.visible[self.common.queue].take() {
            i.trips.discovery.saturating_record((c.step.now - since).0.max(1));
        }
        if Some(line) != self.read {
            p.push(Op::Anchor { line });
            self.read = Some(line);
        }
        self.announced_by_register = self.tx.shape.register.then_some(line);
        p.compute(self.common.spec.quirks.costs.unit);
        for d in &descs[..n] {
            p.push(Op::DependentPrefetch { line: i.line(d.buffer - 1) });
            i.passes(d.buffer - 1, Milestone::FoundByNic);
            if d.flags & CHAINED == 0 {
                p.compute(self.common.spec.quirks.costs.nic_tx);
            }
        }
        ahead.into_iter().for_each(|line| p.push(Op::Ahead { line }));
        self.pending.extend(&descs[..n]);
        true
    }

    /// A receive buffer for a packet of `bytes` bytes; None when no buffer is free.
    pub(super) fn blank(&mut self, i: &mut CcnicInterface, bytes: u32, p: &mut Program) -> Option<u32> {
        match &mut self.rx {
            NicReceiveRing::Lines(_) => self.common.alloc(i, bytes, 1, p).pop(),
            NicReceiveRing::Slots(r) => {
                let words = &i.pairs[self.common.queue].rx;
                r.take(words, &mut |line| p.push(Op::Anchor { line })).map(|b| b - 1)
            }
        }
    }

    /// Receive buffers for a packet of `bytes` bytes in `segments` buffers; none when too few buffers are free.
    pub(super) fn blanks_for(
        &mut self,
        i: &mut CcnicInterface,
        bytes: u32,
        segments: usize,
        p: &mut Program,
    ) -> Vec<u32> {
        if segments == 1 {
            return self.blank(i, bytes, p).into_iter().collect();
        }
        let mut all = self.common.alloc(i, bytes, segments, p);
        if all.len() < segments {
            self.common.free(i, all.drain(..), p);
        }
        all
    }

    /// Receive buffers for a whole burst, where buffers are not recycled and freed buffers go to the pool. None with
    /// recycling, where each copy goes to a buffer that has just been freed.
    fn blanks(&mut self, i: &mut CcnicInterface, p: &mut Program) -> Option<Vec<u32>> {
        let from_pool = matches!(self.rx, NicReceiveRing::Lines(_)) && !self.common.spec.recycle;
        from_pool.then(|| self.common.alloc(i, self.common.bytes, self.pending.len(), p))
    }

    /// Makes the payload wait for the descriptors that name it, where a register has announced them.
    pub(super) fn await_descriptors(&mut self, p: &mut Program) {
        if let Some(line) = self.announced_by_register.take() {
            self.common.follow(line, p);
        }
    }

    /// Copies the packets that were taken, delivers the copies, frees buffers and releases ring lines, as far as
    /// buffers and ring have room.
    pub(super) fn deliver(&mut self, c: &mut Ctx) {
        let Some(i) = c.roles.get_mut::<CcnicInterface>() else { return };
        let p = &mut *c.program;
        if !self.filled.is_empty() {
            self.publish(i, p);
            if !self.filled.is_empty() {
                return;
            }
        }
        self.await_descriptors(p);
        let mut blanks = self.blanks(i, p).map(Vec::into_iter);
        let mut done = 0;
        while done < self.pending.len() {
            let from = self.pending[done];
            let blank = match &mut blanks {
                Some(all) => all.next(),
                None => self.blank(i, from.bytes.into(), p),
            };
            let Some(to) = blank else { break };
            let lines = lines_of(from.bytes.into());
            let (source, target) = (i.line(from.buffer - 1), i.line(to));
            self.common.copy((source, true), target, lines, p);
            i.stamps[to.to_usize()] = i.stamps[from.buffer.to_usize() - 1];
            if let Some(l) = &mut i.lives {
                l.renamed(from.buffer.to_usize() - 1, to.to_usize());
            }
            i.passes(to, Milestone::Handed);
            if from.flags & CHAINED == 0 {
                p.compute(self.common.spec.quirks.costs.nic_rx);
            }
            self.common.release(source, lines, p);
            (i.sent[from.buffer.to_usize() - 1], i.sent[to.to_usize()]) = (true, false);
            self.filled.push(Desc { buffer: to + 1, bytes: from.bytes, flags: from.flags & CHAINED });
            if from.flags & NO_RECYCLE == 0 {
                self.common.free_one(i, from.buffer - 1, p);
            }
            done += 1;
        }
        self.pending.drain(..done);
        self.common.free_done(i, p);
        self.publish(i, p);
        if self.pending.is_empty() {
            // The copies are published before the lines are released, because the host waits for the copies.
            self.release(p);
        }
    }

    /// Queues the packet in buffer `to` for the next publication.
    pub(super) fn deliver_later(&mut self, to: u32, bytes: u16) {
        self.filled.push(Desc { buffer: to + 1, bytes, flags: 0 });
    }

    /// Releases the lines that were taken from the transmit ring.
    pub(super) fn release(&mut self, p: &mut Program) {
        let mut stores: Vec<Publication> = Vec::new();
        self.tx.release(&mut |s| stores.push(s));
        stores.into_iter().for_each(|s| self.common.store(RingKind::Tx, s, p));
    }

    /// Publishes the copies that are filled, as far as the receive ring has room.
    pub(super) fn publish(&mut self, i: &mut CcnicInterface, p: &mut Program) {
        let words = &i.pairs[self.common.queue].rx;
        let mut done = 0;
        let (mut looked, mut stores) = (Vec::new(), Vec::new());
        while done < self.filled.len() {
            match &mut self.rx {
                NicReceiveRing::Slots(r) => {
                    stores.push(r.fill(self.filled[done]));
                    done += 1;
                }
                NicReceiveRing::Lines(r) => {
                    if !r.ensure(words, 1, &mut |line| looked.push(line)) {
                        break;
                    }
                    let n = r.shape.group.min(self.filled.len() - done);
                    stores.push(r.publish(&self.filled[done..done + n]));
                    done += n;
                }
            }
        }
        if let NicReceiveRing::Lines(r) = &self.rx {
            self.common.read_free_lines(&r.shape, &looked, p);
        }
        p.compute(self.common.spec.quirks.costs.unit * stores.len().to_u32());
        stores.extend(match &mut self.rx {
            NicReceiveRing::Slots(r) => r.commit(),
            NicReceiveRing::Lines(r) => r.commit(),
        });
        stores.into_iter().for_each(|s| self.common.store(RingKind::Rx, s, p));
        self.filled.drain(..done);
    }
}
