//! Overlay mode: a NIC whose far side is a Linux network interface.
//!
//! Packets that the host sends leave through the interface, and frames that arrive on it are
//! delivered to the host. Frames are exchanged with the kernel over a packet socket with
//! TPACKET_V3 rings in shared memory; RX needs no system call, TX one per burst. The kernel
//! may deliver frames with checksums left to the device; switch TX checksum offload off on
//! the peer (`ethtool -K IFACE tx off`) if the application verifies them.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::buf::Buf;
use crate::error::Error;
use crate::mem::Mem;
use crate::nic::{NicPort, NicQueue};
use crate::raw::{sys, Region};

const BLOCK: usize = 1 << 18;
const BLOCKS: usize = 16;
const FRAME: usize = 1 << 14;
const FRAMES: usize = BLOCK / FRAME * BLOCKS;
/// Payload offset in a TX frame: the aligned size of `tpacket3_hdr`.
const TX_DATA: usize = 48;
const BURST: usize = 64;
/// Idle rounds between looks at the stop flag and the host's socket.
const IDLE: u32 = 1024;

/// A packet socket's rings, with the counters of what could not be passed on.
pub struct Overlay {
    rings: Region,
    block: usize,
    frame: usize,
    /// Frames from the interface dropped: too large, or no buffer, or ring full.
    pub rx_drops: u64,
    /// Packets from the host dropped: too large for a frame or refused by the kernel.
    pub tx_drops: u64,
}

impl Overlay {
    /// Opens interface `iface`; needs CAP_NET_RAW.
    pub fn open(iface: &str) -> Result<Overlay, Error> {
        let probe = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)?;
        let index = rustix::net::netdevice::name_to_index(&probe, iface)
            .map_err(|e| Error::Config(format!("iface = {iface} cannot be used: {e}")))?;
        let fd = sys::packet_socket(index)?;
        let version = libc::tpacket_versions::TPACKET_V3 as i32;
        sys::set_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        let mut request = libc::tpacket_req3 {
            tp_block_size: BLOCK as u32,
            tp_block_nr: BLOCKS as u32,
            tp_frame_size: FRAME as u32,
            tp_frame_nr: FRAMES as u32,
            tp_retire_blk_tov: 1,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        sys::set_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        request.tp_retire_blk_tov = 0;
        sys::set_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_TX_RING, &request)?;
        let rings = Region::map(fd, 2 * BLOCK * BLOCKS)?;
        Ok(Overlay { rings, block: 0, frame: 0, rx_drops: 0, tx_drops: 0 })
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.rings.fd().expect("a mapped region has a descriptor")
    }

    /// Bridges `queues` and the interface until `stop` is set or the host is gone. Frames
    /// from the interface are spread over the queues by their addresses and ports.
    pub fn serve(&mut self, port: &NicPort, queues: &mut [NicQueue], stop: &AtomicBool) -> Result<(), Error> {
        let mut idle = 0;
        loop {
            let moved = self.round(queues)?;
            idle = if moved { 0 } else { idle + 1 };
            if idle % IDLE == IDLE - 1 {
                if stop.load(Ordering::Relaxed) || !port.host_alive() {
                    return Ok(());
                }
                std::thread::yield_now();
            }
        }
    }

    /// One pass in both directions; true if anything moved.
    fn round(&mut self, queues: &mut [NicQueue]) -> Result<bool, Error> {
        let mut moved = false;
        for q in queues.iter_mut() {
            match self.send(q) {
                Ok(n) => moved |= n > 0,
                // Only the host can clear a fault, which is counted and signalled already.
                Err(Error::Fault(_)) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(moved | self.receive(queues))
    }

    /// Host to interface.
    fn send(&mut self, q: &mut NicQueue) -> Result<usize, Error> {
        let mut bufs = Vec::with_capacity(BURST);
        let n = q.tx_poll(&mut bufs, BURST)?;
        if n == 0 {
            return Ok(0);
        }
        let mut bytes = Vec::new();
        for b in &bufs {
            q.read(b, &mut bytes);
            if !b.more() {
                self.put_frame(&bytes);
                bytes.clear();
            }
        }
        q.tx_done();
        q.free(&mut bufs);
        if sys::kick(self.fd()).is_err() {
            // The frame that was refused is marked, skipped and counted when its slot comes
            // round again; a full queue is retried with the next burst.
            std::thread::yield_now();
        }
        Ok(n)
    }

    fn put_frame(&mut self, bytes: &[u8]) {
        const SEND_REQUEST: u64 = 1;
        const SENDING: u64 = 2;
        let at = BLOCK * BLOCKS + self.frame * FRAME;
        let status = at / 8 + 2;
        let now = self.rings.get_acquire(status) >> 32;
        if bytes.len() > FRAME - TX_DATA || now & (SEND_REQUEST | SENDING) != 0 {
            self.tx_drops += 1;
            return;
        }
        if now != 0 {
            self.tx_drops += 1; // the kernel refused what was here before
        }
        self.rings.copy_in(at + TX_DATA, bytes);
        self.rings.put(at / 8, 0);
        self.rings.put_release(status, bytes.len() as u64 | SEND_REQUEST << 32);
        self.frame = (self.frame + 1) % FRAMES;
    }

    /// Interface to host: one block of frames, if the kernel has filled one.
    fn receive(&mut self, queues: &mut [NicQueue]) -> bool {
        const USER: u64 = 1;
        let block = self.block * BLOCK;
        let word = self.rings.get_acquire(block / 8 + 1);
        if word & USER == 0 {
            return false;
        }
        let frames = word >> 32;
        let mut at = (self.rings.get(block / 8 + 2) & 0xffff_ffff) as usize;
        for _ in 0..frames {
            // The kernel keeps headers inside the block, 16-byte aligned.
            let header = (block + at) / 8;
            let len = (self.rings.get(header + 1) >> 32) as usize;
            let data = block + at + (self.rings.get(header + 3) & 0xffff) as usize;
            if !self.deliver(queues, data, len) {
                self.rx_drops += 1;
            }
            at += (self.rings.get(header) & 0xffff_ffff) as usize;
        }
        for q in queues.iter_mut() {
            // Publishes what an earlier call had to keep back.
            let _ = q.rx_post(&mut Vec::new());
        }
        self.rings.put_release(block / 8 + 1, 0);
        self.block = (self.block + 1) % BLOCKS;
        true
    }

    fn deliver(&mut self, queues: &mut [NicQueue], data: usize, len: usize) -> bool {
        // Source and destination of IPv4 and the ports behind it; summed, so that both
        // directions of a flow meet on one queue.
        let mut flow = [0u8; 12];
        if len >= 38 {
            self.rings.copy_out(data + 26, &mut flow);
        }
        let half = |i: usize| u64::from(u32::from_be_bytes([flow[i], flow[i + 1], flow[i + 2], flow[i + 3]]));
        let ports =
            u64::from(u16::from_be_bytes([flow[8], flow[9]])) + u64::from(u16::from_be_bytes([flow[10], flow[11]]));
        let pick = (half(0) + half(4) + ports) % queues.len() as u64;
        let q = &mut queues[pick as usize];
        let Ok(Some(mut packet)) = q.alloc_packet(len) else {
            return false;
        };
        self.copy_to(q, &packet, data);
        q.rx_post(&mut packet).is_ok()
    }

    fn copy_to(&self, q: &mut NicQueue, packet: &[Buf], data: usize) {
        q.write_packet_from(packet, &self.rings, data);
    }
}
