//! The NIC's side: consumes TX packets, produces RX packets, never trusts the host.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::bell;
use crate::buf::{Buf, RawBuf};
use crate::channel;
use crate::config::Config;
use crate::desc::{Desc, MAX_SEGMENTS, MORE, NO_RECYCLE, OFFLOAD};
use crate::error::{Error, Fault};
use crate::handshake::{Features, Hello};
use crate::layout::{self, Class, RegionLayout};
use crate::ledger::Owner;
use crate::mem::Mem;
use crate::post::PostNic;
use crate::raw::Region;
use crate::reset;
use crate::ring::{Consumer, Producer};
use crate::rss::Rss;
use crate::side::{next_chunk, Opened, Shared, Side, Stats};

/// Idle polls between looks at the stop flag and the host's socket.
const IDLE: u32 = 1024;
/// The same for polls that find something.
const BUSY: u32 = 1 << 16;
/// Idle polls between looks at the clock, in event mode.
const GLANCE: u32 = 32;

/// A NIC's tie to its host; cut, it never starts again.
pub(crate) struct Link {
    revoked: AtomicBool,
    stream: Option<UnixStream>,
}

impl Link {
    /// Of a NIC in the host's process.
    pub fn local() -> Arc<Link> {
        Arc::new(Link { revoked: AtomicBool::new(false), stream: None })
    }

    pub fn socket(stream: UnixStream) -> Arc<Link> {
        Arc::new(Link { revoked: AtomicBool::new(false), stream: Some(stream) })
    }

    pub fn revoke(&self) {
        self.revoked.store(true, Ordering::Release);
        if let Some(stream) = &self.stream {
            // The other end may have closed it already.
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }

    pub fn alive(&self) -> bool {
        !self.revoked.load(Ordering::Acquire) && self.stream.as_ref().is_none_or(channel::is_open)
    }
}

/// NIC end of a port; dropping it tells the host that the NIC is gone, and stops its queues.
pub struct NicPort {
    shared: Arc<Shared>,
    link: Arc<Link>,
    rss: Rss,
    features: Features,
    opened: Opened,
}

impl NicPort {
    pub(crate) fn new(region: Region, hello: Hello, link: Arc<Link>, bells: Vec<OwnedFd>) -> NicPort {
        let Hello { config, rss, features } = hello;
        let lay = RegionLayout::new(&config);
        let opened = Opened::new(config.queues);
        let shared = Shared::new(region, config, lay);
        shared.bells.hang(bells);
        for q in 0..shared.config.queues as usize {
            reset::acknowledge(&shared.region, q, reset::CLOSED);
        }
        NicPort { shared, link, rss, features, opened }
    }

    /// The configuration the host chose.
    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    /// How the host wants flows to be spread over its queues.
    pub fn rss(&self) -> &Rss {
        &self.rss
    }

    /// What host and NIC have agreed to use.
    pub fn features(&self) -> Features {
        self.features
    }

    /// False once the host closed its end, died, or parted from this NIC.
    pub fn host_alive(&self) -> bool {
        self.link.alive()
    }

    /// Opens queue pair `id`, once; the handle belongs to the thread that polls it. A reset
    /// waits for all open queues, so poll every one.
    pub fn queue(&mut self, id: u32) -> Result<NicQueue, Error> {
        let id = self.opened.take(id)?;
        reset::open(&self.shared.region, id);
        Ok(NicQueue::new(self.shared.clone(), self.link.clone(), id))
    }

    /// Loops packets of `queues` back until `stop` is set or the host is gone. Faults are
    /// reported to the host, whose reset restarts the queues.
    pub fn serve_loopback(&self, queues: &mut [NicQueue], stop: &AtomicBool) {
        self.serve_loopback_with(queues, stop, |_| {});
    }

    /// As [`serve_loopback`](Self::serve_loopback); `watch` sees the queues now and then, while
    /// they are idle or every few thousand rounds.
    pub fn serve_loopback_with(&self, queues: &mut [NicQueue], stop: &AtomicBool, mut watch: impl FnMut(&[NicQueue])) {
        let mut idle = Idle::new(self.config().poll_us);
        loop {
            let mut moved = 0;
            for q in queues.iter_mut() {
                // A fault is already counted and signalled; only the host can clear it.
                moved += q.loopback(32).unwrap_or(0);
            }
            match idle.after(moved > 0) {
                Next::Go => {}
                Next::Look | Next::Sleep if stop.load(Ordering::Relaxed) || !self.host_alive() => return,
                Next::Look => watch(queues),
                Next::Sleep => {
                    watch(queues);
                    // An error here is one of the system's; polling goes on without sleep.
                    let _ = NicQueue::sleep(queues, None);
                }
            }
        }
    }
}

impl Drop for NicPort {
    fn drop(&mut self) {
        self.link.revoke();
    }
}

/// What a polling loop does after a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Another round at once.
    Go,
    /// Look at the stop flag and at the host's connection.
    Look,
    /// Long enough idle to sleep.
    Sleep,
}

