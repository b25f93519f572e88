//! An AF_XDP socket: frames of the interface's first queue go past the kernel's network stack,
//! by copy or, where the interface's driver can, in place.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::{Frames, Take};
use crate::error::Error;
use crate::handshake::Features;
use crate::mem::Mem;
use crate::offload::Offload;
use crate::raw::{sys, xdp, Region};

const FRAME: usize = 4096;
/// Frames of each direction and entries of each ring; a power of two.
const COUNT: u32 = 2048;
/// Bytes the kernel keeps free in front of a received frame.
const HEADROOM: usize = 256;

/// One of the socket's four rings: u32 indices and entries of one or two words.
struct Ring {
    map: Region,
    producer: usize,
    consumer: usize,
    entries: usize,
    words: usize,
    /// Index of the entry that this side of the ring uses next.
    at: u32,
}

impl Ring {
    fn map(fd: &OwnedFd, at: xdp::RingPlace, words: usize) -> Result<Ring, Error> {
        let len = at.desc as usize + COUNT as usize * words * 8;
        let map = Region::map_at(fd.try_clone()?, len, at.page_offset)?;
        Ok(Ring {
            map,
            producer: at.producer as usize,
            consumer: at.consumer as usize,
            entries: at.desc as usize / 8,
            words,
            at: 0,
        })
    }

    fn word(&self, index: u32) -> usize {
        self.entries + (index & (COUNT - 1)) as usize * self.words
    }

    /// Entries the kernel has produced and this side has not consumed.
    fn ready(&self) -> u32 {
        self.map.get32_acquire(self.producer).wrapping_sub(self.at).min(COUNT)
    }

    /// Entries this side has produced and the kernel has not consumed.
    fn open(&self) -> u32 {
        self.at.wrapping_sub(self.map.get32_acquire(self.consumer))
    }

    fn produced(&self) {
        self.map.put32_release(self.producer, self.at);
    }

    fn consumed(&self) {
        self.map.put32_release(self.consumer, self.at);
    }
}

pub(super) struct XdpSocket {
    fd: OwnedFd,
    /// Detaches the program from the interface when it is closed, also by the process's death.
    _link: OwnedFd,
    frames: Region,
    rx: Ring,
    tx: Ring,
    fill: Ring,
    completion: Ring,
    /// TX frames that are free, by address.
    free: Vec<u64>,
}

impl XdpSocket {
    pub fn open(index: u32) -> Result<XdpSocket, Error> {
        let refused = |what: &str| {
            let what = what.to_string();
            move |e: std::io::Error| {
                Error::Config(format!("via = xdp: the kernel refuses {what} ({e}); use --via packet"))
            }
        };
        let frames = Region::heap(2 * COUNT as usize * FRAME);
        let (fd, places) = xdp::socket(&frames, FRAME as u32, COUNT).map_err(refused("the socket"))?;
        let rx = Ring::map(&fd, places[0], 2)?;
        let tx = Ring::map(&fd, places[1], 2)?;
        let mut fill = Ring::map(&fd, places[2], 1)?;
        let completion = Ring::map(&fd, places[3], 1)?;
        for i in 0..COUNT {
            fill.map.put(fill.word(i), u64::from(i) * FRAME as u64);
        }
        fill.at = COUNT;
        fill.produced();
        xdp::bind(fd.as_fd(), index).map_err(refused("to bind the socket to the interface's first queue"))?;
        let link = xdp::redirect(fd.as_fd(), index).map_err(refused("the program that redirects frames"))?;
        let free = (COUNT..2 * COUNT).map(|i| u64::from(i) * FRAME as u64).collect();
        Ok(XdpSocket { fd, _link: link, frames, rx, tx, fill, completion, free })
    }

    /// Takes back the frames that were sent.
    fn complete(&mut self) {
        let n = self.completion.ready();
        for _ in 0..n {
            let frame = self.completion.map.get(self.completion.word(self.completion.at));
            self.completion.at = self.completion.at.wrapping_add(1);
            self.free.push(frame & !(FRAME as u64 - 1));
        }
        if n > 0 {
            self.completion.consumed();
        }
    }
}

impl Frames for XdpSocket {
    fn features(&self) -> Features {
        Features::default()
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn put(&mut self, _: &Offload, bytes: &[u8]) -> u64 {
        if self.free.is_empty() {
            self.send();
        }
        if bytes.len() > FRAME - HEADROOM {
            return 1;
        }
        let Some(frame) = self.free.pop() else {
            return 1;
        };
        self.frames.copy_in(frame as usize, bytes);
        let at = self.tx.word(self.tx.at);
        self.tx.map.put(at, frame);
        self.tx.map.put(at + 1, bytes.len() as u64);
        self.tx.at = self.tx.at.wrapping_add(1);
        0
    }

    fn send(&mut self) {
        self.tx.produced();
        // The kernel sends a batch per call; a full device queue is retried with the next burst.
        for _ in 0..COUNT / 16 {
            let sent = sys::kick(self.fd.as_fd());
            self.complete();
            if self.tx.open() == 0 || sent.is_err_and(|e| e.kind() != std::io::ErrorKind::WouldBlock) {
                return;
            }
        }
    }

    fn receive(&mut self, take: &mut Take<'_>) -> bool {
        let n = self.rx.ready();
        for _ in 0..n {
            let at = self.rx.word(self.rx.at);
            let (addr, len) = (self.rx.map.get(at), self.rx.map.get(at + 1) as u32);
            take(&self.frames, addr as usize, len as usize, None);
            self.rx.at = self.rx.at.wrapping_add(1);
            // There are as many entries as frames, so there is always room for this one.
            self.fill.map.put(self.fill.word(self.fill.at), addr & !(FRAME as u64 - 1));
            self.fill.at = self.fill.at.wrapping_add(1);
        }
        if n > 0 {
            self.rx.consumed();
            self.fill.produced();
        }
        n > 0
    }
}
