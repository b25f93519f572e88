//! The host's end of one queue pair.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::bell;
use crate::buf::{Buf, RawBuf};
use crate::desc::{Desc, MAX_SEGMENTS, MORE, NO_RECYCLE, OFFLOAD};
use crate::error::{Error, Fault};
use crate::handshake::Features;
use crate::layout::{self, Class};
use crate::ledger::Owner;
use crate::mem::Mem;
use crate::offload::Offload;
use crate::post::PostHost;
use crate::raw::Region;
use crate::reset;
use crate::ring::{Consumer, Producer};
use crate::side::{next_chunk, Shared, Side, Stats};

/// TX buffers the host lets complete before it sweeps them.
const SWEEP: usize = 32;
const BURST: usize = 64;

/// Host end of one queue pair, with its own recycle stacks. Used by one thread at a time
/// (`Send`, methods take `&mut self`); no call but [`wait`](Self::wait) blocks. Dropping it
/// closes the queue, which can be opened again and then goes on where it was.
pub struct HostQueue {
    pub(crate) side: Side,
    region: Region,
    id: usize,
    /// The other side may sleep.
    event: bool,
    doors: Arc<Doors>,
    rings: Rings,
}

/// Where the host is in the rings of one queue pair.
pub(crate) struct Rings {
    tx: Producer,
    rx: Rx,
    /// Per ring slot: the lent buffer in flight there, as index + 1, with [`AWAY`].
    lent: Vec<u32>,
    lent_open: usize,
    swept: u64,
    /// Received and accepted buffers that the last call had no room for.
    held: [RawBuf; MAX_SEGMENTS],
    held_at: usize,
    held_end: usize,
    fault: Option<Fault>,
}

impl Rings {
    fn new(shared: &Shared, id: usize) -> Rings {
        let q = &shared.layout.queues[id];
        let rx = if shared.config.shared_pool {
            let lazy = shared.config.rx_lazy as usize * 4 / q.rx.group.max(1);
            Rx::Lines(Consumer::new(q.rx.clone(), lazy.max(1)))
        } else {
            Rx::Slots(PostHost::new(q.rx.clone()))
        };
        Rings {
            tx: Producer::new(q.tx.clone()),
            rx,
            lent: vec![0; shared.config.slots as usize],
            lent_open: 0,
            swept: 0,
            held: Default::default(),
            held_at: 0,
            held_end: 0,
            fault: None,
        }
    }

    /// Gives up what the rings hold: references of lent buffers, and buffers not delivered yet.
    pub(crate) fn clear(&mut self, shared: &Shared) {
        for entry in self.lent.iter_mut().map(std::mem::take) {
            // Buffers that went away with their transmission are away in the record, too.
            if entry != 0 && entry & AWAY == 0 {
                let index = entry - 1;
                let _ = shared.ledger.drop_ref(index) || shared.ledger.shift(0, index, Owner::User, Owner::Away);
            }
        }
        for b in &self.held[self.held_at..self.held_end] {
            shared.ledger.shift(0, b.index, Owner::User, Owner::Away);
        }
        (self.held_at, self.held_end) = (0, 0);
    }
}

/// Which queues of a port are open, and the rings of those that were closed.
pub(crate) struct Doors(Mutex<Vec<Door>>);

enum Door {
    Open,
    Closed(Option<Rings>),
}

