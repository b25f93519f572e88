//! Sending, and the buffers that are lent while they are in flight.

use std::sync::atomic::Ordering::Relaxed;

use super::{HostQueue, BURST};
use crate::buf::{Buf, RawBuf};
use crate::desc::{Desc, MORE, OFFLOAD};
use crate::error::{Error, Fault};
use crate::handshake::Features;
use crate::layout;
use crate::ledger::Owner;
use crate::offload::Offload;
use crate::reset;
use crate::side::{next_chunk, Side};

impl HostQueue {
    /// Sends as many packets from the front of `bufs` as the ring takes, and removes them.
    /// Returns the number of buffers sent. Buffers of one packet are chained with
    /// [`Buf::set_more`]; a packet has at most four and is sent whole or not at all.
    pub fn tx(&mut self, bufs: &mut Vec<Buf>) -> Result<usize, Error> {
        let mut sent = 0;
        let mut raw = std::mem::take(&mut self.scratch);
        let mut outcome = Ok(());
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
                Err(e) => {
                    outcome = Err(e);
                    break;
                }
            }
        }
        self.scratch = raw;
        if sent == 0 {
            outcome?;
        }
        bufs.drain(..sent);
        Ok(sent)
    }

    pub(crate) fn tx_raw(&mut self, bufs: &[RawBuf]) -> Result<usize, Error> {
        self.usable()?;
        if self.rings.lent_open == 0 {
            self.rings.swept = self.rings.tx.position();
        } else if self.rings.lent_open >= self.sweep_at {
            self.sweep_lent()?;
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
                if let Err(e) = self.sweep_lent() {
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
            outcome?;
            // A ring that stays full may be that of a NIC that has stopped.
            self.peer_fault().map(|()| 0)
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

    /// Whether a chunk may be sent: its buffers are sound, the caller has a reference for each time that
    /// a buffer is in it, and no packet is too long.
    fn may_send(&mut self, chunk: &[RawBuf]) -> Result<(), Error> {
        let mut first = 0;
        for i in 0..chunk.len() {
            let b = &chunk[i];
            let before = chunk[..i].iter().filter(|a| a.index == b.index).count();
            let twice = before > 0 && before >= self.side.shared.ledger.sends(0, b.index);
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
    pub(super) fn header(&self, first: &RawBuf, total: usize) -> Option<Offload> {
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
        let shared = &self.side.shared;
        for (i, b) in chunk.iter().enumerate() {
            // A buffer with several references, and an object, stays with this side.
            let gone = shared.config.shared_pool
                && (b.index as usize) < shared.layout.pooled()
                && shared.ledger.shift(0, b.index, Owner::User, Owner::Away);
            if !gone && shared.ledger.lend(b.index) {
                self.rings.lent[(first + i) & (slots - 1)] = b.index + 1;
                self.rings.lent_open += 1;
            }
            descs[i] = b.desc(!gone);
            self.side.stats.tx_bytes += u64::from(b.len);
        }
    }

    /// Frees the lent buffers whose transmission has completed; returns how many. The burst
    /// calls do this by themselves when buffers or slots run short. With none it looks whether the
    /// NIC has stopped on a fault, for applications that only send.
    pub fn sweep(&mut self) -> Result<usize, Error> {
        let n = self.sweep_lent()?;
        if n == 0 {
            self.peer_fault()?;
        }
        Ok(n)
    }

    pub(super) fn sweep_lent(&mut self) -> Result<usize, Error> {
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
            if self.side.shared.ledger.land(entry - 1) {
                self.side.free(entry - 1);
            }
            n += 1;
        }
        self.rings.swept = to;
        self.rings.lent_open -= n;
        self.side.stats.sweeps += n as u64;
        self.side.free_done();
        Ok(n)
    }
}

/// Number of buffers at the front, at most `most`, that do not end inside a packet.
fn whole_packets(bufs: &[Buf], most: usize) -> usize {
    if bufs.len() <= most {
        return bufs.len();
    }
    (1..=most).rev().find(|&n| !bufs[n - 1].more()).unwrap_or(most)
}
