//! A packet socket with TPACKET_V3 rings both ways: works on every interface.

use std::os::fd::{AsFd, BorrowedFd};

use super::Frames;
use crate::error::Error;
use crate::mem::Mem;
use crate::raw::{sys, Region};

const BLOCK: usize = 1 << 18;
const BLOCKS: usize = 16;
const FRAME: usize = 1 << 14;
const FRAMES: usize = BLOCK / FRAME * BLOCKS;
/// Payload offset in a TX frame: the aligned size of `tpacket3_hdr`.
const TX_DATA: usize = 48;

pub(super) struct PacketSocket {
    rings: Region,
    block: usize,
    frame: usize,
}

impl PacketSocket {
    pub fn open(index: u32) -> Result<PacketSocket, Error> {
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
        Ok(PacketSocket { rings, block: 0, frame: 0 })
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.rings.fd().expect("a mapped region has a descriptor")
    }
}

impl Frames for PacketSocket {
    fn put(&mut self, bytes: &[u8]) -> u64 {
        const SEND_REQUEST: u64 = 1;
        const SENDING: u64 = 2;
        let at = BLOCK * BLOCKS + self.frame * FRAME;
        let status = at / 8 + 2;
        let now = self.rings.get_acquire(status) >> 32;
        if bytes.len() > FRAME - TX_DATA || now & (SEND_REQUEST | SENDING) != 0 {
            return 1;
        }
        self.rings.copy_in(at + TX_DATA, bytes);
        self.rings.put(at / 8, 0);
        self.rings.put_release(status, bytes.len() as u64 | SEND_REQUEST << 32);
        self.frame = (self.frame + 1) % FRAMES;
        // A status left over: the kernel refused what was here before.
        u64::from(now != 0)
    }

    fn send(&mut self) {
        if sys::kick(self.fd()).is_err() {
            // The frame that was refused is marked, skipped and counted when its slot comes
            // round again; a full queue is retried with the next burst.
            std::thread::yield_now();
        }
    }

    /// One block of frames, if the kernel has filled one.
    fn receive(&mut self, take: &mut dyn FnMut(&Region, usize, usize)) -> bool {
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
            take(&self.rings, data, len);
            at += (self.rings.get(header) & 0xffff_ffff) as usize;
        }
        self.rings.put_release(block / 8 + 1, 0);
        self.block = (self.block + 1) % BLOCKS;
        true
    }
}