impl Doors {
    pub fn new(queues: u32) -> Arc<Doors> {
        Arc::new(Doors(Mutex::new((0..queues).map(|_| Door::Closed(None)).collect())))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Door>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn open_count(&self) -> usize {
        self.lock().iter().filter(|d| matches!(d, Door::Open)).count()
    }

    /// Empties the rings of the closed queues, after a reset.
    pub fn clear(&self, shared: &Shared) {
        for door in self.lock().iter_mut() {
            if let Door::Closed(Some(rings)) = door {
                rings.clear(shared);
                *door = Door::Closed(None);
            }
        }
    }
}

/// Mark of a lent buffer that nobody else refers to.
const AWAY: u32 = 1 << 31;

enum Rx {
    Lines(Consumer),
    Slots(PostHost),
}

impl HostQueue {
    pub(crate) fn open(shared: &Arc<Shared>, doors: &Arc<Doors>, id: u32) -> Result<HostQueue, Error> {
        let mut all = doors.lock();
        let last = all.len() - 1;
        let door = match all.get_mut(id as usize) {
            None => return Err(Error::Config(format!("queue {id} does not exist; the last one is {last}"))),
            Some(Door::Open) => return Err(Error::Usage("the queue is already open")),
            Some(door) => door,
        };
        let id = id as usize;
        let rings = match std::mem::replace(door, Door::Open) {
            Door::Closed(Some(rings)) => rings,
            _ => Rings::new(shared, id),
        };
        drop(all);
        Ok(HostQueue {
            side: Side::new(shared.clone(), 0),
            region: shared.region.clone(),
            id,
            event: shared.config.poll_us > 0,
            doors: doors.clone(),
            rings,
        })
    }

    /// Empty rings and stacks, and no fault; buffers the application does not hold are away.
    pub(crate) fn restart(&mut self) {
        let shared = self.side.shared.clone();
        self.rings.clear(&shared);
        self.rings = Rings::new(&shared, self.id);
        self.side.abandon_stacks();
        self.side.stats.resets += 1;
    }

    /// Allocates up to `count` buffers and appends them to `out`; returns how many.
    /// `size_hint` is the packet size in bytes if it is known (up to the small size it
    /// selects small buffers), 0 if not. Fewer are returned when the pool runs dry.
    pub fn alloc(&mut self, out: &mut Vec<Buf>, count: usize, size_hint: usize) -> usize {
        burst(out, count, 1, |chunk| Ok(self.alloc_raw(chunk, size_hint))).unwrap_or(0)
    }

    pub(crate) fn alloc_raw(&mut self, out: &mut [RawBuf], size_hint: usize) -> usize {
        let mut n = self.side.alloc(size_hint, out);
        if n < out.len() && self.rings.lent_open > 0 && self.sweep().is_ok() {
            n += self.side.alloc(size_hint, &mut out[n..]);
        }
        n
    }

    /// Frees all buffers in `bufs` (each drops one reference).
    pub fn free(&mut self, bufs: &mut Vec<Buf>) {
        for b in bufs.drain(..) {
            self.side.free(b.0.index);
        }
        self.side.free_done();
    }

    pub(crate) fn free_raw(&mut self, bufs: &[RawBuf]) -> usize {
        let freed = bufs.iter().filter(|b| self.side.free(b.index)).count();
        self.side.free_done();
        freed
    }

    /// Adds a reference and returns a second handle, for a buffer that must outlive its
    /// transmission (retransmission, several receivers). While it has several references
    /// the NIC does not recycle it. Its payload must not change before the send completes.
    pub fn retain(&mut self, buf: &Buf) -> Result<Buf, Error> {
        self.retain_index(buf.0.index).map(|()| Buf(buf.0))
    }

    pub(crate) fn retain_index(&mut self, index: u32) -> Result<(), Error> {
        if self.side.shared.ledger.retain(0, index) {
            return Ok(());
        }
        Err(Error::Usage("the buffer is not owned or has too many references"))
    }

    /// Sends as many packets from the front of `bufs` as the ring takes, and removes them.
    /// Returns the number of buffers sent. Buffers of one packet are chained with
    /// [`Buf::set_more`]; a packet has at most four and is sent whole or not at all.
    pub fn tx(&mut self, bufs: &mut Vec<Buf>) -> Result<usize, Error> {
        let mut sent = 0;
        let mut raw = [RawBuf::default(); BURST];
        while sent < bufs.len() {
            let n = whole_packets(&bufs[sent..], BURST);
            for (to, b) in raw.iter_mut().zip(&bufs[sent..sent + n]) {
                *to = b.0;
            }
            match self.tx_raw(&raw[..n]) {
                Ok(k) => {
                    sent += k;
                    if k < n {
                        break;
                    }
                }
                Err(e) if sent == 0 => return Err(e),
                Err(_) => break,
            }
        }
        bufs.drain(..sent);
        Ok(sent)
    }

