//! The NIC's side: consumes TX packets, produces RX packets, never trusts the host.

mod loopback;
mod port;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use crate::bell;
use crate::buf::{Buf, RawBuf};
use crate::desc::{Desc, MAX_SEGMENTS, MORE, NO_RECYCLE};
use crate::error::{Error, Fault};
use crate::layout::{self, Class};
use crate::ledger::Owner;
use crate::mem::Mem;
use crate::post::PostNic;
use crate::raw::Region;
use crate::reset;
use crate::ring::{Consumer, Producer};
use crate::side::{next_chunk, Shared, Side, Stats};

pub use port::NicPort;
pub(crate) use port::{attach, Idle, Link, Next};

/// NIC end of one queue pair. Used by one thread at a time; no call blocks.
pub struct NicQueue {
    side: Side,
    link: Arc<Link>,
    region: Region,
    id: usize,
    tx: Consumer,
    rx: Rx,
    epoch: u64,
    running: bool,
    fault: Option<Fault>,
    /// TX segments polled and not yet looped back, from `pending_at` on.
    pending: Vec<RawBuf>,
    pending_at: usize,
    /// RX segments filled and not yet published.
    filled: Vec<RawBuf>,
    /// Host-only buffers: blanks that were taken and not used.
    spare: Vec<RawBuf>,
    /// Most bytes of a frame.
    frame: usize,
    /// True when the other side may sleep.
    event: bool,
}

enum Rx {
    Lines(Producer),
    Slots(PostNic),
}

impl NicQueue {
    fn new(shared: Arc<Shared>, link: Arc<Link>, id: usize) -> NicQueue {
        let (tx, rx) = rings(&shared, id);
        let region = shared.region.clone();
        let (frame, event) = (shared.config.frame() as usize, shared.config.poll_us > 0);
        NicQueue {
            frame,
            event,
            spare: Vec::new(),
            side: Side::new(shared, 0),
            link,
            region,
            id,
            tx,
            rx,
            epoch: 0,
            running: false,
            fault: None,
            pending: Vec::with_capacity(256),
            pending_at: 0,
            filled: Vec::with_capacity(256),
        }
    }

    /// Follows the host's resets; true when the queue may run.
    #[inline]
    fn ready(&mut self) -> Result<bool, Error> {
        let ask = reset::asked(&self.region);
        if ask == self.epoch && self.running {
            return self.fault.map_or(Ok(true), |f| Err(Error::Fault(f)));
        }
        Ok(self.follow(ask))
    }

    #[cold]
    fn follow(&mut self, ask: u64) -> bool {
        if ask != self.epoch {
            // The first epoch that the queue sees is its start.
            self.side.stats.resets += u64::from(self.epoch != 0);
            self.epoch = ask;
            self.running = false;
            self.fault = None;
            self.pending.clear();
            self.pending_at = 0;
            self.filled.clear();
            self.spare.clear();
            self.side.forget((ask & 0xffff) as u32);
            (self.tx, self.rx) = rings(&self.side.shared, self.id);
            reset::acknowledge(&self.region, self.id, self.link.term, ask);
        }
        // A host that has parted from this NIC may be starting the next one.
        self.running = reset::may_run(&self.region, ask) && self.link.alive();
        self.running
    }

    /// False once the host has asked for a reset: what this NIC finds in its round is of no account then.
    fn is_current(&self) -> bool {
        self.running && reset::asked(&self.region) == self.epoch
    }

    fn fail(&mut self, fault: Fault) -> Error {
        self.fault = Some(fault);
        self.side.stats.faults += 1;
        if self.is_current() {
            self.region.put_release(layout::w_fault(self.id), fault as u64);
            self.wake();
        }
        Error::Fault(fault)
    }

