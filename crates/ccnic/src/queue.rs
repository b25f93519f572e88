//! The host's end of one queue pair.

use std::sync::Arc;

use crate::buf::{Buf, RawBuf};
use crate::desc::{Desc, NO_RECYCLE};
use crate::error::{Error, Fault};
use crate::layout::{self, Class};
use crate::ledger::Owner;
use crate::mem::Mem;
use crate::post::PostHost;
use crate::raw::Region;
use crate::ring::{Consumer, Producer};
use crate::side::{next_chunk, Shared, Side, Stats};

/// TX buffers the host lets complete before it sweeps them.
const SWEEP: usize = 32;
const BURST: usize = 64;

/// Host end of one queue pair, with its own recycle stacks. Used by one thread at a time
/// (`Send`, methods take `&mut self`); no call blocks.
pub struct HostQueue {
    pub(crate) side: Side,
    region: Region,
    id: usize,
    tx: Producer,
    rx: Rx,
    /// Per ring slot: the lent buffer in flight there, as index + 1, with [`AWAY`].
    lent: Vec<u32>,
    lent_open: usize,
    swept: u64,
    fault: Option<Fault>,
}

/// Mark of a lent buffer that nobody else refers to.
const AWAY: u32 = 1 << 31;

enum Rx {
    Lines { ring: Consumer, line: [Desc; 4], at: usize, end: usize },
    Slots(PostHost),
}

impl HostQueue {
    pub(crate) fn new(shared: Arc<Shared>, id: usize) -> HostQueue {
        let (tx, rx) = rings(&shared, id);
        let lent = vec![0; shared.config.slots as usize];
        let region = shared.region.clone();
        let side = Side::new(shared, 0);
        HostQueue { side, region, id, tx, rx, lent, lent_open: 0, swept: 0, fault: None }
    }

    /// Empty rings and no fault; lent buffers come back.
    pub(crate) fn restart(&mut self) {
        for slot in 0..self.lent.len() {
            let entry = std::mem::take(&mut self.lent[slot]);
            if entry != 0 && entry & AWAY == 0 {
                self.side.free(entry - 1);
            }
        }
        (self.tx, self.rx) = rings(&self.side.shared, self.id);
        (self.lent_open, self.swept, self.fault) = (0, 0, None);
    }

    /// Allocates up to `count` buffers and appends them to `out`; returns how many.
    /// `size_hint` is the packet size in bytes if it is known (up to the small size it
    /// selects small buffers), 0 if not. Fewer are returned when the pool runs dry.
    pub fn alloc(&mut self, out: &mut Vec<Buf>, count: usize, size_hint: usize) -> usize {
        burst(out, count, |chunk| Ok(self.alloc_raw(chunk, size_hint))).unwrap_or(0)
    }