    pub(crate) fn tx_raw(&mut self, bufs: &[RawBuf]) -> Result<usize, Error> {
        self.usable()?;
        if self.rings.lent_open == 0 {
            self.rings.swept = self.rings.tx.position();
        } else if self.rings.lent_open >= SWEEP {
            self.sweep()?;
        }
        let group = self.rings.tx.group();
        let mut done = self.tx_lines(bufs);
        let mut outcome = Ok(());
        while done < bufs.len() {
            let n = match next_chunk(&bufs[done..], group) {
                Ok(n) => n,
                Err(e) => {
                    outcome = Err(e);
                    break;
                }
            };
            let chunk = &bufs[done..done + n];
            if let Err(e) = self.may_send(chunk) {
                outcome = Err(e);
                break;
            }
            let units = if group == 1 { n } else { 1 };
            match self.rings.tx.ensure(&self.region, units) {
                Ok(true) => {}
                Ok(false) => break,
                Err(fault) => {
                    outcome = Err(self.fail(fault));
                    break;
                }
            }
            if self.rings.lent_open > 0
                && self.rings.tx.position() + units as u64 - self.rings.swept > self.rings.tx.units()
            {
                if let Err(e) = self.sweep() {
                    outcome = Err(e);
                    break;
                }
                if self.rings.tx.position() + units as u64 - self.rings.swept > self.rings.tx.units() {
                    // The unit that was probed is free and one before it is not.
                    outcome = Err(self.fail(Fault::Signal));
                    break;
                }
            }
            let mut descs = [Desc::default(); 4];
            self.describe(chunk, group, &mut descs);
            self.rings.tx.publish(&self.region, &descs[..n]);
            self.side.stats.tx += n as u64;
            self.side.stats.units += 1;
            done += n;
        }
        self.rings.tx.commit(&self.region);
        if done > 0 {
            if self.event && reset::must_wake(&self.region, layout::w_nic_sleeps(self.id)) {
                self.side.stats.wakes += 1;
                self.side.shared.bells.ring(self.id);
            }
            Ok(done)
        } else {
            outcome.map(|()| 0)
        }
    }

    /// The usual case of a burst, one pass per line: packets of one buffer that nobody else
    /// refers to go to a NIC that frees them. Returns how many went; the rest, if any, is for
    /// the general way.
    #[inline]
    fn tx_lines(&mut self, bufs: &[RawBuf]) -> usize {
        let Side { shared, stats, .. } = &mut self.side;
        if self.rings.tx.group() != 4 || self.rings.lent_open > 0 || !shared.config.shared_pool {
            return 0;
        }
        let (mut done, mut bytes) = (0, 0);
        let limit = shared.layout.pooled() as u32;
        let frame = shared.frame.load(Relaxed);
        for chunk in bufs.chunks(4) {
            if !matches!(self.rings.tx.ensure(&self.region, 1), Ok(true)) {
                break;
            }
            let mut descs = [Desc::default(); 4];
            let mut good = 0;
            for (d, b) in descs.iter_mut().zip(chunk) {
                *d = b.desc(false);
                let sound = d.flags() == 0
                    && u32::from(b.len) <= frame
                    && b.index < limit
                    && shared.layout.check(*d).is_some_and(|p| p.index() == b.index);
                // Leaves this side at once, so that the same buffer twice in a line is noticed.
                if !sound || !shared.ledger.shift(0, b.index, Owner::User, Owner::Away) {
                    break;
                }
                good += 1;
            }
            if good < chunk.len() {
                for b in &chunk[..good] {
                    shared.ledger.shift(0, b.index, Owner::Away, Owner::User);
                }
                break;
            }
            self.rings.tx.publish(&self.region, &descs[..good]);
            done += good;
            bytes += chunk.iter().map(|b| u64::from(b.len)).sum::<u64>();
            stats.units += 1;
        }
        stats.tx += done as u64;
        stats.tx_bytes += bytes;
        done
    }