    /// Takes TX segments into `out` while there is room for a whole line.
    fn poll_lines(&mut self, out: &mut Vec<RawBuf>, max: usize) -> Result<(), Fault> {
        let start = out.len();
        let mut line = [Desc::default(); 4];
        while out.len() - start + MAX_SEGMENTS <= max.max(MAX_SEGMENTS) {
            let n = self.tx.poll(&self.region, &mut line)?;
            if n == 0 {
                break;
            }
            let first = out.len();
            let (mut whole, mut bytes) = (first, 0);
            for &d in &line[..n] {
                let lent = d.flags() & NO_RECYCLE != 0 || !self.side.shared.config.shared_pool;
                let index = match self.side.accept(d, lent) {
                    Ok(index) => index,
                    Err(fault) => {
                        // Whole packets only; the reset that follows finds the rest.
                        out.truncate(whole);
                        self.side.stats.rx += (whole - first) as u64;
                        self.side.stats.rx_bytes += out[first..].iter().map(|b| u64::from(b.len)).sum::<u64>();
                        return Err(fault);
                    }
                };
                self.region.prefetch_byte(d.addr as usize);
                let flags = d.flags() | if lent { NO_RECYCLE } else { 0 };
                out.push(RawBuf { addr: d.addr, index, len: d.len(), flags });
                bytes += u64::from(d.len());
                if !d.more() {
                    whole = out.len();
                }
            }
            self.side.stats.rx += n as u64;
            self.side.stats.rx_bytes += bytes;
        }
        Ok(())
    }

    /// Takes TX segments the host has sent and appends them to `out`, about `max` (whole
    /// lines, at least one). Call [`tx_done`](Self::tx_done) once their payload was read.
    pub fn tx_poll(&mut self, out: &mut Vec<Buf>, max: usize) -> Result<usize, Error> {
        self.tx_poll_with(max, |raw| out.extend(raw.iter().map(|&b| Buf(b))))
    }

    /// Takes TX segments for the C ABI, never more than `out` holds; see [`tx_poll`](Self::tx_poll).
    pub(crate) fn tx_poll_raw(&mut self, out: &mut [RawBuf]) -> Result<usize, Error> {
        if out.len() < MAX_SEGMENTS {
            return Err(Error::Usage("the NIC takes whole lines: give room for at least four buffers"));
        }
        self.tx_poll_with(out.len(), |raw| out[..raw.len()].copy_from_slice(raw))
    }

    fn tx_poll_with(&mut self, max: usize, take: impl FnOnce(&[RawBuf])) -> Result<usize, Error> {
        if !self.ready()? {
            return Ok(0);
        }
        let mut raw = std::mem::take(&mut self.pending);
        raw.clear();
        let outcome = self.poll_lines(&mut raw, max);
        let n = raw.len();
        take(&raw);
        raw.clear();
        self.pending = raw;
        match outcome {
            Ok(()) => Ok(n),
            Err(fault) => {
                let error = self.fail(fault);
                if n > 0 {
                    Ok(n)
                } else {
                    Err(error)
                }
            }
        }
    }

    /// Gives the lines of all polled packets back to the host. Their payload must have been
    /// read: this completes buffers that the host only lent.
    pub fn tx_done(&mut self) {
        self.tx.release(&self.region);
    }

    /// Frees TX buffers (or unused RX buffers). Lent buffers stay with the host.
    pub fn free(&mut self, bufs: &mut Vec<Buf>) {
        for b in bufs.drain(..) {
            self.free_one(b.0);
        }
        self.side.free_done();
    }

    pub(crate) fn free_raw(&mut self, bufs: &[RawBuf]) {
        bufs.iter().for_each(|&b| self.free_one(b));
        self.side.free_done();
    }

    #[inline]
    fn free_one(&mut self, b: RawBuf) {
        if b.flags & NO_RECYCLE != 0 {
            return;
        }
        if self.side.shared.config.shared_pool {
            self.side.free(b.index);
        } else if self.side.shared.ledger.shift(self.side.epoch, b.index, Owner::User, Owner::Stack) {
            self.spare.push(RawBuf { len: 0, flags: 0, ..b });
        } else {
            self.side.stats.misuse += 1;
        }
    }