    pub(crate) fn alloc_raw(&mut self, out: &mut [RawBuf], size_hint: usize) -> usize {
        let mut n = self.side.alloc(size_hint, out);
        if n < out.len() && self.lent_open > 0 && self.sweep().is_ok() {
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
        if self.lent_open == 0 {
            self.swept = self.tx.position();
        } else if self.lent_open >= SWEEP {
            self.sweep()?;
        }
        let group = self.tx.group();
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
            if !(0..n).all(|i| self.may_send(chunk, i)) {
                outcome = Err(Error::Usage("a buffer in the burst is empty, too long or not owned"));
                break;
            }
            let units = if group == 1 { n } else { 1 };
            match self.tx.ensure(&self.region, units) {
                Ok(true) => {}
                Ok(false) => break,
                Err(fault) => {
                    outcome = Err(self.fail(fault));
                    break;
                }
            }
            if self.lent_open > 0 && self.tx.position() + units as u64 - self.swept > self.tx.units() {
                self.sweep()?;
            }
            let mut descs = [Desc::default(); 4];
            self.describe(chunk, group, &mut descs);
            self.tx.publish(&self.region, &descs[..n]);
            self.side.stats.tx += n as u64;
            self.side.stats.units += 1;
            done += n;
        }
        self.tx.commit(&self.region);
        if done > 0 {
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
        if self.tx.group() != 4 || self.lent_open > 0 || !shared.config.shared_pool {
            return 0;
        }
        let (mut done, mut bytes) = (0, 0);
        let limit = shared.layout.pooled() as u32;
        for chunk in bufs.chunks(4) {
            if !matches!(self.tx.ensure(&self.region, 1), Ok(true)) {
                break;
            }
            let mut descs = [Desc::default(); 4];
            let mut good = 0;
            for (d, b) in descs.iter_mut().zip(chunk) {
                *d = b.desc(false);
                let sound =
                    !d.more() && b.index < limit && shared.layout.check(*d).is_some_and(|p| p.index() == b.index);
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
            self.tx.publish(&self.region, &descs[..good]);
            done += good;
            bytes += chunk.iter().map(|b| u64::from(b.len)).sum::<u64>();
            stats.units += 1;
        }
        stats.tx += done as u64;
        stats.tx_bytes += bytes;
        done
    }

    /// Whether the buffer at `i` of a chunk may be sent: the caller owns it, it is sound, and
    /// it is not in the chunk twice, unless it has further references.
    fn may_send(&mut self, chunk: &[RawBuf], i: usize) -> bool {
        let b = &chunk[i];
        let twice = chunk[..i].iter().any(|a| a.index == b.index) && !self.side.shared.ledger.shared(b.index);
        self.side.stats.misuse += u64::from(twice);
        !twice && self.side.may_send(b)
    }

    /// Describes a chunk and records whose its buffers are now: the NIC's, or this side's, to
    /// be freed when their transmission has completed.
    fn describe(&mut self, chunk: &[RawBuf], group: usize, descs: &mut [Desc; 4]) {
        let slots = self.lent.len();
        let first = (self.tx.position() as usize * group) & (slots - 1);
        let lend_all = !self.side.shared.config.shared_pool;
        for (i, b) in chunk.iter().enumerate() {
            let ledger = &self.side.shared.ledger;
            // A buffer with several references, and an object, stays with this side.
            let keep = ledger.shared(b.index) || b.index as usize >= self.side.shared.layout.pooled();
            if !keep {
                ledger.shift(0, b.index, Owner::User, Owner::Away);
            }
            if keep || lend_all {
                self.lent[(first + i) & (slots - 1)] = (b.index + 1) | if keep { 0 } else { AWAY };
                self.lent_open += 1;
            }
            descs[i] = b.desc(keep || lend_all);
            self.side.stats.tx_bytes += u64::from(b.len);
        }
    }

    /// Frees the lent buffers whose transmission has completed; returns how many. The burst
    /// calls do this by themselves when buffers or slots run short.
    pub fn sweep(&mut self) -> Result<usize, Error> {
        self.usable()?;
        let group = self.tx.group();
        let to = match self.tx.consumed(&self.region, self.swept) {
            Ok(to) => to,
            Err(fault) => return Err(self.fail(fault)),
        };
        let mut n = 0;
        for slot in self.swept * group as u64..to * group as u64 {
            let slot = slot as usize & (self.lent.len() - 1);
            let entry = std::mem::take(&mut self.lent[slot]);
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
        self.swept = to;
        self.lent_open -= n;
        self.side.stats.sweeps += n as u64;
        self.side.free_done();
        Ok(n)
    }

    /// Receives up to `max` buffers and appends them to `out`; returns how many. A buffer
    /// for which [`Buf::more`] holds is followed by another of its packet, at the latest in
    /// the next call.
    pub fn rx(&mut self, out: &mut Vec<Buf>, max: usize) -> Result<usize, Error> {
        burst(out, max, |chunk| self.rx_raw(chunk))
    }

    pub(crate) fn rx_raw(&mut self, out: &mut [RawBuf]) -> Result<usize, Error> {
        self.usable()?;
        if let Rx::Slots(_) = self.rx {
            self.post_blanks();
        }
        let mut got = 0;
        while got < out.len() {
            let desc = match self.next_desc() {
                Ok(Some(d)) => d,
                Ok(None) => break,
                Err(fault) => return self.fail_after(fault, got),
            };
            match self.side.accept(desc, false) {
                Ok(index) => {
                    self.region.prefetch_byte(desc.addr as usize);
                    out[got] = RawBuf { addr: desc.addr, index, len: desc.len(), flags: desc.flags() & !NO_RECYCLE };
                    got += 1;
                }
                Err(fault) => return self.fail_after(fault, got),
            }
        }
        match &mut self.rx {
            Rx::Lines { ring, .. } => ring.release(&self.region),
            Rx::Slots(_) => {}
        }
        if got == 0 && self.region.get(layout::w_fault(self.id)) != 0 {
            return Err(self.fail(Fault::Peer));
        }
        Ok(got)
    }

    #[inline]
    fn next_desc(&mut self) -> Result<Option<Desc>, Fault> {
        match &mut self.rx {
            Rx::Lines { ring, line, at, end } => {
                if at == end {
                    *end = ring.poll(&self.region, line)?;
                    *at = 0;
                    if *end == 0 {
                        return Ok(None);
                    }
                }
                *at += 1;
                Ok(Some(line[*at - 1]))
            }
            Rx::Slots(ring) => ring.poll(&self.region),
        }
    }

    /// Host-only mode: refills the RX ring, a line's worth of slots at a time.
    fn post_blanks(&mut self) {
        let Rx::Slots(ring) = &mut self.rx else {
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
        self.fault.map_or(Ok(()), |f| Err(Error::Fault(f)))
    }

    fn fail(&mut self, fault: Fault) -> Error {
        self.fault = Some(fault);
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
        self.fault
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

fn rings(shared: &Shared, id: usize) -> (Producer, Rx) {
    let q = &shared.layout.queues[id];
    let rx = if shared.config.shared_pool {
        let lazy = shared.config.rx_lazy as usize * 4 / q.rx.group.max(1);
        let ring = Consumer::new(q.rx.clone(), lazy.max(1));
        Rx::Lines { ring, line: [Desc::default(); 4], at: 0, end: 0 }
    } else {
        Rx::Slots(PostHost::new(q.rx.clone()))
    };
    (Producer::new(q.tx.clone()), rx)
}

/// Number of buffers at the front, at most `most`, that do not end inside a packet.
fn whole_packets(bufs: &[Buf], most: usize) -> usize {
    if bufs.len() <= most {
        return bufs.len();
    }
    (1..=most).rev().find(|&n| !bufs[n - 1].more()).unwrap_or(most)
}

/// Runs a raw burst call in chunks and appends what it returns to a vector.
fn burst(
    out: &mut Vec<Buf>,
    max: usize,
    mut call: impl FnMut(&mut [RawBuf]) -> Result<usize, Error>,
) -> Result<usize, Error> {
    let mut raw = [RawBuf::default(); BURST];
    let mut got = 0;
    while got < max {
        let want = (max - got).min(BURST);
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