    /// Whether a chunk may be sent: the caller owns its buffers, they are sound, none is in it
    /// twice unless it has further references, and no packet is too long.
    fn may_send(&mut self, chunk: &[RawBuf]) -> Result<(), Error> {
        let mut first = 0;
        for i in 0..chunk.len() {
            let b = &chunk[i];
            let twice = chunk[..i].iter().any(|a| a.index == b.index) && !self.side.shared.ledger.shared(b.index);
            self.side.stats.misuse += u64::from(twice);
            if twice || !self.side.may_send(b) {
                return Err(Error::Usage("a buffer in the burst is empty, too long or not owned"));
            }
            if b.flags & MORE == 0 {
                self.fits(&chunk[first..=i])?;
                first = i + 1;
            }
        }
        Ok(())
    }

    /// Whether a packet has a sound offload header, if any, and no frame over the MTU.
    fn fits(&mut self, packet: &[RawBuf]) -> Result<(), Error> {
        let total: usize = packet.iter().map(|b| usize::from(b.len)).sum();
        let wire = if packet.iter().all(|b| b.flags & OFFLOAD == 0) {
            total
        } else {
            let agreed = Features(self.side.shared.agreed.load(Relaxed));
            let header = packet[1..].iter().all(|b| b.flags & OFFLOAD == 0).then(|| self.header(&packet[0], total));
            let Some(o) = header.flatten() else {
                return Err(Error::Usage("the offload header of a packet is not sound"));
            };
            if !agreed.has(if o.segments() { Features::SEGMENT } else { Features::CHECKSUM }) {
                return Err(Error::Usage("the NIC has not agreed to this offload"));
            }
            o.wire(total - Offload::BYTES)
        };
        if wire <= self.side.shared.frame.load(Relaxed) as usize {
            return Ok(());
        }
        self.side.stats.oversize += 1;
        Err(Error::Usage("a packet is longer than the MTU"))
    }

    /// The offload header of a packet of `total` bytes, by its first buffer.
    fn header(&self, first: &RawBuf, total: usize) -> Option<Offload> {
        let mut bytes = [0; Offload::BYTES];
        if first.flags & OFFLOAD == 0 || usize::from(first.len) <= Offload::BYTES {
            return None;
        }
        self.region.copy_out(first.addr as usize, &mut bytes);
        Offload::parse(&bytes, total - Offload::BYTES).ok()
    }

    /// Describes a chunk and records whose its buffers are now: the NIC's, or this side's, to
    /// be freed when their transmission has completed.
    fn describe(&mut self, chunk: &[RawBuf], group: usize, descs: &mut [Desc; 4]) {
        let slots = self.rings.lent.len();
        let first = (self.rings.tx.position() as usize * group) & (slots - 1);
        let lend_all = !self.side.shared.config.shared_pool;
        for (i, b) in chunk.iter().enumerate() {
            let ledger = &self.side.shared.ledger;
            // A buffer with several references, and an object, stays with this side.
            let keep = ledger.shared(b.index) || b.index as usize >= self.side.shared.layout.pooled();
            if !keep {
                ledger.shift(0, b.index, Owner::User, Owner::Away);
            }
            if keep || lend_all {
                self.rings.lent[(first + i) & (slots - 1)] = (b.index + 1) | if keep { 0 } else { AWAY };
                self.rings.lent_open += 1;
            }
            descs[i] = b.desc(keep || lend_all);
            self.side.stats.tx_bytes += u64::from(b.len);
        }
    }

    /// Frees the lent buffers whose transmission has completed; returns how many. The burst
    /// calls do this by themselves when buffers or slots run short.
    pub fn sweep(&mut self) -> Result<usize, Error> {
        self.usable()?;
        let group = self.rings.tx.group();
        let to = match self.rings.tx.consumed(&self.region, self.rings.swept) {
            Ok(to) => to,
            Err(fault) => return Err(self.fail(fault)),
        };
        let mut n = 0;
        for slot in self.rings.swept * group as u64..to * group as u64 {
            let slot = slot as usize & (self.rings.lent.len() - 1);
            let entry = std::mem::take(&mut self.rings.lent[slot]);
            if entry == 0 {
                continue;
            }
            let index = (entry & !AWAY) - 1;
            if entry & AWAY != 0 {
                self.side.shared.ledger.shift(0, index, Owner::Away, Owner::User);
            }
            self.side.free(index);
            n += 1;
        }
        self.rings.swept = to;
        self.rings.lent_open -= n;
        self.side.stats.sweeps += n as u64;
        self.side.free_done();
        Ok(n)
    }