    /// Allocates the buffers for one received packet of `bytes`: one small, or as many large
    /// ones as it needs, chained. None when too few are free or it needs more than four.
    pub fn alloc_packet(&mut self, bytes: usize) -> Result<Option<Vec<Buf>>, Error> {
        let mut raw = [RawBuf::default(); MAX_SEGMENTS];
        let n = self.alloc_packet_raw(bytes, &mut raw)?;
        Ok((n > 0).then(|| raw[..n].iter().map(|&r| Buf(r)).collect()))
    }

    pub(crate) fn alloc_packet_raw(&mut self, bytes: usize, out: &mut [RawBuf; MAX_SEGMENTS]) -> Result<usize, Error> {
        if self.ready()? {
            self.blank(bytes, out)
        } else {
            Ok(0)
        }
    }

    /// Fills `out` with empty buffers for `bytes`, lengths and chain set; zero: none free.
    fn blank(&mut self, bytes: usize, out: &mut [RawBuf; MAX_SEGMENTS]) -> Result<usize, Error> {
        let large = self.side.shared.config.capacity() as usize;
        let need = match self.side.class_for(bytes) {
            Class::Small if self.side.shared.config.shared_pool => 1,
            _ => bytes.div_ceil(large),
        };
        if need == 0 || need > MAX_SEGMENTS {
            self.side.stats.oversize += u64::from(need > 0);
            return Ok(0);
        }
        if !self.take_blanks(bytes, &mut out[..need])? {
            return Ok(0);
        }
        let mut left = bytes;
        for (i, b) in out[..need].iter_mut().enumerate() {
            b.len = left.min(large) as u16;
            b.flags = if i + 1 < need { MORE } else { 0 };
            left -= b.len as usize;
        }
        Ok(need)
    }

    fn take_blanks(&mut self, bytes: usize, out: &mut [RawBuf]) -> Result<bool, Error> {
        let Rx::Slots(ring) = &mut self.rx else {
            let n = self.side.alloc(bytes, out);
            if n < out.len() {
                for b in &out[..n] {
                    self.side.free(b.index);
                }
                self.side.free_done();
            }
            return Ok(n == out.len());
        };
        let large = self.side.shared.config.capacity() as usize;
        while self.spare.len() < out.len() {
            let addr = match ring.take(&self.region) {
                Ok(Some(addr)) => addr,
                Ok(None) => {
                    self.side.stats.starved += 1;
                    return Ok(false);
                }
                Err(fault) => return Err(self.fail(fault)),
            };
            let place = self.side.shared.layout.locate(addr);
            let Some(p) = place.filter(|p| p.room() >= large && p.class() == Class::Large) else {
                return Err(self.fail(Fault::Address));
            };
            if !self.side.shared.ledger.shift(self.side.epoch, p.index(), Owner::Away, Owner::Stack) {
                return Err(self.fail(Fault::Owner));
            }
            self.spare.insert(0, RawBuf { addr, index: p.index(), len: 0, flags: 0 });
        }
        for slot in out.iter_mut() {
            if let Some(b) = self.spare.pop() {
                self.side.shared.ledger.shift(self.side.epoch, b.index, Owner::Stack, Owner::User);
                *slot = b;
            }
        }
        Ok(true)
    }

    /// Copies `payload` over the packet's buffers, which [`alloc_packet`](Self::alloc_packet)
    /// made for it.
    pub fn write_packet(&mut self, packet: &[Buf], payload: &[u8]) {
        let mut rest = payload;
        for b in packet {
            let (now, later) = rest.split_at(b.len().min(rest.len()));
            self.region.copy_in(b.0.addr as usize, now);
            rest = later;
        }
    }

    /// Copies a span of another region (a packet socket's ring) over the packet's buffers.
    pub(crate) fn write_packet_from(&mut self, packet: &[Buf], from: &Region, mut at: usize) {
        for b in packet {
            self.region.copy_between(b.0.addr as usize, from, at, b.len());
            at += b.len();
        }
    }

    /// Appends the buffer's payload to `to`.
    pub fn read(&self, buf: &Buf, to: &mut Vec<u8>) {
        let at = to.len();
        to.resize(at + buf.len(), 0);
        self.region.copy_out(buf.0.addr as usize, &mut to[at..]);
    }

