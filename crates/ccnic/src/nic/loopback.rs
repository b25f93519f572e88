//! Loopback of one queue: the packets that the host sends are copied and returned to it.

use super::{NicQueue, Rx};
use crate::buf::RawBuf;
use crate::desc::{MAX_SEGMENTS, MORE, OFFLOAD};
use crate::error::Error;

impl NicQueue {
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
            self.note_drops(1);
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

    /// Copies the usual packet, one buffer in and one buffer out; see `loop_packet`.
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
}