    /// Receives up to `max` buffers and appends them to `out`; returns how many: whole packets,
    /// where `max` is at least [`MAX_SEGMENTS`]. With less a packet goes on in the next call
    /// ([`Buf::more`]).
    pub fn rx(&mut self, out: &mut Vec<Buf>, max: usize) -> Result<usize, Error> {
        burst(out, max, MAX_SEGMENTS, |chunk| self.rx_raw(chunk))
    }

    pub(crate) fn rx_raw(&mut self, out: &mut [RawBuf]) -> Result<usize, Error> {
        self.usable()?;
        if let Rx::Slots(_) = self.rings.rx {
            self.post_blanks();
        }
        let mut got = if self.rings.held_at < self.rings.held_end { self.deliver_held(out, 0) } else { 0 };
        while got < out.len() && self.rings.held_at == self.rings.held_end {
            let mut line = [Desc::default(); 4];
            let polled = match &mut self.rings.rx {
                Rx::Lines(ring) => ring.poll(&self.region, &mut line),
                Rx::Slots(ring) => ring.poll(&self.region, &mut line),
            };
            let n = match polled {
                Ok(0) => break,
                Ok(n) => n,
                Err(fault) => return self.fail_after(fault, got),
            };
            if let Some(to) = out.get_mut(got..got + n) {
                let (good, fault) = self.accept_line(&line[..n], to);
                got += good;
                if let Some(fault) = fault {
                    return self.fail_after(fault, got);
                }
            } else {
                let mut held = [RawBuf::default(); MAX_SEGMENTS];
                let (good, fault) = self.accept_line(&line[..n], &mut held);
                self.rings.held = held;
                (self.rings.held_at, self.rings.held_end) = (0, good);
                got += self.deliver_held(&mut out[got..], got);
                if let Some(fault) = fault {
                    return self.fail_after(fault, got);
                }
            }
        }
        match &mut self.rings.rx {
            Rx::Lines(ring) => ring.release(&self.region),
            Rx::Slots(_) => {}
        }
        if got == 0 && self.region.get(layout::w_fault(self.id)) != 0 {
            return Err(self.fail(Fault::Peer));
        }
        Ok(got)
    }

    /// Takes the buffers of one line, whole packets only; returns how many, and the fault that
    /// ended it early.
    #[inline]
    fn accept_line(&mut self, line: &[Desc], out: &mut [RawBuf]) -> (usize, Option<Fault>) {
        let (mut whole, mut bytes) = (0, 0);
        for (i, (d, to)) in line.iter().zip(out.iter_mut()).enumerate() {
            match self.side.accept(*d, false) {
                Ok(index) => {
                    self.region.prefetch_byte(d.addr as usize);
                    *to = RawBuf { addr: d.addr, index, len: d.len(), flags: d.flags() & !NO_RECYCLE };
                    bytes += u64::from(d.len());
                    if !d.more() {
                        whole = i + 1;
                    }
                }
                Err(fault) => {
                    for b in &out[whole..i] {
                        self.side.renounce(b.index);
                    }
                    self.side.stats.rx += whole as u64;
                    return (whole, Some(fault));
                }
            }
        }
        self.side.stats.rx += whole as u64;
        self.side.stats.rx_bytes += bytes;
        (whole, None)
    }

    /// Delivers accepted buffers: whole packets, or, to a caller that has room for less than
    /// the next packet and got nothing yet, a part of it.
    fn deliver_held(&mut self, out: &mut [RawBuf], before: usize) -> usize {
        let held = &self.rings.held[self.rings.held_at..self.rings.held_end];
        let room = held.len().min(out.len());
        let whole = (1..=room).rev().find(|&n| held[n - 1].flags & MORE == 0);
        let n = whole.unwrap_or(if before == 0 { room } else { 0 });
        out[..n].copy_from_slice(&held[..n]);
        self.rings.held_at += n;
        n
    }