/// Counts rounds and idle time of a polling loop.
pub(crate) struct Idle {
    polls: Duration,
    rounds: u32,
    since: Option<Instant>,
}

impl Idle {
    pub fn new(poll_us: u32) -> Idle {
        Idle { polls: Duration::from_micros(poll_us.into()), rounds: 0, since: None }
    }

    #[inline]
    pub fn after(&mut self, moved: bool) -> Next {
        self.rounds = self.rounds.wrapping_add(1);
        if moved {
            self.since = None;
            // A busy queue, too, is looked after at times.
            return if self.rounds % BUSY == 0 { Next::Look } else { Next::Go };
        }
        std::hint::spin_loop();
        self.idle()
    }

    fn idle(&mut self) -> Next {
        if !self.polls.is_zero() && self.rounds % GLANCE == 0 {
            let now = Instant::now();
            if now - *self.since.get_or_insert(now) >= self.polls {
                self.since = None;
                return Next::Sleep;
            }
        }
        if self.rounds % IDLE != 0 {
            return Next::Go;
        }
        std::thread::yield_now();
        Next::Look
    }
}

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
    /// The other side may sleep.
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
            self.epoch = ask;
            self.running = false;
            self.fault = None;
            self.pending.clear();
            self.pending_at = 0;
            self.filled.clear();
            self.spare.clear();
            self.side.forget((ask & 0xffff) as u32);
            self.side.stats.resets += 1;
            reset::acknowledge(&self.region, self.id, ask);
        }
        // A host that has parted from this NIC may be starting the next one.
        if reset::may_run(&self.region, ask) && self.link.alive() {
            (self.tx, self.rx) = rings(&self.side.shared, self.id);
            self.running = true;
        }
        self.running
    }

    fn fail(&mut self, fault: Fault) -> Error {
        self.fault = Some(fault);
        self.side.stats.faults += 1;
        self.region.put_release(layout::w_fault(self.id), fault as u64);
        self.wake();
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
            let mut whole = out.len();
            for &d in &line[..n] {
                let lent = d.flags() & NO_RECYCLE != 0 || !self.side.shared.config.shared_pool;
                let index = match self.side.accept(d, lent) {
                    Ok(index) => index,
                    Err(fault) => {
                        // Whole packets only; the reset that follows finds the rest.
                        out.truncate(whole);
                        return Err(fault);
                    }
                };
                self.region.prefetch_byte(d.addr as usize);
                let flags = d.flags() | if lent { NO_RECYCLE } else { 0 };
                out.push(RawBuf { addr: d.addr, index, len: d.len(), flags });
                self.side.stats.rx_bytes += u64::from(d.len());
                if !d.more() {
                    whole = out.len();
                }
            }
            self.side.stats.rx += n as u64;
        }
        Ok(())
    }

    /// Takes TX segments the host has sent and appends them to `out`, about `max` (whole
    /// lines, at least one). Call [`tx_done`](Self::tx_done) once their payload was read.
    pub fn tx_poll(&mut self, out: &mut Vec<Buf>, max: usize) -> Result<usize, Error> {
        self.tx_poll_with(max, |raw| out.extend(raw.iter().map(|&b| Buf(b))))
    }

    /// As [`tx_poll`](Self::tx_poll) for the C ABI: never more than `out` holds.
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

    /// As [`rx_post`](Self::rx_post) for handles that came through C.
    pub(crate) fn rx_post_raw(&mut self, bufs: &[RawBuf]) -> Result<usize, Error> {
        if !self.ready()? {
            return Ok(0);
        }
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
        self.publish()?;
        Ok(self.filled.len())
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
            let mut descs = [Desc::default(); 4];
            for (d, b) in descs.iter_mut().zip(&self.filled[done..done + n]) {
                *d = b.desc(false);
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
            q.region.put_release(layout::w_nic_sleeps(q.id), 1);
        }
        queues[0].region.heavy_fence();
        if queues.iter().all(|q| !q.waiting()) {
            let fds = ends.iter().map(|e| e.as_fd()).chain(also).collect::<Vec<_>>();
            bell::sleep(&fds, bell::NAP)?;
            queues.iter_mut().for_each(|q| q.side.stats.sleeps += 1);
        }
        for (q, end) in queues.iter().zip(&ends) {
            q.region.put(layout::w_nic_sleeps(q.id), 0);
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

    /// One loopback round: copies up to about `budget` TX segments into fresh RX buffers,
    /// frees them, and publishes the copies. Never drops: without RX buffers or ring space
    /// the packets wait. Returns the number of TX segments handled.
    pub fn loopback(&mut self, budget: usize) -> Result<usize, Error> {
        if !self.ready()? {
            return Ok(0);
        }
        if !self.filled.is_empty() {
            self.publish()?;
            if !self.filled.is_empty() {
                return Ok(0);
            }
        }
        if self.pending_at == self.pending.len() {
            let mut pending = std::mem::take(&mut self.pending);
            pending.clear();
            self.pending_at = 0;
            let outcome = self.poll_lines(&mut pending, budget);
            self.pending = pending;
            if let Err(fault) = outcome {
                return Err(self.fail(fault));
            }
            if self.pending.is_empty() {
                return Ok(0);
            }
        }
        let start = self.pending_at;
        while self.pending_at < self.pending.len() {
            if !self.loop_packet()? {
                break;
            }
        }
        self.side.free_done();
        let moved = self.pending_at - start;
        // First the copies, then the consumed lines: stores become visible in order, and the
        // host waits for the former.
        let published = self.publish();
        if self.pending_at == self.pending.len() {
            self.tx.release(&self.region);
        }
        published.map(|()| moved)
    }

    /// Copies the packet at `pending_at`; false when it must wait for buffers.
    #[inline]
    fn loop_packet(&mut self) -> Result<bool, Error> {
        let mut segments = 0;
        let mut bytes = 0;
        loop {
            let b = self.pending[self.pending_at + segments];
            segments += 1;
            bytes += b.len as usize;
            if b.flags & MORE == 0 {
                break;
            }
        }
        let large = self.side.shared.config.capacity() as usize;
        if segments == 1 && bytes <= large.min(self.frame) && matches!(self.rx, Rx::Lines(_)) {
            return Ok(self.loop_one(bytes));
        }
        let mut to = [RawBuf::default(); MAX_SEGMENTS];
        let offload = self.pending[self.pending_at].flags & OFFLOAD;
        if bytes > large * MAX_SEGMENTS || offload == 0 && bytes > self.frame {
            self.side.stats.oversize += 1;
        } else {
            let n = self.blank(bytes, &mut to)?;
            if n == 0 {
                return Ok(false);
            }
            to[0].flags |= offload;
            self.copy(self.pending_at, &to[..n]);
            for b in &to[..n] {
                self.queue_filled(*b);
            }
        }
        for i in 0..segments {
            self.free_one(self.pending[self.pending_at + i]);
        }
        self.pending_at += segments;
        Ok(true)
    }

    /// As `loop_packet` for the usual packet: one buffer in, one buffer out.
    #[inline]
    fn loop_one(&mut self, bytes: usize) -> bool {
        let mut to = [RawBuf::default()];
        if self.side.alloc(bytes, &mut to) == 0 {
            return false;
        }
        let from = self.pending[self.pending_at];
        self.copy_span(from.addr as usize, to[0].addr as usize, bytes);
        self.queue_filled(RawBuf { len: from.len, flags: from.flags & OFFLOAD, ..to[0] });
        self.free_one(from);
        self.pending_at += 1;
        true
    }

    #[inline]
    fn copy(&self, mut segment: usize, to: &[RawBuf]) {
        let mut from_at = 0;
        for b in to {
            let mut to_at = 0;
            while to_at < b.len as usize {
                let from = self.pending[segment];
                let n = (from.len as usize - from_at).min(b.len as usize - to_at);
                self.copy_span(from.addr as usize + from_at, b.addr as usize + to_at, n);
                from_at += n;
                to_at += n;
                if from_at == from.len as usize {
                    segment += 1;
                    from_at = 0;
                }
            }
        }
    }

    #[inline]
    fn copy_span(&self, from: usize, to: usize, len: usize) {
        if !self.side.shared.config.nt_stores {
            return self.region.copy_within(from, to, len);
        }
        let mut at = 0;
        let mut through = [0u8; 256];
        while at < len {
            let n = (len - at).min(through.len());
            self.region.copy_out(from + at, &mut through[..n]);
            self.region.copy_in_nt(to + at, &through[..n]);
            at += n;
        }
    }

    /// Counters since the queue was opened; `rx` counts TX segments taken from the host and
    /// `tx` RX segments given to it.
    pub fn stats(&self) -> Stats {
        self.side.stats
    }

    /// Returns the recycle stacks to the shared pool, before an orderly exit.
    pub fn drain(&mut self) {
        if self.running && self.fault.is_none() {
            self.tx.flush(&self.region);
            self.side.spill_all();
        }
    }
}

impl Drop for NicQueue {
    /// Gives the stacks back to the pool; no reset waits for this queue any more.
    fn drop(&mut self) {
        // The host may have reset the port since the last round.
        if reset::asked(&self.region) == self.epoch {
            self.drain();
        }
        reset::acknowledge(&self.region, self.id, reset::CLOSED);
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
