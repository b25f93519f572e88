//! The host's end of one queue pair.

mod rx;
mod tx;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::buf::{Buf, RawBuf};
use crate::desc::{MAX_SEGMENTS, OFFLOAD};
use crate::error::{Error, Fault};
use crate::layout::{self, Class};
use crate::ledger::Owner;
use crate::mem::Mem;
use crate::offload::Offload;
use crate::post::PostHost;
use crate::raw::Region;
use crate::ring::{Consumer, Producer};
use crate::side::{Shared, Side, Stats};

/// Most TX buffers the host lets complete before it sweeps them.
const SWEEP: usize = 32;
const BURST: usize = 64;

/// Host end of one queue pair, with its own recycle stacks. Used by one thread at a time
/// (`Send`, methods take `&mut self`); no call but [`wait`](Self::wait) blocks. Dropping it
/// closes the queue, which can be opened again and then goes on where it was.
pub struct HostQueue {
    pub(crate) side: Side,
    region: Region,
    id: usize,
    /// True when the other side may sleep.
    event: bool,
    /// Lent buffers from which on a burst begins with a sweep.
    sweep_at: usize,
    doors: Arc<Doors>,
    rings: Rings,
    /// Drops that the NIC had reported when the queue was opened or the port was reset.
    drops_before: u64,
    /// Handles of a burst, on their way between a vector and the rings.
    scratch: Vec<RawBuf>,
}

/// The host's positions in the rings of one queue pair.
pub(crate) struct Rings {
    tx: Producer,
    rx: Rx,
    /// Per ring slot: the lent buffer in flight there, as index + 1.
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
            Rx::Slots(PostHost::new(q.rx.clone(), shared.config.blanks()))
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
            let index = entry.wrapping_sub(1);
            if entry != 0 && shared.ledger.land(index) {
                shared.ledger.shift(0, index, Owner::User, Owner::Away);
            }
        }
        for b in &self.held[self.held_at..self.held_end] {
            shared.ledger.shift(0, b.index, Owner::User, Owner::Away);
        }
        (self.held_at, self.held_end) = (0, 0);
    }
}

/// The open queues of a port, and the rings of those that were closed.
pub(crate) struct Doors(Mutex<Vec<Door>>);

enum Door {
    Open,
    Closed(Option<Box<Rings>>),
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
            Door::Closed(Some(rings)) => *rings,
            _ => Rings::new(shared, id),
        };
        drop(all);
        // Where all are lent, what one queue has not swept is missing to the others.
        let sweep_at = if shared.config.shared_pool { SWEEP } else { SWEEP.min(shared.config.to_send() / 2) };
        Ok(HostQueue {
            sweep_at,
            side: Side::new(shared.clone(), 0),
            region: shared.region.clone(),
            id,
            event: shared.config.poll_us > 0,
            doors: doors.clone(),
            rings,
            drops_before: shared.region.get(layout::w_nic_drops(id)),
            scratch: vec![RawBuf::default(); BURST],
        })
    }

    /// Empty rings and stacks, and no fault; buffers the application does not hold are away.
    pub(crate) fn restart(&mut self) {
        self.side.stats.drops = self.stats().drops;
        self.drops_before = 0;
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
        let mut raw = std::mem::take(&mut self.scratch);
        let got = burst(&mut raw, out, count, 1, |chunk| Ok(self.alloc_raw(chunk, size_hint)));
        self.scratch = raw;
        got.unwrap_or(0)
    }

    pub(crate) fn alloc_raw(&mut self, out: &mut [RawBuf], size_hint: usize) -> usize {
        let mut n = self.side.alloc(size_hint, out);
        if n < out.len() && self.rings.lent_open > 0 && self.sweep_lent().is_ok() {
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
    /// the NIC does not recycle it. Each handle is sent or freed once. Its payload must not change
    /// before the send completes.
    pub fn retain(&mut self, buf: &Buf) -> Result<Buf, Error> {
        self.retain_index(buf.0.index).map(|()| Buf(buf.0))
    }

    pub(crate) fn retain_index(&mut self, index: u32) -> Result<(), Error> {
        if self.side.shared.ledger.retain(0, index) {
            return Ok(());
        }
        Err(Error::Usage("the buffer is not owned or has too many references"))
    }

    fn usable(&self) -> Result<(), Error> {
        self.rings.fault.map_or(Ok(()), |f| Err(Error::Fault(f)))
    }

    fn fail(&mut self, fault: Fault) -> Error {
        self.rings.fault = Some(fault);
        self.side.stats.faults += 1;
        Error::Fault(fault)
    }

    /// Looks whether the NIC has stopped on a fault.
    fn peer_fault(&mut self) -> Result<(), Error> {
        if self.region.get(layout::w_fault(self.id)) == 0 {
            Ok(())
        } else {
            Err(self.fail(Fault::Peer))
        }
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

    /// Counters since the queue was opened, over all NICs and resets.
    pub fn stats(&self) -> Stats {
        Stats { drops: self.side.stats.drops.saturating_add(self.fresh_drops()), ..self.side.stats }
    }

    /// Packets that the NIC says it dropped since the last reset, as far as the queue was open. A NIC may say anything.
    fn fresh_drops(&self) -> u64 {
        self.region.get(layout::w_nic_drops(self.id)).saturating_sub(self.drops_before)
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

    /// Copies an offload header and then `payload` to the start of the buffer, which must have room for both, and sets
    /// its length; see [`write`](Self::write). `buf` is the first of its packet.
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
        self.side.retire();
        let fresh = Rings::new(&self.side.shared, self.id);
        let rings = std::mem::replace(&mut self.rings, fresh);
        self.doors.lock()[self.id] = Door::Closed(Some(Box::new(rings)));
    }
}

/// Runs a raw burst call in chunks, none but the first below `least`, and appends what it
/// returns to a vector.
fn burst(
    raw: &mut [RawBuf],
    out: &mut Vec<Buf>,
    max: usize,
    least: usize,
    mut call: impl FnMut(&mut [RawBuf]) -> Result<usize, Error>,
) -> Result<usize, Error> {
    let mut got = 0;
    while got < max {
        let want = (max - got).min(raw.len());
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