    /// Waits until a packet, or a fault, may be there to be received, at most `most`; false if
    /// the time is over. Polls for [`Config::poll_us`](crate::Config::poll_us) microseconds and
    /// then, in event mode, sleeps until the NIC wakes it or is gone.
    pub fn wait(&mut self, most: Duration) -> Result<bool, Error> {
        self.usable()?;
        if let Rx::Slots(_) = self.rings.rx {
            self.post_blanks();
        }
        let config = &self.side.shared.config;
        let start = Instant::now();
        let polls = Duration::from_micros(config.poll_us.into());
        loop {
            for _ in 0..64 {
                if self.waiting() {
                    return Ok(true);
                }
                std::hint::spin_loop();
            }
            let past = start.elapsed();
            if past >= most {
                return Ok(false);
            }
            if !self.event {
                std::thread::yield_now();
            } else if past >= polls {
                break;
            }
        }
        let Some(end) = self.side.shared.bells.get(self.id) else {
            std::thread::sleep((most - start.elapsed().min(most)).min(bell::NAP));
            return Ok(self.waiting());
        };
        let word = layout::w_host_sleeps(self.id);
        reset::fall_asleep(&self.region, word);
        if !self.waiting() {
            self.side.stats.sleeps += 1;
            bell::sleep(&[&*end], most.saturating_sub(start.elapsed()).min(bell::NAP))?;
            bell::hush(&end);
        }
        self.region.put(word, 0);
        Ok(self.waiting())
    }

    fn waiting(&self) -> bool {
        self.rings.held_at < self.rings.held_end
            || self.region.get(layout::w_fault(self.id)) != 0
            || match &self.rings.rx {
                Rx::Lines(ring) => ring.peek(&self.region),
                Rx::Slots(ring) => ring.peek(&self.region),
            }
    }

    /// The descriptor that becomes readable when the NIC wakes this queue, for use with epoll
    /// in event mode. It is replaced when the port gets another NIC.
    pub fn event_fd(&self) -> Option<Arc<std::os::fd::OwnedFd>> {
        self.side.shared.bells.get(self.id)
    }

    /// Host-only mode: refills the RX ring, a line's worth of slots at a time.
    fn post_blanks(&mut self) {
        let Rx::Slots(ring) = &mut self.rings.rx else {
            return;
        };
        let mut blanks = [RawBuf::default(); SWEEP];
        while ring.vacant() >= SWEEP.min(8) {
            let want = ring.vacant().min(SWEEP);
            let got = self.side.alloc(0, &mut blanks[..want]);
            for b in &blanks[..got] {
                self.side.shared.ledger.shift(0, b.index, Owner::User, Owner::Away);
                ring.post(&self.region, b.addr);
            }
            self.side.stats.posts += got as u64;
            if got < want {
                break;
            }
        }
        ring.commit(&self.region);
    }

    fn usable(&self) -> Result<(), Error> {
        self.rings.fault.map_or(Ok(()), |f| Err(Error::Fault(f)))
    }

    fn fail(&mut self, fault: Fault) -> Error {
        self.rings.fault = Some(fault);
        self.side.stats.faults += 1;
        Error::Fault(fault)
    }

    /// Delivers what came before the fault; the next call reports it.
    fn fail_after(&mut self, fault: Fault, got: usize) -> Result<usize, Error> {
        let error = self.fail(fault);
        if got > 0 {
            Ok(got)
        } else {
            Err(error)
        }
    }

    /// The fault that stopped the queue, if any.
    pub fn fault(&self) -> Option<Fault> {
        self.rings.fault
    }

    /// Counters since the queue was opened.
    pub fn stats(&self) -> Stats {
        self.side.stats
    }

    /// Bytes the buffer can hold from its first payload byte.
    pub fn capacity(&self, buf: &Buf) -> usize {
        self.side.shared.layout.locate(buf.0.addr).map_or(0, |p| p.room())
    }

    /// Size class of the buffer.
    pub fn class(&self, buf: &Buf) -> Class {
        self.side.shared.layout.span_of(buf.0.index).class
    }

