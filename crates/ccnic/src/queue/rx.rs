//! Receiving, waiting for something to receive, and posting blank buffers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{burst, HostQueue, Rx, SWEEP};
use crate::bell;
use crate::buf::{Buf, RawBuf};
use crate::desc::{Desc, MAX_SEGMENTS, MORE, NO_RECYCLE};
use crate::error::{Error, Fault};
use crate::layout;
use crate::ledger::Owner;
use crate::mem::Mem;
use crate::reset;

impl HostQueue {
    /// Receives up to `max` buffers and appends them to `out`; returns how many: whole packets,
    /// where `max` is at least [`MAX_SEGMENTS`]. With less a packet goes on in the next call
    /// ([`Buf::more`]).
    pub fn rx(&mut self, out: &mut Vec<Buf>, max: usize) -> Result<usize, Error> {
        let mut raw = std::mem::take(&mut self.scratch);
        let got = burst(&mut raw, out, max, MAX_SEGMENTS, |chunk| self.rx_raw(chunk));
        self.scratch = raw;
        got
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
        if got == 0 {
            self.peer_fault()?;
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
                    self.side.stats.rx_bytes += out[..whole].iter().map(|b| u64::from(b.len)).sum::<u64>();
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
        self.post_blanks();
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
        if !self.arm()? {
            bell::sleep(&[&*end], most.saturating_sub(start.elapsed()).min(bell::NAP))?;
            self.disarm();
        }
        Ok(self.waiting())
    }

    /// Asks the NIC to wake this queue when it has something to receive, for callers that sleep on
    /// [`event_fd`](Self::event_fd) by other means, such as epoll. Returns true when something waits already, and then
    /// nothing was asked; nor is anything asked in a configuration without event mode. A wake-up is sent once:
    /// [`disarm`](Self::disarm), receive, and arm again.
    pub fn arm(&mut self) -> Result<bool, Error> {
        self.usable()?;
        // Without blanks the NIC has nothing to wake this queue for.
        self.post_blanks();
        if !self.event || self.waiting() {
            return Ok(true);
        }
        let word = layout::w_host_sleeps(self.id);
        reset::fall_asleep(&self.region, word);
        if self.waiting() {
            self.region.put(word, 0);
            return Ok(true);
        }
        self.side.stats.sleeps += 1;
        Ok(false)
    }

    /// Ends what [`arm`](Self::arm) began, and takes back what was sent meanwhile.
    pub fn disarm(&mut self) {
        self.region.put(layout::w_host_sleeps(self.id), 0);
        if let Some(end) = self.side.shared.bells.get(self.id) {
            bell::hush(&end);
        }
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
    /// in event mode, after [`arm`](Self::arm). It is replaced when the port gets another NIC.
    pub fn event_fd(&self) -> Option<Arc<std::os::fd::OwnedFd>> {
        self.side.shared.bells.get(self.id)
    }

    /// Host-only mode: refills the RX ring, a line's worth of slots at a time.
    fn post_blanks(&mut self) {
        let Rx::Slots(ring) = &mut self.rings.rx else {
            return;
        };
        let mut blanks = [RawBuf::default(); SWEEP];
        while ring.vacant() >= ring.batch() {
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
}