    /// Publishes received packets in the order they were allocated; packets the ring has no
    /// room for stay queued here and go out with a later call. Returns the number queued. A
    /// burst with a buffer that is not this side's (one taken before a reset, say), or that
    /// ends inside a packet, is refused whole and dropped.
    pub fn rx_post(&mut self, bufs: &mut Vec<Buf>) -> Result<usize, Error> {
        let raw: Vec<RawBuf> = bufs.drain(..).map(|b| b.0).collect();
        self.rx_post_raw(&raw)
    }

    /// Publishes received packets whose handles came through C; see [`rx_post`](Self::rx_post).
    pub(crate) fn rx_post_raw(&mut self, bufs: &[RawBuf]) -> Result<usize, Error> {
        if !self.ready()? {
            return Ok(0);
        }
        self.admit(bufs)?;
        self.publish()?;
        Ok(self.filled.len())
    }

    /// Takes received packets that a later [`rx_post`](Self::rx_post) publishes together; returns the number queued.
    pub(crate) fn rx_keep(&mut self, bufs: &mut Vec<Buf>) -> Result<usize, Error> {
        let raw: Vec<RawBuf> = bufs.drain(..).map(|b| b.0).collect();
        if self.ready()? {
            self.admit(&raw)?;
        }
        Ok(self.filled.len())
    }

    /// Publishes packets that wait in the queue; true if any went.
    pub(crate) fn rx_flush(&mut self) -> bool {
        let kept = self.filled.len();
        kept > 0 && self.rx_post_raw(&[]).is_ok_and(|left| left < kept)
    }

    /// Queues whole packets of this side's buffers, all of them or none.
    fn admit(&mut self, bufs: &[RawBuf]) -> Result<(), Error> {
        let mut segments = 0;
        for b in bufs {
            segments = if b.flags & MORE == 0 { 0 } else { segments + 1 };
            if segments == MAX_SEGMENTS {
                return Err(Error::Usage("a packet has more than four segments"));
            }
        }
        if segments > 0 {
            return Err(Error::Usage("the last buffer of a burst is marked as having a successor"));
        }
        for (i, b) in bufs.iter().enumerate() {
            if !self.side.may_send(b) || !self.queue_filled(*b) {
                for b in &bufs[..i] {
                    self.side.shared.ledger.shift(self.side.epoch, b.index, Owner::Away, Owner::User);
                }
                self.filled.truncate(self.filled.len() - i);
                return Err(Error::Usage("a buffer in the burst is empty, too long or not owned"));
            }
        }
        Ok(())
    }

    /// Queues a buffer of this side for publication; it is the host's from now on.
    #[inline]
    fn queue_filled(&mut self, b: RawBuf) -> bool {
        let own = self.side.shared.ledger.shift(self.side.epoch, b.index, Owner::User, Owner::Away);
        if own {
            self.filled.push(b);
        }
        own
    }

    pub(crate) fn region(&self) -> &Region {
        &self.region
    }

    fn publish(&mut self) -> Result<(), Error> {
        let mut done = 0;
        let outcome = loop {
            if done == self.filled.len() {
                break Ok(());
            }
            let group = match &self.rx {
                Rx::Lines(ring) => ring.group(),
                Rx::Slots(_) => 1,
            };
            // Whole packets of at most four were let in.
            let n = next_chunk(&self.filled[done..], group)?;
            let (mut descs, mut bytes) = ([Desc::default(); 4], 0);
            for (d, b) in descs.iter_mut().zip(&self.filled[done..done + n]) {
                *d = b.desc(false);
                bytes += u64::from(b.len);
            }
            match &mut self.rx {
                Rx::Slots(ring) => ring.fill(&self.region, &descs[..n]),
                Rx::Lines(ring) => {
                    match ring.ensure(&self.region, if group == 1 { n } else { 1 }) {
                        Ok(true) => {}
                        Ok(false) => break Ok(()),
                        Err(fault) => break Err(fault),
                    }
                    ring.publish(&self.region, &descs[..n]);
                }
            }
            done += n;
            self.side.stats.tx += n as u64;
            self.side.stats.tx_bytes += bytes;
            self.side.stats.units += 1;
        };
        match &mut self.rx {
            Rx::Lines(ring) => ring.commit(&self.region),
            Rx::Slots(ring) => ring.commit(&self.region),
        }
        self.filled.drain(..done);
        if done > 0 {
            self.wake();
        }
        outcome.map_err(|fault| self.fail(fault))
    }