    /// Copies `payload` to the start of the buffer and sets its length.
    ///
    /// # Panics
    /// When the payload is longer than [`capacity`](Self::capacity).
    #[inline]
    pub fn write(&mut self, buf: &mut Buf, payload: &[u8]) {
        assert!(payload.len() <= self.capacity(buf), "payload does not fit the buffer");
        if self.side.shared.config.nt_stores {
            self.region.copy_in_nt(buf.0.addr as usize, payload);
        } else {
            self.region.copy_in(buf.0.addr as usize, payload);
        }
        buf.0.len = payload.len() as u16;
    }

    /// As [`write`](Self::write) with an offload header in front, which the buffer must have
    /// room for. `buf` is the first of its packet.
    pub fn write_offload(&mut self, buf: &mut Buf, offload: &Offload, payload: &[u8]) {
        assert!(Offload::BYTES + payload.len() <= self.capacity(buf), "payload does not fit the buffer");
        self.region.copy_in(buf.0.addr as usize, &offload.to_bytes());
        self.region.copy_in(buf.0.addr as usize + Offload::BYTES, payload);
        buf.0.len = (Offload::BYTES + payload.len()) as u16;
        buf.0.flags |= OFFLOAD;
    }

    /// The offload header of a packet of `total` bytes, the header among them, given its first
    /// buffer; none if it has none or it is not sound.
    pub fn offload(&self, first: &Buf, total: usize) -> Option<Offload> {
        self.header(&first.0, total.max(first.len()))
    }

    /// Copies the start of the payload to `to`; returns the number of bytes.
    #[inline]
    pub fn read(&self, buf: &Buf, to: &mut [u8]) -> usize {
        let n = to.len().min(buf.len());
        self.region.copy_out(buf.0.addr as usize, &mut to[..n]);
        n
    }

    /// The payload as a vector.
    pub fn to_vec(&self, buf: &Buf) -> Vec<u8> {
        let mut v = vec![0; buf.len()];
        self.read(buf, &mut v);
        v
    }

    /// Reads the whole payload in place; see [`Region::checksum`].
    #[inline]
    pub fn checksum(&self, buf: &Buf) -> u64 {
        self.region.checksum(buf.0.addr as usize, buf.len())
    }

    /// Address of the payload and the bytes from there to the end of the buffer.
    pub(crate) fn data_ptr(&self, raw: &RawBuf) -> Option<(*mut u8, usize)> {
        let room = self.side.shared.layout.locate(raw.addr)?.room();
        Some((self.region.ptr(raw.addr as usize, room), room))
    }

    pub(crate) fn region(&self) -> &Region {
        &self.region
    }
}

impl Drop for HostQueue {
    /// Gives the stacks back to the pool; the rings wait for the queue to be opened again.
    fn drop(&mut self) {
        self.side.spill_all();
        let fresh = Rings::new(&self.side.shared, self.id);
        let rings = std::mem::replace(&mut self.rings, fresh);
        self.doors.lock()[self.id] = Door::Closed(Some(rings));
    }
}

/// Number of buffers at the front, at most `most`, that do not end inside a packet.
fn whole_packets(bufs: &[Buf], most: usize) -> usize {
    if bufs.len() <= most {
        return bufs.len();
    }
    (1..=most).rev().find(|&n| !bufs[n - 1].more()).unwrap_or(most)
}

/// Runs a raw burst call in chunks, none but the first below `least`, and appends what it
/// returns to a vector.
fn burst(
    out: &mut Vec<Buf>,
    max: usize,
    least: usize,
    mut call: impl FnMut(&mut [RawBuf]) -> Result<usize, Error>,
) -> Result<usize, Error> {
    let mut raw = [RawBuf::default(); BURST];
    let mut got = 0;
    while got < max {
        let want = (max - got).min(BURST);
        if got > 0 && want < least {
            break;
        }
        match call(&mut raw[..want]) {
            Ok(n) => {
                out.extend(raw[..n].iter().map(|&r| Buf(r)));
                got += n;
                if n < want {
                    break;
                }
            }
            Err(e) if got == 0 => return Err(e),
            Err(_) => break,
        }
    }
    Ok(got)
}