    /// Counts packets dropped, where the host sees it, too.
    pub(crate) fn note_drops(&mut self, packets: u64) {
        self.side.stats.drops += packets;
        // One that was replaced does not count for its successor.
        if packets > 0 && self.is_current() {
            let word = layout::w_nic_drops(self.id);
            self.region.put(word, self.region.get(word).wrapping_add(packets));
        }
    }

    /// Wakes the host, if it sleeps.
    #[inline]
    fn wake(&mut self) {
        if self.event && reset::must_wake(&self.region, layout::w_host_sleeps(self.id)) {
            self.side.stats.wakes += 1;
            self.side.shared.bells.ring(self.id);
        }
    }

    /// True when a round would find something to do, or has something left to do.
    fn waiting(&self) -> bool {
        reset::asked(&self.region) != self.epoch
            || !self.running
            || self.pending_at < self.pending.len()
            || !self.filled.is_empty()
            || self.fault.is_none() && self.tx.peek(&self.region)
    }

    /// Sleeps until a host wakes one of `queues` (of one port) or is gone, or `also` is
    /// readable; at most a tenth of a second.
    pub(crate) fn sleep(queues: &mut [NicQueue], also: Option<BorrowedFd<'_>>) -> Result<(), Error> {
        let ends: Vec<Arc<OwnedFd>> = queues.iter().filter_map(|q| q.side.shared.bells.get(q.id)).collect();
        if ends.len() < queues.len() || queues.is_empty() {
            return Ok(());
        }
        for q in queues.iter() {
            // One fence orders all of these stores.
            reset::lie_down(&q.region, layout::w_nic_sleeps(q.id), q.link.term);
        }
        queues[0].region.heavy_fence();
        if queues.iter().all(|q| !q.waiting()) {
            let fds = ends.iter().map(|e| e.as_fd()).chain(also).collect::<Vec<_>>();
            bell::sleep(&fds, bell::NAP)?;
            queues.iter_mut().for_each(|q| q.side.stats.sleeps += 1);
        }
        for (q, end) in queues.iter().zip(&ends) {
            reset::get_up(&q.region, layout::w_nic_sleeps(q.id), q.link.term);
            bell::hush(end);
        }
        Ok(())
    }

    /// Sleeps until the host wakes this queue or is gone, in event mode and at most a tenth of
    /// a second; returns at once when there is something to do.
    pub fn wait(&mut self) -> Result<(), Error> {
        if self.waiting() {
            return Ok(());
        }
        NicQueue::sleep(std::slice::from_mut(self), None)
    }

    /// Counters since the queue was opened; `rx` counts TX segments taken from the host and
    /// `tx` RX segments given to it.
    pub fn stats(&self) -> Stats {
        self.side.stats
    }

    /// Returns the recycle stacks to the shared pool, before an orderly exit. After a reset they are the host's already.
    pub fn drain(&mut self) {
        if self.is_current() && self.fault.is_none() {
            self.tx.flush(&self.region);
            self.side.retire();
        }
    }
}

impl Drop for NicQueue {
    /// Gives the stacks back to the pool; no reset waits for this queue any more.
    fn drop(&mut self) {
        self.drain();
        reset::acknowledge(&self.region, self.id, self.link.term, reset::CLOSED);
    }
}

fn rings(shared: &Shared, id: usize) -> (Consumer, Rx) {
    let q = &shared.layout.queues[id];
    let lazy = shared.config.tx_lazy as usize;
    let rx = if shared.config.shared_pool {
        Rx::Lines(Producer::new(q.rx.clone()))
    } else {
        Rx::Slots(PostNic::new(q.rx.clone()))
    };
    (Consumer::new(q.tx.clone(), lazy), rx)
}
